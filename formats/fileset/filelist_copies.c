/* formats/fileset/filelist_copies.c: reports files of one set that have the same bytes, as a second download
 * leaves them: flowers.tar and flowers (1).tar. Every sample of a copy would count twice. No file is left
 * out.
 *
 * Files of one size are compared by their first and last 4 KiB. Shards of one writer often agree there (the
 * list of classes, zeros at the end), so files that agree there are compared whole up to 64 MiB, and in 256
 * blocks of 4 KiB beyond that. */
#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <sys/stat.h>
#include <unistd.h>
#include <xxhash.h>

#include "base/util.h"
#include "formats/fileset/file_names.h"
#include "formats/fileset/filelist.h"

enum { BLOCK = 4096, BLOCKS = 256, WHOLE_BYTES = 64 << 20, PIECE = 256 << 10 };

typedef struct file {
    uint64_t bytes;
    uint64_t ends, inside; /* hashes; inside: of the whole file or its blocks */
    uint32_t number;       /* in the list */
} file;

static int by_size(const void *a, const void *b)
{
    const file *x = a, *y = b;
    if (x->bytes != y->bytes) return x->bytes < y->bytes ? -1 : 1;
    return x->number < y->number ? -1 : x->number > y->number;
}

static int by_ends(const void *a, const void *b)
{
    const file *x = a, *y = b;
    if (x->ends != y->ends) return x->ends < y->ends ? -1 : 1;
    return x->number < y->number ? -1 : x->number > y->number;
}

static int by_inside(const void *a, const void *b)
{
    const file *x = a, *y = b;
    if (x->inside != y->inside) return x->inside < y->inside ? -1 : 1;
    return x->number < y->number ? -1 : x->number > y->number;
}

/* count pieces of `bytes` each, spread over the file from its first byte to its last. */
static int hash_pieces(const char *path, const file *f, uint8_t *piece, size_t bytes, uint64_t count,
                       uint64_t *hash, mr_error *err)
{
    int rc = MR_OK;
    const int fd = open(path, O_RDONLY | O_CLOEXEC | O_NONBLOCK);
    if (fd < 0)
        return mri_error_place(err, mr_error_sys(err, errno, "cannot open"), path, MR_NOWHERE, MR_NOWHERE);
    *hash = 0;
    for (uint64_t k = 0; !rc && k < count; k++) {
        const uint64_t at =
            count < 2 ? 0 : (uint64_t)((double)(f->bytes - bytes) / (double)(count - 1) * (double)k);
        rc = mri_stop_asked() ? mri_stopped(err) : mri_pread_all(fd, piece, bytes, at, path, err);
        if (!rc) *hash = XXH3_64bits_withSeed(piece, bytes, *hash);
    }
    close(fd);
    return rc;
}

static int hash_ends(const char *path, file *f, uint8_t *piece, mr_error *err)
{
    const size_t bytes = (size_t)mri_min_u64(f->bytes, BLOCK);
    return hash_pieces(path, f, piece, bytes, f->bytes > bytes ? 2 : 1, &f->ends, err);
}

/* Pieces of a whole file overlap a little, as its size is no multiple of theirs. */
static int hash_inside(const char *path, file *f, uint8_t *piece, mr_error *err)
{
    if (f->bytes > WHOLE_BYTES) return hash_pieces(path, f, piece, BLOCK, BLOCKS, &f->inside, err);
    const size_t bytes = (size_t)mri_min_u64(f->bytes, PIECE);
    return hash_pieces(path, f, piece, bytes, (f->bytes + bytes - 1) / bytes, &f->inside, err);
}

typedef struct copies {
    uint32_t count, copy, original; /* count: files that are copies; the other two: the first such pair */
    bool whole;                     /* these two were compared whole */
} copies;

/* f: of one size and with the same ends. */
static int compare_inside(const mri_filelist *l, file *f, uint32_t n, uint8_t *piece, copies *c,
                          mr_error *err)
{
    if (n < 2) return MR_OK;
    for (uint32_t k = 0; k < n; k++) {
        const int rc = hash_inside(l->path[f[k].number], &f[k], piece, err);
        if (rc) return rc;
    }
    qsort(f, n, sizeof *f, by_inside);
    for (uint32_t k = 1, of = 0; k < n; k++) {
        if (f[k].inside != f[of].inside) {
            of = k;
        } else if (c->count++ == 0 || f[k].number < c->copy) {
            c->original = f[of].number;
            c->copy = f[k].number;
            c->whole = f[k].bytes <= WHOLE_BYTES;
        }
    }
    return MR_OK;
}

/* f: of one size. */
static int compare(const mri_filelist *l, file *f, uint32_t n, uint8_t *piece, copies *c, mr_error *err)
{
    int rc = MR_OK;
    if (n < 2 || f->bytes == 0) return MR_OK;
    for (uint32_t k = 0; !rc && k < n; k++) rc = hash_ends(l->path[f[k].number], &f[k], piece, err);
    if (rc) return rc;
    qsort(f, n, sizeof *f, by_ends);
    for (uint32_t k = 1, from = 0; !rc && k <= n; k++) {
        if (k < n && f[k].ends == f[from].ends) continue;
        rc = compare_inside(l, f + from, k - from, piece, c, err);
        from = k;
    }
    return rc;
}

static void note(mri_filelist *l, const copies *c)
{
    mri_filelist_note(
        l,
        "%u of %u files %s the same bytes as another (%.200s as %.200s%s): every sample in %s counts twice; "
        "remove %s, or name the files to use by a pattern",
        c->count, l->count, c->count == 1 ? "has" : "have", mri_file_name(l->path[c->copy]),
        mri_file_name(l->path[c->original]), c->whole ? "" : ", by 256 blocks of 4 KiB that were compared",
        c->count == 1 ? "it" : "them", c->count == 1 ? "it" : "them");
}

int mri_filelist_note_copies(mri_filelist *l, mr_error *err)
{
    uint32_t many = 0;
    copies c = {0};
    int rc = MR_OK;
    if (l->count < 2) return MR_OK;
    file *f = malloc(l->count * sizeof *f);
    uint8_t *piece = malloc(PIECE);
    if (!f || !piece) {
        free(piece);
        free(f);
        return mr_error_set(err, MR_ENOMEM, "no memory for a list of files");
    }
    for (uint32_t k = 0; k < l->count; k++) {
        struct stat st;
        if (stat(l->path[k], &st) == 0 && S_ISREG(st.st_mode)) /* else opening it says why */
            f[many++] = (file){(uint64_t)st.st_size, 0, 0, k};
    }
    qsort(f, many, sizeof *f, by_size);
    for (uint32_t k = 1, from = 0; !rc && k <= many; k++) {
        if (k < many && f[k].bytes == f[from].bytes) continue;
        rc = compare(l, f + from, k - from, piece, &c, err);
        from = k;
    }
    free(piece);
    free(f);
    if (!rc && c.count) note(l, &c);
    return rc;
}
