/* tools/session/world.h: this process among the processes that a launcher started with it. */
#ifndef TOOLS_WORLD_H
#define TOOLS_WORLD_H

#include "millrace/ranks.h"
#include "tools/session/groups.h"

enum { WORLD_HOST_CALLS = 1 }; /* channel of mr_world: the trainer's calls of the host go there, too */

typedef struct tool_world {
    mr_launch at;
    mr_world *world; /* NULL: started alone */
    bool first;      /* the one that prints results and writes files */
} tool_world;

/* Meet the others, if there are any; an exit status. From here on messages of several processes name the
 * rank, and only the first prints results. Each takes its share of the host's cores, unless
 * the launcher has bound it to some. */
int world_join(tool_world *w, const rank_args *a);
/* Its settings but for rank, size and job. */
void world_settings(mr_world_config *cfg, const rank_args *a);
/* The second half of it, for a world that is open: w->at and w->world are set (one process: NULL). */
int world_enter(tool_world *w, const rank_args *a);
/* The same line, where the muster has the port. */
void world_tell_open(void);
/* The exit status of the run: EXIT_BAD_SAMPLES when any process has it and all others are done. With
 * another status the others learn that this one has given up. Accepts one that has not joined. */
int world_leave(tool_world *w, int status);

/* Of a file that every process writes its own: path for the first one and for NULL, else PATH.rank2, in buf.
 */
const char *world_own_file(const tool_world *w, const char *path, char *buf, size_t buf_bytes);

/* The first process's bytes and exit status to all; when its status is not EXIT_DONE they are not sent, and
 * the others say whose it is. */
int world_share(const tool_world *w, int status, void *data, size_t bytes);
/* bytes of every process to all, in order of ranks. */
int world_gather(const tool_world *w, const void *mine, size_t bytes, void *all);
/* mine goes to the first process, there into all[rank], whose places and lengths are set there; lengths are
 * the same on both sides. The first one's own place is ignored. */
int world_send_to_first(const tool_world *w, mr_world_piece mine, const mr_world_piece *all);
/* Rows [first, first + count) of `all` are here: they are sent to all processes, and the others' rows are
 * received. An error code of the library. */
int world_share_rows(const tool_world *w, void *rows, size_t row_bytes, uint32_t first, uint32_t count,
                     uint32_t all, mr_error *err);

#endif
