/* pipeline/export/export_renamed.c: see export_renamed.h. */
#include "pipeline/export/export_renamed.h"

#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <string.h>
#include <unistd.h>

#include "settings/json_put.h"

static const char line_begins[] = "{\"event\": \"renamed"; /* renamed, renamed_class */

static int failed(const mri_export_renamed *r, mr_error *err)
{
    mr_error_sys(err, errno, "cannot write the list of changed names");
    return mr_error_at(err, r->path, MR_NOWHERE, MR_NOWHERE);
}

static int begin(mri_export_renamed *r, const char *path, const mr_source *src, bool force, mr_error *err)
{
    mr_output_config cfg;
    mr_output_defaults(&cfg);
    r->src = src;
    cfg.inputs = &r->src;
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

int mri_export_renamed_add(mri_export_renamed *r, const char *path, const mr_source *src, bool force,
                           uint64_t sample, const char *name, const char *file, mr_error *err)
{
    const int rc = r->out ? MR_OK : begin(r, path, src, force, err);
    if (rc) return rc;
    fprintf(r->lines, "%s\", \"sample\": %" PRIu64 ", \"name\": ", line_begins, sample);
    mri_json_put_text(r->lines, name);
    fputs(", \"file\": ", r->lines);
    mri_json_put_text(r->lines, file);
    fputs("}\n", r->lines);
    r->count++;
    return fflush(r->lines) == 0 && !ferror(r->lines) ? MR_OK : failed(r, err);
}

int mri_export_renamed_class(mri_export_renamed *r, const char *path, const mr_source *src, bool force,
                             const char *name, const char *folder, mr_error *err)
{
    const int rc = r->out ? MR_OK : begin(r, path, src, force, err);
    if (rc) return rc;
    fprintf(r->lines, "%s_class\", \"name\": ", line_begins);
    mri_json_put_text(r->lines, name);
    fputs(", \"folder\": ", r->lines);
    mri_json_put_text(r->lines, folder);
    fputs("}\n", r->lines);
    r->classes++;
    return fflush(r->lines) == 0 && !ferror(r->lines) ? MR_OK : failed(r, err);
}

int mri_export_renamed_close(mri_export_renamed *r, bool keep, mr_error *err)
{
    int rc = MR_OK;
    if (r->lines && fclose(r->lines) != 0 && keep) rc = failed(r, err);
    if (r->out && keep && !rc) rc = mr_output_commit(r->out, err);
    else if (r->out) mr_output_abandon(r->out, false);
    r->lines = NULL;
    r->out = NULL;
    return rc;
}

void mri_export_renamed_drop(const char *path)
{
    char start[sizeof line_begins - 1];
    FILE *f = fopen(path, "re");
    const bool ours = f && fread(start, 1, sizeof start, f) == sizeof start &&
                      memcmp(start, line_begins, sizeof start) == 0;
    if (f) fclose(f);
    if (ours) unlink(path);
}
