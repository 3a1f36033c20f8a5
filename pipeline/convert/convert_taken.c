/* pipeline/convert/convert_taken.c: checks on resume that the files that were read have not changed. A
 * resumed run does not read converted samples again; if a picture was replaced meanwhile, the set would be
 * made of two states of the source. */
#include <inttypes.h>
#include <stdio.h>
#include <sys/stat.h>

#include "base/util.h"
#include "formats/source/source.h"
#include "formats/storage/output.h"
#include "pipeline/convert/convert.h"

enum { STAMP_BYTES = 8, STAMPS_AT_ONCE = 4096 };

struct mri_taken {
    const mri_convert_plan *plan;
    mri_output *out; /* never gets its name */
};

static int no_memory(mr_error *err)
{
    return mr_error_set(err, MR_ENOMEM, "out of memory for the list of taken samples");
}

int mri_taken_open(mri_taken **out, const mri_convert_plan *plan, const char *dst, mr_error *err)
{
    const mri_output_rules rules = {.force = true,
                                    .take_part = plan->cfg.force,
                                    .resume = plan->cfg.resume,
                                    .input = mri_source_input,
                                    .context = plan->src};
    const size_t room = strlen(dst) + sizeof ".taken";
    char *path = malloc(room);
    mri_taken *t = calloc(1, sizeof *t);
    *out = t;
    if (path) snprintf(path, room, "%s.taken", dst);
    const int rc = path && t ? mri_output_open(&t->out, path, &rules, err) : no_memory(err);
    if (t) t->plan = plan;
    free(path);
    return rc;
}

static int changed(const mri_taken *t, uint64_t sample, uint64_t count, mr_error *err)
{
    char path[4096];
    const int rc = mr_error_set(
        err, MR_EEXIST,
        "cannot resume: this file was replaced or changed after the interrupted run had read it "
        "(time, size or inode), %" PRIu64 " of the samples so far are concerned; begin anew with "
        "force (--force)",
        count);
    mr_error_at(err, mr_source_sample_path(t->plan->src, sample, path, sizeof path), MR_NOWHERE, sample);
    return rc;
}

int mri_taken_check(const mri_taken *t, uint64_t first, mr_error *err)
{
    uint8_t stamps[STAMPS_AT_ONCE * STAMP_BYTES];
    uint64_t found = 0, count = 0;
    struct stat st;
    const int fd = mri_output_fd(t->out);
    if (fstat(fd, &st) != 0) return MR_OK; /* an earlier version noted nothing */
    first = mri_min_u64(first, (uint64_t)st.st_size / STAMP_BYTES);
    for (uint64_t at = 0; at < first; at += STAMPS_AT_ONCE) {
        const uint64_t n = mri_min_u64(first - at, STAMPS_AT_ONCE);
        const int rc = mri_pread_all(fd, stamps, (size_t)n * STAMP_BYTES, at * STAMP_BYTES,
                                     mri_output_part(t->out), err);
        if (rc) return rc;
        for (uint64_t k = 0; k < n; k++) {
            const uint64_t then = mri_le64(stamps + k * STAMP_BYTES);
            const uint64_t now = then ? mri_source_stamp(t->plan->src, at + k) : 0;
            if (then == now) continue;
            if (count++ == 0) found = at + k;
        }
    }
    return count ? changed(t, found, count, err) : MR_OK;
}

bool mri_taken_differs(const mri_convert_plan *plan, const char *dst, char *buf, size_t room)
{
    char path[4096];
    uint8_t stamp[STAMP_BYTES];
    snprintf(path, sizeof path, "%s.taken.part", dst);
    FILE *f = fopen(path, "re");
    if (!f) return false;
    uint64_t k = 0;
    bool same = true;
    while (same && k < plan->info->count && fread(stamp, sizeof stamp, 1, f) == 1) {
        const uint64_t then = mri_le64(stamp);
        same = then == 0 || then == mri_source_stamp(plan->src, k);
        if (same) k++;
    }
    fclose(f);
    const char *name = same ? NULL : mr_source_sample_path(plan->src, k, path, sizeof path);
    if (name) snprintf(buf, room, "sample %" PRIu64 " is now %.400s, another file or version", k, name);
    return name != NULL;
}

int mri_taken_note(mri_taken *t, uint64_t sample, uint64_t stamp, mr_error *err)
{
    uint8_t bytes[STAMP_BYTES];
    mri_put_le64(bytes, stamp);
    return mri_pwrite_all(mri_output_fd(t->out), bytes, sizeof bytes, sample * STAMP_BYTES,
                          mri_output_part(t->out), err);
}

int mri_taken_remove(mri_taken *t, mr_error *err)
{
    if (!t) return MR_OK;
    const int rc = mri_output_discard(t->out, err);
    return rc ? rc : mri_sync_folder_of(mri_output_part(t->out), err); /* a power cut does not restore it */
}

void mri_taken_close(mri_taken *t, bool keep)
{
    if (!t) return;
    mri_output_close(t->out, keep);
    free(t);
}
