/* train/run/team.c: replicas opened one after the other; the first error is kept, every later call returns
 * it.
 */
#include "train/run/team.h"

#define REASON_NS 1000000000u /* for a stream that took no more work to tell why */

uint32_t mri_team_first_part(const mri_team *team, uint32_t replica)
{
    uint32_t first = 0;
    for (uint32_t r = 0; r < replica; r++) first += team->parts.of_device[r];
    return first;
}

/* The settings that differ between replicas. */
static mri_replica_config config_of(const mri_team *team, uint32_t replica, const mri_replica_config *cfg)
{
    mri_replica_config own = *cfg;
    const uint32_t first = team->parts.first + mri_team_first_part(team, replica);
    mri_folds_init(&own.folds, team->parts.all, first, team->parts.of_device[replica]);
    own.owns_stats = first == 0;
    return own;
}

int mri_team_init(mri_team *team, mr_device *const *devices, const mr_parts *parts, uint32_t count,
                  mr_world *world, const mri_replica_config *cfg, mr_error *err)
{
    *team = (mri_team){.devices = calloc(count, sizeof(mr_device *)),
                       .replicas = calloc(count, sizeof *team->replicas),
                       .streams = calloc(count, sizeof(mr_stream *)),
                       .parts = *parts,
                       .error = MR_ERROR_INIT};
    const int joined = mri_ranks_init(&team->ranks, world, parts, err);
    if (joined) return joined;
    if (!team->devices || !team->replicas || !team->streams)
        return mr_error_set(err, MR_ENOMEM, "no memory for a trainer of %u replicas", count);
    memcpy(team->devices, devices, count * sizeof(mr_device *));
    for (; team->count < count; team->count++) {
        mri_replica *r = &team->replicas[team->count];
        const mri_plan *first = &team->replicas[0].plan;
        const mri_replica_config own = config_of(team, team->count, cfg);
        const int rc = mri_replica_open(r, devices[team->count], &own, err);
        if (rc) return rc;
        team->streams[team->count] = r->stream;
        if (r->plan.weight_floats != first->weight_floats || r->plan.stat_floats != first->stat_floats) {
            mr_error_set(err, MR_EUNSUPPORTED,
                         "devices %s and %s store parameters differently and cannot train together",
                         mr_device_info_of(devices[0])->name, mr_device_info_of(r->dev)->name);
            mri_replica_close(r);
            return MR_EUNSUPPORTED;
        }
    }
    return MR_OK;
}

void mri_team_settle(mri_team *team)
{
    for (uint32_t r = 0; r < team->count; r++) mr_stream_sync(team->streams[r], NULL);
}

void mri_team_fini(mri_team *team)
{
    for (uint32_t r = 0; r < team->count; r++) mri_replica_close(&team->replicas[r]);
    free(team->devices);
    free(team->replicas);
    free(team->streams);
    mri_ranks_fini(&team->ranks);
    *team = (mri_team){0};
}

void mri_team_set_group(mri_team *team, mr_group *group) { team->group = group; }

int mri_team_error(const mri_team *team, mr_error *err)
{
    if (team->failed && err) *err = team->error;
    return team->failed;
}

int mri_team_fail(mri_team *team, const mr_error *why, mr_error *err)
{
    if (team->failed == MR_OK) {
        team->failed = why->code;
        team->error = *why;
        mri_ranks_fail(&team->ranks, why);
        mr_group_abort(team->group);
    }
    return mri_team_error(team, err);
}

/* A stream that hangs is not waited for: the watchdog, which would end it, is not at work here. */
bool mri_team_stream_failed(const mri_team *team, uint32_t replica, mr_error *err)
{
    const int rc = mr_stream_wait(team->streams[replica], REASON_NS, err);
    return rc != MR_OK && rc != MR_EAGAIN;
}

int mri_team_queue_failed(mri_team *team, uint32_t replica, int rc, const char *what, mr_error *err)
{
    mr_error why = MR_ERROR_INIT;
    if (!mri_team_stream_failed(team, replica, &why)) /* else the stream knows better */
        mr_error_set(&why, rc, "%s: cannot queue %s: %s", mr_device_info_of(team->devices[replica])->name,
                     what, mr_status_text(rc));
    return mri_team_fail(team, &why, err);
}
