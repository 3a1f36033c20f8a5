/* formats/tar/tar.c: walk the headers of a tar archive. See tar.h for the layout and for refused archives.
 *
 *   next() ──► header ──► 'x' 'L' 'K' 'g': keep its values, next header
 *                    ├──► anything else: a member, with the kept values
 *                    └──► zeros: the end
 *
 * Nothing is allocated, and every step goes forward: a walk costs at most one header for each 512 bytes. */
#include "formats/tar/tar.h"

#include <ctype.h>
#include <stdio.h>

#include "base/util.h"

/* Where fields lie in a header. */
enum {
    NAME_AT = 0,
    NAME_BYTES = 100,
    SIZE_AT = 124,
    SIZE_BYTES = 12,
    SUM_AT = 148,
    SUM_BYTES = 8,
    TYPE_AT = 156,
    MAGIC_AT = 257,
    PREFIX_AT = 345,
    PREFIX_BYTES = 155,
    SPARSE_MORE_AT = 482,
    SPARSE_MORE_LATER_AT = 504,
};
enum { SEEN_PAX, SEEN_NAME, SEEN_LINK };
enum { RANK_HEADER, RANK_GNU, RANK_PAX, RANK_SPARSE }; /* of a name: a higher one replaces a lower one */
#define OCTAL_SIZE_LIMIT ((uint64_t)8 << 30)           /* what eleven octal digits cannot hold */

static int wrong(mr_error *err, int code, uint64_t offset)
{
    mr_error_at(err, NULL, offset, MR_NOWHERE);
    return code;
}

/* ---- one header ---- */
static bool all_zero(const uint8_t *p, size_t bytes)
{
    uint8_t any = 0;
    for (size_t k = 0; k < bytes; k++) any |= p[k];
    return any == 0;
}

static bool octal(const uint8_t *p, size_t bytes, uint64_t *out)
{
    size_t k = 0;
    *out = 0;
    while (k < bytes && p[k] == ' ') k++;
    for (; k < bytes && p[k] >= '0' && p[k] <= '7'; k++) *out = *out << 3 | (uint64_t)(p[k] - '0');
    while (k < bytes && p[k] == ' ') k++;
    return k == bytes || p[k] == 0;
}

/* False from 2^63 and below 0. */
static bool base256(const uint8_t *p, size_t bytes, uint64_t *out)
{
    if (p[0] != 0x80) return false; /* the sign, and bits that only larger numbers have */
    *out = 0;
    for (size_t k = 1; k < bytes; k++) {
        if (*out >> 55) return false;
        *out = *out << 8 | p[k];
    }
    return true;
}

/* The sums that writers store: of unsigned bytes, and of signed ones as some old programs made it. */
static void sums(const uint8_t *h, uint64_t *plain, uint64_t *with_sign)
{
    uint32_t all = 0, high = 0;
    for (size_t k = 0; k < MRI_TAR_BLOCK; k++) {
        all += h[k];
        high += h[k] >> 7;
    }
    for (size_t k = SUM_AT; k < SUM_AT + SUM_BYTES; k++) {
        all += (uint32_t)' ' - h[k];
        high -= h[k] >> 7;
    }
    *plain = all;
    *with_sign = (uint64_t)((int64_t)all - 256 * (int64_t)high);
}

bool mri_tar_is_header(const uint8_t *block, size_t bytes)
{
    uint64_t stored, plain, with_sign;
    if (bytes < MRI_TAR_BLOCK || !octal(block + SUM_AT, SUM_BYTES, &stored)) return false;
    sums(block, &plain, &with_sign);
    return stored == plain || stored == with_sign; /* never of zeros: those store 0, and the sum counts eight
                                                      spaces */
}

static int check_sum(const uint8_t *h, uint64_t offset, mr_error *err)
{
    if (mri_tar_is_header(h, MRI_TAR_BLOCK)) return MR_OK;
    uint64_t stored, plain, with_sign;
    sums(h, &plain, &with_sign);
    if (octal(h + SUM_AT, SUM_BYTES, &stored))
        mr_error_set(err, MR_EFORMAT,
                     "expected a tar header with checksum %llu, found %llu in it: the "
                     "archive is damaged here or before",
                     (unsigned long long)plain, (unsigned long long)stored);
    else
        mr_error_set(
            err, MR_EFORMAT,
            "expected a tar header, found something else (no number where the checksum would be): the "
            "archive is damaged here or before");
    return wrong(err, MR_EFORMAT, offset);
}

static int header_size(const uint8_t *h, uint64_t offset, uint64_t *out, mr_error *err)
{
    const uint8_t *p = h + SIZE_AT;
    if (p[0] & 0x80 ? base256(p, SIZE_BYTES, out) : octal(p, SIZE_BYTES, out)) return MR_OK;
    mr_error_set(err, MR_EFORMAT,
                 p[0] & 0x80 ? "expected a size from 0 to 2^63 - 1, found another number in base 256"
                             : "expected a size in octal digits, found something else");
    return wrong(err, MR_EFORMAT, offset + SIZE_AT);
}

/* ---- names ---- */
static void keep_name(mri_tar *t, int rank, const uint8_t *p, size_t bytes)
{
    if (rank < t->name_rank) return;
    t->name_rank = rank;
    t->name_bytes = bytes;
    memcpy(t->name, p, bytes);
    t->name[bytes] = '\0';
}

static void header_name(mri_tar *t, const uint8_t *h)
{
    if (t->name_rank > RANK_HEADER) return;
    uint8_t joined[PREFIX_BYTES + 1 + NAME_BYTES];
    size_t bytes = 0;
    const size_t own = strnlen((const char *)h + NAME_AT, NAME_BYTES);
    /* in GNU's own headers ("ustar  ") times lie where the prefix would be */
    if (memcmp(h + MAGIC_AT, "ustar\0", 6) == 0) bytes = strnlen((const char *)h + PREFIX_AT, PREFIX_BYTES);
    memcpy(joined, h + PREFIX_AT, bytes);
    if (bytes > 0) joined[bytes++] = '/';
    memcpy(joined + bytes, h + NAME_AT, own);
    keep_name(t, RANK_HEADER, joined, bytes + own);
}

static const char *shown_name(const mri_tar *t, char *buf, size_t room)
{
    return mr_text_shown(t->name, buf, room);
}

/* ---- extended headers ---- */
static int pax_name(mri_tar *t, int rank, const uint8_t *value, size_t bytes, uint64_t offset, mr_error *err)
{
    if (bytes > MRI_TAR_MAX_NAME) {
        mr_error_set(err, MR_ELIMIT, "a name of %zu bytes: at most %d are read", bytes, MRI_TAR_MAX_NAME);
        return wrong(err, MR_ELIMIT, offset);
    }
    if (memchr(value, 0, bytes))
        return wrong(err, mr_error_set(err, MR_EFORMAT, "expected a name, found one with a zero byte in it"),
                     offset);
    if (bytes > 0) keep_name(t, rank, value, bytes); /* empty takes the record back: the header's own holds */
    return MR_OK;
}

static int pax_size(mri_tar *t, const uint8_t *value, size_t bytes, uint64_t offset, mr_error *err)
{
    uint64_t v = 0;
    size_t k = 0;
    for (; k < bytes && value[k] >= '0' && value[k] <= '9'; k++)
        if (__builtin_mul_overflow(v, 10, &v) || __builtin_add_overflow(v, value[k] - '0', &v) ||
            v > INT64_MAX)
            break;
    if (k < bytes)
        return wrong(err,
                     mr_error_set(err, MR_EFORMAT,
                                  "expected a size from 0 to 2^63 - 1 in a PAX record, found another text"),
                     offset);
    t->has_size = bytes > 0;
    t->size = v;
    return MR_OK;
}

static bool is_key(const uint8_t *key, size_t bytes, const char *name)
{
    return strlen(name) == bytes && memcmp(key, name, bytes) == 0;
}

static int pax_record(mri_tar *t, bool for_all, const uint8_t *key, size_t key_bytes, const uint8_t *value,
                      size_t bytes, uint64_t offset, mr_error *err)
{
    static const char sparse[] = "GNU.sparse.";
    const bool path = is_key(key, key_bytes, "path"), size = is_key(key, key_bytes, "size");
    const bool hole = key_bytes >= sizeof sparse - 1 && memcmp(key, sparse, sizeof sparse - 1) == 0;
    if (for_all && (path || size || hole)) {
        mr_error_set(err, MR_EUNSUPPORTED,
                     "a PAX header gives one \"%.*s\" to all members that follow: write the archive again",
                     (int)key_bytes, (const char *)key);
        return wrong(err, MR_EUNSUPPORTED, offset);
    }
    if (path) return pax_name(t, RANK_PAX, value, bytes, offset, err);
    if (size) return pax_size(t, value, bytes, offset, err);
    if (hole) t->sparse = true;
    if (is_key(key, key_bytes, "GNU.sparse.name")) return pax_name(t, RANK_SPARSE, value, bytes, offset, err);
    return MR_OK;
}

/* "27 path=some/long/name.jpg\n": the number counts all of the record, itself and the line end too. */
static int pax_split(const uint8_t *p, size_t left, size_t *key_at, size_t *value_at, size_t *record)
{
    size_t k = 0, length = 0;
    for (; k < left && isdigit(p[k]); k++) {
        length = length * 10 + (size_t)(p[k] - '0');
        if (length > left) return MR_EFORMAT;
    }
    if (k == 0 || k == left || p[k] != ' ' || length < k + 3 || p[length - 1] != '\n') return MR_EFORMAT;
    const uint8_t *equals = memchr(p + k + 1, '=', length - k - 2);
    if (!equals || equals == p + k + 1) return MR_EFORMAT;
    *key_at = k + 1;
    *value_at = (size_t)(equals - p) + 1;
    *record = length;
    return MR_OK;
}

static int pax_header(mri_tar *t, bool for_all, uint64_t offset, size_t bytes, mr_error *err)
{
    const uint8_t *p;
    int rc = t->get(t->context, offset, bytes, &p, err);
    for (size_t at = 0; !rc && at < bytes;) {
        size_t key_at, value_at, record;
        if (all_zero(p + at, bytes - at)) break; /* padding that was counted in */
        if (pax_split(p + at, bytes - at, &key_at, &value_at, &record)) {
            mr_error_set(
                err, MR_EFORMAT,
                "expected a PAX record \"LENGTH KEY=VALUE\" that ends with a line end in the %zu bytes left, "
                "found something else",
                bytes - at);
            return wrong(err, MR_EFORMAT, offset + at);
        }
        rc = pax_record(t, for_all, p + at + key_at, value_at - key_at - 1, p + at + value_at,
                        record - value_at - 1, offset + at, err);
        at += record;
    }
    return rc;
}

static int long_name(mri_tar *t, uint64_t offset, size_t bytes, mr_error *err)
{
    const uint8_t *p;
    const int rc = t->get(t->context, offset, bytes, &p, err);
    if (!rc) keep_name(t, RANK_GNU, p, strnlen((const char *)p, bytes));
    return rc;
}

static int extended(mri_tar *t, char type, uint64_t offset, uint64_t bytes, mr_error *err)
{
    const int which = type == 'L' ? SEEN_NAME : type == 'K' ? SEEN_LINK : SEEN_PAX;
    const size_t most = type == 'L' ? MRI_TAR_MAX_NAME + 1 : MRI_TAR_MAX_EXTENDED;
    if (type != 'g' && t->seen[which]) {
        mr_error_set(err, MR_EFORMAT,
                     "two extended headers '%c' for one member: readers disagree which one holds", type);
        return wrong(err, MR_EFORMAT, offset - MRI_TAR_BLOCK);
    }
    if (bytes > most) {
        mr_error_set(err, MR_ELIMIT, "an extended header '%c' of %llu bytes: at most %zu are read", type,
                     (unsigned long long)bytes, most);
        return wrong(err, MR_ELIMIT, offset - MRI_TAR_BLOCK);
    }
    if (type != 'g') t->seen[which] = true;
    if (type == 'K' || bytes == 0) return MR_OK; /* where a link points to is nobody's business here */
    return type == 'L' ? long_name(t, offset, (size_t)bytes, err)
                       : pax_header(t, type == 'g', offset, (size_t)bytes, err);
}

/* ---- members ---- */
static mri_tar_kind kind_of(const mri_tar *t, char type)
{
    switch (type) {
    case '\0':
        return t->name_bytes > 0 && t->name[t->name_bytes - 1] == '/' ? MRI_TAR_FOLDER
               : t->sparse                                            ? MRI_TAR_SPARSE
                                                                      : MRI_TAR_FILE;
    case '0':
    case '7': return t->sparse ? MRI_TAR_SPARSE : MRI_TAR_FILE;
    case '1': return MRI_TAR_HARD_LINK;
    case '2': return MRI_TAR_SYMBOLIC_LINK;
    case '3':
    case '4': return MRI_TAR_DEVICE;
    case '5': return MRI_TAR_FOLDER;
    case '6': return MRI_TAR_PIPE;
    case 'S': return MRI_TAR_SPARSE;
    default: return MRI_TAR_OTHER;
    }
}

const char *mri_tar_kind_name(mri_tar_kind kind)
{
    static const char *const names[] = {"a file",   "a folder", "a hard link",   "a symbolic link",
                                        "a device", "a pipe",   "a sparse file", "of a type of its own"};
    return names[kind];
}

/* A sparse file of the old GNU kind may have more blocks of its map between header and data. */
static int skip_sparse_map(mri_tar *t, const uint8_t *header, uint64_t *data, mr_error *err)
{
    bool more = header[SPARSE_MORE_AT] != 0;
    while (more) {
        const uint8_t *p;
        if (t->end - *data < MRI_TAR_BLOCK)
            return wrong(err,
                         mr_error_set(err, MR_EFORMAT, "the archive ends inside the map of a sparse file"),
                         *data);
        const int rc = t->get(t->context, *data, MRI_TAR_BLOCK, &p, err);
        if (rc) return rc;
        more = p[SPARSE_MORE_LATER_AT] != 0;
        *data += MRI_TAR_BLOCK;
    }
    return MR_OK;
}

/* The extended header's size counts. Both may differ only when the number is too large for the plain
 * field. */
static int settle_size(const mri_tar *t, uint64_t offset, uint64_t *size, mr_error *err)
{
    if (!t->has_size) return MR_OK;
    if (*size != 0 && *size != t->size && t->size < OCTAL_SIZE_LIMIT) {
        char name[128];
        mr_error_set(
            err, MR_EFORMAT,
            "member \"%s\": %llu bytes says its header, %llu its PAX record: readers disagree where it ends",
            shown_name(t, name, sizeof name), (unsigned long long)*size, (unsigned long long)t->size);
        return wrong(err, MR_EFORMAT, offset + SIZE_AT);
    }
    *size = t->size;
    return MR_OK;
}

static int check_kind(const mri_tar *t, const mri_tar_member *m, char type, uint64_t offset, mr_error *err)
{
    char name[128];
    if (type == 'M') {
        mr_error_set(
            err, MR_EUNSUPPORTED,
            "member \"%s\" began on another volume: join the volumes, or write the archive in one piece",
            shown_name(t, name, sizeof name));
        return wrong(err, MR_EUNSUPPORTED, offset);
    }
    const bool has_data = m->kind == MRI_TAR_FILE || m->kind == MRI_TAR_SPARSE || m->kind == MRI_TAR_OTHER;
    if (has_data || m->bytes == 0) return MR_OK;
    mr_error_set(
        err, MR_EFORMAT,
        "member \"%s\" is %s: expected 0 bytes, found a size of %llu: readers disagree where it ends",
        shown_name(t, name, sizeof name), mri_tar_kind_name(m->kind), (unsigned long long)m->bytes);
    return wrong(err, MR_EFORMAT, offset + SIZE_AT);
}

/* Data of `bytes` at `data` lies inside; the next header follows its padding, which the end of the archive
 * may have cut off. */
static int step_over(mri_tar *t, const char *what, uint64_t data, uint64_t bytes, mr_error *err)
{
    if (bytes > t->end - data) {
        mr_error_set(err, MR_EFORMAT,
                     "%s: expected %llu bytes from offset %llu, found the end of the archive "
                     "after %llu: is the file whole?",
                     what, (unsigned long long)bytes, (unsigned long long)data,
                     (unsigned long long)(t->end - data));
        return wrong(err, MR_EFORMAT, t->end);
    }
    const uint64_t padding = (MRI_TAR_BLOCK - bytes % MRI_TAR_BLOCK) % MRI_TAR_BLOCK;
    t->at = padding < t->end - data - bytes ? data + bytes + padding : t->end;
    return MR_OK;
}

static int member(mri_tar *t, const uint8_t *block, uint64_t size, mri_tar_member *out, mr_error *err)
{
    uint8_t header[MRI_TAR_BLOCK]; /* its block is gone when the map of a sparse file is read */
    char name[128], what[160];
    memcpy(header, block, sizeof header);
    const uint64_t offset = t->at;
    const char type = (char)header[TYPE_AT];
    header_name(t, header);
    int rc = settle_size(t, offset, &size, err);
    if (rc) return rc;
    *out = (mri_tar_member){kind_of(t, type), t->name, t->name_bytes, t->head, offset + MRI_TAR_BLOCK, size};
    rc = check_kind(t, out, type, offset, err);
    if (!rc && type == 'S') rc = skip_sparse_map(t, header, &out->data, err);
    if (rc) return rc;
    snprintf(what, sizeof what, "member \"%s\"", shown_name(t, name, sizeof name));
    return step_over(t, what, out->data, out->bytes, err);
}

/* ---- the walk ---- */
void mri_tar_init(mri_tar *t, mri_tar_get *get, void *context, uint64_t at, uint64_t end)
{
    t->get = get;
    t->context = context;
    t->at = at;
    t->end = end;
    t->end_blocks = 0;
}

static void forget(mri_tar *t)
{
    t->head = t->at;
    t->has_size = t->sparse = false;
    memset(t->seen, 0, sizeof t->seen);
    t->name_rank = RANK_HEADER;
    t->name_bytes = 0;
    t->name[0] = '\0';
}

static bool waits_for_member(const mri_tar *t)
{
    return t->seen[SEEN_PAX] || t->seen[SEEN_NAME] || t->seen[SEEN_LINK];
}

/* The next header at t->at, or MR_EEND. */
static int next_block(mri_tar *t, const uint8_t **out, mr_error *err)
{
    const uint64_t left = t->end - t->at;
    const size_t bytes = (size_t)mri_min_u64(left, MRI_TAR_BLOCK);
    int rc = bytes > 0 ? t->get(t->context, t->at, bytes, out, err) : MR_OK;
    if (rc) return rc;
    if (bytes > 0 && !all_zero(*out, bytes)) {
        if (bytes == MRI_TAR_BLOCK) return check_sum(*out, t->at, err);
        mr_error_set(
            err, MR_EFORMAT,
            "expected a header of %d bytes, found the end of the archive after %zu: is the file whole?",
            MRI_TAR_BLOCK, bytes);
        return wrong(err, MR_EFORMAT, t->at);
    }
    if (waits_for_member(t))
        return wrong(
            err,
            mr_error_set(err, MR_EFORMAT,
                         "expected the member that the extended header before speaks of, found the end of "
                         "the archive: is the file whole?"),
            t->at);
    t->end_blocks = bytes == MRI_TAR_BLOCK;
    return MR_EEND;
}

int mri_tar_next(mri_tar *t, mri_tar_member *out, mr_error *err)
{
    for (forget(t);;) {
        const uint8_t *block;
        uint64_t size;
        int rc = next_block(t, &block, err);
        if (!rc) rc = header_size(block, t->at, &size, err);
        if (rc) return rc;
        const char type = block[TYPE_AT] == 'X' ? 'x' : (char)block[TYPE_AT]; /* Solaris wrote its own before
                                                                                 PAX was fixed */
        if (!strchr("xgLK", type) || type == '\0') return member(t, block, size, out, err);
        const uint64_t header = t->at;
        rc = step_over(t, "an extended header", header + MRI_TAR_BLOCK, size, err);
        if (!rc) rc = extended(t, type, header + MRI_TAR_BLOCK, size, err);
        if (rc) return rc;
        if (!waits_for_member(t)) t->head = t->at; /* what speaks of all members is part of none */
    }
}

int mri_tar_finish(mri_tar *t, mr_error *err)
{
    for (uint64_t at = t->at; at < t->end;) {
        const uint8_t *p;
        const size_t bytes = (size_t)mri_min_u64(t->end - at, MRI_TAR_BLOCK);
        const int rc = t->get(t->context, at, bytes, &p, err);
        if (rc) return rc;
        if (!all_zero(p, bytes)) {
            while (*p == 0) p++, at++;
            mr_error_set(
                err, MR_EFORMAT,
                "expected zeros up to the end of the archive, which ended at offset %llu, found more: other "
                "readers stop before it; two archives in one file must be taken apart",
                (unsigned long long)t->at);
            return wrong(err, MR_EFORMAT, at);
        }
        if (at == t->at + MRI_TAR_BLOCK && bytes == MRI_TAR_BLOCK) t->end_blocks = 2;
        at += bytes;
    }
    return MR_OK;
}
