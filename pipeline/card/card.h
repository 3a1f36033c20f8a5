/* pipeline/card/card.h: the content of a data set's card. Private.
 *
 * The room
 *   takes     paths, settings with which the set is opened
 *   gives     mr_card_write(), mr_card_check(), mr_card_missing() (card.c); the kinds of cards (croissant.c,
 *             huggingface.c)
 *   callers   programs */
#ifndef MRI_CARD_H
#define MRI_CARD_H

#include <limits.h>
#include <stdio.h>

#include "millrace/card.h"

enum { MRI_CARD_ENDINGS = 16, MRI_CARD_PARTS = 2, MRI_CARD_NAME = 256 };

typedef struct mri_card_part { /* a split */
    const char *name;
    mr_source *src;
    uint64_t first_file, files;        /* of card.file: this split's, without files of earlier splits */
    char ending[MRI_CARD_ENDINGS][16]; /* of its pictures' names */
    uint32_t endings;
    char prefix[1024];   /* folder: names of samples begin so, before the class */
    bool by_class, deep; /* folder: the class follows the prefix; it is a path */
    char label[8];       /* archive: the ending of members with the class; "": none, or not known */
} mri_card_part;

typedef struct mri_card_file {
    char *name; /* malloc'd */
    uint64_t bytes;
    char sha256[65];
} mri_card_file;

typedef struct mri_card {
    const char *path; /* of the card */
    const char *set;
    const mr_card_config *cfg;
    char name[MRI_CARD_NAME];
    char home[PATH_MAX];   /* the card's folder */
    char inside[PATH_MAX]; /* folder: its name from there, ending with a slash; "": the same */
    const char *format;
    bool is_folder; /* each sample is a file */
    bool plain;     /* picture and class are the only fields but the name */
    mri_card_part part[MRI_CARD_PARTS];
    uint32_t parts;
    mri_card_file *file;
    uint64_t files, room;
    uint64_t file_bytes;
    int failed; /* a status of the library, in err */
    mr_error err;
} mri_card;

/* ---- for the two kinds ---- */
void mri_card_put_croissant(const mri_card *c, FILE *out);
void mri_card_put_huggingface(const mri_card *c, FILE *out);
/* A text, quoted and escaped as JSON does it, which YAML reads, too. Bytes that are not UTF-8 become the
 * character of the same number. */
void mri_card_put_text(FILE *out, const char *text);
/* "WebDataset (tar)" */
const char *mri_card_format_text(const mri_card *c);
/* The media type of an ending. */
const char *mri_card_media_type(const char *ending);
uint64_t mri_card_count(const mri_card *c);        /* samples */
uint64_t mri_card_sample_bytes(const mri_card *c); /* bytes of them */
/* The classes and fields of the first split; the other splits have the same. */
const mr_source_info *mri_card_info(const mri_card *c);

#endif
