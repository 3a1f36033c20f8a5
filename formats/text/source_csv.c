/* formats/text/source_csv.c: a table of picture files and their classes.
 *
 *   path,label              the first line names the columns, where one of its places is a usual name or the
 *                           one asked for;
 *   cats/0001.jpg,cat       else columns have numbers only, from 1, and the picture is in 1, the class in 2
 *   dogs/0001.jpg,dog
 *
 * Paths are relative to the table's folder. Who wrote the table does not choose which files of this machine
 * are read: paths that lead out of the folder, by / or ../ or a link, are refused, or taken when that is
 * asked for; how many is then told, and nothing of their contents is quoted. Classes are all integers, or all
 * names, which are numbered in the order of their bytes; a mixture is refused. Columns of numbers may become
 * a further field (table_numbers.h); such a table needs no classes. Spaces around a place do not
 * count. Each sample is a file of its own, as in source_folder.c: one that is not there or too large is a bad
 * sample, found when it is asked for. A file named twice is refused: it would count twice, or have two
 * classes.
 *
 * A table as Kaggle has it names its pictures without folder and ending, in a column called id:
 * table_place.h.
 *
 * A column may say which part a row is of: table_parts.h.
 *
 * A folder may stand for the tables in it: train.csv and val.csv, or train/ and val/ with one each
 * (filelist.h); one for each part.
 *
 * Kept for each sample: its path, and 4 bytes each for where that is, size, line and class. */
#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <stdio.h>
#include <strings.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <unistd.h>
#include <xxhash.h>

#if __has_include(<linux/openat2.h>)
#include <linux/openat2.h>
#endif

#include "base/util.h"
#include "formats/fileset/fileset.h"
#include "formats/source/classes.h"
#include "formats/source/names.h"
#include "formats/source/number_rows.h"
#include "formats/source/source.h"
#include "formats/source/value.h"
#include "formats/text/csv.h"
#include "formats/text/table_numbers.h"
#include "formats/text/table_parts.h"
#include "formats/text/table_place.h"
#include "formats/text/tables.h"

/* As for folders: a larger file is no picture. */
#define MOST_PICTURE_BYTES ((uint64_t)256 << 20)
/* in place of a size */
enum { NOT_THERE = UINT32_MAX, TOO_LARGE = UINT32_MAX - 1 };

typedef struct table {
    mri_names paths; /* numbered like the samples */
    uint32_t *size, *line;
    int32_t *label; /* while reading: number in classes */
    uint32_t cap;
    mri_names classes;    /* in order of appearance */
    uint32_t *class_line; /* where each appears first */
    uint32_t class_cap;
    const char **class_names; /* in order of number; NULL when they are integers */
    size_t folder_bytes;      /* of src->path, its last slash included */
    int folder;               /* open while reading, else -1 */
    uint32_t image, column_label, columns;
    bool labelled;
    mri_table_numbers numbers;
    mri_table_parts parts;
    bool lone; /* no table of other parts lies beside it */
    mri_rows targets;
    uint64_t missing, missing_line, outside;
    char *real_folder; /* without links; NULL until it is needed, and after reading */
    bool placed;       /* the pictures lie at `place`, as no file the table names is there */
    mri_table_place place;
    char report_text[1024];
} table;

/* ---- which columns ---- */
static const char *const image_names[] = {"path",      "file",      "filename",   "image", "filepath",
                                          "file_path", "file_name", "image_path", "img"};
/* Kaggle's: names without folder and ending. Only where no column has a name of those above. */
static const char *const id_names[] = {"id", "image_id", "id_code", "image_name", "img_id", "uuid"};
static const char *const label_names[] = {"label",      "class",  "target", "category",
                                          "class_name", "labels", "y"};

static bool is_name(const char *place, const char *name)
{
    size_t n;
    const char *text = mri_csv_trimmed(place, &n);
    return n == strlen(name) && strncasecmp(text, name, n) == 0;
}

static int find_column(const mri_csv *c, const char *name)
{
    for (uint32_t k = 0; k < c->count; k++)
        if (is_name(mri_csv_place(c, k), name)) return (int)k;
    return -1;
}

static int find_usual(const mri_csv *c, const char *const *names, size_t count)
{
    for (size_t k = 0; k < count; k++) {
        const int at = find_column(c, names[k]);
        if (at >= 0) return at;
    }
    return -1;
}

static bool is_number(const char *key) { return key && *key && strspn(key, "0123456789") == strlen(key); }

static int find_key(const mri_csv *c, const char *key, const char *const *names, size_t count)
{
    return key && !is_number(key) ? find_column(c, key) : find_usual(c, names, count);
}

/* "a, b, c" of a header, for messages. */
static const char *columns_text(const mri_csv *c, char *buf, size_t buf_bytes)
{
    size_t at = 0;
    buf[0] = '\0';
    for (uint32_t k = 0; k < c->count && at < buf_bytes; k++)
        at += (size_t)snprintf(buf + at, buf_bytes - at, "%s%.40s", k ? ", " : "", mri_csv_place(c, k));
    return buf;
}

static int choose_column(const mri_csv *c, const char *key, int found, uint32_t fallback, bool header,
                         const char *what, const char *option, uint32_t *out, mr_error *err)
{
    char buf[256];
    if (is_number(key)) {
        const unsigned long number = strlen(key) < 9 ? strtoul(key, NULL, 10) : 0;
        if (number < 1 || number > c->count)
            return mri_text_error_at(&c->text, err, MR_EINVAL, c->line,
                                     "%s in column %s: there are columns 1 to %u", what, key, c->count);
        *out = (uint32_t)number - 1;
        return MR_OK;
    }
    if (found >= 0) *out = (uint32_t)found;
    else if (header || key)
        return mri_text_error_at(&c->text, err, MR_EFORMAT, c->line,
                                 "no column %s%s for the %s; there are: %s; name the one to take (%s)",
                                 key ? "named " : "with a usual name", key ? key : "", what,
                                 columns_text(c, buf, sizeof buf), option);
    else *out = fallback;
    return MR_OK;
}

/* From the first row; *header: it holds names, no sample. */
static int choose_columns(table *t, const mri_csv *c, const mr_source_config *cfg, bool *header,
                          mr_error *err)
{
    int image = find_key(c, cfg->image_key, image_names, MRI_ARRAY_COUNT(image_names));
    if (image < 0 && !cfg->image_key) image = find_usual(c, id_names, MRI_ARRAY_COUNT(id_names));
    int label = find_key(c, cfg->label_key, label_names, MRI_ARRAY_COUNT(label_names));
    *header = image >= 0 || (label >= 0 && cfg->label_key) || (label >= 0 && is_number(cfg->image_key));
    t->columns = c->count;
    if (cfg->target_key) {
        const int rc = mri_table_numbers_choose(&t->numbers, c, cfg->target_key, err);
        if (rc) return rc;
        if (!cfg->label_key && label >= 0 && mri_table_numbers_has(&t->numbers, (uint32_t)label)) label = -1;
    }
    t->labelled = !cfg->target_key || cfg->label_key || label >= 0;
    if (c->count < 2)
        return mri_text_error_at(&c->text, err, MR_EFORMAT, c->line,
                                 "expected at least two columns (picture and class) between "
                                 "commas, semicolons or tabs, found one");
    int rc =
        choose_column(c, cfg->image_key, image, 0, *header, "picture", "--image-key NAME", &t->image, err);
    if (!rc && t->labelled)
        rc = choose_column(c, cfg->label_key, label, t->image == 1 ? 0 : 1, *header, "class",
                           "--label-key NAME", &t->column_label, err);
    if (!rc && mri_table_numbers_has(&t->numbers, t->image))
        rc = mri_text_error_at(&c->text, err, MR_EINVAL, c->line,
                               "column %u cannot be picture and target at once", t->image + 1);
    if (!rc && t->labelled && t->image == t->column_label)
        rc = mri_text_error_at(&c->text, err, MR_EINVAL, c->line,
                               "column %u cannot be picture and class at once", t->image + 1);
    return rc;
}

/* The column of parts is read before all else. */
static int find_parts(mr_source *src, table *t, mri_csv *c, const mr_source_config *cfg, mr_error *err)
{
    bool header = false;
    int rc = mri_csv_next(c, err);
    if (rc == MR_EEND) return MR_OK; /* told by read_rows() */
    if (!rc) rc = choose_columns(t, c, cfg, &header, err);
    if (rc) return rc;
    int used[4] = {(int)t->image, t->labelled ? (int)t->column_label : -1, -1, -1};
    rc = mri_table_parts_choose(&t->parts, c, header, cfg->split_key, used, err);
    if (rc || t->parts.column < 0) return rc;
    if (!t->parts.asked && mri_table_numbers_has(&t->numbers, (uint32_t)t->parts.column)) {
        t->parts.column = -1; /* it is asked for as numbers */
        return MR_OK;
    }
    if (!header) mri_table_parts_see(&t->parts, c);
    while ((rc = mri_csv_next(c, err)) == MR_OK) mri_table_parts_see(&t->parts, c);
    return rc == MR_EEND ? mri_table_parts_settle(&t->parts, src, cfg, t->lone, err) : rc;
}

/* ---- one row ---- */
static int no_memory(const mr_source *src, mr_error *err)
{
    return mri_error_place(err, mr_error_set(err, MR_ENOMEM, "no memory for the table"), src->path,
                           MR_NOWHERE, MR_NOWHERE);
}

static int add_name(const mr_source *src, mri_names *names, const char *text, size_t bytes, uint32_t *number,
                    bool *is_new, mr_error *err)
{
    const int rc = mri_names_add(names, text, bytes, number, is_new);
    if (rc == MR_ENOMEM) return no_memory(src, err);
    if (rc == MR_ELIMIT)
        mri_error_place(err, mr_error_set(err, rc, "more names than can be kept: cut the table into several"),
                        src->path, MR_NOWHERE, MR_NOWHERE);
    return rc;
}

static bool make_room(table *t)
{
    if (t->paths.count < t->cap) return true;
    const uint32_t cap = t->cap ? 2 * t->cap : 64;
    void *p = realloc(t->size, cap * sizeof *t->size);
    if (p) t->size = p;
    void *q = p ? realloc(t->line, cap * sizeof *t->line) : NULL;
    if (q) t->line = q;
    void *r = q ? realloc(t->label, cap * sizeof *t->label) : NULL;
    if (r) t->label = r;
    if (r) t->cap = cap;
    return r != NULL;
}

static bool is_written_outside(const char *path)
{
    if (path[0] == '/') return true;
    int depth = 0;
    for (const char *p = path; *p && depth >= 0;) {
        const size_t n = strcspn(p, "/");
        if (n == 2 && p[0] == '.' && p[1] == '.') depth--;
        else if (n > 0 && !(n == 1 && p[0] == '.')) depth++;
        p += n;
        while (*p == '/') p++;
    }
    return depth < 0;
}

/* The kernel follows the path, links included, and says when it leaves the folder: false with errno EXDEV.
 * One that is absolute and leads back inside is such a path, too; kernels before 5.6 know nothing of all
 * this. */
static bool is_beneath(const table *t, const char *path)
{
#ifdef RESOLVE_BENEATH
    struct open_how how = {.flags = O_PATH | O_CLOEXEC, .resolve = RESOLVE_BENEATH | RESOLVE_NO_MAGICLINKS};
    const long fd = syscall(SYS_openat2, t->folder, path, &how, sizeof how);
    if (fd >= 0) close((int)fd);
    return fd >= 0;
#else
    (void)t, (void)path;
    errno = ENOSYS;
    return false;
#endif
}

/* MR_OK when the error is this one file's, which the system answered: it is a bad sample, not the end of
 * all. */
static int not_seen(const char *path, int why, mr_error *err)
{
    mr_error told = MR_ERROR_INIT;
    const int rc = mr_error_sys(&told, why, "cannot look at a file that the table names");
    if (mr_error_of_sample(rc, &told)) return MR_OK;
    mri_error_denied(&told, rc);
    if (err) *err = told;
    return mri_error_place(err, rc, path, MR_NOWHERE, MR_NOWHERE);
}

/* The nearest folder above that is there, without links; *found false: there is none, or a link leads
 * nowhere. */
static int resolve(char *name, char real[PATH_MAX], bool *found, mr_error *err)
{
    struct stat st;
    *found = true;
    while (!realpath(name, real)) {
        int rc = not_seen(name, errno, err);
        const bool link_to_nothing = !rc && lstat(name, &st) == 0;
        if (!rc && !link_to_nothing) rc = not_seen(name, errno, err);
        char *slash = strrchr(name, '/');
        *found = !link_to_nothing && slash && slash != name && strcmp(slash, "/..") != 0;
        if (rc || !*found) return rc;
        *slash = '\0';
    }
    return MR_OK;
}

/* Does it lead out of the folder? The slow way, which is right for all of them. */
static int leads_out_slowly(table *t, const char *folder, const char *path, bool *out, mr_error *err)
{
    char name[4096], real[PATH_MAX];
    bool found;
    *out = true;
    if (!t->real_folder) t->real_folder = realpath(folder, NULL);
    if (!t->real_folder) return not_seen(folder, errno, err);
    const int n = snprintf(name, sizeof name, "%s%s", path[0] == '/' ? "" : folder, path);
    if (n < 0 || (size_t)n >= sizeof name) return MR_OK;
    const int rc = resolve(name, real, &found, err);
    if (rc || !found) return rc;
    *out = !mri_is_below(t->real_folder, real);
    return MR_OK;
}

static int leads_out(const mr_source *src, table *t, const char *path, bool *out, mr_error *err)
{
    char folder[4096];
    *out = false;
    if (is_beneath(t, path)) return MR_OK;
    if (errno == ENOENT || errno == ENOTDIR) return *out = is_written_outside(path), MR_OK;
    snprintf(folder, sizeof folder, "%.*s", (int)t->folder_bytes, src->path);
    if (!folder[0]) strcpy(folder, "./");
    return leads_out_slowly(t, folder, path, out, err);
}

/* Its size, or what is in place of it. */
static int look_at(const table *t, const char *path, uint32_t *size, mr_error *err)
{
    struct stat st;
    *size = NOT_THERE;
    if (fstatat(t->folder, path, &st, 0) != 0) return not_seen(path, errno, err);
    if (S_ISREG(st.st_mode))
        *size = (uint64_t)st.st_size > MOST_PICTURE_BYTES ? TOO_LARGE : (uint32_t)st.st_size;
    return MR_OK;
}

static int not_there(const mri_csv *c, const char *path, mr_error *err)
{
    const char *why =
        strchr(path, '\\') ? "names have / between folders, this one has \\"
        : strstr(path, "://")
            ? "addresses are not followed, files only"
            : "paths are relative to the table's folder; a line of column names needs one that is "
              "known (path, file, ...) or asked for; without folder and ending they are looked for in "
              "images/ and "
              "in a folder that is called like the table";
    return mri_text_error_at(&c->text, err, MR_ENOENT, c->line, "no file %.200s: %s", path, why);
}

static int check_outside(const mr_source *src, table *t, const mri_csv *c, const char *path,
                         const mr_source_config *cfg, mr_error *err)
{
    bool out;
    const int rc = leads_out(src, t, path, &out, err);
    if (rc || !out) return rc;
    t->outside++;
    if (cfg->outside == MR_OUTSIDE_TAKE) return MR_OK;
    return mri_text_error_at(
        &c->text, err, MR_EINVAL, c->line,
        "%.200s leads out of the table's folder: such files are read only when that is asked "
        "for (--outside take)",
        path);
}

static int add_path(mr_source *src, table *t, const mri_csv *c, bool first, const mr_source_config *cfg,
                    mr_error *err)
{
    size_t bytes;
    uint32_t number;
    bool is_new;
    const char *text = mri_csv_trimmed(mri_csv_place(c, t->image), &bytes);
    if (bytes == 0)
        return mri_text_error_at(&c->text, err, MR_EFORMAT, c->line, "the name of the picture is empty");
    if (!make_room(t)) return no_memory(src, err);
    char whole[3 * NAME_MAX];
    if (t->placed) {
        const int n = snprintf(whole, sizeof whole, "%s%.*s%s", t->place.before,
                               (int)mri_min_u64(bytes, NAME_MAX), text, t->place.behind);
        text = whole;
        bytes = (size_t)n;
    }
    int rc = add_name(src, &t->paths, text, bytes, &number, &is_new, err);
    if (rc) return rc;
    const char *path = mri_name(&t->paths, number);
    if (!is_new)
        return mri_text_error_at(&c->text, err, MR_EFORMAT, c->line,
                                 "%.200s stands in line %u already: a file may be named once", path,
                                 t->line[number]);
    t->line[number] = (uint32_t)mri_min_u64(c->line, UINT32_MAX);
    rc = check_outside(src, t, c, path, cfg, err);
    if (rc) return rc;
    rc = look_at(t, path, &t->size[number], err);
    if (rc) return rc;
    if (t->size[number] != NOT_THERE) return MR_OK;
    if (first) return not_there(c, path, err); /* the wrong folder, or a header */
    if (t->missing++ == 0) t->missing_line = c->line;
    return MR_OK;
}

/* taken: of the sample that was added last; else the class of a row of another part, which may have none. */
static int add_class(const mr_source *src, table *t, const mri_csv *c, bool taken, mr_error *err)
{
    size_t bytes;
    uint32_t number;
    bool is_new;
    const char *text = mri_csv_trimmed(mri_csv_place(c, t->column_label), &bytes);
    if (bytes == 0 && !taken) return MR_OK;
    if (bytes == 0) return mri_text_error_at(&c->text, err, MR_EFORMAT, c->line, "the class is empty");
    const int rc = add_name(src, &t->classes, text, bytes, &number, &is_new, err);
    if (rc) return rc;
    if (taken) t->label[t->paths.count - 1] = (int32_t)number;
    if (!is_new) return MR_OK;
    if (number >= t->class_cap) {
        const uint32_t cap = t->class_cap ? 2 * t->class_cap : 16;
        uint32_t *larger = realloc(t->class_line, cap * sizeof *larger);
        if (!larger) return no_memory(src, err);
        t->class_line = larger;
        t->class_cap = cap;
    }
    t->class_line[number] = (uint32_t)mri_min_u64(c->line, UINT32_MAX);
    return MR_OK;
}

static uint64_t memory_of(const table *t)
{
    const uint64_t names = t->class_names ? t->classes.count * sizeof *t->class_names : 0;
    return sizeof *t + mri_names_memory(&t->paths) + mri_names_memory(&t->classes) +
           mri_table_numbers_memory(&t->numbers) + t->paths.count * t->targets.row_bytes +
           (uint64_t)t->cap * 3 * sizeof(uint32_t) + (uint64_t)t->class_cap * sizeof *t->class_line + names;
}

static int add_row(mr_source *src, table *t, const mri_csv *c, bool first, const mr_source_config *cfg,
                   mr_error *err)
{
    if (c->count != t->columns)
        return mri_text_error_at(&c->text, err, MR_EFORMAT, c->line,
                                 "expected %u columns as in the first line, found %u", t->columns, c->count);
    const mri_part part = t->parts.taken ? mri_table_parts_of(&t->parts, c) : MRI_NO_PART;
    if (part != t->parts.taken) /* the classes of both are numbered together; those of a test part may be
                                   hidden */
        return t->labelled && (part == MRI_TRAIN || part == MRI_VALIDATION) ? add_class(src, t, c, false, err)
                                                                            : MR_OK;
    int rc = add_path(src, t, c, first, cfg, err);
    if (!rc && t->labelled) rc = add_class(src, t, c, true, err);
    if (!rc && t->numbers.count) rc = mri_table_numbers_add(&t->numbers, c, err);
    return rc ? rc : mri_source_budget(cfg, memory_of(t), src->path, err);
}

static int read_rows(mr_source *src, table *t, mri_csv *c, const mr_source_config *cfg, mr_error *err)
{
    bool header = false;
    int rc = mri_csv_next(c, err);
    if (rc == MR_EEND)
        return mri_error_place(err, mr_error_set(err, MR_EFORMAT, "no rows in the table"), src->path,
                               MR_NOWHERE, MR_NOWHERE);
    if (!rc) rc = choose_columns(t, c, cfg, &header, err);
    if (!rc && !header) rc = add_row(src, t, c, true, cfg, err);
    while (!rc) {
        rc = mri_csv_next(c, err);
        if (!rc) rc = add_row(src, t, c, false, cfg, err);
    }
    if (rc != MR_EEND) return rc;
    if (t->paths.count == 0)
        return mri_error_place(err, mr_error_set(err, MR_EFORMAT, "column names and no rows below"),
                               src->path, MR_NOWHERE, MR_NOWHERE);
    if (t->missing < t->paths.count) return MR_OK;
    c->line = t->missing_line;
    return not_there(c, mri_name(&t->paths, 0), err);
}

/* No file that the table names is there: once more, with what its names lack. */
static int find_place(const mr_source *src, table *t, mr_error *err)
{
    mr_error what = MR_ERROR_INIT;
    if (t->placed || t->paths.count == 0) return MR_ENOENT;
    const int rc = mri_table_place_find(t->folder, src->path, mri_name(&t->paths, 0), &t->place, &what);
    t->placed = rc == MR_OK;
    if (rc == MR_OK || rc == MR_ENOENT) return rc;
    if (err) *err = what;
    return mri_error_place(err, rc, what.file[0] ? NULL : src->path, MR_NOWHERE, MR_NOWHERE);
}

static void forget_rows(table *t)
{
    mri_names_fini(&t->paths);
    mri_names_fini(&t->classes);
    mri_table_numbers_fini(&t->numbers);
    t->missing = t->missing_line = t->outside = 0;
}

/* ---- classes ---- */
/* An integer, also written 3.0 as tables of numbers with gaps are. */
static bool integer_of(const char *text, int64_t *out)
{
    char *end;
    errno = 0;
    if (!(*text == '-' || (*text >= '0' && *text <= '9'))) return false;
    *out = strtoll(text, &end, 10);
    if (errno || end == text) return false;
    if (*end == '.') end += 1 + strspn(end + 1, "0");
    return *end == '\0';
}

/* Lines where texts that are integers, and such that are not, come first; 0: there are none. */
static void sort_of_classes(const table *t, uint32_t *integer, uint32_t *name)
{
    *integer = *name = UINT32_MAX;
    for (uint32_t k = 0; k < t->classes.count; k++) {
        int64_t ignored;
        uint32_t *sort = integer_of(mri_name(&t->classes, k), &ignored) ? integer : name;
        if (*sort == UINT32_MAX) *sort = k;
    }
}

static int bad_class(const mr_source *src, const table *t, uint32_t class_at, const char *why, mr_error *err)
{
    mr_error_set(err, MR_EFORMAT, "line %u: class %.100s: %s", t->class_line[class_at],
                 mri_name(&t->classes, class_at), why);
    return mri_error_place(err, MR_EFORMAT, src->path, MR_NOWHERE, MR_NOWHERE);
}

static int number_integers(mr_source *src, table *t, const mr_source_config *cfg, mr_error *err)
{
    const int64_t offset = cfg->label_offset == MR_LABEL_AUTO ? 0 : cfg->label_offset;
    int64_t value, least = INT64_MAX, largest = 0;
    for (uint32_t k = 0; k < t->classes.count; k++) {
        integer_of(mri_name(&t->classes, k), &value);
        if (__builtin_sub_overflow(value, offset, &value) || value < 0)
            return bad_class(src, t, k, "negative; with a label offset classes can begin elsewhere than at 0",
                             err);
        if (value >= INT32_MAX) return bad_class(src, t, k, "too large: expected less than 2147483647", err);
        if (value > largest) largest = value;
        if (value < least) least = value;
        t->class_line[k] = (uint32_t)value; /* its number from here on */
    }
    src->info.class_count = (uint32_t)largest + 1;
    src->info.label_offset = offset;
    if (t->classes.count == 0) return MR_OK;
    src->labels.min = least + offset;
    src->labels.max = largest + offset;
    return MR_OK;
}

static int by_bytes(const void *a, const void *b, void *names)
{
    return strcmp(mri_name(names, *(const uint32_t *)a), mri_name(names, *(const uint32_t *)b));
}

static int number_names(mr_source *src, table *t, mr_error *err)
{
    const uint32_t n = t->classes.count;
    uint32_t *order = malloc(n * sizeof *order);
    t->class_names = malloc(n * sizeof *t->class_names);
    if (!order || !t->class_names) {
        free(order);
        return no_memory(src, err);
    }
    for (uint32_t k = 0; k < n; k++) order[k] = k;
    qsort_r(order, n, sizeof *order, by_bytes, &t->classes);
    for (uint32_t k = 0; k < n; k++) t->class_line[order[k]] = k;
    free(order);
    src->info.class_count = n;
    return MR_OK;
}

static int number_classes(mr_source *src, table *t, const mr_source_config *cfg, mr_error *err)
{
    uint32_t integer, name;
    if (!t->labelled) return MR_OK;
    sort_of_classes(t, &integer, &name);
    if (integer != UINT32_MAX && name != UINT32_MAX)
        return bad_class(src, t, integer < name ? name : integer,
                         "integers and names are mixed: expected only one sort of classes", err);
    const bool named = name != UINT32_MAX;
    const int rc = named ? number_names(src, t, err) : number_integers(src, t, cfg, err);
    if (rc) return rc;
    for (uint32_t k = 0; k < t->paths.count; k++) t->label[k] = (int32_t)t->class_line[t->label[k]];
    if (!named) {
        mri_names_fini(&t->classes);
        free(t->class_line);
        t->class_line = NULL;
        t->class_cap = 0;
        return MR_OK;
    }
    mri_names_seal(&t->classes);
    for (uint32_t k = 0; k < t->classes.count; k++)
        t->class_names[t->class_line[k]] = mri_name(&t->classes, k);
    src->info.class_names = t->class_names;
    return MR_OK;
}

/* ---- the source ---- */
/* Is it a usual column name for pictures, or does it end as a picture's name does? */
static bool speaks_of_pictures(const char *place, size_t bytes)
{
    static const char *const endings[] = {".jpg", ".jpeg", ".png"};
    while (bytes > 0 && strchr(" \t\"", place[0])) place++, bytes--;
    while (bytes > 0 && strchr(" \t\"", place[bytes - 1])) bytes--;
    for (size_t k = 0; k < MRI_ARRAY_COUNT(image_names); k++)
        if (bytes == strlen(image_names[k]) && strncasecmp(place, image_names[k], bytes) == 0) return true;
    for (size_t k = 0; k < MRI_ARRAY_COUNT(id_names); k++)
        if (bytes == strlen(id_names[k]) && strncasecmp(place, id_names[k], bytes) == 0) return true;
    for (size_t k = 0; k < MRI_ARRAY_COUNT(endings); k++) {
        const size_t n = strlen(endings[k]);
        if (bytes > n && strncasecmp(place + bytes - n, endings[k], n) == 0) return true;
    }
    return false;
}

static bool looks_like_row(const char *row, size_t bytes, char separator)
{
    uint32_t places = 0;
    bool found = false;
    for (size_t at = 0; at <= bytes; places++) {
        const char *end = memchr(row + at, separator, bytes - at);
        const size_t n = end ? (size_t)(end - row) - at : bytes - at;
        found |= speaks_of_pictures(row + at, n);
        at += n + 1;
    }
    return found && places >= 2;
}

static bool looks_like_table(const uint8_t *head, size_t bytes)
{
    if (bytes >= 3 && memcmp(head, "\xef\xbb\xbf", 3) == 0) head += 3, bytes -= 3;
    while (bytes > 0 && (*head == '\n' || *head == '\r')) head++, bytes--;
    size_t n = 0;
    while (n < bytes && head[n] != '\n' && head[n] != '\r') n++;
    if (n == 0 || memchr(head, '\0', n) || !mri_is_utf8(head, n) || head[0] == '<' || head[0] == '{')
        return false;
    return looks_like_row((const char *)head, n, mri_csv_separator(head, bytes));
}

/* One folder, with nothing but files in it, has no classes to offer: a table beside it that names pictures is
 * meant. More entries than a table has companions are not looked at. */
enum { MOST_BESIDE_TABLE = 64 };

static int count_entries(const char *path, const char *name, uint32_t *tables, uint32_t *folders,
                         char *folder, mr_error *err)
{
    char where[PATH_MAX];
    snprintf(where, sizeof where, "%s%s%s", path, name[0] ? "/" : "", name);
    DIR *d = opendir(where);
    if (!d)
        return mri_error_place(err, mr_error_sys(err, errno, "cannot open the folder"), where, MR_NOWHERE,
                               MR_NOWHERE);
    int rc = MR_OK, seen = 0;
    const struct dirent *e;
    while (!rc && *folders < 2 && (errno = 0, e = readdir(d))) {
        mri_folder_entry what = {0};
        if (e->d_name[0] == '.') continue;
        if (tables && ++seen > MOST_BESIDE_TABLE) *folders = 2; /* that is no */
        if (tables || e->d_type == DT_DIR || e->d_type == DT_LNK || e->d_type == DT_UNKNOWN)
            rc = mri_filelist_look(dirfd(d), e->d_name, looks_like_table, &what, err);
        if (what.is_folder && (*folders)++ == 0 && folder) snprintf(folder, NAME_MAX + 1, "%s", e->d_name);
        if (tables) *tables += what.accepted;
    }
    if (!rc && *folders < 2 && errno) rc = mr_error_sys(err, errno, "cannot read the folder");
    closedir(d);
    return rc ? mri_error_place(err, rc, where, MR_NOWHERE, MR_NOWHERE) : MR_OK;
}

static bool has_table_and_flat_folder(const mri_probe *p)
{
    uint32_t tables = 0, folders = 0, inside = 0;
    char folder[NAME_MAX + 1] = "";
    mr_error what = MR_ERROR_INIT;
    int rc = count_entries(p->path, "", &tables, &folders, folder, &what);
    if (!rc && tables == 1 && folders == 1) rc = count_entries(p->path, folder, NULL, &inside, NULL, &what);
    return !mri_probe_failed(p->trouble, rc, &what) && !rc && tables == 1 && folders == 1 && inside == 0;
}

static bool csv_probe(const mri_probe *p)
{
    if (!p->is_folder) return looks_like_table(p->inner, p->inner_bytes);
    return mri_filelist_probe(p->path, looks_like_table, p->trouble) ||
           (p->trouble->code == MR_OK && has_table_and_flat_folder(p));
}

static int fill_info(mr_source *src, table *t, mr_error *err)
{
    mr_source_info *info = &src->info;
    XXH3_state_t *x = XXH3_createState();
    if (!x) return no_memory(src, err);
    XXH3_64bits_reset(x);
    XXH3_64bits_update(x, t->paths.text, t->paths.text_used);
    XXH3_64bits_update(x, t->size, t->paths.count * sizeof *t->size);
    if (t->labelled) XXH3_64bits_update(x, t->label, t->paths.count * sizeof *t->label);
    if (mri_rows_there(&t->targets))
        XXH3_64bits_update(x, t->targets.data, t->paths.count * t->targets.row_bytes);
    for (uint32_t k = 0; t->class_names && k < info->class_count; k++)
        XXH3_64bits_update(x, t->class_names[k], strlen(t->class_names[k]) + 1);
    info->fingerprint = XXH3_64bits_digest(x);
    XXH3_freeState(x);
    for (uint32_t k = 0; k < t->paths.count; k++) {
        if (t->size[k] >= TOO_LARGE) continue; /* never read */
        info->max_extent_bytes = mri_max_u64(info->max_extent_bytes, t->size[k]);
        info->total_bytes += t->size[k];
    }
    info->format = "csv";
    info->count = t->paths.count;
    info->memory_bytes = memory_of(t);
    mri_source_set_image_label(src, mri_field("image", MR_TYPE_IMAGE));
    if (!t->labelled) {
        info->field_count = 1;
        info->label_field = -1;
    }
    mri_rows_declare(&t->targets, src);
    return MR_OK;
}

static void tell(mr_source *src, table *t)
{
    char shown[4 * sizeof t->place.before];
    int at = 0;
    if (t->missing)
        at += snprintf(t->report_text + at, sizeof t->report_text - (size_t)at,
                       "%llu of %u files are not there, the first in line %llu; ",
                       (unsigned long long)t->missing, t->paths.count, (unsigned long long)t->missing_line);
    if (t->placed)
        at += snprintf(t->report_text + at, sizeof t->report_text - (size_t)at,
                       "no file is where the table says; what it names is taken from %.250s*%s; ",
                       mr_text_shown(t->place.before, shown, sizeof shown), t->place.behind);
    if (t->outside)
        at += snprintf(t->report_text + at, sizeof t->report_text - (size_t)at,
                       "%llu of %u files lie outside the table's folder; ", (unsigned long long)t->outside,
                       t->paths.count);
    if (src->info.label_offset)
        at += snprintf(t->report_text + at, sizeof t->report_text - (size_t)at,
                       "%lld is subtracted from every class; ", (long long)src->info.label_offset);
    if (at == 0) return;
    t->report_text[at - 2] = '\0';
    src->info.told = t->report_text;
}

static int open_folder(const mr_source *src, table *t, mr_error *err)
{
    const char *slash = strrchr(src->path, '/');
    char folder[4096] = ".";
    t->folder_bytes = slash ? (size_t)(slash - src->path) + 1 : 0;
    if (t->folder_bytes >= sizeof folder)
        return mr_error_set(err, MR_ELIMIT, "the path of the table is too long");
    if (slash) memcpy(folder, src->path, t->folder_bytes), folder[t->folder_bytes] = '\0';
    t->folder = open(folder, O_PATH | O_DIRECTORY | O_CLOEXEC);
    return t->folder >= 0 ? MR_OK
                          : mri_error_place(err, mr_error_sys(err, errno, "cannot open the folder"), folder,
                                            MR_NOWHERE, MR_NOWHERE);
}

static int read_file(mr_source *src, table *t, const mr_source_config *cfg, mr_error *err)
{
    mri_csv c;
    int rc = mri_csv_open(&c, src->path, err);
    if (rc) return rc;
    if (!t->placed) { /* else they are known */
        rc = find_parts(src, t, &c, cfg, err);
        mri_csv_close(&c);
        forget_rows(t);
        if (!rc) rc = mri_csv_open(&c, src->path, err);
        if (rc) return rc;
    }
    rc = read_rows(src, t, &c, cfg, err);
    mri_csv_close(&c);
    return rc;
}

static int read_table(mr_source *src, table *t, const mr_source_config *cfg, mr_error *err)
{
    int rc = open_folder(src, t, err);
    if (!rc) rc = read_file(src, t, cfg, err);
    if (rc == MR_ENOENT && t->folder >= 0) {
        const int found = find_place(src, t, err);
        if (found != MR_ENOENT) rc = found;
        if (found == MR_OK) {
            forget_rows(t);
            rc = read_file(src, t, cfg, err);
        }
    }
    if (!rc) rc = number_classes(src, t, cfg, err);
    if (!rc) rc = mri_table_numbers_finish(&t->numbers, cfg->target_key, cfg, src->path, &t->targets, err);
    if (rc) return rc;
    close(t->folder);
    t->folder = -1;
    free(t->real_folder);
    t->real_folder = NULL;
    mri_names_seal(&t->paths);
    tell(src, t);
    return fill_info(src, t, err);
}

/* ---- a folder of tables ---- */
/* The table of the part asked for takes the folder's place. */
static int take_table(mr_source *src, const mr_source_config *cfg, mr_error *err)
{
    mri_filelist l;
    const int rc = mri_filelist_find_among(&l, src->path, cfg->split, looks_like_table, err);
    if (rc) return rc;
    if (l.count == 1) {
        free(src->path);
        src->info.path = src->path = l.path[0];
        l.count = 0;
        mri_filelist_tell(&l, src);
    } else {
        mr_error_set(err, MR_EINVAL,
                     "%u tables in one folder, the first two are %.200s and %.200s: name the one to take",
                     l.count, l.path[0], l.path[1]);
        mri_error_place(err, MR_EINVAL, src->path, MR_NOWHERE, MR_NOWHERE);
    }
    const bool one = l.count == 0;
    mri_filelist_fini(&l);
    return one ? MR_OK : MR_EINVAL;
}

/* The test part is numbered like the train part, which may have more classes. Without a train part, as it
 * is. */
static int open_like_train(mr_source *src, table *t, const char *folder, const mr_source_config *cfg,
                           mr_error *err)
{
    mr_source_config like = *cfg;
    mr_source *train;
    mri_filelist l;
    like.split = MR_SPLIT_TRAIN;
    int rc = mri_filelist_find_among(&l, folder, like.split, looks_like_table, NULL);
    mri_filelist_fini(&l);
    if (rc == MR_ENOENT) return read_table(src, t, cfg, err);
    rc = mri_source_open_as(&train, src->ops, folder, &like, err);
    if (rc) return rc;
    like = *cfg;
    like.label_offset = train->info.label_offset;
    if (!like.class_names) {
        like.class_names = train->info.class_names;
        like.class_count = train->info.class_count;
    }
    rc = read_table(src, t, &like, err);
    if (!rc && !cfg->class_names && like.class_names) rc = mri_classes_follow(src, &like, err);
    mr_source_close(train);
    return rc;
}

static int open_from_folder(mr_source *src, table *t, const mr_source_config *cfg, mr_error *err)
{
    char *folder = strdup(src->path);
    if (!folder) return no_memory(src, err);
    int rc = take_table(src, cfg, err);
    if (!rc && cfg->split == MR_SPLIT_TEST) rc = open_like_train(src, t, folder, cfg, err);
    else if (!rc) rc = read_table(src, t, cfg, err);
    free(folder);
    return rc;
}

static int csv_open(mr_source *src, const mr_source_config *cfg, mr_error *err)
{
    struct stat st;
    table *t = calloc(1, sizeof *t);
    if (!t) return no_memory(src, err);
    t->folder = -1;
    t->parts.column = -1;
    src->state = t;
    if (stat(src->path, &st) != 0)
        return mri_error_place(err, mr_error_sys(err, errno, "cannot look at the table"), src->path,
                               MR_NOWHERE, MR_NOWHERE);
    t->lone = !S_ISDIR(st.st_mode);
    return S_ISDIR(st.st_mode) ? open_from_folder(src, t, cfg, err) : read_table(src, t, cfg, err);
}

static void csv_close(mr_source *src)
{
    table *t = src->state;
    if (!t) return;
    if (t->folder >= 0) close(t->folder);
    mri_names_fini(&t->paths);
    mri_names_fini(&t->classes);
    mri_table_numbers_fini(&t->numbers);
    mri_rows_fini(&t->targets);
    free(t->size);
    free(t->line);
    free(t->label);
    free(t->class_line);
    free(t->class_names);
    free(t->real_folder);
    free(t);
}

static void csv_sample_path(const mr_source *src, uint64_t sample, char *buf, size_t buf_bytes)
{
    const table *t = src->state;
    const char *path = mri_name(&t->paths, (uint32_t)sample);
    snprintf(buf, buf_bytes, "%.*s%s", path[0] == '/' ? 0 : (int)t->folder_bytes, src->path, path);
}

static int csv_extent(const mr_source *src, uint64_t sample, mr_extent *out, mr_error *err)
{
    const table *t = src->state;
    *out = (mr_extent){MR_FILE_OF_SAMPLE, 0, t->size[sample]};
    if (t->size[sample] < TOO_LARGE) return MR_OK;
    char path[4096];
    int rc;
    if (t->size[sample] == TOO_LARGE)
        rc = mr_error_set(err, MR_ELIMIT, "line %u of the table: a file of more than %.0f MiB is no picture",
                          t->line[sample], (double)MOST_PICTURE_BYTES / 1048576);
    else
        rc = mr_error_set(err, MR_ENOENT,
                          "line %u of the table names a file that is not there, or no regular file",
                          t->line[sample]);
    csv_sample_path(src, sample, path, sizeof path);
    return mri_error_place(err, rc, path, MR_NOWHERE, sample);
}

static int csv_label(const mr_source *src, uint64_t sample, int64_t *out)
{
    const table *t = src->state;
    if (!t->labelled) return MR_EUNSUPPORTED;
    *out = t->label[sample];
    return MR_OK;
}

static int csv_parse(const mr_source *src, uint64_t sample, const void *data, size_t bytes, mr_sample *out,
                     mr_error *err)
{
    const int kind = mr_image_sniff(data, bytes);
    if (!kind) {
        char path[4096];
        mr_image_header none;
        int rc = mr_image_header_parse(data, bytes, &none, err); /* says what it looks like */
        if (((const table *)src->state)->outside)                /* and quotes it, which may be anybody's */
            rc = mr_error_set(
                err, MR_EFORMAT,
                "expected a JPEG or PNG, found something else (not quoted: the table names files "
                "outside its folder)");
        csv_sample_path(src, sample, path, sizeof path);
        return mri_error_place(err, rc, path, 0, sample);
    }
    const table *t = src->state;
    out->value_count = t->labelled ? 2 : 1;
    out->value[0] = (mr_value){.type = (mr_type)kind, .data = data, .bytes = bytes};
    if (t->labelled) out->value[1] = (mr_value){.type = MR_TYPE_INT, .i = t->label[sample]};
    mri_rows_give(&t->targets, sample, out);
    return MR_OK;
}

const mri_source_ops mri_source_csv = {
    .name = "csv",
    .help = "a table in text (commas, semicolons or tabs; plain or gzip) with the paths of pictures and "
            "their classes",
    .split_keys = true,
    .probe = csv_probe,
    .open = csv_open,
    .close = csv_close,
    .extent = csv_extent,
    .label = csv_label,
    .sample_path = csv_sample_path,
    .parse = csv_parse,
};
