/* formats/storage/salvage.h: takes the whole samples out of a damaged file. Private.
 *
 *   open ──► next: WHOLE, LOST, NOTE in the order of the file ──► MR_EEND ──► close
 *   create ──► put each WHOLE ──► finish
 *
 * Takes a file of one format, cut, changed or incomplete. Gives its samples as pieces of bytes: the samples
 * that the format can show to be whole, and the places of lost samples. Nothing is ever made up: a sample
 * that cannot be shown to be whole is lost. Callers: pipeline/repair. One thread at a time for each. */
#ifndef MRI_SALVAGE_H
#define MRI_SALVAGE_H

#include "millrace/base.h"

typedef enum mri_salvage_what {
    MRI_SALVAGE_WHOLE, /* one sample */
    MRI_SALVAGE_LOST,  /* one or more samples */
    MRI_SALVAGE_NOTE,  /* damage that costs no sample */
} mri_salvage_what;

enum { MRI_SALVAGE_NAME = 1024 };

typedef struct mri_salvage_item {
    mri_salvage_what what;
    uint64_t offset, bytes; /* in the file. LOST: whatever begins in there; up to the end of the set's file
                               when that is not known */
    uint64_t count;         /* LOST: how many samples; 0: not known */
    uint64_t number;        /* of the (first) sample in the converted source; MR_NOWHERE: not known */
    char name[MRI_SALVAGE_NAME]; /* its original name; "": unknown */
    mr_error why;                /* LOST, NOTE; file and offset are set */
    const void *data;            /* WHOLE: the bytes, until the next call */
} mri_salvage_item;

/* Do the bytes of a file cause this error? Any other is the system's, and says nothing of the file. */
static inline bool mri_salvage_is_damage(int rc)
{
    return rc == MR_EFORMAT || rc == MR_ECHECKSUM || rc == MR_ELIMIT || rc == MR_EUNSUPPORTED;
}

typedef struct mri_salvage_ops {
    const char *format; /* as mr_source_info.format has it */
    /* like: another file of the same set, for facts that the damaged one lost, or NULL. MR_EFORMAT: nothing
     * can be taken out of it. */
    int (*open)(void **walk, const char *path, const char *like, mr_error *err);
    int (*next)(void *walk, mri_salvage_item *item, mr_error *err);
    void (*close)(void *walk); /* accepts NULL */
    /* A new file with the settings of the one that is walked; written as output.h says. */
    int (*create)(void **out, const void *walk, const char *path, bool force, mr_error *err);
    int (*put)(void *out, const mri_salvage_item *whole, mr_error *err);
    int (*finish)(void *out, mr_error *err); /* frees in every case */
    void (*abandon)(void *out);              /* accepts NULL */
} mri_salvage_ops;

#endif
