/* tools/trial/measure.c: see measure.h. */
#include "tools/trial/measure.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "settings/limits.h"
#include "tools/cli/clock.h"
#include "tools/cli/exit.h"
#include "tools/cli/interrupt.h"
#include "tools/session/world.h"

static int compare(const void *a, const void *b)
{
    const double x = *(const double *)a, y = *(const double *)b;
    return (x > y) - (x < y);
}

static double middle(double *values, size_t count)
{
    if (count == 0) return 0;
    qsort(values, count, sizeof *values, compare);
    return count % 2 ? values[count / 2] : 0.5 * (values[count / 2 - 1] + values[count / 2]);
}

double median_of(double *values, size_t count, double *mad)
{
    const double m = middle(values, count);
    for (size_t i = 0; i < count; i++) values[i] = fabs(values[i] - m);
    *mad = 1.4826 * middle(values, count);
    return m;
}

/* ---- several processes ---- */

uint32_t measure_own_batch(const tool_session *s, uint32_t batch)
{
    return (uint32_t)(((uint64_t)batch * s->parts.count - 1) / s->parts.all + 1);
}

int measure_slowest(const tool_session *s, measured_rate *rate)
{
    mr_error err = MR_ERROR_INIT;
    const uint32_t size = s->world ? mr_world_size(s->world) : 1;
    if (size == 1) return EXIT_DONE;
    const double times = (double)s->parts.all / s->parts.count;
    rate->samples_per_s *= times;
    rate->samples_per_s_mad *= times;
    measured_rate *all = calloc(size, sizeof *all);
    if (!all) return exit_no_memory("the rates of the ranks");
    const int rc = mr_world_gather(s->world, WORLD_HOST_CALLS, rate, sizeof *rate, all, &err);
    for (uint32_t r = 0; rc == MR_OK && r < size; r++)
        if (all[r].samples_per_s < rate->samples_per_s) *rate = all[r];
    free(all);
    return exit_status(rc, &err);
}

/* ---- loader ---- */

static int take_batch(tool_session *s, mr_stream *const *streams, uint32_t *samples)
{
    mr_error err = MR_ERROR_INIT;
    mr_batch b;
    const int rc = mr_loader_next(s->loader, &b, MR_FOREVER, &err);
    if (rc) return exit_status(rc, &err);
    *samples = b.count;
    mr_loader_release(s->loader, &b, streams);
    return interrupt_flag ? EXIT_SIGNAL + interrupt_flag : EXIT_DONE;
}

/* Whole batches for about `seconds`. */
static int one_round(tool_session *s, mr_stream *const *streams, double seconds, double *rate,
                     uint64_t *batches)
{
    const uint64_t start = clock_ns();
    uint64_t samples = 0, count = 0;
    double passed;
    do {
        uint32_t n = 0;
        const int status = take_batch(s, streams, &n);
        if (status) return status;
        samples += n;
        count++;
        passed = seconds_since(start);
    } while (passed < seconds);
    *rate = (double)samples / passed;
    *batches += count;
    return EXIT_DONE;
}

static int loader_rounds(tool_session *s, mr_stream *const *streams, double seconds, uint32_t rounds,
                         measured_rate *out)
{
    double rates[MRI_ROUNDS_MOST];
    uint32_t ignored;
    int status = EXIT_DONE;
    const mr_loader_info *info = mr_loader_info_of(s->loader);
    memset(out, 0, sizeof *out);
    /* batches prepared before the clock ran, and the first reads */
    out->warmup_steps = info->prefetch + 2;
    out->rounds = rounds < MRI_ROUNDS_MOST ? rounds : MRI_ROUNDS_MOST;
    for (uint64_t i = 0; status == EXIT_DONE && i < out->warmup_steps; i++)
        status = take_batch(s, streams, &ignored);
    for (uint32_t i = 0; status == EXIT_DONE && i < out->rounds; i++)
        status = one_round(s, streams, seconds / out->rounds, &rates[i], &out->steps);
    if (status) return status;
    out->samples_per_s = median_of(rates, out->rounds, &out->samples_per_s_mad);
    out->step_ms = 1e3 * info->batch / out->samples_per_s;
    out->step_ms_mad = out->step_ms * out->samples_per_s_mad / out->samples_per_s;
    return EXIT_DONE;
}

int measure_loader(tool_session *s, double seconds, uint32_t rounds, measured_rate *out)
{
    mr_error err = MR_ERROR_INIT;
    mr_stream *streams[MR_LOADER_MAX_PARTS] = {NULL};
    int rc = MR_OK;
    for (uint32_t d = 0; s->devices && rc == MR_OK && d < s->device_count; d++)
        rc = mr_stream_create(&streams[d], s->devices[d], MR_STREAM_COMPUTE, &err);
    const int status =
        rc ? exit_status(rc, &err) : loader_rounds(s, s->devices ? streams : NULL, seconds, rounds, out);
    for (uint32_t d = 0; d < MR_LOADER_MAX_PARTS; d++) mr_stream_destroy(streams[d]);
    return status;
}

/* ---- trainer ---- */

typedef struct resident_batch {
    mr_batch batch;
    mr_part parts[MR_LOADER_MAX_PARTS];
    void *pixels[MR_LOADER_MAX_PARTS], *labels[MR_LOADER_MAX_PARTS], *affine[MR_LOADER_MAX_PARTS];
    mr_event *ready[MR_LOADER_MAX_PARTS];
} resident_batch;

static void fill_noise(uint8_t *p, size_t bytes, uint64_t x)
{
    x = x * 2862933555777941757u + 3037000493u;
    for (size_t i = 0; i < bytes; i++) {
        x ^= x << 13;
        x ^= x >> 7;
        x ^= x << 17;
        p[i] = (uint8_t)(x >> 32);
    }
}

static int upload(mr_device *dev, mr_stream *stream, const void *host, size_t bytes, void **out,
                  mr_error *err)
{
    int rc = mr_device_alloc(dev, bytes, out, err);
    if (rc == MR_OK) rc = mr_copy_h2d_async(stream, *out, host, bytes);
    return rc ? rc : mr_stream_sync(stream, err);
}

static int fill_part(const synthetic_batch *in, mr_device *dev, resident_batch *r, uint32_t p, uint32_t first,
                     uint32_t count, mr_error *err)
{
    const bool numbers = in->h == 0; /* sequences of w numbers */
    const size_t pixel_bytes =
        numbers ? (size_t)count * in->w * sizeof(int32_t) : (size_t)count * in->h * in->w * in->c;
    mr_stream *stream = NULL;
    void *pixels = NULL, *labels = NULL, *affine = NULL; /* host memory that copies may use */
    int rc = mr_stream_create(&stream, dev, MR_STREAM_COPY, err);
    if (rc == MR_OK) rc = mr_host_alloc(dev, pixel_bytes, &pixels, err);
    if (rc == MR_OK) rc = mr_host_alloc(dev, count * sizeof(int32_t), &labels, err);
    if (rc == MR_OK) rc = mr_host_alloc(dev, count * 2 * sizeof(float), &affine, err);
    if (rc == MR_OK) {
        fill_noise(pixels, pixel_bytes, in->seed + first + 1);
        for (size_t k = 0; numbers && k < pixel_bytes / sizeof(int32_t); k++)
            ((int32_t *)pixels)[k] = (int32_t)(((uint32_t *)pixels)[k] % in->classes);
        for (uint32_t i = 0; i < count; i++) {
            ((int32_t *)labels)[i] = in->classes ? (int32_t)((first + i) % in->classes) : 0;
            ((float *)affine)[2 * i] = 1.0f / 64;
            ((float *)affine)[2 * i + 1] = -2.0f;
        }
        rc = upload(dev, stream, pixels, pixel_bytes, &r->pixels[p], err);
    }
    if (rc == MR_OK) rc = upload(dev, stream, labels, count * sizeof(int32_t), &r->labels[p], err);
    if (rc == MR_OK && in->uses_affine)
        rc = upload(dev, stream, affine, count * 2 * sizeof(float), &r->affine[p], err);
    if (rc == MR_OK) rc = mr_event_create(&r->ready[p], dev, err); /* never recorded: already over */
    mr_host_free(dev, affine);
    mr_host_free(dev, labels);
    mr_host_free(dev, pixels);
    mr_stream_destroy(stream);
    r->parts[p] = (mr_part){.first = first,
                            .count = count,
                            .pixels = r->pixels[p],
                            .labels = r->labels[p],
                            .affine = r->affine[p],
                            .ready = r->ready[p],
                            .form = MR_PART_PIXELS};
    if (numbers) r->parts[p].field[0] = (mr_batch_field){.data = r->pixels[p], .width = in->w};
    return rc;
}

static int make_resident(const tool_session *s, const synthetic_batch *in, resident_batch *r, mr_error *err)
{
    const uint32_t share = (in->batch - 1) / s->device_count + 1;
    memset(r, 0, sizeof *r);
    r->batch = (mr_batch){
        .count = in->batch, .counted = in->batch, .part_count = s->device_count, .parts = r->parts};
    int rc = MR_OK;
    for (uint32_t p = 0, first = 0; rc == MR_OK && p < s->device_count; p++) {
        const uint32_t left = in->batch - first, count = left < share ? left : share;
        if (count) rc = fill_part(in, s->devices[p], r, p, first, count, err);
        else r->parts[p].first = first;
        first += count;
    }
    return rc;
}

static void free_resident(const tool_session *s, resident_batch *r)
{
    for (uint32_t p = 0; p < s->device_count; p++) {
        mr_event_destroy(r->ready[p]);
        mr_device_free(s->devices[p], r->affine[p]);
        mr_device_free(s->devices[p], r->labels[p]);
        mr_device_free(s->devices[p], r->pixels[p]);
    }
}

enum { AHEAD = 2, WARMUP = 3, STEPS_MOST = 100000 };

/* Steps back to back, at most AHEAD queued; ends[] gets the time each ended, by the device's clock. */
static int run_steps(mr_trainer *t, resident_batch *r, mr_event **events, double seconds, uint64_t *ends,
                     uint64_t *count, mr_error *err)
{
    mr_stream *stream = mr_trainer_streams(t)[0];
    const uint64_t start = clock_ns();
    uint64_t queued = 0, ended = 0;
    int rc = MR_OK;
    for (bool more = true; rc == MR_OK && (more || ended < queued);) {
        if (more) {
            r->batch.step = r->batch.global_step = queued;
            rc = mr_trainer_step(t, &r->batch, err);
            if (rc == MR_OK) rc = mr_event_record(events[queued % (AHEAD + 1)], stream);
            queued++;
        }
        if (rc == MR_OK && (!more || queued - ended > AHEAD)) {
            mr_event *oldest = events[ended % (AHEAD + 1)];
            rc = mr_event_sync(oldest, err);
            if (rc == MR_OK) rc = mr_event_time_ns(oldest, &ends[ended]);
            ended++;
        }
        more = more && !interrupt_flag && queued < STEPS_MOST &&
               (ended < WARMUP + 5 || seconds_since(start) < seconds);
    }
    *count = ended;
    return rc;
}

static int time_steps(tool_session *s, mr_trainer *t, resident_batch *r, const synthetic_batch *in,
                      double seconds, measured_rate *out)
{
    mr_error err = MR_ERROR_INIT;
    mr_event *events[AHEAD + 1] = {NULL};
    uint64_t *ends = calloc(STEPS_MOST + AHEAD, sizeof *ends), count = 0;
    double *steps = calloc(STEPS_MOST + AHEAD, sizeof *steps);
    int rc = ends && steps ? MR_OK : mr_error_set(&err, MR_ENOMEM, "out of memory for step times");
    for (int i = 0; rc == MR_OK && i <= AHEAD; i++) rc = mr_event_create(&events[i], s->devices[0], &err);
    if (rc == MR_OK) rc = run_steps(t, r, events, seconds, ends, &count, &err);
    memset(out, 0, sizeof *out);
    for (uint64_t i = WARMUP; rc == MR_OK && i < count; i++)
        steps[out->steps++] = (double)(ends[i] - ends[i - 1]) * 1e-6;
    if (rc == MR_OK) {
        mr_metrics training, evaluation;
        /* nothing may be queued when the batch goes */
        rc = mr_trainer_metrics(t, &training, &evaluation, &err);
    }
    for (int i = 0; i <= AHEAD; i++) mr_event_destroy(events[i]);
    out->warmup_steps = WARMUP;
    out->rounds = 1;
    out->step_ms = steps ? median_of(steps, out->steps, &out->step_ms_mad) : 0;
    out->samples_per_s = out->step_ms > 0 ? 1e3 * in->batch / out->step_ms : 0;
    out->samples_per_s_mad = out->step_ms > 0 ? out->samples_per_s * out->step_ms_mad / out->step_ms : 0;
    free(ends);
    free(steps);
    if (rc == MR_OK && interrupt_flag) return EXIT_SIGNAL + interrupt_flag;
    return exit_status(rc, &err);
}

int measure_trainer(tool_session *s, const synthetic_batch *in, double seconds, measured_rate *out,
                    measure_then *then, void *context)
{
    mr_error err = MR_ERROR_INIT;
    mr_trainer *t = NULL;
    resident_batch r;
    mr_trainer_config cfg;
    mr_trainer_defaults(&cfg);
    cfg.net = s->net;
    cfg.devices = s->devices;
    cfg.device_count = s->device_count;
    cfg.batch = in->batch;
    cfg.seed = in->seed;
    session_give_rule(s, &cfg);
    cfg.epochs = 1;
    cfg.steps_per_epoch = STEPS_MOST; /* schedules that count epochs stay in the first */
    memcpy(cfg.mean, in->mean, sizeof cfg.mean);
    memcpy(cfg.std, in->std, sizeof cfg.std);
    cfg.uses_affine = in->uses_affine;
    if (s->compute) {
        const int misused = setup_compute(&cfg, s->compute);
        if (misused) return misused;
    }
    int rc = make_resident(s, in, &r, &err);
    if (rc == MR_OK) rc = mr_trainer_open(&t, &cfg, &err);
    int status = rc ? exit_status(rc, &err) : time_steps(s, t, &r, in, seconds, out);
    if (status == EXIT_DONE && then) status = then(context, s, t);
    session_leave_if_it_hangs(t);
    mr_trainer_close(t); /* first: its queued work still reads the batch */
    free_resident(s, &r);
    return status;
}
