/* ranks/mesh.c: every pair of ranks connects, once for each lane; the higher rank calls. The links of the
 * meeting stay until rank 0 has heard that all are done, so either all have a world or none has; see meet.h.
 */
#include <arpa/inet.h>
#include <errno.h>
#include <stdio.h>
#include <unistd.h>

#include "ranks/meet.h"

#define MS_NS     UINT64_C(1000000)
#define SECOND_NS UINT64_C(1000000000)

enum {
    STRANGERS_MOST = 64, /* in addition to the ranks */
    ACCEPTS_MOST = 32,   /* before those who are there have their turn */
    AGAIN_MS = 50,       /* until a call is made again that was cut off, by a crowd of strangers, say */
    LEAST_S = 10,        /* to connect: meet_s may be short, and this begins when all are there */
    VERDICT_S = 5,       /* rank 0 waits longer than the others by this, to hear their errors */
};

typedef struct meshing {
    mri_meeting *m;
    int *fds;          /* the result, */
    mri_seal *seals;   /* of the pulse's lane, too */
    uint32_t missing;  /* of it */
    mri_link *calls;   /* to lower ranks: [lane * rank + peer] */
    uint64_t *again;   /* calls that are made again then; 0: not */
    mri_link *callers; /* who has connected and not yet said who it is: [0, caller_count) */
    uint32_t call_count, caller_count, caller_room;
    struct pollfd *polls;        /* listener, star, calls, callers */
    uint32_t done_count;         /* rank 0: who has all its connections */
    bool *done;                  /* rank 0: by rank */
    bool said_done, go, verdict; /* others: what rank 0 has said: go, or why not */
    mr_error why;                /* this rank's, or rank 0's verdict; code 0: all is well */
} meshing;

static uint32_t size_of(const meshing *h) { return h->m->cfg->size; }
static uint32_t rank_of(const meshing *h) { return h->m->cfg->rank; }
static const char *name_of(const meshing *h, uint32_t r) { return mri_meet_name(r, h->m->seats[r].host); }

static void keep(meshing *h, uint32_t lane, uint32_t peer, mri_link *l)
{
    if (lane == MRI_LANE_PULSE) {
        h->seals[peer] = l->seal;
        h->seals[peer].secret = NULL; /* the meeting's */
    }
    h->fds[(size_t)lane * size_of(h) + peer] = mri_link_release(l);
    h->missing--;
}

/* ---- to lower ranks ---- */

static mri_wire_join join_of(const meshing *h, uint32_t k)
{
    mri_wire_join join = {.from = rank_of(h), .to = k % rank_of(h), .lane = k / rank_of(h)};
    memcpy(join.nonce, h->m->nonce, sizeof join.nonce);
    return join;
}

static void fail_call(meshing *h, uint32_t k, int sys_errno)
{
    const uint32_t peer = k % rank_of(h);
    const mri_wire_seat *seat = &h->m->seats[peer];
    char address[INET6_ADDRSTRLEN] = "";
    inet_ntop(seat->family == 4 ? AF_INET : AF_INET6, seat->address, address, sizeof address);
    const bool cut_off = sys_errno == ECONNRESET && h->calls[k].reached;
    mri_link_fini(&h->calls[k]);
    if (cut_off) h->again[k] = mri_clock_ns() + AGAIN_MS * MS_NS; /* a rank that is lost refuses it then */
    if (h->why.code || cut_off) return;
    mr_error_sys(&h->why, sys_errno, "%s cannot reach %s at %s port %u", name_of(h, rank_of(h)),
                 name_of(h, peer), address, seat->port);
}

static void start_call(meshing *h, uint32_t k)
{
    struct sockaddr_storage to;
    const socklen_t bytes = mri_wire_seat_to(&h->m->seats[k % rank_of(h)], &to);
    struct sockaddr_in6 *v6 = (struct sockaddr_in6 *)&to;
    if (to.ss_family == AF_INET6 && IN6_IS_ADDR_LINKLOCAL(&v6->sin6_addr)) { /* over the wire to rank 0 */
        struct sockaddr_in6 zero;
        socklen_t zero_bytes = sizeof zero;
        if (getpeername(h->m->star[0].fd, (struct sockaddr *)&zero, &zero_bytes) == 0 &&
            zero.sin6_family == AF_INET6)
            v6->sin6_scope_id = zero.sin6_scope_id;
    }
    const int rc = mri_link_connect(&h->calls[k], (const struct sockaddr *)&to, bytes, MRI_WIRE_SMALL_BYTES,
                                    &h->m->secret);
    if (rc) fail_call(h, k, rc);
}

/* When its time has come; returns when to look again. */
static uint64_t call_again(meshing *h, uint32_t k)
{
    const uint64_t due = h->again[k];
    if (mri_clock_ns() < due) return due;
    h->again[k] = 0;
    start_call(h, k);
    return h->again[k] ? h->again[k] : UINT64_MAX;
}

static void serve_call(meshing *h, uint32_t k)
{
    mri_link *l = &h->calls[k];
    const mri_wire_join mine = join_of(h, k);
    mri_wire_join echo;
    mri_wire_head head;
    const uint8_t *data;
    if (l->connecting) {
        uint8_t out[MRI_WIRE_SMALL_BYTES];
        const int sys_errno = mri_link_connected(l);
        if (sys_errno == EINPROGRESS) return;
        if (sys_errno) {
            fail_call(h, k, sys_errno);
            return;
        }
        if (mri_link_send(l, MRI_WIRE_JOIN, out, mri_wire_put_join(out, &mine)) != MR_OK)
            fail_call(h, k, ENOMEM);
        return;
    }
    mri_link_flush(l);
    const int rc = mri_link_read(l, &head, &data);
    if (rc == MR_EAGAIN) return;
    if (rc == MR_OK && head.kind == MRI_WIRE_JOINED &&
        mri_wire_get_join(data, head.bytes, size_of(h), MRI_LANES, &echo) &&
        memcmp(echo.nonce, mine.nonce, sizeof mine.nonce) == 0 && echo.from == mine.from &&
        echo.to == mine.to && echo.lane == mine.lane)
        keep(h, mine.lane, mine.to, l);
    else fail_call(h, k, rc == MR_OK || rc == MR_EFORMAT ? EPROTO : ECONNRESET);
}

/* ---- from higher ranks ---- */

static bool is_expected(const meshing *h, const mri_wire_join *join)
{
    return memcmp(join->nonce, h->m->nonce, sizeof join->nonce) == 0 && join->to == rank_of(h) &&
           join->from > rank_of(h) && h->fds[(size_t)join->lane * size_of(h) + join->from] < 0;
}

/* False: it must go. */
static bool serve_caller(meshing *h, mri_link *l)
{
    mri_wire_head head;
    const uint8_t *data;
    mri_wire_join join;
    uint8_t out[MRI_WIRE_SMALL_BYTES];
    const int rc = mri_link_read(l, &head, &data);
    if (rc == MR_EAGAIN) return true;
    if (rc == MR_EFORMAT && h->m->secret.set) mri_door_turn_away(&h->m->door, l);
    if (rc == MR_OK && head.kind == MRI_WIRE_HELLO)
        (void)mri_link_send(l, MRI_WIRE_OTHER, out,
                            mri_wire_put_reason(out, MR_EEXIST, "all ranks are there"));
    if (rc != MR_OK || head.kind != MRI_WIRE_JOIN || head.version != MRI_WIRE_VERSION ||
        !mri_wire_get_join(data, head.bytes, size_of(h), MRI_LANES, &join) || !is_expected(h, &join))
        return false;
    /* so few bytes go at once into a new connection */
    if (mri_link_send(l, MRI_WIRE_JOINED, out, mri_wire_put_join(out, &join)) != MR_OK ||
        !mri_link_is_flushed(l))
        return false;
    keep(h, join.lane, join.from, l);
    return false;
}

static void drop_caller(meshing *h, uint32_t k)
{
    mri_link_fini(&h->callers[k]);
    memmove(&h->callers[k], &h->callers[k + 1], (--h->caller_count - k) * sizeof *h->callers);
}

/* The one that has been there longest; of those without a proof, where there is a secret. */
static void drop_oldest(meshing *h)
{
    uint32_t oldest = 0;
    while (oldest + 1 < h->caller_count && h->callers[oldest].seal.state == MRI_SEAL_READY) oldest++;
    if (h->callers[oldest].seal.state == MRI_SEAL_READY) oldest = 0;
    drop_caller(h, oldest);
}

static void accept_all(meshing *h)
{
    int fd = -1, sys_errno = 0;
    for (uint32_t k = 0; k < ACCEPTS_MOST && (fd = mri_link_accept(h->m->listener, &sys_errno)) >= 0; k++) {
        if (h->caller_count == h->caller_room) drop_oldest(h);
        mri_link_host(&h->callers[h->caller_count++], fd, MRI_WIRE_SMALL_BYTES, &h->m->secret);
    }
    if (sys_errno && !h->why.code)
        mr_error_sys(&h->why, sys_errno, "%s cannot accept connections", name_of(h, rank_of(h)));
}

/* ---- with rank 0 ---- */

static void send_reason(mri_link *l, mri_wire_kind kind, const mr_error *why)
{
    uint8_t out[MRI_WIRE_SMALL_BYTES];
    (void)mri_link_send(l, kind, out, mri_wire_put_reason(out, why->code, why->text));
}

static void take_reason(meshing *h, const mri_wire_head *head, const uint8_t *data)
{
    char text[MRI_WIRE_TEXT_BYTES];
    int code;
    if (h->why.code) return;
    if (mri_wire_get_reason(data, head->bytes, &code, text)) mr_error_set(&h->why, code, "%s", text);
    else mr_error_set(&h->why, MR_EFORMAT, "a rank refuses the world and does not say why");
}

/* The link to rank `peer` has received something. */
static void serve_star(meshing *h, uint32_t peer)
{
    mri_link *l = &h->m->star[peer];
    mri_wire_head head;
    const uint8_t *data;
    mri_link_flush(l);
    const int rc = mri_link_read(l, &head, &data);
    if (rc == MR_EAGAIN) return;
    const bool at_zero = rank_of(h) == 0;
    if (rc != MR_OK) {
        mri_link_fini(l);
        if (!h->why.code)
            mr_error_set(&h->why, MR_EPEER, "%s went away while the ranks connected", name_of(h, peer));
    } else if (head.kind == (at_zero ? MRI_WIRE_FAILED : MRI_WIRE_REFUSED)) {
        take_reason(h, &head, data);
        if (at_zero) return;
        h->verdict = true;
        mri_link_fini(l);
    } else if (at_zero && head.kind == MRI_WIRE_DONE && !h->done[peer]) {
        h->done[peer] = true;
        h->done_count++;
    } else if (!at_zero && head.kind == MRI_WIRE_GO) {
        h->go = true;
    }
}

static void say_done(meshing *h)
{
    if (h->missing || h->said_done || rank_of(h) == 0) return;
    h->said_done = true;
    (void)mri_link_send(&h->m->star[0], MRI_WIRE_DONE, NULL, 0);
}

/* Rank 0: to all what came of it. */
static void say_verdict(meshing *h)
{
    for (uint32_t r = 1; r < size_of(h); r++) {
        mri_link *l = &h->m->star[r];
        if (l->fd < 0) continue;
        if (h->why.code) send_reason(l, MRI_WIRE_REFUSED, &h->why);
        else (void)mri_link_send(l, MRI_WIRE_GO, NULL, 0);
    }
    mri_meet_flush(h->m->star, size_of(h), SECOND_NS);
}

/* This rank has failed: rank 0 gets the reason, and announces the first cause. */
static void report_failure(meshing *h)
{
    mri_link *l = &h->m->star[0];
    const mr_error mine = h->why;
    const uint64_t due = mri_clock_ns() + 2 * SECOND_NS;
    if (l->fd < 0 || h->verdict) return;
    send_reason(l, MRI_WIRE_FAILED, &mine);
    while (l->fd >= 0 && mri_clock_ns() < due) {
        struct pollfd one = {.fd = l->fd, .events = mri_link_events(l)};
        if (poll(&one, 1, mri_meet_wait_ms(due)) <= 0) continue;
        h->why.code = 0;
        serve_star(h, 0);
        if (!h->verdict) h->why = mine;
    }
}

static double seconds_to_connect(const meshing *h)
{
    return h->m->cfg->meet_s > LEAST_S ? h->m->cfg->meet_s : LEAST_S;
}

static void take_timeout(meshing *h)
{
    const double seconds = seconds_to_connect(h);
    for (uint32_t k = 0; k < size_of(h) * MRI_LANES; k++) {
        const uint32_t peer = k % size_of(h);
        if (peer == rank_of(h) || h->fds[k] >= 0) continue;
        mr_error_set(&h->why, MR_EPEER, "%s and %s have all met rank 0, but did not connect within %.3g s",
                     name_of(h, rank_of(h)), name_of(h, peer), seconds);
        return;
    }
    for (uint32_t r = 1; rank_of(h) == 0 && r < size_of(h); r++)
        if (!h->done[r]) {
            mr_error_set(&h->why, MR_EPEER, "%s did not connect with the others within %.3g s", name_of(h, r),
                         seconds);
            return;
        }
    mr_error_set(&h->why, MR_EPEER, "rank 0 has not said that all are connected: it may be stopped");
}

/* ---- the loop ---- */

static void poll_once(meshing *h, uint64_t due)
{
    const uint32_t star_count = rank_of(h) == 0 ? size_of(h) : 1, callers = h->caller_count;
    struct pollfd *star = h->polls + 1, *calls = star + star_count, *strangers = calls + h->call_count;
    h->polls[0] = (struct pollfd){.fd = h->m->listener, .events = POLLIN};
    for (uint32_t k = 0; k < star_count; k++)
        star[k] = (struct pollfd){.fd = h->m->star[k].fd, .events = mri_link_events(&h->m->star[k])};
    for (uint32_t k = 0; k < h->call_count; k++) {
        if (h->again[k]) due = mri_min_u64(due, call_again(h, k));
        calls[k] = (struct pollfd){.fd = h->calls[k].fd, .events = mri_link_events(&h->calls[k])};
    }
    for (uint32_t k = 0; k < callers; k++)
        strangers[k] = (struct pollfd){.fd = h->callers[k].fd, .events = POLLIN};
    if (poll(h->polls, 1 + star_count + h->call_count + callers, mri_meet_wait_ms(due)) < 0) return;
    for (uint32_t k = 0; k < h->call_count; k++)
        if (h->calls[k].fd >= 0 && calls[k].revents) serve_call(h, k);
    for (uint32_t k = callers; k-- > 0;)
        if (strangers[k].revents && !serve_caller(h, &h->callers[k])) drop_caller(h, k);
    for (uint32_t k = 0; k < star_count; k++)
        if (h->m->star[k].fd >= 0 && star[k].revents) serve_star(h, k);
    if (h->polls[0].revents) accept_all(h);
}

static void connect_all(meshing *h)
{
    const bool at_zero = rank_of(h) == 0;
    const uint64_t due = mri_clock_ns() + (uint64_t)(seconds_to_connect(h) * 1e9);
    for (uint32_t k = 0; k < h->call_count && !h->why.code; k++) start_call(h, k);
    while (!h->why.code && !h->go) {
        /* those who lack a connection end first: they know more */
        const uint64_t limit = due + (at_zero ? VERDICT_S : h->missing ? 0 : 2 * VERDICT_S) * SECOND_NS;
        say_done(h);
        if (at_zero && !h->missing && h->done_count == size_of(h) - 1) return;
        if (mri_clock_ns() >= limit) take_timeout(h);
        else poll_once(h, limit);
    }
}

static int allocate(meshing *h, mr_error *err)
{
    const size_t size = size_of(h), lanes = MRI_LANES;
    h->call_count = MRI_LANES * rank_of(h);
    h->caller_room = MRI_LANES * (uint32_t)size + STRANGERS_MOST;
    h->calls = calloc(h->call_count + 1, sizeof *h->calls);
    h->again = calloc(h->call_count + 1, sizeof *h->again);
    h->callers = calloc(h->caller_room, sizeof *h->callers);
    h->polls = calloc(1 + size + h->call_count + h->caller_room, sizeof *h->polls);
    h->done = calloc(size, sizeof *h->done);
    h->missing = (uint32_t)(lanes * (size - 1));
    for (size_t k = 0; k < lanes * size; k++) h->fds[k] = -1;
    for (uint32_t k = 0; h->calls && k < h->call_count; k++) h->calls[k] = MRI_LINK_NONE;
    if (h->calls && h->again && h->callers && h->polls && h->done) return MR_OK;
    return mr_error_set(err, MR_ENOMEM, "no memory to connect %zu ranks", size);
}

static void end(meshing *h)
{
    for (uint32_t k = 0; h->calls && k < h->call_count; k++) mri_link_fini(&h->calls[k]);
    while (h->caller_count) drop_caller(h, h->caller_count - 1);
    free(h->calls);
    free(h->again);
    free(h->callers);
    free(h->polls);
    free(h->done);
}

int mri_mesh_join(mri_meeting *m, int *fds, mri_seal *seals, mr_error *err)
{
    meshing h = {.m = m, .fds = fds, .seals = seals};
    int rc = allocate(&h, err);
    if (rc == MR_OK) {
        connect_all(&h);
        if (m->cfg->rank == 0) say_verdict(&h);
        else if (h.why.code) report_failure(&h);
        rc = h.why.code;
        if (rc && err) *err = h.why;
    }
    end(&h);
    for (uint32_t k = 0; rc != MR_OK && k < MRI_LANES * m->cfg->size; k++)
        if (fds[k] >= 0) {
            close(fds[k]);
            fds[k] = -1;
        }
    return rc;
}
