/* run/report/set_pictures.c: the pictures of a page: some of each class, evenly spaced in it, and those
 * far from the others; small JPEGs. See set_page.h. */
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "base/util.h"
#include "run/report/set_page.h"

enum { QUALITY = 92 };

/* ---- which ---- */

static int add(mri_shown_row *row, uint64_t sample, double value, mr_error *err)
{
    mri_shown_picture *more = realloc(row->picture, (row->count + 1) * sizeof *more);
    if (!more) return mr_error_set(err, MR_ENOMEM, "out of memory for the pictures of the page");
    row->picture = more;
    row->picture[row->count++] = (mri_shown_picture){.sample = sample, .value = value};
    return MR_OK;
}

static int take_classes(mri_set_page *p, mr_error *err)
{
    const mr_stats *s = p->s;
    uint64_t met[SHOWN_CLASSES] = {0};
    for (uint64_t k = 0; k < s->count; k++) {
        const int32_t c = s->sample[k].label;
        if (!s->sample[k].good || c < 0 || c >= SHOWN_CLASSES) continue;
        const uint64_t all = s->of_class[c], wanted = all < SHOWN_OF_CLASS ? all : SHOWN_OF_CLASS;
        mri_shown_row *row = &p->of_class[c];
        if (met[c]++ < row->count * all / wanted || row->count == wanted) continue;
        const int rc = add(row, k, (double)NAN, err);
        if (rc) return rc;
    }
    return MR_OK;
}

typedef struct candidate {
    double value;
    uint64_t sample;
} candidate;

static int by_value(const void *a, const void *b)
{
    const candidate *x = a, *y = b;
    if (x->value != y->value) return x->value < y->value ? -1 : 1;
    return x->sample < y->sample ? -1 : x->sample > y->sample;
}

/* Of every good picture, where the kind depends on its header. */
static double value_of(const mr_sample_facts *p, mri_outlier_kind kind)
{
    const double pixels = (double)p->width * p->height;
    switch (kind) {
    case FEWEST_PIXELS:
    case MOST_PIXELS: return pixels;
    case NARROWEST:
    case WIDEST: return (double)p->width / p->height;
    default: return (double)p->bytes / pixels;
    }
}

static uint64_t gather(const mr_stats *s, mri_outlier_kind kind, candidate *out)
{
    uint64_t n = 0;
    for (uint64_t k = 0; kind < DARKEST && k < s->count; k++)
        if (s->sample[k].good && s->sample[k].width && s->sample[k].height)
            out[n++] = (candidate){value_of(&s->sample[k], kind), k};
    for (uint64_t k = 0; kind >= DARKEST && k < s->decode_asked; k++) {
        const uint64_t at = mr_stats_decoded_sample(s, k);
        if (!s->sample[at].good) continue;
        const double *m = s->sums + 6 * k, mean = (m[0] + m[1] + m[2]) / 3;
        const double var = (m[3] + m[4] + m[5] - m[0] * m[0] - m[1] * m[1] - m[2] * m[2]) / 3;
        out[n++] = (candidate){kind == FLATTEST ? sqrt(fmax(var, 0)) : mean, at};
    }
    return n;
}

/* The far end of one kind; nothing where all are alike. */
static int take_outliers(mri_set_page *p, mri_outlier_kind kind, candidate *room, mr_error *err)
{
    const uint64_t n = gather(p->s, kind, room);
    const bool from_top = kind == MOST_PIXELS || kind == WIDEST || kind == MOST_BYTES || kind == BRIGHTEST;
    if (n) qsort(room, n, sizeof *room, by_value);
    if (n < 2 || room[0].value == room[n - 1].value) return MR_OK;
    for (uint64_t k = 0; k < n && k < SHOWN_OUTLIERS; k++) {
        const candidate *c = &room[from_top ? n - 1 - k : k];
        if (c->value == room[(n - 1) / 2].value) break; /* as the median: no outlier */
        const int rc = add(&p->outlier[kind], c->sample, c->value, err);
        if (rc) return rc;
    }
    return MR_OK;
}

/* ---- their pixels ---- */

typedef struct reading {
    const mr_stats *s;
    const mr_decode_config *decode;
    void *buffer;
    size_t bytes;
} reading;

static uint32_t least_one(double pixels) { return pixels < 1 ? 1 : (uint32_t)(pixels + 0.5); }

/* The whole picture in the size of the page, never larger than it is. */
static int shrink(const mr_image *in, mr_image *out, mr_error *err)
{
    double times = (double)SHOWN_HEIGHT / in->height;
    if (in->width * times > SHOWN_WIDTH_MOST) times = (double)SHOWN_WIDTH_MOST / in->width;
    if (times > 1) times = 1;
    return mr_image_resize(in, least_one(in->width * times), least_one(in->height * times), out, err);
}

static int take_pixels(reading *r, mri_shown_picture *p, mr_error *err)
{
    mr_error here = MR_ERROR_INIT;
    mr_sample sample;
    mr_image whole = {0}, small = {0};
    int rc = mr_source_read(r->s->src, p->sample, &r->buffer, &r->bytes, &sample, &here);
    if (!rc)
        rc = mr_image_decode(&sample.value[mr_source_info_of(r->s->src)->image_field], r->decode, &whole,
                             &here);
    if (!rc) rc = shrink(&whole, &small, &here);
    if (!rc) rc = mr_image_encode_jpeg(&small, QUALITY, &p->jpeg, &p->bytes, &here);
    mr_image_free(&whole);
    mr_image_free(&small);
    if (rc == MR_OK || mr_error_of_sample(rc, &here)) return MR_OK;
    if (err) *err = here;
    return rc;
}

static int take_row(reading *r, mri_shown_row *row, const volatile int *stop, mr_error *err)
{
    int rc = MR_OK;
    for (uint32_t k = 0; k < row->count && rc == MR_OK; k++) {
        rc = take_pixels(r, &row->picture[k], err);
        if (rc == MR_OK && mri_is_stopped(stop)) rc = mr_error_set(err, MR_ECANCELED, "stopped");
    }
    return rc;
}

int mri_set_page_take(mri_set_page *p, const mr_stats *s, const mr_stats_page_config *cfg, mr_error *err)
{
    reading r = {.s = s, .decode = cfg->decode};
    *p = (mri_set_page){.s = s, .bound = cfg->bound};
    if (mr_source_info_of(s->src)->image_field < 0) return MR_OK;
    candidate *room = malloc((s->count + 1) * sizeof *room);
    if (!room) return mr_error_set(err, MR_ENOMEM, "out of memory for the outliers");
    int rc = take_classes(p, err);
    for (int k = 0; k < OUTLIER_KINDS && rc == MR_OK; k++)
        rc = take_outliers(p, (mri_outlier_kind)k, room, err);
    free(room);
    for (int c = 0; c < SHOWN_CLASSES && rc == MR_OK; c++) rc = take_row(&r, &p->of_class[c], cfg->stop, err);
    for (int k = 0; k < OUTLIER_KINDS && rc == MR_OK; k++) rc = take_row(&r, &p->outlier[k], cfg->stop, err);
    free(r.buffer);
    return rc;
}

static void free_row(mri_shown_row *row)
{
    for (uint32_t k = 0; k < row->count; k++) free(row->picture[k].jpeg);
    free(row->picture);
}

void mri_set_page_free(mri_set_page *p)
{
    for (int c = 0; c < SHOWN_CLASSES; c++) free_row(&p->of_class[c]);
    for (int k = 0; k < OUTLIER_KINDS; k++) free_row(&p->outlier[k]);
}
