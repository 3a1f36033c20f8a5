/* formats/source/elements.h: tensor elements as 64-bit integers or 32-bit floats, for formats that have only
 * these. Private. */
#ifndef MRI_ELEMENTS_H
#define MRI_ELEMENTS_H

#include "millrace/formats.h"

bool mri_dtype_is_integer(mr_dtype dtype);

/* `count` elements at data, which needs no alignment. The dtype is one of the kind asked for. f64 is rounded
 * to the nearest f32, the others are exact. */
void mri_elements_to_ints(mr_dtype dtype, const void *data, size_t count, int64_t *out);
void mri_elements_to_floats(mr_dtype dtype, const void *data, size_t count, float *out);

#endif
