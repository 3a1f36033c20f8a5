/* tools/trial/forms.h: what some of the samples of a set cost in other forms: they are copied into a
 * temporary folder as they are, converted there, and each form read and decoded by a loader. Sampled costs
 * stand for the whole set as ratios; which samples they are then matters little. */
#ifndef TRIAL_FORMS_H
#define TRIAL_FORMS_H

#include <limits.h>

#include "tools/session/session.h"

/* Up to 200 samples of a set in a folder of its own. */
typedef struct form_sample {
    char folder[PATH_MAX], now[PATH_MAX + 16], then[PATH_MAX + 16]; /* as they are; in another form */
    uint64_t count, bad;                                            /* in it; left out */
    double bytes;        /* bytes to read of one sample in the set, mean over these */
    double shorter_side; /* mean */
} form_sample;

/* In TMPDIR, or /tmp. where: which option leaves it out, for the message. 0 or an exit status; after either
 * form_sample_remove() removes its files. */
int form_sample_make(form_sample *out, const mr_source *src, const char *advice);
void form_sample_remove(form_sample *f);

typedef struct form_spec {
    mr_store store;
    uint32_t resize; /* 0: as they are */
    bool transcode;
} form_spec;

/* f->then from f->now, in place of its old contents; false: these pictures have no such form. */
bool form_convert(const form_sample *f, const form_spec *form, mr_convert_result *made, mr_error *err);

typedef struct form_cost {
    double decode_ms, read_core_ms; /* of a sample, on a core */
    double bytes;
} form_cost;

/* All of it, several times, in one thread. like: what happens to pictures. */
int form_measure(const char *path, const mr_loader_config *like, form_cost *out, mr_error *err);

/* The set itself, where it lies, as files perhaps: as many samples as a form_sample has, once or twice. */
int form_measure_there(const mr_source *src, const mr_loader_config *like, form_cost *out, mr_error *err);

typedef struct form_rate {
    double samples_per_s, cores;
} form_rate;

/* The same with workers (0: one a core) for about so long. 0 or an exit status. */
int form_measure_rate(const char *path, const mr_loader_config *like, uint32_t workers, double seconds,
                      form_rate *out);

#endif
