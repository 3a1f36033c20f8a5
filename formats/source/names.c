/* formats/source/names.c: see names.h. */
#include "formats/source/names.h"

#include <stdlib.h>
#include <string.h>

#include "base/hash.h"
#include "base/util.h"

static bool grow(void **items, size_t *cap, size_t need, size_t item_bytes)
{
    if (need <= *cap) return true;
    size_t larger = *cap < 32 ? 32 : *cap, bytes;
    while (larger < need)
        if (!mri_mul_size(larger, 2, &larger)) return false;
    if (!mri_mul_size(larger, item_bytes, &bytes)) return false;
    void *p = realloc(*items, bytes);
    if (!p) return false;
    *items = p;
    *cap = larger;
    return true;
}

/* The slot where the text is, or the free one where it belongs. */
static uint32_t *find(const mri_names *n, const char *text, size_t bytes)
{
    const uint32_t mask = n->slot_count - 1;
    for (uint32_t k = (uint32_t)mri_hash_name(text, bytes) & mask;; k = (k + 1) & mask) {
        if (n->slot[k] == 0) return &n->slot[k];
        const char *other = mri_name(n, n->slot[k] - 1);
        if (strncmp(other, text, bytes) == 0 && other[bytes] == '\0') return &n->slot[k];
    }
}

/* At most half of the slots are taken. */
static int widen(mri_names *n)
{
    if (n->slot && n->count < n->slot_count / 2) return MR_OK;
    const uint32_t old = n->slot_count;
    n->slot_count = old ? 2 * old : 64;
    uint32_t *fresh = calloc(n->slot_count, sizeof *fresh);
    if (!fresh) {
        n->slot_count = old;
        return MR_ENOMEM;
    }
    free(n->slot);
    n->slot = fresh;
    for (uint32_t k = 0; k < n->count; k++) {
        const char *text = mri_name(n, k);
        *find(n, text, strlen(text)) = k + 1;
    }
    return MR_OK;
}

int mri_names_add(mri_names *n, const char *text, size_t bytes, uint32_t *number, bool *is_new)
{
    if (n->count >= (uint32_t)1 << 30 || bytes >= UINT32_MAX - n->text_used) return MR_ELIMIT;
    if (widen(n) != MR_OK) return MR_ENOMEM;
    uint32_t *slot = find(n, text, bytes);
    *is_new = *slot == 0;
    if (!*is_new) {
        *number = *slot - 1;
        return MR_OK;
    }
    size_t cap = n->cap;
    if (!grow((void **)&n->at, &cap, (size_t)n->count + 1, sizeof *n->at)) return MR_ENOMEM;
    n->cap = (uint32_t)cap;
    if (!grow((void **)&n->text, &n->text_cap, n->text_used + bytes + 1, 1)) return MR_ENOMEM;
    memcpy(n->text + n->text_used, text, bytes);
    n->text[n->text_used + bytes] = '\0';
    n->at[n->count] = (uint32_t)n->text_used;
    n->text_used += bytes + 1;
    *number = n->count++;
    *slot = n->count;
    return MR_OK;
}

void mri_names_seal(mri_names *n)
{
    free(n->slot);
    n->slot = NULL;
    n->slot_count = 0;
    if (n->count == 0) return;
    void *p = realloc(n->text, n->text_used);
    if (p) n->text = p, n->text_cap = n->text_used;
    p = realloc(n->at, n->count * sizeof *n->at);
    if (p) n->at = p, n->cap = n->count;
}

void mri_names_fini(mri_names *n)
{
    free(n->text);
    free(n->at);
    free(n->slot);
    *n = (mri_names){0};
}

uint64_t mri_names_memory(const mri_names *n)
{
    return n->text_cap + (uint64_t)n->cap * sizeof *n->at + (uint64_t)n->slot_count * sizeof *n->slot;
}
