/* tools/foreign/tree.h: all descendants of this process, looked at every now and then.
 *
 *   counters (CPU time of a thread, its waits) are added up from look to look, so that threads may come
 *   and go; a thread's use after the last look at it is missing here; the kernel's sums of ended processes
 *   have it (foreign.c)
 *   states and memory are counted at each look */
#ifndef TOOLS_TREE_H
#define TOOLS_TREE_H

#include <stdbool.h>
#include <stdint.h>

/* A process of the tree that was seen. */
typedef struct tree_process {
    int32_t pid, parent; /* parent: when it was seen first */
    char name[64];
    uint64_t start_ticks;
    double cpu_s;     /* its own, of a core, as far as it was seen, since the mark */
    double before_s;  /* before that */
    uint32_t threads; /* most */
    bool alive;       /* at the last look */
} tree_process;

typedef struct tree_figures {
    tree_process *process;
    uint32_t count;
    bool more; /* there were more processes than are kept */
    uint64_t looks;
    double cpu_s;       /* of all that was seen */
    double core_wait_s; /* threads that could have run, and waited for a core; added up */
    double disk_wait_s; /* threads that waited for a block device; added up */
    bool has_core_wait;
    double waiting;     /* threads that waited uninterruptibly, mean over looks: for storage, most of them */
    double any_waiting; /* part of the looks at which there was one */
    uint64_t rss_bytes; /* most, added up: pages that are shared count more than once */
    uint32_t threads, processes; /* most at one look */
    uint32_t alive;              /* processes at the last look */
} tree_figures;

typedef struct tree tree;

/* root: "" (a test brings a folder of its own in place of /proc); self: whose descendants. NULL: no memory.
 */
tree *tree_create(const char *root, int32_t self);
void tree_look(tree *t);
/* pids of the newest look; valid until the next one. */
const int32_t *tree_pids(const tree *t, uint32_t *count);
/* Count from here on: reset the sums. */
void tree_mark(tree *t);

/* The use of running processes and of the children they waited for, which other sums do not include yet. */
typedef struct tree_used {
    double user_s, system_s;
    uint64_t read_calls, storage, faults;
} tree_used;
void tree_living(const tree *t, tree_used *out);
/* out->process belongs to the caller: free(). */
void tree_take(tree *t, tree_figures *out);
void tree_destroy(tree *t); /* accepts NULL */

#endif
