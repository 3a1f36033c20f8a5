/* formats/tar/tar_sums_check.c: an archive compared with the checksums that it brings. See tar_sums.h.
 *
 * One walk: the checksum of each member is computed as it is passed, and kept until the block that speaks of
 * it. */
#include <inttypes.h>
#include <stdio.h>

#include "base/util.h"
#include "formats/storage/storage.h"
#include "formats/tar/tar_classes.h"
#include "formats/tar/tar_sample.h"
#include "formats/tar/tar_sums.h"

enum { END_BYTES = 32 << 10, NAME_SHOWN = 200 };

typedef struct found {
    mri_tar_sum sum;
    char name[NAME_SHOWN];
} found;

typedef struct check {
    mri_file_scan scan;
    const char *path;
    bool headers_only;
    found *member; /* since the last block */
    uint32_t count, cap;
    uint64_t fitting, foreign, wrong;
    mr_error first;
} check;

static int get(void *context, uint64_t offset, size_t bytes, const uint8_t **out, mr_error *err)
{
    return mri_file_scan_get(context, offset, bytes, out, err);
}

int mri_tar_sums_at_end(bool *out, int fd, const char *path, uint64_t file_bytes, mr_error *err)
{
    static const char word[] = "\nend ";
    *out = false;
    const size_t n = (size_t)mri_min_u64(file_bytes, END_BYTES);
    char *end = malloc(n + 1);
    if (!end) return mr_error_set(err, MR_ENOMEM, "no memory to look at an archive");
    const int rc = mri_pread_all(fd, end, n, file_bytes - n, path, err);
    size_t k = n;
    while (!rc && k > 0 && end[k - 1] == 0) k--;
    if (!rc && k > 24 && end[k - 1] == '\n')
        for (size_t at = k - 24; at + sizeof word - 1 < k; at++)
            *out = *out || memcmp(end + at, word, sizeof word - 1) == 0;
    free(end);
    return rc;
}

static int checksum(check *c, const mri_tar_member *m, uint32_t *crc, mr_error *err)
{
    int rc = MR_OK;
    *crc = 0;
    for (uint64_t at = 0; !rc && at < m->bytes; at += 1 << 20) {
        const uint8_t *p;
        const size_t n = (size_t)mri_min_u64(m->bytes - at, 1 << 20);
        if (mri_stop_asked()) return mri_stopped(err);
        rc = mri_file_scan_get(&c->scan, m->data + at, n, &p, err);
        if (!rc) *crc = mr_crc32c(*crc, p, n);
    }
    return rc;
}

static int take_member(check *c, const mri_tar_member *m, mr_error *err)
{
    uint32_t crc = 0;
    char name[NAME_SHOWN];
    snprintf(name, sizeof name, "%.*s", NAME_SHOWN - 1, m->name); /* the walk's, gone with the next read */
    const mri_tar_member here = *m;
    const int rc = c->headers_only ? MR_OK : checksum(c, &here, &crc, err);
    if (rc) return rc;
    if (c->count == c->cap) {
        const uint32_t cap = c->cap ? 2 * c->cap : 64;
        found *more = cap > 1 << 20 ? NULL : realloc(c->member, cap * sizeof *more);
        if (!more && cap > 1 << 20) { /* nothing of ours has so many members without a block */
            c->foreign += c->count;
            c->count = 0;
        } else if (!more) return mr_error_set(err, MR_ENOMEM, "no memory to check an archive");
        else {
            c->member = more;
            c->cap = cap;
        }
    }
    found *f = &c->member[c->count++];
    f->sum = (mri_tar_sum){here.data, here.bytes, crc};
    memcpy(f->name, name, sizeof name);
    return MR_OK;
}

static void tell(check *c, const found *f, uint32_t expected)
{
    char shown[NAME_SHOWN];
    if (c->wrong++ > 0) return;
    mr_error_set(
        &c->first, MR_ECHECKSUM,
        "member \"%s\": its checksum does not match: expected %08x, found %08x: copy the archive again",
        mr_text_shown(f->name, shown, sizeof shown), expected, f->sum.crc);
    mr_error_at(&c->first, c->path, f->sum.data, MR_NOWHERE);
}

/* A block of checksums: of the members since the one before, one by one. */
static int take_block(check *c, const mri_tar_member *m, mr_error *err)
{
    const uint8_t *p = NULL;
    mri_tar_sums_walk lines;
    mri_tar_sum one;
    const uint64_t head = m->head, data = m->data;
    int rc = m->bytes > MRI_TAR_MAX_SUMS ? MR_EFORMAT
                                         : mri_file_scan_get(&c->scan, data, (size_t)m->bytes, &p, err);
    if (!rc) rc = mri_tar_sums_begin(&lines, p, (size_t)m->bytes, head, err);
    if (rc == MR_EFORMAT) {
        mr_error_set(err, rc, "a member of checksums (" MRI_TAR_SUMS ") is damaged, or is none of ours");
        mri_error_place(err, rc, c->path, data, MR_NOWHERE);
    }
    uint32_t k = 0;
    while (!rc && mri_tar_sums_next(&lines, &one)) {
        const found *f = &c->member[k++];
        if (k > c->count || f->sum.data != one.data || f->sum.bytes != one.bytes) {
            c->foreign++;
            break;
        }
        c->fitting++;
        if (!c->headers_only && f->sum.crc != one.crc) tell(c, f, one.crc);
    }
    if (k < c->count) c->foreign += c->count - k;
    c->count = 0;
    return rc;
}

static int walk(check *c, uint64_t file_bytes, mr_error *err)
{
    mri_tar tar;
    mri_tar_member m;
    int rc;
    mri_tar_init(&tar, get, &c->scan, 0, file_bytes);
    while ((rc = mri_tar_next(&tar, &m, err)) == MR_OK) {
        if (mri_stop_asked()) return mri_stopped(err);
        if (m.kind != MRI_TAR_FILE) continue;
        if (mri_tar_is_sums(m.name)) rc = take_block(c, &m, err);
        else if (!mri_tar_is_meta(m.name) || strcmp(m.name, MRI_TAR_CLASSES) == 0)
            rc = take_member(c, &m, err);
        if (rc) return rc;
    }
    c->foreign += c->count;
    return rc == MR_EEND ? MR_OK : rc;
}

static int run(check *c, bool headers_only, int fd, const char *path, uint64_t file_bytes, mr_error *err)
{
    *c = (check){.path = path, .headers_only = headers_only, .first = MR_ERROR_INIT};
    mri_file_scan_init(&c->scan, fd, path, file_bytes);
    const int rc = walk(c, file_bytes, err);
    mri_file_scan_fini(&c->scan);
    free(c->member);
    return rc;
}

int mri_tar_sums_fit(bool *out, int fd, const char *path, uint64_t file_bytes, mr_error *err)
{
    check c;
    const int rc = run(&c, true, fd, path, file_bytes, err);
    *out = !rc && c.fitting > 0 && c.foreign == 0;
    return rc;
}

int mri_tar_sums_check(bool *fit, int fd, const char *path, uint64_t file_bytes, mr_error *err)
{
    check c;
    bool there;
    int rc = mri_tar_sums_at_end(&there, fd, path, file_bytes, err);
    *fit = false;
    if (rc || !there) return rc;
    rc = run(&c, false, fd, path, file_bytes, err);
    *fit = !rc && c.fitting > 0 && c.foreign == 0;
    if (rc || c.wrong == 0) return rc;
    if (c.foreign > c.fitting) return MR_OK; /* packed anew: some fit by chance */
    if (err) {
        *err = c.first;
        const size_t n = strlen(err->text);
        if (c.wrong > 1)
            snprintf(err->text + n, sizeof err->text - n, "; %" PRIu64 " members are wrong", c.wrong);
    }
    return MR_ECHECKSUM;
}
