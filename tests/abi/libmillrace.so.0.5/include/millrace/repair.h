/* millrace/repair.h: what is whole out of damaged and incomplete sets. */
#ifndef MILLRACE_REPAIR_H
#define MILLRACE_REPAIR_H

#include "millrace/formats.h"

#ifdef __cplusplus
extern "C" {
#endif

typedef enum mr_repair_what {
    MR_REPAIR_DAMAGE = 0,   /* something is wrong, and no sample is lost with it */
    MR_REPAIR_LOST = 1,     /* samples that nothing gives back */
    MR_REPAIR_PUT_BACK = 2, /* samples that were lost here, from the second copy or the source */
    MR_REPAIR_MISSING = 3,  /* a file of the set is not there */
    MR_REPAIR_FILE = 4,     /* a file was written: to, with count samples */
} mr_repair_what;

typedef struct mr_repair_finding {
    size_t struct_size;
    mr_repair_what what;
    const char *file;  /* of the set */
    uint64_t offset;   /* in it; MR_NOWHERE: not known */
    uint64_t count;    /* samples; 0: at least one, how many is not known */
    uint64_t position; /* of the first of them in the set; MR_NOWHERE: not known */
    uint64_t number;   /* record files: its number in the converted source; MR_NOWHERE: not known */
    const char *name;  /* what it was called; "": not known, or several */
    const char *text;  /* why */
    const char *to;    /* FILE: what was written */
} mr_repair_finding;

typedef struct mr_repair_config {
    size_t struct_size;
    const char *dst; /* what is whole goes there: a folder for the files of a set, which is made, a file for a
                        file. NULL: nothing is written, or with in_place the damaged files are */
    bool in_place;   /* files that are damaged are replaced; what they were stays as NAME.damaged */
    bool force;      /* files in dst, NAME.damaged and the list may be replaced */
    const char *copy; /* a second copy of the set, damaged or not: its folder, or one of its files. NULL:
                         none */
    const mr_source *source; /* what record files were converted from; NULL: not there */
    void (*report)(void *context, const mr_repair_finding *finding); /* from the calling thread; or NULL */
    void *context;
    const volatile int *stop; /* set non-zero to stop; or NULL */
} mr_repair_config;

MR_API void mr_repair_defaults_sized(mr_repair_config *cfg, size_t struct_size);
static inline void mr_repair_defaults(mr_repair_config *cfg) { mr_repair_defaults_sized(cfg, sizeof *cfg); }

typedef struct mr_repair_result {
    size_t struct_size;
    char format[16];           /* "mrec", "tar", "tfrecord" */
    uint32_t files;            /* of the set, missing ones counted */
    uint32_t damaged, missing; /* of these */
    uint32_t written;          /* files */
    uint64_t samples;          /* whole ones, with those put back */
    uint64_t put_back, lost;   /* lost: as far as they can be counted */
    bool lost_unknown;         /* there may be more */
    bool list_damaged;         /* the list of record files is missing, damaged, or does not fit its files */
    bool list_written;
    bool renumbered;  /* files of dst have other numbers than those of the set, whose names say how many there
                         are */
    bool unprotected; /* the format has no checksums of the samples' bytes: a changed byte is not seen */
} mr_repair_result;

/* Look at a set of record files, tar archives or TFRecord files, say what is damaged, missing and lost, and
 * (with dst or in_place) write what is whole: every sample once, in the old order, with its old bytes. A file
 * from which nothing is lost comes out as it was written. path: a shard list, a file, a folder, a pattern, or
 * what the names of the files begin with.
 *
 * MR_OK        also where samples are lost: out says it
 * MR_ENOENT, MR_EUNSUPPORTED  there is no such set
 * MR_EEXIST    something would be replaced, and force is false
 * MR_EINVAL    copy or source are not of this set; err names what differs
 * MR_ECANCELED stopped; files written so far stay */
MR_API int mr_repair_sized(const char *path, const mr_repair_config *cfg, mr_repair_result *out,
                           mr_error *err);
static inline int mr_repair(const char *path, const mr_repair_config *cfg, mr_repair_result *out,
                            mr_error *err)
{
    if (out) out->struct_size = sizeof *out;
    return mr_repair_sized(path, cfg, out, err);
}

/* Is `other` of the format of the set at path, as a second copy would be, or something to convert from? By
 * names and first bytes; damaged files are no hindrance. *out is set on MR_OK. */
MR_API int mr_repair_is_copy(const char *path, const char *other, bool *out, mr_error *err);

#ifdef __cplusplus
}
#endif
#endif
