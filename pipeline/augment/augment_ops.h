/* pipeline/augment/augment_ops.h: a parsed augmentation: what the parser makes and the runner runs.
 * Private. */
#ifndef MRI_AUGMENT_OPS_H
#define MRI_AUGMENT_OPS_H

#include "millrace/pipeline.h"
#include "pipeline/pixels/resample.h"

#define MRI_AUGMENT_MAX_OPS  32
#define MRI_AUGMENT_MAX_SIDE 32768

typedef enum mri_op_kind {
    MRI_OP_RRC,
    MRI_OP_RESIZE,
    MRI_OP_CENTER,
    MRI_OP_PADCROP,
    MRI_OP_SHIFT,
    MRI_OP_FLIP,
    MRI_OP_BRIGHTNESS,
    MRI_OP_CONTRAST,
    MRI_OP_SATURATION,
    MRI_OP_STANDARDISE,
    MRI_OP_NORMALISE,
} mri_op_kind;

/* A decimal fraction as it was written, over another one: exact, and printed as it came. */
typedef struct mri_number {
    uint32_t digits, digits_below; /* value: (digits / 10^places) / (digits_below / 10^places_below) */
    uint8_t places, places_below;
    bool fraction; /* written with a slash */
} mri_number;

typedef struct mri_op {
    mri_op_kind kind;
    uint32_t index;         /* place in the specification: what draws depend on */
    uint32_t height, width; /* 0: none given (PADCROP) */
    bool shorter;           /* RESIZE: width is the length of the shorter side */
    mri_filter filter;      /* RRC, RESIZE */
    uint32_t pad;           /* PADCROP */
    double lo, hi; /* RRC: area. CONTRAST, SATURATION: factor. BRIGHTNESS: lo is D. SHIFT: fractions x, y */
    double ratio_lo, ratio_hi, log_ratio_lo, log_ratio_hi; /* RRC */
    double covers; /* RRC: the least part of a box's area that a crop covers; 0: crops do not ask for boxes */
} mri_op;

struct mr_augment {
    uint32_t op_count;
    mri_op op[2 * MRI_AUGMENT_MAX_OPS]; /* for this mode: in evaluation random operations are out, rrc is two
                                         */
    bool standardise;
    float mean[4], std[4];
    char text[6144]; /* 32 operations of at most 170 characters, and room */
};

/* Natural exponential and logarithm from additions, multiplications and divisions only, which IEEE 754
 * defines to the bit: libm differs from system to system. Relative error below 1e-13 for |x| <= 16. */
double mri_exp(double x);
double mri_log(double x);

/* Sides after resize(N): the shorter one N, the other in proportion, rounded down, at least 1. */
void mri_shorter_side(uint32_t n, uint32_t in_h, uint32_t in_w, uint64_t *out_h, uint64_t *out_w);

#endif
