/* pipeline/cache/cache_store.c: what both places of entries say and count. */
#include "pipeline/cache/cache_store.h"

#include <stdarg.h>
#include <stdio.h>

void mri_cache_note(mri_cache *c, unsigned note, const char *format, ...)
{
    char text[512];
    va_list args;
    if (__atomic_fetch_or(&c->reported_notes, note, __ATOMIC_RELAXED) & note || !c->cfg.note) return;
    va_start(args, format);
    vsnprintf(text, sizeof text, format, args);
    va_end(args);
    c->cfg.note(c->cfg.note_context, text);
}

mri_cache_counts mri_cache_counts_of(const mri_cache *c)
{
    /* dropped by another thread between its place and its count: below 0 for a moment */
    const uint64_t entries = __atomic_load_n(&c->entries, __ATOMIC_RELAXED);
    return (mri_cache_counts){entries <= c->cfg.count ? entries : 0,
                              __atomic_load_n(&c->used, __ATOMIC_RELAXED),
                              __atomic_load_n(&c->dropped, __ATOMIC_RELAXED)};
}
