/* The window over a file: it returns the file's bytes, in any order; front to back it reads each byte once in
 * large pieces, and after a leap little more than was requested. */
#include <fcntl.h>
#include <unistd.h>

#include "formats/record/mrec.h"
#include "formats/storage/file_scan.h"
#include "mrt.h"

enum { FILE_BYTES = 24 << 20 };

static uint8_t *data;
static int fd;

static int set_up(void **state)
{
    (void)state;
    data = malloc(FILE_BYTES);
    mrt_noise(data, FILE_BYTES, 5);
    mrt_write_file(mrt_path("file"), data, FILE_BYTES);
    fd = open(mrt_path("file"), O_RDONLY | O_CLOEXEC);
    return fd < 0;
}

static int tear_down(void **state)
{
    (void)state;
    close(fd);
    free(data);
    return 0;
}

typedef struct counts {
    uint64_t bytes, calls;
} counts;

/* What this process has read so far, by the kernel's count. */
static counts so_far(void)
{
    unsigned long long bytes = 0, calls = 0;
    char line[128];
    FILE *f = fopen("/proc/self/io", "re");
    while (f && fgets(line, sizeof line, f)) {
        sscanf(line, "rchar: %llu", &bytes);
        sscanf(line, "syscr: %llu", &calls);
    }
    if (f) fclose(f);
    return (counts){bytes, calls};
}

static void get(mri_file_scan *w, uint64_t offset, size_t bytes)
{
    mr_error err = MR_ERROR_INIT;
    const uint8_t *p;
    MRT_OK(mri_file_scan_get(w, offset, bytes, &p, &err), &err);
    MRT_TRUE(memcmp(p, data + offset, bytes) == 0);
}

static void front_to_back(void **state)
{
    (void)state;
    mri_file_scan w;
    mri_file_scan_init(&w, fd, "file", FILE_BYTES);
    const counts before = so_far();
    for (uint64_t at = 0; at < FILE_BYTES; at += 4096) get(&w, at, 4096);
    const counts after = so_far();
    mri_file_scan_fini(&w);
    if (after.calls == 0) return;                             /* no /proc */
    MRT_TRUE(after.bytes - before.bytes < FILE_BYTES + 4096); /* and what so_far() read itself */
    MRT_TRUE(after.calls - before.calls < 24);
}

/* A header every `step` bytes. */
static counts headers(uint64_t step)
{
    mri_file_scan w;
    mri_file_scan_init(&w, fd, "file", FILE_BYTES);
    const counts before = so_far();
    for (uint64_t at = 0; at + 1024 <= FILE_BYTES; at += step) {
        get(&w, at, 512);
        get(&w, at + 512, 512);
    }
    const counts after = so_far();
    mri_file_scan_fini(&w);
    return (counts){after.bytes - before.bytes, after.calls - before.calls};
}

static void leaps(void **state)
{
    (void)state;
    if (so_far().calls == 0) return;
    MRT_TRUE(headers(1 << 20).bytes < 24 * (16 << 10) + 4096);
    const counts small = headers(10000); /* not worth leaping */
    MRT_TRUE(small.bytes < FILE_BYTES + (FILE_BYTES >> 4));
    MRT_TRUE(small.calls < 30);
}

static void any_order(void **state)
{
    (void)state;
    mri_file_scan w;
    mri_file_scan_init(&w, fd, "file", FILE_BYTES);
    uint32_t random[2];
    for (uint64_t k = 0; k < 2000; k++) {
        mrt_noise(random, sizeof random, k);
        const uint64_t bytes = k % 50 == 0 ? random[1] % (6 << 20) : random[1] % 5000;
        get(&w, random[0] % (FILE_BYTES - bytes + 1), (size_t)bytes);
        if (k % 3 == 0) get(&w, w.end > bytes ? w.end - bytes : 0, (size_t)bytes);
        if (k % 3 == 1 && w.end + 10 <= FILE_BYTES) get(&w, w.end, 10);
    }
    get(&w, FILE_BYTES, 0);
    get(&w, FILE_BYTES - 1, 1);
    mr_error err = MR_ERROR_INIT;
    const uint8_t *p;
    MRT_EQ(mri_file_scan_get(&w, FILE_BYTES - 1, 2, &p, &err), MR_EFORMAT);
    MRT_EQ(mri_file_scan_get(&w, UINT64_MAX, 1, &p, &err), MR_EFORMAT);
    mri_file_scan_fini(&w);
}

int main(void)
{
    const struct CMUnitTest tests[] = {cmocka_unit_test(front_to_back), cmocka_unit_test(leaps),
                                       cmocka_unit_test(any_order)};
    return cmocka_run_group_tests(tests, set_up, tear_down);
}
