/* pipeline/repair/repair.c: mr_repair(): look at all files of a set, then write.
 *
 *   look     every file is read; missing and damaged pieces are known
 *   write    dst: whole files as they are, damaged ones anew, all under their old names
 *            in_place: damaged ones anew, after the old file became NAME.damaged
 *   list     of record files, at the end: killed before, a set has its old list, or none, and no wrong one
 *
 * Files are written by formats/storage/output.h: there is never half of one under its name. */
#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <stdio.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/abi.h"
#include "base/floats.h"
#include "base/util.h"
#include "formats/fileset/file_names.h"
#include "formats/record/mrec_salvage.h"
#include "formats/storage/output.h"
#include "formats/tar/tar_salvage.h"
#include "pipeline/repair/repair.h"

void mr_repair_defaults_sized(mr_repair_config *cfg, size_t struct_size)
{
    const mr_repair_config all = {0};
    mri_settings_give(cfg, struct_size, &all, sizeof all);
}

static int no_memory(mr_error *err) { return mr_error_set(err, MR_ENOMEM, "no memory to repair a set"); }

static void report(const mri_repair *r, mr_repair_what what, const char *file, const char *text,
                   const char *to, uint64_t count)
{
    const mr_repair_finding f = {.struct_size = sizeof f,
                                 .what = what,
                                 .file = file,
                                 .offset = MR_NOWHERE,
                                 .count = count,
                                 .position = MR_NOWHERE,
                                 .number = MR_NOWHERE,
                                 .name = "",
                                 .text = text,
                                 .to = to};
    mri_repair_report(r, &f);
}

/* ---- look ---- */
/* Check every byte of a record file. */
static int check_record_file(mri_repair_file *f, mr_error *err)
{
    mr_error why = MR_ERROR_INIT;
    const int rc = mr_mrec_verify(mri_repair_content(f), NULL, NULL, NULL, &why);
    if (rc && rc != MR_EFORMAT && rc != MR_ECHECKSUM && rc != MR_ELIMIT && rc != MR_EUNSUPPORTED) {
        if (err) *err = why;
        return rc;
    }
    if (rc) f->whole = false;
    return MR_OK;
}

/* What is known of a file before its pieces are read. */
static void tell_file(const mri_repair *r, const mri_repair_file *f)
{
    const uint64_t count = f->listed ? f->line.count : 0;
    if (!f->there)
        report(r, MR_REPAIR_MISSING, f->path, f->strange ? f->other : "the file is missing", NULL, count);
    else if (f->other) report(r, MR_REPAIR_DAMAGE, mri_repair_content(f), f->other, NULL, 0);
}

static int look(mri_repair *r, mr_error *err)
{
    const mri_repair_set *s = r->set;
    int rc = MR_OK;
    r->result->list_damaged = s->list && !s->alone && !s->list_there;
    if (s->list_wrong) report(r, MR_REPAIR_DAMAGE, s->list, s->list_wrong, NULL, 0);
    else if (r->result->list_damaged)
        report(r, MR_REPAIR_DAMAGE, s->list, "the list of the files is missing", NULL, 0);
    for (uint32_t k = 0; !rc && k < s->count; k++) {
        mri_repair_file *f = &s->file[k];
        tell_file(r, f);
        rc = mri_repair_one(r, f, NULL, false, err);
        if (!rc && f->there && s->ops == &mri_salvage_mrec) rc = check_record_file(f, err);
        r->result->missing += !f->there;
        r->result->damaged += f->there && (!f->whole || f->at);
        r->result->list_damaged |= f->rest;
        f->kept = f->samples > 0 || r->again;
    }
    if (!rc && s->ops == &mri_salvage_mrec) rc = mri_repair_set_same_fields(s, err);
    return rc;
}

/* ---- write ---- */
/* Archives get numbers without gaps where some are lost: a gap means that files are missing. */
static bool numbers_anew(const mri_repair *r, uint32_t kept)
{
    const mri_repair_set *s = r->set;
    bool all = s->ops == &mri_salvage_tar && !s->counted && !s->alone && r->cfg->dst && kept != s->count;
    for (uint32_t k = 0; all && k < s->count; k++) {
        const char *dot = strrchr(mri_file_name(s->file[k].path), '.');
        all =
            dot && dot > mri_file_name(s->file[k].path) && dot[-1] >= '0' && dot[-1] <= '9' &&
            mri_name_shape(mri_file_name(s->file[k].path)) == mri_name_shape(mri_file_name(s->file[0].path));
    }
    return all;
}

/* Where the file goes; malloc'd. at, of: numbers of a set that is counted. */
static char *target(const mri_repair *r, const mri_repair_file *f, uint32_t at, uint32_t of)
{
    const char *dst = r->cfg->dst, *name = mri_file_name(f->path);
    char path[2 * MRI_MOST_PATH];
    mri_piece p;
    if (!dst) return strdup(f->path);
    if (r->set->alone) return strdup(dst);
    if (numbers_anew(r, of)) {
        const char *dot = strrchr(name, '.'), *digits = dot;
        while (digits > name && digits[-1] >= '0' && digits[-1] <= '9') digits--;
        snprintf(path, sizeof path, "%s/%.*s%0*" PRIu32 "%s", dst, (int)(digits - name), name,
                 (int)(dot - digits), at, dot);
        return strdup(path);
    }
    if (r->set->counted && of != r->set->count && mri_piece_of(name, &p))
        snprintf(path, sizeof path, "%s/%.*s%0*" PRIu32 "-of-%0*" PRIu32 "%s", dst, (int)p.stem_bytes, name,
                 p.digits, at, p.total_digits, of, p.ending);
    else snprintf(path, sizeof path, "%s/%s", dst, name);
    return strdup(path);
}

static int copy_whole(const char *from, const char *to, bool force, mr_error *err)
{
    const mri_output_rules rules = {.force = force, .take_part = force};
    mri_output *o;
    struct stat st;
    int rc = mri_output_open(&o, to, &rules, err);
    if (rc) return rc;
    const int fd = open(from, O_RDONLY | O_CLOEXEC);
    uint8_t *buffer = malloc(1 << 20);
    if (!buffer) rc = no_memory(err);
    else if (fd < 0 || fstat(fd, &st) != 0)
        rc = mri_error_place(err, mr_error_sys(err, errno, "cannot open"), from, MR_NOWHERE, MR_NOWHERE);
    for (uint64_t at = 0; !rc && at < (uint64_t)st.st_size; at += 1 << 20) {
        const size_t n = (size_t)mri_min_u64((uint64_t)st.st_size - at, 1 << 20);
        rc = mri_pread_all(fd, buffer, n, at, from, err);
        if (!rc) rc = mri_pwrite_all(mri_output_fd(o), buffer, n, at, mri_output_part(o), err);
    }
    if (!rc) rc = mri_output_commit(o, NULL, NULL, err);
    mri_output_close(o, false);
    if (fd >= 0) close(fd);
    free(buffer);
    return rc;
}

/* Keep the damaged file under another name. */
static int keep_damaged(const mri_repair *r, const char *path, mr_error *err)
{
    char name[MRI_MOST_PATH];
    if (snprintf(name, sizeof name, "%s.damaged", path) >= (int)sizeof name)
        return mr_error_set(err, MR_EINVAL, "the file's name is too long");
    return mri_output_keep_as(path, name, r->cfg->force, err);
}

static int write_one(mri_repair *r, mri_repair_file *f, const char *to, mr_error *err)
{
    const bool whole = f->there && f->whole, in_place = !r->cfg->dst, old = f->there || f->strange;
    int rc = MR_OK;
    if (whole && in_place) return MR_OK;
    if (whole) rc = copy_whole(mri_repair_content(f), to, r->cfg->force, err);
    else {
        if (in_place && old) rc = keep_damaged(r, f->path, err);
        if (!rc) rc = mri_repair_one(r, f, to, r->cfg->force || (in_place && old), err);
    }
    if (!rc && in_place && old && f->samples == 0) { /* it stays as NAME.damaged alone */
        const mri_output_rules rules = {.force = true};
        rc = mri_output_remove(f->path, &rules, err);
    }
    if (rc || f->samples == 0) return rc;
    r->result->written++;
    report(r, MR_REPAIR_FILE, f->path, whole ? "whole" : "repaired", to, f->samples);
    return MR_OK;
}

/* With nothing lost the new file is the old one. */
static int check_again(mri_repair *r, const mri_repair_file *f, const char *to, uint64_t lost_before,
                       mr_error *err)
{
    mr_mrec *m;
    if (!f->listed || f->whole || f->samples == 0 || r->result->lost != lost_before ||
        r->result->lost_unknown)
        return MR_OK;
    const int rc = mr_mrec_open(&m, to, 0, err);
    if (rc) return rc;
    const bool same = mr_mrec_info_of(m)->fingerprint == f->line.fingerprint;
    mr_mrec_close(m);
    if (!same)
        report(r, MR_REPAIR_DAMAGE, to,
               "every sample is there again, but the file is not the one that the list knows: restored bytes "
               "differ from the original",
               NULL, 0);
    return MR_OK;
}

static int write_list(mri_repair *r, char **to, mr_error *err)
{
    const mri_repair_set *s = r->set;
    char path[2 * MRI_MOST_PATH];
    const char **paths = calloc(s->count, sizeof *paths);
    uint64_t *counts = calloc(s->count, sizeof *counts);
    uint32_t n = 0;
    int rc = paths && counts ? MR_OK : no_memory(err);
    for (uint32_t k = 0; !rc && k < s->count; k++)
        if (s->file[k].samples > 0) {
            paths[n] = to[k];
            counts[n++] = s->file[k].samples;
        }
    if (r->cfg->dst) snprintf(path, sizeof path, "%s/%s", r->cfg->dst, mri_file_name(s->list));
    else snprintf(path, sizeof path, "%s", s->list);
    if (!rc) rc = mr_shards_write(path, paths, counts, n, r->cfg->force || !r->cfg->dst, err);
    free(paths);
    free(counts);
    if (rc) return rc;
    r->result->list_written = true;
    report(r, MR_REPAIR_FILE, s->list, "list", path, r->result->samples);
    return MR_OK;
}

/* In place, one file would go over the other before that one is copied. */
static int check_exchanged(const mri_repair *r, mr_error *err)
{
    for (uint32_t k = 0; !r->cfg->dst && k < r->set->count; k++) {
        const mri_repair_file *f = &r->set->file[k];
        if (!f->at) continue;
        mr_error_set(err, MR_EINVAL,
                     "by the list this file is %s: rename it back, or give a folder for the repaired set, "
                     "where each file gets its own name; nothing was written",
                     mri_file_name(f->path));
        return mri_error_place(err, MR_EINVAL, f->at, MR_NOWHERE, MR_NOWHERE);
    }
    return MR_OK;
}

static int check_renumbered(const mri_repair *r, uint32_t kept, mr_error *err)
{
    if (!r->set->counted || r->cfg->dst || kept == r->set->count) return MR_OK;
    return mr_error_set(
        err, MR_EINVAL,
        "%u of %u files cannot be made again, and the names of the others say how many there are: "
        "give a folder for the repaired set, where they get new numbers",
        r->set->count - kept, r->set->count);
}

static int make_folder(const mri_repair *r, mr_error *err)
{
    if (!r->cfg->dst || r->set->alone || mkdir(r->cfg->dst, 0777) == 0 || errno == EEXIST) return MR_OK;
    return mri_error_place(err, mr_error_sys(err, errno, "cannot make the folder"), r->cfg->dst, MR_NOWHERE,
                           MR_NOWHERE);
}

/* Into the folder of the set itself files would be replaced. */
static int check_dst(const mri_repair *r, mr_error *err)
{
    struct stat a, b;
    if (!r->cfg->dst) return MR_OK;
    for (uint32_t k = 0; k < r->set->count; k++) {
        char *to = target(r, &r->set->file[k], 0, r->set->count);
        if (!to) return no_memory(err);
        const bool same = stat(to, &a) == 0 && stat(r->set->file[k].path, &b) == 0 && a.st_dev == b.st_dev &&
                          a.st_ino == b.st_ino;
        free(to);
        if (same)
            return mri_error_place(
                err,
                mr_error_set(err, MR_EINVAL,
                             "this is the damaged file itself: choose another place, or repair it "
                             "in place (--in-place)"),
                r->set->file[k].path, MR_NOWHERE, MR_NOWHERE);
    }
    return MR_OK;
}

/* A run that was killed over it leaves its part file. */
static bool list_was_begun(const char *list)
{
    struct stat st;
    char part[MRI_MOST_PATH + 8];
    snprintf(part, sizeof part, "%s.part", list);
    return lstat(part, &st) == 0 && S_ISREG(st.st_mode) && (st.st_mode & S_ISVTX) && st.st_uid == geteuid();
}

/* A repaired file is about as large as the damaged one, or as the list says, and at least as large as its
 * whole samples. In place one file follows the other, and the damaged ones stay. */
static int check_space(const mri_repair *r, mr_error *err)
{
    uint64_t likely = 0, least = 0, room;
    mr_error why = MR_ERROR_INIT;
    struct stat st;
    for (uint32_t k = 0; k < r->set->count; k++) {
        const mri_repair_file *f = &r->set->file[k];
        if (!f->kept || (!r->cfg->dst && f->there && f->whole)) continue;
        const uint64_t own = f->there && stat(mri_repair_content(f), &st) == 0 ? (uint64_t)st.st_size : 0;
        likely += mri_max_u64(own, f->listed ? f->line.file_bytes : 0);
        least += f->there && f->whole ? own : f->whole_bytes;
    }
    if (likely == 0) return MR_OK;
    const int rc = mr_output_check_estimate(r->cfg->dst ? r->cfg->dst : r->set->file[0].path, likely, least,
                                            &room, &why);
    if (rc && !r->cfg->no_space_check) {
        if (err) *err = why;
        return rc;
    }
    if (r->cfg->space) r->cfg->space(r->cfg->context, likely, room);
    return MR_OK;
}

static int write_all(mri_repair *r, mr_error *err)
{
    const mri_repair_set *s = r->set;
    uint32_t kept = 0, at = 0;
    char **to = calloc(s->count, sizeof *to);
    for (uint32_t k = 0; k < s->count; k++) kept += s->file[k].kept;
    int rc = to ? check_renumbered(r, kept, err) : no_memory(err);
    if (!rc) rc = check_exchanged(r, err);
    if (!rc) rc = check_dst(r, err);
    if (!rc) rc = check_space(r, err);
    if (!rc) rc = make_folder(r, err);
    mr_repair_result *out = r->result;
    out->renumbered = (s->counted && kept != s->count) || numbers_anew(r, kept);
    out->samples = out->put_back = out->lost = 0;
    out->lost_unknown = false;
    r->position = 0;
    for (uint32_t k = 0; !rc && k < s->count; k++) {
        mri_repair_file *f = &s->file[k];
        const uint64_t lost = out->lost;
        to[k] = target(r, f, at, kept);
        if (!to[k]) rc = no_memory(err);
        at += f->kept;
        if (!rc && f->there && f->whole) {
            out->samples += f->samples;
            if (r->position != MR_NOWHERE) r->position += f->samples;
            if (f->rest) mri_repair_tell_fewer(r, f, f->samples);
        }
        if (!rc) rc = write_one(r, f, to[k], err);
        if (!rc && s->ops == &mri_salvage_mrec) rc = check_again(r, f, to[k], lost, err);
    }
    const bool lists = s->list && (r->cfg->dst || out->list_damaged || out->damaged || out->missing ||
                                   list_was_begun(s->list));
    if (!rc && lists && out->samples > 0) rc = write_list(r, to, err);
    for (uint32_t k = 0; to && k < s->count; k++) free(to[k]);
    free(to);
    return rc;
}

/* ---- both ---- */
static int open_again(mri_repair *r, mr_error *err)
{
    if (!r->cfg->source) return MR_OK;
    if (r->set->ops != &mri_salvage_mrec)
        return mr_error_set(
            err, MR_EINVAL,
            "only record files can be made again from their source: of %s files give a second copy, or "
            "convert the source again",
            r->set->ops->format);
    /* of a set that grew, its files are of several sources: one of them is this */
    int first = MR_OK;
    mr_error why = MR_ERROR_INIT;
    for (uint32_t k = 0; k < r->set->count; k++) {
        mr_mrec *m;
        mr_error now = MR_ERROR_INIT;
        const char *content = mri_repair_content(&r->set->file[k]);
        if (!r->set->file[k].there || mr_mrec_open(&m, content, 0, NULL) != MR_OK) continue;
        mr_mrec_close(m);
        const int rc = mri_repair_again_open(&r->again, r->cfg->source, content, &now);
        if (rc == MR_OK) return MR_OK;
        if (!first) why = now;
        if (!first) first = rc;
        if (rc != MR_EINVAL) break;
    }
    if (first && err) *err = why;
    if (first) return first;
    return mr_error_set(err, MR_EFORMAT,
                        "no file of the set says any more how it was made: convert the source again");
}

static int repair(const char *path, const mr_repair_config *cfg, mr_repair_result *result, mr_error *err)
{
    mri_repair_set set;
    const bool writes = cfg->dst || cfg->in_place;
    int rc = mri_repair_set_find(&set, path, err);
    if (!rc && cfg->copy) rc = mri_repair_set_add_copy(&set, cfg->copy, err);
    if (!rc && set.ops == &mri_salvage_mrec) rc = mri_repair_set_know(&set, cfg->copy || cfg->source, err);
    if (rc) {
        mri_repair_set_fini(&set);
        return rc;
    }
    mri_repair r = {.cfg = cfg, .set = &set, .quiet = writes, .result = result};
    snprintf(result->format, sizeof result->format, "%s", set.ops->format);
    result->files = set.count;
    rc = open_again(&r, err);
    if (!rc) mri_repair_set_replace_rests(&r, &set);
    if (!rc) rc = look(&r, err);
    r.quiet = false;
    if (!rc && writes) {
        if (set.list_wrong) report(&r, MR_REPAIR_DAMAGE, set.list, set.list_wrong, NULL, 0);
        else if (set.list && !set.alone && !set.list_there)
            report(&r, MR_REPAIR_DAMAGE, set.list, "the list of the files is missing", NULL, 0);
        for (uint32_t k = 0; k < set.count; k++) tell_file(&r, &set.file[k]);
        rc = write_all(&r, err);
    }
    mri_repair_again_close(r.again);
    mri_repair_set_fini(&set);
    return rc;
}

int mr_repair_sized(const char *path, const mr_repair_config *cfg, mr_repair_result *out, mr_error *err)
{
    MRI_DEFAULT_FLOATS;
    mr_repair_config mine;
    mr_repair_result result = {0};
    MRI_GIVEN(err, path);
    int rc = mri_result_check(out, err);
    if (rc) return rc;
    mr_repair_defaults(&mine);
    rc = mri_settings_take(&mine, sizeof mine, cfg, "repair", err);
    if (!rc && mine.dst && mine.in_place)
        rc = mr_error_set(err, MR_EINVAL, "a place to write to, and in place: choose one of both");
    if (rc) return rc;
    const volatile int *before = mri_stop_at(mine.stop);
    rc = repair(path, &mine, &result, err);
    mri_stop_at(before);
    mri_result_give(out, &result, sizeof result);
    return rc;
}

int mr_repair_is_copy(const char *path, const char *other, bool *out, mr_error *err)
{
    mri_repair_set a, b;
    MRI_GIVEN(err, path);
    MRI_GIVEN(err, other);
    MRI_GIVEN(err, out);
    int rc = mri_repair_set_find(&a, path, err);
    if (rc) return rc;
    mr_error why = MR_ERROR_INIT;
    rc = mri_repair_set_find(&b, other, &why);
    *out = rc == MR_OK && a.ops == b.ops;
    mri_repair_set_fini(&a);
    if (rc == MR_OK) mri_repair_set_fini(&b);
    if (rc == MR_OK || mri_repair_is_damage(rc)) return MR_OK;
    if (err) *err = why;
    return rc;
}
