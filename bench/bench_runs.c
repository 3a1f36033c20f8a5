/* bench/bench_runs.c: many runs in one process. Each opens data, devices, loaders, a network and a trainer,
 * trains a few steps, validates, saves, loads and closes everything; a small convolutional network and a
 * small recurrent one in turns. After everything is closed the process's resources must not have grown:
 * descriptors, threads, mapped regions, memory in use, resident memory. A line of JSON after runs 1, 10, 20,
 * 50, 100, ... and after the last.
 *
 *   bench_runs [RUNS]       1000
 *
 * Exit status 1: it holds more after the last run than after the first tenth of them (MORE_... below). Under
 * a sanitizer memory is not judged here: the sanitizer reports leaks itself. */
#include <dirent.h>
#include <malloc.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

#include "millrace/train.h"

enum { SIDE = 12, CLASSES = 4, SAMPLES = 60, LENGTH = 7, VALUES = 11, BATCH = 16, STEPS = 5 };
enum { MORE_USED_BYTES = 1024, MORE_RESIDENT_BYTES = 2 << 20 };

#if defined(__has_feature)
#define HAS(feature) __has_feature(feature)
#else
#define HAS(feature) 0
#endif
#if defined(__SANITIZE_ADDRESS__) || defined(__SANITIZE_THREAD__) || HAS(address_sanitizer) ||               \
    HAS(thread_sanitizer)
enum { COUNTS_MEMORY = false }; /* a sanitizer keeps freed memory, and reports leaks */
#else
enum { COUNTS_MEMORY = true };
#endif

static char folder[512];

static void ok(int rc, const mr_error *err)
{
    char text[1024];
    if (rc == MR_OK) return;
    fprintf(stderr, "bench_runs: %s\n", err ? mr_error_format(err, text, sizeof text) : mr_status_text(rc));
    exit(2);
}

static const char *in_folder(const char *name)
{
    static char path[600];
    snprintf(path, sizeof path, "%s/%s", folder, name);
    return path;
}

/* ---- data ---- */

static void write_pictures(void)
{
    static const mr_field fields[] = {
        {.name = "image", .type = MR_TYPE_PIXELS, .ndim = 3, .dim = {SIDE, SIDE, 1}},
        {.name = "label", .type = MR_TYPE_INT}};
    mr_error err = MR_ERROR_INIT;
    mr_writer_config cfg;
    mr_writer *w;
    uint8_t pixels[SIDE * SIDE];
    mr_writer_defaults(&cfg);
    cfg.fields = fields;
    cfg.field_count = 2;
    ok(mr_writer_open(&w, in_folder("pictures.mrec"), &cfg, NULL, &err), &err);
    for (uint64_t i = 0; i < SAMPLES; i++) {
        const mr_value values[] = {{.type = MR_TYPE_PIXELS,
                                    .ndim = 3,
                                    .dim = {SIDE, SIDE, 1},
                                    .data = pixels,
                                    .bytes = sizeof pixels},
                                   {.type = MR_TYPE_INT, .i = (int64_t)(i % CLASSES)}};
        for (size_t k = 0; k < sizeof pixels; k++) pixels[k] = (uint8_t)(i * 37 + k * (1 + i % CLASSES));
        ok(mr_writer_append(w, i, values, &err), &err);
    }
    ok(mr_writer_finish(w, &err), &err);
}

static void write_numbers(void)
{
    FILE *f = fopen(in_folder("numbers.txt"), "we");
    for (unsigned i = 0; f && i < SAMPLES; i++)
        for (unsigned k = 0; k <= LENGTH; k++)
            fprintf(f, "%u%c", k < LENGTH ? (i * 7 + k * k) % VALUES : i % CLASSES, k < LENGTH ? ' ' : '\n');
    if (!f || fclose(f) != 0) {
        perror(in_folder("numbers.txt"));
        exit(2);
    }
}

/* ---- a run ---- */

typedef struct kind {
    const char *data;
    bool numbers;
} kind;
static const kind kinds[] = {{"pictures.mrec", false}, {"numbers.txt", true}};

static mr_net *build(const kind *k)
{
    mr_error err = MR_ERROR_INIT;
    mr_net *net;
    if (k->numbers) {
        ok(mr_net_create_numbers(&net, "recurrent", LENGTH, VALUES), NULL);
        mr_net_gru(net, 12, true);
        mr_net_lstm(net, 8, false);
    } else {
        ok(mr_net_create(&net, "convolutional", SIDE, SIDE, 1), NULL);
        mr_net_conv2d(net, 8, 3, 1, MR_PAD_SAME, MR_ACT_RELU);
        mr_net_batch_norm(net, 0.9f, 1e-3f, MR_ACT_RELU);
        mr_net_max_pool(net, 2, 2);
        mr_net_dropout(net, 0.25f);
    }
    mr_net_dense(net, CLASSES, MR_ACT_NONE);
    ok(mr_net_check(net, &err), &err);
    return net;
}

static mr_loader *open_loader(const kind *k, const mr_source *src, mr_device *const *devices, uint32_t count,
                              bool training)
{
    mr_error err = MR_ERROR_INIT;
    mr_loader *l;
    mr_loader_config cfg;
    const mr_source_info *info = mr_source_info_of(src);
    mr_loader_field field = {.most = LENGTH, .pad = -1};
    mr_loader_defaults(&cfg);
    cfg.batch = BATCH;
    cfg.epochs = UINT64_MAX;
    cfg.training = training;
    cfg.order = training ? MR_ORDER_SHUFFLE : MR_ORDER_SEQUENTIAL;
    cfg.workers = 2;
    cfg.devices = devices;
    cfg.device_count = count;
    if (k->numbers) {
        field.name = info->fields[info->length_field].name;
        cfg.fields = &field;
        cfg.field_count = 1;
        cfg.width_multiple = LENGTH;
    }
    ok(mr_loader_open(&l, src, &cfg, &err), &err);
    return l;
}

static mr_trainer *open_trainer(const mr_net *net, const mr_loader_info *info, mr_device *const *devices,
                                uint32_t count)
{
    mr_error err = MR_ERROR_INIT;
    mr_trainer *t;
    mr_trainer_config cfg;
    mr_trainer_defaults(&cfg);
    cfg.net = net, cfg.devices = devices, cfg.device_count = count, cfg.batch = info->batch;
    cfg.update = (mr_update_desc){
        .kind = MR_UPDATE_ADAM, .lr = 1e-3f, .beta1 = 0.9f, .beta2 = 0.999f, .epsilon = 1e-7f};
    cfg.schedule = (mr_schedule){.kind = MR_LR_CONSTANT, .lr = 1e-3f};
    memcpy(cfg.mean, info->mean, sizeof cfg.mean);
    memcpy(cfg.std, info->std, sizeof cfg.std);
    cfg.average = 0.9f;
    ok(mr_trainer_open(&t, &cfg, &err), &err);
    return t;
}

static void run(const kind *k)
{
    mr_error err = MR_ERROR_INIT;
    mr_source *src;
    mr_device **devices;
    uint32_t count;
    ok(mr_source_open(&src, in_folder(k->data), NULL, &err), &err);
    ok(mr_devices_open(&devices, &count, "cpu:2", NULL, &err), &err);
    mr_loader *train = open_loader(k, src, devices, count, true),
              *val = open_loader(k, src, devices, count, false);
    mr_net *net = build(k);
    mr_trainer *t = open_trainer(net, mr_loader_info_of(train), devices, count);
    mr_fit_config cfg;
    mr_fit_defaults(&cfg);
    cfg.max_steps = STEPS; /* an epoch, which is validated, and a step */
    cfg.val = val;
    char path[600], note[256], file[700];
    snprintf(path, sizeof path, "%s", in_folder("run"));
    cfg.checkpoint_dir = path;
    cfg.keep = 1;
    ok(mr_fit(t, train, &cfg, NULL, &err), &err);
    ok(mr_checkpoint_find(path, file, sizeof file, NULL, note, sizeof note, &err), &err);
    ok(mr_trainer_load(t, file, NULL, &err), &err);
    mr_trainer_close(t);
    mr_loader_close(train);
    mr_loader_close(val);
    mr_net_destroy(net);
    mr_devices_close(devices, count);
    mr_source_close(src);
}

/* The next one begins with nothing. */
static void clear(const char *path)
{
    DIR *d = opendir(path);
    char name[1024];
    for (const struct dirent *e; d && (e = readdir(d));) {
        snprintf(name, sizeof name, "%s/%s", path, e->d_name);
        unlink(name);
    }
    if (d) closedir(d);
    rmdir(path);
}

/* ---- resources of the process ---- */

typedef struct held {
    unsigned descriptors, threads, regions;
    size_t used_bytes, resident_bytes;
} held;

static unsigned entries_of(const char *path)
{
    unsigned count = 0;
    DIR *d = opendir(path);
    for (const struct dirent *e; d && (e = readdir(d));) count += e->d_name[0] != '.';
    if (d) closedir(d);
    return count;
}

static unsigned lines_of(const char *path)
{
    unsigned count = 0;
    FILE *f = fopen(path, "re");
    for (int c; f && (c = getc(f)) != EOF;) count += c == '\n';
    if (f) fclose(f);
    return count;
}

static size_t resident(void)
{
    unsigned long all = 0, pages = 0;
    FILE *f = fopen("/proc/self/statm", "re");
    if (!f || fscanf(f, "%lu %lu", &all, &pages) != 2) pages = 0;
    if (f) fclose(f);
    return (size_t)pages * (size_t)sysconf(_SC_PAGESIZE);
}

static held look(void)
{
    const struct mallinfo2 m = mallinfo2();
    return (held){.descriptors = entries_of("/proc/self/fd"),
                  .threads = entries_of("/proc/self/task"),
                  .regions = lines_of("/proc/self/maps"),
                  .used_bytes = m.uordblks + m.hblkhd,
                  .resident_bytes = resident()};
}

static void print(unsigned runs, const held *h, double seconds)
{
    printf("{\"event\": \"runs\", \"runs\": %u, \"descriptors\": %u, \"threads\": %u, \"regions\": %u, "
           "\"used_bytes\": %zu, \"resident_bytes\": %zu, \"seconds\": %.3f}\n",
           runs, h->descriptors, h->threads, h->regions, h->used_bytes, h->resident_bytes, seconds);
    fflush(stdout);
}

/* A thread that was joined may stand in /proc a moment longer. */
static held look_when_joined(unsigned threads)
{
    enum { TRIES = 10000 };
    held h = look();
    for (int i = 0; h.threads > threads && i < TRIES; i++) {
        usleep(1000);
        h = look();
    }
    return h;
}

static bool is_round(unsigned n)
{
    while (n >= 10 && n % 10 == 0) n /= 10;
    return n == 1 || n == 2 || n == 5;
}

static double now(void)
{
    struct timespec t;
    clock_gettime(CLOCK_MONOTONIC, &t);
    return (double)t.tv_sec + 1e-9 * (double)t.tv_nsec;
}

static int judge(const held *a, const held *b)
{
    int more = 0;
    more |= b->descriptors > a->descriptors && fprintf(stderr, "bench_runs: more descriptors\n");
    more |= b->threads > a->threads && fprintf(stderr, "bench_runs: more threads\n");
    if (!COUNTS_MEMORY) return more;
    more |= b->used_bytes > a->used_bytes + MORE_USED_BYTES &&
            fprintf(stderr, "bench_runs: more memory in use\n");
    more |= b->resident_bytes > a->resident_bytes + MORE_RESIDENT_BYTES &&
            fprintf(stderr, "bench_runs: more resident memory\n");
    return more;
}

/* glibc counts a thread's cache of freed memory as used, and the cache grows for a long time as sizes meet
 * it; so does the head of an arena that threads get when they meet at the allocator. Run this program once
 * more without such caches and with one arena, where every byte in use has an owner. */
static void without_caches(char **argv)
{
    static const char none[] = "glibc.malloc.tcache_count=0:glibc.malloc.arena_max=1";
    const char *set = getenv("GLIBC_TUNABLES");
    if (!COUNTS_MEMORY || (set && strcmp(set, none) == 0)) return;
    if (setenv("GLIBC_TUNABLES", none, 1) == 0) execv("/proc/self/exe", argv);
}

int main(int argc, char **argv)
{
    without_caches(argv);
    const unsigned runs = argc > 1 ? (unsigned)strtoul(argv[1], NULL, 10) : 1000,
                   first = runs / 10 ? runs / 10 : 1;
    const char *temp = getenv("TMPDIR");
    held a = {0}, b = {0};
    snprintf(folder, sizeof folder, "%s/bench_runs-XXXXXX", temp && *temp ? temp : "/tmp");
    if (!mkdtemp(folder)) {
        perror(folder);
        return 2;
    }
    write_pictures();
    write_numbers();
    const double begun = now();
    for (unsigned i = 1; i <= runs; i++) {
        run(&kinds[i % 2]);
        clear(in_folder("run"));
        const bool last = i == runs;
        if (i == first || last || is_round(i)) {
            b = look_when_joined(a.threads ? a.threads : UINT32_MAX);
            if (i == first) a = b;
            print(i, &b, now() - begun);
        }
    }
    clear(folder);
    return judge(&a, &b);
}
