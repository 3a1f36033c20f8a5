/* A global batch in parts that several loaders make, as ranks of one run do: side by side they are what one
 * loader delivers, whatever the cut, and each reads its own samples only. */
#include "mrt.h"
#include "pipeline/loader_private.h"
#include "tests/pipeline/sets.h"

enum { LOADERS_MOST = 8, BATCH_MOST = 200 };

/* Parts of each loader; they add up to all_parts. */
typedef struct cut {
    uint32_t loaders, parts[LOADERS_MOST];
} cut;

static const cut cuts[] = {
    {1, {1}},       {2, {1, 1}}, {3, {1, 1, 1}}, {4, {2, 2, 2, 2}}, {7, {1, 1, 1, 1, 1, 1, 1}},
    {3, {1, 3, 2}}, {2, {5, 1}},
};

static uint32_t all_of(const cut *c)
{
    uint32_t all = 0;
    for (uint32_t i = 0; i < c->loaders; i++) all += c->parts[i];
    return all;
}

static mr_loader *open_loader(const mr_source *src, const mr_loader_config *cfg)
{
    mr_loader *l;
    mr_error err = MR_ERROR_INIT;
    MRT_OK(mr_loader_open(&l, src, cfg, &err), &err);
    return l;
}

/* The numbers of a batch that the order says, and no more of them than there is room for. */
static void same_numbers(mr_loader *l, const mr_batch *b)
{
    uint64_t numbers[BATCH_MOST];
    uint32_t first, count;
    mr_error err = MR_ERROR_INIT;
    MRT_OK(mr_loader_samples(l, b->epoch, b->step, numbers, BATCH_MOST, &first, &count, &err), &err);
    MRT_TRUE(first == b->first && count == b->count);
    MRT_EQ(memcmp(numbers, b->ids, count * sizeof *numbers), 0);
    if (count == 0) return;
    MRT_EQ(mr_loader_samples(l, b->epoch, b->step, numbers, count - 1, &first, &count, &err), MR_EINVAL);
    MRT_HAS(err.text, "expected at least");
    MRT_EQ(mr_loader_samples(l, b->epoch, b->step + 1000, numbers, BATCH_MOST, &first, &count, &err),
           MR_EINVAL);
    MRT_HAS(err.text, "mr_loader_samples: epoch");
}

/* What one of them has is places [first, first + count) of the whole. */
static void same_part(mr_loader *l, const mr_batch *whole, const mr_batch *b)
{
    const mr_loader_info *info = mr_loader_info_of(l);
    const size_t sample = (size_t)info->height * info->width * info->channels;
    uint32_t counted = 0, place = b->first;
    MRT_TRUE(b->epoch == whole->epoch && b->step == whole->step && b->last == whole->last);
    MRT_TRUE(b->all_count == whole->count && b->first + b->count <= whole->count);
    MRT_EQ(memcmp(b->pixels, whole->pixels + b->first * sample, b->count * sample), 0);
    MRT_EQ(memcmp(b->labels, whole->labels + b->first, b->count * sizeof *b->labels), 0);
    MRT_EQ(memcmp(b->ids, whole->ids + b->first, b->count * sizeof *b->ids), 0);
    for (uint32_t i = 0; i < b->count; i++) counted += b->labels[i] >= 0;
    MRT_EQ(b->counted, counted);
    same_numbers(l, b);
    for (uint32_t r = 0; r < b->part_count; r++) {
        const mr_part *p = &b->parts[r];
        MRT_EQ(p->first, place);
        place += p->count;
        MRT_TRUE(p->labels == b->labels + (p->first - b->first));
        MRT_TRUE(p->pixels == b->pixels + (p->first - b->first) * sample);
    }
    MRT_EQ(place, b->first + b->count);
}

static uint64_t bytes_read(const mr_loader *l)
{
    mr_loader_stats s;
    mr_loader_stats_read(l, &s);
    return s.bytes_read;
}

static void same_run(const mr_source *src, const mr_loader_config *base, const cut *c)
{
    mr_error err = MR_ERROR_INIT;
    mr_loader *whole = open_loader(src, base), *part[LOADERS_MOST];
    mr_loader_config cfg = *base;
    cfg.all_parts = all_of(c);
    cfg.first_part = 0;
    for (uint32_t i = 0; i < c->loaders; cfg.first_part += c->parts[i++]) {
        cfg.parts = c->parts[i];
        part[i] = open_loader(src, &cfg);
        MRT_EQ(mr_loader_info_of(part[i])->steps_per_epoch, mr_loader_info_of(whole)->steps_per_epoch);
    }
    mr_batch all, b;
    for (int rc; (rc = mr_loader_next(whole, &all, MR_FOREVER, &err)) != MR_EEND;) {
        uint32_t at = 0;
        MRT_OK(rc, &err);
        MRT_TRUE(all.first == 0 && all.all_count == all.count);
        for (uint32_t i = 0; i < c->loaders; i++) {
            MRT_OK(mr_loader_next(part[i], &b, MR_FOREVER, &err), &err);
            MRT_EQ(b.first, at);
            at += b.count;
            same_part(part[i], &all, &b);
            mr_loader_release(part[i], &b, NULL);
        }
        MRT_EQ(at, all.count);
        mr_loader_release(whole, &all, NULL);
    }
    uint64_t read = 0;
    for (uint32_t i = 0; i < c->loaders; i++) {
        MRT_EQ(mr_loader_next(part[i], &b, MR_FOREVER, &err), MR_EEND);
        const uint64_t mine = bytes_read(part[i]);
        if (c->loaders > 1 && base->batch >= all_of(c)) MRT_TRUE(mine < bytes_read(whole));
        read += mine;
        mr_loader_close(part[i]);
    }
    MRT_EQ(read, bytes_read(whole));
    mr_loader_close(whole);
}

static void parts_side_by_side_are_the_whole(void **state)
{
    (void)state;
    mr_source *src = mrt_source(mrt_folder_set("parts", 3, 31, 40, true));
    static const uint32_t batches[] = {16, 5, 3, 93, 200}; /* fewer than parts, the set, more than the set */
    for (size_t k = 0; k < MRI_ARRAY_COUNT(cuts); k++)
        for (size_t n = 0; n < MRI_ARRAY_COUNT(batches); n++) {
            const size_t way = (k + n) % 4;
            mr_loader_config cfg = mrt_training(batches[n], 2, "resize(40x40),cifar", NULL, 0);
            cfg.tail = way == 1 && batches[n] <= 93 ? MR_TAIL_DROP : way == 2 ? MR_TAIL_PAD : MR_TAIL_KEEP;
            cfg.prefetch = way == 3 ? 0 : 2;
            cfg.workers = 2;
            cfg.start_step = way == 2;
            cfg.resident_bytes = 0;
            cfg.depth = 4;
            same_run(src, &cfg, &cuts[k]);
        }
    mr_source_close(src);
}

/* Of a set that is resident, by the last part alone. */
static void from_memory_too(void **state)
{
    (void)state;
    mr_source *src = mrt_source(mrt_idx_set("parts-idx", 101, 24, 24));
    for (size_t k = 0; k < MRI_ARRAY_COUNT(cuts); k++) {
        mr_loader_config cfg = mrt_training(13, 3, "none", NULL, 0);
        mr_error err = MR_ERROR_INIT;
        mr_batch all, b;
        mr_loader *whole = open_loader(src, &cfg), *last;
        cfg.all_parts = all_of(&cuts[k]);
        cfg.first_part = cfg.all_parts - 1;
        last = open_loader(src, &cfg);
        for (int rc; (rc = mr_loader_next(whole, &all, MR_FOREVER, &err)) != MR_EEND;) {
            MRT_OK(rc, &err);
            MRT_OK(mr_loader_next(last, &b, MR_FOREVER, &err), &err);
            same_part(last, &all, &b);
            MRT_EQ(b.first + b.count, all.count);
            mr_loader_release(last, &b, NULL);
            mr_loader_release(whole, &all, NULL);
        }
        mr_loader_close(last);
        mr_loader_close(whole);
    }
    mr_source_close(src);
}

static void what_makes_no_sense_is_refused(void **state)
{
    (void)state;
    mr_source *src = mrt_source(mrt_idx_set("parts-idx", 101, 24, 24));
    mr_loader_config cfg = mrt_training(13, 3, "none", NULL, 0);
    cfg.first_part = 1;
    mrt_refused(src, &cfg, MR_EINVAL, "parts 1 to 1 of 1");
    cfg.all_parts = 4, cfg.parts = 2, cfg.first_part = 3;
    mrt_refused(src, &cfg, MR_EINVAL, "parts 3 to 4 of 4");
    cfg.all_parts = UINT32_MAX, cfg.first_part = 0;
    mrt_refused(src, &cfg, MR_EINVAL, "at most");
    mr_source_close(src);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(parts_side_by_side_are_the_whole),
        cmocka_unit_test(from_memory_too),
        cmocka_unit_test(what_makes_no_sense_is_refused),
    };
    return mrt_run(tests);
}
