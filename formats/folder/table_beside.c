/* formats/folder/table_beside.c: a table next to class folders that contradicts them. Folders may be years,
 * cameras or pieces of a download, and the table has the classes; labels from the folders would be wrong.
 *
 * It contradicts them where two pictures of one folder have two classes in it, or a picture has the class of
 * another folder. A number for each folder, or another name, is none. Rows whose pictures lie in no class
 * folder are passed over, and so is what is no table. */
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
    char **known; /* of each folder, the class of its first row; NULL: none yet */
    size_t at;    /* the folder of the row that contradicts */
    bool found, no_memory;
    char picture[256], class_name[128];
} judge;

static bool see(void *context, const char *picture, size_t bytes, const char *class_name, size_t class_bytes)
{
    judge *j = context;
    size_t end = bytes, from;
    while (end > 0 && picture[end - 1] != '/') end--;
    if (end < 2) return true;
    for (from = --end; from > 0 && picture[from - 1] != '/';) from--;
    const int at = mri_listing_find(j->classes, picture + from, end - from);
    if (at < 0) return true;
    const int other = mri_listing_find(j->classes, class_name, class_bytes);
    const char *known = j->known[at];
    j->found = (other >= 0 && other != at) ||
               (known && (strlen(known) != class_bytes || strncasecmp(known, class_name, class_bytes) != 0));
    if (j->found) {
        j->at = (size_t)at;
        snprintf(j->picture, sizeof j->picture, "%.*s", (int)mri_min_u64(bytes, sizeof j->picture - 1),
                 picture);
        snprintf(j->class_name, sizeof j->class_name, "%.*s",
                 (int)mri_min_u64(class_bytes, sizeof j->class_name - 1), class_name);
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
    mr_error_set(
        err, MR_EFORMAT,
        "%s next to the class folders contradicts them: it has the class %s for %s%s: name the table as "
        "the data set (%s/%s), or take the folders as classes (--format folder)",
        table, j->class_name, j->picture, more, where, table);
    return mri_error_place(err, MR_EFORMAT, where, MR_NOWHERE, MR_NOWHERE);
}

static int look_at(judge *j, const char *where, const char *table, mr_error *err)
{
    char path[MRI_FOLDER_PATH];
    snprintf(path, sizeof path, "%s/%s", where, table);
    int rc = mri_csv_each_row(path, see, j, err);
    if (!rc && j->no_memory) rc = mri_folder_no_memory(err, where);
    if (!rc && j->found) rc = refuse(j, where, table, err);
    for (size_t k = 0; k < j->classes->count; k++) {
        free(j->known[k]);
        j->known[k] = NULL;
    }
    return rc;
}

int mri_tables_beside(const mri_listing *classes, const char *where, mr_error *err)
{
    judge j = {.classes = classes};
    uint32_t seen = 0;
    int rc = MR_OK;
    DIR *d = opendir(where);
    if (!d) return MR_OK; /* whoever lists the folder reports that */
    for (const struct dirent *e; !rc && seen < MOST_TABLES && (e = readdir(d));) {
        if (!mri_is_table_name(e->d_name)) continue;
        if (!j.known) j.known = calloc(classes->count, sizeof *j.known);
        rc = j.known ? look_at(&j, where, e->d_name, err) : mri_folder_no_memory(err, where);
        seen++;
    }
    closedir(d);
    free(j.known);
    return rc;
}
