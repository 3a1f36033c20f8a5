/* pipeline/repair/update.c: mr_set_update(): a set of record files follows its source.
 *
 *   finish    what an interrupted append left
 *   compare   each sample of the source with the records of its name (update_compare.c)
 *   report    new, changed, gone and returned samples; changed and gone ones may be refused
 *   append    new ones, and the present form of changed ones (append.c)
 *   restore   records that an earlier update withdrew, and that the source has again
 *   withdraw  old records of changed samples whose present form is in the set, and of samples that are gone
 *
 * Each step leaves a whole set, and a repeated call finds the remaining work by comparison. Killed between
 * append and withdraw, the set has a changed sample in both forms until then; the other order would lose it.
 *
 * Several samples may have one name, and nothing says which of them an old record of that name was. While one
 * of them is bad, and has no record therefore, all old records of the name stay. */
#include <inttypes.h>
#include <stdio.h>

#include "base/abi.h"
#include "base/floats.h"
#include "base/util.h"
#include "pipeline/repair/repair.h"

typedef struct update {
    const char *list_path;
    mr_source *src;
    const mr_set_update_config *cfg;
    mr_set_update_result *result;
    mri_shards list;
    mr_source *set; /* as mr_source_withdraw() needs it */
    mri_update_set found;
} update;

void mr_set_update_defaults_sized(mr_set_update_config *cfg, size_t struct_size)
{
    const mr_set_update_config all = {0};
    mri_settings_give(cfg, struct_size, &all, sizeof all);
}

static int no_memory(mr_error *err) { return mr_error_set(err, MR_ENOMEM, "no memory to update a set"); }

static int place(const update *u, int rc, mr_error *err)
{
    return mri_error_place(err, rc, u->list_path, MR_NOWHERE, MR_NOWHERE);
}

static mr_append_config append_config(const update *u)
{
    return (mr_append_config){.struct_size = sizeof(mr_append_config),
                              .workers = u->cfg->workers,
                              .memory_bytes = u->cfg->memory_bytes,
                              .force = u->cfg->force,
                              .progress = u->cfg->progress,
                              .on_bad = u->cfg->on_bad,
                              .context = u->cfg->context,
                              .stop = u->cfg->stop,
                              .space = u->cfg->space,
                              .no_space_check = u->cfg->no_space_check};
}

static int finish_earlier(update *u, mr_error *err)
{
    const mr_append_config cfg = append_config(u);
    mr_append_result res = {0};
    const int rc = mri_append(u->list_path, NULL, &cfg, true, &res, err);
    u->result->resumed = res.resumed;
    return rc;
}

static int open_set(update *u, mr_error *err)
{
    mr_source_config cfg;
    mr_source_close(u->set);
    u->set = NULL;
    mr_source_defaults(&cfg);
    cfg.withdrawn = MR_WITHDRAWN_TAKE;
    return mr_source_open(&u->set, u->list_path, &cfg, err);
}

/* ---- compare ---- */
static int compare(update *u, mr_error *err)
{
    mr_convert_config cfg;
    int rc = mri_shards_read(&u->list, u->list_path, err);
    if (!rc) rc = open_set(u, err);
    if (!rc) rc = mri_append_fit(u->list_path, &u->list, u->src, &cfg, err);
    if (!rc) rc = mri_update_set_read(&u->found, u->list_path, &u->list, u->set, err);
    if (rc) return rc;
    u->result->before = u->result->after = u->found.count - mr_source_withdrawn_count(u->set);
    cfg.workers = u->cfg->workers;
    cfg.memory_bytes = u->cfg->memory_bytes;
    cfg.progress = u->cfg->compared;
    cfg.context = u->cfg->context;
    cfg.stop = u->cfg->stop;
    return mri_update_compare(&u->found, u->list_path, &u->list, u->src, &cfg, err);
}

/* ---- report ---- */
static bool is_gone(const mri_update_record *r) { return r->live && !r->named; }

static bool is_superseded(const mri_update_set *s, const char *name)
{
    uint64_t count;
    const mri_update_record *r = mri_update_find(s, name, &count);
    for (uint64_t k = 0; k < count; k++)
        if (r[k].superseded) return true;
    return false;
}

/* Where the present record of a sample is kept, the older one does not return. */
static bool is_back(const update *u, const mri_update_record *r)
{
    if (!r->matched || r->live || !r->ours) return false;
    return u->cfg->changed == MR_SET_UPDATE_WITHDRAW ||
           !is_superseded(&u->found, mri_update_name(&u->found, r));
}

static void tell(const update *u, mr_set_update_kind kind, uint64_t sample, uint64_t number, const char *name)
{
    const mr_set_update_finding f = {
        .struct_size = sizeof f, .kind = kind, .sample = sample, .number = number, .name = name};
    if (u->cfg->found) u->cfg->found(u->cfg->context, &f);
}

static int report_new(const update *u, mr_error *err)
{
    const mri_update_set *s = &u->found;
    char name[MRI_MOST_PATH];
    int rc = MR_OK;
    for (uint64_t k = 0; !rc && u->cfg->found && k < s->fresh_count; k++) {
        mr_error why = MR_ERROR_INIT;
        rc = mr_source_sample_name_get(u->src, s->fresh[k], NULL, 0, name, sizeof name, &why);
        if (rc && mr_error_of_sample(rc, &why)) rc = MR_OK;
        if (!rc) tell(u, MR_SET_UPDATE_NEW, s->fresh[k], MR_NOWHERE, name);
        else if (err) *err = why;
    }
    return rc;
}

static int report(const update *u, mr_error *err)
{
    const mri_update_set *s = &u->found;
    mr_set_update_result *res = u->result;
    const int rc = report_new(u, err);
    if (rc) return rc;
    res->fresh = s->fresh_count;
    res->same = s->same;
    res->left_out = s->withdrawn;
    for (uint64_t k = 0; k < s->count; k++) {
        const mri_update_record *r = &s->record[k];
        const char *name = mri_update_name(s, r);
        if (r->superseded) {
            res->changed++;
            tell(u, MR_SET_UPDATE_CHANGED, MR_NOWHERE, r->number, name);
        } else if (r->repeated) {
            res->repeated++;
            tell(u, MR_SET_UPDATE_REPEATED, MR_NOWHERE, r->number, name);
        } else if (is_gone(r)) {
            res->gone++;
            tell(u, MR_SET_UPDATE_GONE, MR_NOWHERE, r->number, name);
        } else if (is_back(u, r)) {
            res->back++;
            tell(u, MR_SET_UPDATE_BACK, MR_NOWHERE, r->number, name);
        }
    }
    return MR_OK;
}

/* A sample without a name may be one of the samples that seem to be gone. */
static int check_names(const update *u, mr_error *err)
{
    const uint64_t unnamed = u->found.unnamed;
    if (!unnamed || !u->result->gone || u->cfg->gone != MR_SET_UPDATE_WITHDRAW) return MR_OK;
    mr_error_set(
        err, MR_EBADSAMPLE,
        "%" PRIu64 " bad sample%s of the source %s no readable name and may be among the %" PRIu64
        " that seem to be gone; nothing was written: repair the source, or leave the records as they "
        "are (--gone keep)",
        unnamed, unnamed == 1 ? "" : "s", unnamed == 1 ? "has" : "have", u->result->gone);
    return place(u, MR_EBADSAMPLE, err);
}

static int check_rules(const update *u, mr_error *err)
{
    const mr_set_update_result *res = u->result;
    const bool changed = res->changed && u->cfg->changed == MR_SET_UPDATE_REFUSE,
               gone = res->gone && u->cfg->gone == MR_SET_UPDATE_REFUSE;
    char first[96] = "", second[96] = "";
    if (!changed && !gone) return check_names(u, err);
    if (changed)
        snprintf(first, sizeof first, "%" PRIu64 " sample%s changed in the source%s", res->changed,
                 res->changed == 1 ? " was" : "s were", gone ? ", and " : "");
    if (gone)
        snprintf(second, sizeof second, "%" PRIu64 " sample%s gone from the source", res->gone,
                 res->gone == 1 ? " is" : "s are");
    mr_error_set(
        err, MR_EEXIST,
        "%s%s; nothing was written: withdraw their records (%s%s%s), or leave them as they are (%s%s%s)",
        first, second, changed ? "--changed withdraw" : "", changed && gone ? ", " : "",
        gone ? "--gone withdraw" : "", changed ? "--changed keep" : "", changed && gone ? ", " : "",
        gone ? "--gone keep" : "");
    return place(u, MR_EEXIST, err);
}

/* ---- append ---- */
/* Both lists are rising. */
static int choose(update *u, uint64_t *count, mr_error *err)
{
    const mri_update_set *s = &u->found;
    const uint64_t changed = u->cfg->changed == MR_SET_UPDATE_WITHDRAW ? s->changed_count : 0;
    uint64_t a = 0, b = 0, n = 0;
    *count = s->fresh_count + changed;
    if (*count == 0) return MR_OK;
    uint64_t *all = malloc((size_t)*count * sizeof *all);
    if (!all) return no_memory(err);
    while (n < *count) {
        const bool fresh = b == changed || (a < s->fresh_count && s->fresh[a] < s->changed[b]);
        all[n++] = fresh ? s->fresh[a++] : s->changed[b++];
    }
    const int rc = mr_source_choose(u->src, all, n, err);
    free(all);
    return rc;
}

static int append_all(update *u, mr_error *err)
{
    const mr_append_config cfg = append_config(u);
    mr_append_result res = {0};
    uint64_t count;
    int rc = choose(u, &count, err);
    if (rc || count == 0) return rc;
    rc = mri_append(u->list_path, u->src, &cfg, true, &res, err);
    u->result->bad = res.bad;
    if (rc == MR_EBADSAMPLE && res.bad == count) return MR_OK; /* reported one by one */
    if (rc == MR_EEXIST && res.already) {
        mr_error_set(err, rc, "another run has changed the set meanwhile; run the command again");
        return place(u, rc, err);
    }
    if (rc) return rc;
    u->result->appended = res.after - res.before;
    u->result->files = res.files;
    return MR_OK;
}

/* ---- restore and withdraw ---- */
static int by_number(const void *a, const void *b)
{
    const uint64_t x = *(const uint64_t *)a, y = *(const uint64_t *)b;
    return x < y ? -1 : x > y;
}

typedef bool wanted(const update *u, const mri_update_record *r);

static int numbers_of(const update *u, wanted *want, uint64_t **out, uint64_t *count, mr_error *err)
{
    const mri_update_set *s = &u->found;
    *count = 0;
    *out = malloc((size_t)mri_max_u64(s->count, 1) * sizeof **out);
    if (!*out) return no_memory(err);
    for (uint64_t k = 0; k < s->count; k++)
        if (want(u, &s->record[k])) (*out)[(*count)++] = s->record[k].number;
    if (*count) qsort(*out, (size_t)*count, sizeof **out, by_number);
    return MR_OK;
}

static int restore(update *u, mr_error *err)
{
    uint64_t *number, count;
    int rc = numbers_of(u, is_back, &number, &count, err);
    if (!rc && count) rc = mr_source_restore(u->set, number, count, &u->result->restored, err);
    free(number);
    return rc;
}

static bool is_gone_record(const update *u, const mri_update_record *r)
{
    return u->cfg->gone == MR_SET_UPDATE_WITHDRAW && is_gone(r);
}

/* u->found is of the set with its new samples, which count as matched. An old record goes when each sample of
 * its name has a record. */
static bool is_old_record(const update *u, const mri_update_record *r)
{
    uint64_t count;
    if (u->cfg->changed != MR_SET_UPDATE_WITHDRAW || !r->superseded) return false;
    const mri_update_record *same = mri_update_find(&u->found, mri_update_name(&u->found, r), &count);
    uint64_t matched = 0;
    for (uint64_t k = 0; k < count; k++) matched += same[k].matched;
    return matched >= r->named;
}

static int withdraw(update *u, wanted *want, const char *reason, mr_error *err)
{
    uint64_t *number, count, done = 0;
    int rc = numbers_of(u, want, &number, &count, err);
    if (!rc && count) rc = mr_source_withdraw(u->set, number, count, reason, &done, err);
    u->result->withdrawn += done;
    free(number);
    return rc;
}

/* The new records, by their names: they match the samples whose old records are superseded. */
static int match_new(update *u, mr_error *err)
{
    mri_update_set now = {0};
    const uint64_t old = u->found.count;
    mri_shards_fini(&u->list);
    int rc = mri_shards_read(&u->list, u->list_path, err);
    if (!rc) rc = open_set(u, err);
    if (!rc) rc = mri_update_set_read(&now, u->list_path, &u->list, u->set, err);
    for (uint64_t k = 0; !rc && k < now.count; k++) {
        mri_update_record *r = &now.record[k];
        uint64_t count;
        if (r->number >= old) r->matched = true;
        else {
            const mri_update_record *before = mri_update_find(&u->found, mri_update_name(&now, r), &count);
            for (uint64_t b = 0; b < count; b++)
                if (before[b].number == r->number) {
                    r->matched = before[b].matched;
                    r->named = before[b].named;
                    r->repeated = before[b].repeated;
                    r->superseded = before[b].superseded;
                }
        }
        if (r->number >= old) r->named = 1; /* it is not gone */
    }
    if (rc) {
        mri_update_set_fini(&now);
        return rc;
    }
    mri_update_set_fini(&u->found);
    u->found = now;
    return MR_OK;
}

static int run(update *u, mr_error *err)
{
    int rc = finish_earlier(u, err);
    if (!rc) rc = compare(u, err);
    if (!rc) rc = report(u, err);
    if (!rc) rc = check_rules(u, err);
    if (!rc) rc = append_all(u, err);
    if (!rc && u->result->appended) rc = match_new(u, err);
    if (!rc) rc = restore(u, err);
    if (!rc) rc = withdraw(u, is_old_record, MRI_UPDATE_CHANGED, err);
    if (!rc) rc = withdraw(u, is_gone_record, MRI_UPDATE_GONE, err);
    u->result->after = u->result->before + u->result->appended + u->result->restored - u->result->withdrawn;
    return rc;
}

static int check_rule(mr_set_update_rule rule, const char *name, mr_error *err)
{
    if ((unsigned)rule <= MR_SET_UPDATE_WITHDRAW) return MR_OK;
    return mr_error_set(err, MR_EINVAL, "mr_set_update_config.%s: expected an mr_set_update_rule, found %d",
                        name, (int)rule);
}

int mr_set_update_sized(const char *list_path, mr_source *src, const mr_set_update_config *cfg,
                        mr_set_update_result *out, mr_error *err)
{
    MRI_DEFAULT_FLOATS;
    mr_set_update_config mine;
    mr_set_update_result result = {0};
    MRI_GIVEN(err, list_path);
    MRI_OWN(err, src);
    int rc = mri_result_check(out, err);
    if (rc) return rc;
    mr_set_update_defaults(&mine);
    rc = mri_settings_take(&mine, sizeof mine, cfg, "update", err);
    if (!rc) rc = check_rule(mine.changed, "changed", err);
    if (!rc) rc = check_rule(mine.gone, "gone", err);
    if (rc) return rc;
    update *u = calloc(1, sizeof *u);
    if (!u) return no_memory(err);
    u->list_path = list_path;
    u->src = src;
    u->cfg = &mine;
    u->result = &result;
    rc = run(u, err);
    mr_source_close(u->set);
    mri_shards_fini(&u->list);
    mri_update_set_fini(&u->found);
    free(u);
    mri_result_give(out, &result, sizeof result);
    return rc;
}
