/* formats/tar/source_tar.h: an open WebDataset, and a sample of it from its bytes. Private.
 *
 * source_tar.c opens archives and makes their index; tar_parse.c turns the bytes of an extent into a sample.
 */
#ifndef MRI_SOURCE_TAR_H
#define MRI_SOURCE_TAR_H

#include "formats/fileset/fileset.h"
#include "formats/tar/tar.h"
#include "formats/tar/tar_classes.h"
#include "formats/tar/tar_more.h"
#include "formats/tar/tar_sample.h"

typedef struct mri_tar_source { /* fixed after open */
    mri_framed f;
    mri_tar_schema schema;
    mri_tar_classes classes;
    mri_tar_dot dot;
    char report_text[1024];
    /* while opening */
    const mr_source_config *cfg;
    bool has_schema;
    bool keys_settle; /* somebody named a member with a dot in it: the first dot holds */
    bool folds;       /* the first dot does not make samples, the last one does */
    mri_tar_notes notes;
    mri_tar_more *more;      /* NULL: nothing is scanned */
    uint32_t cut, first_cut; /* archives that end after a member, without a block of zeros */
    bool alone_cut;          /* one archive, and no other shows whether its writer omits the mark */
    uint8_t *class_text;     /* as the first archive that has it brings it, or NULL */
    size_t class_bytes;
} mri_tar_source;

/* mri_source_ops.parse and .sample_name. Any bytes are safe. */
int mri_tar_source_parse(const mr_source *src, uint64_t sample, const void *data, size_t bytes,
                         mr_sample *out, mr_error *err);
int mri_tar_source_name(const mr_source *src, uint64_t sample, const void *data, size_t bytes, char *buf,
                        size_t buf_bytes, mr_error *err);

#endif
