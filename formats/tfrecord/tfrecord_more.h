/* formats/tfrecord/tfrecord_more.h: features beside picture, class, boxes and mask, as fields. Private.
 *
 *   one whole number in each record     INT
 *   one float in each record            FLOAT
 *   other lists of floats               TENSOR of f32, one dimension; empty for a record without it
 *   bytes, one value or none            TEXT where all are UTF-8, else BYTES
 *
 * Other lists are left out, with a line: parse() has no memory to put the numbers of a list side by side. */
#ifndef MRI_TFRECORD_MORE_H
#define MRI_TFRECORD_MORE_H

#include "formats/tfrecord/example.h"
#include "millrace/formats.h"

enum { MRI_TF_MOST_MORE = 64, MRI_TF_TOLD = 1024 };

typedef struct mri_tf_more_feature {
    char key[MR_MAX_NAME + 1];
    mri_feature_kind kind;
    uint64_t records, values; /* records with values; values of the first of them */
    uint64_t last;            /* number of the last record that had it, from 1 */
    bool differs;             /* in the number of values */
    bool odd;                 /* of another kind in some record, there twice, or floats in pieces */
    bool no_text;
} mri_tf_more_feature;

typedef struct mri_tf_more {
    mri_tf_more_feature feature[MRI_TF_MOST_MORE];
    uint32_t count;
    uint64_t samples; /* readable records */
    uint64_t unnamed; /* values of features that are not remembered: their names are too long, or there are
                         too many */
} mri_tf_more;

/* A record begins; then come its features that have no other meaning. */
void mri_tf_more_begin(mri_tf_more *m);
/* NULL: not known so far. */
mri_tf_more_feature *mri_tf_more_find(mri_tf_more *m, mri_span key);
/* at: as found. MR_EFORMAT: its values are no list. */
int mri_tf_more_add(mri_tf_more *m, mri_tf_more_feature *at, const mri_feature *f, mr_error *err);

/* After the last record: the field that a feature becomes; false: none. */
bool mri_tf_more_field(const mri_tf_more *m, const mri_tf_more_feature *at, mr_field *out);
/* A line about features that become no field, or "". room: fields that there may be. */
void mri_tf_more_tell_left(const mri_tf_more *m, uint32_t room, char out[MRI_TF_TOLD]);
/* A line about whole numbers that may be the class where none is taken, or "". */
void mri_tf_more_tell_class(const mri_tf_more *m, bool boxes, char out[MRI_TF_TOLD]);

/* The value of such a field in a record; MR_EFORMAT: it is no such value. */
int mri_tf_more_value(const mr_field *field, const mri_feature *f, mr_value *out, mr_error *err);

#endif
