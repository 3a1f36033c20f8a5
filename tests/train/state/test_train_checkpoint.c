/* The checkpoint container and its folder: what goes in comes out; no damage goes unnoticed; hostile files
 * are refused. */
#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>

#include "mrt.h"
#include "train/state/checkpoint.h"
#include "train/state/checkpoint_fields.h"

enum { TENSORS = 3 };

static const mri_tensor_desc tensors[TENSORS] = {
    {"0/conv2d/weights", MRI_ROLE_WEIGHTS, 4, {2, 3, 3, 1}, 18},
    {"0/conv2d/bias", MRI_ROLE_WEIGHTS, 1, {2}, 2},
    {"0/conv2d/weights", MRI_ROLE_SLOT0, 4, {2, 3, 3, 1}, 18},
};

static const char *const class_names[] = {"cat", "a dog"};

static int fill(void *context, uint32_t at, float *out, mr_error *err)
{
    (void)err;
    for (uint64_t i = 0; i < tensors[at].count; i++)
        out[i] = (float)(*(int *)context * 1000 + (int)at * 100 + (int)i);
    return MR_OK;
}

static const float weights_of_classes[] = {0.5f, 2};

static mr_checkpoint_info info_of(uint64_t updates)
{
    mr_checkpoint_info info = {.model = "test",
                               .h = 8,
                               .w = 9,
                               .c = 1,
                               .classes = 2,
                               .param_count = 20,
                               .seed = 7,
                               .epoch = 2,
                               .step = 5,
                               .updates = updates,
                               .batch = 32,
                               .fingerprint = 0xfeedfacecafebeefu,
                               .augment = "padcrop(4),flip",
                               .best_val_loss = 0.25,
                               .epochs_without_better = 3,
                               .order = MR_ORDER_BLOCK,
                               .block = 77,
                               .tail = MR_TAIL_PAD,
                               .pixels = MR_PIXELS_LIBJPEG,
                               .loss_scale = 1024,
                               .loss_scale_good = 17,
                               .updates_skipped = 3,
                               .format = "tfrecord",
                               .label_offset = -3,
                               .class_names = class_names,
                               .length_window = 6,
                               .repeats = 3,
                               .run = {1, 2, 3, 255},
                               .epochs = 12,
                               .patience = 4,
                               .validation_pending = true,
                               .ignore_exif = true,
                               .best_updates = 41,
                               .first_loss = 2.5,
                               .epoch_loss = 1.5,
                               .epoch_accuracy = 0.75,
                               .val_fingerprint = 77,
                               .convolution = 1,
                               .clip_value = 0.5f,
                               .clip_norm = 3,
                               .decay_on = MR_DECAY_ON_WEIGHTS,
                               .average = 0.75f,
                               .lookahead = 6,
                               .label_smoothing = 0.125f,
                               .evaluation_pending = true,
                               .freeze = "0-7",
                               .class_weights = weights_of_classes,
                               .class_weight_count = 2,
                               .stop_at_accuracy = 0.9,
                               .train_seconds = 12.5,
                               .eval_seconds = 1.5,
                               .timed_from = updates / 2,
                               .reached_updates = updates,
                               .reached_accuracy = 0.91,
                               .reached_seconds = 11.5,
                               .reached_eval_seconds = 1.25};
    info.update = (mr_update_desc){.kind = MR_UPDATE_RMSPROP,
                                   .lr = 0.5f,
                                   .rho = 0.9f,
                                   .epsilon = 1e-7f,
                                   .nesterov = true,
                                   .weight_decay = 0.125f,
                                   .step = updates};
    info.schedule = (mr_schedule){.kind = MR_LR_STEP,
                                  .lr = 0.5f,
                                  .factor = 0.1f,
                                  .milestone_count = 2,
                                  .milestones = {3, 7.5},
                                  .warmup_epochs = 1.5};
    return info;
}

static void write_at(const char *path, uint64_t updates)
{
    mr_error err = MR_ERROR_INIT;
    int number = (int)(updates % 1000);
    const mr_checkpoint_info info = info_of(updates);
    MRT_OK(mri_checkpoint_write(path, &info, NULL, tensors, TENSORS, fill, &number, &err), &err);
}

static int read_all(const char *path, mr_error *err)
{
    mri_checkpoint *ck = NULL;
    int rc = mri_checkpoint_open(&ck, path, err);
    if (rc == MR_OK) rc = mri_checkpoint_verify(ck, err);
    if (rc) MRT_TRUE(strstr(err->file, path) != NULL);
    mri_checkpoint_close(ck);
    return rc;
}

static void test_round_trip(void **state)
{
    (void)state;
    mr_error err = MR_ERROR_INIT;
    const char *path = mrt_path("round.mrck");
    write_at(path, 42);
    mri_checkpoint *ck;
    MRT_OK(mri_checkpoint_open(&ck, path, &err), &err);
    MRT_OK(mri_checkpoint_verify(ck, &err), &err);
    const mr_checkpoint_info *i = &ck->info;
    MRT_STR(i->model, "test");
    MRT_STR(i->augment, "padcrop(4),flip");
    MRT_TRUE(i->h == 8 && i->w == 9 && i->c == 1 && i->classes == 2 && i->param_count == 20 && i->seed == 7);
    MRT_TRUE(i->epoch == 2 && i->step == 5 && i->updates == 42 && i->batch == 32 &&
             i->fingerprint == 0xfeedfacecafebeefu);
    MRT_TRUE(i->best_val_loss == 0.25 && i->epochs_without_better == 3);
    MRT_TRUE(i->order == MR_ORDER_BLOCK && i->block == 77 && i->tail == MR_TAIL_PAD);
    MRT_TRUE(i->pixels == MR_PIXELS_LIBJPEG && i->loss_scale == 1024 && i->loss_scale_good == 17 &&
             i->updates_skipped == 3);
    MRT_EQ(i->length_window, 6);
    MRT_EQ(i->repeats, 3);
    MRT_TRUE(i->run[0] == 1 && i->run[3] == 255 && i->run[15] == 0 && i->epochs == 12 && i->patience == 4);
    MRT_TRUE(i->validation_pending && !i->stopped_early && i->ignore_exif && i->best_updates == 41);
    MRT_TRUE(i->first_loss == 2.5 && i->epoch_loss == 1.5 && i->epoch_accuracy == 0.75 &&
             i->val_fingerprint == 77);
    MRT_EQ(i->convolution, 1);
    MRT_TRUE(i->clip_value == 0.5f && i->clip_norm == 3 && i->decay_on == MR_DECAY_ON_WEIGHTS &&
             i->average == 0.75f && i->lookahead == 6 && i->label_smoothing == 0.125f);
    MRT_TRUE(i->evaluation_pending);
    MRT_STR(i->freeze, "0-7");
    MRT_TRUE(i->target_loss == MR_TARGET_NONE && !i->targets[0] && !i->class_weights);
    MRT_TRUE(i->class_weight_count == 2 && memcmp(ck->class_weights, weights_of_classes, 8) == 0);
    MRT_TRUE(i->stop_at_accuracy == 0.9 && i->train_seconds == 12.5 && i->eval_seconds == 1.5 &&
             i->timed_from == 21 && i->reached_updates == 42 && i->reached_accuracy == 0.91 &&
             i->reached_seconds == 11.5 && i->reached_eval_seconds == 1.25);
    MRT_TRUE(i->update.kind == MR_UPDATE_RMSPROP && i->update.rho == 0.9f && i->update.nesterov &&
             i->update.step == 42);
    MRT_TRUE(i->update.weight_decay == 0.125f && i->update.epsilon == 1e-7f);
    MRT_TRUE(i->schedule.kind == MR_LR_STEP && i->schedule.milestone_count == 2 &&
             i->schedule.milestones[1] == 7.5 && i->schedule.warmup_epochs == 1.5 &&
             i->schedule.factor == 0.1f);
    MRT_STR(i->format, "tfrecord");
    MRT_EQ(i->label_offset, -3);
    MRT_TRUE(i->class_names == NULL);
    MRT_EQ(ck->tensor_count, TENSORS);
    for (uint32_t t = 0; t < TENSORS; t++) {
        float got[18], want[18];
        int number = 42;
        MRT_OK(mri_checkpoint_read(ck, t, got, &err), &err);
        fill(&number, t, want, NULL);
        assert_memory_equal(got, want, tensors[t].count * sizeof(float));
        MRT_STR(ck->tensors[t].name, tensors[t].name);
    }
    mri_checkpoint_close(ck);
    MRT_TRUE(access(mrt_path("round.mrck.part"), F_OK) != 0);
}

static void test_names_of_classes(void **state)
{
    (void)state;
    mr_error err = MR_ERROR_INIT;
    const char *path = mrt_path("names.mrck"), **names;
    mr_checkpoint_info info = info_of(1);
    int number = 1;
    uint32_t count;
    write_at(path, 1);
    MRT_OK(mr_checkpoint_class_names(path, &names, &count, &err), &err);
    MRT_EQ(count, 2);
    MRT_STR(names[0], "cat");
    MRT_STR(names[1], "a dog");
    free(names);
    info.class_names = NULL;
    MRT_OK(mri_checkpoint_write(path, &info, NULL, tensors, TENSORS, fill, &number, &err), &err);
    MRT_OK(read_all(path, &err), &err);
    names = (const char **)&info;
    MRT_OK(mr_checkpoint_class_names(path, &names, &count, &err), &err);
    MRT_TRUE(names == NULL && count == 0);
    MRT_EQ(mr_checkpoint_class_names(mrt_path("none.mrck"), &names, &count, &err), MR_ENOENT);
    for (int n = 0;; n++) {
        write_at(path, 1);
        mrt_fail_alloc_at(n);
        const int rc = mr_checkpoint_class_names(path, &names, &count, &err);
        mrt_fail_alloc_at(-1);
        if (rc == MR_OK) break;
        MRT_EQ(rc, MR_ENOMEM);
        MRT_TRUE(names == NULL && count == 0);
    }
    free(names);
}

/* A file that was whole when verified may change before it is read. */
static void test_damage_after_verifying_is_seen(void **state)
{
    (void)state;
    mri_checkpoint *ck;
    mr_error err = MR_ERROR_INIT;
    const char *path = mrt_path("late.mrck");
    float got[18];
    write_at(path, 42);
    MRT_OK(mri_checkpoint_open(&ck, path, &err), &err);
    MRT_OK(mri_checkpoint_verify(ck, &err), &err);
    FILE *f = fopen(path, "r+b");
    assert_non_null(f);
    MRT_EQ(fseek(f, (long)ck->offset[0] + 1, SEEK_SET), 0);
    const int byte = fgetc(f);
    MRT_EQ(fseek(f, (long)ck->offset[0] + 1, SEEK_SET), 0);
    fputc(byte ^ 4, f);
    fclose(f);
    MRT_EQ(mri_checkpoint_read(ck, 0, got, &err), MR_ECHECKSUM);
    MRT_HAS(err.text, "tensor");
    mri_checkpoint_close(ck);
}

static void test_same_state_same_bytes(void **state)
{
    (void)state;
    size_t a_bytes, b_bytes;
    write_at(mrt_path("a.mrck"), 9);
    write_at(mrt_path("b.mrck"), 9);
    void *a = mrt_read_file(mrt_path("a.mrck"), &a_bytes), *b = mrt_read_file(mrt_path("b.mrck"), &b_bytes);
    MRT_EQ(a_bytes, b_bytes);
    assert_memory_equal(a, b, a_bytes);
    free(a);
    free(b);
}

/* In place of weights of classes: the name of a field, whose bytes cannot change unseen either. */
static void test_targets_come_back(void **state)
{
    (void)state;
    mr_error err = MR_ERROR_INIT;
    const char *path = mrt_path("targets.mrck");
    int number = 42;
    mr_checkpoint_info info = info_of(42);
    info.class_weights = NULL, info.class_weight_count = 0, info.class_names = NULL;
    info.target_loss = MR_TARGET_HUBER;
    snprintf(info.targets, sizeof info.targets, "ink");
    MRT_OK(mri_checkpoint_write(path, &info, NULL, tensors, TENSORS, fill, &number, &err), &err);
    mri_checkpoint *ck;
    MRT_OK(mri_checkpoint_open(&ck, path, &err), &err);
    MRT_TRUE(ck->info.target_loss == MR_TARGET_HUBER && !ck->class_weights);
    MRT_STR(ck->info.targets, "ink");
    const uint64_t from = ck->wants.offset, end = ck->file_bytes;
    mri_checkpoint_close(ck);
    MRT_EQ(end - from, 64);
    const int fd = open(path, O_RDWR | O_CLOEXEC);
    MRT_TRUE(fd >= 0);
    for (uint64_t at = from; at < end; at++) {
        uint8_t byte, other;
        MRT_EQ(pread(fd, &byte, 1, (off_t)at), 1);
        other = byte ^ (uint8_t)(1u << at % 8);
        MRT_EQ(pwrite(fd, &other, 1, (off_t)at), 1);
        MRT_TRUE(read_all(path, &err) == MR_ECHECKSUM);
        MRT_EQ(pwrite(fd, &byte, 1, (off_t)at), 1);
    }
    close(fd);
    MRT_OK(read_all(path, &err), &err);
}

static void test_every_flipped_byte_is_seen(void **state)
{
    (void)state;
    size_t bytes;
    const char *path = mrt_path("flip.mrck");
    write_at(path, 1);
    uint8_t *data = mrt_read_file(path, &bytes);
    const int fd = open(path, O_WRONLY | O_CLOEXEC);
    MRT_TRUE(fd >= 0);
    for (size_t i = 0; i < bytes; i++) {
        mr_error err = MR_ERROR_INIT;
        const uint8_t flipped = data[i] ^ (uint8_t)(1u << (i % 8));
        MRT_EQ(pwrite(fd, &flipped, 1, (off_t)i), 1);
        const int rc = read_all(path, &err);
        if (rc != MR_ECHECKSUM && rc != MR_EFORMAT)
            fail_msg("flipped byte %zu of %zu: status %d", i, bytes, rc);
        MRT_EQ(pwrite(fd, &data[i], 1, (off_t)i), 1);
    }
    close(fd);
    free(data);
    mr_error err = MR_ERROR_INIT;
    MRT_OK(read_all(path, &err), &err);
}

static void test_wrong_lengths_are_refused(void **state)
{
    (void)state;
    size_t bytes;
    const char *path = mrt_path("cut.mrck");
    mr_error err = MR_ERROR_INIT;
    write_at(path, 1);
    mr_checkpoint_info found;
    MRT_OK(mr_checkpoint_find(path, NULL, 0, &found, NULL, 0, &err), &err);
    free(mrt_read_file(path, &bytes));
    MRT_EQ(truncate(path, (off_t)bytes + 1), 0);
    MRT_EQ(read_all(path, &err), MR_EFORMAT);
    for (size_t cut = bytes; cut-- > 0;) {
        MRT_EQ(truncate(path, (off_t)cut), 0);
        MRT_EQ(read_all(path, &err), MR_EFORMAT);
    }
    MRT_HAS(err.text, "expected");
}

/* ---- hostile values: the checksums are right, so the values themselves must be refused ---- */

/* A checkpoint in memory. */
typedef struct image {
    uint8_t *file;
    size_t bytes;
} image;

static void put_value(uint8_t *at, size_t bytes, uint64_t value)
{
    memcpy(at, &value, bytes < sizeof value ? bytes : sizeof value);
}

static const mri_checkpoint_field *field_of(const char *name)
{
    const mri_checkpoint_field *f = mri_checkpoint_field_of(name);
    if (!f) fail_msg("no field %s", name);
    return f;
}

/* Write the image with right checksums of header and directory; return what reading it gives. */
static int read_changed(const char *path, uint8_t *file, size_t bytes, mr_error *err)
{
    put_value(file + field_of("directory_crc")->row.kept_at, 4,
              mr_crc32c(0, file + MRI_CHECKPOINT_HEADER_BYTES, 128 * TENSORS));
    put_value(file + MRI_CHECKPOINT_CRC_AT, 4, mr_crc32c(0, file, MRI_CHECKPOINT_CRC_AT));
    mrt_write_file(path, file, bytes);
    return read_all(path, err);
}

static void assert_refused(const char *what, int rc, const mr_error *err, const char *expected)
{
    if (rc != MR_EFORMAT && rc != MR_EUNSUPPORTED && rc != MR_ECHECKSUM)
        fail_msg("%s: status %d, expected text '%s'", what, rc, expected);
    if (!strstr(err->text, expected)) fail_msg("%s: expected '%s', found '%s'", what, expected, err->text);
}

static const uint64_t nan64 = 0x7ff8000000000000u, infinite64 = 0x7ff0000000000000u,
                      minus_half64 = 0xbfe0000000000000u, two64 = 0x4000000000000000u, nan32 = 0x7fc00000,
                      infinite32 = 0x7f800000, one32 = 0x3f800000, minus_half32 = 0xbf000000,
                      minus_one32 = 0xbf800000;

static void test_hostile_fields_are_refused_by_name(void **state)
{
    (void)state;
    const struct {
        const char *field;
        uint64_t value;
        const char *expected;
    } cases[] = {
        {"version", 2, "checkpoint version 2: this build reads version 1"},
        {"header_bytes", 4096, "field header_bytes is 4096: expected 1024 to 1024"},
        {"file_bytes", UINT64_MAX, "expected 18446744073709551615 bytes"},
        {"tensor_count", 0, "field tensor_count is 0: expected 1 to 65536"},
        {"tensor_count", 65537, "field tensor_count is 65537"},
        {"tensor_count", UINT32_MAX, "field tensor_count is 4294967295"},
        {"tensor_count", 1, "field data_offset is 1408: expected the end of a directory"},
        {"tensor_count", 4, "field data_offset is 1408"},
        {"directory_offset", 0, "field directory_offset is 0: expected 1024 to 1024"},
        {"data_offset", UINT64_MAX - 1, "field data_offset"},
        {"h", 0, "field h is 0: expected 1 to 4294967295"},
        {"w", 0, "field w is 0"},
        {"c", 0, "field c is 0"},
        {"param_count", 0, "field param_count is 0: expected 1 or more"},
        {"update.kind", MR_UPDATE_KIND_COUNT, "field update.kind is 12: expected 0 to 11"},
        {"update.nesterov", 2, "field update.nesterov is 2: expected 0 or 1"},
        {"schedule.kind", MR_LR_KIND_COUNT, "field schedule.kind is 8: expected 0 to 7"},
        {"schedule.milestone_count", 17, "field schedule.milestone_count is 17: expected 0 to 16"},
        {"order", 4, "field order is 4: expected 0 to 3"},
        {"tail", 3, "field tail is 3: expected 0 to 2"},
        {"pixels", 3, "field pixels is 3: expected 0 to 2"},
        {"best_val_loss", nan64, "field best_val_loss is nan: expected a number"},
        {"loss_scale", 0x3fc00000, "field loss_scale is 1.5: expected 0 or a power of two from 1 to 2^24"},
        {"loss_scale", 0x3f000000, "field loss_scale is 0.5: expected 0 or a power of two"},
        {"loss_scale", 0x4c000000, "field loss_scale is 33554432: expected 0 to 16777216"},
        {"validation_pending", 2, "field validation_pending is 2: expected 0 or 1"},
        {"stopped_early", 2, "field stopped_early is 2"},
        {"ignore_exif", 255, "field ignore_exif is 255: expected 0 or 1"},
        {"first_loss", nan64, "field first_loss is nan: expected a finite number, 0 or more"},
        {"first_loss", infinite64, "field first_loss is inf: expected a finite number, 0 or more"},
        {"first_loss", minus_half64, "field first_loss is -0.5: expected 0 or more"},
        {"parts", 65537, "field parts is 65537: expected 0 to 65536"},
        {"part_threads", 4097, "field part_threads is 4097: expected 0 to 4096"},
        {"clip_value", minus_one32, "field clip_value is -1: expected 0 or more"},
        {"clip_value", nan32, "field clip_value is nan: expected a finite number, 0 or more"},
        {"clip_norm", infinite32, "field clip_norm is inf: expected a finite number, 0 or more"},
        {"decay_on", 2, "field decay_on is 2: expected 0 to 1"},
        {"average", one32, "field average is 1: expected 0 to below 1"},
        {"average", minus_half32, "field average is -0.5: expected 0 to below 1"},
        {"average", nan32, "field average is nan"},
        {"label_smoothing", one32, "field label_smoothing is 1: expected 0 to below 1"},
        {"label_smoothing", minus_half32, "field label_smoothing is -0.5"},
        {"evaluation_pending", 2, "field evaluation_pending is 2"},
        {"stop_at_accuracy", 0x3ff8000000000000u, "field stop_at_accuracy is 1.5: expected 0 to 1"},
        {"stop_at_accuracy", minus_half64, "field stop_at_accuracy is -0.5"},
        {"stop_at_accuracy", nan64, "field stop_at_accuracy is nan"},
        {"train_seconds", minus_half64, "field train_seconds is -0.5: expected 0 or more"},
        {"train_seconds", nan64, "field train_seconds is nan"},
        {"eval_seconds", infinite64, "field eval_seconds is inf"},
        {"timed_from", UINT64_MAX,
         "field timed_from is 18446744073709551615: expected at most the field updates"},
        {"reached_updates", 1000000, "field reached_updates is 1000000: expected at most the field updates"},
        {"reached_accuracy", two64, "field reached_accuracy is 2: expected 0 to 1"},
        {"reached_seconds", nan64, "field reached_seconds is nan"},
        {"reached_eval_seconds", minus_half64, "field reached_eval_seconds is -0.5"},
        {"target_loss", 5, "field target_loss is 5: expected 0 to 4"},
        {"target_loss", 1, "field class_weight_count is 2: expected 0 with targets (target_loss)"},
        {"class_weight_count", 3, "field class_weight_count is 3: expected 0, or the field classes"},
        {"class_weight_count", 0, "field wants_crc"},
        {"wants_crc", 1, "do not match their checksum"},
        {"repeats", 1, "field repeats is 1: expected 0, or 2 to the field batch"},
        {"repeats", 0xFFFFFF, "field repeats is 16777215"},
        {"net_bytes", 1, "field net_bytes is 1: expected 0, or the bytes of 1 to 4096 layers"},
        {"net_crc", 1, "field net_crc is 1: expected 0, as field net_bytes is 0"},
        {"order_seed", 7, "field order_seed is 7: expected 0, as field own_order_seed is 0"},
        {"own_order_seed", 2, "field own_order_seed is 2: expected 0 or 1"},
        {"names_bytes", 0, "field names_crc"},
        {"names_bytes", 9, "names"},
        {"names_bytes", 11, "names"},
        {"names_bytes", 64, "names"},
        {"names_bytes", 74, "names"},
        {"names_bytes", UINT64_MAX, "field names_bytes is 18446744073709551615: expected 0 to 67108864"},
        {"names_bytes", ((uint64_t)64 << 20) + 1, "field names_bytes is 67108865"},
        {"names_crc", 7, "names"},
        {"classes", 1, "field class_weight_count is 2: expected 0, or the field classes"},
        {"classes", 3, "field class_weight_count is 2"},
    };
    const char *path = mrt_path("hostile.mrck");
    image good;
    write_at(path, 1);
    good.file = mrt_read_file(path, &good.bytes);
    uint8_t *bad = malloc(good.bytes);
    for (size_t i = 0; i < MRI_ARRAY_COUNT(cases); i++) {
        mr_error err = MR_ERROR_INIT;
        const mri_checkpoint_field *f = field_of(cases[i].field);
        memcpy(bad, good.file, good.bytes);
        put_value(bad + f->row.kept_at, f->bytes, cases[i].value);
        assert_refused(cases[i].field, read_changed(path, bad, good.bytes, &err), &err, cases[i].expected);
        char named[64];
        snprintf(named, sizeof named, "checkpoint: field %s is", cases[i].field);
        if (strstr(err.text, named)) MRT_EQ(err.offset, f->row.kept_at);
    }
    free(good.file);
    free(bad);
}

/* Every text: a last byte that is not zero, and one after the end of the text. */
static void test_texts_end(void **state)
{
    (void)state;
    const char *path = mrt_path("texts.mrck");
    size_t bytes, texts = 0;
    write_at(path, 1);
    uint8_t *good = mrt_read_file(path, &bytes), *bad = malloc(bytes);
    const mri_checkpoint_field *f;
    for (size_t i = 0; (f = mri_checkpoint_field_at(i)); i++) {
        if (f->form != MRI_FIELD_TEXT) continue;
        const size_t end = strlen((char *)good + f->row.kept_at), behind[] = {f->bytes - 1u, end + 1};
        for (size_t k = 0; k < MRI_ARRAY_COUNT(behind); k++) {
            mr_error err = MR_ERROR_INIT;
            char expected[128];
            memcpy(bad, good, bytes);
            bad[f->row.kept_at + behind[k]] = 'x';
            snprintf(expected, sizeof expected, "field %s does not end", f->row.member);
            assert_refused(f->row.member, read_changed(path, bad, bytes, &err), &err, expected);
        }
        texts++;
    }
    MRT_EQ(texts, 4); /* model, augment, format, freeze */
    free(good);
    free(bad);
}

/* Fields overlap nowhere, and a byte between them is refused. */
static void test_bytes_of_no_field_are_zero(void **state)
{
    (void)state;
    const char *path = mrt_path("stray.mrck");
    uint8_t owner[MRI_CHECKPOINT_CRC_AT] = {0};
    size_t bytes, strays = 0;
    const mri_checkpoint_field *f;
    for (size_t i = 0; (f = mri_checkpoint_field_at(i)); i++) {
        MRT_TRUE(f->row.kept_at >= 8 && f->row.kept_at + f->bytes <= MRI_CHECKPOINT_CRC_AT);
        for (uint32_t k = 0; k < f->bytes; k++)
            if (owner[f->row.kept_at + k]++) fail_msg("%s lies over another field", f->row.member);
    }
    write_at(path, 1);
    uint8_t *good = mrt_read_file(path, &bytes), *bad = malloc(bytes);
    for (size_t at = 8; at < MRI_CHECKPOINT_CRC_AT; at++) {
        mr_error err = MR_ERROR_INIT;
        char expected[64];
        if (owner[at]) continue;
        memcpy(bad, good, bytes);
        bad[at] = 1;
        snprintf(expected, sizeof expected, "byte %zu, which belongs to no field, is 1", at);
        assert_refused("stray", read_changed(path, bad, bytes, &err), &err, expected);
        MRT_EQ(err.offset, at);
        strays++;
    }
    /* of CHECKPOINT.md: behind nesterov, 716, 775, 854, 1017. A new field takes some; none may leave more */
    MRT_TRUE(strays > 0 && strays <= 3 + 4 + 1 + 2 + 3);
    free(good);
    free(bad);
}

/* Fields of one name are one field; a setting that checkpoints keep has a policy of --resume. */
static void test_fields_are_one_of_a_name(void **state)
{
    (void)state;
    const mri_checkpoint_field *f;
    for (size_t i = 0; (f = mri_checkpoint_field_at(i)); i++) {
        MRT_TRUE(mri_checkpoint_field_of(f->row.member) == f);
        MRT_TRUE(f->row.since && f->row.since[0]);
        if (f->row.option) MRT_TRUE(f->row.resume != MRI_RESUME_FREE); /* of what no checkpoint keeps */
    }
    MRT_TRUE(mri_checkpoint_field_of("no such field") == NULL);
}

/* Entries of the directory: offsets in an entry, as CHECKPOINT.md has them. */
static void test_hostile_entries_are_refused(void **state)
{
    (void)state;
    enum { NAME_END = 63, ROLE = 64, NDIM = 68, DIM = 72, OFFSET = 104, ELEMENTS = 112, ZERO = 124 };
    static const struct {
        uint32_t entry, at;
        size_t width;
        uint64_t value;
        const char *expected;
    } cases[] = {
        {0, NAME_END, 1, 'x', "directory entry"},
        {0, ROLE, 4, MRI_ROLE_COUNT, "directory entry"},
        {0, NDIM, 4, 0, "directory entry"},
        {0, NDIM, 4, 5, "directory entry"},
        {0, DIM, 8, 0, "tensor"},
        {0, DIM, 8, 1u << 30, "tensor"},
        {0, DIM, 8, UINT64_MAX, "tensor"},
        {0, DIM, 8, (uint64_t)1 << 62, "tensor"},
        {0, OFFSET, 8, 0, "tensor"},
        {0, ELEMENTS, 8, 17, "tensor"},
        {0, ZERO, 4, 1, "directory entry"},
        {1, DIM + 8, 8, 1, "directory entry"},
    };
    size_t bytes;
    const char *path = mrt_path("entries.mrck");
    write_at(path, 1);
    uint8_t *good = mrt_read_file(path, &bytes), *bad = malloc(bytes);
    for (size_t i = 0; i < MRI_ARRAY_COUNT(cases); i++) {
        mr_error err = MR_ERROR_INIT;
        memcpy(bad, good, bytes);
        put_value(bad + MRI_CHECKPOINT_HEADER_BYTES + 128 * cases[i].entry + cases[i].at, cases[i].width,
                  cases[i].value);
        assert_refused("entry", read_changed(path, bad, bytes, &err), &err, cases[i].expected);
    }
    free(good);
    free(bad);
}

/* Programs that did not know the convolutions, or nothing of the run, have left zeros there. */
static void test_older_files_do_not_know(void **state)
{
    (void)state;
    static const char *const first_unknown[] = {"convolution", "run"};
    size_t bytes;
    const char *path = mrt_path("older.mrck");
    mr_error none = MR_ERROR_INIT;
    int number = 1;
    mr_checkpoint_info older = info_of(1);
    older.class_weights = NULL, older.class_weight_count = 0; /* they had nothing after the names */
    MRT_OK(mri_checkpoint_write(path, &older, NULL, tensors, TENSORS, fill, &number, &none), &none);
    uint8_t *file = mrt_read_file(path, &bytes);
    for (size_t i = 0; i < MRI_ARRAY_COUNT(first_unknown); i++) {
        mr_error err = MR_ERROR_INIT;
        mr_checkpoint_info info;
        const size_t known = field_of(first_unknown[i])->row.kept_at;
        memset(file + known, 0, MRI_CHECKPOINT_CRC_AT - known);
        MRT_OK(read_changed(path, file, bytes, &err), &err);
        MRT_OK(mr_checkpoint_find(path, NULL, 0, &info, NULL, 0, &err), &err);
        MRT_EQ(info.convolution, 0);
        MRT_EQ(info.length_window, 6);
        MRT_EQ(info.epochs, i == 0 ? 12 : 0);
    }
    free(file);
}

static void test_other_files_are_refused(void **state)
{
    (void)state;
    mr_error err = MR_ERROR_INIT;
    uint8_t noise[5000];
    mrt_noise(noise, sizeof noise, 3);
    mrt_write_file(mrt_path("noise"), noise, sizeof noise);
    MRT_EQ(read_all(mrt_path("noise"), &err), MR_EFORMAT);
    MRT_HAS(err.text, "not a checkpoint");
    MRT_EQ(read_all(mrt_path("nowhere"), &err), MR_ENOENT);
    mrt_mkdir(mrt_path("folder"));
    MRT_EQ(read_all(mrt_path("folder"), &err), MR_EFORMAT);
    MRT_HAS(err.text, "regular file");
}

static int refuse_second(void *context, uint32_t at, float *out, mr_error *err)
{
    return at == 1 ? mr_error_set(err, MR_EDEVICE, "no") : fill(context, at, out, err);
}

static void test_failed_write_leaves_the_previous(void **state)
{
    (void)state;
    mr_error err = MR_ERROR_INIT;
    const char *path = mrt_path("kept.mrck");
    int number = 2;
    const mr_checkpoint_info info = info_of(2);
    write_at(path, 1);
    MRT_EQ(mri_checkpoint_write(path, &info, NULL, tensors, TENSORS, refuse_second, &number, &err),
           MR_EDEVICE);
    mr_checkpoint_info found;
    MRT_OK(mr_checkpoint_find(path, NULL, 0, &found, NULL, 0, &err), &err);
    MRT_EQ(found.updates, 1);
    MRT_TRUE(access(mrt_path("kept.mrck.part"), F_OK) != 0);
    MRT_EQ(
        mri_checkpoint_write(mrt_path("no/folder.mrck"), &info, NULL, tensors, TENSORS, fill, &number, &err),
        MR_ENOENT);
    MRT_HAS(err.file, "no/folder.mrck");
    MRT_EQ(mri_checkpoint_write(path, &info, NULL, tensors, 0, fill, &number, &err), MR_EINVAL);
}

static void test_find_in_folder(void **state)
{
    (void)state;
    mr_error err = MR_ERROR_INIT;
    mr_checkpoint_info found;
    char path[1024], note[1024] = "x";
    const char *folder = mrt_path("find");
    MRT_OK(mri_checkpoint_folder_make(folder, &err), &err);
    MRT_OK(mri_checkpoint_folder_make(folder, &err), &err);
    MRT_EQ(mr_checkpoint_find(folder, path, sizeof path, &found, note, sizeof note, &err), MR_ENOENT);
    MRT_HAS(err.text, "no whole checkpoint");
    static const uint64_t steps[] = {0, 5, 100, 1000000000001u};
    for (size_t i = 0; i < 4; i++) {
        mri_checkpoint_step_path(folder, steps[i], path, sizeof path);
        write_at(path, steps[i]);
    }
    write_at(mrt_path("find/step-7.mrck"), 7); /* not a name we write */
    write_at(mrt_path("find/step-000000000200.mrck.part"), 200);
    MRT_OK(mr_checkpoint_find(folder, path, sizeof path, &found, note, sizeof note, &err), &err);
    MRT_EQ(found.updates, 1000000000001u);
    MRT_STR(note, "");
    mrt_write_file(path, "cut", 3);
    MRT_OK(mr_checkpoint_find(folder, path, sizeof path, &found, note, sizeof note, &err), &err);
    MRT_EQ(found.updates, 100);
    MRT_HAS(path, "step-000000000100.mrck");
    MRT_HAS(note, "passed over");
    MRT_HAS(note, "step-1000000000001.mrck");
    mrt_write_file(path, "cut", 3);
    mrt_write_file(mrt_path("find/step-000000000005.mrck"), "cut", 3);
    mrt_write_file(mrt_path("find/step-000000000000.mrck"), "cut", 3);
    MRT_EQ(mr_checkpoint_find(folder, path, sizeof path, &found, note, sizeof note, &err), MR_ENOENT);
    MRT_HAS(err.text, "4 damaged");
    write_at(mrt_path("find/best.mrck"), 3);
    MRT_OK(mr_checkpoint_find(folder, path, sizeof path, &found, note, sizeof note, &err), &err);
    MRT_EQ(found.updates, 3);
    char tiny[4];
    MRT_EQ(mr_checkpoint_find(folder, tiny, sizeof tiny, &found, NULL, 0, &err), MR_EINVAL);
    MRT_EQ(mr_checkpoint_find(mrt_path("find/nothing"), path, sizeof path, &found, NULL, 0, &err), MR_ENOENT);
}

static void test_second_name(void **state)
{
    (void)state;
    mr_error err = MR_ERROR_INIT;
    char note[512] = "";
    const char *path = mrt_path("second.mrck");
    write_at(path, 4);
    MRT_OK(mri_checkpoint_second_name(path, mrt_path("best.mrck"), note, sizeof note, &err), &err);
    MRT_OK(mri_checkpoint_second_name(path, mrt_path("best.mrck"), note, sizeof note, &err), &err); /* two
                                                                                    names of one file already
                                                                                  */
    mr_checkpoint_info found;
    MRT_OK(mr_checkpoint_find(mrt_path("best.mrck"), NULL, 0, &found, NULL, 0, &err), &err);
    MRT_EQ(found.updates, 4);
    MRT_TRUE(access(mrt_path("best.mrck.part"), F_OK) != 0);
    MRT_EQ(mri_checkpoint_second_name(mrt_path("nothing"), mrt_path("best.mrck"), note, sizeof note, &err),
           MR_ENOENT);
    mrt_write_file(mrt_path("file"), "x", 1);
    MRT_EQ(mri_checkpoint_folder_make(mrt_path("file"), &err), MR_EEXIST);
    MRT_TRUE(mri_checkpoint_folder_make(mrt_path("file/below"), &err) != MR_OK);
    MRT_OK(mri_checkpoint_folder_make(mrt_path("a/b/c"), &err), &err);
    MRT_TRUE(access(mrt_path("a/b/c"), W_OK | X_OK) == 0);
}

/* A file that is not regular neither blocks nor is waited for. */
static void test_pipes_are_passed_over(void **state)
{
    (void)state;
    mr_error err = MR_ERROR_INIT;
    mr_checkpoint_info found;
    char note[1024];
    const char *folder = mrt_path("pipe");
    mrt_mkdir(folder);
    write_at(mrt_path("pipe/step-000000000005.mrck"), 5);
    MRT_EQ(mkfifo(mrt_path("pipe/step-000000000009.mrck"), 0600), 0);
    MRT_EQ(mkfifo(mrt_path("pipe/run.lock"), 0600), 0);
    MRT_OK(mr_checkpoint_find(folder, NULL, 0, &found, note, sizeof note, &err), &err);
    MRT_EQ(found.updates, 5);
    MRT_HAS(note, "step-000000000009.mrck");
    MRT_EQ(mr_checkpoint_find(mrt_path("pipe/step-000000000009.mrck"), NULL, 0, &found, NULL, 0, &err),
           MR_EFORMAT);
    MRT_HAS(err.text, "regular file");
}

/* A part file that somebody planted as a link leads nowhere. */
static void test_links_are_not_followed(void **state)
{
    (void)state;
    mr_error err = MR_ERROR_INIT;
    int number = 1;
    const mr_checkpoint_info info = info_of(1);
    mrt_write_file(mrt_path("precious"), "precious", 8);
    MRT_EQ(symlink(mrt_path("precious"), mrt_path("planted.mrck.part")), 0);
    MRT_EQ(mri_checkpoint_write(mrt_path("planted.mrck"), &info, NULL, tensors, TENSORS, fill, &number, &err),
           MR_EINVAL);
    size_t bytes;
    char *text = mrt_read_file(mrt_path("precious"), &bytes);
    MRT_TRUE(bytes == 8 && memcmp(text, "precious", 8) == 0);
    free(text);
}

static void test_allocation_failures(void **state)
{
    (void)state;
    const char *path = mrt_path("alloc.mrck");
    int number = 1, done = 0;
    const mr_checkpoint_info info = info_of(1);
    for (int n = 0; !done; n++) {
        mr_error err = MR_ERROR_INIT;
        mrt_fail_alloc_at(n);
        const int rc = mri_checkpoint_write(path, &info, NULL, tensors, TENSORS, fill, &number, &err);
        mrt_fail_alloc_at(-1);
        done = rc == MR_OK;
        if (!done) MRT_EQ(rc, MR_ENOMEM);
    }
    for (int n = 0;; n++) {
        mr_error err = MR_ERROR_INIT;
        mr_checkpoint_info found;
        mrt_fail_alloc_at(n);
        const int rc = mr_checkpoint_find(path, NULL, 0, &found, NULL, 0, &err);
        mrt_fail_alloc_at(-1);
        if (rc == MR_OK) break;
        MRT_EQ(rc, MR_ENOMEM);
        MRT_TRUE(n < 20);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_round_trip),
        cmocka_unit_test(test_names_of_classes),
        cmocka_unit_test(test_same_state_same_bytes),
        cmocka_unit_test(test_damage_after_verifying_is_seen),
        cmocka_unit_test(test_targets_come_back),
        cmocka_unit_test(test_every_flipped_byte_is_seen),
        cmocka_unit_test(test_wrong_lengths_are_refused),
        cmocka_unit_test(test_hostile_fields_are_refused_by_name),
        cmocka_unit_test(test_texts_end),
        cmocka_unit_test(test_bytes_of_no_field_are_zero),
        cmocka_unit_test(test_fields_are_one_of_a_name),
        cmocka_unit_test(test_hostile_entries_are_refused),
        cmocka_unit_test(test_older_files_do_not_know),
        cmocka_unit_test(test_other_files_are_refused),
        cmocka_unit_test(test_failed_write_leaves_the_previous),
        cmocka_unit_test(test_find_in_folder),
        cmocka_unit_test(test_second_name),
        cmocka_unit_test(test_pipes_are_passed_over),
        cmocka_unit_test(test_links_are_not_followed),
        cmocka_unit_test(test_allocation_failures),
    };
    return mrt_run(tests);
}
