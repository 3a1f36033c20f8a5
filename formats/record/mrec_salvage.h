/* formats/record/mrec_salvage.h: finds the whole records of a damaged .mrec file (formats/storage/salvage.h).
 * Private.
 */
#ifndef MRI_MREC_SALVAGE_H
#define MRI_MREC_SALVAGE_H

#include "formats/record/mrec.h"
#include "formats/storage/salvage.h"

extern const mri_salvage_ops mri_salvage_mrec;

/* How the file says it was made; NULL: that part of it is damaged. Of a walk that is open. */
const char *mri_mrec_salvage_provenance(const void *walk);
/* Of the new file: for records that come from somewhere else. */
mr_writer *mri_mrec_salvage_writer(void *out);

#endif
