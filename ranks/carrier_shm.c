/* ranks/carrier_shm.c: memory that two processes of a host share, as a carrier: a ring for each direction,
 * and a pair of sockets that wakes who sleeps and whose end shows that the other process is gone.
 *
 *   page 0      head of ring 0 | head of ring 1       each: the sender's line, the receiver's line
 *   page 1 ...  bytes of ring 0
 *   ...         bytes of ring 1                       the end that created the memory sends in ring 0
 *
 * A position counts all bytes ever written or read, so written - read is what waits in the ring. An end keeps
 * its own position in its own memory and only publishes it; of the other end's it believes no more than the
 * size of the ring allows.
 *
 * Who finds nothing to do sets its flag, looks again, and sleeps in poll() on its socket. Who publishes looks
 * at the other's flag afterwards. Both are sequentially consistent, so one of them sees the other. */
#include <errno.h>
#include <fcntl.h>
#include <stdatomic.h>
#include <stdlib.h>
#include <sys/mman.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/util.h"
#include "ranks/carrier.h"

#ifndef MFD_NOEXEC_SEAL
#define MFD_NOEXEC_SEAL 0x0008u
#endif

enum {
    LINE_BYTES = 64,
    DATA_AT = 4096,
    PARTS = 4, /* of a ring: as soon as one is copied, the other end may work on it */
};

typedef struct ring_head {
    _Alignas(LINE_BYTES) _Atomic uint64_t written; /* by the sender */
    _Atomic uint32_t sender_waits;
    _Alignas(LINE_BYTES) _Atomic uint64_t read; /* by the receiver */
    _Atomic uint32_t receiver_waits;
} ring_head;

_Static_assert(sizeof(ring_head) == 2 * LINE_BYTES, "a line for each end");
_Static_assert(ATOMIC_LLONG_LOCK_FREE == 2 && ATOMIC_INT_LOCK_FREE == 2, "two processes share no lock");

typedef struct ring {
    ring_head *head;
    uint8_t *data;
    uint64_t at; /* this end's position */
} ring;

typedef struct shm_carrier {
    mri_carrier base;
    void *memory;
    size_t memory_bytes, ring_bytes;
    ring out, in;
    int bell;
    bool ended; /* the other end has closed, or publishes invalid positions */
} shm_carrier;

static shm_carrier *own(mri_carrier *c) { return (shm_carrier *)c; }

/* ---- positions ---- */

/* Bytes between two positions; more than a ring are nonsense, and the end of the carrier. */
static size_t between(shm_carrier *s, uint64_t behind, uint64_t ahead)
{
    if (ahead - behind <= s->ring_bytes) return (size_t)(ahead - behind);
    s->ended = true;
    return 0;
}

static size_t readable(shm_carrier *s)
{
    return between(s, s->in.at, atomic_load_explicit(&s->in.head->written, memory_order_seq_cst));
}

static size_t room(shm_carrier *s)
{
    const uint64_t read = atomic_load_explicit(&s->out.head->read, memory_order_seq_cst);
    const size_t waiting = between(s, read, s->out.at);
    return s->ended ? 0 : s->ring_bytes - waiting;
}

/* A byte that is already there wakes as well, so a full socket is no failure. */
static void wake(const shm_carrier *s) { (void)!send(s->bell, "", 1, MSG_NOSIGNAL | MSG_DONTWAIT); }

static void wake_if(const shm_carrier *s, _Atomic uint32_t *waits)
{
    if (atomic_load(waits) && atomic_exchange(waits, 0)) wake(s);
}

static void publish_written(shm_carrier *s)
{
    atomic_store(&s->out.head->written, s->out.at);
    wake_if(s, &s->out.head->receiver_waits);
}

/* The sender is woken when there is room for many bytes. */
static void publish_read(shm_carrier *s)
{
    atomic_store(&s->in.head->read, s->in.at);
    if (readable(s) <= s->ring_bytes / 2) wake_if(s, &s->in.head->sender_waits);
}

/* ---- bytes ---- */

/* The largest run from `at` on that does not pass the end of the ring, nor a part of it. */
static size_t run_of(const shm_carrier *s, uint64_t at, size_t bytes)
{
    const size_t part = s->ring_bytes / PARTS;
    return (size_t)mri_min_u64(bytes, part - (size_t)(at % part));
}

static size_t write_piece(shm_carrier *s, const uint8_t *from, size_t bytes)
{
    size_t done = 0, left = (size_t)mri_min_u64(bytes, room(s));
    while (left) {
        const size_t n = run_of(s, s->out.at, left);
        memcpy(s->out.data + s->out.at % s->ring_bytes, from + done, n);
        s->out.at += n;
        done += n;
        left -= n;
        if (s->out.at % (s->ring_bytes / PARTS) == 0) publish_written(s);
        if (left == 0) left = (size_t)mri_min_u64(bytes - done, room(s));
    }
    return done;
}

static size_t read_piece(shm_carrier *s, uint8_t *to, size_t bytes)
{
    size_t done = 0, left = (size_t)mri_min_u64(bytes, readable(s));
    while (left) {
        const size_t n = run_of(s, s->in.at, left);
        memcpy(to + done, s->in.data + s->in.at % s->ring_bytes, n);
        s->in.at += n;
        done += n;
        left -= n;
        if (s->in.at % (s->ring_bytes / PARTS) == 0) publish_read(s);
        if (left == 0) left = (size_t)mri_min_u64(bytes - done, readable(s));
    }
    return done;
}

static ssize_t send_shm(mri_carrier *c, const struct iovec *pieces, size_t count)
{
    shm_carrier *s = own(c);
    size_t sent = 0;
    if (s->ended) {
        errno = EPIPE;
        return -1;
    }
    for (size_t k = 0; k < count; k++) {
        const size_t n = write_piece(s, pieces[k].iov_base, pieces[k].iov_len);
        sent += n;
        if (n < pieces[k].iov_len) break;
    }
    if (sent) {
        publish_written(s);
        return (ssize_t)sent;
    }
    errno = EAGAIN;
    return -1;
}

static ssize_t receive_shm(mri_carrier *c, const struct iovec *pieces, size_t count)
{
    shm_carrier *s = own(c);
    size_t got = 0;
    for (size_t k = 0; k < count; k++) {
        const size_t n = read_piece(s, pieces[k].iov_base, pieces[k].iov_len);
        got += n;
        if (n < pieces[k].iov_len) break;
    }
    if (got) {
        publish_read(s);
        return (ssize_t)got;
    }
    if (s->ended) return 0;
    errno = EAGAIN;
    return -1;
}

/* ---- waiting ---- */

static unsigned can_shm(mri_carrier *c, unsigned wants)
{
    shm_carrier *s = own(c);
    unsigned can = 0;
    if (wants & MRI_CARRIER_GETS && (readable(s) || s->ended)) can |= MRI_CARRIER_GETS;
    if (wants & MRI_CARRIER_SENDS && (room(s) >= s->ring_bytes / 2 || s->ended)) can |= MRI_CARRIER_SENDS;
    return can;
}

static bool listen_shm(mri_carrier *c, unsigned wants, bool sleeps, struct pollfd *out)
{
    shm_carrier *s = own(c);
    *out = (struct pollfd){.fd = s->bell, .events = POLLIN};
    if (sleeps && wants & MRI_CARRIER_GETS) atomic_store(&s->in.head->receiver_waits, 1);
    if (sleeps && wants & MRI_CARRIER_SENDS) atomic_store(&s->out.head->sender_waits, 1);
    return !can_shm(c, wants);
}

static unsigned woken_shm(mri_carrier *c, short revents)
{
    shm_carrier *s = own(c);
    uint8_t bells[LINE_BYTES];
    if (!revents) return 0;
    const ssize_t n = recv(s->bell, bells, sizeof bells, MSG_DONTWAIT);
    if (n == 0 || (n < 0 && errno != EAGAIN && errno != EINTR)) s->ended = true;
    return 0; /* can() knows */
}

/* ---- open, close ---- */

static void close_shm(mri_carrier *c)
{
    munmap(own(c)->memory, own(c)->memory_bytes);
    close(own(c)->bell);
    free(c);
}

static const mri_carrier_ops ops = {.name = "shm",
                                    .in_memory = true,
                                    .send = send_shm,
                                    .receive = receive_shm,
                                    .can = can_shm,
                                    .listen = listen_shm,
                                    .woken = woken_shm,
                                    .close = close_shm};

enum { SEALS = F_SEAL_SHRINK | F_SEAL_GROW | F_SEAL_SEAL };

/* All pages are had now: one that is missing later would end the process. */
int mri_shm_create(int *out, size_t ring_bytes)
{
    int fd = memfd_create("millrace", MFD_CLOEXEC | MFD_ALLOW_SEALING | MFD_NOEXEC_SEAL);
    if (fd < 0 && errno == EINVAL) fd = memfd_create("millrace", MFD_CLOEXEC | MFD_ALLOW_SEALING);
    if (fd < 0) return errno;
    int rc;
    do rc = fallocate(fd, 0, 0, (off_t)(DATA_AT + 2 * ring_bytes)) ? errno : 0;
    while (rc == EINTR);
    if (!rc && fcntl(fd, F_ADD_SEALS, SEALS)) rc = errno;
    if (rc) close(fd);
    else *out = fd;
    return rc;
}

/* Memory that its other owner can make smaller would end this process. */
static int check_memory(int fd, size_t bytes)
{
    struct stat is;
    const int seals = fcntl(fd, F_GET_SEALS);
    if (seals < 0 || fstat(fd, &is)) return errno;
    return (seals & F_SEAL_SHRINK) && is.st_size == (off_t)bytes ? 0 : EPROTO;
}

int mri_carrier_shm_open(mri_carrier **out, int memory, int bell, size_t ring_bytes, bool creator)
{
    const size_t bytes = DATA_AT + 2 * ring_bytes;
    const int rc = check_memory(memory, bytes);
    if (rc) return rc;
    shm_carrier *s = calloc(1, sizeof *s);
    if (!s) return ENOMEM;
    s->memory = mmap(NULL, bytes, PROT_READ | PROT_WRITE, MAP_SHARED, memory, 0);
    if (s->memory == MAP_FAILED) {
        const int failed = errno;
        free(s);
        return failed;
    }
    s->base.ops = &ops;
    s->memory_bytes = bytes;
    s->ring_bytes = ring_bytes;
    s->bell = bell;
    ring_head *heads = s->memory;
    uint8_t *data = (uint8_t *)s->memory + DATA_AT;
    s->out = (ring){.head = &heads[!creator], .data = data + (creator ? 0 : ring_bytes)};
    s->in = (ring){.head = &heads[creator], .data = data + (creator ? ring_bytes : 0)};
    *out = &s->base;
    return 0;
}
