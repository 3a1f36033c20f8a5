/* train/forecast.c: the time that the exchange of gradients would add to a step, without any process: see
 * mr_exchange_predict(). Buckets are cut as in run/plan.c, from the last layer to the first.
 *
 *   backward   last layers ─┬─ ... ─┬─ first layers ─┐
 *   exchange                └ sum 0 ┴── sum 1 ───────┼─ sum 2 ─┤
 *                                                    └ exposed ┘ */
#include <math.h>

#include "base/abi.h"
#include "base/handle.h"
#include "train/run/link_speed.h"
#include "train/trainer.h"

/* Passes of a layer, each about its forward pass's operations. */
#define FORWARD_PASSES  1
#define BACKWARD_PASSES 2 /* of the data and of the weights; of the first layer with parameters one */

typedef struct schedule {
    const mr_net *net;
    const mr_exchange_config *cfg;
    uint32_t lowest;            /* the first layer with parameters: backward ends there */
    double forward_s, s_per_op; /* of this step */
    uint64_t bytes;
} schedule;

static uint64_t bytes_of(const mr_layer_row *row) { return row->params * sizeof(float); }

static double backward_ops(const schedule *s, uint32_t at, const mr_layer_row *row)
{
    return (at == s->lowest ? 1 : BACKWARD_PASSES) * row->flops;
}

static void read_net(schedule *s)
{
    mr_layer_row row;
    double forward = 0, backward = 0;
    s->lowest = UINT32_MAX;
    for (uint32_t at = 0; mr_net_layer(s->net, at, &row); at++) {
        if (row.params && s->lowest == UINT32_MAX) s->lowest = at;
        s->bytes += bytes_of(&row);
        forward += FORWARD_PASSES * row.flops;
        if (s->lowest <= at) backward += backward_ops(s, at, &row);
    }
    s->s_per_op = forward + backward > 0 ? s->cfg->step_s / (forward + backward) : 0;
    s->forward_s = s->s_per_op * forward;
}

/* Sums of buckets of at least `least` bytes; 0: one bucket. */
static void run(const schedule *s, const mri_link_speed *link, uint64_t least, mr_exchange_forecast *out)
{
    mr_layer_row row;
    double now = s->forward_s, summed = 0;
    uint64_t waiting = 0;
    if (s->lowest == UINT32_MAX) return;
    for (uint32_t at = mr_net_layer_count(s->net); at-- > s->lowest;) {
        if (!mr_net_layer(s->net, at, &row)) continue;
        now += s->s_per_op * backward_ops(s, at, &row);
        waiting += bytes_of(&row);
        const bool full = least && row.params && waiting >= least;
        if (!full && at != s->lowest) continue;
        const double ready = s->cfg->no_overlap ? s->cfg->step_s : now;
        summed = fmax(summed, ready) + mri_link_speed_sum_s(link, waiting);
        out->sum_s += mri_link_speed_sum_s(link, waiting);
        out->buckets++;
        waiting = 0;
    }
    out->exposed_s = fmax(0, summed - now);
    if (s->cfg->no_overlap) out->exposed_s = summed - s->cfg->step_s;
}

static int check(const mr_exchange_config *c, mr_error *err)
{
    if (c->ranks < 1) return mr_error_set(err, MR_EINVAL, "ranks 0: expected 1 or more");
    if (c->latency_s >= 0 && c->bytes_per_s >= 0 && c->step_s >= 0 && isfinite(c->latency_s) &&
        isfinite(c->bytes_per_s) && isfinite(c->step_s))
        return MR_OK;
    return mr_error_set(
        err, MR_EINVAL,
        "latency_s %g, bytes_per_s %g, step_s %g: expected finite numbers that are not negative",
        c->latency_s, c->bytes_per_s, c->step_s);
}

void mr_exchange_defaults_sized(mr_exchange_config *cfg, size_t struct_size)
{
    const mr_exchange_config all = {.ranks = 2, .bucket_bytes = MR_BUCKET_AUTO};
    mri_settings_give(cfg, struct_size, &all, sizeof all);
}

int mr_exchange_predict_sized(const mr_net *net, const mr_exchange_config *cfg, mr_exchange_forecast *out,
                              mr_error *err)
{
    MRI_GIVEN(err, net);
    MRI_GIVEN(err, cfg);
    MRI_GIVEN(err, out);
    mr_exchange_config all;
    mr_exchange_defaults(&all);
    int rc = mri_result_check(out, err);
    if (rc == MR_OK) rc = mri_settings_take(&all, sizeof all, cfg, "mr_exchange_config", err);
    if (rc == MR_OK) rc = check(&all, err);
    if (rc) return rc;
    schedule s = {.net = net, .cfg = &all};
    read_net(&s);
    const mri_link_speed link = {.latency_s = all.latency_s,
                                 .s_per_byte = all.bytes_per_s > 0 ? 1 / all.bytes_per_s : 0,
                                 .processes = all.ranks};
    mr_exchange_forecast found = {.bytes = s.bytes, .bucket_bytes = all.bucket_bytes};
    if (found.bucket_bytes == MR_BUCKET_AUTO) found.bucket_bytes = mri_link_speed_bucket(&link, s.bytes);
    run(&s, &link, found.bucket_bytes, &found);
    mri_result_give(out, &found, sizeof found);
    return MR_OK;
}
