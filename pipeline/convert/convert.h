/* pipeline/convert/convert.h: the parts of mr_convert(). Private.
 *
 * Takes a source and the settings of mr_convert(). Gives files of a kind, whole or not at all, and what went
 * into them. Callers: programs, through mr_convert(); no other room uses anything of this one.
 *
 *   convert_fields.c   the fields of the output, and where each comes from             (calling thread)
 *   convert_sample.c   one sample: read, checked, its values in the output's order     (any thread)
 *   convert_picture.c  its picture: checked, or decoded, resized, encoded, packed      (any thread)
 *   convert_beside.c   boxes and masks follow it where it was resized, cut or turned   (any thread)
 *   convert_pool.c     workers over a bounded window, results in source order
 *   convert_place.c    the output is not the input
 *   convert_mrec.c     .mrec files: shards, what an earlier run left, verification     (calling thread)
 *   convert_files.c    files of other people's formats: shards, names, reading back    (calling thread)
 *   convert_tfrecord.c, convert_tar.c                    what a sample is in these
 *   convert.c          the loop between them
 *
 *      workers ──► window of chunks ──► calling thread ──► kind ──► DST.part ──► DST
 *         ▲               │ full: wait                       (in source order: same bytes for any number of workers)
 *         └── next chunk ─┘ */
#ifndef MRI_CONVERT_H
#define MRI_CONVERT_H

#include "millrace/pipeline.h"
#include "pipeline/augment/augment.h"
#include "pipeline/decode/jpeg/whole.h"

typedef struct mri_convert_kind mri_convert_kind;

enum { MRI_CALLED_BYTES = MR_MAX_NAME + 33 };

/* What is fixed for the whole conversion. */
typedef struct mri_convert_plan {
    const mri_convert_kind *kind;
    const mr_source *src;
    const mr_source_info *info;
    mr_convert_config cfg;
    uint32_t field_count;
    mr_field fields[MR_MAX_FIELDS]; /* of the output */
    int from[MR_MAX_FIELDS];        /* which field of the source each comes from; not of entries */
    int image, label, entries;      /* fields of the output, or -1 */
    char called[MR_MAX_FIELDS][MRI_CALLED_BYTES]; /* by a kind that gives fields names of its own */
    uint8_t role[MR_MAX_FIELDS];                  /* and places by what they are; the kind's own numbers */
    char *provenance; /* settings and source, as JSON: tells one conversion from another */
} mri_convert_plan;

/* One sample on its way. */
typedef struct mri_convert_item {
    uint64_t source_index;
    int rc;     /* MR_OK, or why it is bad or the run must end */
    bool fatal; /* rc concerns the run, not the sample */
    mr_error error;
    mr_sample sample; /* as read, the picture as it is to be written; points into buffer and made */
    mr_value values[MR_MAX_FIELDS]; /* the output's */
    bool transcoded, kept;          /* kept: coefficients were asked for, and it cannot be */
    uint64_t bytes_in;
    void *buffer; /* what was read; kept and grown from sample to sample while it is small */
    size_t buffer_bytes;
    void *made; /* pixels, coefficients or an encoded picture; malloc'd for this sample */
    size_t made_bytes;
    void *entries; /* entry points of a JPEG, malloc'd, or NULL */
    size_t entries_bytes;
    mri_geometry geometry; /* of the picture to be written in that which was read; sides 0: it is the same */
    void *beside[MR_MAX_FIELDS]; /* values of other fields that were made anew, malloc'd for this sample, or
                                    NULL */
    size_t beside_bytes;         /* of all of them */
} mri_convert_item;

/* ---- one sample ---- */
/* Fields, order and fixed shapes of the output. MR_EINVAL, MR_EUNSUPPORTED: the settings do not fit the
 * source. */
int mri_convert_plan_fields(mri_convert_plan *plan, mr_error *err);
/* item->source_index in, everything else out. */
void mri_convert_sample(const mri_convert_plan *plan, mri_whole *whole, mri_convert_item *item);
/* value is the sample's picture; MR_OK, or what is wrong with it. */
int mri_convert_picture(const mri_convert_plan *plan, mri_whole *whole, mri_convert_item *item,
                        mr_value *value);
/* Fields that follow the picture (mr_field_role()): what they are to be, where item->geometry says that it
 * moved. */
int mri_convert_beside(const mri_convert_plan *plan, mri_convert_item *item);
mr_role mri_convert_role(const mri_convert_plan *plan, uint32_t field);
/* In the output they have no fixed shape when that may happen. */
void mri_convert_open_shapes(mri_convert_plan *plan);
/* Pictures in other fields than the first, as files; for kinds that want them so. */
int mri_convert_pictures_beside(const mri_convert_plan *plan, mri_whole *whole, mri_convert_item *item);
/* Drop what the sample held; large buffers are given back. */
void mri_convert_item_clear(mri_convert_item *item);
void mri_convert_item_fini(mri_convert_item *item);

/* ---- workers ---- */
typedef struct mri_convert_pool mri_convert_pool;
/* Samples first, first + 1, ... up to the source's count. */
int mri_convert_pool_start(mri_convert_pool **out, const mri_convert_plan *plan, uint64_t first,
                           mr_error *err);
/* The next item in source order, valid until the next call. MR_EEND, or MR_ECANCELED when *cfg.stop became
 * set. */
int mri_convert_pool_next(mri_convert_pool *pool, mri_convert_item **out);
/* Lets each worker end the sample it is at, joins, frees. Accepts NULL. */
void mri_convert_pool_stop(mri_convert_pool *pool);

/* ---- files ---- */
/* What DST can be. All of it but fits() belongs to the calling thread; `state` is the kind's own. */
struct mri_convert_kind {
    const char *name;   /* as in --to */
    uint32_t stores;    /* a bit for each mr_store that is possible */
    bool resumes;       /* an interrupted run is gone on with */
    bool picture_files; /* pixels become PNG (but for the picture with MR_STORE_RAW), coefficients JPEG */
    /* Whether the schema fits, and what its fields are called. Optional. */
    int (*plan)(mri_convert_plan *plan, mr_error *err);
    /* Whether this sample does: MR_EUNSUPPORTED, MR_ELIMIT for a bad one. Any thread. Optional. */
    int (*fits)(const mri_convert_plan *plan, const mr_value *values, mr_error *err);
    /* *first is the source index to begin with, *resumed the records an earlier run left. MR_EEND: that run
     * had finished. */
    int (*open)(void **state, const mri_convert_plan *plan, const char *dst, uint64_t *first,
                uint64_t *resumed, mr_error *err);
    int (*append)(void *state, uint64_t source_index, const mr_value *values, mr_error *err);
    uint64_t (*records)(const void *state);
    /* The last file, verification, names. */
    int (*finish)(void *state, uint64_t *bytes, uint32_t *shards, mr_error *err);
    /* Frees; what is not finished stays for resume when keep, in kinds that can. Accepts NULL. */
    void (*close)(void *state, bool keep);
};

extern const mri_convert_kind mri_convert_mrec, mri_convert_tfrecord, mri_convert_tar;

/* MR_EINVAL: path is one of the files that are read. */
int mri_convert_check_input(const mri_convert_plan *plan, const char *path, mr_error *err);
/* The same of path and path.part. */
int mri_convert_check_file(const mri_convert_plan *plan, const char *path, mr_error *err);
/* In a folder of pictures everything below it is the data set: a file made there would be part of it the next
 * time. */
int mri_convert_check_folder(const mri_convert_plan *plan, const char *dst, mr_error *err);

#endif
