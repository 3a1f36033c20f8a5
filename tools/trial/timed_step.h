/* tools/trial/timed_step.h: training where a step is nothing but the time that simulated devices give it. */
#ifndef TRIAL_TIMED_STEP_H
#define TRIAL_TIMED_STEP_H

#include "tools/session/session.h"

/* In place of a model. */
extern const mr_model timed_step_model;

/* s->net for the loader that is open; nothing of it is ever computed. 0 or an exit status. */
int timed_step_net(tool_session *s);

#endif
