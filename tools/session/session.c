/* tools/session/session.c: see session.h. */
#include "tools/session/session.h"

#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "tools/cli/exit.h"
#include "tools/cli/output.h"
#include "tools/session/world_gpus.h"

/* ---- the model and its rule ---- */

static const char *model_name(const void *context, size_t at)
{
    (void)context;
    return mr_model_at((uint32_t)at)->name;
}

/* "a, b, c" */
static const char *known_models(char *buf, size_t buf_bytes)
{
    size_t at = 0;
    buf[0] = '\0';
    for (uint32_t i = 0; i < mr_model_count() && at < buf_bytes; i++)
        at += (size_t)snprintf(buf + at, buf_bytes - at, "%s%s", i ? ", " : "", mr_model_at(i)->name);
    return buf;
}

int session_find_model(tool_session *s, const char *name)
{
    char known[1024];
    s->model = name ? mr_model_find(name) : NULL;
    if (s->model) return EXIT_DONE;
    const char *near = name ? options_nearest(name, mr_model_count(), model_name, NULL) : NULL;
    if (near) say("there is no model '%s'; did you mean '%s'?", name, near);
    else if (name) say("there is no model '%s'; known: %s", name, known_models(known, sizeof known));
    else say("--model is needed; known: %s", known_models(known, sizeof known));
    return EXIT_MISUSED;
}

void session_fill_run(const tool_session *s, run_args *run, bool scale)
{
    if (!run->batch) run->batch = s->model->batch;
    if (!run->epochs) run->epochs = s->model->epochs;
    if (!run->augment) run->augment = s->model->augment;
    if (scale) run->batch *= session_replicas(s);
}

static const char *rule_at(const void *context, size_t at)
{
    (void)context;
    return mr_update_rule_at((uint32_t)at)->name;
}

/* Constants for an optimizer that is not the model's: those it is known with. */
static int set_optimizer(mr_update_desc *u, const char *name)
{
    const mr_update_rule *rule = mr_update_rule_find(name);
    char known[256];
    size_t count = 0, at = 0;
    if (rule) {
        const mr_update_desc before = *u;
        *u = rule->desc;
        u->lr = before.lr;
        if (u->weight_decay == 0) u->weight_decay = before.weight_decay;
        return EXIT_DONE;
    }
    for (; mr_update_rule_at((uint32_t)count); count++)
        at +=
            (size_t)snprintf(known + at, sizeof known - at, "%s%s", count ? ", " : "", rule_at(NULL, count));
    const char *near = options_nearest(name, count, rule_at, NULL);
    say("--optimizer: expected one of %s; found '%s'%s%s%s", known, name, near ? "; did you mean '" : "",
        near ? near : "", near ? "'?" : "");
    return EXIT_MISUSED;
}

/* --momentum, of a rule that has one: of any other it would change nothing. */
static int set_momentum(mr_update_desc *u, double momentum)
{
    const char *name = mr_update_name(u);
    const mr_update_rule *rule = mr_update_rule_find(name);
    char with_it[64], others[256];
    size_t at = 0;
    if (rule && rule->desc.momentum > 0) {
        u->momentum = (float)momentum;
        return EXIT_DONE;
    }
    for (uint32_t i = 0; mr_update_rule_at(i); i++)
        if (mr_update_rule_at(i)->desc.momentum > 0)
            at += (size_t)snprintf(others + at, sizeof others - at, "%s%s", at ? ", " : "",
                                   mr_update_rule_at(i)->name);
    snprintf(with_it, sizeof with_it, "%s-momentum", name);
    if (mr_update_rule_find(with_it))
        say("--momentum: %s takes none, and would ignore %g; --optimizer %s does", name, momentum, with_it);
    else
        say("--momentum: %s takes none, and would ignore %g; of --optimizer these do: %s", name, momentum,
            others);
    return EXIT_MISUSED;
}

const mri_setting rule_kept[RULE_KEPT] = {
#define MRI_KEPT(...) MRI_ROW(session_rule, __VA_ARGS__),
#include "settings/updates.rows"
};

int session_fill_rule(tool_session *s, const model_args *m, bool scale)
{
    mr_error err = MR_ERROR_INIT;
    s->rule.update = s->model->update;
    s->rule.schedule = s->model->schedule;
    if (m->optimizer) {
        const int status = set_optimizer(&s->rule.update, m->optimizer);
        if (status) return status;
    }
    float lr = isnan(m->lr) ? s->rule.update.lr : (float)m->lr;
    if (scale) lr *= (float)session_replicas(s);
    if (!isnan(m->momentum)) {
        const int status = set_momentum(&s->rule.update, m->momentum);
        if (status) return status;
    }
    if (!isnan(m->weight_decay)) s->rule.update.weight_decay = (float)m->weight_decay;
#define MRI_SETTING(member, kind, ...) s->rule.member = m->member;
#include "settings/updates.rows"
    if (isnan(m->label_smoothing)) s->rule.label_smoothing = s->model->label_smoothing;
    if (m->freeze && strcmp(m->freeze, "none") == 0) s->rule.freeze = NULL;
    s->rule.update.lr = lr;
    s->rule.schedule.lr = lr;
    if (!m->schedule) return EXIT_DONE;
    if (mr_schedule_parse(&s->rule.schedule, m->schedule, lr, &err) != MR_OK) {
        say_error(&err);
        return EXIT_MISUSED;
    }
    const bool rates = scale && s->rule.schedule.kind == MR_LR_PIECEWISE;
    for (uint32_t i = 1; rates && i < s->rule.schedule.milestone_count; i += 2)
        s->rule.schedule.milestones[i] *= session_replicas(s);
    return EXIT_DONE;
}

/* ---- opening ---- */

static bool takes_numbers(const tool_session *s) { return s->model && s->model->numbers; }

bool session_tells_classes(const tool_session *s)
{
    return !s->model || (s->model->classes > 0 && !s->objective.loss);
}

void session_fill_data(const tool_session *s, data_args *data)
{
    if (!data->target_key && s->objective.loss && !s->objective.outputs_only)
        data->target_key = s->objective.field;
}

/* Where the format at hand would have it. */
static const char *label_advice(const char *format)
{
    static const struct {
        const char *format, *advice;
    } known[] = {
        {"tar",
         "a member KEY.cls beside each KEY.jpg holds its number; --label-key names another member or a "
         "field of KEY.json"},
        {"tfrecord",
         "--label-key names the feature that holds it, where that is not image/class/label or label"},
        {"npy",
         "an array NAME_labels.npy, labels.npy or y.npy next to it has them; --label-key names another"},
        {"npz", "an array labels or y in it holds them; --label-key names another"},
        {"mrec", "it was converted from data without: convert it again from data with classes"},
        {"shards", "they were converted from data without: convert them again from data with classes"},
    };
    for (size_t k = 0; k < OPT_COUNT(known); k++)
        if (strcmp(known[k].format, format) == 0) return known[k].advice;
    return "put the pictures of each class in a folder of their own";
}

/* Has the network no input but fields of the data? */
static bool takes_fields_alone(const tool_session *s)
{
    uint32_t h, w, c;
    return s->own_net && !mr_net_shape(s->own_net, 0, &h, &w, &c);
}

static int check_data(const tool_session *s, const mr_source_info *info, session_need need)
{
    const bool numbers = need == NEED_CLASSES && takes_numbers(s);
    if (numbers && info->length_field == MR_NO_FIELD) {
        say("%s: expected sequences of numbers for model %s, found none; 'millrace "
            "inspect' shows the fields of it",
            info->path, s->model->name);
        return EXIT_FAILED;
    }
    if (need >= NEED_PICTURES && !numbers && info->image_field < 0 && !takes_fields_alone(s)) {
        say("%s: expected pictures, found none; %s", info->path,
            need == NEED_CLASSES && info->length_field != MR_NO_FIELD
                ? "networks of sequences take its numbers, such as --model notes-mlp"
                : "'millrace inspect' shows its fields");
        return EXIT_FAILED;
    }
    if (numbers && info->label_field < 0 && session_tells_classes(s)) {
        say("%s: expected a class for each sequence, found none; --label-key says "
            "which number of a line it is",
            info->path);
        return EXIT_FAILED;
    }
    if (need == NEED_CLASSES && info->label_field < 0 && session_tells_classes(s)) {
        say("%s: expected a class for each picture, found none; %s", info->path, label_advice(info->format));
        return EXIT_FAILED;
    }
    return EXIT_DONE;
}

int session_open_data(tool_session *s, const char *path, const data_args *data, session_need need)
{
    data_args all = *data;
    session_fill_data(s, &all);
    const int status = setup_source(&s->src, path, &all);
    return status ? status : check_data(s, mr_source_info_of(s->src), need);
}

int session_number_from(tool_session *s, const char *path, const data_args *data, int64_t first)
{
    data_args all = *data;
    session_fill_data(s, &all);
    return setup_source_from(&s->src, path, &all, first);
}

/* Of these data alone: cmd_train also looks at its validation data. */
static int number_alone(tool_session *s, const session_args *a)
{
    int64_t first = s->objective.first.number;
    const mr_source_info *info = mr_source_info_of(s->src);
    if (session_tells_classes(s) && info->class_names && info->class_count == 1)
        say("%s: all samples have one class, %s", info->path, shown_text(info->class_names[0]));
    if (!session_tells_classes(s) || s->objective.first.later) return EXIT_DONE;
    const int status = s->objective.first.known ? EXIT_DONE : setup_label_start(s->src, NULL, &first);
    return status ? status : session_number_from(s, a->data, &a->data_opts, first);
}

int session_open_data_to_predict(tool_session *s, const char *path, const data_args *data, uint32_t classes)
{
    data_args all = *data;
    if (!all.target_key && s->objective.loss) { /* a table of pictures and targets has no classes to ask for
                                                 */
        all.target_key = s->objective.field;
        bool opens;
        const int looked = setup_opens(&opens, path, &all, all.target_key);
        if (looked) return looked;
        if (!opens) all.target_key = NULL;
    }
    const int status = setup_source_to_predict(&s->src, path, &all);
    s->objective.class_count = classes;
    return status ? status : check_data(s, mr_source_info_of(s->src), NEED_PICTURES);
}

int session_open_data_like(tool_session *s, const char *path, const data_args *data, const data_like *like)
{
    data_args all = *data;
    session_fill_data(s, &all);
    const int status = setup_source_to_evaluate(&s->src, path, &all, like);
    s->objective.class_count = like->class_count;
    return status ? status : check_data(s, mr_source_info_of(s->src), NEED_CLASSES);
}

int session_take_fields(tool_session *s, const run_args *run)
{
    const int status = fields_choose(&s->fields, s->src, run->fields);
    s->loader_cfg.fields = s->fields.field;
    s->loader_cfg.field_count = s->fields.count;
    return status;
}

/* Beside its pictures or sequences. */
static int take_more(tool_session *s)
{
    const int status = session_take_own_fields(s);
    if (status) return status;
    return objective_take_field(&s->objective, s->src, &s->loader_cfg, s->fields.field, &s->fields.count);
}

/* The field that a network of numbers takes: sequences of `length` (0: as the longest). Other networks take
 * pictures alone. */
static int session_take_numbers(tool_session *s, const run_args *run, uint32_t length)
{
    if (run->fields) {
        say("--fields: a network takes its pictures or sequences and no more; digest and bench loader "
            "deliver fields");
        return EXIT_MISUSED;
    }
    if (!takes_numbers(s)) {
        if (!run->length_window) return take_more(s);
        say("--length-window: model %s takes pictures, which have no length", s->model->name);
        return EXIT_MISUSED;
    }
    const mr_source_info *info = mr_source_info_of(s->src);
    if (!length) length = info->length_most;
    s->fields.field[0] =
        (mr_loader_field){.name = info->fields[info->length_field].name, .most = length, .pad = -1};
    s->fields.count = 1;
    s->loader_cfg.fields = s->fields.field;
    s->loader_cfg.field_count = 1;
    s->loader_cfg.width_multiple = length; /* a network's input has one width */
    return take_more(s);
}

uint32_t session_class_count(const tool_session *s)
{
    const uint32_t found =
        s->objective.class_count ? s->objective.class_count : mr_source_info_of(s->src)->class_count;
    return takes_numbers(s) && found < s->model->classes ? s->model->classes : found;
}

/* "cpu:N" or "cpu"; 0: other devices, whose number is nobody's choice. */
static uint32_t processors_in(const char *spec)
{
    if (strncmp(spec, "cpu", 3) != 0) return 0;
    return spec[3] == ':' ? (uint32_t)strtoul(spec + 4, NULL, 10) : spec[3] ? 0 : 1;
}

/* A part is computed with a number of threads that is not the machine's choice. Where the user does not say,
 * as many processors are replicas as there are cores for. */
static int fix_threads(const tool_session *s, device_args *d, char *spec, size_t spec_bytes)
{
    const uint32_t each = s->part.part_threads ? s->part.part_threads : 1,
                   ranks = s->world ? mr_world_size(s->world) : 1,
                   rank = s->world ? mr_world_rank(s->world) : 0, fit = mr_cores() / each;
    const uint64_t parts = s->part.parts;
    const uint32_t share = (uint32_t)(parts * (rank + 1) / ranks - parts * rank / ranks),
                   most = share ? share : 1;
    if (d->compute_threads) {
        say("--threads: with --parts a part is computed with --part-threads, whatever else "
            "there is: leave --threads out");
        return EXIT_MISUSED;
    }
    if (!d->devices || strcmp(d->devices, "cpu") == 0) {
        snprintf(spec, spec_bytes, "cpu:%u", fit < 1 ? 1 : fit < most ? fit : most);
        d->devices = spec;
    }
    d->compute_threads = each * processors_in(d->devices);
    return EXIT_DONE;
}

/* How many devices a replica has: their numbers stand behind "=" (mr_net_place() checks the rest). */
static uint32_t devices_each(const tool_session *s)
{
    unsigned long most = 0;
    for (const char *at = s->part.place; at && (at = strchr(at, '=')) != NULL;) {
        const unsigned long device = strtoul(++at, NULL, 10);
        if (device > most) most = device;
    }
    return most < MR_LOADER_MAX_PARTS ? (uint32_t)most + 1 : MR_LOADER_MAX_PARTS + 1;
}

uint32_t session_replicas(const tool_session *s) { return s->device_count / devices_each(s); }

static int check_place(const tool_session *s)
{
    const uint32_t each = devices_each(s);
    if (s->device_count % each == 0) return EXIT_DONE;
    say("--place %s needs %u devices for each replica: expected this number, or a "
        "multiple, with --devices, found %u",
        s->part.place, each, s->device_count);
    return EXIT_MISUSED;
}

/* A run that went on elsewhere may have more devices than parts. */
static int deal_parts(tool_session *s, uint32_t parts)
{
    mr_error err = MR_ERROR_INIT;
    const uint32_t replicas = session_replicas(s), each = s->device_count / replicas;
    const int rc = mr_parts_deal(&s->parts, s->world, replicas, parts, &err);
    for (uint32_t d = 0, p = 0; rc == MR_OK && d < replicas; d++)
        for (uint32_t k = 0; k < s->parts.of_device[d]; k++) s->part_devices[p++] = s->devices[d * each];
    return setting_status(rc, &err);
}

int session_open_devices(tool_session *s, const device_args *d)
{
    device_args own = *d;
    char spec[32], share[1024];
    int status = s->part.parts ? fix_threads(s, &own, spec, sizeof spec) : EXIT_DONE;
    if (status == EXIT_DONE && s->part.part_threads && !s->part.parts) {
        say("--part-threads needs --parts: without, the cores are shared by the devices");
        status = EXIT_MISUSED;
    }
    if (status == EXIT_DONE && s->world)
        status = world_gpus_deal(s->world, own.devices, share, sizeof share, &own.devices);
    if (status == EXIT_DONE) status = setup_devices(&s->devices, &s->device_count, &own, s->compute);
    if (status == EXIT_DONE && s->world)
        status = world_gpus_tell_shared(s->world, s->devices, s->device_count);
    if (status == EXIT_DONE) status = check_place(s);
    return status ? status : deal_parts(s, s->part.parts);
}

int session_open_loader(tool_session *s)
{
    mr_error err = MR_ERROR_INIT;
    const bool some = s->parts.count < s->parts.all;
    s->loader_cfg.devices = s->devices ? s->part_devices : NULL;
    s->loader_cfg.device_count = s->devices ? s->parts.count : 0;
    s->loader_cfg.all_parts = some ? s->parts.all : 0;
    s->loader_cfg.first_part = some ? s->parts.first : 0;
    s->loader_cfg.trace = s->trace;
    const int status = setting_status(mr_loader_open(&s->loader, s->src, &s->loader_cfg, &err), &err);
    if (status || s->io_reported) return status;
    const char *note = mr_loader_info_of(s->loader)->io_note;
    if (note && note[0]) say("%s", note);
    s->io_reported = true;
    return EXIT_DONE;
}

/* Its last point is compared with the targets. */
static int add_targets(tool_session *s)
{
    mr_error err = MR_ERROR_INIT;
    const objective *o = &s->objective;
    uint32_t h, w, c;
    if (!o->loss) return EXIT_DONE;
    mr_net_shape(s->net, mr_net_here(s->net), &h, &w, &c);
    if (h * w * c != o->count) {
        say("--loss %s: model %s has one output for two classes: expected another model, or other "
            "targets than %u numbers",
            objective_names[o->loss], s->model->name, o->count);
        return EXIT_MISUSED;
    }
    mr_net_targets(s->net, o->loss, o->outputs_only ? NULL : o->field);
    return exit_status(mr_net_check(s->net, &err), &err);
}

static int build_net(tool_session *s)
{
    mr_error err = MR_ERROR_INIT;
    const mr_loader_info *l = mr_loader_info_of(s->loader);
    const uint32_t classes = s->objective.loss ? s->objective.count : session_class_count(s);
    if (classes < 2 && session_tells_classes(s)) {
        say("%s: expected two classes or more to tell apart, found %u", mr_source_info_of(s->src)->path,
            classes);
        return EXIT_FAILED;
    }
    if (s->own_net) return session_build_own(s, classes);
    if (takes_numbers(s)) { /* classes are of the same alphabet */
        const uint32_t values = s->values ? s->values : classes;
        return exit_status(mr_model_build(s->model, 1, l->field[0].most, values, classes, &s->net, &err),
                           &err);
    }
    return exit_status(mr_model_build(s->model, l->height, l->width, l->channels, classes, &s->net, &err),
                       &err);
}

int session_open_net(tool_session *s)
{
    const int status = build_net(s);
    return status ? status : add_targets(s);
}

void session_give_rule(const tool_session *s, mr_trainer_config *cfg)
{
    cfg->update = s->rule.update;
    cfg->schedule = s->rule.schedule;
#define MRI_SETTING(member, kind, ...) cfg->member = s->rule.member;
#include "settings/updates.rows"
    cfg->steps_per_epoch = s->rule.schedule_steps;
}

/* *place, which is to be freed, is NULL without --place. */
static int place_layers(const tool_session *s, uint32_t **place)
{
    mr_error err = MR_ERROR_INIT;
    uint32_t devices;
    *place = NULL;
    if (!s->part.place) return EXIT_DONE;
    *place = calloc(mr_net_layer_count(s->net), sizeof **place);
    if (!*place) return exit_status(mr_error_set(&err, MR_ENOMEM, "no memory to place layers"), &err);
    return setting_status(mr_net_place(s->net, s->part.place, *place, &devices, &err), &err);
}

int session_open_trainer(tool_session *s, uint64_t epochs, bool inference)
{
    mr_error err = MR_ERROR_INIT;
    uint32_t *place = NULL;
    const mr_loader_info *l = mr_loader_info_of(s->loader);
    mr_trainer_config cfg;
    mr_trainer_defaults(&cfg);
    cfg.net = s->net;
    cfg.devices = s->devices;
    cfg.device_count = s->device_count;
    cfg.parts = &s->parts;
    cfg.world = s->world;
    cfg.crew = s->crew;
    cfg.batch = l->batch;
    cfg.seed = s->loader_cfg.seed;
    session_give_rule(s, &cfg);
    cfg.epochs = epochs;
    memcpy(cfg.mean, l->mean, sizeof cfg.mean);
    memcpy(cfg.std, l->std, sizeof cfg.std);
    cfg.uses_affine = l->uses_affine;
    cfg.inference = inference;
    cfg.fields = l->field, cfg.field_count = l->field_count;
    cfg.class_weights = s->objective.class_weights;
    cfg.class_weight_count = s->objective.class_weight_count;
    if (s->kept) cfg.kept = s->kept->at, cfg.kept_count = s->kept->count;
    cfg.trace = s->trace;
    int status = s->compute ? setup_compute(&cfg, s->compute) : EXIT_DONE;
    cfg.tune_buckets = s->bucket.tuned;
    if (s->bucket.known) cfg.bucket_bytes = s->bucket.bytes;
    if (status == EXIT_DONE) status = place_layers(s, &place);
    cfg.place = place;
    if (status == EXIT_DONE) status = setting_status(mr_trainer_open(&s->trainer, &cfg, &err), &err);
    free(place);
    return status;
}

/* ---- the whole of it ---- */

int session_open_to_train(tool_session *s, const session_args *a, run_args *run)
{
    int status = s->own_net ? EXIT_DONE : session_find_model(s, a->model.model);
    if (status == EXIT_DONE) status = objective_choose(&s->objective, &a->objective, s->model);
    if (status == EXIT_DONE) status = session_open_devices(s, &a->device);
    if (status == EXIT_DONE) status = session_open_data(s, a->data, &a->data_opts, NEED_CLASSES);
    if (status == EXIT_DONE) status = number_alone(s, a);
    if (status) return status;
    *run = a->run;
    session_fill_run(s, run, a->model.scale);
    status = input_size_choose(s, a, a->run.augment != NULL, run);
    if (status) return status;
    return session_fill_rule(s, &a->model, a->model.scale);
}

int session_set_loader(tool_session *s, const session_args *a, const run_args *run, bool training,
                       uint32_t length)
{
    setup_loader(&s->loader_cfg, &a->data_opts, run, &a->loader);
    s->loader_cfg.training = training;
    s->loader_cfg.count_unlabelled = !session_tells_classes(s);
    const int status = session_take_numbers(s, run, length);
    return status ? status : bad_watch_open(&s->bad, s->src, run, &s->loader_cfg);
}

int session_open_network(tool_session *s, uint64_t epochs, bool inference)
{
    int status = s->net ? EXIT_DONE : session_open_net(s);
    if (status == EXIT_DONE && !inference) status = objective_take_weights(&s->objective, s->src, s->net);
    return status ? status : session_open_trainer(s, epochs, inference);
}

int session_load(tool_session *s, const char *path, mr_checkpoint_info *info)
{
    mr_error err = MR_ERROR_INIT;
    return exit_status(mr_trainer_load(s->trainer, path, info, &err), &err);
}

typedef struct telling {
    const char *path;
} telling;

static void on_taken(void *context, const char *text)
{
    const telling *t = context;
    say("%s: %s", t->path, shown_text(text)); /* names are somebody else's */
}

int session_begin_with(tool_session *s, const char *path, const char *skip, session_begin *out)
{
    mr_error err = MR_ERROR_INIT;
    telling t = {path};
    mr_take_config cfg;
    mr_take_defaults(&cfg);
    cfg.path = path;
    cfg.skip = skip;
    cfg.on_note = on_taken, cfg.context = &t;
    out->path = path;
    return exit_status(mr_trainer_take(s->trainer, &cfg, &out->report, &err), &err);
}

/* ---- closing ---- */

void session_leave_if_it_hangs(const mr_trainer *t)
{
    if (!t || !mr_trainer_hangs(t)) return;
    fflush(stdout);
    _exit(EXIT_FAILED);
}

void session_close_trainer(tool_session *s)
{
    session_leave_if_it_hangs(s->trainer);
    mr_trainer_close(s->trainer);
    s->trainer = NULL;
}

void session_close_loader(tool_session *s)
{
    mr_loader_close(s->loader);
    s->loader = NULL;
}

void session_close(tool_session *s)
{
    session_close_trainer(s); /* first: its queued work still reads the loader's memory */
    session_close_loader(s);
    mr_net_destroy(s->net);
    mr_net_destroy(s->own_net);
    s->net = s->own_net = NULL;
    mr_devices_close(s->devices, s->device_count);
    s->devices = NULL;
    mr_source_close(s->src);
    s->src = NULL;
    objective_close(&s->objective);
}
