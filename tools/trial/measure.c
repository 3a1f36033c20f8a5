/* tools/trial/measure.c: see measure.h. */
#include "tools/trial/measure.h"

#include <stdlib.h>
#include <string.h>

#include "tools/cli/exit.h"
#include "tools/cli/interrupt.h"
#include "tools/session/world.h"

/* ---- several processes ---- */

uint32_t measure_own_batch(const tool_session *s, uint32_t batch)
{
    return (uint32_t)(((uint64_t)batch * s->parts.count - 1) / s->parts.all + 1);
}

int measure_slowest(const tool_session *s, mr_rate *rate)
{
    mr_error err = MR_ERROR_INIT;
    const uint32_t size = s->world ? mr_world_size(s->world) : 1;
    if (size == 1) return EXIT_DONE;
    const double times = (double)s->parts.all / s->parts.count;
    rate->samples_per_s *= times;
    rate->samples_per_s_mad *= times;
    mr_rate *all = calloc(size, sizeof *all);
    if (!all) return exit_no_memory("the rates of the ranks");
    const int rc = mr_world_gather(s->world, WORLD_HOST_CALLS, rate, sizeof *rate, all, &err);
    for (uint32_t r = 0; rc == MR_OK && r < size; r++)
        if (all[r].samples_per_s < rate->samples_per_s) *rate = all[r];
    free(all);
    return exit_status(rc, &err);
}

/* ---- one process ---- */

int measure_status(int rc, const mr_error *err)
{
    return rc && interrupt_flag ? EXIT_SIGNAL + interrupt_flag : exit_status(rc, err);
}

int measure_loader(tool_session *s, double seconds, uint32_t rounds, mr_rate *out)
{
    mr_error err = MR_ERROR_INIT;
    mr_measure_config cfg;
    mr_measure_defaults(&cfg);
    cfg.seconds = seconds;
    cfg.rounds = rounds;
    cfg.stop = &interrupt_flag;
    return measure_status(mr_measure_loader(s->loader, s->devices, s->device_count, &cfg, out, &err), &err);
}

typedef struct closing {
    const tool_session *s;
    measure_then *then;
    void *context;
    int status;
    bool closed; /* the status is known, and said */
} closing;

static void on_close(void *context, const mr_trainer *t, int rc, const mr_error *err)
{
    closing *c = context;
    if (rc != MR_OK) c->status = measure_status(rc, err);
    else if (c->then) c->status = c->then(c->context, c->s, t);
    c->closed = true;
    session_leave_if_it_hangs(t);
}

int measure_trainer(tool_session *s, const synthetic_batch *in, double seconds, mr_rate *out,
                    measure_then *then, void *context)
{
    mr_error err = MR_ERROR_INIT;
    mr_trainer_config cfg;
    mr_measure_config measure;
    closing c = {.s = s, .then = then, .context = context, .status = EXIT_DONE};
    mr_trainer_defaults(&cfg);
    cfg.net = s->net;
    cfg.devices = s->devices;
    cfg.device_count = s->device_count;
    cfg.batch = in->batch;
    cfg.seed = in->seed;
    session_give_rule(s, &cfg);
    memcpy(cfg.mean, in->mean, sizeof cfg.mean);
    memcpy(cfg.std, in->std, sizeof cfg.std);
    cfg.uses_affine = in->uses_affine;
    if (s->compute) {
        const int misused = setup_compute(&cfg, s->compute);
        if (misused) return misused;
    }
    mr_measure_defaults(&measure);
    measure.seconds = seconds;
    measure.height = in->h;
    measure.width = in->w;
    measure.channels = in->c;
    measure.classes = in->classes;
    measure.on_close = on_close;
    measure.context = &c;
    measure.stop = &interrupt_flag;
    const int rc = mr_measure_trainer(&cfg, &measure, out, &err);
    return c.closed ? c.status : measure_status(rc, &err);
}
