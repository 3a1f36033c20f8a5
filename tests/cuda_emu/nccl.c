/* tests/cuda_emu/nccl.c: the emulated NCCL: communicators of one process and of several, sums, broadcasts,
 * and values from one rank to another.
 *
 *   clique   what ncclCommInitAll() makes: one communicator per device. Lives until all of them are gone and
 *            nothing is queued
 *   remote   what ncclCommInitRankConfig() makes: one communicator of several processes, in a clique of its
 *            own (remote.h). It must not block: its calls are over when ncclCommGetAsyncError() says so, and
 *            another call before that is a violation. So is a question while another thread is in a call of
 *            the communicator, or in a group with one: the question that finds a call over also frees it
 *   group    the calls of one thread between ncclGroupStart() and the ncclGroupEnd() that matches it; the
 *            n-th call on each communicator of a clique is one collective, queued when the group ends
 *
 * A collective is one operation of all its streams: it runs when each of them has come to it. Sums are taken
 * in an order that no single device would take (a ring that starts at device 1), and every device gets the
 * same bits.
 *
 * Errors that would hang or corrupt memory on GPUs are violations here: a collective of several devices
 * outside a group, a device missing in it, counts, types or roots that differ, a stream or memory of another
 * device, buffers that overlap by half, and a communicator destroyed while a graph still holds its
 * collectives. As documented, ncclCommDestroy() first waits for queued collectives, and ncclCommAbort() does
 * not: once every communicator of a clique was aborted, pending collectives end without running.
 *
 * If it is set to fail, ncclCommGetAsyncError() succeeds and reports an error, as it does when a peer
 * died. */
#include <limits.h>
#include <nccl.h>
#include <sched.h>
#include <stdatomic.h>
#include <stdlib.h>
#include <string.h>
#include <sys/random.h>

#include "tests/cuda_emu/emu.h"
#include "tests/cuda_emu/live.h"
#include "tests/cuda_emu/remote.h"

#define MAX_RANKS EMU_MAX_RANKS

ncclResult_t ncclGroupStart(void); /* the header leaves the parameters open */
ncclResult_t ncclGroupEnd(void);

struct clique {
    _Atomic int refs;    /* communicators, and collectives that may still run */
    _Atomic int held;    /* collectives that may still run */
    _Atomic int aborted; /* communicators */
    int ranks;
    CUstream streams[MAX_RANKS]; /* used last; one thread at a time, as the communicators */
};

struct ncclComm {
    struct clique *clique;
    int rank, device;
    struct emu_remote *remote; /* NULL: all ranks are here */
    _Atomic uintptr_t user;    /* remote: the thread in a call of it, or in a group with one; 0: none */
    int in_progress;           /* the number of queries still to answer with ncclInProgress */
    uint64_t calls, collectives;
    bool finalized;
};

enum kind { SUM, BROADCAST, SEND, RECEIVE };
static const char *const kind_names[] = {"ncclAllReduce", "ncclBroadcast", "ncclSend", "ncclRecv"};

struct call {
    enum kind kind; /* root: of SEND and RECEIVE the other rank */
    ncclComm_t comm;
    const void *send;
    void *receive;
    size_t count;
    ncclDataType_t type;
    ncclRedOp_t op;
    int root;
    CUstream stream;
    bool taken;
};

static _Thread_local struct group {
    int depth;
    ncclResult_t error; /* of a call in it: the group does nothing and returns this */
    struct call *calls;
    size_t count, cap;
} group;

/* Is it this thread's first call of the communicator that is not over? */
static bool enter(ncclComm_t comm, const char *call)
{
    uintptr_t user = 0;
    if (!comm->remote || atomic_compare_exchange_strong(&comm->user, &user, (uintptr_t)&group)) return true;
    if (user != (uintptr_t)&group)
        emu_violation("%s: another thread is in a call of the communicator, which does not block", call);
    return false;
}

static void clique_drop(struct clique *c)
{
    if (--c->refs == 0) free(c);
}

static size_t type_bytes(ncclDataType_t t)
{
    switch (t) {
    case ncclInt8:
    case ncclUint8:
    case ncclFloat8e4m3:
    case ncclFloat8e5m2: return 1;
    case ncclFloat16:
    case ncclBfloat16: return 2;
    case ncclInt32:
    case ncclUint32:
    case ncclFloat32: return 4;
    case ncclInt64:
    case ncclUint64:
    case ncclFloat64: return 8;
    default: return 0;
    }
}

const char *ncclGetErrorString(ncclResult_t result)
{
    switch (result) {
    case ncclSuccess: return "emulated: no error";
    case ncclUnhandledCudaError: return "emulated: unhandled cuda error";
    case ncclSystemError: return "emulated: unhandled system error";
    case ncclInternalError: return "emulated: internal error";
    case ncclInvalidArgument: return "emulated: invalid argument";
    case ncclInvalidUsage: return "emulated: invalid usage";
    case ncclRemoteError: return "emulated: a peer ended or its network failed";
    case ncclInProgress: return "emulated: operation in progress";
    default: return "emulated: unknown result code";
    }
}

ncclResult_t ncclGetVersion(int *version)
{
    if (emu_fails("ncclGetVersion")) return ncclInternalError;
    if (!version) return ncclInvalidArgument;
    *version = NCCL_VERSION_CODE;
    return ncclSuccess;
}

/* ---- communicators ---- */

static bool alive(ncclComm_t comm, const char *call)
{
    if (!comm) return false;
    if (emu_live_is(comm, EMU_NCCL_COMM)) return true;
    emu_violation("%s: the communicator was destroyed, aborted or never created", call);
    return false;
}

static ncclResult_t check_devices(int count, const int *list)
{
    const int there = emu_settings()->devices;
    if (count < 1 || count > MAX_RANKS) return ncclInvalidArgument;
    for (int i = 0; i < count; i++) {
        const int device = list ? list[i] : i;
        if (device < 0 || device >= there) return ncclInvalidArgument;
        for (int j = 0; j < i; j++)
            if ((list ? list[j] : j) == device) return ncclInvalidUsage;
    }
    return ncclSuccess;
}

static ncclComm_t make_comm(struct clique *c, int rank, int device)
{
    struct ncclComm *comm = calloc(1, sizeof *comm);
    if (!comm || !emu_live_add(comm, EMU_NCCL_COMM)) {
        free(comm);
        return NULL;
    }
    *comm = (struct ncclComm){.clique = c, .rank = rank, .device = device};
    c->refs++;
    return comm;
}

static void end_comm(ncclComm_t comm)
{
    emu_live_remove(comm, EMU_NCCL_COMM);
    if (comm->remote) {
        emu_remote_cut(comm->remote);
        emu_remote_drop(comm->remote);
    }
    clique_drop(comm->clique);
    free(comm);
}

ncclResult_t ncclCommInitAll(ncclComm_t *comm, int ndev, const int *devlist)
{
    if (emu_fails("ncclCommInitAll")) return ncclSystemError;
    if (!comm) return ncclInvalidArgument;
    const ncclResult_t rc = check_devices(ndev, devlist);
    if (rc != ncclSuccess) return rc;
    struct clique *c = calloc(1, sizeof *c);
    if (!c) return ncclSystemError;
    c->refs = 1; /* this call's */
    c->ranks = ndev;
    int made = 0;
    while (made < ndev && (comm[made] = make_comm(c, made, devlist ? devlist[made] : made))) made++;
    if (made < ndev)
        while (made > 0) end_comm(comm[--made]);
    clique_drop(c);
    return made == ndev ? ncclSuccess : ncclSystemError;
}

ncclResult_t ncclGetUniqueId(ncclUniqueId *uniqueId)
{
    if (emu_fails("ncclGetUniqueId")) return ncclSystemError;
    if (!uniqueId) return ncclInvalidArgument;
    memset(uniqueId, 0, sizeof *uniqueId);
    return getrandom(uniqueId->internal, EMU_REMOTE_NAME, 0) == EMU_REMOTE_NAME ? ncclSuccess
                                                                                : ncclSystemError;
}

/* The GPU, and the host as NCCL_HOSTID names it: the same GPU of two hosts is two. */
static int identity_of(int device)
{
    CUuuid id;
    if (cuDeviceGetUuid(&id, device) != CUDA_SUCCESS) return -1;
    unsigned int sum = id.bytes[sizeof id.bytes - 1];
    for (const char *c = getenv("NCCL_HOSTID"); c && *c; c++) sum = sum * 31 + (unsigned char)*c;
    return (int)(sum & INT_MAX);
}

ncclResult_t ncclCommInitRankConfig(ncclComm_t *comm, int nranks, ncclUniqueId commId, int rank,
                                    ncclConfig_t *config)
{
    if (emu_fails("ncclCommInitRankConfig")) return ncclSystemError;
    const int device = emu_current_device();
    if (!comm || !config || nranks < 1 || nranks > MAX_RANKS || rank < 0 || rank >= nranks || device < 0)
        return ncclInvalidArgument;
    if (config->blocking != 0) {
        emu_violation("ncclCommInitRankConfig: a communicator that blocks cannot be given up while a rank is "
                      "missing");
        return ncclInvalidUsage;
    }
    struct clique *c = calloc(1, sizeof *c);
    if (!c) return ncclSystemError;
    c->refs = 1;
    c->ranks = nranks;
    ncclComm_t made = make_comm(c, rank, device);
    if (made) made->remote = emu_remote_new(commId.internal, nranks, rank, identity_of(device));
    clique_drop(c);
    if (made && !made->remote) end_comm(made);
    else *comm = made;
    return made && *comm == made ? ncclInProgress : ncclSystemError;
}

/* Its calls so far are over. */
static bool is_idle(ncclComm_t comm) { return !comm->remote || (comm->in_progress == 0 && !comm->finalized); }

ncclResult_t ncclCommFinalize(ncclComm_t comm)
{
    if (emu_fails("ncclCommFinalize")) return ncclInternalError;
    if (!alive(comm, "ncclCommFinalize")) return ncclInvalidArgument;
    if (!is_idle(comm)) emu_violation("ncclCommFinalize: a call of the communicator is in progress");
    comm->finalized = true;
    comm->in_progress = 2;
    return comm->remote ? ncclInProgress : ncclSuccess;
}

/* Wait for the operations queued on this communicator's stream. */
static ncclResult_t flush(ncclComm_t comm)
{
    struct clique *c = comm->clique;
    const CUstream s = c->streams[comm->rank];
    if (c->held > 0 && s && emu_device_of_stream(s) >= 0 && cuStreamSynchronize(s) != CUDA_SUCCESS)
        return ncclUnhandledCudaError;
    if (c->held > 0 && c->aborted == 0)
        emu_violation("ncclCommDestroy: a graph still holds collectives of the communicator");
    return ncclSuccess;
}

ncclResult_t ncclCommDestroy(ncclComm_t comm)
{
    const bool fails = emu_fails("ncclCommDestroy"); /* the communicator is destroyed even if the call
                                                      * fails */
    if (!comm) return ncclSuccess;
    if (!alive(comm, "ncclCommDestroy")) return ncclInvalidArgument;
    const ncclResult_t rc = flush(comm);
    end_comm(comm);
    return fails ? ncclUnhandledCudaError : rc;
}

ncclResult_t ncclCommAbort(ncclComm_t comm)
{
    const bool fails = emu_fails("ncclCommAbort");
    if (!comm) return ncclSuccess;
    if (!alive(comm, "ncclCommAbort")) return ncclInvalidArgument;
    struct clique *c = comm->clique;
    if (comm->remote || ++c->aborted == c->ranks) {
        c->aborted = c->ranks;
        CUstream used[MAX_RANKS];
        int count = 0;
        for (int r = 0; r < c->ranks; r++)
            if (c->streams[r] && emu_device_of_stream(c->streams[r]) >= 0) used[count++] = c->streams[r];
        if (count > 0) emu_cancel(used, count, "nccl");
    }
    end_comm(comm);
    return fails ? ncclUnhandledCudaError : ncclSuccess;
}

ncclResult_t ncclCommGetAsyncError(ncclComm_t comm, ncclResult_t *asyncError)
{
    const bool fails = emu_fails("ncclCommGetAsyncError");
    if (!asyncError || !alive(comm, "ncclCommGetAsyncError")) return ncclInvalidArgument;
    *asyncError = fails ? ncclRemoteError : ncclSuccess;
    if (fails || !comm->remote) return ncclSuccess;
    const bool alone = enter(comm, "ncclCommGetAsyncError");
    sched_yield(); /* to whoever would ask meanwhile */
    if (emu_remote_is_lost(comm->remote)) *asyncError = ncclRemoteError;
    else if (comm->in_progress > 0 || emu_hangs("ncclCommInitRankConfig") ||
             !emu_remote_is_connected(comm->remote))
        *asyncError = ncclInProgress;
    if (comm->in_progress > 0) comm->in_progress--;
    if (alone) comm->user = 0;
    return ncclSuccess;
}

/* ---- running ---- */

struct collective {
    struct clique *clique;
    enum kind kind;
    int ranks, root;
    size_t count, bytes;
    const void *send[MAX_RANKS];
    void *receive[MAX_RANKS];
};

static void run_sum(const struct collective *o)
{
    for (size_t i = 0; i < o->count; i++) {
        float sum = ((const float *)o->send[1 % o->ranks])[i];
        for (int r = 2; r <= o->ranks && o->ranks > 1; r++) sum += ((const float *)o->send[r % o->ranks])[i];
        for (int r = 0; r < o->ranks; r++) ((float *)o->receive[r])[i] = sum;
    }
}

static void run_collective(void *args)
{
    const struct collective *o = args;
    if (o->kind == SUM) {
        run_sum(o);
        return;
    }
    for (int r = 0; r < o->ranks; r++)
        if (o->receive[r] != o->send[o->root]) memcpy(o->receive[r], o->send[o->root], o->bytes);
}

static void drop_collective(void *args)
{
    struct clique *c = ((const struct collective *)args)->clique;
    c->held--;
    clique_drop(c);
}

/* ---- queueing ---- */

static bool same(const struct call *a, const struct call *b)
{
    return a->kind == b->kind && a->count == b->count && a->type == b->type && a->root == b->root;
}

static int call_spans(const struct call *c, size_t bytes, emu_span *out)
{
    int count = 0;
    const bool reads = c->kind == SUM || c->comm->rank == c->root;
    if (reads && c->send != c->receive) out[count++] = (emu_span){.at = c->send, .bytes = bytes};
    out[count++] = (emu_span){.at = c->receive, .bytes = bytes, .write = true};
    return count;
}

/* calls: one of each rank. */
static ncclResult_t queue_collective(struct call *const *calls)
{
    struct clique *c = calls[0]->comm->clique;
    const size_t bytes = calls[0]->count * type_bytes(calls[0]->type);
    struct collective o = {.clique = c,
                           .kind = calls[0]->kind,
                           .ranks = c->ranks,
                           .root = calls[0]->root,
                           .count = calls[0]->count,
                           .bytes = bytes};
    CUstream streams[MAX_RANKS];
    emu_span spans[2 * MAX_RANKS];
    int span_count = 0;
    for (int r = 0; r < c->ranks; r++) {
        o.send[r] = calls[r]->send;
        o.receive[r] = calls[r]->receive;
        streams[r] = c->streams[r] = calls[r]->stream;
        span_count += call_spans(calls[r], bytes, spans + span_count);
    }
    if (calls[0]->count == 0) return ncclSuccess;
    if (span_count > EMU_MAX_SPANS) return ncclInternalError; /* a limit of the emulation */
    c->refs++;
    c->held++;
    if (emu_queue_together(streams, c->ranks, kind_names[o.kind], spans, span_count, run_collective,
                           drop_collective, &o, sizeof o) == CUDA_SUCCESS)
        return ncclSuccess;
    c->held--;
    clique_drop(c);
    return ncclUnhandledCudaError;
}

/* ---- of several processes ---- */

static void drop_held(void *clique)
{
    struct clique *c = clique;
    c->held--;
    clique_drop(c);
}

static int pieces_of_collective(const struct call *c, size_t bytes, struct emu_piece *out)
{
    const int ranks = c->comm->clique->ranks, rank = c->comm->rank;
    int count = 0;
    for (int r = 0; r < ranks; r++) {
        if (r == rank) continue;
        if (c->kind == SUM || c->root == rank)
            out[count++] =
                (struct emu_piece){.sends = true, .peer = r, .at = (void *)c->send, .bytes = bytes};
        if (c->kind == SUM || c->root == r)
            out[count++] =
                (struct emu_piece){.peer = r, .at = c->kind == SUM ? NULL : c->receive, .bytes = bytes};
    }
    return count;
}

/* After the call the library may still be at work, for in_progress queries. */
static ncclResult_t queue_remote(const struct call *c, const struct emu_piece *pieces, int count)
{
    ncclComm_t comm = c->comm;
    const size_t bytes = c->count * type_bytes(c->type);
    const struct emu_sum sum = {c->send, c->receive, bytes};
    const bool collective = c->kind == SUM || c->kind == BROADCAST;
    const uint64_t number = ++comm->calls,
                   label = !collective
                               ? 0
                               : ++comm->collectives << 16 | (uint64_t)(c->kind + 1) << 8 | (uint64_t)c->root;
    comm->clique->streams[comm->rank] = c->stream;
    comm->clique->refs++;
    comm->clique->held++;
    if (c->kind == BROADCAST && c->root == comm->rank && c->send != c->receive)
        emu_violation("ncclBroadcast: the root's buffers differ: a limit of the emulation");
    if (emu_remote_queue(comm->remote, c->stream, kind_names[c->kind], label, pieces, count,
                         c->kind == SUM ? &sum : NULL, drop_held, comm->clique) == CUDA_SUCCESS) {
        comm->in_progress = (int)(number % 3);
        return comm->in_progress ? ncclInProgress : ncclSuccess;
    }
    drop_held(comm->clique);
    return ncclUnhandledCudaError;
}

/* The sends and receives of one communicator in a group run beside each other. */
static ncclResult_t launch_remote(struct call *first, struct call *end)
{
    struct emu_piece *pieces = calloc((size_t)(end - first) + 2 * MAX_RANKS, sizeof *pieces);
    ncclComm_t comm = first->comm;
    int count = 0;
    if (!pieces) return ncclSystemError;
    if (first->kind == SUM || first->kind == BROADCAST) {
        count = pieces_of_collective(first, first->count * type_bytes(first->type), pieces);
        first->taken = true;
    } else {
        for (struct call *c = first; c < end; c++) {
            if (c->taken || c->comm != comm || (c->kind != SEND && c->kind != RECEIVE)) continue;
            c->taken = true;
            pieces[count++] = (struct emu_piece){.sends = c->kind == SEND,
                                                 .peer = c->root,
                                                 .at = c->kind == SEND ? (void *)c->send : c->receive,
                                                 .bytes = c->count * type_bytes(c->type)};
            if (c->stream != first->stream)
                emu_violation("ncclGroupEnd: one communicator on two streams: a limit of the emulation");
        }
    }
    const ncclResult_t rc = queue_remote(first, pieces, count);
    free(pieces);
    return rc;
}

/* The first call not yet taken of every rank, or the rank without a call. */
static int match(const struct clique *c, struct call **out)
{
    for (int r = 0; r < c->ranks; r++) {
        out[r] = NULL;
        for (size_t i = 0; i < group.count && !out[r]; i++)
            if (!group.calls[i].taken && group.calls[i].comm->clique == c && group.calls[i].comm->rank == r)
                out[r] = &group.calls[i];
        if (!out[r]) return r;
    }
    return -1;
}

static ncclResult_t launch_group(void)
{
    ncclResult_t result = ncclSuccess;
    for (size_t i = 0; i < group.count; i++) {
        struct call *calls[MAX_RANKS] = {NULL};
        if (group.calls[i].taken) continue;
        if (group.calls[i].comm->remote) {
            const ncclResult_t rc = launch_remote(&group.calls[i], group.calls + group.count);
            if (rc != ncclSuccess && rc != ncclInProgress) return rc;
            if (rc == ncclInProgress) result = rc;
            continue;
        }
        const struct clique *c = group.calls[i].comm->clique;
        const char *name = kind_names[group.calls[i].kind];
        const int missing = match(c, calls);
        if (missing >= 0) {
            emu_violation("ncclGroupEnd: %s would hang: rank %d of %d does not take part", name, missing,
                          c->ranks);
            return ncclInvalidUsage;
        }
        for (int r = 0; r < c->ranks; r++) {
            calls[r]->taken = true;
            if (same(calls[0], calls[r])) continue;
            emu_violation("ncclGroupEnd: ranks 0 and %d disagree: %s of %zu values of type %d, root %d, "
                          "against %s of %zu of type %d, root %d",
                          r, kind_names[calls[0]->kind], calls[0]->count, calls[0]->type, calls[0]->root,
                          kind_names[calls[r]->kind], calls[r]->count, calls[r]->type, calls[r]->root);
            return ncclInvalidUsage;
        }
        const ncclResult_t rc = queue_collective(calls);
        if (rc != ncclSuccess) return rc;
    }
    return result;
}

static ncclResult_t end_group(void)
{
    const ncclResult_t rc = group.error != ncclSuccess ? group.error : launch_group();
    for (size_t i = 0; i < group.count; i++)
        if (group.calls[i].comm->remote) group.calls[i].comm->user = 0;
    free(group.calls);
    group = (struct group){0};
    return rc;
}

ncclResult_t ncclGroupStart(void)
{
    if (emu_fails("ncclGroupStart")) return ncclInternalError;
    group.depth++;
    return ncclSuccess;
}

ncclResult_t ncclGroupEnd(void)
{
    const bool fails = emu_fails("ncclGroupEnd");
    if (group.depth == 0) return ncclInvalidUsage;
    if (fails && group.error == ncclSuccess) group.error = ncclUnhandledCudaError;
    if (--group.depth > 0) return group.error;
    return end_group();
}

static bool on_device(const struct call *c, const void *at, size_t bytes, const char *what)
{
    if (bytes == 0 || emu_device_of_address(at, bytes) == c->comm->device) return true;
    emu_violation("%s: the %s buffer of rank %d, %zu bytes at %p, is not (whole) in memory of device %d",
                  kind_names[c->kind], what, c->comm->rank, bytes, at, c->comm->device);
    return false;
}

static ncclResult_t check_call(const struct call *c)
{
    const char *name = kind_names[c->kind];
    if (!alive(c->comm, name)) return ncclInvalidArgument;
    if (!is_idle(c->comm) || (c->comm->remote && !emu_remote_is_connected(c->comm->remote))) {
        emu_violation("%s: a call of the communicator is in progress", name);
        return ncclInvalidUsage;
    }
    if ((c->kind == SEND || c->kind == RECEIVE) && (!c->comm->remote || c->root == c->comm->rank)) {
        emu_violation("%s: to itself, or inside of a process: a limit of the emulation", name);
        return ncclInvalidArgument;
    }
    if (c->kind == SUM && (c->type != ncclFloat32 || c->op != ncclSum)) {
        emu_violation("ncclAllReduce: only sums of float are emulated");
        return ncclInvalidArgument;
    }
    const size_t bytes = c->count * type_bytes(c->type);
    if (type_bytes(c->type) == 0 || c->root < 0 || c->root >= c->comm->clique->ranks)
        return ncclInvalidArgument;
    if (c->count > SIZE_MAX / 8) return ncclInvalidArgument;
    if (emu_device_of_stream(c->stream) != c->comm->device) {
        emu_violation("%s: rank %d is device %d, its stream is of device %d", name, c->comm->rank,
                      c->comm->device, emu_device_of_stream(c->stream));
        return ncclInvalidArgument;
    }
    const bool reads =
                   c->kind == SUM || c->kind == SEND || (c->kind == BROADCAST && c->comm->rank == c->root),
               writes = c->kind != SEND;
    if ((writes && !on_device(c, c->receive, bytes, "receive")) ||
        (reads && !on_device(c, c->send, bytes, "send")))
        return ncclInvalidArgument;
    const uintptr_t from = (uintptr_t)c->send, to = (uintptr_t)c->receive;
    if (reads && writes && from != to && from < to + bytes && to < from + bytes) {
        emu_violation("%s: buffers of rank %d overlap and are not the same", name, c->comm->rank);
        return ncclInvalidArgument;
    }
    if (group.depth == 0 && c->comm->clique->ranks > 1 && !c->comm->remote) {
        emu_violation("%s outside a group: one thread that drives several devices waits for itself", name);
        return ncclInvalidUsage;
    }
    return ncclSuccess;
}

static bool keep_call(const struct call *c)
{
    if (group.count == group.cap) {
        const size_t cap = group.cap ? 2 * group.cap : 16;
        struct call *more = realloc(group.calls, cap * sizeof *more);
        if (!more) return false;
        group.calls = more;
        group.cap = cap;
    }
    group.calls[group.count++] = *c;
    return true;
}

static ncclResult_t take_call(const struct call *c, bool fails)
{
    ncclResult_t rc = fails ? ncclUnhandledCudaError : check_call(c);
    if (rc == ncclSuccess && !keep_call(c)) rc = ncclSystemError;
    if (rc == ncclSuccess) enter(c->comm, kind_names[c->kind]);
    if (rc != ncclSuccess && group.error == ncclSuccess) group.error = rc;
    if (group.depth > 0) return rc;
    return end_group();
}

ncclResult_t ncclAllReduce(const void *sendbuff, void *recvbuff, size_t count, ncclDataType_t datatype,
                           ncclRedOp_t op, ncclComm_t comm, cudaStream_t stream)
{
    const bool fails = emu_fails("ncclAllReduce");
    return take_call(&(struct call){.kind = SUM,
                                    .comm = comm,
                                    .send = sendbuff,
                                    .receive = recvbuff,
                                    .count = count,
                                    .type = datatype,
                                    .op = op,
                                    .stream = stream},
                     fails);
}

ncclResult_t ncclBroadcast(const void *sendbuff, void *recvbuff, size_t count, ncclDataType_t datatype,
                           int root, ncclComm_t comm, cudaStream_t stream)
{
    const bool fails = emu_fails("ncclBroadcast");
    return take_call(&(struct call){.kind = BROADCAST,
                                    .comm = comm,
                                    .send = sendbuff,
                                    .receive = recvbuff,
                                    .count = count,
                                    .type = datatype,
                                    .root = root,
                                    .stream = stream},
                     fails);
}

ncclResult_t ncclSend(const void *sendbuff, size_t count, ncclDataType_t datatype, int peer, ncclComm_t comm,
                      cudaStream_t stream)
{
    const bool fails = emu_fails("ncclSend");
    return take_call(&(struct call){.kind = SEND,
                                    .comm = comm,
                                    .send = sendbuff,
                                    .count = count,
                                    .type = datatype,
                                    .root = peer,
                                    .stream = stream},
                     fails);
}

ncclResult_t ncclRecv(void *recvbuff, size_t count, ncclDataType_t datatype, int peer, ncclComm_t comm,
                      cudaStream_t stream)
{
    const bool fails = emu_fails("ncclRecv");
    return take_call(&(struct call){.kind = RECEIVE,
                                    .comm = comm,
                                    .receive = recvbuff,
                                    .count = count,
                                    .type = datatype,
                                    .root = peer,
                                    .stream = stream},
                     fails);
}
