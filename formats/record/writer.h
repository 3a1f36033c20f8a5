/* formats/record/writer.h: the inside of an open .mrec writer, shared by writer.c and writer_resume.c.
 * Private. */
#ifndef MRI_WRITER_H
#define MRI_WRITER_H

#include "formats/record/mrec.h"
#include "formats/storage/output.h"

/* Index pages as they fill: one piece of memory, then an unnamed file in the output's folder, so that the
 * writer's memory does not grow with the number of records. */
typedef struct mri_index_log {
    uint8_t *chunk;   /* MRI_LOG_PAGES pages */
    uint32_t pages;   /* sealed ones in chunk */
    uint32_t slot;    /* entries in the page being filled */
    uint64_t number;  /* of the page being filled */
    uint64_t spilled; /* bytes in fd */
    int fd;           /* without a name; -1 until the first spill */
    const char *path; /* beside which it lies; borrowed */
} mri_index_log;

int mri_index_log_init(mri_index_log *log, const char *path, mr_error *err);
void mri_index_log_fini(mri_index_log *log);
int mri_index_log_add(mri_index_log *log, const mri_index_entry *e, mr_error *err);
/* Pass all pages in order to put(); the last one is sealed first. */
int mri_index_log_emit(mri_index_log *log,
                       int (*put)(void *to, const void *data, size_t bytes, mr_error *err), void *to,
                       mr_error *err);

struct mr_writer {
    uint32_t process; /* that opened it (base/handle.h) */
    mri_meta meta;
    mri_mrec_header h; /* of the unfinished file until finish; sums grow with every record */
    uint8_t *prefix;   /* the file's first h.data_offset bytes */
    mri_output *out;
    const char *path, *part; /* of out */
    int fd;                  /* of out */
    bool verify;
    uint32_t align; /* 0 until the first record decides */
    uint64_t end;   /* where the last record ends; h.data_offset at first */
    uint64_t next_source;
    bool coef;    /* a record holds coefficients, */
    bool files;   /* a picture file of a kind that version 1.4 added */
    uint8_t *buf; /* bytes not yet in the file */
    size_t filled;
    uint64_t buf_at; /* file offset of buf[0] */
    mri_index_log log;
    mri_fingerprint *print;
    mr_error failure; /* code != 0: a write failed, and every later call fails */
};

static inline uint32_t mri_writer_align(const mr_writer *w, uint64_t record_bytes)
{
    if (w->align) return w->align;
    return record_bytes >= MRI_AUTO_ALIGN_BYTES ? MRI_MREC_BLOCK : 8;
}

/* A record now lies at offset: keep its facts. */
int mri_writer_accept(mr_writer *w, uint64_t offset, const mri_record_facts *facts, mr_error *err);

/* Keep the complete records of the part file and cut off what follows them. A part file without a complete
 * beginning is emptied; one that was begun for other data is refused with MR_EEXIST. */
int mri_writer_resume(mr_writer *w, mr_error *err);

#endif
