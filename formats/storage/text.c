/* formats/storage/text.c: see text.h. */
#include "formats/storage/text.h"

#include <errno.h>
#include <fcntl.h>
#include <isa-l/igzip_lib.h>
#include <stdarg.h>
#include <stdio.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/util.h"
#include "formats/storage/gunzip.h"

enum { PIECE = 64 << 10 };

struct mri_text_unpack {
    struct inflate_state s;
    uint8_t in[PIECE];
};

int mri_text_error_at(const mri_text *t, mr_error *err, int code, uint64_t line, const char *format, ...)
{
    char what[600];
    va_list args;
    va_start(args, format);
    vsnprintf(what, sizeof what, format, args);
    va_end(args);
    mr_error_set(err, code, "line %llu: %s", (unsigned long long)line, what);
    return mri_error_place(err, code, t->path, MR_NOWHERE, MR_NOWHERE);
}

/* ---- pieces ---- */
static int read_piece(mri_text *t, uint8_t *to, size_t *bytes, mr_error *err)
{
    *bytes = (size_t)mri_min_u64(PIECE, t->file_bytes - t->read_bytes);
    const int rc = mri_pread_all(t->fd, to, *bytes, t->read_bytes, t->path, err);
    if (!rc) t->read_bytes += *bytes;
    return rc;
}

static int wrong_gzip(const mri_text *t, mr_error *err, int code, const char *what)
{
    mr_error_set(err, code, "gzip: %s (in line %llu of the unpacked text)", what,
                 (unsigned long long)t->line);
    return mri_error_place(err, code, t->path, t->read_bytes - t->unpack->s.avail_in, MR_NOWHERE);
}

static int refill(mri_text *t, mr_error *err)
{
    struct mri_text_unpack *u = t->unpack;
    if (u->s.avail_in > 0 || t->read_bytes == t->file_bytes) return MR_OK;
    size_t bytes;
    const int rc = read_piece(t, u->in, &bytes, err);
    if (rc) return rc;
    u->s.next_in = u->in;
    u->s.avail_in = (uint32_t)bytes;
    return MR_OK;
}

/* After a member: another one, or the end. */
static int next_member(mri_text *t, mr_error *err)
{
    struct inflate_state *s = &t->unpack->s;
    const int rc = refill(t, err);
    if (rc) return rc;
    if (s->avail_in == 0) return MR_EEND;
    if (s->next_in[0] != 0x1f) return wrong_gzip(t, err, MR_EFORMAT, "bytes after the end");
    isal_inflate_reset(s);
    s->crc_flag = ISAL_GZIP;
    return MR_OK;
}

static int inflate_piece(mri_text *t, mr_error *err)
{
    struct inflate_state *s = &t->unpack->s;
    s->next_out = t->buf;
    s->avail_out = PIECE;
    while (s->avail_out == PIECE) {
        int rc = s->block_state == ISAL_BLOCK_FINISH ? next_member(t, err) : refill(t, err);
        if (rc) return rc;
        const uint32_t before = s->avail_in;
        const int said = isal_inflate(s);
        if (said == ISAL_INCORRECT_CHECKSUM)
            return wrong_gzip(t, err, MR_ECHECKSUM, "the checksum does not match");
        if (said < 0) return wrong_gzip(t, err, MR_EFORMAT, "damaged");
        if (s->avail_out == PIECE && s->avail_in == before && s->block_state != ISAL_BLOCK_FINISH)
            return wrong_gzip(t, err, MR_EFORMAT,
                              t->read_bytes == t->file_bytes ? "the file ends early" : "damaged");
    }
    t->at = t->buf;
    t->end = t->buf + (PIECE - s->avail_out);
    t->unpacked_bytes += (uint64_t)(t->end - t->at);
    if (!mri_unpack_is_too_much(t->file_bytes, t->unpacked_bytes)) return MR_OK;
    const int rc = mri_unpack_too_much(t->file_bytes, t->unpacked_bytes, err);
    return mri_error_place(err, rc, t->path, MR_NOWHERE, MR_NOWHERE);
}

int mri_text_more(mri_text *t, mr_error *err)
{
    if (t->unpack) return inflate_piece(t, err);
    size_t bytes;
    if (t->read_bytes == t->file_bytes) return MR_EEND;
    const int rc = read_piece(t, t->buf, &bytes, err);
    if (rc) return rc;
    t->at = t->buf;
    t->end = t->buf + bytes;
    return MR_OK;
}

/* ---- open ---- */
static int look_at(mri_text *t, mr_error *err)
{
    struct stat st;
    if (t->fd < 0) t->fd = open(t->path, O_RDONLY | O_CLOEXEC | O_NONBLOCK);
    if (t->fd < 0) return mr_error_sys(err, errno, "cannot open");
    if (fstat(t->fd, &st) != 0) return mr_error_sys(err, errno, "cannot look at it");
    if (!S_ISREG(st.st_mode))
        return mr_error_set(err, MR_EFORMAT, "expected a file of text, found no regular file");
    t->file_bytes = (uint64_t)st.st_size;
    t->line = 1;
    t->buf = malloc(PIECE);
    return t->buf ? MR_OK : mr_error_set(err, MR_ENOMEM, "no memory to read text");
}

static int prepare_unpack(mri_text *t, mr_error *err)
{
    uint8_t head[3];
    const size_t bytes = (size_t)mri_min_u64(sizeof head, t->file_bytes);
    const int rc = mri_pread_all(t->fd, head, bytes, 0, t->path, err);
    if (rc || !mri_is_gzip(head, bytes)) return rc;
    t->unpack = malloc(sizeof *t->unpack);
    if (!t->unpack) return mr_error_set(err, MR_ENOMEM, "no memory to unpack text");
    isal_inflate_init(&t->unpack->s);
    t->unpack->s.crc_flag = ISAL_GZIP;
    t->unpack->s.avail_in = 0;
    return MR_OK;
}

/* The first piece, without its mark. */
static int begin(mri_text *t, mr_error *err)
{
    const int rc = mri_text_more(t, err);
    if (rc) return rc == MR_EEND ? MR_OK : rc; /* an empty text: whoever reads finds the end */
    const size_t bytes = (size_t)(t->end - t->at);
    if (bytes >= 3 && memcmp(t->at, "\xef\xbb\xbf", 3) == 0) t->at += 3;
    else if (bytes >= 2 && (memcmp(t->at, "\xff\xfe", 2) == 0 || memcmp(t->at, "\xfe\xff", 2) == 0))
        return mri_error_place(
            err,
            mr_error_set(err, MR_EUNSUPPORTED,
                         "this is text in UTF-16: iconv -f UTF-16 -t UTF-8 makes UTF-8 of it"),
            t->path, 0, MR_NOWHERE);
    return MR_OK;
}

int mri_text_open(mri_text *t, const char *path, mr_error *err) { return mri_text_take(t, -1, path, err); }

int mri_text_take(mri_text *t, int fd, const char *path, mr_error *err)
{
    *t = (mri_text){.path = path, .fd = fd};
    int rc = look_at(t, err);
    if (!rc) rc = prepare_unpack(t, err);
    if (!rc) rc = begin(t, err);
    if (rc) {
        mri_text_close(t);
        mri_error_place(err, rc, path, MR_NOWHERE, MR_NOWHERE);
    }
    return rc;
}

void mri_text_close(mri_text *t)
{
    free(t->buf);
    free(t->unpack);
    if (t->fd > 0) close(t->fd);
    *t = (mri_text){.fd = -1};
}

/* ---- UTF-8 ---- */
/* Bytes of the character at s (end - s > 0), 0: none. */
static size_t character(const uint8_t *s, const uint8_t *end)
{
    static const uint32_t least[] = {0, 0, 0x80, 0x800, 0x10000};
    const size_t n = s[0] < 0x80 ? 1 : s[0] >> 5 == 6 ? 2 : s[0] >> 4 == 14 ? 3 : s[0] >> 3 == 30 ? 4 : 0;
    if (n == 0 || (size_t)(end - s) < n) return 0;
    if (n == 1) return 1;
    uint32_t code = s[0] & (0x7fu >> n);
    for (size_t k = 1; k < n; k++) {
        if (s[k] >> 6 != 2) return 0;
        code = code << 6 | (s[k] & 0x3fu);
    }
    return code < least[n] || code > 0x10ffff || (code >= 0xd800 && code < 0xe000) ? 0 : n;
}

bool mri_is_utf8(const void *text, size_t bytes)
{
    const uint8_t *s = text, *const end = s + bytes;
    while (s < end) {
        const size_t n = character(s, end);
        if (n == 0) return false;
        s += n;
    }
    return true;
}
