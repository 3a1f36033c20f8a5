/* tests/ranks/test_muster.c: processes that find each other again whoever is lost. */
#include <arpa/inet.h>
#include <signal.h>
#include <stdlib.h>
#include <sys/socket.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#include "ranks/muster.h"
#include "worlds.h"

enum { TURNS = 1 << 20 };

typedef struct job {
    uint32_t min, max, expected;
    double settle_s, meet_s;
    uint32_t leave_out;
    double leave_out_s;
    const char *secret; /* or NULL */
} job;

static mr_muster *open_muster(const mrt_worlds *w, const job *j, mr_error *err)
{
    mr_muster *m;
    mr_muster_config cfg;
    mr_muster_defaults(&cfg);
    cfg.meet = w->meet;
    cfg.job = "test";
    cfg.min = j->min;
    cfg.max = j->max;
    cfg.settle_s = j->settle_s;
    cfg.meet_s = j->meet_s;
    cfg.leave_out = j->leave_out;
    cfg.leave_out_s = j->leave_out_s;
    cfg.secret = j->secret;
    cfg.secret_bytes = j->secret ? strlen(j->secret) : 0;
    return mr_muster_open(&m, &cfg, err) == MR_OK ? m : NULL;
}

/* One world after the other. In each turn all agree on the farthest turn and on who wants another world; the
 * world ends when the flag is set. Results: rank, size, worlds so far, turn. */
static int live_in(mrt_worlds *w, mr_muster *m, mr_world *world, mrt_rank *me, uint64_t *turn, mr_error *err)
{
    struct {
        uint64_t turn;
        bool wants, done;
    } mine, all[MRT_RANKS_MOST];
    const uint32_t size = mr_world_size(world);
    bool again = false, done = false;
    int rc = mr_world_broadcast(world, 0, turn, sizeof *turn, 0, err); /* rank 0 is the farthest */
    atomic_fetch_add(&me->mark, 1);
    while (rc == MR_OK && !again && !done) {
        memset(&mine, 0, sizeof mine);
        mine.turn = *turn;
        mine.wants = mr_muster_is_wanted(m);
        mine.done = atomic_load(&w->flag) == (int)size;
        rc = mr_world_gather(world, 0, &mine, sizeof mine, all, err);
        for (uint32_t r = 0; rc == MR_OK && r < size; r++) {
            MRT_CHECK(me, all[r].turn == *turn);
            again = again || all[r].wants;
            done = done || all[r].done;
        }
        if (rc == MR_OK) ++*turn;
        nanosleep(&(struct timespec){0, 10000000}, NULL); /* a thousand turns a second would only cost */
    }
    if (rc == MR_OK && done) return MR_EEND;
    return rc;
}

static void live(mrt_worlds *w, uint32_t slot, uint32_t rank, uint32_t size, const void *what)
{
    const job *j = what;
    mr_error err = MR_ERROR_INIT;
    mrt_rank *me = &w->ranks[slot];
    uint64_t turn = 0;
    uint32_t expected = j->expected, worlds = 0;
    mr_muster *m = open_muster(w, j, &err);
    int rc = m ? MR_OK : mrt_keep(me, err.code, &err);
    (void)rank;
    (void)size;
    while (rc == MR_OK) {
        mr_world *world;
        mr_world_config cfg;
        mr_world_defaults(&cfg);
        cfg.meet_s = 5;
        cfg.silence_s = 2;
        cfg.secret = j->secret;
        cfg.secret_bytes = j->secret ? strlen(j->secret) : 0;
        rc = mrt_keep(me, mr_muster_form(m, expected, turn, NULL, &cfg, &err), &err);
        if (rc) break;
        if (mr_world_open(&world, &cfg, &err) != MR_OK) continue;
        snprintf(me->text, sizeof me->text, "rank %u of %u, world %u", cfg.rank, cfg.size, ++worlds);
        rc = live_in(w, m, world, me, &turn, &err);
        expected = mr_muster_is_wanted(m) ? 0 : cfg.size - 1;
        uint32_t lost;
        if (rc == MR_EPEER && mr_world_was_lost(world, &lost)) mr_muster_lost(m, mr_world_host(world, lost));
        if (rc == MR_EPEER) rc = MR_OK;
        if (rc == MR_EEND) me->rc = MR_OK;
        else if (rc) mrt_keep(me, rc, &err);
        mr_world_close(world);
    }
    mr_muster_close(m);
}

static uint32_t in_worlds_of(const mrt_worlds *w, uint32_t count, uint32_t size)
{
    char part[32];
    uint32_t there = 0;
    snprintf(part, sizeof part, " of %u,", size);
    for (uint32_t k = 0; k < count; k++)
        there += w->ranks[k].pid > 0 && strstr(w->ranks[k].text, part) != NULL;
    return there;
}

/* Until this number of ranks report a world of this size. */
static void wait_for(const mrt_worlds *w, uint32_t count, uint32_t size)
{
    for (long waited = 0; waited < 60000; waited += 5) {
        if (in_worlds_of(w, count, size) == size) return;
        usleep(5000);
    }
    for (uint32_t k = 0; k < count; k++)
        fprintf(stderr, "%u: pid %d '%s' %s\n", k, w->ranks[k].pid, w->ranks[k].text, w->ranks[k].wrong);
    fail_msg("no world of %u", size);
}

static void lose(mrt_worlds *w, uint32_t slot)
{
    kill(w->ranks[slot].pid, SIGKILL);
    waitpid(w->ranks[slot].pid, NULL, 0);
    w->ranks[slot] = (mrt_rank){.pid = 0};
}

static void end_all(mrt_worlds *w, uint32_t count, uint32_t size)
{
    atomic_store(&w->flag, (int)size);
    for (uint32_t k = 0; k < count; k++) {
        if (w->ranks[k].pid <= 0) continue;
        int status = -1;
        for (long waited = 0; waited < 60000 && waitpid(w->ranks[k].pid, &status, WNOHANG) == 0; waited += 5)
            usleep(5000);
        w->ranks[k].status = status;
        mrt_ended_well(w, k);
        MRT_EQ(w->ranks[k].rc, MR_OK);
    }
    mrt_worlds_free(w);
}

static const job usual = {.min = 1, .max = 8, .expected = 4, .settle_s = 1, .meet_s = 30};

static const job secret = {
    .min = 1, .max = 8, .expected = 4, .settle_s = 1, .meet_s = 30, .secret = "known to all of the run"};

static void whoever_is_lost_the_rest_goes_on(void **state)
{
    (void)state;
    for (uint32_t lost = 0; lost < 8; lost++) { /* the second four with a secret */
        mrt_worlds *w = mrt_worlds_new();
        mrt_start_all(w, 4, live, lost < 4 ? &usual : &secret);
        wait_for(w, 4, 4);
        lose(w, lost % 4);
        wait_for(w, 4, 3);
        end_all(w, 4, 3);
    }
}

static void down_to_one_and_up_again(void **state)
{
    (void)state;
    mrt_worlds *w = mrt_worlds_new();
    mrt_start_all(w, 4, live, &usual);
    wait_for(w, 4, 4);
    for (uint32_t k = 0; k < 3; k++) {
        lose(w, k);
        wait_for(w, 4, 3 - k);
    }
    for (uint32_t k = 0; k < 3; k++) {
        mrt_start(w, k, k, 4, live, &usual);
        wait_for(w, 4, 2 + k);
    }
    end_all(w, 4, 4);
}

static void several_at_once(void **state)
{
    (void)state;
    mrt_worlds *w = mrt_worlds_new();
    const job j = {.min = 1, .max = 8, .expected = 5, .settle_s = 0.5, .meet_s = 30};
    mrt_start_all(w, 5, live, &j);
    wait_for(w, 5, 5);
    for (uint32_t k = 0; k < 3; k++) kill(w->ranks[k].pid, SIGKILL);
    for (uint32_t k = 0; k < 3; k++) lose(w, k);
    wait_for(w, 5, 2);
    end_all(w, 5, 2);
}

static uint32_t slot_of(const mrt_worlds *w, uint32_t count, uint32_t rank)
{
    char start[32];
    uint32_t slot = UINT32_MAX;
    snprintf(start, sizeof start, "rank %u of", rank);
    for (uint32_t k = 0; k < count; k++)
        if (strncmp(w->ranks[k].text, start, strlen(start)) == 0) slot = k;
    MRT_TRUE(slot < count);
    return slot;
}

/* One that is stopped is left behind, and comes back when it goes on: also the one that has the front, whom
 * the others cannot ask before that. */
static void stopped_and_back(void **state)
{
    (void)state;
    for (uint32_t rank = 0; rank < 3; rank++) {
        mrt_worlds *w = mrt_worlds_new();
        const job j = {.min = 1, .max = 3, .expected = 3, .settle_s = 1, .meet_s = 30};
        mrt_start_all(w, 3, live, &j);
        wait_for(w, 3, 3);
        const uint32_t stopped = slot_of(w, 3, rank);
        kill(w->ranks[stopped].pid, SIGSTOP);
        snprintf(w->ranks[stopped].text, 32, "stopped");
        wait_for(w, 3, 2);
        kill(w->ranks[stopped].pid, SIGCONT);
        wait_for(w, 3, 3);
        end_all(w, 3, 3);
    }
}

/* At the largest size, one more waits without disturbing them. */
static void a_spare_one(void **state)
{
    (void)state;
    mrt_worlds *w = mrt_worlds_new();
    const job j = {.min = 1, .max = 3, .expected = 3, .settle_s = 1, .meet_s = 30};
    mrt_start_all(w, 3, live, &j);
    wait_for(w, 3, 3);
    mrt_start(w, 3, 3, 3, live, &j);
    usleep(700000);
    for (uint32_t k = 0; k < 3; k++) MRT_TRUE(strstr(w->ranks[k].text, " of 3, world 1"));
    MRT_STR(w->ranks[3].text, "");
    lose(w, slot_of(w, 3, 1));
    wait_for(w, 4, 3);
    end_all(w, 4, 3);
}

/* Whose host has just lost one waits, when there are enough without it. */
static void left_out_for_a_while(void **state)
{
    (void)state;
    mrt_worlds *w = mrt_worlds_new();
    const job j = {
        .min = 2, .max = 3, .expected = 3, .settle_s = 0.2, .meet_s = 30, .leave_out = 2, .leave_out_s = 4};
    mrt_start_all(w, 3, live, &j);
    wait_for(w, 3, 3);
    lose(w, slot_of(w, 3, 2));
    wait_for(w, 3, 2);
    mrt_start(w, 3, 3, 3, live, &j); /* one was lost, not two */
    wait_for(w, 4, 3);
    lose(w, slot_of(w, 4, 1));
    wait_for(w, 4, 2);
    mrt_start(w, 4, 4, 3, live, &j);
    usleep(1000000);
    MRT_STR(w->ranks[4].text, "");
    MRT_EQ(in_worlds_of(w, 5, 2), 2);
    wait_for(w, 5, 3);
    end_all(w, 5, 3);
}

static void too_few(void **state)
{
    (void)state;
    mrt_worlds *w = mrt_worlds_new();
    const job j = {.min = 3, .max = 4, .expected = 3, .settle_s = 0.1, .meet_s = 1};
    mrt_start_all(w, 2, live, &j);
    mrt_wait_all(w, 2);
    for (uint32_t k = 0; k < 2; k++) mrt_said(w, k, MR_EPEER, "");
    MRT_TRUE(strstr(w->ranks[0].text, "2 of at least 3 processes") ||
             strstr(w->ranks[1].text, "2 of at least 3"));
    mrt_worlds_free(w);
}

static void settings_that_make_no_sense(void **state)
{
    (void)state;
    static const job bad[] = {{0, 4, 0, 1, 1, 0, 0, NULL},
                              {3, 2, 0, 1, 1, 0, 0, NULL},
                              {1, 257, 0, 1, 1, 0, 0, NULL},
                              {1, 4, 0, -1, 1, 0, 0, NULL},
                              {1, 4, 0, 1, 0, 0, 0, NULL},
                              {1, 4, 0, 1, 1, 1, -1, NULL},
                              {1, 4, 0, 1, 1, 0, 0, "15 bytes or few"}};
    mrt_worlds w = {.meet = "127.0.0.1:1"};
    for (size_t k = 0; k < sizeof bad / sizeof *bad; k++) {
        mr_error err = MR_ERROR_INIT;
        MRT_TRUE(open_muster(&w, &bad[k], &err) == NULL);
        MRT_EQ(err.code, MR_EINVAL);
    }
}

/* Comes to the guests' listener with this token and stays until it has been seen; then it goes, and is seen
 * to. */
static void come_and_go(mri_guests *g, uint64_t token)
{
    uint8_t out[MRI_WIRE_SMALL_BYTES];
    mri_wire_muster me = {.token = token, .port = 1, .host = "here"};
    struct sockaddr_in to;
    socklen_t bytes = sizeof to;
    MRT_EQ(getsockname(g->listeners[0], (struct sockaddr *)&to, &bytes), 0);
    const int fd = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);
    MRT_EQ(connect(fd, (struct sockaddr *)&to, bytes), 0);
    mri_link link;
    mri_link_init(&link, fd, MRI_WIRE_SMALL_BYTES);
    memcpy(me.key, g->key, sizeof me.key);
    MRT_EQ(mri_link_send(&link, MRI_WIRE_MUSTER, out, mri_wire_put_muster(out, &me)), MR_OK);
    while (atomic_load(&g->here) == 0) mri_guests_serve(g, true, NULL, 0, 1000);
    mri_link_fini(&link);
    while (atomic_load(&g->here) > 0) mri_guests_look(g);
}

/* A guest asks again every few seconds. A host that waited anew each time would wait for ever. */
static void asking_again_is_nothing_new(void **state)
{
    (void)state;
    mri_guests g;
    mr_error err = MR_ERROR_INIT;
    const uint8_t key[MRI_WIRE_KEY_BYTES] = {7};
    struct sockaddr_in any = {.sin_family = AF_INET, .sin_addr.s_addr = htonl(INADDR_LOOPBACK)};
    const mri_secret no_secret = {.set = false};
    MRT_OK(mri_guests_init(&g, key, &no_secret, &err), &err);
    g.listeners[0] = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0);
    MRT_EQ(bind(g.listeners[0], (struct sockaddr *)&any, sizeof any), 0);
    MRT_EQ(listen(g.listeners[0], 8), 0);
    come_and_go(&g, 1);
    const uint64_t first = g.changed_ns;
    MRT_TRUE(first > 0);
    come_and_go(&g, 1);
    MRT_EQ(g.changed_ns, first);
    come_and_go(&g, 2);
    MRT_TRUE(g.changed_ns > first);
    mri_guests_fini(&g);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(whoever_is_lost_the_rest_goes_on),
        cmocka_unit_test(down_to_one_and_up_again),
        cmocka_unit_test(several_at_once),
        cmocka_unit_test(stopped_and_back),
        cmocka_unit_test(a_spare_one),
        cmocka_unit_test(left_out_for_a_while),
        cmocka_unit_test(asking_again_is_nothing_new),
        cmocka_unit_test(too_few),
        cmocka_unit_test(settings_that_make_no_sense),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
