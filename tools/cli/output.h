/* tools/cli/output.h: what the user sees besides results: error lines on stderr, numbers in readable
 * form. */
#ifndef TOOLS_OUTPUT_H
#define TOOLS_OUTPUT_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "millrace/base.h"

/* "millrace: ..." on stderr. The progress bar, if one is shown, is wiped first. */
void say(const char *format, ...) MR_PRINTF(1, 2);
void say_error(const mr_error *err);

/* "1.5 GiB", "12.3 KiB", "17 B". buf is 32 bytes or more; returns buf. */
const char *size_text(double bytes, char *buf, size_t buf_bytes);

/* A name or text out of a file, on stdout, without what it could do to a terminal. */
void put_shown(const char *text);

#endif
