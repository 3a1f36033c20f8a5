/* tools/advise/advise.h: `millrace convert SRC --advise`: the library's advice (millrace/forms.h) with the
 * command that follows it. */
#ifndef TOOLS_ADVISE_H
#define TOOLS_ADVISE_H

#include "millrace/forms.h"
#include "tools/session/groups.h"

typedef struct advise_args {
    const char *src_text, *augment; /* as the user wrote it; NULL: a usual one for pictures of their size */
    const data_args *data;
    uint32_t workers, channels;
    bool quiet, json;
} advise_args;

/* SRC, opened: measures, and prints the advice. 0 or an exit status. */
int advise(const mr_source *src, const advise_args *a);

typedef struct advise_result {
    const mr_source_info *info;
    mr_advice advice;
    char command[2048]; /* "": leave the data as they are */
    char reason[512];
} advise_result;

/* The options that make the form, each with a space before it: "" for records as they are. NULL: form[0]. */
const char *advise_set(const mr_advice *r, uint32_t form, char buf[64]);
void advise_print_text(const advise_result *r);
void advise_print_json(const advise_result *r);
/* Data without pictures: nothing to measure, and why. */
void advise_print_none(const mr_source_info *info, bool json);

#endif
