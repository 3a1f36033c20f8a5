/* train/state/checkpoint_fields.c: see checkpoint_fields.h. */
#include "train/state/checkpoint_fields.h"

#include <stdio.h>
#include <string.h>

#include "base/util.h"
#include "settings/limits.h"

enum { MAGIC_BYTES = 8, FORMAT_BYTES = 16 };

#define FIELD_OF(type, form_, at_, kind_, name_, since_, ...)                                                \
    {                                                                                                        \
        .row = {.member = #name_,                                                                            \
                .kind = MRI_SETTING_##kind_,                                                                 \
                .at = offsetof(type, name_),                                                                 \
                .kept_at = (at_),                                                                            \
                .since = (since_),                                                                           \
                __VA_ARGS__},                                                                                \
        .bytes = sizeof(((type *)0)->name_), .form = MRI_FIELD_##form_                                       \
    }
#define FIELD(...)        FIELD_OF(mri_checkpoint_header, __VA_ARGS__)
#define INFO(...)         FIELD_OF(mr_checkpoint_info, __VA_ARGS__)
#define WHOLE32           .most = UINT32_MAX
#define WHOLE64           .most = MRI_ANY
#define UP_TO(n)          .most = (double)(n)
#define FROM_TO(from, to) .least = (from), .most = (double)(to)
#define FRACTION          .most = 1
#define SECONDS_OF_A_RUN  .most = DBL_MAX

/* Its last 16 bytes, which no format's name has ever used, are other fields'. */
#define FORMAT_NAME                                                                                          \
    {                                                                                                        \
        .row = {.member = "format",                                                                          \
                .kind = MRI_SETTING_TEXT,                                                                    \
                .at = offsetof(mr_checkpoint_info, format),                                                  \
                .kept_at = 688,                                                                              \
                .since = "0.4"},                                                                             \
        .bytes = FORMAT_BYTES, .form = MRI_FIELD_TEXT                                                        \
    }

static const mri_checkpoint_field fields[] = {
    /* ---- the file ---- */
    FIELD(VALUE, 8, U32, version, "0.1", WHOLE32),
    FIELD(VALUE, 12, U32, header_bytes, "0.1",
          FROM_TO(MRI_CHECKPOINT_HEADER_BYTES, MRI_CHECKPOINT_HEADER_BYTES)),
    FIELD(VALUE, 16, U64, file_bytes, "0.1", WHOLE64),
    FIELD(VALUE, 24, U32, tensor_count, "0.1", FROM_TO(1, 65536)),
    FIELD(VALUE, 28, U32, directory_crc, "0.1", WHOLE32),
    FIELD(VALUE, 32, U64, directory_offset, "0.1",
          FROM_TO(MRI_CHECKPOINT_HEADER_BYTES, MRI_CHECKPOINT_HEADER_BYTES)),
    FIELD(VALUE, 40, U64, data_offset, "0.1", WHOLE64),
    FIELD(VALUE, 728, U64, names_bytes, "0.4", UP_TO(64 << 20)),
    FIELD(VALUE, 736, U32, names_crc, "0.4", WHOLE32),
    FIELD(VALUE, 992, U32, wants_crc, "0.5", WHOLE32),
    FIELD(VALUE, 1004, U32, net_crc, "0.5", WHOLE32),

    /* ---- the network ---- */
    INFO(VALUE, 48, U32, h, "0.1", FROM_TO(1, UINT32_MAX)),
    INFO(VALUE, 52, U32, w, "0.1", FROM_TO(1, UINT32_MAX)),
    INFO(VALUE, 56, U32, c, "0.1", FROM_TO(1, UINT32_MAX)),
    INFO(VALUE, 60, U32, classes, "0.1", WHOLE32),
    INFO(VALUE, 64, U64, param_count, "0.1", FROM_TO(1, MRI_ANY)),
    INFO(TEXT, 128, TEXT, model, "0.1", ),
    INFO(VALUE, 984, U32, target_loss, "0.5", UP_TO(MR_TARGET_COUNT - 1)),
    INFO(VALUE, 988, U32, class_weight_count, "0.5", WHOLE32),
    INFO(VALUE, 1000, U32, net_bytes, "0.5", WHOLE32),

    /* ---- the position of the run, and its results so far ---- */
    INFO(VALUE, 80, U64, epoch, "0.1", WHOLE64),
    INFO(VALUE, 88, U64, step, "0.1", WHOLE64),
    INFO(VALUE, 96, U64, updates, "0.1", WHOLE64),
    INFO(ANY, 112, REAL, best_val_loss, "0.1", ),
    INFO(VALUE, 120, U32, epochs_without_better, "0.1", WHOLE32),
    INFO(VALUE, 672, FLOAT, loss_scale, "0.3", UP_TO(1 << 24)),
    INFO(VALUE, 676, U32, loss_scale_good, "0.3", WHOLE32),
    INFO(VALUE, 680, U64, updates_skipped, "0.3", WHOLE64),
    INFO(ANY, 744, TEXT, run, "0.5", ),
    INFO(VALUE, 772, FLAG, validation_pending, "0.5", ),
    INFO(VALUE, 773, FLAG, stopped_early, "0.5", ),
    INFO(VALUE, 776, U64, best_updates, "0.5", WHOLE64),
    INFO(VALUE, 784, REAL, first_loss, "0.5", UP_TO(DBL_MAX)),
    INFO(ANY, 792, REAL, epoch_loss, "0.5", ),
    INFO(ANY, 800, REAL, epoch_accuracy, "0.5", ),
    INFO(VALUE, 852, FLAG, evaluation_pending, "0.5", ),
    INFO(VALUE, 864, REAL, train_seconds, "0.5", SECONDS_OF_A_RUN),
    INFO(VALUE, 872, REAL, eval_seconds, "0.5", SECONDS_OF_A_RUN),
    INFO(VALUE, 880, U64, timed_from, "0.5", WHOLE64),
    INFO(VALUE, 888, U64, reached_updates, "0.5", WHOLE64),
    INFO(VALUE, 896, REAL, reached_accuracy, "0.5", FRACTION),
    INFO(VALUE, 904, REAL, reached_seconds, "0.5", SECONDS_OF_A_RUN),
    INFO(VALUE, 912, REAL, reached_eval_seconds, "0.5", SECONDS_OF_A_RUN),

    /* ---- data, loader and devices ---- */
    INFO(VALUE, 104, U64, fingerprint, "0.1", WHOLE64),
    FORMAT_NAME,
    INFO(ANY, 720, U64, label_offset, "0.4", ),
    INFO(VALUE, 808, U64, val_fingerprint, "0.5", WHOLE64),
    INFO(VALUE, 1008, U64, order_seed, "0.5", WHOLE64),
    INFO(VALUE, 1016, FLAG, own_order_seed, "0.5", ),
    INFO(VALUE, 816, U32, parts, "0.5", UP_TO(MR_SUM_MOST_LEAVES)),
    INFO(VALUE, 820, U32, part_threads, "0.5", UP_TO(MRI_PART_THREADS_MOST)),
    INFO(VALUE, 824, U32, convolution, "0.5", WHOLE32),
#define MRI_KEPT(...) MRI_FIELD_OF_ROW(__VA_ARGS__),
#define MRI_FIELD_OF_ROW(name, ...)                                                                          \
    {                                                                                                        \
        .row = MRI_ROW(mr_checkpoint_info, name, __VA_ARGS__),                                               \
        .bytes = sizeof(((mr_checkpoint_info *)0)->name), .form = MRI_FIELD_SETTING                          \
    }
#define MRI_KEPT_TEXT(...) MRI_FIELD_OF_TEXT(__VA_ARGS__),
#define MRI_FIELD_OF_TEXT(name, kind_, ...)                                                                  \
    {                                                                                                        \
        .row = {.member = #name,                                                                             \
                .kind = MRI_SETTING_##kind_,                                                                 \
                .at = offsetof(mr_checkpoint_info, name),                                                    \
                __VA_ARGS__},                                                                                \
        .bytes = sizeof(((mr_checkpoint_info *)0)->name), .form = MRI_FIELD_TEXT                             \
    }
#include "settings/batches.rows"
#define MRI_KEPT(...) MRI_FIELD_OF_ROW(__VA_ARGS__),
#include "settings/goal.rows"
#define MRI_KEPT(...) MRI_FIELD_OF_ROW(__VA_ARGS__),
#include "settings/decode.rows"

    /* ---- updates ---- */
    INFO(VALUE, 448, U32, update.kind, "0.1", UP_TO(MR_UPDATE_KIND_COUNT - 1)),
    INFO(ANY, 452, FLOAT, update.lr, "0.1", ),
    INFO(ANY, 456, FLOAT, update.momentum, "0.1", ),
    INFO(ANY, 460, FLOAT, update.rho, "0.1", ),
    INFO(ANY, 464, FLOAT, update.beta1, "0.1", ),
    INFO(ANY, 468, FLOAT, update.beta2, "0.1", ),
    INFO(ANY, 472, FLOAT, update.epsilon, "0.1", ),
    INFO(ANY, 476, FLOAT, update.weight_decay, "0.1", ),
    INFO(VALUE, 480, FLAG, update.nesterov, "0.1", ),
    INFO(VALUE, 488, U64, update.step, "0.1", WHOLE64),
    INFO(VALUE, 496, U32, schedule.kind, "0.1", UP_TO(MR_LR_KIND_COUNT - 1)),
    INFO(ANY, 500, FLOAT, schedule.lr, "0.1", ),
    INFO(ANY, 504, FLOAT, schedule.factor, "0.1", ),
    INFO(ANY, 508, FLOAT, schedule.floor_lr, "0.1", ),
    INFO(ANY, 512, FLOAT, schedule.decay, "0.1", ),
    INFO(VALUE, 516, U32, schedule.milestone_count, "0.1",
         UP_TO(sizeof(((mr_schedule *)0)->milestones) / sizeof(double))),
    INFO(ANY, 520, REAL, schedule.warmup_epochs, "0.1", ),
    INFO(ANY, 528, REAL, schedule.milestones, "0.1", ),
    INFO(VALUE, 768, U32, patience, "0.5", WHOLE32),
#define MRI_KEPT(...)      MRI_FIELD_OF_ROW(__VA_ARGS__),
#define MRI_KEPT_TEXT(...) MRI_FIELD_OF_TEXT(__VA_ARGS__),
#include "settings/updates.rows"
};
_Static_assert(sizeof(mr_update_kind) == 4 && sizeof(mr_schedule_kind) == 4 && sizeof(mr_order) == 4 &&
                   sizeof(mr_tail) == 4 && sizeof(mr_decay_on) == 4 && sizeof(mr_pixels) == 4 &&
                   sizeof(mr_target_loss) == 4 && sizeof(bool) == 1,
               "as CHECKPOINT.md says");
_Static_assert(offsetof(mri_checkpoint_header, info) == 0, "rows count from the info");

const mri_checkpoint_field *mri_checkpoint_field_at(size_t i)
{
    return i < MRI_ARRAY_COUNT(fields) ? &fields[i] : NULL;
}

const mri_checkpoint_field *mri_checkpoint_field_of(const char *name)
{
    for (size_t i = 0; i < MRI_ARRAY_COUNT(fields); i++)
        if (strcmp(fields[i].row.member, name) == 0) return &fields[i];
    return NULL;
}

void mri_checkpoint_fields_put(const mri_checkpoint_header *from, uint8_t *bytes)
{
    for (size_t i = 0; i < MRI_ARRAY_COUNT(fields); i++) {
        const mri_checkpoint_field *f = &fields[i];
        const char *value = (const char *)from + f->row.at;
        const size_t used = f->form == MRI_FIELD_TEXT ? strnlen(value, f->bytes - 1u) : f->bytes;
        memset(bytes + f->row.kept_at, 0, f->bytes);
        memcpy(bytes + f->row.kept_at, value, used);
    }
}

void mri_checkpoint_fields_take(mri_checkpoint_header *to, const uint8_t *bytes)
{
    for (size_t i = 0; i < MRI_ARRAY_COUNT(fields); i++)
        memcpy((char *)to + fields[i].row.at, bytes + fields[i].row.kept_at, fields[i].bytes);
}

/* ---- checks ---- */

static bool is_zero(const uint8_t *p, size_t bytes)
{
    for (size_t i = 0; i < bytes; i++)
        if (p[i]) return false;
    return true;
}

static bool is_text(const uint8_t *p, size_t bytes)
{
    const uint8_t *end = memchr(p, 0, bytes);
    return end && is_zero(end, bytes - (size_t)(end - p));
}

/* A bool in memory has no third value: its byte is compared in the file. */
static bool is_flag(const mri_setting *row)
{
    return row->kind == MRI_SETTING_FLAG || row->kind == MRI_SETTING_EITHER;
}

static bool holds(const mri_checkpoint_field *f, const uint8_t *bytes, char *why, size_t why_bytes)
{
    const uint8_t *value = bytes + f->row.kept_at;
    union {
        uint64_t aligned;
        uint8_t bytes[8];
    } copy = {0};
    mri_setting alone = f->row; /* of a struct with this member only */
    if (f->form == MRI_FIELD_ANY || (f->form == MRI_FIELD_SETTING && is_zero(value, f->bytes))) return true;
    if (f->form == MRI_FIELD_TEXT) {
        snprintf(why, why_bytes,
                 "field %s does not end: expected a text of at most %u bytes and zeros after it",
                 f->row.member, f->bytes - 1u);
        return is_text(value, f->bytes);
    }
    if (is_flag(&f->row)) {
        snprintf(why, why_bytes, "field %s is %u: expected 0 or 1", f->row.member, *value);
        return *value <= 1;
    }
    memcpy(copy.bytes, value, f->bytes);
    alone.at = 0;
    char found[256];
    if (mri_setting_holds(&alone, &copy, found, sizeof found)) return true;
    snprintf(why, why_bytes, "field %s", found);
    return false;
}

/* The first byte that is not zero and in no field; `bytes` if every byte is. */
static size_t find_stray(const uint8_t *header)
{
    bool used[MRI_CHECKPOINT_HEADER_BYTES] = {false};
    memset(used, true, MAGIC_BYTES);
    memset(used + MRI_CHECKPOINT_CRC_AT, true, sizeof used - MRI_CHECKPOINT_CRC_AT);
    for (size_t i = 0; i < MRI_ARRAY_COUNT(fields); i++)
        memset(used + fields[i].row.kept_at, true, fields[i].bytes);
    size_t at = 0;
    while (at < sizeof used && (used[at] || header[at] == 0)) at++;
    return at;
}

bool mri_checkpoint_fields_hold(const uint8_t *bytes, char *why, size_t why_bytes, uint64_t *offset)
{
    for (size_t i = 0; i < MRI_ARRAY_COUNT(fields); i++) {
        *offset = fields[i].row.kept_at;
        if (!holds(&fields[i], bytes, why, why_bytes)) return false;
    }
    const size_t stray = find_stray(bytes);
    if (stray == MRI_CHECKPOINT_HEADER_BYTES) return true;
    *offset = stray;
    snprintf(why, why_bytes, "byte %zu, which belongs to no field, is %u: expected 0", stray, bytes[stray]);
    return false;
}

void mri_checkpoint_field_wrong(const char *name, const mri_checkpoint_header *header, const char *expected,
                                char *why, size_t why_bytes, uint64_t *offset)
{
    char value[64];
    const mri_checkpoint_field *f = mri_checkpoint_field_of(name);
    *offset = f->row.kept_at;
    snprintf(why, why_bytes, "field %s is %s: expected %s", name,
             mri_setting_text(&f->row, header, value, sizeof value), expected);
}
