/* formats/tar/tar_sums.c: checksums of members, as text: made and read. See tar_sums.h. */
#include "formats/tar/tar_sums.h"

#include <inttypes.h>
#include <stdio.h>

#include "base/util.h"
#include "millrace/formats.h"

static const char first_line[] = "millrace checksums 2\n";
enum { LINE_ROOM = 8 + 1 + 20 + 1 + 20 + 1 + 8 + 1, END_ROOM = 4 + 10 + 1 + 8 + 1 };

bool mri_tar_is_sums(const char *name)
{
    const size_t n = sizeof MRI_TAR_SUMS - 1;
    return strncmp(name, MRI_TAR_SUMS, n) == 0 && (name[n] == '/' || name[n] == '\0');
}

bool mri_tar_begins_as_sums(const void *data, size_t bytes)
{
    return bytes >= sizeof first_line - 1 && memcmp(data, first_line, sizeof first_line - 1) == 0;
}

uint32_t mri_tar_name_crc(const char *name) { return mr_crc32c(0, name, strlen(name)); }

/* ---- writing ---- */
int mri_tar_sums_add(mri_tar_sums *s, const char *name, uint64_t data, uint64_t bytes, uint32_t crc,
                     mr_error *err)
{
    if (s->count == s->cap) {
        const uint32_t cap = s->cap ? 2 * s->cap : 64;
        mri_tar_sum *more = realloc(s->sum, cap * sizeof *more);
        if (!more) return mr_error_set(err, MR_ENOMEM, "no memory for the checksums of an archive");
        s->sum = more;
        s->cap = cap;
    }
    s->sum[s->count++] = (mri_tar_sum){data, bytes, crc, mri_tar_name_crc(name)};
    return MR_OK;
}

bool mri_tar_sums_due(const mri_tar_sums *s) { return s->count >= MRI_TAR_SUMS_MEMBERS; }

uint64_t mri_tar_sums_bytes(const mri_tar_sums *s, uint32_t more)
{
    const uint64_t lines = (uint64_t)s->count + more;
    if (lines == 0) return 0;
    return MRI_TAR_BLOCK + mri_align_up(sizeof first_line + lines * LINE_ROOM + END_ROOM, MRI_TAR_BLOCK);
}

int mri_tar_sums_make(mri_tar_sums *s, uint64_t head, const char **text, size_t *bytes, mr_error *err)
{
    const size_t room = sizeof first_line + (size_t)s->count * LINE_ROOM + END_ROOM + 1;
    char *out = realloc(s->text, room);
    if (!out) return mr_error_set(err, MR_ENOMEM, "no memory for the checksums of an archive");
    s->text = out;
    size_t used = (size_t)snprintf(out, room, "%s", first_line);
    for (uint32_t k = 0; k < s->count; k++)
        used += (size_t)snprintf(out + used, room - used, "%08x %" PRIu64 " %" PRIu64 " %08x\n",
                                 s->sum[k].crc, head - s->sum[k].data, s->sum[k].bytes, s->sum[k].name_crc);
    const uint32_t crc = mr_crc32c(0, out, used);
    used += (size_t)snprintf(out + used, room - used, "end %u %08x\n", s->count, crc);
    snprintf(s->name, sizeof s->name, MRI_TAR_SUMS "/%06u", s->blocks++);
    s->count = 0;
    *text = out;
    *bytes = used;
    return MR_OK;
}

void mri_tar_sums_restart(mri_tar_sums *s) { s->count = s->blocks = 0; }

void mri_tar_sums_fini(mri_tar_sums *s)
{
    free(s->sum);
    free(s->text);
    *s = (mri_tar_sums){0};
}

/* ---- reading ---- */
static bool digits(const char **at, const char *end, uint64_t *out)
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

static bool hex(const char **at, const char *end, uint32_t *out)
{
    if (end - *at < 8) return false;
    *out = 0;
    for (int k = 0; k < 8; k++, ++*at) {
        const char c = **at;
        if (!((c >= '0' && c <= '9') || (c >= 'a' && c <= 'f'))) return false;
        *out = *out << 4 | (uint32_t)(c <= '9' ? c - '0' : c - 'a' + 10);
    }
    return true;
}

static bool is(const char **at, const char *end, char c) { return *at < end && *(*at)++ == c; }

static bool sum_line(const char **at, const char *end, uint64_t head, mri_tar_sum *out)
{
    uint64_t back;
    if (!hex(at, end, &out->crc) || !is(at, end, ' ') || !digits(at, end, &back) || !is(at, end, ' ') ||
        !digits(at, end, &out->bytes) || !is(at, end, ' ') || !hex(at, end, &out->name_crc) ||
        !is(at, end, '\n'))
        return false;
    if (back > head || out->bytes > back) return false;
    out->data = head - back;
    return true;
}

static bool end_line(const char *at, const char *text, const char *end, uint64_t lines)
{
    const char *p = at;
    uint64_t count;
    uint32_t crc;
    return end - p > 4 && memcmp(p, "end ", 4) == 0 && (p += 4, digits(&p, end, &count)) &&
           is(&p, end, ' ') && hex(&p, end, &crc) && is(&p, end, '\n') && p == end && count == lines &&
           crc == mr_crc32c(0, text, (size_t)(at - text));
}

int mri_tar_sums_begin(mri_tar_sums_walk *w, const void *text, size_t bytes, uint64_t head, mr_error *err)
{
    const char *first = text, *end = first + bytes, *at = first + sizeof first_line - 1;
    uint32_t lines = 0;
    mri_tar_sum unused;
    const bool ours = mri_tar_begins_as_sums(text, bytes);
    *w = (mri_tar_sums_walk){.at = at, .end = end, .head = head};
    /* "end " is no checksum: n is no digit of one */
    while (ours && at < end && !(end - at > 1 && at[1] == 'n') && sum_line(&at, end, head, &unused)) lines++;
    w->left = lines;
    if (ours && at < end && end_line(at, first, end, lines)) return MR_OK;
    if (bytes >= sizeof first_line - 1 && memcmp(first, "millrace checksums 1\n", sizeof first_line - 1) == 0)
        return mr_error_set(err, MR_EUNSUPPORTED, "the checksums of the archive have no names of members");
    return mr_error_set(err, MR_EFORMAT,
                        "a member of checksums (" MRI_TAR_SUMS
                        ") is damaged, or is not one: its files cannot be checked");
}

bool mri_tar_sums_next(mri_tar_sums_walk *w, mri_tar_sum *out)
{
    if (w->left == 0) return false;
    w->left--;
    return sum_line(&w->at, w->end, w->head, out);
}
