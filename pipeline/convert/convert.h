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
 *   convert_target.c       the output is not the input
 *   convert_mrec.c         .mrec files: shards, what an earlier run left, verification       (calling thread)
 *   convert_files.c        files of foreign formats: shards, names, reading back             (calling thread)
 *   convert_tfrecord.c, convert_tar.c                    what a sample is in these
 *   convert.c              the table of kinds, and the loop between all of these
 *
 *      workers ──► window of chunks ──► calling thread ──► kind ──► DST.part ──► DST
 *         ▲               │ full: wait     (in source order: the same bytes for any number of workers)
 *         └── next chunk ─┘ */
#ifndef MRI_CONVERT_H
#define MRI_CONVERT_H

#include "pipeline/convert/convert_kind.h"

/* Named by the table in convert.c alone; each is defined in the file of its name. */
extern const mri_convert_kind mri_convert_mrec, mri_convert_tfrecord, mri_convert_tar;

#endif
