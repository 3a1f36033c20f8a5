/* train/trainer_points.c: what points of a network hold, on every device of a trainer for inference, and
 * computing from one of them on, on the first. */
#include <math.h>

#include "train/trainer.h"

static float half_value(uint16_t bits)
{
    const uint32_t exponent = bits >> 10 & 31, fraction = bits & 1023;
    const float size = exponent == 0    ? ldexpf((float)fraction, -24)
                       : exponent == 31 ? (fraction ? NAN : INFINITY)
                                        : ldexpf((float)(fraction | 1024), (int)exponent - 25);
    return bits >> 15 ? -size : size;
}

static float value_of(const uint8_t *at, uint32_t dtype)
{
    uint32_t word = 0;
    float value;
    if (dtype == MR_TENSOR_F32) {
        memcpy(&value, at, sizeof value);
        return value;
    }
    memcpy(&word, at, sizeof(uint16_t)); /* little-endian, as everything here */
    if (dtype == MR_TENSOR_F16) return half_value((uint16_t)word);
    word <<= 16;
    memcpy(&value, &word, sizeof value);
    return value;
}

/* The node of a replica whose output a kept point is. */
static int find_node(const mr_trainer *t, uint32_t replica, mr_point point, const mri_node **out,
                     mr_error *err)
{
    const mri_nodes *nodes = &t->team.replicas[replica].nodes;
    bool kept = false;
    *out = NULL;
    for (uint32_t i = 0; i < t->cfg.kept_count; i++) kept = kept || t->cfg.kept[i] == point;
    if (!kept) return mr_error_set(err, MR_EINVAL, "point %u is not one of the kept points", point);
    if (mri_trainer_simulates(t))
        return mr_error_set(err, MR_EUNSUPPORTED, "a simulated device computes nothing");
    const uint32_t node = nodes->made_by[point];
    const bool inside = point < t->cfg.net->layer_count && nodes->made_by[point + 1] == node;
    if (node == MRI_NONE || inside)
        return mr_error_set(err, MR_EINVAL, "point %u is inside an operation and has no place of its own",
                            point);
    *out = &nodes->node[node];
    return MR_OK;
}

static char *place_of(const mri_replica *r, const mri_node *n)
{
    return r->memory.arena + r->plan.spans[n->span.y].at;
}

/* Read the first `count` samples of the point. Waits for work queued there. */
static int read_point(mri_replica *r, const mri_node *n, uint32_t count, float *out, mr_error *err)
{
    uint8_t *host;
    const mr_tensor *tensor = &n->info->out;
    const size_t bytes = tensor->sample_bytes * count, each = mr_tensor_element_bytes(tensor->dtype);
    int rc = mr_host_alloc(r->dev, bytes, (void **)&host, err);
    if (rc) return rc;
    rc = mr_copy_d2h_async(r->stream, host, place_of(r, n), bytes);
    if (rc == MR_OK) rc = mr_stream_sync(r->stream, err);
    else mr_error_set(err, rc, "cannot copy the values of a point: %s", mr_status_text(rc));
    for (size_t i = 0; rc == MR_OK && i < bytes / each; i++)
        out[i] = value_of(host + i * each, tensor->dtype);
    mr_host_free(r->dev, host);
    return rc;
}

int mr_trainer_values(mr_trainer *t, mr_point point, uint32_t most, float *out, uint32_t *samples,
                      mr_error *err)
{
    MRI_OWN(err, t);
    MRI_GIVEN(err, out);
    MRI_GIVEN(err, samples);
    mri_replica *r = &t->team.replicas[0];
    const mri_node *n;
    *samples = 0;
    int rc = find_node(t, 0, point, &n, err);
    if (rc) return rc;
    const uint32_t count = r->last_count < most ? r->last_count : most;
    if (count == 0) return MR_OK;
    rc = read_point(r, n, count, out, err);
    if (rc == MR_OK) *samples = count;
    return rc;
}

int mri_trainer_batch_values(mr_trainer *t, const mr_batch *b, mr_point point, float *out, mr_error *err)
{
    uint64_t done = 0;
    for (uint32_t r = 0; r < t->team.count; r++) {
        const mr_part *part = &b->parts[mri_team_first_part(&t->team, r)];
        const mri_node *n;
        if (t->team.parts.of_device[r] != 1)
            return mr_error_set(
                err, MR_EUNSUPPORTED,
                "a device that computes %u parts of a batch holds the outputs of the last alone: expected "
                "one part a device",
                t->team.parts.of_device[r]);
        int rc = find_node(t, r, point, &n, err);
        if (rc == MR_OK && part->count > 0)
            rc = read_point(&t->team.replicas[r], n, part->count, out + done, err);
        if (rc) return rc;
        done += (uint64_t)part->count * n->info->out.h * n->info->out.w * n->info->out.c;
    }
    return MR_OK;
}

/* Mark the nodes after this one that take only it and each other. */
static void mark_behind(const mri_nodes *nodes, const mri_node *from, bool *wanted)
{
    for (uint32_t i = 0; i < nodes->count; i++) {
        const mri_node *n = &nodes->node[i];
        const bool first = n->in != MRI_NONE && (&nodes->node[n->in] == from || wanted[n->in]),
                   second = n->in2 == MRI_NONE || &nodes->node[n->in2] == from || wanted[n->in2];
        wanted[i] = n != from && first && second;
    }
}

int mr_trainer_compute_from(mr_trainer *t, mr_point point, const float *values, uint32_t samples,
                            mr_error *err)
{
    MRI_OWN(err, t);
    MRI_GIVEN(err, values);
    mri_replica *r = &t->team.replicas[0];
    const mri_node *n;
    void *host;
    int rc = find_node(t, 0, point, &n, err);
    if (rc) return rc;
    if (samples == 0 || samples > r->cfg.max_batch)
        return mr_error_set(err, MR_EINVAL, "%u samples: expected 1 to %u, a part of a batch", samples,
                            r->cfg.max_batch);
    if (n->info->out.dtype != MR_TENSOR_F32)
        return mr_error_set(err, MR_EUNSUPPORTED, "values are put into f32 points only");
    const size_t bytes = n->info->out.sample_bytes * samples;
    bool *wanted = calloc(r->nodes.count, sizeof *wanted);
    if (!wanted) return mr_error_set(err, MR_ENOMEM, "no memory for a list of %u operations", r->nodes.count);
    rc = mr_host_alloc(r->dev, bytes, &host, err);
    if (rc) goto end;
    memcpy(host, values, bytes);
    mark_behind(&r->nodes, n, wanted);
    const mr_part part = {.count = samples};
    rc = mr_copy_h2d_async(r->stream, place_of(r, n), host, bytes);
    if (rc == MR_OK) rc = mri_replica_forward_some(r, &part, wanted);
    if (rc) mr_error_set(err, rc, "cannot compute from point %u: %s", point, mr_status_text(rc));
    const int over = mr_stream_sync(r->stream, rc ? NULL : err);
    if (rc == MR_OK) rc = over;
    if (rc == MR_OK) r->last_count = samples;
    mr_host_free(r->dev, host);
end:
    free(wanted);
    return rc;
}
