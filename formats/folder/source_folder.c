/* formats/folder/source_folder.c: a folder of pictures, one sub-folder for each class.
 *
 *   PATH/CLASS/picture            or, with parts:   PATH/train/CLASS/picture, PATH/test/CLASS/picture (test
 *                                 or val)
 *
 * Classes are numbered in the byte order of their names, pictures of a class follow in the byte order of
 * theirs. The test part uses the train part's numbers. What a file holds is found when it is read, not from
 * its name; hidden entries and what is no regular file are counted and passed over. A data set of a million
 * files costs one name, one size and one offset each (about 35 bytes).
 *
 *   names  "a.jpg\0b.jpg\0..."   name_at[count]   size[count]   first[classes + 1]: where each class
 *          begins */
#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <sys/stat.h>
#include <unistd.h>
#include <xxhash.h>

#include "base/util.h"
#include "formats/folder/folder.h"
#include "formats/source/source.h"
#include "formats/source/value.h"

/* A larger file is a bad sample that nobody reads: it would cost its size in memory only to be told that it
 * is no picture. A PNG of the 100 million pixels that decoders accept by default stays below. */
#define MOST_PICTURE_BYTES ((uint64_t)256 << 20)

typedef struct entry {
    size_t at; /* of the name in text */
    uint64_t bytes;
} entry;

typedef struct listing { /* what is in one folder */
    char *text;
    size_t text_used, text_cap;
    entry *entries;
    size_t count, cap;
    uint64_t skipped;
} listing;

typedef struct folder {
    const char *part;         /* "" or the part's sub-folder */
    listing classes;          /* their names */
    const char **class_names; /* into classes.text */
    uint64_t *first;
    char *names;
    size_t names_used, names_cap;
    uint32_t *name_at;
    uint64_t *size;
    size_t cap;
    uint64_t count;
} folder;

/* ---- growing arrays ---- */
/* Room for `more` behind used elements; *items stays valid on failure. */
static bool make_room(void **items, size_t *cap, size_t used, size_t more, size_t item_bytes)
{
    if (more <= *cap - used) return true;
    size_t cap_new = *cap < 64 ? 64 : *cap, bytes;
    while (cap_new - used < more)
        if (!mri_mul_size(cap_new, 2, &cap_new)) return false;
    if (!mri_mul_size(cap_new, item_bytes, &bytes)) return false;
    void *larger = realloc(*items, bytes);
    if (!larger) return false;
    *items = larger;
    *cap = cap_new;
    return true;
}

static void listing_fini(listing *l)
{
    free(l->text);
    free(l->entries);
    *l = (listing){0};
}

static bool listing_add(listing *l, const char *name, uint64_t bytes)
{
    const size_t len = strlen(name) + 1;
    if (!make_room((void **)&l->text, &l->text_cap, l->text_used, len, 1)) return false;
    if (!make_room((void **)&l->entries, &l->cap, l->count, 1, sizeof *l->entries)) return false;
    memcpy(l->text + l->text_used, name, len);
    l->entries[l->count++] = (entry){l->text_used, bytes};
    l->text_used += len;
    return true;
}

static int by_bytes(const void *a, const void *b, void *text)
{
    return strcmp((const char *)text + ((const entry *)a)->at, (const char *)text + ((const entry *)b)->at);
}

/* ---- one folder ---- */
static int error_at_entry(mr_error *err, int code, const char *where, const char *name)
{
    char path[2 * 4096];
    snprintf(path, sizeof path, "%s/%s", where, name);
    return mri_error_place(err, code, path, MR_NOWHERE, MR_NOWHERE);
}

static int no_memory(mr_error *err, const char *where)
{
    return mri_error_place(err, mr_error_set(err, MR_ENOMEM, "no memory for the list of files"), where,
                           MR_NOWHERE, MR_NOWHERE);
}

static int look_at(int dir, const char *where, const char *name, struct stat *st, mr_error *err)
{
    if (fstatat(dir, name, st, 0) == 0) return MR_OK; /* links are followed */
    const int code =
        errno == ELOOP ? mr_error_set(err, MR_EFORMAT, "a symbolic link that leads back to itself: remove it")
        : errno == ENOENT ? mr_error_set(err, MR_EFORMAT, "a symbolic link to nothing: remove it")
                          : mr_error_sys(err, errno, "cannot look at it");
    return error_at_entry(err, code, where, name);
}

static int list_open(DIR *d, const char *where, bool want_folders, listing *out, mr_error *err)
{
    for (;;) {
        errno = 0;
        const struct dirent *e = readdir(d);
        if (!e)
            return errno ? mri_error_place(err, mr_error_sys(err, errno, "cannot list"), where, MR_NOWHERE,
                                           MR_NOWHERE)
                         : MR_OK;
        if (strcmp(e->d_name, ".") == 0 || strcmp(e->d_name, "..") == 0) continue;
        struct stat st;
        bool wanted = e->d_name[0] != '.' && !(want_folders && e->d_type == DT_REG);
        if (wanted) {
            const int rc = look_at(dirfd(d), where, e->d_name, &st, err);
            if (rc) return rc;
            wanted = want_folders ? S_ISDIR(st.st_mode) : S_ISREG(st.st_mode);
        }
        if (!wanted) out->skipped++;
        else if (!listing_add(out, e->d_name, want_folders ? 0 : (uint64_t)st.st_size))
            return no_memory(err, where);
    }
}

/* Sub-folders, or files with their sizes, sorted by name. */
static int list_folder(int parent, const char *name, const char *where, bool want_folders, listing *out,
                       mr_error *err)
{
    const int fd = openat(parent, name, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
    if (fd < 0)
        return mri_error_place(err, mr_error_sys(err, errno, "cannot open the folder"), where, MR_NOWHERE,
                               MR_NOWHERE);
    DIR *d = fdopendir(fd);
    if (!d) {
        close(fd);
        return no_memory(err, where);
    }
    const int rc = list_open(d, where, want_folders, out, err);
    closedir(d);
    if (!rc && out->count > 1) qsort_r(out->entries, out->count, sizeof *out->entries, by_bytes, out->text);
    return rc;
}

/* A folder with a folder in it. What cannot be looked at here is told when it is listed. */
static bool holds_folders(int root, const char *name)
{
    const int fd = openat(root, name, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
    DIR *d = fd >= 0 ? fdopendir(fd) : NULL;
    if (!d) {
        if (fd >= 0) close(fd);
        return false;
    }
    bool found = false;
    const struct dirent *e;
    while (!found && (e = readdir(d))) {
        struct stat st;
        found = e->d_name[0] != '.' && fstatat(fd, e->d_name, &st, 0) == 0 && S_ISDIR(st.st_mode);
    }
    closedir(d);
    return found;
}

/* ---- the arena of names ---- */
static bool add_files(folder *f, const listing *l)
{
    size_t cap = f->cap;
    if (!make_room((void **)&f->name_at, &cap, f->count, l->count, sizeof *f->name_at)) return false;
    cap = f->cap;
    if (!make_room((void **)&f->size, &cap, f->count, l->count, sizeof *f->size)) return false;
    f->cap = cap;
    if (!make_room((void **)&f->names, &f->names_cap, f->names_used, l->text_used, 1)) return false;
    for (size_t k = 0; k < l->count; k++) {
        const char *name = l->text + l->entries[k].at;
        const size_t len = strlen(name) + 1;
        f->name_at[f->count] = (uint32_t)f->names_used;
        f->size[f->count++] = l->entries[k].bytes;
        memcpy(f->names + f->names_used, name, len);
        f->names_used += len;
    }
    return true;
}

/* Give back what growing took too much. */
static void shrink(folder *f)
{
    void *p = realloc(f->names, f->names_used);
    if (p) f->names = p, f->names_cap = f->names_used;
    p = realloc(f->name_at, f->count * sizeof *f->name_at);
    if (p) f->name_at = p;
    p = realloc(f->size, f->count * sizeof *f->size);
    if (p) f->size = p;
    f->cap = f->count;
}

static uint64_t memory_of(const folder *f)
{
    return sizeof *f + f->names_cap + f->cap * (sizeof *f->name_at + sizeof *f->size) + f->classes.text_cap +
           f->classes.cap * sizeof(entry) + f->classes.count * (sizeof *f->class_names + sizeof *f->first);
}

/* ---- classes ---- */
static int list_classes(mr_source *src, folder *f, int root, const char *where, mr_error *err)
{
    int rc = list_folder(root, ".", where, true, &f->classes, err);
    if (rc) return rc;
    src->info.skipped_files += f->classes.skipped;
    if (f->classes.count == 0) {
        rc = mr_error_set(err, MR_EFORMAT,
                          "no class folders: expected FOLDER/CLASS/PICTURE, found %llu other entries",
                          (unsigned long long)f->classes.skipped);
        return mri_error_place(err, rc, where, MR_NOWHERE, MR_NOWHERE);
    }
    if (f->classes.count >= UINT32_MAX)
        return mr_error_set(err, MR_ELIMIT, "more classes than can be numbered");
    f->class_names = malloc(f->classes.count * sizeof *f->class_names);
    f->first = malloc((f->classes.count + 1) * sizeof *f->first);
    if (!f->class_names || !f->first) return no_memory(err, where);
    for (size_t k = 0; k < f->classes.count; k++)
        f->class_names[k] = f->classes.text + f->classes.entries[k].at;
    src->info.class_count = (uint32_t)f->classes.count;
    src->info.class_names = f->class_names;
    return MR_OK;
}

static int find_class(const folder *f, const char *name)
{
    size_t low = 0, high = f->classes.count;
    while (low < high) {
        const size_t mid = low + (high - low) / 2;
        const int order = strcmp(name, f->class_names[mid]);
        if (order == 0) return (int)mid;
        if (order < 0) high = mid;
        else low = mid + 1;
    }
    return -1;
}

/* Every class of the test part has a number from the train part, or its labels would mean something else. */
static int check_test_classes(const folder *f, int part, const char *where, mr_error *err)
{
    listing l = {0};
    int rc = list_folder(part, ".", where, true, &l, err);
    for (size_t k = 0; !rc && k < l.count; k++) {
        const char *name = l.text + l.entries[k].at;
        if (find_class(f, name) >= 0) continue;
        rc = error_at_entry(err, mr_error_set(err, MR_EFORMAT, "the train part has no class of this name"),
                            where, name);
    }
    listing_fini(&l);
    return rc;
}

static int add_class(mr_source *src, folder *f, int part, size_t class_at, bool may_lack, const char *where,
                     mr_error *err)
{
    const char *name = f->class_names[class_at];
    char path[2 * 4096];
    struct stat st;
    snprintf(path, sizeof path, "%s/%s", where, name);
    if (may_lack && fstatat(part, name, &st, 0) != 0 && errno == ENOENT) return MR_OK;
    listing l = {0};
    int rc = list_folder(part, name, path, false, &l, err);
    if (!rc && l.count == 0) {
        rc = mr_error_set(err, MR_EFORMAT,
                          "a class without pictures (%llu other entries): put some in, or remove the folder",
                          (unsigned long long)l.skipped);
        mri_error_place(err, rc, path, MR_NOWHERE, MR_NOWHERE);
    }
    if (!rc && f->names_used + l.text_used > UINT32_MAX)
        rc = mr_error_set(err, MR_ELIMIT, "more than 4 GiB of file names: convert the classes in groups");
    if (!rc && !add_files(f, &l)) rc = no_memory(err, path);
    src->info.skipped_files += l.skipped;
    listing_fini(&l);
    return rc;
}

static int add_classes(mr_source *src, folder *f, int part, bool may_lack, const char *where,
                       const mr_source_config *cfg, mr_error *err)
{
    for (size_t k = 0; k < f->classes.count; k++) {
        f->first[k] = f->count;
        int rc = add_class(src, f, part, k, may_lack, where, err);
        if (!rc) rc = mri_source_budget(cfg, memory_of(f), src->path, err);
        if (rc) return rc;
    }
    f->first[f->classes.count] = f->count;
    return f->count > 0 ? MR_OK
                        : mri_error_place(err, mr_error_set(err, MR_EFORMAT, "no pictures in any class"),
                                          where, MR_NOWHERE, MR_NOWHERE);
}

/* ---- parts ---- */
static const char *const test_names[] = {"test", "val", "valid", "validation"};

static const char *find_test(int root)
{
    for (size_t k = 0; k < MRI_ARRAY_COUNT(test_names); k++)
        if (holds_folders(root, test_names[k])) return test_names[k];
    return NULL;
}

static int open_part(int root, const char *part, const char *where, int *out, mr_error *err)
{
    *out = openat(root, part, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
    if (*out >= 0) return MR_OK;
    return mri_error_place(err, mr_error_sys(err, errno, "cannot open the folder"), where, MR_NOWHERE,
                           MR_NOWHERE);
}

static int open_test(mr_source *src, folder *f, int root, const mr_source_config *cfg, mr_error *err)
{
    char where[4096];
    int part;
    snprintf(where, sizeof where, "%s/%s", src->path, f->part);
    int rc = open_part(root, f->part, where, &part, err);
    if (rc) return rc;
    rc = check_test_classes(f, part, where, err);
    if (!rc) rc = add_classes(src, f, part, true, where, cfg, err);
    close(part);
    return rc;
}

static int open_tree(mr_source *src, folder *f, int root, const mr_source_config *cfg, mr_error *err)
{
    if (!holds_folders(root, "train")) {
        const int rc = list_classes(src, f, root, src->path, err);
        return rc ? rc : add_classes(src, f, root, false, src->path, cfg, err);
    }
    char where[4096];
    int train;
    const char *test = find_test(root);
    src->info.has_test = test != NULL;
    snprintf(where, sizeof where, "%s/train", src->path);
    int rc = open_part(root, "train", where, &train, err);
    if (rc) return rc;
    rc = list_classes(src, f, train, where, err);
    if (!rc && (cfg->split != MR_SPLIT_TEST || !test)) {
        f->part = "train";
        rc = add_classes(src, f, train, false, where, cfg, err);
    } else if (!rc) {
        f->part = test;
        rc = open_test(src, f, root, cfg, err);
    }
    close(train);
    return rc;
}

/* ---- the source ---- */
static bool folder_probe(const mri_probe *p) { return p->is_folder; }

static int fill_info(mr_source *src, folder *f, mr_error *err)
{
    XXH3_state_t *x = XXH3_createState();
    if (!x) return no_memory(err, src->path);
    XXH3_64bits_reset(x);
    mr_source_info *info = &src->info;
    for (uint32_t k = 0; k < info->class_count; k++) {
        XXH3_64bits_update(x, f->class_names[k], strlen(f->class_names[k]) + 1);
        XXH3_64bits_update(x, &f->first[k], sizeof f->first[k]);
    }
    XXH3_64bits_update(x, f->names, f->names_used);
    XXH3_64bits_update(x, f->size, f->count * sizeof *f->size);
    info->fingerprint = XXH3_64bits_digest(x);
    XXH3_freeState(x);
    for (uint64_t k = 0; k < f->count; k++) {
        if (f->size[k] > MOST_PICTURE_BYTES) continue; /* never read: folder_extent() */
        info->max_extent_bytes = mri_max_u64(info->max_extent_bytes, f->size[k]);
        info->total_bytes += f->size[k];
    }
    info->format = "folder";
    info->count = f->count;
    info->memory_bytes = memory_of(f);
    mri_source_set_image_label(src, mri_field("image", MR_TYPE_IMAGE));
    return MR_OK;
}

static int folder_open(mr_source *src, const mr_source_config *cfg, mr_error *err)
{
    folder *f = calloc(1, sizeof *f);
    if (!f) return no_memory(err, src->path);
    f->part = "";
    src->state = f;
    const int root = open(src->path, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
    if (root < 0)
        return mri_error_place(err, mr_error_sys(err, errno, "cannot open the folder"), src->path, MR_NOWHERE,
                               MR_NOWHERE);
    const int rc = open_tree(src, f, root, cfg, err);
    close(root);
    if (rc) return rc;
    shrink(f);
    return fill_info(src, f, err);
}

static void folder_close(mr_source *src)
{
    folder *f = src->state;
    if (!f) return;
    listing_fini(&f->classes);
    free(f->class_names);
    free(f->first);
    free(f->names);
    free(f->name_at);
    free(f->size);
    free(f);
}

/* The last class that begins at or before the sample: classes of a test part may be empty. */
static uint32_t class_of(const mr_source *src, uint64_t sample)
{
    const folder *f = src->state;
    uint32_t low = 0, high = (uint32_t)f->classes.count - 1; /* its own: info may have the names of another
                                                                data set */
    while (low < high) {
        const uint32_t mid = low + (high - low + 1) / 2;
        if (f->first[mid] <= sample) low = mid;
        else high = mid - 1;
    }
    return low;
}

static int folder_label(const mr_source *src, uint64_t sample, int64_t *out)
{
    *out = class_of(src, sample);
    return MR_OK;
}

static void folder_sample_path(const mr_source *src, uint64_t sample, char *buf, size_t buf_bytes)
{
    const folder *f = src->state;
    snprintf(buf, buf_bytes, "%s%s%s/%s/%s", src->path, f->part[0] ? "/" : "", f->part,
             f->class_names[class_of(src, sample)], f->names + f->name_at[sample]);
}

static int folder_extent(const mr_source *src, uint64_t sample, mr_extent *out, mr_error *err)
{
    const folder *f = src->state;
    if (f->size[sample] > MOST_PICTURE_BYTES) {
        char path[4096];
        mr_error_set(err, MR_ELIMIT,
                     "a file of %.0f MiB is no picture: expected at most %.0f MiB; take it out",
                     (double)f->size[sample] / 1048576, (double)MOST_PICTURE_BYTES / 1048576);
        folder_sample_path(src, sample, path, sizeof path);
        return mri_error_place(err, MR_ELIMIT, path, MR_NOWHERE, sample);
    }
    *out = (mr_extent){MR_FILE_OF_SAMPLE, 0, f->size[sample]};
    return MR_OK;
}

static int folder_parse(const mr_source *src, uint64_t sample, const void *data, size_t bytes, mr_sample *out,
                        mr_error *err)
{
    const int kind = mr_image_sniff(data, bytes);
    if (!kind) {
        char path[4096];
        mr_image_header none;
        const int rc = mr_image_header_parse(data, bytes, &none, err); /* says what it looks like */
        folder_sample_path(src, sample, path, sizeof path);
        return mri_error_place(err, rc, path, 0, sample);
    }
    out->value_count = 2;
    out->value[0] = (mr_value){.type = (mr_type)kind, .data = data, .bytes = bytes};
    out->value[1] = (mr_value){.type = MR_TYPE_INT, .i = class_of(src, sample)};
    return MR_OK;
}

const mri_source_ops mri_source_folder = {
    .name = "folder",
    .help = "pictures (JPEG, PNG) in one sub-folder for each class, with train/ and test/ above them or not",
    .no_keys = true,
    .probe = folder_probe,
    .open = folder_open,
    .close = folder_close,
    .extent = folder_extent,
    .label = folder_label,
    .sample_path = folder_sample_path,
    .parse = folder_parse,
};
