/* ranks/tls.c: see tls.h. */
#include "ranks/tls.h"

#include <errno.h>
#include <poll.h>
#include <pthread.h>
#include <stdlib.h>
#include <sys/socket.h>

#include "base/handle.h"
#include "base/library.h"

/* ---- libssl ---- */

/* Of openssl/ssl.h and openssl/bio.h, the same in 1.1.1 and 3. Types are opaque to us. */
typedef unsigned psk_client(void *ssl, const char *hint, char *identity, unsigned identity_most,
                            unsigned char *key, unsigned key_most);
typedef unsigned psk_server(void *ssl, const char *identity, unsigned char *key, unsigned key_most);

typedef struct functions {
    struct {
        const void *(*TLS_method)(void);
        void *(*SSL_CTX_new)(const void *method);
        void (*SSL_CTX_free)(void *ctx);
        long (*SSL_CTX_ctrl)(void *ctx, int what, long number, void *pointer);
        int (*SSL_CTX_set_ciphersuites)(void *ctx, const char *names);
        int (*SSL_CTX_set_num_tickets)(void *ctx, size_t count);
        void (*SSL_CTX_set_default_read_buffer_len)(void *ctx, size_t bytes);
    } ctx;
    struct {
        void *(*SSL_new)(void *ctx);
        void (*SSL_free)(void *ssl);
        void (*SSL_set_bio)(void *ssl, void *in, void *out);
        void (*SSL_set_connect_state)(void *ssl);
        void (*SSL_set_accept_state)(void *ssl);
        void (*SSL_set_psk_client_callback)(void *ssl, psk_client *call);
        void (*SSL_set_psk_server_callback)(void *ssl, psk_server *call);
        int (*SSL_set_ex_data)(void *ssl, int slot, void *data);
        void *(*SSL_get_ex_data)(const void *ssl, int slot);
        int (*SSL_do_handshake)(void *ssl);
        int (*SSL_read)(void *ssl, void *data, int bytes);
        int (*SSL_write)(void *ssl, const void *data, int bytes);
        int (*SSL_get_error)(const void *ssl, int returned);
        int (*SSL_has_pending)(const void *ssl);
        int (*SSL_key_update)(void *ssl, int kind);
        void (*ERR_clear_error)(void);
    } ssl;
    struct {
        void *(*BIO_meth_new)(int type, const char *name);
        int (*BIO_meth_set_write)(void *method, int (*call)(void *bio, const char *data, int bytes));
        int (*BIO_meth_set_read)(void *method, int (*call)(void *bio, char *data, int bytes));
        int (*BIO_meth_set_ctrl)(void *method, long (*call)(void *bio, int what, long number, void *pointer));
        void *(*BIO_new)(const void *method);
        void (*BIO_set_data)(void *bio, void *data);
        void *(*BIO_get_data)(void *bio);
        void (*BIO_set_init)(void *bio, int init);
        void (*BIO_set_flags)(void *bio, int flags);
        void (*BIO_clear_flags)(void *bio, int flags);
    } bio;
} functions;

#define MEMBER(group, name)                                                                                  \
    {                                                                                                        \
#name, offsetof(functions, group.name)                                                               \
    }
static const mri_symbol symbols[] = {MEMBER(ctx, TLS_method),
                                     MEMBER(ctx, SSL_CTX_new),
                                     MEMBER(ctx, SSL_CTX_free),
                                     MEMBER(ctx, SSL_CTX_ctrl),
                                     MEMBER(ctx, SSL_CTX_set_ciphersuites),
                                     MEMBER(ctx, SSL_CTX_set_num_tickets),
                                     MEMBER(ctx, SSL_CTX_set_default_read_buffer_len),
                                     MEMBER(ssl, SSL_new),
                                     MEMBER(ssl, SSL_free),
                                     MEMBER(ssl, SSL_set_bio),
                                     MEMBER(ssl, SSL_set_connect_state),
                                     MEMBER(ssl, SSL_set_accept_state),
                                     MEMBER(ssl, SSL_set_psk_client_callback),
                                     MEMBER(ssl, SSL_set_psk_server_callback),
                                     MEMBER(ssl, SSL_set_ex_data),
                                     MEMBER(ssl, SSL_get_ex_data),
                                     MEMBER(ssl, SSL_do_handshake),
                                     MEMBER(ssl, SSL_read),
                                     MEMBER(ssl, SSL_write),
                                     MEMBER(ssl, SSL_get_error),
                                     MEMBER(ssl, SSL_has_pending),
                                     MEMBER(ssl, SSL_key_update),
                                     MEMBER(bio, BIO_meth_new),
                                     MEMBER(bio, BIO_meth_set_write),
                                     MEMBER(bio, BIO_meth_set_read),
                                     MEMBER(bio, BIO_meth_set_ctrl),
                                     MEMBER(bio, BIO_new),
                                     MEMBER(bio, BIO_set_data),
                                     MEMBER(bio, BIO_get_data),
                                     MEMBER(bio, BIO_set_init),
                                     MEMBER(bio, BIO_set_flags),
                                     MEMBER(bio, BIO_clear_flags),
                                     MEMBER(ssl, ERR_clear_error)};

/* Numbers of those headers. */
enum {
    CTRL_MODE = 33,
    CTRL_READ_AHEAD = 41,
    CTRL_LEAST_VERSION = 123,
    MODE_PARTIAL_WRITE = 1,
    MODE_MOVING_BUFFER = 2,
    TLS_1_3 = 0x0304,
    ERROR_WANT_READ = 2,
    ERROR_WANT_WRITE = 3,
    ERROR_END = 6, /* the other end has closed */
    UPDATE_OURS = 0,
    BIO_CTRL_DO_FLUSH = 11,
    BIO_READS = 1,
    BIO_WRITES = 2,
    BIO_RETRY = 8,
    READ_BYTES = 128 << 10,     /* several records with one system call */
    BIO_OF_OURS = 127 | 0x0400, /* a type that no BIO of OpenSSL has */
};

/* RFC 8446, section 5.5: 2^24.5 records of a key of AES-GCM. */
static const uint64_t records_of_a_key = UINT64_C(1) << 23;

struct mri_tls {
    void *ssl;
    int fd;
    uint8_t key[MRI_KEY_BYTES];
    uint64_t records; /* sent with the present key */
    bool gone;        /* the socket has ended, or an error of TLS ended it */
};

static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;
static functions of; /* lock to write; these three do not change once they are set */
static void *context;
static void *socket_method;

/* ---- the socket, without SIGPIPE ---- */

static int bio_moved(void *bio, ssize_t n, int direction)
{
    of.bio.BIO_clear_flags(bio, BIO_READS | BIO_WRITES | BIO_RETRY);
    if (n < 0 && (errno == EAGAIN || errno == EWOULDBLOCK || errno == EINTR))
        of.bio.BIO_set_flags(bio, direction | BIO_RETRY);
    return (int)n;
}

static int bio_write(void *bio, const char *data, int bytes)
{
    const mri_tls *t = of.bio.BIO_get_data(bio);
    return bio_moved(bio, send(t->fd, data, (size_t)bytes, MSG_NOSIGNAL | MSG_DONTWAIT), BIO_WRITES);
}

static int bio_read(void *bio, char *data, int bytes)
{
    const mri_tls *t = of.bio.BIO_get_data(bio);
    return bio_moved(bio, recv(t->fd, data, (size_t)bytes, MSG_DONTWAIT), BIO_READS);
}

static long bio_control(void *bio, int what, long number, void *pointer)
{
    (void)bio;
    (void)number;
    (void)pointer;
    return what == BIO_CTRL_DO_FLUSH; /* nothing is buffered */
}

/* ---- the key ---- */

static unsigned give_key(const mri_tls *t, unsigned char *key, unsigned key_most)
{
    if (key_most < MRI_KEY_BYTES) return 0;
    memcpy(key, t->key, MRI_KEY_BYTES);
    return MRI_KEY_BYTES;
}

static unsigned key_of_caller(void *ssl, const char *hint, char *identity, unsigned identity_most,
                              unsigned char *key, unsigned key_most)
{
    static const char name[] = "millrace";
    (void)hint;
    if (identity_most < sizeof name) return 0;
    memcpy(identity, name, sizeof name);
    return give_key(of.ssl.SSL_get_ex_data(ssl, 0), key, key_most);
}

static unsigned key_of_called(void *ssl, const char *identity, unsigned char *key, unsigned key_most)
{
    (void)identity;
    return give_key(of.ssl.SSL_get_ex_data(ssl, 0), key, key_most);
}

/* ---- open, close ---- */

static int fill_locked(mr_error *err)
{
    static const char *const files[] = {"libssl.so.3", "libssl.so.1.1", NULL};
    const char *what;
    const int rc = mri_library_open(&of, files, symbols, MRI_ARRAY_COUNT(symbols), &what);
    if (rc == MR_ENOENT)
        return mr_error_set(
            err, MR_EUNSUPPORTED,
            "TLS needs OpenSSL's libssl, 3 or 1.1.1 (Debian and Ubuntu: apt install libssl3): %s", what);
    if (rc) return mr_error_set(err, MR_EUNSUPPORTED, "libssl has no %s: TLS needs OpenSSL 3 or 1.1.1", what);
    socket_method = of.bio.BIO_meth_new(BIO_OF_OURS, "socket of a rank");
    void *made = socket_method ? of.ctx.SSL_CTX_new(of.ctx.TLS_method()) : NULL;
    if (!made || !of.bio.BIO_meth_set_write(socket_method, bio_write) ||
        !of.bio.BIO_meth_set_read(socket_method, bio_read) ||
        !of.bio.BIO_meth_set_ctrl(socket_method, bio_control) ||
        of.ctx.SSL_CTX_ctrl(made, CTRL_LEAST_VERSION, TLS_1_3, NULL) != 1 ||
        !of.ctx.SSL_CTX_set_ciphersuites(made, "TLS_AES_128_GCM_SHA256:TLS_CHACHA20_POLY1305_SHA256") ||
        !of.ctx.SSL_CTX_set_num_tickets(made, 0)) {
        if (made) of.ctx.SSL_CTX_free(made);
        return mr_error_set(err, MR_EUNSUPPORTED, "libssl has no TLS 1.3: it needs OpenSSL 3 or 1.1.1");
    }
    (void)of.ctx.SSL_CTX_ctrl(made, CTRL_MODE, MODE_PARTIAL_WRITE | MODE_MOVING_BUFFER, NULL);
    (void)of.ctx.SSL_CTX_ctrl(made, CTRL_READ_AHEAD, 1, NULL);
    of.ctx.SSL_CTX_set_default_read_buffer_len(made, READ_BYTES);
    context = made;
    return MR_OK;
}

static int need_library(mr_error *err)
{
    mri_lock_global(&lock);
    const int rc = context ? MR_OK : fill_locked(err);
    pthread_mutex_unlock(&lock);
    return rc;
}

int mri_tls_wanted(bool *out, bool given, const mri_secret *secret, mr_error *err)
{
    const char *value = getenv("MILLRACE_TLS");
    *out = given || (value && strcmp(value, "1") == 0);
    if (value && value[0] && strcmp(value, "0") != 0 && strcmp(value, "1") != 0)
        return mr_error_set(err, MR_EINVAL, "MILLRACE_TLS is \"%s\": expected 0 or 1", value);
    if (*out && !secret->set)
        return mr_error_set(err, MR_EINVAL,
                            "TLS needs a secret of the run, which is its key: set MILLRACE_SECRET_FILE");
    return *out ? need_library(err) : MR_OK;
}

int mri_tls_open(mri_tls **out, int fd, bool calls, const uint8_t key[MRI_KEY_BYTES], mr_error *err)
{
    int rc = need_library(err);
    *out = NULL;
    if (rc) return rc;
    mri_tls *t = calloc(1, sizeof *t);
    void *bio = t ? of.bio.BIO_new(socket_method) : NULL;
    if (bio) t->ssl = of.ssl.SSL_new(context);
    if (!bio || !t->ssl || !of.ssl.SSL_set_ex_data(t->ssl, 0, t)) {
        mri_tls_close(t);
        return mr_error_set(err, MR_ENOMEM, "no memory for TLS");
    }
    t->fd = fd;
    memcpy(t->key, key, sizeof t->key);
    of.bio.BIO_set_data(bio, t);
    of.bio.BIO_set_init(bio, 1);
    of.ssl.SSL_set_bio(t->ssl, bio, bio);
    of.ssl.SSL_set_psk_client_callback(t->ssl, key_of_caller);
    of.ssl.SSL_set_psk_server_callback(t->ssl, key_of_called);
    (calls ? of.ssl.SSL_set_connect_state : of.ssl.SSL_set_accept_state)(t->ssl);
    *out = t;
    return MR_OK;
}

void mri_tls_close(mri_tls *t)
{
    if (!t) return;
    if (t->ssl) of.ssl.SSL_free(t->ssl);
    explicit_bzero(t->key, sizeof t->key);
    free(t);
}

/* ---- bytes ---- */

/* errno of a call of libssl that has failed; 0: the other end has closed. */
static int failure_of(mri_tls *t, int returned)
{
    switch (of.ssl.SSL_get_error(t->ssl, returned)) {
    case ERROR_WANT_READ:
    case ERROR_WANT_WRITE: return EAGAIN;
    case ERROR_END: return 0;
    default: t->gone = true; return EPROTO; /* no call may follow */
    }
}

int mri_tls_greet(mri_tls *t, short *events, const char **why)
{
    of.ssl.ERR_clear_error();
    errno = 0;
    const int done = of.ssl.SSL_do_handshake(t->ssl);
    const int cause = errno;
    if (done == 1) {
        explicit_bzero(t->key, sizeof t->key);
        return MR_OK;
    }
    const int error = of.ssl.SSL_get_error(t->ssl, done);
    *events = error == ERROR_WANT_WRITE ? POLLOUT : POLLIN;
    if (error == ERROR_WANT_READ || error == ERROR_WANT_WRITE) return MR_EAGAIN;
    t->gone = true;
    *why = cause == ECONNRESET || cause == EPIPE || error == ERROR_END
               ? "its connection ended"
               : "it does not answer with TLS and the run's secret; set MILLRACE_TLS to "
                 "1 for all ranks or for none";
    return MR_EPEER;
}

static bool renew_key(mri_tls *t)
{
    if (++t->records < records_of_a_key) return true;
    t->records = 0;
    return of.ssl.SSL_key_update(t->ssl, UPDATE_OURS) == 1;
}

typedef int mover(mri_tls *t, void *data, int bytes);

static int send_some(mri_tls *t, void *data, int bytes)
{
    const int n = of.ssl.SSL_write(t->ssl, data, bytes);
    if (n > 0 && !renew_key(t)) t->gone = true;
    return n;
}

static int receive_some(mri_tls *t, void *data, int bytes) { return of.ssl.SSL_read(t->ssl, data, bytes); }

static ssize_t move(mri_tls *t, const struct iovec *pieces, size_t count, mover *some)
{
    ssize_t moved = 0;
    if (t->gone) {
        errno = EPIPE;
        return -1;
    }
    of.ssl.ERR_clear_error();
    for (size_t k = 0; k < count; k++)
        for (size_t at = 0; at < pieces[k].iov_len;) {
            const size_t left = pieces[k].iov_len - at;
            const int n =
                some(t, (uint8_t *)pieces[k].iov_base + at, left < INT32_MAX ? (int)left : INT32_MAX);
            if (n <= 0) {
                const int failure = failure_of(t, n);
                if (moved) return moved;
                errno = failure;
                return failure ? -1 : 0;
            }
            at += (size_t)n;
            moved += n;
        }
    return moved;
}

ssize_t mri_tls_send(mri_tls *t, const struct iovec *pieces, size_t count)
{
    return move(t, pieces, count, send_some);
}

ssize_t mri_tls_receive(mri_tls *t, const struct iovec *pieces, size_t count)
{
    return move(t, pieces, count, receive_some);
}

bool mri_tls_has_more(const mri_tls *t) { return !t->gone && of.ssl.SSL_has_pending(t->ssl); }
