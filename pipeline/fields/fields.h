/* pipeline/fields/fields.h: fields of a sample besides picture and label, on their way into a batch. Private.
 *
 * Takes a source's schema and the fields asked for, then samples. Gives rows of a slot in one layout,
 * whatever the lengths, and the view of them in a share of a batch. Callers: slots and stages, the loader,
 * and the converter, which asks for the fields that follow a picture; first_sample.h looks at first samples
 * for the latter two.
 *
 *   open    names against the source's schema ──► a plan for each field: type, element, room in a row
 *           (fields.c)
 *   worker  one sample's values ──► row i of its slot; rows that vary stand `room` elements apart
 *           (field_rows.c)
 *   last    the batch's longest row is known: rows move together to that width, pad after each
 *           (field_rows.c)
 *
 *     filling   | aaaa...... | bb........ | cccccc.... |      room: most, rounded up to width_multiple
 *     whole     | aaaa.. | bb.... | cccccc |                  width: the longest (1 at least), likewise
 *
 * A batch's contents depend on its samples alone (I2), not on which worker filled a row when. A row's room is
 * taken for the most there may be, so that a slot's memory is known at open (I10) and no sample waits for
 * another. */
#ifndef MRI_FIELDS_H
#define MRI_FIELDS_H

#include "pipeline/augment/geometry.h"
#include "pipeline/pixels/pixels.h"

typedef struct mri_field_plan { /* fixed after open */
    char name[MR_MAX_NAME + 1];
    uint32_t at;  /* in the source's schema */
    mr_type type; /* there */
    mr_role role;
    mr_dtype dtype; /* as delivered */
    bool in_pixels, varies;
    uint32_t columns;    /* of boxes */
    uint32_t most, room; /* elements: of a sample at most; in a row that is being filled */
    uint32_t multiple;   /* of the width */
    size_t element_bytes, row_bytes;
    uint8_t pad[8]; /* one number of dtype */
} mri_field_plan;

typedef struct mri_fields {
    uint32_t count;
    uint32_t most_boxes; /* of any field; 0: none */
    bool has_masks;
    const char *crop; /* name of the boxes that crops go by, delivered or not; NULL: they do not ask. The
                         source's */
    uint32_t crop_at; /* in its schema */
    bool crop_in_pixels;
    mri_field_plan field[MR_LOADER_MAX_FIELDS];
} mri_fields;

/* One field of a slot. */
typedef struct mri_rows {
    uint8_t *data;
    int32_t *length; /* NULL where nothing varies */
    uint32_t width;  /* set by mri_fields_close() */
} mri_rows;

/* What one worker needs. Start with {0}. */
typedef struct mri_field_scratch {
    uint32_t *which; /* boxes that are left, by number */
    uint32_t kept;
    uint64_t boxes; /* and how many there were */
    mri_buffer mask;
} mri_field_scratch;

typedef struct mri_fields_config {
    const mr_source *source;
    const mr_loader_field *asked;
    uint32_t asked_count;
    uint32_t width_multiple;
    uint64_t may_be_bad;   /* damaged samples that a look at the first ones may pass over (first_sample.h) */
    bool cached;           /* samples come out of a cache, which keeps no fields */
    uint32_t out_h, out_w; /* of pictures in the batch */
} mri_fields_config;

/* info gets asked_count entries, whose names belong to f. MR_EINVAL names the available fields, or the
 * requirements of a role. */
int mri_fields_plan(mri_fields *f, mr_loader_field_info *info, const mri_fields_config *cfg, mr_error *err);
/* Find the boxes for an augmentation that takes them: the first delivered, else the source's field named
 * boxes. After mri_fields_plan(). */
int mri_fields_plan_crops(mri_fields *f, const mri_fields_config *cfg, mr_error *err);
/* The error for a source without pictures when no field was named. */
int mri_fields_missing(const mr_source_info *src, mr_error *err);

/* Bytes of all rows and lengths of `samples` samples, saturated. */
uint64_t mri_fields_bytes(const mri_fields *f, uint64_t samples);
/* Cut memory, of mri_fields_bytes(batch) and on MR_DEVICE_ALIGN, into rows. */
void mri_fields_layout(const mri_fields *f, uint8_t *memory, size_t batch, mri_rows *rows);

int mri_field_scratch_init(mri_field_scratch *s, const mri_fields *f);
void mri_field_scratch_fini(mri_field_scratch *s);
void mri_field_scratch_drop(mri_field_scratch *s); /* frees its memory for pictures */
/* The most it may hold for pictures of up to these pixels. */
uint64_t mri_field_scratch_bound_bytes(const mri_fields *f, uint64_t pixels);

/* ---- field_rows.c ---- */
/* Values into row i. g: where the picture went; used only where there is one. Errors of a bad sample name the
 * field. */
int mri_fields_place(const mri_fields *f, mri_field_scratch *s, const mri_rows *rows, uint32_t i,
                     const mr_sample *sample, const mri_geometry *g, mr_error *err);
/* A sample's boxes for its crops, where they ask for them. The error of bad ones names the field. */
int mri_fields_crop_boxes(const mri_fields *f, const mr_sample *sample, mri_boxes *out, mr_error *err);
/* A mask's numbers, rows of the stored picture's width without gaps: the value's own, or unpacked into
 * room. */
int mri_mask_numbers(const mr_value *v, const mri_geometry *g, mri_buffer *room, const uint8_t **out,
                     mr_error *err);
/* A row without a sample: empty, and pad where it cannot be. */
void mri_fields_blank(const mri_fields *f, const mri_rows *rows, uint32_t i);
/* All rows are in place: settle widths. One thread. */
void mri_fields_close(const mri_fields *f, mri_rows *rows, uint32_t count);
/* As the outside sees a whole batch from sample `first` on. */
void mri_fields_show(const mri_fields *f, const mri_rows *rows, uint32_t first, mr_batch_field *out);

#endif
