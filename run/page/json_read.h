/* run/page/json_read.h: members of JSON that was read back (cJSON).
 *
 * The room page/
 *   takes      figures, spans of a trace, logs of runs (run_log.h)
 *   gives      parts of one self-contained HTML page: head and words (page.h), charts (chart.h), a timeline
 *              (timeline.h); nothing in it is fetched from anywhere
 *   callers    report/, sweep/ */
#ifndef MRI_JSON_READ_H
#define MRI_JSON_READ_H

#include <math.h>
#include <stddef.h>

#include "base/number.h"
#include "formats/storage/json_text.h"

/* One value, with only spaces after it; cJSON_Delete() it. NULL: invalid from byte *at on. */
static inline cJSON *mri_json_read(const char *text, size_t bytes, size_t *at)
{
    const char *end = NULL;
    bool no_memory;
    const locale_t before = mri_c_numbers_begin();
    cJSON *root = mri_json_parse(text, bytes, &end, &no_memory);
    mri_c_numbers_end(before);
    size_t n = end ? (size_t)(end - text) : 0;
    while (root && n < bytes && (text[n] == ' ' || (text[n] >= '\t' && text[n] <= '\r'))) n++;
    *at = n;
    if (!root || n == bytes) return root;
    cJSON_Delete(root);
    return NULL;
}

static inline const cJSON *mri_json_member(const cJSON *object, const char *key)
{
    return cJSON_GetObjectItemCaseSensitive(object, key);
}

/* The value of a member; NAN or NULL if it is missing or of another kind. */
static inline double mri_json_number_of(const cJSON *object, const char *key)
{
    const cJSON *n = mri_json_member(object, key);
    return cJSON_IsNumber(n) ? n->valuedouble : NAN;
}
static inline const char *mri_json_text_of(const cJSON *object, const char *key)
{
    return cJSON_GetStringValue(mri_json_member(object, key));
}

#endif
