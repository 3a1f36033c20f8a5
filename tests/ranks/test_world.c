/* Worlds of several sizes: every call with every kind of length, on both channels at once. */
#include <pthread.h>
#include <time.h>
#include <unistd.h>

#include "base/random.h"
#include "worlds.h"

static const uint32_t sizes[] = {1, 2, 3, 5, 7};

static uint32_t draw(uint64_t key, uint32_t a, uint32_t b)
{
    return mri_philox4x32(key, (uint64_t)a << 32 | b, 0).v[0];
}

/* Bytes from rank a to rank b in round i: often none, rarely much. */
static size_t length(uint32_t i, uint32_t channel, uint32_t a, uint32_t b)
{
    const uint32_t word = draw(1000 + i * 2 + channel, a, b);
    switch (word % 5) {
    case 0: return 0;
    case 1: return 1 + word / 5 % 16;
    case 2:
    case 3: return word / 5 % 70000;
    default: return i % 4 == 3 ? word / 5 % (3u << 20) : word / 5 % 3000;
    }
}

static void fill(uint8_t *out, size_t bytes, uint32_t i, uint32_t channel, uint32_t a, uint32_t b)
{
    mrt_noise(out, bytes, (uint64_t)i << 40 | (uint64_t)channel << 32 | a << 16 | b);
}

typedef struct talker {
    mr_world *world;
    mrt_rank *r;
    uint32_t channel;
    uint64_t sent;
    int rc;
} talker;

static int exchange_once(talker *t, uint32_t i)
{
    const uint32_t size = mr_world_size(t->world), rank = mr_world_rank(t->world);
    mr_world_piece send[MRT_RANKS_MOST] = {{NULL, 0}}, receive[MRT_RANKS_MOST] = {{NULL, 0}};
    mr_error err = MR_ERROR_INIT;
    for (uint32_t r = 0; r < size; r++) {
        send[r].bytes = length(i, t->channel, rank, r);
        receive[r].bytes = length(i, t->channel, r, rank);
        send[r].data = malloc(send[r].bytes + 1);
        receive[r].data = calloc(1, receive[r].bytes + 1);
        fill(send[r].data, send[r].bytes, i, t->channel, rank, r);
        if (r != rank) t->sent += send[r].bytes;
    }
    const int rc = mrt_keep(t->r, mr_world_exchange(t->world, t->channel, send, receive, &err), &err);
    for (uint32_t r = 0; r < size; r++) {
        uint8_t *want = malloc(receive[r].bytes + 1);
        fill(want, receive[r].bytes, i, t->channel, r, rank);
        MRT_CHECK(t->r, r == rank || memcmp(want, receive[r].data, receive[r].bytes) == 0);
        MRT_CHECK(t->r, ((uint8_t *)receive[r].data)[receive[r].bytes] == 0);
        free(want);
        free(send[r].data);
        free(receive[r].data);
    }
    return rc;
}

static int others_once(talker *t, uint32_t i)
{
    const uint32_t size = mr_world_size(t->world), rank = mr_world_rank(t->world),
                   root = draw(i, 0, 0) % size;
    const size_t bytes = i % 3 == 0 ? 0 : draw(i, 1, t->channel) % 100000;
    uint8_t *data = malloc(bytes + 1), *want = malloc(bytes + 1), *all = malloc(size * bytes + 1);
    mr_error err = MR_ERROR_INIT;
    fill(want, bytes, i, t->channel, root, 99);
    memset(data, 0, bytes + 1);
    if (rank == root) memcpy(data, want, bytes);
    int rc = mr_world_broadcast(t->world, t->channel, data, bytes, root, &err);
    MRT_CHECK(t->r, memcmp(data, want, bytes) == 0);
    fill(data, bytes, i, t->channel, rank, 98);
    if (rc == MR_OK) rc = mr_world_gather(t->world, t->channel, data, bytes, all, &err);
    for (uint32_t r = 0; r < size; r++) {
        fill(want, bytes, i, t->channel, r, 98);
        MRT_CHECK(t->r, memcmp(all + r * bytes, want, bytes) == 0);
    }
    if (rc == MR_OK) rc = mr_world_barrier(t->world, t->channel, &err);
    free(data);
    free(want);
    free(all);
    return mrt_keep(t->r, rc, &err);
}

static void *talk(void *arg)
{
    talker *t = arg;
    for (uint32_t i = 0; i < (MRT_SANITIZED ? 9 : 24) && t->rc == MR_OK; i++) {
        t->rc = exchange_once(t, i);
        if (t->rc == MR_OK) t->rc = others_once(t, i);
    }
    return NULL;
}

/* Both channels at once, one from a thread of its own. */
static void talks(mrt_worlds *w, uint32_t slot, uint32_t rank, uint32_t size, const void *what)
{
    (void)what;
    mrt_rank *r = &w->ranks[slot], second = {.rc = MR_OK};
    mr_world *world = mrt_open(w, slot, rank, size, 0);
    if (!world) return;
    talker one = {.world = world, .r = r}, two = {.world = world, .r = &second, .channel = 1};
    pthread_t thread;
    MRT_CHECK(r, pthread_create(&thread, NULL, talk, &two) == 0);
    talk(&one);
    pthread_join(thread, NULL);
    MRT_CHECK(r, one.rc == MR_OK && two.rc == MR_OK && !second.wrong[0]);
    MRT_CHECK(r, mr_world_rank(world) == rank && mr_world_size(world) == size);
    char host[64] = "";
    gethostname(host, sizeof host - 1);
    for (uint32_t k = 0; k < size; k++) MRT_CHECK(r, strcmp(mr_world_host(world, k), host) == 0);
    MRT_CHECK(r, mr_world_host(world, size)[0] == '\0');
    MRT_CHECK(r, strcmp(mr_world_wires(world), mrt_wires(size)) == 0);
    MRT_CHECK(r, !mr_world_wire_note(world, host, sizeof host));
    uint64_t sent = 0, received = 0;
    mr_world_traffic(world, &sent, &received);
    MRT_CHECK(r, sent >= one.sent + two.sent && (size == 1) == (received == 0));
    mr_world_close(world);
}

static void all_sizes_talk_on_both_channels(void **state)
{
    (void)state;
    for (size_t i = 0; i < sizeof sizes / sizeof *sizes; i++) {
        mrt_worlds *w = mrt_worlds_new();
        mrt_start_all(w, sizes[i], talks, NULL);
        mrt_wait_all(w, sizes[i]);
        for (uint32_t r = 0; r < sizes[i]; r++) mrt_said(w, r, MR_OK, "");
        mrt_worlds_free(w);
    }
}

/* Rank 0 comes late to the barrier and says when; nobody may be through before. */
static void waits_at_barrier(mrt_worlds *w, uint32_t slot, uint32_t rank, uint32_t size, const void *what)
{
    (void)what;
    mr_world *world = mrt_open(w, slot, rank, size, 0);
    mr_error err = MR_ERROR_INIT;
    if (!world) return;
    for (int i = 0; i < 20; i++) {
        const uint32_t late = (uint32_t)i % size;
        if (rank == late) {
            nanosleep(&(struct timespec){0, 2000000}, NULL);
            atomic_store(&w->flag, i + 1);
        }
        if (mrt_keep(&w->ranks[slot], mr_world_barrier(world, 1, &err), &err) != MR_OK) break;
        MRT_CHECK(&w->ranks[slot], atomic_load(&w->flag) >= i + 1);
    }
    mr_world_close(world);
}

static void a_barrier_holds_all(void **state)
{
    (void)state;
    mrt_worlds *w = mrt_worlds_new();
    mrt_start_all(w, 6, waits_at_barrier, NULL);
    mrt_wait_all(w, 6);
    for (uint32_t r = 0; r < 6; r++) mrt_said(w, r, MR_OK, "");
    mrt_worlds_free(w);
}

/* mine is its own place in all; no bytes at all between some. */
static void gathers_in_place(mrt_worlds *w, uint32_t slot, uint32_t rank, uint32_t size, const void *what)
{
    (void)what;
    uint32_t all[MRT_RANKS_MOST] = {0};
    mr_error err = MR_ERROR_INIT;
    mr_world *world = mrt_open(w, slot, rank, size, 0);
    if (!world) return;
    all[rank] = 100 + rank;
    mrt_keep(&w->ranks[slot], mr_world_gather(world, 0, &all[rank], sizeof *all, all, &err), &err);
    for (uint32_t r = 0; r < size; r++) MRT_CHECK(&w->ranks[slot], all[r] == 100 + r);
    uint64_t sent = 0, received = 0;
    mr_world_traffic(world, &sent, &received);
    MRT_CHECK(&w->ranks[slot], sent == 4 * (size - 1) && received == sent);
    mr_world_close(world);
}

static void a_gather_may_be_in_place(void **state)
{
    (void)state;
    mrt_worlds *w = mrt_worlds_new();
    mrt_start_all(w, 4, gathers_in_place, NULL);
    mrt_wait_all(w, 4);
    for (uint32_t r = 0; r < 4; r++) mrt_said(w, r, MR_OK, "");
    mrt_worlds_free(w);
}

static void one_alone_needs_nobody(void **state)
{
    (void)state;
    mr_error err = MR_ERROR_INIT, why = MR_ERROR_INIT;
    mr_world_config cfg;
    mr_world *w = NULL;
    int value = 7, all = 0;
    mr_world_defaults(&cfg);
    MRT_OK(mr_world_open(&w, &cfg, &err), &err);
    MRT_OK(mr_world_exchange(w, 0, NULL, NULL, &err), &err);
    MRT_OK(mr_world_broadcast(w, 0, &value, sizeof value, 0, &err), &err);
    MRT_OK(mr_world_gather(w, 1, &value, sizeof value, &all, &err), &err);
    MRT_OK(mr_world_barrier(w, 1, &err), &err);
    MRT_EQ(all, 7);
    mr_error_set(&why, MR_EIO, "the disk is full");
    mr_world_abort(w, &why);
    mr_world_abort(w, NULL);
    MRT_EQ(mr_world_barrier(w, 0, &err), MR_EPEER);
    MRT_HAS(err.text, "gave up");
    MRT_HAS(err.text, "the disk is full");
    mr_world_close(w);
    mr_world_close(NULL);
}

static void settings_that_make_no_sense(void **state)
{
    (void)state;
    static const struct {
        mr_world_config cfg;
        int rc;
        const char *said;
    } wrong[] = {
        {{.rank = 0, .size = 0}, MR_EINVAL, "0 ranks"},
        {{.rank = 0, .size = 5000}, MR_ELIMIT, "1 to 4096"},
        {{.rank = 2, .size = 2}, MR_EINVAL, "rank 2 of 2"},
        {{.size = 2, .card_bytes = 8}, MR_EINVAL, "a card of 8 bytes"},
        {{.size = 2, .card = "x", .card_bytes = 70000}, MR_ELIMIT, "at most 65536"},
        {{.size = 2, .meet_s = -1}, MR_EINVAL, "meet_s is -1"},
        {{.size = 2, .silence_s = 0.1}, MR_EINVAL, "silence_s is 0.1"},
        {{.size = 2, .meet = "host:"}, MR_EINVAL, "expected HOST:PORT"},
        {{.size = 2, .meet = ":5000"}, MR_EINVAL, "expected HOST:PORT"},
        {{.size = 2, .meet = "h:70000"}, MR_EINVAL, "expected HOST:PORT"},
    };
    for (size_t i = 0; i < sizeof wrong / sizeof *wrong; i++) {
        mr_error err = MR_ERROR_INIT;
        mr_world_config cfg = wrong[i].cfg;
        mr_world *w = (mr_world *)&cfg;
        cfg.struct_size = sizeof cfg;
        if (cfg.meet_s == 0) cfg.meet_s = 1;
        MRT_EQ(mr_world_open(&w, &cfg, &err), wrong[i].rc);
        MRT_HAS(err.text, wrong[i].said);
        MRT_TRUE(w == NULL);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(one_alone_needs_nobody),          cmocka_unit_test(settings_that_make_no_sense),
        cmocka_unit_test(all_sizes_talk_on_both_channels), cmocka_unit_test(a_barrier_holds_all),
        cmocka_unit_test(a_gather_may_be_in_place),
    };
    return mrt_run(tests);
}
