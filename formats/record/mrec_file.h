/* formats/record/mrec_file.h: the inside of an open .mrec file, for reader, verifier and the sources on top.
 * Private. */
#ifndef MRI_MREC_FILE_H
#define MRI_MREC_FILE_H

#include "formats/record/mrec.h"
#include "formats/remote/remote.h"

struct mr_mrec {
    mri_mrec_header h;
    mri_meta meta;
    mr_mrec_info info;
    char *path;
    int fd;                  /* of a remote file: read it as mrec_reader.c does or after a request only */
    mri_remote_file *remote; /* NULL: a local file. Outlives this */
    uint8_t *index;          /* all pages, checked; NULL: read page by page */
};

/* mr_mrec_open() of a remote file. */
int mri_mrec_open_remote(mr_mrec **out, mri_remote_file *remote, uint64_t index_memory_bytes, mr_error *err);

int mri_mrec_entry(const mr_mrec *m, uint64_t record, mri_index_entry *out, mr_error *err);
/* A page of the index from disk, checked with the places of its entries. */
int mri_mrec_index_page(const mr_mrec *m, uint64_t page, uint8_t out[MRI_MREC_BLOCK], mr_error *err);
/* The smallest and the largest label of a file with records: from the header, from an index in memory, else
 * by reading all of it. */
int mri_mrec_labels(const mr_mrec *m, int64_t *min, int64_t *max, mr_error *err);
uint64_t mri_mrec_memory_bytes(const mr_mrec *m);

#endif
