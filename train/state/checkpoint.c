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

enum {
    HEADER_BYTES = 1024,
    ENTRY_BYTES = 128,
    TENSOR_ALIGN = 64,
    NAMES_AT = 728,
    GAP_AT = 853,
    FREEZE_AT = 920,
    WANTS_CRC_AT = 992,
    NET_AT = 1000,
    ORDER_SEED_AT = 1008,
    END_AT = 1017,
    MOST_PART_THREADS = 4096,
    CRC_AT = HEADER_BYTES - 4,
    VERSION = 1
};

static const uint8_t magic[8] = {0x89, 'M', 'R', 'C', 'K', '\r', '\n', 0x1a};

/* Where each field of the info lies in the header. */
typedef struct placed_field {
    uint16_t at, bytes, member;
} placed_field;
#define FIELD(at, member)                                                                                    \
    {                                                                                                        \
        at, sizeof(((mr_checkpoint_info *)0)->member), offsetof(mr_checkpoint_info, member)                  \
    }
static const placed_field fields[] = {
    FIELD(48, h),
    FIELD(52, w),
    FIELD(56, c),
    FIELD(60, classes),
    FIELD(64, param_count),
    FIELD(72, seed),
    FIELD(80, epoch),
    FIELD(88, step),
    FIELD(96, updates),
    FIELD(104, fingerprint),
    FIELD(112, best_val_loss),
    FIELD(120, epochs_without_better),
    FIELD(124, batch),
    FIELD(128, model),
    FIELD(192, augment),
    FIELD(448, update.kind),
    FIELD(452, update.lr),
    FIELD(456, update.momentum),
    FIELD(460, update.rho),
    FIELD(464, update.beta1),
    FIELD(468, update.beta2),
    FIELD(472, update.epsilon),
    FIELD(476, update.weight_decay),
    FIELD(480, update.nesterov),
    FIELD(488, update.step),
    FIELD(496, schedule.kind),
    FIELD(500, schedule.lr),
    FIELD(504, schedule.factor),
    FIELD(508, schedule.floor_lr),
    FIELD(512, schedule.decay),
    FIELD(516, schedule.milestone_count),
    FIELD(520, schedule.warmup_epochs),
    FIELD(528, schedule.milestones),
    FIELD(656, order),
    FIELD(660, block),
    FIELD(664, tail),
    FIELD(668, pixels),
    FIELD(672, loss_scale),
    FIELD(676, loss_scale_good),
    FIELD(680, updates_skipped),
    FIELD(688, format),
    FIELD(720, label_offset),
    FIELD(740, length_window),
    FIELD(744, run),
    FIELD(760, epochs),
    FIELD(768, patience),
    FIELD(772, validation_pending),
    FIELD(773, stopped_early),
    FIELD(774, ignore_exif),
    FIELD(776, best_updates),
    FIELD(784, first_loss),
    FIELD(792, epoch_loss),
    FIELD(800, epoch_accuracy),
    FIELD(808, val_fingerprint),
    FIELD(816, parts),
    FIELD(820, part_threads),
    FIELD(824, convolution),
    FIELD(828, clip_value),
    FIELD(832, clip_norm),
    FIELD(836, decay_on),
    FIELD(840, average),
    FIELD(844, lookahead),
    FIELD(848, label_smoothing),
    FIELD(852, evaluation_pending),
    FIELD(856, stop_at_accuracy),
    FIELD(864, train_seconds),
    FIELD(872, eval_seconds),
    FIELD(880, timed_from),
    FIELD(888, reached_updates),
    FIELD(896, reached_accuracy),
    FIELD(904, reached_seconds),
    FIELD(912, reached_eval_seconds),
    FIELD(FREEZE_AT, freeze),
    FIELD(984, target_loss),
    FIELD(988, class_weight_count),
    FIELD(996, repeats),
    FIELD(ORDER_SEED_AT, order_seed),
    FIELD(ORDER_SEED_AT + 8, own_order_seed),
};
_Static_assert(sizeof(mr_update_kind) == 4 && sizeof(mr_schedule_kind) == 4 && sizeof(mr_order) == 4 &&
                   sizeof(mr_tail) == 4 && sizeof(mr_decay_on) == 4 && sizeof(mr_pixels) == 4 &&
                   sizeof(mr_target_loss) == 4 && sizeof(bool) == 1,
               "as CHECKPOINT.md says");

static uint64_t data_offset_of(uint32_t tensor_count)
{
    return mri_align_up(HEADER_BYTES + (uint64_t)ENTRY_BYTES * tensor_count, TENSOR_ALIGN);
}

/* ------------------------------------------------------------------------------ writing */

typedef struct behind { /* what lies behind the tensors */
    mri_names_place names;
    mri_wants_place wants;
    mri_net_place net;
} behind;

static void put_header(uint8_t *h, const mr_checkpoint_info *info, uint32_t count, uint32_t directory_crc,
                       const behind *b)
{
    mr_checkpoint_info clean = *info; /* texts zero-filled, unused milestones zero: same state, same bytes */
    strncpy(clean.model, info->model, sizeof clean.model);
    strncpy(clean.augment, info->augment, sizeof clean.augment);
    strncpy(clean.format, info->format, sizeof clean.format);
    clean.model[sizeof clean.model - 1] = clean.augment[sizeof clean.augment - 1] =
        clean.format[sizeof clean.format - 1] = '\0';
    for (uint32_t i = info->schedule.milestone_count; i < MRI_ARRAY_COUNT(clean.schedule.milestones); i++)
        clean.schedule.milestones[i] = 0;
    memset(h, 0, HEADER_BYTES);
    memcpy(h, magic, sizeof magic);
    mri_put_le32(h + 8, VERSION);
    mri_put_le32(h + 12, HEADER_BYTES);
    mri_put_le64(h + 16, mri_checkpoint_net_end(&b->net));
    mri_put_le32(h + 24, count);
    mri_put_le32(h + 28, directory_crc);
    mri_put_le64(h + 32, HEADER_BYTES);
    mri_put_le64(h + 40, data_offset_of(count));
    for (size_t i = 0; i < MRI_ARRAY_COUNT(fields); i++)
        memcpy(h + fields[i].at, (const char *)&clean + fields[i].member, fields[i].bytes);
    mri_put_le64(h + NAMES_AT, b->names.bytes);
    mri_put_le32(h + NAMES_AT + 8, b->names.crc);
    mri_put_le32(h + WANTS_CRC_AT, b->wants.crc);
    mri_put_le32(h + NET_AT, b->net.bytes);
    mri_put_le32(h + NET_AT + 4, b->net.crc);
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

static int check_frame(mri_checkpoint *ck, const uint8_t *h, mr_error *err)
{
    if (memcmp(h, magic, sizeof magic) != 0) {
        mr_error_set(err, MR_EFORMAT,
                     "not a checkpoint: expected a file that starts with 89 4D 52 43 4B 0D 0A 1A");
        mr_error_at(err, ck->path, 0, MR_NOWHERE);
        return MR_EFORMAT;
    }
    const uint32_t found = mr_crc32c(0, h, CRC_AT), expected = mri_le32(h + CRC_AT);
    if (mri_le32(h + 8) != VERSION && found == expected) {
        mr_error_set(err, MR_EUNSUPPORTED, "checkpoint version %u: this build reads version %u",
                     mri_le32(h + 8), VERSION);
        mr_error_at(err, ck->path, 8, MR_NOWHERE);
        return MR_EUNSUPPORTED;
    }
    if (found != expected) return damaged(err, MR_ECHECKSUM, ck, 0, "the header does not match its checksum");
    const uint64_t said = mri_le64(h + 16);
    if (said != ck->file_bytes) {
        mr_error_set(err, MR_EFORMAT, "damaged checkpoint: expected %llu bytes, found %llu",
                     (unsigned long long)said, (unsigned long long)ck->file_bytes);
        mr_error_at(err, ck->path, mri_min_u64(said, ck->file_bytes), MR_NOWHERE);
        return MR_EFORMAT;
    }
    ck->tensor_count = mri_le32(h + 24);
    if (ck->tensor_count == 0 || ck->tensor_count > MRI_CHECKPOINT_MAX_TENSORS)
        return damaged(err, MR_EFORMAT, ck, 24, "tensor count out of range");
    ck->data_offset = data_offset_of(ck->tensor_count);
    if (mri_le32(h + 12) != HEADER_BYTES || mri_le64(h + 32) != HEADER_BYTES ||
        mri_le64(h + 40) != ck->data_offset)
        return damaged(err, MR_EFORMAT, ck, 32, "section offsets are wrong");
    if (ck->data_offset > ck->file_bytes)
        return damaged(err, MR_EFORMAT, ck, 24, "the directory lies behind the end");
    return MR_OK;
}

static bool is_limit(float v) { return v >= 0 && isfinite(v); }
static bool is_time(double s) { return s >= 0 && isfinite(s); }
static bool is_part(double v) { return v >= 0 && v <= 1; }

static int read_info(mri_checkpoint *ck, const uint8_t *h, mr_error *err)
{
    if (!is_text(h + 128, 64) || !is_text(h + 192, 256) || !is_text(h + 688, 32) ||
        !is_text(h + FREEZE_AT, 64))
        return damaged(err, MR_EFORMAT, ck, 128, "a text has no end");
    if (mri_le32(h + 448) >= MR_UPDATE_KIND_COUNT || mri_le32(h + 480) > 1)
        return damaged(err, MR_EFORMAT, ck, 448, "unknown optimizer");
    if (mri_le32(h + 496) >= MR_LR_KIND_COUNT ||
        mri_le32(h + 516) > MRI_ARRAY_COUNT(ck->info.schedule.milestones))
        return damaged(err, MR_EFORMAT, ck, 496, "unknown schedule");
    if (mri_le32(h + 656) > MR_ORDER_BALANCED || mri_le32(h + 664) > MR_TAIL_PAD)
        return damaged(err, MR_EFORMAT, ck, 656, "unknown order of samples or tail");
    if (mri_le32(h + 668) > MR_PIXELS_LIBJPEG)
        return damaged(err, MR_EFORMAT, ck, 668, "unknown decoder of JPEGs");
    if (!all_zero(h + 484, 4) || !all_zero(h + GAP_AT, 3) || !all_zero(h + END_AT, CRC_AT - END_AT))
        return damaged(err, MR_EFORMAT, ck, END_AT, "not zero");
    if (h[772] > 1 || h[773] > 1 || h[774] > 1 || h[775] || h[852] > 1 || h[ORDER_SEED_AT + 8] > 1)
        return damaged(err, MR_EFORMAT, ck, 772, "what is told of the run is neither yes nor no");
    for (size_t i = 0; i < MRI_ARRAY_COUNT(fields); i++)
        memcpy((char *)&ck->info + fields[i].member, h + fields[i].at, fields[i].bytes);
    if (ck->info.h == 0 || ck->info.w == 0 || ck->info.c == 0 || ck->info.param_count == 0)
        return damaged(err, MR_EFORMAT, ck, 48, "a size is zero");
    if (ck->info.parts > MR_SUM_MOST_LEAVES || ck->info.part_threads > MOST_PART_THREADS)
        return damaged(err, MR_EFORMAT, ck, 816,
                       "a batch in more parts, or parts of more threads, than there are");
    const float scale = ck->info.loss_scale;
    int power;
    if (scale != 0 && !(scale >= 1 && scale <= 0x1p24f && frexpf(scale, &power) == 0.5f))
        return damaged(err, MR_EFORMAT, ck, 672, "the loss scale is no power of two");
    if (!is_limit(ck->info.clip_value) || !is_limit(ck->info.clip_norm))
        return damaged(err, MR_EFORMAT, ck, 828, "a limit of the gradient is none");
    if (mri_le32(h + 836) > MR_DECAY_ON_WEIGHTS)
        return damaged(err, MR_EFORMAT, ck, 836, "unknown what weight decay is for");
    if (!(ck->info.average >= 0 && ck->info.average < 1))
        return damaged(err, MR_EFORMAT, ck, 840, "the decay of an average is none");
    if (!(ck->info.label_smoothing >= 0 && ck->info.label_smoothing < 1))
        return damaged(err, MR_EFORMAT, ck, 848, "the smoothing of labels is none");
    if (!is_part(ck->info.stop_at_accuracy) || !is_part(ck->info.reached_accuracy))
        return damaged(err, MR_EFORMAT, ck, 856, "an accuracy is none");
    if (!is_time(ck->info.train_seconds) || !is_time(ck->info.eval_seconds) ||
        !is_time(ck->info.reached_seconds) || !is_time(ck->info.reached_eval_seconds))
        return damaged(err, MR_EFORMAT, ck, 864, "a time is none");
    if (ck->info.reached_updates > ck->info.updates || ck->info.timed_from > ck->info.updates)
        return damaged(err, MR_EFORMAT, ck, 880, "an update that was not yet");
    ck->names = (mri_names_place){.bytes = mri_le64(h + NAMES_AT), .crc = mri_le32(h + NAMES_AT + 8)};
    if (ck->names.bytes == 0 && ck->names.crc)
        return damaged(err, MR_EFORMAT, ck, NAMES_AT, "a checksum of no names");
    if (mri_le32(h + 984) >= MR_TARGET_COUNT)
        return damaged(err, MR_EFORMAT, ck, 984, "unknown loss against targets");
    if (ck->info.repeats == 1 || ck->info.repeats > ck->info.batch)
        return damaged(err, MR_EFORMAT, ck, 996, "each sample comes oftener than a batch has places");
    if (ck->info.class_weight_count &&
        (ck->info.class_weight_count != ck->info.classes || ck->info.target_loss))
        return damaged(err, MR_EFORMAT, ck, 988, "there is not one weight for each class");
    ck->wants =
        (mri_wants_place){.bytes = mri_checkpoint_wants_bytes(&ck->info), .crc = mri_le32(h + WANTS_CRC_AT)};
    if (ck->wants.bytes == 0 && ck->wants.crc)
        return damaged(err, MR_EFORMAT, ck, WANTS_CRC_AT, "a checksum of no targets");
    ck->net = (mri_net_place){.bytes = mri_le32(h + NET_AT), .crc = mri_le32(h + NET_AT + 4)};
    ck->info.net_bytes = ck->net.bytes;
    if (!mri_checkpoint_net_fits(&ck->net) || (ck->net.bytes == 0 && ck->net.crc))
        return damaged(err, MR_EFORMAT, ck, NET_AT, "a network of no such length");
    if (!ck->info.own_order_seed && ck->info.order_seed)
        return damaged(err, MR_EFORMAT, ck, ORDER_SEED_AT, "a seed of the order that is not used");
    if (isnan(ck->info.best_val_loss))
        return damaged(err, MR_EFORMAT, ck, 112, "the best loss is not a number");
    if (!(ck->info.first_loss >= 0) || isinf(ck->info.first_loss))
        return damaged(err, MR_EFORMAT, ck, 784, "the first loss is no loss");
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
    if (*at > ck->file_bytes) return damaged(err, MR_EFORMAT, ck, entry_at, "a tensor lies behind the end");
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
        rc = damaged(err, MR_EFORMAT, ck, ck->names.offset,
                     "what is behind the last tensor is not as long as the names of classes and what else "
                     "there is");
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
    uint8_t header[HEADER_BYTES];
    int rc = ck->path ? open_file(ck, err) : mr_error_set(err, MR_ENOMEM, "no memory to open a checkpoint");
    if (rc == MR_OK) rc = mri_pread_all(ck->fd, header, sizeof header, 0, path, err);
    if (rc == MR_OK) rc = check_frame(ck, header, err);
    if (rc == MR_OK) rc = read_info(ck, header, err);
    if (rc == MR_OK) rc = read_directory(ck, mri_le32(header + 28), err);
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

/* One tensor and the zeros behind it, in pieces of CHUNK_BYTES. */
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
