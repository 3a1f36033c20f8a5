/* run/measure/measure.c: rates of a loader and of a trainer, and settings of the other measurements.
 *
 * The room run/measure/
 *   takes     a loader; settings of a trainer; a trainer; a source
 *   gives     rates of a loader and of a trainer, and a median; rates of the machine (machine_rates.c);
 *             passes of convolutions (pass_times.c)
 *   callers   programs, run/forms/ */
#include "run/measure/measure_settings.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "base/abi.h"
#include "base/util.h"
#include "settings/limits.h"
#include "train/net/net.h"

int mri_measure_stopped(mr_error *err) { return mr_error_set(err, MR_ECANCELED, "stopped by its caller"); }

/* ---- settings ---- */

static const mr_measure_config standard = {.struct_size = sizeof standard, .seconds = 1, .rounds = 5};

void mr_measure_defaults_sized(mr_measure_config *cfg, size_t struct_size)
{
    mri_settings_give(cfg, struct_size, &standard, sizeof standard);
}

int mri_measure_settings(mr_measure_config *mine, const mr_measure_config *cfg, mr_error *err)
{
    *mine = standard;
    const int rc = cfg ? mri_settings_take(mine, sizeof *mine, cfg, "measure", err) : MR_OK;
    if (rc) return rc;
    if (!(mine->seconds >= 0 && isfinite(mine->seconds)))
        return mr_error_set(err, MR_EINVAL, "seconds is %g: expected a finite number, 0 or above",
                            mine->seconds);
    if (mine->rounds < 1 || mine->rounds > MRI_ROUNDS_MOST)
        return mr_error_set(err, MR_EINVAL, "rounds is %u: expected 1 to %d", mine->rounds, MRI_ROUNDS_MOST);
    return MR_OK;
}

/* ---- medians ---- */

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

double mr_measure_median(double *values, size_t count, double *mad)
{
    if (!values) count = 0;
    const double m = middle(values, count);
    for (size_t i = 0; i < count; i++) values[i] = fabs(values[i] - m);
    if (mad) *mad = 1.4826 * middle(values, count);
    return m;
}

/* ---- loader ---- */

typedef struct loader_run {
    mr_loader *loader;
    mr_stream *const *streams; /* or NULL */
    const mr_measure_config *cfg;
} loader_run;

static int take_batch(const loader_run *r, uint32_t *samples, mr_error *err)
{
    mr_batch b;
    const int rc = mr_loader_next(r->loader, &b, MR_FOREVER, err);
    if (rc) return rc;
    *samples = b.count;
    mr_loader_release(r->loader, &b, r->streams);
    return mri_is_stopped(r->cfg->stop) ? mri_measure_stopped(err) : MR_OK;
}

/* Whole batches for about `seconds`. */
static int one_round(const loader_run *r, double seconds, double *rate, uint64_t *batches, mr_error *err)
{
    const uint64_t start = mri_now_ns();
    uint64_t samples = 0, count = 0;
    double passed;
    do {
        uint32_t n = 0;
        const int rc = take_batch(r, &n, err);
        if (rc) return rc;
        samples += n;
        count++;
        passed = mri_measure_since(start);
    } while (passed < seconds);
    *rate = (double)samples / passed;
    *batches += count;
    return MR_OK;
}

static int loader_rounds(const loader_run *r, mr_rate *out, mr_error *err)
{
    double rates[MRI_ROUNDS_MOST];
    uint32_t ignored;
    int rc = MR_OK;
    const mr_loader_info *info = mr_loader_info_of(r->loader);
    const uint32_t rounds = r->cfg->rounds;
    /* batches prepared before the clock ran, and the first reads */
    out->warmup_steps = info->prefetch + 2;
    out->rounds = rounds;
    for (uint64_t i = 0; rc == MR_OK && i < out->warmup_steps; i++) rc = take_batch(r, &ignored, err);
    for (uint32_t i = 0; rc == MR_OK && i < rounds; i++)
        rc = one_round(r, r->cfg->seconds / rounds, &rates[i], &out->steps, err);
    if (rc) return rc;
    out->samples_per_s = mr_measure_median(rates, rounds, &out->samples_per_s_mad);
    out->step_ms = 1e3 * info->batch / out->samples_per_s;
    out->step_ms_mad = out->step_ms * out->samples_per_s_mad / out->samples_per_s;
    return MR_OK;
}

int mr_measure_loader_sized(mr_loader *l, mr_device *const *devices, uint32_t device_count,
                            const mr_measure_config *cfg, mr_rate *out, mr_error *err)
{
    mr_stream *streams[MR_LOADER_MAX_PARTS] = {NULL};
    mr_measure_config mine;
    mr_rate rate = {0};
    MRI_GIVEN(err, l);
    int rc = mri_result_check(out, err);
    if (rc == MR_OK) rc = mri_measure_settings(&mine, cfg, err);
    if (rc == MR_OK && devices && device_count > MR_LOADER_MAX_PARTS)
        rc = mr_error_set(err, MR_EINVAL, "%u devices: expected at most %d", device_count,
                          MR_LOADER_MAX_PARTS);
    for (uint32_t d = 0; devices && rc == MR_OK && d < device_count; d++)
        rc = mr_stream_create(&streams[d], devices[d], MR_STREAM_COMPUTE, err);
    const loader_run r = {.loader = l, .streams = devices ? streams : NULL, .cfg = &mine};
    if (rc == MR_OK) rc = loader_rounds(&r, &rate, err);
    for (uint32_t d = 0; d < MR_LOADER_MAX_PARTS; d++) mr_stream_destroy(streams[d]);
    if (rc == MR_OK) mri_result_give(out, &rate, sizeof rate);
    return rc;
}

/* ---- trainer ---- */

/* The content of the batch. */
typedef struct noise {
    mr_device *const *devices;
    uint32_t device_count;
    uint32_t batch, h, w, c, classes; /* h 0: sequences of w numbers below classes; 0: labels are 0 */
    bool uses_affine;
    uint64_t seed;
    double seconds;
    const volatile int *stop;
} noise;

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

static int fill_part(const noise *in, mr_device *dev, resident_batch *r, uint32_t p, uint32_t first,
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

static int make_resident(const noise *in, resident_batch *r, mr_error *err)
{
    const uint32_t share = (in->batch - 1) / in->device_count + 1;
    memset(r, 0, sizeof *r);
    r->batch = (mr_batch){
        .count = in->batch, .counted = in->batch, .part_count = in->device_count, .parts = r->parts};
    int rc = MR_OK;
    for (uint32_t p = 0, first = 0; rc == MR_OK && p < in->device_count; p++) {
        const uint32_t left = in->batch - first, count = left < share ? left : share;
        if (count) rc = fill_part(in, in->devices[p], r, p, first, count, err);
        else r->parts[p].first = first;
        first += count;
    }
    return rc;
}

static void free_resident(const noise *in, resident_batch *r)
{
    for (uint32_t p = 0; p < in->device_count; p++) {
        mr_event_destroy(r->ready[p]);
        mr_device_free(in->devices[p], r->affine[p]);
        mr_device_free(in->devices[p], r->labels[p]);
        mr_device_free(in->devices[p], r->pixels[p]);
    }
}

enum { AHEAD = 2, WARMUP = 3, STEPS_MOST = 100000 };

/* Steps back to back, at most AHEAD queued; ends[] gets the time each ended, by the device's clock. */
static int run_steps(mr_trainer *t, const noise *in, resident_batch *r, mr_event **events, uint64_t *ends,
                     uint64_t *count, mr_error *err)
{
    mr_stream *stream = mr_trainer_streams(t)[0];
    const uint64_t start = mri_now_ns();
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
        more = more && !mri_is_stopped(in->stop) && queued < STEPS_MOST &&
               (ended < WARMUP + 5 || mri_measure_since(start) < in->seconds);
    }
    *count = ended;
    return rc;
}

static int time_steps(mr_trainer *t, const noise *in, resident_batch *r, mr_rate *out, mr_error *err)
{
    mr_event *events[AHEAD + 1] = {NULL};
    uint64_t *ends = calloc(STEPS_MOST + AHEAD, sizeof *ends), count = 0;
    double *steps = calloc(STEPS_MOST + AHEAD, sizeof *steps);
    int rc = ends && steps ? MR_OK : mr_error_set(err, MR_ENOMEM, "out of memory for step times");
    for (int i = 0; rc == MR_OK && i <= AHEAD; i++) rc = mr_event_create(&events[i], in->devices[0], err);
    if (rc == MR_OK) rc = run_steps(t, in, r, events, ends, &count, err);
    for (uint64_t i = WARMUP; rc == MR_OK && i < count; i++)
        steps[out->steps++] = (double)(ends[i] - ends[i - 1]) * 1e-6;
    if (rc == MR_OK) {
        mr_metrics training, evaluation;
        /* nothing may be queued when the batch goes */
        rc = mr_trainer_metrics(t, &training, &evaluation, err);
    }
    for (int i = 0; i <= AHEAD; i++) mr_event_destroy(events[i]);
    out->warmup_steps = WARMUP;
    out->rounds = 1;
    out->step_ms = steps ? mr_measure_median(steps, out->steps, &out->step_ms_mad) : 0;
    out->samples_per_s = out->step_ms > 0 ? 1e3 * in->batch / out->step_ms : 0;
    out->samples_per_s_mad = out->step_ms > 0 ? out->samples_per_s * out->step_ms_mad / out->step_ms : 0;
    free(ends);
    free(steps);
    return rc == MR_OK && mri_is_stopped(in->stop) ? mri_measure_stopped(err) : rc;
}

/* The settings without other processes, and schedules that count epochs in the first. */
static int take_trainer(mr_trainer_config *mine, const mr_trainer_config *trainer, mr_error *err)
{
    mr_trainer_defaults(mine);
    const int rc = mri_settings_take(mine, sizeof *mine, trainer, "trainer", err);
    if (rc) return rc;
    if (!mine->devices || mine->device_count < 1 || mine->device_count > MR_LOADER_MAX_PARTS)
        return mr_error_set(err, MR_EINVAL, "%u devices: expected 1 to %d", mine->device_count,
                            MR_LOADER_MAX_PARTS);
    if (mine->batch < 1) return mr_error_set(err, MR_EINVAL, "batch is 0: expected 1 or more");
    if (mine->place)
        return mr_error_set(err, MR_EINVAL, "a network on several devices cannot be measured with this call");
    mine->world = NULL;
    mine->parts = NULL;
    mine->epochs = 1;
    mine->steps_per_epoch = STEPS_MOST;
    return MR_OK;
}

static int check_noise(const noise *in, const mr_net *net, mr_error *err)
{
    const bool numbers = in->h == 0;
    if (net && !numbers && !mr_net_takes_numbers(net) &&
        (in->h != net->h || in->w != net->w || in->c != net->c))
        return mr_error_set(err, MR_EINVAL,
                            "network %s takes pictures of %u x %u x %u, the batch has %u x %u x %u",
                            mr_net_name(net), net->h, net->w, net->c, in->h, in->w, in->c);
    if (net && numbers != mr_net_takes_numbers(net))
        return mr_error_set(err, MR_EINVAL, "network %s takes %s, the batch has %s", mr_net_name(net),
                            numbers ? "pictures" : "numbers", numbers ? "numbers (height 0)" : "pictures");
    if (in->w > 0 && (numbers ? in->classes > 0 : in->c > 0)) return MR_OK;
    return mr_error_set(
        err, MR_EINVAL,
        "a batch of height %u, width %u, channels %u, classes %u: expected pictures, or height 0 "
        "with the length of sequences as width and classes above 0",
        in->h, in->w, in->c, in->classes);
}

int mr_measure_trainer_sized(const mr_trainer_config *trainer, const mr_measure_config *cfg, mr_rate *out,
                             mr_error *err)
{
    mr_trainer *t = NULL;
    resident_batch r;
    mr_trainer_config opened;
    mr_measure_config mine;
    mr_error why = MR_ERROR_INIT;
    mr_rate rate = {0};
    MRI_GIVEN(err, trainer);
    int rc = mri_result_check(out, err);
    if (rc == MR_OK) rc = mri_measure_settings(&mine, cfg, err);
    if (rc == MR_OK) rc = take_trainer(&opened, trainer, err);
    if (rc) return rc;
    const noise in = {.devices = opened.devices,
                      .device_count = opened.device_count,
                      .batch = opened.batch,
                      .h = mine.height,
                      .w = mine.width,
                      .c = mine.channels,
                      .classes = mine.classes,
                      .uses_affine = opened.uses_affine,
                      .seed = opened.seed,
                      .seconds = mine.seconds,
                      .stop = mine.stop};
    rc = check_noise(&in, opened.net, err);
    if (rc) return rc;
    rc = make_resident(&in, &r, &why);
    if (rc == MR_OK) rc = mr_trainer_open(&t, &opened, &why);
    if (rc == MR_OK) rc = time_steps(t, &in, &r, &rate, &why);
    if (rc == MR_OK) mri_result_give(out, &rate, sizeof rate);
    else if (err) *err = why;
    if (t && mine.on_close) mine.on_close(mine.context, t, rc, &why);
    mr_trainer_close(t); /* first: its queued work still reads the batch */
    free_resident(&in, &r);
    return rc;
}
