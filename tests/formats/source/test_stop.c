/* Opening and checking look at the caller's stop: data sets of every kind that reads much before it answers,
 * stopped at each of their reads in turn, end with MR_ECANCELED and read no more than a few MiB.
 *
 * The program's pread() goes through here: it counts, and sets the flag. */
#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/util.h"
#include "tests/formats/record/mrt_mrec.h"

static volatile int stop;
static long stop_at = -1, calls;
static uint64_t after; /* bytes read once it was set */

ssize_t __real_pread(int fd, void *data, size_t bytes, off_t offset);
ssize_t __wrap_pread(int fd, void *data, size_t bytes, off_t offset);

ssize_t __wrap_pread(int fd, void *data, size_t bytes, off_t offset)
{
    if (calls++ == stop_at) stop = 1;
    else if (stop) after += bytes;
    return __real_pread(fd, data, bytes, offset);
}

static void begin(long at)
{
    stop = 0;
    stop_at = at;
    calls = 0;
    after = 0;
}

/* A tar of n members of `bytes` bytes each, without content on disk. */
static const char *put_tar(const char *name, uint32_t n, uint32_t bytes)
{
    const char *path = mrt_path("%s.tar", name);
    FILE *f = fopen(path, "wb");
    assert_non_null(f);
    for (uint32_t k = 0; k < n; k++) {
        char head[512] = "";
        unsigned sum = 0;
        snprintf(head, 100, "%06u.jpg", k);
        memcpy(head + 100, "0000644\0000000000\0000000000\000", 24);
        snprintf(head + 124, 12, "%011o", bytes);
        memcpy(head + 136, "00000000000", 12);
        head[156] = '0';
        memcpy(head + 257, "ustar\00000", 8);
        memset(head + 148, ' ', 8);
        for (int i = 0; i < 512; i++) sum += (uint8_t)head[i];
        snprintf(head + 148, 8, "%06o", sum);
        MRT_EQ(fwrite(head, 512, 1, f), 1);
        MRT_EQ(fputs("\xff\xd8\xff", f) >= 0, 1);
        MRT_EQ(fseek(f, (long)(bytes + 511) / 512 * 512 - 3, SEEK_CUR), 0);
    }
    char end[1024] = "";
    MRT_EQ(fwrite(end, sizeof end, 1, f), 1);
    fclose(f);
    return path;
}

static const char *put_folder(void)
{
    mrt_mkdir(mrt_path("classes"));
    for (int c = 0; c < 3; c++) {
        mrt_mkdir(mrt_path("classes/%d", c));
        for (int k = 0; k < 20; k++)
            mrt_write_file(mrt_path("classes/%d/%d.jpg", c, k), "\xff\xd8\xff\xe0", 4);
    }
    return mrt_path("classes");
}

static int open_once(const char *path, mr_error *err)
{
    mr_source_config cfg;
    mr_source *src;
    mr_source_defaults(&cfg);
    cfg.stop = &stop;
    cfg.no_index_file = true;
    const int rc = mr_source_open(&src, path, &cfg, err);
    if (rc == MR_OK) mr_source_close(src);
    else MRT_TRUE(src == NULL);
    return rc;
}

static void opening_stops(void **state)
{
    (void)state;
    mr_writer_config cfg = mrt_writer_config();
    mrt_write_mrec(mrt_path("set.mrec"), 50, &cfg);
    char tar[4096], folder[4096], set[4096];
    snprintf(tar, sizeof tar, "%s", put_tar("small", 40, 1000));
    snprintf(folder, sizeof folder, "%s", put_folder());
    snprintf(set, sizeof set, "%s", mrt_path("set.mrec"));
    const char *const paths[] = {tar, folder, set};
    for (size_t p = 0; p < MRI_ARRAY_COUNT(paths); p++) {
        const char *path = paths[p];
        mr_error err = MR_ERROR_INIT;
        begin(-1);
        MRT_OK(open_once(path, &err), &err);
        const long all = calls;
        stop = 1; /* before it begins */
        MRT_EQ(open_once(path, &err), MR_ECANCELED);
        MRT_HAS(err.text, "stopped");
        for (long at = 0; at < all; at++) {
            begin(at);
            MRT_EQ(open_once(path, &err), MR_ECANCELED);
        }
    }
}

/* A scan of much data ends within a few MiB. */
static void a_long_scan_stops_soon(void **state)
{
    (void)state;
    char path[4096];
    mr_error err = MR_ERROR_INIT;
    snprintf(path, sizeof path, "%s", put_tar("large", 3000, 40000)); /* 120 MB, read as a whole */
    begin(5);
    MRT_EQ(open_once(path, &err), MR_ECANCELED);
    MRT_TRUE(after <= 8u << 20);
}

static bool count(void *context, const mr_error *what)
{
    (void)what;
    ++*(int *)context;
    return true;
}

static void verify_stops(void **state)
{
    (void)state;
    char path[4096];
    mr_writer_config cfg = mrt_writer_config();
    mr_error err = MR_ERROR_INIT;
    mr_verify_result result;
    int reported = 0;
    snprintf(path, sizeof path, "%s", mrt_path("verify.mrec"));
    mrt_write_mrec(path, 3000, &cfg);
    begin(-1);
    MRT_OK(mr_mrec_verify_until(path, &stop, count, &reported, &result, &err), &err);
    const long all = calls;
    MRT_EQ(result.records, 3000);
    MRT_OK(mr_mrec_verify(path, count, &reported, &result, &err), &err);
    for (long at = 0; at + 1 < all; at++) {
        begin(at);
        MRT_EQ(mr_mrec_verify_until(path, &stop, count, &reported, &result, &err), MR_ECANCELED);
        MRT_TRUE(calls == at + 1);
    }
    MRT_EQ(reported, 0); /* a stop is not an error of the file */
    begin(-1);
    stop = 1;
    MRT_OK(mr_mrec_verify(path, count, &reported, &result, &err), &err); /* this call has no stop flag */
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(opening_stops),
        cmocka_unit_test(a_long_scan_stops_soon),
        cmocka_unit_test(verify_stops),
    };
    return mrt_run(tests);
}
