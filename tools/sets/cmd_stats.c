/* tools/sets/cmd_stats.c: `millrace stats SET`: the contents of a data set, as numbers. */
#include <stdio.h>

#include "tools/cli/exit.h"
#include "tools/cli/output.h"
#include "tools/commands/commands.h"
#include "tools/facts/stats.h"
#include "tools/session/setup.h"

typedef struct stats_args {
    const char *set;
    uint64_t decode;
    uint32_t workers;
    data_args data;
    output_args output;
} stats_args;

static bool on_wrong(void *context, const mr_error *what)
{
    (void)context;
    say_error(what);
    return true;
}

static int run(const void *args)
{
    const stats_args *a = args;
    mr_source *src;
    stats s = {0};
    int status = setup_source(&src, a->set, &a->data);
    if (status) return status;
    setup_tell_part(src, &a->data);
    stats_config cfg = {
        .workers = a->workers, .decode_most = a->decode, .quiet = a->output.quiet, .wrong = on_wrong};
    setup_decode(&cfg.decode, &a->data);
    status = stats_collect(&s, src, &cfg);
    if (status == EXIT_DONE) status = stats_sum_up(&s);
    if (status == EXIT_DONE) {
        if (a->output.json) stats_print_json(&s);
        else stats_print_text(&s);
        if (s.bad) status = EXIT_BAD_SAMPLES;
    }
    stats_free(&s);
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
    .summary = "count a data set: classes, kinds and sizes of pictures, channels, duplicates",
    .text =
        "Reads every sample once and prints how many samples each class has, which kinds and sizes of "
        "pictures there are, how the JPEGs are made (subsampling, progressive), mean and deviation of the "
        "channels as --augment takes them in normalise(), and which samples have the same bytes. In mean "
        "and deviation each picture counts the same, whatever its size. Samples that cannot be read are "
        "reported, and the exit status is then 3.",
    .examples = "  millrace stats photos\n  millrace stats train.mrec --decode 0 --json\n",
    .positionals = positionals,
    .positional_count = OPT_COUNT(positionals),
    .groups = groups,
    .group_count = OPT_COUNT(groups),
    .args_bytes = sizeof(stats_args),
    .alone = true,
    .run = run,
};
