/* train/run/step_log.c: the results of the events of steps, added up. */
#include "train/run/step_log.h"

void mri_series_clear(mri_series *s) { s->count = 0, s->seen = 0, s->stride = 0; }

void mri_series_add(mri_series *s, double value)
{
    if (s->stride == 0) s->stride = 1;
    if (s->seen % s->stride == 0) {
        if (s->count == MRI_SERIES_CAP) {
            for (uint32_t i = 0; i < MRI_SERIES_CAP / 2; i++) s->value[i] = s->value[2 * i];
            s->count = MRI_SERIES_CAP / 2;
            s->stride *= 2;
        }
        if (s->seen % s->stride == 0) s->value[s->count++] = value;
    }
    s->seen++;
}

void mri_step_log_start(mri_step_log *log, uint32_t replicas, uint64_t warmup)
{
    mri_series_clear(&log->step_ms); /* its values need no clearing */
    log->replicas = replicas;
    log->warmup = warmup;
    log->steps = log->samples = log->window_start_ns = log->last_end_ns = 0;
    log->compute_ns = log->exposed_ns = log->network_ns = 0;
    memset(log->own_ns, 0, sizeof log->own_ns);
    log->causes = (mr_causes){0};
}

void mri_step_log_add(mri_step_log *log, const uint64_t *start_ns, const uint64_t *own_ns,
                      const uint64_t *end_ns, uint32_t samples, const mr_causes *causes,
                      const mri_step_network *network)
{
    const bool first = log->steps == 0;
    uint64_t begun = UINT64_MAX, ended = 0;
    double compute = 0, exposed = 0, inside = 0;
    for (uint32_t r = 0; r < log->replicas; r++) {
        begun = mri_min_u64(begun, start_ns[r]);
        ended = mri_max_u64(ended, end_ns[r]);
        compute += (double)(end_ns[r] - start_ns[r]);
        if (!first && start_ns[r] > log->ended_ns[r]) exposed += (double)(start_ns[r] - log->ended_ns[r]);
        if (network) inside += (double)network->inside_ns[r];
        log->ended_ns[r] = end_ns[r];
    }
    if (log->steps++ < log->warmup) {
        log->window_start_ns = ended;
    } else {
        if (first) log->window_start_ns = begun;
        log->compute_ns += (compute - inside) / log->replicas;
        log->exposed_ns += (exposed + inside) / log->replicas;
        if (network) log->network_ns += (inside + (double)network->before_ns) / log->replicas;
        for (uint32_t r = 0; r < log->replicas; r++)
            log->own_ns[r] += (double)((own_ns ? own_ns : end_ns)[r] - start_ns[r]);
        log->samples += samples;
        for (uint32_t i = 0; causes && i < MR_CAUSES; i++) log->causes.ns[i] += causes->ns[i];
        if (causes) log->causes.total_ns += causes->total_ns;
        mri_series_add(&log->step_ms, 1e-6 * (double)(ended - (first ? begun : log->last_end_ns)));
    }
    log->last_end_ns = ended;
}

void mri_step_log_skip(mri_step_log *log, uint64_t ns)
{
    if (log->steps == 0) return;
    log->window_start_ns += ns;
    log->last_end_ns += ns;
    for (uint32_t r = 0; r < log->replicas; r++) log->ended_ns[r] += ns;
}
