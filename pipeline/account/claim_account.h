/* pipeline/account/claim_account.h: the waits of a reader before it had a chunk. Private.
 *
 *     asked ── no slot has room ── room: a buffer is missing ── claimed: at most the list of samples is */
#ifndef MRI_CLAIM_ACCOUNT_H
#define MRI_CLAIM_ACCOUNT_H

#include "pipeline/observe/causes.h"

typedef struct mri_claim_account {
    uint64_t asked_ns;
    uint64_t room_ns;   /* since then a slot has room; 0: none has */
    uint64_t buffer_ns; /* and since then a buffer is free; waiting for the list of samples counts as reading
                         */
} mri_claim_account;

static inline mri_claim_account mri_claim_begin(void)
{
    return (mri_claim_account){.asked_ns = mri_now_ns()};
}

/* About to wait. room: a slot has room; buffer: a chunk is free. */
static inline void mri_claim_wait(mri_claim_account *c, bool room, bool buffer)
{
    if (!room) c->room_ns = 0;
    else if (!c->room_ns) c->room_ns = mri_now_ns();
    if (!room || !buffer) c->buffer_ns = 0;
    else if (!c->buffer_ns) c->buffer_ns = mri_now_ns();
}

/* A chunk was claimed at now_ns. */
static inline mri_chunk_times mri_claim_end(const mri_claim_account *c, uint64_t now_ns)
{
    const uint64_t claimed = c->buffer_ns ? c->buffer_ns : now_ns;
    return (mri_chunk_times){
        .asked_ns = c->asked_ns, .room_ns = c->room_ns ? c->room_ns : claimed, .claimed_ns = claimed};
}

#endif
