/* Calls at the wrong time: from a second thread, from functions of the program, with every batch held. They
 * are errors that say so; none hangs. */
#include <pthread.h>
#include <stdatomic.h>

#include "millrace/pipeline.h"
#include "mrt.h"
#include "tests/pipeline/sets.h"

enum { SAMPLES = 256, BATCH = 8 };

/* State of the program's functions: calls that they must not make. */
typedef struct guest {
    _Atomic(mr_loader *) l;
    mr_batch held;
    atomic_int calls, refused;
    atomic_bool closes;
    atomic_bool goes_on; /* the function may return */
} guest;

static void call_the_loader(guest *g)
{
    mr_error err = MR_ERROR_INIT;
    mr_batch b;
    if (!g->l) return;
    g->calls++;
    const int rc = mr_loader_next(g->l, &b, MR_FOREVER, &err);
    g->refused += rc == MR_EINVAL && strstr(err.text, "must not call it");
    g->refused += mr_loader_release(g->l, &g->held, NULL) == MR_EINVAL;
    if (g->closes) mr_loader_close(g->l);
}

static int fetch(void *context, uint64_t sample, mr_own_sample *to, mr_error *err)
{
    guest *g = context;
    uint8_t pixels[16] = {0};
    const mr_value values[] = {
        {.type = MR_TYPE_PIXELS, .ndim = 3, .dim = {4, 4, 1}, .data = pixels, .bytes = sizeof pixels},
        {.type = MR_TYPE_INT, .i = (int64_t)(sample % 4)}};
    if (sample == SAMPLES / 2) call_the_loader(g);
    if (sample == SAMPLES / 4) return mr_error_set(err, MR_EFORMAT, "this one is damaged");
    return mr_own_sample_give(to, values, err);
}

static void on_bad(void *context, const mr_error *what, uint64_t substitute)
{
    (void)what, (void)substitute;
    call_the_loader(context);
}

static mr_source *source_of(guest *g)
{
    static const mr_field fields[] = {{.name = "image", .type = MR_TYPE_IMAGE},
                                      {.name = "label", .type = MR_TYPE_INT}};
    mr_error err = MR_ERROR_INIT;
    mr_own_config own;
    mr_source *src;
    mr_own_defaults(&own);
    own.count = SAMPLES;
    own.field_count = 2;
    own.fields = fields;
    own.class_count = 4;
    own.fetch = fetch;
    own.context = g;
    MRT_OK(mr_source_create(&src, &own, &err), &err);
    return src;
}

static mr_loader_config settings(guest *g, uint32_t prefetch)
{
    mr_loader_config cfg;
    mr_loader_defaults(&cfg);
    cfg.batch = BATCH;
    cfg.order = MR_ORDER_SEQUENTIAL;
    cfg.prefetch = prefetch;
    cfg.augment = "resize(4x4)";
    cfg.bad = MR_BAD_SKIP;
    cfg.bad_context = g;
    return cfg;
}

/* Takes batches to the end, or to the first error. */
static int drain(guest *g, mr_error *err)
{
    int rc;
    while ((rc = mr_loader_next(g->l, &g->held, MR_FOREVER, err)) == MR_OK)
        MRT_EQ(mr_loader_release(g->l, &g->held, NULL), MR_OK);
    return rc;
}

static void functions_of_the_program_are_refused(void **state)
{
    (void)state;
    for (uint32_t prefetch = 0; prefetch <= 2; prefetch += 2)
        for (int reported = 0; reported < 2; reported++) {
            guest g = {0};
            mr_error err = MR_ERROR_INIT;
            mr_source *src = source_of(&g);
            mr_loader_config cfg = settings(&g, prefetch);
            mr_loader *l;
            if (reported) cfg.on_bad = on_bad;
            MRT_OK(mr_loader_open(&l, src, &cfg, &err), &err);
            g.l = l;
            MRT_EQ(drain(&g, &err), MR_EEND);
            MRT_TRUE(g.calls > 0);
            MRT_EQ(g.refused, 2 * g.calls);
            mr_loader_close(l);
            mr_source_close(src);
        }
}

static void closing_from_a_function_of_the_program_is_an_error(void **state)
{
    (void)state;
    for (uint32_t prefetch = 0; prefetch <= 2; prefetch += 2)
        for (int reported = 0; reported < 2; reported++) {
            guest g = {.closes = true};
            mr_error err = MR_ERROR_INIT;
            mr_source *src = source_of(&g);
            mr_loader_config cfg = settings(&g, prefetch);
            mr_loader *l;
            if (reported) cfg.on_bad = on_bad;
            MRT_OK(mr_loader_open(&l, src, &cfg, &err), &err);
            g.l = l;
            MRT_EQ(drain(&g, &err), MR_EINVAL);
            MRT_HAS(err.text, "mr_loader_close: a function that the loader has called");
            g.closes = false;
            g.l = NULL;
            mr_loader_close(l); /* the loader is still there */
            mr_source_close(src);
        }
}

/* ---- two threads ---- */

static void *takes(void *context)
{
    guest *g = context;
    mr_error err = MR_ERROR_INIT;
    int rc;
    do rc = mr_loader_next(g->l, &g->held, MR_FOREVER, &err);
    while (rc == MR_EBUSY);
    return (void *)(intptr_t)rc;
}

static int waits(void *context, uint64_t epoch, uint64_t first, uint32_t count, uint64_t *out, mr_error *err)
{
    guest *g = context;
    (void)epoch, (void)err;
    g->calls++;
    while (!g->goes_on) sched_yield();
    for (uint32_t k = 0; k < count; k++) out[k] = first + k;
    return MR_OK;
}

static void a_second_thread_is_told(void **state)
{
    (void)state;
    guest g = {0};
    mr_error err = MR_ERROR_INIT;
    mr_source *src = source_of(&g);
    mr_loader_config cfg = settings(&g, 2);
    pthread_t other;
    mr_batch b;
    mr_loader *l;
    void *result;
    int rc;
    cfg.sampler = waits;
    cfg.sampler_context = &g;
    cfg.sampler_count = SAMPLES;
    MRT_OK(mr_loader_open(&l, src, &cfg, &err), &err);
    g.l = l;
    MRT_EQ(pthread_create(&other, NULL, takes, &g), 0);
    do rc = mr_loader_next(g.l, &b, 0, &err); /* until the other one is in it */
    while (rc == MR_EAGAIN);
    MRT_EQ(rc, MR_EBUSY);
    MRT_HAS(err.text, "another thread is taking a batch");
    g.goes_on = true;
    MRT_EQ(pthread_join(other, &result), 0);
    MRT_EQ((intptr_t)result, MR_OK);
    MRT_EQ(mr_loader_release(g.l, &g.held, NULL), MR_OK);
    mr_loader_close(l);
    mr_source_close(src);
}

static void closing_waits_for_whoever_takes_a_batch(void **state)
{
    (void)state;
    guest g = {0};
    mr_error err = MR_ERROR_INIT;
    mr_source *src = source_of(&g);
    mr_loader_config cfg = settings(&g, 2);
    pthread_t other;
    mr_batch b;
    mr_loader *l;
    void *result;
    int rc;
    cfg.sampler = waits;
    cfg.sampler_context = &g;
    cfg.sampler_count = SAMPLES;
    MRT_OK(mr_loader_open(&l, src, &cfg, &err), &err);
    g.l = l;
    MRT_EQ(pthread_create(&other, NULL, takes, &g), 0);
    do rc = mr_loader_next(g.l, &b, 0, &err);
    while (rc == MR_EAGAIN);
    MRT_EQ(rc, MR_EBUSY);
    mr_loader_stop(l);
    g.goes_on = true;
    mr_loader_close(l);
    MRT_EQ(pthread_join(other, &result), 0);
    MRT_EQ((intptr_t)result, MR_ECANCELED);
    mr_source_close(src);
}

/* ---- time without prefetch ---- */

static void time_is_kept_without_prefetch(void **state)
{
    (void)state;
    guest g = {0};
    mr_error err = MR_ERROR_INIT;
    mr_source *src = source_of(&g);
    mr_loader_config cfg = settings(&g, 0);
    uint32_t batches = 0, again = 0;
    int rc = MR_OK;
    mr_loader *l;
    cfg.batch = SAMPLES; /* four chunks at least */
    MRT_OK(mr_loader_open(&l, src, &cfg, &err), &err);
    while (rc == MR_OK || rc == MR_EAGAIN) {
        rc = mr_loader_next(l, &g.held, 0, &err);
        again += rc == MR_EAGAIN;
        if (rc != MR_OK) continue;
        MRT_EQ(g.held.count, SAMPLES);
        MRT_EQ(mr_loader_release(l, &g.held, NULL), MR_OK);
        batches++;
    }
    MRT_EQ(rc, MR_EEND);
    MRT_EQ(batches, 1);
    MRT_TRUE(again > 0);
    mr_loader_close(l);
    mr_source_close(src);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(functions_of_the_program_are_refused),
        cmocka_unit_test(closing_from_a_function_of_the_program_is_an_error),
        cmocka_unit_test(a_second_thread_is_told),
        cmocka_unit_test(closing_waits_for_whoever_takes_a_batch),
        cmocka_unit_test(time_is_kept_without_prefetch),
    };
    return mrt_run(tests);
}
