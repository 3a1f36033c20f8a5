/* pipeline/augment/create.c: the augmentation language: a specification to the list of operations.
 *
 *   spec   item {"," item}
 *   item   preset | name ["(" argument {"," argument} ")"]
 *
 * Names and arguments are the table's (op.h), words and numbers spec.h's. */
#include <stdio.h>

#include "base/floats.h"
#include "pipeline/augment/spec.h"

static int check_place(const mri_spec *s, const char *start, const mri_op_type *type)
{
    if (s->count == MRI_AUGMENT_MAX_OPS)
        return mri_spec_fail(s, start, "more than %d operations", MRI_AUGMENT_MAX_OPS);
    if (type->evaluates && s->training)
        return mri_spec_fail(s, start, "%s is of evaluations alone", type->name);
    if (type->fix && s->numbers_fixed)
        return mri_spec_fail(s, start,
                             "the numbers are fixed already: one of standardise and normalise, once");
    if ((type->paint || type->touch || type->run) && s->a->standardise)
        return mri_spec_fail(s, start, "standardise comes after everything that changes pixels");
    if ((type->paint || type->touch || type->run || type->mirrors) && s->mixes)
        return mri_spec_fail(s, start, "mixup and cutmix come after everything that is done to one picture");
    for (uint32_t k = 0; type->mix && k < s->a->mix_count; k++)
        if (s->a->mix[k].op.type == type)
            return mri_spec_fail(s, start, "it is there already, once is enough");
    return MR_OK;
}

static int read_arguments(mri_spec *s, const char *start, const mri_op_type *type)
{
    const bool open = mri_spec_take(s, '(');
    if (open != (type->read != NULL) && (open || !type->bare))
        return mri_spec_fail(s, start, "expected %s", s->usage);
    if (!open) return MR_OK;
    mri_spec_put(s, "(");
    const int rc = type->read(s);
    if (rc) return rc;
    if (!mri_spec_take(s, ')')) return mri_spec_fail(s, s->at, "expected %s", s->usage);
    mri_spec_put(s, ")");
    return MR_OK;
}

static int read_op(mri_spec *s, const char *start, const mri_op_type *type)
{
    int rc = check_place(s, start, type);
    if (rc) return rc;
    s->op = (mri_op){.type = type, .index = s->count, .turns = type->turns};
    s->usage = type->usage;
    mri_spec_put(s, "%s%s", s->count ? "," : "", type->name);
    rc = read_arguments(s, start, type);
    if (rc) return rc;
    s->turns += s->op.turns;
    if (s->turns > MRI_GEOMETRY_TURNS)
        return mri_spec_fail(
            s, start,
            "expected at most %d changes that turn, shear or scale, found %u: rotate, affine "
            "and trivial count once, randaugment(N,M) N times",
            MRI_GEOMETRY_TURNS, s->turns);
    if (s->overflows)
        return mri_spec_fail(s, start,
                             "with all defaults written down the text is longer than %zu characters",
                             sizeof s->a->text - 1);
    s->count++;
    s->mixes = s->mixes || type->mix;
    if (type->mix) mri_augment_add_mix(s->a, &s->op);
    if (type->fix) {
        type->fix(s->a, &s->op);
        s->numbers_fixed = true;
    } else if (s->training && !type->mix) {
        mri_augment_add(s->a, &s->op);
    } else if (!s->training && type->evaluate) {
        type->evaluate(s->a, &s->op);
    }
    if (s->mixes && s->a->standardise)
        return mri_spec_fail(s, start,
                             "mixup and cutmix mix pixels, and standardise has its numbers from each picture "
                             "before: use normalise");
    return MR_OK;
}

static int read_items(mri_spec *s);

static int read_preset(mri_spec *s, const char *start, const mri_preset *preset)
{
    mri_spec inner = *s;
    inner.at = inner.spec = preset->spec;
    const int rc = *inner.at ? read_items(&inner) : MR_OK;
    if (rc) return mri_spec_fail(s, start, "this preset does not fit behind what stands before it");
    inner.at = s->at;
    inner.spec = s->spec;
    *s = inner;
    return MR_OK;
}

/* One more name behind those in text, as far as there is room. */
static size_t list_name(char *text, size_t capacity, size_t used, bool first, const char *name)
{
    const int n = snprintf(text + used, capacity - used, "%s%s", first ? "" : ", ", name);
    return (size_t)mri_min_u64(used + (uint64_t)n, capacity - 1);
}

static int fail_unknown(const mri_spec *s, const char *start)
{
    char ops[320] = "", all[128] = "", own[128] = "";
    size_t used = 0;
    const mri_op_type *type;
    const mri_preset *preset;
    for (size_t k = 0; (type = mri_op_type_at(k)) != NULL; k++)
        used = list_name(ops, sizeof ops, used, k == 0, type->name);
    used = 0;
    for (size_t k = 0; (preset = mri_preset_at(k)) != NULL; k++)
        used = list_name(all, sizeof all, used, k == 0, preset->name);
    used = 0;
    for (size_t k = 0; k < s->a->own_count; k++)
        used = list_name(own, sizeof own, used, k == 0, s->a->own[k].name);
    if (own[0])
        return mri_spec_fail(s, start, "unknown; the program's own operations are %s, others %s; presets %s",
                             own, ops, all);
    return mri_spec_fail(
        s, start, "unknown; operations are %s; presets %s; a program's own are known to it alone", ops, all);
}

static int read_item(mri_spec *s)
{
    mri_spec_skip_spaces(s);
    const char *start = s->at;
    const size_t n = strspn(start, "abcdefghijklmnopqrstuvwxyz0123456789_");
    s->at += n;
    const mri_op_type *type = mri_op_type_find(start, n);
    if (!type) type = mri_own_find(s->a, start, n);
    if (type) return read_op(s, start, type);
    const mri_preset *preset = mri_preset_find(start, n);
    return preset ? read_preset(s, start, preset) : fail_unknown(s, start);
}

static int read_items(mri_spec *s)
{
    do {
        const int rc = read_item(s);
        if (rc) return rc;
    } while (mri_spec_take(s, ','));
    return *s->at ? mri_spec_fail(s, s->at, "expected \",\" or the end") : MR_OK;
}

int mr_augment_create(mr_augment **out, const char *spec, bool training, mr_error *err)
{
    return mr_augment_create_own(out, spec, training, NULL, 0, err);
}

int mr_augment_create_own(mr_augment **out, const char *spec, bool training,
                          const mr_own_operation *operations, uint32_t count, mr_error *err)
{
    MRI_DEFAULT_FLOATS;
    MRI_GIVEN(err, out);
    *out = NULL;
    if (!spec) spec = "none";
    if (strlen(spec) > 4000)
        return mr_error_set(err, MR_EINVAL, "augment: specification of over 4000 characters");
    mr_augment *a = calloc(1, sizeof *a);
    if (!a) return mr_error_set(err, MR_ENOMEM, "augment: no memory");
    for (int c = 0; c < 4; c++) a->std[c] = 255;
    a->training = training;
    mri_spec s = {.spec = spec, .at = spec, .a = a, .training = training, .err = err};
    int rc = mri_own_take(a, operations, count, err);
    if (rc == MR_OK) rc = read_items(&s);
    if (rc) {
        mr_augment_destroy(a);
        return rc;
    }
    if (s.count == 0) mri_spec_put(&s, "none");
    if (!training) a->mix_count = 0;
    *out = a;
    return MR_OK;
}

void mr_augment_destroy(mr_augment *a)
{
    if (!a) return;
    mri_own_drop(a);
    free(a);
}

uint32_t mr_augment_views(const mr_augment *a) { return !a ? 0 : a->views ? a->views : 1; }

const char *mr_augment_text(const mr_augment *a) { return a ? a->text : NULL; }

void mr_augment_normalise(const mr_augment *a, float mean[4], float std[4], bool *uses_affine)
{
    if (!a || !mean || !std || !uses_affine) return;
    memcpy(mean, a->mean, sizeof a->mean);
    memcpy(std, a->std, sizeof a->std);
    *uses_affine = a->standardise;
}
