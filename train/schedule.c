/* train/schedule.c: the learning rate as a pure function of the update's number, and the text that describes
 * it.
 *
 *   lr │      ┌ warm-up ends: lr itself
 *      │    ╱ ‾‾‾╲
 *      │  ╱        ╲__  constant, steps, half a cosine, or 1 / (1 + decay * updates)
 *      └────────────────► updates
 *
 * During the warm-up the kind that follows is not applied; the cosine spans the updates after it, and an
 * exponential begins after it, so there is no jump. One cycle brings its own:
 *
 *   lr │   ╱╲
 *      │ ╱    ╲           up and down in equal shares, the rest goes to the floor
 *      │╱      ╲________
 *      └────────────────► updates */
#include <ctype.h>
#include <math.h>
#include <stdio.h>

#include "base/floats.h"
#include "base/number.h"
#include "train/net/net.h"

static double warmup_updates(const mr_schedule *s, uint64_t steps_per_epoch)
{
    return s->warmup_epochs > 0 ? round(s->warmup_epochs * (double)steps_per_epoch) : 0;
}

/* Where `at` is between from and to, so far along is it from a to b. */
static double between(double at, double from, double to, double a, double b)
{
    return a + (b - a) * (at - from) / (to - from);
}

static double cosine(const mr_schedule *s, double update, double from, double to)
{
    if (update >= to || to <= from) return s->floor_lr;
    const double along = (update - from) / (to - from);
    return s->floor_lr + ((double)s->lr - s->floor_lr) * 0.5 * (1.0 + cos(3.14159265358979323846 * along));
}

static double linear(const mr_schedule *s, double update, double from, double to)
{
    return update < to ? between(update, from, to, s->lr, s->floor_lr) : s->floor_lr;
}

static double stepped(const mr_schedule *s, double update, double steps_per_epoch)
{
    double lr = s->lr;
    for (uint32_t i = 0; i < s->milestone_count && i < MRI_ARRAY_COUNT(s->milestones); i++)
        if (update >= s->milestones[i] * steps_per_epoch) lr *= s->factor;
    return lr;
}

static double piecewise(const mr_schedule *s, double update, double steps_per_epoch)
{
    double lr = s->lr;
    for (uint32_t i = 0; i + 1 < s->milestone_count && i + 1 < MRI_ARRAY_COUNT(s->milestones); i += 2)
        if (update >= s->milestones[i] * steps_per_epoch) lr = s->milestones[i + 1];
    return lr;
}

static double exponential(const mr_schedule *s, double updates, double steps_per_epoch)
{
    const double lr = steps_per_epoch > 0 ? s->lr * pow((double)s->factor, updates / steps_per_epoch) : s->lr;
    return fmax(lr, s->floor_lr);
}

static double one_cycle(const mr_schedule *s, double update, double all)
{
    const double top = s->lr, low = top / s->factor, up = s->decay * all;
    if (update < up) return between(update, 0, up, low, top);
    if (update < 2 * up) return between(update, up, 2 * up, top, low);
    return update < all ? between(update, 2 * up, all, low, s->floor_lr) : s->floor_lr;
}

float mr_schedule_lr(const mr_schedule *s, uint64_t update, uint64_t steps_per_epoch, uint64_t epochs)
{
    MRI_DEFAULT_FLOATS;
    if (!s) return 0;
    const double warm = warmup_updates(s, steps_per_epoch), at = (double)update,
                 per_epoch = (double)steps_per_epoch;
    if (at < warm) return (float)((double)s->lr * (at + 1) / warm);
    switch (s->kind) {
    case MR_LR_CONSTANT: return s->lr;
    case MR_LR_STEP: return (float)stepped(s, at, per_epoch);
    case MR_LR_COSINE: return (float)cosine(s, at, warm, per_epoch * (double)epochs);
    case MR_LR_DECAY: return (float)((double)s->lr / (1.0 + (double)s->decay * at));
    case MR_LR_PIECEWISE: return (float)piecewise(s, at, per_epoch);
    case MR_LR_EXPONENTIAL: return (float)exponential(s, at - warm, per_epoch);
    case MR_LR_LINEAR: return (float)linear(s, at, warm, per_epoch * (double)epochs);
    case MR_LR_ONE_CYCLE: return (float)one_cycle(s, at, per_epoch * (double)epochs);
    }
    return s->lr;
}

/* A finite number >= 0 at *text, which moves past it. */
static bool take_number(const char **text, double *out)
{
    char *end;
    if (!isdigit((unsigned char)**text) && **text != '.') return false; /* no signs, blanks, "nan", "inf" */
    *out = mri_strtod(*text, &end);
    if (end == *text || !isfinite(*out)) return false;
    *text = end;
    return true;
}

static bool take_word(const char **text, const char *word)
{
    const size_t len = strlen(word);
    if (strncmp(*text, word, len) != 0) return false;
    *text += len;
    return true;
}

static int wrong(mr_error *err, const char *text, const char *at, const char *expected)
{
    return mr_error_set(
        err, MR_EINVAL,
        "learning rate schedule \"%.200s\", character %zu: expected %s, found \"%.40s\"; known are "
        "constant, cosine[:FLOOR], linear[:FLOOR], step:E1/E2[,factor=F], decay:D, piecewise:LR@E1/LR@E2, "
        "exponential:FACTOR[:FLOOR], each with ,warmup=EPOCHS, and onecycle[:DIVISOR[:FLOOR]][,up=SHARE]",
        text, (size_t)(at - text) + 1, expected, at);
}

static int take_milestones(mr_schedule *s, const char **at, const char *text, mr_error *err)
{
    do {
        double epoch;
        const char *start = *at;
        if (s->milestone_count == MRI_ARRAY_COUNT(s->milestones))
            return wrong(err, text, *at, "at most 16 milestones");
        if (!take_number(at, &epoch)) return wrong(err, text, *at, "an epoch");
        if (s->milestone_count && epoch <= s->milestones[s->milestone_count - 1])
            return wrong(err, text, start, "an epoch after the one before it");
        s->milestones[s->milestone_count++] = epoch;
    } while (take_word(at, "/"));
    return MR_OK;
}

static int take_pieces(mr_schedule *s, const char **at, const char *text, mr_error *err)
{
    do {
        double lr, epoch;
        const char *start = *at;
        const uint32_t n = s->milestone_count;
        if (n == MRI_ARRAY_COUNT(s->milestones)) return wrong(err, text, *at, "at most 8 rates");
        if (!take_number(at, &lr)) return wrong(err, text, *at, "a learning rate");
        if (!take_word(at, "@")) return wrong(err, text, *at, "@ and the epoch it begins with");
        start = *at;
        if (!take_number(at, &epoch)) return wrong(err, text, *at, "an epoch");
        if (n && epoch <= s->milestones[n - 2])
            return wrong(err, text, start, "an epoch after the one before it");
        s->milestones[n] = epoch;
        s->milestones[n + 1] = (double)(float)lr; /* the bits that it is trained with */
        s->milestone_count += 2;
    } while (take_word(at, "/"));
    return MR_OK;
}

/* ":FLOOR", or nothing: *floor stays. */
static int take_floor(float most, float *floor_lr, const char **at, const char *text, mr_error *err)
{
    double value;
    if (!take_word(at, ":")) return MR_OK;
    const char *start = *at;
    if (!take_number(at, &value)) return wrong(err, text, *at, "the lowest learning rate");
    if (value > (double)most) return wrong(err, text, start, "a floor not above the learning rate");
    *floor_lr = (float)value;
    return MR_OK;
}

static int take_exponential(mr_schedule *s, const char **at, const char *text, mr_error *err)
{
    double value;
    const char *start = *at;
    if (!take_number(at, &value) || !(value > 0 && value <= 1))
        return wrong(err, text, start, "a factor above 0, at most 1");
    s->kind = MR_LR_EXPONENTIAL;
    s->factor = (float)value;
    return take_floor(s->lr, &s->floor_lr, at, text, err);
}

static int take_one_cycle(mr_schedule *s, const char **at, const char *text, mr_error *err)
{
    enum { DIVISOR = 10, FLOOR_DIVISOR = 100 };
    double value = DIVISOR;
    s->kind = MR_LR_ONE_CYCLE;
    s->decay = 0.45f;
    if (take_word(at, ":")) {
        const char *start = *at;
        if (!take_number(at, &value) || value < 1) return wrong(err, text, start, "a divisor of 1 or more");
    }
    s->factor = (float)value;
    s->floor_lr = s->lr / s->factor / FLOOR_DIVISOR;
    int rc = take_floor(s->lr / s->factor, &s->floor_lr, at, text, err);
    if (rc || !take_word(at, ",up=")) return rc;
    const char *start = *at;
    if (!take_number(at, &value) || !(value > 0 && value <= 0.5))
        return wrong(err, text, start, "a share of the updates above 0, at most 0.5");
    s->decay = (float)value;
    return MR_OK;
}

static int take_kind(mr_schedule *s, const char **at, const char *text, mr_error *err)
{
    double value;
    if (take_word(at, "constant")) {
        s->kind = MR_LR_CONSTANT;
    } else if (take_word(at, "cosine")) {
        s->kind = MR_LR_COSINE;
        return take_floor(s->lr, &s->floor_lr, at, text, err);
    } else if (take_word(at, "linear")) {
        s->kind = MR_LR_LINEAR;
        return take_floor(s->lr, &s->floor_lr, at, text, err);
    } else if (take_word(at, "step:")) {
        s->kind = MR_LR_STEP;
        return take_milestones(s, at, text, err);
    } else if (take_word(at, "piecewise:")) {
        s->kind = MR_LR_PIECEWISE;
        return take_pieces(s, at, text, err);
    } else if (take_word(at, "exponential:")) {
        return take_exponential(s, at, text, err);
    } else if (take_word(at, "onecycle")) {
        return take_one_cycle(s, at, text, err);
    } else if (take_word(at, "decay:")) {
        s->kind = MR_LR_DECAY;
        if (!take_number(at, &value)) return wrong(err, text, *at, "a decay");
        s->decay = (float)value;
    } else {
        return wrong(err, text, *at, "a kind");
    }
    return MR_OK;
}

int mr_schedule_parse(mr_schedule *out, const char *text, float lr, mr_error *err)
{
    MRI_DEFAULT_FLOATS;
    MRI_GIVEN(err, out);
    MRI_GIVEN(err, text);
    mr_schedule s = {.lr = lr, .factor = 0.1f};
    const char *at = text;
    double value;
    if (!(lr > 0.0f) || !isfinite(lr))
        return mr_error_set(err, MR_EINVAL, "learning rate %g: expected a finite number above 0", (double)lr);
    const int rc = take_kind(&s, &at, text, err);
    if (rc) return rc;
    while (*at) {
        if (s.kind == MR_LR_ONE_CYCLE)
            return wrong(err, text, at, ",up=, or the end: it brings its own warm-up");
        if (take_word(&at, ",warmup=")) {
            if (!take_number(&at, &s.warmup_epochs)) return wrong(err, text, at, "epochs");
        } else if (s.kind == MR_LR_STEP && take_word(&at, ",factor=")) {
            if (!take_number(&at, &value) || value <= 0) return wrong(err, text, at, "a factor above 0");
            s.factor = (float)value;
        } else {
            return wrong(err, text, at, s.kind == MR_LR_STEP ? ",factor= or ,warmup=" : ",warmup=");
        }
    }
    *out = s;
    return MR_OK;
}
