/* formats/tar/tar_sums_check.c: an archive compared with the checksums that it brings. See tar_sums.h.
 *
 * One walk: the checksum of each member is computed as it is passed, and kept until the block that speaks of
 * it. A block's lines and the members before it are compared one by one; what differs is matched at the end
 * (tar_sums_match.c). */
#include <inttypes.h>
#include <stdio.h>

#include "base/util.h"
#include "formats/storage/storage.h"
#include "formats/tar/tar_classes.h"
#include "formats/tar/tar_sample.h"
#include "formats/tar/tar_sums.h"

enum { END_BYTES = 32 << 10, FIRST_BYTES = 21 };

typedef struct check {
    mri_file_scan scan;
    const char *path;
    bool headers_only;
    mri_tar_unmatched since, rest; /* members since the last block; what did not meet */
    uint64_t blocks, foreign;      /* foreign: blocks of another version */
    uint64_t gap;                  /* a block's offset that does not follow the one before; 0: none */
} check;

static int get(void *context, uint64_t offset, size_t bytes, const uint8_t **out, mr_error *err)
{
    return mri_file_scan_get(context, offset, bytes, out, err);
}

/* "end 12 9ab1f0c4\n" at p. */
static bool is_end_line(const char *p, const char *end)
{
    const char *digit = p + 4;
    while (digit < end && *digit >= '0' && *digit <= '9') digit++;
    if (digit == p + 4 || end - digit < 10 || digit[0] != ' ' || digit[9] != '\n') return false;
    return strspn(digit + 1, "0123456789abcdef") == 8;
}

int mri_tar_sums_at_end(bool *out, int fd, const char *path, uint64_t file_bytes, mr_error *err)
{
    *out = false;
    const size_t n = (size_t)mri_min_u64(file_bytes, END_BYTES);
    char *end = malloc(n + 1);
    if (!end) return mr_error_set(err, MR_ENOMEM, "no memory to look at an archive");
    const int rc = mri_pread_all(fd, end, n, file_bytes - n, path, err);
    end[rc ? 0 : n] = '\0';
    for (const char *at = end; !rc && !*out && (at = memmem(at, n - (size_t)(at - end), "\nend ", 5)); at++)
        *out = is_end_line(at + 1, end + n);
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
    mri_tar_sum sum = {m->data, m->bytes, 0, mri_tar_name_crc(m->name)};
    const int rc = c->headers_only ? MR_OK : checksum(c, m, &sum.crc, err);
    return rc ? rc : mri_tar_unmatched_member(&c->since, &sum, m->name, err);
}

/* Keep the members since the last block, from `from` on, that did not match their lines. */
static int keep_members(check *c, uint64_t from, mr_error *err)
{
    int rc = MR_OK;
    for (uint64_t k = from; !rc && k < c->since.members; k++)
        rc = mri_tar_unmatched_member(&c->rest, &c->since.member[k].sum, c->since.member[k].name, err);
    for (uint64_t k = 0; k < c->since.members; k++) free(c->since.member[k].name);
    c->since.members = 0;
    return rc;
}

/* A block of checksums: of the members since the one before, one by one. */
static int take_block(check *c, const mri_tar_member *m, mr_error *err)
{
    const uint8_t *p = NULL;
    mri_tar_sums_walk lines;
    mri_tar_sum one;
    uint64_t k = 0;
    int rc = m->bytes > MRI_TAR_MAX_SUMS ? MR_EFORMAT
                                         : mri_file_scan_get(&c->scan, m->data, (size_t)m->bytes, &p, err);
    if (!rc) rc = mri_tar_sums_begin(&lines, p, (size_t)m->bytes, m->head, err);
    if (rc == MR_EUNSUPPORTED) {
        c->foreign++;
        return keep_members(c, 0, err);
    }
    if (rc == MR_EFORMAT) {
        mr_error_set(err, rc, "a member of checksums (" MRI_TAR_SUMS ") is damaged, or is not millrace's");
        mri_error_place(err, rc, c->path, m->data, MR_NOWHERE);
    }
    if (rc) return rc;
    char name[sizeof MRI_TAR_SUMS + 8];
    snprintf(name, sizeof name, MRI_TAR_SUMS "/%06u", (unsigned)(c->blocks % 1000000));
    if (mri_tar_is_sums(m->name) && c->gap == 0 && strcmp(m->name, name) != 0 && lines.left > 0)
        c->gap = m->head;
    c->blocks++;
    for (bool meets = true; !rc && mri_tar_sums_next(&lines, &one);) {
        const mri_tar_listed *at = meets && k < c->since.members ? &c->since.member[k] : NULL;
        meets = at && at->sum.bytes == one.bytes && at->sum.name_crc == one.name_crc;
        if (!meets) rc = mri_tar_unmatched_line(&c->rest, &one, err);
        else mri_tar_matched(&c->rest, &one, &c->since.member[k++].sum, at->name, !c->headers_only);
    }
    return rc ? rc : keep_members(c, k, err);
}

/* A block whose name is damaged is known by its data; nothing lists it, so that it counts as wrong. */
static int take_file(check *c, const mri_tar_member *m, mr_error *err)
{
    const uint8_t *p;
    if (mri_tar_is_sums(m->name)) return take_block(c, m, err);
    if (m->bytes >= FIRST_BYTES && m->bytes <= MRI_TAR_MAX_SUMS) {
        int rc = mri_file_scan_get(&c->scan, m->data, FIRST_BYTES, &p, err);
        if (!rc && mri_tar_begins_as_sums(p, FIRST_BYTES)) {
            rc = take_block(c, m, err);
            return rc ? rc : take_member(c, m, err);
        }
        if (rc) return rc;
    }
    if (mri_tar_is_meta(m->name) && strcmp(m->name, MRI_TAR_CLASSES) != 0) return MR_OK;
    return take_member(c, m, err);
}

static int walk(check *c, uint64_t file_bytes, mr_error *err)
{
    mri_tar tar;
    mri_tar_member m;
    int rc;
    mri_tar_init(&tar, get, &c->scan, 0, file_bytes);
    while ((rc = mri_tar_next(&tar, &m, err)) == MR_OK) {
        if (mri_stop_asked()) return mri_stopped(err);
        if (m.kind == MRI_TAR_FILE) rc = take_file(c, &m, err);
        if (rc) return rc;
    }
    if (rc != MR_EEND) return rc;
    rc = keep_members(c, 0, err);
    if (!rc && c->blocks > 0) mri_tar_unmatched_settle(&c->rest, !c->headers_only);
    return rc;
}

static int run(check *c, bool headers_only, int fd, const char *path, uint64_t file_bytes, mr_error *err)
{
    *c = (check){.path = path, .headers_only = headers_only};
    mri_file_scan_init(&c->scan, fd, path, file_bytes);
    const int rc = walk(c, file_bytes, err);
    mri_file_scan_fini(&c->scan);
    mri_tar_unmatched_fini(&c->since);
    mri_tar_unmatched_fini(&c->rest); /* its counts and its error stay */
    return rc;
}

int mri_tar_sums_fit(bool *out, int fd, const char *path, uint64_t file_bytes, mr_error *err)
{
    check c;
    const int rc = run(&c, true, fd, path, file_bytes, err);
    *out = !rc && c.rest.fitting > 0 && c.rest.wrong == 0;
    return rc;
}

static int no_block(const char *path, uint64_t before, mr_error *err)
{
    mr_error_set(err, MR_EFORMAT,
                 "checksums (" MRI_TAR_SUMS ") before this position are missing: a header of the archive is "
                 "damaged: copy the archive again");
    return mri_error_place(err, MR_EFORMAT, path, before, MR_NOWHERE);
}

int mri_tar_sums_check(bool *fit, int fd, const char *path, uint64_t file_bytes, mr_error *err)
{
    check c;
    bool there;
    int rc = mri_tar_sums_at_end(&there, fd, path, file_bytes, err);
    *fit = false;
    if (rc || !there) return rc;
    rc = run(&c, false, fd, path, file_bytes, err);
    *fit = !rc && c.rest.fitting > 0 && c.rest.wrong == 0;
    if (rc || *fit) return rc;
    if (c.blocks == 0) return c.foreign ? MR_OK : no_block(path, file_bytes, err);
    if (c.rest.fitting == 0) return c.gap ? no_block(path, c.gap, err) : MR_OK; /* about another archive */
    if (err) {
        *err = c.rest.first;
        mr_error_at(err, path, err->offset, MR_NOWHERE);
        const size_t n = strlen(err->text);
        if (c.rest.wrong > 1)
            snprintf(err->text + n, sizeof err->text - n, "; %" PRIu64 " members are wrong", c.rest.wrong);
    }
    return MR_ECHECKSUM;
}
