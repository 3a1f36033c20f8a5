/* millrace/columns.h: the columns of a table that became the numbers of one field
 * (mr_source_config.target_key).
 *
 * A network that is trained on targets has one output per column. Two data sets have the same targets if the
 * columns have the same names in the same order. Record files keep the names that their source had; so do
 * checkpoints of networks with targets. NumPy arrays, archives and record files of versions before 0.5 lack
 * names. */
#ifndef MILLRACE_COLUMNS_H
#define MILLRACE_COLUMNS_H

#include "millrace/formats.h"

#ifdef __cplusplus
extern "C" {
#endif

/* Return the number of columns, one per number of a field; 0: the source lacks names, like every mix, which
 * has pictures and labels only. Any thread. field  (may be NULL) index of the field in mr_source_info.fields
 * names  (may be NULL) the names in the order of the numbers, owned by the source
 * With the result 0 both are unchanged. */
MR_API uint32_t mr_source_columns(const mr_source *src, uint32_t *field, const char *const **names);

/* Compare the columns of a source with the names of another data set or of a checkpoint, which `of` names in
 * messages. Upper and lower case of ASCII are the same.
 *
 * MR_OK      the same names in the same order, or they are not known on one side (count 0)
 * MR_EINVAL  they differ; err has both lists */
MR_API int mr_source_columns_check(const mr_source *src, const char *const *names, uint32_t count,
                                   const char *of, mr_error *err);

#ifdef __cplusplus
}
#endif

#endif
