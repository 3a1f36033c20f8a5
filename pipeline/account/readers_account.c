/* pipeline/account/readers_account.c: see readers_account.h. */
#include "pipeline/account/readers_account.h"

#include <stdio.h>

#define FILES_MOST 4096     /* of a source with more files none is compared */
#define LOOK_NS    1000000u /* of a reader's work: then the scheduler is asked how it went */
#define OLDER_LOOK 0.95     /* each look counts so much of the one after it */

int mri_readers_account_init(mri_readers_account *a, uint32_t files, mr_io io, bool recorded, mr_trace *trace)
{
    *a = (mri_readers_account){.began_when_asked = io == MR_IO_PREAD, .recorded = recorded, .trace = trace};
    if (files < 2 || files > FILES_MOST) return MR_OK;
    a->tolls = calloc(files, sizeof *a->tolls);
    if (!a->tolls) return MR_ENOMEM;
    a->file_count = files;
    return MR_OK;
}

void mri_readers_account_fini(mri_readers_account *a) { free(a->tolls); }

uint32_t mri_readers_account_odd(const mri_readers_account *a, mr_odd *out, uint32_t room)
{
    return mri_odd_find(MR_ODD_FILE, a->tolls, a->file_count, out, room);
}

void mri_readers_account_file(mri_readers_account *a, const mri_read *q, uint64_t submitted_ns,
                              uint64_t asked_ns)
{
    if (q->file >= a->file_count) return;
    const uint64_t took = mri_now_ns() - (a->began_when_asked ? asked_ns : submitted_ns);
    mri_toll *t = &a->tolls[q->file];
    mri_count(&t->items, 1);
    mri_count(&t->bytes, q->bytes);
    mri_count(&t->ns, took);
    if (took > MRI_LONG_READ_NS) mri_count(&t->long_items, 1);
}

void mri_reader_account_init(mri_reader_account *t, mri_readers_account *all, uint32_t number,
                             const mri_reader *reader)
{
    *t = (mri_reader_account){.all = all, .reader = reader, .cpu.fd = -1};
    snprintf(t->track, sizeof t->track, "reader %u", number % 1000);
}

void mri_reader_account_open(mri_reader_account *t)
{
    mri_cpu_time_open(&t->cpu);
    t->looked_ns = mri_now_ns();
}

void mri_reader_account_close(mri_reader_account *t) { mri_cpu_time_close(&t->cpu); }

uint64_t mri_reader_active_begin(mri_reader_account *t, mri_activity what)
{
    return mri_activity_begin(&t->all->counters.stage, what);
}

void mri_reader_active_end(mri_reader_account *t, mri_activity what, uint64_t since_ns)
{
    t->active_ns += mri_activity_end(&t->all->counters.stage, what, since_ns) - since_ns;
}

uint64_t mri_reader_core_ns(mri_reader_account *t)
{
    const uint64_t before = t->core_ns, now = t->all->recorded ? mri_thread_ran_ns() : 0;
    if (!now) return 0;
    t->core_ns = now;
    return now - before;
}

static void add_counts(mri_reader_account *t)
{
    const mri_reader_counts now = mri_reader_counts_of(t->reader);
    mri_read_counters *c = &t->all->counters;
    mri_count(&c->reads, now.reads - t->counted.reads);
    mri_count(&c->again, now.again - t->counted.again);
    mri_count(&c->shorts, now.shorts - t->counted.shorts);
    mri_count(&c->bytes, now.bytes - t->counted.bytes);
    t->counted = now;
}

static void look(mri_reader_account *t)
{
    uint64_t ran, delayed;
    const uint64_t now = mri_now_ns();
    if (t->active_ns < LOOK_NS || t->cpu.fd < 0) return;
    mri_cpu_time_look(&t->cpu, now - t->looked_ns, &ran, &delayed);
    t->delayed_ns = OLDER_LOOK * t->delayed_ns + (double)mri_min_u64(delayed, t->active_ns);
    t->lately_ns = OLDER_LOOK * t->lately_ns + (double)t->active_ns;
    t->delayed_part = t->delayed_ns / t->lately_ns;
    t->looked_ns = now;
    t->active_ns = 0;
}

static void end(mri_reader_account *t, uint64_t start_ns, uint64_t batch)
{
    add_counts(t);
    mr_trace_span(t->all->trace, t->track, "read", start_ns, mri_now_ns(), batch);
}

void mri_reader_end(mri_reader_account *t, uint32_t samples, uint64_t batch, uint64_t start_ns,
                    mri_chunk_times *times)
{
    look(t);
    times->delayed_part = t->delayed_part;
    mri_count(&t->all->counters.stage.items, samples);
    end(t, start_ns, batch);
}

void mri_reader_end_inline(mri_reader_account *t, uint32_t samples, uint64_t batch, uint64_t start_ns)
{
    mri_count(&t->all->counters.stage.items, samples);
    mri_activity_add(&t->all->counters.stage, MRI_BUSY, mri_now_ns() - start_ns);
    end(t, start_ns, batch);
}

void mri_reader_end_run(mri_reader_account *t, uint64_t start_ns) { end(t, start_ns, MR_NOWHERE); }
