/* formats/folder/members_rar.c: has a rar archive its end mark, and is it one volume of several? libarchive
 * says neither: an archive that was cut between two files would be a smaller one.
 *
 *   RAR 4   signature 7 | blocks: crc 2, type 1, flags 2, size 2, [data 4, if flags & 0x8000] ...
 *   RAR 5   signature 8 | blocks: crc 4, size, type, flags, [extra, if flags & 1], [data, if flags & 2] ...
 *           numbers of seven bits a byte, the lowest first */
#include "base/util.h"
#include "formats/folder/members_pack.h"

enum { LOOK = 64, SHORT_HEAD = 7 };

typedef struct block {
    unsigned type;
    uint64_t flags; /* of an end or a main block: its own */
    uint64_t bytes; /* with its data */
} block;

static bool number(const uint8_t **p, const uint8_t *end, uint64_t *out)
{
    *out = 0;
    for (unsigned shift = 0; *p < end && shift < 63; shift += 7) {
        const uint8_t one = *(*p)++;
        *out |= (uint64_t)(one & 0x7f) << shift;
        if (!(one & 0x80)) return true;
    }
    return false;
}

static uint64_t little(const uint8_t *p, unsigned bytes)
{
    uint64_t v = 0;
    for (unsigned k = bytes; k-- > 0;) v = v << 8 | p[k];
    return v;
}

static bool block_4(const uint8_t *p, size_t n, block *b)
{
    if (n < SHORT_HEAD) return false;
    const uint64_t head = little(p + 5, 2);
    *b = (block){.type = p[2], .flags = little(p + 3, 2), .bytes = head};
    if (head < SHORT_HEAD) return false;
    if (b->flags & 0x8000 || b->type == 0x74) {
        if (n < SHORT_HEAD + 4) return false;
        b->bytes += little(p + SHORT_HEAD, 4);
    }
    if (b->type == 0x74 && b->flags & 0x100) { /* the upper half of the size */
        if (n < 36) return false;
        if (little(p + 32, 4) >= UINT32_MAX / 2)
            return false; /* no file is that large, and the sum would wrap */
        b->bytes += little(p + 32, 4) << 32;
    }
    return true;
}

static bool block_5(const uint8_t *p, size_t n, block *b)
{
    const uint8_t *at = p + 4, *end = p + n;
    uint64_t head, type, flags, extra, data = 0;
    if (n < 4 || !number(&at, end, &head)) return false;
    const uint64_t before = (uint64_t)(at - p);
    if (!number(&at, end, &type) || !number(&at, end, &flags)) return false;
    if (flags & 1 && !number(&at, end, &extra)) return false;
    if (flags & 2 && !number(&at, end, &data)) return false;
    *b = (block){.type = (unsigned)type};
    if ((type == 1 || type == 5) && !number(&at, end, &b->flags)) return false;
    if (head > INT64_MAX / 4 || data > INT64_MAX / 4) return false;
    b->bytes = before + head + data;
    return true;
}

int mri_rar_look(int fd, uint64_t bytes, const char *path, bool *ended, bool *volume, mr_error *err)
{
    uint8_t head[LOOK];
    block b;
    *ended = *volume = false;
    int rc = bytes < SHORT_HEAD + 1 ? MR_OK : mri_pread_all(fd, head, SHORT_HEAD + 1, 0, path, err);
    if (rc || bytes < SHORT_HEAD + 1) return rc;
    const bool five = head[6] == 1;
    const unsigned first = five ? 1 : 0x73, last = five ? 5 : 0x7b;
    for (uint64_t at = SHORT_HEAD + five; at < bytes && !*ended; at += b.bytes) {
        const size_t n = (size_t)mri_min_u64(LOOK, bytes - at);
        if (mri_stop_asked()) return mri_stopped(err);
        rc = mri_pread_all(fd, head, n, at, path, err);
        if (rc) return rc;
        if (!(five ? block_5 : block_4)(head, n, &b) || b.bytes > bytes - at) return MR_OK;
        *ended = b.type == last;
        if (b.type == first || b.type == last) *volume |= (b.flags & 1) != 0;
    }
    return MR_OK;
}
