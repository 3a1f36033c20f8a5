/* run/synth/synth_picture.h: a shape on a background, both drawn anew for every picture.
 *
 * The room synth/
 *   takes      settings and a folder
 *   gives      a data set of such pictures (millrace/synth.h)
 *   callers    the public header */
#ifndef MRI_SYNTH_PICTURE_H
#define MRI_SYNTH_PICTURE_H

#include "millrace/pipeline.h"

enum {
    MRI_SYNTH_SHAPES = 10,
    MRI_SYNTH_COLOURS = 10,
    MRI_SYNTH_CLASSES_MOST = MRI_SYNTH_SHAPES * MRI_SYNTH_COLOURS
};

/* "disc"; with more classes than shapes "red-disc". Returns buf. */
const char *mri_synth_class_name(uint32_t class_idx, uint32_t class_count, char *buf, size_t buf_bytes);

/* A picture depends on these members and nothing else. */
typedef struct mri_synth_key {
    uint64_t seed;
    uint32_t class_idx, class_count;
    uint32_t part; /* 0 train, 1 test */
    uint32_t number;
} mri_synth_key;

/* Side length of a picture, from low to high. */
uint32_t mri_synth_side(const mri_synth_key *key, uint32_t low, uint32_t high);
/* channels 1 or 3. MR_OK or MR_ENOMEM; the caller frees with mr_image_free(). */
int mri_synth_draw(const mri_synth_key *key, uint32_t side, uint32_t channels, mr_image *out);

#endif
