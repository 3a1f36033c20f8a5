/* pipeline/cache/cache.c: which samples are kept, what an entry looks like; where entries lie is
 * cache_memory.c's and cache_disk.c's. */
#include "pipeline/cache/cache_store.h"

#define ENTRY_MAGIC 0x4543524du /* "MRCE" */
enum { DIMS = 3 };

/* ------------------------------------------------------------------------------ open, close */

uint64_t mri_cache_index_bytes(uint64_t count)
{
    uint64_t bytes;
    return __builtin_mul_overflow(count, sizeof(uint64_t) + sizeof(uint32_t), &bytes) ? UINT64_MAX : bytes;
}

uint64_t mri_cache_entry_max_bytes(const mri_cache_form *form, uint64_t value_bytes_most)
{
    const uint64_t most = form->bound(value_bytes_most);
    return most > UINT64_MAX - MRI_CACHE_ENTRY_HEAD - 16 ? UINT64_MAX : most + MRI_CACHE_ENTRY_HEAD + 16;
}

int mri_cache_open(mri_cache **out, const mri_cache_config *cfg, mr_error *err)
{
    *out = NULL;
    mri_cache *c = calloc(1, sizeof *c);
    if (!c) return mr_error_set(err, MR_ENOMEM, "no memory for a cache");
    c->cfg = *cfg;
    c->closed = cfg->waits;
    c->entry_max_bytes = mri_min_u64(mri_cache_entry_max_bytes(cfg->form, cfg->value_bytes_most), UINT32_MAX);
    int rc = MR_OK;
    if (mri_cache_index_bytes(cfg->count) <= SIZE_MAX / 2) {
        c->place = calloc((size_t)cfg->count, sizeof *c->place);
        c->bytes = calloc((size_t)cfg->count, sizeof *c->bytes);
    }
    if (!c->place || !c->bytes)
        rc = mr_error_set(err, MR_ENOMEM, "no memory for the cache's index of %llu samples",
                          (unsigned long long)cfg->count);
    if (rc == MR_OK) rc = cfg->folder ? mri_cache_disk_open(c, err) : mri_cache_memory_open(c, err);
    if (rc != MR_OK) {
        mri_cache_close(c);
        return rc;
    }
    *out = c;
    return MR_OK;
}

void mri_cache_close(mri_cache *c)
{
    if (!c) return;
    if (c->store && c->cfg.folder) mri_cache_disk_close(c);
    else if (c->store) mri_cache_memory_free(c);
    free(c->place);
    free(c->bytes);
    free(c);
}

void mri_cache_begin(mri_cache *c) { __atomic_store_n(&c->closed, false, __ATOMIC_RELAXED); }

int mri_cache_fd(const mri_cache *c) { return c->cfg.folder ? mri_cache_disk_fd(c) : -1; }
const char *mri_cache_path(const mri_cache *c) { return c->cfg.folder ? mri_cache_disk_path(c) : NULL; }

/* ------------------------------------------------------------------------------ find, drop */

bool mri_cache_find(const mri_cache *c, uint64_t sample, mri_cache_place *out)
{
    const uint64_t at = __atomic_load_n(&c->place[sample], __ATOMIC_ACQUIRE);
    if (at <= MRI_CACHE_REFUSED) return false;
    *out = (mri_cache_place){.bytes = __atomic_load_n(&c->bytes[sample], __ATOMIC_ACQUIRE)};
    /* dropped and made anew in between: who sees the new length sees that the old place is gone; no place is
     * used twice */
    if (__atomic_load_n(&c->place[sample], __ATOMIC_RELAXED) != at) return false;
    if (c->cfg.folder) out->offset = at;
    else out->memory = (const uint8_t *)(uintptr_t)at;
    return true;
}

bool mri_cache_is_whole(const mri_cache *c)
{
    return __atomic_load_n(&c->entries, __ATOMIC_ACQUIRE) == c->cfg.count;
}

void mri_cache_drop(mri_cache *c, uint64_t sample, const mri_cache_place *place)
{
    uint64_t at = place->memory ? (uint64_t)(uintptr_t)place->memory : place->offset;
    if (!__atomic_compare_exchange_n(&c->place[sample], &at, MRI_CACHE_NONE, false, __ATOMIC_ACQ_REL,
                                     __ATOMIC_RELAXED))
        return; /* another one saw it first */
    __atomic_fetch_sub(&c->entries, 1, __ATOMIC_RELAXED);
    __atomic_fetch_add(&c->dropped, 1, __ATOMIC_RELAXED);
    mri_cache_note(
        c, MRI_NOTE_DAMAGED,
        "%s: the entry of sample %llu at offset %llu is damaged; it is made anew, and others like it",
        mri_cache_path(c) ? mri_cache_path(c) : "cache", (unsigned long long)sample,
        (unsigned long long)place->offset);
}

/* ------------------------------------------------------------------------------ entries */

/* Entry points begin on a multiple of 8 after the data. */
static uint64_t points_at(uint64_t length) { return mri_align_up(length, 8); }

static void describe(uint8_t head[MRI_CACHE_ENTRY_HEAD], uint64_t sample, const mr_value *v, int32_t label)
{
    memset(head, 0, MRI_CACHE_ENTRY_HEAD);
    mri_put_le32(head, ENTRY_MAGIC);
    mri_put_le64(head + 8, sample);
    mri_put_le64(head + 16, (uint64_t)(int64_t)label);
    mri_put_le32(head + 24, (uint32_t)v->type);
    head[28] = (uint8_t)v->dtype;
    head[29] = (uint8_t)v->planes;
    head[30] = (uint8_t)v->ndim;
    for (uint32_t d = 0; d < v->ndim; d++) mri_put_le64(head + 32 + 8 * (size_t)d, v->dim[d]);
    mri_put_le64(head + 56, v->bytes);
    mri_put_le64(head + 64, v->entries_bytes);
}

bool mri_cache_parse(uint64_t sample, const uint8_t *data, size_t bytes, bool check, mr_value *image,
                     int32_t *label)
{
    if (bytes < MRI_CACHE_ENTRY_HEAD || mri_le32(data) != ENTRY_MAGIC || mri_le64(data + 8) != sample)
        return false;
    if (check && mr_crc32c(0, data + 8, bytes - 8) != mri_le32(data + 4)) return false;
    const uint64_t length = mri_le64(data + 56), points = mri_le64(data + 64),
                   left = bytes - MRI_CACHE_ENTRY_HEAD;
    if (length > left || data[30] > DIMS) return false;
    if (points ? points_at(length) > left || points != left - points_at(length) : length != left)
        return false;
    image->type = (mr_type)mri_le32(data + 24);
    image->dtype = (mr_dtype)data[28];
    image->planes = (mr_planes)data[29];
    image->ndim = data[30];
    for (uint32_t d = 0; d < MR_MAX_DIMS; d++)
        image->dim[d] = d < DIMS ? mri_le64(data + 32 + 8 * (size_t)d) : 0;
    image->data = data + MRI_CACHE_ENTRY_HEAD;
    image->bytes = (size_t)length;
    image->i = 0;
    image->f = 0;
    image->entries = points ? data + MRI_CACHE_ENTRY_HEAD + points_at(length) : NULL;
    image->entries_bytes = (size_t)points;
    *label = (int32_t)(int64_t)mri_le64(data + 16);
    return true;
}

/* ------------------------------------------------------------------------------ offer */

/* The entry as pieces; false when it is larger than one may be. */
static bool take_apart(uint8_t head[MRI_CACHE_ENTRY_HEAD], const mr_value *v, uint64_t most,
                       struct iovec parts[MRI_CACHE_PARTS], uint32_t *bytes)
{
    static const uint8_t zeros[8];
    if (v->ndim > DIMS || v->bytes > most || v->entries_bytes > most) return false;
    const size_t pad = v->entries_bytes ? (size_t)(points_at(v->bytes) - v->bytes) : 0;
    const uint64_t all = MRI_CACHE_ENTRY_HEAD + (uint64_t)v->bytes + pad + v->entries_bytes;
    if (all > most) return false;
    parts[0] = (struct iovec){head, MRI_CACHE_ENTRY_HEAD};
    parts[1] = (struct iovec){(void *)(uintptr_t)v->data, v->bytes};
    parts[2] = (struct iovec){(void *)(uintptr_t)zeros, pad};
    parts[3] = (struct iovec){(void *)(uintptr_t)v->entries, v->entries_bytes};
    *bytes = (uint32_t)all;
    return true;
}

static uint64_t keep_in_memory(mri_cache *c, const struct iovec *parts, uint32_t bytes)
{
    uint8_t *to = mri_cache_memory_reserve(c, bytes);
    if (!to) return MRI_CACHE_NONE;
    uint8_t *p = to;
    for (int i = 0; i < MRI_CACHE_PARTS; i++) {
        if (parts[i].iov_len) memcpy(p, parts[i].iov_base, parts[i].iov_len);
        p += parts[i].iov_len;
    }
    return (uint64_t)(uintptr_t)to;
}

static uint64_t keep_on_disk(mri_cache *c, uint64_t sample, struct iovec *parts, uint32_t bytes)
{
    uint8_t *head = parts[0].iov_base;
    uint32_t crc = mr_crc32c(0, head + 8, MRI_CACHE_ENTRY_HEAD - 8);
    for (int i = 1; i < MRI_CACHE_PARTS; i++) crc = mr_crc32c(crc, parts[i].iov_base, parts[i].iov_len);
    mri_put_le32(head + 4, crc);
    return mri_cache_disk_append(c, sample, parts, MRI_CACHE_PARTS, bytes);
}

bool mri_cache_make(mri_cache *c, uint64_t sample, const mr_value *image, void *maker, mr_value *kept)
{
    uint64_t none = MRI_CACHE_NONE;
    if (__atomic_load_n(&c->closed, __ATOMIC_RELAXED) ||
        __atomic_load_n(&c->place[sample], __ATOMIC_RELAXED) != none ||
        !__atomic_compare_exchange_n(&c->place[sample], &none, MRI_CACHE_BUSY, false, __ATOMIC_ACQUIRE,
                                     __ATOMIC_RELAXED))
        return false;
    if (c->cfg.form->make(maker, image, kept) == MR_OK) return true;
    __atomic_store_n(&c->place[sample], MRI_CACHE_REFUSED, __ATOMIC_RELEASE);
    return false;
}

void mri_cache_keep(mri_cache *c, uint64_t sample, const mr_value *kept, int32_t label)
{
    uint8_t head[MRI_CACHE_ENTRY_HEAD];
    struct iovec parts[MRI_CACHE_PARTS];
    uint64_t at = MRI_CACHE_REFUSED;
    uint32_t bytes = 0;
    if (take_apart(head, kept, c->entry_max_bytes, parts, &bytes)) {
        describe(head, sample, kept, label);
        at = c->cfg.folder ? keep_on_disk(c, sample, parts, bytes) : keep_in_memory(c, parts, bytes);
        if (at == MRI_CACHE_NONE) __atomic_store_n(&c->closed, true, __ATOMIC_RELAXED);
    }
    if (at > MRI_CACHE_REFUSED) {
        __atomic_store_n(&c->bytes[sample], bytes, __ATOMIC_RELEASE);
        __atomic_fetch_add(&c->used, bytes, __ATOMIC_RELAXED);
    }
    __atomic_store_n(&c->place[sample], at, __ATOMIC_RELEASE);
    if (at > MRI_CACHE_REFUSED) __atomic_fetch_add(&c->entries, 1, __ATOMIC_RELEASE);
}

void mri_cache_forget(mri_cache *c, uint64_t sample)
{
    __atomic_store_n(&c->place[sample], MRI_CACHE_NONE, __ATOMIC_RELEASE);
}

void mri_cache_offer(mri_cache *c, uint64_t sample, const mr_value *image, int32_t label, void *maker)
{
    mr_value kept;
    if (mri_cache_make(c, sample, image, maker, &kept)) mri_cache_keep(c, sample, &kept, label);
}
