/* pipeline/read/reader.h: many reads in flight from one thread. Private.
 *
 * Takes byte ranges of a source's files, and memory to put them. Gives them back in any order, whole or with
 * the error of each; resident.h gives a whole set at once. Callers: the stages and the loader; what bytes
 * mean and which are wanted is theirs.
 *
 *   caller ── submit ──► [pending] ──► kernel ──► [done] ── reap ──► caller
 *
 * Three kinds behind one interface: io_uring, pread() where the kernel or a container policy refuses
 * io_uring, and the one for sources with remote files, which waits for their blocks and then reads them from
 * where they were put (pread). A reader knows files and byte ranges, nothing of formats. Samples that are
 * files of their own are opened, read and closed through the same ring.
 *
 * Threads: a reader belongs to the thread that first submits to it. */
#ifndef MRI_READER_H
#define MRI_READER_H

#include "formats/remote/remote.h"
#include "millrace/pipeline.h"

#define MRI_DIRECT_ALIGN 4096 /* offset, length and address granularity of O_DIRECT on every disk in use */

#define MRI_FILE_OF_CACHE                                                                                    \
    (UINT32_MAX - 1) /* the one file besides the source's: mri_reader_config.extra_fd                        \
                      */

/* One request, in the caller's memory until it is reaped. */
typedef struct mri_read {
    /* in */
    uint32_t file;   /* shared file of the source, MR_FILE_OF_SAMPLE or MRI_FILE_OF_CACHE */
    uint64_t sample; /* which sample's file, and for messages */
    uint64_t offset;
    size_t bytes;    /* wanted */
    uint8_t *buffer; /* room for mri_reader_room(offset, bytes) */
    int buffer_idx;  /* registered buffer that buffer lies in, or -1 */
    void *owner;     /* the caller's */
    /* out */
    int status;          /* MR_OK, or the code of `error` */
    const uint8_t *data; /* the wanted bytes, inside buffer */
    int sys_errno;
    size_t got; /* of the wanted bytes when the file ended early */
    /* the reader's own */
    struct mri_read *next;
    int fd;         /* own file, or a shared one that is on loan (lease); -1 when not open */
    int lease;      /* the reader's: whose fd is, and who gets it back */
    bool is_direct; /* fd is read with O_DIRECT */
    int stage;
    uint64_t at;             /* window start in the file */
    size_t window, done;     /* bytes of the window, bytes of it read */
    char *path;              /* own file's name while it is being opened */
    mri_block_request want;  /* of a remote file: its blocks */
    void *own;               /* the kind's */
    bool has_arrived;        /* the kind's */
    struct mri_making *made; /* of samples that are begun: NULL at first, then kept; mri_read_forget() frees
                                it */
    uint32_t refusals;       /* EAGAIN, one after the other */
} mri_read;

typedef struct mri_reader_counts {
    uint64_t reads, again, shorts, bytes;
} mri_reader_counts;

typedef struct mri_reader_config {
    const mr_source *source;
    uint32_t depth;       /* reads in flight */
    bool direct;          /* O_DIRECT for shared files that allow it */
    bool any_thread;      /* calls come from several threads in turn, never two at once; else from one */
    void *const *buffers; /* registered with the kernel when it allows; all of buffer_bytes */
    uint32_t buffer_count;
    size_t buffer_bytes;
    int extra_fd; /* open for reading, when extra_path is not NULL; it outlives the reader */
    const char *extra_path;
    void (*note)(void *context, const char *text); /* from the reader's thread: io_uring was refused there; or
                                                      NULL */
    void *note_context;
    /* tests: may turn a result of the kernel into another (short read, -EINTR, -EAGAIN, -EIO); NULL in use */
    int (*filter)(void *context, int result, size_t asked);
    void *filter_context;
} mri_reader_config;

typedef struct mri_reader mri_reader;

/* Can this process create a ring for depth requests? If not, the reason is written to note. */
bool mri_uring_usable(uint32_t depth, char *note, size_t note_bytes);

/* kind: MR_IO_URING or MR_IO_PREAD; a source with remote files has its own. */
int mri_reader_create(mri_reader **out, mr_io kind, const mri_reader_config *cfg, mr_error *err);
/* Waits for requests in flight. Accepts NULL. */
void mri_reader_destroy(mri_reader *r);

/* From any thread: reads that wait for a server come back, now and from now on, with ECANCELED. */
void mri_reader_stop(mri_reader *r);

/* From any thread, once the reader's is known: a waiting reap(), or the next one that would wait, returns.
 * For a caller that can submit more before the requests in flight are done. */
void mri_reader_wake(mri_reader *r);

/* Queue a request; mri_reader_reap() starts it when there is room in flight. */
void mri_reader_submit(mri_reader *r, mri_read *request);
/* Start queued requests and take one finished request: NULL when no request is finished (block false) or in
 * flight, or it was woken. When it fails the kernel no longer uses any buffer, and all requests in flight
 * have failed and can be reaped. */
int mri_reader_reap(mri_reader *r, bool block, mri_read **out, mr_error *err);
uint32_t mri_reader_in_flight(const mri_reader *r); /* submitted, not yet reaped */
/* True only after a failure of the ring itself: buffers must not be freed, the kernel may still write to
 * them. */
bool mri_reader_keeps_buffers(const mri_reader *r);
mri_reader_counts mri_reader_counts_of(const mri_reader *r);

/* Free the memory kept for a request that is not used again. */
void mri_read_forget(mri_read *request);

/* Bytes of buffer a request needs: with O_DIRECT the window is widened to whole blocks. */
size_t mri_reader_room(bool direct, uint64_t offset, size_t bytes);

/* Turn a finished, failed request into an error that names file, offset, expected and found. Returns its
 * code. */
int mri_read_error(const mri_read *request, const mr_source *source, mr_error *err);

#endif
