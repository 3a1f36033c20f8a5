/* formats/image/gif_layout.h: where the first picture of a GIF lies in its file. Private.
 *
 *   GIF89a | screen: w, h, flags | colours | blocks of extensions ... | 2C frame: x, y, w, h, flags | colours
 * | code size | blocks of codes, each with its length in front, the last one empty
 *
 * The picture is the screen, made larger where the first frame leaves it. Later frames are not looked at. */
#ifndef MRI_GIF_LAYOUT_H
#define MRI_GIF_LAYOUT_H

#include "base/util.h"
#include "millrace/formats.h"

typedef struct mri_gif_layout {
    uint32_t width, height;          /* of the picture */
    uint32_t x, y, frame_w, frame_h; /* of the first frame in it */
    bool interlaced;
    const uint8_t *colours; /* three bytes each; colour_count 0: none, an index is a gray value */
    uint32_t colour_count;
    int background;     /* index of pixels that the frame leaves free: the transparent one, else 0 */
    unsigned code_bits; /* 1 to 8 */
    size_t data;        /* offset of the first block of codes */
} mri_gif_layout;

bool mri_gif_is(const uint8_t *p, size_t bytes);

/* Any bytes are safe. MR_EFORMAT: err names the fault and its byte. */
int mri_gif_layout_parse(mri_gif_layout *out, const uint8_t *p, size_t bytes, mr_error *err);

#endif
