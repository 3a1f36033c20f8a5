/* tools/facts/card.h: the card of a set that a command has made: messages and exit status. */
#ifndef TOOLS_CARD_H
#define TOOLS_CARD_H

#include "millrace/pipeline.h"

typedef struct card_args {
    const char *path; /* of the card */
    const char *set;
    const mr_source_config *opened; /* how the set is opened; NULL: the defaults */
    uint32_t part;                  /* MR_PART_...: the split that the set is of; 0: unknown */
    uint32_t workers;               /* threads that read files; 0: one per core */
    bool force, quiet;
} card_args;

/* Before the work: see mr_card_check(). 0, or an exit status after saying why not; path may be NULL. */
int card_check(const char *path, const char *set, bool force);
/* 0, or an exit status. */
int card_write(const card_args *a);

#endif
