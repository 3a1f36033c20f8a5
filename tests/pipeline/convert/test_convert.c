/* Tests of mr_convert(): the same bytes under all conditions, bad samples reported in order, nothing
 * overwritten by accident. */
#include <sys/stat.h>
#include <unistd.h>

#include "tests/pipeline/convert/converted.h"
#include "tests/pipeline/sets.h"

enum { CLASSES = 3, PER_CLASS = 40, SIDE = 24 };

static const char *class_names[] = {"ant", "bee", "cat"};

/* A folder of JPEGs of differing sizes; every `bad_every`-th (0: none) is cut short. */
static const char *make_folder(const char *name, int bad_every)
{
    static char folder[1024];
    snprintf(folder, sizeof folder, "%s", mrt_path("%s", name));
    mrt_mkdir(folder);
    for (int c = 0, at = 0; c < CLASSES; c++) {
        mrt_mkdir(mrt_path("%s/%s", name, class_names[c]));
        for (int i = 0; i < PER_CLASS; i++, at++) {
            uint8_t pixels[3 * (SIDE + 8) * SIDE];
            void *data;
            size_t bytes;
            mr_image image = {SIDE + (uint32_t)(i % 8), SIDE, 3, pixels};
            mrt_noise(pixels, sizeof pixels, (uint64_t)at);
            MRT_EQ(mr_image_encode_jpeg(&image, 90, &data, &bytes, NULL), MR_OK);
            const bool bad = bad_every && at % bad_every == bad_every - 1;
            mrt_write_file(mrt_path("%s/%s/%03d.jpg", name, class_names[c], i), data,
                           bad ? bytes / 2 : bytes);
            free(data);
        }
    }
    return folder;
}

typedef struct bad_seen {
    uint64_t samples[CLASSES * PER_CLASS];
    size_t count;
} bad_seen;

static void see_bad(void *context, const mr_error *what, uint64_t substitute)
{
    bad_seen *b = context;
    MRT_EQ(substitute, MR_NOWHERE);
    MRT_TRUE(what->text[0] && what->file[0]);
    b->samples[b->count++] = what->sample;
}

static bool exists(const char *path) { return access(path, F_OK) == 0; }

static void same_bytes_for_any_number_of_workers(void **state)
{
    (void)state;
    mr_source *src = mrt_source(make_folder("many", 0));
    for (uint32_t workers = 1; workers <= 5; workers += 2) {
        mr_error err = MR_ERROR_INIT;
        mr_convert_config cfg;
        mr_convert_result res;
        mr_convert_defaults(&cfg);
        cfg.workers = workers;
        MRT_OK(mr_convert(src, mrt_path("w%u.mrec", workers), &cfg, &res, &err), &err);
        MRT_EQ(res.records, CLASSES * PER_CLASS);
        MRT_EQ(res.bad, 0);
        struct stat st;
        MRT_EQ(stat(mrt_path("w%u.mrec", workers), &st), 0);
        MRT_EQ(res.bytes_out, st.st_size);
        mrt_same_files(mrt_path("w1.mrec"), mrt_path("w%u.mrec", workers));
    }
    mr_source_close(src);
}

static void pictures_and_labels_come_out_as_they_went_in(void **state)
{
    (void)state;
    mr_error err = MR_ERROR_INIT;
    mr_convert_config cfg;
    mr_convert_defaults(&cfg);
    mr_source *src = mrt_source(make_folder("kept", 0));
    MRT_OK(mr_convert(src, mrt_path("kept.mrec"), &cfg, NULL, &err), &err);
    mr_source *dst = mrt_source(mrt_path("kept.mrec"));
    const mr_source_info *si = mr_source_info_of(src), *di = mr_source_info_of(dst);
    void *sb = NULL, *db = NULL;
    size_t sn = 0, dn = 0;
    MRT_EQ(di->count, si->count);
    MRT_EQ(di->class_count, CLASSES);
    MRT_STR(di->class_names[2], "cat");
    MRT_STR(di->fields[di->image_field].name, "image");
    MRT_STR(di->fields[di->label_field].name, "label");
    for (uint64_t i = 0; i < si->count; i++) {
        mr_sample s, d;
        MRT_OK(mr_source_read(src, i, &sb, &sn, &s, &err), &err);
        MRT_OK(mr_source_read(dst, i, &db, &dn, &d, &err), &err);
        const mr_value *a = &s.value[si->image_field], *b = &d.value[di->image_field];
        MRT_EQ(a->type, b->type);
        MRT_EQ(a->bytes, b->bytes);
        assert_memory_equal(a->data, b->data, a->bytes);
        MRT_EQ(s.value[si->label_field].i, d.value[di->label_field].i);
    }
    free(sb);
    free(db);
    mr_source_close(src);
    mr_source_close(dst);
}

static void bad_samples_are_reported_in_order_and_left_out(void **state)
{
    (void)state;
    mr_error err = MR_ERROR_INIT;
    mr_convert_config cfg;
    mr_convert_result res;
    bad_seen seen = {.count = 0};
    mr_convert_defaults(&cfg);
    cfg.workers = 3;
    cfg.on_bad = see_bad;
    cfg.context = &seen;
    mr_source *src = mrt_source(make_folder("bad", 7));
    MRT_OK(mr_convert(src, mrt_path("bad.mrec"), &cfg, &res, &err), &err);
    MRT_EQ(res.bad, CLASSES * PER_CLASS / 7);
    MRT_EQ(seen.count, res.bad);
    MRT_EQ(res.records + res.bad, CLASSES * PER_CLASS);
    for (size_t i = 0; i < seen.count; i++) MRT_EQ(seen.samples[i], 7 * i + 6);

    cfg.max_bad = 2;
    seen.count = 0;
    MRT_EQ(mr_convert(src, mrt_path("bad2.mrec"), &cfg, &res, &err), MR_EBADSAMPLE);
    MRT_EQ(seen.count, 3);
    MRT_HAS(err.text, "more than 2 bad samples");
    cfg.max_bad = 1;
    MRT_EQ(mr_convert(src, mrt_path("bad2.mrec"), &cfg, &res, &err), MR_EEXIST); /* its records are kept */
    MRT_HAS(err.text, "--resume");
    MRT_HAS(err.text, "--force");
    MRT_TRUE(exists(mrt_path("bad2.mrec.part")));
    cfg.force = true;
    MRT_EQ(mr_convert(src, mrt_path("bad2.mrec"), &cfg, &res, &err), MR_EBADSAMPLE);
    MRT_HAS(err.text, "more than 1 bad sample;");
    MRT_TRUE(!exists(mrt_path("bad2.mrec")));
    mr_source_close(src);
}

static void without_check_damaged_pictures_are_kept(void **state)
{
    (void)state;
    mr_error err = MR_ERROR_INIT;
    mr_convert_config cfg;
    mr_convert_result res;
    mr_convert_defaults(&cfg);
    cfg.check = false;
    mr_source *src = mrt_source(make_folder("unchecked", 7));
    MRT_OK(mr_convert(src, mrt_path("unchecked.mrec"), &cfg, &res, &err), &err);
    MRT_EQ(res.bad, 0);
    mr_source_close(src);
}

static void nothing_good_is_an_error_and_leaves_nothing(void **state)
{
    (void)state;
    mr_error err = MR_ERROR_INIT;
    mr_convert_config cfg;
    mr_convert_defaults(&cfg);
    mr_source *src = mrt_source(make_folder("all-bad", 1));
    MRT_EQ(mr_convert(src, mrt_path("all-bad.mrec"), &cfg, NULL, &err), MR_EBADSAMPLE);
    MRT_HAS(err.text, "could be converted; the first: ");
    MRT_HAS(err.text, "sample 0");
    MRT_TRUE(!exists(mrt_path("all-bad.mrec")));
    MRT_TRUE(!exists(mrt_path("all-bad.mrec.part")));
    mr_source_close(src);
}

/* ---- sizes ---- */

static void resize_makes_the_shorter_side_at_most_so_long(void **state)
{
    (void)state;
    mr_error err = MR_ERROR_INIT;
    mr_convert_config cfg;
    mr_convert_defaults(&cfg);
    cfg.resize = 12;
    mr_source *src = mrt_source(make_folder("resized", 0));
    MRT_OK(mr_convert(src, mrt_path("resized.mrec"), &cfg, NULL, &err), &err);
    mr_source *dst = mrt_source(mrt_path("resized.mrec"));
    void *b = NULL;
    size_t n = 0;
    for (uint64_t i = 0; i < 8; i++) {
        mr_sample s;
        mr_image_header h;
        MRT_OK(mr_source_read(dst, i, &b, &n, &s, &err), &err);
        const mr_value *v = &s.value[mr_source_info_of(dst)->image_field];
        MRT_OK(mr_image_header_parse(v->data, v->bytes, &h, &err), &err);
        MRT_EQ(h.type, MR_TYPE_JPEG);
        MRT_EQ(h.height, 12);
        MRT_EQ(h.width, ((SIDE + i) * 12 + SIDE / 2) / SIDE);
    }
    free(b);
    mr_source_close(dst);
    mr_source_close(src);
}

static void smaller_pictures_keep_their_bytes(void **state)
{
    (void)state;
    mr_error err = MR_ERROR_INIT;
    mr_convert_config cfg;
    mr_convert_defaults(&cfg);
    mr_source *src = mrt_source(make_folder("small", 0));
    MRT_OK(mr_convert(src, mrt_path("small-0.mrec"), &cfg, NULL, &err), &err);
    cfg.resize = SIDE;
    MRT_OK(mr_convert(src, mrt_path("small-1.mrec"), &cfg, NULL, &err), &err);
    mr_source *a = mrt_source(mrt_path("small-0.mrec")), *b = mrt_source(mrt_path("small-1.mrec"));
    MRT_EQ(mr_source_info_of(a)->total_bytes, mr_source_info_of(b)->total_bytes);
    mr_source_close(a);
    mr_source_close(b);
    mr_source_close(src);
}

static void centre_squares_have_one_shape(void **state)
{
    (void)state;
    mr_error err = MR_ERROR_INIT;
    mr_convert_config cfg;
    mr_convert_defaults(&cfg);
    cfg.store = MR_STORE_RAW;
    cfg.resize = 16;
    cfg.center_square = true;
    cfg.decode.channels = 3;
    mr_source *src = mrt_source(make_folder("square", 0));
    MRT_OK(mr_convert(src, mrt_path("square.mrec"), &cfg, NULL, &err), &err);
    mr_source *dst = mrt_source(mrt_path("square.mrec"));
    const mr_source_info *info = mr_source_info_of(dst);
    const mr_field *f = &info->fields[info->image_field];
    MRT_EQ(f->type, MR_TYPE_PIXELS);
    MRT_EQ(f->ndim, 3);
    MRT_EQ(f->dim[0] * 1000000 + f->dim[1] * 1000 + f->dim[2], 16016003);
    MRT_EQ(info->height, 16);
    mr_source_close(dst);
    mr_source_close(src);
}

/* The middle of the picture, not a corner: a white square in the middle of black stays white all over. */
static void centre_square_takes_the_middle(void **state)
{
    (void)state;
    mr_error err = MR_ERROR_INIT;
    mr_convert_config cfg;
    uint8_t pixels[8 * 24];
    void *data, *b = NULL;
    size_t bytes, n = 0;
    mr_sample s;
    for (int i = 0; i < 8 * 24; i++) pixels[i] = i % 24 >= 8 && i % 24 < 16 ? 255 : 0;
    mr_image image = {24, 8, 1, pixels};
    MRT_OK(mr_image_encode_png(&image, &data, &bytes, &err), &err);
    mrt_mkdir(mrt_path("middle"));
    mrt_mkdir(mrt_path("middle/x"));
    mrt_write_file(mrt_path("middle/x/0.png"), data, bytes);
    free(data);
    mr_convert_defaults(&cfg);
    cfg.store = MR_STORE_RAW;
    cfg.resize = 8;
    cfg.center_square = true;
    mr_source *src = mrt_source(mrt_path("middle"));
    MRT_OK(mr_convert(src, mrt_path("middle.mrec"), &cfg, NULL, &err), &err);
    mr_source *dst = mrt_source(mrt_path("middle.mrec"));
    MRT_OK(mr_source_read(dst, 0, &b, &n, &s, &err), &err);
    const mr_value *v = &s.value[mr_source_info_of(dst)->image_field];
    MRT_EQ(v->bytes, 64);
    for (int i = 0; i < 64; i++) MRT_EQ(((const uint8_t *)v->data)[i], 255);
    free(b);
    mr_source_close(dst);
    mr_source_close(src);
}

/* ---- stopping and going on ---- */

typedef struct stopper {
    volatile int stop;
    uint64_t at;
} stopper;

static void stop_there(void *context, uint64_t done, uint64_t count, uint64_t bytes)
{
    stopper *s = context;
    (void)count, (void)bytes;
    if (done >= s->at) s->stop = 1;
}

static void remove_asides(const char *dst, uint32_t shards)
{
    char path[1200];
    snprintf(path, sizeof path, "%s.part", dst);
    unlink(path);
    for (uint32_t k = 0; k < shards; k++) {
        snprintf(path, sizeof path, "%.*s-%05u.mrec.part", (int)(strlen(dst) - 5), dst, k);
        unlink(path);
    }
}

static void stopped_and_resumed(const char *name, uint64_t shard_bytes, int bad_every)
{
    mr_error err = MR_ERROR_INIT;
    mr_convert_config cfg;
    mr_convert_result whole, part;
    char want[1024], got[1024];
    mr_convert_defaults(&cfg);
    cfg.workers = 2;
    cfg.shard_bytes = shard_bytes;
    mr_source *src = mrt_source(make_folder(name, bad_every));
    snprintf(want, sizeof want, "%s", mrt_path("%s-want.mrec", name));
    MRT_OK(mr_convert(src, want, &cfg, &whole, &err), &err);
    for (uint64_t step = 1; step < CLASSES * PER_CLASS; step += MRT_SANITIZED ? 51 : 17) {
        stopper s = {0, 0};
        int rc, runs = 0;
        snprintf(got, sizeof got, "%s", mrt_path("%s-%u.mrec", name, (unsigned)step));
        cfg.resume = true;
        cfg.progress = stop_there;
        cfg.context = &s;
        cfg.stop = &s.stop;
        do {
            s.stop = 0;
            s.at += step;
            rc = mr_convert(src, got, &cfg, &part, &err);
            if (rc == MR_ECANCELED) MRT_TRUE(!exists(got));
            MRT_TRUE(++runs < 200);
            if (runs % 3 == 0)
                remove_asides(got, whole.shards); /* a kill may leave no whole record in them */
        } while (rc == MR_ECANCELED);
        MRT_OK(rc, &err);
        MRT_EQ(part.records, whole.records);
        MRT_EQ(part.bad, whole.bad);
        MRT_EQ(part.bytes_out, whole.bytes_out);
        MRT_EQ(part.shards, whole.shards);
        for (uint32_t k = 0; k < (shard_bytes ? whole.shards : 0); k++)
            mrt_same_files(mrt_path("%s-want-%05u.mrec", name, k),
                           mrt_path("%s-%u-%05u.mrec", name, (unsigned)step, k));
        if (!shard_bytes) mrt_same_files(want, got);
        MRT_OK(mr_convert(src, got, &cfg, &part, &err), &err); /* resuming a complete conversion: nothing is
                                                                * done again */
        MRT_EQ(part.resumed, whole.records);
        MRT_EQ(part.bad, whole.bad);
    }
    mr_source_close(src);
}

static void a_stopped_run_goes_on_to_the_same_bytes(void **state)
{
    (void)state;
    stopped_and_resumed("stop", 0, 0);
}

static void with_bad_samples_too(void **state)
{
    (void)state;
    stopped_and_resumed("stop-bad", 0, 5);
}

static void with_shards_too(void **state)
{
    (void)state;
    stopped_and_resumed("stop-shards", 40000, 11);
}

static void resume_refuses_another_conversion(void **state)
{
    (void)state;
    mr_error err = MR_ERROR_INIT;
    mr_convert_config cfg;
    mr_convert_defaults(&cfg);
    mr_source *src = mrt_source(make_folder("other", 0));
    MRT_OK(mr_convert(src, mrt_path("other.mrec"), &cfg, NULL, &err), &err);
    cfg.resume = true;
    cfg.quality = 50;
    MRT_EQ(mr_convert(src, mrt_path("other.mrec"), &cfg, NULL, &err), MR_EEXIST);
    MRT_HAS(err.text, "was made otherwise: ");
    mr_source_close(src);
}

/* The kinds of pictures are a setting that decides which samples are bad: resume needs the same ones. */
static void resume_refuses_other_kinds_of_pictures(void **state)
{
    (void)state;
    mr_error err = MR_ERROR_INIT;
    mr_convert_config cfg;
    mr_convert_defaults(&cfg);
    mr_source *src = mrt_source(make_folder("kinds", 0));
    MRT_OK(mr_convert(src, mrt_path("kinds-all.mrec"), &cfg, NULL, &err), &err);
    cfg.resume = true;
    cfg.decode.pictures = 255; /* each kind by name: all of them */
    MRT_OK(mr_convert(src, mrt_path("kinds-all.mrec"), &cfg, NULL, &err), &err);
    cfg.decode.pictures = MR_PICTURES_JPEG | MR_PICTURES_PNG;
    MRT_EQ(mr_convert(src, mrt_path("kinds-all.mrec"), &cfg, NULL, &err), MR_EEXIST);
    MRT_HAS(err.text, "--pictures was all, is jpeg,png");
    MRT_OK(mr_convert(src, mrt_path("kinds-two.mrec"), &cfg, NULL, &err), &err);
    MRT_OK(mr_convert(src, mrt_path("kinds-two.mrec"), &cfg, NULL, &err), &err);
    cfg.decode.pictures = MR_PICTURES_JPEG;
    MRT_EQ(mr_convert(src, mrt_path("kinds-two.mrec"), &cfg, NULL, &err), MR_EEXIST);
    MRT_HAS(err.text, "--pictures was jpeg,png, is jpeg");
    mr_source_close(src);
}

/* ---- shards ---- */

static void shards_stay_below_their_size_and_hold_everything(void **state)
{
    (void)state;
    mr_error err = MR_ERROR_INIT;
    mr_convert_config cfg;
    mr_convert_result res;
    mr_convert_defaults(&cfg);
    cfg.shard_bytes = 48000;
    mr_source *src = mrt_source(make_folder("shards", 0));
    MRT_OK(mr_convert(src, mrt_path("shards.mrec"), &cfg, &res, &err), &err);
    MRT_TRUE(res.shards > 2);
    mr_source *dst = mrt_source(mrt_path("shards.mrec"));
    MRT_EQ(mr_source_info_of(dst)->count, CLASSES * PER_CLASS);
    MRT_EQ(mr_source_info_of(dst)->file_count, res.shards);
    mr_source_close(dst);

    const uint32_t before = res.shards; /* larger shards, so fewer: surplus files are removed */
    cfg.shard_bytes = 100000;
    cfg.force = true;
    MRT_OK(mr_convert(src, mrt_path("shards.mrec"), &cfg, &res, &err), &err);
    MRT_TRUE(res.shards < before);
    MRT_TRUE(!exists(mrt_path("shards-%05u.mrec", res.shards)));
    mr_source_close(src);
}

/* ---- refused calls ---- */

static void input_is_never_output(void **state)
{
    (void)state;
    mr_error err = MR_ERROR_INIT;
    mr_convert_config cfg;
    mr_convert_defaults(&cfg);
    mr_source *folder = mrt_source(make_folder("input", 0));
    MRT_OK(mr_convert(folder, mrt_path("input.mrec"), &cfg, NULL, &err), &err);
    mrt_convert_refused(folder, mrt_path("input.mrec"), &cfg, MR_EEXIST, "exists");
    mrt_convert_refused(folder, mrt_path("input/out.mrec"), &cfg, MR_EINVAL, "inside the input");
    mrt_convert_refused(folder, mrt_path("input/ant/out.mrec"), &cfg, MR_EINVAL, "inside the input");
    cfg.force = true;
    mr_source *mrec = mrt_source(mrt_path("input.mrec"));
    mrt_convert_refused(mrec, mrt_path("input.mrec"), &cfg, MR_EINVAL, "also the input");
    MRT_EQ(symlink(mrt_path("input.mrec"), mrt_path("input-link.mrec")), 0);
    mrt_convert_refused(mrec, mrt_path("input-link.mrec"), &cfg, MR_EINVAL, "also the input");
    MRT_OK(mr_convert(mrec, mrt_path("input-again.mrec"), &cfg, NULL, &err), &err);
    mr_source_close(mrec);
    mr_source_close(folder);
}

static void settings_are_checked(void **state)
{
    (void)state;
    mr_convert_config cfg;
    mr_source *src = mrt_source(make_folder("settings", 0));
    mr_convert_defaults(&cfg);
    cfg.quality = 0;
    mrt_convert_refused(src, mrt_path("s.mrec"), &cfg, MR_EINVAL, "quality");
    mr_convert_defaults(&cfg);
    cfg.resize = 70000;
    mrt_convert_refused(src, mrt_path("s.mrec"), &cfg, MR_EINVAL, "resize");
    mr_convert_defaults(&cfg);
    cfg.workers = 5000;
    mrt_convert_refused(src, mrt_path("s.mrec"), &cfg, MR_EINVAL, "workers");
    mr_convert_defaults(&cfg);
    cfg.center_square = true;
    mrt_convert_refused(src, mrt_path("s.mrec"), &cfg, MR_EINVAL, "centre square");
    mr_convert_defaults(&cfg);
    cfg.store = (mr_store)7;
    mrt_convert_refused(src, mrt_path("s.mrec"), &cfg, MR_EINVAL, "store");
    mr_source_close(src);
}

static void a_label_outside_the_classes_is_a_bad_sample(void **state)
{
    (void)state;
    enum { RECORD = 3073, COUNT = 80 };
    mr_error err = MR_ERROR_INIT;
    uint8_t *data = calloc(COUNT, RECORD);
    MRT_TRUE(data != NULL);
    for (int i = 0; i < COUNT; i++) data[i * RECORD] = (uint8_t)(i % 10);
    data[70 * RECORD] = 10;
    data[75 * RECORD] = 255;
    mrt_write_file(mrt_path("labels.bin"), data, COUNT * RECORD);
    free(data);
    mr_source *src = mrt_source(mrt_path("labels.bin"));
    mr_convert_config cfg;
    mr_convert_result res;
    bad_seen seen = {.count = 0};
    mr_convert_defaults(&cfg);
    cfg.on_bad = see_bad;
    cfg.context = &seen;
    MRT_OK(mr_convert(src, mrt_path("labels.mrec"), &cfg, &res, &err), &err);
    MRT_EQ(res.records, COUNT - 2);
    MRT_EQ(seen.count, 2);
    MRT_EQ(seen.samples[0], 70);
    MRT_EQ(seen.samples[1], 75);
    mr_source_close(src);
}

static void every_allocation_may_fail(void **state)
{
    (void)state;
    mr_source *src = mrt_source(make_folder("memory", 0));
    mr_convert_config cfg;
    mr_convert_defaults(&cfg);
    cfg.workers = 1;
    cfg.force = true;
    long n = 0;
    for (int reached = 0; !reached; n += n < 60 ? 1 : 13) {
        mr_error err = MR_ERROR_INIT;
        mrt_fail_alloc_at(n);
        const int rc = mr_convert(src, mrt_path("memory.mrec"), &cfg, NULL, &err);
        const int failed = mrt_alloc_failed();
        mrt_fail_alloc_at(-1);
        if (!failed) {
            MRT_OK(rc, &err);
            reached = 1;
        } else if (rc != MR_OK) { /* a buffer that is only nice to have may be done without */
            MRT_TRUE(rc == MR_ENOMEM || rc == MR_EIO);
            MRT_TRUE(err.text[0] != '\0');
        }
        MRT_TRUE(n < 100000);
    }
    MRT_TRUE(n > 20);
    mr_source_close(src);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(same_bytes_for_any_number_of_workers),
        cmocka_unit_test(pictures_and_labels_come_out_as_they_went_in),
        cmocka_unit_test(bad_samples_are_reported_in_order_and_left_out),
        cmocka_unit_test(without_check_damaged_pictures_are_kept),
        cmocka_unit_test(nothing_good_is_an_error_and_leaves_nothing),
        cmocka_unit_test(resize_makes_the_shorter_side_at_most_so_long),
        cmocka_unit_test(smaller_pictures_keep_their_bytes),
        cmocka_unit_test(centre_squares_have_one_shape),
        cmocka_unit_test(centre_square_takes_the_middle),
        cmocka_unit_test(a_stopped_run_goes_on_to_the_same_bytes),
        cmocka_unit_test(with_bad_samples_too),
        cmocka_unit_test(with_shards_too),
        cmocka_unit_test(resume_refuses_another_conversion),
        cmocka_unit_test(resume_refuses_other_kinds_of_pictures),
        cmocka_unit_test(shards_stay_below_their_size_and_hold_everything),
        cmocka_unit_test(input_is_never_output),
        cmocka_unit_test(settings_are_checked),
        cmocka_unit_test(a_label_outside_the_classes_is_a_bad_sample),
        cmocka_unit_test(every_allocation_may_fail),
    };
    return mrt_run(tests);
}
