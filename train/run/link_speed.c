/* train/run/link_speed.c: see link_speed.h. An array of n bytes is summed in two exchanges; in each
 * a process sends (processes - 1) / processes * n bytes:
 *
 *   seconds = 2 * latency + 2 * (processes - 1) / processes * n * s_per_byte
 *
 * Where the ranks of a host add first (host_wire.h), the same holds for hosts in place of processes: the
 * ranks of a host then send at once, each to the ranks of its number on other hosts. The exchanges within
 * hosts do not count.
 *
 * A connection that begins slowly (TCP) is measured with more and more bytes, until the time is no longer one
 * of latencies, then at least four times, and again while it becomes faster. */
#include "train/run/link_speed.h"

#include <stdlib.h>

#include "base/util.h"

enum {
    ROUNDS = 6,
    FEW_BYTES = 64,
    FIRST_BYTES = 64 << 10,
    GROWTH = 4,
    MOST_BYTES = 8 << 20,
    REPEATS = 8,
    LATENCIES = 6, /* an exchange that takes longer is one of bytes */
};
#define LONG_S        0.05
#define SETTLED       0.9 /* of the best time before: not faster than this is no longer beginning */
#define LEAST_BUCKET  (64u << 10)
#define UNKNOWN_PARTS 4
#define EFFICIENCY    8 /* the bytes of a bucket take this many times its latencies */

typedef struct probe {
    mr_world *world;
    uint32_t channel, size, rank;
    uint32_t per_host;       /* ranks of a host; 1: each rank exchanges with all others */
    uint8_t *send, *receive; /* a piece, and one for each other process */
    mr_world_piece *pieces;
    double *seconds; /* of all */
} probe;

static int exchange_once(probe *p, size_t bytes, double *seconds, mr_error *err)
{
    for (uint32_t r = 0; r < p->size; r++) {
        const size_t mine = r == p->rank || r % p->per_host != p->rank % p->per_host ? 0 : bytes;
        p->pieces[r] = (mr_world_piece){p->send, mine};
        p->pieces[p->size + r] = (mr_world_piece){p->receive + r * bytes, mine};
    }
    const uint64_t begun = mri_now_ns();
    const int rc = mr_world_exchange(p->world, p->channel, p->pieces, p->pieces + p->size, err);
    *seconds = 1e-9 * (double)(mri_now_ns() - begun);
    return rc;
}

/* The longest of all. */
static int agree(probe *p, double *seconds, mr_error *err)
{
    const double mine = *seconds;
    const int rc = mr_world_gather(p->world, p->channel, &mine, sizeof mine, p->seconds, err);
    for (uint32_t r = 0; rc == MR_OK && r < p->size; r++)
        if (p->seconds[r] > *seconds) *seconds = p->seconds[r];
    return rc;
}

/* The processes come to the first round at different times. Who is behind finds the bytes of the others
 * there, and is ahead in the next round: two rounds together are two latencies. */
static int measure_latency(probe *p, double *out, mr_error *err)
{
    double before = 0;
    int rc = MR_OK;
    for (int k = 0; rc == MR_OK && k < ROUNDS; k++) {
        double seconds;
        rc = exchange_once(p, FEW_BYTES, &seconds, err);
        const double mean = 0.5 * (before + seconds);
        if (k == 2 || (k > 2 && mean < *out)) *out = mean;
        before = seconds;
    }
    return rc == MR_OK ? agree(p, out, err) : rc;
}

static double middle_of(double a, double b, double c)
{
    const double low = a < b ? a : b, high = a < b ? b : a;
    return c < low ? low : c > high ? high : c;
}

/* The last three exchanges of one size count, and of them the one in the middle: the first ones may be faster
 * (bytes that a limiter of rates lets through at once) or slower (TCP begins). */
static int measure_rate(probe *p, size_t most, mri_link_speed *out, mr_error *err)
{
    const double enough = out->latency_s * LATENCIES > LONG_S ? out->latency_s * LATENCIES : LONG_S;
    size_t bytes = most < FIRST_BYTES ? most : FIRST_BYTES;
    double last[3] = {0};
    for (int k = 0; k < REPEATS;) {
        double seconds;
        int rc = exchange_once(p, bytes, &seconds, err);
        if (rc == MR_OK) rc = agree(p, &seconds, err);
        if (rc) return rc;
        const bool grows = seconds < enough && bytes < most;
        last[k % 3] = seconds;
        if (!grows && k >= 3 && seconds > SETTLED * last[(k - 1) % 3]) break;
        k = grows ? 0 : k + 1;
        if (grows) bytes = bytes > most / GROWTH ? most : bytes * GROWTH;
    }
    const double sent = (double)bytes * (out->processes - 1) * p->per_host,
                 took = middle_of(last[0], last[1], last[2]);
    out->s_per_byte = took > out->latency_s ? (took - out->latency_s) / sent : 0;
    return MR_OK;
}

int mri_link_speed_measure(mri_link_speed *out, mr_world *world, uint32_t channel, uint32_t per_host,
                           uint64_t most_bytes, mr_error *err)
{
    const uint32_t size = mr_world_size(world);
    if (per_host == 0 || per_host >= size) per_host = 1;
    *out = (mri_link_speed){.processes = size / per_host};
    if (size < 2) return MR_OK;
    const uint64_t all = mri_max_u64(mri_min_u64(most_bytes, MOST_BYTES), FIRST_BYTES);
    const size_t most = (size_t)mri_max_u64(all / (out->processes - 1), FEW_BYTES);
    probe p = {.world = world,
               .channel = channel,
               .size = size,
               .rank = mr_world_rank(world),
               .per_host = per_host,
               .send = calloc(1, most),
               .receive = malloc(most * size),
               .pieces = calloc(2 * (size_t)size, sizeof *p.pieces),
               .seconds = calloc(size, sizeof *p.seconds)};
    int rc = MR_OK;
    if (!p.send || !p.receive || !p.pieces || !p.seconds)
        rc = mr_error_set(err, MR_ENOMEM, "no memory to measure the network of %u processes", size);
    if (rc == MR_OK) rc = measure_latency(&p, &out->latency_s, err);
    if (rc == MR_OK) rc = measure_rate(&p, most, out, err);
    free(p.send);
    free(p.receive);
    free(p.pieces);
    free(p.seconds);
    return rc;
}

double mri_link_speed_sum_s(const mri_link_speed *speed, uint64_t bytes)
{
    const double n = speed->processes;
    return n < 2 ? 0 : 2 * (speed->latency_s + (n - 1) / n * (double)bytes * speed->s_per_byte);
}

uint64_t mri_link_speed_bucket(const mri_link_speed *speed, uint64_t bytes)
{
    const double n = speed->processes;
    if (n < 2) return 0;
    /* a rate too high to be measured, compared with the latency */
    const double size = speed->s_per_byte > 0
                            ? EFFICIENCY * speed->latency_s * n / ((n - 1) * speed->s_per_byte)
                            : (double)bytes / UNKNOWN_PARTS;
    const uint64_t bucket = size > LEAST_BUCKET ? (uint64_t)size : LEAST_BUCKET;
    return 2 * bucket > bytes ? 0 : bucket;
}
