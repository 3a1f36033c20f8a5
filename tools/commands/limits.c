/* tools/commands/limits.c: see limits.h. Each figure is the median over rounds; the threads of a round start
 * together and each does what one thread of a pipeline would: its own buffers, its own samples. */
#include "tools/commands/limits.h"

#include <pthread.h>
#include <stdlib.h>
#include <string.h>

#include "settings/limits.h"
#include "tools/cli/clock.h"
#include "tools/cli/exit.h"
#include "tools/cli/interrupt.h"
#include "tools/cli/output.h"
#include "tools/trial/measure.h"

enum { THREADS_MOST = 256 };
#define BLOCK_BYTES ((size_t)32 << 20) /* past every cache of one core */

typedef struct limit_lane { /* one thread */
    uint32_t which, lanes;
    const mr_source *src;
    const mr_decode_config *decode;
    double seconds;
    uint64_t next; /* its next sample; rounds go on where the one before stopped */
    double units;  /* bytes or pictures of this round */
    int rc;
    mr_error err;
} limit_lane;

static bool goes_on(const limit_lane *l, uint64_t start_ns)
{
    return seconds_since(start_ns) < l->seconds && !interrupt_flag;
}

static void copy_blocks(limit_lane *l)
{
    uint8_t *from = malloc(BLOCK_BYTES), *to = malloc(BLOCK_BYTES);
    if (from && to) {
        memset(from, 1, BLOCK_BYTES);
        memset(to, 2, BLOCK_BYTES);
        for (const uint64_t start = clock_ns(); goes_on(l, start); l->units += BLOCK_BYTES) {
            memcpy(to, from, BLOCK_BYTES);
            from[0] = to[BLOCK_BYTES - 1]; /* keeps the copy */
        }
    } else {
        l->rc = mr_error_set(&l->err, MR_ENOMEM, "out of memory");
    }
    free(from);
    free(to);
}

static void sum_blocks(limit_lane *l)
{
    uint8_t *block = malloc(BLOCK_BYTES);
    uint32_t crc = 0;
    if (!block) {
        l->rc = mr_error_set(&l->err, MR_ENOMEM, "out of memory");
        return;
    }
    memset(block, 1, BLOCK_BYTES);
    for (const uint64_t start = clock_ns(); goes_on(l, start); l->units += BLOCK_BYTES) {
        crc = mr_crc32c(crc, block, BLOCK_BYTES);
        block[0] = (uint8_t)crc;
    }
    free(block);
}

/* Samples next, next + lanes, ...: all lanes together go through the data once, and again. */
static void take_samples(limit_lane *l)
{
    const mr_source_info *info = mr_source_info_of(l->src);
    void *buffer = NULL;
    size_t buffer_bytes = 0;
    mr_sample sample;
    for (const uint64_t start = clock_ns(); l->rc == MR_OK && goes_on(l, start); l->next += l->lanes) {
        const uint64_t at = l->next % info->count;
        mr_extent extent;
        l->rc = mr_source_extent(l->src, at, &extent, &l->err);
        if (l->rc == MR_OK) l->rc = mr_source_read(l->src, at, &buffer, &buffer_bytes, &sample, &l->err);
        if (l->rc == MR_OK && l->which == LIMIT_DECODE) {
            mr_image image = {0};
            l->rc = mr_image_decode(&sample.value[info->image_field], l->decode, &image, &l->err);
            mr_image_free(&image);
        }
        l->units += l->which == LIMIT_DECODE ? 1 : (double)extent.bytes;
    }
    free(buffer);
}

static void *lane_main(void *arg)
{
    limit_lane *l = arg;
    l->units = 0;
    if (l->which == LIMIT_MEMCPY) copy_blocks(l);
    else if (l->which == LIMIT_CRC) sum_blocks(l);
    else take_samples(l);
    return NULL;
}

static int one_round(limit_lane *lanes, uint32_t count, double *rate)
{
    pthread_t threads[THREADS_MOST];
    uint32_t started = 0;
    const uint64_t start = clock_ns();
    while (started < count && pthread_create(&threads[started], NULL, lane_main, &lanes[started]) == 0)
        started++;
    for (uint32_t t = 0; t < started; t++) pthread_join(threads[t], NULL);
    const double seconds = seconds_since(start);
    *rate = 0;
    for (uint32_t t = 0; t < started; t++) {
        if (lanes[t].rc) return exit_status(lanes[t].rc, &lanes[t].err);
        *rate += lanes[t].units / seconds;
    }
    if (started == count) return interrupt_flag ? EXIT_SIGNAL + interrupt_flag : EXIT_DONE;
    say("cannot start %u threads; lower --workers", count);
    return EXIT_FAILED;
}

static bool has_meaning(uint32_t which, const mr_source *src)
{
    const mr_source_info *info = mr_source_info_of(src);
    if (which != LIMIT_DECODE) return true;
    return info->image_field >= 0 && info->fields[info->image_field].type != MR_TYPE_PIXELS;
}

int limit_measure(uint32_t which, const mr_source *src, const mr_decode_config *decode, uint32_t workers,
                  double seconds, uint32_t rounds, machine_limit *out)
{
    static const struct {
        const char *name, *unit;
        double scale;
    } kinds[LIMIT_COUNT] = {
        [LIMIT_MEMCPY] = {"memory copy", "GB/s", 1e-9},
        [LIMIT_CRC] = {"CRC32C", "GB/s", 1e-9},
        [LIMIT_READ] = {"read and check samples", "GB/s", 1e-9},
        [LIMIT_DECODE] = {"read and full decode", "pictures/s", 1},
    };
    limit_lane lanes[THREADS_MOST];
    double rates[MRI_ROUNDS_MOST];
    uint32_t count = workers ? workers : core_count();
    if (count > THREADS_MOST) count = THREADS_MOST;
    if (rounds > MRI_ROUNDS_MOST) rounds = MRI_ROUNDS_MOST;
    *out = (machine_limit){.name = kinds[which].name, .unit = kinds[which].unit, .threads = count};
    if (!has_meaning(which, src)) return EXIT_DONE;
    memset(lanes, 0, sizeof lanes);
    for (uint32_t t = 0; t < count; t++)
        lanes[t] = (limit_lane){.which = which,
                                .lanes = count,
                                .src = src,
                                .decode = decode,
                                .next = t,
                                .seconds = seconds / (LIMIT_COUNT * (rounds + 1)),
                                .err = MR_ERROR_INIT};
    int status = one_round(lanes, count, &rates[0]); /* to warm up */
    for (uint32_t r = 0; status == EXIT_DONE && r < rounds; r++) status = one_round(lanes, count, &rates[r]);
    if (status) return status;
    out->rounds = rounds;
    out->value = mr_measure_median(rates, rounds, &out->mad) * kinds[which].scale;
    out->mad *= kinds[which].scale;
    return EXIT_DONE;
}
