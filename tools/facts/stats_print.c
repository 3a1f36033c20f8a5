/* tools/facts/stats_print.c: prints the counts, as text and as one JSON object. See stats.h. */
#include <inttypes.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "tools/cli/json.h"
#include "tools/cli/output.h"
#include "tools/facts/stats.h"

enum { CLASSES_SHOWN = 20, NAME_ROOM = 512 };

/* ---- text ---- */
static void put_share(uint64_t part, uint64_t all)
{
    printf(" (%.1f %%)", all ? 100 * (double)part / (double)all : 0);
}

static void put_range(const char *label, const mr_stats_range *r)
{
    printf("%-12s%" PRIu64 " to %" PRIu64 ", median %" PRIu64 "\n", label, r->least, r->most, r->median);
}

static void put_classes(const mr_stats *s)
{
    char name[NAME_ROOM];
    if (s->classes == 0) return;
    const uint64_t least = s->of_class[s->least_class], most = s->of_class[s->most_class];
    printf("classes     %" PRIu32 "; %" PRIu64 " to %" PRIu64 " samples each", s->classes, least, most);
    if (least && least != most) printf(", the most are %.1f times the fewest", (double)most / (double)least);
    if (s->empty_classes) printf("; %" PRIu32 " without samples", s->empty_classes);
    putchar('\n');
    for (uint32_t c = 0; c < s->classes && c < CLASSES_SHOWN; c++)
        printf("            %8" PRIu64 "  %s\n", s->of_class[c],
               shown_text(mr_stats_class_name(s, c, name, sizeof name)));
    if (s->classes > CLASSES_SHOWN)
        printf("            and %" PRIu32 " more; --json has them all\n", s->classes - CLASSES_SHOWN);
    if (s->unlabelled) printf("            %8" PRIu64 "  without a class\n", s->unlabelled);
}

static void put_counts(const char *label, const uint64_t *counts, const char *(*name)(uint32_t))
{
    uint64_t all = 0;
    bool any = false;
    for (uint32_t k = 0; name(k); k++) all += counts[k];
    printf("%-12s", label);
    for (uint32_t k = 0; name(k); k++) {
        if (!counts[k]) continue;
        printf("%s%" PRIu64 " %s", any ? ", " : "", counts[k], name(k));
        put_share(counts[k], all);
        any = true;
    }
    putchar('\n');
}

static void put_pictures(const mr_stats *s)
{
    char a[NAME_ROOM], b[NAME_ROOM];
    const mr_sample_facts *small = &s->sample[s->smallest], *large = &s->sample[s->largest];
    put_counts("pictures", s->kinds, mr_stats_kind_name);
    if (s->jpegs || s->kinds[2]) put_counts("subsampling", s->samplings, mr_stats_sampling_name);
    printf("            %" PRIu64 " progressive", s->progressive);
    put_share(s->progressive, s->jpegs);
    printf(", %" PRIu64 " gray, %" PRIu64 " with alpha, %" PRIu64 " turned by EXIF\n", s->gray, s->alpha,
           s->turned);
    put_range("width", &s->width);
    put_range("height", &s->height);
    printf("smallest    %" PRIu32 " x %" PRIu32 ", %s\n", small->width, small->height,
           shown_text(mr_stats_sample_name(s, s->smallest, a, sizeof a)));
    printf("largest     %" PRIu32 " x %" PRIu32 ", %s\n", large->width, large->height,
           shown_text(mr_stats_sample_name(s, s->largest, b, sizeof b)));
}

static void put_channels(const mr_stats *s)
{
    if (!s->decoded) return;
    printf("channels    normalise(%.2f:%.2f:%.2f/%.2f:%.2f:%.2f), of %" PRIu64 " pictures\n", s->mean[0],
           s->mean[1], s->mean[2], s->deviation[0], s->deviation[1], s->deviation[2], s->decoded);
}

static void put_duplicates(const mr_stats *s)
{
    char a[NAME_ROOM], b[NAME_ROOM];
    if (s->duplicates == 0) {
        printf("duplicates  none\n");
        return;
    }
    printf("duplicates  %" PRIu64 " %s the bytes of an earlier one", s->duplicates,
           s->duplicates == 1 ? "sample has" : "samples have");
    if (s->crossing) printf(", %" PRIu64 " of them in another class", s->crossing);
    putchar('\n');
    for (uint64_t k = 0; k < s->duplicates && k < MR_STATS_PAIRS; k++)
        printf("            %s is %s\n", shown_text(mr_stats_sample_name(s, s->pair[k][1], a, sizeof a)),
               shown_text(mr_stats_sample_name(s, s->pair[k][0], b, sizeof b)));
    if (s->duplicates > MR_STATS_PAIRS)
        printf("            and %" PRIu64 " more\n", s->duplicates - MR_STATS_PAIRS);
}

static void put_shared(const mr_stats *s)
{
    const mr_stats_shared *h = &s->shared;
    const mr_stats test = {.src = h->src};
    char a[NAME_ROOM], b[NAME_ROOM];
    if (!h->src) return;
    if (h->count == 0)
        printf("test part   none of its %" PRIu64 " samples has the bytes of one of these\n", h->of);
    else
        printf("test part   %" PRIu64 " of its %" PRIu64 " samples %s the bytes of one of these\n", h->count,
               h->of, h->count == 1 ? "has" : "have");
    for (uint64_t k = 0; k < h->count && k < MR_STATS_PAIRS; k++)
        printf("            %s is %s\n", shown_text(mr_stats_sample_name(&test, h->pair[k][1], a, sizeof a)),
               shown_text(mr_stats_sample_name(s, h->pair[k][0], b, sizeof b)));
    if (h->count > MR_STATS_PAIRS) printf("            and %" PRIu64 " more\n", h->count - MR_STATS_PAIRS);
    if (h->bad)
        printf("            %" PRIu64 " of its samples cannot be read: --split test names them\n", h->bad);
}

/* ---- what limits a training ---- */
static void put_bound(const mr_stats_bound *b)
{
    char rate[32];
    if (!b->by) return;
    printf(
        "estimate    the loader alone gives %.0f samples/s with %" PRIu32
        " workers and --augment %s, from memory\n            on a core a sample takes %.3f ms to decode and "
        "%.3f ms to read\n",
        b->loader_per_s, b->workers, shown_text(b->augment), b->decode_ms, b->read_core_ms);
    if (b->fits_memory)
        printf("            the set fits into memory: storage limits the first epoch at most\n");
    else if (isfinite(b->storage_bytes_per_s))
        printf(
            "            the set is larger than memory; storage gives %s/s in one thread, %.0f samples/s\n",
            mri_size_text(b->storage_bytes_per_s, rate, sizeof rate), b->supply_per_s);
    else printf("            the set is larger than memory; the rate of its storage is unknown\n");
    if (isfinite(b->step_ms)) {
        printf("            %s%s%s takes %.3f ms for a step of %" PRIu32 ", %.0f samples/s alone\n",
               b->model ? b->model : "the given device", b->model ? " on " : "", b->device, b->step_ms,
               b->batch, b->trainer_per_s);
        printf("bound       by %s, estimated: %.0f samples/s\n", mr_stats_bound_name(b),
               fmin(b->supply_per_s, b->trainer_per_s));
    } else
        printf("bound       by %s, estimated, if the device takes more than %.0f samples/s, else by the "
               "device\n",
               mr_stats_bound_name(b), b->supply_per_s);
}

void stats_print_text(const mr_stats *s, const mr_stats_bound *bound)
{
    const mr_source_info *info = mr_source_info_of(s->src);
    char all[32], least[32], most[32], median[32];
    printf("data        %s\nformat      %s\nsamples     %" PRIu64, shown_text(info->path), info->format,
           s->count - s->bad);
    if (s->bad) printf(", and %" PRIu64 " that cannot be read", s->bad);
    if (mr_source_withdrawn_count(s->src))
        printf(", and %" PRIu64 " withdrawn", mr_source_withdrawn_count(s->src));
    printf("\nbytes       %s; %s to %s each, median %s\n",
           mri_size_text((double)s->bytes.total, all, sizeof all),
           mri_size_text((double)s->bytes.least, least, sizeof least),
           mri_size_text((double)s->bytes.most, most, sizeof most),
           mri_size_text((double)s->bytes.median, median, sizeof median));
    put_classes(s);
    if (info->image_field >= 0 && s->count > s->bad) {
        put_pictures(s);
        put_channels(s);
    }
    put_duplicates(s);
    put_shared(s);
    put_bound(bound);
}

/* ---- JSON ---- */
static void json_range(json_line *j, const char *key, const mr_stats_range *r)
{
    json_object(j, key);
    json_u64(j, "least", r->least);
    json_u64(j, "median", r->median);
    json_u64(j, "most", r->most);
    json_close_object(j);
}

static void json_counts(json_line *j, const char *key, const uint64_t *counts, const char *(*name)(uint32_t))
{
    json_object(j, key);
    for (uint32_t k = 0; name(k); k++)
        if (counts[k]) json_u64(j, name(k), counts[k]);
    json_close_object(j);
}

static void json_pictures(json_line *j, const mr_stats *s)
{
    json_counts(j, "pictures", s->kinds, mr_stats_kind_name);
    json_counts(j, "subsampling", s->samplings, mr_stats_sampling_name);
    json_u64(j, "progressive", s->progressive);
    json_u64(j, "gray", s->gray);
    json_u64(j, "alpha", s->alpha);
    json_u64(j, "turned", s->turned);
    json_range(j, "width", &s->width);
    json_range(j, "height", &s->height);
    json_u64(j, "channels_of", s->decoded);
    json_array(j, "mean");
    for (int c = 0; c < 3 && s->decoded; c++) json_real(j, NULL, s->mean[c]);
    json_close_array(j);
    json_array(j, "deviation");
    for (int c = 0; c < 3 && s->decoded; c++) json_real(j, NULL, s->deviation[c]);
    json_close_array(j);
}

static void json_bound(json_line *j, const mr_stats_bound *b)
{
    if (!b->by) return;
    json_object(j, "bound");
    json_text(j, "by", b->by);
    json_bool(j, "estimated", true);
    json_text(j, "augment", b->augment);
    json_u64(j, "workers", b->workers);
    json_u64(j, "batch", b->batch);
    json_real(j, "decode_ms_per_sample", b->decode_ms);
    json_real(j, "read_core_ms_per_sample", b->read_core_ms);
    json_real(j, "loader_samples_per_s", b->loader_per_s);
    json_bool(j, "fits_memory", b->fits_memory);
    json_real(j, "storage_bytes_per_s", b->storage_bytes_per_s);
    json_real(j, "supply_samples_per_s", b->supply_per_s);
    json_text(j, "model", b->model);
    json_text(j, "device", b->model ? b->device : NULL);
    json_real(j, "step_ms", b->step_ms);
    json_real(j, "trainer_samples_per_s", b->trainer_per_s);
    json_close_object(j);
}

void stats_print_json(const mr_stats *s, const mr_stats_bound *bound)
{
    const mr_source_info *info = mr_source_info_of(s->src);
    char name[NAME_ROOM];
    json_line j = json_begin(stdout, "stats");
    json_text(&j, "data", info->path);
    json_text(&j, "format", info->format);
    json_u64(&j, "samples", s->count - s->bad);
    json_u64(&j, "withdrawn", mr_source_withdrawn_count(s->src));
    json_u64(&j, "bad", s->bad);
    json_u64(&j, "bytes", s->bytes.total);
    json_range(&j, "sample_bytes", &s->bytes);
    json_array(&j, "classes");
    for (uint32_t c = 0; c < s->classes; c++)
        json_text(&j, NULL, mr_stats_class_name(s, c, name, sizeof name));
    json_close_array(&j);
    json_array(&j, "class_samples");
    for (uint32_t c = 0; c < s->classes; c++) json_u64(&j, NULL, s->of_class[c]);
    json_close_array(&j);
    json_u64(&j, "without_class", s->unlabelled);
    if (info->image_field >= 0) json_pictures(&j, s);
    json_u64(&j, "duplicates", s->duplicates);
    json_u64(&j, "duplicates_in_other_classes", s->crossing);
    json_array(&j, "duplicate_names");
    for (uint64_t k = 0; k < s->duplicates && k < MR_STATS_PAIRS; k++)
        json_text(&j, NULL, mr_stats_sample_name(s, s->pair[k][1], name, sizeof name));
    json_close_array(&j);
    if (s->shared.src) {
        json_u64(&j, "test_samples", s->shared.of);
        json_u64(&j, "test_samples_bad", s->shared.bad);
        json_u64(&j, "test_samples_shared", s->shared.count);
    }
    json_bound(&j, bound);
    json_end(&j);
}
