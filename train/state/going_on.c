/* train/state/going_on.c: is it the loader that a run goes on with? See going_on.h. */
#include "train/state/going_on.h"

#include <inttypes.h>
#include <stdio.h>
#include <string.h>

#include "base/util.h"
#include "settings/setting.h"

static const mri_setting kept[] = {
/* texts are not compared: the loader writes them anew */
#define MRI_KEPT(...) MRI_ROW(mr_checkpoint_info, __VA_ARGS__),
#include "settings/batches.rows"
};

static int another(const char *what, const char *then, const char *now, mr_error *err)
{
    return mr_error_set(
        err, MR_EINVAL,
        "the loader has %s %s, the checkpoint that the trainer goes on from %s: mr_checkpoint_loader() fills "
        "the settings of its run",
        what, now, then);
}

static int check_number(const char *what, uint64_t then, uint64_t now, mr_error *err)
{
    char a[24], b[24];
    if (then == now) return MR_OK;
    snprintf(a, sizeof a, "%" PRIu64, then);
    snprintf(b, sizeof b, "%" PRIu64, now);
    return another(what, a, b, err);
}

/* Checkpoints of versions before 0.5 do not know a seed of the loader. */
static bool tells_run(const mr_checkpoint_info *c)
{
    static const uint8_t none[sizeof c->run];
    return memcmp(c->run, none, sizeof none) != 0;
}

int mri_going_on_check(const mr_checkpoint_info *then, const mr_checkpoint_info *now,
                       const mr_loader_info *loader, mr_error *err)
{
    char a[64], b[64];
    int rc = MR_OK;
    for (size_t k = 0; rc == MR_OK && k < MRI_ARRAY_COUNT(kept); k++) {
        const mri_setting *s = &kept[k];
        if (s->resume == MRI_RESUME_TAKE) continue;
        if (!mri_setting_holds(s, then, a, sizeof a)) continue; /* the checkpoint does not know it */
        if (strcmp(s->member, "seed") == 0) continue;           /* the trainer's */
        if (strcmp(s->member, "block") == 0 && then->order != MR_ORDER_BLOCK)
            continue; /* nothing depends on it */
        if (strcmp(s->member, "repeats") == 0 && then->repeats <= 1 && now->repeats <= 1)
            continue; /* 0 is 1 */
        mri_setting_text(s, then, a, sizeof a);
        mri_setting_text(s, now, b, sizeof b);
        if (strcmp(a, b) != 0) rc = another(s->member, a, b, err);
    }
    if (rc == MR_OK && tells_run(then)) rc = check_number("seed", mri_order_seed(then), loader->seed, err);
    if (rc == MR_OK) rc = check_number("start_epoch", then->epoch, loader->start_epoch, err);
    return rc ? rc : check_number("start_step", then->step, loader->start_step, err);
}
