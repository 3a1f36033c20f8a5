/* File lists: single files, numbered sets, folders with splits, patterns; missing and ambiguous files are
 * named. */
#include <errno.h>
#include <fcntl.h>
#include <isa-l/igzip_lib.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <unistd.h>

#include "formats/fileset/filelist.h"
#include "mrt.h"

static bool begins_with_mark(const uint8_t *head, size_t bytes)
{
    return bytes >= 4 && memcmp(head, "MARK", 4) == 0;
}

/* No two of them are the same. */
static void put(const char *path)
{
    static unsigned number;
    char text[32];
    mrt_write_file(path, text, (size_t)snprintf(text, sizeof text, "MARK and %08u", ++number));
}

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

static char reported[4096]; /* the report on the last list */

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
    if (kept) {
        kept->has_test = l.has_test;
        kept->only_test = l.only_test;
    }
    snprintf(reported, sizeof reported, "%s", l.reported ? l.reported : "");
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
                      "x-00005-of-00012 x-00006-of-00012 x-00007-of-00012 x-00008-of-00012 x-00009-of-00012 "
                      "x-00010-of-00012 x-00011-of-00012";
    MRT_STR(all_of(mrt_path("set/x-00003-of-00012")), all);
    MRT_STR(all_of(mrt_path("set")), all);
    mrt_write_file(mrt_path("set/x-00005-of-00012"), "", 0); /* a writer with fewer samples than pieces leaves
                                                                empty ones */
    MRT_STR(all_of(mrt_path("set")), all);
    MRT_STR(reported, "1 of 12 pieces are empty, the first is x-00005-of-00012");
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
    MRT_TRUE(mri_filelist_probe(mrt_path("mixed"), begins_with_mark, NULL));
    MRT_STR(all_of(mrt_path("mixed/")), "a a-x b c.gz");
    mrt_mkdir(mrt_path("none"));
    mrt_write_file(mrt_path("none/README"), "read me", 7);
    int code;
    MRT_HAS(found(mrt_path("none"), MR_SPLIT_AUTO, &code, NULL), "no file of this format");
    MRT_EQ(code, MR_ENOENT);
    MRT_TRUE(!mri_filelist_probe(mrt_path("none"), begins_with_mark, NULL));
    mrt_mkdir(mrt_path("pictures")); /* an archive beside folders of pictures */
    mrt_mkdir(mrt_path("pictures/cats"));
    mrt_mkdir(mrt_path("pictures/dogs"));
    put(mrt_path("pictures/all"));
    MRT_TRUE(!mri_filelist_probe(mrt_path("pictures"), begins_with_mark, NULL));
    MRT_TRUE(!mri_filelist_probe(mrt_path("mixed/a"), begins_with_mark, NULL));
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
    MRT_HAS(reported, "left out: the test part (1 file)");
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
    MRT_TRUE(mri_filelist_probe(f, begins_with_mark, NULL));
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
    MRT_HAS(found(f, MR_SPLIT_AUTO, &code, NULL), "f/more: next to it is a folder train");
    MRT_EQ(code, MR_EFORMAT);
    unlink(mrt_path("f/more"));
    unlink(mrt_path("f/train/00001-of-00002"));
    MRT_HAS(found(f, MR_SPLIT_AUTO, &code, NULL),
            "train/00001-of-00002: this piece of a set of 2 is missing");
    mrt_mkdir(mrt_path("coco")); /* as COCO calls them */
    mrt_mkdir(mrt_path("coco/train2017"));
    mrt_mkdir(mrt_path("coco/val2017"));
    put(mrt_path("coco/train2017/a"));
    put(mrt_path("coco/val2017/b"));
    MRT_TRUE(mri_filelist_probe(mrt_path("coco"), begins_with_mark, NULL));
    MRT_STR(below(mrt_path("coco"), MR_SPLIT_AUTO), "train2017/a");
    MRT_STR(below(mrt_path("coco"), MR_SPLIT_TEST), "val2017/b");
    put(mrt_path("g/train/archive")); /* a class of pictures called train */
    MRT_TRUE(!mri_filelist_probe(mrt_path("g"), begins_with_mark, NULL));
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
    MRT_TRUE(mri_filelist_probe(mrt_path("nothing/p*"), begins_with_mark, NULL));
    MRT_TRUE(mri_filelist_probe(mrt_path("nothing/p-{3..900}.bin"), begins_with_mark, NULL));
    MRT_TRUE(!mri_filelist_probe(mrt_path("nothing/q*"), begins_with_mark, NULL));
}

/* Sets named as those who publish them name them; the part may stand anywhere in the name. */
static void parts_stand_anywhere_in_names(void **state)
{
    (void)state;
    static const struct {
        const char *train, *test;
    } sets[] = {
        {"imagenet-train-000000.tar", "imagenet-val-000000.tar"},
        {"flowers_train_00000-of-00001.tfrecord", "flowers_validation_00000-of-00001.tfrecord"},
        {"mnist_train_shard0", "mnist_test_shard0"},
        {"x-train.rec", "x-val.rec"},
        {"train_0.bin", "test_0.bin"},
        {"coco.train2017.bin", "coco.val2017.bin"},
        {"TRAIN set.bin", "TEST set.bin"},
        {"birds-training-1.bin", "birds-eval-1.bin"},
        {"t.train.bin", "t.t10k.bin"},
    };
    for (size_t k = 0; k < sizeof sets / sizeof sets[0]; k++) {
        mri_filelist l;
        int code;
        mrt_mkdir(mrt_path("named%zu", k));
        put(mrt_path("named%zu/%s", k, sets[k].test));
        MRT_STR(found(mrt_path("named%zu", k), MR_SPLIT_AUTO, NULL, &l), sets[k].test);
        MRT_TRUE(l.has_test && l.only_test);
        MRT_HAS(found(mrt_path("named%zu", k), MR_SPLIT_TRAIN, &code, NULL), "no train part");
        put(mrt_path("named%zu/%s", k, sets[k].train));
        MRT_STR(found(mrt_path("named%zu", k), MR_SPLIT_AUTO, NULL, &l), sets[k].train);
        MRT_TRUE(l.has_test && !l.only_test);
        MRT_STR(reported, "");
        MRT_STR(found(mrt_path("named%zu", k), MR_SPLIT_TRAIN, NULL, NULL), sets[k].train);
        MRT_STR(found(mrt_path("named%zu", k), MR_SPLIT_TEST, NULL, &l), sets[k].test);
        MRT_TRUE(!l.only_test);
    }
    int code;
    mrt_mkdir(mrt_path("two"));
    put(mrt_path("two/x-train-000.bin"));
    put(mrt_path("two/x-train-val-000.bin"));
    MRT_HAS(found(mrt_path("two"), MR_SPLIT_AUTO, &code, NULL),
            "two/x-train-val-000.bin: its name speaks of two parts");
    MRT_EQ(code, MR_EFORMAT);
    mrt_mkdir(mrt_path("words")); /* words that only contain one of a part */
    put(mrt_path("words/latest-000.bin"));
    put(mrt_path("words/trainer-000.bin"));
    put(mrt_path("words/devices-000.bin"));
    MRT_STR(all_of(mrt_path("words")), "devices-000.bin latest-000.bin trainer-000.bin");
    MRT_STR(reported, "");
}

/* Where the names do not say how many there are, only a gap shows that one is lost. */
static void gaps_are_told(void **state)
{
    (void)state;
    int code;
    mrt_mkdir(mrt_path("gap"));
    put(mrt_path("gap/n-000000.tar"));
    put(mrt_path("gap/n-000002.tar"));
    MRT_STR(all_of(mrt_path("gap")), "n-000000.tar n-000002.tar");
    const char *one = "between n-000000.tar and n-000002.tar 1 number is missing (000001): if files were "
                      "lost, copy them";
    MRT_STR(reported, one);
    MRT_STR(all_of(mrt_path("gap/n-*.tar")), "n-000000.tar n-000002.tar");
    MRT_STR(reported, one);
    MRT_HAS(found(mrt_path("gap/n-{000000..000002}.tar"), MR_SPLIT_AUTO, &code, NULL),
            "gap/n-000001.tar: no such file; the pattern asks for it");
    MRT_EQ(code, MR_ENOENT);
    put(mrt_path("gap/n-000001.tar.gz")); /* packed or not is another name */
    unlink(mrt_path("gap/n-000002.tar"));
    put(mrt_path("gap/n-000009.tar"));
    put(mrt_path("gap/m-000003.tar")); /* of another set */
    all_of(mrt_path("gap"));
    MRT_STR(reported,
            "between n-000000.tar and n-000009.tar 8 numbers are missing (000001 to 000008): if files "
            "were lost, copy them");
    mrt_mkdir(mrt_path("gaps"));
    for (int k = 1; k <= 20; k++)
        if (k % 2 || k == 2) put(mrt_path("gaps/t2017-%d", k));
    all_of(mrt_path("gaps"));
    MRT_STR(reported,
            "between t2017-1 and t2017-19 8 numbers are missing (4, 6, 8, 10, 12, 14 and more): if files "
            "were lost, copy them");
}

/* A second download counts every sample twice. */
static void copies_are_told(void **state)
{
    (void)state;
    enum { BYTES = 20000 };
    static char text[BYTES] = "MARK";
    mrt_mkdir(mrt_path("copies"));
    for (int k = 0; k < 3; k++)
        mrt_write_file(mrt_path("copies/a%s.bin", k == 0 ? "" : k == 1 ? " (1)" : " (2)"), text, BYTES);
    text[BYTES / 2] = 1; /* shards of one writer: the same size, beginning and end */
    mrt_write_file(mrt_path("copies/a3.bin"), text, BYTES);
    text[BYTES - 1] = 1;
    mrt_write_file(mrt_path("copies/b.bin"), text, BYTES);
    text[4000] = 1;
    mrt_write_file(mrt_path("copies/c.bin"), text, BYTES);
    mrt_write_file(mrt_path("copies/d.bin"), text, BYTES - 1);
    MRT_STR(all_of(mrt_path("copies")), "a (1).bin a (2).bin a.bin a3.bin b.bin c.bin d.bin");
    MRT_STR(
        reported,
        "2 of 7 files have the same bytes as another (a (2).bin as a (1).bin): every sample in them counts "
        "twice; remove them, or name the files to use by a pattern");
    unlink(mrt_path("copies/a (2).bin"));
    MRT_STR(all_of(mrt_path("copies/*.bin")), "a (1).bin a.bin a3.bin b.bin c.bin d.bin");
    MRT_HAS(
        reported,
        "1 of 6 files has the same bytes as another (a.bin as a (1).bin): every sample in it counts twice");
    unlink(mrt_path("copies/a (1).bin"));
    all_of(mrt_path("copies"));
    MRT_STR(reported, "");
}

/* Beyond 64 MiB blocks are compared, and the message says so. */
static void large_copies_are_compared_by_blocks(void **state)
{
    (void)state;
    static const char *const names[] = {"a.bin", "b.bin", "c.bin"};
    const off_t bytes = (64 << 20) + 5;
    mrt_mkdir(mrt_path("large"));
    for (size_t k = 0; k < 3; k++) {
        mrt_write_file(mrt_path("large/%s", names[k]), "MARK", 4);
        assert_int_equal(truncate(mrt_path("large/%s", names[k]), bytes), 0);
    }
    const int fd = open(mrt_path("large/c.bin"), O_WRONLY | O_CLOEXEC);
    static char some[600000]; /* longer than from one block to the next */
    memset(some, 1, sizeof some);
    assert_int_equal(pwrite(fd, some, sizeof some, 30 << 20), sizeof some);
    close(fd);
    MRT_STR(all_of(mrt_path("large")), "a.bin b.bin c.bin");
    MRT_HAS(reported,
            "1 of 3 files has the same bytes as another (b.bin as a.bin, by 256 blocks of 4 KiB that "
            "were compared)");
}

static void no_gaps_where_numbers_do_not_count(void **state)
{
    (void)state;
    static const char *const names[] = {"a-1.bin",        "a-2.bin",          "a-10.bin",
                                        "b-20240101.bin", "b-20240301.bin",   "c-000-of-000.bin",
                                        "d-7.bin",        "e-0000000001.bin", "e-0000000003.bin"};
    mrt_mkdir(mrt_path("dates"));
    for (size_t k = 0; k < sizeof names / sizeof names[0]; k++) put(mrt_path("dates/%s", names[k]));
    all_of(mrt_path("dates"));
    MRT_STR(reported, "");
    mrt_mkdir(mrt_path("apart")); /* each part counts for itself, and may begin anywhere */
    for (int k = 0; k < 4; k++) put(mrt_path("apart/%s-%03d.bin", k < 2 ? "x-train" : "x-val", k));
    all_of(mrt_path("apart"));
    MRT_STR(reported, "");
}

static void validation_comes_before_test(void **state)
{
    (void)state;
    static const char *const words[] = {"dev", "eval", "val", "Valid", "validation"};
    for (size_t k = 0; k < sizeof words / sizeof words[0]; k++) {
        char name[64];
        snprintf(name, sizeof name, "x-%s.bin", words[k]);
        mrt_mkdir(mrt_path("prefer%zu", k));
        put(mrt_path("prefer%zu/x-train.bin", k));
        put(mrt_path("prefer%zu/x-test.bin", k));
        MRT_STR(found(mrt_path("prefer%zu", k), MR_SPLIT_TEST, NULL, NULL), "x-test.bin");
        put(mrt_path("prefer%zu/%s", k, name));
        MRT_STR(found(mrt_path("prefer%zu", k), MR_SPLIT_TEST, NULL, NULL), name);
        MRT_HAS(reported, "left out: the test part (1 file)");
        MRT_STR(found(mrt_path("prefer%zu", k), MR_SPLIT_AUTO, NULL, NULL), "x-train.bin");
    }
}

/* A file named like the files of the set was meant to belong to it. */
static void siblings_are_not_left_out(void **state)
{
    (void)state;
    int code;
    mrt_mkdir(mrt_path("sib"));
    put(mrt_path("sib/s-000.bin"));
    put(mrt_path("sib/s-001.bin"));
    mrt_write_file(mrt_path("sib/README.md"), "read me", 7);
    mrt_write_file(mrt_path("sib/s-000.json"), "{}", 2);
    mrt_write_file(mrt_path("sib/s-000.idx"), "0 0", 3);
    mrt_mkdir(mrt_path("sib/old"));
    MRT_STR(all_of(mrt_path("sib")), "s-000.bin s-001.bin");
    MRT_STR(reported, "left out: README.md, old (a folder), s-000.idx, s-000.json");
    mrt_write_file(mrt_path("sib/notes"), "notes", 5);
    MRT_STR(all_of(mrt_path("sib")), "s-000.bin s-001.bin");
    MRT_STR(reported, "left out: README.md, notes (its first bytes are not of this format), old (a folder), "
                      "s-000.idx and 1 more");

    mrt_write_file(mrt_path("sib/s-002.bin"), "", 0);
    MRT_HAS(found(mrt_path("sib"), MR_SPLIT_AUTO, &code, NULL),
            "sib/s-002.bin: named like the files of this");
    MRT_EQ(code, MR_EFORMAT);
    MRT_HAS(found(mrt_path("sib"), MR_SPLIT_AUTO, &code, NULL), "it is empty (0 bytes)");
    mrt_write_file(mrt_path("sib/s-002.bin"), "DAMAGED", 7);
    MRT_HAS(found(mrt_path("sib"), MR_SPLIT_AUTO, &code, NULL), "its first bytes are not of this format");
    MRT_EQ(code, MR_EFORMAT);
    mrt_write_file(mrt_path("sib/s-002.bin"), "version https://git-lfs.github.com/spec/v1\n", 43);
    MRT_HAS(found(mrt_path("sib"), MR_SPLIT_AUTO, &code, NULL), "git-lfs pointer");
    unlink(mrt_path("sib/s-002.bin"));
    mrt_write_file(mrt_path("sib/s-002.bin.gz"), "DAMAGED", 7); /* packed or not, it is one of them */
    MRT_HAS(found(mrt_path("sib"), MR_SPLIT_AUTO, &code, NULL), "sib/s-002.bin.gz: named like");
    unlink(mrt_path("sib/s-002.bin.gz"));
    mrt_write_file(mrt_path("sib/other.bin"), "DAMAGED", 7); /* the ending is enough */
    MRT_HAS(found(mrt_path("sib"), MR_SPLIT_AUTO, &code, NULL), "sib/other.bin: named like");
    unlink(mrt_path("sib/other.bin"));
    MRT_EQ(symlink("nowhere", mrt_path("sib/s-003.bin")), 0);
    MRT_HAS(found(mrt_path("sib"), MR_SPLIT_AUTO, &code, NULL), "sib/s-003.bin: named like");
    MRT_EQ(code, MR_ENOENT);
    unlink(mrt_path("sib/s-003.bin"));
    MRT_EQ(mkfifo(mrt_path("sib/s-003.bin"), 0600), 0);
    MRT_HAS(found(mrt_path("sib"), MR_SPLIT_AUTO, &code, NULL), "neither a file nor a folder");
    unlink(mrt_path("sib/s-003.bin"));
    MRT_STR(all_of(mrt_path("sib")), "s-000.bin s-001.bin");

    mrt_mkdir(mrt_path("sets")); /* a whole set whose only piece is damaged is still a split */
    put(mrt_path("sets/train-00000-of-00001"));
    mrt_write_file(mrt_path("sets/validation-00000-of-00001"), "DAMAGED", 7);
    MRT_HAS(found(mrt_path("sets"), MR_SPLIT_AUTO, &code, NULL),
            "sets/validation-00000-of-00001: named like");
    MRT_EQ(code, MR_EFORMAT);
}

static void unreadable_files_are_errors(void **state)
{
    (void)state;
    int code;
    const bool root = geteuid() == 0; /* who may read everything */
    mrt_mkdir(mrt_path("closed"));
    put(mrt_path("closed/s-000.bin"));
    put(mrt_path("closed/s-001.bin"));
    put(mrt_path("closed/what")); /* it may be anything */
    MRT_EQ(chmod(mrt_temp(), 0755), 0);
    MRT_EQ(chmod(mrt_path("closed"), 0755), 0);
    for (int k = 0; k < 2; k++) MRT_EQ(chmod(mrt_path("closed/s-%03d.bin", k), k ? 0 : 0644), 0);
    MRT_EQ(chmod(mrt_path("closed/what"), 0), 0);
    if (root) MRT_EQ(seteuid(65534), 0);
    const char *text = found(mrt_path("closed"), MR_SPLIT_AUTO, &code, NULL);
    if (root) MRT_EQ(seteuid(0), 0);
    MRT_HAS(text, "closed/s-001.bin: named like");
    MRT_EQ(code, MR_EIO);
    unlink(mrt_path("closed/s-001.bin"));
    if (root) MRT_EQ(seteuid(65534), 0);
    text = found(mrt_path("closed"), MR_SPLIT_AUTO, &code, NULL);
    if (root) MRT_EQ(seteuid(0), 0);
    MRT_HAS(text, "closed/what: named like");
    MRT_EQ(code, MR_EIO);
    unlink(mrt_path("closed/what"));
    MRT_STR(all_of(mrt_path("closed")), "s-000.bin");
}

/* No more files may be opened: that is nobody's fault but the limit's, and no file is left out for it. */
static void limits_of_the_system_are_errors(void **state)
{
    (void)state;
    struct rlimit before, none;
    int code;
    mrt_mkdir(mrt_path("limit"));
    for (int k = 0; k < 4; k++) put(mrt_path("limit/s-%03d.bin", k));
    const char *path = mrt_path("limit");
    MRT_EQ(getrlimit(RLIMIT_NOFILE, &before), 0);
    none = before;
    const int next = dup(0);
    MRT_TRUE(next >= 0);
    close(next);
    none.rlim_cur = (rlim_t)next + 1; /* the folder itself can be opened, its files cannot */
    MRT_EQ(setrlimit(RLIMIT_NOFILE, &none), 0);
    char text[1024];
    snprintf(text, sizeof text, "%s", found(path, MR_SPLIT_AUTO, &code, NULL));
    mr_error trouble = MR_ERROR_INIT, err = MR_ERROR_INIT;
    mr_source *src;
    const bool probed = mri_filelist_probe(path, begins_with_mark, &trouble);
    const int opened = mr_source_open(&src, path, NULL, &err);
    MRT_EQ(setrlimit(RLIMIT_NOFILE, &before), 0);
    MRT_HAS(text, "Too many open files");
    MRT_EQ(code, MR_EIO);
    MRT_TRUE(!probed);
    MRT_EQ(trouble.sys_errno, EMFILE);
    MRT_EQ(opened, MR_EIO); /* and not "no known format" */
    MRT_EQ(err.sys_errno, EMFILE);
}

static void patterns_take_all_or_fail(void **state)
{
    (void)state;
    int code;
    mrt_mkdir(mrt_path("pall"));
    put(mrt_path("pall/x-train-0.bin"));
    put(mrt_path("pall/x-val-0.bin"));
    put(mrt_path("pall/x-train-0.bin.mridx")); /* as 0.4 wrote it */
    MRT_STR(all_of(mrt_path("pall/x-*")), "x-train-0.bin x-val-0.bin");
    MRT_HAS(reported, "files of several parts are taken together");
    mrt_mkdir(mrt_path("pall/x-more"));
    MRT_HAS(found(mrt_path("pall/x-*"), MR_SPLIT_AUTO, &code, NULL),
            "pall/x-more: the pattern names it, and it is no file");
    MRT_EQ(code, MR_EFORMAT);
    mrt_write_file(mrt_path("pall/x-empty.bin"), "", 0);
    MRT_HAS(found(mrt_path("pall/x-*.bin"), MR_SPLIT_AUTO, &code, NULL), "x-empty.bin: the file is empty");
    MRT_EQ(code, MR_EFORMAT);
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
        cmocka_unit_test(one_file_is_one_file),
        cmocka_unit_test(a_piece_stands_for_its_set),
        cmocka_unit_test(folders_go_by_content),
        cmocka_unit_test(parts_are_reported_apart),
        cmocka_unit_test(parts_may_be_folders),
        cmocka_unit_test(patterns_are_counted_out),
        cmocka_unit_test(patterns_name_a_file_once),
        cmocka_unit_test(patterns_that_match_nothing),
        cmocka_unit_test(parts_stand_anywhere_in_names),
        cmocka_unit_test(validation_comes_before_test),
        cmocka_unit_test(siblings_are_not_left_out),
        cmocka_unit_test(unreadable_files_are_errors),
        cmocka_unit_test(limits_of_the_system_are_errors),
        cmocka_unit_test(patterns_take_all_or_fail),
        cmocka_unit_test(gaps_are_told),
        cmocka_unit_test(copies_are_told),
        cmocka_unit_test(large_copies_are_compared_by_blocks),
        cmocka_unit_test(no_gaps_where_numbers_do_not_count),
        cmocka_unit_test(allocations_fail_in_turn),
    };
    return mrt_run(tests);
}
