/* ranks/secret.h: the secret that the processes of a run share, and HMAC-SHA-256 with it. Private.
 *
 * Takes a secret that the caller gives, or MILLRACE_SECRET_FILE, or MILLRACE_SECRET. Gives a key and tags of
 * bytes. The function comes from libcrypto, which is opened when there is a secret. The secret itself is in
 * no message and is not kept. Callers: seal.c; meet and muster hold the key. */
#ifndef MRI_SECRET_H
#define MRI_SECRET_H

#include "base/util.h"

enum {
    MRI_SECRET_LEAST = 16, /* bytes of a secret */
    MRI_SECRET_MOST = 4096,
    MRI_KEY_BYTES = 32, /* of a key, and of HMAC-SHA-256 */
};

typedef struct mri_secret {
    bool set; /* false: this run has no secret */
    uint8_t key[MRI_KEY_BYTES];
} mri_secret;

/* given NULL: the environment. MR_EINVAL: too short, or a file that others can read; MR_EUNSUPPORTED: a
 * secret is set and libcrypto is missing; MR_EIO, MR_ENOENT: of the file. */
int mri_secret_find(mri_secret *out, const void *given, size_t bytes, mr_error *err);
void mri_secret_fini(mri_secret *s);

/* HMAC-SHA-256. False: libcrypto has failed, and out is nothing to rely on. Any thread. */
bool mri_secret_tag(const uint8_t key[MRI_KEY_BYTES], const void *data, size_t bytes,
                    uint8_t out[MRI_KEY_BYTES]);
/* In a time that does not depend on where they differ. */
bool mri_secret_equal(const void *a, const void *b, size_t bytes);
/* Random bytes of the system; false: none are available yet. */
bool mri_secret_draw(void *out, size_t bytes);

#endif
