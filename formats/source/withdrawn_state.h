/* formats/source/withdrawn_state.h: what withdrawn.c found, for withdrawn_moved.c and withdrawn_change.c.
 * Private to these three. */
#ifndef MRI_WITHDRAWN_STATE_H
#define MRI_WITHDRAWN_STATE_H

#include <stdio.h>
#include <string.h>

#include "formats/source/names.h"
#include "formats/source/withdrawn.h"
#include "formats/source/withdrawn_list.h"

enum { MRI_WITHDRAWN_PATH = 4096 };

typedef struct mri_withdrawn_found {
    uint64_t number; /* of the format */
    const mri_withdrawn_entry *entry;
    uint32_t list;
} mri_withdrawn_found;

struct mri_withdrawn {
    mri_names folders;        /* each with a / at its end, or empty: one list for each */
    mri_withdrawn_list *list; /* in their order; most are empty */
    uint32_t list_cap;
    mri_withdrawn_found *found; /* sorted by number, each number once */
    uint64_t count, cap;
    mri_withdrawn_found *again; /* further entries of these samples, sorted alike: of a link and of its file
                                 */
    uint64_t again_count;
    mr_error why; /* code MR_OK: each entry is the sample that it was */
};

/* Where a sample lies: its path (of the file), its extent. False: not in a file, or the format does not know.
 */
static inline bool mri_withdrawn_place(const mr_source *src, uint64_t number, mr_extent *at,
                                       char path[MRI_WITHDRAWN_PATH])
{
    mr_source_file file;
    path[0] = '\0';
    if (src->ops->extent(src, number, at, NULL) != MR_OK) return false;
    if (at->file == MR_FILE_OF_SAMPLE) src->ops->sample_path(src, number, path, MRI_WITHDRAWN_PATH);
    else if (src->ops->file_at && src->ops->file_at(src, at->file, &file) == MR_OK && file.path)
        snprintf(path, MRI_WITHDRAWN_PATH, "%s", file.path);
    return path[0] != '\0';
}

static inline size_t mri_withdrawn_folder_bytes(const char *path)
{
    const char *slash = strrchr(path, '/');
    return slash ? (size_t)(slash + 1 - path) : 0;
}

/* Size and times of a file as one number; 0: it cannot be looked at. A rewritten file has another one. */
uint64_t mri_withdrawn_stamp(const char *path);
/* Hash of the bytes of an extent in the file at path (or of a shared file). */
int mri_withdrawn_hash(const mr_source *src, const char *path, const mr_extent *at, uint64_t *hash,
                       mr_error *err);
/* The same bytes as they are, into buffer. */
int mri_withdrawn_read(const mr_source *src, const char *path, const mr_extent *at, void *buffer,
                       mr_error *err);
/* Was the file of the entry neither the source's nor there, and is it of no sample? */
bool mri_withdrawn_is_missing(const mri_withdrawn_entry *e);

#endif
