/* formats/text/source_sequence.c: sequences of numbers, one in each line of a text: notes, tokens, readings.
 *
 *   74, 74, 76, 0, 79          integers between commas, semicolons, tabs or spaces; lines may have different
 *                              lengths
 *
 * The last number is the class (what comes next), the others are the sequence: field "tokens", i32, of
 * variable length. With label_key it is the first one, one by number (from 1), or none. Lines are parsed
 * once, when the set is opened, into a file without a name, so that a sample is 4 bytes a number at a known
 * place and a million lines cost no text at run time:
 *
 *   | tokens of line 1 | tokens of line 2 | ...       kept: 8 bytes a sample for where it ends, 4 for its
 *                                                     class
 *
 * Anything that is no integer of 32 bits, an empty place, an empty sequence, and a line over MOST_NUMBERS are
 * refused with the line. Empty lines are passed over. PATH may be a folder with one such text of each part,
 * train... and val... or test... The class count is the largest number found plus one: classes are of the
 * same alphabet as the tokens, so no offset is taken. */
#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <sys/stat.h>
#include <unistd.h>
#include <xxhash.h>

#include "base/util.h"
#include "formats/source/parts.h"
#include "formats/source/source.h"
#include "formats/source/value.h"
#include "formats/storage/storage.h"
#include "formats/text/tables.h"

enum { MOST_NUMBERS = 1 << 20, MAX_LISTED = 256, LEAST_SIDE = 16 /* of lines that could be pictures */ };
enum { LABEL_NONE = -1, LABEL_LAST = 0 }; /* else its number from 1 */

typedef struct sequences { /* fixed after open */
    char *path;            /* of the text */
    mri_spill tokens;
    uint64_t *end; /* in the spill */
    int32_t *label;
    uint64_t count, cap;
    int label_at;
    int64_t largest, least;
    uint32_t longest, shortest;
    uint64_t print; /* hash of all tokens and where lines end */
    char report_text[200];
} sequences;

typedef struct row { /* being read */
    mri_text text;
    uint64_t line;
    int32_t *number;
    uint32_t count, cap;
} row;

static int no_memory(mr_error *err, const char *path)
{
    return mri_error_place(err, mr_error_set(err, MR_ENOMEM, "no memory for sequences"), path, MR_NOWHERE,
                           MR_NOWHERE);
}

/* ---- one line into numbers ---- */
/* The next byte without taking it; -1 at the end of the file. */
static int peek(row *r, int *byte, mr_error *err)
{
    const int rc = r->text.at < r->text.end ? MR_OK : mri_text_more(&r->text, err);
    *byte = rc == MR_OK ? *r->text.at : -1;
    return rc == MR_EEND ? MR_OK : rc;
}

static bool is_space(int byte) { return byte == ' ' || byte == '\t'; }
static bool is_end(int byte) { return byte < 0 || byte == '\n' || byte == '\r'; }

static int skip_spaces(row *r, int *byte, mr_error *err)
{
    int rc;
    while (!(rc = peek(r, byte, err)) && is_space(*byte)) r->text.at++;
    return rc;
}

static int no_integer(const row *r, int byte, mr_error *err)
{
    const char *what = byte == ',' || byte == ';' || is_end(byte) ? "an empty place"
                       : byte == '.'                              ? "a fraction"
                                                                  : "something else";
    char shown[24] = "";
    if (byte > ' ' && byte < 127) snprintf(shown, sizeof shown, " ('%c')", byte);
    else if (byte >= 0 && !is_end(byte)) snprintf(shown, sizeof shown, " (byte 0x%02x)", (unsigned)byte);
    return mri_text_error_at(&r->text, err, MR_EFORMAT, r->line, "number %u: expected an integer, found %s%s",
                             r->count + 1, what, shown);
}

static int take_integer(row *r, int32_t *out, mr_error *err)
{
    int byte, rc = peek(r, &byte, err);
    const int sign = byte;
    if (!rc && (sign == '-' || sign == '+')) {
        r->text.at++;
        rc = peek(r, &byte, err);
    }
    if (rc) return rc;
    if (byte < '0' || byte > '9') return no_integer(r, byte, err);
    int64_t value = 0;
    while (!rc && byte >= '0' && byte <= '9') {
        value = 10 * value + (byte - '0');
        if (value > (int64_t)INT32_MAX + 1) break;
        r->text.at++;
        rc = peek(r, &byte, err);
    }
    if (rc) return rc;
    if (sign == '-') value = -value;
    if (value > INT32_MAX || value < INT32_MIN)
        return mri_text_error_at(&r->text, err, MR_EFORMAT, r->line, "number %u does not fit 32 bits",
                                 r->count + 1);
    if (!is_end(byte) && !is_space(byte) && byte != ',' && byte != ';') return no_integer(r, byte, err);
    *out = (int32_t)value;
    return MR_OK;
}

static int add_number(row *r, mr_error *err)
{
    if (r->count == MOST_NUMBERS)
        return mri_text_error_at(&r->text, err, MR_ELIMIT, r->line,
                                 "more than %d numbers in one line: cut the sequences shorter", MOST_NUMBERS);
    if (r->count == r->cap) {
        const uint32_t cap = r->cap ? 2 * r->cap : 256;
        int32_t *larger = realloc(r->number, cap * sizeof *larger);
        if (!larger) return no_memory(err, r->text.path);
        r->number = larger;
        r->cap = cap;
    }
    const int rc = take_integer(r, &r->number[r->count], err);
    if (!rc) r->count++;
    return rc;
}

static int take_line_end(row *r, int byte, mr_error *err)
{
    if (byte < 0) return MR_OK;
    r->text.at++;
    r->text.line++;
    if (byte == '\n') return MR_OK;
    const int rc = peek(r, &byte, err);
    if (!rc && byte == '\n') r->text.at++;
    return rc;
}

/* The next line that is not empty. MR_EEND: after the last. */
static int next_row(row *r, mr_error *err)
{
    int byte, rc;
    for (;;) {
        rc = skip_spaces(r, &byte, err);
        if (rc) return rc;
        if (byte < 0) return MR_EEND;
        if (!is_end(byte)) break;
        rc = take_line_end(r, byte, err);
        if (rc) return rc;
    }
    r->count = 0;
    r->line = r->text.line;
    for (;;) {
        rc = add_number(r, err);
        if (!rc) rc = skip_spaces(r, &byte, err);
        if (rc) return rc;
        if (is_end(byte)) return take_line_end(r, byte, err);
        if (byte != ',' && byte != ';') continue; /* spaces alone separate too */
        r->text.at++;
        rc = skip_spaces(r, &byte, err);
        if (rc) return rc;
    }
}

/* ---- all lines ---- */
static bool make_room(sequences *q)
{
    if (q->count < q->cap) return true;
    const uint64_t cap = q->cap ? 2 * q->cap : 64;
    size_t bytes;
    if (!mri_mul_size((size_t)cap, sizeof *q->end, &bytes)) return false;
    void *p = realloc(q->end, bytes);
    if (p) q->end = p;
    void *l = p ? realloc(q->label, bytes / 2) : NULL;
    if (l) q->label = l;
    if (l) q->cap = cap;
    return l != NULL;
}

/* Take the class out of the numbers. */
static int take_label(const sequences *q, row *r, int32_t *label, mr_error *err)
{
    *label = -1;
    if (q->label_at == LABEL_NONE) return MR_OK;
    const uint32_t at = q->label_at == LABEL_LAST ? r->count - 1 : (uint32_t)q->label_at - 1;
    if (at >= r->count)
        return mri_text_error_at(&r->text, err, MR_EFORMAT, r->line,
                                 "expected the class as number %u, found %u numbers", at + 1, r->count);
    if (r->count < 2)
        return mri_text_error_at(&r->text, err, MR_EFORMAT, r->line,
                                 "expected a sequence and its class, found one number");
    *label = r->number[at];
    if (*label < 0)
        return mri_text_error_at(&r->text, err, MR_EFORMAT, r->line, "class %d (number %u) is negative",
                                 *label, at + 1);
    memmove(r->number + at, r->number + at + 1, (r->count - at - 1) * sizeof *r->number);
    r->count--;
    return MR_OK;
}

static uint64_t memory_of(const sequences *q)
{
    return sizeof *q + q->cap * (sizeof *q->end + sizeof *q->label) + mri_spill_memory(&q->tokens);
}

static int add_row(sequences *q, row *r, const mr_source_config *cfg, mr_error *err)
{
    int32_t label;
    int rc = take_label(q, r, &label, err);
    if (rc) return rc;
    if (!make_room(q)) return no_memory(err, q->path);
    rc = mri_spill_write(&q->tokens, r->number, r->count * sizeof *r->number, err);
    if (rc) return rc;
    for (uint32_t k = 0; k < r->count; k++) {
        if (r->number[k] > q->largest) q->largest = r->number[k];
        if (r->number[k] < q->least) q->least = r->number[k];
    }
    if (label > q->largest) q->largest = label;
    if (r->count > q->longest) q->longest = r->count;
    if (r->count < q->shortest) q->shortest = r->count;
    q->print = XXH3_64bits_withSeed(r->number, r->count * sizeof *r->number, q->print);
    q->end[q->count] = q->tokens.bytes;
    q->label[q->count++] = label;
    return mri_source_budget(cfg, memory_of(q), q->path, err);
}

static int read_rows(sequences *q, row *r, const mr_source_config *cfg, mr_error *err)
{
    int rc;
    while (!(rc = next_row(r, err)) && !(rc = add_row(q, r, cfg, err))) continue;
    if (rc != MR_EEND) return rc;
    if (q->count > 0) return mri_spill_finish(&q->tokens, err);
    return mri_error_place(err, mr_error_set(err, MR_EFORMAT, "no sequences in the text"), q->path,
                           MR_NOWHERE, MR_NOWHERE);
}

static int read_text(sequences *q, const mr_source_config *cfg, mr_error *err)
{
    row r = {0};
    int rc = mri_text_open(&r.text, q->path, err);
    if (rc) return rc;
    rc = mri_spill_open(&q->tokens, cfg->memory_bytes / 2, err);
    if (!rc) rc = read_rows(q, &r, cfg, err);
    free(r.number);
    mri_text_close(&r.text);
    return rc;
}

/* ---- which text ---- */
static bool looks_like_numbers(const uint8_t *head, size_t bytes)
{
    uint32_t numbers = 0;
    bool digit = false;
    if (bytes >= 3 && memcmp(head, "\xef\xbb\xbf", 3) == 0) head += 3, bytes -= 3;
    for (size_t k = 0; k < bytes; k++) {
        if (!strchr("0123456789+-,; \t\r\n", head[k]) || head[k] == '\0') return false;
        const bool is_digit = head[k] >= '0' && head[k] <= '9';
        numbers += is_digit && !digit;
        digit = is_digit;
    }
    return numbers >= 2;
}

/* *out: it is such a text. Not MR_OK: it cannot be read. */
static int file_looks_like_numbers(int folder, const char *name, bool *out, mr_error *err)
{
    uint8_t head[MRI_PROBE_BYTES], inner[256];
    struct stat st;
    *out = false;
    const int fd = openat(folder, name, O_RDONLY | O_CLOEXEC | O_NONBLOCK);
    if (fd < 0) return mr_error_sys(err, errno, "cannot open");
    const bool is_file = fstat(fd, &st) == 0 && S_ISREG(st.st_mode) && st.st_size > 0;
    const size_t bytes = is_file ? (size_t)mri_min_u64(sizeof head, (uint64_t)st.st_size) : 0;
    const int rc = mri_pread_all(fd, head, bytes, 0, name, err);
    close(fd);
    if (rc || !bytes) return rc;
    if (!mri_is_gzip(head, bytes)) *out = looks_like_numbers(head, bytes);
    else *out = looks_like_numbers(inner, mri_gunzip_head(head, bytes, inner, sizeof inner));
    return MR_OK;
}

/* One text for each part; two for one are refused. */
static int take_text(char *part[MRI_PART_COUNT], const char *folder, int fd, const char *name, mr_error *err)
{
    const mri_part at = mri_part_of_name(name);
    bool ours;
    char where[4096];
    int rc = file_looks_like_numbers(fd, name, &ours, err);
    snprintf(where, sizeof where, "%s/%s", folder, name);
    if (rc) return mri_error_place(err, rc, where, MR_NOWHERE, MR_NOWHERE);
    if (!ours) return MR_OK;
    if (at == MRI_TWO_PARTS)
        rc = mr_error_set(
            err, MR_EFORMAT,
            "its name speaks of two parts (train, validation, test): rename it, or name the text to use");
    else if (part[at])
        rc = mr_error_set(err, MR_EFORMAT, "two texts %s, %.100s and this one: name the one to use",
                          at == MRI_TRAIN ? "to train on" : "of one part", strrchr(part[at], '/') + 1);
    if (rc) return mri_error_place(err, rc, where, MR_NOWHERE, MR_NOWHERE);
    part[at] = strdup(where);
    return part[at] ? MR_OK : no_memory(err, folder);
}

/* The texts of a folder. most: stop after this number of entries, so that a flat folder of a million other
 * files is rejected quickly. */
static int scan_folder(const char *folder, char *part[MRI_PART_COUNT], uint32_t most, mr_error *err)
{
    DIR *d = opendir(folder);
    if (!d)
        return mri_error_place(err, mr_error_sys(err, errno, "cannot open the folder"), folder, MR_NOWHERE,
                               MR_NOWHERE);
    int rc = MR_OK;
    for (uint32_t looked = 0; !rc && looked < most; looked++) {
        errno = 0;
        const struct dirent *e = readdir(d);
        if (!e && errno)
            rc = mri_error_place(err, mr_error_sys(err, errno, "cannot read the folder"), folder, MR_NOWHERE,
                                 MR_NOWHERE);
        if (!e) break;
        if (e->d_name[0] != '.' && mri_part_of_name(e->d_name))
            rc = take_text(part, folder, dirfd(d), e->d_name, err);
    }
    closedir(d);
    return rc;
}

static void free_parts(char *part[MRI_PART_COUNT])
{
    for (int k = 0; k < MRI_PART_COUNT; k++) free(part[k]);
}

static bool sequence_probe(const mri_probe *p)
{
    if (!p->is_folder) return looks_like_numbers(p->inner, p->inner_bytes);
    char *part[MRI_PART_COUNT] = {0};
    mr_error what = MR_ERROR_INIT;
    const int rc = scan_folder(p->path, part, MAX_LISTED, &what);
    bool found = rc == MR_EFORMAT && !mri_probe_failed(p->trouble, rc, &what);
    for (int k = MRI_TRAIN; k < MRI_PART_COUNT; k++) found = found || part[k];
    free_parts(part);
    return found;
}

static int choose_text(mr_source *src, sequences *q, const mr_source_config *cfg, mr_error *err)
{
    struct stat st;
    if (stat(src->path, &st) != 0) return mr_error_sys(err, errno, "cannot look at it");
    if (!S_ISDIR(st.st_mode)) {
        q->path = strdup(src->path);
        return q->path ? MR_OK : no_memory(err, src->path);
    }
    char *part[MRI_PART_COUNT] = {0};
    const int rc = scan_folder(src->path, part, UINT32_MAX, err);
    if (rc) {
        free_parts(part);
        return rc;
    }
    const mri_part test = part[MRI_VALIDATION] ? MRI_VALIDATION : MRI_TEST;
    src->info.has_test = part[test] != NULL;
    src->info.only_test = cfg->split == MR_SPLIT_AUTO && !part[MRI_TRAIN];
    const mri_part want = cfg->split == MR_SPLIT_TEST || src->info.only_test ? test : MRI_TRAIN;
    if (want == MRI_VALIDATION && part[MRI_TEST])
        mri_source_tell(src, "the validation part is taken, the test part is left out");
    const bool there[MRI_PART_COUNT] = {
        [MRI_TRAIN] = part[MRI_TRAIN], [MRI_VALIDATION] = part[MRI_VALIDATION], [MRI_TEST] = part[MRI_TEST]};
    mri_source_set_parts(src, there, want);
    q->path = part[want];
    part[want] = NULL;
    free_parts(part);
    if (q->path) return MR_OK;
    return mri_source_no_part(src, want == MRI_TRAIN ? MRI_TRAIN : MRI_TEST, err);
}

/* ---- the source ---- */
static int choose_label(sequences *q, const char *key, mr_error *err)
{
    q->label_at = LABEL_LAST;
    if (!key || strcmp(key, "last") == 0) return MR_OK;
    if (strcmp(key, "none") == 0) return q->label_at = LABEL_NONE, MR_OK;
    if (strcmp(key, "first") == 0) return q->label_at = 1, MR_OK;
    const bool digits = *key && strspn(key, "0123456789") == strlen(key) && strlen(key) < 8;
    q->label_at = digits ? atoi(key) : 0;
    if (q->label_at >= 1 && q->label_at <= MOST_NUMBERS) return MR_OK;
    return mr_error_set(
        err, MR_EINVAL,
        "the class of a sequence: expected last, first, none or a number from 1 to %d, found %.60s",
        MOST_NUMBERS, key);
}

static void shrink(sequences *q)
{
    void *p = realloc(q->end, q->count * sizeof *q->end);
    if (p) q->end = p;
    void *l = realloc(q->label, q->count * sizeof *q->label);
    if (l) q->label = l;
    if (p && l) q->cap = q->count;
}

static void fill_info(mr_source *src, sequences *q)
{
    mr_source_info *info = &src->info;
    info->format = "sequence";
    info->count = q->count;
    info->file_count = 1;
    info->class_count = q->label_at != LABEL_NONE && q->largest < INT32_MAX ? (uint32_t)q->largest + 1 : 0;
    info->max_extent_bytes = (uint64_t)q->longest * sizeof(int32_t);
    info->total_bytes = q->tokens.bytes;
    info->memory_bytes = memory_of(q);
    info->fingerprint = XXH3_64bits_withSeed(q->label, q->count * sizeof *q->label, q->print);
    src->fields[0] = mri_field("tokens", MR_TYPE_TENSOR);
    src->fields[0].dtype = MR_I32;
    if (q->longest == q->shortest) src->fields[0].ndim = 1, src->fields[0].dim[0] = q->longest;
    src->fields[1] = mri_field("label", MR_TYPE_INT);
    info->fields = src->fields;
    info->field_count = q->label_at == LABEL_NONE ? 1 : 2;
    info->label_field = q->label_at == LABEL_NONE ? -1 : 1;
    uint32_t side = 1;
    while ((uint64_t)side * side < q->longest) side++;
    if (q->longest != q->shortest) {
        info->length_field = 0;
        info->length_most = q->longest;
        snprintf(q->report_text, sizeof q->report_text, "sequences of %u to %u numbers", q->shortest,
                 q->longest);
        info->told = q->report_text;
    } else if (side >= LEAST_SIDE && side * side == q->longest && q->least >= 0 && q->largest <= 255) {
        snprintf(q->report_text, sizeof q->report_text,
                 "taken for sequences of %u numbers; if each line is a class and a gray picture of %u x %u "
                 "pixels, --format pixels says so",
                 q->longest, side, side);
        info->told = q->report_text;
    }
}

static int sequence_open(mr_source *src, const mr_source_config *cfg, mr_error *err)
{
    sequences *q = calloc(1, sizeof *q);
    if (!q) return no_memory(err, src->path);
    q->tokens.fd = -1;
    q->shortest = UINT32_MAX;
    src->state = q;
    int rc = choose_label(q, cfg->label_key, err);
    if (!rc) rc = choose_text(src, q, cfg, err);
    if (!rc) rc = read_text(q, cfg, err);
    if (rc) return rc;
    shrink(q);
    fill_info(src, q);
    return MR_OK;
}

static void sequence_close(mr_source *src)
{
    sequences *q = src->state;
    if (!q) return;
    mri_spill_close(&q->tokens);
    free(q->path);
    free(q->end);
    free(q->label);
    free(q);
}

static int sequence_extent(const mr_source *src, uint64_t sample, mr_extent *out, mr_error *err)
{
    (void)err;
    const sequences *q = src->state;
    const uint64_t begin = sample ? q->end[sample - 1] : 0;
    *out = (mr_extent){0, begin, q->end[sample] - begin};
    return MR_OK;
}

static int sequence_label(const mr_source *src, uint64_t sample, int64_t *out)
{
    const sequences *q = src->state;
    *out = q->label[sample];
    return q->label_at == LABEL_NONE ? MR_EUNSUPPORTED : MR_OK;
}

static int sequence_length(const mr_source *src, uint64_t sample, uint32_t *out)
{
    mr_extent e;
    sequence_extent(src, sample, &e, NULL);
    *out = (uint32_t)(e.bytes / sizeof(int32_t));
    return MR_OK;
}

static int sequence_file_at(const mr_source *src, uint32_t file, mr_source_file *out)
{
    (void)file;
    const sequences *q = src->state;
    *out =
        (mr_source_file){.path = q->path, .fd = q->tokens.fd, .bytes = q->tokens.bytes, .direct_ok = false};
    return MR_OK;
}

static void sequence_sample_path(const mr_source *src, uint64_t sample, char *buf, size_t buf_bytes)
{
    (void)sample;
    snprintf(buf, buf_bytes, "%s", ((const sequences *)src->state)->path);
}

static int sequence_parse(const mr_source *src, uint64_t sample, const void *data, size_t bytes,
                          mr_sample *out, mr_error *err)
{
    const sequences *q = src->state;
    mr_extent e;
    sequence_extent(src, sample, &e, err);
    if (bytes != e.bytes) {
        mr_error_set(err, MR_EFORMAT, "expected %llu bytes of numbers, found %zu",
                     (unsigned long long)e.bytes, bytes);
        return mri_error_place(err, MR_EFORMAT, q->path, MR_NOWHERE, sample);
    }
    out->value_count = src->info.field_count;
    out->value[0] = (mr_value){.type = MR_TYPE_TENSOR,
                               .dtype = MR_I32,
                               .ndim = 1,
                               .dim = {bytes / sizeof(int32_t)},
                               .data = data,
                               .bytes = bytes};
    out->value[1] = (mr_value){.type = MR_TYPE_INT, .i = q->label[sample]};
    return MR_OK;
}

const mri_source_ops mri_source_sequence = {
    .name = "sequence",
    .help = "a text with a sequence of integers in each line, the last one is the class; plain or gzip; or "
            "a folder with train... and val...",
    .probe = sequence_probe,
    .open = sequence_open,
    .close = sequence_close,
    .extent = sequence_extent,
    .label = sequence_label,
    .length = sequence_length,
    .file_at = sequence_file_at,
    .sample_path = sequence_sample_path,
    .parse = sequence_parse,
};
