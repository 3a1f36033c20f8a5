/* What samples were called, from every kind of source that knows it, and from bytes that are damaged. */
#include "formats/source/sample_name.h"

#include <sys/stat.h>

#include "formats/source/value.h"
#include "mrt.h"

static const char jpeg[] = "\xff\xd8\xff\xe0 a jpeg";

static mr_source *open_source(const char *path)
{
    mr_source *src;
    mr_error err = MR_ERROR_INIT;
    MRT_OK(mr_source_open(&src, path, NULL, &err), &err);
    return src;
}

static void expect_name(const mr_source *src, uint64_t sample, const char *expected)
{
    char name[256], cut[4];
    MRT_STR(mr_source_sample_name(src, sample, NULL, 0, name, sizeof name), expected);
    snprintf(name, sizeof name, "%.3s", expected);
    MRT_STR(mr_source_sample_name(src, sample, NULL, 0, cut, sizeof cut), name);
}

static bool has_names(const mr_source *src)
{
    bool has;
    mr_error err = MR_ERROR_INIT;
    MRT_OK(mri_source_has_names(src, &has, &err), &err);
    return has;
}

static void of_files(void **state)
{
    (void)state;
    static const char *const folders[] = {"set", "set/train", "set/train/cat", "set/val", "set/val/cat"};
    for (size_t k = 0; k < sizeof folders / sizeof folders[0]; k++) mrt_mkdir(mrt_path("%s", folders[k]));
    mrt_write_file(mrt_path("set/train/cat/1.jpg"), jpeg, sizeof jpeg - 1);
    mrt_write_file(mrt_path("set/val/cat/2.jpg"), jpeg, sizeof jpeg - 1);
    mr_source *src = open_source(mrt_path("set"));
    expect_name(src, 0, "train/cat/1.jpg");
    char name[16] = "untouched";
    MRT_STR(mr_source_sample_name(src, 1, NULL, 0, name, sizeof name), "");
    MRT_STR(mr_source_sample_name(src, 0, NULL, 0, name, 1), "");
    MRT_TRUE(has_names(src));
    mr_source_close(src);
    src = open_source(mrt_path("set/train/")); /* however the folder is called */
    expect_name(src, 0, "cat/1.jpg");
    mr_source_close(src);
}

static void write_records(const char *path, const char *const *names, size_t count, const char *field)
{
    mr_field fields[3] = {mri_field("image", MR_TYPE_JPEG), mri_field(field, MR_TYPE_BYTES),
                          mri_field("label", MR_TYPE_INT)};
    mr_writer_config cfg;
    mr_writer *w;
    mr_error err = MR_ERROR_INIT;
    mr_writer_defaults(&cfg);
    cfg.field_count = 3;
    cfg.fields = fields;
    MRT_OK(mr_writer_open(&w, path, &cfg, NULL, &err), &err);
    for (size_t k = 0; k < count; k++) {
        const mr_value values[3] = {
            {.type = MR_TYPE_JPEG, .data = jpeg, .bytes = sizeof jpeg - 1},
            {.type = MR_TYPE_BYTES, .data = names[k], .bytes = strlen(names[k])},
            {.type = MR_TYPE_INT, .i = (int64_t)k},
        };
        MRT_OK(mr_writer_append(w, k, values, &err), &err);
    }
    MRT_OK(mr_writer_finish(w, &err), &err);
}

static void of_records(void **state)
{
    (void)state;
    static const char *const names[] = {"cat/1.jpg", "", "cat/no\xff utf8\n.jpg"};
    write_records(mrt_path("a.mrec"), names, 3, MRI_NAME_FIELD);
    mr_source *src = open_source(mrt_path("a.mrec"));
    for (uint64_t k = 0; k < 3; k++) expect_name(src, k, names[k]);
    mr_source_close(src);
    write_records(mrt_path("b.mrec"), names, 3, "name"); /* a field like any other */
    src = open_source(mrt_path("b.mrec"));
    for (uint64_t k = 0; k < 3; k++) expect_name(src, k, "");
    MRT_TRUE(!has_names(src));
    mr_source_close(src);
}

/* Bytes of a damaged record give a name or none, and no byte after them is read. */
static void of_damaged_records(void **state)
{
    (void)state;
    static const char *const names[] = {"cat/1.jpg"};
    write_records(mrt_path("d.mrec"), names, 1, MRI_NAME_FIELD);
    mr_source *src = open_source(mrt_path("d.mrec"));
    mr_extent e;
    mr_sample s;
    mr_error err = MR_ERROR_INIT;
    void *data = NULL;
    size_t bytes = 0;
    char name[64];
    MRT_OK(mr_source_read(src, 0, &data, &bytes, &s, &err), &err);
    MRT_OK(mr_source_extent(src, 0, &e, &err), &err);
    const size_t whole = (size_t)e.bytes;
    for (size_t n = 0; n <= whole; n++) { /* each size on its own: what lies behind is no memory of ours */
        uint8_t *some = malloc(n ? n : 1);
        memcpy(some, data, n);
        mr_source_sample_name(src, 0, some, n, name, sizeof name);
        MRT_STR(name, n == whole ? "cat/1.jpg" : "");
        free(some);
    }
    uint8_t *copy = malloc(whole);
    for (size_t at = 0; at < whole; at++)
        for (int value = 0; value < 256; value += 5) {
            memcpy(copy, data, whole);
            copy[at] = (uint8_t)value;
            mr_source_sample_name(src, 0, copy, whole, name, sizeof name);
        }
    memcpy(copy, data, whole);
    copy[whole - 30] ^= 1; /* the sample is bad; it is known which it is */
    MRT_EQ(mr_source_parse(src, 0, copy, whole, &s, &err), MR_ECHECKSUM);
    MRT_STR(mr_source_sample_name(src, 0, copy, whole, name, sizeof name), "cat/1.jpg");
    free(copy);
    free(data);
    mr_source_close(src);
}

static void clear_records(const char *path, uint64_t count)
{
    static const uint8_t none[256];
    mr_source *src = open_source(path);
    FILE *f = fopen(path, "r+b");
    mr_error err = MR_ERROR_INIT;
    MRT_TRUE(f != NULL);
    for (uint64_t k = 0; k < count; k++) {
        mr_extent e;
        MRT_OK(mr_source_extent(src, k, &e, &err), &err);
        MRT_TRUE(e.bytes <= sizeof none);
        MRT_EQ(fseek(f, (long)e.offset, SEEK_SET), 0);
        MRT_EQ(fwrite(none, 1, (size_t)e.bytes, f), e.bytes);
    }
    MRT_EQ(fclose(f), 0);
    mr_source_close(src);
}

/* Damaged samples do not decide whether samples have names, unless no other exists. */
static void damaged_ones_first(void **state)
{
    (void)state;
    enum { COUNT = 10 };
    static const char *const names[COUNT] = {"0", "1", "2", "3", "4", "5", "6", "7", "8", "9"};
    static const struct {
        const char *field;
        uint64_t damaged;
        bool has;
    } sets[] = {
        {MRI_NAME_FIELD, COUNT - 1, true},
        {MRI_NAME_FIELD, COUNT, true},
        {"name", COUNT - 1, false},
    };
    for (size_t k = 0; k < sizeof sets / sizeof sets[0]; k++) {
        const char *path = mrt_path("f%zu.mrec", k);
        write_records(path, names, COUNT, sets[k].field);
        clear_records(path, sets[k].damaged);
        mr_source *src = open_source(path);
        expect_name(src, 0, "");
        MRT_EQ(has_names(src), sets[k].has);
        mr_source_close(src);
    }
}

/* An error in a shared file says which sample it is about by its name, once. */
static void in_errors(void **state)
{
    (void)state;
    static const char *const names[] = {"cat/1.jpg", "cat/\x1b[31m2.jpg"};
    write_records(mrt_path("e.mrec"), names, 2, MRI_NAME_FIELD);
    mr_source *src = open_source(mrt_path("e.mrec"));
    mr_error err = MR_ERROR_INIT;
    mr_error_set(&err, MR_EFORMAT, "something is wrong");
    mri_source_place(src, 0, &err);
    MRT_STR(err.text, "something is wrong; the sample is cat/1.jpg");
    MRT_EQ(err.sample, 0);
    mri_source_place(src, 0, &err);
    MRT_STR(err.text, "something is wrong; the sample is cat/1.jpg");
    mr_error_set(&err, MR_EFORMAT, "something is wrong");
    mri_source_place(src, 1, &err);
    MRT_STR(err.text, "something is wrong; the sample is cat/\\x1b[31m2.jpg");
    mr_error_set(&err, MR_EIO, "the disk is gone"); /* it is not read again for that */
    mri_source_place(src, 1, &err);
    MRT_STR(err.text, "the disk is gone");
    mr_source_close(src);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(of_files),           cmocka_unit_test(of_records),
        cmocka_unit_test(of_damaged_records), cmocka_unit_test(damaged_ones_first),
        cmocka_unit_test(in_errors),
    };
    return mrt_run(tests);
}
