/* Unpacked data: begun in memory, moved to disk, stopped while the disk still has space; by itself and fed by
 * gzip. The test sets the disk's free space. */
#include <isa-l/igzip_lib.h>
#include <sys/statvfs.h>
#include <unistd.h>

#include "formats/storage/gunzip.h"
#include "formats/storage/spill.h"
#include "formats/storage/text.h"
#include "mrt.h"

enum { PIECE = 256 << 10, MIB = 1 << 20 };
#define GIB ((uint64_t)1 << 30)

static uint64_t room; /* bytes that the disk still has */
static int asked;     /* how often it was */
static bool no_answer;

int __wrap_fstatvfs(int fd, struct statvfs *v);
int __wrap_fstatvfs64(int fd, struct statvfs *v);

int __wrap_fstatvfs(int fd, struct statvfs *v)
{
    (void)fd;
    asked++;
    *v = (struct statvfs){.f_frsize = 4096, .f_bavail = room / 4096};
    return no_answer ? -1 : 0;
}

int __wrap_fstatvfs64(int fd, struct statvfs *v) { return __wrap_fstatvfs(fd, v); }

static int set_up(void **state)
{
    (void)state;
    room = 100 * GIB;
    asked = 0;
    no_answer = false;
    setenv("TMPDIR", mrt_temp(), 1);
    return 0;
}

static uint8_t *noise(size_t bytes)
{
    uint8_t *data = malloc(bytes);
    assert_non_null(data);
    mrt_noise(data, bytes, bytes);
    return data;
}

/* Written in pieces of each of these sizes in turn, it is all there. */
static void write_and_compare(uint64_t memory, uint64_t expect, size_t bytes, bool in_memory)
{
    static const size_t sizes[] = {1, 4096, PIECE, 700000, 3 * PIECE, 17};
    uint8_t *data = noise(bytes), *back = malloc(bytes);
    mri_spill s;
    mr_error err = MR_ERROR_INIT;
    MRT_OK(mri_spill_open(&s, memory, &err), &err);
    MRT_OK(mri_spill_expect(&s, expect, &err), &err);
    for (size_t at = 0, k = 0; at < bytes; k++) {
        const size_t n = sizes[k % 6] < bytes - at ? sizes[k % 6] : bytes - at;
        MRT_OK(mri_spill_write(&s, data + at, n, &err), &err);
        at += n;
        MRT_EQ(s.bytes, at);
    }
    MRT_OK(mri_spill_finish(&s, &err), &err);
    MRT_EQ(s.in_memory, in_memory);
    MRT_EQ(mri_spill_memory(&s), in_memory ? bytes : 0);
    MRT_EQ(pread(s.fd, back, bytes, 0), bytes);
    MRT_TRUE(memcmp(back, data, bytes) == 0);
    mri_spill_close(&s);
    mri_spill_close(&s);
    free(data);
    free(back);
}

static void from_memory_to_disk(void **state)
{
    (void)state;
    write_and_compare(8 * MIB, 0, 3 * MIB + 1, true);
    MRT_EQ(asked, 0);
    write_and_compare(1 * MIB, 0, 3 * MIB + 1, false);
    write_and_compare(8 * MIB, 9 * MIB, 3 * MIB + 1, false); /* expected more than came */
    write_and_compare(0, 0, 5, false);
    MRT_TRUE(asked > 0);
    no_answer = true;
    write_and_compare(0, 0, MIB, false);
}

static void a_disk_that_fills_up(void **state)
{
    (void)state;
    mri_spill s;
    mr_error err = MR_ERROR_INIT;
    uint8_t *data = noise(PIECE);
    int rc = MR_OK, written = 0;
    MRT_OK(mri_spill_open(&s, 0, &err), &err);
    room = GIB + 200 * MIB;
    for (; !rc && written < 4000; written++) {
        rc = mri_spill_write(&s, data, PIECE, &err);
        room -= PIECE;
    }
    MRT_EQ(rc, MR_ELIMIT);
    MRT_TRUE(room >= GIB && room < GIB + 130 * MIB);
    MRT_TRUE(asked > 1 && asked < 10); /* not for every piece */
    MRT_HAS(err.text, "less than 1 GiB would be left");
    MRT_HAS(err.text, "TMPDIR");
    mri_spill_close(&s);
    free(data);
}

static void no_folder(void **state)
{
    (void)state;
    mri_spill s;
    mr_error err = MR_ERROR_INIT;
    setenv("TMPDIR", mrt_path("nowhere"), 1);
    MRT_OK(mri_spill_open(&s, 10, &err), &err);
    uint8_t *data = noise(PIECE);
    MRT_EQ(mri_spill_write(&s, data, PIECE, &err), MR_EIO);
    MRT_HAS(err.text, "nowhere");
    mri_spill_close(&s);
    free(data);
}

static const char *write_gzip(const uint8_t *data, size_t bytes, size_t *packed_bytes)
{
    struct isal_zstream z;
    uint8_t *out = malloc(2 * bytes); /* noise gets longer */
    isal_deflate_init(&z);
    z.gzip_flag = IGZIP_GZIP;
    z.end_of_stream = 1;
    z.next_in = (uint8_t *)(uintptr_t)data;
    z.avail_in = (uint32_t)bytes;
    z.next_out = out;
    z.avail_out = 2 * (uint32_t)bytes;
    MRT_EQ(isal_deflate(&z), COMP_OK);
    *packed_bytes = 2 * bytes - z.avail_out;
    mrt_write_file(mrt_path("x.gz"), out, *packed_bytes);
    free(out);
    return mrt_path("x.gz");
}

/* The same limits behind gzip, whether the size is known or not. */
static void gzip_goes_the_same_way(void **state)
{
    (void)state;
    uint8_t *data = noise(3 * MIB), *back = malloc(3 * MIB);
    size_t packed;
    const char *path = write_gzip(data, 3 * MIB, &packed);
    FILE *f = fopen(path, "rbe");
    const int fd = fileno(f);
    const uint64_t memory[] = {8 * MIB, MIB};
    for (int known = 0; known < 2; known++)
        for (int k = 0; k < 2; k++) {
            int out = -1;
            uint64_t bytes = 3 * MIB;
            bool in_memory;
            mr_error err = MR_ERROR_INIT;
            asked = 0;
            MRT_OK(known ? mri_gunzip_file(fd, packed, path, bytes, memory[k], &out, &in_memory, &err)
                         : mri_unpack_file(fd, packed, path, memory[k], &out, &bytes, &in_memory, &err),
                   &err);
            MRT_EQ(in_memory, k == 0);
            MRT_EQ(asked > 0, k == 1);
            MRT_EQ(bytes, 3 * MIB);
            MRT_EQ(pread(out, back, 3 * MIB, 0), 3 * MIB);
            MRT_TRUE(memcmp(back, data, 3 * MIB) == 0);
            close(out);
            room = GIB;
            const int rc = known
                               ? mri_gunzip_file(fd, packed, path, bytes, memory[k], &out, &in_memory, &err)
                               : mri_unpack_file(fd, packed, path, memory[k], &out, &bytes, &in_memory, &err);
            MRT_EQ(rc, k == 0 ? MR_OK : MR_ELIMIT);
            if (rc) MRT_STR(err.file, path);
            if (rc) MRT_EQ(out, -1);
            else close(out);
            room = 100 * GIB;
        }
    fclose(f);
    free(data);
    free(back);
}

/* Lines without end, or zeros, from next to nothing: stopped, with or without a claim of how much it is. */
static void little_that_becomes_much(void **state)
{
    (void)state;
    enum { MEMBER = 16 * MIB, MEMBERS = 20 };
    char command[4300];
    const char *path = mrt_path("x.gz");
    size_t bytes;
    snprintf(command, sizeof command, "head -c %d /dev/zero | tr '\\0' '\\n' | gzip -9 >'%s'", MEMBER, path);
    MRT_EQ(system(command), 0); /* ISA-L packs it less */
    char *one = mrt_read_file(path, &bytes);
    MRT_TRUE(bytes * 256 < MEMBER);
    FILE *f = fopen(path, "wb");
    assert_non_null(f);
    for (int k = 0; k < MEMBERS; k++) MRT_EQ(fwrite(one, 1, bytes, f), bytes);
    fclose(f);
    free(one);
    f = fopen(path, "rb");
    assert_non_null(f);
    int fd;
    uint64_t written;
    bool in_memory;
    mr_error err = MR_ERROR_INIT;
    MRT_EQ(mri_unpack_file(fileno(f), bytes * MEMBERS, path, 0, &fd, &written, &in_memory, &err), MR_ELIMIT);
    MRT_HAS(err.text, "gzip -d");
    MRT_HAS(err.file, "x.gz");
    MRT_EQ(mri_gunzip_file(fileno(f), bytes * MEMBERS, path, (uint64_t)MEMBER * MEMBERS, 0, &fd, &in_memory,
                           &err),
           MR_ELIMIT);
    fclose(f);
    mri_text t;
    MRT_OK(mri_text_open(&t, path, &err), &err);
    int rc;
    do rc = mri_text_more(&t, &err);
    while (rc == MR_OK);
    MRT_EQ(rc, MR_ELIMIT);
    MRT_HAS(err.text, "gzip -d");
    mri_text_close(&t);
}

static void allocations_fail_in_turn(void **state)
{
    (void)state;
    uint8_t *data = noise(PIECE);
    for (long n = 0;; n++) {
        mri_spill s;
        mr_error err = MR_ERROR_INIT;
        mrt_fail_alloc_at(n);
        int rc = mri_spill_open(&s, 10, &err);
        const int opened = rc;
        if (!rc) rc = mri_spill_write(&s, data, PIECE, &err);
        if (!rc) rc = mri_spill_write(&s, data, 1, &err);
        if (!rc) rc = mri_spill_finish(&s, &err);
        mrt_fail_alloc_at(-1);
        if (!opened) mri_spill_close(&s);
        if (rc == MR_OK && !mrt_alloc_failed()) break;
        MRT_EQ(rc, MR_ENOMEM);
    }
    free(data);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test_setup(from_memory_to_disk, set_up),
        cmocka_unit_test_setup(a_disk_that_fills_up, set_up),
        cmocka_unit_test_setup(no_folder, set_up),
        cmocka_unit_test_setup(gzip_goes_the_same_way, set_up),
        cmocka_unit_test_setup(little_that_becomes_much, set_up),
        cmocka_unit_test_setup(allocations_fail_in_turn, set_up),
    };
    return mrt_run(tests);
}
