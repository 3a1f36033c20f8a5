/* ranks/wires.c: see wires.h. Every rank listens on a local socket of a random name. The steps between calls
 * of the world wait for nothing, so a rank that is lost meanwhile is found by the world as ever:
 *
 *   gather     who is on which host, whose socket has which name
 *              rank b makes memory for a < b, and sends it to a's socket
 *   exchange   b to a: sent, or why not
 *              a takes what has come
 *   exchange   a to b: taken, or why not
 *              both go over to it
 *   gather     what became of it: behind this call nobody reads the old connections any more */
#include "ranks/wires.h"

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/un.h>
#include <unistd.h>

#include "ranks/meet.h"
#include "ranks/post/post.h"

enum {
    CALLS = 0, /* the channel of these calls: the first that ranks with TLS greet on, so that a rank without
                  TLS is found out there */
    HOST_BYTES = 64,
    NAME_BYTES = 16,  /* of a socket, */
    TOKEN_BYTES = 16, /* and what its owner asks of who comes there */
    FD_COUNT = 2 * MR_WORLD_CHANNELS,
    STRANGERS_MOST = 256, /* in addition to the ranks */
    /* bench exchange, 2 ranks on 2 cores: 5 MB take 1.3 ms with rings of 1 MiB, 1.6 with 256 KiB, 2.7 with 64
     */
    MOST_RING_BYTES = 1 << 20,
    LEAST_RING_BYTES = 32 << 10,
    SHARED_BYTES = 64 << 20, /* of a host, for all rings of sums, while these are not the least */
    SPIN_NS = 100000,        /* as long as a sleep and its end take */
};

/* Why a pair shares no memory. */
typedef enum apart_why {
    APART_NOT = 0,
    APART_HOST,
    APART_USER,
    APART_NETWORK,
    APART_SOCKET,
    APART_MEMORY,
    APART_STRANGER,
} apart_why;

typedef struct apart {
    uint32_t why, sys_errno;
} apart;

typedef struct card { /* of each rank, to all */
    uint32_t wanted, user;
    apart own;             /* why this one shares memory with nobody */
    char host[HOST_BYTES]; /* which kernel it runs on */
    uint8_t name[NAME_BYTES], token[TOKEN_BYTES];
} card;

typedef struct hello { /* with the descriptors of the memory and the sockets */
    uint8_t token[TOKEN_BYTES];
    uint32_t from;
} hello;

typedef struct outcome {          /* of each rank, to all */
    uint32_t shared, apart_count; /* pairs of this rank */
    uint32_t peer;                /* of one that is apart: one of the same host, if there is one */
    apart first;
} outcome;

typedef struct joining {
    mr_world *world;
    mri_channel *const *channels;
    uint32_t rank, size;
    card *cards;
    apart *aparts, *reported; /* by rank: of the pair; as the other end reports */
    mri_carrier **carriers;   /* [channel * size + rank] */
    mr_world_piece *pieces;
    int listener;
} joining;

static bool is_apart(const joining *j, uint32_t r) { return j->aparts[r].why != APART_NOT; }

static void set_apart(joining *j, uint32_t r, apart_why why, int sys_errno)
{
    j->aparts[r] = (apart){why, (uint32_t)sys_errno};
}

/* ---- who is where ---- */

/* The kernel's number of this boot: ranks with the same one run on one host, in whichever container. */
static void find_host(char out[HOST_BYTES])
{
    const char *given = getenv("MILLRACE_HOST_ID");
    memset(out, 0, HOST_BYTES);
    if (given && given[0]) {
        snprintf(out, HOST_BYTES, "%s", given);
        return;
    }
    const int fd = open("/proc/sys/kernel/random/boot_id", O_RDONLY | O_CLOEXEC);
    if (fd >= 0 && read(fd, out, HOST_BYTES - 1) <= 0) out[0] = '\0';
    if (fd >= 0) close(fd);
}

/* In the abstract name space: no file is left behind, and no folder is needed. */
static socklen_t address_of(struct sockaddr_un *out, const uint8_t name[NAME_BYTES])
{
    *out = (struct sockaddr_un){.sun_family = AF_UNIX};
    size_t at = 1 + (size_t)snprintf(out->sun_path + 1, sizeof out->sun_path - 1, "millrace-");
    for (size_t i = 0; i < NAME_BYTES; i++, at += 2)
        snprintf(out->sun_path + at, sizeof out->sun_path - at, "%02x", name[i]);
    return (socklen_t)(offsetof(struct sockaddr_un, sun_path) + at);
}

static int local_socket(void) { return socket(AF_UNIX, SOCK_STREAM | SOCK_NONBLOCK | SOCK_CLOEXEC, 0); }

static int listen_here(joining *j, const uint8_t name[NAME_BYTES])
{
    struct sockaddr_un at;
    const socklen_t bytes = address_of(&at, name);
    j->listener = local_socket();
    if (j->listener < 0) return errno;
    return bind(j->listener, (const struct sockaddr *)&at, bytes) ||
                   listen(j->listener, (int)j->size + STRANGERS_MOST)
               ? errno
               : 0;
}

static int gather_cards(joining *j, mr_wire_choice wanted, mr_error *err)
{
    card *mine = &j->cards[j->rank];
    mine->wanted = (uint32_t)wanted;
    mine->user = (uint32_t)geteuid();
    if (wanted != MR_WIRE_TCP) {
        find_host(mine->host);
        mri_meet_draw(mine->name, sizeof mine->name);
        mri_meet_draw(mine->token, sizeof mine->token);
        const int failed = listen_here(j, mine->name);
        if (failed) mine->own = (apart){APART_SOCKET, (uint32_t)failed};
    }
    return mr_world_gather(j->world, CALLS, mine, sizeof *mine, j->cards, err);
}

static const char *rank_name(const joining *j, uint32_t r)
{
    return mri_meet_name(r, mr_world_host(j->world, r));
}

/* All find it in the same bytes, and nobody goes before all have it. */
static int found_by_all(const joining *j, int rc)
{
    (void)mr_world_barrier(j->world, CALLS, NULL);
    return rc;
}

static int check_wanted(const joining *j, mr_error *err)
{
    static const char *const names[] = {"auto", "tcp", "shm", "nccl", "mpi", "ucx"};
    const uint32_t mine = j->cards[j->rank].wanted;
    for (uint32_t r = 1; r < j->size; r++) {
        const uint32_t first = j->cards[0].wanted, other = j->cards[r].wanted;
        if (first == other) continue;
        const int rc = mine == first ? MR_EPEER : MR_EINVAL; /* a world of the others may go on */
        return found_by_all(
            j, mr_error_set(err, rc, "%s has wire %s, %s has wire %s: give all ranks the same",
                            rank_name(j, r), other < MRI_ARRAY_COUNT(names) ? names[other] : "unknown",
                            rank_name(j, 0), first < MRI_ARRAY_COUNT(names) ? names[first] : "unknown"));
    }
    return MR_OK;
}

/* From the cards, so both ends find the same. */
static void find_apart(joining *j)
{
    const card *mine = &j->cards[j->rank];
    for (uint32_t r = 0; r < j->size; r++) {
        const card *other = &j->cards[r];
        if (r == j->rank) continue;
        if (!mine->host[0] || strncmp(mine->host, other->host, HOST_BYTES) != 0)
            set_apart(j, r, APART_HOST, 0);
        else if (mine->user != other->user) set_apart(j, r, APART_USER, 0);
        else if (mine->own.why) j->aparts[r] = mine->own;
        else j->aparts[r] = other->own;
    }
}

static uint32_t ranks_here(const joining *j)
{
    uint32_t here = 0;
    for (uint32_t r = 0; r < j->size; r++)
        here += strncmp(j->cards[r].host, j->cards[j->rank].host, HOST_BYTES) == 0;
    return here;
}

/* Gradients go over one channel; the other carries little. */
static uint32_t ring_bytes(const joining *j, uint32_t channel)
{
    const uint64_t here = ranks_here(j);
    uint32_t bytes = channel == 0 ? MOST_RING_BYTES : LEAST_RING_BYTES;
    while (bytes > LEAST_RING_BYTES && here * (here - 1) * bytes > SHARED_BYTES) bytes /= 2;
    return bytes;
}

/* ---- the memory of a pair ---- */

static void close_all(int *fds, size_t count)
{
    for (size_t k = 0; k < count; k++)
        if (fds[k] >= 0) close(fds[k]);
}

static bool is_same_user(int fd)
{
    struct ucred who;
    socklen_t bytes = sizeof who;
    return getsockopt(fd, SOL_SOCKET, SO_PEERCRED, &who, &bytes) == 0 && who.uid == geteuid();
}

static bool send_fds(int to, const hello *h, const int fds[FD_COUNT])
{
    union {
        struct cmsghdr head;
        char bytes[CMSG_SPACE(FD_COUNT * sizeof(int))];
    } control = {.bytes = {0}};
    struct iovec data = {(void *)h, sizeof *h};
    struct msghdr message = {
        .msg_iov = &data, .msg_iovlen = 1, .msg_control = &control, .msg_controllen = sizeof control.bytes};
    struct cmsghdr *rights = CMSG_FIRSTHDR(&message);
    rights->cmsg_level = SOL_SOCKET;
    rights->cmsg_type = SCM_RIGHTS;
    rights->cmsg_len = CMSG_LEN(FD_COUNT * sizeof(int));
    memcpy(CMSG_DATA(rights), fds, FD_COUNT * sizeof(int));
    return sendmsg(to, &message, MSG_NOSIGNAL | MSG_DONTWAIT) == sizeof *h;
}

/* False: not a hello of millrace; no descriptor stays open. */
static bool receive_fds(int from, hello *h, int fds[FD_COUNT])
{
    union {
        struct cmsghdr head;
        char bytes[CMSG_SPACE(FD_COUNT * sizeof(int))];
    } control = {.bytes = {0}};
    struct iovec data = {h, sizeof *h};
    struct msghdr message = {
        .msg_iov = &data, .msg_iovlen = 1, .msg_control = &control, .msg_controllen = sizeof control.bytes};
    const ssize_t n = recvmsg(from, &message, MSG_DONTWAIT | MSG_CMSG_CLOEXEC);
    const struct cmsghdr *rights = n > 0 ? CMSG_FIRSTHDR(&message) : NULL;
    size_t count = 0;
    for (size_t k = 0; k < FD_COUNT; k++) fds[k] = -1;
    if (rights && rights->cmsg_level == SOL_SOCKET && rights->cmsg_type == SCM_RIGHTS) {
        count = (rights->cmsg_len - CMSG_LEN(0)) / sizeof(int);
        memcpy(fds, CMSG_DATA(rights), count * sizeof(int));
    }
    if (n == sizeof *h && count == FD_COUNT) return true;
    close_all(fds, FD_COUNT);
    return false;
}

/* Carriers to rank r of both channels. fds: memory and socket of each; descriptors that are taken become -1.
 * */
static int open_carriers(joining *j, uint32_t r, int fds[FD_COUNT], bool creator)
{
    for (uint32_t c = 0; c < MR_WORLD_CHANNELS; c++) {
        const int rc = mri_carrier_shm_open(&j->carriers[c * j->size + r], fds[2 * c], fds[2 * c + 1],
                                            ring_bytes(j, c), creator);
        if (rc) return rc;
        fds[2 * c + 1] = -1;
    }
    return 0;
}

static void drop_carriers(joining *j, uint32_t r)
{
    for (uint32_t c = 0; c < MR_WORLD_CHANNELS; c++) {
        mri_carrier_close(j->carriers[c * j->size + r]);
        j->carriers[c * j->size + r] = NULL;
    }
}

/* mine, theirs: memory and socket of each channel. */
static int make_memory(const joining *j, int mine[FD_COUNT], int theirs[FD_COUNT])
{
    for (uint32_t c = 0; c < MR_WORLD_CHANNELS; c++) {
        int pair[2];
        const int rc = mri_shm_create(&mine[2 * c], ring_bytes(j, c));
        if (rc) return rc;
        theirs[2 * c] = mine[2 * c];
        if (socketpair(AF_UNIX, SOCK_STREAM | SOCK_NONBLOCK | SOCK_CLOEXEC, 0, pair)) return errno;
        mine[2 * c + 1] = pair[0];
        theirs[2 * c + 1] = pair[1];
    }
    return 0;
}

/* Connects to the socket of rank r: an errno, or 0. */
static int reach(joining *j, uint32_t r, int *out)
{
    struct sockaddr_un at;
    const socklen_t bytes = address_of(&at, j->cards[r].name);
    *out = local_socket();
    if (*out < 0) return errno;
    return connect(*out, (const struct sockaddr *)&at, bytes) ? errno : 0;
}

/* To a lower rank of this host. */
static void offer(joining *j, uint32_t r)
{
    int mine[FD_COUNT] = {-1, -1, -1, -1}, theirs[FD_COUNT] = {-1, -1, -1, -1}, to = -1;
    hello h = {.from = j->rank};
    memcpy(h.token, j->cards[r].token, sizeof h.token);
    int rc = reach(j, r, &to);
    if (rc) set_apart(j, r, rc == ECONNREFUSED ? APART_NETWORK : APART_SOCKET, rc);
    else if (!is_same_user(to)) set_apart(j, r, APART_USER, 0);
    else {
        rc = make_memory(j, mine, theirs);
        if (!rc) rc = open_carriers(j, r, mine, true);
        if (rc) set_apart(j, r, APART_MEMORY, rc);
        else if (!send_fds(to, &h, theirs)) set_apart(j, r, APART_SOCKET, errno);
    }
    if (is_apart(j, r)) drop_carriers(j, r);
    for (uint32_t c = 0; c < MR_WORLD_CHANNELS; c++) theirs[2 * c] = -1; /* mine, too */
    close_all(theirs, FD_COUNT);
    close_all(mine, FD_COUNT);
    if (to >= 0) close(to);
}

/* One that has come to this rank's socket. */
static void take(joining *j, int from)
{
    const card *mine = &j->cards[j->rank];
    int fds[FD_COUNT];
    hello h;
    if (!is_same_user(from) || !receive_fds(from, &h, fds)) return;
    const bool known = mri_secret_equal(h.token, mine->token, sizeof h.token) && h.from > j->rank &&
                       h.from < j->size && !is_apart(j, h.from) && !j->carriers[h.from];
    if (known) {
        const int rc = open_carriers(j, h.from, fds, false);
        if (rc) set_apart(j, h.from, APART_MEMORY, rc);
    }
    close_all(fds, FD_COUNT);
}

static void take_all(joining *j)
{
    const uint32_t most = j->size + STRANGERS_MOST;
    for (uint32_t k = 0; k < most; k++) {
        const int from = accept4(j->listener, NULL, NULL, SOCK_NONBLOCK | SOCK_CLOEXEC);
        if (from < 0) return;
        take(j, from);
        close(from);
    }
}

/* ---- both ends agree ---- */

/* Tell the ranks on one side of this one what became of the pair, hear it of those on the other side.
 * candidates: pairs that both ends have tried. */
static int tell(joining *j, const bool *candidates, bool lower, mr_error *err)
{
    memset(j->pieces, 0, 2 * (size_t)j->size * sizeof *j->pieces);
    memset(j->reported, 0, j->size * sizeof *j->reported);
    for (uint32_t r = 0; r < j->size; r++) {
        if (r == j->rank || !candidates[r]) continue;
        const bool sends = (r < j->rank) == lower;
        const mr_world_piece piece = {sends ? &j->aparts[r] : &j->reported[r], sizeof *j->reported};
        j->pieces[sends ? r : j->size + r] = piece;
    }
    const int rc = mr_world_exchange(j->world, CALLS, j->pieces, j->pieces + j->size, err);
    for (uint32_t r = 0; rc == MR_OK && r < j->size; r++)
        if (!is_apart(j, r)) j->aparts[r] = j->reported[r];
    return rc;
}

static int share_memory(joining *j, mr_error *err)
{
    bool *candidates = calloc(j->size, sizeof *candidates);
    if (!candidates) return mr_error_set(err, MR_ENOMEM, "no memory for the wires of %u ranks", j->size);
    find_apart(j);
    for (uint32_t r = 0; r < j->size; r++) candidates[r] = r != j->rank && !is_apart(j, r);
    for (uint32_t r = 0; r < j->rank; r++)
        if (candidates[r]) offer(j, r);
    int rc = tell(j, candidates, true, err);
    if (rc == MR_OK && j->listener >= 0) take_all(j);
    for (uint32_t r = j->rank + 1; r < j->size; r++)
        if (candidates[r] && !is_apart(j, r) && !j->carriers[r]) set_apart(j, r, APART_STRANGER, 0);
    if (rc == MR_OK) rc = tell(j, candidates, false, err);
    free(candidates);
    return rc;
}

/* The old carriers take the place of the new ones in j->carriers. */
static void go_over(joining *j, outcome *out)
{
    for (uint32_t r = 0; r < j->size; r++) {
        if (r == j->rank) continue;
        if (is_apart(j, r)) {
            drop_carriers(j, r);
            const bool near = j->aparts[r].why != APART_HOST;
            if (out->apart_count++ == 0 || (near && out->first.why == APART_HOST)) {
                out->peer = r;
                out->first = j->aparts[r];
            }
            continue;
        }
        out->shared++;
        for (uint32_t c = 0; c < MR_WORLD_CHANNELS; c++) {
            mri_carrier **at = &j->carriers[c * j->size + r];
            *at = mri_channel_carry(j->channels[c], r, *at);
        }
    }
}

/* Who waits for a small sum finds it sooner than a sleep and its end would take. */
static void let_spin(const joining *j)
{
    for (uint32_t c = 0; c < MR_WORLD_CHANNELS; c++) mri_channel_spin(j->channels[c], SPIN_NS);
}

/* Sums go by messages of a library. The carriers stay, unused. */
static int go_by_post(const joining *j, mri_wires *out, mr_wire_choice wanted, mr_error *err)
{
    mri_post *post;
    int rc = mri_wires_open_post(&post, j->world, CALLS, wanted, err);
    if (rc == MR_OK) rc = mri_channel_post(j->channels[0], post, err);
    out->name = wanted == MR_WIRE_MPI ? "mpi" : "ucx";
    return rc;
}

/* ---- what became of it ---- */

static void apart_text(const apart *a, char *out, size_t bytes)
{
    char why[128];
    const char *system = strerror_r((int)a->sys_errno, why, sizeof why);
    switch (a->why) {
    case APART_HOST: snprintf(out, bytes, "they run on different hosts"); break;
    case APART_USER: snprintf(out, bytes, "they run as different users"); break;
    case APART_NETWORK: snprintf(out, bytes, "they are in different network namespaces"); break;
    case APART_SOCKET: snprintf(out, bytes, "a local socket failed: %s", system); break;
    case APART_MEMORY: snprintf(out, bytes, "there is no shared memory: %s", system); break;
    default: snprintf(out, bytes, "the memory did not arrive"); break;
    }
}

/* Of a world without the wanted wire: does this rank end, so that the others can go on without it? Who is
 * apart from rank 0 does; if nobody is, the higher rank of the pair that is named. */
static bool refuses(const joining *j, const outcome *all, uint32_t worst)
{
    if (all[0].apart_count) return is_apart(j, 0);
    return j->rank == (uint32_t)mri_max_u64(worst, all[worst].peer);
}

static int judge(const joining *j, const outcome *all, mr_wire_choice wanted, mri_wires *out, mr_error *err)
{
    uint64_t shared = 0, apart_count = 0;
    uint32_t worst = j->size;
    char why[256];
    for (uint32_t r = 0; r < j->size; r++) {
        shared += all[r].shared;
        apart_count += all[r].apart_count;
        if (!all[r].apart_count) continue;
        const bool near = all[r].first.why != APART_HOST;
        if (worst == j->size || (near && all[worst].first.why == APART_HOST)) worst = r;
    }
    out->name = !apart_count ? "shm" : shared ? "shm and tcp" : "tcp";
    if (worst == j->size) return MR_OK;
    apart_text(&all[worst].first, why, sizeof why);
    if (wanted == MR_WIRE_SHM)
        return found_by_all(j, mr_error_set(err, refuses(j, all, worst) ? MR_EUNSUPPORTED : MR_EPEER,
                                            "%s and %s cannot share memory: %s; wire auto uses tcp there",
                                            rank_name(j, worst), rank_name(j, all[worst].peer), why));
    if (all[worst].first.why != APART_HOST)
        snprintf(out->note, sizeof out->note, "%s and %s use tcp, because they cannot share memory: %s",
                 rank_name(j, worst), rank_name(j, all[worst].peer), why);
    return MR_OK;
}

/* Blocks of equally many ranks that share memory with each other and with nobody else; else 1. */
static uint32_t find_per_host(const joining *j, const outcome *all)
{
    const uint32_t n = all[0].shared + 1;
    for (uint32_t r = 0; r < j->size; r++) {
        const char *first = j->cards[r / n * n].host;
        if (all[r].shared + 1 != n || strncmp(j->cards[r].host, first, HOST_BYTES) != 0) return 1;
    }
    return n;
}

static int allocate(joining *j, outcome **all, mr_error *err)
{
    const size_t size = j->size;
    j->cards = calloc(size, sizeof *j->cards);
    j->aparts = calloc(size, sizeof *j->aparts);
    j->reported = calloc(size, sizeof *j->reported);
    j->carriers = calloc(MR_WORLD_CHANNELS * size, sizeof(mri_carrier *));
    j->pieces = calloc(2 * size, sizeof *j->pieces);
    *all = calloc(size, sizeof **all);
    if (j->cards && j->aparts && j->reported && j->carriers && j->pieces && *all) return MR_OK;
    return mr_error_set(err, MR_ENOMEM, "no memory for the wires of %zu ranks", size);
}

static void end(joining *j, outcome *all)
{
    for (uint32_t r = 0; j->carriers && r < j->size; r++) drop_carriers(j, r);
    if (j->listener >= 0) close(j->listener);
    if (j->cards) explicit_bzero(j->cards, j->size * sizeof *j->cards);
    free(j->cards);
    free(j->aparts);
    free(j->reported);
    free(j->carriers);
    free(j->pieces);
    free(all);
}

int mri_wires_choose(mri_wires *out, mr_world *world, mri_channel *const *channels, mr_wire_choice wanted,
                     mr_error *err)
{
    joining j = {.world = world,
                 .channels = channels,
                 .rank = mr_world_rank(world),
                 .size = mr_world_size(world),
                 .listener = -1};
    outcome *all;
    *out = (mri_wires){.name = "tcp", .per_host = 1};
    int rc = allocate(&j, &all, err);
    if (rc == MR_OK) rc = gather_cards(&j, wanted, err);
    if (rc == MR_OK) rc = check_wanted(&j, err);
    if (rc == MR_OK && wanted != MR_WIRE_TCP) {
        rc = share_memory(&j, err);
        if (rc == MR_OK) {
            go_over(&j, &all[j.rank]);
            let_spin(&j);
            rc = mr_world_gather(world, CALLS, &all[j.rank], sizeof *all, all, err);
        }
        if (rc == MR_OK) rc = judge(&j, all, wanted, out, err);
        if (rc == MR_OK) out->per_host = find_per_host(&j, all);
    }
    if (rc == MR_OK && wanted == MR_WIRE_NCCL) out->name = "nccl";
    if (rc == MR_OK && (wanted == MR_WIRE_MPI || wanted == MR_WIRE_UCX))
        rc = go_by_post(&j, out, wanted, err);
    if (rc == MR_OK)
        for (uint32_t c = 0; c < MR_WORLD_CHANNELS; c++) mri_channel_begin_anew(channels[c]);
    end(&j, all);
    return rc;
}
