/* pipeline/loader_private.h: the loader: the stages of pipeline/stream/stream.h wired together, and what they
 * share that is fixed. Private to loader*.c.
 *
 * Prefetch off is the same code with no threads: mr_loader_next() claims, reads, decodes and copies chunk by
 * chunk. */
#ifndef MRI_LOADER_PRIVATE_H
#define MRI_LOADER_PRIVATE_H

#include "pipeline/observe/record.h"
#include "pipeline/stream/shelf.h"
#include "pipeline/stream/stream.h"
#include "pipeline/tune/tuner.h"

/* Upper bounds of the loader's memory (I10) in bytes, and the numbers that follow from them. */
typedef struct mri_memory_plan {
    mri_run_shape shape;
    uint32_t chunk_samples, chunk_count;
    size_t chunk_room;
    uint64_t max_pixels; /* the largest picture that one worker can decode */
    mri_extremes share;  /* larger ones wait for room in the pool; pixels 0: every worker has room for any */
    /* resident 0: samples are read one by one; scratch: of the workers; all: reserved and pool */
    uint64_t slots, reads, resident, cache, points, order, workers, scratch, reserved, pool, all;
} mri_memory_plan;

/* Everything that is known before memory is taken; fixed from then on. Written by loader_plan.c; the settings
 * that it begins with are loader.c's. */
typedef struct mri_loader_plan {
    mr_loader_config cfg;
    const mr_source *source;
    mr_loader_info info;
    mr_augment *augment;
    const mri_cache_form *cache_form; /* NULL: the source has no pictures */
    mri_fields fields;
    mri_batches batches;
    mri_slot_layout layout;
    mr_io io;
    char io_note[160];
    bool threads;           /* prefetch on */
    bool cache_waits;       /* cfg.cache is what tuning may take into use */
    bool no_room_for_cache; /* one that fits was asked for, and is OFF now */
    char shrunk[192];       /* which settings became less, and from what; "": none */
    uint32_t slot_count, device_slots;
    mri_tuner_config tune; /* with cfg.tune; cfg has the most of each then */
    mri_memory_plan memory;
} mri_loader_plan;

/* Prefetch off: the progress on the next batch. */
typedef struct mri_serial {
    bool begun;
    mri_chunk_times all;
    uint64_t read_ns;
} mri_serial;

/* The consumer of batches: how long it waited for the next batch, and its current activity. */
typedef struct mri_consumer {
    uint64_t waited_ns, late_ns; /* late: of that, it could have run */
    uint64_t looked_ns;          /* when the scheduler was asked last */
    double late_part;            /* of the wait it was asked about */
    mri_cpu_time cpu;            /* of the thread that waited last */
    pid_t thread;                /* that one; 0: none yet */
    mri_serial serial;
    /* The thread that takes a batch, or closes; none: 0. It and its loader's threads may be in a function of
     * the program, and forbidden calls from it are refused */
    _Atomic uintptr_t inside;
    _Atomic bool close_refused;
} mri_consumer;

/* Memory that loaders share; fixed after open, until close. */
typedef struct mri_loader_budget {
    mr_budget *own; /* NULL: the caller's, or nothing waits for memory */
    bool reserved;  /* of the caller's */
} mri_loader_budget;

/* Stores of samples and of their entry points. The pointers are fixed after open; the stores' headers name
 * their locks. */
typedef struct mri_loader_kept {
    mri_resident *resident;
    mri_points *points; /* or NULL */
    mri_cache *cache;   /* NULL: none */
} mri_loader_kept;

/* Stages with threads, in the order in which a batch passes them. The pointers are fixed after open; the
 * stages' headers name their locks. */
typedef struct mri_loader_stages {
    mri_order_stage *order; /* NULL: the order is no function of the caller's, or there are no threads */
    mri_read_stage *read;
    mri_decode_stage *decode;
    mri_staging *staging; /* NULL: batches stay in host memory */
} mri_loader_stages;

/* Atomic: the consumer writes, any thread reads. */
typedef struct mri_delivered {
    uint64_t wait_ns, batches, samples;
} mri_delivered;

struct mr_loader {
    uint32_t process; /* that opened it (base/handle.h) */
    mri_loader_plan plan;
    mri_place_config place; /* fixed once the stages are made, like the locator */
    mri_locator locator;

    mri_loader_budget budget;
    mri_halt halt;
    mri_notices notices;
    mri_bad_samples bad;
    mri_loader_kept kept;
    mri_slots slots;
    mri_shelf *shelf; /* NULL: nothing can be kept */
    mri_chunks chunks;
    mri_ring *ring;
    mri_loader_stages stages;
    mri_charges *charges;
    mri_tuner *tuner; /* NULL: settings stay. The consumer's */

    mr_part *host_parts; /* slot_count sets of info.parts, without devices */
    mri_delivered delivered;
    mri_consumer consumer;
};

/* ---- loader_settings.c ---- */
/* MR_EINVAL: a setting is out of its range; err names it. */
int mri_loader_check(const mr_loader_config *cfg, mr_error *err);

/* ---- loader_plan.c ---- */
/* From cfg and source, which are set. On failure mri_loader_plan_drop() is still to be called. */
int mri_loader_plan_make(mri_loader_plan *plan, mr_error *err);
void mri_loader_plan_drop(mri_loader_plan *plan); /* accepts one with settings only */

/* ---- loader_tune.c ---- */
/* Where to begin and how far to go, once threads are planned, into plan->tune. times: 1 for the
 * widest range, larger for smaller ones. False: the range is just the initial setting. */
bool mri_tune_plan(mri_loader_plan *plan, uint32_t times);
int mri_tune_start(mr_loader *l, mr_error *err);
void mri_tune_batch(mr_loader *l); /* one was taken */

/* ---- loader_open.c ---- */
/* Everything before the first thread. On failure mr_loader_close() undoes it. */
int mri_loader_make(mr_loader *l, mr_error *err);

/* ---- loader_budget.c ---- */
uint64_t mri_budget_of(const mri_loader_plan *plan); /* bytes that it may come to hold */
/* MR_ELIMIT when the loader's upper bound is over the budget. */
int mri_plan_memory(const mri_loader_plan *plan, mri_memory_plan *out, mr_error *err);

#endif
