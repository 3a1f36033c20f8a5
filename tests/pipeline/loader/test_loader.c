/* The loader's invariants: order (I1), pixels (I2), once (I3), resume (I4), on every combination of threads,
 * readers, slots, replicas, prefetch and kind of I/O. */
#include <unistd.h>

#include "base/util.h"
#include "pipeline/read/reader.h"
#include "tests/pipeline/sets.h"

static mr_loader_config settings(uint32_t batch)
{
    mr_loader_config cfg;
    mr_loader_defaults(&cfg);
    cfg.batch = batch;
    cfg.seed = 7;
    cfg.workers = 2;
    return cfg;
}

/* ------------------------------------------------------------------------------ I3 */

static void check_once(const mr_source *src, mr_loader_config cfg)
{
    const uint64_t n = mr_source_info_of(src)->count;
    mr_error err = MR_ERROR_INIT;
    mr_loader *l;
    uint32_t *seen = calloc(n, sizeof *seen);
    MRT_OK(mr_loader_open(&l, src, &cfg, &err), &err);
    const mr_loader_info *info = mr_loader_info_of(l);
    uint64_t delivered = 0, padded = 0, steps = 0;
    mr_batch b;
    int rc;
    while ((rc = mr_loader_next(l, &b, MR_FOREVER, &err)) == MR_OK) {
        uint32_t at = 0, counted = 0;
        MRT_EQ(b.step, steps++);
        MRT_EQ(b.last, steps == info->steps_per_epoch);
        for (uint32_t r = 0; r < b.part_count; r++) { /* parts follow each other without gap or overlap */
            MRT_EQ(b.parts[r].first, at);
            at += b.parts[r].count;
            MRT_TRUE(b.parts[r].count <= (b.count - 1) / b.part_count + 1);
        }
        MRT_EQ(at, b.count);
        for (uint32_t i = 0; i < b.count; i++) {
            counted += b.labels[i] >= 0;
            if (b.ids[i] == MR_NOWHERE) {
                padded++;
                MRT_EQ(b.labels[i], -1);
                continue;
            }
            MRT_EQ(b.labels[i], b.ids[i] % 10);
            for (size_t k = 0; k < 6; k++) MRT_EQ(b.pixels[i * 6 + k], mrt_idx_pixel(b.ids[i], k));
            seen[b.ids[i]]++;
            delivered++;
        }
        MRT_EQ(counted, b.counted);
        MRT_OK(mr_loader_release(l, &b, NULL), NULL);
    }
    MRT_EQ(rc, MR_EEND);
    MRT_EQ(mr_loader_next(l, &b, 0, NULL), MR_EEND);
    MRT_EQ(steps, info->steps_per_epoch);
    MRT_EQ(delivered, info->epoch_samples);
    MRT_EQ(padded, info->padded);
    uint64_t missing = 0;
    for (uint64_t i = 0; i < n; i++) {
        MRT_TRUE(seen[i] <= 1);
        missing += seen[i] == 0;
    }
    MRT_EQ(missing, info->dropped);
    mr_loader_close(l);
    free(seen);
}

static void every_sample_once(void **state)
{
    (void)state;
    const uint32_t counts[] = {1, 2, 5, 33, 100}, batches[] = {1, 3, 8, 100, 257}, parts[] = {1, 2, 5, 7};
    for (size_t i = 0; i < MRI_ARRAY_COUNT(counts); i++) {
        mr_source *src = mrt_source(mrt_idx_set("once", counts[i], 2, 3));
        for (size_t k = 0; k < MRI_ARRAY_COUNT(batches); k++)
            for (int tail = MR_TAIL_KEEP; tail <= MR_TAIL_PAD; tail++)
                for (uint32_t p = 0; p < MRI_ARRAY_COUNT(parts); p++) {
                    if (tail == MR_TAIL_DROP && counts[i] < batches[k]) continue;
                    mr_loader_config cfg = settings(batches[k]);
                    cfg.tail = tail;
                    cfg.parts = parts[p];
                    cfg.prefetch = p;
                    cfg.order = (mr_order)(p % 3);
                    cfg.block = 4;
                    check_once(src, cfg);
                }
        mr_source_close(src);
    }
}

static uint32_t labelled(const mr_batch *b)
{
    uint32_t n = 0;
    for (uint32_t i = 0; i < b->count; i++) n += b->labels[i] >= 0;
    return n;
}

/* Free order: a batch's figures are its own: the padded last one of an epoch has its number of real samples,
 * at any position, also while others are held. */
static void free_order_counts_each_batch(void **state)
{
    (void)state;
    enum { STEPS = 12, EPOCHS = 20, HELD = 5 };
    mr_source *src = mrt_source(mrt_folder_set("counted", 1, 4 * STEPS - 3, 40, true));
    mr_loader_config cfg = settings(4);
    mr_error err = MR_ERROR_INIT;
    mr_loader *l;
    mr_batch held[HELD];
    int rc, taken = 0, short_ones = 0;
    cfg.free_order = true;
    cfg.epochs = EPOCHS;
    cfg.prefetch = 7;
    cfg.workers = 5;
    cfg.tail = MR_TAIL_PAD;
    cfg.augment = "resize(20x20)";
    MRT_OK(mr_loader_open(&l, src, &cfg, &err), &err);
    for (;;) {
        mr_batch *b = &held[taken % HELD];
        if (taken >= HELD) MRT_OK(mr_loader_release(l, b, NULL), NULL);
        if ((rc = mr_loader_next(l, b, MR_FOREVER, &err)) != MR_OK) break;
        MRT_EQ(b->counted, labelled(b));
        MRT_EQ(b->counted, b->last ? 1 : 4);
        short_ones += b->last;
        taken++;
    }
    MRT_EQ(rc, MR_EEND);
    MRT_EQ(taken, STEPS * EPOCHS);
    MRT_EQ(short_ones, EPOCHS);
    for (int k = 1; k < HELD; k++) MRT_OK(mr_loader_release(l, &held[(taken + k) % HELD], NULL), NULL);
    mr_loader_close(l);
    mr_source_close(src);
}

/* Free order: the same batches, each once, whatever comes first; and with one slow sample something does come
 * first. */
static void free_order_brings_the_same_batches(void **state)
{
    (void)state;
    enum { STEPS = 40, EPOCHS = 3 };
    mr_source *src = mrt_source(mrt_folder_set("free", 2, 2 * STEPS, 40, true));
    uint64_t first_id[EPOCHS * STEPS];
    for (int free_order = 0; free_order < 2; free_order++) {
        mr_loader_config cfg = settings(4);
        mr_error err = MR_ERROR_INIT;
        mr_loader *l;
        mr_batch b;
        bool seen[EPOCHS * STEPS] = {0};
        int rc, count = 0;
        cfg.free_order = free_order;
        cfg.epochs = EPOCHS;
        cfg.prefetch = 7;
        cfg.workers = 3;
        cfg.augment = "resize(20x20)";
        MRT_OK(mr_loader_open(&l, src, &cfg, &err), &err);
        while ((rc = mr_loader_next(l, &b, count % 3 ? MR_FOREVER : 1000, &err)) == MR_OK ||
               rc == MR_EAGAIN) {
            if (rc == MR_EAGAIN) continue;
            const uint64_t at = b.epoch * STEPS + b.step;
            MRT_TRUE(at < EPOCHS * STEPS && !seen[at]);
            MRT_EQ(b.count, 4);
            MRT_EQ(b.counted, 4);
            if (free_order) MRT_EQ(b.ids[0], first_id[at]);
            else MRT_EQ(at, (uint64_t)count);
            first_id[at] = b.ids[0];
            seen[at] = true;
            count++;
            MRT_OK(mr_loader_release(l, &b, NULL), NULL);
        }
        MRT_EQ(rc, MR_EEND);
        MRT_EQ(count, EPOCHS * STEPS);
        mr_loader_close(l);
    }
    mr_source_close(src);
}

static void dropping_everything_is_refused(void **state)
{
    (void)state;
    mr_source *src = mrt_source(mrt_idx_set("few", 3, 2, 3));
    mr_loader_config cfg = settings(4);
    mr_error err = MR_ERROR_INIT;
    mr_loader *l;
    cfg.tail = MR_TAIL_DROP;
    MRT_EQ(mr_loader_open(&l, src, &cfg, &err), MR_EINVAL);
    MRT_TRUE(l == NULL);
    MRT_HAS(err.text, "--tail keep");
    mr_source_close(src);
}

/* ------------------------------------------------------------------------------ I1, I2 */

static void same(mr_digest a, mr_digest b) { MRT_TRUE(a.lo == b.lo && a.hi == b.hi); }

static void check_settings_do_not_matter(const mr_source *src, mr_loader_config cfg)
{
    const uint32_t workers[] = {1, 2, 3, 7}, readers[] = {1, 3}, prefetch[] = {2, 8, 0},
                   replicas[] = {1, 2, 3, 5};
    const mr_digest expected = mrt_digest(src, &cfg, NULL, NULL);
    char note[160];
    const bool uring = mri_uring_usable(32, note, sizeof note);
    cfg.resident_bytes = 0; /* what holds for a set in memory: test_resident.c */
    for (int io = uring ? MR_IO_URING : MR_IO_PREAD; io <= MR_IO_PREAD; io++)
        for (size_t p = 0; p < 3; p++)
            for (size_t w = 0; w < 4; w++)
                for (size_t r = 0; r < 2; r++) {
                    cfg.io = (mr_io)io;
                    cfg.prefetch = prefetch[p];
                    cfg.workers = workers[w];
                    cfg.readers = readers[r];
                    cfg.parts = replicas[(w + r + p) % 4];
                    cfg.depth = r ? 3 : 32;
                    cfg.direct = w % 2; /* then reads take their time, and some are in flight whatever else
                                           happens */
                    same(expected, mrt_digest(src, &cfg, NULL, NULL));
                    if (prefetch[p] == 0) w = r = 4; /* no threads to vary */
                }
    cfg.seed++;
    const mr_digest other = mrt_digest(src, &cfg, NULL, NULL);
    MRT_TRUE(other.lo != expected.lo);
}

static void settings_do_not_change_batches(void **state)
{
    (void)state;
    mr_source *idx = mrt_source(mrt_idx_set("same", 203, 12, 12));
    mr_loader_config cfg = settings(16);
    cfg.epochs = 2;
    cfg.training = true;
    cfg.augment = "padcrop(2),flip,brightness(20),standardise";
    check_settings_do_not_matter(idx, cfg);
    mr_source_close(idx);

    mr_source *folder = mrt_source(mrt_folder_set("samefolder", 3, 17, 40, true));
    cfg.augment = "rrc(24),flip";
    cfg.batch = 10;
    cfg.tail = MR_TAIL_PAD;
    check_settings_do_not_matter(folder, cfg);
    mr_source_close(folder);
}

#define DRAWN       60
#define DRAWN_BYTES (12 * 12)

/* Pixels of every sample in one epoch, by sample number. */
static uint8_t *pixels_of_samples(const mr_source *src, uint32_t batch, mr_order order, uint64_t seed,
                                  uint64_t epoch)
{
    mr_loader_config cfg = settings(batch);
    mr_error err = MR_ERROR_INIT;
    mr_loader *l;
    mr_batch b;
    uint8_t *all = calloc(DRAWN, DRAWN_BYTES);
    assert_non_null(all);
    cfg.seed = seed;
    cfg.order = order;
    cfg.start_epoch = epoch;
    cfg.epochs = epoch + 1;
    cfg.training = true;
    cfg.augment = "padcrop(2),flip,brightness(20)";
    MRT_OK(mr_loader_open(&l, src, &cfg, &err), &err);
    while (mr_loader_next(l, &b, MR_FOREVER, &err) == MR_OK) {
        for (uint32_t i = 0; i < b.count; i++)
            memcpy(all + b.ids[i] * DRAWN_BYTES, b.pixels + i * DRAWN_BYTES, DRAWN_BYTES);
        mr_loader_release(l, &b, NULL);
    }
    mr_loader_close(l);
    return all;
}

static uint32_t same_pictures(const uint8_t *a, const uint8_t *b)
{
    uint32_t n = 0;
    for (size_t i = 0; i < DRAWN; i++)
        n += memcmp(a + i * DRAWN_BYTES, b + i * DRAWN_BYTES, DRAWN_BYTES) == 0;
    return n;
}

/* Draws belong to (seed, epoch, sample), not to the place where a sample comes to stand. */
static void draws_belong_to_the_sample(void **state)
{
    (void)state;
    mr_source *src = mrt_source(mrt_idx_set("draws", DRAWN, 12, 12));
    uint8_t *first = pixels_of_samples(src, 16, MR_ORDER_SHUFFLE, 7, 0);
    uint8_t *elsewhere = pixels_of_samples(src, 7, MR_ORDER_SEQUENTIAL, 7, 0);
    uint8_t *next_epoch = pixels_of_samples(src, 16, MR_ORDER_SHUFFLE, 7, 1);
    uint8_t *other_seed = pixels_of_samples(src, 16, MR_ORDER_SHUFFLE, 8, 0);
    MRT_EQ(same_pictures(first, elsewhere), DRAWN);
    MRT_TRUE(same_pictures(first, next_epoch) < DRAWN / 4);
    MRT_TRUE(same_pictures(first, other_seed) < DRAWN / 4);
    free(first);
    free(elsewhere);
    free(next_epoch);
    free(other_seed);
    mr_source_close(src);
}

static mr_digest digest_in_two(const mr_source *src, mr_loader_config cfg, uint64_t split)
{
    mr_error err = MR_ERROR_INIT;
    mr_digester *d;
    mr_loader *l;
    uint64_t b, s, total = 0;
    MRT_EQ(mr_digester_create(&d), MR_OK);
    MRT_OK(mr_loader_open(&l, src, &cfg, &err), &err);
    const uint64_t steps = mr_loader_info_of(l)->steps_per_epoch;
    MRT_OK(mr_digester_run(d, l, NULL, split, &b, &s, &err), &err);
    MRT_EQ(b, split);
    total += b;
    mr_loader_close(l); /* with batches ahead in every stage */
    cfg.start_epoch = split / steps;
    cfg.start_step = split % steps;
    cfg.workers = 1 + split % 3;
    cfg.prefetch = split % 4;
    cfg.parts = 1 + split % 5;
    MRT_OK(mr_loader_open(&l, src, &cfg, &err), &err);
    MRT_OK(mr_digester_run(d, l, NULL, UINT64_MAX, &b, &s, &err), &err);
    MRT_EQ(total + b, steps * cfg.epochs);
    mr_loader_close(l);
    const mr_digest result = mr_digester_result(d);
    mr_digester_destroy(d);
    return result;
}

static void resume_continues_the_same_order(void **state)
{
    (void)state;
    mr_source *src = mrt_source(mrt_idx_set("resume", 61, 5, 5));
    mr_loader_config cfg = settings(8);
    cfg.epochs = 3;
    cfg.training = true;
    cfg.augment = "padcrop(1),flip";
    const mr_digest expected = mrt_digest(src, &cfg, NULL, NULL);
    for (uint64_t split = 1; split < 24; split += 2) same(expected, digest_in_two(src, cfg, split));
    mr_source_close(src);
}

static void epochs_differ(void **state)
{
    (void)state;
    mr_source *src = mrt_source(mrt_idx_set("epochs", 40, 3, 3));
    mr_loader_config cfg = settings(40);
    mr_error err = MR_ERROR_INIT;
    mr_loader *l;
    uint64_t first[40];
    cfg.epochs = 2;
    MRT_OK(mr_loader_open(&l, src, &cfg, &err), &err);
    mr_batch b;
    MRT_OK(mr_loader_next(l, &b, MR_FOREVER, &err), &err);
    for (int i = 0; i < 40; i++) {
        first[i] = b.ids[i];
        MRT_EQ(b.ids[i], mr_order_sample(MR_ORDER_SHUFFLE, 0, 7, 0, 40, (uint64_t)i));
    }
    mr_loader_release(l, &b, NULL);
    MRT_OK(mr_loader_next(l, &b, MR_FOREVER, &err), &err);
    uint32_t moved = 0;
    for (int i = 0; i < 40; i++) moved += first[i] != b.ids[i];
    MRT_TRUE(moved > 20);
    MRT_EQ(b.epoch, 1);
    mr_loader_release(l, &b, NULL);
    mr_loader_close(l);
    mr_source_close(src);
}

/* ------------------------------------------------------------------------------ devices */

static void devices_hold_their_part_only(void **state)
{
    (void)state;
    mr_source *src = mrt_source(mrt_idx_set("devices", 75, 6, 6));
    const char *specs[] = {"cpu:1", "cpu:2", "cpu:3", "cpu:5", "cpu:7", "sim:2,step=10us,h2d=10GB/s"};
    mr_loader_config cfg = settings(16);
    cfg.epochs = 2;
    cfg.augment = "standardise";
    const mr_digest expected = mrt_digest(src, &cfg, NULL, NULL);
    for (size_t i = 0; i < MRI_ARRAY_COUNT(specs); i++)
        for (uint32_t prefetch = 0; prefetch < 5; prefetch += 2) {
            mr_error err = MR_ERROR_INIT;
            mr_device **devices;
            mr_loader_config on = cfg;
            MRT_OK(mr_devices_open(&devices, &on.device_count, specs[i], NULL, &err), &err);
            on.devices = devices;
            on.keep_host = true;
            on.prefetch = prefetch;
            /* compares every device byte with the host copy */
            same(expected, mrt_digest(src, &on, NULL, NULL));

            mr_loader *l;
            mr_loader_stats stats;
            mr_digester *d;
            uint64_t b, s, copied = 0;
            MRT_OK(mr_loader_open(&l, src, &on, &err), &err);
            MRT_EQ(mr_digester_create(&d), MR_OK);
            MRT_OK(mr_digester_run(d, l, devices, UINT64_MAX, &b, &s, &err), &err);
            mr_loader_stats_read(l, &stats);
            for (uint32_t r = 0; r < on.device_count; r++) copied += stats.bytes_copied[r];
            MRT_EQ(copied, s * (36 + 4 + 8)); /* pixels, label, two affine floats: nothing crosses twice */
            mr_digester_destroy(d);
            mr_loader_close(l);
            mr_devices_close(devices, on.device_count);
        }
    mr_source_close(src);
}

/* ------------------------------------------------------------------------------ limits */

static void budget_is_checked_before_the_start(void **state)
{
    (void)state;
    mr_source *src = mrt_source(mrt_idx_set("budget", 50, 64, 64));
    mr_loader_config cfg = settings(50);
    mr_error err = MR_ERROR_INIT;
    mr_loader *l;
    cfg.memory_bytes = 300000;
    MRT_EQ(mr_loader_open(&l, src, &cfg, &err), MR_ELIMIT);
    MRT_HAS(err.text, "lower --batch");
    cfg.memory_bytes = 128 << 20;
    MRT_OK(mr_loader_open(&l, src, &cfg, &err), &err);
    MRT_TRUE(mr_loader_info_of(l)->memory_bytes <= cfg.memory_bytes);
    mr_loader_close(l);
    mr_source_close(src);
}

/* A set of pictures of one size that the budget cannot decode is refused at open, not sample by sample. */
static void budget_is_not_met_by_refusing_every_picture(void **state)
{
    (void)state;
    mr_source *src = mrt_source(mrt_idx_set("large", 2, 1500, 1500));
    mr_loader_config cfg = settings(1);
    mr_error err = MR_ERROR_INIT;
    mr_loader *l;
    mr_batch b;
    cfg.augment = "resize(8x8)";
    cfg.prefetch = 1;
    cfg.workers = cfg.depth = 1;
    cfg.memory_bytes = 1; /* then ever more, until it opens */
    int rc;
    while ((rc = mr_loader_open(&l, src, &cfg, &err)) == MR_ELIMIT) cfg.memory_bytes += 1 << 20;
    MRT_OK(rc, &err);
    MRT_TRUE(mr_loader_info_of(l)->max_pixels >= 1500 * 1500);
    MRT_OK(mr_loader_next(l, &b, MR_FOREVER, &err), &err);
    mr_loader_close(l);
    mr_source_close(src);
}

/* One huge file among small ones: it is not provided for in every place of every chunk, and --depth and
 * --workers bring the rest down. A file of terabytes is refused, not a sum that wraps. */
static void one_huge_sample_does_not_multiply(void **state)
{
    (void)state;
    const char *root = mrt_folder_set("huge", 1, 300, 24, true);
    FILE *f = fopen(mrt_path("huge/class00/huge.jpg"), "wb");
    assert_non_null(f);
    MRT_EQ(ftruncate(fileno(f), 8 << 20), 0);
    fclose(f);
    mr_source *src = mrt_source(root);
    mr_loader_config cfg = settings(64);
    mr_error err = MR_ERROR_INIT;
    mr_loader *l;
    cfg.augment = "resize(8x8)";
    cfg.depth = 2;
    cfg.workers = cfg.readers = 1;
    cfg.memory_bytes = 144 << 20;
    MRT_OK(mr_loader_open(&l, src, &cfg, &err), &err);
    mr_loader_close(l);
    mr_source_close(src);

    const off_t sizes[] = {(off_t)250 << 20, (off_t)1 << 40};
    const int expected[] = {MR_ELIMIT, MR_OK}; /* the second is a bad sample that is never read */
    for (int k = 0; k < 2; k++) {
        MRT_EQ(truncate(mrt_path("huge/class00/huge.jpg"), sizes[k]), 0); /* sparse */
        src = mrt_source(mrt_path("huge"));
        MRT_EQ(mr_loader_open(&l, src, &cfg, &err), expected[k]);
        mr_loader_close(l);
        mr_source_close(src);
    }
}

static void refused(const mr_source *src, const mr_loader_config *cfg, int code, const char *why)
{
    mr_error err = MR_ERROR_INIT;
    mr_loader *l = (mr_loader *)&err; /* poison */
    MRT_EQ(mr_loader_open(&l, src, cfg, &err), code);
    MRT_TRUE(l == NULL);
    MRT_HAS(err.text, why);
}

typedef struct one_batch {
    mr_loader *l;
    int rc;
    mr_error err;
} one_batch;

static void *take_one(void *arg)
{
    one_batch *o = arg;
    mr_batch b;
    o->rc = mr_loader_next(o->l, &b, MR_FOREVER, &o->err);
    if (o->rc == MR_OK) mr_loader_release(o->l, &b, NULL);
    return NULL;
}

/* Without prefetch whoever asks for a batch reads it: threads in turn, never two at once. */
static void threads_ask_in_turn(void **state)
{
    (void)state;
    mr_source *src = mrt_source(mrt_idx_set("turns", 60, 4, 4));
    for (uint32_t way = 0; way < 2; way++) {
        mr_error err = MR_ERROR_INIT;
        one_batch o = {.err = MR_ERROR_INIT};
        mr_loader_config cfg = settings(4);
        cfg.prefetch = 0;
        cfg.resident_bytes = 0; /* read each time */
        cfg.io = way ? MR_IO_PREAD : MR_IO_AUTO;
        MRT_OK(mr_loader_open(&o.l, src, &cfg, &err), &err);
        for (uint32_t k = 0; k < 15; k++) {
            pthread_t thread;
            MRT_EQ(pthread_create(&thread, NULL, take_one, &o), 0);
            pthread_join(thread, NULL);
            MRT_OK(o.rc, &o.err);
        }
        mr_loader_close(o.l);
    }
    mr_source_close(src);
}

/* A number that stands for no choice is not taken for another one. */
static void choices_that_do_not_exist_are_refused(void **state)
{
    (void)state;
    mr_source *src = mrt_source(mrt_idx_set("choices", 10, 4, 4));
    mr_loader_config usual, cfg;
    mr_loader_defaults(&usual);
    cfg = usual, cfg.order = (mr_order)99;
    refused(src, &cfg, MR_EINVAL, "mr_loader_config.order is 99: expected 0 to 3");
    cfg = usual, cfg.tail = (mr_tail)3;
    refused(src, &cfg, MR_EINVAL, "mr_loader_config.tail is 3: expected 0 to 2");
    cfg = usual, cfg.io = (mr_io)9;
    refused(src, &cfg, MR_EINVAL, "mr_loader_config.io is 9");
    cfg = usual, cfg.cache = (mr_cache)3;
    refused(src, &cfg, MR_EINVAL, "mr_loader_config.cache is 3");
    cfg = usual, cfg.bad = (mr_bad)3;
    refused(src, &cfg, MR_EINVAL, "mr_loader_config.bad is 3");
    cfg = usual, cfg.decode.pixels = (mr_pixels)3;
    refused(src, &cfg, MR_EINVAL, "mr_loader_config.decode.pixels is 3");
    mr_source_close(src);
}

static void settings_out_of_range_are_refused(void **state)
{
    (void)state;
    mr_source *src = mrt_source(mrt_idx_set("range", 10, 4, 4));
    const mr_loader_config good = settings(4);
    mr_loader_config cfg = good;
    cfg.prefetch = UINT32_MAX; /* + 1 slots would be none */
    refused(src, &cfg, MR_EINVAL, "prefetch");
    cfg = good;
    cfg.readers = cfg.depth = 1 << 16; /* their product would be none */
    refused(src, &cfg, MR_EINVAL, "readers");
    cfg = good;
    cfg.depth = UINT32_MAX;
    refused(src, &cfg, MR_EINVAL, "depth");
    cfg = good;
    cfg.workers = UINT32_MAX / 2;
    refused(src, &cfg, MR_EINVAL, "workers");
    cfg = good;
    cfg.batch = UINT32_MAX;
    cfg.prefetch = 1001; /* an even number of slots of 2^63 bytes */
    refused(src, &cfg, MR_ELIMIT, "lower --batch");
    cfg.augment = "resize(32768x32768)"; /* times batch: past 64 bits */
    cfg.channels = 3;
    refused(src, &cfg, MR_ELIMIT, "lower --batch");
    cfg = good;
    cfg.epochs = UINT64_MAX;
    cfg.start_epoch = (UINT64_C(1) << 63) / 3 * 2; /* times three steps: back at the start */
    refused(src, &cfg, MR_EINVAL, "past the last batch");
    cfg = good;
    cfg.struct_size = 0;
    refused(src, &cfg, MR_EINVAL, "mr_loader_defaults");
    mr_source_close(src);
}

/* Starting after the last step of an epoch starts the next one. */
static void start_at_the_end_of_an_epoch(void **state)
{
    (void)state;
    mr_source *src = mrt_source(mrt_idx_set("edge", 10, 4, 4));
    mr_error err = MR_ERROR_INIT;
    for (uint32_t prefetch = 0; prefetch < 2; prefetch++) {
        mr_loader_config cfg = settings(4);
        mr_loader *l;
        mr_batch b;
        cfg.prefetch = prefetch;
        cfg.epochs = 2;
        cfg.start_step = 3;
        MRT_OK(mr_loader_open(&l, src, &cfg, &err), &err);
        MRT_OK(mr_loader_next(l, &b, MR_FOREVER, &err), &err);
        MRT_EQ(b.epoch, 1);
        MRT_EQ(b.step, 0);
        mr_loader_close(l);
        cfg.start_epoch = 1;
        MRT_OK(mr_loader_open(&l, src, &cfg, &err), &err);
        MRT_EQ(mr_loader_next(l, &b, MR_FOREVER, &err), MR_EEND);
        mr_loader_close(l);
    }
    mr_source_close(src);
}

/* A program that resumes can distinguish a complete run from a mistake. */
static void a_complete_run_has_an_answer_of_its_own(void **state)
{
    (void)state;
    mr_source *src = mrt_source(mrt_idx_set("complete", 10, 4, 4));
    mr_loader_config cfg = settings(4);
    cfg.epochs = 2;
    cfg.start_epoch = 2;
    refused(src, &cfg, MR_EEND, "start_epoch 2 with epochs 2: all epochs are done");
    cfg.start_epoch = 5;
    refused(src, &cfg, MR_EEND, "start_epoch 5 with epochs 2");
    cfg.tune = UINT32_MAX; /* a mistake is one in a complete run, too */
    refused(src, &cfg, MR_EINVAL, "tune");
    cfg.tune = 0;
    cfg.start_epoch = 1;
    cfg.start_step = 4;
    refused(src, &cfg, MR_EINVAL, "start at step 4");
    mr_source_close(src);
}

/* Chunks of many scattered samples bring more reads than fit in flight: the figures stay in their ranges. */
static void figures_are_in_range(void **state)
{
    (void)state;
    mr_source *src = mrt_source(mrt_idx_set("figures", 3000, 8, 8));
    for (uint32_t io = MR_IO_AUTO; io <= MR_IO_PREAD; io += MR_IO_PREAD) {
        mr_loader_config cfg = settings(512);
        mr_error err = MR_ERROR_INIT;
        mr_loader *l;
        mr_batch b;
        mr_loader_stats s;
        cfg.depth = 1;
        cfg.io = (mr_io)io;
        cfg.resident_bytes = 0;
        MRT_OK(mr_loader_open(&l, src, &cfg, &err), &err);
        while (mr_loader_next(l, &b, MR_FOREVER, &err) == MR_OK) mr_loader_release(l, &b, NULL);
        mr_loader_stats_read(l, &s);
        MRT_TRUE(s.read.occupancy > 0 && s.read.occupancy <= 1);
        MRT_TRUE(s.decode.occupancy >= 0 && s.decode.occupancy <= 1);
        MRT_EQ(s.read.items, 3000);
        MRT_EQ(s.decode.items, 3000);
        MRT_TRUE(s.bytes_read >= 3000 * 64 && s.reads > 0);
        mr_loader_close(l);
    }
    mr_source_close(src);
}

static void holding_everything_is_reported(void **state)
{
    (void)state;
    mr_source *src = mrt_source(mrt_idx_set("hold", 64, 4, 4));
    mr_loader_config cfg = settings(4);
    mr_error err = MR_ERROR_INIT;
    mr_loader *l;
    mr_batch held[3], b;
    cfg.prefetch = 2;
    MRT_OK(mr_loader_open(&l, src, &cfg, &err), &err);
    for (int i = 0; i < 3; i++) MRT_OK(mr_loader_next(l, &held[i], MR_FOREVER, &err), &err);
    MRT_EQ(mr_loader_next(l, &b, MR_FOREVER, &err), MR_EBUSY); /* and does not wait for ever */
    MRT_HAS(err.text, "release");
    MRT_EQ(mr_loader_release(l, &held[0], NULL), MR_OK);
    MRT_OK(mr_loader_next(l, &b, MR_FOREVER, &err), &err);
    mr_loader_stop(l);
    MRT_EQ(mr_loader_next(l, &b, MR_FOREVER, &err), MR_ECANCELED);
    mr_loader_close(l);
    mr_source_close(src);
}

static void polling_and_misuse(void **state)
{
    (void)state;
    mr_source *src = mrt_source(mrt_idx_set("poll", 64, 8, 8));
    mr_loader_config cfg = settings(8);
    mr_error err = MR_ERROR_INIT;
    mr_loader *l;
    mr_batch b, c;
    int rc;
    MRT_OK(mr_loader_open(&l, src, &cfg, &err), &err);
    while ((rc = mr_loader_next(l, &b, 0, &err)) == MR_EAGAIN) {
    }
    MRT_OK(rc, &err);
    MRT_OK(mr_loader_next(l, &c, 1000000000u, &err), &err);
    MRT_EQ(mr_loader_release(l, &c, NULL), MR_EINVAL); /* not in the order taken */
    MRT_EQ(mr_loader_release(l, &b, NULL), MR_OK);
    MRT_EQ(mr_loader_release(l, &c, NULL), MR_OK);
    mr_loader_close(l);

    cfg.prefetch = 0;
    MRT_OK(mr_loader_open(&l, src, &cfg, &err), &err);
    MRT_OK(mr_loader_next(l, &b, MR_FOREVER, &err), &err);
    MRT_EQ(mr_loader_next(l, &c, MR_FOREVER, &err), MR_EBUSY);
    MRT_EQ(mr_loader_release(l, &b, NULL), MR_OK);
    MRT_OK(mr_loader_next(l, &b, MR_FOREVER, &err), &err);
    mr_loader_close(l);
    mr_source_close(src);
}

static void every_failed_allocation_is_reported(void **state)
{
    (void)state;
    mr_source *src = mrt_source(mrt_idx_set("alloc", 20, 4, 4));
    mr_loader_config cfg = settings(8);
    cfg.prefetch = 0; /* the count of allocations is then the same every time */
    for (long n = 0;; n += MRT_TURN) {
        mr_error err = MR_ERROR_INIT;
        mr_loader *l = (mr_loader *)&cfg;
        mrt_fail_alloc_at(n);
        int rc = mr_loader_open(&l, src, &cfg, &err);
        const int hit = mrt_alloc_failed();
        mrt_fail_alloc_at(-1);
        if (!hit) {
            MRT_OK(rc, &err);
            mr_loader_close(l);
            break;
        }
        if (rc == MR_OK) { /* something optional did without */
            mr_loader_close(l);
            continue;
        }
        MRT_EQ(rc, MR_ENOMEM);
        MRT_TRUE(l == NULL);
    }
    mr_source_close(src);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(every_sample_once),
        cmocka_unit_test(dropping_everything_is_refused),
        cmocka_unit_test(free_order_brings_the_same_batches),
        cmocka_unit_test(free_order_counts_each_batch),
        cmocka_unit_test(settings_do_not_change_batches),
        cmocka_unit_test(resume_continues_the_same_order),
        cmocka_unit_test(epochs_differ),
        cmocka_unit_test(draws_belong_to_the_sample),
        cmocka_unit_test(devices_hold_their_part_only),
        cmocka_unit_test(budget_is_checked_before_the_start),
        cmocka_unit_test(polling_and_misuse),
        cmocka_unit_test(every_failed_allocation_is_reported),
        cmocka_unit_test(settings_out_of_range_are_refused),
        cmocka_unit_test(choices_that_do_not_exist_are_refused),
        cmocka_unit_test(threads_ask_in_turn),
        cmocka_unit_test(budget_is_not_met_by_refusing_every_picture),
        cmocka_unit_test(one_huge_sample_does_not_multiply),
        cmocka_unit_test(start_at_the_end_of_an_epoch),
        cmocka_unit_test(a_complete_run_has_an_answer_of_its_own),
        cmocka_unit_test(figures_are_in_range),
        cmocka_unit_test(holding_everything_is_reported),
    };
    return mrt_run(tests);
}
