/* run/report/set_page.c: writes a page about a data set. set_pictures.c chooses its pictures. */
#include "run/report/set_page.h"

#include <inttypes.h>
#include <math.h>
#include <stdlib.h>

#include "base/abi.h"
#include "run/page/chart.h"
#include "run/page/page.h"
#include "settings/number_put.h"

enum { BINS = 30, NAME_ROOM = 512, LABEL_ROOM = 32, CLASSES_CHARTED = 240 };

/* ---- tables ---- */

static void put_line(FILE *f, const char *what, const char *text)
{
    fprintf(f, "<tr><td>%s<td class=\"l\">", what);
    mri_page_text(f, text);
    fputc('\n', f);
}

static void put_counts(FILE *f, const char *what, const uint64_t *counts, const char *(*name)(uint32_t))
{
    char number[LABEL_ROOM];
    bool any = false;
    fprintf(f, "<tr><td>%s<td class=\"l\">", what);
    for (uint32_t k = 0; name(k); k++) {
        if (!counts[k]) continue;
        fprintf(f, "%s%s %s", any ? ", " : "", mri_number_text((double)counts[k], number), name(k));
        any = true;
    }
    fputc('\n', f);
}

static void put_channels(FILE *f, const mr_stats *s)
{
    char text[256];
    if (!s->decoded) return;
    snprintf(text, sizeof text, "normalise(%.2f:%.2f:%.2f/%.2f:%.2f:%.2f), of %" PRIu64 " pictures",
             s->mean[0], s->mean[1], s->mean[2], s->deviation[0], s->deviation[1], s->deviation[2],
             s->decoded);
    put_line(f, "channels", text);
}

static void put_summary(FILE *f, const mr_stats *s)
{
    const mr_source_info *info = mr_source_info_of(s->src);
    char text[256], bytes[32];
    fputs("<div class=\"wide\"><table>\n", f);
    put_line(f, "data", info->path);
    put_line(f, "format", info->format);
    snprintf(text, sizeof text, "%" PRIu64 "; cannot be read: %" PRIu64 "; withdrawn: %" PRIu64,
             s->count - s->bad, s->bad, mr_source_withdrawn_count(s->src));
    put_line(f, "samples", text);
    put_line(f, "bytes", mri_size_text((double)s->bytes.total, bytes, sizeof bytes));
    if (info->image_field >= 0) {
        put_counts(f, "pictures", s->kinds, mr_stats_kind_name);
        if (s->jpegs || s->kinds[2]) put_counts(f, "subsampling", s->samplings, mr_stats_sampling_name);
        snprintf(text, sizeof text,
                 "%" PRIu64 " progressive, %" PRIu64 " gray, %" PRIu64 " with alpha, %" PRIu64
                 " turned by EXIF",
                 s->progressive, s->gray, s->alpha, s->turned);
        put_line(f, "of them", text);
        put_channels(f, s);
    }
    fputs("</table></div>\n", f);
}

static void put_bound(FILE *f, const mr_stats_bound *b)
{
    char rate[2][LABEL_ROOM];
    if (!b || !b->by) return;
    mri_page_heading(f, "What limits a training");
    fputs("<p class=\"verdict\">", f);
    if (isfinite(b->step_ms))
        fprintf(f, "Bound by %s: %s samples/s.</p>\n", mr_stats_bound_name(b),
                mri_number_text(fmin(b->supply_per_s, b->trainer_per_s), rate[0]));
    else
        fprintf(f, "Bound by %s if the device takes more than %s samples/s, else by the device.</p>\n",
                mr_stats_bound_name(b), mri_number_text(b->supply_per_s, rate[0]));
    mri_page_note(
        f,
        "An estimate from short measurements on this machine: the loader alone gives %s samples/s with "
        "%" PRIu32 " workers and --augment %s, from memory; on a core a sample takes %.3f ms to decode "
        "and %.3f ms to read.",
        mri_number_text(b->loader_per_s, rate[0]), b->workers, b->augment, b->decode_ms, b->read_core_ms);
    if (isfinite(b->step_ms))
        mri_page_note(f, "%s%s%s takes %.3f ms for a step of %" PRIu32 ", %s samples/s alone.",
                      b->model ? b->model : "The given device", b->model ? " on " : "", b->device, b->step_ms,
                      b->batch, mri_number_text(b->trainer_per_s, rate[1]));
    if (b->fits_memory) mri_page_note(f, "The set fits into memory: storage limits the first epoch at most.");
    else if (isfinite(b->storage_bytes_per_s))
        mri_page_note(f, "The set is larger than memory; storage gives %s/s in one thread.",
                      mri_size_text(b->storage_bytes_per_s, rate[1], sizeof rate[1]));
    else mri_page_note(f, "The set is larger than memory; the rate of its storage is unknown.");
}

/* ---- charts ---- */

static uint64_t width_of(const mr_sample_facts *p) { return p->width; }
static uint64_t height_of(const mr_sample_facts *p) { return p->height; }
static uint64_t bytes_of(const mr_sample_facts *p) { return p->bytes; }

/* Bins of equal width, or of equal ratio where a few samples are much larger than most. */
static void put_histogram(FILE *f, const mr_stats *s, const char *title, const char *unit,
                          uint64_t (*of)(const mr_sample_facts *), const mr_stats_range *r)
{
    static const mri_chart_part part = {"samples", "a"};
    double value[BINS] = {0};
    char text[BINS][LABEL_ROOM];
    const char *label[BINS];
    const mri_chart c = {.title = title, .x = unit, .y = "samples", .from_zero = true, .y_most = NAN};
    const bool ratio = r->least > 0 && (double)r->most > 8.0 * (double)r->median;
    const double least = ratio ? log((double)r->least) : (double)r->least,
                 most = ratio ? log((double)r->most) : (double)r->most,
                 step = most > least ? (most - least) / BINS : 1;
    for (uint64_t k = 0; k < s->count; k++) {
        if (!s->sample[k].good) continue;
        const double x = (double)of(&s->sample[k]);
        const int bin = (int)(((ratio ? log(x) : x) - least) / step);
        value[bin < 0 ? 0 : bin < BINS ? bin : BINS - 1]++;
    }
    const int bins = most > least ? BINS : 1;
    for (int b = 0; b < bins; b++) {
        const double from = least + b * step;
        label[b] = mri_number_text(round(ratio ? exp(from) : from), text[b]);
    }
    mri_chart_bars(f, &c, &part, 1, value, label, (size_t)bins);
}

static void put_sizes(FILE *f, const mr_stats *s)
{
    if (s->count == s->bad) return;
    mri_page_heading(f, "Sizes");
    fputs("<div class=\"pair\">\n", f);
    if (mr_source_info_of(s->src)->image_field >= 0) {
        put_histogram(f, s, "Width", "pixels", width_of, &s->width);
        put_histogram(f, s, "Height", "pixels", height_of, &s->height);
    }
    put_histogram(f, s, "Bytes of a sample", "bytes", bytes_of, &s->bytes);
    fputs("</div>\n", f);
    mri_page_note(f,
                  "A bar begins at its label. Where the largest value is more than 8 times the median, each "
                  "bar is the same ratio wide.");
}

static void put_class_chart(FILE *f, const mr_stats *s)
{
    static const mri_chart_part part = {"samples", "a"};
    const mri_chart c = {
        .title = "Samples of each class", .x = "class", .y = "samples", .from_zero = true, .y_most = NAN};
    const uint32_t n = s->classes < CLASSES_CHARTED ? s->classes : CLASSES_CHARTED;
    double value[CLASSES_CHARTED];
    char(*text)[NAME_ROOM] = malloc((n + 1) * sizeof *text);
    const char *label[CLASSES_CHARTED];
    for (uint32_t k = 0; text && k < n; k++) {
        value[k] = (double)s->of_class[k];
        label[k] = mr_stats_class_name(s, k, text[k], LABEL_ROOM / 2);
    }
    if (text) mri_chart_bars(f, &c, &part, 1, value, label, n);
    free(text);
    if (n < s->classes) mri_page_note(f, "The first %" PRIu32 " of %" PRIu32 " classes.", n, s->classes);
    if (s->empty_classes) mri_page_note(f, "Classes without samples: %" PRIu32 ".", s->empty_classes);
    if (s->unlabelled) mri_page_note(f, "Samples without a class: %" PRIu64 ".", s->unlabelled);
}

/* ---- pictures ---- */

static void put_row(FILE *f, const mr_stats *s, const mri_shown_row *row, const char *unit)
{
    char name[NAME_ROOM], label[2 * NAME_ROOM], number[LABEL_ROOM];
    fputs("<div class=\"pictures\">\n", f);
    for (uint32_t k = 0; k < row->count; k++) {
        const mri_shown_picture *p = &row->picture[k];
        mr_stats_sample_name(s, p->sample, name, sizeof name);
        if (isnan(p->value)) snprintf(label, sizeof label, "%s", name);
        else snprintf(label, sizeof label, "%s: %s %s", name, mri_number_text(p->value, number), unit);
        if (p->jpeg) mri_page_picture(f, "image/jpeg", p->jpeg, p->bytes, label);
        else mri_page_note(f, "%s: its pixels cannot be decoded", label);
    }
    fputs("</div>\n", f);
}

static void put_classes(FILE *f, const mri_set_page *p)
{
    const mr_stats *s = p->s;
    char name[NAME_ROOM], number[LABEL_ROOM];
    if (s->classes == 0) return;
    mri_page_heading(f, "Classes");
    put_class_chart(f, s);
    if (mr_source_info_of(s->src)->image_field < 0) return;
    for (uint32_t c = 0; c < s->classes && c < SHOWN_CLASSES; c++) {
        fputs("<h3>", f);
        mri_page_text(f, mr_stats_class_name(s, c, name, sizeof name));
        fprintf(f, ", %s</h3>\n", mri_number_text((double)s->of_class[c], number));
        put_row(f, s, &p->of_class[c], "");
    }
    if (s->classes > SHOWN_CLASSES)
        mri_page_note(f, "Pictures of the first %d of %" PRIu32 " classes.", SHOWN_CLASSES, s->classes);
}

static void put_outliers(FILE *f, const mri_set_page *p)
{
    static const struct {
        const char *title, *unit;
    } kinds[OUTLIER_KINDS] = {
        [FEWEST_PIXELS] = {"Fewest pixels", "pixels"},
        [MOST_PIXELS] = {"Most pixels", "pixels"},
        [NARROWEST] = {"Narrowest", "times as wide as high"},
        [WIDEST] = {"Widest", "times as wide as high"},
        [FEWEST_BYTES] = {"Fewest bytes of a pixel: blurred, blank, or strongly compressed", "bytes"},
        [MOST_BYTES] = {"Most bytes of a pixel: noise, or weakly compressed", "bytes"},
        [DARKEST] = {"Darkest, of the decoded pictures", "of 255 on average"},
        [BRIGHTEST] = {"Brightest, of the decoded pictures", "of 255 on average"},
        [FLATTEST] = {"Least contrast, of the decoded pictures", "deviation"},
    };
    bool any = false;
    for (int k = 0; k < OUTLIER_KINDS; k++) {
        if (!p->outlier[k].count) continue;
        if (!any) mri_page_heading(f, "Outliers");
        any = true;
        fprintf(f, "<h3>%s</h3>\n", kinds[k].title);
        put_row(f, p->s, &p->outlier[k], kinds[k].unit);
    }
}

static void put_duplicates(FILE *f, const mr_stats *s)
{
    char name[NAME_ROOM];
    mri_page_heading(f, "Duplicates");
    if (s->duplicates == 0) {
        mri_page_note(f, "No sample has the bytes of an earlier one.");
        return;
    }
    mri_page_note(
        f, "Samples with the bytes of an earlier one: %" PRIu64 "; of these in another class: %" PRIu64 ".",
        s->duplicates, s->crossing);
    fputs("<div class=\"wide\"><table><tr><th>sample<th class=\"l\">is\n", f);
    for (uint64_t k = 0; k < s->duplicates && k < MR_STATS_PAIRS; k++) {
        fputs("<tr><td>", f);
        mri_page_text(f, mr_stats_sample_name(s, s->pair[k][1], name, sizeof name));
        fputs("<td class=\"l\">", f);
        mri_page_text(f, mr_stats_sample_name(s, s->pair[k][0], name, sizeof name));
        fputc('\n', f);
    }
    fputs("</table></div>\n", f);
    if (s->duplicates > MR_STATS_PAIRS)
        mri_page_note(f, "The first %d of %" PRIu64 ".", MR_STATS_PAIRS, s->duplicates);
}

static void put_shared(FILE *f, const mr_stats *s)
{
    const mr_stats_shared *h = &s->shared;
    if (h->src)
        mri_page_note(f,
                      "Samples of the part to test with that have the bytes of one of these: %" PRIu64
                      " of %" PRIu64 ".",
                      h->count, h->of);
    if (h->bad)
        mri_page_note(f, "Samples of the part to test with that cannot be read: %" PRIu64 ".", h->bad);
}

static void put_all(FILE *f, void *context)
{
    const mri_set_page *p = context;
    mri_page_begin(f, "A data set, counted by millrace");
    put_summary(f, p->s);
    put_bound(f, p->bound);
    put_sizes(f, p->s);
    put_classes(f, p);
    put_outliers(f, p);
    put_duplicates(f, p->s);
    put_shared(f, p->s);
    mri_page_end(f);
}

/* ---- the public functions ---- */

const char *mr_stats_bound_name(const mr_stats_bound *b)
{
    static const char *const names[][2] = {{"step", "the step of the network"},
                                           {"decode", "decoding"},
                                           {"read", "reading"},
                                           {"storage", "storage"}};
    for (size_t k = 0; k < sizeof names / sizeof names[0]; k++)
        if (b && b->by && strcmp(b->by, names[k][0]) == 0) return names[k][1];
    return "";
}

void mr_stats_page_defaults_sized(mr_stats_page_config *cfg, size_t struct_size)
{
    const mr_stats_page_config all = {0};
    mri_settings_give(cfg, struct_size, &all, sizeof all);
}

int mr_stats_page_write(const mr_stats *s, const mr_stats_page_config *cfg, const char *path, mr_error *err)
{
    mr_stats_page_config mine;
    MRI_GIVEN(err, s);
    MRI_GIVEN(err, path);
    mr_stats_page_defaults(&mine);
    int rc = cfg ? mri_settings_take(&mine, sizeof mine, cfg, "stats_page", err) : MR_OK;
    if (rc) return rc;
    mri_set_page *p = calloc(1, sizeof *p);
    if (!p) return mr_error_set(err, MR_ENOMEM, "out of memory for the page");
    rc = mri_set_page_take(p, s, &mine, err);
    if (rc == MR_OK) rc = mri_page_write(path, mine.force, put_all, p, err);
    mri_set_page_free(p);
    free(p);
    return rc;
}
