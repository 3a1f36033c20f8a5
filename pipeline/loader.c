/* pipeline/loader.c: open, hand out, take back, stop, close. The picture stands in
 * stream/stream.h. */
#include <stdatomic.h>
#include <time.h>
#include <unistd.h>

#include "base/abi.h"
#include "base/floats.h"
#include "formats/source/source.h"
#include "pipeline/loader_private.h"

#define LOOK_NS 1000000u /* how often the scheduler is asked at most: four system calls */

/* ------------------------------------------------------------------------------ open, stop, close */

static int start_stages(mr_loader *l, mr_error *err)
{
    int rc = mri_decode_stage_start(l->stages.decode, err);
    if (rc == MR_OK && l->stages.staging) rc = mri_staging_start(l->stages.staging, err);
    if (rc == MR_OK) rc = mri_read_stage_start(l->stages.read, err);
    if (rc == MR_OK && l->stages.order) rc = mri_order_stage_start(l->stages.order, err);
    return rc;
}

int mr_loader_open(mr_loader **out, const mr_source *src, const mr_loader_config *cfg, mr_error *err)
{
    MRI_DEFAULT_FLOATS;
    MRI_GIVEN(err, out);
    *out = NULL;
    MRI_OWN(err, src);
    mr_loader *l = calloc(1, sizeof *l);
    if (!l) return mr_error_set(err, MR_ENOMEM, "no memory for a loader");
    l->process = mri_process();
    mr_loader_defaults(&l->plan.cfg);
    int rc = mri_settings_take(&l->plan.cfg, sizeof l->plan.cfg, cfg, "loader", err);
    if (rc != MR_OK) {
        free(l);
        return rc;
    }
    if (l->plan.cfg.budget && !mri_budget_is_own(l->plan.cfg.budget)) {
        free(l);
        return mri_error_inherited(err, __func__, "budget");
    }
    l->plan.cfg.decode.struct_size = sizeof l->plan.cfg.decode; /* a member has the size it has */
    l->plan.source = src;
    mri_halt_init(&l->halt);
    const mri_listener listener = {.on_bad = l->plan.cfg.on_bad,
                                   .bad_context = l->plan.cfg.bad_context,
                                   .on_note = l->plan.cfg.on_note,
                                   .note_context = l->plan.cfg.note_context};
    mri_notices_init(&l->notices, &listener);
    mri_bad_samples_init(&l->bad, &l->plan.batches, &l->notices, l->plan.cfg.bad, l->plan.cfg.max_bad);
    rc = mri_loader_plan_make(&l->plan, err);
    if (rc == MR_OK) rc = mri_loader_make(l, err);
    if (rc == MR_OK && l->plan.threads) rc = start_stages(l, err);
    if (rc != MR_OK) {
        mr_loader_close(l);
        return rc;
    }
    mri_notices_tell(&l->notices);
    *out = l;
    return MR_OK;
}

void mr_loader_stop(mr_loader *l)
{
    if (MRI_IS_OWN(l)) mri_halt_stop(&l->halt);
}

/* Is this a thread of the loader, or one that is in its mr_loader_next() or mr_loader_close()? Then a
 * function of the program is running, which the loader waits for. */
static bool is_function_of(const mr_loader *l)
{
    return l->consumer.inside == (uintptr_t)pthread_self() || mri_halt_is_served(&l->halt);
}

static int refuse(const mr_loader *l, const char *call, mr_error *err)
{
    (void)l;
    return mr_error_set(
        err, MR_EINVAL,
        "%s: a function that the loader has called (sampler, operation, fetch, on_bad, on_note) "
        "must not call it: the loader waits for that function",
        call);
}

/* This thread takes a batch, or closes: one at a time. */
static int enter(mr_loader *l, const char *call, mr_error *err)
{
    uintptr_t nobody = 0;
    if (is_function_of(l)) return refuse(l, call, err);
    if (atomic_compare_exchange_strong(&l->consumer.inside, &nobody, (uintptr_t)pthread_self())) return MR_OK;
    return mr_error_set(err, MR_EBUSY, "%s: another thread is taking a batch of this loader: one at a time",
                        call);
}

/* Whoever takes a batch in another thread leaves soon after the stop. */
static void enter_to_close(mr_loader *l)
{
    const struct timespec nap = {.tv_nsec = 1000000};
    while (enter(l, "mr_loader_close", NULL) != MR_OK) nanosleep(&nap, NULL);
}

/* Closing would wait for the function that calls it. Taking the next batch returns the error. */
static void refuse_to_close(mr_loader *l)
{
    mr_error why = MR_ERROR_INIT;
    refuse(l, "mr_loader_close", &why);
    l->consumer.close_refused = true;
    mri_halt_fail(&l->halt, MR_EINVAL, &why);
}

void mr_loader_close(mr_loader *l)
{
    if (!MRI_IS_OWN(l)) return;
    if (is_function_of(l)) {
        refuse_to_close(l);
        return;
    }
    mr_loader_stop(l);
    enter_to_close(l);
    mri_order_stage_join(l->stages.order);
    mri_read_stage_join(l->stages.read);
    mri_decode_stage_join(l->stages.decode);
    mri_staging_join(l->stages.staging);
    mri_staging_destroy(l->stages.staging); /* device work that still uses our memory is over */
    const bool lost = !mri_read_stage_destroy(l->stages.read);
    mri_charges_destroy(l->charges);
    mri_tuner_destroy(l->tuner);
    mri_decode_stage_destroy(l->stages.decode);
    mri_order_stage_destroy(l->stages.order);
    mri_ring_destroy(l->ring);
    mri_chunks_fini(&l->chunks, lost);
    if (!lost) mri_resident_destroy(l->kept.resident);
    mri_shelf_close(l->shelf, &l->slots);
    free(l->host_parts);
    if (l->consumer.thread) mri_cpu_time_close(&l->consumer.cpu);
    mri_points_destroy(l->kept.points);
    mri_cache_close(l->kept.cache); /* readers are gone: nobody reads its file */
    if (l->budget.reserved && l->plan.cfg.budget)
        mri_budget_return(l->plan.cfg.budget, l->plan.memory.reserved);
    mr_budget_destroy(l->budget.own);
    mri_loader_plan_drop(&l->plan);
    mri_bad_samples_fini(&l->bad);
    mri_notices_tell(&l->notices);
    mri_notices_fini(&l->notices);
    mri_halt_fini(&l->halt);
    free(l);
}

const mr_loader_info *mr_loader_info_of(const mr_loader *l) { return l ? &l->plan.info : NULL; }

const mr_source *mr_loader_source(const mr_loader *l) { return l ? l->plan.source : NULL; }

/* ------------------------------------------------------------------------------ next, release */

/* Prefetch off: the chunks of the next batch, one after the other, in the caller's thread, until the time is
 * over. At least one: who only polls gets on, too. */
static int fill_inline(mr_loader *l, uint64_t until_ns, mr_error *err)
{
    const uint64_t batch = mri_ring_next(l->ring);
    mri_serial *s = &l->consumer.serial;
    int rc = MR_OK;
    if (!s->begun) {
        *s = (mri_serial){.begun = true, .all = {.asked_ns = mri_now_ns()}};
        rc = mri_read_resident_inline(l->stages.read, err);
        s->read_ns = mri_now_ns() - s->all.asked_ns;
    }
    for (bool first = true; rc == MR_OK && !mri_ring_is_full(l->ring, batch); first = false) {
        if (!first && mri_now_ns() >= until_ns) return MR_EAGAIN;
        bool ended;
        mri_stage_counter unused = {0}; /* nothing here waits for another thread */
        mri_chunk *c = mri_ring_claim(l->ring, 0, false, &unused, &ended);
        if (!c) return MR_ECANCELED; /* the slot is free and chunks are at hand: only a stop is left */
        const uint64_t start = mri_now_ns();
        mri_work work = {0};
        rc = mri_read_chunk_inline(l->stages.read, c, err);
        s->read_ns += mri_now_ns() - start;
        if (rc == MR_OK) rc = mri_decode_chunk_inline(l->stages.decode, c, &work, err);
        mri_work_add(&s->all.work, &work);
    }
    if (rc == MR_OK)
        mri_ring_mark_serial(l->ring, batch, &s->all, s->read_ns,
                             l->stages.staging ? mri_staging_seen_late(l->stages.staging) : 0);
    s->begun = false;
    return rc;
}

static void count_wait(mr_loader *l, uint64_t since_ns)
{
    const uint64_t waited = mri_now_ns() - since_ns;
    mri_count(&l->delivered.wait_ns, waited);
    l->consumer.waited_ns += waited;
}

/* Prefetch off: everything happens here, one thing after the other. What goes wrong is said by the wait. */
static int prepare_inline(mr_loader *l, uint64_t timeout_ns)
{
    const uint64_t start = mri_now_ns();
    mr_error failed = MR_ERROR_INIT;
    if (mri_ring_is_ready(l->ring)) return MR_OK;
    int rc = fill_inline(l, mri_plus(start, timeout_ns), &failed);
    if (rc == MR_OK && l->stages.staging)
        rc = mri_stage_inline(l->stages.staging, mri_ring_next(l->ring), &failed);
    if (rc != MR_OK && rc != MR_EAGAIN) mri_halt_fail(&l->halt, rc, &failed);
    count_wait(l, start);
    return rc == MR_EAGAIN ? rc : MR_OK;
}

static void watch_consumer(mr_loader *l)
{
    const pid_t thread = gettid();
    if (thread == l->consumer.thread) {
        mri_cpu_time_skip(&l->consumer.cpu);
        return;
    }
    if (l->consumer.thread) mri_cpu_time_close(&l->consumer.cpu);
    mri_cpu_time_open(&l->consumer.cpu);
    l->consumer.thread = thread;
}

/* How much of a wait the consumer could have run in; of one that was not looked at as much as of the last
 * one that was. */
static uint64_t late_in_wait(mr_loader *l, uint64_t waited_ns, bool looks)
{
    uint64_t ran = 0, late = 0;
    if (!looks) return (uint64_t)(l->consumer.late_part * (double)waited_ns);
    mri_cpu_time_look(&l->consumer.cpu, waited_ns, &ran, &late);
    l->consumer.late_part = waited_ns ? (double)late / (double)waited_ns : 0;
    return late;
}

/* MR_OK when the next batch is there; the code of whatever ended the wait otherwise. */
static int wait_for_batch(mr_loader *l, uint64_t timeout_ns, mr_error *err)
{
    const bool waits = !mri_ring_is_ready(l->ring) && timeout_ns > 0;
    const uint64_t start = mri_now_ns();
    const bool looks = waits && start - l->consumer.looked_ns >= LOOK_NS;
    if (looks) watch_consumer(l);
    if (looks) l->consumer.looked_ns = start;
    const int rc = mri_ring_wait(l->ring, timeout_ns);
    if (waits) l->consumer.late_ns += late_in_wait(l, mri_now_ns() - start, looks);
    count_wait(l, start);
    return rc == MR_ECANCELED ? mri_halt_reason(&l->halt, err) : rc;
}

static const mr_part *host_parts(mr_loader *l, const mri_slot *slot)
{
    mr_part *parts = l->host_parts + (size_t)(slot - l->slots.slot) * l->plan.info.parts;
    for (uint32_t r = 0; r < l->plan.info.parts; r++) {
        mr_part *p = &parts[r];
        mri_batches_own_part(&l->plan.batches, slot->batch, r, &p->first, &p->count);
        const uint32_t first = p->first - slot->first;
        p->form = MR_PART_PIXELS;
        p->pixels = slot->pixels ? slot->pixels + first * l->plan.layout.sample_bytes : NULL;
        p->labels = slot->labels + first;
        p->affine = slot->affine ? slot->affine + 2 * (size_t)first : NULL;
        p->labels2 = slot->labels2 ? slot->labels2 + first : NULL;
        p->share2 = slot->share2 ? slot->share2 + first : NULL;
        mri_fields_show(&l->plan.fields, slot->rows, first, p->field);
    }
    return parts;
}

static void describe(mr_loader *l, const mri_ring_batch *b, mr_batch *out)
{
    *out = (mr_batch){.global_step = b->place, .part_count = l->plan.info.parts, .counted = b->counted};
    mri_batches_place(&l->plan.batches, b->batch, &out->epoch, &out->step);
    out->last = out->step + 1 == l->plan.info.steps_per_epoch;
    out->all_count = mri_batches_count(&l->plan.batches, b->batch);
    mri_batches_own(&l->plan.batches, b->batch, &out->first, &out->count);
    out->parts = l->stages.staging ? mri_staging_parts(l->stages.staging, b->batch) : host_parts(l, b->slot);
    if (!l->stages.staging || l->plan.cfg.keep_host) {
        out->pixels = b->slot->pixels;
        out->labels = b->slot->labels;
        out->affine = b->slot->affine;
        out->labels2 = b->slot->labels2;
        out->share2 = b->slot->share2;
        out->ids = b->slot->ids;
        mri_fields_show(&l->plan.fields, b->slot->rows, 0, out->field);
    }
    for (uint32_t k = 0; k < l->plan.fields.count; k++) out->field[k].width = out->parts[0].field[k].width;
}

static int take_next(mr_loader *l, mr_batch *out, uint64_t timeout_ns, mr_error *err)
{
    uint32_t room;
    const int may = mri_ring_may_take(l->ring, &room);
    if (may == MR_EEND) return mr_error_set(err, MR_EEND, "all epochs are delivered");
    if (may != MR_OK) /* perhaps no other thread will give one back: waiting would never end */
        return mr_error_set(
            err, MR_EBUSY,
            "release a batch before asking for the next: the loader has room for %u, and all are held", room);
    int rc = l->plan.threads ? MR_OK : prepare_inline(l, timeout_ns);
    if (rc == MR_OK) rc = wait_for_batch(l, timeout_ns, err);
    if (rc != MR_OK) return rc;
    mri_ring_batch taken;
    mr_batch batch;
    mri_ring_take(l->ring, &taken);
    mri_charge_consumer(l->charges, taken.batch, l->consumer.waited_ns, l->consumer.late_ns);
    l->consumer.waited_ns = l->consumer.late_ns = 0;
    describe(l, &taken, &batch);
    mri_result_give(out, &batch, sizeof batch);
    mri_count(&l->delivered.batches, 1);
    mri_count(&l->delivered.samples, batch.count);
    mri_tune_batch(l);
    return MR_OK;
}

int mr_loader_next_sized(mr_loader *l, mr_batch *out, uint64_t timeout_ns, mr_error *err)
{
    MRI_DEFAULT_FLOATS;
    MRI_OWN(err, l);
    MRI_GIVEN(err, out);
    if (mri_result_check(out, err) != MR_OK) return MR_EINVAL;
    int rc = enter(l, "mr_loader_next", err);
    if (rc != MR_OK) return rc;
    rc = take_next(l, out, timeout_ns, err);
    mri_notices_tell(&l->notices); /* of this batch, too */
    if (l->consumer.close_refused) rc = mri_halt_reason(&l->halt, err);
    l->consumer.inside = 0;
    return rc;
}

/* Is there a batch of this epoch and step? */
static int check_place(const mr_loader *l, const char *call, uint64_t epoch, uint64_t step, mr_error *err)
{
    const uint64_t per_epoch = l->plan.info.steps_per_epoch, epochs = l->plan.batches.end_batch / per_epoch;
    if (epoch < epochs && step < per_epoch) return MR_OK;
    return mr_error_set(err, MR_EINVAL,
                        "%s: epoch %llu, step %llu: expected an epoch below %llu and a step below %llu", call,
                        (unsigned long long)epoch, (unsigned long long)step, (unsigned long long)epochs,
                        (unsigned long long)per_epoch);
}

static int seek(mr_loader *l, uint64_t epoch, uint64_t step, mr_error *err)
{
    const mri_loader_plan *plan = &l->plan;
    if (plan->threads || l->stages.staging)
        return mr_error_set(
            err, MR_EUNSUPPORTED,
            "mr_loader_seek: this loader has %s; expected prefetch 0 and no devices: open another loader "
            "with start_epoch and start_step",
            plan->threads ? "threads" : "devices");
    const int rc = check_place(l, "mr_loader_seek", epoch, step, err);
    if (rc != MR_OK) return rc;
    if (mri_halt_is_over(&l->halt)) return mri_halt_reason(&l->halt, err);
    if (mri_ring_seek(l->ring, epoch * plan->info.steps_per_epoch + step) == MR_OK) return MR_OK;
    return mr_error_set(err, MR_EBUSY,
                        "mr_loader_seek: a batch is in use or unfinished: take it and release it first");
}

int mr_loader_seek(mr_loader *l, uint64_t epoch, uint64_t step, mr_error *err)
{
    MRI_OWN(err, l);
    int rc = enter(l, "mr_loader_seek", err);
    if (rc != MR_OK) return rc;
    rc = seek(l, epoch, step, err);
    l->consumer.inside = 0;
    return rc;
}

int mr_loader_samples(mr_loader *l, uint64_t epoch, uint64_t step, uint64_t *out, uint32_t room,
                      uint32_t *first, uint32_t *count, mr_error *err)
{
    MRI_OWN(err, l);
    MRI_GIVEN(err, out);
    MRI_GIVEN(err, first);
    MRI_GIVEN(err, count);
    const mri_batches *b = &l->plan.batches;
    int rc = check_place(l, "mr_loader_samples", epoch, step, err);
    if (rc != MR_OK) return rc;
    const uint64_t batch = epoch * b->steps_per_epoch + step;
    uint32_t from, number;
    mri_batches_own(b, batch, &from, &number);
    if (number > room)
        return mr_error_set(err, MR_EINVAL, "mr_loader_samples: room %u: expected at least %u", room, number);
    rc = mri_batches_samples(b, batch, from, number, out, err);
    if (rc != MR_OK) return rc;
    for (uint32_t k = 0; k < number; k++)
        if (mri_batches_is_padding(b, step, from + k)) out[k] = MR_NOWHERE;
    *first = from;
    *count = number;
    return MR_OK;
}

int mr_loader_release(mr_loader *l, mr_batch *batch, mr_stream *const *streams)
{
    mr_error failed = MR_ERROR_INIT;
    MRI_OWN(NULL, l);
    MRI_GIVEN(NULL, batch);
    if (is_function_of(l) || (l->stages.staging && !streams)) return MR_EINVAL;
    if (!mri_ring_may_release(l->ring, batch->global_step)) return MR_EINVAL;
    int rc = MR_OK;
    /* prefetch off: nothing overlaps, so the next read starts when this step's work is over */
    if (l->stages.staging)
        rc = mri_staging_mark_consumed(l->stages.staging, batch->global_step, streams, !l->plan.threads,
                                       &failed);
    if (rc != MR_OK) mri_halt_fail(&l->halt, rc, &failed);
    mri_ring_release(l->ring);
    return rc;
}

/* ------------------------------------------------------------------------------ keep, drop */

struct mr_kept {
    uint32_t process; /* that keeps it (base/handle.h) */
    mri_shelf *shelf;
    mri_slot *slot;
};

int mr_loader_keep(mr_loader *l, const mr_batch *batch, mr_kept **out, mr_error *err)
{
    MRI_GIVEN(err, out);
    *out = NULL;
    MRI_OWN(err, l);
    MRI_GIVEN(err, batch);
    if (is_function_of(l)) return refuse(l, "mr_loader_keep", err);
    if (!l->shelf)
        return mr_error_set(err, MR_EINVAL, "nothing can be kept of this loader: mr_loader_config.keep is 0");
    if (!mri_ring_may_release(l->ring, batch->global_step))
        return mr_error_set(err, MR_EINVAL,
                            "batches are kept and released in the order in which they were taken");
    mr_kept *k = malloc(sizeof *k);
    if (!k) return mr_error_set(err, MR_ENOMEM, "no memory to keep a batch");
    mri_slot *instead = mri_shelf_take(l->shelf);
    if (!instead) {
        free(k);
        return mr_error_set(err, MR_ELIMIT, "%u batches are kept, the most there is room for (keep)",
                            l->plan.cfg.keep);
    }
    k->process = l->process;
    k->shelf = l->shelf;
    k->slot = mri_ring_release_kept(l->ring, instead);
    *out = k;
    return MR_OK;
}

void mr_kept_drop(mr_kept *k)
{
    if (!MRI_IS_OWN(k)) return;
    mri_shelf_return(k->shelf, k->slot);
    free(k);
}

uint32_t mr_loader_kept(const mr_loader *l)
{
    return MRI_IS_OWN(l) && l->shelf ? mri_shelf_kept(l->shelf) : 0;
}
