/* tests/formats/remote/test_remote.c: files on web servers, against a server that cuts, lies, changes and
 * falls silent. */
#include "tests/formats/remote/mrt_http.h"

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <netdb.h>
#include <pthread.h>
#include <stdatomic.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/util.h"
#include "formats/remote/remote.h"
#include "formats/remote/remote_store.h"

#if __has_include(<curl/curlver.h>)
#include <curl/curlver.h>
#endif
#if defined LIBCURL_VERSION_NUM && LIBCURL_VERSION_NUM >= 0x075700
#define LEAVES_AT_ONCE 1 /* libcurl need not wait for a name's address */
#else
#define LEAVES_AT_ONCE 0
#endif

enum { MIB = 1 << 20, FILE_BYTES = 21 * MIB + 12345 };

static uint8_t *content, *other;
static mrt_http *server;
static int folder_number;

/* For sets made from now on. A minute where the server is not silent: on a busy machine it may well need a
 * second, and repeated requests are counted. */
static void call_silent_after(int seconds)
{
    char text[64];
    snprintf(text, sizeof text, "tries=4,backoff-ms=5,stall-s=%d", seconds);
    setenv("MILLRACE_REMOTE", text, 1);
}

static void await_answers(unsigned count)
{
    while (mrt_http_answers(server) < count) usleep(1000);
}

static int set_up(void **state)
{
    (void)state;
    if (!content) {
        content = malloc(FILE_BYTES);
        other = malloc(FILE_BYTES);
        mrt_noise(content, FILE_BYTES, 1);
        mrt_noise(other, FILE_BYTES, 2);
    }
    server = mrt_http_start(content, FILE_BYTES);
    call_silent_after(60);
    folder_number++;
    return 0;
}

static int tear_down(void **state)
{
    (void)state;
    mrt_http_end(server);
    return 0;
}

static mri_remote *make(uint64_t limit, const volatile int *stop)
{
    char folder[300];
    mr_error err = MR_ERROR_INIT;
    mri_remote *r;
    snprintf(folder, sizeof folder, "%s/cache%d/deep", mrt_temp(), folder_number);
    MRT_OK(mri_remote_create(&r, &(mri_remote_config){folder, limit, stop}, &err), &err);
    return r;
}

static mri_remote_file *open_one(mri_remote *r, const char *name)
{
    mr_error err = MR_ERROR_INIT;
    mri_remote_file *f;
    MRT_OK(mri_remote_open(r, &f, mrt_http_url(server, name), &err), &err);
    return f;
}

static void same_bytes(mri_remote_file *f, const uint8_t *expected, uint64_t offset, size_t bytes)
{
    mr_error err = MR_ERROR_INIT;
    uint8_t *found = malloc(bytes + 1);
    MRT_OK(mri_remote_read(f, found, bytes, offset, &err), &err);
    assert_memory_equal(found, expected + offset, bytes);
    free(found);
}

/* Disk space that the cache's folder takes. */
static uint64_t on_disk(const mri_remote *r)
{
    uint64_t bytes = 0;
    DIR *d = opendir(mri_remote_folder(r));
    const struct dirent *e;
    struct stat st;
    while ((e = readdir(d)))
        if (fstatat(dirfd(d), e->d_name, &st, 0) == 0 && S_ISREG(st.st_mode))
            bytes += (uint64_t)st.st_blocks * 512;
    closedir(d);
    return bytes;
}

static void test_bytes(void **state)
{
    (void)state;
    mri_remote *r = make(1 << 30, NULL);
    mri_remote_file *f = open_one(r, "a.bin");
    MRT_EQ(mri_remote_bytes(f), FILE_BYTES);
    same_bytes(f, content, 0, 1);
    same_bytes(f, content, 5 * MIB - 3, 6);
    const unsigned before = mrt_http_answers(server);
    same_bytes(f, content, 4 * MIB + 1, MIB); /* both of its blocks are here */
    MRT_EQ(mrt_http_answers(server), before);
    same_bytes(f, content, FILE_BYTES - 1, 1);
    same_bytes(f, content, 0, FILE_BYTES);
    mr_error err = MR_ERROR_INIT;
    uint8_t byte[2];
    MRT_EQ(mri_remote_read(f, byte, 2, FILE_BYTES - 1, &err), MR_EFORMAT);
    MRT_HAS(err.text, "expected 2 bytes, found 1");
    MRT_EQ(mri_remote_read(f, byte, 1, UINT64_MAX, &err), MR_EFORMAT);
    mri_remote_destroy(r);
}

static void test_many_in_flight(void **state)
{
    (void)state;
    enum { WANTS = 11 };
    mri_remote *r = make(1 << 30, NULL);
    mri_remote_file *f = open_one(r, "a.bin");
    mri_block_request w[WANTS] = {{0}};
    mrt_http_be(server, MRT_HTTP_TOGETHER, WANTS - 1, -1);
    for (int k = 0; k < WANTS; k++) mri_block_request_start(&w[k], f, (uint64_t)2 * k * MIB, 10);
    same_bytes(f, content, 21 * MIB, 10);
    for (int k = 0; k < WANTS; k++) mri_block_request_end(&w[k]);
    MRT_TRUE(mrt_http_most(server) >= WANTS - 1);
    mri_remote_destroy(r);
}

static void test_kept(void **state)
{
    (void)state;
    mri_remote *r = make(1 << 30, NULL);
    mri_remote_file *f = open_one(r, "a.bin");
    same_bytes(f, content, 0, FILE_BYTES);
    mri_remote_destroy(r);
    r = make(1 << 30, NULL);
    f = open_one(r, "a.bin");
    const unsigned before = mrt_http_answers(server);
    same_bytes(f, content, 0, FILE_BYTES);
    MRT_EQ(mrt_http_answers(server), before);
    f = open_one(r, "b.bin"); /* another name: nothing of it is here */
    same_bytes(f, content, MIB, MIB);
    MRT_TRUE(mrt_http_answers(server) > before + 1);
    mri_remote_destroy(r);
}

static void damage(mri_remote *r, const char *ending, off_t at)
{
    DIR *d = opendir(mri_remote_folder(r));
    const struct dirent *e;
    while ((e = readdir(d))) {
        if (!strstr(e->d_name, ending)) continue;
        uint8_t byte;
        const int fd = openat(dirfd(d), e->d_name, O_RDWR);
        MRT_EQ(pread(fd, &byte, 1, at), 1);
        byte ^= 1;
        MRT_EQ(pwrite(fd, &byte, 1, at), 1);
        close(fd);
    }
    closedir(d);
}

static void test_damaged_on_disk(void **state)
{
    (void)state;
    const char *const endings[] = {".data", ".map", ".map"};
    const off_t places[] = {3 * MIB + 77, 4096 + 3 * 8, 3}; /* bytes, a mark, the map's head */
    for (int k = 0; k < 3; k++) {
        mri_remote *r = make(1 << 30, NULL);
        same_bytes(open_one(r, "a.bin"), content, 0, FILE_BYTES);
        mri_remote_destroy(r);
        r = make(1 << 30, NULL);
        damage(r, endings[k], places[k]);
        mri_remote_file *f = open_one(r, "a.bin");
        const unsigned before = mrt_http_answers(server);
        same_bytes(f, content, 0, FILE_BYTES);
        if (k < 2) MRT_EQ(mrt_http_answers(server), before + 1);
        else MRT_TRUE(mrt_http_answers(server) > before + 1);
        mri_remote_destroy(r);
    }
}

static void test_limit(void **state)
{
    (void)state;
    enum { LIMIT = 4 * MIB, SLACK = LIMIT / 10 }; /* maps and the file system's own; a block is more */
    mri_remote *r = make(LIMIT, NULL);
    mri_remote_file *f = open_one(r, "a.bin");
    for (uint64_t k = 0; k < 40; k++) {
        same_bytes(f, content, (k * 7 % 20) * MIB + 5, MIB);
        MRT_TRUE(on_disk(r) <= LIMIT + SLACK);
    }
    mr_error err = MR_ERROR_INIT;
    uint8_t *room = malloc(5 * MIB);
    MRT_EQ(mri_remote_read(f, room, 5 * MIB, 0, &err), MR_ELIMIT);
    MRT_HAS(err.text, "5242880 bytes are wanted at once");
    free(room);
    mri_remote_destroy(r);
    r = make(LIMIT, NULL); /* eviction of the last run's blocks makes space for another file */
    f = open_one(r, "b.bin");
    same_bytes(f, content, 0, 4 * MIB);
    MRT_TRUE(on_disk(r) <= LIMIT + SLACK);
    mri_remote_destroy(r);
}

static void test_in_use_is_not_dropped(void **state)
{
    (void)state;
    mri_remote *r = make(3 * MIB, NULL);
    mri_remote_file *f = open_one(r, "a.bin");
    mri_block_request held = {0};
    same_bytes(f, content, 0, MIB);           /* from now on it may be dropped ... */
    mri_block_request_start(&held, f, 0, 10); /* ... and now it may not */
    same_bytes(f, content, 0, 10);
    for (uint64_t k = 1; k < 20; k++) same_bytes(f, content, k * MIB, MIB);
    uint8_t found[10];
    MRT_EQ(pread(mri_remote_fd(f), found, 10, 0), 10);
    assert_memory_equal(found, content, 10);
    mri_block_request_end(&held);
    mri_remote_destroy(r);
}

/* What nobody waits for any more makes room when it comes. */
static void test_room_of_what_is_given_up(void **state)
{
    (void)state;
    mri_remote *r = make(8 * MIB, NULL);
    mri_remote_file *f = open_one(r, "a.bin");
    for (int k = 0; k < 4; k++) {
        mri_block_request w = {0};
        mri_block_request_start(&w, f, (k & 1) * 8 * MIB, 8 * MIB);
        mri_block_request_end(&w);
        same_bytes(f, content, 20 * MIB, MIB);
    }
    mrt_http_be(server, MRT_HTTP_STATUS, 404, 1);
    mr_error err = MR_ERROR_INIT;
    uint8_t *lost = malloc(8 * MIB);
    MRT_EQ(mri_remote_read(f, lost, 8 * MIB, 0, &err), MR_ENOENT);
    free(lost);
    same_bytes(f, content, 18 * MIB, MIB);
    mri_remote_destroy(r);
}

static void test_two_sets_on_one_folder(void **state)
{
    (void)state;
    mri_remote *a = make(3 * MIB, NULL), *b = make(3 * MIB, NULL); /* as two programs: nothing is shared but
                                                                      the folder */
    mri_remote_file *f = open_one(a, "a.bin"), *g = open_one(b, "a.bin");
    for (uint64_t k = 0; k < 60; k++) {
        same_bytes(f, content, (k * 7 % 21) * MIB, MIB);
        same_bytes(g, content, (k * 5 % 21) * MIB, MIB);
    }
    mri_remote_destroy(a);
    mri_remote_destroy(b);
}

static void test_faults_that_pass(void **state)
{
    (void)state;
    const struct {
        mrt_http_way way;
        long arg;
        int times;
    } faults[] = {
        {MRT_HTTP_CUT, 0, -1},        {MRT_HTTP_SHORT, 0, 3},   {MRT_HTTP_OTHER_RANGE, 0, 3},
        {MRT_HTTP_BUSY, 0, 3},        {MRT_HTTP_BUSY, 1, 1},    {MRT_HTTP_STATUS, 429, 2},
        {MRT_HTTP_STATUS, 408, 2},    {MRT_HTTP_ENDLESS, 0, 2}, {MRT_HTTP_NOISE, 0, 2},
        {MRT_HTTP_WHOLE_LATER, 0, 2}, {MRT_HTTP_SILENT, 0, 1},
    };
    for (size_t k = 0; k < sizeof faults / sizeof *faults; k++) {
        call_silent_after(faults[k].way == MRT_HTTP_SILENT ? 1 : 60);
        mri_remote *r = make(1 << 30, NULL);
        char name[16];
        snprintf(name, sizeof name, "f%zu.bin", k);
        mri_remote_file *f = open_one(r, name);
        mrt_http_be(server, faults[k].way, faults[k].arg, faults[k].times);
        same_bytes(f, content, 0, 4 * MIB + 5);
        mrt_http_be(server, MRT_HTTP_PLAIN, 0, 0);
        mri_remote_destroy(r);
    }
}

static void test_faults_that_stay(void **state)
{
    (void)state;
    const struct {
        mrt_http_way way;
        long arg;
        int code;
        const char *text;
    } faults[] = {
        {MRT_HTTP_BUSY, 0, MR_EIO, "the server answers 503; gave up after 4 tries"},
        {MRT_HTTP_OTHER_RANGE, 0, MR_EFORMAT,
         "the server answers with other bytes: expected 1048576-2097151, found 1048577-2097152"},
        {MRT_HTTP_ENDLESS, 0, MR_EFORMAT, "contradicts itself: bytes 1048576-2097151 are not 1048586"},
        {MRT_HTTP_STATUS, 401, MR_EIO, "401"},
        {MRT_HTTP_STATUS, 403, MR_EIO, "403"},
        {MRT_HTTP_STATUS, 404, MR_ENOENT, "404"},
        {MRT_HTTP_STATUS, 416, MR_EFORMAT, "416"},
        {MRT_HTTP_STATUS, 302, MR_EIO, "302"},
        {MRT_HTTP_PACKED, 0, MR_EUNSUPPORTED, "Content-Encoding"},
        {MRT_HTTP_WHOLE_LATER, 0, MR_EIO, "200, the whole file"},
        {MRT_HTTP_LOOP, 0, MR_EIO, "redirects"},
        {MRT_HTTP_NOISE, 0, MR_EIO, "cannot fetch it"},
        {MRT_HTTP_SILENT, 0, MR_EIO, "silent"},
        {MRT_HTTP_BARE, 0, MR_EFORMAT, "other bytes"},
        {MRT_HTTP_HEADS, 0, MR_EFORMAT, "does not end"},
    };
    uint8_t *room = malloc(MIB);
    for (size_t k = 0; k < sizeof faults / sizeof *faults; k++) {
        call_silent_after(faults[k].way == MRT_HTTP_SILENT ? 1 : 60);
        mri_remote *r = make(1 << 30, NULL);
        char name[16];
        mr_error err = MR_ERROR_INIT;
        snprintf(name, sizeof name, "s%zu.bin", k);
        mri_remote_file *f = open_one(r, name);
        mrt_http_be(server, faults[k].way, faults[k].arg, -1);
        MRT_EQ(mri_remote_read(f, room, MIB, MIB, &err), faults[k].code);
        MRT_EQ(err.code, faults[k].code);
        MRT_HAS(err.text, faults[k].text);
        MRT_HAS(err.file, name);
        MRT_EQ(err.sys_errno, EREMOTEIO);
        MRT_EQ(err.offset, MIB);
        mrt_http_be(server, MRT_HTTP_PLAIN, 0, 0);
        same_bytes(f, content, MIB, MIB); /* it works again */
        mri_remote_destroy(r);
    }
    free(room);
}

static void test_server_without_ranges(void **state)
{
    (void)state;
    mri_remote *r = make(1 << 30, NULL);
    mr_error err = MR_ERROR_INIT;
    mrt_http_be(server, MRT_HTTP_WHOLE, 0, -1);
    same_bytes(open_one(r, "a.bin"), content, 3 * MIB, MIB);
    mrt_http_be(server, MRT_HTTP_WHOLE, 1, 2); /* cut twice: the question is one of them */
    same_bytes(open_one(r, "b.bin"), content, 0, FILE_BYTES);
    mri_remote_file *f;
    mrt_http_be(server, MRT_HTTP_WHOLE, 1, -1); /* it never comes to an end */
    MRT_EQ(mri_remote_open(r, &f, mrt_http_url(server, "d.bin"), &err), MR_EIO);
    MRT_HAS(err.text, "too short: expected 22032441 bytes, found 100000; gave up after 4 tries");
    mrt_http_be(server, MRT_HTTP_NO_SIZE, 0, -1);
    MRT_EQ(mri_remote_open(r, &f, mrt_http_url(server, "c.bin"), &err), MR_EUNSUPPORTED);
    MRT_HAS(err.text, "does not say how large");
    mri_remote_destroy(r);
}

static void test_lies_about_the_size(void **state)
{
    (void)state;
    mri_remote *r = make(1 << 30, NULL);
    mri_remote_file *f;
    mr_error err = MR_ERROR_INIT;
    mrt_http_be(server, MRT_HTTP_HUGE, 0, -1);
    MRT_EQ(mri_remote_open(r, &f, mrt_http_url(server, "a.bin"), &err), MR_ELIMIT);
    MRT_HAS(err.text, "36028797018963968 bytes");
    mrt_http_be(server, MRT_HTTP_BARE, 0, -1);
    MRT_EQ(mri_remote_open(r, &f, mrt_http_url(server, "b.bin"), &err), MR_EFORMAT);
    MRT_HAS(err.text, "without saying how many");
    mri_remote_destroy(r);
}

/* Files that claim terabytes: neither to open them nor to ask for all of them takes memory by their size. */
static void test_claims_take_no_memory(void **state)
{
    (void)state;
    enum { FILES = MRT_SANITIZED ? 2 : 8 };
    mri_remote *r = make((uint64_t)16 << 30, NULL);
    mri_remote_file *f[FILES];
    char name[16];
    const uint64_t before = mri_peak_rss_bytes();
    mrt_http_be(server, MRT_HTTP_HUGE, 1L << 42, -1);
    for (int k = 0; k < FILES; k++) {
        snprintf(name, sizeof name, "%d.npy", k);
        f[k] = open_one(r, name);
        MRT_TRUE(mri_remote_bytes(f[k]) == UINT64_C(1) << 42);
    }
    for (int k = 0; k < FILES; k++) {
        mr_error err = MR_ERROR_INIT;
        mri_remote_keep_begin(f[k]);
        MRT_EQ(mri_remote_keep_finish(f[k], &err), MR_ELIMIT);
    }
    MRT_TRUE(MRT_SANITIZED || mri_peak_rss_bytes() - before < 64 * MIB); /* sanitizers count requested
                                                                          * memory */
    mri_remote_destroy(r);
}

static void *open_late(void *arg)
{
    mri_remote_file *f = arg;
    mr_error err = MR_ERROR_INIT;
    return mri_remote_finish(f, &err) == MR_OK ? f : NULL;
}

/* Another program is at one block of a file that only comes whole, and may wait for the others: they are
 * fetched all the same. */
static void test_whole_beside_another_program(void **state)
{
    (void)state;
    static const uint64_t none[22];
    mri_remote *r = make(1 << 30, NULL);
    mri_remote_file *f;
    mr_error err = MR_ERROR_INIT;
    pthread_t late;
    void *opened;
    mrt_http_be(server, MRT_HTTP_WHOLE, 0, -1);
    f = open_one(r, "a.bin");
    char data[400], map[400];
    snprintf(data, sizeof data, "%s/%s.data", mri_remote_folder(r), mri_remote_key(f));
    snprintf(map, sizeof map, "%s/%s.map", mri_remote_folder(r), mri_remote_key(f));
    mri_remote_destroy(r);
    const int fd = open(data, O_RDWR), marks = open(map, O_RDWR);
    struct flock block = {.l_type = F_WRLCK, .l_whence = SEEK_SET, .l_start = 5 * MIB, .l_len = MIB};
    MRT_EQ(pwrite(marks, none, sizeof none, 4096), sizeof none);
    close(marks);
    MRT_EQ(fcntl(fd, F_OFD_SETLK, &block), 0);
    r = make(1 << 30, NULL);
    const unsigned before = mrt_http_answers(server);
    MRT_OK(mri_remote_begin(r, &f, mrt_http_url(server, "a.bin"), &err), &err);
    MRT_EQ(pthread_create(&late, NULL, open_late, f), 0);
    await_answers(before + 2);
    MRT_EQ(mrt_http_answers(server), before + 2);
    close(fd);
    MRT_EQ(pthread_join(late, &opened), 0);
    MRT_TRUE(opened == f);
    same_bytes(f, content, 0, FILE_BYTES);
    mri_remote_destroy(r);
}

static void test_changed_on_the_server(void **state)
{
    (void)state;
    mri_remote *r = make(1 << 30, NULL);
    mri_remote_file *f = open_one(r, "a.bin");
    uint8_t *room = malloc(MIB);
    mr_error err = MR_ERROR_INIT;
    same_bytes(f, content, 0, 10);
    mrt_http_change(server, other, FILE_BYTES, "two");
    MRT_EQ(mri_remote_read(f, room, MIB, 9 * MIB, &err), MR_EFORMAT);
    MRT_HAS(err.text, "changed on the server");
    mrt_http_change(server, content, FILE_BYTES - 1, "one");
    MRT_EQ(mri_remote_read(f, room, MIB, 9 * MIB, &err), MR_EFORMAT);
    MRT_HAS(err.text, "changed on the server");
    mri_remote_destroy(r);
    r = make(1 << 30, NULL);
    mrt_http_change(server, other, FILE_BYTES, "two");
    same_bytes(open_one(r, "a.bin"), other, 0, MIB); /* nothing of the older one */
    mri_remote_destroy(r);
    free(room);
}

static void test_no_version(void **state)
{
    (void)state;
    mrt_http_change(server, content, FILE_BYTES, NULL);
    mri_remote *r = make(1 << 30, NULL);
    same_bytes(open_one(r, "a.bin"), content, 0, MIB);
    mri_remote_destroy(r);
    mrt_http_change(server, other, FILE_BYTES, NULL);
    r = make(1 << 30, NULL);
    same_bytes(open_one(r, "a.bin"), other, 0, MIB); /* no version distinguishes the contents, so nothing is
                                                      * cached */
    mri_remote_destroy(r);
}

/* The report to the user on the files that came in one answer, or "". */
static const char *doubts(mri_remote *r, uint32_t line)
{
    static char text[900];
    return mri_remote_told(r, line, text, sizeof text) ? text : "";
}

/* Two contents never meet in one file: without a version everything comes from one answer. */
static void test_no_version_is_one_answer(void **state)
{
    (void)state;
    static const struct {
        const char *etag, *lines;
        bool sure;
    } versions[] = {
        {NULL, "", false},
        {"one", "", true},
        {NULL, "ETag: W/\"weak\"\r\n", false},
        {NULL, "Last-Modified: Sun, 06 Nov 1994 08:49:37 GMT\r\n", false}, /* when is now? */
        {NULL, "Last-Modified: Sun, 06 Nov 1994 08:49:37 GMT\r\nDate: Sun, 06 Nov 1994 08:49:37 GMT\r\n",
         false},
        {NULL, "Last-Modified: Sun, 06 Nov 1994 08:49:37 GMT\r\nDate: Sun, 06 Nov 1994 08:49:38 GMT\r\n",
         true},
        {NULL, "Last-Modified: yesterday\r\nDate: Sun, 06 Nov 1994 08:49:38 GMT\r\n", false},
    };
    for (size_t k = 0; k < sizeof versions / sizeof *versions; k++) {
        mri_remote *r = make(1 << 30, NULL);
        char name[16];
        snprintf(name, sizeof name, "v%zu.bin", k);
        mrt_http_change(server, content, FILE_BYTES, versions[k].etag);
        mrt_http_lines(server, versions[k].lines);
        mri_remote_file *f = open_one(r, name);
        MRT_EQ(mri_remote_key(f)[0] != '\0', versions[k].sure);
        if (versions[k].sure) {
            MRT_STR(doubts(r, 0), "");
        } else {
            MRT_HAS(doubts(r, 0), name);
            MRT_HAS(doubts(r, 0), "in one answer");
            mrt_http_change(server, other, FILE_BYTES, versions[k].etag);
        }
        same_bytes(f, content, 0, MIB);
        same_bytes(f, content, 12 * MIB, MIB);
        same_bytes(f, content, FILE_BYTES - 1, 1);
        mri_remote_destroy(r);
    }
}

static void test_one_answer_is_cut(void **state)
{
    (void)state;
    mri_remote *r = make(1 << 30, NULL);
    mr_error err = MR_ERROR_INIT;
    mri_remote_file *f;
    mrt_http_change(server, content, FILE_BYTES, NULL);
    mrt_http_next(server, other);
    mrt_http_be(server, MRT_HTTP_WHOLE_NEXT, 7 * MIB + 5, 2); /* the question, and the first answer */
    f = open_one(r, "a.bin");
    same_bytes(f, other, 0, FILE_BYTES);
    mrt_http_be(server, MRT_HTTP_WHOLE_CUT, 7 * MIB + 5, -1); /* it never comes to an end */
    MRT_EQ(mri_remote_open(r, &f, mrt_http_url(server, "b.bin"), &err), MR_EIO);
    MRT_HAS(err.text, "gave up after 4 tries");
    mri_remote_destroy(r);
}

static void test_redirects(void **state)
{
    (void)state;
    mr_error err = MR_ERROR_INIT;
    mri_remote_file *f;
    char url[256];
    setenv("MILLRACE_REMOTE", "tries=1,backoff-ms=5,stall-s=2", 1);
    mri_remote *r = make(1 << 30, NULL);
    static const char *const elsewhere[] = {"file:///etc/passwd", "ftp://127.0.0.1/x",
                                            "gopher://127.0.0.1/x"};
    for (size_t k = 0; k < 3; k++) {
        mrt_http_target(server, elsewhere[k]);
        mrt_http_be(server, MRT_HTTP_MOVED, 0, -1);
        MRT_EQ(mri_remote_open(r, &f, mrt_http_url(server, "a.bin"), &err), MR_EIO);
        MRT_HAS(err.text, "redirects to another sort of address");
    }
    mrt_http_target(server, mrt_http_url(server, "on")); /* each step is quick, and there is always another */
    mrt_http_be(server, MRT_HTTP_MOVED, 900, -1);
    MRT_EQ(mri_remote_open(r, &f, mrt_http_url(server, "b.bin"), &err), MR_EIO);
    MRT_HAS(err.text, "no answer within 6 s, redirects included");

    mrt_http *elsewhere_server = mrt_http_start(content, FILE_BYTES);
    mrt_http_target(server, mrt_http_url(elsewhere_server, "c.bin"));
    mrt_http_be(server, MRT_HTTP_MOVED, 0, -1);
    snprintf(url, sizeof url, "http://me:secret@%s", mrt_http_url(server, "c.bin") + strlen("http://"));
    MRT_OK(mri_remote_open(r, &f, url, &err), &err);
    same_bytes(f, content, 0, MIB);
    MRT_TRUE(mrt_http_authorized(server) > 0);
    MRT_TRUE(mrt_http_answers(elsewhere_server) > 0);
    MRT_EQ(mrt_http_authorized(elsewhere_server), 0);
    mri_remote_destroy(r);
    mrt_http_end(elsewhere_server);
}

/* Blocks are trusted by the checksums stored with them, so any user who may write to the folder can write the
 * data. */
static void test_not_believed(void **state)
{
    (void)state;
    char path[400], folder[300];
    mr_error err = MR_ERROR_INIT;
    static const char *const endings[] = {"map", "data"};
    mri_remote *r = make(1 << 30, NULL), *none;
    mri_remote_file *f = open_one(r, "a.bin");
    same_bytes(f, content, 0, MIB);
    snprintf(folder, sizeof folder, "%s", mri_remote_folder(r));
    char key[40];
    snprintf(key, sizeof key, "%s", mri_remote_key(f));
    mri_remote_destroy(r);
    for (int k = 0; k < 4; k++) {
        const bool owner = k >= 2;
        if (owner && geteuid() != 0) {
            printf("SKIP: remote data kept by another user: not root\n");
            continue;
        }
        snprintf(path, sizeof path, "%s/%s.%s", folder, key, endings[k % 2]);
        MRT_EQ(owner ? chown(path, 65534, 65534) : chmod(path, 0606), 0);
        r = make(1 << 30, NULL);
        const unsigned before = mrt_http_answers(server);
        f = open_one(r, "a.bin");
        MRT_STR(mri_remote_key(f), ""); /* for this run only */
        MRT_HAS(doubts(r, 1), owner ? "it belongs to user 65534" : "others may write to it");
        same_bytes(f, content, 0, MIB);
        MRT_EQ(mrt_http_answers(server), before + 2);
        mri_remote_destroy(r);
        MRT_EQ(owner ? chown(path, 0, 0) : chmod(path, 0600), 0);
    }
    MRT_EQ(chmod(folder, 0777), 0);
    MRT_EQ(mri_remote_create(&none, &(mri_remote_config){folder, 1 << 30, NULL}, &err), MR_EINVAL);
    MRT_HAS(err.text, "others may write to it");
    MRT_HAS(err.text, "--remote-cache");
    MRT_EQ(chmod(folder, 01777), 0); /* like /tmp */
    r = make(1 << 30, NULL);
    same_bytes(open_one(r, "a.bin"), content, 0, MIB);
    MRT_STR(doubts(r, 1), "");
    mri_remote_destroy(r);
}

static void test_small_files(void **state)
{
    (void)state;
    mri_remote *r = make(1 << 30, NULL);
    mrt_http_change(server, content, 0, "none");
    MRT_EQ(mri_remote_bytes(open_one(r, "none.bin")), 0);
    mrt_http_change(server, content, 1, "one byte");
    mri_remote_file *f = open_one(r, "one.bin");
    MRT_EQ(mri_remote_bytes(f), 1);
    same_bytes(f, content, 0, 1);
    mri_remote_destroy(r);
}

static void test_nobody_there(void **state)
{
    (void)state;
    mri_remote *r = make(1 << 30, NULL);
    mri_remote_file *f;
    mr_error err = MR_ERROR_INIT;
    MRT_EQ(mri_remote_open(r, &f, "http://me:secret@127.0.0.1:1/x?key=hidden", &err), MR_EIO);
    char text[2048];
    MRT_HAS(mr_error_format(&err, text, sizeof text), "http://127.0.0.1:1/x?...");
    MRT_HAS(text, "gave up after 4 tries");
    assert_null(strstr(text, "secret"));
    assert_null(strstr(text, "hidden"));
    MRT_EQ(mri_remote_open(r, &f, "http://nobody.invalid/x", &err), MR_EIO); /* names may be found later:
                                                                                tried again, too */
    MRT_HAS(mr_error_format(&err, text, sizeof text), "gave up after 4 tries");
    mri_remote_destroy(r);
}

/* In place of the C library's: no names here, and some only after a long time. libcurl asks for names in a
 * thread of its own; one that was built with another resolver does not ask here. */
static atomic_int names, slow_names, slow_names_over;

__attribute__((visibility("default"))) int getaddrinfo(const char *name, const char *service,
                                                       const struct addrinfo *hints, struct addrinfo **found)
{
    (void)service, (void)hints, (void)found;
    atomic_fetch_add(&names, 1);
    if (strcmp(name, "slow.test") != 0) return EAI_NONAME;
    atomic_fetch_add(&slow_names, 1);
    for (int k = 0; k < (LEAVES_AT_ONCE ? 6000 : 1000) && !atomic_load(&slow_names_over); k++) usleep(10000);
    atomic_fetch_sub(&slow_names, 1);
    return EAI_AGAIN;
}

/* Ends the test as skipped where names are not looked up by the function above. */
static void look_for_no_such_host(mri_remote *r)
{
    mri_remote_file *f;
    mr_error err = MR_ERROR_INIT;
    const int before = atomic_load(&names);
    MRT_EQ(mri_remote_open(r, &f, "http://nowhere.test/x", &err), MR_EIO);
    if (atomic_load(&names) == before) {
        mri_remote_destroy(r);
        printf("SKIP: this libcurl does not look up names by getaddrinfo\n");
        skip();
    }
    MRT_HAS(err.text, "resolve host: nowhere.test; gave up after 4 tries");
}

static void test_no_such_host(void **state)
{
    (void)state;
    mri_remote *r = make(1 << 30, NULL);
    look_for_no_such_host(r);
    mri_remote_destroy(r);
}

static void test_destroy_while_a_name_is_looked_up(void **state)
{
    (void)state;
    mri_remote *r = make(1 << 30, NULL);
    mri_remote_file *f;
    mr_error err = MR_ERROR_INIT;
    look_for_no_such_host(r);
    MRT_OK(mri_remote_begin(r, &f, "http://slow.test/x", &err), &err);
    while (!atomic_load(&slow_names)) usleep(1000);
    mri_remote_destroy(r);
    MRT_TRUE(!LEAVES_AT_ONCE || atomic_load(&slow_names) > 0);
    atomic_store(&slow_names_over, 1);
    while (atomic_load(&slow_names)) usleep(1000);
}

static volatile int stop_flag;

static void *stop_when_asked(void *answers)
{
    await_answers(*(const unsigned *)answers);
    __atomic_store_n(&stop_flag, 2, __ATOMIC_RELAXED);
    return NULL;
}

static void test_stop(void **state)
{
    (void)state;
    setenv("MILLRACE_REMOTE", "tries=100,stall-s=1000", 1);
    stop_flag = 0;
    mri_remote *r = make(1 << 30, &stop_flag);
    mri_remote_file *f = open_one(r, "a.bin");
    pthread_t stopper;
    uint8_t byte;
    mr_error err = MR_ERROR_INIT;
    unsigned answers = mrt_http_answers(server) + 1;
    mrt_http_be(server, MRT_HTTP_SILENT, 0, -1);
    MRT_EQ(pthread_create(&stopper, NULL, stop_when_asked, &answers), 0);
    MRT_EQ(mri_remote_read(f, &byte, 1, 0, &err), MR_ECANCELED);
    MRT_EQ(mri_remote_open(r, &f, mrt_http_url(server, "b.bin"), &err), MR_ECANCELED);
    pthread_join(stopper, NULL);
    mri_remote_destroy(r);
}

static void test_destroy_while_stalled(void **state)
{
    (void)state;
    setenv("MILLRACE_REMOTE", "tries=100,stall-s=1000", 1);
    mri_remote *r = make(1 << 30, NULL);
    mri_remote_file *f = open_one(r, "a.bin");
    mri_block_request w = {0};
    const unsigned answers = mrt_http_answers(server) + 1;
    mrt_http_be(server, MRT_HTTP_SILENT, 0, -1);
    mri_block_request_start(&w, f, 0, MIB);
    await_answers(answers);
    mri_block_request_end(&w);
    mri_remote_destroy(r);
}

static void test_no_memory(void **state)
{
    (void)state;
    char url[256];
    snprintf(url, sizeof url, "%s", mrt_http_url(server, "a.bin"));
    for (int n = 0;; n += MRT_TURN) { /* fail each allocation in turn: reported, nothing leaked */
        mr_error err = MR_ERROR_INIT;
        mr_source *src = (mr_source *)&err; /* poison: open must clear it */
        mr_source_config cfg;
        mr_source_defaults(&cfg);
        cfg.remote_folder = mrt_path("no-memory");
        mrt_fail_alloc_at(n);
        const int rc = mr_source_open(&src, url, &cfg, &err);
        const int failed = mrt_alloc_failed();
        mrt_fail_alloc_at(-1);
        MRT_TRUE(src == NULL);
        if (!failed) {
            MRT_EQ(rc, MR_EUNSUPPORTED); /* noise is no format */
            MRT_HAS(err.file, "a.bin");
            break;
        }
        MRT_TRUE(rc == MR_ENOMEM || rc == MR_EUNSUPPORTED || rc == MR_EIO);
    }
}

static void test_settings(void **state)
{
    (void)state;
    mri_remote *r;
    mr_error err = MR_ERROR_INIT;
    setenv("MILLRACE_REMOTE", "tries=4,patience=9", 1);
    MRT_EQ(mri_remote_create(&r, &(mri_remote_config){mrt_path("x"), MIB, NULL}, &err), MR_EINVAL);
    MRT_HAS(err.text, "patience=9");
}

static void test_urls(void **state)
{
    (void)state;
    const char *const shown[][2] = {
        {"http://h/a/b.tar", "http://h/a/b.tar"},
        {"https://u:p@h:81/a?sig=x#y", "https://h:81/a?..."},
        {"http://u:p@q@h", "http://h"},
        {"http://h/a@b/c", "http://h/a@b/c"},
        {"http://h?a@b", "http://h?..."},
        {"http://u:pa/ss@h/x", "http://...@h/x"},
        {"http://u:pa#ss@h/x", "http://...@h/x"},
        {"http://u:p@s/s@h/x", "http://...@h/x"},
        {"http://u:p?s@h/x", "http://...@?..."}, /* or a query with a signature: neither is shown */
        {"http://u:12/s@h/x", "http://...@h/x"},
        {"http://h:80/a/x?y#z", "http://h:80/a/x?..."},
        {"http://[::1]:80/x", "http://[::1]:80/x"},
        {"http://[::1]/a@b", "http://[::1]/a@b"},
    };
    static const char *const faults[] = {"http://u:pa/ss@h/x",  "http://u:pa#ss@h/x", "http://u:pa?ss@h/x",
                                         "http://u:p@a/ss@h/x", "http://h:123456/x",  "http://h:8o/x",
                                         "http://[::1]:x/"};
    static const char *const sound[] = {"http://u:p@h/x", "http://h:/x",       "http://h:80/a@b",
                                        "http://h/a@b:c", "http://[::1]:80/x", "http://u:p@h:81/x?y",
                                        "http://h"};
    for (size_t k = 0; k < sizeof faults / sizeof *faults; k++) {
        MRT_TRUE(mri_url_fault(faults[k]) != NULL);
        MRT_HAS(mri_url_fault(faults[k]), "%2F");
    }
    for (size_t k = 0; k < sizeof sound / sizeof *sound; k++) MRT_TRUE(mri_url_fault(sound[k]) == NULL);
    for (size_t k = 0; k < sizeof shown / sizeof *shown; k++) {
        char *s = mri_url_shown(shown[k][0]);
        MRT_STR(s, shown[k][1]);
        free(s);
    }
    const char *const joined[][3] = {
        {"http://h/a/list?x=1", "b.mrec", "http://h/a/b.mrec"},
        {"http://h/a/list", "/b.mrec", "http://h/b.mrec"},
        {"http://h/a/list", "https://g/c", "https://g/c"},
    };
    for (size_t k = 0; k < sizeof joined / sizeof *joined; k++) {
        char *s = mri_url_join(joined[k][0], joined[k][1]);
        MRT_STR(s, joined[k][2]);
        free(s);
    }
    MRT_TRUE(mri_is_url("HTTPS://x") && !mri_is_url("http:/x") && !mri_is_url("x/http://"));
}

int main(void)
{
#define T(f) cmocka_unit_test_setup_teardown(f, set_up, tear_down)
    const struct CMUnitTest tests[] = {
        T(test_bytes),
        T(test_many_in_flight),
        T(test_kept),
        T(test_damaged_on_disk),
        T(test_limit),
        T(test_in_use_is_not_dropped),
        T(test_room_of_what_is_given_up),
        T(test_lies_about_the_size),
        T(test_claims_take_no_memory),
        T(test_whole_beside_another_program),
        T(test_no_such_host),
        T(test_destroy_while_a_name_is_looked_up),
        T(test_two_sets_on_one_folder),
        T(test_faults_that_pass),
        T(test_faults_that_stay),
        T(test_server_without_ranges),
        T(test_changed_on_the_server),
        T(test_no_version),
        T(test_no_version_is_one_answer),
        T(test_one_answer_is_cut),
        T(test_redirects),
        T(test_not_believed),
        T(test_small_files),
        T(test_nobody_there),
        T(test_stop),
        T(test_destroy_while_stalled),
        T(test_no_memory),
        T(test_settings),
        T(test_urls),
    };
    mri_remote *r;
    mr_error err = MR_ERROR_INIT;
    if (mri_remote_create(&r, &(mri_remote_config){mrt_path("probe"), MIB, NULL}, &err) == MR_EUNSUPPORTED) {
        printf("skipped: %s\n", err.text);
        return 77;
    }
    mri_remote_destroy(r);
    return mrt_run(tests);
}
