/* base/abi.h: structs that cross the library's edge in the caller's memory, laid out by the caller's header,
 * which may be an older or a newer one. Private.
 *
 * Takes a struct whose first member is size_t struct_size. Gives settings with defaults for members that the
 * caller's header lacks, and results that fit the caller's struct. Callers: the functions of millrace/
 * headers that end in _sized or take settings. The rules are in millrace/base.h. */
#ifndef MRI_ABI_H
#define MRI_ABI_H

#include "base/util.h"

#define MRI_MOST_STRUCT_BYTES 65536u /* above that struct_size was never set */

/* out holds the defaults; the members of the caller's struct replace them; settings NULL: the defaults stay.
 * MR_EINVAL: struct_size was never set, or the caller set a member newer than this library. name: "loader" of
 * mr_loader_defaults(). */
int mri_settings_take(void *out, size_t out_bytes, const void *settings, const char *name, mr_error *err);

/* `full` begins with the defaults; of it the caller has `bytes`, and knows it: struct_size is set. */
void mri_settings_give(void *out, size_t bytes, const void *full, size_t full_bytes);

/* MR_EINVAL: out is a result whose struct_size was never set: nothing could be given. NULL is nobody's, and
 * right. Before anything is taken or done for it. */
int mri_result_check(const void *out, mr_error *err);
/* A result for the caller, who set out->struct_size: as much of it as there is room for. out may be NULL. */
void mri_result_give(void *out, const void *full, size_t full_bytes);

#endif
