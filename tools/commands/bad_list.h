/* tools/commands/bad_list.h: the list of damaged samples: one JSON object per line, in the order they are
 * met.
 *
 * A line is on disk before the next record is written, so a killed run has listed everything its records
 * passed over. On resume some samples are met again: those already in the list are not written twice, so that
 * an interrupted and resumed run leaves the same list as an undisturbed one. */
#ifndef TOOLS_BAD_LIST_H
#define TOOLS_BAD_LIST_H

#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>

#include "millrace/base.h"

typedef struct bad_list {
    char path[4096];
    int fd; /* -1 until the first line */
    bool resume;
    uint64_t *known;             /* sample numbers listed by an earlier run, rising */
    uint64_t known_count, count; /* count: lines in the list now */
    mr_error failure;            /* the first failure to write; code MR_OK when none */
} bad_list;

/* Nothing is made before there is a line. Without resume an old list of that name is removed; with it its
 * whole lines are kept. path is DST.bad.jsonl. */
int bad_list_open(bad_list *b, const char *path, bool resume, mr_error *err);
void bad_list_add(bad_list *b, const mr_error *what);
/* One line as it stands in a list. */
void bad_list_line(FILE *out, const mr_error *what);
/* The first failure of any write, else MR_OK. */
int bad_list_close(bad_list *b, mr_error *err);

#endif
