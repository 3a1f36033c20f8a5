/* Tables of pictures: quoting, separators, columns, classes, and everything a line can have wrong with it. */
#include <errno.h>
#include <isa-l/igzip_lib.h>
#include <sys/stat.h>
#include <unistd.h>

#include "formats/text/csv.h"
#include "millrace/formats.h"
#include "mrt.h"
#include "tests/formats/mrt_turns.h"

static const uint8_t jpeg[] = {0xff, 0xd8, 0xff, 0xe0, 1, 2, 3};

/* The system's error for paths with this ending; 0: its real answer. */
static const char *failing_path;
static int failing_with;
int __real_fstatat(int folder, const char *path, struct stat *out, int flags);
char *__real_realpath(const char *path, char *out);
int __wrap_fstatat(int folder, const char *path, struct stat *out, int flags);
int __wrap_fstatat64(int folder, const char *path, struct stat *out, int flags);
char *__wrap_realpath(const char *path, char *out);

static bool fails(const char *path)
{
    const size_t n = strlen(path), m = failing_with ? strlen(failing_path) : 0;
    if (!failing_with || n < m || strcmp(path + n - m, failing_path) != 0) return false;
    errno = failing_with;
    return true;
}

int __wrap_fstatat(int folder, const char *path, struct stat *out, int flags)
{
    return fails(path) ? -1 : __real_fstatat(folder, path, out, flags);
}

int __wrap_fstatat64(int folder, const char *path, struct stat *out, int flags)
{
    return __wrap_fstatat(folder, path, out, flags);
}

char *__wrap_realpath(const char *path, char *out) { return fails(path) ? NULL : __real_realpath(path, out); }

static void make_pictures(const char *folder)
{
    mrt_mkdir(mrt_path("%s", folder));
    mrt_mkdir(mrt_path("%s/in", folder));
    for (int k = 0; k < 4; k++)
        mrt_write_file(mrt_path("%s/%c.jpg", folder, 'a' + k), jpeg, sizeof jpeg - (size_t)k % 3);
    mrt_write_file(mrt_path("%s/in/e,1.jpg", folder), jpeg, sizeof jpeg);
}

static const char *write_table(const char *text, size_t bytes)
{
    make_pictures("t");
    const char *path = mrt_path("t/list");
    mrt_write_file(path, text, bytes);
    return path;
}

static mr_source_config config(const char *image, const char *label)
{
    mr_source_config cfg;
    mr_source_defaults(&cfg);
    cfg.image_key = image;
    cfg.label_key = label;
    return cfg;
}

static int open_text(mr_source **src, const char *text, const char *image, const char *label, mr_error *err)
{
    mr_source_config cfg = config(image, label);
    cfg.format = "csv";
    *err = (mr_error)MR_ERROR_INIT;
    return mr_source_open(src, write_table(text, strlen(text)), &cfg, err);
}

/* The same with files outside of the table's folder. */
static int open_taken(mr_source **src, const char *text, mr_error *err)
{
    mr_source_config cfg = config(NULL, NULL);
    cfg.format = "csv";
    cfg.outside = MR_OUTSIDE_TAKE;
    *err = (mr_error)MR_ERROR_INIT;
    return mr_source_open(src, write_table(text, strlen(text)), &cfg, err);
}

/* Opens, has these files and classes. */
static void expect(const char *text, const char *image, const char *label, const char *files,
                   const char *classes)
{
    mr_source *src;
    mr_error err;
    char got_files[200] = "", got_classes[200] = "", path[1024];
    MRT_OK(open_text(&src, text, image, label, &err), &err);
    for (uint64_t k = 0; k < mr_source_info_of(src)->count; k++) {
        int64_t label_found;
        mr_source_sample_path(src, k, path, sizeof path);
        MRT_EQ(mr_source_label(src, k, &label_found), MR_OK);
        snprintf(got_files + strlen(got_files), 100, "%s ", path + strlen(mrt_path("t/")));
        snprintf(got_classes + strlen(got_classes), 100, "%lld ", (long long)label_found);
    }
    MRT_STR(got_files, files);
    MRT_STR(got_classes, classes);
    mr_source_close(src);
}

static void refuse(const char *text, int code, const char *line, const char *why)
{
    mr_source *src;
    mr_error err;
    MRT_EQ(open_text(&src, text, NULL, NULL, &err), code);
    MRT_TRUE(src == NULL);
    if (line) MRT_HAS(err.text, line);
    MRT_HAS(err.text, why);
    MRT_HAS(err.file, "t/list");
}

static void columns_and_separators(void **state)
{
    (void)state;
    expect("path,label\na.jpg,3\nb.jpg,0\n", NULL, NULL, "a.jpg b.jpg ", "3 0 ");
    expect("a.jpg,3\nb.jpg,0", NULL, NULL, "a.jpg b.jpg ", "3 0 ");
    expect("\xef\xbb\xbf"
           "class;id; FileName \r\n0;9;a.jpg\r\n\r\n2;8; b.jpg \r\n",
           NULL, NULL, "a.jpg b.jpg ", "0 2 ");
    expect("id\timage\ttarget\r1\ta.jpg\t0\r2\tb.jpg\t5\r", NULL, NULL, "a.jpg b.jpg ", "0 5 ");
    expect("7,a.jpg,0\n7,b.jpg,1\n", "2", "3", "a.jpg b.jpg ", "0 1 ");
    expect("what,kind\na.jpg,0\nb.jpg,1\n", "what", "kind", "a.jpg b.jpg ", "0 1 ");
    expect("label,path,y\n0,a.jpg,4\n0,b.jpg,6\n", "path", "3", "a.jpg b.jpg ", "4 6 ");
    expect("path|label\nb.jpg|1\n\"in/e,1.jpg\"|0\n", NULL, NULL, "b.jpg in/e,1.jpg ", "1 0 ");
    expect("path,label\na.jpg,3.0\nb.jpg,10.00\n", NULL, NULL, "a.jpg b.jpg ", "3 10 ");
    mrt_write_file(mrt_path("t/my photo.jpg"), jpeg, sizeof jpeg);
    expect("a.jpg 3\r\nmy photo.jpg  0 \nb.jpg 0", NULL, NULL, "a.jpg my photo.jpg b.jpg ", "3 0 0 ");
    MRT_EQ(unlink(mrt_path("t/my photo.jpg")), 0);
    refuse("a.jpg 3\nb.jpg\n", MR_EFORMAT, "line 2:", "expected 2 columns");
}

/* Objects of JSON are rows, one after the other or in a list. */
static void rows_of_json(void **state)
{
    (void)state;
    expect("{\"file_name\": \"a.jpg\", \"label\": 3, \"box\": {\"x\": [1, \"}\"]}}\n"
           "{\"label\": 0, \"file_name\": \"in/e,1.jpg\"}\n\n",
           NULL, NULL, "a.jpg in/e,1.jpg ", "3 0 ");
    expect(" [ {\"file\": \"a.jpg\", \"kind\": \"\\u00e9\"},\n{\"kind\": \"b\", \"file\": \"b.jpg\"} ]", NULL,
           "kind", "a.jpg b.jpg ", "1 0 ");
    expect("[{\"image\":\"a.jpg\",\"y\":true},{\"image\":\"b.jpg\",\"y\":false}]", NULL, NULL, "a.jpg b.jpg ",
           "1 0 ");
    expect("{\"file\":\"a.jpg\",\"label\":1}\n{\"file\":\"b.jpg\",\"label\":0,\"note\":[3]}", NULL, NULL,
           "a.jpg b.jpg ", "1 0 ");
    expect("{\"file\":\"a.jpg\",\"label\":1}\n{\"file\":\"b.jpg\"}\n{\"file\":\"d.jpg\",\"label\":null}",
           NULL, NULL, "a.jpg ", "1 ");
    static const struct {
        const char *text, *line, *why;
    } bad[] = {
        {"{\"file\":\"a.jpg\",\"label\":[1,2]}", "line 1:", "the class in column 2 is a list or an object"},
        {"{\"file\":[\"a.jpg\"],\"label\":1}", "line 1:", "the picture in column 1 is a list"},
        {"{\"file\":\"a.jpg\",\"label\":1}\n{\"file\":\"b.jpg\",\"class\":2}",
         "line 2:", "key class is not in the first object"},
        {"{\"file\":\"a.jpg\",\"label\":1}\n{\"file\":\"b.jpg\"", "line 2:", "never closed"},
        {"{\"file\":\"a.jpg\",\"label\":1}\n{\"file\" 2}", "line 2:", "damaged"},
        {"{\"file\":\"a.jpg\",\"label\":1},{}", "line 1:", "expected an object"},
        {"{\"file\":\"a.jpg\",\"label\":\"a\\u0000b\"}", "line 1:", "a NUL"},
        {"{\"file\":\"a.jpg\",\"label\":\"\xff\"}", "line 1:", "no UTF-8"},
        {"[{\"file\":\"a.jpg\",\"label\":1}", "line 1:", "the list is not closed"},
        {"[{\"file\":\"a.jpg\",\"label\":1}{}]", "line 1:", "expected a comma"},
        {"[{\"file\":\"a.jpg\",\"label\":1}]\nx", "line 2:", "something follows"},
        {"[{\"file\":\"a.jpg\",\"label\":1}, 3]", "line 1:", "expected an object"},
        {"[{}]", "line 1:", "an object without keys"},
    };
    for (size_t k = 0; k < sizeof bad / sizeof *bad; k++)
        refuse(bad[k].text, MR_EFORMAT, bad[k].line, bad[k].why);
}

static void quotes(void **state)
{
    (void)state;
    expect("path,label,note\n\"in/e,1.jpg\",1,\"two\nlines, \"\"quoted\"\"\"\n\"a.jpg\",\"0\",\n", NULL, NULL,
           "in/e,1.jpg a.jpg ", "1 0 ");
    refuse("path,label\n\"a.jpg\",0\nb.jpg,\"1\n", MR_EFORMAT, "line 3:", "never closed");
    refuse("path,label\n\"a.jpg\"x,0\n", MR_EFORMAT, "line 2:", "after a closing quote");
    refuse("path,label\n\"a\n\n\".jpg,0\n", MR_EFORMAT, "line 4:", "after a closing quote");
}

static void classes(void **state)
{
    (void)state;
    mr_source *src;
    mr_error err;
    MRT_OK(open_text(&src, "path,label\na.jpg,zebra\nb.jpg,Ant\nc.jpg,\xc3\xa9t\xc3\xa9\nd.jpg,Ant\n", NULL,
                     NULL, &err),
           &err);
    const mr_source_info *info = mr_source_info_of(src);
    MRT_EQ(info->class_count, 3);
    MRT_STR(info->class_names[0], "Ant");
    MRT_STR(info->class_names[2], "\xc3\xa9t\xc3\xa9");
    const int64_t want[] = {1, 0, 2, 0};
    for (uint64_t k = 0; k < 4; k++) {
        int64_t label;
        MRT_EQ(mr_source_label(src, k, &label), MR_OK);
        MRT_EQ(label, want[k]);
    }
    mr_source_close(src);
    MRT_OK(open_text(&src, "path,label\na.jpg,1\nb.jpg,3\n", NULL, NULL, &err), &err); /* begins at 1 */
    info = mr_source_info_of(src);
    MRT_EQ(info->class_count, 4);
    MRT_EQ(info->label_offset, 0);
    MRT_EQ(mr_source_labels_of(src)->min, 1);
    MRT_EQ(mr_source_labels_of(src)->max, 3);
    mr_source_close(src);
    refuse("path,label\na.jpg,1\nb.jpg,2\nc.jpg,cat\n", MR_EFORMAT, "line 4:", "mixed");
    refuse("path,label\na.jpg,0\nb.jpg,-1\n", MR_EFORMAT, "line 3:", "negative");
    refuse("path,label\na.jpg,0\nb.jpg,1099511627776\n", MR_EFORMAT, "line 3:", "too large");
    refuse("path,label\na.jpg,0\nb.jpg,99999999999999999999\n", MR_EFORMAT, "line 3:", "mixed"); /* fits no
                                                                                                    integer at
                                                                                                    all */
    refuse("path,label\na.jpg,\nb.jpg, \n", MR_EFORMAT, "no row has a class", "--label-key");
}

static void bad_rows(void **state)
{
    (void)state;
    refuse("path,label\na.jpg,0\nb.jpg\n", MR_EFORMAT,
           "line 3:", "expected 2 columns as in the first line, found 1");
    refuse("path,label\na.jpg,0,7\n", MR_EFORMAT, "line 2:", "found 3");
    refuse("path,label\na.jpg,0\n\n\na.jpg,1\n", MR_EFORMAT, "line 5:", "a.jpg stands in line 2 already");
    refuse("path,label\n,0\n", MR_EFORMAT, "line 2:", "name of the picture is empty");
    refuse("path,label\na.jpg,\xff\n", MR_EFORMAT, "line 2:", "no UTF-8");
    refuse("path,label\na.jpg,\xed\xa0\x80\n", MR_EFORMAT, "line 2:", "no UTF-8"); /* a surrogate */
    refuse("path,label\n", MR_EFORMAT, NULL, "no rows below");
    refuse("\n\n", MR_EFORMAT, NULL, "no rows");
    refuse("a.jpg\nb.jpg\n", MR_EFORMAT, "line 1:", "found one");
    refuse("path,name\na.jpg,0\n", MR_EFORMAT, "line 1:", "there are: path, name");
    refuse("what,kind\na.jpg,0\n", MR_ENOENT, "line 1:", "no file what");
    refuse("x.jpg,0\ny.jpg,0\n", MR_ENOENT, "line 1:", "no file x.jpg");
    refuse("path,label\n\nx.jpg,0\ny.jpg,0\n", MR_ENOENT, "line 3:", "no file x.jpg");
    refuse("path,label\nin\\x.jpg,0\n", MR_ENOENT, "line 2:", "this one has \\");
    refuse("path,label\nhttp://x/y.jpg,0\n", MR_ENOENT, "line 2:", "addresses are not followed");
    refuse("\xff\xfep\0a\0", MR_EUNSUPPORTED, NULL, "UTF-16");
    mr_source *src;
    mr_error err = MR_ERROR_INIT;
    mr_source_config cfg = config(NULL, NULL);
    cfg.format = "csv";
    MRT_EQ(mr_source_open(&src, write_table("path,label\na.jpg,0\nb\0.jpg,1\n", 28), &cfg, &err), MR_EFORMAT);
    MRT_HAS(err.text, "line 3: a NUL byte");
    MRT_EQ(open_text(&src, "a.jpg,0\n", "3", NULL, &err), MR_EINVAL);
    MRT_HAS(err.text, "there are columns 1 to 2");
    MRT_EQ(open_text(&src, "a.jpg,0\n", "0", NULL, &err), MR_EINVAL);
    MRT_EQ(open_text(&src, "path,label\na.jpg,0\n", "nope", NULL, &err), MR_EFORMAT);
    MRT_HAS(err.text, "no column named nope");
    MRT_EQ(open_text(&src, "path,label\na.jpg,0\n", NULL, "path", &err), MR_EINVAL);
    MRT_HAS(err.text, "at once");
}

/* Opens; `notes` are all lines that are reported, but for pictures without a row, and `count` samples are
 * taken. */
static void expect_notes(const char *text, uint64_t count, const char *notes)
{
    mr_source *src;
    mr_error err;
    MRT_OK(open_text(&src, text, NULL, NULL, &err), &err);
    const mr_source_info *info = mr_source_info_of(src);
    char lines[1000];
    snprintf(lines, sizeof lines, "%s", info->told ? info->told : "");
    char *unnamed = strstr(lines, "left out: ");
    if (unnamed) unnamed[unnamed > lines ? -1 : 0] = '\0';
    MRT_STR(lines, notes);
    MRT_EQ(info->count, count);
    mr_source_close(src);
}

/* Two columns of one name, and two columns of classes: their meaning is not guessed. */
static void two_columns_for_one_thing(void **state)
{
    (void)state;
    refuse("path,label,label\na.jpg,0,1\n", MR_EFORMAT, "line 1:", "columns 2 and 3 are both called label");
    refuse("path,label, PATH\na.jpg,0,b.jpg\n", MR_EFORMAT, "line 1:",
           "columns 1 and 3 are both called path: rename one, or name one by its number (--image-key 1)");
    refuse("path,label,split,Split\na.jpg,0,train,test\n", MR_EFORMAT,
           "line 1:", "columns 3 and 4 are both called split");
    expect_notes("path,label,x,x\na.jpg,0,1,2\n", 1, ""); /* of no use */
    expect("path,label,label\na.jpg,0,1\nb.jpg,0,2\n", NULL, "3", "a.jpg b.jpg ", "1 2 ");
    mr_source *src;
    mr_error err;
    MRT_EQ(open_text(&src, "path,kind,kind\na.jpg,0,1\n", NULL, "kind", &err), MR_EFORMAT);
    MRT_HAS(err.text, "columns 2 and 3 are both called kind");
    refuse(
        "path,label,class\na.jpg,cat,Cat\nb.jpg,dog,cat\nc.jpg,cat,dog\n", MR_EFORMAT, "line 3:",
        "column label has the class dog, column class has cat (2 of 3 rows differ): name the column to take "
        "(--label-key label, or class)");
    expect_notes("path,class,label\na.jpg,1.0,1\nb.jpg,0,0\nc.jpg,,0\n", 3, ""); /* the same */
    expect_notes("path,label,class\na.jpg,0,cat\nb.jpg,1,dog\n", 2,
                 "column label has the classes, column class is not read; --label-key class takes it");
    expect("path,label,class\na.jpg,0,1\nb.jpg,0,0\n", NULL, "class", "a.jpg b.jpg ", "1 0 ");
    mr_source_config cfg = config(NULL, NULL);
    cfg.format = "csv";
    cfg.target_key = "u..v";
    static const char *const targets[] = {"path,u,v,u\na.jpg,0,1,0\n", "path,u,v,v\na.jpg,0,1,0\n"};
    for (size_t k = 0; k < 2; k++) {
        MRT_EQ(mr_source_open(&src, write_table(targets[k], strlen(targets[k])), &cfg, &err), MR_EFORMAT);
        MRT_HAS(err.text, k ? "columns 3 and 4 are both called v" : "columns 2 and 4 are both called u");
    }
    refuse("image,MEL,NV\na.jpg,0,1\n", MR_EFORMAT, "line 1:", "(--target-key MEL..NV, with");
}

/* Columns of yes and no are read together; columns that contradict each other are refused or reported. */
static void columns_of_parts(void **state)
{
    (void)state;
    static const char by_both[] =
        "columns is_train, is_test say the part of a row: 1 of 2 rows are taken (train); "
        "--split-key none takes all";
    expect_notes("path,label,is_test,is_train\na.jpg,0,0,1\nb.jpg,1,1,0\n", 1, by_both);
    expect_notes(
        "path,label,is_valid,is_test\na.jpg,0,0,0\nb.jpg,1,1,0\nc.jpg,1,0,1\n", 1,
        "columns is_valid, is_test say the part of a row: 1 of 3 rows are taken (train); --split-key "
        "none takes all");
    refuse("path,label,is_test,is_train\na.jpg,0,0,1\nb.jpg,1,1,1\n", MR_EFORMAT,
           "line 3:", "columns is_train and is_test both say yes");
    refuse("path,label,is_test,is_train\na.jpg,0,0,0\nb.jpg,1,1,0\n", MR_EFORMAT,
           "line 2:", "column is_train says no, and no other column says a part");
    refuse("path,label,is_test,is_train\na.jpg,0,,1\nb.jpg,1,1,0\n", MR_EFORMAT, NULL,
           "columns is_train and is_test say the part of a row, but is_test has \"\": write 1 or 0");
    expect_notes(
        "path,label,set,split,is_test\na.jpg,0,train,train,0\nb.jpg,0,train,val,0\n"
        "c.jpg,0,test,test,0\n",
        1,
        "column split says the part of a row: 1 of 3 rows are taken (train); --split-key none takes "
        "all\ncolumns split and set contradict each other in 1 of 3 rows, the first in line 3: split is "
        "taken; --split-key set takes the other\ncolumns split and is_test contradict each other in 1 of "
        "3 rows, the first in line 4: split is taken; --split-key is_test takes the other");
    expect_notes(
        "path,label,fold,set\na.jpg,0,1,train\nb.jpg,0,2,val\n", 1, /* the one that has parts */
        "column set says the part of a row: 1 of 2 rows are taken (train); --split-key none takes all");
    expect_notes("path,label,split,is_train\na.jpg,0,train,1\nb.jpg,0,val,0\n", 1,
                 "column split says the part of a row: 1 of 2 rows are taken (train); --split-key none takes "
                 "all");
}

/* A row over the limit is refused before it is kept: with and without a quote, and in many places. */
static void long_rows(void **state)
{
    (void)state;
    const size_t bytes = 3 * MRI_CSV_ROW_BYTES;
    char *text = malloc(bytes + 1);
    memset(text, 'x', bytes);
    text[bytes] = '\0';
    memcpy(text, "path,label\na.jpg,0\n", 19);
    refuse(text, MR_ELIMIT, "line 3:", "longer than 1048576 bytes");
    text[25] = ',', text[26] = '"';
    refuse(text, MR_EFORMAT, "line 3:", "not closed within");
    for (size_t k = 19; k < bytes; k++) text[k] = ',';
    refuse(text, MR_ELIMIT, "line 3:", "more than 4096 places");
    free(text);
}

/* One file that is not there is a bad sample, not the end of all. */
static void missing_files(void **state)
{
    (void)state;
    mr_source *src;
    mr_error err;
    mr_extent e;
    void *buf = NULL;
    size_t buf_bytes = 0;
    mr_sample s;
    mrt_mkdir(mrt_path("t"));
    mrt_mkdir(mrt_path("t/d.d"));
    mrt_write_file(mrt_path("outside.jpg"), jpeg, sizeof jpeg);
    MRT_OK(
        open_taken(&src, "path,label\na.jpg,0\nnone.jpg,1\nd.d,1\n../outside.jpg,2\nin/../b.jpg,0\n", &err),
        &err);
    const mr_source_info *info = mr_source_info_of(src);
    MRT_EQ(info->count, 5);
    MRT_EQ(info->max_extent_bytes, sizeof jpeg);
    MRT_HAS(info->told, "2 of 5 files are not there, the first in line 3");
    MRT_HAS(info->told, "1 of 5 files lie outside");
    MRT_EQ(mr_source_extent(src, 1, &e, &err), MR_ENOENT);
    MRT_HAS(err.text, "line 3 of the table");
    MRT_HAS(err.file, "t/none.jpg");
    MRT_EQ(err.sample, 1);
    MRT_EQ(mr_source_extent(src, 2, &e, &err), MR_ENOENT);
    MRT_OK(mr_source_read(src, 3, &buf, &buf_bytes, &s, &err), &err);
    MRT_EQ(s.value[0].type, MR_TYPE_JPEG);
    MRT_EQ(s.value[1].i, 2);
    assert_memory_equal(s.value[0].data, jpeg, sizeof jpeg);
    free(buf);
    mr_source_close(src);
    char text[1200];
    snprintf(text, sizeof text, "path,label\n\"%s\",0\n", mrt_path("outside.jpg")); /* absolute */
    MRT_OK(open_taken(&src, text, &err), &err);
    char path[1024];
    MRT_STR(mr_source_sample_path(src, 0, path, sizeof path), mrt_path("outside.jpg"));
    mr_source_close(src);
}

/* A disk that fails is not a file that is missing; one that may not be looked at is a bad sample that says
 * so. */
static void files_that_cannot_be_looked_at(void **state)
{
    (void)state;
    mr_source *src;
    mr_error err;
    char text[1200];
    snprintf(text, sizeof text, "path,label\na.jpg,0\nnone.jpg,1\n%s,1\n", mrt_path("t/b.jpg"));
    failing_path = "b.jpg";
    failing_with = EIO;
    MRT_EQ(open_text(&src, text, NULL, NULL, &err), MR_EIO);
    MRT_EQ(err.sys_errno, EIO);
    MRT_HAS(err.file, "b.jpg");
    MRT_EQ(open_text(&src, "a.jpg,0\nb.jpg,1\n", NULL, NULL, &err), MR_EIO);
    failing_with = EACCES;
    MRT_EQ(open_text(&src, "a.jpg,0\nb.jpg,1\n", NULL, NULL, &err), MR_EIO);
    MRT_TRUE(!mr_error_of_sample(MR_EIO, &err));
    MRT_HAS(err.file, "b.jpg");
    MRT_HAS(err.text, "Permission denied; let this user read it (chmod)");
    MRT_EQ(open_text(&src, "b.jpg,1\n", NULL, NULL, &err), MR_EIO);
    MRT_HAS(err.text, "Permission denied");
    failing_with = 0;
}

/* The author of a table can neither choose which files of this machine are read, nor see their contents. */
static void paths_that_lead_out(void **state)
{
    (void)state;
    mr_source *src;
    mr_error err;
    mr_sample s;
    char text[1200], inside[600];
    make_pictures("t");
    mrt_mkdir(mrt_path("aside"));
    mrt_write_file(mrt_path("aside/o.jpg"), "root:x:0:0", 10);
    MRT_EQ(symlink("../aside", mrt_path("t/folder-link")), 0);
    MRT_EQ(symlink("../aside/o.jpg", mrt_path("t/link.jpg")), 0);
    MRT_EQ(symlink("../aside/none", mrt_path("t/dangling.jpg")), 0);
    MRT_EQ(symlink("in/e,1.jpg", mrt_path("t/inside.jpg")), 0);
    snprintf(inside, sizeof inside, "%s", mrt_path("t/in"));
    MRT_EQ(symlink(inside, mrt_path("t/absolute-inside")), 0);
    static const char *const out[] = {
        "/etc/passwd", "../aside/o.jpg", "in/../../aside/o.jpg", "link.jpg",           "folder-link/o.jpg",
        "../none",     "/none",          "folder-link/none",     "/proc/self/environ", "dangling.jpg"};
    for (size_t k = 0; k < sizeof out / sizeof *out; k++) {
        snprintf(text, sizeof text, "path,label\na.jpg,0\n%s,1\n", out[k]);
        MRT_EQ(open_text(&src, text, NULL, NULL, &err), MR_EINVAL);
        MRT_HAS(err.text, "line 3");
        MRT_HAS(err.text, out[k]);
        MRT_HAS(err.text, "--outside take");
        MRT_TRUE(strstr(err.text, "root") == NULL);
    }
    snprintf(text, sizeof text,
             "path,label\na.jpg,0\n%s,1\nin/../c.jpg,1\ninside.jpg,0\n\"absolute-inside/e,1.jpg\",0\n",
             mrt_path("t/b.jpg"));
    MRT_OK(open_text(&src, text, NULL, NULL, &err), &err); /* all of these stay inside */
    MRT_STR(mr_source_info_of(src)->told,
            "left out: 2 pictures that no row of a table names (d.jpg, link.jpg)");
    mr_source_close(src);

    MRT_OK(open_taken(&src, "path,label\na.jpg,0\nlink.jpg,1\n", &err), &err);
    MRT_HAS(mr_source_info_of(src)->told, "1 of 2 files lie outside");
    void *buf = NULL;
    size_t buf_bytes = 0;
    MRT_EQ(mr_source_read(src, 1, &buf, &buf_bytes, &s, &err), MR_EFORMAT);
    MRT_HAS(err.file, "t/link.jpg");
    MRT_TRUE(strstr(err.text, "root") == NULL);
    MRT_HAS(err.text, "not quoted");
    free(buf);
    mr_source_close(src);
}

/* One file has one path, whatever its spelling; x/.. is nothing only where x is a folder. */
static void spellings_of_a_path(void **state)
{
    (void)state;
    static const char *const same[] = {"./a.jpg", ".//a.jpg", "in/../a.jpg", "././in/.././a.jpg"};
    static const char *const inside[] = {"in//e1.jpg", "./in/e1.jpg", "in/./e1.jpg", "in/../in/e1.jpg"};
    char text[200];
    make_pictures("t");
    mrt_write_file(mrt_path("t/in/e1.jpg"), jpeg, sizeof jpeg);
    mrt_mkdir(mrt_path("t/in/deep"));
    mrt_write_file(mrt_path("t/in/a.jpg"), jpeg, sizeof jpeg);
    MRT_EQ(symlink("in/deep", mrt_path("t/deep-link")), 0);
    for (size_t k = 0; k < sizeof same / sizeof *same; k++) {
        snprintf(text, sizeof text, "path,label\na.jpg,0\nb.jpg,0\n%s,1\n", same[k]);
        refuse(text, MR_EFORMAT, "line 4:", "stands in line 2 already, as a.jpg: a file may be named once");
        snprintf(text, sizeof text, "path,label\nb.jpg,0\n%s,1\na.jpg,0\n", same[k]);
        refuse(text, MR_EFORMAT, "line 4:", "a.jpg stands in line 3 already, as ");
        snprintf(text, sizeof text, "path,label\nin/e1.jpg,0\n%s,1\n", inside[k]);
        refuse(text, MR_EFORMAT, "line 3:", "as in/e1.jpg: a file may be named once");
    }
    expect("path,label\n./a.jpg,0\nin/../b.jpg,1\nin//e1.jpg,2\nc.jpg,3\n", NULL, NULL,
           "./a.jpg in/../b.jpg in//e1.jpg c.jpg ", "0 1 2 3 "); /* names stay as they are written */
    expect("path,label\na.jpg,0\ndeep-link/../a.jpg,1\n", NULL, NULL, "a.jpg deep-link/../a.jpg ", "0 1 ");
}

static void put_table(const char *path, const char *text) { mrt_write_file(path, text, strlen(text)); }

/* Of the folders that the table names; rows of other splits name pictures, too. */
static void pictures_without_a_row(void **state)
{
    (void)state;
    mr_source *src;
    mr_error err;
    static const struct {
        const char *text, *lines;
    } cases[] = {
        {"path,label\n./a.jpg,0\nb.jpg,0\nin/../c.jpg,1\nd.jpg,1\n", ""},
        {"path,label\nb.jpg,0\n", "left out: 3 pictures that no row of a table names (a.jpg, c.jpg, d.jpg)"},
        {"path,label\n\"in/e,1.jpg\",0\n", ""},
        {"path,label\n\"also/e,1.jpg\",0\n\"in/f.jpg\",1\n",
         "1 of 2 files are not there, the first in line 3"},
        {"path,label,split\na.jpg,0,train\nb.jpg,0,val\nc.jpg,,test\n",
         "column split says the part of a row: 1 of 3 rows are taken (train); --split-key none takes all\n"
         "left out: 1 picture that no row of a table names (d.jpg)"},
    };
    make_pictures("u");
    MRT_EQ(symlink("in", mrt_path("u/also")), 0);
    for (size_t k = 0; k < sizeof cases / sizeof *cases; k++) {
        put_table(mrt_path("u/list.csv"), cases[k].text);
        err = (mr_error)MR_ERROR_INIT;
        MRT_OK(mr_source_open(&src, mrt_path("u/list.csv"), NULL, &err), &err);
        const char *lines = mr_source_info_of(src)->told;
        MRT_STR(lines ? lines : "", cases[k].lines);
        mr_source_close(src);
    }
    put_table(mrt_path("u/list.csv"), "path,label\na.jpg,0\nb.jpg,1\n");
    put_table(mrt_path("u/notes.txt"), "no, table\n");
    put_table(mrt_path("u/other.TSV"), "x\tfile\n0\tc.jpg\n0\tin/g.jpg\nd.jpg\n"); /* without classes */
    MRT_OK(mr_source_open(&src, mrt_path("u/list.csv"), NULL, &err), &err);
    MRT_STR(mr_source_info_of(src)->told, "left out: 1 picture that no row of a table names (d.jpg)");
    mr_source_close(src);
    for (long n = 0;; n++) {
        mrt_fail_alloc_at(n);
        const int rc = mr_source_open(&src, mrt_path("u/list.csv"), NULL, &err);
        mrt_fail_alloc_at(-1);
        if (mrt_last_turn(rc, src)) break;
    }
}

static void not_a_picture(void **state)
{
    (void)state;
    mr_source *src;
    mr_error err;
    mr_sample s;
    MRT_OK(open_text(&src, "path,label\na.jpg,0\nlist,0\n", NULL, NULL, &err), &err);
    MRT_TRUE(mr_source_parse(src, 1, "path,label\n", 11, &s, &err) == MR_EFORMAT);
    MRT_HAS(err.file, "t/list");
    mr_source_close(src);
}

static void found_by_content(void **state)
{
    (void)state;
    static const char *const texts[] = {"path,label\na.jpg,0\n",
                                        "a.JPG;0\n",
                                        "\"b.png\"\tcat\n",
                                        "\n\nid,filename,x\n1,a.jpg,1\n",
                                        "a.jpg|cat\nb.jpg|dog\n",
                                        "{\"file_name\": \"a.jpg\", \"x\": 1}\n",
                                        "[\n {\"n\": {\"file\": \"x\"}, \"image\" : \"a.jpg\"}]"};
    static const char *const others[] = {"<list>a.jpg,b.jpg</list>\n", "{\"path\": 1, \"label\": 2}\n",
                                         "hello\n", "path label\n",
                                         "{\"images\": [{\"file_name\": \"a.jpg\"}], \"path\": 3}"};
    mr_source *src;
    for (size_t k = 0; k < sizeof texts / sizeof *texts; k++) {
        mr_error err = MR_ERROR_INIT;
        const int rc = mr_source_open(&src, write_table(texts[k], strlen(texts[k])), NULL, &err);
        MRT_TRUE(rc != MR_EUNSUPPORTED); /* ours, though some of the files are not there */
        mr_source_close(src);
    }
    for (size_t k = 0; k < sizeof others / sizeof *others; k++) {
        mr_error err = MR_ERROR_INIT;
        MRT_EQ(mr_source_open(&src, write_table(others[k], strlen(others[k])), NULL, &err), MR_EUNSUPPORTED);
    }
}

static mr_source *open_part(const char *path, mr_split split, mr_error *err)
{
    mr_source *src;
    mr_source_config cfg = config(NULL, NULL);
    cfg.split = split;
    *err = (mr_error)MR_ERROR_INIT;
    mr_source_open(&src, path, &cfg, err);
    return src;
}

static int64_t first_label(const mr_source *src)
{
    int64_t label = -1;
    MRT_EQ(mr_source_label(src, 0, &label), MR_OK);
    return label;
}

/* The test part lacks what comes first: names, or the label 1. */
static void folders_of_tables(void **state)
{
    (void)state;
    mr_error err;
    const char *kinds[2][2] = {{"path,label\na.jpg,cat\nb.jpg,dog\n", "path,label\nc.jpg,dog\n"},
                               {"path,label\na.jpg,1\nb.jpg,2\n", "path,label\nc.jpg,2\n"}};
    for (int k = 0; k < 2; k++) {
        make_pictures("parts");
        put_table(mrt_path("parts/train.csv"), kinds[k][0]);
        put_table(mrt_path("parts/val.csv"), kinds[k][1]);
        mr_source *src = open_part(mrt_path("parts"), MR_SPLIT_AUTO, &err);
        MRT_OK(err.code, &err);
        MRT_STR(mr_source_info_of(src)->path, mrt_path("parts/train.csv"));
        MRT_TRUE(mr_source_info_of(src)->has_test);
        MRT_EQ(mr_source_info_of(src)->count, 2);
        mr_source_close(src);
        src = open_part(mrt_path("parts"), MR_SPLIT_TEST, &err);
        MRT_OK(err.code, &err);
        MRT_EQ(mr_source_info_of(src)->count, 1);
        MRT_EQ(mr_source_info_of(src)->class_count, k ? 3 : 2); /* a number keeps its value */
        MRT_EQ(first_label(src), k ? 2 : 1);
        mr_source_close(src);
    }
    put_table(mrt_path("parts/more-train.csv"), kinds[0][0]);
    MRT_TRUE(open_part(mrt_path("parts"), MR_SPLIT_AUTO, &err) == NULL);
    MRT_EQ(err.code, MR_EINVAL);
    MRT_HAS(err.text, "2 tables in one folder");
    mrt_mkdir(mrt_path("only"));
    mrt_write_file(mrt_path("only/c.jpg"), jpeg, sizeof jpeg);
    put_table(mrt_path("only/val.csv"), kinds[0][1]);
    mr_source *src = open_part(mrt_path("only"), MR_SPLIT_TEST, &err);
    MRT_OK(err.code, &err);
    MRT_EQ(first_label(src), 0);
    mr_source_close(src);
    mrt_mkdir(mrt_path("inside"));
    mrt_mkdir(mrt_path("inside/train"));
    mrt_mkdir(mrt_path("inside/val"));
    for (int k = 0; k < 2; k++) mrt_write_file(mrt_path("inside/train/%c.jpg", 'a' + k), jpeg, sizeof jpeg);
    mrt_write_file(mrt_path("inside/val/c.jpg"), jpeg, sizeof jpeg);
    put_table(mrt_path("inside/train/list"), kinds[0][0]);
    put_table(mrt_path("inside/val/list"), kinds[0][1]);
    src = open_part(mrt_path("inside"), MR_SPLIT_TEST, &err);
    MRT_OK(err.code, &err);
    MRT_STR(mr_source_info_of(src)->path, mrt_path("inside/val/list"));
    MRT_EQ(first_label(src), 1);
    mr_source_close(src);
    for (long n = 0;; n++) {
        mr_source_config cfg = config(NULL, NULL);
        cfg.split = MR_SPLIT_TEST;
        mrt_fail_alloc_at(n);
        const int rc = mr_source_open(&src, mrt_path("inside"), &cfg, &err);
        mrt_fail_alloc_at(-1);
        mr_source_close(src);
        if (rc == MR_OK && !mrt_alloc_failed()) break;
        MRT_TRUE(rc == MR_OK || rc == MR_ENOMEM);
    }
}

static void packed(void **state)
{
    (void)state;
    static const char text[] = "path,label\na.jpg,0\nb.jpg,cat\n";
    uint8_t out[400];
    struct isal_zstream z;
    isal_deflate_init(&z);
    z.gzip_flag = IGZIP_GZIP;
    z.end_of_stream = 1;
    z.next_in = (uint8_t *)(uintptr_t)text;
    z.avail_in = 19; /* the first sample */
    z.next_out = out;
    z.avail_out = sizeof out;
    MRT_EQ(isal_deflate(&z), COMP_OK);
    const size_t bytes = sizeof out - z.avail_out;
    mr_source *src;
    mr_error err = MR_ERROR_INIT;
    MRT_OK(mr_source_open(&src, write_table((const char *)out, bytes), NULL, &err), &err);
    MRT_EQ(mr_source_info_of(src)->count, 1);
    mr_source_close(src);
    mr_source_config cfg = config(NULL, NULL);
    cfg.format = "csv";
    for (size_t cut = 12; cut < bytes; cut++) {
        const int rc = mr_source_open(&src, write_table((const char *)out, cut), &cfg, &err);
        MRT_TRUE(rc == MR_EFORMAT && src == NULL);
    }
    out[bytes - 8] ^= 1;
    MRT_EQ(mr_source_open(&src, write_table((const char *)out, bytes), &cfg, &err), MR_ECHECKSUM);
}

static void memory_is_bounded(void **state)
{
    (void)state;
    make_pictures("t");
    char *text = malloc(400000);
    int at = sprintf(text, "path,label\na.jpg,0\n");
    for (int k = 0; k < 5000; k++)
        at += sprintf(text + at, "a-rather-long-name-of-a-file-%d.jpg,class-%d\n", k, k % 700);
    mrt_write_file(mrt_path("t/list"), text, (size_t)at);
    mr_source_config cfg = config(NULL, NULL);
    mr_source *src;
    mr_error err = MR_ERROR_INIT;
    MRT_EQ(mr_source_open(&src, mrt_path("t/list"), &cfg, &err), MR_EFORMAT); /* 0 among names */
    memcpy(text + 17, "z", 1);
    mrt_write_file(mrt_path("t/list"), text, (size_t)at);
    MRT_OK(mr_source_open(&src, mrt_path("t/list"), &cfg, &err), &err);
    const uint64_t memory = mr_source_info_of(src)->memory_bytes;
    MRT_TRUE(memory > 200000 && memory < 500000);
    MRT_EQ(mr_source_info_of(src)->class_count, 701);
    mr_source_close(src);
    cfg.memory_bytes = memory / 2;
    MRT_EQ(mr_source_open(&src, mrt_path("t/list"), &cfg, &err), MR_ELIMIT);
    free(text);
}

static void allocations_fail_in_turn(void **state)
{
    (void)state;
    static const char *const texts[] = {"path,label\na.jpg,cat\nb.jpg,dog\n", "a.jpg,1\n\"b.jpg\",2\n",
                                        "./a.jpg,1\nb.jpg,2\n",
                                        "[{\"file\":\"a.jpg\",\"y\":1},{\"file\":\"b.jpg\",\"y\":2}]"};
    for (int k = 0; k < 4; k++)
        for (long n = 0;; n++) {
            mr_source *src = (mr_source *)&src;
            mr_error err = MR_ERROR_INIT;
            mr_source_config cfg = config(NULL, NULL);
            const char *path = write_table(texts[k], strlen(texts[k]));
            mrt_fail_alloc_at(n);
            const int rc = mr_source_open(&src, path, &cfg, &err);
            mrt_fail_alloc_at(-1);
            if (mrt_last_turn(rc, src)) break;
        }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(columns_and_separators),
        cmocka_unit_test(rows_of_json),
        cmocka_unit_test(quotes),
        cmocka_unit_test(classes),
        cmocka_unit_test(bad_rows),
        cmocka_unit_test(two_columns_for_one_thing),
        cmocka_unit_test(columns_of_parts),
        cmocka_unit_test(long_rows),
        cmocka_unit_test(missing_files),
        cmocka_unit_test(files_that_cannot_be_looked_at),
        cmocka_unit_test(paths_that_lead_out),
        cmocka_unit_test(spellings_of_a_path),
        cmocka_unit_test(pictures_without_a_row),
        cmocka_unit_test(not_a_picture),
        cmocka_unit_test(found_by_content),
        cmocka_unit_test(folders_of_tables),
        cmocka_unit_test(packed),
        cmocka_unit_test(memory_is_bounded),
        cmocka_unit_test(allocations_fail_in_turn),
    };
    return mrt_run(tests);
}
