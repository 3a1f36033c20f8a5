/* IDX: the four files, plain and packed; counts, sizes and labels that do not agree; damaged gzip. */
#include <isa-l/igzip_lib.h>
#include <unistd.h>

#include "millrace/formats.h"
#include "mrt.h"
#include "tests/formats/mrt_turns.h"

enum { H = 5, W = 4, MOST = 200 };

static size_t make_images(uint8_t *p, uint32_t n, uint64_t seed)
{
    const uint8_t head[16] = {0, 0, 8, 3, 0, 0, (uint8_t)(n >> 8), (uint8_t)n, 0, 0, 0, H, 0, 0, 0, W};
    memcpy(p, head, 16);
    mrt_noise(p + 16, (size_t)n * H * W, seed);
    return 16 + (size_t)n * H * W;
}

static size_t make_labels(uint8_t *p, uint32_t n, uint32_t classes)
{
    const uint8_t head[8] = {0, 0, 8, 1, 0, 0, (uint8_t)(n >> 8), (uint8_t)n};
    memcpy(p, head, 8);
    for (uint32_t k = 0; k < n; k++) p[8 + k] = (uint8_t)(k * 7 % classes);
    return 8 + n;
}

static size_t pack(const uint8_t *data, size_t bytes, uint8_t *out, size_t room)
{
    struct isal_zstream z;
    isal_deflate_init(&z);
    z.gzip_flag = IGZIP_GZIP;
    z.end_of_stream = 1;
    z.next_in = (uint8_t *)(uintptr_t)data;
    z.avail_in = (uint32_t)bytes;
    z.next_out = out;
    z.avail_out = (uint32_t)room;
    MRT_EQ(isal_deflate(&z), COMP_OK);
    return room - z.avail_out;
}

static void write_packed(const char *path, const uint8_t *data, size_t bytes)
{
    static uint8_t out[20000];
    mrt_write_file(path, out, pack(data, bytes, out, sizeof out));
}

static void make_folder(const char *name, int packed)
{
    static uint8_t buf[16 + MOST * H * W];
    void (*write)(const char *, const void *, size_t) = mrt_write_file;
    mrt_mkdir(mrt_path("%s", name));
    const char *end = packed ? ".gz" : "";
    size_t bytes = make_images(buf, 150, 1);
    const char *path = mrt_path("%s/train-images-idx3-ubyte%s", name, end);
    packed ? write_packed(path, buf, bytes) : write(path, buf, bytes);
    bytes = make_labels(buf, 150, 10);
    path = mrt_path("%s/train-labels-idx1-ubyte%s", name, end);
    packed ? write_packed(path, buf, bytes) : write(path, buf, bytes);
    bytes = make_images(buf, 30, 2);
    path = mrt_path("%s/t10k-images-idx3-ubyte%s", name, end);
    packed ? write_packed(path, buf, bytes) : write(path, buf, bytes);
    bytes = make_labels(buf, 30, 9); /* class 9 never comes up here */
    path = mrt_path("%s/t10k-labels-idx1-ubyte%s", name, end);
    packed ? write_packed(path, buf, bytes) : write(path, buf, bytes);
}

static int try_open(const char *path, mr_split split, mr_source **src, mr_error *err)
{
    mr_source_config cfg;
    mr_source_defaults(&cfg);
    cfg.split = split;
    *src = (mr_source *)&cfg;
    const int rc = mr_source_open(src, path, &cfg, err);
    if (rc) MRT_TRUE(*src == NULL);
    return rc;
}

static void check(const char *path, mr_split split, uint32_t n, uint64_t seed, uint32_t classes)
{
    static uint8_t images[16 + MOST * H * W];
    make_images(images, n, seed);
    mr_source *src;
    mr_error err = MR_ERROR_INIT;
    MRT_OK(try_open(path, split, &src, &err), &err);
    const mr_source_info *info = mr_source_info_of(src);
    MRT_STR(info->format, "idx");
    MRT_EQ(info->count, n);
    MRT_EQ(info->height, H);
    MRT_EQ(info->width, W);
    MRT_EQ(info->channels, 1);
    MRT_EQ(info->class_count, 10);
    void *buf = NULL;
    size_t buf_bytes = 0;
    for (uint32_t i = 0; i < n; i++) {
        mr_sample s;
        int64_t label;
        MRT_OK(mr_source_read(src, i, &buf, &buf_bytes, &s, &err), &err);
        MRT_EQ(s.value[0].bytes, H * W);
        assert_memory_equal(s.value[0].data, images + 16 + i * H * W, H * W);
        MRT_EQ(s.value[1].i, i * 7 % classes);
        MRT_EQ(mr_source_label(src, i, &label), MR_OK);
        MRT_EQ(label, s.value[1].i);
    }
    free(buf);
    mr_source_close(src);
}

static void four_files(void **state)
{
    (void)state;
    for (int packed = 0; packed < 2; packed++) {
        const char *folder = packed ? "packed" : "plain";
        make_folder(folder, packed);
        check(mrt_path("%s", folder), MR_SPLIT_AUTO, 150, 1, 10);
        check(mrt_path("%s", folder), MR_SPLIT_TEST, 30, 2, 9);
        check(mrt_path("%s/train-images-idx3-ubyte%s", folder, packed ? ".gz" : ""), MR_SPLIT_AUTO, 150, 1,
              10);
    }
    mr_source *src;
    mr_source_file f;
    mr_error err = MR_ERROR_INIT;
    MRT_OK(try_open(mrt_path("packed"), MR_SPLIT_AUTO, &src, &err), &err);
    MRT_EQ(mr_source_file_at(src, 0, &f), MR_OK);
    MRT_TRUE(!f.direct_ok && mr_source_info_of(src)->has_test);
    mr_source_close(src);
    make_folder("packed", 0); /* both there: the plain ones are taken */
    MRT_OK(try_open(mrt_path("packed"), MR_SPLIT_AUTO, &src, &err), &err);
    MRT_EQ(mr_source_file_at(src, 0, &f), MR_OK);
    MRT_TRUE(f.direct_ok);
    mr_source_close(src);
}

static void two_members(void **state)
{
    (void)state;
    static uint8_t plain[16 + MOST * H * W], out[20000];
    make_folder("members", 0);
    const size_t bytes = make_images(plain, 150, 1);
    size_t at = pack(plain, 1000, out, sizeof out);
    at += pack(plain + 1000, bytes - 1000, out + at, sizeof out - at);
    mrt_write_file(mrt_path("members/train-images-idx3-ubyte"), out, at);
    check(mrt_path("members"), MR_SPLIT_AUTO, 150, 1, 10);
}

static void expect(const char *folder, int code, const char *text)
{
    mr_source *src;
    mr_error err = MR_ERROR_INIT;
    MRT_EQ(try_open(mrt_path("%s", folder), MR_SPLIT_AUTO, &src, &err), code);
    MRT_HAS(err.text, text);
    MRT_TRUE(err.file[0]);
}

static void change(const char *name, size_t at, uint8_t value)
{
    size_t bytes;
    uint8_t *p = mrt_read_file(mrt_path("bad/%s", name), &bytes);
    MRT_TRUE(at < bytes);
    p[at] = value;
    mrt_write_file(mrt_path("bad/%s", name), p, bytes);
    free(p);
}

static void counts_that_disagree(void **state)
{
    (void)state;
    static const char images[] = "train-images-idx3-ubyte", labels[] = "train-labels-idx1-ubyte";
    make_folder("bad", 0);
    change(labels, 7, 149);
    expect("bad", MR_EFORMAT, "149 items and 157 bytes, the file has 158");
    make_folder("bad", 0);
    change(images, 7, 151);
    expect("bad", MR_EFORMAT, "151 items");
    make_folder("bad", 0);
    for (size_t k = 4; k < 16; k++) change(images, k, 0xff);
    expect("bad", MR_EFORMAT, "any file can hold");
    make_folder("bad", 0);
    change(images, 11, 0);
    expect("bad", MR_EFORMAT, "dimension 1 is 0");
    make_folder("bad", 0);
    change(images, 2, 0x0d);
    expect("bad", MR_EUNSUPPORTED, "0x0d");
    static uint8_t buf[100];
    make_folder("bad", 0);
    mrt_write_file(mrt_path("bad/%s", labels), buf, make_labels(buf, 60, 10));
    expect("bad", MR_EFORMAT, "60 labels for 150 images");
    unlink(mrt_path("bad/%s", labels));
    expect("bad", MR_ENOENT, "labels");
    expect("bad/train-images-idx3-ubyte", MR_ENOENT, "no labels beside these images");
    expect("bad/train-images-idx3-ubyte", MR_ENOENT, "/bad/train-labels-idx1-ubyte (or with .gz)");
    expect("bad/t10k-labels-idx1-ubyte", MR_EFORMAT, "expected images");
    make_folder("bad", 0);
    mrt_write_file(mrt_path("bad/train2-labels"), buf, make_labels(buf, 60, 10));
    expect("bad", MR_EFORMAT, "two files for one role");
    unlink(mrt_path("bad/train2-labels"));
}

/* Splits by the words in file names; a file named like an IDX file is not offered to other formats. */
static void names_say_the_part(void **state)
{
    (void)state;
    static const char *const kinds[] = {"images-idx3-ubyte", "labels-idx1-ubyte"};
    mr_source *src;
    mr_error err = MR_ERROR_INIT;
    make_folder("latest", 0);
    for (int k = 0; k < 2; k++) {
        char from[2][512];
        snprintf(from[0], sizeof from[0], "%s", mrt_path("latest/train-%s", kinds[k]));
        snprintf(from[1], sizeof from[1], "%s", mrt_path("latest/t10k-%s", kinds[k]));
        MRT_EQ(rename(from[0], mrt_path("latest/latest-set-train-%s", kinds[k])), 0); /* "test" is no word of
                                                                                         it */
        MRT_EQ(rename(from[1], mrt_path("latest/latest-set-t10k-%s", kinds[k])), 0);
    }
    check(mrt_path("latest"), MR_SPLIT_AUTO, 150, 1, 10);
    check(mrt_path("latest"), MR_SPLIT_TEST, 30, 2, 9);
    mrt_write_file(mrt_path("latest/all-images-idx3-ubyte"), "\0\0\x08\x03\0\0\0\1\0\0\0\1\0\0\0\1x", 17);
    MRT_EQ(try_open(mrt_path("latest"), MR_SPLIT_AUTO, &src, &err), MR_EFORMAT);
    MRT_HAS(err.file, "latest/all-images-idx3-ubyte");
    MRT_HAS(err.text, "says none of train, validation and test");
    mrt_write_file(mrt_path("latest/all-images-idx3-ubyte"), "", 0);
    MRT_EQ(try_open(mrt_path("latest"), MR_SPLIT_AUTO, &src, &err), MR_EFORMAT);
    MRT_HAS(err.text, "named like an IDX file, but it is not one");
    unlink(mrt_path("latest/all-images-idx3-ubyte"));
    for (int k = 0; k < 2; k++) unlink(mrt_path("latest/latest-set-train-%s", kinds[k]));
    MRT_OK(try_open(mrt_path("latest"), MR_SPLIT_AUTO, &src, &err), &err);
    MRT_TRUE(mr_source_info_of(src)->only_test);
    mr_source_close(src);
    unlink(mrt_path("latest/latest-set-t10k-%s", kinds[0])); /* labels alone are no folder of pictures */
    MRT_EQ(try_open(mrt_path("latest"), MR_SPLIT_AUTO, &src, &err), MR_ENOENT);
    MRT_HAS(err.text, "no IDX file with images in it");
}

static void damaged_gzip(void **state)
{
    (void)state;
    static const char name[] = "gz/train-images-idx3-ubyte.gz";
    static uint8_t plain[16 + MOST * H * W], longer[16 + MOST * H * W + 1];
    make_folder("gz", 1);
    size_t bytes;
    uint8_t *whole = mrt_read_file(mrt_path("%s", name), &bytes);
    mr_source *src;
    mr_error err = MR_ERROR_INIT;
    for (size_t cut = 100; cut < bytes; cut += 203) {
        mrt_write_file(mrt_path("%s", name), whole, cut);
        const int rc = try_open(mrt_path("gz"), MR_SPLIT_AUTO, &src, &err);
        MRT_TRUE(rc == MR_EFORMAT || rc == MR_ENOENT); /* never the test part in its place */
    }
    for (size_t cut = bytes - 9; cut < bytes; cut++) {
        mrt_write_file(mrt_path("%s", name), whole, cut);
        MRT_EQ(try_open(mrt_path("gz"), MR_SPLIT_AUTO, &src, &err), MR_EFORMAT);
        MRT_HAS(err.text, "ends early");
    }
    whole[bytes - 8] ^= 1;
    mrt_write_file(mrt_path("%s", name), whole, bytes);
    expect("gz", MR_ECHECKSUM, "checksum");
    whole[bytes - 8] ^= 1;
    whole = realloc(whole, bytes + 1);
    whole[bytes] = 'x';
    mrt_write_file(mrt_path("%s", name), whole, bytes + 1);
    expect("gz", MR_EFORMAT, "bytes after the end");
    free(whole);
    const size_t all = make_images(plain, 150, 1);
    memcpy(longer, plain, all);
    write_packed(mrt_path("%s", name), longer, all + 1);
    expect("gz", MR_EFORMAT, "more is packed");
    write_packed(mrt_path("%s", name), plain, all - 1);
    expect("gz", MR_EFORMAT, "less is packed");
    plain[4] = 0x10; /* a claim no gzip of this size can hold */
    write_packed(mrt_path("%s", name), plain, all);
    expect("gz", MR_EFORMAT, "more than");
}

static void labels_over_the_budget(void **state)
{
    (void)state;
    make_folder("budget", 0);
    mr_source_config cfg;
    mr_source *src;
    mr_error err = MR_ERROR_INIT;
    mr_source_defaults(&cfg);
    cfg.memory_bytes = 100;
    MRT_EQ(mr_source_open(&src, mrt_path("budget"), &cfg, &err), MR_ELIMIT);
    make_folder("budget2", 1); /* packed images over the budget go to a file */
    cfg.memory_bytes = 1000;
    MRT_OK(mr_source_open(&src, mrt_path("budget2"), &cfg, &err), &err);
    MRT_TRUE(mr_source_info_of(src)->memory_bytes < 1000);
    mr_source_close(src);
}

static void allocations_fail_in_turn(void **state)
{
    (void)state;
    make_folder("alloc", 1);
    static const char *const paths[] = {"alloc", "alloc/train-images-idx3-ubyte.gz"};
    for (int k = 0; k < 2; k++)
        for (long n = 0;; n++) {
            mr_error err = MR_ERROR_INIT;
            mr_source *src;
            mrt_fail_alloc_at(n);
            const int rc = try_open(mrt_path("%s", paths[k]), MR_SPLIT_AUTO, &src, &err);
            mrt_fail_alloc_at(-1);
            if (mrt_last_turn(rc, src)) break;
        }
}

static void real_mnist(void **state)
{
    (void)state;
    const char *path = mrt_data("mnist");
    if (!path) {
        printf("real MNIST is not here: not tried\n");
        return;
    }
    mr_source *src;
    mr_error err = MR_ERROR_INIT;
    MRT_OK(try_open(path, MR_SPLIT_TEST, &src, &err), &err);
    MRT_EQ(mr_source_info_of(src)->count, 10000);
    MRT_EQ(mr_source_info_of(src)->height, 28);
    int64_t label;
    MRT_EQ(mr_source_label(src, 0, &label), MR_OK);
    MRT_EQ(label, 7); /* the first test digit, as published */
    mr_source_close(src);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(names_say_the_part),
        cmocka_unit_test(four_files),
        cmocka_unit_test(two_members),
        cmocka_unit_test(counts_that_disagree),
        cmocka_unit_test(damaged_gzip),
        cmocka_unit_test(labels_over_the_budget),
        cmocka_unit_test(allocations_fail_in_turn),
        cmocka_unit_test(real_mnist),
    };
    return mrt_run(tests);
}
