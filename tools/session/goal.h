/* tools/session/goal.h: what `train --stop-at-accuracy` tells at its end. */
#ifndef TOOLS_GOAL_H
#define TOOLS_GOAL_H

#include "millrace/train.h"
#include "tools/cli/json.h"
#include "tools/cli/options.h"

typedef struct goal_args {
    double stop_at_accuracy;
} goal_args;

extern const opt goal_options[1];
#define GOAL_GROUP(type, member)                                                                             \
    {                                                                                                        \
        "Evaluation", goal_options, OPT_COUNT(goal_options), offsetof(type, member), true                    \
    }

/* A line, or keys of the object that is open; nothing where there is no such accuracy. */
void goal_text(const mr_trainer *t);
void goal_json(json_line *j, const mr_trainer *t);

#endif
