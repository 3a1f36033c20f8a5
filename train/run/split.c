/* train/run/split.c: see split.h. Waits only while it opens. */
#include "train/run/split.h"

/* ------------------------------------------------------------------------------ open, close */

int mri_split_cut(mri_split *s, const mr_net *net, const uint32_t *place, uint32_t count, mr_error *err)
{
    mri_piece pieces[MRI_STAGES_MOST];
    *s = (mri_split){.stages = calloc(count, sizeof *s->stages)};
    if (!s->stages) return mr_error_set(err, MR_ENOMEM, "no memory for %u stages", count);
    const int rc = mri_cut(net, place, count, pieces, err);
    s->count = count;
    for (uint32_t i = 0; i < count; i++) s->stages[i].piece = pieces[i];
    return rc;
}

mri_team *mri_split_last(const mri_split *s) { return s->stages[s->count - 1].team; }

static mr_stream *stream_of(const mri_split *s, uint32_t stage, uint32_t replica)
{
    return s->stages[stage].team->streams[replica];
}

static uint32_t parts_of(const mri_split *s, uint32_t replica)
{
    return s->stages[0].team->parts.of_device[replica];
}

static const mri_node *port_node(const mri_split *s, uint32_t stage, uint32_t replica, uint32_t layer)
{
    return mri_nodes_of_layer(&s->stages[stage].team->replicas[replica].nodes, layer);
}

/* What comes in through the ports of a stage is what its first replica's producers give. */
static int describe_ports(const mri_split *s, uint32_t at, mr_error *err)
{
    mri_stage *stage = &s->stages[at];
    stage->ports = calloc((size_t)stage->piece.link_count + 1, sizeof *stage->ports);
    if (!stage->ports) return mr_error_set(err, MR_ENOMEM, "no memory for the ports of stage %u", at);
    for (uint32_t i = 0; i < stage->piece.link_count; i++) {
        const mri_link *l = &stage->piece.links[i];
        const mri_node *out = port_node(s, l->from, 0, l->out);
        stage->ports[l->in] = (mri_port_in){.tensor = out->info->out, .gradient = out->backward};
    }
    return MR_OK;
}

static int open_passage(const mri_split *s, uint32_t at, uint32_t replica, uint32_t link, mr_error *err)
{
    const mri_stage *stage = &s->stages[at];
    const mri_link *l = &stage->piece.links[link];
    mri_leg *leg = &stage->legs[replica];
    mri_passage *p = &leg->passages[link];
    *p = (mri_passage){.out = port_node(s, l->from, replica, l->out),
                       .in = port_node(s, at, replica, l->in),
                       .from = l->from,
                       .gradient = stage->ports[l->in].gradient};
    leg->passage_count++;
    return mr_host_alloc(leg->replica->dev, p->out->info->out.sample_bytes * leg->replica->cfg.max_batch,
                         &p->host, err);
}

enum { CARRIED_BYTES = 4 }; /* of a sample, each */

static int open_carried(mri_leg *leg, mr_error *err)
{
    const size_t bytes = (size_t)leg->replica->cfg.max_batch * CARRIED_BYTES;
    int rc = MR_OK;
    for (uint32_t k = 0; k < MRI_CARRIED && rc == MR_OK; k++) {
        rc = mr_device_alloc(leg->replica->dev, bytes, &leg->carried[k].device, err);
        if (rc == MR_OK) rc = mr_host_alloc(leg->replica->dev, bytes, &leg->carried[k].host, err);
    }
    return rc;
}

static int open_leg(const mri_split *s, uint32_t at, uint32_t replica, mr_error *err)
{
    const mri_stage *stage = &s->stages[at];
    mri_leg *leg = &stage->legs[replica];
    *leg = (mri_leg){.replica = &stage->team->replicas[replica],
                     .passages = calloc((size_t)stage->piece.link_count + 1, sizeof *leg->passages)};
    if (!leg->passages) return mr_error_set(err, MR_ENOMEM, "no memory for the ports of stage %u", at);
    if (at > 0) s->stages[at - 1].legs[replica].replica->next = leg->replica;
    int rc = mr_event_create(&leg->reached, leg->replica->dev, err);
    for (uint32_t i = 0; rc == MR_OK && i < stage->piece.link_count; i++)
        rc = open_passage(s, at, replica, i, err);
    return rc || at + 1 < s->count ? rc : open_carried(leg, err);
}

static int open_stage(mri_split *s, uint32_t at, mr_device *const *devices, const mri_replica_config *first,
                      mr_error *err)
{
    mri_stage *stage = &s->stages[at];
    const mr_parts *parts = &s->stages[0].team->parts;
    mr_device *mine[MR_LOADER_MAX_PARTS];
    mri_replica_config cfg = *first;
    int rc = describe_ports(s, at, err);
    if (rc) return rc;
    cfg.net = stage->piece.net;
    cfg.in.ports = stage->ports;
    for (uint32_t r = 0; r < s->replicas; r++) mine[r] = devices[r * s->count + at];
    stage->team = &stage->own;
    rc = mri_team_init(stage->team, mine, parts, s->replicas, NULL, &cfg, err);
    stage->exchange = &stage->others;
    return rc ? rc
              : mri_exchange_init(stage->exchange, stage->team, MR_EXCHANGE_F32, MRI_NCCL_NEVER, NULL, err);
}

int mri_split_open(mri_split *s, mri_team *team, mri_exchange *exchange, mr_device *const *devices,
                   const mri_replica_config *cfg, mr_error *err)
{
    int rc = MR_OK;
    s->stages[0].team = team;
    s->stages[0].exchange = exchange;
    s->replicas = team->count;
    for (uint32_t at = 0; rc == MR_OK && at < s->count; at++) {
        if (at > 0) rc = open_stage(s, at, devices, cfg, err);
        s->stages[at].legs = calloc(s->replicas, sizeof *s->stages[at].legs);
        if (rc == MR_OK && !s->stages[at].legs)
            rc = mr_error_set(err, MR_ENOMEM, "no memory for %u replicas", s->replicas);
        for (uint32_t r = 0; rc == MR_OK && r < s->replicas; r++) rc = open_leg(s, at, r, err);
    }
    return rc;
}

void mri_split_settle(const mri_split *s)
{
    for (uint32_t at = 1; at < s->count; at++)
        if (s->stages[at].team) mri_team_settle(s->stages[at].team);
}

static void close_leg(mri_leg *leg)
{
    if (!leg->replica) return;
    for (uint32_t i = 0; i < leg->passage_count; i++) mr_host_free(leg->replica->dev, leg->passages[i].host);
    for (uint32_t k = 0; k < MRI_CARRIED; k++) {
        mr_device_free(leg->replica->dev, leg->carried[k].device);
        mr_host_free(leg->replica->dev, leg->carried[k].host);
    }
    mr_event_destroy(leg->reached);
    free(leg->passages);
    leg->replica->next = NULL;
}

void mri_split_fini(mri_split *s)
{
    for (uint32_t at = s->count; at-- > 0;) {
        mri_stage *stage = &s->stages[at];
        for (uint32_t r = 0; stage->legs && r < s->replicas; r++) close_leg(&stage->legs[r]);
        free(stage->legs);
        mri_exchange_fini(&stage->others);
        mri_team_fini(&stage->own);
        free(stage->ports);
        mri_cut_fini(&stage->piece, 1);
    }
    free(s->stages);
    *s = (mri_split){0};
}

int mri_split_init_weights(mri_split *s, mr_error *err)
{
    int rc = MR_OK;
    for (uint32_t at = 1; rc == MR_OK && at < s->count; at++)
        rc = mri_replica_init_weights(&s->stages[at].team->replicas[0], err);
    return rc;
}

/* ------------------------------------------------------------------------------ errors */

/* An error of any stage becomes the first team's error, which every call of the trainer returns. */
static int failed(const mri_split *s, uint32_t at, uint32_t replica, int rc, const char *what, mr_error *err)
{
    mr_error why = MR_ERROR_INIT;
    mri_team_queue_failed(s->stages[at].team, replica, rc, what, &why);
    for (uint32_t i = 1; i < s->count; i++) mri_team_fail(s->stages[i].team, &why, NULL);
    return mri_team_fail(s->stages[0].team, &why, err);
}

/* The same of an exchange, whose team has the error. */
static int exchange_failed(const mri_split *s, int rc, const mr_error *why, mr_error *err)
{
    if (rc == MR_OK) return MR_OK;
    for (uint32_t i = 1; i < s->count; i++) mri_team_fail(s->stages[i].team, why, NULL);
    return mri_team_fail(s->stages[0].team, why, err);
}

/* ------------------------------------------------------------------------------ order */

/* What stage `to` queues from here on comes behind what stage `from` has queued. */
static int behind(const mri_split *s, uint32_t replica, uint32_t from, uint32_t to)
{
    mr_event *reached = s->stages[from].legs[replica].reached;
    const int rc = mr_event_record(reached, stream_of(s, from, replica));
    return rc ? rc : mr_stream_wait_event(stream_of(s, to, replica), reached);
}

int mri_split_begin(mri_split *s, uint32_t replica, uint32_t slot, const mr_step_values *values,
                    mr_error *err)
{
    for (uint32_t at = 1; at < s->count; at++) {
        int rc = behind(s, replica, 0, at);
        if (rc == MR_OK) rc = mri_replica_values(s->stages[at].legs[replica].replica, slot, values);
        if (rc) return failed(s, at, replica, rc, "the values of a step", err);
    }
    return MR_OK;
}

static int join(const mri_split *s, uint32_t replica)
{
    int rc = MR_OK;
    for (uint32_t at = 1; rc == MR_OK && at < s->count; at++) rc = behind(s, replica, at, 0);
    return rc;
}

int mri_split_end(mri_split *s, uint64_t updates, mr_error *err)
{
    for (uint32_t r = 0; r < s->replicas; r++) {
        int rc = MR_OK;
        for (uint32_t at = 1; rc == MR_OK && at < s->count; at++)
            rc = mri_replica_behind_update(s->stages[at].legs[r].replica, updates);
        if (rc == MR_OK) rc = join(s, r);
        if (rc) return failed(s, 0, r, rc, "the end of a step", err);
    }
    return MR_OK;
}

/* ------------------------------------------------------------------------------ passes */

static size_t bytes_of(const mri_passage *p, uint32_t samples)
{
    return p->out->info->out.sample_bytes * samples;
}

static int carry(mr_stream *from, mr_stream *to, void *host, const void *src, void *dst, size_t bytes,
                 mr_event *carried)
{
    int rc = mr_copy_d2h_async(from, host, src, bytes);
    if (rc == MR_OK) rc = mr_event_record(carried, from);
    if (rc == MR_OK) rc = mr_stream_wait_event(to, carried);
    return rc ? rc : mr_copy_h2d_async(to, dst, host, bytes);
}

static int carry_forward(const mri_split *s, uint32_t at, uint32_t replica, const mri_passage *p,
                         uint32_t samples)
{
    const mri_leg *from = &s->stages[p->from].legs[replica], *to = &s->stages[at].legs[replica];
    return carry(stream_of(s, p->from, replica), stream_of(s, at, replica), p->host,
                 mri_replica_place(from->replica, p->out->span.y),
                 mri_replica_place(to->replica, p->in->span.y), bytes_of(p, samples), from->reached);
}

static int carry_back(const mri_split *s, uint32_t at, uint32_t replica, const mri_passage *p,
                      uint32_t samples)
{
    const mri_leg *from = &s->stages[at].legs[replica], *to = &s->stages[p->from].legs[replica];
    return carry(stream_of(s, at, replica), stream_of(s, p->from, replica), p->host,
                 mri_replica_place(from->replica, p->in->span.dx),
                 mri_replica_place(to->replica, p->out->span.dy), bytes_of(p, samples), from->reached);
}

/* The part as a stage sees it: pictures and fields are the first one's, labels the last one's. */
static int part_of(const mri_split *s, uint32_t at, uint32_t replica, const mr_part *part, mr_part *out)
{
    const mri_leg *leg = &s->stages[at].legs[replica];
    *out = *part;
    if (at == 0) return MR_OK;
    const void *const given[MRI_CARRIED] = {part->labels, part->labels2, part->share2};
    const void *taken[MRI_CARRIED] = {NULL};
    mr_stream *from = stream_of(s, 0, replica), *to = stream_of(s, at, replica);
    int rc = MR_OK;
    for (uint32_t k = 0; k < MRI_CARRIED && rc == MR_OK; k++) {
        const mri_carried *c = &leg->carried[k];
        if (given[k]) taken[k] = c->device; /* NULL but in the last stage */
        if (taken[k] && part->count > 0)
            rc = carry(from, to, c->host, given[k], c->device, (size_t)part->count * CARRIED_BYTES,
                       s->stages[0].legs[replica].reached);
    }
    *out = (mr_part){.first = part->first,
                     .count = part->count,
                     .labels = taken[0],
                     .labels2 = taken[1],
                     .share2 = taken[2]};
    return rc;
}

/* Forward through all stages; parts: as each sees it, for backward. */
static int forward(const mri_split *s, uint32_t replica, uint32_t number, const mr_part *part, bool training,
                   mr_part *parts)
{
    int rc = MR_OK;
    for (uint32_t at = 0; rc == MR_OK && at < s->count; at++) {
        const mri_leg *leg = &s->stages[at].legs[replica];
        rc = part_of(s, at, replica, part, &parts[at]);
        for (uint32_t i = 0; rc == MR_OK && part->count > 0 && i < leg->passage_count; i++)
            rc = carry_forward(s, at, replica, &leg->passages[i], part->count);
        if (rc == MR_OK) rc = mri_replica_forward(leg->replica, number, &parts[at], training);
    }
    return rc;
}

static int hand_back(const mri_split *s, uint32_t at, uint32_t replica, uint32_t samples)
{
    const mri_leg *leg = &s->stages[at].legs[replica];
    int rc = MR_OK;
    for (uint32_t i = 0; rc == MR_OK && samples > 0 && i < leg->passage_count; i++)
        if (leg->passages[i].gradient) rc = carry_back(s, at, replica, &leg->passages[i], samples);
    return rc;
}

int mri_split_forward(mri_split *s, uint32_t replica, const mr_batch *b, mr_error *err)
{
    const uint32_t first = mri_team_first_part(s->stages[0].team, replica);
    mr_part seen[MRI_STAGES_MOST];
    int rc = MR_OK;
    for (uint32_t k = 0; rc == MR_OK && k < parts_of(s, replica); k++) {
        if (b->parts[first + k].count == 0) continue;
        rc = forward(s, replica, k, &b->parts[first + k], false, seen);
        if (rc == MR_OK) rc = join(s, replica); /* memory that was handed on may be written again */
    }
    return rc ? failed(s, 0, replica, rc, "an evaluation", err) : MR_OK;
}

/* A part that is not the replica's last: its gradients are added to what waits. */
static int train_part(const mri_split *s, uint32_t replica, uint32_t number, const mr_part *part)
{
    mr_part seen[MRI_STAGES_MOST];
    int rc = forward(s, replica, number, part, true, seen);
    for (uint32_t at = s->count; rc == MR_OK && at-- > 0;) {
        mri_replica *rep = s->stages[at].legs[replica].replica;
        for (uint32_t k = 0; rc == MR_OK && k < rep->plan.bucket_count; k++)
            rc = mri_replica_run(rep, number, &seen[at], true, false, k);
        if (rc == MR_OK) rc = mri_replica_fold(rep, number, 0, rep->plan.weight_floats);
        if (rc == MR_OK) rc = hand_back(s, at, replica, part->count);
    }
    return rc;
}

/* Of a stage: backward of the last part of every replica, bucket by bucket, and the sums over replicas. */
static int train_stage(const mri_split *s, uint32_t at, const mri_flight *f,
                       const mr_part (*seen)[MRI_STAGES_MOST], mr_error *err)
{
    mri_stage *stage = &s->stages[at];
    const uint32_t buckets = stage->team->replicas[0].plan.bucket_count;
    mr_error why = MR_ERROR_INIT;
    for (uint32_t k = 0; k < buckets; k++) {
        for (uint32_t r = 0; r < s->replicas; r++) {
            mri_replica *rep = stage->legs[r].replica;
            const uint32_t last = parts_of(s, r) - 1;
            const mri_bucket *bucket = &rep->plan.buckets[k];
            int rc = mri_replica_run(rep, last, &seen[r][at], true, false, k);
            if (rc == MR_OK) rc = mri_replica_fold(rep, last, bucket->at, bucket->count);
            /* the first stage computes last */
            if (rc == MR_OK && at == 0 && k + 1 == buckets && stage->team->group)
                rc = mr_event_record(f->computed[r], stream_of(s, 0, r));
            if (rc) return failed(s, at, r, rc, "a training step", err);
        }
        const int rc = mri_exchange_bucket(stage->exchange, k, &why);
        if (rc) return exchange_failed(s, rc, &why, err);
    }
    for (uint32_t r = 0; r < s->replicas; r++) {
        const int rc = hand_back(s, at, r, seen[r][at].count);
        if (rc) return failed(s, at, r, rc, "a gradient", err);
    }
    return MR_OK;
}

static int update(const mri_split *s, uint32_t replica, const mr_part *seen)
{
    int rc = MR_OK;
    for (uint32_t at = 0; rc == MR_OK && at < s->count; at++) {
        mri_replica *rep = s->stages[at].legs[replica].replica;
        if (rep->cfg.together) continue; /* it followed backward */
        rc = mri_replica_run(rep, parts_of(s, replica) - 1, &seen[at], true, false, rep->plan.bucket_count);
    }
    return rc;
}

int mri_split_step(mri_split *s, const mri_flight *f, const mr_batch *b, mr_error *err)
{
    mr_part seen[MR_LOADER_MAX_PARTS][MRI_STAGES_MOST];
    int rc = MR_OK;
    for (uint32_t r = 0; r < s->replicas; r++) {
        const uint32_t first = mri_team_first_part(s->stages[0].team, r), last = parts_of(s, r) - 1;
        for (uint32_t k = 0; rc == MR_OK && k < last; k++) rc = train_part(s, r, k, &b->parts[first + k]);
        if (rc == MR_OK) rc = forward(s, r, last, &b->parts[first + last], true, seen[r]);
        if (rc) return failed(s, 0, r, rc, "a training step", err);
    }
    for (uint32_t at = s->count; at-- > 0;) {
        rc = train_stage(s, at, f, (const mr_part(*)[MRI_STAGES_MOST])seen, err);
        if (rc) return rc;
    }
    for (uint32_t r = 0; r < s->replicas; r++) {
        if (s->stages[0].team->ranks.size > 1) rc = mr_event_record(f->summed[r], stream_of(s, 0, r));
        if (rc == MR_OK) rc = update(s, r, seen[r]);
        if (rc) return failed(s, 0, r, rc, "an update", err);
    }
    return MR_OK;
}

/* ------------------------------------------------------------------------------ exchange */

void mri_split_mark_stats_stale(mri_split *s)
{
    for (uint32_t at = 1; at < s->count; at++) mri_exchange_mark_stats_stale(s->stages[at].exchange);
}

/* The first stage's streams wait for all. */
static int join_all(const mri_split *s, mr_error *err)
{
    for (uint32_t r = 0; r < s->replicas; r++) {
        const int rc = join(s, r);
        if (rc) return failed(s, 0, r, rc, "an event", err);
    }
    return MR_OK;
}

int mri_split_exchange_stats(mri_split *s, mr_error *err)
{
    mr_error why = MR_ERROR_INIT;
    int rc = MR_OK;
    for (uint32_t at = 1; rc == MR_OK && at < s->count; at++)
        rc = mri_exchange_stats(s->stages[at].exchange, &why);
    return rc ? exchange_failed(s, rc, &why, err) : join_all(s, err);
}

int mri_split_exchange_all(mri_split *s, mr_error *err)
{
    mr_error why = MR_ERROR_INIT;
    int rc = MR_OK;
    for (uint32_t at = 1; rc == MR_OK && at < s->count; at++)
        rc = mri_exchange_all(s->stages[at].exchange, &why);
    return rc ? exchange_failed(s, rc, &why, err) : join_all(s, err);
}
