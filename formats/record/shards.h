/* formats/record/shards.h: shard lists: a text file that names .mrec files in order (see FORMAT.md). Private.
 *
 * A list of version 2 says what opening the set needs of all its files, and of each file enough to know it
 * again: then a file is opened when its first sample is read, and compared with its line. Of version 1
 * nothing but counts is known before every file was looked at. */
#ifndef MRI_SHARDS_H
#define MRI_SHARDS_H

#include "formats/record/mrec_file.h"
#include "formats/storage/output.h"

enum { MRI_SHARDS_COUNTS = 1, MRI_SHARDS_FACTS = 2 }; /* versions */

typedef struct mri_shard {
    uint64_t count;
    uint64_t file_bytes, fingerprint; /* version 2 */
    const char *path;                 /* as written: relative to the list's folder, or absolute */
} mri_shard;

typedef struct mri_shard_facts { /* of all files together */
    uint64_t fingerprint;        /* of the fingerprints, in order */
    uint32_t schema_crc, classes_crc;
    uint64_t record_bytes_total, record_bytes_max;
    bool coef;                    /* one of them has records with coefficients */
    bool has_labels;              /* there is a record, and the field "label" */
    int64_t label_min, label_max; /* with has_labels */
} mri_shard_facts;

typedef struct mri_shards {
    char *text;
    mri_shard *shard;
    uint32_t count, version;
    uint64_t records;
    mri_shard_facts facts; /* version 2 */
} mri_shards;

/* The first line of a list, whatever its version. */
bool mri_shards_magic(const void *head, size_t bytes);
/* MR_EUNSUPPORTED: a version of the list that is not known here. */
int mri_shards_read(mri_shards *out, const char *list_path, mr_error *err);
void mri_shards_fini(mri_shards *s);
/* The path of a shard, relative to the current folder; malloc'd. Of a list that is a link: next to the link
 * if there is such a file, else next to the list that it names. */
char *mri_shards_resolve(const char *list_path, const char *shard_path);
/* Bytes of a path up to its last slash, which is counted. */
size_t mri_shards_folder_bytes(const char *path);

/* mr_shards_write() to an output that is open for the list's path; it is committed. */
int mri_shards_write_to(mri_output *o, const char *const *paths, const uint64_t *counts, uint32_t path_count,
                        mr_error *err);

/* ---- facts (shard_facts.c) ---- */
/* Of no file yet. */
void mri_shard_facts_init(mri_shard_facts *f);
/* The fingerprint with that of one more file. */
uint64_t mri_shard_facts_print(uint64_t fingerprint, uint64_t of_file);
/* One more file, in order. labels false: the range of labels is not asked for, which in files before version
 * 1.2 takes reading the whole index. */
int mri_shard_facts_add(mri_shard_facts *f, const mr_mrec *m, bool labels, mr_error *err);
bool mri_shard_facts_equal(const mri_shard_facts *a, const mri_shard_facts *b);

/* Is this the file of that line of a list, and do the facts of a list of version 2 (else NULL) hold for it?
 * MR_EFORMAT with the file, the expected and the found value. */
int mri_shard_check(const mri_shard *line, const mri_shard_facts *facts, const mr_mrec *m, mr_error *err);
/* Have two files the same fields and classes? MR_EFORMAT with the file, else. */
int mri_shard_check_meta(const mr_mrec *first, const mr_mrec *m, mr_error *err);

#endif
