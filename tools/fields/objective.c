/* tools/fields/objective.c: see objective.h. */
#include "tools/fields/objective.h"

#include <inttypes.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "tools/cli/exit.h"
#include "tools/cli/output.h"
#include "tools/fields/fields.h"

const char *const objective_names[] = {"own", "bce", "mse", "l1", "huber", NULL};

int objective_choose(objective *o, const objective_args *a, const mr_model *model)
{
    const char *loss = objective_names[a->loss];
    if (a->loss && !a->targets) {
        say("--loss %s needs --targets NAME: the field of the data with the targets", loss);
        return EXIT_MISUSED;
    }
    if (a->targets && !a->loss) {
        say("--targets %s needs --loss: bce for labels that are there or not (0 and 1), "
            "mse, l1 or huber for numbers",
            a->targets);
        return EXIT_MISUSED;
    }
    if (a->loss && a->class_weights) {
        say("--class-weights: with --loss %s there are no classes to weigh", loss);
        return EXIT_MISUSED;
    }
    if (a->loss && model && model->classes == 0) {
        say("--loss %s: model %s has losses of its own", loss, model->name);
        return EXIT_MISUSED;
    }
    if (a->targets && strlen(a->targets) > MR_MAX_NAME) {
        say("--targets: expected at most %d bytes, found %zu", MR_MAX_NAME, strlen(a->targets));
        return EXIT_MISUSED;
    }
    o->loss = (mr_target_loss)a->loss;
    o->weights = a->class_weights;
    snprintf(o->field, sizeof o->field, "%s", a->targets ? a->targets : "");
    return EXIT_DONE;
}

void objective_of_checkpoint(objective *o, const mr_checkpoint_info *info, bool outputs_only)
{
    if (!info->target_loss) return;
    o->loss = info->target_loss;
    o->count = info->classes;
    o->outputs_only = outputs_only;
    snprintf(o->field, sizeof o->field, "%s", info->targets);
    o->of_checkpoint = true;
}

/* Of a checkpoint whose data were a tar archive: the field may lack the ending here. */
static uint32_t find_field(objective *o, const mr_source_info *info)
{
    const uint32_t at = fields_find(info, o->field);
    const size_t n = strlen(o->field);
    if (at < info->field_count || !o->of_checkpoint || n < 5 || strcmp(o->field + n - 4, ".npy") != 0)
        return at;
    o->field[n - 4] = '\0';
    return fields_find(info, o->field);
}

void objective_close(objective *o)
{
    free(o->class_weights);
    *o = (objective){.count = 0};
}

/* ---- the field ---- */

static bool has_numbers(const mr_field *f)
{
    return f->type == MR_TYPE_TENSOR || f->type == MR_TYPE_INT || f->type == MR_TYPE_FLOAT;
}

/* "attributes (u8, 5 x 2)" */
static size_t field_text(const mr_field *f, char *out, size_t bytes)
{
    const bool tensor = f->type == MR_TYPE_TENSOR;
    size_t at = (size_t)snprintf(out, bytes, "%s (%s", f->name,
                                 tensor ? mr_dtype_name(f->dtype) : mr_type_name(f->type));
    for (uint32_t d = 0; tensor && d < f->ndim && at < bytes; d++)
        at += (size_t)snprintf(out + at, bytes - at, "%s%" PRIu64, d ? " x " : ", ", f->dim[d]);
    if (at < bytes) at += (size_t)snprintf(out + at, bytes - at, ")");
    return at;
}

static int no_field(const objective *o, const mr_source_info *info)
{
    char known[1024] = "";
    for (size_t k = 0, at = 0; k < info->field_count && at < sizeof known - 1; k++) {
        if (k) at += (size_t)snprintf(known + at, sizeof known - at, ", ");
        if (at < sizeof known) at += field_text(&info->fields[k], known + at, sizeof known - at);
    }
    say("%s: no field %s for --targets; there are: %s; of NumPy arrays and tables name an array or a column "
        "(--target-key)",
        info->path, o->field, known);
    return EXIT_FAILED;
}

/* The length of rows, taken from the first sample if the schema leaves it open. */
static int count_in_first(const mr_source *src, uint32_t at, uint64_t *out)
{
    mr_error err = MR_ERROR_INIT;
    void *buffer = NULL;
    size_t room = 0;
    mr_sample sample;
    const int rc = mr_source_read(src, 0, &buffer, &room, &sample, &err);
    *out = 1;
    for (uint32_t d = 0; rc == MR_OK && d < sample.value[at].ndim; d++) *out *= sample.value[at].dim[d];
    free(buffer);
    return exit_status(rc, &err);
}

static int count_numbers(objective *o, const mr_source *src, uint32_t at)
{
    const mr_source_info *info = mr_source_info_of(src);
    const mr_field *f = &info->fields[at];
    uint64_t count = 1;
    char text[256];
    int status = EXIT_DONE;
    if (f->type == MR_TYPE_TENSOR && f->ndim == 0 && info->count) status = count_in_first(src, at, &count);
    for (uint32_t d = 0; f->type == MR_TYPE_TENSOR && d < f->ndim; d++) count *= f->dim[d];
    if (status) return status;
    field_text(f, text, sizeof text);
    if (count == 0 || count > INT32_MAX) {
        say("%s: field %s has %" PRIu64 " numbers a sample: expected 1 or more, a target each", info->path,
            text, count);
        return EXIT_FAILED;
    }
    if (o->count && o->count != count) {
        say("%s: field %s has %" PRIu64 " numbers a sample: expected %" PRIu32 ", the outputs of the "
            "checkpoint's network",
            info->path, text, count, o->count);
        return EXIT_FAILED;
    }
    o->count = (uint32_t)count;
    return EXIT_DONE;
}

int objective_check_columns(const mr_source *src, const char *const *names, uint32_t count, const char *of)
{
    mr_error err = MR_ERROR_INIT;
    const uint32_t own = mr_source_columns(src, NULL, NULL);
    const char *path = mr_source_info_of(src)->path;
    if (!names) count = 0;
    if (own > 1 && !count)
        say("%s: %s has no names of target columns: their order is taken to be the same", path,
            shown_text(of));
    if (!own && count > 1)
        say("%s: no names of target columns here: their order is taken to be that of %s", path,
            shown_text(of));
    return exit_status(mr_source_columns_check(src, names, count, of, &err), &err);
}

int objective_take_field(objective *o, const mr_source *src, mr_loader_config *cfg,
                         mr_loader_field fields[MR_LOADER_MAX_FIELDS], uint32_t *count)
{
    const mr_source_info *info = mr_source_info_of(src);
    if (!o->loss || o->outputs_only) return EXIT_DONE;
    const uint32_t at = find_field(o, info);
    if (at == info->field_count) return no_field(o, info);
    const mr_field *f = &info->fields[at];
    if (!has_numbers(f)) {
        char text[256];
        field_text(f, text, sizeof text);
        say("%s: --targets %s: expected numbers, a tensor or one number a sample", info->path, text);
        return EXIT_FAILED;
    }
    int status = count_numbers(o, src, at);
    if (!status && o->columns.of)
        status = objective_check_columns(src, o->columns.names, o->columns.count, o->columns.of);
    if (status) return status;
    snprintf(o->field, sizeof o->field, "%s", f->name);
    fields[*count] = (mr_loader_field){.name = f->name, .most = o->count, .pad = mr_target_pad(f)};
    cfg->fields = fields;
    cfg->field_count = ++*count;
    return EXIT_DONE;
}

void objective_explain(const objective *o, const mr_source *src, const mr_error *err)
{
    const mr_source_info *info = mr_source_info_of(src);
    char text[256];
    if (!o->loss || err->code != MR_EINVAL || !strstr(err->text, "target")) return;
    const uint32_t at = fields_find(info, o->field);
    if (at == info->field_count) return;
    field_text(&info->fields[at], text, sizeof text);
    say("%s: the targets are field %s, for --loss %s; leave such samples out of the "
        "data, or give them targets",
        info->path, text, objective_names[o->loss]);
}

/* ---- weights of classes ---- */

static int count_classes(const mr_source *src, uint32_t classes, uint64_t *count, uint64_t *all)
{
    const mr_source_info *info = mr_source_info_of(src);
    int64_t label;
    for (uint64_t i = 0; i < info->count; i++) {
        const int rc = mr_source_label(src, i, &label);
        if (rc == MR_EUNSUPPORTED) {
            say("%s: --class-weights balanced: the classes of these data are known only after reading; "
                "convert them to record files, or give the weights themselves (0.5/2/...)",
                info->path);
            return EXIT_FAILED;
        }
        if (rc || label < 0 || label >= (int64_t)classes) continue; /* a bad sample, which does not count */
        count[label]++;
        ++*all;
    }
    return EXIT_DONE;
}

/* samples / (classes there are * samples of the class), as in scikit-learn: 1 on average over the samples. A
 * class without samples weighs nothing. */
static int balance(const mr_source *src, uint32_t classes, float *weights)
{
    uint64_t *count = calloc(classes, sizeof *count), all = 0, there = 0;
    if (!count) return exit_no_memory("weights of classes");
    const int status = count_classes(src, classes, count, &all);
    for (uint32_t c = 0; c < classes; c++) there += count[c] > 0;
    for (uint32_t c = 0; status == EXIT_DONE && c < classes; c++)
        weights[c] = count[c] ? (float)((double)all / ((double)there * (double)count[c])) : 0;
    free(count);
    return status;
}

enum { MOST_TEXT = 16 << 20 };

/* All of a file; to be freed. */
static char *read_text(const char *path)
{
    FILE *f = fopen(path, "re");
    char *text = f ? malloc(MOST_TEXT + 1) : NULL;
    const size_t n = text ? fread(text, 1, MOST_TEXT + 1, f) : 0;
    const bool good = text && !ferror(f) && n <= MOST_TEXT && !memchr(text, 0, n);
    if (f) fclose(f);
    if (good) {
        text[n] = '\0';
        return text;
    }
    free(text);
    return NULL;
}

static int wrong_count(const mr_net *net, uint32_t found, bool more)
{
    say("--class-weights: expected %" PRIu32 ", one for each class of the network, found %s%" PRIu32,
        mr_net_class_count(net), more ? "more than " : "", found);
    return EXIT_MISUSED;
}

/* Numbers with any of these between them. */
static int parse(const char *text, const char *between, const mr_net *net, float *weights)
{
    const uint32_t classes = mr_net_class_count(net);
    uint32_t found = 0;
    for (const char *at = text + strspn(text, between); *at; at += strspn(at, between)) {
        char *end;
        const double weight = strtod(at, &end);
        if (end == at || (*end && !strchr(between, *end)) || !(weight >= 0) || !(weight <= 1e30)) {
            say("--class-weights: expected balanced, numbers of 0 or more (0.5/2/1), or a "
                "file of them; found '%.*s'",
                (int)strcspn(at, between), at);
            return EXIT_MISUSED;
        }
        if (found == classes) return wrong_count(net, classes, true);
        weights[found++] = (float)weight;
        at = end;
    }
    return found == classes ? EXIT_DONE : wrong_count(net, found, false);
}

static int read_weights(const char *text, const mr_source *src, const mr_net *net, float *weights)
{
    if (strcmp(text, "balanced") == 0) return balance(src, mr_net_class_count(net), weights);
    if (text[strspn(text, "+-.0123456789eE/")] == '\0') return parse(text, "/", net, weights);
    char *file = read_text(text);
    if (!file) {
        say("--class-weights: expected balanced, numbers with / between them (0.5/2/1), or the name of a "
            "file of numbers; '%s' is not one",
            text);
        return EXIT_MISUSED;
    }
    const int status = parse(file, " \t\r\n,;/", net, weights);
    free(file);
    return status;
}

int objective_take_weights(objective *o, const mr_source *src, const mr_net *net)
{
    const uint32_t classes = mr_net_class_count(net);
    if (o->class_weights || !o->weights || strcmp(o->weights, "none") == 0) return EXIT_DONE;
    if (classes == 0) {
        say("--class-weights: %s has no classes", mr_net_name(net));
        return EXIT_MISUSED;
    }
    float *weights = calloc(classes, sizeof *weights);
    if (!weights) return exit_no_memory("weights of classes");
    const int status = read_weights(o->weights, src, net, weights);
    if (status) {
        free(weights);
        return status;
    }
    o->class_weights = weights;
    o->class_weight_count = classes;
    return EXIT_DONE;
}
