/* formats/fileset/filelist.c: the files of a data set, from a file, a folder or a pattern.
 *
 *   file ────► all pieces of its numbered set ──────────────────────────────────► paths
 *   folder ──► filelist_folder.c ───────────────────────────────────────────────► paths
 *   pattern ─► {a..b} counted out ─► *, ? matched ──────────────────────────────► paths
 */
#include "formats/fileset/filelist.h"

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <glob.h>
#include <limits.h>
#include <stdio.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/util.h"
#include "formats/fileset/file_names.h"
#include "formats/source/parts.h"
#include "formats/source/told.h"
#include "formats/storage/storage.h"

enum { MOST_FILES = 1 << 20 };

/* ---- the list ---- */
void mri_filelist_fini(mri_filelist *l)
{
    for (uint32_t k = 0; k < l->count; k++) free(l->path[k]);
    free(l->path);
    free(l->reported);
    *l = (mri_filelist){0};
}

static int no_memory(mr_error *err) { return mr_error_set(err, MR_ENOMEM, "no memory for a list of files"); }

int mri_filelist_add(mri_filelist *l, const char *path, mr_error *err)
{
    if (l->count == MOST_FILES)
        return mr_error_set(err, MR_ELIMIT, "more than %d files: convert them to fewer, larger ones",
                            MOST_FILES);
    if (l->count == l->cap) {
        const uint32_t cap = l->cap ? 2 * l->cap : 16;
        char **larger = realloc(l->path, cap * sizeof *larger);
        if (!larger) return no_memory(err);
        l->path = larger;
        l->cap = cap;
    }
    const size_t bytes = strlen(path) + 1;
    char *copy = malloc(bytes);
    if (!copy) return no_memory(err);
    memcpy(copy, path, bytes);
    l->path[l->count++] = copy;
    return MR_OK;
}

void mri_filelist_note(mri_filelist *l, const char *format, ...)
{
    va_list args;
    va_start(args, format);
    mri_told_line(&l->reported, format, args);
    va_end(args);
}

void mri_filelist_tell(mri_filelist *l, mr_source *src)
{
    src->info.has_test = l->has_test;
    src->info.only_test = l->only_test;
    src->missing_files = l->missing;
    mri_source_set_parts(src, l->there, l->part);
    if (l->reported) mri_told_add(&src->report, l->reported);
    free(l->reported);
    l->reported = NULL;
}

static bool regular(const char *path)
{
    struct stat st;
    return stat(path, &st) == 0 && S_ISREG(st.st_mode);
}

static int misplaced(mr_error *err, int code, const char *path)
{
    return mri_error_place(err, code, path, MR_NOWHERE, MR_NOWHERE);
}

/* ---- numbered sets ---- */
static int no_piece(const char *path, uint32_t total, mr_error *err)
{
    struct stat st;
    const int code = stat(path, &st) != 0 ? errno : 0;
    if (code && code != ENOENT) return misplaced(err, mr_error_sys(err, code, "cannot look at it"), path);
    mr_error_set(err, MR_ENOENT,
                 "this piece of a set of %u is missing: copy it again, or name the files to use by a pattern",
                 total);
    return misplaced(err, MR_ENOENT, path);
}

int mri_filelist_add_set(mri_filelist *l, const char *path, mr_error *err)
{
    mri_piece p;
    char next[MRI_MOST_PATH];
    if (!mri_piece_of(mri_file_name(path), &p)) return MR_EEND;
    bool from_one = mri_piece_path(next, sizeof next, path, &p, 0) && !regular(next);
    from_one = from_one && mri_piece_path(next, sizeof next, path, &p, p.total) && regular(next);
    for (uint32_t k = from_one; k < p.total + from_one; k++) {
        if (!mri_piece_path(next, sizeof next, path, &p, k))
            return misplaced(err, mr_error_set(err, MR_ELIMIT, "the path is too long"), path);
        if (!regular(next)) return no_piece(next, p.total, err);
        const int rc = mri_filelist_add(l, next, err);
        if (rc) return rc;
    }
    return MR_OK;
}

/* ---- content ---- */
int mri_filelist_head(int fd, const char *path, uint64_t file_bytes, mri_accept *accept, bool *accepted,
                      bool *packed, mr_error *err)
{
    uint8_t head[MRI_PROBE_BYTES], inner[MRI_PROBE_BYTES];
    const size_t bytes = (size_t)mri_min_u64(sizeof head, file_bytes);
    const int rc = mri_pread_all(fd, head, bytes, 0, path, err);
    *accepted = *packed = false;
    if (rc) return rc;
    *accepted = accept(head, bytes);
    if (!*accepted && mri_is_packed(head, bytes)) {
        const bool gzip = mri_is_gzip(head, bytes);
        *accepted = accept(inner, mri_gunzip_head(head, bytes, inner, sizeof inner));
        *packed = *accepted || gzip; /* two bytes are no proof of zlib: what then unpacks to nothing known is
                                        none of ours */
    }
    return MR_OK;
}

/* The reason, if the error concerns this folder entry alone; NULL: it concerns the run. */
static const char *of_entry(int code)
{
    switch (code) {
    case EACCES:
    case EPERM: return "no permission to read it";
    case ENOENT: return "a link to nothing, or it was removed";
    case ELOOP: return "a link that leads in circles";
    case ENAMETOOLONG: return "a link to a name that is too long";
    case ENOTDIR: return "a link through a file that is not a folder";
    case ENXIO: return "neither a file nor a folder";
    default: return NULL;
    }
}

static int refused(int code, const char *name, const char *what, mri_folder_entry *out, mr_error *err)
{
    out->why = of_entry(code);
    out->denied = code;
    return out->why ? MR_OK : misplaced(err, mr_error_sys(err, code, "%s", what), name);
}

static int look_inside(int fd, const char *name, uint64_t bytes, mri_accept *accept, mri_folder_entry *out,
                       mr_error *err)
{
    uint8_t head[256];
    bool packed;
    int rc = mri_filelist_head(fd, name, bytes, accept, &out->accepted, &packed, err);
    if (rc == MR_OK && out->accepted) return MR_OK;
    const size_t shown = (size_t)mri_min_u64(sizeof head, bytes);
    if (rc == MR_OK) rc = mri_pread_all(fd, head, shown, 0, name, err);
    out->why = rc ? "it became shorter while it was read" : mri_placeholder_describe(head, shown);
    if (!out->why) out->why = "its first bytes are not of this format";
    return rc == MR_EFORMAT ? MR_OK : rc;
}

int mri_filelist_look(int folder, const char *name, mri_accept *accept, mri_folder_entry *out, mr_error *err)
{
    struct stat st;
    *out = (mri_folder_entry){0};
    if (fstatat(folder, name, &st, 0) != 0) return refused(errno, name, "cannot look at it", out, err);
    out->is_folder = S_ISDIR(st.st_mode);
    out->is_empty = S_ISREG(st.st_mode) && st.st_size == 0;
    if (out->is_folder) out->why = "a folder";
    else if (out->is_empty) out->why = "it is empty (0 bytes)";
    else if (!S_ISREG(st.st_mode)) out->why = "neither a file nor a folder";
    if (out->why) return MR_OK;
    /* if the name is a pipe by now, open would wait for a writer */
    const int fd = openat(folder, name, O_RDONLY | O_CLOEXEC | O_NONBLOCK);
    if (fd < 0) return refused(errno, name, "cannot open", out, err);
    const int rc = look_inside(fd, name, (uint64_t)st.st_size, accept, out, err);
    close(fd);
    return rc;
}

/* ---- patterns ---- */
bool mri_filelist_pattern(const char *path) { return strpbrk(path, "*?{") != NULL; }

typedef struct range { /* HEAD {0007..0123} TAIL */
    size_t head_bytes;
    int width;
    uint32_t from, to;
    const char *tail;
} range;

static bool range_of(const char *pattern, range *r)
{
    for (const char *at = pattern; (at = strchr(at, '{')); at++) {
        const char *low = at + 1;
        const size_t a = strspn(low, "0123456789");
        if (a == 0 || a > MRI_MOST_DIGITS || strncmp(low + a, "..", 2) != 0) continue;
        const char *high = low + a + 2;
        const size_t b = strspn(high, "0123456789");
        if (b == 0 || b > MRI_MOST_DIGITS || high[b] != '}') continue;
        const bool padded = (low[0] == '0' && a > 1) || (high[0] == '0' && b > 1);
        *r = (range){(size_t)(at - pattern), padded ? (int)(a > b ? a : b) : 1,
                     (uint32_t)strtoul(low, NULL, 10), (uint32_t)strtoul(high, NULL, 10), high + b + 1};
        return true;
    }
    return false;
}

static int add_match(mri_filelist *l, const char *path, mr_error *err)
{
    if (mri_is_index_name(mri_file_name(path))) return MR_OK; /* we write them there ourselves */
    if (regular(path)) return mri_filelist_add(l, path, err);
    mr_error_set(err, MR_EFORMAT, "the pattern names it, and it is no file: narrow the pattern");
    return misplaced(err, MR_EFORMAT, path);
}

void mri_remainder_note(mri_remainders *r, const char *name)
{
    if (!r->count++ || strcmp(name, r->first) < 0) snprintf(r->first, sizeof r->first, "%.255s", name);
}

void mri_filelist_note_remainders(mri_filelist *l, const mri_remainders *r)
{
    if (r->count)
        mri_filelist_note(l, "left out: %u file%s of repairs or interrupted runs (.damaged, .part): %s%s",
                          r->count, r->count == 1 ? "" : "s", r->first, r->count == 1 ? "" : ", ...");
}

/* glob() skips an unreadable folder unless its callback stops it; the callback has no context argument. */
static _Thread_local struct {
    int code;
    char path[MRI_MOST_PATH];
} unread;

static int cannot_read(const char *path, int code)
{
    if (code == ENOENT || code == ENOTDIR) return 0; /* nothing of that name */
    unread.code = code;
    snprintf(unread.path, sizeof unread.path, "%s", path);
    return 1;
}

static int add_matches(mri_filelist *l, const char *pattern, uint32_t most, mr_error *err)
{
    glob_t g;
    mri_remainders remainders = {0};
    const uint32_t before = l->count;
    unread.code = 0;
    const int said = glob(pattern, GLOB_NOSORT, cannot_read, &g);
    if (said == GLOB_NOSPACE) return no_memory(err);
    int rc = MR_OK;
    if (said == GLOB_ABORTED)
        rc = misplaced(err, mr_error_sys(err, unread.code ? unread.code : EIO, "cannot read the folder"),
                       unread.path);
    for (size_t k = 0; said == 0 && !rc && k < g.gl_pathc && l->count < most; k++) {
        const char *path = g.gl_pathv[k], *name = mri_file_name(path);
        if (!mri_is_remainder(name) || mri_is_remainder(pattern)) rc = add_match(l, path, err);
        else mri_remainder_note(&remainders, name);
    }
    if (said == 0 || said == GLOB_ABORTED) globfree(&g);
    mri_filelist_note_remainders(l, &remainders);
    if (!rc && l->count == before)
        rc = misplaced(err, mr_error_set(err, MR_ENOENT, "no file matches"), pattern);
    if (!rc) qsort(l->path + before, l->count - before, sizeof *l->path, mri_paths_by_number);
    return rc;
}

static int add_named(mri_filelist *l, const char *path, mr_error *err)
{
    struct stat st;
    const int code = stat(path, &st) != 0 ? errno : 0;
    if (!code && S_ISREG(st.st_mode)) return mri_filelist_add(l, path, err);
    const int rc = !code            ? mr_error_set(err, MR_EFORMAT, "no file, and the pattern asks for it")
                   : code == ENOENT ? mr_error_set(err, MR_ENOENT, "no such file; the pattern asks for it")
                                    : mr_error_sys(err, code, "cannot look at it");
    return misplaced(err, rc, path);
}

static int add_pattern(mri_filelist *l, const char *pattern, uint32_t most, mr_error *err);

/* The comma or brace that ends the piece at `at`, skipping nested braces; NULL: not found. */
static const char *end_of_piece(const char *at)
{
    for (int depth = 0; *at; at++) {
        if (*at == '{') depth++;
        else if (depth == 0 && (*at == ',' || *at == '}')) return at;
        else if (*at == '}') depth--;
    }
    return NULL;
}

/* HEAD {a,b} TAIL, as a shell has it: where it opens and closes. */
static bool list_of(const char *pattern, const char **open, const char **close)
{
    for (const char *at = pattern; (at = strchr(at, '{')); at++) {
        const char *end = end_of_piece(at + 1);
        const bool list = end && *end == ',';
        while (end && *end == ',') end = end_of_piece(end + 1);
        if (!list || !end) continue;
        *open = at;
        *close = end;
        return true;
    }
    return false;
}

static int add_list(mri_filelist *l, const char *pattern, const char *open, const char *close, uint32_t most,
                    mr_error *err)
{
    const size_t bytes = strlen(pattern) + 1;
    char *next = malloc(bytes);
    if (!next) return no_memory(err);
    int rc = MR_OK;
    for (const char *at = open + 1; !rc && at <= close && l->count < most;) {
        const char *end = end_of_piece(at);
        snprintf(next, bytes, "%.*s%.*s%s", (int)(open - pattern), pattern, (int)(end - at), at, close + 1);
        rc = add_pattern(l, next, most, err);
        at = end + 1;
    }
    free(next);
    return rc;
}

/* Deep as there are ranges in the pattern; a path has room for no more than MRI_MOST_PATH / 6 of them. */
static int add_pattern(mri_filelist *l, const char *pattern, uint32_t most, mr_error *err)
{
    range r;
    const char *open, *close;
    if (list_of(pattern, &open, &close)) return add_list(l, pattern, open, close, most, err);
    if (!range_of(pattern, &r))
        return strpbrk(pattern, "*?") ? add_matches(l, pattern, most, err) : add_named(l, pattern, err);
    if (r.from > r.to) return mr_error_set(err, MR_EINVAL, "the range {%u..%u} runs backwards", r.from, r.to);
    const size_t bytes = strlen(pattern) + MRI_MOST_DIGITS + 1;
    char *next = malloc(bytes);
    if (!next) return no_memory(err);
    int rc = MR_OK;
    for (uint32_t k = r.from; !rc && k <= r.to && l->count < most; k++) {
        snprintf(next, bytes, "%.*s%0*u%s", (int)r.head_bytes, pattern, r.width, k, r.tail);
        rc = add_pattern(l, next, most, err);
    }
    free(next);
    return rc;
}

/* A file named twice, as by p-{1..12}* in a folder with p-12, would give every one of its samples twice. */
static int check_once(const mri_filelist *l, const char *pattern, mr_error *err)
{
    int rc = MR_OK;
    char **sorted = malloc((l->count ? l->count : 1) * sizeof *sorted);
    if (!sorted) return no_memory(err);
    memcpy(sorted, l->path, l->count * sizeof *sorted);
    qsort(sorted, l->count, sizeof *sorted, mri_paths_by_bytes);
    for (uint32_t k = 1; !rc && k < l->count; k++)
        if (strcmp(sorted[k - 1], sorted[k]) == 0)
            rc = mri_error_place(err,
                                 mr_error_set(err, MR_EINVAL,
                                              "the pattern %s names this file more than once: narrow it",
                                              pattern),
                                 sorted[k], MR_NOWHERE, MR_NOWHERE);
    free(sorted);
    return rc;
}

/* Whoever names files of several parts together gets them together. */
static void note_parts(mri_filelist *l)
{
    uint32_t count[MRI_PART_COUNT + 1] = {0};
    for (uint32_t k = 0; k < l->count; k++) count[mri_part_of_name(mri_file_name(l->path[k]))]++;
    const int named = (count[MRI_TRAIN] > 0) + (count[MRI_VALIDATION] > 0) + (count[MRI_TEST] > 0);
    for (int part = MRI_TRAIN; named > 1 && part < MRI_PART_COUNT; part++) l->there[part] = count[part] > 0;
    if (named > 1 || (named == 1 && count[MRI_NO_PART]))
        mri_filelist_note(
            l,
            "files of several parts are taken together, as the pattern says: %u of train, %u of "
            "validation, %u of test, %u of none",
            count[MRI_TRAIN], count[MRI_VALIDATION], count[MRI_TEST],
            count[MRI_NO_PART] + count[MRI_TWO_PARTS]);
}

static int find_pattern(mri_filelist *out, const char *pattern, mr_error *err)
{
    int rc = add_pattern(out, pattern, UINT32_MAX, err);
    if (!rc && out->count == 0) /* an index of ours is all that it names */
        rc = misplaced(err, mr_error_set(err, MR_ENOENT, "no file matches"), pattern);
    if (!rc) rc = check_once(out, pattern, err);
    if (!rc) note_parts(out);
    return rc;
}

/* ---- find, probe ---- */
static int find_files(mri_filelist *out, const char *path, mr_split split, bool among_others, mr_error *err)
{
    struct stat st;
    if (stat(path, &st) != 0) {
        const int code = errno;
        if (code == ENOENT && strlen(path) < MRI_MOST_PATH && mri_filelist_pattern(path))
            return find_pattern(out, path, err);
        return misplaced(err, mr_error_sys(err, code, "cannot look at it"), path);
    }
    if (S_ISDIR(st.st_mode)) return mri_filelist_find_in_folder(out, path, split, among_others, err);
    if (!S_ISREG(st.st_mode))
        return misplaced(err, mr_error_set(err, MR_EFORMAT, "neither a file nor a folder"), path);
    const int rc = mri_filelist_add_set(out, path, err);
    return rc == MR_EEND ? mri_filelist_add(out, path, err) : rc;
}

/* Writers with fewer samples than pieces leave empty ones. Elsewhere an empty file is one that was never
 * written. */
static int check_empty(mri_filelist *l, mr_error *err)
{
    uint32_t count = 0, first = 0;
    for (uint32_t k = 0; l->count > 1 && k < l->count; k++) {
        struct stat st;
        mri_piece p;
        if (stat(l->path[k], &st) != 0 || st.st_size > 0) continue;
        if (!mri_piece_of(mri_file_name(l->path[k]), &p)) {
            mr_error_set(err, MR_EFORMAT, "the file is empty (0 bytes): copy it again, or leave it out");
            return misplaced(err, MR_EFORMAT, l->path[k]);
        }
        if (count++ == 0) first = k;
    }
    if (count)
        mri_filelist_note(l, "%u of %u pieces are empty, the first is %.200s", count, l->count,
                          mri_file_name(l->path[first]));
    return MR_OK;
}

static int find(mri_filelist *out, const char *path, mr_split split, mri_accept *accept, bool among_others,
                const char *const *companions, mr_error *err)
{
    *out = (mri_filelist){.accept = accept, .companions = companions};
    int rc = find_files(out, path, split, among_others, err);
    if (!rc) rc = check_empty(out, err);
    if (!rc && !among_others) rc = mri_filelist_note_gaps(out, err);
    if (!rc && !among_others) rc = mri_filelist_note_copies(out, err);
    if (!rc && split == MR_SPLIT_TEST && !out->has_test)
        rc = misplaced(err, mr_error_set(err, MR_ENOENT, "the data has no test part"), path);
    if (rc) mri_filelist_fini(out);
    return rc;
}

int mri_filelist_find(mri_filelist *out, const char *path, mr_split split, mri_accept *accept, mr_error *err)
{
    return find(out, path, split, accept, false, NULL, err);
}

int mri_filelist_find_with(mri_filelist *out, const char *path, mr_split split, mri_accept *accept,
                           const char *const *companions, mr_error *err)
{
    return find(out, path, split, accept, false, companions, err);
}

int mri_filelist_find_among(mri_filelist *out, const char *path, mr_split split, mri_accept *accept,
                            mr_error *err)
{
    return find(out, path, split, accept, true, NULL, err);
}

bool mri_filelist_probe(const char *path, mri_accept *accept, mr_error *trouble)
{
    struct stat st;
    if (stat(path, &st) == 0) return S_ISDIR(st.st_mode) && mri_filelist_probe_folder(path, accept, trouble);
    mr_error what = MR_ERROR_INIT;
    if (errno != ENOENT) {
        const int failed = misplaced(&what, mr_error_sys(&what, errno, "cannot look at it"), path);
        mri_probe_failed(trouble, failed, &what);
        return false;
    }
    if (strlen(path) >= MRI_MOST_PATH || !mri_filelist_pattern(path)) return false;
    mri_filelist l = {0};
    mri_folder_entry e = {0};
    int rc = add_pattern(&l, path, 1, &what);
    const bool named = rc == MR_OK && l.count > 0;
    if (named) rc = mri_filelist_look(AT_FDCWD, l.path[0], accept, &e, &what);
    mri_filelist_fini(&l);
    return !mri_probe_failed(trouble, rc, &what) && named && (e.accepted || rc != MR_OK);
}
