/* run/whole_run.c: opens everything that a run needs, with settings that fit each other. See run.h.
 *
 *   checkpoint ─► devices, shares ─► data ─► loader ─► network ─► trainer ─► validation
 *
 * The settings of a checkpoint go before the model's, and the program's own before the model's. */
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/abi.h"
#include "base/handle.h"
#include "base/util.h"
#include "millrace/run.h"

struct mr_run {
    uint32_t process; /* that opened it */
    mr_run_config cfg;
    mr_run_info info;
    const mr_model *model; /* of a new run; NULL: the program's own network, or a checkpoint's */
    mr_checkpoint *from;   /* NULL: a new run */
    mr_source *data, *val;
    mr_device **devices;
    mr_parts parts;
    mr_device *part_devices[MR_LOADER_MAX_PARTS]; /* of each share of this process */
    mr_budget *budget;                            /* of both loaders; NULL: there is one */
    mr_source_config source;
    mr_loader_config loader;
    mr_loader_field field[MR_LOADER_MAX_FIELDS]; /* of the program's network */
    mr_trainer_config trainer;
    char resized[512];  /* loader.augment, where a resize was put in front */
    bool numbers_given; /* label_offset is the program's */
    mr_net *net;        /* built here, or NULL */
    char *folder;
};

/* ---- settings ---- */

void mr_run_defaults_sized(mr_run_config *cfg, size_t struct_size)
{
    const mr_run_config all = {0};
    mri_settings_give(cfg, struct_size, &all, sizeof all);
}

static void note(const mr_run *r, const char *format, ...) MR_PRINTF(2, 3);
static void note(const mr_run *r, const char *format, ...)
{
    char text[2048];
    va_list args;
    if (!r->cfg.on_note) return;
    va_start(args, format);
    vsnprintf(text, sizeof text, format, args);
    va_end(args);
    r->cfg.on_note(r->cfg.context, text);
}

static int check_settings(mr_run *r, mr_error *err)
{
    const mr_run_config *c = &r->cfg;
    if ((unsigned)c->use >= MR_USE_COUNT)
        return mr_error_set(err, MR_EINVAL, "use is %d: expected MR_USE_TRAIN, _EVALUATE or _PREDICT",
                            (int)c->use);
    if (!c->data) return mr_error_set(err, MR_EINVAL, "mr_run_config.data is NULL: expected a data set");
    if (c->use != MR_USE_TRAIN && !c->checkpoint)
        return mr_error_set(err, MR_EINVAL, "mr_run_config.checkpoint is NULL: expected a checkpoint");
    if (c->resume && !c->checkpoint)
        return mr_error_set(err, MR_EINVAL, "resume needs mr_run_config.checkpoint: the folder of the run");
    if (c->model && c->net)
        return mr_error_set(err, MR_EINVAL, "mr_run_config: expected model or net, found both");
    if (c->model) {
        r->model = mr_model_find(c->model);
        if (!r->model) return mr_error_set(err, MR_EINVAL, "there is no model '%s'", c->model);
    }
    int rc = MR_OK;
    mr_source_defaults(&r->source);
    mr_loader_defaults(&r->loader);
    mr_trainer_defaults(&r->trainer);
    if (c->source) rc = mri_settings_take(&r->source, sizeof r->source, c->source, "source", err);
    if (rc == MR_OK && c->loader)
        rc = mri_settings_take(&r->loader, sizeof r->loader, c->loader, "loader", err);
    if (rc == MR_OK && c->trainer)
        rc = mri_settings_take(&r->trainer, sizeof r->trainer, c->trainer, "trainer", err);
    r->numbers_given = r->source.label_offset != MR_LABEL_AUTO;
    return rc;
}

/* ---- the checkpoint ---- */

/* A folder whose checkpoints are all damaged is not begun anew: something may still be rescued. */
static int look_for_checkpoint(mr_run *r, bool *there, mr_error *err)
{
    char path[4096], why[1024] = "";
    mr_checkpoint_info info;
    const int rc = mr_checkpoint_find(r->cfg.checkpoint, path, sizeof path, &info, why, sizeof why, err);
    *there = rc == MR_OK;
    if (rc != MR_ENOENT) return rc;
    if (!why[0]) {
        note(r, "%s: no checkpoint yet; starting from the beginning", r->cfg.checkpoint);
        return MR_OK;
    }
    mr_error_set(err, MR_EFORMAT, "no whole checkpoint in this folder: %s", why);
    return mr_error_at(err, r->cfg.checkpoint, MR_NOWHERE, MR_NOWHERE);
}

static int check_model(const mr_run *r, mr_error *err)
{
    const char *then = mr_checkpoint_info_of(r->from)->model;
    if (!r->model || strcmp(r->model->name, then) == 0) return MR_OK;
    return mr_error_set(err, MR_EINVAL, "model is %s: the run of %s has %s", r->model->name,
                        mr_checkpoint_path(r->from), then);
}

static int open_checkpoint(mr_run *r, mr_error *err)
{
    bool there = r->cfg.use != MR_USE_TRAIN;
    int rc = r->cfg.resume && !there ? look_for_checkpoint(r, &there, err) : MR_OK;
    if (rc == MR_OK && there) rc = mr_checkpoint_open(&r->from, r->cfg.checkpoint, r->cfg.use, err);
    if (rc) return rc;
    if (r->from && mr_checkpoint_note(r->from)) note(r, "%s", mr_checkpoint_note(r->from));
    r->info.from = mr_checkpoint_path(r->from);
    if (r->from) return check_model(r, err);
    return r->model || r->cfg.net
               ? MR_OK
               : mr_error_set(err, MR_EINVAL, "mr_run_config: expected model or net for a new run");
}

/* ---- devices and data ---- */

/* A checkpoint's shares, else one per device. */
static int deal_shares(mr_run *r, mr_error *err)
{
    const uint32_t parts = r->from ? mr_checkpoint_info_of(r->from)->parts : 0;
    const bool trains = r->cfg.use == MR_USE_TRAIN;
    int rc = mr_parts_deal(&r->parts, r->trainer.world, r->info.device_count, trains ? parts : 0, err);
    for (uint32_t d = 0, p = 0; rc == MR_OK && d < r->info.device_count; d++)
        for (uint32_t k = 0; k < r->parts.of_device[d]; k++) r->part_devices[p++] = r->devices[d];
    const bool some = r->parts.count < r->parts.all;
    r->loader.devices = r->part_devices;
    r->loader.device_count = r->parts.count;
    r->loader.all_parts = some ? r->parts.all : 0;
    r->loader.first_part = some ? r->parts.first : 0;
    return rc;
}

static int open_devices(mr_run *r, mr_error *err)
{
    mr_devices_config cfg;
    mr_devices_defaults(&cfg);
    int rc = r->cfg.device ? mri_settings_take(&cfg, sizeof cfg, r->cfg.device, "devices", err) : MR_OK;
    if (rc == MR_OK && r->from) rc = mr_checkpoint_devices(r->from, &cfg, err);
    if (rc == MR_OK)
        rc = mr_devices_open(&r->devices, &r->info.device_count, r->cfg.devices ? r->cfg.devices : "cpu",
                             &cfg, err);
    r->info.devices = r->devices;
    return rc ? rc : deal_shares(r, err);
}

static void tell_of(const mr_run *r, const mr_source_info *info)
{
    for (const char *line = info->told; line && line[0];) {
        const size_t bytes = strcspn(line, "\n");
        note(r, "%s: %.*s", info->path, (int)bytes, line);
        line += bytes + (line[bytes] == '\n');
    }
}

/* Of two splits the one to test with, unless the program says which. */
static int open_test(mr_source **out, const char *path, mr_source_config *cfg, mr_error *err)
{
    const int rc = mr_source_open(out, path, cfg, err);
    if (rc || cfg->split != MR_SPLIT_AUTO || !mr_source_info_of(*out)->has_test) return rc;
    mr_source_close(*out);
    *out = NULL;
    cfg->split = MR_SPLIT_TEST;
    return mr_source_open(out, path, cfg, err);
}

static int open_data(mr_run *r, mr_error *err)
{
    int rc = r->from ? mr_checkpoint_source(r->from, &r->source, err) : MR_OK;
    if (rc == MR_OK)
        rc = r->cfg.use == MR_USE_TRAIN ? mr_source_open(&r->data, r->cfg.data, &r->source, err)
                                        : open_test(&r->data, r->cfg.data, &r->source, err);
    if (rc) return rc;
    const mr_source_info *info = mr_source_info_of(r->data);
    r->info.data = r->data;
    if (r->cfg.use != MR_USE_TRAIN || !info->only_test) return MR_OK;
    mr_error_set(err, MR_EINVAL,
                 "there is a test or validation part here, but no train part: name the training data, or set "
                 "split to MR_SPLIT_TEST");
    return mr_error_at(err, info->path, MR_NOWHERE, MR_NOWHERE);
}

/* The data set to validate with; NULL: none. *cfg: of it. */
static const char *find_val(const mr_run *r, mr_source_config *cfg)
{
    const mr_source_info *info = mr_source_info_of(r->data);
    mr_source_config usual;
    mr_source_defaults(&usual);
    *cfg = r->source;
    cfg->take_from = usual.take_from, cfg->take_to = usual.take_to;
    if (!r->numbers_given) cfg->label_offset = MR_LABEL_AUTO;
    if (r->cfg.use != MR_USE_TRAIN || (r->cfg.val && strcmp(r->cfg.val, "none") == 0)) return NULL;
    cfg->split = r->cfg.val ? MR_SPLIT_AUTO : MR_SPLIT_TEST;
    if (r->cfg.val) return r->cfg.val;
    return info->has_test && r->source.split != MR_SPLIT_TEST ? r->cfg.data : NULL;
}

/* Of a new run: does the network tell classes apart? */
static bool tells_classes(const mr_run *r)
{
    return r->model ? r->model->classes > 0 : mr_net_class_count(r->cfg.net) > 0;
}

/* Data whose classes are numbers are opened again where these do not begin at 0: one of both sets may lack
 * the first class. */
static int number_classes(mr_run *r, mr_error *err)
{
    mr_source *val = NULL;
    mr_source_config cfg;
    int64_t first = 0;
    const char *path = find_val(r, &cfg);
    if (r->from || r->numbers_given || !tells_classes(r)) return MR_OK;
    int rc = path ? open_test(&val, path, &cfg, err) : MR_OK;
    if (rc == MR_OK) rc = mr_first_class(r->data, val, &first, r->cfg.on_note, r->cfg.context, err);
    mr_source_close(val);
    if (rc || first == 0) return rc;
    mr_source_close(r->data);
    r->data = NULL;
    r->source.label_offset = first;
    return open_data(r, err);
}

/* ---- the loader ---- */

/* Does it make every picture the same size? */
static bool fixes_size(const char *augment)
{
    mr_augment *a;
    uint32_t h, w;
    if (mr_augment_create(&a, augment, true, NULL) != MR_OK) return true; /* the loader refuses it */
    const bool fixes = mr_augment_output(a, 0, 0, &h, &w, NULL) == MR_OK;
    mr_augment_destroy(a);
    return fixes;
}

/* Pictures without a common size are resized to the model's input. */
static void choose_augment(mr_run *r)
{
    const mr_model *m = r->model;
    const mr_source_info *info = mr_source_info_of(r->data);
    const char *augment = m->augment ? m->augment : "none";
    r->loader.augment = m->augment;
    if ((info->height && info->width) || !m->h || !m->w || info->image_field < 0 || fixes_size(augment))
        return;
    const bool none = strcmp(augment, "none") == 0;
    snprintf(r->resized, sizeof r->resized, "resize(%ux%u)%s%s", m->h, m->w, none ? "" : ",",
             none ? "" : augment);
    r->loader.augment = r->resized;
    note(r, "%s: pictures are resized to %u x %u, the input of %s", info->path, m->w, m->h, m->name);
}

static void like_model(mr_run *r)
{
    mr_loader_config usual;
    mr_loader_defaults(&usual);
    if (r->loader.batch == usual.batch) r->loader.batch = r->model->batch;
    if (r->loader.epochs == usual.epochs) r->loader.epochs = r->model->epochs;
    if (!r->loader.augment || (usual.augment && strcmp(r->loader.augment, usual.augment) == 0))
        choose_augment(r);
}

/* The inputs of the program's network, unless the program names fields itself. */
static int set_fields(mr_run *r, mr_error *err)
{
    const mr_source_info *info = mr_source_info_of(r->data);
    mr_field_input input;
    for (uint32_t i = 0; i < MR_LOADER_MAX_FIELDS && mr_net_field_at(r->cfg.net, i, &input); i++) {
        uint32_t at = 0;
        while (at < info->field_count && strcmp(info->fields[at].name, input.name) != 0) at++;
        if (at == info->field_count) {
            mr_error_set(err, MR_EINVAL, "the data have no field %s, which the network takes", input.name);
            return mr_error_at(err, info->path, MR_NOWHERE, MR_NOWHERE);
        }
        r->field[i] = (mr_loader_field){.name = info->fields[at].name, .most = input.h * input.w * input.c};
        r->loader.fields = r->field;
        r->loader.field_count = i + 1;
    }
    return MR_OK;
}

static int set_loader(mr_run *r, mr_error *err)
{
    if (r->from) return mr_checkpoint_loader(r->from, r->data, &r->loader, err);
    if (r->model && r->model->numbers)
        return mr_error_set(
            err, MR_EUNSUPPORTED,
            "model %s takes numbers: open its loader and its network, or begin from a checkpoint",
            r->model->name);
    if (r->model) like_model(r);
    r->loader.training = true;
    r->loader.count_unlabelled = !tells_classes(r);
    return r->cfg.net && r->loader.field_count == 0 ? set_fields(r, err) : MR_OK;
}

/* The validation data share the memory of the training data. */
static int share_memory(mr_run *r, mr_error *err)
{
    mr_source_config unused;
    if (!find_val(r, &unused) || r->loader.budget) return MR_OK;
    if (mr_budget_create(&r->budget, r->loader.memory_bytes) != MR_OK)
        return mr_error_set(err, MR_ENOMEM, "out of memory for the budget of the loaders");
    r->loader.budget = r->budget;
    return MR_OK;
}

static int open_loader(mr_run *r, mr_error *err)
{
    int rc = set_loader(r, err);
    if (rc == MR_OK) rc = share_memory(r, err);
    if (rc) return rc;
    const mr_checkpoint_info *then = mr_checkpoint_info_of(r->from);
    mr_loader_config cfg = r->loader;
    r->info.epochs = r->cfg.use == MR_USE_TRAIN ? cfg.epochs : 0;
    if (r->from && r->info.epochs && then->epoch >= cfg.epochs) cfg.epochs = UINT64_MAX; /* nothing is left */
    rc = mr_loader_open(&r->info.loader, r->data, &cfg, err);
    if (rc == MR_OK)
        snprintf(r->info.augment, sizeof r->info.augment, "%s", mr_loader_info_of(r->info.loader)->augment);
    return rc;
}

/* ---- network and trainer ---- */

static int build_net(mr_run *r, mr_error *err)
{
    const mr_source_info *info = mr_source_info_of(r->data);
    const mr_loader_info *l = mr_loader_info_of(r->info.loader);
    r->info.net = r->cfg.net;
    if (!r->model) return MR_OK;
    if (r->model->classes && info->class_count < 2) {
        mr_error_set(err, MR_EINVAL, "expected two classes or more to tell apart, found %u",
                     info->class_count);
        return mr_error_at(err, info->path, MR_NOWHERE, MR_NOWHERE);
    }
    const int rc =
        mr_model_build(r->model, l->height, l->width, l->channels, info->class_count, &r->net, err);
    r->info.net = r->net;
    return rc;
}

static bool is_same_update(const mr_update_desc *a, const mr_update_desc *b)
{
    return a->kind == b->kind && a->lr == b->lr && a->momentum == b->momentum && a->rho == b->rho &&
           a->beta1 == b->beta1 && a->beta2 == b->beta2 && a->epsilon == b->epsilon &&
           a->weight_decay == b->weight_decay && a->nesterov == b->nesterov;
}

static bool is_same_schedule(const mr_schedule *a, const mr_schedule *b)
{
    bool same = a->kind == b->kind && a->lr == b->lr && a->factor == b->factor &&
                a->floor_lr == b->floor_lr && a->decay == b->decay &&
                a->milestone_count == b->milestone_count && a->warmup_epochs == b->warmup_epochs;
    for (uint32_t k = 0; same && k < a->milestone_count && k < MRI_ARRAY_COUNT(a->milestones); k++)
        same = a->milestones[k] == b->milestones[k];
    return same;
}

/* The model's rule where the program has the defaults. */
static void take_rule(const mr_model *m, mr_trainer_config *cfg)
{
    mr_trainer_config usual;
    mr_trainer_defaults(&usual);
    const bool own = !is_same_update(&cfg->update, &usual.update);
    if (!own) cfg->update = m->update;
    if (is_same_schedule(&cfg->schedule, &usual.schedule)) {
        cfg->schedule = m->schedule;
        cfg->schedule.lr = own && cfg->update.lr > 0 ? cfg->update.lr : m->update.lr;
    }
    if (cfg->label_smoothing == usual.label_smoothing) cfg->label_smoothing = m->label_smoothing;
    if (!own) cfg->update.lr = 0; /* the schedule has the rate */
}

static void fill_trainer(mr_run *r, mr_trainer_config *cfg)
{
    const mr_loader_info *l = mr_loader_info_of(r->info.loader);
    cfg->net = r->info.net;
    cfg->batch = l->batch;
    cfg->seed = r->loader.seed;
    memcpy(cfg->mean, l->mean, sizeof cfg->mean);
    memcpy(cfg->std, l->std, sizeof cfg->std);
    cfg->uses_affine = l->uses_affine;
    cfg->fields = l->field;
    cfg->field_count = l->field_count;
    if (r->model) take_rule(r->model, cfg);
}

static int open_trainer(mr_run *r, mr_error *err)
{
    mr_trainer_config cfg = r->trainer;
    int rc = r->from ? mr_checkpoint_trainer(r->from, r->info.loader, &cfg, err) : MR_OK;
    if (rc) return rc;
    if (!r->from) fill_trainer(r, &cfg);
    cfg.devices = r->devices;
    cfg.device_count = r->info.device_count;
    cfg.parts = &r->parts;
    if (r->info.epochs) cfg.epochs = r->info.epochs;
    r->info.net = cfg.net;
    rc = mr_trainer_open(&r->info.trainer, &cfg, err);
    if (rc == MR_OK && r->from) rc = mr_trainer_load(r->info.trainer, mr_checkpoint_path(r->from), NULL, err);
    return rc;
}

/* ---- validation ---- */

/* Classes are numbered as in the training data. */
static int open_val_data(mr_run *r, const char *path, mr_source_config *cfg, mr_error *err)
{
    const mr_source_info *info = mr_source_info_of(r->data);
    const bool apart = mr_net_class_count(r->info.net) > 0;
    cfg->class_names = apart ? info->class_names : NULL;
    cfg->class_count = apart ? info->class_count : 0;
    cfg->classes_of = info->path;
    cfg->class_first = r->numbers_given ? cfg->label_offset : info->label_offset;
    const int rc = open_test(&r->val, path, cfg, err);
    if (rc) return rc;
    const mr_source_info *here = mr_source_info_of(r->val);
    r->info.val = r->val;
    if (here->class_count || !cfg->class_count) return MR_OK;
    mr_error_set(err, MR_EINVAL, "expected %u classes as in %s, found 0", cfg->class_count, info->path);
    return mr_error_at(err, here->path, MR_NOWHERE, MR_NOWHERE);
}

static int open_val(mr_run *r, mr_error *err)
{
    mr_source_config source;
    mr_loader_config cfg = r->loader;
    const char *path = find_val(r, &source);
    int rc = path ? open_val_data(r, path, &source, err) : MR_OK;
    if (rc || !path) return rc;
    cfg.training = false;
    cfg.epochs = UINT64_MAX;
    cfg.order = MR_ORDER_SEQUENTIAL;
    cfg.sampler = NULL;
    cfg.length_window = 0;
    cfg.repeats = 0;
    cfg.tail = MR_TAIL_KEEP;
    cfg.prefetch = cfg.prefetch > 2 ? 2 : cfg.prefetch; /* it waits full while training runs */
    cfg.start_epoch = cfg.start_step = 0;
    cfg.trace = NULL;
    cfg.record = NULL;
    cfg.tune = 0;
    cfg.cache = MR_CACHE_OFF; /* its memory is meant for the training data */
    rc = mr_loader_open(&r->info.val_loader, r->val, &cfg, err);
    if (rc == MR_ELIMIT && err && !err->file[0])
        mr_error_at(err, mr_source_info_of(r->val)->path, MR_NOWHERE, MR_NOWHERE);
    return rc;
}

/* ---- the whole ---- */

static int open_all(mr_run *r, mr_error *err)
{
    int rc = check_settings(r, err);
    if (rc == MR_OK) rc = open_checkpoint(r, err);
    if (rc == MR_OK) rc = open_devices(r, err);
    if (rc == MR_OK) rc = open_data(r, err);
    if (rc == MR_OK) rc = number_classes(r, err);
    if (rc == MR_OK) tell_of(r, mr_source_info_of(r->data));
    if (rc == MR_OK) rc = open_loader(r, err);
    if (rc == MR_OK && !r->from) rc = build_net(r, err);
    if (rc == MR_OK) rc = open_trainer(r, err);
    if (rc == MR_OK) rc = open_val(r, err);
    if (rc) return rc;
    r->info.model = mr_net_name(r->info.net);
    r->folder = r->cfg.use == MR_USE_TRAIN && r->cfg.checkpoint ? strdup(r->cfg.checkpoint) : NULL;
    return r->cfg.use == MR_USE_TRAIN && r->cfg.checkpoint && !r->folder
               ? mr_error_set(err, MR_ENOMEM, "out of memory for a run")
               : MR_OK;
}

int mr_run_open(mr_run **out, const mr_run_config *cfg, mr_error *err)
{
    MRI_GIVEN(err, out);
    *out = NULL;
    MRI_GIVEN(err, cfg);
    mr_run *r = calloc(1, sizeof *r);
    if (!r) return mr_error_set(err, MR_ENOMEM, "out of memory for a run");
    r->process = mri_process();
    r->info.struct_size = sizeof r->info;
    mr_run_defaults(&r->cfg);
    int rc = mri_settings_take(&r->cfg, sizeof r->cfg, cfg, "run", err);
    if (rc == MR_OK) rc = open_all(r, err);
    if (rc) {
        mr_run_close(r);
        return rc;
    }
    *out = r;
    return MR_OK;
}

/* Each uses the handles opened before it. */
void mr_run_close(mr_run *r)
{
    if (!MRI_IS_OWN(r)) return;
    mr_trainer_close(r->info.trainer);
    mr_loader_close(r->info.val_loader);
    mr_loader_close(r->info.loader);
    mr_budget_destroy(r->budget);
    mr_net_destroy(r->net);
    mr_devices_close(r->devices, r->info.device_count);
    mr_source_close(r->val);
    mr_source_close(r->data);
    mr_checkpoint_close(r->from);
    free(r->folder);
    free(r);
}

const mr_run_info *mr_run_info_of(const mr_run *r) { return r ? &r->info : NULL; }

/* ---- the work ---- */

int mr_run_fit_sized(mr_run *r, const mr_fit_config *cfg, mr_report *last, mr_error *err)
{
    mr_fit_config mine;
    MRI_OWN(err, r);
    if (r->cfg.use != MR_USE_TRAIN)
        return mr_error_set(err, MR_EINVAL, "this run was opened to evaluate or predict");
    mr_fit_defaults(&mine);
    const int rc = cfg ? mri_settings_take(&mine, sizeof mine, cfg, "fit", err) : MR_OK;
    if (rc) return rc;
    if (!mine.epochs) mine.epochs = r->info.epochs;
    const mr_checkpoint_info *then = mr_checkpoint_info_of(r->from);
    if (then && !mine.patience) mine.patience = then->patience;
    if (then && mine.stop_at_accuracy == 0) mine.stop_at_accuracy = then->stop_at_accuracy;
    mine.val = r->info.val_loader;
    mine.checkpoint_dir = r->folder;
    mine.data = r->info.data ? mr_source_info_of(r->info.data) : NULL;
    return mr_fit_sized(r->info.trainer, r->info.loader, &mine, last, err);
}

int mr_run_evaluate(mr_run *r, const volatile int *stop, double *loss, double *accuracy, uint64_t *count,
                    mr_error *err)
{
    double unused[2];
    uint64_t samples;
    MRI_OWN(err, r);
    mr_loader *loader = r->cfg.use == MR_USE_TRAIN ? r->info.val_loader : r->info.loader;
    if (!loader) return mr_error_set(err, MR_EINVAL, "the run has no data to validate with");
    if (r->cfg.use == MR_USE_PREDICT) return mr_error_set(err, MR_EINVAL, "this run was opened to predict");
    return mr_evaluate_until(r->info.trainer, loader, stop, loss ? loss : &unused[0],
                             accuracy ? accuracy : &unused[1], count ? count : &samples, err);
}

int mr_run_predict(mr_run *r, const mr_outputs_config *cfg, mr_error *err)
{
    MRI_OWN(err, r);
    MRI_GIVEN(err, cfg);
    if (r->cfg.use != MR_USE_PREDICT)
        return mr_error_set(err, MR_EINVAL, "this run was opened for another use than MR_USE_PREDICT");
    return mr_evaluate_outputs(r->info.trainer, r->info.loader, cfg, NULL, NULL, NULL, err);
}
