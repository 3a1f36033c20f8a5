/* tools/session/world_cores.h: the cores of a machine among the processes of a run on it. */
#ifndef TOOL_WORLD_CORES_H
#define TOOL_WORLD_CORES_H

#include "tools/session/world.h"

/* Each process that has the same cores as others takes its part of them (mr_use_cores()); one that a launcher
 * has bound to cores of its own has them. The first process reports, once, that its launcher leaves half of
 * the machine's cores or more to nobody. All processes of the world at once; an exit status. */
int world_share_cores(const tool_world *w);

#endif
