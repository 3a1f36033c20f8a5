/* tests/run/test_forms.c: costs of some samples in other forms, in a folder that is removed; what ends
 * advice. No cost is compared with another: machines differ. */
#include <dirent.h>
#include <stdlib.h>

#include "millrace/forms.h"
#include "mrt.h"

enum { SAMPLES = 250, COPIED = 125, SIDE = 8 };

static const mr_field fields[] = {
    {.name = "image", .type = MR_TYPE_PIXELS, .ndim = 3, .dim = {SIDE, SIDE, 1}},
    {.name = "label", .type = MR_TYPE_INT}};

/* *context: all are damaged. */
static int fetch(void *context, uint64_t sample, mr_own_sample *to, mr_error *err)
{
    const uint8_t pixels[SIDE * SIDE] = {(uint8_t)sample};
    const mr_value values[] = {
        {.type = MR_TYPE_PIXELS, .ndim = 3, .dim = {SIDE, SIDE, 1}, .data = pixels, .bytes = sizeof pixels},
        {.type = MR_TYPE_INT}};
    if (*(const bool *)context || sample == 2) return mr_error_set(err, MR_EFORMAT, "damaged");
    return mr_own_sample_give(to, values, err);
}

static mr_source *make_source(bool *damaged, uint32_t first_field)
{
    mr_error err = MR_ERROR_INIT;
    mr_source *src;
    mr_own_config cfg;
    mr_own_defaults(&cfg);
    cfg.count = SAMPLES;
    cfg.field_count = 2 - first_field;
    cfg.fields = fields + first_field;
    cfg.fetch = fetch;
    cfg.context = damaged;
    MRT_OK(mr_source_create(&src, &cfg, &err), &err);
    return src;
}

static uint32_t folders_of_trials(void)
{
    uint32_t count = 0;
    DIR *folder = opendir(mrt_temp());
    MRT_TRUE(folder);
    for (const struct dirent *e; (e = readdir(folder));)
        count += strncmp(e->d_name, "millrace-forms-", 15) == 0;
    closedir(folder);
    return count;
}

static void some_samples_have_costs(void **state)
{
    (void)state;
    mr_error err = MR_ERROR_INIT;
    bool damaged = false, made;
    mr_source *src = make_source(&damaged, 0);
    mr_form_trial *t;
    mr_form_cost cost = {0};
    mr_convert_result result;
    mr_loader_config like;
    double rate = 0, cores = -1;
    mr_loader_defaults(&like);
    like.augment = "none";
    MRT_OK(mr_form_trial_open(&t, src, NULL, &err), &err);
    MRT_EQ(folders_of_trials(), 1);
    const mr_form_trial_info *info = mr_form_trial_info_of(t);
    MRT_EQ(info->count, COPIED - 1); /* every second */
    MRT_EQ(info->bad, 1);
    MRT_TRUE(info->shorter_side == SIDE);
    MRT_OK(mr_form_trial_cost(t, false, &like, &cost, &err), &err);
    MRT_TRUE(cost.bytes >= SIDE * SIDE && cost.decode_ms >= 0);
    MRT_EQ(mr_form_trial_cost(t, true, &like, &cost, &err), MR_EINVAL);
    MRT_HAS(err.text, "mr_form_trial_convert");
    MRT_OK(mr_form_trial_convert(t, &(mr_form){.store = MR_STORE_COEF}, &made, NULL, &err), &err);
    MRT_TRUE(!made); /* pixels have no coefficients */
    MRT_OK(mr_form_trial_convert(t, &(mr_form){.store = MR_STORE_JPEG}, &made, &result, &err), &err);
    MRT_TRUE(made && result.records == COPIED - 1);
    MRT_OK(mr_form_trial_cost(t, true, &like, &cost, &err), &err);
    MRT_OK(mr_form_trial_rate(t, true, &like, 1, 0, &rate, &cores, &err), &err);
    MRT_TRUE(rate > 0 && cores >= 0);
    mr_form_trial_close(t);
    MRT_EQ(folders_of_trials(), 0);
    mr_source_close(src);
}

static void advice_needs_pictures_that_can_be_read(void **state)
{
    (void)state;
    mr_error err = MR_ERROR_INIT;
    bool damaged = true;
    mr_advice advice;
    mr_advise_config cfg;
    volatile int stop = 1;
    mr_source *src = make_source(&damaged, 0);
    MRT_EQ(mr_advise(src, NULL, &advice, &err), MR_EBADSAMPLE);
    MRT_HAS(err.text, "pictures that were looked at");
    damaged = false;
    mr_advise_defaults(&cfg);
    cfg.stop = &stop;
    MRT_EQ(mr_advise(src, &cfg, &advice, &err), MR_ECANCELED);
    mr_source_close(src);
    src = make_source(&damaged, 1);
    MRT_EQ(mr_advise(src, NULL, &advice, &err), MR_EUNSUPPORTED);
    mr_source_close(src);
    MRT_EQ(folders_of_trials(), 0);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(some_samples_have_costs),
        cmocka_unit_test(advice_needs_pictures_that_can_be_read),
    };
    setenv("TMPDIR", mrt_temp(), 1);
    return mrt_run(tests);
}
