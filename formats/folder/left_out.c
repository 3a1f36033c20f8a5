/* formats/folder/left_out.c: counts the entries of a folder that were not taken, and keeps the first names of
 * each kind. The file system decides the order of a folder's entries; the report must not depend on it, so
 * the first names in byte order are kept. */
#include <stdio.h>

#include "base/util.h"
#include "formats/folder/folder.h"

static const struct {
    const char *one, *more, *advice;
} texts[MRI_LEFT_KINDS] = {
    [MRI_LEFT_NO_PICTURE] = {"file that is no picture", "files that are no pictures", ""},
    [MRI_LEFT_LINK] = {"link to nothing", "links to nothing", ""},
    [MRI_LEFT_BESIDE] = {"picture next to the folders", "pictures next to the folders", ""},
    [MRI_LEFT_INSIDE] = {"folder inside class folders", "folders inside class folders",
                         "; --classes depth makes a class of each folder"},
    [MRI_LEFT_DEEPER] = {"folder that holds only folders", "folders that hold only folders",
                         "; --classes depth makes a class of each folder"},
    [MRI_LEFT_OTHERS] = {"folder that holds other files only", "folders that hold other files only", ""},
    [MRI_LEFT_NO_PART] = {"folder that is no part", "folders that are no parts", ""},
    [MRI_LEFT_SYSTEM] = {"folder of an operating system", "folders of an operating system", ""},
    [MRI_LEFT_EMPTY] = {"class folder", "class folders", ""},
};

/* Where in the data set: "cat/notes.txt". */
static void place(char *buf, size_t room, const char *root, const char *where, const char *name)
{
    const size_t n = strlen(root);
    const char *below = strncmp(where, root, n) == 0 ? where + n : where;
    below += strspn(below, "/");
    snprintf(buf, room, "%s%s%s", below, below[0] ? "/" : "", name);
}

void mri_leave_out(mri_left_out *l, mri_left kind, const char *where, const char *name, const char *what)
{
    char text[MRI_FOLDER_PATH];
    if (!l) return;
    l->of[kind].count++;
    place(text, sizeof text, l->root, where, name);
    const size_t n = strlen(text);
    if (what) snprintf(text + n, sizeof text - n, ": %s", what);
    text[sizeof l->of[kind].name[0] - 1] = '\0';
    for (size_t k = 0; k < MRI_LEFT_NAMES; k++) {
        char *kept = l->of[kind].name[k], swapped[sizeof l->of[kind].name[0]];
        if (kept[0] && strcmp(text, kept) >= 0) continue;
        memcpy(swapped, kept, sizeof swapped);
        memcpy(kept, text, strlen(text) + 1);
        if (!swapped[0]) return;
        memcpy(text, swapped, sizeof swapped);
    }
}

uint64_t mri_left_out_count(const mri_left_out *l)
{
    uint64_t all = l->hidden;
    for (int k = 0; k < MRI_LEFT_EMPTY; k++) all += l->of[k].count;
    return all;
}

/* Append "a, b, c, ..." to buf. */
static void names(const mri_left_out *l, mri_left kind, const char *between, char *buf, size_t room)
{
    size_t at = strlen(buf);
    for (size_t k = 0; k < MRI_LEFT_NAMES && at < room && l->of[kind].name[k][0]; k++) {
        at += (size_t)snprintf(buf + at, room - at, "%s%s", between, l->of[kind].name[k]);
        between = ", ";
    }
    if (at < room && l->of[kind].count > MRI_LEFT_NAMES) snprintf(buf + at, room - at, ", ...");
}

char *mri_left_out_text(const mri_left_out *l, mri_left kind, char *buf, size_t buf_bytes)
{
    const bool both = kind == MRI_LEFT_NO_PICTURE;
    const uint64_t count = l->of[kind].count + (both ? l->of[MRI_LEFT_UNDECODED].count : 0);
    buf[0] = '\0';
    if (count == 0) return buf;
    snprintf(buf, buf_bytes, "%llu %s (", (unsigned long long)count,
             count == 1 ? texts[kind].one : texts[kind].more);
    names(l, kind, "", buf, buf_bytes);
    if (both) names(l, MRI_LEFT_UNDECODED, l->of[kind].count ? ", " : "", buf, buf_bytes);
    const size_t at = strlen(buf);
    snprintf(buf + at, buf_bytes - at, ")");
    return buf;
}

void mri_left_out_tell(const mri_left_out *l, mr_source *src)
{
    char text[960];
    for (int k = 0; k < MRI_LEFT_EMPTY; k++)
        if (k != MRI_LEFT_UNDECODED && mri_left_out_text(l, (mri_left)k, text, sizeof text)[0])
            mri_source_tell(src, "left out: %s%s", text, texts[k].advice);
    if (mri_left_out_text(l, MRI_LEFT_EMPTY, text, sizeof text)[0])
        mri_source_tell(src, "%s without pictures: %s all the same", text,
                        l->of[MRI_LEFT_EMPTY].count == 1 ? "a class" : "classes");
}
