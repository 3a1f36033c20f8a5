/* Names of classes in an archive (__classes__): their effect, from the scan and from the stored index, and
 * the files that are ignored. */
#include <unistd.h>

#include "formats/tar/tar_classes.h"
#include "millrace/formats.h"
#include "mrt.h"
#include "tests/formats/tar/mrt_tar.h"

static mr_source_config cfg;

static int fresh(void **state)
{
    (void)state;
    mr_source_defaults(&cfg);
    cfg.no_index_file = true;
    return 0;
}

/* One sample: a picture and its class. */
static void sample(mrt_tar *a, const char *key, const char *member, const char *label)
{
    char name[64];
    snprintf(name, sizeof name, "%s.jpg", key);
    mrt_tar_text(a, name, "\xff\xd8\xff\xe0 a picture");
    snprintf(name, sizeof name, "%s.%s", key, member);
    mrt_tar_text(a, name, label);
}

static mrt_tar archive(const char *classes)
{
    mrt_tar a = {0};
    if (classes) mrt_tar_text(&a, "__classes__", classes);
    sample(&a, "0", "cls", "1");
    sample(&a, "1", "cls", "2");
    sample(&a, "2", "cls", "1");
    return a;
}

static void save(mrt_tar *a, const char *name)
{
    mrt_tar_end(a);
    mrt_write_file(mrt_path("%s", name), a->data, a->bytes);
    mrt_tar_fini(a);
}

static mr_source *open_one(const char *name)
{
    mr_source *src;
    mr_error err = MR_ERROR_INIT;
    MRT_OK(mr_source_open(&src, mrt_path("%s", name), &cfg, &err), &err);
    return src;
}

/* report NULL: names of 4 classes, and labels from 0; else labels 1 and 2 without names, and this report. */
static void named(const char *name, const char *reported)
{
    mr_source *src = open_one(name);
    const mr_source_info *info = mr_source_info_of(src);
    int64_t label;
    MRT_EQ(info->count % 3, 0);
    MRT_EQ(mr_source_label(src, 1, &label), MR_OK);
    if (!reported) {
        MRT_EQ(info->class_count, 4);
        MRT_TRUE(info->class_names != NULL);
        MRT_STR(info->class_names[0], "ant");
        MRT_STR(info->class_names[3], "d\xc3\xb6gs and cats");
        MRT_EQ(info->label_offset, 0);
        MRT_EQ(label, 2);
        MRT_TRUE(!info->told || !strstr(info->told, "passed over"));
    } else {
        MRT_EQ(info->class_count, 3);
        MRT_TRUE(info->class_names == NULL);
        MRT_EQ(info->label_offset, 0);
        MRT_EQ(mr_source_labels_of(src)->min, 1);
        MRT_EQ(label, 2);
        if (reported[0]) MRT_TRUE(info->told != NULL);
        if (reported[0]) MRT_HAS(info->told, reported);
    }
    mr_source_close(src);
}

static void scanned_and_kept(mrt_tar *a, const char *reported)
{
    save(a, "one.tar");
    named("one.tar", reported);
    cfg.no_index_file = false;
    named("one.tar", reported);
    MRT_EQ(access(mrt_path(".one.tar.mridx"), R_OK), 0);
    named("one.tar", reported);
    unlink(mrt_path(".one.tar.mridx"));
    cfg.no_index_file = true;
}

#define FOUR "ant\nbee\ncat\nd\xc3\xb6gs and cats\n"

static void names_settle_the_offset(void **state)
{
    (void)state;
    mrt_tar a = archive(FOUR);
    scanned_and_kept(&a, NULL);
    a = archive(FOUR);
    mrt_tar_text(&a, "__classes__", FOUR); /* two archives, concatenated */
    scanned_and_kept(&a, NULL);
    a = archive(NULL);
    mrt_tar_text(&a, "__classes__", FOUR); /* after the samples */
    scanned_and_kept(&a, NULL);
    mrt_mkdir(mrt_path("set"));
    const char *const texts[] = {NULL, FOUR, FOUR};
    for (int k = 0; k < 3; k++) { /* the first one has no names */
        a = archive(texts[k]);
        char name[32];
        snprintf(name, sizeof name, "set/%d.tar", k);
        save(&a, name);
    }
    named("set", NULL);
}

static void passed_over(void **state)
{
    (void)state;
    static const struct {
        const char *text, *reported;
    } cases[] = {
        {"ant\nbee\n", "names of classes passed over: 2 names in __classes__, but a label 2"},
        {"ant\nbee\ncat", "names of classes passed over: expected a line for each class of __classes__"},
        {"ant\n\ncat\n", "expected a name of 1 to 1000 printable bytes in each line of __classes__"},
        {"ant\nbee\ncat\r\n", "printable"},
        {"ant\nb\xff\ncat\n", "printable"},
        {"ant\nb\033[2J\ncat\n", "printable"},
        {"ant\nb\xc2\x9b\ncat\n", "printable"},
        {"ant\nb\\x00\ncat\n", "printable"},
    };
    for (size_t k = 0; k < sizeof cases / sizeof *cases; k++) {
        mrt_tar a = archive(cases[k].text);
        scanned_and_kept(&a, cases[k].reported);
    }
    mrt_tar a = {0}, b;
    mrt_tar_file(&a, "__classes__", "ant\nb\0e\ncat\n", 12);
    b = archive(NULL);
    mrt_tar_raw(&a, b.data, b.bytes);
    mrt_tar_fini(&b);
    scanned_and_kept(&a, "printable");
    cfg.label_key = "cls"; /* the numbers, whatever the lists have */
    a = archive(FOUR);
    mrt_tar_text(&a, "__classes__", "ant\nbee\ncat\ndog\n");
    scanned_and_kept(
        &a,
        "1 list of classes is another than the first (first: offset 7168 of file 1); all were passed over");
    cfg.label_key = NULL;
    char *long_name = calloc(1, 1100);
    memset(long_name, 'n', 1001);
    long_name[1001] = '\n';
    memcpy(long_name + 1002, "bee\ncat\n", 9);
    a = archive(long_name);
    scanned_and_kept(&a, "printable");
    memmove(long_name, long_name + 1, 1010);
    a = archive(long_name);
    save(&a, "long.tar");
    mr_source *src = open_one("long.tar");
    MRT_EQ(strlen(mr_source_info_of(src)->class_names[0]), 1000);
    mr_source_close(src);
    free(long_name);
}

/* Any name comes back. */
static void written(void **state)
{
    (void)state;
    static const char *const names[] = {"ant",           "b\n\033\\", "", "\\x0a\\x5c\\xZZ\\\\x41",
                                        "c\xff\xc2\x9b", "d"};
    enum { COUNT = sizeof names / sizeof *names };
    char *text;
    size_t bytes;
    mr_error err = MR_ERROR_INIT;
    MRT_OK(mri_tar_classes_text(names, COUNT, &text, &bytes, &err), &err);
    mrt_tar a = {0};
    mrt_tar_file(&a, "__classes__", text, bytes);
    free(text);
    sample(&a, "0", "cls", "1");
    save(&a, "written.tar");
    mr_source *src = open_one("written.tar");
    MRT_EQ(mr_source_info_of(src)->class_count, COUNT);
    for (size_t k = 0; k < COUNT; k++) MRT_STR(mr_source_info_of(src)->class_names[k], names[k]);
    mr_source_close(src);
}

static void none_at_all(void **state)
{
    (void)state;
    mrt_tar a = archive("");
    scanned_and_kept(&a, "");
    a = archive(NULL);
    mrt_tar_text(&a, "__classes__/x", FOUR);
    mrt_tar_header(&a, '2', "__classes__", 0);
    scanned_and_kept(&a, "");
}

static void too_large(void **state)
{
    (void)state;
    char *text = malloc(MRI_TAR_MAX_CLASSES + 2);
    memset(text, 'x', MRI_TAR_MAX_CLASSES + 1);
    text[MRI_TAR_MAX_CLASSES + 1] = '\0';
    mrt_tar a = archive(NULL);
    mrt_tar_text(&a, "__classes__", text);
    free(text);
    save(&a, "large.tar");
    named("large.tar", "1 list of classes was passed over (first: offset 6144 of file 1): more than 16 MiB");
}

static void labels_of_another_member(void **state)
{
    (void)state;
    mrt_tar a = {0};
    mrt_tar_text(&a, "__classes__", FOUR);
    for (int k = 0; k < 3; k++) {
        const char key[] = {(char)('0' + k), 0};
        sample(&a, key, "txt", k == 1 ? "2" : "1");
    }
    save(&a, "txt.tar");
    cfg.label_key = "txt";
    named("txt.tar", "names of classes passed over: they are for labels in .cls, which are not used");
}

/* Somebody knows better where labels begin. */
static void an_offset_is_given(void **state)
{
    (void)state;
    mrt_tar a = archive(FOUR);
    save(&a, "offset.tar");
    cfg.label_offset = 1;
    mr_source *src = open_one("offset.tar");
    const mr_source_info *info = mr_source_info_of(src);
    int64_t label;
    MRT_EQ(mr_source_label(src, 1, &label), MR_OK);
    MRT_EQ(label, 1);
    MRT_EQ(info->class_count, 3);
    MRT_STR(info->class_names[0], "bee");
    mr_source_close(src);
    for (int k = 0; k < 2; k++) {
        cfg.label_offset = k ? 4 : -1;
        src = open_one("offset.tar");
        MRT_TRUE(mr_source_info_of(src)->class_names == NULL);
        mr_source_close(src);
    }
}

/* By name, as of any two data sets: here one that lacks classes and has them in another order. */
static void classes_follow(void **state)
{
    (void)state;
    static const char *const names[] = {"cat", "d\xc3\xb6gs and cats", "eel", "bee", "ant"};
    mrt_tar a = archive(FOUR);
    save(&a, "follow.tar");
    cfg.class_names = names;
    cfg.class_count = 5;
    mr_source *src = open_one("follow.tar");
    int64_t label;
    MRT_EQ(mr_source_info_of(src)->class_count, 5);
    MRT_EQ(mr_source_label(src, 0, &label), MR_OK);
    MRT_EQ(label, 3);
    MRT_EQ(mr_source_label(src, 1, &label), MR_OK);
    MRT_EQ(label, 0);
    mr_source_close(src);
    cfg.class_count = 4;
    mr_error err = MR_ERROR_INIT;
    MRT_EQ(mr_source_open(&src, mrt_path("follow.tar"), &cfg, &err), MR_EFORMAT);
    MRT_HAS(err.text, "class ant is not among the 4 expected");
}

static void fingerprints(void **state)
{
    (void)state;
    uint64_t print[3];
    const char *const texts[] = {FOUR, "ant\nbee\ncat\ndog\n", FOUR};
    for (int k = 0; k < 3; k++) {
        mrt_tar a = archive(texts[k]);
        save(&a, "print.tar");
        mr_source *src = open_one("print.tar");
        print[k] = mr_source_info_of(src)->fingerprint;
        mr_source_close(src);
    }
    MRT_TRUE(print[0] == print[2] && print[0] != print[1]);
}

static void allocations_fail(void **state)
{
    (void)state;
    mrt_tar a = archive(FOUR);
    save(&a, "alloc.tar");
    for (int n = 0;; n++) {
        mr_error err = MR_ERROR_INIT;
        mr_source *src = (mr_source *)&cfg;
        mrt_fail_alloc_at(n);
        const int rc = mr_source_open(&src, mrt_path("alloc.tar"), &cfg, &err);
        mrt_fail_alloc_at(-1);
        if (rc == MR_OK) {
            MRT_TRUE(n > 5);
            MRT_TRUE(mr_source_info_of(src)->class_names != NULL);
            mr_source_close(src);
            break;
        }
        MRT_EQ(rc, MR_ENOMEM);
        MRT_TRUE(src == NULL);
    }
}

int main(void)
{
#define TEST(name) cmocka_unit_test_setup(name, fresh)
    const struct CMUnitTest tests[] = {
        TEST(names_settle_the_offset),
        TEST(passed_over),
        TEST(none_at_all),
        TEST(too_large),
        TEST(labels_of_another_member),
        TEST(an_offset_is_given),
        TEST(classes_follow),
        TEST(fingerprints),
        TEST(allocations_fail),
        TEST(written),
    };
    return mrt_run(tests);
}
