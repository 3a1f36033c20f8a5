/* train/packed/packer.c: see packer.h. */
#include "train/packed/packer.h"

#include <stdlib.h>

#include "base/util.h"

int mri_packer_init(mri_packer *p, mr_exchange how, uint32_t size, mr_error *err)
{
    *p = (mri_packer){.how = how,
                      .size = size,
                      .send = calloc(size, sizeof *p->send),
                      .receive = calloc(size, sizeof *p->receive)};
    if (p->send && p->receive) return MR_OK;
    return mr_error_set(err, MR_ENOMEM, "no memory for an exchange of %u ranks", size);
}

void mri_packer_forget(mri_packer *p)
{
    for (uint32_t i = 0; i < p->count; i++) free(p->sent[i].residual);
    p->count = 0;
}

void mri_packer_fini(mri_packer *p)
{
    mri_packer_forget(p);
    free(p->sent);
    free(p->memory);
    free(p->send);
    free(p->receive);
    *p = (mri_packer){0};
}

static int no_memory(uint64_t bytes, mr_error *err)
{
    return mr_error_set(err, MR_ENOMEM, "no memory for what an exchange of fewer bits leaves out: %llu bytes",
                        (unsigned long long)bytes);
}

/* An entry of other floats is of other buckets: it begins anew. */
static int find_sent(mri_packer *p, uint64_t key, uint64_t floats, double **out, mr_error *err)
{
    uint32_t i = 0;
    while (i < p->count && p->sent[i].key != key) i++;
    if (i == p->count) {
        mri_packed *more = realloc(p->sent, (p->count + 1) * sizeof *more);
        if (!more) return no_memory((p->count + 1) * sizeof *more, err);
        p->sent = more;
        p->sent[p->count++] = (mri_packed){.key = key};
    }
    mri_packed *s = &p->sent[i];
    if (s->floats != floats) {
        free(s->residual);
        s->floats = 0;
        s->residual = calloc(floats ? (size_t)floats : 1, sizeof *s->residual);
        if (!s->residual) return no_memory(floats * sizeof *s->residual, err);
        s->floats = floats;
    }
    *out = s->residual;
    return MR_OK;
}

static uint64_t floats_of(const mr_piece *piece) { return piece->bytes / sizeof(float); }

/* Places in memory for the bytes sent (a slice once) and received. */
static int make_room(mri_packer *p, bool slices, const mr_piece *send, const mr_piece *receive, mr_error *err)
{
    size_t bytes = 0, at = 0, slice = 0;
    for (uint32_t r = 0; r < p->size; r++) {
        p->send[r].bytes = mri_pack_bytes(p->how, floats_of(&send[r]));
        p->receive[r].bytes = mri_pack_bytes(p->how, floats_of(&receive[r]));
        bytes += p->send[r].bytes + p->receive[r].bytes;
    }
    if (bytes > p->memory_bytes) {
        free(p->memory);
        p->memory = malloc(bytes);
        p->memory_bytes = p->memory ? bytes : 0;
        if (!p->memory) return no_memory(bytes, err);
    }
    for (uint32_t r = 0; r < p->size; r++) {
        p->send[r].data = p->memory + at;
        if (slices) slice = p->send[r].bytes ? p->send[r].bytes : slice;
        else at += p->send[r].bytes;
    }
    at += slice;
    for (uint32_t r = 0; r < p->size; r++) {
        p->receive[r].data = p->memory + at;
        at += p->receive[r].bytes;
    }
    return MR_OK;
}

static uint64_t sent_floats(const mri_packer *p, bool slices, const mr_piece *send)
{
    uint64_t floats = 0;
    for (uint32_t r = 0; r < p->size; r++)
        floats = slices ? mri_max_u64(floats, floats_of(&send[r])) : floats + floats_of(&send[r]);
    return floats;
}

static void pack_all(const mri_packer *p, bool slices, const mr_piece *send, double *residual)
{
    for (uint32_t r = 0; r < p->size; r++) {
        const uint64_t floats = floats_of(&send[r]);
        if (floats == 0) continue;
        mri_pack_floats(p->how, send[r].data, residual, floats, p->send[r].data);
        if (slices) { /* the same for all, and this rank reads it as the others do */
            mri_unpack_floats(p->how, p->send[r].data, floats, send[r].data);
            return;
        }
        residual += floats;
    }
}

int mri_packer_exchange(mri_packer *p, const mr_wire *wire, uint64_t key, bool slices, const mr_piece *send,
                        const mr_piece *receive, mr_error *err)
{
    double *residual = NULL;
    int rc = find_sent(p, key, sent_floats(p, slices, send), &residual, err);
    if (rc == MR_OK) rc = make_room(p, slices, send, receive, err);
    if (rc) return rc;
    pack_all(p, slices, send, residual);
    rc = wire->exchange(wire->context, p->send, p->receive, err);
    for (uint32_t r = 0; rc == MR_OK && r < p->size; r++)
        mri_unpack_floats(p->how, p->receive[r].data, floats_of(&receive[r]), receive[r].data);
    return rc;
}
