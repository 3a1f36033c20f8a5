/* train/state/going_on.c: from a checkpoint to the settings of data, devices, loader and trainer. See
 * checkpoint.h.
 *
 *   mr_checkpoint ─► source ─► loader ─► trainer
 *
 * Which members checkpoints keep is in the rows of settings/; by hand are those whose type is another one
 * there. */
#include "millrace/run.h"

#include <inttypes.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/abi.h"
#include "base/handle.h"
#include "settings/setting.h"
#include "train/state/going_on.h"

struct mr_checkpoint {
    uint32_t process; /* that opened it */
    mr_checkpoint_info info;
    char path[4096];
    char note[1024];
    mr_use use;
    const char **class_names; /* or NULL, like what follows */
    uint32_t class_name_count;
    float *class_weights;
    uint32_t class_weight_count;
    mr_net *net;
    mr_loader_field fields[MR_LOADER_MAX_FIELDS]; /* names are the source's */
    uint32_t field_count;
    mr_point outputs;
    uint64_t epochs; /* of the loader */
};

/* ---- opening ---- */

int mr_checkpoint_open(mr_checkpoint **out, const char *path, mr_use use, mr_error *err)
{
    MRI_GIVEN(err, out);
    *out = NULL;
    MRI_GIVEN(err, path);
    if ((unsigned)use >= MR_USE_COUNT)
        return mr_error_set(err, MR_EINVAL, "use is %d: expected MR_USE_TRAIN, _EVALUATE or _PREDICT",
                            (int)use);
    mr_checkpoint *c = calloc(1, sizeof *c);
    if (!c) return mr_error_set(err, MR_ENOMEM, "no memory for a checkpoint's settings");
    c->process = mri_process();
    c->use = use;
    int rc = mr_checkpoint_find(path, c->path, sizeof c->path, &c->info, c->note, sizeof c->note, err);
    if (rc == MR_OK) rc = mr_checkpoint_class_names(c->path, &c->class_names, &c->class_name_count, err);
    if (rc == MR_OK)
        rc = mr_checkpoint_class_weights(c->path, &c->class_weights, &c->class_weight_count, err);
    if (rc == MR_OK) rc = mr_checkpoint_net(c->path, &c->net, err);
    if (rc != MR_OK) {
        mr_checkpoint_close(c);
        return rc;
    }
    if (c->info.target_loss)
        mr_net_targets(c->net, c->info.target_loss, use == MR_USE_PREDICT ? NULL : c->info.targets);
    if (!c->info.repeats) c->info.repeats = 1;
    *out = c;
    return MR_OK;
}

void mr_checkpoint_close(mr_checkpoint *c)
{
    if (!c) return;
    mr_net_destroy(c->net);
    free(c->class_weights);
    free(c->class_names);
    free(c);
}

const mr_checkpoint_info *mr_checkpoint_info_of(const mr_checkpoint *c) { return c ? &c->info : NULL; }

const char *mr_checkpoint_path(const mr_checkpoint *c) { return c ? c->path : NULL; }

const char *mr_checkpoint_note(const mr_checkpoint *c) { return c && c->note[0] ? c->note : NULL; }

/* ---- the loader's settings in a run ---- */

static const mri_kept_setting kept_of_loader[] = {
#define MRI_KEPT(...) MRI_KEPT_ROW(mr_loader_config, __VA_ARGS__),
#include "settings/batches.rows"
};
static const mri_kept_setting kept_of_decode[] = {
#define MRI_KEPT(...) MRI_KEPT_ROW(mr_decode_config, __VA_ARGS__),
#include "settings/decode.rows"
};

static int differs(const char *member, const char *then, const char *now, mr_error *err)
{
    return mr_error_set(
        err, MR_EINVAL,
        "%s is %s: the checkpoint's run has %s, and goes on with that; leave it as the defaults have it, or "
        "set it after the checkpoint's settings are in",
        member, now, then);
}

/* The program has set another value than the checkpoint's. */
static int take_own(const mri_setting *s, const mr_checkpoint *c, const char *then, const char *now,
                    mr_error *err)
{
    if (c->use != MR_USE_TRAIN || s->resume == MRI_RESUME_TAKE) return MR_OK;
    return differs(s->member, then, now, err);
}

/* An evaluation takes the samples that a network was trained on in batches of the same size. */
static bool applies(const mri_setting *s, mr_use use)
{
    return use == MR_USE_TRAIN || s->changes == MRI_CHANGES_PIXELS || strcmp(s->member, "batch") == 0;
}

/* A setting that stands as the defaults have it gets the checkpoint's value, if the checkpoint knows it; of
 * one that the program has set to something else the row decides, where the run goes on. */
static int take_kept(const mri_kept_setting *kept, size_t count, const mr_checkpoint *c, const void *defaults,
                     void *cfg, mr_error *err)
{
    mri_kept_texts texts;
    char by_default[64], why[256];
    mr_checkpoint_info from = c->info;
    from.seed = mri_order_seed(&from);
    for (size_t i = 0; i < count; i++) {
        const mri_setting *s = &kept[i].now;
        if (!applies(s, c->use) || !mri_setting_holds(&kept[i].then, &from, why, sizeof why)) continue;
        if (!mri_kept_differs(&kept[i], &from, cfg, &texts)) continue;
        mri_setting_text(s, defaults, by_default, sizeof by_default);
        if (strcmp(texts.now, by_default) == 0) {
            if (!mri_setting_parse(s, cfg, texts.then, why, sizeof why))
                return mr_error_set(err, MR_EFORMAT, "%s", why);
        } else {
            const int rc = take_own(s, c, texts.then, texts.now, err);
            if (rc) return rc;
        }
    }
    return MR_OK;
}

/* The same for a text. */
static int take_text(const mri_setting *s, const mr_checkpoint *c, const char *then, const char *by_default,
                     const char **now, mr_error *err)
{
    if (!then[0] || (*now && strcmp(then, *now) == 0)) return MR_OK;
    if (*now == by_default || (*now && by_default && strcmp(*now, by_default) == 0)) {
        *now = then;
        return MR_OK;
    }
    return take_own(s, c, then, *now ? *now : "none", err);
}

static int take_texts(const mr_checkpoint *c, const mr_loader_config *defaults, mr_loader_config *cfg,
                      mr_error *err)
{
    int rc = MR_OK;
#define MRI_KEPT(member, ...)
#define MRI_KEPT_TEXT(member, ...)                                                                           \
    if (rc == MR_OK)                                                                                         \
        rc = take_text(&(const mri_setting)MRI_ROW(mr_loader_config, member, __VA_ARGS__), c,                \
                       c->info.member, defaults->member, &cfg->member, err);
#include "settings/batches.rows"
    return rc;
}

/* ---- the fields of the network ---- */

static const mr_field *find_field(const mr_source_info *data, const char *name)
{
    for (uint32_t k = 0; k < data->field_count; k++)
        if (strcmp(data->fields[k].name, name) == 0) return &data->fields[k];
    return NULL;
}

static int add_field(mr_checkpoint *c, const mr_source_info *data, const char *name, uint32_t most,
                     bool targets, mr_error *err)
{
    const mr_field *f = find_field(data, name);
    if (!f) {
        mr_error_set(err, MR_EINVAL, "no field %s, which the network of %s takes", name, c->path);
        return mr_error_at(err, data->path, MR_NOWHERE, MR_NOWHERE);
    }
    if (c->field_count == MR_LOADER_MAX_FIELDS)
        return mr_error_set(err, MR_ELIMIT, "the network of %s takes more than %d fields", c->path,
                            MR_LOADER_MAX_FIELDS);
    c->fields[c->field_count++] =
        (mr_loader_field){.name = f->name, .most = most, .pad = targets ? mr_target_pad(f) : 0};
    return MR_OK;
}

static int take_fields(mr_checkpoint *c, const mr_source_info *data, mr_loader_config *cfg, mr_error *err)
{
    mr_field_input input;
    int rc = MR_OK;
    c->field_count = 0;
    if (mr_net_takes_numbers(c->net)) {
        if (data->length_field == MR_NO_FIELD)
            return mr_error_set(
                err, MR_EINVAL,
                "%s: expected sequences of numbers, which the network of %s takes, found none", data->path,
                c->path);
        rc = add_field(c, data, data->fields[data->length_field].name, c->info.w, false, err);
        c->fields[0].pad = -1;
        cfg->width_multiple = c->info.w; /* a network's input has one width */
    }
    for (uint32_t i = 0; rc == MR_OK && mr_net_field_at(c->net, i, &input); i++)
        rc = add_field(c, data, input.name, input.h * input.w * input.c, false, err);
    if (rc == MR_OK && c->info.target_loss && c->use != MR_USE_PREDICT)
        rc = add_field(c, data, c->info.targets, c->info.classes, true, err);
    if (rc == MR_OK && c->field_count && cfg->field_count)
        return mr_error_set(err, MR_EINVAL, "fields are set: the network of %s says which it takes", c->path);
    if (c->field_count) cfg->fields = c->fields, cfg->field_count = c->field_count;
    return rc;
}

/* ---- settings, in the order of opening ---- */

int mr_checkpoint_source(const mr_checkpoint *c, mr_source_config *cfg, mr_error *err)
{
    mr_source_config mine;
    MRI_OWN(err, c);
    MRI_GIVEN(err, cfg);
    const mr_checkpoint_info *i = &c->info;
    mr_source_defaults(&mine);
    const int rc = mri_settings_take(&mine, sizeof mine, cfg, "source", err);
    if (rc || i->target_loss || c->use == MR_USE_PREDICT) return rc; /* whatever they are labelled with */
    if (c->use == MR_USE_EVALUATE) {
        mine.class_names = c->class_names;
        mine.class_count = i->classes;
        mine.classes_of = c->path;
        mine.class_first = i->label_offset;
    } else if (i->format[0] && !c->class_names) {
        mine.label_offset = i->label_offset;
    }
    mri_settings_give(cfg, cfg->struct_size, &mine, sizeof mine);
    return MR_OK;
}

int mr_checkpoint_devices(const mr_checkpoint *c, mr_devices_config *cfg, mr_error *err)
{
    mr_devices_config mine;
    MRI_OWN(err, c);
    MRI_GIVEN(err, cfg);
    const uint32_t how = c->info.convolution;
    mr_devices_defaults(&mine);
    const int rc = mri_settings_take(&mine, sizeof mine, cfg, "devices", err);
    if (rc || !how) return rc;
    mine.convolution = how >= MR_WINOGRAD_TABLE_FIRST ? MR_CONVOLUTION_AUTO : MR_CONVOLUTION_DIRECT;
    mri_settings_give(cfg, cfg->struct_size, &mine, sizeof mine);
    return MR_OK;
}

static int check_data(const mr_checkpoint *c, const mr_source_info *data, mr_error *err)
{
    const mr_checkpoint_info *i = &c->info;
    if (c->use != MR_USE_TRAIN || !i->fingerprint || i->fingerprint == data->fingerprint) return MR_OK;
    mr_error_set(err, MR_EINVAL,
                 "these are not the data that the run of %s was trained on: expected %016" PRIx64
                 ", found %016" PRIx64 "; another part of them, other labels or other files are other data",
                 c->path, i->fingerprint, data->fingerprint);
    return mr_error_at(err, data->path, MR_NOWHERE, MR_NOWHERE);
}

static void fill_rest(mr_checkpoint *c, mr_loader_config *cfg)
{
    const mr_checkpoint_info *i = &c->info;
    if (!mr_net_takes_numbers(c->net) && !cfg->channels && (i->c == 1 || i->c == 3)) cfg->channels = i->c;
    if (i->target_loss) cfg->count_unlabelled = true;
    cfg->training = c->use == MR_USE_TRAIN;
    if (cfg->training) {
        cfg->start_epoch = i->epoch;
        cfg->start_step = i->step;
    } else {
        cfg->seed = mri_order_seed(i);
        cfg->order = MR_ORDER_SEQUENTIAL;
        cfg->keep_host = c->use == MR_USE_PREDICT;
    }
    c->epochs = cfg->epochs;
}

static int fill_loader(mr_checkpoint *c, const mr_source_info *data, mr_loader_config *cfg, mr_error *err)
{
    mr_loader_config defaults;
    mr_loader_defaults(&defaults);
    int rc = check_data(c, data, err);
    if (rc == MR_OK) rc = take_kept(kept_of_loader, MRI_ARRAY_COUNT(kept_of_loader), c, &defaults, cfg, err);
    if (rc == MR_OK)
        rc = take_kept(kept_of_decode, MRI_ARRAY_COUNT(kept_of_decode), c, &defaults.decode, &cfg->decode,
                       err);
    if (rc == MR_OK) rc = take_texts(c, &defaults, cfg, err);
    if (rc == MR_OK) rc = take_fields(c, data, cfg, err);
    if (rc == MR_OK) fill_rest(c, cfg);
    return rc;
}

int mr_checkpoint_loader(mr_checkpoint *c, const mr_source *src, mr_loader_config *cfg, mr_error *err)
{
    mr_loader_config mine;
    MRI_OWN(err, c);
    MRI_GIVEN(err, src);
    MRI_GIVEN(err, cfg);
    mr_loader_defaults(&mine);
    int rc = mri_settings_take(&mine, sizeof mine, cfg, "loader", err);
    if (rc == MR_OK) rc = fill_loader(c, mr_source_info_of(src), &mine, err);
    if (rc == MR_OK) mri_settings_give(cfg, cfg->struct_size, &mine, sizeof mine);
    return rc;
}

static void fill_trainer(mr_checkpoint *c, const mr_loader_info *l, mr_trainer_config *cfg)
{
    const mr_checkpoint_info *i = &c->info;
    cfg->net = c->net;
    cfg->batch = l->batch;
    cfg->seed = i->seed;
    memcpy(cfg->mean, l->mean, sizeof cfg->mean);
    memcpy(cfg->std, l->std, sizeof cfg->std);
    cfg->uses_affine = l->uses_affine;
    cfg->fields = l->field, cfg->field_count = l->field_count;
    cfg->inference = c->use != MR_USE_TRAIN;
    cfg->update = i->update;
    cfg->update.lr = 0; /* the schedule has the rate */
    cfg->schedule = i->schedule;
    cfg->epochs = c->epochs;
    if (c->use == MR_USE_TRAIN) {
#define MRI_KEPT(member, kind, ...)      cfg->member = i->member;
#define MRI_KEPT_TEXT(member, kind, ...) cfg->member = i->member[0] ? i->member : NULL;
#include "settings/updates.rows"
        cfg->class_weights = c->class_weights, cfg->class_weight_count = c->class_weight_count;
    }
    if (c->use == MR_USE_PREDICT && mr_net_outputs(c->net, &c->outputs))
        cfg->kept = &c->outputs, cfg->kept_count = 1;
}

int mr_checkpoint_trainer(mr_checkpoint *c, const mr_loader *loader, mr_trainer_config *cfg, mr_error *err)
{
    mr_trainer_config mine;
    MRI_OWN(err, c);
    MRI_GIVEN(err, loader);
    MRI_GIVEN(err, cfg);
    mr_trainer_defaults(&mine);
    const int rc = mri_settings_take(&mine, sizeof mine, cfg, "trainer", err);
    if (rc) return rc;
    fill_trainer(c, mr_loader_info_of(loader), &mine);
    mri_settings_give(cfg, cfg->struct_size, &mine, sizeof mine);
    return MR_OK;
}
