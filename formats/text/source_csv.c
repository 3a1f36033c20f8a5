/* formats/text/source_csv.c: a table of picture files and their classes.
 *
 *   path,label              the first line names the columns, where one of its places is a usual name or the
 *                           one asked for;
 *   cats/0001.jpg,cat       else columns have numbers only, from 1, and the picture is in 1, the class in 2
 *   dogs/0001.jpg,dog
 *
 * Paths are relative to the table's folder. Who wrote the table does not choose which files of this machine
 * are read: paths that lead out of the folder, by / or ../ or a link, are refused, or taken on
 * request; their number is then reported, and nothing of their contents is quoted. Classes are all integers,
 * or all names, which are numbered in the order of their bytes; a mixture is refused. Columns of numbers may
 * become a further field (table_numbers.h); such a table needs no classes. Spaces around a place do not
 * count. Each sample is a file of its own, as in source_folder.c: one that is not there or too large is a bad
 * sample, found when it is asked for. A file named twice is refused, also under other spellings (x/./a.jpg,
 * x//a.jpg): it would count twice, or have two classes.
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
#include <stdio.h>
#include <sys/stat.h>
#include <unistd.h>
#include <xxhash.h>

#include "base/util.h"
#include "formats/fileset/fileset.h"
#include "formats/source/classes.h"
#include "formats/source/columns.h"
#include "formats/source/source.h"
#include "formats/source/value.h"
#include "formats/text/csv_table.h"
#include "formats/text/tables.h"

/* A column of parts, and further columns of classes, are read before all else. */
static int look_at_columns(mr_source *src, mri_csv_table *t, mri_csv *c, const mr_source_config *cfg,
                           mr_error *err)
{
    bool header = false;
    int rc = mri_csv_next(c, err);
    if (rc == MR_EEND) return MR_OK; /* reported by read_rows() */
    if (!rc) rc = mri_csv_table_choose(t, c, cfg, &header, err);
    if (rc) return rc;
    if (header && t->column.labelled && !cfg->label_key) mri_csv_other_classes_find(&t->others, t, c);
    const mri_table_used used = {(int)t->column.image, t->column.labelled ? (int)t->column.label : -1,
                                 &t->numbers};
    rc = mri_table_parts_choose(&t->parts, c, header, cfg->split_key, &used, err);
    if (!rc && header) mri_csv_tell_unread(src, t, c);
    if (rc || (t->parts.count == 0 && t->others.count == 0)) return rc;
    if (!header) mri_table_parts_see(&t->parts, c);
    while ((rc = mri_csv_next(c, err)) == MR_OK) {
        mri_table_parts_see(&t->parts, c);
        mri_csv_other_classes_see(&t->others, t, c);
    }
    if (rc != MR_EEND) return rc;
    rc = mri_csv_other_classes_settle(&t->others, src, err);
    return rc ? rc : mri_table_parts_settle(&t->parts, src, cfg, t->lone, err);
}

static uint64_t memory_of(const mri_csv_table *t)
{
    const uint64_t names = t->classes.numbered ? t->classes.names.count * sizeof *t->classes.numbered : 0;
    return sizeof *t + mri_names_memory(&t->paths) + mri_names_memory(&t->normal) +
           mri_names_memory(&t->classes.names) + mri_table_numbers_memory(&t->numbers) +
           t->paths.count * t->targets.row_bytes + (uint64_t)t->cap * 3 * sizeof(uint32_t) +
           (uint64_t)t->classes.cap * sizeof *t->classes.line + names +
           t->named.cap * (sizeof *t->named.hash + sizeof *t->named.folder) +
           mri_names_memory(&t->named.folders);
}

static int add_row(mr_source *src, mri_csv_table *t, const mri_csv *c, bool first,
                   const mr_source_config *cfg, mr_error *err)
{
    if (c->count != t->column.count)
        return mri_text_error_at(&c->text, err, MR_EFORMAT, c->line,
                                 "expected %u columns as in the first line, found %u", t->column.count,
                                 c->count);
    int rc = mri_csv_table_see_path(src, t, c, err);
    if (rc) return rc;
    const mri_part part = t->parts.taken ? mri_table_parts_of(&t->parts, c) : MRI_NO_PART;
    if (part != t->parts.taken) /* the classes of both are numbered together; the classes of a test part may
                                   be hidden */
        return t->column.labelled && (part == MRI_TRAIN || part == MRI_VALIDATION)
                   ? mri_csv_table_add_class(src, t, c, false, err)
                   : MR_OK;
    if (t->column.labelled && mri_csv_table_is_unlabelled(t, c)) {
        if (!t->unlabelled.rows++) t->unlabelled.first_line = c->line;
        return MR_OK;
    }
    rc = mri_csv_table_add_path(src, t, c, first, cfg, err);
    if (!rc && t->column.labelled) rc = mri_csv_table_add_class(src, t, c, true, err);
    if (!rc && t->numbers.count) rc = mri_table_numbers_add(&t->numbers, c, err);
    return rc ? rc : mri_source_budget(cfg, memory_of(t), src->path, err);
}

static int read_rows(mr_source *src, mri_csv_table *t, mri_csv *c, const mr_source_config *cfg, mr_error *err)
{
    bool header = false;
    int rc = mri_csv_next(c, err);
    if (rc == MR_EEND)
        return mri_error_place(err, mr_error_set(err, MR_EFORMAT, "no rows in the table"), src->path,
                               MR_NOWHERE, MR_NOWHERE);
    if (!rc) rc = mri_csv_table_choose(t, c, cfg, &header, err);
    if (!rc && !header) rc = add_row(src, t, c, true, cfg, err);
    while (!rc) {
        rc = mri_csv_next(c, err);
        if (!rc) rc = add_row(src, t, c, false, cfg, err);
    }
    if (rc != MR_EEND) return rc;
    if (c->json.more[0])
        mri_source_tell(src, "left out: keys that the first object of the table lacks (%s)", c->json.more);
    if (t->paths.count == 0 && t->unlabelled.rows)
        return mri_error_place(
            err,
            mr_error_set(err, MR_EFORMAT,
                         "no row has a class in column %u: name another column (--label-key)",
                         t->column.label + 1),
            src->path, MR_NOWHERE, MR_NOWHERE);
    if (t->paths.count == 0)
        return mri_error_place(err, mr_error_set(err, MR_EFORMAT, "column names and no rows below"),
                               src->path, MR_NOWHERE, MR_NOWHERE);
    if (t->absent.missing < t->paths.count) return MR_OK;
    c->line = t->absent.first_line;
    return mri_csv_table_not_there(c, mri_name(&t->paths, 0), err);
}

/* No file that the table names is there: once more, with what its names lack. */
static int find_place(const mr_source *src, mri_csv_table *t, mr_error *err)
{
    mr_error what = MR_ERROR_INIT;
    if (t->placed || t->paths.count == 0) return MR_ENOENT;
    const int rc = mri_table_place_find(t->folder, src->path, mri_name(&t->paths, 0), &t->place, &what);
    t->placed = rc == MR_OK;
    if (rc == MR_OK || rc == MR_ENOENT) return rc;
    if (err) *err = what;
    return mri_error_place(err, rc, what.file[0] ? NULL : src->path, MR_NOWHERE, MR_NOWHERE);
}

static void forget_rows(mri_csv_table *t)
{
    mri_names_fini(&t->paths);
    mri_names_fini(&t->normal);
    mri_names_fini(&t->classes.names);
    mri_table_numbers_fini(&t->numbers);
    mri_csv_named_fini(&t->named);
    t->absent.missing = t->absent.first_line = t->absent.outside = 0;
    t->unlabelled.rows = t->unlabelled.first_line = 0;
}

/* ---- the source ---- */
/* One folder, with nothing but files in it, has no classes to offer: a table next to it that names pictures
 * is meant. More entries than a table has companions are not looked at. */
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
            rc = mri_filelist_look(dirfd(d), e->d_name, mri_csv_looks_like_table, &what, err);
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
    if (!p->is_folder) return mri_csv_looks_like_table(p->inner, p->inner_bytes);
    return mri_filelist_probe(p->path, mri_csv_begins_as_table, p->trouble) ||
           (p->trouble->code == MR_OK && has_table_and_flat_folder(p));
}

static int fill_info(mr_source *src, mri_csv_table *t, mr_error *err)
{
    mr_source_info *info = &src->info;
    XXH3_state_t *x = XXH3_createState();
    if (!x) return mri_csv_table_no_memory(src, err);
    XXH3_64bits_reset(x);
    XXH3_64bits_update(x, t->paths.text, t->paths.text_used);
    XXH3_64bits_update(x, t->size, t->paths.count * sizeof *t->size);
    if (t->column.labelled) XXH3_64bits_update(x, t->label, t->paths.count * sizeof *t->label);
    if (mri_rows_there(&t->targets))
        XXH3_64bits_update(x, t->targets.data, t->paths.count * t->targets.row_bytes);
    for (uint32_t k = 0; t->classes.numbered && k < info->class_count; k++)
        XXH3_64bits_update(x, t->classes.numbered[k], strlen(t->classes.numbered[k]) + 1);
    info->fingerprint = XXH3_64bits_digest(x);
    XXH3_freeState(x);
    for (uint32_t k = 0; k < t->paths.count; k++) {
        if (t->size[k] >= MRI_CSV_TOO_LARGE) continue; /* never read */
        info->max_extent_bytes = mri_max_u64(info->max_extent_bytes, t->size[k]);
        info->total_bytes += t->size[k];
    }
    info->format = "csv";
    info->count = t->paths.count;
    info->memory_bytes = memory_of(t);
    mri_source_set_image_label(src, mri_field("image", MR_TYPE_IMAGE));
    if (!t->column.labelled) {
        info->field_count = 1;
        info->label_field = -1;
    }
    mri_rows_declare(&t->targets, src);
    if (!t->numbers.name) return MR_OK;
    return mri_source_set_columns(src, info->field_count - 1, (const char *const *)t->numbers.name,
                                  t->numbers.count, err);
}

static void tell(mr_source *src, mri_csv_table *t)
{
    char shown[4 * sizeof t->place.before];
    int at = 0;
    if (t->absent.missing)
        at += snprintf(t->report_text + at, sizeof t->report_text - (size_t)at,
                       "%llu of %u files are not there, the first in line %llu; ",
                       (unsigned long long)t->absent.missing, t->paths.count,
                       (unsigned long long)t->absent.first_line);
    if (t->placed)
        at += snprintf(t->report_text + at, sizeof t->report_text - (size_t)at,
                       "no file is where the table says; its files are taken from %.250s*%s; ",
                       mr_text_shown(t->place.before, shown, sizeof shown), t->place.behind);
    if (t->absent.outside)
        at += snprintf(t->report_text + at, sizeof t->report_text - (size_t)at,
                       "%llu of %u files lie outside the table's folder; ",
                       (unsigned long long)t->absent.outside, t->paths.count);
    if (src->info.label_offset)
        at += snprintf(t->report_text + at, sizeof t->report_text - (size_t)at,
                       "%lld is subtracted from every class; ", (long long)src->info.label_offset);
    if (at == 0) return;
    t->report_text[at - 2] = '\0';
    src->info.told = t->report_text;
}

static int open_folder(const mr_source *src, mri_csv_table *t, mr_error *err)
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

static int read_file(mr_source *src, mri_csv_table *t, const mr_source_config *cfg, mr_error *err)
{
    mri_csv c;
    int rc = mri_csv_open(&c, src->path, err);
    if (rc) return rc;
    c.is_known = mri_csv_is_known_name;
    if (!t->placed) { /* else they are known */
        rc = look_at_columns(src, t, &c, cfg, err);
        mri_csv_close(&c);
        forget_rows(t);
        if (!rc) rc = mri_csv_open(&c, src->path, err);
        if (rc) return rc;
        c.is_known = mri_csv_is_known_name;
    }
    rc = read_rows(src, t, &c, cfg, err);
    mri_csv_close(&c);
    return rc;
}

static int read_table(mr_source *src, mri_csv_table *t, const mr_source_config *cfg, mr_error *err)
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
    if (!rc) rc = mri_csv_table_number_classes(src, t, cfg, err);
    if (!rc) rc = mri_table_numbers_finish(&t->numbers, cfg->target_key, cfg, src->path, &t->targets, err);
    if (!rc) rc = mri_csv_named_tell(t, src, cfg, err);
    if (rc) return rc;
    close(t->folder);
    t->folder = -1;
    free(t->real_folder);
    t->real_folder = NULL;
    if (t->unlabelled.rows)
        mri_source_tell(src, "left out: %llu row%s of the table without a class, the first in line %llu",
                        (unsigned long long)t->unlabelled.rows, t->unlabelled.rows == 1 ? "" : "s",
                        (unsigned long long)t->unlabelled.first_line);
    mri_names_seal(&t->paths);
    mri_names_fini(&t->normal);
    tell(src, t);
    return fill_info(src, t, err);
}

/* ---- a folder of tables ---- */
/* The table of the part asked for. Where names speak of no test part, a column of the only table may: it is
 * taken, and its rows say. */
static int find_table(mri_filelist *l, const char *folder, const mr_source_config *cfg, mr_error *err)
{
    mr_error what = MR_ERROR_INIT;
    const int rc = mri_filelist_find_among(l, folder, cfg->split, mri_csv_looks_like_table, &what);
    if (rc == MR_ENOENT && cfg->split == MR_SPLIT_TEST)
        return mri_filelist_find_among(l, folder, MR_SPLIT_TRAIN, mri_csv_looks_like_table, err);
    if (rc && err) *err = what;
    return rc;
}

/* It takes the folder's place. */
static int take_table(mr_source *src, mri_csv_table *t, const mr_source_config *cfg, mr_error *err)
{
    mri_filelist l;
    const int rc = find_table(&l, src->path, cfg, err);
    if (rc) return rc;
    if (l.count == 1) {
        free(src->path);
        src->info.path = src->path = l.path[0];
        l.count = 0;
        t->lone = l.part == MRI_NO_PART;
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
static int open_like_train(mr_source *src, mri_csv_table *t, const char *folder, const mr_source_config *cfg,
                           mr_error *err)
{
    mr_source_config like = *cfg;
    mr_source *train;
    mri_filelist l;
    like.split = MR_SPLIT_TRAIN;
    int rc = mri_filelist_find_among(&l, folder, like.split, mri_csv_looks_like_table, NULL);
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

static int open_from_folder(mr_source *src, mri_csv_table *t, const mr_source_config *cfg, mr_error *err)
{
    char *folder = strdup(src->path);
    if (!folder) return mri_csv_table_no_memory(src, err);
    int rc = take_table(src, t, cfg, err);
    if (!rc && cfg->split == MR_SPLIT_TEST && src->info.has_test)
        rc = open_like_train(src, t, folder, cfg, err);
    else if (!rc) rc = read_table(src, t, cfg, err);
    free(folder);
    return rc;
}

static int csv_open(mr_source *src, const mr_source_config *cfg, mr_error *err)
{
    struct stat st;
    mri_csv_table *t = calloc(1, sizeof *t);
    if (!t) return mri_csv_table_no_memory(src, err);
    t->folder = -1;
    src->state = t;
    if (stat(src->path, &st) != 0)
        return mri_error_place(err, mr_error_sys(err, errno, "cannot look at the table"), src->path,
                               MR_NOWHERE, MR_NOWHERE);
    t->lone = !S_ISDIR(st.st_mode);
    return S_ISDIR(st.st_mode) ? open_from_folder(src, t, cfg, err) : read_table(src, t, cfg, err);
}

static void csv_close(mr_source *src)
{
    mri_csv_table *t = src->state;
    if (!t) return;
    if (t->folder >= 0) close(t->folder);
    mri_names_fini(&t->paths);
    mri_names_fini(&t->normal);
    mri_names_fini(&t->classes.names);
    mri_table_numbers_fini(&t->numbers);
    mri_rows_fini(&t->targets);
    mri_csv_named_fini(&t->named);
    free(t->size);
    free(t->line);
    free(t->label);
    free(t->classes.line);
    free(t->classes.numbered);
    free(t->real_folder);
    free(t);
}

static void csv_sample_path(const mr_source *src, uint64_t sample, char *buf, size_t buf_bytes)
{
    const mri_csv_table *t = src->state;
    const char *path = mri_name(&t->paths, (uint32_t)sample);
    snprintf(buf, buf_bytes, "%.*s%s", path[0] == '/' ? 0 : (int)t->folder_bytes, src->path, path);
}

static int csv_extent(const mr_source *src, uint64_t sample, mr_extent *out, mr_error *err)
{
    const mri_csv_table *t = src->state;
    *out = (mr_extent){MR_FILE_OF_SAMPLE, 0, t->size[sample]};
    if (t->size[sample] < MRI_CSV_TOO_LARGE) return MR_OK;
    char path[4096];
    int rc;
    if (t->size[sample] == MRI_CSV_TOO_LARGE)
        rc = mr_error_set(err, MR_ELIMIT, "line %u of the table: a file of more than %.0f MiB is no picture",
                          t->line[sample], (double)MRI_CSV_MOST_PICTURE / 1048576);
    else
        rc = mr_error_set(err, MR_ENOENT,
                          "line %u of the table names a file that is not there, or no regular file",
                          t->line[sample]);
    csv_sample_path(src, sample, path, sizeof path);
    return mri_error_place(err, rc, path, MR_NOWHERE, sample);
}

static int csv_label(const mr_source *src, uint64_t sample, int64_t *out)
{
    const mri_csv_table *t = src->state;
    if (!t->column.labelled) return MR_EUNSUPPORTED;
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
        int rc = mr_image_header_parse(data, bytes, &none, err); /* names its kind */
        if (((const mri_csv_table *)src->state)->absent.outside) /* and quotes it, which may be anybody's */
            rc = mr_error_set(err, MR_EFORMAT,
                              "expected a picture, found something else (not quoted: the table names files "
                              "outside its folder)");
        csv_sample_path(src, sample, path, sizeof path);
        return mri_error_place(err, rc, path, 0, sample);
    }
    const mri_csv_table *t = src->state;
    out->value_count = t->column.labelled ? 2 : 1;
    out->value[0] = (mr_value){.type = (mr_type)kind, .data = data, .bytes = bytes};
    if (t->column.labelled) out->value[1] = (mr_value){.type = MR_TYPE_INT, .i = t->label[sample]};
    mri_rows_give(&t->targets, sample, out);
    return MR_OK;
}

const mri_source_ops mri_source_csv = {
    .name = "csv",
    .help = "a table in text (commas, semicolons or tabs; plain or gzip) with the paths of pictures and "
            "their classes",
    .split_keys = true,
    .target_keys = true,
    .probe = csv_probe,
    .open = csv_open,
    .close = csv_close,
    .extent = csv_extent,
    .label = csv_label,
    .sample_path = csv_sample_path,
    .parse = csv_parse,
};
