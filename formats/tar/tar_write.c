/* formats/tar/tar_write.c: the headers of a tar archive's files: ustar, with a PAX header in front where a
 * name or a size does not fit.
 *
 *   short      | ustar |
 *   otherwise  | 'x' header | records, padded | ustar with what fits of the name |
 *
 * PAX says that names are UTF-8; one that is not is marked, so that readers do not stumble over it. */
#include <stdio.h>

#include "base/util.h"
#include "formats/source/value.h"
#include "formats/tar/tar.h"

enum { NAME_ROOM = 100, PREFIX_ROOM = 155 };
#define OCTAL_SIZE_LIMIT ((uint64_t)8 << 30)

/* Where the name is cut into prefix and name, 0 when it fits as it is, -1 when it cannot be. */
static int cut_at(const char *name, size_t bytes)
{
    if (bytes <= NAME_ROOM) return 0;
    for (size_t k = mri_min_u64(bytes - 2, PREFIX_ROOM); k > 0 && bytes - k - 1 <= NAME_ROOM; k--)
        if (name[k] == '/') return (int)k;
    return -1;
}

/* Bytes of "LENGTH KEY=VALUE\n": LENGTH counts its own digits, so that one more digit may make it one
 * longer. */
static size_t record_bytes(size_t key, size_t value)
{
    const size_t rest = key + value + 3;
    size_t digits = 1;
    for (size_t limit = 10; rest + digits >= limit; limit *= 10) digits++;
    return rest + digits;
}

static size_t record_write(uint8_t *out, const char *key, const char *value, size_t value_bytes)
{
    const size_t bytes = record_bytes(strlen(key), value_bytes);
    const int head = sprintf((char *)out, "%zu %s=", bytes, key);
    memcpy(out + head, value, value_bytes);
    out[bytes - 1] = '\n';
    return bytes;
}

typedef struct plan {                 /* what has to be said, and where */
    size_t name_bytes, records_bytes; /* 0: no PAX header */
    int cut;
    bool name_record, marked;
    char size_text[24]; /* empty: fits */
} plan;

static plan make_plan(const char *name, uint64_t bytes)
{
    plan p = {.name_bytes = strlen(name)};
    p.cut = cut_at(name, p.name_bytes);
    p.name_record = p.cut < 0;
    p.marked = p.name_record && !mri_text_is_utf8(name, p.name_bytes);
    if (bytes >= OCTAL_SIZE_LIMIT)
        snprintf(p.size_text, sizeof p.size_text, "%llu", (unsigned long long)bytes);
    if (p.marked) p.records_bytes += record_bytes(strlen("hdrcharset"), strlen("BINARY"));
    if (p.name_record) p.records_bytes += record_bytes(strlen("path"), p.name_bytes);
    if (p.size_text[0]) p.records_bytes += record_bytes(strlen("size"), strlen(p.size_text));
    return p;
}

static void octal_write(uint8_t *out, size_t room, uint64_t value)
{
    out[room - 1] = '\0';
    for (size_t k = room - 1; k-- > 0; value >>= 3) out[k] = (uint8_t)('0' + (value & 7));
}

static void header_write(uint8_t *h, char type, const char *name, size_t name_bytes, const char *prefix,
                         size_t prefix_bytes, uint64_t bytes)
{
    memset(h, 0, MRI_TAR_BLOCK);
    memcpy(h, name, name_bytes);
    octal_write(h + 100, 8, 0644);
    octal_write(h + 108, 8, 0);
    octal_write(h + 116, 8, 0);
    octal_write(h + 124, 12, bytes < OCTAL_SIZE_LIMIT ? bytes : 0);
    octal_write(h + 136, 12, 0);
    memset(h + 148, ' ', 8);
    h[156] = (uint8_t)type;
    memcpy(h + 257,
           "ustar\0"
           "00",
           8);
    memcpy(h + 345, prefix, prefix_bytes);
    uint32_t sum = 0;
    for (size_t k = 0; k < MRI_TAR_BLOCK; k++) sum += h[k];
    octal_write(h + 148, 7, sum); /* six digits, zero, space: as it has always been written */
}

static size_t planned_bytes(const plan *p)
{
    return MRI_TAR_BLOCK +
           (p->records_bytes ? MRI_TAR_BLOCK + mri_align_up(p->records_bytes, MRI_TAR_BLOCK) : 0);
}

size_t mri_tar_head_bytes(const char *name, uint64_t bytes)
{
    const plan p = make_plan(name, bytes);
    return planned_bytes(&p);
}

static uint8_t *extended_write(uint8_t *out, const plan *p, const char *name)
{
    static const char own_name[] = "PaxHeaders/millrace";
    header_write(out, 'x', own_name, sizeof own_name - 1, "", 0, p->records_bytes);
    uint8_t *at = out + MRI_TAR_BLOCK, *end = at + mri_align_up(p->records_bytes, MRI_TAR_BLOCK);
    if (p->marked) at += record_write(at, "hdrcharset", "BINARY", strlen("BINARY"));
    if (p->name_record) at += record_write(at, "path", name, p->name_bytes);
    if (p->size_text[0]) at += record_write(at, "size", p->size_text, strlen(p->size_text));
    memset(at, 0, (size_t)(end - at));
    return end;
}

int mri_tar_head_write(const char *name, uint64_t bytes, uint8_t *out, size_t room, size_t *used,
                       mr_error *err)
{
    const plan p = make_plan(name, bytes);
    if (p.name_bytes == 0 || p.name_bytes > MRI_TAR_MAX_NAME || name[p.name_bytes - 1] == '/')
        return mr_error_set(err, MR_EINVAL,
                            "expected a file's name of 1 to %d bytes for a tar member, found one of %zu%s",
                            MRI_TAR_MAX_NAME, p.name_bytes,
                            p.name_bytes && name[p.name_bytes - 1] == '/' ? " that ends with /" : "");
    if (bytes > INT64_MAX) return mr_error_set(err, MR_EINVAL, "a tar member of 2^63 bytes or more");
    *used = planned_bytes(&p);
    if (room < *used)
        return mr_error_set(err, MR_EINVAL, "expected room for %zu bytes of tar headers, found %zu", *used,
                            room);
    if (p.records_bytes) out = extended_write(out, &p, name);
    if (p.cut > 0)
        header_write(out, '0', name + p.cut + 1, p.name_bytes - (size_t)p.cut - 1, name, (size_t)p.cut,
                     bytes);
    else header_write(out, '0', name, mri_min_u64(p.name_bytes, NAME_ROOM), "", 0, bytes);
    return MR_OK;
}
