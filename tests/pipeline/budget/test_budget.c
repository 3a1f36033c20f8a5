/* One budget and many who take from it: never more is out than there is, everybody gets what fits in the end,
 * what can never fit is refused, and a stop ends every wait. */
#include "pipeline/budget/budget.h"

#include "mrt.h"

enum { OWNERS = 6, ROUNDS = 400 };
#define TOTAL 1000u

typedef struct owner {
    mr_budget *budget;
    mri_seat seat;
    uint64_t holds; /* atomic: its buffers */
    uint64_t *sum;  /* atomic: the sum over all threads */
    uint64_t seed;
    uint32_t got;
    bool *over;
    pthread_t thread;
} owner;

static uint64_t held(const uint64_t *at) { return __atomic_load_n(at, __ATOMIC_SEQ_CST); }

static void drop(void *context)
{
    owner *o = context;
    __atomic_fetch_sub(o->sum, __atomic_exchange_n(&o->holds, 0, __ATOMIC_SEQ_CST), __ATOMIC_SEQ_CST);
}

static void take(owner *o, uint64_t bytes)
{
    const uint64_t before = held(&o->holds);
    if (bytes <= before) return;
    __atomic_store_n(&o->holds, bytes, __ATOMIC_SEQ_CST);
    __atomic_fetch_add(o->sum, bytes - before, __ATOMIC_SEQ_CST);
}

/* Chunks of samples, mostly small, some that need nearly all of it; in between it rests. */
static void *owner_main(void *arg)
{
    owner *o = arg;
    for (uint32_t round = 0; round < ROUNDS; round++) {
        mri_seat_work(&o->seat);
        for (uint32_t k = 0; k < 4; k++) {
            const uint64_t draw = mri_mix64(o->seed + 4 * round + k);
            const uint64_t bytes = draw % 16 == 0 ? TOTAL - draw / 16 % 100 : draw / 16 % (TOTAL / 4);
            mri_seat_yield(&o->seat);
            if (mri_seat_need(&o->seat, bytes, bytes) != MR_OK) return NULL;
            take(o, bytes);
            if (held(o->sum) > TOTAL) return NULL;
            o->got++;
        }
        mri_seat_rest(&o->seat);
    }
    return NULL;
}

static void start(owner *o, mr_budget *b, uint64_t *sum, bool *over, uint32_t k)
{
    *o = (owner){.budget = b, .sum = sum, .seed = 1000003u * (k + 1), .over = over};
    mri_seat_add(&o->seat, b, drop, o, over);
    MRT_EQ(pthread_create(&o->thread, NULL, owner_main, o), 0);
}

static void everybody_gets_what_fits(void **state)
{
    (void)state;
    owner o[OWNERS];
    uint64_t sum = 0;
    bool over = false;
    mr_budget *b;
    MRT_EQ(mr_budget_create(&b, TOTAL), MR_OK);
    for (uint32_t k = 0; k < OWNERS; k++) start(&o[k], b, &sum, &over, k);
    for (uint32_t k = 0; k < OWNERS; k++) pthread_join(o[k].thread, NULL);
    for (uint32_t k = 0; k < OWNERS; k++) MRT_EQ(o[k].got, 4 * ROUNDS);
    MRT_EQ(mri_budget_reserve(b, TOTAL), MR_OK); /* all of them rest: it can be had */
    MRT_EQ(sum, 0);
    mri_budget_return(b, TOTAL);
    for (uint32_t k = 0; k < OWNERS; k++) mri_seat_remove(&o[k].seat);
    mr_budget_destroy(b);
}

static void what_can_never_fit_is_refused(void **state)
{
    (void)state;
    uint64_t sum = 0;
    owner a = {.sum = &sum};
    mr_budget *b;
    MRT_EQ(mr_budget_create(&b, TOTAL), MR_OK);
    mri_seat_add(&a.seat, b, drop, &a, NULL);
    MRT_EQ(mri_budget_reserve(b, TOTAL + 1), MR_ELIMIT);
    MRT_EQ(mri_budget_reserve(b, 400), MR_OK);
    MRT_EQ(mri_budget_left(b), 600);
    MRT_EQ(mri_seat_need(&a.seat, 600, 600), MR_OK);
    MRT_EQ(mri_seat_need(&a.seat, 601, 601), MR_ELIMIT);
    MRT_EQ(mri_seat_need(&a.seat, 500, 500), MR_OK); /* it goes on */
    mri_seat_remove(&a.seat);
    mri_seat_remove(&a.seat);
    mri_budget_return(b, 400);
    MRT_EQ(mri_budget_left(b), TOTAL);
    mr_budget_destroy(b);
}

static void *wait_main(void *arg)
{
    owner *o = arg;
    o->got = (uint32_t)-mri_seat_need(&o->seat, TOTAL, TOTAL);
    return NULL;
}

static void a_stop_ends_a_wait(void **state)
{
    (void)state;
    uint64_t sum = 0;
    bool over = false;
    owner a = {.sum = &sum}, waits = {.sum = &sum};
    mr_budget *b;
    MRT_EQ(mr_budget_create(&b, TOTAL), MR_OK);
    mri_seat_add(&a.seat, b, drop, &a, NULL);
    mri_seat_add(&waits.seat, b, drop, &waits, &over);
    MRT_EQ(mri_seat_need(&a.seat, 10, 10), MR_OK); /* and stays at work */
    MRT_EQ(pthread_create(&waits.thread, NULL, wait_main, &waits), 0);
    __atomic_store_n(&over, true, __ATOMIC_RELEASE);
    mri_budget_wake(b);
    pthread_join(waits.thread, NULL);
    MRT_EQ(waits.got, -MR_ECANCELED);
    mri_seat_remove(&waits.seat);
    mri_seat_remove(&a.seat);
    mr_budget_destroy(b);
}

/* Who is first in line is not passed by smaller ones, and the line goes on behind one who leaves it. */
static void the_line_moves(void **state)
{
    (void)state;
    uint64_t sum = 0;
    bool over = false;
    owner a = {.sum = &sum}, first = {.sum = &sum}, second = {.sum = &sum};
    mr_budget *b;
    MRT_EQ(mr_budget_create(&b, TOTAL), MR_OK);
    mri_seat_add(&a.seat, b, drop, &a, NULL);
    mri_seat_add(&first.seat, b, drop, &first, &over);
    mri_seat_add(&second.seat, b, drop, &second, NULL);
    MRT_EQ(mri_seat_need(&a.seat, 10, 10), MR_OK);
    MRT_EQ(pthread_create(&first.thread, NULL, wait_main, &first), 0);
    MRT_EQ(pthread_create(&second.thread, NULL, wait_main, &second), 0);
    __atomic_store_n(&over, true, __ATOMIC_RELEASE);
    mri_budget_wake(b);
    pthread_join(first.thread, NULL);
    MRT_EQ(first.got, -MR_ECANCELED);
    mri_seat_rest(&a.seat); /* its share is taken from it */
    pthread_join(second.thread, NULL);
    MRT_EQ(second.got, MR_OK);
    mri_seat_work(&a.seat);
    mri_seat_rest(&second.seat);
    MRT_EQ(mri_seat_need(&a.seat, 20, 20), MR_OK);
    mri_seat_remove(&second.seat);
    mri_seat_remove(&first.seat);
    mri_seat_remove(&a.seat);
    mr_budget_destroy(b);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(everybody_gets_what_fits),
        cmocka_unit_test(what_can_never_fit_is_refused),
        cmocka_unit_test(a_stop_ends_a_wait),
        cmocka_unit_test(the_line_moves),
    };
    return mrt_run(tests);
}
