/* formats/tar/tar_salvage.c: the samples of a damaged archive.
 *
 *   1  all headers are walked once: names of classes, checksums of members (tar_sums.h), and the least number
 * of members that a sample has which no damage touches 2  members of one key are a sample. Where a header is
 * damaged, the next sound one is looked for, block by block. A sample beside damage is whole when it has that
 * least number of members; one with a wrong checksum is lost
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

enum { QUEUE = 4, LONG_NAME = 99, TAR_RECORD = 10240 };

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

typedef struct walk {
    char *path;
    int fd;
    uint64_t file_bytes;
    mri_file_scan scan;
    mri_tar tar;
    group group;
    bool after_damage, ended, no_end;
    uint32_t least; /* members of a sample; 0: not known */
    char *classes;
    size_t classes_bytes;
    bool sums_broken; /* some do not fit the members */
    mri_tar_sum *sum; /* rising */
    size_t sums, sums_cap, sum_at;
    uint64_t lost_from; /* of damage that no sample stands for yet; MR_NOWHERE: none */
    uint64_t lost_to;
    bool lost_one, one_passed; /* that was one member */
    bool sums_damaged, sums_told, to_end;
    uint64_t classes_at;
    mr_error lost_why;
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

static int pass_damage(walk *w, uint64_t from, uint64_t *to, mr_error *err)
{
    w->one_passed = leads_on(w, from, to);
    return w->one_passed ? MR_OK : find_header(w, from + MRI_TAR_BLOCK, to, err);
}

/* MR_OK: a member, or *from to *to are damaged, and the walk goes on at *to. */
static int next_member(walk *w, mri_tar_member *m, bool *damaged, uint64_t *from, uint64_t *to, mr_error *why,
                       mr_error *err)
{
    *damaged = false;
    *why = (mr_error)MR_ERROR_INIT;
    int rc = mri_tar_next(&w->tar, m, why);
    if (rc == MR_EEND) {
        *from = w->tar.at;
        rc = mri_tar_finish(&w->tar, why);
        if (!rc) {
            w->no_end = w->tar.end_blocks < 2;
            return MR_EEND;
        }
        if (!is_damage(rc)) goto other;
        *from = mri_align_down(*from, MRI_TAR_BLOCK);
        rc = pass_damage(w, *from, to, err);
    } else if (is_damage(rc)) {
        *from = w->tar.head;
        rc = pass_damage(w, mri_align_down(w->tar.head, MRI_TAR_BLOCK), to, err);
    } else if (rc) goto other;
    else return MR_OK;
    if (rc) return rc;
    *damaged = true;
    mri_tar_init(&w->tar, get, &w->scan, *to, w->file_bytes);
    return MR_OK;
other:
    if (err) *err = *why;
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

static int take_sums(walk *w, const mri_tar_member *m, mr_error *err)
{
    const uint8_t *p;
    mri_tar_sums_walk lines;
    mri_tar_sum one;
    int rc = m->bytes > MRI_TAR_MAX_SUMS ? MR_EFORMAT
                                         : mri_file_scan_get(&w->scan, m->data, (size_t)m->bytes, &p, err);
    if (!rc) rc = mri_tar_sums_begin(&lines, p, (size_t)m->bytes, m->head, NULL);
    if (rc == MR_EFORMAT) w->sums_broken = w->sums_damaged = true;
    if (rc) return rc == MR_EFORMAT ? MR_OK : rc;
    while (mri_tar_sums_next(&lines, &one)) {
        if (w->sums == w->sums_cap) {
            const size_t cap = w->sums_cap ? 2 * w->sums_cap : 1024;
            mri_tar_sum *more = realloc(w->sum, cap * sizeof *more);
            if (!more) return no_memory(err);
            w->sum = more;
            w->sums_cap = cap;
        }
        if (w->sums && one.data <= w->sum[w->sums - 1].data) w->sums_broken = true;
        w->sum[w->sums++] = one;
    }
    return MR_OK;
}

/* One sample of the first walk is over. */
static void count_members(walk *w, group *g)
{
    if (g->open && !g->beside && (w->least == 0 || g->count < w->least)) w->least = g->count;
    *g = (group){0};
}

static int survey(walk *w, mr_error *err)
{
    group *g = &w->group;
    int rc = MR_OK;
    for (bool beside = false; !rc;) {
        mri_tar_member m;
        mr_error why;
        bool damaged;
        uint64_t from, to;
        size_t bytes = 0;
        rc = next_member(w, &m, &damaged, &from, &to, &why, err);
        if (rc) break;
        if (damaged) {
            g->beside = beside = true;
            count_members(w, g);
        } else if (m.kind == MRI_TAR_FILE && strcmp(m.name, MRI_TAR_CLASSES) == 0)
            rc = take_classes(w, &m, err);
        else if (m.kind == MRI_TAR_FILE && mri_tar_is_sums(m.name)) rc = take_sums(w, &m, err);
        else if (key_of(&m, &bytes)) {
            if (!same_key(g, m.name, bytes)) {
                count_members(w, g);
                g->open = true;
                g->beside = beside;
                memcpy(g->key, m.name, bytes);
                beside = false;
            }
            g->count++;
        }
    }
    if (rc == MR_EEND) count_members(w, g), rc = MR_OK;
    mri_tar_init(&w->tar, get, &w->scan, 0, w->file_bytes);
    return rc;
}

/* Do the checksums speak of members that are there? What another program packed anew brings them in vain. */
static int fit_sums(walk *w, mr_error *err)
{
    size_t at = 0, fit = 0;
    int rc = MR_OK;
    while (!rc && w->sums && !w->sums_broken) {
        mri_tar_member m;
        mr_error why;
        bool damaged;
        uint64_t from, to;
        size_t bytes;
        rc = next_member(w, &m, &damaged, &from, &to, &why, err);
        if (rc || damaged || !key_of(&m, &bytes)) continue;
        while (at < w->sums && w->sum[at].data < m.data) at++;
        if (at < w->sums && w->sum[at].data == m.data && w->sum[at].bytes == m.bytes) fit++;
    }
    mri_tar_init(&w->tar, get, &w->scan, 0, w->file_bytes);
    if (fit == 0) w->sums_broken = true;
    for (size_t k = 0; !w->sums_broken && w->classes && k < w->sums; k++)
        if (w->sum[k].data == w->classes_at && w->sum[k].crc != mr_crc32c(0, w->classes, w->classes_bytes)) {
            free(w->classes);
            w->classes = NULL; /* those of another file of the set, or none */
            w->sums_damaged = true;
        }
    return rc == MR_EEND ? MR_OK : rc;
}

/* ---- open ---- */
static void close_walk(void *state)
{
    walk *w = state;
    if (!w) return;
    mri_file_scan_fini(&w->scan);
    if (w->fd >= 0) close(w->fd);
    free(w->classes);
    free(w->sum);
    free(w->path);
    free(w);
}

static int open_one(walk **out, const char *path, mr_error *err)
{
    struct stat st;
    walk *w = calloc(1, sizeof *w);
    *out = w;
    if (!w) return no_memory(err);
    w->lost_from = MR_NOWHERE;
    w->fd = open(path, O_RDONLY | O_CLOEXEC | O_NONBLOCK);
    int rc = MR_OK;
    if (!(w->path = strdup(path))) rc = no_memory(err);
    else if (w->fd < 0) rc = mr_error_sys(err, errno, "cannot open");
    else if (fstat(w->fd, &st) != 0) rc = mr_error_sys(err, errno, "cannot look at it");
    else if (!S_ISREG(st.st_mode)) rc = mr_error_set(err, MR_EFORMAT, "not a regular file");
    if (rc) return mri_error_place(err, rc, path, MR_NOWHERE, MR_NOWHERE);
    w->file_bytes = (uint64_t)st.st_size;
    mri_file_scan_init(&w->scan, w->fd, w->path, w->file_bytes);
    mri_tar_init(&w->tar, get, &w->scan, 0, w->file_bytes);
    rc = survey(w, err);
    return rc ? rc : fit_sums(w, err);
}

static int open_walk(void **out, const char *path, const char *like, mr_error *err)
{
    walk *w, *other;
    *out = NULL;
    int rc = open_one(&w, path, err);
    if (!rc && (!w->classes || !w->least) && like) { /* its own names of classes may be what is damaged */
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
    return w->sums > 0 && !w->sums_broken;
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

/* Damage that no incomplete sample stands for. One member between whole samples of several is none of theirs.
 */
static void queue_damage(walk *w)
{
    if (w->lost_from == MR_NOWHERE) return;
    const bool note = w->lost_one && w->least > 1;
    w->to_end = w->lost_to >= w->file_bytes;
    mri_salvage_item *item =
        queue(w, note ? MRI_SALVAGE_NOTE : MRI_SALVAGE_LOST, w->lost_from,
              (w->to_end ? UINT64_MAX : w->lost_to) - w->lost_from, w->lost_one && w->least == 1 ? 1 : 0);
    item->why = w->lost_why;
    mr_error_at(&item->why, w->path, w->lost_from, MR_NOWHERE);
    w->lost_from = MR_NOWHERE;
}

static int check_sums(walk *w, group *g, mr_error *err)
{
    if (!mri_tar_salvage_has_sums(w)) return MR_OK;
    int rc = MR_OK;
    for (uint32_t k = 0; !rc && k < g->count && k < MRI_TAR_MAX_PARTS; k++) {
        const part *m = &g->part[k];
        const uint8_t *p;
        while (w->sum_at < w->sums && w->sum[w->sum_at].data < m->data) w->sum_at++;
        if (w->sum_at == w->sums || w->sum[w->sum_at].data != m->data || w->sum[w->sum_at].bytes != m->bytes)
            continue;
        uint32_t crc = 0;
        for (uint64_t at = 0; !rc && at < m->bytes; at += 1 << 20) {
            const size_t n = (size_t)mri_min_u64(m->bytes - at, 1 << 20);
            rc = mri_file_scan_get(&w->scan, m->data + at, n, &p, err);
            if (!rc) crc = mr_crc32c(crc, p, n);
        }
        g->bad |= crc != w->sum[w->sum_at].crc;
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
               damage = w->lost_from != MR_NOWHERE;
    const bool inside = damage && w->lost_from >= g->begin && w->lost_from < g->end;
    mri_salvage_item *item;
    if (inside || (damage && lacks && w->lost_one)) { /* the sample stands for it */
        g->begin = mri_min_u64(g->begin, w->lost_from);
        g->end = mri_max_u64(g->end, w->lost_to);
        w->lost_from = MR_NOWHERE;
    } else if (damage && w->lost_from < g->begin) queue_damage(w);
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
    /* its extended header may be what is damaged, and this name be what was left of it */
    if (w->after_damage && m->name_bytes >= LONG_NAME) g->bad = true;
    w->after_damage = false;
}

static int take_member(walk *w, const mri_tar_member *m, mr_error *err)
{
    group *g = &w->group;
    size_t bytes = 0;
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
    w->lost_from = from;
    w->lost_to = to;
    w->lost_why = *why;
    w->lost_one = w->one_passed;
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
    mr_error_set(
        &item->why, MR_EFORMAT,
        "the mark at the end is missing: the archive was cut off between two members, or its writer leaves "
        "the mark out");
    mr_error_at(&item->why, w->path, w->file_bytes, MR_NOWHERE);
    return MR_OK;
}

static int next(void *state, mri_salvage_item *out, mr_error *err)
{
    walk *w = state;
    if (w->sums_damaged && !w->sums_told) {
        w->sums_told = true;
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

/* ---- the new archive ---- */
typedef struct output {
    mri_output *file;
    FILE *stream;
    uint64_t at;
    mri_output_rules rules;
    mri_tar_sums sums;
} output;

static int write_bytes(output *o, const void *data, size_t bytes, mr_error *err)
{
    if (bytes && fwrite(data, 1, bytes, o->stream) != bytes)
        return mri_error_place(err, mr_error_sys(err, errno, "cannot write"), mri_output_part(o->file),
                               MR_NOWHERE, MR_NOWHERE);
    o->at += bytes;
    return MR_OK;
}

static int write_zeros(output *o, uint64_t to, mr_error *err)
{
    static const uint8_t zeros[MRI_TAR_BLOCK];
    int rc = MR_OK;
    while (!rc && o->at < to) rc = write_bytes(o, zeros, (size_t)mri_min_u64(to - o->at, sizeof zeros), err);
    return rc;
}

static int write_member(output *o, const char *name, const void *data, size_t bytes, mr_error *err)
{
    uint8_t head[4096];
    size_t used;
    int rc = mri_tar_head_write(name, bytes, head, sizeof head, &used, err);
    if (!rc) rc = write_bytes(o, head, used, err);
    if (!rc) rc = write_bytes(o, data, bytes, err);
    return rc ? rc : write_zeros(o, mri_align_up(o->at, MRI_TAR_BLOCK), err);
}

static int write_sums(output *o, mr_error *err)
{
    const char *text;
    size_t bytes;
    const int rc = mri_tar_sums_make(&o->sums, o->at, &text, &bytes, err);
    return rc ? rc : write_member(o, o->sums.name, text, bytes, err);
}

static void abandon(void *out)
{
    output *o = out;
    if (!o) return;
    mri_output_close(o->file, false);
    mri_tar_sums_fini(&o->sums);
    free(o);
}

static int create(void **out, const void *state, const char *path, bool force, mr_error *err)
{
    const walk *w = state;
    output *o = calloc(1, sizeof *o);
    *out = NULL;
    if (!o) return no_memory(err);
    o->rules = (mri_output_rules){.force = force, .take_part = force};
    int rc = mri_output_open(&o->file, path, &o->rules, err);
    if (!rc && !(o->stream = mri_output_stream(o->file, err))) rc = MR_ENOMEM;
    if (!rc && w->classes) {
        const uint64_t data = mri_tar_head_bytes(MRI_TAR_CLASSES, w->classes_bytes);
        rc = mri_tar_sums_add(&o->sums, data, w->classes_bytes, mr_crc32c(0, w->classes, w->classes_bytes),
                              err);
        if (!rc) rc = write_member(o, MRI_TAR_CLASSES, w->classes, w->classes_bytes, err);
    }
    if (rc) abandon(o);
    else *out = o;
    return rc;
}

/* The checksums of the members in these bytes, which are a sample. */
static int add_sums(output *o, const mri_salvage_item *whole, mr_error *err)
{
    mri_tar tar;
    mri_tar_member m;
    mri_file_scan bytes = {.fd = -1,
                           .path = "",
                           .file_bytes = whole->bytes,
                           .buf = (uint8_t *)(uintptr_t)whole->data,
                           .cap = (size_t)whole->bytes,
                           .filled = (size_t)whole->bytes};
    int rc;
    mri_tar_init(&tar, get, &bytes, 0, whole->bytes);
    while ((rc = mri_tar_next(&tar, &m, err)) == MR_OK) {
        if (m.kind != MRI_TAR_FILE && m.kind != MRI_TAR_SPARSE) continue;
        rc = mri_tar_sums_add(&o->sums, o->at + m.data, m.bytes,
                              mr_crc32c(0, (const uint8_t *)whole->data + m.data, (size_t)m.bytes), err);
        if (rc) return rc;
    }
    return rc == MR_EEND ? MR_OK : rc;
}

static int put(void *out, const mri_salvage_item *whole, mr_error *err)
{
    output *o = out;
    int rc = mri_tar_sums_due(&o->sums) ? write_sums(o, err) : MR_OK;
    if (!rc) rc = add_sums(o, whole, err);
    if (!rc) rc = write_bytes(o, whole->data, (size_t)whole->bytes, err);
    return rc ? rc : write_zeros(o, mri_align_up(o->at, MRI_TAR_BLOCK), err);
}

static int finish(void *out, mr_error *err)
{
    output *o = out;
    int rc = o->sums.count ? write_sums(o, err) : MR_OK;
    if (!rc) rc = write_zeros(o, (o->at + MRI_TAR_END + TAR_RECORD - 1) / TAR_RECORD * TAR_RECORD, err);
    if (!rc) rc = mri_output_commit(o->file, NULL, NULL, err);
    abandon(o);
    return rc;
}

const mri_salvage_ops mri_salvage_tar = {
    .format = "tar",
    .open = open_walk,
    .next = next,
    .close = close_walk,
    .create = create,
    .put = put,
    .finish = finish,
    .abandon = abandon,
};
