/* tools/training/train_header.h: the lines of `millrace train` before the first step: network, data, rule,
 * devices, loader. */
#ifndef TOOLS_TRAIN_HEADER_H
#define TOOLS_TRAIN_HEADER_H

#include "tools/session/session.h"
#include "tools/session/world.h"

typedef struct frozen_count { /* what of the network is not trained */
    uint32_t layers, all;     /* with parameters */
    uint64_t params;
} frozen_count;
/* Of the network that is open; an exit status. */
int train_header_count_frozen(const tool_session *s, frozen_count *out);

typedef struct train_header {
    const tool_session *s; /* all of it is open */
    const mr_source *val;  /* or NULL */
    const run_args *run;   /* with the model's settings filled in */
    uint32_t convolution;  /* mr_convolution, as the user or the checkpoint wants it */
    const tool_world *world;
    const char *from; /* checkpoint resumed from, or NULL */
    const session_begin *begin;
    const frozen_count *frozen;
    uint64_t start_epoch, start_step;
} train_header;

void train_header_text(const train_header *h);
void train_header_json(const train_header *h);

#endif
