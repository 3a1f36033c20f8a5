/* run/logger/log_file.c: see log_file.h. */
#include "run/logger/log_file.h"

#include <errno.h>
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

static int fail(mri_log_file *f, int why, const char *what, mr_error *err)
{
    mr_error_sys(err, why, "%s", what);
    return mr_error_at(err, f->path, MR_NOWHERE, MR_NOWHERE);
}

/* Report the first failure. */
static int keep(mri_log_file *f, const mr_error *failure)
{
    if (f->failure.code) return f->failure.code;
    f->failure = *failure;
    if (f->cfg.on_failure) f->cfg.on_failure(f->cfg.context, f->path, failure);
    return failure->code;
}

static void give_up(mri_log_file *f)
{
    mr_output_abandon(f->out, true);
    f->out = NULL;
}

int mri_log_file_open(mri_log_file *f, const char *path, const mri_log_file_config *cfg, mr_error *err)
{
    struct stat st;
    *f = (mri_log_file){.cfg = *cfg, .failure = MR_ERROR_INIT};
    if (strlen(path) >= sizeof f->path)
        return mr_error_set(err, MR_EINVAL, "path too long: %zu characters, expected fewer than %zu",
                            strlen(path), sizeof f->path);
    strcpy(f->path, path);
    mr_output_defaults(&f->output);
    f->output.inputs = f->cfg.inputs;
    f->output.input_count = 2;
    f->output.log = true;
    f->output.resume = cfg->resume;
    const int rc = mr_output_open(&f->out, path, &f->output, err);
    if (rc) return rc;
    if (fstat(mr_output_fd(f->out), &st) != 0) {
        const int why = errno;
        give_up(f);
        return fail(f, why, "cannot look at it", err);
    }
    f->bytes = (uint64_t)st.st_size;
    f->made = f->bytes == 0;
    return MR_OK;
}

int mri_log_file_put(mri_log_file *f, const void *data, size_t bytes, bool used)
{
    mr_error err = MR_ERROR_INIT;
    if (!f->out || f->failure.code) return MR_OK;
    const int rc = mr_output_write(f->out, data, bytes, &err);
    if (rc == MR_OK) {
        f->bytes += bytes;
        f->used |= used;
        return MR_OK;
    }
    if (ftruncate(mr_output_fd(f->out), (off_t)f->bytes) != 0) f->used = true; /* a part of it stays */
    return keep(f, &err);
}

int mri_log_file_cut(mri_log_file *f, uint64_t bytes, mr_error *err)
{
    if (ftruncate(mr_output_fd(f->out), (off_t)bytes) != 0)
        return fail(f, errno, "cannot cut off the rest of a killed run", err);
    f->bytes = bytes;
    return MR_OK;
}

void mri_log_file_sync(mri_log_file *f)
{
    mr_error err = MR_ERROR_INIT;
    if (!f->out || f->failure.code || fdatasync(mr_output_fd(f->out)) == 0) return;
    fail(f, errno, "cannot sync", &err);
    keep(f, &err);
}

int mri_log_file_close(mri_log_file *f)
{
    mr_error err = MR_ERROR_INIT;
    if (!f->out) return f->failure.code;
    if (f->made && !f->used) {
        give_up(f);
        f->output.force = true; /* ours, from a moment ago */
        if (mr_output_remove(f->path, &f->output, &err) != MR_OK) keep(f, &err);
        return f->failure.code;
    }
    if (mr_output_commit(f->out, &err) != MR_OK) keep(f, &err);
    f->out = NULL;
    return f->failure.code;
}
