/* formats/tfrecord/tfrecord_salvage.h: takes the whole records out of a damaged TFRecord file
 * (formats/storage/salvage.h). Private. */
#ifndef MRI_TFRECORD_SALVAGE_H
#define MRI_TFRECORD_SALVAGE_H

#include "formats/storage/salvage.h"

extern const mri_salvage_ops mri_salvage_tfrecord;

#endif
