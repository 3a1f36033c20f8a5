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

static int open_by(const char *path, mr_split split, mr_class_rule classes, mr_source **src, mr_error *err)
{
    mr_source_config cfg;
    mr_source_defaults(&cfg);
    cfg.split = split;
    cfg.classes = classes;
    return mr_source_open(src, path, &cfg, err);
}

static int try_open(const char *path, mr_split split, mr_source **src, mr_error *err)
{
    return open_by(path, split, MR_CLASSES_FIRST, src, err);
}

/* Files "a/b/c.jpg" below a new folder, folders made as they come up; what ends in / is a folder. */
static void make_tree(const char *name, const char *const *files)
{
    mrt_mkdir(mrt_path("%s", name));
    for (; *files; files++) {
        char path[512];
        snprintf(path, sizeof path, "%s/%s", name, *files);
        for (char *slash = strchr(path + strlen(name) + 1, '/'); slash; slash = strchr(slash + 1, '/')) {
            *slash = '\0';
            mkdir(mrt_path("%s", path), 0777);
            *slash = '/';
        }
        if (path[strlen(path) - 1] != '/') put(mrt_path("%s", path), strstr(path, ".png") ? png : jpeg);
    }
}

/* The source: its classes and its samples below its folder, with their labels. */
static void expect_tree(const mr_source *src, const char *expected)
{
    const mr_source_info *info = mr_source_info_of(src);
    char text[2048] = "", path[512];
    for (uint32_t k = 0; k < info->class_count; k++)
        snprintf(text + strlen(text), sizeof text - strlen(text), "%s%s", k ? "," : "", info->class_names[k]);
    for (uint64_t i = 0; i < info->count; i++) {
        int64_t label = -1;
        mr_source_sample_path(src, i, path, sizeof path);
        MRT_EQ(mr_source_label(src, i, &label), info->label_field < 0 ? MR_EUNSUPPORTED : MR_OK);
        snprintf(text + strlen(text), sizeof text - strlen(text), " %s=%d", path + strlen(info->path) + 1,
                 (int)label);
    }
    MRT_STR(text, expected);
}

static void check_tree(const char *name, mr_split split, mr_class_rule classes, const char *expected,
                       const char *reported)
{
    mr_source *src;
    mr_error err = MR_ERROR_INIT;
    MRT_OK(open_by(mrt_path("%s", name), split, classes, &src, &err), &err);
    expect_tree(src, expected);
    MRT_STR(mr_source_info_of(src)->told ? mr_source_info_of(src)->told : "", reported);
    mr_source_close(src);
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
    put(mrt_path("%s/b/10.data", name), png);
    put(mrt_path("%s/b/note", name), "no picture");
    put(mrt_path("%s/B/x.jpg", name), "no picture");
    put(mrt_path("%s/a c/y", name), png);
    put(mrt_path("%s/a c/.hidden", name), jpeg);
    put(mrt_path("%s/README", name), "hello");
    mrt_mkdir(mrt_path("%s/a c/nested", name));
}

/* Links are followed, but their targets may be anybody's. */
static void nothing_outside_is_quoted(void **state)
{
    (void)state;
    static const char *const files[] = {"cat/1.jpg", "dog/2.jpg", NULL};
    make_tree("linked", files);
    mrt_mkdir(mrt_path("aside"));
    put(mrt_path("aside/words"), "secret words");
    put(mrt_path("aside/other.jpg"), "secret words");
    put(mrt_path("aside/psd"), "8BPS and more");
    put(mrt_path("linked/cat/mine.jpg"), "my words");
    MRT_EQ(symlink("../../aside/other.jpg", mrt_path("linked/cat/other.jpg")), 0);
    MRT_EQ(symlink("../../aside/psd", mrt_path("linked/cat/psd.jpg")), 0);
    MRT_EQ(symlink("../../aside/words", mrt_path("linked/cat/words")), 0);
    MRT_EQ(symlink("mine.jpg", mrt_path("linked/cat/near.jpg")), 0);
    MRT_EQ(symlink("../aside", mrt_path("linked/far")), 0);
    mr_source *src;
    mr_error err = MR_ERROR_INIT;
    void *buf = NULL;
    size_t bytes = 0;
    MRT_OK(try_open(mrt_path("linked"), MR_SPLIT_AUTO, &src, &err), &err);
    MRT_STR(
        mr_source_info_of(src)->told,
        "left out: 3 files that are no pictures (cat/words: not quoted, far/psd: a Photoshop "
        "picture, far/words: not quoted)\n2 pictures have several names (cat/mine.jpg and cat/near.jpg are "
        "the same file, ...), and each name is a sample; 1 in several classes");
    static const struct {
        const char *end, *text;
    } expected[] = {{"cat/1.jpg", NULL},
                    {"cat/mine.jpg", "found text (\"my words\")"},
                    {"cat/near.jpg", "found text (\"my words\")"},
                    {"cat/other.jpg", "found something else (not quoted: a link leads to it"},
                    {"cat/psd.jpg", "found a Photoshop picture: convert it"},
                    {"dog/2.jpg", NULL},
                    {"far/other.jpg", "found something else (not quoted: a link leads to it"}};
    MRT_EQ(mr_source_info_of(src)->count, sizeof expected / sizeof expected[0]);
    for (size_t k = 0; k < sizeof expected / sizeof expected[0]; k++) {
        mr_sample s;
        MRT_EQ(mr_source_read(src, k, &buf, &bytes, &s, &err), expected[k].text ? MR_EFORMAT : MR_OK);
        if (!expected[k].text) continue;
        MRT_HAS(err.file, expected[k].end);
        MRT_HAS(err.text, expected[k].text);
        MRT_TRUE(!strstr(err.text, "secret"));
    }
    free(buf);
    mr_source_close(src);
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
    MRT_EQ(info->skipped_files, 4);
    MRT_STR(info->told,
            "left out: 2 files that are no pictures (README: text (\"hello\"), b/note: text (\"no "
            "picture\"))\nleft out: 1 folder inside class folders (a c/nested); --classes depth "
            "makes a class of each folder");
    MRT_EQ(info->max_extent_bytes, sizeof png - 1);
    MRT_TRUE(!info->has_test);
    static const struct {
        const char *end;
        int64_t label;
    } expected[] = {{"/B/x.jpg", 0}, {"/a c/y", 1}, {"/b/10.data", 2}, {"/b/2.jpg", 2}};
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
            MRT_HAS(err.file, "/B/x.jpg");
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
    expect_error(mrt_path("bare"), MR_EFORMAT, "found the pictures directly in it; --classes none", "bare");
    mrt_mkdir(mrt_path("bare/one"));
    expect_error(mrt_path("bare"), MR_EFORMAT, "no pictures in any class", "bare");
    put(mrt_path("bare/one/a.psd"), "8BPS        ");
    put(mrt_path("bare/one/b.txt"), "hello");
    expect_error(mrt_path("bare"), MR_EFORMAT,
                 "no pictures in any class, but 2 files that are no pictures (one/b.txt, "
                 "one/a.psd: PSD is not decoded)",
                 "bare");
    mr_source *src;
    mr_error err = MR_ERROR_INIT;
    MRT_EQ(open_by(mrt_path("bare/one"), MR_SPLIT_AUTO, MR_CLASSES_NONE, &src, &err), MR_EFORMAT);
    MRT_HAS(err.text, "no pictures in any folder, but 2 files");
}

/* Files next to pictures, and links, as people have them: left out and reported, not taken for samples. */
static void what_is_no_picture_is_left_out(void **state)
{
    (void)state;
    static const char *const files[] = {"cat/1.jpg", "cat/2.PNG", "cat/3.jpeg", "dog/4.JPG", "owl/", NULL};
    make_tree("mixed", files);
    put(mrt_path("mixed/cat/notes.txt"), "hello");
    put(mrt_path("mixed/cat/Thumbs.db"), "hello");
    put(mrt_path("mixed/cat/.DS_Store"), "hello");
    put(mrt_path("mixed/cat/desktop.ini"), "hello");
    put(mrt_path("mixed/cat/a.psd"), "8BPS        ");
    put(mrt_path("mixed/cat/b.gif"), jpeg); /* misnamed, as many are */
    put(mrt_path("mixed/labels.csv"), "a,b");
    put(mrt_path("mixed/stray.jpg"), jpeg);
    MRT_EQ(symlink("/no/such/file", mrt_path("mixed/dog/gone.jpg")), 0);
    MRT_EQ(symlink("self", mrt_path("mixed/dog/self")), 0);
    MRT_EQ(symlink("nowhere", mrt_path("mixed/link")), 0);
    MRT_EQ(symlink("4.JPG", mrt_path("mixed/dog/link.jpg")), 0); /* links to files are followed */
    MRT_EQ(mkfifo(mrt_path("mixed/dog/fifo"), 0666), 0);
    check_tree(
        "mixed", MR_SPLIT_AUTO, MR_CLASSES_FIRST,
        "cat,dog,owl cat/1.jpg=0 cat/2.PNG=0 cat/3.jpeg=0 cat/b.gif=0 dog/4.JPG=1 dog/link.jpg=1",
        "left out: 6 files that are no pictures (cat/Thumbs.db, cat/desktop.ini, cat/notes.txt, ..., "
        "cat/a.psd: PSD is not decoded)\n"
        "left out: 3 links to nothing (dog/gone.jpg, dog/self, link)\n"
        "left out: 1 picture next to the folders (stray.jpg)\n"
        "1 class folder (owl/) without pictures: a class all the same\n"
        "1 picture has several names (dog/4.JPG and dog/link.jpg are the same file), and each name is a "
        "sample");
    mr_source *src;
    mr_error err = MR_ERROR_INIT;
    MRT_OK(try_open(mrt_path("mixed"), MR_SPLIT_AUTO, &src, &err), &err);
    MRT_EQ(mr_source_info_of(src)->skipped_files, 11);
    mr_source_close(src);
}

/* Root reads everything, by two capabilities: without them it is the owner of its files, and no more. It
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

/* The printed names are the first by their bytes, whatever order the file system has. */
static void names_told_are_the_first(void **state)
{
    (void)state;
    static const char *const files[] = {"a/1.jpg", "b/2.jpg", NULL};
    make_tree("first", files);
    for (int k = 40; k-- > 0;) put(mrt_path("first/a/%c%d.txt", k % 2 ? 'x' : 'y', k), "hello");
    put(mrt_path("first/a/damaged"), ""); /* a name without an ending, and nothing in it: a bad sample */
    check_tree("first", MR_SPLIT_AUTO, MR_CLASSES_FIRST, "a,b a/1.jpg=0 a/damaged=0 b/2.jpg=1",
               "left out: 40 files that are no pictures (a/x1.txt, a/x11.txt, a/x13.txt, ...)");
}

static void classes_by_depth(void **state)
{
    (void)state;
    static const char *const files[] = {
        "animals/cat/1.jpg", "animals/dog/2.jpg", "animals/3.jpg", "plants/rose/4.jpg",
        "plants/fern/",      "plants/docs/",      "5.jpg",         NULL};
    make_tree("deep", files);
    put(mrt_path("deep/plants/docs/a.json"), "{}");
    MRT_EQ(symlink("..", mrt_path("deep/plants/rose/up")), 0);
    check_tree("deep", MR_SPLIT_AUTO, MR_CLASSES_DEPTH,
               "animals,animals/cat,animals/dog,plants/fern,plants/rose animals/3.jpg=0 animals/cat/1.jpg=1 "
               "animals/dog/2.jpg=2 plants/rose/4.jpg=4",
               "left out: 1 link to nothing (plants/rose/up/: a folder it lies in)\n"
               "left out: 1 picture next to the folders (5.jpg)\n"
               "left out: 1 folder that holds other files only (plants/docs/)\n"
               "1 class folder (plants/fern/) without pictures: a class all the same");
    check_tree(
        "deep", MR_SPLIT_AUTO, MR_CLASSES_FIRST, "animals animals/3.jpg=0",
        "left out: 1 picture next to the folders (5.jpg)\n"
        "left out: 2 folders inside class folders (animals/cat, animals/dog); --classes depth "
        "makes a class of each folder\n"
        "left out: 1 folder that holds only folders (plants/); --classes depth makes a class of each folder");
    unlink(mrt_path("deep/animals/3.jpg"));
    expect_error(mrt_path("deep"), MR_EFORMAT, "found the pictures directly in it", "deep");
    unlink(mrt_path("deep/5.jpg"));
    expect_error(mrt_path("deep"), MR_EFORMAT,
                 "no pictures in the first level of folders, but 2 folders that hold only folders (animals/, "
                 "plants/): --classes depth",
                 "deep");
}

static void no_classes(void **state)
{
    (void)state;
    static const char *const files[] = {"b.jpg", "a/2.png", "a/deeper/3.jpg", "a.jpg", NULL};
    make_tree("flat", files);
    put(mrt_path("flat/a/x.txt"), "hello");
    check_tree("flat", MR_SPLIT_AUTO, MR_CLASSES_NONE, " a.jpg=-1 b.jpg=-1 a/2.png=-1 a/deeper/3.jpg=-1",
               "left out: 1 file that is no picture (a/x.txt)");
    mr_source *src;
    mr_error err = MR_ERROR_INIT;
    mr_sample s;
    void *buffer = NULL;
    size_t bytes = 0;
    MRT_OK(open_by(mrt_path("flat"), MR_SPLIT_AUTO, MR_CLASSES_NONE, &src, &err), &err);
    const mr_source_info *info = mr_source_info_of(src);
    MRT_EQ(info->field_count, 1);
    MRT_EQ(info->label_field, -1);
    MRT_EQ(info->class_count, 0);
    MRT_TRUE(info->class_names == NULL);
    MRT_OK(mr_source_read(src, 2, &buffer, &bytes, &s, &err), &err);
    MRT_EQ(s.value_count, 1);
    MRT_EQ(s.value[0].type, MR_TYPE_PNG);
    free(buffer);
    mr_source_close(src);
}

/* Downloads of COCO, and folders of pictures beside folders of what belongs to them: no classes. */
static void parts_without_classes(void **state)
{
    (void)state;
    static const char *const coco[] = {"train2017/1.jpg", "train2017/2.jpg", "val2017/3.jpg", "annotations/",
                                       NULL};
    make_tree("coco", coco);
    put(mrt_path("coco/annotations/instances_val2017.json"), "{}");
    expect_error(mrt_path("coco"), MR_EFORMAT, "no class folders", "coco/train2017");
    expect_error(mrt_path("coco"), MR_EFORMAT, "--classes none", "coco/train2017");
    check_tree("coco", MR_SPLIT_AUTO, MR_CLASSES_NONE, " train2017/1.jpg=-1 train2017/2.jpg=-1",
               "left out: 1 folder that is no part (annotations)");
    check_tree("coco", MR_SPLIT_TEST, MR_CLASSES_NONE, " val2017/3.jpg=-1",
               "left out: 1 folder that is no part (annotations)");
    static const char *const voc[] = {"images/1.jpg", "images/2.jpg", "annotations/", NULL};
    make_tree("voc", voc);
    put(mrt_path("voc/annotations/1.xml"), "<a/>");
    expect_error(mrt_path("voc"), MR_EFORMAT,
                 "all pictures lie in images/, next to it 1 folder that holds other "
                 "files only (annotations/); --classes none",
                 "voc");
    static const char *const kaggle[] = {"train/1.jpg", "test/2.jpg", NULL};
    make_tree("kaggle", kaggle);
    expect_error(mrt_path("kaggle"), MR_EFORMAT, "no class folders", "kaggle/train");
}

/* A name that looks like a part's is a class all the same where others are; a pair of them is refused. */
static void names_of_parts(void **state)
{
    (void)state;
    static const char *const vehicles[] = {"bus/1.jpg", "train/3.jpg", NULL};
    make_tree("vehicles", vehicles);
    check_tree("vehicles", MR_SPLIT_AUTO, MR_CLASSES_FIRST, "bus,train bus/1.jpg=0 train/3.jpg=1", "");
    static const char *const pair[] = {"extra/1.jpg", "test/2.jpg", "train/3.jpg", NULL};
    make_tree("pair", pair);
    expect_error(mrt_path("pair"), MR_EFORMAT, "train/ and test/ are called like splits", "pair");
    static const char *const years[] = {"train2017/a/1.jpg", "train2017/b/1.jpg", "val2017/b/2.jpg",
                                        "notes/1.jpg", NULL};
    make_tree("years", years);
    check_tree("years", MR_SPLIT_TRAIN, MR_CLASSES_FIRST, "a,b train2017/a/1.jpg=0 train2017/b/1.jpg=1",
               "left out: 1 folder that is no part (notes)");
    check_tree("years", MR_SPLIT_TEST, MR_CLASSES_FIRST, "a,b val2017/b/2.jpg=1",
               "left out: 1 folder that is no part (notes)");
    static const char *const words[] = {"seg_train/a/1.jpg", "seg_test/a/2.jpg", "Seg_Val/a/3.jpg", NULL};
    make_tree("words", words);
    check_tree("words", MR_SPLIT_TEST, MR_CLASSES_FIRST, "a Seg_Val/a/3.jpg=0",
               "of Seg_Val/ and seg_test/ the part to test with is Seg_Val/");
    static const char *const tube[] = {"steam train/x/1.jpg", "bus/2.jpg", NULL};
    make_tree("tube", tube);
    check_tree("tube", MR_SPLIT_AUTO, MR_CLASSES_FIRST, "bus bus/2.jpg=0",
               "left out: 1 folder that holds only folders (steam train/); --classes depth "
               "makes a class of each folder");
}

/* As in sets of files: labels of a test part are often kept from the public. */
static void validation_comes_before_test(void **state)
{
    (void)state;
    static const char *const words[] = {"dev", "eval", "val", "Valid", "validation"};
    for (size_t k = 0; k < sizeof words / sizeof words[0]; k++) {
        char name[32], picture[64], expected[96], reported[128];
        snprintf(name, sizeof name, "prefer%zu", k);
        snprintf(picture, sizeof picture, "%s/a/2.jpg", words[k]);
        snprintf(expected, sizeof expected, "a %s=0", picture);
        snprintf(reported, sizeof reported, "of %s/ and test/ the part to test with is %s/", words[k],
                 words[k]);
        const char *const files[] = {"train/a/1.jpg", picture, "test/a/3.jpg", NULL};
        make_tree(name, files);
        check_tree(name, MR_SPLIT_TEST, MR_CLASSES_FIRST, expected, reported);
        check_tree(name, MR_SPLIT_AUTO, MR_CLASSES_FIRST, "a train/a/1.jpg=0", reported);
    }
    static const char *const files[] = {"train/a/1.jpg", "t10k/a/2.jpg", NULL};
    make_tree("prefer", files);
    check_tree("prefer", MR_SPLIT_TEST, MR_CLASSES_FIRST, "a t10k/a/2.jpg=0", "");
}

static void only_a_test_part(void **state)
{
    (void)state;
    static const char *const files[] = {"val/a/1.jpg", "val/b/2.jpg", NULL};
    make_tree("tests", files);
    mr_source *src;
    mr_error err = MR_ERROR_INIT;
    check_tree("tests", MR_SPLIT_AUTO, MR_CLASSES_FIRST, "a,b val/a/1.jpg=0 val/b/2.jpg=1",
               "there is no train part: the test or validation part is all that is taken");
    check_tree("tests", MR_SPLIT_TEST, MR_CLASSES_FIRST, "a,b val/a/1.jpg=0 val/b/2.jpg=1", "");
    MRT_OK(try_open(mrt_path("tests"), MR_SPLIT_AUTO, &src, &err), &err);
    MRT_TRUE(mr_source_info_of(src)->only_test);
    mr_source_close(src);
    MRT_EQ(try_open(mrt_path("tests"), MR_SPLIT_TRAIN, &src, &err), MR_ENOENT);
    MRT_HAS(err.text, "no train part: found only val/");
}

static void unreadable_is_named(void **state)
{
    (void)state;
    mrt_mkdir(mrt_path("locked"));
    mrt_mkdir(mrt_path("locked/a"));
    mrt_mkdir(mrt_path("locked/b"));
    put(mrt_path("locked/a/1.jpg"), jpeg);
    put(mrt_path("locked/b/1.jpg"), jpeg);
    chmod(mrt_path("locked/a/1.jpg"), 0);
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
    mr_source_close(src);
    put(mrt_path("locked/a/odd"), jpeg); /* only its first bytes could show its kind */
    chmod(mrt_path("locked/a/odd"), 0);
    MRT_EQ(try_open(mrt_path("locked"), MR_SPLIT_AUTO, &src, &err), MR_EIO);
    MRT_HAS(err.file, "locked/a/odd");
    MRT_HAS(err.text, "cannot look into it: Permission denied; let this user read it (chmod)");
    unlink(mrt_path("locked/a/odd"));
    MRT_OK(try_open(mrt_path("locked"), MR_SPLIT_AUTO, &src, &err), &err);
    MRT_EQ(mr_source_read(src, 0, &buf, &buf_bytes, &s, &err), MR_EIO);
    MRT_HAS(err.file, "locked/a/1.jpg");
    MRT_HAS(err.text, "cannot open: Permission denied; let this user read it (chmod)");
    MRT_TRUE(!mr_error_of_sample(MR_EIO, &err));
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
    for (int rule = MR_CLASSES_FIRST; rule <= MR_CLASSES_NONE; rule++)
        for (long n = 0;; n++) {
            mr_error err = MR_ERROR_INIT;
            mr_source *src = (mr_source *)&err;
            mrt_fail_alloc_at(n);
            const int rc = open_by(mrt_path("alloc"), MR_SPLIT_AUTO, (mr_class_rule)rule, &src, &err);
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
        cmocka_unit_test(nothing_outside_is_quoted),
        cmocka_unit_test(huge_files_are_bad_samples_that_nobody_reads),
        cmocka_unit_test(order_and_numbers),
        cmocka_unit_test(fingerprint_knows_names_and_sizes),
        cmocka_unit_test(train_and_test),
        cmocka_unit_test(wrong_folders_are_named),
        cmocka_unit_test(what_is_no_picture_is_left_out),
        cmocka_unit_test(names_told_are_the_first),
        cmocka_unit_test(classes_by_depth),
        cmocka_unit_test(no_classes),
        cmocka_unit_test(parts_without_classes),
        cmocka_unit_test(names_of_parts),
        cmocka_unit_test(validation_comes_before_test),
        cmocka_unit_test(only_a_test_part),
        cmocka_unit_test(unreadable_is_named),
        cmocka_unit_test(memory_is_bounded),
        cmocka_unit_test(allocations_fail_in_turn),
    };
    return mrt_run(tests);
}
