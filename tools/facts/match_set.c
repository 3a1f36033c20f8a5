/* tools/facts/match_set.c: see match_set.h. */
#include "tools/facts/match_set.h"

#include <stdlib.h>
#include <string.h>

#include "tools/cli/exit.h"
#include "tools/cli/output.h"
#include "tools/session/setup.h"

int match_open_set(mr_source **out, const char *set, const data_args *data)
{
    data_args own = *data;
    own.takes_withdrawn = true;
    own.format = own.image_key = own.label_key = own.take = own.target_key = own.split_key = NULL;
    own.split = MR_SPLIT_AUTO;
    own.classes = MR_CLASSES_FIRST;
    own.label_offset = "auto";
    return setup_source(out, set, &own);
}

int match_classes(mr_source *src, const char *set, const mr_source_info *of_set, const char *remedy)
{
    const mr_source_info *info = mr_source_info_of(src);
    mr_error err = MR_ERROR_INIT;
    if (!of_set->class_names || info->label_field < 0 || info->class_count == 0)
        return EXIT_DONE; /* mr_append() judges */
    if (!info->class_names) {
        say("%s: its classes are numbers, the classes of %s have names: convert "
            "--classes-from gives them names",
            info->path, set);
        return EXIT_FAILED;
    }
    uint32_t *to = malloc((size_t)info->class_count * sizeof *to);
    if (!to) return exit_no_memory("the names of classes");
    int status = EXIT_DONE;
    for (uint32_t k = 0; !status && k < info->class_count; k++) {
        to[k] = UINT32_MAX;
        for (uint32_t c = 0; to[k] == UINT32_MAX && c < of_set->class_count; c++)
            if (strcmp(info->class_names[k], of_set->class_names[c]) == 0) to[k] = c;
        if (to[k] != UINT32_MAX || !info->class_names[k][0]) continue;
        say("%s: its class \"%s\" is not a class of %s: %s", info->path, info->class_names[k], set, remedy);
        status = EXIT_FAILED;
    }
    if (!status)
        status = exit_status(mr_source_name_classes(src, to, of_set->class_names, of_set->class_count, &err),
                             &err);
    free(to);
    return status;
}
