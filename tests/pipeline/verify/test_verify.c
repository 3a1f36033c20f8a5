/* tests/pipeline/verify/test_verify.c: mr_verify_samples() on a source of the program's own: the same list
 * for any number of workers, from the calling thread; an end that is asked for, and a check that fails. */
#include <pthread.h>

#include "millrace/verify.h"
#include "tests/own_source.h"

enum { SAMPLES = 300, CLASSES = 4, MOST = SAMPLES };

typedef struct reported {
    uint64_t sample[MOST], count, end_after; /* end_after: reports until the check is to end; 0: never */
    pthread_t caller;
    bool elsewhere; /* called by another thread */
    volatile int *stop;
    uint64_t done, bytes;
} reported;

static bool is_damaged(uint64_t sample) { return sample % 37 == 5; }
static bool has_wrong_label(uint64_t sample) { return sample % 101 == 40; }

static int fetch(void *context, uint64_t sample, mr_own_sample *to, mr_error *err)
{
    uint8_t pixels[4] = {0};
    const uint64_t unreadable = *(const uint64_t *)context;
    if (sample == unreadable) return mr_error_set(err, MR_EIO, "the medium does not answer");
    if (is_damaged(sample)) return mr_error_set(err, MR_EFORMAT, "damaged");
    return mrt_own_give(to, pixels, 2, has_wrong_label(sample) ? CLASSES : (int64_t)(sample % CLASSES), err);
}

static mr_source *source_without(const uint64_t *unreadable)
{
    return mrt_own_source(SAMPLES, 2, CLASSES, fetch, (void *)(uintptr_t)unreadable);
}

static bool on_wrong(void *context, const mr_error *what)
{
    reported *r = context;
    r->elsewhere |= !pthread_equal(pthread_self(), r->caller);
    if (r->count < MOST) r->sample[r->count] = what->sample;
    r->count++;
    if (r->stop) *r->stop = 1;
    return !r->end_after || r->count < r->end_after;
}

static void on_progress(void *context, uint64_t done, uint64_t count, uint64_t bytes)
{
    reported *r = context;
    r->elsewhere |= !pthread_equal(pthread_self(), r->caller) || count != SAMPLES || done < r->done;
    r->done = done;
    r->bytes = bytes;
}

static mr_verify_config config(reported *r, uint32_t workers)
{
    mr_verify_config cfg;
    mr_verify_defaults(&cfg);
    r->caller = pthread_self();
    cfg.workers = workers;
    cfg.on_wrong = on_wrong;
    cfg.on_progress = on_progress;
    cfg.context = r;
    return cfg;
}

static const uint64_t none = UINT64_MAX;

static void bad_samples_come_in_order(void **state)
{
    (void)state;
    mr_source *src = source_without(&none);
    mr_error err = MR_ERROR_INIT;
    for (uint32_t workers = 1; workers <= 16; workers *= 4) {
        reported r = {.count = 0};
        mr_verify_result result;
        const mr_verify_config cfg = config(&r, workers);
        uint64_t at = 0;
        MRT_OK(mr_verify_samples(src, &cfg, &result, &err), &err);
        for (uint64_t k = 0; k < SAMPLES; k++)
            if (is_damaged(k) || has_wrong_label(k)) MRT_EQ(r.sample[at++], k);
        MRT_EQ(r.count, at);
        MRT_EQ(result.wrong, at);
        MRT_EQ(result.records, SAMPLES);
        MRT_EQ(r.done, SAMPLES);
        MRT_EQ(r.bytes, result.bytes);
        MRT_TRUE(!r.elsewhere);
    }
    mr_source_close(src);
}

static void the_caller_ends_it(void **state)
{
    (void)state;
    mr_source *src = source_without(&none);
    mr_error err = MR_ERROR_INIT;
    volatile int stop = 0;
    mr_verify_result result;
    reported r = {.end_after = 3};
    mr_verify_config cfg = config(&r, 5);
    MRT_OK(mr_verify_samples(src, &cfg, &result, &err), &err);
    MRT_EQ(r.count, 3);
    MRT_EQ(result.wrong, 3);
    MRT_TRUE(result.records < SAMPLES);

    reported s = {.stop = &stop};
    cfg = config(&s, 5);
    cfg.stop = &stop;
    MRT_EQ(mr_verify_samples(src, &cfg, &result, &err), MR_ECANCELED);
    MRT_EQ(s.count, result.wrong);
    MRT_TRUE(s.count > 0 && result.records < SAMPLES);
    mr_source_close(src);
}

static void what_cannot_be_read_is_reported_elsewhere(void **state)
{
    (void)state;
    mr_source *src = source_without(&none);
    mr_error err = MR_ERROR_INIT;
    reported r = {.count = 0};
    mr_verify_config cfg = config(&r, 3);
    cfg.decode_only = true;
    MRT_OK(mr_verify_samples(src, &cfg, NULL, &err), &err);
    MRT_EQ(r.count, 0);
    MRT_EQ(r.done, SAMPLES);
    mr_source_close(src);
}

static void a_check_that_fails_is_an_error(void **state)
{
    (void)state;
    static const uint64_t unreadable = 150;
    mr_source *src = source_without(&unreadable);
    mr_error err = MR_ERROR_INIT;
    reported r = {.count = 0};
    const mr_verify_config cfg = config(&r, 4);
    MRT_EQ(mr_verify_samples(src, &cfg, NULL, &err), MR_EIO);
    MRT_HAS(err.text, "the medium does not answer");
    MRT_EQ(err.sample, unreadable);
    mr_source_close(src);
}

/* ---- a list ---- */

static void add_sample(mr_bad_list *b, uint64_t sample)
{
    mr_error what = MR_ERROR_INIT;
    mr_error_set(&what, MR_EFORMAT, "damaged \"%u\"", (unsigned)sample);
    mr_error_at(&what, "a.mrec", MR_NOWHERE, sample);
    mr_bad_list_add(b, &what);
}

static void expect_list(const char *path, const char *want)
{
    char found[1024] = "";
    FILE *f = fopen(path, "r");
    MRT_TRUE(f);
    const size_t n = fread(found, 1, sizeof found - 1, f);
    fclose(f);
    MRT_EQ(n, strlen(want));
    MRT_STR(found, want);
}

#define LINE(n)                                                                                              \
    "{\"event\": \"bad\", \"sample\": " #n                                                                   \
    ", \"file\": \"a.mrec\", \"code\": \"malformed data\", \"reason\": "                                     \
    "\"damaged \\\"" #n "\\\"\"}\n"

static void a_list_is_continued_in_order(void **state)
{
    (void)state;
    mr_source *src = source_without(&none);
    mr_error err = MR_ERROR_INIT;
    mr_bad_list *b;
    char path[4096];
    snprintf(path, sizeof path, "%s/list.jsonl", mrt_temp());
    MRT_OK(mr_bad_list_open(&b, path, src, false, false, &err), &err);
    add_sample(b, 5);
    add_sample(b, 42);
    MRT_TRUE(!mr_bad_list_has(b, 5)); /* not resumed: the places of lines are not known */
    MRT_EQ(mr_bad_list_count(b), 2);
    MRT_OK(mr_bad_list_close(b, &err), &err);

    MRT_OK(mr_bad_list_open(&b, path, src, true, false, &err), &err);
    MRT_TRUE(mr_bad_list_has(b, 5) && mr_bad_list_has(b, 42) && !mr_bad_list_has(b, 7));
    add_sample(b, 42);
    add_sample(b, 7);
    MRT_EQ(mr_bad_list_count(b), 3);
    MRT_OK(mr_bad_list_close(b, &err), &err);
    expect_list(path, LINE(5) LINE(7) LINE(42));

    MRT_OK(mr_bad_list_open(&b, path, src, false, false, &err), &err); /* an earlier list is replaced */
    add_sample(b, 1);
    MRT_OK(mr_bad_list_close(b, &err), &err);
    expect_list(path, LINE(1));
    mr_source_close(src);
}

static void another_file_is_no_list(void **state)
{
    (void)state;
    mr_source *src = source_without(&none);
    mr_error err = MR_ERROR_INIT;
    mr_bad_list *b;
    char path[4096];
    snprintf(path, sizeof path, "%s/notes.txt", mrt_temp());
    FILE *f = fopen(path, "w");
    MRT_TRUE(f && fputs("notes\n", f) >= 0 && fclose(f) == 0);
    MRT_EQ(mr_bad_list_open(&b, path, src, false, false, &err), MR_EEXIST);
    MRT_HAS(err.file, "notes.txt");
    MRT_TRUE(!b);
    MRT_EQ(mr_bad_list_open(&b, path, src, true, false, &err), MR_EFORMAT);
    MRT_HAS(err.text, "expected a list of bad samples");
    expect_list(path, "notes\n");
    MRT_OK(mr_bad_list_open(&b, path, src, false, true, &err), &err);
    add_sample(b, 1);
    MRT_OK(mr_bad_list_close(b, &err), &err);
    expect_list(path, LINE(1));
    mr_source_close(src);
}

/* ---- two sets ---- */

static void pictures_of_both_sets_are_counted(void **state)
{
    (void)state;
    mr_source *src = source_without(&none);
    mr_error err = MR_ERROR_INIT;
    mr_same_pictures same;
    volatile int stop = 1;
    uint64_t readable = 0;
    for (uint64_t k = 0; k < SAMPLES; k++) readable += !is_damaged(k) && !has_wrong_label(k);
    MRT_OK(mr_verify_same(src, src, NULL, &same, &err), &err);
    MRT_EQ(same.count, readable);
    MRT_TRUE(same.first == 0 && same.second == 0);
    MRT_EQ(mr_verify_same(src, src, &stop, &same, &err), MR_ECANCELED);
    mr_source_close(src);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(bad_samples_come_in_order),
        cmocka_unit_test(the_caller_ends_it),
        cmocka_unit_test(what_cannot_be_read_is_reported_elsewhere),
        cmocka_unit_test(a_check_that_fails_is_an_error),
        cmocka_unit_test(a_list_is_continued_in_order),
        cmocka_unit_test(another_file_is_no_list),
        cmocka_unit_test(pictures_of_both_sets_are_counted),
    };
    return mrt_run(tests);
}
