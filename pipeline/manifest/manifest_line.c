/* pipeline/manifest/manifest_line.c: one line of a manifest, read and written. See manifest.h. Any bytes are
 * safe. */
#include <inttypes.h>
#include <stdio.h>
#include <string.h>

#include "pipeline/manifest/manifest.h"

static bool begins(const char **at, const char *end, const char *text)
{
    const size_t n = strlen(text);
    if ((size_t)(end - *at) < n || memcmp(*at, text, n) != 0) return false;
    *at += n;
    return true;
}

static bool number(const char **at, const char *end, uint64_t *out)
{
    const char *p = *at;
    *out = 0;
    for (; p < end && *p >= '0' && *p <= '9'; p++)
        if (__builtin_mul_overflow(*out, 10, out) || __builtin_add_overflow(*out, (uint64_t)(*p - '0'), out))
            return false;
    const bool any = p > *at;
    *at = p;
    return any;
}

static mri_manifest_kind comment(const char *at, const char *end, mri_manifest_line *out)
{
    const char *p = at;
    if (begins(&p, end, "# millrace manifest 1") && p == end) return MRI_MANIFEST_HEAD;
    p = at;
    if (begins(&p, end, "# end ") && number(&p, end, &out->files) && begins(&p, end, " files ") &&
        number(&p, end, &out->bytes) && begins(&p, end, " bytes") && p == end)
        return MRI_MANIFEST_END;
    p = at;
    if (begins(&p, end, "# ") && number(&p, end, &out->bytes) && p == end) return MRI_MANIFEST_SIZE;
    return MRI_MANIFEST_COMMENT;
}

static int digit(char c)
{
    if (c >= '0' && c <= '9') return c - '0';
    if (c >= 'a' && c <= 'f') return c - 'a' + 10;
    return c >= 'A' && c <= 'F' ? c - 'A' + 10 : -1;
}

/* Escaped: \\ and \n are one byte. */
static bool name_of(const char *at, const char *end, bool escaped, char out[MRI_MANIFEST_NAME])
{
    size_t n = 0;
    for (; at < end; at++) {
        char c = *at;
        if (c == '\0' || n + 1 >= MRI_MANIFEST_NAME) return false;
        if (escaped && c == '\\') {
            if (++at == end || (*at != 'n' && *at != '\\' && *at != 'r')) return false;
            c = *at == 'n' ? '\n' : *at == 'r' ? '\r' : '\\';
        }
        out[n++] = c;
    }
    out[n] = '\0';
    return n > 0;
}

mri_manifest_kind mri_manifest_parse_line(const char *line, size_t bytes, mri_manifest_line *out)
{
    const char *at = line, *end = line + bytes;
    *out = (mri_manifest_line){0};
    if (bytes == 0) return out->kind = MRI_MANIFEST_COMMENT;
    if (*at == '#') return out->kind = comment(at, end, out);
    const bool escaped = *at == '\\';
    at += escaped;
    if (end - at < 2 * MRI_SHA256_BYTES + 3) return MRI_MANIFEST_WRONG;
    for (int k = 0; k < MRI_SHA256_BYTES; k++) {
        const int high = digit(at[2 * k]), low = digit(at[2 * k + 1]);
        if (high < 0 || low < 0) return MRI_MANIFEST_WRONG;
        out->sum[k] = (uint8_t)(high << 4 | low);
    }
    at += 2 * MRI_SHA256_BYTES;
    if (at[0] != ' ' || (at[1] != ' ' && at[1] != '*'))
        return MRI_MANIFEST_WRONG; /* a star: of binary mode */
    if (!name_of(at + 2, end, escaped, out->name)) return MRI_MANIFEST_WRONG;
    return out->kind = MRI_MANIFEST_FILE;
}

size_t mri_manifest_format_line(const uint8_t sum[MRI_SHA256_BYTES], const char *name, char *out)
{
    const bool escaped = strpbrk(name, "\n\r\\") != NULL;
    char *at = out;
    if (escaped) *at++ = '\\';
    for (int k = 0; k < MRI_SHA256_BYTES; k++) at += sprintf(at, "%02x", sum[k]);
    *at++ = ' ';
    *at++ = ' ';
    for (const char *p = name; *p; p++) {
        const char *special = escaped ? strchr("\n\r\\", *p) : NULL;
        if (special) *at++ = '\\';
        *at++ = !special ? *p : *p == '\n' ? 'n' : *p == '\r' ? 'r' : '\\';
    }
    *at++ = '\n';
    return (size_t)(at - out);
}
