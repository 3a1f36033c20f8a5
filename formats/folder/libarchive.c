/* formats/folder/libarchive.c: opens libarchive; see libarchive.h. */
#include "formats/folder/libarchive.h"

#include <pthread.h>

#include "base/library.h"
#include "base/util.h"

static const mri_symbol symbols[] = {
#define SYMBOL(result, f, parameters) {#f, offsetof(mri_libarchive, f)},
    MRI_LIBARCHIVE_CALLS(SYMBOL)
#undef SYMBOL
};

static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;
static mri_libarchive table; /* lock to write; does not change once it is filled */
static bool filled;          /* lock */

static int fill(mr_error *err)
{
    static const char *const files[] = {"libarchive.so.13", NULL};
    const char *what;
    const int rc = mri_library_open(&table, files, symbols, MRI_ARRAY_COUNT(symbols), &what);
    if (rc == MR_ENOENT)
        return mr_error_set(err, MR_EUNSUPPORTED,
                            "archives packed by bzip2, xz, zstd, 7z and rar need libarchive (Debian and "
                            "Ubuntu: apt install libarchive13), or unpack it and open the unpacked files: %s",
                            what);
    if (rc)
        return mr_error_set(err, MR_EUNSUPPORTED,
                            "libarchive.so.13 here has no %s: libarchive 3.4 or newer is needed, or "
                            "unpack the archive and open the unpacked files",
                            what);
    return MR_OK;
}

const mri_libarchive *mri_libarchive_need(mr_error *err)
{
    mri_lock_global(&lock);
    if (!filled) filled = fill(err) == MR_OK;
    const bool usable = filled;
    pthread_mutex_unlock(&lock);
    return usable ? &table : NULL;
}
