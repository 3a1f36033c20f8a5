/* tools/outputs/views.c: see views.h. */
#include "tools/outputs/views.h"

#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "tools/cli/exit.h"
#include "tools/cli/output.h"
#include "tools/outputs/rows.h"

int views_open(views *v, const char *name, const char *augment)
{
    mr_error err = MR_ERROR_INIT;
    mr_augment *a;
    *v = (views){.count = 1};
    if (!name) return EXIT_DONE;
    const int length =
        snprintf(v->augment, sizeof v->augment, "%s,views(%s)", augment ? augment : "none", name);
    if (length < 0 || (size_t)length >= sizeof v->augment) {
        say("--views: the augmentation is too long");
        return EXIT_MISUSED;
    }
    const int rc = mr_augment_create(&a, v->augment, false, &err);
    if (rc) {
        say("--views %s: %s", name, err.text);
        return EXIT_MISUSED;
    }
    v->count = mr_augment_views(a);
    mr_augment_destroy(a);
    return EXIT_DONE;
}

void views_close(views *v)
{
    free(v->sum);
    v->sum = NULL;
}

static int make_room(views *v, uint64_t samples, mr_error *err)
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
    const double most = (double)logits[rows_best(logits, classes)];
    double all = 0;
    for (uint32_t c = 0; c < classes; c++) all += exp((double)logits[c] - most);
    for (uint32_t c = 0; c < classes; c++) sum[c] += (float)(exp((double)logits[c] - most) / all);
}

/* A sum becomes the logarithms of the means. */
static void finish(const views *v, float *sum)
{
    for (uint32_t c = 0; c < v->classes; c++)
        sum[c] = logf(fmaxf(sum[c] / (float)v->count, 1e-30f)); /* smaller values round to 0 */
}

static void judge(views *v, const mr_outputs *o)
{
    for (uint32_t i = 0; i < o->count; i++) {
        const int32_t label = o->labels[i];
        if (label < 0 || (uint32_t)label >= o->classes) continue;
        const float *said = o->logits + (size_t)i * o->classes;
        v->labelled++;
        v->loss_sum -= (double)said[label];
        v->right += rows_best(said, o->classes) == (uint32_t)label;
    }
}

static int on_outputs(void *context, const mr_outputs *o, mr_error *err)
{
    views *v = context;
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
    return v->on_outputs ? v->on_outputs(v->context, &together, err) : MR_OK;
}

int views_run(views *v, mr_trainer *t, mr_loader *l, const volatile int *stop, mr_error *err)
{
    mr_outputs_config cfg;
    int rc = MR_OK;
    mr_outputs_defaults(&cfg);
    cfg.on_outputs = on_outputs, cfg.context = v, cfg.stop = stop;
    for (v->pass = 0; rc == MR_OK && v->pass < v->count; v->pass++) {
        v->at = 0;
        rc = mr_evaluate_outputs(t, l, &cfg, NULL, NULL, NULL, err);
    }
    return rc;
}
