/* pipeline/loader_settings.c: settings of a loader by their rows (settings/): defaults and ranges. What one
 * setting says about another is checked in loader_plan.c. */
#include "base/abi.h"
#include "pipeline/decode/decoders.h"
#include "pipeline/loader_private.h"
#include "settings/setting.h"

static const mri_setting rows[] = {
#define MRI_SETTING(member, kind, ...) MRI_ROW(mr_loader_config, member, kind, __VA_ARGS__),
#define MRI_MEMBER                     MRI_SETTING
#include "settings/batches.rows"
#define MRI_SETTING(member, kind, ...) MRI_ROW(mr_loader_config, member, kind, __VA_ARGS__),
#define MRI_MEMBER                     MRI_SETTING
#include "settings/loader.rows"
};

void mr_loader_defaults_sized(mr_loader_config *cfg, size_t struct_size)
{
    mr_loader_config all = {0};
    mri_settings_fill(rows, MRI_ARRAY_COUNT(rows), &all);
    mr_decode_defaults(&all.decode);
    mri_settings_give(cfg, struct_size, &all, sizeof all);
}

int mri_loader_check(const mr_loader_config *cfg, mr_error *err)
{
    const int rc = mri_settings_check(rows, MRI_ARRAY_COUNT(rows), cfg, "mr_loader_config", err);
    return rc == MR_OK ? mri_decode_check(&cfg->decode, "mr_loader_config.decode", err) : rc;
}
