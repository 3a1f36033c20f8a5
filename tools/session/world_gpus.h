/* tools/session/world_gpus.h: which GPUs a process of several takes when it is to have its share of them. */
#ifndef TOOLS_WORLD_GPUS_H
#define TOOLS_WORLD_GPUS_H

#include "millrace/kernels.h"
#include "millrace/ranks.h"

/* "cuda" and "cuda:all" mean GPUs of this process's share: GPUs that all processes on this machine see are
 * dealt to them in the order of ranks; a process that sees others than the rest has its own. Every process of
 * the world calls it with the text of its --devices. *out: the text to open, in buf or spec itself. An exit
 * status. */
int world_gpus_deal(mr_world *world, const char *spec, char *buf, size_t buf_bytes, const char **out);
/* Tell, once, when processes have opened the same GPU. Every process of the world calls it. */
int world_gpus_tell_shared(mr_world *world, mr_device *const *devices, uint32_t count);

#endif
