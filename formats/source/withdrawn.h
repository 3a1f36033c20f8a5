/* formats/source/withdrawn.h: samples of a data set that were withdrawn. Private.
 *
 *   each folder in which a file of the data lies ─► its list (withdrawn_list.h) ─► the samples that it names
 *
 * A list belongs to the folder of the files, so every data set of these files finds it: one file of a set,
 * the set's list of files, a pattern, a folder. An entry whose file was changed is compared by the hash of
 * the sample's bytes. A sample of a shared file that moved is looked for by its bytes and its name in the
 * files of the folder (withdrawn_moved.h); where several may be meant, the data are refused. */
#ifndef MRI_WITHDRAWN_H
#define MRI_WITHDRAWN_H

#include "formats/source/source.h"

typedef struct mri_withdrawn mri_withdrawn;

/* After the format's open(), before any choice: the samples that the lists name. src->withdrawn is set where
 * a list has entries. MR_EFORMAT: a list is damaged; with MR_WITHDRAWN_LEAVE_OUT also: it names a sample that
 * is another one now. */
int mri_withdrawn_load(mr_source *src, const mr_source_config *cfg, mr_error *err);
/* After the choice: leave them out. MR_EINVAL: no sample is left. */
int mri_withdrawn_leave_out(mr_source *src, mr_error *err);
/* The bytes of each of them, read: MR_ECHECKSUM, the first that is another one. */
int mri_withdrawn_check(const mr_source *src, mr_error *err);
void mri_withdrawn_free(mri_withdrawn *w);

#endif
