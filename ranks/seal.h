/* ranks/seal.h: how the two ends of a connection prove that they know the secret of the run, and tags on
 * their messages from then on. Private.
 *
 *   guest                                       host
 *     KNOCK      guest's nonce ──────────────►
 *                               ◄────────────── CHALLENGE  host's nonce
 *     PROOF      tag ────────────────────────►            the guest proves first: who only connects
 *                               ◄────────────── PROVED     gets no tag to guess secrets with
 *
 * A tag is HMAC-SHA-256 with the secret's key over a label, which names the direction, and both nonces. So no
 * tag is good on another connection or in the other direction. Each direction then has a key of its own, and
 * every message ends with a tag over its head, its data and its number: a message that is altered, repeated,
 * left out or put in another order does not fit.
 *
 * Bytes in, bytes out; no socket. Callers: link.c. */
#ifndef MRI_SEAL_H
#define MRI_SEAL_H

#include "ranks/secret.h"
#include "ranks/wire.h"

enum { MRI_SEAL_NONCE_BYTES = 16, MRI_SEAL_TAG_BYTES = 16 };

typedef enum mri_seal_state {
    MRI_SEAL_OPEN = 0, /* no secret: messages go as they are */
    MRI_SEAL_AT_KNOCK, /* the host waits for it, */
    MRI_SEAL_AT_PROOF,
    MRI_SEAL_AT_CHALLENGE, /* the guest */
    MRI_SEAL_AT_PROVED,
    MRI_SEAL_READY,
} mri_seal_state;

typedef struct mri_seal {
    const mri_secret *secret; /* lives longer; not used once it is ready */
    mri_seal_state state;
    uint8_t nonces[2 * MRI_SEAL_NONCE_BYTES]; /* guest's, host's */
    uint8_t in_key[MRI_KEY_BYTES], out_key[MRI_KEY_BYTES];
    uint64_t in_count, out_count; /* messages so far */
} mri_seal;

typedef struct mri_seal_word { /* of the proof */
    mri_wire_kind kind;
    uint32_t bytes;
    uint8_t data[MRI_KEY_BYTES];
} mri_seal_word;

/* secret NULL, or not set: the seal stays open. */
void mri_seal_host(mri_seal *s, const mri_secret *secret);
/* *first is to be said. False: there are no random bytes. */
bool mri_seal_guest(mri_seal *s, const mri_secret *secret, mri_seal_word *first);

typedef enum mri_seal_step {
    MRI_SEAL_GOES_ON = 0, /* say *reply, wait for more */
    MRI_SEAL_DONE,        /* ready; say *reply if it has a kind */
    MRI_SEAL_STRANGE,     /* this is no word of a proof */
    MRI_SEAL_WRONG,       /* it proves another secret */
} mri_seal_step;
mri_seal_step mri_seal_take(mri_seal *s, uint32_t kind, const void *data, size_t bytes, mri_seal_word *reply);

/* message: head and data, and space for a tag after them; close writes it, check compares it. Each call
 * counts one message of its direction. */
bool mri_seal_close(mri_seal *s, uint8_t *message, size_t bytes);
bool mri_seal_check(mri_seal *s, uint8_t *message, size_t bytes);

#endif
