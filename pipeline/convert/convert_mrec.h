/* pipeline/convert/convert_mrec.h: the state of a conversion to .mrec files. Private to convert_mrec.c, which
 * writes the files, and convert_shards.c, which makes a set of them. */
#ifndef MRI_CONVERT_MREC_H
#define MRI_CONVERT_MREC_H

#include "pipeline/convert/convert_journal.h"
#include "pipeline/convert/convert_kind.h"

typedef struct mri_mrec_output {
    const mri_convert_plan *plan;
    mri_output_rules rules;
    char *dst;
    mr_writer *writer;       /* of the file at `shard`; NULL between files */
    char *path;              /* of that file */
    uint32_t shard;          /* files finished before it */
    mri_journal_file *files; /* those */
    uint64_t records;        /* of finished files */
    uint64_t last_source;    /* of the last finished file, + 1 */
    bool completed;          /* an earlier run had written it all */
    mri_journal journal;     /* of a set */
} mri_mrec_output;

static inline bool mri_mrec_sharded(const mri_mrec_output *o) { return o->plan->cfg.shard_bytes != 0; }

/* ---- convert_mrec.c ---- */
/* Name of file `at`, with ending ("" or ".part"); malloc'd, NULL when memory is gone. */
char *mri_mrec_file_path(const mri_mrec_output *o, uint32_t at, const char *ending);
int mri_mrec_no_memory(mr_error *err);
/* A finished file of this same conversion at path: it counts as the next one. MR_EEXIST: one of another
 * conversion. */
int mri_mrec_take_over(mri_mrec_output *o, const char *path, mr_error *err);

/* ---- convert_shards.c ---- */
/* *there: something has the name of this file. */
int mri_mrec_look(const mri_mrec_output *o, uint32_t at, const char *ending, bool *there, mr_error *err);
/* What an earlier run left of a set, or that there is nothing: then a new one is begun. */
int mri_set_open(mri_mrec_output *o, mr_error *err);
/* The file aside that was just sealed counts. */
int mri_set_keep(mri_mrec_output *o, mr_error *err);
/* Give all files their names, remove the replaced set, write the list. */
int mri_set_finish(mri_mrec_output *o, mr_error *err);

#endif
