/* tools/plan/plan_crowd.c: how much longer decoding takes on a core when all cores decode: two
 * hyper-threads share one core's units, all cores share caches and memory. One worker and one worker per core
 * take turns, over the same samples: a turn is too short for pictures to be alike on average. */
#include <math.h>
#include <stdlib.h>

#include "tools/cli/clock.h"
#include "tools/cli/exit.h"
#include "tools/cli/interrupt.h"
#include "tools/plan/plan.h"

enum { CHUNKS_KEPT = 4096, PAIRS = 3, LIST_MOST = 1 << 20, LIST_BATCHES = 8 };

/* Samples from all over the data: the number that one worker decodes in half a turn. */
typedef struct sample_list {
    uint64_t *sample, count;
    uint32_t batch; /* small enough that a turn has several */
} sample_list;

static bool list_samples(const tool_session *s, const plan_result *p, double turn, sample_list *out)
{
    const uint64_t all = mr_source_info_of(s->src)->count;
    const double each = fmax(1e-9, 1e-3 * p->measured.decode_ms_per_sample);
    out->count = (uint64_t)fmax(1, fmin(fmin((double)all, LIST_MOST), 0.5 * turn / each));
    out->batch = (uint32_t)fmax(1, fmin(s->loader_cfg.batch, (double)out->count / LIST_BATCHES));
    out->sample = malloc(out->count * sizeof *out->sample);
    for (uint64_t i = 0; out->sample && i < out->count; i++)
        out->sample[i] = (uint64_t)((double)i / (double)out->count * (double)all);
    return out->sample != NULL;
}

/* Decoding of a sample on a core, in ms, with `workers` workers for `seconds`. */
static int decode_ms(const tool_session *s, const sample_list *list, uint32_t workers, double seconds,
                     double *out, mr_error *err)
{
    mr_loader *l = NULL;
    mr_record *record = NULL;
    mr_record_totals t;
    mr_batch b;
    mr_loader_config cfg = s->loader_cfg;
    cfg.workers = workers;
    cfg.prefetch = 4;
    cfg.devices = NULL;
    cfg.device_count = 0;
    cfg.trace = NULL;
    cfg.cache = MR_CACHE_OFF;
    cfg.on_note = NULL;
    cfg.batch = list->batch;
    cfg.sampler_samples = list->sample;
    cfg.sampler_count = list->count;
    cfg.order = MR_ORDER_SEQUENTIAL; /* an order of one's own goes with none of these, nor do they change what
                                        a sample costs */
    cfg.repeats = 0;
    cfg.length_window = 0;
    int rc = mr_record_create(&record, CHUNKS_KEPT);
    cfg.record = record;
    if (rc == MR_OK) rc = mr_loader_open(&l, s->src, &cfg, err);
    const uint64_t start = clock_ns();
    const uint64_t least = 2 + 2 * (uint64_t)workers;
    for (uint64_t n = 0; rc == MR_OK && (n < least || seconds_since(start) < seconds) && !interrupt_flag;
         n++) {
        rc = mr_loader_next(l, &b, MR_FOREVER, err);
        if (rc == MR_OK) mr_loader_release(l, &b, NULL);
        if (n == 1) mr_record_clear(record); /* first pages, first reads */
    }
    mr_loader_close(l);
    if (rc == MR_OK) {
        mr_record_totals_read(record, &t);
        *out = t.chunks ? t.decode_ms_per_sample : 0;
    }
    mr_record_destroy(record);
    return rc;
}

int plan_measure_crowd(const tool_session *s, double seconds, plan_result *p)
{
    mr_error err = MR_ERROR_INIT;
    const uint32_t cores = (uint32_t)ceil(p->base.cores);
    const double turn = seconds / (2 * PAIRS);
    double alone = INFINITY, crowded = INFINITY, ms = 0;
    sample_list list;
    int rc = MR_OK;
    if (cores < 2) return EXIT_DONE;
    if (!list_samples(s, p, turn, &list)) return exit_no_memory("a list of samples");
    for (int i = 0; i < 2 * PAIRS && rc == MR_OK && !interrupt_flag; i++) {
        rc = decode_ms(s, &list, i % 2 ? cores : 1, turn, &ms, &err);
        double *least = i % 2 ? &crowded : &alone; /* what disturbs only makes it longer */
        if (rc == MR_OK && ms > 0) *least = fmin(*least, ms);
    }
    free(list.sample);
    if (rc == MR_OK && interrupt_flag) return EXIT_SIGNAL + interrupt_flag;
    if (alone < crowded && isfinite(crowded)) p->base.crowd_times = fmin(2, crowded / alone);
    return exit_status(rc, &err);
}
