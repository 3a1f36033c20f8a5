/* pipeline/augment/frame.h: the picture while the operations run, and the steps that they apply to it.
 * Private to this room.
 *
 * The picture is at first encoded. A first operation that resamples takes its result straight from there, at
 * its size; any other one makes the decoder give a view of its pixels; center takes a view of its window
 * only. From then on operations replace the view by another: of the decoder's buffer, of one of two work
 * buffers, at last of dst. Few steps copy:
 *
 *   - A flip is a mark, folded into the next copy or resize. It commutes with the operations that paint, so
 *     flips that follow are folded in as well, up to the next one that touches the picture as it is seen.
 *   - The last operation that moves pixels to another picture writes to dst; operations after it that paint
 *     or touch work in place there. */
#ifndef MRI_AUGMENT_FRAME_H
#define MRI_AUGMENT_FRAME_H

#include "pipeline/augment/geometry.h"
#include "pipeline/augment/op.h"
#include "pipeline/decode/decoders.h"

/* Pictures between operations may be larger than the one that was decoded, up to this many pixels. */
#define MRI_BETWEEN_PIXELS ((uint64_t)4 << 20)

struct mri_scratch {
    mri_decoder decoder;
    mri_buffer work[2];
};

struct mri_frame {
    const mr_augment *a;
    mri_scratch *s;
    const mr_decode_config *decode;
    mri_sample_key key;
    uint32_t out_h, out_w, at; /* at: the operation being run */
    uint8_t *dst;
    uint64_t most_pixels;       /* of a picture in between */
    const mri_picture *picture; /* not decoded yet; then NULL */
    mri_view v; /* the picture so far: a part of a whole of full_w x full_h, from (part_x, part_y) */
    uint32_t full_w, full_h, part_x, part_y;
    bool mirrored;          /* picture or v stands for its mirror image */
    uint64_t flips_done;    /* bit k: operation k was folded in ahead of its turn */
    mri_geometry *geometry; /* of the picture so far, without `mirrored`; or NULL, then boxes too */
    const mri_boxes *boxes; /* or NULL */
    mr_error *err;
};

/* ---- draws ----
 * philox4x32 with key mix64(mix64(seed) + 64 * index + block) and counter (sample, epoch), where index is the
 * operation's place in the specification, and block counts the tries of rrc and is 0 elsewhere. An operation
 * has 64 blocks; further draws continue at index + 32, where no operation is. Draws depend on nothing else;
 * only crops that request boxes also use the sample's boxes. */
enum { MRI_DRAW_BLOCKS = 64 };
mri_philox mri_draw(mri_sample_key key, uint32_t index, uint32_t block);

/* From lo to hi by a word of a draw. */
static inline double mri_between(double lo, double hi, uint32_t word)
{
    return lo + (hi - lo) * (word * (1.0 / 4294967296.0));
}

/* Yes with this probability, by a word of a draw. 1: always, 0: never. */
static inline bool mri_happens(double probability, uint32_t word)
{
    return word * (1.0 / 4294967296.0) < probability;
}

/* Where the middle `part` of a side begins; before it where it is longer. */
static inline int64_t mri_centred(uint64_t side, uint32_t part) { return ((int64_t)side - part) >> 1; }

/* ---- another picture ---- */

/* The picture becomes its width x height window at (x, y). `next`: the operation that comes then. */
int mri_frame_window(mri_frame *f, uint32_t next, int64_t x, int64_t y, uint32_t width, uint32_t height,
                     mri_outside outside);
/* Turn the frame into interleaved pixels in a buffer of its own, with no mirror pending; the picture stays
 * the same. */
int mri_frame_whole(mri_frame *f, uint32_t next);
/* Its pixels, where they may be written. */
int mri_frame_writable(mri_frame *f, uint8_t **pixels);
/* The same with no mirror pending. */
int mri_frame_upright(mri_frame *f, uint8_t **pixels);

/* A second buffer of the picture's size. */
int mri_frame_spare(mri_frame *f, uint8_t **out);

/* The pixel that the device makes zero, or nearly: the mean of normalise(), rounded, within 0..255; 0 where
 * there is no normalise(). With standardise() the mean of all values of these pixels, the picture's. */
void mri_frame_mean(const mri_frame *f, const uint8_t *pixels, uint8_t out[4]);

/* The picture through a map (warp.h), in place, geometry with it. */
int mri_frame_warp(mri_frame *f, uint8_t *pixels, const mri_warp *w, mri_look look);

/* For operations that make their result themselves: where it goes, for width x height pixels, and whether to
 * mirror it, for the flips that follow up to `next` and behind are taken in. Then mri_frame_replace() says it
 * is there. */
int mri_frame_target(mri_frame *f, uint32_t next, uint64_t width, uint64_t height, bool *mirror,
                     uint8_t **out);
void mri_frame_replace(mri_frame *f, const uint8_t *pixels, uint32_t width, uint32_t height);

#endif
