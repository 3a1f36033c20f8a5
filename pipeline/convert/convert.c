/* pipeline/convert/convert.c: any source into .mrec or another format's files, in parallel. The parts are in
 * convert.h; this is the loop between them: take the next sample in source order, write it or tell that it is
 * bad.
 *
 * The same bytes come out for any number of workers because only the calling thread writes, in source order,
 * and because nothing that differs from run to run (times, names of the machine, thread counts) is written at
 * all. */
#include "pipeline/convert/convert.h"

#include <inttypes.h>
#include <stdio.h>

#include "base/abi.h"
#include "base/floats.h"
#include "base/util.h"
#include "formats/source/columns.h"
#include "pipeline/convert/convert_pool.h"
#include "settings/setting.h"

static const mri_setting rows[] = {
#define MRI_SETTING(...) MRI_ROW(mr_convert_config, __VA_ARGS__),
#define MRI_MEMBER       MRI_SETTING
#include "settings/convert.rows"
};

void mr_convert_defaults_sized(mr_convert_config *cfg, size_t struct_size)
{
    mr_convert_config all = {0};
    mri_settings_fill(rows, MRI_ARRAY_COUNT(rows), &all);
    mr_decode_defaults(&all.decode);
    mri_settings_give(cfg, struct_size, &all, sizeof all);
}

static const mri_convert_kind *const kinds[] = {[MR_TO_MREC] = &mri_convert_mrec,
                                                [MR_TO_TFRECORD] = &mri_convert_tfrecord,
                                                [MR_TO_TAR] = &mri_convert_tar,
                                                [MR_TO_MDS] = &mri_convert_mds,
                                                [MR_TO_RECORDIO] = &mri_convert_recordio};
static const char *const stores[] = {
    [MR_STORE_JPEG] = "jpeg", [MR_STORE_RAW] = "raw", [MR_STORE_COEF] = "coef"};

static int check_kind(const mr_convert_config *cfg, mr_error *err)
{
    const mri_convert_kind *kind = kinds[cfg->to];
    if (!(kind->stores & 1u << cfg->store))
        return mr_error_set(err, MR_EINVAL,
                            "store %s: %s has no place for it; pictures are written as files with store jpeg",
                            stores[cfg->store], kind->name);
    if (cfg->resume && !kind->resumes)
        return mr_error_set(
            err, MR_EINVAL,
            "resume: a conversion to %s begins anew; only one to mrec goes on where it stopped", kind->name);
    if (cfg->sample_index == MR_SAMPLE_INDEX_WIDS && cfg->to != MR_TO_TAR)
        return mr_error_set(err, MR_EINVAL, "sample_index: a WIDS index is of tar archives, and to is %s",
                            kind->name);
    return MR_OK;
}

static int check_settings(const mr_convert_config *cfg, mr_error *err)
{
    mr_decode_config unused;
    int rc = mri_settings_check(rows, MRI_ARRAY_COUNT(rows), cfg, "mr_convert_config", err);
    if (rc == MR_OK) rc = mri_decode_settings(&unused, &cfg->decode, err);
    if (rc) return rc;
    if (cfg->center_square && (cfg->store != MR_STORE_RAW || cfg->resize == 0))
        return mr_error_set(err, MR_EINVAL, "a centre square needs store raw and a size to resize to");
    return check_kind(cfg, err);
}

/* Everything the bytes depend on, and the names of target columns (columns.h). Where the source lay, when and
 * by how many threads is left out. "pictures" is there when some kind is left out, so that the text of other
 * conversions stays the same. */
static char *make_provenance(const mri_convert_plan *p)
{
    const mr_convert_config *c = &p->cfg;
    const char *note = c->provenance ? c->provenance : "null";
    char kinds_text[MRI_PICTURES_TEXT];
    const char *pictures = mri_pictures_text(&c->decode, kinds_text, sizeof kinds_text);
    char *columns = mri_columns_text(p->src);
    const size_t room = strlen(note) + (columns ? strlen(columns) : 0) + 1024;
    char *text = columns ? malloc(room) : NULL;
    if (!text) {
        free(columns);
        return NULL;
    }
    snprintf(text, room,
             "{\"source\": {\"format\": \"%s\", \"count\": %" PRIu64 ", \"fingerprint\": \"%016" PRIx64
             "\"}, \"store\": \"%s\", \"entries\": %s, \"transcode\": %s, \"resize\": %u, \"quality\": %u, "
             "\"center_square\": %s, \"channels\": %u, \"ignore_exif\": %s, \"check\": %s, "
             "\"max_pixels\": %" PRIu64 ", \"max_scans\": %u%s%s%s, %s\"shard_bytes\": %" PRIu64
             ", \"note\": %s}",
             p->info->format, p->info->count, p->info->fingerprint, stores[c->store],
             p->entries >= 0 ? "true" : "false", c->transcode ? "true" : "false", c->resize, c->quality,
             c->center_square ? "true" : "false", c->decode.channels,
             c->decode.ignore_exif ? "true" : "false", c->check ? "true" : "false", c->decode.max_pixels,
             c->decode.max_scans, pictures ? ", \"pictures\": \"" : "", pictures ? pictures : "",
             pictures ? "\"" : "", columns, c->shard_bytes, note);
    free(columns);
    return text;
}

int mri_convert_plan_make(mri_convert_plan *plan, const mr_source *src, const mr_convert_config *cfg,
                          mr_error *err)
{
    memset(plan, 0, sizeof *plan);
    plan->src = src;
    plan->info = mr_source_info_of(src);
    mr_convert_defaults(&plan->cfg);
    int rc = mri_settings_take(&plan->cfg, sizeof plan->cfg, cfg, "convert", err);
    plan->cfg.decode.struct_size = sizeof plan->cfg.decode; /* a member has the size it has */
    if (rc == MR_OK) rc = check_settings(&plan->cfg, err);
    if (rc) return rc;
    plan->kind = kinds[plan->cfg.to];
    if (plan->kind != &mri_convert_mrec) plan->cfg.entries = false; /* only our own readers know them */
    rc = mri_convert_plan_fields(plan, err);
    if (rc == MR_OK && plan->kind->plan) rc = plan->kind->plan(plan, err);
    if (rc) return rc;
    plan->provenance = make_provenance(plan);
    return plan->provenance ? MR_OK : mr_error_set(err, MR_ENOMEM, "out of memory for the provenance text");
}

enum { REASON_BYTES = 768 };

/* first: why the first bad sample of this run is bad. */
static int take_bad(const mri_convert_plan *plan, const mri_convert_item *item, mr_convert_result *out,
                    char first[REASON_BYTES], mr_error *err)
{
    if (!first[0]) mr_error_format(&item->error, first, REASON_BYTES);
    out->bad++;
    if (plan->cfg.on_bad) plan->cfg.on_bad(plan->cfg.context, &item->error, MR_NOWHERE);
    if (out->bad <= plan->cfg.max_bad) return MR_OK;
    mr_error_set(err, MR_EBADSAMPLE, "more than %" PRIu64 " bad sample%s; the last one: %.600s",
                 plan->cfg.max_bad, plan->cfg.max_bad == 1 ? "" : "s", item->error.text);
    return mr_error_at(err, item->error.file, item->error.offset, item->error.sample);
}

typedef struct job { /* the state of a running conversion */
    void *output;
    mri_taken *taken;
    mri_convert_pool *pool;
    bool *seen; /* of each class: a sample of it was written; NULL: its name is written in any case */
} job;

static int look_for_classes(job *j, const mri_convert_plan *plan, mr_error *err)
{
    const mr_source_info *info = plan->info;
    if (plan->kind->class_names == MRI_NAMES_STORED || !info->class_names || !info->class_count) return MR_OK;
    j->seen = calloc(info->class_count, sizeof *j->seen);
    return j->seen ? MR_OK : mr_error_set(err, MR_ENOMEM, "no memory for %u classes", info->class_count);
}

/* How many names of classes the output lacks. */
static uint64_t names_lost(const job *j, const mri_convert_plan *plan)
{
    const mr_source_info *info = plan->info;
    const bool with_samples = plan->kind->class_names == MRI_NAMES_WITH_SAMPLES && plan->image >= 0;
    uint64_t lost = 0;
    for (uint32_t k = 0; j->seen && k < info->class_count; k++)
        lost += info->class_names[k][0] && !(with_samples && j->seen[k]);
    return lost;
}

static void count(const job *j, const mri_convert_plan *plan, const mri_convert_item *item,
                  mr_convert_result *out)
{
    const int64_t label = j->seen && plan->label >= 0 ? item->values[plan->label].i : -1;
    if (label >= 0 && label < (int64_t)plan->info->class_count) j->seen[label] = true;
    out->records++;
    out->transcoded += item->transcoded;
    out->with_entries += item->entries_bytes > 0;
    out->kept += item->kept;
    out->coefficients += plan->image >= 0 && item->values[plan->image].type == MR_TYPE_COEF;
}

static int run(const mri_convert_plan *plan, const job *j, uint64_t first, mr_convert_result *out,
               mr_error *err)
{
    mri_convert_item *item;
    int rc;
    uint64_t done = first;
    char reason[REASON_BYTES] = "";
    while ((rc = mri_convert_pool_next(j->pool, &item)) == MR_OK) {
        if (item->fatal) {
            if (err) *err = item->error;
            return item->rc;
        }
        out->bytes_in += item->bytes_in;
        rc = j->taken ? mri_taken_note(j->taken, item->source_index, item->stamp, err) : MR_OK;
        if (rc) return rc;
        rc = item->rc ? take_bad(plan, item, out, reason, err)
                      : plan->kind->append(j->output, item->source_index, item->values, err);
        if (rc) return rc;
        if (item->rc == MR_OK) count(j, plan, item, out);
        if (plan->cfg.progress)
            plan->cfg.progress(plan->cfg.context, ++done, plan->info->count, out->bytes_in);
    }
    if (rc == MR_ECANCELED)
        return mr_error_set(err, rc,
                            plan->kind->resumes ? "stopped; the records so far are kept for resume"
                                                : "stopped; nothing was written");
    if (out->records == 0)
        return mr_error_set(err, MR_EBADSAMPLE, "none of the %" PRIu64 " samples could be converted%s%s",
                            plan->info->count, reason[0] ? "; the first: " : "", reason);
    return MR_OK;
}

/* Of a conversion that was complete a killed run may have left it: then it is opened to be removed, if that
 * can be. */
static int open_taken(mri_taken **out, const mri_convert_plan *plan, const char *dst, uint64_t first,
                      mr_error *err)
{
    const bool complete = first >= plan->info->count;
    const int rc = mri_taken_open(out, plan, dst, complete ? NULL : err);
    if (rc == MR_OK || !complete) return rc;
    mri_taken_close(*out, true);
    *out = NULL;
    return MR_OK;
}

static int convert(const mri_convert_plan *plan, const char *dst, mr_convert_result *out, mr_error *err)
{
    const mri_convert_kind *kind = plan->kind;
    job j = {0};
    uint64_t first;
    int rc = plan->cfg.resume ? MR_OK : mri_convert_check_space(plan, dst, 0, err);
    if (rc) return rc;
    rc = kind->open(&j.output, plan, dst, &first, &out->resumed, err);
    if (rc == MR_EEND) { /* an earlier run had come to the end */
        rc = MR_OK;
        first = plan->info->count;
    } else if (rc) {
        return rc;
    }
    out->records = out->resumed;
    out->bad = first - out->resumed; /* what earlier runs passed over */
    if (rc == MR_OK && plan->cfg.resume) rc = mri_convert_check_space(plan, dst, first, err);
    if (rc == MR_OK && kind->resumes) rc = open_taken(&j.taken, plan, dst, first, err);
    if (rc == MR_OK && out->bad) rc = mri_convert_tell_passed(plan, j.output, first, err);
    if (rc == MR_OK && j.taken && first < plan->info->count) rc = mri_taken_check(j.taken, first, err);
    if (rc == MR_OK) rc = look_for_classes(&j, plan, err);
    if (rc == MR_OK) rc = mri_convert_pool_start(&j.pool, plan, first, err);
    if (rc == MR_OK) rc = run(plan, &j, first, out, err);
    mri_convert_pool_stop(j.pool);
    out->class_names_lost = names_lost(&j, plan);
    free(j.seen);
    if (rc == MR_OK) rc = kind->finish(j.output, &out->bytes_out, &out->shards, err);
    if (rc == MR_OK && kind->report) kind->report(j.output, out);
    if (rc == MR_OK) rc = mri_taken_remove(j.taken, err);
    /* with no record at all there is nothing to go on from */
    kind->close(j.output, out->records > 0);
    mri_taken_close(j.taken, rc != MR_OK && out->records > 0);
    return rc;
}

int mr_convert_sized(const mr_source *src, const char *dst, const mr_convert_config *cfg,
                     mr_convert_result *out, mr_error *err)
{
    MRI_DEFAULT_FLOATS;
    mri_convert_plan plan;
    mr_convert_result result = {0};
    MRI_OWN(err, src);
    MRI_GIVEN(err, dst);
    int rc = mri_result_check(out, err);
    if (rc) return rc;
    rc = mri_convert_plan_make(&plan, src, cfg, err);
    if (rc == MR_OK) rc = convert(&plan, dst, &result, err);
    free(plan.provenance);
    mri_result_give(out, &result, sizeof result);
    return rc;
}
