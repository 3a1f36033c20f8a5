/* pipeline/observe/record.c: see record.h. Three rings; when one is full the oldest gives way. */
#include "pipeline/observe/record.h"

#include "base/abi.h"

enum { STEPS_MOST = 16384 }; /* and as many batches */

struct mr_record {
    uint32_t process;     /* that opened it (base/handle.h) */
    pthread_mutex_t lock; /* all below */
    mri_run_shape shape;
    mri_chunk_record *chunk;
    mri_copy_record *copy;
    mri_step_record *step;
    uint32_t chunks_most;
    uint64_t chunks, copies, steps; /* added since the record was cleared */
    uint64_t samples;               /* of the steps after the first one */
    uint64_t first_end_ns, last_end_ns;
    uint64_t ended_ns[MR_LOADER_MAX_PARTS]; /* the step before, of every replica */
    double compute_ns, idle_ns;             /* mean over replicas */
    double cause_ns[MR_CAUSES];
};

int mr_record_create(mr_record **out, uint32_t chunks_most)
{
    MRI_GIVEN(NULL, out);
    *out = NULL;
    mr_record *r = chunks_most ? calloc(1, sizeof *r) : NULL;
    if (!r) return chunks_most ? MR_ENOMEM : MR_EINVAL;
    r->process = mri_process();
    r->chunks_most = chunks_most;
    r->chunk = calloc(chunks_most, sizeof *r->chunk);
    r->copy = calloc(STEPS_MOST, sizeof *r->copy);
    r->step = calloc(STEPS_MOST, sizeof *r->step);
    pthread_mutex_init(&r->lock, NULL);
    if (!r->chunk || !r->copy || !r->step) {
        mr_record_destroy(r);
        return MR_ENOMEM;
    }
    *out = r;
    return MR_OK;
}

void mr_record_destroy(mr_record *r)
{
    if (!MRI_IS_OWN(r)) return;
    pthread_mutex_destroy(&r->lock);
    free(r->chunk);
    free(r->copy);
    free(r->step);
    free(r);
}

static void clear_locked(mr_record *r)
{
    r->chunks = r->copies = r->steps = r->samples = 0;
    r->first_end_ns = r->last_end_ns = 0;
    r->compute_ns = r->idle_ns = 0;
    memset(r->cause_ns, 0, sizeof r->cause_ns);
}

void mr_record_clear(mr_record *r)
{
    if (!MRI_IS_OWN(r)) return;
    pthread_mutex_lock(&r->lock);
    clear_locked(r);
    pthread_mutex_unlock(&r->lock);
}

uint32_t mri_record_process(const mr_record *r) { return r->process; }

void mri_record_set_shape(mr_record *r, const mri_run_shape *shape)
{
    if (!r) return;
    pthread_mutex_lock(&r->lock);
    if (r->shape.parts != shape->parts) clear_locked(r); /* steps of other parts say nothing of these */
    r->shape = *shape;
    pthread_mutex_unlock(&r->lock);
}

void mri_record_chunk(mr_record *r, const mri_chunk_record *c)
{
    if (!r || c->samples == 0) return;
    pthread_mutex_lock(&r->lock);
    r->chunk[r->chunks++ % r->chunks_most] = *c;
    pthread_mutex_unlock(&r->lock);
}

void mri_record_copies(mr_record *r, const mri_copy_record *c)
{
    if (!r) return;
    pthread_mutex_lock(&r->lock);
    r->copy[r->copies++ % STEPS_MOST] = *c;
    pthread_mutex_unlock(&r->lock);
}

/* When the copies of a batch were over; 0: not known. A step is recorded a few batches after its copies. */
static uint64_t copied_locked(const mr_record *r, uint64_t batch)
{
    const uint64_t oldest = r->copies > 64 ? r->copies - 64 : 0;
    for (uint64_t i = r->copies; i-- > oldest;)
        if (r->copy[i % STEPS_MOST].batch == batch) return r->copy[i % STEPS_MOST].end_ns;
    return 0;
}

bool mri_record_ended(mr_record *r, uint32_t parts, uint64_t *out)
{
    pthread_mutex_lock(&r->lock);
    const bool any = r->last_end_ns > 0;
    memcpy(out, r->ended_ns, parts * sizeof *out);
    pthread_mutex_unlock(&r->lock);
    return any;
}

/* After the first step. Time charged to no cause belongs to the host. */
static void add_times_locked(mr_record *r, const uint64_t *start_ns, const uint64_t *end_ns,
                             uint32_t replicas, const mr_causes *causes)
{
    double idle = 0;
    for (uint32_t i = 0; i < replicas; i++) {
        r->compute_ns += (double)(end_ns[i] - start_ns[i]) / replicas;
        if (start_ns[i] > r->ended_ns[i]) idle += (double)(start_ns[i] - r->ended_ns[i]);
    }
    for (int i = 0; i < MR_CAUSES; i++) r->cause_ns[i] += (double)causes->ns[i] / replicas;
    r->idle_ns += idle / replicas;
    if (idle > (double)causes->total_ns)
        r->cause_ns[MR_CAUSE_HOST] += (idle - (double)causes->total_ns) / replicas;
}

void mri_record_step(mr_record *r, uint64_t batch, uint32_t samples, const uint64_t *start_ns,
                     const uint64_t *end_ns, uint32_t replicas, const mr_causes *causes)
{
    if (!r) return;
    uint64_t start = 0, end = 0;
    for (uint32_t i = 0; i < replicas; i++) {
        start = mri_max_u64(start, start_ns[i]);
        end = mri_max_u64(end, end_ns[i]);
    }
    pthread_mutex_lock(&r->lock);
    const uint64_t copied = copied_locked(r, batch), before = r->last_end_ns;
    const uint64_t could = mri_max_u64(copied, before);
    r->step[r->steps++ % STEPS_MOST] =
        (mri_step_record){.samples = samples,
                          .compute_ns = end - start,
                          .gap_ns = before && copied && start > could ? start - could : 0};
    if (before) {
        r->samples += samples;
        add_times_locked(r, start_ns, end_ns, replicas, causes);
    } else r->first_end_ns = end;
    r->last_end_ns = end;
    memcpy(r->ended_ns, end_ns, replicas * sizeof *end_ns);
    pthread_mutex_unlock(&r->lock);
}

static double mean_step_ms_locked(const mr_record *r)
{
    const uint64_t n = mri_min_u64(r->steps, STEPS_MOST);
    double sum = 0;
    for (uint64_t i = 0; i < n; i++) sum += 1e-6 * (double)r->step[i].compute_ns;
    return n ? sum / (double)n : 0;
}

static void add_chunks_locked(const mr_record *r, mr_record_totals *t)
{
    const uint64_t n = mri_min_u64(r->chunks, r->chunks_most);
    double samples = 0;
    for (uint64_t i = 0; i < n; i++) {
        const mri_chunk_record *c = &r->chunk[i];
        samples += c->samples;
        t->bytes_per_sample += (double)c->bytes;
        t->read_ms_per_chunk += 1e-6 * (double)c->read_ns;
        t->decode_ms_per_sample += 1e-6 * (double)c->ran_ns;
        t->read_core_ms_per_sample += 1e-6 * (double)c->reader_core_ns;
    }
    t->chunks = n;
    if (n == 0) return;
    t->bytes_per_sample /= samples;
    t->decode_ms_per_sample /= samples;
    t->read_core_ms_per_sample /= samples;
    t->read_ms_per_chunk /= (double)n;
}

void mr_record_totals_read_sized(const mr_record *record, mr_record_totals *out)
{
    mr_record *r = (mr_record *)record; /* its lock */
    mr_record_totals t = {0};
    if (!MRI_IS_OWN(r)) {
        mri_result_give(out, &t, sizeof t);
        return;
    }
    pthread_mutex_lock(&r->lock);
    const double ns = (double)(r->last_end_ns - r->first_end_ns), device = r->compute_ns + r->idle_ns;
    add_chunks_locked(r, &t);
    t.steps = r->steps;
    t.step_ms = mean_step_ms_locked(r);
    t.seconds = 1e-9 * ns;
    t.samples_per_s = ns > 0 ? 1e9 * (double)r->samples / ns : 0;
    t.idle = device > 0 ? r->idle_ns / device : 0;
    for (int i = 0; i < MR_CAUSES; i++) t.causes.total_ns += t.causes.ns[i] = (uint64_t)r->cause_ns[i];
    pthread_mutex_unlock(&r->lock);
    t.limit = mr_limit_name(t.idle, &t.causes);
    mri_result_give(out, &t, sizeof t);
}

/* The newest n of a ring, oldest first. */
static void *newest(const void *ring, size_t each, uint64_t added, uint64_t most, size_t *n)
{
    *n = (size_t)mri_min_u64(added, most);
    char *out = calloc(*n + 1, each);
    for (size_t i = 0; out && i < *n; i++)
        memcpy(out + i * each, (const char *)ring + (added - *n + i) % most * each, each);
    return out;
}

int mri_record_take(mr_record *r, mri_record_data *out)
{
    *out = (mri_record_data){0};
    pthread_mutex_lock(&r->lock);
    out->shape = r->shape;
    out->chunk = newest(r->chunk, sizeof *r->chunk, r->chunks, r->chunks_most, &out->chunks);
    out->copy = newest(r->copy, sizeof *r->copy, r->copies, STEPS_MOST, &out->copies);
    out->step = newest(r->step, sizeof *r->step, r->steps, STEPS_MOST, &out->steps);
    pthread_mutex_unlock(&r->lock);
    if (out->chunk && out->copy && out->step) return MR_OK;
    mri_record_data_free(out);
    return MR_ENOMEM;
}

void mri_record_data_free(mri_record_data *d)
{
    free(d->chunk);
    free(d->copy);
    free(d->step);
    *d = (mri_record_data){0};
}
