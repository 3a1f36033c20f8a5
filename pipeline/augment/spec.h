/* pipeline/augment/spec.h: a specification while it is read, and the words a row's read() is made of. Private
 * to this room.
 *
 * Valid text taken from `at` is written out with mri_spec_put...(): a checkpoint holds the given text, with
 * defaults spelled out. Functions that return int return MR_OK, or MR_EINVAL with a message that names the
 * part and its place. */
#ifndef MRI_AUGMENT_SPEC_H
#define MRI_AUGMENT_SPEC_H

#include "pipeline/augment/op.h"

struct mri_spec {
    const char *spec, *at; /* the whole, and what comes next in it */
    mr_augment *a;         /* the result, and its text in full */
    size_t text_used;
    uint32_t count; /* operations of the specification */
    mri_op op;      /* the one being read */
    bool training, numbers_fixed, mixes;
    uint32_t turns;    /* maps that operations may put the picture through, one after the other */
    bool overflows;    /* the text in full has no room */
    const char *usage; /* of the operation being read, for messages */
    mr_error *err;
};

/* A decimal fraction as it was written, over another one: exact, and printed as it came. */
typedef struct mri_number {
    uint32_t digits, digits_below; /* value: (digits / 10^places) / (digits_below / 10^places_below) */
    uint8_t places, places_below;
    bool fraction; /* written with a slash */
} mri_number;

double mri_number_value(mri_number n);

/* Always MR_EINVAL: the error at `where`. */
int mri_spec_fail(const mri_spec *s, const char *where, const char *format, ...) MR_PRINTF(3, 4);

void mri_spec_skip_spaces(mri_spec *s);
bool mri_spec_take(mri_spec *s, char c);              /* this character, spaces around it */
bool mri_spec_word(mri_spec *s, const char *text);    /* these characters */
int mri_spec_number(mri_spec *s, mri_number *n);      /* 0.75 or 3/4 */
int mri_spec_decimal(mri_spec *s, mri_number *n);     /* 0.75 */
int mri_spec_probability(mri_spec *s, mri_number *n); /* 0 to 1 */
/* Read and write out [,P] after the last argument; if it is absent, *out is 1 and nothing is written. */
int mri_spec_last_probability(mri_spec *s, double *out);
int mri_spec_whole(mri_spec *s, uint32_t low, uint32_t high, uint32_t *out);
int mri_spec_range(mri_spec *s, double low, double high, mri_number out[2]); /* LO:HI */
/* filter=bilinear|nearest or fill=mean|0..255, if that comes next (*found). The defaults, bilinear and black,
 * are not written out. */
int mri_spec_look(mri_spec *s, mri_look *look, bool *found);
void mri_spec_put_look(mri_spec *s, mri_look look);
/* SIZE or HxW: the operation's height and width. *single: one number for both. */
int mri_spec_size(mri_spec *s, bool *single);

void mri_spec_put(mri_spec *s, const char *format, ...) MR_PRINTF(2, 3);
void mri_spec_put_number(mri_spec *s, mri_number n);
void mri_spec_put_range(mri_spec *s, const mri_number r[2]);
void mri_spec_put_size(mri_spec *s, bool single);

#endif
