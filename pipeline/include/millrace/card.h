/* millrace/card.h: a description of a finished data set for other people and programs, as plain metadata.
 *
 *   NAME.json, NAME.jsonld   Croissant 1.0: files with sizes and SHA-256 sums, fields, classes
 *   NAME.md                  a dataset card of Hugging Face: facts in YAML, then as text
 *
 * A card has facts that the set shows. The user adds licence, source and author (mr_card_missing()). File
 * names are relative to the card, which lies in the folder of the set or above it.
 */
#ifndef MILLRACE_CARD_H
#define MILLRACE_CARD_H

#include "millrace/formats.h"

#ifdef __cplusplus
extern "C" {
#endif

/* Settings of mr_card_write(). mr_card_defaults() sets 0, false and NULL everywhere. */
typedef struct mr_card_config {
    size_t struct_size;
    const mr_source_config *opened; /* settings with which the set is opened, read during the call; a split
                                       other than MR_SPLIT_AUTO is the only one on the card. NULL (default):
                                       the defaults, without an index file next to the set */
    uint32_t part;    /* MR_PART_...: name of the split of a set that does not name it; 0: "train" */
    uint32_t threads; /* threads that read files; 0: one per core (mr_manifest_config.threads) */
    bool force;       /* replace an existing card. Default false: MR_EEXIST */
    /* Called about every 10 ms while files are read: done of count files; or NULL */
    void (*on_progress)(void *context, uint64_t done, uint64_t count);
    void *context;            /* passed to it; the calling thread calls it, no lock is held */
    const volatile int *stop; /* set non-zero, also in a signal handler, to stop; or NULL */
} mr_card_config;

static inline void mr_card_defaults(mr_card_config *cfg);

/* Write the card of a data set. Reads all files of the set, except for folders of pictures, whose names it
 * reads. The card appears under its name when it is complete. Blocks.
 *
 * path  of the card; its ending chooses the kind
 * set   path of the data set
 * cfg   settings; NULL: the defaults
 *
 * MR_EINVAL     the ending is no kind of card, or a file of the set is not below the card's folder
 * MR_EEXIST     path exists, and force is false
 * MR_ECANCELED  cfg->stop was set; nothing is written
 * other < 0     the set cannot be opened or read, or the card cannot be written */
MR_API int mr_card_write(const char *path, const char *set, const mr_card_config *cfg, mr_error *err);

/* Check before a set is made, perhaps in a folder that is made with it, that mr_card_write() can put a card
 * of it to path. Errors as there. */
MR_API int mr_card_check(const char *path, const char *set, bool force, mr_error *err);

/* Return the facts that a card of this kind lacks and only the user knows, such as "license"; NULL: the
 * ending of path is no kind of card. A static text. */
MR_API const char *mr_card_missing(const char *path);

/* ------------------------------------------------------------------------------ struct sizes
 *
 * Nothing to read here for a program in C or C++. The library exports the function below in place of the
 * inline one above, which passes the size of its struct in the caller's header (base.h). A program in another
 * language sets struct_size and calls ..._sized. */

MR_API void mr_card_defaults_sized(mr_card_config *cfg, size_t struct_size);
static inline void mr_card_defaults(mr_card_config *cfg) { mr_card_defaults_sized(cfg, sizeof *cfg); }

#ifdef __cplusplus
}
#endif

#endif
