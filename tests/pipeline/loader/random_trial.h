/* tests/pipeline/loader/random_trial.h: one random loader: a data set, the loader's settings and what its
 * consumer does, all of it from (seed, number); and how a check of it fails. */
#ifndef MRT_RANDOM_TRIAL_H
#define MRT_RANDOM_TRIAL_H

#include "tests/pipeline/loader/random_sets.h"

enum { MOST_DEVICES = 3, LAG_BYTES = 1 << 20 };

typedef enum ending { END_ALL, END_CLOSE, END_STOP, END_STOP_THREAD } ending;

typedef struct trial {
    uint64_t seed, number, state; /* state: of the generator */
    const data_set *set;
    mr_loader_config cfg;
    uint32_t device_kind; /* of cfg.devices: in mrt_banks[] */
    uint64_t epochs;      /* that the reference delivers; cfg.epochs may be more */
    bool warm;            /* another loader has filled some of the cache on disk before */
    bool traced;
    ending end;
    uint64_t end_after; /* batches; END_STOP_THREAD: microseconds */
    uint32_t hold;      /* batches held at once at most */
    uint32_t patience;  /* of mr_loader_next(): 0 for ever, 1 polls, 2 short waits */
    uint32_t lag;       /* slow copies in front of each read-back */
    char folder[1024];
} trial;

/* ---- devices ---- */

typedef struct bank {
    mr_device **devices;
    uint32_t count;
    mr_stream *stream[MOST_DEVICES]; /* the consumer's */
    void *slow[MOST_DEVICES];        /* device memory of LAG_BYTES */
    void *sink[MOST_DEVICES];
} bank;

/* Opened by the program before the first draw: the cpu devices, and simulated ones. */
extern bank mrt_banks[2];
void open_bank(bank *k, const char *spec);
void close_bank(bank *k);

/* ---- drawing ---- */

void draw_trial(trial *t, uint64_t seed, uint64_t number);
/* The next number of the trial's own generator, below n. */
uint32_t below(trial *t, uint64_t n);
static inline uint64_t smaller(uint64_t a, uint64_t b) { return a < b ? a : b; }

/* Samples of its set; batches of an epoch; the global step it starts at. */
uint64_t samples_of(const trial *t);
uint64_t steps_of(const trial *t);
uint64_t start_of(const trial *t);

/* ---- telling ---- */

/* The configuration, and the line that repeats it. It stays the text of what fails, hangs or crashes until
 * the next call. */
const char *describe(const trial *t);
/* Print it when a signal ends the program; SIGALRM means that the trial hangs. */
void watch_signals(void);

/* Fail with this text and the configuration. */
MR_PRINTF(1, 2) void differs(const char *format, ...);
#define CHECK(x, ...) ((x) ? (void)0 : differs(__VA_ARGS__))
void check_ok(int rc, const mr_error *err, const char *what);

#endif
