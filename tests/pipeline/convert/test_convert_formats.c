/* Tests of what mr_convert() makes of samples in TFRecord files and tar archives: every type of field, the
 * features and members it becomes, and the way back through our own readers. The Examples and archives are
 * taken apart here piece by piece. */
#include <sys/stat.h>
#include <unistd.h>

#include "formats/arrays/npy.h"
#include "formats/tar/tar.h"
#include "formats/tfrecord/example.h"
#include "formats/tfrecord/tfrecord.h"
#include "tests/pipeline/convert/converted.h"
#include "tests/pipeline/pictures.h"

enum { COUNT = 5, SIDE = 12 };

/* ---- a record file with fields of all types ---- */
enum {
    IMAGE,
    LABEL,
    BOXES,
    BOX_LABELS,
    MASK,
    AGE,
    SCORE,
    CAPTION,
    NOTE,
    BLOB,
    IDS,
    WIDE,
    HALF,
    BRAIN,
    FIELDS
};

static const mr_field fields[FIELDS] = {
    [IMAGE] = {.name = "image", .type = MR_TYPE_IMAGE},
    [LABEL] = {.name = "label", .type = MR_TYPE_INT},
    [BOXES] = {.name = "boxes", .type = MR_TYPE_TENSOR, .dtype = MR_F64},
    [BOX_LABELS] = {.name = "box_labels", .type = MR_TYPE_TENSOR, .dtype = MR_I16},
    [MASK] = {.name = "mask", .type = MR_TYPE_PIXELS},
    [AGE] = {.name = "Age", .type = MR_TYPE_INT},
    [SCORE] = {.name = "score", .type = MR_TYPE_FLOAT},
    [CAPTION] = {.name = "caption", .type = MR_TYPE_TEXT},
    [NOTE] = {.name = "note.txt", .type = MR_TYPE_TEXT},
    [BLOB] = {.name = "blob", .type = MR_TYPE_BYTES},
    [IDS] = {.name = "ids", .type = MR_TYPE_TENSOR, .dtype = MR_U8, .ndim = 1, .dim = {3}},
    [WIDE] = {.name = "wide", .type = MR_TYPE_TENSOR, .dtype = MR_F64, .ndim = 2, .dim = {2, 2}},
    [HALF] = {.name = "half", .type = MR_TYPE_TENSOR, .dtype = MR_F16},
    [BRAIN] = {.name = "brain", .type = MR_TYPE_TENSOR, .dtype = MR_BF16, .ndim = 1, .dim = {2}},
};
static const char *const names[] = {"ant", "bee", "cat"};

static const double wide[4] = {0.5, 1.0 / 3, -2, 1e300};
static const uint16_t half[3] = {0x3c00, 0xc500, 0x0001}; /* 1, -5, 2^-24 */
static const uint16_t brain[2] = {0x3f80, 0xc0a0};        /* 1, -5 */
static const uint8_t ids[3] = {0, 200, 7};

typedef struct set { /* what went in */
    uint8_t *jpeg[COUNT];
    size_t jpeg_bytes[COUNT];
    uint8_t mask[SIDE * SIDE];
    double boxes[4 * COUNT];
    int16_t box_labels[COUNT];
} set;

static mr_value tensor(mr_dtype dtype, uint32_t ndim, uint64_t d0, uint64_t d1, const void *data)
{
    return (mr_value){.type = MR_TYPE_TENSOR,
                      .dtype = dtype,
                      .ndim = ndim,
                      .dim = {d0, ndim > 1 ? d1 : 0},
                      .data = data,
                      .bytes = (size_t)(d0 * (ndim > 1 ? d1 : 1)) * mr_dtype_bytes(dtype)};
}

static mr_value text(mr_type type, const char *data)
{
    return (mr_value){.type = type, .data = data, .bytes = strlen(data)};
}

/* Sample k: k boxes, label k % 3. */
static void fill(set *s, int k, mr_value values[FIELDS])
{
    values[IMAGE] = (mr_value){.type = MR_TYPE_JPEG, .data = s->jpeg[k], .bytes = s->jpeg_bytes[k]};
    values[LABEL] = (mr_value){.type = MR_TYPE_INT, .i = k % 3};
    values[BOXES] = tensor(MR_F64, 2, (uint64_t)k, 4, s->boxes);
    values[BOX_LABELS] = tensor(MR_I16, 1, (uint64_t)k, 0, s->box_labels);
    values[MASK] = (mr_value){
        .type = MR_TYPE_PIXELS, .ndim = 3, .dim = {SIDE, SIDE, 1}, .data = s->mask, .bytes = sizeof s->mask};
    values[AGE] = (mr_value){.type = MR_TYPE_INT, .i = -7 - k};
    values[SCORE] = (mr_value){.type = MR_TYPE_FLOAT, .f = 0.1};
    values[CAPTION] = text(MR_TYPE_TEXT, "a cat");
    values[NOTE] = text(MR_TYPE_TEXT, "");
    values[BLOB] = text(MR_TYPE_BYTES, "\x01\xff");
    values[IDS] = tensor(MR_U8, 1, 3, 0, ids);
    values[WIDE] = tensor(MR_F64, 2, 2, 2, wide);
    values[HALF] = tensor(MR_F16, 1, 3, 0, half);
    values[BRAIN] = tensor(MR_BF16, 1, 2, 0, brain);
}

static void set_make(set *s)
{
    static const mrt_jpeg_kind kind = {.h = 2, .v = 2};
    for (int k = 0; k < COUNT; k++)
        s->jpeg[k] = mrt_jpeg(&kind, 30 + (uint32_t)k, 20, (uint64_t)k, &s->jpeg_bytes[k]);
    mrt_noise(s->mask, sizeof s->mask, 5);
    for (int k = 0; k < 4 * COUNT; k++) s->boxes[k] = k / 64.0;
    for (int k = 0; k < COUNT; k++) s->box_labels[k] = (int16_t)(100 - k);
}

static void set_free(set *s)
{
    for (int k = 0; k < COUNT; k++) free(s->jpeg[k]);
}

static void write_record_file(set *s, const char *path, const mr_field *schema, uint32_t from,
                              uint32_t field_count)
{
    mr_writer_config cfg;
    mr_writer *w;
    mr_error err = MR_ERROR_INIT;
    mr_value values[FIELDS];
    mr_writer_defaults(&cfg);
    cfg.fields = schema;
    cfg.field_count = field_count;
    cfg.class_count = from <= LABEL ? 3 : 0;
    cfg.class_names = names;
    MRT_OK(mr_writer_open(&w, path, &cfg, NULL, &err), &err);
    for (int k = 0; k < COUNT; k++) {
        fill(s, k, values);
        MRT_OK(mr_writer_append(w, (uint64_t)k, values + from, &err), &err);
    }
    MRT_OK(mr_writer_finish(w, &err), &err);
}

static void convert(const char *from, const char *to, mr_to kind, mr_store store)
{
    mr_error err = MR_ERROR_INIT;
    mr_convert_config cfg;
    mr_convert_result res;
    mr_source *src = mrt_source_alone(from);
    mr_convert_defaults(&cfg);
    cfg.to = kind;
    cfg.store = store;
    MRT_OK(mr_convert(src, to, &cfg, &res, &err), &err);
    MRT_EQ(res.records, mr_source_info_of(src)->count);
    MRT_EQ(res.bad, 0);
    struct stat st;
    MRT_EQ(stat(to, &st), 0);
    MRT_EQ(st.st_size, res.bytes_out);
    mr_source_close(src);
}

/* ---- taking Examples apart ---- */
static mr_error none = MR_ERROR_INIT;

/* Data of record k. */
static mri_span record(const uint8_t *file, size_t bytes, int k)
{
    for (size_t at = 0; at < bytes; k--) {
        uint64_t n;
        MRT_TRUE(mri_tfrecord_length(file + at, &n));
        MRT_EQ(mri_le32(file + at + MRI_TFRECORD_HEAD + n),
               mri_tfrecord_crc(file + at + MRI_TFRECORD_HEAD, (size_t)n));
        if (k == 0) return (mri_span){file + at + MRI_TFRECORD_HEAD, (size_t)n};
        at += MRI_TFRECORD_HEAD + (size_t)n + MRI_TFRECORD_TAIL;
    }
    fail_msg("no such record");
    return (mri_span){0};
}

static mri_feature feature(mri_span example, const char *key, mri_feature_kind kind)
{
    mri_feature f;
    MRT_OK(mri_example_pick(example.data, example.bytes, &key, 1, &f, &none), &none);
    if (f.kind != kind) fail_msg("feature %s: kind %d", key, f.kind);
    return f;
}

static void has_bytes(mri_span example, const char *key, const void *data, size_t bytes)
{
    const mri_feature f = feature(example, key, MRI_FEATURE_BYTES);
    mri_span s;
    size_t count;
    MRT_OK(mri_feature_bytes(&f, &s, 1, &count, &none), &none);
    MRT_EQ(count, 1);
    MRT_EQ(s.bytes, bytes);
    assert_memory_equal(s.data, data, bytes);
}

static void has_text(mri_span example, const char *key, const char *want)
{
    has_bytes(example, key, want, strlen(want));
}

static void has_ints(mri_span example, const char *key, size_t want_count, const int64_t *want)
{
    const mri_feature f = feature(example, key, MRI_FEATURE_INTS);
    int64_t found[16];
    size_t count;
    MRT_OK(mri_feature_ints(&f, found, 16, &count, &none), &none);
    MRT_EQ(count, want_count);
    for (size_t k = 0; k < count; k++) MRT_EQ(found[k], want[k]);
}

static void has_int(mri_span example, const char *key, int64_t want) { has_ints(example, key, 1, &want); }

static void has_floats(mri_span example, const char *key, size_t want_count, const float *want)
{
    const mri_feature f = feature(example, key, MRI_FEATURE_FLOATS);
    float found[16];
    size_t count;
    MRT_OK(mri_feature_floats(&f, found, 16, &count, &none), &none);
    MRT_EQ(count, want_count);
    for (size_t k = 0; k < count; k++) MRT_TRUE(found[k] == want[k]);
}

static void has_none(mri_span example, const char *key) { feature(example, key, MRI_FEATURE_NONE); }

static void mask_is(const set *s, const void *data, size_t bytes)
{
    const mr_value v = mrt_encoded(data, bytes);
    mr_image image;
    MRT_EQ(mr_image_sniff(data, bytes), MR_TYPE_PNG);
    MRT_OK(mr_image_decode(&v, NULL, &image, &none), &none);
    MRT_EQ(image.channels, 1);
    assert_memory_equal(image.pixels, s->mask, sizeof s->mask);
    mr_image_free(&image);
}

static void every_field_becomes_a_feature(void **state)
{
    (void)state;
    set s;
    set_make(&s);
    write_record_file(&s, mrt_path("all.mrec"), fields, 0, FIELDS);
    convert(mrt_path("all.mrec"), mrt_path("all.tfrecord"), MR_TO_TFRECORD, MR_STORE_JPEG);
    size_t bytes;
    uint8_t *file = mrt_read_file(mrt_path("all.tfrecord"), &bytes);
    for (int k = 0; k < COUNT; k++) {
        const mri_span e = record(file, bytes, k);
        const float f = 0.1f, floats[4] = {0.5f, (float)(1.0 / 3), -2, (float)1e300},
                    halves[3] = {1, -5, 0x1p-24f};
        has_bytes(e, "image/encoded", s.jpeg[k], s.jpeg_bytes[k]);
        has_text(e, "image/format", "jpeg");
        has_int(e, "image/height", 20);
        has_int(e, "image/width", 30 + k);
        has_int(e, "image/channels", 3);
        has_int(e, "image/class/label", k % 3);
        has_text(e, "image/class/text", names[k % 3]);
        static const char *const sides[] = {"image/object/bbox/xmin", "image/object/bbox/ymin",
                                            "image/object/bbox/xmax", "image/object/bbox/ymax"};
        for (int side = 0; side < 4; side++) {
            float column[COUNT];
            for (int b = 0; b < k; b++) column[b] = (float)s.boxes[4 * b + side];
            has_floats(e, sides[side], (size_t)k, column);
        }
        int64_t box_labels[COUNT];
        for (int b = 0; b < k; b++) box_labels[b] = s.box_labels[b];
        has_ints(e, "image/object/class/label", (size_t)k, box_labels);
        has_text(e, "image/segmentation/class/format", "png");
        has_int(e, "Age", -7 - k);
        has_floats(e, "score", 1, &f);
        has_text(e, "caption", "a cat");
        has_text(e, "note.txt", "");
        has_text(e, "blob", "\x01\xff");
        has_ints(e, "ids", 3, (int64_t[]){0, 200, 7});
        has_none(e, "ids/shape");
        has_floats(e, "wide", 4, floats);
        has_ints(e, "wide/shape", 2, (int64_t[]){2, 2});
        has_floats(e, "half", 3, halves);
        has_ints(e, "half/shape", 1, (int64_t[]){3});
        has_floats(e, "brain", 2, (float[]){1, -5});
        has_none(e, "image.entries");
        const mri_feature m = feature(e, "image/segmentation/class/encoded", MRI_FEATURE_BYTES);
        mri_span mask;
        size_t count;
        MRT_OK(mri_feature_bytes(&m, &mask, 1, &count, &none), &none);
        mask_is(&s, mask.data, mask.bytes);
    }
    free(file);
    set_free(&s);
}

/* Settings, boxes and names are in the Examples: through a record file and back they are the same bytes. */
static void a_round_trip_gives_the_same_bytes(void **state)
{
    (void)state;
    set s;
    set_make(&s);
    write_record_file(&s, mrt_path("trip.mrec"), fields, 0, BOX_LABELS + 1);
    convert(mrt_path("trip.mrec"), mrt_path("trip-1"), MR_TO_TFRECORD, MR_STORE_JPEG);
    convert(mrt_path("trip-1"), mrt_path("trip-2.mrec"), MR_TO_MREC, MR_STORE_JPEG);
    convert(mrt_path("trip-2.mrec"), mrt_path("trip-3"), MR_TO_TFRECORD, MR_STORE_JPEG);
    convert(mrt_path("trip-1"), mrt_path("trip-4"), MR_TO_TFRECORD, MR_STORE_JPEG);
    mrt_same_files(mrt_path("trip-1"), mrt_path("trip-3"));
    mrt_same_files(mrt_path("trip-1"), mrt_path("trip-4"));
    /* coefficients are the JPEG with the same coefficients, whichever kind it goes to */
    convert(mrt_path("trip.mrec"), mrt_path("trip-coef.mrec"), MR_TO_MREC, MR_STORE_COEF);
    convert(mrt_path("trip-coef.mrec"), mrt_path("trip-jpeg.mrec"), MR_TO_MREC, MR_STORE_JPEG);
    convert(mrt_path("trip-coef.mrec"), mrt_path("trip-5"), MR_TO_TFRECORD, MR_STORE_JPEG);
    convert(mrt_path("trip-jpeg.mrec"), mrt_path("trip-6"), MR_TO_TFRECORD, MR_STORE_JPEG);
    mrt_same_files(mrt_path("trip-5"), mrt_path("trip-6"));
    set_free(&s);
}

/* ---- taking archives apart ---- */
typedef struct archive {
    uint8_t *data;
    size_t bytes;
} archive;

static int get(void *context, uint64_t offset, size_t bytes, const uint8_t **out, mr_error *err)
{
    const archive *a = context;
    (void)err;
    MRT_TRUE(offset <= a->bytes && bytes <= a->bytes - offset);
    *out = a->data + offset;
    return MR_OK;
}

static archive archive_read(const char *path)
{
    archive a;
    a.data = mrt_read_file(path, &a.bytes);
    MRT_EQ(a.bytes % 10240, 0);
    return a;
}

/* The data of a member; NULL: not there. */
static const uint8_t *member(archive *a, const char *name, size_t *bytes)
{
    mri_tar t;
    mri_tar_member m;
    int rc;
    const uint8_t *found = NULL;
    mri_tar_init(&t, get, a, 0, a->bytes);
    while ((rc = mri_tar_next(&t, &m, &none)) == MR_OK) {
        MRT_EQ(m.kind, MRI_TAR_FILE);
        if (strcmp(m.name, name) != 0) continue;
        MRT_TRUE(found == NULL);
        found = a->data + m.data;
        *bytes = (size_t)m.bytes;
    }
    MRT_EQ(rc, MR_EEND);
    MRT_OK(mri_tar_finish(&t, &none), &none);
    MRT_EQ(t.end_blocks, 2);
    return found;
}

static void member_is(archive *a, const char *name, const void *want, size_t want_bytes)
{
    size_t bytes = 0;
    const uint8_t *data = member(a, name, &bytes);
    if (!data) fail_msg("no member %s", name);
    MRT_EQ(bytes, want_bytes);
    assert_memory_equal(data, want, bytes);
}

static void member_has_text(archive *a, const char *name, const char *want)
{
    member_is(a, name, want, strlen(want));
}

static void member_is_array(archive *a, const char *name, const char *descr, uint64_t count, const void *want,
                            size_t want_bytes)
{
    size_t bytes = 0;
    const uint8_t *data = member(a, name, &bytes);
    mri_npy npy;
    if (!data) fail_msg("no member %s", name);
    MRT_OK(mri_npy_parse(data, bytes, bytes, &npy, &none), &none);
    MRT_STR(npy.descr, descr);
    MRT_EQ(npy.count, count);
    MRT_EQ(npy.header_bytes % 64, 0);
    MRT_EQ(bytes - npy.header_bytes, want_bytes);
    if (want_bytes) assert_memory_equal(data + npy.header_bytes, want, want_bytes);
}

/* Valid until the next call. */
static const char *numbered(int k, const char *ending)
{
    static char name[64];
    snprintf(name, sizeof name, "%06d.%s", k, ending);
    return name;
}

static const char *joined(const char *key, const char *ending)
{
    static char name[512];
    snprintf(name, sizeof name, "%s.%s", key, ending);
    return name;
}

static void every_field_becomes_a_member(void **state)
{
    (void)state;
    set s;
    set_make(&s);
    write_record_file(&s, mrt_path("members.mrec"), fields, 0, FIELDS);
    convert(mrt_path("members.mrec"), mrt_path("members.tar"), MR_TO_TAR, MR_STORE_JPEG);
    archive a = archive_read(mrt_path("members.tar"));
    member_has_text(&a, "__classes__", "ant\nbee\ncat\n");
    for (int k = 0; k < COUNT; k++) {
        char label[2] = {(char)('0' + k % 3), 0}, age[16];
        size_t bytes = 0;
        snprintf(age, sizeof age, "%d", -7 - k);
        member_is(&a, numbered(k, "jpg"), s.jpeg[k], s.jpeg_bytes[k]);
        member_has_text(&a, numbered(k, "cls"), label);
        member_is_array(&a, numbered(k, "boxes.npy"), "<f8", 4 * (uint64_t)k, s.boxes, (size_t)k * 32);
        member_is_array(&a, numbered(k, "box_labels.npy"), "<i2", (uint64_t)k, s.box_labels, (size_t)k * 2);
        member_has_text(&a, numbered(k, "age.txt"), age);
        member_has_text(&a, numbered(k, "score.txt"), "0.10000000000000001");
        member_has_text(&a, numbered(k, "caption.txt"), "a cat");
        MRT_TRUE(member(&a, numbered(k, "note.txt"), &bytes) == NULL); /* no bytes: none */
        member_has_text(&a, numbered(k, "blob"), "\x01\xff");
        member_is_array(&a, numbered(k, "ids.npy"), "|u1", 3, ids, 3);
        member_is_array(&a, numbered(k, "wide.npy"), "<f8", 4, wide, sizeof wide);
        member_is_array(&a, numbered(k, "half.npy"), "<f2", 3, half, sizeof half);
        member_is_array(&a, numbered(k, "brain.npy"), "<f4", 2, (float[]){1, -5}, 8);
        const uint8_t *mask = member(&a, numbered(k, "mask.png"), &bytes);
        MRT_TRUE(mask != NULL);
        mask_is(&s, mask, bytes);
        MRT_TRUE(member(&a, numbered(k, "image.entries"), &bytes) == NULL);
    }
    free(a.data);
    mr_source *src = mrt_source_alone(mrt_path("members.tar"));
    MRT_EQ(mr_source_info_of(src)->count, COUNT);
    mr_source_close(src);
    /* names that have their endings keep them */
    convert(mrt_path("members.tar"), mrt_path("members-2.tar"), MR_TO_TAR, MR_STORE_JPEG);
    archive b = archive_read(mrt_path("members-2.tar"));
    member_has_text(&b, "000002.caption.txt", "a cat");
    member_is_array(&b, "000002.ids.npy", "|u1", 3, ids, 3);
    free(b.data);
    set_free(&s);
}

/* ---- pictures ---- */

/* CIFAR records: planes, which are rows of pixels in a PNG and in raw bytes. */
static void pixels_become_png_or_raw_bytes(void **state)
{
    (void)state;
    enum { RECORD = 3073, N = 12, AREA = 1024 };
    static uint8_t data[N * RECORD], rgb[3 * AREA];
    mrt_noise(data, sizeof data, 3);
    for (int i = 0; i < N; i++) data[i * RECORD] = (uint8_t)(i % 10);
    mrt_write_file(mrt_path("planes.bin"), data, sizeof data);
    convert(mrt_path("planes.bin"), mrt_path("planes.png.tfrecord"), MR_TO_TFRECORD, MR_STORE_JPEG);
    convert(mrt_path("planes.bin"), mrt_path("planes.raw.tfrecord"), MR_TO_TFRECORD, MR_STORE_RAW);
    convert(mrt_path("planes.bin"), mrt_path("planes.tar"), MR_TO_TAR, MR_STORE_JPEG);
    size_t png_bytes, raw_bytes;
    uint8_t *png = mrt_read_file(mrt_path("planes.png.tfrecord"), &png_bytes),
            *raw = mrt_read_file(mrt_path("planes.raw.tfrecord"), &raw_bytes);
    archive tar = archive_read(mrt_path("planes.tar"));
    for (int i = 0; i < N; i++) {
        const mri_span p = record(png, png_bytes, i), r = record(raw, raw_bytes, i);
        for (int c = 0; c < 3; c++)
            for (int k = 0; k < AREA; k++) rgb[3 * k + c] = data[i * RECORD + 1 + c * AREA + k];
        has_text(r, "image/format", "raw");
        has_int(r, "image/height", 32);
        has_int(r, "image/channels", 3);
        has_bytes(r, "image/encoded", rgb, sizeof rgb);
        has_text(p, "image/format", "png");
        const mri_feature f = feature(p, "image/encoded", MRI_FEATURE_BYTES);
        mri_span picture;
        size_t count;
        mr_image image;
        MRT_OK(mri_feature_bytes(&f, &picture, 1, &count, &none), &none);
        const mr_value v = mrt_encoded(picture.data, picture.bytes);
        MRT_OK(mr_image_decode(&v, NULL, &image, &none), &none);
        assert_memory_equal(image.pixels, rgb, sizeof rgb);
        mr_image_free(&image);
        member_is(&tar, numbered(i, "png"), picture.data, picture.bytes);
    }
    free(tar.data);
    free(png);
    free(raw);
    mr_source *src = mrt_source_alone(mrt_path("planes.raw.tfrecord"));
    MRT_EQ(mr_source_info_of(src)->height, 32);
    mr_source_close(src);
}

/* Without pictures, and so without a reader of ours for Examples. */
static void numbers_alone_can_leave_too(void **state)
{
    (void)state;
    set s;
    set_make(&s);
    write_record_file(&s, mrt_path("numbers.mrec"), fields + AGE, AGE, FIELDS - AGE);
    convert(mrt_path("numbers.mrec"), mrt_path("numbers.tfrecord"), MR_TO_TFRECORD, MR_STORE_JPEG);
    convert(mrt_path("numbers.mrec"), mrt_path("numbers.tar"), MR_TO_TAR, MR_STORE_JPEG);
    size_t bytes;
    uint8_t *file = mrt_read_file(mrt_path("numbers.tfrecord"), &bytes);
    has_int(record(file, bytes, 4), "Age", -11);
    has_none(record(file, bytes, 4), "image/format");
    free(file);
    archive a = archive_read(mrt_path("numbers.tar"));
    member_has_text(&a, "000004.age.txt", "-11");
    free(a.data);
    set_free(&s);
}

/* ---- what does not fit ---- */

static void names_that_clash_are_refused(void **state)
{
    (void)state;
    static const struct {
        const char *a, *b;
        mr_to to;
    } clashes[] = {{"image/format", "x", MR_TO_TFRECORD},
                   {"x", "x/shape", MR_TO_TFRECORD},
                   {"image/object/bbox/xmin", "y", MR_TO_TFRECORD},
                   {"image/class/label", "y", MR_TO_TFRECORD},
                   {"X", "x", MR_TO_TAR},
                   {"a/b", "a b", MR_TO_TAR},
                   {"x", "x.npy", MR_TO_TAR}};
    set s;
    mr_field schema[4];
    set_make(&s);
    for (size_t k = 0; k < sizeof clashes / sizeof clashes[0]; k++) {
        mr_writer_config cfg;
        mr_convert_config to;
        mr_writer *w;
        mr_error err = MR_ERROR_INIT;
        mr_value values[FIELDS];
        memcpy(schema, fields, 2 * sizeof *schema);
        schema[2] = schema[3] = fields[WIDE];
        snprintf(schema[2].name, sizeof schema[2].name, "%s", clashes[k].a);
        snprintf(schema[3].name, sizeof schema[3].name, "%s", clashes[k].b);
        mr_writer_defaults(&cfg);
        cfg.fields = schema;
        cfg.field_count = 4;
        cfg.force = true;
        MRT_OK(mr_writer_open(&w, mrt_path("clash.mrec"), &cfg, NULL, &err), &err);
        fill(&s, 0, values);
        values[2] = values[3] = tensor(MR_F64, 2, 2, 2, wide);
        MRT_OK(mr_writer_append(w, 0, values, &err), &err);
        MRT_OK(mr_writer_finish(w, &err), &err);
        mr_source *src = mrt_source_alone(mrt_path("clash.mrec"));
        mr_convert_defaults(&to);
        to.to = clashes[k].to;
        MRT_EQ(mr_convert(src, mrt_path("clash.out"), &to, NULL, &err), MR_EINVAL);
        MRT_HAS(err.text, "rename");
        MRT_TRUE(access(mrt_path("clash.out.part"), F_OK) != 0);
        mr_source_close(src);
    }
    set_free(&s);
}

typedef struct bad_seen {
    int count;
    char text[768];
} bad_seen;

static void see_bad(void *context, const mr_error *what, uint64_t substitute)
{
    bad_seen *b = context;
    (void)substitute;
    b->count++;
    snprintf(b->text, sizeof b->text, "%s", what->text);
}

/* Boxes of another shape, or labels of another number: only those samples are left out. */
static void boxes_that_do_not_fit_are_bad_samples(void **state)
{
    (void)state;
    set s;
    set_make(&s);
    mr_writer_config cfg;
    mr_writer *w;
    mr_error err = MR_ERROR_INIT;
    mr_value values[FIELDS];
    mr_writer_defaults(&cfg);
    cfg.fields = fields;
    cfg.field_count = BOX_LABELS + 1;
    MRT_OK(mr_writer_open(&w, mrt_path("odd.mrec"), &cfg, NULL, &err), &err);
    for (int k = 0; k < 4; k++) {
        fill(&s, 3, values);
        if (k == 1) values[BOXES] = tensor(MR_F64, 2, 2, 5, s.boxes);
        if (k == 2) values[BOX_LABELS] = tensor(MR_I16, 1, 2, 0, s.box_labels);
        MRT_OK(mr_writer_append(w, (uint64_t)k, values, &err), &err);
    }
    MRT_OK(mr_writer_finish(w, &err), &err);
    mr_source *src = mrt_source_alone(mrt_path("odd.mrec"));
    mr_convert_config to;
    mr_convert_result res;
    bad_seen seen = {0};
    mr_convert_defaults(&to);
    to.to = MR_TO_TFRECORD;
    to.on_bad = see_bad;
    to.context = &seen;
    MRT_OK(mr_convert(src, mrt_path("odd.tfrecord"), &to, &res, &err), &err);
    MRT_EQ(res.records, 2);
    MRT_EQ(res.bad, 2);
    MRT_HAS(seen.text, "2 labels for 3 boxes");
    to.to = MR_TO_TAR; /* an archive holds them as they are */
    MRT_OK(mr_convert(src, mrt_path("odd.tar"), &to, &res, &err), &err);
    MRT_EQ(res.records, 4);
    mr_source_close(src);
    set_free(&s);
}

/* Archives name members by their kind: boxes.npy, mask.png. */
static void boxes_and_masks_are_known_by_their_names(void **state)
{
    (void)state;
    set s;
    set_make(&s);
    write_record_file(&s, mrt_path("named.mrec"), fields, 0, MASK + 1);
    convert(mrt_path("named.mrec"), mrt_path("named.tar"), MR_TO_TAR, MR_STORE_JPEG);
    convert(mrt_path("named.mrec"), mrt_path("named-1"), MR_TO_TFRECORD, MR_STORE_JPEG);
    convert(mrt_path("named.tar"), mrt_path("named-2"), MR_TO_TFRECORD, MR_STORE_JPEG);
    size_t bytes;
    uint8_t *file = mrt_read_file(mrt_path("named-2"), &bytes);
    for (int k = 0; k < COUNT; k++) {
        const mri_span e = record(file, bytes, k);
        float column[COUNT];
        int64_t box_labels[COUNT];
        for (int b = 0; b < k; b++) column[b] = (float)s.boxes[4 * b + 3], box_labels[b] = s.box_labels[b];
        has_floats(e, "image/object/bbox/ymax", (size_t)k, column);
        has_ints(e, "image/object/class/label", (size_t)k, box_labels);
        feature(e, "image/segmentation/class/encoded", MRI_FEATURE_BYTES);
        has_none(e, "boxes.npy");
        has_none(e, "box_labels.npy");
        has_none(e, "mask.png");
    }
    free(file);
    set_free(&s);
}

/* Of a file whose samples have two boxes, but the first none: the first Example with some. */
static void convert_odd_boxes(set *s, const mr_field schema[4], double first, uint32_t columns,
                              const char *name)
{
    mr_writer_config cfg;
    mr_writer *w;
    mr_error err = MR_ERROR_INIT;
    mr_value values[FIELDS];
    double boxes[20];
    float narrow[20];
    mr_writer_defaults(&cfg);
    cfg.fields = schema;
    cfg.field_count = 4;
    for (int k = 0; k < 20; k++) narrow[k] = (float)(boxes[k] = k == 6 ? first : k / 64.0);
    MRT_OK(mr_writer_open(&w, mrt_path("%s.mrec", name), &cfg, NULL, &err), &err);
    for (int k = 0; k < 3; k++) {
        fill(s, 2, values);
        values[BOXES] = tensor(schema[2].dtype, 2, k ? 2 : 0, columns,
                               schema[2].dtype == MR_F32 ? (const void *)narrow : boxes);
        values[BOX_LABELS] = tensor(schema[3].dtype, 1, k ? 2 : 0, 0,
                                    schema[3].dtype == MR_F32 ? (const void *)narrow : s->box_labels);
        MRT_OK(mr_writer_append(w, (uint64_t)k, values, &err), &err);
    }
    MRT_OK(mr_writer_finish(w, &err), &err);
    convert(mrt_path("%s.mrec", name), mrt_path("%s.tfrecord", name), MR_TO_TFRECORD, MR_STORE_JPEG);
}

/* Pixels, further columns, labels that are not integers: stored under their own names. */
static void boxes_of_another_form_stay_plain(void **state)
{
    (void)state;
    static const struct {
        double first;
        uint32_t columns;
        mr_dtype boxes, labels;
        bool are_boxes, are_labels;
    } cases[] = {
        {0.5, 4, MR_F64, MR_I16, true, true},   {0.5, 4, MR_F32, MR_I16, true, true},
        {120, 4, MR_F64, MR_I16, false, false}, {120, 4, MR_F32, MR_I16, false, false},
        {0.5, 5, MR_F64, MR_I16, false, false}, {0.5, 4, MR_F64, MR_F32, true, false},
    };
    set s;
    set_make(&s);
    for (size_t c = 0; c < MRI_ARRAY_COUNT(cases); c++) {
        mr_field schema[4];
        char name[16];
        size_t bytes;
        memcpy(schema, fields, sizeof schema);
        schema[2].dtype = cases[c].boxes;
        schema[3].dtype = cases[c].labels;
        snprintf(name, sizeof name, "form-%zu", c);
        convert_odd_boxes(&s, schema, cases[c].first, cases[c].columns, name);
        uint8_t *file = mrt_read_file(mrt_path("%s.tfrecord", name), &bytes);
        const mri_span e = record(file, bytes, 1);
        feature(e, "image/object/bbox/xmin", cases[c].are_boxes ? MRI_FEATURE_FLOATS : MRI_FEATURE_NONE);
        feature(e, "boxes", cases[c].are_boxes ? MRI_FEATURE_NONE : MRI_FEATURE_FLOATS);
        feature(e, "boxes/shape", cases[c].are_boxes ? MRI_FEATURE_NONE : MRI_FEATURE_INTS);
        feature(e, "image/object/class/label", cases[c].are_labels ? MRI_FEATURE_INTS : MRI_FEATURE_NONE);
        const mri_feature_kind plain = cases[c].labels == MR_F32 ? MRI_FEATURE_FLOATS : MRI_FEATURE_INTS;
        feature(e, "box_labels", cases[c].are_labels ? MRI_FEATURE_NONE : plain);
        free(file);
    }
    set_free(&s);
}

/* ---- keys of members ---- */
static void keys_are_names_of_files(void **state)
{
    (void)state;
    static const mrt_jpeg_kind kind = {.h = 1, .v = 1};
    static const char *const files[] = {"a/one.jpg",       "a/one.jpeg",   "a/two.words.jpg",
                                        "a/two_words.jpg", "b/000004.jpg", "__b__/x.jpg"};
    size_t bytes, found;
    uint8_t *jpeg = mrt_jpeg(&kind, 16, 16, 1, &bytes);
    char long_name[231];
    mrt_mkdir(mrt_path("keys"));
    mrt_mkdir(mrt_path("keys/a"));
    mrt_mkdir(mrt_path("keys/b"));
    mrt_mkdir(mrt_path("keys/__b__"));
    for (size_t k = 0; k < 6; k++) mrt_write_file(mrt_path("keys/%s", files[k]), jpeg, bytes);
    memset(long_name, 'n', 230);
    long_name[230] = '\0';
    mrt_write_file(mrt_path("keys/b/%s.jpg", long_name), jpeg, bytes);
    convert(mrt_path("keys"), mrt_path("keys.tar"), MR_TO_TAR, MR_STORE_JPEG);
    archive a = archive_read(mrt_path("keys.tar"));
    /* in the order of bytes: __b__/x (number 0: readers would pass over it), a/one.jpeg, a/one.jpg (again),
     * a/two.words.jpg, a/two_words.jpg (again) */
    static const char *const keys[] = {"000000", "a/one", "000002", "a/two_words", "000004", "b/000004"};
    for (size_t k = 0; k < 6; k++) {
        member_is(&a, joined(keys[k], "jpg"), jpeg, bytes);
        MRT_TRUE(member(&a, joined(keys[k], "cls"), &found) != NULL);
    }
    char long_key[240];
    snprintf(long_key, sizeof long_key, "b/%s", long_name);
    MRT_TRUE(member(&a, joined(long_key, "jpg"), &found) != NULL);
    free(a.data);
    free(jpeg);
    mr_source *src = mrt_source_alone(mrt_path("keys.tar"));
    MRT_EQ(mr_source_info_of(src)->count, 7);
    MRT_TRUE(mr_source_info_of(src)->told == NULL);
    mr_source_close(src);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(every_field_becomes_a_feature),
        cmocka_unit_test(a_round_trip_gives_the_same_bytes),
        cmocka_unit_test(every_field_becomes_a_member),
        cmocka_unit_test(pixels_become_png_or_raw_bytes),
        cmocka_unit_test(numbers_alone_can_leave_too),
        cmocka_unit_test(names_that_clash_are_refused),
        cmocka_unit_test(boxes_that_do_not_fit_are_bad_samples),
        cmocka_unit_test(boxes_and_masks_are_known_by_their_names),
        cmocka_unit_test(boxes_of_another_form_stay_plain),
        cmocka_unit_test(keys_are_names_of_files),
    };
    return mrt_run(tests);
}
