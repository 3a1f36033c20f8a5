/* tools/session/show_lr.h: `train --show`: the learning rate of a run that is not begun. */
#ifndef TOOLS_SHOW_LR_H
#define TOOLS_SHOW_LR_H

#include "tools/session/session.h"

/* As the run with these options would have it; a row for each epoch, or after every log_steps-th update. What
 * is opened in s the caller closes. */
int show_lr(tool_session *s, const session_args *a, const show_args *show, uint64_t log_steps);

#endif
