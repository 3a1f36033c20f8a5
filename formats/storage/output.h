/* formats/storage/output.h: the one way to write a file that users name. Private.
 *
 *   check ──► open: PATH.part made or taken over, locked ──► written ──► commit: synced, read back, renamed,
 *                                                                                folder synced ──► close
 *                                                             └── failure or stop: close removes PATH.part
 *                                                                 (or keeps it, to go on from)
 *
 * What always holds:
 * - until the end PATH does not exist or is unchanged: PATH is never half a file;
 * - no link is followed, no device, pipe, socket or folder is opened or replaced, and no input is;
 * - a part file is one user's and one process's: it is locked (flock) as long as it is written, belongs to
 *   who writes it, and has no other name through which something else would be written;
 * - without `force` nothing that exists is replaced, even when it was made since;
 * - a file under the part file's name that is not ours (a browser's unfinished download has such a name) is
 *   not overwritten and not removed, unless that was asked for (`take_part`). Ours carry a mark from the
 * moment they are made until they have their name: the sticky bit, which means nothing on a file. An empty
 * file may be overwritten. On a file system without this bit (FAT) a killed run's file is not recognised as
 * ours: it is refused, and the message says what to do.
 *
 * A log (mri_output_open_log) is the exception for what must be on disk line by line: it is PATH itself,
 * which grows. A spill has no name at all.
 *
 * One thread at a time for each. */
#ifndef MRI_OUTPUT_H
#define MRI_OUTPUT_H

#include <stdio.h>
#include <sys/stat.h>

#include "millrace/base.h"

typedef struct mri_output mri_output;

typedef struct mri_output_rules {
    bool force;     /* a regular file at path may be replaced */
    bool take_part; /* a file of other origin under the part file's name may be overwritten */
    bool resume;    /* keep the contents of an earlier run's part file; else it begins empty */
    bool unsynced;  /* one of many small files: mri_output_sync_all() syncs them together at the end */
    /* Optional: the name of the input that this file is, or NULL. The output and its part file may be none.
     */
    const char *(*input)(const void *context, const struct stat *st);
    const void *context;
} mri_output_rules;

/* Would open() and commit() refuse the path as it is now? Nothing is made. MR_EEXIST: a file is there, and
 * `force` was not given. MR_EINVAL: something that must not be replaced, or an input. rules may be NULL. */
int mri_output_check(const char *path, const mri_output_rules *rules, mr_error *err);

/* The same checks, then the part file. MR_EEXIST, too: another process writes it, or it is not ours; with
 * `resume` the caller decides that from its contents. rules may be NULL; its context must live until
 * close. */
int mri_output_open(mri_output **out, const char *path, const mri_output_rules *rules, mr_error *err);

int mri_output_fd(const mri_output *o); /* for reading and writing */
const char *mri_output_part(const mri_output *o);
const char *mri_output_path(const mri_output *o);
/* It gets this name instead, and may (force) replace a file there: of files whose names are known only at the
 * end. The part file stays as it is. */
int mri_output_rename(mri_output *o, const char *path, bool force, mr_error *err);
/* Cut it to nothing: for those who opened with `resume` and found nothing to go on from. MR_EEXIST: it is not
 * ours. */
int mri_output_empty(mri_output *o, mr_error *err);
/* With `resume`: its contents show that it is ours, whatever its mark. */
void mri_output_adopt(mri_output *o);
/* A stream that writes from where it is now; closed with the output. NULL: no memory, in err. */
FILE *mri_output_stream(mri_output *o, mr_error *err);

/* Read the part file back, as far as the reader needs: MR_OK when it equals the written data. */
typedef int mri_output_read_back(void *context, int fd, const char *part, mr_error *err);

/* Sync the file, read it back (optional), give it its name, sync the folder. When it fails the part file is
 * still there, but for a folder that could not be synced. */
int mri_output_commit(mri_output *o, mri_output_read_back *read_back, void *context, mr_error *err);
/* Lets the disk begin with these bytes, 0: up to the end, so that a later sync has less to wait for. Promises
 * nothing; where it cannot be done nothing happens. */
void mri_output_write_back(const mri_output *o, uint64_t from, uint64_t bytes);
/* Sync it, and leave it a part file that a later open() with `resume` finds. For sets of files, which get
 * their names together. */
int mri_output_sync(mri_output *o, mr_error *err);
/* Remove the part file; it is still to be closed. For those who must know that it is gone. */
int mri_output_discard(mri_output *o, mr_error *err);
/* Frees. A part file without its name is removed unless `keep` (or not ours), if that can be done. Accepts
 * NULL. */
void mri_output_close(mri_output *o, bool keep);

/* Everything on the file system of this folder is on disk. */
int mri_output_sync_all(const char *folder, mr_error *err);

/* All of it at once. */
int mri_output_write_whole(const char *path, const void *data, size_t bytes, const mri_output_rules *rules,
                           mr_error *err);

/* PATH itself, to be appended to: made where it is missing (`resume` not given: it must be), else taken as it
 * is. mri_output_fd() appends, mri_output_commit() syncs; it is never removed. */
int mri_output_open_log(mri_output **out, const char *path, const mri_output_rules *rules, mr_error *err);

/* A file without a name on the file system where `beside` lies or will lie. */
int mri_output_spill(int *fd, const char *beside, mr_error *err);

/* Give the file at path a second name, under which it stays when an output replaces it. Again: nothing
 * happens. MR_EEXIST: another file has that name; with force that one is removed. */
int mri_output_keep_as(const char *path, const char *name, bool force, mr_error *err);

/* Another name in the same folder for a file that an output of ours was. MR_EEXIST: there is a file of that
 * name. */
int mri_output_move(const char *from, const char *to, mr_error *err);

/* Remove a file that an output of ours was: a regular file, no link is followed. MR_OK when it is not
 * there. */
int mri_output_remove(const char *path, const mri_output_rules *rules, mr_error *err);

#endif
