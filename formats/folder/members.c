/* formats/folder/members.c: see members.h. */
#include "formats/folder/members.h"

#include <errno.h>
#include <fcntl.h>
#include <isa-l/crc.h>
#include <isa-l/igzip_lib.h>
#include <stdio.h>
#include <sys/stat.h>
#include <unistd.h>
#include <xxhash.h>

#include "base/util.h"
#include "formats/arrays/zip.h"
#include "formats/folder/folder.h"
#include "formats/folder/members_pack.h"
#include "formats/source/withdrawn_list.h"
#include "formats/storage/spill.h"
#include "formats/storage/storage.h"
#include "formats/tar/tar.h"

enum { MOST_FILE_BYTES = 64 << 20 };

static int no_memory(const mri_members *m, mr_error *err)
{
    return mri_error_place(err, mr_error_set(err, MR_ENOMEM, "no memory for the names of an archive"),
                           m->path, MR_NOWHERE, MR_NOWHERE);
}

static int refused(const mri_members *m, const char *name, uint64_t offset, const char *why, mr_error *err)
{
    char shown[256];
    mr_error_set(err, MR_EUNSUPPORTED, "member \"%s\" %s", mr_text_shown(name, shown, sizeof shown), why);
    return mri_error_place(err, MR_EUNSUPPORTED, m->path, offset, MR_NOWHERE);
}

/* ---- the tree ---- */
static uint64_t hash_of(int parent, const char *name, size_t bytes)
{
    return XXH3_64bits_withSeed(name, bytes, (uint64_t)parent);
}

static int32_t *slot_of(const mri_members *m, int parent, const char *name, size_t bytes)
{
    uint64_t at = hash_of(parent, name, bytes) & (m->slot_count - 1);
    for (; m->slot[at] >= 0; at = (at + 1) & (m->slot_count - 1)) {
        const mri_member *n = &m->node[m->slot[at]];
        const char *own = m->text + n->name;
        if (n->parent == parent && strncmp(own, name, bytes) == 0 && own[bytes] == '\0') break;
    }
    return &m->slot[at];
}

static bool grow(mri_members *m)
{
    const uint32_t cap = m->cap ? 2 * m->cap : 1024;
    mri_member *node = realloc(m->node, cap * sizeof *node);
    if (node) m->node = node;
    int32_t *slot = node ? malloc(2 * (size_t)cap * sizeof *slot) : NULL;
    if (!slot) return false;
    free(m->slot);
    m->slot = slot;
    m->slot_count = 2 * cap;
    m->cap = cap;
    memset(slot, 0xff, m->slot_count * sizeof *slot);
    for (uint32_t k = 1; k < m->count; k++) {
        const char *name = m->text + m->node[k].name;
        *slot_of(m, m->node[k].parent, name, strlen(name)) = (int32_t)k;
    }
    return true;
}

static int add_node(mri_members *m, int parent, const char *name, size_t bytes, int *out, mr_error *err)
{
    if (m->count == m->cap && !grow(m)) return no_memory(m, err);
    if (m->text_used + bytes + 1 > UINT32_MAX || m->count == INT32_MAX / 2)
        return mr_error_set(err, MR_ELIMIT, "more names than can be kept: convert parts of the archive");
    if (!mri_make_room((void **)&m->text, &m->text_cap, m->text_used, bytes + 1, 1)) return no_memory(m, err);
    mri_member *n = &m->node[m->count];
    *n = (mri_member){.name = (uint32_t)m->text_used, .parent = parent, .child = -1, .next = -1};
    memcpy(m->text + m->text_used, name, bytes);
    m->text[m->text_used + bytes] = '\0';
    m->text_used += bytes + 1;
    *out = (int)m->count++;
    if (*out == 0) return MR_OK;
    *slot_of(m, parent, name, bytes) = *out;
    n->next = m->node[parent].child;
    m->node[parent].child = *out;
    return MR_OK;
}

/* A step down from `at`; folders are made on the way. */
static int step(mri_members *m, int at, const char *whole, const char *name, size_t bytes, bool folder,
                uint64_t offset, int *out, mr_error *err)
{
    const int found = *slot_of(m, at, name, bytes);
    if (found >= 0 && folder && m->node[found].is_folder) return *out = found, MR_OK;
    if (found >= 0)
        return refused(m, whole, offset,
                       folder || m->node[found].is_folder ? "is a file and a folder at once" : "comes twice",
                       err);
    const int rc = add_node(m, at, name, bytes, out, err);
    if (!rc) m->node[*out].is_folder = folder;
    return rc;
}

/* The node of a member, folders above it included; -1: nothing that counts. */
static int add_path(mri_members *m, int root, const char *path, bool folder, uint64_t offset, int *out,
                    mr_error *err)
{
    int at = root;
    *out = -1;
    if (path[0] == '/')
        return refused(m, path, offset, "leads out of the archive: its name begins with /", err);
    if (strncmp(path, "__MACOSX/", 9) == 0) return MR_OK;
    for (const char *p = path; *p;) {
        const size_t n = strcspn(p, "/");
        const bool last = p[n] == '\0' || p[n + strspn(p + n, "/")] == '\0';
        if (n == 2 && memcmp(p, "..", 2) == 0)
            return refused(m, path, offset, "leads out of the archive: ..", err);
        if (n > NAME_MAX) return refused(m, path, offset, "has a name that no file can have", err);
        if (n > 0 && !(n == 1 && *p == '.')) {
            const int rc = step(m, at, path, p, n, !last || folder, offset, &at, err);
            if (rc) return rc;
        }
        p += n;
        p += strspn(p, "/");
    }
    *out = at == root ? -1 : at;
    return MR_OK;
}

int mri_members_find(const mri_members *m, int below, const char *path)
{
    int at = below;
    while (*path && at >= 0) {
        const size_t n = strcspn(path, "/");
        if (n > 0 && !(n == 1 && *path == '.')) at = *slot_of(m, at, path, n);
        path += n;
        path += strspn(path, "/");
    }
    return at;
}

uint64_t mri_members_memory(const mri_members *m)
{
    return m->text_cap + m->cap * (sizeof *m->node + 2 * sizeof *m->slot) +
           (m->in_memory ? m->file_bytes : 0);
}

/* ---- tar ---- */
static int tar_get(void *context, uint64_t offset, size_t bytes, const uint8_t **out, mr_error *err)
{
    return mri_file_scan_get(context, offset, bytes, out, err);
}

static bool ends_in(const char *name, const char *ending)
{
    const size_t n = strlen(name), e = strlen(ending);
    return n > e && strcmp(name + n - e, ending) == 0;
}

static int take_tar(mri_members *m, mri_file_scan *w, int root, uint64_t at, uint64_t end, int level,
                    const mr_source_config *cfg, mr_error *err);

/* An archive in the archive: a folder of its name. */
static int take_inner(mri_members *m, mri_file_scan *w, int root, const mri_tar_member *t,
                      const mr_source_config *cfg, bool *taken, mr_error *err)
{
    char name[MRI_TAR_MAX_NAME + 1];
    const uint8_t *head;
    int node;
    *taken = false;
    if (!ends_in(t->name, ".tar") || t->bytes < 2 * MRI_TAR_BLOCK) return MR_OK;
    int rc = mri_file_scan_get(w, t->data, MRI_TAR_BLOCK, &head, err);
    if (rc || !mri_tar_is_header(head, MRI_TAR_BLOCK)) return rc;
    snprintf(name, sizeof name, "%.*s", (int)strlen(t->name) - 4, t->name);
    *taken = true;
    rc = add_path(m, root, name, true, t->head, &node, err);
    return rc || node < 0 ? rc : take_tar(m, w, node, t->data, t->data + t->bytes, 1, cfg, err);
}

static int take_tar_member(mri_members *m, mri_file_scan *w, int root, const mri_tar_member *t, int level,
                           const mr_source_config *cfg, mr_error *err)
{
    bool taken = false;
    int node, rc = MR_OK;
    char what[120];
    if (t->kind == MRI_TAR_OTHER) return MR_OK;
    if (t->kind != MRI_TAR_FILE && t->kind != MRI_TAR_FOLDER) {
        snprintf(what, sizeof what, "is %s: write the archive without (tar --dereference --hard-dereference)",
                 mri_tar_kind_name(t->kind));
        return refused(m, t->name, t->head, what, err);
    }
    if (level == 0) rc = take_inner(m, w, root, t, cfg, &taken, err);
    if (rc || taken) return rc;
    rc = add_path(m, root, t->name, t->kind == MRI_TAR_FOLDER, t->head, &node, err);
    if (rc || node < 0 || t->kind == MRI_TAR_FOLDER) return rc;
    m->node[node].offset = t->data;
    m->node[node].bytes = t->bytes;
    return mri_source_budget(cfg, mri_members_memory(m), m->path, err);
}

static int take_tar(mri_members *m, mri_file_scan *w, int root, uint64_t at, uint64_t end, int level,
                    const mr_source_config *cfg, mr_error *err)
{
    mri_tar_member t;
    mri_tar *walk = malloc(sizeof *walk);
    if (!walk) return no_memory(m, err);
    mri_tar_init(walk, tar_get, w, at, end);
    int rc;
    while ((rc = mri_tar_next(walk, &t, err)) == MR_OK)
        if (mri_stop_asked() ? (rc = mri_stopped(err))
                             : (rc = take_tar_member(m, w, root, &t, level, cfg, err)))
            break;
    if (rc == MR_EEND) rc = mri_tar_finish(walk, err);
    if (!rc && level == 0) m->cut = walk->end_blocks == 0;
    free(walk);
    return rc ? mri_error_place(err, rc, err && err->file[0] ? NULL : m->path, MR_NOWHERE, MR_NOWHERE)
              : MR_OK;
}

/* ---- zip ---- */
static int take_zip(mri_members *m, const mr_source_config *cfg, mr_error *err)
{
    mri_zip z;
    int node, rc = mri_zip_open_many(&z, m->fd, m->file_bytes, m->path, cfg->memory_bytes, err);
    m->is_zip = true;
    for (uint32_t k = 0; !rc && k < z.count; k++) {
        mri_zip_member *from = &z.member[k];
        const bool folder = from->name[strlen(from->name) - 1] == '/';
        rc = add_path(m, 0, from->name, folder, from->header, &node, err);
        if (rc || node < 0 || folder) continue;
        rc = mri_zip_locate(&z, from, err);
        m->node[node].offset = from->offset;
        m->node[node].bytes = from->bytes;
        m->node[node].packed = from->packed;
        m->node[node].deflated = from->method != 0;
        m->node[node].crc = from->crc;
        m->any_deflated |= from->method != 0;
        if (!rc) rc = mri_source_budget(cfg, mri_members_memory(m) + z.memory_bytes, m->path, err);
    }
    mri_zip_close(&z);
    return rc;
}

/* ---- which folder is meant ---- */
static bool is_picture(const mri_members *m, int at)
{
    const char *what;
    return !m->node[at].is_folder &&
           mri_file_kind_of_name(mri_members_name(m, at), &what) == MRI_FILE_PICTURE;
}

static bool has_pictures(const mri_members *m, int at)
{
    if (!m->node[at].is_folder) return is_picture(m, at);
    for (int k = m->node[at].child; k >= 0; k = m->node[k].next)
        if (mri_members_name(m, k)[0] != '.' && has_pictures(m, k)) return true;
    return false;
}

/* Folders that hold all there is are no classes: food-101/images/. */
static void find_inside(mri_members *m)
{
    for (int at = 0;;) {
        int only = -1, count = 0, below = 0;
        for (int k = m->node[at].child; k >= 0; k = m->node[k].next)
            if (has_pictures(m, k)) only = k, count++;
        if (count != 1 || !m->node[only].is_folder ||
            mri_part_of_name(mri_members_name(m, only)) != MRI_NO_PART)
            return;
        for (int k = m->node[only].child; k >= 0; k = m->node[k].next)
            below += m->node[k].is_folder && has_pictures(m, k);
        const size_t used = strlen(m->inside), room = sizeof m->inside - used;
        if (!below || strlen(mri_members_name(m, only)) + 2 > room) return;
        snprintf(m->inside + used, room, "%s%s", used ? "/" : "", mri_members_name(m, only));
        at = only;
    }
}

/* ---- open, close ---- */
static int open_bytes(mri_members *m, const mr_source_config *cfg, uint8_t head[MRI_PROBE_BYTES],
                      mr_error *err)
{
    struct stat st;
    m->fd = open(m->path, O_RDONLY | O_CLOEXEC | O_NONBLOCK);
    int rc = m->fd < 0 ? mr_error_sys(err, errno, "cannot open") : MR_OK;
    if (!rc && fstat(m->fd, &st) != 0) rc = mr_error_sys(err, errno, "cannot look at it");
    if (rc) return mri_error_place(err, rc, m->path, MR_NOWHERE, MR_NOWHERE);
    m->file_bytes = (uint64_t)st.st_size;
    const size_t bytes = (size_t)mri_min_u64(MRI_PROBE_BYTES, m->file_bytes);
    memset(head, 0, MRI_PROBE_BYTES);
    rc = mri_pread_all(m->fd, head, bytes, 0, m->path, err);
    const mri_pack pack = mri_pack_of(head, bytes);
    if (rc || (!pack && !mri_is_packed(head, bytes))) return rc;
    int out;
    rc = pack ? mri_pack_unpack(m->fd, pack, m->file_bytes, m->path, cfg->memory_bytes / 2, &out,
                                &m->file_bytes, &m->in_memory, err)
              : mri_unpack_file(m->fd, m->file_bytes, m->path, cfg->memory_bytes / 2, &out, &m->file_bytes,
                                &m->in_memory, err);
    if (rc) return rc;
    close(m->fd);
    m->fd = out;
    m->unpacked = true;
    return MR_OK;
}

int mri_members_open(mri_members *m, const char *path, const mr_source_config *cfg, mr_error *err)
{
    uint8_t head[MRI_PROBE_BYTES];
    int root;
    *m = (mri_members){.fd = -1, .path = path};
    int rc = open_bytes(m, cfg, head, err);
    if (!rc) rc = add_node(m, -1, "", 0, &root, err);
    if (rc) return rc;
    m->node[0].is_folder = true;
    if (mri_is_zip(head, sizeof head)) {
        rc = take_zip(m, cfg, err);
    } else {
        mri_file_scan w;
        mri_file_scan_init(&w, m->fd, path, m->file_bytes);
        rc = take_tar(m, &w, 0, 0, m->file_bytes, 0, cfg, err);
        mri_file_scan_fini(&w);
    }
    if (!rc) find_inside(m);
    return rc;
}

void mri_members_close(mri_members *m)
{
    if (m->fd >= 0) close(m->fd);
    free(m->node);
    free(m->text);
    free(m->slot);
    *m = (mri_members){.fd = -1};
}

/* ---- bytes ---- */
uint32_t mri_members_crc(const void *data, size_t bytes) { return crc32_gzip_refl(0, data, bytes); }

int mri_members_inflate(const mri_members *m, uint64_t offset, uint64_t packed, uint64_t bytes, uint32_t crc,
                        uint8_t *buffer, mr_error *err)
{
    if (packed > bytes + bytes / 256 + 4096) /* deflate stores data that it cannot compress */
        return mri_error_place(err,
                               mr_error_set(err, MR_EFORMAT,
                                            "zip: a damaged member: it says more packed bytes than "
                                            "unpacked ones"),
                               m->path, offset, MR_NOWHERE);
    struct inflate_state *s = malloc(sizeof *s);
    uint8_t *in = s ? malloc(packed ? (size_t)packed : 1) : NULL;
    int rc = in ? mri_pread_all(m->fd, in, (size_t)packed, offset, m->path, err) : no_memory(m, err);
    if (!rc) {
        isal_inflate_init(s);
        s->crc_flag = ISAL_DEFLATE;
        s->next_in = in;
        s->avail_in = (uint32_t)packed;
        s->next_out = buffer;
        s->avail_out = (uint32_t)bytes;
        const int said = isal_inflate(s);
        if (said < 0 || s->avail_out > 0 || s->avail_in > 0 || s->block_state != ISAL_BLOCK_FINISH)
            rc = mr_error_set(err, MR_EFORMAT,
                              "zip: a damaged member: its deflate stream does not come to %llu bytes",
                              (unsigned long long)bytes);
        else if (crc32_gzip_refl(0, buffer, bytes) != crc)
            rc = mr_error_set(err, MR_ECHECKSUM, "zip: a damaged member: its CRC does not match");
        if (rc) mri_error_place(err, rc, m->path, offset, MR_NOWHERE);
    }
    free(in);
    free(s);
    return rc;
}

int mri_members_head(const mri_members *m, int at, uint8_t *head, size_t *bytes, mr_error *err)
{
    const mri_member *n = &m->node[at];
    const size_t room = *bytes;
    if (!n->deflated) {
        *bytes = (size_t)mri_min_u64(room, n->bytes);
        return mri_pread_all(m->fd, head, *bytes, n->offset, m->path, err);
    }
    uint8_t in[4096];
    struct inflate_state *s = malloc(sizeof *s);
    if (!s) return no_memory(m, err);
    const size_t packed = (size_t)mri_min_u64(sizeof in, n->packed);
    const int rc = mri_pread_all(m->fd, in, packed, n->offset, m->path, err);
    *bytes = 0;
    if (!rc) {
        isal_inflate_init(s);
        s->next_in = in;
        s->avail_in = (uint32_t)packed;
        s->next_out = head;
        s->avail_out = (uint32_t)room;
        isal_inflate(s);
        *bytes = room - s->avail_out;
    }
    free(s);
    return rc;
}

static int copy_member(const mri_members *m, const mri_member *n, mri_spill *to, mr_error *err)
{
    enum { PIECE = 1 << 20 };
    const uint64_t bytes = mri_min_u64(n->bytes, MOST_FILE_BYTES);
    const size_t room = (size_t)(n->deflated ? mri_max_u64(bytes, 1) : PIECE);
    uint8_t *piece = malloc(room);
    int rc = piece ? MR_OK : no_memory(m, err);
    if (!rc && n->deflated) {
        rc = mri_members_inflate(m, n->offset, n->packed, n->bytes, n->crc, piece, err);
        if (!rc) rc = mri_spill_write(to, piece, (size_t)bytes, err);
    }
    for (uint64_t at = 0; !rc && !n->deflated && at < bytes; at += PIECE) {
        const size_t here = (size_t)mri_min_u64(PIECE, bytes - at);
        rc = mri_pread_all(m->fd, piece, here, n->offset + at, m->path, err);
        if (!rc) rc = mri_spill_write(to, piece, here, err);
    }
    free(piece);
    return rc ? rc : mri_spill_finish(to, err);
}

int mri_members_file(const mri_members *m, int at, int *fd, mr_error *err)
{
    const mri_member *n = &m->node[at];
    mri_spill to;
    mr_error why = MR_ERROR_INIT;
    *fd = -1;
    if (n->deflated && n->bytes > MOST_FILE_BYTES) return MR_OK;
    int rc = mri_spill_open(&to, MOST_FILE_BYTES, err);
    if (rc) return rc;
    rc = copy_member(m, n, &to, &why);
    if (!rc) *fd = fcntl(to.fd, F_DUPFD_CLOEXEC, 0);
    if (!rc && *fd < 0) rc = mr_error_sys(&why, errno, "cannot open the member");
    mri_spill_close(&to);
    if (!rc || rc == MR_EFORMAT || rc == MR_ECHECKSUM) return MR_OK; /* damage is reported in its turn */
    if (err) *err = why;
    return rc;
}

int mri_members_check_lists(const mri_members *m, mr_error *err)
{
    for (uint32_t k = 1; k < m->count; k++) {
        if (strcmp(mri_members_name(m, (int)k), MRI_WITHDRAWN_NAME) != 0) continue;
        const int above = m->node[k].parent;
        mr_error_set(
            err, MR_EUNSUPPORTED,
            "the archive has a list of withdrawn samples (%.200s%s" MRI_WITHDRAWN_NAME
            "), which is read in folders alone: unpack the archive, or convert the folder, which leaves "
            "these samples out",
            mri_members_name(m, above), above ? "/" : "");
        return mri_error_place(err, MR_EUNSUPPORTED, m->path, MR_NOWHERE, MR_NOWHERE);
    }
    return MR_OK;
}
