/* formats/text/csv.c: see csv.h. */
#include "formats/text/csv.h"

#include <stdlib.h>
#include <string.h>
#include <strings.h>

#include "base/util.h"
#include "formats/text/json_rows.h"

/* ---- the separator ---- */
enum { LINES_LOOKED_AT = 8 };
static const char separators[] = {'\t', ',', ';', '|'};
enum { BAR = 3 }; /* only where there is no other: it stands between labels, too */
enum { BLANK = ' ' };

typedef struct tally { /* of one separator over the first lines */
    uint32_t first, line;
    bool same;
} tally;

static void end_line(tally *t, bool first)
{
    for (size_t k = 0; k < MRI_ARRAY_COUNT(separators); k++) {
        if (first) t[k].first = t[k].line;
        else t[k].same &= t[k].first == t[k].line;
        t[k].line = 0;
    }
}

char mri_csv_separator(const uint8_t *head, size_t bytes)
{
    tally t[MRI_ARRAY_COUNT(separators)] = {{0, 0, true}, {0, 0, true}, {0, 0, true}, {0, 0, true}};
    uint32_t lines = 0;
    bool quoted = false, empty = true;
    const bool blanks = bytes && memchr(head, BLANK, bytes);
    for (size_t at = 0; at < bytes && lines < LINES_LOOKED_AT; at++) {
        const uint8_t b = head[at];
        if (b == '"') quoted = !quoted;
        if (quoted) continue;
        if (b == '\n' || b == '\r') {
            if (!empty) end_line(t, lines++ == 0);
            empty = true;
            continue;
        }
        empty = false;
        for (size_t k = 0; k < MRI_ARRAY_COUNT(separators); k++) t[k].line += b == (uint8_t)separators[k];
    }
    if (lines == 0) end_line(t, true); /* one line without its end */
    size_t best = 1;
    if (t[0].first + t[1].first + t[2].first == 0 && t[BAR].first > 0) return separators[BAR];
    if (t[0].first + t[1].first + t[2].first == 0 && blanks) return BLANK;
    for (int want_same = 1; want_same >= 0; want_same--) {
        uint32_t most = 0;
        for (size_t k = 0; k < BAR; k++)
            if (t[k].same >= want_same && t[k].first > most) most = t[best = k].first;
        if (most > 0) break;
    }
    return separators[best];
}

/* ---- open ---- */
int mri_csv_open(mri_csv *c, const char *path, mr_error *err) { return mri_csv_take(c, -1, path, err); }

int mri_csv_take(mri_csv *c, int fd, const char *path, mr_error *err)
{
    *c = (mri_csv){0};
    const int rc = mri_text_take(&c->text, fd, path, err);
    if (rc) return rc;
    c->json.on = mri_json_begins(c->text.at, (size_t)(c->text.end - c->text.at));
    c->separator = mri_csv_separator(c->text.at, (size_t)(c->text.end - c->text.at));
    return MR_OK;
}

void mri_csv_close(mri_csv *c)
{
    mri_text_close(&c->text);
    mri_json_fini(&c->json);
    free(c->place);
    free(c->row);
    c->place = NULL;
    c->row = NULL;
}

/* ---- one row ---- */
static int no_memory(mr_error *err) { return mr_error_set(err, MR_ENOMEM, "no memory for a row of a table"); }

static int too_long(const mri_csv *c, mr_error *err, uint64_t quote_line)
{
    if (quote_line)
        return mri_text_error_at(&c->text, err, MR_EFORMAT, quote_line,
                                 "a quote that is opened here is not closed within %d bytes",
                                 MRI_CSV_ROW_BYTES);
    return mri_text_error_at(&c->text, err, MR_ELIMIT, c->line, "the row is longer than %d bytes",
                             MRI_CSV_ROW_BYTES);
}

static int put(mri_csv *c, const void *bytes, size_t n, uint64_t quote_line, mr_error *err)
{
    if (n > MRI_CSV_ROW_BYTES - c->row_bytes) return too_long(c, err, quote_line);
    if (n > c->row_cap - c->row_bytes) {
        size_t cap = c->row_cap ? c->row_cap : 4096;
        while (cap - c->row_bytes < n) cap *= 2;
        char *larger = realloc(c->row, cap);
        if (!larger) return no_memory(err);
        c->row = larger;
        c->row_cap = cap;
    }
    memcpy(c->row + c->row_bytes, bytes, n);
    c->row_bytes += n;
    return MR_OK;
}

static int begin_place(mri_csv *c, mr_error *err)
{
    if (c->count == MRI_CSV_FIELDS)
        return mri_text_error_at(&c->text, err, MR_ELIMIT, c->line, "the row has more than %d places",
                                 MRI_CSV_FIELDS);
    if (c->count == c->place_cap) {
        const uint32_t cap = c->place_cap ? 2 * c->place_cap : 16;
        uint32_t *larger = realloc(c->place, cap * sizeof *larger);
        if (!larger) return no_memory(err);
        c->place = larger;
        c->place_cap = cap;
    }
    c->place[c->count++] = (uint32_t)c->row_bytes;
    return MR_OK;
}

static int end_place(mri_csv *c, mr_error *err)
{
    const size_t bytes = c->row_bytes - c->place[c->count - 1];
    if (bytes == 0) return put(c, "", 1, 0, err); /* row may be NULL still */
    const char *text = c->row + c->place[c->count - 1];
    if (memchr(text, '\0', bytes))
        return mri_text_error_at(&c->text, err, MR_EFORMAT, c->line,
                                 "a NUL byte: this is no text, or it is damaged");
    if (!mri_is_utf8(text, bytes))
        return mri_text_error_at(&c->text, err, MR_EFORMAT, c->line,
                                 "bytes that are no UTF-8: save the table as UTF-8 "
                                 "(iconv -f LATIN1 -t UTF-8, where it is that)");
    return put(c, "", 1, 0, err);
}

/* The next byte without taking it; -1 at the end of the file. */
static int peek(mri_csv *c, int *byte, mr_error *err)
{
    const int rc = c->text.at < c->text.end ? MR_OK : mri_text_more(&c->text, err);
    *byte = rc == MR_OK ? *c->text.at : -1;
    return rc == MR_EEND ? MR_OK : rc;
}

static int take_line_end(mri_csv *c, int byte, mr_error *err)
{
    if (byte < 0) return MR_OK;
    c->text.at++;
    c->text.line++;
    if (byte == '\n') return MR_OK;
    const int rc = peek(c, &byte, err);
    if (!rc && byte == '\n') c->text.at++;
    return rc;
}

/* Bytes of this piece up to one that means something inside quotes. */
static size_t quoted_run(const mri_csv *c)
{
    const uint8_t *p = c->text.at;
    while (p < c->text.end && *p != '"' && *p != '\n') p++;
    return (size_t)(p - c->text.at);
}

static int take_quoted(mri_csv *c, mr_error *err)
{
    const uint64_t opened = c->text.line;
    c->text.at++;
    for (;;) {
        int byte, rc = peek(c, &byte, err);
        if (rc) return rc;
        if (byte < 0)
            return mri_text_error_at(&c->text, err, MR_EFORMAT, opened,
                                     "a quote that is opened here is never closed");
        const size_t n = quoted_run(c);
        rc = n > 0 ? put(c, c->text.at, n, opened, err) : MR_OK;
        if (rc) return rc;
        c->text.at += n;
        if (c->text.at == c->text.end) continue;
        byte = *c->text.at++;
        if (byte == '\n') c->text.line++;
        if (byte == '"') {
            rc = peek(c, &byte, err);
            if (rc || byte != '"') return rc;
            c->text.at++;
        }
        const char one = (char)byte;
        rc = put(c, &one, 1, opened, err);
        if (rc) return rc;
    }
}

static bool ends_place(const mri_csv *c, int byte)
{
    return byte < 0 || (byte == c->separator && byte != BLANK) || byte == '\n' || byte == '\r';
}

static int take_plain(mri_csv *c, mr_error *err)
{
    for (;;) {
        int byte, rc = peek(c, &byte, err);
        if (rc || ends_place(c, byte)) return rc;
        const uint8_t *p = c->text.at;
        while (p < c->text.end && !ends_place(c, *p)) p++;
        rc = put(c, c->text.at, (size_t)(p - c->text.at), 0, err);
        if (rc) return rc;
        c->text.at = p;
    }
}

static int take_place(mri_csv *c, int *ended_by, mr_error *err)
{
    int rc = begin_place(c, err);
    if (!rc) rc = peek(c, ended_by, err);
    if (!rc) rc = *ended_by == '"' ? take_quoted(c, err) : take_plain(c, err);
    if (!rc) rc = peek(c, ended_by, err);
    if (rc) return rc;
    if (!ends_place(c, *ended_by))
        return mri_text_error_at(&c->text, err, MR_EFORMAT, c->text.line,
                                 "text after a closing quote: a quote inside quotes is "
                                 "written twice");
    return end_place(c, err);
}

int mri_csv_put(mri_csv *c, const char *text, size_t bytes, mr_error *err)
{
    int rc = begin_place(c, err);
    if (!rc && bytes) rc = put(c, text, bytes, 0, err);
    return rc ? rc : end_place(c, err);
}

int mri_csv_single(const mri_csv *c, uint32_t at, const char *what, mr_error *err)
{
    if (at >= MRI_JSON_KEYS || !((c->json.nested | c->json.large) >> at & 1)) return MR_OK;
    if (c->json.large >> at & 1)
        return mri_text_error_at(
            &c->text, err, MR_EFORMAT, c->line,
            "the %s in column %u is a number of more than 53 bits, which JSON does not keep: "
            "write it as a text",
            what, at + 1);
    return mri_text_error_at(&c->text, err, MR_EFORMAT, c->line,
                             "the %s in column %u is a list or an object: expected one text or number", what,
                             at + 1);
}

/* "my cat.jpg 0": the last blank of the line separates. */
static int split_at_blank(mri_csv *c, mr_error *err)
{
    char *text = c->row + c->place[0];
    size_t n = c->row_bytes - c->place[0] - 1;
    while (n && text[n - 1] == BLANK) n--;
    size_t last = n;
    while (last && text[last - 1] != BLANK) last--;
    if (last == 0 || n == 0) return MR_OK;
    text[n] = '\0';
    c->row_bytes = c->place[0] + n + 1;
    const int rc = begin_place(c, err);
    c->place[c->count - 1] = c->place[0] + (uint32_t)last;
    while (last && text[last - 1] == BLANK) text[--last] = '\0';
    return rc;
}

int mri_csv_next(mri_csv *c, mr_error *err)
{
    int byte, rc;
    if (c->json.on) return mri_json_next(c, err);
    for (;;) { /* empty lines */
        rc = peek(c, &byte, err);
        if (rc) return rc;
        if (byte < 0) return MR_EEND;
        if (byte != '\n' && byte != '\r') break;
        rc = take_line_end(c, byte, err);
        if (rc) return rc;
    }
    c->count = 0;
    c->row_bytes = 0;
    c->line = c->text.line;
    for (;;) {
        rc = take_place(c, &byte, err);
        if (rc) return rc;
        if (!rc && c->separator == BLANK) rc = split_at_blank(c, err);
        if (rc) return rc;
        if (byte != c->separator) return take_line_end(c, byte, err);
        c->text.at++;
    }
}

/* ---- names of columns ---- */
int mri_csv_find_name(const mri_csv *c, const char *name, size_t name_bytes)
{
    int found = -1;
    for (uint32_t k = 0; k < c->count; k++) {
        size_t bytes;
        const char *text = mri_csv_trimmed(mri_csv_place(c, k), &bytes);
        if (bytes != name_bytes || strncasecmp(text, name, bytes) != 0) continue;
        if (memcmp(text, name, bytes) == 0) return (int)k;
        if (found < 0) found = (int)k;
    }
    return found;
}

int mri_csv_named_once(const mri_csv *c, uint32_t at, bool asked, const char *option, mr_error *err)
{
    size_t bytes, other_bytes;
    const char *name = mri_csv_trimmed(mri_csv_place(c, at), &bytes);
    for (uint32_t k = 0; k < c->count; k++) {
        const char *other = mri_csv_trimmed(mri_csv_place(c, k), &other_bytes);
        if (k != at && other_bytes == bytes &&
            (asked ? memcmp(name, other, bytes) : strncasecmp(name, other, bytes)) == 0)
            return mri_text_error_at(
                &c->text, err, MR_EFORMAT, c->line,
                "columns %u and %u are both called %.*s: rename one, or name one by its number (%s %u)",
                at + 1, k + 1, (int)mri_min_u64(bytes, 80), name, option, at + 1);
    }
    return MR_OK;
}
