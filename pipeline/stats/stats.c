/* pipeline/stats/stats.c: the facts of all samples, summed up in their order. See stats.h. */
#include "pipeline/stats/stats.h"

#include <inttypes.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/abi.h"
#include "base/util.h"
#include "formats/source/source.h"
#include "millrace/choose.h"

_Static_assert((int)MRI_STATS_TYPES <= (int)MR_STATS_KINDS, "more kinds than there are counts");
const mr_type mri_stats_types[MRI_STATS_TYPES] = {MR_TYPE_JPEG, MR_TYPE_PNG, MR_TYPE_COEF, MR_TYPE_PIXELS,
                                                  MR_TYPE_GIF,  MR_TYPE_BMP, MR_TYPE_WEBP, MR_TYPE_TIFF,
                                                  MR_TYPE_HEIC, MR_TYPE_AVIF};

const char *mr_stats_kind_name(uint32_t kind)
{
    if (kind >= MRI_STATS_TYPES) return NULL;
    return mri_stats_types[kind] == MR_TYPE_COEF ? "coefficients" : mr_type_name(mri_stats_types[kind]);
}

const char *mr_stats_sampling_name(uint32_t sampling)
{
    static const char *const names[] = {"4:4:4", "4:2:2", "4:2:0", "gray", "other"};
    _Static_assert(MRI_ARRAY_COUNT(names) <= MR_STATS_SAMPLINGS, "more samplings than there are counts");
    return sampling < MRI_ARRAY_COUNT(names) ? names[sampling] : NULL;
}

/* ---- ranges ---- */
static int by_number(const void *a, const void *b)
{
    const uint64_t x = *(const uint64_t *)a, y = *(const uint64_t *)b;
    return x < y ? -1 : x > y;
}

static uint64_t width_of(const mr_sample_facts *p) { return p->width; }
static uint64_t height_of(const mr_sample_facts *p) { return p->height; }
static uint64_t bytes_of(const mr_sample_facts *p) { return p->bytes; }

static void range(const mr_stats *s, uint64_t (*of)(const mr_sample_facts *), uint64_t *room,
                  mr_stats_range *out)
{
    uint64_t n = 0;
    *out = (mr_stats_range){0};
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
static int count_classes(mri_stats *own, mr_error *err)
{
    mr_stats *s = &own->of;
    uint32_t classes = mr_source_info_of(s->src)->class_count;
    for (uint64_t k = 0; k < s->count; k++)
        if (s->sample[k].good && s->sample[k].label >= (int64_t)classes)
            classes = (uint32_t)s->sample[k].label + 1;
    uint64_t *n = own->of_class = calloc((size_t)classes + 1, sizeof *n);
    if (!n) return mr_error_set(err, MR_ENOMEM, "out of memory for the counts of classes");
    s->classes = classes;
    s->of_class = n;
    for (uint64_t k = 0; k < s->count; k++) {
        if (!s->sample[k].good) continue;
        if (s->sample[k].label >= 0) n[s->sample[k].label]++;
        else s->unlabelled++;
    }
    for (uint32_t c = 0; c < classes; c++) {
        s->empty_classes += n[c] == 0;
        if (n[c] < n[s->least_class]) s->least_class = c;
        if (n[c] > n[s->most_class]) s->most_class = c;
    }
    return MR_OK;
}

/* ---- pictures ---- */
static void count_pictures(mr_stats *s)
{
    uint64_t least = UINT64_MAX, most = 0;
    for (uint64_t k = 0; k < s->count; k++) {
        const mr_sample_facts *p = &s->sample[k];
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

uint64_t mr_stats_decoded_sample(const mr_stats *s, uint64_t k)
{
    if (!s || k >= s->decode_asked) return 0;
    return (uint64_t)((unsigned __int128)k * s->count / s->decode_asked);
}

const char *mr_stats_class_name(const mr_stats *s, uint32_t label, char *buf, size_t buf_bytes)
{
    if (!s || !buf || buf_bytes == 0) return buf;
    const mr_source_info *info = mr_source_info_of(s->src);
    if (info->class_names && label < info->class_count && info->class_names[label][0])
        snprintf(buf, buf_bytes, "%s", info->class_names[label]);
    else snprintf(buf, buf_bytes, "%" PRId64, (int64_t)label + info->label_offset);
    return buf;
}

const char *mr_stats_sample_name(const mr_stats *s, uint64_t sample, char *buf, size_t buf_bytes)
{
    if (!s || !buf || buf_bytes == 0) return buf;
    mr_source_sample_name(s->src, sample, NULL, 0, buf, buf_bytes);
    if (!buf[0]) snprintf(buf, buf_bytes, "sample %" PRIu64, sample);
    return buf;
}

/* Every picture counts the same, whatever its size: that is how a training sees them. */
static void sum_channels(mr_stats *s)
{
    double mean[3] = {0}, square[3] = {0};
    uint64_t n = 0;
    for (uint64_t k = 0; k < s->decode_asked; k++) {
        const uint64_t at = mr_stats_decoded_sample(s, k);
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
static void keep_pair(mr_stats *s, uint64_t first, uint64_t second)
{
    uint64_t at = s->duplicates < MR_STATS_PAIRS ? s->duplicates : MR_STATS_PAIRS;
    while (at > 0 && s->pair[at - 1][1] > second) at--;
    if (at == MR_STATS_PAIRS) return;
    const uint64_t behind = (s->duplicates < MR_STATS_PAIRS ? s->duplicates : MR_STATS_PAIRS - 1) - at;
    memmove(&s->pair[at + 1], &s->pair[at], behind * sizeof s->pair[0]);
    s->pair[at][0] = first;
    s->pair[at][1] = second;
}

static void on_copy(void *context, uint64_t sample, uint64_t first)
{
    mr_stats *s = context;
    keep_pair(s, first, sample);
    s->duplicates++;
    s->crossing += s->sample[sample].label != s->sample[first].label;
}

static int find_duplicates(mr_stats *s, const volatile int *stop, mr_error *err)
{
    mr_choice_config cfg;
    mr_copy_mark *marks = malloc((s->count + 1) * sizeof *marks);
    uint64_t n = 0;
    if (!marks) return mr_error_set(err, MR_ENOMEM, "out of memory for the hashes of all samples");
    for (uint64_t k = 0; k < s->count; k++)
        if (s->sample[k].good) marks[n++] = (mr_copy_mark){s->sample[k].hash, s->sample[k].bytes, k};
    mr_choice_defaults(&cfg);
    cfg.dedup = MR_COPIES_BYTES;
    cfg.stop = stop;
    const int rc = mr_choose_copies(s->src, &cfg, marks, n, on_copy, s, err);
    free(marks);
    return rc;
}

static int sum_up(mri_stats *own, const volatile int *stop, mr_error *err)
{
    mr_stats *s = &own->of;
    uint64_t *room = malloc((s->count + 1) * sizeof *room);
    if (!room) return mr_error_set(err, MR_ENOMEM, "out of memory for the facts of all samples");
    range(s, width_of, room, &s->width);
    range(s, height_of, room, &s->height);
    range(s, bytes_of, room, &s->bytes);
    free(room);
    count_pictures(s);
    sum_channels(s);
    const int rc = count_classes(own, err);
    return rc ? rc : find_duplicates(s, stop, err);
}

/* ---- the part to test with ---- */
static int find_shared(mri_stats *own, const mr_stats_config *cfg, mr_error *err)
{
    mr_stats_config quiet = *cfg;
    mri_stats *test = calloc(1, sizeof *test);
    if (!test) return mr_error_set(err, MR_ENOMEM, "out of memory for the counts of a data set");
    test->of.src = cfg->test;
    quiet.decode_most = 0;
    quiet.on_wrong = NULL;
    quiet.on_progress = NULL;
    int rc = mri_stats_collect(test, &quiet, err);
    if (rc == MR_OK) rc = mri_stats_find_shared(&own->of, &test->of, cfg->stop, &own->of.shared, err);
    mr_stats_free(&test->of);
    return rc;
}

/* ---- calls ---- */

void mr_stats_defaults_sized(mr_stats_config *cfg, size_t struct_size)
{
    const mr_stats_config all = {0};
    mri_settings_give(cfg, struct_size, &all, sizeof all);
}

int mr_stats_make(mr_stats **out, const mr_source *src, const mr_stats_config *cfg, mr_error *err)
{
    mr_stats_config mine;
    MRI_GIVEN(err, out);
    *out = NULL;
    MRI_OWN(err, src);
    mr_stats_defaults(&mine);
    int rc = cfg ? mri_settings_take(&mine, sizeof mine, cfg, "stats", err) : MR_OK;
    if (rc) return rc;
    if (mine.test) MRI_OWN(err, mine.test);
    mri_stats *s = calloc(1, sizeof *s);
    if (!s) return mr_error_set(err, MR_ENOMEM, "out of memory for the counts of a data set");
    s->of.src = src;
    rc = mri_stats_collect(s, &mine, err);
    if (rc == MR_OK) rc = sum_up(s, mine.stop, err);
    if (rc == MR_OK && mine.test) rc = find_shared(s, &mine, err);
    if (rc == MR_OK) *out = &s->of;
    else mr_stats_free(&s->of);
    return rc;
}

void mr_stats_free(mr_stats *s)
{
    mri_stats *own = (mri_stats *)s; /* its first member */
    if (!own) return;
    free(own->sample);
    free(own->sums);
    free(own->of_class);
    free(own);
}
