/* tools/session/convolutions.h: what computes the convolutions of a trainer, for headers. choice:
 * mr_convolution, as --convolution has it. */
#ifndef TOOLS_CONVOLUTIONS_H
#define TOOLS_CONVOLUTIONS_H

#include "tools/cli/json.h"
#include "tools/session/session.h"

typedef struct convolution_count {
    uint32_t passes;        /* 0: unknown, or no convolutions */
    uint32_t winograd;      /* of them */
    uint64_t scratch_bytes; /* of one replica: operations share it, so it is the largest of any */
} convolution_count;

convolution_count count_convolutions(const mr_trainer *t);
/* One line behind this word; nothing where there is nothing to say. */
void convolutions_text(const char *word, const convolution_count *c, uint32_t choice);
void convolutions_json(json_line *j, const convolution_count *c, uint32_t choice);

#endif
