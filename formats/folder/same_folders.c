/* formats/folder/same_folders.c: folders whose pictures are taken twice, because a link leads from one name
 * to the other. They are reported, and taken all the same: a link may be meant. */
#include <stdio.h>
#include <sys/stat.h>

#include "base/util.h"
#include "formats/folder/folder.h"

typedef struct place {
    dev_t device;
    ino_t number;
    size_t at;  /* index of the class */
    bool other; /* of the other part */
} place;

typedef struct pair {
    uint64_t count; /* of such folders */
    size_t first, second;
} pair;

static const char *path_of(const char *part, const char *name, const char *inner, char out[MRI_FOLDER_PATH])
{
    snprintf(out, MRI_FOLDER_PATH, "%s%s%s%s%s", part, part[0] && name[0] ? "/" : "", name,
             inner[0] ? "/" : "", inner);
    return out;
}

static size_t look(const mri_same_folders *s, const char *part, bool other, place *out)
{
    size_t found = 0;
    for (size_t k = 0; k < s->classes->count; k++) {
        char path[MRI_FOLDER_PATH];
        struct stat st;
        path_of(part, mri_listing_name(s->classes, k), s->inner, path);
        if (fstatat(s->root.at, path[0] ? path : ".", &st, 0) == 0)
            out[found++] = (place){st.st_dev, st.st_ino, k, other};
    }
    return found;
}

static int by_folder(const void *a, const void *b)
{
    const place *x = a, *y = b;
    if (x->device != y->device) return x->device < y->device ? -1 : 1;
    if (x->number != y->number) return x->number < y->number ? -1 : 1;
    if (x->other != y->other) return x->other ? 1 : -1;
    return (x->at > y->at) - (x->at < y->at);
}

static void add(pair *p, size_t first, size_t second)
{
    if (p->count++ && p->first < first) return;
    p->first = first;
    p->second = second;
}

/* Of one folder: its names in the part that is taken come first. */
static void judge(const place *of, size_t count, pair *twice, pair *shared)
{
    size_t k = 1;
    if (of[0].other) return; /* reported where that part is taken */
    for (; k < count && !of[k].other; k++) add(twice, of[0].at, of[k].at);
    if (k < count) add(shared, of[0].at, of[k].at);
}

static void tell(mr_source *src, const mri_same_folders *s, const pair *p, const char *second_part,
                 const char *what)
{
    char first[MRI_FOLDER_PATH], second[MRI_FOLDER_PATH];
    if (p->count == 0) return;
    path_of(s->part, mri_listing_name(s->classes, p->first), s->inner, first);
    path_of(second_part, mri_listing_name(s->classes, p->second), s->inner, second);
    mri_source_tell(src, "%llu folder%s two names (%s and %s are the same folder%s): %s",
                    (unsigned long long)p->count, p->count == 1 ? " has" : "s have", first, second,
                    p->count == 1 ? "" : ", ...", what);
}

int mri_same_folders_tell(mr_source *src, const mri_same_folders *s, mr_error *err)
{
    pair twice = {0}, shared = {0};
    if (s->root.in) return MR_OK; /* an archive has no links to folders */
    place *found = malloc((2 * s->classes->count + 1) * sizeof *found);
    if (!found) return mri_folder_no_memory(err, src->path);
    size_t count = look(s, s->part, false, found);
    if (s->other[0]) count += look(s, s->other, true, found + count);
    qsort(found, count, sizeof *found, by_folder);
    for (size_t from = 0, to; from < count; from = to) {
        for (to = from + 1;
             to < count && found[to].device == found[from].device && found[to].number == found[from].number;)
            to++;
        judge(found + from, to - from, &twice, &shared);
    }
    free(found);
    tell(src, s, &twice, s->part, "their pictures are taken twice");
    tell(src, s, &shared, s->other, "the part to train on and the one to test with share their pictures");
    return MR_OK;
}
