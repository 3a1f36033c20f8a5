/* tools/facts/choose.h: which samples of a data set are taken, and what their classes are called.
 *
 *   classes from a file ─► renamed ─► only some ─► where ─► no copies ─► a share of each class ─► a number
 *
 * Each step sees the samples that the one before left. The samples that each leaves out are counted and
 * reported. Samples that cannot be read stay: the reader of the data reports them. Callers: commands that
 * make another set of one.
 */
#ifndef TOOLS_CHOOSE_H
#define TOOLS_CHOOSE_H

#include "millrace/pipeline.h"
#include "tools/session/groups.h"

typedef struct choose_args { /* texts NULL: not given; dedup: choose_dedup; sample 0: all */
#define MRI_OPTION(name, kind, ...) MRI_TYPE_##kind name;
#include "settings/choice.rows"
    /* no options */
    bool lenient;             /* classes that the data do not have are passed over */
    bool silent;              /* nothing is said but errors */
    const char *const *known; /* NULL, or names of classes that these data may lack */
    uint32_t known_count;
} choose_args;

enum {
    CHOOSE_OPTIONS = 0
#define MRI_OPTION(name, kind, ...) +1
#include "settings/choice.rows"
};

/* Of commands that deliver batches; --seed is theirs, so the draw's seed is --sample-seed. */
extern const opt choose_options[CHOOSE_OPTIONS];
#define CHOOSE_GROUP(type, member)                                                                           \
    {                                                                                                        \
        "Choice", choose_options, OPT_COUNT(choose_options), offsetof(type, member), true                    \
    }

typedef enum choose_dedup { CHOOSE_COPIES, CHOOSE_BYTES, CHOOSE_PIXELS } choose_dedup;

typedef struct choose_result {
    bool asked; /* something was to be chosen */
    uint64_t before, after;
    uint64_t other_classes, where, copies, copies_crossing, share, drawn; /* left out by each step */
    uint32_t classes_before, classes_after, renamed, merged;
} choose_result;

/* Change src as a says. decode: for --dedup pixels. 0, or an exit status. The samples left out are reported.
 */
int choose_samples(mr_source *src, const choose_args *a, const mr_decode_config *decode, bool quiet,
                   choose_result *out);
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

/* ---- conditions (choose_where.c) ---- */
typedef struct where_sample {
    const char *key, *class_name;
    int64_t label;
    uint64_t width, height, bytes;
} where_sample;

enum { WHERE_TERMS = 32, WHERE_TEXT = 256 };

typedef struct where_term {
    enum { WHERE_KEY, WHERE_CLASS, WHERE_LABEL, WHERE_WIDTH, WHERE_HEIGHT, WHERE_BYTES } field;
    enum {
        WHERE_EQUAL,
        WHERE_UNEQUAL,
        WHERE_LESS,
        WHERE_LEAST,
        WHERE_MORE,
        WHERE_MOST,
        WHERE_LIKE,
        WHERE_UNLIKE
    } op;
    int64_t number;
    char text[WHERE_TEXT];
} where_term;

typedef struct where {
    where_term term[WHERE_TERMS];
    uint32_t count;
} where;

/* "width>=256,label=3": false with a message that names the fault. */
bool where_parse(where *w, const char *text, char *why, size_t why_bytes);
bool where_holds(const where *w, const where_sample *s);
bool where_needs_picture(const where *w);
/* Does any condition speak of labels or classes? text may be NULL; false if it is wrong. */
bool where_needs_class(const char *text);

#endif
