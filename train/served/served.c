/* train/served/served.c: see served.h. */
#include "train/served/served.h"

#include "base/util.h"
#include "train/run/ranks.h"

static const mri_replica *replica(const mri_served *s) { return &s->team->replicas[0]; }
static uint32_t servers(const mri_served *s) { return mr_crew_servers(s->crew); }

static void deal(mri_served *s)
{
    const mri_nodes *nodes = &replica(s)->nodes;
    for (uint32_t i = 0; i < nodes->count; i++)
        for (uint32_t p = 0; p < nodes->node[i].info->param_count; p++) {
            const mri_served_range r = {.at = nodes->node[i].param_at[p],
                                        .count = nodes->node[i].info->param[p].storage_count,
                                        .server = s->range_count % servers(s)};
            s->floats[r.server] += r.count;
            s->ranges[s->range_count++] = r;
        }
}

static int check(const mri_served *s, mr_error *err)
{
    const mri_replica *rep = replica(s);
    const mr_parts *parts = &s->team->parts;
    const bool alike = rep->cfg.folds.left == 0 && parts->all == parts->count * mr_crew_workers(s->crew);
    const char *not_with = s->team->count > 1 ? "several devices in a process"
                           : !alike ? "these shares: expected the same power of two for each worker (--parts)"
                           : rep->plan.tensors                ? "a rule that scales each tensor"
                           : rep->plan.matrix_count           ? "a rule for matrices"
                           : rep->cfg.touched.frozen          ? "frozen layers"
                           : rep->plan.decays                 ? "weight decay of some parameters only"
                           : rep->cfg.optimizer.clip_norm > 0 ? "a limit of the norm of all gradients"
                                                              : NULL;
    if (mr_crew_serves(s->crew)) return mr_error_set(err, MR_EINVAL, "a server trains nothing: mr_serve()");
    return not_with ? mr_error_set(err, MR_EINVAL, "sync: servers of parameters do not go with %s", not_with)
                    : MR_OK;
}

int mri_served_init(mri_served *s, mr_crew *crew, mri_team *team, bool async, uint32_t bound, mr_error *err)
{
    *s = (mri_served){.crew = crew, .team = team, .talks_to = MRI_NONE};
    if (!crew) return MR_OK;
    int rc = check(s, err);
    if (rc) return rc;
    const mri_replica *rep = replica(s);
    const size_t bytes = (size_t)rep->plan.weight_floats * sizeof(float);
    uint32_t params = 0;
    void *memory = NULL;
    for (uint32_t i = 0; i < rep->nodes.count; i++) params += rep->nodes.node[i].info->param_count;
    s->ranges = calloc(params + 1, sizeof *s->ranges);
    s->floats = calloc(servers(s), sizeof *s->floats);
    s->versions = calloc(servers(s), sizeof *s->versions);
    s->pack = malloc(bytes);
    if (!s->ranges || !s->floats || !s->versions || !s->pack)
        return mr_error_set(err, MR_ENOMEM, "no memory for the parameters of %u servers", servers(s));
    rc = mr_host_alloc(rep->dev, bytes, &memory, err);
    if (rc) return rc;
    s->host = memset(memory, 0, bytes); /* gaps between parameters are zero and stay it */
    s->request = (mri_request){.async = async,
                               .bound = bound,
                               .update = rep->cfg.optimizer.update,
                               .clip_value = rep->cfg.optimizer.clip_value};
    deal(s);
    return MR_OK;
}

void mri_served_fini(mri_served *s)
{
    mri_request end = s->request;
    end.kind = MRI_SERVICE_END;
    for (uint32_t k = 0; s->host && k < servers(s); k++) {
        if (s->team->failed) mri_abort_run(mr_crew_pair(s->crew, k), &s->team->error);
        else (void)mri_service_send(mr_crew_pair(s->crew, k), 0, &end, sizeof end, NULL);
    }
    if (s->host) mr_host_free(replica(s)->dev, s->host);
    free(s->ranges);
    free(s->floats);
    free(s->versions);
    free(s->pack);
    *s = (mri_served){0};
}

/* ------------------------------------------------------------------------------ floats of a server */

static void pack(const mri_served *s, uint32_t server, float *out)
{
    for (uint32_t i = 0; i < s->range_count; i++) {
        const mri_served_range *r = &s->ranges[i];
        if (r->server != server) continue;
        memcpy(out, s->host + r->at, (size_t)r->count * sizeof *out);
        out += r->count;
    }
}

static void unpack(mri_served *s, uint32_t server, const float *from)
{
    for (uint32_t i = 0; i < s->range_count; i++) {
        const mri_served_range *r = &s->ranges[i];
        if (r->server != server) continue;
        memcpy(s->host + r->at, from, (size_t)r->count * sizeof *from);
        from += r->count;
    }
}

/* An array of the device to `host`, once queued work is done, and back. */
static int take(const mri_served *s, const float *array, mr_error *err)
{
    const mri_replica *rep = replica(s);
    const int rc =
        mr_copy_d2h_async(rep->stream, s->host, array, (size_t)rep->plan.weight_floats * sizeof(float));
    if (rc) return mri_team_queue_failed(s->team, 0, rc, "a copy of gradients", err);
    return mr_stream_sync(rep->stream, err);
}

static int give(const mri_served *s, float *array, mr_error *err)
{
    const mri_replica *rep = replica(s);
    const int rc =
        mr_copy_h2d_async(rep->stream, array, s->host, (size_t)rep->plan.weight_floats * sizeof(float));
    return rc ? mri_team_queue_failed(s->team, 0, rc, "a copy of weights", err) : MR_OK;
}

/* ------------------------------------------------------------------------------ requests */

/* count arrays of a server's parameters after the request. */
static int send(mri_served *s, uint32_t server, mri_request *q, mr_error *err)
{
    s->talks_to = server;
    q->floats = s->floats[server];
    q->version = s->versions[server];
    return mri_service_send(mr_crew_pair(s->crew, server), 0, q, sizeof *q, err);
}

static int send_floats(mri_served *s, uint32_t server, mr_error *err)
{
    s->talks_to = server;
    pack(s, server, s->pack);
    return mri_service_send(mr_crew_pair(s->crew, server), 0, s->pack,
                            (size_t)s->floats[server] * sizeof(float), err);
}

static int receive_floats(mri_served *s, uint32_t server, mr_error *err)
{
    s->talks_to = server;
    const int rc = mri_service_receive(mr_crew_pair(s->crew, server), 0, s->pack,
                                       (size_t)s->floats[server] * sizeof(float), err);
    if (rc == MR_OK) unpack(s, server, s->pack);
    return rc;
}

static int receive_reply(mri_served *s, uint32_t server, mri_reply *out, mr_error *err)
{
    s->talks_to = server;
    return mri_service_receive(mr_crew_pair(s->crew, server), 0, out, sizeof *out, err);
}

static float *state_of(const mri_served *s, uint32_t k) { return replica(s)->memory.slot[k]; }

static uint32_t states(const mri_served *s) { return mr_update_state_count(s->request.update.kind); }

/* Every worker is here: nothing is on its way to a server. */
static int meet(mri_served *s, mr_error *err)
{
    s->talks_to = MRI_NONE;
    const mri_ranks *ranks = &s->team->ranks;
    return ranks->size > 1 ? mr_world_barrier(ranks->world, MRI_RANKS_HOST, err) : MR_OK;
}

/* Weights and state of the first worker, which all have, to the servers. */
static int begin(mri_served *s, uint64_t updates, mr_error *err)
{
    mri_request q = s->request;
    q.kind = MRI_SERVICE_BEGIN;
    q.update.step = updates * (q.async ? mr_crew_workers(s->crew) : 1);
    int rc = MR_OK;
    for (uint32_t k = 0; rc == MR_OK && mr_crew_index(s->crew) == 0 && k < servers(s); k++)
        rc = send(s, k, &q, err);
    for (uint32_t a = 0; rc == MR_OK && mr_crew_index(s->crew) == 0 && a <= states(s); a++) {
        rc = take(s, a ? state_of(s, a - 1) : replica(s)->memory.weights, err);
        for (uint32_t k = 0; rc == MR_OK && k < servers(s); k++) rc = send_floats(s, k, err);
    }
    mri_reply reply;
    for (uint32_t k = 0; rc == MR_OK && mr_crew_index(s->crew) == 0 && k < servers(s); k++)
        rc = receive_reply(s, k, &reply, err);
    if (rc == MR_OK) rc = meet(s, err);
    for (uint32_t k = 0; k < servers(s); k++) s->versions[k] = 0;
    s->steps = s->stop_at = 0;
    s->begun = rc == MR_OK;
    return rc;
}

static int push(mri_served *s, const mr_update_desc *update, mr_error *err)
{
    mri_request q = s->request;
    mri_ranks *ranks = &s->team->ranks;
    q.kind = MRI_SERVICE_STEP;
    q.update.lr = update->lr;
    q.wants_to_stop = ranks->wants_to_stop;
    int rc = take(s, replica(s)->memory.grads, err);
    s->from_ns = mri_now_ns();
    for (uint32_t k = 0; rc == MR_OK && k < servers(s); k++) {
        rc = send(s, k, &q, err);
        if (rc == MR_OK) rc = send_floats(s, k, err);
    }
    for (uint32_t k = 0; rc == MR_OK && k < servers(s); k++) {
        mri_reply reply;
        rc = receive_reply(s, k, &reply, err);
        if (rc == MR_OK) rc = receive_floats(s, k, err);
        if (rc) return rc;
        s->versions[k] = reply.version;
        ranks->wants_to_stop = ranks->wants_to_stop || reply.asks_to_stop;
        if (k == 0) s->stop_at = reply.stop_at;
    }
    s->to_ns = mri_now_ns();
    return rc;
}

static int failed(const mri_served *s, const mr_error *why, mr_error *err)
{
    mr_error whole = *why;
    if (s->talks_to != MRI_NONE)
        mr_error_set(&whole, why->code,
                     "server %u of parameters (rank 0 in this text; this worker: rank 1): %.800s",
                     s->talks_to, why->text);
    return mri_team_fail(s->team, &whole, err);
}

int mri_served_step(mri_served *s, const mr_update_desc *update, uint64_t updates, mr_error *err)
{
    mri_ranks *ranks = &s->team->ranks;
    mr_error why = MR_ERROR_INIT;
    int rc = s->begun ? MR_OK : begin(s, updates, &why);
    if (rc == MR_OK) rc = push(s, update, &why);
    if (rc == MR_OK) rc = give(s, replica(s)->memory.weights, &why);
    if (rc) return failed(s, &why, err);
    s->newer = true;
    s->steps++;
    if (s->request.async && s->stop_at && s->steps >= s->stop_at) ranks->stop = true;
    return MR_OK;
}

static int read_all(mri_served *s, mr_error *err)
{
    mri_request q = s->request;
    q.kind = MRI_SERVICE_READ;
    s->counts = (mri_reply){0};
    int rc = meet(s, err);
    for (uint32_t k = 0; rc == MR_OK && k < servers(s); k++) {
        mri_reply reply;
        rc = send(s, k, &q, err);
        if (rc == MR_OK) rc = receive_reply(s, k, &reply, err);
        if (rc) return rc;
        s->versions[k] = reply.version;
        s->counts.gradients += reply.gradients;
        s->counts.stale_sum += reply.stale_sum;
        s->counts.stale_most = mri_max_u64(s->counts.stale_most, reply.stale_most);
    }
    for (uint32_t a = 0; rc == MR_OK && a <= states(s); a++) {
        for (uint32_t k = 0; rc == MR_OK && k < servers(s); k++) rc = receive_floats(s, k, err);
        if (rc == MR_OK) rc = give(s, a ? state_of(s, a - 1) : replica(s)->memory.weights, err);
        if (rc == MR_OK) rc = mr_stream_sync(replica(s)->stream, err); /* the host's copy is used again */
    }
    return rc == MR_OK ? meet(s, err) : rc;
}

int mri_served_read(mri_served *s, mr_error *err)
{
    mr_error why = MR_ERROR_INIT;
    if (!s->newer) return MR_OK;
    s->newer = false;
    const int rc = read_all(s, &why);
    return rc ? failed(s, &why, err) : MR_OK;
}
