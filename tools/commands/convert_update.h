/* tools/commands/convert_update.h: `convert SRC DST --update`. Caller: cmd_convert.c. */
#ifndef TOOLS_CONVERT_UPDATE_H
#define TOOLS_CONVERT_UPDATE_H

#include "millrace/pipeline.h"
#include "tools/facts/choose.h"
#include "tools/session/groups.h"

typedef struct set_update_args { /* changed, gone: of mr_set_update_rule */
#define MRI_OPTIONS OPT_MEMBER
#include "settings/commands/convert_update.rows"
} set_update_args;

extern const opt_set set_update_options;

typedef struct convert_update {
    const char *dst;
    set_update_args args;
    uint32_t workers;
    uint64_t memory_bytes;
    bool force, no_space_check;
    const data_args *data;
    const choose_args *choose; /* the choice that was made of src */
    const output_args *output;
} convert_update;

/* Bring DST up to date with src, and report the counts. src is changed. Returns an exit status. */
int convert_update_run(const convert_update *u, mr_source *src);

#endif
