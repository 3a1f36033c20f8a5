/* tools/commands/synth_picture.h: the pictures of `millrace synth`: a shape on a background, both drawn anew
 * for every picture. */
#ifndef TOOLS_SYNTH_PICTURE_H
#define TOOLS_SYNTH_PICTURE_H

#include "millrace/pipeline.h"

enum { SYNTH_SHAPES = 10, SYNTH_COLOURS = 10, SYNTH_CLASSES_MOST = SYNTH_SHAPES * SYNTH_COLOURS };

/* "disc"; with more classes than shapes "red-disc". Returns buf. */
const char *synth_class_name(uint32_t class_idx, uint32_t class_count, char *buf, size_t buf_bytes);

/* A picture depends on these members and nothing else. */
typedef struct synth_key {
    uint64_t seed;
    uint32_t class_idx, class_count;
    uint32_t part; /* 0 train, 1 test */
    uint32_t number;
} synth_key;

/* Side length of a picture, from low to high. */
uint32_t synth_side(const synth_key *key, uint32_t low, uint32_t high);
/* channels 1 or 3. MR_OK or MR_ENOMEM; the caller frees with mr_image_free(). */
int synth_draw(const synth_key *key, uint32_t side, uint32_t channels, mr_image *out);

#endif
