/* tools/session/goal.h: when train evaluates inside an epoch, and at which accuracy it stops:
 * options, and their reports. */
#ifndef TOOLS_GOAL_H
#define TOOLS_GOAL_H

#include "millrace/train.h"
#include "tools/cli/json.h"
#include "tools/session/groups.h"

enum { GOAL_POINTS_MOST = 256 };

/* Where --eval-at says, in epochs. EXIT_MISUSED: it makes no sense, which is said. */
int goal_points(const goal_args *a, double out[GOAL_POINTS_MOST], uint32_t *count);

/* An evaluation inside an epoch: a row of the table of reports (tools/cli/report.h), or a line of JSON. */
void goal_eval_text(const mr_eval_report *r);
void goal_eval_json(const mr_eval_report *r);

/* What came of it, at the end: a line, or keys of the object that is open; nothing where there is no such
 * accuracy. */
void goal_text(const mr_trainer *t);
void goal_json(json_line *j, const mr_trainer *t);

#endif
