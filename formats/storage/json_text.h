/* formats/storage/json_text.h: text to a tree of JSON, from any thread. Private. */
#ifndef MRI_JSON_TEXT_H
#define MRI_JSON_TEXT_H

#include <cjson/cJSON.h>
#include <stdbool.h>
#include <stddef.h>

/* The first value in the text, to be freed with cJSON_Delete(); *end: the first byte after it, where end is
 * not NULL. NULL: the text is no JSON, or memory is short. */
cJSON *mri_json_parse(const char *text, size_t bytes, const char **end, bool *no_memory);

/* A string for a tree. JSON is UTF-8: other bytes of the text become the characters that they are in Latin-1.
 * NULL: memory is short. */
cJSON *mri_json_string(const char *text);

#endif
