/* pipeline/augment/own.c: operations that a program brings: rows like the table's, with a function of the
 * program. Their syntax follows from their number of arguments. Their effect is unknown here; only the size
 * of the picture must stay. */
#include <stdio.h>

#include "pipeline/augment/frame.h"
#include "pipeline/augment/spec.h"

#define LETTERS "abcdefghijklmnopqrstuvwxyz"

struct arguments {
    uint32_t count;
    double value[MR_OWN_ARGUMENTS];
};

static const mri_own_op *own_of(const mri_op *op) { return (const mri_own_op *)op->type; }

/* ---- arguments ---- */

static int read_argument(mri_spec *s, double *out)
{
    mri_number n;
    const bool minus = *s->at == '-';
    s->at += minus;
    const int rc = mri_spec_number(s, &n);
    if (rc) return rc;
    if (minus && n.digits) mri_spec_put(s, "-");
    mri_spec_put_number(s, n);
    *out = minus && n.digits ? -mri_number_value(n) : mri_number_value(n);
    return MR_OK;
}

static int read_own(mri_spec *s)
{
    const mri_own_op *own = own_of(&s->op);
    struct arguments *a = MRI_OP_ARGS(struct arguments, &s->op);
    do {
        if (a->count == own->given.arguments_most) return mri_spec_fail(s, s->at, "expected %s", s->usage);
        if (a->count) mri_spec_put(s, ",");
        const int rc = read_argument(s, &a->value[a->count]);
        if (rc) return rc;
        a->count++;
    } while (mri_spec_take(s, ','));
    return a->count < own->given.arguments_least ? mri_spec_fail(s, s->at, "expected %s", s->usage) : MR_OK;
}

/* ---- the picture ---- */

uint32_t mr_own_draw(const mr_own_picture *picture, uint64_t k)
{
    if (!picture) return 0;
    return mri_philox4x32(picture->key, k / 4, 0).v[k % 4];
}

static mr_own_picture picture_of(const mri_frame *f, const mri_op *op)
{
    const struct arguments *a = MRI_OP_ARGS(const struct arguments, op);
    const mri_philox d = mri_draw(f->key, op->index, 0);
    mr_own_picture p = {.struct_size = sizeof p,
                        .sample = f->key.sample,
                        .key = d.v[0] | (uint64_t)d.v[1] << 32,
                        .height = f->full_h,
                        .width = f->full_w,
                        .channels = f->v.channels,
                        .training = f->a->training,
                        .argument_count = a->count};
    memcpy(p.arguments, a->value, sizeof p.arguments);
    for (uint32_t k = 0; k < MR_OWN_DRAWS; k += 4) {
        const mri_philox four = mri_philox4x32(p.key, k / 4, 0); /* as mr_own_draw() */
        memcpy(p.draws + k, four.v, sizeof four.v);
    }
    return p;
}

static int touch_own(mri_frame *f, const mri_op *op, uint8_t *pixels)
{
    const mri_own_op *own = own_of(op);
    const mr_own_picture picture = picture_of(f, op);
    mr_error why = MR_ERROR_INIT;
    const int rc = own->given.change(own->given.context, &picture, pixels, &why);
    if (rc == MR_OK) return MR_OK;
    const bool reported = why.code == rc && why.text[0];
    char who[64];
    snprintf(who, sizeof who, "operation %s", own->name);
    const int code = mri_error_of_program(&why, rc, who);
    if (reported) mr_error_set(f->err, code, "operation %s: %s", own->name, why.text);
    else mr_error_set(f->err, code, "%s", why.text);
    if (f->err) f->err->sys_errno = why.sys_errno, f->err->host = rc;
    return code;
}

/* ---- rows ---- */

static bool is_name(const char *name)
{
    const size_t n = strspn(name, LETTERS "0123456789_");
    return n > 0 && name[n] == '\0' && strchr(LETTERS, name[0]) && n < sizeof((mri_own_op *)0)->name;
}

static int check(const mr_augment *a, uint32_t k, const mr_own_operation *given, mr_error *err)
{
    const char *name = given->name ? given->name : "";
    const char *const taken = mri_op_type_find(name, strlen(name))  ? "there is an operation of that name"
                              : mri_preset_find(name, strlen(name)) ? "there is a preset of that name"
                              : mri_own_find(a, name, strlen(name)) ? "it comes twice"
                                                                    : NULL;
    if (!is_name(name))
        return mr_error_set(
            err, MR_EINVAL,
            "operation %u of the program's own, \"%.40s\": expected a name of a-z, 0-9 and _, "
            "a letter first, at most %zu characters",
            k, name, sizeof a->own->name - 1);
    if (taken) return mr_error_set(err, MR_EINVAL, "operation %s of the program's own: %s", name, taken);
    if (!given->change)
        return mr_error_set(err, MR_EINVAL, "operation %s of the program's own has no function", name);
    if (given->arguments_least > given->arguments_most || given->arguments_most > MR_OWN_ARGUMENTS)
        return mr_error_set(
            err, MR_EINVAL,
            "operation %s of the program's own: from %u to %u arguments; expected least <= most <= %d", name,
            given->arguments_least, given->arguments_most, MR_OWN_ARGUMENTS);
    return MR_OK;
}

/* NAME(A,B[,C[,D]]), where parentheses may be left out NAME or NAME(A). */
static void write_usage(mri_own_op *own)
{
    const uint32_t least = own->given.arguments_least, most = own->given.arguments_most;
    char arguments[48] = "";
    size_t n = 0;
    for (uint32_t k = 0; k < most; k++) {
        const char *before = k == 0 ? "" : k < least ? "," : "[,";
        n += (size_t)snprintf(arguments + n, sizeof arguments - n, "%s%c", before, (int)('A' + k));
    }
    for (uint32_t k = least ? least : 1; k < most; k++)
        n += (size_t)snprintf(arguments + n, sizeof arguments - n, "]");
    if (most == 0) snprintf(own->usage, sizeof own->usage, "%s", own->name);
    else if (least) snprintf(own->usage, sizeof own->usage, "%s(%s)", own->name, arguments);
    else snprintf(own->usage, sizeof own->usage, "%s or %s(%s)", own->name, own->name, arguments);
}

static void fill(mri_own_op *own, const mr_own_operation *given)
{
    own->given = *given;
    snprintf(own->name, sizeof own->name, "%s", given->name);
    own->given.name = NULL;
    write_usage(own);
    own->type = (mri_op_type){.name = own->name,
                              .usage = own->usage,
                              .help = "",
                              .read = given->arguments_most ? read_own : NULL,
                              .evaluate = given->in_evaluation ? mri_augment_add : NULL,
                              .touch = touch_own,
                              .bare = given->arguments_least == 0};
}

int mri_own_take(mr_augment *a, const mr_own_operation *given, uint32_t count, mr_error *err)
{
    if (count == 0) return MR_OK;
    if (!given) return mr_error_set(err, MR_EINVAL, "%u operations of the program's own, and no list", count);
    a->own = calloc(count, sizeof *a->own);
    if (!a->own) return mr_error_set(err, MR_ENOMEM, "augment: no memory");
    for (uint32_t k = 0; k < count; k++) {
        const int rc = check(a, k, &given[k], err);
        if (rc) return rc;
        fill(&a->own[k], &given[k]);
        a->own_count++;
    }
    return MR_OK;
}

void mri_own_drop(mr_augment *a) { free(a->own); }

const mri_op_type *mri_own_find(const mr_augment *a, const char *name, size_t n)
{
    for (uint32_t k = 0; k < a->own_count; k++)
        if (strlen(a->own[k].name) == n && memcmp(a->own[k].name, name, n) == 0) return &a->own[k].type;
    return NULL;
}
