/* tests/cuda_emu/live.c: the set of handles that exist: a table with open addressing. Addresses are kept
 * inverted, so that a leak checker does not take the table for their owner: a handle nobody destroys is still
 * reported as a leak. */
#include "tests/cuda_emu/live.h"

#include <pthread.h>
#include <stdint.h>
#include <stdlib.h>

struct entry {
    uintptr_t inverted; /* 0: never used */
    int kind;           /* 0: was removed */
};

static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;
static struct entry *table;   /* lock */
static size_t capacity, used; /* lock; used counts removed ones too */

static struct entry *find_locked(struct entry *in, size_t size, uintptr_t inverted)
{
    size_t at = (size_t)((inverted >> 4) * UINT64_C(0x9E3779B97F4A7C15)) & (size - 1);
    while (in[at].inverted != 0 && in[at].inverted != inverted) at = (at + 1) & (size - 1);
    return &in[at];
}

static bool grow_locked(void)
{
    const size_t bigger = capacity ? 2 * capacity : 256;
    struct entry *fresh = calloc(bigger, sizeof *fresh);
    if (!fresh) return false;
    used = 0;
    for (size_t i = 0; i < capacity; i++) {
        if (table[i].kind == 0) continue;
        *find_locked(fresh, bigger, table[i].inverted) = table[i];
        used++;
    }
    free(table);
    table = fresh;
    capacity = bigger;
    return true;
}

bool emu_live_add(const void *handle, enum emu_live_kind kind)
{
    pthread_mutex_lock(&lock);
    const bool room = 2 * (used + 1) <= capacity || grow_locked();
    if (room) {
        struct entry *e = find_locked(table, capacity, ~(uintptr_t)handle);
        if (e->inverted == 0) used++;
        *e = (struct entry){.inverted = ~(uintptr_t)handle, .kind = (int)kind};
    }
    pthread_mutex_unlock(&lock);
    return room;
}

bool emu_live_remove(const void *handle, enum emu_live_kind kind)
{
    pthread_mutex_lock(&lock);
    struct entry *e = capacity ? find_locked(table, capacity, ~(uintptr_t)handle) : NULL;
    const bool there = e && e->inverted != 0 && e->kind == (int)kind;
    if (there) e->kind = 0;
    pthread_mutex_unlock(&lock);
    return there;
}

bool emu_live_is(const void *handle, enum emu_live_kind kind)
{
    pthread_mutex_lock(&lock);
    const struct entry *e = capacity ? find_locked(table, capacity, ~(uintptr_t)handle) : NULL;
    const bool there = e && e->inverted != 0 && e->kind == (int)kind;
    pthread_mutex_unlock(&lock);
    return there;
}

__attribute__((destructor)) static void forget(void)
{
    free(table);
    table = NULL;
    capacity = used = 0;
}
