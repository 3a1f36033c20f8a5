/* tools/commands/cmd_verify.c: `millrace verify DATA`: reads everything and reports defects. Record files
 * are checked byte by byte (mr_source_verify_files), then every sample of any data set is read, parsed, and
 * its picture decoded, on several threads. */
#include <errno.h>
#include <inttypes.h>
#include <stdlib.h>
#include <string.h>

#include "tools/cli/clock.h"
#include "tools/cli/exit.h"
#include "tools/cli/interrupt.h"
#include "tools/cli/json.h"
#include "tools/cli/output.h"
#include "tools/cli/progress.h"
#include "tools/commands/commands.h"
#include "tools/session/setup.h"

typedef struct verify_args {
    const char *path, *other, *manifest;
    bool no_decode;
    uint32_t workers;
    uint64_t max_wrong, memory;
    data_args data;
    output_args output;
} verify_args;

typedef struct verify_run {
    const verify_args *args;
    const mr_source *src;
    bool files_wrong; /* defects of a record file are reported already */
    bool set_wrong;   /* a file is not the one that the list names: its samples cannot be read */
    uint64_t done, bytes, wrong;
    bool summed;             /* checksums of the whole set were compared, and differ */
    uint64_t manifest_files; /* compared with --manifest */
    progress_bar bar;        /* of these, then of the samples */
} verify_run;

static bool reported_enough(const verify_run *r)
{
    return r->args->max_wrong && r->wrong >= r->args->max_wrong;
}

static void tell(verify_run *r, const mr_error *what)
{
    char text[2048];
    r->wrong++;
    if (!r->args->output.json) {
        printf("%s\n", mr_error_format(what, text, sizeof text));
        return;
    }
    json_line j = json_begin(stdout, "wrong");
    json_text(&j, "file", what->file);
    if (what->sample != MR_NOWHERE) json_u64(&j, "sample", what->sample);
    if (what->offset != MR_NOWHERE) json_u64(&j, "offset", what->offset);
    json_text(&j, "code", mr_status_text(what->code));
    json_text(&j, "reason", what->text);
    json_end(&j);
}

/* ---- record files, every byte ---- */

static bool on_wrong(void *context, const mr_error *what)
{
    verify_run *r = context;
    tell(r, what);
    r->set_wrong = r->set_wrong || what->sys_errno == ESTALE;
    return !reported_enough(r) && !interrupt_flag;
}

static bool is_record_file(const verify_run *r)
{
    const char *format = mr_source_info_of(r->src)->format;
    return strcmp(format, "mrec") == 0 || strcmp(format, "shards") == 0;
}

/* 0, or an exit status when the check itself failed. */
static int verify_files(verify_run *r)
{
    mr_error err = MR_ERROR_INIT;
    mr_verify_result result = {0};
    const int rc = mr_source_verify_files(r->src, &interrupt_flag, on_wrong, r, &result, &err);
    r->bytes += result.bytes;
    r->files_wrong = result.wrong > 0;
    if (interrupt_flag || (rc != MR_OK && result.wrong && (rc == MR_EFORMAT || rc == MR_ECHECKSUM)))
        return EXIT_DONE;
    return exit_status(rc, &err);
}

/* ---- a manifest ---- */

static void on_progress(void *context, uint64_t done, uint64_t count)
{
    verify_run *r = context;
    progress_show(&r->bar, done, count, NULL);
    if (done == count) progress_end(&r->bar);
}

static int verify_manifest(verify_run *r)
{
    const verify_args *a = r->args;
    mr_error err = MR_ERROR_INIT;
    mr_manifest_config cfg;
    mr_manifest_result result;
    char text[32];
    if (!a->manifest) return EXIT_DONE;
    mr_manifest_defaults(&cfg);
    cfg.threads = a->workers;
    cfg.on_wrong = on_wrong;
    cfg.on_progress = on_progress;
    cfg.context = r;
    cfg.stop = &interrupt_flag;
    progress_start(&r->bar, "manifest", "files", a->output.quiet);
    const int rc = mr_manifest_compare(a->manifest, a->path, r->src, &cfg, &result, &err);
    progress_end(&r->bar);
    if (rc) return exit_status(rc, &err);
    if (!a->output.json)
        printf("%s: %" PRIu64 " files, %s compared, %" PRIu64 " wrong\n", shown_text(a->manifest),
               result.files, mri_size_text((double)result.bytes, text, sizeof text), r->wrong);
    r->manifest_files = result.files;
    return EXIT_DONE;
}

/* ---- every sample ---- */

static void on_samples(void *context, uint64_t done, uint64_t count, uint64_t bytes)
{
    verify_run *r = context;
    (void)bytes;
    progress_show(&r->bar, done, count, NULL);
}

static int verify_samples(verify_run *r)
{
    const verify_args *a = r->args;
    mr_error err = MR_ERROR_INIT;
    mr_decode_config decode;
    mr_verify_config cfg;
    mr_verify_result result = {0};
    setup_decode(&decode, &a->data);
    mr_verify_defaults(&cfg);
    cfg.workers = a->workers;
    cfg.memory_bytes = a->memory;
    cfg.decode = &decode;
    cfg.no_decode = a->no_decode;
    cfg.decode_only = r->files_wrong;
    cfg.on_wrong = on_wrong;
    cfg.on_progress = on_samples;
    cfg.context = r;
    cfg.stop = &interrupt_flag;
    progress_start(&r->bar, "verify", "samples", a->output.quiet);
    int rc = mr_verify_samples(r->src, &cfg, &result, &err);
    progress_end(&r->bar);
    r->done = result.records;
    r->bytes += result.bytes;
    if (interrupt_flag || (rc == MR_OK && reported_enough(r))) return EXIT_DONE;
    if (rc == MR_OK) rc = mr_source_check(r->src, &err);
    else return exit_status(rc, &err);
    if (rc != MR_ECHECKSUM && rc != MR_EFORMAT) return exit_status(rc, &err);
    r->summed = rc == MR_ECHECKSUM;
    tell(r, &err);
    return EXIT_DONE;
}

static void report(const verify_run *r, double seconds)
{
    char text[32];
    const mr_source_info *info = mr_source_info_of(r->src);
    if (!r->args->output.json) {
        printf("%s: %" PRIu64 " of %" PRIu64 " samples checked%s, %s read in %.2f s, %" PRIu64 " wrong\n",
               shown_text(info->path), r->done, info->count, r->args->no_decode ? " (not decoded)" : "",
               mri_size_text((double)r->bytes, text, sizeof text), seconds, r->wrong);
        if (mr_source_withdrawn_count(r->src))
            printf("%" PRIu64 " sample%s withdrawn, and not decoded\n", mr_source_withdrawn_count(r->src),
                   mr_source_withdrawn_count(r->src) == 1 ? " is" : "s are");
        if (!mr_source_has_checksums(r->src) && !r->summed && !r->args->manifest)
            printf("The format %s has no checksums of its contents: a changed byte that still decodes is not "
                   "found. Record files have them (millrace convert).\n",
                   info->format);
        return;
    }
    json_line j = json_begin(stdout, "verify");
    json_text(&j, "data", mr_source_info_of(r->src)->path);
    json_u64(&j, "samples", mr_source_info_of(r->src)->count);
    json_u64(&j, "checked", r->done);
    json_u64(&j, "withdrawn", mr_source_withdrawn_count(r->src));
    json_bool(&j, "decoded", !r->args->no_decode);
    json_bool(&j, "checksums", mr_source_has_checksums(r->src));
    json_u64(&j, "bytes", r->bytes);
    json_u64(&j, "wrong", r->wrong);
    if (r->args->manifest) json_u64(&j, "manifest_files", r->manifest_files);
    json_real(&j, "seconds", seconds);
    json_end(&j);
}

/* ---- two sets ---- */

static void report_same(const verify_args *a, const mr_source *src, const mr_source *other,
                        const mr_same_pictures *same)
{
    char one[256], two[256];
    mr_source_sample_name(src, same->first, NULL, 0, one, sizeof one);
    mr_source_sample_name(other, same->second, NULL, 0, two, sizeof two);
    if (a->output.json) {
        json_line j = json_begin(stdout, "same_pictures");
        json_text(&j, "data", mr_source_info_of(src)->path);
        json_text(&j, "other", mr_source_info_of(other)->path);
        json_u64(&j, "pictures", mr_source_info_of(other)->count);
        json_u64(&j, "same", same->count);
        json_end(&j);
    } else {
        printf("%s: %" PRIu64 " of %" PRIu64 " pictures are in %s, too",
               shown_text(mr_source_info_of(other)->path), same->count, mr_source_info_of(other)->count,
               mr_source_info_of(src)->path);
        if (same->count)
            printf("; the first is sample %" PRIu64 "%s%s, there sample %" PRIu64 "%s%s", same->second,
                   two[0] ? " " : "", shown_text(two), same->first, one[0] ? " " : "", one);
        printf("\n");
    }
}

static int compare_with_other(const verify_args *a, const mr_source *src)
{
    mr_error err = MR_ERROR_INIT;
    mr_source *other;
    mr_same_pictures same = {0};
    int status = setup_source(&other, a->other, &a->data);
    if (status) return status;
    status = exit_status(mr_verify_same(src, other, &interrupt_flag, &same, &err), &err);
    if (status == EXIT_DONE) report_same(a, src, other, &same);
    mr_source_close(other);
    if (status || same.count == 0) return status;
    say("%" PRIu64 " pictures are in both sets: a network trained on one is not validated by the other",
        same.count);
    exit_told = true;
    return EXIT_FAILED;
}

static int run(const void *args)
{
    verify_run r = {.args = args};
    mr_source *src;
    int status = setup_source(&src, r.args->path, &r.args->data);
    if (status) return status;
    setup_tell_part(src, &r.args->data);
    const uint64_t start = clock_ns();
    r.src = src;
    status = verify_manifest(&r);
    if (status == EXIT_DONE && !reported_enough(&r) && !interrupt_flag) status = verify_files(&r);
    if (status == EXIT_DONE && !reported_enough(&r) && !interrupt_flag && !r.set_wrong)
        status = verify_samples(&r);
    if (interrupt_flag) status = EXIT_SIGNAL + interrupt_flag;
    if (status == EXIT_DONE) {
        report(&r, seconds_since(start));
        if (r.wrong) {
            say("%s: %" PRIu64 " %s wrong; %s", mr_source_info_of(src)->path, r.wrong,
                r.wrong == 1 ? "thing is" : "things are",
                r.set_wrong          ? "no sample was read: the set is not what its list says"
                : is_record_file(&r) ? "make the file again from its source"
                                     : "replace the files listed, or remove them");
            status = EXIT_FAILED;
            exit_told = true;
        }
    }
    if (status == EXIT_DONE && r.args->other) status = compare_with_other(r.args, src);
    mr_source_close(src);
    return status;
}

static const opt options[] = {
#define MRI_OPTIONS(...) OPT(verify_args, __VA_ARGS__),
#include "settings/commands/verify.rows"
};
static const opt_group groups[] = {
    OPT_OWN_GROUP("Options", options),
    GROUP(DATA, verify_args, data),
    GROUP(OUTPUT, verify_args, output),
};
static const opt_positional positionals[] = {
    {"DATA", offsetof(verify_args, path), true, "a record file, a shard list, or any data set"},
    {"OTHER", offsetof(verify_args, other), false,
     "report pictures of this data set that DATA also has (the same bytes); check nothing else of it"},
};

const command command_verify = {
    .name = "verify",
    .summary = "read all data, check every checksum, decode every picture",
    .text =
        "Reads and checks every byte of record files: header, schema, index, records, padding. Then reads "
        "every sample of the data set and decodes its picture, entry points and coefficients included. "
        "Lists damage on standard output, with file, sample and offset; the exit status is then 1. Names "
        "formats without checksums, in which a changed byte that still decodes cannot be found.",
    .examples = "  millrace verify train.mrec\n  millrace verify photos --max-wrong 0\n"
                "  millrace verify photos/train photos/val\n",
    .positionals = positionals,
    .positional_count = OPT_COUNT(positionals),
    .groups = groups,
    .group_count = OPT_COUNT(groups),
    .args_bytes = sizeof(verify_args),
    .run = run,
};
