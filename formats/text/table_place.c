/* formats/text/table_place.c: see table_place.h. */
#include <errno.h>
#include <stdio.h>
#include <string.h>
#include <strings.h>
#include <sys/stat.h>

#include "base/util.h"
#include "formats/fileset/file_names.h"
#include "formats/image/picture_files.h"
#include "formats/text/table_place.h"

/* "train" of data/train.csv.gz, train_labels.csv, trainLabels.csv. */
static void stem_of(const char *table, char out[NAME_MAX + 1])
{
    static const char *const words[] = {"labels", "label"};
    const char *name = mri_file_name(table);
    size_t n = strcspn(name, ".");
    for (size_t k = 0; k < MRI_ARRAY_COUNT(words); k++) {
        const size_t w = strlen(words[k]);
        if (n >= w && strncasecmp(name + n - w, words[k], w) == 0) n -= w;
    }
    while (n > 0 && strchr("_- ", name[n - 1])) n--;
    if (n == 0) snprintf(out, NAME_MAX + 1, "train"); /* labels.csv beside train/ */
    else snprintf(out, NAME_MAX + 1, "%.*s", (int)mri_min_u64(n, NAME_MAX), name);
}

/* The text after an id: nothing, then each ending, small and in capitals. */
static bool ending_of(size_t k, char out[MRI_PICTURE_ENDING_BYTES + 1])
{
    const char *ending = k ? mri_picture_ending_at((k - 1) / 2) : "";
    if (!ending) return false;
    snprintf(out, MRI_PICTURE_ENDING_BYTES + 1, "%s%s", k ? "." : "", ending);
    for (char *c = out; k % 2 == 0 && *c; c++)
        if (*c >= 'a' && *c <= 'z') *c = (char)(*c - ('a' - 'A'));
    return true;
}

int mri_table_place_find(int folder, const char *table, const char *id, mri_table_place *out, mr_error *err)
{
    char stem[NAME_MAX + 1], folders[4][NAME_MAX + 10], path[3 * NAME_MAX];
    uint32_t found = 0;
    stem_of(table, stem);
    folders[0][0] = '\0';
    snprintf(folders[1], sizeof folders[1], "images/");
    snprintf(folders[2], sizeof folders[2], "%.240s/", stem);
    snprintf(folders[3], sizeof folders[3], "%.240s_images/", stem);
    if (strchr(id, '/') || strlen(id) > NAME_MAX) return MR_ENOENT;
    for (size_t f = 0; f < MRI_ARRAY_COUNT(folders); f++) {
        if (f > 1 && strcmp(folders[f], folders[1]) == 0) continue;
        char ending[MRI_PICTURE_ENDING_BYTES + 1];
        for (size_t e = 0; ending_of(e, ending); e++) {
            struct stat st;
            snprintf(path, sizeof path, "%.255s%.255s%s", folders[f], id, ending);
            if (fstatat(folder, path, &st, 0) != 0) {
                if (errno == ENOENT || errno == ENOTDIR || errno == ELOOP || errno == ENAMETOOLONG) continue;
                return mri_error_place(
                    err,
                    mri_error_denied(err, mr_error_sys(err, errno, "cannot look for the table's pictures")),
                    path, MR_NOWHERE, MR_NOWHERE);
            }
            if (!S_ISREG(st.st_mode)) continue;
            if (found++)
                return mr_error_set(
                    err, MR_EINVAL,
                    "the table names its pictures without folder and ending, and %.200s could be "
                    "%.200s%.200s%s or %.200s: write the whole paths into the table",
                    id, out->before, id, out->behind, path);
            snprintf(out->before, sizeof out->before, "%.255s", folders[f]);
            snprintf(out->behind, sizeof out->behind, "%s", ending);
        }
    }
    return found ? MR_OK : MR_ENOENT;
}
