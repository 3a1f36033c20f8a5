/* The meeting: who is refused and why, strangers, and other jobs at the same ports. */
#include <arpa/inet.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <sys/socket.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#include "ranks/meet_place.h"
#include "worlds.h"

#define SECRET "the secret of these tests' ranks"

static void pause_ms(long ms) { nanosleep(&(struct timespec){ms / 1000, ms % 1000 * 1000000}, NULL); }

typedef struct settings { /* of one rank; unset members are the test's */
    const char *card, *job, *meet;
    size_t card_bytes;
    double meet_s;
    bool by_launcher; /* job and meet as the environment says */
    const char *secret;
} settings;

static void meets(mrt_worlds *w, uint32_t slot, uint32_t rank, uint32_t size, const void *what)
{
    const settings *s = what;
    mrt_rank *me = &w->ranks[slot];
    mr_error err = MR_ERROR_INIT;
    mr_world *world = NULL;
    mr_world_config cfg;
    uint32_t all[MRT_RANKS_MOST] = {0};
    mr_world_defaults(&cfg);
    cfg.rank = rank;
    cfg.size = size;
    cfg.meet = s->by_launcher ? NULL : s->meet ? s->meet : w->meet;
    cfg.job = s->by_launcher ? NULL : s->job ? s->job : "test";
    cfg.card = s->card;
    cfg.card_bytes = s->card_bytes ? s->card_bytes : s->card ? strlen(s->card) : 0;
    if (s->meet_s > 0) cfg.meet_s = s->meet_s;
    cfg.secret = s->secret;
    cfg.secret_bytes = s->secret ? strlen(s->secret) : 0;
    if (mrt_keep(me, mr_world_open(&world, &cfg, &err), &err) != MR_OK) return;
    atomic_store(&me->mark, 1);
    const uint32_t mine = 1000 + slot;
    mrt_keep(me, mr_world_gather(world, 0, &mine, sizeof mine, all, &err), &err);
    for (uint32_t r = 0; r < size; r++)
        MRT_CHECK(me, all[r] == 1000 + slot - rank + r); /* slots are in order */
    mr_world_close(world);
}

static void different_cards_are_told(void **state)
{
    (void)state;
    static const settings zero = {.card = "version 5\nbatch 128\nseed 1\n"},
                          other = {.card = "version 5\nbatch 64\nseed 2\n"};
    mrt_worlds *w = mrt_worlds_new();
    mrt_start(w, 0, 0, 4, meets, &zero);
    mrt_start(w, 1, 1, 4, meets, &zero);
    mrt_start(w, 2, 2, 4, meets, &zero);
    mrt_start(w, 3, 3, 4, meets, &other);
    mrt_wait_all(w, 4);
    for (uint32_t r = 0; r < 4; r++) {
        mrt_said(w, r, MR_EINVAL, "rank 3 (host ");
        mrt_said(w, r, MR_EINVAL, "has 'batch 64', rank 0 (host ");
        mrt_said(w, r, MR_EINVAL, "has 'batch 128'");
    }
    mrt_worlds_free(w);
}

static void a_large_card_is_right(void **state)
{
    (void)state;
    char *card = malloc(65536);
    mrt_noise(card, 65536, 3);
    for (int with = 0; with < 2; with++) {
        const settings all = {.card = card, .card_bytes = 65536, .secret = with ? SECRET : NULL};
        mrt_worlds *w = mrt_worlds_new();
        mrt_start_all(w, 3, meets, &all);
        mrt_wait_all(w, 3);
        for (uint32_t r = 0; r < 3; r++) mrt_said(w, r, MR_OK, "");
        mrt_worlds_free(w);
    }
    free(card);
}

/* One of two has another secret, or none, or is the only one that has one: it is nobody's rank, and both
 * sides say why. */
static void without_the_secret_nobody_takes_part(void **state)
{
    (void)state;
    static const settings with = {.meet_s = 4, .secret = SECRET}, without = {.meet_s = 4},
                          old = {.meet_s = 4, .secret = "the secret of an earlier run"};
    static const struct {
        const settings *zero, *one;
        const char *of_zero, *of_one;
    } cases[] = {
        {&with, &old, "it has another secret", "has another secret"},
        {&with, &without, "it did not prove the secret of the run",
         "have a secret, and this process does not"},
        {&without, &with, "rank 1 did not come", "has no secret, and this process has one"},
    };
    enum { CASES = sizeof cases / sizeof *cases };
    mrt_worlds *w[CASES];
    for (size_t k = 0; k < CASES; k++) {
        w[k] = mrt_worlds_new();
        mrt_start(w[k], 0, 0, 2, meets, cases[k].zero);
        mrt_start(w[k], 1, 1, 2, meets, cases[k].one);
    }
    for (size_t k = 0; k < CASES; k++) {
        mrt_wait_all(w[k], 2);
        mrt_said(w[k], 0, MR_EPEER, "rank 1 did not come");
        mrt_said(w[k], 0, MR_EPEER, cases[k].of_zero);
        mrt_said(w[k], 1, MR_EPEER, cases[k].of_one);
        mrt_worlds_free(w[k]);
    }
}

/* Three processes; the last one's message does not fit: all learn its rank and the reason. */
static void places_that_do_not_fit_are_told(void **state)
{
    (void)state;
    static const settings s = {.card = "x"};
    static const struct {
        uint32_t rank[3], size_of_last;
        const char *said[2];
    } cases[] = {
        {{0, 1, 2}, 4, {"rank 2 (host ", "says that there are 4 ranks"}},
        {{0, 2, 2}, 3, {"two processes say that they are rank 2: one on host ", ""}},
    };
    for (size_t k = 0; k < sizeof cases / sizeof *cases; k++) {
        mrt_worlds *w = mrt_worlds_new();
        for (uint32_t slot = 0; slot < 3; slot++)
            mrt_start(w, slot, cases[k].rank[slot], slot == 2 ? cases[k].size_of_last : 3, meets, &s);
        mrt_wait_all(w, 3);
        for (uint32_t slot = 0; slot < 3; slot++)
            for (int text = 0; text < 2; text++) mrt_said(w, slot, MR_EINVAL, cases[k].said[text]);
        mrt_worlds_free(w);
    }
}

static void missing_ranks_are_named(void **state)
{
    (void)state;
    static const settings zero = {.meet_s = 1}, other = {.meet_s = 60};
    mrt_worlds *w = mrt_worlds_new();
    mrt_start(w, 0, 0, 5, meets, &zero);
    mrt_start(w, 1, 1, 5, meets, &other);
    mrt_start(w, 2, 3, 5, meets, &other);
    mrt_wait_all(w, 3);
    mrt_said(w, 0, MR_EPEER, " did not come to rank 0 (host ");
    mrt_said(w, 0, MR_EPEER, "within 1 s");
    if (w->ranks[1].rc && strstr(w->ranks[1].text, "others")) /* a busy machine can keep a rank away for a
                                                                 second */
        for (uint32_t r = 0; r < 3; r++) mrt_said(w, r, MR_EPEER, "rank 2 and 1 others did not come");
    mrt_worlds_free(w);
}

static void nobody_at_rank_0_is_told(void **state)
{
    (void)state;
    static const settings s = {.meet_s = 0.5};
    mrt_worlds *w = mrt_worlds_new();
    mrt_start(w, 0, 1, 2, meets, &s);
    mrt_wait_all(w, 1);
    mrt_said(w, 0, MR_EPEER, "rank 0 did not answer at 127.0.0.1 port ");
    mrt_said(w, 0, MR_EPEER, "within 0.5 s");
    mrt_worlds_free(w);
}

static void a_name_nobody_has_is_told(void **state)
{
    (void)state;
    static const settings s = {.meet_s = 0.2, .meet = "no-such-host.invalid:5000"};
    mrt_worlds *w = mrt_worlds_new();
    mrt_start(w, 0, 1, 2, meets, &s);
    mrt_wait_all(w, 1);
    mrt_said(w, 0, MR_EPEER, "rank 0 did not answer at no-such-host.invalid port 5000");
    mrt_worlds_free(w);
}

/* ---- strangers ---- */

static int dial(uint16_t port)
{
    const struct sockaddr_in to = {
        .sin_family = AF_INET, .sin_port = htons(port), .sin_addr.s_addr = htonl(INADDR_LOOPBACK)};
    const int fd = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);
    if (connect(fd, (const struct sockaddr *)&to, sizeof to) == 0) return fd;
    close(fd);
    return -1;
}

static int dial_until(uint16_t port)
{
    for (int i = 0; i < 5000; i++) {
        const int fd = dial(port);
        if (fd >= 0) return fd;
        pause_ms(2);
    }
    return -1;
}

/* Silence, nonsense, half a head, a head that promises too much, a message out of turn, all before and among
 * the ranks; more of them than rank 0 has room for. */
static void strangers_come(const settings *s)
{
    enum { STRANGERS = 100 };
    int fds[STRANGERS];
    mrt_worlds *w = mrt_worlds_new();
    const uint16_t port = (uint16_t)atoi(strchr(w->meet, ':') + 1);
    mrt_start(w, 0, 0, 3, meets, s);
    for (int i = 0; i < STRANGERS; i++) {
        uint8_t noise[4096], head[MRI_WIRE_HEAD_BYTES];
        fds[i] = dial_until(port);
        assert_true(fds[i] >= 0);
        mrt_noise(noise, sizeof noise, (uint64_t)i);
        mri_wire_put_head(head, (mri_wire_kind)(1 + i % (MRI_WIRE_KINDS + 1)), i % 2 ? 0xfffffff0u : 30);
        if (i % 5 == 1) (void)!send(fds[i], noise, sizeof noise, MSG_NOSIGNAL);
        if (i % 5 == 2) (void)!send(fds[i], "GET / HTTP/1.1\r\n\r\n", 18, MSG_NOSIGNAL);
        if (i % 5 == 3) (void)!send(fds[i], head, 5, MSG_NOSIGNAL);
        if (i % 5 == 4) {
            (void)!send(fds[i], head, sizeof head, MSG_NOSIGNAL);
            (void)!send(fds[i], noise, 30, MSG_NOSIGNAL);
        }
        if (i == 50) mrt_start(w, 1, 1, 3, meets, s);
        if (i % 7 == 6) {
            close(fds[i]);
            fds[i] = -1;
        }
    }
    mrt_start(w, 2, 2, 3, meets, s);
    mrt_wait_all(w, 3);
    for (uint32_t r = 0; r < 3; r++) mrt_said(w, r, MR_OK, "");
    for (int i = 0; i < STRANGERS; i++)
        if (fds[i] >= 0) close(fds[i]);
    mrt_worlds_free(w);
}

static void strangers_do_no_harm(void **state)
{
    (void)state;
    static const settings without = {.card = "x"}, with = {.card = "x", .secret = SECRET};
    strangers_come(&without);
    strangers_come(&with);
}

/* ---- several jobs ---- */

static void place_of(mri_place *out, const char *job)
{
    mr_world_config cfg;
    mr_error err = MR_ERROR_INIT;
    mr_world_defaults(&cfg);
    cfg.size = 2;
    cfg.job = job;
    cfg.meet = "127.0.0.1";
    MRT_OK(mri_place_find(out, &cfg, &err), &err);
    MRT_EQ(out->port_count, MRI_PLACE_PORTS);
}

/* Two jobs whose first ports are the same one, free now. */
static void jobs_that_collide(char a[32], char b[32])
{
    mri_place first, second;
    for (unsigned seed = (unsigned)getpid();; seed++) {
        snprintf(a, 32, "job %u", seed);
        place_of(&first, a);
        const int fd = dial(first.ports[0]);
        if (fd < 0) break;
        close(fd);
    }
    for (unsigned k = 0;; k++) {
        snprintf(b, 32, "other %u", k);
        place_of(&second, b);
        if (first.ports[0] == second.ports[0]) return;
    }
}

static void jobs_do_not_mix(void **state)
{
    (void)state;
    char a[32], b[32];
    jobs_that_collide(a, b);
    const settings jobs[2] = {{.job = a, .meet = "localhost"}, {.job = b, .meet = "localhost"}};
    mrt_worlds *w = mrt_worlds_new();
    for (uint32_t k = 0; k < 6; k++) mrt_start(w, k, k % 3, 3, meets, &jobs[k / 3]); /* slots 0-2 and 3-5 */
    mrt_wait_all(w, 6);
    for (uint32_t k = 0; k < 6; k++) mrt_said(w, k, MR_OK, "");
    mrt_worlds_free(w);
}

/* Somebody else listens at the job's first port and says nothing, or nonsense. */
static void another_program_at_the_port(void **state)
{
    (void)state;
    static const settings s = {.job = "beside others", .meet = "127.0.0.1"};
    mri_place place;
    place_of(&place, "beside others");
    const struct sockaddr_in at = {
        .sin_family = AF_INET, .sin_port = htons(place.ports[0]), .sin_addr.s_addr = htonl(INADDR_LOOPBACK)};
    const int fd = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0);
    if (bind(fd, (const struct sockaddr *)&at, sizeof at) != 0 || listen(fd, 16) != 0) skip();
    mrt_worlds *w = mrt_worlds_new();
    mrt_start_all(w, 3, meets, &s);
    for (int i = 0; i < 200 && !(w->ranks[0].rc || atomic_load(&w->ranks[0].mark)); i++) {
        const int guest = accept4(fd, NULL, NULL, SOCK_CLOEXEC); /* the second of them hears something */
        if (guest >= 0 && i % 2)
            (void)!send(guest, "220 ready for mail and other things\r\n", 37, MSG_NOSIGNAL);
        pause_ms(5);
    }
    mrt_wait_all(w, 3);
    for (uint32_t r = 0; r < 3; r++) mrt_said(w, r, MR_OK, "");
    close(fd);
    mrt_worlds_free(w);
}

/* ---- where and which job, by the launchers' variables ---- */

static const char *const variables[] = {"OMPI_COMM_WORLD_RANK",
                                        "OMPI_COMM_WORLD_SIZE",
                                        "OMPI_COMM_WORLD_LOCAL_RANK",
                                        "OMPI_COMM_WORLD_LOCAL_SIZE",
                                        "PMIX_NAMESPACE",
                                        "TORCHELASTIC_RUN_ID",
                                        "RANK",
                                        "WORLD_SIZE",
                                        "LOCAL_RANK",
                                        "LOCAL_WORLD_SIZE",
                                        "MASTER_ADDR",
                                        "MASTER_PORT",
                                        "TORCHELASTIC_USE_AGENT_STORE",
                                        "PMI_RANK",
                                        "PMI_SIZE",
                                        "MPI_LOCALRANKID",
                                        "MPI_LOCALNRANKS",
                                        "SLURM_JOB_ID",
                                        "SLURM_STEP_ID",
                                        "SLURM_PROCID",
                                        "SLURM_STEP_NUM_TASKS",
                                        "SLURM_LOCALID",
                                        "SLURM_STEP_NODELIST",
                                        "SLURM_STEP_NUM_NODES",
                                        "SLURM_STEP_TASKS_PER_NODE",
                                        "SLURM_JOB_NODELIST",
                                        "SLURM_NODEID",
                                        "SLURMD_NODENAME",
                                        "SLURM_RESTART_COUNT",
                                        "MILLRACE_HOST_SUFFIX",
                                        "MILLRACE_MEET",
                                        "MILLRACE_JOB",
                                        "MILLRACE_SECRET",
                                        "MILLRACE_SECRET_FILE"};

static void environment(const char *text)
{
    char copy[1024];
    snprintf(copy, sizeof copy, "%s", text);
    for (size_t i = 0; i < sizeof variables / sizeof *variables; i++) unsetenv(variables[i]);
    for (char *at = strtok(copy, " "); at; at = strtok(NULL, " ")) {
        char *value = strchr(at, '=');
        *value = '\0';
        setenv(at, value + 1, 1);
    }
}

static int find(mri_place *out, const char *text, uint32_t size, mr_error *err)
{
    mr_world_config cfg;
    environment(text);
    mr_world_defaults(&cfg);
    cfg.size = size;
    return mri_place_find(out, &cfg, err);
}

#define OMPI                                                                                                 \
    "OMPI_COMM_WORLD_RANK=0 OMPI_COMM_WORLD_SIZE=4 OMPI_COMM_WORLD_LOCAL_RANK=0 OMPI_COMM_WORLD_LOCAL_SIZE="
#define TORCH   "TORCHELASTIC_RUN_ID=j RANK=0 WORLD_SIZE=4 MASTER_ADDR=n7 MASTER_PORT=29500 "
#define STEP_ON "SLURM_JOB_ID=9 SLURM_STEP_ID=0 SLURM_PROCID=0 SLURM_STEP_NUM_TASKS=4 SLURM_STEP_NODELIST="
#define STEP    STEP_ON "n[07-9],m "

static void the_place_is_what_the_launcher_says(void **state)
{
    (void)state;
    static const struct {
        const char *set, *host;
        int port, count; /* the first port, 0: one of the job's */
        bool this_host_only;
    } places[] = {
        {OMPI "4 PMIX_NAMESPACE=a", "127.0.0.1", 0, 8, true},
        {OMPI "2 MILLRACE_MEET=n1:7000", "n1", 7000, 1, false},
        {TORCH, "n7", 0, 8, false},
        {TORCH "TORCHELASTIC_USE_AGENT_STORE=True", "n7", 0, 8, false},
        {TORCH "TORCHELASTIC_USE_AGENT_STORE=False", "n7", 29500, 9, false},
        {TORCH "LOCAL_RANK=0 LOCAL_WORLD_SIZE=4", "127.0.0.1", 0, 8, true},
        {"RANK=0 WORLD_SIZE=4 MASTER_ADDR=job-0.svc MASTER_PORT=23456", "job-0.svc", 23456, 9, false},
        {STEP "SLURM_STEP_NUM_NODES=4", "n07", 0, 8, false},
        {STEP_ON "n7 SLURM_STEP_NUM_NODES=1", "127.0.0.1", 0, 8, true},
        {STEP "MILLRACE_HOST_SUFFIX=-ib", "n07-ib", 0, 8, false},
        {STEP_ON "n1.cluster,n2.cluster MILLRACE_HOST_SUFFIX=-ib", "n1-ib.cluster", 0, 8, false},
        {STEP "SLURM_STEP_TASKS_PER_NODE=1(x4) SLURM_JOB_NODELIST=m0", "n07", 0, 8, false},
        {STEP "MILLRACE_HOST_SUFFIX=-ib MILLRACE_MEET=n1:7000", "n1", 7000, 1, false},
        {STEP "SLURM_STEP_NUM_NODES=4 PMI_RANK=0 PMI_SIZE=4", "n07", 0, 8, false},
        {"PMI_RANK=0 PMI_SIZE=4 MPI_LOCALRANKID=0 MPI_LOCALNRANKS=4", "127.0.0.1", 0, 8, true},
        {"MILLRACE_MEET=[fe80::7]:90", "fe80::7", 90, 1, false},
        {"MILLRACE_MEET=::1", "::1", 0, 8, true},
    };
    for (size_t i = 0; i < sizeof places / sizeof *places; i++) {
        mr_error err = MR_ERROR_INIT;
        mri_place place;
        MRT_OK(find(&place, places[i].set, 4, &err), &err);
        if (strcmp(place.host, places[i].host) || (int)place.port_count != places[i].count ||
            (places[i].port && place.ports[0] != places[i].port) ||
            place.this_host_only != places[i].this_host_only)
            fail_msg("place %zu: %s port %u of %u", i, place.host, place.ports[0], place.port_count);
        for (uint32_t k = 0; k < place.port_count; k++)
            for (uint32_t j = 0; j < k; j++) assert_true(place.ports[k] != place.ports[j]);
    }
    environment("");
}

static void a_place_nobody_says_is_an_error(void **state)
{
    (void)state;
    static const struct {
        const char *set, *said;
    } wrong[] = {
        {"", "nobody says on which host rank 0 is"},
        {OMPI "2 PMIX_NAMESPACE=a", "MILLRACE_MEET=HOST:PORT"},
        {"PMI_RANK=0 PMI_SIZE=4", "PMI does not say"},
        {"RANK=0 WORLD_SIZE=4", "MASTER_ADDR"},
        {STEP_ON "n[x",
         "found 'x' at character 3 of 'n[x'; or say where rank 0 is with MILLRACE_MEET=HOST:PORT"},
        {"SLURM_JOB_ID=9 SLURM_STEP_ID=0 SLURM_PROCID=0 SLURM_STEP_NUM_TASKS=4",
         "SLURM_STEP_NODELIST: expected a list of nodes, found nothing"},
        {STEP "SLURM_STEP_NUM_NODES=1", "SLURM_STEP_NUM_NODES: expected 4"},
        {STEP "SLURM_STEP_TASKS_PER_NODE=1,2(x3)", "SLURM_STEP_NUM_TASKS: expected 7"},
        {STEP "SLURM_NODEID=3 SLURMD_NODENAME=n07", "SLURMD_NODENAME: expected m"},
        {STEP "MILLRACE_HOST_SUFFIX=/x", "MILLRACE_HOST_SUFFIX: expected letters"},
        {"MILLRACE_MEET=n1:x", "MILLRACE_MEET: expected HOST:PORT"},
        {"OMPI_COMM_WORLD_RANK=4 OMPI_COMM_WORLD_SIZE=4", "OMPI_COMM_WORLD_RANK"},
    };
    for (size_t i = 0; i < sizeof wrong / sizeof *wrong; i++) {
        mr_error err = MR_ERROR_INIT;
        mri_place place;
        MRT_EQ(find(&place, wrong[i].set, 4, &err), MR_EINVAL);
        MRT_HAS(err.text, wrong[i].said);
    }
    environment("");
}

static void jobs_have_keys_of_their_own(void **state)
{
    (void)state;
    static const char *const jobs[] = {
        OMPI "4 PMIX_NAMESPACE=a",
        OMPI "4 PMIX_NAMESPACE=b",
        OMPI "4 PMIX_NAMESPACE=a MILLRACE_JOB=x",
        TORCH,
        TORCH "MILLRACE_JOB=x",
        "TORCHELASTIC_RUN_ID=j RANK=0 WORLD_SIZE=4 MASTER_ADDR=n7 MASTER_PORT=29501",
        STEP "SLURM_STEP_NUM_NODES=4",
        STEP "SLURM_STEP_NUM_NODES=4 SLURM_RESTART_COUNT=1",
        STEP "SLURM_STEP_NUM_NODES=4 SLURM_JOB_ID=10",
        STEP "SLURM_STEP_NUM_NODES=4 SLURM_STEP_ID=1",
        "PMI_RANK=0 PMI_SIZE=4 MPI_LOCALRANKID=0 MPI_LOCALNRANKS=4",
    };
    enum { JOBS = sizeof jobs / sizeof *jobs };
    mri_place places[JOBS], again;
    mr_error err = MR_ERROR_INIT;
    for (size_t i = 0; i < JOBS; i++) {
        MRT_OK(find(&places[i], jobs[i], 4, &err), &err);
        MRT_OK(find(&again, jobs[i], 4, &err), &err);
        assert_memory_equal(&again, &places[i], sizeof again);
        for (size_t j = 0; j < i; j++)
            assert_memory_not_equal(places[i].key, places[j].key, sizeof again.key);
    }
    environment("");
}

static void the_launcher_alone_is_enough(void **state)
{
    (void)state;
    static const settings s = {.by_launcher = true};
    mrt_worlds *w = mrt_worlds_new();
    char set[256];
    for (uint32_t r = 0; r < 3; r++) {
        snprintf(set, sizeof set,
                 "OMPI_COMM_WORLD_RANK=%u OMPI_COMM_WORLD_SIZE=3 OMPI_COMM_WORLD_LOCAL_RANK=%u "
                 "OMPI_COMM_WORLD_LOCAL_SIZE=3 PMIX_NAMESPACE=test-%d",
                 r, r, (int)getpid());
        environment(set);
        mrt_start(w, r, r, 3, meets, &s);
    }
    environment("");
    mrt_wait_all(w, 3);
    for (uint32_t r = 0; r < 3; r++) mrt_said(w, r, MR_OK, "");
    mrt_worlds_free(w);
}

/* mpirun of MPICH: all below one proxy are one job, whatever stands between. */
static void key_below(uint32_t depth, uint8_t *out)
{
    mri_place place;
    mr_error err = MR_ERROR_INIT;
    fflush(NULL);
    const pid_t pid = fork();
    if (pid == 0) {
        prctl(PR_SET_NAME, depth ? "a rank" : "hydra_pmi_proxy"); /* fork() hands it on */
        if (depth < 2) key_below(depth + 1, out + 16);
        if (find(&place, "PMI_RANK=0 PMI_SIZE=4 MPI_LOCALRANKID=0 MPI_LOCALNRANKS=4", 4, &err) == MR_OK)
            memcpy(out, place.key, sizeof place.key);
        _exit(0);
    }
    waitpid(pid, NULL, 0);
}

static void ranks_of_one_proxy_are_one_job(void **state)
{
    (void)state;
    uint8_t *keys = mmap(NULL, 4096, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0);
    key_below(0, keys);       /* [0] is the proxy, [1] and [2] are ranks, one below the other */
    key_below(0, keys + 256); /* another proxy */
    assert_memory_equal(keys + 16, keys + 32, 16);
    assert_memory_equal(keys + 256 + 16, keys + 256 + 32, 16);
    assert_memory_not_equal(keys + 16, keys + 256 + 16, 16);
    assert_memory_not_equal(keys + 16, (uint8_t[16]){0}, 16);
    munmap(keys, 4096);
}

/* Every allocation of one of two ranks fails in turn: it says so, and the other ends too. */
static void opens_without_memory(mrt_worlds *w, uint32_t slot, uint32_t rank, uint32_t size, const void *what)
{
    const long *fails = what; /* by rank */
    static const settings s = {.meet_s = 0.4, .secret = SECRET};
    if (fails[rank] >= 0) mrt_fail_alloc_at(fails[rank]);
    meets(w, slot, rank, size, &s);
    mrt_fail_alloc_at(-1);
    atomic_store(&w->ranks[slot].mark, mrt_alloc_failed() ? 1 : 2);
}

static void no_memory_is_an_error_of_both(void **state)
{
    (void)state;
    for (uint32_t victim = 0; victim < 2; victim++)
        for (long n = 0;; n++) {
            long fails[2] = {-1, -1};
            mrt_worlds *w = mrt_worlds_new();
            fails[victim] = n;
            mrt_start_all(w, 2, opens_without_memory, fails);
            mrt_wait_all(w, 2);
            mrt_rank *r = &w->ranks[victim], *other = &w->ranks[1 - victim];
            assert_true(r->status == 0 && other->status == 0); /* and nothing is left behind */
            const bool failed = atomic_load(&r->mark) == 1;
            if (failed && (r->rc == MR_OK || other->rc == MR_OK))
                fail_msg("allocation %ld of rank %u: %d %s, %d %s", n, victim, r->rc, r->text, other->rc,
                         other->text);
            mrt_worlds_free(w);
            if (!failed) break;
        }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(different_cards_are_told),
        cmocka_unit_test(a_large_card_is_right),
        cmocka_unit_test(without_the_secret_nobody_takes_part),
        cmocka_unit_test(places_that_do_not_fit_are_told),
        cmocka_unit_test(missing_ranks_are_named),
        cmocka_unit_test(nobody_at_rank_0_is_told),
        cmocka_unit_test(a_name_nobody_has_is_told),
        cmocka_unit_test(strangers_do_no_harm),
        cmocka_unit_test(jobs_do_not_mix),
        cmocka_unit_test(another_program_at_the_port),
        cmocka_unit_test(the_place_is_what_the_launcher_says),
        cmocka_unit_test(a_place_nobody_says_is_an_error),
        cmocka_unit_test(jobs_have_keys_of_their_own),
        cmocka_unit_test(the_launcher_alone_is_enough),
        cmocka_unit_test(ranks_of_one_proxy_are_one_job),
        cmocka_unit_test(no_memory_is_an_error_of_both),
    };
    return mrt_run(tests);
}
