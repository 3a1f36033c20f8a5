/* formats/source/withdrawn.c: see withdrawn.h.
 *
 * Shared files are looked up in the list of their folder, which gives each a range of entries. An entry's
 * number is tried first; only where one does not fit all samples are searched. Samples that are files of
 * their own are all looked up by their names. A sample of a shared file that is not where its entry says is
 * searched in the files of the folder (withdrawn_moved.h). A link is looked up twice: by its own name, and as
 * the file that it leads to, whose folder has a list of its own. */
#include "formats/source/withdrawn.h"

#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <sys/stat.h>
#include <unistd.h>
#include <xxhash.h>

#include "base/abi.h"
#include "base/util.h"
#include "formats/source/choice.h"
#include "formats/source/value.h"
#include "formats/source/withdrawn_moved.h"
#include "formats/source/withdrawn_state.h"

typedef struct range { /* entries of one shared file */
    uint32_t list;
    uint64_t first, end;
} range;

typedef struct loading {
    mr_source *src;
    mri_withdrawn *w;
    range *range; /* of each shared file two: of its name, and of the file that it leads to as a link; list
                     UINT32_MAX: none */
    bool any, search; /* some list has entries; some entry's number does not fit */
    uint32_t last;    /* list of the last sample's folder */
    char folder[MRI_WITHDRAWN_PATH];
    uint64_t elsewhere; /* entries of these files that are of no sample here */
    uint64_t lost;      /* entries whose samples are gone */
    mri_stray *stray;
    uint64_t stray_count, stray_cap;
} loading;

void mri_withdrawn_free(mri_withdrawn *w)
{
    if (!w) return;
    for (uint32_t k = 0; w->list && k < w->folders.count; k++) mri_withdrawn_list_fini(&w->list[k]);
    mri_names_fini(&w->folders);
    free(w->list);
    free(w->found);
    free(w->again);
    free(w);
}

static int no_memory(mr_error *err)
{
    return mr_error_set(err, MR_ENOMEM, "no memory for withdrawn samples");
}

/* ---- lists ---- */
static int list_of(loading *l, const char *path, uint32_t *out, mr_error *err)
{
    mri_withdrawn *w = l->w;
    const size_t n = mri_withdrawn_folder_bytes(path);
    char at[MRI_WITHDRAWN_PATH + sizeof MRI_WITHDRAWN_NAME];
    bool is_new;
    if (w->folders.count && strlen(l->folder) == n && memcmp(l->folder, path, n) == 0) {
        *out = l->last;
        return MR_OK;
    }
    if (mri_names_add(&w->folders, path, n, out, &is_new) != MR_OK) return no_memory(err);
    memcpy(l->folder, path, n);
    l->folder[n] = '\0';
    l->last = *out;
    if (!is_new) return MR_OK;
    if (*out >= w->list_cap) {
        const uint32_t cap = w->list_cap ? 2 * w->list_cap : 4;
        mri_withdrawn_list *more = realloc(w->list, cap * sizeof *more);
        if (!more) {
            w->folders.count--; /* it has no list that could be freed */
            return no_memory(err);
        }
        w->list = more;
        w->list_cap = cap;
    }
    snprintf(at, sizeof at, "%s%s", l->folder, MRI_WITHDRAWN_NAME);
    const int rc = mri_withdrawn_list_read(&w->list[*out], at, err);
    l->any = l->any || w->list[*out].count;
    return rc;
}

/* The file that this link leads to. False: it is no link. */
static bool led_to(const char *path, char out[MRI_WITHDRAWN_PATH], int *rc, mr_error *err)
{
    struct stat st;
    if (lstat(path, &st) != 0 || !S_ISLNK(st.st_mode)) return false;
    errno = 0;
    char *real = realpath(path, NULL);
    if (!real && errno == ENOMEM) *rc = no_memory(err);
    const bool fits = real && strlen(real) < MRI_WITHDRAWN_PATH;
    if (fits) memcpy(out, real, strlen(real) + 1);
    free(real);
    return fits;
}

static int read_list(loading *l, const char *path, range *r, mr_error *err)
{
    const int rc = list_of(l, path, &r->list, err);
    if (rc) return rc;
    const mri_withdrawn_list *list = &l->w->list[r->list];
    r->first = mri_withdrawn_of_file(list, path + mri_withdrawn_folder_bytes(path), &r->end);
    for (uint64_t k = r->first; k < r->end; k++) list->entry[k].ours = true;
    return MR_OK;
}

static int read_lists(loading *l, mr_error *err)
{
    const uint32_t files = l->src->info.file_count;
    char real[MRI_WITHDRAWN_PATH];
    int rc = MR_OK;
    l->range = calloc(2 * (size_t)files + 1, sizeof *l->range);
    if (!l->range) return no_memory(err);
    for (size_t k = 0; k < 2 * (size_t)files; k++) l->range[k].list = UINT32_MAX;
    for (uint32_t f = 0; !rc && f < files; f++) {
        mr_source_file file = {0};
        if (!l->src->ops->file_at || l->src->ops->file_at(l->src, f, &file) != MR_OK || !file.path) continue;
        rc = read_list(l, file.path, &l->range[2 * (size_t)f], err);
        if (!rc && led_to(file.path, real, &rc, err))
            rc = read_list(l, real, &l->range[2 * (size_t)f + 1], err);
    }
    return rc;
}

/* ---- samples ---- */
static int add(loading *l, uint64_t number, uint32_t list, mri_withdrawn_entry *entry, mr_error *err)
{
    mri_withdrawn *w = l->w;
    if (w->count == w->cap) {
        const uint64_t cap = w->cap ? 2 * w->cap : 64;
        mri_withdrawn_found *more = realloc(w->found, (size_t)cap * sizeof *more);
        if (!more) return no_memory(err);
        w->found = more;
        w->cap = cap;
    }
    entry->found = entry->ours = true;
    w->found[w->count++] = (mri_withdrawn_found){number, entry, list};
    return MR_OK;
}

/* The samples that entries number themselves. */
static int take_hints(loading *l, mr_error *err)
{
    int rc = MR_OK;
    for (size_t at_range = 0; !rc && at_range < 2 * (size_t)l->src->info.file_count; at_range++) {
        const range *r = &l->range[at_range];
        for (uint64_t k = r->first; !rc && k < r->end; k++) {
            mri_withdrawn_entry *e = &l->w->list[r->list].entry[k];
            mr_extent at;
            const bool fits = e->number < l->src->info.count &&
                              l->src->ops->extent(l->src, e->number, &at, NULL) == MR_OK &&
                              at.file == at_range / 2 && at.offset == e->offset && at.bytes == e->bytes;
            if (fits) rc = add(l, e->number, r->list, e, err);
            else l->search = true;
        }
    }
    return rc;
}

static int look_up_shared(loading *l, uint64_t number, const mr_extent *at, const range *r, mr_error *err)
{
    mri_withdrawn_entry *const entry = r->first < r->end ? l->w->list[r->list].entry : NULL;
    uint64_t low = r->first, high = r->end;
    while (low < high) {
        const uint64_t mid = low + (high - low) / 2;
        if (entry[mid].offset < at->offset ||
            (entry[mid].offset == at->offset && entry[mid].bytes < at->bytes))
            low = mid + 1;
        else high = mid;
    }
    if (low >= r->end || entry[low].offset != at->offset || entry[low].bytes != at->bytes) return MR_OK;
    return entry[low].found && entry[low].number == number ? MR_OK
                                                           : add(l, number, r->list, &entry[low], err);
}

static int look_up_path(loading *l, uint64_t number, const char *path, mr_error *err)
{
    uint32_t at;
    uint64_t end;
    const int rc = list_of(l, path, &at, err);
    if (rc || l->w->list[at].count == 0) return rc;
    const mri_withdrawn_list *list = &l->w->list[at];
    const uint64_t k = mri_withdrawn_of_file(list, path + mri_withdrawn_folder_bytes(path), &end);
    return k < end ? add(l, number, at, &list->entry[k], err) : MR_OK;
}

static int look_up_file(loading *l, uint64_t number, mr_error *err)
{
    char path[MRI_WITHDRAWN_PATH] = "", real[MRI_WITHDRAWN_PATH];
    l->src->ops->sample_path(l->src, number, path, sizeof path);
    int rc = look_up_path(l, number, path, err);
    if (!rc && !l->src->no_links && led_to(path, real, &rc, err)) rc = look_up_path(l, number, real, err);
    return rc;
}

static int search(loading *l, mr_error *err)
{
    const bool files = mri_source_has_sample_files(l->src);
    int rc = MR_OK;
    for (uint64_t k = 0; (files || l->search) && !rc && k < l->src->info.count; k++) {
        mr_extent at;
        if (mri_stop_asked()) return mri_stopped(err);
        if (l->src->ops->extent(l->src, k, &at, NULL) != MR_OK) continue;
        if (at.file == MR_FILE_OF_SAMPLE) rc = look_up_file(l, k, err);
        else if (l->search) {
            rc = look_up_shared(l, k, &at, &l->range[2 * (size_t)at.file], err);
            if (!rc) rc = look_up_shared(l, k, &at, &l->range[2 * (size_t)at.file + 1], err);
        }
    }
    return rc;
}

static int by_number(const void *a, const void *b)
{
    const mri_withdrawn_found *x = a, *y = b;
    return x->number < y->number ? -1 : x->number > y->number;
}

static int by_number_and_list(const void *a, const void *b)
{
    const mri_withdrawn_found *x = a, *y = b;
    const int order = by_number(a, b);
    if (order || x->list != y->list) return order ? order : x->list < y->list ? -1 : 1;
    return mri_withdrawn_order(x->entry, y->entry);
}

/* Without those at whose place another sample lies. */
static void sort(mri_withdrawn *w)
{
    uint64_t n = 0;
    for (uint64_t k = 0; k < w->count; k++)
        if (w->found[k].entry->found) w->found[n++] = w->found[k];
    w->count = n;
    if (n) qsort(w->found, n, sizeof *w->found, by_number_and_list);
}

/* Each number once; the further entries of a sample are kept for those who restore it. */
static int set_apart(mri_withdrawn *w, mr_error *err)
{
    uint64_t n = 0, twice = 0;
    for (uint64_t k = 1; k < w->count; k++) twice += w->found[k - 1].number == w->found[k].number;
    if (twice == 0) return MR_OK;
    w->again = malloc((size_t)twice * sizeof *w->again);
    if (!w->again) return no_memory(err);
    for (uint64_t k = 0; k < w->count; k++) {
        if (n == 0 || w->found[n - 1].number != w->found[k].number) w->found[n++] = w->found[k];
        else if (w->found[n - 1].entry != w->found[k].entry) w->again[w->again_count++] = w->found[k];
    }
    w->count = n;
    return MR_OK;
}

/* ---- are the samples unchanged? ---- */
uint64_t mri_withdrawn_stamp(const char *path)
{
    struct stat st;
    if (stat(path, &st) != 0) return 0;
    uint64_t stamp = mri_mix64((uint64_t)st.st_mtim.tv_sec * 1000000000u + (uint64_t)st.st_mtim.tv_nsec);
    stamp = mri_mix64(stamp ^ ((uint64_t)st.st_ctim.tv_sec * 1000000000u + (uint64_t)st.st_ctim.tv_nsec));
    stamp = mri_mix64(stamp ^ (uint64_t)st.st_size);
    return stamp ? stamp : 1;
}

int mri_withdrawn_read(const mr_source *src, const char *path, const mr_extent *at, void *buffer,
                       mr_error *err)
{
    const bool own = at->file == MR_FILE_OF_SAMPLE;
    int fd = -1, rc = MR_OK;
    if (own && (fd = open(path, O_RDONLY | O_CLOEXEC | O_NONBLOCK)) < 0)
        return mri_error_place(err, mri_error_denied(err, mr_error_sys(err, errno, "cannot open")), path,
                               MR_NOWHERE, MR_NOWHERE);
    if (!own) rc = mri_source_file_acquire(src, at->file, true, &fd, err);
    if (!rc) rc = mri_pread_all(fd, buffer, (size_t)at->bytes, at->offset, path, err);
    if (own) close(fd);
    else if (fd >= 0) mr_source_file_release(src, at->file);
    return rc;
}

int mri_withdrawn_hash(const mr_source *src, const char *path, const mr_extent *at, uint64_t *hash,
                       mr_error *err)
{
    if (at->bytes > MRI_MAX_SAMPLE_BYTES)
        return mr_error_set(err, MR_ELIMIT, "a sample of %" PRIu64 " bytes", at->bytes);
    void *buffer = malloc((size_t)at->bytes + 1);
    if (!buffer) return no_memory(err);
    const int rc = mri_withdrawn_read(src, path, at, buffer, err);
    if (!rc) *hash = XXH3_64bits(buffer, (size_t)at->bytes);
    free(buffer);
    return rc;
}

/* The list names a sample that is not the one that was withdrawn: kept in w->why, the first of them. number:
 * of a sample that is a file of its own; else MR_NOWHERE. */
static void differs(mri_withdrawn *w, const mri_withdrawn_list *list, const mri_withdrawn_entry *e,
                    uint64_t number, const char *how)
{
    char sample[300], shown[400], alone[120] = "";
    if (w->why.code) return;
    const bool named = e->name[0] && strcmp(e->name, e->file) != 0;
    snprintf(sample, sizeof sample, "%s%s%s", e->file, named ? ", " : "", named ? e->name : "");
    mr_text_shown(sample, shown, sizeof shown);
    if (number != MR_NOWHERE)
        snprintf(alone, sizeof alone,
                 "If the file was corrected, 'millrace restore SET --samples %" PRIu64 "' takes it back. ",
                 number);
    mr_error_set(&w->why, MR_EFORMAT,
                 "the list of withdrawn samples does not belong to these data: %s (offset %" PRIu64
                 ", %" PRIu64 " bytes): %s. %s'millrace restore SET --all' removes the entries of the set "
                 "from the list; then withdraw samples again",
                 shown, e->offset, e->bytes, how, alone);
    mri_error_place(&w->why, MR_EFORMAT, list->path, MR_NOWHERE, MR_NOWHERE);
}

/* Is this the sample that was withdrawn? */
static int is_same(const mr_source *src, const mri_withdrawn_entry *e, const char *path, uint64_t stamp,
                   const mr_extent *at, bool *same, bool *readable, mr_error *err)
{
    mr_error what = MR_ERROR_INIT;
    uint64_t hash = 0;
    *same = *readable = true;
    if (stamp && stamp == e->stamp) return MR_OK;
    const int rc = mri_withdrawn_hash(src, path, at, &hash, &what);
    *readable = rc == MR_OK;
    *same = *readable && hash == e->hash;
    if (!rc || mr_error_of_sample(rc, &what)) return MR_OK;
    if (err) *err = what;
    return rc;
}

static int add_stray(loading *l, const mri_stray *s, mr_error *err)
{
    if (l->stray_count == l->stray_cap) {
        const uint64_t cap = l->stray_cap ? 2 * l->stray_cap : 16;
        mri_stray *more = realloc(l->stray, (size_t)cap * sizeof *more);
        if (!more) return no_memory(err);
        l->stray = more;
        l->stray_cap = cap;
    }
    l->stray[l->stray_count++] = *s;
    return MR_OK;
}

static int compare_shared(loading *l, mr_error *err)
{
    int rc = MR_OK;
    for (size_t at = 0; !rc && at < 2 * (size_t)l->src->info.file_count; at++) {
        const uint32_t f = (uint32_t)(at / 2);
        const range *r = &l->range[at];
        mr_source_file file;
        if (r->first == r->end || l->src->ops->file_at(l->src, f, &file) != MR_OK) continue;
        const uint64_t stamp = mri_withdrawn_stamp(file.path);
        for (uint64_t k = r->first; !rc && k < r->end; k++) {
            mri_withdrawn_entry *e = &l->w->list[r->list].entry[k];
            const mr_extent extent = {.file = f, .offset = e->offset, .bytes = e->bytes};
            bool same, readable;
            rc = is_same(l->src, e, file.path, stamp, &extent, &same, &readable, err);
            if (!rc && !same) {
                rc = add_stray(l, &(mri_stray){.entry = e, .list = r->list, .placed = e->found}, err);
                e->found = false;
            } else l->elsewhere += !rc && !e->found;
        }
    }
    return rc;
}

/* ---- samples that moved ---- */
static int add_missing(loading *l, mr_error *err)
{
    uint32_t file = 0;
    int rc = MR_OK;
    for (uint32_t k = 0; !rc && k < l->w->folders.count; k++) {
        const mri_withdrawn_list *list = &l->w->list[k];
        for (uint64_t e = 0; !rc && e < list->count; e++) {
            const mri_stray s = {.entry = &list->entry[e], .list = k, .file = file, .missing = true};
            if (mri_withdrawn_is_missing(s.entry)) rc = add_stray(l, &s, err);
            file += e + 1 < list->count && strcmp(list->entry[e].file, list->entry[e + 1].file) != 0;
        }
        file++;
    }
    return rc;
}

/* Of a repaired set, whose other withdrawn samples are found, one may be lost. Where another sample lies in
 * the place of one, or none is found, the list is of other data. */
static void judge_strays(loading *l)
{
    for (uint64_t k = 0; k < l->stray_count; k++) {
        const mri_stray *s = &l->stray[k];
        const mri_withdrawn_list *list = &l->w->list[s->list];
        if (s->missing || s->state == MRI_STRAY_MOVED) continue;
        if (s->state == MRI_STRAY_UNCLEAR)
            differs(l->w, list, s->entry, MR_NOWHERE,
                    "the file was changed since it was withdrawn, and other samples have the same bytes");
        else if (s->state == MRI_STRAY_UNASKED)
            differs(l->w, list, s->entry, MR_NOWHERE,
                    "the file was changed since it was withdrawn, and to find the sample more than 10,000 "
                    "samples or 1 GiB would have to be read");
        else if (s->placed || l->w->count == 0)
            differs(l->w, list, s->entry, MR_NOWHERE,
                    "its bytes changed or were removed since it was withdrawn");
        else l->lost++;
    }
}

/* Samples of missing files that are taken, one line for each list. */
static void tell_taken(loading *l)
{
    for (uint32_t k = 0; k < l->w->folders.count; k++) {
        const mri_withdrawn_list *list = &l->w->list[k];
        const char *file = "", *last = "";
        uint64_t samples = 0, files = 0;
        for (uint64_t e = 0; e < list->count; e++) {
            if (!list->entry[e].gone || !list->entry[e].found) continue;
            if (samples++ == 0) file = list->entry[e].file;
            files += strcmp(last, list->entry[e].file) != 0;
            last = list->entry[e].file;
        }
        if (files == 1)
            mri_source_tell(l->src,
                            "%" PRIu64 " withdrawn sample%s of %.200s, which is gone, %s taken as these",
                            samples, samples == 1 ? "" : "s", file, samples == 1 ? "is" : "are");
        else if (files)
            mri_source_tell(l->src,
                            "%" PRIu64 " withdrawn samples of %.200s and %" PRIu64
                            " other files, which are gone, are taken as these",
                            samples, file, files - 1);
    }
}

static int follow_strays(loading *l, mr_error *err)
{
    const size_t files = l->src->info.file_count;
    int rc = files ? add_missing(l, err) : MR_OK;
    if (rc || l->stray_count == 0) return rc;
    uint32_t *list_of = malloc(2 * files * sizeof *list_of);
    if (!list_of) return no_memory(err);
    for (size_t k = 0; k < 2 * files; k++) list_of[k] = l->range[k].list;
    sort(l->w);
    rc = mri_withdrawn_follow(l->src, l->w, list_of, l->stray, &l->stray_count, err);
    free(list_of);
    for (uint64_t k = 0; !rc && k < l->stray_count; k++)
        if (l->stray[k].state == MRI_STRAY_MOVED)
            rc = add(l, l->stray[k].number, l->stray[k].list, l->stray[k].entry, err);
    if (!rc) judge_strays(l);
    if (!rc) tell_taken(l);
    return rc;
}

static int compare_files(loading *l, mr_error *err)
{
    int rc = MR_OK;
    for (uint64_t k = 0; !rc && k < l->w->count && !l->w->why.code; k++) {
        const mri_withdrawn_found *f = &l->w->found[k];
        char path[MRI_WITHDRAWN_PATH];
        mr_extent at;
        if (!mri_withdrawn_place(l->src, f->number, &at, path) || at.file != MR_FILE_OF_SAMPLE) continue;
        if (at.bytes != f->entry->bytes || f->entry->offset != at.offset)
            differs(l->w, &l->w->list[f->list], f->entry, f->number,
                    "its size changed since it was withdrawn");
        else {
            bool same, readable;
            rc = is_same(l->src, f->entry, path, mri_withdrawn_stamp(path), &at, &same, &readable, err);
            if (!rc && !same)
                differs(l->w, &l->w->list[f->list], f->entry, f->number,
                        readable ? "its bytes changed since it was withdrawn"
                                 : "its bytes cannot be read any more");
        }
    }
    return rc;
}

/* ---- missing files ---- */
/* Other data of the folder, or a file that was renamed or removed. */
static bool is_gone(const mri_withdrawn_list *l, const char *file)
{
    char path[MRI_WITHDRAWN_PATH + 256];
    struct stat st;
    snprintf(path, sizeof path, "%.*s%s", (int)mri_withdrawn_folder_bytes(l->path), l->path, file);
    return lstat(path, &st) != 0 && errno == ENOENT;
}

/* Each file is looked up once. */
static void find_gone(const mri_withdrawn *w)
{
    for (uint32_t k = 0; k < w->folders.count; k++) {
        const mri_withdrawn_list *list = &w->list[k];
        for (uint64_t e = 0, end; e < list->count; e = end) {
            bool ours = true;
            for (end = e; end < list->count && strcmp(list->entry[e].file, list->entry[end].file) == 0; end++)
                ours = ours && list->entry[end].ours;
            const bool gone = !ours && is_gone(list, list->entry[e].file);
            for (uint64_t at = e; at < end; at++) list->entry[at].gone = gone && !list->entry[at].ours;
        }
    }
}

bool mri_withdrawn_is_missing(const mri_withdrawn_entry *e) { return e->gone && !e->found; }

/* ---- lines for the user ---- */
static void tell_missing(loading *l)
{
    for (uint32_t k = 0; k < l->w->folders.count; k++) {
        const mri_withdrawn_list *list = &l->w->list[k];
        uint64_t missing = 0, first = 0;
        for (uint64_t e = 0; e < list->count; e++)
            if (mri_withdrawn_is_missing(&list->entry[e]) && missing++ == 0) first = e;
        if (missing)
            mri_source_tell(l->src,
                            "%.300s lists %" PRIu64
                            " withdrawn samples of files that are not there (%.200s): if a file was renamed, "
                            "withdraw its samples again",
                            list->path, missing, list->entry[first].file);
    }
}

static void tell(loading *l)
{
    tell_missing(l);
    if (l->lost && !l->w->why.code)
        mri_source_tell(l->src,
                        "%" PRIu64
                        " withdrawn sample%s in these files no more (lost before a repair, or changed)",
                        l->lost, l->lost == 1 ? " is" : "s are");
    if (l->w->why.code) mri_source_tell(l->src, "%s: %s", l->w->why.file, l->w->why.text);
    else if (l->elsewhere)
        mri_source_tell(l->src,
                        "%" PRIu64
                        " withdrawn sample%s of these files %s not among the samples taken here (another "
                        "split, or other keys)",
                        l->elsewhere, l->elsewhere == 1 ? "" : "s", l->elsewhere == 1 ? "is" : "are");
}

/* ---- load ---- */
static int load(loading *l, mr_error *err)
{
    int rc = read_lists(l, err);
    if (!rc && l->any) rc = take_hints(l, err);
    if (!rc) rc = search(l, err);
    if (rc || !l->any) return rc;
    find_gone(l->w);
    rc = compare_shared(l, err);
    if (!rc) rc = follow_strays(l, err);
    sort(l->w);
    if (!rc) rc = set_apart(l->w, err);
    if (!rc) rc = compare_files(l, err);
    if (!rc) tell(l);
    return rc;
}

int mri_withdrawn_load(mr_source *src, const mr_source_config *cfg, mr_error *err)
{
    if (src->view || mri_source_is_made(src) || src->info.mix_count || src->info.count == 0) return MR_OK;
    loading *l = calloc(1, sizeof *l);
    mri_withdrawn *w = calloc(1, sizeof *w);
    int rc = l && w ? MR_OK : no_memory(err);
    if (!rc) {
        *l = (loading){.src = src, .w = w};
        rc = load(l, err);
    }
    if (!rc && w->why.code && cfg->withdrawn == MR_WITHDRAWN_LEAVE_OUT) {
        rc = w->why.code;
        if (err) *err = w->why;
    }
    const bool keep = !rc && l->any;
    if (l) {
        free(l->range);
        free(l->stray);
    }
    free(l);
    if (!keep) mri_withdrawn_free(w);
    else {
        mri_names_seal(&w->folders);
        src->withdrawn = w;
        src->withdrawn_count = w->count;
    }
    return rc;
}

/* ---- left out ---- */
static bool is_listed(const mri_withdrawn *w, uint64_t number)
{
    const mri_withdrawn_found key = {.number = number};
    return bsearch(&key, w->found, w->count, sizeof *w->found, by_number) != NULL;
}

int mri_withdrawn_leave_out(mr_source *src, mr_error *err)
{
    const mri_withdrawn *w = src->withdrawn;
    mri_choice *c = &src->choice;
    const uint64_t before = src->info.count;
    uint64_t n = 0, hash = src->info.fingerprint;
    if (!w || w->count == 0) return MR_OK;
    if (c->number) {
        for (uint64_t k = 0; k < before; k++) {
            if (!is_listed(w, c->number[k])) c->number[n++] = c->number[k];
            else hash = mri_mix64(hash ^ mri_mix64(c->number[k] + 1));
        }
    } else {
        c->gone = malloc((size_t)w->count * sizeof *c->gone);
        if (!c->gone) return no_memory(err);
        for (uint64_t k = 0; k < w->count; k++) {
            c->gone[c->gone_count++] = w->found[k].number;
            hash = mri_mix64(hash ^ mri_mix64(w->found[k].number + 1));
        }
        n = before - c->gone_count;
        src->info.memory_bytes += w->count * sizeof *c->gone;
    }
    if (n == before) return MR_OK;
    src->info.count = n;
    src->info.fingerprint = hash;
    if (n == 0) {
        mr_error_set(err, MR_EINVAL,
                     "all %" PRIu64 " samples are withdrawn: 'millrace restore' takes them back", before);
        return mri_error_place(err, MR_EINVAL, src->path, MR_NOWHERE, MR_NOWHERE);
    }
    mri_choice_measure(src);
    mri_source_tell(src, "%" PRIu64 " of %" PRIu64 " samples are withdrawn, and not taken", before - n,
                    before);
    return MR_OK;
}

int mri_withdrawn_check(const mr_source *src, mr_error *err)
{
    const mri_withdrawn *w = src->withdrawn;
    int rc = w && w->why.code ? w->why.code : MR_OK;
    if (rc && err) *err = w->why;
    for (uint64_t k = 0; !rc && w && k < w->count; k++) {
        const mri_withdrawn_entry *e = w->found[k].entry;
        char path[MRI_WITHDRAWN_PATH];
        mr_extent at;
        uint64_t hash = 0;
        if (mri_stop_asked()) return mri_stopped(err);
        if (!mri_withdrawn_place(src, w->found[k].number, &at, path)) continue;
        rc = mri_withdrawn_hash(src, path, &at, &hash, err);
        if (!rc && hash != e->hash)
            rc = mr_error_set(
                err, MR_ECHECKSUM,
                "a withdrawn sample is not the one that was withdrawn: expected bytes with the hash "
                "%016" PRIx64 ", found %016" PRIx64 "; restore it and look at it again",
                e->hash, hash);
        if (rc) mri_error_place(err, rc, path, at.offset, MR_NOWHERE);
    }
    return rc;
}

/* ---- public ---- */
uint64_t mr_source_number(const mr_source *src, uint64_t sample)
{
    if (!MRI_IS_OWN(src) || sample >= src->info.count) return UINT64_MAX;
    return mri_choice_number(&src->choice, sample);
}

uint64_t mr_source_withdrawn_count(const mr_source *src)
{
    return MRI_IS_OWN(src) ? src->withdrawn_count : 0;
}

int mr_source_withdrawn_at_sized(const mr_source *src, uint64_t at, mr_withdrawn_sample *out)
{
    MRI_OWN(NULL, src);
    MRI_GIVEN(NULL, out);
    const int rc = mri_result_check(out, NULL);
    if (rc) return rc;
    if (!src->withdrawn || at >= src->withdrawn->count) return MR_EINVAL;
    const mri_withdrawn_found *f = &src->withdrawn->found[at];
    const mr_withdrawn_sample found = {.number = f->number,
                                       .name = f->entry->name,
                                       .reason = f->entry->reason,
                                       .list = src->withdrawn->list[f->list].path};
    mri_result_give(out, &found, sizeof found);
    return MR_OK;
}
