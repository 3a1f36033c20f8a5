/* base/abi.c: see abi.h. */
#include "base/abi.h"

static size_t stated_size(const void *object)
{
    size_t bytes;
    memcpy(&bytes, object, sizeof bytes);
    return bytes;
}

static bool is_size(size_t bytes) { return bytes >= sizeof bytes && bytes <= MRI_MOST_STRUCT_BYTES; }

static bool is_zero(const uint8_t *p, size_t bytes)
{
    for (size_t i = 0; i < bytes; i++)
        if (p[i]) return false;
    return true;
}

int mri_settings_take(void *out, size_t out_bytes, const void *settings, const char *name, mr_error *err)
{
    if (!settings) return MR_OK;
    const size_t bytes = stated_size(settings);
    if (!is_size(bytes))
        return mr_error_set(err, MR_EINVAL, "%s settings without struct_size: begin with mr_%s_defaults()",
                            name, name);
    if (bytes > out_bytes && !is_zero((const uint8_t *)settings + out_bytes, bytes - out_bytes))
        return mr_error_set(err, MR_EINVAL,
                            "%s settings have something set that millrace %s does not know: the program was "
                            "compiled for a newer one",
                            name, mr_version());
    memcpy(out, settings, mri_min_u64(bytes, out_bytes));
    memcpy(out, &out_bytes, sizeof out_bytes);
    return MR_OK;
}

static void give(void *out, size_t bytes, const void *full, size_t full_bytes)
{
    const size_t shared = (size_t)mri_min_u64(bytes, full_bytes);
    memcpy(out, full, shared);
    memset((uint8_t *)out + shared, 0, bytes - shared);
    memcpy(out, &bytes, sizeof bytes);
}

void mri_settings_give(void *out, size_t bytes, const void *full, size_t full_bytes)
{
    if (out && bytes >= sizeof bytes) give(out, bytes, full, full_bytes);
}

int mri_result_check(const void *out, mr_error *err)
{
    if (!out || is_size(stated_size(out))) return MR_OK;
    return mr_error_set(err, MR_EINVAL,
                        "a result without struct_size: set it, or call the function of the header that does");
}

void mri_result_give(void *out, const void *full, size_t full_bytes)
{
    if (!out) return;
    const size_t bytes = stated_size(out);
    if (is_size(bytes)) give(out, bytes, full, full_bytes);
}
