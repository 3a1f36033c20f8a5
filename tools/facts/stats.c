/* tools/facts/stats.c: the facts of all samples, summed up in their order. See stats.h. */
#include "tools/facts/stats.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "tools/cli/exit.h"
#include "tools/cli/interrupt.h"

const char *const stats_kind_names[STATS_KINDS] = {"jpeg", "png", "coefficients", "pixels",
                                                   "gif",  "bmp", "webp",         "tiff"};
const char *const stats_sampling_names[STATS_SAMPLINGS] = {"4:4:4", "4:2:2", "4:2:0", "gray", "other"};

/* ---- ranges ---- */
static int by_number(const void *a, const void *b)
{
    const uint64_t x = *(const uint64_t *)a, y = *(const uint64_t *)b;
    return x < y ? -1 : x > y;
}

static uint64_t width_of(const stats_sample *p) { return p->width; }
static uint64_t height_of(const stats_sample *p) { return p->height; }
static uint64_t bytes_of(const stats_sample *p) { return p->bytes; }

static void range(const stats *s, uint64_t (*of)(const stats_sample *), uint64_t *room, stats_range *out)
{
    uint64_t n = 0;
    *out = (stats_range){0};
    for (uint64_t k = 0; k < s->count; k++) {
        if (!s->sample[k].good) continue;
        room[n++] = of(&s->sample[k]);
        out->total += room[n - 1];
    }
    if (n == 0) return;
    qsort(room, n, sizeof *room, by_number);
    out->least = room[0];
    out->median = room[(n - 1) / 2];
    out->most = room[n - 1];
}

/* ---- classes ---- */
static int count_classes(stats *s)
{
    uint32_t classes = mr_source_info_of(s->src)->class_count;
    for (uint64_t k = 0; k < s->count; k++)
        if (s->sample[k].good && s->sample[k].label >= (int64_t)classes)
            classes = (uint32_t)s->sample[k].label + 1;
    s->classes = classes;
    s->of_class = calloc((size_t)classes + 1, sizeof *s->of_class);
    if (!s->of_class) return exit_no_memory("the counts of classes");
    for (uint64_t k = 0; k < s->count; k++) {
        if (!s->sample[k].good) continue;
        if (s->sample[k].label >= 0) s->of_class[s->sample[k].label]++;
        else s->unlabelled++;
    }
    for (uint32_t c = 0; c < classes; c++) {
        s->empty_classes += s->of_class[c] == 0;
        if (s->of_class[c] < s->of_class[s->least_class]) s->least_class = c;
        if (s->of_class[c] > s->of_class[s->most_class]) s->most_class = c;
    }
    return EXIT_DONE;
}

/* ---- pictures ---- */
static void count_pictures(stats *s)
{
    uint64_t least = UINT64_MAX, most = 0;
    for (uint64_t k = 0; k < s->count; k++) {
        const stats_sample *p = &s->sample[k];
        if (!p->good || p->width == 0) continue;
        const uint64_t pixels = (uint64_t)p->width * p->height;
        s->kinds[p->kind]++;
        s->gray += p->channels < 3;
        s->alpha += p->channels == 2 || (p->channels == 4 && p->kind == 1);
        s->turned += p->orientation > 1;
        s->jpegs += p->kind == 0;
        s->progressive += p->kind == 0 && p->progressive;
        if (p->kind == 0 || p->kind == 2) s->samplings[p->sampling]++;
        if (pixels < least) least = pixels, s->smallest = k;
        if (pixels > most) most = pixels, s->largest = k;
    }
}

uint64_t stats_decoded_sample(const stats *s, uint64_t k)
{
    return (uint64_t)((unsigned __int128)k * s->count / s->decode_asked);
}

/* Every picture counts the same, whatever its size: that is how a training sees them. */
static void sum_channels(stats *s)
{
    double mean[3] = {0}, square[3] = {0};
    uint64_t n = 0;
    for (uint64_t k = 0; k < s->decode_asked; k++) {
        const uint64_t at = stats_decoded_sample(s, k);
        if (!s->sample[at].good) continue;
        for (int c = 0; c < 3; c++) {
            mean[c] += s->sums[6 * k + (size_t)c];
            square[c] += s->sums[6 * k + 3 + (size_t)c];
        }
        n++;
    }
    s->decoded = n;
    for (int c = 0; c < 3 && n; c++) {
        s->mean[c] = mean[c] / (double)n;
        const double var = square[c] / (double)n - s->mean[c] * s->mean[c];
        s->deviation[c] = var > 0 ? sqrt(var) : 0;
    }
}

/* ---- duplicates ---- */
/* The first pairs by the second one's number, in `pair`. */
static void keep_pair(stats *s, uint64_t first, uint64_t second)
{
    uint64_t at = s->duplicates < STATS_PAIRS ? s->duplicates : STATS_PAIRS;
    while (at > 0 && s->pair[at - 1][1] > second) at--;
    if (at == STATS_PAIRS) return;
    const uint64_t behind = (s->duplicates < STATS_PAIRS ? s->duplicates : STATS_PAIRS - 1) - at;
    memmove(&s->pair[at + 1], &s->pair[at], behind * sizeof s->pair[0]);
    s->pair[at][0] = first;
    s->pair[at][1] = second;
}

static void on_copy(void *context, uint64_t sample, uint64_t first)
{
    stats *s = context;
    keep_pair(s, first, sample);
    s->duplicates++;
    s->crossing += s->sample[sample].label != s->sample[first].label;
}

static int find_duplicates(stats *s)
{
    mr_error err = MR_ERROR_INIT;
    mr_choice_config cfg;
    mr_copy_mark *marks = malloc((s->count + 1) * sizeof *marks);
    uint64_t n = 0;
    if (!marks) return exit_no_memory("the hashes of all samples");
    for (uint64_t k = 0; k < s->count; k++)
        if (s->sample[k].good) marks[n++] = (mr_copy_mark){s->sample[k].hash, s->sample[k].bytes, k};
    mr_choice_defaults(&cfg);
    cfg.dedup = MR_COPIES_BYTES;
    cfg.stop = &interrupt_flag;
    const int rc = mr_choose_copies(s->src, &cfg, marks, n, on_copy, s, &err);
    free(marks);
    if (interrupt_flag) return EXIT_SIGNAL + interrupt_flag;
    return exit_status(rc, &err);
}

int stats_sum_up(stats *s)
{
    uint64_t *room = malloc((s->count + 1) * sizeof *room);
    if (!room) return exit_no_memory("the facts of all samples");
    range(s, width_of, room, &s->width);
    range(s, height_of, room, &s->height);
    range(s, bytes_of, room, &s->bytes);
    free(room);
    count_pictures(s);
    sum_channels(s);
    const int status = count_classes(s);
    return status ? status : find_duplicates(s);
}

void stats_free(stats *s)
{
    free(s->sample);
    free(s->sums);
    free(s->of_class);
}
