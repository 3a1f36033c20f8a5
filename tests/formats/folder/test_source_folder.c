/* Image folders: order, numbers, parts; and every way in which a folder can be wrong. */
#include <linux/capability.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <unistd.h>

#include "millrace/formats.h"
#include "mrt.h"
#include "tests/formats/mrt_turns.h"

static const char jpeg[] = "\xff\xd8\xff\xe0 a jpeg", png[] = "\x89PNG\r\n\x1a\n a png";

static void put(const char *path, const char *text) { mrt_write_file(path, text, strlen(text)); }

static int try_open(const char *path, mr_split split, mr_source **src, mr_error *err)
{
    mr_source_config cfg;
    mr_source_defaults(&cfg);
    cfg.split = split;
    return mr_source_open(src, path, &cfg, err);
}

static void expect_error(const char *path, int code, const char *text, const char *file)
{
    mr_source *src = (mr_source *)&code;
    mr_error err = MR_ERROR_INIT;
    MRT_EQ(try_open(path, MR_SPLIT_AUTO, &src, &err), code);
    MRT_TRUE(src == NULL);
    MRT_HAS(err.text, text);
    MRT_HAS(err.file, file);
}

static void make_plain(const char *name)
{
    mrt_mkdir(mrt_path("%s", name));
    mrt_mkdir(mrt_path("%s/b", name));
    mrt_mkdir(mrt_path("%s/B", name));
    mrt_mkdir(mrt_path("%s/a c", name));
    put(mrt_path("%s/b/2.jpg", name), jpeg);
    put(mrt_path("%s/b/10.txt", name), png);
    put(mrt_path("%s/B/x", name), "no picture");
    put(mrt_path("%s/a c/y", name), png);
    put(mrt_path("%s/a c/.hidden", name), jpeg);
    put(mrt_path("%s/README", name), "hello");
    mrt_mkdir(mrt_path("%s/a c/nested", name));
}

static void order_and_numbers(void **state)
{
    (void)state;
    make_plain("plain");
    mr_source *src;
    mr_error err = MR_ERROR_INIT;
    char path[512];
    MRT_OK(try_open(mrt_path("plain"), MR_SPLIT_AUTO, &src, &err), &err);
    const mr_source_info *info = mr_source_info_of(src);
    MRT_STR(info->format, "folder");
    MRT_EQ(info->count, 4);
    MRT_EQ(info->class_count, 3);
    MRT_STR(info->class_names[0], "B"); /* by bytes, whatever the locale */
    MRT_STR(info->class_names[1], "a c");
    MRT_STR(info->class_names[2], "b");
    MRT_EQ(info->file_count, 0);
    MRT_EQ(info->skipped_files, 3);
    MRT_EQ(info->max_extent_bytes, sizeof png - 1);
    MRT_TRUE(!info->has_test);
    static const struct {
        const char *end;
        int64_t label;
    } expected[] = {{"/B/x", 0}, {"/a c/y", 1}, {"/b/10.txt", 2}, {"/b/2.jpg", 2}};
    void *buf = NULL;
    size_t buf_bytes = 0;
    for (uint64_t i = 0; i < 4; i++) {
        int64_t label;
        mr_extent e;
        MRT_HAS(mr_source_sample_path(src, i, path, sizeof path), expected[i].end);
        MRT_EQ(mr_source_label(src, i, &label), MR_OK);
        MRT_EQ(label, expected[i].label);
        MRT_OK(mr_source_extent(src, i, &e, &err), &err);
        MRT_EQ(e.file, MR_FILE_OF_SAMPLE);
        mr_sample s;
        const int rc = mr_source_read(src, i, &buf, &buf_bytes, &s, &err);
        if (i == 0) { /* found when read: the list is made from names and sizes */
            MRT_EQ(rc, MR_EFORMAT);
            MRT_HAS(err.text, "found text (\"no p");
            MRT_HAS(err.file, "/B/x");
            MRT_EQ(err.sample, 0);
            continue;
        }
        MRT_OK(rc, &err);
        MRT_EQ(s.value[0].type, i == 3 ? MR_TYPE_JPEG : MR_TYPE_PNG);
        MRT_EQ(s.value[1].i, expected[i].label);
    }
    put(mrt_path("plain/b/2.jpg"), "\xff\xd8\xff and longer now");
    mr_sample s;
    MRT_EQ(mr_source_read(src, 3, &buf, &buf_bytes, &s, &err), MR_EFORMAT);
    MRT_HAS(err.text, "changed since it was listed");
    unlink(mrt_path("plain/b/2.jpg"));
    MRT_EQ(mr_source_read(src, 3, &buf, &buf_bytes, &s, &err), MR_ENOENT);
    free(buf);
    mr_source_close(src);
}

static uint64_t fingerprint(const char *path)
{
    mr_source *src;
    mr_error err = MR_ERROR_INIT;
    MRT_OK(try_open(path, MR_SPLIT_AUTO, &src, &err), &err);
    const uint64_t print = mr_source_info_of(src)->fingerprint;
    mr_source_close(src);
    return print;
}

static void fingerprint_knows_names_and_sizes(void **state)
{
    (void)state;
    make_plain("print");
    make_plain("print2");
    const uint64_t before = fingerprint(mrt_path("print"));
    MRT_TRUE(before == fingerprint(mrt_path("print2"))); /* where it lies does not matter */
    put(mrt_path("print/b/2.jpg"), "\xff\xd8\xff");
    MRT_TRUE(before != fingerprint(mrt_path("print")));
    put(mrt_path("print/b/2.jpg"), jpeg);
    MRT_TRUE(before == fingerprint(mrt_path("print")));
    rename(mrt_path("print/b/2.jpg"), mrt_path("print/b/3.jpg"));
    MRT_TRUE(before != fingerprint(mrt_path("print")));
}

static void train_and_test(void **state)
{
    (void)state;
    static const char *const folders[] = {"parts",           "parts/train",     "parts/train/cat",
                                          "parts/train/dog", "parts/train/emu", "parts/val",
                                          "parts/val/emu",   "parts/val/dog"};
    for (size_t k = 0; k < sizeof folders / sizeof folders[0]; k++) mrt_mkdir(mrt_path("%s", folders[k]));
    put(mrt_path("parts/train/cat/1"), jpeg);
    put(mrt_path("parts/train/dog/1"), jpeg);
    put(mrt_path("parts/train/emu/1"), jpeg);
    put(mrt_path("parts/val/emu/1"), jpeg);
    put(mrt_path("parts/val/dog/1"), jpeg);
    mr_source *src;
    mr_error err = MR_ERROR_INIT;
    char path[512];
    MRT_OK(try_open(mrt_path("parts"), MR_SPLIT_AUTO, &src, &err), &err);
    MRT_EQ(mr_source_info_of(src)->count, 3);
    MRT_TRUE(mr_source_info_of(src)->has_test);
    mr_source_close(src);
    MRT_OK(try_open(mrt_path("parts"), MR_SPLIT_TEST, &src, &err), &err);
    MRT_EQ(mr_source_info_of(src)->count, 2);
    MRT_EQ(mr_source_info_of(src)->class_count, 3); /* the train part's, "cat" without a file */
    int64_t label;
    MRT_EQ(mr_source_label(src, 0, &label), MR_OK);
    MRT_EQ(label, 1);
    MRT_HAS(mr_source_sample_path(src, 1, path, sizeof path), "parts/val/emu/1");
    mr_source_close(src);
    mrt_mkdir(mrt_path("parts/val/fox"));
    put(mrt_path("parts/val/fox/1"), jpeg);
    MRT_EQ(try_open(mrt_path("parts"), MR_SPLIT_TEST, &src, &err), MR_EFORMAT);
    MRT_HAS(err.text, "no class of this name");
    MRT_HAS(err.file, "val/fox");
}

static void wrong_folders_are_named(void **state)
{
    (void)state;
    mrt_mkdir(mrt_path("bare"));
    expect_error(mrt_path("bare"), MR_EFORMAT, "no class folders", "bare");
    put(mrt_path("bare/picture.jpg"), jpeg);
    expect_error(mrt_path("bare"), MR_EFORMAT, "found 1 other", "bare");
    mrt_mkdir(mrt_path("bare/one"));
    expect_error(mrt_path("bare"), MR_EFORMAT, "a class without pictures", "bare/one");
    put(mrt_path("bare/one/p"), jpeg);
    MRT_EQ(symlink("self", mrt_path("bare/one/self")), 0);
    expect_error(mrt_path("bare"), MR_EFORMAT, "leads back to itself", "bare/one/self");
    unlink(mrt_path("bare/one/self"));
    MRT_EQ(symlink("/no/such/file", mrt_path("bare/one/gone")), 0);
    expect_error(mrt_path("bare"), MR_EFORMAT, "to nothing", "bare/one/gone");
    unlink(mrt_path("bare/one/gone"));
    MRT_EQ(symlink("..", mrt_path("bare/up")), 0); /* a class that is the folder above: it has a picture, no
                                                      loop */
    unlink(mrt_path("bare/picture.jpg"));
    expect_error(mrt_path("bare"), MR_EFORMAT, "a class without pictures", "bare/up");
    unlink(mrt_path("bare/up"));
    MRT_EQ(symlink("p", mrt_path("bare/one/link")), 0); /* links to files are followed */
    mr_source *src;
    mr_error err = MR_ERROR_INIT;
    MRT_OK(try_open(mrt_path("bare"), MR_SPLIT_AUTO, &src, &err), &err);
    MRT_EQ(mr_source_info_of(src)->count, 2);
    mr_source_close(src);
}

/* Root reads what it may not, by two capabilities: without them it is the owner of its files, and no more. It
 * stays who it is, or it could not reach the test's folder where the folders above are its own. */
static void heed_permissions(bool heed)
{
    const uint32_t beyond = 1u << CAP_DAC_OVERRIDE | 1u << CAP_DAC_READ_SEARCH;
    struct __user_cap_header_struct head = {.version = _LINUX_CAPABILITY_VERSION_3};
    struct __user_cap_data_struct caps[_LINUX_CAPABILITY_U32S_3];
    MRT_EQ(syscall(SYS_capget, &head, caps), 0);
    caps[0].effective &= ~beyond;
    if (!heed) caps[0].effective |= caps[0].permitted & beyond;
    MRT_EQ(syscall(SYS_capset, &head, caps), 0);
}

static void unreadable_is_named(void **state)
{
    (void)state;
    mrt_mkdir(mrt_path("locked"));
    mrt_mkdir(mrt_path("locked/a"));
    mrt_mkdir(mrt_path("locked/b"));
    put(mrt_path("locked/a/1"), jpeg);
    put(mrt_path("locked/b/1"), jpeg);
    chmod(mrt_path("locked/a/1"), 0);
    chmod(mrt_path("locked/b"), 0);
    heed_permissions(true);
    mr_source *src;
    mr_error err = MR_ERROR_INIT;
    MRT_EQ(try_open(mrt_path("locked"), MR_SPLIT_AUTO, &src, &err), MR_EIO);
    MRT_HAS(err.file, "locked/b");
    MRT_HAS(err.text, "Permission denied");
    chmod(mrt_path("locked/b"), 0755);
    MRT_OK(try_open(mrt_path("locked"), MR_SPLIT_AUTO, &src, &err), &err);
    void *buf = NULL;
    size_t buf_bytes = 0;
    mr_sample s;
    MRT_EQ(mr_source_read(src, 0, &buf, &buf_bytes, &s, &err), MR_EIO);
    MRT_HAS(err.file, "locked/a/1");
    heed_permissions(false);
    free(buf);
    mr_source_close(src);
}

static void memory_is_bounded(void **state)
{
    (void)state;
    make_plain("bounded");
    mr_source_config cfg;
    mr_source *src;
    mr_error err = MR_ERROR_INIT;
    mr_source_defaults(&cfg);
    cfg.memory_bytes = 100;
    MRT_EQ(mr_source_open(&src, mrt_path("bounded"), &cfg, &err), MR_ELIMIT);
    /* many files: about a name, a size and an offset each */
    mrt_mkdir(mrt_path("many"));
    mrt_mkdir(mrt_path("many/c"));
    for (int k = 0; k < 3000; k++) put(mrt_path("many/c/image_%08d.JPEG", k), "");
    MRT_OK(try_open(mrt_path("many"), MR_SPLIT_AUTO, &src, &err), &err);
    MRT_TRUE(mr_source_info_of(src)->memory_bytes < 3000 * 40 + 10000);
    mr_sample s;
    MRT_EQ(mr_source_parse(src, 5, "", 0, &s, &err), MR_EFORMAT);
    mr_source_close(src);
}

static void allocations_fail_in_turn(void **state)
{
    (void)state;
    make_plain("alloc");
    for (long n = 0;; n++) {
        mr_error err = MR_ERROR_INIT;
        mr_source *src = (mr_source *)&err;
        mrt_fail_alloc_at(n);
        const int rc = try_open(mrt_path("alloc"), MR_SPLIT_AUTO, &src, &err);
        mrt_fail_alloc_at(-1);
        if (mrt_last_turn(rc, src)) break;
    }
}

static void huge_files_are_bad_samples_that_nobody_reads(void **state)
{
    (void)state;
    mrt_mkdir(mrt_path("huge"));
    mrt_mkdir(mrt_path("huge/a"));
    put(mrt_path("huge/a/1.jpg"), jpeg);
    put(mrt_path("huge/a/2.jpg"), jpeg);
    MRT_EQ(truncate(mrt_path("huge/a/2.jpg"), (off_t)1 << 40), 0); /* sparse */
    mr_source *src;
    mr_error err = MR_ERROR_INIT;
    mr_extent e;
    void *buffer = NULL;
    size_t bytes = 0;
    mr_sample sample;
    MRT_OK(try_open(mrt_path("huge"), MR_SPLIT_AUTO, &src, &err), &err);
    MRT_EQ(mr_source_info_of(src)->count, 2);
    MRT_EQ(mr_source_info_of(src)->max_extent_bytes, strlen(jpeg)); /* no buffer is made for it */
    MRT_OK(mr_source_extent(src, 0, &e, &err), &err);
    MRT_EQ(mr_source_extent(src, 1, &e, &err), MR_ELIMIT);
    MRT_HAS(err.file, "2.jpg");
    MRT_HAS(err.text, "take it out");
    MRT_EQ(mr_source_read(src, 1, &buffer, &bytes, &sample, &err), MR_ELIMIT);
    MRT_EQ(bytes, 0);
    free(buffer);
    mr_source_close(src);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(huge_files_are_bad_samples_that_nobody_reads),
        cmocka_unit_test(order_and_numbers),
        cmocka_unit_test(fingerprint_knows_names_and_sizes),
        cmocka_unit_test(train_and_test),
        cmocka_unit_test(wrong_folders_are_named),
        cmocka_unit_test(unreadable_is_named),
        cmocka_unit_test(memory_is_bounded),
        cmocka_unit_test(allocations_fail_in_turn),
    };
    return mrt_run(tests);
}
