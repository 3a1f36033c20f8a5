/* tests/ranks/worlds.c: see worlds.h. */
#include "worlds.h"

#include <arpa/inet.h>
#include <errno.h>
#include <signal.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <sys/socket.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

enum { LIMIT_S = 240 }; /* until what hangs is ended; no judgement of speed */

static void pause_ms(long ms) { nanosleep(&(struct timespec){ms / 1000, ms % 1000 * 1000000}, NULL); }

int mrt_free_port(void)
{
    struct sockaddr_in at = {.sin_family = AF_INET, .sin_addr.s_addr = htonl(INADDR_LOOPBACK)};
    socklen_t bytes = sizeof at;
    const int fd = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);
    assert_true(fd >= 0 && bind(fd, (struct sockaddr *)&at, sizeof at) == 0);
    assert_int_equal(getsockname(fd, (struct sockaddr *)&at, &bytes), 0);
    close(fd);
    return ntohs(at.sin_port);
}

mrt_worlds *mrt_worlds_new(void)
{
    mrt_worlds *w = mmap(NULL, sizeof *w, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0);
    assert_true(w != MAP_FAILED);
    snprintf(w->meet, sizeof w->meet, "127.0.0.1:%d", mrt_free_port());
    return w;
}

void mrt_worlds_free(mrt_worlds *w) { munmap(w, sizeof *w); }

void mrt_start(mrt_worlds *w, uint32_t slot, uint32_t rank, uint32_t size, mrt_life *life, const void *what)
{
    fflush(NULL);
    const pid_t pid = fork();
    assert_true(pid >= 0);
    if (pid == 0) {
        prctl(PR_SET_PDEATHSIG, SIGKILL); /* a test that fails leaves nobody behind */
        life(w, slot, rank, size, what);
        exit(w->ranks[slot].wrong[0] ? 3 : 0);
    }
    w->ranks[slot].pid = pid;
}

void mrt_start_all(mrt_worlds *w, uint32_t size, mrt_life *life, const void *what)
{
    for (uint32_t r = 0; r < size; r++) mrt_start(w, r, r, size, life, what);
}

static void wait_range(mrt_worlds *w, uint32_t first, uint32_t count)
{
    bool ended[MRT_RANKS_MOST] = {false};
    uint32_t left = count;
    for (long waited = 0; left && waited < LIMIT_S * 1000L; waited += 5) {
        for (uint32_t k = first; k < first + count; k++)
            if (!ended[k] && waitpid(w->ranks[k].pid, &w->ranks[k].status, WNOHANG) == w->ranks[k].pid) {
                ended[k] = true;
                left--;
            }
        if (left) pause_ms(5);
    }
    for (uint32_t k = first; k < first + count; k++)
        if (!ended[k]) {
            kill(w->ranks[k].pid, SIGKILL);
            waitpid(w->ranks[k].pid, &w->ranks[k].status, 0);
        }
    if (left) fail_msg("%u of %u ranks did not end", left, count);
}

void mrt_wait_all(mrt_worlds *w, uint32_t count) { wait_range(w, 0, count); }

void mrt_wait_end(mrt_worlds *w, uint32_t slot) { wait_range(w, slot, 1); }

void mrt_wait_mark(mrt_worlds *w, uint32_t slot, int mark)
{
    for (long waited = 0; waited < LIMIT_S * 1000L; waited += 2) {
        if (atomic_load(&w->ranks[slot].mark) >= mark) return;
        pause_ms(2);
    }
    fail_msg("rank %u did not come to mark %d: %s", slot, mark, w->ranks[slot].text);
}

void mrt_ended_well(mrt_worlds *w, uint32_t slot)
{
    const mrt_rank *r = &w->ranks[slot];
    if (r->wrong[0]) fail_msg("rank %u: %s; status %d, %s", slot, r->wrong, r->rc, r->text);
    if (!WIFEXITED(r->status) || WEXITSTATUS(r->status)) fail_msg("rank %u ended with %x", slot, r->status);
}

void mrt_said(mrt_worlds *w, uint32_t slot, int rc, const char *part)
{
    const mrt_rank *r = &w->ranks[slot];
    mrt_ended_well(w, slot);
    if (r->rc != rc || !strstr(r->text, part))
        fail_msg("rank %u: status %d, '%s'; expected %d, '%s'", slot, r->rc, r->text, rc, part);
}

int mrt_keep(mrt_rank *r, int rc, const mr_error *err)
{
    r->rc = rc;
    if (rc != MR_OK) mr_error_format(err, r->text, sizeof r->text);
    return rc;
}

/* The wire of all worlds of a test program: MRT_WIRE is auto (default), tcp, shm, ucx or two-hosts: ranks
 * with even and odd numbers as if on two machines. */
static mr_wire_choice wire_of(uint32_t rank)
{
    const char *wire = getenv("MRT_WIRE");
    if (!wire || strcmp(wire, "auto") == 0) return MR_WIRE_AUTO;
    if (strcmp(wire, "tcp") == 0) return MR_WIRE_TCP;
    if (strcmp(wire, "shm") == 0) return MR_WIRE_SHM;
    if (strcmp(wire, "ucx") == 0) return MR_WIRE_UCX;
    setenv("MILLRACE_HOST_ID", rank % 2 ? "odd" : "even", 1);
    return MR_WIRE_AUTO;
}

const char *mrt_wires(uint32_t size)
{
    const char *wire = getenv("MRT_WIRE");
    if (size == 1) return "";
    if (!wire || strcmp(wire, "auto") == 0 || strcmp(wire, "shm") == 0) return "shm";
    if (strcmp(wire, "tcp") == 0 || strcmp(wire, "ucx") == 0) return wire;
    return size == 2 ? "tcp" : "shm and tcp";
}

mr_world *mrt_open(mrt_worlds *w, uint32_t slot, uint32_t rank, uint32_t size, double silence_s)
{
    mr_error err = MR_ERROR_INIT;
    mr_world *world = NULL;
    mr_world_config cfg;
    mr_world_defaults(&cfg);
    cfg.rank = rank;
    cfg.size = size;
    cfg.meet = w->meet;
    cfg.job = "test";
    cfg.silence_s = silence_s;
    cfg.wire = wire_of(rank);
    mrt_keep(&w->ranks[slot], mr_world_open(&world, &cfg, &err), &err);
    return world;
}
