/* tests/pipeline/loader/test_loader_late.c: functions of the program that wait, with reads that complete
 * late: through io_uring, pread, O_DIRECT and from a web server. Whatever such a function waits for that the
 * loader can deliver without it, the loader delivers, and a stop finds everybody.
 *
 * Late means: a look finds no completion, only a wait does. And the first chunks of a run are handed to those
 * who decode in the reverse order, as if the first one's bytes had come last. */
#include <pthread.h>
#include <sched.h>
#include <time.h>
#include <unistd.h>

#include "base/util.h"
#include "millrace/pipeline.h"
#include "pipeline/stream/ring.h"
#include "tests/formats/remote/mrt_http.h"
#include "tests/pipeline/sets.h"

enum { SIDE = 32, PIXELS = SIDE * SIDE, BATCH = 4, STEPS = 6, RECORDS = BATCH * STEPS, SLOTS = 3, BAD = 9 };

/* ---- late reads ---- */

int __real_mri_reader_reap(mri_reader *r, bool block, mri_read **out, mr_error *err);
int __wrap_mri_reader_reap(mri_reader *r, bool block, mri_read **out, mr_error *err);

int __wrap_mri_reader_reap(mri_reader *r, bool block, mri_read **out, mr_error *err)
{
    *out = NULL;
    return block ? __real_mri_reader_reap(r, block, out, err) : MR_OK;
}

static mri_chunk *held[SLOTS * BATCH]; /* the chunks of the only reader */
static uint32_t held_count, held_samples;

void __real_mri_ring_read_done(mri_ring *r, mri_chunk *c);
void __wrap_mri_ring_read_done(mri_ring *r, mri_chunk *c);

/* All of the first SLOTS batches together, the last one first; from then on each chunk at once. */
void __wrap_mri_ring_read_done(mri_ring *r, mri_chunk *c)
{
    if (held_samples == SLOTS * BATCH) {
        __real_mri_ring_read_done(r, c);
        return;
    }
    held[held_count++] = c;
    held_samples += c->count;
    while (held_samples == SLOTS * BATCH && held_count > 0) __real_mri_ring_read_done(r, held[--held_count]);
}

/* ---- events that the program's functions wait for ---- */

static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;
static pthread_cond_t moved = PTHREAD_COND_INITIALIZER;
static uint64_t delivered, full; /* lock, like all below: batches */
static uint64_t called, waiting; /* calls of the function that the test is about; that wait in it */
static uint64_t opened;          /* 1: the gate, for good */
static bool hung;

void __real_mri_ring_mark_full(mri_ring *r, mri_slot *slot, const mri_chunk_times *last);
void __wrap_mri_ring_mark_full(mri_ring *r, mri_slot *slot, const mri_chunk_times *last);

static void count(uint64_t *what)
{
    pthread_mutex_lock(&lock);
    ++*what;
    pthread_cond_broadcast(&moved);
    pthread_mutex_unlock(&lock);
}

void __wrap_mri_ring_mark_full(mri_ring *r, mri_slot *slot, const mri_chunk_times *last)
{
    __real_mri_ring_mark_full(r, slot, last);
    count(&full);
}

/* Wait until *what reaches `least`; an event that never comes means that the loader hangs. */
static int await(const uint64_t *what, uint64_t least, mr_error *err)
{
    struct timespec until;
    clock_gettime(CLOCK_REALTIME, &until);
    until.tv_sec += mrt_seconds(20);
    pthread_mutex_lock(&lock);
    while (*what < least && !hung)
        if (pthread_cond_timedwait(&moved, &lock, &until) != 0) hung = *what < least;
    const bool there = *what >= least;
    pthread_mutex_unlock(&lock);
    return there ? MR_OK : mr_error_set(err, MR_ECANCELED, "the loader hangs");
}

static void begin(bool reversed)
{
    delivered = full = called = waiting = opened = 0;
    hung = false;
    held_count = 0;
    held_samples = reversed ? 0 : SLOTS * BATCH;
}

/* ---- the data, and the four ways to them ---- */

typedef enum way { URING, PREAD, DIRECT, REMOTE, WAYS } way;

static const char *const way_names[WAYS] = {"io_uring", "pread", "O_DIRECT", "http"};
static mrt_http *server;
static char whole[300], spoilt[300];
static void *whole_bytes;
static size_t whole_count;

static void write_records(void)
{
    mr_error err = MR_ERROR_INIT;
    mr_writer *w;
    mr_writer_config cfg;
    const mr_field fields[2] = {{.name = "image", .type = MR_TYPE_PIXELS, .ndim = 3, .dim = {SIDE, SIDE, 1}},
                                {.name = "label", .type = MR_TYPE_INT}};
    uint8_t pixels[PIXELS];
    mr_writer_defaults(&cfg);
    cfg.fields = fields;
    cfg.field_count = 2;
    snprintf(whole, sizeof whole, "%s", mrt_path("late.mrec"));
    snprintf(spoilt, sizeof spoilt, "%s", mrt_path("spoilt.mrec"));
    MRT_OK(mr_writer_open(&w, whole, &cfg, NULL, &err), &err);
    for (uint64_t k = 0; k < RECORDS; k++) {
        memset(pixels, (int)(100 + k), sizeof pixels);
        const mr_value values[2] = {
            {.type = MR_TYPE_PIXELS, .ndim = 3, .dim = {SIDE, SIDE, 1}, .data = pixels, .bytes = PIXELS},
            {.type = MR_TYPE_INT, .i = (int64_t)k}};
        MRT_OK(mr_writer_append(w, k, values, &err), &err);
    }
    MRT_OK(mr_writer_finish(w, &err), &err);
    whole_bytes = mrt_read_file(whole, &whole_count);
}

/* Sample BAD has another byte than its checksum says. */
static void *spoil(void)
{
    uint8_t *bytes = malloc(whole_count), wanted[PIXELS];
    memcpy(bytes, whole_bytes, whole_count);
    memset(wanted, 100 + BAD, sizeof wanted);
    uint8_t *at = memmem(bytes, whole_count, wanted, sizeof wanted);
    assert_non_null(at);
    at[1] ^= 1;
    mrt_write_file(spoilt, bytes, whole_count);
    return bytes;
}

/* NULL: this machine has no such way, which is said. */
static mr_source *open_source(way w, bool bad)
{
    static void *spoilt_bytes;
    static uint32_t number;
    char why[160];
    mr_error err = MR_ERROR_INIT;
    mr_source *src;
    mr_source_config cfg;
    if (!spoilt_bytes) spoilt_bytes = spoil();
    if (w == URING && !mri_uring_usable(32, why, sizeof why)) {
        printf("left out: %s\n", why);
        return NULL;
    }
    mr_source_defaults(&cfg);
    if (w == REMOTE) {
        cfg.remote_folder = mrt_path("fetched%u", number++);
        if (!server) server = mrt_http_start(whole_bytes, whole_count);
        mrt_http_change(server, bad ? spoilt_bytes : whole_bytes, whole_count, bad ? "\"b\"" : "\"a\"");
    }
    const int rc = mr_source_open(&src,
                                  w == REMOTE ? mrt_http_url(server, bad ? "b.mrec" : "a.mrec")
                                  : bad       ? spoilt
                                              : whole,
                                  &cfg, &err);
    if (w == REMOTE && rc == MR_EUNSUPPORTED) {
        printf("left out: %s\n", err.text);
        return NULL;
    }
    MRT_OK(rc, &err);
    return src;
}

/* One worker, one reader: no other thread can take over their work. */
static mr_loader_config settings(way w)
{
    mr_loader_config cfg;
    mr_loader_defaults(&cfg);
    cfg.batch = BATCH;
    cfg.order = MR_ORDER_SEQUENTIAL;
    cfg.prefetch = SLOTS - 1;
    cfg.workers = cfg.readers = 1;
    cfg.resident_bytes = 0;
    cfg.training = true;
    cfg.io = w == PREAD ? MR_IO_PREAD : MR_IO_AUTO;
    cfg.direct = w == DIRECT;
    return cfg;
}

/* All batches of one epoch, each checked; a function of the program that waited in vain has said so. */
static void deliver_all(const mr_source *src, const mr_loader_config *cfg, uint32_t counted)
{
    mr_error err = MR_ERROR_INIT;
    mr_loader *l;
    mr_batch b;
    int rc;
    uint32_t seen = 0;
    MRT_OK(mr_loader_open(&l, src, cfg, &err), &err);
    MRT_EQ(mr_loader_info_of(l)->resident_bytes > 0, cfg->resident_bytes > 0);
    while ((rc = mr_loader_next(l, &b, MR_FOREVER, &err)) == MR_OK) {
        for (uint32_t i = 0; i < b.count; i++) {
            if (b.ids[i] == MR_NOWHERE) continue;
            MRT_EQ(b.pixels[i * PIXELS], 100 + b.ids[i]);
            seen++;
        }
        count(&delivered);
        MRT_OK(mr_loader_release(l, &b, NULL), NULL);
    }
    mr_loader_close(l);
    MRT_TRUE(!hung);
    if (rc != MR_EEND) MRT_OK(rc, &err);
    MRT_EQ(delivered, STEPS);
    MRT_EQ(seen, counted);
}

static void on_every_way(bool bad, bool reversed, void (*set)(mr_loader_config *cfg), uint32_t counted)
{
    for (way w = 0; w < WAYS; w++) {
        mr_source *src = open_source(w, bad);
        if (!src) continue;
        mr_loader_config cfg = settings(w);
        set(&cfg);
        begin(reversed);
        printf("%s\n", way_names[w]);
        deliver_all(src, &cfg, counted);
        MRT_TRUE(called > 0);
        mr_source_close(src);
    }
}

/* ---- a sampler ---- */

/* Of a batch: not before the one before it was delivered. */
static int after_the_batch_before(void *context, uint64_t epoch, uint64_t first, uint32_t number,
                                  uint64_t *out, mr_error *err)
{
    (void)context, (void)epoch;
    count(&called);
    for (uint32_t k = 0; k < number; k++) out[k] = first + k;
    return await(&delivered, first / BATCH, err);
}

static void set_sampler(mr_loader_config *cfg)
{
    cfg->sampler = after_the_batch_before;
    cfg->sampler_count = RECORDS;
}

static void a_sampler_waits_for_batches(void **state)
{
    (void)state;
    on_every_way(false, false, set_sampler, RECORDS);
}

/* The set in memory, nothing is read: who decodes does not ask, either. */
static void set_sampler_resident(mr_loader_config *cfg)
{
    set_sampler(cfg);
    cfg->resident_bytes = 1 << 28;
}

static void a_sampler_waits_for_batches_from_memory(void **state)
{
    (void)state;
    on_every_way(false, false, set_sampler_resident, RECORDS);
}

/* For the sample in place of a damaged one, asked for alone: not before the two batches in front of it. */
static int substitute_after_two(void *context, uint64_t epoch, uint64_t first, uint32_t number, uint64_t *out,
                                mr_error *err)
{
    (void)context, (void)epoch;
    for (uint32_t k = 0; k < number; k++) out[k] = first + k;
    if (number > 1) return MR_OK;
    count(&called);
    return await(&delivered, BAD / BATCH, err);
}

static void set_substitutes(mr_loader_config *cfg)
{
    cfg->sampler = substitute_after_two;
    cfg->sampler_count = RECORDS;
    cfg->bad = MR_BAD_REPLACE;
}

static void a_substitute_waits_for_batches(void **state)
{
    (void)state;
    on_every_way(true, true, set_substitutes, RECORDS);
}

/* ---- an operation ---- */

static int change_after_the_batch_before(void *context, const mr_own_picture *picture, uint8_t *pixels,
                                         mr_error *err)
{
    (void)context, (void)pixels;
    count(&called);
    return await(&delivered, picture->sample / BATCH, err);
}

static const mr_own_operation operation = {.name = "wait", .change = change_after_the_batch_before};

static void set_operation(mr_loader_config *cfg)
{
    cfg->augment = "wait";
    cfg->operations = &operation;
    cfg->operation_count = 1;
}

static void an_operation_waits_for_batches(void **state)
{
    (void)state;
    on_every_way(false, true, set_operation, RECORDS);
}

static void set_operation_of_many(mr_loader_config *cfg)
{
    set_operation(cfg);
    cfg->workers = 2;
}

static void an_operation_waits_in_one_of_two_workers(void **state)
{
    (void)state;
    on_every_way(false, true, set_operation_of_many, RECORDS);
}

/* ---- reports ---- */

/* Until the loader has prepared all that it has room for: it does not wait for the report. */
static void told_of_bad(void *context, const mr_error *what, uint64_t substitute)
{
    mr_error err;
    (void)context, (void)substitute;
    if (what->sample != BAD || delivered > BAD / BATCH) return; /* reported before its batch is delivered */
    count(&called);
    await(&full, SLOTS, &err);
}

static void set_on_bad(mr_loader_config *cfg)
{
    cfg->on_bad = told_of_bad;
    cfg->bad = MR_BAD_SKIP;
}

static void a_report_of_a_bad_sample_waits(void **state)
{
    (void)state;
    on_every_way(true, true, set_on_bad, RECORDS - 1);
}

static void told_a_note(void *context, const char *text)
{
    mr_error err;
    (void)context;
    MRT_HAS(text, "the cache is full");
    count(&called);
    await(&full, SLOTS, &err);
}

static void set_on_note(mr_loader_config *cfg)
{
    cfg->on_note = told_a_note;
    cfg->cache = MR_CACHE_MEMORY;
    cfg->cache_bytes = 1;
}

static void a_note_waits(void **state)
{
    (void)state;
    on_every_way(false, true, set_on_note, RECORDS);
}

/* ---- a source of the program's own, which no reader reads ---- */

static int fetch_after_the_batch_before(void *context, uint64_t sample, mr_own_sample *to, mr_error *err)
{
    (void)context;
    uint8_t pixels[PIXELS];
    memset(pixels, (int)(100 + sample), sizeof pixels);
    const mr_value values[2] = {
        {.type = MR_TYPE_PIXELS, .ndim = 3, .dim = {SIDE, SIDE, 1}, .data = pixels, .bytes = PIXELS},
        {.type = MR_TYPE_INT, .i = (int64_t)sample}};
    count(&called);
    const int rc = await(&delivered, sample / BATCH, err);
    return rc != MR_OK ? rc : mr_own_sample_give(to, values, err);
}

static mr_source *own_source(mr_own_fetch *fetch)
{
    static const mr_field fields[2] = {
        {.name = "image", .type = MR_TYPE_PIXELS, .ndim = 3, .dim = {SIDE, SIDE, 1}},
        {.name = "label", .type = MR_TYPE_INT}};
    mr_own_config cfg;
    mr_source *src;
    mr_error err = MR_ERROR_INIT;
    mr_own_defaults(&cfg);
    cfg.count = RECORDS;
    cfg.fields = fields;
    cfg.field_count = 2;
    cfg.sample_bytes_most = 4096;
    cfg.fetch = fetch;
    MRT_OK(mr_source_create(&src, &cfg, &err), &err);
    return src;
}

static void a_source_waits_for_batches(void **state)
{
    (void)state;
    mr_source *src = own_source(fetch_after_the_batch_before);
    for (uint32_t workers = 1; workers <= 3; workers++) {
        mr_loader_config cfg = settings(PREAD);
        cfg.workers = workers;
        begin(true);
        deliver_all(src, &cfg, RECORDS);
    }
    mr_source_close(src);
}

/* ---- stopping while a function waits ---- */

static int wait_for_gate(mr_error *err)
{
    count(&waiting);
    await(&opened, 1, err);
    return mr_error_set(err, MR_ECANCELED, "stopped");
}

static int sampler_at_gate(void *context, uint64_t epoch, uint64_t first, uint32_t number, uint64_t *out,
                           mr_error *err)
{
    (void)context, (void)epoch;
    for (uint32_t k = 0; k < number; k++) out[k] = first + k;
    return first < BATCH ? MR_OK : wait_for_gate(err);
}

static int change_at_gate(void *context, const mr_own_picture *picture, uint8_t *pixels, mr_error *err)
{
    (void)context, (void)pixels;
    return picture->sample < BATCH ? MR_OK : wait_for_gate(err);
}

static int fetch_at_gate(void *context, uint64_t sample, mr_own_sample *to, mr_error *err)
{
    (void)context, (void)to, (void)sample;
    return wait_for_gate(err);
}

static const mr_own_operation gate = {.name = "gate", .change = change_at_gate};

/* next() ends at once, though the function still waits; close() ends when it returns. */
static void stop_at_gate(const mr_source *src, const mr_loader_config *cfg, uint32_t before)
{
    mr_error err = MR_ERROR_INIT;
    mr_loader *l;
    mr_batch b;
    begin(false);
    MRT_OK(mr_loader_open(&l, src, cfg, &err), &err);
    for (uint32_t k = 0; k < before; k++) {
        MRT_OK(mr_loader_next(l, &b, MR_FOREVER, &err), &err);
        MRT_OK(mr_loader_release(l, &b, NULL), NULL);
    }
    MRT_OK(await(&waiting, 1, &err), &err);
    mr_loader_stop(l);
    MRT_EQ(mr_loader_next(l, &b, MR_FOREVER, &err), MR_ECANCELED);
    count(&opened);
    mr_loader_close(l);
    MRT_TRUE(!hung);
}

static void a_stop_ends_every_wait(void **state)
{
    (void)state;
    for (way w = 0; w < WAYS; w++) {
        mr_source *src = open_source(w, false);
        if (!src) continue;
        mr_loader_config cfg = settings(w);
        cfg.sampler = sampler_at_gate;
        cfg.sampler_count = RECORDS;
        stop_at_gate(src, &cfg, 1);
        cfg = settings(w);
        cfg.augment = "gate";
        cfg.operations = &gate;
        cfg.operation_count = 1;
        stop_at_gate(src, &cfg, 1);
        mr_source_close(src);
    }
    mr_source *own = own_source(fetch_at_gate);
    mr_loader_config cfg = settings(PREAD);
    stop_at_gate(own, &cfg, 0);
    mr_source_close(own);
}

/* ---- threads ---- */

static int in_this_thread(void *context, uint64_t epoch, uint64_t first, uint32_t number, uint64_t *out,
                          mr_error *err)
{
    (void)epoch, (void)err;
    for (uint32_t k = 0; k < number; k++) out[k] = first + k;
    if (!pthread_equal(pthread_self(), *(const pthread_t *)context)) count(&called);
    return MR_OK;
}

/* Without prefetch there are no threads: the caller's is the only one. */
static void without_threads_the_caller_asks(void **state)
{
    (void)state;
    pthread_t self = pthread_self();
    mr_source *src = open_source(PREAD, false);
    mr_loader_config cfg = settings(PREAD);
    cfg.sampler = in_this_thread;
    cfg.sampler_context = &self;
    cfg.sampler_count = RECORDS;
    cfg.prefetch = 0;
    begin(false);
    deliver_all(src, &cfg, RECORDS);
    MRT_EQ(called, 0);
    mr_source_close(src);
}

/* ---- the same batches ---- */

enum { POSITIONS = 3 * RECORDS + 5 };

static int scattered(void *context, uint64_t epoch, uint64_t first, uint32_t number, uint64_t *out,
                     mr_error *err)
{
    (void)context, (void)err;
    for (uint32_t k = 0; k < number; k++) out[k] = ((first + k) * 7 + epoch * 5) % RECORDS;
    sched_yield();
    return MR_OK;
}

static int change_by_draws(void *context, const mr_own_picture *picture, uint8_t *pixels, mr_error *err)
{
    (void)context, (void)err;
    for (uint32_t k = 0; k < PIXELS; k++) pixels[k] ^= (uint8_t)(picture->draws[k % MR_OWN_DRAWS] >> 24);
    if (picture->draws[0] % 3 == 0) sched_yield();
    return MR_OK;
}

static const mr_own_operation drawn = {.name = "drawn", .change = change_by_draws};

/* Sampler, operation and substitutes at once: threads, slots, memory and load change no bit. */
static void no_setting_changes_a_bit(void **state)
{
    (void)state;
    mr_source *src = open_source(PREAD, true);
    mr_loader_config usual = settings(PREAD);
    uint64_t batches;
    usual.sampler = scattered;
    usual.sampler_count = POSITIONS;
    usual.epochs = 8;
    usual.augment = "drawn,flip";
    usual.operations = &drawn;
    usual.operation_count = 1;
    usual.bad = MR_BAD_REPLACE;
    usual.prefetch = 0;
    begin(false);
    const mr_digest expected = mrt_digest(src, &usual, &batches, NULL);
    MRT_EQ(batches, 8 * ((POSITIONS + BATCH - 1) / BATCH));
    for (uint32_t k = 0; k < 24; k++) {
        mr_loader_config cfg = usual;
        cfg.prefetch = 1 + k % 5;
        cfg.workers = 1 + k % 4;
        cfg.readers = 1 + k % 3;
        cfg.depth = 1 + 5 * (k % 7);
        cfg.parts = 1 + k % 2;
        cfg.io = k % 2 ? MR_IO_PREAD : MR_IO_AUTO;
        if (k % 4 == 1) cfg.resident_bytes = 1 << 28;
        if (k % 4 == 2) cfg.cache = MR_CACHE_MEMORY, cfg.cache_bytes = 1 << 20;
        if (k % 4 == 3) cfg.cache = MR_CACHE_MEMORY, cfg.cache_bytes = 8192;
        if (k % 6 == 5) cfg.tune = MR_TUNE_ALL;
        MRT_TRUE(mrt_same_batches(expected, mrt_digest(src, &cfg, NULL, NULL)));
    }
    mr_source_close(src);
}

static int end_server(void **state)
{
    (void)state;
    if (server) mrt_http_end(server);
    return 0;
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(a_sampler_waits_for_batches),
        cmocka_unit_test(a_sampler_waits_for_batches_from_memory),
        cmocka_unit_test(a_substitute_waits_for_batches),
        cmocka_unit_test(an_operation_waits_for_batches),
        cmocka_unit_test(an_operation_waits_in_one_of_two_workers),
        cmocka_unit_test(a_report_of_a_bad_sample_waits),
        cmocka_unit_test(a_note_waits),
        cmocka_unit_test(a_source_waits_for_batches),
        cmocka_unit_test(a_stop_ends_every_wait),
        cmocka_unit_test(without_threads_the_caller_asks),
        cmocka_unit_test(no_setting_changes_a_bit),
    };
    setenv("MILLRACE_REMOTE", "tries=3,backoff-ms=5,stall-s=60", 1);
    write_records();
    return cmocka_run_group_tests(tests, NULL, end_server);
}
