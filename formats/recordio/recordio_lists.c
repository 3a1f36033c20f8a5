/* formats/recordio/recordio_lists.c: read .idx and .lst; see recordio_lists.h. They are small compared with
 * the records (some 20 to 100 bytes each), so a file is read whole, under the same budget as all data that a
 * source keeps, and freed once the index of records exists. */
#include "formats/recordio/recordio_lists.h"

#include <errno.h>
#include <fcntl.h>
#include <math.h>
#include <stdio.h>
#include <sys/stat.h>
#include <unistd.h>
#include <xxhash.h>

#include "base/number.h"
#include "base/util.h"
#include "formats/storage/outside.h"

typedef struct text {
    const char *path;
    char *bytes; /* terminated */
    uint64_t size;
    uint32_t lines; /* with something in them */
} text;

/* ---- names ---- */
/* rec_path with its ending (and .gz before it) replaced; malloc'd. */
static char *companion_path(const char *rec_path, const char *ending)
{
    const char *slash = strrchr(rec_path, '/'), *name = slash ? slash + 1 : rec_path;
    size_t len = strlen(rec_path);
    if (len > 3 && strcmp(rec_path + len - 3, ".gz") == 0) len -= 3;
    for (size_t at = len; at > (size_t)(name - rec_path) + 1; at--)
        if (rec_path[at - 1] == '.') {
            len = at - 1;
            break;
        }
    const size_t more = strlen(ending) + 1;
    char *out = malloc(len + more);
    if (!out) return NULL;
    memcpy(out, rec_path, len);
    memcpy(out + len, ending, more);
    return out;
}

static const char *const endings[] = {".idx", ".lst"};

uint64_t mri_rec_lists_fingerprint(const char *rec_path)
{
    uint64_t print = 0;
    for (size_t k = 0; k < MRI_ARRAY_COUNT(endings); k++) {
        char *path = companion_path(rec_path, endings[k]);
        struct stat st;
        if (path && stat(path, &st) == 0) {
            const uint64_t seen[] = {k + 1, (uint64_t)st.st_size, (uint64_t)st.st_mtim.tv_sec,
                                     (uint64_t)st.st_mtim.tv_nsec};
            print = XXH3_64bits_withSeed(seen, sizeof seen, print);
        }
        free(path);
    }
    return print;
}

/* They may have been read when the index was made. */
int mri_rec_lists_note(mr_source *src, const char *rec_path, mr_error *err)
{
    int rc = MR_OK;
    for (size_t k = 0; !rc && k < MRI_ARRAY_COUNT(endings); k++) {
        struct stat st;
        char *path = companion_path(rec_path, endings[k]);
        if (!path) return mr_error_set(err, MR_ENOMEM, "no memory for a path");
        if (stat(path, &st) == 0 && S_ISREG(st.st_mode)) rc = mri_source_add_beside(src, path, err);
        free(path);
    }
    return rc;
}

/* ---- text ---- */
static int wrong_line(mr_error *err, const text *t, const char *line, uint32_t number, const char *expected)
{
    char shown[64];
    if (mri_leads_elsewhere(t->path))
        snprintf(shown, sizeof shown, "another (not quoted: reached through a link)");
    else snprintf(shown, sizeof shown, "\"%.60s\"", line);
    mr_error_set(err, MR_EFORMAT, "line %u: expected %s, found %s: correct or remove the file", number,
                 expected, shown);
    return mri_error_place(err, MR_EFORMAT, t->path, (uint64_t)(line - t->bytes), MR_NOWHERE);
}

static int read_open(text *t, int fd, const mr_source_config *cfg, size_t line_bytes, mr_error *err)
{
    struct stat st;
    if (fstat(fd, &st) != 0) return mr_error_sys(err, errno, "cannot look at it");
    if (!S_ISREG(st.st_mode)) return mr_error_set(err, MR_EFORMAT, "not a regular file");
    t->size = (uint64_t)st.st_size;
    int rc = mri_source_budget(cfg, t->size, t->path, err);
    if (rc) return rc;
    t->bytes = malloc((size_t)t->size + 1);
    if (!t->bytes)
        return mr_error_set(err, MR_ENOMEM, "no memory for %llu bytes of text", (unsigned long long)t->size);
    rc = mri_pread_all(fd, t->bytes, (size_t)t->size, 0, t->path, err);
    if (rc) return rc;
    t->bytes[t->size] = '\0';
    const char *zero = memchr(t->bytes, '\0', (size_t)t->size);
    if (zero) {
        mr_error_set(err, MR_EFORMAT,
                     "expected lines of text, found a zero byte: another kind of file has this name");
        return mri_error_place(err, MR_EFORMAT, t->path, (uint64_t)(zero - t->bytes), MR_NOWHERE);
    }
    uint64_t lines = 1;
    for (const char *p = t->bytes; (p = strchr(p, '\n')); p++) lines++;
    if (lines > UINT32_MAX) return mr_error_set(err, MR_ELIMIT, "more than %u lines", UINT32_MAX);
    t->lines = (uint32_t)lines;
    return mri_source_budget(cfg, t->size + lines * line_bytes, t->path, err);
}

/* A file that is not there is no error: t->bytes stays NULL. Nor is it read when the records themselves have
 * this name. */
static int read_text(text *t, const char *path, const char *rec_path, const mr_source_config *cfg,
                     size_t line_bytes, mr_error *err)
{
    *t = (text){.path = path};
    if (strcmp(path, rec_path) == 0) return MR_OK;
    const int fd = open(path, O_RDONLY | O_CLOEXEC | O_NONBLOCK); /* a pipe of that name: no waiting */
    if (fd < 0)
        return errno == ENOENT ? MR_OK
                               : mri_error_place(err, mr_error_sys(err, errno, "cannot open"), path,
                                                 MR_NOWHERE, MR_NOWHERE);
    int rc = read_open(t, fd, cfg, line_bytes, err);
    close(fd);
    if (!rc) return MR_OK;
    free(t->bytes);
    t->bytes = NULL;
    return mri_error_place(err, rc, path, MR_NOWHERE, MR_NOWHERE);
}

/* Cut the next line that is not blank out of the text; NULL at the end. */
static char *next_line(char **at, uint32_t *number)
{
    while (*at && **at) {
        char *line = *at, *end = strchr(line, '\n');
        *at = end ? end + 1 : NULL;
        (*number)++;
        if (end) *end = '\0';
        else end = line + strlen(line);
        while (end > line && (end[-1] == '\r' || end[-1] == ' ' || end[-1] == '\t')) *--end = '\0';
        if (*line) return line;
    }
    return NULL;
}

/* Digits up to one of `stop`; NULL when the text is not a number or does not fit. */
static const char *take_u64(const char *p, const char *stop, uint64_t *out)
{
    uint64_t v = 0;
    const char *p0 = p;
    for (; *p >= '0' && *p <= '9'; p++)
        if (__builtin_mul_overflow(v, 10u, &v) || __builtin_add_overflow(v, (uint64_t)(*p - '0'), &v))
            return NULL;
    if (p == p0 || (*p && !strchr(stop, *p))) return NULL;
    *out = v;
    return p;
}

/* ---- .idx ---- */
static int by_offset(const void *a, const void *b)
{
    const mri_rec_offset *x = a, *y = b;
    if (x->offset != y->offset) return x->offset < y->offset ? -1 : 1;
    return x->line < y->line ? -1 : x->line > y->line;
}

static int check_offset(const text *t, const mri_rec_offset *o, uint64_t rec_bytes, mr_error *err)
{
    if (o->offset >= rec_bytes)
        mr_error_set(
            err, MR_EFORMAT,
            "line %u: offset %llu lies past the end: expected one below the %llu bytes of the records: they "
            "were cut (copy them again), or this index is of others (make it anew, or remove it)",
            o->line, (unsigned long long)o->offset, (unsigned long long)rec_bytes);
    else if (o->offset % 4)
        mr_error_set(err, MR_EFORMAT,
                     "line %u: expected an offset that is a multiple of 4, found %llu; make "
                     "this index anew, or remove it",
                     o->line, (unsigned long long)o->offset);
    else return MR_OK;
    return mri_error_place(err, MR_EFORMAT, t->path, MR_NOWHERE, MR_NOWHERE);
}

static int parse_idx(mri_rec_lists *l, text *t, uint64_t rec_bytes, mr_error *err)
{
    uint32_t number = 0;
    char *at = t->bytes;
    for (char *line; (line = next_line(&at, &number));) {
        mri_rec_offset *o = &l->offset[l->offset_count];
        *o = (mri_rec_offset){.line = number};
        o->is_number = take_u64(line, "\t ", &o->key) != NULL;
        const char *gap = strpbrk(line, "\t ");
        if (!gap || !take_u64(gap + strspn(gap, "\t "), "", &o->offset))
            return wrong_line(err, t, line, number, "a key, a tab and an offset");
        const int rc = check_offset(t, o, rec_bytes, err);
        if (rc) return rc;
        l->offset_count++;
    }
    qsort(l->offset, (size_t)l->offset_count, sizeof *l->offset, by_offset);
    for (uint64_t k = 1; k < l->offset_count; k++) {
        const mri_rec_offset *a = &l->offset[k - 1], *b = &l->offset[k];
        if (a->offset != b->offset) continue;
        mr_error_set(
            err, MR_EFORMAT,
            "line %u: offset %llu stands in line %u already: expected each record once; make this index "
            "anew, or remove it",
            b->line, (unsigned long long)b->offset, a->line);
        return mri_error_place(err, MR_EFORMAT, t->path, MR_NOWHERE, MR_NOWHERE);
    }
    return MR_OK;
}

static int read_idx(mri_rec_lists *l, const char *rec_path, uint64_t rec_bytes, const mr_source_config *cfg,
                    mr_error *err)
{
    text t;
    int rc = read_text(&t, l->idx_path, rec_path, cfg, sizeof *l->offset, err);
    if (rc || !t.bytes) {
        free(l->idx_path);
        l->idx_path = NULL;
        return rc;
    }
    l->offset = calloc(t.lines, sizeof *l->offset);
    rc = l->offset ? parse_idx(l, &t, rec_bytes, err)
                   : mr_error_set(err, MR_ENOMEM, "no memory for %u offsets", t.lines);
    free(t.bytes);
    return rc;
}

/* ---- .lst ---- */
/* MXNet's im2rec strips what stands round its tabs; so does this, in place. The path may hold blanks. */
static void strip_columns(char *line)
{
    char *to = line;
    for (char *column = line; column;) {
        char *tab = strchr(column, '\t'), *end = tab ? tab : column + strlen(column);
        while (column < end && *column == ' ') column++;
        while (end > column && end[-1] == ' ') end--;
        memmove(to, column, (size_t)(end - column));
        to += end - column;
        if (tab) *to++ = '\t';
        column = tab ? tab + 1 : NULL;
    }
    *to = '\0';
}

static int by_index(const void *a, const void *b)
{
    const mri_rec_entry *x = a, *y = b;
    if (x->index != y->index) return x->index < y->index ? -1 : 1;
    return x->line < y->line ? -1 : x->line > y->line;
}

static int parse_entry(mri_rec_entry *e, const text *t, const char *line, uint32_t number, uint32_t label_at,
                       mr_error *err)
{
    *e = (mri_rec_entry){.label = NAN, .line = number};
    const char *p = take_u64(line, "\t", &e->index), *last = strrchr(line, '\t');
    if (!p || p == last || !*p)
        return wrong_line(err, t, line, number, "a number, labels and a path with tabs between");
    for (uint32_t k = 0; p < last; k++) {
        char *end;
        const double label = mri_strtod(p + 1, &end);
        if (end == p + 1 || *end != '\t')
            return wrong_line(err, t, line, number, "a number, labels and a path with tabs between");
        if (k == label_at) e->label = (double)(float)label; /* as the record has it */
        p = end;
    }
    e->path = last + 1;
    return MR_OK;
}

static int parse_lst(mri_rec_lists *l, text *t, uint32_t label_at, mr_error *err)
{
    uint32_t number = 0;
    char *at = t->bytes;
    for (char *line; (line = next_line(&at, &number));) {
        strip_columns(line);
        const int rc = parse_entry(&l->entry[l->entry_count], t, line, number, label_at, err);
        if (rc) return rc;
        l->entry_count++;
    }
    qsort(l->entry, (size_t)l->entry_count, sizeof *l->entry, by_index);
    for (uint64_t k = 1; k < l->entry_count; k++) {
        const mri_rec_entry *a = &l->entry[k - 1], *b = &l->entry[k];
        if (a->index != b->index) continue;
        mr_error_set(err, MR_EFORMAT,
                     "line %u: number %llu stands in line %u already: expected each picture once; "
                     "correct or remove the list",
                     b->line, (unsigned long long)b->index, a->line);
        return mri_error_place(err, MR_EFORMAT, t->path, MR_NOWHERE, MR_NOWHERE);
    }
    return MR_OK;
}

static int read_lst(mri_rec_lists *l, const char *rec_path, uint32_t label_at, const mr_source_config *cfg,
                    mr_error *err)
{
    text t;
    int rc = read_text(&t, l->lst_path, rec_path, cfg, sizeof *l->entry, err);
    if (rc || !t.bytes) {
        free(l->lst_path);
        l->lst_path = NULL;
        return rc;
    }
    l->entry = calloc(t.lines, sizeof *l->entry);
    rc = l->entry ? parse_lst(l, &t, label_at, err)
                  : mr_error_set(err, MR_ENOMEM, "no memory for %u labels", t.lines);
    l->lst_text = t.bytes;
    return rc;
}

/* ---- both ---- */
int mri_rec_lists_read(mri_rec_lists *out, const char *rec_path, uint64_t rec_bytes, uint32_t label_at,
                       const mr_source_config *cfg, mr_error *err)
{
    *out = (mri_rec_lists){.idx_path = companion_path(rec_path, endings[0]),
                           .lst_path = companion_path(rec_path, endings[1])};
    int rc = out->idx_path && out->lst_path ? MR_OK : mr_error_set(err, MR_ENOMEM, "no memory for a path");
    if (!rc) rc = read_idx(out, rec_path, rec_bytes, cfg, err);
    if (!rc) rc = read_lst(out, rec_path, label_at, cfg, err);
    if (rc) mri_rec_lists_fini(out);
    return rc;
}

void mri_rec_lists_fini(mri_rec_lists *l)
{
    free(l->idx_path);
    free(l->lst_path);
    free(l->offset);
    free(l->entry);
    free(l->lst_text);
    *l = (mri_rec_lists){0};
}

mri_rec_entry *mri_rec_lists_find(const mri_rec_lists *l, uint64_t index)
{
    uint64_t low = 0, high = l->entry_count;
    while (low < high) {
        const uint64_t mid = low + (high - low) / 2;
        if (l->entry[mid].index < index) low = mid + 1;
        else high = mid;
    }
    return low < l->entry_count && l->entry[low].index == index ? &l->entry[low] : NULL;
}
