/* pipeline/convert/convert_journal.h: how far a conversion to several .mrec files has come. Private to
 * convert_mrec.c.
 *
 *   DST.conversion.part    millrace conversion 1
 *                          source 8d1f0c6b2a994e57      the source's fingerprint at the beginning
 *                          shard 1000 33aa0b1c7d24e6f9  all files are complete, each with its fingerprint;
 * they shard 1000 9cb02fd7713e5a48  are still called .part
 *                          named 2 replacing 5          from here on they get their names
 *                          cleared                      all replaced files are removed
 *
 * It is locked from the first moment to the last, so two runs cannot have one DST, and it is removed when the
 * list DST is written. A line counts when its end is there; every step is synced before the next begins. */
#ifndef MRI_CONVERT_JOURNAL_H
#define MRI_CONVERT_JOURNAL_H

#include "formats/storage/output.h"

typedef enum mri_journal_stage {
    MRI_JOURNAL_NEW,     /* no journal existed */
    MRI_JOURNAL_BEGUN,   /* files are being written, all of them .part */
    MRI_JOURNAL_NAMED,   /* all are written; the replaced ones are being removed */
    MRI_JOURNAL_CLEARED, /* all are written and take their names */
} mri_journal_stage;

typedef struct mri_journal_file {
    uint64_t records, fingerprint;
} mri_journal_file;

typedef struct mri_journal {
    mri_output *out;
    mri_journal_stage stage;
    bool found;      /* an earlier run left it */
    uint64_t source; /* as it stands there */
    uint64_t end;    /* of what counts */
    uint32_t count, replaced;
    mri_journal_file *file;
} mri_journal;

/* Lock it, and read what an earlier run wrote. MR_EEXIST: another process has it. On failure there is nothing
 * to close. */
int mri_journal_open(mri_journal *j, const char *dst, const mri_output_rules *rules, mr_error *err);
int mri_journal_begin(mri_journal *j, uint64_t source, mr_error *err);
int mri_journal_name(mri_journal *j, const mri_journal_file *file, uint32_t count, uint32_t replaced,
                     mr_error *err);
int mri_journal_cleared(mri_journal *j, mr_error *err);
/* All is done: the journal goes. */
int mri_journal_end(mri_journal *j, mr_error *err);
void mri_journal_close(mri_journal *j, bool keep); /* a zeroed one: nothing happens */

#endif
