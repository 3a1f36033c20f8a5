/* The ring without any stage: how slots and chunks change hands, what bounds them, the cause that a wait
 * counts for, and that a halt ends every wait. */
#include <sched.h>
#include <time.h>

#include "mrt.h"
#include "tests/pipeline/stream/line.h"

/* Claims go through batches in order, cut into chunks, and end when every slot is in use. */
static void claims_are_bounded_by_slots(void **state)
{
    (void)state;
    line l;
    bool ended;
    line_open(&l, &(line_config){.samples = 23, .batch = 5, .slots = 2, .chunks = 9, .chunk_samples = 3});
    const uint32_t first[] = {0, 3, 0, 3}, count[] = {3, 2, 3, 2};
    mri_chunk *c[4];
    for (int i = 0; i < 4; i++) {
        c[i] = mri_ring_claim(l.ring, 0, false, &l.waits, &ended);
        assert_non_null(c[i]);
        MRT_EQ(c[i]->batch, i / 2);
        MRT_EQ(c[i]->first, first[i]);
        MRT_EQ(c[i]->count, count[i]);
    }
    MRT_TRUE(mri_ring_claim(l.ring, 0, false, &l.waits, &ended) == NULL);
    MRT_TRUE(!ended);
    MRT_TRUE(!mri_ring_is_full(l.ring, 0));
    line_fill(&l, c[1]);
    line_fill(&l, c[0]);
    MRT_TRUE(mri_ring_is_full(l.ring, 0));
    MRT_TRUE(mri_ring_claim(l.ring, 0, false, &l.waits, &ended) == NULL); /* full is not free */
    line_close(&l);
}

static void take_one(line *l, uint64_t expected)
{
    mri_ring_batch b;
    MRT_EQ(mri_ring_wait(l->ring, MR_FOREVER), MR_OK);
    mri_ring_take(l->ring, &b);
    MRT_EQ(b.batch, expected);
    line_check(l, expected, b.slot);
    MRT_EQ(b.counted, b.slot->count);
}

static void count_up(void *context) { ++*(int *)context; }

/* With a lister of samples, a batch is claimed once it is listed; a claimer that found none is notified. */
static void claims_wait_for_lists(void **state)
{
    (void)state;
    line l;
    bool ended;
    int reported = 0;
    uint64_t batch;
    line_open(&l, &(line_config){
                      .samples = 12, .batch = 4, .slots = 2, .chunks = 6, .chunk_samples = 2, .lists = true});
    mri_ring_on_room(l.ring, count_up, &reported);
    MRT_TRUE(mri_ring_claim(l.ring, 0, false, &l.waits, &ended) == NULL);
    MRT_TRUE(!ended);
    for (uint64_t b = 0; b < 2; b++) {
        assert_non_null(mri_ring_wait_unlisted(l.ring, &batch));
        MRT_EQ(batch, b);
        mri_ring_mark_listed(l.ring);
        MRT_EQ(reported, 1);
        line_make_batch(&l);
    }
    MRT_TRUE(mri_ring_claim(l.ring, 0, false, &l.waits, &ended) == NULL);
    take_one(&l, 0);
    mri_ring_release(l.ring); /* a slot is free for the third, which nobody has listed */
    MRT_TRUE(mri_ring_claim(l.ring, 0, false, &l.waits, &ended) == NULL);
    MRT_EQ(reported, 1);
    assert_non_null(mri_ring_wait_unlisted(l.ring, &batch));
    MRT_EQ(batch, 2);
    mri_ring_mark_listed(l.ring);
    MRT_EQ(reported, 2);
    line_make_batch(&l);
    MRT_TRUE(mri_ring_wait_unlisted(l.ring, &batch) == NULL);
    line_close(&l);
}

typedef struct late_worker {
    line *l;
    mri_stage_counter waits;
    mri_chunk *got; /* atomic */
} late_worker;

static void *takes_one(void *arg)
{
    late_worker *w = arg;
    bool located;
    __atomic_store_n(&w->got, mri_ring_take_chunk(w->l->ring, 1, &w->waits, &located), __ATOMIC_RELEASE);
    return NULL;
}

/* Of workers that call functions of the program one is left for the first batch that is not full, though
 * chunks of later ones are there. */
static void one_worker_is_left_for_the_first_batch(void **state)
{
    (void)state;
    line l;
    bool ended, located;
    pthread_t thread;
    late_worker w = {.l = &l};
    line_open(&l, &(line_config){.samples = 8,
                                 .batch = 2,
                                 .slots = 4,
                                 .chunks = 4,
                                 .chunk_samples = 2,
                                 .workers = 2,
                                 .calls = true});
    mri_chunk *c[4];
    for (int i = 0; i < 4; i++) c[i] = mri_ring_claim(l.ring, 0, false, &l.waits, &ended);
    for (int i = 3; i > 0; i--) mri_ring_read_done(l.ring, c[i]);
    mri_chunk *later = mri_ring_take_chunk(l.ring, 0, &l.waits, &located);
    MRT_EQ(later->batch, 1); /* the earliest that is there */
    MRT_EQ(pthread_create(&thread, NULL, takes_one, &w), 0);
    line_await(&w.waits.fill_samples, 0); /* it holds the lock until it rests */
    mri_ring_read_done(l.ring, c[0]);
    pthread_join(thread, NULL);
    MRT_EQ(w.got->batch, 0);
    line_fill(&l, w.got); /* now batch 1 is the first, and has its worker */
    MRT_EQ(mri_ring_take_chunk(l.ring, 1, &l.waits, &located)->batch, 2);
    line_fill(&l, later);
    line_close(&l);
}

/* A thread that found no chunk and waits elsewhere is notified once, when a chunk is free. */
static void room_is_told_of(void **state)
{
    (void)state;
    line l;
    bool ended;
    int reported = 0;
    line_open(&l, &(line_config){.samples = 40, .batch = 4, .slots = 2, .chunks = 2, .chunk_samples = 2});
    mri_ring_on_room(l.ring, count_up, &reported);
    mri_chunk *a = mri_ring_claim(l.ring, 0, false, &l.waits, &ended);
    mri_chunk *b = mri_ring_claim(l.ring, 0, false, &l.waits, &ended);
    line_fill(&l, a);
    MRT_EQ(reported, 0); /* nobody has asked */
    a = mri_ring_claim(l.ring, 0, false, &l.waits, &ended);
    MRT_TRUE(mri_ring_claim(l.ring, 0, false, &l.waits, &ended) == NULL && !ended);
    line_fill(&l, b);
    MRT_EQ(reported, 1);
    b = mri_ring_claim(l.ring, 0, false, &l.waits, &ended);
    line_fill(&l, a);
    line_fill(&l, b);
    MRT_EQ(reported, 1);
    MRT_TRUE(mri_ring_claim(l.ring, 0, false, &l.waits, &ended) == NULL && !ended); /* both slots are full */
    take_one(&l, 0);
    MRT_EQ(reported, 1);
    mri_ring_release(l.ring);
    MRT_EQ(reported, 2);
    line_close(&l);
}

/* A consumer may keep all slots' batches; only slots that it gives back are written again. */
static void a_consumer_that_keeps_batches_keeps_them(void **state)
{
    (void)state;
    line l;
    uint32_t room;
    bool ended;
    line_open(&l, &(line_config){.samples = 23, .batch = 5, .slots = 2, .chunks = 4, .chunk_samples = 2});
    for (uint64_t b = 0; b < 2; b++) {
        line_make_batch(&l);
        MRT_EQ(mri_ring_may_take(l.ring, &room), MR_OK);
        take_one(&l, b);
    }
    MRT_EQ(mri_ring_may_take(l.ring, &room), MR_EBUSY);
    MRT_EQ(room, 2);
    MRT_TRUE(!mri_ring_may_release(l.ring, 1)); /* not before the one in front of it */
    for (uint64_t b = 2; b < 5; b++) {
        MRT_TRUE(mri_ring_claim(l.ring, 0, false, &l.waits, &ended) == NULL);
        MRT_TRUE(mri_ring_may_release(l.ring, b - 2));
        mri_ring_release(l.ring);
        MRT_EQ(mri_ring_wait(l.ring, 0), MR_EAGAIN);
        line_make_batch(&l);
        take_one(&l, b);
    }
    mri_ring_release(l.ring);
    MRT_TRUE(mri_ring_claim(l.ring, 0, false, &l.waits, &ended) == NULL);
    MRT_TRUE(ended);
    MRT_EQ(mri_ring_may_take(l.ring, &room), MR_EEND);
    line_close(&l);
}

/* Without free order a batch that is full first waits for those in front of it; with it, it comes first. */
static void order_of_delivery(void **state)
{
    (void)state;
    for (int is_free = 0; is_free < 2; is_free++) {
        line l;
        bool ended;
        mri_ring_batch b;
        line_open(&l, &(line_config){.samples = 6,
                                     .batch = 2,
                                     .slots = 3,
                                     .chunks = 3,
                                     .chunk_samples = 2,
                                     .free_order = is_free});
        mri_chunk *c[3];
        for (int i = 0; i < 3; i++) c[i] = mri_ring_claim(l.ring, 0, false, &l.waits, &ended);
        line_fill(&l, c[2]);
        MRT_EQ(mri_ring_is_ready(l.ring), is_free);
        if (!is_free) line_fill(&l, c[0]);
        MRT_EQ(mri_ring_wait(l.ring, MR_FOREVER), MR_OK);
        mri_ring_take(l.ring, &b);
        MRT_EQ(b.place, 0);
        MRT_EQ(b.batch, is_free ? 2 : 0);
        line_check(&l, b.batch, b.slot);
        line_close(&l);
    }
}

/* ---- waits ---- */

typedef struct caller {
    line *l;
    mri_stage_counter waits;
    mri_chunk *chunk;
    bool ended, located;
    int rc;
    const mri_slot *slot;
    pthread_t thread;
} caller;

static void *claims(void *arg)
{
    caller *c = arg;
    c->chunk = mri_ring_claim(c->l->ring, 0, true, &c->waits, &c->ended);
    return NULL;
}

static void *takes_a_chunk(void *arg)
{
    caller *c = arg;
    c->chunk = mri_ring_take_chunk(c->l->ring, 0, &c->waits, &c->located);
    return NULL;
}

static void *stages(void *arg)
{
    caller *c = arg;
    c->slot = mri_ring_wait_full(c->l->ring, 0, &c->waits, NULL);
    return NULL;
}

static void *consumes(void *arg)
{
    caller *c = arg;
    c->rc = mri_ring_wait(c->l->ring, MR_FOREVER);
    return NULL;
}

static void start(caller *c, line *l, void *(*what)(void *))
{
    *c = (caller){.l = l};
    MRT_EQ(pthread_create(&c->thread, NULL, what, c), 0);
}

static void nap(void)
{
    const struct timespec t = {.tv_nsec = 20000000};
    nanosleep(&t, NULL);
}

/* One reader, while the one chunk is out, or the one slot. False when it came too late to wait: no event
 * marks the start of a thread's wait. */
static bool waits_for(mri_activity reason)
{
    line l;
    bool ended;
    caller c;
    line_open(&l, &(line_config){.samples = 9, .batch = 4, .slots = 1, .chunks = 1, .chunk_samples = 2});
    mri_chunk *out = NULL;
    if (reason == MRI_WAIT_BUFFER) out = mri_ring_claim(l.ring, 0, false, &l.waits, &ended);
    else line_make_batch(&l), take_one(&l, 0);
    start(&c, &l, claims);
    nap();
    if (out) line_fill(&l, out);
    else mri_ring_release(l.ring);
    pthread_join(c.thread, NULL);
    assert_non_null(c.chunk);
    for (mri_activity other = MRI_WAIT_INPUT; other < MRI_BUSY; other++)
        MRT_TRUE(other == reason || mri_activity_ns(&c.waits, other) == 0);
    line_fill(&l, c.chunk);
    line_close(&l);
    return mri_activity_ns(&c.waits, reason) > 0;
}

/* Whoever reads waits for a buffer while chunks are out, and for room while slots are. */
static void waits_are_counted_by_their_reason(void **state)
{
    (void)state;
    for (int k = 0; k < 2; k++) {
        int tries = 0;
        while (!waits_for(k ? MRI_WAIT_ROOM : MRI_WAIT_BUFFER)) MRT_TRUE(++tries < 100);
    }
}

static void a_halt_ends_every_wait(void **state)
{
    (void)state;
    for (uint32_t device_slots = 0; device_slots < 3; device_slots += 2) {
        line l;
        bool ended;
        caller c[4];
        mr_error why = MR_ERROR_INIT, reported = MR_ERROR_INIT;
        line_open(&l, &(line_config){.samples = 9, .batch = 4, .device_slots = device_slots});
        mri_chunk *out = mri_ring_claim(l.ring, 0, false, &l.waits, &ended);
        assert_non_null(out);
        start(&c[0], &l, claims);
        start(&c[1], &l, takes_a_chunk);
        start(&c[2], &l, stages);
        start(&c[3], &l, consumes);
        nap();
        mr_error_set(&why, MR_EIO, "the first reason");
        mri_halt_fail(&l.halt, MR_EIO, &why);
        for (int i = 0; i < 4; i++) pthread_join(c[i].thread, NULL);
        MRT_TRUE(c[0].chunk == NULL && c[0].ended && c[1].chunk == NULL && c[2].slot == NULL);
        MRT_EQ(c[3].rc, MR_ECANCELED);
        mr_error_set(&why, MR_ENOMEM, "a later one");
        mri_halt_fail(&l.halt, MR_ENOMEM, &why);
        MRT_EQ(mri_halt_reason(&l.halt, &reported), MR_EIO);
        MRT_STR(reported.text, "the first reason");
        line_close(&l);
    }
}

/* A stop that came first is the reason, whatever fails because of it. */
static void a_stop_is_no_failure(void **state)
{
    (void)state;
    mri_halt h;
    mr_error why = MR_ERROR_INIT, reported = MR_ERROR_INIT;
    mri_halt_init(&h);
    MRT_TRUE(!mri_halt_is_over(&h));
    mri_halt_stop(&h);
    mri_halt_stop(&h);
    mr_error_set(&why, MR_EIO, "after the stop");
    mri_halt_fail(&h, MR_EIO, &why);
    MRT_TRUE(mri_halt_is_over(&h));
    MRT_EQ(mri_halt_reason(&h, &reported), MR_ECANCELED);
    mri_halt_fini(&h);
}

/* ---- many threads ---- */

typedef struct crew {
    line l;
    mri_stage_counter read, decode;
} crew;

static void *reads_all(void *arg)
{
    crew *w = arg;
    bool ended = false;
    while (!ended) {
        mri_chunk *c = mri_ring_claim(w->l.ring, 0, true, &w->read, &ended);
        if (c) mri_ring_read_done(w->l.ring, c);
    }
    return NULL;
}

static void *decodes_all(void *arg)
{
    crew *w = arg;
    bool located;
    for (mri_chunk *c; (c = mri_ring_take_chunk(w->l.ring, 0, &w->decode, &located));) line_fill(&w->l, c);
    return NULL;
}

/* Every batch comes once, whole and in order, whoever is fast or slow. */
static void threads_pass_every_batch_once(void **state)
{
    (void)state;
    static crew w;
    pthread_t readers[2], decoders[3];
    mri_ring_batch b;
    uint32_t room;
    uint64_t taken = 0;
    memset(&w, 0, sizeof w);
    line_open(
        &w.l,
        &(line_config){.samples = 331, .batch = 7, .slots = 3, .chunks = 5, .chunk_samples = 3, .epochs = 4});
    for (int i = 0; i < 2; i++) pthread_create(&readers[i], NULL, reads_all, &w);
    for (int i = 0; i < 3; i++) pthread_create(&decoders[i], NULL, decodes_all, &w);
    while (mri_ring_may_take(w.l.ring, &room) == MR_OK) {
        MRT_EQ(mri_ring_wait(w.l.ring, MR_FOREVER), MR_OK);
        mri_ring_take(w.l.ring, &b);
        line_check(&w.l, taken++, b.slot);
        if (taken % 16 == 0) sched_yield();
        mri_ring_release(w.l.ring);
    }
    MRT_EQ(taken, 4 * 48);
    mri_halt_stop(&w.l.halt);
    for (int i = 0; i < 2; i++) pthread_join(readers[i], NULL);
    for (int i = 0; i < 3; i++) pthread_join(decoders[i], NULL);
    line_close(&w.l);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(claims_are_bounded_by_slots),
        cmocka_unit_test(room_is_told_of),
        cmocka_unit_test(claims_wait_for_lists),
        cmocka_unit_test(one_worker_is_left_for_the_first_batch),
        cmocka_unit_test(a_consumer_that_keeps_batches_keeps_them),
        cmocka_unit_test(order_of_delivery),
        cmocka_unit_test(waits_are_counted_by_their_reason),
        cmocka_unit_test(a_halt_ends_every_wait),
        cmocka_unit_test(a_stop_is_no_failure),
        cmocka_unit_test(threads_pass_every_batch_once),
    };
    return mrt_run(tests);
}
