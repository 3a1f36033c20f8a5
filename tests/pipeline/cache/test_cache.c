/* The cache: batches are the same to the bit with it, without it, and with half of it; cached samples are not
 * read again; whatever happens to its files, at worst a sample is read from the data. */
#include <errno.h>
#include <signal.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#include "base/util.h"
#include "pipeline/cache/cache.h"
#include "pipeline/cache/page_choice.h"
#include "tests/pipeline/sets.h"

#define COUNT 150

typedef struct notes { /* the loader reports one at a time */
    uint32_t count;
    char text[8][512];
} notes;

static void on_note(void *context, const char *text)
{
    notes *n = context;
    if (n->count < 8) snprintf(n->text[n->count], sizeof n->text[0], "%s", text);
    n->count++;
}

static mr_loader_config settings(mr_cache kind, uint64_t bytes, notes *n)
{
    mr_loader_config cfg;
    static char folder[4096];
    mr_loader_defaults(&cfg);
    if (n) *n = (notes){0};
    cfg.batch = 16;
    cfg.seed = 5;
    cfg.epochs = 3;
    cfg.workers = 2;
    cfg.training = true;
    cfg.augment = "rrc(12),flip";
    cfg.resident_bytes = 0;
    cfg.cache = kind;
    cfg.cache_bytes = bytes;
    snprintf(folder, sizeof folder, "%s", mrt_path("cache"));
    cfg.cache_folder = folder;
    cfg.on_note = n ? on_note : NULL;
    cfg.note_context = n;
    return cfg;
}

static void remove_cache(void)
{
    char command[4200];
    snprintf(command, sizeof command, "rm -rf '%s'", mrt_path("cache"));
    MRT_EQ(system(command), 0);
}

/* The one cache file in the folder whose name ends so. */
static const char *cache_file(const char *suffix)
{
    static char path[2][4096];
    static int turn;
    char command[8400];
    char *out = path[turn++ % 2];
    snprintf(command, sizeof command, "ls -d '%s'/*.mrcache%s", mrt_path("cache"), suffix);
    FILE *f = popen(command, "r");
    assert_non_null(f);
    assert_non_null(fgets(out, 4096, f));
    out[strcspn(out, "\n")] = '\0';
    pclose(f);
    return out;
}

static void same(mr_digest a, mr_digest b) { MRT_TRUE(a.lo == b.lo && a.hi == b.hi); }

/* Digest and figures of a run. */
static mr_digest run(const mr_source *src, const mr_loader_config *cfg, mr_loader_stats *s)
{
    mr_error err = MR_ERROR_INIT;
    mr_loader *l;
    mr_digester *d;
    uint64_t batches, samples;
    MRT_OK(mr_loader_open(&l, src, cfg, &err), &err);
    MRT_EQ(mr_digester_create(&d), MR_OK);
    MRT_OK(mr_digester_run(d, l, NULL, UINT64_MAX, &batches, &samples, &err), &err);
    const mr_digest result = mr_digester_result(d);
    mr_digester_destroy(d);
    mr_loader_stats_read(l, s);
    mr_loader_close(l);
    return result;
}

static mr_digest plain(const mr_source *src)
{
    const mr_loader_config cfg = settings(MR_CACHE_OFF, 0, NULL);
    return mrt_digest(src, &cfg, NULL, NULL);
}

static mr_source *record_set(const char *name, uint32_t count, mr_store store)
{
    mr_error err = MR_ERROR_INIT;
    mr_convert_config cfg;
    mr_source *src = mrt_source(mrt_folder_set(name, 2, count / 2, 24, true));
    mr_convert_defaults(&cfg);
    cfg.store = store;
    cfg.force = true;
    MRT_OK(mr_convert(src, mrt_path("%s.mrec", name), &cfg, NULL, &err), &err);
    mr_source_close(src);
    return mrt_source(mrt_path("%s.mrec", name));
}

/* ------------------------------------------------------------------------------ the same batches */

static void check_same_batches(const mr_source *src, uint32_t runs)
{
    const mr_digest expected = plain(src);
    const uint64_t total = mr_source_info_of(src)->total_bytes, sizes[] = {UINT64_C(64) << 20, total / 2, 1};
    for (uint32_t k = 0; k < runs; k++) {
        notes n;
        mr_loader_stats s;
        mr_loader_config cfg = settings(k % 2 ? MR_CACHE_DISK : MR_CACHE_MEMORY, sizes[k % 3], &n);
        cfg.prefetch = k / 6 % 3;
        cfg.workers = 1 + k % 5;
        cfg.readers = 1 + k / 2 % 2;
        cfg.parts = 1 + k % 3;
        cfg.direct = k % 7 == 0;
        cfg.io = k / 3 % 2 ? MR_IO_PREAD : MR_IO_AUTO;
        if (k % 6 == 1 || (k % 3 == 0 && k >= 18))
            remove_cache(); /* else the cache of the last run is
                             * found */
        same(expected, run(src, &cfg, &s));
        MRT_EQ(s.cache_dropped, 0);
        if (k % 3 == 0) MRT_EQ(s.cache_entries, COUNT);
        if (k % 3 == 0)
            MRT_TRUE(s.cache_hits >= (cfg.prefetch ? 1 : 2) * COUNT); /* samples planned ahead are not cached
                                                                       * yet */
        if (k % 6 == 1) MRT_TRUE(s.cache_entries > 0 && s.cache_entries < COUNT && s.cache_hits > 0);
        if (k % 3 && k % 2 == 0) MRT_EQ(n.count, 1);
        if (k % 3 && k % 2 == 0) MRT_HAS(n.text[0], "the cache is full");
    }
    remove_cache();
}

static void batches_are_the_same(void **state)
{
    (void)state;
    enum { ALL_RUNS = 36 };
    mr_source *src = mrt_source(mrt_folder_set("folder", 2, COUNT / 2, 24, true));
    check_same_batches(src, ALL_RUNS);
    mr_source_close(src);
    src = record_set("records", COUNT, MR_STORE_JPEG);
    check_same_batches(src, MRT_SANITIZED ? ALL_RUNS / 2 : ALL_RUNS);
    mr_source_close(src);
    if (MRT_SANITIZED) return; /* the same code, and no decoder in it */
    src = record_set("pixels", COUNT, MR_STORE_RAW);
    check_same_batches(src, ALL_RUNS);
    mr_source_close(src);
    src = mrt_source(mrt_idx_set("idx", COUNT, 14, 14));
    check_same_batches(src, ALL_RUNS);
    mr_source_close(src);
}

static void resume_in_the_middle(void **state)
{
    (void)state;
    mr_source *src = mrt_source(mrt_folder_set("resume", 2, COUNT / 2, 24, true));
    const mr_digest expected = plain(src);
    for (int kind = MR_CACHE_MEMORY; kind <= MR_CACHE_DISK; kind++) {
        mr_digester *d;
        mr_error err = MR_ERROR_INIT;
        MRT_EQ(mr_digester_create(&d), MR_OK);
        for (int part = 0; part < 2; part++) {
            mr_loader *l;
            uint64_t batches, samples;
            mr_loader_config cfg = settings((mr_cache)kind, 1 << 20, NULL);
            cfg.start_epoch = part;
            cfg.start_step = part ? 3 : 0;
            MRT_OK(mr_loader_open(&l, src, &cfg, &err), &err);
            MRT_OK(mr_digester_run(d, l, NULL, part ? UINT64_MAX : (COUNT - 1) / 16 + 1 + 3, &batches,
                                   &samples, &err),
                   &err);
            mr_loader_close(l);
        }
        same(expected, mr_digester_result(d));
        mr_digester_destroy(d);
    }
    remove_cache();
    mr_source_close(src);
}

/* ------------------------------------------------------------------------------ purpose */

static void kept_samples_are_not_read_again(void **state)
{
    (void)state;
    mr_source *src = mrt_source(mrt_folder_set("once", 2, COUNT / 2, 24, true));
    const uint64_t total = mr_source_info_of(src)->total_bytes;
    for (uint32_t prefetch = 0; prefetch < 3; prefetch += 2) {
        mr_loader_stats s;
        mr_loader_config cfg = settings(MR_CACHE_MEMORY, 1 << 20, NULL);
        cfg.prefetch = prefetch;
        cfg.batch = COUNT / 3; /* epochs end with a batch */
        run(src, &cfg, &s);
        /* with prefetch, the second epoch begins while the first is not over */
        MRT_TRUE(prefetch ? s.bytes_read >= total && s.bytes_read < 2 * total + 1 : s.bytes_read == total);
        MRT_TRUE(prefetch ? s.cache_hits >= COUNT : s.cache_hits == 2 * COUNT);
        MRT_EQ(s.cache_entries, COUNT);
        MRT_EQ(s.read.items, 3 * COUNT);
        MRT_EQ(s.decode.items, 3 * COUNT);
    }
    mr_source_close(src);
}

/* A record file's fingerprint does not change with its pixels: that damage is not seen proves who
 * delivers. */
static void the_next_run_finds_what_is_on_disk(void **state)
{
    (void)state;
    mr_source *src = record_set("restart", COUNT, MR_STORE_JPEG);
    mr_loader_stats s;
    const mr_digest expected = plain(src);
    notes n;
    mr_loader_config cfg = settings(MR_CACHE_DISK, 1 << 20, &n);
    same(expected, run(src, &cfg, &s));
    mr_extent e;
    MRT_EQ(mr_source_extent(src, 77, &e, NULL), MR_OK);
    FILE *f = fopen(mrt_path("restart.mrec"), "r+b");
    assert_non_null(f);
    fseek(f, (long)e.offset, SEEK_SET);
    for (uint64_t i = 0; i < e.bytes; i++) fputc(0, f);
    fclose(f);
    same(expected, run(src, &cfg, &s));
    MRT_EQ(s.cache_hits, 3 * COUNT);
    MRT_EQ(s.cache_entries, COUNT);
    MRT_EQ(n.count, 0);
    remove_cache();
    mr_source_close(src);
}

/* ------------------------------------------------------------------------------ bad samples */

typedef struct reported {
    uint32_t count;
    uint64_t sample;
} reported;

static void remember(void *context, const mr_error *what, uint64_t substitute)
{
    (void)substitute;
    ((reported *)context)->count++;
    ((reported *)context)->sample = what->sample;
}

static void bad_samples_stay_bad(void **state)
{
    (void)state;
    char path[4096];
    mr_source *src = mrt_source(mrt_folder_set("bad", 2, COUNT / 2, 24, true));
    size_t bytes; /* half a picture: only decoding finds that */
    uint8_t *jpeg = mrt_read_file(mr_source_sample_path(src, 40, path, sizeof path), &bytes);
    mrt_write_file(path, jpeg, bytes - bytes / 4);
    free(jpeg);
    mr_source_close(src);
    src = mrt_source(mrt_path("bad"));
    mr_digest expected = {0, 0};
    for (int k = 0; k < 8; k++) {
        reported t = {0};
        mr_loader_stats s;
        mr_loader_config cfg = settings(k == 0  ? MR_CACHE_OFF
                                        : k % 2 ? MR_CACHE_MEMORY
                                                : MR_CACHE_DISK,
                                        1 << 20, NULL);
        cfg.bad = MR_BAD_REPLACE;
        cfg.on_bad = remember;
        cfg.bad_context = &t;
        cfg.prefetch = k / 2;
        const mr_digest d = run(src, &cfg, &s);
        if (k == 0) expected = d;
        same(expected, d);
        MRT_EQ(t.count, 1);
        MRT_EQ(t.sample, 40);
        MRT_EQ(s.bad_samples, 3);
        MRT_EQ(s.replaced, 3);
        if (k) MRT_EQ(s.cache_entries, COUNT - 1);
    }
    remove_cache();
    mr_source_close(src);
}

/* Crops above the damage are delivered with and without a cache, though coefficients of the whole picture
 * cannot be made. */
static void damage_below_a_crop_is_not_seen(void **state)
{
    (void)state;
    char path[4096];
    mr_source *src = mrt_source(mrt_folder_set("below", 2, COUNT / 2, 24, true));
    size_t bytes;
    uint8_t *jpeg = mrt_read_file(mr_source_sample_path(src, 40, path, sizeof path), &bytes);
    MRT_TRUE(bytes > 200);
    for (size_t at = bytes - 22; at < bytes - 2; at += 2)
        memcpy(jpeg + at, (const uint8_t[]){0xff, 0x00}, 2); /* ones: no code */
    mrt_write_file(path, jpeg, bytes);
    free(jpeg);
    mr_source_close(src);
    src = mrt_source(mrt_path("below"));
    mr_digest expected = {0, 0};
    uint64_t bad = 0;
    for (int kind = MR_CACHE_OFF; kind <= MR_CACHE_DISK; kind++) {
        mr_loader_stats s;
        mr_loader_config cfg = settings((mr_cache)kind, 1 << 20, NULL);
        cfg.bad = MR_BAD_REPLACE;
        cfg.epochs = 6;
        const mr_digest d = run(src, &cfg, &s);
        if (kind == MR_CACHE_OFF) expected = d;
        if (kind == MR_CACHE_OFF) bad = s.bad_samples;
        same(expected, d);
        MRT_EQ(s.bad_samples, bad);
        MRT_TRUE(bad > 0 && bad < 6);
    }
    remove_cache();
    mr_source_close(src);
}

/* ------------------------------------------------------------------------------ files that are not as they
 * were */

static void change_byte(const char *path, uint64_t at, uint8_t by)
{
    FILE *f = fopen(path, "r+b");
    assert_non_null(f);
    fseek(f, (long)at, SEEK_SET);
    const int was = fgetc(f);
    fseek(f, (long)at, SEEK_SET);
    fputc((was == EOF ? 0 : was) ^ by, f);
    fclose(f);
}

static uint64_t size_of(const char *path)
{
    struct stat st;
    MRT_EQ(stat(path, &st), 0);
    return (uint64_t)st.st_size;
}

/* A byte of the entry that record k of the index leads to, from its end: between entries are some that nobody
 * reads. */
static void damage_entry(uint32_t k)
{
    size_t bytes;
    uint8_t *index = mrt_read_file(cache_file(".index"), &bytes);
    const uint8_t *record = index + 64 + (size_t)32 * k;
    MRT_TRUE(bytes >= 64 + (size_t)32 * (k + 1));
    const uint64_t offset = mri_le64(record + 8), length = mri_le32(record + 16);
    free(index);
    MRT_TRUE(length > 64 && offset + length <= size_of(cache_file("")));
    change_byte(cache_file(""), offset + length - 1 - k % 64, 1);
}

static void a_damaged_entry_is_made_anew(void **state)
{
    (void)state;
    mr_source *src = mrt_source(mrt_folder_set("damage", 2, COUNT / 2, 24, true));
    const mr_digest expected = plain(src);
    mr_loader_stats s;
    notes n;
    mr_loader_config cfg = settings(MR_CACHE_DISK, 1 << 20, &n);
    same(expected, run(src, &cfg, &s));
    damage_entry(3);
    damage_entry(COUNT - 1);
    same(expected, run(src, &cfg, &s));
    MRT_EQ(s.cache_dropped, 2);
    MRT_EQ(s.cache_entries, COUNT);
    MRT_EQ(n.count, 1);
    MRT_HAS(n.text[0], "damaged");
    cfg = settings(MR_CACHE_DISK, 1 << 20, &n);
    same(expected, run(src, &cfg, &s));
    MRT_EQ(s.cache_dropped, 0);
    MRT_EQ(s.cache_hits, 3 * COUNT);
    MRT_EQ(n.count, 0);
    remove_cache();
    mr_source_close(src);
}

/* Its checksum is right, its label impossible. */
static void a_label_that_cannot_be_is_not_believed(void **state)
{
    (void)state;
    mr_source *src = mrt_source(mrt_folder_set("label", 2, COUNT / 2, 24, true));
    const mr_digest expected = plain(src);
    static const int64_t labels[] = {2, -1, 1000000, INT32_MAX};
    mr_loader_stats s;
    mr_loader_config cfg = settings(MR_CACHE_DISK, 1 << 20, NULL);
    for (size_t k = 0; k < MRI_ARRAY_COUNT(labels); k++) {
        same(expected, run(src, &cfg, &s));
        const char *path = cache_file("");
        size_t bytes, index_bytes;
        uint8_t *data = mrt_read_file(path, &bytes),
                *index = mrt_read_file(cache_file(".index"), &index_bytes);
        const uint64_t offset = mri_le64(index + 64 + 8);
        const uint32_t length = mri_le32(index + 64 + 16);
        uint8_t *const entry = data + offset;
        MRT_TRUE(offset + length <= bytes);
        mri_put_le64(entry + 16, (uint64_t)labels[k]);
        mri_put_le32(entry + 4, mr_crc32c(0, entry + 8, length - 8));
        mrt_write_file(path, data, bytes);
        free(data);
        free(index);
        same(expected, run(src, &cfg, &s));
        MRT_EQ(s.cache_dropped, 1);
        remove_cache();
    }
    mr_source_close(src);
}

static void torn_files_lose_only_what_is_gone(void **state)
{
    (void)state;
    mr_source *src = mrt_source(mrt_folder_set("torn", 2, COUNT / 2, 24, true));
    const mr_digest expected = plain(src);
    for (int k = 0; k < 6; k++) {
        mr_loader_stats s;
        notes n;
        mr_loader_config cfg = settings(MR_CACHE_DISK, 1 << 20, &n);
        same(expected, run(src, &cfg, &s));
        const char *data = cache_file(""), *index = cache_file(".index");
        if (k == 0) MRT_EQ(truncate(data, (off_t)size_of(data) / 2), 0);    /* entries are missing */
        if (k == 1) MRT_EQ(truncate(index, 64 + 32 * (COUNT - 20) + 7), 0); /* records, and one in part */
        if (k == 2) MRT_EQ(unlink(data), 0);
        if (k == 3) MRT_EQ(truncate(index, 20), 0);
        if (k == 4) change_byte(index, 30, 8);               /* a header that is no longer sound */
        if (k == 5) change_byte(index, 64 + 32 * 10 + 3, 8); /* a record */
        same(expected, run(src, &cfg, &s));
        MRT_EQ(s.cache_entries, COUNT);
        MRT_EQ(n.count, k == 1 ? 0 : 1);
        MRT_TRUE(k < 2 || k == 5 ? s.cache_hits > 2 * COUNT && s.cache_hits < 3 * COUNT
                                 : s.cache_hits <= 2 * COUNT);
        same(expected, run(src, &cfg, &s));
        MRT_EQ(s.cache_hits, 3 * COUNT);
        remove_cache();
    }
    mr_source_close(src);
}

/* Anything at all in both files: no crash, no other batch. */
static void random_damage_is_survived(void **state)
{
    (void)state;
    mr_source *src = mrt_source(mrt_folder_set("random", 2, 20, 24, true));
    const mr_digest expected = plain(src);
    for (uint64_t round = 0; round < (MRT_SANITIZED ? 21 : 60); round++) {
        mr_loader_config cfg = settings(MR_CACHE_DISK, 1 << 20, NULL);
        same(expected, mrt_digest(src, &cfg, NULL, NULL));
        for (uint32_t k = 0; k < 1 + round % 20; k++) {
            const uint64_t draw = mri_mix64(round * 100 + k);
            const char *path = cache_file(draw % 2 ? "" : ".index");
            const uint64_t at = 64 + (draw >> 16) % (size_of(path) - 64);
            if (draw % 32 == 0) MRT_EQ(truncate(path, (off_t)at), 0);
            else change_byte(path, at, (uint8_t)(1 + (draw >> 8) % 255));
            if (size_of(path) <= 64) break;
        }
        same(expected, mrt_digest(src, &cfg, NULL, NULL));
    }
    remove_cache();
    mr_source_close(src);
}

static void refused(const mr_source *src, const mr_loader_config *cfg, int code, const char *why)
{
    mr_error err = MR_ERROR_INIT;
    mr_loader *l = (mr_loader *)(uintptr_t)cfg;
    char text[2048];
    MRT_EQ(mr_loader_open(&l, src, cfg, &err), code);
    MRT_TRUE(l == NULL);
    MRT_HAS(mr_error_format(&err, text, sizeof text), why);
}

static void other_peoples_files_are_left_alone(void **state)
{
    (void)state;
    mr_source *src = mrt_source(mrt_folder_set("foreign", 2, COUNT / 2, 24, true));
    mr_source *other = mrt_source(mrt_folder_set("foreign2", 2, COUNT / 2, 24, true));
    mr_loader_stats s;
    notes n;
    mr_loader_config cfg = settings(MR_CACHE_DISK, 1 << 20, &n);
    run(src, &cfg, &s);
    const char *data = cache_file("");
    size_t bytes;
    mrt_write_file(data, "a letter to somebody", 20);
    refused(src, &cfg, MR_EFORMAT, "is no cache of this data");
    char *still = mrt_read_file(data, &bytes);
    MRT_EQ(bytes, 20);
    assert_memory_equal(still, "a letter to somebody", 20);
    free(still);

    MRT_EQ(unlink(data), 0); /* another set's, under this one's name */
    char mine[4096], index[4096];
    snprintf(mine, sizeof mine, "%s", data);
    snprintf(index, sizeof index, "%s", cache_file(".index"));
    MRT_EQ(unlink(index), 0);
    run(other, &cfg, &s);
    MRT_EQ(rename(cache_file(""), mine), 0);
    MRT_EQ(rename(cache_file(".index"), index), 0);
    refused(src, &cfg, MR_EFORMAT, "is no cache of this data");

    MRT_EQ(unlink(mine), 0);
    MRT_EQ(mkfifo(mine, 0600), 0); /* not waited for */
    refused(src, &cfg, MR_EFORMAT, "is no cache of this data");
    remove_cache();

    static const char *const ends[] = {"", ".index"}; /* which file would be written? */
    for (int k = 0; k < 2; k++) {
        run(src, &cfg, &s);
        MRT_EQ(rename(cache_file(ends[k]), mrt_path("moved")), 0);
        snprintf(mine, sizeof mine, "%s/%s", mrt_path("cache"), strrchr(cache_file(ends[!k]), '/') + 1);
        if (k == 0) mine[strlen(mine) - strlen(".index")] = '\0';
        else strcat(mine, ".index");
        MRT_EQ(link(mrt_path("moved"), mine), 0);
        refused(src, &cfg, MR_EINVAL, "other names");
        MRT_EQ(unlink(mine), 0);
        MRT_EQ(rename(mrt_path("moved"), mine), 0);
    }
    remove_cache();

    mrt_write_file(mrt_path("cache"), "x", 1); /* a file where the folder should be */
    refused(src, &cfg, MR_EIO, "cache");
    remove_cache();
    cfg.cache_folder = "";
    refused(src, &cfg, MR_EINVAL, "folder");
    mr_source_close(other);
    mr_source_close(src);
}

static void not_believed(const mr_source *src, mr_digest expected, const char *why)
{
    mr_loader_stats s;
    notes n;
    mr_loader_config cfg = settings(MR_CACHE_DISK, 1 << 20, &n);
    char text[64], command[8400];
    snprintf(text, sizeof text, "-u%llu.mrcache", (unsigned long long)geteuid());
    same(expected, run(src, &cfg, &s));
    MRT_TRUE(s.cache_hits <= 2 * COUNT); /* nothing in the first epoch */
    MRT_EQ(n.count, 1);
    MRT_HAS(n.text[0], why);
    MRT_HAS(n.text[0], text);
    same(expected, run(src, &cfg, &s)); /* the one made in its place */
    MRT_EQ(s.cache_hits, 3 * COUNT);
    snprintf(command, sizeof command, "rm -f '%s'/*-u*", mrt_path("cache"));
    MRT_EQ(system(command), 0);
}

/* Whoever writes to a cache determines the training data. */
static void a_cache_that_others_wrote_is_not_believed(void **state)
{
    (void)state;
    mr_source *src = mrt_source(mrt_folder_set("distrust", 2, COUNT / 2, 24, true));
    const mr_digest expected = plain(src);
    mr_loader_stats s;
    notes n;
    mr_loader_config cfg = settings(MR_CACHE_DISK, 1 << 20, &n);
    char data[4096], index[4096], aside[4100];
    same(expected, run(src, &cfg, &s));
    snprintf(data, sizeof data, "%s", cache_file(""));
    snprintf(index, sizeof index, "%s", cache_file(".index"));
    const char *const files[] = {data, index};
    for (int k = 0; k < 2; k++) {
        MRT_EQ(chmod(files[k], 0666), 0);
        not_believed(src, expected, "others may write to it");
        MRT_EQ(chmod(files[k], 0644), 0);
        if (geteuid() != 0) {
            printf("SKIP: a cache of another owner: not root\n");
        } else {
            MRT_EQ(chown(files[k], 65534, 65534), 0);
            not_believed(src, expected, "it belongs to user 65534");
            MRT_EQ(chown(files[k], 0, 0), 0);
        }
        snprintf(aside, sizeof aside, "%s.x", files[k]);
        MRT_EQ(rename(files[k], aside), 0);
        MRT_EQ(symlink(aside, files[k]), 0);
        not_believed(src, expected, "it is a link");
        MRT_EQ(rename(aside, files[k]), 0);
    }
    same(expected, run(src, &cfg, &s)); /* as it was */
    MRT_EQ(s.cache_hits, 3 * COUNT);

    MRT_EQ(chmod(data, 0666), 0); /* planted under the own name, too: made anew */
    same(expected, run(src, &cfg, &s));
    char command[8400];
    snprintf(command, sizeof command, "chmod 666 '%s'/*-u*", mrt_path("cache"));
    MRT_EQ(system(command), 0);
    not_believed(src, expected, "others may write to it");
    remove_cache();
    mr_source_close(src);
}

/* ------------------------------------------------------------------------------ several users */

static void a_second_process_only_reads(void **state)
{
    (void)state;
    mr_source *src = mrt_source(mrt_folder_set("locked", 2, COUNT / 2, 24, true));
    const mr_digest expected = plain(src);
    mr_loader_stats s;
    notes n, m;
    mr_error err = MR_ERROR_INIT;
    mr_loader *first;
    mr_loader_config cfg = settings(MR_CACHE_DISK, 1 << 20, &n), both = settings(MR_CACHE_DISK, 1 << 20, &m);
    MRT_OK(mr_loader_open(&first, src, &cfg, &err), &err);
    same(expected, run(src, &both, &s)); /* nothing there yet, or some */
    MRT_EQ(m.count, 1);
    MRT_HAS(m.text[0], "another process");
    mr_batch b;
    while (mr_loader_next(first, &b, MR_FOREVER, &err) == MR_OK) mr_loader_release(first, &b, NULL);
    const uint64_t bytes = size_of(cache_file(""));
    same(expected, run(src, &both, &s)); /* all there, and the other still open */
    MRT_EQ(s.cache_hits, 3 * COUNT);
    MRT_EQ(size_of(cache_file("")), bytes);
    mr_loader_close(first);
    MRT_EQ(n.count, 0);
    remove_cache();
    mr_source_close(src);
}

static void many_sets_share_a_folder(void **state)
{
    (void)state;
    mr_source *src[3] = {mrt_source(mrt_folder_set("share0", 2, COUNT / 2, 24, true)),
                         mrt_source(mrt_idx_set("share1", COUNT, 14, 14)),
                         mrt_source(mrt_idx_set("share2", COUNT, 14, 14))};
    for (int round = 0; round < 2; round++)
        for (int k = 0; k < 3; k++) {
            mr_loader_stats s;
            const mr_loader_config cfg = settings(MR_CACHE_DISK, 1 << 20, NULL);
            same(plain(src[k]), run(src[k], &cfg, &s));
            if (round) MRT_EQ(s.cache_hits, 3 * COUNT);
        }
    for (int k = 0; k < 3; k++) mr_source_close(src[k]);
    remove_cache();
}

/* Same names, same sizes, other pixels: another set. */
static void a_changed_set_begins_anew(void **state)
{
    (void)state;
    mr_loader_stats s;
    const mr_loader_config cfg = settings(MR_CACHE_DISK, 1 << 20, NULL);
    const char *path = mrt_idx_set("changed", COUNT, 14, 14);
    mr_source *src = mrt_source(path);
    const mr_digest before = run(src, &cfg, &s);
    mr_source_close(src);
    for (uint64_t i = 16; i < 16 + 40 * 196; i += 196) change_byte(path, i + 90, 255);
    mrt_touch(path);
    src = mrt_source(path);
    const mr_digest after = run(src, &cfg, &s);
    same(after, plain(src));
    MRT_TRUE(after.lo != before.lo);
    mr_source_close(src);

    char file[4096];
    struct stat st;
    src = mrt_source(mrt_folder_set("changedfolder", 2, COUNT / 2, 24, true));
    run(src, &cfg, &s);
    mr_source_sample_path(src, 9, file, sizeof file);
    MRT_EQ(stat(file, &st), 0);
    size_t bytes;
    uint8_t *jpeg = mrt_read_file(file, &bytes);
    jpeg[bytes - 30] ^= 1; /* still a picture, another one */
    mrt_write_file(file, jpeg, bytes);
    free(jpeg);
    mr_source *again = mrt_source(mrt_path("changedfolder"));
    MRT_EQ(mr_source_info_of(again)->fingerprint, mr_source_info_of(src)->fingerprint);
    same(plain(again), run(again, &cfg, &s));
    mr_source_close(again);
    mr_source_close(src);
    remove_cache();
}

/* Killed while it fills, again and again: whole entries are used, the rest are made. */
static void killed_while_it_fills(void **state)
{
    (void)state;
    mr_source *src = mrt_source(mrt_folder_set("killed", 2, COUNT / 2, 24, true));
    const mr_digest expected = plain(src);
    for (uint32_t round = 0; round < 12; round++) {
        const pid_t child = fork();
        if (child == 0) {
            mr_loader_config cfg = settings(MR_CACHE_DISK, 1 << 20, NULL);
            mr_loader *l;
            mr_batch b;
            mr_source *own; /* the parent's is of no use here */
            cfg.epochs = UINT64_MAX;
            if (mr_source_open(&own, mr_source_info_of(src)->path, NULL, NULL) != MR_OK) _exit(1);
            if (mr_loader_open(&l, own, &cfg, NULL) != MR_OK) _exit(1);
            while (mr_loader_next(l, &b, MR_FOREVER, NULL) == MR_OK) mr_loader_release(l, &b, NULL);
            _exit(2);
        }
        MRT_TRUE(child > 0);
        const struct timespec nap = {.tv_nsec = (long)(1000000 + round * 700000)};
        nanosleep(&nap, NULL);
        kill(child, SIGKILL);
        int status;
        MRT_EQ(waitpid(child, &status, 0), child);
        MRT_TRUE(WIFSIGNALED(status));
        if (round % 4 < 2) continue; /* killed more than once in a row */
        mr_loader_stats s;
        notes n;
        const mr_loader_config cfg = settings(MR_CACHE_DISK, 1 << 20, &n);
        same(expected, run(src, &cfg, &s));
        MRT_EQ(s.cache_entries, COUNT);
        MRT_EQ(s.cache_dropped, 0);
        MRT_TRUE(n.count == 0 || strstr(n.text[0], "begins anew")); /* killed before the headers stood */
        if (round % 4 == 3) remove_cache();
    }
    remove_cache();
    mr_source_close(src);
}

/* ------------------------------------------------------------------------------ limits */

static void a_full_disk_ends_the_filling(void **state)
{
    (void)state;
    mr_source *src = mrt_source(mrt_folder_set("full", 2, COUNT / 2, 24, true));
    const mr_digest expected = plain(src);
    mr_loader_stats s;
    notes n;
    struct rlimit before, small;
    mr_loader_config cfg = settings(MR_CACHE_DISK, 1 << 20, &n);
    signal(SIGXFSZ, SIG_IGN);
    MRT_EQ(getrlimit(RLIMIT_FSIZE, &before), 0);
    small = before;
    small.rlim_cur = 30000;
    MRT_EQ(setrlimit(RLIMIT_FSIZE, &small), 0);
    const mr_digest d = run(src, &cfg, &s);
    MRT_EQ(setrlimit(RLIMIT_FSIZE, &before), 0);
    same(expected, d);
    MRT_TRUE(s.cache_entries > 0 && s.cache_entries < COUNT);
    MRT_EQ(n.count, 1);
    MRT_HAS(n.text[0], "takes no more");
    same(expected, run(src, &cfg, &s)); /* with room it goes on where it stopped */
    MRT_EQ(s.cache_entries, COUNT);
    MRT_EQ(s.cache_dropped, 0);
    remove_cache();
    mr_source_close(src);
}

static void budgets_are_kept(void **state)
{
    (void)state;
    mr_source *src = mrt_source(mrt_folder_set("budget", 2, COUNT / 2, 24, true));
    for (uint64_t bytes = 1000; bytes < 200000; bytes *= 3) {
        mr_loader_stats s;
        notes n;
        mr_loader_config cfg = settings(MR_CACHE_DISK, bytes, &n);
        const mr_loader_config memory = settings(MR_CACHE_MEMORY, bytes, &n);
        run(src, &cfg, &s);
        MRT_TRUE(size_of(cache_file("")) + size_of(cache_file(".index")) <= bytes);
        remove_cache();
        run(src, &memory, &s);
        MRT_TRUE(s.cache_bytes <= bytes);
    }
    mr_loader *l;
    mr_error err = MR_ERROR_INIT;
    mr_loader_config cfg = settings(MR_CACHE_MEMORY, UINT64_C(3) << 30, NULL),
                     without = settings(MR_CACHE_OFF, 0, NULL);
    without.memory_bytes = UINT64_C(2) << 30; /* room for large pictures enough */
    without.decode.max_pixels = 1 << 16;      /* does not give way */
    MRT_OK(mr_loader_open(&l, src, &without, &err), &err);
    const uint64_t base = mr_loader_info_of(l)->memory_bytes;
    mr_loader_close(l);
    cfg.decode.max_pixels = 1 << 16;
    cfg.memory_bytes = base + (UINT64_C(3) << 30);
    refused(src, &cfg, MR_ELIMIT, "cache 3072.0");
    cfg.cache_bytes -= UINT64_C(512) << 20; /* its index, and what workers make entries with */
    MRT_OK(mr_loader_open(&l, src, &cfg, &err), &err);
    MRT_TRUE(mr_loader_info_of(l)->memory_bytes >= base + cfg.cache_bytes + COUNT * 12);
    mr_loader_close(l);
    mr_source_close(src);
}

static void every_failed_allocation_is_survived(void **state)
{
    (void)state;
    mr_source *src = mrt_source(mrt_folder_set("alloc", 2, 8, 16, false));
    mr_loader_config expect = settings(MR_CACHE_OFF, 0, NULL);
    expect.prefetch = 0;
    const mr_digest expected = mrt_digest(src, &expect, NULL, NULL);
    for (int kind = MR_CACHE_MEMORY; kind <= MR_CACHE_DISK; kind++)
        for (long n = 0;; n += MRT_TURN) {
            mr_loader_config cfg = settings((mr_cache)kind, 1 << 20, NULL);
            mr_error err = MR_ERROR_INIT;
            mr_loader *l = (mr_loader *)&cfg;
            mr_digester *d;
            uint64_t batches, samples;
            cfg.prefetch = 0;
            MRT_EQ(mr_digester_create(&d), MR_OK);
            remove_cache();
            mrt_fail_alloc_at(n);
            int rc = mr_loader_open(&l, src, &cfg, &err);
            if (rc == MR_OK) rc = mr_digester_run(d, l, NULL, UINT64_MAX, &batches, &samples, &err);
            else MRT_TRUE(l == NULL);
            const int failed = mrt_alloc_failed();
            mrt_fail_alloc_at(-1);
            if (rc == MR_OK)
                same(expected, mr_digester_result(d)); /* a cache that got no memory is a full one */
            else MRT_EQ(rc, MR_ENOMEM);
            mr_digester_destroy(d);
            mr_loader_close(l);
            if (!failed) break;
        }
    remove_cache();
    mr_source_close(src);
}

/* ------------------------------------------------------------------------------ entries and forms */

/* Everything twice, with points; sample bytes that begin with 'n' are not to be kept. */
static uint64_t twice_bound(uint64_t bytes) { return 2 * bytes + 5; }

static int twice(void *maker, const mr_value *in, mr_value *out)
{
    uint8_t *room = maker;
    if (*(const char *)in->data == 'n') return MR_EUNSUPPORTED;
    memcpy(room, in->data, in->bytes);
    memcpy(room + in->bytes, in->data, in->bytes);
    *out = (mr_value){
        .type = MR_TYPE_COEF, .data = room, .bytes = 2 * in->bytes, .entries = "abcde", .entries_bytes = 5};
    return MR_OK;
}

static const mri_cache_form twice_form = {.name = "twice", .bound = twice_bound, .make = twice};

static void forms_decide_what_is_kept(void **state)
{
    (void)state;
    for (int disk = 0; disk < 2; disk++) {
        mri_cache_config cfg = {
            .count = 10, .stamp = 1, .form = &twice_form, .budget_bytes = 1 << 20, .value_bytes_most = 100};
        mri_cache_place p;
        mri_cache *c;
        mr_error err = MR_ERROR_INIT;
        uint8_t room[256];
        mr_value v, in = {.type = MR_TYPE_JPEG, .data = "yes, this", .bytes = 9};
        int32_t label;
        if (disk) cfg.folder = mrt_path("cache");
        MRT_OK(mri_cache_open(&c, &cfg, &err), &err);
        MRT_TRUE(!mri_cache_find(c, 3, &p));
        for (int again = 0; again < 2; again++) mri_cache_offer(c, 3, &in, -1, room);
        MRT_EQ(mri_cache_counts_of(c).entries, 1);
        in.data = "no, not this";
        mri_cache_offer(c, 4, &in, 2, room);
        MRT_TRUE(!mri_cache_find(c, 4, &p));
        char large[120] = "larger than was promised";
        in.data = large;
        in.bytes = sizeof large;
        mri_cache_offer(c, 5, &in, 2, room);
        MRT_TRUE(!mri_cache_find(c, 5, &p));

        MRT_TRUE(mri_cache_find(c, 3, &p));
        uint8_t entry[256];
        if (disk) MRT_EQ(pread(mri_cache_fd(c), entry, p.bytes, (off_t)p.offset), p.bytes);
        else memcpy(entry, p.memory, p.bytes);
        MRT_TRUE(mri_cache_parse(3, entry, p.bytes, disk, &v, &label));
        MRT_EQ(v.type, MR_TYPE_COEF);
        MRT_EQ(label, -1);
        MRT_EQ(v.bytes, 18);
        assert_memory_equal(v.data, "yes, thisyes, this", 18);
        MRT_EQ(v.entries_bytes, 5);
        assert_memory_equal(v.entries, "abcde", 5);
        MRT_TRUE(!mri_cache_parse(2, entry, p.bytes, disk, &v, &label)); /* another sample's */
        for (size_t cut = 0; cut < p.bytes; cut++)
            MRT_TRUE(!mri_cache_parse(3, entry, cut, false, &v, &label));
        if (disk) {
            for (size_t at = 0; at < p.bytes; at++) { /* every byte counts */
                entry[at] ^= 16;
                MRT_TRUE(!mri_cache_parse(3, entry, p.bytes, true, &v, &label));
                entry[at] ^= 16;
            }
        }
        mri_cache_drop(c, 3, &p);
        mri_cache_drop(c, 3, &p); /* once is enough */
        MRT_EQ(mri_cache_counts_of(c).dropped, 1);
        MRT_EQ(mri_cache_counts_of(c).entries, 0);
        mri_cache_close(c);
    }
    remove_cache();
}

/* ------------------------------------------------------------------------------ memory of entries */

static void pages_are_of_the_faster_kind(void **state)
{
    (void)state;
    enum { PIECE = 2 << 20, MEASURED = 64 << 10 };
    for (int faster = 0; faster < 2; faster++) {
        mri_page_choice c = {0};
        bool others[4 * MRI_PAGE_RETRY];
        for (int k = 0; k < 4 * MRI_PAGE_RETRY; k++) {
            const bool huge = mri_page_choice_next(&c);
            others[k] = huge != faster;
            const uint64_t bytes = huge ? PIECE : MEASURED;
            mri_page_choice_note(&c, huge, bytes, huge == faster ? bytes / 10 : bytes / 2);
        }
        MRT_EQ(others[0] + others[1], 1); /* both are tried at once */
        for (int k = 2; k < 4 * MRI_PAGE_RETRY; k++) MRT_EQ(others[k], (k + 1) % MRI_PAGE_RETRY == 0);
        int same = 0; /* the other kind becomes faster */
        for (int k = 0; k < 2 * MRI_PAGE_RETRY; k++) {
            const bool huge = mri_page_choice_next(&c);
            mri_page_choice_note(&c, huge, PIECE, huge == faster ? PIECE : PIECE / 10);
            if (k >= MRI_PAGE_RETRY) same += huge == faster;
        }
        MRT_EQ(same, 1);
    }
    mri_page_choice unmeasured = {0};
    MRT_TRUE(mri_page_choice_next(&unmeasured) && mri_page_choice_next(&unmeasured));
}

static uint64_t as_many(uint64_t bytes) { return bytes; }

static int as_it_is(void *maker, const mr_value *in, mr_value *out)
{
    (void)maker;
    *out = *in;
    return MR_OK;
}

/* Bytes of an entry: from 1 to 5 MiB, so that entries end within, begin on and reach over pieces and blocks.
 */
static size_t bytes_of(uint64_t sample)
{
    static const size_t sizes[] = {1, 3000, 4096 - 72, 70000, 157000, (2 << 20) - 72, (5 << 20) - 9};
    return sizes[sample % 7];
}

static void entries_of_all_sizes_lie_apart(void **state)
{
    (void)state;
    enum { SAMPLES = 77 };
    static const mri_cache_form form = {.name = "same", .bound = as_many, .make = as_it_is};
    const mri_cache_config cfg = {.count = SAMPLES,
                                  .stamp = 1,
                                  .form = &form,
                                  .budget_bytes = (UINT64_C(64) << 20) + 12345,
                                  .value_bytes_most = 5 << 20};
    mr_error err = MR_ERROR_INIT;
    mri_cache *c;
    uint64_t kept = 0;
    uint8_t *bytes = malloc(5 << 20);
    assert_non_null(bytes);
    MRT_OK(mri_cache_open(&c, &cfg, &err), &err);
    for (uint64_t k = 0; k < SAMPLES; k++) {
        const mr_value in = {.type = MR_TYPE_JPEG, .data = bytes, .bytes = bytes_of(k)};
        memset(bytes, (int)k + 1, in.bytes);
        mri_cache_offer(c, k, &in, (int32_t)k, NULL);
    }
    for (uint64_t k = 0; k < SAMPLES; k++) {
        mri_cache_place p;
        mr_value v;
        int32_t label;
        if (!mri_cache_find(c, k, &p)) continue; /* the budget is smaller than the sum */
        kept++;
        MRT_TRUE(mri_cache_parse(k, p.memory, p.bytes, false, &v, &label));
        MRT_EQ(label, (int32_t)k);
        MRT_EQ(v.bytes, bytes_of(k));
        memset(bytes, (int)k + 1, v.bytes);
        assert_memory_equal(v.data, bytes, v.bytes);
    }
    MRT_TRUE(kept > 40 && kept < SAMPLES);
    free(bytes);
    mri_cache_close(c);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(batches_are_the_same),
        cmocka_unit_test(resume_in_the_middle),
        cmocka_unit_test(kept_samples_are_not_read_again),
        cmocka_unit_test(the_next_run_finds_what_is_on_disk),
        cmocka_unit_test(bad_samples_stay_bad),
        cmocka_unit_test(damage_below_a_crop_is_not_seen),
        cmocka_unit_test(a_damaged_entry_is_made_anew),
        cmocka_unit_test(a_label_that_cannot_be_is_not_believed),
        cmocka_unit_test(torn_files_lose_only_what_is_gone),
        cmocka_unit_test(random_damage_is_survived),
        cmocka_unit_test(other_peoples_files_are_left_alone),
        cmocka_unit_test(a_cache_that_others_wrote_is_not_believed),
        cmocka_unit_test(a_second_process_only_reads),
        cmocka_unit_test(many_sets_share_a_folder),
        cmocka_unit_test(a_changed_set_begins_anew),
        cmocka_unit_test(killed_while_it_fills),
        cmocka_unit_test(a_full_disk_ends_the_filling),
        cmocka_unit_test(budgets_are_kept),
        cmocka_unit_test(every_failed_allocation_is_survived),
        cmocka_unit_test(forms_decide_what_is_kept),
        cmocka_unit_test(pages_are_of_the_faster_kind),
        cmocka_unit_test(entries_of_all_sizes_lie_apart),
    };
    return mrt_run(tests);
}
