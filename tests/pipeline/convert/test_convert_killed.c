/* A conversion that replaces another one, killed before every call that changes the disk: at any such moment
 * the named output is the old or the new one and never a mix of both, and the run can be resumed (or
 * repeated) to the same bytes. Old and new have the same names, sizes and provenance where they can: only the
 * bytes differ. */
#include <dirent.h>
#include <signal.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#include "tests/pipeline/sets.h"

static long calls = -1; /* before the process is killed; -1: never */

static void count(void)
{
    if (calls >= 0 && calls-- == 0) kill(getpid(), SIGKILL);
}

int __real_renameat2(int from, const char *a, int to, const char *b, unsigned flags);
int __real_rename(const char *a, const char *b);
int __real_link(const char *a, const char *b);
int __real_unlink(const char *path);
int __real_ftruncate(int fd, off_t bytes);
int __real_ftruncate64(int fd, off_t bytes);
ssize_t __real_pwrite(int fd, const void *data, size_t bytes, off_t at);
ssize_t __real_pwrite64(int fd, const void *data, size_t bytes, off_t at);
int __wrap_renameat2(int from, const char *a, int to, const char *b, unsigned flags);
int __wrap_rename(const char *a, const char *b);
int __wrap_link(const char *a, const char *b);
int __wrap_unlink(const char *path);
int __wrap_fsync(int fd);
int __wrap_ftruncate(int fd, off_t bytes);
int __wrap_ftruncate64(int fd, off_t bytes);
ssize_t __wrap_pwrite(int fd, const void *data, size_t bytes, off_t at);
ssize_t __wrap_pwrite64(int fd, const void *data, size_t bytes, off_t at);

int __wrap_renameat2(int from, const char *a, int to, const char *b, unsigned flags)
{
    count();
    return __real_renameat2(from, a, to, b, flags);
}
int __wrap_rename(const char *a, const char *b) { return count(), __real_rename(a, b); }
int __wrap_link(const char *a, const char *b) { return count(), __real_link(a, b); }
int __wrap_unlink(const char *path) { return count(), __real_unlink(path); }
/* The kernel outlives a process that is killed: nothing has to be on the disk itself. */
int __wrap_fsync(int fd) { return (void)fd, count(), 0; }
int __wrap_ftruncate(int fd, off_t bytes) { return count(), __real_ftruncate(fd, bytes); }
int __wrap_ftruncate64(int fd, off_t bytes) { return count(), __real_ftruncate64(fd, bytes); }
ssize_t __wrap_pwrite(int fd, const void *data, size_t bytes, off_t at)
{
    count();
    return __real_pwrite(fd, data, bytes, at);
}
ssize_t __wrap_pwrite64(int fd, const void *data, size_t bytes, off_t at)
{
    count();
    return __real_pwrite64(fd, data, bytes, at);
}

/* ---- two sets and their outputs ---- */
enum { COUNT = 24, SIDE = 16, NAMES_MOST = 64 };

typedef struct scenario {
    const char *name, *dst;
    mr_to to;
    uint64_t old_bytes, new_bytes; /* of shards; 0: one file */
    bool fresh;                    /* there is nothing to replace */
} scenario;

static void shell(const char *format, ...) MR_PRINTF(1, 2);
static void shell(const char *format, ...)
{
    char command[4096];
    va_list args;
    va_start(args, format);
    vsnprintf(command, sizeof command, format, args);
    va_end(args);
    MRT_EQ(system(command), 0);
}

/* Other pixels in a file of the same size. */
static void change(const char *images)
{
    size_t bytes;
    uint8_t *data = mrt_read_file(images, &bytes);
    for (size_t k = 16; k < bytes; k++) data[k] ^= 0x15;
    mrt_write_file(images, data, bytes);
    free(data);
}

static mr_convert_config config(const scenario *s, uint64_t shard_bytes)
{
    mr_convert_config cfg;
    mr_convert_defaults(&cfg);
    cfg.to = s->to;
    if (s->to == MR_TO_TAR) cfg.sample_index = MR_SAMPLE_INDEX_WIDS;
    cfg.shard_bytes = shard_bytes;
    cfg.workers = 1;
    cfg.force = !s->fresh;
    return cfg;
}

static int convert_into(const char *folder, const char *source, const scenario *s,
                        const mr_convert_config *cfg, mr_error *err)
{
    mr_source *src;
    char dst[1024];
    snprintf(dst, sizeof dst, "%s/%s", mrt_path("%s", folder), s->dst);
    int rc = mr_source_open(&src, mrt_path("%s-images-idx3-ubyte", source), NULL, err);
    if (rc) return rc;
    rc = mr_convert(src, dst, cfg, NULL, err);
    mr_source_close(src);
    return rc;
}

static void prepare(const scenario *s)
{
    mr_error err = MR_ERROR_INIT;
    shell("rm -rf '%s/old' '%s/new' && mkdir '%s/old' '%s/new'", mrt_temp(), mrt_temp(), mrt_temp(),
          mrt_temp());
    mrt_idx_set("before", COUNT, SIDE, SIDE);
    mrt_idx_set("after", COUNT, SIDE, SIDE);
    change(mrt_path("after-images-idx3-ubyte"));
    mr_convert_config cfg = config(s, s->old_bytes);
    if (!s->fresh) MRT_OK(convert_into("old", "before", s, &cfg, &err), &err);
    cfg = config(s, s->new_bytes);
    MRT_OK(convert_into("new", "after", s, &cfg, &err), &err);
}

/* ---- files on disk ---- */
static bool is_part(const char *name)
{
    const size_t n = strlen(name);
    return n > 5 && strcmp(name + n - 5, ".part") == 0;
}

/* Names in a folder; temporary files (.part) count only if parts is set. */
static int names(const char *folder, char out[NAMES_MOST][64], bool parts)
{
    int n = 0;
    DIR *d = opendir(mrt_path("%s", folder));
    assert_non_null(d);
    for (const struct dirent *e; (e = readdir(d));) {
        if (e->d_name[0] == '.' || (is_part(e->d_name) && !parts)) continue;
        MRT_TRUE(n < NAMES_MOST);
        snprintf(out[n++], 64, "%.63s", e->d_name);
    }
    closedir(d);
    return n;
}

static bool same_file(const char *folder, const char *name)
{
    size_t a_bytes, b_bytes;
    char other[1024];
    snprintf(other, sizeof other, "%s", mrt_path("%s/%s", folder, name));
    if (access(other, F_OK) != 0) return false;
    void *a = mrt_read_file(mrt_path("w/%s", name), &a_bytes), *b = mrt_read_file(other, &b_bytes);
    const bool same = a_bytes == b_bytes && memcmp(a, b, a_bytes) == 0;
    free(a);
    free(b);
    return same;
}

/* Nothing but whole files of the old output, or nothing but whole files of the new one; and when the list of
 * a set is there, all of them. */
static void check_no_mixture(const scenario *s, long at)
{
    static char found[NAMES_MOST][64], all[NAMES_MOST][64];
    int old = 0, new = 0;
    const int n = names("w", found, false);
    for (int k = 0; k < n; k++) {
        const bool is_old = same_file("old", found[k]), is_new = same_file("new", found[k]);
        if (!is_old && !is_new) fail_msg("%s, killed at %ld: %s is of neither", s->name, at, found[k]);
        old += is_old && !is_new;
        new += is_new && !is_old;
    }
    if (old && new) fail_msg("%s, killed at %ld: %d old files and %d new ones", s->name, at, old, new);
    if (s->to == MR_TO_MREC && access(mrt_path("w/%s", s->dst), F_OK) == 0)
        MRT_EQ(n, names(old ? "old" : "new", all, false));
}

static void check_all_new(const scenario *s)
{
    static char found[NAMES_MOST][64], all[NAMES_MOST][64];
    const int n = names("w", found, true);
    MRT_EQ(n, names("new", all, true));
    for (int k = 0; k < n; k++)
        if (!same_file("new", found[k]))
            fail_msg("%s: %s is not as in an undisturbed run", s->name, found[k]);
}

/* Is it over? Else it was killed. */
static bool run_killed(const scenario *s, long at, bool resume)
{
    const pid_t child = fork();
    MRT_TRUE(child >= 0);
    if (child == 0) {
        mr_convert_config cfg = config(s, s->new_bytes);
        cfg.resume = resume;
        calls = at;
        _exit(convert_into("w", "after", s, &cfg, NULL) == MR_OK ? 0 : 1);
    }
    int status;
    MRT_EQ(waitpid(child, &status, 0), child);
    if (WIFEXITED(status)) MRT_EQ(WEXITSTATUS(status), 0);
    else MRT_EQ(WTERMSIG(status), SIGKILL);
    return WIFEXITED(status);
}

/* How many points there are, counted in a run that nobody kills. */
static long points_of(const scenario *s)
{
    const long plenty = 1L << 40;
    mr_error err = MR_ERROR_INIT;
    mr_convert_config cfg = config(s, s->new_bytes);
    shell("rm -rf '%s/w' && cp -a '%s/old' '%s/w'", mrt_temp(), mrt_temp(), mrt_temp());
    calls = plenty;
    MRT_OK(convert_into("w", "after", s, &cfg, &err), &err);
    const long points = plenty - calls;
    calls = -1;
    return points;
}

/* Some points: most of those at the beginning and at the end, where names are given. MRT_EVERY_POINT: all,
 * for people. */
static long next_point(long at, long points)
{
    const long apart = MRT_SANITIZED ? 12 : 5; /* names and bytes are the same there */
    if (at < 6 || getenv("MRT_EVERY_POINT")) return at + 1;
    if (at >= points - 50) return at + (at < points - 5 ? apart : 1);
    return at + 32 < points - 50 ? at + 32 : points - 50;
}

static void killed_everywhere(const scenario *s)
{
    long at = 0, tried = 0;
    prepare(s);
    const long points = points_of(s);
    for (bool over = false; !over; at = next_point(at, points), tried++) {
        shell("rm -rf '%s/w' && cp -a '%s/old' '%s/w'", mrt_temp(), mrt_temp(), mrt_temp());
        over = run_killed(s, at, false);
        check_no_mixture(s, at);
        /* killed again on the way, then to the end */
        const bool resumes = s->to == MR_TO_MREC;
        mr_convert_config cfg = config(s, s->new_bytes);
        cfg.resume = resumes;
        if (!over && resumes) run_killed(s, at % 7, true);
        check_no_mixture(s, at);
        cfg.force = cfg.force || !resumes; /* what has names by now is replaced */
        mr_error err = MR_ERROR_INIT;
        if (!over) MRT_OK(convert_into("w", "after", s, &cfg, &err), &err);
        check_all_new(s);
        MRT_TRUE(at < 2000);
    }
    print_message("%s: killed at %ld of %ld points\n", s->name, tried - 1, points);
    MRT_TRUE(tried > 5);
}

static void one_file(void **state)
{
    (void)state;
    killed_everywhere(&(scenario){.name = "one file", .dst = "out.mrec", .to = MR_TO_MREC});
}

static void a_set_of_fewer(void **state)
{
    (void)state;
    killed_everywhere(&(scenario){
        .name = "fewer shards", .dst = "out.mrec", .to = MR_TO_MREC, .old_bytes = 5600, .new_bytes = 7000});
}

static void a_set_of_the_same_names(void **state)
{
    (void)state;
    killed_everywhere(&(scenario){
        .name = "as many shards", .dst = "out.mrec", .to = MR_TO_MREC, .old_bytes = 7000, .new_bytes = 7000});
}

static void a_new_set(void **state)
{
    (void)state;
    killed_everywhere(&(scenario){
        .name = "new shards", .dst = "out.mrec", .to = MR_TO_MREC, .new_bytes = 7000, .fresh = true});
}

static void a_set_of_tars(void **state)
{
    (void)state;
    killed_everywhere(
        &(scenario){.name = "tar", .dst = "out", .to = MR_TO_TAR, .old_bytes = 20000, .new_bytes = 20000});
}

static void a_set_of_tfrecords(void **state)
{
    (void)state;
    killed_everywhere(&(scenario){
        .name = "tfrecord", .dst = "out", .to = MR_TO_TFRECORD, .old_bytes = 5000, .new_bytes = 5000});
}

/* The folder is the output, and its list comes last. */
static void a_set_of_mds(void **state)
{
    (void)state;
    killed_everywhere(
        &(scenario){.name = "mds", .dst = ".", .to = MR_TO_MDS, .old_bytes = 5000, .new_bytes = 5000});
}

static void a_set_of_recordio(void **state)
{
    (void)state;
    killed_everywhere(&(scenario){
        .name = "recordio", .dst = "out", .to = MR_TO_RECORDIO, .old_bytes = 5000, .new_bytes = 5000});
}

/* The old index may not stay next to the new file. */
static void a_file_of_recordio(void **state)
{
    (void)state;
    killed_everywhere(&(scenario){.name = "recordio file", .dst = "out.rec", .to = MR_TO_RECORDIO});
}

/* Records of an interrupted run are not discarded unless asked, and not mixed with records of other data. */
static void interrupted_runs_are_kept(void **state)
{
    (void)state;
    for (int sharded = 0; sharded < 2; sharded++) {
        const scenario s = {.name = "kept",
                            .dst = "out.mrec",
                            .to = MR_TO_MREC,
                            .new_bytes = sharded ? 7000 : 0,
                            .fresh = true};
        mr_error err = MR_ERROR_INIT;
        prepare(&s);
        shell("rm -rf '%s/w' && mkdir '%s/w'", mrt_temp(), mrt_temp());
        MRT_TRUE(!run_killed(&s, COUNT + (sharded ? 14 : 6), false));
        static char before[NAMES_MOST][64], after[NAMES_MOST][64];
        const int n = names("w", before, true);
        MRT_TRUE(n > 0);
        mr_convert_config cfg = config(&s, s.new_bytes);
        MRT_EQ(convert_into("w", "after", &s, &cfg, &err), MR_EEXIST);
        MRT_HAS(err.text, "--resume");
        MRT_HAS(err.text, "--force");
        MRT_EQ(names("w", after, true), n);
        change(mrt_path("after-images-idx3-ubyte")); /* the same sizes, other bytes */
        if (sharded) {
            cfg.resume = true;
            MRT_EQ(convert_into("w", "after", &s, &cfg, &err), MR_EEXIST);
            MRT_HAS(err.text, "the data changed since");
            MRT_EQ(names("w", after, true), n);
        }
        cfg.resume = false;
        cfg.force = true;
        MRT_OK(convert_into("w", "after", &s, &cfg, &err), &err);
        MRT_EQ(names("w", after, true), names("new", before, true));
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(one_file),           cmocka_unit_test(a_set_of_fewer),
        cmocka_unit_test(a_new_set),          cmocka_unit_test(a_set_of_the_same_names),
        cmocka_unit_test(a_set_of_tars),      cmocka_unit_test(a_set_of_tfrecords),
        cmocka_unit_test(a_set_of_mds),       cmocka_unit_test(a_set_of_recordio),
        cmocka_unit_test(a_file_of_recordio), cmocka_unit_test(interrupted_runs_are_kept),
    };
    return mrt_run(tests);
}
