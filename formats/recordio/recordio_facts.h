/* formats/recordio/recordio_facts.h: facts that a scan of RecordIO files finds in addition to the index, and
 * stores with it. Private.
 *
 *   gather  while records are scanned: boxes of object detection; names of pictures, from the lists beside
 *   note    all of it in one block, kept in the index file
 *   facts   the block again, checked: what samples point to
 *
 * Boxes are kept because a record's boxes must become one array, for which parse() has no memory. Names are
 * optional: if they exceed the source's memory limit, they are dropped, and that is reported. */
#ifndef MRI_RECORDIO_FACTS_H
#define MRI_RECORDIO_FACTS_H

#include "formats/recordio/recordio.h"
#include "formats/source/source.h"

typedef struct mri_rec_gather {
    uint64_t samples, start_cap;
    uint64_t *start; /* of each sample its first box; NULL: there are no boxes */
    uint64_t box_count, box_cap, class_cap;
    float *box; /* xmin ymin xmax ymax */
    int64_t *class;
    uint64_t named, name_cap; /* samples before that have a name, or none */
    uint64_t *name_at;
    uint64_t text_bytes, text_cap;
    char *text;
    char *reported; /* lines */
} mri_rec_gather;

/* The next sample's boxes, from its packed labels (count floats). Labels that are not objects give no boxes:
 * parse() reports their error. */
int mri_rec_add_boxes(mri_rec_gather *g, const uint8_t *labels, uint32_t count, const mr_source_config *cfg,
                      mr_error *err);
/* The name of a sample, in rising order; skipped samples have no name. */
int mri_rec_add_name(mri_rec_gather *g, uint64_t sample, const char *name, mr_error *err);
/* Samples from this one on have no name, whatever was said. */
void mri_rec_drop_names(mri_rec_gather *g, uint64_t from_sample);
MR_PRINTF(2, 3) void mri_rec_tell(mri_rec_gather *g, const char *format, ...);
/* *out is malloc'd. room: bytes it may have; names that need more are left out. */
int mri_rec_gathered(mri_rec_gather *g, uint64_t samples, uint64_t room, uint8_t **out, size_t *bytes,
                     mr_error *err);
void mri_rec_gather_fini(mri_rec_gather *g);

typedef struct mri_rec_facts { /* all of it points into the note */
    const uint64_t *start;     /* samples + 1; NULL: no boxes */
    const float *box;
    const int64_t *class;
    const uint64_t *name_at; /* samples + 1; NULL: no names */
    const char *text;        /* of the names, without ends */
    const char *reported;    /* NULL: nothing */
} mri_rec_facts;

/* False: the block is invalid for this number of samples. */
bool mri_rec_facts_read(mri_rec_facts *out, const uint8_t *note, size_t bytes, uint64_t samples);

#endif
