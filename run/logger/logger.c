/* run/logger/logger.c: the calls of millrace/logger.h. See logger.h. */
#include "run/logger/logger.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/abi.h"
#include "base/util.h"
#include "run/logger/csv_log.h"
#include "run/logger/event_file.h"
#include "run/logger/metrics_page.h"
#include "run/logger/metrics_server.h"

struct mr_logger {
    uint32_t process; /* that opened it */
    uint64_t updates; /* done, at the end of the newest epoch */
    mri_event_file events;
    mri_csv_log csv;
    mri_metrics_page page;
    bool has_page;
    mri_metrics_server *server;
};

void mr_logger_defaults_sized(mr_logger_config *cfg, size_t struct_size)
{
    const mr_logger_config all = {0};
    mri_settings_give(cfg, struct_size, &all, sizeof all);
}

/* ---- opening ---- */

static int open_page(mr_logger *l, const mr_logger_config *cfg, mr_error *err)
{
    const mri_logged_run run = {.loader = cfg->loader,
                                .model = cfg->model,
                                .data = cfg->data,
                                .device = cfg->device,
                                .replicas = cfg->replicas,
                                .epochs = cfg->epochs,
                                .updates = cfg->updates};
    if (!cfg->loader)
        return mr_error_set(err, MR_EINVAL,
                            "--metrics %s: loader must not be NULL: the page shows its counters",
                            cfg->metrics);
    const int why = mri_metrics_page_init(&l->page, &run);
    if (why) return mr_error_sys(err, why, "--metrics %s: cannot make a lock", cfg->metrics);
    l->has_page = true;
    return mri_metrics_server_open(&l->server, cfg->metrics, mri_metrics_page_write, &l->page, err);
}

static int open_outputs(mr_logger *l, const mr_logger_config *cfg, mr_error *err)
{
    const mri_log_file_config csv = {.inputs = {cfg->src, cfg->val_src}, .resume = cfg->resume}, events = {0};
    int rc = cfg->metrics ? open_page(l, cfg, err) : MR_OK; /* first: it leaves nothing behind */
    if (rc == MR_OK && cfg->csv) rc = mri_csv_log_open(&l->csv, cfg->csv, &csv, err);
    if (rc == MR_OK && cfg->tensorboard)
        rc = mri_event_file_open(&l->events, cfg->tensorboard, &events, cfg->updates, err);
    return rc;
}

/* Failures so far are the result of opening. */
static void report_failures(mri_log_file *f, const mr_logger_config *cfg)
{
    f->cfg.on_failure = cfg->on_failure;
    f->cfg.context = cfg->context;
}

int mr_logger_open(mr_logger **out, const mr_logger_config *cfg, mr_error *err)
{
    mr_logger_config mine;
    mr_error why = MR_ERROR_INIT;
    MRI_GIVEN(err, out);
    *out = NULL;
    mr_logger_defaults(&mine);
    int rc = cfg ? mri_settings_take(&mine, sizeof mine, cfg, "logger", err) : MR_OK;
    if (rc) return rc;
    mr_logger *l = calloc(1, sizeof *l);
    if (!l) return mr_error_set(err, MR_ENOMEM, "no memory for a logger");
    l->process = mri_process();
    l->updates = mine.updates;
    rc = open_outputs(l, &mine, &why);
    if (rc != MR_OK) {
        mr_logger_close(l, NULL);
        if (err) *err = why;
        return rc;
    }
    report_failures(&l->csv.file, &mine);
    report_failures(&l->events.file, &mine);
    *out = l;
    return MR_OK;
}

const char *mr_logger_address(const mr_logger *logger)
{
    return MRI_IS_OWN(logger) && logger->server ? mri_metrics_server_address(logger->server) : NULL;
}

/* ---- reports ---- */

int mr_logger_progress(mr_logger *logger, uint64_t epoch, uint64_t step, uint64_t steps_per_epoch)
{
    MRI_OWN(NULL, logger);
    if (logger->server) mri_metrics_page_progress(&logger->page, epoch, step, steps_per_epoch);
    return MR_OK;
}

int mr_logger_step(mr_logger *logger, const mr_step_report *report)
{
    mr_step_report mine = {.struct_size = sizeof mine};
    MRI_OWN(NULL, logger);
    MRI_GIVEN(NULL, report);
    const int rc = mri_settings_take(&mine, sizeof mine, report, "step report", NULL);
    if (rc) return rc;
    if (logger->server) mri_metrics_page_step(&logger->page, &mine);
    if (!mine.due) return MR_OK;
    mri_csv_log_step(&logger->csv, &mine);
    mri_event_file_step(&logger->events, &mine);
    return MR_OK;
}

int mr_logger_eval(mr_logger *logger, const mr_eval_report *report)
{
    mr_eval_report mine = {.struct_size = sizeof mine};
    MRI_OWN(NULL, logger);
    MRI_GIVEN(NULL, report);
    const int rc = mri_settings_take(&mine, sizeof mine, report, "eval report", NULL);
    if (rc) return rc;
    mri_csv_log_eval(&logger->csv, &mine);
    mri_event_file_eval(&logger->events, &mine);
    return MR_OK;
}

int mr_logger_epoch(mr_logger *logger, const mr_report *report)
{
    mr_report mine = {.struct_size = sizeof mine};
    MRI_OWN(NULL, logger);
    MRI_GIVEN(NULL, report);
    const int rc = mri_settings_take(&mine, sizeof mine, report, "report", NULL);
    if (rc) return rc;
    logger->updates += mine.steps;
    if (logger->server) mri_metrics_page_epoch(&logger->page, &mine);
    mri_csv_log_epoch(&logger->csv, &mine, logger->updates);
    mri_event_file_epoch(&logger->events, &mine, logger->updates);
    return MR_OK;
}

int mr_logger_close(mr_logger *logger, mr_error *err)
{
    if (!MRI_IS_OWN(logger)) return MR_OK;
    mri_metrics_server_close(logger->server);
    if (logger->has_page) mri_metrics_page_fini(&logger->page);
    mri_csv_log_close(&logger->csv);
    mri_event_file_close(&logger->events);
    const mr_error *first =
        logger->csv.file.failure.code ? &logger->csv.file.failure : &logger->events.file.failure;
    const int rc = first->code;
    if (rc && err) *err = *first;
    free(logger);
    return rc;
}
