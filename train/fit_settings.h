/* train/fit_settings.h: are the settings of mr_fit() in their ranges, and do they fit the loader, the run
 * that goes on and the other processes? Private. */
#ifndef MRI_FIT_SETTINGS_H
#define MRI_FIT_SETTINGS_H

#include "train/trainer.h"

/* MR_EINVAL, and err names the setting. All processes of the run call it at the same time. */
int mri_fit_check(const mr_trainer *t, const mr_loader *loader, const mr_fit_config *cfg, mr_error *err);

#endif
