/* formats/image/heif_layout.h: size of the picture that a HEIC or AVIF file shows. Private.
 *
 *   ftyp brand ... brands | meta  pitm: the item that is shown
 *                         |       iprp  ipco: properties | ipma: which of them each item has, in order
 *                         | mdat  coded pictures
 *
 * ISO/IEC 14496-12 (boxes), 23008-12 (items and their properties). Decoders apply the cut (clap) and the
 * turns (irot) themselves, so the size is that after both, and the orientation of EXIF does not count. */
#ifndef MRI_HEIF_LAYOUT_H
#define MRI_HEIF_LAYOUT_H

#include "base/util.h"
#include "millrace/formats.h"

typedef struct mri_heif_layout {
    uint32_t width, height; /* as it is shown */
    uint32_t channels;      /* 1, 3; of colour, without alpha */
    uint32_t bit_depth;
} mri_heif_layout;

/* Coded by HEVC, by AV1. */
bool mri_heic_is(const uint8_t *p, size_t bytes);
bool mri_avif_is(const uint8_t *p, size_t bytes);

/* Any bytes are safe. Does not look whether the coded picture is all there. MR_EFORMAT, MR_EUNSUPPORTED: err
 * says why; name: HEIC or AVIF, for it. */
int mri_heif_layout_parse(mri_heif_layout *out, const char *name, const uint8_t *p, size_t bytes,
                          mr_error *err);

#endif
