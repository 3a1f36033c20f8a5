/* formats/fileset/filelist_copies.c: files of one set that have the same bytes, as a second download leaves
 * them: flowers.tar beside flowers (1).tar. Every sample would count twice. Nobody is left out: it is told.
 *
 * Looked at are files of the same size, and of these the first and the last 4 KiB. */
#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <sys/stat.h>
#include <unistd.h>
#include <xxhash.h>

#include "base/util.h"
#include "formats/fileset/file_names.h"
#include "formats/fileset/filelist.h"

enum { LOOKED_AT = 4096 };

typedef struct file {
    uint64_t bytes, ends; /* ends: a hash of both */
    uint32_t number;      /* in the list */
} file;

static int by_size(const void *a, const void *b)
{
    const file *x = a, *y = b;
    if (x->bytes != y->bytes) return x->bytes < y->bytes ? -1 : 1;
    return x->number < y->number ? -1 : x->number > y->number;
}

static int by_bytes(const void *a, const void *b)
{
    const file *x = a, *y = b;
    if (x->ends != y->ends) return x->ends < y->ends ? -1 : 1;
    return x->number < y->number ? -1 : x->number > y->number;
}

static int look(const char *path, file *f, mr_error *err)
{
    uint8_t ends[2 * LOOKED_AT];
    const int fd = open(path, O_RDONLY | O_CLOEXEC | O_NONBLOCK);
    if (fd < 0)
        return mri_error_place(err, mr_error_sys(err, errno, "cannot open"), path, MR_NOWHERE, MR_NOWHERE);
    const size_t bytes = (size_t)mri_min_u64(f->bytes, LOOKED_AT);
    int rc = mri_pread_all(fd, ends, bytes, 0, path, err);
    if (!rc) rc = mri_pread_all(fd, ends + bytes, bytes, f->bytes - bytes, path, err);
    close(fd);
    if (!rc) f->ends = XXH3_64bits(ends, 2 * bytes);
    return rc;
}

/* f: of one size. *count: files that are as an earlier one; first: the first such pair. */
static int compare(const mri_filelist *l, file *f, uint32_t n, uint32_t *count, uint32_t first[2],
                   mr_error *err)
{
    if (n < 2 || f->bytes == 0) return MR_OK;
    for (uint32_t k = 0; k < n; k++) {
        const int rc = look(l->path[f[k].number], &f[k], err);
        if (rc) return rc;
    }
    qsort(f, n, sizeof *f, by_bytes);
    for (uint32_t k = 1, of = 0; k < n; k++) {
        if (f[k].ends != f[of].ends) {
            of = k;
        } else if ((*count)++ == 0 || f[k].number < first[1]) {
            first[0] = f[of].number;
            first[1] = f[k].number;
        }
    }
    return MR_OK;
}

int mri_filelist_note_copies(mri_filelist *l, mr_error *err)
{
    uint32_t many = 0, count = 0, first[2] = {0};
    int rc = MR_OK;
    if (l->count < 2) return MR_OK;
    file *f = malloc(l->count * sizeof *f);
    if (!f) return mr_error_set(err, MR_ENOMEM, "no memory for a list of files");
    for (uint32_t k = 0; k < l->count; k++) {
        struct stat st;
        if (stat(l->path[k], &st) == 0 && S_ISREG(st.st_mode)) /* else opening it says why */
            f[many++] = (file){(uint64_t)st.st_size, 0, k};
    }
    qsort(f, many, sizeof *f, by_size);
    for (uint32_t k = 1, from = 0; !rc && k <= many; k++) {
        if (k < many && f[k].bytes == f[from].bytes) continue;
        rc = compare(l, f + from, k - from, &count, first, err);
        from = k;
    }
    free(f);
    if (!rc && count)
        mri_filelist_note(
            l,
            "%u of %u files %s the size, the beginning and the end of another (%.200s is as %.200s): if "
            "%s, every sample in %s counts twice; remove %s, or name the files to use by a pattern",
            count, l->count, count == 1 ? "has" : "have", mri_file_name(l->path[first[1]]),
            mri_file_name(l->path[first[0]]), count == 1 ? "it is a copy" : "they are copies",
            count == 1 ? "it" : "them", count == 1 ? "it" : "them");
    return rc;
}
