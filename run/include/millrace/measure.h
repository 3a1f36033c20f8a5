/* millrace/measure.h: upper bounds of the rate, one part measured alone: a loader when nothing trains, a
 * trainer when its batch is on the devices already; rates of the machine; the passes of a trainer's
 * convolutions.
 *
 * A training reaches at most the smaller of the rates of loader and trainer. Warm-up is left out. Deviations
 * are 1.4826 times the median absolute deviation (MAD). */
#ifndef MILLRACE_MEASURE_H
#define MILLRACE_MEASURE_H

#include "millrace/train.h"

#ifdef __cplusplus
extern "C" {
#endif

/* Settings of all measurements. */
typedef struct mr_measure_config {
    size_t struct_size;
    double seconds;  /* about how long to measure; 0: as few batches or steps as possible; default 1 */
    uint32_t rounds; /* loader, machine: rounds whose median is the result, 1 to 64; default 5 */

    /* trainer: a batch of noise. Height 0: sequences of `width` numbers below `classes` in place of pictures
     */
    uint32_t height, width, channels; /* as the network was built; default 0 */
    uint32_t classes;                 /* labels are below this number; 0 (default): all labels are 0 */
    /* trainer: called once before the trainer is closed, with the status of its steps and their error;
     * or NULL. After MR_OK the trainer is at rest and may be used, and the rate is written. Closing a trainer
     * that hangs (mr_trainer_hangs()) may not return */
    void (*on_close)(void *context, const mr_trainer *t, int status, const mr_error *err);
    void *context; /* passed to it; the calling thread calls it, no lock is held */

    const volatile int *stop; /* set non-zero, also in a signal handler, to stop; or NULL */
} mr_measure_config;

static inline void mr_measure_defaults(mr_measure_config *cfg);

/* A measured rate. */
typedef struct mr_rate {
    size_t struct_size;
    double samples_per_s, samples_per_s_mad;
    double step_ms, step_ms_mad; /* trainer: of a step. loader: of a batch */
    uint64_t steps;              /* measured */
    uint64_t warmup_steps;
    uint32_t rounds;
} mr_rate;

/* Take and release batches of l for about cfg->seconds, in rounds. Open l with enough epochs (UINT64_MAX):
 * its end is MR_EEND.
 *
 * devices  of the loader; batches are released when their copies are complete. NULL: batches stay in host
 * memory
 * cfg      settings; NULL: the defaults
 * out      NULL, or written on MR_OK
 *
 * MR_EINVAL     cfg->seconds or cfg->rounds are out of range; device_count is above MR_LOADER_MAX_PARTS
 * MR_ECANCELED  cfg->stop was set
 * other < 0     from mr_loader_next() */
static inline int mr_measure_loader(mr_loader *l, mr_device *const *devices, uint32_t device_count,
                                    const mr_measure_config *cfg, mr_rate *out, mr_error *err);

/* Open a trainer with these settings, run steps on one batch of noise that lies on its devices, and close the
 * trainer. The call replaces epochs, steps_per_epoch and world of these settings: other processes take no
 * part.
 *
 * MR_EINVAL     cfg->seconds is out of range, or the network does not take such a batch
 * MR_ECANCELED  cfg->stop was set
 * other < 0     from mr_trainer_open() or a step */
static inline int mr_measure_trainer(const mr_trainer_config *trainer, const mr_measure_config *cfg,
                                     mr_rate *out, mr_error *err);

/* ---- rates of the machine ---- */

typedef enum mr_machine_figure {
    MR_MACHINE_COPY,  /* memory copied; bytes that were read and written count once */
    MR_MACHINE_CRC,   /* CRC32C of memory */
    MR_MACHINE_READ,  /* samples read, their checksums compared, and parsed */
    MR_MACHINE_DECODE /* the same, and pictures decoded to their full size */
} mr_machine_figure;

/* A measured rate of the machine. */
typedef struct mr_machine_rate {
    size_t struct_size;
    const char *name, *unit; /* "memory copy", "GB/s"; static */
    double value, mad;       /* of all threads together, in this unit: the median over rounds */
    uint32_t rounds;         /* 0: the figure has no meaning for these data, and the value is 0 */
    uint32_t threads;
} mr_machine_rate;

/* Measure a rate with `workers` threads (more than 256 count as 256; 0: one per core) for about cfg->seconds,
 * including a round that is not counted. Each thread works alone, on buffers or samples of its own;
 * MR_MACHINE_COPY takes 64 MiB for each.
 *
 * src     samples for MR_MACHINE_READ and MR_MACHINE_DECODE; a picture that cannot be read or decoded ends
 *         the measurement with its error
 * decode  limits of pictures; NULL: the defaults
 * cfg     seconds, rounds, stop; NULL: the defaults
 * out     NULL, or written on MR_OK
 *
 * MR_EINVAL     a setting is out of range
 * MR_ENOMEM     no memory, or the system refuses a thread
 * MR_ECANCELED  cfg->stop was set */
static inline int mr_measure_machine(mr_machine_figure which, const mr_source *src,
                                     const mr_decode_config *decode, uint32_t workers,
                                     const mr_measure_config *cfg, mr_machine_rate *out, mr_error *err);

/* ---- passes of convolutions ---- */

/* One pass of one convolution of a trainer. */
typedef struct mr_pass_time {
    size_t struct_size;
    const mr_trainer_op *op; /* valid during the call, as mr_trainer_op_at() gives it */
    uint32_t number;         /* of the convolution, from 1 in the order of a forward pass */
    uint32_t samples;        /* of one call */
    mr_op_pass pass;
    double ms, ms_mad;  /* of one call */
    double gflop_per_s; /* of the direct algorithm's operations */
    uint32_t rounds;
} mr_pass_time;
typedef void mr_pass_taken(void *context, const mr_pass_time *p);

/* Time each pass of each convolution of t alone, on operations made like the trainer's: medians over 3 to 64
 * rounds, about cfg->seconds for all of them. `take` is called for each pass by the calling thread, and never
 * if the device does not distinguish passes. t is at rest, as in mr_measure_config.on_close, and stays
 * unchanged.
 *
 * device   one of the trainer's
 * samples  of one call, 1 or more: a device's share of a batch
 * cfg      seconds, stop; NULL: the defaults
 *
 * MR_EINVAL     a setting is out of range
 * MR_ECANCELED  cfg->stop was set
 * other < 0     from the device */
MR_API int mr_measure_passes(const mr_trainer *t, mr_device *device, uint32_t samples,
                             const mr_measure_config *cfg, mr_pass_taken *take, void *context, mr_error *err);

/* Return the median of `count` values, and in *mad (may be NULL) 1.4826 times their MAD. Changes and sorts
 * the values; 0 for none. */
MR_API double mr_measure_median(double *values, size_t count, double *mad);

/* ------------------------------------------------------------------------------ struct sizes
 *
 * Nothing to read here for a program in C or C++. The library exports the functions below in place of the
 * inline ones above: each inline function passes the size of its struct in the caller's header (base.h). A
 * program in another language sets struct_size and calls ..._sized. */

MR_API void mr_measure_defaults_sized(mr_measure_config *cfg, size_t struct_size);
static inline void mr_measure_defaults(mr_measure_config *cfg)
{
    mr_measure_defaults_sized(cfg, sizeof *cfg);
}

MR_API int mr_measure_loader_sized(mr_loader *l, mr_device *const *devices, uint32_t device_count,
                                   const mr_measure_config *cfg, mr_rate *out, mr_error *err);
static inline int mr_measure_loader(mr_loader *l, mr_device *const *devices, uint32_t device_count,
                                    const mr_measure_config *cfg, mr_rate *out, mr_error *err)
{
    if (out) out->struct_size = sizeof *out;
    return mr_measure_loader_sized(l, devices, device_count, cfg, out, err);
}

MR_API int mr_measure_trainer_sized(const mr_trainer_config *trainer, const mr_measure_config *cfg,
                                    mr_rate *out, mr_error *err);
static inline int mr_measure_trainer(const mr_trainer_config *trainer, const mr_measure_config *cfg,
                                     mr_rate *out, mr_error *err)
{
    if (out) out->struct_size = sizeof *out;
    return mr_measure_trainer_sized(trainer, cfg, out, err);
}

MR_API int mr_measure_machine_sized(mr_machine_figure which, const mr_source *src,
                                    const mr_decode_config *decode, uint32_t workers,
                                    const mr_measure_config *cfg, mr_machine_rate *out, mr_error *err);
static inline int mr_measure_machine(mr_machine_figure which, const mr_source *src,
                                     const mr_decode_config *decode, uint32_t workers,
                                     const mr_measure_config *cfg, mr_machine_rate *out, mr_error *err)
{
    if (out) out->struct_size = sizeof *out;
    return mr_measure_machine_sized(which, src, decode, workers, cfg, out, err);
}

#ifdef __cplusplus
}
#endif

#endif
