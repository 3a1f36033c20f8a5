/* bench/bench_h2d.c: speed of copies from host memory to a device and back: the upper bound of a copy stream.
 * One JSON line per size.
 *
 *   bench_h2d DEVICE [--pageable] [--seconds S] [--most BYTES]
 *
 * DEVICE is as in --devices; of several the first is measured. Sizes go from 1 MiB in steps of four to BYTES
 * (256 MiB). Each has five rounds of consecutive copies on one copy stream, together for S seconds (0.2); a
 * round's time is between two events on that stream, and the median round is printed. Memory comes from
 * mr_host_alloc(): pinned where the device supports that. --pageable uses ordinary memory, as a program does
 * that does not request pinned memory; only devices whose copies accept it can do that.
 *
 * Not measured: copies in parallel with computing, or to several devices at once. */
#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "millrace/kernels.h"

enum { ROUNDS = 5, COPIES_MOST = 100000 };
static const size_t FIRST_BYTES = (size_t)1 << 20;

typedef struct bench {
    mr_device *device;
    mr_stream *stream;
    mr_event *start, *end;
    void *host, *at_device;
    size_t most;
    double seconds;
    bool pageable;
} bench;

static void ok(int rc, const mr_error *err)
{
    char text[1024];
    if (rc == MR_OK) return;
    fprintf(stderr, "bench_h2d: %s\n", err ? mr_error_format(err, text, sizeof text) : mr_status_text(rc));
    exit(1);
}

static void open_all(bench *b)
{
    mr_error err = MR_ERROR_INIT;
    ok(mr_stream_create(&b->stream, b->device, MR_STREAM_COPY, &err), &err);
    ok(mr_event_create(&b->start, b->device, &err), &err);
    ok(mr_event_create(&b->end, b->device, &err), &err);
    ok(mr_device_alloc(b->device, b->most, &b->at_device, &err), &err);
    if (b->pageable) b->host = aligned_alloc(4096, b->most);
    else ok(mr_host_alloc(b->device, b->most, &b->host, &err), &err);
    if (!b->host) ok(MR_ENOMEM, NULL);
    uint64_t x = 88172645463325252u; /* noise: nothing on the way may find it easy */
    for (size_t i = 0; i + 8 <= b->most; i += 8) {
        x ^= x << 13, x ^= x >> 7, x ^= x << 17;
        memcpy((char *)b->host + i, &x, 8);
    }
}

static void close_all(bench *b)
{
    mr_device_free(b->device, b->at_device);
    if (b->pageable) free(b->host);
    else mr_host_free(b->device, b->host);
    mr_event_destroy(b->start);
    mr_event_destroy(b->end);
    mr_stream_destroy(b->stream);
}

/* Nanoseconds that `copies` copies take, by the device's clock. */
static double round_ns(const bench *b, bool to_device, size_t bytes, uint32_t copies)
{
    mr_error err = MR_ERROR_INIT;
    uint64_t start, end;
    ok(mr_event_record(b->start, b->stream), NULL);
    for (uint32_t i = 0; i < copies; i++)
        ok(to_device ? mr_copy_h2d_async(b->stream, b->at_device, b->host, bytes)
                     : mr_copy_d2h_async(b->stream, b->host, b->at_device, bytes),
           NULL);
    ok(mr_event_record(b->end, b->stream), NULL);
    ok(mr_stream_sync(b->stream, &err), &err);
    ok(mr_event_time_ns(b->start, &start), NULL);
    ok(mr_event_time_ns(b->end, &end), NULL);
    return end > start ? (double)(end - start) : 1;
}

static int compare(const void *a, const void *b)
{
    const double x = *(const double *)a, y = *(const double *)b;
    return (x > y) - (x < y);
}

static void measure(const bench *b, bool to_device, size_t bytes)
{
    round_ns(b, to_device, bytes, 1); /* first touch */
    const double one = round_ns(b, to_device, bytes, 3) / 3, wanted = 1e9 * b->seconds / ROUNDS / one;
    const uint32_t copies = wanted < 1 ? 1 : wanted > COPIES_MOST ? COPIES_MOST : (uint32_t)wanted;
    double rates[ROUNDS];
    for (int i = 0; i < ROUNDS; i++)
        rates[i] = (double)bytes * copies / round_ns(b, to_device, bytes, copies);
    qsort(rates, ROUNDS, sizeof rates[0], compare);
    const mr_device_info *info = mr_device_info_of(b->device);
    printf(
        "{\"event\": \"bench\", \"what\": \"h2d\", \"device\": \"%s\", \"hardware\": \"%s\", \"direction\": "
        "\"%s\", \"memory\": \"%s\", \"bytes\": %zu, \"copies\": %u, \"rounds\": %d, \"gb_per_s\": %.3f, "
        "\"gb_per_s_min\": %.3f, \"gb_per_s_max\": %.3f}\n",
        info->name, info->hardware, to_device ? "h2d" : "d2h", b->pageable ? "pageable" : "pinned", bytes,
        copies, ROUNDS, rates[ROUNDS / 2], rates[0], rates[ROUNDS - 1]);
}

static bool parse(bench *b, int argc, char **argv)
{
    for (int i = 2; i < argc; i++) {
        if (strcmp(argv[i], "--pageable") == 0) b->pageable = true;
        else if (strcmp(argv[i], "--seconds") == 0 && i + 1 < argc) b->seconds = atof(argv[++i]);
        else if (strcmp(argv[i], "--most") == 0 && i + 1 < argc)
            b->most = (size_t)strtoull(argv[++i], NULL, 10);
        else return false;
    }
    b->most = b->most / 4096 * 4096;
    return argc > 1 && argv[1][0] != '-' && b->seconds > 0 && b->most >= 4096;
}

int main(int argc, char **argv)
{
    bench b = {.most = (size_t)256 << 20, .seconds = 0.2};
    if (!parse(&b, argc, argv)) {
        fprintf(stderr, "usage: bench_h2d DEVICE [--pageable] [--seconds S] [--most BYTES]\n");
        return 2;
    }
    mr_error err = MR_ERROR_INIT;
    mr_device **devices;
    uint32_t count;
    ok(mr_devices_open(&devices, &count, argv[1], NULL, &err), &err);
    b.device = devices[0];
    open_all(&b);
    for (int to_device = 1; to_device >= 0; to_device--)
        for (size_t bytes = FIRST_BYTES < b.most ? FIRST_BYTES : b.most;;
             bytes = bytes * 4 < b.most ? bytes * 4 : b.most) {
            measure(&b, to_device, bytes);
            if (bytes == b.most) break;
        }
    close_all(&b);
    mr_devices_close(devices, count);
    return 0;
}
