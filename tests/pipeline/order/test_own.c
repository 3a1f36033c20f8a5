/* A custom order: samples chosen by the caller, as an array or by a function, in any number; the same for any
 * caller, cut into shares, resumed anywhere; invalid numbers are named. */
#include <pthread.h>
#include <stdlib.h>
#include <unistd.h>

#include "base/util.h"
#include "mrt.h"
#include "pipeline/order/own.h"
#include "tests/pipeline/sets.h"

enum { COUNT = 60, LONGER = 150, SHORTER = 23 };

/* A function of epoch and position that repeats samples. */
static uint64_t said(uint64_t epoch, uint64_t position) { return (position * 7 + epoch * 13) % (COUNT - 11); }

typedef struct asked {
    uint64_t count;
    uint64_t bad_position, bad_epoch, bad_sample; /* MR_NOWHERE: none */
    int fails;
    bool says_why;
    uint64_t calls; /* atomic */
} asked;

static int say(void *context, uint64_t epoch, uint64_t first, uint32_t count, uint64_t *out, mr_error *err)
{
    asked *a = context;
    __atomic_fetch_add(&a->calls, 1, __ATOMIC_RELAXED);
    MRT_TRUE(count > 0 && first + count <= a->count);
    for (uint32_t k = 0; k < count; k++) {
        const bool bad = epoch == a->bad_epoch && first + k == a->bad_position;
        if (bad && a->fails)
            return a->says_why ? mr_error_set(err, a->fails, "the sampler's own words") : a->fails;
        out[k] = bad ? a->bad_sample : said(epoch, first + k);
    }
    return MR_OK;
}

static asked never_wrong(uint64_t count)
{
    return (asked){count, MR_NOWHERE, MR_NOWHERE, MR_NOWHERE, 0, false, 0};
}

static mr_loader_config by_function(uint32_t batch, asked *a)
{
    mr_loader_config cfg = mrt_training(batch, 3, "none", NULL, 0);
    cfg.sampler_count = a->count;
    cfg.sampler = say;
    cfg.sampler_context = a;
    return cfg;
}

/* Every epoch has the given samples, for any ratio of its length to the data and to the batch. */
static void what_was_said_is_delivered(void **state)
{
    (void)state;
    mr_source *src = mrt_source(mrt_idx_set("own", COUNT, 1, 1));
    static const uint64_t counts[] = {1, SHORTER, COUNT, LONGER};
    static const mr_tail tails[] = {MR_TAIL_KEEP, MR_TAIL_DROP, MR_TAIL_PAD};
    for (size_t c = 0; c < MRI_ARRAY_COUNT(counts) * MRI_ARRAY_COUNT(tails); c++) {
        const uint64_t n = counts[c / MRI_ARRAY_COUNT(tails)];
        const mr_tail tail = tails[c % MRI_ARRAY_COUNT(tails)];
        asked a = never_wrong(n);
        mr_loader_config cfg = by_function(16, &a);
        cfg.tail = tail;
        if (n < 16 && tail == MR_TAIL_DROP) {
            mrt_refused(src, &cfg, MR_EINVAL, "leaves no batch");
            continue;
        }
        mr_error err = MR_ERROR_INIT;
        mr_loader *l;
        mr_batch b;
        MRT_OK(mr_loader_open(&l, src, &cfg, &err), &err);
        const mr_loader_info *info = mr_loader_info_of(l);
        const uint64_t steps = n / 16 + (n % 16 && tail != MR_TAIL_DROP);
        MRT_TRUE(info->sampled);
        MRT_EQ(info->sample_count, COUNT);
        MRT_EQ(info->steps_per_epoch, steps);
        MRT_EQ(info->epoch_samples, tail == MR_TAIL_DROP ? n - n % 16 : n);
        int rc;
        uint64_t at = 0;
        for (; (rc = mr_loader_next(l, &b, MR_FOREVER, &err)) == MR_OK; at++) {
            MRT_TRUE(b.epoch == at / steps && b.step == at % steps);
            for (uint32_t i = 0; i < b.count; i++) {
                const uint64_t position = b.step * 16 + i, sample = said(b.epoch, position % n);
                const bool padding = position >= n;
                MRT_EQ(b.ids[i], padding ? MR_NOWHERE : sample);
                MRT_EQ(b.labels[i], padding ? -1 : (int32_t)(sample % 10));
                MRT_EQ(b.pixels[i], mrt_idx_pixel(sample, 0));
            }
            MRT_OK(mr_loader_release(l, &b, NULL), NULL);
        }
        MRT_EQ(rc, MR_EEND);
        MRT_EQ(at, 3 * steps);
        mr_loader_close(l);
    }
    mr_source_close(src);
}

/* An array is the same as a function that says what stands in it; no setting of threads, memory or parts
 * changes a bit, and random operations draw by the position. */
static void the_same_whoever_asks(void **state)
{
    (void)state;
    mrt_folder_set("asked", 2, COUNT / 2, 16, true);
    mr_source *src = mrt_source(mrt_path("asked"));
    uint64_t array[LONGER];
    for (uint64_t k = 0; k < LONGER; k++) array[k] = said(0, k);
    asked a = never_wrong(LONGER);
    mr_loader_config usual = by_function(16, &a);
    usual.augment = "rrc(8),flip,mixup(1)";
    uint64_t batches, samples;
    const mr_digest expected = mrt_digest(src, &usual, &batches, &samples);
    MRT_TRUE(batches == 30 && samples == 3 * LONGER);
    for (int k = 0; k < 6; k++) {
        mr_loader_config cfg = usual;
        if (k == 0) cfg.workers = 5;
        if (k == 1) cfg.prefetch = 0;
        if (k == 2) cfg.parts = 4;
        if (k == 3) cfg.resident_bytes = 0, cfg.io = MR_IO_PREAD, cfg.readers = 3;
        if (k == 4) cfg.cache = MR_CACHE_MEMORY, cfg.cache_bytes = MR_CACHE_FITS;
        if (k == 5) cfg.order = MR_ORDER_SEQUENTIAL;
        MRT_TRUE(mrt_same_batches(expected, mrt_digest(src, &cfg, NULL, NULL)));
    }
    usual.epochs = 1;
    const mr_digest one = mrt_digest(src, &usual, NULL, NULL);
    usual.sampler = NULL;
    usual.sampler_samples = array;
    MRT_TRUE(mrt_same_batches(one, mrt_digest(src, &usual, NULL, NULL)));
    usual.seed++;
    MRT_TRUE(!mrt_same_batches(one, mrt_digest(src, &usual, NULL, NULL)));
    mr_source_close(src);
}

/* The pixels and labels of batches from a place on, of several loaders side by side. */
static void compare_from(const mr_source *src, const mr_loader_config *usual, uint64_t epoch, uint64_t step,
                         uint32_t ranks)
{
    mr_error err = MR_ERROR_INIT;
    mr_loader *whole, *part[4];
    MRT_OK(mr_loader_open(&whole, src, usual, &err), &err);
    for (uint32_t r = 0; r < ranks; r++) {
        mr_loader_config cfg = *usual;
        cfg.all_parts = ranks;
        cfg.first_part = r;
        cfg.start_epoch = epoch;
        cfg.start_step = step;
        MRT_OK(mr_loader_open(&part[r], src, &cfg, &err), &err);
    }
    mr_batch a, b;
    int rc;
    while ((rc = mr_loader_next(whole, &a, MR_FOREVER, &err)) == MR_OK) {
        const size_t bytes = (size_t)mr_loader_info_of(whole)->height * mr_loader_info_of(whole)->width * 3;
        uint32_t done = 0;
        for (uint32_t r = 0; r < ranks && (a.epoch > epoch || (a.epoch == epoch && a.step >= step)); r++) {
            MRT_OK(mr_loader_next(part[r], &b, MR_FOREVER, &err), &err);
            MRT_TRUE(b.epoch == a.epoch && b.step == a.step && b.first == done && b.all_count == a.count);
            MRT_EQ(memcmp(a.ids + done, b.ids, b.count * sizeof *a.ids), 0);
            MRT_EQ(memcmp(a.labels + done, b.labels, b.count * sizeof *a.labels), 0);
            MRT_EQ(memcmp(a.pixels + done * bytes, b.pixels, b.count * bytes), 0);
            done += b.count;
            MRT_OK(mr_loader_release(part[r], &b, NULL), NULL);
        }
        MRT_TRUE(done == 0 || done == a.count);
        MRT_OK(mr_loader_release(whole, &a, NULL), NULL);
    }
    MRT_EQ(rc, MR_EEND);
    for (uint32_t r = 0; r < ranks; r++) {
        MRT_EQ(mr_loader_next(part[r], &b, MR_FOREVER, &err), MR_EEND);
        mr_loader_close(part[r]);
    }
    mr_loader_close(whole);
}

static void resumed_anywhere_by_any_ranks(void **state)
{
    (void)state;
    mrt_folder_set("resumed", 2, COUNT / 2, 16, false);
    mr_source *src = mrt_source(mrt_path("resumed"));
    asked a = never_wrong(SHORTER * 2);
    mr_loader_config usual = by_function(10, &a);
    usual.augment = "padcrop(2),flip,erase(1,value=random)";
    compare_from(src, &usual, 0, 0, 1);
    compare_from(src, &usual, 0, 3, 3);
    compare_from(src, &usual, 1, 4, 1);
    compare_from(src, &usual, 2, 2, 4);
    mr_source_close(src);
}

/* A sample that comes again is not the same picture, inside of an epoch and in the next. */
static void repeated_samples_are_drawn_anew(void **state)
{
    (void)state;
    enum { SIDE = 16, TIMES = 12 };
    mrt_folder_set("again", 1, 4, SIDE, false);
    mr_source *src = mrt_source(mrt_path("again"));
    const uint64_t same[TIMES] = {2, 2, 2, 2, 2, 2, 2, 2, 2, 2, 2, 2};
    mr_loader_config cfg = mrt_training(5, 2, "padcrop(4),erase(1,value=random)", NULL, 0);
    cfg.sampler_count = TIMES;
    cfg.sampler_samples = same;
    static uint8_t seen[2 * TIMES][SIDE * SIDE * 3];
    uint32_t n = 0;
    mr_error err = MR_ERROR_INIT;
    mr_loader *l;
    mr_batch b;
    MRT_OK(mr_loader_open(&l, src, &cfg, &err), &err);
    while (mr_loader_next(l, &b, MR_FOREVER, &err) == MR_OK) {
        for (uint32_t i = 0; i < b.count; i++, n++) {
            memcpy(seen[n], b.pixels + i * sizeof *seen, sizeof *seen);
            for (uint32_t k = 0; k < n; k++) MRT_TRUE(memcmp(seen[k], seen[n], sizeof *seen) != 0);
        }
        MRT_OK(mr_loader_release(l, &b, NULL), NULL);
    }
    MRT_EQ(n, 2 * TIMES);
    mr_loader_close(l);
    mr_source_close(src);
}

/* A damaged sample is replaced by another of the epoch, never by one that the sampler leaves out. */
static void substitutes_are_of_the_epoch(void **state)
{
    (void)state;
    mrt_folder_set("spoilt", 1, 40, 16, false);
    MRT_EQ(truncate(mrt_path("spoilt/class00/0003.jpg"), 300), 0);
    mr_source *src = mrt_source(mrt_path("spoilt"));
    const uint64_t chosen[] = {3, 5, 3, 7, 3, 9};
    mr_loader_config cfg = mrt_training(4, 8, "none", NULL, 0);
    cfg.sampler_count = MRI_ARRAY_COUNT(chosen);
    cfg.sampler_samples = chosen;
    cfg.bad = MR_BAD_REPLACE;
    mr_error err = MR_ERROR_INIT;
    mr_loader *l;
    mr_batch b;
    MRT_OK(mr_loader_open(&l, src, &cfg, &err), &err);
    int rc;
    while ((rc = mr_loader_next(l, &b, MR_FOREVER, &err)) == MR_OK) {
        for (uint32_t i = 0; i < b.count; i++) MRT_TRUE(b.ids[i] == 5 || b.ids[i] == 7 || b.ids[i] == 9);
        MRT_OK(mr_loader_release(l, &b, NULL), NULL);
    }
    MRT_EQ(rc, MR_EEND);
    mr_loader_close(l);
    mr_source_close(src);
}

static void fails_with(const mr_source *src, const mr_loader_config *cfg, int code, const char *text,
                       uint64_t batches)
{
    mr_error err = MR_ERROR_INIT;
    mr_loader *l;
    mr_batch b;
    MRT_OK(mr_loader_open(&l, src, cfg, &err), &err);
    int rc;
    uint64_t n = 0;
    for (; (rc = mr_loader_next(l, &b, MR_FOREVER, &err)) == MR_OK; n++)
        MRT_OK(mr_loader_release(l, &b, NULL), NULL);
    MRT_EQ(rc, code);
    MRT_HAS(err.text, text);
    MRT_TRUE(n <= batches); /* of those in front some may be dropped by the stop */
    mr_loader_close(l);
}

static void what_the_sampler_returned_is_told(void **state)
{
    (void)state;
    mr_source *src = mrt_source(mrt_idx_set("returned", COUNT, 1, 1));
    static const int codes[] = {MR_EPEER, 7, MR_EEND};
    for (size_t i = 0; i < MRI_ARRAY_COUNT(codes); i++) {
        asked a = never_wrong(LONGER);
        mr_loader_config cfg = by_function(16, &a);
        mr_error err = MR_ERROR_INIT;
        mr_loader *l;
        mr_batch b;
        a.bad_epoch = 0, a.bad_position = 0, a.fails = codes[i];
        int rc = mr_loader_open(&l, src, &cfg, &err);
        while (rc == MR_OK && (rc = mr_loader_next(l, &b, MR_FOREVER, &err)) == MR_OK)
            MRT_OK(mr_loader_release(l, &b, NULL), NULL);
        MRT_EQ(err.host, codes[i]);
        mr_loader_close(l);
    }
    mr_source_close(src);
}

static void what_is_wrong_is_named(void **state)
{
    (void)state;
    mr_source *src = mrt_source(mrt_idx_set("wrong", COUNT, 1, 1));
    asked a = never_wrong(LONGER);
    mr_loader_config usual = by_function(16, &a), cfg;
    const uint64_t array[] = {0, 59, 60, 1};
    for (uint32_t prefetch = 0; prefetch < 2; prefetch++) {
        cfg = usual;
        cfg.prefetch = 4 * prefetch;
        a.bad_epoch = 1, a.bad_position = 70, a.bad_sample = COUNT, a.fails = 0;
        fails_with(
            src, &cfg, MR_EINVAL,
            "the sampler gives sample 60 at position 70 of an epoch: the data have 60, numbered from 0", 14);
        a.fails = MR_EPEER, a.says_why = true;
        fails_with(src, &cfg, MR_EPEER, "the sampler's own words", 14);
        a.says_why = false;
        fails_with(src, &cfg, MR_EPEER, "the sampler failed, and did not say why", 14);
        a.fails = 7;
        fails_with(src, &cfg, MR_EINVAL, "the sampler returned 7", 14);
        a.fails = MR_EEND; /* would end the data */
        fails_with(src, &cfg, MR_EINVAL, "the sampler returned -1: expected MR_OK or the code of an error",
                   14);
        a.fails = MR_EAGAIN; /* would be asked again, for ever */
        fails_with(src, &cfg, MR_EINVAL, "the sampler returned -2", 14);
    }
    cfg = usual, cfg.sampler = NULL, cfg.sampler_samples = array, cfg.sampler_count = 4;
    mrt_refused(src, &cfg, MR_EINVAL, "gives sample 60 at position 2 of an epoch");
    cfg = usual, cfg.sampler_samples = array;
    mrt_refused(src, &cfg, MR_EINVAL, "set one of them");
    cfg = usual, cfg.sampler = NULL;
    mrt_refused(src, &cfg, MR_EINVAL, "neither of them");
    cfg = usual, cfg.sampler_count = 0;
    mrt_refused(src, &cfg, MR_EINVAL, "set sampler_count");
    cfg = usual, cfg.order = MR_ORDER_BALANCED;
    mrt_refused(src, &cfg, MR_EINVAL, "leave one of them");
    mr_source_close(src);
}

/* A sampler that waits holds up batches, and nothing else: who returns at a stop lets the loader close. */
typedef struct gate {
    pthread_mutex_t lock;
    pthread_cond_t moved;
    bool waits, open; /* lock */
} gate;

static int wait_at(void *context, uint64_t epoch, uint64_t first, uint32_t count, uint64_t *out,
                   mr_error *err)
{
    gate *g = context;
    (void)first;
    for (uint32_t k = 0; k < count; k++) out[k] = k;
    if (epoch == 0) return MR_OK;
    pthread_mutex_lock(&g->lock);
    g->waits = true;
    pthread_cond_broadcast(&g->moved);
    while (!g->open) pthread_cond_wait(&g->moved, &g->lock);
    pthread_mutex_unlock(&g->lock);
    return mr_error_set(err, MR_ECANCELED, "the sampler was stopped");
}

static void a_loader_stops_while_its_sampler_waits(void **state)
{
    (void)state;
    gate g = {.waits = false};
    pthread_mutex_init(&g.lock, NULL);
    pthread_cond_init(&g.moved, NULL);
    mr_source *src = mrt_source(mrt_idx_set("gate", COUNT, 1, 1));
    mr_loader_config cfg = mrt_training(4, 2, "none", NULL, 0);
    cfg.sampler_count = 8;
    cfg.sampler = wait_at;
    cfg.sampler_context = &g;
    mr_error err = MR_ERROR_INIT;
    mr_loader *l;
    mr_batch b;
    MRT_OK(mr_loader_open(&l, src, &cfg, &err), &err);
    for (int k = 0; k < 2; k++) {
        MRT_OK(mr_loader_next(l, &b, MR_FOREVER, &err), &err);
        MRT_OK(mr_loader_release(l, &b, NULL), NULL);
    }
    pthread_mutex_lock(&g.lock);
    while (!g.waits) pthread_cond_wait(&g.moved, &g.lock);
    pthread_mutex_unlock(&g.lock);
    MRT_EQ(mr_loader_next(l, &b, 0, &err), MR_EAGAIN);
    mr_loader_stop(l);
    MRT_EQ(mr_loader_next(l, &b, MR_FOREVER, &err), MR_ECANCELED);
    pthread_mutex_lock(&g.lock);
    g.open = true;
    pthread_cond_broadcast(&g.moved);
    pthread_mutex_unlock(&g.lock);
    mr_loader_close(l);
    mr_source_close(src);
    pthread_cond_destroy(&g.moved);
    pthread_mutex_destroy(&g.lock);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(what_was_said_is_delivered),
        cmocka_unit_test(the_same_whoever_asks),
        cmocka_unit_test(resumed_anywhere_by_any_ranks),
        cmocka_unit_test(repeated_samples_are_drawn_anew),
        cmocka_unit_test(substitutes_are_of_the_epoch),
        cmocka_unit_test(what_the_sampler_returned_is_told),
        cmocka_unit_test(what_is_wrong_is_named),
        cmocka_unit_test(a_loader_stops_while_its_sampler_waits),
    };
    return mrt_run(tests);
}
