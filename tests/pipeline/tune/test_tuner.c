/* The tuner against made-up machines: it finds the best of them, leaves noise alone, goes back, keeps what is
 * fixed, ends in time. Then a loader that tunes: every batch is the same. */
#include <math.h>

#include "pipeline/loader_private.h"
#include "tests/pipeline/sets.h"

#define MS 1000000.0

/* How long a batch takes with these settings, in ns; *wait_ns: of that the consumer waited, for `cause`. */
typedef double machine(const uint32_t use[MRI_TUNED], double *wait_ns, mr_cause *cause);

typedef struct found {
    mr_tuning tuning;
    double seconds;
    bool late;
    uint32_t notes;
    char last[256];
} found;

static void on_note(void *context, const char *text)
{
    found *f = context;
    f->notes++;
    snprintf(f->last, sizeof f->last, "%s", text);
}

static uint64_t random_state = 1;

/* -1..1 */
static double noise(void)
{
    random_state = random_state * 6364136223846793005u + 1442695040888963407u;
    return (double)(int64_t)(random_state >> 11) / 0x1p52 - 1;
}

static mri_tuner_config free_ones(void)
{
    return (mri_tuner_config){
        .start = {2, 4, 32, 1}, .least = {1, 1, 8, 1}, .most = {8, 16, 128, 4}, .batch = 32};
}

static found tuned(machine *m, mri_tuner_config cfg, double noise_part)
{
    found f = {0};
    mri_tuner *t;
    cfg.note = on_note;
    cfg.context = &f;
    MRT_EQ(mri_tuner_create(&t, &cfg), MR_OK);
    double now = 5e9;
    mr_causes waits = {0};
    for (int i = 0; i < 1000000 && !mri_tuner_is_done(t); i++) {
        double wait = 0;
        mr_cause cause = MR_CAUSE_DECODE;
        const uint32_t *use = mri_tuner_in_use(t);
        for (int k = 0; k < MRI_TUNED; k++) MRT_TRUE(use[k] >= cfg.least[k] && use[k] <= cfg.most[k]);
        now += m(use, &wait, &cause) * (1 + noise_part * noise());
        waits.ns[cause] += (uint64_t)wait;
        waits.total_ns += (uint64_t)wait;
        uint32_t before[MRI_TUNED];
        memcpy(before, use, sizeof before);
        const bool changed = mri_tuner_batch(t, (uint64_t)now, &waits, wait < 0.1 * MS);
        if (memcmp(before, mri_tuner_in_use(t), sizeof before) != 0) MRT_TRUE(changed);
    }
    MRT_TRUE(mri_tuner_is_done(t));
    MRT_TRUE(!mri_tuner_batch(t, (uint64_t)now + 1, &waits, false));
    f.seconds = (now - 5e9) * 1e-9;
    mri_tuner_result(t, &f.tuning);
    f.late = mri_tuner_is_late(t);
    mri_tuner_destroy(t);
    return f;
}

/* Decoding in use[MRI_TUNE_WORKERS] threads; 5 of them have a core. */
static double decoding(const uint32_t use[MRI_TUNED], double *wait_ns, mr_cause *cause)
{
    const double workers = use[MRI_TUNE_WORKERS];
    const double ns = 40 * MS / fmin(workers, 5) * (1 + 0.05 * fmax(0, workers - 5));
    *wait_ns = 0.8 * ns;
    *cause = MR_CAUSE_DECODE;
    return ns;
}

/* Distant storage: the reads in flight count, up to 192. */
static double far_away(const uint32_t use[MRI_TUNED], double *wait_ns, mr_cause *cause)
{
    const double ns = 1600 * MS / fmin(192, (double)use[MRI_TUNE_DEPTH] * use[MRI_TUNE_READERS]);
    *wait_ns = 0.9 * ns;
    *cause = MR_CAUSE_READ;
    return ns;
}

/* Fewer workers leave the cores to somebody else. */
static double crowded(const uint32_t use[MRI_TUNED], double *wait_ns, mr_cause *cause)
{
    const double ns = 10 * MS * (1 + 0.1 * use[MRI_TUNE_WORKERS]);
    *wait_ns = 0.3 * ns;
    *cause = MR_CAUSE_CORES;
    return ns;
}

static double device(const uint32_t use[MRI_TUNED], double *wait_ns, mr_cause *cause)
{
    (void)use;
    *cause = MR_CAUSE_DECODE;
    *wait_ns = 0.001 * MS;
    return 10 * MS;
}

/* It waits, and nothing changes that. */
static double stubborn(const uint32_t use[MRI_TUNED], double *wait_ns, mr_cause *cause)
{
    (void)use;
    *cause = MR_CAUSE_COPY;
    *wait_ns = 5 * MS;
    return 10 * MS;
}

static double slower(double times, const uint32_t use[MRI_TUNED], double *wait_ns, mr_cause *cause)
{
    const double ns = times * decoding(use, wait_ns, cause);
    *wait_ns *= times;
    return ns;
}

static double slow(const uint32_t use[MRI_TUNED], double *wait_ns, mr_cause *cause)
{
    return slower(100, use, wait_ns, cause);
}

/* 0.16 s a batch at first: a pair of turns takes five seconds. */
static double slowish(const uint32_t use[MRI_TUNED], double *wait_ns, mr_cause *cause)
{
    return slower(8, use, wait_ns, cause);
}

static void it_finds_what_is_fastest(void **state)
{
    (void)state;
    for (int k = 0; k < 2; k++) {
        const double part = k ? 0.05 : 0;
        found f = tuned(decoding, free_ones(), part);
        MRT_EQ(f.tuning.workers, 5);
        MRT_TRUE(f.tuning.gain > 2.2 && f.tuning.gain < 2.8 && f.seconds < 30);
        MRT_HAS(f.last, "workers 5");
        MRT_EQ(f.notes, f.tuning.tried + 1);
        f = tuned(far_away, free_ones(), part);
        MRT_TRUE(f.tuning.depth * f.tuning.readers >= 192 && f.seconds < 30);
        f = tuned(crowded, free_ones(), part);
        MRT_EQ(f.tuning.workers, 1);
    }
}

static void it_leaves_what_is_as_good(void **state)
{
    (void)state;
    const mri_tuner_config cfg = free_ones();
    found f = tuned(device, cfg, 0.05);
    MRT_EQ(f.tuning.tried, 0);
    MRT_TRUE(f.seconds < 1 && f.notes == 1);
    for (int k = 0; k < 20; k++) {
        f = tuned(stubborn, cfg, 0.05);
        MRT_TRUE(f.tuning.tried >= 4 && f.tuning.taken == 0 && f.tuning.gain == 1);
        MRT_TRUE(f.tuning.workers == 2 && f.tuning.prefetch == 4 && f.tuning.depth == 32 &&
                 f.tuning.readers == 1);
    }
}

static void what_is_fixed_stays(void **state)
{
    (void)state;
    mri_tuner_config cfg = free_ones();
    cfg.least[MRI_TUNE_WORKERS] = cfg.most[MRI_TUNE_WORKERS] = 2;
    found f = tuned(decoding, cfg, 0);
    MRT_TRUE(f.tuning.workers == 2 && f.tuning.taken == 0);
    memcpy(cfg.least, cfg.start, sizeof cfg.least);
    memcpy(cfg.most, cfg.start, sizeof cfg.most);
    f = tuned(decoding, cfg, 0);
    MRT_EQ(f.tuning.tried, 0);
    MRT_HAS(f.last, "fixed");
}

static void it_ends_in_time(void **state)
{
    (void)state;
    const found f = tuned(slow, free_ones(), 0);
    MRT_TRUE(f.seconds < 60 && f.tuning.done); /* the first turn is eight batches of 2 s, and seven before */
    MRT_HAS(f.last, "the time for it is over");
    MRT_TRUE(f.tuning.workers == 2);
    const found g = tuned(slowish, free_ones(), 0);
    MRT_TRUE(g.seconds < 32 && g.tuning.workers > 2 && g.tuning.gain > 1.3);
    MRT_HAS(g.last, "the time for it is over");
}

/* With five workers it is ready in time. */
static double enough_at_five(const uint32_t use[MRI_TUNED], double *wait_ns, mr_cause *cause)
{
    const double ns = 40 * MS / use[MRI_TUNE_WORKERS];
    *wait_ns = fmax(0.001 * MS, ns - 8 * MS);
    *cause = MR_CAUSE_DECODE;
    return fmax(8 * MS, ns);
}

/* A cache would help if the work is late even with the best settings. */
static void it_knows_whether_the_work_is_late(void **state)
{
    (void)state;
    MRT_TRUE(tuned(decoding, free_ones(), 0).late);
    MRT_TRUE(tuned(far_away, free_ones(), 0).late);
    MRT_TRUE(!tuned(device, free_ones(), 0).late);
    MRT_TRUE(!tuned(stubborn, free_ones(), 0).late); /* copies */
    const found f = tuned(enough_at_five, free_ones(), 0);
    MRT_TRUE(f.tuning.workers >= 5 && !f.late);
}

/* ---- a loader ---- */

enum { ROUNDS = 3000, EPOCHS = MRT_SANITIZED ? 12 : 40 };

static mr_loader_config config(void)
{
    mr_loader_config cfg;
    mr_loader_defaults(&cfg);
    cfg.batch = 16;
    cfg.workers = 2;
    cfg.seed = 7;
    cfg.training = true;
    cfg.augment = "resize(40x40),cifar";
    cfg.resident_bytes = 0;
    return cfg;
}

static mr_loader *open_loader_for(const mr_source *src, uint64_t epochs, uint32_t tune, uint64_t memory_bytes,
                                  found *f)
{
    mr_loader *l;
    mr_loader_config cfg = config();
    mr_error err = MR_ERROR_INIT;
    cfg.epochs = epochs;
    cfg.tune = tune;
    cfg.memory_bytes = memory_bytes;
    cfg.on_note = on_note;
    cfg.note_context = f;
    MRT_OK(mr_loader_open(&l, src, &cfg, &err), &err);
    return l;
}

static mr_loader *open_loader(const mr_source *src, uint32_t tune, uint64_t memory_bytes, found *f)
{
    return open_loader_for(src, EPOCHS, tune, memory_bytes, f);
}

static mr_loader *open_cached(const mr_source *src, uint64_t memory_bytes, found *f)
{
    mr_loader *l;
    mr_loader_config cfg = config();
    mr_error err = MR_ERROR_INIT;
    cfg.epochs = EPOCHS;
    cfg.cache = MR_CACHE_MEMORY;
    cfg.cache_bytes = MR_CACHE_FITS;
    cfg.memory_bytes = memory_bytes;
    cfg.on_note = on_note;
    cfg.note_context = f;
    MRT_OK(mr_loader_open(&l, src, &cfg, &err), &err);
    return l;
}

/* Numbers of threads, reads and slots are drawn anew for every batch. */
static void draw_limits(mr_loader *l)
{
    const uint32_t *most = l->plan.tune.most;
    uint32_t n[MRI_TUNED];
    for (int i = 0; i < MRI_TUNED; i++) n[i] = 1 + (uint32_t)((noise() + 1) / 2 * (most[i] - 1) + 0.5);
    const mri_ring_limits limits = {n[MRI_TUNE_WORKERS], n[MRI_TUNE_READERS], n[MRI_TUNE_PREFETCH] + 1};
    mri_ring_limit(l->ring, &limits);
    mri_read_stage_set_depth(l->stages.read, n[MRI_TUNE_DEPTH]);
}

static void same_batches(const mr_source *src, bool drawn)
{
    mr_error err = MR_ERROR_INIT;
    found f = {0}, none = {0};
    mr_loader *plain = open_loader(src, 0, 0, &none), *other = open_loader(src, MR_TUNE_ALL, 0, &f);
    const mr_loader_info *info = mr_loader_info_of(plain);
    const size_t sample = (size_t)info->height * info->width * info->channels;
    mr_tuning at;
    mr_loader_tuning(plain, &at);
    MRT_TRUE(at.done && at.workers == 2 && at.prefetch == 4 && at.depth == 32 && at.gain == 1);
    mr_batch a, b;
    for (int rc; (rc = mr_loader_next(plain, &a, MR_FOREVER, &err)) != MR_EEND;) {
        MRT_OK(rc, &err);
        MRT_OK(mr_loader_next(other, &b, MR_FOREVER, &err), &err);
        MRT_EQ(a.count, b.count);
        MRT_EQ(memcmp(a.pixels, b.pixels, a.count * sample), 0);
        MRT_EQ(memcmp(a.labels, b.labels, a.count * sizeof *a.labels), 0);
        mr_loader_release(plain, &a, NULL);
        mr_loader_release(other, &b, NULL);
        if (drawn) draw_limits(other);
    }
    MRT_EQ(mr_loader_next(other, &b, MR_FOREVER, &err), MR_EEND);
    mr_loader_tuning(other, &at);
    MRT_TRUE(at.workers >= 1 && at.prefetch >= 1 && at.prefetch <= 16 && at.depth >= 8 && at.readers >= 1);
    MRT_EQ(none.notes, 0);
    mr_loader_close(plain);
    mr_loader_close(other);
}

static void a_loader_that_tunes_delivers_the_same(void **state)
{
    (void)state;
    mr_source *idx = mrt_source(mrt_idx_set("tuned", 700, 24, 24)),
              *folder = mrt_source(mrt_folder_set("tuned-folder", 3, 40, 40, true));
    for (int drawn = 0; drawn < 2; drawn++) {
        same_batches(idx, drawn);
        same_batches(folder, drawn);
    }
    mr_source_close(idx);
    mr_source_close(folder);
}

static mr_source *jpegs(void) { return mrt_source(mrt_folder_set("tuned-folder", 3, 40, 40, true)); }

/* Hash of `batches` batches; on the way *hits: samples that came from a cache. */
static uint64_t hash_of(mr_loader *l, uint32_t batches, uint64_t *hits)
{
    const mr_loader_info *info = mr_loader_info_of(l);
    const size_t sample = (size_t)info->height * info->width * info->channels;
    mr_error err = MR_ERROR_INIT;
    mr_loader_stats stats;
    uint64_t hash = 0;
    for (uint32_t i = 0; i < batches; i++) {
        mr_batch b;
        MRT_OK(mr_loader_next(l, &b, MR_FOREVER, &err), &err);
        hash = 31 * hash + mr_crc32c(0, b.pixels, b.count * sample);
        mr_loader_release(l, &b, NULL);
    }
    mr_loader_stats_read(l, &stats);
    *hits = stats.cache_hits;
    return hash;
}

/* A consumer that takes batches at once waits for the loader's work: samples are cached, and no bit changes.
 * A consumer that gets no core finds its batches ready, and the tuner decides against a cache: then another
 * loader is tried. */
static void a_loader_that_is_late_takes_a_cache(void **state)
{
    (void)state;
    mr_source *src = jpegs();
    found f = {0};
    uint64_t hits = 0, more = 0, hash = 0;
    uint32_t rounds = 0;
    while (hits == 0) {
        mr_tuning at = {0};
        mr_loader *l = open_loader_for(src, ROUNDS * 10, MR_TUNE_CACHE, 0, &f);
        MRT_EQ(l->plan.tune.most[MRI_TUNE_WORKERS], 2);
        MRT_TRUE(l->plan.cache_waits);
        hash = 0;
        for (rounds = 0; rounds < ROUNDS && hits == 0; rounds++) {
            hash = 7 * hash + hash_of(l, 10, &hits);
            mr_loader_tuning(l, &at);
            MRT_TRUE(hits == 0 || (at.done && at.cache_bytes > 0));
        }
        MRT_EQ(l->plan.cache_waits, !at.done || !mri_tuner_is_late(l->tuner));
        mr_loader_close(l);
    }
    MRT_HAS(f.last, "kept in memory from here on");
    mr_loader *plain = open_loader_for(src, ROUNDS * 10, 0, 0, &f);
    for (; rounds > 0; rounds--) more = 7 * more + hash_of(plain, 10, &hits);
    mr_loader_close(plain);
    MRT_EQ(hits, 0);
    MRT_TRUE(hash == more);
    mr_source_close(src);
}

/* A cache of the size that the budget leaves; no cache where it leaves too little. */
static void a_cache_of_what_fits(void **state)
{
    (void)state;
    mr_source *src = jpegs();
    found f = {0};
    mr_tuning at;
    uint64_t hits;
    mr_loader *plain = open_loader(src, 0, 0, &f);
    const uint64_t need = mr_loader_info_of(plain)->memory_bytes, hash = hash_of(plain, 40, &hits);
    mr_loader_close(plain);
    const uint64_t memory[] = {0, 3 * need, need};
    for (size_t i = 0; i < MRI_ARRAY_COUNT(memory); i++) {
        found said = {0};
        mr_loader *l = open_cached(src, memory[i], &said);
        MRT_TRUE(hash_of(l, 40, &hits) == hash);
        mr_loader_tuning(l, &at);
        MRT_EQ(at.cache_bytes > 0, i < 2);
        MRT_EQ(hits > 0, i < 2);
        if (i == 2) MRT_HAS(said.last, "no cache");
        else MRT_EQ(said.notes, 0);
        if (memory[i]) MRT_TRUE(mr_loader_info_of(l)->memory_bytes <= memory[i]);
        mr_loader_close(l);
    }
    mr_source_close(src);
}

/* Stopped, or closed in the middle, with threads that rest. */
static void threads_that_rest_end(void **state)
{
    (void)state;
    mr_error err = MR_ERROR_INIT;
    mr_source *src = mrt_source(mrt_idx_set("tuned-end", 300, 24, 24));
    for (int i = 0; i < 20; i++) {
        found f = {0};
        mr_batch b;
        mr_loader *l = open_loader(src, MR_TUNE_ALL, 0, &f);
        for (int k = 0; k < i; k++) {
            MRT_OK(mr_loader_next(l, &b, MR_FOREVER, &err), &err);
            mr_loader_release(l, &b, NULL);
            draw_limits(l);
        }
        if (i % 2) mr_loader_stop(l);
        mr_loader_close(l);
    }
    mr_source_close(src);
}

/* The memory that it may have decides how far it goes; never less than without. */
static void a_small_budget_makes_a_small_range(void **state)
{
    (void)state;
    mr_source *src = mrt_source(mrt_idx_set("tuned-small", 300, 24, 24));
    found f = {0};
    mr_loader *plain = open_loader(src, 0, 0, &f), *wide = open_loader(src, MR_TUNE_ALL, 0, &f);
    const uint64_t need = mr_loader_info_of(plain)->memory_bytes,
                   most = mr_loader_info_of(wide)->memory_bytes;
    MRT_TRUE(most > need);
    MRT_EQ(wide->plan.tune.most[MRI_TUNE_PREFETCH], 16);
    mr_loader *tight = open_loader(src, MR_TUNE_ALL, need, &f);
    for (int i = 0; i < MRI_TUNED; i++) MRT_EQ(tight->plan.tune.most[i], tight->plan.tune.start[i]);
    MRT_TRUE(mr_loader_info_of(tight)->memory_bytes <= need);
    mr_loader *between = open_loader(src, MR_TUNE_ALL, (need + most) / 2, &f);
    MRT_TRUE(mr_loader_info_of(between)->memory_bytes <= (need + most) / 2);
    mr_loader *const all[] = {plain, wide, tight, between};
    for (size_t i = 0; i < MRI_ARRAY_COUNT(all); i++) mr_loader_close(all[i]);
    mr_loader_config cfg = mrt_training(16, 1, "none", NULL, 0);
    cfg.tune = 32;
    mrt_refused(src, &cfg, MR_EINVAL, "tune 0x20");
    mr_source_close(src);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(it_finds_what_is_fastest),
        cmocka_unit_test(it_leaves_what_is_as_good),
        cmocka_unit_test(what_is_fixed_stays),
        cmocka_unit_test(it_ends_in_time),
        cmocka_unit_test(it_knows_whether_the_work_is_late),
        cmocka_unit_test(a_loader_that_tunes_delivers_the_same),
        cmocka_unit_test(a_loader_that_is_late_takes_a_cache),
        cmocka_unit_test(a_cache_of_what_fits),
        cmocka_unit_test(threads_that_rest_end),
        cmocka_unit_test(a_small_budget_makes_a_small_range),
    };
    return mrt_run(tests);
}
