/* Tests of the files mr_convert() makes in other people's formats: the same bytes whatever happens, all of
 * them or none, nothing overwritten by accident, nothing left behind. Every test runs for TFRecord and
 * for tar; the tests of lists for MDS and RecordIO. */
#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <signal.h>
#include <sys/file.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/util.h"
#include "tests/pipeline/convert/converted.h"
#include "tests/pipeline/sets.h"

enum { CLASSES = 3, PER_CLASS = 20, COUNT = CLASSES * PER_CLASS, SHARD_BYTES = 24 * 1024 };

static const struct {
    mr_to to;
    const char *name;
} kinds[] = {{MR_TO_TFRECORD, "tfrecord"}, {MR_TO_TAR, "tar"}};

/* The same for every test; made once. */
static const char *folder(void)
{
    static char path[1024];
    if (!path[0]) snprintf(path, sizeof path, "%s", mrt_folder_set("set", CLASSES, PER_CLASS, 24, true));
    return path;
}

static mr_convert_config config(int kind, uint64_t shard_bytes)
{
    mr_convert_config cfg;
    mr_convert_defaults(&cfg);
    cfg.to = kinds[kind].to;
    cfg.shard_bytes = shard_bytes;
    cfg.workers = 2;
    return cfg;
}

/* A folder of its own for each output, so that everything that is left shows. */
static const char *place(const char *name, int kind)
{
    static char path[1024];
    mrt_mkdir(mrt_path("%s-%s", name, kinds[kind].name));
    snprintf(path, sizeof path, "%s", mrt_path("%s-%s/out", name, kinds[kind].name));
    return path;
}

static const char *shard(const char *dst, int kind, uint32_t at, uint32_t count)
{
    static char path[4][1100];
    static int turn;
    char *p = path[turn++ % 4];
    if (kinds[kind].to == MR_TO_TFRECORD) snprintf(p, sizeof path[0], "%s-%05u-of-%05u", dst, at, count);
    else snprintf(p, sizeof path[0], "%s-%06u.tar", dst, at);
    return p;
}

static bool exists(const char *path) { return access(path, F_OK) == 0; }

/* Entries beside DST. */
static int files_beside(const char *dst)
{
    char where[1024];
    int count = 0;
    snprintf(where, sizeof where, "%s", dst);
    *strrchr(where, '/') = '\0';
    DIR *d = opendir(where);
    MRT_TRUE(d != NULL);
    for (const struct dirent *e; (e = readdir(d));) count += e->d_name[0] != '.';
    closedir(d);
    return count;
}

static void same_samples(const mr_source *a, const mr_source *b)
{
    const mr_source_info *ai = mr_source_info_of(a), *bi = mr_source_info_of(b);
    void *ab = NULL, *bb = NULL;
    size_t an = 0, bn = 0;
    mr_error err = MR_ERROR_INIT;
    MRT_EQ(ai->count, bi->count);
    for (uint64_t k = 0; k < ai->count; k++) {
        mr_sample x, y;
        MRT_OK(mr_source_read(a, k, &ab, &an, &x, &err), &err);
        MRT_OK(mr_source_read(b, k, &bb, &bn, &y, &err), &err);
        const mr_value *v = &x.value[ai->image_field], *w = &y.value[bi->image_field];
        MRT_EQ(v->type, w->type);
        MRT_EQ(v->bytes, w->bytes);
        assert_memory_equal(v->data, w->data, v->bytes);
        MRT_EQ(x.value[ai->label_field].i, y.value[bi->label_field].i);
    }
    free(ab);
    free(bb);
}

/* ---- what comes out ---- */

static void the_same_for_any_number_of_workers(void **state)
{
    (void)state;
    mr_source *src = mrt_source_alone(folder());
    for (int kind = 0; kind < 2; kind++)
        for (uint64_t bytes = 0; bytes <= SHARD_BYTES; bytes += SHARD_BYTES) {
            char first[1024] = "";
            uint32_t shards = 0;
            for (uint32_t workers = 1; workers <= 5; workers += 2) {
                mr_error err = MR_ERROR_INIT;
                mr_convert_config cfg = config(kind, bytes);
                mr_convert_result res;
                const char *dst =
                    place(mrt_path("w%u-%u", workers, bytes != 0) + strlen(mrt_temp()) + 1, kind);
                cfg.workers = workers;
                MRT_OK(mr_convert(src, dst, &cfg, &res, &err), &err);
                MRT_EQ(res.records, COUNT);
                MRT_EQ(files_beside(dst), res.shards);
                if (!first[0]) snprintf(first, sizeof first, "%s", dst), shards = res.shards;
                MRT_EQ(res.shards, shards);
                MRT_TRUE(bytes ? shards > 2 : shards == 1);
                for (uint32_t k = 0; bytes && k < shards; k++)
                    mrt_same_files(shard(first, kind, k, shards), shard(dst, kind, k, shards));
                if (!bytes) mrt_same_files(first, dst);
            }
        }
    mr_source_close(src);
}

static void samples_come_back_as_they_were(void **state)
{
    (void)state;
    mr_source *src = mrt_source_alone(folder());
    for (int kind = 0; kind < 2; kind++) {
        mr_error err = MR_ERROR_INIT;
        mr_convert_config cfg = config(kind, 0);
        mr_convert_result res;
        const char *dst = place("back", kind);
        MRT_OK(mr_convert(src, dst, &cfg, NULL, &err), &err);
        mr_source *back = mrt_source_alone(dst);
        same_samples(src, back);
        mr_source_close(back);
        cfg = config(kind, SHARD_BYTES);
        MRT_OK(mr_convert(src, dst, &cfg, &res, &err), &err);
        struct stat st;
        uint64_t bytes = 0;
        for (uint32_t k = 0; k < res.shards; k++) {
            MRT_EQ(stat(shard(dst, kind, k, res.shards), &st), 0);
            MRT_TRUE(st.st_size <= SHARD_BYTES);
            bytes += (uint64_t)st.st_size;
        }
        MRT_EQ(res.bytes_out, bytes);
        char pattern[1100];
        snprintf(pattern, sizeof pattern, "%s-{000000..%06u}.tar", dst, res.shards - 1);
        back = mrt_source_alone(kind == 0 ? shard(dst, kind, 1, res.shards) : pattern);
        same_samples(src, back);
        mr_source_close(back);
    }
    mr_source_close(src);
}

/* A sample larger than a file may be has a file of its own. */
static void a_tiny_shard_holds_one_sample(void **state)
{
    (void)state;
    mr_source *src = mrt_source_alone(folder());
    for (int kind = 0; kind < 2; kind++) {
        mr_error err = MR_ERROR_INIT;
        mr_convert_config cfg = config(kind, 1);
        mr_convert_result res;
        const char *dst = place("tiny", kind);
        MRT_OK(mr_convert(src, dst, &cfg, &res, &err), &err);
        MRT_EQ(res.shards, COUNT);
        MRT_EQ(files_beside(dst), COUNT);
    }
    mr_source_close(src);
}

/* One piece of a set is one file, whatever its name says to those who read sets. */
static void a_name_of_a_set_is_only_a_name(void **state)
{
    (void)state;
    mr_source *src = mrt_source_alone(folder());
    mr_error err = MR_ERROR_INIT;
    mr_convert_config cfg = config(0, 0);
    MRT_OK(mr_convert(src, mrt_path("part-00001-of-00004"), &cfg, NULL, &err), &err);
    MRT_TRUE(exists(mrt_path("part-00001-of-00004")));
    mr_source_close(src);
}

/* ---- refused settings and outputs ---- */

static void settings_without_a_place_are_refused(void **state)
{
    (void)state;
    mr_source *src = mrt_source_alone(folder());
    for (int kind = 0; kind < 2; kind++) {
        const char *dst = place("settings", kind);
        mr_convert_config cfg = config(kind, 0);
        cfg.resume = true;
        mrt_convert_refused(src, dst, &cfg, MR_EINVAL, "resume");
        cfg = config(kind, 0);
        cfg.store = MR_STORE_COEF;
        mrt_convert_refused(src, dst, &cfg, MR_EINVAL, "store coef");
        cfg.to = (mr_to)7;
        mrt_convert_refused(src, dst, &cfg, MR_EINVAL,
                            "to is 7: expected 0 to 4 (mrec, tfrecord, tar, mds, recordio)");
        MRT_EQ(files_beside(dst), 0);
    }
    mr_convert_config cfg = config(1, 0);
    cfg.store = MR_STORE_RAW;
    mrt_convert_refused(src, mrt_path("raw.tar"), &cfg, MR_EINVAL, "store raw");
    cfg = config(0, 0);
    cfg.sample_index = MR_SAMPLE_INDEX_WIDS;
    mrt_convert_refused(src, mrt_path("no-index"), &cfg, MR_EINVAL, "a WIDS index is of tar archives");
    mr_source_close(src);
}

static void outputs_are_not_replaced_by_accident(void **state)
{
    (void)state;
    mr_source *src = mrt_source_alone(folder());
    for (int kind = 0; kind < 2; kind++) {
        mr_error err = MR_ERROR_INIT;
        mr_convert_config one = config(kind, 0), many = config(kind, SHARD_BYTES);
        mr_convert_result res;
        const char *dst = place("there", kind);
        char set[1100];
        MRT_OK(mr_convert(src, dst, &one, NULL, &err), &err);
        mrt_convert_refused(src, dst, &one, MR_EEXIST, "exists");
        MRT_OK(mr_convert(src, dst, &many, &res, &err), &err);
        const int before = files_beside(dst);
        mrt_convert_refused(src, dst, &many, MR_EEXIST, "exists");
        MRT_EQ(files_beside(dst), before);

        /* inputs are not overwritten */
        one.force = many.force = true;
        mr_source *same = mrt_source_alone(dst);
        mrt_convert_refused(same, dst, &one, MR_EINVAL, "also the input");
        mr_source_close(same);
        snprintf(set, sizeof set, "%s-{000000..%06u}.tar", dst, res.shards - 1);
        same = mrt_source_alone(kind == 0 ? shard(dst, kind, 0, res.shards) : set);
        mrt_convert_refused(same, dst, &many, MR_EINVAL, "also the input");
        mr_source_close(same);
        MRT_EQ(files_beside(dst), before);
        mrt_convert_refused(src, mrt_path("set/inside"), &many, MR_EINVAL, "inside the input");

        /* folders, links, no place at all */
        mrt_mkdir(mrt_path("there-%s/dir", kinds[kind].name));
        mrt_convert_refused(src, mrt_path("there-%s/dir", kinds[kind].name), &one, MR_EINVAL, "folder");
        mrt_convert_refused(src, mrt_path("there-%s/", kinds[kind].name), &many, MR_EINVAL, "folder");
        MRT_EQ(symlink("elsewhere", mrt_path("there-%s/link", kinds[kind].name)), 0);
        mrt_convert_refused(src, mrt_path("there-%s/link", kinds[kind].name), &one, MR_EINVAL, "link");
        mrt_convert_refused(src, mrt_path("nowhere/x"), &one, MR_ENOENT, "");
        mrt_convert_refused(src, mrt_path("nowhere/x"), &many, MR_ENOENT, "folder");
    }
    mr_source_close(src);
}

/* Larger shards, so fewer: surplus files of the old set are removed, and so are files aside. */
static void force_replaces_the_whole_set(void **state)
{
    (void)state;
    mr_source *src = mrt_source_alone(folder());
    for (int kind = 0; kind < 2; kind++) {
        mr_error err = MR_ERROR_INIT;
        mr_convert_config cfg = config(kind, SHARD_BYTES);
        mr_convert_result before, after;
        const char *dst = place("force", kind);
        MRT_OK(mr_convert(src, dst, &cfg, &before, &err), &err);
        mrt_write_file(mrt_path("force-%s/out-00000.part", kinds[kind].name), "old and longer than nothing",
                       27);
        mrt_write_file(mrt_path("force-%s/out-00077.part", kinds[kind].name), "old", 3);
        static const char *const others[] = {"out-7",           "out-00001-of-x",  "out-00001-of-00009x",
                                             "out-000001.tarx", "out-00001.part2", "outer-000009.tar"};
        for (int k = 0; k < 6; k++)
            mrt_write_file(mrt_path("force-%s/%s", kinds[kind].name, others[k]), "mine", 4);
        cfg.shard_bytes = 2 * SHARD_BYTES;
        cfg.force = true;
        MRT_OK(mr_convert(src, dst, &cfg, &after, &err), &err);
        MRT_TRUE(after.shards < before.shards);
        for (uint32_t k = 0; k < after.shards; k++) MRT_TRUE(exists(shard(dst, kind, k, after.shards)));
        MRT_EQ(files_beside(dst), after.shards + 6); /* nobody else's file was touched */
    }
    mr_source_close(src);
}

/* A browser's unfinished download of that name, or somebody's own file. */
static void part_files_of_others_stay(void **state)
{
    (void)state;
    mr_source *src = mrt_source_alone(folder());
    for (int k = 0; k < 6; k++) {
        const int kind = k % 2, where = k / 2; /* the one file, the first shard, a later one */
        static const char *const parts[] = {"out.part", "out-00000.part", "out-00077.part"};
        static const char *const folders[] = {"theirs", "theirs0", "theirs77"};
        const char *dst = place(folders[where], kind);
        mr_convert_config cfg = config(kind, where ? SHARD_BYTES : 0);
        mr_convert_result result;
        mr_error err = MR_ERROR_INIT;
        char part[512];
        size_t bytes;
        snprintf(part, sizeof part, "%s",
                 mrt_path("%s-%s/%s", folders[where], kinds[kind].name, parts[where]));
        mrt_write_file(part, "theirs", 6);
        mrt_convert_refused(src, dst, &cfg, MR_EEXIST, "no interrupted run left this file");
        MRT_EQ(files_beside(dst), 1);
        char *found = mrt_read_file(part, &bytes);
        MRT_TRUE(bytes == 6 && memcmp(found, "theirs", 6) == 0);
        free(found);
        cfg.force = true;
        MRT_OK(mr_convert(src, dst, &cfg, &result, &err), &err);
        MRT_TRUE(!exists(part));
    }
    mr_source_close(src);
}

static void two_runs_do_not_write_at_once(void **state)
{
    (void)state;
    mr_source *src = mrt_source_alone(folder());
    for (int kind = 0; kind < 2; kind++) {
        const char *dst = place("lock", kind);
        mr_convert_config cfg = config(kind, SHARD_BYTES);
        mrt_write_file(mrt_path("lock-%s/out-00000.part", kinds[kind].name), "theirs", 6);
        mrt_write_file(mrt_path("lock-%s/out-00001.part", kinds[kind].name), "theirs", 6);
        const int fd = open(mrt_path("lock-%s/out-00000.part", kinds[kind].name), O_RDWR | O_CLOEXEC);
        MRT_EQ(flock(fd, LOCK_EX), 0);
        mrt_convert_refused(src, dst, &cfg, MR_EEXIST, "another process");
        MRT_EQ(files_beside(dst), 2);
        close(fd);
    }
    mr_source_close(src);
}

/* ---- what goes wrong on the way ---- */

typedef struct meddler {
    volatile int stop;
    uint64_t at;        /* stop there; or meddle with: */
    const char *make;   /* a file that comes into being */
    const char *damage; /* a file whose first byte changes */
} meddler;

static void meddle(void *context, uint64_t done, uint64_t count, uint64_t bytes)
{
    meddler *m = context;
    (void)count, (void)bytes;
    if (done != m->at) return;
    if (m->make) mrt_write_file(m->make, "theirs", 6);
    else if (m->damage) {
        const int fd = open(m->damage, O_RDWR | O_CLOEXEC);
        uint8_t byte;
        MRT_EQ(pread(fd, &byte, 1, 700), 1);
        byte ^= 1;
        MRT_EQ(pwrite(fd, &byte, 1, 700), 1);
        close(fd);
    } else m->stop = 1;
}

static void stopped_leaves_nothing(const mr_source *src, const char *name, int kind, uint64_t at,
                                   uint64_t shard_bytes)
{
    meddler m = {.at = at};
    mr_convert_config cfg = config(kind, shard_bytes);
    const char *dst = place(name, kind);
    cfg.progress = meddle;
    cfg.context = &m;
    cfg.stop = &m.stop;
    mrt_convert_refused(src, dst, &cfg, MR_ECANCELED, "nothing was written");
    MRT_EQ(files_beside(dst), 0);
}

static void a_stopped_run_leaves_nothing(void **state)
{
    (void)state;
    mr_source *src = mrt_source_alone(folder());
    for (int kind = 0; kind < 2; kind++)
        for (uint64_t at = 1; at < COUNT; at += 13)
            stopped_leaves_nothing(src, "stop", kind, at, at % 2 ? SHARD_BYTES : 0);
    mr_source_close(src);
}

/* Also when it is asked for while everything is read back. */
static void a_run_stopped_at_its_end_leaves_nothing(void **state)
{
    (void)state;
    mr_source *src = mrt_source_alone(folder());
    for (int kind = 0; kind < 2; kind++) stopped_leaves_nothing(src, "stop-end", kind, COUNT, SHARD_BYTES);
    mr_source_close(src);
}

/* A file of ours may not replace one that appeared since: the files that already have their final names lose
 * them again. */
static void a_name_taken_meanwhile_ends_it(void **state)
{
    (void)state;
    mr_source *src = mrt_source_alone(folder());
    for (int kind = 0; kind < 2; kind++) {
        mr_error err = MR_ERROR_INIT;
        mr_convert_config cfg = config(kind, SHARD_BYTES);
        mr_convert_result res;
        const char *dst = place("meanwhile", kind);
        MRT_OK(mr_convert(src, dst, &cfg, &res, &err), &err);
        for (uint32_t k = 0; k < res.shards; k++) MRT_EQ(unlink(shard(dst, kind, k, res.shards)), 0);
        meddler m = {.at = COUNT, .make = shard(dst, kind, 1, res.shards)};
        cfg.progress = meddle;
        cfg.context = &m;
        mrt_convert_refused(src, dst, &cfg, MR_EEXIST, "it exists already");
        MRT_EQ(files_beside(dst), 1);
        size_t bytes;
        void *theirs = mrt_read_file(m.make, &bytes);
        MRT_EQ(bytes, 6);
        free(theirs);
    }
    mr_source_close(src);
}

static void what_reads_back_otherwise_is_found(void **state)
{
    (void)state;
    mr_source *src = mrt_source_alone(folder());
    for (int kind = 0; kind < 2; kind++) {
        mr_error err = MR_ERROR_INIT;
        mr_convert_config cfg = config(kind, SHARD_BYTES);
        const char *dst = place("damaged", kind);
        meddler m = {.at = COUNT, .damage = mrt_path("damaged-%s/out-00001.part", kinds[kind].name)};
        cfg.progress = meddle;
        cfg.context = &m;
        MRT_EQ(mr_convert(src, dst, &cfg, NULL, &err), MR_ECHECKSUM);
        MRT_HAS(err.text, "differs from the written");
        MRT_HAS(err.file, "out-00001.part");
        MRT_EQ(files_beside(dst), 0);
        cfg.verify = false;
        m.damage = mrt_path("damaged-%s/out-00001.part", kinds[kind].name);
        MRT_OK(mr_convert(src, dst, &cfg, NULL, &err), &err);
    }
    mr_source_close(src);
}

static void a_full_disk_leaves_nothing(void **state)
{
    (void)state;
    mr_source *src = mrt_source_alone(folder());
    struct rlimit before;
    MRT_EQ(getrlimit(RLIMIT_FSIZE, &before), 0);
    const struct rlimit small = {SHARD_BYTES - 8192, before.rlim_max};
    signal(SIGXFSZ, SIG_IGN);
    for (int kind = 0; kind < 2; kind++)
        for (int shards = 0; shards < 2; shards++) {
            mr_error err = MR_ERROR_INIT;
            mr_convert_config cfg = config(kind, shards ? SHARD_BYTES : 0);
            const char *dst = place("full", kind);
            MRT_EQ(setrlimit(RLIMIT_FSIZE, &small), 0);
            const int rc = mr_convert(src, dst, &cfg, NULL, &err);
            MRT_EQ(setrlimit(RLIMIT_FSIZE, &before), 0);
            MRT_EQ(rc, MR_EIO);
            MRT_EQ(err.sys_errno, EFBIG);
            MRT_HAS(err.file, ".part");
            MRT_EQ(files_beside(dst), 0);
        }
    mr_source_close(src);
}

static void nothing_good_leaves_nothing(void **state)
{
    (void)state;
    mrt_mkdir(mrt_path("bad"));
    mrt_mkdir(mrt_path("bad/x"));
    mrt_write_file(mrt_path("bad/x/0.jpg"), "\xff\xd8\xff\xe0 cut", 8);
    mr_source *src = mrt_source_alone(mrt_path("bad"));
    for (int kind = 0; kind < 2; kind++) {
        const char *dst = place("none", kind);
        mr_convert_config cfg = config(kind, 0);
        mrt_convert_refused(src, dst, &cfg, MR_EBADSAMPLE, "none of the 1 samples");
        MRT_EQ(files_beside(dst), 0);
    }
    mr_source_close(src);
}

static void every_allocation_may_fail(void **state)
{
    (void)state;
    mr_source *src = mrt_source_alone(folder());
    for (int kind = 0; kind < 2; kind++) {
        mr_convert_config cfg = config(kind, SHARD_BYTES);
        const char *dst = place("memory", kind);
        cfg.workers = 1;
        long n = 0;
        for (int reached = 0; !reached; n += n < 80 ? 1 : 29) {
            mr_error err = MR_ERROR_INIT;
            mrt_fail_alloc_at(n);
            const int rc = mr_convert(src, dst, &cfg, NULL, &err);
            const int failed = mrt_alloc_failed();
            mrt_fail_alloc_at(-1);
            if (!failed) {
                MRT_OK(rc, &err);
                reached = 1;
            } else if (rc != MR_OK) {
                MRT_TRUE(rc == MR_ENOMEM || rc == MR_EIO);
                MRT_TRUE(err.text[0] != '\0');
                MRT_EQ(files_beside(dst), 0);
            } else { /* a buffer that is only nice to have was done without */
                cfg.force = true;
                MRT_OK(mr_convert(src, dst, &cfg, NULL, &err), &err);
                for (uint32_t k = 0; k < 100; k++)
                    for (uint32_t all = 1; all < 60; all++) unlink(shard(dst, kind, k, all));
                cfg.force = false;
            }
            MRT_TRUE(n < 100000);
        }
        MRT_TRUE(n > 20);
    }
    mr_source_close(src);
}

/* ---- formats with a list: MDS, RecordIO, tar with an index of samples ---- */
typedef struct listed {
    mr_to to;
    const char *name, *list; /* of the set: list comes last */
    uint64_t shard_bytes;
} listed;

static const listed lists[] = {{MR_TO_MDS, "mds", "out/index.json", SHARD_BYTES},
                               {MR_TO_RECORDIO, "shards", "out-00001.idx", SHARD_BYTES},
                               {MR_TO_RECORDIO, "file", "out.idx", 0},
                               {MR_TO_RECORDIO, "named shards", "out-00001.lst", SHARD_BYTES},
                               {MR_TO_RECORDIO, "named file", "out.lst", 0},
                               {MR_TO_TAR, "archives", "out.wids.json", SHARD_BYTES},
                               {MR_TO_TAR, "archive", "out.wids.json", 0}};

static mr_convert_config listed_config(const listed *l, const char *name, char *dst, size_t room)
{
    mr_convert_config cfg;
    mr_convert_defaults(&cfg);
    cfg.to = l->to;
    if (l->to == MR_TO_TAR) cfg.sample_index = MR_SAMPLE_INDEX_WIDS;
    cfg.shard_bytes = l->shard_bytes;
    cfg.workers = 1;
    mrt_mkdir(mrt_path("%s-%s", name, l->name));
    snprintf(dst, room, "%s", mrt_path("%s-%s/out", name, l->name));
    return cfg;
}

/* Its name is taken while samples are written: no shard stays. */
static void a_list_that_fails_leaves_nothing(void **state)
{
    (void)state;
    mr_source *src = mrt_source_alone(folder());
    for (size_t k = 0; k < MRI_ARRAY_COUNT(lists); k++) {
        char dst[1024], theirs[1024];
        mr_convert_config cfg = listed_config(&lists[k], "list", dst, sizeof dst);
        snprintf(theirs, sizeof theirs, "%s", mrt_path("list-%s/%s", lists[k].name, lists[k].list));
        meddler m = {.at = COUNT, .make = theirs};
        cfg.progress = meddle;
        cfg.context = &m;
        mrt_convert_refused(src, dst, &cfg, MR_EEXIST, "it exists already");
        size_t bytes;
        char *text = mrt_read_file(theirs, &bytes);
        MRT_TRUE(bytes == 6 && memcmp(text, "theirs", 6) == 0);
        free(text);
        MRT_EQ(unlink(theirs), 0);
        if (lists[k].to == MR_TO_MDS) MRT_EQ(rmdir(dst), 0); /* nothing else is in it */
        MRT_EQ(files_beside(dst), 0);
    }
    mr_source_close(src);
}

static void a_full_disk_leaves_no_list(void **state)
{
    (void)state;
    mr_source *src = mrt_source_alone(folder());
    struct rlimit before;
    MRT_EQ(getrlimit(RLIMIT_FSIZE, &before), 0);
    const struct rlimit small = {SHARD_BYTES - 8192, before.rlim_max};
    signal(SIGXFSZ, SIG_IGN);
    for (size_t k = 0; k < MRI_ARRAY_COUNT(lists); k++) {
        char dst[1024];
        mr_error err = MR_ERROR_INIT;
        const mr_convert_config cfg = listed_config(&lists[k], "full-list", dst, sizeof dst);
        MRT_EQ(setrlimit(RLIMIT_FSIZE, &small), 0);
        const int rc = mr_convert(src, dst, &cfg, NULL, &err);
        MRT_EQ(setrlimit(RLIMIT_FSIZE, &before), 0);
        MRT_EQ(rc, MR_EIO);
        MRT_EQ(err.sys_errno, EFBIG);
        MRT_TRUE(err.file[0]);
        MRT_EQ(files_beside(dst), 0);
    }
    mr_source_close(src);
}

static void allocations_fail_in_lists(void **state)
{
    (void)state;
    mr_source *src = mrt_source_alone(folder());
    for (size_t k = 0; k < MRI_ARRAY_COUNT(lists); k++) {
        char dst[1024];
        const mr_convert_config cfg = listed_config(&lists[k], "memory", dst, sizeof dst);
        bool reached = false;
        for (long n = 0; !reached; n += n < 60 ? 1 : 11) {
            mr_error err = MR_ERROR_INIT;
            mrt_fail_alloc_at(n);
            const int rc = mr_convert(src, dst, &cfg, NULL, &err);
            reached = !mrt_alloc_failed();
            mrt_fail_alloc_at(-1);
            if (rc == MR_OK) { /* or a buffer that is only nice to have was done without */
                MRT_TRUE(files_beside(dst) > 0);
                char command[1100];
                snprintf(command, sizeof command, "rm -r '%s'*", dst);
                MRT_EQ(system(command), 0);
            } else {
                MRT_TRUE(!reached && (rc == MR_ENOMEM || rc == MR_EIO));
                MRT_TRUE(err.text[0] != '\0');
                MRT_EQ(files_beside(dst), 0);
            }
            MRT_TRUE(n < 100000);
        }
    }
    mr_source_close(src);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(the_same_for_any_number_of_workers),
        cmocka_unit_test(samples_come_back_as_they_were),
        cmocka_unit_test(a_tiny_shard_holds_one_sample),
        cmocka_unit_test(a_name_of_a_set_is_only_a_name),
        cmocka_unit_test(settings_without_a_place_are_refused),
        cmocka_unit_test(outputs_are_not_replaced_by_accident),
        cmocka_unit_test(force_replaces_the_whole_set),
        cmocka_unit_test(part_files_of_others_stay),
        cmocka_unit_test(two_runs_do_not_write_at_once),
        cmocka_unit_test(a_stopped_run_leaves_nothing),
        cmocka_unit_test(a_run_stopped_at_its_end_leaves_nothing),
        cmocka_unit_test(a_name_taken_meanwhile_ends_it),
        cmocka_unit_test(what_reads_back_otherwise_is_found),
        cmocka_unit_test(a_full_disk_leaves_nothing),
        cmocka_unit_test(nothing_good_leaves_nothing),
        cmocka_unit_test(every_allocation_may_fail),
        cmocka_unit_test(a_list_that_fails_leaves_nothing),
        cmocka_unit_test(a_full_disk_leaves_no_list),
        cmocka_unit_test(allocations_fail_in_lists),
    };
    return mrt_run(tests);
}
