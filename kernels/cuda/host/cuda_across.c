/* kernels/cuda/host/cuda_across.c: sums and broadcasts between the GPUs of several processes, by NCCL. All
 * GPUs of all processes, in their order, are the ranks of one communicator.
 *
 *   fast             NCCL's all-reduce, in NCCL's order
 *   deterministic    as host_wire.h does it, on the GPUs, in blocks of BLOCK_FLOATS:
 *       every GPU    its own nodes of slice g ──► GPU g       each element of the sum is made by one GPU,
 *       GPU g        all nodes of slice g, added up           in the order of the tree
 *       GPU g        slice g of the sum ──► every GPU
 *
 * The processes find each other over the group's wire: first whether each of them can use NCCL, and the id of
 * the communicator; then who holds which GPU and which leaves. Whatever one of them lacks ends all, by name.
 * If NCCL is optional, it ends nothing: all find it in the same messages, or tell each other after they have
 * connected, and do without NCCL.
 *
 * The communicators do not block (ncclConfig_t.blocking 0): a call that needs another process is asked for
 * until it is over, and ends when the group is given up, or a process is lost. */
#include <stdio.h>

#include "base/hash.h"
#include "kernels/backend/spec.h"
#include "kernels/backend/sum_tree.h"
#include "kernels/cuda/host/gpu.h"

#define BLOCK_FLOATS   4194304u /* of each array */
#define SLICE_FLOATS   64u      /* slices begin at multiples of it */
#define FIRST_SLEEP_NS 2000u
#define LAST_SLEEP_NS  1000000u

struct mri_cuda_across {
    struct mri_cuda_comm *parts; /* the group's: one for each device here */
    mri_cuda_stream **streams;
    mr_wire wire;
    uint32_t devices, first, all; /* here; the number of the first of them; of all processes */
    uint32_t *node_at;            /* all + 1: GPU g makes node[node_at[g] ... node_at[g + 1]) */
    mr_sum_node *node;
    bool in_tree, optional;
    bool refused;         /* optional: some process cannot use NCCL, as all of them know */
    uint64_t until_ns;    /* while it is opened: when that must be over; 0: no limit */
    mri_sum_program root; /* in_tree: of all nodes */
    float **room;         /* in_tree: of each device here, for what comes of a block */
    float **arrays;       /* in_tree: one for each node, while a block is added */
    uint32_t *own_at;     /* devices + 1: places in the values of the group */
    atomic_bool stopped;
    pthread_mutex_t calls; /* as in struct mri_cuda_comm, of all parts */
};

static const struct mri_cuda_api *api_of(const struct mri_cuda_across *a) { return a->parts[0].dev->api; }

/* ---- who is there ---- */

struct card { /* of each process, to all */
    int32_t rc;
    int32_t version;
    uint32_t devices;
    uint32_t in_tree; /* as in mri_cuda_across */
    ncclUniqueId id;  /* process 0's counts */
    char text[384];   /* of rc */
};

struct seat { /* of each GPU, to all */
    mr_sum_node leaves;
    uint32_t process;
    CUuuid gpu;
    uint64_t host; /* as NCCL_HOSTID names it, or 0 */
};

/* The same bytes of every process to all: mine, and `bytes[r]` of process r at their place in `all`. */
static int tell_all(const struct mri_cuda_across *a, void *mine, const size_t *bytes, char *all,
                    mr_error *err)
{
    const uint32_t size = a->wire.size, me = a->wire.rank;
    mr_piece *pieces = calloc(2 * (size_t)size, sizeof *pieces);
    if (!pieces) return mr_error_set(err, MR_ENOMEM, "no memory for a group of %u processes", size);
    for (uint32_t r = 0; r < size; all += bytes[r++]) {
        if (r == me) {
            memcpy(all, mine, bytes[me]);
            continue;
        }
        pieces[r] = (mr_piece){mine, bytes[me]};
        pieces[size + r] = (mr_piece){all, bytes[r]};
    }
    const int rc = a->wire.exchange(a->wire.context, pieces, pieces + size, err);
    free(pieces);
    return rc;
}

static void write_card(const struct mri_cuda_across *a, struct card *out)
{
    mr_error err = MR_ERROR_INIT;
    *out = (struct card){.devices = a->devices, .in_tree = a->in_tree};
    out->rc = mri_cuda_need(MRI_CUDA_NCCL, &err);
    if (!out->rc)
        out->rc = mri_cuda_check_nccl(a->parts[0].dev, api_of(a)->ncclGetVersion(&out->version),
                                      "asking for NCCL's version", &err);
    if (!out->rc && a->wire.rank == 0) {
        out->rc = mri_cuda_enter(a->parts[0].dev, &err);
        if (!out->rc)
            out->rc = mri_cuda_check_nccl(a->parts[0].dev, api_of(a)->ncclGetUniqueId(&out->id),
                                          "beginning the exchange between GPUs", &err);
    }
    if (out->rc) mr_error_format(&err, out->text, sizeof out->text);
}

/* What process r lacks is its own error; for the others it is lost. */
static int end_for(struct mri_cuda_across *a, uint32_t r, int rc, mr_error *err, const char *text)
{
    a->refused = a->optional;
    if (a->optional) return mr_error_set(err, MR_EUNSUPPORTED, "rank %u cannot use NCCL: %s", r, text);
    return mr_error_set(err, a->wire.rank == r ? rc : MR_EPEER, "rank %u cannot use wire nccl: %s", r, text);
}

static int check_cards(struct mri_cuda_across *a, const struct card *cards, mr_error *err)
{
    char text[192];
    const uint32_t me = a->wire.rank;
    if (cards[me].rc) return end_for(a, me, cards[me].rc, err, cards[me].text);
    for (uint32_t r = 0; r < a->wire.size; r++)
        if (cards[r].rc) return end_for(a, r, cards[r].rc, err, cards[r].text);
    for (uint32_t r = 0; r < a->wire.size; r++)
        if (cards[r].in_tree != cards[0].in_tree)
            return end_for(a, r, MR_EINVAL, err,
                           "of it and rank 0 one computes deterministically, and one does not");
    for (uint32_t k = 0; k < a->wire.size; k++) {
        const uint32_t r = (me + k) % a->wire.size; /* an own difference first */
        const int own = cards[r].version, first = cards[0].version;
        if (own == first) continue;
        snprintf(
            text, sizeof text,
            "it has NCCL %d.%d.%d, rank 0 has %d.%d.%d; install the same one for all, or name its folder "
            "in MILLRACE_CUDA_PATH",
            own / 10000, own / 100 % 100, own % 100, first / 10000, first / 100 % 100, first % 100);
        return end_for(a, r, MR_EUNSUPPORTED, err, text);
    }
    return MR_OK;
}

static int same_gpu(struct mri_cuda_across *a, uint32_t one, uint32_t other, mr_error *err)
{
    a->refused = a->optional;
    return mr_error_set(err, MR_EUNSUPPORTED,
                        "ranks %u and %u compute on the same GPU, and NCCL wants each GPU of a run once%s",
                        one, other,
                        a->optional ? ""
                                    : ": start fewer processes, give each its own GPU (--devices cuda does "
                                      "where there are enough), or choose wire auto");
}

static int check_seats(struct mri_cuda_across *a, uint32_t leaves, const struct seat *seats, mr_error *err)
{
    uint32_t next = 0;
    for (uint32_t g = 0; g < a->all; g++) {
        const mr_sum_node *l = &seats[g].leaves;
        if (l->first != next || l->count == 0 || l->count > leaves - next)
            return mr_error_set(err, MR_EINVAL,
                                "rank %u holds parts %u to %u of %u: expected them to begin with %u, and at "
                                "least one",
                                seats[g].process, l->first, l->first + l->count - 1, leaves, next);
        next += l->count;
        for (uint32_t k = 0; k < g; k++)
            if (memcmp(&seats[g].gpu, &seats[k].gpu, sizeof seats[g].gpu) == 0 &&
                seats[g].host == seats[k].host)
                return same_gpu(a, seats[k].process, seats[g].process, err);
    }
    if (next == leaves) return MR_OK;
    return mr_error_set(err, MR_EINVAL, "%u ranks hold %u parts: expected all %u", a->wire.size, next,
                        leaves);
}

static int write_seats(const struct mri_cuda_across *a, const struct mri_group_plan *plan, struct seat *out,
                       mr_error *err)
{
    int rc = MR_OK;
    const uint64_t key[2] = {0, 0};
    const char *host = getenv("NCCL_HOSTID"); /* NCCL takes the same GPU of two hosts for two */
    for (uint32_t i = 0; rc == MR_OK && i < a->devices; i++) {
        mri_cuda_device *dev = a->parts[i].dev;
        const mr_sum_node *first = &plan->node[plan->node_at[i]],
                          *last = &plan->node[plan->node_at[i + 1] - 1];
        out[i] = (struct seat){.leaves = {first->first, last->first + last->count - first->first},
                               .process = a->wire.rank,
                               .host = host ? mri_siphash(key, host, strlen(host)) : 0};
        rc = mri_cuda_check(dev, dev->api->cuDeviceGetUuid(&out[i].gpu, dev->device),
                            "asking for the GPU's identity", err);
    }
    return rc;
}

/* ---- opening ---- */

/* Is it over on this communicator? MR_EAGAIN: not yet. */
static int ask(struct mri_cuda_across *a, uint32_t device, const char *what, mr_error *err)
{
    struct mri_cuda_comm *part = &a->parts[device];
    ncclResult_t now = ncclSuccess;
    pthread_mutex_lock(&a->calls);
    const ncclResult_t asked = api_of(a)->ncclCommGetAsyncError(part->comm, &now);
    pthread_mutex_unlock(&a->calls);
    if (asked != ncclSuccess) now = asked;
    if (now == ncclSuccess) return MR_OK;
    int rc = mri_cuda_failed(part->dev, err);
    if (!rc) rc = mri_cuda_comm_judge(part, now, err);
    if (!rc && a->stopped)
        rc = mr_error_set(err, MR_EDEVICE, "%s: %s was given up", part->dev->base.name, what);
    return rc ? rc : MR_EAGAIN;
}

static int too_late(const struct mri_cuda_across *a, const char *what, mr_error *err)
{
    return mr_error_set(err, MR_EIO,
                        "%s: %s: NCCL has not connected all GPUs in time; NCCL_DEBUG=INFO has it name the "
                        "network that it uses, NCCL_SOCKET_IFNAME chooses another one",
                        a->parts[0].dev->base.name, what);
}

/* Waits until all communicators have completed the calls begun on them. */
static int settle(struct mri_cuda_across *a, const char *what, mr_error *err)
{
    for (uint64_t nap = FIRST_SLEEP_NS;; nap = mri_min_u64(nap * 2, LAST_SLEEP_NS)) {
        bool over = true;
        for (uint32_t i = 0; i < a->devices; i++) {
            const int rc = ask(a, i, what, err);
            if (rc && rc != MR_EAGAIN) return rc;
            over = over && rc == MR_OK;
        }
        if (over) return MR_OK;
        if (a->until_ns && mri_now_ns() > a->until_ns) return too_late(a, what, err);
        const struct timespec t = {.tv_nsec = (long)nap};
        nanosleep(&t, NULL);
    }
}

/* Errors that are often another process's end. */
static bool may_be_a_loss(ncclResult_t code) { return code == ncclRemoteError || code == ncclSystemError; }

/* A call's own result. */
static int check_call(struct mri_cuda_across *a, ncclResult_t code, const char *what, mr_error *err)
{
    struct mri_cuda_comm *part = &a->parts[0];
    if (code == ncclSuccess || code == ncclInProgress) return MR_OK;
    int rc = may_be_a_loss(code) ? MR_OK : mri_cuda_check_nccl(part->dev, code, what, err);
    while (!rc) {
        const struct timespec t = {.tv_nsec = LAST_SLEEP_NS};
        rc = mri_cuda_comm_judge(part, code, err);
        if (!rc) rc = mri_cuda_failed(part->dev, err);
        if (!rc && a->stopped)
            rc = mr_error_set(err, MR_EDEVICE, "%s: %s was given up", part->dev->base.name, what);
        if (!rc) nanosleep(&t, NULL);
    }
    return rc;
}

static int init_comms(struct mri_cuda_across *a, ncclUniqueId id, mr_error *err)
{
    static const char what[] = "opening the exchange between GPUs";
    ncclConfig_t config = NCCL_CONFIG_INITIALIZER;
    config.blocking = 0;
    ncclResult_t code = api_of(a)->ncclGroupStart();
    int rc = check_call(a, code, what, err);
    if (rc) return rc;
    for (uint32_t i = 0; !rc && i < a->devices; i++) {
        rc = mri_cuda_enter(a->parts[i].dev, err);
        if (rc) break;
        code = api_of(a)->ncclCommInitRankConfig(&a->parts[i].comm, (int)a->all, id, (int)(a->first + i),
                                                 &config);
        rc = check_call(a, code, what, err);
    }
    code = api_of(a)->ncclGroupEnd();
    if (!rc) rc = check_call(a, code, what, err);
    return rc ? rc : settle(a, what, err);
}

static uint64_t slice_begin(const struct mri_cuda_across *a, uint32_t gpu, uint64_t count)
{
    return gpu == a->all ? count : count * gpu / a->all / SLICE_FLOATS * SLICE_FLOATS;
}

static uint64_t slice_floats(const struct mri_cuda_across *a, uint32_t gpu, uint64_t count)
{
    return slice_begin(a, gpu + 1, count) - slice_begin(a, gpu, count);
}

static uint32_t nodes_of(const struct mri_cuda_across *a, uint32_t gpu)
{
    return a->node_at[gpu + 1] - a->node_at[gpu];
}

static uint64_t room_floats(uint64_t floats) { return mri_align_up(floats, SLICE_FLOATS); }

static int make_tree(struct mri_cuda_across *a, uint32_t leaves, mr_error *err)
{
    const mr_sum_node all = {0, leaves};
    const uint32_t nodes = a->node_at[a->all];
    int rc = mri_sum_program_init(&a->root, leaves, all, a->node, nodes);
    a->room = calloc(a->devices, sizeof *a->room);
    a->arrays = calloc(nodes, sizeof *a->arrays);
    if (!a->room || !a->arrays) rc = MR_ENOMEM;
    if (rc) return mr_error_set(err, rc, "no memory for the sums of %u GPUs", a->all);
    const uint64_t slice = room_floats(BLOCK_FLOATS / a->all + 2 * SLICE_FLOATS);
    for (uint32_t i = 0; rc == MR_OK && i < a->devices; i++) {
        void *memory = NULL;
        const uint64_t floats = slice * (nodes - nodes_of(a, a->first + i));
        rc = mri_cuda_device_alloc(&a->parts[i].dev->base, (size_t)floats * sizeof(float), &memory, err);
        a->room[i] = memory;
    }
    return rc;
}

/* What each GPU makes. */
static int take_seats(struct mri_cuda_across *a, uint32_t leaves, const struct seat *seats, mr_error *err)
{
    uint32_t count = 0;
    a->node_at = calloc((size_t)a->all + 1, sizeof *a->node_at);
    a->node = calloc((size_t)a->all * MR_SUM_MOST_NODES, sizeof *a->node);
    if (!a->node_at || !a->node)
        return mr_error_set(err, MR_ENOMEM, "no memory for a group of %u GPUs", a->all);
    for (uint32_t g = 0; g < a->all; g++) {
        a->node_at[g] = count;
        count += mr_sum_cover(leaves, seats[g].leaves.first, seats[g].leaves.count, a->node + count);
    }
    a->node_at[a->all] = count;
    return a->in_tree ? make_tree(a, leaves, err) : MR_OK;
}

static int meet(struct mri_cuda_across *a, const struct mri_group_plan *plan, ncclUniqueId *id, mr_error *err)
{
    const uint32_t size = a->wire.size;
    struct card mine, *cards = calloc(size, sizeof *cards);
    struct seat *own = calloc(a->devices, sizeof *own), *seats = NULL;
    size_t *bytes = calloc(size, sizeof *bytes);
    int rc = cards && own && bytes
                 ? MR_OK
                 : mr_error_set(err, MR_ENOMEM, "no memory for a group of %u processes", size);
    for (uint32_t r = 0; rc == MR_OK && r < size; r++) bytes[r] = sizeof *cards;
    if (rc == MR_OK) write_card(a, &mine);
    if (rc == MR_OK) rc = tell_all(a, &mine, bytes, (char *)cards, err);
    if (rc == MR_OK) rc = check_cards(a, cards, err);
    for (uint32_t r = 0; rc == MR_OK && r < size; r++) {
        bytes[r] = cards[r].devices * sizeof *seats;
        if (r == a->wire.rank) a->first = a->all;
        a->all += cards[r].devices;
    }
    if (rc == MR_OK) seats = calloc(a->all, sizeof *seats);
    if (rc == MR_OK && !seats) rc = mr_error_set(err, MR_ENOMEM, "no memory for a group of %u GPUs", a->all);
    if (rc == MR_OK) rc = write_seats(a, plan, own, err);
    if (rc == MR_OK) rc = tell_all(a, own, bytes, (char *)seats, err);
    if (rc == MR_OK) rc = check_seats(a, plan->leaves, seats, err);
    if (rc == MR_OK) rc = take_seats(a, plan->leaves, seats, err);
    if (rc == MR_OK) *id = cards[0].id;
    free(cards);
    free(own);
    free(seats);
    free(bytes);
    return rc;
}

static struct mri_cuda_across *new_across(const struct mri_group_plan *plan, struct mri_cuda_comm *parts)
{
    const uint32_t n = plan->count;
    struct mri_cuda_across *a = calloc(1, sizeof *a);
    if (!a) return NULL;
    pthread_mutex_init(&a->calls, NULL);
    a->parts = parts;
    a->wire = plan->wire;
    a->devices = n;
    a->in_tree = parts[0].dev->deterministic;
    a->optional = plan->nccl_optional;
    a->streams = calloc(n, sizeof(mri_cuda_stream *));
    a->own_at = calloc((size_t)n + 1, sizeof *a->own_at);
    if (!a->streams || !a->own_at) {
        mri_cuda_across_close(a);
        return NULL;
    }
    for (uint32_t i = 0; i < n; i++) {
        a->streams[i] = (mri_cuda_stream *)plan->streams[i];
        parts[i].calls = &a->calls;
        parts[i].check = plan->check;
        parts[i].context = plan->wire.context;
    }
    memcpy(a->own_at, plan->node_at, ((size_t)n + 1) * sizeof *a->own_at);
    return a;
}

/* After a failure, whatever came of them. */
static void abort_comms(const struct mri_cuda_across *a)
{
    for (uint32_t i = 0; i < a->devices; i++) {
        mri_cuda_enter_for_cleanup(a->parts[i].dev);
        if (a->parts[i].comm) api_of(a)->ncclCommAbort(a->parts[i].comm);
        a->parts[i].comm = NULL;
    }
}

/* How it went, to all: either all have communicators, or nobody has. A device that has failed, or a process
 * that is lost, ends all. */
static int agree(struct mri_cuda_across *a, int rc, mr_error *err)
{
    const uint32_t size = a->wire.size;
    struct card mine = {.rc = rc}, *cards = calloc(size, sizeof *cards);
    size_t *bytes = calloc(size, sizeof *bytes);
    int told = cards && bytes ? MR_OK : mr_error_set(err, MR_ENOMEM, "no memory for %u processes", size);
    if (rc) snprintf(mine.text, sizeof mine.text, "%.380s", err->text);
    for (uint32_t r = 0; told == MR_OK && r < size; r++) bytes[r] = sizeof *cards;
    if (told == MR_OK) told = tell_all(a, &mine, bytes, (char *)cards, err);
    for (uint32_t r = 0; told == MR_OK && !a->refused && r < size; r++)
        if (cards[r].rc) (void)end_for(a, r, cards[r].rc, err, cards[r].text);
    free(cards);
    free(bytes);
    if (told) return told;
    return a->refused ? MR_EUNSUPPORTED : MR_OK;
}

static int connect_all(struct mri_cuda_across *a, ncclUniqueId id, double limit_s, mr_error *err)
{
    if (limit_s > 0 && limit_s < 1e6) a->until_ns = mri_now_ns() + (uint64_t)(1e9 * limit_s);
    int rc = init_comms(a, id, err);
    a->until_ns = 0;
    if (rc) abort_comms(a); /* the others find out at once */
    if (!a->optional || (rc && mri_cuda_failed(a->parts[0].dev, NULL))) return rc;
    rc = agree(a, rc, err);
    if (rc) abort_comms(a);
    return rc;
}

static void leave_parts(const struct mri_cuda_across *a)
{
    for (uint32_t i = 0; i < a->devices; i++) {
        a->parts[i].calls = NULL;
        a->parts[i].check = NULL;
        a->parts[i].context = NULL;
    }
}

int mri_cuda_across_open(struct mri_cuda_across **out, const struct mri_group_plan *plan,
                         struct mri_cuda_comm *parts, mr_error *err)
{
    struct mri_cuda_across *a = new_across(plan, parts);
    ncclUniqueId id;
    *out = NULL;
    if (!a) return mr_error_set(err, MR_ENOMEM, "no memory for a group of %u devices", plan->count);
    int rc = meet(a, plan, &id, err);
    if (rc == MR_OK) rc = connect_all(a, id, plan->connect_s, err);
    if (rc == MR_OK) {
        *out = a;
        return MR_OK;
    }
    const bool refused = a->refused;
    leave_parts(a);
    mri_cuda_across_close(a);
    return refused ? MR_OK : rc;
}

void mri_cuda_across_close(struct mri_cuda_across *a)
{
    if (!a) return;
    for (uint32_t i = 0; a->room && i < a->devices; i++)
        if (a->room[i]) mri_cuda_device_free(&a->parts[i].dev->base, a->room[i]);
    mri_sum_program_fini(&a->root);
    free(a->streams);
    free(a->node_at);
    free(a->node);
    free(a->room);
    free(a->arrays);
    free(a->own_at);
    pthread_mutex_destroy(&a->calls);
    free(a);
}

void mri_cuda_across_stop(struct mri_cuda_across *a) { a->stopped = true; }

int mri_cuda_across_finish(struct mri_cuda_across *a, mr_error *err)
{
    static const char what[] = "ending the exchange between GPUs";
    int rc = check_call(a, api_of(a)->ncclGroupStart(), what, err);
    for (uint32_t i = 0; !rc && i < a->devices; i++)
        rc = check_call(a, api_of(a)->ncclCommFinalize(a->parts[i].comm), what, err);
    const ncclResult_t end = api_of(a)->ncclGroupEnd();
    if (!rc) rc = check_call(a, end, what, err);
    return rc ? rc : settle(a, what, err);
}

/* ---- sums ---- */

/* What all of this process's calls between two ncclGroup... calls do. */
typedef ncclResult_t call_nccl(struct mri_cuda_across *a, uint32_t device, const void *args);

static int call_all(struct mri_cuda_across *a, call_nccl *call, const void *args, const char *what,
                    mr_error *err)
{
    pthread_mutex_lock(&a->calls);
    const ncclResult_t start = api_of(a)->ncclGroupStart();
    ncclResult_t code = start, end = start;
    for (uint32_t i = 0; i < a->devices && (code == ncclSuccess || code == ncclInProgress); i++)
        code = call(a, i, args);
    if (start == ncclSuccess)
        end = api_of(a)->ncclGroupEnd(); /* in any case: the group would stay open in this thread */
    pthread_mutex_unlock(&a->calls);
    int rc = check_call(a, code, what, err);
    if (!rc) rc = check_call(a, end, what, err);
    return rc ? rc : settle(a, what, err);
}

struct whole {
    float *const *values; /* one of each device here */
    uint64_t count;
    uint32_t root;
};

static ncclResult_t reduce(struct mri_cuda_across *a, uint32_t device, const void *args)
{
    const struct whole *w = args;
    return api_of(a)->ncclAllReduce(w->values[device], w->values[device], w->count, ncclFloat, ncclSum,
                                    a->parts[device].comm, a->streams[device]->handle);
}

static ncclResult_t broadcast(struct mri_cuda_across *a, uint32_t device, const void *args)
{
    const struct whole *w = args;
    return api_of(a)->ncclBroadcast(w->values[device], w->values[device], w->count, ncclFloat, (int)w->root,
                                    a->parts[device].comm, a->streams[device]->handle);
}

int mri_cuda_across_broadcast(struct mri_cuda_across *a, float *const *values, uint64_t count, uint32_t root,
                              mr_error *err)
{
    const struct whole w = {values, count, root};
    return call_all(a, broadcast, &w, "broadcast between GPUs", err);
}

static int add(const struct mri_cuda_across *a, uint32_t device, float *to, const float *from, uint64_t count,
               mr_error *err)
{
    mr_stream *s = &a->streams[device]->base;
    const int rc = s->device->backend->add_async(s, to, from, count);
    if (rc && !mri_cuda_failed(a->parts[device].dev, err))
        mr_error_set(err, rc, "%s: an addition of gradients failed", s->device->name);
    return rc;
}

/* The last array of a device. */
static float *last_of(const struct mri_cuda_across *a, float *const *values, uint32_t device)
{
    return values[a->own_at[device + 1] - 1];
}

static int sum_fast(struct mri_cuda_across *a, float *const *values, uint64_t count, mr_error *err)
{
    float *last[MRI_MAX_REPLICAS];
    const struct whole w = {last, count, 0};
    for (uint32_t i = 0; i < a->devices; i++) {
        last[i] = last_of(a, values, i);
        for (uint32_t k = a->own_at[i]; k + 1 < a->own_at[i + 1]; k++) {
            const int rc = add(a, i, last[i], values[k], count, err);
            if (rc) return rc;
        }
    }
    return call_all(a, reduce, &w, "sum between GPUs", err);
}

struct block {
    float *const *values; /* of all nodes of the devices here */
    uint64_t at, count;
};

static ncclResult_t send_floats(const struct mri_cuda_across *a, uint32_t device, const float *from,
                                uint64_t count, uint32_t to)
{
    return api_of(a)->ncclSend(from, count, ncclFloat, (int)to, a->parts[device].comm,
                               a->streams[device]->handle);
}

static ncclResult_t receive_floats(const struct mri_cuda_across *a, uint32_t device, float *to,
                                   uint64_t count, uint32_t from)
{
    return api_of(a)->ncclRecv(to, count, ncclFloat, (int)from, a->parts[device].comm,
                               a->streams[device]->handle);
}

static bool goes_on(ncclResult_t code) { return code == ncclSuccess || code == ncclInProgress; }

/* A device's nodes of the other GPUs' slices to them, theirs of its own slice into its room. */
static ncclResult_t trade_nodes(struct mri_cuda_across *a, uint32_t device, const void *args)
{
    const struct block *b = args;
    const uint32_t me = a->first + device;
    const uint64_t mine = slice_floats(a, me, b->count);
    float *room = a->room[device];
    ncclResult_t code = ncclSuccess;
    for (uint32_t g = 0; g < a->all; g++) {
        const uint64_t theirs = slice_floats(a, g, b->count), at = b->at + slice_begin(a, g, b->count);
        for (uint32_t k = 0; g != me && theirs && k < nodes_of(a, me) && goes_on(code); k++)
            code = send_floats(a, device, b->values[a->own_at[device] + k] + at, theirs, g);
        for (uint32_t k = 0; g != me && mine && k < nodes_of(a, g) && goes_on(code); k++) {
            code = receive_floats(a, device, room, mine, g);
            room += room_floats(mine);
        }
    }
    return code;
}

/* A device's slice of the sum to all, theirs from them. */
static ncclResult_t trade_sums(struct mri_cuda_across *a, uint32_t device, const void *args)
{
    const struct block *b = args;
    const uint32_t me = a->first + device;
    const uint64_t mine = slice_floats(a, me, b->count), mine_at = slice_begin(a, me, b->count);
    float *const last = last_of(a, b->values, device) + b->at;
    ncclResult_t code = ncclSuccess;
    for (uint32_t g = 0; g < a->all && goes_on(code); g++) {
        const uint64_t theirs = slice_floats(a, g, b->count);
        if (g != me && mine) code = send_floats(a, device, last + mine_at, mine, g);
        if (g != me && theirs && goes_on(code))
            code = receive_floats(a, device, last + slice_begin(a, g, b->count), theirs, g);
    }
    return code;
}

/* Adds a device's slice in place: its own nodes where they are, other devices' nodes in its buffer. */
static int add_slice(struct mri_cuda_across *a, uint32_t device, const struct block *b, mr_error *err)
{
    const uint32_t me = a->first + device;
    const uint64_t floats = slice_floats(a, me, b->count), at = b->at + slice_begin(a, me, b->count);
    float *stack[MRI_SUM_DEPTH], *room = a->room[device];
    uint32_t top = 0;
    int rc = MR_OK;
    if (floats == 0) return MR_OK;
    for (uint32_t g = 0; g < a->all; g++)
        for (uint32_t k = 0; k < nodes_of(a, g); k++) {
            float **const array = &a->arrays[a->node_at[g] + k];
            *array = g == me ? b->values[a->own_at[device] + k] + at : room;
            if (g != me) room += room_floats(floats);
        }
    for (uint32_t i = 0; rc == MR_OK && i < a->root.count; i++) {
        const mri_sum_step *step = &a->root.steps[i];
        if (step->what == MRI_SUM_TAKE) stack[top++] = a->arrays[step->array];
        else if (step->what == MRI_SUM_ADD)
            rc = add(a, device, stack[top - 1], a->arrays[step->array], floats, err);
        else {
            top--;
            rc = add(a, device, stack[top - 1], stack[top], floats, err);
        }
    }
    float *const last = last_of(a, b->values, device) + at;
    if (rc || stack[0] == last) return rc;
    return mri_cuda_check(a->parts[device].dev,
                          a->parts[device].dev->api->cuMemcpyDtoDAsync(
                              (CUdeviceptr)(uintptr_t)last, (CUdeviceptr)(uintptr_t)stack[0],
                              (size_t)floats * sizeof(float), a->streams[device]->handle),
                          "copy of a sum", err);
}

static int sum_block(struct mri_cuda_across *a, const struct block *b, mr_error *err)
{
    int rc = call_all(a, trade_nodes, b, "sum between GPUs", err);
    for (uint32_t i = 0; rc == MR_OK && i < a->devices; i++) {
        rc = mri_cuda_enter(a->parts[i].dev, err);
        if (rc == MR_OK) rc = add_slice(a, i, b, err);
    }
    return rc ? rc : call_all(a, trade_sums, b, "sum between GPUs", err);
}

int mri_cuda_across_sum(struct mri_cuda_across *a, float *const *values, uint64_t count, mr_error *err)
{
    int rc = MR_OK;
    if (!a->in_tree) return sum_fast(a, values, count, err);
    for (uint64_t at = 0; rc == MR_OK && at < count; at += BLOCK_FLOATS) {
        const struct block b = {values, at, mri_min_u64(BLOCK_FLOATS, count - at)};
        rc = sum_block(a, &b, err);
    }
    return rc;
}
