/* Arrays of NumPy: headers, pictures in both plane orders, classes of every width, archives; and the errors
 * of each. */
#include <isa-l/crc.h>
#include <isa-l/igzip_lib.h>
#include <unistd.h>

#include "formats/arrays/npy.h"
#include "millrace/formats.h"
#include "mrt.h"
#include "tests/formats/mrt_turns.h"

enum { ROOM = 1 << 16, MIB = 1 << 20 };

/* An array file with this dictionary; returns its bytes. */
static size_t make(uint8_t *p, int version, const char *dictionary, const void *data, size_t bytes)
{
    const size_t before = version == 1 ? 10 : 12, n = strlen(dictionary);
    memcpy(p, "\x93NUMPY\0\0\0\0\0\0", 12);
    p[6] = (uint8_t)version;
    p[8] = (uint8_t)n, p[9] = (uint8_t)(n >> 8);
    memcpy(p + before, dictionary, n);
    memcpy(p + before + n, data, bytes);
    return before + n + bytes;
}

static int parse(const char *dictionary, size_t data_bytes, mri_npy *a, mr_error *err)
{
    static uint8_t p[ROOM];
    static const uint8_t zeros[1024];
    *err = (mr_error)MR_ERROR_INIT;
    const size_t bytes = make(p, 1, dictionary, zeros, data_bytes);
    return mri_npy_parse(p, bytes, bytes, a, err);
}

static void headers(void **state)
{
    (void)state;
    mri_npy a;
    mr_error err;
    MRT_OK(parse("{'descr': '<f4', 'fortran_order': False, 'shape': (2, 3), }  \n", 24, &a, &err), &err);
    MRT_EQ(a.ndim, 2);
    MRT_EQ(a.dim[1], 3);
    MRT_EQ(mri_npy_dtype(&a), MR_F32);
    MRT_OK(parse("{\"shape\":(5L,),\"descr\":\"|b1\",\"fortran_order\":True}", 5, &a, &err), &err);
    MRT_TRUE(!a.fortran && mri_npy_dtype(&a) == MR_U8); /* one dimension has one order */
    MRT_OK(parse("{'descr': '>i2', 'fortran_order': True, 'shape': (2, 3)}", 12, &a, &err), &err);
    MRT_TRUE(a.fortran && a.swapped);
    MRT_OK(parse("{'descr': '<f8', 'fortran_order': False, 'shape': ()}", 8, &a, &err), &err);
    MRT_EQ(a.count, 1);
    MRT_OK(parse("{'descr': '<u8', 'fortran_order': False, 'shape': (0, 9)}", 0, &a, &err), &err);
    MRT_EQ(mri_npy_dtype(&a), 0);
    static const struct {
        const char *text;
        int code;
        const char *why;
    } bad[] = {
        {"{'descr': '|O', 'fortran_order': False, 'shape': (1,)}", MR_EUNSUPPORTED, "unpickled"},
        {"{'descr': [('a', '<f4')], 'fortran_order': False, 'shape': (1,)}", MR_EUNSUPPORTED, "structured"},
        {"{'descr': '<f3', 'fortran_order': False, 'shape': (1,)}", MR_EFORMAT, "size"},
        {"{'descr': 'f4', 'fortran_order': False, 'shape': (1,)}", MR_EFORMAT, "a type such as"},
        {"{'descr': '<f4x', 'fortran_order': False, 'shape': (1,)}", MR_EFORMAT, "a type such as"},
        {"{'descr': '<f4', 'fortran_order': 0, 'shape': (1,)}", MR_EFORMAT, "True or False"},
        {"{'descr': '<f4', 'fortran_order': False, 'shape': (1)}", MR_EFORMAT, "a comma"},
        {"{'descr': '<f4', 'fortran_order': False, 'shape': (-1,)}", MR_EFORMAT, "a dimension"},
        {"{'descr': '<f4', 'fortran_order': False, 'shape': (1,1,1,1,1,1,1,1,1)}", MR_EUNSUPPORTED,
         "8 dimensions"},
        {"{'descr': '<f4', 'fortran_order': False, 'shape': (99999999999999999999,)}", MR_EFORMAT,
         "fits 64 bits"},
        {"{'descr': '<f4', 'fortran_order': False, 'shape': (4294967296, 4294967296)}", MR_EFORMAT,
         "any file can hold"},
        {"{'descr': '<f4', 'fortran_order': False, 'shape': (3,)}", MR_EFORMAT, "3 of <f4"},
        {"{'descr': '<f4', 'fortran_order': False}", MR_EFORMAT, "missing"},
        {"{'descr': '<f4', 'descr': '<f4', 'fortran_order': False, 'shape': (1,)}", MR_EFORMAT, "twice"},
        {"{'descr': '<f4', 'fortran_order': False, 'shape': (1,), 'x': 1}", MR_EFORMAT, "only the keys"},
        {"{'descr': '<f4', 'fortran_order': False, 'shape': (1,)} + 1", MR_EFORMAT, "nothing after"},
        {"{'descr': '<f4' 'fortran_order': False, 'shape': (1,)}", MR_EFORMAT, ", or }"},
        {"{'descr': '<f\\x34', 'fortran_order': False, 'shape': (1,)}", MR_EFORMAT, "without escapes"},
        {"__import__('os')", MR_EFORMAT, "expected {"},
    };
    for (size_t k = 0; k < sizeof bad / sizeof bad[0]; k++) {
        MRT_EQ(parse(bad[k].text, 4, &a, &err), bad[k].code);
        MRT_HAS(err.text, bad[k].why);
    }
    const char *whole = "{'descr': '<f4', 'fortran_order': False, 'shape': (1,)}";
    char cut[80];
    for (size_t n = 0; n < strlen(whole); n++) {
        snprintf(cut, sizeof cut, "%.*s", (int)n, whole);
        MRT_TRUE(parse(cut, 4, &a, &err) != MR_OK);
    }
}

static void versions(void **state)
{
    (void)state;
    static uint8_t p[ROOM];
    mri_npy a;
    mr_error err = MR_ERROR_INIT;
    const char *dictionary = "{'descr': '|u1', 'fortran_order': False, 'shape': (2,)}";
    for (int version = 1; version <= 3; version++) {
        const size_t bytes = make(p, version, dictionary, "ab", 2);
        MRT_OK(mri_npy_parse(p, bytes, bytes, &a, &err), &err);
        MRT_EQ(a.header_bytes, bytes - 2);
        for (size_t n = 0; n < a.header_bytes; n++) MRT_TRUE(mri_npy_parse(p, n, bytes, &a, &err) != MR_OK);
    }
    p[6] = 4;
    MRT_EQ(mri_npy_parse(p, 100, 100, &a, &err), MR_EUNSUPPORTED);
    p[6] = 2, p[10] = 0xff, p[11] = 0xff; /* a header of 4 GiB */
    MRT_EQ(mri_npy_parse(p, 100, 100, &a, &err), MR_ELIMIT);
}

static void integers(void **state)
{
    (void)state;
    int64_t v;
    mri_npy a = {.kind = 'i', .element_bytes = 2};
    MRT_TRUE(mri_npy_integer(&a, "\xfe\xff", &v) && v == -2);
    a.swapped = true;
    MRT_TRUE(mri_npy_integer(&a, "\x01\x02", &v) && v == 258);
    a = (mri_npy){.kind = 'u', .element_bytes = 8};
    MRT_TRUE(!mri_npy_integer(&a, "\xff\xff\xff\xff\xff\xff\xff\xff", &v));
    MRT_TRUE(mri_npy_integer(&a, "\xff\xff\xff\xff\xff\xff\xff\x7f", &v) && v == INT64_MAX);
    a = (mri_npy){.kind = 'u', .element_bytes = 1};
    MRT_TRUE(mri_npy_integer(&a, "\xff", &v) && v == 255);
}

/* ---- sources ---- */
static size_t pictures(uint8_t *p, const char *shape, size_t bytes, uint64_t seed)
{
    static uint8_t data[ROOM / 2];
    char dictionary[128];
    mrt_noise(data, bytes, seed);
    snprintf(dictionary, sizeof dictionary, "{'descr': '|u1', 'fortran_order': False, 'shape': (%s), }\n",
             shape);
    return make(p, 1, dictionary, data, bytes);
}

static size_t classes(uint8_t *p, const char *descr, const char *shape, const void *data, size_t bytes)
{
    char dictionary[128];
    snprintf(dictionary, sizeof dictionary, "{'descr': '%s', 'fortran_order': False, 'shape': (%s), }\n",
             descr, shape);
    return make(p, 2, dictionary, data, bytes);
}

static uint8_t buf[ROOM];

static void put(const char *name, size_t bytes) { mrt_write_file(mrt_path("%s", name), buf, bytes); }

static int try_open(const char *name, const char *label_key, mr_split split, mr_source **src, mr_error *err)
{
    mr_source_config cfg;
    mr_source_defaults(&cfg);
    cfg.label_key = label_key;
    cfg.split = split;
    cfg.format = "npy";
    *err = (mr_error)MR_ERROR_INIT;
    *src = (mr_source *)&cfg;
    const int rc = mr_source_open(src, mrt_path("%s", name), &cfg, err);
    if (rc) MRT_TRUE(*src == NULL);
    return rc;
}

static void expect_pictures(const char *name, mr_split split, uint32_t n, size_t each, uint64_t seed,
                            mr_planes planes, const int64_t *want)
{
    static uint8_t data[ROOM / 2];
    mr_source *src;
    mr_error err;
    void *read = NULL;
    size_t read_bytes = 0;
    mrt_noise(data, n * each, seed);
    MRT_OK(try_open(name, NULL, split, &src, &err), &err);
    const mr_source_info *info = mr_source_info_of(src);
    MRT_EQ(info->count, n);
    MRT_EQ((size_t)info->height * info->width * info->channels, each);
    for (uint32_t i = 0; i < n; i++) {
        mr_sample s;
        int64_t label;
        MRT_OK(mr_source_read(src, i, &read, &read_bytes, &s, &err), &err);
        MRT_EQ(s.value[0].type, MR_TYPE_PIXELS);
        MRT_EQ(s.value[0].planes, planes);
        assert_memory_equal(s.value[0].data, data + i * each, each);
        MRT_EQ(s.value[1].i, want[i]);
        MRT_EQ(mr_source_label(src, i, &label), MR_OK);
        MRT_EQ(label, want[i]);
    }
    free(read);
    mr_source_close(src);
}

static void files_side_by_side(void **state)
{
    (void)state;
    static const int64_t labels[] = {2, 0, 1};
    static const uint8_t wide[] = {0, 2, 0, 0, 0, 1}; /* >u2 */
    mrt_mkdir(mrt_path("side"));
    put("side/a.npy", pictures(buf, "3, 4, 5", 60, 1));
    put("side/a_labels.npy", classes(buf, "<i8", "3,", labels, sizeof labels));
    expect_pictures("side/a.npy", MR_SPLIT_AUTO, 3, 20, 1, MR_HWC, labels);
    put("side/a.npy", pictures(buf, "3, 4, 5, 3", 180, 2));
    put("side/a_labels.npy", classes(buf, ">u2", "3, 1", wide, sizeof wide));
    expect_pictures("side/a.npy", MR_SPLIT_AUTO, 3, 60, 2, MR_HWC, labels);
    put("side/x.npy", pictures(buf, "3, 3, 6, 5", 270, 3));
    put("side/y.npy", classes(buf, "<i8", "3,", labels, sizeof labels));
    expect_pictures("side/x.npy", MR_SPLIT_AUTO, 3, 90, 3, MR_CHW, labels);
    expect_pictures("side", MR_SPLIT_AUTO, 3, 90, 3, MR_CHW, labels); /* the folder */
}

static void parts_of_a_folder(void **state)
{
    (void)state;
    static const uint8_t train[] = {1, 2, 1, 3}, test[] = {1, 4};
    static const int64_t want[] = {1, 2, 1, 3}, want_test[] = {1, 4};
    mrt_mkdir(mrt_path("parts"));
    put("parts/x_train.npy", pictures(buf, "4, 5, 5", 100, 1));
    put("parts/y_train.npy", classes(buf, "|u1", "4,", train, 4));
    put("parts/x_test.npy", pictures(buf, "2, 5, 5", 50, 2));
    put("parts/y_test.npy", classes(buf, "|u1", "2,", test, 2));
    expect_pictures("parts", MR_SPLIT_AUTO, 4, 25, 1, MR_HWC, want);
    expect_pictures("parts", MR_SPLIT_TEST, 2, 25, 2, MR_HWC, want_test);
    mr_source *src;
    mr_error err;
    MRT_OK(try_open("parts", NULL, MR_SPLIT_TRAIN, &src, &err), &err);
    MRT_EQ(mr_source_info_of(src)->class_count, 5); /* of both parts */
    MRT_EQ(mr_source_info_of(src)->label_offset, 0);
    MRT_EQ(mr_source_labels_of(src)->min, 1);
    MRT_EQ(mr_source_labels_of(src)->max, 4);
    MRT_TRUE(mr_source_info_of(src)->has_test);
    mr_source_close(src);
}

static void tensors(void **state)
{
    (void)state;
    static const uint8_t big[] = {1, 2, 3, 4, 5, 6, 7, 8}, little[] = {4, 3, 2, 1, 8, 7, 6, 5};
    mrt_mkdir(mrt_path("tensor"));
    mr_source *src;
    mr_error err;
    mr_sample s;
    void *read = NULL;
    size_t read_bytes = 0;
    for (int swapped = 0; swapped < 2; swapped++) {
        put("tensor/f.npy", classes(buf, swapped ? ">f4" : "<f4", "2, 1", swapped ? big : little, 8));
        MRT_OK(try_open("tensor/f.npy", NULL, MR_SPLIT_AUTO, &src, &err), &err); /* classes may be missing */
        const mr_source_info *info = mr_source_info_of(src);
        MRT_EQ(info->image_field, -1);
        MRT_EQ(info->label_field, -1);
        MRT_HAS(info->told, "not trained on");
        MRT_OK(mr_source_read(src, 1, &read, &read_bytes, &s, &err), &err);
        MRT_EQ(s.value[0].dtype, MR_F32);
        assert_memory_equal(s.value[0].data, little + 4, 4);
        mr_source_close(src);
    }
    free(read);
}

static void refuse(const char *name, const char *label_key, int code, const char *why)
{
    mr_source *src;
    mr_error err;
    MRT_EQ(try_open(name, label_key, MR_SPLIT_AUTO, &src, &err), code);
    MRT_HAS(err.text, why);
    MRT_TRUE(err.file[0]);
}

static void refused(void **state)
{
    (void)state;
    static const int64_t labels[] = {2, 0, -1};
    static const uint8_t zeros[256];
    mrt_mkdir(mrt_path("bad"));
    put("bad/x.npy", pictures(buf, "3, 2, 2", 12, 1));
    refuse("bad/x.npy", NULL, MR_ENOENT,
           "no x_labels.npy, labels or y with the classes of x (--label-key none without classes)");
    refuse("bad/x.npy", "z", MR_ENOENT, "no z.npy with classes");
    mr_source *src;
    mr_error err;
    MRT_EQ(try_open("bad/x.npy", NULL, MR_SPLIT_AUTO, &src, &err), MR_ENOENT);
    MRT_HAS(err.file, "bad/x.npy");
    MRT_OK(try_open("bad/x.npy", "none", MR_SPLIT_AUTO, &src, &err), &err);
    mr_source_close(src);
    put("bad/y.npy", classes(buf, "<i8", "3,", labels, 24));
    refuse("bad/x.npy", NULL, MR_EFORMAT, "class -1");
    put("bad/y.npy", classes(buf, "<i8", "2,", labels, 16));
    refuse("bad/x.npy", NULL, MR_EFORMAT, "2 classes (y) for 3 samples");
    put("bad/y.npy", classes(buf, "<f8", "3,", zeros, 24));
    refuse("bad/x.npy", NULL, MR_EUNSUPPORTED, "astype");
    put("bad/y.npy", classes(buf, "|u1", "3, 10", zeros, 30));
    refuse("bad/x.npy", NULL, MR_EUNSUPPORTED, "argmax");
    put("bad/y.npy", classes(buf, "<f4", "3, 10", zeros, 120));
    refuse("bad/x.npy", NULL, MR_EUNSUPPORTED, "argmax");
    put("bad/y.npy", classes(buf, "<U3", "3,", zeros, 36));
    refuse("bad/x.npy", NULL, MR_EUNSUPPORTED, "np.unique");
    static const int64_t huge[] = {0, 1, (int64_t)1 << 40};
    put("bad/y.npy", classes(buf, "<i8", "3,", huge, 24));
    refuse("bad/x.npy", NULL, MR_EFORMAT, "does not fit 32 bits");
    put("bad/f.npy", make(buf, 1, "{'descr': '<f4', 'fortran_order': True, 'shape': (2, 3)}", zeros, 24));
    refuse("bad/f.npy", "none", MR_EUNSUPPORTED, "ascontiguousarray");
    put("bad/u.npy", classes(buf, "<u4", "2, 3", zeros, 24));
    refuse("bad/u.npy", "none", MR_EUNSUPPORTED, "no place in a record");
    put("bad/n.npy", classes(buf, "<f4", "0, 3", zeros, 0));
    refuse("bad/n.npy", "none", MR_EFORMAT, "no samples");
    put("bad/cut.npy", pictures(buf, "3, 2, 2", 11, 1));
    refuse("bad/cut.npy", "none", MR_EFORMAT, "3 x 2 x 2 of |u1");
}

/* ---- archives ---- */
static void le(uint8_t *p, size_t at, size_t bytes, uint64_t v) { memcpy(p + at, &v, bytes); }

typedef struct archive {
    uint8_t p[ROOM], central[4096];
    size_t bytes, central_bytes;
    uint32_t count;
} archive;

/* wide: sizes in zip64 fields, as NumPy writes them in local headers. */
static void add(archive *z, const char *name, const uint8_t *data, size_t bytes, bool deflated, bool wide)
{
    const size_t n = strlen(name), extra = wide ? 20 : 0, at = z->bytes;
    uint8_t *p = z->p + at, *c = z->central + z->central_bytes;
    size_t packed = bytes;
    const uint32_t crc = crc32_gzip_refl(0, data, bytes);
    memset(p, 0, 30 + n + extra);
    memcpy(p + 30, name, n);
    memcpy(p + 30 + n + extra, data, bytes);
    if (deflated) {
        struct isal_zstream s;
        isal_deflate_init(&s);
        s.end_of_stream = 1;
        s.next_in = (uint8_t *)(uintptr_t)data;
        s.avail_in = (uint32_t)bytes;
        s.next_out = p + 30 + n + extra;
        s.avail_out = ROOM / 2;
        MRT_EQ(isal_deflate(&s), COMP_OK);
        packed = s.total_out;
    }
    le(p, 0, 4, 0x04034b50);
    le(p, 4, 2, 20);
    le(p, 8, 2, deflated ? 8 : 0);
    le(p, 14, 4, crc);
    le(p, 18, 4, wide ? UINT32_MAX : packed);
    le(p, 22, 4, wide ? UINT32_MAX : bytes);
    le(p, 26, 2, n);
    le(p, 28, 2, extra);
    if (wide) le(p, 30 + n, 2, 1), le(p, 32 + n, 2, 16), le(p, 34 + n, 8, bytes), le(p, 42 + n, 8, packed);
    memset(c, 0, 46);
    le(c, 0, 4, 0x02014b50);
    memcpy(c + 8, p + 6, 24); /* version has its own place: flags, method, time, crc, sizes, lengths */
    le(c, 20, 4, packed);
    le(c, 24, 4, bytes);
    le(c, 28, 2, n);
    le(c, 30, 2, 0);
    le(c, 42, 4, at);
    memcpy(c + 46, name, n);
    z->bytes += 30 + n + extra + packed;
    z->central_bytes += 46 + n;
    z->count++;
}

static void finish(archive *z, const char *name)
{
    uint8_t *p = z->p + z->bytes;
    memcpy(p, z->central, z->central_bytes);
    uint8_t *end = p + z->central_bytes;
    memset(end, 0, 22);
    le(end, 0, 4, 0x06054b50);
    le(end, 8, 2, z->count);
    le(end, 10, 2, z->count);
    le(end, 12, 4, z->central_bytes);
    le(end, 16, 4, z->bytes);
    mrt_write_file(mrt_path("%s", name), z->p, z->bytes + z->central_bytes + 22);
}

static const int64_t archive_labels[] = {0, 3, 1};

static archive *make_archive(bool deflated, bool wide)
{
    static archive z;
    z.bytes = z.central_bytes = z.count = 0;
    add(&z, "x_train.npy", buf, pictures(buf, "3, 8, 8, 3", 576, 7), deflated, wide);
    add(&z, "y_train.npy", buf, classes(buf, "<i8", "3,", archive_labels, 24), deflated, wide);
    return &z;
}

static void archives(void **state)
{
    (void)state;
    for (int k = 0; k < 4; k++) {
        finish(make_archive(k & 1, k & 2), "a.npz");
        expect_pictures("a.npz", MR_SPLIT_AUTO, 3, 192, 7, MR_HWC, archive_labels);
        mr_source *src;
        mr_source_file f;
        mr_error err = MR_ERROR_INIT;
        MRT_OK(mr_source_open(&src, mrt_path("a.npz"), NULL, &err), &err); /* by content */
        MRT_STR(mr_source_info_of(src)->format, "npz");
        MRT_EQ(mr_source_file_at(src, 0, &f), MR_OK);
        MRT_EQ(f.direct_ok, !(k & 1));
        mr_source_close(src);
    }
}

/* The archive with one byte changed, at an offset from its begin or, negative, its end. */
static void changed(bool deflated, bool wide, long at, uint8_t value, int code, const char *why)
{
    size_t bytes;
    finish(make_archive(deflated, wide), "bad.npz");
    uint8_t *p = mrt_read_file(mrt_path("bad.npz"), &bytes);
    p[at < 0 ? (size_t)((long)bytes + at) : (size_t)at] = value;
    mrt_write_file(mrt_path("bad.npz"), p, bytes);
    free(p);
    refuse("bad.npz", NULL, code, why);
}

/* One stored member of n MiB of zeros, one picture each; its CRC is off by `wrong`. */
static void write_large(const char *path, uint64_t n, uint32_t wrong)
{
    static const uint8_t zeros[MIB];
    uint8_t head[30 + 11 + 128], central[46 + 11 + 22] = {0};
    char text[128];
    memset(head, 0, sizeof head);
    uint8_t *npy = head + 30 + 11;
    memcpy(npy, "\x93NUMPY\x01\x00", 8);
    le(npy, 8, 2, 118);
    snprintf(text, sizeof text, "{'descr': '|u1', 'fortran_order': False, 'shape': (%d, 1024, 1024), }",
             (int)n);
    memset(npy + 10, ' ', 118);
    memcpy(npy + 10, text, strlen(text));
    npy[127] = '\n';
    uint32_t crc = crc32_gzip_refl(0, npy, 128);
    for (uint64_t k = 0; k < n; k++) crc = crc32_gzip_refl(crc, zeros, sizeof zeros);
    const uint64_t bytes = 128 + n * MIB;
    le(head, 0, 4, 0x04034b50);
    le(head, 4, 2, 20);
    le(head, 14, 4, crc + wrong);
    le(head, 18, 4, bytes);
    le(head, 22, 4, bytes);
    le(head, 26, 2, 11);
    memcpy(head + 30, "x_train.npy", 11);
    le(central, 0, 4, 0x02014b50);
    memcpy(central + 8, head + 6, 24);
    memcpy(central + 46, "x_train.npy", 11);
    le(central, 57, 4, 0x06054b50);
    le(central, 65, 2, 1);
    le(central, 67, 2, 1);
    le(central, 69, 4, 57);
    le(central, 73, 4, sizeof head + n * MIB);
    FILE *f = fopen(path, "wbe");
    MRT_EQ(fwrite(head, 1, sizeof head, f), sizeof head);
    MRT_EQ(fseek(f, (long)(n * MIB), SEEK_CUR), 0); /* a hole */
    MRT_EQ(fwrite(central, 1, sizeof central, f), sizeof central);
    fclose(f);
}

/* The CRC of members that are read in place: checked at once if they are small, else on request. */
static void stored_members_have_a_crc(void **state)
{
    (void)state;
    mr_source_config cfg;
    mr_source *src;
    mr_error err = MR_ERROR_INIT;
    mr_source_defaults(&cfg);
    cfg.label_key = "none";
    for (uint32_t wrong = 0; wrong < 2; wrong++) {
        const char *path = mrt_path("crc.npz");
        write_large(path, 2, wrong);
        MRT_EQ(mr_source_open(&src, path, &cfg, &err), wrong ? MR_ECHECKSUM : MR_OK);
        if (wrong) MRT_HAS(err.text, "CRC");
        else MRT_TRUE(mr_source_check(src, &err) == MR_OK && !mr_source_info_of(src)->told);
        mr_source_close(src);
        write_large(path, 257, wrong);
        MRT_OK(mr_source_open(&src, path, &cfg, &err), &err);
        MRT_EQ(mr_source_info_of(src)->count, 257);
        MRT_HAS(mr_source_info_of(src)->told, "the CRC over all 257 MiB of x_train is checked by verify");
        MRT_EQ(mr_source_check(src, &err), wrong ? MR_ECHECKSUM : MR_OK);
        if (wrong) MRT_STR(err.file, path);
        mr_source_close(src);
    }
}

static void damaged_archives(void **state)
{
    (void)state;
    const long central = -22 - 2 * (46 + 11), second = -22 - (46 + 11);
    changed(false, false, central + 8, 1, MR_EUNSUPPORTED, "encrypted");
    changed(false, false, central + 10, 12, MR_EUNSUPPORTED, "method 12");
    changed(false, false, central + 20, 1, MR_EFORMAT, "two sizes");
    changed(false, false, central + 42, 1, MR_EFORMAT, "no header where"); /* its offset */
    changed(false, false, central + 46, 'X', MR_EFORMAT, "another name");
    changed(false, false, 6, 8, MR_EFORMAT, "other flags");
    changed(false, false, 8, 8, MR_EFORMAT, "another method");
    changed(false, false, 14, 1, MR_EFORMAT, "another CRC");
    changed(false, false, 22, 1, MR_EFORMAT, "other sizes");
    changed(false, false, 30, 'X', MR_EFORMAT, "another name");
    changed(false, true, 34 + 11, 1, MR_EFORMAT, "other sizes"); /* in the zip64 field */
    changed(false, true, 30 + 11, 2, MR_EFORMAT, "zip64");       /* no such field */
    changed(false, false, second + 46, 'x', MR_EFORMAT, "two members named x_train.npy");
    changed(true, false, second + 24, 1, MR_EFORMAT, "sizes or another CRC");
    changed(false, false, -22, 'x', MR_EFORMAT, "no end record");
    changed(false, false, -10, 1, MR_EFORMAT, "does not end at its end record");
    changed(false, false, -6, 1, MR_EFORMAT, "does not end at its end record");
    changed(false, false, -14, 9, MR_EFORMAT, "several disks");
    changed(true, false, 30 + 11, 7, MR_EFORMAT, "makes no sense"); /* a kind of deflate block that there is
                                                                       not */
    archive *z = make_archive(false, false);
    z->p[z->bytes - 24] ^= 1; /* a class */
    finish(z, "bad.npz");
    refuse("bad.npz", NULL, MR_ECHECKSUM, "CRC");
    finish(make_archive(true, true), "whole.npz");
    size_t bytes;
    uint8_t *p = mrt_read_file(mrt_path("whole.npz"), &bytes);
    for (size_t cut = 1; cut < bytes; cut += 3) {
        mr_source *src;
        mr_error err;
        mrt_write_file(mrt_path("bad.npz"), p, cut);
        MRT_TRUE(try_open("bad.npz", NULL, MR_SPLIT_AUTO, &src, &err) != MR_OK);
    }
    free(p);
}

static void allocations_fail_in_turn(void **state)
{
    (void)state;
    finish(make_archive(true, true), "alloc.npz");
    mrt_mkdir(mrt_path("alloc"));
    static const int64_t labels[] = {2, 0, 1};
    put("alloc/x.npy", classes(buf, ">i4", "3, 2", labels, 24));
    put("alloc/y.npy", classes(buf, "<i8", "3,", labels, 24));
    static const char *const names[] = {"alloc.npz", "alloc", "alloc/x.npy"};
    for (int k = 0; k < 3; k++)
        for (long n = 0;; n++) {
            mr_error err;
            mr_source *src;
            mrt_fail_alloc_at(n);
            const int rc = try_open(names[k], NULL, MR_SPLIT_AUTO, &src, &err);
            mrt_fail_alloc_at(-1);
            if (mrt_last_turn(rc, src)) break;
        }
}

/* What NumPy itself writes, where it is installed: MRT_NUMPY_PYTHON or python3. */
static void written_by_numpy(void **state)
{
    (void)state;
    static const char script[] =
        "import numpy as np, sys\n"
        "x = (np.arange(3 * 4 * 5 * 3) * 7 % 256).astype('u1').reshape(3, 4, 5, 3); y = np.array([2, 0, 1])\n"
        "np.savez(sys.argv[1] + '/stored.npz', x_train=x, y_train=y)\n"
        "np.savez_compressed(sys.argv[1] + '/packed.npz', images=x, labels=y.astype('>i2'))\n"
        "np.save(sys.argv[1] + '/x.npy', x); np.save(sys.argv[1] + '/y.npy', y[:, None].astype('u1'))\n"
        "np.save(sys.argv[1] + '/objects.npy', np.array([{}, []], dtype=object), allow_pickle=True)\n"
        "np.save(sys.argv[1] + '/fortran.npy', np.asfortranarray(np.ones((3, 4))))\n";
    const char *python = getenv("MRT_NUMPY_PYTHON");
    char command[2400];
    mrt_mkdir(mrt_path("numpy"));
    mrt_write_file(mrt_path("numpy/make.py"), script, sizeof script - 1);
    snprintf(command, sizeof command, "%s %s %s 2>/dev/null", python ? python : "python3",
             mrt_path("numpy/make.py"), mrt_path("numpy"));
    if (system(command) != 0) {
        printf("not run: files written by NumPy (MRT_NUMPY_PYTHON names a Python that has it)\n");
        return;
    }
    static const char *const names[] = {"numpy/stored.npz", "numpy/packed.npz", "numpy/x.npy", "numpy"};
    for (int k = 0; k < 4; k++) {
        mr_source *src;
        mr_error err;
        mr_sample s;
        void *read = NULL;
        size_t read_bytes = 0;
        MRT_OK(try_open(names[k], NULL, MR_SPLIT_AUTO, &src, &err), &err);
        MRT_EQ(mr_source_info_of(src)->count, 3);
        for (uint32_t i = 0; i < 3; i++) {
            MRT_OK(mr_source_read(src, i, &read, &read_bytes, &s, &err), &err);
            MRT_EQ(s.value[1].i, (i + 2) % 3);
            for (uint32_t b = 0; b < 60; b++)
                MRT_EQ(((const uint8_t *)s.value[0].data)[b], (i * 60 + b) * 7 % 256);
        }
        free(read);
        mr_source_close(src);
    }
    refuse("numpy/objects.npy", NULL, MR_EUNSUPPORTED, "unpickled");
    refuse("numpy/fortran.npy", NULL, MR_EUNSUPPORTED, "Fortran");
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(headers),
        cmocka_unit_test(versions),
        cmocka_unit_test(integers),
        cmocka_unit_test(files_side_by_side),
        cmocka_unit_test(parts_of_a_folder),
        cmocka_unit_test(tensors),
        cmocka_unit_test(refused),
        cmocka_unit_test(archives),
        cmocka_unit_test(stored_members_have_a_crc),
        cmocka_unit_test(damaged_archives),
        cmocka_unit_test(allocations_fail_in_turn),
        cmocka_unit_test(written_by_numpy),
    };
    return mrt_run(tests);
}
