/* formats/source/withdrawn_moved.h: withdrawn samples that lie elsewhere now. Private to withdrawn.c.
 *
 * A set that was repaired or made anew has its samples at other offsets or in other files. A sample that
 * moved has the size, the bytes and the name of its entry, and lies in a file of the list's folder. Samples
 * that another entry of the list has are not asked. An entry gets a sample only where no other one could be
 * meant: as many samples as entries have these bytes and this name. */
#ifndef MRI_WITHDRAWN_MOVED_H
#define MRI_WITHDRAWN_MOVED_H

#include "formats/source/withdrawn_state.h"

typedef enum mri_stray_state {
    MRI_STRAY_LOST,    /* no sample has its bytes */
    MRI_STRAY_UNCLEAR, /* more samples or fewer than entries have them */
    MRI_STRAY_UNASKED, /* too many samples would have to be read */
    MRI_STRAY_MOVED    /* it is the sample `number` */
} mri_stray_state;

typedef struct mri_stray { /* an entry whose sample lies elsewhere now, or is another one */
    mri_withdrawn_entry *entry;
    uint32_t list;
    uint32_t file; /* missing: the number of its file, from 0 */
    bool missing;  /* the file is not there */
    bool placed;   /* another sample lies where it lay */
    mri_stray_state state;
    uint64_t number;
} mri_stray;

/* Sets state and number of each stray, and sorts them; one entry stays once, and *count is set. w->found: the
 * samples that have their entries, sorted by number and list. list_of: of each file two lists, that of its
 * folder, and that of the folder to which it leads as a link; UINT32_MAX: none. Entries of a missing file are
 * MOVED together, or none of them is. At most 10,000 samples and 1 GiB are read; where more would have to be,
 * none is. */
int mri_withdrawn_follow(const mr_source *src, const mri_withdrawn *w, const uint32_t *list_of,
                         mri_stray *stray, uint64_t *count, mr_error *err);

#endif
