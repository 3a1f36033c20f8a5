/* formats/remote/remote_curl.h: every function of libcurl that is called, in one table. The library is opened
 * when the first URL is, so one program runs with and without it. Private to remote_http.c and
 * remote_curl.c. */
#ifndef MRI_REMOTE_CURL_H
#define MRI_REMOTE_CURL_H

#define CURL_DISABLE_TYPECHECK /* its macros would call the functions by name */
#include <curl/curl.h>

#include "millrace/base.h"

#define MRI_CURL_CALLS(X)                                                                                    \
    X(curl_global_init)                                                                                      \
    X(curl_slist_append)                                                                                     \
    X(curl_slist_free_all)                                                                                   \
    X(curl_easy_init)                                                                                        \
    X(curl_easy_cleanup)                                                                                     \
    X(curl_easy_reset)                                                                                       \
    X(curl_easy_setopt)                                                                                      \
    X(curl_easy_getinfo)                                                                                     \
    X(curl_easy_strerror)                                                                                    \
    X(curl_multi_init)                                                                                       \
    X(curl_multi_cleanup)                                                                                    \
    X(curl_multi_setopt)                                                                                     \
    X(curl_multi_add_handle)                                                                                 \
    X(curl_multi_remove_handle)                                                                              \
    X(curl_multi_perform)                                                                                    \
    X(curl_multi_poll)                                                                                       \
    X(curl_multi_wakeup)                                                                                     \
    X(curl_multi_info_read)

typedef struct mri_curl_api {
#define MRI_FIELD(f) __typeof__(&f) f;
    MRI_CURL_CALLS(MRI_FIELD)
#undef MRI_FIELD
} mri_curl_api;

/* The table, or NULL with MR_EUNSUPPORTED in err, which names what to install. The library stays open. Any
 * thread. */
const mri_curl_api *mri_curl_need(mr_error *err);

#endif
