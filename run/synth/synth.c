/* run/synth/synth.c: mr_synth_write(). See synth_picture.h for the pictures. */
#include "millrace/synth.h"

#include <dirent.h>
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/abi.h"
#include "run/synth/synth_picture.h"
#include "settings/setting.h"

static const mri_setting rows[] = {
#define MRI_SETTING(...) MRI_ROW(mr_synth_config, __VA_ARGS__),
#include "settings/commands/synth.rows"
};

enum { COUNT_MOST = 99999, SIDE_MOST = 8192 };

static const char *const parts[] = {"train", "test"};

typedef struct synth_run {
    const char *folder;
    const mr_synth_config *cfg;
    uint64_t done, all, bytes;
} synth_run;

void mr_synth_defaults_sized(mr_synth_config *cfg, size_t struct_size)
{
    mr_synth_config all = {0};
    mri_settings_fill(rows, MRI_ARRAY_COUNT(rows), &all);
    mri_settings_give(cfg, struct_size, &all, sizeof all);
}

static int check(const mr_synth_config *c, mr_error *err)
{
    const int rc = mri_settings_check(rows, MRI_ARRAY_COUNT(rows), c, "mr_synth_config", err);
    if (rc) return rc;
    if (c->channels == 2)
        return mr_error_set(err, MR_EINVAL, "mr_synth_config.channels is 2: expected 1 or 3");
    if (c->test_count > COUNT_MOST)
        return mr_error_set(err, MR_EINVAL, "mr_synth_config.test_count is %u: expected up to %d",
                            c->test_count, COUNT_MOST);
    if (c->max_size && (c->max_size < c->size || c->max_size > SIDE_MOST))
        return mr_error_set(err, MR_EINVAL, "mr_synth_config.max_size is %u: expected 0, or %u to %d",
                            c->max_size, c->size, SIDE_MOST);
    return MR_OK;
}

static int make_folder(const char *path, mr_error *err)
{
    if (mri_make_folder_deep(path, 0777) || errno == EEXIST) return MR_OK;
    mr_error_sys(err, errno, "cannot make the folder");
    return mr_error_at(err, path, MR_NOWHERE, MR_NOWHERE);
}

static int long_name(mr_error *err) { return mr_error_set(err, MR_EINVAL, "the folder's name is too long"); }

static int write_picture(synth_run *r, const mri_synth_key *key, const char *folder, mr_error *err)
{
    const mr_synth_config *c = r->cfg;
    mr_image image;
    mr_output_config output;
    void *data = NULL;
    size_t bytes = 0;
    char path[4096];
    const uint32_t high = c->max_size > c->size ? c->max_size : c->size;
    int rc = mri_synth_draw(key, mri_synth_side(key, c->size, high), c->channels, &image);
    if (rc) return mr_error_set(err, rc, "out of memory for a picture");
    rc = c->image == MR_SYNTH_PNG ? mr_image_encode_png(&image, &data, &bytes, err)
                                  : mr_image_encode_jpeg(&image, (int)c->quality, &data, &bytes, err);
    mr_image_free(&image);
    if (rc) return rc;
    const int n = snprintf(path, sizeof path, "%s/%05u.%s", folder, key->number,
                           c->image == MR_SYNTH_PNG ? "png" : "jpg");
    mr_output_defaults(&output);
    output.force = c->force;
    output.unsynced = true; /* mr_output_sync_all() at the end */
    rc = n < (int)sizeof path ? mr_output_whole(path, data, bytes, &output, err) : long_name(err);
    free(data);
    r->done++;
    r->bytes += bytes;
    return rc;
}

static uint32_t count_of(const mr_synth_config *c, uint32_t part)
{
    return part == 0 ? c->count : c->test_count ? c->test_count : (c->count + 4) / 5;
}

static int write_class(synth_run *r, uint32_t part, uint32_t class_idx, mr_error *err)
{
    const mr_synth_config *c = r->cfg;
    char folder[4096], name[64];
    const int n = snprintf(folder, sizeof folder, "%s/%s/%s", r->folder, parts[part],
                           mri_synth_class_name(class_idx, c->classes, name, sizeof name));
    if (n >= (int)sizeof folder) return long_name(err);
    int rc = make_folder(folder, err);
    for (uint32_t i = 0; rc == MR_OK && i < count_of(c, part); i++) {
        const mri_synth_key key = {c->seed, class_idx, c->classes, part, i};
        rc = mri_is_stopped(c->stop) ? mr_error_set(err, MR_ECANCELED, "the data set is not whole")
                                     : write_picture(r, &key, folder, err);
        if (c->on_progress) c->on_progress(c->context, r->done, r->all);
    }
    return rc;
}

static int write_all(synth_run *r, mr_error *err)
{
    int rc = make_folder(r->folder, err);
    for (uint32_t part = 0; rc == MR_OK && part < MRI_ARRAY_COUNT(parts); part++) {
        char path[4096];
        const int n = snprintf(path, sizeof path, "%s/%s", r->folder, parts[part]);
        rc = n < (int)sizeof path ? make_folder(path, err) : long_name(err);
        for (uint32_t c = 0; rc == MR_OK && c < r->cfg->classes; c++) rc = write_class(r, part, c, err);
    }
    return rc ? rc : mr_output_sync_all(r->folder, err);
}

/* An absent or empty folder, or force. */
static bool may_fill(const synth_run *r)
{
    DIR *d = r->cfg->force ? NULL : opendir(r->folder);
    if (!d) return true;
    bool empty = true;
    for (const struct dirent *e; (errno = 0, e = readdir(d)) != NULL;)
        if (strcmp(e->d_name, ".") != 0 && strcmp(e->d_name, "..") != 0) empty = false;
    if (errno) empty = false; /* nobody knows */
    closedir(d);
    return empty;
}

int mr_synth_write_sized(const char *folder, const mr_synth_config *cfg, mr_synth_result *out, mr_error *err)
{
    mr_synth_config mine;
    synth_run r = {.folder = folder, .cfg = &mine};
    MRI_GIVEN(err, folder);
    int rc = mri_result_check(out, err);
    if (rc) return rc;
    mr_synth_defaults(&mine);
    if (cfg) rc = mri_settings_take(&mine, sizeof mine, cfg, "synth", err);
    if (rc == MR_OK) rc = check(&mine, err);
    if (rc) return rc;
    if (!may_fill(&r)) {
        mr_error_set(err, MR_EEXIST,
                     "the folder is not empty; choose another, or add files to it with --force");
        return mr_error_at(err, folder, MR_NOWHERE, MR_NOWHERE);
    }
    mr_synth_result all = {.train = (uint64_t)mine.classes * count_of(&mine, 0),
                           .test = (uint64_t)mine.classes * count_of(&mine, 1)};
    r.all = all.train + all.test;
    rc = write_all(&r, err);
    all.bytes = r.bytes;
    if (rc == MR_OK) mri_result_give(out, &all, sizeof all);
    return rc;
}
