/* formats/record/shards.c: read shard lists (shards_write.c writes them).
 *
 *   millrace shards 2
 *   set fingerprint 7c2b... schema 40f0e1b2 classes 05a1... bytes 812000 largest 540 coefficients 0 labels 0
 * 9 1000 409600 3391...  train-00000.mrec 1000 413696 81b0...  train-00001.mrec end 2 shards 2000 records
 * checksum 1f29ab04
 *
 * Version 1 has no line of facts, of each file the number of records and the path alone, and no checksum: it
 * can be written by hand. The last line shows that the list is complete. */
#include "formats/record/shards.h"

#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <stdio.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/util.h"
#include "formats/source/source.h"
#include "formats/source/value.h"

static const char first_words[] = "millrace shards ";
#define MAX_LIST_BYTES ((off_t)256 << 20)
/* Of one file: pages of its index are numbered below 2^40 (source_mrec.c). */
#define MAX_SHARD_BYTES ((uint64_t)1 << 52)

bool mri_shards_magic(const void *head, size_t bytes)
{
    const size_t len = sizeof first_words - 1;
    const char *p = head;
    return bytes > len && memcmp(p, first_words, len) == 0 && p[len] >= '0' && p[len] <= '9';
}

void mri_shards_fini(mri_shards *s)
{
    free(s->text);
    free(s->shard);
    *s = (mri_shards){0};
}

/* ---- read ---- */
static int wrong(mr_error *err, const char *path, size_t line, const char *what)
{
    mr_error_set(err, MR_EFORMAT, "line %zu: %s", line, what);
    return mri_error_place(err, MR_EFORMAT, path, MR_NOWHERE, MR_NOWHERE);
}

static int load(mri_shards *s, const char *path, size_t *bytes, mr_error *err)
{
    const int fd = open(path, O_RDONLY | O_CLOEXEC);
    struct stat st;
    if (fd < 0)
        return mri_error_place(err, mr_error_sys(err, errno, "cannot open"), path, MR_NOWHERE, MR_NOWHERE);
    int rc = MR_OK;
    if (fstat(fd, &st) != 0) rc = mr_error_sys(err, errno, "cannot look at it");
    else if (st.st_size > MAX_LIST_BYTES) rc = mr_error_set(err, MR_ELIMIT, "a shard list over 256 MiB");
    else if (!(s->text = malloc((size_t)st.st_size + 1)))
        rc = mr_error_set(err, MR_ENOMEM, "no memory for a shard list");
    else rc = mri_pread_all(fd, s->text, (size_t)st.st_size, 0, path, err);
    close(fd);
    if (rc) return mri_error_place(err, rc, path, MR_NOWHERE, MR_NOWHERE);
    *bytes = (size_t)st.st_size;
    s->text[*bytes] = '\0';
    return MR_OK;
}

/* Decimal digits only; false on anything else or overflow. *at moves past them. */
static bool number(char **at, uint64_t *out)
{
    uint64_t v = 0;
    char *p = *at;
    for (; *p >= '0' && *p <= '9'; p++)
        if (__builtin_mul_overflow(v, 10, &v) || __builtin_add_overflow(v, (uint64_t)(*p - '0'), &v))
            return false;
    const bool any = p > *at;
    *at = p;
    *out = v;
    return any;
}

/* Hexadecimal, lower case, exactly `digits` digits. */
static bool hex(char **at, uint32_t digits, uint64_t *out)
{
    *out = 0;
    for (uint32_t k = 0; k < digits; k++, ++*at) {
        const char c = **at;
        if (!((c >= '0' && c <= '9') || (c >= 'a' && c <= 'f'))) return false;
        *out = *out << 4 | (uint64_t)(c <= '9' ? c - '0' : c - 'a' + 10);
    }
    return true;
}

static bool signed_number(char **at, int64_t *out)
{
    uint64_t v;
    const bool negative = **at == '-';
    *at += negative;
    if (!number(at, &v) || v > (uint64_t)INT64_MAX + negative) return false;
    *out = negative ? (int64_t)(0 - v) : (int64_t)v;
    return true;
}

static bool word(char **at, const char *text)
{
    const size_t len = strlen(text);
    if (strncmp(*at, text, len) != 0) return false;
    *at += len;
    return true;
}

static bool get_labels(char **at, mri_shard_facts *f)
{
    if (word(at, "none")) return true;
    f->has_labels = true;
    return signed_number(at, &f->label_min) && word(at, " ") && signed_number(at, &f->label_max) &&
           f->label_min <= f->label_max;
}

static bool get_facts(char *at, mri_shard_facts *f)
{
    uint64_t schema, classes, coef;
    *f = (mri_shard_facts){0};
    if (!word(&at, "set fingerprint ") || !hex(&at, 16, &f->fingerprint)) return false;
    if (!word(&at, " schema ") || !hex(&at, 8, &schema)) return false;
    if (!word(&at, " classes ") || !hex(&at, 8, &classes)) return false;
    if (!word(&at, " bytes ") || !number(&at, &f->record_bytes_total)) return false;
    if (!word(&at, " largest ") || !number(&at, &f->record_bytes_max)) return false;
    if (!word(&at, " coefficients ") || !number(&at, &coef) || coef > 1) return false;
    if (!word(&at, " labels ") || !get_labels(&at, f) || *at != '\0') return false;
    f->schema_crc = (uint32_t)schema;
    f->classes_crc = (uint32_t)classes;
    f->coef = coef == 1;
    return f->record_bytes_max <= MRI_MAX_SAMPLE_BYTES;
}

static int facts_line(mri_shards *s, const char *path, char *line, mr_error *err)
{
    if (get_facts(line, &s->facts)) return MR_OK;
    return wrong(err, path, 2,
                 "expected \"set fingerprint HEX schema HEX classes HEX bytes N largest N coefficients 0|1 "
                 "labels MIN MAX|none\"");
}

/* crc: of the lines above it */
static int end_line(const mri_shards *s, const char *path, size_t line_at, const char *line, uint32_t crc,
                    mr_error *err)
{
    const bool sums = s->version == MRI_SHARDS_FACTS;
    char expected[128], checksum[32] = "";
    if (sums) snprintf(checksum, sizeof checksum, " checksum %08x", crc);
    snprintf(expected, sizeof expected, "end %u shards %llu records%s", s->count,
             (unsigned long long)s->records, checksum);
    if (strcmp(line, expected) == 0) return MR_OK;
    mr_error_set(err, MR_EFORMAT, "line %zu: expected \"%s\" after the lines above it, found \"%.100s\"%s",
                 line_at, expected, line,
                 sums ? ": they are not as they were written; make the list again" : "");
    return mri_error_place(err, MR_EFORMAT, path, MR_NOWHERE, MR_NOWHERE);
}

/* Bytes and fingerprint of a file; its index alone has a page for each 127 records begun. */
static bool get_file(char **at, mri_shard *out)
{
    return number(at, &out->file_bytes) && word(at, " ") && hex(at, 16, &out->fingerprint) && word(at, " ") &&
           out->file_bytes <= MAX_SHARD_BYTES &&
           mri_index_pages(out->count) <= out->file_bytes / MRI_MREC_BLOCK;
}

static int shard_line(mri_shards *s, const char *path, size_t line_at, char *line, mr_error *err)
{
    mri_shard one = {0};
    char *p = line;
    bool sound = number(&p, &one.count) && word(&p, " ");
    if (sound && s->version == MRI_SHARDS_FACTS) sound = get_file(&p, &one);
    if (!sound || *p == '\0')
        return wrong(err, path, line_at,
                     s->version == MRI_SHARDS_FACTS
                         ? "expected \"RECORDS BYTES FINGERPRINT PATH\" of a file that can hold the "
                           "records, or the end line"
                         : "expected a number of records, a space and a path, or the end line");
    if (__builtin_add_overflow(s->records, one.count, &s->records))
        return wrong(err, path, line_at, "more records than can be counted");
    one.path = p;
    s->shard[s->count++] = one;
    return MR_OK;
}

/* Its checksum holds, so this is a list that somebody made wrong, not a damaged one. */
static int check_print(const mri_shards *s, const char *path, mr_error *err)
{
    mri_shard_facts f;
    mri_shard_facts_init(&f);
    for (uint32_t k = 0; k < s->count; k++)
        f.fingerprint = mri_shard_facts_print(f.fingerprint, s->shard[k].fingerprint);
    if (f.fingerprint == s->facts.fingerprint) return MR_OK;
    mr_error_set(err, MR_EFORMAT,
                 "line 2: expected the fingerprint %016llx of the files below, found %016llx",
                 (unsigned long long)f.fingerprint, (unsigned long long)s->facts.fingerprint);
    return mri_error_place(err, MR_EFORMAT, path, MR_NOWHERE, MR_NOWHERE);
}

/* The first line; *at moves past it. */
static int version_line(mri_shards *s, const char *path, size_t bytes, char **at, mr_error *err)
{
    uint64_t version;
    char *p = s->text + sizeof first_words - 1;
    if (!mri_shards_magic(s->text, bytes) || !number(&p, &version) || *p != '\n')
        return wrong(err, path, 1, "expected \"millrace shards 1\" or \"millrace shards 2\"");
    if (version != MRI_SHARDS_COUNTS && version != MRI_SHARDS_FACTS) {
        mr_error_set(err, MR_EUNSUPPORTED,
                     "a shard list of version %llu: this program reads 1 and 2; use a newer one, or make the "
                     "list again with this one",
                     (unsigned long long)version);
        return mri_error_place(err, MR_EUNSUPPORTED, path, MR_NOWHERE, MR_NOWHERE);
    }
    s->version = (uint32_t)version;
    *at = p + 1;
    return MR_OK;
}

static int read_lines(mri_shards *s, const char *path, size_t lines, char *line, mr_error *err)
{
    uint32_t crc = mr_crc32c(0, s->text, (size_t)(line - s->text));
    bool ended = false;
    int rc = MR_OK;
    for (size_t k = 2; !rc && k <= lines; k++) {
        char *end = strchr(line, '\n');
        const uint32_t above = crc;
        crc = mr_crc32c(crc, line, (size_t)(end - line) + 1);
        *end = '\0';
        if (ended) rc = wrong(err, path, k, "lines after the end line");
        else if (k == 2 && s->version == MRI_SHARDS_FACTS) rc = facts_line(s, path, line, err);
        else if (strncmp(line, "end ", 4) == 0) ended = true, rc = end_line(s, path, k, line, above, err);
        else rc = shard_line(s, path, k, line, err);
        line = end + 1;
    }
    if (!rc && !ended) rc = wrong(err, path, lines + 1, "expected the end line: the list is cut short");
    if (!rc && s->count == 0) rc = wrong(err, path, 2, "no shards");
    return rc;
}

int mri_shards_read(mri_shards *s, const char *path, mr_error *err)
{
    *s = (mri_shards){0};
    size_t bytes = 0, lines = 0;
    char *line = NULL;
    int rc = load(s, path, &bytes, err);
    if (!rc) rc = version_line(s, path, bytes, &line, err);
    if (!rc && (strlen(s->text) != bytes || s->text[bytes - 1] != '\n'))
        rc = wrong(err, path, 1,
                   "a zero byte inside, or no line end at the end: the list is cut short or no text");
    for (size_t k = 0; !rc && k < bytes; k++) lines += s->text[k] == '\n';
    if (!rc && !(s->shard = malloc(lines * sizeof *s->shard)))
        rc = mr_error_set(err, MR_ENOMEM, "no memory for a shard list");
    if (!rc) rc = read_lines(s, path, lines, line, err);
    if (!rc && s->version == MRI_SHARDS_FACTS) rc = check_print(s, path, err);
    if (rc) mri_shards_fini(s);
    return rc;
}

size_t mri_shards_folder_bytes(const char *path)
{
    const char *slash = strrchr(path, '/');
    return slash ? (size_t)(slash - path) + 1 : 0;
}

static char *beside(const char *list_path, const char *shard_path)
{
    const size_t folder = shard_path[0] == '/' ? 0 : mri_shards_folder_bytes(list_path),
                 len = strlen(shard_path) + 1;
    char *out = malloc(folder + len);
    if (!out) return NULL;
    memcpy(out, list_path, folder);
    memcpy(out + folder, shard_path, len);
    return out;
}

/* A link to a list may stand alone (latest.mrec -> v1/s.mrec), or among links to all files of the set. */
char *mri_shards_resolve(const char *list_path, const char *shard_path)
{
    struct stat st;
    char *out = beside(list_path, shard_path);
    if (!out || shard_path[0] == '/' || lstat(list_path, &st) != 0 || !S_ISLNK(st.st_mode) ||
        lstat(out, &st) == 0)
        return out;
    char *real = realpath(list_path, NULL);
    if (!real) return out;
    free(out);
    out = beside(real, shard_path);
    free(real);
    return out;
}
