/* pipeline/choose/choosing.h: the steps of a choice of samples.
 *
 *   classes from a list ─► renamed ─► only some ─► where ─► no copies ─► a share of each class ─► a number
 *
 * The room choose/
 *   takes      an open source and mr_choice_config
 *   gives      the source with fewer samples and other classes (millrace/choose.h)
 *   callers    programs; the commands and Python among them */
#ifndef MRI_CHOOSING_H
#define MRI_CHOOSING_H

#include "base/util.h"
#include "millrace/pipeline.h"

/* ---- facts of every sample (sample_facts.c) ---- */
typedef struct mri_sample_fact {
    uint64_t hash, bytes; /* of the picture; without pictures of the whole sample. Zero unless read */
    uint32_t width, height;
    int32_t label; /* -1: no label */
    bool good;     /* false: it cannot be read */
} mri_sample_fact;

typedef struct mri_facts_config {
    const mr_choice_config *choice;
    bool read; /* false: labels alone are needed */
} mri_facts_config;

/* *out: a fact for each sample, to be freed, also after an error. */
int mri_sample_facts(const mr_source *src, const mri_facts_config *cfg, mri_sample_fact **out, mr_error *err);

/* ---- copies (copies.c) ---- */
/* As mr_choose_copies(), for settings that were checked; ends early when the caller's stop is set. */
int mri_find_copies(const mr_source *src, const mr_choice_config *cfg, mr_copy_mark *marks, uint64_t count,
                    mr_on_copy *on_copy, void *context, mr_error *err);

/* ---- conditions (conditions.c) ---- */
typedef struct mri_condition_sample {
    const char *key, *class_name;
    int64_t label;
    uint64_t width, height, bytes;
} mri_condition_sample;

enum { MRI_CONDITIONS = 32, MRI_CONDITION_TEXT = 256 };

typedef enum mri_condition_field {
    MRI_FIELD_KEY,
    MRI_FIELD_CLASS,
    MRI_FIELD_LABEL,
    MRI_FIELD_WIDTH,
    MRI_FIELD_HEIGHT,
    MRI_FIELD_BYTES
} mri_condition_field;

typedef enum mri_condition_op {
    MRI_IS_EQUAL,
    MRI_IS_UNEQUAL,
    MRI_IS_LESS,
    MRI_IS_MOST,
    MRI_IS_MORE,
    MRI_IS_LEAST,
    MRI_IS_LIKE,
    MRI_IS_UNLIKE
} mri_condition_op;

typedef struct mri_condition {
    mri_condition_field field;
    mri_condition_op op;
    int64_t number;
    char text[MRI_CONDITION_TEXT];
} mri_condition;

typedef struct mri_conditions {
    mri_condition term[MRI_CONDITIONS];
    uint32_t count;
} mri_conditions;

/* "width>=256,label=3". MR_EINVAL names the wrong condition. */
int mri_conditions_parse(mri_conditions *c, const char *text, mr_error *err);
bool mri_conditions_hold(const mri_conditions *c, const mri_condition_sample *s);
/* Does any of them use this field? */
bool mri_conditions_use(const mri_conditions *c, mri_condition_field field);

/* ---- classes (class_plan.c) ---- */
typedef struct mri_class_plan { /* {0} changes nothing */
    uint32_t count;             /* of the source's classes */
    uint32_t *to;               /* new number of each class; UINT32_MAX: left out */
    char **names;               /* of the new classes; NULL: they stay as they are */
    uint32_t names_count;
    bool only; /* some are left out */
} mri_class_plan;

int mri_class_plan_make(mri_class_plan *p, const mr_source *src, const mr_choice_config *cfg, mr_error *err);
/* The changes of each class go to cfg->on_note. */
int mri_class_plan_apply(const mri_class_plan *p, mr_source *src, const mr_choice_config *cfg,
                         mr_choice_result *out, mr_error *err);
void mri_class_plan_fini(mri_class_plan *p);

/* A line for cfg->on_note. */
void mri_choice_note(const mr_choice_config *cfg, const char *format, ...)
    __attribute__((format(printf, 2, 3)));

#endif
