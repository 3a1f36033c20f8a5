/* Stopping (I8) and bad samples (I7): at every stage, in every state, under load. */
#include <errno.h>
#include <pthread.h>
#include <time.h>
#include <unistd.h>

#include "base/util.h"
#include "tests/pipeline/sets.h"

static int threads_left = -1; /* this many more may start, then one is refused; -1: all may */

int __real_pthread_create(pthread_t *out, const pthread_attr_t *attr, void *(*main)(void *), void *arg);
int __wrap_pthread_create(pthread_t *out, const pthread_attr_t *attr, void *(*main)(void *), void *arg);

int __wrap_pthread_create(pthread_t *out, const pthread_attr_t *attr, void *(*main)(void *), void *arg)
{
    if (threads_left == 0) return EAGAIN;
    if (threads_left > 0) threads_left--;
    return __real_pthread_create(out, attr, main, arg);
}

static mr_loader_config settings(void)
{
    mr_loader_config cfg;
    mr_loader_defaults(&cfg);
    cfg.batch = 8;
    cfg.workers = 2;
    cfg.augment = "resize(16x16)";
    return cfg;
}

static void nap(uint64_t ns)
{
    const struct timespec t = {.tv_sec = 0, .tv_nsec = (long)ns};
    nanosleep(&t, NULL);
}

static void *stop_later(void *loader)
{
    nap(200000 + mri_now_ns() % 800000);
    mr_loader_stop(loader);
    return NULL;
}

/* Stop from another thread while the consumer waits, works or holds a batch; every call returns, everything
 * is joined. */
static void stop_at_any_time(void **state)
{
    (void)state;
    mr_source *src = mrt_source(mrt_folder_set("stop", 2, 20, 48, true));
    mr_device **devices;
    uint32_t count;
    mr_error err = MR_ERROR_INIT;
    MRT_OK(mr_devices_open(&devices, &count, "cpu:2", NULL, &err), &err);
    mr_stream *streams[2];
    for (int r = 0; r < 2; r++)
        MRT_OK(mr_stream_create(&streams[r], devices[r], MR_STREAM_COMPUTE, &err), &err);
    for (uint32_t round = 0; round < 60; round++) {
        mr_loader_config cfg = settings();
        mr_loader *l;
        pthread_t stopper;
        cfg.epochs = UINT64_MAX;
        cfg.prefetch = round % 4;
        cfg.readers = 1 + round % 3;
        cfg.io = round % 2 ? MR_IO_PREAD : MR_IO_AUTO;
        if (round % 3) {
            cfg.devices = devices;
            cfg.device_count = count;
        }
        MRT_OK(mr_loader_open(&l, src, &cfg, &err), &err);
        MRT_EQ(pthread_create(&stopper, NULL, stop_later, l), 0);
        mr_batch b;
        int rc;
        while ((rc = mr_loader_next(l, &b, MR_FOREVER, &err)) == MR_OK) {
            if (round % 5 == 0) nap(100000);
            MRT_OK(mr_loader_release(l, &b, cfg.devices ? streams : NULL), NULL);
        }
        MRT_EQ(rc, MR_ECANCELED);
        MRT_EQ(mr_loader_next(l, &b, 0, NULL), MR_ECANCELED);
        pthread_join(stopper, NULL);
        mr_loader_close(l);
    }
    for (int r = 0; r < 2; r++) mr_stream_destroy(streams[r]);
    mr_devices_close(devices, count);
    mr_source_close(src);
}

static void close_without_taking_anything(void **state)
{
    (void)state;
    mr_source *src = mrt_source(mrt_folder_set("closing", 2, 10, 48, true));
    for (uint32_t round = 0; round < 100; round++) {
        mr_loader_config cfg = settings();
        mr_error err = MR_ERROR_INIT;
        mr_loader *l;
        cfg.prefetch = round % 5;
        MRT_OK(mr_loader_open(&l, src, &cfg, &err), &err);
        if (round % 2) nap(round * 10000);
        mr_loader_close(l);
    }
    mr_loader_close(NULL);
    mr_source_close(src);
}

static int in_turn(void *context, uint64_t epoch, uint64_t first, uint32_t count, uint64_t *out,
                   mr_error *err)
{
    (void)context, (void)epoch, (void)err;
    for (uint32_t k = 0; k < count; k++) out[k] = first + k;
    return MR_OK;
}

/* The system refuses the n-th thread: open reports it, and joins the threads that had started. */
static void refused_threads_are_reported(void **state)
{
    (void)state;
    mr_source *src = mrt_source(mrt_folder_set("refused", 2, 10, 32, true));
    mr_loader_config cfg = settings();
    mr_device **devices;
    mr_error err = MR_ERROR_INIT;
    MRT_OK(mr_devices_open(&devices, &cfg.device_count, "cpu:2", NULL, &err), &err);
    cfg.devices = devices;
    cfg.readers = 3;
    cfg.sampler = in_turn;
    cfg.sampler_count = 20;
    for (int n = 0;; n++) {
        mr_loader *l = (mr_loader *)&cfg; /* poison */
        threads_left = n;
        const int rc = mr_loader_open(&l, src, &cfg, &err);
        threads_left = -1;
        if (rc == MR_OK) {
            MRT_EQ(n, 2 + 2 + 1 + 3 + 1); /* copy streams, workers, stager, readers, order */
            mr_loader_close(l);
            break;
        }
        MRT_EQ(rc, MR_ENOMEM);
        MRT_TRUE(l == NULL);
        MRT_HAS(err.text, "thread");
    }
    mr_devices_close(devices, cfg.device_count);
    mr_source_close(src);
}

/* ------------------------------------------------------------------------------ bad samples */

typedef struct reported {
    uint32_t count;
    uint64_t sample, substitute;
    char file[512], text[768];
} reported;

static void remember(void *context, const mr_error *what, uint64_t substitute)
{
    reported *t = context;
    t->count++;
    t->sample = what->sample;
    t->substitute = substitute;
    snprintf(t->file, sizeof t->file, "%s", what->file);
    snprintf(t->text, sizeof t->text, "%s", what->text);
}

static mr_source *set_with_damage(const char *name, const uint32_t *bad, uint32_t bad_count)
{
    const char *root = mrt_folder_set(name, 2, 20, 32, false);
    for (uint32_t i = 0; i < bad_count; i++) {
        char path[1200];
        snprintf(path, sizeof path, "%s/class%02u/%04u.jpg", root, bad[i] / 20, bad[i] % 20);
        size_t bytes;
        void *data = mrt_read_file(path, &bytes);
        mrt_write_file(path, data, bytes / 2); /* cut in the middle */
        free(data);
    }
    return mrt_source(root);
}

static void stop_names_the_sample(void **state)
{
    (void)state;
    const uint32_t bad = 23;
    mr_source *src = set_with_damage("badstop", &bad, 1);
    for (uint32_t prefetch = 0; prefetch < 4; prefetch += 3) {
        mr_loader_config cfg = settings();
        mr_error err = MR_ERROR_INIT;
        mr_loader *l;
        mr_batch b;
        int rc;
        cfg.prefetch = prefetch;
        MRT_OK(mr_loader_open(&l, src, &cfg, &err), &err);
        while ((rc = mr_loader_next(l, &b, MR_FOREVER, &err)) == MR_OK) mr_loader_release(l, &b, NULL);
        MRT_EQ(rc, MR_EBADSAMPLE);
        MRT_EQ(err.sample, bad);
        MRT_HAS(err.file, "class01/0003.jpg");
        MRT_EQ(mr_loader_next(l, &b, MR_FOREVER, &err), MR_EBADSAMPLE); /* and again */
        mr_loader_close(l);
    }
    mr_source_close(src);
}

static void replacing_keeps_order_and_count(void **state)
{
    (void)state;
    const uint32_t bad[] = {4, 23};
    mr_source *src = set_with_damage("badreplace", bad, 2);
    mr_digest first = {0, 0};
    for (uint32_t round = 0; round < 6; round++) {
        reported t = {0};
        mr_loader_config cfg = settings();
        uint64_t batches, samples;
        cfg.bad = MR_BAD_REPLACE;
        cfg.on_bad = remember;
        cfg.bad_context = &t;
        cfg.workers = 1 + round % 3;
        cfg.prefetch = round;
        const mr_digest d = mrt_digest(src, &cfg, &batches, &samples);
        MRT_EQ(batches, 5);
        MRT_EQ(samples, 40);
        MRT_EQ(t.count, 2);
        MRT_TRUE(t.substitute < 40 && t.substitute != 4 && t.substitute != 23);
        MRT_HAS(t.file, ".jpg");
        if (round == 0) first = d;
        MRT_TRUE(d.lo == first.lo && d.hi == first.hi);
    }
    mr_source_close(src);
}

static void skipping_blanks_the_place(void **state)
{
    (void)state;
    const uint32_t bad[] = {4, 23};
    mr_source *src = set_with_damage("badskip", bad, 2);
    mr_loader_config cfg = settings();
    mr_error err = MR_ERROR_INIT;
    mr_loader *l;
    mr_batch b;
    uint32_t counted = 0, all = 0;
    cfg.bad = MR_BAD_SKIP;
    MRT_OK(mr_loader_open(&l, src, &cfg, &err), &err);
    while (mr_loader_next(l, &b, MR_FOREVER, &err) == MR_OK) {
        counted += b.counted;
        all += b.count;
        mr_loader_release(l, &b, NULL);
    }
    MRT_EQ(all, 40);
    MRT_EQ(counted, 38);
    mr_loader_stats stats;
    mr_loader_stats_read(l, &stats);
    MRT_EQ(stats.bad_samples, 2);
    MRT_EQ(stats.skipped, 2);
    mr_loader_close(l);
    mr_source_close(src);
}

/* Takes batches to the end of the run; the error that ends it. */
static int run_to_end(const mr_source *src, const mr_loader_config *cfg, mr_error *err)
{
    mr_loader *l;
    mr_batch b;
    int rc;
    *err = (mr_error)MR_ERROR_INIT;
    MRT_OK(mr_loader_open(&l, src, cfg, err), err);
    while ((rc = mr_loader_next(l, &b, MR_FOREVER, err)) == MR_OK) mr_loader_release(l, &b, NULL);
    mr_loader_close(l);
    return rc;
}

/* The sample that ends the run is reported like the others, and named by the error. */
static void too_many_bad_samples_stop(void **state)
{
    (void)state;
    const uint32_t bad[] = {1, 2, 3, 24};
    mr_source *src = set_with_damage("badmany", bad, 4);
    static const mr_bad policies[] = {MR_BAD_REPLACE, MR_BAD_SKIP};
    for (size_t k = 0; k < MRI_ARRAY_COUNT(policies); k++) {
        mr_loader_config cfg = settings();
        mr_error err;
        reported t = {0};
        cfg.order = MR_ORDER_SEQUENTIAL;
        cfg.workers = 1;
        cfg.bad = policies[k];
        cfg.max_bad = 3;
        cfg.on_bad = remember;
        cfg.bad_context = &t;
        MRT_EQ(run_to_end(src, &cfg, &err), MR_EBADSAMPLE);
        MRT_HAS(err.text, "more than 3 samples");
        MRT_EQ(t.count, 4);
        MRT_EQ(t.sample, 24);
        MRT_EQ(t.substitute, MR_NOWHERE);
        MRT_EQ(err.sample, 24);
        MRT_HAS(err.file, "class01/0004.jpg");
        MRT_HAS(t.file, "class01/0004.jpg");
        MRT_HAS(err.text, t.text);
    }
    mr_source_close(src);
}

/* In a file of many samples the error has the offset; the fault is in the picture's own bytes, so that no
 * parser has already reported it. */
static void errors_have_an_offset(void **state)
{
    (void)state;
    const uint32_t bad[] = {4, 23};
    mr_source *folder = set_with_damage("badoffset", bad, 2);
    mr_source *src;
    mr_error err = MR_ERROR_INIT;
    mr_writer *w;
    mr_writer_config wc;
    void *buffer = NULL;
    size_t bytes = 0;
    mr_extent e;
    mr_writer_defaults(&wc);
    wc.fields = mr_source_info_of(folder)->fields;
    wc.field_count = 2;
    const char *path = mrt_path("badoffset.mrec");
    MRT_OK(mr_writer_open(&w, path, &wc, NULL, &err), &err);
    for (uint64_t k = 0; k < 40; k++) {
        mr_sample s;
        MRT_OK(mr_source_read(folder, k, &buffer, &bytes, &s, &err), &err);
        MRT_OK(mr_writer_append(w, k, s.value, &err), &err);
    }
    MRT_OK(mr_writer_finish(w, &err), &err);
    free(buffer);
    mr_source_close(folder);
    src = mrt_source(path);
    MRT_OK(mr_source_extent(src, 4, &e, &err), &err);
    const mr_bad policies[] = {MR_BAD_STOP, MR_BAD_REPLACE, MR_BAD_SKIP};
    for (int k = 0; k < 3; k++) {
        mr_loader_config cfg = settings();
        mr_loader *l;
        mr_batch b;
        int rc;
        cfg.bad = policies[k];
        cfg.max_bad = 0;
        cfg.order = MR_ORDER_SEQUENTIAL;
        cfg.workers = 1;
        err = (mr_error)MR_ERROR_INIT;
        MRT_OK(mr_loader_open(&l, src, &cfg, &err), &err);
        while ((rc = mr_loader_next(l, &b, MR_FOREVER, &err)) == MR_OK) mr_loader_release(l, &b, NULL);
        MRT_EQ(rc, MR_EBADSAMPLE);
        MRT_EQ(err.offset, e.offset);
        MRT_EQ(err.sample, 4);
        MRT_HAS(err.file, "badoffset.mrec");
        mr_loader_close(l);
    }
    mr_source_close(src);
}

static void all_bad_ends(void **state)
{
    (void)state;
    uint32_t bad[40];
    for (uint32_t i = 0; i < 40; i++) bad[i] = i;
    mr_source *src = set_with_damage("badall", bad, 40);
    mr_loader_config cfg = settings();
    mr_error err;
    reported t = {0};
    cfg.bad = MR_BAD_REPLACE;
    cfg.max_bad = 1000;
    cfg.order = MR_ORDER_SEQUENTIAL;
    cfg.prefetch = 0;
    cfg.on_bad = remember;
    cfg.bad_context = &t;
    MRT_EQ(run_to_end(src, &cfg, &err), MR_EBADSAMPLE);
    MRT_HAS(err.text, "no whole sample to put in its place");
    MRT_HAS(err.text, t.text);
    MRT_EQ(err.sample, 0);
    MRT_HAS(err.file, "class00/0000.jpg");
    MRT_EQ(t.count, 1);
    MRT_EQ(t.sample, 0);
    MRT_EQ(t.substitute, MR_NOWHERE);
    mr_source_close(src);
}

/* ------------------------------------------------------------------------------ pictures of several sizes */

static const mr_bad all_policies[] = {MR_BAD_STOP, MR_BAD_REPLACE, MR_BAD_SKIP};

/* No picture is damaged, whatever is done with damaged ones: the loader does not open. */
static void sizes_that_differ_are_refused(void **state)
{
    (void)state;
    mr_source *src = mrt_source(mrt_folder_set("sizes", 2, 5, 32, true));
    for (size_t k = 0; k < MRI_ARRAY_COUNT(all_policies); k++) {
        mr_loader_config cfg = settings();
        mr_error err = MR_ERROR_INIT;
        mr_loader *l;
        cfg.augment = "flip";
        cfg.bad = all_policies[k];
        MRT_EQ(mr_loader_open(&l, src, &cfg, &err), MR_EINVAL);
        MRT_TRUE(l == NULL);
        MRT_EQ(err.sample, 1);
        MRT_HAS(err.file, "class00/0001.jpg");
        MRT_HAS(err.text, "\"flip\" this one is 33 x 33, the first one 32 x 32");
        MRT_HAS(err.text, "resize(32x32)");
        MRT_HAS(err.text, "resize(256),center(224)");
    }
    mr_source_close(src);
}

/* One picture of another size that no look at the start meets: as files, and as records. */
static mr_source *set_with_one_size_more(bool records)
{
    enum { COUNT = 100 };
    void *buffer = NULL;
    size_t bytes, room = 0;
    mrt_folder_set("size-two", 1, 2, 40, true);
    mrt_folder_set("size-one", 2, 50, 24, false);
    void *data = mrt_read_file(mrt_path("size-two/class00/0001.jpg"), &bytes);
    mrt_write_file(mrt_path("size-one/class01/0003.jpg"), data, bytes);
    free(data);
    mr_source *src = mrt_source(mrt_path("size-one"));
    if (!records) return src;
    mr_error err = MR_ERROR_INIT;
    mr_writer *w = mrt_writer("size-one", mr_source_info_of(src)->fields, 2, 2);
    for (uint64_t k = 0; k < COUNT; k++) {
        mr_sample s;
        MRT_OK(mr_source_read(src, k, &buffer, &room, &s, &err), &err);
        MRT_OK(mr_writer_append(w, k, s.value, &err), &err);
    }
    free(buffer);
    mr_source_close(src);
    return mrt_written(w, "size-one");
}

static void a_size_that_differs_ends_the_run(void **state)
{
    (void)state;
    for (int records = 0; records < 2; records++) {
        mr_source *src = set_with_one_size_more(records);
        for (uint32_t k = 0; k < 3 * 4; k++) {
            mr_loader_config cfg = settings();
            mr_error err;
            reported t = {0};
            cfg.augment = "none";
            cfg.bad = all_policies[k % 3];
            cfg.on_bad = remember;
            cfg.bad_context = &t;
            cfg.prefetch = k / 3;
            cfg.workers = 1 + k % 2;
            cfg.resident_bytes = k % 2 ? 0 : 1 << 20;
            if (k / 3 == 3) cfg.cache = MR_CACHE_MEMORY, cfg.cache_bytes = 1 << 20;
            MRT_EQ(run_to_end(src, &cfg, &err), MR_EINVAL);
            MRT_EQ(err.sample, 53);
            MRT_HAS(err.file, records ? "size-one.mrec" : "class01/0003.jpg");
            MRT_HAS(err.text, "this one is 41 x 41, the first one 24 x 24");
            MRT_HAS(err.text, "resize(24x24)");
            MRT_EQ(t.count, 0);
        }
        mr_loader_config cfg = settings();
        uint64_t batches, samples;
        cfg.augment = "resize(24x24)";
        mrt_digest(src, &cfg, &batches, &samples);
        MRT_EQ(samples, 100);
        mr_source_close(src);
    }
}

/* Sizes that differ in the files and are the same after the augmentation, and a sampler's own choice. */
static void sizes_that_become_one_are_taken(void **state)
{
    (void)state;
    static const uint64_t of_one_size[] = {0, 35, 0, 35};
    mr_source *src = mrt_source(mrt_folder_set("sizes-36", 1, 36, 32, true));
    mr_loader_config cfg = settings();
    mr_error err;
    cfg.augment = "center(20)";
    MRT_EQ(run_to_end(src, &cfg, &err), MR_EEND);
    cfg.augment = "none";
    cfg.sampler_samples = of_one_size;
    cfg.sampler_count = MRI_ARRAY_COUNT(of_one_size);
    MRT_EQ(run_to_end(src, &cfg, &err), MR_EEND);
    mr_source_close(src);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(stop_at_any_time),
        cmocka_unit_test(close_without_taking_anything),
        cmocka_unit_test(refused_threads_are_reported),
        cmocka_unit_test(stop_names_the_sample),
        cmocka_unit_test(replacing_keeps_order_and_count),
        cmocka_unit_test(skipping_blanks_the_place),
        cmocka_unit_test(too_many_bad_samples_stop),
        cmocka_unit_test(errors_have_an_offset),
        cmocka_unit_test(all_bad_ends),
        cmocka_unit_test(sizes_that_differ_are_refused),
        cmocka_unit_test(a_size_that_differs_ends_the_run),
        cmocka_unit_test(sizes_that_become_one_are_taken),
    };
    return mrt_run(tests);
}
