/* pipeline/manifest/manifest_compare.c: files on disk against a manifest. See manifest.h. */
#include <errno.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>

#include "formats/source/source.h"
#include "pipeline/manifest/manifest.h"

typedef struct comparison {
    const mr_manifest_config *cfg;
    uint64_t wrong;
    bool go_on;
} comparison;

static void tell(comparison *c, const mr_error *what)
{
    c->wrong++;
    c->go_on = !c->cfg->on_wrong || c->cfg->on_wrong(c->cfg->context, what);
}

typedef struct place {
    uint64_t device, inode;
} place;

static int by_place(const void *a, const void *b)
{
    const place *x = a, *y = b;
    if (x->device != y->device) return x->device < y->device ? -1 : 1;
    return x->inode < y->inode ? -1 : x->inode > y->inode;
}

/* ---- named files ---- */
static void judge(const mri_manifest_file *want, const mri_manifest_file *got, mr_error *out)
{
    char a[2 * MRI_SHA256_BYTES + 1], b[2 * MRI_SHA256_BYTES + 1];
    *out = got->why;
    if (got->rc) return;
    for (int k = 0; k < MRI_SHA256_BYTES; k++) {
        sprintf(a + 2 * k, "%02x", want->sum[k]);
        sprintf(b + 2 * k, "%02x", got->sum[k]);
    }
    if (want->sized && want->bytes != got->bytes)
        mr_error_set(out, MR_ECHECKSUM, "expected %" PRIu64 " bytes as in the manifest, found %" PRIu64,
                     want->bytes, got->bytes);
    else mr_error_set(out, MR_ECHECKSUM, "expected SHA-256 %s as in the manifest, found %s", a, b);
    mr_error_at(out, want->path, MR_NOWHERE, MR_NOWHERE);
}

static int compare_named(const mri_manifest *want, const mri_manifest *got, comparison *c, mr_error *err)
{
    for (uint64_t k = 0; k < want->count && c->go_on; k++) {
        const mri_manifest_file *w = &want->file[k], *g = &got->file[k];
        if (!g->rc && g->bytes == (w->sized ? w->bytes : g->bytes) &&
            memcmp(w->sum, g->sum, MRI_SHA256_BYTES) == 0)
            continue;
        if (g->rc && g->rc != MR_ENOENT && g->rc != MR_EFORMAT && g->rc != MR_EIO) {
            if (err) *err = g->why;
            return g->rc;
        }
        mr_error what;
        judge(w, g, &what);
        tell(c, &what);
    }
    return MR_OK;
}

/* ---- files not named ---- */
/* Labels in a file of their own, which manifests of older versions do not list. */
static bool is_beside(const mr_source *src, const char *path)
{
    for (uint32_t k = 0; src && k < src->beside.count; k++)
        if (strcmp(src->beside.path[k], path) == 0) return true;
    return false;
}

static int find_more(const mri_manifest *want, const char *path, const char *data, const mr_source *src,
                     comparison *c, mr_error *err)
{
    mri_manifest there = {0};
    place *places = malloc((want->count + 1) * sizeof *places);
    uint64_t n = 0;
    struct stat st;
    int rc = places ? mri_manifest_find(&there, data, src, path, err)
                    : mr_error_set(err, MR_ENOMEM, "no memory to compare files");
    for (uint64_t k = 0; !rc && k < want->count; k++)
        if (stat(want->file[k].path, &st) == 0)
            places[n++] = (place){(uint64_t)st.st_dev, (uint64_t)st.st_ino};
    if (!rc && n) qsort(places, n, sizeof *places, by_place);
    for (uint64_t k = 0; !rc && k < there.count && c->go_on; k++) {
        if (stat(there.file[k].path, &st) != 0) continue;
        const place here = {(uint64_t)st.st_dev, (uint64_t)st.st_ino};
        if ((n && bsearch(&here, places, n, sizeof *places, by_place)) || is_beside(src, there.file[k].path))
            continue;
        mr_error what = MR_ERROR_INIT;
        mr_error_set(&what, MR_EFORMAT, "the manifest does not name this file");
        mr_error_at(&what, there.file[k].path, MR_NOWHERE, MR_NOWHERE);
        tell(c, &what);
    }
    free(places);
    mri_manifest_free(&there);
    return rc;
}

/* Not one of the files is there: a folder that was moved, or a list that was made in another one. */
static int check_place(const mri_manifest *got, const char *path, mr_error *err)
{
    uint64_t missing = 0;
    while (missing < got->count && got->file[missing].rc == MR_ENOENT) missing++;
    if (missing < got->count || got->count < 2) return MR_OK;
    mr_error_set(err, MR_ENOENT,
                 "none of its %" PRIu64
                 " files is there, the first is %.400s: names are relative to the folder of "
                 "the manifest; move it to where they begin, or make it again",
                 got->count, got->file[0].path);
    return mr_error_at(err, path, MR_NOWHERE, MR_NOWHERE);
}

int mri_manifest_compare(const char *path, const char *data, const mr_source *src,
                         const mr_manifest_config *cfg, mr_manifest_result *result, mr_error *err)
{
    mri_manifest want = {0}, got = {0};
    comparison c = {.cfg = cfg, .go_on = true};
    int rc = mri_manifest_read(&want, path, err);
    for (uint64_t k = 0; !rc && k < want.count; k++) rc = mri_manifest_add(&got, want.file[k].path, err);
    if (!rc) rc = mri_manifest_sum(&got, cfg, err);
    for (uint64_t k = 0; !rc && k < got.count; k++) result->bytes += got.file[k].rc ? 0 : got.file[k].bytes;
    result->files = want.count;
    if (!rc) rc = check_place(&got, path, err);
    if (!rc) rc = compare_named(&want, &got, &c, err);
    if (!rc && c.go_on) rc = find_more(&want, path, data, src, &c, err);
    result->wrong = c.wrong;
    mri_manifest_free(&want);
    mri_manifest_free(&got);
    return rc;
}
