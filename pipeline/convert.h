/* pipeline/convert.h: the parts of mr_convert(). Private.
 *
 *   convert_fields.c   the fields of the output, and where each comes from             (calling thread)
 *   convert_sample.c   one sample: read, checked, its values in the output's order     (any thread)
 *   convert_picture.c  its picture: checked, or decoded, resized, encoded, packed      (any thread)
 *   convert_pool.c     workers over a bounded window, results in source order
 *   convert_output.c   files: shards, what an earlier run left, verification           (calling thread)
 *   convert.c          the loop between them
 *
 *      workers ──► window of chunks ──► calling thread ──► writer ──► DST.part ──► DST
 *         ▲               │ full: wait                       (in source order: same bytes for any number of workers)
 *         └── next chunk ─┘ */
#ifndef MRI_CONVERT_H
#define MRI_CONVERT_H

#include "millrace/pipeline.h"
#include "pipeline/jpeg/whole.h"

/* What is fixed for the whole conversion. */
typedef struct mri_convert_plan {
    const mr_source      *src;
    const mr_source_info *info;
    mr_convert_config     cfg;
    uint32_t              field_count;
    mr_field              fields[MR_MAX_FIELDS]; /* of the output */
    int                   from[MR_MAX_FIELDS];   /* which field of the source each comes from; not of entries */
    int                   image, label, entries; /* fields of the output, or -1 */
    char                 *provenance;            /* settings and source, as JSON: tells one conversion from another */
} mri_convert_plan;

/* One sample on its way. */
typedef struct mri_convert_item {
    uint64_t  source_index;
    int       rc;           /* MR_OK, or why it is bad or the run must end */
    bool      fatal;        /* rc concerns the run, not the sample */
    mr_error  error;
    mr_sample sample;       /* as read, the picture as it is to be written; points into buffer and made */
    mr_value  values[MR_MAX_FIELDS]; /* the output's */
    bool      transcoded, kept; /* kept: coefficients were asked for, and it cannot be */
    uint64_t  bytes_in;
    void     *buffer;       /* what was read; kept and grown from sample to sample while it is small */
    size_t    buffer_bytes;
    void     *made;         /* pixels, coefficients or an encoded picture; malloc'd for this sample */
    size_t    made_bytes;
    void     *entries;      /* entry points of a JPEG, malloc'd, or NULL */
    size_t    entries_bytes;
} mri_convert_item;

/* ---- one sample ---- */
/* Fields, order and fixed shapes of the output. MR_EINVAL, MR_EUNSUPPORTED: the settings do not fit the source. */
int  mri_convert_plan_fields(mri_convert_plan *plan, mr_error *err);
/* item->source_index in, everything else out. */
void mri_convert_sample(const mri_convert_plan *plan, mri_whole *whole, mri_convert_item *item);
/* value is the sample's picture; MR_OK, or what is wrong with it. */
int  mri_convert_picture(const mri_convert_plan *plan, mri_whole *whole, mri_convert_item *item, mr_value *value);
/* Drop what the sample held; large buffers are given back. */
void mri_convert_item_clear(mri_convert_item *item);
void mri_convert_item_fini(mri_convert_item *item);

/* ---- workers ---- */
typedef struct mri_convert_pool mri_convert_pool;
/* Samples first, first + 1, ... up to the source's count. */
int  mri_convert_pool_start(mri_convert_pool **out, const mri_convert_plan *plan, uint64_t first, mr_error *err);
/* The next item in source order, valid until the next call. MR_EEND, or MR_ECANCELED when *cfg.stop became set. */
int  mri_convert_pool_next(mri_convert_pool *pool, mri_convert_item **out);
/* Lets each worker end the sample it is at, joins, frees. Accepts NULL. */
void mri_convert_pool_stop(mri_convert_pool *pool);

/* ---- files ---- */
typedef struct mri_convert_output mri_convert_output;
/* *first is the source index to begin with, *resumed the records an earlier run left. MR_EEND: that run had finished. */
int  mri_convert_output_open(mri_convert_output **out, const mri_convert_plan *plan, const char *dst, uint64_t *first,
                             uint64_t *resumed, mr_error *err);
int  mri_convert_output_append(mri_convert_output *o, uint64_t source_index, const mr_value *values, mr_error *err);
uint64_t mri_convert_output_records(const mri_convert_output *o);
/* Last file, verification, shard list. */
int  mri_convert_output_finish(mri_convert_output *o, uint64_t *bytes, uint32_t *shards, mr_error *err);
/* Frees; what is not finished stays for resume when keep. Accepts NULL. */
void mri_convert_output_close(mri_convert_output *o, bool keep);

#endif
