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

void mri_link_host(mri_link *l, int fd, uint32_t most, const mri_secret *secret)
{
    mri_link_init(l, fd, most);
    mri_seal_host(&l->seal, secret);
}

int mri_link_reserve(mri_link *l)
{
    const size_t bytes = MRI_WIRE_HEAD_BYTES + (size_t)l->most + MRI_SEAL_TAG_BYTES;
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

int mri_link_connect(mri_link *l, const struct sockaddr *to, socklen_t bytes, uint32_t most,
                     const mri_secret *secret)
{
    const int fd = socket(to->sa_family, LINK_FLAGS, 0);
    if (fd < 0) return errno;
    never_wait_for_more(fd);
    mri_link_init(l, fd, most);
    l->seal.secret = secret;
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

/* 0: it is there. */
static int look_whether_reached(const mri_link *l)
{
    int rc = 0;
    socklen_t bytes = sizeof rc;
    if (getsockopt(l->fd, SOL_SOCKET, SO_ERROR, &rc, &bytes) != 0) return errno;
    if (rc) return rc;
    struct sockaddr_storage peer;
    socklen_t peer_bytes = sizeof peer;
    if (getpeername(l->fd, (struct sockaddr *)&peer, &peer_bytes) != 0)
        return errno == ENOTCONN ? EINPROGRESS : errno;
    return is_own_echo(l->fd) ? ECONNREFUSED : 0;
}

short mri_link_events(const mri_link *l)
{
    if (l->connecting && !l->reached) return POLLOUT;
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
    const bool sealed = l->seal.state == MRI_SEAL_READY;
    const size_t tag = sealed ? MRI_SEAL_TAG_BYTES : 0;
    if (l->broken) return MR_OK;
    if (!make_room(l, MRI_WIRE_HEAD_BYTES + bytes + tag)) return MR_ENOMEM;
    uint8_t *message = l->out + l->out_have;
    mri_wire_put_head(message, kind, (uint32_t)(bytes + tag));
    if (bytes) memcpy(message + MRI_WIRE_HEAD_BYTES, data, bytes);
    if (sealed && !mri_seal_close(&l->seal, message, MRI_WIRE_HEAD_BYTES + bytes)) return MR_ENOMEM;
    l->out_have += MRI_WIRE_HEAD_BYTES + bytes + tag;
    mri_link_flush(l);
    return MR_OK;
}

void mri_link_flush(mri_link *l)
{
    while ((!l->connecting || l->reached) && !mri_link_is_flushed(l)) {
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

static int refuse(mri_link *l, mri_refusal why)
{
    l->refusal = why;
    return MR_EFORMAT;
}

/* One message as it is on the wire. */
static int read_bare(mri_link *l, mri_wire_head *head, uint8_t **data)
{
    const uint32_t tag = l->seal.state == MRI_SEAL_READY ? MRI_SEAL_TAG_BYTES : 0;
    int rc = l->in_have < MRI_WIRE_HEAD_BYTES ? fill(l, MRI_WIRE_HEAD_BYTES) : MR_OK;
    if (rc != MR_OK) return rc;
    if (!mri_wire_get_head(l->in, head) || head->bytes > l->most + tag)
        return refuse(l, tag ? MRI_REFUSED_ALTERED : MRI_REFUSED_NO_RANK);
    rc = fill(l, MRI_WIRE_HEAD_BYTES + (size_t)head->bytes);
    if (rc != MR_OK) return rc;
    *data = l->in + MRI_WIRE_HEAD_BYTES;
    l->in_have = 0;
    return MR_OK;
}

/* ---- the proof ---- */

static const struct refusal {
    int code;
    const char *said; /* to the one that is refused: not proved, so nobody ends by it */
} refusals[MRI_REFUSALS] = {
    [MRI_REFUSED_VERSION] = {MR_EUNSUPPORTED, "another version of millrace meets there"},
    [MRI_REFUSED_NO_SECRET] = {MR_ENOENT, "the ranks there have a secret, and this process does not: give it "
                                          "their MILLRACE_SECRET_FILE or MILLRACE_SECRET"},
    [MRI_REFUSED_SECRET] = {MR_EINVAL, "the ranks there have another secret"},
    [MRI_REFUSED_NEEDS_ONE] = {MR_EEXIST, "the ranks there have no secret, and this process has one"},
};

/* And tell it. */
static int refuse_aloud(mri_link *l, mri_refusal why)
{
    uint8_t out[MRI_WIRE_SMALL_BYTES];
    (void)mri_link_send(l, MRI_WIRE_OTHER, out,
                        mri_wire_put_reason(out, refusals[why].code, refusals[why].said));
    (void)shutdown(l->fd, SHUT_WR);
    return refuse(l, why);
}

/* Of the host: MR_OK while the other end may yet prove the secret. */
static int hear_proof(mri_link *l, const mri_wire_head *head, const uint8_t *data)
{
    mri_seal_word reply;
    if (head->version != MRI_WIRE_VERSION) return refuse_aloud(l, MRI_REFUSED_VERSION);
    const mri_seal_step step = mri_seal_take(&l->seal, head->kind, data, head->bytes, &reply);
    if (step == MRI_SEAL_WRONG) return refuse_aloud(l, MRI_REFUSED_SECRET);
    if (step == MRI_SEAL_STRANGE) return refuse_aloud(l, MRI_REFUSED_NO_SECRET);
    /* the last word of the proof has no tag yet */
    const mri_seal_state state = l->seal.state;
    l->seal.state = MRI_SEAL_AT_PROOF;
    const int rc = mri_link_send(l, reply.kind, reply.data, reply.bytes);
    l->seal.state = state;
    return rc;
}

static int open_message(mri_link *l, mri_wire_head *head)
{
    if (head->bytes < MRI_SEAL_TAG_BYTES) return refuse(l, MRI_REFUSED_ALTERED);
    head->bytes -= MRI_SEAL_TAG_BYTES;
    return mri_seal_check(&l->seal, l->in, MRI_WIRE_HEAD_BYTES + (size_t)head->bytes)
               ? MR_OK
               : refuse(l, MRI_REFUSED_ALTERED);
}

int mri_link_read(mri_link *l, mri_wire_head *head, const uint8_t **data)
{
    uint8_t *bare;
    int rc = l->connecting ? MR_EAGAIN : MR_OK;
    while (rc == MR_OK) {
        rc = read_bare(l, head, &bare);
        if (rc) break;
        *data = bare;
        if (l->seal.state == MRI_SEAL_READY) return open_message(l, head);
        if (l->seal.state == MRI_SEAL_OPEN)
            return head->kind == MRI_WIRE_KNOCK ? refuse_aloud(l, MRI_REFUSED_NEEDS_ONE) : MR_OK;
        rc = hear_proof(l, head, bare);
    }
    return rc;
}

/* Of the guest: why the host refuses it, as an errno. */
static int errno_of_refusal(const uint8_t *data, size_t bytes)
{
    char text[MRI_WIRE_TEXT_BYTES];
    int code;
    if (!mri_wire_get_reason(data, bytes, &code, text)) return EPROTO;
    if (code == refusals[MRI_REFUSED_SECRET].code) return EKEYREJECTED;
    return code == refusals[MRI_REFUSED_NEEDS_ONE].code ? ENOKEY : EPROTO;
}

static int prove(mri_link *l)
{
    mri_link_flush(l);
    for (;;) {
        mri_wire_head head;
        mri_seal_word reply;
        uint8_t *data;
        const int rc = read_bare(l, &head, &data);
        if (rc == MR_EAGAIN) return EINPROGRESS;
        if (rc == MR_ENOMEM) return ENOMEM;
        if (rc) return rc == MR_EFORMAT ? EPROTO : ECONNRESET;
        if (head.kind == MRI_WIRE_OTHER) return errno_of_refusal(data, head.bytes);
        if (head.version != MRI_WIRE_VERSION) return EPROTO;
        const mri_seal_step step = mri_seal_take(&l->seal, head.kind, data, head.bytes, &reply);
        if (step == MRI_SEAL_WRONG) return EKEYREJECTED;
        if (step == MRI_SEAL_STRANGE) return EPROTO;
        if (step == MRI_SEAL_DONE) return 0;
        if (mri_link_send(l, reply.kind, reply.data, reply.bytes) != MR_OK) return ENOMEM;
    }
}

int mri_link_connected(mri_link *l)
{
    mri_seal_word first;
    int rc = l->connecting && !l->reached ? look_whether_reached(l) : 0;
    if (rc || !l->connecting) return rc;
    if (!l->reached) {
        l->reached = true;
        if (!mri_seal_guest(&l->seal, l->seal.secret, &first)) return EAGAIN;
        if (first.bytes && mri_link_send(l, first.kind, first.data, first.bytes) != MR_OK) return ENOMEM;
    }
    rc = l->seal.state == MRI_SEAL_OPEN ? 0 : prove(l);
    if (rc) return rc;
    l->connecting = false;
    mri_link_flush(l);
    return 0;
}

const char *mri_link_errno_text(int sys_errno, char *buf, size_t bytes)
{
    if (sys_errno == EPROTO) return "no process of this version of millrace listens there";
    if (sys_errno == EKEYREJECTED)
        return "who listens there has another secret (MILLRACE_SECRET_FILE, MILLRACE_SECRET)";
    if (sys_errno == ENOKEY) return "who listens there has no secret, and this process has one";
    return strerror_r(sys_errno, buf, bytes);
}

/* ---- listening ---- */

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
