/* tools/trial/timed_step.c: see timed_step.h. */
#include "tools/trial/timed_step.h"

#include "tools/cli/exit.h"

const mr_model timed_step_model = {.name = "timed step",
                                   .help = "nothing but the time that simulated devices give a step",
                                   .batch = 128,
                                   .epochs = 1,
                                   .update = {.lr = 0.1f},
                                   .schedule = {.lr = 0.1f},
                                   .augment = "none"};

enum { POOL_PLACES = 65536 }; /* as many as a window of pool2d may have */

int timed_step_net(tool_session *s)
{
    mr_error err = MR_ERROR_INIT;
    const mr_loader_info *l = mr_loader_info_of(s->loader);
    const uint32_t classes = mr_source_info_of(s->src)->class_count;
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
