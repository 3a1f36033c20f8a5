/* formats/tar/tar_salvage.c: the samples of a damaged archive.
 *
 *   1  all headers are walked: names of classes, checksums of members (tar_sums.h), and the least number of
 *      members that a sample has which no damage touches
 *   2  members of one key are a sample. Where a header is damaged, the next sound one is looked for, block by
 *      block; a header that the archive's checksums do not list as it is counts as damaged. A sample beside
 *      damage is whole when it has that least number of members; one with a wrong checksum is lost
 *
 * Members that belong to no sample are left out of the new archive; names of classes and checksums are
 * written anew. Keys end at the first dot. */
#include "formats/tar/tar_salvage.h"

#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <stdio.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/util.h"
#include "formats/storage/storage.h"
#include "formats/tar/tar_classes.h"
#include "formats/tar/tar_sample.h"
#include "formats/tar/tar_sums.h"
#include "millrace/formats.h"

enum { QUEUE = 4, LONG_NAME = 99, FIRST_BYTES = 32 };

typedef struct part {
    uint64_t data, bytes;
} part;

typedef struct group {
    uint64_t begin, end;
    uint32_t count;
    bool beside; /* damage is next to it */
    bool bad;    /* a checksum is wrong */
    bool open;
    char key[MRI_SALVAGE_NAME];
    part part[MRI_TAR_MAX_PARTS];
} group;

/* Of the data, by the archive itself. */
typedef struct checksums {
    bool broken;  /* some do not fit the members */
    bool vouched; /* the list of the checksums is compared with the members' headers */
    bool damaged; /* a list of them is */
    bool reported;
    bool unlisted, unlisted_told; /* there is a member that is not in the list */
    uint64_t unlisted_at;         /* the header of the first one */
    mri_tar_sum *sum;             /* rising */
    size_t count, cap;
    struct {
        uint64_t head;
        bool follows; /* it lists all members since the block before, or since the beginning */
    } * block;        /* of checksums; rising */
    size_t blocks;
    unsigned long next_block;
} checksums;

/* Damage that no sample stands for yet. */
typedef struct lost_range {
    uint64_t from; /* MR_NOWHERE: none */
    uint64_t to;
    bool one, one_passed; /* that was one member */
    mr_error why;
} lost_range;

typedef struct walk {
    char *path;
    int fd;
    uint64_t file_bytes;
    mri_file_scan scan;
    mri_tar tar;
    group group;
    bool after_damage, ended, no_end, to_end;
    uint32_t least; /* members of a sample; 0: not known */
    char *classes;
    size_t classes_bytes;
    uint64_t classes_at;
    checksums sums;
    lost_range lost;
    mri_salvage_item queue[QUEUE];
    uint32_t queued, queue_at;
} walk;

static int no_memory(mr_error *err)
{
    return mr_error_set(err, MR_ENOMEM, "no memory to look into an archive");
}

static int get(void *context, uint64_t offset, size_t bytes, const uint8_t **out, mr_error *err)
{
    return mri_file_scan_get(context, offset, bytes, out, err);
}

static bool is_damage(int rc) { return rc == MR_EFORMAT || rc == MR_EUNSUPPORTED || rc == MR_ELIMIT; }

/* ---- members, and what lies between them ---- */
/* The next sound header at or behind `from`. */
static int find_header(walk *w, uint64_t from, uint64_t *out, mr_error *err)
{
    const uint8_t *p;
    for (*out = from; *out < w->file_bytes && w->file_bytes - *out >= MRI_TAR_BLOCK; *out += MRI_TAR_BLOCK) {
        if (mri_stop_asked()) return mri_stopped(err);
        const int rc = mri_file_scan_get(&w->scan, *out, MRI_TAR_BLOCK, &p, err);
        if (rc) return rc;
        if (mri_tar_is_header(p, MRI_TAR_BLOCK)) return MR_OK;
    }
    *out = w->file_bytes;
    return MR_OK;
}

/* Where the damaged header's size leads, when there is another header or the end mark: then one member is
 * lost, and no more. */
static bool leads_on(walk *w, uint64_t from, uint64_t *to)
{
    const uint8_t *p;
    char digits[13] = "", *end;
    if (from > w->file_bytes || w->file_bytes - from < MRI_TAR_BLOCK ||
        mri_file_scan_get(&w->scan, from, MRI_TAR_BLOCK, &p, NULL))
        return false;
    memcpy(digits, p + 124, 12);
    const uint64_t bytes = strtoull(digits, &end, 8);
    if (end != digits + 11 || bytes >= w->file_bytes) return false;
    *to = from + MRI_TAR_BLOCK + mri_align_up(bytes, MRI_TAR_BLOCK);
    if (*to > w->file_bytes || w->file_bytes - *to < MRI_TAR_BLOCK ||
        mri_file_scan_get(&w->scan, *to, MRI_TAR_BLOCK, &p, NULL))
        return false;
    bool zero = true;
    for (int k = 0; k < MRI_TAR_BLOCK; k++) zero = zero && p[k] == 0;
    return zero || mri_tar_is_header(p, MRI_TAR_BLOCK);
}

/* ---- the archive's own list ---- */
static int by_data(const void *a, const void *b)
{
    const uint64_t x = ((const mri_tar_sum *)a)->data, y = ((const mri_tar_sum *)b)->data;
    return (x > y) - (x < y);
}

static const mri_tar_sum *listed(const walk *w, uint64_t data)
{
    const mri_tar_sum key = {.data = data};
    return w->sums.count ? bsearch(&key, w->sums.sum, w->sums.count, sizeof key, by_data) : NULL;
}

static bool is_as_listed(const mri_tar_sum *s, const mri_tar_member *m)
{
    return m->kind == MRI_TAR_FILE && s->bytes == m->bytes && s->name_crc == mri_tar_name_crc(m->name);
}

static int begins_as_sums(walk *w, const mri_tar_member *m, bool *out, mr_error *err)
{
    const uint8_t *p;
    *out = false;
    if (m->bytes < FIRST_BYTES || m->bytes > MRI_TAR_MAX_SUMS) return MR_OK;
    const int rc = mri_file_scan_get(&w->scan, m->data, FIRST_BYTES, &p, err);
    *out = !rc && mri_tar_begins_as_sums(p, FIRST_BYTES);
    return rc;
}

/* Does the list have a member inside this one? Then its size is damaged. */
static bool swallows_listed(const walk *w, const mri_tar_member *m)
{
    size_t low = 0, high = w->sums.count;
    while (low < high) {
        const size_t middle = low + (high - low) / 2;
        if (w->sums.sum[middle].data > m->data) high = middle;
        else low = middle + 1;
    }
    return low < w->sums.count && w->sums.sum[low].data - m->data < m->bytes;
}

/* Would a member here be in the list? A block of checksums may be lost itself. */
static bool is_covered(const walk *w, uint64_t data)
{
    size_t k = 0;
    while (k < w->sums.blocks && w->sums.block[k].head <= data) k++;
    return k < w->sums.blocks && w->sums.block[k].follows;
}

/* A header whose own checksum matches may be damaged all the same: it is compared with the list. */
static int compare_with_list(walk *w, mri_tar_member *m, bool *damaged, uint64_t *from, uint64_t *to,
                             mr_error *why, mr_error *err)
{
    const mri_tar_sum *s = listed(w, m->data);
    const bool is_file = m->kind == MRI_TAR_FILE || m->kind == MRI_TAR_SPARSE;
    bool is_sums = false;
    const int rc = !s && is_file ? begins_as_sums(w, m, &is_sums, err) : MR_OK;
    if (rc) return rc;
    *damaged = s                          ? !is_as_listed(s, m)
               : swallows_listed(w, m)    ? true
               : mri_tar_is_meta(m->name) ? false
                                          : is_file && (is_sums || is_covered(w, m->data));
    if (!*damaged) return MR_OK;
    if (s && s->name_crc == mri_tar_name_crc(MRI_TAR_CLASSES)) { /* check_classes() has its list */
        *damaged = false;
        m->kind = MRI_TAR_OTHER;
        mri_tar_init(&w->tar, get, &w->scan, mri_align_up(s->data + s->bytes, MRI_TAR_BLOCK), w->file_bytes);
        return MR_OK;
    }
    char shown[128];
    mr_error_set(
        why, MR_ECHECKSUM,
        "the header of member \"%s\" is damaged: the archive's checksums list another name, size or kind",
        mr_text_shown(m->name, shown, sizeof shown));
    *from = m->head;
    w->lost.one_passed = true;
    if (!s) return find_header(w, mri_align_down(m->head, MRI_TAR_BLOCK) + MRI_TAR_BLOCK, to, err);
    *to = mri_min_u64(mri_align_up(s->data + s->bytes, MRI_TAR_BLOCK), w->file_bytes);
    return MR_OK;
}

static int pass_damage(walk *w, uint64_t from, uint64_t *to, mr_error *err)
{
    w->lost.one_passed = leads_on(w, from, to);
    return w->lost.one_passed ? MR_OK : find_header(w, from + MRI_TAR_BLOCK, to, err);
}

/* MR_OK: a member, or *from to *to are damaged, and the walk goes on at *to. */
static int next_member(walk *w, mri_tar_member *m, bool *damaged, uint64_t *from, uint64_t *to, mr_error *why,
                       mr_error *err)
{
    *damaged = true;
    *why = (mr_error)MR_ERROR_INIT;
    int rc = mri_tar_next(&w->tar, m, why);
    const bool at_end = rc == MR_EEND;
    *from = at_end ? w->tar.at : w->tar.head;
    if (at_end) {
        rc = mri_tar_finish(&w->tar, why);
        if (!rc) w->no_end = w->tar.end_blocks < 2;
        if (!rc) return MR_EEND;
        *from = mri_align_down(*from, MRI_TAR_BLOCK);
    }
    if (!rc) {
        *damaged = false;
        if (w->sums.vouched) rc = compare_with_list(w, m, damaged, from, to, why, err);
    } else if (is_damage(rc)) rc = pass_damage(w, mri_align_down(*from, MRI_TAR_BLOCK), to, err);
    else if (err) *err = *why;
    if (!rc && *damaged) mri_tar_init(&w->tar, get, &w->scan, *to, w->file_bytes);
    return rc;
}

/* The key of a member of a sample; false: it belongs to none. */
static bool key_of(const mri_tar_member *m, size_t *bytes)
{
    if (m->kind != MRI_TAR_FILE && m->kind != MRI_TAR_SPARSE) return false;
    const char *slash = memrchr(m->name, '/', m->name_bytes), *last = slash ? slash + 1 : m->name;
    const char *dot = strchr(last, '.');
    *bytes = dot ? (size_t)(dot - m->name) : 0;
    return dot && dot != last && *bytes < MRI_SALVAGE_NAME && !mri_tar_is_meta(m->name);
}

static bool same_key(const group *g, const char *name, size_t bytes)
{
    return g->open && strlen(g->key) == bytes && memcmp(g->key, name, bytes) == 0;
}

/* ---- first: all headers ---- */
static int take_classes(walk *w, const mri_tar_member *m, mr_error *err)
{
    const uint8_t *p;
    if (w->classes || m->bytes == 0 || m->bytes > MRI_TAR_MAX_CLASSES) return MR_OK;
    const int rc = mri_file_scan_get(&w->scan, m->data, (size_t)m->bytes, &p, err);
    if (rc) return rc;
    if (!(w->classes = malloc((size_t)m->bytes))) return no_memory(err);
    memcpy(w->classes, p, (size_t)m->bytes);
    w->classes_bytes = (size_t)m->bytes;
    w->classes_at = m->data;
    return MR_OK;
}

/* A block of checksums; its number says whether one before it is lost. */
static int add_block(walk *w, const mri_tar_member *m, mr_error *err)
{
    char *end = NULL;
    const bool named = mri_tar_is_sums(m->name) && m->name[sizeof MRI_TAR_SUMS - 1] == '/';
    const unsigned long number = named ? strtoul(m->name + sizeof MRI_TAR_SUMS, &end, 10) : 0;
    void *more = realloc(w->sums.block, (w->sums.blocks + 1) * sizeof *w->sums.block);
    if (!more) return no_memory(err);
    w->sums.block = more;
    w->sums.block[w->sums.blocks].head = m->head;
    w->sums.block[w->sums.blocks++].follows = !named || number == w->sums.next_block;
    w->sums.next_block = named ? number + 1 : w->sums.next_block + 1;
    w->sums.damaged |= !named;
    return MR_OK;
}

static int take_sums(walk *w, const mri_tar_member *m, mr_error *err)
{
    const uint8_t *p;
    mri_tar_sums_walk lines;
    mri_tar_sum one;
    int rc = m->bytes > MRI_TAR_MAX_SUMS ? MR_EFORMAT
                                         : mri_file_scan_get(&w->scan, m->data, (size_t)m->bytes, &p, err);
    if (!rc) rc = mri_tar_sums_begin(&lines, p, (size_t)m->bytes, m->head, NULL);
    if (rc == MR_EFORMAT) w->sums.damaged = true;
    if (rc == MR_EUNSUPPORTED) w->sums.broken = true;
    if (rc) return rc == MR_EFORMAT || rc == MR_EUNSUPPORTED ? MR_OK : rc;
    if ((rc = add_block(w, m, err))) return rc;
    while (mri_tar_sums_next(&lines, &one)) {
        if (w->sums.count == w->sums.cap) {
            const size_t cap = w->sums.cap ? 2 * w->sums.cap : 1024;
            mri_tar_sum *more = realloc(w->sums.sum, cap * sizeof *more);
            if (!more) return no_memory(err);
            w->sums.sum = more;
            w->sums.cap = cap;
        }
        if (w->sums.count && one.data <= w->sums.sum[w->sums.count - 1].data) w->sums.broken = true;
        w->sums.sum[w->sums.count++] = one;
    }
    return MR_OK;
}

typedef int on_member(walk *w, const mri_tar_member *m, bool damaged, mr_error *err);

/* All headers, from the beginning. `each` returns MR_EEND when it has seen enough. */
static int each_member(walk *w, on_member *each, mr_error *err)
{
    int rc = MR_OK;
    mri_tar_init(&w->tar, get, &w->scan, 0, w->file_bytes);
    while (!rc) {
        mri_tar_member m;
        mr_error why;
        bool damaged;
        uint64_t from, to;
        rc = next_member(w, &m, &damaged, &from, &to, &why, err);
        if (!rc) rc = each(w, &m, damaged, err);
    }
    mri_tar_init(&w->tar, get, &w->scan, 0, w->file_bytes);
    return rc == MR_EEND ? MR_OK : rc;
}

static int take_note(walk *w, const mri_tar_member *m, bool damaged, mr_error *err)
{
    if (damaged || m->kind != MRI_TAR_FILE) return MR_OK;
    if (strcmp(m->name, MRI_TAR_CLASSES) == 0) return take_classes(w, m, err);
    if (mri_tar_is_sums(m->name)) return take_sums(w, m, err);
    bool is_sums; /* a block whose name is damaged is known by its data */
    const int rc = begins_as_sums(w, m, &is_sums, err);
    return !rc && is_sums ? take_sums(w, m, err) : rc;
}

/* Blocks of checksums from here to the end, header by header: a damaged size may have led past them. */
static int search_sums(walk *w, uint64_t from, mr_error *err)
{
    int rc = MR_OK;
    for (uint64_t at = from; !rc && w->file_bytes - at >= MRI_TAR_BLOCK; at += MRI_TAR_BLOCK) {
        const uint8_t *p;
        mri_tar_member m;
        if (mri_stop_asked()) return mri_stopped(err);
        rc = mri_file_scan_get(&w->scan, at, MRI_TAR_BLOCK, &p, err);
        if (rc || memcmp(p, MRI_TAR_SUMS "/", sizeof MRI_TAR_SUMS) != 0 ||
            !mri_tar_is_header(p, MRI_TAR_BLOCK))
            continue;
        mri_tar_init(&w->tar, get, &w->scan, at, w->file_bytes);
        if (mri_tar_next(&w->tar, &m, NULL) == MR_OK) rc = take_sums(w, &m, err);
    }
    return rc;
}

static int find_sums(walk *w, mr_error *err)
{
    bool there = w->sums.blocks > 0, gap = false;
    int rc = there ? MR_OK : mri_tar_sums_at_end(&there, w->fd, w->path, w->file_bytes, err);
    for (size_t k = 0; k < w->sums.blocks; k++) gap |= !w->sums.block[k].follows;
    if (rc || !there || w->sums.broken) return rc;
    const uint64_t from =
        gap || w->sums.blocks == 0 ? 0 : w->sums.block[w->sums.blocks - 1].head + MRI_TAR_BLOCK;
    if (from == 0) w->sums.count = w->sums.blocks = w->sums.next_block = 0;
    return search_sums(w, from, err);
}

/* Do the checksums speak of members that are there? What another program packed anew brings them in vain. */
static int find_listed(walk *w, mr_error *err)
{
    for (size_t k = 0; k < w->sums.count && !w->sums.vouched; k++) {
        mri_tar_member m;
        if (w->sums.sum[k].data < MRI_TAR_BLOCK || w->sums.sum[k].data > w->file_bytes) continue;
        if (mri_stop_asked()) return mri_stopped(err);
        mri_tar_init(&w->tar, get, &w->scan, w->sums.sum[k].data - MRI_TAR_BLOCK, w->file_bytes);
        w->sums.vouched = mri_tar_next(&w->tar, &m, NULL) == MR_OK && m.data == w->sums.sum[k].data &&
                          m.bytes == w->sums.sum[k].bytes;
    }
    return MR_OK;
}

/* Names of classes as the checksums list them; damaged ones are taken from another file of the set. */
static int check_classes(walk *w, mr_error *err)
{
    const uint32_t name = mri_tar_name_crc(MRI_TAR_CLASSES);
    for (size_t k = 0; k < w->sums.count; k++) {
        const mri_tar_sum *s = &w->sums.sum[k];
        const uint8_t *p;
        if (s->name_crc != name || s->bytes == 0 || s->bytes > MRI_TAR_MAX_CLASSES) continue;
        int rc = mri_file_scan_get(&w->scan, s->data, (size_t)s->bytes, &p, err);
        if (rc) return rc;
        const bool whole = s->crc == mr_crc32c(0, p, (size_t)s->bytes);
        if (whole && w->classes && w->classes_at == s->data && w->classes_bytes == s->bytes) continue;
        free(w->classes);
        w->classes = NULL;
        w->sums.damaged = true;
        if (whole) rc = take_classes(w, &(mri_tar_member){.data = s->data, .bytes = s->bytes}, err);
        if (rc) return rc;
    }
    return MR_OK;
}

/* One sample of this walk is over. */
static void count_members(walk *w, group *g)
{
    if (g->open && !g->beside && (w->least == 0 || g->count < w->least)) w->least = g->count;
    *g = (group){0};
}

static int count_member(walk *w, const mri_tar_member *m, bool damaged, mr_error *err)
{
    group *g = &w->group;
    size_t bytes = 0;
    (void)err;
    if (damaged) {
        g->beside = w->after_damage = true;
        count_members(w, g);
        return MR_OK;
    }
    if (!key_of(m, &bytes)) return MR_OK;
    if (!same_key(g, m->name, bytes)) {
        count_members(w, g);
        g->open = true;
        g->beside = w->after_damage;
        memcpy(g->key, m->name, bytes);
        w->after_damage = false;
    }
    g->count++;
    return MR_OK;
}

static int survey(walk *w, mr_error *err)
{
    int rc = each_member(w, take_note, err);
    if (!rc) rc = find_sums(w, err);
    if (!rc && w->sums.count && !w->sums.broken) rc = find_listed(w, err);
    w->sums.broken |= !w->sums.vouched;
    if (!rc && w->sums.vouched) rc = check_classes(w, err);
    if (!rc) rc = each_member(w, count_member, err);
    w->group.beside |= w->no_end && w->least > 0; /* the archive may be cut inside its last sample */
    count_members(w, &w->group);
    w->after_damage = false;
    return rc;
}

/* ---- open ---- */
static void close_walk(void *state)
{
    walk *w = state;
    if (!w) return;
    mri_file_scan_fini(&w->scan);
    if (w->fd >= 0) close(w->fd);
    free(w->classes);
    free(w->sums.sum);
    free(w->sums.block);
    free(w->path);
    free(w);
}

static int open_one(walk **out, const char *path, mr_error *err)
{
    struct stat st;
    walk *w = calloc(1, sizeof *w);
    *out = w;
    if (!w) return no_memory(err);
    w->lost.from = MR_NOWHERE;
    w->fd = open(path, O_RDONLY | O_CLOEXEC | O_NONBLOCK);
    int rc = MR_OK;
    if (!(w->path = strdup(path))) rc = no_memory(err);
    else if (w->fd < 0) rc = mr_error_sys(err, errno, "cannot open");
    else if (fstat(w->fd, &st) != 0) rc = mr_error_sys(err, errno, "cannot look at it");
    else if (!S_ISREG(st.st_mode)) rc = mr_error_set(err, MR_EFORMAT, "not a regular file");
    if (rc) return mri_error_place(err, rc, path, MR_NOWHERE, MR_NOWHERE);
    w->file_bytes = (uint64_t)st.st_size;
    mri_file_scan_init(&w->scan, w->fd, w->path, w->file_bytes);
    return survey(w, err);
}

static int open_walk(void **out, const char *path, const char *like, mr_error *err)
{
    walk *w, *other;
    *out = NULL;
    int rc = open_one(&w, path, err);
    if (!rc && (!w->classes || !w->least) && like) { /* its own names of classes may be damaged */
        if (open_one(&other, like, NULL) == MR_OK) {
            if (!w->classes) {
                w->classes = other->classes;
                w->classes_bytes = other->classes_bytes;
                other->classes = NULL;
            }
            if (!w->least) w->least = other->least;
        }
        close_walk(other);
    }
    if (rc) close_walk(w);
    else *out = w;
    return rc;
}

bool mri_tar_salvage_has_sums(const void *state)
{
    const walk *w = state;
    return w->sums.vouched;
}

/* ---- the walk ---- */
static mri_salvage_item *queue(walk *w, mri_salvage_what what, uint64_t offset, uint64_t bytes,
                               uint64_t count)
{
    mri_salvage_item *item = &w->queue[w->queued++];
    *item = (mri_salvage_item){.what = what,
                               .offset = offset,
                               .bytes = bytes,
                               .count = count,
                               .number = MR_NOWHERE,
                               .why = MR_ERROR_INIT};
    return item;
}

/* Queue damage that no incomplete sample accounts for. One member between whole samples of several members
 * belongs to neither of them.
 */
static void queue_damage(walk *w)
{
    if (w->lost.from == MR_NOWHERE) return;
    const bool note = w->lost.one && w->least > 1;
    w->to_end = w->lost.to >= w->file_bytes;
    mri_salvage_item *item =
        queue(w, note ? MRI_SALVAGE_NOTE : MRI_SALVAGE_LOST, w->lost.from,
              (w->to_end ? UINT64_MAX : w->lost.to) - w->lost.from, w->lost.one && w->least == 1 ? 1 : 0);
    item->why = w->lost.why;
    mr_error_at(&item->why, w->path, w->lost.from, MR_NOWHERE);
    w->lost.from = MR_NOWHERE;
}

static int check_sums(walk *w, group *g, mr_error *err)
{
    if (!mri_tar_salvage_has_sums(w)) return MR_OK;
    int rc = MR_OK;
    for (uint32_t k = 0; !rc && k < g->count && k < MRI_TAR_MAX_PARTS; k++) {
        const part *m = &g->part[k];
        const uint8_t *p;
        const mri_tar_sum *s = listed(w, m->data);
        if (!s) continue;
        uint32_t crc = 0;
        for (uint64_t at = 0; !rc && at < m->bytes; at += 1 << 20) {
            const size_t n = (size_t)mri_min_u64(m->bytes - at, 1 << 20);
            rc = mri_file_scan_get(&w->scan, m->data + at, n, &p, err);
            if (!rc) crc = mr_crc32c(crc, p, n);
        }
        g->bad |= crc != s->crc;
    }
    return rc;
}

/* The sample is over. */
static int queue_group(walk *w, mr_error *err)
{
    group *g = &w->group;
    if (!g->open) return MR_OK;
    const int rc = check_sums(w, g, err);
    if (rc) return rc;
    const bool lacks = g->beside && (w->least == 0 || g->count < w->least),
               damage = w->lost.from != MR_NOWHERE;
    const bool inside = damage && w->lost.from >= g->begin && w->lost.from < g->end;
    mri_salvage_item *item;
    if (inside || (damage && lacks && w->lost.one)) { /* the sample stands for it */
        g->begin = mri_min_u64(g->begin, w->lost.from);
        g->end = mri_max_u64(g->end, w->lost.to);
        w->lost.from = MR_NOWHERE;
    } else if (damage && w->lost.from < g->begin) queue_damage(w);
    if (lacks || inside || g->bad) {
        item = queue(w, MRI_SALVAGE_LOST, g->begin, g->end - g->begin, 1);
        if (lacks || inside) mr_error_set(&item->why, MR_EFORMAT, "a member of the sample is lost");
        else mr_error_set(&item->why, MR_ECHECKSUM, "the checksum of a member is wrong");
        mr_error_at(&item->why, w->path, g->begin, MR_NOWHERE);
    } else item = queue(w, MRI_SALVAGE_WHOLE, g->begin, g->end - g->begin, 1);
    snprintf(item->name, sizeof item->name, "%s", g->key);
    g->open = false;
    return MR_OK;
}

static void begin_group(walk *w, const mri_tar_member *m, size_t key_bytes)
{
    group *g = &w->group;
    *g = (group){.open = true, .begin = m->head, .beside = w->after_damage};
    memcpy(g->key, m->name, key_bytes);
    /* its extended header may be damaged, and this name only the rest of it */
    if (w->after_damage && m->name_bytes >= LONG_NAME) g->bad = true;
    w->after_damage = false;
}

/* Another program added it. */
static void note_unlisted(walk *w, const mri_tar_member *m)
{
    const bool is_file = m->kind == MRI_TAR_FILE || m->kind == MRI_TAR_SPARSE;
    if (!w->sums.vouched || w->sums.unlisted || !is_file || mri_tar_is_meta(m->name) || listed(w, m->data))
        return;
    w->sums.unlisted = true;
    w->sums.unlisted_at = m->head;
}

static int take_member(walk *w, const mri_tar_member *m, mr_error *err)
{
    group *g = &w->group;
    size_t bytes = 0;
    note_unlisted(w, m);
    if (!key_of(m, &bytes)) return MR_OK;
    if (!same_key(g, m->name, bytes)) {
        const int rc = queue_group(w, err);
        if (rc) return rc;
        begin_group(w, m, bytes);
    }
    if (g->count < MRI_TAR_MAX_PARTS) g->part[g->count] = (part){m->data, m->bytes};
    g->count++;
    g->end = mri_min_u64(mri_align_up(m->data + m->bytes, MRI_TAR_BLOCK), w->file_bytes);
    return MR_OK;
}

static void take_damage(walk *w, uint64_t from, uint64_t to, const mr_error *why)
{
    queue_damage(w); /* of two in a row */
    w->group.beside = true;
    w->lost.from = from;
    w->lost.to = to;
    w->lost.why = *why;
    w->lost.one = w->lost.one_passed;
    w->after_damage = true;
}

static int take_end(walk *w, mr_error *err)
{
    w->ended = true;
    if (w->no_end) w->group.beside = true;
    const int rc = queue_group(w, err);
    if (rc) return rc;
    queue_damage(w);
    if (!w->no_end || w->to_end) return MR_OK;
    mri_salvage_item *item = queue(w, MRI_SALVAGE_LOST, w->file_bytes, UINT64_MAX - w->file_bytes, 0);
    mr_error_set(&item->why, MR_EFORMAT,
                 "the mark at the end is missing: the archive was cut off between two members, or its "
                 "writer leaves the mark out");
    mr_error_at(&item->why, w->path, w->file_bytes, MR_NOWHERE);
    return MR_OK;
}

static bool tell_unlisted(walk *w, mri_salvage_item *out)
{
    if (!w->sums.unlisted || w->sums.unlisted_told) return false;
    w->sums.unlisted_told = true;
    *out = (mri_salvage_item){
        .what = MRI_SALVAGE_NOTE, .offset = w->sums.unlisted_at, .number = MR_NOWHERE, .why = MR_ERROR_INIT};
    mr_error_set(
        &out->why, MR_EFORMAT,
        "members from here on were added, and the archive's checksums do not list them: a new archive "
        "gets checksums of all members");
    mr_error_at(&out->why, w->path, w->sums.unlisted_at, MR_NOWHERE);
    return true;
}

static int next(void *state, mri_salvage_item *out, mr_error *err)
{
    walk *w = state;
    if (w->sums.damaged && !w->sums.reported) {
        w->sums.reported = true;
        *out = (mri_salvage_item){
            .what = MRI_SALVAGE_NOTE, .offset = MR_NOWHERE, .number = MR_NOWHERE, .why = MR_ERROR_INIT};
        mr_error_set(&out->why, MR_EFORMAT,
                     "the checksums in the archive or its names of classes are damaged");
        mr_error_at(&out->why, w->path, MR_NOWHERE, MR_NOWHERE);
        return MR_OK;
    }
    while (w->queue_at == w->queued) {
        mri_tar_member m;
        mr_error why;
        bool damaged;
        uint64_t from, to;
        w->queue_at = w->queued = 0;
        if (w->ended && tell_unlisted(w, out)) return MR_OK;
        if (w->ended) return MR_EEND;
        if (mri_stop_asked()) return mri_stopped(err);
        int rc = next_member(w, &m, &damaged, &from, &to, &why, err);
        if (rc == MR_EEND) rc = take_end(w, err);
        else if (!rc && damaged) take_damage(w, from, to, &why);
        else if (!rc) rc = take_member(w, &m, err);
        if (rc) return rc;
    }
    *out = w->queue[w->queue_at++];
    if (out->what != MRI_SALVAGE_WHOLE) return MR_OK;
    return mri_file_scan_get(&w->scan, out->offset, (size_t)out->bytes, (const uint8_t **)(void *)&out->data,
                             err);
}

static int create(void **out, const void *state, const char *path, bool force, mr_error *err)
{
    const walk *w = state;
    return mri_tar_salvage_create(out, w->classes, w->classes_bytes, path, force, err);
}

const mri_salvage_ops mri_salvage_tar = {
    .format = "tar",
    .open = open_walk,
    .next = next,
    .close = close_walk,
    .create = create,
    .put = mri_tar_salvage_put,
    .finish = mri_tar_salvage_finish,
    .abandon = mri_tar_salvage_abandon,
};
