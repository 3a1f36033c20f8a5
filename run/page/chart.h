/* run/page/chart.h: lines, stacked bars and histograms as inline SVG, with axes; legends are HTML beside
 * them, so that words never lie on one another. */
#ifndef MRI_CHART_H
#define MRI_CHART_H

#include <stdbool.h>
#include <stddef.h>
#include <stdio.h>

typedef struct mri_chart {
    const char *title, *x, *y; /* with units */
    bool from_zero;            /* the axis of values begins at 0 */
    double y_most;             /* its end; NAN: the largest value */
} mri_chart;

typedef struct mri_chart_line {
    const char *label, *css;
    bool dashed;
    bool marked;         /* a dot on each point, where there are no more than MRI_CHART_MARKS_MOST */
    const double *x, *y; /* a y that is NAN is left out */
    size_t count;
} mri_chart_line;

enum { MRI_CHART_POINTS_MOST = 600, MRI_CHART_BARS_MOST = 240, MRI_CHART_MARKS_MOST = 60 };

/* Of a line of more than MRI_CHART_POINTS_MOST points neighbours are drawn as their mean, which is said.
 * Without a single point nothing is drawn: false. */
bool mri_chart_lines(FILE *f, const mri_chart *c, const mri_chart_line *lines, size_t count);

typedef struct mri_chart_part {
    const char *label, *css;
} mri_chart_part;

/* value[bar * part_count + part], stacked; label[bar] stands below some of them. Of more than
 * MRI_CHART_BARS_MOST bars neighbours are drawn as their mean, which is said. Where no bar has a height
 * nothing is drawn: false.
 */
bool mri_chart_bars(FILE *f, const mri_chart *c, const mri_chart_part *parts, size_t part_count,
                    const double *value, const char *const *label, size_t bar_count);

#endif
