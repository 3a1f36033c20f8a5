/* formats/remote/remote_curl.c: opens libcurl; see remote_curl.h. */
#include "formats/remote/remote_curl.h"

#include "base/library.h"
#include "base/util.h"

static const mri_symbol symbols[] = {
#define SYMBOL(f) {#f, offsetof(mri_curl_api, f)},
    MRI_CURL_CALLS(SYMBOL)
#undef SYMBOL
};

static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;
static mri_curl_api table; /* lock to write; does not change once it is filled */
static bool filled;        /* lock */

static int fill(mr_error *err)
{
    static const char *const files[] = {"libcurl.so.4", NULL};
    const char *what;
    const int rc = mri_library_open(&table, files, symbols, MRI_ARRAY_COUNT(symbols), &what);
    if (rc == MR_ENOENT)
        return mr_error_set(err, MR_EUNSUPPORTED,
                            "http and https need libcurl (Debian and Ubuntu: apt install libcurl4): %s",
                            what);
    if (rc)
        return mr_error_set(err, MR_EUNSUPPORTED,
                            "libcurl.so.4 here has no %s: http and https need libcurl 7.68 or newer", what);
    if (table.curl_global_init(CURL_GLOBAL_DEFAULT) == CURLE_OK) return MR_OK;
    return mr_error_set(err, MR_EUNSUPPORTED, "libcurl cannot be initialised");
}

const mri_curl_api *mri_curl_need(mr_error *err)
{
    mri_lock_global(&lock);
    if (!filled) filled = fill(err) == MR_OK;
    const bool usable = filled;
    pthread_mutex_unlock(&lock);
    return usable ? &table : NULL;
}
