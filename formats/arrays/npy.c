/* formats/arrays/npy.c: see npy.h. */
#include "formats/arrays/npy.h"

#include <stdio.h>

#include "base/util.h"

enum { PREAMBLE = 10 }; /* of version 1; 12 of the others */

bool mri_is_npy(const void *head, size_t bytes)
{
    return bytes >= PREAMBLE && memcmp(head, "\x93NUMPY", 6) == 0;
}

typedef struct literal { /* text being read */
    const char *begin, *at, *end;
    uint32_t first; /* offset of begin in the file */
    mr_error *err;
} literal;

static int wrong(const literal *l, int code, const char *what)
{
    char shown[24];
    snprintf(shown, sizeof shown, "%.*s", (int)mri_min_u64((uint64_t)(l->end - l->at), sizeof shown - 1),
             l->at);
    mr_error_set(l->err, code, "NPY header: %s, found %s", what, l->at < l->end ? shown : "its end");
    mr_error_at(l->err, NULL, l->first + (uint64_t)(l->at - l->begin), MR_NOWHERE);
    return code;
}

static void skip_spaces(literal *l)
{
    while (l->at < l->end && (*l->at == ' ' || *l->at == '\t' || *l->at == '\n')) l->at++;
}

static bool take(literal *l, char c)
{
    skip_spaces(l);
    if (l->at == l->end || *l->at != c) return false;
    l->at++;
    return true;
}

static bool take_word(literal *l, const char *word)
{
    const size_t n = strlen(word);
    skip_spaces(l);
    if ((size_t)(l->end - l->at) < n || memcmp(l->at, word, n) != 0) return false;
    l->at += n;
    return true;
}

/* A string without escapes, in either quotes. */
static int take_string(literal *l, char *out, size_t room)
{
    skip_spaces(l);
    if (l->at == l->end || (*l->at != '\'' && *l->at != '"'))
        return wrong(l, MR_EFORMAT, "expected a string");
    const char *text = l->at + 1;
    const char *close = memchr(text, *l->at, (size_t)(l->end - text));
    const size_t n = close ? (size_t)(close - text) : 0;
    if (!close || n >= room || memchr(text, '\\', n) || memchr(text, '\0', n))
        return wrong(l, MR_EFORMAT, "expected a short string without escapes");
    memcpy(out, text, n);
    out[n] = '\0';
    l->at = close + 1;
    return MR_OK;
}

static int take_number(literal *l, uint64_t *out)
{
    skip_spaces(l);
    *out = 0;
    const char *first = l->at;
    for (; l->at < l->end && *l->at >= '0' && *l->at <= '9'; l->at++)
        if (__builtin_mul_overflow(*out, 10, out) ||
            __builtin_add_overflow(*out, (uint64_t)(*l->at - '0'), out))
            return wrong(l, MR_EFORMAT, "expected a dimension that fits 64 bits");
    if (l->at == first) return wrong(l, MR_EFORMAT, "expected a dimension");
    if (l->at < l->end && *l->at == 'L') l->at++; /* Python 2 wrote 3L */
    return MR_OK;
}

/* '<f4', '|u1', '>i8', '|b1', ... */
static int take_descr(literal *l, mri_npy *a)
{
    skip_spaces(l);
    if (l->at < l->end && *l->at == '[')
        return wrong(l, MR_EUNSUPPORTED, "structured arrays are not read: save one field of it");
    const int rc = take_string(l, a->descr, sizeof a->descr);
    if (rc) return rc;
    const char *d = a->descr;
    if (!strchr("<>|=", d[0]) || !d[0] || !d[1])
        return wrong(l, MR_EFORMAT, "expected a type such as '<f4' before this");
    if (d[1] == 'O')
        return wrong(l, MR_EUNSUPPORTED,
                     "arrays of Python objects would have to be unpickled, which runs code: "
                     "save numbers; the type stands before this");
    if (!strchr("biufcSUVmM?", d[1]))
        return wrong(l, MR_EFORMAT, "expected a type such as '<f4' before this");
    unsigned bytes = 0;
    int used = 0;
    if (strlen(d) < 3 || d[2] < '0' || d[2] > '9' || sscanf(d + 2, "%7u%n", &bytes, &used) != 1 ||
        bytes == 0 || (d[2 + used] && !strchr("mM", d[1])))
        return wrong(l, MR_EFORMAT, "expected a type such as '<f4' before this");
    a->kind = d[1];
    a->element_bytes = a->kind == 'U' ? 4 * bytes : bytes;
    a->swapped = d[0] == '>' && a->element_bytes > 1;
    const bool possible = a->kind == 'b' ? bytes == 1
                          : a->kind == 'f'
                              ? bytes == 2 || bytes == 4 || bytes == 8 || bytes == 12 || bytes == 16
                          : strchr("iu", a->kind) ? bytes == 1 || bytes == 2 || bytes == 4 || bytes == 8
                                                  : true;
    return possible ? MR_OK
                    : wrong(l, MR_EFORMAT, "expected a size that elements of this kind have before this");
}

static int take_order(literal *l, mri_npy *a)
{
    a->fortran = take_word(l, "True");
    return a->fortran || take_word(l, "False") ? MR_OK : wrong(l, MR_EFORMAT, "expected True or False");
}

static int take_shape(literal *l, mri_npy *a)
{
    if (!take(l, '(')) return wrong(l, MR_EFORMAT, "expected ( of the shape");
    while (!take(l, ')')) {
        if (a->ndim == MR_MAX_DIMS) return wrong(l, MR_EUNSUPPORTED, "expected at most 8 dimensions");
        const int rc = take_number(l, &a->dim[a->ndim]);
        if (rc) return rc;
        a->ndim++;
        if (take(l, ',')) continue;
        if (take(l, ')') && a->ndim > 1) return MR_OK; /* (3) is a number in brackets, no shape */
        return wrong(l, MR_EFORMAT, "expected a comma after a dimension");
    }
    return MR_OK;
}

static int take_item(literal *l, mri_npy *a, unsigned *seen)
{
    static const char *const keys[] = {"descr", "fortran_order", "shape"};
    static int (*const consumers[])(literal *, mri_npy *) = {take_descr, take_order, take_shape};
    char key[24];
    int rc = take_string(l, key, sizeof key);
    if (rc) return rc;
    if (!take(l, ':')) return wrong(l, MR_EFORMAT, "expected : after a key");
    for (unsigned k = 0; k < MRI_ARRAY_COUNT(keys); k++) {
        if (strcmp(key, keys[k]) != 0) continue;
        if (*seen & 1u << k) return wrong(l, MR_EFORMAT, "a key comes twice");
        *seen |= 1u << k;
        return consumers[k](l, a);
    }
    return wrong(l, MR_EFORMAT, "expected only the keys descr, fortran_order and shape");
}

static int take_dictionary(literal *l, mri_npy *a)
{
    unsigned seen = 0;
    if (!take(l, '{')) return wrong(l, MR_EFORMAT, "expected {");
    while (!take(l, '}')) {
        const int rc = take_item(l, a, &seen);
        if (rc) return rc;
        if (take(l, ',')) continue;
        if (take(l, '}')) break;
        return wrong(l, MR_EFORMAT, "expected , or }");
    }
    if (seen != 7) return wrong(l, MR_EFORMAT, "descr, fortran_order or shape is missing");
    skip_spaces(l);
    return l->at == l->end ? MR_OK : wrong(l, MR_EFORMAT, "expected nothing after the dictionary");
}

static int check_size(mri_npy *a, uint64_t file_bytes, mr_error *err)
{
    uint64_t bytes = a->element_bytes;
    a->count = 1;
    uint32_t wide = 0;
    for (uint32_t k = 0; k < a->ndim; k++) {
        wide += a->dim[k] > 1;
        if (__builtin_mul_overflow(bytes, a->dim[k], &bytes) || bytes > INT64_MAX / 2)
            return mr_error_set(err, MR_EFORMAT, "the NPY shape has more elements than any file can hold");
        a->count *= a->dim[k];
    }
    a->fortran &= wide > 1;
    if (file_bytes == a->header_bytes + bytes) return MR_OK;
    char text[160];
    return mr_error_set(err, MR_EFORMAT,
                        "the NPY header speaks of %s, which is %llu bytes with it; found %llu",
                        mri_npy_text(a, text, sizeof text), (unsigned long long)(a->header_bytes + bytes),
                        (unsigned long long)file_bytes);
}

int mri_npy_parse(const void *head, size_t bytes, uint64_t file_bytes, mri_npy *out, mr_error *err)
{
    const uint8_t *p = head;
    *out = (mri_npy){0};
    if (!mri_is_npy(head, bytes))
        return mr_error_set(err, MR_EFORMAT, "no NPY file: expected 93 \"NUMPY\" at its beginning");
    if (p[6] < 1 || p[6] > 3 || p[7] != 0)
        return mr_error_set(err, MR_EUNSUPPORTED, "NPY version %u.%u: expected 1.0, 2.0 or 3.0", p[6], p[7]);
    const uint32_t before = p[6] == 1 ? PREAMBLE : PREAMBLE + 2;
    if (bytes < before) return mr_error_set(err, MR_EFORMAT, "the file ends inside its NPY header");
    const uint32_t length = p[6] == 1 ? mri_le16(p + 8) : mri_le32(p + 8);
    if (length > MRI_NPY_HEAD_BYTES - before)
        return mr_error_set(err, MR_ELIMIT, "an NPY header of %u bytes: expected at most %u", length,
                            MRI_NPY_HEAD_BYTES - before);
    if (length > bytes - before)
        return mr_error_set(err, MR_EFORMAT, "the file ends inside its NPY header of %u bytes", length);
    const char *text = (const char *)p + before;
    literal l = {text, text, text + length, before, err};
    const int rc = take_dictionary(&l, out);
    if (rc) return rc;
    out->header_bytes = before + length;
    return check_size(out, file_bytes, err);
}

/* ---- elements ---- */
bool mri_npy_is_integer(const mri_npy *a) { return a->kind == 'i' || a->kind == 'u' || a->kind == 'b'; }

mr_dtype mri_npy_dtype(const mri_npy *a)
{
    if (a->kind == 'b' || (a->kind == 'u' && a->element_bytes == 1)) return MR_U8;
    if (a->kind == 'i')
        return a->element_bytes == 1   ? MR_I8
               : a->element_bytes == 2 ? MR_I16
               : a->element_bytes == 4 ? MR_I32
                                       : MR_I64;
    if (a->kind == 'f')
        return a->element_bytes == 2   ? MR_F16
               : a->element_bytes == 4 ? MR_F32
               : a->element_bytes == 8 ? MR_F64
                                       : (mr_dtype)0;
    return (mr_dtype)0;
}

bool mri_npy_integer(const mri_npy *a, const void *p, int64_t *out)
{
    const uint8_t *b = p;
    uint64_t v = 0;
    for (uint32_t k = 0; k < a->element_bytes; k++) v = v << 8 | b[a->swapped ? k : a->element_bytes - 1 - k];
    const unsigned spare = 64 - 8 * a->element_bytes;
    *out = a->kind == 'i' ? (int64_t)(v << spare) >> spare : (int64_t)v;
    return a->kind == 'i' || v <= INT64_MAX;
}

const char *mri_npy_text(const mri_npy *a, char *buf, size_t buf_bytes)
{
    size_t at = 0;
    buf[0] = '\0';
    for (uint32_t k = 0; k < a->ndim && at < buf_bytes; k++)
        at += (size_t)snprintf(buf + at, buf_bytes - at, "%s%llu", k ? " x " : "",
                               (unsigned long long)a->dim[k]);
    if (at < buf_bytes)
        snprintf(buf + at, buf_bytes - at, "%s of %s", a->ndim ? "" : "one element", a->descr);
    return buf;
}
