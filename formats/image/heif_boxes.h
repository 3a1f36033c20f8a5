/* formats/image/heif_boxes.h: boxes of HEIC and AVIF files (ISO/IEC 14496-12). Private to heif_*.c.
 *
 *   size u32 | type u32 | body ...          size 1: u64 after the type; size 0: up to the end
 *
 * Any bytes are safe; nothing is copied. */
#ifndef MRI_HEIF_BOXES_H
#define MRI_HEIF_BOXES_H

#include "base/util.h"

enum { MRI_BOX_HEAD = 8, MRI_BOX_LONG_HEAD = 16, MRI_BOX_FULL_HEAD = 4 };

#define MRI_BOX_TYPE(a, b, c, d)                                                                             \
    ((uint32_t)(a) << 24 | (uint32_t)(b) << 16 | (uint32_t)(c) << 8 | (uint32_t)(d))

typedef struct mri_box {
    const uint8_t *body;
    size_t bytes; /* of the body */
    uint32_t type;
} mri_box;

typedef struct mri_boxes {
    const uint8_t *at;
    size_t left;
    bool cut; /* a box is longer than the remaining bytes */
} mri_boxes;

/* The next box; false at the end. */
static inline bool mri_box_next(mri_boxes *b, mri_box *out)
{
    if (b->left == 0) return false;
    b->cut = true;
    if (b->left < MRI_BOX_HEAD) return false;
    uint64_t size = mri_be32(b->at);
    size_t head = MRI_BOX_HEAD;
    if (size == 1) {
        if (b->left < MRI_BOX_LONG_HEAD) return false;
        size = (uint64_t)mri_be32(b->at + MRI_BOX_HEAD) << 32 | mri_be32(b->at + MRI_BOX_HEAD + 4);
        head = MRI_BOX_LONG_HEAD;
    } else if (size == 0) {
        size = b->left;
    }
    if (size < head || size > b->left) return false;
    *out = (mri_box){b->at + head, (size_t)size - head, mri_be32(b->at + 4)};
    b->at += size;
    b->left -= (size_t)size;
    b->cut = false;
    return true;
}

/* *cut is set if the boxes end within one. */
static inline bool mri_box_find(mri_boxes in, uint32_t type, mri_box *out, bool *cut)
{
    while (mri_box_next(&in, out))
        if (out->type == type) return true;
    *cut |= in.cut;
    return false;
}

/* The boxes in a box, after its first `skipped` bytes. */
static inline mri_boxes mri_boxes_in(const mri_box *b, size_t skipped)
{
    return b->bytes < skipped ? (mri_boxes){b->body, 0, false}
                              : (mri_boxes){b->body + skipped, b->bytes - skipped, false};
}

#endif
