/* formats/image/heif_coded.h: the largest picture that a HEIC or AVIF file makes a decoder prepare. Private.
 *
 * The size that a file shows (heif_layout.h) is a property next to the coded data. The data have sizes of
 * their own, and a decoder takes memory by these: a file of 1 KB that shows 32 x 32 pixels can contain a
 * picture of 16,384 x 16,384. They are:
 *
 *   ispe                       stated size of each coded or derived picture
 *   hvcC, items hvc1           sequence parameter sets of HEVC (ITU-T H.265, 7.3.2.2)
 *   av1C, items av01           sequence headers of AV1 (5.5)
 *   items grid, iovl           the size of their canvas (ISO/IEC 23008-12, 6.6.2)
 *
 * Items are found by iinf (types) and iloc (places in the file or in idat). Whether an item belongs to the
 * shown picture is not examined: libheif may decode any of them. */
#ifndef MRI_HEIF_CODED_H
#define MRI_HEIF_CODED_H

#include "base/util.h"

/* Pixels of the largest one; 0: none was found. UINT64_MAX: the lists of items overlap without end, which no
 * writer does. Any bytes are safe; the time is bounded. */
uint64_t mri_heif_coded_pixels(const uint8_t *p, size_t bytes);

#endif
