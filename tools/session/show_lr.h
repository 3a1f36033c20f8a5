/* tools/session/show_lr.h: `train --show`: the learning rate of a run that is not begun. */
#ifndef TOOLS_SHOW_LR_H
#define TOOLS_SHOW_LR_H

#include "tools/session/session.h"

typedef struct show_args {
    bool show;
    uint64_t steps; /* of an epoch; 0: from the data, whose head is read */
} show_args;

extern const opt show_options[2];
#define SHOW_GROUP(type, member)                                                                             \
    {                                                                                                        \
        "Learning rate", show_options, OPT_COUNT(show_options), offsetof(type, member), true                 \
    }

/* As the run with these options would have it; a row for each epoch, or after every log_steps-th update. What
 * is opened in s the caller closes. */
int show_lr(tool_session *s, const session_args *a, const show_args *show, uint64_t log_steps);

#endif
