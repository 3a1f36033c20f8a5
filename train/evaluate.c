/* train/evaluate.c: see evaluate.h. */
#include "train/evaluate.h"

#include <math.h>
#include <stdio.h>

#include "base/abi.h"
#include "base/floats.h"
#include "base/ranges.h"
#include "millrace/columns.h"
#include "train/stretch.h"

#define POLL_NS 100000000u /* how soon a stop is seen while the loader has nothing */

static bool stopped(mr_trainer *t, const volatile int *stop)
{
    mri_ranks *ranks = &t->team.ranks;
    ranks->wants_to_stop = ranks->wants_to_stop || mri_is_stopped(stop);
    return ranks->size > 1 ? ranks->stop : ranks->wants_to_stop;
}

int mri_next_batch(mr_trainer *t, mr_loader *loader, const volatile int *stop, mr_batch *out, mr_error *err)
{
    int rc = MR_EAGAIN;
    mri_range_begin(MRI_RANGE_WAIT, 0);
    while (rc == MR_EAGAIN)
        rc = stopped(t, stop) ? mr_error_set(err, MR_ECANCELED, "stopped on request")
                              : mr_loader_next(loader, out, POLL_NS, err);
    mri_range_end();
    return rc;
}

/* Why the loader cannot take a batch back the stream knows best, else the loader. */
int mri_give_back(const mr_trainer *t, mr_loader *loader, mr_batch *b, int rc, mr_error *err)
{
    mr_batch none;
    const int given = mr_loader_release(loader, b, mr_trainer_streams(t));
    if (rc || given == MR_OK) return rc;
    for (uint32_t r = 0; r < t->team.count; r++)
        if (mri_team_stream_failed(&t->team, r, err)) return given;
    mr_error_set(err, given, "cannot give a batch back: %s", mr_status_text(given));
    mr_loader_next(loader, &none, 0, err);
    return given;
}

/* "0.5 0.5 0.5", as many numbers as there are channels. */
static const char *list_numbers(const float number[4], uint32_t count, char out[96])
{
    size_t used = 0;
    out[0] = '\0';
    for (uint32_t c = 0; c < count && c < 4; c++)
        used += (size_t)snprintf(out + used, 96 - used, "%s%.9g", c ? " " : "", (double)number[c]);
    return out;
}

/* The normalisation of the loader's augmentation has an effect only in the trainer's input. */
static int check_numbers(const mr_trainer *t, const mr_loader_info *info, mr_error *err)
{
    const mr_trainer_config *cfg = &t->cfg;
    const mr_net *net = cfg->net;
    char mine[2][96], its[2][96];
    bool same = cfg->uses_affine == info->uses_affine;
    if (net->numbers || net->bare || !info->height) return MR_OK;
    for (uint32_t c = 0; c < net->c && c < 4; c++)
        same = same && cfg->mean[c] == info->mean[c] && cfg->std[c] == info->std[c];
    if (same) return MR_OK;
    return mr_error_set(
        err, MR_EINVAL,
        "the trainer has mean %s, std %s, uses_affine %d; the loader with augment %.160s has mean "
        "%s, std %s, uses_affine %d: copy them from mr_loader_info into mr_trainer_config (numbers of "
        "your own go into the augmentation, as normalise())",
        list_numbers(cfg->mean, net->c, mine[0]), list_numbers(cfg->std, net->c, mine[1]), cfg->uses_affine,
        info->augment ? info->augment : "none", list_numbers(info->mean, net->c, its[0]),
        list_numbers(info->std, net->c, its[1]), info->uses_affine);
}

int mri_check_fields(const mr_trainer *t, const mr_loader_info *info, mr_error *err)
{
    const mr_net *net = t->cfg.net;
    if (info->device_bytes == 0) /* its host memory would be filled again while a queued step reads it */
        return mr_error_set(err, MR_EINVAL,
                            "the loader was opened without devices: give it the devices of the trainer "
                            "(mr_loader_config.devices, device_count)");
    const bool pictures = !mr_net_takes_numbers(net) && info->height;
    if (pictures && (net->h != info->height || net->w != info->width || net->c != info->channels))
        return mr_error_set(
            err, MR_EINVAL,
            "network %s takes pictures of %u x %u x %u, the loader brings %u x %u x %u: its augmentation "
            "needs resize(%ux%u), and its channels are to be %u",
            mr_net_name(net), net->h, net->w, net->c, info->height, info->width, info->channels, net->h,
            net->w, net->c);
    const int rc = check_numbers(t, info, err);
    if (rc) return rc;
    if (!mr_net_takes_numbers(net)) return mri_trainer_check_fields(t, info, err);
    const mr_loader_field_info *field = &info->field[0];
    if (info->field_count > 0 && field->role == MR_ROLE_PLAIN && field->dtype == MR_I32 &&
        field->element_bytes == sizeof(int32_t))
        return mri_trainer_check_fields(t, info, err);
    return mr_error_set(
        err, MR_EINVAL,
        "network %s takes sequences: expected them as the loader's field 0, numbers of type i32, found %s%s",
        mr_net_name(t->cfg.net), info->field_count ? mr_dtype_name(field->dtype) : "no field",
        info->field_count && field->ndim ? " in more dimensions" : "");
}

/* The loader has no epoch left for the pass. at: the first batch that it delivered, or NULL. */
static int ended(const mri_position *at, mr_error *err)
{
    if (!at || at->step == 0)
        return mr_error_set(err, MR_EINVAL,
                            "the loader ended before the evaluation did: open it with more epochs");
    return mr_error_set(err, MR_EINVAL,
                        "the loader was at step %llu of its last epoch, %llu; an evaluation begins with the "
                        "first batch of an epoch: open the loader anew, or with more epochs",
                        (unsigned long long)at->step, (unsigned long long)at->epoch);
}

/* The first batch of an epoch; the rest of an epoch that has begun is discarded. */
static int first_batch(mr_trainer *t, mr_loader *loader, const volatile int *stop, mr_batch *out,
                       mr_error *err)
{
    int rc = mri_next_batch(t, loader, stop, out, err);
    if (rc) return rc == MR_EEND ? ended(NULL, err) : rc;
    const mri_position at = {out->epoch, out->step};
    while (rc == MR_OK && out->step > 0) {
        rc = mri_give_back(t, loader, out, MR_OK, err);
        if (rc == MR_OK) rc = mri_next_batch(t, loader, stop, out, err);
    }
    return rc == MR_EEND ? ended(&at, err) : rc;
}

/* Where what comes out of a batch goes. */
typedef struct teller {
    const mr_outputs_config *cfg; /* NULL: nowhere */
    mr_point point;
    uint32_t classes, width; /* width: numbers that the network gives for a sample, 1 or classes */
    bool targets;            /* they are compared with targets, not logits of classes */
    float factor;
    float *values;
    void *unlabelled[MR_LOADER_MAX_PARTS]; /* nobody wants sums: of each replica, in place of labels */
} teller;

/* A loss refuses labels that the network has no class for; whose labels they are matters to sums alone. */
static int make_unlabelled(mr_trainer *t, teller *to, uint32_t batch, mr_error *err)
{
    const size_t bytes = batch * sizeof(int32_t);
    int rc = MR_OK;
    for (uint32_t r = 0; rc == MR_OK && r < t->team.count; r++) {
        rc = mr_device_alloc(t->team.devices[r], bytes, &to->unlabelled[r], err);
        if (rc) return rc;
        rc = mr_fill_async(t->team.replicas[r].stream, to->unlabelled[r], 0xFF, bytes); /* -1, every one */
        if (rc) return mri_team_queue_failed(&t->team, r, rc, "an evaluation", err);
    }
    return rc;
}

/* The batch as the network gets it. */
static int forward(mr_trainer *t, const teller *to, const mr_batch *b, mr_error *err)
{
    mr_part parts[MR_LOADER_MAX_PARTS];
    mr_batch own = *b;
    if (!to->unlabelled[0] || b->part_count != t->team.count) return mr_trainer_forward(t, b, err);
    for (uint32_t p = 0; p < b->part_count; p++) parts[p] = b->parts[p], parts[p].labels = to->unlabelled[p];
    own.parts = parts;
    return mr_trainer_forward(t, &own, err);
}

static int begin_telling(mr_trainer *t, const mr_loader *loader, const mr_outputs_config *cfg, bool sums,
                         teller *to, mr_error *err)
{
    const mr_net *net = t->cfg.net;
    const uint32_t batch = mr_loader_info_of(loader)->batch;
    *to = (teller){.cfg = cfg};
    if (!cfg) return MR_OK;
    if (!mr_net_outputs(net, &to->point))
        return mr_error_set(err, MR_EINVAL, "network %s has no classes: it has no outputs to tell",
                            mr_net_name(net));
    to->targets = mr_net_target_count(net) > 0;
    to->classes = mri_net_told(net);
    to->width = to->targets ? to->classes : to->point ? net->layers[to->point - 1].out_c : net->c;
    to->factor = net->logit_factor > 0 && !to->targets ? net->logit_factor : 1;
    to->values = malloc((size_t)batch * to->classes * sizeof *to->values);
    if (!to->values) return mr_error_set(err, MR_ENOMEM, "no memory for the outputs of a batch");
    return sums ? MR_OK : make_unlabelled(t, to, batch, err);
}

/* Ends once all queued work is done. */
static void end_telling(mr_trainer *t, teller *to)
{
    free(to->values);
    for (uint32_t r = 0; r < t->team.count; r++) {
        if (!to->unlabelled[r]) continue;
        mr_stream_sync(t->team.replicas[r].stream, NULL);
        mr_device_free(t->team.devices[r], to->unlabelled[r]);
    }
}

/* One logit stands for class 1, against a 0 for class 0. In place, from behind. */
static void widen(const teller *to, uint32_t count)
{
    for (uint32_t i = count; i-- > 0;) {
        to->values[2 * i + 1] = to->values[i];
        to->values[2 * i] = 0;
    }
}

static int tell(mr_trainer *t, const teller *to, const mr_batch *b, mr_error *err)
{
    if (!to->cfg) return MR_OK;
    if (!b->ids || !b->labels)
        return mr_error_set(err, MR_EINVAL,
                            "the batch does not say whose outputs they are: open the loader with keep_host");
    int rc = mri_trainer_batch_values(t, b, to->point, to->values, err);
    if (rc) return rc;
    for (uint64_t i = 0; i < (uint64_t)b->count * to->width; i++) to->values[i] *= to->factor;
    if (to->width == 1 && to->classes == 2) widen(to, b->count);
    const mr_outputs o = {.struct_size = sizeof o,
                          .ids = b->ids,
                          .labels = b->labels,
                          .count = b->count,
                          .classes = to->classes,
                          .logits = to->values};
    return to->cfg->on_outputs(to->cfg->context, &o, err);
}

/* The batches of one epoch, from its first. */
static int pass_batches(mr_trainer *t, mr_loader *loader, const volatile int *stop, const teller *to,
                        mr_error *err)
{
    int rc = MR_OK;
    for (bool first = true, last = false; rc == MR_OK && !last; first = false) {
        mr_batch b;
        rc = first ? first_batch(t, loader, stop, &b, err) : mri_next_batch(t, loader, stop, &b, err);
        if (rc == MR_EEND) rc = ended(NULL, err);
        if (rc) break;
        last = b.last;
        rc = forward(t, to, &b, err);
        if (rc == MR_OK) rc = tell(t, to, &b, err);
        rc = mri_give_back(t, loader, &b, rc, err);
    }
    return rc;
}

/* One pass; out may be NULL. Sums of an earlier pass, also of one that failed or stopped, do not count, and a
 * pass that fails leaves none. */
static int pass(mr_trainer *t, mr_loader *loader, const volatile int *stop, const teller *to, mr_metrics *out,
                mr_error *err)
{
    int rc = mri_check_fields(t, mr_loader_info_of(loader), err);
    if (rc) return rc;
    rc = mri_sums_discard(&t->flights, MRI_SUMS_EVALUATION, err);
    if (rc) return rc;
    rc = pass_batches(t, loader, stop, to, err);
    if (rc == MR_OK && out) return mri_trainer_take_sums(t, MRI_SUMS_EVALUATION, out, err);
    const int dropped =
        t->team.failed ? MR_OK : mri_sums_discard(&t->flights, MRI_SUMS_EVALUATION, rc ? NULL : err);
    return rc ? rc : dropped;
}

int mri_evaluate(mr_trainer *t, mr_loader *loader, const volatile int *stop, mr_metrics *out, mr_error *err)
{
    const teller nowhere = {0};
    mri_range_begin(MRI_RANGE_EVALUATE, t->updates);
    const int rc = pass(t, loader, stop, &nowhere, out, err);
    mri_range_end();
    return rc;
}

/* Evaluate one epoch and report outputs as cfg says (its stop included). out NULL: no sums are needed, and
 * labels may be any. */
static int evaluate_outputs(mr_trainer *t, mr_loader *loader, const mr_outputs_config *cfg, mr_metrics *out,
                            mr_error *err)
{
    teller to;
    mri_range_begin(MRI_RANGE_EVALUATE, t->updates);
    int rc = begin_telling(t, loader, cfg, out != NULL, &to, err);
    if (rc == MR_OK) rc = pass(t, loader, cfg->stop, &to, out, err);
    end_telling(t, &to);
    mri_range_end();
    return rc;
}

int mri_check_labels(const mr_trainer *t, const mr_loader *loader, mr_error *err)
{
    const mr_loader_info *info = mr_loader_info_of(loader);
    const char *net = mr_net_name(t->cfg.net);
    if (mr_net_class_count(t->cfg.net) && !info->labelled)
        return mr_error_set(err, MR_EINVAL,
                            "network %s predicts classes: expected data with labels, found none", net);
    if (info->counts) return MR_OK;
    return mr_error_set(
        err, MR_EINVAL,
        "data without labels: network %s needs none, but the loader's samples do not count; open it with "
        "count_unlabelled",
        net);
}

static int check_order(const mr_loader_info *v, mr_error *err)
{
    static const char *const orders[] = {[MR_ORDER_SHUFFLE] = "MR_ORDER_SHUFFLE",
                                         [MR_ORDER_BLOCK] = "MR_ORDER_BLOCK",
                                         [MR_ORDER_SEQUENTIAL] = "MR_ORDER_SEQUENTIAL",
                                         [MR_ORDER_BALANCED] = "MR_ORDER_BALANCED"};
    if (v->training)
        return mr_error_set(
            err, MR_EINVAL,
            "the validation loader has training true, and augment %.200s: expected false, so that "
            "every validation is of the same pixels",
            v->augment ? v->augment : "none");
    if (!v->sampled && v->order != MR_ORDER_SEQUENTIAL)
        return mr_error_set(
            err, MR_EINVAL,
            "the validation loader has order %s: expected MR_ORDER_SEQUENTIAL or a sampler, so that "
            "every validation is of the same batches",
            orders[v->order]);
    if (v->repeats > 1)
        return mr_error_set(err, MR_EINVAL,
                            "the validation loader has repeats %u: expected at most 1, so that every sample "
                            "is validated once",
                            v->repeats);
    if (v->dropped)
        return mr_error_set(
            err, MR_EINVAL,
            "the validation loader has tail MR_TAIL_DROP, which drops %llu of %llu samples: expected "
            "MR_TAIL_KEEP or MR_TAIL_PAD",
            (unsigned long long)v->dropped, (unsigned long long)(v->epoch_samples + v->dropped));
    return MR_OK;
}

/* Classes are matched by name where both sets have names. */
static int check_classes(const mr_source_info *val, const mr_source_info *train, mr_error *err)
{
    if (!val->class_names || !train->class_names) return MR_OK;
    for (uint32_t k = 0; k < val->class_count; k++) {
        const bool more = k >= train->class_count;
        if (!val->class_names[k][0]) continue; /* a number without samples */
        if (!more && strcmp(val->class_names[k], train->class_names[k]) == 0) continue;
        return mr_error_set(
            err, MR_EINVAL,
            "class %u is \"%.80s\" in the validation data %.150s, and %s%.80s%s in the training "
            "data %.150s: open the validation data with class_names and class_count of the "
            "training data (mr_source_config)",
            k, val->class_names[k], val->path, more ? "missing" : "\"", more ? "" : train->class_names[k],
            more ? "" : "\"", train->path);
    }
    return MR_OK;
}

int mri_check_validation(const mr_trainer *t, const mr_loader *val, const mr_loader *train, mr_error *err)
{
    const int rc = check_order(mr_loader_info_of(val), err);
    if (rc) return rc;
    const mr_source *of_val = mr_loader_source(val), *of_train = mr_loader_source(train);
    const mr_source_info *info = mr_source_info_of(of_train);
    if (mr_net_target_loss(t->cfg.net)) {
        const char *const *names = NULL;
        const uint32_t count = mr_source_columns(of_train, NULL, &names);
        return mr_source_columns_check(of_val, names, count, info->path, err);
    }
    return mr_net_class_count(t->cfg.net) ? check_classes(mr_source_info_of(of_val), info, err) : MR_OK;
}

int mr_evaluate(mr_trainer *t, mr_loader *loader, double *loss, double *accuracy, uint64_t *count,
                mr_error *err)
{
    return mr_evaluate_until(t, loader, NULL, loss, accuracy, count, err);
}

int mr_evaluate_until(mr_trainer *t, mr_loader *loader, const volatile int *stop, double *loss,
                      double *accuracy, uint64_t *count, mr_error *err)
{
    MRI_DEFAULT_FLOATS;
    MRI_OWN(err, t);
    MRI_GIVEN(err, loader);
    mr_metrics m;
    int rc = mri_trainer_enter(t, "mr_evaluate", err);
    if (rc) return rc;
    rc = mri_check_labels(t, loader, err);
    if (rc == MR_OK) rc = mri_evaluate(t, loader, stop, &m, err);
    rc = mri_trainer_leave(t, "mr_evaluate", rc, err);
    if (rc && rc != MR_ECANCELED) mri_ranks_fail(&t->team.ranks, err);
    if (rc) return rc;
    if (loss) *loss = mri_mean_of(m.loss_sum, m.count);
    if (accuracy) *accuracy = mri_accuracy_of(t, m.correct, m.count);
    if (count) *count = m.count;
    return MR_OK;
}

void mr_outputs_defaults_sized(mr_outputs_config *cfg, size_t struct_size)
{
    const mr_outputs_config full = {.struct_size = sizeof full};
    mri_settings_give(cfg, struct_size, &full, sizeof full);
}

int mr_evaluate_outputs(mr_trainer *t, mr_loader *loader, const mr_outputs_config *cfg, double *loss,
                        double *accuracy, uint64_t *count, mr_error *err)
{
    MRI_DEFAULT_FLOATS;
    MRI_OWN(err, t);
    MRI_GIVEN(err, loader);
    mr_outputs_config own = {.struct_size = sizeof own};
    mr_metrics m = {0};
    const bool sums = loss || accuracy || count;
    int rc = mri_settings_take(&own, sizeof own, cfg, "outputs", err);
    if (rc == MR_OK && !own.on_outputs)
        rc = mr_error_set(err, MR_EINVAL, "outputs: expected a function to tell them to");
    if (rc == MR_OK) rc = mri_trainer_enter(t, "mr_evaluate_outputs", err);
    if (rc) return rc;
    if (sums) rc = mri_check_labels(t, loader, err);
    if (rc == MR_OK) rc = evaluate_outputs(t, loader, &own, sums ? &m : NULL, err);
    rc = mri_trainer_leave(t, "mr_evaluate_outputs", rc, err);
    if (rc && rc != MR_ECANCELED) mri_ranks_fail(&t->team.ranks, err);
    if (rc) return rc;
    if (loss) *loss = mri_mean_of(m.loss_sum, m.count);
    if (accuracy) *accuracy = mri_accuracy_of(t, m.correct, m.count);
    if (count) *count = m.count;
    return MR_OK;
}

/* ------------------------------------------------------------------------------ points inside an epoch */

int mri_check_evaluations(const mr_fit_config *cfg, mr_error *err)
{
    if (!cfg->eval_steps && !cfg->eval_at_count) return MR_OK;
    if (!cfg->val)
        return mr_error_set(err, MR_EINVAL, "evaluations inside an epoch: expected validation data");
    if (cfg->eval_at_count && !cfg->eval_at)
        return mr_error_set(err, MR_EINVAL, "%u points to evaluate at: expected a list", cfg->eval_at_count);
    for (uint32_t i = 0; i < cfg->eval_at_count; i++)
        if (!(cfg->eval_at[i] > 0) || isinf(cfg->eval_at[i]))
            return mr_error_set(err, MR_EINVAL, "an evaluation at epoch %g: expected a number above 0",
                                cfg->eval_at[i]);
    return MR_OK;
}

bool mri_evaluation_is_due(const mr_fit_config *cfg, mri_position at, uint64_t steps_per_epoch,
                           uint64_t updates)
{
    const double slack = 1e-6; /* of a step: 0.07 of 100 steps are 7 */
    const double done = (double)at.epoch * (double)steps_per_epoch + (double)at.step;
    if (cfg->eval_steps && updates % cfg->eval_steps == 0) return true;
    for (uint32_t i = 0; i < cfg->eval_at_count; i++)
        if (ceil(cfg->eval_at[i] * (double)steps_per_epoch - slack) == done) return true;
    return false;
}
