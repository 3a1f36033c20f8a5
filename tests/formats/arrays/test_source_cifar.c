/* CIFAR binaries: both variants, folders and single files; sizes and labels that cannot be. */
#include <unistd.h>

#include "millrace/formats.h"
#include "mrt.h"

static void write_batch(const char *path, uint32_t labels, uint32_t n, uint64_t seed)
{
    const size_t one = labels + 3072;
    uint8_t *p = malloc(n * one);
    mrt_noise(p, n * one, seed);
    for (uint32_t k = 0; k < n; k++) {
        p[k * one] = (uint8_t)(k % 10);
        if (labels == 2) p[k * one + 1] = (uint8_t)(k % 100);
    }
    mrt_write_file(path, p, n * one);
    free(p);
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

static void make_ten(const char *name)
{
    mrt_mkdir(mrt_path("%s", name));
    for (int k = 1; k <= 5; k++)
        write_batch(mrt_path("%s/data_batch_%d.bin", name, k), 1, 11 + (uint32_t)k, (uint64_t)k);
    write_batch(mrt_path("%s/test_batch.bin", name), 1, 7, 9);
}

static void ten_classes(void **state)
{
    (void)state;
    make_ten("ten");
    static const char names[] = "plane\ncar\nbird\ncat\ndeer\ndog\nfrog\nhorse\nship\ntruck\n\n";
    mrt_write_file(mrt_path("ten/batches.meta.txt"), names, sizeof names - 1);
    mr_source *src;
    mr_error err = MR_ERROR_INIT;
    MRT_OK(try_open(mrt_path("ten"), MR_SPLIT_AUTO, &src, &err), &err);
    const mr_source_info *info = mr_source_info_of(src);
    MRT_STR(info->format, "cifar10");
    MRT_EQ(info->count, 12 + 13 + 14 + 15 + 16);
    MRT_EQ(info->file_count, 5);
    MRT_STR(info->class_names[9], "truck");
    MRT_TRUE(info->has_test);
    void *buf = NULL;
    size_t buf_bytes = 0;
    mr_sample s;
    char path[512];
    MRT_OK(mr_source_read(src, 12 + 13 + 3, &buf, &buf_bytes, &s, &err), &err); /* record 3 of batch 3 */
    uint8_t *expected = malloc(14 * 3073);
    mrt_noise(expected, 14 * 3073, 3);
    assert_memory_equal(s.value[0].data, expected + 3 * 3073 + 1, 3072);
    free(expected);
    MRT_EQ(s.value[0].planes, MR_CHW);
    MRT_EQ(s.value[0].dim[0], 32);
    MRT_EQ(s.value[0].dim[2], 3);
    MRT_EQ(s.value[1].i, 3);
    MRT_HAS(mr_source_sample_path(src, 12 + 13 + 3, path, sizeof path), "data_batch_3.bin");
    int64_t label;
    MRT_EQ(mr_source_label(src, 0, &label), MR_EUNSUPPORTED);
    ((uint8_t *)buf)[0] = 10;
    MRT_EQ(mr_source_parse(src, 28, buf, 3073, &s, &err), MR_EFORMAT);
    MRT_HAS(err.text, "label below 10, found 10");
    MRT_EQ(err.offset, 3 * 3073);
    MRT_EQ(mr_source_parse(src, 28, buf, 3072, &s, &err), MR_EFORMAT);
    free(buf);
    mr_source_close(src);
    MRT_OK(try_open(mrt_path("ten"), MR_SPLIT_TEST, &src, &err), &err);
    MRT_EQ(mr_source_info_of(src)->count, 7);
    mr_source_close(src);
    MRT_OK(try_open(mrt_path("ten/data_batch_2.bin"), MR_SPLIT_AUTO, &src, &err), &err);
    MRT_EQ(mr_source_info_of(src)->count, 13);
    mr_source_close(src);
    mrt_write_file(mrt_path("ten/batches.meta.txt"), "one\ntwo\n", 8);
    MRT_EQ(try_open(mrt_path("ten"), MR_SPLIT_AUTO, &src, &err), MR_EFORMAT);
    MRT_HAS(err.text, "expected 10 class names, one a line, found 2");
}

static void hundred_classes(void **state)
{
    (void)state;
    mrt_mkdir(mrt_path("hundred"));
    write_batch(mrt_path("hundred/train.bin"), 2, 150, 1);
    write_batch(mrt_path("hundred/test.bin"), 2, 5, 2);
    mr_source *src;
    mr_error err = MR_ERROR_INIT;
    MRT_OK(try_open(mrt_path("hundred"), MR_SPLIT_AUTO, &src, &err), &err);
    MRT_STR(mr_source_info_of(src)->format, "cifar100");
    MRT_EQ(mr_source_info_of(src)->field_count, 3);
    MRT_EQ(mr_source_info_of(src)->class_count, 100);
    void *buf = NULL;
    size_t buf_bytes = 0;
    mr_sample s;
    MRT_OK(mr_source_read(src, 57, &buf, &buf_bytes, &s, &err), &err);
    MRT_EQ(s.value[1].i, 57);
    MRT_EQ(s.value[2].i, 7);
    ((uint8_t *)buf)[1] = 100;
    MRT_EQ(mr_source_parse(src, 57, buf, 3074, &s, &err), MR_EFORMAT);
    MRT_HAS(err.text, "below 100, found 100");
    free(buf);
    mr_source_close(src);
}

static void wrong_files_are_named(void **state)
{
    (void)state;
    mr_source *src;
    mr_error err = MR_ERROR_INIT;
    make_ten("wrong");
    mrt_write_file(mrt_path("wrong/data_batch_4.bin"), "short", 5);
    MRT_EQ(try_open(mrt_path("wrong"), MR_SPLIT_AUTO, &src, &err), MR_EFORMAT);
    MRT_HAS(err.text, "multiple of 3073 bytes (cifar10), found 5");
    MRT_HAS(err.file, "data_batch_4.bin");
    unlink(mrt_path("wrong/data_batch_4.bin"));
    MRT_EQ(try_open(mrt_path("wrong"), MR_SPLIT_AUTO, &src, &err), MR_ENOENT);
    MRT_HAS(err.text, "the train part lacks data_batch_4.bin: ");
    unlink(mrt_path("wrong/data_batch_1.bin")); /* the test batch does not stand in for it */
    MRT_EQ(try_open(mrt_path("wrong"), MR_SPLIT_AUTO, &src, &err), MR_ENOENT);
    MRT_HAS(err.text, "the train part lacks data_batch_1.bin, data_batch_4.bin: ");
    MRT_EQ(try_open(mrt_path("wrong"), MR_SPLIT_TRAIN, &src, &err), MR_ENOENT);
    MRT_OK(try_open(mrt_path("wrong"), MR_SPLIT_TEST, &src, &err), &err);
    mr_source_close(src);
    for (int k = 2; k < 6; k++) unlink(mrt_path("wrong/data_batch_%d.bin", k));
    MRT_OK(try_open(mrt_path("wrong"), MR_SPLIT_AUTO, &src, &err), &err);
    MRT_TRUE(mr_source_info_of(src)->only_test);
    MRT_HAS(mr_source_info_of(src)->told, "there is no train part");
    mr_source_close(src);
    uint8_t *p = calloc(2, 3073);
    p[3073] = 10;
    mrt_write_file(mrt_path("wrong/one.bin"), p, 2 * 3073);
    free(p);
    MRT_EQ(try_open(mrt_path("wrong/one.bin"), MR_SPLIT_AUTO, &src, &err), MR_EUNSUPPORTED);
    mr_source_config cfg;
    mr_source_defaults(&cfg);
    cfg.format = "cifar10"; /* given its format: the wrong record is named when it is read */
    MRT_OK(mr_source_open(&src, mrt_path("wrong/one.bin"), &cfg, &err), &err);
    void *buf = NULL;
    size_t buf_bytes = 0;
    mr_sample s;
    MRT_OK(mr_source_read(src, 0, &buf, &buf_bytes, &s, &err), &err);
    MRT_EQ(mr_source_read(src, 1, &buf, &buf_bytes, &s, &err), MR_EFORMAT);
    MRT_EQ(err.sample, 1);
    free(buf);
    mr_source_close(src);
}

static void allocations_fail_in_turn(void **state)
{
    (void)state;
    make_ten("alloc");
    mrt_write_file(mrt_path("alloc/batches.meta.txt"), "0\n1\n2\n3\n4\n5\n6\n7\n8\n9\n", 20);
    for (long n = 0;; n++) {
        mr_error err = MR_ERROR_INIT;
        mr_source *src;
        mrt_fail_alloc_at(n);
        const int rc = try_open(mrt_path("alloc"), MR_SPLIT_AUTO, &src, &err);
        mrt_fail_alloc_at(-1);
        if (rc == MR_OK) {
            mr_source_close(src);
            break;
        }
        MRT_EQ(rc, MR_ENOMEM);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(ten_classes),
        cmocka_unit_test(hundred_classes),
        cmocka_unit_test(wrong_files_are_named),
        cmocka_unit_test(allocations_fail_in_turn),
    };
    return mrt_run(tests);
}
