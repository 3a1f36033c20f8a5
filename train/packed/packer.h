/* train/packed/packer.h: the sums of a group over a wire in fewer bits (pack.h), with a residual for every
 * piece that this process sends. Private to train/run/ and tests.
 *
 * Of a sum (kernels/host/host_wire.h) both exchanges are packed: the nodes that a rank sends, and its
 * slice of the sum. It keeps that slice as the others read it, so all ranks continue from the same bits. A
 * rank's own share of its own slice is never packed. */
#ifndef MRI_PACKER_H
#define MRI_PACKER_H

#include "millrace/kernels.h"
#include "train/packed/pack.h"

/* The message of one exchange, the same in every step. */
typedef struct mri_packed {
    uint64_t key, floats;
    double *residual;
} mri_packed;

typedef struct mri_packer {
    mr_exchange how;
    uint32_t size; /* ranks */
    mri_packed *sent;
    uint32_t count;
    uint8_t *memory; /* grows with the largest exchange */
    size_t memory_bytes;
    mr_piece *send, *receive; /* of the packed exchange */
} mri_packer;

/* On failure fini is still to be called. */
int mri_packer_init(mri_packer *p, mr_exchange how, uint32_t size, mr_error *err);
void mri_packer_fini(mri_packer *p); /* accepts a zeroed one */
/* Residuals are zero again. No exchange may be under way. */
void mri_packer_forget(mri_packer *p);
/* As mr_wire.exchange() of `wire`, for pieces that are floats. key: the same in every step, different from
 * the key of every other exchange of a step; slices: send is one slice for all, and becomes the values that
 * they read. */
int mri_packer_exchange(mri_packer *p, const mr_wire *wire, uint64_t key, bool slices, const mr_piece *send,
                        const mr_piece *receive, mr_error *err);

#endif
