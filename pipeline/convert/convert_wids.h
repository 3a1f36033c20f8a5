/* pipeline/convert/convert_wids.h: the shard index of the Python package wids, next to tar archives. Private.
 *
 *   {"__kind__": "wids-shard-index-v1", "wids_version": 1,
 *    "shardlist": [{"url": "train-000000.tar", "nsamples": 100, "filesize": 24729600}, ...]}
 *
 * Names are relative to the index. Readers take the first 100 bytes of a header, as UTF-8, for a member's
 * name: names in a prefix or a PAX record are not known to them. A "name" of the set is left out: readers
 * keep fetched archives under it, and two sets of one name would get each other's. */
#ifndef MRI_CONVERT_WIDS_H
#define MRI_CONVERT_WIDS_H

#include "pipeline/convert/convert_files.h"

#define MRI_WIDS_ENDING ".wids.json"

/* MR_EUNSUPPORTED: readers of an index do not know this member. */
int mri_wids_check_member(const char *name, mr_error *err);

typedef struct mri_wids_set {
    const mri_file_facts *facts; /* of each archive */
    uint32_t count;
    /* Writes the archive's path. */
    void (*path_of)(const void *context, uint32_t at, char *out, size_t room);
    const void *context;
} mri_wids_set;

int mri_wids_write(const char *path, const mri_wids_set *set, const mri_output_rules *rules, mr_error *err);

#endif
