/* pipeline/account/batches_account.c: see batches_account.h. */
#include "pipeline/account/batches_account.h"

enum { TIMES_KEPT = 16 }; /* of released batches */

int mri_batches_account_init(mri_batches_account *a, uint32_t in_flight, uint32_t parts)
{
    *a = (mri_batches_account){.kept = in_flight + TIMES_KEPT, .parts = parts};
    a->times = calloc(a->kept, sizeof *a->times);
    a->copies = calloc((size_t)a->kept * parts, sizeof *a->copies);
    if (!a->times || !a->copies) return MR_ENOMEM;
    for (uint32_t i = 0; i < a->kept; i++) a->times[i].batch = MR_NOWHERE;
    return MR_OK;
}

void mri_batches_account_fini(mri_batches_account *a)
{
    free(a->times);
    free(a->copies);
    a->times = NULL;
    a->copies = NULL;
}

static mri_batch_times *times_of(const mri_batches_account *a, uint64_t batch)
{
    return &a->times[batch % a->kept];
}

static mri_copy_times *copies_of(const mri_batches_account *a, uint64_t batch)
{
    return &a->copies[batch % a->kept * a->parts];
}

void mri_batches_account_read(mri_batches_account *a, const mri_chunk_times *c)
{
    mri_cover_add(&a->read, c->claimed_ns, c->read_ns);
}

void mri_batches_account_work(mri_batches_account *a, const mri_work *work) { mri_work_add(&a->round, work); }

void mri_batches_account_full(mri_batches_account *a, uint64_t batch, const mri_chunk_times *last,
                              uint32_t workers)
{
    const uint64_t now = mri_now_ns();
    mri_load_mark(&a->load, a->round.ended_ns + a->round.held_ns, workers, now);
    mri_load_mark(&a->reading, a->read.ns, 1, now);
    *times_of(a, batch) = (mri_batch_times){.batch = batch,
                                            .last = *last,
                                            .full_ns = now,
                                            .round = a->round,
                                            .load = a->load,
                                            .reading = a->reading};
    a->round = (mri_work){0};
    a->read.ns = 0;
}

mri_staging_wait mri_staging_wait_begin(mri_batches_account *a, mri_cpu_time *cpu)
{
    mri_staging_wait w = {.came_ns = mri_now_ns()};
    uint64_t ran;
    if (cpu) mri_cpu_time_look(cpu, a->looked_ns ? w.came_ns - a->looked_ns : 0, &ran, &w.before_late_ns);
    return w;
}

void mri_staging_wait_end(mri_batches_account *a, mri_cpu_time *cpu, mri_staging_wait *w)
{
    uint64_t ran;
    if (cpu) mri_cpu_time_look(cpu, w->room_ns - w->came_ns, &ran, &w->late_ns);
    a->looked_ns = w->room_ns;
}

void mri_batches_account_waited(mri_batches_account *a, uint64_t batch, const mri_staging_wait *w)
{
    mri_batch_times *t = times_of(a, batch);
    t->before_ns = a->copies_ns;
    t->before_late_ns = w->before_late_ns;
    t->came_ns = w->came_ns;
    t->noticed_ns = w->noticed_ns;
    t->room_ns = w->room_ns;
    t->late_ns = w->late_ns;
}

void mri_batches_account_staged(mri_batches_account *a, uint64_t batch)
{
    mri_batch_times *t = times_of(a, batch);
    t->staged_ns = mri_now_ns();
    if (!t->came_ns) t->came_ns = t->noticed_ns = t->room_ns = t->staged_ns; /* prefetch off: nobody waited */
    memset(copies_of(a, batch), 0, a->parts * sizeof *a->copies);
}

void mri_batches_account_copied(mri_batches_account *a, uint64_t batch, const mri_copy_times *times)
{
    memcpy(copies_of(a, batch), times, a->parts * sizeof *times);
    a->copies_ns = 0;
    for (uint32_t p = 0; p < a->parts; p++) a->copies_ns = mri_max_u64(a->copies_ns, times[p].end_ns);
}

void mri_batches_account_serial(mri_batches_account *a, uint64_t batch, const mri_chunk_times *all,
                                uint64_t read_ns, uint64_t before_late_ns)
{
    mri_batch_times *t = times_of(a, batch);
    t->serial = true;
    t->last = *all;
    t->serial_read_ns = read_ns;
    t->before_late_ns = before_late_ns;
}

void mri_batches_account_get(const mri_batches_account *a, uint64_t batch, uint32_t part,
                             mri_batch_times *out)
{
    *out = *times_of(a, batch);
    if (out->batch != batch) out->batch = MR_NOWHERE;
    else out->copy = copies_of(a, batch)[part];
}
