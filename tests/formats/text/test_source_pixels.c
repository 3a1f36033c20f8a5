/* Tables of pixels: with and without names of columns, classes from 0 or 1, and everything a row can have
 * wrong with it. */
#include <unistd.h>

#include "millrace/formats.h"
#include "mrt.h"
#include "tests/formats/mrt_turns.h"

static mr_source_config cfg;

static int try_open(mr_source **src, const char *text, const char *format, mr_error *err)
{
    const char *path = mrt_path("table");
    mrt_write_file(path, text, strlen(text));
    cfg.format = format;
    *err = (mr_error)MR_ERROR_INIT;
    return mr_source_open(src, path, &cfg, err);
}

static int set_up(void **state)
{
    (void)state;
    mr_source_defaults(&cfg);
    return 0;
}

/* Three pictures of 2 x 2. */
static void expect(const char *text, const char *format, uint32_t count, const char *labels)
{
    static const uint8_t want[3][4] = {{0, 1, 2, 255}, {9, 8, 7, 6}, {0, 0, 0, 0}};
    mr_source *src;
    mr_error err;
    void *buffer = NULL;
    size_t bytes = 0;
    char got[64] = "";
    MRT_OK(try_open(&src, text, format, &err), &err);
    const mr_source_info *info = mr_source_info_of(src);
    MRT_STR(info->format, "pixels");
    MRT_EQ(info->count, 3);
    MRT_TRUE(info->height == 2 && info->width == 2 && info->channels == 1 && info->class_count == count);
    for (uint64_t k = 0; k < 3; k++) {
        mr_sample s;
        int64_t label;
        MRT_OK(mr_source_read(src, k, &buffer, &bytes, &s, &err), &err);
        MRT_EQ(s.value[0].type, MR_TYPE_PIXELS);
        MRT_EQ(s.value[0].bytes, 4);
        MRT_TRUE(memcmp(s.value[0].data, want[k], 4) == 0);
        MRT_EQ(mr_source_label(src, k, &label), MR_OK);
        MRT_EQ(label, s.value[1].i);
        snprintf(got + strlen(got), 20, "%lld ", (long long)label);
    }
    MRT_STR(got, labels);
    free(buffer);
    mr_source_close(src);
}

static void tables(void **state)
{
    (void)state;
    expect("label,1x1,1x2,2x1,2x2\n3,0,1,2,255\n0,9,8,7,6\n1,0,0,0,0\n", NULL, 4, "3 0 1 ");
    expect("label,pixel0,pixel1,pixel2,pixel3\r\n3, 0,1,2 ,255\r\n0,9,8,7,6\r\n\r\n1,0,0,0,0", NULL, 4,
           "3 0 1 ");
    expect("Label,Pixel1,Pixel2,Pixel3,Pixel4\n4,0,1,2,255\n2,9,8,7,6\n1,0,0,0,0\n", NULL, 5, "4 2 1 ");
    expect("3;0;1;2;255\n0;9;8;7;6\n1;0;0;0;0\n", "pixels", 4, "3 0 1 ");
    cfg.label_offset = -1;
    expect("2,0,1,2,255\n0,9,8,7,6\n1,0,0,0,0\n", "pixels", 4, "3 1 2 ");
}

static void refuse(const char *text, int code, const char *line, const char *why)
{
    mr_source *src;
    mr_error err;
    MRT_EQ(try_open(&src, text, "pixels", &err), code);
    MRT_TRUE(src == NULL);
    MRT_HAS(err.text, line);
    MRT_HAS(err.text, why);
}

static void what_is_wrong(void **state)
{
    (void)state;
    refuse("3,0,1,2,256\n", MR_EFORMAT, "line 1:", "column 5: expected a pixel from 0 to 255, found '256'");
    refuse("3,0,1,2,3\n1,0,-1,2,3\n", MR_EFORMAT, "line 2:", "column 3: expected a pixel");
    refuse("3,0,1,2,3\n1,0,1.5,2,3\n", MR_EFORMAT, "line 2:", "found '1.5'");
    refuse("3,0,1,2,3\n1,0,,2,3\n", MR_EFORMAT, "line 2:", "found ''");
    refuse("label,a,b,c,d\n-1,0,1,2,3\n", MR_EFORMAT, "line 2:", "expected a class from 0, found '-1'");
    refuse("label,a,b,c,d\n99999999999999999999,0,1,2,3\n", MR_EFORMAT, "line 2:", "expected a class");
    refuse("3,0,1,2,3\n1,0,1,2\n", MR_EFORMAT, "line 2:", "expected 5 columns as in the first line, found 4");
    refuse("3,0,1,2\n", MR_EUNSUPPORTED, "line 1:", "as a gray square has");
    refuse("3\n", MR_EUNSUPPORTED, "line 1:", "found 1 columns");
    refuse("label,a,b,c,d\n", MR_EFORMAT, "", "found none");
    refuse("\n", MR_EFORMAT, "", "found none");
    cfg.label_offset = 5;
    refuse("3,0,1,2,3\n", MR_EFORMAT, "", "with this label offset");
    cfg.label_offset = MR_LABEL_AUTO;
    cfg.label_key = "y";
    refuse("3,0,1,2,3\n", MR_EINVAL, "", "leave --label-key out");
    cfg.label_key = NULL;
    cfg.memory_bytes = 100;
    refuse("3,0,1,2,3\n", MR_ELIMIT, "", "give more with --memory");
}

/* Without names of columns numbers are a sequence; where they could be pictures, a report says so. */
static void numbers_alone_are_sequences(void **state)
{
    (void)state;
    mr_source *src;
    mr_error err;
    char text[2000] = "5";
    for (int k = 0; k < 784; k++) strcat(text, ",7");
    strcat(text, "\n");
    MRT_OK(try_open(&src, text, NULL, &err), &err);
    MRT_STR(mr_source_info_of(src)->format, "sequence");
    MRT_HAS(mr_source_info_of(src)->told, "a gray picture of 28 x 28 pixels, --format pixels says so");
    mr_source_close(src);
    strcpy(text, "5,-7"); /* no pixel is negative */
    for (int k = 1; k < 784; k++) strcat(text, ",7");
    MRT_OK(try_open(&src, text, NULL, &err), &err);
    MRT_TRUE(mr_source_info_of(src)->told == NULL);
    mr_source_close(src);
}

static void allocations_fail_in_turn(void **state)
{
    (void)state;
    for (long n = 0;; n++) {
        mr_source *src = (mr_source *)&src;
        mr_error err;
        mrt_fail_alloc_at(n);
        const int rc = try_open(&src, "3,0,1,2,255\n0,9,8,7,6\n", "pixels", &err);
        mrt_fail_alloc_at(-1);
        if (mrt_last_turn(rc, src)) break;
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test_setup(tables, set_up),
        cmocka_unit_test_setup(what_is_wrong, set_up),
        cmocka_unit_test_setup(numbers_alone_are_sequences, set_up),
        cmocka_unit_test_setup(allocations_fail_in_turn, set_up),
    };
    return mrt_run(tests);
}
