/* formats/image/exif.c: orientation from EXIF: a little TIFF file whose first directory holds it (tag 0x0112,
 * a SHORT; some programs write a LONG).
 *
 *   "II*\0" or "MM\0*" | offset of the directory | ... | entry count | 12 bytes an entry: tag, type, count,
 *   value | ...
 *
 * EXIF is advice, not content: a broken or unreachable entry counts as absent. */
#include "formats/image/exif.h"

enum { SHORT = 3, LONG = 4 }; /* of the TIFF specification */

static uint32_t tiff16(const uint8_t *p, bool big) { return big ? mri_be16(p) : mri_le16(p); }
static uint32_t tiff32(const uint8_t *p, bool big) { return big ? mri_be32(p) : mri_le32(p); }

uint32_t mri_exif_orientation(const uint8_t *tiff, size_t bytes)
{
    if (bytes < 8) return 1;
    const bool big = tiff[0] == 'M';
    if (memcmp(tiff, big ? "MM\0*" : "II*\0", 4) != 0) return 1;
    const size_t directory = tiff32(tiff + 4, big);
    if (directory > bytes || bytes - directory < 2) return 1;
    const uint32_t entries = tiff16(tiff + directory, big);
    for (size_t k = 0; k < entries; k++) {
        const size_t at = directory + 2 + 12 * k;
        if (at > bytes || bytes - at < 12) return 1;
        if (tiff16(tiff + at, big) != 0x0112) continue;
        const uint32_t type = tiff16(tiff + at + 2, big);
        if ((type != SHORT && type != LONG) || tiff32(tiff + at + 4, big) != 1) return 1;
        const uint32_t value = type == SHORT ? tiff16(tiff + at + 8, big) : tiff32(tiff + at + 8, big);
        return value >= 1 && value <= 8 ? value : 1;
    }
    return 1;
}

uint32_t mri_exif_app1(const uint8_t *body, size_t bytes)
{
    if (bytes <= 6 || memcmp(body, "Exif\0\0", 6) != 0) return 0;
    return mri_exif_orientation(body + 6, bytes - 6);
}
