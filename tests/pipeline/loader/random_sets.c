/* The data sets of random loaders: small ones, or a thousand loaders would take too long. */
#include "tests/pipeline/loader/random_sets.h"

#include "tests/pipeline/fields/field_sets.h"
#include "tests/pipeline/sets.h"

data_set mrt_sets[24];
uint32_t mrt_set_count;

static data_set *add_set(const char *name, mr_source *src)
{
    data_set *s = &mrt_sets[mrt_set_count++];
    MRT_TRUE(mrt_set_count <= COUNT_OF(mrt_sets));
    *s = (data_set){.name = name, .src = src, .augment = {"none"}, .cached = true};
    return s;
}

static mr_source *convert(const mr_source *from, const char *name, mr_to to, mr_store store,
                          uint64_t shard_bytes)
{
    mr_error err = MR_ERROR_INIT;
    mr_convert_config cfg;
    mr_convert_result result;
    mr_convert_defaults(&cfg);
    cfg.to = to;
    cfg.store = store;
    cfg.shard_bytes = shard_bytes;
    cfg.check = cfg.verify = false; /* damaged ones stay in it */
    MRT_OK(mr_convert(from, mrt_path("%s", name), &cfg, &result, &err), &err);
    MRT_EQ(result.bad, 0);
    return mrt_source(mrt_path("%s", name));
}

static void set_augments(data_set *s, const char *a, const char *b, const char *c, const char *d)
{
    const char *const all[] = {a, b, c, d};
    for (int k = 0; k < 4; k++) s->augment[k] = all[k];
}

static void add_pixel_sets(void)
{
    static const struct {
        const char *name;
        uint32_t count, high, wide;
    } idx[] = {
        {"one", 1, 5, 4},     {"two", 2, 3, 3},        {"pixels", 203, 9, 7},
        {"many", 2500, 3, 3}, {"large", 19, 200, 230},
    };
    for (size_t i = 0; i < COUNT_OF(idx); i++) {
        data_set *s = add_set(idx[i].name,
                              mrt_source(mrt_idx_set(idx[i].name, idx[i].count, idx[i].high, idx[i].wide)));
        s->known_pixels = true;
        set_augments(s, "none", "padcrop(2),flip,brightness(20),standardise", "flip,randaugment(2,9)",
                     "flip,mixup(0.5),cutmix(1,p=0.5)");
        if (idx[i].high > 100) set_augments(s, "resize(16x12)", "rrc(20),flip", "center(9)", NULL);
    }
    const mr_source *pixels = mrt_sets[2].src;
    static const struct {
        const char *name;
        uint64_t shard_bytes;
    } records[] = {{"pixels.mrec", 0}, {"pixels.shards", 4096}};
    for (size_t i = 0; i < COUNT_OF(records); i++) {
        data_set *s = add_set(records[i].name, convert(pixels, records[i].name, MR_TO_MREC, MR_STORE_RAW,
                                                       records[i].shard_bytes));
        s->known_pixels = true;
        set_augments(s, "none", "padcrop(1),flip,standardise", "resize(5x8)", NULL);
    }
}

static void add_jpeg_sets(void)
{
    mr_source *folder = mrt_source(mrt_folder_set("folder", 3, 17, 40, true));
    static const struct {
        const char *name;
        mr_to to;
        mr_store store;
    } made[] = {
        {"jpeg.mrec", MR_TO_MREC, MR_STORE_JPEG},
        {"coef.mrec", MR_TO_MREC, MR_STORE_COEF},
        {"jpeg.tar", MR_TO_TAR, MR_STORE_JPEG},
        {"jpeg.tfrecord", MR_TO_TFRECORD, MR_STORE_JPEG},
    };
    for (size_t i = 0; i <= COUNT_OF(made); i++) {
        data_set *s = i ? add_set(made[i - 1].name,
                                  convert(folder, made[i - 1].name, made[i - 1].to, made[i - 1].store, 0))
                        : add_set("folder", folder);
        s->jpegs = true;
        set_augments(s, "rrc(24),jitter(0.4,0.4,0.4,0.1),flip,erase(0.5)", "resize(20x18),blur(5,0.1:2)",
                     "center(16),flip,standardise", "resize(30),padcrop(3,28),contrast(0.6:1.4)");
    }
}

static void cut_in_half(const char *path)
{
    size_t bytes;
    void *data = mrt_read_file(path, &bytes);
    mrt_write_file(path, data, bytes / 2);
    free(data);
}

static void flip_a_byte(const mr_source *src, const char *path, uint64_t sample)
{
    mr_error err = MR_ERROR_INIT;
    mr_extent e;
    size_t bytes;
    MRT_OK(mr_source_extent(src, sample, &e, &err), &err);
    uint8_t *data = mrt_read_file(path, &bytes);
    data[e.offset + e.bytes / 2] ^= 0x55;
    mrt_write_file(path, data, bytes);
    free(data);
}

static void add_damaged_sets(void)
{
    static const uint64_t cut[] = {4, 23, 31}, torn[] = {3, 50};
    mrt_folder_set("damaged", 2, 20, 32, false);
    for (size_t i = 0; i < COUNT_OF(cut); i++)
        cut_in_half(mrt_path("damaged/class%02u/%04u.jpg", (unsigned)cut[i] / 20, (unsigned)cut[i] % 20));
    mr_source *folder = mrt_source(mrt_path("damaged"));
    for (int record = 0; record < 2; record++) {
        data_set *s =
            add_set(record ? "damaged.mrec" : "damaged",
                    record ? convert(folder, "damaged.mrec", MR_TO_MREC, MR_STORE_JPEG, 0) : folder);
        memcpy(s->bad, cut, sizeof cut);
        s->bad_count = COUNT_OF(cut);
        s->jpegs = true;
        set_augments(s, "none", "rrc(24),flip", "resize(16x16)", NULL);
    }
    mr_source *whole = convert(mrt_sets[2].src, "torn.mrec", MR_TO_MREC, MR_STORE_RAW, 0);
    for (size_t i = 0; i < COUNT_OF(torn); i++) flip_a_byte(whole, mrt_path("torn.mrec"), torn[i]);
    data_set *s = add_set("torn.mrec", whole);
    memcpy(s->bad, torn, sizeof torn);
    s->bad_count = COUNT_OF(torn);
    s->known_pixels = true;
    set_augments(s, "none", "padcrop(1),flip", NULL, NULL);
}

static void add_field_sets(void)
{
    static const mr_loader_field plain[] = {
        {.name = "number"}, {.name = "score"}, {.name = "grid"}, {.name = "label"}};
    data_set *s = add_set("fields.mrec", mrt_field_set("fields", MRT_FINE));
    s->fields[1] = mrt_followers, s->field_count[1] = 4;
    s->fields[2] = plain, s->field_count[2] = COUNT_OF(plain);
    set_augments(s, "none", "padcrop(3),flip,trivial", "resize(8x6),rotate(30)", "rrc(8,covers=0.3),flip");
    s->cached = false;
    s = add_set("twisted.mrec", mrt_field_set("twisted", MRT_NAN_BOX));
    for (int k = 0; k < 3; k++) s->fields[k] = mrt_followers, s->field_count[k] = 4;
    s->bad[0] = MRT_TWISTED;
    s->bad_count = 1;
    set_augments(s, "none", "padcrop(3),flip", NULL, NULL);
    s->cached = false;
}

static void add_sequence_sets(void)
{
    static const mr_loader_field tokens[] = {{.name = "tokens", .pad = -1}, {.name = "label", .pad = 3}};
    mr_error err = MR_ERROR_INIT;
    mr_source_config cfg;
    mr_source *text;
    FILE *f = fopen(mrt_path("lines"), "we");
    assert_non_null(f);
    for (unsigned i = 0; i < 131; i++) {
        for (unsigned k = 0; k < 1 + i * 7919 % 41; k++) fprintf(f, "%u,", i * 31 + k);
        fprintf(f, "%u\n", i % 7);
    }
    fclose(f);
    mr_source_defaults(&cfg);
    cfg.format = "sequence";
    MRT_OK(mr_source_open(&text, mrt_path("lines"), &cfg, &err), &err);
    for (int record = 0; record < 2; record++) {
        data_set *s = add_set(record ? "lines.mrec" : "lines",
                              record ? convert(text, "lines.mrec", MR_TO_MREC, MR_STORE_JPEG, 0) : text);
        for (uint32_t k = 0; k < 3; k++) s->fields[k] = tokens, s->field_count[k] = 1 + k / 2;
        s->cached = false;
    }
}

void add_sets(void)
{
    add_pixel_sets();
    add_jpeg_sets();
    add_damaged_sets();
    add_field_sets();
    add_sequence_sets();
}

void close_sets(void)
{
    for (uint32_t i = 0; i < mrt_set_count; i++) mr_source_close(mrt_sets[i].src);
}

bool is_bad(const data_set *s, uint64_t sample)
{
    for (uint32_t i = 0; i < s->bad_count; i++)
        if (s->bad[i] == sample) return true;
    return false;
}
