/* Random loader configurations against a serial reference: order, pixels, once, resume, bad samples, stopping
 * (I1 to I4, I7, I8).
 *
 *   draw       a data set, the loader's settings and what its consumer does, all of it from (seed, number):
 *              random_sets.c, random_trial.c
 *   reference  the same settings in series from the first batch on: no prefetch, one worker, no cache,
 *              nothing resident, no devices, one part. Its batches are kept, and checked against a model of
 *              the order: random_reference.c
 *   trial      the drawn loader from its own start. Each batch is compared with the kept one when it is taken
 *              and again when it is given back; parts on devices are read back by a stream that is late
 *
 * MRT_RANDOM_LOADERS=N trials; MRT_SEED=S of this seed; MRT_RANDOM_FIRST=I from this number on;
 * MRT_RANDOM_SHOW=1 prints each configuration before it runs. A trial that fails, hangs or crashes prints its
 * configuration and the line that repeats it. */
#include <dirent.h>
#include <pthread.h>
#include <sched.h>
#include <time.h>
#include <unistd.h>

#include "tests/pipeline/loader/random_reference.h"

enum { DEFAULT_TRIALS = MRT_SANITIZED ? 150 : 1000, HANGS_AFTER_S = 120, MOST_HELD = 8, READBACKS = 4 };

/* ---- consumer ---- */

typedef struct readback { /* of one part */
    mr_event *over;
    uint8_t *memory;
    piece pieces[MOST_PIECES];
    uint32_t count;
    uint64_t batch;
    bool pending;
} readback;

typedef struct consumer {
    const trial *t;
    const reference *ref;
    mr_loader *l;
    mr_batch held[MOST_HELD];
    uint32_t held_count;
    uint64_t taken, samples;
    uint8_t *seen; /* batches that came */
    readback back[READBACKS][MOST_DEVICES];
    uint64_t copied[MOST_DEVICES]; /* bytes that had to cross */
} consumer;

typedef struct reports { /* the loader promises one call at a time */
    uint64_t bad, notes, sample[MOST_BAD];
} reports;

static void on_bad(void *context, const mr_error *what, uint64_t substitute)
{
    reports *to = context;
    (void)substitute;
    if (to->bad < MOST_BAD) to->sample[to->bad] = what->sample;
    to->bad++;
}

static void on_note(void *context, const char *text)
{
    reports *to = context;
    to->notes += text[0] != '\0';
}

static void open_readbacks(consumer *c)
{
    mr_error err = MR_ERROR_INIT;
    const bank *k = &mrt_banks[c->t->device_kind];
    const size_t n = (c->t->cfg.batch - 1) / (c->t->cfg.devices ? c->t->cfg.device_count : 1) + 1;
    size_t each = c->ref->sample_bytes + sizeof(int32_t) + 2 * sizeof(float);
    for (uint32_t i = 0; i < c->ref->info.field_count; i++)
        each += c->ref->info.field[i].most * (size_t)c->ref->info.field[i].element_bytes + sizeof(int32_t);
    for (uint32_t d = 0; d < READBACKS && c->t->cfg.devices; d++)
        for (uint32_t r = 0; r < c->t->cfg.device_count; r++) {
            check_ok(mr_event_create(&c->back[d][r].over, k->devices[r], &err), &err, "an event");
            check_ok(mr_host_alloc(k->devices[r], n * each, (void **)&c->back[d][r].memory, &err), &err,
                     "memory to read back");
        }
}

static void check_readback(readback *rb, uint32_t r)
{
    mr_error err = MR_ERROR_INIT;
    if (!rb->pending) return;
    rb->pending = false;
    check_ok(mr_event_sync(rb->over, &err), &err, "reading a part back");
    for (uint32_t i = 0; i < rb->count; i++) compare_piece(&rb->pieces[i], rb->batch, r, "on its device");
}

static void close_readbacks(consumer *c)
{
    for (uint32_t d = 0; d < READBACKS && c->t->cfg.devices; d++)
        for (uint32_t r = 0; r < c->t->cfg.device_count; r++) {
            check_readback(&c->back[d][r], r);
            mr_event_destroy(c->back[d][r].over);
            mr_host_free(mrt_banks[c->t->device_kind].devices[r], c->back[d][r].memory);
        }
}

/* Queue a late copy of every part back to the host, which is looked at when its memory is wanted again. */
static void read_back(consumer *c, const mr_batch *b, uint64_t batch)
{
    const bank *k = &mrt_banks[c->t->device_kind];
    for (uint32_t r = 0; r < b->part_count; r++) {
        readback *rb = &c->back[c->taken % READBACKS][r];
        check_readback(rb, r);
        *rb = (readback){.over = rb->over, .memory = rb->memory, .batch = batch, .pending = true};
        rb->count = pieces_of(c->ref, &c->ref->batch[batch].b, &b->parts[r], rb->pieces);
        int rc = mr_stream_wait_event(k->stream[r], b->parts[r].ready);
        size_t at = 0;
        for (uint32_t i = 0; i < c->t->lag && rc == MR_OK; i++)
            rc = mr_copy_d2h_async(k->stream[r], k->sink[r], k->slow[r], LAG_BYTES);
        for (uint32_t i = 0; i < rb->count && rc == MR_OK; i++) {
            piece *p = &rb->pieces[i];
            if (p->bytes) rc = mr_copy_d2h_async(k->stream[r], rb->memory + at, p->found, p->bytes);
            p->found = rb->memory + at;
            at += p->bytes;
        }
        c->copied[r] += at;
        if (rc == MR_OK) rc = mr_event_record(rb->over, k->stream[r]);
        check_ok(rc, NULL, "queueing a read-back");
    }
}

static void give_back(consumer *c)
{
    mr_batch *b = &c->held[0];
    const uint64_t batch = b->epoch * c->ref->info.steps_per_epoch + b->step;
    compare_host(c->t, c->ref, &c->ref->batch[batch].b, b, batch, "while it was held");
    check_ok(mr_loader_release(c->l, b, c->t->cfg.devices ? mrt_banks[c->t->device_kind].stream : NULL), NULL,
             "giving a batch back");
    memmove(c->held, c->held + 1, --c->held_count * sizeof *c->held);
}

/* The numbers of its samples follow from the order alone, while the loader works on later batches. */
static void check_samples(const consumer *c, const mr_batch *b)
{
    const trial *t = c->t;
    uint64_t *numbers = calloc(t->cfg.batch, sizeof *numbers);
    uint32_t first = 0, count = 0;
    mr_error err = MR_ERROR_INIT;
    check_ok(mr_loader_samples(c->l, b->epoch, b->step, numbers, t->cfg.batch, &first, &count, &err), &err,
             "the numbers of a batch");
    CHECK(first == b->first && count == b->count, "numbers of samples %u + %u, the batch has %u + %u", first,
          count, b->first, b->count);
    for (uint32_t i = 0; b->ids && i < count; i++)
        CHECK(numbers[i] == b->ids[i] || is_bad(t->set, numbers[i]),
              "place %u: number %llu, the batch has %llu", i, (unsigned long long)numbers[i],
              (unsigned long long)b->ids[i]);
    free(numbers);
}

static void take(consumer *c, const mr_batch *b)
{
    const uint64_t batch = b->epoch * c->ref->info.steps_per_epoch + b->step,
                   place = start_of(c->t) + c->taken;
    CHECK(b->global_step == place, "place %llu has global step %llu", (unsigned long long)place,
          (unsigned long long)b->global_step);
    CHECK(batch < c->ref->kept && b->step < c->ref->info.steps_per_epoch && batch >= start_of(c->t),
          "there is no epoch %llu, step %llu", (unsigned long long)b->epoch, (unsigned long long)b->step);
    CHECK(c->t->cfg.free_order ? !c->seen[batch] : batch == place, "batch %llu comes at place %llu",
          (unsigned long long)batch, (unsigned long long)place);
    c->seen[batch] = 1;
    compare_shape(c->t, c->ref, &c->ref->batch[batch].b, b);
    compare_host(c->t, c->ref, &c->ref->batch[batch].b, b, batch, "when it was taken");
    if (c->t->cfg.devices) read_back(c, b, batch);
    check_samples(c, b);
    c->taken++;
    c->samples += b->count;
    c->held[c->held_count++] = *b;
}

static int next(consumer *c, mr_batch *b, mr_error *err)
{
    const uint64_t waits[] = {MR_FOREVER, 0, 50000};
    int rc;
    while ((rc = mr_loader_next(c->l, b, waits[c->t->patience], err)) == MR_EAGAIN) sched_yield();
    return rc;
}

static void nap(uint64_t us)
{
    const struct timespec t = {.tv_sec = 0, .tv_nsec = (long)us * 1000};
    nanosleep(&t, NULL);
}

static void *stop_later(void *arg)
{
    const consumer *c = arg;
    nap(c->t->end_after);
    mr_loader_stop(c->l);
    return NULL;
}

/* Batches until something ends it; the code that did. */
static int consume(consumer *c, mr_error *err)
{
    const trial *t = c->t;
    const uint64_t most =
        t->end == END_CLOSE || t->end == END_STOP ? t->end_after : c->ref->count - start_of(t);
    mr_batch b;
    for (;;) {
        while (c->held_count >= t->hold) give_back(c);
        if (c->taken == most && t->cfg.epochs != t->epochs) return MR_OK; /* an endless one goes on */
        if (c->taken == most && (t->end == END_CLOSE || t->end == END_STOP)) return MR_OK;
        const int rc = next(c, &b, err);
        if (rc != MR_OK) return rc;
        CHECK(c->taken < most, "more batches come than there are");
        take(c, &b);
    }
}

static void check_end(const consumer *c, int rc, const mr_error *err, const damage *d)
{
    const trial *t = c->t;
    const uint64_t all = c->ref->count - start_of(t), whole = d->first - start_of(t);
    const bool stopped = t->end == END_STOP || t->end == END_STOP_THREAD;
    const bool fails = d->first < c->ref->count;
    CHECK(c->taken <= whole, "%llu batches came; the one at %llu could not be made",
          (unsigned long long)c->taken, (unsigned long long)whole);
    if (rc == MR_EBADSAMPLE) {
        CHECK(fails || (t->cfg.epochs != t->epochs && t->set->bad_count),
              "an intact sample is reported as damaged: %s", err->text);
        CHECK(t->cfg.bad != MR_BAD_STOP || is_bad(t->set, err->sample), "sample %llu is not damaged",
              (unsigned long long)err->sample);
        CHECK(t->cfg.prefetch > 0 || c->taken == whole, "%llu batches came, expected %llu",
              (unsigned long long)c->taken, (unsigned long long)whole);
    } else if (rc == MR_ECANCELED) {
        CHECK(stopped, "nobody stopped it");
    } else if (rc == MR_EEND) {
        CHECK(c->taken == all && !fails, "the end after %llu batches of %llu", (unsigned long long)c->taken,
              (unsigned long long)all);
    } else {
        CHECK(rc == MR_OK && t->end != END_ALL, "status %d (%s): %s", rc, mr_status_text(rc), err->text);
    }
}

/* Once the loader is closed: until then workers go on to report. */
static void check_reports(const trial *t, const reports *to)
{
    for (uint64_t i = 0; i < to->bad && i < MOST_BAD; i++)
        CHECK(is_bad(t->set, to->sample[i]), "sample %llu was reported and is not damaged",
              (unsigned long long)to->sample[i]);
}

/* A run to its end has done all of the work once. */
static void check_figures(const consumer *c, const damage *d, const reports *to)
{
    mr_loader_stats s;
    mr_loader_stats_read(c->l, &s);
    CHECK(s.batches == c->taken && s.samples == c->samples, "%llu batches, %llu samples in the figures",
          (unsigned long long)s.batches, (unsigned long long)s.samples);
    CHECK(s.read.items == c->samples && s.decode.items == c->samples,
          "read %llu, decoded %llu of %llu samples", (unsigned long long)s.read.items,
          (unsigned long long)s.decode.items, (unsigned long long)c->samples);
    CHECK(s.bad_samples == d->places && to->bad == d->distinct,
          "%llu damaged places, %llu reports; expected %llu, %llu", (unsigned long long)s.bad_samples,
          (unsigned long long)to->bad, (unsigned long long)d->places, (unsigned long long)d->distinct);
    CHECK(s.replaced == (c->t->cfg.bad == MR_BAD_REPLACE ? d->places : 0) &&
              s.skipped == (c->t->cfg.bad == MR_BAD_SKIP ? d->places : 0),
          "replaced %llu, skipped %llu", (unsigned long long)s.replaced, (unsigned long long)s.skipped);
    CHECK(s.copy.items <= c->taken, "copied %llu batches of %llu", (unsigned long long)s.copy.items,
          (unsigned long long)c->taken);
    for (uint32_t r = 0; c->t->cfg.devices && r < c->t->cfg.device_count; r++)
        CHECK(s.bytes_copied[r] == c->copied[r], "%llu bytes crossed to device %u, expected %llu",
              (unsigned long long)s.bytes_copied[r], r, (unsigned long long)c->copied[r]);
}

static void check_again(consumer *c, int rc)
{
    mr_error err = MR_ERROR_INIT;
    mr_batch b;
    const int again = mr_loader_next(c->l, &b, MR_FOREVER, &err);
    CHECK(again == rc || (c->t->end == END_STOP_THREAD && again == MR_ECANCELED),
          "ended with status %d, and then with %d", rc, again);
}

/* With every batch held that there is room for, the loader says so and does not wait. */
static void check_room(consumer *c)
{
    const uint32_t room = c->t->cfg.prefetch == 0 ? 1 : c->t->cfg.devices ? 2 : c->t->cfg.prefetch + 1;
    mr_error err = MR_ERROR_INIT;
    mr_batch b;
    if (c->held_count < room) return;
    const int rc = mr_loader_next(c->l, &b, MR_FOREVER, &err);
    CHECK(rc == MR_EINVAL || rc == MR_EEND || rc == MR_ECANCELED || rc == MR_EBADSAMPLE,
          "all are held, and status is %d", rc);
}

static void run_consumer(consumer *c, const damage *d, const reports *to)
{
    mr_error err = MR_ERROR_INIT;
    pthread_t stopper;
    const bool by_thread = c->t->end == END_STOP_THREAD;
    if (by_thread) MRT_EQ(pthread_create(&stopper, NULL, stop_later, c), 0);
    int rc = consume(c, &err);
    check_room(c);
    if (c->t->end == END_STOP && rc == MR_OK) {
        mr_loader_stop(c->l);
        while (c->held_count) give_back(c);
        mr_batch b;
        rc = mr_loader_next(c->l, &b, MR_FOREVER, &err);
        CHECK(rc == MR_ECANCELED || rc == MR_EBADSAMPLE, "after a stop: status %d", rc);
    }
    while (c->held_count) give_back(c);
    if (by_thread) pthread_join(stopper, NULL);
    if (rc != MR_OK) check_again(c, rc);
    check_end(c, rc, &err, d);
    if (rc == MR_EEND) check_figures(c, d, to);
}

/* ---- trials ---- */

static void remove_cache(const char *folder)
{
    DIR *d = opendir(folder);
    if (!d) return;
    for (const struct dirent *e; (e = readdir(d));) {
        char path[2048];
        snprintf(path, sizeof path, "%s/%s", folder, e->d_name);
        if (e->d_name[0] != '.') unlink(path);
    }
    closedir(d);
    rmdir(folder);
}

/* An earlier run that leaves a cache behind; how it ends does not matter. */
static void warm_up(trial *t, const mr_loader_config *cfg)
{
    mr_loader_config c = *cfg;
    mr_error err = MR_ERROR_INIT;
    mr_loader *l;
    mr_batch b;
    c.devices = NULL;
    c.keep_host = false;
    c.prefetch = below(t, 3);
    c.parts = 1;
    check_ok(mr_loader_open(&l, t->set->src, &c, &err), &err, "opening the loader before");
    for (uint64_t left = below(t, 20); left > 0 && mr_loader_next(l, &b, MR_FOREVER, &err) == MR_OK; left--)
        check_ok(mr_loader_release(l, &b, NULL), NULL, "giving back");
    mr_loader_close(l);
}

static void run_trial(trial *t)
{
    static consumer c; /* not on the stack: a check that fails jumps away while the loader's threads go on */
    static reports to;
    static reference ref;
    mr_error err = MR_ERROR_INIT;
    mr_loader_config cfg = t->cfg;
    mr_trace *trace = NULL;
    if (steps_of(t) == 0) {
        MRT_EQ(mr_loader_open(&c.l, t->set->src, &cfg, &err), MR_EINVAL);
        return;
    }
    run_reference(t, &ref);
    check_reference(t, &ref);
    const damage d = foresee(t, ref.count);
    to = (reports){0};
    c = (consumer){.t = t, .ref = &ref, .seen = calloc((size_t)ref.kept, 1)};
    assert_non_null(c.seen);
    if (t->warm) warm_up(t, &cfg);
    if (t->traced) MRT_EQ(mr_trace_create(&trace, 100), MR_OK);
    cfg.trace = trace;
    cfg.on_bad = on_bad;
    cfg.on_note = on_note;
    cfg.bad_context = cfg.note_context = &to;
    check_ok(mr_loader_open(&c.l, t->set->src, &cfg, &err), &err, "opening");
    open_readbacks(&c);
    run_consumer(&c, &d, &to);
    mr_loader_close(c.l);
    check_reports(t, &to);
    close_readbacks(&c);
    mr_trace_destroy(trace);
    remove_cache(t->folder);
    free(c.seen);
    free_reference(&ref);
}

static uint64_t setting(const char *name, uint64_t otherwise)
{
    const char *text = getenv(name);
    return text && *text ? strtoull(text, NULL, 0) : otherwise;
}

static void random_loaders_deliver_what_a_serial_one_does(void **state)
{
    (void)state;
    static trial t;
    const uint64_t seed = setting("MRT_SEED", 1), first = setting("MRT_RANDOM_FIRST", 0);
    const uint64_t count = setting("MRT_RANDOM_LOADERS", DEFAULT_TRIALS);
    add_sets();
    open_bank(&mrt_banks[0], "cpu:3");
    open_bank(&mrt_banks[1], "sim:3,step=1us,h2d=4GB/s,d2h=4GB/s");
    watch_signals();
    for (uint64_t number = first; number < first + count; number++) {
        draw_trial(&t, seed, number);
        const char *text = describe(&t);
        if (getenv("MRT_RANDOM_SHOW")) fprintf(stderr, "%s", text);
        alarm(mrt_seconds(HANGS_AFTER_S));
        run_trial(&t);
    }
    alarm(0);
    close_bank(&mrt_banks[0]);
    close_bank(&mrt_banks[1]);
    close_sets();
}

int main(void)
{
    const struct CMUnitTest tests[] = {cmocka_unit_test(random_loaders_deliver_what_a_serial_one_does)};
    return mrt_run(tests);
}
