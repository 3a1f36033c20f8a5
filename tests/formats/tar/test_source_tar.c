/* WebDataset archives as a source: grouping, picture and class, fields, sets of files, the kept index. */
#include <unistd.h>

#include "formats/source/sample_name.h"
#include "mrt.h"
#include "tests/formats/tar/mrt_tar_source.h"

static const char png[] = "\x89PNG\r\n\x1a\n another";

static void value_is(const mr_value *v, mr_type type, const void *data, size_t bytes)
{
    MRT_EQ(v->type, type);
    MRT_EQ(v->bytes, bytes);
    assert_memory_equal(v->data, data, bytes);
}

static void text_is(const mr_value *v, mr_type type, const char *text)
{
    value_is(v, type, text, strlen(text));
}

static void field_is(const mr_source *src, uint32_t at, const char *name, mr_type type)
{
    MRT_TRUE(at < mr_source_info_of(src)->field_count);
    MRT_STR(mr_source_info_of(src)->fields[at].name, name);
    MRT_EQ(mr_source_info_of(src)->fields[at].type, type);
}

/* n samples from number `first` on, class = number % 5; some with more members, some with ignored members
 * between them. */
static mrt_tar shard(int first, int n)
{
    mrt_tar a = {0};
    mrt_tar_pax(&a, 'g', "comment", "for all");
    mrt_tar_text(&a, "__index__/first.json", "a writer's note");
    mrt_tar_header(&a, '5', "d/", 0);
    for (int k = first; k < first + n; k++) {
        char name[64], text[32];
        snprintf(name, sizeof name, "d/%06d.JPG", k);
        snprintf(text, sizeof text, "picture %d", k);
        char data[64] = "\xff\xd8\xff";
        snprintf(data + 3, sizeof data - 3, "%s", text);
        if (k % 3 == 0) mrt_tar_pax(&a, 'x', "mtime", "1.5");
        mrt_tar_file(&a, name, data, 3 + strlen(text));
        if (k % 4 == 0) mrt_tar_text(&a, "__meta__", "again");
        snprintf(name, sizeof name, "d/%06d.cls", k);
        snprintf(text, sizeof text, "%d", k % 5);
        mrt_tar_text(&a, name, text);
        snprintf(name, sizeof name, "d/%06d.txt", k);
        if (k % 2 == 0) mrt_tar_text(&a, name, "caption");
    }
    mrt_tar_end(&a);
    return a;
}

static void check_shards(const char *name, uint32_t files, int count)
{
    mr_source *src = mrt_tar_open_one(name);
    const mr_source_info *info = mr_source_info_of(src);
    MRT_EQ(info->count, count);
    MRT_EQ(info->file_count, files);
    MRT_EQ(info->class_count, 5);
    MRT_EQ(info->field_count, 3);
    MRT_EQ(info->image_field, 0);
    MRT_EQ(info->label_field, 1);
    MRT_TRUE(info->told == NULL);
    field_is(src, 0, "image", MR_TYPE_IMAGE);
    field_is(src, 1, "label", MR_TYPE_INT);
    field_is(src, 2, "txt", MR_TYPE_TEXT);
    uint64_t largest = 0, total = 0;
    for (int k = 0; k < count; k++) {
        const mr_sample s = mrt_tar_get(src, (uint64_t)k);
        char text[32] = "\xff\xd8\xff";
        int64_t label;
        mr_extent e;
        snprintf(text + 3, sizeof text - 3, "picture %d", k);
        text_is(&s.value[0], MR_TYPE_JPEG, text);
        MRT_EQ(s.value[1].i, k % 5);
        text_is(&s.value[2], MR_TYPE_TEXT, k % 2 ? "" : "caption");
        MRT_EQ(mr_source_label(src, (uint64_t)k, &label), MR_OK);
        MRT_EQ(label, k % 5);
        MRT_EQ(mr_source_extent(src, (uint64_t)k, &e, NULL), MR_OK);
        MRT_EQ(e.offset % 512, 0);
        largest = e.bytes > largest ? e.bytes : largest;
        total += e.bytes;
    }
    MRT_EQ(info->max_extent_bytes, largest);
    MRT_EQ(info->total_bytes, total);
    mr_source_close(src);
}

static void archives(void **state)
{
    (void)state;
    mrt_tar a = shard(0, 30);
    mrt_tar_save(&a, "one.tar");
    check_shards("one.tar", 1, 30);
    a = shard(0, 30);
    mrt_tar_save_packed(&a, "one.tgz");
    check_shards("one.tgz", 1, 30);
    mrt_mkdir(mrt_path("many"));
    for (int k = 0; k < 3; k++) {
        a = shard(10 * k, 10);
        char name[64];
        snprintf(name, sizeof name, "many/s-%06d.tar", k);
        k == 1 ? mrt_tar_save_packed(&a, name) : mrt_tar_save(&a, name);
    }
    check_shards("many", 3, 30);
    check_shards("many/s-{000000..000002}.tar", 3, 30);
    check_shards("many/s-*.tar", 3, 30);
    check_shards("many/s-{000000..000001}.tar", 2, 20);
    a = shard(10, 0); /* an archive without samples in front */
    mrt_tar_save(&a, "many/empty.tar");
    check_shards("many", 4, 30);
    mr_source *src = mrt_tar_open_one("many");
    mr_source_file f;
    char path[512];
    for (uint32_t k = 0; k < 4; k++) {
        MRT_EQ(mr_source_file_at(src, k, &f), MR_OK);
        MRT_EQ(f.direct_ok, k != 2);
    }
    MRT_HAS(mr_source_sample_path(src, 12, path, sizeof path), "s-000001.tar");
    mr_source_close(src);
}

static void index_kept(void **state)
{
    (void)state;
    mrt_tar_cfg.no_index_file = false;
    mrt_tar a = shard(0, 8);
    mrt_tar_fini(&a);
    mrt_tar_picture(&a, "../0.jpg");
    mrt_tar_text(&a, "../0.cls", "3");
    mrt_tar_text(&a, "../0.caption.txt", "text");
    mrt_tar_picture(&a, "../1.jpg");
    mrt_tar_text(&a, "../1.cls", "0");
    mrt_tar_save(&a, "kept.tar");
    mr_source *first = mrt_tar_open_one("kept.tar"), *second = mrt_tar_open_one("kept.tar");
    MRT_EQ(access(mrt_path(".kept.tar.mridx"), R_OK), 0);
    MRT_TRUE(mr_source_info_of(first)->fingerprint == mr_source_info_of(second)->fingerprint);
    MRT_EQ(mr_source_info_of(second)->field_count, 3);
    field_is(second, 2, "caption.txt", MR_TYPE_TEXT);
    MRT_EQ(mr_source_info_of(second)->class_count, 4);
    MRT_HAS(mr_source_info_of(first)->told,
            "5 names lead out of their folder (first: \"../0.jpg\", offset 0 of file 1)");
    MRT_HAS(mr_source_info_of(second)->told, "5 names lead out of their folder");
    MRT_HAS(mr_source_info_of(second)->told,
            "1 archive has no end mark (first: offset 5120 of file 1): some writers leave it out; otherwise "
            "the end is missing, and samples with it");
    MRT_EQ(mrt_tar_get(second, 1).value[1].i, 0);
    mr_source_close(first);
    mr_source_close(second);
    mrt_tar_cfg.label_key = "caption.txt"; /* other settings, another index */
    mr_source *src;
    mr_error err = MR_ERROR_INIT;
    MRT_EQ(mr_source_open(&src, mrt_path("kept.tar"), &mrt_tar_cfg, &err), MR_EFORMAT);
    MRT_HAS(err.text, "no sample has a label that is a class; the first: member .caption.txt");
}

/* ---- meaning of the members ---- */
static void pictures_by_content(void **state)
{
    (void)state;
    mrt_tar a = {0};
    mrt_tar_text(&a, "0.jpg", "no picture");
    mrt_tar_file(&a, "0.weird", mrt_tar_jpeg, sizeof mrt_tar_jpeg);
    mrt_tar_file(&a, "0.seg.png", png, sizeof png);
    mrt_tar_file(&a, "0.png", png, sizeof png);
    mrt_tar_text(&a, "0.cls", "1");
    mrt_tar_text(&a, "1.cls", "0");
    mrt_tar_file(&a, "1.seg.png", png, sizeof png);
    mrt_tar_file(&a, "1.other", mrt_tar_jpeg, sizeof mrt_tar_jpeg); /* the mask is a field: not the picture */
    mrt_tar_save(&a, "content.tar");
    mr_source *src = mrt_tar_open_one("content.tar");
    MRT_EQ(mr_source_info_of(src)->field_count, 5);
    field_is(src, 2, "jpg", MR_TYPE_BYTES);
    field_is(src, 3, "weird", MR_TYPE_BYTES);
    field_is(src, 4, "seg.png", MR_TYPE_BYTES);
    mr_sample s = mrt_tar_get(src, 0);
    value_is(&s.value[0], MR_TYPE_PNG, png, sizeof png);
    value_is(&s.value[3], MR_TYPE_BYTES, mrt_tar_jpeg, sizeof mrt_tar_jpeg);
    s = mrt_tar_get(src, 1);
    value_is(&s.value[0], MR_TYPE_JPEG, mrt_tar_jpeg, sizeof mrt_tar_jpeg);
    value_is(&s.value[4], MR_TYPE_BYTES, png, sizeof png);
    MRT_EQ(s.value[2].bytes, 0);
    mr_source_close(src);
    mrt_tar_cfg.image_key = ".SEG.png";
    src = mrt_tar_open_one("content.tar");
    s = mrt_tar_get(src, 0);
    value_is(&s.value[0], MR_TYPE_PNG, png, sizeof png);
    field_is(src, 3, "weird", MR_TYPE_BYTES);
    field_is(src, 4, "png", MR_TYPE_BYTES);
    mr_source_close(src);
}

/* Two pictures in a sample: one of them is the other's mask, wherever it stands. */
static void masks(void **state)
{
    (void)state;
    static const struct {
        const char *image, *mask;
    } names[] = {{"jpg", "png"},
                 {"jpg", "mask.png"},
                 {"png", "seg.png"},
                 {"photo.png", "mask.png"},
                 {"photo.png", "segmentation.png"},
                 {"input.jpg", "masks.0.png"},
                 {"rgb", "seg"}};
    for (size_t k = 0; k < sizeof names / sizeof *names; k++)
        for (int order = 0; order < 2; order++) {
            mrt_tar a = {0};
            char image[64], mask[64];
            for (int n = 0; n < 2; n++) {
                const bool photo = strstr(names[k].image, "png") == NULL;
                snprintf(image, sizeof image, "d/%d.%s", n, names[k].image);
                snprintf(mask, sizeof mask, "d/%d.%s", n, names[k].mask);
                if (order) mrt_tar_file(&a, mask, png, sizeof png - 1);
                mrt_tar_file(&a, image, photo ? mrt_tar_jpeg : png, photo ? sizeof mrt_tar_jpeg : sizeof png);
                if (!order) mrt_tar_file(&a, mask, png, sizeof png - 1);
            }
            mrt_tar_end(&a);
            mrt_tar_save(&a, "masks.tar");
            mr_source *src = mrt_tar_open_one("masks.tar");
            MRT_EQ(mr_source_info_of(src)->field_count, 2);
            MRT_EQ(mr_source_info_of(src)->image_field, 0);
            field_is(src, 1, names[k].mask, MR_TYPE_BYTES);
            const mr_sample s = mrt_tar_get(src, 1);
            value_is(&s.value[1], MR_TYPE_BYTES, png, sizeof png - 1);
            MRT_EQ(s.value[0].bytes, strstr(names[k].image, "png") ? sizeof png : sizeof mrt_tar_jpeg);
            mr_source_close(src);
        }
    mrt_tar a = {0};
    mrt_tar_file(&a, "0.mask.png", png, sizeof png); /* nothing else: the masks are then the samples */
    mrt_tar_end(&a);
    mrt_tar_save(&a, "alone.tar");
    mr_source *src = mrt_tar_open_one("alone.tar");
    const mr_sample s = mrt_tar_get(src, 0);
    value_is(&s.value[0], MR_TYPE_PNG, png, sizeof png);
    mr_source_close(src);
}

/* Version 1: | preamble 10 | text, up to 128 | elements |. The member's bytes at out; how many. */
static size_t npy(uint8_t *out, const char *descr, const char *order, const char *shape, const void *elements,
                  size_t bytes)
{
    char text[128];
    snprintf(text, sizeof text, "{'descr': '%s', 'fortran_order': %s, 'shape': %s, }", descr, order, shape);
    memset(out, ' ', 128);
    memcpy(out, "\x93NUMPY\1\0\x76\0", 10);
    memcpy(out + 10, text, strlen(text));
    out[127] = '\n';
    if (bytes) memcpy(out + 128, elements, bytes);
    return 128 + bytes;
}

static void tensors(void **state)
{
    (void)state;
    static const float boxes[] = {0, 0, 0.5f, 0.5f, 0.25f, 0.25f, 1, 1};
    static const struct {
        const char *boxes, *shape;
        size_t count;
    } samples[] = {{"<f4", "(2, 4)", 8}, {"<f4", "(0, 4)", 0}, {NULL, NULL, 0},
                   {"<f4", "(1, 4)", 4}, {"<f8", "(1, 4)", 8}, {"<f4", "(2, 4)", 7}};
    uint8_t file[1024];
    mrt_tar a = {0};
    for (int k = 0; k < 6; k++) {
        char name[32];
        snprintf(name, sizeof name, "%d.jpg", k);
        mrt_tar_picture(&a, name);
        snprintf(name, sizeof name, "%d.boxes.npy", k);
        if (samples[k].boxes)
            mrt_tar_file(&a, name, file,
                         npy(file, samples[k].boxes, "False", samples[k].shape, boxes, 4 * samples[k].count));
        snprintf(name, sizeof name, "%d.level.npy", k);
        mrt_tar_file(&a, name, file, npy(file, "<i8", "False", "()", boxes, 8));
        snprintf(name, sizeof name, "%d.turned.npy", k);
        mrt_tar_file(&a, name, file, npy(file, "<f4", "True", "(2, 4)", boxes, sizeof boxes));
        snprintf(name, sizeof name, "%d.broken.npy", k);
        mrt_tar_text(&a, name, "\x93NUMPY");
    }
    mrt_tar_end(&a);
    mrt_tar_save(&a, "tensors.tar");
    mr_source *src = mrt_tar_open_one("tensors.tar");
    MRT_EQ(mr_source_info_of(src)->field_count, 5);
    field_is(src, 1, "boxes.npy", MR_TYPE_TENSOR);
    field_is(src, 2, "level.npy", MR_TYPE_TENSOR);
    field_is(src, 3, "turned.npy", MR_TYPE_BYTES); /* others are left as they are */
    field_is(src, 4, "broken.npy", MR_TYPE_BYTES);
    MRT_EQ(mr_source_info_of(src)->fields[1].dtype, MR_F32);
    MRT_EQ(mr_source_info_of(src)->fields[1].ndim, 0);
    MRT_EQ(mr_source_info_of(src)->fields[2].dtype, MR_I64);
    for (uint64_t k = 0; k < 4; k++) {
        const mr_sample s = mrt_tar_get(src, k);
        value_is(&s.value[1], MR_TYPE_TENSOR, boxes, 4 * samples[k].count);
        MRT_EQ(s.value[1].dtype, MR_F32);
        MRT_EQ(s.value[1].ndim, 2);
        MRT_EQ(s.value[1].dim[0], samples[k].count / 4); /* sample 2 has no such member: none, of the same
                                                            kind */
        MRT_EQ(s.value[1].dim[1], 4);
        MRT_EQ(s.value[2].ndim, 1);
        MRT_EQ(s.value[2].dim[0], 1);
    }
    for (uint64_t k = 4; k < 6; k++) {
        mr_sample s;
        mr_error err = MR_ERROR_INIT;
        MRT_EQ(mr_source_read(src, k, &mrt_tar_buf, &mrt_tar_buf_bytes, &s, &err), MR_EFORMAT);
        MRT_HAS(err.text, "member .boxes.npy: ");
        if (k == 4) MRT_HAS(err.text, "array of f32, as in the first sample that has it, found one of f64");
        MRT_HAS(err.file, "tensors.tar");
        MRT_EQ(err.sample, k);
    }
    mr_source_close(src);
}

/* The class of the only sample of an archive with this member, as label_key says. */
static int64_t class_of(const char *ext, const char *text, const char *key)
{
    mrt_tar a = {0};
    char name[64];
    mrt_tar_picture(&a, "a.b/0.jpg");
    snprintf(name, sizeof name, "a.b/0.%s", ext);
    mrt_tar_text(&a, name, text);
    mrt_tar_end(&a);
    mrt_tar_save(&a, "class.tar");
    mrt_tar_cfg.label_key = key;
    mr_source *src = mrt_tar_open_one("class.tar");
    const int at = mr_source_info_of(src)->label_field;
    const int64_t label = at < 0 ? -1 : mrt_tar_get(src, 0).value[at].i;
    mr_source_close(src);
    return label;
}

static void classes(void **state)
{
    (void)state;
    mrt_tar_cfg.label_offset = 0;
    MRT_EQ(class_of("cls", "17", NULL), 17);
    MRT_EQ(class_of("cls", " +17\r\n", NULL), 17);
    MRT_EQ(class_of("CLS", "0", NULL), 0);
    MRT_EQ(class_of("class", "4", NULL), 4);
    MRT_EQ(class_of("label", "5", NULL), 5);
    MRT_EQ(class_of("txt", "6", NULL), -1); /* a caption, by custom */
    MRT_EQ(class_of("txt", "6", "txt"), 6);
    MRT_EQ(class_of("json", "{\"label\": 7}", NULL), 7);
    MRT_EQ(class_of("json", " {\"x\": [1, {}], \"cls\": 8.0}\n", NULL), 8);
    MRT_EQ(class_of("meta.json", "{\"label\": \"cat\", \"class\": 9}", NULL), 9);
    MRT_EQ(class_of("json", "{\"Species\": 10, \"label\": 1}", "Species"), 10);
    MRT_EQ(class_of("json", "{\"label\": \"cat\"}", NULL), -1);
    MRT_EQ(class_of("json", "[1]", NULL), -1);
    MRT_EQ(class_of("number.cls", "11", NULL), -1);
    MRT_EQ(class_of("number.cls", "11", ".Number.cls"), 11);
    mrt_tar_cfg.label_offset = MR_LABEL_AUTO;
    MRT_EQ(class_of("cls", "1", NULL), 1);
    mrt_tar_cfg.label_offset = 10;
    MRT_EQ(class_of("cls", "17", NULL), 7);
}

static void no_picture_at_all(void **state)
{
    (void)state;
    mrt_tar a = {0};
    mrt_tar_text(&a, "0.x", "one");
    mrt_tar_text(&a, "0.image", "taken name");
    mrt_tar_text(&a, "0.image.entries", "taken name");
    mrt_tar_text(&a, "0.", "no name");
    mrt_tar_text(&a, "0.txt", "two");
    mrt_tar_end(&a);
    mrt_tar_save(&a, "text.tar");
    mr_source *src = mrt_tar_open_one("text.tar");
    MRT_EQ(mr_source_info_of(src)->image_field, -1);
    MRT_EQ(mr_source_info_of(src)->label_field, -1);
    MRT_EQ(mr_source_info_of(src)->field_count, 2);
    const mr_sample s = mrt_tar_get(src, 0);
    text_is(&s.value[0], MR_TYPE_BYTES, "one");
    text_is(&s.value[1], MR_TYPE_TEXT, "two");
    mr_source_close(src);
}

/* The schema comes from a sample that is whole, not from a damaged first one. */
static void schema_from_a_whole_sample(void **state)
{
    (void)state;
    mrt_tar a = {0};
    mrt_tar_text(&a, "0.cls", "1");
    mrt_tar_picture(&a, "1.jpg");
    mrt_tar_text(&a, "2.cls", "0");
    mrt_tar_picture(&a, "2.jpg");
    mrt_tar_end(&a);
    mrt_tar_save(&a, "late.tar");
    mr_source *src = mrt_tar_open_one("late.tar");
    MRT_EQ(mr_source_info_of(src)->field_count, 2);
    MRT_EQ(mrt_tar_get(src, 2).value[1].i, 0);
    mr_source_close(src);
    a = (mrt_tar){0};
    mrt_tar_cfg.image_key = "gif";
    mr_error err = MR_ERROR_INIT;
    MRT_EQ(mrt_tar_try(&src, "late.tar", &err), MR_EFORMAT);
    MRT_HAS(err.text, "none of the first 64 samples has a picture in member \"gif\"");
    MRT_HAS(err.file, "late.tar");
    mrt_tar_cfg.image_key = NULL;
    mrt_tar_cfg.label_key = "kind";
    MRT_EQ(mrt_tar_try(&src, "late.tar", &err), MR_EFORMAT);
    MRT_HAS(err.text, "a member or a field in .json named \"kind\"");
    mrt_tar_cfg.label_key = "";
    MRT_EQ(mrt_tar_try(&src, "late.tar", &err), MR_EINVAL);
}

/* 70 samples: captions, masks and boxes begin late; sample 3 is a PNG, which sample 5 has beside its JPEG. */
static void save_late_members(const char *name)
{
    static const float corners[] = {0, 0, 0.5f, 0.5f};
    uint8_t file[256];
    mrt_tar a = {0};
    for (int k = 0; k < 70; k++) {
        char member[32];
        snprintf(member, sizeof member, "%d.jpg", k);
        if (k != 3) mrt_tar_picture(&a, member);
        snprintf(member, sizeof member, "%d.png", k);
        if (k == 3 || k == 5) mrt_tar_file(&a, member, png, sizeof png - 1);
        snprintf(member, sizeof member, "%d.txt", k);
        if (k > 0) mrt_tar_text(&a, member, "caption");
        snprintf(member, sizeof member, "%d.boxes.npy", k);
        if (k > 1)
            mrt_tar_file(&a, member, file, npy(file, "<f4", "False", "(1, 4)", corners, sizeof corners));
        snprintf(member, sizeof member, "%d.mask.png", k);
        if (k == 69) mrt_tar_file(&a, member, png, sizeof png - 1);
        snprintf(member, sizeof member, "%d.image.depth", k);
        if (k == 6) mrt_tar_text(&a, member, "no field");
        snprintf(member, sizeof member, "%d.cls", k);
        if (k >= 64) mrt_tar_text(&a, member, "1");
    }
    mrt_tar_end(&a);
    mrt_tar_save(&a, name);
}

/* Fields are the members of all samples, whether the index was kept or not. */
static void members_that_the_first_sample_lacks(void **state)
{
    (void)state;
    save_late_members("few.tar");
    mrt_tar_cfg.no_index_file = false;
    uint64_t fingerprint = 0;
    for (int again = 0; again < 2; again++) {
        mr_source *src = mrt_tar_open_one("few.tar");
        const mr_source_info *info = mr_source_info_of(src);
        MRT_EQ(info->field_count, 5);
        MRT_EQ(info->label_field, -1);
        field_is(src, 0, "image", MR_TYPE_IMAGE);
        field_is(src, 1, "txt", MR_TYPE_TEXT);
        field_is(src, 2, "boxes.npy", MR_TYPE_TENSOR);
        field_is(src, 3, "cls", MR_TYPE_BYTES);
        field_is(src, 4, "mask.png", MR_TYPE_BYTES);
        MRT_HAS(info->told, "2 members were left out (first: \"image.depth\"");
        MRT_HAS(info->told, "6 samples have a class (first: \"cls\"");
        mr_sample s = mrt_tar_get(src, 0);
        MRT_EQ(s.value[1].bytes + s.value[2].bytes + s.value[4].bytes, 0);
        MRT_EQ(s.value[2].dim[1], 4);
        s = mrt_tar_get(src, 3);
        value_is(&s.value[0], MR_TYPE_PNG, png, sizeof png - 1);
        s = mrt_tar_get(src, 69);
        text_is(&s.value[1], MR_TYPE_TEXT, "caption");
        MRT_EQ(s.value[2].dim[0], 1);
        value_is(&s.value[4], MR_TYPE_BYTES, png, sizeof png - 1);
        MRT_TRUE(!again || info->fingerprint == fingerprint);
        fingerprint = info->fingerprint;
        MRT_EQ(mr_source_check(src, NULL), MR_OK);
        mr_source_close(src);
    }
}

static void over_the_budget(void **state)
{
    (void)state;
    mrt_tar a = {0};
    for (int k = 0; k < 2000; k++) {
        char name[32];
        snprintf(name, sizeof name, "%d.jpg", k);
        mrt_tar_header(&a, '0', name, 0);
    }
    mrt_tar_save(&a, "large.tar");
    mr_source *src;
    mr_error err = MR_ERROR_INIT;
    mrt_tar_cfg.memory_bytes = 16000;
    MRT_EQ(mrt_tar_try(&src, "large.tar", &err), MR_ELIMIT);
    MRT_HAS(err.file, "large.tar");
}

static void allocations_fail(void **state)
{
    (void)state;
    mrt_tar a = shard(0, 4);
    mrt_tar_save_packed(&a, "alloc.tar");
    for (int kept = 0; kept < 2; kept++) {
        mrt_tar_cfg.no_index_file = kept == 0;
        for (int n = 0;; n++) {
            if (kept) unlink(mrt_path(".alloc.tar.mridx"));
            mr_error err = MR_ERROR_INIT;
            mr_source *src;
            mrt_fail_alloc_at(n);
            const int rc = mrt_tar_try(&src, "alloc.tar", &err);
            const int failed = mrt_alloc_failed();
            mrt_fail_alloc_at(-1);
            if (rc == MR_OK) {
                mr_source_close(src);
                if (failed) continue; /* an index that could not be kept is no failure */
                MRT_TRUE(n > 5);
                break;
            }
            MRT_EQ(rc, MR_ENOMEM);
        }
    }
}

/* Without memory a name is not "none". */
static void allocations_fail_while_naming(void **state)
{
    (void)state;
    mrt_tar a = shard(0, 4);
    mrt_tar_save(&a, "named.tar");
    mr_source *src = mrt_tar_open_one("named.tar");
    for (int call = 0; call < 2; call++) {
        for (int n = 0;; n++) {
            mr_error err = MR_ERROR_INIT;
            char name[64] = "?";
            bool has = true;
            mrt_fail_alloc_at(n);
            const int rc = call ? mri_source_has_names(src, &has, &err)
                                : mr_source_sample_name_get(src, 0, NULL, 0, name, sizeof name, &err);
            mrt_fail_alloc_at(-1);
            if (rc == MR_OK) {
                MRT_TRUE(n > 2);
                MRT_TRUE(has);
                if (!call) MRT_STR(name, "d/000000.jpg");
                break;
            }
            MRT_EQ(rc, MR_ENOMEM);
            MRT_EQ(err.code, MR_ENOMEM);
            MRT_TRUE(!has || !call);
            if (!call) MRT_STR(name, "");
        }
    }
    mr_source_close(src);
}

int main(void)
{
#define TEST(name) cmocka_unit_test_setup_teardown(name, mrt_tar_fresh, mrt_tar_done)
    const struct CMUnitTest tests[] = {
        TEST(archives),
        TEST(index_kept),
        TEST(pictures_by_content),
        TEST(masks),
        TEST(tensors),
        TEST(classes),
        TEST(no_picture_at_all),
        TEST(schema_from_a_whole_sample),
        TEST(members_that_the_first_sample_lacks),
        TEST(over_the_budget),
        TEST(allocations_fail),
        TEST(allocations_fail_while_naming),
    };
    return mrt_run(tests);
}
