/* tools/plan/plan_exchange.h: the time that the exchange of gradients between processes adds to a step. Takes
 * a network and the length of its step, gives times; knows no record and no plan. */
#ifndef TOOLS_PLAN_PLAN_EXCHANGE_H
#define TOOLS_PLAN_PLAN_EXCHANGE_H

#include "tools/session/session.h"

enum { PLAN_RANKS_MOST = 4 };

/* A network between processes; bytes_per_s 0: unknown. */
typedef struct plan_link {
    double latency_s, bytes_per_s;
} plan_link;

/* Processes alike that exchange gradients after each step. */
typedef struct plan_exchange {
    uint32_t ranks; /* 0: none */
    plan_link link;
    double not_hidden;         /* share of the time that backward could hide and does not; 0 to 1 */
    mr_exchange_forecast time; /* of 1 rank all 0 */
} plan_exchange;

/* The processes of a measured run, and what other numbers of them would do. */
typedef struct plan_ranks {
    plan_exchange now, then[PLAN_RANKS_MOST];
    const char *wires;          /* of the measured run; NULL: one process */
    double alone_ms;            /* a step without exchange */
    double exposed_ms, late_ms; /* measured: added to a step by the exchange; part of it for a late rank */
    double usual_ms;            /* the same, the median of the steps */
} plan_ranks;

/* Of --link, or NULL; an exit status. */
int plan_link_read(const char *text, plan_link *out);
/* "1 Gbit/s" */
const char *plan_link_text(const plan_link *l, char *buf, size_t buf_bytes);

/* x->time, for x->ranks, x->link and steps that take alone_ms without exchange. s->net is built. An exit
 * status. */
int plan_exchange_predict(const tool_session *s, double alone_ms, plan_exchange *x);
/* Change x until x->time is the measured time, exposed_ms a step: if that is at most the time of all sums,
 * x->not_hidden; otherwise, and if less is exposed than predicted, the speed of x->link, latency and rate
 * alike. Unchanged if exposed_ms is a small part of a step, not caused by the exchange, or if no network of a
 * tenth to ten times the speed explains it. */
int plan_exchange_fit(const tool_session *s, double alone_ms, double exposed_ms, plan_exchange *x);
/* Predictions for other numbers of processes than now, over the given network, or if that is unknown over the
 * present one; if both are unknown, for none. */
int plan_exchange_others(const tool_session *s, double alone_ms, const plan_exchange *now,
                         const plan_link *given, plan_exchange out[PLAN_RANKS_MOST]);

#endif
