/* formats/fileset/filelist_folder.c: the files of a data set that is a folder.
 *
 *   names (of train/, val/, ... in it, where those hold the files) ──► looked at, by content
 *     ├─ ours ──► without x.gz beside x ──► of one part ──► sets made whole ──► paths
 *     └─ not ours ──► named like one of ours: an error     else: left out and reported
 */
#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <stdio.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/util.h"
#include "formats/fileset/file_names.h"
#include "formats/fileset/filelist.h"
#include "formats/source/parts.h"

enum { PROBE_ENTRIES = 32, PROBE_MOST = 1024, NAMES_TOLD = 4 };

typedef struct other { /* what lies in the folder and was not accepted */
    char *path;
    mri_folder_entry what;
} other;

typedef struct gathered {
    mri_filelist all; /* accepted */
    bool in_folders;  /* the part is the name of a file's folder */
    other *others;
    uint32_t other_count, other_cap;
    mri_remainders remainders;
} gathered;

static int no_memory(mr_error *err) { return mr_error_set(err, MR_ENOMEM, "no memory for a list of files"); }

static int placed(mr_error *err, int code, const char *path)
{
    return mri_error_place(err, code, path, MR_NOWHERE, MR_NOWHERE);
}

static void fini(gathered *g)
{
    for (uint32_t k = 0; k < g->other_count; k++) free(g->others[k].path);
    free(g->others);
    mri_filelist_fini(&g->all);
}

static int add_other(gathered *g, const char *path, const mri_folder_entry *what, mr_error *err)
{
    if (g->other_count == g->other_cap) {
        const uint32_t cap = g->other_cap ? 2 * g->other_cap : 16;
        other *larger = realloc(g->others, cap * sizeof *larger);
        if (!larger) return no_memory(err);
        g->others = larger;
        g->other_cap = cap;
    }
    char *copy = strdup(path);
    if (!copy) return no_memory(err);
    g->others[g->other_count++] = (other){copy, *what};
    return MR_OK;
}

/* ---- reading folders ---- */
/* The next name that is not skipped: MR_OK, MR_EEND, or the system's error. */
static int next_name(DIR *d, const char **name, mr_error *err)
{
    for (;;) {
        if (mri_stop_asked()) return mri_stopped(err);
        errno = 0;
        const struct dirent *e = readdir(d);
        if (!e) return errno ? mr_error_sys(err, errno, "cannot read the folder") : MR_EEND;
        if (e->d_name[0] == '.' || mri_is_index_name(e->d_name)) continue;
        *name = e->d_name;
        return MR_OK;
    }
}

static int is_part_folder(int parent, const char *name, mri_accept *accept, bool *out, mr_error *err);

/* Subfolders suggest a folder of pictures with an archive next to them, unless they are named after splits
 * and hold files of this format. Files that are not data are looked at, but not counted. */
static int holds_accepted_files(DIR *d, mri_accept *accept, bool may_have_parts, bool *out, mr_error *err)
{
    int accepted = 0, folders = 0, looked = 0, rc = MR_OK;
    for (int seen = 0; !rc && seen < PROBE_MOST && looked < PROBE_ENTRIES; seen++) {
        const char *name = NULL;
        mri_folder_entry e;
        bool is_part = false;
        rc = next_name(d, &name, err);
        if (rc) break;
        if (mri_is_remainder(name)) continue;
        looked += !mri_is_beside_data(name);
        rc = mri_filelist_look(dirfd(d), name, accept, &e, err);
        if (!rc && may_have_parts && e.is_folder) rc = is_part_folder(dirfd(d), name, accept, &is_part, err);
        folders += !rc && e.is_folder && !is_part;
        accepted += is_part || e.accepted;
    }
    *out = accepted > folders;
    return rc == MR_EEND ? MR_OK : rc;
}

static int is_part_folder(int parent, const char *name, mri_accept *accept, bool *out, mr_error *err)
{
    const mri_part part = mri_part_of_name(name);
    *out = false;
    if (part == MRI_NO_PART || part == MRI_TWO_PARTS) return MR_OK;
    const int fd = openat(parent, name, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
    DIR *d = fd >= 0 ? fdopendir(fd) : NULL;
    if (!d) {
        const int code = errno;
        if (fd >= 0) close(fd);
        return placed(err, mr_error_sys(err, code, "cannot open the folder"), name);
    }
    const int rc = holds_accepted_files(d, accept, false, out, err);
    closedir(d);
    return rc;
}

typedef struct part_folders {
    char name[MRI_PART_COUNT][NAME_MAX + 1];
} part_folders; /* "": no such folder */

static int note_part_folder(part_folders *parts, const char *folder, const char *name, mr_error *err)
{
    char *known = parts->name[mri_part_of_name(name)];
    if (!known[0]) {
        snprintf(known, sizeof parts->name[0], "%s", name);
        return MR_OK;
    }
    mr_error_set(err, MR_EFORMAT,
                 "%s and %s both name the same part: rename one of these folders, or name "
                 "the files to use by a pattern",
                 known, name);
    return placed(err, MR_EFORMAT, folder);
}

static int take_entry(gathered *g, part_folders *parts, const char *folder, int fd, const char *name,
                      mr_error *err)
{
    char path[MRI_MOST_PATH];
    mri_folder_entry e;
    bool is_part = false;
    if (mri_is_remainder(name)) {
        mri_remainder_note(&g->remainders, name);
        return MR_OK;
    }
    const char *gap = folder[0] && folder[strlen(folder) - 1] == '/' ? "" : "/";
    if ((size_t)snprintf(path, sizeof path, "%s%s%s", folder, gap, name) >= sizeof path)
        return mr_error_set(err, MR_ELIMIT, "the path is too long");
    int rc = mri_filelist_look(fd, name, g->all.accept, &e, err);
    if (!rc && e.is_folder && parts) rc = is_part_folder(fd, name, g->all.accept, &is_part, err);
    if (rc) return placed(err, rc, path);
    if (is_part) return note_part_folder(parts, folder, name, err);
    return e.accepted ? mri_filelist_add(&g->all, path, err) : add_other(g, path, &e, err);
}

/* parts NULL: files only */
static int read_folder(gathered *g, part_folders *parts, const char *folder, mr_error *err)
{
    DIR *d = opendir(folder);
    const char *name = NULL;
    int rc = MR_OK;
    if (!d) return placed(err, mr_error_sys(err, errno, "cannot open the folder"), folder);
    while (!rc) {
        rc = next_name(d, &name, err);
        if (rc && rc != MR_EEND) placed(err, rc, folder);
        if (!rc) rc = take_entry(g, parts, folder, dirfd(d), name, err);
    }
    closedir(d);
    return rc == MR_EEND ? MR_OK : rc;
}

/* The folder's own files, or the files of its split folders; not both, since the split of its own files would
 * be unknown. */
static int read_parts(gathered *g, const char *folder, mr_error *err)
{
    part_folders parts = {0};
    int rc = read_folder(g, &parts, folder, err);
    const bool own = g->all.count > 0;
    for (int part = MRI_TRAIN; !rc && part < MRI_PART_COUNT; part++) {
        char path[MRI_MOST_PATH];
        const char *gap = folder[strlen(folder) - 1] == '/' ? "" : "/";
        if (!parts.name[part][0]) continue;
        if (own) {
            mr_error_set(err, MR_EFORMAT,
                         "next to it is a folder %s of such files, so that it belongs to no part: move it, "
                         "or name the files to use by a pattern",
                         parts.name[part]);
            return placed(err, MR_EFORMAT, g->all.path[0]);
        }
        g->in_folders = true;
        if ((size_t)snprintf(path, sizeof path, "%s%s%s", folder, gap, parts.name[part]) >= sizeof path)
            rc = mr_error_set(err, MR_ELIMIT, "the path is too long");
        else rc = read_folder(g, NULL, path, err);
    }
    return rc;
}

/* ---- files that were not accepted ---- */
typedef struct names { /* of accepted files: hashes, sorted */
    uint64_t *shape, *kind, *ending;
    uint32_t count;
    bool pieces; /* of numbered sets are among them */
} names;

static int by_value(const void *a, const void *b)
{
    const uint64_t x = *(const uint64_t *)a, y = *(const uint64_t *)b;
    return (x > y) - (x < y);
}

static bool is_in(const uint64_t *sorted, uint32_t count, uint64_t value)
{
    return value && bsearch(&value, sorted, count, sizeof *sorted, by_value);
}

static int names_of(names *n, const mri_filelist *all, mr_error *err)
{
    mri_piece p;
    n->count = all->count;
    n->shape = malloc(3 * (size_t)(all->count ? all->count : 1) * sizeof *n->shape);
    if (!n->shape) return no_memory(err);
    n->kind = n->shape + all->count;
    n->ending = n->kind + all->count;
    for (uint32_t k = 0; k < all->count; k++) {
        const char *name = mri_file_name(all->path[k]);
        n->shape[k] = mri_name_shape(name);
        n->kind[k] = mri_name_kind(name);
        n->ending[k] = mri_name_ending(name);
        n->pieces = n->pieces || mri_piece_of(name, &p);
    }
    qsort(n->shape, n->count, sizeof *n->shape, by_value);
    qsort(n->kind, n->count, sizeof *n->kind, by_value);
    qsort(n->ending, n->count, sizeof *n->ending, by_value);
    return MR_OK;
}

static bool has_their_ending(const names *n, const other *o)
{
    return !o->what.is_folder && is_in(n->ending, n->count, mri_name_ending(mri_file_name(o->path)));
}

/* Whoever named it so meant it as a part of this data set. */
static bool is_sibling(const names *n, const other *o)
{
    const char *name = mri_file_name(o->path);
    mri_piece p;
    if (is_in(n->shape, n->count, mri_name_shape(name))) return true;
    if (o->what.is_folder || mri_is_beside_data(name)) return false;
    return is_in(n->kind, n->count, mri_name_kind(name)) || has_their_ending(n, o) ||
           (n->pieces && mri_piece_of(name, &p));
}

/* A set with fewer samples than pieces has empty ones: add_part() takes them with their set. */
static bool is_empty_piece(const names *n, const other *o)
{
    mri_piece p;
    const char *name = mri_file_name(o->path);
    return o->what.is_empty && mri_piece_of(name, &p) && is_in(n->shape, n->count, mri_name_shape(name));
}

static int refuse(const other *o, mr_error *err)
{
    int rc;
    if (o->what.denied)
        rc = mr_error_sys(err, o->what.denied,
                          "named like the files of this data set, and it cannot be read: correct or remove "
                          "it, or name the files to use by a pattern");
    else
        rc = mr_error_set(err, MR_EFORMAT,
                          "named like the files of this data set, but it is not one (%s): copy it "
                          "again or remove it, or name the files to use by a pattern",
                          o->what.why);
    return placed(err, rc, o->path);
}

/* An unreadable file could be anything. */
static bool may_be_data(const other *o)
{
    return (o->what.denied == EACCES || o->what.denied == EPERM) &&
           !mri_is_beside_data(mri_file_name(o->path));
}

static void tell_left_out(mri_filelist *out, char *const *said, uint32_t count)
{
    char text[900];
    size_t at = 0;
    for (uint32_t k = 0; k < count && k < NAMES_TOLD; k++)
        at += (size_t)snprintf(text + at, sizeof text - at, "%s%.180s", k ? ", " : "", said[k]);
    if (count > NAMES_TOLD)
        snprintf(text + at, sizeof text - at, " and %u more", (unsigned)(count - NAMES_TOLD));
    if (count) mri_filelist_note(out, "left out: %s", text);
}

static int by_path(const void *a, const void *b)
{
    return strcmp(((const other *)a)->path, ((const other *)b)->path);
}

/* "README.md", "notes.bin (its first bytes do not belong to this format)" */
static char *said_of(const other *o)
{
    char text[200];
    const char *name = mri_file_name(o->path);
    if (mri_is_beside_data(name)) snprintf(text, sizeof text, "%.100s", name);
    else snprintf(text, sizeof text, "%.100s (%s)", name, o->what.why);
    return strdup(text);
}

/* Is it NAME.lst where NAME.rec was accepted? */
static bool is_companion(const mri_filelist *all, const char *const *endings, const other *o)
{
    const char *dot = strrchr(mri_file_name(o->path), '.');
    bool ours = false, found = false;
    for (; dot && endings && *endings && !ours; endings++) ours = strcmp(dot, *endings) == 0;
    const size_t stem = ours ? (size_t)(dot - o->path) : 0;
    for (uint32_t k = 0; ours && !found && k < all->count; k++)
        found = strncmp(all->path[k], o->path, stem) == 0 && all->path[k][stem] == '.' &&
                !strchr(all->path[k] + stem, '/');
    return found;
}

static int judge(mri_filelist *out, gathered *g, const names *n, bool among_others, mr_error *err)
{
    char *said[NAMES_TOLD] = {0};
    uint32_t count = 0;
    int rc = MR_OK;
    if (g->other_count) qsort(g->others, g->other_count, sizeof *g->others, by_path);
    for (uint32_t k = 0; !rc && k < g->other_count; k++) {
        const other *o = &g->others[k];
        const bool sibling = is_sibling(n, o) || (among_others && has_their_ending(n, o));
        if (is_empty_piece(n, o) || (among_others && !sibling)) continue;
        if (!sibling && is_companion(&g->all, out->companions, o)) continue;
        if (!among_others && (sibling || may_be_data(o))) rc = refuse(o, err);
        else if (count < NAMES_TOLD && !(said[count] = said_of(o))) rc = no_memory(err);
        count++;
    }
    if (!rc) tell_left_out(out, said, count);
    for (int k = 0; k < NAMES_TOLD; k++) free(said[k]);
    return rc;
}

static int judge_others(mri_filelist *out, gathered *g, bool among_others, mr_error *err)
{
    names n = {0};
    int rc = names_of(&n, &g->all, err);
    if (!rc) rc = judge(out, g, &n, among_others, err);
    free(n.shape);
    return rc;
}

/* Of x and x.gz, x.gz goes, and x.bak of x and x.bak. */
static void drop_twins(mri_filelist *out, mri_filelist *l)
{
    static const char *const endings[] = {".gz", ".bak", ".old", ".orig", "~", NULL};
    qsort(l->path, l->count, sizeof *l->path, mri_paths_by_bytes);
    uint32_t kept = 0;
    for (uint32_t k = 0; k < l->count; k++) {
        char *path = l->path[k], plain[MRI_MOST_PATH];
        const size_t ending = mri_ending_bytes(path, endings);
        bool twin = false;
        if (ending && (size_t)snprintf(plain, sizeof plain, "%.*s", (int)(strlen(path) - ending), path) <
                          sizeof plain) {
            const char *key = plain; /* kept names are sorted, and x stands before x.gz */
            twin = bsearch(&key, l->path, kept, sizeof *l->path, mri_paths_by_bytes) != NULL;
        }
        if (twin && k == kept)
            mri_filelist_note(out, "left out: %.200s and others like it, as the files without %s are there",
                              mri_file_name(path), path + strlen(path) - ending);
        if (twin) free(path);
        else l->path[kept++] = path;
    }
    l->count = kept;
}

/* ---- parts ---- */
/* In a data set whose parts are folders it is the folder that says it. */
static mri_part part_of_path(const gathered *g, const char *path)
{
    const char *name = mri_file_name(path), *folder = name - (name > path);
    char text[NAME_MAX + 1];
    if (!g->in_folders) return mri_part_of_name(name);
    while (folder > path && folder[-1] != '/') folder--;
    snprintf(text, sizeof text, "%.*s", (int)strcspn(folder, "/"), folder);
    return mri_part_of_name(text);
}

static int refuse_part(mr_error *err, const char *path, bool two)
{
    mr_error_set(err, MR_EFORMAT,
                 two ? "its name speaks of two parts (train, validation, test): rename it, or name the files "
                       "to use by a pattern"
                     : "other files here are named train, validation or test, this one is not: move "
                       "it, or name the files to use by a pattern");
    return placed(err, MR_EFORMAT, path);
}

/* That there is a test part besides, has_test says; of a third one nobody would know. */
static void tell_third_part(mri_filelist *out, const uint32_t count[MRI_PART_COUNT])
{
    if (count[MRI_VALIDATION] && count[MRI_TEST])
        mri_filelist_note(
            out, "left out: the test part (%u file%s); validation and --split test take the validation part",
            count[MRI_TEST], count[MRI_TEST] == 1 ? "" : "s");
}

static int choose_part(mri_filelist *out, const gathered *g, mr_split split, mri_part *part, mr_error *err)
{
    uint32_t count[MRI_PART_COUNT] = {0};
    const char *no_part = NULL;
    for (uint32_t k = 0; k < g->all.count; k++) {
        const mri_part of = part_of_path(g, g->all.path[k]);
        if (of == MRI_TWO_PARTS) return refuse_part(err, g->all.path[k], true);
        count[of]++;
        if (of == MRI_NO_PART) no_part = g->all.path[k];
    }
    *part = MRI_NO_PART;
    if (count[MRI_NO_PART] == g->all.count) return MR_OK;
    if (no_part) return refuse_part(err, no_part, false);
    out->has_test = count[MRI_VALIDATION] || count[MRI_TEST];
    out->only_test = split == MR_SPLIT_AUTO && !count[MRI_TRAIN];
    const mri_part test = count[MRI_VALIDATION] ? MRI_VALIDATION : MRI_TEST;
    *part = split == MR_SPLIT_TEST || out->only_test ? test : MRI_TRAIN;
    if (!count[*part])
        return mr_error_set(err, MR_ENOENT, "the data has no %s part", *part == MRI_TRAIN ? "train" : "test");
    for (int k = MRI_TRAIN; k < MRI_PART_COUNT; k++) out->there[k] = count[k] > 0;
    out->part = *part;
    tell_third_part(out, count);
    return MR_OK;
}

/* Numbered sets made whole, single files as they are. */
static int add_part(mri_filelist *out, const gathered *g, mri_part part, mr_error *err)
{
    mri_piece last = {0}, p;
    int rc = MR_OK;
    for (uint32_t k = 0; !rc && k < g->all.count; k++) {
        const char *path = g->all.path[k], *name = mri_file_name(path);
        if (part != MRI_NO_PART && part_of_path(g, path) != part) continue;
        if (!mri_piece_of(name, &p)) {
            rc = mri_filelist_add(out, path, err);
            last.total = 0;
            continue;
        }
        const char *before = out->count ? mri_file_name(out->path[out->count - 1]) : "";
        const bool same_name = last.total && p.stem_bytes == last.stem_bytes &&
                               strncmp(before, name, p.stem_bytes) == 0 && strcmp(p.ending, last.ending) == 0;
        if (same_name && p.total == last.total) continue; /* added with its set */
        if (same_name) {
            mr_error_set(
                err, MR_EFORMAT,
                "a set of %u pieces and one of %u under the same name: remove the older one, or name the "
                "files to use by a pattern",
                last.total, p.total);
            return placed(err, MR_EFORMAT, path);
        }
        rc = mri_filelist_add_set(out, path, err);
        last = p;
    }
    return rc;
}

int mri_filelist_find_in_folder(mri_filelist *out, const char *folder, mr_split split, bool among_others,
                                mr_error *err)
{
    gathered g = {.all.accept = out->accept};
    mri_part part = MRI_NO_PART;
    int rc = read_parts(&g, folder, err);
    if (!rc && g.all.count == 0) {
        mr_error_set(
            err, MR_ENOENT,
            "no file of this format in the folder (the first bytes of a file show its format, not its name)");
        rc = placed(err, MR_ENOENT, folder);
    }
    if (!rc) rc = judge_others(out, &g, among_others, err);
    if (!rc) {
        mri_filelist_note_remainders(out, &g.remainders);
        drop_twins(out, &g.all);
        qsort(g.all.path, g.all.count, sizeof *g.all.path, mri_paths_by_number);
        rc = choose_part(out, &g, split, &part, err);
        if (rc == MR_ENOENT) placed(err, rc, folder);
    }
    if (!rc) rc = add_part(out, &g, part, err);
    fini(&g);
    return rc;
}

/* ---- probe ---- */
bool mri_filelist_probe_folder(const char *path, mri_accept *accept, mr_error *trouble)
{
    bool accepted = false;
    mr_error what = MR_ERROR_INIT;
    DIR *d = opendir(path);
    const int rc = d ? holds_accepted_files(d, accept, true, &accepted, &what)
                     : placed(&what, mr_error_sys(&what, errno, "cannot open the folder"), path);
    if (d) closedir(d);
    return !mri_probe_failed(trouble, rc, &what) && (accepted || (d && rc != MR_OK));
}
