/* tests/pipeline/loader/test_loader_remote.c: batches of a record file on a web server: the same as from the
 * file; stopping while the server is silent; a server that is gone is no bad sample. */
#include "tests/formats/remote/mrt_http.h"

#include <pthread.h>
#include <unistd.h>

#include "millrace/pipeline.h"

enum { RECORDS = 3000, SIDE = 24, PIXELS = SIDE * SIDE * 3, BATCH = 64 };

static mrt_http *server;
static char local[300];
static int number;

static void write_records(void)
{
    mr_error err = MR_ERROR_INIT;
    mr_writer *w;
    mr_writer_config cfg;
    const mr_field fields[2] = {{.name = "image", .type = MR_TYPE_PIXELS, .ndim = 3, .dim = {SIDE, SIDE, 3}},
                                {.name = "label", .type = MR_TYPE_INT}};
    uint8_t pixels[PIXELS];
    mr_writer_defaults(&cfg);
    cfg.fields = fields;
    cfg.field_count = 2;
    snprintf(local, sizeof local, "%s", mrt_path("train.mrec"));
    MRT_OK(mr_writer_open(&w, local, &cfg, NULL, &err), &err);
    for (uint64_t k = 0; k < RECORDS; k++) {
        mrt_noise(pixels, sizeof pixels, k);
        const mr_value values[2] = {
            {.type = MR_TYPE_PIXELS, .ndim = 3, .dim = {SIDE, SIDE, 3}, .data = pixels, .bytes = PIXELS},
            {.type = MR_TYPE_INT, .i = (int64_t)(k % 10)}};
        MRT_OK(mr_writer_append(w, k, values, &err), &err);
    }
    MRT_OK(mr_writer_finish(w, &err), &err);
}

static int set_up(void **state)
{
    static void *bytes;
    static size_t count;
    (void)state;
    if (!bytes) {
        write_records();
        bytes = mrt_read_file(local, &count);
    }
    server = mrt_http_start(bytes, count);
    setenv("MILLRACE_REMOTE", "tries=3,backoff-ms=5,stall-s=60", 1);
    number++;
    return 0;
}

static int tear_down(void **state)
{
    (void)state;
    mrt_http_end(server);
    return 0;
}

static mr_source *open_source(const char *path, uint64_t limit)
{
    mr_error err = MR_ERROR_INIT;
    mr_source *src;
    mr_source_config cfg;
    mr_source_defaults(&cfg);
    cfg.remote_folder = mrt_path("cache%d", number);
    cfg.remote_bytes = limit;
    MRT_OK(mr_source_open(&src, path, &cfg, &err), &err);
    return src;
}

static mr_loader *open_loader(const mr_source *src, uint32_t prefetch, mr_bad bad)
{
    mr_error err = MR_ERROR_INIT;
    mr_loader *l;
    mr_loader_config cfg;
    mr_loader_defaults(&cfg);
    cfg.batch = BATCH;
    cfg.prefetch = prefetch;
    cfg.workers = 2;
    cfg.readers = prefetch ? 2 : 1;
    cfg.resident_bytes = 0;
    cfg.bad = bad;
    MRT_OK(mr_loader_open(&l, src, &cfg, &err), &err);
    return l;
}

static void same_batches(uint64_t limit, uint32_t prefetch)
{
    mr_error err = MR_ERROR_INIT;
    mr_source *near = open_source(local, limit),
              *far = open_source(mrt_http_url(server, "train.mrec"), limit);
    mr_loader *a = open_loader(near, 2, MR_BAD_STOP), *b = open_loader(far, prefetch, MR_BAD_STOP);
    mr_batch x, y;
    for (int rc; (rc = mr_loader_next(a, &x, MR_FOREVER, &err)) != MR_EEND;) {
        MRT_OK(rc, &err);
        MRT_OK(mr_loader_next(b, &y, MR_FOREVER, &err), &err);
        MRT_EQ(x.count, y.count);
        assert_memory_equal(x.ids, y.ids, x.count * sizeof *x.ids);
        assert_memory_equal(x.pixels, y.pixels, (size_t)x.count * PIXELS);
        mr_loader_release(a, &x, NULL);
        mr_loader_release(b, &y, NULL);
    }
    mr_loader_close(a);
    mr_loader_close(b);
    mr_source_close(near);
    mr_source_close(far);
}

static void test_same_batches(void **state)
{
    (void)state;
    mrt_http_be(server, MRT_HTTP_CUT, 0, -1);
    same_batches(1 << 30, 4);
    same_batches(1 << 30, 0);
}

static void test_small_cache(void **state)
{
    (void)state;
    same_batches(3 << 20, 4); /* below the bytes in flight at one time: reads wait for space */
    same_batches(2 << 20, 0);
}

static unsigned silent_from; /* answers of the server before it fell silent */

static void *stop_in_silence(void *loader)
{
    while (mrt_http_answers(server) == silent_from) usleep(1000);
    mr_loader_stop(loader);
    return NULL;
}

static void test_stop_while_silent(void **state)
{
    (void)state;
    setenv("MILLRACE_REMOTE", "tries=100,stall-s=1000", 1);
    for (uint32_t prefetch = 0; prefetch <= 4; prefetch += 4) {
        mr_error err = MR_ERROR_INIT;
        pthread_t stopper;
        mr_batch batch;
        mr_source *src = open_source(mrt_http_url(server, "train.mrec"), 3 << 20);
        silent_from = mrt_http_answers(server);
        mrt_http_be(server, MRT_HTTP_SILENT, 0, -1);
        mr_loader *l = open_loader(src, prefetch, MR_BAD_STOP);
        MRT_EQ(pthread_create(&stopper, NULL, stop_in_silence, l), 0);
        int rc;
        while ((rc = mr_loader_next(l, &batch, MR_FOREVER, &err)) == MR_OK)
            mr_loader_release(l, &batch, NULL);
        MRT_EQ(rc, MR_ECANCELED);
        pthread_join(stopper, NULL);
        mr_loader_close(l);
        mr_source_close(src);
        mrt_http_be(server, MRT_HTTP_PLAIN, 0, 0);
    }
}

static void test_gone_is_no_bad_sample(void **state)
{
    (void)state;
    mr_error err = MR_ERROR_INIT;
    mr_batch batch;
    mr_source *src = open_source(mrt_http_url(server, "train.mrec"), 3 << 20);
    mrt_http_be(server, MRT_HTTP_BUSY, 0, -1);
    mr_loader *l = open_loader(src, 4, MR_BAD_REPLACE);
    int rc;
    while ((rc = mr_loader_next(l, &batch, MR_FOREVER, &err)) == MR_OK) mr_loader_release(l, &batch, NULL);
    MRT_EQ(rc, MR_EIO);
    MRT_HAS(err.text, "503; gave up after 3 tries");
    MRT_HAS(err.file, "train.mrec");
    mr_loader_close(l);
    mr_source_close(src);
}

int main(void)
{
#define T(f) cmocka_unit_test_setup_teardown(f, set_up, tear_down)
    const struct CMUnitTest tests[] = {T(test_same_batches), T(test_small_cache), T(test_stop_while_silent),
                                       T(test_gone_is_no_bad_sample)};
    mr_source *src;
    mr_source_config cfg;
    mr_error err = MR_ERROR_INIT;
    setenv("MILLRACE_REMOTE", "tries=1", 1);
    mr_source_defaults(&cfg);
    cfg.remote_folder = mrt_path("probe");
    if (mr_source_open(&src, "http://127.0.0.1:1/x", &cfg, &err) == MR_EUNSUPPORTED) {
        printf("skipped: %s\n", err.text);
        return 77;
    }
    return mrt_run(tests);
}
