/* tools/plan/plan.h: the parts of `millrace plan`: a run that is measured and recorded, what samples cost
 * in other forms, ways out with the rate that each would give, and the report. */
#ifndef TOOLS_PLAN_H
#define TOOLS_PLAN_H

#include "tools/plan/plan_cores.h"
#include "tools/plan/plan_exchange.h"
#include "tools/session/session.h"
#include "tools/session/world.h"

typedef struct plan_args {
    double seconds;
    bool no_forms;
    const char *link; /* "RATE,LATENCY" or NULL */
    rank_args rank;
    session_args shared;
} plan_args;

enum { PLAN_WAYS_MOST = 56, PLAN_FORMS = 3 };

/* Samples stored otherwise: what decoding and reading one (on a core) and its bytes come to, in times what
 * they are now. */
typedef struct plan_form {
    const char *name; /* NULL: not measured */
    double decode_times, read_core_times, bytes_times;
} plan_form;

typedef struct plan_way {
    char name[64], set[64]; /* set: the options that do it, or "" */
    mr_replay_config cfg;   /* of each process */
    plan_exchange exchange;
    mr_replay_result result; /* samples_per_s: of all processes */
} plan_way;

typedef struct plan_result {
    const char *data, *model, *device, *augment;
    uint32_t devices, batch, workers, prefetch, readers, depth;
    bool simulated, resident;
    double copied_bytes; /* of a batch, to each device */
    plan_ranks ranks;
    mr_record_totals measured; /* samples_per_s: of all processes, the rest of this one */
    double cores;              /* used by the whole process */
    core_use use;              /* of all cores, by others and nobody */
    double from_storage;       /* part of the bytes that did not come from the page cache, 0..1 */
    mr_replay_config base;
    plan_form form[PLAN_FORMS];
    plan_way way[PLAN_WAYS_MOST]; /* the first: as it is */
    uint32_t way_count;
    uint32_t best;      /* of way[]; 0: nothing that a command can change gives much more */
    char command[2048]; /* that makes the data of the best change; "": it is an option, or no change helps */
} plan_result;

/* The factor of recorded steps, with this exchange, of a step that takes p->ranks.alone_ms without. */
double plan_step_times(const plan_result *p, const plan_exchange *x);

/* Data, devices, network, loader: opened, run for about a->seconds, and closed but for data and devices. All
 * processes call it; after it only the first one goes on. link: of --link. *record is the caller's to
 * destroy. */
int plan_measure(const plan_args *a, const plan_link *link, tool_session *s, mr_record **record,
                 plan_result *p);
/* p->base.crowd_times. Loader and trainer are closed. */
int plan_measure_crowd(const tool_session *s, double seconds, plan_result *p);
/* p->form, from some of the data in a temporary folder. */
int plan_measure_forms(const tool_session *s, plan_result *p);
/* p->way. */
int plan_replay(const mr_record *record, plan_result *p);
/* p->best, p->command. src_text: the data as the user wrote them. */
void plan_advise(plan_result *p, const char *src_text);
void plan_print_text(const plan_result *p);
void plan_print_json(const plan_result *p);

#endif
