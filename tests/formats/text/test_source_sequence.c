/* Sequences of numbers: lengths that differ, the position of the class, and the errors of a line. */
#include <isa-l/igzip_lib.h>
#include <unistd.h>

#include "millrace/formats.h"
#include "mrt.h"
#include "tests/formats/mrt_turns.h"

static int open_text(mr_source **src, const char *text, const char *label_key, mr_error *err)
{
    mr_source_config cfg;
    mr_source_defaults(&cfg);
    cfg.format = "sequence";
    cfg.label_key = label_key;
    *err = (mr_error)MR_ERROR_INIT;
    const char *path = mrt_path("text");
    mrt_write_file(path, text, strlen(text));
    return mr_source_open(src, path, &cfg, err);
}

/* "1 2>3 4>5": tokens and class of each sample. */
static void expect(const char *text, const char *label_key, const char *want)
{
    mr_source *src;
    mr_error err;
    char got[400] = "";
    void *buf = NULL;
    size_t buf_bytes = 0;
    MRT_OK(open_text(&src, text, label_key, &err), &err);
    const mr_source_info *info = mr_source_info_of(src);
    MRT_STR(info->fields[0].name, "tokens");
    MRT_EQ(info->fields[0].dtype, MR_I32);
    MRT_EQ(info->image_field, -1);
    for (uint64_t i = 0; i < info->count; i++) {
        mr_sample s;
        MRT_OK(mr_source_read(src, i, &buf, &buf_bytes, &s, &err), &err);
        MRT_EQ(s.value[0].type, MR_TYPE_TENSOR);
        MRT_EQ(s.value[0].ndim, 1);
        MRT_EQ(s.value[0].bytes, 4 * s.value[0].dim[0]);
        for (uint64_t k = 0; k < s.value[0].dim[0]; k++) {
            int32_t v;
            memcpy(&v, (const uint8_t *)s.value[0].data + 4 * k, 4);
            snprintf(got + strlen(got), 50, "%s%d", k ? " " : "", v);
        }
        int64_t label = -1;
        MRT_EQ(mr_source_label(src, i, &label), info->label_field < 0 ? MR_EUNSUPPORTED : MR_OK);
        if (info->label_field == 1) MRT_EQ(label, s.value[1].i);
        if (info->label_field == 1) snprintf(got + strlen(got), 50, ">%lld", (long long)label);
        snprintf(got + strlen(got), 50, "|");
    }
    MRT_STR(got, want);
    free(buf);
    mr_source_close(src);
}

static void refuse(const char *text, const char *label_key, int code, const char *why)
{
    mr_source *src;
    mr_error err;
    MRT_EQ(open_text(&src, text, label_key, &err), code);
    MRT_TRUE(src == NULL);
    MRT_HAS(err.text, why);
}

static void lines(void **state)
{
    (void)state;
    expect("74, 74, 76\n1,2,3\n", NULL, "74 74>76|1 2>3|");
    expect("\xef\xbb\xbf"
           "1;2;3\r\n\r\n  \n-4\t5 6\r7  8",
           NULL, "1 2>3|-4 5>6|7>8|");
    expect("1,2,3,4\n5,6\n", NULL, "1 2 3>4|5>6|");
    expect("9,2147483647,-2147483648\n", "first", "2147483647 -2147483648>9|");
    expect("1,2,3\n4,+5,6\n", "2", "1 3>2|4 6>5|");
    expect("1\n2 3\n", "none", "1|2 3|");
}

static void what_is_said_of_them(void **state)
{
    (void)state;
    mr_source *src;
    mr_error err;
    MRT_OK(open_text(&src, "1,2,3\n4,5,99\n", NULL, &err), &err);
    const mr_source_info *info = mr_source_info_of(src);
    MRT_EQ(info->fields[0].ndim, 1); /* all of one length */
    MRT_EQ(info->fields[0].dim[0], 2);
    MRT_EQ(info->class_count, 100);
    MRT_EQ(info->label_field, 1);
    MRT_EQ(info->max_extent_bytes, 8);
    MRT_EQ(info->total_bytes, 16);
    const uint64_t print = info->fingerprint;
    mr_source_close(src);
    MRT_OK(open_text(&src, "1,2,3\n4,5,6,99\n", NULL, &err), &err);
    info = mr_source_info_of(src);
    MRT_EQ(info->fields[0].ndim, 0);
    MRT_EQ(info->max_extent_bytes, 12);
    MRT_HAS(info->told, "2 to 3");
    MRT_TRUE(info->fingerprint != print);
    mr_source_file f;
    MRT_EQ(mr_source_file_at(src, 0, &f), MR_OK);
    MRT_TRUE(!f.direct_ok && f.bytes == 20);
    mr_source_close(src);
    MRT_OK(open_text(&src, "1,7,3\n4,5,99\n", NULL, &err), &err);
    MRT_TRUE(mr_source_info_of(src)->fingerprint != print);
    mr_sample s;
    MRT_EQ(mr_source_parse(src, 0, "1234", 4, &s, &err), MR_EFORMAT); /* 8 expected */
    mr_source_close(src);
}

static void bad_lines(void **state)
{
    (void)state;
    refuse("1,2\n3,x\n", NULL, MR_EFORMAT,
           "line 2: number 2: expected an integer, found something else ('x')");
    refuse("1,2\n\n3,4.5\n", NULL, MR_EFORMAT, "line 3: number 2: expected an integer, found a fraction");
    refuse("1,,2\n", NULL, MR_EFORMAT, "line 1: number 2: expected an integer, found an empty place");
    refuse("1,2,\n", NULL, MR_EFORMAT, "line 1: number 3: expected an integer, found an empty place");
    refuse(",1,2\n", NULL, MR_EFORMAT, "number 1");
    refuse("1,-\n", NULL, MR_EFORMAT, "number 2");
    refuse("1,2x\n", NULL, MR_EFORMAT, "('x')");
    refuse("1,2147483648\n", NULL, MR_EFORMAT, "number 2 does not fit 32 bits");
    refuse("1,2\n99999999999999999999999999,1\n", NULL, MR_EFORMAT, "line 2: number 1 does not fit 32 bits");
    refuse("1,-2147483649\n", NULL, MR_EFORMAT, "does not fit");
    refuse("1,-3\n", NULL, MR_EFORMAT, "class -3 (number 2) is negative");
    refuse("1,2\n5\n", NULL, MR_EFORMAT, "line 2: expected a sequence and its class");
    refuse("1,2,3\n1,2\n", "3", MR_EFORMAT, "line 2: expected the class as number 3, found 2");
    refuse("\n \n", NULL, MR_EFORMAT, "no sequences");
    refuse("1,2\n", "0", MR_EINVAL, "found 0");
    refuse("1,2\n", "label", MR_EINVAL, "found label");
}

static void long_lines(void **state)
{
    (void)state;
    const size_t many = (1 << 20) + 2;
    char *text = malloc(2 * many + 1);
    for (size_t k = 0; k < many; k++) memcpy(text + 2 * k, "1,", 2);
    text[2 * many - 1] = '\0';
    refuse(text, NULL, MR_ELIMIT, "line 1: more than 1048576 numbers");
    text[2 * many - 5] = '\n', text[2 * many - 3] = '\0'; /* exactly the largest allowed length, and a line of
                                                           * one number */
    refuse(text, NULL, MR_EFORMAT, "line 2: expected a sequence and its class");
    text[2 * many - 5] = '\0';
    mr_source *src;
    mr_error err;
    MRT_OK(open_text(&src, text, NULL, &err), &err);
    MRT_EQ(mr_source_info_of(src)->max_extent_bytes, 4 * (many - 3));
    mr_source_close(src);
    memset(text, '1', 2 * many); /* one number without an end */
    text[2 * many] = '\0';
    refuse(text, NULL, MR_EFORMAT, "does not fit");
    memset(text, ' ', 2 * many);
    refuse(text, NULL, MR_EFORMAT, "no sequences");
    free(text);
}

static void memory_is_bounded(void **state)
{
    (void)state;
    char *text = malloc(600001);
    for (int k = 0; k < 100000; k++) memcpy(text + 6 * k, "1,2,3\n", 6);
    text[600000] = '\0';
    mrt_write_file(mrt_path("many"), text, 600000);
    mr_source_config cfg;
    mr_source *src;
    mr_error err = MR_ERROR_INIT;
    mr_source_defaults(&cfg);
    MRT_OK(mr_source_open(&src, mrt_path("many"), &cfg, &err), &err); /* found by content too */
    MRT_EQ(mr_source_info_of(src)->count, 100000);
    MRT_TRUE(mr_source_info_of(src)->memory_bytes >= 2000000); /* tokens in memory as well */
    mr_source_close(src);
    cfg.memory_bytes = 100000;
    MRT_EQ(mr_source_open(&src, mrt_path("many"), &cfg, &err), MR_ELIMIT);
    for (int k = 0; k < 600000; k++)
        text[k] = k % 20000 == 19999 ? '\n' : k % 2 ? ',' : '7'; /* 30 long lines */
    for (int k = 19999; k < 600000; k += 20000) text[k - 1] = '7';
    mrt_write_file(mrt_path("long"), text, 600000);
    void *buf = NULL;
    size_t buf_bytes = 0;
    mr_sample s;
    cfg.memory_bytes = 60000; /* tokens go to disk */
    MRT_OK(mr_source_open(&src, mrt_path("long"), &cfg, &err), &err);
    MRT_TRUE(mr_source_info_of(src)->memory_bytes < 60000);
    MRT_EQ(mr_source_info_of(src)->total_bytes, 30 * 9999 * 4);
    for (uint64_t i = 0; i < 30; i += 29) {
        MRT_OK(mr_source_read(src, i, &buf, &buf_bytes, &s, &err), &err);
        for (uint64_t k = 0; k < s.value[0].dim[0]; k++) MRT_EQ(((const int32_t *)s.value[0].data)[k], 7);
    }
    mr_source_close(src);
    free(buf);
    free(text);
}

static void parts_of_a_folder(void **state)
{
    (void)state;
    mrt_mkdir(mrt_path("notes"));
    mrt_write_file(mrt_path("notes/train.csv"), "1,2,3\n1,2,4\n", 12);
    mrt_write_file(mrt_path("notes/val.csv"), "7,8,9\n", 6);
    mrt_write_file(mrt_path("notes/README"), "words\n", 6);
    mr_source *src;
    mr_error err = MR_ERROR_INIT;
    mr_source_config cfg;
    mr_source_defaults(&cfg);
    MRT_OK(mr_source_open(&src, mrt_path("notes"), &cfg, &err), &err);
    MRT_STR(mr_source_info_of(src)->format, "sequence");
    MRT_EQ(mr_source_info_of(src)->count, 2);
    MRT_TRUE(mr_source_info_of(src)->has_test);
    mr_source_close(src);
    cfg.split = MR_SPLIT_TEST;
    MRT_OK(mr_source_open(&src, mrt_path("notes"), &cfg, &err), &err);
    MRT_EQ(mr_source_info_of(src)->count, 1);
    mr_source_close(src);
    mrt_write_file(mrt_path("notes/train2.csv"), "1,2\n", 4);
    cfg.split = MR_SPLIT_AUTO;
    MRT_EQ(mr_source_open(&src, mrt_path("notes"), &cfg, &err), MR_EFORMAT);
    MRT_HAS(err.text, "two texts to train on");
    unlink(mrt_path("notes/train2.csv"));
    mrt_write_file(mrt_path("notes/trainers.csv"), "1,2\n", 4); /* only begins like a part's name */
    mrt_write_file(mrt_path("notes/my_test_notes.csv"), "4,5\n4,5\n4,5\n", 12);
    cfg.split = MR_SPLIT_TEST;
    MRT_OK(mr_source_open(&src, mrt_path("notes"), &cfg, &err), &err);
    MRT_EQ(mr_source_info_of(src)->count, 1); /* the validation part */
    MRT_HAS(mr_source_info_of(src)->told, "the test part is left out");
    mr_source_close(src);
    unlink(mrt_path("notes/val.csv"));
    unlink(mrt_path("notes/train.csv"));
    cfg.split = MR_SPLIT_AUTO;
    MRT_OK(mr_source_open(&src, mrt_path("notes"), &cfg, &err), &err);
    MRT_EQ(mr_source_info_of(src)->count, 3);
    MRT_TRUE(mr_source_info_of(src)->only_test);
    mr_source_close(src);
}

static void allocations_fail_in_turn(void **state)
{
    (void)state;
    for (int folder = 0; folder < 2; folder++)
        for (long n = 0;; n++) {
            mrt_mkdir(mrt_path("alloc"));
            mrt_write_file(mrt_path("alloc/train"), "1,2,3\n4,5\n", 10);
            mr_source *src = (mr_source *)&src;
            mr_error err = MR_ERROR_INIT;
            mr_source_config cfg;
            mr_source_defaults(&cfg);
            cfg.format = "sequence";
            mrt_fail_alloc_at(n);
            const int rc = mr_source_open(&src, mrt_path(folder ? "alloc" : "alloc/train"), &cfg, &err);
            mrt_fail_alloc_at(-1);
            if (mrt_last_turn(rc, src)) break;
        }
}

static void real_notes(void **state)
{
    (void)state;
    const char *path = mrt_data("notes");
    if (!path) {
        printf("the real notes are not here: not tried\n");
        return;
    }
    mr_source *src;
    mr_error err = MR_ERROR_INIT;
    mr_source_config cfg;
    mr_source_defaults(&cfg);
    MRT_OK(mr_source_open(&src, path, &cfg, &err), &err);
    const mr_source_info *info = mr_source_info_of(src);
    MRT_EQ(info->count, 18571);
    MRT_EQ(info->fields[0].dim[0], 49);
    MRT_EQ(info->class_count, 99);
    int64_t label;
    MRT_EQ(mr_source_label(src, 0, &label), MR_OK);
    MRT_EQ(label, 76);
    mr_source_close(src);
    cfg.split = MR_SPLIT_TEST;
    MRT_OK(mr_source_open(&src, path, &cfg, &err), &err);
    MRT_EQ(mr_source_info_of(src)->count, 2803);
    mr_source_close(src);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(lines),
        cmocka_unit_test(what_is_said_of_them),
        cmocka_unit_test(bad_lines),
        cmocka_unit_test(long_lines),
        cmocka_unit_test(memory_is_bounded),
        cmocka_unit_test(parts_of_a_folder),
        cmocka_unit_test(allocations_fail_in_turn),
        cmocka_unit_test(real_notes),
    };
    return mrt_run(tests);
}
