/* formats/storage/text.h: a text file read once from front to end, plain or packed with gzip, with the number
 * of the line. Private.
 *
 * A UTF-8 byte order mark at the beginning is skipped; UTF-16 is refused with a message that names it. Only
 * one piece of the file is in memory. */
#ifndef MRI_TEXT_H
#define MRI_TEXT_H

#include "millrace/base.h"

struct mri_text_unpack;

typedef struct mri_text {
    const char *path;        /* the caller's */
    const uint8_t *at, *end; /* bytes read and not yet taken */
    uint64_t line;           /* of what at points to, from 1: counted by whoever takes line ends */
    int fd;
    uint64_t file_bytes, read_bytes;
    uint64_t unpacked_bytes; /* so far */
    uint8_t *buf;
    struct mri_text_unpack *unpack; /* NULL: plain */
} mri_text;

/* The file must not change meanwhile. On failure there is nothing to close. */
int mri_text_open(mri_text *t, const char *path, mr_error *err);
/* The same of an open file, which is t's from now on, also on failure; path for messages. fd -1: as above. */
int mri_text_take(mri_text *t, int fd, const char *path, mr_error *err);
void mri_text_close(mri_text *t); /* accepts a zeroed one */

/* Read more when at == end. MR_OK: there is at least one byte; MR_EEND: the end of the file. */
int mri_text_more(mri_text *t, mr_error *err);

/* An error in this line; returns code. */
int mri_text_error_at(const mri_text *t, mr_error *err, int code, uint64_t line, const char *format, ...)
    MR_PRINTF(5, 6);

/* Whole UTF-8 and none of the forms it forbids (overlong, surrogates, past U+10FFFF)? */
bool mri_is_utf8(const void *text, size_t bytes);

#endif
