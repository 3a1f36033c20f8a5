/* Draws a random loader, and prints its settings. They come from the generator in a fixed order: a later draw
 * must not change an earlier one, or a seed means another loader. */
#include "tests/pipeline/loader/random_trial.h"

#include <signal.h>
#include <unistd.h>

enum { MOST_BATCHES = 900 };

/* ---- telling ---- */

static const char *const ending_names[] = {"to the end", "close in the middle", "stop in the middle",
                                           "stop from another thread"};

static char description[4096]; /* of the trial that runs, for a handler of signals */

const char *describe(const trial *t)
{
    static const char
        *const orders[] = {"shuffle", "block", "sequential"},
               *const tails[] = {"keep", "drop", "pad"}, *const ios[] = {"auto", "uring", "pread"},
               *const caches[] = {"off", "memory", "disk"}, *const policies[] = {"stop", "replace", "skip"};
    const mr_loader_config *c = &t->cfg;
    char fields[512] = "";
    size_t n = 0;
    for (uint32_t k = 0; k < c->field_count && n < sizeof fields; k++)
        n += (size_t)snprintf(fields + n, sizeof fields - n, " %s(role %d, most %u, pad %g)",
                              c->fields[k].name, (int)c->fields[k].role, c->fields[k].most, c->fields[k].pad);
    char devices[64] = "none";
    if (c->devices)
        snprintf(devices, sizeof devices, "%u of %s", c->device_count,
                 mr_device_info_of(c->devices[0])->name);
    snprintf(
        description, sizeof description,
        "configuration %llu of seed %llu\n"
        "  data      %s, %llu samples, %u of them damaged\n"
        "  order     %s, block %u, seed %llu, epochs %llu, start at epoch %llu, step %llu, length window %u\n"
        "  batches   %u samples, tail %s, %u parts, devices %s, keep_host %d, "
        "free_order %d, width multiple %u\n"
        "  pixels    %s, training %d, channels %u, %s\n"
        "  fields   %s\n"
        "  loader    prefetch %u, workers %u, readers %u, depth %u, io %s, direct %d, resident "
        "%llu, no_checks %d, traced %d\n"
        "  cache     %s of %llu bytes, filled before %d\n"
        "  bad       %s, at most %llu\n"
        "  consumer  holds up to %u, %s after %llu%s, waits %s, read back behind %u copies\n"
        "  again     MRT_SEED=%llu MRT_RANDOM_FIRST=%llu MRT_RANDOM_LOADERS=1 test_loader_random\n",
        (unsigned long long)t->number, (unsigned long long)t->seed, t->set->name,
        (unsigned long long)mr_source_info_of(t->set->src)->count, t->set->bad_count, orders[c->order],
        c->block, (unsigned long long)c->seed, (unsigned long long)c->epochs,
        (unsigned long long)c->start_epoch, (unsigned long long)c->start_step, c->length_window, c->batch,
        tails[c->tail], c->devices ? c->device_count : c->parts, devices, c->keep_host, c->free_order,
        c->width_multiple, c->augment, c->training, c->channels,
        c->decode.pixels == MR_PIXELS_OWN ? "own" : "libjpeg", fields[0] ? fields : " none", c->prefetch,
        c->workers, c->readers, c->depth, ios[c->io], c->direct, (unsigned long long)c->resident_bytes,
        c->no_checks, t->traced, caches[c->cache], (unsigned long long)c->cache_bytes, t->warm,
        policies[c->bad], (unsigned long long)c->max_bad, t->hold, ending_names[t->end],
        (unsigned long long)t->end_after, t->end == END_STOP_THREAD ? " us" : " batches",
        t->patience == 0   ? "for ever"
        : t->patience == 1 ? "not at all"
                           : "shortly",
        t->lag, (unsigned long long)t->seed, (unsigned long long)t->number);
    return description;
}

/* A hang or a crash: say which configuration it was. */
static void on_signal(int number)
{
    const char *what = number == SIGALRM ? "\nhangs: " : "\ncrashed: ";
    if (write(2, what, strlen(what)) < 0 || write(2, description, strlen(description)) < 0) _exit(1);
    signal(number, SIG_DFL);
    raise(number);
}

void watch_signals(void)
{
    signal(SIGALRM, on_signal);
    if (MRT_SANITIZED) return; /* their own report says more */
    signal(SIGSEGV, on_signal);
    signal(SIGBUS, on_signal);
    signal(SIGABRT, on_signal);
}

void differs(const char *format, ...)
{
    char text[1024];
    va_list args;
    va_start(args, format);
    vsnprintf(text, sizeof text, format, args);
    va_end(args);
    print_error("%s\n%s", text, description);
    fail();
}

void check_ok(int rc, const mr_error *err, const char *what)
{
    char text[1400] = "";
    if (rc != MR_OK) mr_error_format(err, text, sizeof text);
    CHECK(rc == MR_OK, "%s: status %d (%s): %s", what, rc, mr_status_text(rc), text);
}

/* ---- devices ---- */

bank mrt_banks[2];

void open_bank(bank *k, const char *spec)
{
    mr_error err = MR_ERROR_INIT;
    MRT_OK(mr_devices_open(&k->devices, &k->count, spec, NULL, &err), &err);
    MRT_EQ(k->count, MOST_DEVICES);
    for (uint32_t r = 0; r < k->count; r++) {
        MRT_OK(mr_stream_create(&k->stream[r], k->devices[r], MR_STREAM_COMPUTE, &err), &err);
        MRT_OK(mr_device_alloc(k->devices[r], LAG_BYTES, &k->slow[r], &err), &err);
        MRT_OK(mr_host_alloc(k->devices[r], LAG_BYTES, &k->sink[r], &err), &err);
        MRT_OK(mr_fill_async(k->stream[r], k->slow[r], 1, LAG_BYTES), NULL);
    }
}

void close_bank(bank *k)
{
    for (uint32_t r = 0; r < k->count; r++) {
        mr_stream_destroy(k->stream[r]);
        mr_device_free(k->devices[r], k->slow[r]);
        mr_host_free(k->devices[r], k->sink[r]);
    }
    mr_devices_close(k->devices, k->count);
}

/* ---- drawing ---- */

static uint64_t draw(trial *t) /* splitmix64 */
{
    uint64_t x = t->state += UINT64_C(0x9e3779b97f4a7c15);
    x = (x ^ x >> 30) * UINT64_C(0xbf58476d1ce4e5b9);
    x = (x ^ x >> 27) * UINT64_C(0x94d049bb133111eb);
    return x ^ x >> 31;
}
uint32_t below(trial *t, uint64_t n) { return (uint32_t)(draw(t) % n); }
static bool one_in(trial *t, uint32_t n) { return below(t, n) == 0; }

#define PICK(t, ...)                                                                                         \
    (((const uint64_t[]){__VA_ARGS__})[below(t, sizeof((const uint64_t[]){__VA_ARGS__}) / sizeof(uint64_t))])

uint64_t samples_of(const trial *t) { return mr_source_info_of(t->set->src)->count; }

uint64_t steps_of(const trial *t)
{
    const uint64_t n = samples_of(t), batch = t->cfg.batch;
    return n / batch + (n % batch && t->cfg.tail != MR_TAIL_DROP);
}

static void draw_batches(trial *t)
{
    mr_loader_config *c = &t->cfg;
    const uint64_t n = samples_of(t);
    c->batch = (uint32_t)PICK(t, 1, 2, 3, 5, 7, 8, 16, 31, 64, n > 1 ? n - 1 : 1, n, n + 1, 2 * n + 3,
                              n / 2 + 1, 257);
    if (n / c->batch > MOST_BATCHES / 4) c->batch = (uint32_t)(n / 20 + below(t, 60));
    c->tail = (mr_tail)below(t, 3);
    c->order = (mr_order)below(t, 3);
    c->block = (uint32_t)PICK(t, 1, 3, 5, 16, 256);
    c->seed = one_in(t, 4) ? draw(t) : below(t, 4);
    t->epochs = 1 + below(t, 4);
    while (t->epochs > 1 && t->epochs * steps_of(t) > MOST_BATCHES) t->epochs--;
    c->epochs = t->epochs;
    const uint64_t steps = steps_of(t);
    if (one_in(t, 2) && steps > 0) {
        c->start_epoch = below(t, t->epochs);
        c->start_step = below(t, steps + 1);
    }
}

static void draw_samples(trial *t)
{
    mr_loader_config *c = &t->cfg;
    const data_set *s = t->set;
    uint32_t augments = 0;
    while (augments < COUNT_OF(s->augment) && s->augment[augments]) augments++;
    c->augment = s->augment[below(t, augments)];
    c->training = !one_in(t, 3);
    if (mr_source_info_of(s->src)->image_field >= 0) c->channels = (uint32_t)PICK(t, 0, 0, 1, 3);
    if (s->jpegs && one_in(t, 6)) c->decode.pixels = MR_PIXELS_LIBJPEG;
    const uint32_t k = below(t, 3);
    c->fields = s->fields[k];
    c->field_count = s->field_count[k];
    c->width_multiple = (uint32_t)PICK(t, 1, 1, 3, 8);
    if (mr_source_info_of(s->src)->image_field < 0 && one_in(t, 2))
        c->length_window = (uint32_t)PICK(t, 1, 2, 3, 7, 100);
    c->bad = s->bad_count ? (mr_bad)below(t, 3) : one_in(t, 4) ? MR_BAD_SKIP : MR_BAD_STOP;
    c->max_bad = PICK(t, 100, 100, 0, 1, 2, 3);
    c->no_checks = s->bad_count == 0 && one_in(t, 8);
}

static void draw_threads(trial *t)
{
    mr_loader_config *c = &t->cfg;
    c->prefetch = below(t, 7);
    c->workers = below(t, 6);
    c->readers = below(t, 4);
    c->depth = (uint32_t)PICK(t, 1, 2, 3, 8, 32, 40);
    c->io = (mr_io)below(t, 3);
    c->direct = one_in(t, 4);
    c->resident_bytes = one_in(t, 2) ? 0 : UINT64_C(1) << 30;
    if (t->set->cached && !c->field_count && one_in(t, 2)) {
        c->cache = one_in(t, 2) ? MR_CACHE_MEMORY : MR_CACHE_DISK;
        c->cache_bytes = PICK(t, 3000, 30000, 1 << 20, 16 << 20);
        t->warm = c->cache == MR_CACHE_DISK && one_in(t, 2);
        snprintf(t->folder, sizeof t->folder, "%s", mrt_path("cache"));
        c->cache_folder = t->folder;
        if (!one_in(t, 4)) c->resident_bytes = 0; /* or the cache has no sense */
    }
    if (one_in(t, 3)) {
        t->device_kind = one_in(t, 4);
        c->devices = mrt_banks[t->device_kind].devices;
        c->device_count = 1 + below(t, MOST_DEVICES);
        c->keep_host = one_in(t, 2);
        t->lag = (uint32_t)PICK(t, 0, 0, 1, 3);
    } else {
        c->parts = 1 + below(t, 7);
        c->free_order = one_in(t, 6) && t->set->bad_count == 0; /* with damage it would not be known what
                                                                   comes */
    }
    t->traced = one_in(t, 8);
}

uint64_t start_of(const trial *t) { return t->cfg.start_epoch * steps_of(t) + t->cfg.start_step; }

static void draw_consumer(trial *t)
{
    const uint32_t room = t->cfg.prefetch == 0 ? 1 : t->cfg.devices ? 2 : t->cfg.prefetch + 1;
    t->hold = 1 + below(t, room);
    t->patience = below(t, 3);
    t->end = one_in(t, 2) ? END_ALL : (ending)below(t, 4);
    const uint64_t all = t->epochs * steps_of(t) - start_of(t);
    t->end_after = t->end == END_ALL ? all : t->end == END_STOP_THREAD ? below(t, 3000) : draw(t) % (all + 1);
    if (t->end != END_ALL && one_in(t, 3)) t->cfg.epochs = UINT64_MAX;
}

void draw_trial(trial *t, uint64_t seed, uint64_t number)
{
    *t = (trial){.seed = seed, .number = number, .state = seed * UINT64_C(0xd1342543de82ef95) + number};
    draw(t);
    t->set = &mrt_sets[below(t, mrt_set_count)];
    mr_loader_defaults(&t->cfg);
    draw_batches(t);
    draw_samples(t);
    draw_threads(t);
    if (steps_of(t) > 0) draw_consumer(t);
}
