/* How worlds end: ranks that are killed, stopped, give up, leave, or make other calls than the rest. The test
 * kills and stops when the ranks have said (by a mark) that they are where they should be. */
#include <pthread.h>
#include <signal.h>
#include <time.h>
#include <unistd.h>

#include "worlds.h"

static void pause_ms(long ms) { nanosleep(&(struct timespec){ms / 1000, ms % 1000 * 1000000}, NULL); }

typedef struct plan {
    enum { EXCHANGES, BARRIERS, COMPUTES, BROADCASTS } doing;
    uint32_t victim; /* waits for its end */
    double silence_s;
} plan;

/* Rank 0 and others wait for the victim, who waits for death. */
static void waits_for_victim(mrt_worlds *w, uint32_t slot, uint32_t rank, uint32_t size, const void *what)
{
    const plan *p = what;
    mrt_rank *me = &w->ranks[slot];
    mr_error err = MR_ERROR_INIT;
    mr_world *world = mrt_open(w, slot, rank, size, p->silence_s);
    uint8_t *data = calloc(8, 1 << 20);
    mr_world_piece out[MRT_RANKS_MOST], in[MRT_RANKS_MOST];
    int rc = MR_OK;
    if (!world) return;
    for (uint32_t r = 0; r < size; r++) {
        out[r] = (mr_world_piece){data, 1 << 19};
        in[r] = (mr_world_piece){data + (1 << 20), 1 << 19};
    }
    mrt_keep(me, mr_world_barrier(world, 0, &err), &err);
    atomic_store(&me->mark, 1);
    while (rank == p->victim && !atomic_load(&w->flag)) pause_ms(2);
    if (p->doing == COMPUTES && rank != p->victim)
        while (!atomic_load(&w->flag)) pause_ms(2);
    for (int i = 0; rc == MR_OK && i < 100000; i++) {
        if (p->doing == EXCHANGES) rc = mr_world_exchange(world, 0, out, in, &err);
        else if (p->doing == BROADCASTS) rc = mr_world_broadcast(world, 0, data, 100000, p->victim, &err);
        else rc = mr_world_barrier(world, 1, &err);
        if (rank == p->victim) break;
    }
    mrt_keep(me, rc, &err);
    atomic_store(&me->mark, 2);
    mr_error again = MR_ERROR_INIT; /* on any channel, from now on */
    if (rc != MR_OK) MRT_CHECK(me, mr_world_barrier(world, 1, &again) == MR_EPEER);
    mr_world_close(world);
    free(data);
}

static void a_killed_rank_is_named(void **state)
{
    (void)state;
    static const struct {
        plan p;
        const char *said;
    } cases[] = {{{EXCHANGES, 2, 0}, "rank 0 was in exchange 2 on channel 0"},
                 {{BARRIERS, 1, 0}, "rank 0 was in barrier 1 on channel 1"},
                 {{COMPUTES, 3, 0}, "barrier 1 on channel 1"},
                 {{BROADCASTS, 1, 10}, "rank 0 was in broadcast 2 on channel 0"}};
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        mrt_worlds *w = mrt_worlds_new();
        char who[32];
        const uint32_t victim = cases[i].p.victim;
        snprintf(who, sizeof who, "rank %u (host ", victim);
        mrt_start_all(w, 4, waits_for_victim, &cases[i].p);
        for (uint32_t r = 0; r < 4; r++) mrt_wait_mark(w, r, 1);
        pause_ms(20);
        kill(w->ranks[victim].pid, SIGKILL);
        if (cases[i].p.doing == COMPUTES) pause_ms(200);
        atomic_store(&w->flag, 1);
        mrt_wait_all(w, 4);
        for (uint32_t r = 0; r < 4; r++) {
            if (r == victim) continue;
            mrt_said(w, r, MR_EPEER, who);
            mrt_said(w, r, MR_EPEER, "ended without a word");
        }
        mrt_said(w, 0, MR_EPEER, cases[i].said);
        mrt_worlds_free(w);
    }
}

static bool both_said(mrt_worlds *w)
{
    return atomic_load(&w->ranks[0].mark) == 2 && atomic_load(&w->ranks[2].mark) == 2;
}

static void a_stopped_rank_is_silent(void **state)
{
    (void)state;
    const plan p = {BARRIERS, 1, 3};
    mrt_worlds *w = mrt_worlds_new();
    mrt_start_all(w, 3, waits_for_victim, &p);
    for (uint32_t r = 0; r < 3; r++) mrt_wait_mark(w, r, 1);
    kill(w->ranks[1].pid, SIGSTOP);
    /* the two others end by themselves; then the stopped one is let go, and learns it too */
    for (long waited = 0; waited < 200000 && !both_said(w); waited += 10) pause_ms(10);
    kill(w->ranks[1].pid, SIGCONT);
    atomic_store(&w->flag, 1);
    mrt_wait_all(w, 3);
    for (uint32_t r = 0; r < 3; r += 2) {
        mrt_said(w, r, MR_EPEER, "rank 1 (host ");
        mrt_said(w, r, MR_EPEER, "was not heard of for 3 s");
    }
    mrt_said(w, 1, MR_EPEER, "rank, 1, was not heard of for 3 s");
    mrt_worlds_free(w);
}

/* Stopped for less than silence_s, and all at once for more: nobody is lost. */
static void barriers_until_flag(mrt_worlds *w, uint32_t slot, uint32_t rank, uint32_t size, const void *what)
{
    const double *silence_s = what;
    mrt_rank *me = &w->ranks[slot];
    mr_error err = MR_ERROR_INIT;
    mr_world *world = mrt_open(w, slot, rank, size, *silence_s);
    int stop[MRT_RANKS_MOST] = {0}, rc = MR_OK;
    if (!world) return;
    for (bool go = true; go && rc == MR_OK;) {
        stop[rank] = atomic_load(&w->flag);
        rc = mr_world_gather(world, 0, &stop[rank], sizeof *stop, stop, &err);
        for (uint32_t r = 0; r < size; r++) go = go && !stop[r];
        atomic_fetch_add(&me->mark, 1);
        pause_ms(1);
    }
    mrt_keep(me, rc, &err);
    mr_world_close(world);
}

static void one_that_goes_on_is_not_lost(void **state)
{
    (void)state;
    const double silence_s = 6;
    mrt_worlds *w = mrt_worlds_new();
    mrt_start_all(w, 3, barriers_until_flag, &silence_s);
    mrt_wait_mark(w, 1, 2);
    kill(w->ranks[1].pid, SIGSTOP);
    pause_ms(800);
    kill(w->ranks[1].pid, SIGCONT);
    atomic_store(&w->flag, 1);
    mrt_wait_all(w, 3);
    for (uint32_t r = 0; r < 3; r++) mrt_said(w, r, MR_OK, "");
    mrt_worlds_free(w);
}

static void all_that_slept_wake_together(void **state)
{
    (void)state;
    const double silence_s = 2.5;
    mrt_worlds *w = mrt_worlds_new();
    mrt_start_all(w, 3, barriers_until_flag, &silence_s);
    mrt_wait_mark(w, 1, 2);
    for (uint32_t r = 0; r < 3; r++) kill(w->ranks[r].pid, SIGSTOP);
    pause_ms(4000);
    for (uint32_t r = 0; r < 3; r++) kill(w->ranks[r].pid, SIGCONT);
    atomic_store(&w->flag, 1);
    mrt_wait_all(w, 3);
    for (uint32_t r = 0; r < 3; r++) mrt_said(w, r, MR_OK, "");
    mrt_worlds_free(w);
}

/* ---- giving up ---- */

typedef struct aborting {
    mr_world *world;
    mrt_rank *me;
} aborting;

static void *waits_on_channel_1(void *arg)
{
    aborting *a = arg;
    mr_error err = MR_ERROR_INIT;
    MRT_CHECK(a->me, mr_world_barrier(a->world, 1, &err) == MR_EPEER);
    MRT_CHECK(a->me, strstr(err.text, "the disk of rank 1 is full"));
    MRT_CHECK(a->me, err.host == MR_EIO);
    return NULL;
}

static void one_gives_up(mrt_worlds *w, uint32_t slot, uint32_t rank, uint32_t size, const void *what)
{
    const bool leaves_at_once = what != NULL;
    mrt_rank *me = &w->ranks[slot];
    mr_error err = MR_ERROR_INIT, why = MR_ERROR_INIT;
    aborting a = {mrt_open(w, slot, rank, size, 0), me};
    pthread_t thread;
    if (!a.world) return;
    if (rank != 1) MRT_CHECK(me, pthread_create(&thread, NULL, waits_on_channel_1, &a) == 0);
    if (rank == 1) {
        pause_ms(30);
        mr_error_set(&why, MR_EIO, "the disk of rank 1 is full");
        mr_error_at(&why, "state.bin", MR_NOWHERE, MR_NOWHERE);
        mr_world_abort(a.world, &why);
        if (leaves_at_once) _exit(0);
        mr_error_set(&why, MR_EIO, "something else");
        mr_world_abort(a.world, &why);
    }
    mrt_keep(me, mr_world_barrier(a.world, 0, &err), &err);
    mr_error_set(&why, MR_EIO, "because of the error");
    mr_world_abort(a.world, &why);
    if (rank != 1) pthread_join(thread, NULL);
    mr_world_close(a.world);
}

static void why_one_gives_up_comes_to_all(void **state)
{
    (void)state;
    for (int leaves = 0; leaves < 2; leaves++) {
        mrt_worlds *w = mrt_worlds_new();
        mrt_start_all(w, 5, one_gives_up, leaves ? w : NULL);
        mrt_wait_all(w, 5);
        for (uint32_t r = 0; r < 5; r++) {
            if (leaves && r == 1) continue;
            mrt_said(w, r, MR_EPEER, "gave up");
            mrt_said(w, r, MR_EPEER, "state.bin: the disk of rank 1 is full");
            if (r != 1) mrt_said(w, r, MR_EPEER, "rank 1 (host ");
        }
        mrt_worlds_free(w);
    }
}

/* Rank 2 is killed, the others end because of it, each as soon as it can: all name rank 2. */
static void ends_at_once(mrt_worlds *w, uint32_t slot, uint32_t rank, uint32_t size, const void *what)
{
    (void)what;
    mr_error err = MR_ERROR_INIT;
    mr_world *world = mrt_open(w, slot, rank, size, 0);
    if (!world) return;
    mrt_keep(&w->ranks[slot], mr_world_barrier(world, 0, &err), &err);
    atomic_store(&w->ranks[slot].mark, 1);
    if (rank == 2)
        for (;;) pause_ms(100);
    mrt_keep(&w->ranks[slot], mr_world_barrier(world, 0, &err), &err);
    if (rank == 1) mr_world_abort(world, &err);
    _exit(0); /* without a word */
}

static void the_first_cause_is_named(void **state)
{
    (void)state;
    for (int i = 0; i < 10; i++) {
        mrt_worlds *w = mrt_worlds_new();
        mrt_start_all(w, 4, ends_at_once, NULL);
        for (uint32_t r = 0; r < 4; r++) mrt_wait_mark(w, r, 1);
        kill(w->ranks[2].pid, SIGKILL);
        mrt_wait_all(w, 4);
        for (uint32_t r = 0; r < 4; r++)
            if (r != 2) mrt_said(w, r, MR_EPEER, "rank 2 (host ");
        mrt_worlds_free(w);
    }
}

/* ---- other calls than the rest ---- */

typedef enum other_calls { LONGER, MISSING, KINDS, LEAVES, CHANNEL } other_calls;

static int calls_otherwise(mr_world *world, uint32_t rank, other_calls how, mr_error *err)
{
    char data[400] = {0};
    const mr_world_piece none[2] = {{NULL, 0}, {NULL, 0}}, some[2] = {{data, 100}, {data, 100}},
                         more[2] = {{data + 200, 200}, {data + 200, 200}};
    switch (how) {
    case LONGER: return mr_world_exchange(world, 0, some, rank ? some : more, err);
    case MISSING: /* rank 1 sends, rank 0 wants nothing of it: seen in the next call */
        if (mr_world_exchange(world, 0, rank ? some : none, none, err) != MR_OK) return 1;
        return mr_world_exchange(world, 0, some, some, err);
    case KINDS:
        return rank ? mr_world_barrier(world, 0, err) : mr_world_gather(world, 0, data, 10, data + 100, err);
    case LEAVES: return rank ? MR_OK : mr_world_barrier(world, 0, err);
    case CHANNEL: return mr_world_barrier(world, rank ? 7 : 0, err);
    }
    return MR_OK;
}

static void calls(mrt_worlds *w, uint32_t slot, uint32_t rank, uint32_t size, const void *what)
{
    mr_error err = MR_ERROR_INIT;
    mr_world *world = mrt_open(w, slot, rank, size, 0);
    if (!world) return;
    mrt_keep(&w->ranks[slot], calls_otherwise(world, rank, *(const other_calls *)what, &err), &err);
    if (*(const other_calls *)what != LEAVES && w->ranks[slot].rc == MR_OK) /* it comes with the next call */
        mrt_keep(&w->ranks[slot], mr_world_barrier(world, 0, &err), &err);
    mr_world_close(world);
}

static void other_calls_are_told(void **state)
{
    (void)state;
    static const struct {
        other_calls how;
        int zero_rc;
        const char *zero, *one;
    } cases[] = {
        {LONGER, MR_EINVAL, "sends 100 bytes in exchange 1 of channel 0, and rank 0 (host ", "expects 200"},
        {MISSING, MR_EINVAL, "on channel 0 call 1 of rank 1 (host ", "do not make the same calls"},
        {KINDS, MR_EINVAL, "is barrier", "do not make the same calls"},
        {LEAVES, MR_EPEER, "has ended, and others still wait for it; rank 0 was in barrier 1", ""},
        {CHANNEL, MR_EPEER, "a call on a channel that a world does not have", "that a world does not have"},
    };
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        mrt_worlds *w = mrt_worlds_new();
        mrt_start_all(w, 2, calls, &cases[i].how);
        mrt_wait_all(w, 2);
        mrt_ended_well(w, 0);
        mrt_ended_well(w, 1);
        /* where both see it, either may be the first to tell the other */
        const bool by_other = cases[i].how == KINDS && w->ranks[0].rc == MR_EPEER;
        mrt_said(w, 0, by_other ? MR_EPEER : cases[i].zero_rc, by_other ? "same calls" : cases[i].zero);
        mrt_said(w, 1, w->ranks[1].rc, cases[i].one);
        if (cases[i].how != LEAVES) assert_true(w->ranks[1].rc != MR_OK);
        mrt_worlds_free(w);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(a_killed_rank_is_named),        cmocka_unit_test(a_stopped_rank_is_silent),
        cmocka_unit_test(one_that_goes_on_is_not_lost),  cmocka_unit_test(all_that_slept_wake_together),
        cmocka_unit_test(why_one_gives_up_comes_to_all), cmocka_unit_test(the_first_cause_is_named),
        cmocka_unit_test(other_calls_are_told),
    };
    return mrt_run(tests);
}
