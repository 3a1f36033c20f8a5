/* A set with fields of every kind, and its rows checked against the pixels of the same sample. */
#include "tests/pipeline/fields/field_sets.h"

#include <math.h>

#include "tests/pipeline/sets.h"

enum { N = MRT_FIELD_SAMPLES, W = MRT_FIELD_WIDE, H = MRT_FIELD_HIGH, CLASSES = 3 };
enum { IMAGE, LABEL, BOXES, BOX_LABELS, MASK, MASK_PX, MASK_U8, TOKENS, NUMBER, SCORE, GRID, EXACT, FIELDS };

static const mr_field schema[FIELDS] = {
    [IMAGE] = {.name = "image", .type = MR_TYPE_PIXELS, .ndim = 3, .dim = {H, W, 3}},
    [LABEL] = {.name = "label", .type = MR_TYPE_INT},
    [BOXES] = {.name = "boxes", .type = MR_TYPE_TENSOR, .dtype = MR_F64},
    [BOX_LABELS] = {.name = "box_labels", .type = MR_TYPE_TENSOR, .dtype = MR_I64},
    [MASK] = {.name = "mask", .type = MR_TYPE_BYTES},
    [MASK_PX] = {.name = "mask_px", .type = MR_TYPE_PIXELS},
    [MASK_U8] = {.name = "mask_u8", .type = MR_TYPE_TENSOR, .dtype = MR_U8},
    [TOKENS] = {.name = "tokens", .type = MR_TYPE_TENSOR, .dtype = MR_I32},
    [NUMBER] = {.name = "number", .type = MR_TYPE_INT},
    [SCORE] = {.name = "score", .type = MR_TYPE_FLOAT},
    [GRID] = {.name = "grid", .type = MR_TYPE_TENSOR, .dtype = MR_I16, .ndim = 2, .dim = {2, 3}},
    [EXACT] = {.name = "pixel_boxes", .type = MR_TYPE_TENSOR, .dtype = MR_F32},
};

/* ---- what sample i holds ---- */

uint32_t mrt_token_count(uint64_t i) { return (uint32_t)(i * 5 % 9); }

static int32_t token(uint64_t i, uint32_t k) { return (int32_t)(i * 100 + k) - 700; }
static uint32_t box_count(uint64_t i) { return (uint32_t)(i % 4); }
static int64_t box_label(uint64_t i, uint32_t k) { return (int64_t)(i * 10 + k); }
static uint8_t mask_of(uint32_t x, uint32_t y) { return (uint8_t)(x * H + y + 3); }
/* corner pixels [x0, x1) x [y0, y1) */
static void box_of(uint64_t i, uint32_t k, uint32_t b[4])
{
    b[0] = (uint32_t)(i + 3 * k) % (W - 3);
    b[1] = (uint32_t)(2 * i + k) % (H - 3);
    b[2] = b[0] + 1 + (uint32_t)(i + k) % 3;
    b[3] = b[1] + 2;
}

mr_value mrt_tensor(mr_dtype dtype, const void *data, uint32_t ndim, uint64_t d0, uint64_t d1)
{
    return (mr_value){.type = MR_TYPE_TENSOR,
                      .dtype = dtype,
                      .ndim = ndim,
                      .dim = {d0, d1},
                      .data = data,
                      .bytes = (size_t)(d0 * (ndim > 1 ? d1 : 1)) * mr_dtype_bytes(dtype)};
}

static void add_sample(mr_writer *w, uint64_t i, mrt_twist t)
{
    static uint8_t image[H * W * 3], mask[H * W];
    double boxes[4 * 5];
    float pixel_boxes[4 * 4];
    int64_t labels[4];
    int32_t tokens[64];
    int16_t grid[6];
    mr_error err = MR_ERROR_INIT;
    t = i == MRT_TWISTED ? t : MRT_FINE;
    for (uint32_t y = 0; y < H; y++)
        for (uint32_t x = 0; x < W; x++) {
            uint8_t *p = image + (y * W + x) * 3;
            p[0] = (uint8_t)(x + 1), p[1] = (uint8_t)(y + 1), p[2] = (uint8_t)(i + 1);
            mask[y * W + x] = mask_of(x, y);
        }
    const uint32_t n = box_count(i) + (t == MRT_MANY_BOXES);
    uint32_t m = t == MRT_LONG_LIST ? 40 : mrt_token_count(i);
    for (uint32_t k = 0; k < n; k++) {
        uint32_t b[4];
        box_of(i, k % 3, b);
        for (int c = 0; c < 4; c++)
            boxes[5 * k + (uint32_t)c] = b[c] / (double)(c % 2 ? H : W),
                          pixel_boxes[4 * k + (uint32_t)c] = (float)b[c];
        boxes[5 * k + 4] = (double)k + 0.5;
        labels[k] = box_label(i, k);
    }
    if (t == MRT_NAN_BOX) boxes[1] = (double)NAN;
    for (uint32_t k = 0; k < m; k++) tokens[k] = token(i, k);
    if (t == MRT_PAD_AT_END) tokens[m++] = 9;
    for (uint32_t k = 0; k < 6; k++) grid[k] = (int16_t)(i * 6 + k);
    const mr_image small = {
        .width = W, .height = t == MRT_SMALL_MASK ? H - 1 : H, .channels = 1, .pixels = mask};
    const mr_image colour = {.width = W, .height = H, .channels = 3, .pixels = image};
    void *png;
    size_t png_bytes;
    if (t == MRT_JPEG_MASK) MRT_OK(mr_image_encode_jpeg(&colour, 90, &png, &png_bytes, &err), &err);
    else MRT_OK(mr_image_encode_png(t == MRT_COLOUR_MASK ? &colour : &small, &png, &png_bytes, &err), &err);
    const mr_value values[FIELDS] = {
        [IMAGE] = {.type = MR_TYPE_PIXELS, .ndim = 3, .dim = {H, W, 3}, .data = image, .bytes = sizeof image},
        [LABEL] = {.type = MR_TYPE_INT, .i = (int64_t)(i % CLASSES)},
        [BOXES] = mrt_tensor(MR_F64, boxes, 2, n, 5),
        [BOX_LABELS] = mrt_tensor(MR_I64, labels, 1, n - (t == MRT_FEW_VALUES), 0),
        [MASK] = {.type = MR_TYPE_BYTES, .data = png, .bytes = t == MRT_NO_MASK ? 0 : png_bytes},
        [MASK_PX] = {.type = MR_TYPE_PIXELS, .ndim = 3, .dim = {H, W, 1}, .data = mask, .bytes = sizeof mask},
        [MASK_U8] = mrt_tensor(MR_U8, mask, 2, H, W),
        [TOKENS] = mrt_tensor(MR_I32, tokens, t == MRT_FLAT_LIST ? 2 : 1, m, 1),
        [NUMBER] = {.type = MR_TYPE_INT, .i = -5 + (int64_t)i},
        [SCORE] = {.type = MR_TYPE_FLOAT, .f = (double)i / 8},
        [GRID] = mrt_tensor(MR_I16, grid, 2, 2, 3),
        [EXACT] = mrt_tensor(MR_F32, pixel_boxes, 2, n, 4),
    };
    MRT_OK(mr_writer_append(w, i, values, &err), &err);
    free(png);
}

mr_source *mrt_field_set(const char *name, mrt_twist t)
{
    mr_writer *w = mrt_writer(name, schema, FIELDS, CLASSES);
    for (uint64_t i = 0; i < N; i++) add_sample(w, i, t);
    return mrt_written(w, name);
}

const mr_loader_field mrt_followers[4] = {
    {.name = "boxes", .role = MR_ROLE_BOXES, .most = 3, .pad = -2},
    {.name = "box_labels", .role = MR_ROLE_BOX_VALUES, .pad = -1},
    {.name = "mask", .role = MR_ROLE_MASK, .pad = 255},
    {.name = "tokens", .role = MR_ROLE_PLAIN, .most = 10, .pad = 9},
};

mr_loader_config mrt_field_settings(const mr_loader_field *fields, uint32_t count)
{
    return mrt_training(5, 2, "padcrop(3),flip", fields, count);
}

void mrt_refused_field(const mr_source *src, mr_loader_field f, int code, const char *text)
{
    const mr_loader_config cfg = mrt_field_settings(&f, 1);
    mrt_refused(src, &cfg, code, text);
}

/* ---- checks of one row against the batch's own pixels ---- */

/* Columns (step 3, stride 1) or rows of the result that show a stored coordinate in [lo, hi). */
static bool seen_span(const uint8_t *pixels, bool rows, uint32_t lo, uint32_t hi, uint32_t *first,
                      uint32_t *end)
{
    bool any = false;
    for (uint32_t at = 0; at < (rows ? H : W); at++) {
        bool in = false;
        for (uint32_t other = 0; other < (rows ? W : H); other++) {
            const uint8_t *p = pixels + (rows ? at * W + other : other * W + at) * 3;
            const uint32_t c = rows ? p[1] : p[0];
            in |= p[2] && c >= lo + 1 && c < hi + 1;
        }
        if (in && !any) *first = at;
        if (in) *end = at + 1;
        any |= in;
    }
    return any;
}

void mrt_near(float found, double expected) { MRT_TRUE(fabs((double)found - expected) < 1e-6); }

/* Expected boxes of sample i into out (columns numbers each), their numbers into which. */
void mrt_box_of(uint64_t i, uint32_t k, uint32_t out[4]) { box_of(i, k, out); }

uint32_t mrt_expected_boxes(const uint8_t *pixels, uint64_t i, double out[4][4], uint32_t *which)
{
    uint32_t kept = 0;
    for (uint32_t k = 0; k < box_count(i); k++) {
        uint32_t b[4], x0 = 0, x1 = 0, y0 = 0, y1 = 0;
        box_of(i, k, b);
        if (!seen_span(pixels, false, b[0], b[2], &x0, &x1) || !seen_span(pixels, true, b[1], b[3], &y0, &y1))
            continue;
        const double e[4] = {x0 / (double)W, y0 / (double)H, x1 / (double)W, y1 / (double)H};
        memcpy(out[kept], e, sizeof e);
        which[kept++] = k;
    }
    return kept;
}

void mrt_check_boxes(const mr_batch *b, uint32_t i, const mr_batch_field *boxes, const mr_batch_field *values)
{
    double e[4][4];
    uint32_t which[4];
    const uint32_t n = mrt_expected_boxes(b->pixels + (size_t)i * H * W * 3, b->ids[i], e, which);
    const float *row = (const float *)boxes->data + (size_t)i * boxes->width * 5;
    const int64_t *label = (const int64_t *)values->data + (size_t)i * values->width;
    MRT_EQ(boxes->length[i], n);
    MRT_EQ(values->length[i], n);
    for (uint32_t k = 0; k < n; k++) {
        for (int c = 0; c < 4; c++) mrt_near(row[5 * k + (uint32_t)c], e[k][c]);
        mrt_near(row[5 * k + 4], which[k] + 0.5);
        MRT_EQ(label[k], box_label(b->ids[i], which[k]));
    }
    for (uint32_t k = 5 * n; k < 5 * boxes->width; k++) mrt_near(row[k], -2);
    for (uint32_t k = n; k < values->width; k++) MRT_EQ(label[k], -1);
}

void mrt_check_mask(const mr_batch *b, uint32_t i, const mr_batch_field *f, uint8_t outside)
{
    const uint8_t *m = (const uint8_t *)f->data + (size_t)i * H * W, *p = b->pixels + (size_t)i * H * W * 3;
    for (uint32_t k = 0; k < H * W; k++, p += 3) MRT_EQ(m[k], p[2] ? mask_of(p[0] - 1u, p[1] - 1u) : outside);
}

void mrt_check_tokens(const mr_batch *b, uint32_t i, uint64_t id, const mr_batch_field *f, int32_t pad)
{
    const int32_t *row = (const int32_t *)f->data + (size_t)i * f->width;
    MRT_EQ(f->length[i], mrt_token_count(id));
    MRT_TRUE(b->count > i);
    for (uint32_t k = 0; k < f->width; k++) MRT_EQ(row[k], k < mrt_token_count(id) ? token(id, k) : pad);
}
