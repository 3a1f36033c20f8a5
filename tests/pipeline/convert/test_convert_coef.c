/* Tests of what mr_convert() does to JPEGs: coefficients, entry points, sequential coding; and of the ways
 * back. Judged by libjpeg: coefficients are those it reads, pixels those it decodes. */
#include <sys/stat.h>
#include <unistd.h>

#include "tests/pipeline/convert/converted.h"
#include "tests/pipeline/decode/coefs.h"
#include "tests/pipeline/pictures.h"
#include "tests/pipeline/sets.h"

enum { MOST_BLOCKS = 1 << 16 };

/* ---- a folder of every kind of picture ---- */

static const struct {
    const char *name;
    mrt_jpeg_kind kind;
    uint32_t width, height;
    bool packs, enters, recodes; /* becomes coefficients; can have entry points; is made sequential */
} kinds[] = {
    {"420", {.h = 2, .v = 2}, 133, 77, true, true, false},
    {"422", {.h = 2, .v = 1, .quality = 97}, 64, 48, true, true, false},
    {"440", {.h = 1, .v = 2}, 51, 40, true, true, false},
    {"444", {.h = 1, .v = 1, .quality = 100}, 80, 33, true, true, false},
    {"411", {.h = 4, .v = 1}, 200, 30, true, true, false},
    {"gray", {.components = 1}, 99, 71, true, true, false},
    {"restarts", {.h = 2, .v = 2, .restart_rows = 1}, 120, 100, true, true, false},
    {"scans", {.h = 2, .v = 2, .multi_scan = true}, 90, 60, true, false, false},
    {"turned", {.h = 2, .v = 2, .orientation = 6}, 60, 40, true, true, false},
    {"turned-big", {.h = 1, .v = 1, .orientation = 3, .big_endian = true}, 40, 60, true, true, false},
    {"progressive", {.h = 2, .v = 2, .progressive = true, .orientation = 8}, 150, 90, true, false, true},
    {"progressive-gray", {.components = 1, .progressive = true}, 50, 50, true, false, true},
    {"arithmetic", {.h = 2, .v = 2, .arithmetic = true}, 70, 55, true, false, true},
    {"arithmetic-progressive",
     {.h = 1, .v = 1, .arithmetic = true, .progressive = true},
     33,
     65,
     true,
     false,
     true},
    {"cmyk", {.components = 4, .adobe = true}, 40, 40, false, false, false},
    {"cmyk-progressive", {.components = 4, .adobe = true, .progressive = true}, 40, 40, false, false, true},
    {"rgb", {.h = 1, .v = 1}, 45, 45, true, true, false},
};
enum { KINDS = sizeof kinds / sizeof kinds[0] };

/* YCbCr by JFIF becomes RGB by Adobe's marker: other colours, but colours. */
static void make_rgb(uint8_t **data, size_t *bytes)
{
    static const uint8_t adobe[] = {0xff, 0xee, 0, 14, 'A', 'd', 'o', 'b', 'e', 0, 100, 0, 0, 0, 0, 0};
    const size_t jfif = 2 + (size_t)((*data)[4] << 8 | (*data)[5]);
    uint8_t *out = malloc(*bytes + sizeof adobe);
    MRT_TRUE((*data)[3] == 0xe0);
    memcpy(out, *data, 2);
    memcpy(out + 2, adobe, sizeof adobe);
    memcpy(out + 2 + sizeof adobe, *data + 2 + jfif, *bytes - 2 - jfif);
    *bytes += sizeof adobe - jfif;
    free(*data);
    *data = out;
}

static uint8_t *kind_make(int k, size_t *bytes)
{
    uint8_t *data = mrt_jpeg(&kinds[k].kind, kinds[k].width, kinds[k].height, (uint64_t)k + 1, bytes);
    if (strcmp(kinds[k].name, "rgb") == 0) make_rgb(&data, bytes);
    return data;
}

/* One class, a file for each kind in their order, and at last a PNG. */
static const char *make_folder(const char *name)
{
    static char folder[1024];
    snprintf(folder, sizeof folder, "%s", mrt_path("%s", name));
    mrt_mkdir(folder);
    mrt_mkdir(mrt_path("%s/all", name));
    for (int k = 0; k < KINDS; k++) {
        size_t bytes;
        uint8_t *data = kind_make(k, &bytes);
        mrt_write_file(mrt_path("%s/all/%02d-%s.jpg", name, k, kinds[k].name), data, bytes);
        free(data);
    }
    uint8_t pixels[20 * 20 * 3];
    mr_image image = {20, 20, 3, pixels};
    void *png;
    size_t bytes;
    mrt_noise(pixels, sizeof pixels, 1);
    MRT_EQ(mr_image_encode_png(&image, &png, &bytes, NULL), MR_OK);
    mrt_write_file(mrt_path("%s/all/%02d.png", name, KINDS), png, bytes);
    free(png);
    return folder;
}

static mr_source *convert(const mr_source *src, const char *name, const mr_convert_config *cfg,
                          mr_convert_result *res)
{
    mr_error err = MR_ERROR_INIT;
    MRT_OK(mr_convert(src, mrt_path("%s", name), cfg, res, &err), &err);
    return mrt_source(mrt_path("%s", name));
}

typedef struct reading {
    void *buffer;
    size_t buffer_bytes;
    mr_sample sample;
    mr_value *image;
} reading;

static void read_sample(const mr_source *src, uint64_t at, reading *r)
{
    mr_error err = MR_ERROR_INIT;
    MRT_OK(mr_source_read(src, at, &r->buffer, &r->buffer_bytes, &r->sample, &err), &err);
    r->image = &r->sample.value[mr_source_info_of(src)->image_field];
}

/* ---- what must be the same ---- */

static void same_coefficients(const void *a, size_t a_bytes, const void *b, size_t b_bytes)
{
    mrt_coefs x, y;
    mrt_coefs_read(&x, a, a_bytes, MOST_BLOCKS);
    mrt_coefs_read(&y, b, b_bytes, MOST_BLOCKS);
    MRT_TRUE(x.clean && y.clean);
    MRT_EQ(x.count, y.count);
    for (uint32_t k = 0; k < x.count; k++) {
        MRT_EQ(x.wide[k], y.wide[k]);
        MRT_EQ(x.high[k], y.high[k]);
        assert_memory_equal(x.block[k], y.block[k], (size_t)x.wide[k] * x.high[k] * sizeof *x.block[k]);
    }
    mrt_coefs_free(&x);
    mrt_coefs_free(&y);
}

/* Quantisation, colours and orientation too: whatever decodes them sees the same picture. */
static void same_pixels(const void *a, size_t a_bytes, const void *b, size_t b_bytes)
{
    mr_image x, y;
    mr_error err = MR_ERROR_INIT;
    const mr_value va = mrt_encoded(a, a_bytes), vb = mrt_encoded(b, b_bytes);
    MRT_OK(mr_image_decode(&va, NULL, &x, &err), &err);
    MRT_OK(mr_image_decode(&vb, NULL, &y, &err), &err);
    MRT_EQ(x.width, y.width);
    MRT_EQ(x.height, y.height);
    MRT_EQ(x.channels, y.channels);
    assert_memory_equal(x.pixels, y.pixels, (size_t)x.width * x.height * x.channels);
    mr_image_free(&x);
    mr_image_free(&y);
}

/* ---- coefficients ---- */

static void coefficients_lose_nothing(void **state)
{
    (void)state;
    mr_convert_config cfg;
    mr_convert_result res;
    mr_checker *checker;
    mr_error err = MR_ERROR_INIT;
    reading r = {0};
    mr_convert_defaults(&cfg);
    cfg.store = MR_STORE_COEF;
    mr_source *src = mrt_source(make_folder("lossless")), *dst = convert(src, "lossless.mrec", &cfg, &res);
    MRT_EQ(mr_checker_create(&checker), MR_OK);
    MRT_EQ(res.records, KINDS + 1);
    MRT_EQ(res.coefficients, KINDS - 2);
    MRT_EQ(res.kept, 3);
    MRT_EQ(res.transcoded + res.with_entries, 0);
    MRT_EQ(mr_source_info_of(dst)->field_count, 3); /* no entry points */
    for (int k = 0; k < KINDS; k++) {
        size_t bytes, back_bytes;
        void *back;
        mr_image_header h, was;
        uint8_t *data = kind_make(k, &bytes);
        read_sample(dst, (uint64_t)k, &r);
        MRT_EQ(r.image->type, kinds[k].packs ? MR_TYPE_COEF : MR_TYPE_JPEG);
        MRT_OK(mr_checker_run(checker, r.image, NULL, &err), &err);
        if (!kinds[k].packs) {
            MRT_EQ(r.image->bytes, bytes);
            assert_memory_equal(r.image->data, data, bytes);
        } else {
            MRT_OK(mr_value_header(r.image, &h, &err), &err);
            MRT_OK(mr_image_header_parse(data, bytes, &was, &err), &err);
            MRT_TRUE(h.width == was.width && h.height == was.height && h.orientation == was.orientation &&
                     h.channels == was.channels);
            MRT_OK(mr_coef_to_jpeg(checker, r.image, NULL, &back, &back_bytes, &err), &err);
            same_coefficients(data, bytes, back, back_bytes);
            same_pixels(data, bytes, back, back_bytes);
            MRT_OK(mr_image_header_parse(back, back_bytes, &h, &err), &err);
            MRT_TRUE(!h.progressive && !h.arithmetic);
            free(back);
        }
        free(data);
    }
    read_sample(dst, KINDS, &r);
    MRT_EQ(r.image->type, MR_TYPE_PNG);
    free(r.buffer);
    mr_checker_destroy(checker);
    mr_source_close(dst);
    mr_source_close(src);
}

/* A payload stays one, byte for byte; as JPEG it is a JPEG again, with entry points. */
static void record_files_convert_both_ways(void **state)
{
    (void)state;
    mr_convert_config cfg;
    mr_convert_result res;
    mr_error err = MR_ERROR_INIT;
    reading a = {0}, b = {0}, c = {0};
    mr_convert_defaults(&cfg);
    cfg.store = MR_STORE_COEF;
    mr_source *src = mrt_source(make_folder("ways")), *coef = convert(src, "ways-coef.mrec", &cfg, &res);
    mr_source *again = convert(coef, "ways-again.mrec", &cfg, &res);
    MRT_EQ(res.coefficients, KINDS - 2);
    cfg.store = MR_STORE_JPEG;
    mr_source *jpeg = convert(coef, "ways-jpeg.mrec", &cfg, &res);
    MRT_EQ(res.coefficients, 0);
    MRT_TRUE(res.with_entries >= 13);
    for (int k = 0; k < KINDS; k++) {
        size_t bytes;
        uint8_t *data = kind_make(k, &bytes);
        read_sample(coef, (uint64_t)k, &a);
        read_sample(again, (uint64_t)k, &b);
        read_sample(jpeg, (uint64_t)k, &c);
        MRT_EQ(a.image->bytes, b.image->bytes);
        assert_memory_equal(a.image->data, b.image->data, a.image->bytes);
        MRT_EQ(c.image->type, MR_TYPE_JPEG);
        same_coefficients(data, bytes, c.image->data, c.image->bytes);
        same_pixels(data, bytes, c.image->data, c.image->bytes);
        free(data);
    }
    MRT_OK(mr_mrec_verify(mrt_path("ways-again.mrec"), NULL, NULL, NULL, &err), &err);
    free(a.buffer);
    free(b.buffer);
    free(c.buffer);
    mr_source_close(jpeg);
    mr_source_close(again);
    mr_source_close(coef);
    mr_source_close(src);
}

static void resized_pictures_become_coefficients_too(void **state)
{
    (void)state;
    mr_convert_config cfg;
    mr_convert_result res;
    mr_error err = MR_ERROR_INIT;
    reading r = {0};
    mr_convert_defaults(&cfg);
    cfg.store = MR_STORE_COEF;
    cfg.resize = 32;
    mr_source *src = mrt_source(make_folder("smaller")), *dst = convert(src, "smaller.mrec", &cfg, &res);
    MRT_TRUE(res.coefficients >= KINDS - 2);
    for (int k = 0; k < KINDS; k++) {
        mr_image_header h;
        read_sample(dst, (uint64_t)k, &r);
        MRT_OK(mr_value_header(r.image, &h, &err), &err);
        MRT_TRUE(h.width <= 32 || h.height <= 32);
    }
    free(r.buffer);
    mr_source_close(dst);
    mr_source_close(src);
}

/* ---- entry points ---- */

static void jpegs_keep_their_bytes_and_get_entry_points(void **state)
{
    (void)state;
    mr_convert_config cfg;
    mr_convert_result res;
    mr_checker *checker;
    mr_error err = MR_ERROR_INIT;
    reading r = {0};
    int entered = 0;
    mr_convert_defaults(&cfg);
    mr_source *src = mrt_source(make_folder("entered")), *dst = convert(src, "entered.mrec", &cfg, &res);
    MRT_EQ(mr_checker_create(&checker), MR_OK);
    MRT_STR(mr_source_info_of(dst)->fields[2].name, "image.entries");
    for (int k = 0; k < KINDS; k++) {
        size_t bytes;
        uint8_t *data = kind_make(k, &bytes);
        read_sample(dst, (uint64_t)k, &r);
        MRT_EQ(r.image->type, MR_TYPE_JPEG);
        MRT_EQ(r.image->bytes, bytes);
        assert_memory_equal(r.image->data, data, bytes);
        MRT_EQ(r.image->entries != NULL, kinds[k].enters);
        MRT_OK(mr_checker_run(checker, r.image, NULL, &err), &err);
        entered += kinds[k].enters;
        if (kinds[k].enters) { /* changed entry points are found */
            uint8_t *changed = malloc(r.image->entries_bytes);
            memcpy(changed, r.image->entries, r.image->entries_bytes);
            changed[r.image->entries_bytes / 2] ^= 0x10;
            r.image->entries = changed;
            MRT_EQ(mr_checker_run(checker, r.image, NULL, &err), MR_EFORMAT);
            free(changed);
        }
        free(data);
    }
    MRT_EQ(res.with_entries, entered);
    read_sample(dst, KINDS, &r);
    MRT_EQ(r.image->type, MR_TYPE_PNG);
    MRT_EQ(r.sample.value[2].bytes, 0);
    free(r.buffer);
    mr_checker_destroy(checker);
    mr_source_close(dst);
    mr_source_close(src);
}

static void entry_points_are_left_out_on_request(void **state)
{
    (void)state;
    mr_convert_config cfg;
    mr_convert_result res;
    mr_convert_defaults(&cfg);
    mr_source *src = mrt_source(make_folder("without")), *with = convert(src, "with.mrec", &cfg, &res);
    mr_source *again = convert(with, "with-again.mrec", &cfg, &res);
    MRT_EQ(mr_source_info_of(again)->field_count, 4);
    MRT_EQ(mr_source_info_of(again)->fingerprint, mr_source_info_of(with)->fingerprint);
    cfg.entries = false;
    mr_source *without = convert(with, "without.mrec", &cfg, &res);
    MRT_EQ(res.with_entries, 0);
    MRT_EQ(mr_source_info_of(without)->field_count, 3);
    MRT_EQ(mr_source_info_of(without)->label_field, 1);
    cfg.entries = true;
    cfg.store = MR_STORE_RAW;
    mr_source *raw = convert(with, "without-raw.mrec", &cfg, &res);
    MRT_EQ(mr_source_info_of(raw)->field_count, 3);
    mr_source_close(raw);
    mr_source_close(without);
    mr_source_close(again);
    mr_source_close(with);
    mr_source_close(src);
}

/* ---- transcoding ---- */

static bool contains(const void *data, size_t bytes, const char *text)
{
    return memmem(data, bytes, text, strlen(text)) != NULL;
}

/* A comment and an APP5 segment after the first segment. */
static uint8_t *with_segments(const uint8_t *data, size_t *bytes)
{
    static const char segments[] = "\xff\xfe\0\x0f"
                                   "still a tree!"
                                   "\xff\xe5\0\x0c"
                                   "app5 kept\0";
    const size_t n = sizeof segments - 1;
    uint8_t *out = malloc(*bytes + n);
    const size_t at = 4 + (size_t)(data[4] << 8 | data[5]);
    memcpy(out, data, at);
    memcpy(out + at, segments, n);
    memcpy(out + at + n, data + at, *bytes - at);
    *bytes += n;
    return out;
}

static void transcoding_keeps_coefficients_and_segments(void **state)
{
    (void)state;
    mr_convert_config cfg;
    mr_convert_result res;
    mr_error err = MR_ERROR_INIT;
    reading r = {0};
    int recoded = 0;
    mr_convert_defaults(&cfg);
    cfg.transcode = true;
    make_folder("recoded");
    for (int k = 0; k < KINDS; k++) {
        if (!kinds[k].recodes) continue;
        size_t bytes;
        uint8_t *data = kind_make(k, &bytes), *more = with_segments(data, &bytes);
        mrt_write_file(mrt_path("recoded/all/%02d-%s.jpg", k, kinds[k].name), more, bytes);
        free(data);
        free(more);
    }
    mr_source *src = mrt_source(mrt_path("recoded")), *dst = convert(src, "recoded.mrec", &cfg, &res);
    for (int k = 0; k < KINDS; k++) {
        size_t bytes;
        mr_image_header h;
        uint8_t *data = mrt_read_file(mrt_path("recoded/all/%02d-%s.jpg", k, kinds[k].name), &bytes);
        read_sample(dst, (uint64_t)k, &r);
        MRT_OK(mr_image_header_parse(r.image->data, r.image->bytes, &h, &err), &err);
        MRT_TRUE(!h.progressive && !h.arithmetic);
        same_coefficients(data, bytes, r.image->data, r.image->bytes);
        same_pixels(data, bytes, r.image->data, r.image->bytes);
        if (kinds[k].recodes) {
            recoded++;
            MRT_TRUE(contains(r.image->data, r.image->bytes, "still a tree!"));
            MRT_TRUE(contains(r.image->data, r.image->bytes, "app5 kept"));
            MRT_EQ(r.image->entries != NULL, kinds[k].kind.components != 4); /* now it can have them */
        } else {
            MRT_EQ(r.image->bytes, bytes);
            assert_memory_equal(r.image->data, data, bytes);
        }
        free(data);
    }
    MRT_EQ(res.transcoded, recoded);
    mr_mrec *m;
    MRT_OK(mr_mrec_open(&m, mrt_path("recoded.mrec"), 1 << 20, &err), &err);
    MRT_HAS(mr_mrec_info_of(m)->provenance, "\"transcode\": true");
    mr_mrec_close(m);
    free(r.buffer);
    mr_source_close(dst);
    mr_source_close(src);
}

/* ---- the same guarantees as ever ---- */

static volatile int stop_now;
static uint64_t stop_at;

static void stop_there(void *context, uint64_t done, uint64_t count, uint64_t bytes)
{
    (void)context, (void)count, (void)bytes;
    if (done >= stop_at) stop_now = 1;
}

static void same_bytes_however_it_came_about(void **state)
{
    (void)state;
    mr_convert_config cfg;
    mr_error err = MR_ERROR_INIT;
    mr_source *src = mrt_source(make_folder("same"));
    mr_convert_defaults(&cfg);
    for (int store = 0; store < 2; store++) {
        cfg = (mr_convert_config){0};
        mr_convert_defaults(&cfg);
        cfg.store = store ? MR_STORE_COEF : MR_STORE_JPEG;
        cfg.transcode = true;
        cfg.workers = 1;
        MRT_OK(mr_convert(src, mrt_path("same-%d-1.mrec", store), &cfg, NULL, &err), &err);
        cfg.workers = 3;
        MRT_OK(mr_convert(src, mrt_path("same-%d-3.mrec", store), &cfg, NULL, &err), &err);
        mrt_same_files(mrt_path("same-%d-1.mrec", store), mrt_path("same-%d-3.mrec", store));
        cfg.resume = true;
        cfg.progress = stop_there;
        cfg.stop = &stop_now;
        int stops = 0, rc;
        /* the last stop is before the PNG: all samples found so far are coefficients */
        stop_at = KINDS % 4;
        do {
            stop_now = 0;
            rc = mr_convert(src, mrt_path("same-%d-r.mrec", store), &cfg, NULL, &err);
            stops += rc == MR_ECANCELED;
            stop_at += 4;
        } while (rc == MR_ECANCELED);
        MRT_OK(rc, &err);
        MRT_TRUE(stops >= 2);
        mrt_same_files(mrt_path("same-%d-1.mrec", store), mrt_path("same-%d-r.mrec", store));
    }
    mr_source_close(src);
}

typedef struct bad_seen {
    uint64_t samples[2 * KINDS];
    int codes[2 * KINDS];
    size_t count;
} bad_seen;

static void see_bad(void *context, const mr_error *what, uint64_t substitute)
{
    bad_seen *b = context;
    (void)substitute;
    MRT_TRUE(what->text[0] && what->file[0]);
    b->codes[b->count] = what->code;
    b->samples[b->count++] = what->sample;
}

static void damaged_pictures_are_reported(void **state)
{
    (void)state;
    mr_convert_config cfg;
    mr_convert_result res;
    mr_error err = MR_ERROR_INIT;
    make_folder("cut");
    for (int k = 0; k < KINDS; k += 2) {
        size_t bytes;
        void *data = kind_make(k, &bytes);
        mrt_write_file(mrt_path("cut/all/%02d-%s.jpg", k, kinds[k].name), data, bytes * 3 / 4);
        free(data);
    }
    mr_source *src = mrt_source(mrt_path("cut"));
    for (int n = 0; n < 4; n++) {
        bad_seen seen = {.count = 0};
        mr_convert_defaults(&cfg);
        cfg.store = n & 1 ? MR_STORE_COEF : MR_STORE_JPEG;
        cfg.transcode = n & 2;
        cfg.on_bad = see_bad;
        cfg.context = &seen;
        MRT_OK(mr_convert(src, mrt_path("cut-%d.mrec", n), &cfg, &res, &err), &err);
        MRT_EQ(res.bad, (KINDS + 1) / 2);
        for (size_t i = 0; i < seen.count; i++) {
            MRT_EQ(seen.samples[i], 2 * i);
            MRT_EQ(seen.codes[i], MR_EFORMAT);
        }
    }
    mr_source_close(src);
}

static void limits_hold(void **state)
{
    (void)state;
    mr_convert_config cfg;
    mr_convert_result res;
    mr_error err = MR_ERROR_INIT;
    mr_source *src = mrt_source(make_folder("limits"));
    for (int n = 0; n < 4; n++) {
        bad_seen seen = {.count = 0};
        mr_convert_defaults(&cfg);
        cfg.store = n & 1 ? MR_STORE_COEF : MR_STORE_JPEG;
        cfg.transcode = n & 2;
        cfg.decode.max_pixels = 5000;
        cfg.on_bad = see_bad;
        cfg.context = &seen;
        MRT_OK(mr_convert(src, mrt_path("limits-%d.mrec", n), &cfg, &res, &err), &err);
        size_t large = 0;
        for (int k = 0; k < KINDS; k++) large += kinds[k].width * kinds[k].height > 5000;
        MRT_EQ(res.bad, large);
        for (size_t i = 0; i < seen.count; i++) MRT_EQ(seen.codes[i], MR_ELIMIT);
        seen.count = 0;
        cfg.decode.max_pixels = 100000000;
        cfg.decode.max_scans = 3;
        MRT_OK(mr_convert(src, mrt_path("limits-s%d.mrec", n), &cfg, &res, &err), &err);
        MRT_EQ(res.bad, 4); /* the progressive ones */
        for (size_t i = 0; i < seen.count; i++) MRT_EQ(seen.codes[i], MR_ELIMIT);
    }
    mr_source_close(src);
}

/* Baseline codes AC values of up to 10 bits; a file with larger ones decodes, but could not be written
 * again. */
static void what_has_no_way_back_is_kept(void **state)
{
    (void)state;
    mr_convert_config cfg;
    mr_convert_result res;
    mr_error err = MR_ERROR_INIT;
    size_t bytes;
    uint8_t *data = mrt_coefs_wild(64, 64, 0, 3, &bytes);
    mrt_mkdir(mrt_path("wild"));
    mrt_mkdir(mrt_path("wild/x"));
    mrt_write_file(mrt_path("wild/x/0.jpg"), data, bytes);
    mr_convert_defaults(&cfg);
    cfg.store = MR_STORE_COEF;
    mr_source *src = mrt_source(mrt_path("wild")), *dst = convert(src, "wild.mrec", &cfg, &res);
    MRT_EQ(res.kept, 1);
    MRT_OK(mr_mrec_verify(mrt_path("wild.mrec"), NULL, NULL, NULL, &err), &err);
    mr_source_close(dst);
    mr_source_close(src);
    free(data);
}

static void damaged_payloads_are_found(void **state)
{
    (void)state;
    mr_convert_config cfg;
    mr_checker *checker;
    mr_error err = MR_ERROR_INIT;
    reading r = {0};
    void *back;
    size_t back_bytes;
    mr_convert_defaults(&cfg);
    cfg.store = MR_STORE_COEF;
    mr_source *src = mrt_source(make_folder("hurt")), *dst = convert(src, "hurt.mrec", &cfg, NULL);
    MRT_EQ(mr_checker_create(&checker), MR_OK);
    read_sample(dst, 0, &r);
    uint8_t *payload = malloc(r.image->bytes);
    memcpy(payload, r.image->data, r.image->bytes);
    uint32_t first_row; /* 4:2:0 of 133 x 77 has tables for luma and chroma */
    memcpy(&first_row, payload + 32 + 2 * 128, 4);
    payload[first_row]++; /* the length of the first block */
    r.image->data = payload;
    MRT_EQ(mr_checker_run(checker, r.image, NULL, &err), MR_EFORMAT);
    MRT_HAS(err.text, "row 0 of component 0");
    MRT_EQ(mr_coef_to_jpeg(checker, r.image, NULL, &back, &back_bytes, &err), MR_EFORMAT);
    MRT_TRUE(back == NULL);
    payload[first_row]--;
    MRT_OK(mr_coef_to_jpeg(checker, r.image, NULL, &back, &back_bytes, &err), &err);
    free(back);
    mr_decode_config decode;
    mr_decode_defaults(&decode);
    decode.max_pixels = 133 * 77 - 1;
    MRT_EQ(mr_checker_run(checker, r.image, &decode, &err), MR_ELIMIT);
    r.image->type = MR_TYPE_JPEG;
    MRT_EQ(mr_coef_to_jpeg(checker, r.image, NULL, &back, &back_bytes, &err), MR_EINVAL);
    free(payload);
    free(r.buffer);
    mr_checker_destroy(checker);
    mr_source_close(dst);
    mr_source_close(src);
}

static void every_allocation_may_fail(void **state)
{
    (void)state;
    mr_source *src = mrt_source(make_folder("memory"));
    mr_convert_config cfg;
    mr_convert_defaults(&cfg);
    cfg.workers = 1;
    cfg.force = true;
    for (int store = 0; store < 2; store++) {
        long n = 0;
        cfg.store = store ? MR_STORE_COEF : MR_STORE_JPEG;
        cfg.transcode = !store;
        for (int reached = 0; !reached; n += 5) {
            mr_error err = MR_ERROR_INIT;
            mrt_fail_alloc_at(n);
            const int rc = mr_convert(src, mrt_path("memory.mrec"), &cfg, NULL, &err);
            const int failed = mrt_alloc_failed();
            mrt_fail_alloc_at(-1);
            if (!failed) {
                MRT_OK(rc, &err);
                reached = 1;
            } else if (rc != MR_OK) { /* a buffer that is only nice to have may be done without */
                MRT_TRUE(rc == MR_ENOMEM || rc == MR_EIO);
                MRT_TRUE(err.text[0] != '\0');
            }
        }
        MRT_TRUE(n > 20);
    }
    mr_source_close(src);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(coefficients_lose_nothing),
        cmocka_unit_test(record_files_convert_both_ways),
        cmocka_unit_test(resized_pictures_become_coefficients_too),
        cmocka_unit_test(jpegs_keep_their_bytes_and_get_entry_points),
        cmocka_unit_test(entry_points_are_left_out_on_request),
        cmocka_unit_test(transcoding_keeps_coefficients_and_segments),
        cmocka_unit_test(same_bytes_however_it_came_about),
        cmocka_unit_test(damaged_pictures_are_reported),
        cmocka_unit_test(limits_hold),
        cmocka_unit_test(what_has_no_way_back_is_kept),
        cmocka_unit_test(damaged_payloads_are_found),
        cmocka_unit_test(every_allocation_may_fail),
    };
    return mrt_run(tests);
}
