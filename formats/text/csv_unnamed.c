/* formats/text/csv_unnamed.c: pictures that lie in the folders of a table's pictures and that no row names.
 * A row may have been lost, or the table is that of another set: they are counted, and the first are named.
 *
 *   folder, hash   of every row, rows of other splits included: the folder's number and a hash of the file's
 *                  name, 12 bytes each while the table is read
 *   folders        that the paths lead into; only these are listed, by the endings of names. One folder may
 *                  have several paths: the device and the number of the folder say which it is
 *
 * Other tables next to this one (test.csv, of the same pictures) name theirs. */
#include <dirent.h>
#include <fcntl.h>
#include <limits.h>
#include <stdio.h>
#include <sys/stat.h>
#include <unistd.h>
#include <xxhash.h>

#include "base/util.h"
#include "formats/image/picture_files.h"
#include "formats/text/csv_table.h"
#include "formats/text/tables.h"

enum { FIRST_NAMES = 3, MOST_TABLES = 64, MOST_ROWS = 1 << 20 };

typedef struct unnamed {
    uint64_t count;
    char *first[FIRST_NAMES]; /* the least of them, sorted; NULL: fewer */
} unnamed;

void mri_csv_named_fini(mri_csv_named *n)
{
    free(n->hash);
    free(n->folder);
    mri_names_fini(&n->folders);
    *n = (mri_csv_named){0};
}

static bool make_room(mri_csv_named *n)
{
    if (n->count < n->cap) return true;
    const uint64_t cap = n->cap ? 2 * n->cap : 64;
    void *hash = realloc(n->hash, (size_t)cap * sizeof *n->hash);
    if (hash) n->hash = hash;
    void *folder = hash ? realloc(n->folder, (size_t)cap * sizeof *n->folder) : NULL;
    if (folder) n->folder = folder, n->cap = cap;
    return folder != NULL;
}

int mri_csv_named_add(const mr_source *src, mri_csv_named *n, const char *path, size_t bytes, mr_error *err)
{
    bool is_new;
    size_t at = bytes;
    if (!make_room(n)) return mri_csv_table_no_memory(src, err);
    while (at > 0 && path[at - 1] != '/') at--;
    const int rc = mri_csv_table_add_name(src, &n->folders, path, at, &n->folder[n->count], &is_new, err);
    if (!rc) n->hash[n->count++] = XXH3_64bits(path + at, bytes - at);
    return rc;
}

static int by_number(const void *a, const void *b)
{
    const uint64_t x = *(const uint64_t *)a, y = *(const uint64_t *)b;
    return (x > y) - (x < y);
}

static bool is_picture(const char *name)
{
    const char *dot = strrchr(name, '.');
    return name[0] != '.' && dot && mri_picture_ending(dot + 1, strlen(dot + 1));
}

/* Not a link to nothing. */
static bool is_file(int folder, const struct dirent *e)
{
    struct stat st;
    return e->d_type == DT_REG || (fstatat(folder, e->d_name, &st, 0) == 0 && S_ISREG(st.st_mode));
}

/* Keep the path among the least. One that cannot be kept is counted all the same. */
static void add(unnamed *u, const char *path)
{
    size_t at = FIRST_NAMES;
    u->count++;
    while (at > 0 && (!u->first[at - 1] || strcmp(path, u->first[at - 1]) < 0)) at--;
    if (at == FIRST_NAMES) return;
    char *copy = strdup(path);
    if (!copy) return;
    free(u->first[FIRST_NAMES - 1]);
    memmove(u->first + at + 1, u->first + at, (FIRST_NAMES - 1 - at) * sizeof *u->first);
    u->first[at] = copy;
}

/* The number of a folder, the same for each of its paths; 0: it cannot be opened, which is reported with the
 * rows whose files are missing. */
static uint64_t folder_id(const mri_csv_table *t, const char *folder)
{
    struct stat st;
    if (fstatat(t->folder, folder[0] ? folder : ".", &st, 0) != 0 || !S_ISDIR(st.st_mode)) return 0;
    const uint64_t id[2] = {(uint64_t)st.st_dev, (uint64_t)st.st_ino};
    return XXH3_64bits(id, sizeof id) | 1;
}

static uint64_t file_id(uint64_t folder, uint64_t name_hash)
{
    return XXH3_64bits_withSeed(&name_hash, 8, folder);
}

static int look_into(const mri_csv_table *t, const char *folder, uint64_t id, unnamed *u, mr_error *err)
{
    char path[PATH_MAX + NAME_MAX];
    const int fd = openat(t->folder, folder[0] ? folder : ".", O_RDONLY | O_DIRECTORY | O_CLOEXEC);
    DIR *d = fd >= 0 ? fdopendir(fd) : NULL;
    if (!d) {
        if (fd >= 0) close(fd);
        return MR_OK;
    }
    int rc = MR_OK;
    for (const struct dirent *e; !rc && (e = readdir(d));) {
        if (mri_stop_asked()) rc = mri_stopped(err);
        if (e->d_type == DT_DIR || !is_picture(e->d_name) || !is_file(fd, e)) continue;
        const uint64_t file = file_id(id, XXH3_64bits(e->d_name, strlen(e->d_name)));
        if (bsearch(&file, t->named.hash, (size_t)t->named.count, sizeof file, by_number)) continue;
        snprintf(path, sizeof path, "%s%s", folder, e->d_name);
        add(u, path);
    }
    closedir(d);
    return rc;
}

typedef struct folder_at {
    uint64_t id;
    uint32_t number; /* in the table's folders */
} folder_at;

static int by_id(const void *a, const void *b)
{
    const folder_at *x = a, *y = b;
    if (x->id != y->id) return x->id < y->id ? -1 : 1;
    return (x->number > y->number) - (x->number < y->number);
}

/* ---- other tables in the folder ---- */
/* It needs no classes (test.csv). Without names of columns its pictures are in the same column. A text that
 * is no table, or a damaged one, names nothing. MR_ELIMIT: too much to look at. */
static int see_table(const mr_source *src, mri_csv_table *t, const char *name, const mr_source_config *cfg,
                     mr_error *err)
{
    char path[PATH_MAX];
    mri_csv c;
    mri_csv_table other = {.placed = t->placed, .place = t->place, .named = t->named};
    mr_error what = MR_ERROR_INIT;
    snprintf(path, sizeof path, "%.*s%s", (int)t->folder_bytes, src->path, name);
    int rc = mri_csv_open(&c, path, &what);
    if (rc) return rc == MR_ENOMEM ? mri_csv_table_no_memory(src, err) : MR_OK;
    rc = mri_csv_next(&c, &what);
    const int at = rc ? -1 : mri_csv_find_image(&c, cfg);
    other.column.image = at < 0 ? t->column.image : (uint32_t)at;
    if (!rc && at >= 0) rc = mri_csv_next(&c, &what);
    for (uint32_t row = 0; !rc; rc = mri_csv_next(&c, &what)) {
        if (c.count > other.column.image) rc = mri_csv_table_see_path(src, &other, &c, &what);
        if (!rc && ++row == MOST_ROWS) rc = MR_ELIMIT;
        if (!rc && mri_stop_asked()) rc = MR_ECANCELED;
        if (rc) break;
    }
    mri_csv_close(&c);
    t->named = other.named;
    if (rc == MR_ECANCELED) return mri_stopped(err);
    if (rc == MR_ELIMIT) return rc;
    return rc == MR_ENOMEM ? mri_csv_table_no_memory(src, err) : MR_OK;
}

static int see_other_tables(const mr_source *src, mri_csv_table *t, const mr_source_config *cfg,
                            mr_error *err)
{
    uint32_t seen = 0;
    int rc = MR_OK;
    const char *own = src->path + t->folder_bytes;
    const int fd = openat(t->folder, ".", O_RDONLY | O_DIRECTORY | O_CLOEXEC);
    DIR *d = fd >= 0 ? fdopendir(fd) : NULL;
    if (!d) {
        if (fd >= 0) close(fd);
        return MR_OK;
    }
    for (const struct dirent *e; !rc && seen < MOST_TABLES && (e = readdir(d));)
        if (mri_is_table_name(e->d_name) && strcmp(e->d_name, own) != 0 && is_file(fd, e)) {
            rc = see_table(src, t, e->d_name, cfg, err);
            seen++;
        }
    closedir(d);
    return rc;
}

/* ---- the whole ---- */
/* From hashes of names to hashes of files, sorted. */
static void make_file_ids(mri_csv_named *n, const folder_at *folders)
{
    for (uint64_t k = 0; k < n->count; k++) n->hash[k] = file_id(folders[n->folder[k]].id, n->hash[k]);
    if (n->count > 1) qsort(n->hash, (size_t)n->count, sizeof *n->hash, by_number);
}

static int look_for_unnamed(mri_csv_table *t, const mr_source *src, const mr_source_config *cfg, unnamed *u,
                            mr_error *err)
{
    const mri_names *names = &t->named.folders;
    const uint32_t own = names->count; /* only these are listed */
    int rc = see_other_tables(src, t, cfg, err);
    if (rc) return rc;
    folder_at *folders = malloc((names->count + (size_t)1) * sizeof *folders);
    if (!folders) return mri_csv_table_no_memory(src, err);
    for (uint32_t k = 0; k < names->count; k++) folders[k] = (folder_at){folder_id(t, mri_name(names, k)), k};
    make_file_ids(&t->named, folders);
    qsort(folders, own, sizeof *folders, by_id);
    for (uint32_t k = 0; !rc && k < own; k++) /* each folder once */
        if (folders[k].id && (k == 0 || folders[k].id != folders[k - 1].id))
            rc = look_into(t, mri_name(names, folders[k].number), folders[k].id, u, err);
    free(folders);
    return rc;
}

int mri_csv_named_tell(mri_csv_table *t, mr_source *src, const mr_source_config *cfg, mr_error *err)
{
    unnamed u = {0};
    char *const *first = u.first;
    int rc = look_for_unnamed(t, src, cfg, &u, err);
    if (rc == MR_ELIMIT) rc = MR_OK, u.count = 0; /* a large text next to the table may name them */
    if (!rc && u.count)
        mri_source_tell(src,
                        "left out: %llu picture%s that no row of a table names (%.200s%s%.200s%s%.200s%s)",
                        (unsigned long long)u.count, u.count == 1 ? "" : "s", first[0] ? first[0] : "",
                        first[1] ? ", " : "", first[1] ? first[1] : "", first[2] ? ", " : "",
                        first[2] ? first[2] : "", u.count > FIRST_NAMES ? ", ..." : "");
    for (size_t k = 0; k < FIRST_NAMES; k++) free(u.first[k]);
    mri_csv_named_fini(&t->named);
    return rc;
}
