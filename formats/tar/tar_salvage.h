/* formats/tar/tar_salvage.h: takes the whole samples out of a damaged archive (formats/storage/salvage.h).
 * Private. */
#ifndef MRI_TAR_SALVAGE_H
#define MRI_TAR_SALVAGE_H

#include "formats/storage/salvage.h"

extern const mri_salvage_ops mri_salvage_tar;

/* Has the archive that is walked checksums of its members, and they fit? Else a changed byte of a member is
 * not seen. */
bool mri_tar_salvage_has_sums(const void *walk);

/* ---- the new archive (tar_salvage_write.c): as mri_salvage_ops says ---- */
int mri_tar_salvage_create(void **out, const void *classes, size_t classes_bytes, const char *path,
                           bool force, mr_error *err);
int mri_tar_salvage_put(void *out, const mri_salvage_item *whole, mr_error *err);
int mri_tar_salvage_finish(void *out, mr_error *err);
void mri_tar_salvage_abandon(void *out);

#endif
