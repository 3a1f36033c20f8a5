/* formats/source/number_rows.h: a further field of a data set that is small enough to be kept in memory:
 * numbers, in rows of one shape, one for each sample. Private to formats/.
 *
 * Takes numbers when a set is opened (cfg->target_key), in the order of its samples. Gives a TENSOR field and
 * its value for each sample. Callers: formats whose files store such numbers next to the samples. */
#ifndef MRI_NUMBER_ROWS_H
#define MRI_NUMBER_ROWS_H

#include "formats/source/source.h"

typedef struct mri_rows {
    mr_field field;   /* TENSOR of one shape; ndim 0: no field */
    size_t row_bytes; /* of a sample */
    uint8_t *data;    /* row behind row; aligned for its elements */
} mri_rows;

/* The field, with room for count rows of zeros in the budget of cfg. MR_ELIMIT: they are more than that.
 * path: for messages. */
int mri_rows_init(mri_rows *r, const mr_field *field, uint64_t count, const mr_source_config *cfg,
                  const char *path, mr_error *err);
void mri_rows_fini(mri_rows *r); /* accepts a zeroed one */
static inline bool mri_rows_there(const mri_rows *r) { return r->field.ndim > 0; }
static inline uint8_t *mri_rows_at(const mri_rows *r, uint64_t sample)
{
    return r->data + sample * r->row_bytes;
}

/* Append the field to the source's own fields (src->fields). */
void mri_rows_declare(const mri_rows *r, mr_source *src);
/* Append the value to the sample's other values. */
void mri_rows_give(const mri_rows *r, uint64_t sample, mr_sample *out);

#endif
