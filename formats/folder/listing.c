/* formats/folder/listing.c: what lies in one folder: its folders, its pictures with their sizes, or only
 * which kinds of things there are. */
#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/util.h"
#include "formats/folder/folder.h"
#include "formats/source/withdrawn_list.h"

/* ---- growing lists ---- */
bool mri_make_room(void **items, size_t *cap, size_t used, size_t more, size_t item_bytes)
{
    if (more <= *cap - used) return true;
    size_t cap_new = *cap < 64 ? 64 : *cap, bytes;
    while (cap_new - used < more)
        if (!mri_mul_size(cap_new, 2, &cap_new)) return false;
    if (!mri_mul_size(cap_new, item_bytes, &bytes)) return false;
    void *larger = realloc(*items, bytes);
    if (!larger) return false;
    *items = larger;
    *cap = cap_new;
    return true;
}

void mri_listing_fini(mri_listing *l)
{
    free(l->text);
    free(l->entries);
    *l = (mri_listing){0};
}

bool mri_listing_add(mri_listing *l, const char *name, uint64_t bytes)
{
    const size_t len = strlen(name) + 1;
    if (!mri_make_room((void **)&l->text, &l->text_cap, l->text_used, len, 1)) return false;
    if (!mri_make_room((void **)&l->entries, &l->cap, l->count, 1, sizeof *l->entries)) return false;
    memcpy(l->text + l->text_used, name, len);
    l->entries[l->count++] = (mri_listed){l->text_used, bytes};
    l->text_used += len;
    return true;
}

static int by_bytes(const void *a, const void *b, void *text)
{
    return strcmp((const char *)text + ((const mri_listed *)a)->at,
                  (const char *)text + ((const mri_listed *)b)->at);
}

void mri_listing_sort(mri_listing *l)
{
    if (l->count > 1) qsort_r(l->entries, l->count, sizeof *l->entries, by_bytes, l->text);
}

int mri_listing_find(const mri_listing *l, const char *name, size_t bytes)
{
    size_t low = 0, high = l->count;
    while (low < high) {
        const size_t mid = low + (high - low) / 2;
        const char *at = mri_listing_name(l, mid);
        const int order = strncmp(at, name, bytes);
        if (order == 0 && at[bytes] == '\0') return (int)mid;
        if (order < 0) low = mid + 1;
        else high = mid;
    }
    return -1;
}

/* ---- errors ---- */
int mri_folder_error(mr_error *err, int code, const char *where, const char *name)
{
    char path[MRI_FOLDER_PATH];
    snprintf(path, sizeof path, "%s/%s", where, name);
    return mri_error_place(err, code, path, MR_NOWHERE, MR_NOWHERE);
}

int mri_folder_no_memory(mr_error *err, const char *where)
{
    return mri_error_place(err, mr_error_set(err, MR_ENOMEM, "no memory for the list of files"), where,
                           MR_NOWHERE, MR_NOWHERE);
}

/* ---- entries ---- */
int mri_folder_open(mri_dir parent, const char *name, const char *where, mri_dir *out, mr_error *err)
{
    *out = (mri_dir){parent.in, -1};
    if (parent.in) {
        const int at = mri_members_find(parent.in, parent.at, name);
        if (at >= 0 && parent.in->node[at].is_folder) return out->at = at, MR_OK;
        return mri_error_place(err, mr_error_set(err, MR_ENOENT, "there is no such folder in the archive"),
                               where, MR_NOWHERE, MR_NOWHERE);
    }
    out->at = openat(parent.at, name, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
    if (out->at >= 0) return MR_OK;
    return mri_error_place(err, mri_error_denied(err, mr_error_sys(err, errno, "cannot open the folder")),
                           where, MR_NOWHERE, MR_NOWHERE);
}

void mri_folder_close(mri_dir dir)
{
    if (!dir.in && dir.at >= 0) close(dir.at);
}

bool mri_folder_has(mri_dir dir, const char *path)
{
    struct stat st;
    if (dir.in) return mri_members_find(dir.in, dir.at, path) >= 0;
    return fstatat(dir.at, path, &st, 0) == 0 || errno != ENOENT;
}

typedef struct entries { /* of one folder, one after the other */
    mri_dir dir;
    DIR *d;   /* on disk */
    int next; /* in an archive */
    struct {
        const char *name;
        unsigned char type; /* DT_... */
        int at;             /* in an archive */
    } one;
} entries;

static int open_dir(mri_dir parent, const char *name, const char *where, entries *out, mr_error *err)
{
    *out = (entries){.d = NULL};
    const int rc = mri_folder_open(parent, name, where, &out->dir, err);
    if (rc) return rc;
    if (parent.in) return out->next = parent.in->node[out->dir.at].child, MR_OK;
    out->d = fdopendir(out->dir.at);
    if (out->d) return MR_OK;
    close(out->dir.at);
    return mri_folder_no_memory(err, where);
}

static void close_dir(entries *e)
{
    if (e->d) closedir(e->d);
}

static bool next_member(entries *e)
{
    const mri_members *m = e->dir.in;
    if (e->next < 0) return false;
    e->one.name = mri_members_name(m, e->next);
    e->one.type = m->node[e->next].is_folder ? DT_DIR : DT_REG;
    e->one.at = e->next;
    e->next = m->node[e->next].next;
    return true;
}

/* *more false: no entry is left. "." and ".." are passed over. */
static int next_entry(entries *e, const char *where, bool *more, mr_error *err)
{
    const struct dirent *found;
    if (mri_stop_asked()) return mri_stopped(err);
    if (e->dir.in) return *more = next_member(e), MR_OK;
    do {
        if (mri_stop_asked()) return mri_stopped(err);
        errno = 0;
        found = readdir(e->d);
    } while (found && (strcmp(found->d_name, ".") == 0 || strcmp(found->d_name, "..") == 0));
    *more = found != NULL;
    if (found) e->one.name = found->d_name, e->one.type = found->d_type;
    if (found || !errno) return MR_OK;
    return mri_error_place(err, mr_error_sys(err, errno, "cannot list"), where, MR_NOWHERE, MR_NOWHERE);
}

typedef enum kind_of_entry { A_FILE, A_FOLDER, NO_FILE, TO_NOTHING } kind_of_entry;

/* Links are followed. The size of a file is asked for only where it is wanted: that is a call for each. */
static int look_at(const entries *e, const char *where, bool sizes, kind_of_entry *kind, uint64_t *bytes,
                   mr_error *err)
{
    struct stat st;
    if (e->one.type == DT_DIR || (e->one.type == DT_REG && (!sizes || e->dir.in))) {
        *kind = e->one.type == DT_DIR ? A_FOLDER : A_FILE;
        if (e->dir.in) *bytes = e->dir.in->node[e->one.at].bytes;
        return MR_OK;
    }
    *kind = TO_NOTHING;
    if (fstatat(e->dir.at, e->one.name, &st, 0) != 0) {
        if (errno == ELOOP || errno == ENOENT) return MR_OK;
        return mri_folder_error(err, mri_error_denied(err, mr_error_sys(err, errno, "cannot look at it")),
                                where, e->one.name);
    }
    *kind = S_ISDIR(st.st_mode) ? A_FOLDER : S_ISREG(st.st_mode) ? A_FILE : NO_FILE;
    *bytes = (uint64_t)st.st_size;
    return MR_OK;
}

/* The kind of a file, by its name, or by its first bytes if the name is not enough. */
static int kind_of_file(mri_dir dir, const char *root, const char *where, const char *name,
                        mri_file_kind *kind, const char **what, char *buf, size_t buf_bytes, mr_error *err)
{
    *kind = mri_file_kind_of_name(name, what);
    if (*kind != MRI_FILE_UNKNOWN && *kind != MRI_FILE_UNDECODED) return MR_OK;
    return mri_file_look(dir, root, where, name, kind, what, buf, buf_bytes, err);
}

static mri_left left_as(mri_file_kind kind)
{
    return kind == MRI_FILE_GONE        ? MRI_LEFT_LINK
           : kind == MRI_FILE_UNDECODED ? MRI_LEFT_UNDECODED
                                        : MRI_LEFT_NO_PICTURE;
}

static int take_file(const entries *e, const char *where, uint64_t bytes, const mri_list_what *want,
                     mri_left_out *out, mr_error *err)
{
    char buf[128];
    const char *name = e->one.name;
    const char *what;
    mri_file_kind kind;
    const int rc =
        kind_of_file(e->dir, out ? out->root : NULL, where, name, &kind, &what, buf, sizeof buf, err);
    if (rc) return rc;
    if (kind != MRI_FILE_PICTURE) return mri_leave_out(out, left_as(kind), where, name, what), MR_OK;
    if (!want->files) return mri_leave_out(out, MRI_LEFT_BESIDE, where, name, NULL), MR_OK;
    want->files->links += e->one.type == DT_LNK;
    return mri_listing_add(want->files, name, bytes) ? MR_OK : mri_folder_no_memory(err, where);
}

/* Folders that operating systems and servers put next to the files of people: copies and thumbnails of their
 * files, files that were deleted. */
static bool is_of_system(const char *name)
{
    static const char *const names[] = {
        "__MACOSX", "@eaDir", "#recycle", "$RECYCLE.BIN", "System Volume Information", "lost+found"};
    for (size_t k = 0; k < MRI_ARRAY_COUNT(names); k++)
        if (strcmp(name, names[k]) == 0) return true;
    return false;
}

static int take_entry(const entries *e, const char *where, const mri_list_what *want, mri_left_out *out,
                      mr_error *err)
{
    const char *name = e->one.name;
    kind_of_entry kind;
    uint64_t bytes = 0;
    const bool files = want->files || want->tell_files;
    if (name[0] == '.') {
        if (out && files && strcmp(name, MRI_WITHDRAWN_NAME) != 0) out->hidden++; /* that is read elsewhere */
        return MR_OK;
    }
    const int rc = look_at(e, where, want->files != NULL, &kind, &bytes, err);
    if (rc) return rc;
    if (kind == A_FILE) return files ? take_file(e, where, bytes, want, out, err) : MR_OK;
    if (kind == A_FOLDER && is_of_system(name)) {
        if (want->folders || want->tell_folders) mri_leave_out(out, MRI_LEFT_SYSTEM, where, name, NULL);
        return MR_OK;
    }
    if (kind == A_FOLDER && want->folders)
        return mri_listing_add(want->folders, name, 0) ? MR_OK : mri_folder_no_memory(err, where);
    if (kind == A_FOLDER ? want->tell_folders : files)
        mri_leave_out(out,
                      kind == A_FOLDER     ? MRI_LEFT_INSIDE
                      : kind == TO_NOTHING ? MRI_LEFT_LINK
                                           : MRI_LEFT_NO_PICTURE,
                      where, name, NULL);
    return MR_OK;
}

int mri_list_folder(mri_dir parent, const char *name, const char *where, const mri_list_what *want,
                    mri_left_out *out, mr_error *err)
{
    entries e;
    bool more = true;
    int rc = open_dir(parent, name, where, &e, err);
    if (rc) return rc;
    while (!rc && !(rc = next_entry(&e, where, &more, err)) && more)
        rc = take_entry(&e, where, want, out, err);
    close_dir(&e);
    if (rc) return rc;
    if (want->folders) mri_listing_sort(want->folders);
    if (want->files) mri_listing_sort(want->files);
    return MR_OK;
}

static int look_at_kinds(const entries *e, const char *where, mri_contents *out, mr_error *err)
{
    char buf[128];
    const char *what;
    mri_file_kind file;
    kind_of_entry kind;
    uint64_t ignored;
    if (e->one.name[0] == '.') return MR_OK;
    int rc = look_at(e, where, false, &kind, &ignored, err);
    if (rc) return rc;
    if (kind == A_FOLDER) out->folders |= !is_of_system(e->one.name);
    if (kind != A_FILE) return MR_OK;
    rc = kind_of_file(e->dir, NULL, where, e->one.name, &file, &what, buf, sizeof buf, err);
    if (rc) return rc;
    out->pictures |= file == MRI_FILE_PICTURE;
    out->undecoded |= file == MRI_FILE_UNDECODED;
    out->others |= file == MRI_FILE_OTHER;
    return MR_OK;
}

int mri_look_into(mri_dir parent, const char *name, const char *where, bool all, mri_contents *out,
                  mr_error *err)
{
    entries e;
    bool more = true;
    *out = (mri_contents){0};
    int rc = open_dir(parent, name, where, &e, err);
    if (rc) return rc;
    while (!rc && !(out->pictures && (!all || out->folders))) {
        rc = next_entry(&e, where, &more, err);
        if (rc || !more) break;
        rc = look_at_kinds(&e, where, out, err);
    }
    close_dir(&e);
    return rc;
}
