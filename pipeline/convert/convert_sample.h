/* pipeline/convert/convert_sample.h: one sample of a conversion, from its source to the values that are
 * written. Private to convert*.c. Any thread, each with its own item. */
#ifndef MRI_CONVERT_SAMPLE_H
#define MRI_CONVERT_SAMPLE_H

#include "pipeline/augment/augment.h"
#include "pipeline/budget/budget.h"
#include "pipeline/convert/convert_kind.h"
#include "pipeline/decode/jpeg/transcoder.h"

/* One sample on its way. */
typedef struct mri_convert_item {
    uint64_t source_index;
    int rc;     /* MR_OK, or the reason why it is bad or the run must end */
    bool fatal; /* rc concerns the run, not the sample */
    mr_error error;
    mr_sample sample; /* as read, the picture as it is to be written; points into buffer and made */
    mr_value values[MR_MAX_FIELDS]; /* the output's */
    bool transcoded, kept;          /* kept: coefficients were asked for, and it cannot be */
    uint64_t bytes_in;
    uint64_t stamp; /* of the file it was read from, before it was read (mri_source_stamp()) */
    void *buffer;   /* the bytes read; kept and grown from sample to sample while it is small */
    size_t buffer_bytes;
    void *made; /* pixels, coefficients or an encoded picture; malloc'd for this sample */
    size_t made_bytes;
    void *entries; /* entry points of a JPEG, malloc'd, or NULL */
    size_t entries_bytes;
    char *name;            /* its original name, malloc'd for this sample, or NULL */
    mri_geometry geometry; /* of the picture to be written in that which was read; sides 0: it is the same */
    /* values of other fields that were made anew, malloc'd for this sample, or NULL; bytes of all of them */
    void *companions[MR_MAX_FIELDS];
    size_t companion_bytes;
} mri_convert_item;

/* What one worker decodes with. */
typedef struct mri_convert_desk {
    mri_transcoder *whole; /* NULL: made with the next sample */
    mri_seat seat;
} mri_convert_desk;

/* As many can be in use at a time as the budget has room for. */
void mri_convert_desk_init(mri_convert_desk *d, mr_budget *b);
void mri_convert_desk_fini(mri_convert_desk *d);
/* item->source_index in, everything else out. */
void mri_convert_sample(const mri_convert_plan *plan, mri_convert_desk *desk, mri_convert_item *item);
/* value is the sample's picture; MR_OK, or its error. */
int mri_convert_picture(const mri_convert_plan *plan, mri_transcoder *whole, mri_convert_item *item,
                        mr_value *value);
/* Compute the fields that follow the picture (mr_field_role()) when item->geometry says that it was cropped
 * or resized. */
int mri_convert_companions(const mri_convert_plan *plan, mri_convert_item *item);
/* Pictures in other fields than the first, as files; for kinds that want them so. */
int mri_convert_companion_pictures(const mri_convert_plan *plan, mri_transcoder *whole,
                                   mri_convert_item *item);
/* Clear the item for the next sample; large buffers are freed. */
void mri_convert_item_clear(mri_convert_item *item);
void mri_convert_item_fini(mri_convert_item *item);

#endif
