/* pipeline/repair/repair_set.c: which files a damaged set consists of.
 *
 * PATH is a shard list, a file, a folder, a pattern of the shell, or the common beginning of the files'
 * names. Names show the missing files: files in the list, and numbers between. The functions in
 * formats/fileset refuse damaged or incomplete sets. */
#include <errno.h>
#include <fcntl.h>
#include <glob.h>
#include <inttypes.h>
#include <stdio.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/dir.h"
#include "base/util.h"
#include "formats/fileset/file_names.h"
#include "formats/record/mrec_salvage.h"
#include "formats/tar/tar.h"
#include "formats/tar/tar_salvage.h"
#include "formats/tfrecord/tfrecord.h"
#include "formats/tfrecord/tfrecord_salvage.h"
#include "pipeline/repair/repair.h"

enum { MOST_NUMBER = 10000000 };

static int no_memory(mr_error *err)
{
    return mr_error_set(err, MR_ENOMEM, "no memory for the names of files");
}

/* Keep the first error of the system that prevents a look at the folder. A missing file is an answer. */
static void note(mri_repair_set *s, const char *path)
{
    if (errno == ENOENT || errno == ENOTDIR || errno == ELOOP || s->why) return;
    s->why = errno;
    snprintf(s->why_path, sizeof s->why_path, "%s", path);
}

/* The first bytes of a file; less than 0: none. unreadable: a file that may not be read is noted, too. */
static ssize_t read_head(mri_repair_set *s, const char *path, void *head, size_t bytes, bool unreadable)
{
    const int fd = open(path, O_RDONLY | O_CLOEXEC | O_NONBLOCK);
    const ssize_t n = fd < 0 ? -1 : pread(fd, head, bytes, 0);
    const int why = errno;
    if (fd >= 0) close(fd);
    errno = why;
    if (n < 0 && errno != EISDIR && (unreadable || (errno != EACCES && errno != EPERM))) note(s, path);
    return n;
}

/* ---- kinds ---- */
static bool ends(const char *name, const char *with)
{
    const size_t n = strlen(name), m = strlen(with);
    return n > m && strcmp(name + n - m, with) == 0;
}

static const mri_salvage_ops *kind_by_name(const char *path)
{
    const char *name = mri_file_name(path);
    if (ends(name, ".mrec")) return &mri_salvage_mrec;
    if (ends(name, ".tar")) return &mri_salvage_tar;
    if (strstr(name, "tfrecord")) return &mri_salvage_tfrecord;
    return NULL;
}

static const mri_salvage_ops *kind_by_content(mri_repair_set *s, const char *path)
{
    uint8_t head[512];
    uint64_t bytes;
    const ssize_t n = read_head(s, path, head, sizeof head, false);
    if (n >= 5 && memcmp(head + 1, "MREC", 4) == 0) return &mri_salvage_mrec;
    if (n == sizeof head && mri_tar_is_header(head, sizeof head)) return &mri_salvage_tar;
    if (n >= MRI_TFRECORD_HEAD && mri_tfrecord_length(head, &bytes)) return &mri_salvage_tfrecord;
    return NULL;
}

static const mri_salvage_ops *kind_of(mri_repair_set *s, const char *path)
{
    const mri_salvage_ops *kind = kind_by_content(s, path);
    return kind ? kind : kind_by_name(path);
}

static bool is_file(mri_repair_set *s, const char *path)
{
    struct stat st;
    if (stat(path, &st) == 0) return S_ISREG(st.st_mode);
    note(s, path);
    return false;
}

/* ---- the files ---- */
static int add(mri_repair_set *s, const char *path, mr_error *err)
{
    if (s->count == s->cap) {
        const uint32_t cap = s->cap ? 2 * s->cap : 16;
        mri_repair_file *more = realloc(s->file, cap * sizeof *more);
        if (!more) return no_memory(err);
        s->file = more;
        s->cap = cap;
    }
    mri_repair_file *f = &s->file[s->count];
    *f = (mri_repair_file){.path = strdup(path), .there = is_file(s, path)};
    f->first_source = f->last_source = MR_NOWHERE;
    if (!f->path) return no_memory(err);
    s->count++;
    return MR_OK;
}

/* STEM-00012.mrec, STEM-000012.tar: the text before and after the number. */
typedef struct numbered {
    size_t stem_bytes;
    int digits;
    uint64_t number;
    const char *ending;
} numbered;

static bool number_of(const char *path, numbered *n)
{
    const char *name = mri_file_name(path);
    const char *dot = strrchr(name, '.');
    if (!dot || dot == name) return false;
    const char *at = dot;
    while (at > name && at[-1] >= '0' && at[-1] <= '9') at--;
    if (at == dot || dot - at > 9) return false;
    *n = (numbered){(size_t)(at - path), (int)(dot - at), 0, dot};
    for (; at < dot; at++) n->number = n->number * 10 + (uint64_t)(*at - '0');
    return true;
}

static int by_number(const void *a, const void *b)
{
    const mri_repair_file *x = a, *y = b;
    return mri_paths_by_number(&x->path, &y->path);
}

static void sort(mri_repair_set *s)
{
    if (s->count > 1) qsort(s->file, s->count, sizeof *s->file, by_number);
}

/* Is a file of this path among the `found` files? */
static bool has(const mri_repair_set *s, uint32_t found, const char *path)
{
    for (uint32_t k = 0; k < found; k++)
        if (strcmp(s->file[k].path, path) == 0) return true;
    return false;
}

/* Names with -of-: the rest of the set that the first one is of. */
static int add_pieces(mri_repair_set *s, const mri_piece *p, mr_error *err)
{
    char path[MRI_MOST_PATH];
    const char *like = s->file[0].path;
    const uint32_t found = s->count;
    uint32_t first = 0;
    if (p->total > MOST_NUMBER) return MR_OK;
    for (uint32_t k = 0; k < found; k++) {
        mri_piece other;
        if (mri_piece_of(mri_file_name(s->file[k].path), &other) && other.number == p->total) first = 1;
    }
    for (uint32_t k = 0; k < p->total; k++) {
        if (!mri_piece_path(path, sizeof path, like, p, first + k) || has(s, found, path)) continue;
        const int rc = add(s, path, err);
        if (rc) return rc;
    }
    s->counted = true;
    sort(s);
    return MR_OK;
}

/* Add the missing numbers between the existing ones, from 0, where our own sets begin. */
static int add_gaps(mri_repair_set *s, mr_error *err)
{
    numbered first, last, n;
    mri_piece p;
    const uint32_t found = s->count;
    if (mri_piece_of(mri_file_name(s->file[0].path), &p)) return add_pieces(s, &p, err);
    if (!number_of(s->file[0].path, &first) || !number_of(s->file[found - 1].path, &last)) return MR_OK;
    if (last.stem_bytes != first.stem_bytes ||
        memcmp(s->file[0].path, s->file[found - 1].path, first.stem_bytes) != 0)
        return MR_OK;
    if (last.number > MOST_NUMBER || (last.number + 1) / 64 > found) return MR_OK; /* no numbers of files */
    for (uint32_t k = 0, at = 0; k <= last.number; k++) {
        if (at < found && number_of(s->file[at].path, &n) && n.number == k) {
            at++;
            continue;
        }
        char path[MRI_MOST_PATH];
        snprintf(path, sizeof path, "%.*s%0*u%s", (int)first.stem_bytes, s->file[0].path, first.digits, k,
                 first.ending);
        const int rc = add(s, path, err);
        if (rc) return rc;
        if (k == UINT32_MAX) break;
    }
    sort(s);
    return MR_OK;
}

/* ---- the ways to name a set ---- */
static int take_list(mri_repair_set *s, const char *path, mr_error *err)
{
    mri_shards list;
    int rc = mri_shards_read(&list, path, err);
    if (rc) return rc;
    for (uint32_t k = 0; !rc && k < list.count; k++) {
        char *file = mri_shards_resolve(path, list.shard[k].path);
        rc = file ? add(s, file, err) : no_memory(err);
        free(file);
        if (rc) break;
        s->file[k].listed = list.version == MRI_SHARDS_FACTS;
        s->file[k].line = list.shard[k];
        s->file[k].line.path = NULL;
    }
    mri_shards_fini(&list);
    s->ops = &mri_salvage_mrec;
    s->list_there = true;
    return rc;
}

static int take_pattern(mri_repair_set *s, const char *pattern, mr_error *err)
{
    glob_t g;
    const int got = glob(pattern, GLOB_BRACE, NULL, &g);
    int rc = MR_OK;
    if (got == GLOB_NOSPACE) return no_memory(err);
    for (size_t k = 0; got == 0 && !rc && k < g.gl_pathc; k++)
        if (is_file(s, g.gl_pathv[k]) && kind_of(s, g.gl_pathv[k]) &&
            !mri_is_index_name(mri_file_name(g.gl_pathv[k])) && !ends(g.gl_pathv[k], ".part"))
            rc = add(s, g.gl_pathv[k], err);
    if (got == 0) globfree(&g);
    if (!rc) sort(s);
    return rc;
}

/* Take the common beginning of the names of a set's files. */
static int take_stem(mri_repair_set *s, const char *path, mr_error *err)
{
    static const char *const tails[] = {"-[0-9]*.mrec", "-[0-9]*.tar", "-[0-9]*-of-[0-9]*"};
    static const char *const own[] = {".mrec", ".tar", ""};
    int rc = MR_OK;
    for (size_t k = 0; !rc && s->count == 0 && k < MRI_ARRAY_COUNT(tails); k++) {
        char pattern[MRI_MOST_PATH];
        size_t at = 0, n = strlen(path) - (ends(path, own[k]) ? strlen(own[k]) : 0);
        for (size_t c = 0; c < n && at + 8 < sizeof pattern; c++) {
            if (strchr("*?[{}\\", path[c])) pattern[at++] = '\\';
            pattern[at++] = path[c];
        }
        snprintf(pattern + at, sizeof pattern - at, "%s", tails[k]);
        rc = take_pattern(s, pattern, err);
    }
    return rc;
}

static int take_folder(mri_repair_set *s, const char *folder, mr_error *err)
{
    DIR *d = opendir(folder);
    int rc = MR_OK;
    if (!d)
        return mri_error_place(err, mr_error_sys(err, errno, "cannot list the folder"), folder, MR_NOWHERE,
                               MR_NOWHERE);
    for (struct dirent *e; !rc && (e = mri_dir_next(d));) {
        char path[MRI_MOST_PATH];
        if (e->d_name[0] == '.' || mri_is_index_name(e->d_name) || ends(e->d_name, ".part")) continue;
        if (snprintf(path, sizeof path, "%s/%s", folder, e->d_name) >= (int)sizeof path) continue;
        if (is_file(s, path) && kind_of(s, path)) rc = add(s, path, err);
    }
    if (!rc && errno)
        rc = mri_error_place(err, mr_error_sys(err, errno, "cannot list the folder"), folder, MR_NOWHERE,
                             MR_NOWHERE);
    closedir(d);
    if (!rc) sort(s);
    return rc;
}

static bool is_list(mri_repair_set *s, const char *path)
{
    char head[32];
    const ssize_t n = read_head(s, path, head, sizeof head, true);
    return n > 0 && mri_shards_magic(head, (size_t)n);
}

/* Of the files the kind that most are; others are taken out. */
static int settle_kind(mri_repair_set *s, const char *path, mr_error *err)
{
    static const mri_salvage_ops *const kinds[] = {&mri_salvage_mrec, &mri_salvage_tar,
                                                   &mri_salvage_tfrecord};
    uint32_t most = 0;
    for (size_t k = 0; k < MRI_ARRAY_COUNT(kinds); k++) {
        uint32_t n = 0;
        for (uint32_t i = 0; i < s->count; i++) n += kind_of(s, s->file[i].path) == kinds[k];
        if (n > most) most = n, s->ops = kinds[k];
    }
    uint32_t kept = 0;
    for (uint32_t i = 0; i < s->count; i++) {
        const bool listed = s->ops == &mri_salvage_mrec && is_list(s, s->file[i].path);
        if (most && kind_of(s, s->file[i].path) == s->ops && !listed) {
            const mri_repair_file f = s->file[i];
            s->file[kept++] = f;
        } else free(s->file[i].path);
    }
    s->count = kept;
    if (kept) return MR_OK;
    mr_error_set(
        err, MR_EUNSUPPORTED,
        "no record files (.mrec), tar archives or TFRecord files here, which are what can be repaired");
    return mri_error_place(err, MR_EUNSUPPORTED, path, MR_NOWHERE, MR_NOWHERE);
}

/* STEM.mrec of STEM-00000.mrec. */
static int name_list(mri_repair_set *s, mr_error *err)
{
    numbered n;
    char name[MRI_MOST_PATH];
    if (s->list || s->ops != &mri_salvage_mrec || s->alone) return MR_OK;
    if (!number_of(s->file[0].path, &n)) return MR_OK;
    int stem = (int)n.stem_bytes;
    if (stem > 0 && s->file[0].path[stem - 1] == '-') stem--;
    snprintf(name, sizeof name, "%.*s", stem, s->file[0].path);
    if (!is_list(s, name)) snprintf(name, sizeof name, "%.*s.mrec", stem, s->file[0].path);
    s->list = strdup(name);
    return s->list ? MR_OK : no_memory(err);
}

/* The list that pattern or folder did not name may be there: it knows more than the names do. */
static int use_list(mri_repair_set *s, mr_error *err)
{
    if (!s->list || s->list_there || !is_list(s, s->list)) return MR_OK;
    mri_repair_set other = {0};
    mr_error why = MR_ERROR_INIT;
    const int rc = take_list(&other, s->list, &why);
    if (rc) {
        mri_repair_set_fini(&other);
        if (!mri_repair_is_damage(rc)) {
            if (err) *err = why;
            return rc;
        }
        s->list_wrong = strdup(why.text);
        return s->list_wrong ? MR_OK : no_memory(err);
    }
    other.list = s->list;
    if (!other.why) {
        other.why = s->why;
        memcpy(other.why_path, s->why_path, sizeof other.why_path);
    }
    s->list = NULL;
    mri_repair_set_fini(s);
    *s = other;
    return MR_OK;
}

int mri_repair_set_find(mri_repair_set *s, const char *path, mr_error *err)
{
    struct stat st;
    mri_piece piece;
    int rc = MR_OK;
    *s = (mri_repair_set){0};
    const bool there = stat(path, &st) == 0;
    if (!there) note(s, path);
    if (there && S_ISDIR(st.st_mode)) rc = take_folder(s, path, err);
    else if (there && is_list(s, path)) {
        if (!(s->list = strdup(path))) rc = no_memory(err);
        else {
            rc = use_list(s, err);
            if (!rc && s->list_wrong) rc = take_stem(s, path, err);
            if (!rc && s->list_wrong && s->count == 0)
                rc = mr_error_set(err, MR_EFORMAT, "%s; no files are called like it", s->list_wrong);
        }
    } else if (there) {
        rc = add(s, path, err);
        s->alone = !mri_piece_of(mri_file_name(path), &piece);
    } else if (strpbrk(path, "*?[{")) rc = take_pattern(s, path, err);
    else rc = take_stem(s, path, err);
    if (!rc && s->count == 0 && !there)
        rc = mri_error_place(
            err,
            mr_error_set(err, MR_ENOENT,
                         "no such file, and no files of a set that are called like it (NAME-00000.mrec, "
                         "NAME-000000.tar, NAME-00000-of-00128)"),
            path, MR_NOWHERE, MR_NOWHERE);
    if (!rc && !s->list_there) rc = settle_kind(s, path, err);
    if (!rc && !s->list_there && !s->alone) rc = add_gaps(s, err);
    if (!rc) rc = name_list(s, err);
    if (!rc) rc = use_list(s, err);
    if (s->why) /* without it some files may not have been found */
        rc = mri_error_place(err, mr_error_sys(err, s->why, "cannot look at it"), s->why_path, MR_NOWHERE,
                             MR_NOWHERE);
    if (rc) mri_repair_set_fini(s);
    return rc;
}

int mri_repair_set_add_copy(mri_repair_set *s, const char *copy, mr_error *err)
{
    mri_repair_set other;
    if (s->alone || s->list_there || s->counted) return MR_OK;
    mr_error why = MR_ERROR_INIT;
    int rc = mri_repair_set_find(&other, copy, &why);
    if (rc && mri_repair_is_damage(rc)) return MR_OK;
    if (rc && err) *err = why;
    if (rc) return rc;
    const char *like = s->file[0].path;
    for (uint32_t k = 0; !rc && other.ops == s->ops && k < other.count; k++) {
        char path[MRI_MOST_PATH];
        const char *name = mri_file_name(other.file[k].path);
        const int n = snprintf(path, sizeof path, "%.*s%s", (int)(mri_file_name(like) - like), like, name);
        if (!other.file[k].there || n >= (int)sizeof path || has(s, s->count, path) ||
            mri_name_shape(name) != mri_name_shape(mri_file_name(like)))
            continue;
        rc = add(s, path, err);
        like = s->file[0].path;
    }
    mri_repair_set_fini(&other);
    sort(s);
    return rc;
}

void mri_repair_set_fini(mri_repair_set *s)
{
    for (uint32_t k = 0; k < s->count; k++) {
        free(s->file[k].path);
        free(s->file[k].at);
        free(s->file[k].other);
    }
    free(s->file);
    free(s->list);
    free(s->list_wrong);
    *s = (mri_repair_set){0};
}
