/* formats/open.c: the table of formats; opening a data set: its format is detected from its content, or named
 * by the caller.
 *
 * No format is named below the table. */
#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <glob.h>
#include <stdio.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/abi.h"
#include "base/floats.h"
#include "base/util.h"
#include "formats/fileset/file_names.h"
#include "formats/fileset/fileset.h"
#include "formats/source/source.h"
#include "formats/storage/storage.h"

/* Each is one mri_source_NAME. Surest signature first; "folder" takes every folder that no other format
 * knows. */
#define FORMATS(one) /* clang-format off */ \
    one(mrec) one(shards) one(mix) one(archive) one(tar) one(recordio) one(mds) one(idx) one(npy) \
    one(tfrecord) one(cifar) one(pixels) one(csv) one(sequence) one(folder) /* clang-format on */

#define FORMAT_DECLARED(name) extern const mri_source_ops mri_source_##name;
FORMATS(FORMAT_DECLARED)
#define FORMAT_LISTED(name) &mri_source_##name,
static const mri_source_ops *const formats[] = {FORMATS(FORMAT_LISTED)};

uint32_t mr_source_format_count(void) { return (uint32_t)MRI_ARRAY_COUNT(formats); }
const char *mr_source_format_name(uint32_t at)
{
    return at < MRI_ARRAY_COUNT(formats) ? formats[at]->name : NULL;
}
const char *mr_source_format_help(uint32_t at)
{
    return at < MRI_ARRAY_COUNT(formats) ? formats[at]->help : NULL;
}

/* ---- which format ---- */
static int list_formats(mr_error *err, const char *path, const char *what)
{
    char names[512];
    size_t at = 0;
    names[0] = '\0';
    for (size_t k = 0; k < MRI_ARRAY_COUNT(formats) && at < sizeof names; k++)
        at += (size_t)snprintf(names + at, sizeof names - at, "%s%s", k ? ", " : "", formats[k]->name);
    mr_error_set(err, MR_EUNSUPPORTED, "%s; known formats: %s", what, names);
    return mri_error_place(err, MR_EUNSUPPORTED, path, MR_NOWHERE, MR_NOWHERE);
}

/* "cifar" also answers to "cifar10", as mr_source_info calls it. */
static const mri_source_ops *by_name(const char *name)
{
    for (size_t k = 0; k < MRI_ARRAY_COUNT(formats); k++) {
        const size_t len = strlen(formats[k]->name);
        if (strncmp(name, formats[k]->name, len) == 0 &&
            strspn(name + len, "0123456789") == strlen(name + len))
            return formats[k];
    }
    return NULL;
}

static int read_head(const char *path, uint8_t *head, size_t *bytes, mr_error *err)
{
    const int fd = open(path, O_RDONLY | O_CLOEXEC);
    if (fd < 0)
        return mri_error_place(err, mr_error_sys(err, errno, "cannot open"), path, MR_NOWHERE, MR_NOWHERE);
    const int rc = mri_pread_all(fd, head, *bytes, 0, path, err);
    close(fd);
    return rc;
}

/* A set written as several files has a number in each of their names, after the name or in front of its
 * ending. */
static bool find_pieces(const char *path, char *first, size_t first_bytes)
{
    const char *slash = strrchr(path, '/'), *dot = strrchr(path, '.');
    const size_t stem =
        dot && dot > path && (!slash || dot > slash + 1) ? (size_t)(dot - path) : strlen(path);
    char pattern[4096];
    bool found = false;
    if (strpbrk(path, "*?[{\\")) return false;
    for (int k = 0; k < 2 && !found; k++) {
        glob_t g;
        if (k) snprintf(pattern, sizeof pattern, "%.*s-[0-9]*%s", (int)stem, path, path + stem);
        else snprintf(pattern, sizeof pattern, "%s-[0-9]*", path);
        if (glob(pattern, 0, NULL, &g) != 0) continue;
        found = g.gl_pathc > 0;
        if (found) snprintf(first, first_bytes, "%s", g.gl_pathv[0]);
        globfree(&g);
    }
    return found;
}

static int not_there(const char *path, int code, mr_error *err)
{
    char first[512];
    const int rc = mr_error_sys(err, code, "cannot look at it");
    if (code == ENOENT && find_pieces(path, first, sizeof first))
        mr_error_set(
            err, rc,
            "there is no file of this name, but pieces of one, the first is %s: name their list, their "
            "folder or one of the numbered set",
            first);
    return mri_error_place(err, rc, path, MR_NOWHERE, MR_NOWHERE);
}

/* Opening a pipe would wait for somebody to write into it, for ever. A pattern is no file: st->st_mode stays
 * 0. */
static int look_at(const char *path, struct stat *st, mr_error *err)
{
    *st = (struct stat){0};
    const char *scheme_end = strstr(path, "://");
    if (scheme_end && stat(path, st) != 0 &&
        (size_t)(scheme_end - path) ==
            strspn(path, "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789+.-"))
        return mri_error_place(
            err,
            mr_error_set(err, MR_EUNSUPPORTED,
                         "addresses of this kind are not read: expected a file, a folder, a "
                         "pattern, http:// or https:// (a store's https address works, as do "
                         "signed ones), or a path where it is mounted"),
            path, MR_NOWHERE, MR_NOWHERE);
    if (stat(path, st) != 0 && !(errno == ENOENT && mri_filelist_pattern(path)))
        return not_there(path, errno, err);
    if (st->st_mode && !S_ISDIR(st->st_mode) && !S_ISREG(st->st_mode))
        return mri_error_place(err, mr_error_set(err, MR_EFORMAT, "neither a file nor a folder"), path,
                               MR_NOWHERE, MR_NOWHERE);
    return MR_OK;
}

static bool ends_in_mrec(const char *path)
{
    const size_t n = strlen(path);
    return n > 5 && strcmp(path + n - 5, ".mrec") == 0;
}

static int find_format(const mri_source_ops **out, const char *path, const struct stat *st, mr_error *err)
{
    uint8_t head[MRI_PROBE_BYTES], inner[512];
    mr_error trouble = MR_ERROR_INIT;
    mri_probe p = {.path = path,
                   .is_folder = S_ISDIR(st->st_mode),
                   .is_pattern = st->st_mode == 0,
                   .head = head,
                   .inner = head,
                   .trouble = &trouble};
    if (!p.is_folder && !p.is_pattern) {
        p.bytes = (uint64_t)st->st_size;
        p.head_bytes = p.inner_bytes = (size_t)mri_min_u64(p.bytes, sizeof head);
        if (p.bytes == 0)
            return mri_error_place(err, mr_error_set(err, MR_EFORMAT, "the file is empty (0 bytes)"), path, 0,
                                   MR_NOWHERE);
        const int rc = read_head(path, head, &p.head_bytes, err);
        if (rc) return rc;
        const size_t unpacked =
            mri_is_packed(head, p.head_bytes) ? mri_gunzip_head(head, p.head_bytes, inner, sizeof inner) : 0;
        if (unpacked) { /* or it only began like something packed */
            p.inner = inner;
            p.inner_bytes = unpacked;
        }
    }
    for (size_t k = 0; k < MRI_ARRAY_COUNT(formats); k++) {
        const bool found = formats[k]->probe(&p);
        if (trouble.code != MR_OK) {
            if (err) *err = trouble;
            return trouble.code;
        }
        if (!found) continue;
        *out = formats[k];
        return MR_OK;
    }
    const char *placeholder = mri_placeholder_describe(p.head, p.head_bytes);
    if (placeholder)
        return mri_error_place(err, mr_error_set(err, MR_EFORMAT, "%s", placeholder), path, 0, MR_NOWHERE);
    if (p.is_pattern && ends_in_mrec(path)) {
        mr_error_set(
            err, MR_EUNSUPPORTED,
            "record files are not named by a pattern but by their list, NAME.mrec beside "
            "NAME-00000.mrec: open that. Where the list or a file is lost, 'millrace repair' with this "
            "pattern makes the list again");
        return mri_error_place(err, MR_EUNSUPPORTED, path, MR_NOWHERE, MR_NOWHERE);
    }
    if (p.is_pattern)
        return list_formats(err, path, "no files of a format known here are named by this pattern");
    return list_formats(err, path, "no format known here begins like this");
}

/* ---- suggestions ---- */
/* A folder that holds no samples may hold data sets: the folder above the one that an archive makes, record
 * files side by side, an archive next to its unpacked folder. Their names go into the error, with the
 * formats. For errors only: folders are listed, archives are not opened. */
enum { INSIDE_LOOKED_AT = 64, INSIDE_TOLD = 3, INSIDE_LEVELS = 3 };

typedef struct inside {
    const mr_source_config *cfg;
    uint32_t looked_at, found;
    char text[400];
} inside;

static int no_hidden(const struct dirent *e)
{
    return e->d_name[0] != '.' && !mri_is_index_name(e->d_name) && !mri_is_remainder(e->d_name);
}

/* By names without endings: the list s.mrec stands in front of s-00000.mrec, which it names. */
static int by_stem(const void *a, const void *b)
{
    const char *x = (*(const struct dirent *const *)a)->d_name,
               *y = (*(const struct dirent *const *)b)->d_name;
    const char *x_end = strrchr(x, '.'), *y_end = strrchr(y, '.');
    const size_t n = x_end ? (size_t)(x_end - x) : strlen(x), m = y_end ? (size_t)(y_end - y) : strlen(y);
    const int order = memcmp(x, y, n < m ? n : m);
    return order ? order : n == m ? strcmp(x, y) : n < m ? -1 : 1;
}

static void look_inside(inside *in, const char *folder, int level);

static void look_at_one(inside *in, const char *path, int level)
{
    struct stat st;
    mr_error unused = MR_ERROR_INIT;
    const mri_source_ops *ops = NULL;
    if (stat(path, &st) != 0 || !(S_ISDIR(st.st_mode) || S_ISREG(st.st_mode))) return;
    if (find_format(&ops, path, &st, &unused) != MR_OK) return;
    if (ops == formats[MRI_ARRAY_COUNT(formats) - 1]) { /* the one that takes every folder */
        mr_source *src = calloc(1, sizeof *src);
        if (src) src->process = mri_process();
        if (src) src->path = strdup(path);
        if (src) src->ops = ops;
        const int rc = src && src->path ? mri_source_begin(src, in->cfg, &unused) : MR_ENOMEM;
        const bool deeper = rc && src && src->holds_none && level + 1 < INSIDE_LEVELS;
        if (src) mr_source_close(src);
        if (deeper) look_inside(in, path, level + 1);
        if (rc) return;
    }
    const size_t at = strlen(in->text);
    if (in->found++ < INSIDE_TOLD)
        snprintf(in->text + at, sizeof in->text - at, "%s%.120s (%s)", at ? ", " : "", path, ops->name);
}

static void look_inside(inside *in, const char *folder, int level)
{
    struct dirent **entries = NULL;
    const int count = scandir(folder, &entries, no_hidden, NULL);
    if (count > 1) qsort(entries, (size_t)count, sizeof *entries, by_stem);
    for (int k = 0; k < count; k++) {
        char path[4096];
        const char *gap = folder[strlen(folder) - 1] == '/' ? "" : "/";
        const int n = snprintf(path, sizeof path, "%s%s%s", folder, gap, entries[k]->d_name);
        if (n > 0 && (size_t)n < sizeof path && in->looked_at++ < INSIDE_LOOKED_AT)
            look_at_one(in, path, level);
        free(entries[k]);
    }
    free(entries);
}

static void tell_what_is_inside(const mr_source *src, const mr_source_config *cfg, mr_error *err)
{
    inside in = {.cfg = cfg};
    if (!err || !src->holds_none || cfg->format || src->view || mri_stop_asked()) return;
    look_inside(&in, src->path, 0);
    const size_t at = strlen(err->text);
    if (in.found)
        snprintf(err->text + at, sizeof err->text - at, "; what could be opened in it: %s%s", in.text,
                 in.found > INSIDE_TOLD ? ", ..." : "");
}

/* ---- open, close ---- */
static int choose(const mri_source_ops **out, const char *path, const mr_source_config *cfg, mr_error *err)
{
    struct stat st;
    const int rc = look_at(path, &st, err);
    if (rc) return rc;
    if (!cfg->format) return find_format(out, path, &st, err);
    *out = by_name(cfg->format);
    return *out ? MR_OK : list_formats(err, path, "there is no format of this name");
}

static int open_url(mr_source *src, const char *url, const mr_source_config *cfg, mr_error *err)
{
    const mri_remote_config remote = {cfg->remote_folder, cfg->remote_bytes, cfg->stop};
    const int rc = mri_remote_view_open(&src->view, url, cfg->format, &remote, err);
    if (!rc && src->view->is_record) src->ops = &mri_source_mrec;
    return rc;
}

/* A format is open from a URL: does it need nothing else from the server? */
static int check_fetched(mr_source *src, mr_error *err)
{
    const char *shown = src->info.path = src->view->shown;
    if (src->info.file_count > 0 || src->info.count == 0) return MR_OK;
    mr_error_set(
        err, MR_EUNSUPPORTED,
        "its pictures are files of their own, which are not fetched over http: convert them to record "
        "files or a tar where they are");
    return mri_error_place(err, MR_EUNSUPPORTED, shown, MR_NOWHERE, MR_NOWHERE);
}

/* A URL: its content and its local name are determined first. */
static int open_any(mr_source *src, const char *path, mr_source_config *cfg, mr_error *err)
{
    int rc = mri_is_url(path) ? open_url(src, path, cfg, err) : MR_OK;
    if (!rc && !(src->path = strdup(src->view ? src->view->path : path)))
        rc = mr_error_set(err, MR_ENOMEM, "no memory to open a data set");
    if (!rc && !src->ops) rc = choose(&src->ops, src->path, cfg, err);
    if (!rc && (rc = mri_source_begin(src, cfg, err)) != MR_OK) tell_what_is_inside(src, cfg, err);
    if (!rc && src->view) rc = check_fetched(src, err);
    return mri_remote_view_place(src->view, rc, err);
}

static int open_member(mr_source **out, const char *path, const mr_source_config *cfg, mr_error *err);

static int open_one(mr_source **out, const char *path, const mr_source_config *cfg, bool is_member,
                    mr_error *err)
{
    *out = NULL;
    mr_source_config mine;
    mr_source_defaults(&mine);
    int rc = mri_settings_take(&mine, sizeof mine, cfg, "source", err);
    if (rc == MR_OK) rc = mri_source_settings_check(&mine, err);
    if (rc) return rc;
    mr_source *src = calloc(1, sizeof *src);
    if (!src) return mr_error_set(err, MR_ENOMEM, "no memory to open a data set");
    src->process = mri_process();
    src->stop = mine.stop;
    src->open_member = is_member ? NULL : open_member;
    const volatile int *before = mri_stop_at(mine.stop);
    rc = open_any(src, path, &mine, err);
    if (mri_stop_asked()) rc = mri_stopped(err); /* what could not be read for that may be missing in it */
    mri_stop_at(before);
    if (rc) {
        mr_source_close(src);
        return rc;
    }
    *out = src;
    return MR_OK;
}

/* One that another data set names: it names none itself, or there would be no end to it. */
static int open_member(mr_source **out, const char *path, const mr_source_config *cfg, mr_error *err)
{
    return open_one(out, path, cfg, true, err);
}

int mr_source_open(mr_source **out, const char *path, const mr_source_config *cfg, mr_error *err)
{
    MRI_DEFAULT_FLOATS;
    MRI_GIVEN(err, out);
    *out = NULL;
    MRI_GIVEN(err, path);
    return open_one(out, path, cfg, false, err);
}
