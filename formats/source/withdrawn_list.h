/* formats/source/withdrawn_list.h: the file .millrace.withdrawn of a folder: samples of the files in this
 * folder that were withdrawn. Private. Below withdrawn.h, which knows sources; this knows one file.
 *
 *   millrace withdrawn 1
 *   NUMBER OFFSET BYTES STAMP HASH<tab>FILE<tab>NAME<tab>REASON
 *   ...
 *   end 2 samples checksum 1f29ab04
 *
 * An entry identifies a sample by FILE (without a folder), OFFSET and BYTES (decimal); HASH (16 hexadecimal
 * digits) is the hash of its bytes, STAMP the hash of the file's size and times when HASH was last compared.
 * Where another sample lies there, or FILE is gone, a sample of this folder is looked for by BYTES, HASH and
 * NAME (withdrawn_moved.h). NUMBER is the sample's number in the data set through which it was withdrawn: a
 * hint that saves a search. In FILE, NAME and REASON control characters and backslashes are \xHH. Entries are
 * sorted by FILE and OFFSET. CHECKSUM is the CRC32C of the lines above the last one. */
#ifndef MRI_WITHDRAWN_LIST_H
#define MRI_WITHDRAWN_LIST_H

#include "formats/storage/output.h"

#define MRI_WITHDRAWN_NAME ".millrace.withdrawn"

typedef struct mri_withdrawn_entry {
    uint64_t number, offset, bytes, stamp, hash;
    const char *file, *name, *reason; /* owned by the list's text, or by whoever made the entry */
    bool ours;                        /* withdrawn.c: of a file of the source that is open */
    bool found;                       /* withdrawn.c: one of its samples */
    bool gone;                        /* withdrawn.c: not ours, and its file is not there */
} mri_withdrawn_entry;

typedef struct mri_withdrawn_list {
    char *path; /* of the list */
    char *text;
    mri_withdrawn_entry *entry;
    uint64_t count;
} mri_withdrawn_list;

/* MR_OK with 0 entries when there is no such file. path is copied. To be freed in any case. */
int mri_withdrawn_list_read(mri_withdrawn_list *l, const char *path, mr_error *err);
void mri_withdrawn_list_fini(mri_withdrawn_list *l);
/* Sorted as the entries of l: into the part file of out. */
int mri_withdrawn_list_write(const mri_withdrawn_entry *entry, uint64_t count, mri_output *out,
                             mr_error *err);

/* By file, offset, bytes. */
int mri_withdrawn_order(const void *a, const void *b);
/* The first entry of this file; *end: the index after the last. */
uint64_t mri_withdrawn_of_file(const mri_withdrawn_list *l, const char *file, uint64_t *end);

#endif
