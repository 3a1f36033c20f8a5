/* tests/pipeline/fields/field_sets.h: a set with fields of every kind, for the tests of fields in batches.
 * Its pictures say where they came from: pixel (x, y) of sample i is (x + 1, y + 1, i + 1), all 0 outside. So
 * whatever the augmentation did can be read off a batch's pixels, and boxes and masks checked against them
 * without knowing how it was done. */
#ifndef MRT_FIELD_SETS_H
#define MRT_FIELD_SETS_H

#include "millrace/pipeline.h"
#include "mrt.h"

enum { MRT_FIELD_SAMPLES = 23, MRT_FIELD_WIDE = 12, MRT_FIELD_HIGH = 10 };

/* The fault of sample MRT_TWISTED; no other sample has one. */
typedef enum mrt_twist {
    MRT_FINE,
    MRT_LONG_LIST,
    MRT_MANY_BOXES,
    MRT_NAN_BOX,
    MRT_FEW_VALUES,
    MRT_SMALL_MASK,
    MRT_JPEG_MASK,
    MRT_COLOUR_MASK,
    MRT_NO_MASK, /* which is no fault */
    MRT_FLAT_LIST,
    MRT_PAD_AT_END
} mrt_twist;
enum { MRT_TWISTED = 5 };

/* NAME.mrec, made anew. */
mr_source *mrt_field_set(const char *name, mrt_twist t);

/* Boxes, their labels, a mask, tokens: each padded with another number. */
extern const mr_loader_field mrt_followers[4];
/* Shuffled, augmented, two epochs in batches of 5. */
mr_loader_config mrt_field_settings(const mr_loader_field *fields, uint32_t count);
/* mrt_refused() for them with this field alone. */
void mrt_refused_field(const mr_source *src, mr_loader_field f, int code, const char *text);

/* How many tokens sample i has. */
uint32_t mrt_token_count(uint64_t i);

mr_value mrt_tensor(mr_dtype dtype, const void *data, uint32_t ndim, uint64_t d0, uint64_t d1);

/* Box k of sample i, in pixels: x0 y0 x1 y1. */
void mrt_box_of(uint64_t i, uint32_t k, uint32_t out[4]);
/* Boxes of sample i that are left, as parts of the picture: their numbers into which. Returns how many. */
uint32_t mrt_expected_boxes(const uint8_t *pixels, uint64_t i, double out[4][4], uint32_t *which);
void mrt_near(float found, double expected);

/* Row i of a batch agrees with the batch's own pixels, its padding with mrt_followers or the given value. */
void mrt_check_boxes(const mr_batch *b, uint32_t i, const mr_batch_field *boxes,
                     const mr_batch_field *values);
void mrt_check_mask(const mr_batch *b, uint32_t i, const mr_batch_field *f, uint8_t outside);
void mrt_check_tokens(const mr_batch *b, uint32_t i, uint64_t id, const mr_batch_field *f, int32_t pad);

#endif
