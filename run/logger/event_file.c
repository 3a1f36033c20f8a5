/* run/logger/event_file.c: see event_file.h.
 *
 * TensorBoard reads the files of a folder in the order of their names and stays at the last one that has
 * something: two runs of one second get .1, .2, ... after the host. */
#include "run/logger/event_file.h"

#include <ctype.h>
#include <errno.h>
#include <inttypes.h>
#include <math.h>
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>
#include <time.h>
#include <unistd.h>

#include "base/file.h"

enum { ATTEMPTS = 10, RECORD = 4096 };

static double wall_s(void)
{
    struct timespec now;
    clock_gettime(CLOCK_REALTIME, &now);
    return (double)now.tv_sec + 1e-9 * (double)now.tv_nsec;
}

static int put(mri_event_file *e, const mr_scalar_event *event, bool used)
{
    uint8_t record[RECORD];
    return mri_log_file_put(&e->file, record, mr_scalar_event_record(event, record, sizeof record), used);
}

/* A name of other characters than these would be one that nobody can type. */
static void host_name(char *out, size_t bytes)
{
    if (gethostname(out, bytes) != 0) snprintf(out, bytes, "localhost");
    out[bytes - 1] = '\0';
    for (char *c = out; *c; c++)
        if (!isalnum((unsigned char)*c) && !strchr(".-_", *c)) *c = '_';
}

static int make_folder(mri_event_file *e, const char *folder, mr_error *err)
{
    struct stat st;
    if (strlen(folder) >= sizeof e->folder - 256)
        return mr_error_set(err, MR_EINVAL, "path too long: %zu characters", strlen(folder));
    strcpy(e->folder, folder);
    e->made_folder = mri_make_folder_deep(folder, 0777);
    const int why = errno;
    if (e->made_folder || (why == EEXIST && stat(folder, &st) == 0 && S_ISDIR(st.st_mode))) return MR_OK;
    if (why == EEXIST)
        mr_error_set(err, MR_EEXIST,
                     "expected a folder for event files, found something else: choose another name");
    else mr_error_sys(err, why, "cannot make the folder for event files");
    return mr_error_at(err, folder, MR_NOWHERE, MR_NOWHERE);
}

static int open_new(mri_event_file *e, const mri_log_file_config *cfg, mr_error *err)
{
    char host[128], path[sizeof e->folder + 256];
    int rc = MR_EEXIST;
    host_name(host, sizeof host);
    const int64_t now = (int64_t)wall_s();
    for (int i = 0; rc == MR_EEXIST && i < ATTEMPTS; i++) {
        *err = (mr_error)MR_ERROR_INIT;
        int n = snprintf(path, sizeof path, "%s/events.out.tfevents.%" PRId64 ".%s", e->folder, now, host);
        if (i > 0) snprintf(path + n, sizeof path - (size_t)n, ".%d", i);
        rc = mri_log_file_open(&e->file, path, cfg, err);
    }
    return rc;
}

int mri_event_file_open(mri_event_file *e, const char *folder, const mri_log_file_config *cfg,
                        uint64_t updates, mr_error *err)
{
    *e = (mri_event_file){0};
    int rc = make_folder(e, folder, err);
    if (rc == MR_OK) rc = open_new(e, cfg, err);
    if (rc) {
        if (e->made_folder) rmdir(e->folder);
        return rc;
    }
    rc = put(e, &(mr_scalar_event){.wall_s = wall_s(), .first = true}, false);
    if (rc == MR_OK && updates)
        rc = put(e, &(mr_scalar_event){.wall_s = wall_s(), .step = (int64_t)updates + 1, .restart = true},
                 false);
    if (rc) {
        *err = e->file.failure;
        mri_event_file_close(e);
    }
    return rc;
}

void mri_event_file_step(mri_event_file *e, const mr_step_report *r)
{
    mr_scalar scalars[4] = {
        {"step/loss", (float)r->loss}, {"step/lr", r->lr}, {"step/samples_per_s", (float)r->samples_per_s}};
    uint32_t count = 3;
    if (!isnan(r->accuracy)) scalars[count++] = (mr_scalar){"step/accuracy", (float)r->accuracy};
    put(e,
        &(mr_scalar_event){
            .wall_s = wall_s(), .step = (int64_t)r->updates, .scalars = scalars, .count = count},
        true);
}

void mri_event_file_eval(mri_event_file *e, const mr_eval_report *r)
{
    mr_scalar scalars[2] = {{"step/val_loss", (float)r->loss}};
    uint32_t count = 1;
    if (!isnan(r->accuracy)) scalars[count++] = (mr_scalar){"step/val_accuracy", (float)r->accuracy};
    put(e,
        &(mr_scalar_event){
            .wall_s = wall_s(), .step = (int64_t)r->updates, .scalars = scalars, .count = count},
        true);
}

void mri_event_file_epoch(mri_event_file *e, const mr_report *r, uint64_t updates)
{
    mr_scalar scalars[8];
    uint32_t count = 0;
    if (r->steps) { /* without steps the report is a validation that an earlier run did not reach */
        scalars[count++] = (mr_scalar){"epoch/loss", (float)r->loss};
        if (!isnan(r->accuracy)) scalars[count++] = (mr_scalar){"epoch/accuracy", (float)r->accuracy};
        scalars[count++] = (mr_scalar){"epoch/lr", r->lr};
        scalars[count++] = (mr_scalar){"epoch/samples_per_s", (float)r->samples_per_s};
        scalars[count++] = (mr_scalar){"epoch/stall_fraction", (float)r->stall_fraction};
    }
    if (r->has_val) {
        scalars[count++] = (mr_scalar){"epoch/val_loss", (float)r->val_loss};
        if (!isnan(r->val_accuracy))
            scalars[count++] = (mr_scalar){"epoch/val_accuracy", (float)r->val_accuracy};
    }
    const mr_scalar_event event = {
        .wall_s = wall_s(), .step = (int64_t)updates, .scalars = scalars, .count = count};
    put(e, &event, true);
    mri_log_file_sync(&e->file);
}

int mri_event_file_close(mri_event_file *e)
{
    const int rc = mri_log_file_close(&e->file);
    if (e->made_folder && !e->file.used) rmdir(e->folder); /* not when there is anything in it */
    return rc;
}
