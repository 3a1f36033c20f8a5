/* pipeline/stream/notices.c: see notices.h. */
#include "pipeline/stream/notices.h"

struct mri_notice {
    mri_notice *next;
    bool is_bad; /* a bad sample, as the next five say; else a note */
    int code, sys_errno;
    uint64_t offset, sample, substitute;
    size_t file_bytes; /* with the 0 at its end */
    char text[];       /* of a bad sample the file; then the text */
};

void mri_notices_init(mri_notices *n, const mri_listener *to)
{
    *n = (mri_notices){.to = *to};
    pthread_mutex_init(&n->lock, NULL);
}

void mri_notices_fini(mri_notices *n)
{
    for (mri_notice *one = n->first, *next; one; one = next) {
        next = one->next;
        free(one);
    }
    pthread_mutex_destroy(&n->lock);
}

static mri_notice *make(const char *file, const char *text)
{
    const size_t file_bytes = strlen(file) + 1, text_bytes = strlen(text) + 1;
    mri_notice *one = malloc(sizeof *one + file_bytes + text_bytes);
    if (!one) return NULL;
    *one = (mri_notice){.file_bytes = file_bytes};
    memcpy(one->text, file, file_bytes);
    memcpy(one->text + file_bytes, text, text_bytes);
    return one;
}

/* one NULL: there was no memory for a note. */
static void queue(mri_notices *n, mri_notice *one)
{
    pthread_mutex_lock(&n->lock);
    if (!one) n->lost = true;
    else if (n->last) n->last->next = one;
    else n->first = one;
    if (one) n->last = one;
    __atomic_store_n(&n->any, true, __ATOMIC_RELEASE);
    pthread_mutex_unlock(&n->lock);
}

int mri_notice_bad(mri_notices *n, const mr_error *what, uint64_t substitute, mr_error *err)
{
    if (!n->to.on_bad) return MR_OK;
    mri_notice *one = make(what->file, what->text);
    if (!one) return mr_error_set(err, MR_ENOMEM, "no memory to report a damaged sample");
    one->is_bad = true;
    one->code = what->code;
    one->sys_errno = what->sys_errno;
    one->offset = what->offset;
    one->sample = what->sample;
    one->substitute = substitute;
    queue(n, one);
    return MR_OK;
}

void mri_notice_text(void *notices, const char *text)
{
    mri_notices *n = notices;
    if (n->to.on_note) queue(n, make("", text));
}

void mri_notice_once(void *notices, const char *text)
{
    mri_notices *n = notices;
    if (!__atomic_test_and_set(&n->io_noted, __ATOMIC_RELAXED)) mri_notice_text(n, text);
}

static void tell(const mri_notices *n, const mri_notice *one)
{
    const char *text = one->text + one->file_bytes;
    if (!one->is_bad) {
        n->to.on_note(n->to.note_context, text);
        return;
    }
    mr_error what = MR_ERROR_INIT;
    what.code = one->code;
    what.sys_errno = one->sys_errno;
    what.offset = one->offset;
    what.sample = one->sample;
    memcpy(what.file, one->text, one->file_bytes);
    memcpy(what.text, text, strlen(text) + 1);
    n->to.on_bad(n->to.bad_context, &what, one->substitute);
}

void mri_notices_tell(mri_notices *n)
{
    while (__atomic_load_n(&n->any, __ATOMIC_ACQUIRE)) {
        pthread_mutex_lock(&n->lock);
        mri_notice *one = n->first;
        const bool lost = !one && n->lost;
        if (one) n->first = one->next;
        if (!n->first) n->last = NULL;
        if (!one) n->lost = false;
        __atomic_store_n(&n->any, n->first || n->lost, __ATOMIC_RELEASE);
        pthread_mutex_unlock(&n->lock);
        if (one) tell(n, one);
        free(one);
        if (lost) n->to.on_note(n->to.note_context, "a note was lost: there was no memory for it");
    }
}
