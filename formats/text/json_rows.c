/* formats/text/json_rows.c: see json_rows.h. */
#include "formats/text/json_rows.h"

#include <math.h>
#include <stdio.h>

#include "base/util.h"
#include "formats/storage/json_text.h"

enum { MOST_LEVELS = 32 };

/* ---- the beginning of a text ---- */
static bool is_blank(uint8_t b) { return b == ' ' || b == '\t' || b == '\n' || b == '\r'; }

static size_t past_blanks(const uint8_t *head, size_t bytes, size_t at)
{
    while (at < bytes && is_blank(head[at])) at++;
    return at;
}

/* Bytes of a string that begins here, with its quotes; 0: it does not end in these bytes. */
static size_t string_bytes(const uint8_t *at, size_t bytes)
{
    for (size_t n = 1; n < bytes; n++) {
        if (at[n] == '\\') n++;
        else if (at[n] == '"') return n + 1;
    }
    return 0;
}

bool mri_json_begins(const uint8_t *head, size_t bytes)
{
    size_t at = past_blanks(head, bytes, 0);
    if (at < bytes && head[at] == '[') at = past_blanks(head, bytes, at + 1);
    return at < bytes && head[at] == '{';
}

bool mri_json_first_keys(const uint8_t *head, size_t bytes,
                         bool (*is_wanted)(const char *key, size_t key_bytes))
{
    size_t at = past_blanks(head, bytes, 0);
    uint32_t level = 0;
    if (!mri_json_begins(head, bytes)) return false;
    if (head[at] == '[') at++;
    for (; at < bytes; at++) {
        if (head[at] == '{' || head[at] == '[') level++;
        else if ((head[at] == '}' || head[at] == ']') && --level == 0) return false;
        if (head[at] != '"') continue;
        const size_t n = string_bytes(head + at, bytes - at);
        if (n == 0) return false;
        const char *key = (const char *)head + at + 1;
        at = past_blanks(head, bytes, at + n);
        if (at >= bytes || head[at] != ':') {
            at--; /* a value; what follows it is looked at again */
            continue;
        }
        const size_t value = past_blanks(head, bytes, at + 1);
        if (level == 1 && value < bytes && head[value] == '"' && is_wanted(key, n - 2)) return true;
    }
    return false;
}

/* ---- one object as text ---- */
static int error_at(const mri_csv *c, mr_error *err, const char *what)
{
    return mri_text_error_at(&c->text, err, MR_EFORMAT, c->line, "JSON: %s", what);
}

/* The next byte, taken; -1: the end. */
static int take(mri_csv *c, int *byte, mr_error *err)
{
    const int rc = c->text.at < c->text.end ? MR_OK : mri_text_more(&c->text, err);
    *byte = -1;
    if (rc) return rc == MR_EEND ? MR_OK : rc;
    *byte = *c->text.at++;
    c->text.line += *byte == '\n';
    return MR_OK;
}

static int take_past_blanks(mri_csv *c, int *byte, mr_error *err)
{
    int rc;
    do rc = take(c, byte, err);
    while (!rc && *byte >= 0 && is_blank((uint8_t)*byte));
    return rc;
}

static int keep(mri_csv *c, int byte, mr_error *err)
{
    mri_json_rows *j = &c->json;
    if (j->bytes == MRI_CSV_ROW_BYTES)
        return mri_text_error_at(&c->text, err, MR_ELIMIT, c->line, "the object is longer than %d bytes",
                                 MRI_CSV_ROW_BYTES);
    if (j->bytes == j->cap) {
        const size_t cap = j->cap ? 2 * j->cap : 4096;
        char *larger = realloc(j->text, cap);
        if (!larger) return mr_error_set(err, MR_ENOMEM, "no memory for a row of a table");
        j->text = larger;
        j->cap = cap;
    }
    j->text[j->bytes++] = (char)byte;
    return MR_OK;
}

/* From its first brace, which is taken, to its last. */
static int take_object(mri_csv *c, mr_error *err)
{
    uint32_t level = 1;
    bool quoted = false, escaped = false;
    c->json.bytes = 0;
    int byte, rc = keep(c, '{', err);
    while (!rc && level > 0) {
        rc = take(c, &byte, err);
        if (!rc && byte < 0) return error_at(c, err, "an object that begins here is never closed");
        if (!rc) rc = keep(c, byte, err);
        if (rc) return rc;
        if (quoted) {
            quoted = escaped || byte != '"';
            escaped = !escaped && byte == '\\';
        } else {
            quoted = byte == '"';
            if (byte == '{' || byte == '[') level++;
            else if (byte == '}' || byte == ']') level--;
            if (level > MOST_LEVELS) return error_at(c, err, "too many levels in an object");
        }
    }
    return rc;
}

/* The end of a list: nothing but blanks may follow. */
static int end_list(mri_csv *c, mr_error *err)
{
    int byte;
    const int rc = take_past_blanks(c, &byte, err);
    if (rc) return rc;
    c->json.ended = true;
    c->line = c->text.line;
    return byte < 0 ? MR_EEND : error_at(c, err, "something follows the list of objects");
}

/* \\u0000, whose backslash is not itself behind one. */
static bool has_nul(const char *text, size_t bytes)
{
    for (size_t at = 0; at + 6 <= bytes; at++) {
        if (text[at] != '\\') continue;
        if (memcmp(text + at, "\\u0000", 6) == 0) return true;
        at++;
    }
    return false;
}

/* MR_EEND: there is no further object. */
static int next_object(mri_csv *c, cJSON **out, mr_error *err)
{
    mri_json_rows *j = &c->json;
    int byte;
    if (j->ended) return MR_EEND;
    int rc = take_past_blanks(c, &byte, err);
    if (!rc && !j->begun && byte == '[') {
        j->list = true;
        rc = take_past_blanks(c, &byte, err);
    } else if (!rc && j->begun && j->list && byte == ',') {
        rc = take_past_blanks(c, &byte, err);
    } else if (!rc && j->begun && j->list && byte != ']') {
        return error_at(c, err,
                        byte < 0 ? "the list is not closed: is the end of the file missing?"
                                 : "expected a comma or the end of the list after an object");
    }
    j->begun = true;
    c->line = c->text.line;
    if (rc) return rc;
    if (byte == ']' && j->list) return end_list(c, err);
    if (byte < 0 && !j->list) return j->ended = true, MR_EEND;
    if (byte != '{') return error_at(c, err, "expected an object with a key for each column");
    rc = take_object(c, err);
    if (rc) return rc;
    bool no_memory;
    if (has_nul(j->text, j->bytes)) return error_at(c, err, "a NUL in a text");
    *out = mri_is_utf8(j->text, j->bytes) ? mri_json_parse(j->text, j->bytes, NULL, &no_memory)
                                          : (no_memory = false, NULL);
    if (*out) return MR_OK;
    return no_memory ? mr_error_set(err, MR_ENOMEM, "no memory for a row of a table")
                     : error_at(c, err, "this object is damaged, or no UTF-8");
}

/* ---- rows ---- */
static int put_value(mri_csv *c, const cJSON *value, mr_error *err)
{
    char text[64] = "";
    if (cJSON_IsString(value)) return mri_csv_put(c, value->valuestring, strlen(value->valuestring), err);
    if (cJSON_IsBool(value)) snprintf(text, sizeof text, "%s", cJSON_IsTrue(value) ? "true" : "false");
    if (cJSON_IsNumber(value)) {
        const double v = value->valuedouble;
        if (v == floor(v) && fabs(v) < 9007199254740992.0) snprintf(text, sizeof text, "%.0f", v);
        else if (v == floor(v)) c->json.large |= UINT64_C(1) << c->count; /* its last digits are lost */
        else snprintf(text, sizeof text, "%.17g", v);
    }
    if (cJSON_IsObject(value) || cJSON_IsArray(value)) c->json.nested |= UINT64_C(1) << c->count;
    return mri_csv_put(c, text, strlen(text), err);
}

static const char *key_at(const mri_json_rows *j, uint32_t at)
{
    const cJSON *member = j->first->child;
    while (at-- > 0) member = member->next;
    return member->string;
}

static int put_names(mri_csv *c, mr_error *err)
{
    int rc = MR_OK;
    for (const cJSON *m = c->json.first->child; !rc && m; m = m->next) {
        if (c->count == MRI_JSON_KEYS)
            return mri_text_error_at(&c->text, err, MR_ELIMIT, c->line, "JSON: more than %d keys",
                                     MRI_JSON_KEYS);
        rc = mri_csv_put(c, m->string, strlen(m->string), err);
    }
    c->json.key_count = c->count;
    return rc ? rc : c->count ? MR_OK : error_at(c, err, "an object without keys");
}

/* Keys of the first object in their order. Of a key that it lacks nothing is read, unless its name says that
 * it matters. */
static int put_values(mri_csv *c, const cJSON *object, mr_error *err)
{
    mri_json_rows *j = &c->json;
    int rc = MR_OK;
    for (const cJSON *m = object->child; m; m = m->next)
        if (cJSON_GetObjectItemCaseSensitive(j->first, m->string)) continue;
        else if (c->is_known && !c->is_known(m->string)) {
            if (!j->more[0]) mr_text_shown(m->string, j->more, sizeof j->more);
        } else
            return mri_text_error_at(&c->text, err, MR_EFORMAT, c->line,
                                     "JSON: key %.80s is not in the first object: write all keys into each",
                                     m->string);
    for (uint32_t k = 0; !rc && k < j->key_count; k++)
        rc = put_value(c, cJSON_GetObjectItemCaseSensitive(object, key_at(j, k)), err);
    return rc;
}

int mri_json_next(mri_csv *c, mr_error *err)
{
    mri_json_rows *j = &c->json;
    cJSON *object = NULL;
    c->count = 0;
    c->row_bytes = 0;
    j->nested = j->large = 0;
    if (!j->first) { /* a row of names, then its own */
        const int rc = next_object(c, &j->first, err);
        return rc ? rc : put_names(c, err);
    }
    if (!j->first_given) {
        j->first_given = true;
        return put_values(c, j->first, err);
    }
    int rc = next_object(c, &object, err);
    if (!rc) rc = put_values(c, object, err);
    cJSON_Delete(object);
    return rc;
}

void mri_json_fini(mri_json_rows *j)
{
    cJSON_Delete(j->first);
    free(j->text);
    *j = (mri_json_rows){0};
}
