/* TFRecord: files of its writers are read, and each possible fault is reported with its place. */
#include <isa-l/igzip_lib.h>
#include <unistd.h>

#include "base/util.h"
#include "formats/source/source.h"
#include "formats/tfrecord/example.h"
#include "formats/tfrecord/tfrecord.h"
#include "mrt.h"
#include "tests/formats/mrt_turns.h"

/* ---- a file in memory, record by record ---- */
typedef struct tape {
    uint8_t bytes[65536];
    size_t used, last; /* last: where the last record begins */
    mri_example_builder b;
} tape;

static tape t;

static void put_record(const void *data, size_t bytes)
{
    t.last = t.used;
    mri_tfrecord_put_head(t.bytes + t.used, bytes);
    if (bytes) memcpy(t.bytes + t.used + 12, data, bytes);
    mri_tfrecord_put_tail(t.bytes + t.used + 12 + bytes, data, bytes);
    t.used += 16 + bytes;
}

static void begin(void) { mri_example_restart(&t.b); }
static void ints(const char *key, int64_t v) { mri_example_add_ints(&t.b, key, &v, 1); }
static void text(const char *key, const char *v) { mri_example_add_bytes(&t.b, key, v, strlen(v)); }

static void end(void)
{
    mri_span e;
    MRT_OK(mri_example_finish(&t.b, &e, NULL), NULL);
    put_record(e.data, e.bytes);
}

static const char jpeg[] = "\xff\xd8\xff\xe0 no more than the beginning of one";

static void common(int64_t label)
{
    begin();
    text("image/encoded", jpeg);
    ints("image/class/label", label);
    end();
}

static void restart(void) { t.used = t.last = 0; }

static const char *save(const char *name)
{
    mrt_write_file(mrt_path("%s", name), t.bytes, t.used);
    unlink(mrt_path(".%s.mridx", name));
    return mrt_path("%s", name);
}

static mr_source *open_with(const char *path, const mr_source_config *cfg)
{
    mr_source *src;
    mr_error err = MR_ERROR_INIT;
    MRT_OK(mr_source_open(&src, path, cfg, &err), &err);
    MRT_STR(mr_source_info_of(src)->format, "tfrecord");
    return src;
}

static int read_one(mr_source *src, uint64_t sample, mr_sample *out, mr_error *err)
{
    static void *buffer;
    static size_t bytes;
    return mr_source_read(src, sample, &buffer, &bytes, out, err);
}

/* Opening fails, and says so. */
static void refused(const char *path, int code, const char *says, uint64_t offset)
{
    mr_source *src;
    mr_error err = MR_ERROR_INIT;
    MRT_EQ(mr_source_open(&src, path, NULL, &err), code);
    MRT_HAS(err.text, says);
    MRT_HAS(err.file, strrchr(path, '/'));
    MRT_EQ(err.offset, offset);
}

/* The data set opens, sample 1 is bad, and those around it are not. */
static void bad_sample(int code, const char *says)
{
    const size_t offset = t.last;
    common(2);
    mr_source *src = open_with(save("bad"), NULL);
    mr_error err = MR_ERROR_INIT;
    mr_sample s;
    MRT_EQ(mr_source_info_of(src)->count, 3);
    MRT_EQ(mr_source_info_of(src)->class_count, 3);
    MRT_OK(read_one(src, 0, &s, &err), &err);
    MRT_EQ(read_one(src, 1, &s, &err), code);
    MRT_HAS(err.text, says);
    MRT_HAS(err.file, "/bad");
    MRT_EQ(err.offset, offset);
    MRT_EQ(err.sample, 1);
    MRT_OK(read_one(src, 2, &s, &err), &err);
    MRT_EQ(s.value[1].i, 2);
    mr_source_close(src);
}

static void one_good(void)
{
    restart();
    common(0);
}

/* ---- reading ---- */
static void bytes_by_hand(void **state)
{
    (void)state;
    char path[1024];
    snprintf(path, sizeof path, "%s/tests/data/tfrecord/two.tfrecord",
             getenv("MRT_SOURCE_DIR") ? getenv("MRT_SOURCE_DIR") : ".");
    mr_source_config cfg;
    mr_source_defaults(&cfg);
    cfg.no_index_file = true; /* leave the sources as they are */
    mr_source *src = open_with(path, &cfg);
    const mr_source_info *info = mr_source_info_of(src);
    MRT_EQ(info->count, 2);
    MRT_EQ(info->class_count, 8);
    MRT_EQ(info->height, 2);
    MRT_EQ(info->width, 1);
    MRT_EQ(info->channels, 3);
    MRT_EQ(info->fields[0].type, MR_TYPE_PIXELS);
    mr_sample s;
    mr_error err = MR_ERROR_INIT;
    MRT_OK(read_one(src, 0, &s, &err), &err);
    MRT_EQ(s.value_count, 3);
    MRT_STR(info->fields[2].name, "unknown"); /* the second record's */
    MRT_EQ(s.value[2].bytes, 0);
    MRT_EQ(s.value[0].bytes, 6);
    assert_memory_equal(s.value[0].data, "\xff\0\0\0\0\xff", 6);
    MRT_EQ(s.value[0].planes, MR_HWC);
    MRT_EQ(s.value[1].i, 3);
    MRT_OK(read_one(src, 1, &s, &err), &err);
    assert_memory_equal(s.value[0].data, "\1\2\3\4\5\6", 6);
    MRT_EQ(s.value[1].i, 7);
    MRT_EQ(s.value[2].dim[0], 1);
    assert_memory_equal(s.value[2].data, "\0\0\xc0\x3f", 4);
    int64_t label;
    MRT_OK(mr_source_label(src, 1, &label), NULL);
    MRT_EQ(label, 7);
    mr_extent e;
    MRT_OK(mr_source_extent(src, 1, &e, &err), &err);
    MRT_EQ(e.offset, 0x78);
    MRT_EQ(e.bytes, 154 + 4);
    mr_source_close(src);
}

static void labels_from_one_and_names(void **state)
{
    (void)state;
    for (int turn = 0; turn < 3; turn++) {
        restart();
        for (int k = 0; k < 6; k++) {
            static const char *const names[] = {"cat", "dog", "egret"};
            begin();
            ints("image/class/label", 1 + k % 3);
            text("image/class/text", turn == 2 && k == 5 ? "goat" : names[k % 3]);
            text("image/encoded", jpeg);
            end();
        }
        if (turn != 1) save("names"); /* the second time from the index */
        mr_source *src = open_with(mrt_path("names"), NULL);
        const mr_source_info *info = mr_source_info_of(src);
        MRT_EQ(info->label_offset, 0);
        MRT_EQ(mr_source_labels_of(src)->min, 1);
        MRT_EQ(info->class_count, 4);
        if (turn == 2) {
            MRT_TRUE(info->class_names == NULL); /* two names for one class: none of them can be right */
            MRT_HAS(info->told,
                    "names of classes are left out: record 5 has \"goat\" as the name of class 3, "
                    "and records before it \"egret\"");
        } else {
            MRT_STR(info->class_names[0], ""); /* no sample has it */
            MRT_STR(info->class_names[1], "cat");
            MRT_STR(info->class_names[3], "egret");
        }
        mr_sample s;
        mr_error err = MR_ERROR_INIT;
        MRT_OK(read_one(src, 4, &s, &err), &err);
        MRT_EQ(s.value[1].i, 2);
        mr_source_close(src);
    }
}

static void keys_are_chosen(void **state)
{
    (void)state;
    mr_source_config cfg;
    mr_source_defaults(&cfg);
    restart();
    begin();
    text("photo", jpeg);
    text("image", jpeg);
    ints("fine", 3);
    ints("label", 1);
    end();
    begin();
    text("photo", jpeg);
    text("image", jpeg);
    ints("fine", 0);
    ints("label", 0);
    end();
    save("keys");
    mr_sample s;
    mr_error err = MR_ERROR_INIT;
    for (int turn = 0; turn < 4; turn++) { /* with other keys the kept index is no longer the right one */
        cfg.label_key = turn % 2 ? "fine" : NULL;
        cfg.image_key = turn % 2 ? "photo" : NULL;
        mr_source *src = open_with(mrt_path("keys"), &cfg);
        MRT_OK(read_one(src, 0, &s, &err), &err);
        MRT_EQ(s.value[1].i, turn % 2 ? 3 : 1);
        MRT_EQ(mr_source_info_of(src)->class_count, turn % 2 ? 4 : 2);
        mr_source_close(src);
    }
    cfg.image_key = "foto";
    mr_source *src;
    MRT_EQ(mr_source_open(&src, mrt_path("keys"), &cfg, &err), MR_EFORMAT);
    MRT_HAS(err.text, "no feature \"foto\"; found: photo (bytes), image (bytes), fine (whole numbers), label "
                      "(whole numbers)");
    MRT_EQ(err.offset, 0);
    cfg.image_key = NULL;
    cfg.label_key = "class";
    MRT_EQ(mr_source_open(&src, mrt_path("keys"), &cfg, &err), MR_EFORMAT);
    MRT_HAS(err.text, "no feature \"class\"; found:");
    restart();
    begin();
    text("photo", jpeg);
    ints("label", 3);
    end();
    refused(save("nokey"), MR_EFORMAT,
            "known to be the image: name it (--image-key); found: photo (bytes), label (whole numbers)", 0);
    restart();
    begin();
    text("image", jpeg);
    end();
    src = open_with(save("nolabel"), NULL);
    MRT_EQ(mr_source_info_of(src)->label_field, -1);
    MRT_EQ(mr_source_info_of(src)->field_count, 1);
    mr_source_close(src);
}

static void boxes_become_tensors(void **state)
{
    (void)state;
    static const float xmin[] = {0.1f, 0.2f}, ymin[] = {0.3f, 0.4f}, xmax[] = {0.5f, 0.6f},
                       ymax[] = {0.7f, 0.8f};
    static const int64_t what[] = {5, 9};
    restart();
    put_record("junk", 4); /* nothing is known of the features yet */
    for (int k = 0; k < 4; k++) {
        const size_t n = k == 3 ? 1 : (size_t)k;
        begin();
        text("image/encoded", jpeg);
        ints("image/class/label", 0);
        mri_example_add_floats(&t.b, "image/object/bbox/xmin", xmin, n);
        mri_example_add_floats(&t.b, "image/object/bbox/xmax", xmax, n);
        mri_example_add_floats(&t.b, "image/object/bbox/ymin", ymin, n);
        mri_example_add_floats(&t.b, "image/object/bbox/ymax", ymax, k == 3 ? 2 : n);
        mri_example_add_ints(&t.b, "image/object/bbox/label", what, n);
        end();
    }
    save("boxes");
    for (int turn = 0; turn < 2; turn++) {
        mr_source *src = open_with(mrt_path("boxes"), NULL);
        const mr_source_info *info = mr_source_info_of(src);
        MRT_EQ(info->field_count, 4);
        MRT_STR(info->fields[2].name, "boxes");
        MRT_STR(info->fields[3].name, "box_labels");
        mr_sample s;
        mr_error err = MR_ERROR_INIT;
        MRT_EQ(read_one(src, 0, &s, &err), MR_EFORMAT);
        MRT_OK(read_one(src, 1, &s, &err), &err);
        MRT_EQ(s.value[2].dim[0], 0);
        MRT_EQ(s.value[2].bytes, 0);
        MRT_OK(read_one(src, 3, &s, &err), &err);
        MRT_EQ(s.value_count, 4);
        MRT_EQ(s.value[2].dtype, MR_F32);
        MRT_EQ(s.value[2].dim[0], 2);
        MRT_EQ(s.value[2].dim[1], 4);
        static const float expected[] = {0.1f, 0.3f, 0.5f, 0.7f, 0.2f, 0.4f, 0.6f, 0.8f};
        MRT_EQ(s.value[2].bytes, sizeof expected);
        assert_memory_equal(s.value[2].data, expected, sizeof expected);
        assert_memory_equal(s.value[3].data, what, sizeof what);
        MRT_EQ(read_one(src, 4, &s, &err), MR_EFORMAT);
        MRT_HAS(err.text, "boxes: 1 of \"image/object/bbox/xmin\", but 2 of \"image/object/bbox/ymax\"");
        mr_source_close(src);
    }
}

/* A feature named mask is one if it is a PNG; it is a field if the first record has it. */
static void masks(void **state)
{
    (void)state;
    static const char *const keys[] = {"image/segmentation/class/encoded", "mask", NULL};
    static const char png[] = "\x89PNG\r\n\x1a\n";
    static const float half[] = {0.5f};
    for (int k = 0; keys[k]; k++) {
        restart();
        for (int n = 0; n < 4; n++) {
            begin();
            text("image/encoded", jpeg);
            ints("image/class/label", n);
            if (n != 2) text(keys[k], n == 3 ? jpeg : png);
            for (int side = 0; side < 4; side++)
                mri_example_add_floats(&t.b,
                                       (const char *[]){"image/object/bbox/xmin", "image/object/bbox/ymin",
                                                        "image/object/bbox/xmax",
                                                        "image/object/bbox/ymax"}[side],
                                       half, 1);
            end();
        }
        save("masks");
        for (int turn = 0; turn < 2; turn++) { /* the second time from the index */
            mr_source *src = open_with(mrt_path("masks"), NULL);
            const mr_source_info *info = mr_source_info_of(src);
            mr_sample s;
            mr_error err = MR_ERROR_INIT;
            MRT_EQ(info->field_count, 4);
            MRT_STR(info->fields[2].name, "boxes");
            MRT_STR(info->fields[3].name, "mask");
            MRT_EQ(info->fields[3].type, MR_TYPE_PNG);
            MRT_OK(read_one(src, 1, &s, &err), &err);
            MRT_EQ(s.value_count, 4);
            MRT_EQ(s.value[0].type, MR_TYPE_JPEG);
            MRT_EQ(s.value[3].type, MR_TYPE_PNG);
            MRT_EQ(s.value[3].bytes, strlen(png));
            assert_memory_equal(s.value[3].data, png, strlen(png));
            MRT_OK(read_one(src, 2, &s, &err), &err); /* without a mask */
            MRT_EQ(s.value[3].bytes, 0);
            MRT_EQ(read_one(src, 3, &s, &err), MR_EFORMAT);
            MRT_HAS(err.text, "expected a mask as PNG");
            mr_source_close(src);
        }
    }
    mr_source_config cfg;
    mr_source_defaults(&cfg);
    cfg.image_key = "mask"; /* the last set: now it is the picture, and no mask */
    mr_source *src = open_with(mrt_path("masks"), &cfg);
    MRT_EQ(mr_source_info_of(src)->field_count, 4);
    MRT_STR(mr_source_info_of(src)->fields[3].name, "image/encoded");
    mr_source_close(src);
    restart();
    begin();
    text("image", jpeg);
    text("mask", "numbers of some kind");
    end();
    src = open_with(save("nomask"), NULL);
    MRT_EQ(mr_source_info_of(src)->field_count, 1);
    MRT_HAS(mr_source_info_of(src)->told, "mask (bytes, in 1 of 1 records)");
    mr_source_close(src);
}

/* ---- features of some records ---- */
static void box_at(float corner, int64_t label)
{
    static const char *const sides[] = {"image/object/bbox/xmin", "image/object/bbox/ymin",
                                        "image/object/bbox/xmax", "image/object/bbox/ymax"};
    for (int side = 0; side < 4; side++) mri_example_add_floats(&t.b, sides[side], &corner, 1);
    mri_example_add_ints(&t.b, "image/object/class/label", &label, 1);
}

static void features_that_the_first_record_lacks(void **state)
{
    (void)state;
    static const char png[] = "\x89PNG\r\n\x1a\n";
    restart();
    for (int k = 0; k < 4; k++) {
        begin();
        text("image/encoded", jpeg);
        if (k > 0) ints("image/class/label", k);
        if (k == 2) text("image/class/text", "two"); /* the others are named nowhere */
        if (k > 1) box_at(0.25f * (float)(k - 1), 10 + k);
        if (k != 1) text("mask", k < 3 ? "" : png); /* an empty one says nothing about the others */
        end();
    }
    save("late");
    for (int turn = 0; turn < 2; turn++) { /* the second time from the index */
        mr_source *src = open_with(mrt_path("late"), NULL);
        const mr_source_info *info = mr_source_info_of(src);
        mr_sample s;
        mr_error err = MR_ERROR_INIT;
        MRT_EQ(info->field_count, 5);
        MRT_STR(info->fields[2].name, "boxes");
        MRT_STR(info->fields[3].name, "box_labels");
        MRT_STR(info->fields[4].name, "mask");
        MRT_TRUE(info->class_names == NULL);
        MRT_HAS(info->told, "names of classes are left out: class 1 has none in \"image/class/text\"");
        MRT_EQ(read_one(src, 0, &s, &err), MR_EFORMAT); /* a bad sample, as any other without a class */
        MRT_HAS(err.text, "no feature \"image/class/label\"");
        MRT_OK(read_one(src, 1, &s, &err), &err);
        MRT_EQ(s.value[1].i, 1);
        MRT_EQ(s.value[2].dim[0] + s.value[3].dim[0] + s.value[4].bytes, 0);
        MRT_OK(read_one(src, 3, &s, &err), &err);
        MRT_EQ(s.value[2].dim[0], 1);
        MRT_TRUE(((const float *)s.value[2].data)[3] == 0.5f);
        MRT_EQ(((const int64_t *)s.value[3].data)[0], 13);
        MRT_EQ(s.value[4].bytes, strlen(png));
        mr_source_close(src);
    }
}

static void field_is(const mr_source_info *info, uint32_t at, const char *name, mr_type type)
{
    MRT_TRUE(at < info->field_count);
    MRT_STR(info->fields[at].name, name);
    MRT_EQ(info->fields[at].type, type);
}

static void further_features_are_fields(void **state)
{
    (void)state;
    static const float numbers[] = {1, 2, 3};
    static const int64_t list[] = {4, 5};
    char name[80];
    restart();
    for (int k = 0; k < 3; k++) {
        begin();
        text("image", jpeg);
        text("image/format", "jpeg"); /* it describes the picture only */
        ints("coarse_label", k);
        ints("fine_label", 10 + k);
        if (k) text("caption", k == 1 ? "a cat" : "");
        text("blob", k == 2 ? "\xff" : "1");
        mri_example_add_floats(&t.b, "age", numbers + k, 1);
        mri_example_add_floats(&t.b, "pose", numbers, 3);
        mri_example_add_floats(&t.b, "line", numbers, (size_t)k);
        mri_example_add_ints(&t.b, "ids", list, 2);
        if (k == 1) ints("rare", 1);
        snprintf(name, sizeof name, "%064d", k); /* longer than a field's name */
        if (k == 2) text(name, "x");
        end();
    }
    save("further");
    for (int turn = 0; turn < 2; turn++) {
        mr_source *src = open_with(mrt_path("further"), NULL);
        const mr_source_info *info = mr_source_info_of(src);
        mr_sample s;
        mr_error err = MR_ERROR_INIT;
        MRT_EQ(info->label_field, -1);
        MRT_EQ(info->field_count, 8);
        field_is(info, 1, "coarse_label", MR_TYPE_INT);
        field_is(info, 2, "fine_label", MR_TYPE_INT);
        field_is(info, 3, "blob", MR_TYPE_BYTES);
        field_is(info, 4, "age", MR_TYPE_FLOAT);
        field_is(info, 5, "pose", MR_TYPE_TENSOR);
        field_is(info, 6, "caption", MR_TYPE_TEXT);
        field_is(info, 7, "line", MR_TYPE_TENSOR);
        MRT_EQ(info->fields[5].ndim, 1);
        MRT_EQ(info->fields[5].dim[0], 3);
        MRT_EQ(info->fields[7].ndim, 0);
        MRT_HAS(info->told, "no class is taken: whole numbers are in coarse_label, fine_label; --label-key");
        MRT_HAS(info->told,
                "2 features are left out, which can be no field: ids (lists of whole numbers, in 3 "
                "of 3 records), rare (whole numbers, in 1 of 3 records)");
        MRT_OK(read_one(src, 0, &s, &err), &err);
        MRT_EQ(s.value[6].bytes + s.value[7].bytes, 0);
        MRT_OK(read_one(src, 2, &s, &err), &err);
        MRT_EQ(s.value[1].i, 2);
        MRT_EQ(s.value[2].i, 12);
        MRT_EQ(s.value[3].bytes, 1);
        MRT_TRUE(s.value[4].f == 3.0);
        assert_memory_equal(s.value[5].data, numbers, sizeof numbers);
        MRT_EQ(s.value[7].dim[0], 2);
        assert_memory_equal(s.value[7].data, numbers, 2 * sizeof *numbers);
        mr_source_close(src);
    }
}

/* Boxes are kept in memory: above the limit nothing is opened, whether they are found or come with the
 * index. */
static void boxes_over_the_budget(void **state)
{
    (void)state;
    enum { BOXES = 2000 };
    static const float side[BOXES];
    mr_source_config cfg;
    mr_source_defaults(&cfg);
    restart();
    begin();
    text("image/encoded", jpeg);
    for (int k = 0; k < 4; k++)
        mri_example_add_floats(&t.b,
                               (const char *[]){"image/object/bbox/xmin", "image/object/bbox/ymin",
                                                "image/object/bbox/xmax", "image/object/bbox/ymax"}[k],
                               side, BOXES);
    end();
    const char *path = save("many");
    for (int turn = 0; turn < 3; turn++) { /* scanned; scanned with room for all, and kept; from the index */
        mr_source *src;
        mr_error err = MR_ERROR_INIT;
        cfg.memory_bytes = turn == 1 ? 1 << 20 : 32000;
        MRT_EQ(mr_source_open(&src, path, &cfg, &err), turn == 1 ? MR_OK : MR_ELIMIT);
        if (turn == 1) mr_source_close(src);
        else MRT_HAS(err.text, "need more than the 32000 bytes allowed");
    }
}

static size_t pack(uint8_t *out, size_t cap, const void *data, size_t bytes, bool zlib)
{
    struct isal_zstream z;
    isal_deflate_stateless_init(&z);
    z.gzip_flag = zlib ? IGZIP_ZLIB : IGZIP_GZIP;
    z.end_of_stream = 1;
    z.next_in = (uint8_t *)(uintptr_t)data;
    z.avail_in = (uint32_t)bytes;
    z.next_out = out;
    z.avail_out = (uint32_t)cap;
    MRT_EQ(isal_deflate_stateless(&z), COMP_OK);
    return z.total_out;
}

static void packed_and_in_pieces(void **state)
{
    (void)state;
    uint8_t packed[4096];
    mrt_mkdir(mrt_path("pieces"));
    for (int k = 0; k < 4; k++) {
        restart();
        for (int n = 0; n < 3; n++) common(k);
        size_t bytes = t.used;
        const uint8_t *p = packed;
        if (k == 0) p = t.bytes;
        else if (k < 3) bytes = pack(packed, sizeof packed, t.bytes, t.used, k == 2);
        else { /* two members, cut in the middle of a record */
            bytes = pack(packed, sizeof packed, t.bytes, 50, false);
            bytes += pack(packed + bytes, sizeof packed - bytes, t.bytes + 50, t.used - 50, false);
        }
        mrt_write_file(mrt_path("pieces/train-%05d-of-00004", k), p, bytes);
        if (k == 0) {
            mrt_write_file(mrt_path("pieces/validation-00000-of-00001"), p, bytes);
        }
        if (k != 1) continue;
        for (size_t cut = 20; cut < bytes; cut += bytes - 21) {
            mrt_write_file(mrt_path("cut"), packed, cut);
            mr_source_config cfg;
            mr_source_defaults(&cfg);
            cfg.format = "tfrecord";
            mr_source *src;
            mr_error err = MR_ERROR_INIT;
            MRT_EQ(mr_source_open(&src, mrt_path("cut"), &cfg, &err), MR_EFORMAT);
            MRT_HAS(err.text, "gzip: the file ends early");
            MRT_HAS(err.file, "/cut");
        }
    }
    const char *const ways[] = {mrt_path("pieces"), mrt_path("pieces/train-00002-of-00004"),
                                mrt_path("pieces/train-{00000..00003}-of-*"), mrt_path("pieces/train*")};
    for (size_t k = 0; k < 4; k++) {
        mr_source *src = open_with(ways[k], NULL);
        MRT_EQ(mr_source_info_of(src)->count, 12);
        MRT_EQ(mr_source_info_of(src)->file_count, 4);
        MRT_EQ(mr_source_info_of(src)->has_test, k == 0);
        for (uint64_t n = 0; n < 12; n++) {
            mr_sample s;
            mr_error err = MR_ERROR_INIT;
            MRT_OK(read_one(src, n, &s, &err), &err);
            MRT_EQ(s.value[1].i, n / 3);
            MRT_EQ(s.value[0].type, MR_TYPE_JPEG);
        }
        mr_source_file f;
        MRT_OK(mr_source_file_at(src, 0, &f), NULL);
        MRT_TRUE(f.direct_ok);
        MRT_OK(mr_source_file_at(src, 3, &f), NULL);
        MRT_TRUE(!f.direct_ok);
        mr_source_close(src);
    }
}

/* ---- wrong files ---- */
static void wrong_framing(void **state)
{
    (void)state;
    one_good();
    common(1);
    const size_t second = t.last;
    t.bytes[second + 2] ^= 1;
    refused(save("length"), MR_ECHECKSUM, "checksum of a record's length does not match", second);
    one_good();
    common(1);
    mri_tfrecord_put_head(t.bytes + t.last, 5000); /* a lie with a good checksum */
    refused(save("lie"), MR_EFORMAT, "a record of 5000 bytes, but the file has no more than", second);
    mri_tfrecord_put_head(t.bytes + t.last, (uint64_t)1 << 63);
    refused(save("huge"), MR_EFORMAT, "a record of 9223372036854775808 bytes", second);
    mri_tfrecord_put_head(t.bytes + t.last, UINT64_MAX - 3);
    refused(save("larger"), MR_EFORMAT, "a record of 18446744073709551612 bytes", second);
    one_good();
    common(1);
    t.used--;
    refused(save("cut"), MR_EFORMAT, "it was cut short", second);
    t.used = second + 11;
    refused(save("cuthead"), MR_EFORMAT, "ends inside the head of a record: expected 12 bytes, found 11",
            second);
    t.used = 0;
    refused(save("empty"), MR_EFORMAT, "empty", 0);
}

static void wrong_records(void **state)
{
    (void)state;
    one_good();
    common(1);
    t.bytes[t.last + 30] ^= 4;
    bad_sample(MR_ECHECKSUM, "checksum of the record's data does not match");
    one_good();
    put_record("\x0a\x02\x0a\x00\x12\x00", 6);
    bad_sample(MR_EUNSUPPORTED, "found a SequenceExample");
    one_good();
    put_record("\x08\x96\x01\x12\x04text", 9);
    bad_sample(MR_EFORMAT, "no tf.train.Example: its first field is no message");
    one_good();
    put_record("some text that is no protobuf", 29);
    bad_sample(MR_EFORMAT, "no tf.train.Example");
    one_good();
    put_record("", 0);
    bad_sample(MR_EFORMAT, "no feature \"image/encoded\" in this record; found: none");
    one_good();
    begin();
    text("picture", jpeg);
    ints("image/class/label", 0);
    end();
    bad_sample(MR_EFORMAT, "no feature \"image/encoded\" in this record; found: picture (bytes), "
                           "image/class/label (whole numbers)");
    one_good();
    begin();
    text("image/encoded", "8BPS..");
    ints("image/class/label", 0);
    end();
    bad_sample(
        MR_EFORMAT,
        "6 bytes that are no picture that is decoded (a Photoshop picture: convert it to JPEG or PNG)");
    one_good();
    begin();
    mri_example_add_floats(&t.b, "image/encoded", (const float[]){1.0f}, 1);
    ints("image/class/label", 0);
    end();
    bad_sample(MR_EFORMAT, "feature \"image/encoded\": expected bytes (BytesList), found floats (FloatList)");
}

static void bad_label(const char *says, int kind, const int64_t *values, size_t count)
{
    one_good();
    begin();
    text("image/encoded", jpeg);
    if (kind == 1) mri_example_add_ints(&t.b, "image/class/label", values, count);
    if (kind == 2) mri_example_add_floats(&t.b, "image/class/label", (const float[]){2.0f}, 1);
    if (kind == 3) text("image/class/label", "2");
    end();
    bad_sample(MR_EFORMAT, says);
}

static void wrong_labels(void **state)
{
    (void)state;
    bad_label("no feature \"image/class/label\" in this record", 0, NULL, 0);
    bad_label("expected a label from 0 to 16777215, found -1", 1, (const int64_t[]){-1}, 1);
    bad_label("expected a label from 0 to 16777215, found 1099511627776", 1,
              (const int64_t[]){(int64_t)1 << 40}, 1);
    bad_label("feature \"image/class/label\": expected one number, found a list of 2", 1,
              (const int64_t[]){0, 1}, 2);
    bad_label("feature \"image/class/label\": expected one number, found a list of 0", 1, NULL, 0);
    bad_label("expected a whole number (Int64List), found floats (FloatList)", 2, NULL, 0);
    bad_label(
        "expected a whole number (Int64List), found bytes (BytesList): name a feature with numbers, such as "
        "image/class/label (--label-key NAME)",
        3, NULL, 0);
    one_good();
    common(2);
    mr_source_config cfg;
    mr_source_defaults(&cfg);
    cfg.label_offset = INT64_MAX; /* subtracting it does not overflow */
    mr_source *src = open_with(save("offset"), &cfg);
    mr_sample s;
    mr_error err = MR_ERROR_INIT;
    MRT_EQ(read_one(src, 0, &s, &err), MR_EFORMAT);
    MRT_EQ(mr_source_info_of(src)->class_count, 0);
    mr_source_close(src);
}

static void pixels_that_do_not_fit(void **state)
{
    (void)state;
    for (int k = 0; k < 4; k++) {
        restart();
        begin();
        text("image_raw", "123456");
        ints("label", 0);
        if (k != 3) ints("height", k == 0 ? 3 : (int64_t)1 << 40);
        if (k != 3) ints("width", k == 0 ? 1 : 2);
        if (k != 2) ints("depth", 3);
        end();
        mr_source *src = open_with(save("pixels"), NULL);
        mr_sample s;
        mr_error err = MR_ERROR_INIT;
        MRT_EQ(read_one(src, 0, &s, &err), MR_EFORMAT);
        MRT_HAS(err.text, k == 0 ? "the pixels of 3 x 1, 1 to 4 bytes each, found 6 bytes"
                                 : "no picture that is decoded");
        mr_source_close(src);
    }
    restart(); /* depth not given, and pixels that begin like a JPEG */
    begin();
    mri_example_add_bytes(&t.b, "image_raw", jpeg, 12);
    ints("height", 2);
    ints("width", 2);
    ints("depth", 3);
    end();
    begin();
    text("image_raw", "12345678");
    ints("height", 4);
    ints("width", 2);
    end();
    mr_source *src = open_with(save("like"), NULL);
    mr_sample s;
    mr_error err = MR_ERROR_INIT;
    MRT_EQ(mr_source_info_of(src)->height, 0); /* they differ */
    MRT_OK(read_one(src, 0, &s, &err), &err);
    MRT_EQ(s.value[0].type, MR_TYPE_PIXELS);
    MRT_OK(read_one(src, 1, &s, &err), &err);
    MRT_EQ(s.value[0].dim[0], 4);
    MRT_EQ(s.value[0].dim[2], 1);
    mr_source_close(src);
}

/* A small PNG may have just as many bytes as its pixels; so may a JPEG. */
static void pictures_as_large_as_their_pixels(void **state)
{
    (void)state;
    static const char png[48] =
        "\x89PNG\r\n\x1a\n\0\0\0\x0dIHDR\0\0\0\x04\0\0\0\x04\x08\x02\0\0\0\x26\x93\x09\x29";
    static const char jpeg_head[48] = "\xff\xd8\xff\xc0\0\x11\x08\0\x04\0\x04\x03\1\x11\0\2\x11\0\3\x11\0\xff"
                                      "\xda\0\x0c\3\1\0\2\0\3\0\0\x3f\0";
    const char *const picture[] = {png, jpeg_head};
    restart();
    for (int k = 0; k < 2; k++) {
        begin();
        mri_example_add_bytes(&t.b, "image/encoded", picture[k], 48);
        ints("image/class/label", 0);
        ints("image/height", 4);
        ints("image/width", 4);
        ints("image/channels", 3);
        end();
    }
    mr_source *src = open_with(save("as_large"), NULL);
    mr_sample s;
    mr_error err = MR_ERROR_INIT;
    MRT_OK(read_one(src, 0, &s, &err), &err);
    MRT_EQ(s.value[0].type, MR_TYPE_PNG);
    MRT_OK(read_one(src, 1, &s, &err), &err);
    MRT_EQ(s.value[0].type, MR_TYPE_JPEG);
    mr_source_close(src);
}

static void what_is_no_tfrecord(void **state)
{
    (void)state;
    mr_source_config cfg;
    mr_source_defaults(&cfg);
    static const char pointer[] = "version https://git-lfs.github.com/spec/v1\noid sha256:0\nsize 5\n",
                      page[] = "\n<!DOCTYPE html><html>";
    mrt_mkdir(mrt_path("lfs"));
    one_good();
    mrt_write_file(mrt_path("lfs/train-00000-of-00002"), t.bytes, t.used);
    mrt_write_file(mrt_path("lfs/train-00001-of-00002"), pointer, sizeof pointer - 1);
    mr_source *src;
    mr_error err = MR_ERROR_INIT;
    MRT_EQ(mr_source_open(&src, mrt_path("lfs"), &cfg, &err), MR_EFORMAT);
    MRT_HAS(err.text, "git-lfs pointer");
    MRT_HAS(err.file, "train-00001-of-00002");
    mrt_write_file(mrt_path("lfs/train-00001-of-00002"), page, sizeof page - 1);
    MRT_EQ(mr_source_open(&src, mrt_path("lfs"), &cfg, &err), MR_EFORMAT);
    MRT_HAS(err.text, "a page of HTML");
    unlink(mrt_path("lfs/train-00001-of-00002"));
    MRT_EQ(mr_source_open(&src, mrt_path("lfs"), &cfg, &err), MR_ENOENT);
    MRT_HAS(err.text, "this piece of a set of 2 is missing");
    mrt_write_file(mrt_path("pointer"), pointer, sizeof pointer - 1);
    refused(mrt_path("pointer"), MR_EFORMAT, "git-lfs pointer", 0);
    mrt_write_file(mrt_path("page"), page, sizeof page - 1);
    refused(mrt_path("page"), MR_EFORMAT, "a page of HTML", 0);
    cfg.format = "tfrecord";
    mrt_write_file(mrt_path("text"), "just some text that is long enough", 34);
    MRT_EQ(mr_source_open(&src, mrt_path("text"), &cfg, &err), MR_ECHECKSUM);
    MRT_HAS(err.text, "this is no TFRecord file");
    for (int k = 0; k < 2; k++) { /* nothing but records that are no Example: it is not these samples that are
                                     bad */
        restart();
        for (int n = 0; n < (k ? 100 : 3); n++) put_record("\x0a\x02\x0a\x00\x12\x00", 6);
        refused(save("sequences"), MR_EUNSUPPORTED, "SequenceExample", 0);
    }
    restart();
    for (int n = 0; n < 3; n++)
        put_record("\x0a\x03"
                   "abc",
                   5);
    refused(save("foreign"), MR_EFORMAT, "no tf.train.Example", 0);
    restart();
    put_record("", 0);
    refused(save("blank"), MR_EFORMAT, "there is no feature in it", 0);
}

static void trusted_bytes_are_not_summed(void **state)
{
    (void)state;
    one_good();
    common(1);
    mr_source *src = open_with(save("trusted"), NULL);
    mr_extent e;
    mr_sample s;
    mr_error err = MR_ERROR_INIT;
    MRT_OK(mr_source_extent(src, 1, &e, &err), &err);
    uint8_t copy[256];
    memcpy(copy, t.bytes + e.offset, e.bytes);
    copy[e.bytes - 1] ^= 1;
    MRT_EQ(mr_source_parse(src, 1, copy, e.bytes, &s, &err), MR_ECHECKSUM);
    MRT_OK(mri_source_parse_trusted(src, 1, copy, e.bytes, &s, &err), &err);
    MRT_EQ(s.value[1].i, 1);
    MRT_EQ(mri_source_parse_trusted(src, 1, copy, e.bytes - 1, &s, &err), MR_EFORMAT);
    mr_source_close(src);
}

/* One page of head, one of entries, the note. */
static void seal_index(uint8_t *index, size_t bytes)
{
    mri_put_le32(index + 4096, mr_crc32c(0, index + 4100, 4092));
    mri_put_le32(index + 8, mr_crc32c(mr_crc32c(0, index + 12, 4084), index + 8192, bytes - 8192));
}

/* Every byte of the kept index changed, its checksum made right again: another answer may come out, never
 * anything worse. */
static void indexes_that_lie(void **state)
{
    (void)state;
    static const float edge[] = {0.5f};
    restart();
    for (int k = 0; k < 3; k++) {
        begin();
        text("image_raw", "123456");
        ints("height", 1);
        ints("width", 2);
        ints("depth", 3);
        ints("image/class/label", k);
        text("image/class/text", k ? "one" : "other");
        mri_example_add_floats(&t.b, "image/object/bbox/xmin", edge, 1);
        mri_example_add_floats(&t.b, "image/object/bbox/xmax", edge, 1);
        mri_example_add_floats(&t.b, "image/object/bbox/ymin", edge, 1);
        mri_example_add_floats(&t.b, "image/object/bbox/ymax", edge, 1);
        end();
    }
    mr_source_close(open_with(save("liar"), NULL));
    size_t bytes;
    uint8_t *index = mrt_read_file(mrt_path(".liar.mridx"), &bytes);
    for (size_t k = 12; k < bytes; k += k == 180 ? 4096 - 180 : k == 4200 ? 8192 - 4200 : 1) {
        for (int bit = 0; bit < 8; bit += 7) {
            index[k] ^= (uint8_t)(1 << bit);
            seal_index(index, bytes);
            mrt_write_file(mrt_path(".liar.mridx"), index, bytes);
            index[k] ^= (uint8_t)(1 << bit);
            mr_source *src = open_with(mrt_path("liar"), NULL);
            MRT_EQ(mr_source_info_of(src)->count, 3);
            for (uint64_t n = 0; n < 3; n++) {
                mr_sample s;
                if (read_one(src, n, &s, NULL) != MR_OK) continue;
                MRT_EQ(s.value[0].bytes, 6);
                MRT_EQ(s.value[2].bytes, 16);
                volatile float x = ((const float *)s.value[2].data)[3]; /* a sanitizer watches */
                (void)x;
            }
            mr_source_close(src);
        }
    }
    /* what no look at the index alone can show: two labels have changed places */
    uint8_t *label = index + 4096 + 16 + 12, kept = label[0];
    label[0] = label[20];
    label[20] = kept;
    seal_index(index, bytes);
    mrt_write_file(mrt_path(".liar.mridx"), index, bytes);
    mr_error err = MR_ERROR_INIT;
    mr_source *src = open_with(mrt_path("liar"), NULL);
    MRT_EQ(mr_source_check(src, &err), MR_EFORMAT);
    MRT_HAS(err.text, "the index is not the data's");
    MRT_EQ(err.sample, 0);
    mr_source_close(src);
    unlink(mrt_path(".liar.mridx"));
    mr_source_close(open_with(mrt_path("liar"), NULL));
    src = open_with(mrt_path("liar"), NULL);
    MRT_OK(mr_source_check(src, &err), &err);
    mr_source_close(src);
    free(index);
}

static void allocations_fail_in_turn(void **state)
{
    (void)state;
    static const float edge[] = {0.5f};
    restart();
    for (int k = 0; k < 3; k++) {
        begin();
        text("image/encoded", jpeg);
        ints("image/class/label", k);
        text("image/class/text", "name");
        mri_example_add_floats(&t.b, "image/object/bbox/xmin", edge, 1);
        mri_example_add_floats(&t.b, "image/object/bbox/xmax", edge, 1);
        mri_example_add_floats(&t.b, "image/object/bbox/ymin", edge, 1);
        mri_example_add_floats(&t.b, "image/object/bbox/ymax", edge, 1);
        end();
    }
    save("alloc");
    for (int turn = 0; turn < 2; turn++) {
        for (long n = 0;; n++) {
            mr_source *src = (mr_source *)&src;
            mr_error err = MR_ERROR_INIT;
            if (!turn) unlink(mrt_path(".alloc.mridx"));
            mrt_fail_alloc_at(n);
            const int rc = mr_source_open(&src, mrt_path("alloc"), NULL, &err);
            mrt_fail_alloc_at(-1);
            if (mrt_last_turn(rc, src)) break;
        }
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(bytes_by_hand),
        cmocka_unit_test(labels_from_one_and_names),
        cmocka_unit_test(keys_are_chosen),
        cmocka_unit_test(boxes_become_tensors),
        cmocka_unit_test(masks),
        cmocka_unit_test(features_that_the_first_record_lacks),
        cmocka_unit_test(further_features_are_fields),
        cmocka_unit_test(boxes_over_the_budget),
        cmocka_unit_test(packed_and_in_pieces),
        cmocka_unit_test(wrong_framing),
        cmocka_unit_test(wrong_records),
        cmocka_unit_test(wrong_labels),
        cmocka_unit_test(pixels_that_do_not_fit),
        cmocka_unit_test(pictures_as_large_as_their_pixels),
        cmocka_unit_test(what_is_no_tfrecord),
        cmocka_unit_test(trusted_bytes_are_not_summed),
        cmocka_unit_test(indexes_that_lie),
        cmocka_unit_test(allocations_fail_in_turn),
    };
    return mrt_run(tests);
}
