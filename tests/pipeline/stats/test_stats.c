/* tests/pipeline/stats/test_stats.c: mr_stats_make() on a source of the program's own: counts, channels,
 * copies and bad samples, the same for any number of workers; a stop. The command's tests (cli_stats) have
 * files. */
#include "millrace/stats.h"
#include "tests/own_source.h"

enum { SAMPLES = 90, CLASSES = 3, SIDE = 2 };

static bool is_bad(uint64_t sample) { return sample % 40 == 7; } /* 7, 47, 87 */

/* Samples k and k + 60 have the same pixels; class 2 has no copies. */
static int fetch(void *context, uint64_t sample, mr_own_sample *to, mr_error *err)
{
    uint8_t pixels[SIDE * SIDE];
    memset(pixels, (int)(sample % 60), sizeof pixels);
    (void)context;
    if (is_bad(sample)) return mr_error_set(err, MR_EFORMAT, "damaged");
    return mrt_own_give(to, pixels, SIDE, sample >= 70, err);
}

typedef struct reported {
    uint64_t sample[SAMPLES], count, done;
} reported;

static void on_wrong(void *context, const mr_error *what)
{
    reported *r = context;
    r->sample[r->count++] = what->sample;
}

static void on_progress(void *context, uint64_t done, uint64_t count)
{
    MRT_TRUE(count == SAMPLES && done <= count);
    ((reported *)context)->done = done;
}

static void counts_are_the_same_for_any_workers(void **state)
{
    (void)state;
    mr_source *src = mrt_own_source(SAMPLES, SIDE, CLASSES, fetch, NULL);
    mr_error err = MR_ERROR_INIT;
    for (uint32_t workers = 1; workers <= 16; workers *= 4) {
        reported r = {.count = 0};
        mr_stats *s;
        mr_stats_config cfg;
        mr_stats_defaults(&cfg);
        cfg.workers = workers;
        cfg.decode_most = 10; /* samples 0, 9, ... 81 */
        cfg.on_wrong = on_wrong;
        cfg.on_progress = on_progress;
        cfg.context = &r;
        MRT_OK(mr_stats_make(&s, src, &cfg, &err), &err);
        MRT_TRUE(r.count == 3 && r.sample[0] == 7 && r.sample[1] == 47 && r.sample[2] == 87);
        MRT_EQ(r.done, SAMPLES);
        MRT_EQ(s->count, SAMPLES);
        MRT_EQ(s->bad, 3);
        MRT_TRUE(!s->sample[7].good && s->sample[8].good && s->sample[8].width == SIDE);
        MRT_TRUE(s->classes == CLASSES && s->of_class[0] == 68 && s->of_class[1] == 19 &&
                 s->of_class[2] == 0);
        MRT_TRUE(s->empty_classes == 1 && s->least_class == 2 && s->most_class == 0);
        MRT_EQ(s->bytes.total, (SAMPLES - 3) * SIDE * SIDE);
        MRT_EQ(s->duplicates, 28); /* 60 to 89 without 67, whose first is bad, and 87 */
        MRT_EQ(s->crossing, 19);
        MRT_TRUE(s->pair[0][0] == 0 && s->pair[0][1] == 60);
        MRT_EQ(s->decoded, 10);
        MRT_EQ(mr_stats_decoded_sample(s, 9), 81);
        MRT_TRUE(s->mean[0] == (0 + 9 + 18 + 27 + 36 + 45 + 54 + 3 + 12 + 21) / 10.0);
        MRT_STR(mr_stats_kind_name(s->sample[0].kind), "pixels");
        mr_stats_free(s);
    }
    mr_source_close(src);
}

/* The test split has the same samples; the first one with each content is named. */
static void samples_of_the_test_part_are_found(void **state)
{
    (void)state;
    mr_source *src = mrt_own_source(SAMPLES, SIDE, CLASSES, fetch, NULL),
              *test = mrt_own_source(SAMPLES, SIDE, CLASSES, fetch, NULL);
    mr_error err = MR_ERROR_INIT;
    reported r = {.count = 0};
    mr_stats *s;
    mr_stats_config cfg;
    mr_stats_defaults(&cfg);
    cfg.on_wrong = on_wrong;
    cfg.context = &r;
    cfg.test = test;
    MRT_OK(mr_stats_make(&s, src, &cfg, &err), &err);
    MRT_EQ(r.count, 3); /* of the counted part only */
    MRT_TRUE(s->shared.src == test && s->shared.of == SAMPLES && s->shared.bad == 3);
    MRT_EQ(s->shared.count, SAMPLES - 3);
    MRT_TRUE(s->shared.pair[7][0] == 8 && s->shared.pair[7][1] == 8); /* 7 is bad */
    MRT_TRUE(s->count == SAMPLES && s->duplicates == 28);
    mr_stats_free(s);
    cfg.test = NULL;
    MRT_OK(mr_stats_make(&s, src, &cfg, &err), &err);
    MRT_TRUE(s->shared.src == NULL && s->shared.count == 0);
    mr_stats_free(s);
    mr_source_close(test);
    mr_source_close(src);
}

static void a_stop_ends_it(void **state)
{
    (void)state;
    mr_source *src = mrt_own_source(SAMPLES, SIDE, CLASSES, fetch, NULL);
    mr_error err = MR_ERROR_INIT;
    volatile int stop = 1;
    mr_stats *s;
    mr_stats_config cfg;
    mr_stats_defaults(&cfg);
    cfg.stop = &stop;
    MRT_EQ(mr_stats_make(&s, src, &cfg, &err), MR_ECANCELED);
    MRT_TRUE(s == NULL);
    mr_source_close(src);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(counts_are_the_same_for_any_workers),
        cmocka_unit_test(samples_of_the_test_part_are_found),
        cmocka_unit_test(a_stop_ends_it),
    };
    return mrt_run(tests);
}
