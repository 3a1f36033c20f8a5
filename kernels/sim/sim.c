/* kernels/sim/sim.c: the device kind "sim": an accelerator one does not have. Copies are real and paced to a
 * link rate; compute is a timed wait on the stream. It shows stalls, overlap and sizing; its loss and
 * accuracy mean nothing. */
#include "kernels/sim/sim.h"

#include <stdio.h>
#include <sys/prctl.h>

#include "kernels/backend/spec.h"
#include "kernels/ops/host_op.h"

struct sim_settings {
    double step_ns, slow_ns /* of the last device */, h2d_bytes_per_s, d2h_bytes_per_s;
};

/* Wake from timed sleeps within microseconds; the system's default lets them be 50 late. */
static void begin_thread(mri_host_device *dev, mr_stream_role role)
{
    (void)dev, (void)role;
    prctl(PR_SET_TIMERSLACK, 1ul, 0ul, 0ul, 0ul);
}

static int read_settings(struct sim_settings *out, const struct mri_spec *spec, mr_error *err)
{
    *out = (struct sim_settings){.step_ns = 1e6, .h2d_bytes_per_s = 25e9};
    for (uint32_t i = 0; i < spec->option_count; i++) {
        const struct mri_spec_option *o = &spec->options[i];
        int rc;
        if (strcmp(o->name, "step") == 0) rc = mri_spec_time(o, &out->step_ns, err);
        else if (strcmp(o->name, "slow") == 0) rc = mri_spec_time(o, &out->slow_ns, err);
        else if (strcmp(o->name, "h2d") == 0) rc = mri_spec_rate(o, &out->h2d_bytes_per_s, err);
        else if (strcmp(o->name, "d2h") == 0) rc = mri_spec_rate(o, &out->d2h_bytes_per_s, err);
        else
            rc = mr_error_set(
                err, MR_EINVAL,
                "devices: sim has no option \"%s\"; expected step=TIME, slow=TIME, h2d=RATE or d2h=RATE",
                o->name);
        if (rc) return rc;
    }
    if (out->slow_ns == 0) out->slow_ns = out->step_ns;
    if (out->d2h_bytes_per_s == 0) out->d2h_bytes_per_s = out->h2d_bytes_per_s;
    return MR_OK;
}

/* ---- operations that only take time: the whole step is spent in the loss, which every network has once ----
 */

static int op_nothing(mri_host_op *op, const mr_op_args *a, mr_error *err)
{
    (void)op, (void)a, (void)err;
    return MR_OK;
}

static uint64_t step_takes_ns(const mri_host_op *op, const mr_op_args *a)
{
    const uint64_t step_ns = mri_host_device_of(op->base.device)->step_ns;
    return a->training ? step_ns : step_ns / 3; /* forward alone is a third of a step */
}

static int op_step(mri_host_op *op, const mr_op_args *a, mr_error *err)
{
    (void)op, (void)err;
    for (uint32_t i = 0; i < a->n; i++) a->metrics->count += !a->labels || a->labels[i] >= 0;
    return MR_OK;
}

static const struct mri_op_code quick = {.forward = op_nothing, .backward = op_nothing, .adds_dy2 = true};
static const struct mri_op_code step = {
    .takes_ns = step_takes_ns, .forward = op_step, .backward = op_nothing, .adds_dy2 = true};

static const struct mri_op_code *code_for(const mr_op *head)
{
    const mr_op_desc *d = &head->desc;
    const bool first_loss =
        (d->kind == MR_OP_LOSS && !d->loss.silent) || (d->kind == MR_OP_PAIR_LOSS && !d->pair_loss.silent);
    return first_loss ? &step : &quick;
}

static int sim_update_async(mr_stream *s, const mr_update_config *cfg)
{
    (void)s, (void)cfg;
    return MR_OK;
}

static int sim_average_async(mr_stream *s, float *average, const float *from, uint64_t count, float decay)
{
    (void)s, (void)average, (void)from, (void)count, (void)decay;
    return MR_OK;
}

static int sim_add_async(mr_stream *s, float *to, const float *from, uint64_t count)
{
    (void)s, (void)to, (void)from, (void)count;
    return MR_OK;
}

/* ---- the kind ---- */

static int sim_open(mr_device **devices, const struct mri_spec *spec, const mr_devices_config *cfg,
                    mr_error *err)
{
    (void)cfg;
    struct sim_settings set;
    int rc = read_settings(&set, spec, err);
    if (!rc) rc = mri_host_devices_create(devices, spec->count, &mri_sim_backend, err);
    for (uint32_t i = 0; !rc && i < spec->count; i++) {
        mri_host_device *dev = mri_host_device_of(devices[i]);
        dev->base.info.simulated = true;
        dev->base.info.h2d_bytes_per_s = set.h2d_bytes_per_s;
        const double step_ns = i + 1 == spec->count ? set.slow_ns : set.step_ns;
        dev->step_ns = (uint64_t)step_ns;
        dev->link_ns_per_byte[MRI_COPY_H2D] = 1e9 / set.h2d_bytes_per_s;
        dev->link_ns_per_byte[MRI_COPY_D2H] = 1e9 / set.d2h_bytes_per_s;
        dev->code_for = code_for;
        dev->thread_begin = begin_thread;
        snprintf(dev->base.name, sizeof dev->base.name, "sim:%u step=%gms h2d=%gGB/s", i, step_ns / 1e6,
                 set.h2d_bytes_per_s / 1e9);
        snprintf(dev->base.hardware, sizeof dev->base.hardware, "simulated");
    }
    return rc;
}

static uint64_t sim_update_room(const mr_device *dev, const mr_update_matrix *m, uint64_t stored)
{
    (void)dev, (void)m, (void)stored;
    return MRI_CACHE_LINE; /* an address */
}

static bool sim_list(uint32_t at, mr_device_listing *out)
{
    if (at > 0) return false;
    *out = (mr_device_listing){
        .kind = "sim", .spec = "sim:1,step=1ms,h2d=25GB/s", .hardware = "simulated", .state = "ready"};
    return true;
}

const struct mri_backend mri_sim_backend = {
    .kind = "sim",
    .count = mri_spec_replicas,
    .open = sim_open,
    .close = mri_host_device_close,
    .list = sim_list,
    .memory = &mri_host_memory,
    .copies = &mri_host_copies,
    .streams = &mri_host_streams,
    .events = &mri_host_events,
    .ops = &mri_host_ops,
    .update_async = sim_update_async,
    .update_room = sim_update_room,
    .average_async = sim_average_async,
    .add_async = sim_add_async,
    .groups = &mri_host_groups_idle, /* replicas wait for each other, as they would */
};
