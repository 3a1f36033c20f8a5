/* train/trainer_open.c: a trainer's settings checked, its parts opened and closed. With other processes all
 * of them open theirs at the same time, and agree on what must be the same. */
#include <math.h>
#include <stdatomic.h>
#include <stdio.h>

#include "base/abi.h"
#include "base/floats.h"
#include "base/simd.h"
#include "train/trainer.h"

void mr_trainer_defaults_sized(mr_trainer_config *cfg, size_t struct_size)
{
    mr_trainer_config all = {.batch = 128, .epochs = 1};
    all.update.kind = MR_UPDATE_SGD;
    all.schedule = (mr_schedule){.kind = MR_LR_CONSTANT, .factor = 0.1f};
    for (int c = 0; c < 4; c++) all.std[c] = 255.0f;
    all.dtype = MR_TENSOR_F32;
    all.bucket_bytes = MR_BUCKET_AUTO;
    mri_trainer_fill(&all);
    all.schedule.lr = all.update.lr; /* one rate, and the schedule gives it */
    all.update.lr = 0;
    mri_settings_give(cfg, struct_size, &all, sizeof all);
}

#define USUAL_BUCKET (25u << 20)
#define FIRST_SCALE  65536.0f
#define GROWTH_STEPS 1000u
enum { MOST_SCALE = 1 << 24 };

/* ------------------------------------------------------------------------------ open, close */

static int check_precision(const mr_trainer_config *cfg, mr_error *err)
{
    int power;
    if (cfg->dtype != MR_TENSOR_F32 && cfg->dtype != MR_TENSOR_BF16 && cfg->dtype != MR_TENSOR_F16)
        return mr_error_set(err, MR_EINVAL, "activations of type %u: expected f32, bf16 or f16", cfg->dtype);
    const double scale = (double)cfg->loss_scale;
    if (!(scale == 0) && (!(scale >= 1 && scale <= MOST_SCALE) || frexp(scale, &power) != 0.5))
        return mr_error_set(err, MR_EINVAL,
                            "loss scale %g: expected 0, to adapt, or a power of two from 1 to %d", scale,
                            MOST_SCALE);
    if ((unsigned)cfg->schedule.kind >= MR_LR_KIND_COUNT)
        return mr_error_set(err, MR_EINVAL, "mr_trainer_config.schedule.kind is %u: expected 0 to %d",
                            (unsigned)cfg->schedule.kind, MR_LR_KIND_COUNT - 1);
    return mr_net_check(cfg->net, err);
}

static int check_update(const mr_trainer_config *cfg, mr_error *err)
{
    if ((unsigned)cfg->update.kind >= MR_UPDATE_KIND_COUNT)
        return mr_error_set(err, MR_EINVAL, "optimizer %d: there are %d, counted from 0",
                            (int)cfg->update.kind, MR_UPDATE_KIND_COUNT);
    if (!cfg->inference && cfg->update.lr != 0 && cfg->update.lr != cfg->schedule.lr)
        return mr_error_set(
            err, MR_EINVAL,
            "mr_trainer_config.update.lr is %g, schedule.lr %g: expected 0 or schedule.lr; the "
            "schedule gives the rate of every update",
            (double)cfg->update.lr, (double)cfg->schedule.lr);
    return mri_trainer_check(cfg, err);
}

static int check_class_weights(const mr_trainer_config *cfg, mr_error *err)
{
    const uint32_t classes = mr_net_class_count(cfg->net);
    if (!cfg->class_weights && !cfg->class_weight_count) return MR_OK;
    if (classes == 0)
        return mr_error_set(err, MR_EINVAL, "weights of classes: network %s has no classes", cfg->net->name);
    if (!cfg->class_weights || cfg->class_weight_count != classes)
        return mr_error_set(err, MR_EINVAL,
                            "weights of classes: expected %u, one for each class of network %s, found %u",
                            classes, cfg->net->name, cfg->class_weights ? cfg->class_weight_count : 0);
    float most = 0;
    for (uint32_t c = 0; c < classes; c++) {
        const float w = cfg->class_weights[c];
        if (!(w >= 0) || isinf(w))
            return mr_error_set(
                err, MR_EINVAL,
                "weights of classes: that of class %u is %g: expected a finite number, 0 or above", c,
                (double)w);
        most = fmaxf(most, w);
    }
    return most > 0 ? MR_OK
                    : mr_error_set(err, MR_EINVAL, "weights of classes: all are 0: nothing would be trained");
}

/* A network that only computes outputs cannot be trained; class weights go with every loss against labels. */
static int check_losses(const mr_trainer_config *cfg, mr_error *err)
{
    const mr_net *net = cfg->net;
    if (net->target_loss && net->open_end && !cfg->inference)
        return mr_error_set(err, MR_EINVAL,
                            "network %s ends in outputs without targets: expected the field that has them "
                            "(mr_net_targets()) to train it",
                            net->name);
    for (uint32_t i = 0; cfg->class_weights && i < net->layer_count; i++)
        if (net->layers[i].op.kind == MR_OP_LOSS && net->layers[i].out_c != cfg->class_weight_count &&
            !(net->layers[i].out_c == 1 && cfg->class_weight_count == 2))
            return mr_error_set(err, MR_EINVAL,
                                "weights of classes: the losses of network %s tell different numbers of "
                                "classes apart",
                                net->name);
    return check_class_weights(cfg, err);
}

static bool is_served(uint32_t sync)
{
    return (sync & 255) == MR_SYNC_SERVERS || (sync & 255) == MR_SYNC_SERVERS_ASYNC;
}

/* Shares with weights of their own: what goes by one set of weights is refused. */
static int check_sync(const mr_trainer_config *cfg, mr_error *err)
{
    if (cfg->exchange != MR_EXCHANGE_F32 && cfg->dtype == MR_TENSOR_F16 && !cfg->inference)
        return mr_error_set(
            err, MR_EINVAL,
            "exchange: fewer bits send the remainder of a value later, and f16's loss scale changes "
            "in between: expected activations of f32 or bf16");
    if (cfg->exchange != MR_EXCHANGE_F32 && mr_world_size(cfg->world) > 1 &&
        mr_world_wire(cfg->world) == MR_WIRE_NCCL && !cfg->inference)
        return mr_error_set(
            err, MR_EUNSUPPORTED,
            "exchange: wire nccl sums in f32 only: expected f32, the default, or another wire");
    if (cfg->exchange == MR_EXCHANGE_1BIT && cfg->freeze && *cfg->freeze && !cfg->inference)
        return mr_error_set(
            err, MR_EINVAL,
            "exchange: 1bit sends no zeros, and frozen layers need gradients of zero: expected "
            "f32, bf16, f16 or int8 with freeze");
    if (cfg->inference || cfg->sync == MR_SYNC_EACH) return MR_OK;
    const bool served = is_served(cfg->sync);
    if (served && !cfg->crew)
        return mr_error_set(
            err, MR_EINVAL,
            "sync: no process serves parameters: expected mr_trainer_config.crew (train: --sync ps on the "
            "command line, in several processes)");
    if (served && cfg->exchange != MR_EXCHANGE_F32)
        return mr_error_set(err, MR_EINVAL, "exchange: servers take gradients in f32, the default");
    if (served && mr_world_wire(cfg->world) == MR_WIRE_NCCL)
        return mr_error_set(err, MR_EUNSUPPORTED,
                            "wire: servers receive gradients through host memory: expected auto, tcp or shm, "
                            "found nccl");
    if (cfg->sync == MR_SYNC_INDEPENDENT && cfg->exchange != MR_EXCHANGE_F32)
        return mr_error_set(err, MR_EINVAL,
                            "exchange: independent shares exchange nothing: expected f32, the default");
    const char *not_with = cfg->place                    ? "a network on several devices"
                           : cfg->dtype == MR_TENSOR_F16 ? "f16, whose loss scale is common to all shares"
                           : cfg->lookahead > 0          ? "lookahead, which averages weights, too"
                           : cfg->average > 0            ? "average, which follows one set of weights"
                                                         : NULL;
    if (not_with)
        return mr_error_set(err, MR_EINVAL, "sync: %s not go with %s: leave one of them out",
                            served                         ? "servers of parameters do"
                            : cfg->sync == MR_SYNC_DELAYED ? "gradients of the batch before do"
                                                           : "weights of each share do",
                            not_with);
    return MR_OK;
}

static int check_config(const mr_trainer_config *cfg, mr_error *err)
{
    if (!cfg->net) return mr_error_set(err, MR_EINVAL, "a trainer needs a network");
    if (!cfg->devices || cfg->device_count == 0 || cfg->device_count > MR_LOADER_MAX_PARTS)
        return mr_error_set(err, MR_EINVAL, "a trainer needs 1 to %d devices, not %u", MR_LOADER_MAX_PARTS,
                            cfg->device_count);
    if (cfg->batch == 0) return mr_error_set(err, MR_EINVAL, "the batch must be at least 1");
    if (!(cfg->schedule.lr > 0) || !isfinite(cfg->schedule.lr))
        return mr_error_set(err, MR_EINVAL, "learning rate %g: expected a finite number above 0",
                            (double)cfg->schedule.lr);
    const bool pictures = !cfg->net->numbers && !cfg->net->bare;
    for (uint32_t c = 0; pictures && c < cfg->net->c; c++)
        if (!(cfg->std[c] > 0) || !isfinite(cfg->std[c]) || !isfinite(cfg->mean[c]))
            return mr_error_set(err, MR_EINVAL,
                                "channel %u: mean %g, std %g: expected finite numbers, std above 0", c,
                                (double)cfg->mean[c], (double)cfg->std[c]);
    if (cfg->kept_count > 0 && !cfg->inference)
        return mr_error_set(err, MR_EINVAL, "points are kept by trainers for inference only");
    for (uint32_t i = 0; i < cfg->kept_count; i++)
        if (!mri_net_has_tensor(cfg->net, cfg->kept[i]))
            return mr_error_set(err, MR_EINVAL, "network %s has no point %u to keep", cfg->net->name,
                                cfg->kept[i]);
    int rc = check_update(cfg, err);
    if (rc == MR_OK) rc = check_sync(cfg, err);
    if (rc == MR_OK) rc = check_precision(cfg, err);
    return rc ? rc : check_losses(cfg, err);
}

static mri_replica_config replica_config(const mr_trainer_config *cfg, const mr_parts *parts,
                                         const bool *frozen)
{
    mri_replica_config r = {
        .net = cfg->net,
        .global_batch = cfg->batch,
        .seed = cfg->seed,
        .inference = cfg->inference,
        .affine.used = cfg->uses_affine,
        .dtype = cfg->dtype,
        .optimizer.update = cfg->update,
        .labels = {cfg->label_smoothing, cfg->class_weights, cfg->class_weight_count},
        .touched = {frozen, cfg->decay_on, mri_net_head(cfg->net)},
        .kept = {cfg->kept, cfg->kept_count},
        .optimizer.slot_count = mr_update_state_count(cfg->update.kind) + (cfg->lookahead > 0),
        .bucket_bytes = cfg->bucket_bytes == MR_BUCKET_AUTO ? USUAL_BUCKET : cfg->bucket_bytes,
        .memory_bytes = cfg->memory_bytes,
        .together = parts->all == 1,
        .records = !cfg->no_graph,
        .clears_gaps = cfg->world && cfg->exchange == MR_EXCHANGE_1BIT};
#define MRI_SETTING(member, kind, ...) r.optimizer.member = cfg->member;
#define MRI_KEPT_TEXT(member, kind, ...)
#include "settings/updates.rows"
    const uint32_t sync = cfg->inference ? (uint32_t)MR_SYNC_EACH : cfg->sync & 255;
    r.local = (mri_local){.on = sync == MR_SYNC_AVERAGE || sync == MR_SYNC_INDEPENDENT,
                          .apart = sync == MR_SYNC_INDEPENDENT,
                          .delayed = sync == MR_SYNC_DELAYED,
                          .heavy_ball = cfg->outer_heavy_ball,
                          .lr = cfg->outer_lr,
                          .momentum = cfg->outer_momentum,
                          .all_parts = parts->all};
    if (r.local.on) r.together = true;
    const bool served = is_served(sync);
    if (r.local.delayed || served) r.together = false;
    if (r.local.on || r.local.delayed || served || (cfg->device_count == 1 && parts->count == parts->all))
        r.bucket_bytes = 0; /* nobody waits for a part of the gradients */
    r.max_batch = cfg->batch / parts->all + (cfg->batch % parts->all != 0);
    memcpy(r.affine.mean, cfg->mean, sizeof r.affine.mean);
    memcpy(r.affine.std, cfg->std, sizeof r.affine.std);
    return r;
}

/* Sums of gradients between GPUs of several processes. */
static mri_nccl_use nccl_use(const mr_trainer *t)
{
    const mr_trainer_config *cfg = &t->cfg;
    const mr_wire_choice wire = mr_world_wire(cfg->world);
    if (wire == MR_WIRE_NCCL) return MRI_NCCL_ALWAYS;
    const bool sums = !cfg->inference && !cfg->crew && !t->team.replicas[0].cfg.local.apart;
    const bool gpus = strcmp(mr_device_info_of(cfg->devices[0])->kind, "cuda") == 0;
    return wire == MR_WIRE_AUTO && sums && gpus && cfg->exchange == MR_EXCHANGE_F32 ? MRI_NCCL_IF_POSSIBLE
                                                                                    : MRI_NCCL_NEVER;
}

/* With other processes: choose from the network's properties, unless the caller has chosen. */
static int choose_bucket(mr_trainer *t, mr_error *err)
{
    const mri_plan *plan = &t->team.replicas[0].plan;
    const uint64_t bytes = plan->weight_floats * sizeof(float);
    const mri_replica_config *cfg = &t->team.replicas[0].cfg;
    if (cfg->local.on || cfg->local.delayed || t->cfg.crew)
        t->cfg.bucket_bytes = 0; /* gradients are not exchanged, or all at once */
    const bool chosen = t->cfg.bucket_bytes != MR_BUCKET_AUTO;
    if (!chosen) t->cfg.bucket_bytes = USUAL_BUCKET;
    if (t->team.ranks.size == 1 || t->cfg.inference || cfg->local.apart || t->cfg.crew) return MR_OK;
    const int rc = t->exchange.by_nccl
                       ? mri_exchange_measure(&t->exchange, bytes, &t->link, err)
                       : mri_link_speed_measure(&t->link, t->cfg.world, MRI_RANKS_SUMS,
                                                mri_tap_ranks_per_host(&t->exchange.tap), bytes, err);
    if (rc || chosen || t->exchange.by_nccl)
        return rc; /* NCCL's order of additions follows from the bucket */
    t->cfg.bucket_bytes = mri_link_speed_bucket(&t->link, bytes);
    for (uint32_t r = 0; r < t->team.count; r++)
        mri_replica_set_bucket(&t->team.replicas[r], t->cfg.bucket_bytes);
    return MR_OK;
}

/* Sizes that cut the gradients differently. */
static void begin_tuning(mr_trainer *t)
{
    static const uint64_t sizes[] = {0, 1u << 20, 4u << 20, 25u << 20, 256u << 10};
    const mri_replica *rep = &t->team.replicas[0];
    uint64_t bytes[MRI_BUCKET_SIZES] = {t->cfg.bucket_bytes};
    uint32_t cuts[MRI_BUCKET_SIZES] = {rep->plan.bucket_count}, count = 1;
    const bool others = t->team.ranks.size > 1;
    /* one bucket, or residuals, which belong to buckets */
    const bool fixed = mri_trainer_is_local(t) || rep->cfg.local.delayed || t->cfg.crew ||
                       t->cfg.exchange != MR_EXCHANGE_F32;
    const bool tunes = t->cfg.tune_buckets && (t->team.count > 1 || others) && t->team.ranks.rank == 0 &&
                       !t->cfg.inference && t->split.count == 0 && !fixed;
    const size_t tried = MRI_ARRAY_COUNT(sizes) - !others;
    t->bucket_bytes = t->cfg.bucket_bytes;
    for (size_t i = 0; tunes && i < tried && count < MRI_BUCKET_SIZES; i++) {
        const uint32_t n = mri_plan_count_buckets(&rep->plan, &rep->nodes, sizes[i]);
        uint32_t k = 0;
        while (k < count && cuts[k] != n) k++;
        if (k < count) continue;
        cuts[count] = n;
        bytes[count++] = sizes[i];
    }
    mri_bucket_tuner_begin(&t->buckets, bytes, count);
    t->flights.buckets = &t->buckets;
}

static int check_parts(const mr_parts *parts, uint32_t devices, mr_error *err)
{
    uint32_t dealt = 0;
    bool each = true;
    for (uint32_t d = 0; d < devices; d++) {
        each = each && parts->of_device[d] > 0 && parts->of_device[d] <= MR_LOADER_MAX_PARTS;
        dealt += each ? parts->of_device[d] : 0;
    }
    if (each && dealt == parts->count && parts->count <= MR_LOADER_MAX_PARTS && parts->first < parts->all &&
        parts->count <= parts->all - parts->first)
        return MR_OK;
    return mr_error_set(err, MR_EINVAL,
                        "%u devices for parts %u to %u of %u: expected parts as mr_parts_deal() gives "
                        "them for these devices",
                        devices, parts->first, parts->first + parts->count, parts->all);
}

/* The parts of the settings, or one per device. */
static int take_parts(const mr_trainer_config *cfg, mr_parts *out, mr_error *err)
{
    out->struct_size = sizeof *out;
    if (!cfg->parts) return mr_parts_deal(out, NULL, cfg->device_count, 0, err);
    *out = (mr_parts){.all = 0};
    const int rc = mri_settings_take(out, sizeof *out, cfg->parts, "parts", err);
    return rc ? rc : check_parts(out, cfg->device_count, err);
}

/* Describe in lines the settings that must be equal in all processes and that the weights' bits would not
 * show. */
static void describe(const mr_trainer *t, char *out, size_t out_bytes)
{
    const mr_trainer_config *c = &t->cfg;
    const mri_replica *rep = &t->team.replicas[0];
    snprintf(
        out, out_bytes,
        "millrace %s\nmodel %s with %llu parameters\ndevice %s\ninstructions "
        "%d\nbatch %u\nparts %u\nseed %llu\n"
        "activations %u\noptimizer %d %g %g %g %g %g %g %g %d\nlearning rate %g, schedule %d %g %g %g %g, "
        "epochs %llu\nloss scale %g\n"
        "targets %d of %s, %u weights of classes %08x\n"
        "buckets of %llu bytes (%u)\nfor %s\nthreads of a device %u\nconvolutions %u\n",
        mr_version(), c->net->name, (unsigned long long)mr_net_param_count(c->net),
        mr_device_info_of(c->devices[0])->kind, mri_simd(), c->batch, t->team.parts.all,
        (unsigned long long)c->seed, c->dtype, c->update.kind, (double)c->update.momentum,
        (double)c->update.rho, (double)c->update.beta1, (double)c->update.beta2, (double)c->update.epsilon,
        (double)c->update.weight_decay, (double)c->update.lr, c->update.nesterov, (double)c->schedule.lr,
        c->schedule.kind, (double)c->schedule.factor, (double)c->schedule.floor_lr, (double)c->schedule.decay,
        c->schedule.warmup_epochs, (unsigned long long)c->epochs, (double)c->loss_scale,
        mr_net_target_loss(c->net), mri_net_target_field(c->net), c->class_weight_count,
        mr_crc32c(0, c->class_weights, c->class_weight_count * sizeof *c->class_weights),
        (unsigned long long)c->bucket_bytes, rep->plan.bucket_count, c->inference ? "inference" : "training",
        mr_device_info_of(c->devices[0])->threads, mr_trainer_convolution(t));
}

static int agree(const mr_trainer *t, mr_error *err)
{
    char text[2560];
    const mr_schedule *s = &t->cfg.schedule;
    if (t->team.ranks.size == 1) return MR_OK;
    describe(t, text, sizeof text - 1024);
    size_t used = strlen(text);
    used += mri_trainer_tell(&t->cfg, text + used, sizeof text - 512 - used);
    for (uint32_t i = 0; i < s->milestone_count && i < MRI_ARRAY_COUNT(s->milestones); i++)
        used += (size_t)snprintf(text + used, sizeof text - used, "%s%.17g", i ? " " : "milestones ",
                                 s->milestones[i]);
    snprintf(text + used, sizeof text - used, "\n");
    return mri_ranks_agree(&t->team.ranks, text, err);
}

/* One stream for each part. */
static int list_streams(mr_trainer *t, mr_error *err)
{
    t->streams = calloc(t->team.parts.count, sizeof(mr_stream *));
    if (!t->streams)
        return mr_error_set(err, MR_ENOMEM, "no memory for a trainer of %u parts", t->team.parts.count);
    for (uint32_t r = 0, p = 0; r < t->team.count; r++)
        for (uint32_t k = 0; k < t->team.parts.of_device[r]; k++) t->streams[p++] = t->team.streams[r];
    return MR_OK;
}

static uint32_t tensor_dtype(mr_dtype dtype)
{
    static const uint32_t types[] = {
        [MR_U8] = MR_TENSOR_U8,   [MR_I8] = MR_TENSOR_I8,     [MR_I16] = MR_TENSOR_I16,
        [MR_I32] = MR_TENSOR_I32, [MR_I64] = MR_TENSOR_I64,   [MR_F16] = MR_TENSOR_F16,
        [MR_F32] = MR_TENSOR_F32, [MR_BF16] = MR_TENSOR_BF16, [MR_F64] = MR_TENSOR_F64,
    };
    return (uint32_t)dtype < MRI_ARRAY_COUNT(types) ? types[dtype] : 0;
}

/* The field of the batches that is input k of the network. */
static int place_field(const mr_net *net, uint32_t k, const mr_loader_field_info *fields, uint32_t count,
                       mri_field_place *out, mr_error *err)
{
    const mri_net_input *input = &net->input[k];
    uint64_t numbers = 1;
    uint32_t at = 0;
    while (at < count && strcmp(fields[at].name, input->name) != 0) at++;
    if (at == count)
        return mr_error_set(
            err, MR_EINVAL,
            "network %s takes a field %s, and the batches have no field of that name (%u fields): "
            "name it in mr_loader_config.fields, and give the trainer mr_loader_info.field",
            net->name, input->name, count);
    const mr_loader_field_info *f = &fields[at];
    for (uint32_t d = 0; d < f->ndim && d < MR_MAX_DIMS; d++) numbers *= f->dim[d];
    *out = (mri_field_place){.at = at, .dtype = tensor_dtype(f->dtype), .varies = f->varies};
    if (f->role != MR_ROLE_PLAIN && f->role != MR_ROLE_MASK)
        return mr_error_set(err, MR_EINVAL, "field %s holds boxes, which networks do not take", input->name);
    if (input->whole &&
        (f->dtype == MR_F16 || f->dtype == MR_BF16 || f->dtype == MR_F32 || f->dtype == MR_F64))
        return mr_error_set(err, MR_EINVAL, "network %s takes whole numbers of field %s, which holds %s",
                            net->name, input->name, mr_dtype_name(f->dtype));
    if (f->varies ? f->ndim == 0 : numbers == input->numbers) return MR_OK;
    return mr_error_set(err, MR_EINVAL, "network %s takes %llu numbers of field %s, a sample has %llu%s",
                        net->name, (unsigned long long)input->numbers, input->name,
                        (unsigned long long)numbers, f->varies ? " or more" : "");
}

int mri_trainer_check_fields(const mr_trainer *t, const mr_loader_info *info, mr_error *err)
{
    const mr_net *net = t->cfg.net;
    for (uint32_t k = 0; k < net->input_count; k++) {
        const mri_field_place *mine = &t->team.replicas[0].cfg.in.fields[k];
        mri_field_place found;
        const int rc = place_field(net, k, info->field, info->field_count, &found, err);
        if (rc) return rc;
        if (found.at != mine->at || found.dtype != mine->dtype || found.varies != mine->varies)
            return mr_error_set(
                err, MR_EINVAL,
                "field %s comes as number %u of the loader's, of type %s: the trainer was "
                "opened with another loader's fields, where it is number %u or of another type",
                net->input[k].name, found.at, mr_dtype_name(info->field[found.at].dtype), mine->at);
    }
    return MR_OK;
}

/* A network on several devices: its stages, and the devices of the first stage. */
static int cut_network(mr_trainer *t, mr_device **first, mr_error *err)
{
    mr_trainer_config *cfg = &t->cfg;
    uint32_t stages = 0;
    for (uint32_t at = 0; at < cfg->net->layer_count; at++)
        if (cfg->place[at] >= stages) stages = cfg->place[at] + 1;
    const char *not_with = cfg->world                    ? "several processes"
                           : cfg->dtype == MR_TENSOR_F16 ? "f16"
                           : cfg->clip_norm > 0          ? "clip_norm"
                           : cfg->kept_count > 0         ? "kept points"
                           : stages > MRI_STAGES_MOST    ? "more than 16 of them"
                           : cfg->device_count % stages != 0
                               ? "a number of devices that is not a multiple of the stages"
                               : NULL;
    if (not_with)
        return mr_error_set(err, MR_EINVAL,
                            "network %s is placed on %u devices, which does not go with %s (%u "
                            "devices are given)",
                            cfg->net->name, stages, not_with, cfg->device_count);
    cfg->device_count /= stages;
    for (uint32_t r = 0; r < cfg->device_count; r++) first[r] = cfg->devices[r * stages];
    return mri_split_cut(&t->split, cfg->net, cfg->place, stages, err);
}

static int open_stages(mr_trainer *t, mr_device *const *devices, const mri_replica_config *replica,
                       mr_error *err)
{
    int rc =
        t->split.count > 0 ? mri_split_open(&t->split, &t->team, &t->exchange, devices, replica, err) : MR_OK;
    if (rc == MR_OK && t->split.count > 0) t->flights.measured = mri_split_last(&t->split);
    return rc;
}

static int open_parts(mr_trainer *t, mr_error *err)
{
    mr_parts parts;
    mr_device *const *devices = t->cfg.devices;
    mr_device *first[MR_LOADER_MAX_PARTS];
    mr_device *const *replicas = t->cfg.place ? first : devices;
    int rc = t->cfg.place ? cut_network(t, first, err) : MR_OK;
    if (rc == MR_OK) rc = take_parts(&t->cfg, &parts, err);
    if (rc) return rc;
    mri_replica_config replica = replica_config(&t->cfg, &parts, t->frozen.layers);
    for (uint32_t k = 0; rc == MR_OK && k < t->cfg.net->input_count; k++)
        rc = place_field(t->cfg.net, k, t->cfg.fields, t->cfg.field_count, &replica.in.fields[k], err);
    t->cfg.fields = NULL;
    t->cfg.place = NULL;
    if (rc) return rc;
    if (t->split.count > 0) {
        replica.net = t->split.stages[0].piece.net;
        replica.in.split = true;
        replica.records = false;
    }
    rc = mri_team_init(&t->team, replicas, &parts, t->cfg.device_count, t->cfg.world, &replica, err);
    t->cfg.devices = t->team.devices;
    t->cfg.parts = NULL;
    if (rc == MR_OK) rc = list_streams(t, err);
    if (rc == MR_OK) rc = agree(t, err);
    if (rc == MR_OK)
        rc = mri_exchange_init(&t->exchange, &t->team, t->cfg.exchange, nccl_use(t), t->cfg.trace, err);
    if (rc == MR_OK) rc = choose_bucket(t, err);
    if (rc == MR_OK) rc = mri_flights_init(&t->flights, &t->team, t->cfg.watchdog_s, t->cfg.trace, err);
    t->flights.spans = &t->exchange.spans;
    if (rc == MR_OK) rc = open_stages(t, devices, &replica, err);
    if (rc == MR_OK)
        rc = mri_served_init(&t->served, t->cfg.crew, &t->team, (t->cfg.sync & 255) == MR_SYNC_SERVERS_ASYNC,
                             t->cfg.sync >> 8, err);
    if (rc == MR_OK) rc = mri_tensors_init(&t->tensors, &t->team.replicas[0], err);
    if (rc == MR_OK) rc = mri_ranks_tell(&t->team.ranks, t->run.id, sizeof t->run.id, err);
    if (rc == MR_OK) rc = mri_replica_init_weights(&t->team.replicas[0], err);
    if (rc == MR_OK) rc = mri_split_init_weights(&t->split, err);
    if (rc == MR_OK) rc = mri_trainer_share_all(t, err);
    if (rc == MR_OK) begin_tuning(t);
    const bool adapts = t->cfg.loss_scale == 0;
    const mr_loss_scale scale = {.scale = adapts ? FIRST_SCALE : t->cfg.loss_scale,
                                 .growth_steps = adapts ? GROWTH_STEPS : 0};
    return rc ? rc : mri_scale_set(&t->flights, &scale, &t->scale, err);
}

/* Which layers are frozen; something must be left to train. */
static int take_frozen(mr_trainer *t, mr_error *err)
{
    const mr_net *net = t->cfg.net;
    const char *text = t->cfg.freeze;
    t->cfg.freeze = NULL;
    if (!text || !*text || t->cfg.inference) return MR_OK;
    if (strlen(text) >= sizeof((mr_checkpoint_info *)0)->freeze)
        return mr_error_set(err, MR_EINVAL,
                            "freeze \"%s\": expected at most %zu bytes, which a checkpoint has room for",
                            text, sizeof((mr_checkpoint_info *)0)->freeze - 1);
    t->frozen.text = strdup(text);
    t->frozen.layers = calloc((size_t)net->layer_count + 1, sizeof *t->frozen.layers);
    if (!t->frozen.text || !t->frozen.layers)
        return mr_error_set(err, MR_ENOMEM, "no memory for a list of %u layers", net->layer_count);
    t->cfg.freeze = t->frozen.text;
    const int rc = mr_net_choose(net, text, t->frozen.layers, err);
    if (rc) return rc;
    for (uint32_t at = 0; at < net->layer_count; at++)
        if (net->layers[at].params > 0 && !t->frozen.layers[at]) return MR_OK;
    return mr_error_set(err, MR_EINVAL,
                        "freeze \"%s\": these are all layers with parameters: nothing would be trained",
                        text);
}

/* Without effect in evaluation. */
static int take_class_weights(mr_trainer *t, mr_error *err)
{
    mr_trainer_config *cfg = &t->cfg;
    const size_t bytes = cfg->class_weight_count * sizeof *cfg->class_weights;
    if (cfg->inference) cfg->class_weights = NULL, cfg->class_weight_count = 0;
    if (!cfg->class_weights) return MR_OK;
    t->class_weights = malloc(bytes);
    if (!t->class_weights) return mr_error_set(err, MR_ENOMEM, "no memory for the weights of classes");
    memcpy(t->class_weights, cfg->class_weights, bytes);
    cfg->class_weights = t->class_weights;
    return MR_OK;
}

int mr_trainer_open(mr_trainer **out, const mr_trainer_config *cfg, mr_error *err)
{
    MRI_DEFAULT_FLOATS;
    MRI_GIVEN(err, out);
    *out = NULL;
    mr_trainer_config mine;
    mr_trainer_defaults(&mine);
    int rc = mri_settings_take(&mine, sizeof mine, cfg, "trainer", err);
    if (rc == MR_OK) rc = check_config(&mine, err);
    if (rc) return rc;
    mr_trainer *t = calloc(1, sizeof *t);
    if (!t) return mr_error_set(err, MR_ENOMEM, "no memory for a trainer");
    t->process = mri_process();
    t->cfg = mine;
    if (mine.inference || !is_served(mine.sync)) t->cfg.crew = NULL;
    t->cfg.update.lr = mine.schedule.lr; /* checkpoints store it */
    t->run.best_val_loss = INFINITY;
    mri_run_draw(t->run.id);
    rc = take_frozen(t, err);
    if (rc == MR_OK) rc = take_class_weights(t, err);
    if (rc == MR_OK) rc = open_parts(t, err);
    if (rc) {
        if (t->cfg.world) mr_world_abort(t->cfg.world, err); /* nobody is to wait for it */
        mr_trainer_close(t);
        return rc;
    }
    mri_step_log_start(&t->flights.log, t->team.count, 0);
    *out = t;
    return MR_OK;
}

/* Trainers whose devices may still write to their memory: kept for as long as the process lives. */
static _Atomic(mr_trainer *) abandoned;

static void abandon(mr_trainer *t)
{
    t->abandoned = abandoned;
    while (!atomic_compare_exchange_weak(&abandoned, &t->abandoned, t)) {
    }
}

void mr_trainer_close(mr_trainer *t)
{
    if (!MRI_IS_OWN(t)) return;
    if (mri_trainer_enter(t, "mr_trainer_close", NULL) != MR_OK) { /* a function that it has called does */
        t->close_refused = true;
        return;
    }
    if (t->flights.hangs && !mri_flights_have_drained(&t->flights)) {
        abandon(t);
        return;
    }
    mri_team_settle(&t->team); /* nothing queued may use what goes */
    mri_split_settle(&t->split);
    mri_served_fini(&t->served);
    mri_exchange_fini(&t->exchange);
    mri_flights_fini(&t->flights);
    mri_split_fini(&t->split);
    mri_team_fini(&t->team);
    mri_tensors_fini(&t->tensors);
    free(t->streams);
    free(t->frozen.text);
    free(t->frozen.layers);
    free(t->class_weights);
    free(t);
}

bool mr_trainer_hangs(const mr_trainer *t) { return t && t->flights.hangs; }

bool mr_trainer_op_sized(const mr_trainer *t, uint32_t at, mr_trainer_op *out)
{
    if (!t || !out || mri_result_check(out, NULL) != MR_OK) return false;
    const mri_replica *rep = &t->team.replicas[0];
    while (rep && at >= rep->nodes.count) {
        at -= rep->nodes.count;
        rep = rep->next;
    }
    if (!rep) return false;
    const mr_trainer_op op = {.desc = &rep->nodes.node[at].desc, .info = rep->nodes.node[at].info};
    mri_result_give(out, &op, sizeof op);
    return true;
}

static uint32_t convolution_of(const mri_nodes *nodes)
{
    uint32_t known = 0;
    for (uint32_t i = 0; i < nodes->count; i++)
        for (int pass = 0; pass <= MR_PASS_WEIGHTS; pass++) {
            const char *name = nodes->node[i].info->algorithm[pass];
            if (name && strcmp(name, "winograd") == 0) return MR_WINOGRAD_TABLE;
            if (name) known = 1;
        }
    return known;
}

uint32_t mr_trainer_convolution(const mr_trainer *t)
{
    if (!t) return 0;
    uint32_t known = 0;
    for (const mri_replica *r = &t->team.replicas[0]; r; r = r->next)
        known = (uint32_t)mri_max_u64(known, convolution_of(&r->nodes));
    return known;
}

mr_stream *const *mr_trainer_streams(const mr_trainer *t) { return t ? t->streams : NULL; }
