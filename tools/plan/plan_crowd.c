/* tools/plan/plan_crowd.c: how much longer decoding takes on a core when all cores decode: two
 * hyper-threads share one core's units, all cores share caches and memory. One worker and as many as there
 * are cores take turns. */
#include <math.h>

#include "tools/cli/clock.h"
#include "tools/cli/exit.h"
#include "tools/cli/interrupt.h"
#include "tools/plan/plan.h"

enum { CHUNKS_KEPT = 4096, PAIRS = 3 };

/* Decoding of a sample on a core, in ms, with so many workers for so long. */
static int decode_ms(const tool_session *s, uint32_t workers, double seconds, double *out, mr_error *err)
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
    int rc = mr_record_create(&record, CHUNKS_KEPT);
    cfg.record = record;
    if (rc == MR_OK) rc = mr_loader_open(&l, s->src, &cfg, err);
    const uint64_t start = clock_ns();
    for (uint64_t n = 0; rc == MR_OK && seconds_since(start) < seconds && !interrupt_flag; n++) {
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
    double alone = INFINITY, crowded = INFINITY, ms = 0;
    int rc = MR_OK;
    if (cores < 2) return EXIT_DONE;
    for (int i = 0; i < 2 * PAIRS && rc == MR_OK && !interrupt_flag; i++) {
        rc = decode_ms(s, i % 2 ? cores : 1, seconds / (2 * PAIRS), &ms, &err);
        double *least = i % 2 ? &crowded : &alone; /* what disturbs only makes it longer */
        if (rc == MR_OK && ms > 0) *least = fmin(*least, ms);
    }
    if (rc == MR_OK && interrupt_flag) return EXIT_SIGNAL + interrupt_flag;
    if (alone < crowded && isfinite(crowded)) p->base.crowd_times = fmin(2, crowded / alone);
    return exit_status(rc, &err);
}
