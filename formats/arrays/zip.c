/* formats/arrays/zip.c: see zip.h. Section numbers refer to the APPNOTE. */
#include "formats/arrays/zip.h"

#include <isa-l/crc.h>
#include <isa-l/igzip_lib.h>
#include <stdio.h>

#include "base/util.h"
#include "formats/source/source.h"

enum {
    LOCAL_BYTES = 30,   /* 4.3.7 */
    CENTRAL_BYTES = 46, /* 4.3.12 */
    END64_BYTES = 56,   /* 4.3.14 */
    LOCATOR_BYTES = 20, /* 4.3.15 */
    END_BYTES = 22,     /* 4.3.16 */
    COMMENT_MOST = 65535,
    STORED = 0,
    DEFLATED = 8,
    FLAG_ENCRYPTED = 1,
    FLAG_SIZES_BEHIND = 8,
    FLAG_PATCH = 32,
    FLAG_STRONG = 64,
    FLAG_MASKED = 8192,
    EXTRA_ZIP64 = 1,
    PIECE = 64 << 10,
    MOST_PER_BYTE = 1032, /* deflate: 258 bytes from two bits */
};
#define DIRECTORY_MOST ((uint64_t)16 << 20)
#define SIG_LOCAL      0x04034b50u
#define SIG_CENTRAL    0x02014b50u
#define SIG_END64      0x06064b50u
#define SIG_LOCATOR    0x07064b50u
#define SIG_END        0x06054b50u

bool mri_is_zip(const void *head, size_t bytes)
{
    return bytes >= 4 && (mri_le32(head) == SIG_LOCAL || mri_le32(head) == SIG_END);
}

static int wrong(const mri_zip *z, mr_error *err, uint64_t offset, const char *what)
{
    mr_error_set(err, MR_EFORMAT, "zip: %s", what);
    return mri_error_place(err, MR_EFORMAT, z->path, offset, MR_NOWHERE);
}

static int no_memory(const mri_zip *z, mr_error *err)
{
    return mri_error_place(err, mr_error_set(err, MR_ENOMEM, "no memory for the members of a zip file"),
                           z->path, MR_NOWHERE, MR_NOWHERE);
}

/* ---- the end, found from behind ---- */
typedef struct ending {
    uint64_t offset; /* where the directory has to end */
    uint64_t directory, bytes, count;
} ending;

static int find_end(const mri_zip *z, uint8_t end[END_BYTES], uint64_t *at, mr_error *err)
{
    const size_t tail = (size_t)mri_min_u64(END_BYTES + COMMENT_MOST, z->file_bytes);
    if (tail < END_BYTES) return wrong(z, err, 0, "the file is too short for an end record");
    uint8_t *p = malloc(tail);
    if (!p) return no_memory(z, err);
    const uint64_t first = z->file_bytes - tail;
    int rc = mri_pread_all(z->fd, p, tail, first, z->path, err);
    bool found = false;
    for (size_t k = tail - END_BYTES + 1; !rc && !found && k-- > 0;) { /* its comment has to end where the
                                                                          file does */
        found = mri_le32(p + k) == SIG_END && END_BYTES + (size_t)mri_le16(p + k + 20) == tail - k;
        if (found) memcpy(end, p + k, END_BYTES), *at = first + k;
    }
    free(p);
    if (rc || found) return rc;
    return wrong(z, err, z->file_bytes, "no end record: the file is cut, or no zip file");
}

static int read_end64(const mri_zip *z, uint64_t end_at, ending *e, mr_error *err)
{
    uint8_t p[END64_BYTES];
    if (end_at < LOCATOR_BYTES + END64_BYTES)
        return wrong(z, err, end_at, "no room for the zip64 end record it speaks of");
    int rc = mri_pread_all(z->fd, p, LOCATOR_BYTES, end_at - LOCATOR_BYTES, z->path, err);
    if (rc) return rc;
    if (mri_le32(p) != SIG_LOCATOR || mri_le32(p + 4) != 0 || mri_le32(p + 16) > 1)
        return wrong(z, err, end_at - LOCATOR_BYTES, "no zip64 locator of a file in one piece");
    const uint64_t at = mri_le64(p + 8);
    if (at != end_at - LOCATOR_BYTES - END64_BYTES)
        return wrong(z, err, end_at - LOCATOR_BYTES, "the zip64 end record is not before its locator");
    rc = mri_pread_all(z->fd, p, END64_BYTES, at, z->path, err);
    if (rc) return rc;
    if (mri_le32(p) != SIG_END64 || mri_le64(p + 4) != END64_BYTES - 12 || mri_le32(p + 16) != 0 ||
        mri_le32(p + 20) != 0 || mri_le64(p + 24) != mri_le64(p + 32))
        return wrong(z, err, at, "a damaged zip64 end record");
    *e = (ending){at, mri_le64(p + 48), mri_le64(p + 40), mri_le64(p + 32)};
    return MR_OK;
}

static int read_end(const mri_zip *z, ending *e, mr_error *err)
{
    uint8_t p[END_BYTES] = {0};
    uint64_t at = 0;
    const int rc = find_end(z, p, &at, err);
    if (rc) return rc;
    *e = (ending){at, mri_le32(p + 16), mri_le32(p + 12), mri_le16(p + 10)};
    const bool wide = e->directory == UINT32_MAX || e->bytes == UINT32_MAX || e->count == UINT16_MAX;
    if (mri_le16(p + 4) != mri_le16(p + 6) || (mri_le16(p + 4) != 0 && !wide) ||
        mri_le16(p + 8) != mri_le16(p + 10))
        return wrong(z, err, at, "the archive has several disks: join them first");
    return wide ? read_end64(z, at, e, err) : MR_OK;
}

/* ---- the directory ---- */
/* Sizes that do not fit 32 bits stand in an extra field, in this order, only those whose place says so
 * (4.5.3). */
static bool widen(const uint8_t *extra, size_t bytes, uint64_t *const value[], size_t count)
{
    bool wanted = false;
    for (size_t k = 0; k < count; k++) wanted |= *value[k] == UINT32_MAX;
    if (!wanted) return true;
    while (bytes >= 4) {
        const size_t length = mri_le16(extra + 2);
        const uint8_t *p = extra + 4, *const end = p + length;
        if (length > bytes - 4) return false;
        for (size_t k = 0; mri_le16(extra) == EXTRA_ZIP64 && k < count; k++) {
            if (*value[k] != UINT32_MAX) continue;
            if (end - p < 8) return false;
            *value[k] = mri_le64(p);
            p += 8;
        }
        if (mri_le16(extra) == EXTRA_ZIP64) return true;
        extra = end;
        bytes -= 4 + length;
    }
    return false;
}

static int take_member(mri_zip *z, const uint8_t *p, size_t left, size_t *used, uint64_t at, mr_error *err)
{
    if (left < CENTRAL_BYTES || mri_le32(p) != SIG_CENTRAL)
        return wrong(z, err, at, "the directory is damaged: expected another member");
    const size_t name = mri_le16(p + 28), extra = mri_le16(p + 30), comment = mri_le16(p + 32);
    *used = CENTRAL_BYTES + name + extra + comment;
    if (*used > left) return wrong(z, err, at, "a member's name or extra field is longer than the directory");
    mri_zip_member *m = &z->member[z->count];
    *m = (mri_zip_member){.header = mri_le32(p + 42),
                          .packed = mri_le32(p + 20),
                          .bytes = mri_le32(p + 24),
                          .crc = mri_le32(p + 16),
                          .method = mri_le16(p + 10),
                          .flags = mri_le16(p + 8)};
    uint64_t *const sizes[] = {&m->bytes, &m->packed, &m->header};
    if (!widen(p + CENTRAL_BYTES + name, extra, sizes, 3))
        return wrong(z, err, at, "a member without the zip64 sizes it speaks of");
    if (name == 0 || memchr(p + CENTRAL_BYTES, '\0', name))
        return wrong(z, err, at, "a member's name is empty or has a NUL in it");
    if (m->header >= z->directory || z->directory - m->header < LOCAL_BYTES ||
        m->packed > z->directory - m->header - LOCAL_BYTES)
        return wrong(z, err, at, "a member reaches into the directory or past it");
    m->name = strndup((const char *)p + CENTRAL_BYTES, name);
    if (!m->name) return no_memory(z, err);
    if (!z->many && mri_zip_find(z, m->name)) {
        z->count++; /* so that its name is freed */
        mr_error_set(err, MR_EFORMAT, "zip: two members named %.200s", m->name);
        return mri_error_place(err, MR_EFORMAT, z->path, at, MR_NOWHERE);
    }
    z->count++;
    z->memory_bytes += sizeof *m + name + 1;
    return MR_OK;
}

static int take_members(mri_zip *z, const ending *e, const uint8_t *p, mr_error *err)
{
    size_t at = 0, used = 0;
    for (uint64_t k = 0; k < e->count; k++) {
        const int rc = take_member(z, p + at, (size_t)e->bytes - at, &used, e->directory + at, err);
        if (rc) return rc;
        at += used;
    }
    return at == e->bytes
               ? MR_OK
               : wrong(z, err, e->directory + at, "more in the directory than the members it counts");
}

static int read_directory(mri_zip *z, const ending *e, mr_error *err)
{
    const uint64_t members = z->many ? MRI_ZIP_MANY : MRI_ZIP_MEMBERS;
    if (e->count > members || e->bytes > z->directory_most)
        return mri_error_place(
            err,
            mr_error_set(err, MR_ELIMIT,
                         "zip: %llu members and %llu bytes of directory: expected at most %llu and %llu MiB",
                         (unsigned long long)e->count, (unsigned long long)e->bytes,
                         (unsigned long long)members, (unsigned long long)(z->directory_most >> 20)),
            z->path, e->offset, MR_NOWHERE);
    if (e->bytes > e->offset || e->directory != e->offset - e->bytes)
        return wrong(
            z, err, e->offset,
            "the directory does not end at its end record: bytes were put before or into the archive");
    if (e->count > e->bytes / CENTRAL_BYTES)
        return wrong(z, err, e->offset, "more members than the directory has room for");
    z->directory = e->directory;
    uint8_t *p = malloc(e->bytes ? (size_t)e->bytes : 1);
    z->member = calloc(e->count ? (size_t)e->count : 1, sizeof *z->member);
    int rc = p && z->member ? mri_pread_all(z->fd, p, (size_t)e->bytes, e->directory, z->path, err)
                            : no_memory(z, err);
    if (!rc) rc = take_members(z, e, p, err);
    free(p);
    return rc;
}

static int open_zip(mri_zip *z, mr_error *err)
{
    ending e;
    int rc = read_end(z, &e, err);
    if (!rc) rc = read_directory(z, &e, err);
    if (rc) mri_zip_close(z);
    return rc;
}

int mri_zip_open(mri_zip *z, int fd, uint64_t file_bytes, const char *path, mr_error *err)
{
    *z = (mri_zip){.path = path, .fd = fd, .file_bytes = file_bytes, .directory_most = DIRECTORY_MOST};
    return open_zip(z, err);
}

int mri_zip_open_many(mri_zip *z, int fd, uint64_t file_bytes, const char *path, uint64_t memory_bytes,
                      mr_error *err)
{
    *z = (mri_zip){.path = path, .fd = fd, .file_bytes = file_bytes, .many = true};
    z->directory_most = memory_bytes / 4; /* half for records, half for the parsed entries */
    return open_zip(z, err);
}

void mri_zip_close(mri_zip *z)
{
    for (uint32_t k = 0; k < z->count; k++) free(z->member[k].name);
    free(z->member);
    z->member = NULL;
    z->count = 0;
}

mri_zip_member *mri_zip_find(const mri_zip *z, const char *name)
{
    for (uint32_t k = 0; k < z->count; k++)
        if (strcmp(z->member[k].name, name) == 0) return &z->member[k];
    return NULL;
}

/* ---- one member ---- */
static int bad_member(const mri_zip *z, const mri_zip_member *m, mr_error *err, int code, const char *what)
{
    mr_error_set(err, code, "zip: member %.200s %s", m->name, what);
    return mri_error_place(err, code, z->path, m->header, MR_NOWHERE);
}

static int check_method(const mri_zip *z, const mri_zip_member *m, mr_error *err)
{
    if (m->flags & (FLAG_ENCRYPTED | FLAG_STRONG | FLAG_MASKED))
        return bad_member(z, m, err, MR_EUNSUPPORTED, "is encrypted");
    if (m->flags & FLAG_PATCH) return bad_member(z, m, err, MR_EUNSUPPORTED, "is a patch of another file");
    if (m->method != STORED && m->method != DEFLATED) {
        char what[80];
        snprintf(what, sizeof what, "is packed with method %u: only stored and deflated members are read",
                 m->method);
        return bad_member(z, m, err, MR_EUNSUPPORTED, what);
    }
    if (m->method == STORED && m->packed != m->bytes)
        return bad_member(z, m, err, MR_EFORMAT, "is stored, and has two sizes");
    if (m->bytes / MOST_PER_BYTE > m->packed)
        return bad_member(z, m, err, MR_EFORMAT, "says more bytes than it can hold");
    return MR_OK;
}

/* Compare the local header with the directory. Sizes may be missing if they stand after the data. */
static int check_local(const mri_zip *z, const mri_zip_member *m, const uint8_t *p, const uint8_t *rest,
                       size_t name, size_t extra, mr_error *err)
{
    uint64_t bytes = mri_le32(p + 22), packed = mri_le32(p + 18);
    uint64_t *const sizes[] = {&bytes, &packed};
    const bool behind = m->flags & FLAG_SIZES_BEHIND, left_out = behind && mri_le32(p + 14) == 0;
    if (mri_le16(p + 8) != m->method || mri_le16(p + 6) != m->flags)
        return bad_member(z, m, err, MR_EFORMAT,
                          "has another method or other flags in its own header than in the directory");
    if (strlen(m->name) != name || memcmp(rest, m->name, name) != 0)
        return bad_member(z, m, err, MR_EFORMAT, "has another name in its own header than in the directory");
    if (!widen(rest + name, extra, sizes, 2))
        return bad_member(z, m, err, MR_EFORMAT, "lacks the zip64 sizes it speaks of");
    if (left_out && bytes == 0 && packed == 0) return MR_OK;
    if (bytes != m->bytes || packed != m->packed || mri_le32(p + 14) != m->crc)
        return bad_member(z, m, err, MR_EFORMAT,
                          "has other sizes or another CRC in its own header than in the directory");
    return MR_OK;
}

int mri_zip_locate(const mri_zip *z, mri_zip_member *m, mr_error *err)
{
    uint8_t p[LOCAL_BYTES];
    int rc = check_method(z, m, err);
    if (!rc) rc = mri_pread_all(z->fd, p, sizeof p, m->header, z->path, err);
    if (rc) return rc;
    if (mri_le32(p) != SIG_LOCAL)
        return bad_member(z, m, err, MR_EFORMAT, "has no header where the directory says");
    const size_t name = mri_le16(p + 26), extra = mri_le16(p + 28);
    if (name + extra > z->directory - m->header - LOCAL_BYTES - m->packed)
        return bad_member(z, m, err, MR_EFORMAT, "reaches into the directory");
    uint8_t *rest = malloc(name + extra + 1);
    if (!rest) return no_memory(z, err);
    rc = mri_pread_all(z->fd, rest, name + extra, m->header + LOCAL_BYTES, z->path, err);
    if (!rc) rc = check_local(z, m, p, rest, name, extra, err);
    free(rest);
    m->offset = m->header + LOCAL_BYTES + name + extra;
    return rc;
}

/* ---- unpack ---- */
typedef struct unpack {
    struct inflate_state s;
    uint8_t in[PIECE], out[PIECE];
    uint64_t read, written;
    uint32_t crc;
} unpack;

static int refill(const mri_zip *z, const mri_zip_member *m, unpack *u, mr_error *err)
{
    if (u->s.avail_in > 0 || u->read == m->packed) return MR_OK;
    const size_t n = (size_t)mri_min_u64(PIECE, m->packed - u->read);
    const int rc = mri_pread_all(z->fd, u->in, n, m->offset + u->read, z->path, err);
    if (rc) return rc;
    u->read += n;
    u->s.next_in = u->in;
    u->s.avail_in = (uint32_t)n;
    return MR_OK;
}

static int drain(const mri_zip *z, const mri_zip_member *m, unpack *u, const uint8_t *data, size_t n,
                 mri_spill *out, mr_error *err)
{
    if (n > m->bytes - u->written)
        return bad_member(z, m, err, MR_EFORMAT, "unpacks to more than the directory says");
    u->crc = crc32_gzip_refl(u->crc, data, n);
    u->written += n;
    return mri_spill_write(out, data, n, err);
}

static int inflate_all(const mri_zip *z, const mri_zip_member *m, unpack *u, mri_spill *out, mr_error *err)
{
    isal_inflate_init(&u->s);
    u->s.crc_flag = ISAL_DEFLATE;
    u->s.avail_in = 0;
    while (u->s.block_state != ISAL_BLOCK_FINISH) {
        int rc = refill(z, m, u, err);
        if (rc) return rc;
        const uint32_t before = u->s.avail_in;
        u->s.next_out = u->out;
        u->s.avail_out = PIECE;
        if (isal_inflate(&u->s) < 0)
            return bad_member(z, m, err, MR_EFORMAT, "is damaged: its deflate stream makes no sense");
        const size_t made = PIECE - u->s.avail_out;
        if (made == 0 && u->s.avail_in == before && u->s.block_state != ISAL_BLOCK_FINISH)
            return bad_member(z, m, err, MR_EFORMAT, "is damaged: its deflate stream ends early");
        rc = drain(z, m, u, u->out, made, out, err);
        if (rc) return rc;
    }
    const bool all = u->s.avail_in == 0 && u->read == m->packed;
    return all ? MR_OK : bad_member(z, m, err, MR_EFORMAT, "has bytes behind its deflate stream");
}

static int copy_all(const mri_zip *z, const mri_zip_member *m, unpack *u, mri_spill *out, mr_error *err)
{
    while (u->written < m->bytes) {
        const size_t n = (size_t)mri_min_u64(PIECE, m->bytes - u->written);
        int rc = mri_pread_all(z->fd, u->in, n, m->offset + u->written, z->path, err);
        if (!rc) rc = drain(z, m, u, u->in, n, out, err);
        if (rc) return rc;
    }
    return MR_OK;
}

int mri_zip_unpack(const mri_zip *z, const mri_zip_member *m, mri_spill *out, mr_error *err)
{
    unpack *u = malloc(sizeof *u);
    if (!u) return no_memory(z, err);
    u->read = u->written = 0;
    u->crc = 0;
    int rc = m->method == STORED ? copy_all(z, m, u, out, err) : inflate_all(z, m, u, out, err);
    if (!rc && u->written != m->bytes)
        rc = bad_member(z, m, err, MR_EFORMAT, "unpacks to less than the directory says");
    if (!rc && u->crc != m->crc) rc = bad_member(z, m, err, MR_ECHECKSUM, "has a CRC that does not match");
    free(u);
    return rc;
}

int mri_zip_check_stored(const mri_zip *z, const mri_zip_member *m, mr_error *err)
{
    uint8_t *piece = malloc(PIECE);
    if (!piece) return no_memory(z, err);
    uint32_t crc = 0;
    int rc = MR_OK;
    for (uint64_t at = 0; !rc && at < m->bytes; at += PIECE) {
        const size_t n = (size_t)mri_min_u64(PIECE, m->bytes - at);
        rc = mri_pread_all(z->fd, piece, n, m->offset + at, z->path, err);
        if (!rc) crc = crc32_gzip_refl(crc, piece, n);
    }
    free(piece);
    if (!rc && crc != m->crc) rc = bad_member(z, m, err, MR_ECHECKSUM, "has a CRC that does not match");
    return rc;
}
