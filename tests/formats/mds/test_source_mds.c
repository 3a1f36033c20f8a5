/* MDS as a data set: shards made byte by byte, with and without the index; every rejection with its file and
 * offset; every encoding that is taken apart. What convert writes is read by others in peers/matrix.py. */
#include <sys/stat.h>

#include "formats/mds/mds.h"
#include "millrace/formats.h"
#include "mrt.h"

enum { PICTURE = 40, ROOM = 4096 };

typedef struct shard {
    uint8_t bytes[ROOM];
    uint32_t size, count, at[8];
    uint8_t sample[ROOM];
    uint32_t sample_bytes;
} shard;

static void put(shard *s, const void *data, uint32_t bytes)
{
    memcpy(s->sample + s->sample_bytes, data, bytes);
    s->sample_bytes += bytes;
}

static void put_u32(shard *s, uint32_t v) { put(s, &v, sizeof v); }

static void end_sample(shard *s) { s->at[++s->count] = s->sample_bytes; }

/* names, encodings, sizes: JSON lists. */
static void finish(shard *s, const char *names, const char *encodings, const char *sizes)
{
    char text[1024];
    const uint32_t n = (uint32_t)snprintf(
        text, sizeof text,
        "{\"column_names\":%s,\"column_encodings\":%s,\"column_sizes\":%s,\"format\":\"mds\",\"version\":2}",
        names, encodings, sizes);
    const uint32_t table = 8 + 4 * s->count, first = table + n;
    memcpy(s->bytes, &s->count, 4);
    for (uint32_t k = 0; k <= s->count; k++) {
        const uint32_t at = first + s->at[k];
        memcpy(s->bytes + 4 + 4 * k, &at, 4);
    }
    memcpy(s->bytes + table, text, n);
    memcpy(s->bytes + first, s->sample, s->sample_bytes);
    s->size = first + s->sample_bytes;
}

static void picture(uint8_t p[PICTURE], uint64_t seed)
{
    mrt_noise(p, PICTURE, seed + 1);
    memcpy(p, "\xff\xd8\xff\xe0", 4);
}

/* Pictures of PICTURE bytes with the labels first, first + 1, ... */
static shard *usual(uint32_t count, int64_t first)
{
    static shard s;
    s = (shard){0};
    for (uint32_t k = 0; k < count; k++) {
        uint8_t p[PICTURE];
        const int64_t label = first + k;
        picture(p, (uint64_t)label);
        put_u32(&s, PICTURE);
        put(&s, p, PICTURE);
        put(&s, &label, 8);
        end_sample(&s);
    }
    finish(&s, "[\"image\",\"label\"]", "[\"jpeg\",\"int\"]", "[null,8]");
    return &s;
}

static const char entry[] =
    "%s{\"column_encodings\":[\"jpeg\",\"int\"],\"column_names\":[\"image\",\"label\"],\"column_sizes\":["
    "null,8],"
    "\"compression\":%s,\"format\":\"%s\",\"hashes\":[],\"raw_data\":{\"basename\":\"%s\",\"bytes\":%u,"
    "\"hashes\":{%s}},\"samples\":%u,\"version\":2,\"zip_data\":%s}";

/* A folder NAME with two shards and their list, whose text is given back. */
static char *two(const char *name)
{
    static char text[4096];
    mrt_mkdir(mrt_path("%s", name));
    const shard *a = usual(3, 0);
    mrt_write_file(mrt_path("%s/s.0", name), a->bytes, a->size);
    int n = snprintf(text, sizeof text,
                     "{\"version\":2,\"class_names\":[\"a\",\"b\",\"c\",\"d\",\"e\"],\"shards\":[");
    n += snprintf(text + n, sizeof text - (size_t)n, entry, "", "null", "mds", "s.0", a->size, "", a->count,
                  "null");
    const shard *b = usual(2, 3);
    mrt_write_file(mrt_path("%s/s.1", name), b->bytes, b->size);
    n += snprintf(text + n, sizeof text - (size_t)n, entry, ",", "null", "mds", "s.1", b->size, "", b->count,
                  "null");
    snprintf(text + n, sizeof text - (size_t)n, "]}");
    mrt_write_file(mrt_path("%s/index.json", name), text, strlen(text));
    return text;
}

static int try_open(const char *path, const char *label_key, mr_source **src, mr_error *err)
{
    mr_source_config cfg;
    mr_source_defaults(&cfg);
    cfg.no_index_file = true;
    cfg.label_key = label_key;
    cfg.format = "mds";
    *src = (mr_source *)(uintptr_t)&cfg;
    const int rc = mr_source_open(src, path, &cfg, err);
    if (rc) MRT_TRUE(*src == NULL);
    return rc;
}

static mr_source *open_ok(const char *path)
{
    mr_source *src;
    mr_error err = MR_ERROR_INIT;
    MRT_OK(try_open(path, NULL, &src, &err), &err);
    return src;
}

static mr_error refused(const char *path, int code, const char *text)
{
    mr_source *src;
    mr_error err = MR_ERROR_INIT;
    MRT_EQ(try_open(path, NULL, &src, &err), code);
    MRT_HAS(err.text, text);
    return err;
}

static void read_one(const mr_source *src, uint64_t at, void **buf, size_t *bytes, mr_sample *s)
{
    mr_error err = MR_ERROR_INIT;
    MRT_OK(mr_source_read(src, at, buf, bytes, s, &err), &err);
}

static void check_usual(const mr_source *src, uint64_t count)
{
    void *buf = NULL;
    size_t bytes = 0;
    MRT_EQ(mr_source_info_of(src)->count, count);
    for (uint64_t k = 0; k < count; k++) {
        mr_sample s;
        uint8_t expected[PICTURE];
        int64_t label = -1;
        picture(expected, k);
        read_one(src, k, &buf, &bytes, &s);
        MRT_EQ(s.value[0].type, MR_TYPE_JPEG);
        MRT_EQ(s.value[0].bytes, PICTURE);
        MRT_TRUE(memcmp(s.value[0].data, expected, PICTURE) == 0);
        MRT_EQ(s.value[1].i, (int64_t)k);
        MRT_EQ(mr_source_label(src, k, &label), MR_OK);
        MRT_EQ(label, (int64_t)k);
    }
    free(buf);
}

static void a_folder_and_a_shard(void **state)
{
    (void)state;
    mr_source *src;
    two("set");
    src = open_ok(mrt_path("set"));
    check_usual(src, 5);
    MRT_EQ(mr_source_info_of(src)->class_count, 5);
    MRT_TRUE(strcmp(mr_source_info_of(src)->class_names[4], "e") == 0);
    mr_source_close(src);
    src = open_ok(mrt_path("set/index.json"));
    check_usual(src, 5);
    mr_source_close(src);
    src = open_ok(mrt_path("set/s.0"));
    check_usual(src, 3);
    mr_source_close(src);
    mr_error err = MR_ERROR_INIT;
    const char *const paths[] = {"set", "set/index.json", "set/s.1"};
    for (size_t k = 0; k < MRI_ARRAY_COUNT(paths); k++) { /* and by content alone */
        mr_source_config cfg;
        mr_source_defaults(&cfg);
        cfg.no_index_file = true;
        MRT_OK(mr_source_open(&src, mrt_path("%s", paths[k]), &cfg, &err), &err);
        MRT_TRUE(strcmp(mr_source_info_of(src)->format, "mds") == 0);
        mr_source_close(src);
    }
}

/* ---- encodings ---- */
static const mr_value *value_of(const mr_source *src, const mr_sample *s, const char *name)
{
    const mr_source_info *info = mr_source_info_of(src);
    for (uint32_t k = 0; k < info->field_count; k++)
        if (strcmp(info->fields[k].name, name) == 0) return &s->value[k];
    fail_msg("no field %s", name);
    return NULL;
}

static void every_encoding(void **state)
{
    (void)state;
    static shard s;
    s = (shard){0};
    const uint16_t half = 0xc500 /* -5 */, wide = 65535;
    const float floats[2] = {1.5f, -2.25f};
    const double real = 0.1;
    const uint32_t pil[3] = {2, 1, 3};
    const uint64_t large = 1ull << 40;
    const uint8_t pixels[6] = {1, 2, 3, 4, 5, 6}, shape[3] = {2 << 2, 1, 2};
    put_u32(&s, 3), put_u32(&s, 21), put_u32(&s, 4), put_u32(&s, 11), put_u32(&s, 3); /* text pil si dyn pkl
                                                                                       */
    put(&s, &half, 2), put(&s, floats, 4), put(&s, &real, 8), put(&s, &wide, 2), put(&s, &large, 8);
    put(&s, "\xc3\xa4z", 3);
    put(&s, pil, 12), put(&s, "RGB", 3), put(&s, pixels, 6);
    put(&s, floats, 8);
    put(&s, "-123", 4);
    put(&s, shape, 3), put(&s, floats, 8);
    put(&s, "abc", 3);
    end_sample(&s);
    finish(&s, "[\"h\",\"f\",\"d\",\"u16\",\"u64\",\"text\",\"p\",\"arr\",\"si\",\"dyn\",\"pk\"]",
           "[\"float16\",\"float32\",\"float64\",\"uint16\",\"uint64\",\"str\",\"pil\",\"ndarray:float32:1,"
           "2\",\"str_int\","
           "\"ndarray:float32\",\"pkl\"]",
           "[2,4,8,2,8,null,null,8,null,null,null]");
    mrt_write_file(mrt_path("all.mds"), s.bytes, s.size);
    mr_source *src = open_ok(mrt_path("all.mds"));
    void *buf = NULL;
    size_t bytes = 0;
    mr_sample got;
    read_one(src, 0, &buf, &bytes, &got);
    MRT_TRUE(value_of(src, &got, "h")->f == -5.0);
    MRT_TRUE(value_of(src, &got, "f")->f == 1.5);
    MRT_TRUE(value_of(src, &got, "d")->f == 0.1);
    MRT_EQ(value_of(src, &got, "u16")->i, 65535);
    MRT_EQ(value_of(src, &got, "u64")->i, 1ll << 40);
    MRT_EQ(value_of(src, &got, "si")->i, -123);
    MRT_EQ(value_of(src, &got, "text")->type, MR_TYPE_TEXT);
    MRT_EQ(value_of(src, &got, "pk")->type, MR_TYPE_BYTES);
    MRT_HAS(mr_source_info_of(src)->told,
            "no class is taken: whole numbers are in u16, u64, si; --label-key");
    const mr_value *v = value_of(src, &got, "image"); /* p: the only picture */
    MRT_EQ(v->type, MR_TYPE_PIXELS);
    MRT_EQ(v->dim[0], 1), MRT_EQ(v->dim[1], 2), MRT_EQ(v->dim[2], 3);
    MRT_TRUE(memcmp(v->data, pixels, 6) == 0);
    for (int k = 0; k < 2; k++) {
        v = value_of(src, &got, k ? "dyn" : "arr");
        MRT_EQ(v->ndim, 2), MRT_EQ(v->dim[0], 1), MRT_EQ(v->dim[1], 2);
        MRT_TRUE(memcmp(v->data, floats, 8) == 0);
    }
    free(buf);
    mr_source_close(src);
}

/* Texts are no classes here, and that is told. */
static void text_labels(void **state)
{
    (void)state;
    static shard s;
    uint8_t p[PICTURE];
    picture(p, 1);
    put_u32(&s, PICTURE), put_u32(&s, 3), put(&s, p, PICTURE), put(&s, "ant", 3);
    end_sample(&s);
    finish(&s, "[\"image\",\"label\"]", "[\"jpeg\",\"str\"]", "[null,null]");
    mrt_write_file(mrt_path("text.mds"), s.bytes, s.size);
    mr_source *src = open_ok(mrt_path("text.mds"));
    MRT_EQ(mr_source_info_of(src)->label_field, -1);
    MRT_HAS(mr_source_info_of(src)->told, "no class is taken: column \"label\" has texts");
    mr_source_close(src);
}

/* ---- refused sets ---- */
static mr_error bad_sample(const char *path, const char *text)
{
    mr_source *src = open_ok(path);
    void *buf = NULL;
    size_t bytes = 0;
    mr_sample s;
    mr_error err = MR_ERROR_INIT;
    const int rc = mr_source_read(src, 0, &buf, &bytes, &s, &err);
    MRT_TRUE(rc == MR_EFORMAT || rc == MR_EUNSUPPORTED);
    MRT_HAS(err.text, text);
    MRT_EQ(err.sample, 0);
    free(buf);
    mr_source_close(src);
    return err;
}

static void wrong_shards(void **state)
{
    (void)state;
    const char *path = mrt_path("wrong.mds");
    char *name = strdup(path);
    shard *s = usual(3, 0);
    const uint32_t first = mri_le32(s->bytes + 4);
    mrt_write_file(name, s->bytes, s->size - 1); /* cut */
    mr_error err = refused(name, MR_EFORMAT, "ends at");
    MRT_EQ(err.offset, 4 + 4 * 3);
    MRT_HAS(err.file, "wrong.mds");
    mrt_write_file(name, s->bytes, first - 3);
    refused(name, MR_EFORMAT, "it is cut");
    mrt_write_file(name, s->bytes, 7);
    refused(name, MR_EFORMAT, "8 bytes");
    s->bytes[s->size] = 1; /* something behind */
    mrt_write_file(name, s->bytes, s->size + 1);
    err = refused(name, MR_EFORMAT, "the samples end at");
    MRT_EQ(err.offset, 4 + 4 * 3);
    mri_put_le32(s->bytes + 8, first - 1); /* the second begins in front of the first */
    mrt_write_file(name, s->bytes, s->size);
    err = refused(name, MR_EFORMAT, "offsets are damaged");
    MRT_EQ(err.offset, 8);
    s = usual(3, 0);
    s->bytes[8 + 4 * 3] = '[';
    mrt_write_file(name, s->bytes, s->size);
    err = refused(name, MR_EFORMAT, "JSON object");
    MRT_EQ(err.offset, 8 + 4 * 3);
    s = usual(2, 0);
    mri_put_le32(s->bytes + mri_le32(s->bytes + 4), PICTURE + 1); /* the picture's size */
    mrt_write_file(name, s->bytes, s->size);
    err = bad_sample(name, "column \"label\": expected 8 bytes, found 7");
    MRT_EQ(err.offset, mri_le32(s->bytes + 4));
    s = usual(1, 0);
    memset(s->bytes + mri_le32(s->bytes + 4) + 4, 'x', 4);
    mrt_write_file(name, s->bytes, s->size);
    bad_sample(name, "expected a picture");
    free(name);
}

static void wrong_columns(void **state)
{
    (void)state;
    static const struct {
        const char *names, *encodings, *sizes, *text;
        int code;
    } cases[] = {
        {"[\"a\"]", "[\"int\"]", "[4]", "expected int to have 8 bytes, found 4", MR_EFORMAT},
        {"[\"a\"]", "[\"int\"]", "[null]", "expected int to have 8 bytes, found 0", MR_EFORMAT},
        {"[\"a\"]", "[\"int\",\"int\"]", "[8]", "of one length", MR_EFORMAT},
        {"[\"a\",\"a\"]", "[\"int\",\"int\"]", "[8,8]", "comes twice", MR_EFORMAT},
        {"[]", "[]", "[]", "of one length", MR_EFORMAT},
        {"[1]", "[\"int\"]", "[8]", "expected a name", MR_EFORMAT},
        {"[\"a\"]", "[\"int\"]", "[-8]", "a size in bytes or null", MR_EFORMAT},
        {"[\"a\"]", "[\"int\"]", "[8.5]", "a size in bytes or null", MR_EFORMAT},
        {"[\"a\"]", "[\"ndarray:int8:2,,3\"]", "[6]", "such as ndarray", MR_EFORMAT},
        {"[\"a\"]", "[\"ndarray:int8:0\"]", "[0]", "such as ndarray", MR_EFORMAT},
        {"[\"a\"]", "[\"ndarray:what\"]", "[null]", "such as ndarray", MR_EFORMAT},
        {"[\"a\"]", "[\"ndarray:int16:2,3\"]", "[6]", "to have 12 bytes", MR_EFORMAT},
        {"[\"a\"]", "[\"ndarray:int8:4294967296,4294967296\"]", "[8]", "bytes, found 8", MR_EFORMAT},
    };
    for (size_t k = 0; k < MRI_ARRAY_COUNT(cases); k++) {
        static shard s;
        s = (shard){0};
        put(&s, "12345678", 8);
        end_sample(&s);
        finish(&s, cases[k].names, cases[k].encodings, cases[k].sizes);
        mrt_write_file(mrt_path("columns.mds"), s.bytes, s.size);
        refused(mrt_path("columns.mds"), cases[k].code, cases[k].text);
    }
}

static void replace(char *text, const char *from, const char *to)
{
    char *at = strstr(text, from), rest[4096];
    MRT_TRUE(at != NULL);
    snprintf(rest, sizeof rest, "%s", at + strlen(from));
    memcpy(at, to, strlen(to));
    memcpy(at + strlen(to), rest, strlen(rest) + 1);
}

static void wrong_index(void **state)
{
    (void)state;
    static const struct {
        const char *from, *to, *text;
        int code;
    } cases[] = {
        {"\"samples\":2", "\"samples\":3", "expected 3 samples as in index.json, found 2", MR_EFORMAT},
        {"\"basename\":\"s.1\"", "\"basename\":\"s.2\"", "the shard is missing", MR_ENOENT},
        {"\"basename\":\"s.1\"", "\"basename\":\"../s.1\"", "below the folder", MR_EFORMAT},
        {"\"basename\":\"s.1\"", "\"basename\":\"/s.1\"", "below the folder", MR_EFORMAT},
        {"\"basename\":\"s.1\"", "\"basename\":1", "expected basename and bytes", MR_EFORMAT},
        {"\"version\":2,\"class_names\"", "\"version\":3,\"class_names\"", "expected version 2",
         MR_EUNSUPPORTED},
        {"\"format\":\"mds\"", "\"format\":\"csv\"", "found \"csv\"", MR_EUNSUPPORTED},
        {"\"bytes\":", "\"bytes\":1", "copy the shard again", MR_EFORMAT},
        {"\"shards\":[", "\"shards\":{},\"no\":[", "expected 1 to", MR_EFORMAT},
        {"{\"version\"", "(\"version\"", "JSON object", MR_EFORMAT},
    };
    for (size_t k = 0; k < MRI_ARRAY_COUNT(cases); k++) {
        char *text = two("index");
        replace(text, cases[k].from, cases[k].to);
        mrt_write_file(mrt_path("index/index.json"), text, strlen(text));
        const mr_error err = refused(mrt_path("index"), cases[k].code, cases[k].text);
        MRT_TRUE(err.file[0]);
    }
    char *text = two("index"); /* packed in a way that is not supported */
    replace(text, "\"basename\":\"s.1\"", "\"basename\":\"gone\"");
    replace(text, "\"zip_data\":null}]", "\"zip_data\":{\"basename\":\"s.1\",\"bytes\":1}}]");
    mrt_write_file(mrt_path("index/index.json"), text, strlen(text));
    refused(mrt_path("index"), MR_EUNSUPPORTED, "unpack it into the folder");
    two("index"); /* other columns in the second shard */
    shard *s = usual(2, 3);
    memcpy(strstr((char *)s->bytes + 8 + 8, "label"), "labex", 5);
    mrt_write_file(mrt_path("index/s.1"), s->bytes, s->size);
    refused(mrt_path("index"), MR_EFORMAT, "expected the columns of the first shard");
}

static void hashes_are_compared(void **state)
{
    (void)state;
    mr_error err = MR_ERROR_INIT;
    char text[2048];
    const shard *s = usual(2, 0);
    mrt_mkdir(mrt_path("hash"));
    snprintf(text, sizeof text, entry, "{\"version\":2,\"shards\":[", "null", "mds", "s", s->size,
             "\"xxh3_64\":\"0123456789abcdef\"", 2, "null");
    strcat(text, "]}");
    mrt_write_file(mrt_path("hash/s"), s->bytes, s->size);
    mrt_write_file(mrt_path("hash/index.json"), text, strlen(text));
    mr_source *src = open_ok(mrt_path("hash"));
    MRT_TRUE(mr_source_has_checksums(src));
    MRT_EQ(mr_source_check(src, &err), MR_ECHECKSUM);
    MRT_HAS(err.text, "0123456789abcdef");
    mr_source_close(src);
}

static void allocations_fail_in_turn(void **state)
{
    (void)state;
    two("alloc");
    for (int n = 0;; n++) {
        mr_source *src;
        void *buf = NULL;
        size_t bytes = 0;
        mr_sample s;
        mr_error err = MR_ERROR_INIT;
        mrt_fail_alloc_at(n);
        int rc = try_open(mrt_path("alloc"), NULL, &src, &err);
        if (!rc) rc = mr_source_read(src, 4, &buf, &bytes, &s, &err);
        mrt_fail_alloc_at(-1);
        mr_source_close(src);
        free(buf);
        if (rc == MR_OK && !mrt_alloc_failed()) break;
        MRT_TRUE(rc == MR_ENOMEM || rc == MR_OK);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(a_folder_and_a_shard), cmocka_unit_test(every_encoding),
        cmocka_unit_test(text_labels),          cmocka_unit_test(wrong_shards),
        cmocka_unit_test(wrong_columns),        cmocka_unit_test(wrong_index),
        cmocka_unit_test(hashes_are_compared),  cmocka_unit_test(allocations_fail_in_turn),
    };
    return mrt_run(tests);
}
