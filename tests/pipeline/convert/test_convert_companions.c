/* Conversions that move pixels: boxes and masks go along. A mask has 7 inside of box 0 and the box's place is
 * read off the mask that comes out, so that both are held to each other, and the mask to the numbers it was
 * made of. */
#include "base/util.h"
#include "pipeline/decode/decoders.h"
#include "tests/pipeline/pictures.h"
#include "tests/pipeline/sets.h"

enum { W = 32, H = 24, N = 8, COLUMNS = 5, INSIDE = 7, OUTSIDE = 3 };
enum { IMAGE, BOX_LABELS, BOXES, MASK, MASK_U8, MASK_PX, SEG_IDS, OTHER, FIELDS };
enum { X0 = 12, Y0 = 4, X1 = 18, Y1 = 10 }; /* box 0: where every result shows it whole, on even pixels */

typedef enum twist { FINE, IN_PIXELS, FEW_LABELS, COLOUR_MASK, SMALL_MASK } twist;

static mr_value tensor(mr_dtype dtype, uint32_t ndim, uint64_t d0, uint64_t d1, const void *data)
{
    return (mr_value){.type = MR_TYPE_TENSOR,
                      .dtype = dtype,
                      .ndim = ndim,
                      .dim = {d0, d1},
                      .data = data,
                      .bytes = (size_t)(d0 * (ndim > 1 ? d1 : 1)) * mr_dtype_bytes(dtype)};
}

static const mr_field schema[FIELDS] = {
    [IMAGE] = {.name = "image", .type = MR_TYPE_IMAGE},
    [BOX_LABELS] = {.name = "box_labels", .type = MR_TYPE_TENSOR, .dtype = MR_I64, .ndim = 1, .dim = {2}},
    [BOXES] = {.name = "boxes", .type = MR_TYPE_TENSOR, .dtype = MR_F64, .ndim = 2, .dim = {2, COLUMNS}},
    [MASK] = {.name = "mask", .type = MR_TYPE_PNG},
    [MASK_U8] = {.name = "mask.u8", .type = MR_TYPE_TENSOR, .dtype = MR_U8, .ndim = 2, .dim = {H, W}},
    [MASK_PX] = {.name = "segmentation", .type = MR_TYPE_PIXELS, .ndim = 3, .dim = {H, W, 1}},
    [SEG_IDS] = {.name = "seg_ids", .type = MR_TYPE_TENSOR, .dtype = MR_U8, .ndim = 1, .dim = {3}},
    [OTHER] = {.name = "other", .type = MR_TYPE_PNG},
};

/* Sample i: EXIF orientation i + 1. */
static const char *make_set(const char *name, twist t)
{
    mr_error err = MR_ERROR_INIT;
    mr_writer_config cfg;
    mr_writer *w;
    mr_field fields[FIELDS];
    memcpy(fields, schema, sizeof fields);
    if (t == FEW_LABELS || t == SMALL_MASK) fields[BOX_LABELS].ndim = 0;
    mr_writer_defaults(&cfg);
    cfg.field_count = FIELDS;
    cfg.fields = fields;
    cfg.force = true;
    const char *path = mrt_path("%s.mrec", name);
    MRT_OK(mr_writer_open(&w, path, &cfg, NULL, &err), &err);
    for (int i = 0; i < N; i++) {
        const mrt_jpeg_kind kind = {.h = 1, .v = 1, .orientation = i + 1};
        uint8_t mask[H * W], colour[3 * H * W] = {0};
        double scale = t == IN_PIXELS ? 1 : 0;
        double boxes[2][COLUMNS] = {{X0, Y0, X1, Y1, 1e300}, {0, 0, 2, H, -1}}; /* the other: cut away by a
                                                                                   square in the middle */
        int64_t labels[2] = {40 + i, 80 + i};
        size_t jpeg_bytes, png_bytes;
        void *png;
        for (int k = 0; k < 2 && scale == 0; k++)
            for (int c = 0; c < 4; c++) boxes[k][c] /= c % 2 ? H : W;
        for (int y = 0; y < H; y++)
            for (int x = 0; x < W; x++)
                mask[y * W + x] = x >= X0 && x < X1 && y >= Y0 && y < Y1 ? INSIDE : OUTSIDE;
        mask[0] = 99; /* turns show */
        uint8_t *jpeg = mrt_jpeg(&kind, W, H, (uint64_t)i, &jpeg_bytes);
        const mr_image gray = {W, t == SMALL_MASK ? H - 1 : H, 1, mask}, rgb = {W, H, 3, colour};
        MRT_OK(mr_image_encode_png(t == COLOUR_MASK ? &rgb : &gray, &png, &png_bytes, &err), &err);
        const mr_value values[FIELDS] = {
            [IMAGE] = {.type = MR_TYPE_JPEG, .data = jpeg, .bytes = jpeg_bytes},
            [BOX_LABELS] = tensor(MR_I64, 1, t == FEW_LABELS ? 1 : 2, 0, labels),
            [BOXES] = tensor(MR_F64, 2, 2, COLUMNS, boxes),
            [MASK] = {.type = MR_TYPE_PNG, .data = png, .bytes = png_bytes},
            [MASK_U8] = tensor(MR_U8, 2, H, W, mask),
            [MASK_PX] =
                {.type = MR_TYPE_PIXELS, .ndim = 3, .dim = {H, W, 1}, .data = mask, .bytes = sizeof mask},
            [SEG_IDS] = tensor(MR_U8, 1, 3, 0, "abc"),
            [OTHER] = {.type = MR_TYPE_PNG, .data = png, .bytes = png_bytes},
        };
        MRT_OK(mr_writer_append(w, (uint64_t)i, values, &err), &err);
        free(jpeg);
        free(png);
    }
    MRT_OK(mr_writer_finish(w, &err), &err);
    return path;
}

typedef struct setting {
    mr_store store;
    uint32_t resize;
    bool square;
    mr_to to;
} setting;

static int convert(const char *from, const char *to, setting s, mr_error *err)
{
    mr_convert_config cfg;
    mr_source *src = mrt_source(from);
    mr_convert_defaults(&cfg);
    cfg.store = s.store;
    cfg.resize = s.resize;
    cfg.center_square = s.square;
    cfg.to = s.to;
    cfg.force = true;
    cfg.workers = 2;
    cfg.max_bad = 0;
    const int rc = mr_convert(src, to, &cfg, NULL, err);
    mr_source_close(src);
    return rc;
}

static const mr_value *value_of(const mr_source *src, const mr_sample *sample, const char *name)
{
    const mr_source_info *info = mr_source_info_of(src);
    for (uint32_t k = 0; k < info->field_count; k++)
        if (strcmp(info->fields[k].name, name) == 0) return &sample->value[k];
    fail_msg("no field %s", name);
    return NULL;
}

/* Box 0 of n is where the mask has INSIDE. */
static void box_is_in_mask(const mr_value *boxes, const uint8_t *mask, uint32_t w, uint32_t h)
{
    uint32_t x0 = w, y0 = h, x1 = 0, y1 = 0;
    for (uint32_t y = 0; y < h; y++)
        for (uint32_t x = 0; x < w; x++) {
            if (mask[y * w + x] != INSIDE) continue;
            if (x < x0) x0 = x;
            if (y < y0) y0 = y;
            if (x >= x1) x1 = x + 1;
            if (y >= y1) y1 = y + 1;
        }
    MRT_TRUE(x0 < x1 && y0 < y1);
    const double *b = boxes->data;
    MRT_EQ(boxes->ndim, 2);
    MRT_EQ(boxes->dim[1], COLUMNS);
    const uint32_t want[4] = {x0, y0, x1, y1};
    for (int c = 0; c < 4; c++) {
        const double at = b[c] * (c % 2 ? h : w);
        MRT_TRUE(at > want[c] - 1e-4 && at < want[c] + 1e-4);
    }
    MRT_TRUE(b[4] == 1e300);
}

static void check(const char *path, setting s)
{
    mr_source *src = mrt_source(path);
    mr_error err = MR_ERROR_INIT;
    void *data = NULL;
    size_t room = 0;
    mri_buffer png = {0};
    MRT_EQ(mr_source_info_of(src)->count, N);
    for (uint64_t i = 0; i < N; i++) {
        mr_sample sample;
        mr_image_header picture, header;
        MRT_OK(mr_source_read(src, i, &data, &room, &sample, &err), &err);
        const mr_value *image = value_of(src, &sample, "image"), *boxes = value_of(src, &sample, "boxes");
        const mr_value *mask = value_of(src, &sample, "mask"), *u8 = value_of(src, &sample, "mask.u8"),
                       *px = value_of(src, &sample, "segmentation");
        const mr_value *labels = value_of(src, &sample, "box_labels"),
                       *ids = value_of(src, &sample, "seg_ids");
        MRT_OK(mr_value_header(image, &picture, &err), &err);
        const uint32_t w = picture.width, h = picture.height;
        const bool turned = i + 1 >= 5;
        MRT_TRUE(s.square ? w == s.resize && h == s.resize : (w > h) == !turned);
        MRT_OK(mr_value_header(mask, &header, &err), &err);
        MRT_TRUE(header.width == w && header.height == h);
        MRT_OK(mri_png_samples(mask->data, mask->bytes, &header, &png, &err), &err);
        MRT_TRUE(u8->ndim == 2 && u8->dim[0] == h && u8->dim[1] == w && px->ndim == 3 && px->dim[0] == h &&
                 px->dim[1] == w);
        assert_memory_equal(png.data, u8->data, (size_t)w * h);
        assert_memory_equal(png.data, px->data, (size_t)w * h);
        box_is_in_mask(boxes, png.data, w, h);
        const int64_t *label = labels->data;
        MRT_EQ(boxes->dim[0], s.square ? 1 : 2);
        MRT_EQ(labels->dim[0], boxes->dim[0]);
        MRT_EQ(label[0], 40 + i);
        MRT_TRUE(s.square || label[1] == 80 + (int64_t)i);
        MRT_TRUE(ids->bytes == 3 && memcmp(ids->data, "abc", 3) == 0);
        MRT_OK(mr_value_header(value_of(src, &sample, "other"), &header, &err), &err); /* a picture of its
                                                                                          own, not turned */
        MRT_TRUE(header.width == W && header.height == H);
        if (s.resize) continue;
        uint8_t upright[H * W], stored[H * W]; /* where each pixel must have gone, by what turns pictures */
        for (int k = 0; k < H * W; k++) {
            const int x = k % W, y = k / W;
            stored[k] = k == 0 ? 99 : x >= X0 && x < X1 && y >= Y0 && y < Y1 ? INSIDE : OUTSIDE;
        }
        const mri_view view = {.pixels = stored, .width = W, .height = H, .channels = 1, .stride = W};
        mri_orient(&view, (uint32_t)i + 1, upright);
        assert_memory_equal(upright, png.data, sizeof upright);
    }
    mri_buffer_free(&png);
    free(data);
    mr_source_close(src);
}

static void boxes_and_masks_follow(void **state)
{
    (void)state;
    static const setting settings[] = {
        {.store = MR_STORE_RAW},
        {.store = MR_STORE_RAW, .resize = H / 2},
        {.store = MR_STORE_RAW, .resize = H / 2, .square = true},
        {.store = MR_STORE_JPEG, .resize = H / 2},
        {.store = MR_STORE_COEF, .resize = H / 2},
    };
    mr_error err = MR_ERROR_INIT;
    make_set("follow", FINE);
    for (size_t k = 0; k < MRI_ARRAY_COUNT(settings); k++) {
        MRT_OK(convert(mrt_path("follow.mrec"), mrt_path("followed.mrec"), settings[k], &err), &err);
        check(mrt_path("followed.mrec"), settings[k]);
    }
}

static void what_does_not_move_stays(void **state)
{
    (void)state;
    mr_error err = MR_ERROR_INIT;
    mr_sample a, b;
    void *data[2] = {NULL, NULL};
    size_t room[2] = {0, 0};
    make_set("stay", COLOUR_MASK);
    MRT_OK(convert(mrt_path("stay.mrec"), mrt_path("stayed.mrec"), (setting){.store = MR_STORE_JPEG}, &err),
           &err);
    mr_source *from = mrt_source(mrt_path("stay.mrec")), *to = mrt_source(mrt_path("stayed.mrec"));
    MRT_OK(mr_source_read(from, 6, &data[0], &room[0], &a, &err), &err);
    MRT_OK(mr_source_read(to, 6, &data[1], &room[1], &b, &err), &err);
    for (uint32_t k = 0; k < FIELDS; k++) {
        const mr_value *v = value_of(to, &b, schema[k].name);
        MRT_EQ(v->bytes, a.value[k].bytes);
        assert_memory_equal(v->data, a.value[k].data, v->bytes);
    }
    for (int k = 0; k < 2; k++) free(data[k]);
    mr_source_close(from);
    mr_source_close(to);
}

static void pixels_among_members_become_png(void **state)
{
    (void)state;
    mr_error err = MR_ERROR_INIT;
    make_set("members", FINE);
    MRT_OK(convert(mrt_path("members.mrec"), mrt_path("members.tar"),
                   (setting){.store = MR_STORE_JPEG, .resize = H / 2, .to = MR_TO_TAR}, &err),
           &err);
    mr_source *src = mrt_source(mrt_path("members.tar"));
    mr_sample sample;
    void *data = NULL;
    size_t room = 0;
    mr_image_header header;
    MRT_OK(mr_source_read(src, 0, &data, &room, &sample, &err), &err);
    const mr_value *mask = value_of(src, &sample, "segmentation.png");
    MRT_OK(mr_image_header_parse(mask->data, mask->bytes, &header, &err), &err);
    MRT_TRUE(header.width == W / 2 && header.height == H / 2);
    free(data);
    mr_source_close(src);
}

static void what_cannot_follow_is_reported(void **state)
{
    (void)state;
    static const struct {
        twist twist;
        const char *says;
    } cases[] = {
        {IN_PIXELS, "field boxes, which must follow its picture: box 0 is x0 12"},
        {FEW_LABELS,
         "field box_labels, which must follow its picture: expected 2 values, one for each box; found 1"},
        {COLOUR_MASK, "field mask, which must follow its picture: PNG: expected one number"},
        {SMALL_MASK, "field mask, which must follow its picture: expected a mask of 32 x 24 pixels"},
    };
    for (size_t k = 0; k < MRI_ARRAY_COUNT(cases); k++) {
        mr_error err = MR_ERROR_INIT;
        make_set("reported", cases[k].twist);
        MRT_EQ(convert(mrt_path("reported.mrec"), mrt_path("reported-out.mrec"),
                       (setting){.store = MR_STORE_RAW, .resize = 12}, &err),
               MR_EBADSAMPLE);
        MRT_HAS(err.text, cases[k].says);
        MRT_HAS(err.text, "without --resize and --store raw");
    }
}

/* Without a second thread next to the failing one. */
static int convert_quiet(const mr_source *src, const char *to, mr_error *err)
{
    mr_convert_config cfg;
    mr_convert_defaults(&cfg);
    cfg.store = MR_STORE_RAW;
    cfg.resize = H / 2;
    cfg.center_square = cfg.force = true;
    cfg.workers = 1;
    cfg.max_bad = 0;
    return mr_convert(src, to, &cfg, NULL, err);
}

static void no_memory_is_reported_and_nothing_leaks(void **state)
{
    (void)state;
    mr_source *src = mrt_source(make_set("memory", FINE));
    for (long at = 0, failed = 1; failed && at < 5000; at += at < 300 ? 1 : 13) {
        mr_error err = MR_ERROR_INIT;
        mrt_fail_alloc_at(at);
        const int rc = convert_quiet(src, mrt_path("memory-out.mrec"), &err);
        failed = mrt_alloc_failed();
        mrt_fail_alloc_at(-1);
        MRT_TRUE(failed ? rc == MR_OK || rc == MR_ENOMEM : rc == MR_OK);
    }
    mr_source_close(src);
}

static void roles_by_name(void **state)
{
    (void)state;
    static const mr_role want[FIELDS] = {
        [BOX_LABELS] = MR_ROLE_BOX_VALUES, [BOXES] = MR_ROLE_BOXES,  [MASK] = MR_ROLE_MASK,
        [MASK_U8] = MR_ROLE_MASK,          [MASK_PX] = MR_ROLE_MASK, [SEG_IDS] = MR_ROLE_MASK};
    const mr_source_info info = {.image_field = IMAGE, .fields = schema, .field_count = FIELDS},
                         bare = {.image_field = -1, .fields = schema, .field_count = FIELDS};
    for (uint32_t k = 0; k < FIELDS; k++) {
        MRT_EQ(mr_field_role(&info, k), want[k]);
        MRT_EQ(mr_field_role(&bare, k), MR_ROLE_PLAIN);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(boxes_and_masks_follow),
        cmocka_unit_test(what_does_not_move_stays),
        cmocka_unit_test(pixels_among_members_become_png),
        cmocka_unit_test(what_cannot_follow_is_reported),
        cmocka_unit_test(no_memory_is_reported_and_nothing_leaks),
        cmocka_unit_test(roles_by_name),
    };
    return mrt_run(tests);
}
