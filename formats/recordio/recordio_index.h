/* formats/recordio/recordio_index.h: builds the index of RecordIO files, and collects further facts of a
 * scan. Private.
 *
 *   .idx and .lst that belong together ─► extents and labels, after a look at some records ─┐
 *   else the headers of all records ────► extents and labels, compared with .idx and .lst ──┴─► framed.h
 *                                     └─► boxes and names (recordio_facts.h)
 *
 * Labels come from the records; an accompanying list is only compared, and gives the names of the
 * pictures. */
#ifndef MRI_RECORDIO_INDEX_H
#define MRI_RECORDIO_INDEX_H

#include "formats/fileset/fileset.h"
#include "formats/recordio/recordio.h"
#include "formats/recordio/recordio_facts.h"

enum { MRI_REC_MOST_LABELS = 1024 }; /* that one can be chosen from */

typedef struct mri_rec_set { /* fixed after open */
    mri_framed framed;
    const mr_source_config *cfg; /* during open */
    uint32_t label_at;           /* which of packed labels is the class */
    bool detection;              /* the labels are objects: none of them is a class unless it was asked for */
    uint64_t relabelled;         /* during open: records with another label than the list */
    mri_rec_gather gather;       /* during open */
    mri_rec_facts facts;
} mri_rec_set;

/* For mri_framed_format; context: the set. */
int mri_rec_scan(void *context, mri_scan *s, uint32_t file, mr_error *err);
int mri_rec_note(void *context, uint8_t **out, size_t *bytes, mr_error *err);
/* The first record decides whether there are several labels, and whether they are objects. */
int mri_rec_count_labels(mri_rec_set *x, bool class_asked, uint32_t *out, mr_error *err);

/* The requested label; packed: the labels after the header. False when the record has fewer labels. */
bool mri_rec_label_of(const mri_rec_set *x, const mri_picture_head *h, const uint8_t *packed, double *out);
/* A whole number with room for an offset. */
bool mri_rec_is_class(double label);

#endif
