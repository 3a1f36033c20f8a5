/* tools/session/odd_list.h: workers and files that stick out of a run, with names. */
#ifndef TOOLS_ODD_LIST_H
#define TOOLS_ODD_LIST_H

#include "tools/cli/json.h"
#include "tools/session/session.h"

typedef struct odd_list {
    uint32_t count;
    struct {
        mr_odd what;
        char file[512]; /* its path; "": a worker */
    } of[MR_LOADER_ODD];
} odd_list;

/* While loader and source are open. */
void odd_take(odd_list *out, const tool_session *s);
/* Print a line for each. */
void odd_text(const odd_list *l);
/* slow_workers and slow_files, arrays. */
void odd_json(json_line *j, const odd_list *l);

#endif
