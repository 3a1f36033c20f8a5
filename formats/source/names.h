/* formats/source/names.h: a growing set of texts, numbered in the order in which they were added, with
 * lookup. Private. */
#ifndef MRI_NAMES_H
#define MRI_NAMES_H

#include "millrace/base.h"

typedef struct mri_names {
    char *text; /* one after the other, each with a NUL */
    size_t text_used, text_cap;
    uint32_t *at; /* of each in text */
    uint32_t count, cap;
    /* hash table of numbers + 1; 0: free. A power of two of them, NULL when empty or sealed */
    uint32_t *slot;
    uint32_t slot_count;
} mri_names;

/* The number of this text, new or old. text has no NUL inside. MR_ENOMEM; MR_ELIMIT over 4 GiB of text or
 * 2^31 of them. */
int mri_names_add(mri_names *n, const char *text, size_t bytes, uint32_t *number, bool *is_new);
/* Nothing will be added any more: frees spare memory and the hash table. */
void mri_names_seal(mri_names *n);
void mri_names_fini(mri_names *n);

uint64_t mri_names_memory(const mri_names *n);

static inline const char *mri_name(const mri_names *n, uint32_t number) { return n->text + n->at[number]; }

#endif
