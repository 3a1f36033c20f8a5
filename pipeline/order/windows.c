/* pipeline/order/windows.c: sorting by length inside windows of the order, for batches that need little
 * padding.
 *
 *   order of the epoch     5 3 9 1 | 7 2 8 6 | 4 0 ...      windows of `window` batches (here 2 of 2 samples)
 *   lengths                4 1 9 2
 *   sorted, stable         3 1 5 9                          equal lengths stay in the order they had
 *   full batches           {3 1} {5 9}
 *   delivered              {5 9} {3 1}                      in an order drawn for this window: short and long
 *                          ones mix in time
 *
 * Positions are cut first, so a dropped tail is the same as without windows, and each sample comes once (I3).
 * The batch that is not full, if there is one, is the last of the last window and stays the last of the
 * epoch; it has that window's longest samples.
 *
 * A batch follows from its number alone: its window is sorted when the first of its batches is asked for, and
 * the latest two are kept, so a run that begins inside a window sorts that one and replays nothing (I4).
 * Batches are asked for nearly in order, therefore two are enough; who comes late for a third one sorts it
 * again.
 *
 *   kept:  EMPTY ──► SORTING (one thread, without the lock) ──► READY ──► SORTING another ...
 *
 * A wait for a window that is being sorted ends with the sorting, stopped or not: it is bounded by the
 * window. */
#include "pipeline/order/windows.h"

#include <pthread.h>

#include "base/util.h"
#include "pipeline/order/sampler.h"

enum { KEPT = 2, RADIX = 256 };
#define PERMUTATION_KEY UINT64_C(0x6c656e6774687321) /* apart from all other draws of an epoch */

typedef enum state { EMPTY, SORTING, READY } state;

typedef struct kept {
    state state; /* lock, like all here except the arrays' contents while SORTING */
    uint64_t epoch, number;
    uint64_t used; /* when it was asked for last */
    uint32_t count;
    uint64_t *sample, *room; /* each for a whole window */
} kept;

struct mri_windows {
    mri_windows_config cfg; /* fixed */
    uint64_t samples;       /* in a whole window; fixed */
    uint64_t in_set;        /* fixed */
    pthread_mutex_t lock;
    pthread_cond_t sorted;
    uint64_t clock; /* lock */
    kept kept[KEPT];
};

static uint64_t window_samples(uint32_t batch, uint32_t window, uint64_t delivered)
{
    return mri_min_u64((uint64_t)batch * window, delivered);
}

uint64_t mri_windows_bytes(uint32_t batch, uint32_t window, uint64_t delivered)
{
    const uint64_t n = window_samples(batch, window, delivered);
    return n > UINT32_MAX ? UINT64_MAX : sizeof(mri_windows) + KEPT * 2 * n * sizeof(uint64_t);
}

int mri_windows_no_lengths(const mr_source_info *info, mr_error *err)
{
    return mr_error_set(
        err, MR_EUNSUPPORTED,
        "--length-window sorts by lengths, and %s (%s) does not tell them without reading its samples; a "
        "text of sequences does, and a record file where one tensor alone differs in size: convert it (once "
        "more, if it is one), or leave the window out",
        info->path, info->format);
}

int mri_windows_create(mri_windows **out, const mri_windows_config *cfg, mr_error *err)
{
    mri_windows *w = calloc(1, sizeof *w);
    *out = w;
    if (!w) return mr_error_set(err, MR_ENOMEM, "no memory for windows of lengths");
    w->cfg = *cfg;
    w->samples = window_samples(cfg->batch, cfg->window, cfg->delivered);
    w->in_set = mr_source_info_of(cfg->source)->count;
    pthread_mutex_init(&w->lock, NULL);
    pthread_cond_init(&w->sorted, NULL);
    bool whole = w->samples <= UINT32_MAX; /* a place in a window has 32 bits of a key */
    for (int k = 0; k < KEPT && whole; k++) {
        w->kept[k].sample = calloc((size_t)w->samples, sizeof(uint64_t));
        w->kept[k].room = calloc((size_t)w->samples, sizeof(uint64_t));
        whole = w->kept[k].sample && w->kept[k].room;
    }
    if (whole) return MR_OK;
    mri_windows_destroy(w);
    *out = NULL;
    return mr_error_set(err, MR_ENOMEM, "no memory for windows of %u batches: lower --length-window",
                        cfg->window);
}

void mri_windows_destroy(mri_windows *w)
{
    if (!w) return;
    for (int k = 0; k < KEPT; k++) {
        free(w->kept[k].sample);
        free(w->kept[k].room);
    }
    pthread_cond_destroy(&w->sorted);
    pthread_mutex_destroy(&w->lock);
    free(w);
}

/* ---- sorting one ---- */
static int length_of(const mri_windows *w, uint64_t sample, uint32_t *out, mr_error *err)
{
    const int rc = mr_source_length(w->cfg.source, sample, out);
    if (rc == MR_OK) return MR_OK;
    *out = 0;
    if (rc == MR_ECHECKSUM || rc == MR_EFORMAT) return MR_OK;
    char path[4096];
    mr_error_set(err, rc, "the length of this sample could not be had, and --length-window sorts by it");
    mr_error_at(err, mr_source_sample_path(w->cfg.source, sample, path, sizeof path), MR_NOWHERE, sample);
    return rc;
}

/* Sort keys by one byte; equal bytes keep their previous order. */
static void sort_byte(const uint64_t *from, uint64_t *to, uint32_t count, uint32_t shift)
{
    uint32_t at[RADIX] = {0}, sum = 0;
    for (uint32_t k = 0; k < count; k++) at[from[k] >> shift & (RADIX - 1)]++;
    for (uint32_t b = 0; b < RADIX; b++) {
        const uint32_t n = at[b];
        at[b] = sum;
        sum += n;
    }
    for (uint32_t k = 0; k < count; k++) to[at[from[k] >> shift & (RADIX - 1)]++] = from[k];
}

/* Only the bytes that lengths have; an even number of passes, so that the keys end where they began. */
static void sort_keys(kept *e, uint32_t longest)
{
    uint32_t shift = 32;
    do {
        sort_byte(e->sample, e->room, e->count, shift);
        sort_byte(e->room, e->sample, e->count, shift + 8);
        shift += 16;
    } while (shift < 64 && longest >> (shift - 32));
}

static int sort_window(const mri_windows *w, kept *e, mr_error *err)
{
    const mri_windows_config *c = &w->cfg;
    const mri_epoch_order order = mri_epoch_order_make(c->order, c->block, c->seed, e->epoch, w->in_set);
    const uint64_t start = e->number * w->samples;
    uint32_t longest = 0;
    e->count = (uint32_t)mri_min_u64(w->samples, c->delivered - start);
    for (uint32_t k = 0; k < e->count; k++) {
        uint32_t length;
        const int rc = length_of(w, mri_epoch_order_sample(&order, start + k), &length, err);
        if (rc) return rc;
        e->sample[k] = (uint64_t)length << 32 | k;
        longest = length > longest ? length : longest;
    }
    sort_keys(e, longest);
    for (uint32_t k = 0; k < e->count; k++)
        e->sample[k] = mri_epoch_order_sample(&order, start + (uint32_t)e->sample[k]);
    return MR_OK;
}

/* ---- keeping the latest ---- */
/* The one that is wanted, whatever its state, or the one to give up for it; NULL: all are being sorted. */
static kept *find_locked(mri_windows *w, uint64_t epoch, uint64_t number)
{
    kept *oldest = NULL;
    for (int k = 0; k < KEPT; k++) {
        kept *e = &w->kept[k];
        if (e->state != EMPTY && e->epoch == epoch && e->number == number) return e;
        if (e->state != SORTING && (!oldest || e->used < oldest->used)) oldest = e;
    }
    return oldest;
}

/* The window, READY; the lock is held again, and was not held while it was sorted. */
static int window_locked(mri_windows *w, uint64_t epoch, uint64_t number, kept **out, mr_error *err)
{
    for (;;) {
        kept *e = find_locked(w, epoch, number);
        const bool same = e && e->state != EMPTY && e->epoch == epoch && e->number == number;
        if (same && e->state == READY) {
            e->used = ++w->clock;
            *out = e;
            return MR_OK;
        }
        if (!e || same) {
            pthread_cond_wait(&w->sorted, &w->lock);
            continue;
        }
        e->state = SORTING;
        e->epoch = epoch;
        e->number = number;
        pthread_mutex_unlock(&w->lock);
        const int rc = sort_window(w, e, err);
        pthread_mutex_lock(&w->lock);
        e->state = rc ? EMPTY : READY;
        pthread_cond_broadcast(&w->sorted);
        if (rc) return rc;
    }
}

/* ---- one batch ---- */
/* Which of a window's sorted batches is delivered as its at-th. */
static uint64_t drawn(const mri_windows *w, const kept *e, uint64_t at)
{
    const uint64_t full = e->count / w->cfg.batch;
    if (at >= full) return at;
    const uint64_t of_epoch = mri_mix64(mri_mix64(w->cfg.seed ^ PERMUTATION_KEY) ^ mri_mix64(~e->epoch));
    const mri_permutation p = mri_permutation_make(full, mri_mix64(of_epoch ^ e->number));
    return mri_permute(&p, at);
}

int mri_windows_list(mri_windows *w, uint64_t epoch, uint64_t step, uint32_t first, uint32_t count,
                     uint64_t *out, mr_error *err)
{
    const uint64_t number = step / w->cfg.window;
    kept *e;
    pthread_mutex_lock(&w->lock);
    const int rc = window_locked(w, epoch, number, &e, err);
    if (rc == MR_OK) {
        const uint64_t start = drawn(w, e, step % w->cfg.window) * w->cfg.batch;
        const uint64_t there = mri_min_u64(w->cfg.batch, e->count - start);
        for (uint32_t k = 0; k < count; k++) out[k] = e->sample[start + (first + k) % there];
    }
    pthread_mutex_unlock(&w->lock);
    return rc;
}
