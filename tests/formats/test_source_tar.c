/* WebDataset archives as a source: grouping, picture and class, fields, sets of files, the kept index; each kind of bad sample and of
 * bad archive, with what is told. */
#include <isa-l/igzip_lib.h>
#include <unistd.h>

#include "millrace/formats.h"
#include "mrt.h"
#include "mrt_tar.h"

static const char jpeg[] = "\xff\xd8\xff\xe0 a picture";
static const char png[] = "\x89PNG\r\n\x1a\n another";

static void picture(mrt_tar *a, const char *name) { mrt_tar_file(a, name, jpeg, sizeof jpeg); }

static void save(mrt_tar *a, const char *name)
{
    mrt_write_file(mrt_path("%s", name), a->data, a->bytes);
    mrt_tar_fini(a);
}

static void save_packed(mrt_tar *a, const char *name)
{
    static uint8_t      out[1 << 20];
    struct isal_zstream z;
    isal_deflate_init(&z);
    z.gzip_flag = IGZIP_GZIP;
    z.end_of_stream = 1;
    z.next_in = a->data;
    z.avail_in = (uint32_t)a->bytes;
    z.next_out = out;
    z.avail_out = sizeof out;
    MRT_EQ(isal_deflate(&z), COMP_OK);
    mrt_write_file(mrt_path("%s", name), out, sizeof out - z.avail_out);
    mrt_tar_fini(a);
}

static mr_source_config cfg;

static int try_open(mr_source **src, const char *name, mr_error *err)
{
    *src = (mr_source *)&cfg;
    const int rc = mr_source_open(src, mrt_path("%s", name), &cfg, err);
    if (rc) MRT_TRUE(*src == NULL);
    return rc;
}

/* The usual settings, no index kept. */
static mr_source *open_one(const char *name)
{
    mr_source *src;
    mr_error   err = MR_ERROR_INIT;
    MRT_OK(try_open(&src, name, &err), &err);
    MRT_STR(mr_source_info_of(src)->format, "tar");
    return src;
}

static int fresh(void **state)
{
    (void)state;
    mr_source_defaults(&cfg);
    cfg.no_index_file = true;
    return 0;
}

static void  *buf;
static size_t buf_bytes;

static mr_sample get(const mr_source *src, uint64_t sample)
{
    mr_sample s;
    mr_error  err = MR_ERROR_INIT;
    MRT_OK(mr_source_read(src, sample, &buf, &buf_bytes, &s, &err), &err);
    MRT_EQ(s.value_count, mr_source_info_of(src)->field_count);
    return s;
}

static void value_is(const mr_value *v, mr_type type, const void *data, size_t bytes)
{
    MRT_EQ(v->type, type);
    MRT_EQ(v->bytes, bytes);
    assert_memory_equal(v->data, data, bytes);
}

static void text_is(const mr_value *v, mr_type type, const char *text) { value_is(v, type, text, strlen(text)); }

static void field_is(const mr_source *src, uint32_t at, const char *name, mr_type type)
{
    MRT_TRUE(at < mr_source_info_of(src)->field_count);
    MRT_STR(mr_source_info_of(src)->fields[at].name, name);
    MRT_EQ(mr_source_info_of(src)->fields[at].type, type);
}

/* n samples from number `first` on, class = number % 5; some with more members, some with what is passed over between them. */
static mrt_tar shard(int first, int n)
{
    mrt_tar a = {0};
    mrt_tar_pax(&a, 'g', "comment", "for all");
    mrt_tar_text(&a, "__index__/first.json", "a writer's note");
    mrt_tar_header(&a, '5', "d/", 0);
    for (int k = first; k < first + n; k++) {
        char name[64], text[32];
        snprintf(name, sizeof name, "d/%06d.JPG", k);
        snprintf(text, sizeof text, "picture %d", k);
        char data[64] = "\xff\xd8\xff";
        snprintf(data + 3, sizeof data - 3, "%s", text);
        if (k % 3 == 0) mrt_tar_pax(&a, 'x', "mtime", "1.5");
        mrt_tar_file(&a, name, data, 3 + strlen(text));
        if (k % 4 == 0) mrt_tar_text(&a, "__meta__", "again");
        snprintf(name, sizeof name, "d/%06d.cls", k);
        snprintf(text, sizeof text, "%d", k % 5);
        mrt_tar_text(&a, name, text);
        snprintf(name, sizeof name, "d/%06d.txt", k);
        if (k % 2 == 0) mrt_tar_text(&a, name, "caption");
    }
    mrt_tar_end(&a);
    return a;
}

static void check_shards(const char *name, uint32_t files, int count)
{
    mr_source            *src = open_one(name);
    const mr_source_info *info = mr_source_info_of(src);
    MRT_EQ(info->count, count);
    MRT_EQ(info->file_count, files);
    MRT_EQ(info->class_count, 5);
    MRT_EQ(info->field_count, 3);
    MRT_EQ(info->image_field, 0);
    MRT_EQ(info->label_field, 1);
    MRT_TRUE(info->told == NULL);
    field_is(src, 0, "image", MR_TYPE_IMAGE);
    field_is(src, 1, "label", MR_TYPE_INT);
    field_is(src, 2, "txt", MR_TYPE_TEXT);
    uint64_t largest = 0, total = 0;
    for (int k = 0; k < count; k++) {
        const mr_sample s = get(src, (uint64_t)k);
        char            text[32] = "\xff\xd8\xff";
        int64_t         label;
        mr_extent       e;
        snprintf(text + 3, sizeof text - 3, "picture %d", k);
        text_is(&s.value[0], MR_TYPE_JPEG, text);
        MRT_EQ(s.value[1].i, k % 5);
        text_is(&s.value[2], MR_TYPE_TEXT, k % 2 ? "" : "caption");
        MRT_EQ(mr_source_label(src, (uint64_t)k, &label), MR_OK);
        MRT_EQ(label, k % 5);
        MRT_EQ(mr_source_extent(src, (uint64_t)k, &e, NULL), MR_OK);
        MRT_EQ(e.offset % 512, 0);
        largest = e.bytes > largest ? e.bytes : largest;
        total += e.bytes;
    }
    MRT_EQ(info->max_extent_bytes, largest);
    MRT_EQ(info->total_bytes, total);
    mr_source_close(src);
}

static void archives(void **state)
{
    (void)state;
    mrt_tar a = shard(0, 30);
    save(&a, "one.tar");
    check_shards("one.tar", 1, 30);
    a = shard(0, 30);
    save_packed(&a, "one.tgz");
    check_shards("one.tgz", 1, 30);
    mrt_mkdir(mrt_path("many"));
    for (int k = 0; k < 3; k++) {
        a = shard(10 * k, 10);
        char name[64];
        snprintf(name, sizeof name, "many/s-%06d.tar", k);
        k == 1 ? save_packed(&a, name) : save(&a, name);
    }
    check_shards("many", 3, 30);
    check_shards("many/s-{000000..000002}.tar", 3, 30);
    check_shards("many/s-*.tar", 3, 30);
    check_shards("many/s-{000000..000001}.tar", 2, 20);
    a = shard(10, 0); /* an archive without samples in front */
    save(&a, "many/empty.tar");
    check_shards("many", 4, 30);
    mr_source     *src = open_one("many");
    mr_source_file f;
    char           path[512];
    for (uint32_t k = 0; k < 4; k++) {
        MRT_EQ(mr_source_file_at(src, k, &f), MR_OK);
        MRT_EQ(f.direct_ok, k != 2);
    }
    MRT_HAS(mr_source_sample_path(src, 12, path, sizeof path), "s-000001.tar");
    mr_source_close(src);
}

static void index_kept(void **state)
{
    (void)state;
    cfg.no_index_file = false;
    mrt_tar a = shard(0, 8);
    mrt_tar_fini(&a);
    picture(&a, "../0.jpg");
    mrt_tar_text(&a, "../0.cls", "3");
    mrt_tar_text(&a, "../0.caption.txt", "text");
    picture(&a, "../1.jpg");
    mrt_tar_text(&a, "../1.cls", "0");
    save(&a, "kept.tar");
    mr_source     *first = open_one("kept.tar"), *second = open_one("kept.tar");
    MRT_EQ(access(mrt_path("kept.tar.mridx"), R_OK), 0);
    MRT_TRUE(mr_source_info_of(first)->fingerprint == mr_source_info_of(second)->fingerprint);
    MRT_EQ(mr_source_info_of(second)->field_count, 3);
    field_is(second, 2, "caption.txt", MR_TYPE_TEXT);
    MRT_EQ(mr_source_info_of(second)->class_count, 4);
    MRT_HAS(mr_source_info_of(first)->told, "5 names lead out of their folder (first: \"../0.jpg\", offset 0 of file 1)");
    MRT_HAS(mr_source_info_of(second)->told, "5 names lead out of their folder");
    MRT_HAS(mr_source_info_of(second)->told, "1 archive has no end mark (first: offset 5120 of file 1); is it whole?");
    MRT_EQ(get(second, 1).value[1].i, 0);
    mr_source_close(first);
    mr_source_close(second);
    cfg.label_key = "caption.txt"; /* other settings, another index */
    mr_source *src = open_one("kept.tar");
    MRT_EQ(mr_source_info_of(src)->class_count, 0);
    mr_source_close(src);
}

/* ---- what the members mean ---- */
static void pictures_by_content(void **state)
{
    (void)state;
    mrt_tar a = {0};
    mrt_tar_text(&a, "0.jpg", "no picture");
    mrt_tar_file(&a, "0.weird", jpeg, sizeof jpeg);
    mrt_tar_file(&a, "0.seg.png", png, sizeof png);
    mrt_tar_file(&a, "0.png", png, sizeof png);
    mrt_tar_text(&a, "0.cls", "1");
    mrt_tar_text(&a, "1.cls", "0");
    mrt_tar_file(&a, "1.seg.png", png, sizeof png);
    mrt_tar_file(&a, "1.other", jpeg, sizeof jpeg); /* the mask is a field: not the picture */
    save(&a, "content.tar");
    mr_source *src = open_one("content.tar");
    MRT_EQ(mr_source_info_of(src)->field_count, 5);
    field_is(src, 2, "jpg", MR_TYPE_BYTES);
    field_is(src, 3, "weird", MR_TYPE_BYTES);
    field_is(src, 4, "seg.png", MR_TYPE_BYTES);
    mr_sample s = get(src, 0);
    value_is(&s.value[0], MR_TYPE_PNG, png, sizeof png);
    value_is(&s.value[3], MR_TYPE_BYTES, jpeg, sizeof jpeg);
    s = get(src, 1);
    value_is(&s.value[0], MR_TYPE_JPEG, jpeg, sizeof jpeg);
    value_is(&s.value[4], MR_TYPE_BYTES, png, sizeof png);
    MRT_EQ(s.value[2].bytes, 0);
    mr_source_close(src);
    cfg.image_key = ".SEG.png";
    src = open_one("content.tar");
    s = get(src, 0);
    value_is(&s.value[0], MR_TYPE_PNG, png, sizeof png);
    field_is(src, 3, "weird", MR_TYPE_BYTES);
    field_is(src, 4, "png", MR_TYPE_BYTES);
    mr_source_close(src);
}

/* The class of the only sample of an archive with this member, as label_key says. */
static int64_t class_of(const char *ext, const char *text, const char *key)
{
    mrt_tar a = {0};
    char    name[64];
    picture(&a, "a.b/0.jpg");
    snprintf(name, sizeof name, "a.b/0.%s", ext);
    mrt_tar_text(&a, name, text);
    mrt_tar_end(&a);
    save(&a, "class.tar");
    cfg.label_key = key;
    mr_source    *src = open_one("class.tar");
    const int     at = mr_source_info_of(src)->label_field;
    const int64_t label = at < 0 ? -1 : get(src, 0).value[at].i;
    mr_source_close(src);
    return label;
}

static void classes(void **state)
{
    (void)state;
    cfg.label_offset = 0;
    MRT_EQ(class_of("cls", "17", NULL), 17);
    MRT_EQ(class_of("cls", " +17\r\n", NULL), 17);
    MRT_EQ(class_of("CLS", "0", NULL), 0);
    MRT_EQ(class_of("class", "4", NULL), 4);
    MRT_EQ(class_of("label", "5", NULL), 5);
    MRT_EQ(class_of("txt", "6", NULL), -1); /* a caption, by custom */
    MRT_EQ(class_of("txt", "6", "txt"), 6);
    MRT_EQ(class_of("json", "{\"label\": 7}", NULL), 7);
    MRT_EQ(class_of("json", " {\"x\": [1, {}], \"cls\": 8.0}\n", NULL), 8);
    MRT_EQ(class_of("meta.json", "{\"label\": \"cat\", \"class\": 9}", NULL), 9);
    MRT_EQ(class_of("json", "{\"Species\": 10, \"label\": 1}", "Species"), 10);
    MRT_EQ(class_of("json", "{\"label\": \"cat\"}", NULL), -1);
    MRT_EQ(class_of("json", "[1]", NULL), -1);
    MRT_EQ(class_of("number.cls", "11", NULL), -1);
    MRT_EQ(class_of("number.cls", "11", ".Number.cls"), 11);
    cfg.label_offset = MR_LABEL_AUTO;
    MRT_EQ(class_of("cls", "1", NULL), 0);
    cfg.label_offset = 10;
    MRT_EQ(class_of("cls", "17", NULL), 7);
}

static void no_picture_at_all(void **state)
{
    (void)state;
    mrt_tar a = {0};
    mrt_tar_text(&a, "0.x", "one");
    mrt_tar_text(&a, "0.image", "taken name");
    mrt_tar_text(&a, "0.image.entries", "taken name");
    mrt_tar_text(&a, "0.", "no name");
    mrt_tar_text(&a, "0.txt", "two");
    mrt_tar_end(&a);
    save(&a, "text.tar");
    mr_source *src = open_one("text.tar");
    MRT_EQ(mr_source_info_of(src)->image_field, -1);
    MRT_EQ(mr_source_info_of(src)->label_field, -1);
    MRT_EQ(mr_source_info_of(src)->field_count, 2);
    const mr_sample s = get(src, 0);
    text_is(&s.value[0], MR_TYPE_BYTES, "one");
    text_is(&s.value[1], MR_TYPE_TEXT, "two");
    mr_source_close(src);
}

/* The schema comes from a sample that is whole, not from a damaged first one. */
static void schema_from_a_whole_sample(void **state)
{
    (void)state;
    mrt_tar a = {0};
    mrt_tar_text(&a, "0.cls", "1");
    picture(&a, "1.jpg");
    mrt_tar_text(&a, "2.cls", "0");
    picture(&a, "2.jpg");
    mrt_tar_end(&a);
    save(&a, "late.tar");
    mr_source *src = open_one("late.tar");
    MRT_EQ(mr_source_info_of(src)->field_count, 2);
    MRT_EQ(get(src, 2).value[1].i, 0);
    mr_source_close(src);
    a = (mrt_tar){0};
    cfg.image_key = "gif";
    mr_error err = MR_ERROR_INIT;
    MRT_EQ(try_open(&src, "late.tar", &err), MR_EFORMAT);
    MRT_HAS(err.text, "none of the first 64 samples has a picture in member \"gif\"");
    MRT_HAS(err.file, "late.tar");
    cfg.image_key = NULL;
    cfg.label_key = "kind";
    MRT_EQ(try_open(&src, "late.tar", &err), MR_EFORMAT);
    MRT_HAS(err.text, "a member or a field in .json named \"kind\"");
    cfg.label_key = "";
    MRT_EQ(try_open(&src, "late.tar", &err), MR_EINVAL);
}

/* ---- bad samples ---- */
static mrt_tar bad; /* begins with a good sample; the one made by the test follows, then another good one */

static void begin_bad(void)
{
    bad = (mrt_tar){0};
    picture(&bad, "good.jpg");
    mrt_tar_text(&bad, "good.cls", "1");
    mrt_tar_text(&bad, "good.txt", "caption");
}

enum { BAD_AT = 3072 };

static void is_bad(int code, uint64_t offset, const char *text)
{
    picture(&bad, "last.jpg");
    mrt_tar_text(&bad, "last.cls", "0");
    mrt_tar_end(&bad);
    save(&bad, "bad.tar");
    for (int again = 0; again < 2; again++) { /* scanned, then from the index */
        cfg.no_index_file = again == 0;
        if (again) mr_source_close(open_one("bad.tar"));
        mr_source *src = open_one("bad.tar");
        mr_sample  s;
        mr_error   err = MR_ERROR_INIT;
        MRT_EQ(mr_source_info_of(src)->count, 3);
        MRT_EQ(mr_source_info_of(src)->class_count, 2);
        MRT_EQ(mr_source_read(src, 1, &buf, &buf_bytes, &s, &err), code);
        MRT_EQ(err.sample, 1);
        MRT_EQ(err.offset, offset);
        MRT_HAS(err.file, "bad.tar");
        MRT_HAS(err.text, text);
        MRT_EQ(get(src, 0).value[1].i, 1);
        MRT_EQ(get(src, 2).value[1].i, 0);
        mr_source_close(src);
    }
    unlink(mrt_path("bad.tar.mridx"));
}

static void bad_class(const char *text, const char *told)
{
    begin_bad();
    picture(&bad, "b.jpg");
    mrt_tar_text(&bad, "b.cls", text);
    is_bad(MR_EFORMAT, BAD_AT + 1536, told);
}

static void bad_members(void **state)
{
    (void)state;
    begin_bad();
    mrt_tar_text(&bad, "b.cls", "1");
    mrt_tar_text(&bad, "b.txt", "x");
    is_bad(MR_EFORMAT, BAD_AT, "sample \"b\": expected a JPEG or PNG, found .cls, .txt (members of one sample must be neighbours)");
    begin_bad();
    mrt_tar_text(&bad, "b.jpg", "GIF89a..............................");
    mrt_tar_text(&bad, "b.cls", "1");
    is_bad(MR_EFORMAT, BAD_AT + 512, "sample \"b\", member .jpg: ");
    begin_bad();
    picture(&bad, "b\n\xff.jpg");
    is_bad(MR_EFORMAT, BAD_AT, "sample \"b\\x0a\\xff\": expected a class in .cls, found .jpg (");
    begin_bad();
    picture(&bad, "b.jpg");
    mrt_tar_text(&bad, "b.cls", "1");
    picture(&bad, "b.JPG");
    is_bad(MR_EFORMAT, BAD_AT + 2560, "sample \"b\": expected each member once, found a second .jpg");
    begin_bad();
    mrt_tar_header(&bad, '1', "b.jpg", 0);
    mrt_tar_text(&bad, "b.cls", "1");
    mrt_tar_header(&bad, '2', "b.jpg", 0);
    is_bad(MR_EFORMAT, BAD_AT + 512, "found .cls, .jpg, a symbolic link without bytes of its own");
    begin_bad();
    picture(&bad, "b.jpg");
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
    picture(&bad, "b.jpg");
    mrt_tar_text(&bad, "b.cls", "1");
    mrt_tar_text(&bad, "b.txt", "caf\xe9");
    is_bad(MR_EFORMAT, BAD_AT + 2560, "expected text in UTF-8, found other bytes in .txt");
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
    bad_class("                                                                 1", "expected a class in 1 to 64 bytes, found 66");
    bad_class("-1", "expected a label from 0 to 16777215, found -1");
    bad_class("1099511627776", "found 1099511627776");
    bad_class("-9223372036854775807", "found -9223372036854775807");
}

static void bad_json(void **state)
{
    (void)state;
    static const struct { const char *json, *told; } cases[] = {
        {"{\"label\": \"cat\"}", "field \"label\": expected a class as whole number, found a text"},
        {"{\"label\": [1]}", "found a list"}, {"{\"label\": 0.5}", "found another number"}, {"{\"label\": 1e300}", "found another number"},
        {"{\"label\": null}", "found something else"}, {"{\"Label\": 1}", "expected one field \"label\" with the class, found none"},
        {"{\"label\": 1, \"label\": 2}", "found it more than once"}, {"[1]", "found no object"}, {"{\"label\": 1", "found no JSON"},
        {"{\"label\": 1} 2", "found no JSON"}, {"{\"label\": -1}", "found -1"}, {"{\"label\": 1099511627776}", "found 1099511627776"},
    };
    for (size_t k = 0; k < sizeof cases / sizeof *cases; k++) {
        mrt_tar a = {0};
        picture(&a, "good.jpg");
        mrt_tar_text(&a, "good.json", "{\"label\": 3}");
        picture(&a, "b.jpg");
        mrt_tar_text(&a, "b.json", cases[k].json);
        mrt_tar_end(&a);
        save(&a, "json.tar");
        mr_source *src = open_one("json.tar");
        mr_sample  s;
        mr_error   err = MR_ERROR_INIT;
        MRT_EQ(get(src, 0).value[1].i, 3);
        MRT_EQ(mr_source_read(src, 1, &buf, &buf_bytes, &s, &err), MR_EFORMAT);
        MRT_HAS(err.text, cases[k].told);
        MRT_EQ(err.offset, 2048 + 1536);
        MRT_EQ(err.sample, 1);
        mr_source_close(src);
    }
}

static void bytes_that_changed(void **state)
{
    (void)state;
    mrt_tar a = {0};
    picture(&a, "0.jpg");
    mrt_tar_text(&a, "0.cls", "0");
    const size_t bytes = 1536 + 1;
    uint8_t      copy[1537];
    memcpy(copy, a.data, bytes);
    mrt_tar_end(&a);
    save(&a, "changed.tar");
    mr_source *src = open_one("changed.tar");
    mr_sample  s;
    mr_error   err = MR_ERROR_INIT;
    MRT_OK(mr_source_parse(src, 0, copy, bytes, &s, &err), &err);
    for (size_t cut = 0; cut < bytes; cut++) { /* never read past what was given */
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

/* ---- what is odd, and what is wrong with all of it ---- */
static void told(mrt_tar *a, uint64_t count, const char *text)
{
    save(a, "odd.tar");
    mr_source *src = open_one("odd.tar");
    MRT_EQ(mr_source_info_of(src)->count, count);
    MRT_TRUE(mr_source_info_of(src)->told != NULL);
    MRT_STR(mr_source_info_of(src)->told, text);
    mr_source_close(src);
}

static mrt_tar good(const char *key)
{
    mrt_tar a = {0};
    char    name[64];
    snprintf(name, sizeof name, "%s.jpg", key);
    picture(&a, name);
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
        snprintf(text, sizeof text, "1 name leads out of its folder (first: \"%s.jpg\", offset 0 of file 1); nothing is unpacked by name", outside[k]);
        told(&a, 1, text);
    }
    mrt_tar a = good("a");
    mrt_tar_header(&a, '2', "lin\nk.jpg", 0);
    mrt_tar_header(&a, '1', "b.jpg", 0);
    mrt_tar_header(&a, '3', "c", 0);
    mrt_tar_header(&a, '6', "d", 0);
    mrt_tar_end(&a);
    told(&a, 1, "4 members that are no files were passed over (first: \"lin\\x0ak.jpg\", offset 1024 of file 1)");
    a = good("a");
    mrt_tar_text(&a, "README", "x");
    mrt_tar_text(&a, "d/.hidden", "x");
    mrt_tar_text(&a, "d.x/none", "x");
    mrt_tar_end(&a);
    told(&a, 1, "3 members without a key were passed over (first: \"README\", offset 1024 of file 1)");
    a = good("a");
    picture(&a, "b.jpg");
    mrt_tar_text(&a, "a.txt", "x");
    mrt_tar_end(&a);
    told(&a, 3, "1 key comes again (first: \"a\", offset 2048 of file 1); members of one sample must be neighbours");
    a = good("a");
    mrt_tar_header(&a, '6', "pipe", 0);
    told(&a, 1, "1 member that is no file was passed over (first: \"pipe\", offset 1024 of file 1); 1 archive has no end mark (first: offset 1536 "
                "of file 1); is it whole?");
    a = good("..a"); /* two dots are no way out here, but they hide the name */
    picture(&a, "x../b.jpg");
    mrt_tar_end(&a);
    told(&a, 1, "1 member without a key was passed over (first: \"..a.jpg\", offset 0 of file 1)");
}

static void refused(mrt_tar *a, int code, uint64_t offset, const char *text)
{
    for (int packed = 0; packed < 2; packed++) {
        mrt_tar copy = {0};
        mrt_tar_raw(&copy, a->data, a->bytes);
        packed ? save_packed(&copy, "refused.tar") : save(&copy, "refused.tar");
        mr_source *src;
        mr_error   err = MR_ERROR_INIT;
        MRT_EQ(try_open(&src, "refused.tar", &err), code);
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

static void over_the_budget(void **state)
{
    (void)state;
    mrt_tar a = {0};
    for (int k = 0; k < 2000; k++) {
        char name[32];
        snprintf(name, sizeof name, "%d.jpg", k);
        mrt_tar_header(&a, '0', name, 0);
    }
    save(&a, "large.tar");
    mr_source *src;
    mr_error   err = MR_ERROR_INIT;
    cfg.memory_bytes = 16000;
    MRT_EQ(try_open(&src, "large.tar", &err), MR_ELIMIT);
    MRT_HAS(err.file, "large.tar");
}

static void allocations_fail(void **state)
{
    (void)state;
    mrt_tar a = shard(0, 4);
    save_packed(&a, "alloc.tar");
    for (int kept = 0; kept < 2; kept++) {
        cfg.no_index_file = kept == 0;
        for (int n = 0;; n++) {
            if (kept) unlink(mrt_path("alloc.tar.mridx"));
            mr_error   err = MR_ERROR_INIT;
            mr_source *src;
            mrt_fail_alloc_at(n);
            const int rc = try_open(&src, "alloc.tar", &err);
            const int failed = mrt_alloc_failed();
            mrt_fail_alloc_at(-1);
            if (rc == MR_OK) {
                mr_source_close(src);
                if (failed) continue; /* an index that could not be kept is no failure */
                MRT_TRUE(n > 5);
                break;
            }
            MRT_EQ(rc, MR_ENOMEM);
        }
    }
}

static int done(void **state)
{
    (void)state;
    free(buf);
    buf = NULL;
    buf_bytes = 0;
    return 0;
}

int main(void)
{
#define TEST(name) cmocka_unit_test_setup_teardown(name, fresh, done)
    const struct CMUnitTest tests[] = {
        TEST(archives), TEST(index_kept), TEST(pictures_by_content), TEST(classes), TEST(no_picture_at_all),
        TEST(schema_from_a_whole_sample), TEST(bad_members), TEST(bad_classes), TEST(bad_json), TEST(bytes_that_changed), TEST(oddities),
        TEST(archives_that_are_wrong), TEST(over_the_budget), TEST(allocations_fail),
    };
    return mrt_run(tests);
}
