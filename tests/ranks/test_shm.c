/* tests/ranks/test_shm.c: carriers of shared memory between two ends in one process, then worlds whose ranks
 * can share memory, cannot, or are not let alone. */
#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <pthread.h>
#include <signal.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <sys/resource.h>
#include <sys/socket.h>
#include <sys/un.h>
#include <unistd.h>

#include "base/random.h"
#include "ranks/carrier.h"
#include "worlds.h"

enum { RING = 4096, HEADS = 4096 };

typedef struct pair {
    mri_carrier *ends[2];
    uint64_t *positions; /* of the heads: a line for each end of each ring */
} pair;

static void open_pair(pair *p)
{
    int memory = -1, bells[2];
    MRT_EQ(mri_shm_create(&memory, RING), 0);
    MRT_EQ(socketpair(AF_UNIX, SOCK_STREAM | SOCK_NONBLOCK, 0, bells), 0);
    for (int k = 0; k < 2; k++) MRT_EQ(mri_carrier_shm_open(&p->ends[k], memory, bells[k], RING, k == 0), 0);
    p->positions = mmap(NULL, HEADS, PROT_READ | PROT_WRITE, MAP_SHARED, memory, 0);
    MRT_TRUE(p->positions != MAP_FAILED);
    close(memory);
}

static void close_pair(pair *p)
{
    for (int k = 0; k < 2; k++) mri_carrier_close(p->ends[k]);
    munmap(p->positions, HEADS);
}

/* At most `bytes` in two pieces, the first of `cut` bytes. */
static ssize_t move(mri_carrier *c, bool sends, uint8_t *data, size_t bytes, size_t cut)
{
    const size_t first = cut < bytes ? cut : bytes;
    const struct iovec pieces[2] = {{data, first}, {data + first, bytes - first}};
    return sends ? c->ops->send(c, pieces, 2) : c->ops->receive(c, pieces, 2);
}

/* One step of a run of bytes; it goes on at *at. */
static void step(mri_carrier *c, bool sends, uint8_t *data, size_t bytes, size_t *at, uint32_t word)
{
    const size_t most = 1 + word % (3 * RING), left = bytes - *at;
    if (!left) return;
    const ssize_t n = move(c, sends, data + *at, left < most ? left : most, word / 7 % 50);
    MRT_TRUE(n > 0 || (n < 0 && errno == EAGAIN));
    if (n > 0) *at += (size_t)n;
}

static const size_t lengths[] = {
    1, 3, 24, RING / 2 - 1, RING - 1, RING, RING + 1, 3 * RING + 17, 50 * RING - 5};

/* Both ways at once, in steps of any lengths; the rings wrap many times. */
static void bytes_arrive_in_order(void **state)
{
    (void)state;
    pair p;
    open_pair(&p);
    for (size_t i = 0; i < MRI_ARRAY_COUNT(lengths) * 3; i++) {
        const size_t bytes = lengths[i % MRI_ARRAY_COUNT(lengths)];
        uint8_t *out[2], *in[2];
        size_t sent[2] = {0}, got[2] = {0};
        for (int k = 0; k < 2; k++) {
            out[k] = malloc(bytes);
            in[k] = calloc(1, bytes + 1);
            mrt_noise(out[k], bytes, i * 2 + (size_t)k);
        }
        for (uint32_t turn = 0; got[0] < bytes || got[1] < bytes; turn++)
            for (int k = 0; k < 2; k++) {
                const mri_philox r = mri_philox4x32(i, turn, (uint32_t)k);
                step(p.ends[k], true, out[k], bytes, &sent[k], r.v[0]);
                step(p.ends[k], false, in[k], bytes, &got[k], r.v[1]);
            }
        for (int k = 0; k < 2; k++) {
            MRT_TRUE(memcmp(out[k], in[!k], bytes) == 0 && in[!k][bytes] == 0);
        }
        for (int k = 0; k < 2; k++) {
            free(out[k]);
            free(in[k]);
        }
        errno = 0;
        MRT_TRUE(move(p.ends[0], false, (uint8_t *)&errno, 0, 0) < 0); /* nothing is left */
    }
    close_pair(&p);
}

static void a_full_ring_takes_no_more(void **state)
{
    (void)state;
    uint8_t data[2 * RING];
    pair p;
    open_pair(&p);
    mrt_noise(data, sizeof data, 1);
    MRT_EQ(p.ends[0]->ops->can(p.ends[0], MRI_CARRIER_SENDS | MRI_CARRIER_GETS), MRI_CARRIER_SENDS);
    MRT_EQ(p.ends[1]->ops->can(p.ends[1], MRI_CARRIER_GETS), 0);
    MRT_EQ(move(p.ends[0], true, data, sizeof data, 10), RING);
    MRT_EQ(move(p.ends[0], true, data, 1, 1), -1);
    MRT_EQ(errno, EAGAIN);
    MRT_EQ(p.ends[0]->ops->can(p.ends[0], MRI_CARRIER_SENDS), 0);
    MRT_EQ(p.ends[1]->ops->can(p.ends[1], MRI_CARRIER_GETS), MRI_CARRIER_GETS);
    MRT_EQ(move(p.ends[1], false, data, RING / 2, 0), RING / 2);
    MRT_EQ(p.ends[0]->ops->can(p.ends[0], MRI_CARRIER_SENDS), MRI_CARRIER_SENDS);
    close_pair(&p);
}

typedef struct mover {
    mri_carrier *c;
    bool sends;
    uint8_t *data;
    size_t bytes;
    uint32_t seed;
} mover;

/* As a transfer does: until nothing is left, asleep in between. */
static void *moves(void *arg)
{
    mover *m = arg;
    size_t at = 0;
    const unsigned wants = m->sends ? MRI_CARRIER_SENDS : MRI_CARRIER_GETS;
    for (uint32_t turn = 0; at < m->bytes; turn++) {
        struct pollfd one;
        step(m->c, m->sends, m->data, m->bytes, &at, mri_philox4x32(m->seed, turn, 0).v[0]);
        if (at == m->bytes || m->c->ops->can(m->c, wants)) continue;
        (void)poll(&one, 1, m->c->ops->listen(m->c, wants, true, &one) ? -1 : 0);
        m->c->ops->woken(m->c, one.revents);
    }
    return NULL;
}

/* A wake-up that is lost stops this test for good. */
static void who_sleeps_is_woken(void **state)
{
    (void)state;
    const size_t bytes = MRT_SANITIZED ? 1 << 20 : 16 << 20;
    uint8_t *out = malloc(bytes), *in = malloc(bytes);
    pair p;
    open_pair(&p);
    for (uint32_t i = 0; i < 4; i++) {
        mover from = {p.ends[i % 2], true, out, bytes, 2 * i},
              to = {p.ends[!(i % 2)], false, in, bytes, 2 * i + 1};
        pthread_t thread;
        mrt_noise(out, bytes, i);
        MRT_EQ(pthread_create(&thread, NULL, moves, &from), 0);
        moves(&to);
        pthread_join(thread, NULL);
        MRT_TRUE(memcmp(out, in, bytes) == 0);
    }
    close_pair(&p);
    free(out);
    free(in);
}

static void look(mri_carrier *c)
{
    struct pollfd one;
    c->ops->listen(c, MRI_CARRIER_GETS, true, &one);
    (void)poll(&one, 1, 0);
    c->ops->woken(c, one.revents);
}

/* Bytes sent before are still there. */
static void an_end_that_closes_is_seen(void **state)
{
    (void)state;
    uint8_t data[300] = {7};
    pair p;
    open_pair(&p);
    MRT_EQ(move(p.ends[0], true, data, 200, 9), 200);
    mri_carrier_close(p.ends[0]);
    p.ends[0] = NULL;
    look(p.ends[1]);
    MRT_EQ(p.ends[1]->ops->can(p.ends[1], MRI_CARRIER_SENDS | MRI_CARRIER_GETS),
           MRI_CARRIER_SENDS | MRI_CARRIER_GETS);
    MRT_EQ(move(p.ends[1], false, data, 300, 9), 200);
    MRT_EQ(move(p.ends[1], false, data, 300, 9), 0);
    MRT_EQ(move(p.ends[1], true, data, 1, 1), -1);
    MRT_EQ(errno, EPIPE);
    close_pair(&p);
}

/* Positions that no ring has end the carrier, and no byte outside the ring is touched. */
static void nonsense_in_the_memory_ends_it(void **state)
{
    (void)state;
    static const uint64_t wrong[] = {RING + 1, UINT64_MAX, UINT64_C(1) << 40};
    uint8_t data[2 * RING] = {0};
    for (size_t i = 0; i < MRI_ARRAY_COUNT(wrong); i++) {
        pair p;
        open_pair(&p);
        p.positions[0] = wrong[i]; /* written, of ring 0 */
        MRT_EQ(move(p.ends[1], false, data, sizeof data, 0), 0);
        MRT_EQ(move(p.ends[1], true, data, 1, 0), -1);
        MRT_EQ(errno, EPIPE);
        close_pair(&p);
        open_pair(&p);
        p.positions[8] = i ? wrong[i] / 2 : 1; /* read, of ring 0 */
        MRT_EQ(move(p.ends[0], true, data, 1, 0), -1);
        MRT_EQ(move(p.ends[0], true, data, 1, 0), -1);
        MRT_EQ(errno, EPIPE);
        close_pair(&p);
    }
}

static void memory_that_could_shrink_is_refused(void **state)
{
    (void)state;
    mri_carrier *c = NULL;
    int memory = memfd_create("test", MFD_CLOEXEC | MFD_ALLOW_SEALING);
    MRT_EQ(ftruncate(memory, HEADS + 2 * RING), 0);
    MRT_EQ(mri_carrier_shm_open(&c, memory, -1, RING, false), EPROTO);
    close(memory);
    MRT_EQ(mri_shm_create(&memory, RING), 0);
    MRT_EQ(mri_carrier_shm_open(&c, memory, -1, 2 * RING, false), EPROTO);
    MRT_TRUE(ftruncate(memory, 0) != 0);
    close(memory);
    MRT_EQ(mri_carrier_shm_open(&c, memory, -1, RING, false), EBADF);
}

/* ---- worlds ---- */

typedef struct trouble {
    mr_wire_choice wire[2]; /* of even ranks, of odd ones */
    bool two_hosts, two_users, no_memory;
    int rc;
    const char *wires, *said; /* of the world; of the note or the error */
} trouble;

static int open_world(mrt_worlds *w, uint32_t rank, uint32_t size, mr_wire_choice wire, mr_world **out,
                      mr_error *err)
{
    mr_world_config cfg;
    mr_world_defaults(&cfg);
    cfg.rank = rank;
    cfg.size = size;
    cfg.meet = w->meet;
    cfg.job = "test";
    cfg.wire = wire;
    return mr_world_open(out, &cfg, err);
}

static void meets_trouble(mrt_worlds *w, uint32_t slot, uint32_t rank, uint32_t size, const void *what)
{
    const trouble *t = what;
    mrt_rank *r = &w->ranks[slot];
    mr_error err = MR_ERROR_INIT;
    mr_world *world = NULL;
    char note[1024] = "";
    uint32_t all[MRT_RANKS_MOST] = {0};
    const bool odd = rank % 2;
    if (t->two_hosts) setenv("MILLRACE_HOST_ID", odd ? "odd" : "even", 1);
    if (t->two_users && odd) MRT_CHECK(r, seteuid(65534) == 0);
    if (t->no_memory && odd) {
        signal(SIGXFSZ, SIG_IGN);
        MRT_CHECK(r, setrlimit(RLIMIT_FSIZE, &(struct rlimit){4096, RLIM_INFINITY}) == 0);
    }
    int rc = open_world(w, rank, size, t->wire[odd], &world, &err);
    if (rc == MR_OK) {
        MRT_CHECK(r, strcmp(mr_world_wires(world), t->wires) == 0);
        MRT_CHECK(r, mr_world_wire_note(world, note, sizeof note) == (t->said[0] != '\0'));
        MRT_CHECK(r, !mr_world_wire_note(world, note, sizeof note));
        rc = mr_world_gather(world, 1, &rank, sizeof rank, all, &err);
        for (uint32_t k = 0; k < size; k++) MRT_CHECK(r, all[k] == k);
    }
    mrt_keep(r, rc, &err);
    if (rc == MR_OK) snprintf(r->text, sizeof r->text, "%s", note);
    mr_world_close(world);
    if (t->two_users && odd) /* the leak check at the end attaches to this process */
        MRT_CHECK(r, seteuid(0) == 0 && prctl(PR_SET_DUMPABLE, 1) == 0);
}

static void what_keeps_ranks_apart_is_named(void **state)
{
    (void)state;
    static const trouble all[] = {
        {.wires = "shm", .said = ""},
        {.wire = {MR_WIRE_SHM, MR_WIRE_SHM}, .wires = "shm", .said = ""},
        {.wire = {MR_WIRE_TCP, MR_WIRE_TCP}, .wires = "tcp", .said = ""},
        {.two_hosts = true, .wires = "shm and tcp", .said = ""},
        {.two_hosts = true,
         .wire = {MR_WIRE_SHM, MR_WIRE_SHM},
         .rc = MR_EUNSUPPORTED,
         .said = "cannot share memory: they run on different hosts; wire auto uses tcp there"},
        {.wire = {MR_WIRE_AUTO, MR_WIRE_TCP}, .rc = MR_EINVAL, .said = "has wire tcp, rank 0 (host "},
        {.no_memory = true,
         .wires = "shm and tcp",
         .said = "cannot share memory: there is no shared memory: File too large"},
        {.no_memory = true,
         .wire = {MR_WIRE_SHM, MR_WIRE_SHM},
         .rc = MR_EUNSUPPORTED,
         .said = "no shared memory: File too large"},
        {.two_users = true,
         .wires = "shm and tcp",
         .said = "cannot share memory: they run as different users"},
    };
    for (size_t i = 0; i < MRI_ARRAY_COUNT(all); i++) {
        if (all[i].two_users && geteuid() != 0) continue; /* only root can become another */
        mrt_worlds *w = mrt_worlds_new();
        mrt_start_all(w, 3, meets_trouble, &all[i]);
        mrt_wait_all(w, 3);
        /* rank 1 is the odd one; a muster of the others could go on */
        for (uint32_t r = 0; r < 3; r++)
            mrt_said(w, r, all[i].rc && r != 1 ? MR_EPEER : all[i].rc, all[i].said);
        mrt_worlds_free(w);
    }
}

static uint32_t open_files(void)
{
    uint32_t count = 0;
    DIR *d = opendir("/proc/self/fd");
    while (d && readdir(d)) count++;
    if (d) closedir(d);
    return count;
}

/* Not more than with TCP alone, and none afterwards. */
static void counts_files(mrt_worlds *w, uint32_t slot, uint32_t rank, uint32_t size, const void *what)
{
    (void)what;
    mrt_rank *r = &w->ranks[slot];
    uint32_t opened[3] = {0};
    mr_error err = MR_ERROR_INIT;
    const uint32_t before = open_files();
    for (mr_wire_choice wire = MR_WIRE_TCP; wire <= MR_WIRE_SHM; wire++) {
        mr_world *world = NULL;
        int rc = open_world(w, rank, size, wire, &world, &err);
        if (mrt_keep(r, rc, &err) != MR_OK) return;
        opened[wire] = open_files();
        rc = mr_world_barrier(world, 0, &err);
        if (mrt_keep(r, rc, &err) != MR_OK) return;
        mr_world_close(world);
        MRT_CHECK(r, open_files() == before);
    }
    MRT_CHECK(r, opened[MR_WIRE_SHM] == opened[MR_WIRE_TCP]);
}

static void no_file_stays_open(void **state)
{
    (void)state;
    mrt_worlds *w = mrt_worlds_new();
    mrt_start_all(w, 4, counts_files, NULL);
    mrt_wait_all(w, 4);
    for (uint32_t r = 0; r < 4; r++) mrt_said(w, r, MR_OK, "");
    mrt_worlds_free(w);
}

/* ---- strangers ---- */

/* Connects to a socket of that name, says something that is no hello, with a descriptor or without. */
static bool bother(const char *name, uint32_t turn)
{
    struct sockaddr_un at = {.sun_family = AF_UNIX};
    const size_t bytes = strlen(name);
    char noise[24];
    if (bytes >= sizeof at.sun_path) return false;
    memcpy(at.sun_path + 1, name + 1, bytes - 1);
    const int fd = socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0);
    const socklen_t at_bytes = (socklen_t)(offsetof(struct sockaddr_un, sun_path) + bytes);
    const bool reached = connect(fd, (const struct sockaddr *)&at, at_bytes) == 0;
    mrt_noise(noise, sizeof noise, turn);
    union {
        struct cmsghdr head;
        char bytes[CMSG_SPACE(sizeof(int))];
    } control = {.bytes = {0}};
    struct iovec data = {noise, turn % 25};
    struct msghdr message = {.msg_iov = &data, .msg_iovlen = 1};
    if (turn % 2) {
        message.msg_control = &control;
        message.msg_controllen = sizeof control.bytes;
        struct cmsghdr *rights = CMSG_FIRSTHDR(&message);
        rights->cmsg_level = SOL_SOCKET;
        rights->cmsg_type = SCM_RIGHTS;
        rights->cmsg_len = CMSG_LEN(sizeof(int));
        memcpy(CMSG_DATA(rights), &fd, sizeof fd);
    }
    if (reached) (void)!sendmsg(fd, &message, MSG_NOSIGNAL | MSG_DONTWAIT);
    close(fd);
    return reached;
}

/* Has it been there so often that its queue could be full of strangers alone? */
static bool is_tired(const char *name)
{
    static struct {
        char name[64];
        uint32_t visits;
    } known[64];
    static uint32_t newest;
    for (uint32_t k = 0; k < MRI_ARRAY_COUNT(known); k++)
        if (strcmp(known[k].name, name) == 0) return ++known[k].visits > 20;
    newest = (newest + 1) % MRI_ARRAY_COUNT(known);
    snprintf(known[newest].name, sizeof known[newest].name, "%s", name);
    known[newest].visits = 1;
    return false;
}

/* Every socket of a world that there is, until the flag says that it is enough. */
static void bothers(mrt_worlds *w, uint32_t slot, uint32_t rank, uint32_t size, const void *what)
{
    (void)rank;
    (void)size;
    (void)what;
    char line[512];
    for (uint32_t turn = 0; !atomic_load(&w->flag); turn++) {
        FILE *f = fopen("/proc/net/unix", "re");
        while (f && fgets(line, sizeof line, f)) {
            char *name = strstr(line, "@millrace-");
            if (!name) continue;
            name[strcspn(name, "\n")] = '\0';
            if (!is_tired(name) && bother(name, turn)) atomic_fetch_add(&w->ranks[slot].mark, 1);
        }
        if (f) fclose(f);
    }
}

/* Worlds until strangers have come often enough. */
static void opens_worlds(mrt_worlds *w, uint32_t slot, uint32_t rank, uint32_t size, const void *what)
{
    (void)what;
    mrt_rank *r = &w->ranks[slot];
    mr_error err = MR_ERROR_INIT;
    bool enough = false;
    const uint32_t before = open_files();
    for (uint32_t i = 0; !enough; i++) {
        mr_world *world = NULL;
        if (mrt_keep(r, open_world(w, rank, size, MR_WIRE_SHM, &world, &err), &err) != MR_OK) return;
        enough = i >= 20 && atomic_load(&w->ranks[size].mark) >= 20;
        int rc = mr_world_broadcast(world, 1, &enough, sizeof enough, 0, &err);
        if (rc == MR_OK) rc = mr_world_barrier(world, 1, &err);
        mrt_keep(r, rc, &err);
        mr_world_close(world);
        if (rc != MR_OK) return;
    }
    MRT_CHECK(r, open_files() == before);
}

static void strangers_get_nothing(void **state)
{
    (void)state;
    if (access("/proc/net/unix", R_OK) != 0) skip();
    mrt_worlds *w = mrt_worlds_new();
    mrt_start(w, 3, 3, 4, bothers, NULL);
    mrt_start_all(w, 3, opens_worlds, NULL);
    for (uint32_t k = 0; k < 3; k++) mrt_wait_end(w, k);
    atomic_store(&w->flag, 1);
    mrt_wait_end(w, 3);
    for (uint32_t r = 0; r < 3; r++) mrt_said(w, r, MR_OK, "");
    mrt_worlds_free(w);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(bytes_arrive_in_order),
        cmocka_unit_test(a_full_ring_takes_no_more),
        cmocka_unit_test(who_sleeps_is_woken),
        cmocka_unit_test(an_end_that_closes_is_seen),
        cmocka_unit_test(nonsense_in_the_memory_ends_it),
        cmocka_unit_test(memory_that_could_shrink_is_refused),
        cmocka_unit_test(what_keeps_ranks_apart_is_named),
        cmocka_unit_test(no_file_stays_open),
        cmocka_unit_test(strangers_get_nothing),
    };
    return mrt_run(tests);
}
