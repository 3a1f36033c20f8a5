/* formats/source/settings.h: take over a caller's settings struct, which may come from an older or newer
 * header. Private. */
#ifndef MRI_SETTINGS_H
#define MRI_SETTINGS_H

#include "base/util.h"

/* out holds the defaults; what the caller's struct has of it replaces them. False when struct_size was never
 * set. */
static inline bool mri_settings_take(void *out, size_t out_bytes, const void *cfg)
{
    size_t bytes;
    memcpy(&bytes, cfg, sizeof bytes); /* struct_size comes first in every one of them */
    if (bytes < sizeof bytes) return false;
    memcpy(out, cfg, bytes < out_bytes ? bytes : out_bytes);
    return true;
}

#endif
