/* tools/session/bad_list.h: the list of damaged samples: one JSON object per line, in the order they are
 * met.
 *
 * A conversion that is resumed leaves the same list as an undisturbed one: samples that are met again are not
 * written twice, and one that the list lacks (a kill, a full disk) is put where it belongs. A line that could
 * not be written whole is taken back. Only a list is ever replaced, never another file of that name. */
#ifndef TOOLS_BAD_LIST_H
#define TOOLS_BAD_LIST_H

#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>

#include "millrace/formats.h"

typedef struct bad_list {
    char path[4096];
    const mr_source *src; /* whose samples they are: their names are listed; the list may be none of its files
                           */
    mr_output *out;       /* NULL until the first line */
    bool old;             /* a list of an earlier run is there, to be replaced */
    bool in_order;        /* resumed: every line's place is known */
    struct bad_line *lines;
    uint64_t line_count, count; /* count: lines in the list now */
    uint64_t end;               /* in_order: bytes of the list */
    mr_error failure;           /* the first failure to write; code MR_OK when none */
} bad_list;

/* Nothing is made before there is a line. With resume the whole lines of an old list are kept, and lines are
 * in the order of samples. Without, it is removed in bad_list_begin(); another file than a list is refused
 * (MR_EEXIST) unless `force`. src is read from until the list is closed. */
int bad_list_open(bad_list *b, const char *path, const mr_source *src, bool resume, bool force,
                  mr_error *err);
/* The run has begun: remove an earlier run's list. A second call does nothing. */
void bad_list_begin(bad_list *b);
void bad_list_add(bad_list *b, const mr_error *what);
/* Resumed: a line of it is there. */
bool bad_list_has(const bad_list *b, uint64_t sample);
/* One line as it stands in a list; src may be NULL. */
void bad_list_line(FILE *out, const mr_source *src, const mr_error *what);
/* The first failure of any write, else MR_OK. */
int bad_list_close(bad_list *b, mr_error *err);

#endif
