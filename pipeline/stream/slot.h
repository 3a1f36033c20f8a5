/* pipeline/stream/slot.h: host memory of whole batches. Private.
 *
 *   slot   | pixels, uint8 NHWC | labels i32 | ids u64 | affine 2 x f32 | labels2 i32, share2 f32 |
 *          | rows of fields |
 *
 * Each of these begins at a multiple of MR_DEVICE_ALIGN. */
#ifndef MRI_SLOT_H
#define MRI_SLOT_H

#include "pipeline/fields/fields.h"

/* One host batch. Workers write it at disjoint places; it is read after `done`. */
typedef struct mri_slot {
    uint64_t batch;
    uint32_t first; /* place in the global batch of the first sample here */
    uint32_t count;
    uint32_t remaining; /* ring's lock: samples not yet in place */
    uint32_t at_work;   /* the ring's: chunks of it that workers have */
    bool done;          /* ring's lock */
    uint32_t counted;   /* with done: samples with a label */
    uint8_t *pixels;    /* NULL where the source has no pictures */
    int32_t *labels;
    float *affine;    /* NULL where the augmentation does not standardise */
    int32_t *labels2; /* NULL where the augmentation does not mix, like share2 */
    float *share2;
    uint64_t *ids;
    mri_rows rows[MR_LOADER_MAX_FIELDS]; /* widths: set by mri_slot_close() */
} mri_slot;

/* How a slot is laid out; fixed. */
typedef struct mri_slot_layout {
    uint32_t batch;      /* samples at most */
    size_t sample_bytes; /* pixels of one sample; 0: the source has no pictures */
    bool uses_affine, mixes;
    const mri_fields *fields;
} mri_slot_layout;

typedef struct mri_slots {
    mri_slot_layout layout;
    mri_slot *slot;
    uint32_t count;
    mr_device *device; /* whose pinned memory it is; NULL: plain */
    void *memory;
} mri_slots;

uint64_t mri_slot_bytes(const mri_slot_layout *layout); /* saturated */
/* Of it, for one sample: what goes to a device beside pixels, label and fields. */
uint64_t mri_slot_numbers_bytes(const mri_slot_layout *layout);

/* device: NULL, or whom the memory is pinned for. On failure mri_slots_fini() is still to be called. */
int mri_slots_init(mri_slots *s, const mri_slot_layout *layout, uint32_t count, mr_device *device,
                   mr_error *err);
void mri_slots_fini(mri_slots *s); /* accepts a zeroed one */

/* Fill a place that has no sample: zeros, label -1. */
void mri_slot_blank(const mri_slot_layout *layout, mri_slot *slot, uint32_t i);
/* All samples are in place: fix the widths of rows. One thread. */
void mri_slot_close(const mri_slot_layout *layout, mri_slot *slot);
/* Samples with a label. */
uint32_t mri_slot_labelled_count(const mri_slot *slot);

#endif
