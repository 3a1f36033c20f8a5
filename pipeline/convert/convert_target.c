/* pipeline/convert/convert_target.c: refuses a conversion whose output is its input, or lies inside of it.
 * See convert.h. */
#include <stdio.h>
#include <sys/stat.h>

#include "base/util.h"
#include "formats/source/source.h"
#include "pipeline/convert/convert_kind.h"

static int no_memory(mr_error *err)
{
    return mr_error_set(err, MR_ENOMEM, "out of memory for the output's names");
}

int mri_convert_check_input(const mri_convert_plan *plan, const char *path, mr_error *err)
{
    struct stat out;
    if (stat(path, &out) != 0) return MR_OK;
    const char *input = mri_source_input(plan->src, &out);
    if (!input) return MR_OK;
    mr_error_set(err, MR_EINVAL, "this is also the input (%s); choose another name for the output", input);
    return mri_error_place(err, MR_EINVAL, path, MR_NOWHERE, MR_NOWHERE);
}

/* real_folder: where dst will lie; input: what samples that are files of their own lie below. */
static int check_below(const char *dst, const char *real_folder, const char *input, mr_error *err)
{
    char *real_input = realpath(input, NULL);
    const size_t n = real_input ? strlen(real_input) : 0;
    const bool below = real_input && strncmp(real_folder, real_input, n) == 0 &&
                       (real_folder[n] == '/' || real_folder[n] == '\0');
    free(real_input);
    if (!below) return MR_OK;
    mr_error_set(err, MR_EINVAL,
                 "the output would lie inside the input (%s) and be part of it the next time; "
                 "choose a place outside",
                 input);
    return mri_error_place(err, MR_EINVAL, dst, MR_NOWHERE, MR_NOWHERE);
}

static bool is_of_sample_files(const mr_source *src, const mr_mix_set *set)
{
    mr_extent e;
    return mr_source_extent(src, set->first, &e, NULL) == MR_OK && e.file == MR_FILE_OF_SAMPLE;
}

int mri_convert_check_folder(const mri_convert_plan *plan, const char *dst, mr_error *err)
{
    if (!mri_source_has_sample_files(plan->src)) return MR_OK;
    char *folder = strdup(dst);
    if (!folder) return no_memory(err);
    char *slash = strrchr(folder, '/');
    if (slash) slash[slash == folder] = '\0';
    char *real_folder = realpath(slash ? folder : ".", NULL);
    int rc = real_folder ? check_below(dst, real_folder, plan->info->path, err) : MR_OK;
    for (uint32_t k = 0; real_folder && !rc && k < plan->info->mix_count; k++)
        if (is_of_sample_files(plan->src, &plan->info->mix[k]))
            rc = check_below(dst, real_folder, plan->info->mix[k].path, err);
    free(folder);
    free(real_folder);
    return rc;
}

int mri_convert_check_file(const mri_convert_plan *plan, const char *path, mr_error *err)
{
    const size_t len = strlen(path);
    char *part_path = malloc(len + 6);
    if (!part_path) return no_memory(err);
    snprintf(part_path, len + 6, "%s.part", path);
    int rc = mri_convert_check_input(plan, path, err);
    if (rc == MR_OK) rc = mri_convert_check_input(plan, part_path, err);
    free(part_path);
    return rc;
}
