/* formats/source/begin.c: a data set whose format is known is opened, checked and closed. Checks that all
 * formats share (is the split there, are the keys of use) are made here once. Which format it is,
 * formats/open.c finds out. */
#include "base/util.h"
#include "formats/source/census.h"
#include "formats/source/choice.h"
#include "formats/source/classes.h"
#include "formats/source/source.h"
#include "formats/source/withdrawn.h"

static int check_keys(const mri_source_ops *ops, const mr_source_config *cfg, mr_error *err)
{
    if (!ops->no_keys) return MR_OK;
    if (!cfg->image_key && !cfg->label_key) return MR_OK;
    return mr_error_set(err, MR_EINVAL,
                        "%s: data of this format have one picture and one label: leave %s out", ops->name,
                        cfg->image_key ? "--image-key" : "--label-key");
}

/* Sequences that all have one length have no field whose length differs, and a length all the same: the
 * shape's. */
static void one_length_for_all(mr_source_info *info)
{
    uint32_t found = MR_NO_FIELD;
    for (uint32_t k = 0; k < info->field_count; k++) {
        const mr_field *f = &info->fields[k];
        if (f->type != MR_TYPE_TENSOR) continue;
        if (f->ndim == 0) return;
        if (f->ndim == 1 && f->dim[0] <= UINT32_MAX && found == MR_NO_FIELD) found = k;
    }
    info->length_field = found;
    if (found != MR_NO_FIELD) info->length_most = (uint32_t)info->fields[found].dim[0];
}

static void tell_of_remote(mr_source *src)
{
    char text[900];
    for (uint32_t line = 0; src->view && line < MRI_REMOTE_LINES; line++)
        if (mri_remote_told(src->view->remote, line, text, sizeof text)) mri_source_tell(src, "%s", text);
}

/* Is it a field that the data have anyway? It may be named without its ending. */
static bool has_field(const mr_source_info *info, const char *name)
{
    const size_t n = strlen(name);
    bool has = false;
    for (uint32_t k = 0; !has && k < info->field_count; k++)
        has = strncmp(info->fields[k].name, name, n) == 0 &&
              (info->fields[k].name[n] == '\0' || info->fields[k].name[n] == '.');
    return has;
}

/* Of pixels that are stored as such. */
static bool has_fourth_channel(const mr_source_info *info)
{
    const mr_field *f = info->image_field >= 0 ? &info->fields[info->image_field] : NULL;
    return f && f->type == MR_TYPE_PIXELS && f->ndim == 3 && f->dim[2] == 4;
}

int mri_source_begin(mr_source *src, const mr_source_config *cfg, mr_error *err)
{
    src->info.path = src->path;
    src->info.image_field = src->info.label_field = -1;
    src->info.length_field = MR_NO_FIELD;
    src->labels.start = MR_LABEL_AUTO;
    src->labels.max = -1; /* below the smallest: not known */
    int rc = check_keys(src->ops, cfg, err);
    if (!rc) rc = src->ops->open(src, cfg, err);
    if (rc) return rc;
    if (cfg->split == MR_SPLIT_TEST && !src->info.has_test)
        return mri_error_place(err, mr_error_set(err, MR_ENOENT, "the data has no test part"), src->path,
                               MR_NOWHERE, MR_NOWHERE);
    if (src->info.only_test && src->info.mix_count == 0) /* a mix has the lines of its sets */
        mri_source_tell(src, "there is no train part: the test or validation part is all that is taken");
    if (cfg->classes != MR_CLASSES_FIRST && !src->ops->class_rules)
        mri_source_tell(src, "the rule for class folders is passed over: it goes with folders of pictures");
    if (cfg->split_key && !src->ops->split_keys && src->info.mix_count == 0)
        mri_source_tell(src, "--split-key is passed over: it goes with tables");
    if (cfg->target_key && !src->ops->target_keys && src->info.mix_count == 0 &&
        !has_field(&src->info, cfg->target_key))
        mri_source_tell(src, "target key %s is passed over: it goes with tables and NumPy arrays",
                        cfg->target_key);
    if (has_fourth_channel(&src->info))
        mri_source_tell(src, "the pictures have 4 channels, of which the fourth (alpha) is not delivered");
    if (src->info.length_field == MR_NO_FIELD) one_length_for_all(&src->info);
    src->takes_withdrawn = cfg->withdrawn == MR_WITHDRAWN_TAKE;
    rc = mri_withdrawn_load(src, cfg, err);
    if (!rc) rc = mri_choice_make(src, cfg, err); /* before withdrawn samples: they move no other one */
    if (!rc && !src->takes_withdrawn) rc = mri_withdrawn_leave_out(src, err);
    if (!rc) rc = mri_census_check(src, cfg, err);
    if (!rc) rc = mri_census_tell(src, err);
    if (rc) return rc;
    tell_of_remote(src);
    mri_source_tell_all(src);
    rc = mri_classes_offset(src, cfg, err);
    return rc ? rc : mri_classes_follow(src, cfg, err);
}

int mri_source_open_as(mr_source **out, const mri_source_ops *ops, const char *path,
                       const mr_source_config *cfg, mr_error *err)
{
    *out = NULL;
    mr_source_config all = *cfg; /* the search reads its samples unchanged */
    all.take_from = 0;
    all.take_to = 1;
    all.withdrawn = MR_WITHDRAWN_TAKE;
    mr_source *src = calloc(1, sizeof *src);
    if (src) src->process = mri_process();
    if (src) src->path = strdup(path);
    int rc = src && src->path ? MR_OK : mr_error_set(err, MR_ENOMEM, "no memory to open a data set");
    if (!rc) {
        src->ops = ops;
        rc = mri_source_begin(src, &all, err);
    }
    if (rc) mr_source_close(src);
    else *out = src;
    return rc;
}

int mr_source_check(const mr_source *src, mr_error *err)
{
    MRI_OWN(err, src);
    if (!src->ops->check && !src->withdrawn) return MR_OK;
    const volatile int *before = mri_stop_at(src->stop);
    int rc = src->ops->check ? src->ops->check(src, err) : MR_OK;
    if (!rc && src->withdrawn) rc = mri_withdrawn_check(src, err);
    mri_stop_at(before);
    return mri_remote_view_place(src->view, rc, err);
}

void mr_source_close(mr_source *src)
{
    if (!src || mri_is_inherited(src->process)) return;
    if (src->ops) src->ops->close(src);
    mri_classes_fini(&src->classes);
    mri_choice_fini(&src->choice);
    mri_withdrawn_free(src->withdrawn);
    free(src->columns.names);
    for (uint32_t k = 0; k < src->beside.count; k++) free(src->beside.path[k]);
    free(src->beside.path);
    free(src->mix);
    mri_remote_view_close(src->view); /* what formats read from goes after them */
    free(src->report);
    free(src->path);
    free(src);
}
