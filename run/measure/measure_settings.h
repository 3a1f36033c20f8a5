/* run/measure/measure_settings.h: what all measurements of this room have in common. */
#ifndef MRI_MEASURE_SETTINGS_H
#define MRI_MEASURE_SETTINGS_H

#include "base/util.h"
#include "millrace/measure.h"

/* cfg with defaults for members that it lacks; NULL: the defaults. MR_EINVAL: a value is out of range. */
int mri_measure_settings(mr_measure_config *mine, const mr_measure_config *cfg, mr_error *err);
/* MR_ECANCELED. */
int mri_measure_stopped(mr_error *err);

static inline double mri_measure_since(uint64_t start_ns) { return 1e-9 * (double)(mri_now_ns() - start_ns); }

#endif
