/* pipeline/augment/augment.h: one sample from encoded bytes to its final pixels, inside the pipeline.
 * Private to the pipeline.
 *
 * Takes a specification (text), then samples: a picture's value, its boxes, the sample's key, and the address
 * for its pixels. Gives finished pixels at that address, the numbers that belong to them, and the map from
 * the stored picture to them (geometry.h); all of it depends on these alone (I2). Callers: loaders and the
 * stages, fields and the converter, through this header and geometry.h; the rest of this folder is its own.
 *
 * The names and functions of the operations are a table (op.h): a new one is a row in its
 * family, op_*.c, and nothing else knows its name.
 *
 * A worker owns one scratch and runs samples through it; in the steady state nothing is allocated. */
#ifndef MRI_AUGMENT_H
#define MRI_AUGMENT_H

#include "pipeline/decode/decoders.h"

/* Buffers of one worker: decoder, intermediate pictures. They grow to the largest sample seen and stay. */
typedef struct mri_scratch mri_scratch;
int mri_scratch_create(mri_scratch **out);
void mri_scratch_destroy(mri_scratch *s); /* accepts NULL */
void mri_scratch_drop(mri_scratch *s);    /* its buffers; it can be used as before */
mri_decoder *mri_scratch_decoder(mri_scratch *s);
/* Upper bound of the memory of one scratch for this augmentation under these limits, when no picture is
 * larger than `seen` and results have out_pixels. */
uint64_t mri_scratch_bound_bytes(const mr_augment *a, const mr_decode_config *decode, mri_extremes seen,
                                 uint64_t out_pixels);

/* Is the first operation that needs pixels a resize? */
bool mri_augment_resamples_first(const mr_augment *a);

/* Boxes of a sample that random crops depend on, as in MR_ROLE_BOXES. */
typedef struct mri_boxes {
    const mr_value *value;
    bool in_pixels;
} mri_boxes;

/* Does a crop depend on boxes? Never in evaluation. */
bool mri_augment_takes_boxes(const mr_augment *a);

/* The key of a sample's draws, together with the operation's place in the specification. */
typedef struct mri_sample_key {
    uint64_t seed, epoch, sample;
} mri_sample_key;

/* One side of a result and the same side of the upright picture. Result pixel i covers scale * i + offset to
 * scale * (i + 1) + offset of it, in pixels; a mirrored one has scale < 0.
 *
 *   begin..end   result pixels that show the picture or its repeated edge; the others show nothing. After
 *                several operations: a pixel shows the same as the pixel under its centre
 *   first..last  centres of the outermost pixels seen: an edge that is repeated (shift) lies there, be it the
 *                picture's or a crop's
 *   from..to     the visible part of the upright picture; from >= to: nothing */
typedef struct mri_geometry_side {
    double scale, offset;
    double first, last;
    double from, to;
    uint32_t begin, end;
} mri_geometry_side;

/* A map that does not keep x and y apart (warp.h): a turn. The picture it is done to has sides x, y, as those
 * of mri_geometry, of the turn before it, or of the upright picture. The centre of result pixel (i, j) lies
 * at (xx * i + xy * j + x0, yx * i + yy * j + y0) of it. */
typedef struct mri_geometry_turn {
    mri_geometry_side x, y;
    uint32_t w, h; /* of that picture, and of the result */
    double xx, xy, x0, yx, yy, y0;
} mri_geometry_turn;

#define MRI_GEOMETRY_TURNS 16

/* Where the picture in the batch lies in the stored one: the map that geometry.h applies to boxes and masks.
 * Stored: before EXIF orientation; upright: after it. x and y are of the last turn's result; without turns,
 * of the upright picture. */
typedef struct mri_geometry {
    uint32_t stored_w, stored_h, orientation; /* orientation: EXIF 1..8 as applied; 1 when it is ignored */
    uint32_t out_w, out_h;
    mri_geometry_side x, y;
    uint32_t turns;
    mri_geometry_turn turn[MRI_GEOMETRY_TURNS]; /* the first done first; the others are not set */
} mri_geometry;

/* Decode value (a picture file, COEF or PIXELS), augment, and write out_h * out_w * channels uint8 NHWC at
 * dst, straight and nothing after it. affine: two floats (factor, offset) written when the specification
 * standardises, else untouched; may be NULL then. channels 1 or 3. boxes: NULL (none), or what
 * mri_boxes_check() let pass. geometry: NULL, or where to say which part of the picture dst is. Same
 * arguments, same bytes: on any thread, at any time, with any scratch. MR_EFORMAT, MR_EUNSUPPORTED,
 * MR_ELIMIT: the sample is bad, err says why; MR_EINVAL: the picture comes out with another size; dst is then
 * undefined. */
int mri_augment_run(const mr_augment *a, mri_scratch *s, const mr_value *value,
                    const mr_decode_config *decode, uint32_t channels, mri_sample_key key, uint32_t out_h,
                    uint32_t out_w, uint8_t *dst, float *affine, const mri_boxes *boxes,
                    mri_geometry *geometry, mr_error *err);

/* Set MR_EINVAL: a picture comes out as w x h, the pictures of the batch as batch_w x batch_h. No fault of
 * the sample: the run ends whatever becomes of bad ones. */
int mri_augment_sizes_differ(const mr_augment *a, uint64_t w, uint64_t h, uint32_t batch_w, uint32_t batch_h,
                             mr_error *err);

/* Two finished pictures of a batch. */
typedef struct mri_mixed {
    uint8_t *a, *b;
    uint32_t height, width, channels;
} mri_mixed;

/* Are pictures of a batch mixed with each other? Never in evaluation. */
bool mri_augment_mixes(const mr_augment *a);
/* Mix a pair as the key of its first sample says. Gives the share that each then has of the other, 0 to 1; 0:
 * they are as they were. Where nothing mixes it is not to be called. */
float mri_augment_mix(const mr_augment *a, mri_sample_key key, const mri_mixed *m);

#endif
