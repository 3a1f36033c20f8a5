/* formats/mix/mix_file.h: the text that names the data sets of a mix and their shares. Private.
 *
 *   millrace mix 1
 *   0.7 photos.mrec
 *   0.3 drawn by hand
 *
 * Each line after the first names a data set: a number, blanks, and a path relative to the folder of this
 * file or an address on a server. Blanks inside a path belong to it, blanks at the ends of a line do not.
 * Empty lines and lines that begin with # are skipped; lines end with LF or CRLF. */
#ifndef MRI_MIX_FILE_H
#define MRI_MIX_FILE_H

#include "millrace/base.h"

enum { MRI_MIX_MOST = 1024 }; /* sets: a share of one of them is ten parts of MRI_MIXTURE_PARTS */

typedef struct mri_mix_line {
    const char *path; /* as it stands there */
    double share;     /* of all samples: the shares of a file add up to 1 */
    size_t line;
} mri_mix_line;

typedef struct mri_mix_file {
    char *text;
    uint32_t count; /* at least 1 */
    mri_mix_line *set;
} mri_mix_file;

/* Is it meant as one, by its first bytes? */
bool mri_mix_magic(const void *head, size_t bytes);

/* MR_EFORMAT names the line, the expected and the found text. On failure there is nothing to free. */
int mri_mix_file_read(mri_mix_file *f, const char *path, mr_error *err);
void mri_mix_file_fini(mri_mix_file *f);

/* What to open for a line of the file at mix_path; malloc'd, NULL when there is no memory. */
char *mri_mix_resolve(const char *mix_path, const char *path);

#endif
