/* tools/cli/output.h: output other than results: error lines on stderr, numbers in readable form. */
#ifndef TOOLS_OUTPUT_H
#define TOOLS_OUTPUT_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "millrace/base.h"
#include "settings/number_put.h"

/* "millrace: ..." on stderr. The progress bar, if one is shown, is wiped first. */
void say(const char *format, ...) MR_PRINTF(1, 2);
void say_error(const mr_error *err);
/* The newest message, without the name in front; "": none yet. Returns buf. */
const char *said_last(char *buf, size_t buf_bytes);
/* "millrace, rank 2: ..." from now on, for "rank" and 2. */
void say_as(const char *what, uint32_t number);

/* How much is going to be written, where that is a gibibyte or more. free_bytes UINT64_MAX: unknown. */
void space_say(uint64_t bytes, uint64_t free_bytes, bool quiet);

/* The shortest decimal that reads back as this float. buf is 32 bytes or more; returns buf. */
const char *float_text(float value, char *buf, size_t buf_bytes);

/* A name or text out of a file or folder, on stdout, with control characters made harmless to a terminal. */
void put_shown(const char *text);
/* The same to be printed with more: all names that others may have chosen (paths of data and names inside of
 * data included) go through one of these, say() or json_text(). One of 4 buffers in turn. */
const char *shown_text(const char *text);

#endif
