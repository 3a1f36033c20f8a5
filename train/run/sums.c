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

int mri_sums_take(mri_flights *f, mri_sums which, mr_metrics *out, mr_loss_scale *kept, mr_error *err)
{
    mri_team *team = f->team;
    *out = (mr_metrics){0};
    for (uint32_t r = 0; r < team->count; r++) { /* behind what is queued */
        const mri_memory *m = &team->replicas[r].memory;
        int rc = mr_copy_d2h_async(team->streams[r], m->host_sums, m->sums[which], sizeof(mr_metrics));
        if (rc == MR_OK) rc = mr_fill_async(team->streams[r], m->sums[which], 0, sizeof(mr_metrics));
        if (rc) return mri_team_queue_failed(team, r, rc, "a copy of the sums", err);
    }
    const int rc = mri_scale_read(f, kept, err);
    if (rc) return rc;
    for (uint32_t r = 0; r < team->count; r++) { /* always in this order: a double's sum depends on it */
        const mr_metrics *part = team->replicas[r].memory.host_sums;
        out->loss_sum += part->loss_sum;
        out->correct += part->correct;
        out->count += part->count;
        out->bad += part->bad;
    }
    if (out->bad == 0) return MR_OK;
    return mr_error_set(
        err, MR_EINVAL,
        "%llu labels of the %s data are not below %u, the number of classes the network tells apart",
        (unsigned long long)out->bad, which == MRI_SUMS_TRAINING ? "training" : "evaluation",
        mr_net_class_count(team->replicas[0].cfg.net));
}
