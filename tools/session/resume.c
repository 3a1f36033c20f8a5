/* tools/session/resume.c: see session.h. What --resume may do with a setting is in its row (groups.h); here
 * is where the two values come from. */
#include "tools/session/session.h"

#include <inttypes.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "tools/cli/exit.h"
#include "tools/cli/output.h"
#include "tools/session/schedule.h"

#define TO_GO_ON "leave it out to go on with that"

static bool was_given(const resume_point *p, const char *option)
{
    return options_was_given(p->given, option);
}

/* ---- another value than the checkpoint's ---- */

/* What its row lets --resume do with `now`: EXIT_MISUSED, or the run goes on with it. */
static int decide(const resume_point *p, const mri_setting *s, const char *then, const char *now)
{
    switch (s->resume) {
    case MRI_RESUME_FREE:
    case MRI_RESUME_TAKE: return EXIT_DONE;
    case MRI_RESUME_SAME:
        say("--%s: the checkpoint was trained with %s, found %s; " TO_GO_ON, s->option, then, now);
        return EXIT_MISUSED;
    case MRI_RESUME_AGAIN:
        say("--%s: the checkpoint was trained with %s, found %s; give the same value to go on", s->option,
            then, now);
        return EXIT_MISUSED;
    case MRI_RESUME_OVERRIDE: break;
    }
    if (p->override) {
        say("--%s: the checkpoint was trained with %s; from here on %s", s->option, then, now);
        return EXIT_DONE;
    }
    say("--%s: the checkpoint was trained with %s, found %s; " TO_GO_ON
        ", or add --override to change it from here on",
        s->option, then, now);
    return EXIT_MISUSED;
}

/* The same for values that are read elsewhere: of a model, of a loader, of two options together. */
static int changed(const resume_point *p, const char *option, const char *then, const char *now)
{
    return decide(p, group_option(option), then, now);
}

static int changed_float(const resume_point *p, const char *option, float then, float now)
{
    char a[32], b[32];
    return changed(p, option, float_text(then, a, sizeof a), float_text(now, b, sizeof b));
}

static int changed_whole(const resume_point *p, const char *option, int64_t then, int64_t now)
{
    char a[24], b[24];
    snprintf(a, sizeof a, "%" PRId64, then);
    snprintf(b, sizeof b, "%" PRId64, now);
    return changed(p, option, a, b);
}

/* ---- before anything is opened ---- */

static const mri_kept_setting kept_of_run[] = {
#define MRI_KEPT(...) MRI_KEPT_ROW(run_args, __VA_ARGS__),
#include "settings/batches.rows"
};

static const mri_kept_setting kept_of_data[] = {
#define MRI_KEPT(...) MRI_KEPT_ROW(data_args, __VA_ARGS__),
#include "settings/decode.rows"
};

/* Without the option, args gets the checkpoint's value, if the checkpoint knows it; with another value, what
 * the row says of --resume happens. Of a setting that the model or --scale completes the caller decides
 * later. */
static int fill_kept(const resume_point *p, const mri_kept_setting *kept, size_t count, const void *from,
                     void *args)
{
    mri_kept_texts t;
    char why[256];
    int status = EXIT_DONE;
    for (size_t i = 0; status == EXIT_DONE && i < count; i++) {
        const mri_setting *s = &kept[i].now;
        if (!mri_setting_holds(&kept[i].then, from, why, sizeof why)) continue;
        if (!mri_kept_differs(&kept[i], from, args, &t)) continue;
        if (was_given(p, s->option)) {
            status = s->of_model ? EXIT_DONE : decide(p, s, t.then, t.now);
        } else if (!mri_setting_parse(s, args, t.then, why, sizeof why)) {
            say("%s", why);
            return EXIT_MISUSED;
        }
    }
    return status;
}

static int fill_order(const resume_point *p, run_args *run, bool scale)
{
    mr_checkpoint_info c = *p->from;
    if (!c.repeats) c.repeats = 1;
    if (!run->repeats) run->repeats = 1;
    if (c.order != MR_ORDER_BLOCK && was_given(p, "block")) c.block = run->block; /* nothing depends on it */
    if (scale) c.batch = run->batch;                                              /* not yet multiplied */
    if (!was_given(p, "augment") && c.augment[0]) run->augment = p->from->augment;
    return fill_kept(p, kept_of_run, OPT_COUNT(kept_of_run), &c, run);
}

/* Checkpoints of programs before runs had a name say nothing of EXIF. */
static bool tells_exif(const mr_checkpoint_info *c)
{
    static const uint8_t none[sizeof c->run];
    return memcmp(c->run, none, sizeof none) != 0;
}

static int fill_data(const resume_point *p, data_args *data)
{
    mr_checkpoint_info c = *p->from;
    if (!tells_exif(&c)) c.ignore_exif = data->ignore_exif;
    return fill_kept(p, kept_of_data, OPT_COUNT(kept_of_data), &c, data);
}

void resume_tell_prepared(const mr_checkpoint_info *from, const opt_given *given, const data_args *data,
                          const char *augment)
{
    mri_kept_texts t;
    char why[256];
    mr_checkpoint_info c = *from;
    if (!tells_exif(&c)) c.ignore_exif = data->ignore_exif;
    if (augment && c.augment[0] && options_was_given(given, "augment") && strcmp(c.augment, augment) != 0)
        say("--augment: the checkpoint was trained with %s; here %s", c.augment, augment);
    for (size_t i = 0; i < OPT_COUNT(kept_of_data); i++) {
        const mri_kept_setting *k = &kept_of_data[i];
        if (options_was_given(given, k->now.option) && mri_setting_holds(&k->then, &c, why, sizeof why) &&
            mri_kept_differs(k, &c, data, &t))
            say("--%s: the checkpoint was trained with %s; here %s", k->now.option, t.then, t.now);
    }
}

static bool is_winograd(uint32_t convolution) { return convolution >= MR_WINOGRAD_TABLE_FIRST; }

static uint32_t choice_of(uint32_t convolution)
{
    return is_winograd(convolution) ? MR_CONVOLUTION_AUTO : MR_CONVOLUTION_DIRECT;
}

void resume_fill_convolution(const mr_checkpoint_info *from, const opt_given *given, device_args *d)
{
    if (from->convolution && !options_was_given(given, "convolution"))
        d->convolution = choice_of(from->convolution);
}

/* The field may be named without its ending. */
static bool names_field(const char *given, const char *field)
{
    const size_t n = strlen(given);
    return strncmp(field, given, n) == 0 && (field[n] == '\0' || field[n] == '.');
}

static int fill_objective(const resume_point *p, objective_args *o)
{
    const mr_checkpoint_info *c = p->from;
    if (!was_given(p, "loss")) o->loss = c->target_loss;
    int status = EXIT_DONE;
    if (o->loss != c->target_loss)
        status = changed(p, "loss", objective_names[c->target_loss], objective_names[o->loss]);
    if (status == EXIT_DONE && o->targets && !names_field(o->targets, c->targets))
        status = changed(p, "targets", c->targets[0] ? c->targets : "none", o->targets);
    o->targets = c->targets[0] ? c->targets : NULL;
    return status;
}

static int check_part(const resume_point *p, const char *option, uint32_t then, uint32_t now)
{
    return then == 0 || then == now || !was_given(p, option) ? EXIT_DONE
                                                             : changed_whole(p, option, then, now);
}

/* How a batch is cut, and with how many threads a part is computed: both change the last bits of sums. */
static int fill_parts(const resume_point *p, session_args *a)
{
    const mr_checkpoint_info *c = p->from;
    if (c->parts > 1 && !was_given(p, "parts")) {
        if (was_given(p, "threads")) {
            say("--threads: the checkpoint's batches have %u parts, each computed with --part-threads; leave "
                "--threads out, or give --override --parts 1 --part-threads N, which gives other weights",
                c->parts);
            return EXIT_MISUSED;
        }
        a->part.parts = c->parts;
    }
    if (a->part.parts && !was_given(p, "part-threads")) a->part.part_threads = c->part_threads;
    const int status = check_part(p, "parts", c->parts, a->part.parts);
    return status ? status : check_part(p, "part-threads", c->part_threads, a->part.part_threads);
}

int resume_fill(const resume_point *p, session_args *a)
{
    const mr_checkpoint_info *c = p->from;
    const char *rule = mr_update_name(&c->update);
    if (!a->model.model) a->model.model = c->model;
    if (!a->model.optimizer && mr_update_rule_find(rule)) a->model.optimizer = rule;
    const mr_model *model = mr_model_find(a->model.model);
    const char *name = model ? model->name : a->model.model;
    int status = EXIT_DONE;
    if ((model || c->net_bytes) && strcmp(c->model, name) != 0) status = changed(p, "model", c->model, name);
    if (status) return status;
    if (c->net_bytes) model = NULL; /* whatever it is called */
    if (((model && !model->numbers) || c->net_bytes) && !was_given(p, "channels") && (c->c == 1 || c->c == 3))
        a->run.channels = c->c;
    status = fill_parts(p, a);
    if (status) return status;
    resume_fill_convolution(c, p->given, &a->device);
    status = fill_objective(p, &a->objective);
    if (status == EXIT_DONE) status = fill_order(p, &a->run, a->model.scale);
    return status == EXIT_DONE ? fill_data(p, &a->data_opts) : status;
}

/* ---- the data and the rule ---- */

static int check_data(const resume_point *p, const mr_source_info *info)
{
    const mr_checkpoint_info *c = p->from;
    if (c->fingerprint && c->fingerprint != info->fingerprint) {
        say("%s: these are not the data the checkpoint was trained on (%016" PRIx64 ", found %016" PRIx64
            "); --take, --hold-out and the options of the choice (--where, --only-classes, "
            "--rename-classes, --classes-from, --dedup, --take-each, --sample) say which of their samples, "
            "and 'millrace withdraw' which are withdrawn",
            info->path, c->fingerprint, info->fingerprint);
        return EXIT_FAILED;
    }
    if (strcmp(c->format, info->format) != 0 || c->label_offset == info->label_offset) return EXIT_DONE;
    return changed_whole(p, "label-offset", c->label_offset, info->label_offset);
}

static int take_number(const resume_point *p, const char *option, bool given, float now, float *rule)
{
    if (!given || now == *rule) return EXIT_DONE;
    const int status = changed_float(p, option, *rule, now);
    if (status == EXIT_DONE) *rule = now;
    return status;
}

static int take_schedule(const resume_point *p, const mr_schedule *now, mr_schedule *rule)
{
    char then[512], found[512];
    if (schedule_same(now, rule)) return EXIT_DONE;
    const int status = changed(p, "schedule", schedule_text(rule, then, sizeof then),
                               schedule_text(now, found, sizeof found));
    const float lr = rule->lr;
    if (status == EXIT_DONE) *rule = *now;
    rule->lr = lr;
    return status;
}

static void tell_epochs(const resume_point *p, const run_args *run, const mr_schedule *schedule)
{
    const bool spans =
        schedule->kind == MR_LR_COSINE || schedule->kind == MR_LR_LINEAR || schedule->kind == MR_LR_ONE_CYCLE;
    if (!spans || !p->from->epochs || p->from->epochs == run->epochs) return;
    say("--epochs: the %s schedule was laid over %" PRIu64 " epochs, and is over %" PRIu64 " from here on",
        schedule_name(schedule), p->from->epochs, run->epochs);
}

static int take_frozen(const resume_point *p, const session_rule *now, session_rule *rule)
{
    const char *then = rule->freeze ? rule->freeze : "none", *found = now->freeze ? now->freeze : "none";
    if (!was_given(p, "freeze") || strcmp(then, found) == 0) return EXIT_DONE;
    const int status = changed(p, "freeze", then, found);
    if (status == EXIT_DONE) rule->freeze = now->freeze;
    return status;
}

/* rule has the checkpoint's values. */
static int take_kept(const resume_point *p, const session_rule *now, session_rule *rule)
{
    mri_kept_texts t;
    char why[256];
    int status = EXIT_DONE;
    for (size_t i = 0; status == EXIT_DONE && i < RULE_KEPT; i++) {
        const mri_setting *s = &rule_kept[i];
        const mri_kept_setting kept = {.now = *s, .then = *s};
        if (!was_given(p, s->option) || !mri_kept_differs(&kept, rule, now, &t)) continue;
        status = decide(p, s, t.then, t.now);
        if (status == EXIT_DONE) mri_setting_parse(s, rule, t.now, why, sizeof why);
    }
    return status;
}

static int take_rule(const resume_point *p, const session_args *a, const session_rule *now,
                     session_rule *rule)
{
    const struct {
        const char *option;
        bool given;
        float now, *rule;
    } numbers[] = {
        {"lr", was_given(p, "lr") || a->model.scale, now->schedule.lr, &rule->schedule.lr},
        {"momentum", was_given(p, "momentum"), now->update.momentum, &rule->update.momentum},
        {"weight-decay", was_given(p, "weight-decay"), now->update.weight_decay, &rule->update.weight_decay},
    };
    int status = EXIT_DONE;
    for (size_t i = 0; status == EXIT_DONE && i < OPT_COUNT(numbers); i++)
        status = take_number(p, numbers[i].option, numbers[i].given, numbers[i].now, numbers[i].rule);
    if (status == EXIT_DONE) status = take_kept(p, now, rule);
    return status ? status : take_frozen(p, now, rule);
}

int resume_rule(const resume_point *p, const session_args *a, tool_session *s, const run_args *run)
{
    const mr_checkpoint_info *c = p->from;
    const session_rule now = s->rule;
    int status = c->batch == run->batch ? EXIT_DONE : changed_whole(p, "batch", c->batch, run->batch);
    if (status == EXIT_DONE) status = check_data(p, mr_source_info_of(s->src));
    if (status == EXIT_DONE && was_given(p, "optimizer") && now.update.kind != c->update.kind)
        status = changed(p, "optimizer", mr_update_name(&c->update), mr_update_name(&now.update));
    if (status) return status;
    s->rule = (session_rule){.update = c->update, .schedule = c->schedule};
#define MRI_KEPT(member, kind, ...)      s->rule.member = c->member;
#define MRI_KEPT_TEXT(member, kind, ...) s->rule.member = c->member[0] ? c->member : NULL;
#include "settings/updates.rows"
    if (was_given(p, "optimizer") && now.update.nesterov != c->update.nesterov)
        status = changed(p, "optimizer", mr_update_name(&c->update), mr_update_name(&now.update));
    if (status == EXIT_DONE && was_given(p, "schedule"))
        status = take_schedule(p, &now.schedule, &s->rule.schedule);
    if (status == EXIT_DONE) status = take_rule(p, a, &now, &s->rule);
    s->rule.update.lr = s->rule.schedule.lr;
    if (status == EXIT_DONE) tell_epochs(p, run, &s->rule.schedule);
    return status;
}

int resume_weights(const resume_point *p, tool_session *s, float *then, uint32_t count)
{
    objective *o = &s->objective;
    if (!was_given(p, "class-weights")) {
        o->class_weights = then, o->class_weight_count = count;
        return EXIT_DONE;
    }
    const int status = objective_take_weights(o, s->src, s->net);
    const bool same = o->class_weight_count == count &&
                      (count == 0 || memcmp(o->class_weights, then, count * sizeof *then) == 0);
    free(then);
    return status || same ? status : changed(p, "class-weights", count ? "others" : "none", o->weights);
}

int resume_check_augment(const resume_point *p, const char *now)
{
    if (!p->from->augment[0] || strcmp(p->from->augment, now) == 0) return EXIT_DONE;
    return changed(p, "augment", p->from->augment, now);
}

/* --convolution auto may come to direct, and then is no other choice. */
int resume_check_convolution(const resume_point *p, const session_args *a, const tool_session *s,
                             const char *name)
{
    const uint32_t now = mr_trainer_convolution(s->trainer), then = p->from->convolution;
    if (now == 0 || then == now || (!is_winograd(then) && !is_winograd(now))) return EXIT_DONE;
    if (then && choice_of(then) != a->device.convolution)
        return changed(p, "convolution", group_choice("convolution", choice_of(then)),
                       group_choice("convolution", a->device.convolution));
    const char *how = !then ? "it does not say how its convolutions were computed, some are Winograd's now "
                              "(--convolution direct: none, as in versions before)"
                      : is_winograd(now)
                          ? "its convolutions were Winograd's by another version's table of shapes"
                          : "some of its convolutions were Winograd's, which are not to be had here";
    say("%s: %s; the run goes on with other last bits", name, how);
    return EXIT_DONE;
}
