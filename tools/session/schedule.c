/* tools/session/schedule.c: see schedule.h. */
#include "tools/session/schedule.h"

#include <stdarg.h>
#include <stdio.h>

#include "tools/cli/output.h"

static const struct {
    const char *name;
    bool factor, floor, decay, milestones; /* of mr_schedule, that mean something */
} kinds[MR_LR_KIND_COUNT] = {
    [MR_LR_CONSTANT] = {.name = "constant"},
    [MR_LR_STEP] = {.name = "step", .factor = true, .milestones = true},
    [MR_LR_COSINE] = {.name = "cosine", .floor = true},
    [MR_LR_DECAY] = {.name = "decay", .decay = true},
    [MR_LR_PIECEWISE] = {.name = "piecewise", .milestones = true},
    [MR_LR_EXPONENTIAL] = {.name = "exponential", .factor = true, .floor = true},
    [MR_LR_LINEAR] = {.name = "linear", .floor = true},
    [MR_LR_ONE_CYCLE] = {.name = "onecycle", .factor = true, .floor = true, .decay = true},
};

const char *schedule_name(const mr_schedule *s) { return kinds[s->kind].name; }

bool schedule_same(const mr_schedule *a, const mr_schedule *b)
{
    const mr_schedule_kind kind = a->kind;
    if (kind != b->kind || a->warmup_epochs != b->warmup_epochs) return false;
    if (kinds[kind].factor && a->factor != b->factor) return false;
    if (kinds[kind].floor && a->floor_lr != b->floor_lr) return false;
    if (kinds[kind].decay && a->decay != b->decay) return false;
    if (!kinds[kind].milestones) return true;
    bool same = a->milestone_count == b->milestone_count;
    for (uint32_t i = 0; same && i < a->milestone_count; i++) same = a->milestones[i] == b->milestones[i];
    return same;
}

typedef struct text {
    char *out;
    size_t bytes, used;
} text;

__attribute__((format(printf, 2, 3))) static void put(text *t, const char *format, ...)
{
    va_list args;
    if (t->used >= t->bytes) return;
    va_start(args, format);
    t->used += (size_t)vsnprintf(t->out + t->used, t->bytes - t->used, format, args);
    va_end(args);
}

static void put_float(text *t, const char *before, float value)
{
    char number[32];
    put(t, "%s%s", before, float_text(value, number, sizeof number));
}

const char *schedule_text(const mr_schedule *s, char *out, size_t bytes)
{
    text t = {out, bytes, 0};
    const uint32_t most = sizeof s->milestones / sizeof *s->milestones,
                   count = s->milestone_count < most ? s->milestone_count : most;
    put(&t, "%s", schedule_name(s));
    switch (s->kind) {
    case MR_LR_CONSTANT: break;
    case MR_LR_STEP:
        for (uint32_t i = 0; i < count; i++) put(&t, "%s%g", i ? "/" : ":", s->milestones[i]);
        put_float(&t, ",factor=", s->factor);
        break;
    case MR_LR_COSINE:
    case MR_LR_LINEAR:
        if (s->floor_lr > 0) put_float(&t, ":", s->floor_lr);
        break;
    case MR_LR_DECAY: put_float(&t, ":", s->decay); break;
    case MR_LR_PIECEWISE:
        for (uint32_t i = 0; i + 1 < count; i += 2) {
            put_float(&t, i ? "/" : ":", (float)s->milestones[i + 1]);
            put(&t, "@%g", s->milestones[i]);
        }
        break;
    case MR_LR_EXPONENTIAL:
        put_float(&t, ":", s->factor);
        if (s->floor_lr > 0) put_float(&t, ":", s->floor_lr);
        break;
    case MR_LR_ONE_CYCLE:
        put(&t, ":%g", (double)s->factor);
        put_float(&t, ":", s->floor_lr);
        put_float(&t, ",up=", s->decay);
        break;
    }
    if (s->warmup_epochs > 0) put(&t, ",warmup=%g", s->warmup_epochs);
    return out;
}
