/* formats/storage/space.c: is there room for what will be written? Asked before the first byte; what others
 * write meanwhile is not known. */
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/statvfs.h>

#include "base/util.h"
#include "millrace/formats.h"

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

/* "1.5 GiB" */
static const char *size_text(uint64_t bytes, char out[32])
{
    static const char *const units[] = {"B", "KiB", "MiB", "GiB", "TiB", "PiB", "EiB"};
    double value = (double)bytes;
    size_t k = 0;
    while (value >= 1024 && k + 1 < MRI_ARRAY_COUNT(units)) value /= 1024, k++;
    snprintf(out, 32, k ? "%.1f %s" : "%.0f %s", value, units[k]);
    return out;
}

int mr_output_check_space(const char *path, uint64_t bytes, uint64_t *free_bytes, mr_error *err)
{
    struct statvfs v;
    char needed[32], there[32];
    MRI_GIVEN(err, path);
    if (free_bytes) *free_bytes = UINT64_MAX;
    if (find(path, &v) != 0 || v.f_blocks == 0) return MR_OK;
    const uint64_t room = (uint64_t)v.f_bavail * v.f_frsize;
    if (free_bytes) *free_bytes = room;
    if (bytes <= room) return MR_OK;
    const int rc =
        mr_error_sys(err, ENOSPC,
                     "about %s are to be written, and %s are free: free some space, choose a place "
                     "on another disk, or write in spite of it (--no-space-check)",
                     size_text(bytes, needed), size_text(room, there));
    return mr_error_at(err, path, MR_NOWHERE, MR_NOWHERE), rc;
}
