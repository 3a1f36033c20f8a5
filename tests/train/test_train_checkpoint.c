/* The checkpoint container and its folder: what goes in comes out; no damage goes unnoticed; hostile files
 * are refused. */
#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>

#include "mrt.h"
#include "train/state/checkpoint.h"

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

/* A file that was whole when it was verified may be changed before it is read. */
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

/* In place of weights of classes: the name of a field; a change of any of its bytes is also found. */
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

/* Change the header or directory and make the checksums right again: the values themselves must be
 * refused. */
static void test_hostile_values_are_refused(void **state)
{
    (void)state;
    static const struct {
        size_t at, width;
        uint64_t value;
    } cases[] = {
        {8, 4, 2},
        {12, 4, 4096},
        {16, 8, UINT64_MAX},
        {24, 4, 0},
        {24, 4, 65537},
        {24, 4, UINT32_MAX},
        {24, 4, 1},
        {24, 4, 4},
        {32, 8, 0},
        {40, 8, UINT64_MAX - 1},
        {48, 4, 0},
        {64, 8, 0},
        {191, 1, 'x'},
        {448, 4, MR_UPDATE_KIND_COUNT},
        {480, 4, 2},
        {484, 4, 1},
        {496, 4, MR_LR_KIND_COUNT},
        {516, 4, 17},
        {668, 1, 2},
        {112, 8, 0x7ff8000000000000u},
        {672, 4, 0x3fc00000},
        {672, 4, 0x4c000000},
        {772, 1, 2},
        {773, 1, 2},
        {774, 1, 255},
        {775, 1, 1},
        {784, 8, 0x7ff8000000000000u},
        {784, 8, 0x7ff0000000000000u},
        {784, 8, 0xbff0000000000000u},
        {816, 4, 65537},
        {820, 4, 4097},
        {828, 4, 0xbf800000},
        {828, 4, 0x7fc00000},
        {832, 4, 0x7f800000},
        {836, 4, 2},
        {840, 4, 0x3f800000},
        {840, 4, 0xbf000000},
        {840, 4, 0x7fc00000},
        {848, 4, 0x3f800000},
        {848, 4, 0xbf000000},
        {852, 1, 2},
        {853, 1, 1},
        {855, 1, 1},
        {856, 8, 0x3ff8000000000000u},
        {856, 8, 0xbfe0000000000000u},
        {856, 8, 0x7ff8000000000000u},
        {864, 8, 0xbfe0000000000000u},
        {864, 8, 0x7ff8000000000000u},
        {872, 8, 0x7ff0000000000000u},
        {880, 8, UINT64_MAX},
        {888, 8, 1000000},
        {896, 8, 0x4000000000000000u},
        {904, 8, 0x7ff8000000000000u},
        {912, 8, 0xbff0000000000000u},
        {924, 1, 1}, /* after the end of a text */
        {984, 1, 5}, /* invalid: a loss; one without the name of its field; weights of other classes, of no
                      * classes */
        {984, 1, 1},
        {988, 4, 3},
        {988, 4, 0},
        {992, 4, 1},
        {996, 4, 1}, /* repeats: once is 0; more than a batch has places */
        {996, 4, 0xFFFFFF},
        {1000, 1, 1},
        {1008, 8, 7}, /* a seed of the order, and it is not used */
        {1016, 1, 2},
        {1017, 1, 1},
        {719, 1, 'x'},
        {728, 8, 0},
        {728, 8, 9},
        {728, 8, 11},
        {728, 8, 64},
        {728, 8, 74},
        {728, 8, UINT64_MAX},
        {728, 8, ((uint64_t)64 << 20) + 1},
        {736, 4, 7},
        {60, 4, 1},
        {60, 4, 3},
        {656, 4, 4},
        {664, 4, 3},
        {1024 + 63, 1, 'x'},
        {1024 + 64, 4, MRI_ROLE_COUNT},
        {1024 + 68, 4, 0},
        {1024 + 68, 4, 5},
        {1024 + 72, 8, 0},
        {1024 + 72, 8, 1u << 30},
        {1024 + 72, 8, UINT64_MAX},
        {1024 + 72, 8, (uint64_t)1 << 62},
        {1024 + 104, 8, 0},
        {1024 + 112, 8, 17},
        {1024 + 124, 4, 1},
        {1024 + 128 + 80, 8, 1},
    };
    size_t bytes;
    const char *path = mrt_path("hostile.mrck");
    write_at(path, 1);
    uint8_t *good = mrt_read_file(path, &bytes), *bad = malloc(bytes);
    for (size_t i = 0; i < sizeof cases / sizeof cases[0]; i++) {
        mr_error err = MR_ERROR_INIT;
        memcpy(bad, good, bytes);
        memcpy(bad + cases[i].at, &cases[i].value, cases[i].width);
        mri_put_le32(bad + 28, mr_crc32c(0, bad + 1024, 128 * TENSORS));
        mri_put_le32(bad + 1020, mr_crc32c(0, bad, 1020));
        mrt_write_file(path, bad, bytes);
        const int rc = read_all(path, &err);
        if (rc != MR_EFORMAT && rc != MR_EUNSUPPORTED && rc != MR_ECHECKSUM)
            fail_msg("case %zu: status %d", i, rc);
    }
    free(good);
    free(bad);
}

/* Programs that did not know the convolutions, or nothing of the run, have left zeros there. */
static void test_older_files_do_not_know(void **state)
{
    (void)state;
    static const size_t known_until[] = {824, 744};
    size_t bytes;
    const char *path = mrt_path("older.mrck");
    mr_error none = MR_ERROR_INIT;
    int number = 1;
    mr_checkpoint_info older = info_of(1);
    older.class_weights = NULL, older.class_weight_count = 0; /* older files ended after the names */
    MRT_OK(mri_checkpoint_write(path, &older, NULL, tensors, TENSORS, fill, &number, &none), &none);
    uint8_t *file = mrt_read_file(path, &bytes);
    for (size_t i = 0; i < sizeof known_until / sizeof known_until[0]; i++) {
        mr_error err = MR_ERROR_INIT;
        mr_checkpoint_info info;
        memset(file + known_until[i], 0, 1020 - known_until[i]);
        mri_put_le32(file + 1020, mr_crc32c(0, file, 1020));
        mrt_write_file(path, file, bytes);
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

/* A file that is not a regular one neither blocks nor is waited for. */
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
        cmocka_unit_test(test_hostile_values_are_refused),
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
