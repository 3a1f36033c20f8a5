/* tools/session/goal.h: when train evaluates inside an epoch, and at which accuracy it stops:
 * options, and their reports. */
#ifndef TOOLS_GOAL_H
#define TOOLS_GOAL_H

#include "millrace/train.h"
#include "tools/cli/json.h"
#include "tools/cli/options.h"

typedef struct goal_args {
#define MRI_SETTING(member, kind, ...) MRI_TYPE_##kind member;
#define MRI_OPTION                     MRI_SETTING
#include "settings/goal.rows"
} goal_args;

enum {
    GOAL_OPTIONS = 0
#define MRI_SETTING(member, kind, ...) +1
#define MRI_OPTION                     MRI_SETTING
#include "settings/goal.rows"
};
extern const opt goal_options[GOAL_OPTIONS];
#define GOAL_GROUP(type, member)                                                                             \
    {                                                                                                        \
        "Evaluation", goal_options, OPT_COUNT(goal_options), offsetof(type, member), true                    \
    }

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
