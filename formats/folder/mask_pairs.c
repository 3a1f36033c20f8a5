/* formats/folder/mask_pairs.c: two folders, one with the masks of the other's pictures, by any names:
 *
 *   im/1.jpg im/2.jpg  gt/1.png gt/2.png                          the same names but for the endings
 *   images/21_training.tif  1st_manual/21_manual1.gif             or for what all names of a folder end in
 *
 * Names alone do not show it: classes are often numbered alike (cat/1.png, dog/1.png). So a folder has the
 * masks of another one only if each of its files belongs to a picture there, has its height and width, and
 * all of them have fewer bytes, as masks have; and
 *
 *   they are gray or indexed, and the pictures are coloured
 *   or the folder's name has a word of masks, and its files are much smaller
 *
 * Few files of few folders are opened for that: files of a folder whose names all fit. */
#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <strings.h>
#include <unistd.h>

#include "base/util.h"
#include "formats/folder/folder.h"
#include "formats/image/picture_files.h"

enum {
    HEAD_BYTES = 256 << 10, /* a JPEG's size stands after its EXIF */
    LOOKS = 6,              /* pairs that are compared */
    MUCH_SMALLER = 3,       /* masks of gray pictures have less than a third of their bytes */
    NEAR = 64,              /* folders before and after one that are compared with it */
};

typedef struct looks { /* of a file */
    bool known, coloured;
    uint32_t width, height; /* 0: unknown */
} looks;

typedef struct known_folder {
    bool end_is_known; /* what its names end in: */
    size_t end_bytes;
    bool first_is_known; /* of its first file: */
    looks first;
} known_folder;

typedef struct pairs {
    const mri_taken *taken;
    mri_dir part;
    uint8_t *head; /* of the file that is looked at */
    known_folder *known;
    mr_error *err;
} pairs;

/* ---- names ---- */
static const char *name_of(const pairs *p, uint64_t sample)
{
    return p->taken->names + p->taken->name_at[sample];
}
static uint64_t count_of(const pairs *p, size_t k) { return p->taken->first[k + 1] - p->taken->first[k]; }

static size_t stem_of(const char *name)
{
    const char *dot = strrchr(name, '.');
    return dot ? (size_t)(dot - name) : strlen(name);
}

static bool is_lossless(const char *name)
{
    const char *dot = strrchr(name, '.');
    const mr_type kind = dot ? mri_picture_ending(dot + 1, strlen(dot + 1)) : (mr_type)0;
    return kind == MR_TYPE_PNG || kind == MR_TYPE_BMP || kind == MR_TYPE_GIF || kind == MR_TYPE_TIFF;
}

static bool all_lossless(const pairs *p, size_t k)
{
    for (uint64_t s = p->taken->first[k]; s < p->taken->first[k + 1]; s++)
        if (!is_lossless(name_of(p, s))) return false;
    return count_of(p, k) > 0;
}

/* Bytes that the stems of all files of this folder end in, from a word on: _gtFine, -mask. */
static size_t common_end(const pairs *p, size_t k)
{
    const char *first = name_of(p, p->taken->first[k]);
    const size_t bytes = stem_of(first);
    size_t same = bytes;
    for (uint64_t s = p->taken->first[k] + 1; same > 0 && s < p->taken->first[k + 1]; s++) {
        const char *name = name_of(p, s);
        const size_t n = stem_of(name);
        size_t at = 0;
        while (at < same && at < n && name[n - 1 - at] == first[bytes - 1 - at]) at++;
        same = at;
    }
    for (; same > 1; same--) {
        const char *end = first + bytes - same;
        if ((end[0] == '_' || end[0] == '-') && (end[1] | 32) >= 'a' && (end[1] | 32) <= 'z') return same;
    }
    return 0;
}

/* The file of this folder whose name is these bytes, the tail and any ending; UINT64_MAX: not found. */
static uint64_t find(const pairs *p, size_t k, const char *stem, size_t bytes, const char *tail,
                     size_t tail_bytes)
{
    char wanted[2 * NAME_MAX];
    const int n = snprintf(wanted, sizeof wanted, "%.*s%.*s.", (int)bytes, stem, (int)tail_bytes, tail);
    if (n < 0 || (size_t)n >= sizeof wanted) return UINT64_MAX;
    uint64_t low = p->taken->first[k], high = p->taken->first[k + 1];
    while (low < high) {
        const uint64_t mid = low + (high - low) / 2;
        if (strcmp(name_of(p, mid), wanted) < 0) low = mid + 1;
        else high = mid;
    }
    for (; low < p->taken->first[k + 1]; low++) { /* 1.a.png may lie before 1.jpg */
        const char *name = name_of(p, low);
        if (strncmp(name, wanted, (size_t)n) != 0) return UINT64_MAX;
        if (stem_of(name) == (size_t)n - 1) return low;
    }
    return UINT64_MAX;
}

typedef struct ends { /* common to the names of a folder */
    size_t pictures, masks;
    const char *tail; /* the pictures' */
} ends;

static size_t end_of(pairs *p, size_t k)
{
    known_folder *of = &p->known[k];
    if (!of->end_is_known) of->end_bytes = common_end(p, k);
    of->end_is_known = true;
    return of->end_bytes;
}

static ends ends_of(pairs *p, size_t pictures, size_t masks)
{
    const char *first = name_of(p, p->taken->first[pictures]);
    const size_t n = end_of(p, pictures);
    return (ends){n, end_of(p, masks), first + stem_of(first) - n};
}

static uint64_t picture_of(const pairs *p, size_t pictures, uint64_t mask, const ends *e)
{
    const char *name = name_of(p, mask);
    const size_t bytes = stem_of(name);
    const uint64_t same = find(p, pictures, name, bytes, "", 0);
    if (same != UINT64_MAX) return same;
    return find(p, pictures, name, bytes - e->masks, e->tail, e->pictures);
}

/* ---- contents ---- */
static int read_head(pairs *p, uint64_t sample, size_t k, size_t *bytes)
{
    char below[MRI_FOLDER_PATH];
    const char *inner = p->taken->inner;
    snprintf(below, sizeof below, "%s%s%s/%s", p->taken->classes[k], inner[0] ? "/" : "", inner,
             name_of(p, sample));
    *bytes = HEAD_BYTES;
    if (p->part.in) {
        const int at = mri_members_find(p->part.in, p->part.at, below);
        if (at < 0) return *bytes = 0, MR_OK;
        mr_error why = MR_ERROR_INIT; /* a member that cannot be read is reported when it is its turn */
        const int rc = mri_members_head(p->part.in, at, p->head, bytes, &why);
        if (rc == MR_EIO || rc == MR_EFORMAT) *bytes = 0;
        else if (rc && p->err) *p->err = why;
        return rc == MR_EIO || rc == MR_EFORMAT ? MR_OK : rc;
    }
    const int fd = openat(p->part.at, below, O_RDONLY | O_CLOEXEC | O_NONBLOCK | O_NOCTTY);
    ssize_t n = -1;
    if (fd >= 0) {
        do n = pread(fd, p->head, HEAD_BYTES, 0);
        while (n < 0 && errno == EINTR);
        close(fd);
    }
    *bytes = n > 0 ? (size_t)n : 0; /* a file that cannot be read is reported when it is its turn */
    return MR_OK;
}

/* A palette has the colours of the program that shows the mask. */
static bool is_indexed(const uint8_t *head, size_t bytes, mr_type type)
{
    return type == MR_TYPE_GIF || (type == MR_TYPE_PNG && bytes > 25 && head[25] == 3);
}

static int look_at(pairs *p, uint64_t sample, size_t k, looks *out)
{
    mr_image_header h;
    mr_error unused = {0};
    size_t bytes;
    const int rc = read_head(p, sample, k, &bytes);
    *out = (looks){0};
    if (rc) return rc;
    const mr_type type = (mr_type)mr_image_sniff(p->head, bytes);
    if (type && mr_image_header_parse(p->head, bytes, &h, &unused) == MR_OK)
        *out = (looks){true, h.channels > 2 && !is_indexed(p->head, bytes, type), h.width, h.height};
    else if (type == MR_TYPE_JPEG) *out = (looks){.known = true, .coloured = true};
    return MR_OK;
}

static bool same_size(const looks *a, const looks *b)
{
    return !a->width || !b->width || (a->width == b->width && a->height == b->height);
}

typedef struct kinds { /* of the files that were compared */
    bool gray_masks, coloured_pictures;
} kinds;

/* Has each of a few masks the size of its picture? */
static int compare(pairs *p, size_t pictures, size_t masks, const ends *e, bool *same, kinds *of)
{
    const uint64_t first = p->taken->first[masks], count = count_of(p, masks);
    const uint64_t looked = mri_min_u64(count, LOOKS);
    int rc = MR_OK;
    *same = true;
    *of = (kinds){true, true};
    for (uint64_t k = 0; !rc && *same && k < looked; k++) {
        const uint64_t mask = first + (looked > 1 ? k * (count - 1) / (looked - 1) : 0);
        const uint64_t picture = picture_of(p, pictures, mask, e);
        looks a = {0}, b;
        rc = look_at(p, mask, masks, &b);
        if (!rc) rc = look_at(p, picture, pictures, &a);
        *same = a.known && b.known && same_size(&a, &b);
        of->gray_masks &= !b.coloured;
        of->coloured_pictures &= a.coloured;
    }
    return rc;
}

/* ---- two folders ---- */
static int look_at_first(pairs *p, size_t k, const looks **out)
{
    known_folder *of = &p->known[k];
    const int rc = of->first_is_known ? MR_OK : look_at(p, p->taken->first[k], k, &of->first);
    of->first_is_known = true;
    *out = &of->first;
    return rc;
}

/* Has each mask a picture? Sums of the bytes of both. */
static bool all_fit(const pairs *p, size_t pictures, size_t masks, const ends *e, uint64_t bytes[2])
{
    bytes[0] = bytes[1] = 0;
    for (uint64_t s = p->taken->first[masks]; s < p->taken->first[masks + 1]; s++) {
        const uint64_t picture = picture_of(p, pictures, s, e);
        if (picture == UINT64_MAX) return false;
        bytes[0] += p->taken->size[picture];
        bytes[1] += p->taken->size[s];
    }
    return bytes[1] <= bytes[0];
}

static bool are_siblings(const char *a, const char *b)
{
    const char *slash = strrchr(a, '/');
    const size_t n = slash ? (size_t)(slash - a) + 1 : 0;
    return strncmp(a, b, n) == 0 && !strchr(b + n, '/');
}

static int check(pairs *p, size_t pictures, size_t masks, bool *found)
{
    const char *const *names = p->taken->classes;
    const bool said = mri_has_word_of_masks(names[masks]) && !mri_has_word_of_masks(names[pictures]);
    const looks *a, *b;
    uint64_t bytes[2];
    bool same;
    kinds of;
    if (count_of(p, masks) > count_of(p, pictures) || !are_siblings(names[pictures], names[masks]))
        return MR_OK;
    const ends e = ends_of(p, pictures, masks);
    if (picture_of(p, pictures, p->taken->first[masks], &e) == UINT64_MAX) return MR_OK;
    int rc = look_at_first(p, masks, &b);
    if (!rc) rc = look_at_first(p, pictures, &a);
    if (rc || !a->known || !b->known || (!said && (b->coloured || !a->coloured))) return rc;
    if (!all_fit(p, pictures, masks, &e, bytes)) return MR_OK;
    rc = compare(p, pictures, masks, &e, &same, &of);
    *found =
        same && ((of.gray_masks && of.coloured_pictures) || (said && bytes[1] < bytes[0] / MUCH_SMALLER));
    return rc;
}

static int refuse(const pairs *p, size_t pictures, size_t masks, const char *where)
{
    const char *a = p->taken->classes[pictures], *b = p->taken->classes[masks];
    const char *mask = name_of(p, p->taken->first[masks]);
    mr_error_set(
        p->err, MR_EFORMAT,
        "%s/ and %s/ look like pictures and their masks, and both would be classes: each file of %s/ (%s) "
        "has the name and the size of a picture of %s/: move %s/ out of the data set; for pictures with "
        "masks, write KEY.jpg and KEY.mask.png into a tar; if they are classes, --format %s takes them as "
        "such",
        a, b, b, mask, a, b, p->part.in ? "archive" : "folder");
    return mri_error_place(p->err, MR_EFORMAT, where, MR_NOWHERE, MR_NOWHERE);
}

static int check_near(pairs *p, size_t masks, const char *where)
{
    const size_t count = p->taken->class_count;
    bool found = false;
    int rc = MR_OK;
    if (p->taken->deep && !strchr(p->taken->classes[masks], '/')) return MR_OK; /* asked for */
    for (size_t k = masks > NEAR ? masks - NEAR : 0; !rc && k < count && k <= masks + NEAR; k++) {
        if (k == masks) continue;
        rc = check(p, k, masks, &found);
        if (!rc && found) rc = refuse(p, k, masks, where);
    }
    return rc;
}

int mri_masks_are_no_classes(const mri_taken *taken, mri_dir part, const char *where, mr_error *err)
{
    pairs p = {.taken = taken, .part = part, .err = err};
    int rc = MR_OK;
    for (size_t k = 0; !rc && k < taken->class_count; k++) {
        if (count_of(&p, k) < 2 || !all_lossless(&p, k)) continue;
        if (!p.head) p.head = malloc(HEAD_BYTES);
        if (!p.known) p.known = calloc(taken->class_count, sizeof *p.known);
        rc = p.head && p.known ? check_near(&p, k, where) : mri_folder_no_memory(err, where);
    }
    free(p.head);
    free(p.known);
    return rc;
}
