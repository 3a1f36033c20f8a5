/* tools/page/json_read.h: members of JSON that was read back (cJSON).
 *
 * The room page/
 *   takes      figures, spans of a trace, logs of runs (run_log.h)
 *   gives      parts of one self-contained HTML page: head and words (page.h), charts (chart.h), a timeline
 *              (timeline.h); nothing in it is fetched from anywhere
 *   callers    commands/ */
#ifndef TOOLS_JSON_READ_H
#define TOOLS_JSON_READ_H

#include <cjson/cJSON.h>
#include <math.h>
#include <stddef.h>

/* One value, with only spaces after it; cJSON_Delete() it. NULL: invalid from byte *at on. */
static inline cJSON *json_read(const char *text, size_t bytes, size_t *at)
{
    const char *end = NULL;
    cJSON *root = cJSON_ParseWithLengthOpts(text, bytes, &end, 0);
    size_t n = end ? (size_t)(end - text) : 0;
    while (root && n < bytes && (text[n] == ' ' || (text[n] >= '\t' && text[n] <= '\r'))) n++;
    *at = n;
    if (!root || n == bytes) return root;
    cJSON_Delete(root);
    return NULL;
}

static inline const cJSON *json_member(const cJSON *object, const char *key)
{
    return cJSON_GetObjectItemCaseSensitive(object, key);
}

/* The value of a member; NAN or NULL if it is missing or of another kind. */
static inline double json_number_of(const cJSON *object, const char *key)
{
    const cJSON *n = json_member(object, key);
    return cJSON_IsNumber(n) ? n->valuedouble : NAN;
}
static inline const char *json_text_of(const cJSON *object, const char *key)
{
    return cJSON_GetStringValue(json_member(object, key));
}

#endif
