/* pipeline/card/huggingface.c: a card as README.md of a repository of Hugging Face: facts as YAML between
 * two lines of ---, which `huggingface_hub` reads, and the same as text.
 *
 *   configs        which files are which split, where `datasets` reads the format (folder, tar)
 *   dataset_info   fields with the names that `datasets` gives them, classes, samples and bytes
 *
 * Texts are quoted as JSON quotes them, which YAML reads. */
#include <inttypes.h>
#include <string.h>

#include "pipeline/card/card.h"
#include "settings/number_put.h"

static bool is_tar(const mri_card *c) { return strcmp(c->format, "tar") == 0; }

/* ---- fields ---- */
static const char *dtype_of(const mr_field *f)
{
    switch (f->type) {
    case MR_TYPE_INT: return "int64";
    case MR_TYPE_FLOAT: return "float64";
    case MR_TYPE_TEXT: return "string";
    case MR_TYPE_BYTES: return "binary";
    default: return "image"; /* pictures: JPEG, PNG, pixels, ... */
    }
}

static const char *dtype_text(mr_dtype dtype)
{
    switch (dtype) {
    case MR_U8: return "uint8";
    case MR_I8: return "int8";
    case MR_I16: return "int16";
    case MR_I32: return "int32";
    case MR_I64: return "int64";
    case MR_F16: return "float16";
    case MR_F64: return "float64";
    default: return "float32"; /* which holds bfloat16, too */
    }
}

static void put_class_names(const mr_source_info *info, FILE *out)
{
    fputs("    dtype:\n      class_label:\n        names:\n", out);
    for (uint32_t k = 0; k < info->class_count; k++) {
        fprintf(out, "          '%" PRIu32 "': ", k);
        mri_card_put_text(out, info->class_names[k]);
        fputc('\n', out);
    }
}

static void put_feature(const mri_card *c, uint32_t k, FILE *out)
{
    const mr_source_info *info = mri_card_info(c);
    const mr_field *f = &info->fields[k];
    const bool image = (int)k == info->image_field, label = (int)k == info->label_field;
    fputs("  - name: ", out);
    if (c->is_folder && (image || label)) fputs(image ? "image" : "label", out);
    else if (is_tar(c) && image) mri_card_put_text(out, c->part[0].ending[0]);
    else if (is_tar(c) && label) mri_card_put_text(out, c->part[0].label);
    else mri_card_put_text(out, f->name);
    fputc('\n', out);
    if (label && f->type == MR_TYPE_INT && info->class_names && info->class_count) put_class_names(info, out);
    else if (f->type == MR_TYPE_TENSOR) fprintf(out, "    sequence: %s\n", dtype_text(f->dtype));
    else fprintf(out, "    dtype: %s\n", dtype_of(f));
}

/* Tensors of several dimensions have no short form there, and of an archive with other members `datasets`
 * finds them itself. */
static bool features_known(const mri_card *c)
{
    const mr_source_info *info = mri_card_info(c);
    if (is_tar(c))
        return c->plain && c->part[0].endings == 1 && (info->label_field < 0 || c->part[0].label[0]);
    for (uint32_t k = 0; k < info->field_count; k++)
        if (info->fields[k].type == MR_TYPE_TENSOR && info->fields[k].ndim > 1) return false;
    return true;
}

static void put_info(const mri_card *c, FILE *out)
{
    const mr_source_info *info = mri_card_info(c);
    const bool known = features_known(c);
    fputs("dataset_info:\n", out);
    if (known) fputs("  features:\n", out);
    for (uint32_t k = 0; known && k < info->field_count; k++) put_feature(c, k, out);
    fputs("  splits:\n", out);
    for (uint32_t k = 0; k < c->parts; k++) {
        const mr_source_info *part = mr_source_info_of(c->part[k].src);
        fprintf(out, "  - name: %s\n    num_bytes: %" PRIu64 "\n    num_examples: %" PRIu64 "\n",
                c->part[k].name, part->total_bytes, part->count);
    }
    fprintf(out, "  download_size: %" PRIu64 "\n  dataset_size: %" PRIu64 "\n",
            c->is_folder ? mri_card_sample_bytes(c) : c->file_bytes, mri_card_sample_bytes(c));
}

/* ---- which files are which split ---- */
static void put_configs(const mri_card *c, FILE *out)
{
    char pattern[2 * PATH_MAX];
    if (!c->is_folder && !is_tar(c)) return;
    fputs("configs:\n- config_name: default\n  data_files:\n", out);
    for (uint32_t k = 0; k < c->parts; k++) {
        const mri_card_part *p = &c->part[k];
        fprintf(out, "  - split: %s\n    path:", p->name);
        if (c->is_folder) {
            snprintf(pattern, sizeof pattern, "%s%s**", c->inside, p->by_class ? p->prefix : "");
            fputc(' ', out);
            mri_card_put_text(out, pattern);
            fputc('\n', out);
        } else fputc('\n', out);
        for (uint64_t f = 0; !c->is_folder && f < p->files; f++) {
            fputs("    - ", out);
            mri_card_put_text(out, c->file[p->first_file + f].name);
            fputc('\n', out);
        }
    }
}

static const char *task_of(const mr_source_info *info)
{
    for (uint32_t k = 0; k < info->field_count; k++)
        if (strcmp(info->fields[k].name, "boxes") == 0) return "object-detection";
    return info->image_field >= 0 && info->label_field >= 0 ? "image-classification" : NULL;
}

/* ---- text ---- */

static void put_text(const mri_card *c, FILE *out)
{
    const mr_source_info *info = mri_card_info(c);
    char size[32], shown[512];
    fprintf(out, "# %s\n\n%" PRIu64 " samples", c->name, mri_card_count(c));
    if (info->class_count) fprintf(out, " of %" PRIu32 " classes", info->class_count);
    fprintf(out, ", %s, as %s.\n", mri_size_text((double)mri_card_sample_bytes(c), size, sizeof size),
            mri_card_format_text(c));
    fputs("\n| split | samples | bytes |\n|---|---|---|\n", out);
    for (uint32_t k = 0; k < c->parts; k++) {
        const mr_source_info *part = mr_source_info_of(c->part[k].src);
        fprintf(out, "| %s | %" PRIu64 " | %" PRIu64 " |\n", c->part[k].name, part->count, part->total_bytes);
    }
    if (!info->class_names || !info->class_count) return;
    fputs("\n| label | class |\n|---|---|\n", out);
    for (uint32_t k = 0; k < info->class_count; k++)
        fprintf(out, "| %" PRIu32 " | %s |\n", k, mr_text_shown(info->class_names[k], shown, sizeof shown));
}

void mri_card_put_huggingface(const mri_card *c, FILE *out)
{
    const char *task = task_of(mri_card_info(c));
    fputs("---\n# license: name the licence of the data here\n", out);
    if (task) fprintf(out, "task_categories:\n- %s\n", task);
    put_configs(c, out);
    put_info(c, out);
    fputs("---\n\n", out);
    put_text(c, out);
}
