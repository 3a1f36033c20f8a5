/* tools/outputs/rows.c: see rows.h. */
#include "tools/outputs/rows.h"

#include <inttypes.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "settings/csv_put.h"
#include "tools/cli/exit.h"
#include "tools/cli/json.h"
#include "tools/cli/output.h"

enum { NAME_ROOM = 4096 };

const char *rows_class_name(const char *const *names, int64_t first, uint32_t at, char *buf, size_t buf_bytes)
{
    if (names) return names[at];
    snprintf(buf, buf_bytes, "%" PRId64, first + at);
    return buf;
}

/* A sample's name, else its file if each sample has its own. */
static const char *name_of(const rows *r, uint64_t sample, char *buf, size_t buf_bytes)
{
    mr_extent e;
    mr_source_sample_name(r->src, sample, NULL, 0, buf, buf_bytes);
    if (!buf[0] && mr_source_extent(r->src, sample, &e, NULL) == MR_OK && e.file == MR_FILE_OF_SAMPLE)
        mr_source_sample_path(r->src, sample, buf, buf_bytes);
    return buf;
}

/* The name of the data's own class; "": no name. */
static const char *label_name(const rows *r, int32_t label, char *buf, size_t buf_bytes)
{
    const mr_source_info *info = mr_source_info_of(r->src);
    const bool known = info->label_field >= 0 && label >= 0 && (uint32_t)label < info->class_count;
    return known ? rows_class_name(info->class_names, info->label_offset, (uint32_t)label, buf, buf_bytes)
                 : "";
}

/* ---- outputs for targets ---- */

/* Above 0.5 it is there. */
static double probability(float logit) { return 1 / (1 + exp(-(double)logit)); }

static double value_of(const rows *r, float output)
{
    return r->loss == MR_TARGET_LABELS ? probability(output) : (double)output;
}

static void begin_targets(const rows *r, FILE *out)
{
    const bool labels = r->loss == MR_TARGET_LABELS;
    fprintf(out, "sample,name%s", labels ? ",labels" : "");
    for (uint32_t k = 0; k < r->classes; k++)
        fprintf(out, ",%s_%" PRIu32, labels ? "probability" : "value", k);
    fputs(",error\n", out);
}

/* outputs NULL: the sample could not be read. */
static void put_targets_csv(const rows *r, FILE *out, uint64_t sample, const char *name, const float *outputs,
                            const char *error)
{
    const char *gap = "";
    fprintf(out, "%" PRIu64 ",", sample);
    mri_csv_put_text(out, name);
    if (r->loss == MR_TARGET_LABELS) fputc(',', out);
    for (uint32_t k = 0; outputs && r->loss == MR_TARGET_LABELS && k < r->classes; k++) {
        if (!(outputs[k] > 0)) continue;
        fprintf(out, "%s%" PRIu32, gap, k);
        gap = " ";
    }
    for (uint32_t k = 0; k < r->classes; k++) {
        fputc(',', out);
        if (outputs) fprintf(out, "%.6g", value_of(r, outputs[k]));
    }
    fputc(',', out);
    mri_csv_put_text(out, error);
    fputc('\n', out);
}

static void put_targets_json(const rows *r, FILE *out, uint64_t sample, const char *name,
                             const float *outputs, const char *error)
{
    const bool labels = r->loss == MR_TARGET_LABELS;
    json_line j = json_begin(out, "prediction");
    json_u64(&j, "sample", sample);
    json_text(&j, "name", name[0] ? name : NULL);
    if (outputs && labels) {
        json_array(&j, "labels");
        for (uint32_t k = 0; k < r->classes; k++)
            if (outputs[k] > 0) json_u64(&j, NULL, k);
        json_close_array(&j);
    }
    if (outputs) {
        json_array(&j, labels ? "probabilities" : "values");
        for (uint32_t k = 0; k < r->classes; k++) json_real(&j, NULL, value_of(r, outputs[k]));
        json_close_array(&j);
    }
    json_text(&j, "error", error[0] ? error : NULL);
    json_end(&j);
}

static void put_targets(const rows *r, FILE *out, uint64_t sample, const float *outputs, const char *error)
{
    char name[NAME_ROOM];
    name_of(r, sample, name, sizeof name);
    (r->json ? put_targets_json : put_targets_csv)(r, out, mr_source_number(r->src, sample), name, outputs,
                                                   error);
}

/* ---- CSV ---- */

void rows_begin(const rows *r, FILE *out)
{
    if (r->json) return;
    if (r->loss) {
        begin_targets(r, out);
        return;
    }
    fputs("sample,name,label,class,probability", out);
    for (uint32_t i = 2; i <= r->top; i++) fprintf(out, ",class_%" PRIu32 ",probability_%" PRIu32, i, i);
    fputs(",error\n", out);
}

static void put_csv(const rows *r, FILE *out, uint64_t sample, const char *name, const char *label,
                    const mr_guess *guesses, const char *error)
{
    char number[32];
    fprintf(out, "%" PRIu64 ",", sample);
    mri_csv_put_text(out, name);
    fputc(',', out);
    mri_csv_put_text(out, label);
    for (uint32_t i = 0; i < r->top; i++) {
        fputc(',', out);
        if (guesses)
            mri_csv_put_text(
                out, rows_class_name(r->names, r->first, guesses[i].class_number, number, sizeof number));
        fputc(',', out);
        if (guesses) fprintf(out, "%.6g", guesses[i].probability);
    }
    fputc(',', out);
    mri_csv_put_text(out, error);
    fputc('\n', out);
}

/* ---- JSON ---- */

static void put_guess(const rows *r, json_line *j, const mr_guess *g)
{
    char number[32];
    json_text(j, "class", rows_class_name(r->names, r->first, g->class_number, number, sizeof number));
    json_u64(j, "class_number", g->class_number);
    json_real(j, "probability", g->probability);
}

static void put_json(const rows *r, FILE *out, uint64_t sample, const char *name, const char *label,
                     const mr_guess *guesses, const char *error)
{
    json_line j = json_begin(out, "prediction");
    json_u64(&j, "sample", sample);
    json_text(&j, "name", name[0] ? name : NULL);
    json_text(&j, "label", label[0] ? label : NULL);
    if (guesses) put_guess(r, &j, guesses);
    else json_text(&j, "class", NULL);
    if (guesses && r->top > 1) {
        json_array(&j, "top");
        for (uint32_t i = 0; i < r->top; i++) {
            json_object(&j, NULL);
            put_guess(r, &j, &guesses[i]);
            json_close_object(&j);
        }
        json_close_array(&j);
    }
    json_text(&j, "error", error[0] ? error : NULL);
    json_end(&j);
}

/* ---- a row ---- */

static void put(const rows *r, FILE *out, uint64_t sample, int32_t label, const mr_guess *guesses,
                const char *error)
{
    char name[NAME_ROOM], number[32], folder[NAME_ROOM];
    const char *said = label_name(r, label, number, sizeof number);
    name_of(r, sample, name, sizeof name);
    if (!said[0]) said = folder_labels_of(&r->folders, name, folder, sizeof folder);
    (r->json ? put_json : put_csv)(r, out, mr_source_number(r->src, sample), name, said, guesses, error);
}

bool rows_put(const rows *r, FILE *out, uint64_t sample, int32_t label, const float *logits)
{
    if (r->loss) {
        put_targets(r, out, sample, logits, "");
        return true;
    }
    mr_guess *guesses = malloc(r->top * sizeof *guesses);
    if (!guesses) return false;
    mr_outputs_top(logits, r->classes, r->top, guesses);
    put(r, out, sample, label, guesses, "");
    free(guesses);
    return true;
}

void rows_put_bad(const rows *r, FILE *out, uint64_t sample, const char *why)
{
    if (r->loss) put_targets(r, out, sample, NULL, why);
    else put(r, out, sample, -1, NULL, why);
}

/* ---- views ---- */

int views_open(mr_views **out, const char *name, mr_loader_config *cfg)
{
    mr_error err = MR_ERROR_INIT;
    if (mr_views_create(out, name, cfg->augment, &err) != MR_OK) {
        say("--views %s: %s", name, err.text);
        return EXIT_MISUSED;
    }
    cfg->augment = mr_views_augment(*out);
    cfg->epochs = mr_views_count(*out);
    return EXIT_DONE;
}
