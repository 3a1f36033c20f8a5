/* tools/sets/cmd_manifest.c: `millrace manifest SET FILE`: names, sizes and SHA-256 sums of a set's files. */
#include <inttypes.h>
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>

#include "tools/cli/exit.h"
#include "tools/cli/interrupt.h"
#include "tools/cli/json.h"
#include "tools/cli/output.h"
#include "tools/cli/progress.h"
#include "tools/commands/commands.h"
#include "tools/facts/card.h"
#include "tools/session/setup.h"

typedef struct manifest_args {
    const char *set, *file, *card;
    uint32_t workers;
    bool force;
    data_args data;
    output_args output;
} manifest_args;

typedef struct making {
    progress_bar bar;
    int status; /* of the last file that could not be read */
} making;

static bool on_wrong(void *context, const mr_error *what)
{
    making *m = context;
    m->status = exit_status(what->code, what);
    return true;
}

static void on_progress(void *context, uint64_t done, uint64_t count)
{
    making *m = context;
    progress_show(&m->bar, done, count, NULL);
    if (done == count) progress_end(&m->bar);
}

static void report(const manifest_args *a, const mr_manifest_result *made)
{
    char text[32];
    if (!a->output.json) {
        if (!a->file) return;
        printf("%s: %" PRIu64 " files, %s\n", shown_text(a->file), made->files,
               mri_size_text((double)made->bytes, text, sizeof text));
        return;
    }
    json_line j = json_begin(stdout, "manifest");
    json_text(&j, "data", a->set);
    json_text(&j, "output", a->file);
    if (a->file) {
        json_u64(&j, "files", made->files);
        json_u64(&j, "bytes", made->bytes);
    }
    if (a->card) json_text(&j, "card", a->card);
    json_end(&j);
}

static int make(const manifest_args *a, const mr_source *src, mr_manifest_result *made)
{
    making m = {.status = EXIT_DONE};
    mr_error err = MR_ERROR_INIT;
    mr_manifest_config cfg;
    mr_manifest_defaults(&cfg);
    cfg.threads = a->workers;
    cfg.force = a->force;
    cfg.on_wrong = on_wrong;
    cfg.on_progress = on_progress;
    cfg.context = &m;
    cfg.stop = &interrupt_flag;
    progress_start(&m.bar, "manifest", "files", a->output.quiet);
    const int rc = mr_manifest_make(a->file, a->set, src, &cfg, made, &err);
    progress_end(&m.bar);
    if (m.status != EXIT_DONE) return m.status; /* every such file was reported */
    return exit_status(rc, &err);
}

static int describe(const manifest_args *a)
{
    mr_source_config cfg;
    int status = setup_config(&cfg, &a->data);
    const card_args about = {.path = a->card,
                             .set = a->set,
                             .opened = &cfg,
                             .workers = a->workers,
                             .force = a->force,
                             .quiet = a->output.quiet};
    if (status == EXIT_DONE) status = card_write(&about);
    return status;
}

static int run(const void *args)
{
    const manifest_args *a = args;
    struct stat st;
    mr_source *src = NULL;
    mr_manifest_result made = {0};
    const bool folder = stat(a->set, &st) == 0 && S_ISDIR(st.st_mode);
    if (!a->file && !a->card) {
        say("manifest needs FILE, the manifest to write, or --card FILE");
        return EXIT_MISUSED;
    }
    int status = card_check(a->card, a->set, a->force);
    if (status == EXIT_DONE && a->file && !folder) status = setup_source(&src, a->set, &a->data);
    if (status == EXIT_DONE && a->file) status = make(a, src, &made);
    if (status == EXIT_DONE && a->card) status = describe(a);
    if (status == EXIT_DONE) report(a, &made);
    mr_source_close(src);
    return status;
}

static const opt options[] = {
#define MRI_OPTIONS(...) OPT(manifest_args, __VA_ARGS__),
#include "settings/commands/manifest.rows"
};
static const opt_group groups[] = {
    OPT_OWN_GROUP("Options", options),
    GROUP(DATA, manifest_args, data),
    GROUP(OUTPUT, manifest_args, output),
};
static const opt_positional positionals[] = {
    {"SET", offsetof(manifest_args, set), true, "any data set, or a folder with all files below it"},
    {"FILE", offsetof(manifest_args, file), false, "the manifest to write"},
};

const command command_manifest = {
    .name = "manifest",
    .summary = "write names, sizes and SHA-256 sums of a set's files, or a card that describes it",
    .text =
        "Writes a text with the size and the SHA-256 sum of every file of the set, which 'sha256sum -c "
        "FILE' and 'millrace verify SET --manifest FILE' compare. Names are relative to the folder of FILE "
        "where they lie below it. Of a folder all files below it are named but hidden ones (names that "
        "begin with a point) and part files.\n--card describes the set: its files, fields, splits and "
        "classes. The card lies in the folder of the set, or above it. Licence, source and author are yours "
        "to add.",
    .examples =
        "  millrace manifest photos photos.sha256\n  millrace manifest photos --card photos/README.md\n",
    .positionals = positionals,
    .positional_count = OPT_COUNT(positionals),
    .groups = groups,
    .group_count = OPT_COUNT(groups),
    .args_bytes = sizeof(manifest_args),
    .alone = true,
    .run = run,
};
