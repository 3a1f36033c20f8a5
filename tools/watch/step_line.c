/* tools/watch/step_line.c: see step_line.h. */
#include "tools/watch/step_line.h"

#include <inttypes.h>
#include <math.h>
#include <stdio.h>

#include "tools/cli/json.h"
#include "tools/cli/output.h"

char *step_time_text(double seconds, char *buf, size_t buf_bytes)
{
    const double days = seconds / 86400;
    const uint64_t s = days < 2 ? (uint64_t)(seconds + 0.5) : 0;
    if (days >= 2) snprintf(buf, buf_bytes, "%.0f days", days < 1e9 ? days : 1e9);
    else if (s >= 3600)
        snprintf(buf, buf_bytes, "%" PRIu64 ":%02" PRIu64 ":%02" PRIu64, s / 3600, s / 60 % 60, s % 60);
    else snprintf(buf, buf_bytes, "%" PRIu64 ":%02" PRIu64, s / 60, s % 60);
    return buf;
}

char *step_note(const mr_step_report *r, double since_s, uint64_t epoch, uint64_t epochs, double rate,
                char *buf, size_t buf_bytes)
{
    char lr[32], left[32];
    int n = snprintf(buf, buf_bytes, "epoch %" PRIu64 " of %" PRIu64, epoch + 1, epochs);
    const size_t room = buf_bytes - 1;
    if (r && !r->simulated && (size_t)n < room)
        n += snprintf(buf + n, buf_bytes - (size_t)n, ", loss %.4f", r->loss);
    if (r && !r->simulated && !isnan(r->accuracy) && (size_t)n < room)
        n += snprintf(buf + n, buf_bytes - (size_t)n, ", acc %.4f", r->accuracy);
    if (r && !r->simulated && (size_t)n < room)
        n += snprintf(buf + n, buf_bytes - (size_t)n, ", lr %s", float_text(r->lr, lr, sizeof lr));
    if ((size_t)n < room) n += snprintf(buf + n, buf_bytes - (size_t)n, ", %.0f samples/s", rate);
    if (r && r->seconds_left >= 0 && (size_t)n < room)
        snprintf(
            buf + n, buf_bytes - (size_t)n, ", %s left",
            step_time_text(r->seconds_left > since_s ? r->seconds_left - since_s : 0, left, sizeof left));
    return buf;
}

void step_json(const mr_step_report *r)
{
    json_line j = json_begin(stdout, "step");
    json_u64(&j, "epoch", r->epoch);
    json_u64(&j, "step", r->step);
    json_u64(&j, "steps_per_epoch", r->steps_per_epoch);
    json_u64(&j, "updates", r->updates);
    json_u64(&j, "steps", r->steps);
    json_u64(&j, "samples", r->samples);
    json_real(&j, "loss", r->loss);
    json_real(&j, "accuracy", r->accuracy);
    json_float(&j, "lr", r->lr);
    json_real(&j, "samples_per_s", r->samples_per_s);
    json_real(&j, "seconds_left", r->seconds_left >= 0 ? r->seconds_left : NAN);
    json_real(&j, "network_fraction", r->network_fraction);
    json_bool(&j, "simulated", r->simulated);
    json_end(&j);
}
