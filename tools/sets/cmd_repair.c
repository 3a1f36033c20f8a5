/* tools/sets/cmd_repair.c: `millrace repair SET [DST]`: the intact and the lost samples of a damaged set. The
 * work is mr_repair(); this file has its options, the lines of its findings, and the closing line. */
#include <inttypes.h>
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "tools/cli/exit.h"
#include "tools/cli/interrupt.h"
#include "tools/cli/json.h"
#include "tools/cli/output.h"
#include "tools/commands/commands.h"
#include "tools/session/setup.h"

typedef struct repair_args {
    const char *set, *dst, *from;
    bool in_place, force, no_space_check;
    data_args data;
    output_args output;
} repair_args;

static const char *const whats[] = {[MR_REPAIR_DAMAGE] = "damage",
                                    [MR_REPAIR_LOST] = "lost",
                                    [MR_REPAIR_PUT_BACK] = "put_back",
                                    [MR_REPAIR_MISSING] = "missing",
                                    [MR_REPAIR_FILE] = "file"};

static void json_finding(const mr_repair_finding *f)
{
    json_line j = json_begin(stdout, whats[f->what]);
    json_text(&j, "file", f->file);
    if (f->to) json_text(&j, "to", f->to);
    if (f->offset != MR_NOWHERE) json_u64(&j, "offset", f->offset);
    if (f->count) json_u64(&j, "samples", f->count);
    if (f->position != MR_NOWHERE && f->what == MR_REPAIR_LOST) json_u64(&j, "sample", f->position);
    if (f->number != MR_NOWHERE) json_u64(&j, "source_number", f->number);
    if (f->name[0]) json_text(&j, "name", f->name);
    json_text(&j, "reason", f->text);
    json_end(&j);
}

/* "sample 17 (cat/3.jpg)", "samples 17 to 20", "samples, how many is not known". */
static void put_which(const mr_repair_finding *f)
{
    if (f->count == 0) printf("one or more samples");
    else if (f->position == MR_NOWHERE) printf("%" PRIu64 " sample%s", f->count, f->count == 1 ? "" : "s");
    else if (f->count == 1) printf("sample %" PRIu64, f->position);
    else printf("samples %" PRIu64 " to %" PRIu64, f->position, f->position + f->count - 1);
    if (f->number != MR_NOWHERE) printf(", number %" PRIu64 " of the source", f->number);
    if (f->name[0]) printf(" (%s)", shown_text(f->name));
}

static void on_finding(void *context, const mr_repair_finding *f)
{
    const repair_args *a = context;
    if (a->output.json) {
        json_finding(f);
        return;
    }
    if (f->what == MR_REPAIR_FILE) {
        if (!a->output.quiet)
            printf("%s: written, %" PRIu64 " samples (%s)\n", shown_text(f->to), f->count, f->text);
        return;
    }
    printf("%s", shown_text(f->file));
    if (f->offset != MR_NOWHERE) printf(", offset %" PRIu64, f->offset);
    printf(": ");
    if (f->what == MR_REPAIR_LOST) {
        printf("lost: ");
        put_which(f);
        printf(": %s\n", f->text);
    } else if (f->what == MR_REPAIR_PUT_BACK) {
        printf("%s: ", a->dst || a->in_place ? "put back" : "can be put back");
        put_which(f);
        printf(": %s\n", f->text);
    } else if (f->what == MR_REPAIR_MISSING && f->count)
        printf("%s, with %" PRIu64 " samples\n", f->text, f->count);
    else printf("%s\n", f->text);
}

static void json_result(const repair_args *a, const mr_repair_result *r)
{
    json_line j = json_begin(stdout, "repair");
    json_text(&j, "data", a->set);
    json_text(&j, "output", a->in_place ? a->set : a->dst);
    json_text(&j, "format", r->format);
    json_u64(&j, "files", r->files);
    json_u64(&j, "damaged", r->damaged);
    json_u64(&j, "missing", r->missing);
    json_u64(&j, "written", r->written);
    json_bool(&j, "list_damaged", r->list_damaged);
    json_bool(&j, "list_written", r->list_written);
    json_u64(&j, "samples", r->samples);
    json_u64(&j, "put_back", r->put_back);
    json_u64(&j, "lost", r->lost);
    json_bool(&j, "more_lost", r->lost_unknown);
    json_bool(&j, "renumbered", r->renumbered);
    json_bool(&j, "checksums", !r->unprotected);
    json_end(&j);
}

static void on_space(void *context, uint64_t bytes, uint64_t free_bytes)
{
    const repair_args *a = context;
    space_say(bytes, free_bytes, a->output.quiet);
}

static bool is_wrong(const mr_repair_result *r) { return r->damaged || r->missing || r->list_damaged; }

/* Of withdrawn samples, which is not repaired. */
static bool has_list(const char *set)
{
    char path[4096];
    struct stat st;
    const bool folder = stat(set, &st) == 0 && S_ISDIR(st.st_mode);
    const char *slash = strrchr(set, '/');
    const int n = folder ? (int)strlen(set) : slash ? (int)(slash + 1 - set) : 0;
    snprintf(path, sizeof path, "%.*s%s.millrace.withdrawn", n, set, folder ? "/" : "");
    return access(path, F_OK) == 0;
}

static void text_result(const repair_args *a, const mr_repair_result *r)
{
    printf("%s: %" PRIu32 " %s file%s", shown_text(a->set), r->files, r->format, r->files == 1 ? "" : "s");
    if (r->damaged) printf(", %" PRIu32 " damaged", r->damaged);
    if (r->missing) printf(", %" PRIu32 " missing", r->missing);
    printf("; %" PRIu64 " samples whole", r->samples - r->put_back);
    if (r->put_back)
        printf(", %" PRIu64 " %s", r->put_back, a->dst || a->in_place ? "put back" : "can be put back");
    if (r->lost || r->lost_unknown)
        printf(", %s%" PRIu64 " lost", r->lost_unknown ? "more than " : "", r->lost);
    else printf(", nothing lost");
    putchar('\n');
    if (r->renumbered)
        printf("The files have new numbers, without gaps, as there are fewer than the %" PRIu32
               " of the set.\n",
               r->files);
    if (r->unprotected)
        printf("Archives without checksums of their members are among them: a changed byte in a picture is "
               "not found here. 'millrace verify' decodes them all.\n");
    if (a->dst && has_list(a->set))
        printf("Samples of SET are withdrawn: copy .millrace.withdrawn next to the new files, where they are "
               "found by their bytes.\n");
    if (!a->dst && !a->in_place && is_wrong(r))
        printf("Nothing was changed. Give DST to write the intact samples there, or --in-place to "
               "replace the damaged files.\n");
}

/* A second copy is of the format of the set; everything else is a source to convert from. */
static int open_from(const repair_args *a, mr_repair_config *cfg, mr_source **src)
{
    bool copy;
    mr_error err = MR_ERROR_INIT;
    *src = NULL;
    if (!a->from) return EXIT_DONE;
    const int rc = mr_repair_is_copy(a->set, a->from, &copy, &err);
    if (rc) return exit_status(rc, &err);
    if (copy) {
        cfg->copy = a->from;
        return EXIT_DONE;
    }
    const int status = setup_source(src, a->from, &a->data);
    cfg->source = *src;
    return status;
}

static int run(const void *args)
{
    const repair_args *a = args;
    mr_error err = MR_ERROR_INIT;
    mr_repair_config cfg;
    mr_repair_result r = {0};
    mr_source *src;
    if (a->dst && a->in_place) {
        say("DST and --in-place do not go together: choose where the repaired files go");
        return EXIT_MISUSED;
    }
    mr_repair_defaults(&cfg);
    cfg.dst = a->dst;
    cfg.in_place = a->in_place;
    cfg.force = a->force;
    cfg.no_space_check = a->no_space_check;
    cfg.report = on_finding;
    cfg.space = on_space;
    cfg.context = (void *)(uintptr_t)a;
    cfg.stop = &interrupt_flag;
    int status = open_from(a, &cfg, &src);
    if (status == EXIT_DONE) {
        const int rc = mr_repair(a->set, &cfg, &r, &err);
        status = exit_status(rc, &err);
    }
    mr_source_close(src);
    if (status) return status;
    if (a->output.json) json_result(a, &r);
    else text_result(a, &r);
    if (!a->dst && !a->in_place && is_wrong(&r)) {
        exit_told = true;
        return EXIT_FAILED;
    }
    return r.lost || r.lost_unknown ? EXIT_BAD_SAMPLES : EXIT_DONE;
}

static const opt options[] = {
#define MRI_OPTIONS(...) OPT(repair_args, __VA_ARGS__),
#include "settings/commands/repair.rows"
};
static const opt_group groups[] = {
    OPT_OWN_GROUP("Options", options),
    GROUP(DATA, repair_args, data),
    GROUP(OUTPUT, repair_args, output),
};
static const opt_positional positionals[] = {
    {"SET", offsetof(repair_args, set), true,
     "a shard list, a file, a folder, a pattern in quotes, or the common beginning of the files' names"},
    {"DST", offsetof(repair_args, dst), false,
     "write the whole samples to this new folder, or to a file if SET is one file"},
};

const command command_repair = {
    .name = "repair",
    .summary = "save the whole samples of a damaged set and report the lost ones",
    .text = "Reads record files, tar archives or TFRecord files that are cut, changed or missing, and "
            "reports the number and name of each lost sample. Without DST and --in-place it writes "
            "nothing, and the exit status is 1 if something is wrong. The output has every whole sample "
            "once, in the old order, with its old bytes; the list of record files is made again. A file "
            "without losses keeps its bytes. The exit status is 3 if samples are lost for good. Records "
            "made again from their source are converted with the settings stored in the set; a changed "
            "source is refused.",
    .examples = "  millrace repair train.mrec\n  millrace repair train.mrec whole.mrec\n"
                "  millrace repair train.mrec --in-place\n",
    .positionals = positionals,
    .positional_count = OPT_COUNT(positionals),
    .groups = groups,
    .group_count = OPT_COUNT(groups),
    .args_bytes = sizeof(repair_args),
    .alone = true,
    .run = run,
};
