/* formats/record/shards.h: shard lists: a text file that names .mrec files in order (see FORMAT.md).
 * Private. */
#ifndef MRI_SHARDS_H
#define MRI_SHARDS_H

#include "millrace/formats.h"

typedef struct mri_shard {
    uint64_t count;
    const char *path; /* as written: relative to the list's folder, or absolute */
} mri_shard;

typedef struct mri_shards {
    char *text;
    mri_shard *shard;
    uint32_t count;
    uint64_t records;
} mri_shards;

bool mri_shards_magic(const void *head, size_t bytes);
int mri_shards_read(mri_shards *out, const char *list_path, mr_error *err);
void mri_shards_fini(mri_shards *s);
/* The path of a shard, relative to the current folder; malloc'd. */
char *mri_shards_resolve(const char *list_path, const char *shard_path);

#endif
