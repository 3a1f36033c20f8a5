/* ranks/tls.h: TLS 1.3 for the bytes of calls between two ranks. Private.
 *
 * Takes a connected socket that does not block and a key that both ends know. The key is a pre-shared key
 * with an ephemeral exchange (RFC 8446, section 2.2): no certificates, and who learns the secret later reads
 * nothing of before. Gives send and receive that behave like a socket's. The functions come from
 * OpenSSL's libssl, which is opened when TLS is asked for. One thread at a time. Callers: carrier_tcp.c. */
#ifndef MRI_TLS_H
#define MRI_TLS_H

#include <sys/types.h>
#include <sys/uio.h>

#include "ranks/secret.h"

typedef struct mri_tls mri_tls;

/* given, or the variable MILLRACE_TLS is 1. MR_EINVAL: TLS without a secret, or another value. */
int mri_tls_wanted(bool *out, bool given, const mri_secret *secret, mr_error *err);

/* The socket stays the caller's and lives longer. MR_EUNSUPPORTED: libssl is missing or has no TLS 1.3. */
int mri_tls_open(mri_tls **out, int fd, bool calls, const uint8_t key[MRI_KEY_BYTES], mr_error *err);
void mri_tls_close(mri_tls *t); /* NULL is harmless */

/* MR_OK: both ends have proved the key. MR_EAGAIN: wait for *events, then call again. MR_EPEER: the other end
 * has no TLS, another key, or is gone; *why says which, and lives as long as t. */
int mri_tls_greet(mri_tls *t, short *events, const char **why);

/* As sendmsg() and recvmsg(): bytes, 0 at the end, or -1 and errno. Before anything is sent again after
 * EAGAIN, its first bytes must be the same. */
ssize_t mri_tls_send(mri_tls *t, const struct iovec *pieces, size_t count);
ssize_t mri_tls_receive(mri_tls *t, const struct iovec *pieces, size_t count);
/* Bytes have come that poll() no longer sees. */
bool mri_tls_has_more(const mri_tls *t);

#endif
