/* tools/facts/stats_page.h: the counts of a data set as one HTML page, with pictures of each class and with
 * outliers. */
#ifndef TOOLS_STATS_PAGE_H
#define TOOLS_STATS_PAGE_H

#include <stdio.h>

#include "tools/facts/stats.h"

enum {
    SHOWN_OF_CLASS = 6, /* pictures */
    SHOWN_CLASSES = 40, /* the first ones */
    SHOWN_OUTLIERS = 6, /* pictures of each kind */
    SHOWN_HEIGHT = 96,  /* pixels, at most */
    SHOWN_WIDTH_MOST = 480
};

/* Which samples are far from the others. */
typedef enum outlier_kind {
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
} outlier_kind;

typedef struct shown_picture {
    uint64_t sample;
    double value; /* of an outlier: its outlying value */
    void *jpeg;   /* owned; NULL: its pixels cannot be decoded */
    size_t bytes;
} shown_picture;

typedef struct shown_row {
    shown_picture *picture; /* count; owned */
    uint32_t count;
} shown_row;

typedef struct stats_page {
    const mr_stats *s;
    const stats_bound *bound;
    shown_row of_class[SHOWN_CLASSES], outlier[OUTLIER_KINDS];
} stats_page;

/* Choose pictures and decode them. 0 or an exit status; stats_page_free() after either. */
int stats_page_take(stats_page *p, const mr_stats *s, const stats_bound *bound,
                    const mr_decode_config *decode);
void stats_page_free(stats_page *p);
/* For page_write(); context: a stats_page. */
void stats_page_put(FILE *f, void *context);

#endif
