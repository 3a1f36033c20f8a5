/* formats/folder/listing.c: what lies in one folder: its folders, its pictures with their sizes, or only
 * which kinds of things there are. */
#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/util.h"
#include "formats/folder/folder.h"

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
int mri_folder_open(int parent, const char *name, const char *where, int *fd, mr_error *err)
{
    *fd = openat(parent, name, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
    if (*fd >= 0) return MR_OK;
    return mri_error_place(err, mri_error_denied(err, mr_error_sys(err, errno, "cannot open the folder")),
                           where, MR_NOWHERE, MR_NOWHERE);
}

static int open_dir(int parent, const char *name, const char *where, DIR **out, mr_error *err)
{
    int fd;
    const int rc = mri_folder_open(parent, name, where, &fd, err);
    if (rc) return rc;
    *out = fdopendir(fd);
    if (*out) return MR_OK;
    close(fd);
    return mri_folder_no_memory(err, where);
}

/* *out NULL: no more. "." and ".." are passed over. */
static int next_entry(DIR *d, const char *where, const struct dirent **out, mr_error *err)
{
    do {
        if (mri_stop_asked()) return mri_stopped(err);
        errno = 0;
        *out = readdir(d);
    } while (*out && (strcmp((*out)->d_name, ".") == 0 || strcmp((*out)->d_name, "..") == 0));
    if (*out || !errno) return MR_OK;
    return mri_error_place(err, mr_error_sys(err, errno, "cannot list"), where, MR_NOWHERE, MR_NOWHERE);
}

typedef enum kind_of_entry { A_FILE, A_FOLDER, NO_FILE, TO_NOTHING } kind_of_entry;

/* Links are followed. The size of a file is asked for only where it is wanted: that is a call for each. */
static int look_at(int dir, const char *where, const struct dirent *e, bool sizes, kind_of_entry *kind,
                   uint64_t *bytes, mr_error *err)
{
    struct stat st;
    if (e->d_type == DT_DIR || (e->d_type == DT_REG && !sizes)) {
        *kind = e->d_type == DT_DIR ? A_FOLDER : A_FILE;
        return MR_OK;
    }
    *kind = TO_NOTHING;
    if (fstatat(dir, e->d_name, &st, 0) != 0) {
        if (errno == ELOOP || errno == ENOENT) return MR_OK;
        return mri_folder_error(err, mri_error_denied(err, mr_error_sys(err, errno, "cannot look at it")),
                                where, e->d_name);
    }
    *kind = S_ISDIR(st.st_mode) ? A_FOLDER : S_ISREG(st.st_mode) ? A_FILE : NO_FILE;
    *bytes = (uint64_t)st.st_size;
    return MR_OK;
}

/* What a file is, by its name, and by its first bytes where the name does not tell. */
static int kind_of_file(int dir, const char *root, const char *where, const char *name, mri_file_kind *kind,
                        const char **what, char *buf, size_t buf_bytes, mr_error *err)
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

static int take_file(int dir, const char *where, const char *name, uint64_t bytes, const mri_list_what *want,
                     mri_left_out *out, mr_error *err)
{
    char buf[128];
    const char *what;
    mri_file_kind kind;
    const int rc = kind_of_file(dir, out ? out->root : NULL, where, name, &kind, &what, buf, sizeof buf, err);
    if (rc) return rc;
    if (kind != MRI_FILE_PICTURE) return mri_leave_out(out, left_as(kind), where, name, what), MR_OK;
    if (!want->files) return mri_leave_out(out, MRI_LEFT_BESIDE, where, name, NULL), MR_OK;
    return mri_listing_add(want->files, name, bytes) ? MR_OK : mri_folder_no_memory(err, where);
}

static int take_entry(int dir, const char *where, const struct dirent *e, const mri_list_what *want,
                      mri_left_out *out, mr_error *err)
{
    kind_of_entry kind;
    uint64_t bytes = 0;
    const bool files = want->files || want->tell_files;
    if (e->d_name[0] == '.') {
        if (out && files) out->hidden++;
        return MR_OK;
    }
    const int rc = look_at(dir, where, e, want->files != NULL, &kind, &bytes, err);
    if (rc) return rc;
    if (kind == A_FILE) return files ? take_file(dir, where, e->d_name, bytes, want, out, err) : MR_OK;
    if (kind == A_FOLDER && want->folders)
        return mri_listing_add(want->folders, e->d_name, 0) ? MR_OK : mri_folder_no_memory(err, where);
    if (kind == A_FOLDER ? want->tell_folders : files)
        mri_leave_out(out,
                      kind == A_FOLDER     ? MRI_LEFT_INSIDE
                      : kind == TO_NOTHING ? MRI_LEFT_LINK
                                           : MRI_LEFT_NO_PICTURE,
                      where, e->d_name, NULL);
    return MR_OK;
}

int mri_list_folder(int parent, const char *name, const char *where, const mri_list_what *want,
                    mri_left_out *out, mr_error *err)
{
    DIR *d;
    const struct dirent *e;
    int rc = open_dir(parent, name, where, &d, err);
    if (rc) return rc;
    while (!rc && !(rc = next_entry(d, where, &e, err)) && e)
        rc = take_entry(dirfd(d), where, e, want, out, err);
    closedir(d);
    if (rc) return rc;
    if (want->folders) mri_listing_sort(want->folders);
    if (want->files) mri_listing_sort(want->files);
    return MR_OK;
}

static int look_at_kinds(int dir, const char *where, const struct dirent *e, mri_contents *out, mr_error *err)
{
    char buf[128];
    const char *what;
    mri_file_kind file;
    kind_of_entry kind;
    uint64_t ignored;
    if (e->d_name[0] == '.') return MR_OK;
    int rc = look_at(dir, where, e, false, &kind, &ignored, err);
    if (rc) return rc;
    if (kind == A_FOLDER) out->folders = true;
    if (kind != A_FILE) return MR_OK;
    rc = kind_of_file(dir, NULL, where, e->d_name, &file, &what, buf, sizeof buf, err);
    if (rc) return rc;
    out->pictures |= file == MRI_FILE_PICTURE;
    out->undecoded |= file == MRI_FILE_UNDECODED;
    out->others |= file == MRI_FILE_OTHER;
    return MR_OK;
}

int mri_look_into(int parent, const char *name, const char *where, bool all, mri_contents *out, mr_error *err)
{
    DIR *d;
    const struct dirent *e = NULL;
    *out = (mri_contents){0};
    int rc = open_dir(parent, name, where, &d, err);
    if (rc) return rc;
    while (!rc && !(out->pictures && (!all || out->folders))) {
        rc = next_entry(d, where, &e, err);
        if (rc || !e) break;
        rc = look_at_kinds(dirfd(d), where, e, out, err);
    }
    closedir(d);
    return rc;
}
