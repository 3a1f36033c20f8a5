/* tools/commands/cmd_synth.c: `millrace synth DIR`: a small labelled data set as folders of JPEG or PNG
 * files, for a first try and for tests: DIR/train/CLASS/00000.jpg and DIR/test/CLASS/00000.jpg. */
#include <inttypes.h>
#include <stdio.h>

#include "millrace/synth.h"
#include "tools/cli/clock.h"
#include "tools/cli/exit.h"
#include "tools/cli/interrupt.h"
#include "tools/cli/json.h"
#include "tools/cli/output.h"
#include "tools/cli/progress.h"
#include "tools/commands/commands.h"
#include "tools/session/groups.h"

typedef struct synth_args {
    const char *folder;
    uint32_t classes, count, test_count, size, max_size, channels, quality, image;
    uint64_t seed;
    bool force;
    output_args output;
} synth_args;

static void on_progress(void *context, uint64_t done, uint64_t count)
{
    progress_show(context, done, count, NULL);
}

static int check(const synth_args *a)
{
    if (a->channels == 2) {
        say("--channels: expected 1 or 3, found 2");
        return EXIT_MISUSED;
    }
    if (a->max_size && a->max_size < a->size) {
        say("--max-size: expected %u or more (--size), found %u", a->size, a->max_size);
        return EXIT_MISUSED;
    }
    return EXIT_DONE;
}

static int run(const void *args)
{
    const synth_args *a = args;
    mr_error err = MR_ERROR_INIT;
    progress_bar bar = {0};
    mr_synth_config cfg;
    mr_synth_result r;
    const int status = check(a);
    if (status) return status;
    mr_synth_defaults(&cfg);
#define MRI_SETTING(member, kind, ...) cfg.member = a->member;
#define MRI_OPTION                     MRI_SETTING
#include "settings/commands/synth.rows"
    cfg.on_progress = on_progress;
    cfg.context = &bar;
    cfg.stop = &interrupt_flag;
    const uint64_t start = clock_ns();
    progress_start(&bar, "synth", "pictures", a->output.quiet);
    const int rc = mr_synth_write(a->folder, &cfg, &r, &err);
    progress_end(&bar);
    if (rc) return exit_status(rc, &err);
    if (a->output.json) {
        json_line j = json_begin(stdout, "synth");
        json_text(&j, "folder", a->folder);
        json_u64(&j, "classes", a->classes);
        json_u64(&j, "train", r.train);
        json_u64(&j, "test", r.test);
        json_u64(&j, "bytes", r.bytes);
        json_u64(&j, "seed", a->seed);
        json_real(&j, "seconds", seconds_since(start));
        json_end(&j);
    } else {
        char text[32];
        printf("%s: %u classes, %" PRIu64 " pictures to train on, %" PRIu64 " to test with, %s\n",
               shown_text(a->folder), a->classes, r.train, r.test,
               mri_size_text((double)r.bytes, text, sizeof text));
    }
    return EXIT_DONE;
}

static const opt options[] = {
#define MRI_OPTIONS(...) OPT(synth_args, __VA_ARGS__),
#include "settings/commands/synth.rows"
};
static const opt_group groups[] = {
    OPT_OWN_GROUP("Options", options),
    GROUP(OUTPUT, synth_args, output),
};
static const opt_positional positionals[] = {
    {"DIR", offsetof(synth_args, folder), true, "folder to make"},
};

const command command_synth = {
    .name = "synth",
    .summary = "make a small labelled data set for first tries and tests",
    .text = "Writes DIR/train/CLASS/NNNNN.jpg and DIR/test/CLASS/NNNNN.jpg: ten shapes in changing places, "
            "sizes and colours, on noise. A small network learns to tell them apart in a few epochs.",
    .examples = "  millrace synth shapes --count 400 --seed 1\n  millrace synth photos --size 200 --max-size "
                "500 --count 50\n",
    .positionals = positionals,
    .positional_count = OPT_COUNT(positionals),
    .groups = groups,
    .group_count = OPT_COUNT(groups),
    .args_bytes = sizeof(synth_args),
    .alone = true,
    .run = run,
};
