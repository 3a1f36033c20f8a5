/* File lists: single files, numbered sets, folders with parts, patterns; what is missing or ambiguous is
 * named. */
#include <isa-l/igzip_lib.h>
#include <sys/stat.h>
#include <unistd.h>

#include "formats/fileset/filelist.h"
#include "mrt.h"

static bool begins_with_mark(const uint8_t *head, size_t bytes)
{
    return bytes >= 4 && memcmp(head, "MARK", 4) == 0;
}

static void put(const char *path) { mrt_write_file(path, "MARK and more", 13); }

static void put_gzip(const char *path)
{
    uint8_t out[256];
    struct isal_zstream z;
    isal_deflate_stateless_init(&z);
    z.gzip_flag = IGZIP_GZIP;
    z.end_of_stream = 1;
    z.next_in = (uint8_t *)(uintptr_t) "MARK and more";
    z.avail_in = 13;
    z.next_out = out;
    z.avail_out = sizeof out;
    MRT_EQ(isal_deflate_stateless(&z), COMP_OK);
    mrt_write_file(path, out, z.total_out);
}

/* The names found, separated by blanks, or the error's text. */
static const char *found(const char *path, mr_split split, int *code, mri_filelist *kept)
{
    static char text[2048];
    mri_filelist l;
    mr_error err = MR_ERROR_INIT;
    memset(&l, 0xee, sizeof l);
    const int rc = mri_filelist_find(&l, path, split, begins_with_mark, &err);
    if (code) *code = rc;
    text[0] = '\0';
    if (rc) {
        mr_error_format(&err, text, sizeof text);
        MRT_EQ(l.count, 0);
        MRT_TRUE(l.path == NULL);
        return text;
    }
    for (uint32_t k = 0; k < l.count; k++) {
        if (k) strcat(text, " ");
        strcat(text, strrchr(l.path[k], '/') + 1);
    }
    if (kept) kept->has_test = l.has_test;
    mri_filelist_fini(&l);
    return text;
}

static const char *all_of(const char *path) { return found(path, MR_SPLIT_AUTO, NULL, NULL); }

static void one_file_is_one_file(void **state)
{
    (void)state;
    put(mrt_path("single"));
    MRT_STR(all_of(mrt_path("single")), "single");
    put(mrt_path("a-of-b"));
    MRT_STR(all_of(mrt_path("a-of-b")), "a-of-b");
    put(mrt_path("00007-of-00003")); /* no piece of three has this number */
    MRT_STR(all_of(mrt_path("00007-of-00003")), "00007-of-00003");
    int code;
    MRT_HAS(found(mrt_path("absent"), MR_SPLIT_AUTO, &code, NULL), "absent");
    MRT_EQ(code, MR_ENOENT);
    MRT_HAS(found(mrt_path("single"), MR_SPLIT_TEST, &code, NULL), "no test part");
    MRT_EQ(code, MR_ENOENT);
}

static void a_piece_stands_for_its_set(void **state)
{
    (void)state;
    mrt_mkdir(mrt_path("set"));
    for (int k = 0; k < 12; k++) put(mrt_path("set/x-%05d-of-00012", k));
    const char *all = "x-00000-of-00012 x-00001-of-00012 x-00002-of-00012 x-00003-of-00012 x-00004-of-00012 "
                      "x-00005-of-00012 "
                      "x-00006-of-00012 x-00007-of-00012 x-00008-of-00012 x-00009-of-00012 x-00010-of-00012 "
                      "x-00011-of-00012";
    MRT_STR(all_of(mrt_path("set/x-00003-of-00012")), all);
    MRT_STR(all_of(mrt_path("set")), all);
    mrt_write_file(mrt_path("set/x-00005-of-00012"), "", 0); /* a writer with fewer samples than pieces leaves
                                                                empty ones */
    MRT_STR(all_of(mrt_path("set")), all);
    unlink(mrt_path("set/x-00005-of-00012"));
    int code;
    MRT_HAS(found(mrt_path("set/x-00003-of-00012"), MR_SPLIT_AUTO, &code, NULL),
            "x-00005-of-00012: this piece of a set of 12 is missing");
    MRT_EQ(code, MR_ENOENT);
    MRT_HAS(found(mrt_path("set"), MR_SPLIT_AUTO, &code, NULL), "x-00005-of-00012: this piece");
    MRT_EQ(code, MR_ENOENT);

    static const char numbered[] =
        "y-1-of-11.bin y-2-of-11.bin y-3-of-11.bin y-4-of-11.bin y-5-of-11.bin y-6-of-11.bin "
        "y-7-of-11.bin y-8-of-11.bin y-9-of-11.bin y-10-of-11.bin y-11-of-11.bin";
    mrt_mkdir(mrt_path("endings")); /* numbers without zeros in front, an ending, numbered from 1 */
    for (int k = 1; k <= 11; k++) put(mrt_path("endings/y-%d-of-11.bin", k));
    MRT_STR(all_of(mrt_path("endings")), numbered);
    MRT_STR(all_of(mrt_path("endings/y-*")), numbered);
}

static void folders_go_by_content(void **state)
{
    (void)state;
    mrt_mkdir(mrt_path("mixed"));
    mrt_mkdir(mrt_path("mixed/folder"));
    put(mrt_path("mixed/b"));
    put(mrt_path("mixed/a-x"));
    put(mrt_path("mixed/a"));
    put(mrt_path("mixed/a.gz")); /* plain in spite of its name, and a's twin by it */
    put_gzip(mrt_path("mixed/c.gz"));
    put(mrt_path("mixed/a.mridx"));
    put(mrt_path("mixed/.hidden"));
    mrt_write_file(mrt_path("mixed/README"), "read me", 7);
    mrt_write_file(mrt_path("mixed/empty"), "", 0);
    MRT_EQ(mkfifo(mrt_path("mixed/pipe"), 0600), 0);
    MRT_STR(all_of(mrt_path("mixed")), "a a-x b c.gz");
    MRT_TRUE(mri_filelist_probe(mrt_path("mixed"), begins_with_mark));
    MRT_STR(all_of(mrt_path("mixed/")), "a a-x b c.gz");
    mrt_mkdir(mrt_path("none"));
    mrt_write_file(mrt_path("none/README"), "read me", 7);
    int code;
    MRT_HAS(found(mrt_path("none"), MR_SPLIT_AUTO, &code, NULL), "no file of this format");
    MRT_EQ(code, MR_ENOENT);
    MRT_TRUE(!mri_filelist_probe(mrt_path("none"), begins_with_mark));
    mrt_mkdir(mrt_path("pictures")); /* an archive beside folders of pictures */
    mrt_mkdir(mrt_path("pictures/cats"));
    mrt_mkdir(mrt_path("pictures/dogs"));
    put(mrt_path("pictures/all"));
    MRT_TRUE(!mri_filelist_probe(mrt_path("pictures"), begins_with_mark));
    MRT_TRUE(!mri_filelist_probe(mrt_path("mixed/a"), begins_with_mark));
}

static void parts_are_reported_apart(void **state)
{
    (void)state;
    mrt_mkdir(mrt_path("parts"));
    put(mrt_path("parts/train-00000-of-00002"));
    put(mrt_path("parts/train-00001-of-00002"));
    put(mrt_path("parts/validation-00000-of-00001"));
    put(mrt_path("parts/test-00000-of-00001"));
    mri_filelist l;
    MRT_STR(found(mrt_path("parts"), MR_SPLIT_AUTO, NULL, &l), "train-00000-of-00002 train-00001-of-00002");
    MRT_TRUE(l.has_test);
    MRT_STR(found(mrt_path("parts"), MR_SPLIT_TRAIN, NULL, NULL),
            "train-00000-of-00002 train-00001-of-00002");
    MRT_STR(found(mrt_path("parts"), MR_SPLIT_TEST, NULL, NULL), "validation-00000-of-00001");
    unlink(mrt_path("parts/validation-00000-of-00001"));
    MRT_STR(found(mrt_path("parts"), MR_SPLIT_TEST, NULL, NULL), "test-00000-of-00001");
    put(mrt_path("parts/train-00000-of-00003"));
    int code;
    MRT_HAS(found(mrt_path("parts"), MR_SPLIT_AUTO, &code, NULL),
            "a set of 2 pieces and one of 3 under the same name");
    MRT_EQ(code, MR_EFORMAT);
    unlink(mrt_path("parts/train-00000-of-00003"));
    put(mrt_path("parts/more"));
    MRT_HAS(found(mrt_path("parts"), MR_SPLIT_AUTO, &code, NULL),
            "parts/more: other files here are named train");
    MRT_EQ(code, MR_EFORMAT);
    mrt_mkdir(mrt_path("named"));
    put(mrt_path("named/flowers-test.bin-00000-of-00001"));
    MRT_STR(all_of(mrt_path("named")), "flowers-test.bin-00000-of-00001"); /* nothing but a test part: that */
    MRT_HAS(found(mrt_path("named"), MR_SPLIT_TRAIN, &code, NULL), "no train part");
    MRT_EQ(code, MR_ENOENT);
    put(mrt_path("named/flowers-train.bin-00000-of-00001"));
    MRT_STR(all_of(mrt_path("named")), "flowers-train.bin-00000-of-00001");
    mrt_mkdir(mrt_path("trained")); /* a word that only begins like a part */
    put(mrt_path("trained/trainers.bin"));
    put(mrt_path("trained/boots.bin"));
    MRT_STR(all_of(mrt_path("trained")), "boots.bin trainers.bin");
}

/* Each path found, from the data set's folder on. */
static const char *below(const char *folder, mr_split split)
{
    static char text[1024];
    mri_filelist l;
    mr_error err = MR_ERROR_INIT;
    MRT_OK(mri_filelist_find(&l, folder, split, begins_with_mark, &err), &err);
    text[0] = '\0';
    for (uint32_t k = 0; k < l.count; k++)
        sprintf(text + strlen(text), "%s%s", k ? " " : "", l.path[k] + strlen(folder) + 1);
    mri_filelist_fini(&l);
    return text;
}

static void parts_may_be_folders(void **state)
{
    (void)state;
    static const char *const folders[] = {"f", "f/train", "f/Val", "f/test", "f/docs",
                                          "g", "g/train", "g/bus", "g/car"};
    for (size_t k = 0; k < sizeof folders / sizeof folders[0]; k++) mrt_mkdir(mrt_path("%s", folders[k]));
    const char *f = mrt_path("f");
    for (int k = 0; k < 2; k++) put(mrt_path("f/train/%05d-of-00002", k));
    put(mrt_path("f/Val/00000-of-00002")); /* the same names as in another part, and one that speaks of
                                              another part */
    put(mrt_path("f/Val/00001-of-00002"));
    put(mrt_path("f/Val/train-of-thought"));
    put_gzip(mrt_path("f/test/a.gz"));
    mrt_write_file(mrt_path("f/train/README"), "read me", 7);
    mrt_write_file(mrt_path("f/LICENSE"), "free", 4);
    MRT_TRUE(mri_filelist_probe(f, begins_with_mark));
    MRT_STR(below(f, MR_SPLIT_AUTO), "train/00000-of-00002 train/00001-of-00002");
    MRT_STR(below(f, MR_SPLIT_TRAIN), "train/00000-of-00002 train/00001-of-00002");
    MRT_STR(below(f, MR_SPLIT_TEST), "Val/00000-of-00002 Val/00001-of-00002 Val/train-of-thought");
    mri_filelist l = {0};
    found(f, MR_SPLIT_AUTO, NULL, &l);
    MRT_TRUE(l.has_test);
    int code;
    mrt_mkdir(mrt_path("f/dev"));
    /* nothing of ours in dev */
    MRT_STR(below(f, MR_SPLIT_TRAIN), "train/00000-of-00002 train/00001-of-00002");
    put(mrt_path("f/dev/x"));
    const char *said = found(f, MR_SPLIT_TEST, &code, NULL);
    MRT_EQ(code, MR_EFORMAT);
    MRT_HAS(said, "both name the same part");
    unlink(mrt_path("f/dev/x"));
    put(mrt_path("f/more"));
    MRT_HAS(found(f, MR_SPLIT_AUTO, &code, NULL), "f/more: beside it lies a folder train");
    MRT_EQ(code, MR_EFORMAT);
    unlink(mrt_path("f/more"));
    unlink(mrt_path("f/train/00001-of-00002"));
    MRT_HAS(found(f, MR_SPLIT_AUTO, &code, NULL),
            "train/00001-of-00002: this piece of a set of 2 is missing");
    put(mrt_path("g/train/archive")); /* a class of pictures called train */
    MRT_TRUE(!mri_filelist_probe(mrt_path("g"), begins_with_mark));
}

static void patterns_are_counted_out(void **state)
{
    (void)state;
    mrt_mkdir(mrt_path("pattern"));
    for (int k = 8; k < 12; k++) put(mrt_path("pattern/p-%06d.bin", k));
    MRT_STR(all_of(mrt_path("pattern/p-{000008..000011}.bin")),
            "p-000008.bin p-000009.bin p-000010.bin p-000011.bin");
    MRT_STR(all_of(mrt_path("pattern/p-0000{08..09}.bin")), "p-000008.bin p-000009.bin");
    MRT_STR(all_of(mrt_path("pattern/p-0000{10..11}.bin")), "p-000010.bin p-000011.bin");
    MRT_STR(all_of(mrt_path("pattern/p-00000{8..9}.b*")), "p-000008.bin p-000009.bin");
    MRT_STR(all_of(mrt_path("pattern/p-00001?.bin")), "p-000010.bin p-000011.bin");
    MRT_STR(all_of(mrt_path("pattern/p-0000{0..0}{8..9}*")), "p-000008.bin p-000009.bin");
}

/* p-1* and p-12* both name p-12. */
static void patterns_name_a_file_once(void **state)
{
    (void)state;
    int code;
    mrt_mkdir(mrt_path("once"));
    put(mrt_path("once/p-1.bin"));
    put(mrt_path("once/p-12.bin"));
    MRT_HAS(found(mrt_path("once/p-1{..2}*"), MR_SPLIT_AUTO, &code, NULL), "no file matches");
    MRT_HAS(found(mrt_path("once/p-{1..1}{2..2}*"), MR_SPLIT_AUTO, &code, NULL), "p-12.bin");
    MRT_EQ(code, MR_OK);
    put(mrt_path("once/p-2.bin"));
    MRT_STR(all_of(mrt_path("once/p-{1..2}.bin")), "p-1.bin p-2.bin");
    MRT_HAS(found(mrt_path("once/[p]-1{0..3}*"), MR_SPLIT_AUTO, &code, NULL), "no file matches");
    MRT_HAS(found(mrt_path("once/[{0..1}p]-*"), MR_SPLIT_AUTO, &code, NULL), "more than once: narrow it");
    MRT_EQ(code, MR_EINVAL);
}

static void patterns_that_match_nothing(void **state)
{
    (void)state;
    int code;
    mrt_mkdir(mrt_path("nothing"));
    put(mrt_path("nothing/p-3.bin"));
    MRT_HAS(found(mrt_path("nothing/p-{3..999999999}.bin"), MR_SPLIT_AUTO, &code, NULL),
            "p-4.bin: no such file");
    MRT_EQ(code, MR_ENOENT);
    MRT_HAS(found(mrt_path("nothing/q*"), MR_SPLIT_AUTO, &code, NULL), "no file matches");
    MRT_EQ(code, MR_ENOENT);
    MRT_HAS(found(mrt_path("nothing/p-{9..3}.bin"), MR_SPLIT_AUTO, &code, NULL), "runs backwards");
    MRT_EQ(code, MR_EINVAL);
    MRT_HAS(found(mrt_path("nothing/p-{a..b}.bin"), MR_SPLIT_AUTO, &code, NULL), "no such file");
    MRT_EQ(code, MR_ENOENT);
    MRT_TRUE(mri_filelist_probe(mrt_path("nothing/p*"), begins_with_mark));
    MRT_TRUE(mri_filelist_probe(mrt_path("nothing/p-{3..900}.bin"), begins_with_mark));
    MRT_TRUE(!mri_filelist_probe(mrt_path("nothing/q*"), begins_with_mark));
}

static void allocations_fail_in_turn(void **state)
{
    (void)state;
    mrt_mkdir(mrt_path("alloc"));
    for (int k = 0; k < 40; k++) put(mrt_path("alloc/z-%02d-of-40", k));
    mrt_mkdir(mrt_path("allocs"));
    mrt_mkdir(mrt_path("allocs/train"));
    for (int k = 0; k < 40; k++) put(mrt_path("allocs/train/z-%02d-of-40", k));
    const char *paths[] = {mrt_path("alloc"), mrt_path("allocs"), mrt_path("alloc/z-03-of-40"),
                           mrt_path("alloc/z-{00..39}-of-4*")};
    for (size_t p = 0; p < 4; p++) {
        for (long n = 0;; n++) {
            mr_error err = MR_ERROR_INIT;
            mri_filelist l;
            mrt_fail_alloc_at(n);
            const int rc = mri_filelist_find(&l, paths[p], MR_SPLIT_AUTO, begins_with_mark, &err);
            mrt_fail_alloc_at(-1);
            if (rc == MR_OK) {
                MRT_EQ(l.count, 40);
                mri_filelist_fini(&l);
                break;
            }
            MRT_EQ(rc, MR_ENOMEM);
        }
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(one_file_is_one_file),      cmocka_unit_test(a_piece_stands_for_its_set),
        cmocka_unit_test(folders_go_by_content),     cmocka_unit_test(parts_are_reported_apart),
        cmocka_unit_test(parts_may_be_folders),      cmocka_unit_test(patterns_are_counted_out),
        cmocka_unit_test(patterns_name_a_file_once), cmocka_unit_test(patterns_that_match_nothing),
        cmocka_unit_test(allocations_fail_in_turn),
    };
    return mrt_run(tests);
}
