/* A further field of numbers (mr_source_config.target_key): an array next to NumPy's pictures, columns of a
 * table. It comes with every sample, keeps its name in both splits, makes classes optional, and is part of
 * the data set's identity. A key that is not usable is refused, and the error lists the usable ones. */
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>

#include "millrace/columns.h"
#include "mrt.h"

/* ---- arrays ---- */

static void write_npy(const char *name, const char *type, const char *order, const char *shape,
                      const void *data, size_t bytes)
{
    char head[128] = "\x93NUMPY\x01";
    uint8_t file[1024];
    const int n = snprintf(head + 10, sizeof head - 10,
                           "{'descr': '%s', 'fortran_order': %s, 'shape': (%s), }\n", type, order, shape);
    head[8] = (char)n;
    memcpy(file, head, 10 + (size_t)n);
    memcpy(file + 10 + n, data, bytes);
    mrt_write_file(mrt_path("%s", name), file, 10 + (size_t)n + bytes);
}

static const uint8_t pixels[4 * 2 * 2];
static const float ink[4][3] = {{1, 2, 3}, {4, 5, 6}, {7, 8, 9}, {-1, 0.5f, 1e30f}};

/* x_train and x_test of four pictures each in a folder of this name. */
static const char *folder_of_pictures(const char *name)
{
    char file[64];
    mkdir(mrt_path("%s", name), 0755);
    for (int test = 0; test < 2; test++) {
        snprintf(file, sizeof file, "%s/x_%s.npy", name, test ? "test" : "train");
        write_npy(file, "|u1", "False", "4, 2, 2", pixels, sizeof pixels);
    }
    return name;
}

static void put(const char *folder, const char *name, const char *type, const char *order, const char *shape,
                const void *data, size_t bytes)
{
    char file[64];
    snprintf(file, sizeof file, "%s/%s.npy", folder, name);
    write_npy(file, type, order, shape, data, bytes);
}

static int try_open(mr_source **src, const char *path, const char *key, mr_split split, mr_error *err)
{
    mr_source_config cfg;
    mr_source_defaults(&cfg);
    cfg.target_key = key;
    cfg.split = split;
    return mr_source_open(src, mrt_path("%s", path), &cfg, err);
}

static void refuse(const char *path, const char *key, int code, const char *what)
{
    mr_source *src;
    mr_error err = MR_ERROR_INIT;
    MRT_EQ(try_open(&src, path, key, MR_SPLIT_AUTO, &err), code);
    MRT_HAS(err.text, what);
}

/* The numbers of a sample, the last of its fields. */
static void expect(const mr_source *src, uint64_t sample, const char *name, mr_dtype dtype, const void *row,
                   size_t bytes)
{
    mr_error err = MR_ERROR_INIT;
    void *buffer = NULL;
    size_t room = 0;
    mr_sample s;
    const mr_source_info *info = mr_source_info_of(src);
    const uint32_t last = info->field_count - 1;
    MRT_STR(info->fields[last].name, name);
    MRT_TRUE(info->fields[last].type == MR_TYPE_TENSOR && info->fields[last].dtype == dtype);
    MRT_OK(mr_source_read(src, sample, &buffer, &room, &s, &err), &err);
    MRT_EQ(s.value_count, info->field_count);
    MRT_TRUE(s.value[last].bytes == bytes && memcmp(s.value[last].data, row, bytes) == 0);
    free(buffer);
}

static void test_an_array_is_a_field(void **state)
{
    (void)state;
    mr_source *src;
    mr_error err = MR_ERROR_INIT;
    static const int16_t counts[4] = {3, -1, 7, 9};
    static const uint8_t ages_be[] = {0x3f, 0x80, 0, 0, 0x40, 0, 0, 0, 0x40, 0x40, 0, 0, 0x40, 0x80, 0, 0};
    static const float third = 3;
    const char *folder = folder_of_pictures("arrays");
    put(folder, "ink_train", "<f4", "False", "4, 3", ink, sizeof ink);
    put(folder, "test_ink", "<f4", "False", "4, 3", ink, sizeof ink);
    put(folder, "counts", "<i2", "False", "4,", counts, sizeof counts);
    put(folder, "age", ">f4", "False", "4,", ages_be, sizeof ages_be);
    for (int test = 0; test < 2; test++) {
        MRT_OK(try_open(&src, folder, "ink", test ? MR_SPLIT_TEST : MR_SPLIT_TRAIN, &err), &err);
        MRT_TRUE(mr_source_info_of(src)->label_field == -1 && mr_source_info_of(src)->class_count == 0);
        for (uint64_t i = 0; i < 4; i++) expect(src, i, "ink", MR_F32, ink[i], sizeof ink[i]);
        mr_source_close(src);
    }
    MRT_OK(try_open(&src, folder, "ink_train", MR_SPLIT_TEST, &err), &err); /* the same of the other split */
    expect(src, 1, "ink_train", MR_F32, ink[1], sizeof ink[1]);
    mr_source_close(src);
    MRT_OK(try_open(&src, folder, "counts", MR_SPLIT_AUTO, &err), &err);
    expect(src, 2, "counts", MR_I16, &counts[2], sizeof counts[2]);
    mr_source_close(src);
    MRT_OK(try_open(&src, folder, "age", MR_SPLIT_AUTO, &err), &err);
    expect(src, 2, "age", MR_F32, &third, sizeof third);
    mr_source_close(src);
}

/* Classes of the data stay; an array used as targets is not read as classes. */
static void test_classes_stay(void **state)
{
    (void)state;
    static const uint8_t y[4] = {1, 0, 2, 1};
    mr_source *src, *other;
    mr_error err = MR_ERROR_INIT;
    const char *folder = folder_of_pictures("classes");
    put(folder, "y_train", "|u1", "False", "4,", y, sizeof y);
    put(folder, "y_test", "|u1", "False", "4,", y, sizeof y);
    put(folder, "ink", "<f4", "False", "4, 3", ink, sizeof ink);
    MRT_OK(try_open(&src, folder, "ink", MR_SPLIT_AUTO, &err), &err);
    MRT_TRUE(mr_source_info_of(src)->label_field == 1 && mr_source_info_of(src)->class_count == 3);
    expect(src, 3, "ink", MR_F32, ink[3], sizeof ink[3]);
    MRT_OK(try_open(&other, folder, NULL, MR_SPLIT_AUTO, &err), &err);
    MRT_EQ(mr_source_info_of(other)->field_count, 2);
    MRT_TRUE(mr_source_info_of(other)->fingerprint != mr_source_info_of(src)->fingerprint);
    mr_source_close(other);
    mr_source_close(src);
    MRT_OK(try_open(&src, folder, "y", MR_SPLIT_AUTO, &err), &err);
    MRT_EQ(mr_source_info_of(src)->label_field, -1);
    expect(src, 2, "y", MR_U8, &y[2], 1);
    mr_source_close(src);
}

static void test_other_arrays_are_refused(void **state)
{
    (void)state;
    const char *folder = folder_of_pictures("wrong");
    put(folder, "few", "<f4", "False", "3, 3", ink, 3 * sizeof ink[0]);
    put(folder, "turned", "<f4", "True", "4, 3", ink, sizeof ink);
    put(folder, "texts", "|S3", "False", "4,", ink, 12);
    put(folder, "none", "<f4", "False", "4, 0", ink, 0);
    refuse(folder, "nobody", MR_ENOENT, "nobody.npy with targets");
    refuse(folder, "few", MR_EFORMAT,
           "targets few are 3 x 3 of <f4: expected a row for each of the 4 samples");
    refuse(folder, "turned", MR_EUNSUPPORTED, "save np.ascontiguousarray(turned)");
    refuse(folder, "texts", MR_EUNSUPPORTED, "save texts.astype('float32')");
    refuse(folder, "none", MR_EFORMAT, "expected a row for each");
}

/* ---- tables ---- */

static const char *table(const char *name, const char *text)
{
    static const uint8_t png[] = {0x89, 'P', 'N', 'G', '\r', '\n', 0x1a, '\n', 0};
    mrt_write_file(mrt_path("a.png"), png, sizeof png);
    mrt_write_file(mrt_path("b.png"), png, sizeof png);
    mrt_write_file(mrt_path("%s", name), text, strlen(text));
    return name;
}

static void test_columns_are_a_field(void **state)
{
    (void)state;
    mr_source *src;
    mr_error err = MR_ERROR_INIT;
    static const float hats[2][3] = {{1, 0, 0}, {0, 1, 1}}, prices[2] = {2.5f, -100};
    const char *name = table("t.csv", "path,hat, scarf ,glasses,price\na.png,1,0,0, 2.5\nb.png,0,1,1,-1e2\n");
    MRT_OK(try_open(&src, name, "hat..glasses", MR_SPLIT_AUTO, &err), &err);
    MRT_TRUE(mr_source_info_of(src)->label_field == -1 && mr_source_info_of(src)->class_count == 0);
    for (uint64_t i = 0; i < 2; i++) expect(src, i, "hat..glasses", MR_F32, hats[i], sizeof hats[i]);
    static const char *const other[] = {"HAT", "scarf", "glasses", "scarf"};
    const char *const *names;
    uint32_t field;
    MRT_EQ(mr_source_columns(src, &field, &names), 3);
    MRT_STR(mr_source_info_of(src)->fields[field].name, "hat..glasses");
    for (uint32_t k = 1; k < 3; k++) MRT_STR(names[k], other[k]);
    MRT_OK(mr_source_columns_check(src, other, 3, "x", &err), &err);
    MRT_OK(mr_source_columns_check(src, NULL, 0, "x", &err), &err);
    MRT_EQ(mr_source_columns_check(src, other + 1, 3, "x.csv", &err), MR_EINVAL);
    MRT_HAS(err.text, "are hat, scarf, glasses; expected the columns of x.csv in the same order: "
                      "scarf, glasses, scarf (number 1 differs)");
    MRT_EQ(mr_source_columns_check(src, other, 4, "x", &err), MR_EINVAL);
    mr_source_close(src);
    MRT_OK(try_open(&src, name, "2..4", MR_SPLIT_AUTO, &err), &err);
    expect(src, 1, "2..4", MR_F32, hats[1], sizeof hats[1]);
    mr_source_close(src);
    MRT_OK(try_open(&src, name, "PRICE", MR_SPLIT_AUTO, &err), &err);
    for (uint64_t i = 0; i < 2; i++) expect(src, i, "PRICE", MR_F32, &prices[i], sizeof prices[i]);
    mr_source_close(src);
}

static void test_columns_beside_classes(void **state)
{
    (void)state;
    mr_source *src;
    mr_error err = MR_ERROR_INIT;
    static const float two = 2;
    const char *name = table("c.csv", "path,label,target\na.png,cat,1\nb.png,dog,2\n");
    MRT_OK(try_open(&src, name, "target", MR_SPLIT_AUTO, &err), &err);
    MRT_TRUE(mr_source_info_of(src)->label_field == 1 && mr_source_info_of(src)->class_count == 2);
    expect(src, 1, "target", MR_F32, &two, sizeof two);
    mr_source_close(src);
    name = table("d.csv", "path,target\na.png,1\nb.png,2\n"); /* which would be the class else */
    MRT_OK(try_open(&src, name, "target", MR_SPLIT_AUTO, &err), &err);
    MRT_EQ(mr_source_info_of(src)->label_field, -1);
    mr_source_close(src);
    MRT_OK(try_open(&src, name, NULL, MR_SPLIT_AUTO, &err), &err);
    MRT_EQ(mr_source_info_of(src)->class_count, 3);
    mr_source_close(src);
}

static void test_other_columns_are_refused(void **state)
{
    (void)state;
    const char *name = table("w.csv", "path,hat,price\na.png,1,2\nb.png,x,nan\n");
    refuse(name, "cap", MR_EFORMAT, "no column cap for the targets; there are: path, hat, price");
    refuse(name, "hat..cap", MR_EFORMAT, "no column cap");
    refuse(name, "price..hat", MR_EINVAL, "stands before the first");
    refuse(name, "1..2", MR_EINVAL, "column 1 cannot be picture and target at once");
    refuse(name, "hat", MR_EFORMAT, "expected a number in column 2, found \"x\"");
    refuse(name, "price", MR_EFORMAT, "expected a number in column 3, found \"nan\"");
    refuse(name, "0", MR_EFORMAT, "no column 0");
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_an_array_is_a_field),      cmocka_unit_test(test_classes_stay),
        cmocka_unit_test(test_other_arrays_are_refused), cmocka_unit_test(test_columns_are_a_field),
        cmocka_unit_test(test_columns_beside_classes),   cmocka_unit_test(test_other_columns_are_refused),
    };
    return mrt_run(tests);
}
