/* formats/remote/remote_view.c: see remote_view.h. */
#include "formats/remote/remote_view.h"

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <sys/file.h>
#include <sys/stat.h>
#include <unistd.h>
#include <xxhash.h>

#include "formats/remote/remote_private.h"

enum { HEAD_BYTES = 4096, MOST_FILES = 4096, MOST_DIGITS = 9, MAX_COMPANIONS = 16, MOST_PATH = 4096 };

/* ---- which files ---- */
typedef struct run {   /* HEAD, a number from `from` to `to`, TAIL */
    size_t head, tail; /* where the number begins in the URL, and where the rest does */
    int digits;
    uint32_t from, to;
} run;

static size_t digits_at(const char *text) { return strspn(text, "0123456789"); }

/* NAME-{0000..0146}.tar */
static bool range_of(const char *url, size_t name, size_t end, run *r)
{
    for (size_t at = name; at < end; at++) {
        if (url[at] != '{') continue;
        const size_t a = digits_at(url + at + 1), dots = at + 1 + a;
        if (!a || a > MOST_DIGITS || strncmp(url + dots, "..", 2) != 0) continue;
        const size_t b = digits_at(url + dots + 2), close = dots + 2 + b;
        if (!b || b > MOST_DIGITS || url[close] != '}') continue;
        const bool padded = url[at + 1] == '0' || url[dots + 2] == '0';
        *r = (run){at, close + 1, padded ? (int)mri_max_u64(a, b) : 1,
                   (uint32_t)strtoul(url + at + 1, NULL, 10), (uint32_t)strtoul(url + dots + 2, NULL, 10)};
        return true;
    }
    return false;
}

/* NAME-00003-of-00128.ENDING: numbered from 0, or from 1 when it is the one with the last number. */
static bool piece_of(const char *url, size_t name, size_t end, run *r)
{
    for (size_t of = name; of + 4 < end; of++) {
        if (strncmp(url + of, "-of-", 4) != 0) continue;
        size_t first = of;
        const size_t total_digits = digits_at(url + of + 4);
        while (first > name && url[first - 1] >= '0' && url[first - 1] <= '9') first--;
        if (first == of || !total_digits || of - first > MOST_DIGITS || total_digits > MOST_DIGITS) continue;
        const uint32_t number = (uint32_t)strtoul(url + first, NULL, 10),
                       total = (uint32_t)strtoul(url + of + 4, NULL, 10);
        if (total == 0 || number > total) continue;
        *r = (run){first, of, (int)(of - first), number == total, total - (number != total)};
        return true;
    }
    return false;
}

static int begin_run(mri_remote *r, const char *url, const run *n, mr_error *err)
{
    if (n->from > n->to)
        return mr_error_set(err, MR_EINVAL, "the range {%u..%u} runs backwards", n->from, n->to);
    if (n->to - n->from >= MOST_FILES)
        return mr_error_set(err, MR_ELIMIT,
                            "%u files: convert them to fewer, larger ones; at most %d are opened at one time",
                            n->to - n->from + 1, MOST_FILES);
    const size_t bytes = strlen(url) + MOST_DIGITS + 1;
    char *next = malloc(bytes);
    int rc = next ? MR_OK : mr_error_set(err, MR_ENOMEM, "no memory for a URL");
    for (uint32_t k = n->from; !rc && k <= n->to; k++) {
        mri_remote_file *f;
        snprintf(next, bytes, "%.*s%0*u%s", (int)n->head, url, n->digits, k, url + n->tail);
        rc = mri_remote_begin(r, &f, next, err);
    }
    free(next);
    return rc;
}

static int begin_files(mri_remote *r, const char *url, mr_error *err)
{
    size_t name_bytes;
    const size_t name = mri_url_name(url, &name_bytes), end = name + name_bytes;
    run n;
    mri_remote_file *f;
    if (strchr(url, ' ')) return mr_error_set(err, MR_EINVAL, "a space in a URL: write %%20");
    if (name_bytes == 0 || strncmp(url + name, "..", mri_max_u64(name_bytes, 1)) == 0)
        return mr_error_set(err, MR_EUNSUPPORTED,
                            "folders cannot be listed over http: name a file, one of a numbered set "
                            "(train-00000-of-00128), several (train-{0000..0127}.tar), or a shard list");
    if (memchr(url, '*', end))
        return mr_error_set(
            err, MR_EUNSUPPORTED,
            "folders cannot be listed over http, so * matches nothing: give the numbers, as in "
            "train-{0000..0127}.tar");
    if (range_of(url, name, end, &n) || piece_of(url, name, end, &n)) return begin_run(r, url, &n, err);
    if (memchr(url, '{', name))
        return mr_error_set(err, MR_EUNSUPPORTED,
                            "a range {..} can stand in the last name only: files of one name would meet");
    return mri_remote_begin(r, &f, url, err);
}

/* ---- companion files ---- */
typedef struct companions {
    uint32_t count;
    mri_remote_file *file[MAX_COMPANIONS];
} companions;

static int begin_companions(mri_remote *r, companions *b, const char *name, mr_error *err)
{
    const char *url = mri_remote_first(r)->url;
    size_t name_bytes;
    const size_t at = mri_url_name(url, &name_bytes);
    if (b->count == MAX_COMPANIONS || strlen(name) == 0 || strncmp(url + at, name, strlen(name) + 1) == 0)
        return MR_OK;
    const size_t bytes = at + strlen(name) + strlen(url + at + name_bytes) + 1;
    char *next = malloc(bytes);
    if (!next) return mr_error_set(err, MR_ENOMEM, "no memory for a URL");
    snprintf(next, bytes, "%.*s%s%s", (int)at, url, name, url + at + name_bytes);
    const int rc = mri_remote_begin(r, &b->file[b->count++], next, err);
    free(next);
    return rc;
}

/* name with the first `from` in it replaced; "" if `from` does not occur. */
static const char *with(char out[512], const char *name, const char *from, const char *to)
{
    const char *at = strstr(name, from);
    out[0] = '\0';
    if (at && snprintf(out, 512, "%.*s%s%s", (int)(at - name), name, to, at + strlen(from)) >= 512)
        out[0] = '\0';
    return out;
}

static int begin_all_companions(mri_remote *r, companions *b, const uint8_t *head, size_t head_bytes,
                                mr_error *err)
{
    static const char *const npy[][2] = {
        {"images", "labels"}, {"image", "label"}, {"x_", "y_"},           {"X_", "y_"},
        {"_x", "_y"},         {"_X", "_y"},       {"data", "labels"},     {"x", "y"},
        {"X", "y"},           {"X", "Y"},         {".npy", "_labels.npy"}};
    const char *url = mri_remote_first(r)->url;
    char name[512], made[512];
    size_t name_bytes;
    const size_t at = mri_url_name(url, &name_bytes);
    int rc = MR_OK;
    if (name_bytes >= sizeof name) return MR_OK;
    memcpy(name, url + at, name_bytes);
    name[name_bytes] = '\0';
    if (head_bytes >= 4 && mri_le32(head) == 0xced7230au) { /* RecordIO */
        rc = begin_companions(r, b, with(made, name, ".rec", ".idx"), err);
        return rc ? rc : begin_companions(r, b, with(made, name, ".rec", ".lst"), err);
    }
    if (head_bytes >= 6 && memcmp(head, "\x93NUMPY", 6) == 0) {
        for (size_t k = 0; !rc && k < MRI_ARRAY_COUNT(npy); k++)
            rc = begin_companions(r, b, with(made, name, npy[k][0], npy[k][1]), err);
        return rc ? rc : begin_companions(r, b, "labels.npy", err);
    }
    char images[512]; /* IDX, plain or packed: labels have its name but for these */
    const char *labels = with(images, name, "images", "labels");
    if (*labels)
        rc =
            begin_companions(r, b, strstr(labels, "idx3") ? with(made, labels, "idx3", "idx1") : labels, err);
    return rc;
}

/* ---- the view ---- */
static const char *name_in(const mri_remote_file *f, char out[512])
{
    size_t bytes;
    const size_t at = mri_url_name(f->url, &bytes);
    snprintf(out, 512, "%.*s", (int)bytes, f->url + at);
    return out;
}

static int name_view(mri_remote *r, mri_remote_view *v, mr_error *err)
{
    uint64_t print = XXH3_64bits("view", 4);
    char name[512];
    for (uint32_t k = 0; k < r->file_count; k++) {
        const mri_remote_file *f = r->file[k];
        if (!f->open) continue;
        name_in(f, name);
        print = mri_mix64(print ^ XXH3_64bits(name, strlen(name)));
        print = mri_mix64(print ^ XXH3_64bits(f->entry.key, strlen(f->entry.key)));
        v->for_once |= f->entry.key[0] == '\0';
    }
    if (v->for_once) print ^= mri_mix64(mri_now_ns() ^ ((uint64_t)getpid() << 32));
    v->folder = malloc(MOST_PATH);
    if (!v->folder) return mr_error_set(err, MR_ENOMEM, "no memory for a path");
    if ((size_t)snprintf(v->folder, MOST_PATH, "%s/v-%016llx", r->store.folder, (unsigned long long)print) <
        MOST_PATH)
        return MR_OK;
    return mr_error_set(err, MR_ELIMIT, "the path of the folder for remote data is too long");
}

static void empty_folder(int fd)
{
    DIR *d = fdopendir(openat(fd, ".", O_RDONLY | O_DIRECTORY | O_CLOEXEC));
    const struct dirent *e;
    while (d && (e = readdir(d)))
        if (strcmp(e->d_name, ".") != 0 && strcmp(e->d_name, "..") != 0) unlinkat(fd, e->d_name, 0);
    if (d) closedir(d);
}

static bool lost_a_file(int fd)
{
    DIR *d = fdopendir(openat(fd, ".", O_RDONLY | O_DIRECTORY | O_CLOEXEC));
    const struct dirent *e;
    struct stat st;
    bool lost = false;
    while (d && !lost && (e = readdir(d))) lost = fstatat(fd, e->d_name, &st, 0) != 0;
    if (d) closedir(d);
    return lost;
}

/* Views of files that are kept no longer. The store's lock is held. */
static void sweep(const mri_store *s)
{
    DIR *d = fdopendir(openat(s->folder_fd, ".", O_RDONLY | O_DIRECTORY | O_CLOEXEC));
    const struct dirent *e;
    while (d && (e = readdir(d))) {
        const int fd = strncmp(e->d_name, "v-", 2) == 0
                           ? openat(s->folder_fd, e->d_name, O_RDONLY | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC)
                           : -1;
        if (fd < 0) continue;
        if (flock(fd, LOCK_EX | LOCK_NB) == 0 && lost_a_file(fd)) {
            empty_folder(fd);
            unlinkat(s->folder_fd, e->d_name, AT_REMOVEDIR);
        }
        close(fd);
    }
    if (d) closedir(d);
}

static int link_files(mri_remote *r, const mri_remote_view *v, mr_error *err)
{
    char name[512], target[MOST_PATH];
    for (uint32_t k = 0; k < r->file_count; k++) {
        const mri_remote_file *f = r->file[k];
        if (!f->open) continue;
        if (f->entry.key[0]) snprintf(target, sizeof target, "../%s.data", f->entry.key);
        else snprintf(target, sizeof target, "/proc/self/fd/%d", f->entry.data_fd);
        if (symlinkat(target, v->lock_fd, name_in(f, name)) != 0 && errno != EEXIST)
            return mri_error_place(err, mr_error_sys(err, errno, "cannot rename the fetched file"), f->shown,
                                   MR_NOWHERE, MR_NOWHERE);
    }
    return MR_OK;
}

static int make_view(mri_remote *r, mri_remote_view *v, mr_error *err)
{
    int rc = name_view(r, v, err);
    if (rc) return rc;
    mri_store_lock(&r->store);
    sweep(&r->store);
    if (mkdir(v->folder, 0700) != 0 && errno != EEXIST) rc = mr_error_sys(err, errno, "cannot make a folder");
    if (!rc && (v->lock_fd = open(v->folder, O_RDONLY | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC)) < 0)
        rc = mr_error_sys(err, errno, "cannot open");
    if (!rc && flock(v->lock_fd, LOCK_SH) != 0) rc = mr_error_sys(err, errno, "cannot lock");
    if (rc) mri_error_place(err, rc, v->folder, MR_NOWHERE, MR_NOWHERE);
    else rc = link_files(r, v, err);
    mri_store_unlock(&r->store);
    return rc;
}

/* ---- open, close ---- */
static int finish_files(mri_remote *r, uint32_t count, mr_error *err)
{
    int rc = MR_OK;
    for (uint32_t k = 0; !rc && k < count; k++) rc = mri_remote_finish(r->file[k], err);
    return rc;
}

/* Stores whose content may not be listed also answer 403 for missing files. */
static int finish_companions(const companions *b, mr_error *err)
{
    for (uint32_t k = 0; k < b->count; k++) {
        const int rc = mri_remote_finish(b->file[k], err);
        if (rc && rc != MR_ENOENT && !b->file[k]->refused) return rc;
    }
    return MR_OK;
}

/* All of them at once. When one fails the others are let go. */
static int fetch_all(mri_remote *r, mr_error *err)
{
    int rc = MR_OK;
    for (uint32_t k = 0; k < r->file_count; k++)
        if (r->file[k]->open && !r->file[k]->keeps) mri_remote_keep_begin(r->file[k]);
    for (uint32_t k = 0; k < r->file_count; k++) {
        if (!rc) rc = mri_remote_keep_finish(r->file[k], err);
        else mri_remote_keep_end(r->file[k]);
    }
    return rc;
}

static int open_view(mri_remote_view *v, const char *url, const char *format, mr_error *err)
{
    mri_remote *r = v->remote;
    const uint32_t count = r->file_count;
    uint8_t head[HEAD_BYTES];
    const size_t head_bytes = (size_t)mri_min_u64(sizeof head, mri_remote_bytes(r->file[0]));
    companions b = {0};
    int rc = mri_remote_read(r->file[0], head, head_bytes, 0, err);
    if (rc) return rc;
    v->is_record = format ? strcmp(format, "mrec") == 0 : head_bytes >= 5 && memcmp(head + 1, "MREC", 4) == 0;
    if (v->is_record && count > 1)
        return mr_error_set(err, MR_EUNSUPPORTED,
                            "several record files: write a shard list of them, and open that");
    if (v->is_record) {
        v->path = strdup(v->shown);
        return v->path ? MR_OK : mr_error_set(err, MR_ENOMEM, "no memory for a path");
    }
    if (count == 1) rc = begin_all_companions(r, &b, head, head_bytes, err);
    if (!rc) rc = finish_companions(&b, err);
    if (!rc) rc = fetch_all(r, err);
    if (!rc) rc = make_view(r, v, err);
    if (rc) return rc;
    v->path = malloc(MOST_PATH);
    if (!v->path) return mr_error_set(err, MR_ENOMEM, "no memory for a path");
    size_t name_bytes;
    const size_t name = mri_url_name(url, &name_bytes);
    if ((size_t)snprintf(v->path, MOST_PATH, "%s/%.*s", v->folder, (int)name_bytes, url + name) < MOST_PATH)
        return MR_OK;
    return mr_error_set(err, MR_ELIMIT, "the path of the fetched file is too long");
}

int mri_remote_view_open(mri_remote_view **out, const char *url, const char *format,
                         const mri_remote_config *cfg, mr_error *err)
{
    mri_remote_view *v = *out = calloc(1, sizeof *v);
    size_t ignored;
    if (v) {
        v->lock_fd = -1;
        v->shown = mri_url_shown(url);
    }
    if (!v || !v->shown) return mr_error_set(err, MR_ENOMEM, "no memory for a URL");
    v->base_bytes = mri_url_name(v->shown, &ignored);
    int rc = strlen(url) < MRI_URL_MAX_BYTES
                 ? MR_OK
                 : mr_error_set(err, MR_ELIMIT, "a URL of more than %d bytes", MRI_URL_MAX_BYTES);
    const char *fault = mri_url_fault(url);
    if (!rc && fault) rc = mr_error_set(err, MR_EINVAL, "%s", fault);
    if (!rc) rc = mri_remote_create(&v->remote, cfg, err);
    if (!rc) rc = begin_files(v->remote, url, err);
    if (!rc) rc = finish_files(v->remote, v->remote->file_count, err);
    if (!rc) rc = open_view(v, url, format, err);
    if (rc && err && !err->file[0]) mri_error_place(err, rc, v->shown, MR_NOWHERE, MR_NOWHERE);
    return rc;
}

void mri_remote_view_close(mri_remote_view *v)
{
    if (!v) return;
    if (v->lock_fd >= 0 && v->for_once) {
        empty_folder(v->lock_fd);
        rmdir(v->folder);
    }
    if (v->lock_fd >= 0) close(v->lock_fd);
    mri_remote_destroy(v->remote);
    free(v->folder);
    free(v->shown);
    free(v->path);
    free(v);
}

/* ---- names ---- */
void mri_remote_view_name(const mri_remote_view *v, char *name, size_t name_bytes)
{
    const size_t folder = v && v->folder ? strlen(v->folder) : 0;
    if (!folder || strncmp(name, v->folder, folder) != 0 || name[folder] != '/') return;
    char *rest = strdup(name + folder + 1);
    if (rest) snprintf(name, name_bytes, "%.*s%s", (int)v->base_bytes, v->shown, rest);
    free(rest);
}

int mri_remote_view_place(const mri_remote_view *v, int code, mr_error *err)
{
    if (code && err) mri_remote_view_name(v, err->file, sizeof err->file);
    return code;
}
