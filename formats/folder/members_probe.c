/* formats/folder/members_probe.c: is an archive one of class folders, or one of samples (WebDataset)?
 *
 *   two folders with pictures; half of them or more have no other member of their key   class folders
 *   more than half have one (0017.jpg with 0017.json, 0017.boxes.npy, ...)              samples
 *   a picture has a member .cls, .class, .label; __classes__                            samples
 *   archives in the archive                                                             class folders
 *
 * A few pictures with a text of the same stem, or with a second picture of it, decide nothing.
 *
 * Of a packed archive only the beginning is looked at: pictures in a folder without companions are enough
 * there. */
#include <fcntl.h>
#include <stdio.h>
#include <strings.h>
#include <unistd.h>

#include "base/util.h"
#include "formats/arrays/zip.h"
#include "formats/folder/folder.h"
#include "formats/folder/members.h"
#include "formats/folder/members_pack.h"
#include "formats/storage/storage.h"
#include "formats/tar/tar.h"
#include "formats/tar/tar_sample.h"

enum { PACKED_LOOK = 256 << 10, UNPACKED_LOOK = 1 << 20, WHOLE_SET = 2, MOST_NAME = MRI_TAR_MAX_NAME };

/* The most keys with pictures that are looked at; fewer suffice if each of them has another member. */
enum { MOST_KEYS = 1 << 16, KEYS_OF_SAMPLES = 1 << 12, KEYS_WITHOUT_FOLDER = 16 };

typedef struct look {
    uint32_t pictures, folders, archives;
    uint32_t keys, shared; /* keys with a picture; and with another member, too */
    bool labelled;         /* a sure sign of WebDataset */
    bool cut;              /* more members follow, maybe of the last key */
    char folder[MOST_NAME + 1], key[MOST_NAME + 1];
    uint32_t key_members;
    bool key_has_picture, key_has_label;
} look;

static bool is_of_picture(const char *name)
{
    const char *what, *slash = strrchr(name, '/');
    return mri_file_kind_of_name(slash ? slash + 1 : name, &what) == MRI_FILE_PICTURE;
}

static bool is_of_label(const char *ending)
{
    return strcasecmp(ending, ".cls") == 0 || strcasecmp(ending, ".class") == 0 ||
           strcasecmp(ending, ".label") == 0;
}

/* Of the key's picture 17.jpg: is it 17.boxes.npy or 17.mask.png? Other pictures may be called 17.1.jpg. */
static bool is_of_key(const look *l, const char *name, bool picture)
{
    const size_t n = strlen(l->key);
    return l->key_has_picture && n > 0 && strncmp(l->key, name, n) == 0 && name[n] == '.' &&
           (!picture || mri_has_word_of_masks(name + n));
}

/* The picture after such members, where these come first: 17.boxes.npy, 17.jpg. */
static bool is_picture_of_key(const look *l, const char *name, size_t key, bool picture)
{
    return picture && !l->key_has_picture && strncmp(l->key, name, key) == 0 && l->key[key] == '.';
}

static void see_key(look *l, const char *name, size_t key, bool picture)
{
    const bool known = strlen(l->key) == key && strncmp(l->key, name, key) == 0;
    if (is_picture_of_key(l, name, key, picture)) l->key[key] = '\0';
    else if (!known && !is_of_key(l, name, picture)) {
        snprintf(l->key, sizeof l->key, "%.*s", (int)key, name);
        l->key_members = 0;
        l->key_has_picture = l->key_has_label = false;
    }
    const bool was_shared = l->key_has_picture && l->key_members > 1;
    l->keys += picture && !l->key_has_picture;
    l->key_members++;
    l->key_has_picture |= picture;
    l->key_has_label |= is_of_label(name + key);
    l->shared += !was_shared && l->key_has_picture && l->key_members > 1;
    l->labelled |= l->key_has_picture && l->key_has_label;
}

static void see(look *l, const char *name)
{
    const char *slash = strrchr(name, '/'), *last = slash ? slash + 1 : name;
    const size_t folder = slash ? (size_t)(slash - name) : 0, bytes = strlen(name);
    const char *dot = strrchr(last, '.');
    const size_t key = dot ? (size_t)(dot - name) : bytes;
    const bool picture = is_of_picture(name);
    if (mri_tar_is_meta(name) && strncmp(name, "__MACOSX", 8) != 0) l->labelled = true;
    if (last[0] == '.' || strncmp(name, "__MACOSX", 8) == 0) return;
    see_key(l, name, key, picture);
    if (!picture || folder == 0) return;
    l->pictures++;
    if (l->folders > 0 && strlen(l->folder) == folder && strncmp(l->folder, name, folder) == 0) return;
    snprintf(l->folder, sizeof l->folder, "%.*s", (int)folder, name);
    l->folders++;
}

static bool is_of_samples(const look *l)
{
    const bool last_is_cut = l->cut && l->key_has_picture && l->key_members == 1;
    return l->labelled || l->shared > (l->keys - last_is_cut) / 2;
}

static bool is_decided(const look *l)
{
    if (l->labelled || l->keys >= MOST_KEYS) return true;
    if (l->shared == 0) return l->folders >= WHOLE_SET && l->pictures > WHOLE_SET;
    return l->shared == l->keys && l->keys >= (l->folders ? KEYS_OF_SAMPLES : KEYS_WITHOUT_FOLDER);
}

static int scan_get(void *context, uint64_t offset, size_t bytes, const uint8_t **out, mr_error *err)
{
    return mri_file_scan_get(context, offset, bytes, out, err);
}

typedef struct piece {
    const uint8_t *data;
    size_t bytes;
} piece;

static int piece_get(void *context, uint64_t offset, size_t bytes, const uint8_t **out, mr_error *err)
{
    const piece *p = context;
    if (offset > p->bytes || bytes > p->bytes - offset)
        return mr_error_set(err, MR_EFORMAT, "it ends here, as far as it was looked at");
    *out = p->data + offset;
    return MR_OK;
}

/* A member that could not be looked at may decide how the archive is read, so opening fails. */
static bool no_memory(const mri_probe *p)
{
    mr_error why = MR_ERROR_INIT;
    mr_error_set(&why, MR_ENOMEM, "no memory to look into an archive");
    mr_error_at(&why, p->path, MR_NOWHERE, MR_NOWHERE);
    mri_probe_failed(p->trouble, MR_ENOMEM, &why);
    return false;
}

static void walk(const mri_probe *p, look *l, mri_tar_get *get, void *context, uint64_t bytes)
{
    mri_tar_member m;
    mr_error why = MR_ERROR_INIT;
    int rc = MR_OK;
    mri_tar *t = malloc(sizeof *t);
    if (!t) {
        no_memory(p);
        return;
    }
    mri_tar_init(t, get, context, 0, bytes);
    while (!is_decided(l) && !mri_stop_asked() && (rc = mri_tar_next(t, &m, &why)) == MR_OK) {
        const size_t n = strlen(m.name);
        if (m.kind != MRI_TAR_FILE && m.kind != MRI_TAR_HARD_LINK && m.kind != MRI_TAR_SYMBOLIC_LINK)
            continue;
        if (m.kind == MRI_TAR_FILE && n > 4 && strcmp(m.name + n - 4, ".tar") == 0) l->archives++;
        see(l, m.name);
    }
    l->cut = rc != MR_OK && rc != MR_EEND;
    if (l->cut) mri_probe_failed(p->trouble, rc, &why);
    free(t);
}

/* The beginning; all: nothing may follow. */
static bool is_found(const look *l, bool all)
{
    return !is_of_samples(l) && l->pictures > 0 && l->folders >= (all ? WHOLE_SET : 1);
}

static bool see_name(void *context, const char *name)
{
    see(context, name);
    return !is_decided(context);
}

static bool probe_pack(int fd, const mri_probe *p, mri_pack pack)
{
    look *l = calloc(1, sizeof *l);
    uint8_t *out = malloc(UNPACKED_LOOK);
    bool found = false;
    if (!l || !out) no_memory(p);
    if (l && out && !mri_pack_is_filter(pack)) {
        const bool all = mri_pack_names(fd, pack, see_name, l);
        l->cut = !all;
        found = is_found(l, all);
    } else if (l && out) {
        piece whole = {out, mri_pack_head(fd, pack, out, UNPACKED_LOOK)};
        if (mri_tar_is_header(out, whole.bytes)) walk(p, l, piece_get, &whole, UINT64_MAX / 2);
        const bool all = whole.bytes < UNPACKED_LOOK;
        const uint32_t enough = all ? WHOLE_SET : 1;
        found = is_found(l, all) || (l->archives >= enough && !is_of_samples(l) && l->pictures == 0);
    }
    free(l);
    free(out);
    return found;
}

static bool probe_packed(int fd, const mri_probe *p)
{
    look *l = calloc(1, sizeof *l);
    uint8_t *in = malloc(PACKED_LOOK), *out = malloc(UNPACKED_LOOK);
    const size_t n = (size_t)mri_min_u64(PACKED_LOOK, p->bytes);
    bool found = false;
    if (!l || !in || !out) no_memory(p);
    if (l && in && out && mri_pread_all(fd, in, n, 0, p->path, NULL) == MR_OK) {
        piece whole = {out, mri_gunzip_head(in, n, out, UNPACKED_LOOK)};
        walk(p, l, piece_get, &whole, UINT64_MAX / 2);
        found = is_found(l, n == p->bytes && whole.bytes < UNPACKED_LOOK);
    }
    free(l);
    free(in);
    free(out);
    return found;
}

static bool probe_tar(int fd, const mri_probe *p)
{
    look *l = calloc(1, sizeof *l);
    mri_file_scan w;
    if (!l) return no_memory(p);
    mri_file_scan_init(&w, fd, p->path, p->bytes);
    walk(p, l, scan_get, &w, p->bytes);
    mri_file_scan_fini(&w);
    const bool found =
        !is_of_samples(l) && (l->folders >= WHOLE_SET || (l->archives >= WHOLE_SET && l->pictures == 0));
    free(l);
    return found;
}

static bool probe_zip(int fd, const mri_probe *p)
{
    mri_zip z;
    mr_error why = MR_ERROR_INIT;
    bool found = false;
    const int rc = mri_zip_open_many(&z, fd, p->bytes, p->path, (uint64_t)1 << 30, &why);
    if (rc == MR_ENOMEM) mri_probe_failed(p->trouble, rc, &why);
    if (rc != MR_OK) return false;
    for (uint32_t k = 0; !found && k < z.count; k++)
        found = strchr(z.member[k].name, '/') && is_of_picture(z.member[k].name);
    mri_zip_close(&z);
    return found;
}

bool mri_members_probe(const mri_probe *p)
{
    if (p->is_folder || p->is_pattern) return false;
    const bool zip = mri_is_zip(p->head, p->head_bytes), tar = mri_tar_is_header(p->head, p->head_bytes);
    const bool packed = !tar && p->inner != p->head && mri_tar_is_header(p->inner, p->inner_bytes);
    const mri_pack pack = mri_pack_of(p->head, p->head_bytes);
    if (!zip && !tar && !packed && !pack) return false;
    const int fd = open(p->path, O_RDONLY | O_CLOEXEC | O_NONBLOCK);
    if (fd < 0) return false;
    const bool found = zip    ? probe_zip(fd, p)
                       : tar  ? probe_tar(fd, p)
                       : pack ? probe_pack(fd, p, pack)
                              : probe_packed(fd, p);
    close(fd);
    return found;
}
