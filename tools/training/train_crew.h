/* tools/training/train_crew.h: the processes of a run as servers of parameters and workers.
 *
 *   takes    the world of all processes
 *   gives    a worker's world of workers; in a server, the exit status when the workers have ended
 *   callers  tools/commands/cmd_train.c */
#ifndef TOOLS_TRAIN_CREW_H
#define TOOLS_TRAIN_CREW_H

#include "tools/session/world.h"

/* Does this value of --sync need servers? */
bool crew_is_needed(uint32_t sync);
/* If only some processes need servers, all of them end with an exit status. */
int crew_agree(const tool_world *w, uint32_t sync);
/* *w becomes the world of workers, with the crew in *out, or stays that of all in a server, which serves
 * until the workers end; *served: this process is one. An exit status. */
int crew_join(mr_crew **out, tool_world *w, const rank_args *a, uint32_t servers, bool *served);

#endif
