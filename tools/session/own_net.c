/* tools/session/own_net.c: networks that no name stands for, out of a checkpoint (session.h). A program built
 * them; here they are one more model, with the settings that they were trained with. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "tools/cli/exit.h"
#include "tools/cli/output.h"
#include "tools/session/session.h"

int session_model_of(tool_session *s, const char *path, const mr_checkpoint_info *info)
{
    mr_error err = MR_ERROR_INIT;
    mr_net *net;
    const bool named = !info->net_bytes && mr_model_find(info->model);
    if (named) return session_find_model(s, info->model);
    const int status = exit_status(mr_checkpoint_net(path, &net, &err), &err);
    if (status == EXIT_DONE) session_take_net(s, net, info);
    return status;
}

void session_take_net(tool_session *s, mr_net *net, const mr_checkpoint_info *info)
{
    enum { BATCH = 128 }; /* where the program did not say its own */
    s->own = (mr_model){.name = info->model,
                        .id = "own",
                        .help = "",
                        .numbers = mr_net_takes_numbers(net),
                        .h = info->h,
                        .w = info->w,
                        .c = info->c,
                        .classes = mr_net_class_count(net),
                        .param_count = info->param_count,
                        .batch = info->batch ? info->batch : BATCH,
                        .epochs = info->epochs ? (uint32_t)info->epochs : 1,
                        .update = info->update,
                        .schedule = info->schedule,
                        .augment = info->augment[0] ? info->augment : "none",
                        .label_smoothing = info->label_smoothing};
    mr_net_destroy(s->own_net);
    s->own_net = net;
    s->model = &s->own;
}

int session_take_own_fields(tool_session *s)
{
    const mr_source_info *info = mr_source_info_of(s->src);
    mr_field_input input;
    for (uint32_t i = 0; s->own_net && mr_net_field_at(s->own_net, i, &input); i++) {
        const uint32_t at = fields_find(info, input.name);
        if (at == info->field_count) {
            say("%s: no field %s, which network %s takes; 'millrace inspect' shows its fields", info->path,
                input.name, s->model->name);
            return EXIT_FAILED;
        }
        if (s->fields.count == MR_LOADER_MAX_FIELDS) break; /* the builder takes no more */
        s->fields.field[s->fields.count++] =
            (mr_loader_field){.name = info->fields[at].name, .most = input.h * input.w * input.c};
        s->loader_cfg.fields = s->fields.field;
        s->loader_cfg.field_count = s->fields.count;
    }
    return EXIT_DONE;
}

int session_build_own(tool_session *s, uint32_t classes)
{
    const mr_loader_info *l = mr_loader_info_of(s->loader);
    const bool numbers = mr_net_takes_numbers(s->own_net);
    uint32_t h, w, c;
    const bool has_input = mr_net_shape(s->own_net, 0, &h, &w, &c);
    if (numbers && l->field[0].most != w) {
        say("network %s takes sequences of %u numbers, found %u", s->model->name, w, l->field[0].most);
        return EXIT_FAILED;
    }
    if (has_input && !numbers && (l->height != h || l->width != w || l->channels != c)) {
        say("network %s takes pictures of %u x %u in %u channels, found %u x %u in %u; --augment "
            "\"resize(%ux%u)\" and --channels %u make them so",
            s->model->name, w, h, c, l->width, l->height, l->channels, w, h, c);
        return EXIT_FAILED;
    }
    if (session_tells_classes(s) && classes != mr_net_class_count(s->own_net)) {
        say("%s: expected the %u classes of network %s, found %u", mr_source_info_of(s->src)->path,
            mr_net_class_count(s->own_net), s->model->name, classes);
        return EXIT_FAILED;
    }
    s->net = s->own_net;
    s->own_net = NULL;
    return EXIT_DONE;
}
