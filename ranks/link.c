/* ranks/link.c: see link.h. */
#include "ranks/link.h"

#include <errno.h>
#include <netinet/tcp.h>
#include <sys/socket.h>
#include <unistd.h>

enum { LINK_FLAGS = SOCK_STREAM | SOCK_NONBLOCK | SOCK_CLOEXEC, BACKLOG = 1024 };

static void never_wait_for_more(int fd)
{
    const int yes = 1;
    (void)setsockopt(fd, IPPROTO_TCP, TCP_NODELAY, &yes, sizeof yes);
}

void mri_link_init(mri_link *l, int fd, uint32_t most)
{
    *l = MRI_LINK_NONE;
    l->fd = fd;
    l->most = most;
}

int mri_link_reserve(mri_link *l)
{
    const size_t bytes = MRI_WIRE_HEAD_BYTES + (size_t)l->most;
    l->in = malloc(bytes);
    l->out = malloc(2 * bytes);
    if (!l->in || !l->out) return MR_ENOMEM;
    l->in_room = bytes;
    l->out_room = 2 * bytes;
    return MR_OK;
}

int mri_link_release(mri_link *l)
{
    const int fd = l->fd;
    free(l->in);
    free(l->out);
    *l = MRI_LINK_NONE;
    return fd;
}

void mri_link_fini(mri_link *l)
{
    const int fd = mri_link_release(l);
    if (fd >= 0) close(fd);
}

int mri_link_connect(mri_link *l, const struct sockaddr *to, socklen_t bytes, uint32_t most)
{
    const int fd = socket(to->sa_family, LINK_FLAGS, 0);
    if (fd < 0) return errno;
    never_wait_for_more(fd);
    mri_link_init(l, fd, most);
    l->connecting = true;
    if (connect(fd, to, bytes) == 0 || errno == EINPROGRESS || errno == EINTR) return 0;
    const int rc = errno;
    mri_link_fini(l);
    return rc;
}

/* A connection to a port of this host on which nobody listens can get that very port as its own, and then it
 * talks to itself. */
static bool is_own_echo(int fd)
{
    struct sockaddr_storage own = {0}, peer = {0};
    socklen_t own_bytes = sizeof own, peer_bytes = sizeof peer;
    return getsockname(fd, (struct sockaddr *)&own, &own_bytes) == 0 &&
           getpeername(fd, (struct sockaddr *)&peer, &peer_bytes) == 0 && own_bytes == peer_bytes &&
           memcmp(&own, &peer, own_bytes) == 0;
}

int mri_link_connected(mri_link *l)
{
    int rc = 0;
    socklen_t bytes = sizeof rc;
    if (!l->connecting) return 0;
    if (getsockopt(l->fd, SOL_SOCKET, SO_ERROR, &rc, &bytes) != 0) return errno;
    if (rc) return rc;
    struct sockaddr_storage peer;
    socklen_t peer_bytes = sizeof peer;
    if (getpeername(l->fd, (struct sockaddr *)&peer, &peer_bytes) != 0)
        return errno == ENOTCONN ? EINPROGRESS : errno;
    if (is_own_echo(l->fd)) return ECONNREFUSED;
    l->connecting = false;
    mri_link_flush(l);
    return 0;
}

short mri_link_events(const mri_link *l)
{
    if (l->connecting) return POLLOUT;
    return (short)(POLLIN | (mri_link_is_flushed(l) ? 0 : POLLOUT));
}

static bool make_room(mri_link *l, size_t bytes)
{
    if (l->out_at == l->out_have) l->out_at = l->out_have = 0;
    if (l->out_room - l->out_have >= bytes) return true;
    const size_t kept = l->out_have - l->out_at;
    if (l->out_at) memmove(l->out, l->out + l->out_at, kept);
    l->out_at = 0;
    l->out_have = kept;
    if (l->out_room - kept >= bytes) return true;
    uint8_t *more = realloc(l->out, kept + bytes);
    if (!more) return false;
    l->out = more;
    l->out_room = kept + bytes;
    return true;
}

int mri_link_send(mri_link *l, mri_wire_kind kind, const void *data, size_t bytes)
{
    if (l->broken) return MR_OK;
    if (!make_room(l, MRI_WIRE_HEAD_BYTES + bytes)) return MR_ENOMEM;
    mri_wire_put_head(l->out + l->out_have, kind, (uint32_t)bytes);
    if (bytes) memcpy(l->out + l->out_have + MRI_WIRE_HEAD_BYTES, data, bytes);
    l->out_have += MRI_WIRE_HEAD_BYTES + bytes;
    mri_link_flush(l);
    return MR_OK;
}

void mri_link_flush(mri_link *l)
{
    while (!l->connecting && !mri_link_is_flushed(l)) {
        const ssize_t n =
            send(l->fd, l->out + l->out_at, l->out_have - l->out_at, MSG_NOSIGNAL | MSG_DONTWAIT);
        if (n > 0) l->out_at += (size_t)n;
        else if (errno == EAGAIN || errno == EWOULDBLOCK) return;
        else if (errno != EINTR) l->broken = true;
    }
}

/* Until `bytes` of the message are there. */
static int fill(mri_link *l, size_t bytes)
{
    if (l->in_room < bytes) {
        uint8_t *more = realloc(l->in, bytes);
        if (!more) return MR_ENOMEM;
        l->in = more;
        l->in_room = bytes;
    }
    while (l->in_have < bytes) {
        const ssize_t n = recv(l->fd, l->in + l->in_have, bytes - l->in_have, MSG_DONTWAIT);
        if (n > 0) l->in_have += (size_t)n;
        else if (n == 0) return MR_EEND;
        else if (errno == EAGAIN || errno == EWOULDBLOCK) return MR_EAGAIN;
        else if (errno != EINTR) return MR_EIO;
    }
    return MR_OK;
}

int mri_link_read(mri_link *l, mri_wire_head *head, const uint8_t **data)
{
    if (l->connecting) return MR_EAGAIN;
    int rc = l->in_have < MRI_WIRE_HEAD_BYTES ? fill(l, MRI_WIRE_HEAD_BYTES) : MR_OK;
    if (rc != MR_OK) return rc;
    if (!mri_wire_get_head(l->in, head) || head->bytes > l->most) return MR_EFORMAT;
    rc = fill(l, MRI_WIRE_HEAD_BYTES + (size_t)head->bytes);
    if (rc != MR_OK) return rc;
    *data = l->in + MRI_WIRE_HEAD_BYTES;
    l->in_have = 0;
    return MR_OK;
}

static int bound_socket(int *out, const struct sockaddr *at, socklen_t bytes)
{
    const int yes = 1, no = 0;
    const int fd = socket(at->sa_family, LINK_FLAGS, 0);
    if (fd < 0) return errno;
    (void)setsockopt(fd, SOL_SOCKET, SO_REUSEADDR, &yes, sizeof yes); /* after an earlier run of the job */
    if (at->sa_family == AF_INET6) (void)setsockopt(fd, IPPROTO_IPV6, IPV6_V6ONLY, &no, sizeof no);
    if (bind(fd, at, bytes) == 0 && listen(fd, BACKLOG) == 0) {
        *out = fd;
        return 0;
    }
    const int rc = errno;
    close(fd);
    return rc;
}

int mri_link_listen(int *out, mri_listen_at at, uint16_t *port)
{
    struct sockaddr_in v4 = {.sin_family = AF_INET, .sin_port = htons(*port)};
    struct sockaddr_in6 v6 = {.sin6_family = AF_INET6, .sin6_port = htons(*port)};
    v4.sin_addr.s_addr = htonl(at == MRI_LISTEN_LOOPBACK_4 ? INADDR_LOOPBACK : INADDR_ANY);
    v6.sin6_addr = at == MRI_LISTEN_LOOPBACK_6 ? in6addr_loopback : in6addr_any;
    int rc = at == MRI_LISTEN_LOOPBACK_4 ? EAFNOSUPPORT
                                         : bound_socket(out, (const struct sockaddr *)&v6, sizeof v6);
    if (at != MRI_LISTEN_LOOPBACK_6 && (rc == EAFNOSUPPORT || rc == EADDRNOTAVAIL)) /* a host without IPv6 */
        rc = bound_socket(out, (const struct sockaddr *)&v4, sizeof v4);
    if (rc) return rc;
    struct sockaddr_storage own;
    socklen_t bytes = sizeof own;
    mri_wire_seat seat;
    if (getsockname(*out, (struct sockaddr *)&own, &bytes) == 0 &&
        mri_wire_seat_from(&seat, (const struct sockaddr *)&own)) {
        *port = seat.port;
        return 0;
    }
    close(*out);
    return EAFNOSUPPORT;
}

int mri_link_accept(int listener, int *sys_errno)
{
    const int fd = accept4(listener, NULL, NULL, SOCK_NONBLOCK | SOCK_CLOEXEC);
    *sys_errno = 0;
    if (fd >= 0) {
        never_wait_for_more(fd);
        return fd;
    }
    if (errno == EMFILE || errno == ENFILE || errno == ENOBUFS || errno == ENOMEM || errno == EINVAL ||
        errno == EBADF)
        *sys_errno = errno;
    return -1;
}
