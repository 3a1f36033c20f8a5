/* formats/folder/members_pack.c: see members_pack.h.
 *
 *   tar.bz2, tar.xz, tar.zst   the bytes of the tar, as they are
 *   7z, rar                    each file and folder becomes a member of a tar
 *
 * Only the filter or format that the first bytes say is switched on: libarchive would start programs for
 * others. */
#include "formats/folder/members_pack.h"

#include <locale.h>
#include <stdio.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/util.h"
#include "formats/folder/libarchive.h"
#include "formats/storage/gunzip.h"
#include "formats/storage/spill.h"
#include "formats/tar/tar.h"

enum { PIECE = 64 << 10, NAMES_LOOK = 1024 };

mri_pack mri_pack_of(const void *head, size_t bytes)
{
    static const struct {
        mri_pack pack;
        const char *magic;
        size_t bytes;
    } all[] = {{MRI_PACK_BZIP2, "BZh", 3},
               {MRI_PACK_XZ, "\3757zXZ\0", 6},
               {MRI_PACK_ZSTD, "(\265/\375", 4},
               {MRI_PACK_7Z, "7z\274\257\047\034", 6},
               {MRI_PACK_RAR, "Rar!\032\007", 6}};
    for (size_t k = 0; k < MRI_ARRAY_COUNT(all); k++)
        if (bytes >= all[k].bytes && memcmp(head, all[k].magic, all[k].bytes) == 0) return all[k].pack;
    return MRI_PACK_NONE;
}

/* ---- libarchive's reader ---- */
typedef struct reader {
    const mri_libarchive *api;
    struct archive *a;
    const char *path;
    locale_t names, before; /* of this thread: names are UTF-8 whatever the program's locale is */
} reader;

static int failed(const reader *r, const char *name, mr_error *err)
{
    char shown[256];
    const char *said = r->api->archive_error_string(r->a);
    if (name)
        mr_error_set(err, MR_EFORMAT, "member \"%s\" cannot be unpacked: %s",
                     mr_text_shown(name, shown, sizeof shown), said ? said : "damaged");
    else
        mr_error_set(err, MR_EFORMAT, "cannot be unpacked: %s (is the file whole?)", said ? said : "damaged");
    return mri_error_place(err, MR_EFORMAT, r->path, MR_NOWHERE, MR_NOWHERE);
}

static int support(const reader *r, mri_pack pack)
{
    const mri_libarchive *api = r->api;
    if (mri_pack_is_filter(pack) && api->archive_read_support_format_raw(r->a) != MRI_ARCHIVE_OK) return -1;
    switch (pack) {
    case MRI_PACK_BZIP2: return api->archive_read_support_filter_bzip2(r->a);
    case MRI_PACK_XZ: return api->archive_read_support_filter_xz(r->a);
    case MRI_PACK_ZSTD: return api->archive_read_support_filter_zstd(r->a);
    case MRI_PACK_7Z: return api->archive_read_support_format_7zip(r->a);
    case MRI_PACK_RAR:
        if (api->archive_read_support_format_rar5(r->a) != MRI_ARCHIVE_OK) return -1;
        return api->archive_read_support_format_rar(r->a);
    default: return -1;
    }
}

static void reader_close(reader *r)
{
    if (r->a) r->api->archive_read_free(r->a);
    if (r->names) {
        uselocale(r->before);
        freelocale(r->names);
    }
    *r = (reader){0};
}

/* On failure there is nothing to close. */
static int reader_open(reader *r, int fd, mri_pack pack, const char *path, mr_error *err)
{
    *r = (reader){.api = mri_libarchive_need(err), .path = path};
    if (!r->api) return mri_error_place(err, MR_EUNSUPPORTED, path, MR_NOWHERE, MR_NOWHERE);
    r->names = newlocale(LC_CTYPE_MASK, "C.UTF-8", (locale_t)0);
    if (r->names) r->before = uselocale(r->names);
    r->a = r->api->archive_read_new();
    int rc = MR_OK;
    if (!r->a)
        rc = mri_error_place(err, mr_error_set(err, MR_ENOMEM, "no memory to unpack"), path, MR_NOWHERE,
                             MR_NOWHERE);
    else if (support(r, pack) != MRI_ARCHIVE_OK)
        rc = mri_error_place(err,
                             mr_error_set(err, MR_EUNSUPPORTED,
                                          "libarchive here was built without this packing: unpack the "
                                          "archive and open the unpacked files"),
                             path, MR_NOWHERE, MR_NOWHERE);
    else if (lseek(fd, 0, SEEK_SET) != 0 || r->api->archive_read_open_fd(r->a, fd, PIECE) != MRI_ARCHIVE_OK)
        rc = failed(r, NULL, err);
    if (rc) reader_close(r);
    return rc;
}

/* ---- probes ---- */
size_t mri_pack_head(int fd, mri_pack pack, void *out, size_t out_bytes)
{
    reader r;
    struct archive_entry *e;
    size_t used = 0;
    if (reader_open(&r, fd, pack, "", NULL)) return 0;
    if (r.api->archive_read_next_header(r.a, &e) == MRI_ARCHIVE_OK)
        while (used < out_bytes) {
            const ssize_t n = r.api->archive_read_data(r.a, (char *)out + used, out_bytes - used);
            if (n <= 0) break;
            used += (size_t)n;
        }
    reader_close(&r);
    return used;
}

bool mri_pack_names(int fd, mri_pack pack, bool (*see)(void *context, const char *name), void *context)
{
    reader r;
    struct archive_entry *e;
    int rc = MRI_ARCHIVE_OK;
    if (reader_open(&r, fd, pack, "", NULL)) return true;
    for (int k = 0; k < NAMES_LOOK && !mri_stop_asked(); k++) {
        rc = r.api->archive_read_next_header(r.a, &e);
        if (rc != MRI_ARCHIVE_OK) break;
        const char *name = r.api->archive_entry_pathname(e);
        if (name && r.api->archive_entry_filetype(e) == S_IFREG && !see(context, name)) break;
    }
    reader_close(&r);
    return rc != MRI_ARCHIVE_OK;
}

/* ---- all of it ---- */
typedef struct unpack {
    reader r;
    mri_spill spill;
    uint64_t packed;
    bool no_end; /* rar without an end mark: the tar gets no end mark, and members.c reports that */
    uint8_t piece[PIECE], head[2 * MRI_TAR_MAX_NAME];
} unpack;

static int put(unpack *u, const void *data, size_t bytes, mr_error *err)
{
    const uint64_t all = u->spill.bytes + bytes;
    const int rc = mri_unpack_is_too_much(u->packed, all) ? mri_unpack_too_much(u->packed, all, err)
                                                          : mri_spill_write(&u->spill, data, bytes, err);
    return rc ? mri_error_place(err, rc, err && err->file[0] ? NULL : u->r.path, MR_NOWHERE, MR_NOWHERE)
              : MR_OK;
}

/* The data of the entry that was asked for last. */
static int put_data(unpack *u, const char *name, uint64_t *bytes, mr_error *err)
{
    for (*bytes = 0;;) {
        if (mri_stop_asked()) return mri_stopped(err);
        const ssize_t n = u->r.api->archive_read_data(u->r.a, u->piece, PIECE);
        if (n < 0) return failed(&u->r, name, err);
        if (n == 0) return MR_OK;
        const int rc = put(u, u->piece, (size_t)n, err);
        if (rc) return rc;
        *bytes += (uint64_t)n;
    }
}

static int refuse(const unpack *u, const char *name, int code, const char *why, mr_error *err)
{
    char shown[256];
    mr_error_set(err, code, "member \"%s\" %s", mr_text_shown(name, shown, sizeof shown), why);
    return mri_error_place(err, code, u->r.path, MR_NOWHERE, MR_NOWHERE);
}

static int put_head(unpack *u, const char *name, bool folder, uint64_t bytes, mr_error *err)
{
    size_t used;
    int rc = mri_tar_head_write(name, bytes, u->head, sizeof u->head, &used, err);
    if (rc) return mri_error_place(err, rc, u->r.path, MR_NOWHERE, MR_NOWHERE);
    if (folder) { /* the type, and the sum of the header's bytes */
        uint8_t *h = u->head + used - MRI_TAR_BLOCK;
        char sum[8];
        snprintf(sum, sizeof sum, "%06lo", strtoul((char *)h + 148, NULL, 8) + ('5' - '0'));
        memcpy(h + 148, sum, 6);
        h[156] = '5';
    }
    return put(u, u->head, used, err);
}

static const char *kind_of(const mri_libarchive *api, struct archive_entry *e)
{
    const mode_t type = api->archive_entry_filetype(e);
    if (api->archive_entry_is_encrypted(e))
        return "is encrypted: unpack the archive, and open the unpacked files";
    if (api->archive_entry_hardlink(e)) return "is a hard link: write the archive without";
    if (type == S_IFLNK) return "is a symbolic link: write the archive without";
    if (type != S_IFREG && type != S_IFDIR)
        return "is neither a file nor a folder: write the archive without";
    if (type == S_IFREG && (!api->archive_entry_size_is_set(e) || api->archive_entry_size(e) < 0))
        return "has no size: unpack the archive, and open the unpacked files";
    return NULL;
}

static int put_entry(unpack *u, struct archive_entry *e, mr_error *err)
{
    static const uint8_t zeros[MRI_TAR_BLOCK];
    const mri_libarchive *api = u->r.api;
    const char *given = api->archive_entry_pathname(e);
    char name[MRI_TAR_MAX_NAME + 1];
    if (!given || !given[0] || strlen(given) > MRI_TAR_MAX_NAME)
        return refuse(u, given ? given : "", MR_EUNSUPPORTED, "has a name that no file can have", err);
    snprintf(name, sizeof name, "%s", given); /* libarchive may write over its own */
    const char *why = kind_of(api, e);
    if (why) return refuse(u, name, MR_EUNSUPPORTED, why, err);
    const bool folder = api->archive_entry_filetype(e) == S_IFDIR;
    for (size_t n = strlen(name); folder && n > 1 && name[n - 1] == '/';) name[--n] = '\0';
    if (folder && strcmp(name, "/") == 0)
        return refuse(u, name, MR_EUNSUPPORTED, "leads out of the archive", err);
    const uint64_t bytes = folder ? 0 : (uint64_t)api->archive_entry_size(e);
    if (mri_unpack_is_too_much(u->packed, bytes))
        return mri_error_place(err, mri_unpack_too_much(u->packed, bytes, err), u->r.path, MR_NOWHERE,
                               MR_NOWHERE);
    uint64_t written = 0;
    int rc = put_head(u, name, folder, bytes, err);
    if (!rc && !folder) rc = put_data(u, name, &written, err);
    if (!rc && written != bytes)
        rc = refuse(u, name, MR_EFORMAT, "is damaged: it has another size than the archive says", err);
    const size_t over = (size_t)(bytes % MRI_TAR_BLOCK);
    return rc || over == 0 ? rc : put(u, zeros, MRI_TAR_BLOCK - over, err);
}

static int put_all(unpack *u, mri_pack pack, mr_error *err)
{
    static const uint8_t end[2 * MRI_TAR_BLOCK];
    struct archive_entry *e;
    uint64_t bytes;
    int said;
    while ((said = u->r.api->archive_read_next_header(u->r.a, &e)) == MRI_ARCHIVE_OK) {
        if (mri_stop_asked()) return mri_stopped(err);
        const int rc = mri_pack_is_filter(pack) ? put_data(u, NULL, &bytes, err) : put_entry(u, e, err);
        if (rc) return rc;
    }
    if (said != MRI_ARCHIVE_EOF) return failed(&u->r, NULL, err);
    return mri_pack_is_filter(pack) || u->no_end ? MR_OK : put(u, end, sizeof end, err);
}

static int look_at_rar(unpack *u, int fd, const char *path, mr_error *err)
{
    bool ended, volume;
    const int rc = mri_rar_look(fd, u->packed, path, &ended, &volume, err);
    u->no_end = !ended;
    if (rc || !volume) return rc;
    mr_error_set(
        err, MR_EUNSUPPORTED,
        "this is one volume of a rar archive of several: unpack it (unrar x), and open the unpacked files");
    return mri_error_place(err, MR_EUNSUPPORTED, path, MR_NOWHERE, MR_NOWHERE);
}

int mri_pack_unpack(int fd, mri_pack pack, uint64_t packed_bytes, const char *path, uint64_t memory_bytes,
                    int *out_fd, uint64_t *out_bytes, bool *in_memory, mr_error *err)
{
    unpack *u = malloc(sizeof *u);
    *out_fd = -1;
    if (!u) return mr_error_set(err, MR_ENOMEM, "no memory to unpack");
    u->packed = packed_bytes;
    u->no_end = false;
    int rc = pack == MRI_PACK_RAR ? look_at_rar(u, fd, path, err) : MR_OK;
    if (!rc) rc = reader_open(&u->r, fd, pack, path, err);
    if (!rc) {
        rc = mri_spill_open(&u->spill, memory_bytes, err);
        if (!rc) {
            rc = mri_spill_expect(&u->spill, packed_bytes, err);
            if (!rc) rc = put_all(u, pack, err);
            if (!rc) rc = mri_spill_finish(&u->spill, err);
            if (rc) mri_spill_close(&u->spill);
        }
        reader_close(&u->r);
    }
    if (!rc) {
        *out_fd = u->spill.fd;
        *out_bytes = u->spill.bytes;
        *in_memory = u->spill.in_memory;
    }
    free(u);
    return rc;
}
