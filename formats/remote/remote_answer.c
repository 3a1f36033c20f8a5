/* formats/remote/remote_answer.c: interprets a web server's answer. An answer that does not match the request
 * is rejected. */
#include "formats/remote/remote_http.h"

#include <stdio.h>
#include <strings.h>
#include <time.h>

/* ---- lines ---- */
static bool number(const char **at, const char *end, uint64_t *out)
{
    const char *p = *at;
    uint64_t v = 0;
    for (; p < end && *p >= '0' && *p <= '9'; p++)
        if (__builtin_mul_overflow(v, 10, &v) || __builtin_add_overflow(v, (uint64_t)(*p - '0'), &v))
            return false;
    const bool any = p > *at;
    *at = p;
    *out = v;
    return any;
}

static bool is_char(const char **at, const char *end, char c)
{
    if (*at == end || **at != c) return false;
    ++*at;
    return true;
}

/* "bytes 0-99/1234", "bytes 0-99/\*", "bytes *\/1234" */
static void take_range(mri_answer *a, const char *p, const char *end)
{
    a->range_first = 1, a->range_last = 0, a->range_total = UINT64_MAX;
    if (end - p < 6 || strncasecmp(p, "bytes ", 6) != 0) return;
    p += 6;
    const bool none = is_char(&p, end, '*');
    if (!none &&
        (!number(&p, end, &a->range_first) || !is_char(&p, end, '-') || !number(&p, end, &a->range_last)))
        return;
    if (!is_char(&p, end, '/')) return;
    a->has_range = is_char(&p, end, '*') || number(&p, end, &a->range_total);
}

static void take_text(char *out, size_t out_bytes, const char *p, const char *end)
{
    snprintf(out, out_bytes, "%.*s", (int)mri_min_u64((uint64_t)(end - p), out_bytes), p);
}

static bool named(const char *line, size_t name_bytes, const char *name)
{
    return strlen(name) == name_bytes && strncasecmp(line, name, name_bytes) == 0;
}

void mri_answer_line(mri_answer *a, const char *line, size_t bytes)
{
    const char *end = line + bytes, *colon = memchr(line, ':', bytes);
    if (bytes > 5 && strncmp(line, "HTTP/", 5) == 0) { /* another answer begins: 100-continue, a redirect's
                                                          target */
        *a = (mri_answer){0};
        return;
    }
    if (!colon) return;
    const size_t name = (size_t)(colon - line);
    const char *p = colon + 1;
    while (p < end && (*p == ' ' || *p == '\t')) p++;
    while (end > p && (end[-1] == '\r' || end[-1] == '\n' || end[-1] == ' ')) end--;
    if (named(line, name, "content-range")) take_range(a, p, end);
    else if (named(line, name, "content-length")) a->has_length = number(&p, end, &a->length) && p == end;
    else if (named(line, name, "etag")) take_text(a->etag, sizeof a->etag, p, end);
    else if (named(line, name, "last-modified")) take_text(a->changed, sizeof a->changed, p, end);
    else if (named(line, name, "date")) take_text(a->date, sizeof a->date, p, end);
    else if (named(line, name, "content-encoding"))
        a->packed = !(end - p == 8 && strncasecmp(p, "identity", 8) == 0);
    else if (named(line, name, "retry-after") && !(number(&p, end, &a->retry_after_s) && p == end))
        a->retry_after_s = 0; /* a date */
}

/* ---- judgement ---- */
static bool refused(mri_transfer *t, int code)
{
    t->verdict = code;
    return false;
}

static bool judge_status(mri_transfer *t)
{
    const long status = t->answer.status;
    if (status == 401 || status == 403 || status == 407) {
        mr_error_set(
            &t->why, MR_EIO,
            "the server answers %ld: it wants other credentials (user and password can stand in the URL)",
            status);
        return refused(t, MR_EIO);
    }
    if (status == 404 || status == 410) {
        mr_error_set(&t->why, MR_ENOENT, "the server answers %ld: it has no such file", status);
        return refused(t, MR_ENOENT);
    }
    if (status == 416) {
        mr_error_set(&t->why, MR_EFORMAT, "the server answers 416: it has no bytes at offset %llu%s",
                     (unsigned long long)t->at, t->question ? "" : ", was the file changed while in use?");
        return refused(t, MR_EFORMAT);
    }
    mr_error_set(&t->why, MR_EIO, "the server answers %ld", status);
    return status == 408 || status == 425 || status == 429 || status >= 500 ? false : refused(t, MR_EIO);
}

static void version_of(const mri_answer *a, char *out, size_t out_bytes)
{
    snprintf(out, out_bytes, "%s%s%s", a->etag, a->etag[0] || a->changed[0] ? "\n" : "", a->changed);
}

/* "Sun, 06 Nov 1994 08:49:37 GMT" in seconds; -1 for anything else. */
static int64_t seconds_of(const char *date)
{
    static const char months[] = "JanFebMarAprMayJunJulAugSepOctNovDec";
    struct tm t = {0};
    char month[4];
    if (sscanf(date, "%*3[A-Za-z], %2d %3s %4d %2d:%2d:%2d GMT", &t.tm_mday, month, &t.tm_year, &t.tm_hour,
               &t.tm_min, &t.tm_sec) != 6)
        return -1;
    const char *at = strlen(month) == 3 ? strstr(months, month) : NULL;
    if (!at || (at - months) % 3 != 0 || t.tm_year < 1970) return -1;
    t.tm_mon = (int)(at - months) / 3;
    t.tm_year -= 1900;
    return timegm(&t);
}

/* Do two answers of this version have the same bytes, so that pieces of them fit each other? An ETag says so
 * unless it is a weak one; a time of change does once its second is over by the same clock (RFC 9110, 8.8).
 */
static bool is_sure(const mri_answer *a)
{
    if (a->etag[0] && strncmp(a->etag, "W/", 2) != 0 && strlen(a->etag) + 1 < sizeof a->etag) return true;
    const int64_t changed = seconds_of(a->changed), date = seconds_of(a->date);
    return changed >= 0 && date > changed;
}

/* Each block has its place in memory (32 MiB a TiB), and a server may say any number. */
#define MOST_BYTES ((uint64_t)1 << 42)

static bool too_large(mri_transfer *t, uint64_t bytes)
{
    mr_error_set(&t->why, MR_ELIMIT, "the server says it has %llu bytes; up to %llu are taken",
                 (unsigned long long)bytes, (unsigned long long)MOST_BYTES);
    return refused(t, MR_ELIMIT);
}

static bool judge_question(mri_transfer *t)
{
    mri_remote_file *f = t->file;
    const mri_answer *a = &t->answer;
    const bool empty = a->status == 416 && a->has_range && a->range_total == 0;
    if (!empty && a->status != 200 && a->status != 206) return judge_status(t);
    if (a->status == 206 &&
        (!a->has_range || a->range_first != 0 || a->range_last != 0 || a->range_total == UINT64_MAX)) {
        mr_error_set(
            &t->why, MR_EFORMAT,
            "the server answers 206 to a question for the first byte without saying how many there are");
        return refused(t, MR_EFORMAT);
    }
    if (a->status == 200 && !a->has_length) {
        mr_error_set(&t->why, MR_EUNSUPPORTED,
                     "the server knows no ranges (it answers 200) and does not say how large the file is: "
                     "download it, and open the copy");
        return refused(t, MR_EUNSUPPORTED);
    }
    const uint64_t bytes = empty ? 0 : a->status == 200 ? a->length : a->range_total;
    if (bytes > MOST_BYTES) return too_large(t, bytes);
    f->one_answer = !is_sure(a);
    f->whole_only = a->status == 200 || f->one_answer;
    f->bytes = bytes;
    version_of(a, f->version, sizeof f->version);
    return true;
}

static bool judge_range(mri_transfer *t)
{
    const mri_remote_file *f = t->file;
    const mri_answer *a = &t->answer;
    const bool whole = a->status == 200;
    char version[sizeof f->version];
    if (whole && (t->at != 0 || t->end != f->bytes)) {
        mr_error_set(
            &t->why, MR_EIO,
            "the server answers 200, the whole file, to a request for a range; before it knew ranges");
        return false;
    }
    version_of(a, version, sizeof version);
    const uint64_t total = whole          ? (a->has_length ? a->length : UINT64_MAX)
                           : a->has_range ? a->range_total
                                          : UINT64_MAX;
    if (strcmp(version, f->version) != 0 || (total != UINT64_MAX && total != f->bytes)) {
        mr_error_set(
            &t->why, MR_EFORMAT,
            "the file was changed on the server since it was opened: expected %llu bytes of version %.100s, "
            "found %llu bytes of version %.100s; begin again",
            (unsigned long long)f->bytes, f->version[0] ? f->version : "(none)", (unsigned long long)total,
            version[0] ? version : "(none)");
        for (char *c = t->why.text; *c; c++)
            if (*c == '\n') *c = ' ';
        return refused(t, MR_EFORMAT);
    }
    if (!whole && a->has_range && a->has_length && a->range_last >= a->range_first &&
        a->length != a->range_last - a->range_first + 1) {
        mr_error_set(&t->why, MR_EFORMAT, "the server contradicts itself: bytes %llu-%llu are not %llu",
                     (unsigned long long)a->range_first, (unsigned long long)a->range_last,
                     (unsigned long long)a->length);
        return false;
    }
    if (whole ||
        (a->has_range && a->range_first == t->at && a->range_last >= t->at && a->range_last < t->end))
        return true;
    mr_error_set(&t->why, MR_EFORMAT,
                 "the server answers with other bytes: expected %llu-%llu, found %llu-%llu",
                 (unsigned long long)t->at, (unsigned long long)t->end - 1,
                 (unsigned long long)a->range_first, (unsigned long long)a->range_last);
    return false;
}

bool mri_answer_judge(mri_transfer *t)
{
    const mri_answer *a = &t->answer;
    if (a->packed && (a->status == 200 || a->status == 206)) {
        mr_error_set(&t->why, MR_EUNSUPPORTED,
                     "the server packs the file on its way (Content-Encoding): have it sent as it is");
        return refused(t, MR_EUNSUPPORTED);
    }
    if (t->question) return judge_question(t);
    return a->status == 200 || a->status == 206 ? judge_range(t) : judge_status(t);
}
