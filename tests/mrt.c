/* tests/mrt.c: see mrt.h. Real data is looked for in $MILLRACE_DATA, then in ../shared/data next to the
 * source tree. */
#include "tests/mrt.h"

#include <errno.h>
#include <fcntl.h>
#include <ftw.h>
#include <sys/stat.h>
#include <unistd.h>

static char temp_folder[512];

static int remove_one(const char *path, const struct stat *st, int kind, struct FTW *ftw)
{
    (void)st, (void)kind, (void)ftw;
    return remove(path);
}

static pid_t temp_owner; /* a child that exits leaves it alone */

static void remove_temp(void)
{
    if (temp_folder[0] && getpid() == temp_owner) nftw(temp_folder, remove_one, 16, FTW_DEPTH | FTW_PHYS);
}

const char *mrt_temp(void)
{
    if (temp_folder[0]) return temp_folder;
    const char *base = getenv("TMPDIR");
    snprintf(temp_folder, sizeof temp_folder, "%s/millrace-test-XXXXXX", base && *base ? base : "/tmp");
    if (!mkdtemp(temp_folder)) {
        fprintf(stderr, "cannot make %s: %s\n", temp_folder, strerror(errno));
        exit(1);
    }
    temp_owner = getpid();
    atexit(remove_temp);
    return temp_folder;
}

const char *mrt_path(const char *format, ...)
{
    static char buffers[16][1024];
    static unsigned at;
    char *buf = buffers[at++ % 16];
    const int n = snprintf(buf, sizeof buffers[0], "%s/", mrt_temp());
    va_list args;
    va_start(args, format);
    vsnprintf(buf + n, sizeof buffers[0] - (size_t)n, format, args);
    va_end(args);
    return buf;
}

void mrt_touch(const char *path)
{
    static _Atomic time_t at = 1000000000;
    const struct timespec now = {.tv_sec = at++}, times[2] = {now, now};
    if (utimensat(AT_FDCWD, path, times, 0) != 0) fail_msg("touch %s: %s", path, strerror(errno));
}

void mrt_write_file(const char *path, const void *data, size_t bytes)
{
    FILE *f = fopen(path, "wbe");
    assert_non_null(f);
    assert_int_equal(fwrite(data, 1, bytes, f), bytes);
    assert_int_equal(fclose(f), 0);
    mrt_touch(path);
}

void *mrt_read_file(const char *path, size_t *bytes)
{
    FILE *f = fopen(path, "rbe");
    assert_non_null(f);
    fseek(f, 0, SEEK_END);
    const long size = ftell(f);
    rewind(f);
    char *data = malloc((size_t)size + 1);
    assert_non_null(data);
    assert_int_equal(fread(data, 1, (size_t)size, f), size);
    fclose(f);
    data[size] = '\0';
    if (bytes) *bytes = (size_t)size;
    return data;
}

void mrt_mkdir(const char *path)
{
    if (mkdir(path, 0777) != 0 && errno != EEXIST) fail_msg("mkdir %s: %s", path, strerror(errno));
}

const char *mrt_data(const char *name)
{
    static char buffers[8][1024];
    static unsigned at;
    char *buf = buffers[at++ % 8];
    const char *root = getenv("MILLRACE_DATA"), *source = getenv("MRT_SOURCE_DIR");
    if (root && *root) {
        snprintf(buf, sizeof buffers[0], "%s/%s", root, name);
        if (access(buf, R_OK) == 0) return buf;
    }
    snprintf(buf, sizeof buffers[0], "%s/../shared/data/%s", source ? source : ".", name);
    return access(buf, R_OK) == 0 ? buf : NULL;
}

const char *mrt_data_or_skip(const char *name)
{
    const char *path = mrt_data(name);
    if (path) return path;
    printf("SKIP: %s is neither below MILLRACE_DATA nor in ../shared/data next to the source tree\n", name);
    exit(77);
}

void mrt_has(const char *text, const char *part, const char *file, int line)
{
    if (strstr(text, part)) return;
    print_error("expected to find: %s\nin: %s\n", part, text);
    _fail(file, line);
}

void mrt_ok(int rc, const mr_error *err, const char *file, int line)
{
    if (rc == MR_OK) return;
    char text[2048] = "";
    if (err) mr_error_format(err, text, sizeof text);
    print_error("status %d (%s): %s\n", rc, mr_status_text(rc), text);
    _fail(file, line);
}

void mrt_noise(void *data, size_t bytes, uint64_t seed)
{
    uint8_t *p = data;
    uint64_t x = seed * 2862933555777941757u + 3037000493u;
    for (size_t i = 0; i < bytes; i++) {
        x ^= x << 13;
        x ^= x >> 7;
        x ^= x << 17;
        p[i] = (uint8_t)(x >> 32);
    }
}

unsigned mrt_seconds(unsigned seconds) { return seconds * (MRT_SANITIZED ? 3 : 1); }

/* ---- failing allocations: the linker sends the library's calls here (--wrap) in programs that ask for it
 * ---- */
static long alloc_countdown = -1;
static int alloc_hit;

void mrt_fail_alloc_at(long n)
{
    alloc_hit = 0;
    __atomic_store_n(&alloc_countdown, n, __ATOMIC_SEQ_CST);
}

int mrt_alloc_failed(void) { return __atomic_load_n(&alloc_hit, __ATOMIC_SEQ_CST); }

static int fails_now(void)
{
    if (__atomic_load_n(&alloc_countdown, __ATOMIC_SEQ_CST) < 0) return 0;
    if (__atomic_fetch_sub(&alloc_countdown, 1, __ATOMIC_SEQ_CST) != 0) return 0;
    __atomic_store_n(&alloc_hit, 1, __ATOMIC_SEQ_CST);
    return 1;
}

/* weak: only programs linked with --wrap have the real ones under these names */
void *__real_malloc(size_t n) __attribute__((weak));
void *__real_calloc(size_t n, size_t m) __attribute__((weak));
void *__real_realloc(void *p, size_t n) __attribute__((weak));
int __real_posix_memalign(void **p, size_t a, size_t n) __attribute__((weak));
void *__wrap_malloc(size_t n);
void *__wrap_calloc(size_t n, size_t m);
void *__wrap_realloc(void *p, size_t n);
int __wrap_posix_memalign(void **p, size_t a, size_t n);

void *__wrap_malloc(size_t n) { return fails_now() ? NULL : __real_malloc(n); }
void *__wrap_calloc(size_t n, size_t m) { return fails_now() ? NULL : __real_calloc(n, m); }
void *__wrap_realloc(void *p, size_t n) { return fails_now() ? NULL : __real_realloc(p, n); }
int __wrap_posix_memalign(void **p, size_t a, size_t n)
{
    return fails_now() ? ENOMEM : __real_posix_memalign(p, a, n);
}
