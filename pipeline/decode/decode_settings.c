/* pipeline/decode/decode_settings.c: settings of decoding by their rows (settings/decode.rows): defaults and
 * ranges. */
#include "base/abi.h"
#include "pipeline/decode/decoders.h"
#include "settings/setting.h"

static const mri_setting rows[] = {
#define MRI_SETTING(member, kind, ...) MRI_ROW(mr_decode_config, member, kind, __VA_ARGS__),
#include "settings/decode.rows"
};

void mr_decode_defaults_sized(mr_decode_config *cfg, size_t struct_size)
{
    mr_decode_config all = {0};
    mri_settings_fill(rows, MRI_ARRAY_COUNT(rows), &all);
    mri_settings_give(cfg, struct_size, &all, sizeof all);
}

int mri_decode_check(const mr_decode_config *cfg, const char *name, mr_error *err)
{
    return mri_settings_check(rows, MRI_ARRAY_COUNT(rows), cfg, name, err);
}

int mri_decode_settings(mr_decode_config *out, const mr_decode_config *cfg, mr_error *err)
{
    mr_decode_defaults(out);
    const int rc = mri_settings_take(out, sizeof *out, cfg, "decode", err);
    return rc == MR_OK ? mri_decode_check(out, "mr_decode_config", err) : rc;
}
