/* tools/facts/choose.h: options that choose samples of a data set and rename its classes, as
 * millrace/choose.h does it. What each step leaves out is printed. Callers: commands that read data. */
#ifndef TOOLS_CHOOSE_H
#define TOOLS_CHOOSE_H

#include "millrace/pipeline.h"
#include "tools/session/groups.h"

typedef struct choose_args { /* texts NULL: not given; dedup: mr_copies; sample 0: all */
#define MRI_OPTIONS OPT_MEMBER
#include "settings/choice.rows"
    /* no options */
    bool lenient;             /* classes that the data do not have are passed over */
    bool silent;              /* nothing is said but errors */
    const char *const *known; /* NULL, or names of classes that these data may lack */
    uint32_t known_count;
} choose_args;

/* Of commands that deliver batches; --seed is theirs, so the draw's seed is --sample-seed. */
extern const opt_set choose_options;

/* Change src as a says. decode: for --dedup pixels. 0, or an exit status. */
int choose_samples(mr_source *src, const choose_args *a, const mr_decode_config *decode, bool quiet,
                   mr_choice_result *out);
/* Is anything of it given? */
bool choose_asked(const choose_args *a);

/* The same for data that others open, perhaps several times: the samples left out are reported once. */
typedef struct chooser {
    data_chooser base;
    choose_args args;
    const data_args *data; /* how pictures are decoded for --dedup pixels */
    bool quiet;
} chooser;

/* a may be changed afterwards. Sets data->chooser, if a asks for anything; c and data must outlive the use of
 * data. */
void chooser_begin(chooser *c, const choose_args *a, data_args *data, bool quiet);

/* The samples for which the conditions hold, in *numbers (to be freed), rising. One that cannot be read is
 * none of them. 0, or an exit status. */
int choose_where(mr_source *src, const char *conditions, const mr_decode_config *decode, bool quiet,
                 uint64_t **numbers, uint64_t *count);

#endif
