/* tools/facts/stats_print.c: prints the counts, as text and as one JSON object. See stats.h. */
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>

#include "tools/cli/json.h"
#include "tools/cli/output.h"
#include "tools/facts/stats.h"

enum { CLASSES_SHOWN = 20, NAME_ROOM = 512 };

static const char *class_name(const stats *s, uint32_t c, char *buf, size_t room)
{
    const mr_source_info *info = mr_source_info_of(s->src);
    if (info->class_names && c < info->class_count && info->class_names[c][0])
        snprintf(buf, room, "%s", info->class_names[c]);
    else snprintf(buf, room, "%" PRId64, (int64_t)c + info->label_offset);
    return buf;
}

static const char *sample_name(const stats *s, uint64_t k, char *buf, size_t room)
{
    mr_source_sample_name(s->src, k, NULL, 0, buf, room);
    if (!buf[0]) snprintf(buf, room, "sample %" PRIu64, k);
    return buf;
}

/* ---- text ---- */
static void put_share(uint64_t part, uint64_t all)
{
    printf(" (%.1f %%)", all ? 100 * (double)part / (double)all : 0);
}

static void put_range(const char *label, const stats_range *r)
{
    printf("%-12s%" PRIu64 " to %" PRIu64 ", median %" PRIu64 "\n", label, r->least, r->most, r->median);
}

static void put_classes(const stats *s)
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
               shown_text(class_name(s, c, name, sizeof name)));
    if (s->classes > CLASSES_SHOWN)
        printf("            and %" PRIu32 " more; --json has them all\n", s->classes - CLASSES_SHOWN);
    if (s->unlabelled) printf("            %8" PRIu64 "  without a class\n", s->unlabelled);
}

static void put_counts(const char *label, const uint64_t *counts, const char *const *names, int n)
{
    uint64_t all = 0;
    bool any = false;
    for (int k = 0; k < n; k++) all += counts[k];
    printf("%-12s", label);
    for (int k = 0; k < n; k++) {
        if (!counts[k]) continue;
        printf("%s%" PRIu64 " %s", any ? ", " : "", counts[k], names[k]);
        put_share(counts[k], all);
        any = true;
    }
    putchar('\n');
}

static void put_pictures(const stats *s)
{
    char a[NAME_ROOM], b[NAME_ROOM];
    const stats_sample *small = &s->sample[s->smallest], *large = &s->sample[s->largest];
    put_counts("pictures", s->kinds, stats_kind_names, STATS_KINDS);
    if (s->jpegs || s->kinds[2])
        put_counts("subsampling", s->samplings, stats_sampling_names, STATS_SAMPLINGS);
    printf("            %" PRIu64 " progressive", s->progressive);
    put_share(s->progressive, s->jpegs);
    printf(", %" PRIu64 " gray, %" PRIu64 " with alpha, %" PRIu64 " turned by EXIF\n", s->gray, s->alpha,
           s->turned);
    put_range("width", &s->width);
    put_range("height", &s->height);
    printf("smallest    %" PRIu32 " x %" PRIu32 ", %s\n", small->width, small->height,
           shown_text(sample_name(s, s->smallest, a, sizeof a)));
    printf("largest     %" PRIu32 " x %" PRIu32 ", %s\n", large->width, large->height,
           shown_text(sample_name(s, s->largest, b, sizeof b)));
}

static void put_channels(const stats *s)
{
    if (!s->decoded) return;
    printf("channels    normalise(%.2f:%.2f:%.2f/%.2f:%.2f:%.2f), of %" PRIu64 " pictures\n", s->mean[0],
           s->mean[1], s->mean[2], s->deviation[0], s->deviation[1], s->deviation[2], s->decoded);
}

static void put_duplicates(const stats *s)
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
    for (uint64_t k = 0; k < s->duplicates && k < STATS_PAIRS; k++)
        printf("            %s is %s\n", shown_text(sample_name(s, s->pair[k][1], a, sizeof a)),
               shown_text(sample_name(s, s->pair[k][0], b, sizeof b)));
    if (s->duplicates > STATS_PAIRS)
        printf("            and %" PRIu64 " more\n", s->duplicates - STATS_PAIRS);
}

void stats_print_text(const stats *s)
{
    const mr_source_info *info = mr_source_info_of(s->src);
    char all[32], least[32], most[32], median[32];
    printf("data        %s\nformat      %s\nsamples     %" PRIu64, shown_text(info->path), info->format,
           s->count - s->bad);
    if (s->bad) printf(", and %" PRIu64 " that cannot be read", s->bad);
    if (mr_source_withdrawn_count(s->src))
        printf(", and %" PRIu64 " withdrawn", mr_source_withdrawn_count(s->src));
    printf("\nbytes       %s; %s to %s each, median %s\n", size_text((double)s->bytes.total, all, sizeof all),
           size_text((double)s->bytes.least, least, sizeof least),
           size_text((double)s->bytes.most, most, sizeof most),
           size_text((double)s->bytes.median, median, sizeof median));
    put_classes(s);
    if (info->image_field >= 0 && s->count > s->bad) {
        put_pictures(s);
        put_channels(s);
    }
    put_duplicates(s);
}

/* ---- JSON ---- */
static void json_range(json_line *j, const char *key, const stats_range *r)
{
    json_object(j, key);
    json_u64(j, "least", r->least);
    json_u64(j, "median", r->median);
    json_u64(j, "most", r->most);
    json_close_object(j);
}

static void json_counts(json_line *j, const char *key, const uint64_t *counts, const char *const *names,
                        int n)
{
    json_object(j, key);
    for (int k = 0; k < n; k++)
        if (counts[k]) json_u64(j, names[k], counts[k]);
    json_close_object(j);
}

static void json_pictures(json_line *j, const stats *s)
{
    json_counts(j, "pictures", s->kinds, stats_kind_names, STATS_KINDS);
    json_counts(j, "subsampling", s->samplings, stats_sampling_names, STATS_SAMPLINGS);
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

void stats_print_json(const stats *s)
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
    for (uint32_t c = 0; c < s->classes; c++) json_text(&j, NULL, class_name(s, c, name, sizeof name));
    json_close_array(&j);
    json_array(&j, "class_samples");
    for (uint32_t c = 0; c < s->classes; c++) json_u64(&j, NULL, s->of_class[c]);
    json_close_array(&j);
    json_u64(&j, "without_class", s->unlabelled);
    if (info->image_field >= 0) json_pictures(&j, s);
    json_u64(&j, "duplicates", s->duplicates);
    json_u64(&j, "duplicates_in_other_classes", s->crossing);
    json_array(&j, "duplicate_names");
    for (uint64_t k = 0; k < s->duplicates && k < STATS_PAIRS; k++)
        json_text(&j, NULL, sample_name(s, s->pair[k][1], name, sizeof name));
    json_close_array(&j);
    json_end(&j);
}
