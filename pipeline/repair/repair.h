/* pipeline/repair/repair.h: the parts of mr_repair(). Private.
 *
 * Takes the files of a set, damaged or missing ones among them, and a second copy or the source of it. Gives
 * files with the whole samples, and reports the lost ones. Callers: programs, through mr_repair().
 *
 *   repair_set.c     which files the set consists of, and which of them are missing
 *   repair_known.c   which of them are the files that the list knows
 *   repair_file.c    one file: its pieces, the copy's pieces, and records made again from the source
 *   repair_again.c   records made again from the source, by the conversion's own settings
 *   repair.c         looks at all files, then writes: damaged ones anew, whole ones as they are, the list
 *
 *   append.c         mr_append(): more samples for a set of record files, by the settings that it keeps
 *   append_known.c   which of these samples are in the set already
 *   update.c         mr_set_update(): a set follows its source: new samples, changed ones, ones that are gone
 *   update_compare.c which samples of the source are new or changed, which of the set are gone
 *
 * The formats decide which pieces are whole (formats/storage/salvage.h). All calls run in the calling
 * thread. */
#ifndef MRI_REPAIR_H
#define MRI_REPAIR_H

#include "formats/fileset/file_names.h"
#include "formats/record/shards.h"
#include "formats/storage/salvage.h"
#include "millrace/pipeline.h"
#include "pipeline/convert/convert_kind.h"

/* ---- which files (repair_set.c) ---- */
typedef struct mri_repair_file {
    char *path; /* where it is, or would be */
    bool there;
    char *at;       /* its bytes are in the file of this name, where another one belongs; NULL: in path */
    bool strange;   /* another file lies at path: this one is missing */
    bool rest;      /* an earlier repair left fewer records in it than the list knows */
    bool listed;    /* the list says of it: */
    mri_shard line; /* its path is not used */
    /* found by looking */
    bool whole;
    char *other;                   /* how it differs from the file that the list knows, or NULL */
    bool kept;                     /* there will be a file */
    uint64_t samples, whole_bytes; /* whole_bytes: of the samples that were not made again */
    enum { MRI_MADE_UNKNOWN, MRI_MADE_SO, MRI_MADE_OTHERWISE } made; /* from the source that is there? */
    uint64_t first_source, last_source; /* of record files: of the whole records; MR_NOWHERE: none */
} mri_repair_file;

typedef struct mri_repair_set {
    const mri_salvage_ops *ops;
    char *list;       /* of record files: its path, there or not; NULL: one file alone */
    bool list_there;  /* and can be read */
    bool alone;       /* one file, no set */
    bool counted;     /* names say how many files there are (-of-) */
    char *list_wrong; /* why the list cannot be used, or NULL */
    mri_repair_file *file;
    uint32_t count, cap;
    int why; /* errno of the first file that could not be looked at; 0: none */
    char why_path[MRI_MOST_PATH];
} mri_repair_set;

/* Do the data cause this error, or the system? */
static inline bool mri_repair_is_damage(int rc)
{
    return mri_salvage_is_damage(rc) || rc == MR_EINVAL || rc == MR_ENOENT;
}

/* MR_ENOENT, MR_EUNSUPPORTED: nothing here that can be repaired. */
int mri_repair_set_find(mri_repair_set *s, const char *path, mr_error *err);
/* Add files that only a second copy has: files after the set's last one. */
int mri_repair_set_add_copy(mri_repair_set *s, const char *copy, mr_error *err);
void mri_repair_set_fini(mri_repair_set *s);

/* ---- which of them the list knows (repair_known.c) ---- */
static inline const char *mri_repair_content(const mri_repair_file *f) { return f->at ? f->at : f->path; }
/* Files by the fingerprints of the list: at, strange, rest, other and there are set. MR_EFORMAT: the list is
 * of another set; from: a copy or the source may still give the files that it knows. */
int mri_repair_set_know(mri_repair_set *s, bool from, mr_error *err);
/* MR_EINVAL: the list knows that the copy of f is of another set. */
int mri_repair_check_copy(const mri_repair_set *s, const mri_repair_file *f, const char *copy, mr_error *err);
/* MR_EFORMAT: files that are to be one set have different fields or classes. */
int mri_repair_set_same_fields(const mri_repair_set *s, mr_error *err);

/* ---- again from the source (repair_again.c) ---- */
typedef struct mri_repair_again mri_repair_again;

/* like: a file of the set, whose provenance has its settings. MR_EINVAL: it was not made from src; err names
 * the difference. */
int mri_repair_again_open(mri_repair_again **out, const mr_source *src, const char *like, mr_error *err);
/* The same without that proof: samples of any source, by the settings of m, a file of a set at path. */
int mri_repair_again_like(mri_repair_again **out, const mr_source *src, const mr_mrec *m, const char *path,
                          mr_error *err);
/* Number of values that mri_repair_again_make() gives. */
uint32_t mri_repair_again_fields(const mri_repair_again *a);
/* Would the records it makes have this provenance? */
bool mri_repair_again_is(const mri_repair_again *a, const char *provenance);
void mri_repair_again_close(mri_repair_again *a);           /* accepts NULL */
uint64_t mri_repair_again_count(const mri_repair_again *a); /* samples of the source */
uint64_t mri_repair_again_shard_bytes(const mri_repair_again *a);
/* The values of sample i, until the next call. MR_EEND: it is a bad one, as it was for the conversion. */
int mri_repair_again_make(mri_repair_again *a, uint64_t i, const mr_value **values, char *name, size_t room,
                          mr_error *err);

/* The settings of a conversion that made the file. MR_EINVAL: it does not say them. */
int mri_repair_config_of(mr_convert_config *out, const mr_mrec *m, const char *path, mr_error *err);
/* The first field, by name and type, that records of this plan would not share with the file; UINT32_MAX:
 * they have the same fields. */
uint32_t mri_repair_other_field(const mri_convert_plan *plan, const mr_mrec *m);

/* ---- samples that a set has already (append_known.c) ---- */
/* A sample is there when a record of the set has all its values: label, contents, name. Withdrawn samples
 * count, since their records are still in the files. */
typedef struct mri_known {
    uint64_t looked, there;   /* of the new samples */
    char name[MRI_MOST_PATH]; /* of one that is there; "": it has no name */
} mri_known;

/* Before the conversion: up to 64 samples, spread evenly over src; bad ones do not count as looked at. */
int mri_known_look(const char *list_path, const mri_shards *list, const mr_source *src, mri_known *out,
                   mr_error *err);
/* After the conversion: all samples of the set at made_path. */
int mri_known_count(const char *list_path, const mri_shards *list, const char *made_path,
                    const mri_shards *made, mri_known *out, mr_error *err);

/* Same type and same bytes. */
bool mri_known_value(const mr_value *a, const mr_value *b);
/* The name in a record, cut to room; "": it has no name, or the record's header is damaged. */
int mri_known_name(const mr_mrec *m, const mri_index_entry *e, char *out, size_t room, mr_error *err);

/* ---- append to a set (append.c) ---- */
/* mr_append() with checked arguments. src NULL: only what an interrupted call left is finished. compared: the
 * samples of src are known to be new, and are compared with the set's after their conversion only. */
int mri_append(const char *list_path, const mr_source *src, const mr_append_config *cfg, bool compared,
               mr_append_result *result, mr_error *err);
/* The settings of the set. MR_EINVAL: its classes or fields differ from src's. */
int mri_append_fit(const char *list_path, const mri_shards *list, const mr_source *src,
                   mr_convert_config *cfg, mr_error *err);

/* ---- a source compared with its set (update_compare.c) ---- */
typedef struct mri_update_record { /* of the set */
    size_t name_at;                /* in mri_update_set.names */
    uint64_t number;               /* in the set, withdrawn samples counted */
    bool live;                     /* not withdrawn */
    bool ours;                     /* withdrawn by an earlier update */
    bool matched;                  /* a sample of the source has its values */
    bool repeated;                 /* live, not matched, with the values of a matched record of its name */
    bool superseded;               /* live, not matched, not repeated, and named */
    uint64_t named;                /* samples of the source that have its name */
} mri_update_record;

typedef struct mri_update_set {
    char *names;
    size_t name_bytes, name_room;
    mri_update_record *record; /* sorted by name, then by number */
    uint64_t count;
    /* numbers in src, rising: with no live record of their name, and with one of other contents */
    uint64_t *fresh, *changed;
    uint64_t fresh_count, changed_count, same, withdrawn;
    uint64_t unnamed; /* bad samples of the source whose name cannot be read */
} mri_update_set;

/* Reasons of withdrawn samples that an update takes back when the source has them again. */
#define MRI_UPDATE_CHANGED "changed in the source (convert --update)"
#define MRI_UPDATE_GONE    "gone from the source (convert --update)"

/* Names and states of all records. list_source: opened with MR_WITHDRAWN_TAKE. */
int mri_update_set_read(mri_update_set *s, const char *list_path, const mri_shards *list,
                        const mr_source *list_source, mr_error *err);
/* Each sample of the source. cfg: the settings of the set, with workers, progress, context and stop. */
int mri_update_compare(mri_update_set *s, const char *list_path, const mri_shards *list, const mr_source *src,
                       const mr_convert_config *cfg, mr_error *err);
static inline const char *mri_update_name(const mri_update_set *s, const mri_update_record *r)
{
    return s->names + r->name_at;
}
/* The records of that name: the first, and their number. */
mri_update_record *mri_update_find(const mri_update_set *s, const char *name, uint64_t *count);
void mri_update_set_fini(mri_update_set *s);

/* ---- one file (repair_file.c) ---- */
typedef struct mri_repair {
    const mr_repair_config *cfg;
    const mri_repair_set *set;
    mri_repair_again *again;
    bool quiet; /* looking before writing: nothing is reported */
    mr_repair_result *result;
    uint64_t position; /* of the next sample in the set; MR_NOWHERE: not known any more */
} mri_repair;

/* file's pieces, to `to` or nowhere (NULL). *found: samples that the new file has; facts of `file` are
 * filled. */
int mri_repair_one(mri_repair *r, mri_repair_file *file, const char *to, bool force, mr_error *err);
/* What earlier repairs left counts as missing where --from has more. (repair_known.c) */
void mri_repair_set_replace_rests(const mri_repair *r, mri_repair_set *s);
/* The list knows more samples of the file than the `seen` ones: the others are lost. */
void mri_repair_tell_fewer(mri_repair *r, const mri_repair_file *file, uint64_t seen);
void mri_repair_report(const mri_repair *r, const mr_repair_finding *f);

#endif
