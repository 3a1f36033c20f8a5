/* tools/trial/timed_step.h: training where a step is nothing but the time that simulated devices give it. */
#ifndef TRIAL_TIMED_STEP_H
#define TRIAL_TIMED_STEP_H

#include "tools/session/session.h"

/* In place of a model. */
extern const mr_model timed_step_model;

/* As session_open_to_train(); without --model, and with simulated devices alone, a step of nothing but time.
 */
int timed_step_or_model(tool_session *s, const session_args *a, run_args *run);

/* s->net for the loader that is open, where it is such a step; nothing of it is ever computed. 0 or an exit
 * status. */
int timed_step_net(tool_session *s);

#endif
