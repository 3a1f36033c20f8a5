/* formats/text/csv.h: rows of a table in text (RFC 4180), one after the other, with line numbers. Private.
 *
 *   separator   , ; or tab: the one that cuts all of the first lines into equally many pieces, else the most
 *               frequent one; | where the first line is without these; else the last blank of each line: the
 *               place in front of it may have further blanks ("my cat.jpg 0")
 *   quotes      around a whole place, "" inside for one quote; separators and line ends inside belong to it
 *   line ends   \n, \r\n or \r; empty lines are passed over; the last one may lack its end
 *
 * A text that begins with an object of JSON, or a list of them, gives rows as well: json_rows.h.
 *
 * Refused, with the line: NUL, invalid UTF-8, text after a closing quote, a quote that is never closed, a row
 * over MRI_CSV_ROW_BYTES or MRI_CSV_FIELDS. The caller checks that all rows have the same number of
 * columns. */
#ifndef MRI_CSV_H
#define MRI_CSV_H

#include <string.h>

#include "formats/storage/storage.h"

enum { MRI_CSV_ROW_BYTES = 1 << 20, MRI_CSV_FIELDS = 4096, MRI_JSON_KEYS = 64 };

typedef struct mri_json_rows { /* json_rows.h */
    bool on;                   /* the text is JSON */
    bool begun, list, ended, first_given;
    struct cJSON *first; /* object, whose keys are the columns */
    uint32_t key_count;
    uint64_t nested; /* columns of this row whose value is no single one, a bit each */
    char more[80];   /* the first key that the first object lacks, and that nobody reads; "": none */
    uint64_t large;  /* the same of whole numbers of more than 53 bits */
    char *text;      /* of an object */
    size_t bytes, cap;
} mri_json_rows;

typedef struct mri_csv {
    mri_text text;
    char separator;
    uint64_t line;   /* where this row begins */
    uint32_t count;  /* places in it */
    uint32_t *place; /* of each in row */
    char *row;       /* their text, each ends with a NUL */
    size_t row_bytes, row_cap;
    uint32_t place_cap;
    mri_json_rows json;
    /* Has a key of this name a meaning? Others may be missing in the first object. NULL: all have one */
    bool (*is_known)(const char *name);
} mri_csv;

int mri_csv_open(mri_csv *c, const char *path, mr_error *err);
int mri_csv_take(mri_csv *c, int fd, const char *path, mr_error *err); /* as mri_text_take() */
void mri_csv_close(mri_csv *c);
/* The next row. MR_EEND: after the last. */
int mri_csv_next(mri_csv *c, mr_error *err);

static inline const char *mri_csv_place(const mri_csv *c, uint32_t at) { return c->row + c->place[at]; }

/* Add a place to the row that is made. */
int mri_csv_put(mri_csv *c, const char *text, size_t bytes, mr_error *err);
/* MR_EFORMAT where this place of the row holds a list or an object. what: its use, for the message. */
int mri_csv_single(const mri_csv *c, uint32_t at, const char *what, mr_error *err);

/* A field's text without the spaces around it: its start, and in *bytes its length. */
static inline const char *mri_csv_trimmed(const char *place, size_t *bytes)
{
    while (*place == ' ' || *place == '\t') place++;
    *bytes = strlen(place);
    while (*bytes > 0 && (place[*bytes - 1] == ' ' || place[*bytes - 1] == '\t')) --*bytes;
    return place;
}

/* The column of this row of names with the name, else one whose name differs in case alone; -1: none. */
int mri_csv_find_name(const mri_csv *c, const char *name, size_t name_bytes);
/* MR_EFORMAT when another column of this row of names has the name of column `at`. asked: the user gave the
 * name, so that one that differs in case is another. option: the one that takes a column's number, for the
 * message. */
int mri_csv_named_once(const mri_csv *c, uint32_t at, bool asked, const char *option, mr_error *err);

/* The separator of a text that begins with these bytes. */
char mri_csv_separator(const uint8_t *head, size_t bytes);

#endif
