/* ranks/link.h: one TCP connection that carries whole messages of wire.h and never waits. Private.
 *
 * Takes a socket or an address, gives messages one by one and reads no byte past the last of them: when it
 * hands its socket on, nothing is lost. Whoever has several waits for all with poll(). Callers: meet, mesh,
 * pulse. A link belongs to one thread. */
#ifndef MRI_LINK_H
#define MRI_LINK_H

#include <poll.h>

#include "ranks/seal.h"

/* Why a link ends that nobody has proved the secret on. */
typedef enum mri_refusal {
    MRI_REFUSED_NOT = 0,
    MRI_REFUSED_NO_RANK,   /* its bytes are no message */
    MRI_REFUSED_VERSION,   /* of another version of millrace */
    MRI_REFUSED_NO_SECRET, /* it speaks without a proof */
    MRI_REFUSED_SECRET,    /* it has another secret */
    MRI_REFUSED_NEEDS_ONE, /* it has a secret, this run has no secret */
    MRI_REFUSED_ALTERED,   /* it has proved the secret; then a message came that does not fit */
    MRI_REFUSED_SILENT,    /* set by the owner: it did not say in time who it is */
    MRI_REFUSALS,
} mri_refusal;

typedef struct mri_link {
    int fd;          /* -1: none */
    bool connecting; /* until mri_link_connected(), and until both ends have proved the secret */
    bool reached;    /* while connecting: the other end is there */
    bool broken;     /* nothing more can be sent; what came before may still be read */
    uint32_t most;   /* bytes of a message that may come; the owner sets it as it learns who is there */
    uint8_t *in;     /* the message that is coming, head first */
    size_t in_have, in_room;
    uint8_t *out; /* [out_at, out_have) is still to be sent */
    size_t out_at, out_have, out_room;
    mri_seal seal;
    mri_refusal refusal; /* of MR_EFORMAT */
} mri_link;

#define MRI_LINK_NONE                                                                                        \
    (mri_link) { .fd = -1 }

/* fd is non-blocking, and the link's from here on. */
void mri_link_init(mri_link *l, int fd, uint32_t most);
/* The same for a connection that was accepted: mri_link_read() gives no message before the other end has
 * proved the secret. secret lives as long as the link; NULL or not set: no secret. */
void mri_link_host(mri_link *l, int fd, uint32_t most, const mri_secret *secret);
void mri_link_fini(mri_link *l); /* closes; again is harmless */
/* Memory for the largest message in, and some out: what must not fail later. */
int mri_link_reserve(mri_link *l);
/* The socket without its link, which is empty then. */
int mri_link_release(mri_link *l);

/* 0 or the errno: it cannot be reached, now or ever. secret: as above. */
int mri_link_connect(mri_link *l, const struct sockaddr *to, socklen_t bytes, uint32_t most,
                     const mri_secret *secret);
/* After poll() said so: 0, EINPROGRESS, or the errno. EPROTO: no rank of this version is there. EKEYREJECTED:
 * it has another secret. ENOKEY: it has no secret. */
int mri_link_connected(mri_link *l);
/* What such an errno means, in one of a few texts, or in buf. */
const char *mri_link_errno_text(int sys_errno, char *buf, size_t bytes);

/* What poll() is to wait for. */
short mri_link_events(const mri_link *l);
/* Put one message in line and send what goes. MR_OK or MR_ENOMEM; a connection that is gone shows when it is
 * read. */
int mri_link_send(mri_link *l, mri_wire_kind kind, const void *data, size_t bytes);
void mri_link_flush(mri_link *l);
static inline bool mri_link_is_flushed(const mri_link *l) { return l->broken || l->out_at == l->out_have; }

/* MR_OK: head and *data (until the next call) are a message. MR_EAGAIN: not yet. MR_EEND: the other side has
 * closed it. MR_EIO: it is broken. MR_EFORMAT: no rank, more than l->most, or no proof of the secret:
 * l->refusal says which. MR_ENOMEM. */
int mri_link_read(mri_link *l, mri_wire_head *head, const uint8_t **data);

typedef enum mri_listen_at { MRI_LISTEN_ALL, MRI_LISTEN_LOOPBACK_4, MRI_LISTEN_LOOPBACK_6 } mri_listen_at;
/* *out and *port (0: any that is free) or the errno. */
int mri_link_listen(int *out, mri_listen_at at, uint16_t *port);
/* The next connection, non-blocking; -1: none waits. *sys_errno: what makes accepting pointless, else 0. */
int mri_link_accept(int listener, int *sys_errno);

#endif
