/* Batches of about one length: against a slow, plain way to say the same, for every tail and odd sizes, from
 * any step, with any number of threads, from texts and from record files. */
#include <math.h>
#include <pthread.h>
#include <sched.h>
#include <unistd.h>

#include "base/util.h"
#include "formats/source/source.h"
#include "mrt.h"
#include "pipeline/order/sampler.h"
#include "pipeline/order/windows.h"
#include "tests/pipeline/sets.h"

enum { MOST_LENGTH = 500 };

static uint32_t length_at(uint64_t i) { return 1 + (uint32_t)(mri_mix64(i) % MOST_LENGTH); }

/* Sample i is a line of length_at(i) tokens, each i % 1000, and the class i % 7. */
static const char *write_text(const char *name, uint64_t count)
{
    FILE *f = fopen(mrt_path("%s", name), "w");
    assert_non_null(f);
    for (uint64_t i = 0; i < count; i++) {
        for (uint32_t k = 0; k < length_at(i); k++) fprintf(f, "%u,", (unsigned)(i % 1000));
        fprintf(f, "%u\n", (unsigned)(i % 7));
    }
    fclose(f);
    return mrt_path("%s", name);
}

static mr_source *open_text(uint64_t count)
{
    mr_error err = MR_ERROR_INIT;
    mr_source_config cfg;
    mr_source *src;
    mr_source_defaults(&cfg);
    cfg.format = "sequence";
    MRT_OK(mr_source_open(&src, write_text("text", count), &cfg, &err), &err);
    return src;
}

/* ---- the same, slowly ---- */
typedef struct entry {
    uint64_t sample, length;
} entry;

/* All batches of an epoch one after the other; each window sorted by insertion. Returns how many. */
static uint64_t slow_epoch(const mri_windows_config *c, uint64_t epoch, uint64_t *out)
{
    const uint64_t count = mr_source_info_of(c->source)->count;
    entry *window = calloc((size_t)c->delivered, sizeof *window);
    uint64_t written = 0, number = 0;
    for (uint64_t start = 0; start < c->delivered; start += (uint64_t)c->window * c->batch, number++) {
        const uint64_t n = mri_min_u64((uint64_t)c->window * c->batch, c->delivered - start),
                       full = n / c->batch;
        for (uint64_t k = 0; k < n; k++) {
            uint32_t length;
            entry e = {.sample = mr_order_sample(c->order, c->block, c->seed, epoch, count, start + k)};
            MRT_EQ(mr_source_length(c->source, e.sample, &length), MR_OK);
            e.length = length;
            uint64_t at = k;
            for (; at > 0 && window[at - 1].length > e.length; at--) window[at] = window[at - 1];
            window[at] = e;
        }
        const uint64_t of_epoch =
            mri_mix64(mri_mix64(c->seed ^ UINT64_C(0x6c656e6774687321)) ^ mri_mix64(~epoch));
        for (uint64_t b = 0; b * c->batch < n; b++) {
            uint64_t from = b;
            if (full > 0 && b < full) {
                const mri_permutation p = mri_permutation_make(full, mri_mix64(of_epoch ^ number));
                from = mri_permute(&p, b);
            }
            for (uint64_t k = 0; k < c->batch && from * c->batch + k < n; k++)
                out[written++] = window[from * c->batch + k].sample;
        }
    }
    free(window);
    return written;
}

static void check_epoch(const mri_windows_config *c, uint64_t epoch)
{
    mr_error err = MR_ERROR_INIT;
    mri_windows *w;
    uint64_t *want = calloc((size_t)c->delivered, sizeof *want),
             *got = calloc((size_t)c->delivered, sizeof *got), wrong = 0;
    uint8_t *seen = calloc((size_t)mr_source_info_of(c->source)->count, 1);
    MRT_OK(mri_windows_create(&w, c, &err), &err);
    MRT_EQ(slow_epoch(c, epoch, want), c->delivered);
    for (uint64_t at = c->delivered; at > 0;) { /* backwards, in uneven pieces: nothing depends on what was
                                                   asked before */
        const uint64_t step = (at - 1) / c->batch, first = (at - 1) % c->batch,
                       n = mri_min_u64(first + 1, 1 + at % 3);
        MRT_OK(mri_windows_list(w, epoch, step, (uint32_t)(first + 1 - n), (uint32_t)n, got + at - n, &err),
               &err);
        at -= n;
    }
    for (uint64_t k = 0; k < c->delivered; k++) {
        wrong += got[k] != want[k];
        MRT_EQ(seen[got[k]]++, 0); /* I3 */
    }
    MRT_EQ(wrong, 0);
    mri_windows_destroy(w);
    free(want);
    free(got);
    free(seen);
}

static void same_as_the_slow_way(void **state)
{
    (void)state;
    const uint64_t counts[] = {1, 2, 7, 64, 65, 300, 1031};
    const uint32_t batches[] = {1, 3, 8, 32, 400}, windows[] = {1, 2, 3, 7, 100, UINT32_MAX};
    for (size_t n = 0; n < MRI_ARRAY_COUNT(counts); n++) {
        mr_source *src = open_text(counts[n]);
        for (size_t b = 0; b < MRI_ARRAY_COUNT(batches); b++)
            for (size_t w = 0; w < MRI_ARRAY_COUNT(windows); w++)
                for (int order = MR_ORDER_SHUFFLE; order <= MR_ORDER_SEQUENTIAL; order++) {
                    mri_windows_config c = {.source = src,
                                            .order = (mr_order)order,
                                            .block = 5,
                                            .seed = 3 + n,
                                            .batch = batches[b],
                                            .window = windows[w],
                                            .delivered = counts[n]};
                    check_epoch(&c, n % 3);
                    c.delivered -= counts[n] % batches[b]; /* a dropped tail */
                    if (c.delivered) check_epoch(&c, 1);
                }
        mr_source_close(src);
    }
}

/* The dropped samples are the same as without windows. */
static void a_dropped_tail_is_the_same(void **state)
{
    (void)state;
    enum { COUNT = 107, BATCH = 10 };
    mr_source *src = open_text(COUNT);
    const mri_windows_config c = {
        .source = src, .seed = 5, .batch = BATCH, .window = 4, .delivered = COUNT - COUNT % BATCH};
    uint64_t got[COUNT];
    uint8_t there[COUNT] = {0};
    mr_error err = MR_ERROR_INIT;
    mri_windows *w;
    MRT_OK(mri_windows_create(&w, &c, &err), &err);
    for (uint64_t step = 0; step < COUNT / BATCH; step++)
        MRT_OK(mri_windows_list(w, 2, step, 0, BATCH, got + step * BATCH, &err), &err);
    for (uint64_t k = 0; k < c.delivered; k++) there[got[k]] = 1;
    for (uint64_t k = c.delivered; k < COUNT; k++)
        MRT_EQ(there[mr_order_sample(MR_ORDER_SHUFFLE, 0, 5, 2, COUNT, k)], 0);
    mri_windows_destroy(w);
    mr_source_close(src);
}

static void padding_repeats_its_own_batch(void **state)
{
    (void)state;
    enum { COUNT = 23, BATCH = 10 };
    mr_source *src = open_text(COUNT);
    const mri_windows_config c = {.source = src, .batch = BATCH, .window = 2, .delivered = COUNT};
    uint64_t got[BATCH];
    mr_error err = MR_ERROR_INIT;
    mri_windows *w;
    MRT_OK(mri_windows_create(&w, &c, &err), &err);
    MRT_OK(mri_windows_list(w, 0, 2, 0, BATCH, got, &err), &err);
    for (int k = 3; k < BATCH; k++) MRT_EQ(got[k], got[k % 3]);
    mri_windows_destroy(w);
    mr_source_close(src);
}

/* Long batches are not always the last of their window: training would see lengths in waves. */
static void batches_are_drawn(void **state)
{
    (void)state;
    enum { COUNT = 4096, BATCH = 8, WINDOW = 8 };
    mr_source *src = open_text(COUNT);
    const mri_windows_config c = {
        .source = src, .seed = 1, .batch = BATCH, .window = WINDOW, .delivered = COUNT};
    uint32_t longest_at[WINDOW] = {0};
    uint64_t got[BATCH];
    mr_error err = MR_ERROR_INIT;
    mri_windows *w;
    MRT_OK(mri_windows_create(&w, &c, &err), &err);
    for (uint64_t number = 0; number < COUNT / BATCH / WINDOW; number++) {
        uint32_t most = 0, at = 0;
        for (uint32_t k = 0; k < WINDOW; k++) {
            MRT_OK(mri_windows_list(w, 4, number * WINDOW + k, 0, BATCH, got, &err), &err);
            if (length_at(got[BATCH - 1]) > most) most = length_at(got[BATCH - 1]), at = k;
        }
        longest_at[at]++;
    }
    for (int k = 0; k < WINDOW; k++)
        MRT_TRUE(longest_at[k] > 0 && longest_at[k] < 24); /* 8 of 64 each, on average */
    mri_windows_destroy(w);
    mr_source_close(src);
}

/* As with mr_order_sample(): a promise to every checkpoint. */
#define EXPECTED UINT64_C(0xf96dac3b88ff20b9)

static void order_is_fixed_for_ever(void **state)
{
    (void)state;
    enum { COUNT = 1000, BATCH = 16 };
    mr_source *src = open_text(COUNT);
    const mri_windows_config c = {.source = src, .seed = 42, .batch = BATCH, .window = 5, .delivered = COUNT};
    uint64_t got[BATCH], hash = 0;
    mr_error err = MR_ERROR_INIT;
    mri_windows *w;
    MRT_OK(mri_windows_create(&w, &c, &err), &err);
    for (uint64_t step = 0; step < (COUNT - 1) / BATCH + 1; step++) {
        MRT_OK(mri_windows_list(w, 7, step, 0, BATCH, got, &err), &err);
        for (int k = 0; k < BATCH; k++) hash = mri_mix64(hash ^ got[k]);
    }
    if (hash != EXPECTED) print_error("order hash is now %llx\n", (unsigned long long)hash);
    MRT_TRUE(hash == EXPECTED);
    mri_windows_destroy(w);
    mr_source_close(src);
}

/* ---- many threads at once ---- */
typedef struct asking {
    mri_windows *w;
    const uint64_t *want;
    uint64_t steps, wrong, salt;
    uint32_t batch;
} asking;

static void *ask(void *arg)
{
    asking *a = arg;
    uint64_t got[8];
    for (uint64_t k = 0; k < 4 * a->steps; k++) {
        const uint64_t step = mri_mix64(k ^ a->salt) % a->steps;
        if (mri_windows_list(a->w, 0, step, 0, a->batch, got, NULL) != MR_OK) a->wrong++;
        else a->wrong += memcmp(got, a->want + step * a->batch, a->batch * sizeof *got) != 0;
    }
    return NULL;
}

/* Lets others run while a window is sorted. */
static int slow_length(const mr_source *src, uint64_t sample, uint32_t *out)
{
    (void)src;
    *out = length_at(sample);
    if (sample % 8 == 0) sched_yield();
    return MR_OK;
}

static void threads_get_the_same(void **state)
{
    (void)state;
    enum { COUNT = 1280, BATCH = 8, THREADS = 6 };
    const mri_source_ops ops = {.length = slow_length};
    mr_source src = {.ops = &ops, .info = {.count = COUNT, .field_count = 1, .fields = src.fields}};
    const mri_windows_config c = {.source = &src, .seed = 9, .batch = BATCH, .window = 8, .delivered = COUNT};
    uint64_t want[COUNT];
    mr_error err = MR_ERROR_INIT;
    asking a[THREADS];
    pthread_t thread[THREADS];
    mri_windows *w;
    slow_epoch(&c, 0, want);
    MRT_OK(mri_windows_create(&w, &c, &err), &err);
    for (uint64_t t = 0; t < THREADS; t++) {
        a[t] = (asking){.w = w, .want = want, .steps = COUNT / BATCH, .salt = t << 32, .batch = BATCH};
        MRT_EQ(pthread_create(&thread[t], NULL, ask, &a[t]), 0);
    }
    for (int t = 0; t < THREADS; t++) {
        pthread_join(thread[t], NULL);
        MRT_EQ(a[t].wrong, 0);
    }
    mri_windows_destroy(w);
}

/* ---- lengths that cannot be had ---- */
static int length_code;
static int hard_length(const mr_source *src, uint64_t sample, uint32_t *out)
{
    (void)src;
    *out = (uint32_t)(100 - sample);
    return sample == 37 ? length_code : MR_OK;
}
static void hard_path(const mr_source *src, uint64_t sample, char *buf, size_t bytes)
{
    (void)src, (void)sample;
    snprintf(buf, bytes, "there");
}

static void lengths_that_cannot_be_had(void **state)
{
    (void)state;
    const mri_source_ops ops = {.length = hard_length, .sample_path = hard_path};
    mr_source src = {.ops = &ops, .info = {.count = 100, .field_count = 1, .fields = src.fields}};
    const mri_windows_config c = {
        .source = &src, .order = MR_ORDER_SEQUENTIAL, .batch = 10, .window = 10, .delivered = 100};
    uint64_t got[10], first = MR_NOWHERE;
    mr_error err = MR_ERROR_INIT;
    mri_windows *w;
    src.fields[0].type = MR_TYPE_TENSOR;
    MRT_OK(mri_windows_create(&w, &c, &err), &err);
    length_code = MR_EIO;
    MRT_EQ(mri_windows_list(w, 0, 0, 0, 10, got, &err), MR_EIO);
    MRT_HAS(err.text, "length");
    MRT_STR(err.file, "there");
    MRT_EQ(err.sample, 37);
    length_code = MR_ECHECKSUM; /* damaged for good: it counts as empty */
    for (uint64_t step = 0; step < 10; step++) {
        MRT_OK(mri_windows_list(w, 0, step, 0, 10, got, &err), &err);
        if (got[0] == 37) first = step;
        if (got[0] == 37) MRT_EQ(got[1], 99);
    }
    MRT_TRUE(first != MR_NOWHERE);
    mri_windows_destroy(w);
}

/* ---- through the loader ---- */
static mr_loader_config config(uint32_t window)
{
    static const mr_loader_field tokens = {.name = "tokens", .pad = -1};
    mr_loader_config cfg;
    mr_loader_defaults(&cfg);
    cfg.batch = 12;
    cfg.seed = 4;
    cfg.epochs = 2;
    cfg.fields = &tokens;
    cfg.field_count = 1;
    cfg.length_window = window;
    cfg.resident_bytes = 0;
    return cfg;
}

static bool same_digest(mr_digest a, mr_digest b) { return a.lo == b.lo && a.hi == b.hi; }

/* Each sample once, dropped ones not at all, padding counted by nobody, and the batch that is not full at the
 * end. */
static void tails(void **state)
{
    (void)state;
    enum { COUNT = 131, BATCH = 12 };
    mr_source *src = open_text(COUNT);
    for (int tail = MR_TAIL_KEEP; tail <= MR_TAIL_PAD; tail++)
        for (uint32_t window = 1; window < 15; window += 3) {
            mr_error err = MR_ERROR_INIT;
            mr_loader_config cfg = config(window);
            mr_loader *l;
            mr_batch b;
            uint64_t steps = 0;
            uint8_t seen[COUNT] = {0};
            cfg.epochs = 1;
            cfg.tail = (mr_tail)tail;
            MRT_OK(mr_loader_open(&l, src, &cfg, &err), &err);
            for (; mr_loader_next(l, &b, MR_FOREVER, &err) == MR_OK; steps++) {
                const uint32_t there = (uint32_t)mri_min_u64(BATCH, COUNT - steps * BATCH);
                MRT_EQ(b.count, tail == MR_TAIL_PAD ? BATCH : there);
                MRT_EQ(b.counted, there);
                for (uint32_t k = 0; k < b.count; k++) {
                    MRT_TRUE((b.ids[k] == MR_NOWHERE) == (k >= there) && (b.labels[k] < 0) == (k >= there));
                    if (k < there) MRT_EQ(seen[b.ids[k]]++, 0);
                    MRT_EQ(b.field[0].length[k],
                           k < there ? length_at(b.ids[k]) : length_at(b.ids[k % there]));
                }
                MRT_EQ(mr_loader_release(l, &b, NULL), MR_OK);
            }
            MRT_EQ(steps, tail == MR_TAIL_DROP ? COUNT / BATCH : COUNT / BATCH + 1);
            mr_loader_close(l);
            for (uint64_t k = 0; k < COUNT; k++)
                MRT_EQ(seen[mr_order_sample(MR_ORDER_SHUFFLE, 0, cfg.seed, 0, COUNT, k)], k < steps * BATCH);
        }
    mr_source_close(src);
}

static void any_machinery_delivers_the_same(void **state)
{
    (void)state;
    const uint64_t resident[] = {0, 1 << 20};
    mr_source *src = open_text(331);
    for (int tail = MR_TAIL_KEEP; tail <= MR_TAIL_PAD; tail++) {
        mr_loader_config cfg = config(3);
        cfg.tail = (mr_tail)tail;
        cfg.prefetch = 0;
        const mr_digest want = mrt_digest(src, &cfg, NULL, NULL);
        for (uint32_t workers = 1; workers <= 5; workers += 2)
            for (uint32_t prefetch = 1; prefetch < 10; prefetch += 4)
                for (size_t r = 0; r < MRI_ARRAY_COUNT(resident); r++) {
                    cfg.workers = workers;
                    cfg.prefetch = prefetch;
                    cfg.parts = workers;
                    cfg.resident_bytes = resident[r];
                    cfg.io = prefetch == 1 ? MR_IO_PREAD : MR_IO_AUTO;
                    MRT_TRUE(same_digest(mrt_digest(src, &cfg, NULL, NULL), want));
                }
        cfg.length_window = 4;
        MRT_TRUE(!same_digest(mrt_digest(src, &cfg, NULL, NULL), want));
    }
    mr_source_close(src);
}

static void hash_rest(mr_digester *d, const mr_source *src, const mr_loader_config *cfg, uint64_t most)
{
    mr_error err = MR_ERROR_INIT;
    mr_loader *l;
    uint64_t batches, samples;
    MRT_OK(mr_loader_open(&l, src, cfg, &err), &err);
    MRT_EQ(mr_loader_info_of(l)->length_window, cfg->length_window);
    MRT_OK(mr_digester_run(d, l, NULL, most, &batches, &samples, &err), &err);
    mr_loader_close(l);
}

static void resume_at_every_step(void **state)
{
    (void)state;
    mr_source *src = open_text(131); /* 11 steps, the last of 11 samples; windows of 4 */
    mr_loader_config cfg = config(4);
    const mr_digest want = mrt_digest(src, &cfg, NULL, NULL);
    for (uint64_t step = 1; step < 22; step++) {
        mr_digester *d;
        MRT_EQ(mr_digester_create(&d), MR_OK);
        cfg.start_epoch = cfg.start_step = 0;
        hash_rest(d, src, &cfg, step);
        cfg.start_epoch = step / 11;
        cfg.start_step = step % 11;
        hash_rest(d, src, &cfg, UINT64_MAX);
        MRT_TRUE(same_digest(mr_digester_result(d), want));
        mr_digester_destroy(d);
    }
    mr_source_close(src);
}

static void a_record_file_has_the_same_order(void **state)
{
    (void)state;
    mr_error err = MR_ERROR_INIT;
    mr_source *src = open_text(331);
    mr_convert_config convert;
    mr_convert_result result;
    mr_loader_config cfg = config(5);
    const mr_digest want = mrt_digest(src, &cfg, NULL, NULL);
    mr_convert_defaults(&convert);
    convert.force = true;
    MRT_OK(mr_convert(src, mrt_path("text.mrec"), &convert, &result, &err), &err);
    convert.shard_bytes = 60000;
    MRT_OK(mr_convert(src, mrt_path("text.shards"), &convert, &result, &err), &err);
    MRT_TRUE(result.shards > 2);
    const char *const made[] = {"text.mrec", "text.shards"};
    for (int k = 0; k < 2; k++) {
        mr_source *records = mrt_source(mrt_path("%s", made[k]));
        MRT_EQ(mr_source_info_of(records)->length_most, mr_source_info_of(src)->length_most);
        for (uint64_t i = 0; i < 331; i++) {
            uint32_t a, b;
            MRT_EQ(mr_source_length(src, i, &a), MR_OK);
            MRT_EQ(mr_source_length(records, i, &b), MR_OK);
            MRT_EQ(a, b);
        }
        MRT_TRUE(same_digest(mrt_digest(records, &cfg, NULL, NULL), want));
        mr_source_close(records);
    }
    mr_source_close(src);
}

/* Which sample stands in for a damaged one depends on its place in the epoch, not on who found it (I7). */
static void damaged_samples_are_the_same_for_all(void **state)
{
    (void)state;
    mr_error err = MR_ERROR_INIT;
    mr_source *src = open_text(131);
    mr_convert_config convert;
    mr_convert_result result;
    mr_extent e;
    mr_convert_defaults(&convert);
    convert.force = true;
    MRT_OK(mr_convert(src, mrt_path("hurt.mrec"), &convert, &result, &err), &err);
    mr_source_close(src);
    src = mrt_source(mrt_path("hurt.mrec"));
    for (uint64_t i = 3; i < 131; i += 40) {
        MRT_OK(mr_source_extent(src, i, &e, &err), &err);
        FILE *f = fopen(mrt_path("hurt.mrec"), "r+b");
        fseek(f, (long)(e.offset + e.bytes - 2), SEEK_SET);
        fputc(0x55, f);
        fclose(f);
    }
    for (int bad = MR_BAD_REPLACE; bad <= MR_BAD_SKIP; bad++) {
        mr_loader_config cfg = config(3);
        cfg.bad = (mr_bad)bad;
        cfg.prefetch = 0;
        const mr_digest want = mrt_digest(src, &cfg, NULL, NULL);
        for (cfg.workers = 1; cfg.workers < 6; cfg.workers += 2) {
            cfg.prefetch = 2 * cfg.workers;
            MRT_TRUE(same_digest(mrt_digest(src, &cfg, NULL, NULL), want));
        }
    }
    mr_source_close(src);
}

/* Tokens in front of the label and the number, as older records had them. */
static void records_are_converted_again(void **state)
{
    (void)state;
    static const mr_field fields[] = {{.name = "tokens", .type = MR_TYPE_TENSOR, .dtype = MR_I32},
                                      {.name = "label", .type = MR_TYPE_INT},
                                      {.name = "scale", .type = MR_TYPE_FLOAT}};
    int32_t tokens[MOST_LENGTH] = {0};
    mr_error err = MR_ERROR_INIT;
    mr_writer_config cfg;
    mr_writer *w;
    mr_loader *l;
    mr_sample sample;
    void *buffer = NULL;
    size_t bytes = 0;
    mr_writer_defaults(&cfg);
    cfg.fields = fields;
    cfg.field_count = 3;
    MRT_OK(mr_writer_open(&w, mrt_path("old.mrec"), &cfg, NULL, &err), &err);
    for (uint64_t i = 0; i < 50; i++) {
        const mr_value v[] = {{.type = MR_TYPE_TENSOR,
                               .dtype = MR_I32,
                               .ndim = 1,
                               .dim = {length_at(i)},
                               .data = tokens,
                               .bytes = 4 * length_at(i)},
                              {.type = MR_TYPE_INT, .i = (int64_t)i},
                              {.type = MR_TYPE_FLOAT, .f = 0.5}};
        MRT_OK(mr_writer_append(w, i, v, &err), &err);
    }
    MRT_OK(mr_writer_finish(w, &err), &err);
    mr_source *old = mrt_source(mrt_path("old.mrec"));
    const mr_loader_config window = config(2);
    MRT_EQ(mr_loader_open(&l, old, &window, &err), MR_EUNSUPPORTED);
    MRT_HAS(err.text, "convert it (once more");
    mr_convert_config convert;
    mr_convert_result result;
    mr_convert_defaults(&convert);
    MRT_OK(mr_convert(old, mrt_path("new.mrec"), &convert, &result, &err), &err);
    mr_source_close(old);
    mr_source *made = mrt_source(mrt_path("new.mrec"));
    MRT_EQ(mr_source_info_of(made)->label_field, 0);
    MRT_EQ(mr_source_info_of(made)->length_field, 2);
    for (uint64_t i = 0; i < 50; i++) {
        uint32_t length;
        MRT_EQ(mr_source_length(made, i, &length), MR_OK);
        MRT_OK(mr_source_read(made, i, &buffer, &bytes, &sample, &err), &err);
        MRT_TRUE(length == length_at(i) && sample.value[2].dim[0] == length &&
                 sample.value[0].i == (int64_t)i && sample.value[1].f == 0.5);
    }
    free(buffer);
    mr_source_close(made);
}

static void what_is_refused(void **state)
{
    (void)state;
    mr_error err = MR_ERROR_INIT;
    mr_loader *l;
    mr_source *src = mrt_source(mrt_idx_set("pictures", 20, 4, 4));
    mr_loader_config cfg;
    mr_loader_defaults(&cfg);
    cfg.length_window = 2;
    MRT_EQ(mr_loader_open(&l, src, &cfg, &err), MR_EUNSUPPORTED);
    MRT_HAS(err.text, "--length-window");
    mr_source_close(src);
    src = open_text(2000);
    cfg = config(1 << 20);
    cfg.memory_bytes = 0;
    MRT_OK(mr_loader_open(&l, src, &cfg, &err), &err); /* a window larger than the set costs the memory that
                                                        * the set needs */
    const uint64_t with = mr_loader_info_of(l)->memory_bytes;
    mr_loader_close(l);
    cfg.length_window = 0;
    MRT_OK(mr_loader_open(&l, src, &cfg, &err), &err);
    MRT_EQ(with - mr_loader_info_of(l)->memory_bytes, mri_windows_bytes(12, 1 << 20, 2000));
    mr_loader_close(l);
    cfg.prefetch = 3, cfg.workers = 2, cfg.depth = 16; /* defaults would give way */
    cfg.memory_bytes = 0;
    MRT_OK(mr_loader_open(&l, src, &cfg, &err), &err);
    cfg.memory_bytes = mr_loader_info_of(l)->memory_bytes + 1000;
    mr_loader_close(l);
    cfg.length_window = 1 << 20;
    MRT_EQ(mr_loader_open(&l, src, &cfg, &err), MR_ELIMIT);
    MRT_HAS(err.text, "--length-window");
    mr_source_close(src);
    MRT_TRUE(mri_windows_bytes(1 << 20, 1 << 20, UINT64_MAX / 2) == UINT64_MAX);
}

static void allocations_fail_in_turn(void **state)
{
    (void)state;
    mr_source *src = open_text(50);
    const mri_windows_config c = {.source = src, .batch = 4, .window = 3, .delivered = 50};
    for (long n = 0;; n++) {
        mr_error err = MR_ERROR_INIT;
        mri_windows *w = (mri_windows *)&err;
        mrt_fail_alloc_at(n);
        const int rc = mri_windows_create(&w, &c, &err);
        mrt_fail_alloc_at(-1);
        if (rc == MR_OK) {
            mri_windows_destroy(w);
            MRT_TRUE(n == 5);
            break;
        }
        MRT_EQ(rc, MR_ENOMEM);
        MRT_TRUE(w == NULL && err.text[0]);
    }
    mr_source_close(src);
}

/* ---- purpose ---- */
/* Elements of padding among all elements of an epoch's batches. */
static double padding_share(const mr_source *src, uint32_t window)
{
    mr_error err = MR_ERROR_INIT;
    mr_loader *l;
    mr_batch b;
    mr_loader_config cfg = config(window);
    uint64_t all = 0, there = 0;
    cfg.batch = 32;
    cfg.epochs = 1;
    MRT_OK(mr_loader_open(&l, src, &cfg, &err), &err);
    while (mr_loader_next(l, &b, MR_FOREVER, &err) == MR_OK) {
        all += (uint64_t)b.count * b.field[0].width;
        for (uint32_t k = 0; k < b.count; k++) there += (uint64_t)b.field[0].length[k];
        MRT_EQ(mr_loader_release(l, &b, NULL), MR_OK);
    }
    mr_loader_close(l);
    return (double)(all - there) / (double)all;
}

static void padding_is_less(void **state)
{
    (void)state;
    FILE *f = fopen(mrt_path("geometric"), "w");
    for (uint64_t i = 0; i < 4000; i++) { /* geometric lengths, mean 40 */
        const double u = ((double)(mri_mix64(i) >> 11) + 1) / 0x1p53;
        const uint32_t n = 1 + (uint32_t)mri_min_u64(499, (uint64_t)(log(u) / log(1 - 1.0 / 40)));
        for (uint32_t k = 0; k < n; k++) fputs("1,", f);
        fputs("0\n", f);
    }
    fclose(f);
    mr_source *src = mrt_source(mrt_path("geometric"));
    const double plain = padding_share(src, 0),
                 windows[] = {padding_share(src, 4), padding_share(src, 16), padding_share(src, 125)};
    printf("padding of batches of 32, geometric lengths of mean 40: %.1f %%; in windows of 4 batches %.1f "
           "%%, 16 %.1f %%, all 125 %.1f %%\n",
           100 * plain, 100 * windows[0], 100 * windows[1], 100 * windows[2]);
    MRT_TRUE(windows[0] < plain);
    mr_source_close(src);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(same_as_the_slow_way),
        cmocka_unit_test(a_dropped_tail_is_the_same),
        cmocka_unit_test(padding_repeats_its_own_batch),
        cmocka_unit_test(batches_are_drawn),
        cmocka_unit_test(order_is_fixed_for_ever),
        cmocka_unit_test(threads_get_the_same),
        cmocka_unit_test(lengths_that_cannot_be_had),
        cmocka_unit_test(tails),
        cmocka_unit_test(any_machinery_delivers_the_same),
        cmocka_unit_test(resume_at_every_step),
        cmocka_unit_test(a_record_file_has_the_same_order),
        cmocka_unit_test(damaged_samples_are_the_same_for_all),
        cmocka_unit_test(records_are_converted_again),
        cmocka_unit_test(what_is_refused),
        cmocka_unit_test(allocations_fail_in_turn),
        cmocka_unit_test(padding_is_less),
    };
    return mrt_run(tests);
}
