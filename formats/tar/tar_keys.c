/* formats/tar/tar_keys.c: see tar_keys.h. */
#include "formats/tar/tar_keys.h"

#include "base/hash.h"
#include "base/util.h"

static bool put(mri_tar_keys *k, uint64_t hash)
{
    uint64_t at = hash & (k->cap - 1);
    for (; k->hash[at]; at = (at + 1) & (k->cap - 1))
        if (k->hash[at] == hash) return false;
    k->hash[at] = hash;
    k->count++;
    return true;
}

static int grow(mri_tar_keys *k, const mr_source_config *cfg, mr_error *err)
{
    if (k->count < k->cap / 4 * 3) return MR_OK;
    mri_tar_keys larger = {.cap = k->cap ? 2 * k->cap : 1024};
    const int rc = mri_source_budget(cfg, larger.cap * sizeof *larger.hash, NULL, err);
    if (rc) return rc;
    larger.hash = calloc(larger.cap, sizeof *larger.hash);
    if (!larger.hash)
        return mr_error_set(err, MR_ENOMEM, "no memory for the keys of %llu samples",
                            (unsigned long long)k->count);
    for (uint64_t at = 0; at < k->cap; at++)
        if (k->hash[at]) put(&larger, k->hash[at]);
    free(k->hash);
    *k = larger;
    return MR_OK;
}

int mri_tar_keys_put(mri_tar_keys *k, const char *key, size_t bytes, const mr_source_config *cfg, bool *again,
                     mr_error *err)
{
    const uint64_t hash = mri_hash_name(key, bytes);
    const int rc = grow(k, cfg, err);
    if (!rc) *again = !put(k, hash ? hash : 1);
    return rc;
}

void mri_tar_keys_fini(mri_tar_keys *k)
{
    free(k->hash);
    *k = (mri_tar_keys){0};
}
