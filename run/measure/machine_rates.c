/* run/measure/machine_rates.c: mr_measure_machine(). The figure is the median over rounds; the threads of a
 * round start together and each does what one thread of a pipeline would: its own buffers, its own samples.
 */
#include <stdlib.h>
#include <string.h>

#include "base/abi.h"
#include "formats/source/source.h"
#include "pipeline/decode/decoders.h"
#include "run/measure/measure_settings.h"
#include "settings/limits.h"

enum { THREADS_MOST = 256 };
#define BLOCK_BYTES ((size_t)32 << 20) /* past every cache of one core */

typedef struct rate_lane { /* one thread */
    mr_machine_figure which;
    uint32_t lanes;
    const mr_source *src;
    const mr_decode_config *decode;
    double seconds;
    const volatile int *stop;
    uint64_t next; /* its next sample; rounds go on where the one before stopped */
    double units;  /* bytes or pictures of this round */
    int rc;
    mr_error err;
} rate_lane;

static bool goes_on(const rate_lane *l, uint64_t start_ns)
{
    return mri_measure_since(start_ns) < l->seconds && !mri_is_stopped(l->stop);
}

static void copy_blocks(rate_lane *l)
{
    uint8_t *from = malloc(BLOCK_BYTES), *to = malloc(BLOCK_BYTES);
    if (from && to) {
        memset(from, 1, BLOCK_BYTES);
        memset(to, 2, BLOCK_BYTES);
        for (const uint64_t start = mri_now_ns(); goes_on(l, start); l->units += BLOCK_BYTES) {
            memcpy(to, from, BLOCK_BYTES);
            from[0] = to[BLOCK_BYTES - 1]; /* keeps the copy */
        }
    } else {
        l->rc = mr_error_set(&l->err, MR_ENOMEM, "out of memory");
    }
    free(from);
    free(to);
}

static void sum_blocks(rate_lane *l)
{
    uint8_t *block = malloc(BLOCK_BYTES);
    uint32_t crc = 0;
    if (!block) {
        l->rc = mr_error_set(&l->err, MR_ENOMEM, "out of memory");
        return;
    }
    memset(block, 1, BLOCK_BYTES);
    for (const uint64_t start = mri_now_ns(); goes_on(l, start); l->units += BLOCK_BYTES) {
        crc = mr_crc32c(crc, block, BLOCK_BYTES);
        block[0] = (uint8_t)crc;
    }
    free(block);
}

/* Samples next, next + lanes, ...: all lanes together go through the data once, and again. */
static void take_samples(rate_lane *l)
{
    const mr_source_info *info = mr_source_info_of(l->src);
    void *buffer = NULL;
    size_t buffer_bytes = 0;
    mr_sample sample;
    for (const uint64_t start = mri_now_ns(); l->rc == MR_OK && goes_on(l, start); l->next += l->lanes) {
        const uint64_t at = l->next % info->count;
        mr_extent extent;
        l->rc = mr_source_extent(l->src, at, &extent, &l->err);
        if (l->rc == MR_OK) l->rc = mr_source_read(l->src, at, &buffer, &buffer_bytes, &sample, &l->err);
        if (l->rc == MR_OK && l->which == MR_MACHINE_DECODE) {
            mr_image image = {0};
            l->rc = mr_image_decode(&sample.value[info->image_field], l->decode, &image, &l->err);
            mr_image_free(&image);
        }
        l->units += l->which == MR_MACHINE_DECODE ? 1 : (double)extent.bytes;
    }
    free(buffer);
}

static void *lane_main(void *arg)
{
    rate_lane *l = arg;
    l->units = 0;
    if (l->which == MR_MACHINE_COPY) copy_blocks(l);
    else if (l->which == MR_MACHINE_CRC) sum_blocks(l);
    else take_samples(l);
    return NULL;
}

static int one_round(rate_lane *lanes, uint32_t count, double *rate, mr_error *err)
{
    pthread_t threads[THREADS_MOST];
    uint32_t started = 0;
    const uint64_t start = mri_now_ns();
    while (started < count &&
           mri_thread_start(&threads[started], "mr-rate", lane_main, &lanes[started]) == MR_OK)
        started++;
    for (uint32_t t = 0; t < started; t++) pthread_join(threads[t], NULL);
    const double seconds = mri_measure_since(start);
    *rate = 0;
    for (uint32_t t = 0; t < started; t++) {
        if (lanes[t].rc && err) *err = lanes[t].err;
        if (lanes[t].rc) return lanes[t].rc;
        *rate += lanes[t].units / seconds;
    }
    if (started < count)
        return mr_error_set(err, MR_ENOMEM, "cannot start %u threads; lower --workers", count);
    return mri_is_stopped(lanes->stop) ? mri_measure_stopped(err) : MR_OK;
}

static bool has_meaning(mr_machine_figure which, const mr_source *src)
{
    const mr_source_info *info = mr_source_info_of(src);
    if (which >= MR_MACHINE_READ && info->count == 0) return false;
    if (which != MR_MACHINE_DECODE) return true;
    return info->image_field >= 0 && info->fields[info->image_field].type != MR_TYPE_PIXELS;
}

static int all_rounds(rate_lane *lanes, uint32_t rounds, mr_machine_rate *out, mr_error *err)
{
    double rates[MRI_ROUNDS_MOST];
    int rc = one_round(lanes, out->threads, &rates[0], err); /* to warm up */
    for (uint32_t r = 0; rc == MR_OK && r < rounds; r++) rc = one_round(lanes, out->threads, &rates[r], err);
    if (rc) return rc;
    out->rounds = rounds;
    out->value = mr_measure_median(rates, rounds, &out->mad);
    return MR_OK;
}

int mr_measure_machine_sized(mr_machine_figure which, const mr_source *src, const mr_decode_config *decode,
                             uint32_t workers, const mr_measure_config *cfg, mr_machine_rate *out,
                             mr_error *err)
{
    static const struct {
        const char *name, *unit;
        double scale;
    } kinds[] = {
        [MR_MACHINE_COPY] = {"memory copy", "GB/s", 1e-9},
        [MR_MACHINE_CRC] = {"CRC32C", "GB/s", 1e-9},
        [MR_MACHINE_READ] = {"read and check samples", "GB/s", 1e-9},
        [MR_MACHINE_DECODE] = {"read and full decode", "pictures/s", 1},
    };
    rate_lane lanes[THREADS_MOST];
    mr_measure_config mine;
    mr_decode_config limits;
    MRI_OWN(err, src);
    int rc = mri_result_check(out, err);
    if (rc == MR_OK) rc = mri_measure_settings(&mine, cfg, err);
    if (rc == MR_OK) rc = mri_decode_settings(&limits, decode, err);
    if (rc) return rc;
    if ((uint32_t)which > MR_MACHINE_DECODE)
        return mr_error_set(err, MR_EINVAL, "which is %d: expected 0 to %d", (int)which, MR_MACHINE_DECODE);
    const uint32_t asked = workers ? workers : mr_cores();
    mr_machine_rate rate = {.name = kinds[which].name,
                            .unit = kinds[which].unit,
                            .threads = asked < THREADS_MOST ? asked : THREADS_MOST};
    memset(lanes, 0, sizeof lanes);
    for (uint32_t t = 0; t < rate.threads; t++)
        lanes[t] = (rate_lane){.which = which,
                               .lanes = rate.threads,
                               .src = src,
                               .decode = &limits,
                               .next = t,
                               .seconds = mine.seconds / (mine.rounds + 1),
                               .stop = mine.stop,
                               .err = MR_ERROR_INIT};
    if (has_meaning(which, src)) rc = all_rounds(lanes, mine.rounds, &rate, err);
    if (rc) return rc;
    rate.value *= kinds[which].scale;
    rate.mad *= kinds[which].scale;
    mri_result_give(out, &rate, sizeof rate);
    return MR_OK;
}
