/* run/report/set_page.h: the counts of a data set as one HTML page, with pictures of each class and with
 * outliers. */
#ifndef MRI_SET_PAGE_H
#define MRI_SET_PAGE_H

#include <stdio.h>

#include "millrace/report.h"

enum {
    SHOWN_OF_CLASS = 6, /* pictures */
    SHOWN_CLASSES = 40, /* the first ones */
    SHOWN_OUTLIERS = 6, /* pictures of each kind */
    SHOWN_HEIGHT = 96,  /* pixels, at most */
    SHOWN_WIDTH_MOST = 480
};

/* Which samples are far from the others. */
typedef enum mri_outlier_kind {
    FEWEST_PIXELS,
    MOST_PIXELS,
    NARROWEST,
    WIDEST,
    FEWEST_BYTES, /* of a pixel */
    MOST_BYTES,
    DARKEST, /* these three are of the pictures that were decoded */
    BRIGHTEST,
    FLATTEST,
    OUTLIER_KINDS
} mri_outlier_kind;

typedef struct mri_shown_picture {
    uint64_t sample;
    double value; /* of an outlier: its outlying value */
    void *jpeg;   /* owned; NULL: its pixels cannot be decoded */
    size_t bytes;
} mri_shown_picture;

typedef struct mri_shown_row {
    mri_shown_picture *picture; /* count; owned */
    uint32_t count;
} mri_shown_row;

typedef struct mri_set_page {
    const mr_stats *s;
    const mr_stats_bound *bound;
    mri_shown_row of_class[SHOWN_CLASSES], outlier[OUTLIER_KINDS];
} mri_set_page;

/* Choose pictures and decode them. MR_ECANCELED: *stop was set. mri_set_page_free() in every case. */
int mri_set_page_take(mri_set_page *p, const mr_stats *s, const mr_stats_page_config *cfg, mr_error *err);
void mri_set_page_free(mri_set_page *p);

#endif
