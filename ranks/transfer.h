/* ranks/transfer.h: bytes between this rank and others, all at once, on one channel of a world. Private.
 *
 * Takes one socket for each other rank and the pulse that says when the world has ended. Every transfer
 * states what call it belongs to and its length, so ranks that do not make the same call find out. Any
 * failure ends the world. One thread at a time. Callers: world.c, wires.c. */
#ifndef MRI_TRANSFER_H
#define MRI_TRANSFER_H

#include <stdatomic.h>

#include "millrace/ranks.h"
#include "ranks/carrier.h"
#include "ranks/post/letters.h"
#include "ranks/pulse.h"

typedef enum mri_call {
    MRI_CALL_EXCHANGE = 1,
    MRI_CALL_BROADCAST,
    MRI_CALL_GATHER,
    MRI_CALL_BARRIER
} mri_call;

enum { MRI_TRANSFER_HEAD_BYTES = 24 };

typedef struct mri_transfer_head {
    uint32_t call, channel, round; /* round: of the transfers of one call */
    uint64_t number;               /* of the call on its channel */
    uint64_t bytes;                /* that follow */
} mri_transfer_head;
void mri_transfer_put_head(uint8_t out[MRI_TRANSFER_HEAD_BYTES], const mri_transfer_head *head);
/* False: these bytes are not a head. The numbers may have any value. */
bool mri_transfer_get_head(const uint8_t in[MRI_TRANSFER_HEAD_BYTES], mri_transfer_head *out);

typedef struct mri_channel mri_channel;

/* fds[rank], -1 for the own one: the channel's from here on, also when this fails. hosts and pulse live
 * longer. */
int mri_channel_open(mri_channel **out, uint32_t id, uint32_t rank, uint32_t size,
                     const char (*hosts)[MRI_WIRE_HOST_BYTES], const int *fds, mri_pulse *pulse,
                     mr_error *err);
void mri_channel_close(mri_channel *c);
/* Before the first call: TLS with each other rank, keyed by the seals of their pulse lanes. All ranks at
 * once. */
int mri_channel_encrypt(mri_channel *c, const mri_seal *seals, mr_error *err);
void mri_channel_traffic(const mri_channel *c, uint64_t *sent, uint64_t *received);

/* Bytes to and from rank r go through this carrier, the channel's from here on, once its transfers are over.
 * Returns the one before, which is the caller's. */
mri_carrier *mri_channel_carry(mri_channel *c, uint32_t r, mri_carrier *by);
/* Calls and traffic are counted from 0 again. All ranks at the same call. */
void mri_channel_begin_anew(mri_channel *c);

/* A wait for carriers in memory looks at them for this long, in turns with other threads of the core, before
 * it sleeps; 0: it sleeps at once. */
void mri_channel_spin(mri_channel *c, uint64_t spin_ns);

/* From the next call on bytes go by messages of this post, which is the channel's from here on, also when
 * this fails: MR_ENOMEM. All ranks at the same call. */
int mri_channel_post(mri_channel *c, mri_post *post, mr_error *err);
/* Sent bytes arrive if the world has not failed. Before mri_channel_close(), while the pulse runs. */
void mri_channel_close_letters(mri_channel *c);

/* A call is begin, any number of transfers while they succeed, end with what came of it. */
int mri_channel_begin(mri_channel *c, mri_call call, mr_error *err);
int mri_channel_end(mri_channel *c, int rc);

/* By rank; the own piece, and pieces of no bytes, are ignored. A piece of no bytes with this as its data is
 * sent and waited for all the same. */
extern char mri_transfer_token;
/* round: the same on both sides. */
int mri_channel_transfer(mri_channel *c, uint32_t round, const mr_world_piece *send,
                         const mr_world_piece *receive, mr_error *err);
/* When the first byte of each rank came in the newest transfer; 0: none did. The caller's thread. */
void mri_channel_arrivals(const mri_channel *c, uint64_t *first_ns);
/* Pieces for one's own use, all of nothing: send, then receive. */
void mri_channel_pieces(mri_channel *c, mr_world_piece **send, mr_world_piece **receive);

#endif
