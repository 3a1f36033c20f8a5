/* formats/remote/remote_none.c: in place of remote_http.c where libcurl's headers were missing when this was
 * built. */
#include "formats/remote/remote_private.h"

int mri_http_create(mri_remote *r, mr_error *err)
{
    (void)r;
    return mr_error_set(
        err, MR_EUNSUPPORTED,
        "this build knows no http: build it where libcurl's headers are (Debian and Ubuntu: apt "
        "install libcurl4-openssl-dev)");
}

void mri_http_destroy(mri_remote *r) { (void)r; }
void *mri_http_main(void *remote) { return remote; }
void mri_http_wake(mri_remote *r) { (void)r; }
