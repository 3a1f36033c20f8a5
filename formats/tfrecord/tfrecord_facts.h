/* formats/tfrecord/tfrecord_facts.h: facts about a TFRecord data set other than the positions of its records.
 * Private.
 *
 *   gather  while the records are scanned: which features hold picture, label, ...; class names; boxes
 *   note    the same as bytes that are kept with the index (framed.h)
 *   facts   read from a note, whether it was just made or kept: the arrays stay in it
 *
 * Boxes are kept because the four lists of a record must become one array, for which parse() has no
 * memory. */
#ifndef MRI_TFRECORD_FACTS_H
#define MRI_TFRECORD_FACTS_H

#include "formats/source/source.h"
#include "formats/tfrecord/tfrecord_more.h"

enum mri_tf_feature {
    MRI_TF_IMAGE,
    MRI_TF_LABEL,
    MRI_TF_TEXT,
    MRI_TF_HEIGHT,
    MRI_TF_WIDTH,
    MRI_TF_CHANNELS,
    MRI_TF_MASK,
    MRI_TF_XMIN,
    MRI_TF_YMIN,
    MRI_TF_XMAX,
    MRI_TF_YMAX,
    MRI_TF_BOX_LABEL,
    MRI_TF_FEATURES,
};
enum {
    MRI_TF_MAX_BOXES = 1 << 16, /* in one record */
    MRI_TF_OTHERS = 5,          /* fields: image, label, boxes, box_labels, mask */
    MRI_TF_KEYS = MRI_TF_FEATURES + MR_MAX_FIELDS,
    MRI_TF_LINES = 3,
};

/* ---- the values of one record ---- */
/* One integer, or an error that names the found value. name: of the feature. */
int mri_tf_one_int(const mri_feature *f, const char *name, int64_t *out, mr_error *err);
int mri_tf_one_bytes(const mri_feature *f, const char *name, mri_span *out, mr_error *err);
/* JPEG, PNG or pixels; size features as picked. */
int mri_tf_picture(const mri_feature f[MRI_TF_FEATURES], const char *const key[MRI_TF_FEATURES],
                   mr_value *out, mr_error *err);
/* A PNG, or nothing (0 bytes) where the record has no mask. */
int mri_tf_mask(const mri_feature *f, const char *name, mr_value *out, mr_error *err);
/* How many boxes, where all lists agree about it. */
int mri_tf_box_count(const mri_feature f[MRI_TF_FEATURES], const char *const key[MRI_TF_FEATURES],
                     size_t *out, mr_error *err);
/* "found: a (bytes), b (floats), ...", as far as it fits. */
void mri_tf_list_keys(const void *example, size_t bytes, char *out, size_t out_bytes);

/* ---- gather ---- */
enum { MRI_TF_WHY = 400 };

typedef struct mri_tf_gather {
    const mr_source_config *cfg;
    const char *key[MRI_TF_FEATURES]; /* NULL: the data do not have it */
    char *key_text[MRI_TF_FEATURES];
    bool chosen;
    bool encoded, raw, shapes_differ; /* of the pictures so far */
    uint64_t dim[3];
    /* class names */
    bool no_names; /* they contradict each other, or are too many: why_no_names has the line about it */
    char why_no_names[MRI_TF_WHY];
    char *names; /* one after the other, each with its 0 */
    size_t names_used, names_cap;
    struct mri_tf_named {
        uint32_t at, file; /* of label k: its place in names + 1, or 0; the last file that has it so, from 1
                            */
    } * named;
    size_t label_cap;
    uint32_t file; /* that is read, from 1 */
    /* boxes */
    uint64_t samples, start_cap, box_count, box_cap;
    uint64_t *start;
    float *box;
    int64_t *box_label;
    mri_tf_more more;
} mri_tf_gather;

/* From the first record that can be read: MR_EFORMAT lists the features there are. */
int mri_tf_choose(mri_tf_gather *g, const void *example, size_t bytes, mr_error *err);
/* The features of a record that can be read, once they are chosen: features that no record before had become
 * its boxes, mask, class, ... or further fields. *again: g->key has more of them. */
int mri_tf_look(mri_tf_gather *g, const void *example, size_t bytes, bool *again, mr_error *err);
/* One record, features as picked by g->key; f NULL: one that cannot be read. MR_ENOMEM, or
 * MR_EFORMAT: the records contradict each other. */
int mri_tf_add(mri_tf_gather *g, const mri_feature *f, int64_t label, mr_error *err);
int mri_tf_note(const mri_tf_gather *g, uint8_t **out, size_t *bytes, mr_error *err);
void mri_tf_gather_fini(mri_tf_gather *g);

/* ---- facts ---- */
typedef struct mri_tf_facts {     /* arrays and texts lie in the note */
    const char *key[MRI_TF_KEYS]; /* of further fields, after the others */
    mr_field more[MR_MAX_FIELDS];
    uint32_t more_count;
    const char *told[MRI_TF_LINES]; /* lines for the user */
    uint64_t dim[3];                /* of all pictures when they are pixels of one size, else 0 */
    uint64_t name_count;
    const uint8_t *name_label; /* name_count x i64 */
    const char *name_text;     /* name_count texts, each with its 0 */
    const char **class_names;  /* NULL, or one for each class; free() */
    bool has_boxes, has_box_labels;
    const uint64_t *start; /* samples + 1 */
    const float *box;      /* xmin ymin xmax ymax */
    const int64_t *box_label;
} mri_tf_facts;

/* False when the bytes are no note of a data set with that many samples. */
bool mri_tf_facts_read(mri_tf_facts *out, const uint8_t *note, size_t bytes, uint64_t samples);
/* Names of classes 0..class_count when the note has all of them. MR_ENOMEM. */
int mri_tf_facts_names(mri_tf_facts *facts, uint32_t class_count, int64_t label_offset, mr_error *err);
void mri_tf_facts_fini(mri_tf_facts *facts);

#endif
