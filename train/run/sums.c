/* train/run/sums.c: sums and the loss scale come back from the devices, always over all replicas in the same
 * order. */
#include "train/run/sums.h"

int mri_scale_set(mri_flights *f, const mr_loss_scale *scale, mr_loss_scale *kept, mr_error *err)
{
    mri_team *team = f->team;
    for (uint32_t r = 0; r < team->count; r++) {
        const mri_replica *rep = &team->replicas[r];
        const mri_memory *m = &rep->memory;
        if (!m->loss_scale) continue;
        *m->host_loss_scale = *scale;
        const int rc = mr_copy_h2d_async(rep->stream, m->loss_scale, m->host_loss_scale, sizeof *scale);
        if (rc) return mri_team_queue_failed(team, r, rc, "a copy of the loss scale", err);
    }
    *kept = *scale;
    return mri_flights_drain(f, err);
}

/* Queued; what comes back is in replica 0's host copy. */
static int fetch_scale(mri_team *team, mr_error *err)
{
    const mri_memory *m = &team->replicas[0].memory;
    if (!m->loss_scale) return MR_OK;
    const int rc =
        mr_copy_d2h_async(team->streams[0], m->host_loss_scale, m->loss_scale, sizeof(mr_loss_scale));
    return rc ? mri_team_queue_failed(team, 0, rc, "a copy of the loss scale", err) : MR_OK;
}

int mri_scale_read(mri_flights *f, mr_loss_scale *kept, mr_error *err)
{
    const mri_memory *m = &f->team->replicas[0].memory;
    int rc = fetch_scale(f->team, err);
    if (rc == MR_OK) rc = mri_flights_drain(f, err);
    if (rc == MR_OK && m->loss_scale) *kept = *m->host_loss_scale;
    return rc;
}

int mri_sums_discard(mri_flights *f, mri_sums which, mr_error *err)
{
    mri_team *team = f->team;
    const mri_team *measured = f->measured;
    for (uint32_t r = 0; r < team->count; r++) {
        const size_t bytes = team->parts.of_device[r] * sizeof(mr_metrics);
        const int rc =
            mr_fill_async(measured->streams[r], measured->replicas[r].memory.sums[which], 0, bytes);
        if (rc) return mri_team_queue_failed(team, r, rc, "a reset of the sums", err);
    }
    return mri_flights_drain(f, err);
}

int mri_sums_take(mri_flights *f, mri_sums which, mr_metrics *out, mr_loss_scale *kept, mr_error *err)
{
    mri_team *team = f->team;
    const mri_team *measured = f->measured;
    mr_metrics parts[MR_LOADER_MAX_PARTS];
    for (uint32_t r = 0; r < team->count; r++) { /* after queued work */
        const mri_memory *m = &measured->replicas[r].memory;
        const size_t bytes = team->parts.of_device[r] * sizeof(mr_metrics);
        int rc = mr_copy_d2h_async(measured->streams[r], m->host_sums, m->sums[which], bytes);
        if (rc == MR_OK) rc = mr_fill_async(measured->streams[r], m->sums[which], 0, bytes);
        if (rc) return mri_team_queue_failed(team, r, rc, "a copy of the sums", err);
    }
    int rc = mri_scale_read(f, kept, err);
    if (rc) return rc;
    for (uint32_t r = 0, at = 0; r < team->count; at += team->parts.of_device[r++])
        memcpy(parts + at, measured->replicas[r].memory.host_sums, team->parts.of_device[r] * sizeof *parts);
    rc = mri_ranks_sum(&team->ranks, parts, team->parts.count, out, err);
    if (rc || out->bad == 0) return rc;
    const mr_net *net = measured->replicas[0].cfg.net;
    if (mr_net_class_count(net) == 0)
        return mr_error_set(
            err, MR_EINVAL, "%llu samples of the %s data have invalid targets: expected %s",
            (unsigned long long)out->bad, which == MRI_SUMS_TRAINING ? "training" : "evaluation",
            mr_net_target_loss(net) == MR_TARGET_LABELS ? "0 to 1, as of labels that are there or not"
                                                        : "finite numbers");
    return mr_error_set(err, MR_EINVAL,
                        "%llu labels of the %s data are not below %u, the number of classes of the network: "
                        "mr_source_labels_of() returns the range of the labels of a data set",
                        (unsigned long long)out->bad, which == MRI_SUMS_TRAINING ? "training" : "evaluation",
                        mr_net_class_count(net));
}
