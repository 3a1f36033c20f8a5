/* formats/text/source_pixels.c: a table of pixels: MNIST and its kin as text, a gray square picture in each
 * row.
 *
 *   label,1x1,1x2,...        or label,pixel0,pixel1,...: by such a first line it is known; by --format pixels
 *                            without one
 *   5,0,0,3,18,253,...       the class, then side * side numbers from 0 to 255, row by row
 *
 * Rows are parsed once, when the set is opened, into a file without a name (spill.h): a sample is then read
 * like one of IDX. */
#include <errno.h>
#include <limits.h>
#include <stdio.h>
#include <strings.h>
#include <xxhash.h>

#include "base/util.h"
#include "formats/source/source.h"
#include "formats/source/value.h"
#include "formats/storage/storage.h"
#include "formats/text/csv.h"
#include "formats/text/tables.h"

typedef struct pixels { /* fixed after open */
    mri_spill spill;
    int32_t *label;
    uint64_t count, cap;
    int32_t least, largest;
    uint32_t side;
    size_t sample_bytes;
    uint8_t *row; /* while reading */
    uint64_t print;
    char report_text[64];
} pixels;

static int no_memory(const mr_source *src, mr_error *err)
{
    return mri_error_place(err, mr_error_set(err, MR_ENOMEM, "no memory for a table of pixels"), src->path,
                           MR_NOWHERE, MR_NOWHERE);
}

static bool pixels_probe(const mri_probe *p)
{
    static const char *const first[] = {"label,1x1,1x2,", "label,pixel0,pixel1,", "label,pixel1,pixel2,",
                                        "label,pixel_0,pixel_1,"};
    if (p->is_folder) return false;
    for (size_t k = 0; k < MRI_ARRAY_COUNT(first); k++) {
        const size_t n = strlen(first[k]);
        if (p->inner_bytes > n && strncasecmp((const char *)p->inner, first[k], n) == 0) return true;
    }
    return false;
}

/* ---- rows ---- */
static bool number(const char *text, long most, long *out)
{
    char *end;
    errno = 0;
    *out = strtol(text, &end, 10);
    while (*end == ' ') end++;
    return end > text && *end == '\0' && !errno && *out >= 0 && *out <= most;
}

static int bad_place(const mri_csv *c, uint32_t at, const char *expected, mr_error *err)
{
    char shown[64];
    return mri_text_error_at(&c->text, err, MR_EFORMAT, c->line, "column %u: expected %s, found '%s'", at + 1,
                             expected, mr_text_shown(mri_csv_place(c, at), shown, sizeof shown));
}

static int begin(const mr_source *src, pixels *x, const mri_csv *c, mr_error *err)
{
    while ((x->side + 1) * (x->side + 1) < c->count) x->side++; /* at most MRI_CSV_FIELDS columns */
    x->sample_bytes = (size_t)x->side * x->side;
    if (x->side == 0 || x->sample_bytes != c->count - 1)
        return mri_text_error_at(&c->text, err, MR_EUNSUPPORTED, c->line,
                                 "expected the class and as many pixels as a gray square has (784 for "
                                 "28 x 28), found %u columns",
                                 c->count);
    x->row = malloc(x->sample_bytes);
    return x->row ? MR_OK : no_memory(src, err);
}

static int make_room(const mr_source *src, pixels *x, const mr_source_config *cfg, mr_error *err)
{
    if (x->count < x->cap) return MR_OK;
    const uint64_t cap = x->cap ? 2 * x->cap : 1024;
    const int rc =
        mri_source_budget(cfg, cap * sizeof *x->label + mri_spill_memory(&x->spill), src->path, err);
    if (rc) return rc;
    void *larger = realloc(x->label, cap * sizeof *x->label);
    if (!larger) return no_memory(src, err);
    x->label = larger;
    x->cap = cap;
    return MR_OK;
}

static int add_row(const mr_source *src, pixels *x, const mri_csv *c, const mr_source_config *cfg,
                   mr_error *err)
{
    long v;
    if (c->count - 1 != x->sample_bytes)
        return mri_text_error_at(&c->text, err, MR_EFORMAT, c->line,
                                 "expected %zu columns as in the first line, found %u", x->sample_bytes + 1,
                                 c->count);
    if (!number(mri_csv_place(c, 0), INT32_MAX - 1, &v)) return bad_place(c, 0, "a class from 0", err);
    const int rc = make_room(src, x, cfg, err);
    if (rc) return rc;
    x->label[x->count++] = (int32_t)v;
    if (v < x->least) x->least = (int32_t)v;
    if (v > x->largest) x->largest = (int32_t)v;
    for (uint32_t k = 1; k < c->count; k++) {
        if (!number(mri_csv_place(c, k), 255, &v)) return bad_place(c, k, "a pixel from 0 to 255", err);
        x->row[k - 1] = (uint8_t)v;
    }
    x->print =
        XXH3_64bits_withSeed(x->row, x->sample_bytes, mri_mix64(x->print ^ (uint64_t)x->label[x->count - 1]));
    return mri_spill_write(&x->spill, x->row, x->sample_bytes, err);
}

static int read_rows(const mr_source *src, pixels *x, mri_csv *c, const mr_source_config *cfg, mr_error *err)
{
    long ignored;
    int rc = mri_csv_next(c, err);
    if (!rc) rc = begin(src, x, c, err);
    if (!rc && number(mri_csv_place(c, 0), LONG_MAX, &ignored))
        rc = add_row(src, x, c, cfg, err); /* else names of columns */
    while (!rc) {
        rc = mri_csv_next(c, err);
        if (!rc) rc = add_row(src, x, c, cfg, err);
    }
    if (rc != MR_EEND) return rc;
    if (x->count > 0) return mri_spill_finish(&x->spill, err);
    return mri_error_place(err,
                           mr_error_set(err, MR_EFORMAT, "expected rows of a class and pixels, found none"),
                           src->path, MR_NOWHERE, MR_NOWHERE);
}

/* ---- open, close ---- */
static int settle_labels(mr_source *src, pixels *x, const mr_source_config *cfg, mr_error *err)
{
    const int64_t offset = cfg->label_offset != MR_LABEL_AUTO ? cfg->label_offset : 0;
    int64_t least, largest;
    if (__builtin_sub_overflow((int64_t)x->least, offset, &least) || least < 0 ||
        __builtin_sub_overflow((int64_t)x->largest, offset, &largest) || largest >= INT32_MAX)
        return mri_error_place(
            err,
            mr_error_set(err, MR_EFORMAT,
                         "classes are %d to %d: with this label offset expected 0 to 2147483646", x->least,
                         x->largest),
            src->path, MR_NOWHERE, MR_NOWHERE);
    for (uint64_t k = 0; k < x->count; k++) x->label[k] = (int32_t)(x->label[k] - offset);
    src->info.class_count = (uint32_t)largest + 1;
    src->info.label_offset = offset;
    src->labels.min = x->least;
    src->labels.max = x->largest;
    if (!offset) return MR_OK;
    snprintf(x->report_text, sizeof x->report_text, "%lld is subtracted from every class", (long long)offset);
    src->info.told = x->report_text;
    return MR_OK;
}

static void fill_info(mr_source *src, const pixels *x)
{
    mr_source_info *info = &src->info;
    info->format = "pixels";
    info->count = x->count;
    info->height = info->width = x->side;
    info->channels = 1;
    info->file_count = 1;
    info->max_extent_bytes = x->sample_bytes;
    info->total_bytes = x->count * x->sample_bytes;
    info->memory_bytes = sizeof *x + x->cap * sizeof *x->label + mri_spill_memory(&x->spill);
    info->fingerprint = mri_mix64(x->print ^ (uint64_t)info->label_offset);
    mri_source_set_image_label(src, mri_field_pixels("image", x->side, x->side, 1));
}

static int pixels_open(mr_source *src, const mr_source_config *cfg, mr_error *err)
{
    pixels *x = calloc(1, sizeof *x);
    if (!x) return no_memory(src, err);
    x->spill.fd = -1;
    x->least = INT32_MAX;
    src->state = x;
    if (cfg->image_key || cfg->label_key)
        return mr_error_set(
            err, MR_EINVAL,
            "pixels: the class is the first column, the picture all others: leave --%s-key out",
            cfg->image_key ? "image" : "label");
    mri_csv c;
    int rc = mri_spill_open(&x->spill, cfg->memory_bytes / 2, err);
    if (!rc) rc = mri_csv_open(&c, src->path, err);
    if (rc) return rc;
    rc = read_rows(src, x, &c, cfg, err);
    mri_csv_close(&c);
    free(x->row);
    x->row = NULL;
    if (!rc) rc = settle_labels(src, x, cfg, err);
    if (!rc) fill_info(src, x);
    return rc;
}

static void pixels_close(mr_source *src)
{
    pixels *x = src->state;
    if (!x) return;
    mri_spill_close(&x->spill);
    free(x->label);
    free(x);
}

/* ---- the source ---- */
static int pixels_extent(const mr_source *src, uint64_t sample, mr_extent *out, mr_error *err)
{
    (void)err;
    const pixels *x = src->state;
    *out = (mr_extent){0, sample * x->sample_bytes, x->sample_bytes};
    return MR_OK;
}

static int pixels_label(const mr_source *src, uint64_t sample, int64_t *out)
{
    *out = ((const pixels *)src->state)->label[sample];
    return MR_OK;
}

static int pixels_file_at(const mr_source *src, uint32_t file, mr_source_file *out)
{
    (void)file;
    const pixels *x = src->state;
    *out =
        (mr_source_file){.path = src->path, .fd = x->spill.fd, .bytes = x->spill.bytes, .direct_ok = false};
    return MR_OK;
}

static void pixels_sample_path(const mr_source *src, uint64_t sample, char *buf, size_t buf_bytes)
{
    (void)sample;
    snprintf(buf, buf_bytes, "%s", src->path);
}

static int pixels_parse(const mr_source *src, uint64_t sample, const void *data, size_t bytes, mr_sample *out,
                        mr_error *err)
{
    const pixels *x = src->state;
    if (bytes != x->sample_bytes)
        return mri_error_place(
            err, mr_error_set(err, MR_EFORMAT, "expected %zu pixels, found %zu", x->sample_bytes, bytes),
            src->path, MR_NOWHERE, sample);
    out->value_count = 2;
    out->value[0] = (mr_value){.type = MR_TYPE_PIXELS,
                               .planes = MR_HWC,
                               .ndim = 3,
                               .dim = {x->side, x->side, 1},
                               .data = data,
                               .bytes = bytes};
    out->value[1] = (mr_value){.type = MR_TYPE_INT, .i = x->label[sample]};
    return MR_OK;
}

const mri_source_ops mri_source_pixels = {
    .name = "pixels",
    .help =
        "a table in text with the class and the pixels of a gray square picture in each row, as MNIST comes",
    .probe = pixels_probe,
    .open = pixels_open,
    .close = pixels_close,
    .extent = pixels_extent,
    .label = pixels_label,
    .file_at = pixels_file_at,
    .sample_path = pixels_sample_path,
    .parse = pixels_parse,
};
