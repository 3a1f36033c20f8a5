/* formats/source/number_rows.c: see number_rows.h. */
#include "formats/source/number_rows.h"

#include "base/util.h"
#include "formats/source/value.h"

int mri_rows_init(mri_rows *r, const mr_field *field, uint64_t count, const mr_source_config *cfg,
                  const char *path, mr_error *err)
{
    uint64_t row = mr_dtype_bytes(field->dtype);
    for (uint32_t d = 0; d < field->ndim; d++) row = mri_times(row, field->dim[d]);
    const int rc = mri_source_budget(cfg, mri_times(row, count), path, err);
    if (rc) return rc;
    r->data = calloc((size_t)count, (size_t)row);
    if (!r->data)
        return mri_error_place(err,
                               mr_error_set(err, MR_ENOMEM, "no memory for the numbers of %s", field->name),
                               path, MR_NOWHERE, MR_NOWHERE);
    r->field = *field;
    r->row_bytes = (size_t)row;
    return MR_OK;
}

void mri_rows_fini(mri_rows *r)
{
    free(r->data);
    *r = (mri_rows){.row_bytes = 0};
}

void mri_rows_declare(const mri_rows *r, mr_source *src)
{
    if (mri_rows_there(r)) src->fields[src->info.field_count++] = r->field;
}

void mri_rows_give(const mri_rows *r, uint64_t sample, mr_sample *out)
{
    if (!mri_rows_there(r)) return;
    mr_value *v = &out->value[out->value_count++];
    *v = (mr_value){.type = MR_TYPE_TENSOR,
                    .dtype = r->field.dtype,
                    .ndim = r->field.ndim,
                    .data = mri_rows_at(r, sample),
                    .bytes = r->row_bytes};
    memcpy(v->dim, r->field.dim, sizeof v->dim);
}
