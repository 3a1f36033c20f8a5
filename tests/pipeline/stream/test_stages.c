/* Each stage alone, between a source or sink that the test plays: readers without decoders, also failing
 * ones; slow decoders without readers; staging with a consumer that keeps its batches. */
#include <errno.h>
#include <fcntl.h>
#include <time.h>
#include <unistd.h>

#include "millrace/kernels.h"
#include "mrt.h"
#include "pipeline/stream/decode_stage.h"
#include "pipeline/stream/read_stage.h"
#include "pipeline/stream/staging.h"
#include "tests/pipeline/stream/line.h"

/* ---- reading ---- */

typedef struct read_rig {
    line l;
    mri_locator locator;
    mri_read_stage *stage;
    uint64_t left; /* atomic: results of the kernel that are left as they are */
} read_rig;

static int fails_from_some_read_on(void *context, int result, size_t asked)
{
    read_rig *g = context;
    (void)asked;
    if (__atomic_load_n(&g->left, __ATOMIC_RELAXED) == 0) return -EIO;
    __atomic_fetch_sub(&g->left, 1, __ATOMIC_RELAXED);
    return result;
}

static void open_read(read_rig *g, const line_config *cfg, mr_io io, uint32_t readers)
{
    mr_error err = MR_ERROR_INIT;
    line_open(&g->l, cfg);
    g->l.set.readers = readers;
    g->left = UINT64_MAX;
    g->locator =
        (mri_locator){.batches = &g->l.batches, .source = g->l.source, .chunk_room = g->l.chunks.room};
    const mri_read_config read = {
        .set = &g->l.set,
        .ring = g->l.ring,
        .halt = &g->l.halt,
        .locator = &g->locator,
        .io = io,
        .reader = {
            .source = g->l.source, .depth = 4, .filter = fails_from_some_read_on, .filter_context = g}};
    MRT_OK(mri_read_stage_create(&g->stage, &read, &err), &err);
}

static void close_read(read_rig *g)
{
    mri_halt_stop(&g->l.halt);
    mri_read_stage_join(g->stage);
    MRT_TRUE(mri_read_stage_destroy(g->stage));
    line_close(&g->l);
}

/* The bytes of a sample are its pixels: IDX has no more. */
static void check_bytes(const read_rig *g, const mri_chunk *c)
{
    for (uint32_t i = 0; i < c->count; i++) {
        const mri_chunk_sample *s = &c->samples[i];
        MRT_TRUE(s->read < c->read_count);
        const mri_read *q = &c->reads[s->read];
        MRT_EQ(q->status, MR_OK);
        MRT_EQ(s->bytes, LINE_PIXELS);
        MRT_EQ(s->sample, c->batch * g->l.batches.batch + c->first + i);
        for (size_t k = 0; k < LINE_PIXELS; k++) MRT_EQ(q->data[s->at + k], mrt_idx_pixel(s->sample, k));
    }
}

static bool io_is_there(mr_io io)
{
    char why[160];
    return io != MR_IO_URING || mri_uring_usable(4, why, sizeof why);
}

/* Whichever allocation fails: stages that were not opened are not closed. */
static void a_stage_that_cannot_be_made_closes_no_file_of_the_program(void **state)
{
    (void)state;
    static read_rig g;
    const int kept = dup(0), file = open("/dev/null", O_RDONLY | O_CLOEXEC);
    MRT_TRUE(file >= 0 && (file == 0 || dup2(file, 0) == 0));
    line_open(&g.l, &(line_config){.samples = 8, .batch = 8, .slots = 2, .chunks = 2, .chunk_samples = 4});
    g.locator = (mri_locator){.batches = &g.l.batches, .source = g.l.source, .chunk_room = g.l.chunks.room};
    g.l.set.readers = 3;
    const mri_read_config read = {.set = &g.l.set,
                                  .ring = g.l.ring,
                                  .halt = &g.l.halt,
                                  .locator = &g.locator,
                                  .io = MR_IO_PREAD,
                                  .reader = {.source = g.l.source, .depth = 1}};
    int rc = MR_ENOMEM;
    for (long n = 0; rc != MR_OK; n += MRT_TURN) {
        mr_error err = MR_ERROR_INIT;
        mrt_fail_alloc_at(n);
        rc = mri_read_stage_create(&g.stage, &read, &err);
        mrt_fail_alloc_at(-1);
        MRT_TRUE(rc == MR_OK || rc == MR_ENOMEM);
        MRT_TRUE(fcntl(0, F_GETFD) != -1);
    }
    close_read(&g);
    if (kept >= 0) dup2(kept, 0), close(kept);
    if (file > 0) close(file);
}

/* Without a decoder after them readers fill all buffers, and wait. */
static void readers_alone_bring_every_chunk(void **state)
{
    (void)state;
    for (mr_io io = MR_IO_URING; io <= MR_IO_PREAD; io++) {
        static read_rig g;
        mr_error err = MR_ERROR_INIT;
        bool located;
        if (!io_is_there(io)) continue;
        open_read(&g, &(line_config){.samples = 40, .batch = 8, .slots = 5, .chunks = 2, .chunk_samples = 4},
                  io, 1);
        mri_read_counters *counters = mri_read_stage_counters(g.stage);
        MRT_OK(mri_read_stage_start(g.stage, &err), &err);
        line_await(&counters->stage.items, 7); /* two chunks, and no buffer for a third */
        for (int i = 0; i < 10; i++) {
            mri_chunk *c = mri_ring_take_chunk(g.l.ring, 0, &g.l.waits, &located);
            assert_non_null(c);
            MRT_TRUE(located);
            check_bytes(&g, c);
            line_fill(&g.l, c);
        }
        MRT_EQ(mri_counted(&counters->stage.items), 40);
        MRT_EQ(mri_counted(&counters->bytes), 40 * LINE_PIXELS);
        MRT_EQ(mri_activity_ns(&counters->stage, MRI_WAIT_ROOM), 0);
        close_read(&g);
    }
}

/* A read that fails is the worker's affair: the chunk arrives with the reason, and the run goes on. */
static void a_failing_read_reaches_whoever_decodes(void **state)
{
    (void)state;
    for (mr_io io = MR_IO_URING; io <= MR_IO_PREAD; io++) {
        static read_rig g;
        mr_error err = MR_ERROR_INIT;
        bool located;
        uint32_t failed = 0;
        if (!io_is_there(io)) continue;
        open_read(&g, &(line_config){.samples = 12, .batch = 4, .slots = 3, .chunks = 1, .chunk_samples = 2},
                  io, 1);
        g.left = 4;
        MRT_OK(mri_read_stage_start(g.stage, &err), &err);
        for (int i = 0; i < 6; i++) {
            mri_chunk *c = mri_ring_take_chunk(g.l.ring, 0, &g.l.waits, &located);
            assert_non_null(c);
            MRT_EQ(c->read_count, 1);
            if (c->reads[0].status == MR_OK) {
                check_bytes(&g, c);
            } else {
                char text[1024];
                MRT_EQ(mri_read_error(&c->reads[0], g.l.source, &err), MR_EIO);
                mr_error_format(&err, text, sizeof text);
                MRT_HAS(text, "line-images");
                failed++;
            }
            line_fill(&g.l, c);
        }
        MRT_EQ(failed, 2);
        MRT_TRUE(!mri_halt_is_over(&g.l.halt));
        close_read(&g);
    }
}

/* A stop finds readers that wait for a buffer, and they end. */
static void readers_stop_while_they_wait(void **state)
{
    (void)state;
    static read_rig g;
    mr_error err = MR_ERROR_INIT;
    open_read(&g, &(line_config){.samples = 64, .batch = 8, .slots = 1, .chunks = 2, .chunk_samples = 4},
              MR_IO_PREAD, 3);
    MRT_OK(mri_read_stage_start(g.stage, &err), &err);
    line_await(&mri_read_stage_counters(g.stage)->stage.items, 7);
    close_read(&g);
}

/* ---- decoding ---- */

typedef struct decode_rig {
    line l;
    mri_locator locator;
    mri_place_config place;
    mr_augment *augment;
    mri_notices notices;
    mri_bad_samples bad;
    mri_decode_stage *stage;
    pthread_mutex_t gate; /* a worker that decodes waits here */
    uint64_t decoded;     /* atomic: samples whose decoding has begun */
} decode_rig;

static int decode_slowly(void *context, const mr_own_picture *picture, uint8_t *pixels, mr_error *err)
{
    decode_rig *g = context;
    (void)picture, (void)pixels, (void)err;
    mri_count(&g->decoded, 1);
    pthread_mutex_lock(&g->gate);
    pthread_mutex_unlock(&g->gate);
    return MR_OK;
}

static void open_decode(decode_rig *g, const line_config *cfg, mr_bad policy, uint32_t workers)
{
    mr_error err = MR_ERROR_INIT;
    memset(g, 0, sizeof *g);
    line_open(&g->l, cfg);
    g->l.set.workers = workers;
    const mr_own_operation slowly = {
        .name = "slowly", .change = decode_slowly, .context = g, .in_evaluation = true};
    MRT_OK(mr_augment_create_own(&g->augment, "slowly", false, &slowly, 1, &err), &err);
    g->locator =
        (mri_locator){.batches = &g->l.batches, .source = g->l.source, .chunk_room = g->l.chunks.room};
    g->place = (mri_place_config){.set = &g->l.set,
                                  .source = g->l.source,
                                  .augment = g->augment,
                                  .fields = &g->l.fields,
                                  .layout = &g->l.slots.layout,
                                  .decode = &g->l.set.decode,
                                  .height = LINE_HIGH,
                                  .width = LINE_WIDE,
                                  .channels = 1,
                                  .until = &g->l.halt.over};
    pthread_mutex_init(&g->gate, NULL);
    const mri_listener listener = {0};
    mri_notices_init(&g->notices, &listener);
    mri_bad_samples_init(&g->bad, &g->l.batches, &g->notices, policy, 100);
    const mri_decode_config decode = {.set = &g->l.set,
                                      .ring = g->l.ring,
                                      .halt = &g->l.halt,
                                      .locator = &g->locator,
                                      .place = &g->place,
                                      .bad = &g->bad};
    MRT_OK(mri_decode_stage_create(&g->stage, &decode, &err), &err);
}

static void close_decode(decode_rig *g)
{
    mri_halt_stop(&g->l.halt);
    mri_decode_stage_join(g->stage);
    mri_decode_stage_destroy(g->stage);
    mri_bad_samples_fini(&g->bad);
    mri_notices_fini(&g->notices);
    mr_augment_destroy(g->augment);
    pthread_mutex_destroy(&g->gate);
    line_close(&g->l);
}

/* Play the reader: bytes that are made up, or reads that failed. */
static void bring(decode_rig *g, bool fails)
{
    mr_error err = MR_ERROR_INIT;
    bool ended;
    mri_chunk *c = mri_ring_claim(g->l.ring, 0, true, &g->l.waits, &ended);
    assert_non_null(c);
    MRT_OK(mri_locate(&g->locator, c, true, &err), &err);
    for (uint32_t i = 0; i < c->read_count; i++) {
        mri_read *q = &c->reads[i];
        q->status = fails ? MR_EFORMAT : MR_OK;
        q->data = q->buffer;
        q->got = fails ? 0 : q->bytes;
    }
    for (uint32_t i = 0; i < c->count; i++) {
        const mri_chunk_sample *s = &c->samples[i];
        for (size_t k = 0; k < s->bytes; k++)
            c->reads[s->read].buffer[s->at + k] = mrt_idx_pixel(s->sample, k);
    }
    mri_ring_read_done(g->l.ring, c);
}

/* A worker whose shared read failed reads the sample alone: that fails, too. */
static void lose_the_file(void) { MRT_EQ(truncate(mrt_path("line-images-idx3-ubyte"), 16), 0); }

static void workers_alone_fill_slots(void **state)
{
    (void)state;
    for (uint32_t workers = 1; workers <= 3; workers += 2) {
        static decode_rig g;
        mr_error err = MR_ERROR_INIT;
        mri_ring_batch b;
        open_decode(&g,
                    &(line_config){.samples = 50, .batch = 8, .slots = 2, .chunks = 3, .chunk_samples = 3},
                    MR_BAD_STOP, workers);
        MRT_OK(mri_decode_stage_start(g.stage, &err), &err);
        for (uint64_t batch = 0; batch < g.l.batches.end_batch; batch++) {
            for (uint32_t first = 0; first < mri_batches_count(&g.l.batches, batch); first += 3)
                bring(&g, false);
            MRT_EQ(mri_ring_wait(g.l.ring, MR_FOREVER), MR_OK);
            mri_ring_take(g.l.ring, &b);
            line_check(&g.l, batch, b.slot);
            mri_ring_release(g.l.ring);
        }
        MRT_EQ(mri_counted(&mri_decode_stage_counters(g.stage)->stage.items), 50);
        close_decode(&g);
    }
}

typedef struct bringer {
    decode_rig *g;
    uint64_t brought; /* atomic */
} bringer;

static void *brings_while_there_is_room(void *arg)
{
    bringer *r = arg;
    bool ended = false;
    while (!ended) {
        mri_chunk *c = mri_ring_claim(r->g->l.ring, 0, true, &r->g->l.waits, &ended);
        if (!c) continue;
        c->read_count = 0;
        for (uint32_t i = 0; i < c->count; i++)
            c->samples[i] = (mri_chunk_sample){.sample = c->batch * r->g->l.batches.batch + c->first + i,
                                               .read = MRI_NO_READ};
        mri_count(&r->brought, 1);
        mri_ring_read_done(r->g->l.ring, c);
    }
    return NULL;
}

/* One run of the test below. False when the reader had not yet come to its wait as the run ended: it then
 * waited for nothing. */
static bool reader_is_held_back(void)
{
    static decode_rig g;
    mr_error err = MR_ERROR_INIT;
    pthread_t thread;
    bringer r = {.g = &g};
    open_decode(&g, &(line_config){.samples = 96, .batch = 8, .slots = 12, .chunks = 4, .chunk_samples = 2},
                MR_BAD_SKIP, 1);
    pthread_mutex_lock(&g.gate);
    mri_halt *const halt = &g.l.halt;
    MRT_OK(mri_decode_stage_start(g.stage, &err), &err);
    bring(&g, false);
    line_await(&g.decoded, 0);
    MRT_EQ(pthread_create(&thread, NULL, brings_while_there_is_room, &r), 0);
    line_await(&r.brought, 2); /* of four buffers one is with the decoder */
    const struct timespec nap = {.tv_nsec = 20000000};
    nanosleep(&nap, NULL);
    MRT_EQ(mri_counted(&r.brought), 3);
    mri_halt_stop(halt);
    pthread_mutex_unlock(&g.gate);
    pthread_join(thread, NULL);
    const bool waited = mri_activity_ns(&g.l.waits, MRI_WAIT_BUFFER) > 0;
    MRT_EQ(mri_activity_ns(&g.l.waits, MRI_WAIT_ROOM), 0);
    close_decode(&g);
    return waited;
}

/* While the one decoder is busy with a sample, whoever reads gets no further than the buffers there are. */
static void a_slow_decoder_holds_the_reader_back(void **state)
{
    (void)state;
    int tries = 0;
    while (!reader_is_held_back()) MRT_TRUE(++tries < 100);
}

/* The policy ends the run: the error names the sample, and every thread ends. */
static void a_bad_sample_ends_the_run(void **state)
{
    (void)state;
    static decode_rig g;
    mr_error err = MR_ERROR_INIT;
    open_decode(&g, &(line_config){.samples = 8, .batch = 4, .slots = 2, .chunks = 2, .chunk_samples = 4},
                MR_BAD_STOP, 2);
    lose_the_file();
    MRT_OK(mri_decode_stage_start(g.stage, &err), &err);
    bring(&g, true);
    MRT_EQ(mri_ring_wait(g.l.ring, MR_FOREVER), MR_ECANCELED);
    MRT_EQ(mri_halt_reason(&g.l.halt, &err), MR_EBADSAMPLE);
    MRT_EQ(err.sample, 0);
    close_decode(&g);
}

/* ---- staging ---- */

typedef struct stage_rig {
    line l;
    mr_device **devices;
    uint32_t count;
    mr_stream *streams[MR_LOADER_MAX_PARTS];
    mri_staging *stage;
} stage_rig;

static void open_staging(stage_rig *g, const line_config *cfg)
{
    char spec[32];
    mr_error err = MR_ERROR_INIT;
    memset(g, 0, sizeof *g);
    line_open(&g->l, cfg);
    snprintf(spec, sizeof spec, "cpu:%u", cfg->parts);
    MRT_OK(mr_devices_open(&g->devices, &g->count, spec, NULL, &err), &err);
    for (uint32_t r = 0; r < g->count; r++)
        MRT_OK(mr_stream_create(&g->streams[r], g->devices[r], MR_STREAM_COMPUTE, &err), &err);
    g->l.set.devices = g->devices;
    const mri_staging_config staging = {.set = &g->l.set,
                                        .ring = g->l.ring,
                                        .halt = &g->l.halt,
                                        .batches = &g->l.batches,
                                        .layout = &g->l.slots.layout,
                                        .device_slots = cfg->device_slots};
    MRT_OK(mri_staging_create(&g->stage, &staging, &err), &err);
}

static void close_staging(stage_rig *g)
{
    mri_halt_stop(&g->l.halt);
    mri_staging_join(g->stage);
    for (uint32_t r = 0; r < g->count; r++) MRT_OK(mr_stream_sync(g->streams[r], NULL), NULL);
    mri_staging_destroy(g->stage);
    for (uint32_t r = 0; r < g->count; r++) mr_stream_destroy(g->streams[r]);
    mr_devices_close(g->devices, g->count);
    line_close(&g->l);
}

/* What lies on the devices is what lay in the slot, each replica's own part. */
static void check_parts(stage_rig *g, uint64_t batch)
{
    const mr_part *parts = mri_staging_parts(g->stage, batch);
    uint32_t at = 0;
    for (uint32_t r = 0; r < g->count; r++) {
        const mr_part *p = &parts[r];
        uint8_t *pixels;
        int32_t *labels;
        mr_error err = MR_ERROR_INIT;
        MRT_EQ(p->first, at);
        MRT_OK(mr_host_alloc(g->devices[r], (size_t)p->count * LINE_PIXELS + 1, (void **)&pixels, &err),
               &err);
        MRT_OK(mr_host_alloc(g->devices[r], p->count * sizeof *labels + 1, (void **)&labels, &err), &err);
        MRT_OK(mr_stream_wait_event(g->streams[r], p->ready), NULL);
        if (p->count) {
            MRT_OK(mr_copy_d2h_async(g->streams[r], pixels, p->pixels, (size_t)p->count * LINE_PIXELS), NULL);
            MRT_OK(mr_copy_d2h_async(g->streams[r], labels, p->labels, p->count * sizeof *labels), NULL);
        }
        MRT_OK(mr_stream_sync(g->streams[r], &err), &err);
        line_check_pixels(&g->l, batch, p->first, p->count, pixels, labels);
        mr_host_free(g->devices[r], pixels);
        mr_host_free(g->devices[r], labels);
        at += p->count;
    }
    MRT_EQ(at, mri_batches_count(&g->l.batches, batch));
}

/* A consumer that keeps its batches stops the copies at the sets of device memory, and host slots are free
 * again all the same. */
static void staging_waits_for_a_consumer_that_keeps_batches(void **state)
{
    (void)state;
    for (uint32_t parts = 1; parts <= 7; parts += 3) {
        static stage_rig g;
        mr_error err = MR_ERROR_INIT;
        mri_ring_batch b;
        uint32_t room;
        open_staging(&g, &(line_config){.samples = 45,
                                        .batch = 10,
                                        .slots = 2,
                                        .chunks = 2,
                                        .chunk_samples = 5,
                                        .device_slots = 2,
                                        .parts = parts});
        mri_stage_counter *counter = mri_staging_counter(g.stage);
        MRT_OK(mri_staging_start(g.stage, &err), &err);
        line_await(&counter->fill_samples, 0); /* it holds the lock until it waits for the first batch */
        for (uint64_t batch = 0; batch < 2; batch++) {
            line_make_batch(&g.l);
            MRT_EQ(mri_ring_wait(g.l.ring, MR_FOREVER), MR_OK);
            mri_ring_take(g.l.ring, &b);
            MRT_EQ(b.batch, batch);
            check_parts(&g, batch);
        }
        line_await(&counter->items, 1);
        line_make_batch(&g.l); /* into a slot whose copies are over */
        MRT_EQ(mri_ring_may_take(g.l.ring, &room), MR_EBUSY);
        MRT_EQ(room, 2);
        check_parts(&g, 0); /* the kept ones are as they were */
        check_parts(&g, 1);
        MRT_EQ(mri_counted(&counter->items), 2);
        for (uint64_t batch = 2; batch < 5; batch++) {
            MRT_OK(mri_staging_mark_consumed(g.stage, batch - 2, g.streams, false, &err), &err);
            mri_ring_release(g.l.ring);
            MRT_EQ(mri_ring_wait(g.l.ring, MR_FOREVER), MR_OK);
            mri_ring_take(g.l.ring, &b);
            check_parts(&g, batch);
            line_await(&counter->items, batch);
            if (batch < 4) line_make_batch(&g.l);
        }
        MRT_TRUE(mri_activity_ns(counter, MRI_WAIT_INPUT) > 0);
        uint64_t bytes = 0;
        for (uint32_t r = 0; r < parts; r++) bytes += mri_staging_bytes(g.stage, r);
        MRT_EQ(bytes, 45 * (LINE_PIXELS + sizeof(int32_t)));
        close_staging(&g);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(a_stage_that_cannot_be_made_closes_no_file_of_the_program),
        cmocka_unit_test(readers_alone_bring_every_chunk),
        cmocka_unit_test(a_failing_read_reaches_whoever_decodes),
        cmocka_unit_test(readers_stop_while_they_wait),
        cmocka_unit_test(workers_alone_fill_slots),
        cmocka_unit_test(a_slow_decoder_holds_the_reader_back),
        cmocka_unit_test(a_bad_sample_ends_the_run),
        cmocka_unit_test(staging_waits_for_a_consumer_that_keeps_batches),
    };
    return mrt_run(tests);
}
