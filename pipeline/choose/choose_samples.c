/* pipeline/choose/choose_samples.c: the steps of a choice, one after the other. See choosing.h. */
#include <inttypes.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/abi.h"
#include "base/floats.h"
#include "base/handle.h"
#include "base/random.h"
#include "formats/source/source.h"
#include "pipeline/choose/choosing.h"
#include "pipeline/decode/decoders.h"

typedef struct choosing {
    const mr_source *src;
    mr_source *own; /* the same, to be changed; NULL: it stays as it is */
    const mr_choice_config *cfg;
    mr_choice_result *result;
    mri_conditions conditions;
    mri_sample_fact *fact; /* NULL: nobody needs them */
    bool *taken;           /* of each sample */
    uint64_t count;
} choosing;

void mr_choice_defaults_sized(mr_choice_config *cfg, size_t struct_size)
{
    mr_choice_config all = {.each_to = 1};
    mr_decode_defaults(&all.decode);
    mri_settings_give(cfg, struct_size, &all, sizeof all);
}

void mri_choice_note(const mr_choice_config *cfg, const char *format, ...)
{
    char text[4096];
    va_list list;
    if (!cfg->on_note) return;
    va_start(list, format);
    vsnprintf(text, sizeof text, format, list);
    va_end(list);
    cfg->on_note(cfg->context, text);
}

static bool takes_share(const mr_choice_config *cfg) { return cfg->each_from > 0 || cfg->each_to < 1; }

static bool is_asked(const mr_choice_config *cfg)
{
    return cfg->classes_from || cfg->rename_classes || cfg->only_classes || cfg->where || takes_share(cfg) ||
           cfg->dedup || cfg->sample;
}

static int no_memory(mr_error *err) { return mr_error_set(err, MR_ENOMEM, "no memory to choose samples"); }

static const char *class_of(const choosing *c, int64_t label, char *buf, size_t room)
{
    const mr_source_info *info = mr_source_info_of(c->src);
    if (label >= 0 && label < (int64_t)info->class_count && info->class_names)
        return info->class_names[label];
    snprintf(buf, room, "%" PRId64, label < 0 ? label : label + info->label_offset);
    return label < 0 ? "" : buf;
}

/* ---- where ---- */
static int by_where(choosing *c, mr_error *err)
{
    char key[4096], number[32];
    const mr_source_info *info = mr_source_info_of(c->src);
    if (!c->cfg->where) return MR_OK;
    if (info->image_field < 0 && (mri_conditions_use(&c->conditions, MRI_FIELD_WIDTH) ||
                                  mri_conditions_use(&c->conditions, MRI_FIELD_HEIGHT)))
        return mr_error_set(err, MR_EFORMAT, "--where: %s has no pictures with a width and a height",
                            info->path);
    for (uint64_t k = 0; k < c->count && !mri_stop_asked(); k++) {
        const mri_sample_fact *f = &c->fact[k];
        if (!c->taken[k] || !f->good) continue;
        mr_source_sample_name(c->src, k, NULL, 0, key, sizeof key);
        const mri_condition_sample s = {.key = key,
                                        .class_name = class_of(c, f->label, number, sizeof number),
                                        .label = f->label < 0 ? -1 : f->label + info->label_offset,
                                        .width = f->width,
                                        .height = f->height,
                                        .bytes = f->bytes};
        c->taken[k] = mri_conditions_hold(&c->conditions, &s);
        c->result->where += !c->taken[k];
    }
    return MR_OK;
}

/* ---- copies ---- */
static void drop_copy(void *context, uint64_t sample, uint64_t first)
{
    choosing *c = context;
    c->taken[sample] = false;
    c->result->copies++;
    c->result->copies_crossing += c->fact[sample].label != c->fact[first].label;
}

static int by_copies(choosing *c, mr_error *err)
{
    if (c->cfg->dedup == MR_COPIES_TAKE) return MR_OK;
    mr_copy_mark *marks = malloc((c->count + 1) * sizeof *marks);
    uint64_t n = 0;
    if (!marks) return no_memory(err);
    for (uint64_t k = 0; k < c->count; k++)
        if (c->taken[k] && c->fact[k].good)
            marks[n++] =
                (mr_copy_mark){c->fact[k].hash, c->cfg->dedup == MR_COPIES_PIXELS ? 0 : c->fact[k].bytes, k};
    const int rc = mri_find_copies(c->src, c->cfg, marks, n, drop_copy, c, err);
    free(marks);
    return rc;
}

/* ---- a share of each class, and a number ---- */
typedef struct drawn {
    int64_t label;
    uint64_t key, sample;
} drawn;

static int by_draw(const void *a, const void *b)
{
    const drawn *x = a, *y = b;
    if (x->label != y->label) return x->label < y->label ? -1 : 1;
    if (x->key != y->key) return x->key < y->key ? -1 : 1;
    return x->sample < y->sample ? -1 : x->sample > y->sample;
}

/* The remaining samples in a drawn order, class by class or all together. */
static drawn *draw(const choosing *c, uint64_t seed, bool by_class, uint64_t *count)
{
    drawn *d = malloc((c->count + 1) * sizeof *d);
    *count = 0;
    for (uint64_t k = 0; d && k < c->count; k++)
        if (c->taken[k] && (!by_class || c->fact[k].good)) /* what cannot be read has no class */
            d[(*count)++] = (drawn){
                by_class ? c->fact[k].label : 0,
                mri_mix64(mri_mix64(mr_source_number(c->src, k)) ^ mri_mix64(seed ^ 0x6d696c6c72616365u)), k};
    if (d && *count) qsort(d, *count, sizeof *d, by_draw);
    return d;
}

static int by_share(choosing *c, mr_error *err)
{
    const mr_choice_config *cfg = c->cfg;
    uint64_t n;
    if (!takes_share(cfg)) return MR_OK;
    drawn *d = draw(c, 0, true, &n);
    if (!d) return no_memory(err);
    for (uint64_t first = 0, end; first < n; first = end) {
        for (end = first; end < n && d[end].label == d[first].label; end++) {
        }
        const double all = (double)(end - first);
        const uint64_t low = (uint64_t)(cfg->each_from * all + 0.5),
                       high = (uint64_t)(cfg->each_to * all + 0.5);
        for (uint64_t k = first; k < end; k++) {
            if (k - first >= low && k - first < high) continue;
            c->taken[d[k].sample] = false;
            c->result->share++;
        }
    }
    free(d);
    return MR_OK;
}

static int by_number(choosing *c, mr_error *err)
{
    uint64_t n;
    if (!c->cfg->sample) return MR_OK;
    drawn *d = draw(c, c->cfg->sample_seed, false, &n);
    if (!d) return no_memory(err);
    for (uint64_t k = c->cfg->sample; k < n; k++) {
        c->taken[d[k].sample] = false;
        c->result->drawn++;
    }
    if (n < c->cfg->sample)
        mri_choice_note(c->cfg, "--sample %" PRIu64 ": the data have %" PRIu64 ", and all are taken",
                        c->cfg->sample, n);
    free(d);
    return MR_OK;
}

/* ---- together ---- */
static int check(choosing *c, mr_error *err)
{
    const mr_choice_config *cfg = c->cfg;
    if (!(cfg->each_from >= 0 && cfg->each_from < cfg->each_to && cfg->each_to <= 1))
        return mr_error_set(
            err, MR_EINVAL,
            "--take-each: expected two parts of 1, the first below the second, found %g and %g",
            cfg->each_from, cfg->each_to);
    if (cfg->dedup > MR_COPIES_PIXELS)
        return mr_error_set(err, MR_EINVAL, "--dedup: expected 0 to 2, found %u", (unsigned)cfg->dedup);
    const int rc = mri_decode_check(&cfg->decode, "mr_choice_config.decode", err);
    return rc || !cfg->where ? rc : mri_conditions_parse(&c->conditions, cfg->where, err);
}

static int look(choosing *c, mr_error *err)
{
    const mr_choice_config *cfg = c->cfg;
    const bool sizes = mri_conditions_use(&c->conditions, MRI_FIELD_WIDTH) ||
                       mri_conditions_use(&c->conditions, MRI_FIELD_HEIGHT) ||
                       mri_conditions_use(&c->conditions, MRI_FIELD_BYTES);
    const mri_facts_config facts = {.choice = cfg, .read = sizes || cfg->dedup};
    const bool needed = cfg->where || cfg->dedup || takes_share(cfg) || cfg->only_classes;
    c->count = mr_source_info_of(c->src)->count;
    const int rc = needed ? mri_sample_facts(c->src, &facts, &c->fact, err) : MR_OK;
    if (rc) return rc;
    c->taken = malloc((size_t)c->count + 1);
    if (!c->taken) return no_memory(err);
    memset(c->taken, true, (size_t)c->count);
    return MR_OK;
}

/* The classes of the source, then of the facts: conditions use the new ones. */
static int change_classes(choosing *c, const mri_class_plan *plan, mr_error *err)
{
    for (uint64_t k = 0; plan->only && k < c->count; k++) {
        const int64_t label = c->fact[k].label;
        if (!c->fact[k].good || label < 0) continue;
        c->taken[k] = plan->to[label] != UINT32_MAX;
        c->result->other_classes += !c->taken[k];
    }
    if (!plan->names) return MR_OK;
    const int rc = mri_class_plan_apply(plan, c->own, c->cfg, c->result, err);
    for (uint64_t k = 0; !rc && c->fact && k < c->count; k++) {
        mri_sample_fact *f = &c->fact[k];
        if (f->good && f->label >= 0)
            f->label = plan->to[f->label] == UINT32_MAX ? -1 : (int32_t)plan->to[f->label];
    }
    return rc;
}

static int take(choosing *c, mr_error *err)
{
    uint64_t n = 0, *numbers = malloc((c->count + 1) * sizeof *numbers);
    if (!numbers) return no_memory(err);
    for (uint64_t k = 0; k < c->count; k++)
        if (c->taken[k]) numbers[n++] = k;
    c->result->before = c->count;
    c->result->after = n;
    int rc = n ? mr_source_choose(c->own, numbers, n, err)
               : mr_error_set(err, MR_EINVAL, "%s: no sample is left of %" PRIu64,
                              mr_source_info_of(c->src)->path, c->count);
    free(numbers);
    if (rc == MR_EINVAL) rc = MR_EFORMAT; /* of these data, with this choice */
    if (rc && err) err->code = rc;
    return rc;
}

static void note(const mr_choice_config *cfg, const mr_choice_result *r)
{
    if (r->before == r->after) {
        if (cfg->where || cfg->dedup || cfg->only_classes || takes_share(cfg) || cfg->sample)
            mri_choice_note(cfg, "all %" PRIu64 " samples are taken", r->after);
        return;
    }
    mri_choice_note(cfg, "%" PRIu64 " of %" PRIu64 " samples are taken", r->after, r->before);
    if (r->other_classes) mri_choice_note(cfg, "left out: %" PRIu64 " of other classes", r->other_classes);
    if (r->where) mri_choice_note(cfg, "left out: %" PRIu64 " for which --where does not hold", r->where);
    if (r->copies)
        mri_choice_note(cfg,
                        "left out: %" PRIu64 " with the same %s as an earlier sample, %" PRIu64
                        " of them in another class",
                        r->copies, cfg->dedup == MR_COPIES_PIXELS ? "pixels" : "bytes", r->copies_crossing);
    if (r->share)
        mri_choice_note(cfg, "left out: %" PRIu64 " by --take-each %g:%g", r->share, cfg->each_from,
                        cfg->each_to);
    if (r->drawn) mri_choice_note(cfg, "left out: %" PRIu64 " that --sample did not draw", r->drawn);
}

static int choose(choosing *c, mr_error *err)
{
    mri_class_plan plan = {0};
    int rc = mri_class_plan_make(&plan, c->src, c->cfg, err);
    if (!rc) rc = look(c, err);
    if (!rc) rc = change_classes(c, &plan, err);
    if (!rc) rc = by_where(c, err);
    if (!rc) rc = by_copies(c, err);
    if (!rc) rc = by_share(c, err);
    if (!rc) rc = by_number(c, err);
    if (!rc && mri_stop_asked()) rc = mri_stopped(err);
    if (!rc) rc = take(c, err);
    if (!rc) note(c->cfg, c->result);
    mri_class_plan_fini(&plan);
    free(c->fact);
    free(c->taken);
    return rc;
}

int mr_choose_sized(mr_source *src, const mr_choice_config *cfg, mr_choice_result *out, mr_error *err)
{
    MRI_DEFAULT_FLOATS;
    mr_choice_config mine;
    mr_choice_result result = {0};
    MRI_OWN(err, src);
    int rc = mri_result_check(out, err);
    if (rc) return rc;
    mr_choice_defaults(&mine);
    rc = mri_settings_take(&mine, sizeof mine, cfg, "choice", err);
    choosing c = {.src = src, .own = src, .cfg = &mine, .result = &result};
    if (!rc) rc = check(&c, err);
    if (rc) return rc;
    result.asked = is_asked(&mine);
    result.before = result.after = mr_source_info_of(src)->count;
    result.classes_before = mr_source_info_of(src)->class_count;
    const volatile int *before = mri_stop_at(mine.stop);
    if (result.asked) rc = choose(&c, err);
    mri_stop_at(before);
    result.classes_after = mr_source_info_of(src)->class_count;
    if (!rc) mri_result_give(out, &result, sizeof result);
    return rc;
}

int mr_choose_where(const mr_source *src, const mr_choice_config *cfg, uint64_t *numbers, uint64_t *count,
                    mr_error *err)
{
    MRI_DEFAULT_FLOATS;
    mr_choice_config mine;
    mr_choice_result result = {0};
    MRI_OWN(err, src);
    MRI_GIVEN(err, numbers);
    MRI_GIVEN(err, count);
    mr_choice_defaults(&mine);
    int rc = mri_settings_take(&mine, sizeof mine, cfg, "choice", err);
    if (!rc && !mine.where) rc = mr_error_set(err, MR_EINVAL, "--where: expected conditions, found none");
    if (rc) return rc;
    mr_choice_config alone;
    mr_choice_defaults(&alone);
    alone.where = mine.where, alone.workers = mine.workers, alone.stop = mine.stop;
    alone.on_progress = mine.on_progress, alone.context = mine.context;
    choosing c = {.src = src, .cfg = &alone, .result = &result};
    const volatile int *before = mri_stop_at(alone.stop);
    rc = check(&c, err);
    if (!rc) rc = look(&c, err);
    if (!rc) rc = by_where(&c, err);
    if (!rc && mri_stop_asked()) rc = mri_stopped(err);
    mri_stop_at(before);
    *count = 0;
    for (uint64_t k = 0; !rc && k < c.count; k++)
        if (c.taken[k] && c.fact[k].good) numbers[(*count)++] = k;
    free(c.fact);
    free(c.taken);
    return rc;
}
