/* tools/commands/cmd_export.c: `millrace export FILE DIR`: the way back: a data set's pictures as files,
 * called as they were, or numbered in a folder per class. Picture files come out byte for byte; coefficients
 * become baseline JPEG, pixels PNG. */
#include <inttypes.h>
#include <stdio.h>
#include <string.h>

#include "tools/cli/exit.h"
#include "tools/cli/interrupt.h"
#include "tools/cli/json.h"
#include "tools/cli/output.h"
#include "tools/cli/progress.h"
#include "tools/commands/commands.h"
#include "tools/facts/card.h"
#include "tools/session/setup.h"

typedef struct export_args {
    const char *data, *folder, *card;
    bool force, numbered, resume, no_space_check;
    data_args data_opts;
    output_args output;
} export_args;

typedef struct export_run {
    const export_args *args;
    const mr_source *src;
    progress_bar bar;
} export_run;

static void on_bad(void *context, const mr_error *what)
{
    (void)context;
    say_error(what);
}

static void on_progress(void *context, uint64_t done, uint64_t count)
{
    export_run *r = context;
    progress_show(&r->bar, done, count, NULL);
}

static void on_space(void *context, uint64_t bytes, uint64_t free_bytes)
{
    const export_run *r = context;
    space_say(bytes, free_bytes, r->args->output.quiet);
}

static int export_all(export_run *r, mr_export_result *made)
{
    const export_args *a = r->args;
    mr_error err = MR_ERROR_INIT;
    mr_decode_config decode;
    mr_export_config cfg;
    setup_decode(&decode, &a->data_opts);
    mr_export_defaults(&cfg);
    cfg.decode = &decode;
    cfg.force = a->force;
    cfg.resume = a->resume;
    cfg.numbered = a->numbered;
    cfg.no_space_check = a->no_space_check;
    cfg.on_bad = on_bad;
    cfg.on_progress = on_progress;
    cfg.space = on_space;
    cfg.context = r;
    cfg.stop = &interrupt_flag;
    progress_start(&r->bar, "export", "samples", a->output.quiet);
    const int rc = mr_export(r->src, a->folder, &cfg, made, &err);
    progress_end(&r->bar);
    return exit_status(rc, &err);
}

/* A field that no file holds: boxes, masks, targets, captions. */
static bool is_left_out(const mr_source_info *info, uint32_t field)
{
    const char *name = info->fields[field].name;
    return (int)field != info->image_field && (int)field != info->label_field &&
           strcmp(name, "sample.name") != 0 && strcmp(name, "image.entries") != 0;
}

static void report_left_out(const mr_source_info *info)
{
    uint32_t count = 0;
    for (uint32_t k = 0; k < info->field_count; k++)
        if (is_left_out(info, k)) printf("%s%s", count++ ? ", " : "left out: ", info->fields[k].name);
    if (count) printf(" of each sample, as only pictures become files; convert --to tar keeps all\n");
}

/* Classes of --classes depth. */
static void report_depth(const mr_source_info *info, const mr_export_result *made)
{
    bool deep = false;
    for (uint32_t k = 0; info->class_names && k < info->class_count; k++)
        deep = deep || strchr(info->class_names[k], '/');
    if (deep && made->renamed_classes == 0)
        printf("some folders of classes lie in folders: --classes depth opens them as the same classes\n");
}

static void report(const export_run *r, const mr_export_result *made)
{
    char text[32];
    const mr_source_info *info = mr_source_info_of(r->src);
    if (!r->args->output.json) {
        printf("%s: %" PRIu64 " files, %s", shown_text(r->args->folder), made->files,
               mri_size_text((double)made->bytes, text, sizeof text));
        if (made->resumed) printf(", %" PRIu64 " of them from an earlier run", made->resumed);
        if (made->bad) printf("; %" PRIu64 " bad sample%s left out", made->bad, made->bad == 1 ? "" : "s");
        putchar('\n');
        report_left_out(info);
        report_depth(info, made);
        if (made->renamed)
            printf("%" PRIu64 " file%s another name than the sample; listed in %s\n", made->renamed,
                   made->renamed == 1 ? " has" : "s have", shown_text(made->names_path));
        if (made->renamed_classes)
            printf("%" PRIu32 " class%s a folder of another name; listed in %s\n", made->renamed_classes,
                   made->renamed_classes == 1 ? " has" : "es have", shown_text(made->names_path));
        return;
    }
    json_line j = json_begin(stdout, "export");
    json_text(&j, "data", info->path);
    json_text(&j, "folder", r->args->folder);
    json_u64(&j, "files", made->files);
    json_u64(&j, "bytes", made->bytes);
    json_u64(&j, "bad", made->bad);
    json_u64(&j, "resumed", made->resumed);
    json_u64(&j, "renamed", made->renamed);
    json_u64(&j, "renamed_classes", made->renamed_classes);
    json_array(&j, "left_out");
    for (uint32_t k = 0; k < info->field_count; k++)
        if (is_left_out(info, k)) json_text(&j, NULL, info->fields[k].name);
    json_close_array(&j);
    json_end(&j);
}

static int describe(const export_run *r)
{
    const export_args *a = r->args;
    const card_args about = {.path = a->card,
                             .set = a->folder,
                             .part = mr_source_info_of(r->src)->parts.taken,
                             .force = a->force || a->resume,
                             .quiet = a->output.quiet};
    return card_write(&about);
}

static int run(const void *args)
{
    export_run r = {.args = args};
    const export_args *a = args;
    mr_export_result made = {0};
    mr_source *src;
    int status = card_check(a->card, a->folder, a->force || a->resume);
    if (status == EXIT_DONE) status = setup_source(&src, a->data, &a->data_opts);
    if (status) return status;
    setup_tell_part(src, &a->data_opts);
    r.src = src;
    status = setup_not_input("card", a->card, src);
    if (status == EXIT_DONE) status = export_all(&r, &made);
    if (status == EXIT_DONE) report(&r, &made);
    if (status == EXIT_DONE && a->card) status = describe(&r);
    if (status == EXIT_DONE && made.bad) status = EXIT_BAD_SAMPLES;
    mr_source_close(src);
    return status;
}

static const opt options[] = {
#define MRI_OPTIONS(...) OPT(export_args, __VA_ARGS__),
#include "settings/commands/export.rows"
};
static const opt_group groups[] = {
    OPT_OWN_GROUP("Options", options),
    GROUP(DATA, export_args, data_opts),
    GROUP(OUTPUT, export_args, output),
};
static const opt_positional positionals[] = {
    {"DATA", offsetof(export_args, data), true, "a record file, a shard list, or any data set"},
    {"DIR", offsetof(export_args, folder), true, "folder to make"},
};

const command command_export = {
    .name = "export",
    .summary = "write the pictures of a data set as files",
    .text = "Writes the files under the names that they had below the folder they were converted from, "
            "DIR/cat/1.jpg; if these names are unknown, under DIR/CLASS/NNNNNNNN.jpg with the sample's "
            "number. Names never lead out of DIR. Picture files come out byte for byte; coefficients "
            "become baseline JPEGs with the same coefficients and orientation, decoded pixels PNG. Data "
            "without labels go to DIR itself.",
    .examples = "  millrace export train.mrec pictures\n",
    .positionals = positionals,
    .positional_count = OPT_COUNT(positionals),
    .groups = groups,
    .group_count = OPT_COUNT(groups),
    .args_bytes = sizeof(export_args),
    .alone = true,
    .run = run,
};
