/* formats/folder/source_folder.c: the samples of a folder of pictures.
 *
 *   PATH/CLASS/picture            or, with parts:   PATH/train/CLASS/picture, PATH/test/CLASS/picture (test
 *                                 or val)
 *
 * Classes are numbered in the byte order of their names, pictures of a class follow in the byte order of
 * theirs. The test part uses the train part's numbers. Without classes (MR_CLASSES_NONE) the folders go in
 * that order. A data set of a million files costs one name, one size and one offset each (about 35 bytes).
 *
 *   names  "a.jpg\0b.jpg\0..."   name_at[count]   size[count]   first[classes + 1]: where each class
 *          begins */
#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <stdio.h>
#include <strings.h>
#include <sys/stat.h>
#include <unistd.h>
#include <xxhash.h>

#include "base/util.h"
#include "formats/folder/folder.h"
#include "formats/image/picture_kind.h"
#include "formats/source/value.h"
#include "formats/storage/outside.h"
#include "formats/storage/storage.h"

/* A larger file is a bad sample that nobody reads: it would cost its size in memory only to show that it
 * is no picture. A PNG of the 100 million pixels that decoders accept by default stays below. */
#define MOST_PICTURE_BYTES ((uint64_t)256 << 20)

typedef struct folder {
    const char *part;         /* "" or the part's sub-folder */
    char inner[NAME_MAX + 1]; /* the folder in every class folder that its pictures lie in; "": none */
    mri_folder_parts parts;
    bool labels;              /* the folders are classes */
    mri_listing classes;      /* their names */
    const char **class_names; /* into classes.text */
    uint64_t *first;
    char *names;
    size_t names_used, names_cap;
    uint32_t *name_at;
    uint64_t *size;
    size_t cap;
    uint64_t count, links; /* samples; of them, links */
    mri_left_out left;     /* while opening */
    mri_masks masks;
    /* of an archive */
    bool archive;
    mri_members members;
    uint32_t *node; /* of each sample */
    char *root;     /* the path, and the path inside the archive; of a folder its path */
} folder;

/* ---- the arena of names ---- */
static bool add_nodes(folder *f, const mri_listing *l, int where)
{
    size_t cap = f->cap;
    if (!f->archive) return true;
    if (!mri_make_room((void **)&f->node, &cap, f->count, l->count, sizeof *f->node)) return false;
    for (size_t k = 0; k < l->count; k++) {
        const int at = mri_members_find(&f->members, where, mri_listing_name(l, k));
        f->node[f->count + k] = at < 0 ? 0 : (uint32_t)at; /* it was listed */
    }
    return true;
}

static bool add_files(folder *f, const mri_listing *l, int where)
{
    size_t cap = f->cap;
    if (!add_nodes(f, l, where)) return false;
    if (!mri_make_room((void **)&f->name_at, &cap, f->count, l->count, sizeof *f->name_at)) return false;
    cap = f->cap;
    if (!mri_make_room((void **)&f->size, &cap, f->count, l->count, sizeof *f->size)) return false;
    f->cap = cap;
    if (!mri_make_room((void **)&f->names, &f->names_cap, f->names_used, l->text_used, 1)) return false;
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
           f->classes.cap * sizeof(mri_listed) +
           (f->archive ? mri_members_memory(&f->members) + f->cap * sizeof *f->node : 0) +
           f->classes.count * (sizeof *f->class_names + sizeof *f->first);
}

/* ---- classes ---- */
static int no_memory(mr_error *err, const char *where) { return mri_folder_no_memory(err, where); }

static int list_classes(mr_source *src, folder *f, mri_dir part, const char *where, mri_left_out *left,
                        const mr_source_config *cfg, mr_error *err)
{
    int rc = mri_tree_classes(&f->classes, part, where, f->inner, left, cfg, err);
    if (!rc && cfg->classes == MR_CLASSES_FIRST) rc = mri_labels_beside(&f->classes, where, left, err);
    src->holds_none = rc == MR_EFORMAT;
    if (rc) return rc;
    f->class_names = malloc(f->classes.count * sizeof *f->class_names);
    f->first = malloc((f->classes.count + 1) * sizeof *f->first);
    if (!f->class_names || !f->first) return no_memory(err, where);
    for (size_t k = 0; k < f->classes.count; k++) f->class_names[k] = mri_listing_name(&f->classes, k);
    if (!f->labels) return MR_OK;
    src->info.class_count = (uint32_t)f->classes.count;
    src->info.class_names = f->class_names;
    return MR_OK;
}

static int find_class(const folder *f, const char *name)
{
    return mri_listing_find(&f->classes, name, strlen(name));
}

static bool is_of_pictures(const char *name)
{
    static const char *const names[] = {"images",   "image",  "imgs",  "img",
                                        "pictures", "photos", "jpegs", "jpg"};
    for (size_t k = 0; k < MRI_ARRAY_COUNT(names); k++)
        if (strcasecmp(name, names[k]) == 0) return true;
    return false;
}

static const char *look_alike(const folder *f, const char *name)
{
    for (size_t k = 0; k < f->classes.count; k++)
        if (mri_names_look_alike(f->class_names[k], name)) return f->class_names[k];
    return NULL;
}

static void tell_look_alikes(mr_source *src, const folder *f)
{
    for (size_t k = 0; f->labels && k < f->classes.count; k++) {
        const char *name = f->class_names[k], *other = strpbrk(name, "\xcc\xcd") ? look_alike(f, name) : NULL;
        if (!other) continue;
        mri_source_tell(
            src,
            "two classes look the same, %s and %s: their accents are written in two forms of Unicode (NFC, "
            "NFD); rename one where they are one class (convmv -f utf8 -t utf8 --nfc)",
            other, name);
        return;
    }
}

/* 0, 1, 10, 11, 2: whoever takes the names for the classes' numbers has other labels. */
static void tell_pieces(mr_source *src, const folder *f)
{
    if (f->labels && mri_are_called_pieces(&f->classes))
        mri_source_tell(
            src,
            "the class folders are called like pieces of one set (%s/, %s/); if they are, take them "
            "without classes (--classes none)",
            f->class_names[0], f->class_names[1]);
}

static void tell_numbers(mr_source *src, const folder *f)
{
    uint64_t before = 0;
    for (size_t k = 0; f->labels && k < f->classes.count; k++) {
        const char *name = f->class_names[k];
        const size_t bytes = strlen(name);
        if (bytes == 0 || bytes > 18 || strspn(name, "0123456789") != bytes) return;
    }
    for (size_t k = 0; f->labels && k < f->classes.count; k++) {
        const uint64_t number = strtoull(f->class_names[k], NULL, 10);
        if (k > 0 && number < before) {
            mri_source_tell(src,
                            "the class folders are called by numbers, and are numbered in the order of their "
                            "bytes: folder %s is class %zu; write them with as many digits each (%02llu) for "
                            "the order of the numbers",
                            f->class_names[k], k, (unsigned long long)number);
            return;
        }
        before = number;
    }
}

/* Every class of the test part has a number from the train part, or its labels would mean something else. */
static int check_test_classes(folder *f, mri_dir part, const char *where, const mr_source_config *cfg,
                              mr_error *err)
{
    mri_listing l = {0};
    int rc = mri_tree_classes(&l, part, where, f->inner, &f->left, cfg, err);
    f->left.of[MRI_LEFT_EMPTY].count = 0; /* it need not have all of them */
    for (size_t k = 0; !rc && k < l.count; k++) {
        const char *name = mri_listing_name(&l, k);
        if (find_class(f, name) >= 0) continue;
        if (look_alike(f, name))
            mr_error_set(err, MR_EFORMAT,
                         "the train part has no class of this name, but one that looks the same: its "
                         "accents are written in another form of Unicode (NFC, NFD); rename one of them "
                         "(convmv -f utf8 -t utf8 --nfc)");
        else
            mr_error_set(
                err, MR_EFORMAT, "the train part has no class of this name%s",
                l.count > 1 || !is_of_pictures(name)
                    ? ""
                    : ": all pictures lie in one folder, which says no class; a table of them and their "
                      "classes can be named (--val FILE), or none is used (--val none)");
        rc = mri_folder_error(err, MR_EFORMAT, where, name);
    }
    mri_listing_fini(&l);
    return rc;
}

static int add_class(folder *f, mri_dir part, size_t class_at, bool may_lack, const char *where,
                     const mr_source_config *cfg, mr_error *err)
{
    const char *name = f->class_names[class_at];
    char path[MRI_FOLDER_PATH];
    snprintf(path, sizeof path, "%s%s%s", where, name[0] ? "/" : "", name);
    mri_listing l = {0};
    const mri_list_what want = {.files = &l, .tell_folders = cfg->classes == MR_CLASSES_FIRST};
    const mri_list_what beside = {.tell_files = true};
    char below[MRI_FOLDER_PATH];
    snprintf(below, sizeof below, "%s%s%s", name[0] ? name : ".", f->inner[0] ? "/" : "", f->inner);
    if ((may_lack || f->inner[0]) && !mri_folder_has(part, below)) return MR_OK;
    int rc = f->inner[0] ? mri_list_folder(part, name, path, &beside, &f->left, err) : MR_OK;
    const size_t at = strlen(path);
    if (f->inner[0]) snprintf(path + at, sizeof path - at, "/%s", f->inner);
    if (!rc) rc = mri_list_folder(part, below, path, &want, &f->left, err);
    if (!rc && f->names_used + l.text_used > UINT32_MAX)
        rc = mr_error_set(err, MR_ELIMIT, "more than 4 GiB of file names: convert the classes in groups");
    if (!rc && !add_files(f, &l, part.in ? mri_members_find(part.in, part.at, below) : -1))
        rc = no_memory(err, path);
    if (!rc) mri_find_masks(&f->masks, &l, name);
    f->links += l.links;
    mri_listing_fini(&l);
    return rc;
}

static int no_pictures(const folder *f, const char *where, mr_error *err)
{
    char text[512];
    mri_left_out_text(&f->left, MRI_LEFT_NO_PICTURE, text, sizeof text);
    const int rc = mr_error_set(err, MR_EFORMAT, "no pictures in any %s%s%s", f->labels ? "class" : "folder",
                                text[0] ? ", but " : "", text);
    return mri_error_place(err, rc, where, MR_NOWHERE, MR_NOWHERE);
}

/* Without classes all folders are taken: images/train/ and images/val/ together, unless it is said. */
static int check_parts(const folder *f, const char *where, mr_error *err)
{
    mri_listing with_pictures = {0};
    int rc = MR_OK;
    for (size_t k = 0; !rc && k < f->classes.count; k++)
        if (f->first[k] < f->first[k + 1] && !mri_listing_add(&with_pictures, f->class_names[k], 0))
            rc = no_memory(err, where);
    if (!rc) rc = mri_parts_are_apart(&with_pictures, false, where, err);
    mri_listing_fini(&with_pictures);
    return rc;
}

static int check_masks(const folder *f, mri_dir part, const char *where, const mr_source_config *cfg,
                       mr_error *err)
{
    if (cfg->format) return MR_OK; /* the folders are classes */
    const mri_taken taken = {.classes = f->class_names,
                             .class_count = f->classes.count,
                             .deep = cfg->classes == MR_CLASSES_DEPTH,
                             .inner = f->inner,
                             .first = f->first,
                             .names = f->names,
                             .name_at = f->name_at,
                             .size = f->size};
    return mri_masks_are_no_classes(&taken, part, where, err);
}

static int add_classes(mr_source *src, folder *f, mri_dir part, bool may_lack, const char *where,
                       const mr_source_config *cfg, mr_error *err)
{
    for (size_t k = 0; k < f->classes.count; k++) {
        f->first[k] = f->count;
        int rc = add_class(f, part, k, may_lack, where, cfg, err);
        if (!rc) rc = mri_source_budget(cfg, memory_of(f), src->path, err);
        if (rc) return rc;
    }
    f->first[f->classes.count] = f->count;
    src->holds_none = f->count == 0;
    if (src->holds_none) return no_pictures(f, where, err);
    if (cfg->classes == MR_CLASSES_NONE) return check_parts(f, where, err);
    int rc = f->labels ? check_masks(f, part, where, cfg, err) : MR_OK;
    if (rc || cfg->classes != MR_CLASSES_FIRST) return rc;
    rc = mri_labels_inside(&f->classes, where, f->inner, &f->left, err);
    src->holds_none = rc != MR_OK; /* look for the table */
    return rc;
}

/* ---- parts ---- */
/* Classes as `like` has them, where that is another part. */
static int open_part(mr_source *src, folder *f, mri_dir root, const char *like, const mr_source_config *cfg,
                     mr_error *err)
{
    char where[4096], like_where[4096];
    mri_left_out other = {.root = f->root};
    mri_dir part = {.at = -1}, like_part = {.at = -1};
    const bool same = strcmp(like, f->part) == 0;
    snprintf(where, sizeof where, "%s%s%s", f->root, f->part[0] ? "/" : "", f->part);
    snprintf(like_where, sizeof like_where, "%s/%s", f->root, like);
    int rc = mri_folder_open(root, f->part[0] ? f->part : ".", where, &part, err);
    if (!rc && !same) rc = mri_folder_open(root, like, like_where, &like_part, err);
    if (!rc)
        rc = list_classes(src, f, same ? part : like_part, same ? where : like_where,
                          same ? &f->left : &other, cfg, err);
    if (!rc && !same) rc = check_test_classes(f, part, where, cfg, err);
    if (!rc) rc = add_classes(src, f, part, !same, where, cfg, err);
    mri_folder_close(part);
    mri_folder_close(like_part);
    return rc;
}

static int find_parts(mr_source *src, folder *f, mri_dir root, mr_error *err)
{
    mri_listing folders = {0};
    mri_list_what want = {.folders = &folders};
    int rc = mri_list_folder(root, ".", f->root, &want, NULL, err);
    if (!rc) rc = mri_folder_find_parts(&f->parts, root, f->root, &folders, &f->left, err);
    mri_listing_fini(&folders);
    if (rc || !(f->parts.train[0] || f->parts.test[0])) return rc;
    want = (mri_list_what){.tell_files = true};
    if (f->parts.passed[0])
        mri_source_tell(src, "of %s/ and %s/ the part to test with is %s/", f->parts.test, f->parts.passed,
                        f->parts.test);
    return mri_list_folder(root, ".", f->root, &want, &f->left, err);
}

/* Tables next to the class folders, and next to the parts. */
static int check_tables(const folder *f, mri_dir root, const mr_source_config *cfg, mr_error *err)
{
    char where[4096];
    if (cfg->classes != MR_CLASSES_FIRST || cfg->format) return MR_OK;
    if (f->archive) {
        const int at = f->part[0] ? mri_members_find(root.in, root.at, f->part) : root.at;
        return mri_tables_of_archive(&f->classes, (mri_dir){root.in, at}, f->root, err);
    }
    if (f->classes.count < 2) return MR_OK;
    snprintf(where, sizeof where, "%s%s%s", f->root, f->part[0] ? "/" : "", f->part);
    const int rc = mri_tables_beside(&f->classes, where, err);
    return rc || !f->part[0] ? rc : mri_tables_beside(&f->classes, f->root, err);
}

static int open_tree(mr_source *src, folder *f, mri_dir root, const mr_source_config *cfg, mr_error *err)
{
    const mri_folder_parts *p = &f->parts;
    int rc = find_parts(src, f, root, err);
    if (rc) return rc;
    src->info.has_test = p->test[0] != '\0';
    src->info.only_test = src->info.has_test && !p->train[0] && cfg->split == MR_SPLIT_AUTO;
    if (src->info.has_test && !p->train[0] && cfg->split == MR_SPLIT_TRAIN)
        return mri_error_place(err, mr_error_set(err, MR_ENOENT, "no train part: found only %s/", p->test),
                               f->root, MR_NOWHERE, MR_NOWHERE);
    const bool test = src->info.has_test && (cfg->split == MR_SPLIT_TEST || src->info.only_test);
    f->part = test ? p->test : p->train;
    bool there[MRI_PART_COUNT] = {false};
    there[mri_part_of_name(p->train)] = there[mri_part_of_name(p->test)] = true;
    there[mri_part_of_name(p->passed)] = true;
    mri_source_set_parts(src, there, mri_part_of_name(f->part));
    rc = open_part(src, f, root, p->train[0] && f->labels ? p->train : f->part, cfg, err);
    if (!rc) rc = check_tables(f, root, cfg, err);
    if (rc) return rc;
    const mri_same_folders same = {root, &f->classes, f->inner, f->part, test ? p->train : p->test};
    return mri_same_folders_tell(src, &same, err);
}

/* ---- one sample ---- */
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

static void folder_sample_path(const mr_source *src, uint64_t sample, char *buf, size_t buf_bytes)
{
    const folder *f = src->state;
    const char *class_name = f->class_names[class_of(src, sample)];
    snprintf(buf, buf_bytes, "%s%s%s%s%s%s%s/%s", f->root, f->part[0] ? "/" : "", f->part,
             class_name[0] ? "/" : "", class_name, f->inner[0] ? "/" : "", f->inner,
             f->names + f->name_at[sample]);
}

/* ---- the source ---- */
static bool folder_probe(const mri_probe *p) { return p->is_folder; }

static int fill_info(mr_source *src, folder *f, mr_error *err)
{
    XXH3_state_t *x = XXH3_createState();
    if (!x) return no_memory(err, src->path);
    XXH3_64bits_reset(x);
    mr_source_info *info = &src->info;
    if (!f->labels) XXH3_64bits_update(x, "no classes", 10);
    for (size_t k = 0; k < f->classes.count; k++) {
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
    info->skipped_files = mri_left_out_count(&f->left);
    mri_source_set_image_label(src, mri_field("image", MR_TYPE_IMAGE));
    if (f->labels) return MR_OK;
    info->field_count = 1;
    info->label_field = -1;
    return MR_OK;
}

/* The folder, or the path inside the archive. */
static int open_root(mr_source *src, folder *f, const mr_source_config *cfg, mri_dir *root, mr_error *err)
{
    const mri_dir here = {NULL, AT_FDCWD};
    const char *inside = f->members.inside;
    int rc = f->archive ? mri_members_open(&f->members, src->path, cfg, err) : MR_OK;
    if (rc) return rc;
    const size_t room = strlen(src->path) + strlen(inside) + 2;
    f->root = malloc(room);
    if (!f->root) return no_memory(err, src->path);
    snprintf(f->root, room, "%s%s%s", src->path, inside[0] ? "/" : "", inside);
    f->left.root = f->root;
    if (!f->archive) return mri_folder_open(here, src->path, src->path, root, err);
    *root = (mri_dir){&f->members, mri_members_find(&f->members, 0, inside)};
    return MR_OK;
}

static int open_as(mr_source *src, bool archive, const mr_source_config *cfg, mr_error *err)
{
    folder *f = calloc(1, sizeof *f);
    mri_dir root;
    if (!f) return no_memory(err, src->path);
    f->part = "";
    f->labels = cfg->classes != MR_CLASSES_NONE;
    f->archive = archive;
    f->members.fd = -1;
    src->state = f;
    int rc = open_root(src, f, cfg, &root, err);
    if (!rc && archive && cfg->withdrawn == MR_WITHDRAWN_LEAVE_OUT)
        rc = mri_members_check_lists(&f->members, err);
    if (rc) return rc;
    rc = open_tree(src, f, root, cfg, err);
    mri_folder_close(root);
    if (rc) return rc;
    mri_left_out_tell(&f->left, src);
    mri_tell_masks(&f->masks, src);
    tell_look_alikes(src, f);
    tell_numbers(src, f);
    tell_pieces(src, f);
    if (f->inner[0])
        mri_source_tell(
            src, "every class folder has its pictures in a folder %s/: the folders above are the classes",
            f->inner);
    shrink(f);
    src->no_links = f->links == 0;
    const mri_same_files same = {f->count, f->links, memory_of(f), f->labels, folder_sample_path, class_of};
    rc = mri_same_files_tell(src, &same, cfg, err);
    return rc ? rc : fill_info(src, f, err);
}

static int folder_open(mr_source *src, const mr_source_config *cfg, mr_error *err)
{
    return open_as(src, false, cfg, err);
}

static void folder_close(mr_source *src)
{
    folder *f = src->state;
    if (!f) return;
    mri_listing_fini(&f->classes);
    free(f->class_names);
    free(f->first);
    free(f->names);
    free(f->name_at);
    free(f->size);
    free(f->node);
    free(f->root);
    mri_members_close(&f->members);
    free(f);
}

static int folder_label(const mr_source *src, uint64_t sample, int64_t *out)
{
    const folder *f = src->state;
    if (!f->labels) return MR_EUNSUPPORTED;
    *out = class_of(src, sample);
    return MR_OK;
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

/* A file that is not a picture is described. The description may quote it, but not a file that a link of
 * another user leads to. */
static int no_picture(const mr_source *src, uint64_t sample, const void *data, size_t bytes, mr_error *err)
{
    char path[4096], kind[MRI_PICTURE_KIND_BYTES];
    folder_sample_path(src, sample, path, sizeof path);
    const char *found = mri_picture_kind(data, bytes, kind);
    if (found == kind && mri_leads_outside(src->path, path))
        found = "something else (not quoted: a link leads to it, out of the data set's folder)";
    return mri_error_place(err, mr_error_set(err, MR_EFORMAT, "expected a picture, found %s", found), path, 0,
                           sample);
}

static int folder_parse(const mr_source *src, uint64_t sample, const void *data, size_t bytes, mr_sample *out,
                        mr_error *err)
{
    const int kind = mr_image_sniff(data, bytes);
    if (!kind) return no_picture(src, sample, data, bytes, err);
    const folder *f = src->state;
    out->value_count = f->labels ? 2 : 1;
    out->value[0] = (mr_value){.type = (mr_type)kind, .data = data, .bytes = bytes};
    out->value[1] = (mr_value){.type = MR_TYPE_INT, .i = class_of(src, sample)};
    return MR_OK;
}

const mri_source_ops mri_source_folder = {
    .name = "folder",
    .help =
        "pictures (JPEG, PNG, GIF, BMP, WebP, TIFF, HEIC, AVIF) in one sub-folder for each class, which may "
        "lie in train/ and test/",
    .no_keys = true,
    .class_rules = true,
    .probe = folder_probe,
    .open = folder_open,
    .close = folder_close,
    .extent = folder_extent,
    .label = folder_label,
    .sample_path = folder_sample_path,
    .parse = folder_parse,
};

/* ---- class folders in an archive ---- */
extern const mri_source_ops mri_source_archive;
static const mri_source_ops deflated;

static bool archive_probe(const mri_probe *p) { return mri_members_probe(p); }

static int archive_open(mr_source *src, const mr_source_config *cfg, mr_error *err)
{
    const int rc = open_as(src, true, cfg, err);
    const folder *f = src->state;
    if (rc) return rc;
    if (f->members.inside[0])
        mri_source_tell(src,
                        "all pictures of the archive lie in %s/, which is taken for the data set's folder",
                        f->members.inside);
    if (f->members.cut)
        mri_source_tell(
            src, "the archive has no end mark: some writers leave it out; otherwise the end is missing, and "
                 "samples with it");
    src->info.format = "archive";
    if (f->members.any_deflated) src->ops = &deflated;
    else src->info.file_count = 1;
    return MR_OK;
}

static int archive_check(const mr_source *src, mr_error *err)
{
    const mri_members *m = &((const folder *)src->state)->members;
    if (!m->cut) return MR_OK;
    mr_error_set(
        err, MR_EFORMAT,
        "the archive has no end mark: some writers leave it out; otherwise it was cut between two members, "
        "and samples are missing: compare its size with the original's, or copy it again");
    return mri_error_place(err, MR_EFORMAT, m->path, m->file_bytes, MR_NOWHERE);
}

static int archive_extent(const mr_source *src, uint64_t sample, mr_extent *out, mr_error *err)
{
    const folder *f = src->state;
    const int rc = folder_extent(src, sample, out, err);
    if (!rc) *out = (mr_extent){0, f->members.node[f->node[sample]].offset, f->size[sample]};
    return rc;
}

static int archive_file_at(const mr_source *src, uint32_t file, mr_source_file *out)
{
    const mri_members *m = &((const folder *)src->state)->members;
    (void)file;
    *out = (mr_source_file){.path = m->path, .fd = m->fd, .bytes = m->file_bytes, .direct_ok = !m->unpacked};
    return MR_OK;
}

/* A zip's members have a checksum each. */
static int archive_parse(const mr_source *src, uint64_t sample, const void *data, size_t bytes,
                         mr_sample *out, mr_error *err)
{
    const folder *f = src->state;
    const mri_member *n = &f->members.node[f->node[sample]];
    if (!f->members.is_zip || mri_members_crc(data, bytes) == n->crc)
        return folder_parse(src, sample, data, bytes, out, err);
    char path[4096];
    folder_sample_path(src, sample, path, sizeof path);
    return mri_error_place(err, mr_error_set(err, MR_ECHECKSUM, "zip: the CRC of the member does not match"),
                           path, MR_NOWHERE, sample);
}

static int archive_name(const mr_source *src, uint64_t sample, const void *data, size_t bytes, char *buf,
                        size_t buf_bytes, mr_error *err)
{
    const folder *f = src->state;
    char path[4096];
    (void)data, (void)bytes, (void)err;
    folder_sample_path(src, sample, path, sizeof path);
    const char *name = path + mri_min_u64(strlen(f->root), strlen(path));
    if (strlen(path) < sizeof path - 1) snprintf(buf, buf_bytes, "%s", name + strspn(name, "/"));
    return MR_OK;
}

static int archive_fetch(const mr_source *src, uint64_t sample, void **buffer, size_t *buffer_bytes,
                         uint64_t *bytes, mr_error *err)
{
    const folder *f = src->state;
    const mri_member *n = &f->members.node[f->node[sample]];
    mr_extent e;
    int rc = folder_extent(src, sample, &e, err);
    if (rc) return rc;
    *bytes = f->size[sample];
    if (*buffer_bytes < *bytes || !*buffer) {
        void *larger = realloc(*buffer, *bytes ? (size_t)*bytes : 1);
        if (!larger) return no_memory(err, src->path);
        *buffer = larger;
        *buffer_bytes = (size_t)*bytes;
    }
    rc = n->deflated ? mri_members_inflate(&f->members, n->offset, n->packed, n->bytes, n->crc, *buffer, err)
                     : mri_pread_all(f->members.fd, *buffer, (size_t)*bytes, n->offset, src->path, err);
    if (!rc) return MR_OK;
    char path[4096];
    folder_sample_path(src, sample, path, sizeof path);
    return mri_error_place(err, rc, path, MR_NOWHERE, sample);
}

const mri_source_ops mri_source_archive = {
    .name = "archive",
    .help =
        "a tar (plain or packed), zip, 7z or rar archive of pictures in class folders, as a folder; a tar of "
        "one tar for each class",
    .no_keys = true,
    .class_rules = true,
    .probe = archive_probe,
    .open = archive_open,
    .close = folder_close,
    .extent = archive_extent,
    .label = folder_label,
    .file_at = archive_file_at,
    .check = archive_check,
    .sample_path = folder_sample_path,
    .parse = archive_parse,
    .sample_name = archive_name,
};

/* Samples are unpacked when they are read. */
static const mri_source_ops deflated = {
    .name = "archive",
    .no_keys = true,
    .class_rules = true,
    .open = archive_open,
    .close = folder_close,
    .extent = folder_extent,
    .label = folder_label,
    .file_at = archive_file_at,
    .sample_path = folder_sample_path,
    .parse = archive_parse,
    .sample_name = archive_name,
    .fetch = archive_fetch,
};
