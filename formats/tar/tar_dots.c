/* formats/tar/tar_dots.c: names of members with dots in them.
 *
 *   cat.0001.jpg cat.0001.cls cat.0002.jpg ...      the first dot folds all of them into one sample "cat"
 *   x_jpg.rf.1a2b.jpg x_jpg.rf.1a2b.cls             the first dot hides the class: ".rf.1a2b.cls"
 *   0017.left.jpg 0017.right.jpg 0017.cls           no dot makes whole samples: somebody has to say which
 *   0017.jpg 0017.mask.png 0017.boxes.npy           the first dot is right
 *
 * Two pictures, or two classes, of one ending are two samples where the last dot gives each as much: the same
 * endings for all, a picture among them, neighbours. A member that is called .jpg and no more keeps the first
 * dot where the last one does not help. */
#include <stdio.h>

#include "base/util.h"
#include "formats/image/picture_files.h"
#include "formats/tar/tar_sample.h"

static const char *const classes[] = {"cls", "class", "label"};

static bool is_one_of(const char *ending, const char *const *list, size_t count)
{
    for (size_t k = 0; k < count; k++)
        if (strcmp(ending, list[k]) == 0) return true;
    return false;
}

static bool is_picture(const char *ending) { return mri_picture_ending(ending, strlen(ending)) != 0; }
static bool is_class(const char *ending) { return is_one_of(ending, classes, MRI_ARRAY_COUNT(classes)); }

/* "jpg" of "0001.jpg". */
static const char *ending_of(const char *ext)
{
    const char *dot = strrchr(ext, '.');
    return dot ? dot + 1 : ext;
}

/* Bytes in front of the last dot; 0: without a dot. */
static size_t stem_of(const char *ext)
{
    const char *dot = strrchr(ext, '.');
    return dot ? (size_t)(dot - ext) : 0;
}

static bool same_stem(const char *a, const char *b)
{
    const size_t n = stem_of(a);
    return stem_of(b) == n && strncmp(a, b, n) == 0;
}

/* Pictures and classes: a sample has one of each. */
static bool counts(const mri_tar_part *p)
{
    const char *ending = ending_of(p->ext);
    return p->ext[0] && (is_class(ending) || (is_picture(ending) && !mri_tar_is_mask(p->ext)));
}

/* ---- as the last dot would have it ---- */
static uint32_t end_of_run(const mri_tar_group *g, uint32_t from)
{
    uint32_t k = from + 1;
    while (k < g->count && same_stem(g->part[from].ext, g->part[k].ext)) k++;
    return k;
}

static bool run_has(const mri_tar_group *g, uint32_t from, uint32_t to, const char *ending)
{
    uint32_t found = 0;
    for (uint32_t k = from; k < to; k++) found += strcmp(ending_of(g->part[k].ext), ending) == 0;
    return found == 1;
}

static bool run_has_picture(const mri_tar_group *g, uint32_t from, uint32_t to)
{
    for (uint32_t k = from; k < to; k++)
        if (is_picture(ending_of(g->part[k].ext))) return true;
    return false;
}

/* Every run has the endings of the first, once each, and a picture among them. */
static bool runs_are_whole(const mri_tar_group *g)
{
    const uint32_t first = g->count ? end_of_run(g, 0) : 0;
    if (!run_has_picture(g, 0, first)) return false;
    for (uint32_t from = 0, to; from < g->count; from = to) {
        to = end_of_run(g, from);
        if (g->more && to == g->count && from > 0) break; /* cut off where there was no more room */
        if (to - from != first) return false;
        for (uint32_t k = 0; k < first; k++)
            if (!run_has(g, from, to, ending_of(g->part[k].ext))) return false;
    }
    return true;
}

/* ---- as the first dot has it ---- */
static bool has_plain_picture(const mri_tar_group *g)
{
    for (uint32_t k = 0; k < g->count; k++)
        if (is_picture(g->part[k].ext)) return true;
    return false;
}

/* Two that a sample has one of. */
static bool is_folded(const mri_tar_group *g)
{
    for (uint32_t a = 0; a < g->count; a++)
        for (uint32_t b = 0; counts(&g->part[a]) && b < a; b++)
            if (counts(&g->part[b]) && !same_stem(g->part[a].ext, g->part[b].ext) &&
                strcmp(ending_of(g->part[a].ext), ending_of(g->part[b].ext)) == 0)
                return true;
    return false;
}

/* One picture and one class of the same longer name. */
static bool hides_class(const mri_tar_group *g)
{
    for (uint32_t k = 0; k < g->count; k++)
        if (stem_of(g->part[k].ext) && !g->more && g->count > 1 &&
            (is_class(ending_of(g->part[k].ext)) || strcmp(ending_of(g->part[k].ext), "json") == 0))
            return !has_plain_picture(g);
    return false;
}

mri_tar_dots mri_tar_dots_of(const mri_tar_group *g)
{
    for (uint32_t k = 0; k < g->count; k++)
        if (!g->part[k].ext[0]) return MRI_TAR_DOTS_FINE; /* a name that is no field's */
    const bool folded = is_folded(g);
    if ((folded || hides_class(g)) && runs_are_whole(g)) return MRI_TAR_DOTS_LAST;
    return folded && !has_plain_picture(g) ? MRI_TAR_DOTS_UNCLEAR : MRI_TAR_DOTS_FINE;
}

/* ---- lines for the user ---- */
int mri_tar_dots_unclear(const mri_tar_group *g, mr_error *err)
{
    char key[128], names[200], first[4 * MR_MAX_NAME + 1] = "";
    for (uint32_t k = 0; !first[0] && k < g->count; k++)
        if (counts(&g->part[k]) && is_picture(ending_of(g->part[k].ext)))
            mr_text_shown(g->part[k].ext, first, sizeof first);
    mr_error_set(
        err, MR_EFORMAT,
        "sample \"%s\" has several pictures or classes of one ending (%s), and neither the first nor the "
        "last dot of the names makes whole samples: name the picture (--image-key %.60s), or write names "
        "with one dot, members of one sample side by side",
        mr_text_shown(g->key, key, sizeof key), mri_tar_group_names(g, names, sizeof names),
        first[0] ? first : "NAME");
    return mri_error_place(err, MR_EFORMAT, NULL, g->begin, MR_NOWHERE);
}

int mri_tar_dots_check(const mri_tar_group *g, mr_error *err)
{
    char key[128], names[200];
    if (run_has_picture(g, 0, g->count)) return MR_OK;
    mr_error_set(
        err, MR_EFORMAT,
        "other samples of the set differ by the part before the last dot of their names, which leaves "
        "sample \"%s\" without a picture (%s): write names with one dot, or name the picture (--image-key)",
        mr_text_shown(g->key, key, sizeof key), mri_tar_group_names(g, names, sizeof names));
    return mri_error_place(err, MR_EFORMAT, NULL, g->begin, MR_NOWHERE);
}
