/* formats/record/mrec_lengths.c: how many elements a record's sequence has, from the index alone: no record
 * is read for it.
 *
 *   | head 40 | entries | label 8 | scale 8 | tokens, 4 bytes each |        bytes of the record, exact, as
 *                                                                           the index has them
 *   <------------- the same in every record ------------><-- rest -->
 *
 * That works where one field alone differs in size, a tensor of one dimension, and its end is known: it
 * stands last, where nothing pads it, or its elements have 8 bytes, which need no padding. mr_convert() puts
 * such a field last. Everything else (pictures, text, a second sequence) has no lengths without reading. */
#include "base/util.h"
#include "formats/record/mrec.h"
#include "formats/source/value.h"

/* The value that every record has in a field of fixed size; false: sizes differ. */
static bool fixed_value(const mr_field *f, mr_value *out)
{
    *out = (mr_value){.type = f->type, .dtype = f->dtype, .ndim = f->ndim};
    if (f->type == MR_TYPE_INT || f->type == MR_TYPE_FLOAT) return true;
    if (f->type != MR_TYPE_TENSOR && f->type != MR_TYPE_PIXELS) return false;
    const size_t element = f->type == MR_TYPE_TENSOR ? mr_dtype_bytes(f->dtype) : 1;
    return f->ndim > 0 && mri_shape_bytes(f->dim, f->ndim, element, &out->bytes);
}

int mri_lengths_field(const mr_field *fields, uint32_t count)
{
    int found = -1;
    mr_value ignored;
    for (uint32_t k = 0; k < count; k++) {
        if (fixed_value(&fields[k], &ignored)) continue;
        if (found >= 0 || fields[k].type != MR_TYPE_TENSOR || fields[k].ndim != 0) return -1;
        found = (int)k;
    }
    return found;
}

bool mri_lengths_of(const mr_field *fields, uint32_t count, mri_lengths *out)
{
    mr_value value[MR_MAX_FIELDS];
    mri_record_size size;
    const int at = mri_lengths_field(fields, count);
    if (at < 0) return false;
    const uint32_t element = (uint32_t)mr_dtype_bytes(fields[at].dtype);
    if ((uint32_t)at + 1 < count && element != 8) return false;
    for (uint32_t k = 0; k < count; k++) fixed_value(&fields[k], &value[k]);
    value[at] = (mr_value){.type = MR_TYPE_TENSOR, .dtype = fields[at].dtype, .ndim = 1};
    if (!mri_record_measure(value, count, &size)) return false;
    *out = (mri_lengths){(uint32_t)at, element, size.record_bytes};
    return true;
}

uint32_t mri_lengths_elements(const mri_lengths *l, uint64_t record_bytes)
{
    const uint64_t rest = record_bytes > l->fixed_bytes ? record_bytes - l->fixed_bytes : 0;
    return (uint32_t)mri_min_u64(rest / l->element_bytes, UINT32_MAX);
}
