/* pipeline/cache/points.c: see points.h. A list with a pointer for each sample, and large blocks that are
 * filled from the front and freed together.
 *
 *   kept   | bytes of the entry points u32 | CRC32C of the JPEG u32 | entry points | 0 to 7 bytes | */
#include "pipeline/cache/points.h"

#include <pthread.h>

#define HEAD_BYTES  8
#define BLOCK_BYTES ((uint64_t)1 << 20)

typedef struct block {
    struct block *next;
    uint64_t memory[];
} block;

struct mri_points {
    uint64_t count, budget_bytes;
    pthread_mutex_t lock;
    block *blocks; /* lock, like all up to kept */
    uint8_t *at;
    uint64_t left, taken; /* taken: of the budget */
    mri_points_counts kept;
    const uint8_t *of[]; /* atomic */
};

uint64_t mri_points_bytes(const mr_source_info *info)
{
    /* 1 % of photographs; with one segment a row and little in it, more */
    return mri_plus(mri_times(info->count, sizeof(void *) + 256), info->total_bytes / 48);
}

int mri_points_create(mri_points **out, uint64_t count, uint64_t bytes, mr_error *err)
{
    const uint64_t index = mri_plus(sizeof(mri_points), mri_times(count, sizeof(void *)));
    *out = index < SIZE_MAX ? calloc(1, (size_t)index) : NULL;
    if (!*out) return mr_error_set(err, MR_ENOMEM, "no memory for a list of entry points");
    (*out)->count = count;
    (*out)->budget_bytes = bytes;
    (*out)->taken = index;
    pthread_mutex_init(&(*out)->lock, NULL);
    return MR_OK;
}

void mri_points_destroy(mri_points *p)
{
    if (!p) return;
    for (block *b = p->blocks, *next; b; b = next) {
        next = b->next;
        free(b);
    }
    pthread_mutex_destroy(&p->lock);
    free(p);
}

static uint32_t crc_of(const mr_value *value) { return mr_crc32c(0, value->data, value->bytes); }

bool mri_points_find(const mri_points *p, uint64_t sample, mr_value *value)
{
    const uint8_t *kept = sample < p->count ? __atomic_load_n(&p->of[sample], __ATOMIC_ACQUIRE) : NULL;
    if (!kept || mri_le32(kept + 4) != crc_of(value)) return false;
    value->entries = kept + HEAD_BYTES;
    value->entries_bytes = mri_le32(kept);
    return true;
}

/* Room for `bytes`, a multiple of 8; NULL: no room. */
static uint8_t *reserve_locked(mri_points *p, uint64_t bytes)
{
    if (bytes > p->left) {
        const uint64_t taken = mri_plus(p->taken, sizeof(block)),
                       left = p->budget_bytes - mri_min_u64(p->budget_bytes, taken),
                       size = mri_min_u64(left, BLOCK_BYTES) & ~UINT64_C(7), all = size + sizeof(block);
        if (bytes > size) return NULL;
        block *b = malloc((size_t)all);
        if (!b) return NULL;
        b->next = p->blocks;
        p->blocks = b;
        p->at = (uint8_t *)b->memory;
        p->left = size;
        p->taken += all;
    }
    uint8_t *at = p->at;
    p->at += bytes;
    p->left -= bytes;
    return at;
}

void mri_points_keep(mri_points *p, uint64_t sample, const mr_value *value, const void *entries, size_t bytes)
{
    if (sample >= p->count || bytes > UINT32_MAX / 2) return;
    const uint32_t crc = crc_of(value);
    pthread_mutex_lock(&p->lock);
    uint8_t *at = reserve_locked(p, mri_align_up(HEAD_BYTES + bytes, 8));
    if (at) {
        mri_put_le32(at, (uint32_t)bytes);
        mri_put_le32(at + 4, crc);
        memcpy(at + HEAD_BYTES, entries, bytes);
        p->kept.pictures += p->of[sample] == NULL;
        p->kept.bytes += bytes;
        __atomic_store_n(&p->of[sample], at, __ATOMIC_RELEASE);
    }
    pthread_mutex_unlock(&p->lock);
}

mri_points_counts mri_points_counts_of(const mri_points *p)
{
    mri_points *m = (mri_points *)(uintptr_t)p;
    pthread_mutex_lock(&m->lock);
    const mri_points_counts kept = p->kept;
    pthread_mutex_unlock(&m->lock);
    return kept;
}
