/* millrace/forms.h: the cost of pictures in other forms of storage, and the form to choose.
 *
 * Some samples of a set are copied into a temporary folder, converted there into each form, and every form is
 * read and decoded. mr_advise() does all of it; mr_form_trial is for other questions. The costs of these
 * samples are applied to the whole set as ratios, which hardly depend on the choice of samples. */
#ifndef MILLRACE_FORMS_H
#define MILLRACE_FORMS_H

#include "millrace/train.h"

#ifdef __cplusplus
extern "C" {
#endif

/* A form of storage in record files: members of mr_convert_config. */
typedef struct mr_form {
    mr_store store;
    uint32_t resize; /* 0: the pictures keep their size */
    bool transcode;
} mr_form;

/* The cost of a sample, mean over the samples that were read. */
typedef struct mr_form_cost {
    size_t struct_size;
    double decode_ms, read_core_ms; /* on one core */
    double bytes;                   /* to be read */
} mr_form_cost;

/* Measure the cost of samples of src where they are, in one thread: of at most twice the samples of a trial.
 * like: how pictures are prepared (decode, augment, channels, training, seed, order); batch, devices, caches
 * and callbacks in it are not used.
 *
 * MR_ECANCELED  *stop was set; stop may be NULL
 * other < 0     from the loader */
static inline int mr_form_cost_of(const mr_source *src, const mr_loader_config *like,
                                  const volatile int *stop, mr_form_cost *out, mr_error *err);

/* ---- some samples in a folder of their own ---- */

typedef struct mr_form_trial mr_form_trial;

typedef struct mr_form_trial_info {
    size_t struct_size;
    uint64_t count, bad; /* samples copied; samples left out, which cannot be read */
    double bytes;        /* to be read of one sample in the set, mean over these */
    double shorter_side; /* pixels, mean */
} mr_form_trial_info;

/* Copy up to 200 samples of src with pictures, evenly spaced, as they are, into record files in a new folder
 * below TMPDIR, or /tmp. stop is read during all calls of the trial, and may be NULL. One thread at a time.
 * *out is NULL unless the result is MR_OK.
 *
 * MR_EUNSUPPORTED  src has no pictures
 * MR_ECANCELED     *stop was set
 * other < 0        from writing */
MR_API int mr_form_trial_open(mr_form_trial **out, const mr_source *src, const volatile int *stop,
                              mr_error *err);
/* Remove the folder. t may be NULL. */
MR_API void mr_form_trial_close(mr_form_trial *t);
/* Owned by t. NULL for NULL. */
MR_API const mr_form_trial_info *mr_form_trial_info_of(const mr_form_trial *t);
/* Convert the samples into another form, in place of the converted ones before. *made: they have this form;
 * false if no sample could be converted, no picture has coefficients to store, or none can be transcoded.
 * made may be NULL. */
static inline int mr_form_trial_convert(mr_form_trial *t, const mr_form *form, bool *made,
                                        mr_convert_result *out, mr_error *err);
/* Measure the cost of a sample of the trial: converted, or as it was. All samples are read three times, in
 * one thread; the first time is not counted. like: as above.
 *
 * MR_EINVAL  converted, and mr_form_trial_convert() did not succeed before */
static inline int mr_form_trial_cost(const mr_form_trial *t, bool converted, const mr_loader_config *like,
                                     mr_form_cost *out, mr_error *err);
/* Measure the rate of a loader for the samples, from memory, for about `seconds`: samples per second, and the
 * cores that the process used meanwhile in *cores, which may be NULL. workers 0: one per core. */
MR_API int mr_form_trial_rate(const mr_form_trial *t, bool converted, const mr_loader_config *like,
                              uint32_t workers, double seconds, double *samples_per_s, double *cores,
                              mr_error *err);

/* ---- advice ---- */

enum { MR_ADVICE_FORMS = 8, MR_ADVICE_RESIZE = 256 };
/* A form with at least this share of the fastest form's rate counts as equally fast: two measurements of one
 * form differ by as much. */
#define MR_ADVICE_NEARLY 0.9

/* Settings of mr_advise(). mr_advise_defaults() sets 0, false and NULL everywhere but decode. */
typedef struct mr_advise_config {
    size_t struct_size;
    const char *augment; /* how a training prepares the pictures; NULL: "none" for small pictures of one size,
                            else "rrc224" */
    uint32_t channels;   /* as in mr_loader_config */
    uint32_t workers;    /* 0: one per core */
    mr_decode_config decode;
    /* Called before each form is made; or NULL. at: 1 to count - 1 */
    void (*on_form)(void *context, uint32_t at, uint32_t count, const char *name);
    void *context;            /* passed to it; the calling thread calls it, no lock is held */
    const volatile int *stop; /* set non-zero, also in a signal handler, to stop; or NULL */
} mr_advise_config;

static inline void mr_advise_defaults(mr_advise_config *cfg);

/* A form of the set. */
typedef struct mr_advice_form {
    const char *name; /* static */
    mr_form form;     /* of form[0], the data as they are: zeros */
    bool changes_pixels;
    double sample_bytes, total_bytes; /* of the whole set: from the samples that were measured */
    double decode_ms;                 /* of a sample, on a core */
    double samples_per_s, cores;      /* with workers, from memory */
    double expected_per_s; /* the same, or less where the set does not fit into memory and storage limits */
    bool fits_memory, fits_disk;
} mr_advice_form;

typedef struct mr_advice {
    size_t struct_size;
    char augment[512]; /* that was used */
    uint64_t samples, sampled, bad;
    uint32_t workers;
    double memory_bytes, disk_bytes; /* available; free in the current folder, NaN: unknown */
    double storage_bytes_per_s;      /* NaN: all forms fit into memory, or it is unknown */
    uint32_t form_count;
    /* Number of the form to choose, among the forms that keep the pixels and fit on the disk: form[0] if it
     * has MR_ADVICE_NEARLY of the fastest rate, else the smallest form that has it */
    uint32_t best;
    uint32_t resized; /* a form with smaller pictures that is much faster than the best; 0: there is no such
                         form */
    mr_advice_form form[MR_ADVICE_FORMS]; /* form[0]: the data as they are */
} mr_advice;

/* Measure the forms of storage of src, and choose one. Takes some seconds, and memory and disk for 200
 * samples in several forms. Blocks.
 *
 * cfg  settings; NULL: the defaults
 * out  written on MR_OK
 *
 * MR_EUNSUPPORTED  src has no pictures: no form is cheaper to decode than another
 * MR_EBADSAMPLE    no picture that was looked at can be read
 * MR_ECANCELED     cfg->stop was set
 * other < 0        from writing, or from the loader */
static inline int mr_advise(const mr_source *src, const mr_advise_config *cfg, mr_advice *out, mr_error *err);

/* ------------------------------------------------------------------------------ struct sizes
 *
 * Nothing to read here for a program in C or C++. The library exports the functions below in place of the
 * inline ones above: each inline function passes the size of its struct in the caller's header (base.h). A
 * program in another language sets struct_size and calls ..._sized. */

MR_API void mr_advise_defaults_sized(mr_advise_config *cfg, size_t struct_size);
static inline void mr_advise_defaults(mr_advise_config *cfg) { mr_advise_defaults_sized(cfg, sizeof *cfg); }

MR_API int mr_advise_sized(const mr_source *src, const mr_advise_config *cfg, mr_advice *out, mr_error *err);
static inline int mr_advise(const mr_source *src, const mr_advise_config *cfg, mr_advice *out, mr_error *err)
{
    if (out) out->struct_size = sizeof *out;
    return mr_advise_sized(src, cfg, out, err);
}

MR_API int mr_form_cost_of_sized(const mr_source *src, const mr_loader_config *like, const volatile int *stop,
                                 mr_form_cost *out, mr_error *err);
static inline int mr_form_cost_of(const mr_source *src, const mr_loader_config *like,
                                  const volatile int *stop, mr_form_cost *out, mr_error *err)
{
    if (out) out->struct_size = sizeof *out;
    return mr_form_cost_of_sized(src, like, stop, out, err);
}

MR_API int mr_form_trial_convert_sized(mr_form_trial *t, const mr_form *form, bool *made,
                                       mr_convert_result *out, mr_error *err);
static inline int mr_form_trial_convert(mr_form_trial *t, const mr_form *form, bool *made,
                                        mr_convert_result *out, mr_error *err)
{
    if (out) out->struct_size = sizeof *out;
    return mr_form_trial_convert_sized(t, form, made, out, err);
}

MR_API int mr_form_trial_cost_sized(const mr_form_trial *t, bool converted, const mr_loader_config *like,
                                    mr_form_cost *out, mr_error *err);
static inline int mr_form_trial_cost(const mr_form_trial *t, bool converted, const mr_loader_config *like,
                                     mr_form_cost *out, mr_error *err)
{
    if (out) out->struct_size = sizeof *out;
    return mr_form_trial_cost_sized(t, converted, like, out, err);
}

#ifdef __cplusplus
}
#endif

#endif
