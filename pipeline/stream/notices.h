/* pipeline/stream/notices.h: reports to the user during a run: bad samples and notes. Private.
 *
 *   any stage: event ──► queue ──► the thread that takes batches: calls the listener
 *
 * A listener may take as long as it likes, so no stage calls it: mri_notices_tell() does, in the thread that
 * asks for batches. Notices queued before a batch was full are delivered before that batch is handed out. */
#ifndef MRI_NOTICES_H
#define MRI_NOTICES_H

#include "base/util.h"
#include "millrace/pipeline.h"

typedef struct mri_listener { /* each function may be NULL */
    mr_bad_report *on_bad;
    void *bad_context;
    void (*on_note)(void *context, const char *text);
    void *note_context;
} mri_listener;

typedef struct mri_notice mri_notice;

typedef struct mri_notices {
    mri_listener to;      /* fixed */
    pthread_mutex_t lock; /* the three below */
    mri_notice *first, *last;
    bool lost;     /* for want of memory, a note */
    bool any;      /* atomic: there may be something to tell */
    bool io_noted; /* atomic */
} mri_notices;

void mri_notices_init(mri_notices *n, const mri_listener *to);
void mri_notices_fini(mri_notices *n); /* drops undelivered notices */

/* MR_ENOMEM: there is no memory to keep the report. */
int mri_notice_bad(mri_notices *n, const mr_error *what, uint64_t substitute, mr_error *err);
/* notices: a mri_notices; in this form they serve the cache and the readers. */
void mri_notice_text(void *notices, const char *text);
/* Several readers, one note. */
void mri_notice_once(void *notices, const char *text);

/* Call the listener with all that is queued, in order. One thread at a time; no lock is held. */
void mri_notices_tell(mri_notices *n);

#endif
