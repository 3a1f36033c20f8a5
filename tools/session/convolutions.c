/* tools/session/convolutions.c: see convolutions.h. */
#include "tools/session/convolutions.h"

#include <stdio.h>
#include <string.h>

convolution_count count_convolutions(const mr_trainer *t)
{
    convolution_count c = {0};
    mr_trainer_op op;
    for (uint32_t at = 0; mr_trainer_op_at(t, at, &op); at++) {
        if (op.info->scratch_bytes > c.scratch_bytes) c.scratch_bytes = op.info->scratch_bytes;
        for (int pass = 0; pass <= MR_PASS_WEIGHTS; pass++) {
            const char *name = op.info->algorithm[pass];
            c.passes += name != NULL;
            c.winograd += name && strcmp(name, "winograd") == 0;
        }
    }
    return c;
}

void convolutions_text(const char *word, const convolution_count *c, uint32_t choice)
{
    if (!c->passes) return;
    printf("%-8s convolution %s: Winograd in %u of %u passes; scratch %.1f MiB a replica\n", word,
           group_choice("convolution", choice), c->winograd, c->passes, (double)c->scratch_bytes / 1048576);
}

void convolutions_json(json_line *j, const convolution_count *c, uint32_t choice)
{
    json_text(j, "convolution", c->passes ? group_choice("convolution", choice) : NULL);
    json_u64(j, "convolution_passes", c->passes);
    json_u64(j, "winograd_passes", c->winograd);
    json_u64(j, "scratch_bytes", c->scratch_bytes);
}
