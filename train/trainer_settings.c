/* train/trainer_settings.c: settings of a trainer by their rows (settings/updates.rows, optimizer.rows,
 * computing.rows): defaults, ranges, what all processes must have alike, and what checkpoints keep. */
#include <stdio.h>

#include "settings/setting.h"
#include "train/trainer.h"

static const mri_setting rows[] = {
#define MRI_SETTING(...) MRI_ROW(mr_trainer_config, __VA_ARGS__),
#define MRI_MEMBER       MRI_SETTING
#include "settings/updates.rows"
};

static const mri_setting computing[] = {
#define MRI_SETTING(...) MRI_ROW(mr_trainer_config, __VA_ARGS__),
#include "settings/computing.rows"
};
static const mri_setting optimizer[] = {
#define MRI_SETTING(...) MRI_ROW(mr_update_desc, __VA_ARGS__),
#define MRI_MEMBER       MRI_SETTING
#include "settings/optimizer.rows"
};

void mri_trainer_fill(mr_trainer_config *cfg)
{
    mri_settings_fill(optimizer, MRI_ARRAY_COUNT(optimizer), &cfg->update);
    mri_settings_fill(computing, MRI_ARRAY_COUNT(computing), cfg);
    mri_settings_fill(rows, MRI_ARRAY_COUNT(rows), cfg);
}

static int check_optimizer(const mr_trainer_config *cfg, mr_error *err)
{
    mr_update_desc u = cfg->update;
    u.lr = 0; /* the rate is the schedule's */
    return mri_settings_check(optimizer, MRI_ARRAY_COUNT(optimizer), &u, "mr_trainer_config.update", err);
}

int mri_trainer_check(const mr_trainer_config *cfg, mr_error *err)
{
    int rc = check_optimizer(cfg, err);
    if (rc == MR_OK)
        rc = mri_settings_check(computing, MRI_ARRAY_COUNT(computing), cfg, "mr_trainer_config", err);
    return rc ? rc : mri_settings_check(rows, MRI_ARRAY_COUNT(rows), cfg, "mr_trainer_config", err);
}

size_t mri_trainer_tell(const mr_trainer_config *cfg, char *out, size_t out_bytes)
{
    size_t used = 0;
    char value[64];
    for (size_t i = 0; i < MRI_ARRAY_COUNT(rows) && used < out_bytes; i++)
        used += (size_t)snprintf(out + used, out_bytes - used, "%s %s\n", rows[i].member,
                                 mri_setting_text(&rows[i], cfg, value, sizeof value));
    return used < out_bytes ? used : out_bytes - 1;
}

void mri_trainer_keep(const mr_trainer_config *cfg, mr_checkpoint_info *out)
{
#define MRI_KEPT(member, ...) out->member = cfg->member;
#define MRI_KEPT_TEXT(member, ...)                                                                           \
    snprintf(out->member, sizeof out->member, "%s", cfg->member ? cfg->member : "");
#include "settings/updates.rows"
}
