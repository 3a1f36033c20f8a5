/* ranks/carrier_tcp.c: a TCP connection as a carrier, with TLS where the run asks for it. */
#include <stdlib.h>
#include <sys/socket.h>
#include <unistd.h>

#include "ranks/carrier.h"
#include "ranks/tls.h"

typedef struct tcp_carrier {
    mri_carrier base;
    int fd;
    mri_tls *tls; /* NULL: plain */
} tcp_carrier;

static tcp_carrier *own(mri_carrier *c) { return (tcp_carrier *)c; }

static ssize_t send_plain(mri_carrier *c, const struct iovec *pieces, size_t count)
{
    const struct msghdr message = {.msg_iov = (struct iovec *)pieces, .msg_iovlen = count};
    return sendmsg(own(c)->fd, &message, MSG_NOSIGNAL | MSG_DONTWAIT);
}

static ssize_t receive_plain(mri_carrier *c, const struct iovec *pieces, size_t count)
{
    struct msghdr message = {.msg_iov = (struct iovec *)pieces, .msg_iovlen = count};
    return recvmsg(own(c)->fd, &message, MSG_DONTWAIT);
}

static ssize_t send_tls(mri_carrier *c, const struct iovec *pieces, size_t count)
{
    return mri_tls_send(own(c)->tls, pieces, count);
}

static ssize_t receive_tls(mri_carrier *c, const struct iovec *pieces, size_t count)
{
    return mri_tls_receive(own(c)->tls, pieces, count);
}

static unsigned can_plain(mri_carrier *c, unsigned wants)
{
    (void)c;
    (void)wants;
    return 0;
}

/* libssl may have read a whole record when only a part was requested: poll() does not see the rest. */
static unsigned can_tls(mri_carrier *c, unsigned wants)
{
    return wants & MRI_CARRIER_GETS && mri_tls_has_more(own(c)->tls) ? MRI_CARRIER_GETS : 0;
}

static bool listen_tcp(mri_carrier *c, unsigned wants, bool sleeps, struct pollfd *out)
{
    const int events = (wants & MRI_CARRIER_SENDS ? POLLOUT : 0) | (wants & MRI_CARRIER_GETS ? POLLIN : 0);
    (void)sleeps; /* the kernel wakes it */
    *out = (struct pollfd){.fd = own(c)->fd, .events = (short)events};
    return true;
}

static unsigned woken_tcp(mri_carrier *c, short seen)
{
    (void)c;
    return (seen & (POLLOUT | POLLERR | POLLHUP) ? MRI_CARRIER_SENDS : 0u) |
           (seen & (POLLIN | POLLERR | POLLHUP) ? MRI_CARRIER_GETS : 0u);
}

static void close_tcp(mri_carrier *c)
{
    mri_tls_close(own(c)->tls);
    close(own(c)->fd);
    free(c);
}

static const mri_carrier_ops plain = {.name = "tcp",
                                      .send = send_plain,
                                      .receive = receive_plain,
                                      .can = can_plain,
                                      .listen = listen_tcp,
                                      .woken = woken_tcp,
                                      .close = close_tcp};
static const mri_carrier_ops encrypted = {.name = "tcp",
                                          .send = send_tls,
                                          .receive = receive_tls,
                                          .can = can_tls,
                                          .listen = listen_tcp,
                                          .woken = woken_tcp,
                                          .close = close_tcp};

int mri_carrier_tcp_open(mri_carrier **out, int fd)
{
    tcp_carrier *c = calloc(1, sizeof *c);
    if (!c) {
        close(fd);
        return MR_ENOMEM;
    }
    c->base.ops = &plain;
    c->fd = fd;
    *out = &c->base;
    return MR_OK;
}

int mri_carrier_tcp_encrypt(mri_carrier *c, bool calls, const uint8_t key[MRI_KEY_BYTES], mr_error *err)
{
    const int rc = mri_tls_open(&own(c)->tls, own(c)->fd, calls, key, err);
    if (rc == MR_OK) c->ops = &encrypted;
    return rc;
}

int mri_carrier_tcp_greet(mri_carrier *c, struct pollfd *out, const char **why)
{
    short events = 0;
    const int rc = mri_tls_greet(own(c)->tls, &events, why);
    *out = (struct pollfd){.fd = own(c)->fd, .events = events};
    return rc;
}

bool mri_carrier_is_encrypted(const mri_carrier *c) { return c->ops == &encrypted; }
