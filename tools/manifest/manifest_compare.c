/* tools/manifest/manifest_compare.c: files on disk against a manifest. See manifest.h. */
#include <errno.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>

#include "tools/manifest/manifest.h"

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
static void judge(const manifest_file *want, const manifest_file *got, mr_error *out)
{
    char a[2 * SHA256_BYTES + 1], b[2 * SHA256_BYTES + 1];
    *out = got->why;
    if (got->rc) return;
    for (int k = 0; k < SHA256_BYTES; k++) {
        sprintf(a + 2 * k, "%02x", want->sum[k]);
        sprintf(b + 2 * k, "%02x", got->sum[k]);
    }
    if (want->sized && want->bytes != got->bytes)
        mr_error_set(out, MR_ECHECKSUM, "expected %" PRIu64 " bytes as in the manifest, found %" PRIu64,
                     want->bytes, got->bytes);
    else mr_error_set(out, MR_ECHECKSUM, "expected SHA-256 %s as in the manifest, found %s", a, b);
    mr_error_at(out, want->path, MR_NOWHERE, MR_NOWHERE);
}

static int compare_named(const manifest *want, const manifest *got, manifest_wrong *wrong, void *context,
                         bool *go_on, mr_error *err)
{
    for (uint64_t k = 0; k < want->count && *go_on; k++) {
        const manifest_file *w = &want->file[k], *g = &got->file[k];
        if (!g->rc && g->bytes == (w->sized ? w->bytes : g->bytes) &&
            memcmp(w->sum, g->sum, SHA256_BYTES) == 0)
            continue;
        if (g->rc && g->rc != MR_ENOENT && g->rc != MR_EFORMAT && g->rc != MR_EIO) {
            if (err) *err = g->why;
            return g->rc;
        }
        mr_error what;
        judge(w, g, &what);
        *go_on = wrong(context, &what);
    }
    return MR_OK;
}

/* ---- files not named ---- */
static int find_more(const manifest *want, const char *path, const char *data, const mr_source *src,
                     manifest_wrong *wrong, void *context, mr_error *err)
{
    manifest there = {0};
    place *places = malloc((want->count + 1) * sizeof *places);
    uint64_t n = 0;
    struct stat st;
    int rc = places ? manifest_find(&there, data, src, path, err)
                    : mr_error_set(err, MR_ENOMEM, "no memory to compare files");
    for (uint64_t k = 0; !rc && k < want->count; k++)
        if (stat(want->file[k].path, &st) == 0)
            places[n++] = (place){(uint64_t)st.st_dev, (uint64_t)st.st_ino};
    if (!rc && n) qsort(places, n, sizeof *places, by_place);
    bool go_on = true;
    for (uint64_t k = 0; !rc && k < there.count && go_on; k++) {
        if (stat(there.file[k].path, &st) != 0) continue;
        const place here = {(uint64_t)st.st_dev, (uint64_t)st.st_ino};
        if (n && bsearch(&here, places, n, sizeof *places, by_place)) continue;
        mr_error what = MR_ERROR_INIT;
        mr_error_set(&what, MR_EFORMAT, "the manifest does not name this file");
        mr_error_at(&what, there.file[k].path, MR_NOWHERE, MR_NOWHERE);
        go_on = wrong(context, &what);
    }
    free(places);
    manifest_free(&there);
    return rc;
}

int manifest_compare(const char *path, const char *data, const mr_source *src, uint32_t threads, bool quiet,
                     const volatile int *stop, manifest_wrong *wrong, void *context, uint64_t *files,
                     uint64_t *bytes, mr_error *err)
{
    manifest want = {0}, got = {0};
    bool go_on = true;
    *files = *bytes = 0;
    int rc = manifest_read(&want, path, err);
    for (uint64_t k = 0; !rc && k < want.count; k++) rc = manifest_add(&got, want.file[k].path, err);
    if (!rc) rc = manifest_sum(&got, threads, quiet, stop, err);
    for (uint64_t k = 0; !rc && k < got.count; k++) *bytes += got.file[k].rc ? 0 : got.file[k].bytes;
    *files = want.count;
    if (!rc) rc = compare_named(&want, &got, wrong, context, &go_on, err);
    if (!rc && go_on) rc = find_more(&want, path, data, src, wrong, context, err);
    manifest_free(&want);
    manifest_free(&got);
    return rc;
}
