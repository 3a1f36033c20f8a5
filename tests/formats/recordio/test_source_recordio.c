/* RecordIO as a data set: labels, lists next to it, records in parts, and each way in which file, list and
 * record can disagree. */
#include <math.h>
#include <pthread.h>
#include <unistd.h>

#include "formats/recordio/recordio.h"
#include "millrace/formats.h"
#include "mrt.h"

enum { MOST = 200, PICTURE = 60 };

typedef struct maker { /* a .rec file and the lists that go with it */
    uint8_t bytes[MOST * 512];
    size_t size;
    uint64_t offset[MOST];
    float label[MOST];
    uint32_t count;
} maker;

static const uint8_t magic[4] = {0x0a, 0x23, 0xd7, 0xce};

static void picture(uint8_t p[PICTURE], uint64_t seed)
{
    mrt_noise(p, PICTURE, seed + 1);
    memcpy(p, "\xff\xd8\xff\xe0", 4); /* as far as a source looks */
}

static void add_data(maker *m, const void *data, uint32_t bytes)
{
    m->offset[m->count++] = m->size;
    m->size = (size_t)(mri_recordio_build(data, bytes, m->bytes + m->size) - m->bytes);
}

static void add(maker *m, float label, uint32_t label_count, const float *labels, uint32_t picture_bytes)
{
    uint8_t data[512];
    const mri_picture_head h = {.label_count = label_count, .label = label, .id = m->count};
    uint8_t *at = mri_picture_head_build(&h, labels, data);
    picture(at, m->count);
    m->label[m->count] = label_count ? labels[0] : label;
    add_data(m, data, (uint32_t)(at - data) + picture_bytes);
}

static maker *some(uint32_t count)
{
    static maker m;
    m.size = m.count = 0;
    while (m.count < count)
        add(&m, (float)(m.count * 7 % 10), 0, NULL,
            m.count % PICTURE + 4 < PICTURE ? m.count % PICTURE + 4 : PICTURE);
    return &m;
}

static void write_rec(const maker *m, const char *name)
{
    mrt_write_file(mrt_path("%s.rec", name), m->bytes, m->size);
}

/* Lines of .idx for records [first, count), the last one first when backwards. */
static void write_idx(const maker *m, const char *name, uint32_t first, uint32_t count, int backwards)
{
    FILE *f = fopen(mrt_path("%s.idx", name), "w");
    MRT_TRUE(f != NULL);
    for (uint32_t k = first; k < count; k++) {
        const uint32_t at = backwards ? count - 1 - k : k;
        fprintf(f, "%u\t%llu\n", at, (unsigned long long)m->offset[at]);
    }
    fclose(f);
}

static void write_lst(const maker *m, const char *name, uint32_t count)
{
    FILE *f = fopen(mrt_path("%s.lst", name), "w");
    MRT_TRUE(f != NULL);
    for (uint32_t k = count; k-- > 0;)
        fprintf(f, "%u\t%f\tclass %u/%u.jpg\r\n", k, (double)m->label[k], k % 3, k);
    fclose(f);
}

static mr_source_config plain_config(void)
{
    mr_source_config cfg;
    mr_source_defaults(&cfg);
    cfg.no_index_file = true;
    return cfg;
}

static int try_open(const char *name, const mr_source_config *given, mr_source **src, mr_error *err)
{
    const mr_source_config cfg = plain_config();
    *src = (mr_source *)(uintptr_t)&cfg;
    const int rc = mr_source_open(src, mrt_path("%s.rec", name), given ? given : &cfg, err);
    if (rc) MRT_TRUE(*src == NULL);
    return rc;
}

static mr_source *open_ok(const char *name, const mr_source_config *given)
{
    mr_source *src;
    mr_error err = MR_ERROR_INIT;
    MRT_OK(try_open(name, given, &src, &err), &err);
    return src;
}

static mr_error refused(const char *name, int code, const char *text)
{
    mr_source *src;
    mr_error err = MR_ERROR_INIT;
    MRT_EQ(try_open(name, NULL, &src, &err), code);
    MRT_HAS(err.text, text);
    return err;
}

static mr_error bad_sample(const mr_source *src, uint64_t at, const char *text)
{
    void *buf = NULL;
    size_t bytes = 0;
    mr_sample s;
    mr_error err = MR_ERROR_INIT;
    MRT_EQ(mr_source_read(src, at, &buf, &bytes, &s, &err), MR_EFORMAT);
    MRT_HAS(err.text, text);
    MRT_EQ(err.sample, at);
    MRT_HAS(err.file, ".rec");
    free(buf);
    return err;
}

static void check_all(const mr_source *src, const maker *m)
{
    void *buf = NULL;
    size_t bytes = 0;
    MRT_EQ(mr_source_info_of(src)->count, m->count);
    for (uint32_t k = 0; k < m->count; k++) {
        uint8_t expected[PICTURE];
        mr_sample s;
        mr_extent e;
        int64_t label;
        mr_error err = MR_ERROR_INIT;
        picture(expected, k);
        MRT_OK(mr_source_extent(src, k, &e, &err), &err);
        MRT_EQ(e.offset, m->offset[k]);
        MRT_EQ(e.bytes, (k + 1 < m->count ? m->offset[k + 1] : m->size) - m->offset[k]);
        MRT_OK(mr_source_read(src, k, &buf, &bytes, &s, &err), &err);
        MRT_EQ(s.value[0].type, MR_TYPE_JPEG);
        MRT_TRUE(s.value[0].bytes >= 4 && s.value[0].bytes <= PICTURE);
        assert_memory_equal(s.value[0].data, expected, s.value[0].bytes);
        MRT_EQ(s.value[1].i, (int64_t)m->label[k]);
        MRT_EQ(mr_source_label(src, k, &label), MR_OK);
        MRT_EQ(label, s.value[1].i);
    }
    free(buf);
}

/* ---- right files ---- */
static void records_alone(void **state)
{
    (void)state;
    const maker *m = some(150);
    write_rec(m, "alone");
    mr_source *src = open_ok("alone", NULL);
    const mr_source_info *info = mr_source_info_of(src);
    char path[512];
    mr_source_file f;
    MRT_STR(info->format, "recordio");
    MRT_EQ(info->class_count, 10);
    MRT_EQ(info->field_count, 2);
    MRT_EQ(info->total_bytes, m->size);
    MRT_STR(mr_source_sample_path(src, 3, path, sizeof path), mrt_path("alone.rec"));
    MRT_EQ(mr_source_file_at(src, 0, &f), MR_OK);
    MRT_TRUE(f.direct_ok);
    check_all(src, m);
    mr_source_close(src);
}

static void lists_beside(void **state)
{
    (void)state;
    const maker *m = some(MOST);
    write_rec(m, "lists");
    mr_source *src = open_ok("lists", NULL);
    const uint64_t print = mr_source_info_of(src)->fingerprint;
    mr_source_close(src);
    for (int with = 0; with < 8; with++) { /* idx, lst, idx backwards */
        unlink(mrt_path("lists.idx"));
        unlink(mrt_path("lists.lst"));
        if (with & 1) write_idx(m, "lists", 0, m->count, with & 4);
        if (with & 2) write_lst(m, "lists", m->count);
        src = open_ok("lists", NULL);
        check_all(src, m);
        MRT_EQ(mr_source_info_of(src)->fingerprint, print);
        MRT_EQ(mr_source_info_of(src)->class_count, 10);
        MRT_TRUE(mr_source_info_of(src)->told == NULL);
        mr_source_close(src);
    }
}

/* With both lists the records are not read at open: one that differs from them is found when it is parsed. */
static void lists_are_used(void **state)
{
    (void)state;
    maker *m = some(MOST);
    write_idx(m, "used", 0, m->count, 0);
    write_lst(m, "used", m->count);
    m->bytes[m->offset[101]] ^= 1;
    const float other = 3;
    memcpy(m->bytes + m->offset[102] + 8 + 4, &other, sizeof other);
    MRT_TRUE(m->label[102] != other);
    const uint8_t shorter = (uint8_t)(m->bytes[m->offset[103] + 4] - 4);
    m->bytes[m->offset[103] + 4] = shorter;
    write_rec(m, "used");
    mr_source *src = open_ok("used", NULL);
    mr_error err = bad_sample(src, 101, "no record starts here: expected the magic number");
    MRT_EQ(err.offset, m->offset[101]);
    err = bad_sample(src, 102, "expected label 4 as in the list, found 3");
    MRT_EQ(err.offset, m->offset[102]);
    bad_sample(src, 103, "expected a record of 80 bytes as indexed, found one of 76");
    mr_source_close(src);
    unlink(mrt_path("used.lst")); /* now they are read */
    err = refused("used", MR_EFORMAT, "no record starts here");
    MRT_EQ(err.sample, 101);
    MRT_EQ(err.offset, m->offset[101]);
    MRT_HAS(err.file, "used.rec");
}

static void several_labels_are_reported(void **state)
{
    (void)state;
    static maker m;
    const float labels[] = {3, 1, 2};
    for (uint32_t count = 1; count <= 3; count += 2) {
        m.size = m.count = 0;
        for (uint32_t k = 0; k < 4; k++) add(&m, 0, count, labels, 40);
        write_rec(&m, "several");
        mr_source_config cfg = plain_config();
        mr_source *src = open_ok("several", &cfg);
        const char *reported = mr_source_info_of(src)->told;
        if (count == 1) MRT_TRUE(!reported || !strstr(reported, "label-key"));
        else MRT_HAS(reported, "3 labels a record; the first is the class: --label-key K takes another");
        mr_source_close(src);
        cfg.label_key = "0"; /* chosen */
        src = open_ok("several", &cfg);
        reported = mr_source_info_of(src)->told;
        MRT_TRUE(!reported || !strstr(reported, "label-key"));
        mr_source_close(src);
    }
}

static const float objects[] = {4, 5, 640, 480, 3, 0.1f, 0.2f, 0.5f, 0.75f, 7, 0, 0, 1, 1};

static void check_objects(const mr_source *src, uint64_t sample, uint32_t count)
{
    static const float boxes[] = {0.1f, 0.2f, 0.5f, 0.75f, 0, 0, 1, 1};
    static const int64_t classes[] = {3, 7};
    void *buffer = NULL;
    size_t bytes = 0;
    mr_sample s;
    mr_error err = MR_ERROR_INIT;
    MRT_OK(mr_source_read(src, sample, &buffer, &bytes, &s, &err), &err);
    MRT_EQ(s.value_count, 4);
    MRT_EQ(s.value[1].dim[0], count);
    MRT_EQ(s.value[1].dim[1], 4);
    MRT_EQ(s.value[1].bytes, count * 16);
    assert_memory_equal(s.value[1].data, boxes, count * 16);
    MRT_EQ(s.value[2].dim[0], count);
    assert_memory_equal(s.value[2].data, classes, count * 8);
    MRT_EQ(s.value[3].dim[0], 4 + 5 * count);
    assert_memory_equal(s.value[3].data, objects, (4 + 5 * count) * sizeof *objects);
    free(buffer);
}

/* Widths, then objects: none of these numbers is the picture's class. */
static void labels_of_detection(void **state)
{
    (void)state;
    static maker m;
    m.size = m.count = 0;
    for (uint32_t k = 0; k < 4; k++) add(&m, 0, k % 2 ? 14 : 9, objects, 40);
    add(&m, 0, 4, objects, 40); /* a picture without objects */
    for (int lists = 0; lists < 2; lists++) {
        if (lists) write_idx(&m, "detect", 0, m.count, 0), write_lst(&m, "detect", m.count);
        write_rec(&m, "detect");
        for (int round = 0; round < 2; round++) { /* scanned, and from the index */
            mr_source_config cfg = plain_config();
            mr_source *src;
            mr_error err = MR_ERROR_INIT;
            cfg.no_index_file = false;
            MRT_OK(mr_source_open(&src, mrt_path("detect.rec"), &cfg, &err), &err);
            const mr_source_info *info = mr_source_info_of(src);
            MRT_EQ(info->label_field, -1);
            MRT_EQ(info->class_count, 0);
            MRT_EQ(info->field_count, 4);
            MRT_STR(info->fields[1].name, "boxes");
            MRT_STR(info->fields[2].name, "box_labels");
            MRT_STR(info->fields[3].name, "labels");
            MRT_HAS(info->told, "labels describe object detection");
            int64_t label;
            MRT_EQ(mr_source_label(src, 0, &label), MR_EUNSUPPORTED);
            for (uint32_t k = 0; k < 4; k++) check_objects(src, k, k % 2 ? 2 : 1);
            check_objects(src, 4, 0);
            mr_source_close(src);
        }
    }
    mr_source_config cfg = plain_config();
    cfg.label_key = "4"; /* the first object's class, as somebody says */
    mr_source *src = open_ok("detect", &cfg);
    MRT_EQ(mr_source_info_of(src)->class_count, 4);
    MRT_EQ(mr_source_info_of(src)->label_field, 1);
    mr_source_close(src);
}

/* The header decides, whatever the boxes are, and a later record where the first has no objects. */
static void detection_by_the_header(void **state)
{
    (void)state;
    static maker m;
    static const float far[14] = {4, 5, 100, 80, 3, 0.1f, 0.2f, 1.26f, 0.9f, 1, 0, 0, 1, 1};
    m.size = m.count = 0;
    add(&m, 0, 4, objects, 40);
    add(&m, 0, 9, far, 40);
    add(&m, 0, 14, objects, 40);
    write_rec(&m, "far");
    mr_source *src = open_ok("far", NULL);
    MRT_EQ(mr_source_info_of(src)->label_field, -1);
    MRT_HAS(mr_source_info_of(src)->told, "labels describe object detection");
    check_objects(src, 2, 2);
    bad_sample(src, 1, "object 0: expected a class and a box");
    mr_source_close(src);
    m.size = m.count = 0;
    for (int k = 0; k < 3; k++)
        add(&m, 0, 4, objects, 40); /* as good as plain labels, and all of them one class */
    write_rec(&m, "same");
    src = open_ok("same", NULL);
    MRT_EQ(mr_source_info_of(src)->label_field, 1);
    MRT_HAS(mr_source_info_of(src)->told, "all 3 samples have one class, 4");
    mr_source_close(src);
}

/* Labels that are no objects are one sample's fault. */
static void objects_that_do_not_fit(void **state)
{
    (void)state;
    static const struct {
        uint32_t count;
        float label[14];
        const char *text;
    } bad[] = {
        {0, {0}, "expected the widths of a header (2 or more) and of an object (5 or more)"},
        {1, {2}, "as the first of 1 labels, found 2 and 0"},
        {7, {1, 5, 1, 0, 0, 1, 1}, "found 1 and 5"},
        {7, {2, 4.5f, 1, 0, 0, 1, 1}, "found 2 and 4.5"},
        {7, {NAN, 5, 1, 0, 0, 1, 1}, "found nan and 5"},
        {8, {2, 5, 1, 0, 0, 1, 1, 0}, "expected 2 labels and 5 for each object, found 8 labels"},
        {3, {4, 5, 0}, "expected 4 labels and 5 for each object, found 3 labels"},
        {7,
         {2, 5, 1, 10, 20, 30, 40},
         "object 0: expected a class and a box (left, top, right, bottom, from 0 "
         "to 1), found 1 and 10 20 30 40"},
        {7, {2, 5, 1, 0.5f, 0, 0.25f, 1}, "found 1 and 0.5 0 0.25 1"},
        {7, {2, 5, 1, 0, 0, NAN, 1}, "found 1 and 0 0 nan 1"},
        {12, {2, 5, 1, 0, 0, 1, 1, -1, 0, 0, 1, 1}, "object 1: expected a class and a box"},
        {12, {2, 5, 1, 0, 0, 1, 1, 1.5f, 0, 0, 1, 1}, "object 1: expected a class and a box"},
    };
    enum { BAD = sizeof bad / sizeof bad[0] };
    static maker m;
    const float rounded[] = {2, 6, 9, -0.00001f, 0, 1.00001f, 1, 0.5f};
    m.size = m.count = 0;
    add(&m, 0, 9, objects, 40);
    for (uint32_t k = 0; k < BAD; k++) add(&m, 1, bad[k].count, bad[k].label, 40);
    add(&m, 0, 14, objects, 40);
    add(&m, 0, 8, rounded, 40); /* the error of a division, other widths, more numbers for each object */
    write_rec(&m, "unfit");
    mr_source *src = open_ok("unfit", NULL);
    for (uint32_t k = 0; k < BAD; k++) {
        const mr_error err = bad_sample(src, k + 1, bad[k].text);
        MRT_EQ(err.offset, m.offset[k + 1]);
    }
    check_objects(src, 0, 1);
    check_objects(src, BAD + 1, 2);
    void *buffer = NULL;
    size_t bytes = 0;
    mr_sample s;
    mr_error err = MR_ERROR_INIT;
    MRT_OK(mr_source_read(src, BAD + 2, &buffer, &bytes, &s, &err), &err);
    MRT_EQ(s.value[1].dim[0], 1);
    assert_memory_equal(s.value[1].data, rounded + 3, 16);
    free(buffer);
    /* the index has the boxes: a record that has others is another one */
    m.bytes[m.offset[0] + 8 + 24 + 5 * 4 + 2] ^= 0x10;
    write_rec(&m, "unfit");
    bad_sample(src, 0, "other objects than the index says");
    mr_source_close(src);
}

static void names_of(const mr_source *src, uint32_t count, const char *expected)
{
    for (uint32_t k = 0; k < count; k++) {
        char name[64], want[64];
        snprintf(want, sizeof want, expected[0] ? expected : "%.0u", k % 3, k);
        if (!expected[0]) want[0] = '\0';
        MRT_STR(mr_source_sample_name(src, k, NULL, 0, name, sizeof name), want);
    }
}

/* The list next to the records has the names of the pictures. */
static void names_from_the_list(void **state)
{
    (void)state;
    const char *all = "class %u/%u.jpg";
    for (int idx = 0; idx < 2; idx++) { /* by records, and by lists */
        const maker *m = some(20);
        write_rec(m, "named");
        unlink(mrt_path("named.idx"));
        if (idx) write_idx(m, "named", 0, m->count, 1);
        write_lst(m, "named", m->count);
        for (int round = 0; round < 2; round++) { /* and from the index */
            mr_source_config cfg;
            mr_source_defaults(&cfg);
            mr_source *src = open_ok("named", &cfg);
            names_of(src, 20, all);
            mr_source_close(src);
        }
    }
    static const char *const unfit[] = {
        "the list beside named.rec is not used: 19 pictures are listed, and there "
        "are 20 records",
        "the list beside named.rec is not used: it does not have the numbers of 1 records"};
    for (int k = 0; k < 2; k++) {
        char text[20 * 64], *at = text;
        const maker *m = some(20);
        for (uint32_t n = 0; n < (k ? 20 : 19); n++)
            at += sprintf(at, "%u\t%f\tx/%u.jpg\n", n == 7 && k ? 700 : n, (double)m->label[n], n);
        mrt_write_file(mrt_path("named.lst"), text, strlen(text));
        for (int round = 0; round < 2; round++) {
            mr_source_config cfg;
            mr_source_defaults(&cfg);
            mr_source *src = open_ok("named", &cfg);
            MRT_HAS(mr_source_info_of(src)->told, unfit[k]);
            names_of(src, 20, "");
            check_all(src, m);
            mr_source_close(src);
        }
    }
}

/* No room for names is no reason not to open. */
static void names_over_the_budget(void **state)
{
    (void)state;
    enum { FILES = 6 };
    mr_source_config cfg = plain_config();
    mr_source *src;
    mr_error err = MR_ERROR_INIT;
    const maker *m = some(MOST);
    static char lines[MOST * 64];
    char *at = lines;
    for (uint32_t n = 0; n < MOST; n++)
        at += sprintf(at, "%u\t%f\ta long name for a picture/%u.jpg\n", n, (double)m->label[n], n);
    mrt_mkdir(mrt_path("large"));
    for (int k = 0; k < FILES; k++) {
        char name[32];
        snprintf(name, sizeof name, "large/%d", k);
        write_rec(m, name);
    }
    MRT_OK(mr_source_open(&src, mrt_path("large"), &cfg, &err), &err);
    cfg.memory_bytes = mr_source_info_of(src)->memory_bytes + MOST * 64;
    mr_source_close(src);
    for (int k = 0; k < FILES; k++) mrt_write_file(mrt_path("large/%d.lst", k), lines, strlen(lines));
    MRT_OK(mr_source_open(&src, mrt_path("large"), &cfg, &err), &err);
    MRT_HAS(mr_source_info_of(src)->told, "they are not taken; give more with --memory");
    names_of(src, 20, "");
    mr_source_close(src);
}

/* Some files of a set have a list. */
static void names_of_several_files(void **state)
{
    (void)state;
    mrt_mkdir(mrt_path("parted"));
    write_rec(some(5), "parted/a");
    write_rec(some(6), "parted/b");
    write_lst(some(6), "parted/b", 6);
    write_rec(some(4), "parted/c");
    mr_source_config cfg = plain_config();
    mr_source *src;
    mr_error err = MR_ERROR_INIT;
    char name[64];
    MRT_OK(mr_source_open(&src, mrt_path("parted"), &cfg, &err), &err);
    MRT_STR(mr_source_sample_name(src, 4, NULL, 0, name, sizeof name), "");
    MRT_STR(mr_source_sample_name(src, 5, NULL, 0, name, sizeof name), "class 0/0.jpg");
    MRT_STR(mr_source_sample_name(src, 10, NULL, 0, name, sizeof name), "class 2/5.jpg");
    MRT_STR(mr_source_sample_name(src, 11, NULL, 0, name, sizeof name), "");
    MRT_STR(mr_source_sample_name(src, 14, NULL, 0, name, sizeof name), "");
    MRT_STR(mr_source_sample_name(src, 10, NULL, 0, name, 5), ""); /* cut it would be another name */
    mr_source_close(src);
}

/* The same framing around messages of numbers. */
static void protobuf_records_are_refused(void **state)
{
    (void)state;
    static maker m;
    static const uint8_t record[] = {0x0a, 26,  0x0a, 6,  'v',  'a', 'l',  'u', 'e', 's', 0x12, 16,
                                     0x12, 14,  0x0a, 12, 0,    0,   0,    0,   0,   0,   0,    0,
                                     0,    0,   0,    0,  0x12, 16,  0x0a, 6,   'v', 'a', 'l',  'u',
                                     'e',  's', 0x12, 6,  0x12, 4,   0x0a, 2,   0,   0};
    mr_source_config cfg = plain_config();
    mr_source *src;
    mr_error err = MR_ERROR_INIT;
    m.size = m.count = 0;
    for (int k = 0; k < 3; k++) add_data(&m, record, sizeof record);
    write_rec(&m, "sage");
    MRT_EQ(mr_source_open(&src, mrt_path("sage.rec"), &cfg, &err), MR_EUNSUPPORTED);
    MRT_HAS(err.text, "SageMaker");
    MRT_HAS(err.file, "sage.rec");
}

static void packed_labels(void **state)
{
    (void)state;
    static maker m;
    m.size = m.count = 0;
    for (uint32_t k = 0; k < 20; k++) {
        const float labels[] = {(float)(k % 4), 0.25f * (float)k, (float)(k % 6)};
        add(&m, 0, k % 3 + 1, labels, 40);
    }
    add(&m, 2, 0, NULL, 40); /* one plain label among them */
    write_rec(&m, "packed");
    mr_source *src = open_ok("packed", NULL);
    const mr_source_info *info = mr_source_info_of(src);
    MRT_EQ(info->field_count, 3);
    MRT_STR(info->fields[2].name, "labels");
    MRT_EQ(info->fields[2].dtype, MR_F32);
    MRT_EQ(info->class_count, 4);
    check_all(src, &m);
    void *buf = NULL;
    size_t bytes = 0;
    for (uint32_t k = 0; k < m.count; k++) {
        mr_sample s;
        mr_error err = MR_ERROR_INIT;
        float first;
        MRT_OK(mr_source_read(src, k, &buf, &bytes, &s, &err), &err);
        MRT_EQ(s.value[2].ndim, 1);
        MRT_EQ(s.value[2].dim[0], k < 20 ? k % 3 + 1 : 1);
        MRT_EQ(s.value[2].bytes, 4 * s.value[2].dim[0]);
        memcpy(&first, s.value[2].data, sizeof first);
        MRT_TRUE(first == m.label[k]);
    }
    free(buf);
    mr_source_close(src);
    mr_source_config cfg = plain_config();
    cfg.label_key = "2";
    src = open_ok("packed", &cfg);
    MRT_EQ(mr_source_info_of(src)->class_count, 6);
    int64_t label;
    MRT_EQ(mr_source_label(src, 5, &label), MR_OK);
    MRT_EQ(label, 5);
    bad_sample(src, 0, "expected a label with the number 2, found 1 labels in the record");
    bad_sample(src, 20, "expected a label with the number 2, found 1 labels in the record");
    mr_source_close(src);
    cfg.label_key = "1";
    src = open_ok("packed", &cfg);
    bad_sample(src, 1, "expected a whole number as label, found 0.25");
    mr_source_close(src);
    mr_error err = MR_ERROR_INIT;
    cfg.label_key = "class";
    MRT_EQ(try_open("packed", &cfg, &src, &err), MR_EINVAL);
    MRT_HAS(err.text, "found 'class'");
    cfg.label_key = NULL;
    cfg.image_key = "image";
    MRT_EQ(try_open("packed", &cfg, &src, &err), MR_EINVAL);
    MRT_HAS(err.text, "one picture");
}

static void labels_of_every_kind(void **state)
{
    (void)state;
    static const struct {
        float label;
        const char *text;
    } odd[] = {
        {0.5f, "expected a whole number as label, found 0.5"},
        {-1, "found -1"},
        {1099511627776.0f, "found 1099511627776"}, /* 2^40 */
        {INFINITY, "expected a whole number as label, found inf"},
        {NAN, "expected a whole number as label, found nan"},
        {1e30f, "expected a whole number as label, found 1e+30"},
    };
    static maker m;
    m.size = m.count = 0;
    add(&m, 3, 0, NULL, 40);
    for (size_t k = 0; k < sizeof odd / sizeof *odd; k++) add(&m, odd[k].label, 0, NULL, 40);
    write_rec(&m, "odd");
    mr_source *src = open_ok("odd", NULL);
    MRT_EQ(mr_source_info_of(src)->class_count, 4);
    for (size_t k = 0; k < sizeof odd / sizeof *odd; k++) {
        int64_t label;
        bad_sample(src, k + 1, odd[k].text);
        MRT_EQ(mr_source_label(src, k + 1, &label), MR_EUNSUPPORTED);
    }
    mr_source_close(src);
    m.size = m.count = 0;
    add(&m, 1, 0, NULL, 40);
    add(&m, 5, 0, NULL, 40);
    write_rec(&m, "one");
    src = open_ok("one", NULL); /* from 1 on */
    MRT_EQ(mr_source_info_of(src)->class_count, 6);
    MRT_EQ(mr_source_info_of(src)->label_offset, 0);
    MRT_EQ(mr_source_labels_of(src)->min, 1);
    mr_source_close(src);
}

/* ---- records in parts ---- */
static uint32_t split_picture(uint8_t *data, uint32_t k)
{
    const mri_picture_head h = {.label = (float)(k % 3), .id = MRI_RECORDIO_MAGIC}; /* the header is split as
                                                                                       well */
    uint8_t *at = mri_picture_head_build(&h, NULL, data);
    picture(at, k);
    for (uint32_t n = 4; n + 8 <= PICTURE; n += 4 * (k + 2)) memcpy(at + n, magic, 4);
    return MRI_PICTURE_HEAD_BYTES + PICTURE;
}

static void *read_parts(void *arg)
{
    const mr_source *src = arg;
    void *buf = NULL;
    size_t bytes = 0;
    uintptr_t wrong = 0;
    for (int round = 0; round < 20; round++)
        for (uint32_t k = 0; k < 30; k++) {
            uint8_t data[512];
            mr_sample s;
            mr_error err = MR_ERROR_INIT;
            split_picture(data, k);
            wrong += mr_source_read(src, k, &buf, &bytes, &s, &err) != MR_OK || s.value[0].bytes != PICTURE ||
                     memcmp(s.value[0].data, data + MRI_PICTURE_HEAD_BYTES, PICTURE) != 0 ||
                     s.value[1].i != k % 3;
        }
    free(buf);
    return (void *)wrong;
}

static maker *parts(void)
{
    static maker m;
    m.size = m.count = 0;
    for (uint32_t k = 0; k < 30; k++) {
        uint8_t data[512];
        add_data(&m, data, split_picture(data, k));
    }
    return &m;
}

static void records_in_parts(void **state)
{
    (void)state;
    write_rec(parts(), "parts");
    mr_source *src = open_ok("parts", NULL);
    MRT_EQ(mr_source_info_of(src)->class_count, 3);
    pthread_t thread[4];
    for (int k = 0; k < 4; k++) MRT_EQ(pthread_create(&thread[k], NULL, read_parts, src), 0);
    for (int k = 0; k < 4; k++) {
        void *wrong;
        pthread_join(thread[k], &wrong);
        MRT_TRUE(wrong == NULL);
    }
    mr_source_close(src);
}

/* Values of a sample stay unchanged, also when the same one is parsed from another buffer. */
static void parts_stay(void **state)
{
    (void)state;
    maker *m = parts();
    write_rec(m, "parts");
    mr_source *src = open_ok("parts", NULL);
    const size_t bytes = (size_t)m->offset[1];
    uint8_t *copy = malloc(bytes), data[512];
    mr_sample s, again;
    mr_error err = MR_ERROR_INIT;
    memcpy(copy, m->bytes, bytes);
    MRT_OK(mr_source_parse(src, 0, copy, bytes, &s, &err), &err);
    assert_memory_equal(copy, m->bytes, bytes);
    memset(copy, 0, bytes);
    free(copy);
    MRT_OK(mr_source_parse(src, 0, m->bytes, bytes, &again, &err), &err);
    split_picture(data, 0);
    assert_memory_equal(s.value[0].data, data + MRI_PICTURE_HEAD_BYTES, PICTURE);
    MRT_TRUE(s.value[0].data == again.value[0].data);
    m->bytes[bytes - 1] ^= 1;
    MRT_EQ(mr_source_parse(src, 0, m->bytes, bytes, &again, &err), MR_EFORMAT);
    MRT_HAS(err.text, "the file has changed");
    mr_source_close(src);
}

static void parts_over_the_budget(void **state)
{
    (void)state;
    write_rec(parts(), "parts");
    mr_source *src = open_ok("parts", NULL);
    const uint64_t needed = mr_source_info_of(src)->memory_bytes;
    mr_source_close(src);
    mr_source_config cfg = plain_config();
    cfg.memory_bytes = needed + 200; /* two of them */
    src = open_ok("parts", &cfg);
    void *buf = NULL;
    size_t bytes = 0;
    for (uint64_t k = 0; k < 6; k++) {
        mr_sample s;
        mr_error err = MR_ERROR_INIT;
        const int rc = mr_source_read(src, k % 3, &buf, &bytes, &s, &err);
        MRT_EQ(rc, k % 3 < 2 ? MR_OK : MR_ELIMIT);
        if (rc) MRT_HAS(err.text, "200 bytes allowed");
    }
    free(buf);
    mr_source_close(src);
}

/* ---- wrong files ---- */
static void wrong_frames(void **state)
{
    (void)state;
    maker *m = some(20);
    const uint64_t at = m->offset[17];
    m->size -= 1;
    write_rec(m, "frames");
    mr_error err =
        refused("frames", MR_EFORMAT, "cut in a record's padding: expected 1 bytes of it, found 0");
    MRT_EQ(err.sample, 19);
    MRT_EQ(err.offset, m->offset[19] + 4);
    m->size -= 4;
    write_rec(m, "frames");
    refused("frames", MR_EFORMAT, "a record of 47 bytes, and 43 are left");
    m->size = (size_t)m->offset[19] + 5;
    write_rec(m, "frames");
    err = refused("frames", MR_EFORMAT, "cut in a record's header: expected 8 bytes, found 5");
    MRT_EQ(err.offset, m->offset[19]);
    MRT_EQ(err.sample, 19);
    MRT_HAS(err.file, "frames.rec");
    m->bytes[at + 7] = 0x40;
    write_rec(m, "frames");
    err = refused("frames", MR_EFORMAT,
                  "parts of records in a wrong order: expected flag 0 or 1 of a record's start, found 2");
    MRT_EQ(err.sample, 17);
    m->bytes[at + 7] = 0x20;
    write_rec(m, "frames");
    err = refused("frames", MR_EFORMAT, "expected flag 2 or 3 of the same record's next part, found 0");
    MRT_EQ(err.sample, 17);
    MRT_EQ(err.offset, m->offset[18] + 4);
    m->bytes[at + 7] = 0x1f;
    write_rec(m, "frames");
    refused("frames", MR_EFORMAT, "cut short, or the length is damaged");
}

static void wrong_records(void **state)
{
    (void)state;
    static maker m;
    m.size = m.count = 0;
    uint8_t data[64] = {0};
    add(&m, 0, 0, NULL, 40);
    add_data(&m, data, 23); /* 1: shorter than a header */
    add_data(&m, data, 0);  /* 2: nothing */
    data[0] = 11;
    add_data(&m, data, 64); /* 3: 11 labels, room for 10 */
    data[0] = 0;
    add_data(&m, data, 24); /* 4: no picture */
    memcpy(data + 24, "8BPS", 4);
    add_data(&m, data, 40); /* 5: another picture */
    memcpy(data + 24, "\x89PNG\r\n\x1a\n", 8);
    add_data(&m, data, 40); /* 6: good */
    memcpy(data + 24, "GIF89a\0", 8);
    add_data(&m, data, 40); /* 7: good, of another kind */
    data[0] = 2;
    memmove(data + 32, data + 24, 8);
    add_data(&m, data, 40); /* 8: several labels where the first record has one */
    data[0] = 0;
    memcpy(data, "GIF89a\0", 8);
    add_data(&m, data, 40); /* 9: a picture where the labels should be */
    write_rec(&m, "records");
    mr_source *src = open_ok("records", NULL);
    MRT_EQ(mr_source_info_of(src)->count, 10);
    mr_error err = bad_sample(
        src, 1, "expected a picture's header of 24 bytes (label and numbers), found a record of 23");
    MRT_EQ(err.offset, m.offset[1]);
    bad_sample(src, 2, "found a record of 0");
    bad_sample(src, 3, "11 labels of 4 bytes are announced, and 40 bytes follow");
    bad_sample(src, 4, "expected a picture after the labels, found nothing");
    bad_sample(src, 5, "expected a picture, found a Photoshop picture: convert it to JPEG or PNG");
    bad_sample(src, 8, "expected one label as in the first record, found 2");
    mr_sample s;
    void *buf = NULL;
    size_t bytes = 0;
    MRT_OK(mr_source_read(src, 6, &buf, &bytes, &s, &err), &err);
    MRT_EQ(s.value[0].type, MR_TYPE_PNG);
    MRT_OK(mr_source_read(src, 7, &buf, &bytes, &s, &err), &err);
    MRT_EQ(s.value[0].type, MR_TYPE_GIF);
    bad_sample(src, 9, "labels of 4 bytes are announced");
    free(buf);
    mr_source_close(src);
}

static void put_text(const char *name, const char *ending, const char *text)
{
    mrt_write_file(mrt_path("%s.%s", name, ending), text, strlen(text));
}

static void wrong_idx(void **state)
{
    (void)state;
    const maker *m = some(20);
    char text[256];
    write_rec(m, "idx");
    write_idx(m, "idx", 0, 19, 0);
    mr_error err = refused("idx", MR_EFORMAT,
                           "expected all records, found none for the one at offset 884 (19 are listed)");
    MRT_HAS(err.file, "idx.idx");
    write_idx(m, "idx", 1, 20, 0);
    refused("idx", MR_EFORMAT, "found none for the one at offset 0");
    put_text("idx", "idx", "");
    refused("idx", MR_EFORMAT, "found none for the one at offset 0 (0 are listed)");
    snprintf(text, sizeof text, "0\t0\n1\t%zu\n", m->size);
    put_text("idx", "idx", text);
    snprintf(text, sizeof text, "line 2: offset %zu lies past the end: expected one below the %zu bytes",
             m->size, m->size);
    err = refused("idx", MR_EFORMAT, text);
    MRT_HAS(err.file, "idx.idx");
    put_text("idx", "idx", "0\t0\n\n1\t18446744073709551615\n");
    refused("idx", MR_EFORMAT, "line 3: offset 18446744073709551615 lies past the end");
    put_text("idx", "idx", "0\t0\n1\t18446744073709551616\n");
    refused("idx", MR_EFORMAT, "line 2: expected a key, a tab and an offset, found \"1\t1844");
    put_text("idx", "idx", "0\t0\n1\t38\n");
    refused("idx", MR_EFORMAT, "line 2: expected an offset that is a multiple of 4, found 38");
    put_text("idx", "idx", "0\t0\n1\t4\n");
    refused("idx", MR_EFORMAT, "line 2: no record starts at offset 4");
    put_text("idx", "idx", "0\t0\n1\t36\n2\t36\n");
    refused("idx", MR_EFORMAT, "line 3: offset 36 stands in line 2 already");
    put_text("idx", "idx", "0\t-4\n");
    refused("idx", MR_EFORMAT, "line 1: expected a key, a tab and an offset");
    put_text("idx", "idx", "0\n");
    refused("idx", MR_EFORMAT, "line 1: expected a key, a tab and an offset, found \"0\"");
    unlink(mrt_path("idx.idx"));
    mrt_mkdir(mrt_path("elsewhere"));
    mrt_write_file(mrt_path("elsewhere/secret"), "sesame", 6);
    MRT_EQ(symlink("elsewhere/secret", mrt_path("idx.idx")), 0); /* below the folder */
    refused("idx", MR_EFORMAT, "found \"sesame\"");
    unlink(mrt_path("idx.idx"));
    mrt_mkdir(mrt_path("beside"));
    write_rec(m, "beside/idx");
    MRT_EQ(symlink("../elsewhere/secret", mrt_path("beside/idx.idx")), 0);
    refused("beside/idx", MR_EFORMAT, "an offset, found another (not quoted: reached through a link)");
    mrt_write_file(mrt_path("idx.idx"), "0\t0\n\0\0", 6);
    err = refused("idx", MR_EFORMAT, "found a zero byte");
    MRT_EQ(err.offset, 4);
    write_idx(m, "idx", 0, 20, 0);
    FILE *f = fopen(mrt_path("idx.idx"), "a");
    fprintf(f, "20\t%llu\n", (unsigned long long)m->offset[19] + 8);
    fclose(f);
    refused("idx", MR_EFORMAT, "line 21: no record starts at offset 892");
}

static void wrong_lst(void **state)
{
    (void)state;
    maker *m = some(20);
    write_rec(m, "lst");
    m->label[20] = 1;
    for (uint32_t n = 19; n <= 21; n += 2) {
        write_lst(m, "lst", n);
        mr_source_close(open_ok("lst", NULL)); /* reported: names_from_the_list */
    }
    put_text("lst", "lst", "0\tx.jpg\n");
    const mr_error err =
        refused("lst", MR_EFORMAT,
                "line 1: expected a number, labels and a path with tabs between, found \"0\tx.jpg\"");
    MRT_HAS(err.file, "lst.lst");
    put_text("lst", "lst", "0\tone\tx.jpg\n");
    refused("lst", MR_EFORMAT, "line 1: expected a number, labels");
    put_text("lst", "lst", "0\t1\tx.jpg\n-1\t1\tx.jpg\n");
    refused("lst", MR_EFORMAT, "line 2: expected a number, labels");
    put_text("lst", "lst", "7\t1\tx.jpg\n0\t1\t2\t3\tx.jpg\n7\t1\tx.jpg\n");
    refused("lst", MR_EFORMAT, "line 3: number 7 stands in line 1 already");
    char text[20 * 64], *at = text; /* with blanks round its tabs, as im2rec takes it */
    for (uint32_t k = 0; k < 20; k++)
        at += sprintf(at, "%u \t  %f \t a b/%u.jpg \n", k, (double)m->label[k], k);
    put_text("lst", "lst", text);
    mr_source_close(open_ok("lst", NULL));
    m->label[3] += 1; /* the list was corrected after packing */
    write_lst(m, "lst", 20);
    mr_source *src = open_ok("lst", NULL);
    MRT_HAS(mr_source_info_of(src)->told, "1 records have another label than the list next to them");
    mr_source_close(src);
}

static void lists_over_the_budget(void **state)
{
    (void)state;
    const maker *m = some(MOST);
    write_rec(m, "budget");
    write_idx(m, "budget", 0, m->count, 0);
    mr_source_config cfg = plain_config();
    mr_source *src;
    mr_error err = MR_ERROR_INIT;
    cfg.memory_bytes = 3000;
    MRT_EQ(try_open("budget", &cfg, &src, &err), MR_ELIMIT);
    MRT_HAS(err.file, "budget.idx");
}

static void index_is_kept_until_a_list_changes(void **state)
{
    (void)state;
    const maker *m = some(30);
    write_rec(m, "kept");
    mr_source_config cfg;
    mr_source_defaults(&cfg);
    mr_source *src = open_ok("kept", &cfg);
    MRT_HAS(mr_source_info_of(src)->told, "kept.rec.mridx");
    mr_source_close(src);
    src = open_ok("kept", &cfg);
    MRT_TRUE(mr_source_info_of(src)->told == NULL);
    check_all(src, m);
    mr_source_close(src);
    put_text("kept", "idx", "0\t4000000\n");
    mr_error err = MR_ERROR_INIT;
    MRT_EQ(try_open("kept", &cfg, &src, &err), MR_EFORMAT);
    MRT_HAS(err.text, "past the end");
}

static void several_files(void **state)
{
    (void)state;
    maker *m = some(30);
    mrt_mkdir(mrt_path("many"));
    write_rec(m, "many/train_0");
    write_idx(m, "many/train_0", 0, 30, 0);
    write_lst(m, "many/train_0", 30);
    write_rec(some(17), "many/train_1");
    write_rec(some(5), "many/val");
    mr_source_config cfg = plain_config();
    mr_source *src;
    mr_error err = MR_ERROR_INIT;
    MRT_OK(mr_source_open(&src, mrt_path("many"), &cfg, &err), &err);
    MRT_EQ(mr_source_info_of(src)->count, 47);
    MRT_TRUE(mr_source_info_of(src)->has_test);
    mr_source_close(src);
    cfg.split = MR_SPLIT_TEST;
    MRT_OK(mr_source_open(&src, mrt_path("many"), &cfg, &err), &err);
    MRT_EQ(mr_source_info_of(src)->count, 5);
    mr_source_close(src);
    cfg.split = MR_SPLIT_AUTO; /* files named by a pattern are taken */
    MRT_OK(mr_source_open(&src, mrt_path("many/*.rec"), &cfg, &err), &err);
    MRT_EQ(mr_source_info_of(src)->count, 52);
    MRT_HAS(mr_source_info_of(src)->told, "files of several parts are taken together");
    mr_source_close(src);
    maker *bad = some(17); /* the number of the sample counts in the set */
    bad->bytes[bad->offset[16]] = 0;
    write_rec(bad, "many/train_1");
    cfg.split = MR_SPLIT_TRAIN;
    MRT_EQ(mr_source_open(&src, mrt_path("many"), &cfg, &err), MR_EFORMAT);
    MRT_EQ(err.sample, 46);
    MRT_HAS(err.file, "train_1.rec");
}

static void fail_in_turn(const char *name, bool kept)
{
    for (long n = 0;; n++) {
        mr_source_config cfg = plain_config();
        cfg.no_index_file = !kept;
        mr_error err = MR_ERROR_INIT;
        mr_source *src;
        void *buf = NULL;
        size_t bytes = 0;
        mr_sample s;
        mrt_fail_alloc_at(n);
        int rc = try_open(name, &cfg, &src, &err);
        if (!rc) rc = mr_source_read(src, 0, &buf, &bytes, &s, &err);
        mrt_fail_alloc_at(-1);
        mr_source_close(src);
        free(buf);
        if (rc == MR_OK && !mrt_alloc_failed()) break;
        MRT_TRUE(rc == MR_ENOMEM || rc == MR_OK); /* an index that cannot be kept is no failure */
    }
}

static void allocations_fail_in_turn(void **state)
{
    (void)state;
    static maker detection;
    const maker *m = parts();
    write_rec(m, "alloc");
    write_idx(m, "alloc", 0, m->count, 1);
    for (uint32_t k = 0; k < 4; k++) add(&detection, 0, 14, objects, 40);
    write_rec(&detection, "allocs");
    write_lst(&detection, "allocs", 4);
    for (int kept = 0; kept < 2; kept++) {
        fail_in_turn("alloc", kept);
        fail_in_turn("allocs", kept);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(records_alone),
        cmocka_unit_test(lists_beside),
        cmocka_unit_test(lists_are_used),
        cmocka_unit_test(labels_of_detection),
        cmocka_unit_test(detection_by_the_header),
        cmocka_unit_test(objects_that_do_not_fit),
        cmocka_unit_test(names_from_the_list),
        cmocka_unit_test(names_over_the_budget),
        cmocka_unit_test(names_of_several_files),
        cmocka_unit_test(protobuf_records_are_refused),
        cmocka_unit_test(packed_labels),
        cmocka_unit_test(several_labels_are_reported),
        cmocka_unit_test(labels_of_every_kind),
        cmocka_unit_test(records_in_parts),
        cmocka_unit_test(parts_stay),
        cmocka_unit_test(parts_over_the_budget),
        cmocka_unit_test(wrong_frames),
        cmocka_unit_test(wrong_records),
        cmocka_unit_test(wrong_idx),
        cmocka_unit_test(wrong_lst),
        cmocka_unit_test(lists_over_the_budget),
        cmocka_unit_test(index_is_kept_until_a_list_changes),
        cmocka_unit_test(several_files),
        cmocka_unit_test(allocations_fail_in_turn),
    };
    return mrt_run(tests);
}
