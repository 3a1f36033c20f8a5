/* formats/mds/mds.h: shards of MDS, the format of Mosaic Streaming, and the list of them. Private.
 *
 *   shard.00000.mds | count u32 | count + 1 offsets u32 | columns as JSON | sample 0 | sample 1 | ... |
 *   a sample        | bytes u32 of each column without a fixed size | values of the columns, in their order |
 *   index.json      {"version": 2, "shards": [{columns, "raw_data", "zip_data", "samples", ...}, ...]}
 *
 * Numbers are little-endian. Offsets count from the file's start; the last one is its end. A column has a
 * name, an encoding and a size, null where it differs from sample to sample. The columns in a shard and in
 * the index are the same, so that one shard can be read without the index.
 *
 * Encodings: bytes; str, json, str_float, str_decimal (text); int, int8 ... uint64, str_int (whole numbers);
 * float16, float32, float64; jpeg, png (a picture file); pil (pixels); ndarray, ndarray:DTYPE,
 * ndarray:DTYPE:SHAPE. Others (pkl, list[jpeg], ...) stay bytes: nothing in them is executed.
 *
 * The room: takes a folder with an index, or a shard, and gives a format for the table in formats/open.c, and
 * the texts and values that a writer needs. Pure but for source_mds.c and mds_index.c. */
#ifndef MRI_MDS_H
#define MRI_MDS_H

#include "base/util.h"
#include "formats/source/value.h"

enum {
    MRI_MDS_ENCODING_ROOM = 128,
    MRI_MDS_MAX_CONFIG = 1 << 20 /* bytes of the columns' text */
};

typedef enum mri_mds_kind {
    MRI_MDS_BYTES,
    MRI_MDS_OPAQUE, /* bytes of an encoding that is not taken apart */
    MRI_MDS_TEXT,
    MRI_MDS_INT,
    MRI_MDS_STR_INT,
    MRI_MDS_FLOAT,
    MRI_MDS_PICTURE,
    MRI_MDS_PIL,
    MRI_MDS_ARRAY,
} mri_mds_kind;

typedef struct mri_mds_column {
    char name[MR_MAX_NAME + 1];
    char encoding[MRI_MDS_ENCODING_ROOM];
    mri_mds_kind kind;
    bool is_unsigned;          /* INT: of 2, 4 or 8 bytes */
    uint32_t bytes;            /* of every value; 0: each sample says it */
    mr_dtype dtype;            /* ARRAY */
    uint32_t ndim;             /* ARRAY; 0: each value says its shape */
    uint64_t dim[MR_MAX_DIMS]; /* ARRAY */
} mri_mds_column;

typedef struct mri_mds_schema {
    uint32_t count;
    uint32_t varied; /* columns without a fixed size */
    mri_mds_column column[MR_MAX_FIELDS];
} mri_mds_schema;

typedef struct mri_mds_cell {
    const uint8_t *data;
    uint32_t bytes;
} mri_mds_cell;

/* ---- columns (mds_columns.c) ---- */
/* The columns of a shard, from its JSON text. MR_EFORMAT, MR_EUNSUPPORTED, MR_ENOMEM. */
int mri_mds_schema_read(mri_mds_schema *out, const void *text, size_t bytes, mr_error *err);
bool mri_mds_schema_same(const mri_mds_schema *a, const mri_mds_schema *b);
/* name and encoding are set: what follows from them. size: as the shard has it; 0: null. */
int mri_mds_column_settle(mri_mds_column *c, uint64_t size, mr_error *err);
/* The text for a shard's head, malloc'd; NULL: no memory. */
char *mri_mds_schema_text(const mri_mds_schema *s, uint64_t size_limit);

/* ---- values (mds_value.c) ---- */
/* The values of a sample, one for each column. Any bytes are safe. */
int mri_mds_split(const mri_mds_schema *s, const void *data, size_t bytes, mri_mds_cell *cells,
                  mr_error *err);
/* As a value of a field; of ARRAY without a shape it is in the data. Points into the cell. */
int mri_mds_value(const mri_mds_column *c, const mri_mds_cell *cell, mr_value *out, mr_error *err);
/* A whole number. */
int mri_mds_int(const mri_mds_column *c, const mri_mds_cell *cell, int64_t *out, mr_error *err);
/* The bytes in front of the elements of an array whose shape is not fixed: at most 65. Returns their number.
 */
size_t mri_mds_put_shape(const uint64_t *dim, uint32_t ndim, uint8_t *out);

/* ---- the head of a shard (mds_value.c) ---- */
enum { MRI_MDS_NUMBER = 4 };
/* Do these first bytes look like a shard's? */
bool mri_mds_is_shard(const uint8_t *head, size_t bytes);

/* ---- the index (mds_index.c) ---- */
#define MRI_MDS_INDEX "index.json"
#define MRI_MDS_HASH  "xxh3_64" /* the one that is written; xxh64 is checked, too */

typedef struct mri_mds_shard {
    char *path; /* of the file to read, raw or packed; malloc'd */
    bool packed;
    uint64_t bytes;   /* of that file */
    uint64_t samples; /* in it */
    bool has_hash, hash_is_xxh64;
    uint64_t hash; /* of that file */
} mri_mds_shard;

typedef struct mri_mds_index {
    uint32_t count;
    mri_mds_shard *shard;
    const char **class_name; /* into class_text; NULL: none */
    char *class_text;
    uint32_t class_count;
} mri_mds_index;

/* Of the folder. Files that are missing, or have another size, are errors; packed ones that cannot be read
 * here, too. */
int mri_mds_index_read(mri_mds_index *out, const char *folder, mr_error *err);
void mri_mds_index_fini(mri_mds_index *x); /* accepts a zeroed one */
/* Do these first bytes look like an index of MDS? */
bool mri_mds_is_index(const uint8_t *head, size_t bytes);

typedef struct mri_mds_index_writer mri_mds_index_writer;
/* NULL: no memory. class_names may be NULL. */
mri_mds_index_writer *mri_mds_index_begin(const char *const *class_names, uint32_t class_count);
int mri_mds_index_add(mri_mds_index_writer *w, const mri_mds_schema *s, uint64_t size_limit, const char *name,
                      uint64_t bytes, uint64_t samples, uint64_t hash);
char *mri_mds_index_text(mri_mds_index_writer *w); /* malloc'd; NULL: no memory */
void mri_mds_index_end(mri_mds_index_writer *w);   /* accepts NULL */

#endif
