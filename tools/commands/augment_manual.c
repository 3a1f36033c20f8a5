/* tools/commands/augment_manual.c: `millrace help augment`. */
#include <stdio.h>
#include <string.h>

#include "millrace/pipeline.h"
#include "tools/commands/commands.h"

void put_augment_manual(FILE *out)
{
    const char *help, *usage;
    fputs("--augment SPEC: operations in order, separated by commas, or a preset.\n\n", out);
    for (uint32_t k = 0; (help = mr_augment_help(k, &usage)) != NULL; k++) {
        fprintf(out, "  %s\n", usage);
        for (const char *line = help; *line;) {
            const size_t n = strcspn(line, "\n");
            fprintf(out, "      %.*s\n", (int)n, line);
            line += n + (line[n] == '\n');
        }
    }
    fputs("\nPresets: none; rrc224 = rrc(224),flip,normalise(imagenet); center224 =\n"
          "resize(256),center(224),normalise(imagenet); cifar = padcrop(4),flip.\n"
          "A random operation is left out in evaluation where it says nothing else.\n",
          out);
}
