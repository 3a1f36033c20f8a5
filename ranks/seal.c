/* ranks/seal.c: see seal.h. */
#include "ranks/seal.h"

enum { LABEL_BYTES = 16 };

static bool tag_of(const mri_seal *s, const char *label, uint8_t out[MRI_KEY_BYTES])
{
    uint8_t text[LABEL_BYTES + sizeof s->nonces] = {0};
    memcpy(text, label, strlen(label));
    memcpy(text + LABEL_BYTES, s->nonces, sizeof s->nonces);
    return mri_secret_tag(s->secret->key, text, sizeof text, out);
}

static bool take_keys(mri_seal *s, uint8_t of_guest[MRI_KEY_BYTES], uint8_t of_host[MRI_KEY_BYTES])
{
    s->in_count = s->out_count = 0;
    if (!tag_of(s, "guest says", of_guest) || !tag_of(s, "host says", of_host)) return false;
    s->state = MRI_SEAL_READY;
    return true;
}

void mri_seal_host(mri_seal *s, const mri_secret *secret)
{
    memset(s, 0, sizeof *s);
    if (!secret || !secret->set) return;
    s->secret = secret;
    s->state = MRI_SEAL_AT_KNOCK;
}

bool mri_seal_guest(mri_seal *s, const mri_secret *secret, mri_seal_word *first)
{
    memset(s, 0, sizeof *s);
    first->bytes = 0;
    if (!secret || !secret->set) return true;
    s->secret = secret;
    s->state = MRI_SEAL_AT_CHALLENGE;
    if (!mri_secret_draw(s->nonces, MRI_SEAL_NONCE_BYTES)) return false;
    first->kind = MRI_WIRE_KNOCK;
    first->bytes = MRI_SEAL_NONCE_BYTES;
    memcpy(first->data, s->nonces, MRI_SEAL_NONCE_BYTES);
    return true;
}

/* ---- the host ---- */

static mri_seal_step take_knock(mri_seal *s, const void *nonce, mri_seal_word *reply)
{
    uint8_t *own = s->nonces + MRI_SEAL_NONCE_BYTES;
    memcpy(s->nonces, nonce, MRI_SEAL_NONCE_BYTES);
    if (!mri_secret_draw(own, MRI_SEAL_NONCE_BYTES)) return MRI_SEAL_STRANGE;
    reply->kind = MRI_WIRE_CHALLENGE;
    reply->bytes = MRI_SEAL_NONCE_BYTES;
    memcpy(reply->data, own, MRI_SEAL_NONCE_BYTES);
    s->state = MRI_SEAL_AT_PROOF;
    return MRI_SEAL_GOES_ON;
}

static mri_seal_step take_proof(mri_seal *s, const void *proof, mri_seal_word *reply)
{
    uint8_t expected[MRI_KEY_BYTES];
    if (!tag_of(s, "guest proves", expected) || !mri_secret_equal(expected, proof, sizeof expected))
        return MRI_SEAL_WRONG;
    reply->kind = MRI_WIRE_PROVED;
    reply->bytes = MRI_KEY_BYTES;
    if (!tag_of(s, "host proves", reply->data) || !take_keys(s, s->in_key, s->out_key))
        return MRI_SEAL_STRANGE;
    return MRI_SEAL_DONE;
}

/* ---- the guest ---- */

static mri_seal_step take_challenge(mri_seal *s, const void *nonce, mri_seal_word *reply)
{
    memcpy(s->nonces + MRI_SEAL_NONCE_BYTES, nonce, MRI_SEAL_NONCE_BYTES);
    reply->kind = MRI_WIRE_PROOF;
    reply->bytes = MRI_KEY_BYTES;
    s->state = MRI_SEAL_AT_PROVED;
    return tag_of(s, "guest proves", reply->data) ? MRI_SEAL_GOES_ON : MRI_SEAL_STRANGE;
}

static mri_seal_step take_proved(mri_seal *s, const void *proof)
{
    uint8_t expected[MRI_KEY_BYTES];
    if (!tag_of(s, "host proves", expected) || !mri_secret_equal(expected, proof, sizeof expected))
        return MRI_SEAL_WRONG;
    return take_keys(s, s->out_key, s->in_key) ? MRI_SEAL_DONE : MRI_SEAL_STRANGE;
}

mri_seal_step mri_seal_take(mri_seal *s, uint32_t kind, const void *data, size_t bytes, mri_seal_word *reply)
{
    reply->bytes = 0;
    if (s->state == MRI_SEAL_AT_KNOCK && kind == MRI_WIRE_KNOCK && bytes == MRI_SEAL_NONCE_BYTES)
        return take_knock(s, data, reply);
    if (s->state == MRI_SEAL_AT_PROOF && kind == MRI_WIRE_PROOF && bytes == MRI_KEY_BYTES)
        return take_proof(s, data, reply);
    if (s->state == MRI_SEAL_AT_CHALLENGE && kind == MRI_WIRE_CHALLENGE && bytes == MRI_SEAL_NONCE_BYTES)
        return take_challenge(s, data, reply);
    if (s->state == MRI_SEAL_AT_PROVED && kind == MRI_WIRE_PROVED && bytes == MRI_KEY_BYTES)
        return take_proved(s, data);
    return MRI_SEAL_STRANGE;
}

/* ---- messages ---- */

/* The place of the tag holds the message's number while its tag is computed. */
static bool tag_message(const uint8_t key[MRI_KEY_BYTES], uint64_t number, uint8_t *message, size_t bytes,
                        uint8_t out[MRI_KEY_BYTES])
{
    mri_put_le64(message + bytes, number);
    return mri_secret_tag(key, message, bytes + 8, out);
}

bool mri_seal_close(mri_seal *s, uint8_t *message, size_t bytes)
{
    uint8_t tag[MRI_KEY_BYTES];
    const bool made = tag_message(s->out_key, s->out_count++, message, bytes, tag);
    memcpy(message + bytes, tag, MRI_SEAL_TAG_BYTES);
    return made;
}

bool mri_seal_check(mri_seal *s, uint8_t *message, size_t bytes)
{
    uint8_t tag[MRI_KEY_BYTES], found[MRI_SEAL_TAG_BYTES];
    memcpy(found, message + bytes, sizeof found);
    return tag_message(s->in_key, s->in_count++, message, bytes, tag) &&
           mri_secret_equal(tag, found, sizeof found);
}
