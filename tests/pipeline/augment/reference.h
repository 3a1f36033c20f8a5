/* tests/pipeline/augment/reference.h: what operations do to a whole picture, slow and obvious, in doubles
 * where they are not about whole numbers. Written from the papers and from what augment.h says. */
#ifndef MRT_AUGMENT_REFERENCE_H
#define MRT_AUGMENT_REFERENCE_H

#include "base/util.h"
#include "pipeline/augment/augment.h"

typedef struct mrt_ref {
    mr_image p;
    mri_sample_key key;
    uint32_t index; /* place of the operation in the specification */
} mrt_ref;

mri_philox mrt_ref_draw(const mrt_ref *r, uint32_t block);
/* A draw of an operation with a probability in its first word. */
bool mrt_ref_happens(const mrt_ref *r, double probability, uint32_t block, uint32_t word);
/* 0..255, halves up. */
uint8_t mrt_ref_clip(double v);

typedef enum mrt_ref_value { MRT_MEAN, MRT_ZERO, MRT_RANDOM } mrt_ref_value;

/* mean: per channel; NULL: the picture's own, one for all. */
void mrt_ref_erase(mrt_ref *r, double p, const double scale[2], const double ratio[2], mrt_ref_value value,
                   const uint8_t *mean);
void mrt_ref_cutout(mrt_ref *r, uint32_t side, mrt_ref_value value, const uint8_t *mean);

void mrt_ref_hue(mrt_ref *r, double most);
void mrt_ref_jitter(mrt_ref *r, double b, double c, double s, double h, double p);
void mrt_ref_gray(mrt_ref *r, double p);
void mrt_ref_invert(mrt_ref *r, double p);
void mrt_ref_solarize(mrt_ref *r, int threshold, double p);
void mrt_ref_posterize(mrt_ref *r, int bits, double p);
void mrt_ref_autocontrast(mrt_ref *r, double p);
void mrt_ref_equalize(mrt_ref *r, double p);

void mrt_ref_sharpness(mrt_ref *r, double lo, double hi, double p);
void mrt_ref_blur(mrt_ref *r, int kernel, double lo, double hi, double p);

/* How a map looks the picture up. fill: per channel, or NULL: black. */
typedef struct mrt_ref_look {
    bool nearest;
    const uint8_t *fill;
    bool moves_only; /* of policies what moves pixels */
} mrt_ref_look;

void mrt_ref_rotate(mrt_ref *r, double degrees, mrt_ref_look look);
/* most: of degrees, parts of the sides, shears in degrees. */
void mrt_ref_affine(mrt_ref *r, double degrees, const double move[2], const double scale[2],
                    const double shear[2], mrt_ref_look look);
void mrt_ref_randaugment(mrt_ref *r, uint32_t n, uint32_t level, mrt_ref_look look);
void mrt_ref_trivial(mrt_ref *r, mrt_ref_look look);

/* By a value that is given instead of drawn. */
void mrt_ref_scale_by(mr_image *p, double factor);
void mrt_ref_contrast_by(mr_image *p, double factor);
void mrt_ref_saturation_by(mr_image *p, double factor);
void mrt_ref_hue_by(mr_image *p, double turn);

#endif
