/* run/report/run_page.c: what goes into a page about runs. run_page_put.c writes it. */
#include "run/report/run_page.h"

#include <stdarg.h>
#include <stdlib.h>
#include <string.h>

#include "base/abi.h"
#include "run/page/page.h"
#include "settings/limits.h"

_Static_assert((int)MR_RUN_PAGE_PICTURES == (int)MRI_REPORT_SAMPLES_MOST, "the largest value of the option");

void mr_run_page_defaults_sized(mr_run_page_config *cfg, size_t struct_size)
{
    const mr_run_page_config all = {0};
    mri_settings_give(cfg, struct_size, &all, sizeof all);
}

int mr_run_page_open(mr_run_page **out, const mr_run_page_config *cfg, mr_error *err)
{
    MRI_GIVEN(err, out);
    *out = NULL;
    mr_run_page *p = calloc(1, sizeof *p);
    if (!p) return mr_error_set(err, MR_ENOMEM, "out of memory for the report");
    mr_run_page_defaults(&p->cfg);
    const int rc = cfg ? mri_settings_take(&p->cfg, sizeof p->cfg, cfg, "run_page", err) : MR_OK;
    if (rc) {
        free(p);
        return rc;
    }
    *out = p;
    return MR_OK;
}

void mr_run_page_close(mr_run_page *p)
{
    if (!p) return;
    for (int k = 0; k < p->runs; k++) mri_run_log_free(&p->run[k]);
    mri_run_log_free(&p->bad);
    for (uint32_t i = 0; i < p->sample_count; i++) free(p->sample[i].png);
    for (size_t i = 0; i < p->name_count; i++) free(p->name[i]);
    free(p->spans);
    free(p->entries);
    cJSON_Delete(p->trace_tree);
    free(p->trace_text);
    free(p);
}

static void note(const mr_run_page *p, const char *format, ...) MR_PRINTF(2, 3);
static void note(const mr_run_page *p, const char *format, ...)
{
    char text[4096];
    va_list args;
    if (!p->cfg.on_note) return;
    va_start(args, format);
    vsnprintf(text, sizeof text, format, args);
    va_end(args);
    p->cfg.on_note(p->cfg.context, text);
}

/* A copy that lives as long as the page; NULL: no memory. */
static const char *keep_name(mr_run_page *p, const char *name)
{
    char *copy = strdup(name);
    if (copy) p->name[p->name_count++] = copy;
    return copy;
}

static int no_memory(mr_error *err) { return mr_error_set(err, MR_ENOMEM, "out of memory for the report"); }

/* ---- runs ---- */

static int refuse_third(mr_error *err)
{
    return mr_error_set(err, MR_EINVAL, "a page shows up to %d runs", MR_RUN_PAGE_RUNS);
}

/* After reading. */
static int check_run(const mr_run_page *p, int rc, mr_error *err)
{
    const mri_run_log *r = &p->run[p->runs - 1];
    if (rc) return rc;
    if (r->no_json)
        note(p, "%s: %zu of %zu lines are no JSON and left out, the first is line %zu", r->path, r->no_json,
             r->lines, r->no_json_at);
    if (r->is_cut) note(p, "%s: the last line is cut off and left out", r->path);
    if (p->runs < 2 || p->run[0].is_profile == p->run[1].is_profile) return MR_OK;
    return mr_error_set(err, MR_EINVAL,
                        "%s and %s: one is of train, one of profile; they cannot stand side by side",
                        p->run[0].path, p->run[1].path);
}

int mr_run_page_add(mr_run_page *p, const char *path, mr_error *err)
{
    MRI_GIVEN(err, p);
    MRI_GIVEN(err, path);
    if (p->runs == MR_RUN_PAGE_RUNS) return refuse_third(err);
    const char *name = keep_name(p, path);
    return name ? check_run(p, mri_run_log_read(&p->run[p->runs++], name, err), err) : no_memory(err);
}

int mr_run_page_add_text(mr_run_page *p, const char *name, const char *text, size_t bytes, mr_error *err)
{
    MRI_GIVEN(err, p);
    MRI_GIVEN(err, name);
    MRI_GIVEN(err, text);
    if (p->runs == MR_RUN_PAGE_RUNS) return refuse_third(err);
    const char *kept = keep_name(p, name);
    char *copy = kept && bytes < SIZE_MAX ? malloc(bytes + 1) : NULL;
    if (!copy) return no_memory(err);
    memcpy(copy, text, bytes);
    copy[bytes] = '\0';
    return check_run(p, mri_run_log_take(&p->run[p->runs++], kept, copy, bytes, err), err);
}

const char *mr_run_page_data(const mr_run_page *p)
{
    const cJSON *start = p && p->runs ? p->run[0].start : NULL;
    return mri_json_text_of(start, "augment") ? mri_json_text_of(start, "data") : NULL;
}

/* ---- a timeline ---- */

static int begin_trace(mr_run_page *p, const char *name, mr_error *err)
{
    if (p->trace_path) return mr_error_set(err, MR_EINVAL, "a page has one timeline");
    p->trace_path = keep_name(p, name);
    return p->trace_path ? MR_OK : no_memory(err);
}

int mr_run_page_trace_file(mr_run_page *p, const char *path, mr_error *err)
{
    size_t bytes, at;
    MRI_GIVEN(err, p);
    MRI_GIVEN(err, path);
    int rc = begin_trace(p, path, err);
    if (rc == MR_OK) rc = mri_run_log_bytes(path, &p->trace_text, &bytes, err);
    if (rc) return rc;
    p->trace_tree = mri_json_read(p->trace_text, bytes, &at);
    if (!p->trace_tree) {
        mr_error_set(err, MR_EFORMAT, "no JSON from offset %zu on; expected a trace that --trace wrote", at);
        return mr_error_at(err, path, MR_NOWHERE, MR_NOWHERE);
    }
    p->spans = mri_timeline_of_json(p->trace_tree, &p->span_count);
    if (!p->spans) return mr_error_set(err, MR_ENOMEM, "out of memory for the timeline");
    if (!p->span_count) note(p, "%s: no spans in it: the timeline is empty", path);
    return MR_OK;
}

int mr_run_page_trace(mr_run_page *p, const mr_trace *trace, const char *name, mr_error *err)
{
    MRI_GIVEN(err, p);
    MRI_GIVEN(err, trace);
    MRI_GIVEN(err, name);
    int rc = begin_trace(p, name, err);
    if (rc) return rc;
    rc = mr_trace_entries(trace, &p->entries, &p->span_count);
    if (rc == MR_EINVAL) return mri_error_inherited(err, __func__, "trace");
    if (rc == MR_OK) p->spans = mri_timeline_of_trace(p->entries, p->span_count);
    if (p->spans) return MR_OK;
    p->span_count = 0;
    return mr_error_set(err, MR_ENOMEM, "out of memory for the timeline");
}

/* ---- bad samples ---- */

/* The list is a log, too, without a run. */
int mr_run_page_bad_list(mr_run_page *p, const char *path, mr_error *err)
{
    mr_error none = MR_ERROR_INIT;
    MRI_GIVEN(err, p);
    MRI_GIVEN(err, path);
    if (p->bad_path) return mr_error_set(err, MR_EINVAL, "a page has one list of bad samples");
    p->bad_path = keep_name(p, path);
    if (!p->bad_path) return no_memory(err);
    const int rc = mri_run_log_read(&p->bad, p->bad_path, &none);
    if ((rc == MR_OK || rc == MR_EFORMAT) && p->bad.bad.count) return MR_OK;
    if (rc != MR_OK && rc != MR_EFORMAT) {
        if (err) *err = none;
        return rc;
    }
    mr_error_set(err, MR_EFORMAT,
                 "expected a list of bad samples (train --bad-list), found %zu lines, none of them such",
                 p->bad.lines);
    return mr_error_at(err, path, MR_NOWHERE, MR_NOWHERE);
}

/* ---- pictures ---- */

static int encode(mr_run_page *p, const mr_loader_info *info, const mr_source_info *data, const mr_batch *b,
                  uint32_t i, mr_error *err)
{
    mri_page_sample *s = &p->sample[i];
    const size_t bytes = (size_t)info->height * info->width * info->channels;
    const mr_image picture = {.width = info->width,
                              .height = info->height,
                              .channels = info->channels,
                              .pixels = (uint8_t *)(uintptr_t)(b->pixels + i * bytes)};
    const int32_t label = b->labels ? b->labels[i] : -1;
    if (label >= 0 && (uint32_t)label < data->class_count && data->class_names && data->class_names[label])
        snprintf(s->label, sizeof s->label, "%.40s", data->class_names[label]);
    else if (label >= 0) snprintf(s->label, sizeof s->label, "%d", (int)label);
    const int rc = mr_image_encode_png(&picture, &s->png, &s->bytes, err);
    if (rc == MR_OK) p->sample_count = i + 1;
    return rc;
}

static int take_pictures(mr_run_page *p, const mr_source *src, mr_loader *l, uint32_t wanted, mr_error *err)
{
    mr_batch b;
    int rc = mr_loader_next(l, &b, MR_FOREVER, err);
    if (rc) return rc;
    for (uint32_t i = 0; rc == MR_OK && i < wanted && i < b.count; i++)
        if (!b.ids || b.ids[i] != MR_NOWHERE)
            rc = encode(p, mr_loader_info_of(l), mr_source_info_of(src), &b, i, err);
    mr_loader_release(l, &b, NULL);
    return rc;
}

/* All 64 bits of it: a tree of doubles has 53. */
static uint64_t seed_of(const mri_run_log *r)
{
    static const char key[] = "\"seed\": ";
    const char *at = strstr(r->start_text, key), *end = strchr(r->start_text, '\n');
    return at && (!end || at < end) ? strtoull(at + sizeof key - 1, NULL, 10) : 0;
}

/* The run's own order and augmentation, from the first line of its log. */
static void like_the_run(mr_loader_config *cfg, const mri_run_log *r, uint32_t count)
{
    mr_loader_defaults(cfg);
    cfg->batch = count;
    cfg->epochs = 1;
    cfg->prefetch = 0;
    cfg->augment = mri_json_text_of(r->start, "augment");
    cfg->training = true;
    cfg->seed = seed_of(r);
    cfg->bad = MR_BAD_REPLACE;
    cfg->max_bad = UINT64_MAX;
}

int mr_run_page_pictures(mr_run_page *p, const mr_source *src, uint32_t count, mr_error *err)
{
    mr_loader *l = NULL;
    mr_loader_config cfg;
    MRI_GIVEN(err, p);
    MRI_GIVEN(err, src);
    if (count == 0 || count > MR_RUN_PAGE_PICTURES)
        return mr_error_set(err, MR_EINVAL, "pictures: expected 1 to %d, found %u", MR_RUN_PAGE_PICTURES,
                            count);
    if (!mr_run_page_data(p))
        return mr_error_set(err, MR_EINVAL, "no log names the data of its run and their augmentation");
    if (p->sample_count) return mr_error_set(err, MR_EINVAL, "the page has pictures");
    like_the_run(&cfg, &p->run[0], count);
    int rc = mr_loader_open(&l, src, &cfg, err);
    if (rc == MR_OK && !mr_loader_info_of(l)->height)
        rc = mr_error_set(err, MR_EUNSUPPORTED, "no pictures in %s", mr_source_info_of(src)->path);
    if (rc == MR_OK) rc = take_pictures(p, src, l, count, err);
    mr_loader_close(l);
    return rc;
}

/* ---- the page ---- */

int mr_run_page_write(const mr_run_page *p, const char *path, bool force, mr_error *err)
{
    MRI_GIVEN(err, p);
    MRI_GIVEN(err, path);
    if (p->runs == 0) return mr_error_set(err, MR_EINVAL, "no run was added to the page");
    return mri_page_write(path, force, mri_run_page_put, (void *)(uintptr_t)p, err);
}
