/* formats/fileset/filelist.c: the files of a data set, from a file, a folder or a pattern.
 *
 *   folder ──► names (of train/, val/, ... in it, where those hold the files) ──┐
 *   ┌──────────────────────────────────────────────────────────────────────────┘
 *   └──► by content ──► without x.gz beside x ──► one part ──► sets made whole ──► paths
 *   pattern ─► {a..b} counted out ─► *, ? matched ──────────────────────────────────────────────► paths
 *
 * Nothing is passed over silently that could be data: a piece of a numbered set that is missing, a second set
 * of the same name, and a file that belongs to no part where others do are errors that name it. */
#include "formats/fileset/filelist.h"

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <glob.h>
#include <limits.h>
#include <stdio.h>
#include <strings.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/util.h"
#include "formats/storage/storage.h"

enum { MOST_FILES = 1 << 20, PROBE_ENTRIES = 32, MOST_DIGITS = 9, MOST_PATH = 4096 };
enum { NO_PART, TRAIN, VALIDATION, TEST, PARTS };

/* ---- the list ---- */
void mri_filelist_fini(mri_filelist *l)
{
    for (uint32_t k = 0; k < l->count; k++) free(l->path[k]);
    free(l->path);
    *l = (mri_filelist){0};
}

static int no_memory(mr_error *err) { return mr_error_set(err, MR_ENOMEM, "no memory for a list of files"); }

static int add(mri_filelist *l, const char *path, mr_error *err)
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

static const char *name_of(const char *path)
{
    const char *slash = strrchr(path, '/');
    return slash ? slash + 1 : path;
}

static bool regular(const char *path)
{
    struct stat st;
    return stat(path, &st) == 0 && S_ISREG(st.st_mode);
}

static bool is_index(const char *name)
{
    return strstr(name, ".mridx") != NULL; /* ours, and the one being written */
}

/* ---- numbered sets ---- */
typedef struct piece { /* STEM 00003 -of- 00128 ENDING */
    size_t stem_bytes;
    int digits, total_digits;
    uint32_t number, total;
    const char *ending;
} piece;

static bool is_digit(char c) { return c >= '0' && c <= '9'; }

static bool piece_of(const char *name, piece *p)
{
    const char *of = NULL;
    for (const char *at = name; (at = strstr(at, "-of-")); at += 4) of = at;
    if (!of) return false;
    int digits = 0, total_digits = 0;
    while (of - digits > name && is_digit(of[-digits - 1])) digits++;
    while (is_digit(of[4 + total_digits])) total_digits++;
    if (!digits || !total_digits || digits > MOST_DIGITS || total_digits > MOST_DIGITS) return false;
    *p = (piece){.stem_bytes = (size_t)(of - digits - name),
                 .digits = digits,
                 .total_digits = total_digits,
                 .number = (uint32_t)strtoul(of - digits, NULL, 10),
                 .total = (uint32_t)strtoul(of + 4, NULL, 10),
                 .ending = of + 4 + total_digits};
    return p->total > 0 && p->number <= p->total;
}

static bool piece_path(char *out, size_t out_bytes, const char *path, const piece *p, uint32_t number)
{
    const int folder = (int)(name_of(path) - path), stem = (int)p->stem_bytes;
    const int n = snprintf(out, out_bytes, "%.*s%0*u-of-%0*u%s", folder + stem, path, p->digits, number,
                           p->total_digits, p->total, p->ending);
    return n > 0 && (size_t)n < out_bytes;
}

/* All pieces of the set that `path` is one of. */
static int add_set(mri_filelist *l, const char *path, const piece *p, mr_error *err)
{
    char next[MOST_PATH];
    bool from_one = piece_path(next, sizeof next, path, p, 0) && !regular(next);
    from_one = from_one && piece_path(next, sizeof next, path, p, p->total) && regular(next);
    for (uint32_t k = from_one; k < p->total + from_one; k++) {
        if (!piece_path(next, sizeof next, path, p, k))
            return mri_error_place(err, mr_error_set(err, MR_ELIMIT, "the path is too long"), path,
                                   MR_NOWHERE, MR_NOWHERE);
        if (!regular(next)) {
            mr_error_set(
                err, MR_ENOENT,
                "this piece of a set of %u is missing: copy it again, or name the files to use by a pattern",
                p->total);
            return mri_error_place(err, MR_ENOENT, next, MR_NOWHERE, MR_NOWHERE);
        }
        const int rc = add(l, next, err);
        if (rc) return rc;
    }
    return MR_OK;
}

/* ---- order ---- */
static int by_bytes(const void *a, const void *b) { return strcmp(*(char *const *)a, *(char *const *)b); }

/* Pieces of one set stand together, in the order of their numbers. */
static int by_number(const void *a, const void *b)
{
    const char *x = name_of(*(char *const *)a), *y = name_of(*(char *const *)b);
    piece p, q;
    if (!piece_of(x, &p)) p = (piece){.stem_bytes = strlen(x), .ending = ""};
    if (!piece_of(y, &q)) q = (piece){.stem_bytes = strlen(y), .ending = ""};
    const size_t both = p.stem_bytes < q.stem_bytes ? p.stem_bytes : q.stem_bytes;
    int order = memcmp(x, y, both);
    if (!order) order = (p.stem_bytes > q.stem_bytes) - (p.stem_bytes < q.stem_bytes);
    if (!order) order = strcmp(p.ending, q.ending);
    if (!order) order = (p.total > q.total) - (p.total < q.total);
    if (!order) order = (p.number > q.number) - (p.number < q.number);
    return order ? order : strcmp(x, y);
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

static bool accepted_in(int folder, const char *name, mri_accept *accept)
{
    /* a pipe would wait for a writer */
    const int fd = openat(folder, name, O_RDONLY | O_CLOEXEC | O_NONBLOCK);
    struct stat st;
    bool accepted = false, packed;
    if (fd >= 0 && fstat(fd, &st) == 0 && S_ISREG(st.st_mode) && st.st_size > 0)
        mri_filelist_head(fd, name, (uint64_t)st.st_size, accept, &accepted, &packed, NULL);
    if (fd >= 0) close(fd);
    return accepted;
}

/* ---- names of parts ---- */
static bool is_word(const char *text, size_t bytes, const char *const *words)
{
    for (; *words; words++)
        if (strlen(*words) == bytes && strncasecmp(text, *words, bytes) == 0) return true;
    return false;
}

static int part_of_word(const char *text, size_t bytes)
{
    static const char *const train[] = {"train", "training", NULL}, *const test[] = {"test", "testing", NULL},
                             *const validation[] = {"validation", "valid", "val", "eval", "dev", NULL};
    if (is_word(text, bytes, train)) return TRAIN;
    if (is_word(text, bytes, validation)) return VALIDATION;
    return is_word(text, bytes, test) ? TEST : NO_PART;
}

/* The first word of a file's name, or the last in front of its first point: train-00000-of-00128,
 * cifar10-train.tfrecord-00000-of-00001. */
static int part_of(const char *name)
{
    const int first = part_of_word(name, strcspn(name, "-_.0123456789"));
    if (first) return first;
    const size_t end = strcspn(name, ".");
    size_t start = end;
    while (start > 0 && name[start - 1] != '-' && name[start - 1] != '_') start--;
    return part_of_word(name + start, end - start);
}

/* In a data set whose parts are folders it is the folder that says it. */
static int part_of_path(const mri_filelist *all, const char *path)
{
    const char *name = name_of(path), *folder = name - (name > path);
    if (!all->in_folders) return part_of(name);
    while (folder > path && folder[-1] != '/') folder--;
    return part_of_word(folder, strcspn(folder, "/"));
}

/* ---- folders ---- */
typedef struct part_folders {
    char name[PARTS][NAME_MAX + 1];
} part_folders; /* "": there is none */

static bool is_part_folder(int parent, const char *name, mri_accept *accept);

/* Folders inside speak for a folder of pictures with an archive lying beside them, unless they are named as
 * parts and are ours. */
static bool holds_accepted_files(DIR *d, mri_accept *accept, bool may_have_parts)
{
    const struct dirent *e;
    int all_accepted = 0, folders = 0;
    for (int looked = 0; looked < PROBE_ENTRIES && (e = readdir(d));) {
        struct stat st;
        if (e->d_name[0] == '.' || is_index(e->d_name) || fstatat(dirfd(d), e->d_name, &st, 0) != 0) continue;
        looked++;
        const bool is_part =
            may_have_parts && S_ISDIR(st.st_mode) && is_part_folder(dirfd(d), e->d_name, accept);
        folders += S_ISDIR(st.st_mode) && !is_part;
        all_accepted += is_part || (S_ISREG(st.st_mode) && accepted_in(dirfd(d), e->d_name, accept));
    }
    return all_accepted > folders;
}

static bool is_part_folder(int parent, const char *name, mri_accept *accept)
{
    if (!part_of_word(name, strlen(name))) return false;
    const int fd = openat(parent, name, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
    DIR *d = fd >= 0 ? fdopendir(fd) : NULL;
    if (!d) {
        if (fd >= 0) close(fd);
        return false;
    }
    const bool all_accepted = holds_accepted_files(d, accept, false);
    closedir(d);
    return all_accepted;
}

static int note_part_folder(part_folders *parts, const char *folder, const char *name, mr_error *err)
{
    char *known = parts->name[part_of_word(name, strlen(name))];
    if (!known[0]) {
        snprintf(known, sizeof parts->name[0], "%s", name);
        return MR_OK;
    }
    mr_error_set(err, MR_EFORMAT,
                 "%s and %s both name the same part: rename one of these folders, or name the files to use "
                 "by a pattern",
                 known, name);
    return mri_error_place(err, MR_EFORMAT, folder, MR_NOWHERE, MR_NOWHERE);
}

/* parts NULL: files only */
static int read_folder(mri_filelist *found, part_folders *parts, const char *folder, mri_accept *accept,
                       mr_error *err)
{
    DIR *d = opendir(folder);
    if (!d)
        return mri_error_place(err, mr_error_sys(err, errno, "cannot open the folder"), folder, MR_NOWHERE,
                               MR_NOWHERE);
    const struct dirent *e;
    int rc = MR_OK;
    const char *gap = folder[0] && folder[strlen(folder) - 1] == '/' ? "" : "/";
    while (!rc && (e = readdir(d))) {
        char path[MOST_PATH];
        if (e->d_name[0] == '.' || is_index(e->d_name)) continue;
        if (parts && is_part_folder(dirfd(d), e->d_name, accept))
            rc = note_part_folder(parts, folder, e->d_name, err);
        if (rc || !accepted_in(dirfd(d), e->d_name, accept)) continue;
        if ((size_t)snprintf(path, sizeof path, "%s%s%s", folder, gap, e->d_name) >= sizeof path)
            rc = mr_error_set(err, MR_ELIMIT, "the path is too long");
        else rc = add(found, path, err);
    }
    closedir(d);
    return rc;
}

/* The folder's own files, or those of the folders in it that are parts: both at once could belong to any. */
static int read_parts(mri_filelist *found, const char *folder, mri_accept *accept, mr_error *err)
{
    part_folders parts = {0};
    int rc = read_folder(found, &parts, folder, accept, err);
    const bool own = found->count > 0;
    for (int part = TRAIN; !rc && part < PARTS; part++) {
        char path[MOST_PATH];
        const char *gap = folder[strlen(folder) - 1] == '/' ? "" : "/";
        if (!parts.name[part][0]) continue;
        if (own) {
            mr_error_set(err, MR_EFORMAT,
                         "beside it lies a folder %s of such files, so that it belongs to no part: move it, "
                         "or name the "
                         "files to use by a pattern",
                         parts.name[part]);
            return mri_error_place(err, MR_EFORMAT, found->path[0], MR_NOWHERE, MR_NOWHERE);
        }
        found->in_folders = true;
        if ((size_t)snprintf(path, sizeof path, "%s%s%s", folder, gap, parts.name[part]) >= sizeof path)
            rc = mr_error_set(err, MR_ELIMIT, "the path is too long");
        else rc = read_folder(found, NULL, path, accept, err);
    }
    return rc;
}

/* Of x and x.gz, x.gz goes. */
static void drop_packed_twins(mri_filelist *l)
{
    qsort(l->path, l->count, sizeof *l->path, by_bytes);
    uint32_t kept = 0;
    for (uint32_t k = 0; k < l->count; k++) {
        char *path = l->path[k], plain[MOST_PATH];
        const size_t len = strlen(path);
        bool twin = false;
        if (len > 3 && len < sizeof plain && strcmp(path + len - 3, ".gz") == 0) {
            memcpy(plain, path, len - 3);
            plain[len - 3] = '\0';
            const char *key = plain; /* what was kept is sorted, and x stands before x.gz */
            twin = bsearch(&key, l->path, kept, sizeof *l->path, by_bytes) != NULL;
        }
        if (twin) free(path);
        else l->path[kept++] = path;
    }
    l->count = kept;
}

static int choose_part(mri_filelist *out, const mri_filelist *all, mr_split split, int *part, mr_error *err)
{
    uint32_t count[PARTS] = {0};
    const char *no_part = NULL;
    for (uint32_t k = 0; k < all->count; k++) {
        const int of = part_of_path(all, all->path[k]);
        count[of]++;
        if (of == NO_PART) no_part = all->path[k];
    }
    *part = NO_PART;
    if (count[NO_PART] == all->count) return MR_OK;
    if (no_part) {
        mr_error_set(
            err, MR_EFORMAT,
            "other files here are named train, validation or test, this one is none of them: move it, or "
            "name the files to use by a pattern");
        return mri_error_place(err, MR_EFORMAT, no_part, MR_NOWHERE, MR_NOWHERE);
    }
    out->has_test = count[VALIDATION] || count[TEST];
    const int test = count[VALIDATION] ? VALIDATION : TEST;
    *part = split == MR_SPLIT_TEST || (split == MR_SPLIT_AUTO && !count[TRAIN]) ? test : TRAIN;
    if (count[*part]) return MR_OK;
    return mr_error_set(err, MR_ENOENT, "the data has no %s part", *part == TRAIN ? "train" : "test");
}

/* Numbered sets made whole, single files as they are. */
static int add_part(mri_filelist *out, const mri_filelist *all, int part, mr_error *err)
{
    piece last = {0}, p;
    int rc = MR_OK;
    for (uint32_t k = 0; !rc && k < all->count; k++) {
        const char *path = all->path[k], *name = name_of(path);
        if (part != NO_PART && part_of_path(all, path) != part) continue;
        if (!piece_of(name, &p)) {
            rc = add(out, path, err);
            last.total = 0;
            continue;
        }
        const char *before = out->count ? name_of(out->path[out->count - 1]) : "";
        const bool same_name = last.total && p.stem_bytes == last.stem_bytes &&
                               strncmp(before, name, p.stem_bytes) == 0 && strcmp(p.ending, last.ending) == 0;
        if (same_name && p.total == last.total) continue; /* added with its set */
        if (same_name) {
            mr_error_set(
                err, MR_EFORMAT,
                "a set of %u pieces and one of %u under the same name: remove the older one, or name the "
                "files to use by a pattern",
                last.total, p.total);
            return mri_error_place(err, MR_EFORMAT, path, MR_NOWHERE, MR_NOWHERE);
        }
        rc = add_set(out, path, &p, err);
        last = p;
    }
    return rc;
}

static int find_in_folder(mri_filelist *out, const char *folder, mr_split split, mr_error *err)
{
    mri_filelist all = {0};
    int part, rc = read_parts(&all, folder, out->accept, err);
    if (!rc && all.count == 0) {
        mr_error_set(err, MR_ENOENT,
                     "no file of this format in the folder (what a file is shows in its first bytes, not in "
                     "its name)");
        rc = mri_error_place(err, MR_ENOENT, folder, MR_NOWHERE, MR_NOWHERE);
    }
    if (!rc) {
        drop_packed_twins(&all);
        qsort(all.path, all.count, sizeof *all.path, by_number);
        rc = choose_part(out, &all, split, &part, err);
    }
    if (!rc) rc = add_part(out, &all, part, err);
    mri_filelist_fini(&all);
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
        if (a == 0 || a > MOST_DIGITS || strncmp(low + a, "..", 2) != 0) continue;
        const char *high = low + a + 2;
        const size_t b = strspn(high, "0123456789");
        if (b == 0 || b > MOST_DIGITS || high[b] != '}') continue;
        const bool padded = (low[0] == '0' && a > 1) || (high[0] == '0' && b > 1);
        *r = (range){(size_t)(at - pattern), padded ? (int)(a > b ? a : b) : 1,
                     (uint32_t)strtoul(low, NULL, 10), (uint32_t)strtoul(high, NULL, 10), high + b + 1};
        return true;
    }
    return false;
}

static int add_matches(mri_filelist *l, const char *pattern, uint32_t most, mr_error *err)
{
    glob_t g;
    const uint32_t before = l->count;
    const int said = glob(pattern, GLOB_NOSORT, NULL, &g);
    if (said == GLOB_NOSPACE) return no_memory(err);
    int rc = MR_OK;
    for (size_t k = 0; said == 0 && !rc && k < g.gl_pathc && l->count < most; k++)
        if (!is_index(name_of(g.gl_pathv[k])) && regular(g.gl_pathv[k])) rc = add(l, g.gl_pathv[k], err);
    if (said == 0) globfree(&g);
    if (!rc && l->count == before)
        rc = mri_error_place(err, mr_error_set(err, MR_ENOENT, "no file matches"), pattern, MR_NOWHERE,
                             MR_NOWHERE);
    if (!rc) qsort(l->path + before, l->count - before, sizeof *l->path, by_number);
    return rc;
}

static int add_named(mri_filelist *l, const char *path, mr_error *err)
{
    if (regular(path)) return add(l, path, err);
    return mri_error_place(err, mr_error_set(err, MR_ENOENT, "no such file; the pattern asks for it"), path,
                           MR_NOWHERE, MR_NOWHERE);
}

/* Deep as there are ranges in the pattern; a path has room for no more than MOST_PATH / 6 of them. */
static int add_pattern(mri_filelist *l, const char *pattern, uint32_t most, mr_error *err)
{
    range r;
    if (!range_of(pattern, &r))
        return strpbrk(pattern, "*?") ? add_matches(l, pattern, most, err) : add_named(l, pattern, err);
    if (r.from > r.to) return mr_error_set(err, MR_EINVAL, "the range {%u..%u} runs backwards", r.from, r.to);
    const size_t bytes = strlen(pattern) + MOST_DIGITS + 1;
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
    qsort(sorted, l->count, sizeof *sorted, by_bytes);
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

static int find_pattern(mri_filelist *out, const char *pattern, mr_error *err)
{
    const int rc = add_pattern(out, pattern, UINT32_MAX, err);
    return rc ? rc : check_once(out, pattern, err);
}

/* ---- find, probe ---- */
static int find_files(mri_filelist *out, const char *path, mr_split split, mr_error *err)
{
    struct stat st;
    piece p;
    if (stat(path, &st) != 0) {
        const int code = errno;
        if (code == ENOENT && strlen(path) < MOST_PATH && mri_filelist_pattern(path))
            return find_pattern(out, path, err);
        return mri_error_place(err, mr_error_sys(err, code, "cannot look at it"), path, MR_NOWHERE,
                               MR_NOWHERE);
    }
    if (S_ISDIR(st.st_mode)) return find_in_folder(out, path, split, err);
    if (!S_ISREG(st.st_mode))
        return mri_error_place(err, mr_error_set(err, MR_EFORMAT, "neither a file nor a folder"), path,
                               MR_NOWHERE, MR_NOWHERE);
    return piece_of(name_of(path), &p) ? add_set(out, path, &p, err) : add(out, path, err);
}

int mri_filelist_find(mri_filelist *out, const char *path, mr_split split, mri_accept *accept, mr_error *err)
{
    *out = (mri_filelist){.accept = accept};
    int rc = find_files(out, path, split, err);
    if (!rc && split == MR_SPLIT_TEST && !out->has_test)
        rc = mri_error_place(err, mr_error_set(err, MR_ENOENT, "the data has no test part"), path, MR_NOWHERE,
                             MR_NOWHERE);
    if (rc) mri_filelist_fini(out);
    return rc;
}

static bool probe_folder(const char *path, mri_accept *accept)
{
    DIR *d = opendir(path);
    if (!d) return false;
    const bool all_accepted = holds_accepted_files(d, accept, true);
    closedir(d);
    return all_accepted;
}

bool mri_filelist_probe(const char *path, mri_accept *accept)
{
    struct stat st;
    if (stat(path, &st) == 0) return S_ISDIR(st.st_mode) && probe_folder(path, accept);
    mri_filelist l = {0};
    const bool found = strlen(path) < MOST_PATH && mri_filelist_pattern(path) &&
                       add_pattern(&l, path, 1, NULL) == MR_OK && l.count > 0 &&
                       accepted_in(AT_FDCWD, l.path[0], accept);
    mri_filelist_fini(&l);
    return found;
}
