/* tools/outputs/renamed.c: see renamed.h. */
#include "tools/outputs/renamed.h"

#include <errno.h>
#include <fcntl.h>
#include <string.h>
#include <unistd.h>

#include "tools/cli/json.h"

static int failed(const renamed_list *r, mr_error *err)
{
    mr_error_sys(err, errno, "cannot write the list of changed names");
    return mr_error_at(err, r->path, MR_NOWHERE, MR_NOWHERE);
}

static int begin(renamed_list *r, const char *path, const mr_source *src, bool force, mr_error *err)
{
    mr_output_config cfg;
    mr_output_defaults(&cfg);
    cfg.inputs = &src;
    cfg.input_count = 1;
    cfg.force = force;
    if (snprintf(r->path, sizeof r->path, "%s", path) >= (int)sizeof r->path)
        return mr_error_set(err, MR_EINVAL, "the folder's name is too long");
    int rc = mr_output_open(&r->out, r->path, &cfg, err);
    if (rc) return rc;
    const int fd = fcntl(mr_output_fd(r->out), F_DUPFD_CLOEXEC, 0);
    r->lines = fd >= 0 ? fdopen(fd, "w") : NULL;
    if (r->lines) return MR_OK;
    rc = failed(r, err);
    if (fd >= 0) close(fd);
    return rc;
}

int renamed_add(renamed_list *r, const char *path, const mr_source *src, bool force, uint64_t sample,
                const char *name, const char *file, mr_error *err)
{
    const int rc = r->out ? MR_OK : begin(r, path, src, force, err);
    if (rc) return rc;
    json_line j = json_begin(r->lines, "renamed");
    json_u64(&j, "sample", sample);
    json_text(&j, "name", name);
    json_text(&j, "file", file);
    json_end(&j);
    r->count++;
    return ferror(r->lines) ? failed(r, err) : MR_OK;
}

int renamed_close(renamed_list *r, bool keep, mr_error *err)
{
    int rc = MR_OK;
    if (r->lines && fclose(r->lines) != 0 && keep) rc = failed(r, err);
    if (r->out && keep && !rc) rc = mr_output_commit(r->out, err);
    else if (r->out) mr_output_abandon(r->out, false);
    r->lines = NULL;
    r->out = NULL;
    return rc;
}
