/* tools/sets/cmd_stats.c: `millrace stats SET`: the contents of a data set, as numbers. */
#include <stdio.h>
#include <stdlib.h>

#include "tools/cli/exit.h"
#include "tools/cli/interrupt.h"
#include "tools/cli/output.h"
#include "tools/cli/progress.h"
#include "tools/commands/commands.h"
#include "tools/facts/stats.h"
#include "tools/session/setup.h"
#include "tools/sets/bound.h"

typedef struct stats_args {
    const char *set;
    uint64_t decode;
    uint32_t workers;
    const char *html;
    bool force;
    bound_args bound;
    data_args data;
    output_args output;
} stats_args;

typedef struct stats_run {
    progress_bar bar;
    mr_stats *counts;
    mr_stats_bound bound;
} stats_run;

static void on_wrong(void *context, const mr_error *what)
{
    (void)context;
    say_error(what);
}

static void on_progress(void *context, uint64_t done, uint64_t count)
{
    stats_run *r = context;
    progress_show(&r->bar, done, count, NULL);
    if (done == count) progress_end(&r->bar);
}

/* Options that do not go together, and the place of the page: before any work. */
static int check(const stats_args *a)
{
    const bound_args *b = &a->bound;
    const bool wants = b->model || b->step > 0 || b->augment || b->batch || b->devices;
    const char *wrong = b->model && b->step > 0                   ? "--model and --step exclude each other"
                        : b->devices && !b->model                 ? "--devices needs --model"
                        : b->batch && !b->model && !(b->step > 0) ? "--batch needs --model or --step"
                        : wants && b->seconds <= 0 ? "--seconds 0 makes no estimate, for which the others are"
                                                   : NULL;
    if (wrong) {
        say("stats: %s", wrong);
        return EXIT_MISUSED;
    }
    return a->html ? setup_page(a->html, a->force) : EXIT_DONE;
}

/* Small pictures of one size are often trained on as they are. */
static const char *usual_augment(const mr_stats *s)
{
    const bool small = s->width.most < 224 && s->height.most < 224;
    return small && s->width.least == s->width.most && s->height.least == s->height.most ? "none" : "rrc224";
}

static int estimate(const stats_args *a, const mr_stats *s, mr_stats_bound *out)
{
    bound_args b = a->bound;
    const mr_source_info *info = mr_source_info_of(s->src);
    b.workers = a->workers;
    b.data = &a->data;
    b.usual = usual_augment(s);
    if (b.seconds <= 0 || s->count == s->bad) return EXIT_DONE;
    if (info->image_field >= 0) return bound_measure(s->src, &b, out);
    if (!b.model && !(b.step > 0)) return EXIT_DONE;
    say("%s: no pictures: there is no estimate; 'millrace plan' measures a training", info->path);
    return EXIT_FAILED;
}

static int write_page(const stats_args *a, const stats_run *r, const mr_decode_config *decode)
{
    mr_error err = MR_ERROR_INIT;
    mr_stats_page_config cfg;
    mr_stats_page_defaults(&cfg);
    cfg.bound = &r->bound;
    cfg.decode = decode;
    cfg.force = true; /* check() looked at the existing file */
    cfg.stop = &interrupt_flag;
    const int rc = mr_stats_page_write(r->counts, &cfg, a->html, &err);
    if (rc == MR_ECANCELED && interrupt_flag) return EXIT_SIGNAL + interrupt_flag;
    return exit_status(rc, &err);
}

/* *out NULL: there is no part to test with, it cannot be opened, or a part was asked for. */
static int open_test(const stats_args *a, const mr_source *src, mr_source **out)
{
    const mr_source_info *info = mr_source_info_of(src);
    data_args test = a->data;
    bool opens = false;
    *out = NULL;
    if (!info->has_test || info->only_test || (mr_split)a->data.split != MR_SPLIT_AUTO) return EXIT_DONE;
    test.split = MR_SPLIT_TEST;
    const int status = setup_opens(&opens, a->set, &test, NULL);
    if (status == EXIT_DONE && opens) return setup_source(out, a->set, &test);
    if (status == EXIT_DONE)
        say("%s: the test part cannot be opened, and is not compared; --split test says why", info->path);
    return status;
}

static int count(const stats_args *a, const mr_source *src, const mr_source *test, stats_run *r)
{
    mr_error err = MR_ERROR_INIT;
    mr_decode_config decode;
    mr_stats_config cfg;
    mr_stats_defaults(&cfg);
    setup_decode(&decode, &a->data);
    cfg.workers = a->workers;
    cfg.decode_most = a->decode;
    cfg.decode = &decode;
    cfg.on_wrong = on_wrong;
    cfg.on_progress = on_progress;
    cfg.context = r;
    cfg.stop = &interrupt_flag;
    cfg.test = test;
    int status = setup_not_input("html", a->html, src);
    if (status) return status;
    progress_start(&r->bar, "stats", "samples", a->output.quiet);
    const int rc = mr_stats_make(&r->counts, src, &cfg, &err);
    progress_end(&r->bar);
    if (interrupt_flag) return EXIT_SIGNAL + interrupt_flag;
    status = exit_status(rc, &err);
    if (status == EXIT_DONE) status = estimate(a, r->counts, &r->bound);
    if (status == EXIT_DONE && a->html) status = write_page(a, r, &decode);
    return status;
}

static int run(const void *args)
{
    const stats_args *a = args;
    mr_source *src, *test;
    stats_run r = {.counts = NULL};
    int status = check(a);
    if (status == EXIT_DONE) status = setup_source(&src, a->set, &a->data);
    if (status) return status;
    setup_tell_part(src, &a->data);
    status = open_test(a, src, &test);
    if (status == EXIT_DONE) status = count(a, src, test, &r);
    if (status == EXIT_DONE) {
        if (a->output.json) stats_print_json(r.counts, &r.bound);
        else stats_print_text(r.counts, &r.bound);
        if (r.counts->bad || r.counts->shared.bad) status = EXIT_BAD_SAMPLES;
    }
    mr_stats_free(r.counts);
    mr_source_close(test);
    mr_source_close(src);
    return status;
}

static const opt options[] = {
#define MRI_OPTIONS(...) OPT(stats_args, __VA_ARGS__),
#include "settings/commands/stats.rows"
};
static const opt_group groups[] = {
    OPT_OWN_GROUP("Options", options),
    GROUP(DATA, stats_args, data),
    GROUP(OUTPUT, stats_args, output),
};
static const opt_positional positionals[] = {
    {"SET", offsetof(stats_args, set), true, "any data set"},
};

const command command_stats = {
    .name = "stats",
    .summary = "count classes, pictures, channels, duplicates; estimate the limit of a training",
    .text =
        "Reads every sample once and prints how many samples each class has, which kinds and sizes of "
        "pictures there are, how the JPEGs are made (subsampling, progressive), mean and deviation of the "
        "channels as --augment takes them in normalise(), and which samples have the same bytes, also in "
        "the test split. In mean and deviation each picture counts the same, whether large or small. "
        "Samples that cannot be read are reported, and the exit status is then 3.\nThen estimates the limit "
        "of a training on pictures: measures how fast a loader delivers some of them on this machine, and "
        "compares this rate with --step or with a measured step of --model. 'plan' and 'profile' measure a "
        "training itself. --html writes the numbers as a page, with histograms, pictures of each class, and "
        "outliers.",
    .examples = "  millrace stats photos\n  millrace stats train.mrec --decode 0 --json\n"
                "  millrace stats photos --model resnet50 --devices cuda:0 --html photos.html\n",
    .positionals = positionals,
    .positional_count = OPT_COUNT(positionals),
    .groups = groups,
    .group_count = OPT_COUNT(groups),
    .args_bytes = sizeof(stats_args),
    .alone = true,
    .run = run,
};
