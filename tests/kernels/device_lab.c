/* tests/kernels/device_lab.c: see device_lab.h. */
#include "tests/kernels/device_lab.h"

#define GUARD_BYTES                                                                                          \
    1280u /* an odd multiple of MR_DEVICE_ALIGN: buffers are aligned as promised and no better */
#define POISON 0xFF

const struct lab_settings *lab_settings(void)
{
    static struct lab_settings set;
    if (set.devices) return &set;
    const char *devices = getenv("MRT_DEVICES"), *seed = getenv("MRT_SEED");
    set = (struct lab_settings){devices && *devices ? devices : "cpu", getenv("MRT_TF32") != NULL,
                                getenv("MRT_DETERMINISTIC") != NULL, getenv("MRT_QUICK") != NULL,
                                seed ? strtoull(seed, NULL, 10) : 1};
    return &set;
}

static void give_up(const char *what, const mr_error *err)
{
    char text[1024];
    fprintf(stderr, "%s: %s\n", what, mr_error_format(err, text, sizeof text));
    exit(1);
}

void lab_open(struct lab *l, const char *spec, bool reference)
{
    *l = (struct lab){.spec = spec, .reference = reference, .err = MR_ERROR_INIT};
    mr_devices_config cfg;
    mr_devices_defaults(&cfg);
    const char *threads = getenv("MRT_KERNEL_THREADS");
    cfg.compute_threads = threads ? (uint32_t)atoi(threads) : 0;
    cfg.reference = reference;
    cfg.tf32 = lab_settings()->tf32;
    cfg.deterministic = lab_settings()->deterministic;
    if (mr_devices_open(&l->devices, &l->count, spec, &cfg, &l->err)) give_up(spec, &l->err);
    lab_use(l, 0);
}

void lab_leave(struct lab *l)
{
    mr_host_free(l->dev, l->stage);
    l->stage = NULL;
    l->stage_bytes = 0;
    mr_stream_destroy(l->s);
    l->s = NULL;
}

void lab_use(struct lab *l, uint32_t device)
{
    if (l->s) lab_leave(l);
    l->at = device;
    l->dev = l->devices[device];
    if (mr_stream_create(&l->s, l->dev, MR_STREAM_COMPUTE, &l->err)) give_up(l->spec, &l->err);
}

void lab_close(struct lab *l)
{
    lab_leave(l);
    mr_devices_close(l->devices, l->count);
}

void lab_reopen(struct lab *l)
{
    lab_release(l);
    lab_close(l);
    lab_open(l, l->spec, l->reference);
}

void lab_note(struct lab *l, int rc)
{
    if (rc >= 0 || l->rc) return;
    l->rc = rc;
    if (l->err.code != rc) mr_error_set(&l->err, rc, "%s", mr_status_text(rc));
}

void lab_sync(struct lab *l)
{
    const int rc = mr_stream_sync(l->s, l->rc ? NULL : &l->err);
    lab_note(l, rc);
}

/* ---- memory ---- */

static uint8_t *stage(struct lab *l, size_t bytes)
{
    if (bytes <= l->stage_bytes) return l->stage;
    mr_host_free(l->dev, l->stage);
    void *p;
    if (mr_host_alloc(l->dev, bytes * 2, &p, &l->err)) give_up(l->spec, &l->err);
    l->stage = p;
    l->stage_bytes = bytes * 2;
    return l->stage;
}

static void fill(struct lab *l, void *address, uint8_t byte, size_t bytes)
{
    if (!l->rc) lab_note(l, mr_fill_async(l->s, address, byte, bytes));
}

/* Another byte for each buffer, so that a guard copied onto a guard shows. */
static uint8_t guard_of(uint32_t buffer) { return (uint8_t)(0x81 + buffer % 64); }

void *lab_memory(struct lab *l, size_t bytes)
{
    void *block;
    if (l->buffer_count == LAB_BUFFERS) abort();
    if (mr_device_alloc(l->dev, bytes + 2 * GUARD_BYTES, &block, &l->err)) give_up(l->spec, &l->err);
    l->buffers[l->buffer_count++] = (struct lab_buffer){block, bytes};
    fill(l, block, guard_of(l->buffer_count - 1), bytes + 2 * GUARD_BYTES);
    fill(l, (uint8_t *)block + GUARD_BYTES, POISON, bytes);
    return (uint8_t *)block + GUARD_BYTES;
}

void *lab_zeros(struct lab *l, size_t bytes)
{
    void *p = lab_memory(l, bytes);
    fill(l, p, 0, bytes);
    return p;
}

void lab_put(struct lab *l, void *address, const void *host, size_t bytes)
{
    if (l->rc || bytes == 0) return;
    uint8_t *from = stage(l, bytes);
    memcpy(from, host, bytes);
    lab_note(l, mr_copy_h2d_async(l->s, address, from, bytes));
    lab_sync(l);
}

void lab_get(struct lab *l, void *host, const void *address, size_t bytes)
{
    memset(host, POISON, bytes);
    if (l->rc || bytes == 0) return;
    uint8_t *to = stage(l, bytes);
    lab_note(l, mr_copy_d2h_async(l->s, to, address, bytes));
    lab_sync(l);
    if (!l->rc) memcpy(host, to, bytes);
}

void *lab_copy_of(struct lab *l, const void *host, size_t bytes)
{
    void *p = lab_memory(l, bytes);
    lab_put(l, p, host, bytes);
    return p;
}

static bool all_are(struct lab *l, const void *address, uint8_t byte, size_t bytes)
{
    uint8_t *copy = malloc(bytes + 1);
    if (!copy) abort();
    lab_get(l, copy, address, bytes);
    bool same = true;
    for (size_t i = 0; i < bytes && same; i++) same = copy[i] == byte;
    free(copy);
    return same || l->rc;
}

bool lab_untouched(struct lab *l, const void *address, size_t bytes)
{
    return bytes == 0 || all_are(l, address, POISON, bytes);
}

const char *lab_release(struct lab *l)
{
    static char text[96];
    const char *broken = NULL;
    lab_sync(l);
    while (l->buffer_count > 0) {
        const uint32_t at = --l->buffer_count;
        const struct lab_buffer b = l->buffers[at];
        const bool before = all_are(l, b.block, guard_of(at), GUARD_BYTES);
        const bool after = all_are(l, b.block + GUARD_BYTES + b.bytes, guard_of(at), GUARD_BYTES);
        if (!before || !after) {
            snprintf(text, sizeof text, "bytes %s buffer %u (%zu bytes) were written",
                     before ? "behind" : "before", at, b.bytes);
            broken = text;
        }
        mr_device_free(l->dev, b.block);
    }
    return broken;
}

/* ---- host memory ---- */

struct chunk {
    struct chunk *next;
    _Alignas(16) uint8_t data[];
};
static struct chunk *chunks;

void *lab_host(size_t bytes)
{
    struct chunk *c = calloc(1, sizeof *c + bytes + 16);
    if (!c) abort();
    c->next = chunks;
    chunks = c;
    return c->data;
}

float *lab_floats(size_t count) { return lab_host(count * sizeof(float)); }

static struct {
    const struct lab *l;
    mr_tensor t;
    uint32_t *map;
} maps[8]; /* found in this case */
static uint32_t map_count;

void lab_host_reset(void)
{
    map_count = 0;
    while (chunks) {
        struct chunk *next = chunks->next;
        free(chunks);
        chunks = next;
    }
}

float *lab_noise(size_t count, uint64_t seed, uint32_t dtype)
{
    float *f = lab_floats(count);
    for (size_t i = 0; i < count; i++) {
        const uint64_t bits = mri_mix64((seed + 1000 * lab_settings()->seed) * 1000003u + i);
        f[i] = lab_round((float)((double)(bits >> 40) / 8388608.0 - 1.0), dtype);
        if (f[i] == 0) f[i] = 0.5f;
    }
    return f;
}

/* ---- types ---- */

static uint32_t bits_of(float x)
{
    uint32_t u;
    memcpy(&u, &x, sizeof u);
    return u;
}

static float float_of(uint32_t u)
{
    float x;
    memcpy(&x, &u, sizeof x);
    return x;
}

static uint16_t bf16_of(float x)
{
    const uint32_t u = bits_of(x);
    if (isnan(x)) return 0x7FC0;
    return (uint16_t)((u + 0x7FFF + (u >> 16 & 1)) >> 16);
}

/* By arithmetic: the value as a multiple of the step between its neighbours, which rint() rounds to even. */
static uint16_t f16_of(float x)
{
    const uint16_t sign = (uint16_t)(bits_of(x) >> 16 & 0x8000);
    const double size = fabs((double)x);
    if (isnan(x)) return 0x7E00;
    int exponent = size > 0 ? ilogb(size) : -15;
    if (exponent < -14) exponent = -14;
    const double steps = rint(ldexp(size, 10 - exponent)); /* 1024 .. 2048 for normal numbers */
    if (exponent > 15 || (exponent == 15 && steps >= 2048)) return sign | 0x7C00;
    return (uint16_t)(sign | (uint16_t)((exponent + 14) * 1024 + (int)steps)); /* a carry runs into the
                                                                                  exponent as it should */
}

static float from_f16(uint16_t h)
{
    const int exponent = h >> 10 & 31, fraction = h & 1023;
    const double size = exponent == 31 ? (fraction ? (double)NAN : (double)INFINITY)
                        : exponent     ? ldexp(1024 + fraction, exponent - 25)
                                       : ldexp(fraction, -24);
    return (float)(h & 0x8000 ? -size : size);
}

float lab_round(float x, uint32_t dtype)
{
    if (dtype == MR_TENSOR_BF16) return float_of((uint32_t)bf16_of(x) << 16);
    return dtype == MR_TENSOR_F16 ? from_f16(f16_of(x)) : x;
}

const char *lab_type_name(uint32_t dtype)
{
    return dtype == MR_TENSOR_BF16  ? "bf16"
           : dtype == MR_TENSOR_F16 ? "f16"
           : dtype == MR_TENSOR_U8  ? "u8"
                                    : "f32";
}

static void encode(uint8_t *to, size_t at, float x, uint32_t dtype)
{
    const uint16_t half = dtype == MR_TENSOR_BF16 ? bf16_of(x) : f16_of(x);
    if (dtype == MR_TENSOR_F32) memcpy(to + at * 4, &x, 4);
    else memcpy(to + at * 2, &half, 2);
}

static float decode(const uint8_t *from, size_t at, uint32_t dtype)
{
    uint32_t u = 0;
    memcpy(&u, from + at * mr_tensor_element_bytes(dtype), mr_tensor_element_bytes(dtype));
    return dtype == MR_TENSOR_F32    ? float_of(u)
           : dtype == MR_TENSOR_BF16 ? float_of(u << 16)
                                     : from_f16((uint16_t)u);
}

/* ---- layouts ---- */

static void map_planes(uint32_t *map, const mr_tensor *t)
{
    const size_t pixels = (size_t)t->h * t->w;
    for (size_t p = 0; p < pixels; p++)
        for (uint32_t c = 0; c < t->c; c++) map[c * pixels + p] = (uint32_t)(p * t->c + c) + 1;
}

/* A layout that means something to the device only: one unit of a dense layer gets the canonical numbers as
 * weights; the gradient to its input is then these numbers in the order in which the device stores them. */
static void map_by_asking(struct lab *l, uint32_t *map, const mr_tensor *t)
{
    const mr_op_desc d = {.kind = MR_OP_DENSE,
                          .in = *t,
                          .max_batch = 1,
                          .training = true,
                          .need_dx = true,
                          .dense.units = 1,
                          .dense.no_bias = true};
    const size_t count = lab_elements(t), stored = t->sample_bytes / 4;
    mr_op *op;
    const int rc = mr_op_create(&op, l->dev, &d, &l->err);
    lab_note(l, rc);
    if (rc) return;
    const mr_op_info *info = mr_op_info_of(op);
    float *w = lab_floats(count), one = 1, *dx = lab_floats(stored);
    for (size_t i = 0; i < count; i++) w[i] = (float)(i + 1);
    void *weights = lab_memory(l, info->param[0].storage_count * 4), *x = lab_zeros(l, t->sample_bytes),
         *out = lab_memory(l, t->sample_bytes);
    lab_sync(l); /* importing is not queued on the stream: work queued for this memory must be over */
    if (!l->rc) lab_note(l, mr_op_param_import(op, false, 0, weights, w, &l->err));
    mr_op_args a = {.n = 1,
                    .x = x,
                    .y = lab_memory(l, info->out.sample_bytes),
                    .dx = out,
                    .param = {weights},
                    .dparam = {lab_memory(l, info->param[0].storage_count * 4)},
                    .scratch = lab_memory(l, info->scratch_bytes),
                    .saved = lab_memory(l, info->saved_bytes),
                    .training = true,
                    .dy = lab_copy_of(l, &one, 4)};
    if (!l->rc) lab_note(l, mr_op_forward_async(op, l->s, &a));
    if (!l->rc) lab_note(l, mr_op_backward_async(op, l->s, &a));
    lab_get(l, dx, out, t->sample_bytes);
    for (size_t i = 0; i < stored; i++) map[i] = dx[i] > 0 && dx[i] <= (float)count ? (uint32_t)dx[i] : 0;
    mr_op_destroy(op);
}

static bool same_tensor(const mr_tensor *a, const mr_tensor *b)
{
    return a->h == b->h && a->w == b->w && a->c == b->c && a->dtype == b->dtype && a->layout == b->layout &&
           a->sample_bytes == b->sample_bytes;
}

const uint32_t *lab_map(struct lab *l, const mr_tensor *t)
{
    for (uint32_t i = 0; i < map_count; i++)
        if (maps[i].l == l && same_tensor(&maps[i].t, t)) return maps[i].map;
    const size_t stored = t->sample_bytes / mr_tensor_element_bytes(t->dtype);
    uint32_t *map = lab_host(stored * sizeof *map);
    if (t->layout == MR_LAYOUT_NHWC)
        for (size_t i = 0; i < stored; i++) map[i] = i < lab_elements(t) ? (uint32_t)i + 1 : 0;
    else if (t->layout == MR_LAYOUT_NCHW) map_planes(map, t);
    else map_by_asking(l, map, t);
    size_t known = 0;
    for (size_t i = 0; i < stored; i++) known += map[i] > 0;
    if (known != lab_elements(t) && !l->rc)
        lab_note(l, mr_error_set(&l->err, MR_EDEVICE, "layout %u of %u x %u x %u: %zu places found",
                                 t->layout, t->h, t->w, t->c, known));
    if (map_count < MRI_ARRAY_COUNT(maps)) {
        maps[map_count].l = l;
        maps[map_count].t = *t;
        maps[map_count++].map = map;
    }
    return map;
}

mr_tensor lab_own_layout(struct lab *l, const mr_tensor *nhwc)
{
    const mr_op_desc d = {.kind = MR_OP_CONV2D,
                          .in = *nhwc,
                          .max_batch = 5,
                          .conv2d.filters = nhwc->c,
                          .conv2d.window = {1, 1, 1, 1, 0, 0, 0, 0}};
    mr_error err = MR_ERROR_INIT;
    mr_op *op;
    if (mr_op_create(&op, l->dev, &d, &err)) return *nhwc;
    const mr_tensor t = mr_op_info_of(op)->out;
    mr_op_destroy(op);
    return t;
}

mr_tensor lab_like(struct lab *l, const mr_tensor *t, uint32_t c)
{
    const mr_tensor plain = lab_nhwc(t->h, t->w, c, t->dtype);
    if (c == t->c) return *t;
    return t->layout == MR_LAYOUT_NHWC ? plain : lab_own_layout(l, &plain);
}

void lab_store(struct lab *l, const mr_tensor *t, uint32_t n, void *address, const float *canonical)
{
    const uint32_t *map = lab_map(l, t);
    const size_t stored = t->sample_bytes / mr_tensor_element_bytes(t->dtype), count = lab_elements(t);
    uint8_t *bytes = lab_host(t->sample_bytes * n);
    for (size_t i = 0; i < stored * n; i++) {
        const uint32_t at = map[i % stored];
        if (at) encode(bytes, i, canonical[i / stored * count + at - 1], t->dtype);
    }
    lab_put(l, address, bytes, t->sample_bytes * n);
}

void lab_load(struct lab *l, const mr_tensor *t, uint32_t n, const void *address, float *canonical,
              bool *clean)
{
    const uint32_t *map = lab_map(l, t);
    const size_t stored = t->sample_bytes / mr_tensor_element_bytes(t->dtype), count = lab_elements(t);
    uint8_t *bytes = lab_host(t->sample_bytes * n);
    lab_get(l, bytes, address, t->sample_bytes * n);
    for (size_t i = 0; i < stored * n; i++) {
        const uint32_t at = map[i % stored];
        const float x = decode(bytes, i, t->dtype);
        if (at) canonical[i / stored * count + at - 1] = x;
        else if (x != 0) *clean = false;
    }
}

double lab_error(const float *a, const float *b, size_t count, double floor)
{
    double apart = 0, size = 0;
    for (size_t i = 0; i < count; i++) {
        if (!isfinite(a[i])) return (double)INFINITY;
        apart += ((double)a[i] - (double)b[i]) * ((double)a[i] - (double)b[i]);
        size += (double)b[i] * (double)b[i];
    }
    const double least = floor * sqrt((double)count), norm = sqrt(size);
    return count ? sqrt(apart) / (norm > least ? norm : least) : 0;
}

/* ---- what came out ---- */

struct failure {
    char text[320];
};
static struct {
    char name[64], worst[128], skipped[256];
    uint32_t cases, failed;
    double error;
} group;
static struct failure *failures;
static uint32_t failure_count, case_count;

void lab_group_begin(const char *name, uint32_t dtype)
{
    memset(&group, 0, sizeof group);
    snprintf(group.name, sizeof group.name, "%s %s", name, lab_type_name(dtype));
}

void lab_group_skip(const char *why)
{
    if (!group.skipped[0]) snprintf(group.skipped, sizeof group.skipped, "%s", why);
}

void lab_fail(const char *which, const char *what, const char *text)
{
    struct failure *all = realloc(failures, (failure_count + 1) * sizeof *all);
    if (!all) abort();
    failures = all;
    snprintf(failures[failure_count++].text, sizeof failures->text, "%-20s %-52s %-10s %s", group.name, which,
             what, text);
    group.failed++;
}

void lab_check(const char *which, const char *what, double error, double tolerance)
{
    char text[64];
    if (!(error <= group.error)) {
        group.error = error;
        snprintf(group.worst, sizeof group.worst, "%s of %s", what, which);
    }
    if (error <= tolerance) return;
    snprintf(text, sizeof text, "error %.3g, allowed %.3g", error, tolerance);
    lab_fail(which, what, text);
}

void lab_case_done(void)
{
    group.cases++;
    case_count++;
}

void lab_group_end(void)
{
    if (group.cases == 0)
        printf("%-22s not run: %s\n", group.name, group.skipped[0] ? group.skipped : "no cases");
    else {
        printf("%-22s %4u cases, %u failures, worst error %.3g%s%s", group.name, group.cases, group.failed,
               group.error, group.worst[0] ? ": " : "", group.worst);
        printf(group.skipped[0] ? "; some not run: %s\n" : "%s\n", group.skipped);
    }
    fflush(stdout);
}

int lab_report(void)
{
    for (uint32_t i = 0; i < failure_count; i++) printf("%s%s\n", i ? "" : "\nfailures:\n", failures[i].text);
    printf("%u cases, %u failures\n", case_count, failure_count);
    free(failures);
    failures = NULL;
    return failure_count ? 1 : 0;
}
