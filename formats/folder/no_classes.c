/* formats/folder/no_classes.c: trees without class folders, and folders that are not classes although they
 * lie where classes do. Both are refused with a remedy: labels from such names would be wrong. */
#include <stdio.h>
#include <strings.h>

#include "base/util.h"
#include "formats/fileset/file_names.h"
#include "formats/folder/folder.h"
#include "formats/source/parts.h"

static bool is_one_of(const char *const *words, const char *name)
{
    for (; *words; words++)
        if (strcasecmp(*words, name) == 0) return true;
    return false;
}

int mri_no_classes(mri_dir part, const char *where, const mri_left_out *left, mr_error *err)
{
    mri_contents c;
    char text[512];
    int rc = mri_look_into(part, ".", where, true, &c, err);
    if (rc) return rc;
    if (c.pictures)
        rc = mr_error_set(
            err, MR_EFORMAT,
            "no class folders: expected FOLDER/CLASS/PICTURE, found the pictures directly in it; "
            "--classes none takes them without classes");
    else if (mri_left_out_text(left, MRI_LEFT_DEEPER, text, sizeof text)[0])
        rc = mr_error_set(
            err, MR_EFORMAT,
            "no pictures in the first level of folders, but %s: --classes depth makes a class of "
            "each folder with pictures, --classes none takes all of them without classes",
            text);
    else
        rc = mr_error_set(err, MR_EFORMAT,
                          "no class folders: expected FOLDER/CLASS/PICTURE, found %llu other entries%s%s",
                          (unsigned long long)mri_left_out_count(left),
                          left->of[MRI_LEFT_OTHERS].count || left->of[MRI_LEFT_NO_PICTURE].count ? ": " : "",
                          left->of[MRI_LEFT_OTHERS].count
                              ? mri_left_out_text(left, MRI_LEFT_OTHERS, text, sizeof text)
                              : mri_left_out_text(left, MRI_LEFT_NO_PICTURE, text, sizeof text));
    return mri_error_place(err, rc, where, MR_NOWHERE, MR_NOWHERE);
}

int mri_one_is_no_class(const mri_listing *out, const char *where, const mri_left_out *left, mr_error *err)
{
    char text[512];
    const int rc =
        mr_error_set(err, MR_EFORMAT,
                     "no class folders: all pictures lie in %s/, next to it %s; --classes none takes "
                     "them without classes",
                     mri_listing_name(out, 0), mri_left_out_text(left, MRI_LEFT_OTHERS, text, sizeof text));
    return mri_error_place(err, rc, where, MR_NOWHERE, MR_NOWHERE);
}

/* ---- one folder, and a text that may say what its pictures show ---- */
static bool may_hold_labels(const char *name)
{
    static const char *const endings[] = {".csv", ".tsv",     ".txt", ".json", ".jsonl", ".xml",
                                          ".mat", ".parquet", ".npy", ".xlsx", NULL};
    static const char *const others[] = {"about",     "requirements", "log", "classes",
                                         "croissant", "card",         NULL};
    const char *dot = strrchr(name, '.');
    if (mri_is_about_data(name)) return false;
    for (const char *const *o = others; *o; o++)
        if (strncasecmp(name, *o, strlen(*o)) == 0) return false;
    return dot && is_one_of(endings, dot) && !strchr(name, '/');
}

/* Directly in the folder `where`. NULL: none. Only the first names are known. */
const char *mri_find_labels(const mri_left_out *left, const char *where)
{
    const size_t root = strlen(left->root);
    const char *below = strncmp(where, left->root, root) == 0 ? where + root : "";
    below += strspn(below, "/");
    const size_t bytes = strlen(below);
    for (size_t k = 0; k < MRI_LEFT_NAMES; k++) {
        const char *name = left->of[MRI_LEFT_NO_PICTURE].name[k];
        if (!name[0] || strncmp(name, below, bytes) != 0 || (bytes && name[bytes] != '/')) continue;
        name += bytes + (bytes > 0);
        if (may_hold_labels(name)) return name;
    }
    return NULL;
}

int mri_labels_beside(const mri_listing *out, const char *where, const mri_left_out *left, mr_error *err)
{
    const char *labels = out->count == 1 ? mri_find_labels(left, where) : NULL;
    if (!labels) return MR_OK;
    const int rc = mr_error_set(err, MR_EFORMAT,
                                "no class folders: all pictures lie in %s/, and %s next to it may say what "
                                "they show, in a form that is not read: make a table of it (a line of "
                                "column names, then a path and a class per line, CSV), take the pictures "
                                "without classes (--classes none), or as one class (--classes depth)",
                                mri_listing_name(out, 0), labels);
    return mri_error_place(err, rc, where, MR_NOWHERE, MR_NOWHERE);
}

int mri_labels_inside(const mri_listing *out, const char *where, const char *inner, const mri_left_out *left,
                      mr_error *err)
{
    char path[MRI_FOLDER_PATH];
    if (out->count != 1) return MR_OK;
    snprintf(path, sizeof path, "%s/%s%s%s", where, mri_listing_name(out, 0), inner[0] ? "/" : "", inner);
    const char *labels = mri_find_labels(left, path);
    if (!labels) return MR_OK;
    const int rc = mr_error_set(err, MR_EFORMAT,
                                "all pictures lie in one folder, and %s in it may say what they show: name "
                                "it as the data set where it is a table, take the pictures without "
                                "classes (--classes none), or as one class (--classes depth)",
                                labels);
    return mri_error_place(err, rc, path, MR_NOWHERE, MR_NOWHERE);
}

/* ---- pictures and their masks ---- */
static bool is_pictures(const char *name)
{
    static const char *const words[] = {
        "image", "images", "img", "imgs",   "picture",  "pictures",  "photo",      "photos", "rgb",
        "input", "im",     "ims", "inputs", "original", "originals", "jpegimages", NULL};
    return is_one_of(words, name);
}

static bool is_masks(const char *name)
{
    static const char *const words[] = {"mask",
                                        "masks",
                                        "label",
                                        "labels",
                                        "annotation",
                                        "annotations",
                                        "gt",
                                        "groundtruth",
                                        "ground_truth",
                                        "segmentation",
                                        "segmentations",
                                        "segmentationclass",
                                        "segmentationclasspng",
                                        "segmentationobject",
                                        "trimap",
                                        "trimaps",
                                        "target",
                                        "targets",
                                        "depth",
                                        NULL};
    return is_one_of(words, name);
}

/* The last folder of a path. */
static const char *last_of(const char *path)
{
    const char *slash = strrchr(path, '/');
    return slash ? slash + 1 : path;
}

static bool is_capital(char c) { return c >= 'A' && c <= 'Z'; }
static bool is_letter(char c) { return is_capital(c) || (c >= 'a' && c <= 'z'); }

/* Bytes of the word that begins here: of letters of one case, or a capital one and small ones. */
static size_t word_bytes(const char *at)
{
    size_t n = at[0] != 0;
    const bool capitals = n && is_capital(at[0]) && is_capital(at[1]);
    while (n && is_letter(at[n]) && is_capital(at[n]) == capitals) n++;
    return n;
}

static bool is_word_of_masks(const char *word, size_t bytes)
{
    static const char *const more[] = {"anno",   "annos", "gts",     "manual", "matte",
                                       "mattes", "seg",   "parsing", NULL};
    char name[32];
    if (bytes >= sizeof name) return false;
    memcpy(name, word, bytes);
    name[bytes] = '\0';
    return is_masks(name) || is_one_of(more, name);
}

bool mri_has_word_of_masks(const char *path)
{
    const char *name = last_of(path);
    for (size_t n; *name; name += n) {
        n = is_letter(*name) ? word_bytes(name) : 1;
        if (is_letter(*name) && is_word_of_masks(name, n)) return true;
    }
    return false;
}

static bool are_siblings(const char *a, const char *b)
{
    const size_t n = (size_t)(last_of(a) - a);
    return n == (size_t)(last_of(b) - b) && strncmp(a, b, n) == 0;
}

int mri_masks_are_no_class(const mri_listing *out, const char *where, bool archive, bool deep, mr_error *err)
{
    const char *picture = NULL, *mask = NULL;
    for (size_t k = 0; k < out->count && !(deep && picture && mask); k++) {
        const char *name = mri_listing_name(out, k), *last = last_of(name);
        if (deep && last == name) continue; /* asked for */
        if (picture && !are_siblings(picture, name)) picture = NULL;
        if (mask && !are_siblings(mask, name)) mask = NULL;
        if (is_pictures(last)) picture = name;
        else if (is_masks(last)) mask = name;
        else if (!deep) return MR_OK; /* a class of another name: these may be classes, too */
    }
    if (!picture || !mask) return MR_OK;
    if (deep)
        mr_error_set(err, MR_EFORMAT,
                     "%s/ and %s/ look like pictures and what belongs to each of them, and both would be "
                     "classes: move the pictures of a class into one folder of its name, without the masks",
                     picture, mask);
    else
        mr_error_set(err, MR_EFORMAT,
                     "no class folders: %s/ and %s/ look like pictures and what belongs to each of "
                     "them; %s %s/%s with --classes none for the pictures without classes; "
                     "--classes depth makes a class of each folder with pictures",
                     picture, mask, archive ? "unpack the archive and take" : "name", where, picture);
    return mri_error_place(err, MR_EFORMAT, where, MR_NOWHERE, MR_NOWHERE);
}

size_t mri_masked_bytes(const char *name, size_t bytes)
{
    static const char *const ends[] = {"_mask", "_masks", "-mask",         "-masks",
                                       "_gt",   "_seg",   "_segmentation", NULL};
    for (const char *const *e = ends; *e; e++) {
        const size_t n = strlen(*e);
        if (bytes > n && strncasecmp(name + bytes - n, *e, n) == 0) return bytes - n;
    }
    return 0;
}

bool mri_has_stem(const mri_listing *l, const char *stem, size_t bytes)
{
    size_t low = 0, high = l->count;
    while (low < high) {
        const size_t mid = low + (high - low) / 2;
        const char *name = mri_listing_name(l, mid);
        const int order = strncmp(name, stem, bytes);
        if (order < 0 || (order == 0 && (uint8_t)name[bytes] < '.')) low = mid + 1;
        else high = mid;
    }
    if (low == l->count) return false;
    const char *name = mri_listing_name(l, low);
    return strncmp(name, stem, bytes) == 0 && name[bytes] == '.' && !strchr(name + bytes + 1, '.');
}

void mri_find_masks(mri_masks *found, const mri_listing *files, const char *class_name)
{
    for (size_t k = 0; k < files->count; k++) {
        const char *name = mri_listing_name(files, k);
        const char *dot = strrchr(name, '.');
        const size_t bytes = mri_masked_bytes(name, dot ? (size_t)(dot - name) : strlen(name));
        if (!bytes || !mri_has_stem(files, name, bytes)) continue;
        if (found->count++ == 0)
            snprintf(found->first, sizeof found->first, "%s%s%s", class_name, class_name[0] ? "/" : "", name);
    }
}

void mri_tell_masks(const mri_masks *found, mr_source *src)
{
    if (found->count)
        mri_source_tell(
            src,
            "%llu %s called like the %s of another (%s), and taken as %s of its folder: move masks out of it",
            (unsigned long long)found->count, found->count == 1 ? "picture is" : "pictures are",
            found->count == 1 ? "mask" : "masks", found->first, found->count == 1 ? "a picture" : "pictures");
}

/* ---- parts below the first level ---- */
/* train, val2017: the name of a part, and nothing else but digits. */
static mri_part part_of(const char *name, size_t bytes)
{
    while (bytes > 0 && name[bytes - 1] >= '0' && name[bytes - 1] <= '9') bytes--;
    return mri_part_of_word(name, bytes);
}

/* The first folder of the path that is called like a part: where it begins, and its bytes. */
static mri_part find_part(const char *path, size_t *at, size_t *bytes)
{
    for (*at = 0;; *at += *bytes + 1) {
        *bytes = strcspn(path + *at, "/");
        const mri_part part = part_of(path + *at, *bytes);
        if (part != MRI_NO_PART || !path[*at + *bytes]) return part;
    }
}

int mri_parts_are_apart(const mri_listing *out, bool classes, const char *where, mr_error *err)
{
    const char *last = NULL;
    size_t last_at = 0, last_bytes = 0;
    mri_part last_part = MRI_NO_PART;
    for (size_t k = 0; k < out->count; k++) {
        const char *path = mri_listing_name(out, k);
        size_t at, bytes;
        const mri_part part = find_part(path, &at, &bytes);
        if (part == MRI_NO_PART) continue;
        if (last && at == last_at && part != last_part && strncmp(path, last, at) == 0) {
            const int rc = mr_error_set(
                err, MR_EFORMAT, "%.*s/ and %.*s/ are parts of a set, %s: name %s%s%.*s as the data set, %s",
                (int)(last_at + last_bytes), last, (int)(at + bytes), path,
                classes ? "and their folders would be classes of their own"
                        : "and would be taken as one part",
                where, at ? "/" : "", (int)(at ? at - 1 : 0), path,
                classes ? "with --classes none where pictures lie directly in the parts"
                        : "or one of them; a mix file takes both");
            return mri_error_place(err, rc, where, MR_NOWHERE, MR_NOWHERE);
        }
        last = path, last_at = at, last_bytes = bytes, last_part = part;
    }
    return MR_OK;
}
