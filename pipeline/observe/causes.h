/* pipeline/observe/causes.h: the times of a batch's steps, and from them the causes of a device's wait for
 * it. Private.
 *
 * A batch is complete when its last chunk is. So a wait for the batch is a wait for that chunk, and tracing
 * back from the device gives the cause at any moment:
 *
 *     asked   room      claimed   read        taken       decoded full   came    copy starts copy ends
 *   ────┼───────┼─────────┼─────────┼────────────┼────────────┼─────┼──────┼───────────┼──────────┼─────
 *   read│ room  │the work │  read   │the worker's│ this work, │rest │ copy │an earlier │   copy   │ host
 *       │       │before   │         │work before │ as it went │     │      │copy       │          │
 *
 * That is so for a loader that was ahead, waited for room, and is late with this batch: every stretch counts.
 * A loader that is never ahead works on many batches at a time, and the time of a batch in a stage that had
 * waited for it delays nothing: if it were shorter, the next batch would come no sooner. The whole interval
 * is then charged to the first stage, tracing back, for which the batch waited and which never rests: the
 * link, else the workers, else the reads; where all of them rest, every stretch counts again. The workers'
 * part is divided as all their work since the batch before went, not as its last chunk did; a lock between
 * two pieces of work is no rest.
 *
 * Work splits into what ran, what waited for memory, what could have run and did not, and the rest: locks and
 * page faults. Every nanosecond of an interval lies in one stretch, so causes add up to the whole (I18). */
#ifndef MRI_CAUSES_H
#define MRI_CAUSES_H

#include "base/util.h"
#include "millrace/pipeline.h"

/* A stretch of a thread's work. All but the first five are parts of it. */
typedef struct mri_work {
    uint64_t begun_ns, ended_ns;
    uint64_t rested_ns;  /* before it began, since the one before it ended */
    uint64_t held_ns;    /* of the rest: not for want of work, but for locks, or late */
    uint64_t late_ns;    /* of that, it could have run already */
    uint64_t ran_ns;     /* on a core */
    uint64_t large_ns;   /* of that, for samples that took far more than others */
    uint64_t memory_ns;  /* waiting for the memory of large pictures */
    uint64_t delayed_ns; /* could have run */
} mri_work;

/* Adds another stretch to a sum; only its length counts, so the sum begins at 0. */
static inline void mri_work_add(mri_work *sum, const mri_work *one)
{
    sum->ended_ns += one->ended_ns - one->begun_ns;
    sum->rested_ns += one->rested_ns;
    sum->held_ns += one->held_ns;
    sum->late_ns += one->late_ns;
    sum->ran_ns += one->ran_ns;
    sum->large_ns += one->large_ns;
    sum->memory_ns += one->memory_ns;
    sum->delayed_ns += one->delayed_ns;
}

/* How a chunk came to its place; the thread that has the chunk writes it. */
typedef struct mri_chunk_times {
    uint64_t asked_ns;   /* a reader had time for it; 0: no reader is needed */
    uint64_t room_ns;    /* and a slot had room for it; where no buffer had to be waited for: claimed_ns */
    uint64_t claimed_ns; /* and a buffer was free: workers had done with a chunk that was read before it */
    uint64_t read_ns;    /* its bytes are there */
    double delayed_part; /* of the reader's time for it, 0..1: the reader could have run */
    uint64_t awaited_ns; /* when it was taken, another worker had not come that had been woken then; 0: none
                          */
    uint64_t sought_ns;  /* before it was taken, so long had the worker had nothing to do */
    uint64_t closing_ns; /* from the end of the work until its slot was closed: the worker could have run */
    mri_work before;     /* the previous work of the worker that took it */
    mri_work work;
} mri_chunk_times;

/* How much of ns, in which a chunk waited for a worker that had nothing to do, somebody was kept from
 * running: the worker that took it, or one that was woken before. */
uint64_t mri_chunk_late_ns(const mri_chunk_times *c, uint64_t ns);

typedef struct mri_copy_times {
    uint64_t start_ns, end_ns; /* by the events around it; 0: not known (yet) */
} mri_copy_times;

/* How much of the last few batches' time a pool of threads was at work, or held. One look at a chunk cannot
 * tell: bytes that come in bursts find busy workers in every burst, and workers that rest between them. */
typedef struct mri_load {
    uint64_t marked_ns;
    double worked_ns, passed_ns; /* of one thread; older batches count less */
} mri_load;

/* A batch was full at now_ns, and until then, since the one before, `threads` of them worked so long
 * together. */
void mri_load_mark(mri_load *l, uint64_t worked_ns, uint32_t threads, uint64_t now_ns);

/* How long at least one of some stretches lasted that overlap; they are added in the order of their ends. */
typedef struct mri_cover {
    uint64_t ns, until_ns; /* until: what has been counted */
} mri_cover;

static inline void mri_cover_add(mri_cover *c, uint64_t begun_ns, uint64_t ended_ns)
{
    const uint64_t since = mri_max_u64(begun_ns, c->until_ns);
    if (ended_ns > since) c->ns += ended_ns - since;
    c->until_ns = mri_max_u64(c->until_ns, ended_ns);
}

typedef struct mri_batch_times {
    uint64_t batch;          /* MR_NOWHERE: nothing is known */
    bool serial;             /* prefetch off: made by who waits for it, one thing after the other */
    mri_chunk_times last;    /* of the chunk that was in place last; serial: work is of all of them together,
                                read    from asked to read + read_serial */
    uint64_t serial_read_ns; /* serial: reading, of all chunks */
    uint64_t full_ns;        /* its slot was closed */
    mri_work round;          /* of all chunks, of any batch, that came to their places since the batch before:
                                mri_work_add() */
    mri_load load;           /* of the workers until then */
    mri_load reading;        /* how much of that time some chunk's bytes were awaited */
    uint64_t before_ns;      /* the copies of the batch before were over; 0: not known */
    uint64_t before_late_ns; /* staging saw that late, and of that time it could have run; serial: so late was
                                seen that the devices had done with the batch before */
    uint64_t came_ns;        /* staging had done with the batch before; 0: not staged */
    uint64_t noticed_ns;     /* and knew that this one is full */
    uint64_t room_ns;        /* and the devices had room for it */
    uint64_t late_ns;        /* of these, staging could have run */
    uint64_t staged_ns;      /* its copies were queued */
    mri_copy_times copy;     /* of the part that is asked for */
} mri_batch_times;

/* Charge [from_ns, to_ns) of somebody who had nothing to do until the batch was there. throttled: the part of
 * delays, 0..1, that is the cgroup's doing. Adds exactly to_ns - from_ns to add. */
void mri_causes_charge(const mri_batch_times *t, double throttled, uint64_t from_ns, uint64_t to_ns,
                       mr_causes *add);

#endif
