/* tools/fields/objective.h: the targets of a network: classes, which may have weights, or targets
 * in a field of the data (--loss, --targets, --class-weights; a checkpoint also stores them). */
#ifndef TOOLS_OBJECTIVE_H
#define TOOLS_OBJECTIVE_H

#include "millrace/columns.h"
#include "millrace/train.h"
#include "settings/setting.h"

typedef struct objective_args { /* loss: mr_target_loss; targets, class_weights NULL: not given */
#define MRI_OPTION(member, kind, ...) MRI_TYPE_##kind member;
#include "settings/targets.rows"
} objective_args;

typedef struct objective_first { /* number of the first class */
    bool known;                  /* it is `number`, as a checkpoint has it */
    bool later;                  /* the caller settles it: session_number_from() */
    int64_t number;
} objective_first;

typedef struct objective {
    mr_target_loss loss; /* NONE: the model's own */
    char field[MR_MAX_NAME + 1];
    uint32_t count;               /* numbers of a sample; 0: not known yet */
    uint32_t class_count;         /* without a loss: of the network; 0: the number of the data */
    bool outputs_only;            /* the data need not have the field */
    bool of_checkpoint;           /* the field is named as in the data of a checkpoint */
    struct {                      /* names of the targets' columns that the data must have, in this order */
        const char *const *names; /* NULL: not known */
        uint32_t count;
        const char *of; /* the owner of the names, for messages; NULL: nothing is compared */
    } columns;
    objective_first first;
    const char *weights;  /* --class-weights, or NULL */
    float *class_weights; /* or NULL */
    uint32_t class_weight_count;
} objective;

/* Names of mr_target_loss, NONE: own; NULL after the last. */
extern const char *const objective_names[];

/* As the user says: EXIT_MISUSED where that contradicts itself. model may be NULL. */
int objective_choose(objective *o, const objective_args *a, const mr_model *model);
/* As a checkpoint says; the data of a prediction need no targets. */
void objective_of_checkpoint(objective *o, const mr_checkpoint_info *info, bool outputs_only);
void objective_close(objective *o); /* accepts a zeroed one */

/* The field among the loader's, after checking its name and its count of numbers; nothing without a loss. */
int objective_take_field(objective *o, const mr_source *src, mr_loader_config *cfg,
                         mr_loader_field fields[MR_LOADER_MAX_FIELDS], uint32_t *count);
/* Compare the names of the columns of the targets with the names of another set or of a checkpoint, `of`;
 * names NULL: it lacks names. A line reports that the order cannot be compared. */
int objective_check_columns(const mr_source *src, const char *const *names, uint32_t count, const char *of);
/* Name the field when a run ended because of invalid targets. */
void objective_explain(const objective *o, const mr_source *src, const mr_error *err);
/* What --class-weights says for these data and this network, unless there are weights already. */
int objective_take_weights(objective *o, const mr_source *src, const mr_net *net);

#endif
