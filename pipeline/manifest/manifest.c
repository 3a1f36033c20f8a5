/* pipeline/manifest/manifest.c: mr_manifest_make() and mr_manifest_compare(). See manifest.h. */
#include "pipeline/manifest/manifest.h"

#include <string.h>

#include "base/abi.h"
#include "base/util.h"
#include "formats/source/source.h"

void mr_manifest_defaults_sized(mr_manifest_config *cfg, size_t struct_size)
{
    const mr_manifest_config all = {0};
    mri_settings_give(cfg, struct_size, &all, sizeof all);
}

/* Arguments of both functions. */
static int check(const char *set, const mr_source *src, const mr_manifest_config *cfg,
                 mr_manifest_config *mine, const mr_manifest_result *out, mr_error *err)
{
    MRI_GIVEN(err, set);
    if (src) {
        MRI_OWN(err, src);
    }
    const int rc = mri_result_check(out, err);
    if (rc) return rc;
    mr_manifest_defaults(mine);
    return mri_settings_take(mine, sizeof *mine, cfg, "manifest", err);
}

/* Report all files that cannot be read; the status is of the first one. */
static int check_read(const mri_manifest *m, const mr_manifest_config *cfg, mr_error *err)
{
    int first = MR_OK;
    for (uint64_t k = 0; k < m->count; k++) {
        const mri_manifest_file *f = &m->file[k];
        if (!f->rc) continue;
        if (cfg->on_wrong) cfg->on_wrong(cfg->context, &f->why);
        if (!first && err) *err = f->why;
        if (!first) first = f->rc;
    }
    return first;
}

static void give_files(const mri_manifest *m, const mr_manifest_config *cfg)
{
    for (uint64_t k = 0; k < m->count; k++) {
        mr_manifest_file f = {.struct_size = sizeof f, .path = m->file[k].path, .bytes = m->file[k].bytes};
        memcpy(f.sha256, m->file[k].sum, sizeof f.sha256);
        cfg->on_file(cfg->context, &f);
    }
}

/* An older list of sums in the folder of the set may be replaced, another file of the set may not. */
static int check_old(const char *file, const mri_manifest *m, mr_error *err)
{
    mri_manifest old = {0};
    const int rc = m->without ? mri_manifest_read(&old, file, NULL) : MR_OK;
    mri_manifest_free(&old);
    if (rc == MR_OK) return MR_OK;
    mr_error_set(err, MR_EINVAL,
                 "this is a file of the set, and no manifest; choose another name for the output");
    return mr_error_at(err, file, MR_NOWHERE, MR_NOWHERE);
}

static int make(const char *file, const char *set, const mr_source *src, const mr_manifest_config *cfg,
                mri_manifest *m, mr_error *err)
{
    mr_output_config output;
    mr_output_defaults(&output);
    output.force = cfg->force;
    output.inputs = &src;
    output.input_count = 1;
    int rc = file ? mr_output_check(file, &output, err) : MR_OK;
    if (!rc) rc = mri_manifest_find(m, set, src, file, err);
    if (!rc && file) rc = check_old(file, m, err);
    if (!rc && m->count == 0) rc = mr_error_set(err, MR_EINVAL, "%s: no files here", set);
    if (!rc) rc = mri_manifest_sum(m, cfg, err);
    if (!rc) rc = check_read(m, cfg, err);
    if (rc) return rc;
    if (cfg->on_file) give_files(m, cfg);
    return file ? mri_manifest_write(m, file, src, cfg->force, err) : MR_OK;
}

int mr_manifest_make_sized(const char *file, const char *set, const mr_source *src,
                           const mr_manifest_config *cfg, mr_manifest_result *out, mr_error *err)
{
    mri_manifest m = {0};
    mr_manifest_config mine;
    mr_manifest_result result = {0};
    int rc = check(set, src, cfg, &mine, out, err);
    if (!rc && !file && !mine.on_file)
        rc = mr_error_set(err, MR_EINVAL, "neither a file to write nor on_file was given");
    if (rc) return rc;
    rc = make(file, set, src, &mine, &m, err);
    result.files = m.count;
    for (uint64_t k = 0; k < m.count; k++) result.bytes += m.file[k].bytes;
    mri_manifest_free(&m);
    if (rc == MR_OK) mri_result_give(out, &result, sizeof result);
    return rc;
}

int mr_manifest_compare_sized(const char *file, const char *set, const mr_source *src,
                              const mr_manifest_config *cfg, mr_manifest_result *out, mr_error *err)
{
    mr_manifest_config mine;
    mr_manifest_result result = {0};
    MRI_GIVEN(err, file);
    int rc = check(set, src, cfg, &mine, out, err);
    if (rc) return rc;
    rc = mri_manifest_compare(file, set, src, &mine, &result, err);
    if (rc == MR_OK) mri_result_give(out, &result, sizeof result);
    return rc;
}
