/* formats/folder/tree.c: which folders of a part are classes.
 *
 *   first   PART/cat/1.jpg  PART/dog/2.jpg                     the first level: cat, dog
 *   depth   PART/animals/cat/1.jpg  PART/plants/rose/2.jpg     every folder that holds pictures: animals/cat,
 *                                                              plants/rose
 *   none    PART/1.jpg  PART/any/2.jpg                         no classes: every folder counts
 *
 * Where the first level holds no pictures, but each folder in it one folder of one and the same name that
 * does (PART/n01443537/images/0.JPEG), the first level is the classes all the same: it is the one whose names
 * differ.
 *
 * A folder with nothing in it is a class that has no pictures yet. One that holds other files only (COCO's
 * annotations), or only folders where these are not searched, is not a class. */
#include <errno.h>
#include <limits.h>
#include <stdio.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/util.h"
#include "formats/folder/folder.h"

enum { MOST_LEVELS = 64 };

/* ---- one folder ---- */
static int judge(mri_listing *out, const mri_contents *c, const char *where, const char *name,
                 uint64_t *with_pictures, mri_left_out *left, mr_error *err)
{
    const bool taken = c->pictures || c->undecoded || !(c->others || c->folders);
    if (!taken) {
        mri_leave_out(left, c->folders ? MRI_LEFT_DEEPER : MRI_LEFT_OTHERS, where, "", NULL);
        return MR_OK;
    }
    *with_pictures += c->pictures;
    if (!c->pictures) mri_leave_out(left, MRI_LEFT_EMPTY, where, "", NULL);
    return mri_listing_add(out, name, 0) ? MR_OK : mri_folder_no_memory(err, where);
}

/* ---- the first level ---- */
/* The one folder in this one, whose name is `inner` where that is known; *found false: no such folder,
 * several, or another name. */
static int find_inner(mri_dir part, const char *where, const char *name, char inner[NAME_MAX + 1],
                      bool *found, mr_error *err)
{
    char path[MRI_FOLDER_PATH];
    mri_listing l = {0};
    mri_contents c = {0};
    const mri_list_what want = {.folders = &l};
    snprintf(path, sizeof path, "%s/%s", where, name);
    int rc = mri_list_folder(part, name, path, &want, NULL, err);
    const char *only = !rc && l.count == 1 ? mri_listing_name(&l, 0) : "";
    *found = only[0] && (!inner[0] || strcmp(inner, only) == 0);
    if (*found) {
        char below[2 * NAME_MAX + 2];
        snprintf(inner, NAME_MAX + 1, "%s", only);
        snprintf(below, sizeof below, "%s/%s", name, inner);
        snprintf(path, sizeof path, "%s/%s", where, below);
        rc = mri_look_into(part, below, path, false, &c, err);
        *found = c.pictures;
    }
    mri_listing_fini(&l);
    return rc;
}

/* Folders with one folder of one name in each, and pictures in that: at least two. Then they are the classes.
 */
static int fixed_level(mri_listing *out, mri_dir part, const char *where, const mri_listing *folders,
                       uint64_t *with_pictures, char inner[NAME_MAX + 1], mr_error *err)
{
    bool found = folders->count >= 2;
    int rc = MR_OK;
    for (size_t k = 0; !rc && found && k < folders->count; k++)
        rc = find_inner(part, where, mri_listing_name(folders, k), inner, &found, err);
    if (!found || rc) inner[0] = '\0';
    for (size_t k = 0; !rc && found && k < folders->count; k++)
        if (!mri_listing_add(out, mri_listing_name(folders, k), 0)) rc = mri_folder_no_memory(err, where);
    if (found) *with_pictures = folders->count;
    return rc;
}

static int first_level(mri_listing *out, mri_dir part, const char *where, uint64_t *with_pictures,
                       char inner[NAME_MAX + 1], mri_left_out *left, mr_error *err)
{
    mri_listing folders = {0}, deeper = {0};
    const mri_list_what want = {.folders = &folders, .tell_files = true};
    const mri_left_out before = *left;
    int rc = mri_list_folder(part, ".", where, &want, left, err);
    for (size_t k = 0; !rc && k < folders.count; k++) {
        const char *name = mri_listing_name(&folders, k);
        char path[MRI_FOLDER_PATH];
        mri_contents c;
        snprintf(path, sizeof path, "%s/%s", where, name);
        rc = mri_look_into(part, name, path, false, &c, err);
        if (!rc && c.folders && !c.pictures && !mri_listing_add(&deeper, name, 0))
            rc = mri_folder_no_memory(err, path);
        if (!rc) rc = judge(out, &c, path, name, with_pictures, left, err);
    }
    if (!rc && *with_pictures == 0) rc = fixed_level(out, part, where, &deeper, with_pictures, inner, err);
    if (!rc && inner[0]) {
        left->of[MRI_LEFT_DEEPER] = before.of[MRI_LEFT_DEEPER];
        mri_listing_sort(out);
    }
    mri_listing_fini(&folders);
    mri_listing_fini(&deeper);
    return rc;
}

/* ---- all levels ---- */
typedef struct walk {
    mri_listing *out;
    mri_left_out *left;
    uint64_t *with_pictures;
    const mr_source_config *cfg;
    char path[MRI_FOLDER_PATH]; /* of the folder that is looked at */
    size_t root_bytes;          /* of the part's */
    struct {
        dev_t device;
        ino_t number;
    } above[MOST_LEVELS]; /* the folders that it lies in, and itself */
} walk;

static const char *below(const walk *w) { return w->path[w->root_bytes] ? w->path + w->root_bytes + 1 : ""; }

/* Is it one of the folders it lies in? Links lead anywhere. */
static int enter(walk *w, mri_dir fd, uint32_t level, bool *again, mr_error *err)
{
    struct stat st;
    if (fd.in) return MR_OK; /* nothing in an archive lies above itself */
    if (fstat(fd.at, &st) != 0)
        return mri_error_place(err, mr_error_sys(err, errno, "cannot look at it"), w->path, MR_NOWHERE,
                               MR_NOWHERE);
    for (uint32_t k = 0; k < level; k++)
        *again |= w->above[k].device == st.st_dev && w->above[k].number == st.st_ino;
    w->above[level].device = st.st_dev;
    w->above[level].number = st.st_ino;
    return MR_OK;
}

static int take_folder(walk *w, mri_dir fd, uint32_t level, bool has_folders, mr_error *err)
{
    mri_contents c;
    if (w->cfg->classes == MR_CLASSES_NONE)
        return mri_listing_add(w->out, below(w), 0) ? MR_OK : mri_folder_no_memory(err, w->path);
    if (level == 0) return MR_OK;
    const int rc = mri_look_into(fd, ".", w->path, false, &c, err);
    if (rc || (has_folders && !c.pictures && !c.undecoded)) return rc;
    c.folders = false;
    return judge(w->out, &c, w->path, below(w), w->with_pictures, w->left, err);
}

static int walk_folder(walk *w, mri_dir fd, uint32_t level, mr_error *err);

static int walk_into(walk *w, mri_dir fd, uint32_t level, const char *name, mr_error *err)
{
    const size_t bytes = strlen(w->path);
    mri_dir inner;
    int rc;
    if (level + 1 == MOST_LEVELS || bytes + strlen(name) + 2 > sizeof w->path)
        return mri_error_place(
            err, mr_error_set(err, MR_ELIMIT, "more than %d levels of folders", MOST_LEVELS - 1), w->path,
            MR_NOWHERE, MR_NOWHERE);
    snprintf(w->path + bytes, sizeof w->path - bytes, "/%s", name);
    rc = mri_folder_open(fd, name, w->path, &inner, err);
    if (!rc) {
        rc = walk_folder(w, inner, level + 1, err);
        mri_folder_close(inner);
    }
    w->path[bytes] = '\0';
    return rc;
}

static int walk_folder(walk *w, mri_dir fd, uint32_t level, mr_error *err)
{
    mri_listing folders = {0};
    const bool beside = level == 0 && w->cfg->classes == MR_CLASSES_DEPTH;
    const mri_list_what want = {.folders = &folders, .tell_files = beside};
    bool again = false;
    int rc = enter(w, fd, level, &again, err);
    if (rc) return rc;
    if (again) return mri_leave_out(w->left, MRI_LEFT_LINK, w->path, "", "a folder it lies in"), MR_OK;
    rc = mri_list_folder(fd, ".", w->path, &want, w->left, err);
    if (!rc) rc = take_folder(w, fd, level, folders.count > 0, err);
    if (!rc)
        rc =
            mri_source_budget(w->cfg, w->out->text_cap + w->out->cap * sizeof *w->out->entries, w->path, err);
    for (size_t k = 0; !rc && k < folders.count; k++)
        rc = walk_into(w, fd, level, mri_listing_name(&folders, k), err);
    mri_listing_fini(&folders);
    return rc;
}

static int all_levels(mri_listing *out, mri_dir part, const char *where, uint64_t *with_pictures,
                      mri_left_out *left, const mr_source_config *cfg, mr_error *err)
{
    walk *w = calloc(1, sizeof *w);
    if (!w) return mri_folder_no_memory(err, where);
    w->out = out;
    w->left = left;
    w->with_pictures = with_pictures;
    w->cfg = cfg;
    snprintf(w->path, sizeof w->path, "%s", where);
    w->root_bytes = strlen(w->path);
    const int rc = walk_folder(w, part, 0, err);
    free(w);
    if (!rc) mri_listing_sort(out);
    return rc;
}

/* ---- the whole ---- */
int mri_tree_classes(mri_listing *out, mri_dir part, const char *where, char inner[NAME_MAX + 1],
                     mri_left_out *left, const mr_source_config *cfg, mr_error *err)
{
    uint64_t with_pictures = 0;
    inner[0] = '\0';
    int rc = cfg->classes == MR_CLASSES_FIRST
                 ? first_level(out, part, where, &with_pictures, inner, left, err)
                 : all_levels(out, part, where, &with_pictures, left, cfg, err);
    if (rc || cfg->classes == MR_CLASSES_NONE) return rc;
    if (out->count == 0 || (with_pictures == 0 && left->of[MRI_LEFT_DEEPER].count))
        return mri_no_classes(part, where, left, err);
    if (out->count == 1 && with_pictures == 1 && left->of[MRI_LEFT_OTHERS].count)
        return mri_one_is_no_class(out, where, left, err);
    const bool deep = cfg->classes == MR_CLASSES_DEPTH;
    rc = mri_masks_are_no_class(out, where, part.in != NULL, deep, err);
    if (!rc)
        rc = deep ? mri_parts_are_apart(out, true, where, err)
                  : mri_odd_classes(out, part, where, inner, left, err);
    if (rc) return rc;
    if (out->count >= UINT32_MAX) return mr_error_set(err, MR_ELIMIT, "more classes than can be numbered");
    return MR_OK;
}
