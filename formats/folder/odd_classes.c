/* formats/folder/odd_classes.c: folders that lie where classes do, and whose names say that they are
 * something else. All are refused with a remedy, as labels from such names would be wrong; `--classes depth`
 * makes classes of them nevertheless.
 *
 *   cat/ cat_mask/                  pictures, and masks of the same names
 *   images_part_1/ images_part_2/   pieces of one set: names that differ in a number or a letter at the
 *                                   end, after a word of pieces or of pictures
 *   trainA/ trainB/ testA/ testB/   parts of a set, within the words of names
 *   a/ alone, with a/labels.csv     one folder with a text that may say what its pictures show */
#include <stdio.h>
#include <strings.h>

#include "base/util.h"
#include "formats/folder/folder.h"
#include "formats/source/parts.h"

static bool is_letter(char c) { return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z'); }
static bool is_digit(char c) { return c >= '0' && c <= '9'; }

static int refused(mr_error *err, const char *where)
{
    return mri_error_place(err, MR_EFORMAT, where, MR_NOWHERE, MR_NOWHERE);
}

/* ---- masks ---- */
static int list(mri_listing *l, mri_dir part, const char *where, const char *name, const char *inner,
                mr_error *err)
{
    char below[2 * NAME_MAX + 2], path[MRI_FOLDER_PATH];
    const mri_list_what want = {.files = l};
    snprintf(below, sizeof below, "%.255s%s%.255s", name, inner[0] ? "/" : "", inner);
    snprintf(path, sizeof path, "%s/%s", where, below);
    return mri_list_folder(part, below, path, &want, NULL, err);
}

/* Has at least every second picture of the second folder the name of one in the first, but for its ending and
 * a word of masks? */
static bool are_masks(const mri_listing *pictures, const mri_listing *masks, const char **first)
{
    size_t same = 0;
    for (size_t k = 0; k < masks->count; k++) {
        const char *name = mri_listing_name(masks, k), *dot = strrchr(name, '.');
        const size_t bytes = dot ? (size_t)(dot - name) : strlen(name), stem = mri_masked_bytes(name, bytes);
        if (!mri_has_stem(pictures, name, bytes) && !(stem && mri_has_stem(pictures, name, stem))) continue;
        if (same++ == 0) *first = name;
    }
    return same > 0 && 2 * same >= masks->count;
}

static int check_masks(const mri_listing *out, mri_dir part, const char *where, const char *inner,
                       mr_error *err)
{
    int rc = MR_OK;
    for (size_t k = 0; !rc && k < out->count; k++) {
        const char *mask = mri_listing_name(out, k), *first = "";
        const size_t stem = mri_masked_bytes(mask, strlen(mask));
        const int at = stem ? mri_listing_find(out, mask, stem) : -1;
        if (at < 0) continue;
        const char *picture = mri_listing_name(out, (size_t)at);
        mri_listing pictures = {0}, masks = {0};
        rc = list(&pictures, part, where, picture, inner, err);
        if (!rc) rc = list(&masks, part, where, mask, inner, err);
        if (!rc && are_masks(&pictures, &masks, &first)) {
            mr_error_set(
                err, MR_EFORMAT,
                "%s/ and %s/ have pictures of the same names (%s): they look like pictures and their "
                "masks, and both would be classes: move %s/ out of the data set, or make a class of "
                "each folder (--classes depth)",
                picture, mask, first, mask);
            rc = refused(err, where);
        }
        mri_listing_fini(&pictures);
        mri_listing_fini(&masks);
    }
    return rc;
}

/* ---- pieces ---- */
/* Bytes of the name before a number, or a letter of its own, at its end; 0: it does not end so. */
static size_t before_number(const char *name)
{
    const size_t bytes = strlen(name);
    size_t n = bytes;
    while (n > 0 && is_digit(name[n - 1])) n--;
    if (n == bytes && n > 1 && is_letter(name[n - 1]) && !is_letter(name[n - 2]) && !is_digit(name[n - 2]))
        n--;
    return n < bytes ? n : 0;
}

static bool has_word_of_pieces(const char *name, size_t bytes)
{
    static const char *const words[] = {"part",  "parts",   "piece",    "pieces", "batch",  "chunk",  "shard",
                                        "slice", "archive", "zip",      "volume", "image",  "images", "img",
                                        "imgs",  "picture", "pictures", "photo",  "photos", "jpg",    "jpgs",
                                        "jpegs", "frames",  "data",     NULL};
    for (size_t at = 0, n; at < bytes; at += n ? n : 1) {
        for (n = 0; at + n < bytes && is_letter(name[at + n]);) n++;
        for (const char *const *w = words; n && *w; w++)
            if (strlen(*w) == n && strncasecmp(name + at, *w, n) == 0) return true;
    }
    return false;
}

bool mri_are_called_pieces(const mri_listing *classes)
{
    const char *first = classes->count ? mri_listing_name(classes, 0) : "";
    const size_t bytes = before_number(first);
    if (classes->count < 2 || !bytes || !has_word_of_pieces(first, bytes)) return false;
    for (size_t k = 1; k < classes->count; k++) {
        const char *name = mri_listing_name(classes, k);
        if (before_number(name) != bytes || strncasecmp(name, first, bytes) != 0) return false;
    }
    return true;
}

/* Without a file of labels next to them they may be classes (part_01, part_02 of a machine); a line reports
 * them. */
static int check_pieces(const mri_listing *out, const char *where, const mri_left_out *left, mr_error *err)
{
    const char *labels = mri_are_called_pieces(out) ? mri_find_labels(left, where) : NULL;
    if (!labels) return MR_OK;
    mr_error_set(
        err, MR_EFORMAT,
        "%s/ and %s/ look like pieces of one set, and would be its classes; %s next to them may say what "
        "they show: put their pictures into one folder images/ next to a table of names and classes, and "
        "name the table; or make a class of each folder (--classes depth), or take them without classes "
        "(--classes none)",
        mri_listing_name(out, 0), mri_listing_name(out, 1), labels);
    return refused(err, where);
}

/* ---- parts ---- */
typedef struct camel { /* trainA, catsTest */
    mri_part part;
    const char *rest; /* the name without the part */
    size_t rest_bytes;
} camel;

static bool is_upper(char c) { return c >= 'A' && c <= 'Z'; }

static camel camel_of(const char *name)
{
    const size_t bytes = strlen(name);
    for (size_t n = 1; n < bytes; n++) { /* a small letter, then a capital one */
        if (!is_upper(name[n]) || !is_letter(name[n - 1]) || is_upper(name[n - 1])) continue;
        mri_part part = mri_part_of_word(name, n);
        if (part != MRI_NO_PART) return (camel){part, name + n, bytes - n};
        part = mri_part_of_word(name + n, bytes - n);
        if (part != MRI_NO_PART) return (camel){part, name, n};
    }
    return (camel){MRI_NO_PART, NULL, 0};
}

static int check_parts(const mri_listing *out, const char *where, mr_error *err)
{
    enum { MOST = 64 }; /* names like these are few, or classes */
    for (size_t k = 0; k < out->count && out->count <= MOST; k++) {
        const char *name = mri_listing_name(out, k);
        const camel a = camel_of(name);
        for (size_t m = k + 1; a.part != MRI_NO_PART && m < out->count; m++) {
            const char *other = mri_listing_name(out, m);
            const camel b = camel_of(other);
            if (b.part == MRI_NO_PART || b.part == a.part || a.rest_bytes != b.rest_bytes ||
                strncasecmp(a.rest, b.rest, a.rest_bytes) != 0)
                continue;
            mr_error_set(err, MR_EFORMAT,
                         "%s/ and %s/ are called like parts of a set, and would be its classes: make folders "
                         "%s/%.*s and %s/%.*s of them (links to them will do), or make a class of each "
                         "folder (--classes depth)",
                         name, other, mri_part_name(a.part), (int)a.rest_bytes, a.rest, mri_part_name(b.part),
                         (int)b.rest_bytes, b.rest);
            return refused(err, where);
        }
    }
    return MR_OK;
}

/* ---- the whole ---- */
int mri_odd_classes(const mri_listing *out, mri_dir part, const char *where, const char *inner,
                    const mri_left_out *left, mr_error *err)
{
    int rc = check_masks(out, part, where, inner, err);
    if (!rc) rc = check_pieces(out, where, left, err);
    if (!rc) rc = mri_splits_are_no_classes(out, where, err);
    return rc ? rc : check_parts(out, where, err);
}
