/* ranks/carrier.h: how bytes get to one other rank and back. Private.
 *
 * A carrier is a stream of bytes in both directions that never waits. transfer.c knows this table only, so
 * another wire is another table and an open function. A carrier belongs to the thread that makes the call.
 *
 *   carrier_tcp.c  a TCP connection, plain or with TLS
 *   carrier_shm.c  memory that two processes of a host share
 *
 * To wait for several carriers: ask each for can(); if none can do anything, call listen() with `sleeps` and
 * poll() its descriptors; then ask each for woken(). */
#ifndef MRI_CARRIER_H
#define MRI_CARRIER_H

#include <poll.h>
#include <sys/types.h>
#include <sys/uio.h>

#include "ranks/secret.h"

/* Sets of directions. */
enum { MRI_CARRIER_SENDS = 1, MRI_CARRIER_GETS = 2 };

typedef struct mri_carrier mri_carrier;

typedef struct mri_carrier_ops {
    const char *name; /* of the wire */
    bool in_memory;   /* can() sees all that comes */
    /* As sendmsg() and recvmsg() of a socket that does not block: bytes, 0 at the end of what comes, or -1
     * and errno. Before anything is sent again after EAGAIN, its first bytes must be the same. */
    ssize_t (*send)(mri_carrier *c, const struct iovec *pieces, size_t count);
    ssize_t (*receive)(mri_carrier *c, const struct iovec *pieces, size_t count);
    /* Which of the wanted directions go on at once, as far as it is known without asking the kernel. */
    unsigned (*can)(mri_carrier *c, unsigned wants);
    /* Write to *out what poll() shall wait for. sleeps: the other end is asked to wake this one. Returns
     * false when a wanted direction goes on already, and poll() must not wait. */
    bool (*listen)(mri_carrier *c, unsigned wants, bool sleeps, struct pollfd *out);
    /* The directions to try after poll(). */
    unsigned (*woken)(mri_carrier *c, short revents);
    void (*close)(mri_carrier *c);
} mri_carrier_ops;

/* The first member of every carrier. */
struct mri_carrier {
    const mri_carrier_ops *ops;
};

static inline void mri_carrier_close(mri_carrier *c)
{
    if (c) c->ops->close(c);
}

/* ---- TCP ---- */

/* fd is connected and does not block. It is the carrier's from here on, also when this fails: MR_ENOMEM. */
int mri_carrier_tcp_open(mri_carrier **out, int fd);
/* Before the first byte: TLS with this key. MR_EUNSUPPORTED: libssl is missing or has no TLS 1.3. */
int mri_carrier_tcp_encrypt(mri_carrier *c, bool calls, const uint8_t key[MRI_KEY_BYTES], mr_error *err);
/* As mri_tls_greet(); *out is what to poll for. */
int mri_carrier_tcp_greet(mri_carrier *c, struct pollfd *out, const char **why);
bool mri_carrier_is_encrypted(const mri_carrier *c);

/* ---- shared memory ---- */

/* Memory with two rings of ring_bytes, a power of two and at least 4096. *out is a descriptor that goes to
 * both ends. 0, or the errno: the system gives none. */
int mri_shm_create(int *out, size_t ring_bytes);
/* One end of it. memory is only read from; bell is one end of a pair of stream sockets that do not block, and
 * the carrier's when this returns 0. creator: true at one end, false at the other. Else the errno; EPROTO:
 * the memory is no such memory. */
int mri_carrier_shm_open(mri_carrier **out, int memory, int bell, size_t ring_bytes, bool creator);

#endif
