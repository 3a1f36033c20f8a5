/* pipeline/stream/notices.h: reports to the user during a run: one bad sample or note at a time, from any
 * thread. Private. */
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

typedef struct mri_notices {
    pthread_mutex_t lock; /* held while the listener is called */
    mri_listener to;
    bool io_noted; /* atomic */
} mri_notices;

void mri_notices_init(mri_notices *n, const mri_listener *to);
void mri_notices_fini(mri_notices *n);

void mri_notice_bad(mri_notices *n, const mr_error *what, uint64_t substitute);
/* notices: a mri_notices; in this form they serve the cache and the readers. */
void mri_notice_text(void *notices, const char *text);
/* Several readers, one note. */
void mri_notice_once(void *notices, const char *text);

#endif
