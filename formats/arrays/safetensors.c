/* formats/arrays/safetensors.c: see safetensors.h. */
#include "formats/arrays/safetensors.h"

#include <stdio.h>
#include <stdlib.h>

#include "base/util.h"

#define METADATA "__metadata__"

bool mri_is_safetensors(const uint8_t *head, size_t bytes, uint64_t file_bytes)
{
    if (bytes < MRI_SAFETENSORS_LENGTH_BYTES + 1 || head[MRI_SAFETENSORS_LENGTH_BYTES] != '{') return false;
    const uint64_t length = mri_le64(head);
    return length >= 2 && length <= MRI_SAFETENSORS_MOST_HEADER &&
           length <= file_bytes - MRI_SAFETENSORS_LENGTH_BYTES;
}

/* Bytes of an element of a type by its name; 0: not known. */
static uint32_t safetensors_element_bytes(const char *dtype)
{
    static const struct {
        const char *name;
        uint32_t bytes;
    } known[] = {{"BOOL", 1}, {"U8", 1},  {"I8", 1},  {"F8_E5M2", 1}, {"F8_E4M3", 1},
                 {"I16", 2},  {"U16", 2}, {"F16", 2}, {"BF16", 2},    {"I32", 4},
                 {"U32", 4},  {"F32", 4}, {"F64", 8}, {"I64", 8},     {"U64", 8}};
    for (size_t i = 0; i < MRI_ARRAY_COUNT(known); i++)
        if (strcmp(known[i].name, dtype) == 0) return known[i].bytes;
    return 0;
}

typedef struct reading {
    const char *begin, *at, *end;
    mri_safetensors *out;
    uint32_t room; /* of out->tensor */
    mr_error *err;
} reading;

/* ---- pieces of JSON ---- */

static int wrong_at(const reading *r, const char *at, int code, const char *expected)
{
    char shown[24];
    size_t n = 0;
    for (; at + n < r->end && n < sizeof shown - 1; n++)
        shown[n] = (unsigned char)at[n] < ' ' || (unsigned char)at[n] > '~' ? '?' : at[n];
    shown[n] = '\0';
    mr_error_set(r->err, code, "safetensors header: expected %s, found %s", expected, n ? shown : "its end");
    mr_error_at(r->err, NULL, MRI_SAFETENSORS_LENGTH_BYTES + (uint64_t)(at - r->begin), MR_NOWHERE);
    return code;
}

static int wrong(const reading *r, const char *expected) { return wrong_at(r, r->at, MR_EFORMAT, expected); }

static void skip_spaces(reading *r)
{
    while (r->at < r->end && (*r->at == ' ' || *r->at == '\t' || *r->at == '\n' || *r->at == '\r')) r->at++;
}

static bool take(reading *r, char c)
{
    skip_spaces(r);
    if (r->at == r->end || *r->at != c) return false;
    r->at++;
    return true;
}

static int hex_of(char c)
{
    if (c >= '0' && c <= '9') return c - '0';
    if (c >= 'a' && c <= 'f') return c - 'a' + 10;
    return c >= 'A' && c <= 'F' ? c - 'A' + 10 : -1;
}

/* Behind "\u". */
static bool take_unit(reading *r, uint32_t *out)
{
    *out = 0;
    if (r->end - r->at < 4) return false;
    for (int i = 0; i < 4; i++) {
        const int digit = hex_of(r->at[i]);
        if (digit < 0) return false;
        *out = *out << 4 | (uint32_t)digit;
    }
    r->at += 4;
    return true;
}

/* A character as UTF-8; it is never longer than its escape was. */
static size_t put_utf8(uint32_t c, char *out)
{
    if (c < 0x80) return out[0] = (char)c, 1;
    if (c < 0x800) return out[0] = (char)(0xC0 | c >> 6), out[1] = (char)(0x80 | (c & 63)), 2;
    const bool wide = c >= 0x10000;
    size_t n = 0;
    if (wide) out[n++] = (char)(0xF0 | c >> 18), out[n++] = (char)(0x80 | (c >> 12 & 63));
    else out[n++] = (char)(0xE0 | c >> 12);
    out[n++] = (char)(0x80 | (c >> 6 & 63));
    out[n++] = (char)(0x80 | (c & 63));
    return n;
}

/* Read the escape after a backslash. false: not a JSON escape, or half of a surrogate pair. */
static bool take_escape(reading *r, char *out, size_t *n)
{
    static const char names[] = "\"\\/bfnrt", meant[] = "\"\\/\b\f\n\r\t";
    uint32_t c, low;
    if (r->at == r->end) return false;
    const char kind = *r->at++;
    const char *found = kind ? strchr(names, kind) : NULL;
    if (found) return out[(*n)++] = meant[found - names], true;
    if (kind != 'u' || !take_unit(r, &c) || (c >= 0xDC00 && c < 0xE000)) return false;
    if (c >= 0xD800 && c < 0xDC00) {
        if (r->end - r->at < 2 || r->at[0] != '\\' || r->at[1] != 'u') return false;
        r->at += 2;
        if (!take_unit(r, &low) || low < 0xDC00 || low >= 0xE000) return false;
        c = 0x10000 + ((c - 0xD800) << 10) + (low - 0xDC00);
    }
    *n += put_utf8(c, out + *n);
    return true;
}

/* A string, to be freed. NULL with *rc set. */
static char *take_string(reading *r, int *rc)
{
    skip_spaces(r);
    const char *first = r->at;
    *rc = MR_OK;
    if (!take(r, '"')) return *rc = wrong(r, "a string"), NULL;
    const char *close = r->at;
    while (close < r->end && *close != '"') close += *close == '\\' && r->end - close > 1 ? 2 : 1;
    if (close >= r->end) return *rc = wrong_at(r, first, MR_EFORMAT, "a string that ends"), NULL;
    char *text = malloc((size_t)(close - r->at) + 1);
    size_t n = 0;
    if (!text) return *rc = mr_error_set(r->err, MR_ENOMEM, "no memory for a name"), NULL;
    bool fine = true;
    while (fine && r->at < close) {
        const char c = *r->at++;
        fine = (unsigned char)c >= ' ';
        if (c == '\\') fine = take_escape(r, text, &n);
        else text[n++] = c;
    }
    text[n] = '\0';
    if (fine && r->at == close) return r->at++, text;
    free(text);
    return *rc = wrong_at(r, first, MR_EFORMAT, "a string of JSON"), NULL;
}

static bool has_controls(const char *text, size_t bytes)
{
    for (size_t i = 0; i < bytes; i++)
        if ((unsigned char)text[i] < ' ' || text[i] == 127) return true;
    return false;
}

static int take_number(reading *r, uint64_t *out)
{
    skip_spaces(r);
    const char *first = r->at;
    *out = 0;
    for (; r->at < r->end && *r->at >= '0' && *r->at <= '9'; r->at++)
        if (__builtin_mul_overflow(*out, 10, out) ||
            __builtin_add_overflow(*out, (uint64_t)(*r->at - '0'), out))
            return wrong_at(r, first, MR_EFORMAT, "a whole number of 64 bits");
    if (r->at == first || (*first == '0' && r->at - first > 1))
        return wrong_at(r, first, MR_EFORMAT, "a whole number");
    if (r->at < r->end && (*r->at == '.' || *r->at == 'e' || *r->at == 'E'))
        return wrong_at(r, first, MR_EFORMAT, "a whole number");
    return MR_OK;
}

/* [1, 2, 3]; *count may be up to `most`. */
static int take_numbers(reading *r, uint64_t *out, uint32_t most, uint32_t *count, const char *expected)
{
    *count = 0;
    if (!take(r, '[')) return wrong(r, "[");
    if (take(r, ']')) return MR_OK;
    do {
        if (*count == most) return wrong(r, expected);
        const int rc = take_number(r, &out[*count]);
        if (rc) return rc;
        ++*count;
    } while (take(r, ','));
    return take(r, ']') ? MR_OK : wrong(r, "] or a comma");
}

/* ---- the header ---- */

static int take_metadata(reading *r)
{
    int rc;
    if (!take(r, '{')) return wrong(r, "an object of texts");
    if (take(r, '}')) return MR_OK;
    do {
        free(take_string(r, &rc));
        if (rc) return rc;
        if (!take(r, ':')) return wrong(r, ":");
        free(take_string(r, &rc));
        if (rc) return rc;
    } while (take(r, ','));
    return take(r, '}') ? MR_OK : wrong(r, "} or a comma");
}

enum { SEEN_DTYPE = 1, SEEN_SHAPE = 2, SEEN_OFFSETS = 4, SEEN_ALL = 7 };

static int take_dtype(reading *r, mri_safetensor *t)
{
    int rc;
    skip_spaces(r);
    const char *first = r->at;
    char *dtype = take_string(r, &rc);
    if (rc) return rc;
    const size_t n = strlen(dtype);
    const bool fits = n > 0 && n < sizeof t->dtype && !has_controls(dtype, n);
    if (fits) memcpy(t->dtype, dtype, n + 1);
    free(dtype);
    return fits ? MR_OK : wrong_at(r, first, MR_EFORMAT, "a type such as F32");
}

static int take_item(reading *r, mri_safetensor *t, unsigned *seen)
{
    int rc;
    uint32_t count;
    uint64_t offsets[2];
    skip_spaces(r);
    const char *first = r->at;
    char *key = take_string(r, &rc);
    if (rc) return rc;
    const unsigned which = strcmp(key, "dtype") == 0          ? SEEN_DTYPE
                           : strcmp(key, "shape") == 0        ? SEEN_SHAPE
                           : strcmp(key, "data_offsets") == 0 ? SEEN_OFFSETS
                                                              : 0;
    free(key);
    if (!which || *seen & which)
        return wrong_at(r, first, MR_EFORMAT, "dtype, shape and data_offsets, each once");
    *seen |= which;
    if (!take(r, ':')) return wrong(r, ":");
    if (which == SEEN_DTYPE) return take_dtype(r, t);
    if (which == SEEN_SHAPE)
        return take_numbers(r, t->dim, MRI_ARRAY_COUNT(t->dim), &t->ndim, "at most 8 dimensions");
    rc = take_numbers(r, offsets, 2, &count, "two offsets");
    if (rc == MR_OK && count != 2) rc = wrong(r, "two offsets before this");
    if (rc == MR_OK) t->begin = offsets[0], t->end = offsets[1];
    return rc;
}

/* Bytes that type and shape come to, against the offsets. */
static int check_tensor(const reading *r, mri_safetensor *t, const char *at, uint64_t data_bytes)
{
    uint64_t bytes = safetensors_element_bytes(t->dtype);
    t->element_bytes = (uint32_t)bytes;
    bool fits = true;
    for (uint32_t d = 0; d < t->ndim; d++) fits = fits && !__builtin_mul_overflow(bytes, t->dim[d], &bytes);
    if (t->begin > t->end || t->end > data_bytes) {
        mr_error_set(r->err, MR_EFORMAT,
                     "safetensors header: tensor %.200s lies at %llu to %llu: expected within the "
                     "%llu bytes after the header",
                     t->name, (unsigned long long)t->begin, (unsigned long long)t->end,
                     (unsigned long long)data_bytes);
    } else if (t->element_bytes && (!fits || bytes != t->end - t->begin)) {
        mr_error_set(
            r->err, MR_EFORMAT,
            "safetensors header: tensor %.200s: its type and shape come to %llu bytes, its offsets to %llu",
            t->name, fits ? (unsigned long long)bytes : ~0ull, (unsigned long long)(t->end - t->begin));
    } else {
        return MR_OK;
    }
    mr_error_at(r->err, NULL, MRI_SAFETENSORS_LENGTH_BYTES + (uint64_t)(at - r->begin), MR_NOWHERE);
    return MR_EFORMAT;
}

/* Read the object after a name; the list takes ownership of the name. */
static int take_tensor(reading *r, char *name, const char *at, uint64_t data_bytes)
{
    mri_safetensors *s = r->out;
    unsigned seen = 0;
    if (s->count == r->room) {
        const uint32_t room = r->room ? 2 * r->room : 16;
        mri_safetensor *more = realloc(s->tensor, room * sizeof *more);
        if (!more) {
            free(name);
            return mr_error_set(r->err, MR_ENOMEM, "no memory for a list of %u tensors", room);
        }
        s->tensor = more, r->room = room;
    }
    mri_safetensor *t = &s->tensor[s->count++];
    *t = (mri_safetensor){.name = name};
    if (has_controls(name, strlen(name)))
        return wrong_at(r, at, MR_EFORMAT, "a name without control characters");
    if (s->count > MRI_SAFETENSORS_MOST_TENSORS) return wrong_at(r, at, MR_ELIMIT, "at most 65536 tensors");
    if (!take(r, '{')) return wrong(r, "{");
    do {
        const int rc = take_item(r, t, &seen);
        if (rc) return rc;
    } while (take(r, ','));
    if (!take(r, '}')) return wrong(r, "} or a comma");
    if (seen != SEEN_ALL) return wrong_at(r, at, MR_EFORMAT, "a tensor with dtype, shape and data_offsets");
    return check_tensor(r, t, at, data_bytes);
}

static int take_all(reading *r, uint64_t data_bytes)
{
    bool metadata = false;
    int rc;
    if (!take(r, '{')) return wrong(r, "{");
    if (take(r, '}')) return MR_OK;
    do {
        skip_spaces(r);
        const char *at = r->at;
        char *name = take_string(r, &rc);
        if (rc) return rc;
        const bool is_metadata = strcmp(name, METADATA) == 0;
        if (!take(r, ':')) rc = wrong(r, ":");
        else if (is_metadata && metadata) rc = wrong_at(r, at, MR_EFORMAT, "__metadata__ once");
        if (rc || is_metadata) free(name);
        if (rc == MR_OK) rc = is_metadata ? take_metadata(r) : take_tensor(r, name, at, data_bytes);
        metadata = metadata || is_metadata;
        if (rc) return rc;
    } while (take(r, ','));
    return take(r, '}') ? MR_OK : wrong(r, "} or a comma");
}

/* ---- all of them together ---- */

static int by_name(const void *a, const void *b)
{
    return strcmp(((const mri_safetensor *)a)->name, ((const mri_safetensor *)b)->name);
}

static int by_place(const void *a, const void *b)
{
    const mri_safetensor *x = a, *y = b;
    return x->begin != y->begin ? (x->begin > y->begin) - (x->begin < y->begin)
           : x->end != y->end   ? (x->end > y->end) - (x->end < y->end)
                                : by_name(a, b);
}

static int check_together(mri_safetensors *s, uint64_t data_bytes, mr_error *err)
{
    uint64_t at = 0;
    if (s->count) qsort(s->tensor, s->count, sizeof *s->tensor, by_name);
    for (uint32_t i = 1; i < s->count; i++)
        if (by_name(&s->tensor[i - 1], &s->tensor[i]) == 0)
            return mr_error_set(err, MR_EFORMAT, "safetensors header: two tensors named %.200s",
                                s->tensor[i].name);
    if (s->count) qsort(s->tensor, s->count, sizeof *s->tensor, by_place);
    for (uint32_t i = 0; i < s->count; at = s->tensor[i++].end)
        if (s->tensor[i].begin != at)
            return mr_error_set(
                err, MR_EFORMAT,
                "safetensors header: tensor %.200s begins at %llu: expected %llu, where the one before ends",
                s->tensor[i].name, (unsigned long long)s->tensor[i].begin, (unsigned long long)at);
    if (at == data_bytes) return MR_OK;
    return mr_error_set(
        err, MR_EFORMAT,
        "safetensors file: its tensors take %llu bytes after the header, found %llu; the file is "
        "cut, or something was appended to it",
        (unsigned long long)at, (unsigned long long)data_bytes);
}

int mri_safetensors_parse(const char *text, size_t bytes, uint64_t data_bytes, mri_safetensors *out,
                          mr_error *err)
{
    *out = (mri_safetensors){0};
    reading r = {.begin = text, .at = text, .end = text + bytes, .out = out, .err = err};
    int rc = take_all(&r, data_bytes);
    skip_spaces(&r);
    if (rc == MR_OK && r.at != r.end) rc = wrong(&r, "nothing after the object");
    if (rc == MR_OK) rc = check_together(out, data_bytes, err);
    if (rc) mri_safetensors_free(out);
    return rc;
}

void mri_safetensors_free(mri_safetensors *s)
{
    for (uint32_t i = 0; i < s->count; i++) free(s->tensor[i].name);
    free(s->tensor);
    *s = (mri_safetensors){0};
}
