/* run/logger/metrics_page.c: see metrics_page.h. Names are the JSON keys behind millrace_, in base units
 * (seconds, bytes) and with what Prometheus asks of names: _total behind what only grows. */
#include "run/logger/metrics_page.h"

#include <inttypes.h>
#include <math.h>
#include <string.h>
#include <sys/resource.h>

#include "base/number.h"

static const char *const stages[] = {"read", "decode", "copy"};

/* ---- the format ---- */

static void family(FILE *out, const char *name, const char *type, const char *help)
{
    fprintf(out, "# HELP millrace_%s %s\n# TYPE millrace_%s %s\n", name, help, name, type);
}

static void number(FILE *out, double value)
{
    if (isnan(value)) fputs("NaN\n", out);
    else if (isinf(value)) fputs(value > 0 ? "+Inf\n" : "-Inf\n", out);
    else fprintf(out, "%.17g\n", value);
}

static void one(FILE *out, const char *name, const char *type, const char *help, double value)
{
    family(out, name, type, help);
    fprintf(out, "millrace_%s ", name);
    number(out, value);
}

/* Whole numbers keep all their digits. */
static void whole(FILE *out, const char *name, const char *type, const char *help, uint64_t value)
{
    family(out, name, type, help);
    fprintf(out, "millrace_%s %" PRIu64 "\n", name, value);
}

static void labelled(FILE *out, const char *name, const char *label, const char *of, double value)
{
    fprintf(out, "millrace_%s{%s=\"%s\"} ", name, label, of);
    number(out, value);
}

/* A label of any text: first the safe form that messages have, then quoted. */
static void put_label(FILE *out, const char *label, const char *text)
{
    char safe[4096];
    fprintf(out, "%s=\"", label);
    for (const char *c = mr_text_shown(text ? text : "", safe, sizeof safe); *c; c++) {
        if (*c == '"' || *c == '\\') fputc('\\', out);
        fputc(*c, out);
    }
    fputc('"', out);
}

/* ---- families ---- */

static void put_run(FILE *out, const mri_logged_run *run, const mri_metrics_state *m)
{
    family(out, "info", "gauge", "What runs; always 1.");
    fputs("millrace_info{", out);
    put_label(out, "version", mr_version());
    fputc(',', out);
    put_label(out, "model", run->model);
    fputc(',', out);
    put_label(out, "data", run->data);
    fputc(',', out);
    put_label(out, "device", run->device);
    fputs("} 1\n", out);
    whole(out, "replicas", "gauge", "Devices that train.", run->replicas);
    whole(out, "batch", "gauge", "Samples in a batch.", mr_loader_info_of(run->loader)->batch);
    whole(out, "epochs", "gauge", "Epochs that the run is to have.", run->epochs);
    whole(out, "epoch", "gauge", "The epoch that runs, from 0.", m->epoch);
    whole(out, "step", "gauge", "Steps of this epoch that are queued or done.", m->step);
    whole(out, "steps_per_epoch", "gauge", "Steps of an epoch.", m->steps_per_epoch);
    whole(out, "updates", "gauge", "Updates of the run so far, including earlier processes.", m->updates);
    whole(out, "steps_total", "counter", "Steps that this process trained.", m->steps);
}

static void put_stretch(FILE *out, const mr_step_report *r)
{
    one(out, "step_loss", "gauge", "Mean loss of the newest steps.", r->loss);
    if (!isnan(r->accuracy)) one(out, "step_accuracy", "gauge", "Accuracy on the newest steps.", r->accuracy);
    one(out, "lr", "gauge", "Learning rate.", (double)r->lr);
    one(out, "samples_per_second", "gauge", "Samples trained a second, over the newest steps.",
        r->samples_per_s);
    if (r->seconds_left >= 0)
        one(out, "left_seconds", "gauge", "To the end of the run at its pace so far.", r->seconds_left);
}

static void put_epoch(FILE *out, const mr_report *r)
{
    one(out, "loss", "gauge", "Mean loss of the newest whole epoch.", r->loss);
    if (!isnan(r->accuracy))
        one(out, "accuracy", "gauge", "Accuracy over the newest whole epoch.", r->accuracy);
    whole(out, "diverged", "gauge", "1: a loss is not finite, or a thousand times the first.", r->diverged);
    one(out, "epoch_seconds", "gauge", "Time of the newest epoch's steps.", r->seconds);
    one(out, "epoch_samples_per_second", "gauge", "Samples trained a second in it.", r->samples_per_s);
    one(out, "step_seconds", "gauge", "Median of its steps.", 1e-3 * r->step_ms);
    one(out, "epoch_wait_seconds", "gauge", "Time the trainer was blocked on the loader in it.",
        1e-3 * r->wait_ms);
    one(out, "exposed_seconds", "gauge", "Time the devices were idle in it.", 1e-3 * r->exposed_ms);
    one(out, "network_seconds", "gauge", "Time of it in which they waited for other ranks.",
        1e-3 * r->network_ms);
    one(out, "stall_fraction", "gauge", "The idle part of the devices' time in it.", r->stall_fraction);
}

static void put_validation(FILE *out, const mri_metrics_state *m)
{
    one(out, "val_loss", "gauge", "Loss of the newest validation.", m->val_loss);
    if (!isnan(m->val_accuracy))
        one(out, "val_accuracy", "gauge", "Accuracy of the newest validation.", m->val_accuracy);
}

static void put_stages(FILE *out, const mr_loader_stats *s)
{
    const mr_stage_stats *const stage[] = {&s->read, &s->decode, &s->copy};
    family(out, "stage_busy_seconds_total", "counter", "Time the threads of a stage worked.");
    for (int i = 0; i < 3; i++)
        labelled(out, "stage_busy_seconds_total", "stage", stages[i], 1e-9 * (double)stage[i]->busy_ns);
    family(out, "stage_blocked_in_seconds_total", "counter", "Time they waited for input.");
    for (int i = 0; i < 3; i++)
        labelled(out, "stage_blocked_in_seconds_total", "stage", stages[i],
                 1e-9 * (double)stage[i]->blocked_in_ns);
    family(out, "stage_blocked_out_seconds_total", "counter", "Time they waited for room in the next stage.");
    for (int i = 0; i < 3; i++)
        labelled(out, "stage_blocked_out_seconds_total", "stage", stages[i],
                 1e-9 * (double)stage[i]->blocked_out_ns);
    family(out, "stage_items_total", "counter", "What went through a stage.");
    for (int i = 0; i < 3; i++)
        labelled(out, "stage_items_total", "stage", stages[i], (double)stage[i]->items);
    family(out, "stage_threads", "gauge", "Threads of a stage.");
    for (int i = 0; i < 3; i++) labelled(out, "stage_threads", "stage", stages[i], stage[i]->threads);
    family(out, "stage_occupancy", "gauge", "Mean fill of the queue in front of a stage.");
    for (int i = 0; i < 3; i++) labelled(out, "stage_occupancy", "stage", stages[i], stage[i]->occupancy);
}

static void put_waits(FILE *out, const mr_loader *loader)
{
    mr_causes waits = {0};
    mr_loader_waits(loader, &waits);
    family(out, "wait_cause_seconds_total", "counter",
           "Time that the trainer waited for the loader, by cause.");
    for (int i = 0; i < MR_CAUSES; i++)
        labelled(out, "wait_cause_seconds_total", "cause", mr_cause_name((mr_cause)i),
                 1e-9 * (double)waits.ns[i]);
}

static void put_loader(FILE *out, const mr_loader *loader)
{
    mr_loader_stats s;
    char replica[16];
    mr_loader_stats_read(loader, &s);
    whole(out, "samples_total", "counter", "Samples that the loader delivered.", s.samples);
    whole(out, "batches_total", "counter", "Batches that it delivered.", s.batches);
    one(out, "wait_seconds_total", "counter", "Time the trainer was blocked on it.",
        1e-9 * (double)s.wait_ns);
    whole(out, "read_bytes_total", "counter", "Bytes read from storage.", s.bytes_read);
    family(out, "copied_bytes_total", "counter", "Bytes copied to the device of a replica.");
    for (uint32_t i = 0; i < mr_loader_info_of(loader)->parts && i < MR_LOADER_MAX_PARTS; i++) {
        snprintf(replica, sizeof replica, "%u", i);
        labelled(out, "copied_bytes_total", "replica", replica, (double)s.bytes_copied[i]);
    }
    whole(out, "bad_samples_total", "counter", "Samples that were damaged.", s.bad_samples);
    whole(out, "cache_hits_total", "counter", "Samples that came from the cache.", s.cache_hits);
    whole(out, "cache_entries", "gauge", "Samples in it.", s.cache_entries);
    whole(out, "cache_bytes", "gauge", "Bytes in it.", s.cache_bytes);
    put_stages(out, &s);
    put_waits(out, loader);
}

static void put_process(FILE *out)
{
    struct rusage use;
    if (getrusage(RUSAGE_SELF, &use) != 0) return;
    whole(out, "peak_rss_bytes", "gauge", "The most memory this process had.",
          (uint64_t)use.ru_maxrss * 1024);
}

void mri_metrics_page_write(void *context, FILE *out)
{
    mri_metrics_page *m = context;
    const locale_t before = mri_c_numbers_begin();
    pthread_mutex_lock(&m->lock);
    const mri_metrics_state now = m->now;
    pthread_mutex_unlock(&m->lock);
    put_run(out, &m->run, &now);
    if (now.has_stretch) put_stretch(out, &now.stretch);
    if (now.has_epoch) put_epoch(out, &now.last);
    if (now.has_val) put_validation(out, &now);
    put_loader(out, m->run.loader);
    put_process(out);
    mri_c_numbers_end(before);
}

/* ---- contents ---- */

int mri_metrics_page_init(mri_metrics_page *m, const mri_logged_run *run)
{
    *m = (mri_metrics_page){.run = *run,
                            .now.updates = run->updates,
                            .now.steps_per_epoch = mr_loader_info_of(run->loader)->steps_per_epoch};
    return pthread_mutex_init(&m->lock, NULL);
}

void mri_metrics_page_fini(mri_metrics_page *m) { pthread_mutex_destroy(&m->lock); }

void mri_metrics_page_progress(mri_metrics_page *m, uint64_t epoch, uint64_t step, uint64_t steps_per_epoch)
{
    pthread_mutex_lock(&m->lock);
    m->now.epoch = epoch;
    m->now.step = step;
    m->now.steps_per_epoch = steps_per_epoch;
    m->now.steps++;
    m->now.updates++;
    pthread_mutex_unlock(&m->lock);
}

void mri_metrics_page_step(mri_metrics_page *m, const mr_step_report *r)
{
    pthread_mutex_lock(&m->lock);
    m->now.stretch = *r;
    m->now.has_stretch = true;
    pthread_mutex_unlock(&m->lock);
}

void mri_metrics_page_epoch(mri_metrics_page *m, const mr_report *r)
{
    pthread_mutex_lock(&m->lock);
    if (r->steps) m->now.last = *r; /* else an earlier process trained it */
    m->now.has_epoch |= r->steps > 0;
    m->now.has_val |= r->has_val;
    if (r->has_val) {
        m->now.val_loss = r->val_loss;
        m->now.val_accuracy = r->val_accuracy;
    }
    pthread_mutex_unlock(&m->lock);
}
