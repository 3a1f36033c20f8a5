/* tools/session/rank_list.h: which process of a run was the slowest. */
#ifndef TOOLS_RANK_LIST_H
#define TOOLS_RANK_LIST_H

#include "tools/cli/json.h"
#include "tools/session/session.h"

/* Nothing where there is one process. */
void rank_list_text(const tool_session *s);
void rank_list_json(json_line *j, const tool_session *s); /* "rank_times": [{rank, host, steps, compute_ms,
                                                             idle_ms}] */

#endif
