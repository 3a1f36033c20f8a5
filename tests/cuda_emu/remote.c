/* tests/cuda_emu/remote.c: see remote.h. A transfer is several operations of its stream:
 *
 *     copy out, a piece each ... │ copy in, a piece each (or the sum)
 *                                └ these may run when all bytes have gone and come
 *
 * Both ends send a head before each piece; heads that differ are a violation. */
#include "tests/cuda_emu/remote.h"

#include <errno.h>
#include <stdatomic.h>
#include <stdio.h>
#include <sys/socket.h>
#include <sys/un.h>
#include <unistd.h>

#include "tests/cuda_emu/inside.h"

struct hello {
    int rank, identity;
};

struct head {
    uint64_t label, bytes;
};

struct emu_remote {
    _Atomic int refs;
    atomic_bool lost;
    int ranks, rank, identity, listener;
    int fd[EMU_MAX_RANKS]; /* -1: not yet, or the own one */
    int strange[EMU_MAX_RANKS], strange_count;
    char name[2 * EMU_REMOTE_NAME + 1];
    const void *user; /* the transfer under way */
};

/* ---- connecting ---- */

static socklen_t address_of(const struct emu_remote *r, int rank, struct sockaddr_un *out)
{
    *out = (struct sockaddr_un){.sun_family = AF_UNIX};
    const int n = snprintf(out->sun_path + 1, sizeof out->sun_path - 1, "millrace-emu-%s-%d", r->name, rank);
    return (socklen_t)(offsetof(struct sockaddr_un, sun_path) + 1 + (size_t)n);
}

static int new_socket(void) { return socket(AF_UNIX, SOCK_STREAM | SOCK_NONBLOCK | SOCK_CLOEXEC, 0); }

struct emu_remote *emu_remote_new(const void *name, int ranks, int rank, int identity)
{
    struct sockaddr_un at;
    struct emu_remote *r = calloc(1, sizeof *r);
    if (!r) return NULL;
    r->refs = 1;
    r->ranks = ranks;
    r->rank = rank;
    r->identity = identity;
    for (int i = 0; i < EMU_REMOTE_NAME; i++)
        snprintf(r->name + (size_t)2 * i, 3, "%02x", ((const unsigned char *)name)[i]);
    for (int i = 0; i < EMU_MAX_RANKS; i++) r->fd[i] = r->strange[i] = -1;
    r->listener = new_socket();
    const socklen_t bytes = address_of(r, rank, &at);
    if (r->listener >= 0 && bind(r->listener, (const struct sockaddr *)&at, bytes) == 0 &&
        listen(r->listener, EMU_MAX_RANKS) == 0)
        return r;
    emu_remote_drop(r);
    return NULL;
}

void emu_remote_cut(struct emu_remote *r)
{
    for (int i = 0; i < EMU_MAX_RANKS; i++) {
        if (r->fd[i] >= 0) close(r->fd[i]);
        if (r->strange[i] >= 0) close(r->strange[i]);
        r->fd[i] = r->strange[i] = -1;
    }
    if (r->listener >= 0) close(r->listener);
    r->listener = -1;
}

void emu_remote_drop(struct emu_remote *r)
{
    if (--r->refs > 0) return;
    emu_remote_cut(r);
    free(r);
}

static void call_lower(struct emu_remote *r, int rank)
{
    struct sockaddr_un at;
    const struct hello mine = {r->rank, r->identity};
    const socklen_t bytes = address_of(r, rank, &at);
    const int fd = new_socket();
    if (fd < 0) return;
    if (connect(fd, (const struct sockaddr *)&at, bytes) == 0 &&
        send(fd, &mine, sizeof mine, MSG_NOSIGNAL) == sizeof mine)
        r->fd[rank] = fd;
    else close(fd); /* it does not listen yet */
}

static void take_higher(struct emu_remote *r)
{
    int fd;
    while (r->strange_count < EMU_MAX_RANKS &&
           (fd = accept4(r->listener, NULL, NULL, SOCK_NONBLOCK | SOCK_CLOEXEC)) >= 0)
        r->strange[r->strange_count++] = fd;
    for (int i = 0; i < r->strange_count; i++) {
        struct hello h;
        if (recv(r->strange[i], &h, sizeof h, 0) != sizeof h) continue;
        if (h.identity == r->identity)
            emu_violation("ncclCommInitRankConfig: ranks %d and %d are the same GPU", r->rank, h.rank);
        if (h.rank > r->rank && h.rank < r->ranks) r->fd[h.rank] = r->strange[i];
        else close(r->strange[i]);
        r->strange[i] = r->strange[--r->strange_count];
        r->strange[r->strange_count] = -1;
        i--;
    }
}

bool emu_remote_is_connected(struct emu_remote *r)
{
    int missing = 0;
    if (r->listener >= 0) take_higher(r);
    for (int i = 0; i < r->ranks; i++) {
        if (i < r->rank && r->fd[i] < 0) call_lower(r, i);
        missing += i != r->rank && r->fd[i] < 0;
    }
    return missing == 0;
}

bool emu_remote_is_lost(const struct emu_remote *r)
{
    const char *how = getenv("MILLRACE_EMU_PEER_LOST");
    return r->lost && how && strcmp(how, "report") == 0;
}

/* ---- transfers ---- */

struct moving {
    struct emu_piece piece;
    struct head mine, theirs;
    size_t done; /* of head and bytes */
    unsigned char *copy;
};

struct transfer {
    struct emu_remote *remote;
    int refs, to_copy; /* under the emulator's lock, like all that follows; to_copy: pieces still in the
                          device */
    int count;
    struct emu_sum sum;
    unsigned char *own; /* this rank's summand */
    void (*over)(void *);
    void *context;
    struct moving pieces[];
};

struct step {
    struct transfer *t;
    int piece;
};

static void drop_transfer(struct transfer *t)
{
    if (--t->refs > 0) return;
    if (t->remote->user == t) t->remote->user = NULL;
    emu_remote_drop(t->remote);
    if (t->over) t->over(t->context);
    for (int i = 0; i < t->count; i++) free(t->pieces[i].copy);
    free(t->own);
    free(t);
}

static void drop_step(void *args) { drop_transfer(((const struct step *)args)->t); }

static bool is_done(const struct moving *m) { return m->done == sizeof m->mine + m->piece.bytes; }

static void check_head(const struct transfer *t, const struct moving *m)
{
    if (memcmp(&m->mine, &m->theirs, sizeof m->mine) == 0) return;
    emu_violation("ranks %d and %d disagree: call %llx of %llu bytes against call %llx of %llu bytes",
                  t->remote->rank, m->piece.peer, (unsigned long long)m->mine.label,
                  (unsigned long long)m->mine.bytes, (unsigned long long)m->theirs.label,
                  (unsigned long long)m->theirs.bytes);
}

/* Some bytes of a piece; true: it goes on at once. */
static bool move(struct transfer *t, struct moving *m)
{
    const size_t head = sizeof m->mine;
    const int fd = t->remote->fd[m->piece.peer];
    unsigned char *const in_head = (unsigned char *)(m->piece.sends ? &m->mine : &m->theirs),
                         *const at = m->done < head ? in_head + m->done : m->copy + (m->done - head);
    const size_t bytes = (m->done < head ? head : head + m->piece.bytes) - m->done;
    if (fd < 0) return false;
    const ssize_t n = m->piece.sends ? send(fd, at, bytes, MSG_NOSIGNAL) : recv(fd, at, bytes, 0);
    if (n <= 0) {
        if (n == 0 || (errno != EAGAIN && errno != EINTR)) t->remote->lost = true;
        return false;
    }
    m->done += (size_t)n;
    if (m->done == head && !m->piece.sends) check_head(t, m);
    return true;
}

/* All that goes on now; pieces of one direction of a pair in their order. */
static bool move_all(struct transfer *t)
{
    bool held[2][EMU_MAX_RANKS] = {{false}}, all = true;
    if (t->to_copy > 0) return false;
    if (t->remote->user && t->remote->user != t)
        emu_violation("two transfers of one communicator at once: it has one stream at a time");
    t->remote->user = t;
    for (int i = 0; i < t->count; i++) {
        struct moving *m = &t->pieces[i];
        bool *const stands = &held[m->piece.sends][m->piece.peer];
        while (!*stands && !is_done(m))
            if (!move(t, m)) *stands = true;
        all = all && is_done(m);
    }
    if (all) t->remote->user = NULL;
    return all;
}

static bool is_ready(void *args)
{
    struct transfer *t = ((const struct step *)args)->t;
    for (int i = 0; i < t->count; i++)
        if (!is_done(&t->pieces[i])) return move_all(t);
    return true;
}

static void copy_out(void *args)
{
    const struct step *s = args;
    struct moving *m = &s->t->pieces[s->piece];
    memcpy(m->copy, m->piece.at, m->piece.bytes);
    s->t->to_copy--;
}

static void copy_own(void *args)
{
    struct transfer *t = ((const struct step *)args)->t;
    memcpy(t->own, t->sum.own, t->sum.bytes);
    t->to_copy--;
}

static void copy_in(void *args)
{
    const struct step *s = args;
    const struct moving *m = &s->t->pieces[s->piece];
    memcpy(m->piece.at, m->copy, m->piece.bytes);
}

static const float *values_of(const struct transfer *t, int rank)
{
    for (int i = 0; i < t->count; i++)
        if (!t->pieces[i].piece.sends && t->pieces[i].piece.peer == rank) return (float *)t->pieces[i].copy;
    return (float *)t->own;
}

static void add_up(void *args)
{
    struct transfer *t = ((const struct step *)args)->t;
    const int ranks = t->remote->ranks;
    float *out = t->sum.out;
    memcpy(out, values_of(t, 1 % ranks), t->sum.bytes);
    for (int r = 2; r <= ranks; r++) {
        const float *more = values_of(t, r % ranks);
        for (size_t i = 0; i < t->sum.bytes / sizeof(float); i++) out[i] += more[i];
    }
}

/* ---- queueing ---- */

static struct transfer *new_transfer(struct emu_remote *r, uint64_t label, const struct emu_piece *pieces,
                                     int count, const struct emu_sum *sum)
{
    struct transfer *t = calloc(1, sizeof *t + (size_t)count * sizeof *t->pieces);
    if (!t) return NULL;
    *t = (struct transfer){.remote = r, .refs = 1, .count = count};
    if (sum) {
        t->sum = *sum;
        t->own = malloc(sum->bytes);
    }
    bool ok = !sum || t->own;
    for (int i = 0; i < count; i++) {
        t->pieces[i] = (struct moving){
            .piece = pieces[i], .mine = {label, pieces[i].bytes}, .copy = malloc(pieces[i].bytes)};
        ok = ok && t->pieces[i].copy;
        t->to_copy += pieces[i].sends;
    }
    t->to_copy += sum != NULL;
    r->refs++;
    if (ok) return t;
    drop_transfer(t);
    return NULL;
}

static CUresult queue_step(struct transfer *t, CUstream s, const char *name, int piece, emu_span span,
                           bool (*ready)(void *), void (*run)(void *))
{
    const struct step step = {t, piece};
    t->refs++;
    const CUresult rc = emu_queue_when(s, name, &span, 1, ready, run, drop_step, &step, sizeof step);
    t->refs -= rc != CUDA_SUCCESS; /* the caller has one more */
    return rc;
}

CUresult emu_remote_queue(struct emu_remote *r, CUstream s, const char *name, uint64_t label,
                          const struct emu_piece *pieces, int count, const struct emu_sum *sum,
                          void (*over)(void *), void *context)
{
    emu_lock();
    struct transfer *t = new_transfer(r, label, pieces, count, sum);
    CUresult rc = t ? CUDA_SUCCESS : CUDA_ERROR_OUT_OF_MEMORY;
    if (sum && !rc)
        rc = queue_step(t, s, name, -1, (emu_span){.at = sum->own, .bytes = sum->bytes}, NULL, copy_own);
    for (int i = 0; i < count && !rc; i++)
        if (pieces[i].sends)
            rc = queue_step(t, s, name, i, (emu_span){.at = pieces[i].at, .bytes = pieces[i].bytes}, NULL,
                            copy_out);
    bool comes = false;
    for (int i = 0; i < count && !rc && !sum; i++) {
        if (pieces[i].sends) continue;
        comes = true;
        rc =
            queue_step(t, s, name, i, (emu_span){.at = pieces[i].at, .bytes = pieces[i].bytes, .write = true},
                       is_ready, copy_in);
    }
    if (sum && !rc)
        rc = queue_step(t, s, name, -1, (emu_span){.at = sum->out, .bytes = sum->bytes, .write = true},
                        is_ready, add_up);
    else if (!comes && !rc) rc = queue_step(t, s, name, -1, (emu_span){.bytes = 0}, is_ready, NULL);
    if (t) {
        t->over = rc ? NULL : over;
        t->context = context;
        drop_transfer(t);
    }
    emu_unlock();
    return rc;
}
