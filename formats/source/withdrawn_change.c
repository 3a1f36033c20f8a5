/* formats/source/withdrawn_change.c: mr_source_withdraw() and mr_source_restore(): change the lists of
 * withdrawn samples.
 *
 *   samples ─► keys (path, offset, bytes, hash), sorted ─► one list for each folder: locked
 *           ─► read anew, merged ─► written aside, synced, renamed
 *
 * All lists are locked, as outputs are, before the first is written; what another process wrote since this
 * source was opened stays. */
#include <errno.h>
#include <inttypes.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/abi.h"
#include "base/util.h"
#include "formats/source/choice.h"
#include "formats/source/sample_name.h"
#include "formats/source/withdrawn_state.h"

typedef struct key { /* of a sample, by its own path */
    char *path, *name;
    mr_extent at;
    uint64_t number, hash, stamp;
    bool again; /* a further entry of a sample, in another list */
} key;

typedef struct folder_list {
    char *path;
    uint64_t first, end; /* keys */
    mri_output *out;
    mri_withdrawn_list now;
    mri_withdrawn_entry *next; /* the entries to write */
    uint64_t count, changed;
    uint64_t again; /* of changed: entries of samples that another list has, too */
} folder_list;

typedef struct change {
    const mr_source *src;
    const char *reason;
    bool restores, all;
    key *key;
    uint64_t count;
    folder_list *list;
    uint32_t list_count;
} change;

static int no_memory(mr_error *err)
{
    return mr_error_set(err, MR_ENOMEM, "no memory to change a list of withdrawn samples");
}

/* ---- keys ---- */
static int same_folder(const char *a, const char *b)
{
    const size_t n = mri_withdrawn_folder_bytes(a), m = mri_withdrawn_folder_bytes(b);
    const int order = memcmp(a, b, n < m ? n : m);
    return order ? order : (n > m) - (n < m);
}

/* By folder, then as the entries of a list. */
static int by_key(const void *a, const void *b)
{
    const key *x = a, *y = b;
    int order = same_folder(x->path, y->path);
    if (!order)
        order = strcmp(x->path + mri_withdrawn_folder_bytes(x->path),
                       y->path + mri_withdrawn_folder_bytes(y->path));
    if (order) return order;
    if (x->at.offset != y->at.offset) return x->at.offset < y->at.offset ? -1 : 1;
    return x->at.bytes < y->at.bytes ? -1 : x->at.bytes > y->at.bytes;
}

static const mri_withdrawn_found *find_listed(const mri_withdrawn *w, uint64_t number)
{
    for (uint64_t low = 0, high = w ? w->count : 0; low < high;) {
        const uint64_t mid = low + (high - low) / 2;
        if (w->found[mid].number == number) return &w->found[mid];
        if (w->found[mid].number < number) low = mid + 1;
        else high = mid;
    }
    return NULL;
}

/* Of a sample that is restored: as its list has it, which may be that of the folder to which a link leads,
 * and have the size of a file that was corrected since. */
static int listed_key(const mri_withdrawn *w, const mri_withdrawn_found *found, key *k, mr_error *err)
{
    const char *list = w->list[found->list].path;
    const int n = (int)mri_withdrawn_folder_bytes(list);
    k->at.offset = found->entry->offset;
    k->at.bytes = found->entry->bytes;
    if (asprintf(&k->path, "%.*s%s", n, list, found->entry->file) >= 0) return MR_OK;
    k->path = NULL;
    return no_memory(err);
}

static uint64_t first_again(const mri_withdrawn *w, uint64_t number)
{
    uint64_t low = 0, high = w->again_count;
    while (low < high) {
        const uint64_t mid = low + (high - low) / 2;
        if (w->again[mid].number < number) low = mid + 1;
        else high = mid;
    }
    return low;
}

/* Has the list of this folder the sample by an entry with another place than it has now? */
static bool is_elsewhere(const mri_withdrawn *w, const mri_withdrawn_found *found, const key *k,
                         const char *path)
{
    const mri_withdrawn_entry *e = found->entry;
    return same_folder(w->list[found->list].path, path) == 0 &&
           (e->offset != k->at.offset || e->bytes != k->at.bytes ||
            strcmp(e->file, path + mri_withdrawn_folder_bytes(path)) != 0);
}

/* A sample that moved keeps its entry: a second one would leave the first without a sample. */
static bool has_moved(const mri_withdrawn *w, const key *k, const char *path)
{
    const mri_withdrawn_found *found = find_listed(w, k->number);
    bool moved = found && is_elsewhere(w, found, k, path);
    for (uint64_t at = found ? first_again(w, k->number) : 0;
         found && !moved && at < w->again_count && w->again[at].number == k->number; at++)
        moved = is_elsewhere(w, &w->again[at], k, path);
    return moved;
}

/* Without a path: it needs none, as it is listed. */
static int make_key(const change *c, uint64_t sample, key *k, mr_error *err)
{
    char path[MRI_WITHDRAWN_PATH], name[MRI_NAME_ROOM] = "";
    k->number = mri_choice_number(&c->src->choice, sample);
    const mri_withdrawn_found *found = c->restores ? find_listed(c->src->withdrawn, k->number) : NULL;
    if (found) return listed_key(c->src->withdrawn, found, k, err);
    if (!mri_withdrawn_place(c->src, k->number, &k->at, path)) {
        const int rc = mr_source_extent(c->src, sample, &k->at, err);
        if (rc) return mri_error_place(err, rc, c->src->path, MR_NOWHERE, sample);
        mr_error_set(err, MR_EUNSUPPORTED, "the sample is in no file");
        return mri_error_place(err, MR_EUNSUPPORTED, c->src->path, MR_NOWHERE, sample);
    }
    if (!c->restores && has_moved(c->src->withdrawn, k, path)) return MR_OK;
    int rc = (k->path = strdup(path)) ? MR_OK : no_memory(err);
    if (rc || c->restores) return rc;
    k->stamp = mri_withdrawn_stamp(path); /* before the bytes: a file that changes meanwhile is compared again
                                           */
    rc = mri_withdrawn_hash(c->src, path, &k->at, &k->hash, err);
    if (rc) return mri_error_place(err, rc, path, MR_NOWHERE, sample);
    mr_source_sample_name(c->src, sample, NULL, 0, name, sizeof name);
    return (k->name = strdup(name)) ? MR_OK : no_memory(err);
}

/* Are there more samples with one of these keys than were asked for? */
static int check_unique(const change *c, mr_error *err)
{
    char path[MRI_WITHDRAWN_PATH];
    key k = {.path = path};
    for (uint64_t n = 0; n < c->src->format_count; n++) {
        const key *found = mri_withdrawn_place(c->src, n, &k.at, path)
                               ? bsearch(&k, c->key, c->count, sizeof *c->key, by_key)
                               : NULL;
        if (mri_stop_asked()) return mri_stopped(err);
        if (!found || found->number == n) continue;
        mr_error_set(
            err, MR_EINVAL,
            "the samples %" PRIu64 " and %" PRIu64
            " are the same bytes of the same file, and cannot be withdrawn one without the other; remove "
            "the row or the file",
            found->number, n);
        return mri_error_place(err, MR_EINVAL, path, MR_NOWHERE, MR_NOWHERE);
    }
    return MR_OK;
}

/* Of samples that are restored: their further entries. */
static int add_again(change *c, mr_error *err)
{
    const mri_withdrawn *w = c->src->withdrawn;
    const uint64_t asked = c->count;
    int rc = MR_OK;
    for (uint64_t s = 0; !rc && w && s < asked; s++) {
        const uint64_t number = c->key[s].number;
        for (uint64_t k = first_again(w, number); !rc && k < w->again_count && w->again[k].number == number;
             k++) {
            key *more = &c->key[c->count++];
            *more = (key){.number = number, .again = true};
            rc = listed_key(w, &w->again[k], more, err);
        }
    }
    return rc;
}

static int make_keys(change *c, const uint64_t *samples, uint64_t count, mr_error *err)
{
    const mri_withdrawn *w = c->src->withdrawn;
    uint64_t listed = w ? w->count : 0;
    int rc = MR_OK;
    c->key = calloc((size_t)(count + (w && c->restores ? w->again_count : 0)) + 1, sizeof *c->key);
    if (!c->key) return no_memory(err);
    for (uint64_t k = 0; !rc && k < count; k++) {
        if (mri_stop_asked()) return mri_stopped(err);
        rc = make_key(c, samples[k], &c->key[c->count++], err);
        if (!rc) listed += !find_listed(w, c->key[c->count - 1].number);
        if (!rc && !c->key[c->count - 1].path) c->count--;
    }
    if (!rc && c->restores) rc = add_again(c, err);
    if (rc) return rc;
    qsort(c->key, c->count, sizeof *c->key, by_key);
    for (uint64_t k = 1; k < c->count; k++)
        if (by_key(&c->key[k - 1], &c->key[k]) == 0) return check_unique(c, err);
    if (!c->restores && listed >= c->src->format_count)
        return mri_error_place(
            err, mr_error_set(err, MR_EINVAL, "no sample would be left of %" PRIu64, c->src->format_count),
            c->src->path, MR_NOWHERE, MR_NOWHERE);
    return c->restores ? MR_OK : check_unique(c, err);
}

/* ---- lists ---- */
static int add_list(change *c, const char *path, uint64_t first, uint64_t end, mr_error *err)
{
    folder_list *more = realloc(c->list, ((size_t)c->list_count + 1) * sizeof *more);
    if (!more) return no_memory(err);
    c->list = more;
    c->list[c->list_count] = (folder_list){.path = strdup(path), .first = first, .end = end};
    return c->list[c->list_count++].path ? MR_OK : no_memory(err);
}

static bool has_list(const change *c, const char *path)
{
    for (uint32_t k = 0; k < c->list_count; k++)
        if (strcmp(c->list[k].path, path) == 0) return true;
    return false;
}

/* A run that was killed after it removed a list left the part file: it goes when all is restored again. */
static int add_remains(change *c, mr_error *err)
{
    char path[MRI_WITHDRAWN_PATH], last[MRI_WITHDRAWN_PATH] = "",
                                   list[MRI_WITHDRAWN_PATH + sizeof MRI_WITHDRAWN_NAME],
                                   part[sizeof list + 8];
    struct stat st;
    mr_extent at;
    int rc = MR_OK;
    for (uint64_t n = 0; !rc && n < c->src->format_count; n++) {
        if (mri_stop_asked()) return mri_stopped(err);
        if (!mri_withdrawn_place(c->src, n, &at, path)) continue;
        path[mri_withdrawn_folder_bytes(path)] = '\0';
        if (n && strcmp(path, last) == 0) continue;
        snprintf(last, sizeof last, "%s", path);
        snprintf(list, sizeof list, "%s%s", path, MRI_WITHDRAWN_NAME);
        snprintf(part, sizeof part, "%s.part", list);
        if (lstat(part, &st) == 0 && !has_list(c, list)) rc = add_list(c, list, 0, 0, err);
    }
    return rc;
}

static int find_lists(change *c, mr_error *err)
{
    const mri_withdrawn *w = c->src->withdrawn;
    char path[MRI_WITHDRAWN_PATH + sizeof MRI_WITHDRAWN_NAME];
    int rc = MR_OK;
    for (uint64_t k = 0, end; !rc && k < c->count; k = end) {
        for (end = k; end < c->count && same_folder(c->key[k].path, c->key[end].path) == 0;) end++;
        snprintf(path, sizeof path, "%.*s%s", (int)mri_withdrawn_folder_bytes(c->key[k].path), c->key[k].path,
                 MRI_WITHDRAWN_NAME);
        rc = add_list(c, path, k, end, err);
    }
    for (uint32_t k = 0; !rc && c->all && w && k < w->folders.count; k++)
        if (w->list[k].count) rc = add_list(c, w->list[k].path, 0, 0, err);
    return rc || !c->all ? rc : add_remains(c, err);
}

static mri_withdrawn_entry entry_of(const change *c, const key *k)
{
    return (mri_withdrawn_entry){.number = k->number,
                                 .offset = k->at.offset,
                                 .bytes = k->at.bytes,
                                 .stamp = k->stamp,
                                 .hash = k->hash,
                                 .file = k->path + mri_withdrawn_folder_bytes(k->path),
                                 .name = k->name,
                                 .reason = c->reason};
}

/* Both are sorted. An entry that is there already keeps its reason. */
static void merge(const change *c, folder_list *l)
{
    uint64_t old = 0, k = l->first;
    while (old < l->now.count || k < l->end) {
        const mri_withdrawn_entry fresh = k < l->end ? entry_of(c, &c->key[k]) : (mri_withdrawn_entry){0};
        const int order = old == l->now.count ? 1
                          : k == l->end       ? -1
                                              : mri_withdrawn_order(&l->now.entry[old], &fresh);
        mri_withdrawn_entry *to = &l->next[l->count++];
        *to = order <= 0 ? l->now.entry[old++] : fresh;
        k += order >= 0;
        l->changed += order > 0;
        if (order == 0) { /* the same sample, looked at just now */
            to->number = fresh.number;
            l->changed += to->hash != fresh.hash;
            to->hash = fresh.hash;
            to->stamp = fresh.stamp;
        }
    }
}

/* Of this list as it was when the source was opened: was the entry of one of its files, or of a file that is
 * not there? */
static bool is_of_source(const change *c, const folder_list *l, const mri_withdrawn_entry *e)
{
    const mri_withdrawn *w = c->src->withdrawn;
    for (uint32_t k = 0; w && k < w->folders.count; k++) {
        const mri_withdrawn_list *list = &w->list[k];
        if (list->count == 0 || strcmp(list->path, l->path) != 0) continue;
        const mri_withdrawn_entry *found =
            bsearch(e, list->entry, list->count, sizeof *list->entry, mri_withdrawn_order);
        return found && (found->ours || mri_withdrawn_is_missing(found));
    }
    return false;
}

static void take_out(const change *c, folder_list *l)
{
    for (uint64_t old = 0, k = l->first; old < l->now.count; old++) {
        const mri_withdrawn_entry *e = &l->now.entry[old];
        bool gone = c->all && is_of_source(c, l, e);
        while (!c->all && k < l->end && !gone) {
            const mri_withdrawn_entry asked = entry_of(c, &c->key[k]);
            const int order = mri_withdrawn_order(&asked, e);
            gone = order == 0;
            if (order > 0) break;
            l->again += gone && c->key[k].again;
            k++;
        }
        if (gone) l->changed++;
        else l->next[l->count++] = *e;
    }
}

/* Lock the list, and read it as it is now. */
static int prepare(const change *c, folder_list *l, mr_error *err)
{
    const mri_output_rules rules = {.force = true, .take_part = true};
    int rc = mri_output_open(&l->out, l->path, &rules, err);
    if (!rc) rc = mri_withdrawn_list_read(&l->now, l->path, err);
    if (!rc && !(l->next = calloc((size_t)(l->now.count + l->end - l->first) + 1, sizeof *l->next)))
        rc = no_memory(err);
    if (rc) return rc;
    if (c->restores) take_out(c, l);
    else merge(c, l);
    return MR_OK;
}

/* No list takes the place of the old one: that goes, and so does the part file. */
static int finish_empty(folder_list *l, mr_error *err)
{
    const mri_output_rules rules = {.force = true};
    int rc = mri_output_remove(l->path, &rules, err);
    if (!rc) rc = mri_output_discard(l->out, err);
    return rc ? rc : mri_sync_folder_of(l->path, err);
}

static int finish(const change *c, folder_list *l, mr_error *err)
{
    if (c->restores && !l->changed) return mri_output_discard(l->out, err);
    if (l->count == 0) return finish_empty(l, err);
    const int rc = mri_withdrawn_list_write(l->next, l->count, l->out, err);
    return rc ? rc : mri_output_commit(l->out, NULL, NULL, err);
}

static int write_lists(change *c, uint64_t *changed, mr_error *err)
{
    int rc = find_lists(c, err);
    *changed = 0;
    for (uint32_t k = 0; !rc && k < c->list_count; k++) rc = prepare(c, &c->list[k], err);
    for (uint32_t k = 0; !rc && k < c->list_count; k++) {
        *changed += c->list[k].changed - c->list[k].again;
        rc = finish(c, &c->list[k], err);
    }
    return rc;
}

static void free_change(change *c)
{
    for (uint32_t k = 0; k < c->list_count; k++) {
        mri_output_close(c->list[k].out, false);
        mri_withdrawn_list_fini(&c->list[k].now);
        free(c->list[k].next);
        free(c->list[k].path);
    }
    for (uint64_t k = 0; c->key && k < c->count; k++) {
        free(c->key[k].path);
        free(c->key[k].name);
    }
    free(c->list);
    free(c->key);
}

/* ---- public ---- */
static int check(const change *c, const uint64_t *samples, uint64_t count, mr_error *err)
{
    const mr_source *src = c->src;
    int rc = MR_OK;
    if (src->info.mix_count)
        rc = mr_error_set(err, MR_EUNSUPPORTED,
                          "the samples of a mix are withdrawn from its data sets: name one of them");
    else if (src->view || mri_source_is_made(src))
        rc = mr_error_set(err, MR_EUNSUPPORTED,
                          "expected data in files of this machine: elsewhere no list can be written");
    else if (!src->takes_withdrawn)
        rc = mr_error_set(err, MR_EINVAL,
                          "expected a source that was opened with MR_WITHDRAWN_TAKE, found one without its "
                          "withdrawn samples");
    for (uint64_t k = 0; !rc && !c->all && k < count; k++)
        if (samples[k] >= src->info.count || (k && samples[k] <= samples[k - 1]))
            rc = mr_error_set(err, MR_EINVAL,
                              "expected rising numbers of samples below %" PRIu64 ", found %" PRIu64,
                              src->info.count, samples[k]);
    if (!rc && !c->all && count == 0) rc = mr_error_set(err, MR_EINVAL, "no sample is named");
    if (!rc && !c->restores && src->withdrawn && src->withdrawn->why.code) {
        rc = src->withdrawn->why.code;
        if (err) *err = src->withdrawn->why;
    }
    return rc ? mri_error_place(err, rc, src->path, MR_NOWHERE, MR_NOWHERE) : MR_OK;
}

static int run(change *c, const uint64_t *samples, uint64_t count, uint64_t *changed, mr_error *err)
{
    const volatile int *before = mri_stop_at(c->src->stop);
    int rc = check(c, samples, count, err);
    if (!rc && !c->all) rc = make_keys(c, samples, count, err);
    if (!rc) rc = write_lists(c, changed, err);
    mri_stop_at(before);
    free_change(c);
    return rc;
}

int mr_source_withdraw(const mr_source *src, const uint64_t *samples, uint64_t count, const char *reason,
                       uint64_t *changed, mr_error *err)
{
    MRI_OWN(err, src);
    MRI_GIVEN(err, samples);
    MRI_GIVEN(err, changed);
    uint64_t n = 0;
    change c = {.src = src, .reason = reason ? reason : ""};
    const int rc = run(&c, samples, count, &n, err);
    if (!rc) *changed = n;
    return rc;
}

int mr_source_restore(const mr_source *src, const uint64_t *samples, uint64_t count, uint64_t *changed,
                      mr_error *err)
{
    MRI_OWN(err, src);
    MRI_GIVEN(err, changed);
    uint64_t n = 0;
    change c = {.src = src, .reason = "", .restores = true, .all = !samples};
    const int rc = run(&c, samples, count, &n, err);
    if (!rc) *changed = n;
    return rc;
}
