/* The model of the pipeline against what follows by hand: one stage limits, two share, batches are uneven,
 * everything in series; the same answer every time; bad settings. Then a real loader with simulated devices.
 */
#include <math.h>

#include "pipeline/observe/replay.h"
#include "tests/pipeline/sets.h"

#define MS 1000000u

enum { BATCH = 16, CHUNKS = 800, SAMPLES = 2 };

typedef struct times {
    /* ms; of chunks of SAMPLES, or of batches */
    double read, reader_core, ran, blocked, copy, step, gap, delayed, lag, late;
    bool woken;
} times;

static uint64_t in_ns(double ms) { return (uint64_t)(ms * MS); }

/* uneven: one of every `uneven` batches takes as long as all of them, the others next to nothing. */
static mr_record *recorded(const times *t, uint32_t parts, uint32_t uneven)
{
    mr_record *r = NULL;
    const mri_run_shape shape = {.batch = BATCH,
                                 .parts = parts,
                                 .prefetch = 4,
                                 .workers = 1,
                                 .readers = 1,
                                 .depth = 2,
                                 .chunk_samples_most = SAMPLES};
    MRT_EQ(mr_record_create(&r, CHUNKS), MR_OK);
    mri_record_set_shape(r, &shape);
    for (uint32_t i = 0; i < CHUNKS; i++) {
        const uint32_t batch = i / (BATCH / SAMPLES);
        const double ran = !uneven ? t->ran : batch % uneven ? 0 : t->ran * uneven;
        mri_record_chunk(r, &(mri_chunk_record){.samples = SAMPLES,
                                                .reads = SAMPLES,
                                                .bytes = 1000 * SAMPLES,
                                                .read_ns = in_ns(t->read),
                                                .reader_core_ns = in_ns(t->reader_core),
                                                .ran_ns = in_ns(ran),
                                                .blocked_ns = in_ns(t->blocked),
                                                .delayed_ns = in_ns(t->delayed),
                                                .lag_ns = in_ns(t->lag),
                                                .late_ns = in_ns(t->late),
                                                .woken = t->woken});
    }
    uint64_t end[MR_LOADER_MAX_PARTS] = {0}, start[MR_LOADER_MAX_PARTS] = {0};
    const mr_causes none = {0};
    uint64_t at = 1000;
    for (uint64_t b = 0; b < CHUNKS / (BATCH / SAMPLES); b++) {
        mri_record_copies(r, &(mri_copy_record){.batch = b, .end_ns = at, .copy_ns = in_ns(t->copy)});
        for (uint32_t p = 0; p < parts; p++) {
            start[p] = at + in_ns(t->gap);
            end[p] = start[p] + in_ns(t->step);
        }
        mri_record_step(r, b, BATCH, start, end, parts, &none);
        at = end[0];
    }
    return r;
}

static mr_replay_config settings(const mr_record *r)
{
    mr_replay_config cfg;
    MRT_EQ(mr_replay_defaults(r, &cfg, NULL), MR_OK);
    cfg.cores = 64;
    return cfg;
}

static mr_replay_result replayed(mr_record *r, const mr_replay_config *cfg)
{
    mr_replay_result out;
    mr_error err = MR_ERROR_INIT;
    MRT_EQ(mr_replay(r, cfg, &out, &err), MR_OK);
    mr_record_destroy(r);
    return out;
}

static void near(double found, double expected, double part)
{
    if (fabs(found - expected) > part * expected) print_error("found %g, expected %g\n", found, expected);
    MRT_TRUE(fabs(found - expected) <= part * expected);
}

/* ---- one stage limits: the rate is its capacity ---- */

static void the_device_limits(void **state)
{
    (void)state;
    mr_record *r = recorded(&(times){.read = 0.1, .ran = 0.1, .copy = 0.5, .step = 8}, 1, 0);
    const mr_replay_config cfg = settings(r);
    const mr_replay_result out = replayed(r, &cfg);
    near(out.samples_per_s, BATCH / 8e-3, 1e-6);
    MRT_STR(out.limit, "compute");
    near(out.step_ms_p99, 8, 1e-6);
    MRT_TRUE(out.idle < 1e-6 && out.samples_per_s_error < 1e-3);
}

static void workers_limit(void **state)
{
    (void)state;
    for (uint32_t workers = 1; workers <= 4; workers *= 2) {
        mr_record *r = recorded(&(times){.read = 0.1, .ran = 2, .copy = 0.1, .step = 1}, 1, 0);
        mr_replay_config cfg = settings(r);
        cfg.workers = workers;
        cfg.depth = 32;
        const mr_replay_result out = replayed(r, &cfg);
        near(out.samples_per_s, workers * SAMPLES / 2e-3, 0.01);
        MRT_STR(out.limit, "decode");
        near(out.cores, workers, 0.01);
        near(out.read_bytes_per_s, 1000 * out.samples_per_s, 0.05);
    }
}

/* Two busy cores are slower than one, each; a record that was made with both busy has it already. */
static void crowded_cores_are_slower(void **state)
{
    (void)state;
    for (int both = 0; both < 2; both++)
        for (uint32_t workers = 1; workers <= 2; workers++) {
            mr_record *r = recorded(&(times){.read = 0.001, .ran = 2, .copy = 0.001, .step = 1}, 1, 0);
            mr_replay_config cfg = settings(r);
            cfg.workers = workers;
            cfg.depth = 32;
            cfg.cores = 2;
            cfg.crowd_times = 1.5;
            cfg.crowd_part = both;
            const mr_replay_result out = replayed(r, &cfg);
            const double slower = workers == 2 && !both ? 1.5 : workers == 1 && both ? 1 / 1.5 : 1;
            near(out.samples_per_s, workers * SAMPLES / (2e-3 * slower), 0.02);
        }
}

/* A reader's core time and its storage time are separate. */
static void reading_has_two_parts(void **state)
{
    (void)state;
    for (int k = 0; k < 4; k++) {
        mr_record *r =
            recorded(&(times){.read = 4, .reader_core = 1, .ran = 0.01, .copy = 0.01, .step = 0.1}, 1, 0);
        mr_replay_config cfg = settings(r);
        cfg.depth = 64; /* storage answers many at a time: the reader's core limits */
        if (k == 1) cfg.read_core_times = 0.5;
        if (k == 2) cfg.read_times = 2;
        if (k == 3) cfg.bytes_times = 0.25;
        const mr_replay_result out = replayed(r, &cfg);
        near(out.samples_per_s, SAMPLES / (k == 1 ? 0.5e-3 : 1e-3), 0.03);
    }
}

/* A quota lets all threads stand still; the model has as few cores as it says. */
static void pauses_of_a_quota_count_once(void **state)
{
    (void)state;
    for (int quota = 0; quota < 2; quota++) {
        mr_record *r = recorded(&(times){.read = 0.1, .ran = 1, .copy = 0.1, .step = 1}, 1, 0);
        const mri_run_shape shape = {.batch = BATCH,
                                     .parts = 1,
                                     .prefetch = 4,
                                     .workers = 1,
                                     .readers = 1,
                                     .depth = 2,
                                     .chunk_samples_most = SAMPLES,
                                     .quota = quota};
        mri_record_set_shape(r, &shape);
        for (int i = 0; i < CHUNKS; i++) /* one in ten was late by 30 ms */
            mri_record_chunk(r, &(mri_chunk_record){.samples = SAMPLES,
                                                    .reads = SAMPLES,
                                                    .bytes = 1000 * SAMPLES,
                                                    .read_ns = in_ns(0.1),
                                                    .ran_ns = in_ns(1),
                                                    .lag_ns = i % 10 ? 0 : in_ns(30)});
        mr_replay_config cfg = settings(r);
        cfg.cores = 1;
        const mr_replay_result out = replayed(r, &cfg);
        near(out.samples_per_s, SAMPLES / (quota ? 1e-3 : 4e-3), 0.1);
    }
}

/* More threads than cores: the cores' capacity, and the threads are delayed. */
static void cores_limit(void **state)
{
    (void)state;
    mr_record *r = recorded(&(times){.read = 0.1, .ran = 2, .copy = 0.1, .step = 1}, 1, 0);
    mr_replay_config cfg = settings(r);
    cfg.workers = 8;
    cfg.depth = 32;
    cfg.cores = 2;
    const mr_replay_result out = replayed(r, &cfg);
    near(out.samples_per_s, 2 * SAMPLES / 2e-3, 0.01);
    MRT_STR(out.limit, "cores");
    near(out.cores, 2, 1e-6);
}

/* Steps on cores take them from workers: 2 ms of decoding each 2 samples, 8 ms of a step each 16, on one
 * core. */
static void steps_share_the_cores(void **state)
{
    (void)state;
    mr_record *r = recorded(&(times){.read = 0.1, .ran = 2, .copy = 0.1, .step = 8}, 1, 0);
    mr_replay_config cfg = settings(r);
    cfg.cores = 1;
    cfg.step_cores = 1;
    const mr_replay_result out = replayed(r, &cfg);
    near(out.samples_per_s, BATCH / 24e-3, 0.01);
}

/* A reader with room for two reads of a chunk has one chunk in flight. */
static void reading_limits(void **state)
{
    (void)state;
    for (uint32_t readers = 1; readers <= 2; readers++) {
        mr_record *r = recorded(&(times){.read = 5, .ran = 0.1, .copy = 0.1, .step = 1}, 1, 0);
        mr_replay_config cfg = settings(r);
        cfg.readers = readers;
        const mr_replay_result out = replayed(r, &cfg);
        near(out.samples_per_s, readers * SAMPLES / 5e-3, 0.01);
        MRT_STR(out.limit, "read");
    }
}

static void a_readers_core_limits(void **state)
{
    (void)state;
    mr_record *r = recorded(&(times){.read = 5, .reader_core = 1, .ran = 0.1, .copy = 0.1, .step = 1}, 1, 0);
    mr_replay_config cfg = settings(r);
    cfg.depth = 64;
    const mr_replay_result out = replayed(r, &cfg);
    near(out.samples_per_s, SAMPLES / 1e-3, 0.01);
}

static void the_link_limits(void **state)
{
    (void)state;
    mr_record *r = recorded(&(times){.read = 0.1, .ran = 0.1, .copy = 6, .step = 1}, 1, 0);
    mr_replay_config cfg = settings(r);
    mr_replay_result out;
    MRT_EQ(mr_replay(r, &cfg, &out, NULL), MR_OK);
    near(out.samples_per_s, BATCH / 6e-3, 0.01);
    MRT_STR(out.limit, "copy");
    cfg.copy_times = 0.5;
    out = replayed(r, &cfg);
    near(out.samples_per_s, BATCH / 3e-3, 0.01);
}

static void the_host_limits(void **state)
{
    (void)state;
    mr_record *r = recorded(&(times){.read = 0.1, .ran = 0.1, .copy = 0.1, .step = 1, .gap = 1}, 1, 0);
    const mr_replay_config cfg = settings(r);
    const mr_replay_result out = replayed(r, &cfg);
    near(out.samples_per_s, BATCH / 2e-3, 0.02);
    MRT_STR(out.limit, "host");
}

/* ---- several things at once ---- */

static void in_series_times_add_up(void **state)
{
    (void)state;
    mr_record *r =
        recorded(&(times){.read = 0.5, .ran = 1, .blocked = 0.25, .copy = 2, .step = 3, .gap = 0.125}, 1, 0);
    mr_replay_config cfg = settings(r);
    cfg.prefetch = 0;
    const mr_replay_result out = replayed(r, &cfg);
    near(out.samples_per_s, BATCH / (8 * 1.75e-3 + 5.125e-3), 0.005);
    MRT_STR(out.limit, "decode");
}

/* A batch of four takes 4 x 6 ms to decode, the others nothing, a step 8 ms. With many slots the device never
 * waits; with one slot ahead it waits for each slow batch: only the slots and the device slots buffer
 * batches. */
static void uneven_batches_need_slots(void **state)
{
    (void)state;
    const times t = {.read = 0.01, .ran = 6.0 / 8, .copy = 0.01, .step = 8};
    mr_record *r = recorded(&t, 1, 4);
    mr_replay_config cfg = settings(r);
    cfg.prefetch = 8;
    cfg.depth = 64;
    mr_replay_result out = replayed(r, &cfg);
    near(out.samples_per_s, BATCH / 8e-3, 0.01);
    double before = out.samples_per_s * 1.0001;
    for (uint32_t prefetch = 4; prefetch; prefetch /= 2) {
        r = recorded(&(times){.read = 0.01, .ran = 7.9 / 8, .copy = 0.01, .step = 8}, 1, 8);
        cfg.prefetch = prefetch;
        out = replayed(r, &cfg);
        MRT_TRUE(out.samples_per_s < before);
        /* 63.2 ms for each eighth batch, while prefetch + 2 batches can be ready: the rest of them are waited
         * for */
        const double ready = prefetch + 2.0, wait = 63.2 - 8 * ready;
        near(out.samples_per_s, 8 * BATCH / (64e-3 + (wait > 0 ? wait * 1e-3 : 0)), 0.12);
        before = out.samples_per_s;
    }
}

/* K devices with K times the batch: K times the samples, as long as the rest keeps up. */
static void devices_add_up(void **state)
{
    (void)state;
    for (uint32_t devices = 1; devices <= 4; devices *= 2) {
        mr_record *r = recorded(&(times){.read = 0.1, .ran = 0.2, .copy = 0.5, .step = 8}, 1, 0);
        mr_replay_config cfg = settings(r);
        cfg.devices = devices;
        cfg.batch = devices * BATCH;
        cfg.depth = 64;
        const mr_replay_result out = replayed(r, &cfg);
        near(out.samples_per_s, devices * BATCH / 8e-3, 0.01);
    }
}

static void samples_in_memory_are_not_read(void **state)
{
    (void)state;
    mr_record *r =
        recorded(&(times){.read = 50, .reader_core = 10, .ran = 0.5, .copy = 0.1, .step = 1}, 1, 0);
    mr_replay_config cfg = settings(r);
    cfg.read_times = 0;
    const mr_replay_result out = replayed(r, &cfg);
    near(out.samples_per_s, SAMPLES / 0.5e-3, 0.01);
    MRT_TRUE(out.read_bytes_per_s == 0);
}

/* Workers that had a core half of the time, one of them on two cores: three others. They stay when it is
 * replayed. */
static void others_are_found(void **state)
{
    (void)state;
    mr_record *r = recorded(&(times){.read = 0.1, .ran = 1, .delayed = 1, .copy = 0.1, .step = 1}, 1, 0);
    mr_replay_config cfg = settings(r);
    cfg.cores = 2;
    MRT_EQ(mr_replay_find_others(r, &cfg, NULL), MR_OK);
    near(cfg.others, 3, 0.03);
    const mr_replay_result out = replayed(r, &cfg);
    near(out.samples_per_s, SAMPLES / 2e-3, 0.02);
    r = recorded(&(times){.read = 0.1, .ran = 1, .copy = 0.1, .step = 1}, 1, 0);
    cfg.others = 5;
    MRT_EQ(mr_replay_find_others(r, &cfg, NULL), MR_OK);
    MRT_TRUE(cfg.others == 0);
    mr_record_destroy(r);
}

static void workers_begin_as_late_as_they_did(void **state)
{
    (void)state;
    mr_record *r = recorded(&(times){.read = 0.1, .ran = 1, .lag = 0.5, .copy = 0.1, .step = 1}, 1, 0);
    const mr_replay_config cfg = settings(r);
    const mr_replay_result out = replayed(r, &cfg);
    near(out.samples_per_s, SAMPLES / 1.5e-3, 0.01);
    near(out.cores, 2.0 / 3, 0.02);
}

/* And for the same reason: it could have run, or it was not woken. */
static void a_late_worker_has_its_cause(void **state)
{
    (void)state;
    for (int could_run = 0; could_run < 2; could_run++) {
        const times t = {.read = 0.1, .ran = 0.2, .lag = 2, .late = could_run ? 2 : 0, .step = 0.1};
        mr_record *r = recorded(&t, 1, 0);
        const mr_replay_config cfg = settings(r);
        const mr_replay_result out = replayed(r, &cfg);
        MRT_STR(out.limit, could_run ? "cores" : "blocked");
        near((double)out.causes.ns[could_run ? MR_CAUSE_CORES : MR_CAUSE_BLOCKED],
             (double)out.causes.total_ns, 0.1);
    }
}

/* The wake-up cost of a worker is not charged to one that always has a chunk waiting. */
static void who_has_work_is_not_woken(void **state)
{
    (void)state;
    mr_record *r =
        recorded(&(times){.read = 0.1, .ran = 1, .lag = 0.5, .woken = true, .copy = 0.1, .step = 1}, 1, 0);
    const mr_replay_config cfg = settings(r);
    const mr_replay_result out = replayed(r, &cfg);
    near(out.samples_per_s, SAMPLES / 1e-3, 0.01);
}

/* ---- the answer itself ---- */

static void the_same_every_time(void **state)
{
    (void)state;
    const times t = {
        .read = 0.7, .reader_core = 0.05, .ran = 1.3, .blocked = 0.1, .copy = 0.4, .step = 9.7, .gap = 0.03};
    mr_record *r = recorded(&t, 2, 3);
    mr_replay_config cfg = settings(r);
    cfg.workers = 3;
    cfg.cores = 2;
    mr_replay_result a, b;
    memset(&a, 0, sizeof a);
    memset(&b, 0, sizeof b);
    MRT_EQ(mr_replay(r, &cfg, &a, NULL), MR_OK);
    MRT_EQ(mr_replay(r, &cfg, &b, NULL), MR_OK);
    MRT_EQ(memcmp(&a, &b, sizeof a), 0);
    mr_record_destroy(r);
}

/* Causes are of the whole idle time. */
static void idle_time_is_charged_whole(void **state)
{
    (void)state;
    mr_record *r = recorded(&(times){.read = 0.1, .ran = 2, .copy = 0.1, .step = 1}, 2, 0);
    const mr_replay_config cfg = settings(r);
    const mr_replay_result out = replayed(r, &cfg);
    uint64_t sum = 0;
    for (int i = 0; i < MR_CAUSES; i++) sum += out.causes.ns[i];
    MRT_EQ(sum, out.causes.total_ns);
    near(out.idle, 15.0 / 16, 0.01);
}

static void nothing_is_not_replayed(void **state)
{
    (void)state;
    mr_record *r = NULL;
    mr_replay_config cfg;
    mr_error err = MR_ERROR_INIT;
    MRT_EQ(mr_record_create(&r, 0), MR_EINVAL);
    MRT_EQ(mr_record_create(&r, 16), MR_OK);
    MRT_EQ(mr_replay_defaults(r, &cfg, &err), MR_EINVAL);
    MRT_TRUE(strstr(err.text, "nothing to replay") != NULL);
    mr_record_destroy(r);
    r = recorded(&(times){.read = 1, .ran = 1, .copy = 1, .step = 1}, 1, 0);
    mr_replay_result out;
    cfg = settings(r);
    cfg.workers = 0;
    MRT_EQ(mr_replay(r, &cfg, &out, &err), MR_EINVAL);
    MRT_TRUE(strstr(err.text, "workers 0: expected 1..4096") != NULL);
    cfg = settings(r);
    cfg.cores = NAN;
    MRT_EQ(mr_replay(r, &cfg, &out, &err), MR_EINVAL);
    mr_record_clear(r);
    MRT_EQ(mr_replay(r, &cfg, &out, &err), MR_EINVAL);
    mr_record_destroy(r);
}

static void limits_have_names(void **state)
{
    (void)state;
    mr_causes c = {.ns = {[MR_CAUSE_READ] = 5, [MR_CAUSE_DECODE] = 4, [MR_CAUSE_LARGE] = 2}, .total_ns = 11};
    MRT_STR(mr_limit_name(0.5, &c), "decode");
    MRT_STR(mr_limit_name(0.01, &c), "compute");
    c.ns[MR_CAUSE_CORES] = c.ns[MR_CAUSE_QUOTA] = 4;
    MRT_STR(mr_limit_name(0.5, &c), "cores");
}

/* ---- records of a loader ---- */

/* A set through a loader with a simulated device, once; the consumer makes up its steps. idle: the causes of
 * the device's wait before each. */
static mr_record *record_of(const mr_source *src, uint32_t prefetch, const mr_causes *idle)
{
    mr_loader *l;
    mr_batch b;
    mr_device **devices;
    uint32_t count;
    mr_stream *stream;
    mr_record *r;
    mr_error err = MR_ERROR_INIT;
    mr_loader_config cfg = mrt_training(8, 2, "resize(16x16)", NULL, 0);
    MRT_OK(mr_devices_open(&devices, &count, "sim:1", NULL, &err), &err);
    MRT_OK(mr_stream_create(&stream, devices[0], MR_STREAM_COMPUTE, &err), &err);
    MRT_EQ(mr_record_create(&r, 1000), MR_OK);
    cfg.prefetch = prefetch;
    cfg.devices = devices;
    cfg.device_count = 1;
    cfg.record = r;
    cfg.resident_bytes = 0;
    MRT_OK(mr_loader_open(&l, src, &cfg, &err), &err);
    for (uint64_t at = 1000; mr_loader_next(l, &b, MR_FOREVER, &err) == MR_OK; at += 1000) {
        const uint64_t begun = at + 400, ended = at + 1000;
        MRT_EQ(mr_loader_release(l, &b, &stream), MR_OK);
        mr_loader_record_step(l, b.global_step, b.count, &begun, &ended, idle);
    }
    mr_loader_close(l);
    mr_stream_destroy(stream);
    mr_devices_close(devices, count);
    return r;
}

static void a_loader_records(void **state)
{
    (void)state;
    mr_source *src = mrt_source(mrt_folder_set("recorded", 2, 24, 40, false));
    const mr_causes idle = {.ns = {[MR_CAUSE_DECODE] = 400}, .total_ns = 400};
    for (uint32_t prefetch = 0; prefetch < 6; prefetch += 3) {
        mr_record *r = record_of(src, prefetch, &idle);
        mr_record_totals t;
        mri_record_data d;
        uint64_t samples = 0, bytes = 0;
        mr_record_totals_read(r, &t);
        MRT_EQ(t.steps, 12);
        near(t.samples_per_s, 8 / 1e-6, 1e-9); /* a step every 1000 ns */
        near(t.idle, 0.4, 1e-9);
        near(t.step_ms, 0.0006, 1e-9);
        MRT_STR(t.limit, "decode");
        MRT_EQ(mri_record_take(r, &d), MR_OK);
        for (size_t i = 0; i < d.chunks; i++) {
            const mri_chunk_record *c = &d.chunk[i];
            samples += c->samples;
            bytes += c->bytes;
            MRT_TRUE(c->reads > 0 && c->read_ns > 0 && c->ran_ns > 0);
        }
        MRT_EQ(samples, 96);
        MRT_EQ(bytes, 2 * mr_source_info_of(src)->total_bytes);
        MRT_EQ(d.copies, 12);
        mri_record_data_free(&d);
        const mr_replay_config cfg = settings(r);
        MRT_EQ(cfg.prefetch, prefetch);
        MRT_TRUE(replayed(r, &cfg).samples_per_s > 0);
    }
    mr_source_close(src);
}

static void other_parts_begin_anew(void **state)
{
    (void)state;
    mr_record *r = recorded(&(times){.read = 1, .ran = 1, .copy = 1, .step = 1}, 1, 0);
    mri_run_shape shape = {.batch = BATCH, .parts = 1, .prefetch = 2, .workers = 2, .readers = 1, .depth = 2};
    mr_record_totals t;
    mri_record_set_shape(r, &shape); /* other settings may follow each other */
    mr_record_totals_read(r, &t);
    MRT_EQ(t.steps, CHUNKS / (BATCH / SAMPLES));
    shape.parts = 2;
    mri_record_set_shape(r, &shape);
    mr_record_totals_read(r, &t);
    MRT_EQ(t.steps + t.chunks, 0);
    mr_record_destroy(r);
}

/* Before an epoch's first step nobody has asked for the causes of the device's wait: the loader is asked
 * then. */
static void steps_that_nobody_charged(void **state)
{
    (void)state;
    mr_source *src = mrt_source(mrt_folder_set("uncharged", 2, 24, 40, false));
    const mr_causes none = {0};
    mr_record *r = record_of(src, 3, &none);
    mr_record_totals t;
    mr_record_totals_read(r, &t);
    MRT_EQ(t.steps, 12);
    near(t.idle, 0.4, 1e-9);
    near((double)t.causes.total_ns, 11 * 400, 1e-9);
    MRT_EQ(t.causes.ns[MR_CAUSE_HOST] + t.causes.ns[MR_CAUSE_UNKNOWN], 0); /* long before its batch was there
                                                                            */
    mr_record_destroy(r);
    mr_source_close(src);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(the_device_limits),
        cmocka_unit_test(workers_limit),
        cmocka_unit_test(crowded_cores_are_slower),
        cmocka_unit_test(reading_has_two_parts),
        cmocka_unit_test(pauses_of_a_quota_count_once),
        cmocka_unit_test(cores_limit),
        cmocka_unit_test(steps_share_the_cores),
        cmocka_unit_test(reading_limits),
        cmocka_unit_test(a_readers_core_limits),
        cmocka_unit_test(the_link_limits),
        cmocka_unit_test(the_host_limits),
        cmocka_unit_test(in_series_times_add_up),
        cmocka_unit_test(uneven_batches_need_slots),
        cmocka_unit_test(devices_add_up),
        cmocka_unit_test(samples_in_memory_are_not_read),
        cmocka_unit_test(others_are_found),
        cmocka_unit_test(workers_begin_as_late_as_they_did),
        cmocka_unit_test(a_late_worker_has_its_cause),
        cmocka_unit_test(who_has_work_is_not_woken),
        cmocka_unit_test(the_same_every_time),
        cmocka_unit_test(idle_time_is_charged_whole),
        cmocka_unit_test(nothing_is_not_replayed),
        cmocka_unit_test(limits_have_names),
        cmocka_unit_test(a_loader_records),
        cmocka_unit_test(other_parts_begin_anew),
        cmocka_unit_test(steps_that_nobody_charged),
    };
    return mrt_run(tests);
}
