/* pipeline/read/reader_kind.h: declarations shared by the kinds of reader. Private to reader.c and
 * reader_*.c. */
#ifndef MRI_READER_KIND_H
#define MRI_READER_KIND_H

#include <fcntl.h>

#include "formats/storage/open_pool.h"
#include "pipeline/read/reader.h"

/* A pipe where a picture was listed is not waited for; regular files do not care. */
#define MRI_READ_OPEN_FLAGS (O_RDONLY | O_CLOEXEC | O_NONBLOCK)

typedef struct mri_read_list {
    mri_read *head, *tail;
} mri_read_list;

typedef struct mri_reader_kind {
    const char *name;
    int (*open)(mri_reader *r, mr_error *err);
    void (*close)(mri_reader *r);
    /* Move pending requests along; put at least one into done when block and anything is active or
     * pending, but for being woken. */
    int (*advance)(mri_reader *r, bool block, mr_error *err);
    void (*stop)(mri_reader *r); /* from any thread: what waits for a server comes back failed; NULL: nothing
                                    here waits long */
    void (*wake)(mri_reader *r); /* from any thread: advance() comes back; NULL: it waits in no place where it
                                    could be woken */
} mri_reader_kind;

extern const mri_reader_kind mri_reader_uring, mri_reader_pread, mri_reader_remote, mri_reader_own;

struct mri_reader {
    mri_reader_config cfg;
    const mri_reader_kind *kind; /* the reading thread's: a ring that cannot be made becomes another kind */
    void (*stop)(mri_reader *r); /* of the kind at first; fixed after create, for any thread asks it */
    mri_read_list pending, done;
    uint32_t active;    /* started, not done */
    uint32_t submitted; /* not yet reaped */
    int *direct_fds;    /* shared files opened again with O_DIRECT, -1 where not; NULL without direct, or with
                           direct_pool */
    uint32_t direct_allowed;    /* descriptors of direct_fds, from mri_open_allow() */
    mri_open_pool *direct_pool; /* the same for many files: opened when they are read; -1 where not */
    bool bounded;               /* the source has more files than it keeps open */
    bool *in_memory; /* shared files that lie in memory (tmpfs, unpacked .gz); NULL when none does */
    uint32_t file_count, fd_count; /* fd_count: one more where there is an extra file, the last one */
    char *paths;                   /* depth names of PATH_ROOM bytes for files being opened */
    char **free_paths;
    uint32_t free_path_count;
    mri_reader_counts counts;
    bool lost;                   /* the kernel may still write to buffers, and cannot be asked to stop */
    void *ring;                  /* the kind's own */
    void (*wake)(mri_reader *r); /* of the kind it began as */
    int wake_fd; /* io_uring: an eventfd. Outlives the ring: a reader may fall back to pread */
};

#define MRI_PATH_ROOM 4096

void mri_read_push(mri_read_list *l, mri_read *q);
void mri_read_push_front(mri_read_list *l, mri_read *q);
mri_read *mri_read_pop(mri_read_list *l);

/* The request's place among the shared files, the extra one included. Not for samples with a file of their
 * own. */
static inline uint32_t mri_read_file_index(const mri_reader *r, const mri_read *q)
{
    return q->file == MRI_FILE_OF_CACHE ? r->file_count : q->file;
}

typedef enum mri_started {
    MRI_STARTED,
    MRI_FINISHED, /* its file cannot be opened: it is in done */
    MRI_NOT_NOW,  /* as many files as may be are in use: it is as it was */
} mri_started;

/* Prepare a request for its first read (own files: its open). must: a file over the bound is opened rather
 * than not now; for those who have nothing else to wait for. */
mri_started mri_read_start(mri_reader *r, mri_read *q, bool must);
/* The descriptor to read from. */
int mri_read_fd(const mri_reader *r, const mri_read *q);
/* Take the result of a read: true when the request is finished (status set), false when it must go on at at +
 * done. */
bool mri_read_took(mri_reader *r, mri_read *q, int result);
/* An own file is open as q->fd. False: it is not a regular file, and the request is done: a pipe in its place
 * has no bytes at an offset, and may never have any. */
bool mri_read_opened(mri_reader *r, mri_read *q);
/* A descriptor answered EAGAIN: true when it is to be asked again, false when the request ends with that. */
bool mri_read_asks_again(const mri_reader *r, mri_read *q);
/* Read to the end of the request in this thread: pread. A file of its own is opened first. */
void mri_read_now(mri_reader *r, mri_read *q);
/* Finish: close an own file, give its name back, put it into done. */
void mri_read_finish(mri_reader *r, mri_read *q, int status, int sys_errno);

#endif
