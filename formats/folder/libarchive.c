/* formats/folder/libarchive.c: opens libarchive; see libarchive.h. */
#include "formats/folder/libarchive.h"

#include <dlfcn.h>
#include <pthread.h>

#include "base/util.h"

static const struct symbol {
    const char *name;
    size_t place; /* in the table */
} symbols[] = {
#define SYMBOL(result, f, parameters) {#f, offsetof(mri_libarchive, f)},
    MRI_LIBARCHIVE_CALLS(SYMBOL)
#undef SYMBOL
};

static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;
static mri_libarchive table; /* lock to write; does not change once it is filled */
static bool filled;          /* lock */

static int fill(mr_error *err)
{
    void *handle = dlopen("libarchive.so.13", RTLD_NOW | RTLD_LOCAL);
    if (!handle)
        return mr_error_set(err, MR_EUNSUPPORTED,
                            "archives packed by bzip2, xz, zstd, 7z and rar need libarchive (Debian and "
                            "Ubuntu: apt install libarchive13), or unpack it and open what it makes: %s",
                            dlerror());
    for (size_t k = 0; k < MRI_ARRAY_COUNT(symbols); k++) {
        void *function = dlsym(handle, symbols[k].name);
        if (!function) {
            dlclose(handle);
            return mr_error_set(err, MR_EUNSUPPORTED,
                                "libarchive.so.13 here has no %s: libarchive 3.4 or newer is needed, or "
                                "unpack the archive and open what it makes",
                                symbols[k].name);
        }
        memcpy((char *)&table + symbols[k].place, &function, sizeof function);
    }
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
