/* pipeline/convert/convert_files.h: what conversions to foreign formats share: files that get their names
 * when all of them are complete. Private.
 *
 *   one file   DST.part ───────────────────────────────► read back ──► DST
 *   shards     DST-00000.part, DST-00001.part, ... ────► read back ──► names with their count, the first last
 *
 * A format defines how a sample is written (take, put), how a file begins and ends, and the names of shards.
 * A killed run leaves only files named .part, which the next run to the same DST takes over or removes. After
 * an error or a stop nothing is left. A set that is replaced goes before the first name is given, its first
 * file first: whenever a run is killed, there are files of the old set or of the new one, never of both, and
 * a set that is not whole lacks its first file. */
#ifndef MRI_CONVERT_FILES_H
#define MRI_CONVERT_FILES_H

#include "formats/storage/output.h"
#include "pipeline/convert/convert_kind.h"

typedef struct mri_files mri_files;

typedef struct mri_file_facts {
    uint64_t records, bytes;
    uint64_t bytes_hash;   /* of the file */
    uint64_t samples_hash; /* of pictures and labels, in order: mri_files_hash_sample() */
} mri_file_facts;

typedef struct mri_files_format {
    const char *source;                             /* who reads it: as mr_source_config.format has it */
    bool (*readable)(const mri_convert_plan *plan); /* do our own readers take what will be written? */
    int (*create)(void **state, const mri_convert_plan *plan, mr_error *err);
    void (*destroy)(void *state);                           /* accepts NULL */
    int (*begin)(void *state, mri_files *f, mr_error *err); /* what stands in front of the samples of each
                                                               file; optional */
    /* The sample that put() is to write, and how many bytes that will be. */
    int (*take)(void *state, uint64_t source_index, const mr_value *values, uint64_t *bytes, mr_error *err);
    int (*put)(void *state, mri_files *f, mr_error *err);
    /* Writes the data after the samples of each file; optional. */
    int (*end)(void *state, mri_files *f, mr_error *err);
    void (*report)(const void *state, mr_convert_result *out); /* as of mri_convert_kind; optional */
    uint64_t (*waiting)(const void *state); /* bytes that put() took and end() will write; optional */
    uint64_t (*zeros)(uint64_t bytes);      /* zeros that end a file of `bytes` bytes; optional */
    void (*shard_name)(char *out, size_t room, const char *dst, uint32_t at, uint32_t count);
    bool (*is_shard)(const char *dst, const char *name); /* of dst (its last component), of any number */
    /* Removes the list of a file that is replaced, before that file is; optional. Shards: is_shard() includes
     * their lists. */
    int (*remove_list)(const char *dst, const mri_output_rules *rules, mr_error *err);
    /* Writes the list of the set when all files have their names; optional. facts: of `count` files. */
    int (*list)(void *state, const mri_file_facts *facts, uint32_t count, const mri_output_rules *rules,
                mr_error *err);
} mri_files_format;

int mri_files_put(mri_files *f, const void *data, size_t bytes, mr_error *err);
int mri_files_put_zeros(mri_files *f, uint64_t bytes, mr_error *err);
uint64_t mri_files_bytes(const mri_files *f); /* of the file so far */
const char *mri_files_dst(const mri_files *f);

/* The functions of a kind. */
int mri_files_open(void **out, const mri_convert_plan *plan, const char *dst, const mri_files_format *format,
                   mr_error *err);
int mri_files_append(void *state, uint64_t source_index, const mr_value *values, mr_error *err);
int mri_files_finish(void *state, uint64_t *bytes, uint32_t *shards, mr_error *err);
void mri_files_report(const void *state, mr_convert_result *out);
void mri_files_close(void *state, bool keep);

/* Read "123" at *text: returns the number of digits and moves *text past them. For names. */
uint32_t mri_files_digits(const char **text, uint64_t *value);

/* ---- reading back (convert_read_back.c) ---- */
/* picture may be NULL; label too. */
void mri_files_hash_sample(void *hash, const mr_value *picture, const mr_value *label);
/* Does the file equal the facts byte for byte, and do our own readers find their samples, pictures and labels
 * in it? `samples`: our readers can read the file. MR_ECHECKSUM if not; MR_ECANCELED. */
int mri_files_read_back(const mri_convert_plan *plan, const char *source, const char *path,
                        const mri_file_facts *facts, bool samples, mr_error *err);

#endif
