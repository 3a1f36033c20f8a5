/* pipeline/decode/decode_settings.c: settings of decoding by their rows (settings/decode.rows): defaults and
 * ranges. */
#include "base/abi.h"
#include "formats/image/picture_files.h"
#include "formats/source/value.h"
#include "pipeline/decode/decoders.h"
#include "settings/setting.h"

static const mri_setting rows[] = {
#define MRI_SETTING(member, kind, ...) MRI_ROW(mr_decode_config, member, kind, __VA_ARGS__),
#include "settings/decode.rows"
};

/* Kinds in the order of the row's choices. */
static const mr_type kinds[] = {MRI_PICTURE_TYPES};

static const mri_setting *pictures_row(void)
{
    const mri_setting *row = rows;
    while (strcmp(row->member, "pictures") != 0) row++;
    return row;
}

const char *mri_pictures_text(const mr_decode_config *cfg, char *buf, size_t room)
{
    const uint32_t all = (1u << MRI_ARRAY_COUNT(kinds)) - 1;
    if (cfg->pictures == 0 || (cfg->pictures & all) == all) return NULL;
    mri_setting_text(pictures_row(), cfg, buf, room);
    return buf;
}

bool mri_pictures_parse(mr_decode_config *cfg, const char *text)
{
    char message[256];
    return mri_setting_parse(pictures_row(), cfg, text, message, sizeof message);
}

int mri_picture_allowed(const mr_value *value, const mr_decode_config *cfg, mr_error *err)
{
    const bool file = mri_type_is_picture_file(value->type) || value->type == MR_TYPE_BYTES;
    const int type = file ? mr_image_sniff(value->data, value->bytes) : 0;
    for (size_t k = 0; cfg->pictures && k < MRI_ARRAY_COUNT(kinds); k++) {
        if ((int)kinds[k] != type || cfg->pictures >> k & 1) continue;
        char allowed[MRI_PICTURES_TEXT];
        mri_setting_text(pictures_row(), cfg, allowed, sizeof allowed);
        return mr_error_set(err, MR_EUNSUPPORTED,
                            "a %s picture, and --pictures %s leaves this kind out: add %s to it",
                            mri_picture_kind_name(kinds[k]), allowed, mr_type_name(kinds[k]));
    }
    return MR_OK;
}

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
