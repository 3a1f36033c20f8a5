/* python/native/inbox.c: see native.h. */
#include "python/native/native.h"

#include <pthread.h>
#include <stdatomic.h>
#include <stdlib.h>

#define REPORTS_MOST 1024u

struct report {
    struct report *next;
    int kind;
    uint64_t substitute;
    mr_error what;
};

struct mrp_inbox {
    pthread_mutex_t lock; /* all below */
    struct report *head, *tail;
    uint32_t count;
    uint64_t lost;
    atomic_int flag; /* written under the lock, read by anybody; 0: nothing came since it was found empty */
};

mrp_inbox *mrp_inbox_create(void)
{
    mrp_inbox *in = calloc(1, sizeof *in);
    if (in) pthread_mutex_init(&in->lock, NULL);
    return in;
}

void mrp_inbox_destroy(mrp_inbox *in)
{
    if (!in) return;
    for (struct report *r = in->head, *next; r; r = next) {
        next = r->next;
        free(r);
    }
    pthread_mutex_destroy(&in->lock);
    free(in);
}

static void put(mrp_inbox *in, int kind, const mr_error *what, uint64_t substitute)
{
    struct report *r = malloc(sizeof *r);
    if (r) *r = (struct report){.kind = kind, .what = *what, .substitute = substitute};
    pthread_mutex_lock(&in->lock);
    if (!r || in->count == REPORTS_MOST) {
        in->lost++;
        free(r);
    } else {
        if (in->tail) in->tail->next = r;
        else in->head = r;
        in->tail = r;
        in->count++;
    }
    atomic_store_explicit(&in->flag, 1, memory_order_release);
    pthread_mutex_unlock(&in->lock);
}

void mrp_on_note(void *inbox, const char *text)
{
    mr_error what = MR_ERROR_INIT;
    mr_error_set(&what, MR_OK, "%s", text);
    put(inbox, MRP_NOTE, &what, MR_NOWHERE);
}

void mrp_on_bad(void *inbox, const mr_error *what, uint64_t substitute)
{
    put(inbox, MRP_BAD, what, substitute);
}

int mrp_inbox_take(mrp_inbox *in, mr_error *what, uint64_t *substitute, uint64_t *lost)
{
    pthread_mutex_lock(&in->lock);
    struct report *r = in->head;
    if (r) {
        in->head = r->next;
        if (!in->head) in->tail = NULL;
        in->count--;
    } else {
        atomic_store_explicit(&in->flag, 0, memory_order_relaxed);
    }
    *lost = in->lost;
    pthread_mutex_unlock(&in->lock);
    if (!r) return 0;
    const int kind = r->kind;
    *what = r->what;
    *substitute = r->substitute;
    free(r);
    return kind;
}

const void *mrp_inbox_flag(const mrp_inbox *in) { return &in->flag; }
