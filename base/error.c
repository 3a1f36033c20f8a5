/* base/error.c: the error record. Text only; nothing here allocates, so errors can be reported without
 * memory. */
#include <errno.h>
#include <stdarg.h>
#include <stdio.h>

#include "base/utf8.h"
#include "base/util.h"

static const char *const status_texts[] = {
    [0] = "ok",
    [1] = "end of stream",
    [2] = "nothing ready yet",
    [3] = "canceled",
    [4] = "out of memory",
    [5] = "invalid argument",
    [6] = "input/output error",
    [7] = "malformed data",
    [8] = "checksum mismatch",
    [9] = "not supported",
    [10] = "not found",
    [11] = "already exists",
    [12] = "over a limit",
    [13] = "device error",
    [14] = "bad sample",
    [15] = "another process failed",
    [16] = "in use",
};

int mri_error_of_program(mr_error *why, int status, const char *who)
{
    int rc = status;
    if (status == MR_OK) return MR_OK;
    if (status > 0 || status == MR_EEND || status == MR_EAGAIN)
        rc = mr_error_set(why, MR_EINVAL,
                          "%s returned %d: expected MR_OK or the code of an error, such as MR_EIO (%d)", who,
                          status, MR_EIO);
    else if (why->code != status) mr_error_set(why, status, "%s failed, and did not say why", who);
    why->host = status;
    return rc;
}

const char *mr_status_text(int code)
{
    const int at = -code;
    if (at < 0 || at >= (int)MRI_ARRAY_COUNT(status_texts)) return "unknown status";
    return status_texts[at];
}

const char *mr_version(void) { return MR_VERSION_TEXT; }

static void clear_place(mr_error *err)
{
    err->sys_errno = 0;
    err->host = 0;
    err->offset = MR_NOWHERE;
    err->sample = MR_NOWHERE;
    err->file[0] = '\0';
}

int mr_error_set(mr_error *err, int code, const char *format, ...)
{
    if (!err) return code;
    clear_place(err);
    err->code = code;
    va_list args;
    va_start(args, format);
    if (format) vsnprintf(err->text, sizeof err->text, format, args);
    else err->text[0] = '\0';
    va_end(args);
    return code;
}

int mr_error_sys(mr_error *err, int sys_errno, const char *format, ...)
{
    const int code = sys_errno == ENOENT   ? MR_ENOENT
                     : sys_errno == EEXIST ? MR_EEXIST
                     : sys_errno == ENOMEM ? MR_ENOMEM
                                           : MR_EIO;
    if (!err) return code;
    clear_place(err);
    err->code = code;
    err->sys_errno = sys_errno;
    va_list args;
    va_start(args, format);
    int at = format ? vsnprintf(err->text, sizeof err->text, format, args) : 0;
    if (!format) err->text[0] = '\0';
    va_end(args);
    if (at < 0) at = 0;
    if ((size_t)at < sizeof err->text) {
        char reason[128];
        /* the GNU variant returns a pointer that may not be the buffer */
        const char *text = strerror_r(sys_errno, reason, sizeof reason);
        snprintf(err->text + at, sizeof err->text - (size_t)at, ": %s", text);
    }
    return code;
}

int mr_error_at(mr_error *err, const char *file, uint64_t offset, uint64_t sample)
{
    if (!err) return MR_OK;
    if (file) {
        const size_t len = strlen(file), room = sizeof err->file - 1;
        if (len <= room) {
            memcpy(err->file, file, len + 1);
        } else { /* the end of a path is more useful than its start */
            memcpy(err->file, "...", 3);
            memcpy(err->file + 3, file + len - (room - 3), room - 3 + 1);
        }
    }
    if (offset != MR_NOWHERE) err->offset = offset;
    if (sample != MR_NOWHERE) err->sample = sample;
    return err->code;
}

/* Of one file among many; all else would go on failing. */
static bool of_one_file(int sys_errno)
{
    return sys_errno == ELOOP || sys_errno == ENOTDIR || sys_errno == EISDIR || sys_errno == ENAMETOOLONG ||
           sys_errno == ENXIO;
}

bool mr_error_of_sample(int code, const mr_error *err)
{
    const int sys_errno = err && err->code == code ? err->sys_errno : 0;
    switch (code) {
    case MR_EFORMAT:
    case MR_ECHECKSUM:
    case MR_EUNSUPPORTED:
    case MR_ENOENT: return true;
    case MR_ELIMIT: return sys_errno != ENOMEM;
    case MR_EIO: return of_one_file(sys_errno);
    default: return false;
    }
}

int mri_error_place(mr_error *err, int code, const char *path, uint64_t offset, uint64_t sample)
{
    mr_error_at(err, path, offset, sample);
    return code;
}

int mri_error_denied(mr_error *err, int code)
{
    if (!err || (err->sys_errno != EACCES && err->sys_errno != EPERM)) return code;
    const size_t at = strlen(err->text);
    snprintf(err->text + at, sizeof err->text - at,
             "; let this user read it (chmod), run as one who may, or take it out of the data");
    return code;
}

typedef struct text_out {
    char *buf;
    size_t cap, at;
} text_out;

static void put_char(text_out *o, char c)
{
    if (o->at + 1 < o->cap) o->buf[o->at++] = c;
}

/* mri_utf8_bytes() when a terminal may show the character, else 0: control characters, U+0080 to U+009F among
 * them. */
static size_t shown_bytes(const unsigned char *s)
{
    if (s[0] < 0x20 || s[0] == 0x7f || (s[0] == 0xc2 && s[1] < 0xa0)) return 0;
    return mri_utf8_bytes(s);
}

static void put_text(text_out *o, const char *text)
{
    static const char hex[] = "0123456789abcdef";
    for (const unsigned char *s = (const unsigned char *)text; *s;) {
        const size_t n = shown_bytes(s);
        if (n == 0) {
            put_char(o, '\\');
            put_char(o, 'x');
            put_char(o, hex[*s >> 4]);
            put_char(o, hex[*s & 15]);
            s++;
        }
        for (size_t k = 0; k < n; k++) put_char(o, (char)*s++);
    }
}

char *mr_text_shown(const char *text, char *buf, size_t buf_bytes)
{
    if (!buf || buf_bytes == 0) return buf;
    text_out o = {buf, buf_bytes, 0};
    if (text) put_text(&o, text);
    buf[o.at] = '\0';
    return buf;
}

char *mr_error_format(const mr_error *err, char *buf, size_t buf_bytes)
{
    if (!buf || buf_bytes == 0) return buf;
    text_out o = {buf, buf_bytes, 0};
    char number[64];
    if (!err) {
        buf[0] = '\0';
        return buf;
    }
    if (err->file[0]) {
        put_text(&o, err->file);
        put_text(&o, ": ");
    }
    if (err->sample != MR_NOWHERE) {
        snprintf(number, sizeof number, "sample %llu", (unsigned long long)err->sample);
        put_text(&o, number);
        put_text(&o, err->offset != MR_NOWHERE ? ", " : ": ");
    }
    if (err->offset != MR_NOWHERE) {
        snprintf(number, sizeof number, "offset %llu: ", (unsigned long long)err->offset);
        put_text(&o, number);
    }
    put_text(&o, err->text[0] ? err->text : mr_status_text(err->code));
    buf[o.at] = '\0';
    return buf;
}
