/* tests/cuda_emu/test_emu_nccl.c: the emulated NCCL with 1, 2 and 7 devices, its rules broken once each, a
 * collective that hangs until it is aborted, and communicators of 2 to 4 processes when one dies. */
#include <math.h>
#include <nccl.h>
#include <pthread.h>
#include <signal.h>

#include "tests/cuda_emu/test_emu_place.h"

#define COUNT 1001

static const int counts[] = {1, 2, 7};

struct ranks {
    int count;
    ncclComm_t comm[PLACES];
    float *in[PLACES], *out[PLACES];
};

static void fill(struct ranks *r)
{
    for (int i = 0; i < r->count; i++) {
        uint64_t seed = (uint64_t)i + 1;
        for (int k = 0; k < COUNT; k++) r->in[i][k] = 0.1f * test_number(&seed); /* sums must round */
        memset(r->out[i], 0xFF, COUNT * sizeof(float));
    }
}

static void ranks_open(struct ranks *r, int count)
{
    *r = (struct ranks){.count = count};
    MRT_EQ(ncclCommInitAll(r->comm, count, NULL), ncclSuccess);
    for (int i = 0; i < count; i++) {
        r->in[i] = place_alloc(i, COUNT * sizeof(float));
        r->out[i] = place_alloc(i, COUNT * sizeof(float));
    }
    fill(r);
}

static void ranks_sync(const struct ranks *r)
{
    for (int i = 0; i < r->count; i++) place_sync(i);
}

static void ranks_close(struct ranks *r)
{
    for (int i = 0; i < r->count; i++) {
        MRT_EQ(ncclCommDestroy(r->comm[i]), ncclSuccess);
        place_free(i, r->in[i]);
        place_free(i, r->out[i]);
    }
}

/* One sum of everyone's in[] into to[]. */
static ncclResult_t sum(struct ranks *r, float *const *to)
{
    MRT_EQ(ncclGroupStart(), ncclSuccess);
    for (int i = 0; i < r->count; i++)
        MRT_EQ(ncclAllReduce(r->in[i], to[i], COUNT, ncclFloat32, ncclSum, r->comm[i], places[i].stream),
               ncclSuccess);
    return ncclGroupEnd();
}

static void sums_are_right_and_the_same_everywhere(void **state)
{
    (void)state;
    for (size_t n = 0; n < 3; n++)
        for (int in_place = 0; in_place < 2; in_place++) {
            struct ranks r;
            ranks_open(&r, counts[n]);
            double exact[COUNT] = {0};
            float straight[COUNT] = {0};
            bool other_order = false;
            for (int i = 0; i < r.count; i++)
                for (size_t k = 0; k < COUNT; k++) {
                    exact[k] += (double)r.in[i][k];
                    straight[k] += r.in[i][k];
                }
            float *const *to = in_place ? r.in : r.out;
            MRT_EQ(sum(&r, to), ncclSuccess);
            ranks_sync(&r);
            for (size_t k = 0; k < COUNT; k++) {
                MRT_TRUE(fabs((double)to[0][k] - exact[k]) < 1e-5);
                other_order = other_order || to[0][k] != straight[k];
            }
            for (int i = 1; i < r.count; i++) MRT_TRUE(memcmp(to[0], to[i], COUNT * sizeof(float)) == 0);
            MRT_EQ(other_order, counts[n] == 7); /* two numbers have one sum */
            ranks_close(&r);
        }
    MRT_EQ(emu_violations(), 0);
}

static void broadcasts_copy(void **state)
{
    (void)state;
    for (size_t n = 0; n < 3; n++) {
        struct ranks r;
        ranks_open(&r, counts[n]);
        const int root = r.count - 1;
        MRT_EQ(ncclGroupStart(), ncclSuccess);
        MRT_EQ(ncclGroupStart(), ncclSuccess); /* groups nest */
        for (int i = 0; i < r.count; i++)
            MRT_EQ(ncclBroadcast(i == root ? r.in[i] : NULL, i == root ? r.in[i] : r.out[i], COUNT,
                                 ncclFloat32, root, r.comm[i], places[i].stream),
                   ncclSuccess);
        MRT_EQ(ncclGroupEnd(), ncclSuccess);
        MRT_EQ(ncclGroupEnd(), ncclSuccess);
        ranks_sync(&r);
        for (int i = 0; i < root; i++) MRT_TRUE(memcmp(r.out[i], r.in[root], COUNT * sizeof(float)) == 0);
        ranks_close(&r);
    }
    MRT_EQ(emu_violations(), 0);
}

/* Two collectives in one group, given device after device: the n-th call of each rank belongs together. */
static void calls_are_matched_by_their_order(void **state)
{
    (void)state;
    struct ranks r;
    ranks_open(&r, 2);
    const float a = r.in[0][0], b = r.in[1][0], c = r.in[0][500], d = r.in[1][500];
    MRT_EQ(ncclGroupStart(), ncclSuccess);
    for (int i = 0; i < 2; i++) {
        MRT_EQ(ncclAllReduce(r.in[i], r.out[i], 1, ncclFloat32, ncclSum, r.comm[i], places[i].stream),
               ncclSuccess);
        MRT_EQ(ncclAllReduce(r.in[i] + 500, r.out[i] + 500, 2, ncclFloat32, ncclSum, r.comm[i],
                             places[i].stream),
               ncclSuccess);
    }
    MRT_EQ(ncclGroupEnd(), ncclSuccess);
    MRT_EQ(ncclCommDestroy(r.comm[0]), ncclSuccess); /* waits for queued operations */
    MRT_TRUE(r.out[1][0] == a + b && r.out[1][500] == c + d);
    MRT_EQ(ncclCommDestroy(r.comm[1]), ncclSuccess);
    MRT_EQ(ncclCommInitAll(r.comm, 2, NULL), ncclSuccess);
    ranks_close(&r);
    MRT_EQ(emu_violations(), 0);
}

static void devices_are_checked(void **state)
{
    (void)state;
    ncclComm_t comm[8];
    const int twice[] = {3, 3}, beyond[] = {0, 7}, negative[] = {-1}, turned[] = {4, 2};
    MRT_EQ(ncclCommInitAll(comm, 2, twice), ncclInvalidUsage);
    MRT_EQ(ncclCommInitAll(comm, 2, beyond), ncclInvalidArgument);
    MRT_EQ(ncclCommInitAll(comm, 1, negative), ncclInvalidArgument);
    MRT_EQ(ncclCommInitAll(comm, 8, NULL), ncclInvalidArgument);
    MRT_EQ(ncclCommInitAll(comm, -1, NULL), ncclInvalidArgument);
    MRT_EQ(ncclCommInitAll(NULL, 2, NULL), ncclInvalidArgument);
    MRT_EQ(ncclCommInitAll(comm, 2, turned), ncclSuccess);
    ncclResult_t error = ncclInternalError;
    MRT_EQ(ncclCommGetAsyncError(comm[0], &error), ncclSuccess);
    MRT_EQ(error, ncclSuccess);
    for (int i = 0; i < 2; i++) MRT_EQ(ncclCommDestroy(comm[i]), ncclSuccess);
    CAUGHT(MRT_EQ(ncclCommDestroy(comm[0]), ncclInvalidArgument));
    CAUGHT(MRT_EQ(ncclCommGetAsyncError(comm[0], &error), ncclInvalidArgument));
    MRT_EQ(ncclCommDestroy(NULL), ncclSuccess);
}

static ncclResult_t reduce(struct ranks *r, int rank, const float *in, float *out, size_t count, int stream)
{
    return ncclAllReduce(in, out, count, ncclFloat32, ncclSum, r->comm[rank], places[stream].stream);
}

/* A call in a group of two ranks that is wrong: it says so, and the group does nothing. */
#define SPOILT(call, status)                                                                                 \
    do {                                                                                                     \
        MRT_EQ(ncclGroupStart(), ncclSuccess);                                                               \
        MRT_EQ(reduce(&r, 0, r.in[0], r.out[0], COUNT, 0), ncclSuccess);                                     \
        CAUGHT(MRT_EQ(call, status));                                                                        \
        MRT_EQ(ncclGroupEnd(), status);                                                                      \
    } while (0)

static void calls_are_checked(void **state)
{
    (void)state;
    struct ranks r;
    ranks_open(&r, 2);
    CAUGHT(MRT_EQ(reduce(&r, 0, r.in[0], r.out[0], COUNT, 0), ncclInvalidUsage)); /* outside a group */
    MRT_EQ(ncclGroupEnd(), ncclInvalidUsage);
    SPOILT(reduce(&r, 1, r.in[1], r.out[1], COUNT, 0), ncclInvalidArgument); /* stream of another device */
    SPOILT(reduce(&r, 1, r.in[0], r.out[1], COUNT, 1), ncclInvalidArgument); /* memory of another device */
    SPOILT(reduce(&r, 1, r.in[1], r.out[1] + 1, COUNT, 1), ncclInvalidArgument);    /* past the end */
    SPOILT(reduce(&r, 1, r.in[1], r.in[1] + 1, COUNT - 1, 1), ncclInvalidArgument); /* half overlapping */
    SPOILT(ncclAllReduce(r.in[1], r.out[1], COUNT, ncclFloat16, ncclSum, r.comm[1], places[1].stream),
           ncclInvalidArgument);

    const struct {
        size_t count; /* of rank 1; 0: it does not take part */
    } wrong[] = {{0}, {COUNT - 1}};
    for (size_t i = 0; i < 2; i++) {
        MRT_EQ(ncclGroupStart(), ncclSuccess);
        MRT_EQ(reduce(&r, 0, r.in[0], r.out[0], COUNT, 0), ncclSuccess);
        if (wrong[i].count > 0) MRT_EQ(reduce(&r, 1, r.in[1], r.out[1], wrong[i].count, 1), ncclSuccess);
        CAUGHT(MRT_EQ(ncclGroupEnd(), ncclInvalidUsage));
    }
    MRT_EQ(ncclGroupStart(), ncclSuccess); /* two roots */
    for (int i = 0; i < 2; i++)
        MRT_EQ(ncclBroadcast(r.in[i], r.out[i], COUNT, ncclFloat32, i, r.comm[i], places[i].stream),
               ncclSuccess);
    CAUGHT(MRT_EQ(ncclGroupEnd(), ncclInvalidUsage));
    MRT_EQ(ncclGroupStart(), ncclSuccess);
    MRT_EQ(ncclBroadcast(r.in[0], r.out[0], COUNT, ncclFloat32, 2, r.comm[0], places[0].stream),
           ncclInvalidArgument);
    MRT_EQ(ncclGroupEnd(), ncclInvalidArgument);
    const uint64_t before = emu_violations();
    MRT_EQ(sum(&r, r.out), ncclSuccess); /* and none of it stays behind */
    ranks_sync(&r);
    ranks_close(&r);
    MRT_EQ(emu_violations(), before);
}

/* The library waits for graphs that hold a communicator's work before it lets go of it: for ever, in one
 * thread. */
static void a_graph_keeps_its_communicator(void **state)
{
    (void)state;
    for (int early = 0; early < 2; early++) {
        struct ranks r;
        CUgraph graph;
        CUgraphExec launchable;
        ranks_open(&r, 1);
        place_use(0);
        EMUT_MUST(cuStreamBeginCapture(places[0].stream, CU_STREAM_CAPTURE_MODE_THREAD_LOCAL));
        MRT_EQ(sum(&r, r.out), ncclSuccess);
        EMUT_MUST(cuStreamEndCapture(places[0].stream, &graph));
        EMUT_MUST(cuGraphInstantiate(&launchable, graph, 0));
        EMUT_MUST(cuGraphLaunch(launchable, places[0].stream));
        place_sync(0);
        MRT_TRUE(memcmp(r.in[0], r.out[0], COUNT * sizeof(float)) == 0);
        if (early) {
            CAUGHT(MRT_EQ(ncclCommDestroy(r.comm[0]), ncclSuccess));
            MRT_EQ(ncclCommInitAll(r.comm, 1, NULL), ncclSuccess);
        }
        EMUT_MUST(cuGraphExecDestroy(launchable));
        EMUT_MUST(cuGraphDestroy(graph));
        const uint64_t before = emu_violations();
        ranks_close(&r);
        MRT_EQ(emu_violations(), before);
    }
}

/* ---- a collective that hangs, in a process of its own ---- */

static ncclComm_t stuck[2];

static void *abort_both(void *unused)
{
    (void)unused;
    usleep(20000);
    for (int i = 0; i < 2; i++) EMUT_CHECK(ncclCommAbort(stuck[i]) == ncclSuccess);
    return NULL;
}

static void hang_and_abort(void)
{
    places_open(NULL);
    struct ranks r;
    ranks_open(&r, 2);
    memcpy(stuck, r.comm, sizeof stuck);
    EMUT_CHECK(sum(&r, r.out) == ncclSuccess);
    pthread_t thread;
    EMUT_CHECK(pthread_create(&thread, NULL, abort_both, NULL) == 0);
    ranks_sync(&r); /* comes back because of the abort */
    EMUT_CHECK(pthread_join(thread, NULL) == 0);
    EMUT_CHECK(emu_bits(r.out[0][0]) == 0xFFFFFFFFu); /* nothing was summed */
    for (int i = 0; i < 2; i++) {
        place_free(i, r.in[i]);
        place_free(i, r.out[i]);
    }
    places_close(NULL);
}

static void a_hanging_sum_ends_when_it_is_aborted(void **state)
{
    (void)state;
    char text[1024];
    const int status = emut_run(
        hang_and_abort, "MILLRACE_EMU_DEVICES=7 MILLRACE_EMU_HANG=ncclAllReduce MILLRACE_EMU_VIOLATION=abort",
        text, sizeof text);
    if (status != 0) fprintf(stderr, "status %d: %s\n", status, text);
    MRT_EQ(status, 0);
}

/* ---- ranks in processes of their own: rank r has GPU r ---- */

enum { LOST = 1 }; /* the rank that dies */

static void settled(ncclComm_t comm)
{
    ncclResult_t now = ncclInProgress;
    while (now == ncclInProgress) {
        EMUT_CHECK(ncclCommGetAsyncError(comm, &now) == ncclSuccess);
        if (now == ncclInProgress) usleep(100);
    }
    EMUT_CHECK(now == ncclSuccess);
}

static void begun(ncclComm_t comm, ncclResult_t rc)
{
    EMUT_CHECK(rc == ncclSuccess || rc == ncclInProgress);
    settled(comm);
}

static ncclComm_t join(ncclUniqueId id, int rank, int ranks)
{
    ncclComm_t comm = NULL;
    ncclConfig_t config = NCCL_CONFIG_INITIALIZER;
    config.blocking = 0;
    place_use(rank);
    const ncclResult_t rc = ncclCommInitRankConfig(&comm, ranks, id, rank, &config);
    begun(comm, rc);
    return comm;
}

static float value_of(int rank, int i) { return 0.1f * (float)(rank + 1) + 0.001f * (float)i; }

/* Everyone's values to the next rank, then their sum, then rank 1's to all. */
static void trade(ncclComm_t comm, int rank, int ranks)
{
    const int next = (rank + 1) % ranks, before = (rank + ranks - 1) % ranks;
    CUstream stream = places[rank].stream;
    float *mine = place_alloc(rank, COUNT * sizeof *mine), *got = place_alloc(rank, COUNT * sizeof *got),
          *all = place_alloc(rank, COUNT * sizeof *all);
    for (int i = 0; i < COUNT; i++) mine[i] = all[i] = value_of(rank, i);
    EMUT_CHECK(ncclGroupStart() == ncclSuccess);
    EMUT_CHECK(ncclSend(mine, COUNT, ncclFloat, next, comm, stream) == ncclSuccess);
    EMUT_CHECK(ncclRecv(got, COUNT, ncclFloat, before, comm, stream) == ncclSuccess);
    begun(comm, ncclGroupEnd());
    begun(comm, ncclAllReduce(all, all, COUNT, ncclFloat, ncclSum, comm, stream));
    begun(comm, ncclBroadcast(mine, mine, COUNT, ncclFloat, 1, comm, stream));
    place_sync(rank);
    for (int i = 0; i < COUNT; i++) {
        float sum = value_of(1 % ranks, i);
        for (int r = 2; r <= ranks; r++) sum += value_of(r % ranks, i);
        EMUT_CHECK(got[i] == value_of(before, i) && all[i] == sum && mine[i] == value_of(1, i));
    }
    place_free(rank, mine);
    place_free(rank, got);
    place_free(rank, all);
}

static void live(ncclUniqueId id, int rank, int ranks)
{
    places_open(NULL);
    ncclComm_t comm = join(id, rank, ranks);
    for (int k = 0; k < 3; k++) trade(comm, rank, ranks);
    begun(comm, ncclCommFinalize(comm));
    EMUT_CHECK(ncclCommDestroy(comm) == ncclSuccess);
    places_close(NULL);
}

/* One dies before the second sum: the sum of the others does not end before they give it up. */
static void lose(ncclUniqueId id, int rank, int ranks)
{
    const bool reported = getenv("MILLRACE_EMU_PEER_LOST") != NULL;
    ncclResult_t now = ncclSuccess;
    places_open(NULL);
    ncclComm_t comm = join(id, rank, ranks);
    trade(comm, rank, ranks);
    if (rank == LOST) raise(SIGKILL);
    float *all = place_alloc(rank, COUNT * sizeof *all);
    const ncclResult_t rc = ncclAllReduce(all, all, COUNT, ncclFloat, ncclSum, comm, places[rank].stream);
    if (!reported) begun(comm, rc);
    while (reported && now != ncclRemoteError) EMUT_CHECK(ncclCommGetAsyncError(comm, &now) == ncclSuccess);
    EMUT_CHECK(reported ? now == ncclRemoteError
                        : cuStreamQuery(places[rank].stream) == CUDA_ERROR_NOT_READY);
    EMUT_CHECK(ncclCommAbort(comm) == ncclSuccess);
    place_sync(rank);
    place_free(rank, all);
    places_close(NULL);
}

static void run_ranks(void (*life)(ncclUniqueId, int, int), int ranks)
{
    ncclUniqueId id;
    pid_t pids[4];
    int status;
    EMUT_CHECK(ncclGetUniqueId(&id) == ncclSuccess);
    for (int r = 0; r < ranks; r++) {
        pids[r] = fork();
        if (pids[r] == 0) {
            life(id, r, ranks);
            _exit(0);
        }
    }
    for (int r = 0; r < ranks; r++) {
        EMUT_CHECK(waitpid(pids[r], &status, 0) == pids[r]);
        EMUT_CHECK(life == lose && r == LOST ? WIFSIGNALED(status) : status == 0);
    }
}

static void two_live(void) { run_ranks(live, 2); }
static void four_live(void) { run_ranks(live, 4); }
static void three_lose_one(void) { run_ranks(lose, 3); }

static void ranks_in_processes(void **state)
{
    (void)state;
    static const struct {
        void (*program)(void);
        const char *settings;
    } runs[] = {{two_live, ""},
                {four_live, ""},
                {three_lose_one, ""},
                {three_lose_one, " MILLRACE_EMU_PEER_LOST=report"}};
    for (size_t i = 0; i < sizeof runs / sizeof *runs; i++)
        for (int seed = 1; seed <= 4; seed++) {
            char text[1024], settings[128];
            snprintf(settings, sizeof settings,
                     "MILLRACE_EMU_DEVICES=7 MILLRACE_EMU_VIOLATION=abort MILLRACE_EMU_SEED=%d%s", seed,
                     runs[i].settings);
            const int status = emut_run(runs[i].program, settings, text, sizeof text);
            if (status != 0)
                fprintf(stderr, "run %zu, seed %d: status %x: %s\n", i, seed, (unsigned)status, text);
            MRT_EQ(status, 0);
        }
}

int main(void)
{
    const struct CMUnitTest child[] = {cmocka_unit_test(a_hanging_sum_ends_when_it_is_aborted),
                                       cmocka_unit_test(ranks_in_processes)};
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(sums_are_right_and_the_same_everywhere),
        cmocka_unit_test(broadcasts_copy),
        cmocka_unit_test(calls_are_matched_by_their_order),
        cmocka_unit_test(devices_are_checked),
        cmocka_unit_test(calls_are_checked),
        cmocka_unit_test(a_graph_keeps_its_communicator),
    };
    const int failed = mrt_run(child); /* first: the environment is read once */
    setenv("MILLRACE_EMU_DEVICES", "7", 1);
    setenv("MILLRACE_EMU_VIOLATION", "count", 1);
    return failed + cmocka_run_group_tests(tests, places_open, places_close);
}
