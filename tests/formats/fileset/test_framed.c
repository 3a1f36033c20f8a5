/* Framed files: scanned, kept in an index, unpacked; the index is trusted when it fits and forgotten when it
 * does not.
 *
 * The format here: "FRM" | u8 label (255: none) | u32 bytes | bytes, again and again. */
#include <errno.h>
#include <fcntl.h>
#include <isa-l/igzip_lib.h>
#include <pthread.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/util.h"
#include "formats/fileset/framed.h"
#include "mrt.h"

static int scans; /* atomic: threads scan at once */

static bool accept(const uint8_t *head, size_t bytes) { return bytes >= 8 && memcmp(head, "FRM", 3) == 0; }

static int scan(void *context, mri_scan *s, uint32_t file, mr_error *err)
{
    (void)context;
    (void)file;
    __atomic_fetch_add(&scans, 1, __ATOMIC_RELAXED);
    for (uint64_t at = 0; at < mri_scan_file_bytes(s);) {
        const uint8_t *p;
        int rc = mri_scan_get(s, at, 8, &p, err);
        if (rc) return rc;
        if (!accept(p, 8)) return mr_error_set(err, MR_EFORMAT, "no frame");
        const uint32_t bytes = mri_le32(p + 4);
        rc = mri_scan_add(s, at, 8 + (uint64_t)bytes, p[3] == 255 ? MRI_NO_LABEL : p[3], err);
        if (rc) return rc;
        at += 8 + (uint64_t)bytes;
    }
    return MR_OK;
}

static int make_note(void *context, uint8_t **out, size_t *bytes, mr_error *err)
{
    (void)context;
    *out = malloc(4);
    if (!*out) return mr_error_set(err, MR_ENOMEM, "no memory");
    memcpy(*out, "note", 4);
    *bytes = 4;
    return MR_OK;
}

static mri_framed_format format = {
    .name = "test", .version = 3, .settings = 77, .scan = scan, .note = make_note};

static size_t frames(uint8_t *p, uint32_t count, uint8_t first_label)
{
    size_t at = 0;
    for (uint32_t k = 0; k < count; k++) {
        memcpy(p + at, "FRM", 3);
        p[at + 3] = first_label == 255 ? 255 : (uint8_t)(first_label + k % 5);
        mri_put_le32(p + at + 4, k);
        mrt_noise(p + at + 8, k, k);
        at += 8 + k;
    }
    return at;
}

static void write_frames(const char *path, uint32_t count, uint8_t first_label)
{
    uint8_t *p = malloc(count * (8 + (size_t)count) + 1);
    mrt_write_file(path, p, frames(p, count, first_label));
    free(p);
}

static size_t pack(const void *data, size_t bytes, uint8_t *out, size_t cap, bool zlib)
{
    struct isal_zstream z;
    isal_deflate_stateless_init(&z);
    z.gzip_flag = zlib ? IGZIP_ZLIB : IGZIP_GZIP;
    z.end_of_stream = 1;
    z.next_in = (uint8_t *)(uintptr_t)data;
    z.avail_in = (uint32_t)bytes;
    z.next_out = out;
    z.avail_out = (uint32_t)cap;
    MRT_EQ(isal_deflate_stateless(&z), COMP_OK);
    return z.total_out;
}

static int try_open(mri_framed *f, const char *path, const mr_source_config *given, mr_error *err)
{
    mr_source_config cfg;
    mr_source_defaults(&cfg);
    mri_filelist l;
    int rc = mri_filelist_find(&l, path, MR_SPLIT_AUTO, accept, err);
    *f = (mri_framed){0};
    if (!rc) rc = mri_framed_open(f, &l, &format, given ? given : &cfg, err);
    if (rc) mri_framed_close(f);
    return rc;
}

static void open_ok(mri_framed *f, const char *path)
{
    mr_error err = MR_ERROR_INIT;
    scans = 0;
    MRT_OK(try_open(f, path, NULL, &err), &err);
}

static bool there(const char *path) { return access(path, F_OK) == 0; }

static void same_entries(const mri_framed *a, const mri_framed *b)
{
    mri_entries_walk w;
    mri_entry x, y, z;
    MRT_EQ(a->count, b->count);
    mri_entries_walk_init(&w, &b->entries);
    for (uint64_t k = 0; k < a->count; k++) {
        MRT_OK(mri_framed_entry(a, k, &x, NULL), NULL);
        MRT_OK(mri_framed_entry(b, k, &y, NULL), NULL);
        MRT_OK(mri_entries_walk_next(&w, &z, NULL), NULL);
        MRT_EQ(x.offset, y.offset);
        MRT_EQ(x.bytes, y.bytes);
        MRT_EQ(x.label, y.label);
        MRT_EQ(x.offset, z.offset);
        MRT_EQ(x.bytes, z.bytes);
        MRT_EQ(x.label, z.label);
    }
    MRT_EQ(mri_entries_walk_next(&w, &z, NULL), MR_EEND);
    mri_entries_walk_fini(&w);
}

static void scanned_once_then_known(void **state)
{
    (void)state;
    mrt_mkdir(mrt_path("once"));
    write_frames(mrt_path("once/x-0-of-3"), 10, 0);
    mrt_write_file(mrt_path("once/x-1-of-3"), "", 0);
    write_frames(mrt_path("once/x-2-of-3"), 2000, 2);
    mri_framed f, g;
    open_ok(&f, mrt_path("once"));
    MRT_EQ(scans, 3);
    MRT_TRUE(!f.from_index);
    MRT_HAS(f.report_text, "x-0-of-3.mridx");
    MRT_EQ(f.count, 2010);
    MRT_EQ(f.class_count, 7);
    MRT_EQ(f.max_bytes, 8 + 1999);
    MRT_EQ(f.total_bytes, 2010 * 8 + 45 + 1999 * 1000);
    MRT_EQ(mri_framed_file_of(&f, 9), 0);
    MRT_EQ(mri_framed_file_of(&f, 10), 2);
    MRT_EQ(mri_framed_file_of(&f, 2009), 2);
    mr_extent e;
    MRT_OK(mri_framed_extent(&f, 12, &e, NULL), NULL);
    MRT_EQ(e.file, 2);
    MRT_EQ(e.offset, 8 + 9);
    MRT_EQ(e.bytes, 10);
    int64_t label;
    MRT_OK(mri_framed_label(&f, 12, &label), NULL);
    MRT_EQ(label, 4);
    open_ok(&g, mrt_path("once"));
    MRT_EQ(scans, 0);
    MRT_TRUE(g.from_index);
    MRT_STR(g.report_text, "");
    MRT_EQ(g.count, f.count);
    MRT_EQ(g.fingerprint, f.fingerprint);
    MRT_EQ(g.class_count, f.class_count);
    MRT_EQ(g.note_bytes, 4);
    assert_memory_equal(g.note, "note", 4);
    same_entries(&g, &f);
    MRT_EQ(g.file[2].first, 10);
    mri_framed_close(&g);
    mri_framed_close(&f);
}

static void stale_indexes_are_built_anew(void **state)
{
    (void)state;
    mri_framed f;
    write_frames(mrt_path("stale"), 50, 0);
    open_ok(&f, mrt_path("stale"));
    const uint64_t before = f.fingerprint;
    mri_framed_close(&f);
    write_frames(mrt_path("stale"), 51, 0); /* another size */
    open_ok(&f, mrt_path("stale"));
    MRT_EQ(scans, 1);
    MRT_TRUE(f.fingerprint != before);
    mri_framed_close(&f);
    const struct timespec times[2] = {{1000, 5}, {1000, 7}}; /* the same size, another time */
    MRT_EQ(utimensat(AT_FDCWD, mrt_path("stale"), times, 0), 0);
    open_ok(&f, mrt_path("stale"));
    MRT_EQ(scans, 1);
    mri_framed_close(&f);
    open_ok(&f, mrt_path("stale"));
    MRT_EQ(scans, 0);
    mri_framed_close(&f);
    format.version = 4;
    open_ok(&f, mrt_path("stale"));
    MRT_EQ(scans, 1);
    mri_framed_close(&f);
    format.version = 3;
    format.settings = 78;
    open_ok(&f, mrt_path("stale"));
    MRT_EQ(scans, 1);
    mri_framed_close(&f);
    format.settings = 77;
    format.name = "tent";
    open_ok(&f, mrt_path("stale"));
    MRT_EQ(scans, 1);
    mri_framed_close(&f);
    format.name = "test";
}

/* Every byte of an index damaged in turn, and every length cut: never believed, never fatal. */
static void damaged_indexes_are_built_anew(void **state)
{
    (void)state;
    mri_framed f;
    write_frames(mrt_path("damaged"), 6, 0);
    open_ok(&f, mrt_path("damaged"));
    mri_framed_close(&f);
    size_t bytes;
    uint8_t *index = mrt_read_file(mrt_path(".damaged.mridx"), &bytes);
    MRT_EQ(bytes, 4096 + 4096 + 4);
    for (size_t k = 6; k < bytes; k += k < 200 || k > 8190 ? 1 : 61) { /* before that it is no index */
        index[k] ^= 0x41;
        mrt_write_file(mrt_path(".damaged.mridx"), index, bytes);
        index[k] ^= 0x41;
        open_ok(&f, mrt_path("damaged"));
        MRT_EQ(scans, 1);
        MRT_EQ(f.count, 6);
        mri_framed_close(&f);
    }
    for (size_t k = 6; k < bytes; k += k < 200 || k > 8180 ? 1 : 97) {
        mrt_write_file(mrt_path(".damaged.mridx"), index, k);
        open_ok(&f, mrt_path("damaged"));
        MRT_EQ(scans, 1);
        mri_framed_close(&f);
    }
    /* false entries with good checksums: a sample past the end of its file, the first sample a second time */
    uint8_t *page = index + 4096, *entry = page + 16;
    for (int turn = 0; turn < 2; turn++) {
        uint8_t kept[20];
        uint8_t *one = entry + (turn ? 1 : 5) * 20;
        memcpy(kept, one, sizeof kept);
        if (turn) memcpy(one, entry, 20);
        else mri_put_le64(one, 1000);
        mri_put_le32(page, mr_crc32c(0, page + 4, 4092));
        mrt_write_file(mrt_path(".damaged.mridx"), index, bytes);
        open_ok(&f, mrt_path("damaged"));
        MRT_EQ(scans, 1);
        mri_framed_close(&f);
        memcpy(one, kept, sizeof kept);
    }
    free(index);
}

/* An index is trusted, so no other user may have written it; and a file that is not an index is never
 * replaced. */
static void indexes_of_others(void **state)
{
    (void)state;
    mr_source_config cfg;
    mr_source_defaults(&cfg);
    mr_error err = MR_ERROR_INIT;
    mri_framed f;
    mrt_mkdir(mrt_path("others"));
    mrt_mkdir(mrt_path("others/cache"));
    cfg.index_folder = mrt_path("others/cache");
    write_frames(mrt_path("others/data"), 20, 0);
    open_ok(&f, mrt_path("others/data"));
    mri_framed_close(&f);
    MRT_EQ(chmod(mrt_path("others/.data.mridx"), 0666), 0);
    open_ok(&f, mrt_path("others/data"));
    MRT_EQ(scans, 1);
    MRT_HAS(f.report_text, "data.mridx is not used, because others may write to it");
    MRT_HAS(f.report_text, "index kept in");
    mri_framed_close(&f);
    open_ok(&f, mrt_path("others/data")); /* the new one is ours */
    MRT_EQ(scans, 0);
    MRT_STR(f.report_text, "");
    mri_framed_close(&f);
    if (geteuid() == 0) { /* only then can a file be another's */
        MRT_EQ(chown(mrt_path("others/.data.mridx"), 4711, 4711), 0);
        open_ok(&f, mrt_path("others/data"));
        MRT_EQ(scans, 1);
        MRT_HAS(f.report_text, "data.mridx is not used, because it belongs to user 4711");
        mri_framed_close(&f);
    }
    MRT_EQ(rename(mrt_path("others/.data.mridx"), mrt_path("others/elsewhere")), 0);
    MRT_EQ(symlink("elsewhere", mrt_path("others/.data.mridx")), 0); /* no link is followed */
    scans = 0;
    MRT_OK(try_open(&f, mrt_path("others/data"), &cfg, &err), &err);
    MRT_EQ(scans, 1);
    MRT_HAS(f.report_text, "others/cache/data-");
    mri_framed_close(&f);
    MRT_EQ(unlink(mrt_path("others/.data.mridx")), 0);
    mrt_write_file(mrt_path("others/.data.mridx"), "mine, and precious", 18);
    write_frames(mrt_path("others/data"), 21, 0);
    MRT_OK(try_open(&f, mrt_path("others/data"), &cfg, &err), &err);
    MRT_HAS(f.report_text, "others/cache/data-");
    mri_framed_close(&f);
    size_t bytes;
    uint8_t *p = mrt_read_file(mrt_path("others/.data.mridx"), &bytes);
    MRT_EQ(bytes, 18);
    free(p);
}

/* More samples than fit: their list lies in a file, and says the same. */
static void too_many_for_memory(void **state)
{
    enum { COUNT = 400000, SMALL = 6000000 }; /* 8 MB of entries */
    (void)state;
    mr_source_config cfg;
    mr_source_defaults(&cfg);
    mr_error err = MR_ERROR_INIT;
    mri_framed whole, f;
    uint8_t *p = calloc(COUNT, 8);
    mrt_mkdir(mrt_path("much"));
    for (size_t k = 0; k < COUNT; k++) {
        memcpy(p + 8 * k, "FRM", 3);
        p[8 * k + 3] = (uint8_t)(1 + mri_mix64(k) % 7);
    }
    p[8 * (COUNT - 1) + 3] = 9;
    mrt_write_file(mrt_path("much/data"), p, COUNT * (size_t)8);
    free(p);
    cfg.no_index_file = true;
    MRT_OK(try_open(&whole, mrt_path("much/data"), &cfg, &err), &err);
    MRT_TRUE(whole.entries.fd < 0);
    for (int turn = 0; turn < 3; turn++) { /* an unnamed file, one that is kept, the kept one */
        cfg.no_index_file = turn == 0;
        cfg.memory_bytes = SMALL;
        scans = 0;
        MRT_OK(try_open(&f, mrt_path("much/data"), &cfg, &err), &err);
        MRT_EQ(scans, turn < 2);
        MRT_EQ(f.from_index, turn == 2);
        MRT_TRUE(f.entries.fd >= 0);
        MRT_TRUE(f.memory_bytes <= SMALL);
        MRT_EQ(f.fingerprint, whole.fingerprint);
        MRT_EQ(f.class_count, 10);
        MRT_EQ(f.label_offset, 0);
        MRT_EQ(f.total_bytes, whole.total_bytes);
        same_entries(&f, &whole);
        mri_framed_close(&f);
    }
    /* the same file, with room */
    cfg.memory_bytes = UINT64_C(1) << 30;
    scans = 0;
    MRT_OK(try_open(&f, mrt_path("much/data"), &cfg, &err), &err);
    MRT_EQ(scans, 0);
    MRT_TRUE(f.entries.fd < 0);
    same_entries(&f, &whole);
    mri_framed_close(&f);
    /* labels that are classes for another offset only */
    cfg.memory_bytes = SMALL;
    cfg.label_offset = 5;
    MRT_OK(try_open(&f, mrt_path("much/data"), &cfg, &err), &err);
    MRT_EQ(f.class_count, 5);
    mri_framed_close(&f);
    cfg.label_offset = MR_LABEL_AUTO;
    /* a page that is damaged is named, and no other */
    const int fd = open(mrt_path("much/.data.mridx"), O_WRONLY | O_CLOEXEC);
    MRT_EQ(pwrite(fd, "x", 1, 4096 + 700 * 4096 + 77), 1);
    close(fd);
    MRT_OK(try_open(&f, mrt_path("much/data"), &cfg, &err), &err);
    mri_entry e;
    MRT_OK(mri_framed_entry(&f, 699 * 204, &e, &err), &err);
    MRT_EQ(mri_framed_entry(&f, 700 * 204, &e, &err), MR_ECHECKSUM);
    MRT_HAS(err.file, "data.mridx");
    MRT_EQ(err.offset, 4096 + 700 * 4096);
    mri_framed_close(&f);
    /* no place for it at all */
    cfg.no_index_file = true;
    setenv("TMPDIR", mrt_path("nowhere"), 1);
    MRT_EQ(try_open(&f, mrt_path("much/data"), &cfg, &err), MR_ENOENT);
    MRT_HAS(err.text, "TMPDIR");
    unsetenv("TMPDIR");
    mri_framed_close(&whole);
}

static uint32_t descriptors(void)
{
    uint32_t open = 0;
    for (int fd = 0; fd < 1024; fd++) open += fcntl(fd, F_GETFD) >= 0;
    return open;
}

static void more_files_than_descriptors(void **state)
{
    enum { FILES = 150, LIMIT = 64 };
    (void)state;
    char name[64];
    mri_framed f;
    struct rlimit before, few;
    mrt_mkdir(mrt_path("files"));
    for (uint32_t k = 0; k < FILES; k++) {
        snprintf(name, sizeof name, "files/x-%u-of-%u", k, FILES);
        write_frames(mrt_path("%s", name), 4, (uint8_t)k);
    }
    MRT_EQ(getrlimit(RLIMIT_NOFILE, &before), 0);
    few = before;
    few.rlim_cur = LIMIT;
    MRT_EQ(setrlimit(RLIMIT_NOFILE, &few), 0);
    const uint32_t open_before = descriptors();
    for (int turn = 0; turn < 2; turn++) { /* scanned, then from the index */
        open_ok(&f, mrt_path("files"));
        MRT_EQ(scans, turn ? 0 : FILES);
        MRT_EQ(f.count, 4 * FILES);
        MRT_EQ(f.allowed, 0);
        for (uint32_t k = 0; k < 3 * FILES; k++) {
            const uint32_t at = (uint32_t)(mri_mix64(k) % FILES);
            uint8_t head[4];
            int fd, other;
            MRT_OK(mri_framed_file_acquire(&f, at, false, &fd, NULL), NULL);
            MRT_OK(mri_framed_file_acquire(&f, at, false, &other, NULL), NULL);
            MRT_EQ(fd, other);
            MRT_EQ(pread(fd, head, 4, 0), 4);
            MRT_EQ(head[3], (uint8_t)at);
            mri_framed_file_release(&f, at);
            mri_framed_file_release(&f, at);
        }
        MRT_TRUE(descriptors() - open_before <= LIMIT / 2);
        /* all in use: the polite are refused, who must have one gets it */
        uint32_t held = 0;
        int fd;
        while (mri_framed_file_acquire(&f, held, false, &fd, NULL) == MR_OK) held++;
        MRT_TRUE(held >= 2 && held <= LIMIT / 2);
        MRT_OK(mri_framed_file_acquire(&f, held, true, &fd, NULL), NULL);
        MRT_EQ(mri_framed_file_acquire(&f, FILES - 1, false, &fd, NULL), MR_EAGAIN);
        for (uint32_t k = 0; k <= held; k++) mri_framed_file_release(&f, k);
        if (turn) { /* a file that is another one now */
            mr_error err = MR_ERROR_INIT;
            write_frames(mrt_path("files/x-140-of-150"), 5, 1);
            MRT_EQ(mri_framed_file_acquire(&f, 140, true, &fd, &err), MR_EFORMAT);
            MRT_HAS(err.text, "has changed");
            MRT_HAS(err.file, "x-140-of-150");
        }
        mri_framed_close(&f);
        MRT_EQ(descriptors(), open_before);
    }
    MRT_EQ(setrlimit(RLIMIT_NOFILE, &before), 0);
}

static void folders_that_cannot_be_written(void **state)
{
    (void)state;
    mr_source_config cfg;
    mr_source_defaults(&cfg);
    mrt_mkdir(mrt_path("fixed"));
    mrt_mkdir(mrt_path("fixed/.data.mridx")); /* a folder where the index would lie: no rename replaces it,
                                                for root neither */
    write_frames(mrt_path("fixed/data"), 20, 0);
    cfg.index_folder = mrt_path("cache/of/mine");
    mr_error err = MR_ERROR_INIT;
    mri_framed f;
    scans = 0;
    MRT_OK(try_open(&f, mrt_path("fixed/data"), &cfg, &err), &err);
    MRT_HAS(f.report_text, "cache/of/mine/data-");
    mri_framed_close(&f);
    MRT_OK(try_open(&f, mrt_path("fixed/data"), &cfg, &err), &err);
    MRT_EQ(scans, 1);
    mri_framed_close(&f);
    cfg.index_folder = NULL;
    setenv("XDG_CACHE_HOME", mrt_path("xdg"), 1);
    MRT_OK(try_open(&f, mrt_path("fixed/data"), &cfg, &err), &err);
    MRT_HAS(f.report_text, "xdg/millrace/data-");
    mri_framed_close(&f);
    MRT_OK(try_open(&f, mrt_path("fixed/data"), &cfg, &err), &err);
    MRT_EQ(scans, 2);
    mri_framed_close(&f);
    cfg.no_index_file = true;
    MRT_OK(try_open(&f, mrt_path("fixed/data"), &cfg, &err), &err);
    MRT_EQ(scans, 3);
    MRT_STR(f.report_text, "");
    mri_framed_close(&f);
    cfg.no_index_file = false;
    mrt_write_file(mrt_path("a_file"), "x", 1);
    cfg.index_folder = mrt_path("a_file");
    MRT_OK(try_open(&f, mrt_path("fixed/data"), &cfg, &err), &err);
    MRT_HAS(f.report_text, "cannot be kept");
    MRT_HAS(f.report_text, "--index-folder DIR");
    mri_framed_close(&f);
    cfg.index_folder = mrt_path("a_file/below/it"); /* the cause names the folder that cannot be made */
    MRT_OK(try_open(&f, mrt_path("fixed/data"), &cfg, &err), &err);
    MRT_HAS(f.report_text, "a_file/below: Not a directory");
    mri_framed_close(&f);
    unsetenv("XDG_CACHE_HOME");
}

static void labels_that_start_at_one(void **state)
{
    (void)state;
    mri_framed f;
    mr_error err = MR_ERROR_INIT;
    int64_t label;
    write_frames(mrt_path("one"), 20, 1);
    mr_source_config cfg;
    mr_source_defaults(&cfg);
    cfg.label_offset = 1;
    for (int turn = 0; turn < 2; turn++) { /* scanned, then from the index */
        MRT_OK(try_open(&f, mrt_path("one"), &cfg, &err), &err);
        MRT_EQ(f.label_offset, 1);
        MRT_EQ(f.class_count, 5);
        MRT_OK(mri_framed_label(&f, 0, &label), NULL);
        MRT_EQ(label, 0);
        MRT_EQ(mri_framed_check_label(&f, 0, &label, &err), MR_EFORMAT);
        MRT_HAS(err.text, "from 0 to 16777215 after 1 is subtracted, found 0");
        mri_framed_close(&f);
    }
    mr_source_defaults(&cfg);
    MRT_OK(try_open(&f, mrt_path("one"), &cfg, &err), &err);
    mr_source_labels labels = {0};
    mri_framed_labels(&f, &labels);
    MRT_EQ(labels.min, 1);
    MRT_EQ(labels.max, 5);
    MRT_EQ(f.label_offset, 0);
    MRT_EQ(f.class_count, 6);
    MRT_EQ(mri_framed_check_label(&f, (int64_t)1 << 40, &label, &err), MR_EFORMAT);
    MRT_HAS(err.text, "found 1099511627776");
    MRT_EQ(mri_framed_check_label(&f, -1, &label, &err), MR_EFORMAT);
    mri_framed_close(&f);
    write_frames(mrt_path("unlabelled"), 20, 255);
    open_ok(&f, mrt_path("unlabelled"));
    MRT_EQ(f.entries.sums.labelled, 0);
    MRT_EQ(f.class_count, 0);
    MRT_EQ(mri_framed_label(&f, 0, &label), MR_EUNSUPPORTED);
    mri_framed_close(&f);
}

static void wrong_files_are_named(void **state)
{
    (void)state;
    mri_framed f;
    mr_error err = MR_ERROR_INIT;
    uint8_t p[4096];
    size_t bytes = frames(p, 20, 0);
    mrt_write_file(mrt_path("cut"), p, bytes - 1);
    MRT_EQ(try_open(&f, mrt_path("cut"), NULL, &err), MR_EFORMAT);
    MRT_HAS(err.text, "ends after the end");
    MRT_HAS(err.file, "/cut");
    MRT_EQ(err.offset, bytes - 8 - 19);
    MRT_TRUE(!there(mrt_path(".cut.mridx")));
    mrt_write_file(mrt_path("nothing"), "", 0);
    MRT_EQ(try_open(&f, mrt_path("nothing"), NULL, &err), MR_EFORMAT);
    MRT_HAS(err.text, "no sample");
    mr_source_config cfg;
    mr_source_defaults(&cfg);
    cfg.memory_bytes = 2000;
    write_frames(mrt_path("many"), 500, 0);
    MRT_EQ(try_open(&f, mrt_path("many"), &cfg, &err), MR_ELIMIT);
    MRT_TRUE(!there(mrt_path(".many.mridx")));
}

static void packed_files_are_unpacked(void **state)
{
    (void)state;
    enum { COUNT = 700, CAP = 1 << 20 };
    uint8_t *plain = malloc(CAP), *packed = malloc(CAP);
    const size_t bytes = frames(plain, COUNT, 0), half = 8 * 351 + 350 * 351 / 2; /* 351 frames */
    mri_framed f;
    mr_error err = MR_ERROR_INIT;
    mrt_write_file(mrt_path("plain"), plain, bytes);
    open_ok(&f, mrt_path("plain"));
    const uint64_t print = f.fingerprint;
    mri_framed_close(&f);
    for (int kind = 0; kind < 3; kind++) { /* gzip, zlib, gzip in two members */
        size_t n = pack(plain, kind == 2 ? half : bytes, packed, CAP, kind == 1);
        if (kind == 2) n += pack(plain + half, bytes - half, packed + n, CAP - n, false);
        mrt_write_file(mrt_path("packed%d", kind), packed, n);
        for (int turn = 0; turn < 2; turn++) {
            open_ok(&f, mrt_path("packed%d", kind));
            MRT_EQ(scans, !turn);
            MRT_EQ(f.count, COUNT);
            MRT_EQ(f.fingerprint, print);
            MRT_TRUE(f.file[0].packed);
            MRT_EQ(f.file[0].bytes, bytes);
            mr_source_file file;
            mri_framed_file_at(&f, 0, &file);
            MRT_TRUE(!file.direct_ok);
            uint8_t *again = malloc(bytes);
            MRT_OK(mri_pread_all(file.fd, again, bytes, 0, "", &err), &err);
            assert_memory_equal(again, plain, bytes);
            free(again);
            mri_framed_close(&f);
        }
        mrt_write_file(mrt_path("short"), packed, n - 1);
        MRT_TRUE(try_open(&f, mrt_path("short"), NULL, &err) < 0);
        MRT_HAS(err.text, "ends early");
        packed[n] = 'x';
        mrt_write_file(mrt_path("long"), packed, n + 1);
        MRT_EQ(try_open(&f, mrt_path("long"), NULL, &err), MR_EFORMAT);
        MRT_HAS(err.text, "bytes after the end");
        packed[n - 6] ^= 1; /* in the checksum of gzip, in the last bits or the checksum of zlib */
        mrt_write_file(mrt_path("wrong"), packed, n);
        MRT_TRUE(try_open(&f, mrt_path("wrong"), NULL, &err) < 0);
        MRT_HAS(err.file, "/wrong");
    }
    /* what memory does not hold goes to disk, from the first byte on or in the middle */
    mr_source_config cfg;
    mr_source_defaults(&cfg);
    cfg.no_index_file = true;
    for (cfg.memory_bytes = 24000; cfg.memory_bytes < 800000; cfg.memory_bytes += 300000) {
        MRT_OK(try_open(&f, mrt_path("packed2"), &cfg, &err), &err);
        MRT_EQ(f.fingerprint, print);
        mri_framed_close(&f);
    }
    memset(plain, 0, CAP);
    memcpy(plain, "FRM", 3);
    mri_put_le32(plain + 4, CAP - 8 - 1000);
    plain[CAP - 2000] = 42;
    mrt_write_file(mrt_path("zeros"), packed, pack(plain, CAP - 1000, packed, CAP, false));
    cfg.memory_bytes = CAP;
    MRT_OK(try_open(&f, mrt_path("zeros"), &cfg, &err), &err);
    MRT_EQ(f.file[0].bytes, CAP - 1000);
    MRT_TRUE(f.memory_bytes < CAP / 2); /* it is not in memory */
    uint8_t *again = malloc(CAP);
    MRT_OK(mri_pread_all(f.file[0].fd, again, CAP - 1000, 0, "", &err), &err);
    assert_memory_equal(again, plain, CAP - 1000);
    free(again);
    mri_framed_close(&f);
    free(plain);
    free(packed);
}

static char race_path[512], race_index[512];

static void *open_and_close(void *path)
{
    mri_framed f;
    mr_error err = MR_ERROR_INIT;
    for (int k = 0; k < 20; k++) {
        if (try_open(&f, path, NULL, &err) != MR_OK || f.count != 300) return path;
        mri_framed_close(&f);
        unlink(race_index);
    }
    return NULL;
}

static void builders_at_once(void **state)
{
    (void)state;
    mrt_mkdir(mrt_path("race"));
    snprintf(race_path, sizeof race_path, "%s", mrt_path("race/data"));
    snprintf(race_index, sizeof race_index, "%s", mrt_path("race/.data.mridx"));
    write_frames(race_path, 300, 0);
    pthread_t thread[4];
    for (int k = 0; k < 4; k++) MRT_EQ(pthread_create(&thread[k], NULL, open_and_close, race_path), 0);
    for (int k = 0; k < 4; k++) {
        void *wrong;
        pthread_join(thread[k], &wrong);
        MRT_TRUE(wrong == NULL);
    }
    unlink(race_index);
    MRT_EQ(unlink(mrt_path("race/data")), 0);
    MRT_EQ(rmdir(mrt_path("race")), 0); /* nothing written aside was left */
}

static void allocations_fail_in_turn(void **state)
{
    (void)state;
    uint8_t *plain = malloc(1 << 20), *packed = malloc(1 << 20);
    mrt_write_file(mrt_path("alloc"), packed, pack(plain, frames(plain, 1200, 0), packed, 1 << 20, false));
    free(plain);
    free(packed);
    for (int turn = 0; turn < 2; turn++) {
        for (long n = 0;; n++) {
            mr_error err = MR_ERROR_INIT;
            mri_framed f;
            if (!turn) unlink(mrt_path(".alloc.mridx"));
            mrt_fail_alloc_at(n);
            const int rc = try_open(&f, mrt_path("alloc"), NULL, &err);
            mrt_fail_alloc_at(-1);
            if (rc == MR_OK) {
                const bool whole = !mrt_alloc_failed();
                mri_framed_close(&f);
                if (whole) break;
                continue; /* the index was not kept: no failure */
            }
            MRT_EQ(rc, MR_ENOMEM);
        }
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(scanned_once_then_known),
        cmocka_unit_test(stale_indexes_are_built_anew),
        cmocka_unit_test(damaged_indexes_are_built_anew),
        cmocka_unit_test(folders_that_cannot_be_written),
        cmocka_unit_test(indexes_of_others),
        cmocka_unit_test(too_many_for_memory),
        cmocka_unit_test(more_files_than_descriptors),
        cmocka_unit_test(labels_that_start_at_one),
        cmocka_unit_test(wrong_files_are_named),
        cmocka_unit_test(packed_files_are_unpacked),
        cmocka_unit_test(builders_at_once),
        cmocka_unit_test(allocations_fail_in_turn),
    };
    return mrt_run(tests);
}
