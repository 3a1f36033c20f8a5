/* pipeline/stream/notices.c: see notices.h. */
#include "pipeline/stream/notices.h"

void mri_notices_init(mri_notices *n, const mri_listener *to)
{
    *n = (mri_notices){.to = *to};
    pthread_mutex_init(&n->lock, NULL);
}

void mri_notices_fini(mri_notices *n) { pthread_mutex_destroy(&n->lock); }

void mri_notice_bad(mri_notices *n, const mr_error *what, uint64_t substitute)
{
    if (!n->to.on_bad) return;
    pthread_mutex_lock(&n->lock);
    n->to.on_bad(n->to.bad_context, what, substitute);
    pthread_mutex_unlock(&n->lock);
}

void mri_notice_text(void *notices, const char *text)
{
    mri_notices *n = notices;
    if (!n->to.on_note) return;
    pthread_mutex_lock(&n->lock);
    n->to.on_note(n->to.note_context, text);
    pthread_mutex_unlock(&n->lock);
}

void mri_notice_once(void *notices, const char *text)
{
    mri_notices *n = notices;
    if (!__atomic_test_and_set(&n->io_noted, __ATOMIC_RELAXED)) mri_notice_text(n, text);
}
