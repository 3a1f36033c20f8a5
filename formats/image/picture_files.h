/* formats/image/picture_files.h: kinds of picture files besides JPEG and PNG, and the endings of all of them.
 * Private.
 *
 * Takes a name's ending, or the first bytes of a file. Gives the kind. Content decides the kind; an
 * ending only says which files to look at. Every source that chooses files by their names asks here. */
#ifndef MRI_PICTURE_FILES_H
#define MRI_PICTURE_FILES_H

#include "base/util.h"
#include "millrace/formats.h"

enum {
    MRI_PICTURE_ENDING_BYTES = 8, /* of a buffer for any ending, with its NUL */
    MRI_PICTURE_SNIFF_BYTES = 32, /* of a file: enough for mr_image_sniff() */
};

/* The kind of picture whose files have this ending ("jpg" of "a.jpg", in either case); 0: no picture that is
 * decoded. */
mr_type mri_picture_ending(const char *ending, size_t bytes);
/* The ending a new file of this kind gets: "jpg", "png", "gif", ...; NULL: no kind of picture file. */
const char *mri_picture_ending_of(mr_type type);
/* The k-th ending, in order of preference where names differ by their endings alone; NULL: there are no
 * more. */
const char *mri_picture_ending_at(size_t k);
/* "JPEG", "GIF", ... for messages; NULL: no kind of picture file. */
const char *mri_picture_kind_name(mr_type type);

/* ---- the first bytes ---- */

/* MR_TYPE_GIF, MR_TYPE_BMP, MR_TYPE_WEBP, MR_TYPE_TIFF, or 0. */
mr_type mri_other_sniff(const uint8_t *p, size_t bytes);

/* Header of a file of that kind; *out has orientation 1 before. MR_EFORMAT, MR_EUNSUPPORTED: err says why. */
int mri_other_header(mr_type type, const uint8_t *p, size_t bytes, mr_image_header *out, mr_error *err);

#endif
