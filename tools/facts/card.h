/* tools/facts/card.h: a description of a finished set for other people and programs, as plain metadata.
 *
 *   NAME.json, NAME.jsonld   Croissant 1.0: files with sizes and sums, fields, classes (card_croissant.c)
 *   NAME.md                  a dataset card of Hugging Face: facts in YAML, then as text (card_huggingface.c)
 *
 * A card has facts that the set shows, and no licence, source or author: those are the user's to add. Files
 * have names relative to the card, which lies in their folder or above. */
#ifndef TOOLS_CARD_H
#define TOOLS_CARD_H

#include <limits.h>
#include <stdio.h>

#include "millrace/pipeline.h"

enum { CARD_ENDINGS = 16, CARD_PARTS = 2, CARD_NAME = 256 };

typedef struct card_args {
    const char *path; /* of the card */
    const char *set;
    const mr_source_config *opened; /* how the set is opened; NULL: the defaults */
    uint32_t part;                  /* MR_PART_...: the split that the set is of; 0: unknown */
    uint32_t workers;               /* threads that read files; 0: one per core */
    bool force, quiet;
} card_args;

typedef struct card_part { /* a split */
    const char *name;
    mr_source *src;
    uint64_t first_file, files;    /* of card.file: those of this split that no split before has */
    char ending[CARD_ENDINGS][16]; /* of its pictures' names */
    uint32_t endings;
    char prefix[1024];   /* folder: names of samples begin so, before the class */
    bool by_class, deep; /* folder: the class follows the prefix; it is a path */
    char label[8];       /* archive: the ending of members with the class; "": none, or not known */
} card_part;

typedef struct card_file {
    char *name; /* malloc'd */
    uint64_t bytes;
    char sha256[65];
} card_file;

typedef struct card {
    const card_args *args;
    char name[CARD_NAME];
    char home[PATH_MAX];   /* the card's folder */
    char inside[PATH_MAX]; /* folder: its name from there, ending with a slash; "": the same */
    const char *format;
    bool is_folder; /* each sample is a file */
    bool plain;     /* picture and class are the only fields but the name */
    card_part part[CARD_PARTS];
    uint32_t parts;
    card_file *file;
    uint64_t files, room;
    uint64_t file_bytes;
    int failed; /* a status of the library, in err */
    mr_error err;
} card;

/* Can the card be written, and is it in the folder of the set, or above it? Asked before the work, which may
 * make the set and, where the set is a folder, this folder. 0, or an exit status after saying why not; path
 * may be NULL. */
int card_check(const char *path, const char *set, bool force);
/* 0, or an exit status. */
int card_write(const card_args *a);

/* ---- for the two kinds ---- */
void card_put_croissant(const card *c, FILE *out);
void card_put_huggingface(const card *c, FILE *out);
/* "WebDataset (tar)" */
const char *card_format_text(const card *c);
/* The media type of an ending. */
const char *card_media_type(const char *ending);
uint64_t card_count(const card *c);        /* samples */
uint64_t card_sample_bytes(const card *c); /* bytes of them */
/* The data of all splits have the same classes and fields: those of the first. */
const mr_source_info *card_info(const card *c);

#endif
