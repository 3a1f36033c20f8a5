/* formats/arrays/tensor_file.c: reading; see tensor_file.h. */
#include "formats/arrays/tensor_file.h"

#include <errno.h>
#include <fcntl.h>
#include <math.h>
#include <stdio.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/util.h"
#include "formats/arrays/npy.h"
#include "formats/arrays/safetensors.h"
#include "formats/arrays/zip.h"

enum { PIECE = 1 << 16 };
#define MOST_UNPACKED ((uint64_t)8 << 30) /* of one deflated member */

typedef enum number { NUMBER_F32, NUMBER_F16, NUMBER_BF16, NUMBER_F64, NUMBER_NONE } number;

typedef struct place {
    uint64_t at; /* of the first number: in the file, or in the unpacked member */
    number number;
    mri_zip_member *member; /* npz */
} place;

struct mri_tensor_file {
    char *path;
    int fd;
    uint64_t bytes;
    bool is_zip;
    mri_zip zip;
    mri_safetensors safe;
    mri_tensor_entry *entry;
    place *place;
    char **name; /* npz: without ".npy" */
    uint32_t count;
};

const char *mri_tensor_file_format(const mri_tensor_file *f) { return f->is_zip ? "npz" : "safetensors"; }
uint32_t mri_tensor_file_count(const mri_tensor_file *f) { return f->count; }
const mri_tensor_entry *mri_tensor_file_at(const mri_tensor_file *f, uint32_t at) { return &f->entry[at]; }

uint32_t mri_tensor_file_find(const mri_tensor_file *f, const char *name)
{
    for (uint32_t i = 0; i < f->count; i++)
        if (strcmp(f->entry[i].name, name) == 0) return i;
    return UINT32_MAX;
}

/* ---- opening ---- */

static int open_file(mri_tensor_file *f, mr_error *err)
{
    struct stat st;
    f->fd = open(f->path, O_RDONLY | O_CLOEXEC | O_NONBLOCK); /* of a pipe nobody writes to, too */
    int rc = MR_OK;
    if (f->fd < 0 || fstat(f->fd, &st) != 0) rc = mr_error_sys(err, errno, "cannot open the file of weights");
    else if (!S_ISREG(st.st_mode)) rc = mr_error_set(err, MR_EFORMAT, "expected a regular file of weights");
    else f->bytes = (uint64_t)st.st_size;
    return rc;
}

static int make_lists(mri_tensor_file *f, uint32_t most, mr_error *err)
{
    f->entry = calloc(most ? most : 1, sizeof *f->entry);
    f->place = calloc(most ? most : 1, sizeof *f->place);
    f->name = calloc(most ? most : 1, sizeof *f->name);
    if (f->entry && f->place && f->name) return MR_OK;
    return mr_error_set(err, MR_ENOMEM, "no memory for a list of %u arrays", most);
}

static number safe_number(const char *dtype)
{
    static const char *const names[] = {"F32", "F16", "BF16", "F64"};
    for (size_t i = 0; i < MRI_ARRAY_COUNT(names); i++)
        if (strcmp(names[i], dtype) == 0) return (number)i;
    return NUMBER_NONE;
}

static int open_safetensors(mri_tensor_file *f, const uint8_t *head, mr_error *err)
{
    const uint64_t length = mri_le64(head), data = MRI_SAFETENSORS_LENGTH_BYTES + length;
    char *text = malloc((size_t)length);
    if (!text)
        return mr_error_set(err, MR_ENOMEM, "no memory for a header of %llu bytes",
                            (unsigned long long)length);
    int rc = mri_pread_all(f->fd, text, (size_t)length, MRI_SAFETENSORS_LENGTH_BYTES, f->path, err);
    if (rc == MR_OK) rc = mri_safetensors_parse(text, (size_t)length, f->bytes - data, &f->safe, err);
    free(text);
    if (rc == MR_OK) rc = make_lists(f, f->safe.count, err);
    for (uint32_t i = 0; rc == MR_OK && i < f->safe.count; i++) {
        const mri_safetensor *t = &f->safe.tensor[i];
        mri_tensor_entry *e = &f->entry[f->count];
        e->name = t->name;
        snprintf(e->type, sizeof e->type, "%s", t->dtype);
        e->ndim = t->ndim;
        memcpy(e->dim, t->dim, sizeof e->dim);
        e->count = t->element_bytes ? (t->end - t->begin) / t->element_bytes : 0;
        f->place[f->count] = (place){.at = data + t->begin, .number = safe_number(t->dtype)};
        if (f->place[f->count].number == NUMBER_NONE)
            e->unread = "expected numbers of type F32, F16, BF16 or F64";
        f->count++;
    }
    return rc;
}

static const char *describe_npy(const mri_npy *a, number *out)
{
    *out = NUMBER_NONE;
    if (a->kind != 'f' || a->element_bytes > 8) return "expected numbers of type <f4, <f2 or <f8";
    if (a->swapped) return "its bytes are big-endian: save it with astype('<f4')";
    if (a->fortran) return "its columns come first: save it by numpy.ascontiguousarray()";
    *out = a->element_bytes == 4 ? NUMBER_F32 : a->element_bytes == 2 ? NUMBER_F16 : NUMBER_F64;
    return NULL;
}

/* Find the file and offset of a member's bytes. A deflated member is unpacked into s; the caller closes s. */
static int reach_member(const mri_tensor_file *f, mri_zip_member *m, mri_spill *s, int *fd, uint64_t *at,
                        mr_error *err)
{
    *s = (mri_spill){.fd = -1};
    *fd = f->fd, *at = m->offset;
    if (m->method == 0) return MR_OK;
    if (m->bytes > MOST_UNPACKED)
        return mr_error_set(
            err, MR_ELIMIT,
            "member %.200s unpacks to %llu bytes: expected at most 8 GiB; save it by numpy.savez()", m->name,
            (unsigned long long)m->bytes);
    int rc = mri_spill_open(s, 0, err);
    if (rc == MR_OK) rc = mri_zip_unpack(&f->zip, m, s, err);
    if (rc == MR_OK) rc = mri_spill_finish(s, err);
    *fd = s->fd, *at = 0;
    return rc;
}

static int take_member(mri_tensor_file *f, mri_zip_member *m, uint8_t *head, mr_error *err)
{
    const size_t n = strlen(m->name), ending = sizeof ".npy" - 1;
    mri_tensor_entry *e = &f->entry[f->count];
    mri_spill s = {.fd = -1};
    mri_npy a;
    int fd;
    uint64_t at;
    for (size_t i = 0; i < n; i++)
        if ((unsigned char)m->name[i] < ' ' || m->name[i] == 127)
            return mr_error_set(err, MR_EFORMAT, "a member's name has control characters");
    if (n <= ending || strcmp(m->name + n - ending, ".npy") != 0)
        return mr_error_set(err, MR_EFORMAT, "member %.200s: expected arrays, NAME.npy", m->name);
    int rc = mri_zip_locate(&f->zip, m, err);
    if (rc == MR_OK) rc = reach_member(f, m, &s, &fd, &at, err);
    const size_t some = (size_t)mri_min_u64(MRI_NPY_HEAD_BYTES, m->bytes);
    if (rc == MR_OK) rc = mri_pread_all(fd, head, some, at, f->path, err);
    if (rc == MR_OK) {
        rc = mri_npy_parse(head, some, m->bytes, &a, err);
        if (rc && err && err->offset != MR_NOWHERE) err->offset += m->method == 0 ? m->offset : 0;
    }
    if (s.fd >= 0) mri_spill_close(&s);
    if (rc) return rc;
    e->name = f->name[f->count] = strndup(m->name, n - ending);
    if (!e->name) return mr_error_set(err, MR_ENOMEM, "no memory for a name");
    memcpy(e->type, a.descr, sizeof e->type);
    e->ndim = a.ndim;
    memcpy(e->dim, a.dim, sizeof e->dim);
    e->count = a.count;
    place *p = &f->place[f->count++];
    *p = (place){.at = a.header_bytes, .member = m};
    e->unread = describe_npy(&a, &p->number);
    return MR_OK;
}

static int open_npz(mri_tensor_file *f, mr_error *err)
{
    f->is_zip = true;
    int rc = mri_zip_open(&f->zip, f->fd, f->bytes, f->path, err);
    uint8_t *head = malloc(MRI_NPY_HEAD_BYTES);
    if (rc == MR_OK && !head) rc = mr_error_set(err, MR_ENOMEM, "no memory for the header of an array");
    if (rc == MR_OK) rc = make_lists(f, f->zip.count, err);
    for (uint32_t i = 0; rc == MR_OK && i < f->zip.count; i++)
        rc = take_member(f, &f->zip.member[i], head, err);
    free(head);
    return rc;
}

static int open_any(mri_tensor_file *f, mr_error *err)
{
    uint8_t head[MRI_SAFETENSORS_LENGTH_BYTES + 1];
    int rc = open_file(f, err);
    if (rc) return rc;
    const size_t some = (size_t)mri_min_u64(sizeof head, f->bytes);
    rc = mri_pread_all(f->fd, head, some, 0, f->path, err);
    if (rc) return rc;
    if (mri_is_zip(head, some)) return open_npz(f, err);
    if (mri_is_safetensors(head, some, f->bytes)) return open_safetensors(f, head, err);
    return mr_error_set(err, MR_EFORMAT,
                        "neither safetensors (a length of 8 bytes within the file, then '{') nor .npz (PK)");
}

int mri_tensor_file_open(mri_tensor_file **out, const char *path, mr_error *err)
{
    *out = NULL;
    mri_tensor_file *f = calloc(1, sizeof *f);
    if (!f) return mr_error_set(err, MR_ENOMEM, "no memory to open a file of weights");
    f->fd = -1;
    f->path = strdup(path);
    int rc = f->path ? open_any(f, err) : mr_error_set(err, MR_ENOMEM, "no memory to open a file of weights");
    if (rc == MR_OK) {
        *out = f;
        return MR_OK;
    }
    if (err && !err->file[0]) mr_error_at(err, path, err->offset, MR_NOWHERE);
    mri_tensor_file_close(f);
    return rc;
}

void mri_tensor_file_close(mri_tensor_file *f)
{
    if (!f) return;
    for (uint32_t i = 0; f->name && i < f->count; i++) free(f->name[i]);
    mri_safetensors_free(&f->safe);
    if (f->is_zip) mri_zip_close(&f->zip);
    if (f->fd >= 0) close(f->fd);
    free(f->name);
    free(f->entry);
    free(f->place);
    free(f->path);
    free(f);
}

bool mri_is_tensor_file(const char *path)
{
    uint8_t head[MRI_SAFETENSORS_LENGTH_BYTES + 1];
    struct stat st;
    const int fd = open(path, O_RDONLY | O_CLOEXEC | O_NONBLOCK);
    if (fd < 0) return false;
    bool is = fstat(fd, &st) == 0 && S_ISREG(st.st_mode) && st.st_size >= (off_t)sizeof head &&
              mri_pread_all(fd, head, sizeof head, 0, path, NULL) == MR_OK;
    is = is && (mri_is_zip(head, sizeof head) || mri_is_safetensors(head, sizeof head, (uint64_t)st.st_size));
    close(fd);
    return is;
}

/* ---- numbers ---- */

static float half_value(uint16_t bits)
{
    const int exponent = bits >> 10 & 31, fraction = bits & 1023;
    const float size = exponent == 0    ? ldexpf((float)fraction, -24)
                       : exponent == 31 ? (fraction ? NAN : INFINITY)
                                        : ldexpf((float)(fraction | 1024), exponent - 25);
    return bits >> 15 ? -size : size;
}

static float value_of(const uint8_t *p, number kind)
{
    uint32_t word;
    uint64_t wide;
    float value;
    double real;
    if (kind == NUMBER_F16) return half_value(mri_le16(p));
    if (kind == NUMBER_F64) {
        wide = mri_le64(p);
        memcpy(&real, &wide, sizeof real);
        return (float)real;
    }
    word = (uint32_t)mri_le16(p) << 16; /* BF16 */
    memcpy(&value, &word, sizeof value);
    return value;
}

static int read_numbers(const mri_tensor_file *f, int fd, uint64_t at, uint64_t count, number kind,
                        float *out, mr_error *err)
{
    static const uint32_t widths[] = {4, 2, 2, 8};
    const uint32_t width = widths[kind];
    if (kind == NUMBER_F32) return mri_pread_all(fd, out, (size_t)count * sizeof *out, at, f->path, err);
    uint8_t *piece = malloc(PIECE);
    if (!piece) return mr_error_set(err, MR_ENOMEM, "no memory to read numbers");
    int rc = MR_OK;
    for (uint64_t done = 0; rc == MR_OK && done < count;) {
        const size_t some = (size_t)mri_min_u64(PIECE / width, count - done);
        rc = mri_pread_all(fd, piece, some * width, at + done * width, f->path, err);
        for (size_t i = 0; rc == MR_OK && i < some; i++) out[done + i] = value_of(piece + i * width, kind);
        done += some;
    }
    free(piece);
    return rc;
}

int mri_tensor_file_read(const mri_tensor_file *f, uint32_t i, float *out, mr_error *err)
{
    const mri_tensor_entry *e = &f->entry[i];
    const place *p = &f->place[i];
    mri_spill s = {.fd = -1};
    int fd = f->fd, rc = MR_OK;
    uint64_t at = 0;
    if (e->unread) {
        mr_error_set(err, MR_EUNSUPPORTED, "%.200s is of type %s: %s", e->name, e->type, e->unread);
        mr_error_at(err, f->path, MR_NOWHERE, MR_NOWHERE);
        return MR_EUNSUPPORTED;
    }
    if (p->member) rc = reach_member(f, p->member, &s, &fd, &at, err);
    if (rc == MR_OK && p->member && p->member->method == 0)
        rc = mri_zip_check_stored(&f->zip, p->member, err); /* unpacking compares a deflated one's CRC */
    if (rc == MR_OK) rc = read_numbers(f, fd, at + p->at, e->count, p->number, out, err);
    if (s.fd >= 0) mri_spill_close(&s);
    return rc;
}
