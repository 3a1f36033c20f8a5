/* Repeated augmentation: each sample occurs a fixed number of times in its batch, each time as another
 * picture; batches of any size, short last batches, shares, a resumed run; an epoch keeps its length. */
#include <stdlib.h>

#include "base/util.h"
#include "mrt.h"
#include "tests/pipeline/sets.h"

enum { COUNT = 61, SIDE = 9, BYTES = SIDE * SIDE };

typedef struct delivered {
    uint32_t count;
    uint64_t ids[64];
    uint8_t *pixels; /* to be freed */
    bool last;
} delivered;

static mr_loader *open_loader(mr_source *src, const mr_loader_config *cfg)
{
    mr_error err = MR_ERROR_INIT;
    mr_loader *l;
    MRT_OK(mr_loader_open(&l, src, cfg, &err), &err);
    return l;
}

static bool next(mr_loader *l, delivered *out)
{
    mr_error err = MR_ERROR_INIT;
    mr_batch b;
    const int rc = mr_loader_next(l, &b, MR_FOREVER, &err);
    if (rc == MR_EEND) return false;
    MRT_OK(rc, &err);
    *out = (delivered){.count = b.count, .last = b.last, .pixels = malloc((size_t)b.count * BYTES)};
    memcpy(out->ids, b.ids, b.count * sizeof *b.ids);
    memcpy(out->pixels, b.pixels, (size_t)b.count * BYTES);
    MRT_EQ(mr_loader_release(l, &b, NULL), MR_OK);
    return true;
}

static mr_loader_config settings(uint32_t batch, uint32_t repeats)
{
    mr_loader_config cfg = mrt_training(batch, 3, "padcrop(4)", NULL, 0);
    cfg.repeats = repeats;
    return cfg;
}

static void each_sample_comes_so_often(void **state)
{
    (void)state;
    mr_source *src = mrt_source(mrt_idx_set("repeats", COUNT, SIDE, SIDE));
    static const uint32_t batches[] = {12, 13, 5, 60}, repeats[] = {2, 3, 4, 5};
    for (size_t k = 0; k < MRI_ARRAY_COUNT(batches); k++) {
        const uint32_t batch = batches[k], times = repeats[k], each = (batch + times - 1) / times;
        const mr_loader_config cfg = settings(batch, times);
        mr_loader *l = open_loader(src, &cfg);
        MRT_EQ(mr_loader_info_of(l)->repeats, times);
        MRT_EQ(mr_loader_info_of(l)->epoch_samples, COUNT);
        delivered d;
        uint32_t seen[COUNT] = {0}, same = 0, pairs = 0;
        while (next(l, &d)) {
            for (uint32_t i = 0; i < d.count; i++) {
                MRT_EQ(d.ids[i], d.ids[i % each]); /* the same samples again */
                for (uint32_t j = 0; j < i && i < each; j++) MRT_TRUE(d.ids[i] != d.ids[j]);
                if (i < each) seen[d.ids[i]]++;
                if (i < each) continue;
                pairs++;
                same +=
                    memcmp(d.pixels + (size_t)i * BYTES, d.pixels + (size_t)(i % each) * BYTES, BYTES) == 0;
            }
            if (d.last) { /* an epoch has no sample in two batches */
                for (uint32_t i = 0; i < COUNT; i++) MRT_TRUE(seen[i] <= 1);
                memset(seen, 0, sizeof seen);
            }
            free(d.pixels);
        }
        MRT_TRUE(pairs > 30 && same * 8 < pairs); /* of 81 places one is drawn for each */
        mr_loader_close(l);
    }
    mr_source_close(src);
}

/* Once is what there was before. */
static void once_changes_nothing(void **state)
{
    (void)state;
    mr_source *src = mrt_source(mrt_idx_set("once", COUNT, SIDE, SIDE));
    const mr_loader_config without = settings(16, 0), with = settings(16, 1);
    mr_loader *a = open_loader(src, &without), *b = open_loader(src, &with);
    delivered x, y;
    while (next(a, &x)) {
        MRT_TRUE(next(b, &y));
        MRT_EQ(x.count, y.count);
        MRT_TRUE(memcmp(x.ids, y.ids, x.count * sizeof *x.ids) == 0);
        MRT_TRUE(memcmp(x.pixels, y.pixels, (size_t)x.count * BYTES) == 0);
        free(x.pixels);
        free(y.pixels);
    }
    MRT_TRUE(!next(b, &y));
    mr_loader_close(a);
    mr_loader_close(b);
    mr_source_close(src);
}

/* From any batch on, by any number of workers, and as the parts of several loaders. */
static void it_follows_from_the_place(void **state)
{
    (void)state;
    mr_source *src = mrt_source(mrt_idx_set("place", COUNT, SIDE, SIDE));
    mr_loader_config cfg = settings(14, 3);
    mr_loader *l = open_loader(src, &cfg);
    delivered all[16], d;
    uint32_t count = 0;
    while (count < 16 && next(l, &all[count])) count++;
    MRT_EQ(count, 15); /* three epochs of five */
    mr_loader_close(l);
    for (uint32_t from = 0; from < count; from += 4) {
        cfg.start_epoch = from / 5, cfg.start_step = from % 5, cfg.workers = 1 + from % 3,
        cfg.prefetch = from % 2;
        l = open_loader(src, &cfg);
        for (uint32_t k = from; k < count; k++) {
            MRT_TRUE(next(l, &d));
            MRT_EQ(d.count, all[k].count);
            MRT_TRUE(memcmp(d.pixels, all[k].pixels, (size_t)d.count * BYTES) == 0);
            free(d.pixels);
        }
        mr_loader_close(l);
    }
    cfg = settings(14, 3);
    cfg.all_parts = 7;
    for (uint32_t part = 0; part < 7; part++) {
        cfg.first_part = part;
        l = open_loader(src, &cfg);
        for (uint32_t k = 0; k < count; k++) {
            MRT_TRUE(next(l, &d));
            const uint32_t first = all[k].count * part / 7, end = all[k].count * (part + 1) / 7;
            MRT_EQ(d.count, end - first);
            MRT_TRUE(memcmp(d.pixels, all[k].pixels + (size_t)first * BYTES, (size_t)d.count * BYTES) == 0);
            free(d.pixels);
        }
        mr_loader_close(l);
    }
    for (uint32_t k = 0; k < count; k++) free(all[k].pixels);
    mr_source_close(src);
}

static void what_makes_no_sense_is_refused(void **state)
{
    (void)state;
    mr_source *src = mrt_source(mrt_idx_set("refused", COUNT, SIDE, SIDE));
    static const uint64_t samples[3] = {0, 1, 2};
    mr_loader_config cfg = settings(4, 5);
    mrt_refused(src, &cfg, MR_EINVAL, "repeats 5: expected at most the batch, 4");
    cfg = settings(4, 2);
    cfg.order = MR_ORDER_BALANCED;
    mrt_refused(src, &cfg, MR_EINVAL, "order balanced says which samples come");
    cfg = settings(4, 2);
    cfg.sampler_samples = samples, cfg.sampler_count = 3;
    mrt_refused(src, &cfg, MR_EINVAL, "a sampler says which samples come");
    mr_source_close(src);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(each_sample_comes_so_often),
        cmocka_unit_test(once_changes_nothing),
        cmocka_unit_test(it_follows_from_the_place),
        cmocka_unit_test(what_makes_no_sense_is_refused),
    };
    return mrt_run(tests);
}
