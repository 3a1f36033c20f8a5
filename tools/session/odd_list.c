/* tools/session/odd_list.c: see odd_list.h. */
#include "tools/session/odd_list.h"

#include <inttypes.h>
#include <stdio.h>

#include "tools/cli/output.h"

void odd_take(odd_list *out, const tool_session *s)
{
    mr_odd found[MR_LOADER_ODD];
    mr_source_file file;
    *out = (odd_list){.count = mr_loader_odd(s->loader, found, MR_LOADER_ODD)};
    for (uint32_t i = 0; i < out->count; i++) {
        out->of[i].what = found[i];
        if (found[i].kind == MR_ODD_FILE && mr_source_file_at(s->src, found[i].number, &file) == MR_OK)
            snprintf(out->of[i].file, sizeof out->of[i].file, "%s", file.path);
    }
}

/* The figure in which a worker exceeds the others. */
static const char *why(mr_cause cause)
{
    switch (cause) {
    case MR_CAUSE_CORES: return "it could have run, and other threads had the core";
    case MR_CAUSE_BLOCKED: return "it was blocked, by a lock, page faults or whoever stops it";
    default: return "it ran all that time, on a slower core or with larger samples";
    }
}

void odd_text(const odd_list *l)
{
    for (uint32_t i = 0; i < l->count; i++) {
        const mr_odd *o = &l->of[i].what;
        if (o->kind == MR_ODD_WORKER)
            printf("  slow worker %u: %.2f ms a sample, %.1f times the others' %.2f: %s\n", o->number, o->ms,
                   o->times, o->others_ms, why(o->cause));
        else
            printf("  slow file %s: %.2f ms a read, %.1f times the others' %.2f\n", shown_text(l->of[i].file),
                   o->ms, o->times, o->others_ms);
    }
}

static void one_json(json_line *j, const mr_odd *o)
{
    json_real(j, "ms", o->ms);
    json_real(j, "others_ms", o->others_ms);
    json_real(j, "times", o->times);
}

void odd_json(json_line *j, const odd_list *l)
{
    json_array(j, "slow_workers");
    for (uint32_t i = 0; i < l->count; i++) {
        const mr_odd *o = &l->of[i].what;
        if (o->kind != MR_ODD_WORKER) continue;
        json_object(j, NULL);
        json_u64(j, "worker", o->number);
        one_json(j, o);
        json_u64(j, "samples", o->items);
        json_text(j, "cause", mr_cause_name(o->cause));
        json_close_object(j);
    }
    json_close_array(j);
    json_array(j, "slow_files");
    for (uint32_t i = 0; i < l->count; i++) {
        const mr_odd *o = &l->of[i].what;
        if (o->kind != MR_ODD_FILE) continue;
        json_object(j, NULL);
        json_text(j, "file", l->of[i].file);
        one_json(j, o);
        json_u64(j, "reads", o->items);
        json_close_object(j);
    }
    json_close_array(j);
}
