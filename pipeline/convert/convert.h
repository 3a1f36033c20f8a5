/* pipeline/convert/convert.h: the parts of mr_convert(). Private.
 *
 * Takes a source and the settings of mr_convert(). Gives files of a kind, whole or not at all, and what went
 * into them. Callers: programs, through mr_convert(); no other room uses anything of this one.
 *
 *   convert_fields.c       the fields of the output, and where each comes from               (calling thread)
 *   convert_sample.c       one sample: read, checked, its values in the output's order       (any thread)
 *   convert_picture.c      its picture: checked, or decoded, resized, encoded, packed        (any thread)
 *   convert_companions.c   boxes and masks follow it where it was resized, cut or turned     (any thread)
 *   convert_pool.c         workers over a bounded window, results in source order
 *   convert_passed.c       reports again the samples that an earlier run skipped             (calling thread)
 *   convert_taken.c        the files that were read are the same when a run goes on          (calling thread)
 *   convert_differs.c      why a run cannot go on: which settings differ
 *   convert_target.c       the output is not the input
 *   convert_space.c        the output has room on its disk
 *   convert_mrec.c         .mrec files, and what an earlier run left of them                 (calling thread)
 *   convert_shards.c       a set of them: the old one or the new one                         (calling thread)
 *   convert_journal.c      how far such a set has come                                       (calling thread)
 *   convert_files.c        files of foreign formats: shards, names, reading back             (calling thread)
 *   convert_tfrecord.c, convert_tar.c, convert_mds.c,
 *   convert_recordio.c                                   samples in these formats
 *   convert_rec_list.c     the list of records next to RecordIO files
 *   convert_wids.c         the index of samples next to tar archives
 *   convert.c              the table of kinds, and the loop between all of these
 *
 *      workers ──► window of chunks ──► calling thread ──► kind ──► DST.part ──► DST
 *         ▲               │ full: wait     (in source order: the same bytes for any number of workers)
 *         └── next chunk ─┘ */
#ifndef MRI_CONVERT_H
#define MRI_CONVERT_H

#include "pipeline/convert/convert_kind.h"

/* Named by the table in convert.c alone; each is defined in the file of its name. */
extern const mri_convert_kind mri_convert_mrec, mri_convert_tfrecord, mri_convert_tar, mri_convert_mds,
    mri_convert_recordio;

/* Call on_bad for the samples below first that have no record and for which cfg.bad_told returns false.
 * MR_EEXIST: one of them is valid by now. (convert_passed.c) */
int mri_convert_tell_passed(const mri_convert_plan *plan, void *state, uint64_t first, mr_error *err);

/* The state of the samples' files when they were read: DST.taken.part, 8 bytes for each sample by its number,
 * removed with the end of the conversion. (convert_taken.c) */
typedef struct mri_taken mri_taken;
int mri_taken_open(mri_taken **out, const mri_convert_plan *plan, const char *dst, mr_error *err);
/* MR_EEXIST: a file of the samples [0, first) has changed; err names it. Files without a note pass. */
int mri_taken_check(const mri_taken *t, uint64_t first, mr_error *err);
/* Writes which sample is the first whose file is another one now. false: no file of such samples is there, or
 * all of them are the same. */
bool mri_taken_differs(const mri_convert_plan *plan, const char *dst, char *buf, size_t room);
/* Before the sample is written. */
int mri_taken_note(mri_taken *t, uint64_t sample, uint64_t stamp, mr_error *err);
/* After the end of the conversion, whose output stays as it is when this fails. */
int mri_taken_remove(mri_taken *t, mr_error *err); /* NULL is harmless */
void mri_taken_close(mri_taken *t, bool keep);     /* NULL is harmless */

/* Is there room for the samples from `first` on? MR_EIO, ENOSPC: less than they are estimated to take.
 * (convert_space.c) */
int mri_convert_check_space(const mri_convert_plan *plan, const char *dst, uint64_t first, mr_error *err);

/* "--resize was 0, is 40": what differs in two provenances. Returns buf. (convert_differs.c) */
char *mri_convert_differs(const char *was, const char *is, char *buf, size_t room);
/* A part file of dst that another conversion began: err names the difference, if the file still has it.
 * MR_EEXIST. */
int mri_convert_part_differs(const mri_convert_plan *plan, const char *dst, const char *part, mr_error *err);

#endif
