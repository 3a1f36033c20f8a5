/* millrace/repair.h: find damage in data sets and save all intact samples: of record files, tar archives and
 * TFRecord files. Without dst and in_place mr_repair() only reports. */
#ifndef MILLRACE_REPAIR_H
#define MILLRACE_REPAIR_H

#include "millrace/formats.h"

#ifdef __cplusplus
extern "C" {
#endif

/* Kind of a finding, for mr_repair_config.report. */
typedef enum mr_repair_what {
    MR_REPAIR_DAMAGE = 0,   /* damage that loses no sample */
    MR_REPAIR_LOST = 1,     /* samples that cannot be recovered */
    MR_REPAIR_PUT_BACK = 2, /* lost samples recovered from the second copy or the source */
    MR_REPAIR_MISSING = 3,  /* a file of the set is missing */
    MR_REPAIR_FILE = 4,     /* the file `to` was written, with count samples */
} mr_repair_what;

/* A finding, valid during the call of report. Members that do not apply have the value named "not known". */
typedef struct mr_repair_finding {
    size_t struct_size;
    mr_repair_what what;
    const char *file;  /* path of the file of the set */
    uint64_t offset;   /* in bytes from the start of this file; MR_NOWHERE: not known */
    uint64_t count;    /* number of samples; 0: at least one, number not known */
    uint64_t position; /* position of the first sample in the set; MR_NOWHERE: not known */
    uint64_t number;   /* record files: the first sample's number in the converted source; MR_NOWHERE: not
                          known */
    const char *name;  /* the sample's name; "": not known, or several samples */
    const char *text;  /* one line for the user: the reason. FILE: "whole", "repaired" or "list" */
    const char *to;    /* FILE: path of the written file */
} mr_repair_finding;

/* Settings. mr_repair_defaults() sets NULL and false everywhere: report, and write nothing. */
typedef struct mr_repair_config {
    size_t struct_size;
    const char *dst;  /* destination: for a set a folder, which is created, for one file a file. NULL: write
                         nothing, or with in_place replace the damaged files */
    bool in_place;    /* replace damaged files; the originals stay as NAME.damaged */
    bool force;       /* replace existing files in dst, NAME.damaged and the list */
    const char *copy; /* a second copy of the set, damaged or not: its folder or one of its files. NULL: no
                         copy */
    const mr_source *source; /* source from which the record files were converted; NULL: not available */
    void (*report)(void *context, const mr_repair_finding *finding); /* from the calling thread; or NULL */
    void *context;
    const volatile int *stop; /* set non-zero, also in a signal handler, to stop; or NULL */
    bool no_space_check; /* write although the free space is surely too small: less than the whole samples.
                            Default false: MR_EIO with sys_errno ENOSPC, nothing is written */
    /* Called once before the first byte with the likely bytes of the files to write and the free space of
     * their file system (UINT64_MAX: unknown), unless the repair is refused; or NULL */
    void (*space)(void *context, uint64_t bytes, uint64_t free_bytes);
} mr_repair_config;

static inline void mr_repair_defaults(mr_repair_config *cfg);

typedef struct mr_repair_result {
    size_t struct_size;
    char format[16];           /* "mrec", "tar", "tfrecord" */
    uint32_t files;            /* files of the set, including missing ones */
    uint32_t damaged, missing; /* files with damage; files that do not exist */
    uint32_t written;          /* files written, the list not counted */
    uint64_t samples;          /* intact samples, including recovered ones */
    uint64_t put_back, lost;   /* recovered and lost samples, as far as they can be counted */
    bool lost_unknown;         /* more samples may be lost */
    bool list_damaged;         /* the list of record files is missing, damaged, or does not fit its files */
    bool list_written;         /* the list was written anew, for the written files */
    bool renumbered;  /* files in dst have other numbers than the set's files, whose names contain the number
                         of files */
    bool unprotected; /* the format has no checksums of the samples' bytes: a changed byte is not detected */
} mr_repair_result;

/* Check a set of record files, tar archives or TFRecord files, report damaged, missing and lost data, and
 * (with dst or in_place) write all intact samples: each once, in the original order, with its original bytes.
 * A file that loses no sample is written with its original bytes. path: a shard list, a file, a folder, a
 * pattern, or the common beginning of the file names.
 *
 * MR_OK        also when samples are lost; out has their number
 * MR_ENOENT, MR_EUNSUPPORTED  path leads to no such set
 * MR_EEXIST    an existing file would be replaced, and force is false
 * MR_EINVAL    copy or source do not belong to this set; err names the difference
 * MR_ECANCELED stopped; files written so far stay */
static inline int mr_repair(const char *path, const mr_repair_config *cfg, mr_repair_result *out,
                            mr_error *err);

/* Set *out to true if `other` has the format of the set at path, as a second copy has, and to false if it is
 * a source for conversion. Decides by names and first bytes, also of damaged files. *out is set on MR_OK. */
MR_API int mr_repair_is_copy(const char *path, const char *other, bool *out, mr_error *err);

/* ------------------------------------------------------------------------------ struct sizes
 *
 * Nothing to read here for a program in C or C++. The library exports the functions below in place of the
 * inline ones above: each inline function passes the size of its struct in the caller's header (base.h). A
 * program in another language sets struct_size and calls ..._sized. */

MR_API void mr_repair_defaults_sized(mr_repair_config *cfg, size_t struct_size);
static inline void mr_repair_defaults(mr_repair_config *cfg) { mr_repair_defaults_sized(cfg, sizeof *cfg); }

MR_API int mr_repair_sized(const char *path, const mr_repair_config *cfg, mr_repair_result *out,
                           mr_error *err);
static inline int mr_repair(const char *path, const mr_repair_config *cfg, mr_repair_result *out,
                            mr_error *err)
{
    if (out) out->struct_size = sizeof *out;
    return mr_repair_sized(path, cfg, out, err);
}

#ifdef __cplusplus
}
#endif
#endif
