/* A batch's wait is split by the work on that batch: every stretch goes to its own cause, and the causes add
 * up to exactly the wait (I18); then loaders with one bottleneck. */
#include <time.h>

#include "base/cpu_time.h"
#include "pipeline/observe/causes.h"
#include "pipeline/observe/counter.h"
#include "pipeline/stream/place.h"
#include "pipeline/stream/ring.h"
#include "tests/pipeline/sets.h"

static uint64_t slow_read_ns; /* set before any thread starts */

ssize_t __real_pread(int fd, void *data, size_t bytes, off_t offset);
ssize_t __wrap_pread(int fd, void *data, size_t bytes, off_t offset);

static void pass(uint64_t ns)
{
    const struct timespec t = {0, (long)ns};
    nanosleep(&t, NULL);
}

ssize_t __wrap_pread(int fd, void *data, size_t bytes, off_t offset)
{
    if (slow_read_ns && bytes > 128) pass(slow_read_ns); /* smaller ones ask the scheduler */
    return __real_pread(fd, data, bytes, offset);
}

#define BLOCKED_NS 200000000
static uint64_t blocked_sample = MR_NOWHERE; /* its worker does nothing for so long; set before any starts */

int __real_mri_place_from_chunk(mri_placer *p, const mri_chunk *c, uint32_t k, uint64_t epoch, mr_error *err);
int __wrap_mri_place_from_chunk(mri_placer *p, const mri_chunk *c, uint32_t k, uint64_t epoch, mr_error *err);

int __wrap_mri_place_from_chunk(mri_placer *p, const mri_chunk *c, uint32_t k, uint64_t epoch, mr_error *err)
{
    if (c->samples[k].sample == blocked_sample) pass(BLOCKED_NS);
    return __real_mri_place_from_chunk(p, c, k, epoch, err);
}

static uint64_t lock_ns; /* a worker needs so long to take a chunk; set before any starts */

mri_chunk *__real_mri_ring_take_chunk(mri_ring *r, uint32_t worker, mri_stage_counter *waits, bool *located);
mri_chunk *__wrap_mri_ring_take_chunk(mri_ring *r, uint32_t worker, mri_stage_counter *waits, bool *located);

mri_chunk *__wrap_mri_ring_take_chunk(mri_ring *r, uint32_t worker, mri_stage_counter *waits, bool *located)
{
    if (lock_ns) pass(lock_ns);
    return __real_mri_ring_take_chunk(r, worker, waits, located);
}

#define ROOM_NS 50000 /* long enough to be a wait */
#define AT(ns)  (1000000 + (ns))

/* Work of 100: 10 for memory, 20 delayed, 60 on a core (30 of them for large samples), 10 for locks. */
static mri_work work_at(uint64_t begun)
{
    return (mri_work){.begun_ns = AT(begun),
                      .ended_ns = AT(begun + 100),
                      .ran_ns = 60,
                      .large_ns = 30,
                      .memory_ns = 10,
                      .delayed_ns = 20};
}

/* Two chunks of such work, and 50 between them, 20 of them late. */
static mri_work round_of_two(void)
{
    mri_work sum = {0};
    for (uint64_t i = 0; i < 2; i++) {
        mri_work one = work_at(100 + 150 * i);
        one.rested_ns = one.held_ns = 50 * i, one.late_ns = 20 * i;
        mri_work_add(&sum, &one);
    }
    return sum;
}

static mri_batch_times staged_batch(void)
{
    mri_batch_times t = {.batch = 3,
                         .last = {.asked_ns = AT(1100) - ROOM_NS,
                                  .room_ns = AT(1100),
                                  .claimed_ns = AT(1100),
                                  .read_ns = AT(1300),
                                  .before = work_at(1250),
                                  .work = work_at(1400)},
                         .full_ns = AT(1520),
                         .came_ns = AT(1500),
                         .noticed_ns = AT(1550),
                         .room_ns = AT(1560),
                         .staged_ns = AT(1570),
                         .late_ns = 10,
                         .copy = {AT(1600), AT(1700)}};
    t.last.work.late_ns = 20;
    return t;
}

static uint64_t of(const mri_batch_times *t, int64_t from, int64_t to, mr_cause cause)
{
    mr_causes c = {0};
    mri_causes_charge(t, 0, AT(from), AT(to), &c);
    return c.ns[cause];
}

static void every_stretch_has_its_cause(void **state)
{
    (void)state;
    const mri_batch_times t = staged_batch();
    MRT_EQ(of(&t, 1700, 1750, MR_CAUSE_HOST), 50);
    MRT_EQ(of(&t, 1600, 1700, MR_CAUSE_COPY), 100);
    MRT_EQ(of(&t, 1560, 1600, MR_CAUSE_COPY), 40); /* after the batch before */
    MRT_EQ(of(&t, 1550, 1560, MR_CAUSE_HOST), 10);
    MRT_EQ(of(&t, 1520, 1550, MR_CAUSE_CORES), 10);
    MRT_EQ(of(&t, 1520, 1550, MR_CAUSE_BLOCKED), 20);
    MRT_EQ(of(&t, 1500, 1520, MR_CAUSE_BLOCKED), 20);
    MRT_EQ(of(&t, 1400, 1500, MR_CAUSE_MEMORY), 10);
    MRT_EQ(of(&t, 1400, 1500, MR_CAUSE_CORES), 20);
    MRT_EQ(of(&t, 1400, 1500, MR_CAUSE_LARGE), 30);
    MRT_EQ(of(&t, 1400, 1500, MR_CAUSE_DECODE), 30);
    MRT_EQ(of(&t, 1400, 1500, MR_CAUSE_BLOCKED), 10);
    MRT_EQ(of(&t, 1350, 1400, MR_CAUSE_CORES), 20); /* the worker was free, and was run late */
    MRT_EQ(of(&t, 1350, 1400, MR_CAUSE_BLOCKED), 30);
    MRT_EQ(of(&t, 1300, 1350, MR_CAUSE_DECODE), 15); /* it was at the chunk before */
    MRT_EQ(of(&t, 1100, 1300, MR_CAUSE_READ), 200);
    MRT_EQ(of(&t, 1000, 1100, MR_CAUSE_ROOM), 100);
    MRT_EQ(of(&t, 1000 - ROOM_NS, 1100 - ROOM_NS, MR_CAUSE_READ), 100);
}

/* It had room, and waited for a buffer: workers that do not rest had them all, else storage did. */
static void a_wait_for_a_buffer(void **state)
{
    (void)state;
    mri_batch_times t = staged_batch();
    t.round = round_of_two();
    t.last.room_ns = AT(1000);
    t.last.asked_ns = AT(1000) - ROOM_NS;
    t.last.before = work_at(1150);
    MRT_EQ(of(&t, 1000, 1100, MR_CAUSE_READ), 100);
    MRT_EQ(of(&t, 900, 1000, MR_CAUSE_ROOM), 100);
    t.last.read_ns = AT(1200); /* before the worker had done with the one before */
    MRT_EQ(of(&t, 1000, 1100, MR_CAUSE_READ), 0);
    MRT_EQ(of(&t, 1000, 1100, MR_CAUSE_DECODE), 24); /* of 250: two works of 100 and 50 of rest */
    MRT_EQ(of(&t, 900, 1000, MR_CAUSE_ROOM), 100);
}

/* The reader did not wait: one stage has the whole interval, except while the host had the batch. */
static void a_loader_that_is_behind(void **state)
{
    (void)state;
    mri_batch_times t = staged_batch();
    t.last.asked_ns = t.last.room_ns = t.last.claimed_ns = AT(1100);
    t.last.before = work_at(1250); /* the chunk waited for its worker: it, too, is in the round */
    t.round = round_of_two();
    MRT_EQ(of(&t, 1500, 1700, MR_CAUSE_COPY), 0);
    MRT_EQ(of(&t, 1500, 1750, MR_CAUSE_HOST), 50);
    MRT_EQ(of(&t, 1450, 1700, MR_CAUSE_DECODE), 60);
    MRT_EQ(of(&t, 1450, 1700, MR_CAUSE_LARGE), 60);
    MRT_EQ(of(&t, 1450, 1700, MR_CAUSE_CORES), 60); /* 20 of each work, 20 of being woken */
    MRT_EQ(of(&t, 1450, 1700, MR_CAUSE_MEMORY), 20);
    MRT_EQ(of(&t, 1450, 1700, MR_CAUSE_BLOCKED), 20 + 30);
    t.last.asked_ns = AT(1100) - ROOM_NS; /* a wait for a buffer does not make it one that was ahead */
    t.last.room_ns = t.last.asked_ns;
    MRT_EQ(of(&t, 1450, 1700, MR_CAUSE_DECODE), 60);
    MRT_EQ(of(&t, 1450, 1700, MR_CAUSE_READ), 0);
    MRT_EQ(of(&t, 1450, 1700, MR_CAUSE_ROOM), 0);
    t.round.ended_ns += 750; /* one of many chunks was blocked for that long, and another came last */
    MRT_EQ(of(&t, 1450, 1700, MR_CAUSE_BLOCKED), 200);
    t.round = (mri_work){0}; /* another batch was full in the same moment, and has them */
    MRT_EQ(of(&t, 1450, 1700, MR_CAUSE_LARGE), 75);
    t.round = round_of_two();
    t.last.before.rested_ns = 300; /* the worker mostly rests: two chunks came at once */
    MRT_EQ(of(&t, 1450, 1700, MR_CAUSE_READ), 250);
    t.last.delayed_part = 0.4; /* and the reader was kept from running */
    MRT_EQ(of(&t, 1450, 1700, MR_CAUSE_READ), 150);
    MRT_EQ(of(&t, 1450, 1700, MR_CAUSE_CORES), 100);
    t.last.delayed_part = 0;
    t.last.before.rested_ns = 0;
    t.load = (mri_load){.worked_ns = 200, .passed_ns = 1000}; /* many came at once, none before */
    MRT_EQ(of(&t, 1450, 1700, MR_CAUSE_READ), 250);
    t.load.worked_ns = 900;
    MRT_EQ(of(&t, 1450, 1700, MR_CAUSE_READ), 0);
    t.last.read_ns = AT(1360); /* the worker waited for it */
    MRT_EQ(of(&t, 1450, 1700, MR_CAUSE_READ), 250);
    t.came_ns = AT(1540); /* it waited for staging */
    MRT_EQ(of(&t, 1450, 1700, MR_CAUSE_COPY), 250);
    t.came_ns = t.noticed_ns = t.room_ns = t.staged_ns = 0;
    t.copy = (mri_copy_times){0};
    MRT_EQ(of(&t, 1450, 1600, MR_CAUSE_HOST), 80);
    MRT_EQ(of(&t, 1450, 1600, MR_CAUSE_READ), 70);
    t.last.asked_ns = t.last.room_ns = t.last.claimed_ns = t.last.read_ns = 0; /* from memory, and the worker
                                                                                  had no rest */
    MRT_EQ(of(&t, 1450, 1520, MR_CAUSE_READ), 0);
    MRT_EQ(of(&t, 1450, 1520, MR_CAUSE_ROOM), 0);
}

/* The chunk lay there, a worker had been woken for it and was not run, and at last another took it. */
static void a_worker_that_does_not_come(void **state)
{
    (void)state;
    const uint64_t long_ns = 500000;
    mri_batch_times t = staged_batch();
    t.last.work = work_at(1400 + long_ns);
    t.last.work.late_ns = 20;
    t.full_ns = AT(1520 + long_ns);
    t.came_ns = t.noticed_ns = t.room_ns = t.staged_ns = 0;
    t.copy = (mri_copy_times){0};
    MRT_EQ(of(&t, 1350, 1400 + (int64_t)long_ns, MR_CAUSE_BLOCKED), 30 + long_ns);
    t.last.awaited_ns = AT(1310);
    MRT_EQ(of(&t, 1350, 1400 + (int64_t)long_ns, MR_CAUSE_CORES), 50 + long_ns);
    t.last.awaited_ns = AT(1390); /* only since then, when the interval had begun */
    MRT_EQ(of(&t, 1350, 1400 + (int64_t)long_ns, MR_CAUSE_CORES), 10 + long_ns);
    t.last.awaited_ns = AT(1400 + long_ns - 1000); /* no longer than waking takes */
    MRT_EQ(of(&t, 1350, 1400 + (int64_t)long_ns, MR_CAUSE_CORES), 20);
    t.last.closing_ns = 15; /* between its work and the closed slot, the worker was not run either */
    MRT_EQ(of(&t, 1500 + (int64_t)long_ns, 1520 + (int64_t)long_ns, MR_CAUSE_CORES), 15);
    MRT_EQ(of(&t, 1500 + (int64_t)long_ns, 1520 + (int64_t)long_ns, MR_CAUSE_BLOCKED), 5);
    t.last.asked_ns = t.last.room_ns = t.last.claimed_ns; /* a loader that is behind, whose workers rest */
    t.last.before.rested_ns = 300;
    MRT_EQ(of(&t, 1450, 1700, MR_CAUSE_READ), 250);
    t.last.awaited_ns = AT(1310);
    MRT_EQ(of(&t, 1450, 1700, MR_CAUSE_CORES), 250);
}

/* Between two pieces of work they wait for a lock: workers that rest, and for want of nothing to do. */
static void workers_that_a_lock_holds(void **state)
{
    (void)state;
    mri_batch_times t = staged_batch();
    t.last.asked_ns = t.last.room_ns = t.last.claimed_ns;
    t.last.before = work_at(1250); /* until 1350: the chunk was there at 1300 */
    t.last.before.rested_ns = 700;
    t.last.delayed_part = 0.9;
    t.round = round_of_two();
    t.round.rested_ns = 750;
    t.load = (mri_load){.worked_ns = 900, .passed_ns = 1000};
    MRT_EQ(of(&t, 1500, 1600, MR_CAUSE_BLOCKED), 0); /* they rest */
    t.reading = (mri_load){.worked_ns = 10, .passed_ns = 1000};
    t.last.before.held_ns = 700;
    t.round.held_ns = 750;
    t.round.late_ns = 0;
    MRT_EQ(of(&t, 550, 1500, MR_CAUSE_READ), 0);
    MRT_EQ(of(&t, 550, 1500, MR_CAUSE_BLOCKED), 750 + 20); /* between two works, and in them */
    MRT_EQ(of(&t, 550, 1500, MR_CAUSE_CORES), 40);
}

/* Nobody waited for a slot, and no stage was at work all the time: a batch that takes long by itself. */
static void a_batch_that_is_slow_by_itself(void **state)
{
    (void)state;
    mri_batch_times t = staged_batch();
    t.last.asked_ns = t.last.room_ns = t.last.claimed_ns;
    t.last.before.rested_ns = 300;
    MRT_EQ(of(&t, 1400, 1500, MR_CAUSE_READ), 100); /* how much of the time was read is not known */
    t.reading = (mri_load){.worked_ns = 600, .passed_ns = 1000};
    t.load = (mri_load){.worked_ns = 300, .passed_ns = 1000};
    MRT_EQ(of(&t, 1400, 1500, MR_CAUSE_READ), 0);
    MRT_EQ(of(&t, 1400, 1500, MR_CAUSE_LARGE), 30);
    MRT_EQ(of(&t, 1300, 1350, MR_CAUSE_DECODE), 15);
    MRT_EQ(of(&t, 1100, 1300, MR_CAUSE_READ), 200);
    MRT_EQ(of(&t, 1600, 1700, MR_CAUSE_COPY), 100);
    t.reading.worked_ns = 800;
    MRT_EQ(of(&t, 1400, 1500, MR_CAUSE_READ), 100);
}

/* Bytes come for many chunks at once: the last of them was read in no time and then lay there, as a worker
 * came late for it, but nearly all the time some bytes were awaited. */
static void bytes_that_come_for_many(void **state)
{
    (void)state;
    const uint64_t long_ns = 500000;
    mri_batch_times t = staged_batch();
    t.last.asked_ns = t.last.room_ns = t.last.claimed_ns;
    t.last.before.rested_ns = 300;
    t.last.work = work_at(1400 + long_ns);
    t.full_ns = AT(1520 + long_ns);
    t.came_ns = t.noticed_ns = t.room_ns = t.staged_ns = 0;
    t.copy = (mri_copy_times){0};
    t.last.awaited_ns = AT(1310);
    t.reading = (mri_load){.worked_ns = 100, .passed_ns = 1000};
    MRT_EQ(of(&t, 1450, 1700, MR_CAUSE_CORES), 250);
    t.reading.worked_ns = 900;
    MRT_EQ(of(&t, 1450, 1700, MR_CAUSE_READ), 250);
}

/* A chunk was available and the worker, though free, did not take it: its runnable time is charged to the
 * cores, the rest to a lock, whichever threads were woken. */
static void a_worker_that_is_blocked(void **state)
{
    (void)state;
    const uint64_t long_ns = 20000000;
    mri_batch_times t = staged_batch();
    t.last.work = work_at(1400 + long_ns);
    t.last.work.rested_ns = long_ns + 50;
    t.last.work.late_ns = (long_ns + 50) / 10;
    t.last.awaited_ns = AT(1310);
    t.full_ns = AT(1520 + long_ns);
    t.came_ns = t.noticed_ns = t.room_ns = t.staged_ns = 0;
    t.copy = (mri_copy_times){0};
    MRT_EQ(of(&t, 1350, 1400 + (int64_t)long_ns, MR_CAUSE_CORES), (long_ns + 50) / 10);
    MRT_EQ(of(&t, 1350, 1400 + (int64_t)long_ns, MR_CAUSE_BLOCKED), long_ns + 50 - (long_ns + 50) / 10);
    t.last.asked_ns = t.last.room_ns = t.last.claimed_ns; /* a loader that is behind */
    MRT_EQ(of(&t, 1000, 2000, MR_CAUSE_CORES), 100);
    MRT_EQ(of(&t, 1000, 2000, MR_CAUSE_BLOCKED), 900);
}

/* The copies of the batch before were over, and staging, or who had to tell it, was not run. */
static void staging_that_comes_late(void **state)
{
    (void)state;
    const uint64_t long_ns = 500000;
    mri_batch_times t = staged_batch();
    t.before_ns = AT(1540);
    t.came_ns = AT(1600);
    t.before_late_ns = 25;
    t.noticed_ns = t.room_ns = t.staged_ns = AT(1600);
    t.copy = (mri_copy_times){AT(1600), AT(1700)};
    MRT_EQ(of(&t, 1520, 1600, MR_CAUSE_COPY), 20);
    MRT_EQ(of(&t, 1520, 1600, MR_CAUSE_CORES), 25);
    MRT_EQ(of(&t, 1520, 1600, MR_CAUSE_BLOCKED), 35);
    t.came_ns = t.noticed_ns = t.room_ns = t.staged_ns = AT(1600 + long_ns); /* longer than waking takes */
    t.copy = (mri_copy_times){AT(1600 + long_ns), AT(1700 + long_ns)};
    MRT_EQ(of(&t, 1520, 1600 + (int64_t)long_ns, MR_CAUSE_COPY), 20);
    MRT_EQ(of(&t, 1520, 1600 + (int64_t)long_ns, MR_CAUSE_CORES), 60 + long_ns);
    t.last.asked_ns = t.last.room_ns = t.last.claimed_ns; /* a loader that is behind */
    MRT_EQ(of(&t, 1450, 1700, MR_CAUSE_CORES), 250);
    t.before_ns = AT(1590 + long_ns); /* the link was at work for all of that but a moment */
    MRT_EQ(of(&t, 1450, 1700, MR_CAUSE_COPY), 250);
}

static void a_load_is_of_the_last_few_batches(void **state)
{
    (void)state;
    mri_load l = {0};
    mri_load_mark(&l, 500, 2, 1000);
    MRT_TRUE(l.passed_ns == 0); /* since when is not known */
    mri_load_mark(&l, 400, 2, 1400);
    MRT_TRUE(l.worked_ns == 200 && l.passed_ns == 400);
    for (int i = 0; i < 40; i++) mri_load_mark(&l, 10, 1, l.marked_ns + 100);
    MRT_TRUE(l.worked_ns / l.passed_ns > 0.0999 && l.worked_ns / l.passed_ns < 0.1001);
    for (int i = 0; i < 8; i++) mri_load_mark(&l, 100, 1, l.marked_ns + 100);
    MRT_TRUE(l.worked_ns / l.passed_ns > 0.9);
    const mri_load same = l;
    mri_load_mark(&l, 100, 1, l.marked_ns); /* two at once */
    MRT_TRUE(l.passed_ns == same.passed_ns);
}

static void stretches_without_a_stage(void **state)
{
    (void)state;
    mri_batch_times t = staged_batch();
    t.copy = (mri_copy_times){0, 0}; /* not over */
    MRT_EQ(of(&t, 1570, 1900, MR_CAUSE_COPY), 330);
    t.came_ns = AT(1540); /* staging was at the batch before when this one was full */
    MRT_EQ(of(&t, 1520, 1540, MR_CAUSE_COPY), 20);
    t.came_ns = t.noticed_ns = t.room_ns = t.staged_ns = 0; /* handed out in host memory */
    MRT_EQ(of(&t, 1520, 1600, MR_CAUSE_HOST), 80);
    t.last.asked_ns = t.last.room_ns = t.last.claimed_ns = t.last.read_ns = 0; /* from memory: no reader */
    t.last.before = work_at(1250 - ROOM_NS); /* and the worker waited for a slot */
    MRT_EQ(of(&t, 1350, 1400, MR_CAUSE_ROOM), 50);
    MRT_EQ(of(&t, 1250 - ROOM_NS, 1350 - ROOM_NS, MR_CAUSE_DECODE), 30);
    MRT_EQ(of(&t, 1250 - ROOM_NS, 1350 - ROOM_NS, MR_CAUSE_READ), 0);
    t.batch = MR_NOWHERE;
    MRT_EQ(of(&t, 1000, 1600, MR_CAUSE_UNKNOWN), 600);
}

static void a_serial_batch_is_the_sum_of_its_work(void **state)
{
    (void)state;
    mri_batch_times t = staged_batch();
    t.serial = true;
    t.last.asked_ns = AT(1420); /* 100 until it was full: 40 read, 60 as the work went */
    t.serial_read_ns = 40;
    t.came_ns = t.noticed_ns = t.room_ns = t.staged_ns = AT(1520);
    MRT_EQ(of(&t, 1300, 1800, MR_CAUSE_READ), 40);
    MRT_EQ(of(&t, 1300, 1800, MR_CAUSE_DECODE), 18);
    MRT_EQ(of(&t, 1300, 1800, MR_CAUSE_CORES), 12);
    MRT_EQ(of(&t, 1300, 1800, MR_CAUSE_COPY), 180);
    MRT_EQ(of(&t, 1300, 1800, MR_CAUSE_HOST), 100 + 120); /* nobody asked for it; nobody used it */
    t.before_late_ns = 70;                                /* for it was seen late that the step was over */
    MRT_EQ(of(&t, 1300, 1800, MR_CAUSE_HOST), 30 + 120);
    MRT_EQ(of(&t, 1300, 1800, MR_CAUSE_CORES), 70 + 12);
}

static void quotas_are_not_other_programs(void **state)
{
    (void)state;
    const mri_batch_times t = staged_batch();
    mr_causes c = {0};
    mri_causes_charge(&t, 0.75, AT(1400), AT(1500), &c);
    MRT_EQ(c.ns[MR_CAUSE_QUOTA], 15);
    MRT_EQ(c.ns[MR_CAUSE_CORES], 5);
}

static void causes_add_up(void **state)
{
    (void)state;
    mri_batch_times all[6];
    for (int k = 0; k < 6; k++) all[k] = staged_batch();
    all[1].came_ns = 0;
    all[2].serial = true;
    all[3].batch = MR_NOWHERE;
    all[4].last.asked_ns = all[4].last.room_ns = all[4].last.claimed_ns;
    all[5].came_ns = AT(1540);
    all[5].before_ns = AT(1530);
    for (int k = 0; k < 6; k++)
        for (uint64_t from = 900; from < 1900; from += 7)
            for (uint64_t to = from; to < 1900; to += 13) {
                mr_causes c = {0};
                uint64_t sum = 0;
                mri_causes_charge(&all[k], 0.3, AT(from), AT(to), &c);
                for (int i = 0; i < MR_CAUSES; i++) sum += c.ns[i];
                if (c.total_ns != to - from || sum != c.total_ns) MRT_EQ(sum, to - from);
            }
    mr_causes none = {0};
    mri_causes_charge(&all[0], 0, 1500, 1400, &none);
    MRT_EQ(none.total_ns, 0);
}

/* ------------------------------------------------------------------------------ loaders */

/* Causes of the waits of a loader's consumer, from its third batch on. */
static mr_causes waits_of(const mr_source *src, const mr_loader_config *cfg)
{
    mr_loader *l;
    mr_batch b;
    mr_loader_stats before, after;
    mr_causes first, c;
    mr_error err = MR_ERROR_INIT;
    MRT_OK(mr_loader_open(&l, src, cfg, &err), &err);
    for (int k = 0; k < 2; k++) {
        MRT_OK(mr_loader_next(l, &b, MR_FOREVER, &err), &err);
        MRT_EQ(mr_loader_release(l, &b, NULL), MR_OK);
    }
    mr_loader_stats_read(l, &before);
    mr_loader_waits(l, &first);
    while (mr_loader_next(l, &b, MR_FOREVER, &err) == MR_OK) MRT_EQ(mr_loader_release(l, &b, NULL), MR_OK);
    mr_loader_stats_read(l, &after);
    mr_loader_waits(l, &c);
    mr_loader_close(l);
    for (int i = 0; i < MR_CAUSES; i++) c.ns[i] -= first.ns[i];
    c.total_ns -= first.total_ns;
    const double waited = (double)(after.wait_ns - before.wait_ns);
    MRT_TRUE((double)c.total_ns <= waited && (double)c.total_ns >= 0.98 * waited - 1e5);
    return c;
}

static mr_loader_config settings(uint32_t prefetch)
{
    mr_loader_config cfg;
    mr_loader_defaults(&cfg);
    cfg.io = MR_IO_PREAD;
    cfg.batch = 8;
    cfg.epochs = 3;
    cfg.prefetch = prefetch;
    cfg.workers = 1;
    cfg.readers = 1;
    cfg.resident_bytes = 0;
    return cfg;
}

static void slow_reads_are_named(void **state)
{
    (void)state;
    mr_source *src = mrt_source(mrt_folder_set("slow", 2, 24, 24, false));
    slow_read_ns = 5000000; /* longer than decoding, under a sanitizer and beside others, too */
    for (uint32_t prefetch = 0; prefetch < 6; prefetch += 4) {
        const mr_loader_config cfg = settings(prefetch);
        const mr_causes c = waits_of(src, &cfg);
        const uint64_t cores = c.ns[MR_CAUSE_CORES] + c.ns[MR_CAUSE_QUOTA] + c.ns[MR_CAUSE_BLOCKED];
        MRT_TRUE(c.ns[MR_CAUSE_READ] > (c.total_ns - cores) / 2); /* whatever else the machine does */
        MRT_EQ(c.ns[MR_CAUSE_UNKNOWN], 0);
    }
    slow_read_ns = 0;
    mr_source_close(src);
}

static void decoding_is_named(void **state)
{
    (void)state;
    mr_source *src = mrt_source(mrt_folder_set("heavy", 2, 12, MRT_SANITIZED ? 250 : 700, false));
    for (uint32_t prefetch = 0; prefetch < 6; prefetch += 4) {
        mr_loader_config cfg = settings(prefetch);
        cfg.augment = "resize(24x24)";
        const mr_causes c = waits_of(src, &cfg);
        const uint64_t work = c.ns[MR_CAUSE_DECODE] + c.ns[MR_CAUSE_LARGE] + c.ns[MR_CAUSE_CORES] +
                              c.ns[MR_CAUSE_QUOTA] + c.ns[MR_CAUSE_BLOCKED];
        MRT_TRUE(work > c.total_ns / 2);
        MRT_TRUE(c.ns[MR_CAUSE_READ] < c.total_ns / 2);
        cfg.batch = 24; /* more than the reader's buffers: it waits for buffers, and nobody reads */
        cfg.depth = 1;
        const mr_causes d = waits_of(src, &cfg);
        MRT_TRUE(d.ns[MR_CAUSE_READ] < d.total_ns / 2); /* it would be nearly all; beside others a read takes
                                                           its time */
    }
    mr_source_close(src);
}

static void locks_are_named(void **state)
{
    (void)state;
    mr_source *src = mrt_source(mrt_folder_set("locked", 2, 24, 24, false));
    lock_ns = 5000000;
    mr_loader_config cfg = settings(4);
    for (cfg.workers = 1; cfg.workers < 4; cfg.workers++) {
        const mr_causes c = waits_of(src, &cfg);
        const uint64_t cores = c.ns[MR_CAUSE_CORES] + c.ns[MR_CAUSE_QUOTA]; /* whatever else the machine does
                                                                             */
        MRT_TRUE(c.ns[MR_CAUSE_BLOCKED] > (c.total_ns - cores) / 2);
    }
    lock_ns = 0;
    mr_source_close(src);
}

/* One picture of 900 x 900 among pictures of 40 x 40. */
static void slow_samples_are_named(void **state)
{
    (void)state;
    mr_loader *l;
    mr_batch b;
    mr_slow_sample slow[MR_LOADER_SLOWEST + 1];
    mr_error err = MR_ERROR_INIT;
    char small[4096], from[4096], to[4096];
    snprintf(small, sizeof small, "%s", mrt_folder_set("few", 2, 16, 40, false));
    snprintf(from, sizeof from, "%s", mrt_path("large"));
    const char *large = mrt_folder_set("large", 1, 1, 900, false);
    mr_source *src = mrt_source(large), *all;
    snprintf(from, sizeof from, "%s", mr_source_sample_path(src, 0, to, sizeof to));
    mr_source_close(src);
    src = mrt_source(small);
    snprintf(to, sizeof to, "%s", mr_source_sample_path(src, 20, (char[4096]){0}, 4096));
    mr_source_close(src);
    MRT_EQ(rename(from, to), 0);
    all = mrt_source(small);
    for (uint32_t prefetch = 0; prefetch < 6; prefetch += 4) {
        mr_loader_config cfg = settings(prefetch);
        cfg.augment = "resize(24x24)";
        MRT_OK(mr_loader_open(&l, all, &cfg, &err), &err);
        while (mr_loader_next(l, &b, MR_FOREVER, &err) == MR_OK)
            MRT_EQ(mr_loader_release(l, &b, NULL), MR_OK);
        const uint32_t n = mr_loader_slowest(l, slow, MR_LOADER_SLOWEST + 1);
        mr_loader_close(l);
        MRT_TRUE(n >= 2 && n <= MR_LOADER_SLOWEST);
        uint32_t at = 0; /* whatever else the machine does */
        while (at < n && slow[at].sample != 20) at++;
        MRT_TRUE(at < n && slow[at].times > 0);
        for (uint32_t i = 0; i < n; i++) MRT_TRUE(slow[i].bytes <= slow[at].bytes);
        for (uint32_t i = 1; i < n; i++) {
            MRT_TRUE(slow[i].ns <= slow[i - 1].ns);
            for (uint32_t k = 0; k < i; k++) MRT_TRUE(slow[i].sample != slow[k].sample);
        }
    }
    mr_source_close(all);
}

/* A worker that is blocked while it has a sample, though the bytes are there, makes none of a slow sample. */
static void blocked_samples_are_not_named(void **state)
{
    (void)state;
    mr_loader *l;
    mr_batch b;
    mr_slow_sample slow[MR_LOADER_SLOWEST];
    mr_error err = MR_ERROR_INIT;
    mr_source *src = mrt_source(mrt_folder_set("blocked", 2, 16, 40, false));
    for (uint32_t prefetch = 0; prefetch < 6; prefetch += 4) {
        mr_loader_config cfg = settings(prefetch);
        cfg.augment = "resize(24x24)";
        cfg.epochs = 1;
        blocked_sample = 20;
        MRT_OK(mr_loader_open(&l, src, &cfg, &err), &err);
        while (mr_loader_next(l, &b, MR_FOREVER, &err) == MR_OK)
            MRT_EQ(mr_loader_release(l, &b, NULL), MR_OK);
        const uint32_t n = mr_loader_slowest(l, slow, MR_LOADER_SLOWEST);
        mr_loader_close(l);
        blocked_sample = MR_NOWHERE;
        MRT_TRUE(n >= 2);
        for (uint32_t i = 0; i < n; i++) MRT_TRUE(slow[i].ns < BLOCKED_NS / 2);
    }
    mr_source_close(src);
}

static void intervals_of_others_are_charged(void **state)
{
    (void)state;
    mr_loader *l;
    mr_batch b;
    mr_causes c = {0};
    mr_error err = MR_ERROR_INIT;
    mr_source *src = mrt_source(mrt_idx_set("idx", 64, 8, 8));
    const mr_loader_config cfg = settings(2);
    MRT_OK(mr_loader_open(&l, src, &cfg, &err), &err);
    MRT_OK(mr_loader_next(l, &b, MR_FOREVER, &err), &err);
    const uint64_t now = mri_now_ns();
    mr_loader_charge(l, b.global_step, 0, now, now + 500, &c);
    MRT_EQ(c.ns[MR_CAUSE_HOST], 500); /* it is there */
    mr_loader_charge(l, b.global_step + 1000, 0, now, now + 30, &c);
    mr_loader_charge(l, b.global_step, 99, now, now + 3, &c);
    MRT_EQ(c.ns[MR_CAUSE_UNKNOWN], 33);
    MRT_EQ(c.total_ns, 533);
    MRT_EQ(mr_loader_release(l, &b, NULL), MR_OK);
    mr_loader_close(l);
    mr_source_close(src);
    for (int i = 0; i <= MR_CAUSE_NETWORK; i++)
        MRT_TRUE(mr_cause_name((mr_cause)i) && mr_cause_text((mr_cause)i));
    MRT_TRUE(!mr_cause_name((mr_cause)(MR_CAUSE_NETWORK + 1)) && !mr_cause_text((mr_cause)-1));
}

/* ------------------------------------------------------------------------------ inputs of the causes */

static void what_goes_on_is_counted(void **state)
{
    (void)state;
    mri_stage_counter c = {0};
    const uint64_t before = mri_now_ns();
    const uint64_t since = mri_activity_begin(&c, MRI_WAIT_ROOM);
    pass(3000000);
    const mr_stage_stats during = mri_stage_stats(&c, 1);
    MRT_TRUE(during.blocked_out_ns >= 3000000 && during.blocked_out_ns <= mri_now_ns() - before);
    MRT_EQ(during.busy_ns, 0);
    mri_activity_end(&c, MRI_WAIT_ROOM, since);
    const uint64_t over = mri_activity_ns(&c, MRI_WAIT_ROOM);
    pass(1000000);
    MRT_EQ(mri_activity_ns(&c, MRI_WAIT_ROOM), over); /* and no longer grows */
    mri_activity_add(&c, MRI_BUSY, 50);
    mri_activity_move(&c, MRI_BUSY, MRI_WAIT_INPUT, 20);
    MRT_EQ(mri_activity_ns(&c, MRI_BUSY), 30);
    MRT_EQ(mri_activity_ns(&c, MRI_WAIT_INPUT), 20);
}

static void a_thread_knows_when_it_ran(void **state)
{
    (void)state;
    mri_cpu_time t;
    uint64_t ran, delayed;
    mri_cpu_time_open(&t);
    uint64_t begun = mri_now_ns();
    pass(5000000);
    uint64_t wall = mri_now_ns() - begun;
    mri_cpu_time_look(&t, wall, &ran, &delayed);
    MRT_TRUE(ran < wall && ran + delayed <= wall);
    const uint64_t slept = ran;
    begun = mri_now_ns();
    volatile uint64_t x = 0;
    while (mri_now_ns() - begun < 20000000) x = x + 1;
    wall = mri_now_ns() - begun;
    mri_cpu_time_look(&t, wall, &ran, &delayed);
    MRT_TRUE(ran > slept && ran + delayed <= wall);
    mri_cpu_time_close(&t);
    mri_cpu_time_look(&t, wall, &ran, &delayed); /* the kernel does not tell: no delays */
    MRT_EQ(delayed, 0);
    mri_cpu_time_close(&t);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(every_stretch_has_its_cause),
        cmocka_unit_test(a_wait_for_a_buffer),
        cmocka_unit_test(a_loader_that_is_behind),
        cmocka_unit_test(a_worker_that_does_not_come),
        cmocka_unit_test(workers_that_a_lock_holds),
        cmocka_unit_test(a_batch_that_is_slow_by_itself),
        cmocka_unit_test(bytes_that_come_for_many),
        cmocka_unit_test(a_worker_that_is_blocked),
        cmocka_unit_test(staging_that_comes_late),
        cmocka_unit_test(a_load_is_of_the_last_few_batches),
        cmocka_unit_test(stretches_without_a_stage),
        cmocka_unit_test(a_serial_batch_is_the_sum_of_its_work),
        cmocka_unit_test(quotas_are_not_other_programs),
        cmocka_unit_test(causes_add_up),
        cmocka_unit_test(slow_reads_are_named),
        cmocka_unit_test(decoding_is_named),
        cmocka_unit_test(slow_samples_are_named),
        cmocka_unit_test(locks_are_named),
        cmocka_unit_test(blocked_samples_are_not_named),
        cmocka_unit_test(intervals_of_others_are_charged),
        cmocka_unit_test(what_goes_on_is_counted),
        cmocka_unit_test(a_thread_knows_when_it_ran),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
