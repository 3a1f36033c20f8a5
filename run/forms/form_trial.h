/* run/forms/form_trial.h: declarations that the files of this room share. */
#ifndef MRI_FORM_TRIAL_H
#define MRI_FORM_TRIAL_H

#include "millrace/forms.h"

/* MR_ECANCELED. */
int mri_forms_stopped(mr_error *err);

#endif
