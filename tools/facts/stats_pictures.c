/* tools/facts/stats_pictures.c: the pictures of a page: some of each class, evenly spaced in it, and those
 * far from the others; small JPEGs. See stats_page.h. */
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "tools/cli/exit.h"
#include "tools/cli/interrupt.h"
#include "tools/facts/stats_page.h"

enum { QUALITY = 92 };

/* ---- which ---- */

static int add(shown_row *row, uint64_t sample, double value)
{
    shown_picture *more = realloc(row->picture, (row->count + 1) * sizeof *more);
    if (!more) return exit_no_memory("the pictures of the page");
    row->picture = more;
    row->picture[row->count++] = (shown_picture){.sample = sample, .value = value};
    return EXIT_DONE;
}

static int take_classes(stats_page *p)
{
    const mr_stats *s = p->s;
    uint64_t met[SHOWN_CLASSES] = {0};
    for (uint64_t k = 0; k < s->count; k++) {
        const int32_t c = s->sample[k].label;
        if (!s->sample[k].good || c < 0 || c >= SHOWN_CLASSES) continue;
        const uint64_t all = s->of_class[c], wanted = all < SHOWN_OF_CLASS ? all : SHOWN_OF_CLASS;
        shown_row *row = &p->of_class[c];
        if (met[c]++ < row->count * all / wanted || row->count == wanted) continue;
        if (add(row, k, NAN)) return EXIT_FAILED;
    }
    return EXIT_DONE;
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
static double value_of(const mr_sample_facts *p, outlier_kind kind)
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

static uint64_t gather(const mr_stats *s, outlier_kind kind, candidate *out)
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
static int take_outliers(stats_page *p, outlier_kind kind, candidate *room)
{
    const uint64_t n = gather(p->s, kind, room);
    const bool from_top = kind == MOST_PIXELS || kind == WIDEST || kind == MOST_BYTES || kind == BRIGHTEST;
    if (n) qsort(room, n, sizeof *room, by_value);
    if (n < 2 || room[0].value == room[n - 1].value) return EXIT_DONE;
    for (uint64_t k = 0; k < n && k < SHOWN_OUTLIERS; k++) {
        const candidate *c = &room[from_top ? n - 1 - k : k];
        if (c->value == room[(n - 1) / 2].value) break; /* as the median: no outlier */
        if (add(&p->outlier[kind], c->sample, c->value)) return EXIT_FAILED;
    }
    return EXIT_DONE;
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

static int take_pixels(reading *r, shown_picture *p)
{
    mr_error err = MR_ERROR_INIT;
    mr_sample sample;
    mr_image whole = {0}, small = {0};
    int rc = mr_source_read(r->s->src, p->sample, &r->buffer, &r->bytes, &sample, &err);
    if (!rc)
        rc = mr_image_decode(&sample.value[mr_source_info_of(r->s->src)->image_field], r->decode, &whole,
                             &err);
    if (!rc) rc = shrink(&whole, &small, &err);
    if (!rc) rc = mr_image_encode_jpeg(&small, QUALITY, &p->jpeg, &p->bytes, &err);
    mr_image_free(&whole);
    mr_image_free(&small);
    return rc && !mr_error_of_sample(rc, &err) ? exit_status(rc, &err) : EXIT_DONE;
}

static int take_row(reading *r, shown_row *row)
{
    int status = EXIT_DONE;
    for (uint32_t k = 0; k < row->count && status == EXIT_DONE; k++) {
        status = take_pixels(r, &row->picture[k]);
        if (interrupt_flag) status = EXIT_SIGNAL + interrupt_flag;
    }
    return status;
}

int stats_page_take(stats_page *p, const mr_stats *s, const stats_bound *bound,
                    const mr_decode_config *decode)
{
    reading r = {.s = s, .decode = decode};
    *p = (stats_page){.s = s, .bound = bound};
    if (mr_source_info_of(s->src)->image_field < 0) return EXIT_DONE;
    candidate *room = malloc((s->count + 1) * sizeof *room);
    if (!room) return exit_no_memory("the outliers");
    int status = take_classes(p);
    for (int k = 0; k < OUTLIER_KINDS && status == EXIT_DONE; k++)
        status = take_outliers(p, (outlier_kind)k, room);
    free(room);
    for (int c = 0; c < SHOWN_CLASSES && status == EXIT_DONE; c++) status = take_row(&r, &p->of_class[c]);
    for (int k = 0; k < OUTLIER_KINDS && status == EXIT_DONE; k++) status = take_row(&r, &p->outlier[k]);
    free(r.buffer);
    return status;
}

static void free_row(shown_row *row)
{
    for (uint32_t k = 0; k < row->count; k++) free(row->picture[k].jpeg);
    free(row->picture);
}

void stats_page_free(stats_page *p)
{
    for (int c = 0; c < SHOWN_CLASSES; c++) free_row(&p->of_class[c]);
    for (int k = 0; k < OUTLIER_KINDS; k++) free_row(&p->outlier[k]);
}
