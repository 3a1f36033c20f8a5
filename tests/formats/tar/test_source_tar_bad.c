/* WebDataset archives with defects: each kind of bad sample and of bad archive, with its message. */
#include <unistd.h>

#include "mrt.h"
#include "tests/formats/tar/mrt_tar_source.h"

/* ---- bad samples ---- */
static mrt_tar bad; /* begins with a good sample; the one made by the test follows, then another good one */

static void begin_bad(void)
{
    bad = (mrt_tar){0};
    mrt_tar_picture(&bad, "good.jpg");
    mrt_tar_text(&bad, "good.cls", "1");
    mrt_tar_text(&bad, "good.txt", "caption");
}

enum { BAD_AT = 3072 };

static void is_bad(int code, uint64_t offset, const char *text)
{
    mrt_tar_picture(&bad, "last.jpg");
    mrt_tar_text(&bad, "last.cls", "0");
    mrt_tar_end(&bad);
    mrt_tar_save(&bad, "bad.tar");
    for (int again = 0; again < 2; again++) { /* scanned, then from the index */
        mrt_tar_cfg.no_index_file = again == 0;
        if (again) mr_source_close(mrt_tar_open_one("bad.tar"));
        mr_source *src = mrt_tar_open_one("bad.tar");
        mr_sample s;
        mr_error err = MR_ERROR_INIT;
        MRT_EQ(mr_source_info_of(src)->count, 3);
        MRT_EQ(mr_source_info_of(src)->class_count, 2);
        MRT_EQ(mr_source_read(src, 1, &mrt_tar_buf, &mrt_tar_buf_bytes, &s, &err), code);
        MRT_EQ(err.sample, 1);
        MRT_EQ(err.offset, offset);
        MRT_HAS(err.file, "bad.tar");
        MRT_HAS(err.text, text);
        MRT_EQ(mrt_tar_get(src, 0).value[1].i, 1);
        MRT_EQ(mrt_tar_get(src, 2).value[1].i, 0);
        mr_source_close(src);
    }
    unlink(mrt_path(".bad.tar.mridx"));
}

static void bad_class(const char *text, const char *reported)
{
    begin_bad();
    mrt_tar_picture(&bad, "b.jpg");
    mrt_tar_text(&bad, "b.cls", text);
    is_bad(MR_EFORMAT, BAD_AT + 1536, reported);
}

static void bad_members(void **state)
{
    (void)state;
    begin_bad();
    mrt_tar_text(&bad, "b.cls", "1");
    mrt_tar_text(&bad, "b.txt", "x");
    is_bad(MR_EFORMAT, BAD_AT,
           "sample \"b\": expected a picture, found .cls, .txt (members of one sample must be neighbours)");
    begin_bad();
    mrt_tar_text(&bad, "b.jpg", "8BPS................................");
    mrt_tar_text(&bad, "b.cls", "1");
    is_bad(MR_EFORMAT, BAD_AT + 512, "sample \"b\", member .jpg: ");
    begin_bad();
    mrt_tar_picture(&bad, "b\n\xff.jpg");
    is_bad(MR_EFORMAT, BAD_AT, "sample \"b\\x0a\\xff\": expected a class in .cls, found .jpg (");
    begin_bad();
    mrt_tar_picture(&bad, "b.jpg");
    mrt_tar_text(&bad, "b.cls", "1");
    mrt_tar_picture(&bad, "b.JPG");
    is_bad(MR_EFORMAT, BAD_AT + 2560, "sample \"b\": expected each member once, found a second .jpg");
    begin_bad();
    mrt_tar_header(&bad, '1', "b.jpg", 0);
    mrt_tar_text(&bad, "b.cls", "1");
    mrt_tar_header(&bad, '2', "b.jpg", 0);
    is_bad(MR_EFORMAT, BAD_AT, "found .cls, .jpg, a hard link without bytes of its own");
    begin_bad();
    mrt_tar_text(&bad, "b.cls", "1");
    mrt_tar_header(&bad, '2', "b.jpg", 0);
    is_bad(MR_EFORMAT, BAD_AT, "found .cls, .jpg, a symbolic link without bytes of its own");
    begin_bad();
    mrt_tar_header(&bad, '2', "c.jpg", 0); /* of no sample */
    mrt_tar_header(&bad, '2', "b.jpg", 0);
    mrt_tar_header(&bad, '2', "b.png", 0);
    mrt_tar_text(&bad, "b.cls", "1");
    is_bad(MR_EFORMAT, BAD_AT + 512, "found .cls, .jpg, a symbolic link without bytes of its own");
    begin_bad();
    mrt_tar_header(&bad, '2', "b.jpg", 0); /* the good sample before it goes on behind */
    mrt_tar_text(&bad, "good.json", "{}");
    mrt_tar_text(&bad, "b.cls", "1");
    is_bad(MR_EFORMAT, BAD_AT + 1536, "found .cls (members");
    begin_bad();
    mrt_tar_picture(&bad, "b.jpg");
    mrt_tar_text(&bad, "b.cls", "1");
    mrt_tar_header(&bad, 'S', "b.txt", 0);
    is_bad(MR_EUNSUPPORTED, BAD_AT + 2560, "sparse file, write the archive without them: .txt");
    begin_bad();
    for (int k = 0; k < 65; k++) {
        char name[16];
        snprintf(name, sizeof name, "b.%d", k);
        mrt_tar_text(&bad, name, "");
    }
    is_bad(MR_ELIMIT, BAD_AT, "at most 64 members");
    begin_bad();
    mrt_tar_picture(&bad, "b.jpg");
    mrt_tar_text(&bad, "b.cls", "1");
    mrt_tar_text(&bad, "b.txt", "caf\xe9");
    is_bad(MR_EFORMAT, BAD_AT + 2560, "member .txt: expected text in UTF-8, found other bytes");
}

static void bad_classes(void **state)
{
    (void)state;
    bad_class("cat", "member .cls: expected a class as whole number, found \"cat\"");
    bad_class("1.5", "found \"1.5\"");
    bad_class("1\0332", "found \"1\\x1b2\"");
    bad_class("", "expected a class in 1 to 64 bytes, found 0");
    bad_class(" ", "found \" \"");
    bad_class("[1, 2]", "found \"[1, 2]\"");
    bad_class("9223372036854775808", "found \"9223372036854775808\"");
    bad_class("                                                                 1",
              "expected a class in 1 to 64 bytes, found 66");
    bad_class("-1", "expected a label from 0 to 16777215, found -1");
    bad_class("1099511627776", "found 1099511627776");
    bad_class("-9223372036854775807", "found -9223372036854775807");
}

static void bad_json(void **state)
{
    (void)state;
    static const struct {
        const char *json, *reported;
    } cases[] = {
        {"{\"label\": \"cat\"}", "field \"label\": expected a class as whole number, found a text"},
        {"{\"label\": [1]}", "found a list"},
        {"{\"label\": 0.5}", "found another number"},
        {"{\"label\": 1e300}", "found another number"},
        {"{\"label\": null}", "found something else"},
        {"{\"Label\": 1}", "expected one field \"label\" with the class, found none"},
        {"{\"label\": 1, \"label\": 2}", "found it more than once"},
        {"[1]", "found no object"},
        {"{\"label\": 1", "found no JSON"},
        {"{\"label\": 1} 2", "found no JSON"},
        {"{\"label\": -1}", "found -1"},
        {"{\"label\": 1099511627776}", "found 1099511627776"},
    };
    for (size_t k = 0; k < sizeof cases / sizeof *cases; k++) {
        mrt_tar a = {0};
        mrt_tar_picture(&a, "good.jpg");
        mrt_tar_text(&a, "good.json", "{\"label\": 3}");
        mrt_tar_picture(&a, "b.jpg");
        mrt_tar_text(&a, "b.json", cases[k].json);
        mrt_tar_end(&a);
        mrt_tar_save(&a, "json.tar");
        mr_source *src = mrt_tar_open_one("json.tar");
        mr_sample s;
        mr_error err = MR_ERROR_INIT;
        MRT_EQ(mrt_tar_get(src, 0).value[1].i, 3);
        MRT_EQ(mr_source_read(src, 1, &mrt_tar_buf, &mrt_tar_buf_bytes, &s, &err), MR_EFORMAT);
        MRT_HAS(err.text, cases[k].reported);
        MRT_EQ(err.offset, 2048 + 1536);
        MRT_EQ(err.sample, 1);
        mr_source_close(src);
    }
}

static void bytes_that_changed(void **state)
{
    (void)state;
    mrt_tar a = {0};
    mrt_tar_picture(&a, "0.jpg");
    mrt_tar_text(&a, "0.cls", "0");
    const size_t bytes = 1536 + 1;
    uint8_t copy[1537];
    memcpy(copy, a.data, bytes);
    mrt_tar_end(&a);
    mrt_tar_save(&a, "changed.tar");
    mr_source *src = mrt_tar_open_one("changed.tar");
    mr_sample s;
    mr_error err = MR_ERROR_INIT;
    MRT_OK(mr_source_parse(src, 0, copy, bytes, &s, &err), &err);
    for (size_t cut = 0; cut < bytes; cut++) { /* never read past the input */
        uint8_t *part = malloc(cut ? cut : 1);
        memcpy(part, copy, cut);
        MRT_TRUE(mr_source_parse(src, 0, part, cut, &s, &err) != MR_OK);
        MRT_HAS(err.file, "changed.tar");
        MRT_EQ(err.sample, 0);
        free(part);
    }
    memset(copy, 0, sizeof copy);
    MRT_EQ(mr_source_parse(src, 0, copy, bytes, &s, &err), MR_EFORMAT);
    MRT_HAS(err.text, "has the file changed?");
    mr_source_close(src);
}

/* ---- odd archives, and archives that are all wrong ---- */
static void reported(mrt_tar *a, uint64_t count, const char *text)
{
    mrt_tar_save(a, "odd.tar");
    mr_source *src = mrt_tar_open_one("odd.tar");
    MRT_EQ(mr_source_info_of(src)->count, count);
    MRT_TRUE(mr_source_info_of(src)->told != NULL);
    MRT_STR(mr_source_info_of(src)->told, text);
    mr_source_close(src);
}

static mrt_tar good(const char *key)
{
    mrt_tar a = {0};
    char name[64];
    snprintf(name, sizeof name, "%s.jpg", key);
    mrt_tar_picture(&a, name);
    return a;
}

static void oddities(void **state)
{
    (void)state;
    static const char *const outside[] = {"../a", "x/../a", "/etc/a"};
    for (int k = 0; k < 3; k++) {
        mrt_tar a = good(outside[k]);
        mrt_tar_end(&a);
        char text[256];
        snprintf(text, sizeof text,
                 "1 name leads out of its folder (first: \"%s.jpg\", offset 0 of file 1); nothing is "
                 "unpacked by name",
                 outside[k]);
        reported(&a, 1, text);
    }
    mrt_tar a = good("a");
    mrt_tar_header(&a, '2', "lin\nk.jpg", 0);
    mrt_tar_header(&a, '1', "b.jpg", 0);
    mrt_tar_header(&a, '3', "c", 0);
    mrt_tar_header(&a, '6', "d", 0);
    mrt_tar_end(&a);
    reported(
        &a, 1,
        "4 members that are no files were passed over (first: \"lin\\x0ak.jpg\", offset 1024 of file 1)");
    a = good("a");
    mrt_tar_text(&a, "README", "x");
    mrt_tar_text(&a, "d/.hidden", "x");
    mrt_tar_text(&a, "d.x/none", "x");
    mrt_tar_end(&a);
    reported(&a, 1, "3 members without a key were passed over (first: \"README\", offset 1024 of file 1)");
    a = good("a");
    mrt_tar_picture(&a, "b.jpg");
    mrt_tar_text(&a, "a.txt", "x");
    mrt_tar_end(&a);
    reported(
        &a, 3,
        "1 key comes again (first: \"a\", offset 2048 of file 1); members of one sample must be neighbours");
    a = good("a");
    mrt_tar_header(&a, '6', "pipe", 0);
    reported(
        &a, 1,
        "1 member that is no file was passed over (first: \"pipe\", offset 1024 of file 1); 1 archive has "
        "no end mark (first: offset 1536 of file 1): some writers leave it out; otherwise the end is "
        "missing, and samples with it");
    a = good("..a"); /* two dots are no way out here, but they hide the name */
    mrt_tar_picture(&a, "x../b.jpg");
    mrt_tar_end(&a);
    reported(&a, 1, "1 member without a key was passed over (first: \"..a.jpg\", offset 0 of file 1)");
}

static void refused(mrt_tar *a, int code, uint64_t offset, const char *text)
{
    for (int packed = 0; packed < 2; packed++) {
        mrt_tar copy = {0};
        mrt_tar_raw(&copy, a->data, a->bytes);
        packed ? mrt_tar_save_packed(&copy, "refused.tar") : mrt_tar_save(&copy, "refused.tar");
        mr_source *src;
        mr_error err = MR_ERROR_INIT;
        MRT_EQ(mrt_tar_try(&src, "refused.tar", &err), code);
        MRT_HAS(err.text, text);
        MRT_EQ(err.offset, offset);
        MRT_HAS(err.file, "refused.tar");
    }
    mrt_tar_fini(a);
}

static void archives_that_are_wrong(void **state)
{
    (void)state;
    mrt_tar a = good("a");
    mrt_tar_text(&a, "b.jpg", "x");
    a.bytes = 1024 + 100;
    refused(&a, MR_EFORMAT, 1024, "expected a header of 512 bytes, found the end of the archive after 100");
    a = good("a");
    mrt_tar_text(&a, "b.jpg", "12345");
    a.bytes = 1536 + 4;
    refused(&a, MR_EFORMAT, 1540, "member \"b.jpg\": expected 5 bytes from offset 1536");
    a = good("a");
    mrt_tar_text(&a, "b.jpg", "12345");
    a.data[1024 + 200] ^= 1;
    refused(&a, MR_EFORMAT, 1024, "expected a tar header with checksum");
    a = good("a");
    mrt_tar_header(&a, '0', "b.jpg", 0);
    memcpy(a.data + 1024 + 124, "\x80\0\0\0\x80\0\0\0\0\0\0\0", 12);
    mrt_tar_sum(&a);
    refused(&a, MR_EFORMAT, 1024 + 124, "2^63");
    a = good("a");
    mrt_tar_end(&a);
    mrt_tar_text(&a, "second.jpg", "archive");
    refused(&a, MR_EFORMAT, 2048, "expected zeros up to the end of the archive, which ended at offset 1024");
    a = good("a");
    mrt_tar_pax(&a, 'x', "size", "99999");
    mrt_tar_text(&a, "b.jpg", "12345");
    refused(&a, MR_EFORMAT, 1024 + 1024 + 124, "5 bytes says its header, 99999 its PAX record");
    a = (mrt_tar){0};
    mrt_tar_text(&a, "README", "no samples");
    refused(&a, MR_EFORMAT, MR_NOWHERE, "no sample");
}

/* A member that comes twice makes its own sample bad, and no other. */
static void a_member_twice_is_one_bad_sample(void **state)
{
    (void)state;
    static const char *const twice[] = {"jpg", "cls", "txt", "JPG"};
    mr_sample s;
    mr_error err = MR_ERROR_INIT;
    for (size_t which = 0; which < sizeof twice / sizeof twice[0]; which++) {
        mrt_tar a = {0};
        for (int k = 0; k < 4; k++) {
            char name[32];
            snprintf(name, sizeof name, "%d.jpg", k);
            mrt_tar_picture(&a, name);
            snprintf(name, sizeof name, "%d.cls", k);
            mrt_tar_text(&a, name, "1");
            snprintf(name, sizeof name, "%d.txt", k);
            mrt_tar_text(&a, name, "a text");
            snprintf(name, sizeof name, "%d.%s", k, twice[which]);
            if (k == 0 && which % 3 == 0) mrt_tar_picture(&a, name);
            else if (k == 0) mrt_tar_text(&a, name, "1");
        }
        mrt_tar_end(&a);
        mrt_tar_save(&a, "twice.tar");
        mr_source *src = mrt_tar_open_one("twice.tar");
        MRT_EQ(mr_source_info_of(src)->count, 4);
        MRT_EQ(mr_source_info_of(src)->field_count, 3);
        MRT_EQ(mr_source_read(src, 0, &mrt_tar_buf, &mrt_tar_buf_bytes, &s, &err), MR_EFORMAT);
        MRT_HAS(err.text, "expected each member once, found a second .");
        for (uint64_t k = 1; k < 4; k++) mrt_tar_get(src, k);
        mr_source_close(src);
    }
    mrt_tar a = {0}; /* nothing better to go by: still a reason */
    mrt_tar_picture(&a, "0.jpg");
    mrt_tar_picture(&a, "0.jpg");
    mrt_tar_end(&a);
    mrt_tar_save(&a, "twice.tar");
    mr_source *src = mrt_tar_open_one("twice.tar");
    MRT_EQ(mr_source_read(src, 0, &mrt_tar_buf, &mrt_tar_buf_bytes, &s, &err), MR_EFORMAT);
    MRT_HAS(err.text, "found a second .jpg");
    mr_source_close(src);
}

/* The class of a sample is the one in its bytes; where the index has another one, the index goes. */
static void a_class_that_changed_behind_the_index_is_an_error(void **state)
{
    (void)state;
    mrt_tar_cfg.no_index_file = false;
    for (int loaded = 0; loaded < 2; loaded++) {
        mr_sample s;
        mr_error err = MR_ERROR_INIT;
        mrt_tar a = {0}, b = {0};
        mrt_tar_picture(&a, "0.jpg");
        mrt_tar_text(&a, "0.cls", "1");
        mrt_tar_end(&a);
        mrt_tar_picture(&b, "0.jpg");
        mrt_tar_text(&b, "0.cls", "2");
        mrt_tar_end(&b);
        mrt_tar_save(&a, "behind.tar");
        if (loaded) mr_source_close(mrt_tar_open_one("behind.tar"));
        mr_source *src = mrt_tar_open_one("behind.tar");
        MRT_EQ(access(mrt_path(".behind.tar.mridx"), F_OK), 0);
        mrt_tar_save(&b, "behind.tar");
        MRT_EQ(mr_source_read(src, 0, &mrt_tar_buf, &mrt_tar_buf_bytes, &s, &err), MR_EFORMAT);
        MRT_HAS(err.text, "the index has class 1 for this sample, the sample itself 2");
        MRT_EQ(access(mrt_path(".behind.tar.mridx"), F_OK), -1);
        mr_source_close(src);
        src = mrt_tar_open_one("behind.tar");
        mrt_tar_get(src, 0);
        mr_source_close(src);
    }
}

/* The archive that CIFAR is downloaded as is not an archive of samples. */
static void the_archive_of_cifar_is_refused(void **state)
{
    (void)state;
    static uint8_t batch[2 * 3074];
    for (int hundred = 0; hundred < 2; hundred++) {
        mrt_tar a = {0};
        mr_source *src;
        mr_error err = MR_ERROR_INIT;
        const char *folder = hundred ? "cifar-100-binary" : "cifar-10-batches-bin";
        char name[64];
        snprintf(name, sizeof name, "%s/readme.html", folder);
        mrt_tar_text(&a, name, "<html>");
        snprintf(name, sizeof name, "%s/%s.bin", folder, hundred ? "train" : "data_batch_4");
        mrt_tar_file(&a, name, batch, hundred ? 2 * 3074 : 2 * 3073);
        mrt_tar_end(&a);
        mrt_tar_save_packed(&a, "cifar.tar.gz");
        MRT_EQ(mrt_tar_try(&src, "cifar.tar.gz", &err), MR_EUNSUPPORTED);
        MRT_HAS(err.text, hundred ? "the archive of CIFAR-100" : "the archive of CIFAR-10,");
        MRT_HAS(err.text, folder);
        MRT_HAS(err.file, "cifar.tar.gz");
    }
}

int main(void)
{
#define TEST(name) cmocka_unit_test_setup_teardown(name, mrt_tar_fresh, mrt_tar_done)
    const struct CMUnitTest tests[] = {
        TEST(bad_members),
        TEST(bad_classes),
        TEST(bad_json),
        TEST(bytes_that_changed),
        TEST(oddities),
        TEST(archives_that_are_wrong),
        TEST(a_member_twice_is_one_bad_sample),
        TEST(a_class_that_changed_behind_the_index_is_an_error),
        TEST(the_archive_of_cifar_is_refused),
    };
    return mrt_run(tests);
}
