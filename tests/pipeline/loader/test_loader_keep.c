/* Batches that are kept: their memory stays as it is while the loader goes on, and outlives it. */
#include <pthread.h>

#include "tests/pipeline/sets.h"

#define KEEP 3

static mr_loader_config settings(uint32_t prefetch)
{
    mr_loader_config cfg;
    mr_loader_defaults(&cfg);
    cfg.batch = 8;
    cfg.seed = 7;
    cfg.workers = 2;
    cfg.epochs = 4;
    cfg.prefetch = prefetch;
    cfg.keep = KEEP;
    return cfg;
}

static void check_pixels(const mr_batch *b)
{
    for (uint32_t i = 0; i < b->count; i++) {
        MRT_EQ(b->labels[i], b->ids[i] % 10);
        for (size_t k = 0; k < 6; k++) MRT_EQ(b->pixels[i * 6 + k], mrt_idx_pixel(b->ids[i], k));
    }
}

static mr_kept *keep_next(mr_loader *l, mr_batch *b)
{
    mr_error err = MR_ERROR_INIT;
    mr_kept *k;
    MRT_OK(mr_loader_next(l, b, MR_FOREVER, &err), &err);
    MRT_OK(mr_loader_keep(l, b, &k, &err), &err);
    return k;
}

/* One is kept to the end, others for a while, some not at all: the order of samples is the usual one, and no
 * kept byte changes. */
static void kept_memory_stays(void **state)
{
    (void)state;
    mr_source *src = mrt_source(mrt_idx_set("kept", 100, 2, 3));
    for (uint32_t prefetch = 0; prefetch < 4; prefetch++)
        for (int free_order = 0; free_order <= (prefetch > 0); free_order++) {
            mr_loader_config cfg = settings(prefetch);
            cfg.free_order = free_order;
            mr_loader *l;
            mr_error err = MR_ERROR_INIT;
            MRT_OK(mr_loader_open(&l, src, &cfg, &err), &err);
            mr_batch first, second, b;
            mr_kept *one = keep_next(l, &first), *two = keep_next(l, &second);
            uint64_t batches = 2;
            for (int rc; (rc = mr_loader_next(l, &b, MR_FOREVER, &err)) != MR_EEND; batches++) {
                MRT_OK(rc, &err);
                check_pixels(&b);
                MRT_TRUE(b.pixels != first.pixels && b.pixels != second.pixels);
                mr_kept *k = NULL;
                if (batches % 3) MRT_OK(mr_loader_keep(l, &b, &k, &err), &err);
                else MRT_OK(mr_loader_release(l, &b, NULL), NULL);
                MRT_EQ(mr_loader_kept(l), k ? 3 : 2);
                if (k) check_pixels(&b); /* one that was released is the loader's again */
                mr_kept_drop(k);
            }
            MRT_EQ(batches, 4 * 13);
            check_pixels(&first);
            check_pixels(&second);
            mr_kept_drop(two);
            mr_loader_close(l);
            check_pixels(&first); /* it outlives the loader */
            mr_kept_drop(one);
        }
    mr_source_close(src);
}

static void too_many_are_refused(void **state)
{
    (void)state;
    mr_source *src = mrt_source(mrt_idx_set("many", 100, 2, 3));
    mr_loader_config cfg = settings(2);
    mr_loader *l;
    mr_error err = MR_ERROR_INIT;
    mr_batch b[KEEP + 2];
    mr_kept *k[KEEP + 1];
    MRT_OK(mr_loader_open(&l, src, &cfg, &err), &err);
    for (int i = 0; i < KEEP; i++) k[i] = keep_next(l, &b[i]);
    MRT_OK(mr_loader_next(l, &b[KEEP], MR_FOREVER, &err), &err);
    MRT_EQ(mr_loader_keep(l, &b[KEEP], &k[KEEP], &err), MR_ELIMIT);
    MRT_HAS(err.text, "keep");
    MRT_TRUE(!k[KEEP]);
    mr_kept_drop(k[1]); /* not the oldest */
    MRT_OK(mr_loader_next(l, &b[KEEP + 1], MR_FOREVER, &err), &err);
    MRT_EQ(mr_loader_keep(l, &b[KEEP + 1], &k[1], &err), MR_EINVAL); /* an earlier one is still held */
    MRT_OK(mr_loader_keep(l, &b[KEEP], &k[KEEP], &err), &err);
    MRT_EQ(mr_loader_keep(l, &b[KEEP + 1], &k[1], &err), MR_ELIMIT);
    MRT_OK(mr_loader_release(l, &b[KEEP + 1], NULL), NULL);
    check_pixels(&b[0]);
    check_pixels(&b[2]);
    check_pixels(&b[KEEP]);
    mr_kept_drop(k[0]);
    mr_loader_close(l);
    mr_kept_drop(k[2]);
    mr_kept_drop(k[KEEP]);
    mr_kept_drop(NULL);
    cfg.keep = 0;
    MRT_OK(mr_loader_open(&l, src, &cfg, &err), &err);
    MRT_OK(mr_loader_next(l, &b[0], MR_FOREVER, &err), &err);
    MRT_EQ(mr_loader_keep(l, &b[0], &k[0], &err), MR_EINVAL);
    MRT_EQ(mr_loader_kept(l), 0);
    MRT_OK(mr_loader_release(l, &b[0], NULL), NULL);
    mr_loader_close(l);
    cfg.keep = 4097;
    mrt_refused(src, &cfg, MR_EINVAL, "mr_loader_config.keep is 4097: expected 0 to 4096 batches");
    mr_source_close(src);
}

static void *drop(void *kept)
{
    mr_kept_drop(kept);
    return NULL;
}

/* Dropped by other threads, while the loader goes on and when it is gone. */
static void any_thread_may_drop(void **state)
{
    (void)state;
    mr_source *src = mrt_source(mrt_idx_set("threads", 100, 2, 3));
    mr_loader_config cfg = settings(2);
    mr_loader *l;
    mr_error err = MR_ERROR_INIT;
    mr_batch b;
    pthread_t thread[2];
    MRT_OK(mr_loader_open(&l, src, &cfg, &err), &err);
    for (int i = 0; i < 40; i += 2) {
        for (int j = 0; j < 2; j++) MRT_EQ(pthread_create(&thread[j], NULL, drop, keep_next(l, &b)), 0);
        if (i == 38) mr_loader_close(l);
        for (int j = 0; j < 2; j++) pthread_join(thread[j], NULL);
    }
    mr_source_close(src);
}

static void memory_that_is_refused(void **state)
{
    (void)state;
    mr_source *src = mrt_source(mrt_idx_set("memory", 20, 2, 3));
    mr_loader_config cfg = settings(0);
    mr_loader *l;
    mr_error err = MR_ERROR_INIT;
    mr_batch b;
    mr_kept *k;
    MRT_OK(mr_loader_open(&l, src, &cfg, &err), &err);
    MRT_OK(mr_loader_next(l, &b, MR_FOREVER, &err), &err);
    mrt_fail_alloc_at(0);
    const int rc = mr_loader_keep(l, &b, &k, &err);
    mrt_fail_alloc_at(-1);
    MRT_EQ(rc, MR_ENOMEM);
    MRT_OK(mr_loader_keep(l, &b, &k, &err), &err);
    check_pixels(&b);
    mr_kept_drop(k);
    mr_loader_close(l);
    mr_source_close(src);
}

/* The next batch of l equals the next one of a loader that was opened at this position. */
static void check_next(mr_loader *l, const mr_source *src, mr_loader_config cfg, uint64_t epoch,
                       uint64_t step)
{
    mr_error err = MR_ERROR_INIT;
    mr_loader *fresh;
    mr_batch a, b;
    cfg.start_epoch = epoch, cfg.start_step = step;
    MRT_OK(mr_loader_open(&fresh, src, &cfg, &err), &err);
    MRT_OK(mr_loader_next(fresh, &a, MR_FOREVER, &err), &err);
    MRT_OK(mr_loader_next(l, &b, MR_FOREVER, &err), &err);
    MRT_TRUE(b.epoch == epoch && b.step == step && b.last == a.last && b.count == a.count);
    MRT_EQ(memcmp(a.ids, b.ids, a.count * sizeof *a.ids), 0);
    MRT_EQ(memcmp(a.pixels, b.pixels, a.count * (size_t)6), 0);
    MRT_OK(mr_loader_release(fresh, &a, NULL), NULL);
    mr_loader_close(fresh);
    MRT_OK(mr_loader_release(l, &b, NULL), NULL);
}

static void a_loader_without_threads_goes_anywhere(void **state)
{
    (void)state;
    static const uint64_t places[][2] = {{0, 5}, {0, 1}, {3, 12}, {3, 12}, {1, 0}, {2, 12}, {0, 0}};
    mr_source *src = mrt_source(mrt_idx_set("kept", 100, 2, 3));
    mr_loader_config cfg = settings(0);
    cfg.training = true, cfg.augment = "flip";
    mr_loader *l;
    mr_batch b;
    mr_error err = MR_ERROR_INIT;
    MRT_OK(mr_loader_open(&l, src, &cfg, &err), &err);
    for (size_t i = 0; i < sizeof places / sizeof *places; i++) {
        MRT_OK(mr_loader_seek(l, places[i][0], places[i][1], &err), &err);
        check_next(l, src, cfg, places[i][0], places[i][1]);
        if (places[i][1] < 12) check_next(l, src, cfg, places[i][0], places[i][1] + 1);
    }
    MRT_OK(mr_loader_seek(l, 3, 12, &err), &err);
    mr_kept *k = keep_next(l, &b); /* its slot is another from now on */
    MRT_EQ(mr_loader_next(l, &b, MR_FOREVER, &err), MR_EEND);
    MRT_OK(mr_loader_seek(l, 3, 12, &err), &err); /* from the end back */
    check_next(l, src, cfg, 3, 12);
    mr_kept_drop(k);
    MRT_EQ(mr_loader_seek(l, 4, 0, &err), MR_EINVAL);
    MRT_HAS(err.text, "epoch 4, step 0: expected an epoch below 4 and a step below 13");
    MRT_EQ(mr_loader_seek(l, 0, 13, &err), MR_EINVAL);
    MRT_OK(mr_loader_seek(l, 0, 0, &err), &err);
    MRT_OK(mr_loader_next(l, &b, MR_FOREVER, &err), &err);
    MRT_EQ(mr_loader_seek(l, 0, 0, &err), MR_EBUSY);
    MRT_OK(mr_loader_release(l, &b, NULL), NULL);
    mr_loader_stop(l);
    MRT_EQ(mr_loader_seek(l, 0, 0, &err), MR_ECANCELED);
    mr_loader_close(l);
    cfg.prefetch = 1;
    MRT_OK(mr_loader_open(&l, src, &cfg, &err), &err);
    MRT_EQ(mr_loader_seek(l, 0, 0, &err), MR_EUNSUPPORTED);
    MRT_HAS(err.text, "this loader has threads");
    mr_loader_close(l);
    mr_source_close(src);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(kept_memory_stays),      cmocka_unit_test(a_loader_without_threads_goes_anywhere),
        cmocka_unit_test(too_many_are_refused),   cmocka_unit_test(any_thread_may_drop),
        cmocka_unit_test(memory_that_is_refused),
    };
    return mrt_run(tests);
}
