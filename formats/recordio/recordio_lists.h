/* formats/recordio/recordio_lists.h: the companion text files of a RecordIO file. Private.
 *
 *   NAME.idx   key, tab, offset of a record in NAME.rec
 *   NAME.lst   index, tab, label (or several with tabs between), tab, path of the picture that was packed */
#ifndef MRI_RECORDIO_LISTS_H
#define MRI_RECORDIO_LISTS_H

#include "formats/source/source.h"

typedef struct mri_rec_offset {
    uint64_t offset, key;
    uint32_t line;  /* in its file, from 1 */
    bool is_number; /* key is one */
} mri_rec_offset;

typedef struct mri_rec_entry {
    uint64_t index;
    double label; /* the one asked for; NAN when the line has no such label */
    uint32_t line;
    bool taken;       /* for who looks through them */
    const char *path; /* of the picture that was packed, as the list has it */
} mri_rec_entry;

typedef struct mri_rec_lists {
    char *idx_path, *lst_path; /* NULL: not there */
    mri_rec_offset *offset;    /* by offset */
    uint64_t offset_count;
    mri_rec_entry *entry; /* by index */
    uint64_t entry_count;
    char *lst_text; /* that the paths lie in */
} mri_rec_lists;

/* Read the companions of rec_path. Each line is checked by itself; no offset may occur twice, lie past
 * rec_bytes, or between multiples of 4. label_at: which of several labels. */
int mri_rec_lists_read(mri_rec_lists *out, const char *rec_path, uint64_t rec_bytes, uint32_t label_at,
                       const mr_source_config *cfg, mr_error *err);
void mri_rec_lists_fini(mri_rec_lists *l);

mri_rec_entry *mri_rec_lists_find(const mri_rec_lists *l, uint64_t index); /* NULL: not listed */

/* A hash that changes when one of these files is created, removed or written. */
uint64_t mri_rec_lists_fingerprint(const char *rec_path);
/* The lists that are next to a file are files of the source, too. */
int mri_rec_lists_note(mr_source *src, const char *rec_path, mr_error *err);

#endif
