/* pipeline/export/export_name.c: see export_name.h. */
#include "pipeline/export/export_name.h"

#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "formats/image/picture_files.h"
#include "formats/source/parts.h"

enum {
    LONGEST_PART = 200, /* a temporary file's name is longer than its own */
    LONGEST = 2048,
    LEAST_ROOM = 1024
};

static uint64_t hash_bytes(const char *text, size_t bytes)
{
    uint64_t h = 0xcbf29ce484222325u;
    for (size_t k = 0; k < bytes; k++) h = (h ^ (unsigned char)text[k]) * 0x100000001b3u;
    h ^= h >> 32;
    return h ? h : 1;
}

/* ---- one safe path ---- */
/* Of the control character that stands here: ASCII's, and U+0080 to U+009F in UTF-8. 0: another character. */
static size_t control_bytes(const char *at)
{
    const unsigned char c = (unsigned char)at[0], next = c ? (unsigned char)at[1] : 0;
    if (c == 0xc2 && next >= 0x80 && next < 0xa0) return 2;
    return c < 0x20 || c == 0x7f;
}

/* One part of a path. Control characters and a point in front become _. Of a part that is too long the
 * beginning stays, then come a hash of all of it, so that two of them stay two, and its ending. Returns the
 * bytes written. */
static size_t put_safe_part(const char *part, size_t n, char *out)
{
    enum { LONGEST_ENDING = 10, HASH = 17 };
    size_t kept = n, used = 0, ending = n;
    if (n > LONGEST_PART) {
        while (ending > 0 && n - ending <= LONGEST_ENDING && part[ending - 1] != '.') ending--;
        ending = ending > 0 && n - ending <= LONGEST_ENDING ? ending - 1 : n;
        kept = LONGEST_PART - HASH - (n - ending);
        while (kept > 0 && ((unsigned char)part[kept] & 0xc0) == 0x80) kept--; /* no half a character */
    }
    for (size_t k = 0; k < kept; k++) {
        const size_t control = control_bytes(part + k);
        out[used++] = control || (k == 0 && part[k] == '.') ? '_' : part[k];
        if (control > 1) k++;
    }
    if (n > LONGEST_PART) {
        used += (size_t)sprintf(out + used, "-%016" PRIx64, hash_bytes(part, n));
        memcpy(out + used, part + ending, n - ending);
        used += n - ending;
    }
    return used;
}

/* Parts between slashes, without parts that lead elsewhere. */
bool mri_export_name_safe(const char *name, char *out, size_t room)
{
    size_t used = 0;
    for (const char *at = name; *at;) {
        const size_t n = strcspn(at, "/");
        const bool skip = n == 0 || (n == 1 && at[0] == '.') || (n == 2 && at[0] == '.' && at[1] == '.');
        if (!skip) {
            if (used + (n < LONGEST_PART ? n : LONGEST_PART) + 2 > room) return false;
            if (used) out[used++] = '/';
            used += put_safe_part(at, n, out + used);
        }
        at += n + (at[n] == '/');
    }
    out[used] = '\0';
    return used > 0;
}

/* ---- endings ---- */
/* Give the name the ending of the kind of file, unless it has it. */
static void set_ending(char *name, const char *ending)
{
    char *const slash = strrchr(name, '/');
    char *dot = strrchr(slash ? slash + 1 : name, '.');
    const mr_type kind = dot ? mri_picture_ending(dot + 1, strlen(dot + 1)) : 0;
    if (kind && kind == mri_picture_ending(ending, strlen(ending))) return;
    if (!kind) dot = name + strlen(name);
    sprintf(dot, ".%s", ending); /* there is room: MRI_EXPORT_NAME_ROOM is more than LONGEST */
}

/* ---- names in use ---- */
static uint64_t hash_of(const char *text) { return hash_bytes(text, strlen(text)); }

static bool put(mri_export_names *n, uint64_t hash)
{
    uint64_t at = hash & (n->room - 1);
    for (; n->used[at]; at = (at + 1) & (n->room - 1))
        if (n->used[at] == hash) return false;
    n->used[at] = hash;
    n->count++;
    return true;
}

static bool grow(mri_export_names *n)
{
    if (n->count < n->room / 2) return true;
    mri_export_names larger = {.room = n->room ? 2 * n->room : LEAST_ROOM};
    larger.used = calloc(larger.room, sizeof *larger.used);
    if (!larger.used) return false;
    for (uint64_t k = 0; k < n->room; k++)
        if (n->used[k]) put(&larger, n->used[k]);
    free(n->used);
    *n = larger;
    return true;
}

void mri_export_names_fini(mri_export_names *n)
{
    free(n->used);
    *n = (mri_export_names){0};
}

/* ---- the name ---- */
/* Folders of the path begin with these words of a path. */
static bool begins_with(const char *path, const char *start, size_t bytes)
{
    return strncmp(path, start, bytes) == 0 && (bytes == 0 || path[bytes - 1] == '/' || path[bytes] == '/');
}

/* Bytes of the path in front of the class's folder, in which the file lies itself; SIZE_MAX: it lies in
 * another folder. */
static size_t before_class(const char *path, const char *class_path)
{
    const char *slash = strrchr(path, '/');
    const size_t n = strlen(class_path), folder = slash ? (size_t)(slash - path) : 0;
    if (folder < n || memcmp(slash - n, class_path, n) != 0) return SIZE_MAX;
    return folder == n || path[folder - n - 1] == '/' ? folder - n : SIZE_MAX;
}

/* Bytes of the path's first folder with its slash, if it is a part of a set: train/. A file in it may be of a
 * class of that name (test-tube/1.jpg). */
static size_t part_bytes(const char *path, bool before_files)
{
    char name[LONGEST_PART + 1];
    const size_t n = strcspn(path, "/");
    if (!path[n] || n >= sizeof name || (!before_files && !strchr(path + n + 1, '/'))) return 0;
    memcpy(name, path, n);
    name[n] = '\0';
    const mri_part part = mri_part_of_name(name);
    return part == MRI_NO_PART || part == MRI_TWO_PARTS ? 0 : n + 1;
}

/* Where class folders begin, from the first sample: "" of cat/1.jpg and train/cat/1.jpg, "photos/" of
 * photos/cat/1.jpg. */
static void find_root(mri_export_names *n, const char *path, size_t before)
{
    n->rooted = true;
    n->root[0] = '\0';
    if (before == SIZE_MAX || before >= sizeof n->root) return;
    size_t last = before; /* of the last folder in front of the class's, the first byte */
    while (last > 0 && path[last - 1] == '/') last--;
    while (last > 0 && path[last - 1] != '/') last--;
    if (part_bytes(path + last, true)) before = last;
    if (before && part_bytes(path, true))
        before = 0; /* train/photos/cat: val/photos/cat is none of its folders */
    memcpy(n->root, path, before);
    n->root[before] = '\0';
}

/* ROOT[PART/]CLASS/FILE: a folder of pictures is read so. Folders between the class's and the file, folders
 * of a former name of the class and of several roots would be passed over, or be classes. */
static void put_in_class(mri_export_names *n, const char *path, const char *class_path,
                         char out[MRI_EXPORT_NAME_ROOM])
{
    const size_t before = before_class(path, class_path);
    if (!n->rooted) find_root(n, path, before);
    const size_t root = strlen(n->root);
    const bool below = begins_with(path, n->root, root);
    const size_t part = below ? part_bytes(path + root, before == SIZE_MAX ? false : before > root) : 0;
    const char *slash = strrchr(path, '/');
    if (below && before == root + part) strcpy(out, path); /* both have room for it */
    else
        snprintf(out, MRI_EXPORT_NAME_ROOM, "%s%.*s%s/%s", n->root, (int)part, path + (below ? root : 0),
                 class_path, slash ? slash + 1 : path);
}

/* Does the path end in the name, each by its folders? */
static bool ends_in(const char *path, const char *name)
{
    const size_t n = strlen(name), all = strlen(path);
    return all >= n && strcmp(path + all - n, name) == 0 && (all == n || path[all - n - 1] == '/');
}

/* Another sample has the name: the number makes it another one. */
static void add_number(char out[MRI_EXPORT_NAME_ROOM], uint64_t number)
{
    const char *slash = strrchr(out, '/'), *dot = strrchr(slash ? slash : out, '.');
    const size_t stem = dot ? (size_t)(dot - out) : strlen(out);
    char end[LONGEST_PART + 64];
    snprintf(end, sizeof end, "-%08" PRIu64 "%s", number, out + stem);
    strcpy(out + stem, end);
}

bool mri_export_name(mri_export_names *n, const mri_export_sample *s, char out[MRI_EXPORT_NAME_ROOM],
                     bool *changed)
{
    char class_path[LONGEST / 4], name[LONGEST / 2];
    if (!grow(n)) return false;
    const bool has_class =
        s->class_name[0] && mri_export_name_safe(s->class_name, class_path, sizeof class_path);
    if (!has_class) class_path[0] = '\0';
    *changed = s->name[0];
    if (mri_export_name_safe(s->name, name, sizeof name)) {
        if (has_class) put_in_class(n, name, class_path, out);
        else strcpy(out, name);
        *changed = !ends_in(out, s->name);
        if (!s->unchanged) set_ending(out, s->ending);
    } else {
        snprintf(out, MRI_EXPORT_NAME_ROOM, "%s%s%08" PRIu64 ".%s", class_path, has_class ? "/" : "",
                 s->number, s->ending);
    }
    for (int again = 0; again < 4 && !put(n, hash_of(out)); again++) {
        *changed |= s->name[0] != '\0';
        add_number(out, s->number);
    }
    return true;
}
