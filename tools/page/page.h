/* tools/page/page.h: the frame of a page, and words and tables in it. Light or dark follows the reader's
 * settings; colours of charts are classes: "a".."d" for runs, "c0".."c11" for causes (mr_cause). */
#ifndef TOOLS_PAGE_H
#define TOOLS_PAGE_H

#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>

#include "millrace/base.h"

/* How a page begins: who finds this in a file may replace it. */
#define PAGE_MARK "<!doctype html><!-- millrace report -->"

void page_begin(FILE *f, const char *title);
void page_end(FILE *f);

/* With what HTML would take for its own escaped, and bytes that are no UTF-8 or end a line as they would be
 * shown on a terminal. */
void page_text(FILE *f, const char *text);
void page_heading(FILE *f, const char *text);
/* A paragraph of small words; escaped. */
void page_note(FILE *f, const char *format, ...) MR_PRINTF(2, 3);

/* 1234567.8 as "1,234,568", 12.345 as "12.3", 0.01234 as "0.0123"; "-" for NAN. room: 32 bytes. */
const char *page_number(double value, char *room);

/* "name" with a square of its class. */
void page_key(FILE *f, const char *css, const char *name);

/* bytes at data as a picture in the page itself: "image/png". */
void page_picture(FILE *f, const char *type, const void *data, size_t bytes, const char *label);

/* May a page be written as path? An existing page is replaced, another existing file only with force. False
 * after saying why not, with the option's name. */
bool page_may_write(const char *option, const char *path, bool force);
/* Under its name when it is whole. MR_ENOMEM, or why the file cannot be written. */
int page_write(const char *path, void (*put)(FILE *f, void *context), void *context, mr_error *err);

#endif
