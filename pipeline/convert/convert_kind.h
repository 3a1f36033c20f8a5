/* pipeline/convert/convert_kind.h: the fixed settings of a conversion, and the functions that a kind of
 * output must have. Private to convert*.c: it lies below all kinds; their table is convert.c. */
#ifndef MRI_CONVERT_KIND_H
#define MRI_CONVERT_KIND_H

#include "formats/record/record.h"
#include "millrace/pipeline.h"

typedef struct mri_convert_kind mri_convert_kind;

enum { MRI_CALLED_BYTES = MR_MAX_NAME + 33 };

/* The facts that are fixed for the whole conversion. */
typedef struct mri_convert_plan {
    const mri_convert_kind *kind;
    const mr_source *src;
    const mr_source_info *info;
    mr_convert_config cfg;
    uint32_t field_count;
    mr_field fields[MR_MAX_FIELDS]; /* of the output */
    int from[MR_MAX_FIELDS];        /* which field of the source each comes from; -1: it is made anew */
    int image, label, entries;      /* fields of the output, or -1 */
    int name;                       /* what samples were called (formats/source/sample_name.h), or -1 */
    char called[MR_MAX_FIELDS][MRI_CALLED_BYTES]; /* set by a kind that renames fields */
    uint8_t role[MR_MAX_FIELDS];                  /* and positions by role; the kind's own numbers */
    char *provenance;                             /* settings and source as JSON: identifies a conversion */
} mri_convert_plan;

/* Check the settings, choose the fields (convert.c). provenance is the caller's to free, after an error, too.
 */
int mri_convert_plan_make(mri_convert_plan *plan, const mr_source *src, const mr_convert_config *cfg,
                          mr_error *err);

/* ---- the fields (convert_fields.c, convert_companions.c) ---- */
/* Fields, order and fixed shapes of the output. MR_EINVAL, MR_EUNSUPPORTED: the settings do not fit the
 * source. */
int mri_convert_plan_fields(mri_convert_plan *plan, mr_error *err);
/* How a field of the output follows the picture (mr_field_role()). */
mr_role mri_convert_role(const mri_convert_plan *plan, uint32_t field);
/* Fields that follow a picture have no fixed shape in the output when the picture may be cropped or
 * resized. */
void mri_convert_open_shapes(mri_convert_plan *plan);

/* ---- a kind ---- */
typedef enum mri_names_of_classes {
    MRI_NAMES_STORED,       /* in the set */
    MRI_NAMES_WITH_SAMPLES, /* with each sample that has a picture: not of a class without samples */
    MRI_NAMES_LOST
} mri_names_of_classes;

/* What DST can be. All of it but fits() belongs to the calling thread; `state` is the kind's own. */
struct mri_convert_kind {
    const char *name;   /* as in --to */
    uint32_t stores;    /* a bit for each mr_store that is possible */
    bool resumes;       /* an interrupted run can be resumed */
    bool keeps_numbers; /* labels are written with the numbers of the source, whatever --label-offset is; the
                           offset is stored in addition */
    mri_names_of_classes class_names;
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
    /* The source indices of what an earlier run left, rising; before the first append. Kinds that resume. */
    int (*sources)(void *state, mri_source_fn *each, void *context, mr_error *err);
    /* What differs in the output from the source; before close(). Optional. */
    void (*report)(const void *state, mr_convert_result *out);
    /* The last file, verification, names. */
    int (*finish)(void *state, uint64_t *bytes, uint32_t *shards, mr_error *err);
    /* Frees. With keep, unfinished output stays for resume, in kinds that support it. Accepts NULL. */
    void (*close)(void *state, bool keep);
};

/* ---- where it goes (convert_target.c) ---- */
/* MR_EINVAL: path is one of the files that are read. */
int mri_convert_check_input(const mri_convert_plan *plan, const char *path, mr_error *err);
/* The same of path and path.part. */
int mri_convert_check_file(const mri_convert_plan *plan, const char *path, mr_error *err);
/* In a folder of pictures everything below it is the data set: a file made there would be part of it the next
 * time. */
int mri_convert_check_folder(const mri_convert_plan *plan, const char *dst, mr_error *err);

#endif
