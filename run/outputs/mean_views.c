/* run/outputs/mean_views.c: the mean of a network's probabilities over several views of each sample. The
 * loader shows one view in each of its epochs. */
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/abi.h"
#include "millrace/outputs.h"

struct mr_views {
    uint32_t count;
    char augment[768]; /* the specification followed by views() */
    uint32_t classes, pass;
    uint64_t samples, room, at; /* of the sums; where the next batch of a pass begins */
    float *sum;                 /* samples x classes */
    mr_outputs_config cfg;      /* the caller's */
    mr_views_sums sums;
};

int mr_views_create(mr_views **out, const char *name, const char *augment, mr_error *err)
{
    mr_augment *a;
    MRI_GIVEN(err, out);
    *out = NULL;
    MRI_GIVEN(err, name);
    mr_views *v = calloc(1, sizeof *v);
    if (!v) return mr_error_set(err, MR_ENOMEM, "out of memory for views");
    const int length =
        snprintf(v->augment, sizeof v->augment, "%s,views(%s)", augment ? augment : "none", name);
    int rc = MR_OK;
    if (length < 0 || (size_t)length >= sizeof v->augment)
        rc = mr_error_set(err, MR_EINVAL, "the augmentation is too long");
    if (rc == MR_OK) rc = mr_augment_create(&a, v->augment, false, err);
    if (rc) {
        free(v);
        return rc;
    }
    v->count = mr_augment_views(a);
    mr_augment_destroy(a);
    *out = v;
    return MR_OK;
}

void mr_views_destroy(mr_views *v)
{
    if (v) free(v->sum);
    free(v);
}

const char *mr_views_augment(const mr_views *v) { return v ? v->augment : NULL; }
uint32_t mr_views_count(const mr_views *v) { return v ? v->count : 0; }

static int make_room(mr_views *v, uint64_t samples, mr_error *err)
{
    if (samples <= v->room) return MR_OK;
    const uint64_t room = samples + samples / 2;
    float *more = NULL;
    if (room < SIZE_MAX / sizeof *more / v->classes)
        more = realloc(v->sum, (size_t)(room * v->classes) * sizeof *more);
    if (!more)
        return mr_error_set(err, MR_ENOMEM, "no memory for the outputs of %llu samples",
                            (unsigned long long)samples);
    v->sum = more;
    v->room = room;
    return MR_OK;
}

/* sum += the probabilities that logits stand for. */
static void add(float *sum, const float *logits, uint32_t classes)
{
    const double most = (double)logits[mr_outputs_best(logits, classes)];
    double all = 0;
    for (uint32_t c = 0; c < classes; c++) all += exp((double)logits[c] - most);
    for (uint32_t c = 0; c < classes; c++) sum[c] += (float)(exp((double)logits[c] - most) / all);
}

/* A sum becomes the logarithms of the means. */
static void finish(const mr_views *v, float *sum)
{
    for (uint32_t c = 0; c < v->classes; c++)
        sum[c] = logf(fmaxf(sum[c] / (float)v->count, 1e-30f)); /* smaller values round to 0 */
}

static void judge(mr_views *v, const mr_outputs *o)
{
    for (uint32_t i = 0; i < o->count; i++) {
        const int32_t label = o->labels[i];
        if (label < 0 || (uint32_t)label >= o->classes) continue;
        const float *said = o->logits + (size_t)i * o->classes;
        v->sums.labelled++;
        v->sums.loss -= (double)said[label];
        v->sums.right += mr_outputs_best(said, o->classes) == (uint32_t)label;
    }
}

static int on_outputs(void *context, const mr_outputs *o, mr_error *err)
{
    mr_views *v = context;
    v->classes = o->classes;
    const uint64_t from = v->at, to = from + o->count;
    const int rc = v->pass == 0 ? make_room(v, to, err) : MR_OK;
    if (rc) return rc;
    if (v->pass > 0 && to > v->samples)
        return mr_error_set(err, MR_EINVAL, "the data changed: another view has more samples");
    v->at = to;
    if (v->pass == 0) {
        memset(v->sum + from * v->classes, 0, (size_t)o->count * v->classes * sizeof *v->sum);
        v->samples = to;
    }
    for (uint32_t i = 0; i < o->count; i++)
        add(v->sum + (from + i) * v->classes, o->logits + (size_t)i * o->classes, o->classes);
    if (v->pass + 1 < v->count) return MR_OK;
    for (uint32_t i = 0; i < o->count; i++) finish(v, v->sum + (from + i) * v->classes);
    mr_outputs together = *o;
    together.logits = v->sum + from * v->classes;
    judge(v, &together);
    return v->cfg.on_outputs ? v->cfg.on_outputs(v->cfg.context, &together, err) : MR_OK;
}

int mr_views_run_sized(mr_views *v, mr_trainer *t, mr_loader *loader, const mr_outputs_config *cfg,
                       mr_views_sums *out, mr_error *err)
{
    mr_outputs_config each;
    MRI_GIVEN(err, v);
    MRI_GIVEN(err, t);
    MRI_GIVEN(err, loader);
    int rc = mri_result_check(out, err);
    if (rc) return rc;
    mr_outputs_defaults(&v->cfg);
    rc = cfg ? mri_settings_take(&v->cfg, sizeof v->cfg, cfg, "outputs", err) : MR_OK;
    if (rc) return rc;
    mr_outputs_defaults(&each);
    each.on_outputs = on_outputs;
    each.context = v;
    each.stop = v->cfg.stop;
    v->sums = (mr_views_sums){0};
    for (v->pass = 0; rc == MR_OK && v->pass < v->count; v->pass++) {
        v->at = 0;
        rc = mr_evaluate_outputs(t, loader, &each, NULL, NULL, NULL, err);
    }
    if (rc == MR_OK) mri_result_give(out, &v->sums, sizeof v->sums);
    return rc;
}
