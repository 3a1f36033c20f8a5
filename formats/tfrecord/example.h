/* formats/tfrecord/example.h: tf.train.Example in the protobuf wire format: a reader that copies nothing, and
 * a builder. Private.
 *
 *   Example   { 1: Features }                  a second Features is merged with the first
 *   Features  { 1: entry { 1: key, 2: Feature } ... }     a map: of two entries with one key the last counts
 *   Feature   { 1: BytesList | 2: FloatList | 3: Int64List }     the last kind counts; lists of that kind are
 *             joined
 *   BytesList { 1: bytes ... }   FloatList { 1: float ... }   Int64List { 1: varint ... }     the last two
 *                                packed or one by one
 *
 * Everything else is skipped, groups included. The depth is fixed, there is no recursion, and every length is
 * compared with the remaining bytes first. Spans point into the bytes that were read. */
#ifndef MRI_EXAMPLE_H
#define MRI_EXAMPLE_H

#include "millrace/base.h"

typedef struct mri_span {
    const uint8_t *data;
    size_t bytes;
} mri_span;

typedef enum mri_feature_kind {                       /* field numbers of Feature */
                                MRI_FEATURE_NONE = 0, /* not there, or a Feature without a list */
                                MRI_FEATURE_BYTES = 1,
                                MRI_FEATURE_FLOATS = 2,
                                MRI_FEATURE_INTS = 3,
} mri_feature_kind;

typedef struct mri_feature {
    mri_span key;
    mri_feature_kind kind;
    mri_span lists; /* fields of the Feature, from where only lists of this kind follow */
} mri_feature;

const char *mri_feature_kind_text(mri_feature_kind kind); /* "bytes (BytesList)", ... */

/* Walk the features in the order of the bytes; repeated keys are returned each time. */
typedef struct mri_example_walk {
    mri_span example;  /* the rest of the message */
    mri_span features; /* of the Features being walked */
} mri_example_walk;

void mri_example_begin(mri_example_walk *w, const void *data, size_t bytes);
/* MR_OK; MR_EEND after the last; MR_EFORMAT: not a protobuf, or a message of another type; MR_EUNSUPPORTED: a
 * SequenceExample. */
int mri_example_next(mri_example_walk *w, mri_feature *out, mr_error *err);

/* The features with these keys; NULL keys and missing keys give MRI_FEATURE_NONE. The whole Example is
 * walked: it is well-formed down to the lists, or MR_EFORMAT. */
int mri_example_pick(const void *data, size_t bytes, const char *const *keys, uint32_t key_count,
                     mri_feature *out, mr_error *err);

/* The values of a feature of that kind: the first `cap` go to out (NULL with cap 0); *count is the number of
 * all values. */
int mri_feature_ints(const mri_feature *f, int64_t *out, size_t cap, size_t *count, mr_error *err);
int mri_feature_floats(const mri_feature *f, float *out, size_t cap, size_t *count, mr_error *err);
/* The floats where they lie, *whole: side by side. */
int mri_feature_floats_at(const mri_feature *f, const uint8_t **out, size_t *count, bool *whole,
                          mr_error *err);
int mri_feature_bytes(const mri_feature *f, mri_span *out, size_t cap, size_t *count, mr_error *err);

/* ---- builder: one Example in a buffer that is used again ---- */
typedef struct mri_example_builder {
    uint8_t *buffer;
    size_t used, cap;
    int failed; /* why an add() did not; finish() says so */
} mri_example_builder;

/* Begin an empty Example; the buffer is kept. {0} is a valid empty builder. */
void mri_example_restart(mri_example_builder *b);
void mri_example_add_bytes(mri_example_builder *b, const char *key, const void *data, size_t bytes);
void mri_example_add_ints(mri_example_builder *b, const char *key, const int64_t *values, size_t count);
void mri_example_add_floats(mri_example_builder *b, const char *key, const float *values, size_t count);
/* *out is valid until the next restart. MR_ENOMEM; MR_ELIMIT over 2 GiB, which is as long as a protobuf
 * message may be. */
int mri_example_finish(mri_example_builder *b, mri_span *out, mr_error *err);
void mri_example_fini(mri_example_builder *b);

#endif
