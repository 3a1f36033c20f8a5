/* bench/bench_decode.c: the yardstick of the loader benchmarks: whole-picture libjpeg-turbo decoding to RGB
 * and nothing else.
 *
 *   bench_decode FOLDER [threads] [seconds]
 *
 * Every JPEG file under FOLDER is in memory before the clock starts; threads take picture after picture, in
 * whole passes, until the time is over. One JSON line. Other files are skipped; JPEGs that libjpeg refuses
 * are named and left out.
 *
 * Not measured: reading, cropping, resizing, batches. The result is the cost of a loader that only
 * decodes. */
#include <fcntl.h>
#include <ftw.h>
#include <pthread.h>
#include <setjmp.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <unistd.h>

#include <jpeglib.h>

#include "base/util.h"

#define THREADS_MOST 256
#define TEXT_OF(x)   #x
#define TEXT(x)      TEXT_OF(x)
#ifdef LIBJPEG_TURBO_VERSION
#define LIBRARY "libjpeg-turbo " TEXT(LIBJPEG_TURBO_VERSION)
#else
#define LIBRARY "libjpeg " TEXT(JPEG_LIB_VERSION)
#endif

struct picture {
    uint8_t *data;
    size_t bytes;
    char *path;
};

static struct picture *pictures;
static size_t picture_count, picture_room;

static void *checked(void *p)
{
    if (p) return p;
    fprintf(stderr, "bench_decode: out of memory\n");
    exit(1);
}

/* ---- one picture ---- */

struct decoder {
    struct jpeg_error_mgr errors; /* first: libjpeg hands a pointer to it back */
    jmp_buf refused;
    struct jpeg_decompress_struct state;
    uint8_t *pixels;
    size_t room;
};

static void refuse(j_common_ptr state) { longjmp(((struct decoder *)state->err)->refused, 1); }
static void be_quiet(j_common_ptr state, int level) { (void)state, (void)level; }

static bool decode(struct decoder *d, const struct picture *p)
{
    struct jpeg_decompress_struct *s = &d->state;
    s->err = jpeg_std_error(&d->errors);
    d->errors.error_exit = refuse;
    d->errors.emit_message = be_quiet;
    if (setjmp(d->refused)) {
        jpeg_destroy_decompress(s);
        return false;
    }
    jpeg_create_decompress(s);
    jpeg_mem_src(s, p->data, p->bytes);
    jpeg_read_header(s, TRUE);
    if (s->num_components <= 3)
        s->out_color_space = JCS_RGB; /* four components: libjpeg knows no way to RGB */
    jpeg_start_decompress(s);
    const size_t row_bytes = (size_t)s->output_width * (size_t)s->output_components,
                 need = row_bytes * s->output_height;
    if (need > d->room) {
        free(d->pixels);
        d->pixels = checked(malloc(need));
        d->room = need;
    }
    while (s->output_scanline < s->output_height) {
        JSAMPROW rows[8];
        for (JDIMENSION i = 0; i < 8; i++) /* one call gives as many rows as the decoder has ready */
            rows[i] = d->pixels + row_bytes * mri_min_u64(s->output_scanline + i, s->output_height - 1);
        jpeg_read_scanlines(s, rows, 8);
    }
    jpeg_finish_decompress(s);
    jpeg_destroy_decompress(s);
    return true;
}

/* ---- the files ---- */

static int take_file(const char *path, const struct stat *st, int kind, struct FTW *at)
{
    (void)at;
    if (kind != FTW_F || st->st_size < 4) return 0;
    const int fd = open(path, O_RDONLY | O_CLOEXEC);
    if (fd < 0) return 0;
    uint8_t *data = checked(malloc((size_t)st->st_size));
    size_t have = 0;
    for (ssize_t got;
         have < (size_t)st->st_size && (got = read(fd, data + have, (size_t)st->st_size - have)) > 0;)
        have += (size_t)got;
    close(fd);
    if (have < 4 || data[0] != 0xff || data[1] != 0xd8 || data[2] != 0xff) {
        free(data);
        return 0;
    }
    if (picture_count == picture_room) {
        picture_room = picture_room ? 2 * picture_room : 1024;
        pictures = checked(realloc(pictures, picture_room * sizeof *pictures));
    }
    pictures[picture_count++] = (struct picture){data, have, checked(strdup(path))};
    return 0;
}

/* Also the warm-up: every picture is decoded once. */
static void drop_refused(void)
{
    struct decoder *d = checked(calloc(1, sizeof *d));
    size_t kept = 0;
    for (size_t i = 0; i < picture_count; i++) {
        if (decode(d, &pictures[i])) {
            pictures[kept++] = pictures[i];
            continue;
        }
        fprintf(stderr, "bench_decode: %s: left out, libjpeg refuses it\n", pictures[i].path);
        free(pictures[i].data);
        free(pictures[i].path);
    }
    picture_count = kept;
    free(d->pixels);
    free(d);
}

/* ---- measuring ---- */

static struct {
    pthread_mutex_t lock;
    uint64_t next, end; /* lock; in pictures, over all passes; end 0: not known yet */
    uint64_t stop_ns;   /* fixed before the threads start */
} turn = {.lock = PTHREAD_MUTEX_INITIALIZER};

/* The next picture, or SIZE_MAX. Whether there is another pass is settled where one begins, so that all
 * passes are whole. */
static size_t take_turn(void)
{
    size_t at = SIZE_MAX;
    pthread_mutex_lock(&turn.lock);
    if (turn.next > 0 && turn.next % picture_count == 0 && mri_now_ns() >= turn.stop_ns) turn.end = turn.next;
    if (turn.end == 0) at = (size_t)(turn.next++ % picture_count);
    pthread_mutex_unlock(&turn.lock);
    return at;
}

static void *worker_main(void *arg)
{
    struct decoder *d = arg;
    for (size_t at; (at = take_turn()) != SIZE_MAX;) decode(d, &pictures[at]);
    return NULL;
}

static double cpu_seconds(void)
{
    struct rusage use;
    getrusage(RUSAGE_SELF, &use);
    return (double)(use.ru_utime.tv_sec + use.ru_stime.tv_sec) +
           1e-6 * (double)(use.ru_utime.tv_usec + use.ru_stime.tv_usec);
}

int main(int argc, char **argv)
{
    if (argc < 2 || argv[1][0] == '-') {
        fprintf(stderr, "usage: bench_decode FOLDER [threads] [seconds]\n");
        return 2;
    }
    const long cores = sysconf(_SC_NPROCESSORS_ONLN), asked = argc > 2 ? atol(argv[2]) : cores;
    const double seconds = argc > 3 ? atof(argv[3]) : 3;
    const size_t threads = asked < 1 ? 1 : asked > THREADS_MOST ? THREADS_MOST : (size_t)asked;
    if (nftw(argv[1], take_file, 32, FTW_PHYS) != 0) {
        perror(argv[1]);
        return 1;
    }
    drop_refused();
    if (picture_count == 0) {
        fprintf(stderr,
                "bench_decode: %s: expected a folder with JPEG files, found none that can be decoded\n",
                argv[1]);
        return 1;
    }

    struct decoder *decoders = checked(calloc(threads, sizeof *decoders));
    pthread_t ids[THREADS_MOST];
    const double cpu = cpu_seconds();
    const uint64_t start = mri_now_ns();
    turn.stop_ns = start + (uint64_t)(seconds * 1e9);
    for (size_t i = 0; i < threads; i++)
        if (pthread_create(&ids[i], NULL, worker_main, &decoders[i]) != 0) {
            fprintf(stderr, "bench_decode: cannot start %zu threads\n", threads);
            return 1;
        }
    for (size_t i = 0; i < threads; i++) pthread_join(ids[i], NULL);
    const double took = (double)(mri_now_ns() - start) / 1e9, used = cpu_seconds() - cpu;

    struct rusage use;
    getrusage(RUSAGE_SELF, &use);
    printf("{\"event\":\"bench\",\"part\":\"full_decode\",\"library\":\"" LIBRARY
           "\",\"threads\":%zu,\"pictures\":%zu,\"samples\":%llu,"
           "\"seconds\":%.6f,\"samples_per_s\":%.2f,\"cpu_s_per_1000\":%.4f,\"peak_rss_mb\":%.1f}\n",
           threads, picture_count, (unsigned long long)turn.end, took, (double)turn.end / took,
           1e3 * used / (double)turn.end, (double)use.ru_maxrss / 1024);
    for (size_t i = 0; i < threads; i++) free(decoders[i].pixels);
    free(decoders);
    for (size_t i = 0; i < picture_count; i++) {
        free(pictures[i].data);
        free(pictures[i].path);
    }
    free(pictures);
    return 0;
}
