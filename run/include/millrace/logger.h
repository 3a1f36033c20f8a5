/* millrace/logger.h: the figures of a training for other programs: a CSV file, event files for TensorBoard, a
 * page for Prometheus.
 *
 * A logger takes the reports of mr_fit(). Call the function of each kind of report in the callback of
 * mr_fit_config that receives it, in the thread of mr_fit():
 *
 *   mr_logger_progress()  callbacks.on_step   after each step
 *   mr_logger_step()      on_step             every report_steps updates, and in between for the page
 *   mr_logger_eval()      on_eval             after a validation inside an epoch
 *   mr_logger_epoch()     callbacks.on_epoch  after an epoch
 *
 * A training loop of the program fills the reports by itself and sets their struct_size. Of several processes
 * of a run only the first one needs a logger.
 *
 * A failed write does not end the run: cfg->on_failure is called once for each file, nothing more is written
 * to this file, and mr_logger_close() returns the error. */
#ifndef MILLRACE_LOGGER_H
#define MILLRACE_LOGGER_H

#include "millrace/train.h"

#ifdef __cplusplus
extern "C" {
#endif

typedef struct mr_logger mr_logger;

/* Settings of mr_logger_open(). mr_logger_defaults() sets 0, false and NULL everywhere. All texts and handles
 * but the names of files must outlive the logger. */
typedef struct mr_logger_config {
    size_t struct_size;

    /* Outputs; NULL (default): none of this kind. */
    const char *csv; /* path of a CSV file: one line per report, with empty fields for missing figures.
                        It grows under its own name */
    const char *tensorboard; /* folder of event files, made if it is missing. Each logger writes a file of its
                                own. The step of a scalar is the number of updates */
    const char *metrics;     /* PORT, HOST:PORT or [HOST]:PORT: serve http://HOST:PORT/metrics in Prometheus'
                                text format, in a thread of its own. Without HOST only this machine can ask;
                                port 0: any free one (mr_logger_address()) */

    /* The run. */
    const mr_loader *loader; /* open while the logger is; required for metrics, which reads its counters */
    const mr_source *src;    /* data that are read meanwhile, or NULL: csv must not name one of their files */
    const mr_source *val_src;
    const char *model, *data, *device; /* labels of the page; NULL: empty */
    uint32_t replicas;                 /* devices that train, for the page */
    uint64_t epochs;                   /* planned epochs of the run, for the page */
    uint64_t updates; /* finished before this call, by an earlier process. Above 0 TensorBoard discards later
                         updates of earlier files */
    bool resume;      /* csv: continue an existing file with the same header; a last line without its end is
                         cut off. Default false: an existing file is MR_EEXIST */

    /* Called for the first failure of each file, by the thread that reports or closes; or NULL. path and
     * failure are valid during the call */
    void (*on_failure)(void *context, const char *path, const mr_error *failure);
    void *context; /* passed to it */
} mr_logger_config;

static inline void mr_logger_defaults(mr_logger_config *cfg);

/* Open the outputs of a run, before its first step. cfg NULL: no output. After an error no output remains.
 *
 * MR_EINVAL  metrics is not an address of this machine, or is given without loader; csv names a file of data
 * MR_ENOENT  the host of metrics is unknown
 * MR_EEXIST  csv exists and resume is false, or has another header; the port of metrics is in use;
 *            tensorboard names a file
 * MR_EIO     the system refused a file, folder or socket */
MR_API int mr_logger_open(mr_logger **out, const mr_logger_config *cfg, mr_error *err);

/* Return the address of the page, such as "127.0.0.1:9100", owned by the logger; NULL: it serves none. */
MR_API const char *mr_logger_address(const mr_logger *logger);

/* After each step: `step` steps of this epoch are queued or done. */
MR_API int mr_logger_progress(mr_logger *logger, uint64_t epoch, uint64_t step, uint64_t steps_per_epoch);

/* Take a report. It is copied. MR_EINVAL: the report has no struct_size. Failed writes are not reported here
 * (see above). Reports that are not due change the page only. mr_logger_epoch() adds report->steps to the
 * number of updates, and syncs the files. */
MR_API int mr_logger_step(mr_logger *logger, const mr_step_report *report);
MR_API int mr_logger_eval(mr_logger *logger, const mr_eval_report *report);
MR_API int mr_logger_epoch(mr_logger *logger, const mr_report *report);

/* Sync and close the files, end the page at once, and free the logger. Files without any report are removed.
 * Accepts NULL. Returns the first failure of a file, or MR_OK; the logger is closed in both cases. */
MR_API int mr_logger_close(mr_logger *logger, mr_error *err);

/* ------------------------------------------------------------------------------ struct sizes
 *
 * Nothing to read here for a program in C or C++. The library exports the function below in place of the
 * inline one above, which passes the size of its struct in the caller's header (base.h). A program in another
 * language sets struct_size and calls ..._sized. */

MR_API void mr_logger_defaults_sized(mr_logger_config *cfg, size_t struct_size);
static inline void mr_logger_defaults(mr_logger_config *cfg) { mr_logger_defaults_sized(cfg, sizeof *cfg); }

#ifdef __cplusplus
}
#endif
#endif
