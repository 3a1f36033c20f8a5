/* formats/record/mrec.h: the parts of a .mrec file, shared by its writer, reader and verifier. Private; every
 * number here is specified in FORMAT.md.
 *
 *   | header block | schema | class names | provenance | 0.. | record | 0.. | record | 0.. | index pages |
 *   0              4096                                      data                         index
 *                                                            (both at multiples of 4096) */
#ifndef MRI_MREC_H
#define MRI_MREC_H

#include "millrace/formats.h"

enum {
    MRI_MREC_BLOCK = 4096,
    MRI_MREC_MAJOR = 1,
    MRI_MREC_MINOR = 4,          /* the newest that is read; */
    MRI_MREC_MINOR_WRITTEN = 3,  /* 4 is written where its flag is set, so that all other files stay readable
                                  */
    MRI_MREC_HEADER_BYTES = 184, /* bytes of the header block in use in version 1.3; 176 in 1.2, 160 before */
    MRI_MREC_COMPLETE = 1,       /* flag: mr_writer_finish() has written index and header */
    MRI_MREC_COEF = 2,           /* flag, from 1.1 on: there are records with coefficients */
    MRI_MREC_FILES = 4,          /* flag, from 1.4 on: there are records with files of types 11 and up */
    MRI_RECORD_HEAD = 40,        /* bytes of a record header before its field entries */
    MRI_RECORD_FIELD = 16,       /* bytes of a field entry before its dimensions */
    MRI_INDEX_HEAD = 32,         /* bytes of an index page before its entries */
    MRI_INDEX_ENTRY = 32,
    MRI_INDEX_PER_PAGE = 127,
};
#define MRI_RECORD_HEADER_MAX    (MRI_RECORD_HEAD + MR_MAX_FIELDS * (MRI_RECORD_FIELD + 8 * MR_MAX_DIMS))
#define MRI_MAX_SCHEMA_BYTES     ((uint64_t)8192)
#define MRI_MAX_CLASSES_BYTES    ((uint64_t)64 << 20)
#define MRI_MAX_PROVENANCE_BYTES ((uint64_t)16 << 20)
#define MRI_AUTO_ALIGN_BYTES     32768 /* a first record of this size or more gets pages of its own */

/* ---- header block (mrec_header.c) ---- */
typedef struct mri_mrec_header {
    uint16_t major, minor;
    uint32_t flags, record_align;
    uint64_t count, file_bytes;
    uint64_t schema_offset, schema_bytes, classes_offset, classes_bytes, provenance_offset, provenance_bytes;
    uint64_t data_offset, data_bytes; /* data_bytes: to the last record's end, padding after it not counted */
    uint64_t index_offset, index_bytes;
    uint64_t record_bytes_total, record_bytes_max;
    uint64_t fingerprint;
    uint32_t schema_crc, classes_crc, provenance_crc;
    int64_t label_min, label_max; /* of all records; 0 before version 1.2 and where there is no record */
    int64_t label_start;          /* number of the first class where it was declared; else 0 */
} mri_mrec_header;

/* Are labels the numbers of the data that were converted? Before, 1 could have been subtracted. */
static inline bool mri_mrec_header_keeps_numbers(const mri_mrec_header *h) { return h->minor >= 3; }

/* Does the header know the labels' range? */
static inline bool mri_mrec_header_has_labels(const mri_mrec_header *h) { return h->minor >= 2; }

void mri_mrec_header_encode(const mri_mrec_header *h, uint8_t block[MRI_MREC_BLOCK]);
/* Magic, version and checksum only: enough to know the settings of an unfinished file. */
int mri_mrec_header_decode(const uint8_t block[MRI_MREC_BLOCK], mri_mrec_header *out, mr_error *err);
/* Check all offsets and lengths of a finished file against each other and against its size. */
int mri_mrec_header_check(const mri_mrec_header *h, uint64_t file_bytes, mr_error *err);

static inline uint64_t mri_index_pages(uint64_t count)
{
    return count / MRI_INDEX_PER_PAGE + (count % MRI_INDEX_PER_PAGE != 0);
}

/* ---- schema, class names, provenance (mrec_meta.c) ---- */
typedef struct mri_meta {
    uint32_t field_count;
    mr_field fields[MR_MAX_FIELDS];
    int label_field, image_field;
    bool coef; /* records may hold coefficients */
    uint32_t class_count;
    const char **class_names; /* one block with the text after the pointers; NULL without names */
    char *provenance;         /* "" when none */
    int64_t label_start;
    size_t memory_bytes;
} mri_meta;

void mri_meta_fini(mri_meta *m);
/* Write everything before the data from the writer's arguments: header of an unfinished file, sections,
 * padding. */
int mri_meta_encode(const mri_meta *m, uint32_t record_align, mri_mrec_header *h, uint8_t **out,
                    mr_error *err);
/* Copy and check the writer's settings. */
int mri_meta_copy(mri_meta *out, const mr_writer_config *cfg, mr_error *err);
/* Read and check the sections that a checked header names, including the zeros between them. */
int mri_meta_read(mri_meta *out, int fd, const char *path, const mri_mrec_header *h, mr_error *err);
bool mri_all_zero(const void *data, size_t bytes);

/* ---- writers of sets (writer.c, writer_resume.c) ---- */
/* As mr_writer_finish(), but the whole file stays PATH.part: the files of a set get their names together. */
int mri_writer_seal(mr_writer *w, mr_error *err);
/* What PATH.part holds, as an interrupted run left it: bytes behind what every file begins with; 0: no such
 * file, nothing in it, or another process is writing it. */
uint64_t mri_writer_left(const char *path);

/* ---- source indices (mrec_sources.c): from the records' heads alone, checksums are not looked at ---- */
typedef int mri_source_fn(void *context, uint64_t source_index, mr_error *err); /* not MR_OK: it ends there */
/* Of all records of a finished file, rising. */
int mri_mrec_sources(const mr_mrec *m, mri_source_fn *each, void *context, mr_error *err);
/* Of those an earlier run left in the part file, rising; before the first append. */
int mri_writer_sources(const mr_writer *w, mri_source_fn *each, void *context, mr_error *err);

/* ---- records (mrec_record.c) ---- */
typedef struct mri_record_size {
    uint32_t header_bytes;
    uint64_t record_bytes; /* header and payloads, padding inside included, padding after the record not */
} mri_record_size;

typedef struct mri_record_facts { /* the entries of the index, and the data to check the order */
    uint64_t bytes;
    uint64_t source_index;
    int64_t label;
    uint32_t header_crc;
    bool coef;  /* one of its values is coefficients, */
    bool files; /* a file of a kind that version 1.4 added */
} mri_record_facts;

/* False when the record would be larger than MRI_MAX_SAMPLE_BYTES. */
bool mri_record_measure(const mr_value *values, uint32_t count, mri_record_size *out);
/* Header into buf[MRI_RECORD_HEADER_MAX]; the payload CRC is computed on the way. Returns the header's
 * CRC. */
uint32_t mri_record_encode(const mr_value *values, uint32_t count, uint64_t source_index,
                           const mri_record_size *size, uint8_t *buf);
/* Sizes that a record states in its first MRI_RECORD_HEAD bytes; false when these are not a record header.
 * They are not verified: the checksum covers more than these bytes. */
bool mri_record_peek(const uint8_t *head, mri_record_size *out);
/* Check everything a record says about itself and split it into values that point into data. */
int mri_record_parse(const mri_meta *meta, const uint8_t *data, size_t bytes, mr_sample *out,
                     mri_record_facts *facts, mr_error *err);
/* Whether one of them is coefficients, or a picture file of a kind that version 1.4 added. */
bool mri_values_coef(const mr_value *values, uint32_t count);
bool mri_values_files(const mr_value *values, uint32_t count);
/* The same for bytes that passed once and stayed in memory: sizes and places are checked, checksums are not
 * computed. */
int mri_record_parse_trusted(const mri_meta *meta, const uint8_t *data, size_t bytes, mr_sample *out,
                             mr_error *err);
/* Where the payload of a field lies in a record whose header is sound in itself; checksums are not looked at.
 * False: it is not. */
bool mri_record_payload(const mri_meta *meta, const uint8_t *data, size_t bytes, uint32_t field,
                        const uint8_t **payload, size_t *payload_bytes);
/* The same as offset from the record's start, from its header alone: `bytes` may end after the header. */
bool mri_record_place(const mri_meta *meta, const uint8_t *head, size_t bytes, uint32_t field,
                      uint64_t *offset, uint64_t *payload_bytes);
/* A view of the bytes a value has on disk; INT and FLOAT are put into scratch. */
const void *mri_value_bytes(const mr_value *v, uint8_t scratch[8], size_t *bytes);

/* ---- lengths without reading (mrec_lengths.c) ---- */
typedef struct mri_lengths {
    uint32_t field; /* the one whose length differs */
    uint32_t element_bytes;
    uint64_t fixed_bytes; /* of a record without its elements */
} mri_lengths;

/* The one field whose size differs from record to record, when it is a tensor; -1: none, or more than one. */
int mri_lengths_field(const mr_field *fields, uint32_t count);
/* False when lengths do not follow from the sizes of records with these fields. */
bool mri_lengths_of(const mr_field *fields, uint32_t count, mri_lengths *out);
/* Elements in a record of this size, taken to have one dimension; any number of bytes gives a number. */
uint32_t mri_lengths_elements(const mri_lengths *l, uint64_t record_bytes);

/* ---- index pages (mrec_index.c) ---- */
typedef struct mri_index_entry {
    uint64_t offset, bytes;
    int64_t label;
    uint32_t header_crc;
} mri_index_entry;

void mri_index_put(uint8_t *page, uint32_t slot, const mri_index_entry *e);
void mri_index_get(const uint8_t *page, uint32_t slot, mri_index_entry *out);
/* Write number and checksum into a page whose entries are complete. */
void mri_index_seal(uint8_t *page, uint64_t number, uint32_t entries);
int mri_index_check(const uint8_t *page, uint64_t number, uint32_t entries, mr_error *err);
static inline uint32_t mri_index_entries(uint64_t count, uint64_t page)
{
    const uint64_t left = count - page * MRI_INDEX_PER_PAGE;
    return left < MRI_INDEX_PER_PAGE ? (uint32_t)left : MRI_INDEX_PER_PAGE;
}

/* Where records must lie: each directly after the one before, on the next multiple of the alignment. */
typedef struct mri_index_walk {
    const mri_mrec_header *h;
    uint64_t next; /* where the next record must start */
    uint64_t total, max, end;
    int64_t label_min, label_max;
    bool any; /* a record was there */
} mri_index_walk;

void mri_index_walk_init(mri_index_walk *w, const mri_mrec_header *h);
int mri_index_walk_step(mri_index_walk *w, const mri_index_entry *e, mr_error *err);
int mri_index_walk_end(const mri_index_walk *w, mr_error *err);

/* The data set's fingerprint: schema, classes, then (bytes, label, header CRC) of each record. Alignment and
 * provenance do not change which data set it is. */
typedef struct mri_fingerprint mri_fingerprint;
mri_fingerprint *mri_fingerprint_create(uint32_t schema_crc, uint32_t classes_crc); /* NULL: no memory */
void mri_fingerprint_destroy(mri_fingerprint *p);
void mri_fingerprint_add(mri_fingerprint *p, const mri_index_entry *e);
uint64_t mri_fingerprint_value(const mri_fingerprint *p);

#endif
