/* tools/commands/watch_report.c: see watch_report.h. Names of programs may hold anything: text goes through
 * shown_text(). */
#include "tools/commands/watch_report.h"

#include <inttypes.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "tools/cli/output.h"

enum { LISTED = 6 };

static const char *const how_names[] = {"unknown", "given", "opens", "bytes"};

static double cores_used(const foreign_figures *f)
{
    return foreign_counted(f) > 0 ? (f->user_s + f->system_s) / foreign_counted(f) : 0;
}

static double part(double seconds, const foreign_figures *f)
{
    return foreign_counted(f) > 0 ? seconds / foreign_counted(f) : 0;
}

/* ---- text ---- */

static void put_command(const watch_result *r, FILE *out)
{
    char text[160];
    size_t at = 0;
    text[0] = '\0';
    for (int i = 0; r->command[i] && at < sizeof text; i++)
        at += (size_t)snprintf(text + at, sizeof text - at, "%s%s", i ? " " : "", r->command[i]);
    fprintf(out, "watched   %s%s\n", shown_text(text), at >= sizeof text ? "..." : "");
    fprintf(out, "          %.1f s, exit status %d%s\n", r->f->seconds, r->f->status,
            r->f->ended_by_us ? ", ended because its time was over" : "");
    if (r->f->start_s > 0)
        fprintf(out,
                "          %.1f s before it opened the first file of the data; all below is from there on\n",
                r->f->start_s);
}

static int by_cpu(const void *a, const void *b)
{
    const double x = ((const tree_process *)a)->cpu_s, y = ((const tree_process *)b)->cpu_s;
    return (x < y) - (x > y);
}

static void put_cores(const watch_result *r, FILE *out)
{
    const foreign_figures *f = r->f;
    fprintf(out, "cores     %.2f of %u used: %.2f by the program's own code, %.2f in the system\n",
            cores_used(f), f->cores, part(f->user_s, f), part(f->system_s, f));
    qsort(f->tree.process, f->tree.count, sizeof *f->tree.process, by_cpu);
    double reported = 0;
    for (uint32_t i = 0; i < f->tree.count && i < LISTED; i++) {
        const tree_process *p = &f->tree.process[i];
        if (part(p->cpu_s, f) < 0.01) break;
        fprintf(out, "          %.2f  %s (%d)%s, %u thread%s\n", part(p->cpu_s, f), shown_text(p->name),
                p->pid, p->pid == r->main_pid ? ", the main process" : "", p->threads,
                p->threads == 1 ? "" : "s");
        reported += p->cpu_s;
    }
    const double rest = part(f->user_s + f->system_s - reported, f);
    if (rest >= 0.01 && f->tree.count)
        fprintf(out, "          %.2f  others, and processes too short to be seen\n", rest);
    if (f->tree.has_core_wait)
        fprintf(out, "          threads that could have run waited for a core: %.1f s, added up\n",
                f->tree.core_wait_s);
    if (r->crowded)
        fprintf(out, "          other programs, or a quota, had cores that it needed: "
                     "its rate is the rate of a busy machine\n");
    if (f->machine.has_quota && f->machine.throttled_s > 0)
        fprintf(out, "          the quota of the control group kept it from running for %.1f s\n",
                f->machine.throttled_s);
}

static void put_reading(const foreign_figures *f, FILE *out)
{
    char calls[32], storage[32], size[32];
    const bool mapped = f->read_storage_bytes > f->read_calls_bytes;
    if (f->has_io)
        fprintf(out, "read      %s by calls, %s from storage%s\n",
                mri_size_text((double)f->read_calls_bytes, calls, sizeof calls),
                mri_size_text((double)f->read_storage_bytes, storage, sizeof storage),
                mapped ? ", memory maps and the kernel's read-ahead included"
                       : "; the rest came from memory, pipes and sockets");
    if (f->tree.looks)
        fprintf(out,
                "          threads waited uninterruptibly (mostly for storage) at %.0f %% of %" PRIu64
                " looks\n",
                100 * f->tree.any_waiting, f->tree.looks);
    if (f->tree.disk_wait_s > 0)
        fprintf(out, "          waited for block devices: %.1f s, added up over threads\n",
                f->tree.disk_wait_s);
    fprintf(out,
            "memory    %s resident at most, shared pages counted more than once; %" PRIu64
            " pages had to be read (major faults)\n",
            mri_size_text((double)f->tree.rss_bytes, size, sizeof size), f->major_faults);
}

static void put_machine(const foreign_figures *f, FILE *out)
{
    if (f->machine.has_pressure)
        fprintf(out, "pressure  %s: somebody waited for a core %.0f %% of the time, for storage %.0f %%\n",
                f->machine.group ? "control group" : "whole machine", 100 * f->machine.cpu_some,
                100 * f->machine.io_some);
    if (f->gpu.count == 0) fprintf(out, "GPU       no GPU seen (%s)\n", f->gpu.why[0] ? f->gpu.why : "none");
    for (uint32_t i = 0; i < f->gpu.count; i++) {
        const gpu_figure *g = &f->gpu.gpu[i];
        fprintf(out, "GPU %-5u %s: ", i, shown_text(g->name));
        if (g->used)
            fprintf(out, "idle %.0f %% of the time from its first use on, busy %.0f %%\n",
                    100 * (1 - g->busy), 100 * g->busy);
        else fprintf(out, "not used by it\n");
    }
    if (f->left)
        fprintf(out, "left      %u of its processes still run; their further work is not counted\n", f->left);
}

/* "12,345" or, below ten, "0.25". */
static char *rate_text(double value, char *buf, size_t buf_bytes)
{
    snprintf(buf, buf_bytes, value < 10 ? "%.2f" : "%.0f", value);
    return buf;
}

static void put_how(const watch_result *r, FILE *out)
{
    switch (r->how) {
    case SAMPLES_GIVEN:
        fprintf(out, "%.0f samples as given, in %.1f s with its start", r->samples, r->samples_seconds);
        break;
    case SAMPLES_OPENS:
        fprintf(out, "%s%.0f files opened in %.1f s", r->f->opens.at_least ? "at least " : "", r->samples,
                r->samples_seconds);
        break;
    default: fprintf(out, "an estimate: bytes read, by the mean size of a sample"); break;
    }
}

static void put_gap(const watch_result *r, FILE *out)
{
    char theirs[32], ours[32];
    const bool known = r->how != SAMPLES_UNKNOWN && r->samples_seconds > 0;
    const double rate = known ? r->samples / r->samples_seconds : 0;
    if (!known && !r->loader.measured) return;
    fprintf(out, "gap       ");
    if (known) {
        fprintf(out, "your program read %s%s samples/s (", r->how == SAMPLES_BYTES ? "at most " : "",
                rate_text(rate, theirs, sizeof theirs));
        put_how(r, out);
        fputc(')', out);
    } else fprintf(out, "the number of samples that your program read is unknown (--samples N gives it)");
    if (r->loader.measured)
        fprintf(out,
                ", millrace's loader delivers %s samples/s of the same files on the same "
                "cores (augment %s, batch %u)",
                rate_text(r->loader.samples_per_s, ours, sizeof ours), r->loader.augment, r->loader.batch);
    fputc('\n', out);
}

void watch_report_text(const watch_result *r, FILE *out)
{
    put_command(r, out);
    put_cores(r, out);
    put_reading(r->f, out);
    put_machine(r->f, out);
    if (!r->f->opens.counted && r->f->opens.why[0])
        fprintf(out, "opens     not counted: %s\n", r->f->opens.why);
    put_gap(r, out);
    fprintf(out, "verdict   %s\n", r->verdict);
}

/* ---- JSON ---- */

static void json_processes(json_line *j, const watch_result *r)
{
    const tree_figures *t = &r->f->tree;
    qsort(t->process, t->count, sizeof *t->process, by_cpu);
    json_array(j, "processes");
    for (uint32_t i = 0; i < t->count && i < LISTED; i++) {
        json_object(j, NULL);
        json_text(j, "name", t->process[i].name);
        json_i64(j, "pid", t->process[i].pid);
        json_real(j, "cores", part(t->process[i].cpu_s, r->f));
        json_u64(j, "threads", t->process[i].threads);
        json_bool(j, "main", t->process[i].pid == r->main_pid);
        json_close_object(j);
    }
    json_close_array(j);
}

static void json_gpus(json_line *j, const gpu_figures *g)
{
    json_array(j, "gpus");
    for (uint32_t i = 0; i < g->count; i++) {
        json_object(j, NULL);
        json_text(j, "name", g->gpu[i].name);
        json_bool(j, "used", g->gpu[i].used);
        json_real(j, "busy", g->gpu[i].looks ? g->gpu[i].busy : NAN);
        json_close_object(j);
    }
    json_close_array(j);
}

static void json_used(json_line *j, const watch_result *r)
{
    const foreign_figures *f = r->f;
    json_u64(j, "cores", f->cores);
    json_real(j, "cores_used", cores_used(f));
    json_real(j, "user_seconds", f->user_s);
    json_real(j, "system_seconds", f->system_s);
    json_real(j, "main_cores", r->main_cores);
    json_real(j, "worker_cores", r->worker_cores);
    json_u64(j, "workers", r->workers);
    json_processes(j, r);
    json_bool(j, "crowded", r->crowded);
    json_u64(j, "looks", f->tree.looks);
    json_real(j, "core_wait_seconds", f->tree.has_core_wait ? f->tree.core_wait_s : NAN);
    json_real(j, "disk_wait_seconds", f->tree.disk_wait_s > 0 ? f->tree.disk_wait_s : NAN);
    json_real(j, "waiting_fraction", f->tree.any_waiting);
    json_real(j, "waiting_threads", f->tree.waiting);
    json_real(j, "bytes_read", f->has_io ? (double)f->read_calls_bytes : NAN);
    json_real(j, "storage_bytes_read", f->has_io ? (double)f->read_storage_bytes : NAN);
    json_u64(j, "major_faults", f->major_faults);
    json_u64(j, "peak_rss_bytes", f->tree.rss_bytes);
    json_u64(j, "processes_left", f->left);
    json_real(j, "own_seconds", f->own_s);
}

static void json_machine(json_line *j, const machine_figures *m)
{
    json_text(j, "pressure_of", !m->has_pressure ? NULL : m->group ? "group" : "machine");
    json_real(j, "pressure_cpu", m->has_pressure ? m->cpu_some : NAN);
    json_real(j, "pressure_io", m->has_pressure ? m->io_some : NAN);
    json_real(j, "pressure_io_full", m->has_pressure ? m->io_full : NAN);
    json_real(j, "throttled_seconds", m->has_quota ? m->throttled_s : NAN);
}

static void json_samples(json_line *j, const watch_result *r)
{
    const bool known = r->how != SAMPLES_UNKNOWN && r->samples_seconds > 0;
    json_text(j, "samples_from", how_names[r->how]);
    json_real(j, "samples", known ? r->samples : NAN);
    json_real(j, "samples_per_s", known ? r->samples / r->samples_seconds : NAN);
    json_bool(j, "samples_at_least", r->how == SAMPLES_OPENS && r->f->opens.at_least);
    if (!r->loader.measured) return;
    json_text(j, "data", r->loader.data);
    json_text(j, "augment", r->loader.augment);
    json_u64(j, "batch", r->loader.batch);
    json_u64(j, "loader_workers", r->loader.workers);
    json_real(j, "loader_samples_per_s", r->loader.samples_per_s);
    json_real(j, "loader_samples_per_s_mad", r->loader.samples_per_s_mad);
}

void watch_report_json(const watch_result *r, FILE *out)
{
    json_line j = json_begin(out, "watch");
    json_array(&j, "command");
    for (int i = 0; r->command[i]; i++) json_text(&j, NULL, r->command[i]);
    json_close_array(&j);
    json_i64(&j, "status", r->f->status);
    json_bool(&j, "ended_by_time", r->f->ended_by_us);
    json_real(&j, "seconds", r->f->seconds);
    json_real(&j, "start_seconds", r->f->start_s);
    json_used(&j, r);
    json_machine(&j, &r->f->machine);
    json_gpus(&j, &r->f->gpu);
    json_samples(&j, r);
    json_bool(&j, "input_bound", r->input_bound);
    json_text(&j, "verdict", r->verdict);
    json_end(&j);
}
