/* tools/commands/cmd_export_weights.c: `millrace export-weights CHECKPOINT FILE`: the weights of a checkpoint
 * as a file that other programs read. */
#include <inttypes.h>
#include <stdio.h>
#include <string.h>

#include "millrace/train.h"
#include "tools/cli/exit.h"
#include "tools/cli/json.h"
#include "tools/cli/output.h"
#include "tools/commands/commands.h"
#include "tools/session/groups.h"

typedef struct weights_args {
    const char *checkpoint, *file;
    uint32_t names, weights;
    bool force;
    output_args output;
} weights_args;

enum { WEIGHTS_AUTO, WEIGHTS_AVERAGE, WEIGHTS_TRAINED };
/* names: mr_weight_names; weights: the enumeration. */
static const opt options[] = {
#define MRI_OPTIONS(...) OPT(weights_args, __VA_ARGS__),
#include "settings/commands/export_weights.rows"
};

static void report(const weights_args *a, const char *found, const mr_checkpoint_info *info,
                   const mr_weights_report *done)
{
    char size[32];
    const char *weights = done->average ? "average" : "trained";
    if (!a->output.json) {
        printf("%s: %" PRIu32 " tensors, %" PRIu64 " numbers, %s; %s of %s, %s's names%s\n",
               shown_text(a->file), done->tensors, done->numbers,
               mri_size_text((double)done->bytes, size, sizeof size), shown_text(info->model),
               shown_text(found), a->names == MR_NAMES_OWN ? "millrace" : options[0].choices[a->names],
               done->average
                   ? "; the average of weights, which evaluation uses (--weights trained: the others)"
                   : "");
        return;
    }
    json_line j = json_begin(stdout, "export_weights");
    json_text(&j, "checkpoint", found);
    json_text(&j, "model", info->model);
    json_text(&j, "file", a->file);
    json_text(&j, "names", options[0].choices[a->names]);
    json_text(&j, "weights", weights);
    json_u64(&j, "tensors", done->tensors);
    json_u64(&j, "numbers", done->numbers);
    json_u64(&j, "bytes", done->bytes);
    json_end(&j);
}

static int run(const void *args)
{
    const weights_args *a = args;
    mr_error err = MR_ERROR_INIT;
    mr_checkpoint_info info;
    mr_weights_config cfg;
    mr_weights_report done;
    char found[4096], note[1024] = "";
    int rc = mr_checkpoint_find(a->checkpoint, found, sizeof found, &info, note, sizeof note, &err);
    if (note[0]) say("%s", note);
    if (rc) return exit_status(rc, &err);
    if (a->weights == WEIGHTS_AVERAGE && info.average == 0) {
        say("--weights average: %s has no average of weights: it comes of training with --average", found);
        return EXIT_MISUSED;
    }
    mr_weights_defaults(&cfg);
    cfg.names = a->names;
    cfg.no_average = a->weights == WEIGHTS_TRAINED;
    cfg.force = a->force;
    rc = mr_weights_export(found, a->file, &cfg, &done, &err);
    if (rc == MR_EEXIST) {
        say_error(&err);
        return EXIT_FAILED;
    }
    if (rc) return setting_status(rc, &err);
    report(a, found, &info, &done);
    return EXIT_DONE;
}

static const opt_group groups[] = {
    OPT_OWN_GROUP("Weights", options),
    GROUP(OUTPUT, weights_args, output),
};
static const opt_positional positionals[] = {
    {"CHECKPOINT", offsetof(weights_args, checkpoint), true,
     "a checkpoint, or the folder of a run: its newest"},
    {"FILE", offsetof(weights_args, file), true, "output file: NAME.safetensors or NAME.npz"},
};

const command command_export_weights = {
    .name = "export-weights",
    .summary = "write the weights of a checkpoint as safetensors or NumPy arrays",
    .text = "Writes weights and running statistics of a checkpoint, as float32, to a file that other "
            "programs read: safetensors, or a NumPy archive. With --names torchvision a model of that name "
            "there takes them by load_state_dict(). The same checkpoint gives the same bytes. 'train "
            "--init FILE' is the way back.",
    .examples = "  millrace export-weights run1 resnet18.safetensors --names torchvision\n"
                "  millrace export-weights run1/best.mrck best.npz\n",
    .positionals = positionals,
    .positional_count = OPT_COUNT(positionals),
    .groups = groups,
    .group_count = OPT_COUNT(groups),
    .args_bytes = sizeof(weights_args),
    .alone = true,
    .run = run,
};
