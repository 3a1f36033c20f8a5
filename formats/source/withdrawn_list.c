/* formats/source/withdrawn_list.c: see withdrawn_list.h. */
#include "formats/source/withdrawn_list.h"

#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <stdarg.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/util.h"
#include "millrace/formats.h"

static const char first_line[] = "millrace withdrawn 1\n";
static const char first_words[] = "millrace withdrawn ";
#define MOST_BYTES ((off_t)1 << 30)
enum { LEAST_LINE = sizeof "0 0 0 0123456789abcdef 0123456789abcdef\tf\t\t" }; /* with its end */

void mri_withdrawn_list_fini(mri_withdrawn_list *l)
{
    free(l->path);
    free(l->text);
    free(l->entry);
    *l = (mri_withdrawn_list){0};
}

int mri_withdrawn_order(const void *a, const void *b)
{
    const mri_withdrawn_entry *x = a, *y = b;
    const int order = strcmp(x->file, y->file);
    if (order) return order;
    if (x->offset != y->offset) return x->offset < y->offset ? -1 : 1;
    return x->bytes < y->bytes ? -1 : x->bytes > y->bytes;
}

uint64_t mri_withdrawn_of_file(const mri_withdrawn_list *l, const char *file, uint64_t *end)
{
    uint64_t low = 0, high = l->count;
    while (low < high) {
        const uint64_t mid = low + (high - low) / 2;
        if (strcmp(l->entry[mid].file, file) < 0) low = mid + 1;
        else high = mid;
    }
    for (*end = low; *end < l->count && strcmp(l->entry[*end].file, file) == 0;) ++*end;
    return low;
}

/* ---- read ---- */
static int wrong(const mri_withdrawn_list *l, uint64_t line, mr_error *err, const char *format, ...)
    MR_PRINTF(4, 5);

static int wrong(const mri_withdrawn_list *l, uint64_t line, mr_error *err, const char *format, ...)
{
    char what[300];
    va_list args;
    va_start(args, format);
    vsnprintf(what, sizeof what, format, args);
    va_end(args);
    mr_error_set(err, MR_EFORMAT,
                 "the list of withdrawn samples is damaged, line %" PRIu64
                 ": %s; copy it from a backup, or remove it and withdraw the samples again",
                 line, what);
    return mri_error_place(err, MR_EFORMAT, l->path, MR_NOWHERE, MR_NOWHERE);
}

/* Opened without waiting: a pipe of this name is no list. */
static int load(mri_withdrawn_list *l, size_t *bytes, mr_error *err)
{
    const int fd = open(l->path, O_RDONLY | O_CLOEXEC | O_NONBLOCK);
    struct stat st;
    *bytes = 0;
    if (fd < 0) {
        const int code = errno;
        if ((code == ENOENT && lstat(l->path, &st) != 0) || code == ENOTDIR) return MR_OK;
        errno = code; /* a link whose file is not here is a list, too */
        const int rc = mr_error_sys(err, errno, "cannot open the list of withdrawn samples");
        return mri_error_place(err, mri_error_denied(err, rc), l->path, MR_NOWHERE, MR_NOWHERE);
    }
    int rc = MR_OK;
    if (fstat(fd, &st) != 0) rc = mr_error_sys(err, errno, "cannot look at the list of withdrawn samples");
    else if (!S_ISREG(st.st_mode)) rc = wrong(l, 1, err, "expected a file, found another thing of this name");
    else if (st.st_size > MOST_BYTES) rc = wrong(l, 1, err, "expected at most 1 GiB");
    else if (!(l->text = malloc((size_t)st.st_size + 1)))
        rc = mr_error_set(err, MR_ENOMEM, "no memory for a list of withdrawn samples");
    else rc = mri_pread_all(fd, l->text, (size_t)st.st_size, 0, l->path, err);
    close(fd);
    if (rc) return mri_error_place(err, rc, l->path, MR_NOWHERE, MR_NOWHERE);
    *bytes = (size_t)st.st_size;
    l->text[*bytes] = '\0';
    if (*bytes == 0) return wrong(l, 1, err, "expected \"%.20s\", found an empty file", first_line);
    return MR_OK;
}

static int hex_digit(char c)
{
    return c >= '0' && c <= '9' ? c - '0' : c >= 'a' && c <= 'f' ? c - 'a' + 10 : -1;
}

static bool number(char **at, int base, char ends, uint64_t *out)
{
    const char *p = *at;
    uint64_t v = 0;
    for (; *p != ends; p++) {
        const int d = hex_digit(*p);
        if (d < 0 || d >= base || __builtin_mul_overflow(v, (uint64_t)base, &v) ||
            __builtin_add_overflow(v, (uint64_t)d, &v))
            return false;
    }
    if (p == *at || (base == 16 && p - *at != 16)) return false;
    *out = v;
    *at += p + 1 - *at;
    return true;
}

/* Up to `ends`, in place. */
static bool text(char **at, char ends, const char **out)
{
    char *to = *at;
    const char *from = *at;
    *out = *at;
    for (; *from != ends; from++) {
        if ((unsigned char)*from < 32 || *from == 127) return false;
        if (*from != '\\') {
            *to++ = *from;
            continue;
        }
        if (from[1] != 'x' || hex_digit(from[2]) < 0 || hex_digit(from[3]) < 0) return false;
        *to = (char)(hex_digit(from[2]) * 16 + hex_digit(from[3]));
        if (*to++ == '\0') return false;
        from += 3;
    }
    *at += from + 1 - *at;
    *to = '\0';
    return true;
}

static bool get_entry(char *at, mri_withdrawn_entry *e)
{
    return number(&at, 10, ' ', &e->number) && number(&at, 10, ' ', &e->offset) &&
           number(&at, 10, ' ', &e->bytes) && number(&at, 16, ' ', &e->stamp) &&
           number(&at, 16, '\t', &e->hash) && text(&at, '\t', &e->file) && text(&at, '\t', &e->name) &&
           text(&at, '\n', &e->reason) && e->file[0] && !strchr(e->file, '/');
}

static int get_lines(mri_withdrawn_list *l, size_t bytes, mr_error *err)
{
    char *line = l->text + sizeof first_line - 1, *const end = l->text + bytes;
    uint64_t at = 2;
    for (char *next; line < end && strncmp(line, "end ", 4) != 0; line = next, at++) {
        mri_withdrawn_entry *e = &l->entry[l->count];
        char *const stop = memchr(line, '\n', (size_t)(end - line));
        if (!stop) return wrong(l, at, err, "expected a line end, found the end of the file");
        next = stop + 1;
        if (!get_entry(line, e))
            return wrong(l, at, err, "expected \"NUMBER OFFSET BYTES STAMP HASH FILE NAME REASON\"");
        if (l->count && mri_withdrawn_order(e - 1, e) >= 0)
            return wrong(l, at, err, "expected samples sorted by file and offset");
        l->count++;
    }
    return MR_OK;
}

/* The last line, with the checksum of the lines above it, is compared first: text() changes lines. */
static int check_end(const mri_withdrawn_list *l, size_t bytes, uint64_t lines, mr_error *err)
{
    size_t at = bytes - 1;
    char expected[96];
    if (l->text[at] != '\n' || strlen(l->text) != bytes)
        return wrong(l, lines, err, "expected a text that ends with a line end: the list is cut");
    while (at > 0 && l->text[at - 1] != '\n') at--;
    snprintf(expected, sizeof expected, "end %" PRIu64 " samples checksum %08x\n", lines - 2,
             mr_crc32c(0, l->text, at));
    if (strcmp(l->text + at, expected) == 0) return MR_OK;
    return wrong(l, lines, err, "expected \"%.80s\", found \"%.80s\"", strtok(expected, "\n"), l->text + at);
}

static int parse(mri_withdrawn_list *l, size_t bytes, mr_error *err)
{
    uint64_t lines = 0;
    if (strncmp(l->text, first_line, sizeof first_line - 1) != 0) {
        if (strncmp(l->text, first_words, sizeof first_words - 1) != 0)
            return wrong(l, 1, err, "expected \"%.20s\"", first_line);
        mr_error_set(
            err, MR_EUNSUPPORTED,
            "a list of withdrawn samples of another version: this program reads version 1; use a newer one");
        return mri_error_place(err, MR_EUNSUPPORTED, l->path, MR_NOWHERE, MR_NOWHERE);
    }
    for (size_t k = 0; k < bytes; k++) lines += l->text[k] == '\n';
    int rc = lines < 2 ? wrong(l, 2, err, "expected the end line: the list is cut")
                       : check_end(l, bytes, lines, err);
    if (rc) return rc;
    l->entry = calloc(bytes / LEAST_LINE + 1, sizeof *l->entry); /* a shorter line is no entry */
    if (!l->entry) return mr_error_set(err, MR_ENOMEM, "no memory for a list of withdrawn samples");
    rc = get_lines(l, bytes, err);
    if (!rc && l->count != lines - 2) rc = wrong(l, l->count + 2, err, "expected the end line last");
    return rc;
}

int mri_withdrawn_list_read(mri_withdrawn_list *l, const char *path, mr_error *err)
{
    size_t bytes;
    *l = (mri_withdrawn_list){.path = strdup(path)};
    if (!l->path) return mr_error_set(err, MR_ENOMEM, "no memory for a list of withdrawn samples");
    const int rc = load(l, &bytes, err);
    return rc || bytes == 0 ? rc : parse(l, bytes, err);
}

/* ---- write ---- */
static void put_text(FILE *f, const char *s)
{
    for (; *s; s++) {
        const unsigned char c = (unsigned char)*s;
        if (c < 32 || c == 127 || c == '\\') fprintf(f, "\\x%02x", c);
        else putc(c, f);
    }
}

int mri_withdrawn_list_write(const mri_withdrawn_entry *entry, uint64_t count, mri_output *out, mr_error *err)
{
    char *all = NULL;
    size_t bytes = 0;
    FILE *f = open_memstream(&all, &bytes);
    if (!f) return mr_error_set(err, MR_ENOMEM, "no memory to write a list of withdrawn samples");
    fputs(first_line, f);
    for (uint64_t k = 0; k < count; k++) {
        const mri_withdrawn_entry *e = &entry[k];
        fprintf(f, "%" PRIu64 " %" PRIu64 " %" PRIu64 " %016" PRIx64 " %016" PRIx64 "\t", e->number,
                e->offset, e->bytes, e->stamp, e->hash);
        put_text(f, e->file);
        putc('\t', f);
        put_text(f, e->name);
        putc('\t', f);
        put_text(f, e->reason);
        putc('\n', f);
    }
    bool good = fflush(f) == 0;
    if (good) fprintf(f, "end %" PRIu64 " samples checksum %08x\n", count, mr_crc32c(0, all, bytes));
    good = fclose(f) == 0 && good;
    int rc = good ? MR_OK : mr_error_set(err, MR_ENOMEM, "no memory to write a list of withdrawn samples");
    if (!rc) rc = mri_pwrite_all(mri_output_fd(out), all, bytes, 0, mri_output_part(out), err);
    free(all);
    return rc;
}
