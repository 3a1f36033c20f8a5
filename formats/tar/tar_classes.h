/* formats/tar/tar_classes.h: class names stored in an archive. Private.
 *
 *   __classes__   "cat\ndog\nhorse\n"     class 0 is a cat; the labels in .cls count from 0
 *
 * Bytes of a name that a line cannot show are written as \xHH, so is the backslash of such a text in a name.
 * A class without a name is \x00.
 *
 * This is what `convert --to tar` puts first into each archive (pipeline/convert/convert_tar.c); other
 * readers pass it over. Archives of one set that bring it have the same classes, or more behind them; others
 * are refused, unless the user names the label's member. Where it cannot be what it says nothing becomes
 * unreadable for it: the names are passed over, with a word for the user. */
#ifndef MRI_TAR_CLASSES_H
#define MRI_TAR_CLASSES_H

#include "millrace/base.h"

#define MRI_TAR_CLASSES "__classes__"
enum { MRI_TAR_MAX_CLASSES = 16 << 20 }; /* bytes of the member */

typedef struct mri_tar_classes {
    const char **name; /* count of them, into text; NULL: none */
    uint32_t count;
    char *text;        /* a copy */
    const char *wrong; /* why an existing text gives no classes; static, or NULL */
} mri_tar_classes;

/* The text of these names; malloc'd. MR_ENOMEM. */
int mri_tar_classes_text(const char *const *names, uint32_t count, char **text, size_t *bytes, mr_error *err);
/* Takes the text apart in a copy: the caller's goes into the index as it stands. Every line is a name of 1 to
 * 1000 bytes that can be shown as it is, the last one ends in a line end. MR_ENOMEM. */
int mri_tar_classes_take(mri_tar_classes *out, const char *text, size_t bytes, mr_error *err);
void mri_tar_classes_fini(mri_tar_classes *c); /* accepts a zeroed one */

#endif
