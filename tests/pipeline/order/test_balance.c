/* Order balanced: every class as often as every other, all samples of a class before one comes again, over
 * epochs; the same whoever asks, resumed anywhere. */
#include <stdlib.h>
#include <unistd.h>

#include "base/util.h"
#include "mrt.h"
#include "pipeline/order/balance.h"
#include "tests/pipeline/sets.h"

enum { CLASSES = 3, MOST = 256 };

/* counts[c] samples of class c, one after the other; pixels encode the number. */
static mr_source *set_of(const char *name, const uint32_t counts[CLASSES], bool labelled)
{
    const mr_field fields[] = {{.name = "image", .type = MR_TYPE_PIXELS, .ndim = 3, .dim = {1, 1, 1}},
                               {.name = "label", .type = MR_TYPE_INT}};
    mr_writer *w = mrt_writer(name, fields, labelled ? 2 : 1, labelled ? CLASSES : 0);
    mr_error err = MR_ERROR_INIT;
    uint64_t i = 0;
    for (uint32_t c = 0; c < CLASSES; c++)
        for (uint32_t k = 0; k < counts[c]; k++, i++) {
            const uint8_t pixel = (uint8_t)i;
            const mr_value v[] = {
                {.type = MR_TYPE_PIXELS, .data = &pixel, .bytes = 1, .ndim = 3, .dim = {1, 1, 1}},
                {.type = MR_TYPE_INT, .i = (int64_t)c}};
            MRT_OK(mr_writer_append(w, i, v, &err), &err);
        }
    return mrt_written(w, name);
}

static uint32_t class_of(const uint32_t counts[CLASSES], uint64_t sample)
{
    uint32_t c = 0;
    while (sample >= counts[c]) sample -= counts[c++];
    return c;
}

static void classes_come_equally_often(void **state)
{
    (void)state;
    static const uint32_t sets[][CLASSES] = {{100, 10, 1}, {5, 5, 5}, {7, 0, 60}, {1, 1, 1}, {0, 0, 9}};
    for (size_t s = 0; s < MRI_ARRAY_COUNT(sets); s++) {
        const uint32_t *counts = sets[s];
        mr_source *src = set_of("balanced", counts, true);
        mr_error err = MR_ERROR_INIT;
        mri_balance *b;
        MRT_OK(mri_balance_create(&b, src, 5, &err), &err);
        const uint64_t n = mr_source_info_of(src)->count;
        uint32_t present = 0, seen[MOST] = {0};
        for (uint32_t c = 0; c < CLASSES; c++) present += counts[c] > 0;
        for (uint64_t epoch = 0; epoch < 12; epoch++) {
            uint32_t of_class[CLASSES] = {0};
            for (uint64_t p = 0; p < n; p++) {
                const uint64_t sample = mri_balance_sample(b, epoch, p);
                MRT_TRUE(sample < n);
                const uint32_t c = class_of(counts, sample);
                of_class[c]++;
                seen[sample]++;
                MRT_TRUE(of_class[c] <= p / present + 2); /* once in every round */
                uint32_t least = UINT32_MAX, most = 0;    /* of its class: all, before one comes again */
                for (uint64_t k = 0; k < n; k++) {
                    if (class_of(counts, k) != c) continue;
                    least = seen[k] < least ? seen[k] : least;
                    most = seen[k] > most ? seen[k] : most;
                }
                MRT_TRUE(most <= least + 1);
            }
            for (uint32_t c = 0; c < CLASSES; c++)
                if (counts[c]) MRT_TRUE(of_class[c] + 1 >= n / present && of_class[c] <= n / present + 1);
        }
        mri_balance_destroy(b);
        mr_source_close(src);
    }
}

/* Which class comes when, and which of its samples, differs from epoch to epoch and from seed to seed. */
static void orders_are_drawn(void **state)
{
    (void)state;
    static const uint32_t counts[CLASSES] = {80, 80, 80};
    mr_source *src = set_of("drawn", counts, true);
    mr_error err = MR_ERROR_INIT;
    mri_balance *a, *b, *again;
    MRT_OK(mri_balance_create(&a, src, 1, &err), &err);
    MRT_OK(mri_balance_create(&b, src, 2, &err), &err);
    MRT_OK(mri_balance_create(&again, src, 1, &err), &err);
    uint32_t seeds = 0, epochs = 0, classes = 0;
    for (uint64_t p = 0; p < 240; p++) {
        const uint64_t sample = mri_balance_sample(a, 0, p);
        MRT_EQ(sample, mri_balance_sample(again, 0, p));
        seeds += sample == mri_balance_sample(b, 0, p);
        epochs += sample == mri_balance_sample(a, 1, p);
        classes += class_of(counts, sample) == class_of(counts, mri_balance_sample(a, 1, p));
    }
    MRT_TRUE(seeds < 10 && epochs < 10);     /* one is expected, of 240 */
    MRT_TRUE(classes > 50 && classes < 110); /* a third */
    mri_balance_destroy(a);
    mri_balance_destroy(b);
    mri_balance_destroy(again);
    mr_source_close(src);
}

static void loaders_deliver_it(void **state)
{
    (void)state;
    static const uint32_t counts[CLASSES] = {60, 20, 4};
    mr_source *src = set_of("delivered", counts, true);
    mr_loader_config usual = mrt_training(16, 3, "none", NULL, 0);
    usual.order = MR_ORDER_BALANCED;
    uint64_t batches, samples;
    const mr_digest expected = mrt_digest(src, &usual, &batches, &samples);
    MRT_TRUE(batches == 18 && samples == 3 * 84);
    for (int k = 0; k < 4; k++) {
        mr_loader_config cfg = usual;
        if (k == 0) cfg.workers = 5;
        if (k == 1) cfg.prefetch = 0;
        if (k == 2) cfg.parts = 3;
        if (k == 3) cfg.resident_bytes = 0, cfg.io = MR_IO_PREAD;
        MRT_TRUE(mrt_same_batches(expected, mrt_digest(src, &cfg, NULL, NULL)));
    }
    mr_error err = MR_ERROR_INIT;
    mr_loader *whole, *resumed;
    mr_batch a, b;
    MRT_OK(mr_loader_open(&whole, src, &usual, &err), &err);
    usual.start_epoch = 1, usual.start_step = 3;
    MRT_OK(mr_loader_open(&resumed, src, &usual, &err), &err);
    int rc;
    for (uint64_t at = 0; (rc = mr_loader_next(whole, &a, MR_FOREVER, &err)) == MR_OK; at++) {
        if (at >= 9) {
            MRT_OK(mr_loader_next(resumed, &b, MR_FOREVER, &err), &err);
            MRT_EQ(memcmp(a.ids, b.ids, a.count * sizeof *a.ids), 0);
            MRT_OK(mr_loader_release(resumed, &b, NULL), NULL);
        }
        uint32_t of_class[CLASSES] = {0};
        for (uint32_t i = 0; i < a.count; i++) {
            MRT_EQ(a.pixels[i], a.ids[i]);
            of_class[a.labels[i]]++;
        }
        for (uint32_t c = 0; c < CLASSES; c++)
            MRT_TRUE(of_class[c] >= a.count / CLASSES - 1 && of_class[c] <= a.count / CLASSES + 2);
        MRT_OK(mr_loader_release(whole, &a, NULL), NULL);
    }
    MRT_EQ(rc, MR_EEND);
    mr_loader_close(whole);
    mr_loader_close(resumed);
    mr_source_close(src);
}

/* A sample that comes several times in an epoch is not the same picture each time; which one it is depends on
 * nothing but its place. */
static void repeated_samples_are_drawn_anew(void **state)
{
    (void)state;
    enum { SIDE = 16, COUNT = 44 };
    mrt_folder_set("anew", 2, COUNT / 2, SIDE, false);
    for (int i = 2; i < COUNT / 2; i++) /* class 1 keeps two samples */
        MRT_EQ(unlink(mrt_path("anew/class01/%04d.jpg", i)), 0);
    mr_source *src = mrt_source(mrt_path("anew"));
    mr_loader_config usual = mrt_training(8, 2, "padcrop(4),flip,erase(1,value=random),mixup(1)", NULL, 0);
    usual.order = MR_ORDER_BALANCED;
    const mr_digest expected = mrt_digest(src, &usual, NULL, NULL);
    for (int k = 0; k < 3; k++) {
        mr_loader_config cfg = usual;
        if (k == 0) cfg.workers = 1;
        if (k == 1) cfg.workers = 7;
        if (k == 2) cfg.prefetch = 0;
        MRT_TRUE(mrt_same_batches(expected, mrt_digest(src, &cfg, NULL, NULL)));
    }
    static uint8_t seen[2 * COUNT][SIDE * SIDE * 3];
    uint32_t rare = 0;
    mr_error err = MR_ERROR_INIT;
    mr_loader *l;
    mr_batch b;
    usual.augment = "padcrop(4),flip,erase(1,value=random)";
    MRT_OK(mr_loader_open(&l, src, &usual, &err), &err);
    int rc;
    while ((rc = mr_loader_next(l, &b, MR_FOREVER, &err)) == MR_OK) {
        for (uint32_t i = 0; i < b.count; i++) {
            if (b.labels[i] != 1) continue;
            memcpy(seen[rare], b.pixels + i * sizeof *seen, sizeof *seen);
            for (uint32_t k = 0; k < rare; k++) MRT_TRUE(memcmp(seen[k], seen[rare], sizeof *seen) != 0);
            rare++;
        }
        MRT_OK(mr_loader_release(l, &b, NULL), NULL);
    }
    MRT_EQ(rc, MR_EEND);
    MRT_TRUE(rare >= 22); /* two epochs of 24, half of them */
    mr_loader_close(l);
    mr_source_close(src);
}

static void what_knows_no_classes_is_refused(void **state)
{
    (void)state;
    static const uint32_t counts[CLASSES] = {3, 3, 3};
    mr_source *src = set_of("classless", counts, false);
    mr_loader_config cfg = mrt_training(4, 1, "none", NULL, 0);
    cfg.order = MR_ORDER_BALANCED;
    mrt_refused(src, &cfg, MR_EUNSUPPORTED,
                "order balanced deals samples by their classes: these data tell none");
    mr_source_close(src);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(classes_come_equally_often),
        cmocka_unit_test(orders_are_drawn),
        cmocka_unit_test(loaders_deliver_it),
        cmocka_unit_test(repeated_samples_are_drawn_anew),
        cmocka_unit_test(what_knows_no_classes_is_refused),
    };
    return mrt_run(tests);
}
