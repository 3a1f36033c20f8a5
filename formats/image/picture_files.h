/* formats/image/picture_files.h: the endings of picture files' names. Private.
 *
 *   takes     a name's ending, or a kind of picture
 *   gives     the other one. Content decides the kind of a file (mr_image_sniff()); the ending decides which
 *             files are looked at
 *   callers   every source that chooses files by their names */
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

#endif
