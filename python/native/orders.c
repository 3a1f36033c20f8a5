/* python/native/orders.c: see native.h. Orders that Python gives, epoch by epoch, to threads of the library
 * that never call Python.
 *
 *   consumer's thread   put(e), put(e + 1), ...     drop(e) once all of e was delivered
 *   reader threads      ask(e, position)            waits until e is there, or close() */
#include <pthread.h>
#include <stdlib.h>
#include <string.h>

#include "python/native/native.h"

struct order {
    struct order *next;
    uint64_t epoch;
    uint64_t sample[];
};

struct mrp_orders {
    uint64_t count; /* fixed */
    pthread_mutex_t lock;
    pthread_cond_t changed;
    struct order *first; /* lock, like all below */
    uint64_t wanted;     /* an epoch that is waited for, or MR_NOWHERE */
    int closed;
};

mrp_orders *mrp_orders_create(uint64_t count)
{
    mrp_orders *o = calloc(1, sizeof *o);
    if (!o) return NULL;
    o->count = count;
    o->wanted = MR_NOWHERE;
    pthread_mutex_init(&o->lock, NULL);
    pthread_cond_init(&o->changed, NULL);
    return o;
}

static struct order **place_of(mrp_orders *o, uint64_t epoch)
{
    struct order **at = &o->first;
    while (*at && (*at)->epoch != epoch) at = &(*at)->next;
    return at;
}

int mrp_orders_put(mrp_orders *o, uint64_t epoch, const uint64_t *samples)
{
    struct order *made = NULL;
    if (o->count <= (SIZE_MAX - sizeof *made) / sizeof *samples)
        made = malloc(sizeof *made + (size_t)o->count * sizeof *samples);
    if (!made) return MR_ENOMEM;
    made->epoch = epoch;
    memcpy(made->sample, samples, (size_t)o->count * sizeof *samples);
    pthread_mutex_lock(&o->lock);
    struct order **at = place_of(o, epoch), *old = *at;
    made->next = old ? old->next : NULL;
    *at = made;
    if (o->wanted == epoch) o->wanted = MR_NOWHERE; /* whoever waits for another says so again */
    pthread_cond_broadcast(&o->changed);
    pthread_mutex_unlock(&o->lock);
    free(old);
    return MR_OK;
}

void mrp_orders_drop(mrp_orders *o, uint64_t epoch)
{
    pthread_mutex_lock(&o->lock);
    for (struct order **at = &o->first, *e; (e = *at);) {
        if (e->epoch < epoch) {
            *at = e->next;
            free(e);
        } else {
            at = &e->next;
        }
    }
    pthread_mutex_unlock(&o->lock);
}

uint64_t mrp_orders_wanted(mrp_orders *o)
{
    pthread_mutex_lock(&o->lock);
    const uint64_t epoch = o->wanted;
    pthread_mutex_unlock(&o->lock);
    return epoch;
}

void mrp_orders_close(mrp_orders *o)
{
    pthread_mutex_lock(&o->lock);
    o->closed = 1;
    pthread_cond_broadcast(&o->changed);
    pthread_mutex_unlock(&o->lock);
}

void mrp_orders_destroy(mrp_orders *o)
{
    if (!o) return;
    mrp_orders_drop(o, MR_NOWHERE);
    pthread_cond_destroy(&o->changed);
    pthread_mutex_destroy(&o->lock);
    free(o);
}

int mrp_orders_ask(void *context, uint64_t epoch, uint64_t first, uint32_t count, uint64_t *out,
                   mr_error *err)
{
    mrp_orders *o = context;
    const struct order *e = NULL;
    pthread_mutex_lock(&o->lock);
    while (!o->closed && !(e = *place_of(o, epoch))) {
        o->wanted = epoch;
        pthread_cond_wait(&o->changed, &o->lock);
    }
    if (e) memcpy(out, e->sample + first, count * sizeof *out);
    pthread_mutex_unlock(&o->lock);
    return e ? MR_OK : mr_error_set(err, MR_ECANCELED, "the loader was closed");
}
