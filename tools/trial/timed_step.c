/* tools/trial/timed_step.c: see timed_step.h. */
#include "tools/trial/timed_step.h"

#include "tools/cli/exit.h"
#include "tools/cli/output.h"

const mr_model timed_step_model = {.name = "timed step",
                                   .help = "nothing but the time that simulated devices give a step",
                                   .batch = 128,
                                   .epochs = 1,
                                   .update = {.lr = 0.1f},
                                   .schedule = {.lr = 0.1f},
                                   .augment = "none"};

static bool all_simulated(const tool_session *s)
{
    for (uint32_t d = 0; d < s->device_count; d++)
        if (!mr_device_info_of(s->devices[d])->simulated) return false;
    return true;
}

static int open_timed(tool_session *s, const session_args *a, run_args *run)
{
    s->model = &timed_step_model;
    int status = session_open_devices(s, &a->device);
    if (status == EXIT_DONE && !all_simulated(s)) {
        session_find_model(s, NULL);
        say("(simulated devices, as --devices sim:1,step=3ms, need none)");
        return EXIT_MISUSED;
    }
    if (status == EXIT_DONE) status = session_open_data(s, a->data, &a->data_opts, NEED_PICTURES);
    if (status) return status;
    *run = a->run;
    session_fill_run(s, run, a->model.scale);
    status = input_size_choose(s, a, a->run.augment != NULL, run);
    return status ? status : session_fill_rule(s, &a->model, a->model.scale);
}

int timed_step_or_model(tool_session *s, const session_args *a, run_args *run)
{
    return a->model.model ? session_open_to_train(s, a, run) : open_timed(s, a, run);
}

enum { POOL_PLACES = 65536 }; /* the most that a window of pool2d may have */

int timed_step_net(tool_session *s)
{
    mr_error err = MR_ERROR_INIT;
    const mr_loader_info *l = mr_loader_info_of(s->loader);
    const uint32_t classes = mr_source_info_of(s->src)->class_count;
    if (s->model != &timed_step_model) return EXIT_DONE;
    const int rc = mr_net_create(&s->net, timed_step_model.name, l->height, l->width, l->channels);
    if (rc) {
        mr_error_set(&err, rc, "no network for pictures of %u x %u", l->width, l->height);
        return exit_status(rc, &err);
    }
    for (uint32_t h = l->height, w = l->width, by; (uint64_t)h * w > POOL_PLACES; h /= by, w /= by) {
        by = h < w ? h : w;
        if (by > 16) by = 16;
        if (by < 2) break;
        mr_net_avg_pool(s->net, by, by);
    }
    mr_net_global_avg_pool(s->net);
    mr_net_dense(s->net, classes < 2 ? 2 : classes, MR_ACT_NONE);
    return EXIT_DONE;
}
