/* formats/output.c: formats/storage/output.h for programs. */
#include <errno.h>
#include <sys/stat.h>

#include "base/abi.h"
#include "formats/source/source.h"
#include "formats/storage/output.h"

struct mr_output {
    uint32_t process; /* that opened it (base/handle.h) */
    mri_output *out;
    mr_output_config cfg; /* what rules.context points to */
};

void mr_output_defaults_sized(mr_output_config *cfg, size_t struct_size)
{
    const mr_output_config all = {0};
    mri_settings_give(cfg, struct_size, &all, sizeof all);
}

static const char *is_input(const void *context, const struct stat *st)
{
    const mr_output_config *cfg = context;
    const char *name = NULL;
    for (uint32_t i = 0; !name && i < cfg->input_count; i++) name = mri_source_input(cfg->inputs[i], st);
    return name;
}

static int take(mr_output_config *mine, const mr_output_config *cfg, mri_output_rules *rules, mr_error *err)
{
    mr_output_defaults(mine);
    int rc = mri_settings_take(mine, sizeof *mine, cfg, "output", err);
    if (rc == MR_OK && mine->input_count && !mine->inputs)
        rc = mr_error_set(err, MR_EINVAL, "mr_output_config: %u inputs, and no list", mine->input_count);
    *rules = (mri_output_rules){.force = mine->force,
                                .take_part = mine->force,
                                .resume = mine->resume,
                                .unsynced = mine->unsynced,
                                .input = is_input,
                                .context = mine};
    return rc;
}

int mr_output_check(const char *path, const mr_output_config *cfg, mr_error *err)
{
    mr_output_config mine;
    mri_output_rules rules;
    MRI_GIVEN(err, path);
    const int rc = take(&mine, cfg, &rules, err);
    return rc ? rc : mri_output_check(path, &rules, err);
}

int mr_output_open(mr_output **out, const char *path, const mr_output_config *cfg, mr_error *err)
{
    mri_output_rules rules;
    MRI_GIVEN(err, out);
    *out = NULL;
    MRI_GIVEN(err, path);
    mr_output *o = calloc(1, sizeof *o);
    if (!o) return mr_error_set(err, MR_ENOMEM, "out of memory for an output");
    o->process = mri_process();
    int rc = take(&o->cfg, cfg, &rules, err);
    if (!rc)
        rc = o->cfg.log ? mri_output_open_log(&o->out, path, &rules, err)
                        : mri_output_open(&o->out, path, &rules, err);
    if (rc) free(o);
    else *out = o;
    return rc;
}

int mr_output_fd(const mr_output *o) { return MRI_IS_OWN(o) ? mri_output_fd(o->out) : -1; }

int mr_output_write(mr_output *o, const void *data, size_t bytes, mr_error *err)
{
    struct stat st;
    MRI_OWN(err, o);
    if (bytes > 0) MRI_GIVEN(err, data);
    const char *part = mri_output_part(o->out);
    if (fstat(mri_output_fd(o->out), &st) != 0)
        return mri_error_place(err, mr_error_sys(err, errno, "cannot look at it"), part, MR_NOWHERE,
                               MR_NOWHERE);
    return mri_pwrite_all(mri_output_fd(o->out), data, bytes, (uint64_t)st.st_size, part, err);
}

int mr_output_commit(mr_output *o, mr_error *err)
{
    MRI_OWN(err, o);
    const int rc = mri_output_commit(o->out, NULL, NULL, err);
    mr_output_abandon(o, false);
    return rc;
}

void mr_output_abandon(mr_output *o, bool keep)
{
    if (!o || mri_is_inherited(o->process)) return;
    mri_output_close(o->out, keep);
    free(o);
}

int mr_output_whole(const char *path, const void *data, size_t bytes, const mr_output_config *cfg,
                    mr_error *err)
{
    mr_output *out;
    mr_output_config mine;
    MRI_GIVEN(err, path);
    if (bytes) MRI_GIVEN(err, data);
    mr_output_defaults(&mine);
    int rc = mri_settings_take(&mine, sizeof mine, cfg, "output", err);
    mine.log = mine.resume = false;
    if (rc == MR_OK) rc = mr_output_open(&out, path, &mine, err);
    if (rc) return rc;
    rc = bytes ? mr_output_write(out, data, bytes, err) : MR_OK;
    if (rc == MR_OK) return mr_output_commit(out, err);
    mr_output_abandon(out, false);
    return rc;
}

int mr_output_sync_all(const char *folder, mr_error *err)
{
    MRI_GIVEN(err, folder);
    return mri_output_sync_all(folder, err);
}

int mr_output_remove(const char *path, const mr_output_config *cfg, mr_error *err)
{
    mr_output_config mine;
    mri_output_rules rules;
    MRI_GIVEN(err, path);
    const int rc = take(&mine, cfg, &rules, err);
    return rc ? rc : mri_output_remove(path, &rules, err);
}
