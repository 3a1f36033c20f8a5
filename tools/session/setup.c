/* tools/session/setup.c: see setup.h. */
#include "tools/session/setup.h"

#include <ctype.h>
#include <errno.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "millrace/run.h"
#include "tools/cli/exit.h"
#include "tools/cli/interrupt.h"
#include "tools/cli/output.h"
#include "tools/fields/fields.h"

#define TRACE_SPANS ((size_t)1 << 18)

static int take_label_offset(mr_source_config *cfg, const char *text)
{
    char *end;
    if (!text || strcmp(text, "auto") == 0) return EXIT_DONE;
    errno = 0;
    cfg->label_offset = strtoll(text, &end, 10);
    const bool number = isdigit((unsigned char)text[0]) ||
                        ((text[0] == '-' || text[0] == '+') && isdigit((unsigned char)text[1]));
    if (number && !*end && !errno && cfg->label_offset != MR_LABEL_AUTO) return EXIT_DONE;
    say("--label-offset: expected auto or a whole number, found '%s'", text);
    return EXIT_MISUSED;
}

static bool take_number(const char **at, double *out)
{
    char *end;
    if (!isdigit((unsigned char)**at) && **at != '.') return false;
    *out = strtod(*at, &end);
    *at = end;
    return true;
}

int setup_take(const char *text, double *from, double *to)
{
    const char *at = text;
    *from = 0;
    *to = 1;
    if (!text) return EXIT_DONE;
    bool good = take_number(&at, to);
    if (good && *at == ':') {
        *from = *to;
        at++;
        good = take_number(&at, to);
    }
    if (good && !*at && *from < *to && *to <= 1) return EXIT_DONE;
    say("--take: expected two parts of 1, the first below the second, such as 0:0.9, or one, found '%s'",
        text);
    return EXIT_MISUSED;
}

/* Validation data are often another split of a set opened before, and have the same lines. */
/* a: one that chose the rule for class folders itself says nothing of it. */
static void report_once(const mr_source_info *info, const data_args *a)
{
    static const char rule[] = "the rule for class folders is passed over";
    static char last[4096];
    if (!info->told || strncmp(last, info->told, sizeof last - 1) == 0) return;
    snprintf(last, sizeof last, "%s", info->told);
    for (const char *line = info->told; line[0];) {
        const size_t bytes = strcspn(line, "\n");
        if (!a->own_class_rule || strncmp(line, rule, sizeof rule - 1) != 0)
            say("%s: %.*s", info->path, (int)bytes, line);
        line += bytes + (line[bytes] == '\n');
    }
}

int setup_config(mr_source_config *cfg, const data_args *a)
{
    mr_source_defaults(cfg);
#define MRI_SETTING(member, kind, ...) cfg->member = a->member;
#include "settings/data.rows"
    cfg->no_index_file = a->index_folder && strcmp(a->index_folder, "off") == 0;
    cfg->index_folder = cfg->no_index_file ? NULL : a->index_folder;
    cfg->stop = &interrupt_flag;
    cfg->withdrawn = a->takes_withdrawn ? MR_WITHDRAWN_TAKE : MR_WITHDRAWN_LEAVE_OUT;
    const int status = setup_take(a->take, &cfg->take_from, &cfg->take_to);
    return status ? status : take_label_offset(cfg, a->label_offset);
}

/* Closes the data that *out had open. */
static int open_all(mr_source **out, const char *path, const mr_source_config *cfg)
{
    mr_error err = MR_ERROR_INIT;
    mr_source_close(*out);
    return setting_status(mr_source_open(out, path, cfg, &err), &err);
}

static int choose(mr_source *src, const data_args *a)
{
    return a->chooser ? a->chooser->choose(a->chooser, src) : EXIT_DONE;
}

static int open_source(mr_source **out, const char *path, const mr_source_config *cfg, const data_args *a)
{
    const int status = open_all(out, path, cfg);
    return status ? status : choose(*out, a);
}

/* Of two splits the one to test with; all its samples. */
static int open_to_test(mr_source **out, const char *path, mr_source_config *cfg)
{
    const int status = open_all(out, path, cfg);
    if (status || cfg->split != MR_SPLIT_AUTO || !mr_source_info_of(*out)->has_test) return status;
    cfg->split = MR_SPLIT_TEST;
    return open_all(out, path, cfg);
}

int setup_source(mr_source **out, const char *path, const data_args *a)
{
    mr_source_config cfg;
    int status = setup_config(&cfg, a);
    *out = NULL;
    if (!status) status = open_source(out, path, &cfg, a);
    if (!status) report_once(mr_source_info_of(*out), a); /* as it may be shown */
    return status;
}

int setup_opens(bool *opens, const char *path, const data_args *a, const char *field)
{
    mr_source_config cfg;
    mr_source *src = NULL;
    mr_error err = MR_ERROR_INIT;
    *opens = false;
    if (setup_config(&cfg, a) != EXIT_DONE) return EXIT_DONE;
    const int rc = mr_source_open(&src, path, &cfg, &err);
    const mr_source_info *info = rc ? NULL : mr_source_info_of(src);
    *opens = info && (!field || fields_find(info, field) < info->field_count);
    mr_source_close(src);
    return rc == MR_OK || mr_error_of_sample(rc, &err) || rc == MR_EINVAL || rc == MR_EUNSUPPORTED ||
                   rc == MR_ENOENT
               ? EXIT_DONE
               : exit_status(rc, &err);
}

int setup_source_to_predict(mr_source **out, const char *path, const data_args *a)
{
    mr_source_config cfg;
    int status = setup_config(&cfg, a);
    *out = NULL;
    if (!status) status = open_to_test(out, path, &cfg);
    if (!status) status = choose(*out, a);
    if (!status) report_once(mr_source_info_of(*out), a);
    return status;
}

void setup_tell_part(const mr_source *src, const data_args *a)
{
    const mr_source_info *info = mr_source_info_of(src);
    if (info->has_test && !info->only_test && (mr_split)a->split == MR_SPLIT_AUTO)
        say("%s: the train part is taken; --split test takes the other", info->path);
}

void setup_tell_untrained(const mr_source *src)
{
    const mr_source_info *info = mr_source_info_of(src);
    uint32_t found = 0, first = 0;
    int64_t label;
    bool *seen = info->class_names ? calloc(info->class_count, sizeof *seen) : NULL;
    bool known = seen != NULL;
    for (uint64_t i = 0; known && i < info->count; i++) {
        known = mr_source_label(src, i, &label) == MR_OK;
        if (!known || label < 0 || label >= info->class_count || seen[label]) continue;
        seen[label] = true;
        found++;
    }
    while (known && first < info->class_count && seen[first]) first++;
    if (known && found < info->class_count)
        say("%s: class %s%s has no sample in the training data: take another part", shown_text(info->path),
            info->class_names[first], found + 1 < info->class_count ? " (and others)" : "");
    free(seen);
}

static void on_note(void *context, const char *text)
{
    (void)context;
    say("%s", text);
}

/* ---- where classes begin ---- */

static bool is_automatic(const data_args *a)
{
    return !a->label_offset || strcmp(a->label_offset, "auto") == 0;
}

/* Are its classes named, whatever their numbers? */
static bool is_named(const mr_source_info *info) { return info->class_names && info->class_names[0][0]; }

bool setup_asks_where(const mr_source_info *info, const data_args *a)
{
    return is_automatic(a) && !is_named(info);
}

/* What came of a guess, when this file was made, nobody can see any more. */
static void doubt(const mr_source *unsure)
{
    say("%s: a record file of an earlier version: if the smallest label of its source was 1, 1 was "
        "subtracted; convert it again to be certain of its classes",
        mr_source_info_of(unsure)->path);
}

int setup_label_start(const mr_source *trained, const mr_source *other, int64_t *out)
{
    mr_error err = MR_ERROR_INIT;
    return exit_status(mr_first_class(trained, other, out, on_note, NULL, &err), &err);
}

int setup_source_from(mr_source **src, const char *path, const data_args *a, int64_t offset)
{
    mr_source_config cfg;
    if (mr_source_info_of(*src)->label_offset == offset || !is_automatic(a)) return EXIT_DONE;
    int status = setup_config(&cfg, a);
    cfg.label_offset = offset;
    if (!status) status = open_source(src, path, &cfg, a);
    if (!status && offset)
        say("%s: labels start at %" PRId64 ": %" PRId64 " is subtracted", mr_source_info_of(*src)->path,
            offset, offset);
    return status;
}

/* ---- two sets ---- */

static int check_classes(const mr_source_info *here, const data_like *like)
{
    if (here->class_count || like->class_count == 0) return EXIT_DONE; /* classes are not distinguished */
    say("%s: expected %u classes as in %s, found 0", here->path, like->class_count, like->path);
    return EXIT_FAILED;
}

int setup_source_to_evaluate(mr_source **out, const char *path, const data_args *a, const data_like *like)
{
    const int status = setup_source_like(out, path, a, like);
    if (status == EXIT_DONE && !like->class_names && like->class_count && mr_source_labels_of(*out)->unsure)
        doubt(*out);
    return status;
}

int setup_source_beside(mr_source **out, const char *path, const data_args *a)
{
    mr_source_config cfg;
    int status = setup_config(&cfg, a);
    *out = NULL;
    if (!status) status = open_to_test(out, path, &cfg);
    return status ? status : choose(*out, a);
}

/* After a choice that named the classes: the numbers of the other set's classes, by name. Classes without a
 * sample that is chosen may be missing there. */
static int match_names(mr_source *src, const data_like *like)
{
    const mr_source_info *info = mr_source_info_of(src);
    mr_error err = MR_ERROR_INIT;
    int status = EXIT_DONE;
    uint32_t *to = malloc((size_t)info->class_count * sizeof *to);
    if (!to) return exit_no_memory("the names of classes");
    for (uint32_t k = 0; !status && k < info->class_count; k++) {
        to[k] = UINT32_MAX;
        for (uint32_t c = 0; to[k] == UINT32_MAX && c < like->class_count; c++)
            if (strcmp(info->class_names[k], like->class_names[c]) == 0) to[k] = c;
        if (to[k] != UINT32_MAX || !info->class_names[k][0]) continue;
        say("%s: expected the classes of %s, found \"%s\": --only-classes and --rename-classes say which "
            "classes are taken and how they are called",
            info->path, like->path, info->class_names[k]);
        status = EXIT_FAILED;
    }
    if (!status)
        status =
            exit_status(mr_source_name_classes(src, to, like->class_names, like->class_count, &err), &err);
    free(to);
    return status;
}

/* Names that the choice gave, where the other set's classes are numbers. */
static int refuse_names(const mr_source *src, const data_like *like)
{
    const mr_source_info *info = mr_source_info_of(src);
    say("%s: expected the classes of %s, which are numbers, found names (\"%s\"): leave --rename-classes "
        "and --classes-from out",
        info->path, like->path, info->class_names[0]);
    return EXIT_FAILED;
}

static void follow(mr_source_config *cfg, const data_args *a, const data_like *like)
{
    cfg->class_names = like->class_names;
    cfg->class_count = like->class_count;
    cfg->classes_of = like->path;
    cfg->class_first = is_automatic(a) ? like->label_offset : cfg->label_offset;
}

/* A choice that changes classes speaks of the classes of the data: it comes first, and the classes it leaves
 * are matched. Numbers stay as they are, so they are matched first. */
static int open_like(mr_source **out, const char *path, mr_source_config *cfg, const data_args *a,
                     const data_like *like)
{
    const bool changes = a->chooser && a->chooser->names_classes;
    if (!changes) follow(cfg, a, like);
    int status = open_to_test(out, path, cfg);
    if (status || !changes) return status ? status : choose(*out, a);
    if (!mr_source_info_of(*out)->class_names && !a->chooser->gives_names) {
        follow(cfg, a, like);
        status = open_all(out, path, cfg);
        return status ? status : choose(*out, a);
    }
    status = choose(*out, a);
    if (status || like->class_count == 0 || !mr_source_info_of(*out)->class_names) return status;
    return like->class_names ? match_names(*out, like) : refuse_names(*out, like);
}

int setup_source_like(mr_source **out, const char *path, const data_args *a, const data_like *like)
{
    mr_source_config cfg;
    int status = setup_config(&cfg, a);
    *out = NULL;
    if (!status) status = open_like(out, path, &cfg, a, like);
    if (status) return status;
    report_once(mr_source_info_of(*out), a);
    return check_classes(mr_source_info_of(*out), like);
}

/* 0 in *out: auto. Whether it is a power of two the trainer checks. */
static int read_loss_scale(const compute_args *c, float *out)
{
    *out = 0;
    if (strcmp(c->loss_scale, "auto") == 0) return EXIT_DONE;
    char *end;
    const double scale = strtod(c->loss_scale, &end);
    if (!isdigit((unsigned char)c->loss_scale[0]) || *end || !(scale >= 1)) {
        say("--loss-scale: expected auto or a power of two such as 1024, found '%s'", c->loss_scale);
        return EXIT_MISUSED;
    }
    if (c->precision != PRECISION_F16) {
        say("--loss-scale goes with --precision f16; gradients in %s need none, leave it out",
            group_choice("precision", c->precision));
        return EXIT_MISUSED;
    }
    *out = (float)scale;
    return EXIT_DONE;
}

int setup_compute(mr_trainer_config *cfg, const compute_args *c)
{
    static const uint32_t types[] = {MR_TENSOR_F32, MR_TENSOR_F32, MR_TENSOR_BF16, MR_TENSOR_F16};
    cfg->dtype = types[c->precision];
#define MRI_SETTING(member, kind, ...) cfg->member = c->member;
#include "settings/computing.rows"
    return read_loss_scale(c, &cfg->loss_scale);
}

int setup_devices(mr_device ***out, uint32_t *count, const device_args *a, const compute_args *c)
{
    mr_error err = MR_ERROR_INIT;
    mr_devices_config cfg;
    float scale;
    const int status = c ? read_loss_scale(c, &scale) : EXIT_DONE; /* before anything is opened */
    if (status) return status;
    mr_devices_defaults(&cfg);
#define MRI_SETTING(member, kind, ...) cfg.member = a->member;
#include "settings/devices.rows"
    const long cores = sysconf(_SC_NPROCESSORS_ONLN);
    if (cores > 0 && a->compute_threads > (unsigned long)cores)
        say("--threads %u: this machine has %ld cores; more threads than cores slow the computing down",
            a->compute_threads, cores);
    cfg.convolution = (mr_convolution)a->convolution;
    cfg.tf32 = c && c->precision == PRECISION_TF32;
    cfg.deterministic = c && c->deterministic;
    const int rc = mr_devices_open(out, count, a->devices ? a->devices : "cpu", &cfg, &err);
    if (rc || !cfg.tf32 || strcmp(mr_device_info_of((*out)[0])->kind, "cuda") == 0)
        return setting_status(rc, &err);
    say("--precision tf32: %s computes in f32; tf32, bf16 and f16 are offered on cuda devices",
        mr_device_info_of((*out)[0])->name);
    return EXIT_FAILED; /* the caller closes all that is open */
}

int setup_output(const char *option, const char *path)
{
    struct stat st;
    if (!path) return EXIT_DONE;
    const char *slash = strrchr(path, '/');
    char *folder = slash ? strndup(path, slash == path ? 1 : (size_t)(slash - path)) : strdup(".");
    if (!folder) {
        say("out of memory");
        return EXIT_FAILED;
    }
    const bool is_other = lstat(path, &st) == 0 && !S_ISREG(st.st_mode); /* /dev/stdout would be replaced by a
                                                                            file */
    const int why = access(folder, W_OK | X_OK) == 0 ? 0 : errno;
    free(folder);
    if (!is_other && !why) return EXIT_DONE;
    say("--%s %s: %s", option, path,
        is_other ? "expected a file or a new name, found a folder, link or device" : strerror(why));
    return EXIT_FAILED;
}

int setup_page(const char *path, bool force)
{
    if (force || mr_page_may_replace(path)) return setup_output("html", path);
    say("--html %s: this file is there and is no page of millrace report: choose another name, or replace it "
        "with --force",
        path);
    return EXIT_MISUSED;
}

int setup_not_input(const char *option, const char *path, const mr_source *src)
{
    mr_error err = MR_ERROR_INIT;
    mr_output_config cfg;
    char text[1536];
    if (!path) return EXIT_DONE;
    mr_output_defaults(&cfg);
    cfg.inputs = &src;
    cfg.input_count = 1;
    cfg.force = true;
    if (mr_output_check(path, &cfg, &err) == MR_OK) return EXIT_DONE;
    mr_error_format(&err, text, sizeof text);
    say("--%s %s", option, text);
    return EXIT_FAILED;
}

int setup_write_result(const char *path, const void *data, size_t bytes, const mr_source *src, bool force,
                       mr_error *err)
{
    mr_output_config cfg;
    mr_output_defaults(&cfg);
    cfg.inputs = &src;
    cfg.input_count = 1;
    cfg.force = force;
    return mr_output_whole(path, data, bytes, &cfg, err);
}

void setup_decode(mr_decode_config *cfg, const data_args *a)
{
    mr_decode_defaults(cfg);
#define MRI_SETTING(member, kind, ...) cfg->member = a->member;
#include "settings/decode.rows"
}

void setup_loader(mr_loader_config *cfg, const data_args *data, const run_args *run,
                  const loader_args *loader)
{
    mr_loader_defaults(cfg);
    setup_decode(&cfg->decode, data);
    const mr_loader_config usual = *cfg;
#define MRI_SETTING(member, kind, ...) cfg->member = run->member;
#include "settings/batches.rows"
#define MRI_SETTING(member, kind, ...) cfg->member = loader->member;
#include "settings/loader.rows"
    if (!run->batch) cfg->batch = usual.batch;
    if (!run->epochs) cfg->epochs = usual.epochs;
    if (!run->augment) cfg->augment = usual.augment;
    cfg->cache = (mr_cache)loader->cache.kind;
    cfg->cache_bytes = loader->cache.bytes;
    cfg->cache_folder = loader->cache.folder;
    cfg->on_note = on_note;
    if (cfg->no_checks) say("--checks off: checksums of records are not computed");
}

int setup_trace(mr_trace **out, const char *path, bool also)
{
    *out = NULL;
    if (!path && !also) return EXIT_DONE;
    return mr_trace_create(out, TRACE_SPANS) == MR_OK ? EXIT_DONE : exit_no_memory("the trace");
}

int setup_write_trace(const mr_trace *trace, const char *path)
{
    mr_error err = MR_ERROR_INIT;
    return path ? exit_status(mr_trace_write(trace, path, &err), &err) : EXIT_DONE;
}
