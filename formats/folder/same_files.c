/* formats/folder/same_files.c: pictures that have several names, because a link leads from one to the other.
 * They are reported, and taken all the same: a link may be meant. Files are looked at once more, and only
 * where the folders have links to files at all. */
#include <stdio.h>
#include <sys/stat.h>

#include "base/util.h"
#include "formats/folder/folder.h"

typedef struct file {
    dev_t device;
    ino_t number;
    uint64_t sample;
} file;

static int by_file(const void *a, const void *b)
{
    const file *x = a, *y = b;
    if (x->device != y->device) return x->device < y->device ? -1 : 1;
    if (x->number != y->number) return x->number < y->number ? -1 : 1;
    return (x->sample > y->sample) - (x->sample < y->sample);
}

typedef struct found {
    uint64_t pictures, of_two_classes; /* with several names; of these in several classes */
    uint64_t first, second;            /* samples of the first such picture */
} found;

static void judge(const mri_same_files *s, const mr_source *src, const file *of, size_t count, found *out)
{
    bool two = false;
    if (count < 2) return;
    for (size_t k = 1; k < count; k++)
        two |= s->class_of(src, of[k].sample) != s->class_of(src, of[0].sample);
    out->of_two_classes += s->labels && two;
    if (out->pictures++ && out->first < of[0].sample) return;
    out->first = of[0].sample;
    out->second = of[1].sample;
}

static int look(const mri_same_files *s, const mr_source *src, file *files, size_t *count, mr_error *err)
{
    char path[MRI_FOLDER_PATH];
    struct stat st;
    for (uint64_t k = 0; k < s->count; k++) {
        if (mri_stop_asked()) return mri_stopped(err);
        s->path_of(src, k, path, sizeof path);
        if (stat(path, &st) == 0) files[(*count)++] = (file){st.st_dev, st.st_ino, k};
    }
    return MR_OK;
}

static void tell(mr_source *src, const mri_same_files *s, const found *f)
{
    char first[MRI_FOLDER_PATH], second[MRI_FOLDER_PATH], classes[64] = "";
    const size_t root = strlen(src->path);
    if (f->pictures == 0) return;
    s->path_of(src, f->first, first, sizeof first);
    s->path_of(src, f->second, second, sizeof second);
    if (f->of_two_classes)
        snprintf(classes, sizeof classes, "; %llu in several classes", (unsigned long long)f->of_two_classes);
    mri_source_tell(
        src,
        "%llu picture%s several names (%.300s and %.300s are the same file%s), and each name is a "
        "sample%s",
        (unsigned long long)f->pictures, f->pictures == 1 ? " has" : "s have",
        first + root + strspn(first + root, "/"), second + root + strspn(second + root, "/"),
        f->pictures == 1 ? "" : ", ...", classes);
}

int mri_same_files_tell(mr_source *src, const mri_same_files *s, const mr_source_config *cfg, mr_error *err)
{
    found f = {0};
    size_t bytes, count = 0;
    mr_error none = MR_ERROR_INIT;
    if (s->links == 0) return MR_OK;
    if (!mri_mul_size((size_t)s->count, sizeof(file), &bytes) ||
        mri_source_budget(cfg, s->memory_bytes + bytes, src->path, &none) != MR_OK) {
        mri_source_tell(src, "%llu pictures are links, and too many to look for those that lead to one file",
                        (unsigned long long)s->links);
        return MR_OK;
    }
    file *files = malloc(bytes);
    if (!files) return mri_folder_no_memory(err, src->path);
    const int rc = look(s, src, files, &count, err);
    qsort(files, count, sizeof *files, by_file);
    for (size_t from = 0, to; !rc && from < count; from = to) {
        for (to = from + 1;
             to < count && files[to].device == files[from].device && files[to].number == files[from].number;)
            to++;
        judge(s, src, files + from, to - from, &f);
    }
    free(files);
    if (!rc) tell(src, s, &f);
    return rc;
}
