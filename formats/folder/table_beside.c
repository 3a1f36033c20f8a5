/* formats/folder/table_beside.c: a table next to class folders that contradicts them. Folders may be years,
 * cameras or pieces of a download, and the table has the classes; labels from the folders would be wrong.
 *
 *   set/cat/1.jpg  set/labels.csv              a folder
 *   set.tar: cat/1.jpg  labels.csv             an archive
 *   set.tar  labels.csv                        next to an archive, where the archive has its pictures
 *
 * It contradicts them where two pictures of one folder have two classes in it, or a picture has the class of
 * another folder. A number for each folder, or another name, does not contradict. Rows whose pictures lie in
 * no class folder are passed over, and so are files that are no tables. An archive of one folder is refused
 * where a table has classes for its pictures. */
#include <dirent.h>
#include <fcntl.h>
#include <stdio.h>
#include <strings.h>
#include <unistd.h>

#include "base/util.h"
#include "formats/folder/folder.h"
#include "formats/text/tables.h"

enum { MOST_TABLES = 16 };

typedef struct judge {
    const mri_listing *classes;
    mri_dir part;  /* of an archive: a row's picture must lie there */
    bool one_only; /* one folder: every picture in it that has a class contradicts */
    char **known;  /* of each folder, the class of its first row; NULL: none yet */
    size_t at;     /* the folder of the row that contradicts */
    bool found, no_memory;
    char picture[256], class_name[128];
} judge;

static void keep(char *out, size_t room, const char *text, size_t bytes)
{
    snprintf(out, room, "%.*s", (int)mri_min_u64(bytes, room - 1), text);
}

/* Is CLASS/NAME a picture of the archive? */
static bool is_there(const judge *j, size_t at, const char *name, size_t bytes)
{
    char path[MRI_FOLDER_PATH];
    snprintf(path, sizeof path, "%s/%.*s", mri_listing_name(j->classes, at), (int)bytes, name);
    return !j->part.in || mri_members_find(j->part.in, j->part.at, path) >= 0;
}

static bool see(void *context, const char *picture, size_t bytes, const char *class_name, size_t class_bytes)
{
    judge *j = context;
    size_t end = bytes, from;
    while (end > 0 && picture[end - 1] != '/') end--;
    const size_t name = end;
    const bool bare = end < 2; /* without a folder */
    if (bare && !j->one_only) return true;
    if (end > 0) end--;
    for (from = end; from > 0 && picture[from - 1] != '/';) from--;
    const int at = bare ? 0 : mri_listing_find(j->classes, picture + from, end - from);
    if (at < 0 || !is_there(j, (size_t)at, picture + name, bytes - name)) return true;
    const int other = mri_listing_find(j->classes, class_name, class_bytes);
    const char *known = j->known[at];
    j->found = (other != at && (j->one_only || other >= 0)) ||
               (known && (strlen(known) != class_bytes || strncasecmp(known, class_name, class_bytes) != 0));
    if (j->found) {
        j->at = (size_t)at;
        keep(j->picture, sizeof j->picture, picture, bytes);
        keep(j->class_name, sizeof j->class_name, class_name, class_bytes);
    } else if (!known) {
        j->known[at] = strndup(class_name, class_bytes);
        j->no_memory = !j->known[at];
    }
    return !j->found && !j->no_memory;
}

static int refuse(const judge *j, const char *where, const char *table, mr_error *err)
{
    char more[256] = "";
    const char *known = j->known[j->at], *folder = mri_listing_name(j->classes, j->at);
    if (known) snprintf(more, sizeof more, ", and %.80s for another picture of %.120s/", known, folder);
    if (j->one_only)
        mr_error_set(
            err, MR_EFORMAT,
            "all pictures of the archive lie in %s/, and %s has their classes (%s for %s): unpack the "
            "archive next to the table, and name the table as the data set; or take the folder as the "
            "only class (--format archive)",
            folder, table, j->class_name, j->picture);
    else if (j->part.in)
        mr_error_set(
            err, MR_EFORMAT,
            "%s contradicts the class folders of the archive: it has the class %s for %s%s: unpack the "
            "archive next to the table, and name the table as the data set; or take the folders as "
            "classes (--format archive)",
            table, j->class_name, j->picture, more);
    else
        mr_error_set(
            err, MR_EFORMAT,
            "%s next to the class folders contradicts them: it has the class %s for %s%s: name the table as "
            "the data set (%s/%s), or take the folders as classes (--format folder)",
            table, j->class_name, j->picture, more, where, table);
    return mri_error_place(err, MR_EFORMAT, where, MR_NOWHERE, MR_NOWHERE);
}

/* fd: of the table, or -1 */
static int look_at(judge *j, int fd, const char *where, const char *table, mr_error *err)
{
    char path[MRI_FOLDER_PATH];
    snprintf(path, sizeof path, "%s/%s", where, table);
    int rc = mri_csv_each_row(path, fd, see, j, err);
    if (!rc && j->no_memory) rc = mri_folder_no_memory(err, where);
    if (!rc && j->found && j->part.in && fd < 0) rc = refuse(j, j->part.in->path, path, err);
    else if (!rc && j->found) rc = refuse(j, where, table, err);
    for (size_t k = 0; k < j->classes->count; k++) {
        free(j->known[k]);
        j->known[k] = NULL;
    }
    return rc;
}

static int begin(judge *j, const char *where, mr_error *err)
{
    if (!j->known) j->known = calloc(j->classes->count, sizeof *j->known);
    return j->known ? MR_OK : mri_folder_no_memory(err, where);
}

/* ---- tables on disk ---- */
static int look_into_folder(judge *j, const char *where, mr_error *err)
{
    uint32_t seen = 0;
    int rc = MR_OK;
    DIR *d = opendir(where);
    if (!d) return MR_OK; /* whoever lists the folder reports that */
    for (const struct dirent *e; !rc && seen < MOST_TABLES && (e = readdir(d));) {
        if (!mri_is_table_name(e->d_name)) continue;
        rc = begin(j, where, err);
        if (!rc) rc = look_at(j, -1, where, e->d_name, err);
        seen++;
    }
    closedir(d);
    return rc;
}

int mri_tables_beside(const mri_listing *classes, const char *where, mr_error *err)
{
    judge j = {.classes = classes};
    const int rc = look_into_folder(&j, where, err);
    free(j.known);
    return rc;
}

/* ---- tables in an archive, and next to it ---- */
static int look_into_archive(judge *j, mri_dir dir, const char *where, mr_error *err)
{
    uint32_t seen = 0;
    int rc = MR_OK, fd;
    for (int k = dir.in->node[dir.at].child; !rc && seen < MOST_TABLES && k >= 0; k = dir.in->node[k].next) {
        const char *name = mri_members_name(dir.in, k);
        if (dir.in->node[k].is_folder || !mri_is_table_name(name)) continue;
        rc = begin(j, where, err);
        if (!rc) rc = mri_members_file(dir.in, k, &fd, err);
        if (!rc && fd >= 0) rc = look_at(j, fd, where, name, err);
        seen++;
    }
    return rc;
}

int mri_tables_of_archive(const mri_listing *classes, mri_dir part, const char *where, mr_error *err)
{
    judge j = {.classes = classes, .part = part, .one_only = classes->count == 1};
    const char *path = part.in->path, *slash = strrchr(path, '/');
    char *folder = slash ? strndup(path, (size_t)(slash - path) + (slash == path)) : strdup(".");
    int rc = folder ? MR_OK : mri_folder_no_memory(err, where);
    for (mri_dir dir = part; !rc && dir.at >= 0; dir.at = dir.in->node[dir.at].parent)
        rc = look_into_archive(&j, dir, where, err);
    if (!rc) rc = look_into_folder(&j, folder, err);
    free(folder);
    free(j.known);
    return rc;
}
