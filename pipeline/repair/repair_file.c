/* pipeline/repair/repair_file.c: one file of a damaged set.
 *
 *   the file    WHOLE  WHOLE  LOST .........  WHOLE
 *   the copy    WHOLE  LOST   WHOLE  WHOLE    WHOLE      same bytes at the same offsets, or it is no copy
 *   new file    1      2      3      4        5
 *
 * Where there is no copy, records are made again: the source's records between the neighbouring whole
 * records. */
#include <errno.h>
#include <inttypes.h>
#include <stdio.h>
#include <sys/stat.h>

#include "base/util.h"
#include "formats/fileset/file_names.h"
#include "formats/record/mrec_salvage.h"
#include "formats/tar/tar.h"
#include "formats/tar/tar_salvage.h"
#include "pipeline/repair/repair.h"

typedef struct job {
    mri_repair *r;
    mri_repair_file *file;
    const mri_salvage_ops *ops;
    const char *shown; /* the file's path */
    void *walk, *copy, *out;
    mri_salvage_item item, copied; /* copied: of the copy, next in line */
    bool copied_there, from_copy;  /* from_copy: the file is missing, and the copy is walked instead */
    uint64_t next_source;          /* after the last record of the set; MR_NOWHERE: unknown */
    uint64_t lost, lost_offset, lost_position; /* losses that the source should replace, reported when it did
                                                  not */
    bool lost_unknown, losing;
    mr_error lost_why;
    char lost_name[MRI_SALVAGE_NAME];
    mri_salvage_item unknown; /* the first loss of unknown number, in a file whose number of samples the list
                                 has */
    uint64_t reported;        /* samples of this file reported as lost */
} job;

/* ---- reports ---- */
void mri_repair_report(const mri_repair *r, const mr_repair_finding *f)
{
    if (r->cfg->report && !r->quiet) r->cfg->report(r->cfg->context, f);
}

static mr_repair_finding finding(const job *j, mr_repair_what what, const mri_salvage_item *item)
{
    return (mr_repair_finding){.struct_size = sizeof(mr_repair_finding),
                               .what = what,
                               .file = j->shown,
                               .offset = item->offset,
                               .count = item->count,
                               .position = j->r->position,
                               .number = item->number,
                               .name = item->name,
                               .text = item->why.text};
}

static void add_position(mri_repair *r, uint64_t count, bool known)
{
    if (!known) r->position = MR_NOWHERE;
    else if (r->position != MR_NOWHERE) r->position += count;
}

static void tell_lost(job *j, const mri_salvage_item *item, uint64_t left)
{
    if (left == 0 && j->file->listed) { /* reported at the end of the file */
        if (j->unknown.what != MRI_SALVAGE_LOST) j->unknown = *item;
        j->unknown.what = MRI_SALVAGE_LOST;
        j->file->whole = false;
        add_position(j->r, 0, false);
        return;
    }
    j->reported += left;
    mr_repair_finding f = finding(j, MR_REPAIR_LOST, item);
    f.count = left;
    mri_repair_report(j->r, &f);
    j->r->result->lost += left;
    j->r->result->lost_unknown |= left == 0;
    j->file->whole = false;
    add_position(j->r, left, left > 0);
}

void mri_repair_tell_fewer(mri_repair *r, const mri_repair_file *file, uint64_t seen)
{
    if (seen >= file->line.count) return;
    const mr_repair_finding f = {.struct_size = sizeof f,
                                 .what = MR_REPAIR_LOST,
                                 .file = file->path,
                                 .offset = MR_NOWHERE,
                                 .count = file->line.count - seen,
                                 .position = MR_NOWHERE,
                                 .number = MR_NOWHERE,
                                 .name = "",
                                 .text = "the list knows more records than there are"};
    mri_repair_report(r, &f);
    r->result->lost += f.count;
    r->position = MR_NOWHERE;
}

static void tell_put_back(job *j, const mri_salvage_item *item, uint64_t count, const char *text)
{
    mr_repair_finding f = finding(j, MR_REPAIR_PUT_BACK, item);
    f.count = count;
    f.text = text;
    if (count) mri_repair_report(j->r, &f);
    j->r->result->put_back += count;
}

static void settle_unknown(job *j)
{
    const uint64_t had = j->file->line.count, seen = j->file->samples + j->reported;
    if (j->unknown.what != MRI_SALVAGE_LOST) return;
    if (had > seen) tell_lost(j, &j->unknown, had - seen);
    else {
        const mr_repair_finding f = finding(j, MR_REPAIR_DAMAGE, &j->unknown);
        mri_repair_report(j->r, &f);
    }
    j->r->position = MR_NOWHERE;
}

/* ---- pieces ---- */
static int put(job *j, const mri_salvage_item *item, mr_error *err)
{
    const int rc = j->out ? j->ops->put(j->out, item, err) : MR_OK;
    if (rc) return rc;
    j->file->samples++;
    j->file->whole_bytes += item->bytes;
    j->r->result->samples++;
    if (item->number == MR_NOWHERE) return MR_OK;
    if (j->file->first_source == MR_NOWHERE) j->file->first_source = item->number;
    j->file->last_source = item->number;
    j->next_source = item->number + 1;
    return MR_OK;
}

static int advance_copy(job *j, mr_error *err)
{
    int rc;
    do rc = j->ops->next(j->copy, &j->copied, err);
    while (rc == MR_OK && j->copied.what == MRI_SALVAGE_NOTE);
    j->copied_there = rc == MR_OK;
    return rc == MR_EEND ? MR_OK : rc;
}

static int no_copy(const job *j, uint64_t offset, mr_error *err)
{
    mr_error_set(
        err, MR_EINVAL,
        "the file of this name in --from is no copy of it: both hold whole samples here, and they differ");
    return mri_error_place(err, MR_EINVAL, j->shown, offset, MR_NOWHERE);
}

/* Padding after the last member of an archive may be cut off: that is no difference. */
static bool same_bytes(const mri_salvage_item *a, const mri_salvage_item *b)
{
    const uint64_t both = mri_min_u64(a->bytes, b->bytes);
    const mri_salvage_item *longer = a->bytes > both ? a : b;
    bool same = memcmp(a->data, b->data, (size_t)both) == 0 && longer->bytes - both < MRI_TAR_BLOCK;
    for (uint64_t k = both; same && k < longer->bytes; k++) same = ((const uint8_t *)longer->data)[k] == 0;
    return same;
}

/* Check that the copy has the same whole piece there. */
static int compare(job *j, mr_error *err)
{
    const mri_salvage_item *a = &j->item, *b = &j->copied;
    int rc = MR_OK;
    while (!rc && j->copied_there && b->offset < a->offset) {
        if (b->what == MRI_SALVAGE_WHOLE) return no_copy(j, b->offset, err);
        rc = advance_copy(j, err);
    }
    if (rc || !j->copied_there || b->offset != a->offset) return rc;
    if (b->what == MRI_SALVAGE_WHOLE && !same_bytes(a, b)) return no_copy(j, a->offset, err);
    return advance_copy(j, err);
}

/* Take the lost piece from the copy. */
static int take_from_copy(job *j, mr_error *err)
{
    const mri_salvage_item lost = j->item;
    const uint64_t end = lost.offset + lost.bytes;
    uint64_t count = 0;
    bool clean = true;
    int rc = MR_OK;
    while (!rc && j->copied_there &&
           (j->copied.offset < end || (lost.bytes == 0 && j->copied.offset < lost.offset))) {
        if (j->copied.what == MRI_SALVAGE_WHOLE && j->copied.offset >= lost.offset) {
            if (!(rc = put(j, &j->copied, err))) count++;
        } else clean = clean && j->copied.what == MRI_SALVAGE_WHOLE;
        if (!rc) rc = advance_copy(j, err);
    }
    if (rc) return rc;
    tell_put_back(j, &lost, count, "from the second copy");
    add_position(j->r, count, true);
    if (lost.count ? count < lost.count : !clean) tell_lost(j, &lost, lost.count ? lost.count - count : 0);
    else if (count == 0) { /* nothing begins there */
        const mr_repair_finding f = finding(j, MR_REPAIR_DAMAGE, &lost);
        mri_repair_report(j->r, &f);
    }
    return MR_OK;
}

/* ---- again from the source ---- */
static bool follows_missing(const job *j)
{
    const mri_repair_set *s = j->r->set;
    const size_t at = (size_t)(j->file - s->file);
    return at + 1 < s->count && !s->file[at + 1].there;
}

/* The first record of the files behind this one that are of the same source. */
static uint64_t source_behind(const job *j)
{
    const mri_repair_set *s = j->r->set;
    for (size_t k = (size_t)(j->file - s->file) + 1; k < s->count && s->file[k].made != MRI_MADE_OTHERWISE;
         k++)
        if (s->file[k].first_source != MR_NOWHERE) return s->file[k].first_source;
    return mri_repair_again_count(j->r->again);
}

/* Where the source's next record is, after the source's records in the files before this one. */
static uint64_t source_before(const mri_repair_set *s, const mri_repair_file *file)
{
    while (file > s->file && (--file)->made != MRI_MADE_OTHERWISE)
        if (file->last_source != MR_NOWHERE) return file->last_source + 1;
    return 0;
}

/* Were the file's records made of the source that is there? It says so, or, when it is lost, both neighbours
 * that say anything: in a set that grew there are several sources. */
static bool is_of_source(const mri_repair_set *s, const mri_repair_file *file)
{
    if (file->made != MRI_MADE_UNKNOWN) return file->made == MRI_MADE_SO;
    const size_t at = (size_t)(file - s->file);
    size_t before = at, behind = at;
    while (before > 0 && s->file[before].made == MRI_MADE_UNKNOWN) before--;
    while (behind + 1 < s->count && s->file[behind].made == MRI_MADE_UNKNOWN) behind++;
    return s->file[before].made != MRI_MADE_OTHERWISE && s->file[behind].made != MRI_MADE_OTHERWISE;
}

/* Does this record begin another file, as it did when the set was made? */
static bool is_full(const job *j, const mr_value *values)
{
    if (j->file->listed) return j->file->samples >= j->file->line.count;
    const mr_writer *w = mri_mrec_salvage_writer(j->out);
    return mr_writer_count(w) > 0 &&
           mr_writer_bytes(w) + mr_writer_record_bytes(w, values) > mri_repair_again_shard_bytes(j->r->again);
}

/* Samples [next_source, until) of the source; samples that it cannot give were bad in the first run, too.
 * last: the range may exceed this file's samples. */
static int make_again(job *j, uint64_t until, bool last, uint64_t *made, mr_error *err)
{
    char name[MRI_SALVAGE_NAME];
    *made = 0;
    for (uint64_t i = j->next_source; i < until; i++) {
        const mr_value *values;
        if (mri_stop_asked()) return mri_stopped(err);
        int rc = mri_repair_again_make(j->r->again, i, &values, name, sizeof name, err);
        if (rc == MR_EEND) continue;
        if (rc) return rc;
        if (last && is_full(j, values)) break;
        rc = mr_writer_append(mri_mrec_salvage_writer(j->out), i, values, err);
        if (rc) return rc;
        ++*made;
        j->file->samples++;
        j->r->result->samples++;
        if (j->file->first_source == MR_NOWHERE) j->file->first_source = i;
        j->file->last_source = i;
        j->next_source = i + 1;
    }
    return MR_OK;
}

/* Losses that were kept back until it is known where they end. */
static int settle_lost(job *j, uint64_t until, bool last, mr_error *err)
{
    uint64_t made;
    if (!j->losing) return MR_OK;
    j->losing = false;
    mri_salvage_item item = {
        .offset = j->lost_offset, .count = j->lost, .number = MR_NOWHERE, .why = j->lost_why};
    snprintf(item.name, sizeof item.name, "%s", j->lost_name);
    const int rc = make_again(j, until, last, &made, err);
    if (rc) return rc;
    tell_put_back(j, &item, made, "made again from the source");
    add_position(j->r, made, true);
    if (!j->lost_unknown && made < j->lost) tell_lost(j, &item, j->lost - made);
    return MR_OK;
}

static void keep_lost(job *j)
{
    const mri_salvage_item *item = &j->item;
    if (!j->losing) {
        j->lost = 0;
        j->lost_unknown = false;
        j->lost_offset = item->offset;
        j->lost_why = item->why;
        snprintf(j->lost_name, sizeof j->lost_name, "%s", item->name);
    } else j->lost_name[0] = '\0';
    j->losing = true;
    j->lost += item->count;
    j->lost_unknown |= item->count == 0;
}

/* ---- one after the other ---- */
static bool makes_again(const job *j)
{
    return j->r->again && j->out && !j->copy && j->next_source != MR_NOWHERE &&
           is_of_source(j->r->set, j->file);
}

static int take(job *j, mr_error *err)
{
    mri_salvage_item *item = &j->item;
    int rc = MR_OK;
    if (item->what == MRI_SALVAGE_NOTE) {
        const mr_repair_finding f = finding(j, MR_REPAIR_DAMAGE, item);
        j->file->whole = false;
        mri_repair_report(j->r, &f);
    } else if (item->what == MRI_SALVAGE_LOST) {
        j->file->whole = false;
        if (j->copy) rc = take_from_copy(j, err);
        else if (makes_again(j)) keep_lost(j);
        else tell_lost(j, item, item->count);
    } else {
        rc = settle_lost(j, item->number, false, err);
        if (!rc && j->copy) rc = compare(j, err);
        if (!rc) rc = put(j, item, err);
        if (!rc) add_position(j->r, 1, true);
    }
    return rc;
}

static int walk_all(job *j, mr_error *err)
{
    int rc = MR_OK;
    while (!rc && !(rc = j->ops->next(j->walk, &j->item, err))) rc = take(j, err);
    if (rc != MR_EEND) return rc;
    if (j->ops == &mri_salvage_tar && !mri_tar_salvage_has_sums(j->walk)) j->r->result->unprotected = true;
    return makes_again(j) ? settle_lost(j, source_behind(j), follows_missing(j), err) : MR_OK;
}

/* ---- a file ---- */
/* Its kind to *st; *there: false if there is nothing. */
static int look_at(const char *path, struct stat *st, bool *there, mr_error *err)
{
    *there = stat(path, st) == 0;
    if (*there || errno == ENOENT || errno == ENOTDIR) return MR_OK;
    return mri_error_place(err, mr_error_sys(err, errno, "cannot look at it"), path, MR_NOWHERE, MR_NOWHERE);
}

/* The same file of the second copy, malloc'd; NULL: no such file, or an error in *rc. */
static char *copy_of(const mri_repair *r, const char *path, int *rc, mr_error *err)
{
    struct stat st, own;
    char name[MRI_MOST_PATH];
    const char *copy = r->cfg->copy;
    *rc = MR_OK;
    if (!copy) return NULL;
    bool there, own_there = false;
    *rc = look_at(copy, &st, &there, err);
    if (*rc) return NULL;
    if (there && S_ISDIR(st.st_mode)) snprintf(name, sizeof name, "%s/%s", copy, mri_file_name(path));
    else if (r->set->alone) snprintf(name, sizeof name, "%s", copy);
    else snprintf(name, sizeof name, "%.*s%s", (int)(mri_file_name(copy) - copy), copy, mri_file_name(path));
    *rc = look_at(name, &st, &there, err);
    if (*rc || !there || !S_ISREG(st.st_mode)) return NULL;
    *rc = look_at(path, &own, &own_there, err);
    if (*rc || (own_there && own.st_dev == st.st_dev && own.st_ino == st.st_ino)) return NULL; /* itself */
    char *out = strdup(name);
    if (!out) *rc = mr_error_set(err, MR_ENOMEM, "no memory to repair a file");
    return out;
}

/* Another file of the set, for the facts that all files share; NULL: no such file. */
static int like_of(const job *j, const char **like, mr_error *err)
{
    *like = NULL;
    const mri_repair_set *s = j->r->set;
    for (uint32_t k = 0; k < s->count; k++) {
        mr_mrec *m;
        if (&s->file[k] == j->file || !s->file[k].there) continue;
        mr_error why = MR_ERROR_INIT;
        int rc = MR_OK;
        if (j->ops == &mri_salvage_mrec) {
            rc = mr_mrec_open(&m, mri_repair_content(&s->file[k]), 0, &why);
            if (rc == MR_OK) mr_mrec_close(m);
        }
        if (rc && mri_repair_is_damage(rc)) continue;
        if (rc && err) *err = why;
        if (!rc) *like = mri_repair_content(&s->file[k]);
        return rc;
    }
    return MR_OK;
}

static int open_all(job *j, const char *copy, mr_error *err)
{
    const char *like, *path = j->file->there ? mri_repair_content(j->file) : copy;
    j->from_copy = !j->file->there && copy;
    int rc = like_of(j, &like, err);
    if (rc) return rc;
    if (path) rc = j->ops->open(&j->walk, path, like ? like : j->file->there ? copy : NULL, err);
    else if (like) rc = j->ops->open(&j->walk, like, NULL, err);                 /* for its settings */
    if ((rc == MR_EFORMAT || rc == MR_EUNSUPPORTED) && j->file->there && copy) { /* nothing is whole in it */
        mr_repair_finding f = {.struct_size = sizeof f,
                               .what = MR_REPAIR_DAMAGE,
                               .file = j->shown,
                               .offset = MR_NOWHERE,
                               .position = MR_NOWHERE,
                               .number = MR_NOWHERE,
                               .name = "",
                               .text = err ? err->text : ""};
        mri_repair_report(j->r, &f);
        j->from_copy = true;
        j->file->whole = false;
        return j->ops->open(&j->walk, copy, like, err);
    }
    if (!rc && j->file->there && copy) {
        rc = j->ops->open(&j->copy, copy, path, err);
        if (!rc) rc = advance_copy(j, err);
    }
    return rc;
}

static int make_missing(job *j, mr_error *err)
{
    mri_salvage_item item = {.offset = MR_NOWHERE, .number = MR_NOWHERE, .why = MR_ERROR_INIT};
    uint64_t made = 0;
    mr_error_set(&item.why, MR_ENOENT, "the file is missing");
    j->item = item;
    j->item.count = j->file->listed ? j->file->line.count : 0;
    if (!makes_again(j)) {
        tell_lost(j, &j->item, j->item.count);
        return MR_OK;
    }
    const int rc = make_again(j, source_behind(j), follows_missing(j) || j->file->listed, &made, err);
    if (rc) return rc;
    tell_put_back(j, &item, made, "made again from the source");
    add_position(j->r, made, true);
    if (j->item.count > made) tell_lost(j, &j->item, j->item.count - made);
    return MR_OK;
}

static int run(job *j, const char *copy, const char *to, bool force, mr_error *err)
{
    int rc = open_all(j, copy, err);
    const bool walks = j->file->there || j->from_copy;
    if (!rc && j->r->again && j->walk && j->file->there) {
        const char *how = mri_mrec_salvage_provenance(j->walk);
        j->file->made = !how                                    ? MRI_MADE_UNKNOWN
                        : mri_repair_again_is(j->r->again, how) ? MRI_MADE_SO
                                                                : MRI_MADE_OTHERWISE;
    }
    if (!rc && to) rc = j->walk ? j->ops->create(&j->out, j->walk, to, force, err) : MR_OK;
    if (rc) return rc;
    rc = walks ? walk_all(j, err) : make_missing(j, err);
    if (rc) return rc;
    if (walks) settle_unknown(j);
    if (j->file->listed && (j->file->rest || j->from_copy))
        mri_repair_tell_fewer(j->r, j->file, j->file->samples + j->reported);
    if (!j->from_copy) return MR_OK;
    const mri_salvage_item all = {.offset = MR_NOWHERE, .number = MR_NOWHERE};
    const uint64_t behind = j->r->position;
    j->r->position = behind == MR_NOWHERE ? behind : behind - j->file->samples - j->reported;
    tell_put_back(j, &all, j->file->samples, "from the second copy");
    j->r->position = behind;
    return MR_OK;
}

int mri_repair_one(mri_repair *r, mri_repair_file *file, const char *to, bool force, mr_error *err)
{
    job *j = calloc(1, sizeof *j);
    int rc;
    if (!j) return mr_error_set(err, MR_ENOMEM, "no memory to repair a file");
    char *copy = copy_of(r, file->path, &rc, err);
    j->r = r;
    j->file = file;
    j->ops = r->set->ops;
    j->shown = mri_repair_content(file);
    j->next_source = r->set->ops == &mri_salvage_mrec ? 0 : MR_NOWHERE;
    if (j->next_source == 0) j->next_source = source_before(r->set, file);
    file->samples = file->whole_bytes = 0;
    file->whole = file->there;
    file->first_source = file->last_source = MR_NOWHERE;
    if (!rc && copy) rc = mri_repair_check_copy(r->set, file, copy, err);
    if (!rc) rc = run(j, copy, to, force, err);
    j->ops->close(j->copy);
    if (!rc && j->out && file->samples > 0) {
        rc = j->ops->finish(j->out, err);
        j->out = NULL;
    }
    if (j->out) j->ops->abandon(j->out);
    j->ops->close(j->walk);
    free(copy);
    free(j);
    return rc;
}
