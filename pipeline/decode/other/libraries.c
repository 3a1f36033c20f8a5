/* pipeline/decode/other/libraries.c: see libraries.h. */
#include "pipeline/decode/other/libraries.h"

#include <pthread.h>

#include "base/library.h"
#include "base/util.h"

typedef struct library {
    const char *kind, *name, *package; /* for messages */
    const char *files[3];              /* the first that opens; NULL ends them */
    const char *version;               /* that has all functions */
    const mri_symbol *symbols;
    size_t symbol_count;
    void *table; /* does not change once it is filled */
    bool filled; /* lock */
} library;

static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;

static int fill(const library *l, mr_error *err)
{
    const char *what;
    const int rc = mri_library_open(l->table, l->files, l->symbols, l->symbol_count, &what);
    if (rc == MR_ENOENT)
        return mr_error_set(
            err, MR_EUNSUPPORTED,
            "a %s picture needs %s (Debian and Ubuntu: apt install %s), or convert it to JPEG or PNG: %s",
            l->kind, l->name, l->package, what);
    if (rc)
        return mr_error_set(
            err, MR_EUNSUPPORTED,
            "a %s picture needs %s %s or newer, and %s here has no %s: install a newer one, or "
            "convert the picture to JPEG or PNG",
            l->kind, l->name, l->version, l->files[0], what);
    return MR_OK;
}

static const void *need(library *l, mr_error *err)
{
    mri_lock_global(&lock);
    if (!l->filled) l->filled = fill(l, err) == MR_OK;
    const bool usable = l->filled;
    pthread_mutex_unlock(&lock);
    return usable ? l->table : NULL;
}

static const mri_symbol webp_symbols[] = {
#define SYMBOL(result, f, parameters) {#f, offsetof(mri_webp_calls, f)},
    MRI_WEBP_CALLS(SYMBOL)
#undef SYMBOL
};
static mri_webp_calls webp_calls;
static library webp = {"WebP",
                       "libwebp",
                       "libwebp7",
                       {"libwebp.so.7", "libwebp.so.6", NULL},
                       "0.5",
                       webp_symbols,
                       MRI_ARRAY_COUNT(webp_symbols),
                       &webp_calls,
                       false};

static const mri_symbol tiff_symbols[] = {
#define SYMBOL(result, f, parameters) {#f, offsetof(mri_tiff_calls, f)},
    MRI_TIFF_CALLS(SYMBOL)
#undef SYMBOL
};
static mri_tiff_calls tiff_calls;
static library tiff = {"TIFF",
                       "libtiff",
                       "libtiff6",
                       {"libtiff.so.6", "libtiff.so.5", NULL},
                       "4.5",
                       tiff_symbols,
                       MRI_ARRAY_COUNT(tiff_symbols),
                       &tiff_calls,
                       false};

static const mri_symbol heif_symbols[] = {
#define SYMBOL(result, f, parameters) {#f, offsetof(mri_heif_calls, f)},
    MRI_HEIF_CALLS(SYMBOL)
#undef SYMBOL
};
static mri_heif_calls heif_calls;
static library heif = {"HEIC or AVIF",
                       "libheif",
                       "libheif1",
                       {"libheif.so.1", NULL},
                       "1.13",
                       heif_symbols,
                       MRI_ARRAY_COUNT(heif_symbols),
                       &heif_calls,
                       false};

const mri_heif_calls *mri_heif_need(mr_type type, mr_error *err)
{
    const bool avif = type == MR_TYPE_AVIF;
    const mri_heif_calls *calls = need(&heif, err);
    if (!calls || calls->heif_have_decoder_for_format(avif ? MRI_HEIF_AV1 : MRI_HEIF_HEVC)) return calls;
    mr_error_set(err, MR_EUNSUPPORTED,
                 "%s picture: libheif here has no decoder of %s (Debian and Ubuntu: apt install %s), "
                 "or convert it to JPEG or PNG",
                 avif ? "an AVIF" : "a HEIC", avif ? "AV1" : "HEVC",
                 avif ? "libheif-plugin-dav1d" : "libheif-plugin-libde265");
    return NULL;
}

const mri_webp_calls *mri_webp_need(mr_error *err) { return need(&webp, err); }
const mri_tiff_calls *mri_tiff_need(mr_error *err) { return need(&tiff, err); }
