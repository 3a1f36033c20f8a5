/* library_guest: a host that does much at once: two loaders, one of them open again and again, a trainer on
 * the batches of the other, and OpenMP of its own in a further thread. For a race detector.
 *
 *   test_library_guest [SECONDS]     default: until each has had its turn three times */
#include <pthread.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <time.h>

#include "tests/pipeline/sets.h"
#include "tests/train/fit_rig.h"

enum { TURNS = 3 };

typedef struct host {
    const char *photos;
    time_t until; /* 0: turns are counted */
    atomic_uint loads, trainings;
} host;

static atomic_uint regions; /* not the host's: a race detector does not see how OpenMP hands on what regions
                               share */

static bool goes_on(const host *h, uint32_t own) { return h->until ? time(NULL) < h->until : own < TURNS; }

static void *loads(void *context)
{
    host *h = context;
    mr_digest first = {0};
    mr_source *src = mrt_source(h->photos);
    mr_loader_config cfg = mrt_training(16, 2, "rrc(24),flip", NULL, 0);
    for (uint32_t n = 0; goes_on(h, n); n++) {
        uint64_t batches, samples;
        cfg.prefetch = n % 4;
        const mr_digest d = mrt_digest(src, &cfg, &batches, &samples);
        if (n == 0) first = d;
        MRT_TRUE(mrt_same_batches(d, first));
        atomic_fetch_add(&h->loads, 1);
    }
    mr_source_close(src);
    return NULL;
}

static void *trains(void *context)
{
    host *h = context;
    mrt_hash first = {0};
    for (uint32_t n = 0; goes_on(h, n); n++) {
        const mrt_hash w = undisturbed(&usual, NULL);
        if (n == 0) first = w;
        MRT_TRUE(mrt_same(w, first));
        atomic_fetch_add(&h->trainings, 1);
    }
    return NULL;
}

/* The host's own. */
static void *computes(void *context)
{
    host *h = context;
    for (uint32_t n = 0; goes_on(h, n); n++) {
#pragma omp parallel num_threads(2)
        atomic_fetch_add(&regions, 1);
        const struct timespec pause = {0, 1000000};
        nanosleep(&pause, NULL);
    }
    return NULL;
}

int main(int argc, char **argv)
{
    static void *(*const parts[])(void *) = {loads, trains, computes};
    pthread_t thread[3];
    host h = {.photos = mrt_folder_set("photos", 3, 20, 40, true)};
    if (argc > 1) h.until = time(NULL) + strtol(argv[1], NULL, 10);
    undisturbed(&usual, NULL); /* makes its data */
    for (int i = 0; i < 3; i++)
        if (pthread_create(&thread[i], NULL, parts[i], &h) != 0) return 1;
    for (int i = 0; i < 3; i++) pthread_join(thread[i], NULL);
    printf("%u times a set loaded, %u trainings, %u threads of OpenMP regions\n", atomic_load(&h.loads),
           atomic_load(&h.trainings), atomic_load(&regions));
    return atomic_load(&h.loads) && atomic_load(&h.trainings) && atomic_load(&regions) ? 0 : 1;
}
