/* tools/sets/cmd_manifest.c: `millrace manifest SET FILE`: names, sizes and SHA-256 sums of a set's files. */
#include <inttypes.h>
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>

#include "tools/cli/exit.h"
#include "tools/cli/interrupt.h"
#include "tools/cli/json.h"
#include "tools/cli/output.h"
#include "tools/commands/commands.h"
#include "tools/manifest/manifest.h"
#include "tools/session/setup.h"

typedef struct manifest_args {
    const char *set, *file;
    uint32_t workers;
    bool force;
    data_args data;
    output_args output;
} manifest_args;

static int first_failure(const manifest *m)
{
    int status = EXIT_DONE;
    for (uint64_t k = 0; k < m->count; k++)
        if (m->file[k].rc) status = exit_status(m->file[k].rc, &m->file[k].why);
    return status;
}

static void report(const manifest_args *a, const manifest *m)
{
    uint64_t bytes = 0;
    char text[32];
    for (uint64_t k = 0; k < m->count; k++) bytes += m->file[k].bytes;
    if (!a->output.json) {
        printf("%s: %" PRIu64 " files, %s\n", shown_text(a->file), m->count,
               size_text((double)bytes, text, sizeof text));
        return;
    }
    json_line j = json_begin(stdout, "manifest");
    json_text(&j, "data", a->set);
    json_text(&j, "output", a->file);
    json_u64(&j, "files", m->count);
    json_u64(&j, "bytes", bytes);
    json_end(&j);
}

static int make(const manifest_args *a, const mr_source *src)
{
    manifest m = {0};
    mr_error err = MR_ERROR_INIT;
    mr_output_config cfg;
    mr_output_defaults(&cfg);
    cfg.force = a->force;
    int rc = mr_output_check(a->file, &cfg, &err);
    if (!rc) rc = manifest_find(&m, a->set, src, a->file, &err);
    if (!rc && m.count == 0) rc = mr_error_set(&err, MR_EINVAL, "%s: no files here", a->set);
    if (!rc) rc = manifest_sum(&m, a->workers, a->output.quiet, &interrupt_flag, &err);
    int status = exit_status(rc, &err);
    if (status == EXIT_DONE) status = first_failure(&m);
    if (status == EXIT_DONE) status = exit_status(manifest_write(&m, a->file, a->force, &err), &err);
    if (status == EXIT_DONE) report(a, &m);
    manifest_free(&m);
    return status;
}

static int run(const void *args)
{
    const manifest_args *a = args;
    struct stat st;
    mr_source *src = NULL;
    const bool folder = stat(a->set, &st) == 0 && S_ISDIR(st.st_mode);
    int status = folder ? EXIT_DONE : setup_source(&src, a->set, &a->data);
    if (status == EXIT_DONE) status = make(a, src);
    mr_source_close(src);
    return status;
}

static const opt options[] = {
    OPT(manifest_args, workers, U32, .option = "workers", .most = 64, .standard = "0",
        .help = "threads; 0: one per core"),
    OPT(manifest_args, force, FLAG, .option = "force", .help = "replace FILE"),
};
static const opt_group groups[] = {
    OPT_OWN_GROUP("Options", options),
    DATA_GROUP(manifest_args, data),
    OUTPUT_GROUP(manifest_args, output),
};
static const opt_positional positionals[] = {
    {"SET", offsetof(manifest_args, set), true, "any data set, or a folder with all files below it"},
    {"FILE", offsetof(manifest_args, file), true, "the manifest to write"},
};

const command command_manifest = {
    .name = "manifest",
    .summary = "write names, sizes and SHA-256 sums of a set's files",
    .text =
        "Writes a text with the size and the SHA-256 sum of every file of the set, which 'sha256sum -c "
        "FILE' and 'millrace verify SET --manifest FILE' compare. Names are relative to the folder of FILE "
        "where they lie below it. Of a folder all files below it are named but hidden ones (names that "
        "begin with a point) and part files.",
    .examples = "  millrace manifest photos photos.sha256\n",
    .positionals = positionals,
    .positional_count = OPT_COUNT(positionals),
    .groups = groups,
    .group_count = OPT_COUNT(groups),
    .args_bytes = sizeof(manifest_args),
    .alone = true,
    .run = run,
};
