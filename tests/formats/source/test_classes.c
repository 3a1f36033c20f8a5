/* Classes by name: a set that lacks one, or has them in another order, is numbered like the one trained
 * on. */
#include "formats/source/classes.h"
#include "tests/formats/mrt_turns.h"
#include "tests/formats/record/mrt_mrec.h"

static const uint8_t jpeg[] = {0xff, 0xd8, 0xff, 0xe0, 1, 2, 3};
static const char *const trained[] = {"cat", "dog", "horse"};

static mr_source_config like(const char *const *names, uint32_t count)
{
    mr_source_config cfg;
    mr_source_defaults(&cfg);
    cfg.class_names = names;
    cfg.class_count = count;
    return cfg;
}

static const char *make_folder(const char *name, const char *const *classes, size_t count)
{
    mrt_mkdir(mrt_path("%s", name));
    for (size_t k = 0; k < count; k++) {
        mrt_mkdir(mrt_path("%s/%s", name, classes[k]));
        mrt_write_file(mrt_path("%s/%s/1.jpg", name, classes[k]), jpeg, sizeof jpeg);
    }
    return mrt_path("%s", name);
}

static const char *make_table(const char *name, const char *rows)
{
    for (int k = 0; k < 3; k++) mrt_write_file(mrt_path("%c.jpg", 'a' + k), jpeg, sizeof jpeg);
    mrt_write_file(mrt_path("%s", name), rows, strlen(rows));
    return mrt_path("%s", name);
}

/* The labels of all samples, as known beforehand and as parsed. */
static void expect_labels(const mr_source *src, const char *want)
{
    char got[100] = "";
    void *buffer = NULL;
    size_t bytes = 0;
    mr_error err = MR_ERROR_INIT;
    for (uint64_t k = 0; k < mr_source_info_of(src)->count; k++) {
        mr_sample s, again;
        mr_extent e;
        int64_t label;
        MRT_EQ(mr_source_label(src, k, &label), MR_OK);
        MRT_OK(mr_source_read(src, k, &buffer, &bytes, &s, &err), &err);
        MRT_EQ(s.value[1].i, label);
        MRT_OK(mr_source_extent(src, k, &e, &err), &err);
        MRT_OK(mri_source_parse_trusted(src, k, buffer, (size_t)e.bytes, &again, &err), &err);
        MRT_EQ(again.value[1].i, label);
        snprintf(got + strlen(got), 20, "%lld ", (long long)label);
    }
    MRT_STR(got, want);
    free(buffer);
}

static void expect(const char *path, const char *const *names, uint32_t count, const char *own,
                   const char *followed)
{
    mr_source *src;
    mr_error err = MR_ERROR_INIT;
    mr_source_config cfg = like(NULL, 0);
    MRT_OK(mr_source_open(&src, path, &cfg, &err), &err);
    expect_labels(src, own);
    const uint64_t fingerprint = mr_source_info_of(src)->fingerprint;
    mr_source_close(src);
    cfg = like(names, count);
    MRT_OK(mr_source_open(&src, path, &cfg, &err), &err);
    expect_labels(src, followed);
    const mr_source_info *info = mr_source_info_of(src);
    MRT_EQ(info->class_count, count);
    for (uint32_t k = 0; k < count; k++) MRT_STR(info->class_names[k], names[k]);
    MRT_TRUE((info->fingerprint == fingerprint) == (strcmp(own, followed) == 0)); /* other labels are another
                                                                                     data set */
    mr_source_close(src);
}

static void a_class_is_missing(void **state)
{
    (void)state;
    expect(make_folder("lacks", trained + 1, 2), trained, 3, "0 1 ", "1 2 ");
    expect(make_table("lacks.csv", "path,label\na.jpg,horse\nb.jpg,dog\n"), trained, 3, "1 0 ", "2 1 ");
}

/* The array that marks classes of one list must not mark the other list's. */
static void most_classes_are_missing(void **state)
{
    (void)state;
    static char text[500][16];
    static const char *names[500];
    for (int k = 0; k < 500; k++) {
        snprintf(text[k], sizeof text[k], "c%03d", k);
        names[k] = text[k];
    }
    expect(make_folder("one", names + 499, 1), names, 500, "0 ", "499 ");
    expect(make_folder("two", names + 250, 2), names, 500, "0 1 ", "250 251 ");
    expect(make_table("one.csv", "path,label\na.jpg,c499\n"), names, 500, "0 ", "499 ");
}

static void another_order(void **state)
{
    (void)state;
    const char *const other[] = {"horse", "cat", "dog"};
    expect(make_folder("other", trained, 3), other, 3, "0 1 2 ", "1 2 0 ");
    expect(make_table("other.csv", "path,label\na.jpg,horse\nb.jpg,cat\nc.jpg,dog\n"), other, 3, "2 0 1 ",
           "0 1 2 ");
}

static void record_files_follow(void **state)
{
    (void)state;
    const char *path = mrt_path("x.mrec");
    const mr_writer_config cfg = mrt_writer_config();
    mrt_write_mrec(path, 4, &cfg);
    const char *const turned[] = {mrt_classes[2], "more", mrt_classes[1], mrt_classes[0]};
    expect(path, turned, 4, "0 1 2 0 ", "3 2 0 3 ");
}

static void the_same_names_change_nothing(void **state)
{
    (void)state;
    const char *const twice[] = {"cat", "cat"};
    expect(make_folder("same", trained, 3), trained, 3, "0 1 2 ", "0 1 2 ");
    mr_source *src = calloc(1, sizeof *src);
    mr_source_config cfg = like(twice, 2);
    src->info.class_names = twice;
    src->info.class_count = 2;
    MRT_EQ(mri_classes_follow(src, &cfg, NULL), MR_OK); /* no name says which is meant, and none needs to */
    MRT_TRUE(src->classes.number == NULL);
    free(src);
}

static void refuse_like(const char *path, const mr_source_config *cfg, const char *why, const char *more)
{
    mr_source *src = (mr_source *)&src;
    mr_error err = MR_ERROR_INIT;
    MRT_EQ(mr_source_open(&src, path, cfg, &err), MR_EFORMAT);
    MRT_TRUE(src == NULL);
    MRT_STR(err.file, path);
    MRT_HAS(err.text, why);
    MRT_HAS(err.text, more);
}

static void refuse(const char *path, const char *const *names, uint32_t count, const char *why,
                   const char *more)
{
    const mr_source_config cfg = like(names, count);
    refuse_like(path, &cfg, why, more);
}

/* Opened like cfg; labels of the samples, in order. */
static void follow(const char *path, const mr_source_config *cfg, const char *labels)
{
    mr_source *src;
    mr_error err = MR_ERROR_INIT;
    MRT_OK(mr_source_open(&src, path, cfg, &err), &err);
    expect_labels(src, labels);
    MRT_EQ(mr_source_info_of(src)->class_count, cfg->class_count);
    MRT_EQ(mr_source_info_of(src)->class_names == NULL, cfg->class_names == NULL);
    mr_source_close(src);
}

static const char *const numbers[] = {"0", "1", "10", "11", "2"}; /* as an alphabet has them */

static void names_that_are_numbers(void **state)
{
    (void)state;
    const char *const padded[] = {"00", "02", "10"};
    mr_source_config cfg = like(numbers, 5);
    follow(make_folder("padded", padded, 3), &cfg, "0 4 2 ");
    follow(make_table("ten.csv", "path,label\na.jpg,10\nb.jpg,2\nc.jpg,11\n"), &cfg, "2 4 3 ");
    refuse(make_table("nine.csv", "path,label\na.jpg,10\nb.jpg,9\n"), numbers, 5,
           "a class is not among those", "expected 5 classes (0, 1, 10, 11, 2), found the numbers 9 to 10");
    const char *const twice[] = {"1", "01"};
    refuse(make_table("one.csv", "path,label\na.jpg,1\n"), twice, 2,
           "two of the names expected are one number", "");
    cfg = like(NULL, 12);
    follow(make_folder("numbers", numbers, 5), &cfg, "0 1 10 11 2 ");
    cfg.class_first = 1;
    follow(make_folder("from1", numbers + 1, 4), &cfg, "0 9 10 1 ");
    refuse_like(make_folder("from0", numbers, 5), &cfg, "a class is not among those expected",
                "expected 12 classes (the numbers 1 to 12), found 0, 1, 10, 11, 2");
}

static void numbers_on_both_sides(void **state)
{
    (void)state;
    mr_source_config cfg = like(NULL, 3);
    const char *two = make_table("two.csv", "path,label\na.jpg,1\nb.jpg,2\n");
    follow(two, &cfg, "1 2 ");
    cfg.class_count = 2;
    cfg.classes_of = "data";
    refuse_like(two, &cfg, "expected 2 classes as in data (the numbers 0 to 1), found the numbers 1 to 2",
                "--match-classes order");
    cfg.match = MR_MATCH_ORDER;
    follow(two, &cfg, "0 1 ");
    cfg = like(NULL, 3);
    cfg.class_first = 1; /* the first class is missing here */
    follow(make_table("later.csv", "path,label\na.jpg,2\nb.jpg,3\n"), &cfg, "1 2 ");
}

static void names_and_numbers(void **state)
{
    (void)state;
    const char *table = make_table("numbers.csv", "path,label\na.jpg,0\nb.jpg,2\n"),
               *folder = make_folder("names", trained, 3);
    refuse(table, trained, 3, "numbers of classes here, names on the other side",
           "expected 3 classes (cat, dog, horse), found the numbers 0 to 2");
    mr_source_config cfg = like(NULL, 3);
    refuse_like(folder, &cfg, "names of classes on one side, numbers on the other",
                "expected 3 classes (the numbers 0 to 2), found cat, dog, horse");
    cfg.match = MR_MATCH_ORDER;
    follow(folder, &cfg, "0 1 2 ");
    cfg.class_count = 4;
    refuse_like(folder, &cfg, "--match-classes order", "as many classes on both sides");
    cfg = like(trained, 3);
    cfg.match = MR_MATCH_ORDER;
    follow(table, &cfg, "0 2 ");
    const char *const holes[] = {"", "cat", "", "dog", "horse"}; /* numbers without samples are no classes */
    cfg = like(holes, 5);
    cfg.match = MR_MATCH_ORDER;
    follow(table, &cfg, "1 4 ");
    follow(folder, &cfg, "1 3 4 ");
    follow(make_table("later.csv", "path,label\na.jpg,5\nb.jpg,7\n"), &cfg, "1 4 ");
    const char *const others[] = {"Hund", "Katze", "Pferd"}, *const mixed[] = {"cat", "horse", "zebra"};
    cfg = like(others, 3);
    refuse_like(folder, &cfg, "class cat is not among the 3 expected", "--match-classes order");
    cfg.match = MR_MATCH_ORDER;
    follow(folder, &cfg, "0 1 2 ");
    cfg = like(mixed, 3);
    cfg.match = MR_MATCH_ORDER; /* cat is no horse, whatever the order */
    refuse_like(folder, &cfg, "class dog is not among the 3 expected", "take it out");
    cfg = like(NULL, 3);
    cfg.label_offset = cfg.class_first = 1; /* said for both sides; names need none */
    follow(make_folder("some", numbers + 1, 1), &cfg, "0 ");
}

static void what_no_number_can_be_given(void **state)
{
    (void)state;
    const char *const more[] = {"bird", "cat", "dog", "horse"}, *const twice[] = {"cat", "dog", "cat"};
    const char *const seven[] = {"a", "b", "c", "d", "e", "f", "g"};
    const char *path = make_folder("more", more, 4);
    refuse(path, trained, 3, "class bird is not among the 3 expected (cat, dog, horse)", "take it out");
    refuse(path, seven, 7, "class bird is not among the 7 expected (a, b, c, d, e and 2 more)", "");
    refuse(make_folder("twice", trained, 2), twice, 3, "class cat",
           "two of the classes expected have this name");
}

static void a_label_that_is_no_class(void **state)
{
    (void)state;
    uint32_t number[] = {7, 3};
    const mri_classes c = {.number = number, .format_class_count = 2};
    mr_error err = MR_ERROR_INIT;
    int64_t label = 1;
    MRT_EQ(mri_classes_renumber(&c, &label, &err), MR_OK);
    MRT_EQ(label, 3);
    for (int64_t wrong = -1; wrong <= 2; wrong += 3) {
        label = wrong;
        MRT_EQ(mri_classes_renumber(&c, &label, &err), MR_EFORMAT);
        MRT_HAS(err.text, "expected 0..1");
    }
}

static void names_are_copied(void **state)
{
    (void)state;
    char cat[] = "cat", dog[] = "dog", horse[] = "horse";
    const char *mine[] = {cat, dog, horse};
    mr_source *src;
    mr_error err = MR_ERROR_INIT;
    const mr_source_config cfg = like(mine, 3);
    MRT_OK(mr_source_open(&src, make_folder("copied", trained + 1, 2), &cfg, &err), &err);
    memset(horse, 'x', 5);
    mine[1] = NULL;
    MRT_STR(mr_source_info_of(src)->class_names[1], "dog");
    MRT_STR(mr_source_info_of(src)->class_names[2], "horse");
    mr_source_close(src);
}

static void memory(void **state)
{
    (void)state;
    mr_source *src;
    mr_error err = MR_ERROR_INIT;
    mr_source_config cfg = like(NULL, 0);
    const char *path = make_folder("memory", trained + 1, 2);
    MRT_OK(mr_source_open(&src, path, &cfg, &err), &err);
    const uint64_t own = mr_source_info_of(src)->memory_bytes;
    mr_source_close(src);
    cfg = like(trained, 3);
    MRT_OK(mr_source_open(&src, path, &cfg, &err), &err);
    MRT_TRUE(mr_source_info_of(src)->memory_bytes > own);
    mr_source_close(src);
    cfg.memory_bytes = own + 1;
    MRT_EQ(mr_source_open(&src, path, &cfg, &err), MR_ELIMIT);
    cfg.memory_bytes = (uint64_t)1 << 30;
    for (long n = 0;; n++) {
        src = (mr_source *)&src;
        mrt_fail_alloc_at(n);
        const int rc = mr_source_open(&src, path, &cfg, &err);
        mrt_fail_alloc_at(-1);
        if (rc == MR_OK) expect_labels(src, "1 2 ");
        if (mrt_last_turn(rc, src)) break;
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(a_class_is_missing),
        cmocka_unit_test(most_classes_are_missing),
        cmocka_unit_test(another_order),
        cmocka_unit_test(record_files_follow),
        cmocka_unit_test(the_same_names_change_nothing),
        cmocka_unit_test(names_that_are_numbers),
        cmocka_unit_test(numbers_on_both_sides),
        cmocka_unit_test(names_and_numbers),
        cmocka_unit_test(what_no_number_can_be_given),
        cmocka_unit_test(a_label_that_is_no_class),
        cmocka_unit_test(names_are_copied),
        cmocka_unit_test(memory),
    };
    return mrt_run(tests);
}
