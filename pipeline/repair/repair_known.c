/* pipeline/repair/repair_known.c: which files are the ones that the list of a set knows.
 *
 *   the list     A  B  C  D      count, size and fingerprint of each file
 *   the files    A  C  B  X      B and C exchanged their names; X is a file of another set: D is missing
 *
 * The header of a file has these facts and a checksum, so a cut file is known, too. A file with a damaged
 * header is taken for the one of its name. A file of the same conversion with fewer records is what an
 * earlier repair left of it: without --from it is kept, and the rest of its records counts as lost. */
#include <fcntl.h>
#include <inttypes.h>
#include <stdio.h>
#include <unistd.h>

#include "base/util.h"
#include "formats/record/mrec_file.h"
#include "pipeline/repair/repair.h"

typedef struct facts {
    bool known;
    uint64_t count, file_bytes, fingerprint;
} facts;

static int no_memory(mr_error *err) { return mr_error_set(err, MR_ENOMEM, "no memory to repair a set"); }

/* Errors of the system show up where the file is read. */
static facts facts_of(const char *path)
{
    uint8_t block[MRI_MREC_BLOCK];
    mri_mrec_header h;
    mr_error unused = MR_ERROR_INIT;
    const int fd = open(path, O_RDONLY | O_CLOEXEC | O_NONBLOCK);
    if (fd < 0) return (facts){0};
    const bool read = mri_pread_all(fd, block, sizeof block, 0, path, &unused) == MR_OK;
    close(fd);
    if (!read || mri_mrec_header_decode(block, &h, &unused) != MR_OK || !(h.flags & MRI_MREC_COMPLETE))
        return (facts){0};
    return (facts){true, h.count, h.file_bytes, h.fingerprint};
}

static bool is_line(const mri_repair_file *f, const facts *of)
{
    return f->listed && of->known && f->line.count == of->count && f->line.file_bytes == of->file_bytes &&
           f->line.fingerprint == of->fingerprint;
}

static bool same_provenance(const char *path, const char *other)
{
    mr_mrec *a, *b;
    if (mr_mrec_open(&a, path, 0, NULL) != MR_OK) return false;
    bool same = mr_mrec_open(&b, other, 0, NULL) == MR_OK;
    if (same) {
        const char *made = mr_mrec_info_of(a)->provenance;
        same = made[0] && strcmp(made, mr_mrec_info_of(b)->provenance) == 0;
        mr_mrec_close(b);
    }
    mr_mrec_close(a);
    return same;
}

/* What an earlier repair left of f: fewer records, and made as another file of the set was. */
static bool is_rest(const mri_repair_set *s, const mri_repair_file *f, const char *path, const facts *of)
{
    if (of->count >= f->line.count) return false;
    for (uint32_t k = 0; k < s->count; k++)
        if (is_line(&s->file[k], of)) return false;
    for (uint32_t k = 0; k < s->count; k++) {
        const mri_repair_file *other = &s->file[k];
        if (other == f || !other->there) continue;
        const facts o = facts_of(mri_repair_content(other));
        if (is_line(other, &o)) return same_provenance(mri_repair_content(other), path);
    }
    return false;
}

int mri_repair_check_copy(const mri_repair_set *s, const mri_repair_file *f, const char *copy, mr_error *err)
{
    if (!f->listed) return MR_OK;
    const facts of = facts_of(copy);
    if (!of.known || is_line(f, &of) || is_rest(s, f, copy, &of)) return MR_OK;
    mr_error_set(err, MR_EINVAL,
                 "the file of this name in --from is no copy of it: the list knows %" PRIu64
                 " records of fingerprint %016" PRIx64 ", found %" PRIu64 " of %016" PRIx64,
                 f->line.count, f->line.fingerprint, of.count, of.fingerprint);
    return mri_error_place(err, MR_EINVAL, copy, MR_NOWHERE, MR_NOWHERE);
}

/* ---- all files ---- */
static int tell(mri_repair_file *f, const char *text, mr_error *err)
{
    f->other = strdup(text);
    return f->other ? MR_OK : no_memory(err);
}

/* The file at number i is the one of another line: give it to that line. */
static int give_place(mri_repair_set *s, const facts *of, const bool *own, uint32_t i, bool *given,
                      mr_error *err)
{
    *given = false;
    for (uint32_t k = 0; !*given && k < s->count; k++) {
        mri_repair_file *f = &s->file[k];
        if (k == i || f->at || (f->there && own[k]) || !is_line(f, &of[i])) continue;
        char text[2 * MRI_MOST_PATH];
        snprintf(text, sizeof text, "by the list this file is %s", mri_file_name(f->path));
        f->at = strdup(s->file[i].path);
        *given = true;
        return f->at ? tell(f, text, err) : no_memory(err);
    }
    return MR_OK;
}

static int leave_out(const mri_repair_set *s, mri_repair_file *f, const facts *of, mr_error *err)
{
    char text[MRI_MOST_PATH + 512];
    f->rest = is_rest(s, f, f->path, of);
    if (f->rest) {
        snprintf(text, sizeof text,
                 "an earlier repair left fewer records in it: expected %" PRIu64 ", found %" PRIu64,
                 f->line.count, of->count);
        return tell(f, text, err);
    }
    snprintf(
        text, sizeof text,
        "not the file that the list knows: found %" PRIu64 " records of fingerprint %016" PRIx64
        " (if they belong to the set, remove the list %s, and 'millrace repair' makes a list of the files "
        "that are there); it is left out and counts as missing: expected a file of fingerprint %016" PRIx64,
        of->count, of->fingerprint, mri_file_name(s->list), f->line.fingerprint);
    f->strange = true;
    return tell(f, text, err);
}

static int sort_out(mri_repair_set *s, const facts *of, bool *own, mr_error *err)
{
    int rc = MR_OK;
    bool *given = calloc(s->count, sizeof *given);
    if (!given) return no_memory(err);
    for (uint32_t k = 0; k < s->count; k++)
        own[k] = !s->file[k].there || !of[k].known || is_line(&s->file[k], &of[k]);
    for (uint32_t k = 0; !rc && k < s->count; k++)
        if (!own[k]) rc = give_place(s, of, own, k, &given[k], err);
    for (uint32_t k = 0; !rc && k < s->count; k++)
        if (!own[k] && !given[k] && !s->file[k].at) rc = leave_out(s, &s->file[k], &of[k], err);
    for (uint32_t k = 0; k < s->count; k++) {
        mri_repair_file *f = &s->file[k];
        f->there = f->at || (f->there && (own[k] || f->rest));
    }
    free(given);
    return rc;
}

int mri_repair_set_know(mri_repair_set *s, bool from, mr_error *err)
{
    uint32_t strange = 0, there = 0;
    if (!s->list_there || s->alone || s->count == 0 || !s->file[0].listed) return MR_OK;
    facts *of = calloc(s->count, sizeof *of);
    bool *own = calloc(s->count, sizeof *own);
    int rc = of && own ? MR_OK : no_memory(err);
    for (uint32_t k = 0; !rc && k < s->count; k++)
        if (s->file[k].there) of[k] = facts_of(s->file[k].path);
    if (!rc) rc = sort_out(s, of, own, err);
    free(of);
    free(own);
    for (uint32_t k = 0; k < s->count; k++) {
        strange += s->file[k].strange;
        there += s->file[k].there;
    }
    if (rc || strange == 0 || there > 0 || from) return rc;
    mr_error_set(
        err, MR_EFORMAT,
        "none of the files is one that the list knows, so the list is of another set: put the list of "
        "these files there, or remove it, and 'millrace repair' makes it again");
    return mri_error_place(err, MR_EFORMAT, s->list, MR_NOWHERE, MR_NOWHERE);
}

/* Has --from what is missing in this file? */
static bool gives_more(const mri_repair *r, const mri_repair_file *f)
{
    char path[2 * MRI_MOST_PATH];
    mr_mrec *m;
    if (r->cfg->copy) {
        snprintf(path, sizeof path, "%s/%s", r->cfg->copy, mri_file_name(f->path));
        return access(path, F_OK) == 0;
    }
    if (!r->again || mr_mrec_open(&m, f->path, 0, NULL) != MR_OK) return false;
    const bool so = mri_repair_again_is(r->again, mr_mrec_info_of(m)->provenance);
    mr_mrec_close(m);
    return so;
}

void mri_repair_set_replace_rests(const mri_repair *r, mri_repair_set *s)
{
    for (uint32_t k = 0; k < s->count; k++) {
        mri_repair_file *f = &s->file[k];
        if (!f->rest || !gives_more(r, f)) continue;
        f->rest = f->there = false;
        f->strange = true;
    }
}

int mri_repair_set_same_fields(const mri_repair_set *s, mr_error *err)
{
    mr_mrec *first = NULL;
    int rc = MR_OK;
    if (!s->list || s->alone) return MR_OK;
    for (uint32_t k = 0; !rc && k < s->count; k++) {
        mr_mrec *m;
        if (!s->file[k].there || mr_mrec_open(&m, mri_repair_content(&s->file[k]), 0, NULL) != MR_OK)
            continue;
        if (!first) {
            first = m;
            continue;
        }
        mr_error why = MR_ERROR_INIT;
        rc = mri_shard_check_meta(first, m, &why);
        if (rc)
            mri_error_place(err,
                            mr_error_set(err, MR_EFORMAT,
                                         "%s: the files are of different sets, and no list says which are of "
                                         "this one: move those of the other set away; nothing was written",
                                         why.text),
                            mri_repair_content(&s->file[k]), MR_NOWHERE, MR_NOWHERE);
        mr_mrec_close(m);
    }
    if (first) mr_mrec_close(first);
    return rc;
}
