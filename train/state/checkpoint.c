/* train/state/checkpoint.c: the checkpoint container: header, directory, tensors, each with its checksum
 * (CHECKPOINT.md).
 *
 * Writing goes to a part file: tensors first, then directory and header, which need their checksums; sync;
 * rename. Reading trusts nothing: lengths and offsets follow from the tensor list and are compared, never
 * used as found. */
#include <errno.h>
#include <fcntl.h>
#include <math.h>
#include <stdio.h>
#include <sys/stat.h>
#include <unistd.h>

#include "formats/storage/output.h"
#include "train/state/checkpoint.h"
#include "train/state/checkpoint_fields.h"

enum {
    HEADER_BYTES = MRI_CHECKPOINT_HEADER_BYTES,
    ENTRY_BYTES = 128,
    TENSOR_ALIGN = 64,
    CRC_AT = MRI_CHECKPOINT_CRC_AT,
    VERSION = 1
};

static const uint8_t magic[8] = {0x89, 'M', 'R', 'C', 'K', '\r', '\n', 0x1a};

static uint64_t data_offset_of(uint32_t tensor_count)
{
    return mri_align_up(HEADER_BYTES + (uint64_t)ENTRY_BYTES * tensor_count, TENSOR_ALIGN);
}

/* ------------------------------------------------------------------------------ writing */

typedef struct behind { /* the data after the tensors */
    mri_names_place names;
    mri_wants_place wants;
    mri_net_place net;
} behind;

static void put_header(uint8_t *h, const mr_checkpoint_info *info, uint32_t count, uint32_t directory_crc,
                       const behind *b)
{
    mri_checkpoint_header head = {.info = *info,
                                  .version = VERSION,
                                  .header_bytes = HEADER_BYTES,
                                  .file_bytes = mri_checkpoint_net_end(&b->net),
                                  .tensor_count = count,
                                  .directory_crc = directory_crc,
                                  .directory_offset = HEADER_BYTES,
                                  .data_offset = data_offset_of(count),
                                  .names_bytes = b->names.bytes,
                                  .names_crc = b->names.crc,
                                  .wants_crc = b->wants.crc,
                                  .net_crc = b->net.crc};
    mr_schedule *s = &head.info.schedule; /* unused milestones are zero: same state, same bytes */
    for (uint32_t i = s->milestone_count; i < MRI_ARRAY_COUNT(s->milestones); i++) s->milestones[i] = 0;
    head.info.net_bytes = b->net.bytes;
    memset(h, 0, HEADER_BYTES);
    memcpy(h, magic, sizeof magic);
    mri_checkpoint_fields_put(&head, h);
    mri_put_le32(h + CRC_AT, mr_crc32c(0, h, CRC_AT));
}

static void put_entry(uint8_t *e, const mri_tensor_desc *t, uint64_t offset, uint32_t crc)
{
    memset(e, 0, ENTRY_BYTES);
    memcpy(e, t->name, strnlen(t->name, sizeof t->name - 1));
    mri_put_le32(e + 64, (uint32_t)t->role);
    mri_put_le32(e + 68, t->ndim);
    for (uint32_t i = 0; i < t->ndim; i++) mri_put_le64(e + 72 + 8 * i, t->dim[i]);
    mri_put_le64(e + 104, offset);
    mri_put_le64(e + 112, t->count);
    mri_put_le32(e + 120, crc);
}

typedef struct writing {
    int fd;
    const char *part; /* name of the part file */
    uint8_t *head;    /* header and directory, up to data_offset */
    float *buffer;
    size_t buffer_bytes; /* the largest tensor, rounded up to TENSOR_ALIGN */
} writing;

static int write_tensors(writing *w, const mri_tensor_desc *tensors, uint32_t count,
                         mri_tensor_source *source, void *context, uint64_t *end, mr_error *err)
{
    uint64_t at = data_offset_of(count);
    for (uint32_t i = 0; i < count; i++) {
        const size_t bytes = (size_t)tensors[i].count * sizeof(float),
                     padded = (size_t)mri_align_up(bytes, TENSOR_ALIGN);
        int rc = source(context, i, w->buffer, err);
        if (rc) return rc;
        memset((uint8_t *)w->buffer + bytes, 0, padded - bytes);
        rc = mri_pwrite_all(w->fd, w->buffer, padded, at, w->part, err);
        if (rc) return rc;
        put_entry(w->head + HEADER_BYTES + (size_t)ENTRY_BYTES * i, &tensors[i], at,
                  mr_crc32c(0, w->buffer, bytes));
        at += padded;
    }
    *end = at;
    return MR_OK;
}

static int write_behind(const writing *w, const mr_checkpoint_info *info, const mr_net *net, uint64_t end,
                        behind *b, mr_error *err)
{
    int rc = mri_checkpoint_names_write(&b->names, w->fd, w->part, info, end, err);
    if (rc == MR_OK) end = mri_checkpoint_names_end(&b->names);
    if (rc == MR_OK) rc = mri_checkpoint_wants_write(&b->wants, w->fd, w->part, info, end, err);
    if (rc == MR_OK) end = mri_checkpoint_wants_end(&b->wants);
    return rc ? rc : mri_checkpoint_net_write(&b->net, w->fd, w->part, net, end, err);
}

static int write_all(writing *w, const mr_checkpoint_info *info, const mr_net *net,
                     const mri_tensor_desc *tensors, uint32_t count, mri_tensor_source *source, void *context,
                     mr_error *err)
{
    uint64_t end;
    behind b;
    int rc = write_tensors(w, tensors, count, source, context, &end, err);
    if (rc == MR_OK) rc = write_behind(w, info, net, end, &b, err);
    if (rc) return rc;
    const uint32_t crc = mr_crc32c(0, w->head + HEADER_BYTES, (size_t)ENTRY_BYTES * count);
    put_header(w->head, info, count, crc, &b);
    return mri_pwrite_all(w->fd, w->head, (size_t)data_offset_of(count), 0, w->part, err);
}

static size_t largest_bytes(const mri_tensor_desc *tensors, uint32_t count)
{
    uint64_t most = 1;
    for (uint32_t i = 0; i < count; i++) most = mri_max_u64(most, tensors[i].count);
    return (size_t)mri_align_up(most * sizeof(float), TENSOR_ALIGN);
}

int mri_checkpoint_write(const char *path, const mr_checkpoint_info *info, const mr_net *net,
                         const mri_tensor_desc *tensors, uint32_t count, mri_tensor_source *source,
                         void *context, mr_error *err)
{
    const mri_output_rules rules = {.force = true, .take_part = true}; /* the folder is our own */
    if (count == 0 || count > MRI_CHECKPOINT_MAX_TENSORS)
        return mr_error_set(err, MR_EINVAL, "a checkpoint holds 1 to %u tensors, not %u",
                            MRI_CHECKPOINT_MAX_TENSORS, count);
    mri_output *out = NULL;
    writing w = {.fd = -1, .buffer_bytes = largest_bytes(tensors, count)};
    w.head = calloc(1, (size_t)data_offset_of(count));
    w.buffer = mri_alloc_aligned(TENSOR_ALIGN, w.buffer_bytes);
    int rc = w.head && w.buffer
                 ? mri_output_open(&out, path, &rules, err)
                 : mr_error_set(err, MR_ENOMEM, "no memory to write a checkpoint: %zu bytes", w.buffer_bytes);
    if (rc == MR_OK) {
        w.fd = mri_output_fd(out);
        w.part = mri_output_part(out);
        rc = write_all(&w, info, net, tensors, count, source, context, err);
    }
    if (rc == MR_OK) rc = mri_output_commit(out, NULL, NULL, err);
    mri_output_close(out, false); /* nothing to resume from: it is written whole or not at all */
    free(w.head);
    free(w.buffer);
    return rc;
}

/* ------------------------------------------------------------------------------ reading */

static int damaged(mr_error *err, int code, const mri_checkpoint *ck, uint64_t offset, const char *what)
{
    mr_error_set(err, code, "damaged checkpoint: %s", what);
    mr_error_at(err, ck->path, offset, MR_NOWHERE);
    return code;
}

static bool all_zero(const uint8_t *p, size_t bytes)
{
    for (size_t i = 0; i < bytes; i++)
        if (p[i]) return false;
    return true;
}

static bool is_text(const uint8_t *p, size_t bytes)
{
    const uint8_t *end = memchr(p, 0, bytes);
    return end && all_zero(end, bytes - (size_t)(end - p));
}

/* Is it a checkpoint of this version, unchanged, and as long as it was written? */
static int check_frame(const mri_checkpoint *ck, const uint8_t *h, const mri_checkpoint_header *head,
                       mr_error *err)
{
    if (memcmp(h, magic, sizeof magic) != 0) {
        mr_error_set(err, MR_EFORMAT,
                     "not a checkpoint: expected a file that starts with 89 4D 52 43 4B 0D 0A 1A");
        mr_error_at(err, ck->path, 0, MR_NOWHERE);
        return MR_EFORMAT;
    }
    const uint32_t found = mr_crc32c(0, h, CRC_AT), expected = mri_le32(h + CRC_AT);
    if (head->version != VERSION && found == expected) {
        mr_error_set(err, MR_EUNSUPPORTED, "checkpoint version %u: this build reads version %u",
                     head->version, VERSION);
        mr_error_at(err, ck->path, mri_checkpoint_field_of("version")->row.kept_at, MR_NOWHERE);
        return MR_EUNSUPPORTED;
    }
    if (found != expected) return damaged(err, MR_ECHECKSUM, ck, 0, "the header does not match its checksum");
    if (head->file_bytes != ck->file_bytes) {
        mr_error_set(err, MR_EFORMAT, "damaged checkpoint: expected %llu bytes, found %llu",
                     (unsigned long long)head->file_bytes, (unsigned long long)ck->file_bytes);
        mr_error_at(err, ck->path, mri_min_u64(head->file_bytes, ck->file_bytes), MR_NOWHERE);
        return MR_EFORMAT;
    }
    return MR_OK;
}

/* A field that contradicts others. */
typedef struct agreement {
    const char *field;
    bool holds;
    const char *expected;
} agreement;

static int check_agreements(const mri_checkpoint *ck, const mri_checkpoint_header *h, const agreement *rules,
                            size_t count, mr_error *err)
{
    char why[256];
    uint64_t offset;
    for (size_t k = 0; k < count; k++) {
        if (rules[k].holds) continue;
        mri_checkpoint_field_wrong(rules[k].field, h, rules[k].expected, why, sizeof why, &offset);
        return damaged(err, MR_EFORMAT, ck, offset, why);
    }
    return MR_OK;
}

static bool is_loss_scale(float scale)
{
    int power;
    return scale == 0 || (scale >= 1 && frexpf(scale, &power) == 0.5f);
}

/* Fields of the run, each in its range. */
static int check_run(const mri_checkpoint *ck, const mri_checkpoint_header *h, mr_error *err)
{
    const mr_checkpoint_info *i = &h->info;
    const bool weighted = i->class_weight_count > 0;
    const agreement rules[] = {
        {"best_val_loss", !isnan(i->best_val_loss), "a number"},
        {"loss_scale", is_loss_scale(i->loss_scale), "0 or a power of two from 1 to 2^24"},
        {"timed_from", i->timed_from <= i->updates, "at most the field updates"},
        {"reached_updates", i->reached_updates <= i->updates, "at most the field updates"},
        {"repeats", i->repeats != 1 && i->repeats <= i->batch, "0, or 2 to the field batch"},
        {"class_weight_count", !weighted || i->class_weight_count == i->classes, "0, or the field classes"},
        {"class_weight_count", !weighted || !i->target_loss, "0 with targets (target_loss)"},
        {"order_seed", i->own_order_seed || !i->order_seed, "0, as field own_order_seed is 0"},
    };
    return check_agreements(ck, h, rules, MRI_ARRAY_COUNT(rules), err);
}

/* Fields of the sections after the header. */
static int check_sections(const mri_checkpoint *ck, const mri_checkpoint_header *h, mr_error *err)
{
    const uint64_t data_offset = data_offset_of(h->tensor_count);
    const agreement rules[] = {
        {"data_offset", h->data_offset == data_offset, "the end of a directory of tensor_count entries"},
        {"data_offset", data_offset <= ck->file_bytes, "at most the field file_bytes"},
        {"names_crc", h->names_bytes || !h->names_crc, "0, as field names_bytes is 0"},
        {"wants_crc", mri_checkpoint_wants_bytes(&h->info) || !h->wants_crc,
         "0 without targets and weights of classes"},
        {"net_bytes", mri_checkpoint_net_fits(&(mri_net_place){.bytes = h->info.net_bytes}),
         "0, or the bytes of 1 to 4096 layers"},
        {"net_crc", h->info.net_bytes || !h->net_crc, "0, as field net_bytes is 0"},
    };
    return check_agreements(ck, h, rules, MRI_ARRAY_COUNT(rules), err);
}

static int read_header(mri_checkpoint *ck, const uint8_t *bytes, mri_checkpoint_header *h, mr_error *err)
{
    char why[512];
    uint64_t offset = 0;
    int rc = check_frame(ck, bytes, h, err);
    if (rc == MR_OK && !mri_checkpoint_fields_hold(bytes, why, sizeof why, &offset))
        rc = damaged(err, MR_EFORMAT, ck, offset, why);
    if (rc == MR_OK) rc = check_run(ck, h, err);
    if (rc == MR_OK) rc = check_sections(ck, h, err);
    if (rc != MR_OK) return rc;
    ck->info = h->info;
    ck->tensor_count = h->tensor_count;
    ck->data_offset = h->data_offset;
    ck->names = (mri_names_place){.bytes = h->names_bytes, .crc = h->names_crc};
    ck->wants = (mri_wants_place){.bytes = mri_checkpoint_wants_bytes(&h->info), .crc = h->wants_crc};
    ck->net = (mri_net_place){.bytes = h->info.net_bytes, .crc = h->net_crc};
    return MR_OK;
}

static int read_entry(mri_checkpoint *ck, uint32_t i, const uint8_t *e, uint64_t *at, mr_error *err)
{
    mri_tensor_desc *t = &ck->tensors[i];
    const uint64_t entry_at = HEADER_BYTES + (uint64_t)ENTRY_BYTES * i;
    t->ndim = mri_le32(e + 68);
    if (!is_text(e, 64) || mri_le32(e + 64) >= MRI_ROLE_COUNT || t->ndim < 1 || t->ndim > 4 ||
        !all_zero(e + 72 + 8 * t->ndim, 8 * (4 - t->ndim)) || !all_zero(e + 124, 4))
        return damaged(err, MR_EFORMAT, ck, entry_at, "a directory entry makes no sense");
    memcpy(t->name, e, sizeof t->name);
    t->role = (mri_role)mri_le32(e + 64);
    size_t count = 1, bytes = 0;
    for (uint32_t d = 0; d < t->ndim; d++) {
        t->dim[d] = mri_le64(e + 72 + 8 * d);
        if (t->dim[d] == 0 || !mri_mul_size(count, t->dim[d], &count)) count = SIZE_MAX;
    }
    t->count = count;
    /* the tensor must end inside the file before anybody makes room for it */
    if (!mri_mul_size(count, sizeof(float), &bytes) || bytes > ck->file_bytes - *at ||
        mri_le64(e + 112) != count || mri_le64(e + 104) != *at)
        return damaged(err, MR_EFORMAT, ck, entry_at, "a tensor's size or place is wrong");
    ck->offset[i] = *at;
    ck->crc[i] = mri_le32(e + 120);
    *at = mri_align_up(*at + bytes, TENSOR_ALIGN);
    if (*at > ck->file_bytes) return damaged(err, MR_EFORMAT, ck, entry_at, "a tensor lies after the end");
    return MR_OK;
}

static int read_directory(mri_checkpoint *ck, uint32_t expected_crc, mr_error *err)
{
    const size_t bytes = (size_t)(ck->data_offset - HEADER_BYTES),
                 used = (size_t)ENTRY_BYTES * ck->tensor_count;
    uint8_t *directory = malloc(bytes);
    ck->tensors = calloc(ck->tensor_count, sizeof *ck->tensors);
    ck->offset = calloc(ck->tensor_count, sizeof *ck->offset);
    ck->crc = calloc(ck->tensor_count, sizeof *ck->crc);
    int rc = MR_OK;
    if (!directory || !ck->tensors || !ck->offset || !ck->crc)
        rc = mr_error_set(err, MR_ENOMEM, "no memory for a directory of %u tensors", ck->tensor_count);
    if (rc == MR_OK) rc = mri_pread_all(ck->fd, directory, bytes, HEADER_BYTES, ck->path, err);
    if (rc == MR_OK &&
        (mr_crc32c(0, directory, used) != expected_crc || !all_zero(directory + used, bytes - used)))
        rc = damaged(err, MR_ECHECKSUM, ck, HEADER_BYTES, "the directory does not match its checksum");
    uint64_t at = ck->data_offset;
    for (uint32_t i = 0; rc == MR_OK && i < ck->tensor_count; i++)
        rc = read_entry(ck, i, directory + (size_t)ENTRY_BYTES * i, &at, err);
    ck->names.offset = at;
    ck->wants.offset = mri_checkpoint_names_end(&ck->names);
    ck->net.offset = mri_checkpoint_wants_end(&ck->wants);
    if (rc == MR_OK &&
        !(mri_checkpoint_names_fit(&ck->names) && mri_checkpoint_net_end(&ck->net) == ck->file_bytes))
        rc = damaged(
            err, MR_EFORMAT, ck, ck->names.offset,
            "the data after the last tensor are not as long as the names of classes and the other sections");
    free(directory);
    return rc;
}

static int open_file(mri_checkpoint *ck, mr_error *err)
{
    struct stat st;
    ck->fd = open(ck->path, O_RDONLY | O_CLOEXEC | O_NONBLOCK); /* of a pipe nobody writes to, too */
    int rc = MR_OK;
    if (ck->fd < 0 || fstat(ck->fd, &st) != 0) {
        rc = mr_error_sys(err, errno, "cannot open the checkpoint");
    } else if (!S_ISREG(st.st_mode)) {
        rc = mr_error_set(err, MR_EFORMAT, "not a checkpoint: expected a regular file");
    } else if (st.st_size < HEADER_BYTES) {
        rc = mr_error_set(err, MR_EFORMAT, "not a checkpoint: expected at least %d bytes, found %lld",
                          HEADER_BYTES, (long long)st.st_size);
    } else {
        ck->file_bytes = (uint64_t)st.st_size;
    }
    if (rc) mr_error_at(err, ck->path, MR_NOWHERE, MR_NOWHERE);
    return rc;
}

int mri_checkpoint_open(mri_checkpoint **out, const char *path, mr_error *err)
{
    *out = NULL;
    mri_checkpoint *ck = calloc(1, sizeof *ck);
    if (!ck) return mr_error_set(err, MR_ENOMEM, "no memory to open a checkpoint");
    ck->fd = -1;
    ck->path = strdup(path);
    uint8_t bytes[HEADER_BYTES];
    mri_checkpoint_header header = {0};
    int rc = ck->path ? open_file(ck, err) : mr_error_set(err, MR_ENOMEM, "no memory to open a checkpoint");
    if (rc == MR_OK) rc = mri_pread_all(ck->fd, bytes, sizeof bytes, 0, path, err);
    if (rc == MR_OK) mri_checkpoint_fields_take(&header, bytes);
    if (rc == MR_OK) rc = read_header(ck, bytes, &header, err);
    if (rc == MR_OK) rc = read_directory(ck, header.directory_crc, err);
    if (rc == MR_OK) rc = mri_checkpoint_wants_read(ck, err);
    if (rc) {
        mri_checkpoint_close(ck);
        return rc;
    }
    *out = ck;
    return MR_OK;
}

void mri_checkpoint_close(mri_checkpoint *ck)
{
    if (!ck) return;
    if (ck->fd >= 0) close(ck->fd);
    free(ck->path);
    free(ck->tensors);
    free(ck->offset);
    free(ck->crc);
    free(ck->class_weights);
    free(ck);
}

static int tensor_damaged(const mri_checkpoint *ck, uint32_t at, mr_error *err)
{
    mr_error_set(err, MR_ECHECKSUM, "damaged checkpoint: tensor %s does not match its checksum",
                 ck->tensors[at].name);
    mr_error_at(err, ck->path, ck->offset[at], MR_NOWHERE);
    return MR_ECHECKSUM;
}

int mri_checkpoint_read(const mri_checkpoint *ck, uint32_t at, float *out, mr_error *err)
{
    const size_t bytes = (size_t)ck->tensors[at].count * sizeof(float);
    const int rc = mri_pread_all(ck->fd, out, bytes, ck->offset[at], ck->path, err);
    if (rc) return rc;
    return mr_crc32c(0, out, bytes) == ck->crc[at] ? MR_OK : tensor_damaged(ck, at, err);
}

enum { CHUNK_BYTES = 1 << 18 };

/* One tensor and the zeros after it, in pieces of CHUNK_BYTES. */
static int verify_tensor(const mri_checkpoint *ck, uint32_t at, uint8_t *chunk, mr_error *err)
{
    const uint64_t bytes = ck->tensors[at].count * sizeof(float), padded = mri_align_up(bytes, TENSOR_ALIGN);
    uint32_t crc = 0;
    for (uint64_t done = 0; done < bytes;) {
        const size_t n = (size_t)mri_min_u64(CHUNK_BYTES, bytes - done);
        const int rc = mri_pread_all(ck->fd, chunk, n, ck->offset[at] + done, ck->path, err);
        if (rc) return rc;
        crc = mr_crc32c(crc, chunk, n);
        done += n;
    }
    if (crc != ck->crc[at]) return tensor_damaged(ck, at, err);
    const int rc =
        mri_pread_all(ck->fd, chunk, (size_t)(padded - bytes), ck->offset[at] + bytes, ck->path, err);
    if (rc) return rc;
    if (all_zero(chunk, (size_t)(padded - bytes))) return MR_OK;
    return damaged(err, MR_EFORMAT, ck, ck->offset[at] + bytes, "not zero between tensors");
}

int mri_checkpoint_verify(const mri_checkpoint *ck, mr_error *err)
{
    uint8_t *chunk = malloc(CHUNK_BYTES);
    if (!chunk) return mr_error_set(err, MR_ENOMEM, "no memory to check a checkpoint");
    int rc = MR_OK;
    for (uint32_t i = 0; rc == MR_OK && i < ck->tensor_count; i++) rc = verify_tensor(ck, i, chunk, err);
    free(chunk);
    if (rc == MR_OK) rc = mri_checkpoint_names_check(ck, err);
    return rc ? rc : mri_checkpoint_net_check(ck, err);
}

int mr_checkpoint_class_names(const char *path, const char ***names, uint32_t *count, mr_error *err)
{
    mri_checkpoint *ck;
    MRI_GIVEN(err, names);
    *names = NULL;
    MRI_GIVEN(err, count);
    *count = 0;
    MRI_GIVEN(err, path);
    int rc = mri_checkpoint_open(&ck, path, err);
    if (rc) return rc;
    rc = mri_checkpoint_names_read(ck, names, count, err);
    mri_checkpoint_close(ck);
    return rc;
}
