/* Random loader configurations against a serial reference: order, pixels, once, resume, bad samples, stopping
 * (I1 to I4, I7, I8).
 *
 *   draw       a data set, the loader's settings and what its consumer does, all of it from (seed, number)
 *   reference  the same settings in series from the first batch on: no prefetch, one worker, no cache,
 *              nothing resident, no devices, one part. Its batches are kept, and checked against a model of
 *              the order
 *   trial      the drawn loader from its own start. Each batch is compared with the kept one when it is taken
 *              and again when it is given back; parts on devices are read back by a stream that is late
 *
 * MRT_RANDOM_LOADERS=N trials; MRT_SEED=S of this seed; MRT_RANDOM_FIRST=I from this number on;
 * MRT_RANDOM_SHOW=1 prints each configuration before it runs. A trial that fails, hangs or crashes prints its
 * configuration and the line that repeats it. */
#include <dirent.h>
#include <pthread.h>
#include <sched.h>
#include <signal.h>
#include <time.h>
#include <unistd.h>

#include "millrace/pipeline.h"
#include "mrt.h"
#include "tests/pipeline/fields/field_sets.h"
#include "tests/pipeline/sets.h"

enum {
    DEFAULT_TRIALS = MRT_SANITIZED ? 150 : 1000,
    HANGS_AFTER_S = 120,
    MOST_DEVICES = 3,
    MOST_HELD = 8,
    MOST_BATCHES = 900,
    MOST_BAD = 4,
    READBACKS = 4,
    LAG_BYTES = 1 << 20
};
enum { MOST_PIECES = 5 + 2 * MR_LOADER_MAX_FIELDS };

#define COUNT_OF(a) (sizeof(a) / sizeof *(a))

/* ------------------------------------------------------------------------------------------------ what is
 * drawn */

typedef struct data_set {
    const char *name;
    mr_source *src;
    const char *augment[6]; /* one is drawn; the rest NULL */
    uint64_t bad[MOST_BAD]; /* numbers of damaged samples */
    uint32_t bad_count;
    const mr_loader_field *fields[3]; /* likewise; NULL at first: the set goes without fields, too */
    uint32_t field_count[3];
    bool cached; /* a cache goes with it */
    bool jpegs;
    bool known_pixels; /* those of mrt_idx_pixel(), where the augmentation is none */
} data_set;

typedef enum ending { END_ALL, END_CLOSE, END_STOP, END_STOP_THREAD } ending;
static const char *const ending_names[] = {"to the end", "close in the middle", "stop in the middle",
                                           "stop from another thread"};

typedef struct trial {
    uint64_t seed, number, state; /* state: of the generator */
    const data_set *set;
    mr_loader_config cfg;
    uint32_t device_kind; /* of cfg.devices: in banks[] */
    uint64_t epochs;      /* that the reference delivers; cfg.epochs may be more */
    bool warm;            /* another loader has filled some of the cache on disk before */
    bool traced;
    ending end;
    uint64_t end_after; /* batches; END_STOP_THREAD: microseconds */
    uint32_t hold;      /* batches held at once at most */
    uint32_t patience;  /* of mr_loader_next(): 0 for ever, 1 polls, 2 short waits */
    uint32_t lag;       /* slow copies in front of each read-back */
    char folder[1024];
} trial;

static data_set sets[24];
static uint32_t set_count;

static uint64_t draw(trial *t) /* splitmix64 */
{
    uint64_t x = t->state += UINT64_C(0x9e3779b97f4a7c15);
    x = (x ^ x >> 30) * UINT64_C(0xbf58476d1ce4e5b9);
    x = (x ^ x >> 27) * UINT64_C(0x94d049bb133111eb);
    return x ^ x >> 31;
}
static uint32_t below(trial *t, uint64_t n) { return (uint32_t)(draw(t) % n); }
static bool one_in(trial *t, uint32_t n) { return below(t, n) == 0; }
static uint64_t smaller(uint64_t a, uint64_t b) { return a < b ? a : b; }
#define PICK(t, ...)                                                                                         \
    (((const uint64_t[]){__VA_ARGS__})[below(t, sizeof((const uint64_t[]){__VA_ARGS__}) / sizeof(uint64_t))])

/* ------------------------------------------------------------------------------------------------ telling */

static trial *running; /* what is under way, for a handler of signals */
static char description[4096];

static void describe(const trial *t)
{
    static const char
        *const orders[] = {"shuffle", "block", "sequential"},
               *const tails[] = {"keep", "drop", "pad"}, *const ios[] = {"auto", "uring", "pread"},
               *const caches[] = {"off", "memory", "disk"}, *const policies[] = {"stop", "replace", "skip"};
    const mr_loader_config *c = &t->cfg;
    char fields[512] = "";
    size_t n = 0;
    for (uint32_t k = 0; k < c->field_count && n < sizeof fields; k++)
        n += (size_t)snprintf(fields + n, sizeof fields - n, " %s(role %d, most %u, pad %g)",
                              c->fields[k].name, (int)c->fields[k].role, c->fields[k].most, c->fields[k].pad);
    char devices[64] = "none";
    if (c->devices)
        snprintf(devices, sizeof devices, "%u of %s", c->device_count,
                 mr_device_info_of(c->devices[0])->name);
    snprintf(
        description, sizeof description,
        "configuration %llu of seed %llu\n"
        "  data      %s, %llu samples, %u of them damaged\n"
        "  order     %s, block %u, seed %llu, epochs %llu, start at epoch %llu, step %llu, length window %u\n"
        "  batches   %u samples, tail %s, %u parts, devices %s, keep_host %d, free_order %d, width multiple "
        "%u\n"
        "  pixels    %s, training %d, channels %u, %s\n"
        "  fields   %s\n"
        "  loader    prefetch %u, workers %u, readers %u, depth %u, io %s, direct %d, resident %llu, "
        "no_checks %d, traced %d\n"
        "  cache     %s of %llu bytes, filled before %d\n"
        "  bad       %s, at most %llu\n"
        "  consumer  holds up to %u, %s after %llu%s, waits %s, read back behind %u copies\n"
        "  again     MRT_SEED=%llu MRT_RANDOM_FIRST=%llu MRT_RANDOM_LOADERS=1 test_loader_random\n",
        (unsigned long long)t->number, (unsigned long long)t->seed, t->set->name,
        (unsigned long long)mr_source_info_of(t->set->src)->count, t->set->bad_count, orders[c->order],
        c->block, (unsigned long long)c->seed, (unsigned long long)c->epochs,
        (unsigned long long)c->start_epoch, (unsigned long long)c->start_step, c->length_window, c->batch,
        tails[c->tail], c->devices ? c->device_count : c->parts, devices, c->keep_host, c->free_order,
        c->width_multiple, c->augment, c->training, c->channels,
        c->decode.pixels == MR_PIXELS_OWN ? "own" : "libjpeg", fields[0] ? fields : " none", c->prefetch,
        c->workers, c->readers, c->depth, ios[c->io], c->direct, (unsigned long long)c->resident_bytes,
        c->no_checks, t->traced, caches[c->cache], (unsigned long long)c->cache_bytes, t->warm,
        policies[c->bad], (unsigned long long)c->max_bad, t->hold, ending_names[t->end],
        (unsigned long long)t->end_after, t->end == END_STOP_THREAD ? " us" : " batches",
        t->patience == 0   ? "for ever"
        : t->patience == 1 ? "not at all"
                           : "shortly",
        t->lag, (unsigned long long)t->seed, (unsigned long long)t->number);
}

/* A hang or a crash: say which configuration it was. */
static void on_signal(int number)
{
    const char *what = number == SIGALRM ? "\nhangs: " : "\ncrashed: ";
    if (write(2, what, strlen(what)) < 0 || write(2, description, strlen(description)) < 0) _exit(1);
    signal(number, SIG_DFL);
    raise(number);
}

static void watch_signals(void)
{
    signal(SIGALRM, on_signal);
    if (MRT_SANITIZED) return; /* their own report says more */
    signal(SIGSEGV, on_signal);
    signal(SIGBUS, on_signal);
    signal(SIGABRT, on_signal);
}

MR_PRINTF(1, 2) static void differs(const char *format, ...)
{
    char text[1024];
    va_list args;
    va_start(args, format);
    vsnprintf(text, sizeof text, format, args);
    va_end(args);
    print_error("%s\n%s", text, description);
    fail();
}
#define CHECK(x, ...) ((x) ? (void)0 : differs(__VA_ARGS__))

static void check_ok(int rc, const mr_error *err, const char *what)
{
    char text[1400] = "";
    if (rc != MR_OK) mr_error_format(err, text, sizeof text);
    CHECK(rc == MR_OK, "%s: status %d (%s): %s", what, rc, mr_status_text(rc), text);
}

/* ------------------------------------------------------------------------------------------------ data
 * sets */

static data_set *add_set(const char *name, mr_source *src)
{
    data_set *s = &sets[set_count++];
    MRT_TRUE(set_count <= COUNT_OF(sets));
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
    const mr_source *pixels = sets[2].src;
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
    mr_source *whole = convert(sets[2].src, "torn.mrec", MR_TO_MREC, MR_STORE_RAW, 0);
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

/* ------------------------------------------------------------------------------------------------ devices */

typedef struct bank {
    mr_device **devices;
    uint32_t count;
    mr_stream *stream[MOST_DEVICES]; /* the consumer's */
    void *slow[MOST_DEVICES];        /* device memory of LAG_BYTES */
    void *sink[MOST_DEVICES];
} bank;

static bank banks[2];

static void open_bank(bank *k, const char *spec)
{
    mr_error err = MR_ERROR_INIT;
    MRT_OK(mr_devices_open(&k->devices, &k->count, spec, NULL, &err), &err);
    MRT_EQ(k->count, MOST_DEVICES);
    for (uint32_t r = 0; r < k->count; r++) {
        MRT_OK(mr_stream_create(&k->stream[r], k->devices[r], MR_STREAM_COMPUTE, &err), &err);
        MRT_OK(mr_device_alloc(k->devices[r], LAG_BYTES, &k->slow[r], &err), &err);
        MRT_OK(mr_host_alloc(k->devices[r], LAG_BYTES, &k->sink[r], &err), &err);
        MRT_OK(mr_fill_async(k->stream[r], k->slow[r], 1, LAG_BYTES), NULL);
    }
}

static void close_bank(bank *k)
{
    for (uint32_t r = 0; r < k->count; r++) {
        mr_stream_destroy(k->stream[r]);
        mr_device_free(k->devices[r], k->slow[r]);
        mr_host_free(k->devices[r], k->sink[r]);
    }
    mr_devices_close(k->devices, k->count);
}

/* ------------------------------------------------------------------------------------------------ drawing */

static uint64_t samples_of(const trial *t) { return mr_source_info_of(t->set->src)->count; }

static uint64_t steps_of(const trial *t)
{
    const uint64_t n = samples_of(t), batch = t->cfg.batch;
    return n / batch + (n % batch && t->cfg.tail != MR_TAIL_DROP);
}

static void draw_batches(trial *t)
{
    mr_loader_config *c = &t->cfg;
    const uint64_t n = samples_of(t);
    c->batch = (uint32_t)PICK(t, 1, 2, 3, 5, 7, 8, 16, 31, 64, n > 1 ? n - 1 : 1, n, n + 1, 2 * n + 3,
                              n / 2 + 1, 257);
    if (n / c->batch > MOST_BATCHES / 4) c->batch = (uint32_t)(n / 20 + below(t, 60));
    c->tail = (mr_tail)below(t, 3);
    c->order = (mr_order)below(t, 3);
    c->block = (uint32_t)PICK(t, 1, 3, 5, 16, 256);
    c->seed = one_in(t, 4) ? draw(t) : below(t, 4);
    t->epochs = 1 + below(t, 4);
    while (t->epochs > 1 && t->epochs * steps_of(t) > MOST_BATCHES) t->epochs--;
    c->epochs = t->epochs;
    const uint64_t steps = steps_of(t);
    if (one_in(t, 2) && steps > 0) {
        c->start_epoch = below(t, t->epochs);
        c->start_step = below(t, steps + 1);
    }
}

static void draw_samples(trial *t)
{
    mr_loader_config *c = &t->cfg;
    const data_set *s = t->set;
    uint32_t augments = 0;
    while (augments < COUNT_OF(s->augment) && s->augment[augments]) augments++;
    c->augment = s->augment[below(t, augments)];
    c->training = !one_in(t, 3);
    if (mr_source_info_of(s->src)->image_field >= 0) c->channels = (uint32_t)PICK(t, 0, 0, 1, 3);
    if (s->jpegs && one_in(t, 6)) c->decode.pixels = MR_PIXELS_LIBJPEG;
    const uint32_t k = below(t, 3);
    c->fields = s->fields[k];
    c->field_count = s->field_count[k];
    c->width_multiple = (uint32_t)PICK(t, 1, 1, 3, 8);
    if (mr_source_info_of(s->src)->image_field < 0 && one_in(t, 2))
        c->length_window = (uint32_t)PICK(t, 1, 2, 3, 7, 100);
    c->bad = s->bad_count ? (mr_bad)below(t, 3) : one_in(t, 4) ? MR_BAD_SKIP : MR_BAD_STOP;
    c->max_bad = PICK(t, 100, 100, 0, 1, 2, 3);
    c->no_checks = s->bad_count == 0 && one_in(t, 8);
}

static void draw_threads(trial *t)
{
    mr_loader_config *c = &t->cfg;
    c->prefetch = below(t, 7);
    c->workers = below(t, 6);
    c->readers = below(t, 4);
    c->depth = (uint32_t)PICK(t, 1, 2, 3, 8, 32, 40);
    c->io = (mr_io)below(t, 3);
    c->direct = one_in(t, 4);
    c->resident_bytes = one_in(t, 2) ? 0 : UINT64_C(1) << 30;
    if (t->set->cached && !c->field_count && one_in(t, 2)) {
        c->cache = one_in(t, 2) ? MR_CACHE_MEMORY : MR_CACHE_DISK;
        c->cache_bytes = PICK(t, 3000, 30000, 1 << 20, 16 << 20);
        t->warm = c->cache == MR_CACHE_DISK && one_in(t, 2);
        snprintf(t->folder, sizeof t->folder, "%s", mrt_path("cache"));
        c->cache_folder = t->folder;
        if (!one_in(t, 4)) c->resident_bytes = 0; /* or the cache has no sense */
    }
    if (one_in(t, 3)) {
        t->device_kind = one_in(t, 4);
        c->devices = banks[t->device_kind].devices;
        c->device_count = 1 + below(t, MOST_DEVICES);
        c->keep_host = one_in(t, 2);
        t->lag = (uint32_t)PICK(t, 0, 0, 1, 3);
    } else {
        c->parts = 1 + below(t, 7);
        c->free_order = one_in(t, 6) && t->set->bad_count == 0; /* with damage it would not be known what
                                                                   comes */
    }
    t->traced = one_in(t, 8);
}

static uint64_t start_of(const trial *t) { return t->cfg.start_epoch * steps_of(t) + t->cfg.start_step; }

static void draw_consumer(trial *t)
{
    const uint32_t room = t->cfg.prefetch == 0 ? 1 : t->cfg.devices ? 2 : t->cfg.prefetch + 1;
    t->hold = 1 + below(t, room);
    t->patience = below(t, 3);
    t->end = one_in(t, 2) ? END_ALL : (ending)below(t, 4);
    const uint64_t all = t->epochs * steps_of(t) - start_of(t);
    t->end_after = t->end == END_ALL ? all : t->end == END_STOP_THREAD ? below(t, 3000) : draw(t) % (all + 1);
    if (t->end != END_ALL && one_in(t, 3)) t->cfg.epochs = UINT64_MAX;
}

static void draw_trial(trial *t, uint64_t seed, uint64_t number)
{
    *t = (trial){.seed = seed, .number = number, .state = seed * UINT64_C(0xd1342543de82ef95) + number};
    draw(t);
    t->set = &sets[below(t, set_count)];
    mr_loader_defaults(&t->cfg);
    draw_batches(t);
    draw_samples(t);
    draw_threads(t);
    if (steps_of(t) > 0) draw_consumer(t);
}

/* ------------------------------------------------------------------------------------------------
 * reference */

typedef struct kept_batch {
    mr_batch b; /* its pointers are our copies; parts NULL */
} kept_batch;

typedef struct reference {
    mr_loader_info info;
    size_t sample_bytes;
    uint64_t count; /* batches of the trial's epochs */
    uint64_t kept;  /* these, and the spare ones */
    kept_batch *batch;
} reference;

static void *copy_of(const void *data, size_t bytes)
{
    if (!data) return NULL;
    void *out = malloc(bytes ? bytes : 1);
    assert_non_null(out);
    return memcpy(out, data, bytes);
}

static void keep(reference *ref, const mr_batch *b)
{
    mr_batch *k = &ref->batch[ref->kept++].b;
    *k = *b;
    k->parts = NULL;
    k->pixels = copy_of(b->pixels, b->count * ref->sample_bytes);
    k->labels = copy_of(b->labels, b->count * sizeof *b->labels);
    k->ids = copy_of(b->ids, b->count * sizeof *b->ids);
    k->affine = copy_of(b->affine, b->count * 2 * sizeof *b->affine);
    k->labels2 = copy_of(b->labels2, b->count * sizeof *b->labels2);
    k->share2 = copy_of(b->share2, b->count * sizeof *b->share2);
    for (uint32_t i = 0; i < ref->info.field_count; i++) {
        const mr_batch_field *f = &b->field[i];
        k->field[i].data = copy_of(f->data, b->count * f->width * ref->info.field[i].element_bytes);
        k->field[i].length = copy_of(f->length, b->count * sizeof *f->length);
    }
}

static void free_reference(reference *ref)
{
    for (uint64_t i = 0; i < ref->kept; i++) {
        const mr_batch *k = &ref->batch[i].b;
        free((void *)(uintptr_t)k->pixels);
        free((void *)(uintptr_t)k->labels);
        free((void *)(uintptr_t)k->ids);
        free((void *)(uintptr_t)k->affine);
        free((void *)(uintptr_t)k->labels2);
        free((void *)(uintptr_t)k->share2);
        for (uint32_t f = 0; f < ref->info.field_count; f++) {
            free((void *)(uintptr_t)k->field[f].data);
            free((void *)(uintptr_t)k->field[f].length);
        }
    }
    free(ref->batch);
}

/* An endless loader in free order delivers whatever is full first: at most as many batches ahead as it has
 * slots. */
static uint64_t spare_of(const trial *t)
{
    return t->cfg.free_order && t->cfg.epochs != t->epochs ? t->cfg.prefetch + 1 : 0;
}

static mr_loader_config in_series(const trial *t)
{
    mr_loader_config c = t->cfg;
    c.prefetch = 0;
    c.workers = c.readers = c.depth = 1;
    c.io = MR_IO_PREAD;
    c.direct = c.keep_host = c.free_order = false;
    c.resident_bytes = 0;
    c.cache = MR_CACHE_OFF;
    c.devices = NULL;
    c.parts = 1;
    c.start_epoch = c.start_step = 0;
    c.epochs = t->epochs + (spare_of(t) + steps_of(t) - 1) / steps_of(t);
    if (c.bad == MR_BAD_STOP) c.bad = MR_BAD_SKIP; /* the others are to be compared, too */
    c.max_bad = UINT64_MAX;
    return c;
}

static void run_reference(const trial *t, reference *ref)
{
    const mr_loader_config cfg = in_series(t);
    mr_error err = MR_ERROR_INIT;
    mr_loader *l;
    mr_batch b;
    check_ok(mr_loader_open(&l, t->set->src, &cfg, &err), &err, "opening the reference");
    ref->info = *mr_loader_info_of(l);
    ref->sample_bytes = (size_t)ref->info.height * ref->info.width * ref->info.channels;
    ref->count = t->epochs * steps_of(t);
    ref->kept = 0;
    const uint64_t all = ref->count + spare_of(t);
    ref->batch = calloc((size_t)all, sizeof *ref->batch);
    assert_non_null(ref->batch);
    while (ref->kept < all) {
        check_ok(mr_loader_next(l, &b, MR_FOREVER, &err), &err, "the reference");
        keep(ref, &b);
        check_ok(mr_loader_release(l, &b, NULL), NULL, "giving a batch of the reference back");
    }
    if (all == ref->count)
        CHECK(mr_loader_next(l, &b, MR_FOREVER, &err) == MR_EEND,
              "the reference delivers more than %llu batches", (unsigned long long)all);
    mr_loader_close(l);
}

/* ------------------------------------------------------------------------------------------------ model */

static bool is_bad(const data_set *s, uint64_t sample)
{
    for (uint32_t i = 0; i < s->bad_count; i++)
        if (s->bad[i] == sample) return true;
    return false;
}

/* The sample that belongs to place i of a batch, without windows. */
static uint64_t sample_at(const trial *t, uint64_t batch, uint32_t i)
{
    const mr_loader_config *c = &t->cfg;
    const uint64_t n = samples_of(t), steps = steps_of(t), position = batch % steps * c->batch + i;
    return mr_order_sample(c->order, c->block, c->seed, batch / steps, n, position % n);
}

static uint32_t places_of(const trial *t, uint64_t batch)
{
    const uint64_t left = samples_of(t) - smaller(samples_of(t), batch % steps_of(t) * t->cfg.batch);
    return t->cfg.tail == MR_TAIL_KEEP ? (uint32_t)smaller(t->cfg.batch, left) : t->cfg.batch;
}

static void check_id(const trial *t, const mr_batch *b, uint64_t batch, uint32_t i)
{
    const uint64_t expected = sample_at(t, batch, i), found = b->ids[i];
    const bool damaged = is_bad(t->set, expected), padding = b->step * t->cfg.batch + i >= samples_of(t);
    if (padding || (damaged && t->cfg.bad != MR_BAD_REPLACE))
        CHECK(found == MR_NOWHERE, "place %u is padding or damaged and has number %llu", i,
              (unsigned long long)found);
    else if (damaged)
        CHECK(found < samples_of(t) && !is_bad(t->set, found), "place %u: %llu is no substitute", i,
              (unsigned long long)found);
    else
        CHECK(found == expected, "place %u: the order says %llu, found %llu", i, (unsigned long long)expected,
              (unsigned long long)found);
}

static void check_window(const trial *t, const mr_batch *b, uint32_t i)
{
    uint32_t before, here;
    if (i == 0 || b->ids[i] == MR_NOWHERE) return;
    CHECK(mr_source_length(t->set->src, b->ids[i - 1], &before) == MR_OK &&
              mr_source_length(t->set->src, b->ids[i], &here) == MR_OK && before <= here,
          "place %u is shorter than the one in front of it", i);
}

static void check_place(const trial *t, const reference *ref, const mr_batch *b, uint64_t batch, uint32_t i,
                        uint8_t *seen)
{
    int64_t label;
    const uint64_t id = b->ids[i];
    if (t->cfg.length_window) check_window(t, b, i);
    else check_id(t, b, batch, i);
    CHECK((id == MR_NOWHERE) == (b->labels[i] == -1), "place %u: number %llu with label %d", i,
          (unsigned long long)id, b->labels[i]);
    if (id == MR_NOWHERE) return;
    CHECK(id < samples_of(t), "place %u: there is no sample %llu", i, (unsigned long long)id);
    if (seen[id]++)
        CHECK(t->set->bad_count && t->cfg.bad == MR_BAD_REPLACE, "sample %llu comes twice",
              (unsigned long long)id);
    if (mr_source_label(t->set->src, id, &label) == MR_OK)
        CHECK(label == b->labels[i], "sample %llu: label %lld, found %d", (unsigned long long)id,
              (long long)label, b->labels[i]);
    if (!t->set->known_pixels || strcmp(t->cfg.augment, "none") != 0 || t->cfg.channels == 3) return;
    for (size_t k = 0; k < ref->sample_bytes; k++)
        CHECK(b->pixels[i * ref->sample_bytes + k] == mrt_idx_pixel(id, k), "sample %llu: pixel %zu is wrong",
              (unsigned long long)id, k);
}

static void check_reference(const trial *t, const reference *ref)
{
    const uint64_t n = samples_of(t), steps = steps_of(t);
    uint8_t *seen = calloc((size_t)n, 1);
    assert_non_null(seen);
    for (uint64_t i = 0; i < ref->kept; i++) {
        const mr_batch *b = &ref->batch[i].b;
        uint32_t counted = 0;
        if (i % steps == 0) memset(seen, 0, (size_t)n);
        CHECK(b->epoch == i / steps && b->step == i % steps && b->global_step == i &&
                  b->last == (b->step + 1 == steps),
              "batch %llu of the reference: epoch %llu, step %llu, last %d", (unsigned long long)i,
              (unsigned long long)b->epoch, (unsigned long long)b->step, b->last);
        CHECK(b->count == places_of(t, i), "batch %llu: %u samples, expected %u", (unsigned long long)i,
              b->count, places_of(t, i));
        for (uint32_t k = 0; k < b->count; k++) {
            check_place(t, ref, b, i, k, seen);
            counted += b->labels[k] >= 0;
        }
        CHECK(counted == b->counted, "batch %llu: counted %u, %u have a label", (unsigned long long)i,
              b->counted, counted);
    }
    free(seen);
}

/* What the trial meets of damage from its start on, and the first batch that it cannot deliver (the
 * reference's count: none). */
typedef struct damage {
    uint64_t places, distinct, first;
} damage;

static damage foresee(const trial *t, uint64_t count)
{
    damage d = {.first = count};
    uint64_t met[MOST_BAD];
    for (uint64_t i = start_of(t); i < count && t->set->bad_count && d.first == count; i++)
        for (uint32_t k = 0; k < places_of(t, i); k++) {
            const uint64_t sample = sample_at(t, i, k);
            uint64_t at = 0;
            if (!is_bad(t->set, sample)) continue;
            d.places++;
            while (at < d.distinct && met[at] != sample) at++;
            if (at == d.distinct) met[d.distinct++] = sample;
            if ((t->cfg.bad == MR_BAD_STOP || d.distinct > t->cfg.max_bad) && d.first == count) d.first = i;
        }
    return d;
}

/* ------------------------------------------------------------------------------------------------
 * comparing */

/* Memory of a batch or part beside what the reference has of it. */
typedef struct piece {
    const void *found, *expected;
    size_t bytes;
    const char *what;
} piece;

static uint32_t pieces_of(const reference *ref, const mr_batch *k, const mr_part *p, piece *out)
{
    const size_t first = p->first, n = p->count;
    uint32_t count = 0;
    if (ref->sample_bytes)
        out[count++] =
            (piece){p->pixels, k->pixels + first * ref->sample_bytes, n * ref->sample_bytes, "pixels"};
    out[count++] = (piece){p->labels, k->labels + first, n * sizeof *k->labels, "labels"};
    if (k->affine)
        out[count++] = (piece){p->affine, k->affine + 2 * first, n * 2 * sizeof *k->affine, "affine numbers"};
    if (k->labels2) {
        out[count++] = (piece){p->labels2, k->labels2 + first, n * sizeof *k->labels2, "second labels"};
        out[count++] = (piece){p->share2, k->share2 + first, n * sizeof *k->share2, "shares"};
    }
    for (uint32_t i = 0; i < ref->info.field_count; i++) {
        const mr_batch_field *f = &k->field[i];
        const size_t row = f->width * (size_t)ref->info.field[i].element_bytes;
        out[count++] = (piece){p->field[i].data, (const uint8_t *)f->data + first * row, n * row,
                               ref->info.field[i].name};
        if (f->length)
            out[count++] = (piece){p->field[i].length, f->length + first, n * sizeof *f->length, "lengths"};
    }
    return count;
}

static void compare_piece(const piece *p, uint64_t batch, uint32_t part, const char *when)
{
    const uint8_t *a = p->found, *b = p->expected;
    size_t at = 0;
    if (p->bytes == 0) return;
    CHECK(a != NULL, "batch %llu, part %u, %s: no %s", (unsigned long long)batch, part, when, p->what);
    if (memcmp(a, b, p->bytes) == 0) return;
    while (a[at] == b[at]) at++;
    differs("batch %llu, part %u, %s: %s differ from byte %zu of %zu on: expected %u, found %u",
            (unsigned long long)batch, part, when, p->what, at, p->bytes, b[at], a[at]);
}

static void compare_pieces(const reference *ref, const mr_batch *k, const mr_part *p, uint64_t batch,
                           uint32_t part, const char *when)
{
    piece pieces[MOST_PIECES];
    const uint32_t n = pieces_of(ref, k, p, pieces);
    for (uint32_t i = 0; i < n; i++) compare_piece(&pieces[i], batch, part, when);
}

/* The whole host copy as if it were one part, its numbers, and the parts where they lie in host memory. */
static void compare_host(const trial *t, const reference *ref, const mr_batch *k, const mr_batch *b,
                         uint64_t batch, const char *when)
{
    mr_part all = {.count = b->count,
                   .pixels = b->pixels,
                   .labels = b->labels,
                   .affine = b->affine,
                   .labels2 = b->labels2,
                   .share2 = b->share2};
    if (t->cfg.devices && !t->cfg.keep_host) {
        CHECK(!b->pixels && !b->labels && !b->ids && !b->affine && !b->labels2 && !b->share2,
              "batch %llu has a host copy", (unsigned long long)batch);
        return;
    }
    memcpy(all.field, b->field, sizeof all.field);
    compare_pieces(ref, k, &all, batch, MR_LOADER_MAX_PARTS, when);
    compare_piece(&(piece){b->ids, k->ids, b->count * sizeof *b->ids, "numbers"}, batch, MR_LOADER_MAX_PARTS,
                  when);
    for (uint32_t r = 0; r < b->part_count && !t->cfg.devices; r++)
        compare_pieces(ref, k, &b->parts[r], batch, r, when);
}

static void compare_shape(const trial *t, const reference *ref, const mr_batch *k, const mr_batch *b)
{
    const uint32_t parts = t->cfg.devices ? t->cfg.device_count : t->cfg.parts;
    uint32_t at = 0;
    CHECK(b->epoch == k->epoch && b->step == k->step && b->last == k->last && b->count == k->count &&
              b->counted == k->counted,
          "epoch %llu, step %llu, last %d, count %u, counted %u; expected %llu, %llu, %d, %u, %u",
          (unsigned long long)b->epoch, (unsigned long long)b->step, b->last, b->count, b->counted,
          (unsigned long long)k->epoch, (unsigned long long)k->step, k->last, k->count, k->counted);
    CHECK(b->part_count == parts, "%u parts, expected %u", b->part_count, parts);
    for (uint32_t r = 0; r < parts; r++) {
        const mr_part *p = &b->parts[r];
        CHECK(p->first == at && p->count <= (b->count - 1) / parts + 1, "part %u: %u from %u on", r, p->count,
              p->first);
        CHECK(p->form == MR_PART_PIXELS && (p->ready != NULL) == (t->cfg.devices != NULL),
              "part %u has another form or event", r);
        at += p->count;
        for (uint32_t i = 0; i < ref->info.field_count; i++)
            CHECK(p->field[i].width == k->field[i].width && b->field[i].width == k->field[i].width,
                  "field %u is %u wide in part %u, expected %u", i, p->field[i].width, r, k->field[i].width);
    }
    CHECK(at == b->count, "the parts have %u samples together, the batch %u", at, b->count);
}

/* ------------------------------------------------------------------------------------------------
 * consumer */

typedef struct readback { /* of one part */
    mr_event *over;
    uint8_t *memory;
    piece pieces[MOST_PIECES];
    uint32_t count;
    uint64_t batch;
    bool pending;
} readback;

typedef struct consumer {
    const trial *t;
    const reference *ref;
    mr_loader *l;
    mr_batch held[MOST_HELD];
    uint32_t held_count;
    uint64_t taken, samples;
    uint8_t *seen; /* batches that came */
    readback back[READBACKS][MOST_DEVICES];
    uint64_t copied[MOST_DEVICES]; /* bytes that had to cross */
} consumer;

typedef struct reports { /* the loader promises one call at a time */
    uint64_t bad, notes, sample[MOST_BAD];
} reports;

static void on_bad(void *context, const mr_error *what, uint64_t substitute)
{
    reports *to = context;
    (void)substitute;
    if (to->bad < MOST_BAD) to->sample[to->bad] = what->sample;
    to->bad++;
}

static void on_note(void *context, const char *text)
{
    reports *to = context;
    to->notes += text[0] != '\0';
}

static void open_readbacks(consumer *c)
{
    mr_error err = MR_ERROR_INIT;
    const bank *k = &banks[c->t->device_kind];
    const size_t n = (c->t->cfg.batch - 1) / (c->t->cfg.devices ? c->t->cfg.device_count : 1) + 1;
    size_t each = c->ref->sample_bytes + sizeof(int32_t) + 2 * sizeof(float);
    for (uint32_t i = 0; i < c->ref->info.field_count; i++)
        each += c->ref->info.field[i].most * (size_t)c->ref->info.field[i].element_bytes + sizeof(int32_t);
    for (uint32_t d = 0; d < READBACKS && c->t->cfg.devices; d++)
        for (uint32_t r = 0; r < c->t->cfg.device_count; r++) {
            check_ok(mr_event_create(&c->back[d][r].over, k->devices[r], &err), &err, "an event");
            check_ok(mr_host_alloc(k->devices[r], n * each, (void **)&c->back[d][r].memory, &err), &err,
                     "memory to read back");
        }
}

static void check_readback(readback *rb, uint32_t r)
{
    mr_error err = MR_ERROR_INIT;
    if (!rb->pending) return;
    rb->pending = false;
    check_ok(mr_event_sync(rb->over, &err), &err, "reading a part back");
    for (uint32_t i = 0; i < rb->count; i++) compare_piece(&rb->pieces[i], rb->batch, r, "on its device");
}

static void close_readbacks(consumer *c)
{
    for (uint32_t d = 0; d < READBACKS && c->t->cfg.devices; d++)
        for (uint32_t r = 0; r < c->t->cfg.device_count; r++) {
            check_readback(&c->back[d][r], r);
            mr_event_destroy(c->back[d][r].over);
            mr_host_free(banks[c->t->device_kind].devices[r], c->back[d][r].memory);
        }
}

/* Queue a late copy of every part back to the host, which is looked at when its memory is wanted again. */
static void read_back(consumer *c, const mr_batch *b, uint64_t batch)
{
    const bank *k = &banks[c->t->device_kind];
    for (uint32_t r = 0; r < b->part_count; r++) {
        readback *rb = &c->back[c->taken % READBACKS][r];
        check_readback(rb, r);
        *rb = (readback){.over = rb->over, .memory = rb->memory, .batch = batch, .pending = true};
        rb->count = pieces_of(c->ref, &c->ref->batch[batch].b, &b->parts[r], rb->pieces);
        int rc = mr_stream_wait_event(k->stream[r], b->parts[r].ready);
        size_t at = 0;
        for (uint32_t i = 0; i < c->t->lag && rc == MR_OK; i++)
            rc = mr_copy_d2h_async(k->stream[r], k->sink[r], k->slow[r], LAG_BYTES);
        for (uint32_t i = 0; i < rb->count && rc == MR_OK; i++) {
            piece *p = &rb->pieces[i];
            if (p->bytes) rc = mr_copy_d2h_async(k->stream[r], rb->memory + at, p->found, p->bytes);
            p->found = rb->memory + at;
            at += p->bytes;
        }
        c->copied[r] += at;
        if (rc == MR_OK) rc = mr_event_record(rb->over, k->stream[r]);
        check_ok(rc, NULL, "queueing a read-back");
    }
}

static void give_back(consumer *c)
{
    mr_batch *b = &c->held[0];
    const uint64_t batch = b->epoch * c->ref->info.steps_per_epoch + b->step;
    compare_host(c->t, c->ref, &c->ref->batch[batch].b, b, batch, "while it was held");
    check_ok(mr_loader_release(c->l, b, c->t->cfg.devices ? banks[c->t->device_kind].stream : NULL), NULL,
             "giving a batch back");
    memmove(c->held, c->held + 1, --c->held_count * sizeof *c->held);
}

static void take(consumer *c, const mr_batch *b)
{
    const uint64_t batch = b->epoch * c->ref->info.steps_per_epoch + b->step,
                   place = start_of(c->t) + c->taken;
    CHECK(b->global_step == place, "place %llu has global step %llu", (unsigned long long)place,
          (unsigned long long)b->global_step);
    CHECK(batch < c->ref->kept && b->step < c->ref->info.steps_per_epoch && batch >= start_of(c->t),
          "there is no epoch %llu, step %llu", (unsigned long long)b->epoch, (unsigned long long)b->step);
    CHECK(c->t->cfg.free_order ? !c->seen[batch] : batch == place, "batch %llu comes at place %llu",
          (unsigned long long)batch, (unsigned long long)place);
    c->seen[batch] = 1;
    compare_shape(c->t, c->ref, &c->ref->batch[batch].b, b);
    compare_host(c->t, c->ref, &c->ref->batch[batch].b, b, batch, "when it was taken");
    if (c->t->cfg.devices) read_back(c, b, batch);
    c->taken++;
    c->samples += b->count;
    c->held[c->held_count++] = *b;
}

static int next(consumer *c, mr_batch *b, mr_error *err)
{
    const uint64_t waits[] = {MR_FOREVER, 0, 50000};
    int rc;
    while ((rc = mr_loader_next(c->l, b, waits[c->t->patience], err)) == MR_EAGAIN) sched_yield();
    return rc;
}

static void nap(uint64_t us)
{
    const struct timespec t = {.tv_sec = 0, .tv_nsec = (long)us * 1000};
    nanosleep(&t, NULL);
}

static void *stop_later(void *arg)
{
    const consumer *c = arg;
    nap(c->t->end_after);
    mr_loader_stop(c->l);
    return NULL;
}

/* Batches until something ends it; the code that did. */
static int consume(consumer *c, mr_error *err)
{
    const trial *t = c->t;
    const uint64_t most =
        t->end == END_CLOSE || t->end == END_STOP ? t->end_after : c->ref->count - start_of(t);
    mr_batch b;
    for (;;) {
        while (c->held_count >= t->hold) give_back(c);
        if (c->taken == most && t->cfg.epochs != t->epochs) return MR_OK; /* an endless one goes on */
        if (c->taken == most && (t->end == END_CLOSE || t->end == END_STOP)) return MR_OK;
        const int rc = next(c, &b, err);
        if (rc != MR_OK) return rc;
        CHECK(c->taken < most, "more batches come than there are");
        take(c, &b);
    }
}

static void check_end(const consumer *c, int rc, const mr_error *err, const damage *d)
{
    const trial *t = c->t;
    const uint64_t all = c->ref->count - start_of(t), whole = d->first - start_of(t);
    const bool stopped = t->end == END_STOP || t->end == END_STOP_THREAD;
    const bool fails = d->first < c->ref->count;
    CHECK(c->taken <= whole, "%llu batches came; the one at %llu could not be made",
          (unsigned long long)c->taken, (unsigned long long)whole);
    if (rc == MR_EBADSAMPLE) {
        CHECK(fails || (t->cfg.epochs != t->epochs && t->set->bad_count), "a damaged sample that is none: %s",
              err->text);
        CHECK(t->cfg.bad != MR_BAD_STOP || is_bad(t->set, err->sample), "sample %llu is not damaged",
              (unsigned long long)err->sample);
        CHECK(t->cfg.prefetch > 0 || c->taken == whole, "%llu batches came, expected %llu",
              (unsigned long long)c->taken, (unsigned long long)whole);
    } else if (rc == MR_ECANCELED) {
        CHECK(stopped, "nobody stopped it");
    } else if (rc == MR_EEND) {
        CHECK(c->taken == all && !fails, "the end after %llu batches of %llu", (unsigned long long)c->taken,
              (unsigned long long)all);
    } else {
        CHECK(rc == MR_OK && t->end != END_ALL, "status %d (%s): %s", rc, mr_status_text(rc), err->text);
    }
}

/* Once the loader is closed: until then workers go on to report. */
static void check_reports(const trial *t, const reports *to)
{
    for (uint64_t i = 0; i < to->bad && i < MOST_BAD; i++)
        CHECK(is_bad(t->set, to->sample[i]), "sample %llu was reported and is not damaged",
              (unsigned long long)to->sample[i]);
}

/* A run to its end has done all of the work once. */
static void check_figures(const consumer *c, const damage *d, const reports *to)
{
    mr_loader_stats s;
    mr_loader_stats_read(c->l, &s);
    CHECK(s.batches == c->taken && s.samples == c->samples, "%llu batches, %llu samples in the figures",
          (unsigned long long)s.batches, (unsigned long long)s.samples);
    CHECK(s.read.items == c->samples && s.decode.items == c->samples,
          "read %llu, decoded %llu of %llu samples", (unsigned long long)s.read.items,
          (unsigned long long)s.decode.items, (unsigned long long)c->samples);
    CHECK(s.bad_samples == d->places && to->bad == d->distinct,
          "%llu damaged places, %llu reports; expected %llu, %llu", (unsigned long long)s.bad_samples,
          (unsigned long long)to->bad, (unsigned long long)d->places, (unsigned long long)d->distinct);
    CHECK(s.replaced == (c->t->cfg.bad == MR_BAD_REPLACE ? d->places : 0) &&
              s.skipped == (c->t->cfg.bad == MR_BAD_SKIP ? d->places : 0),
          "replaced %llu, skipped %llu", (unsigned long long)s.replaced, (unsigned long long)s.skipped);
    CHECK(s.copy.items <= c->taken, "copied %llu batches of %llu", (unsigned long long)s.copy.items,
          (unsigned long long)c->taken);
    for (uint32_t r = 0; c->t->cfg.devices && r < c->t->cfg.device_count; r++)
        CHECK(s.bytes_copied[r] == c->copied[r], "%llu bytes crossed to device %u, expected %llu",
              (unsigned long long)s.bytes_copied[r], r, (unsigned long long)c->copied[r]);
}

static void check_again(consumer *c, int rc)
{
    mr_error err = MR_ERROR_INIT;
    mr_batch b;
    const int again = mr_loader_next(c->l, &b, MR_FOREVER, &err);
    CHECK(again == rc || (c->t->end == END_STOP_THREAD && again == MR_ECANCELED),
          "ended with status %d, and then with %d", rc, again);
}

/* With every batch held that there is room for, the loader says so and does not wait. */
static void check_room(consumer *c)
{
    const uint32_t room = c->t->cfg.prefetch == 0 ? 1 : c->t->cfg.devices ? 2 : c->t->cfg.prefetch + 1;
    mr_error err = MR_ERROR_INIT;
    mr_batch b;
    if (c->held_count < room) return;
    const int rc = mr_loader_next(c->l, &b, MR_FOREVER, &err);
    CHECK(rc == MR_EINVAL || rc == MR_EEND || rc == MR_ECANCELED || rc == MR_EBADSAMPLE,
          "all are held, and status is %d", rc);
}

static void run_consumer(consumer *c, const damage *d, const reports *to)
{
    mr_error err = MR_ERROR_INIT;
    pthread_t stopper;
    const bool by_thread = c->t->end == END_STOP_THREAD;
    if (by_thread) MRT_EQ(pthread_create(&stopper, NULL, stop_later, c), 0);
    int rc = consume(c, &err);
    check_room(c);
    if (c->t->end == END_STOP && rc == MR_OK) {
        mr_loader_stop(c->l);
        while (c->held_count) give_back(c);
        mr_batch b;
        rc = mr_loader_next(c->l, &b, MR_FOREVER, &err);
        CHECK(rc == MR_ECANCELED || rc == MR_EBADSAMPLE, "after a stop: status %d", rc);
    }
    while (c->held_count) give_back(c);
    if (by_thread) pthread_join(stopper, NULL);
    if (rc != MR_OK) check_again(c, rc);
    check_end(c, rc, &err, d);
    if (rc == MR_EEND) check_figures(c, d, to);
}

/* ------------------------------------------------------------------------------------------------ trials */

static void remove_cache(const char *folder)
{
    DIR *d = opendir(folder);
    if (!d) return;
    for (const struct dirent *e; (e = readdir(d));) {
        char path[2048];
        snprintf(path, sizeof path, "%s/%s", folder, e->d_name);
        if (e->d_name[0] != '.') unlink(path);
    }
    closedir(d);
    rmdir(folder);
}

/* An earlier run that leaves a cache behind; how it ends does not matter. */
static void warm_up(trial *t, const mr_loader_config *cfg)
{
    mr_loader_config c = *cfg;
    mr_error err = MR_ERROR_INIT;
    mr_loader *l;
    mr_batch b;
    c.devices = NULL;
    c.keep_host = false;
    c.prefetch = below(t, 3);
    c.parts = 1;
    check_ok(mr_loader_open(&l, t->set->src, &c, &err), &err, "opening the loader before");
    for (uint64_t left = below(t, 20); left > 0 && mr_loader_next(l, &b, MR_FOREVER, &err) == MR_OK; left--)
        check_ok(mr_loader_release(l, &b, NULL), NULL, "giving back");
    mr_loader_close(l);
}

static void run_trial(trial *t)
{
    static consumer c; /* not on the stack: a check that fails jumps away while the loader's threads go on */
    static reports to;
    static reference ref;
    mr_error err = MR_ERROR_INIT;
    mr_loader_config cfg = t->cfg;
    mr_trace *trace = NULL;
    if (steps_of(t) == 0) {
        MRT_EQ(mr_loader_open(&c.l, t->set->src, &cfg, &err), MR_EINVAL);
        return;
    }
    run_reference(t, &ref);
    check_reference(t, &ref);
    const damage d = foresee(t, ref.count);
    to = (reports){0};
    c = (consumer){.t = t, .ref = &ref, .seen = calloc((size_t)ref.kept, 1)};
    assert_non_null(c.seen);
    if (t->warm) warm_up(t, &cfg);
    if (t->traced) MRT_EQ(mr_trace_create(&trace, 100), MR_OK);
    cfg.trace = trace;
    cfg.on_bad = on_bad;
    cfg.on_note = on_note;
    cfg.bad_context = cfg.note_context = &to;
    check_ok(mr_loader_open(&c.l, t->set->src, &cfg, &err), &err, "opening");
    open_readbacks(&c);
    run_consumer(&c, &d, &to);
    mr_loader_close(c.l);
    check_reports(t, &to);
    close_readbacks(&c);
    mr_trace_destroy(trace);
    remove_cache(t->folder);
    free(c.seen);
    free_reference(&ref);
}

static uint64_t setting(const char *name, uint64_t otherwise)
{
    const char *text = getenv(name);
    return text && *text ? strtoull(text, NULL, 0) : otherwise;
}

static void random_loaders_deliver_what_a_serial_one_does(void **state)
{
    (void)state;
    static trial t;
    const uint64_t seed = setting("MRT_SEED", 1), first = setting("MRT_RANDOM_FIRST", 0);
    const uint64_t count = setting("MRT_RANDOM_LOADERS", DEFAULT_TRIALS);
    add_pixel_sets();
    add_jpeg_sets();
    add_damaged_sets();
    add_field_sets();
    add_sequence_sets();
    open_bank(&banks[0], "cpu:3");
    open_bank(&banks[1], "sim:3,step=1us,h2d=4GB/s,d2h=4GB/s");
    watch_signals();
    for (uint64_t number = first; number < first + count; number++) {
        draw_trial(&t, seed, number);
        running = &t;
        describe(&t);
        if (getenv("MRT_RANDOM_SHOW")) fprintf(stderr, "%s", description);
        alarm(mrt_seconds(HANGS_AFTER_S));
        run_trial(&t);
    }
    alarm(0);
    close_bank(&banks[0]);
    close_bank(&banks[1]);
    for (uint32_t i = 0; i < set_count; i++) mr_source_close(sets[i].src);
}

int main(void)
{
    const struct CMUnitTest tests[] = {cmocka_unit_test(random_loaders_deliver_what_a_serial_one_does)};
    return mrt_run(tests);
}
