/* formats/storage/space.c: is there room for what will be written? Asked before the first byte; what others
 * write meanwhile is not known. An output is refused only when the disk lacks the bytes that are surely
 * needed. */
#include <errno.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/statvfs.h>

#include "base/util.h"
#include "millrace/formats.h"
#include "settings/number_put.h"

enum { SAMPLES = 24 };

/* The file system of path, or of the first folder above it that exists. */
static int find(const char *path, struct statvfs *out)
{
    char *at = strdup(path);
    int rc = at ? statvfs(at, out) : -1;
    while (rc != 0 && at && errno == ENOENT) {
        char *slash = strrchr(at, '/');
        if (slash && slash > at) *slash = '\0';
        else {
            rc = statvfs(slash ? "/" : ".", out);
            break;
        }
        rc = statvfs(at, out);
    }
    free(at);
    return rc;
}

static uint64_t room_for(const char *path)
{
    struct statvfs v;
    return find(path, &v) != 0 || v.f_blocks == 0 ? UINT64_MAX : (uint64_t)v.f_bavail * v.f_frsize;
}

int mr_output_check_estimate(const char *path, uint64_t likely_bytes, uint64_t least_bytes,
                             uint64_t *free_bytes, mr_error *err)
{
    char needed[MRI_NUMBER_ROOM], there[MRI_NUMBER_ROOM];
    MRI_GIVEN(err, path);
    const uint64_t room = room_for(path);
    if (free_bytes) *free_bytes = room;
    if (least_bytes <= room) return MR_OK;
    const int rc =
        mr_error_sys(err, ENOSPC,
                     "about %s are to be written, and %s are free: free some space, choose a place "
                     "on another disk, or write in spite of it (--no-space-check)",
                     mri_size_text((double)mri_max_u64(likely_bytes, least_bytes), needed, sizeof needed),
                     mri_size_text((double)room, there, sizeof there));
    return mr_error_at(err, path, MR_NOWHERE, MR_NOWHERE), rc;
}

int mr_output_check_space(const char *path, uint64_t bytes, uint64_t *free_bytes, mr_error *err)
{
    return mr_output_check_estimate(path, bytes, bytes, free_bytes, err);
}

int mr_output_estimate(uint64_t count, mr_sample_bytes *bytes_of, void *context, uint64_t *likely_bytes,
                       uint64_t *least_bytes, mr_error *err)
{
    MRI_GIVEN(err, bytes_of);
    MRI_GIVEN(err, likely_bytes);
    MRI_GIVEN(err, least_bytes);
    const uint64_t some = mri_min_u64(count, SAMPLES);
    double sum = 0, squares = 0;
    for (uint64_t k = 0; k < some; k++) {
        const double bytes = (double)bytes_of(context, count / some * k + count % some * k / some);
        sum += bytes;
        squares += bytes * bytes;
    }
    *likely_bytes = *least_bytes = 0;
    if (some == 0) return MR_OK;
    const double mean = sum / (double)some, variance = fmax(0, squares / (double)some - mean * mean),
                 error = some == count ? 0 : 3 * sqrt(variance / (double)some);
    *likely_bytes = (uint64_t)(mean * (double)count);
    *least_bytes = (uint64_t)(fmax(0, mean - error) * (double)count);
    return MR_OK;
}
