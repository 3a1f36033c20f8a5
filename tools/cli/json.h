/* tools/cli/json.h: one JSON object per line, written as it is made. Whole numbers keep all 64 bits (a tree
 * of doubles would round seeds and fingerprints), NaN and infinity become null, and bytes that are not UTF-8
 * (file names may hold anything) become the character of the same number, so that every line is valid
 * JSON. */
#ifndef TOOLS_JSON_H
#define TOOLS_JSON_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>

#include "settings/setting.h"

typedef struct json_line {
    FILE *out;
    bool comma; /* the next key needs one in front */
} json_line;

/* Each line starts with "event". */
json_line json_begin(FILE *out, const char *event);
void json_end(json_line *j); /* closes the object and the line, and flushes */

void json_text(json_line *j, const char *key, const char *value); /* NULL gives null */
void json_u64(json_line *j, const char *key, uint64_t value);
void json_i64(json_line *j, const char *key, int64_t value);
void json_float(json_line *j, const char *key, float value); /* no digit more than it has; null: not finite */
void json_real(json_line *j, const char *key, double value);
void json_bool(json_line *j, const char *key, bool value);
/* Under the name of its member. */
void json_setting(json_line *j, const mri_setting *s, const void *settings);
void json_object(json_line *j, const char *key); /* until json_close_object() */
void json_close_object(json_line *j);
void json_array(json_line *j, const char *key); /* members take key NULL */
void json_close_array(json_line *j);

#endif
