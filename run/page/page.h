/* run/page/page.h: the frame of a page, and words and tables in it. Light or dark follows the reader's
 * settings; colours of charts are classes: "a".."d" for runs, "c0".."c11" for causes (mr_cause). */
#ifndef MRI_PAGE_H
#define MRI_PAGE_H

#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>

#include "millrace/base.h"

/* How a page begins: who finds this in a file may replace it. */
#define MRI_PAGE_MARK "<!doctype html><!-- millrace report -->"

void mri_page_begin(FILE *f, const char *title);
void mri_page_end(FILE *f);

/* With what HTML would take for its own escaped, and bytes that are no UTF-8 or end a line as they would be
 * shown on a terminal. */
void mri_page_text(FILE *f, const char *text);
void mri_page_heading(FILE *f, const char *text);
/* A paragraph of small words; escaped. */
void mri_page_note(FILE *f, const char *format, ...) MR_PRINTF(2, 3);

/* "name" with a square of its class. */
void mri_page_key(FILE *f, const char *css, const char *name);

/* bytes at data as a picture in the page itself: "image/png". */
void mri_page_picture(FILE *f, const char *type, const void *data, size_t bytes, const char *label);

typedef void mri_page_put(FILE *f, void *context);
/* Write what put() gives as path, which appears when it is complete. force: also over a file that is no page.
 * Numbers have the decimal point of the C locale. MR_ENOMEM, MR_EEXIST, or the reason why the file cannot be
 * written. */
int mri_page_write(const char *path, bool force, mri_page_put *put, void *context, mr_error *err);

#endif
