/* pipeline/convert/convert_target.c: what a conversion writes is never what it reads, nor inside of it. See
 * convert.h. */
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

int mri_convert_check_folder(const mri_convert_plan *plan, const char *dst, mr_error *err)
{
    if (plan->info->file_count != 0) return MR_OK;
    char *folder = strdup(dst), *real_folder = NULL, *real_src = NULL;
    int rc = folder ? MR_OK : no_memory(err);
    if (rc == MR_OK) {
        char *slash = strrchr(folder, '/');
        if (slash) slash[slash == folder] = '\0';
        real_folder = realpath(slash ? folder : ".", NULL);
        real_src = realpath(plan->info->path, NULL);
    }
    if (real_folder && real_src) {
        const size_t n = strlen(real_src);
        if (strncmp(real_folder, real_src, n) == 0 && (real_folder[n] == '/' || real_folder[n] == '\0')) {
            rc = mr_error_set(err, MR_EINVAL,
                              "the output would lie inside the input (%s) and be part of it the next time; "
                              "choose a place outside",
                              plan->info->path);
            mr_error_at(err, dst, MR_NOWHERE, MR_NOWHERE);
        }
    }
    free(folder);
    free(real_folder);
    free(real_src);
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
