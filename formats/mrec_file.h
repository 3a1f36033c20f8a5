/* formats/mrec_file.h: the inside of an open .mrec file, for reader, verifier and the sources on top. Private. */
#ifndef MRI_MREC_FILE_H
#define MRI_MREC_FILE_H

#include "formats/mrec.h"

struct mr_mrec {
    mri_mrec_header h;
    mri_meta        meta;
    mr_mrec_info    info;
    char           *path;
    int             fd;
    uint8_t        *index; /* all pages, checked; NULL: read page by page */
};

/* fixed after open; any thread */
int      mri_mrec_entry(const mr_mrec *m, uint64_t record, mri_index_entry *out, mr_error *err);
uint64_t mri_mrec_memory_bytes(const mr_mrec *m);

#endif
