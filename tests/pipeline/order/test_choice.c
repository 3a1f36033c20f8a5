/* A subset of a data set: the samples that fractions from 0 to 1 select, the same in every run, none twice
 * and none left out; renumbered, with the bytes, labels, names and errors of the original samples, in every
 * kind of source. */
#include <math.h>
#include <stdlib.h>
#include <sys/stat.h>

#include "base/util.h"
#include "formats/source/source.h"
#include "mrt.h"
#include "tests/pipeline/sets.h"

static int try_take(mr_source **out, const char *path, double from, double to, mr_error *err)
{
    mr_source_config cfg;
    mr_source_defaults(&cfg);
    cfg.take_from = from;
    cfg.take_to = to;
    return mr_source_open(out, path, &cfg, err);
}

static mr_source *take(const char *path, double from, double to)
{
    mr_source *src;
    mr_error err = MR_ERROR_INIT;
    MRT_OK(try_take(&src, path, from, to, &err), &err);
    return src;
}

/* ---- which ---- */

/* Samples of an IDX set whose pixels say which they are: adds them to seen, and checks that they come in the
 * order of the data. */
static void see(const mr_source *src, uint8_t *seen)
{
    void *buffer = NULL;
    size_t room = 0;
    mr_sample sample;
    mr_error err = MR_ERROR_INIT;
    uint64_t last = 0;
    for (uint64_t i = 0; i < mr_source_info_of(src)->count; i++) {
        MRT_OK(mr_source_read(src, i, &buffer, &room, &sample, &err), &err);
        const uint8_t *p = sample.value[0].data;
        const uint64_t number = p[0] + (uint64_t)256 * p[1];
        MRT_TRUE(i == 0 || number > last);
        last = number;
        seen[number]++;
    }
    free(buffer);
}

enum { COUNT = 1000 };

static const char *numbered_set(void)
{
    mr_field fields[] = {{.name = "image", .type = MR_TYPE_PIXELS, .ndim = 3, .dim = {1, 2, 1}},
                         {.name = "label", .type = MR_TYPE_INT}};
    mr_writer *w = mrt_writer("numbered", fields, 2, 0);
    mr_error err = MR_ERROR_INIT;
    for (uint64_t i = 0; i < COUNT; i++) {
        const uint8_t pixels[2] = {(uint8_t)i, (uint8_t)(i >> 8)};
        const mr_value v[] = {
            {.type = MR_TYPE_PIXELS, .data = pixels, .bytes = 2, .ndim = 3, .dim = {1, 2, 1}},
            {.type = MR_TYPE_INT, .i = (int64_t)(i % 10)}};
        MRT_OK(mr_writer_append(w, i, v, &err), &err);
    }
    MRT_OK(mr_writer_finish(w, &err), &err);
    return mrt_path("numbered.mrec");
}

static void parts_are_disjoint_and_whole(void **state)
{
    (void)state;
    static const double cuts[][5] = {{0, 0.9, 1}, {0, 0.1, 0.5, 1}, {0, 0.333, 0.3337, 0.99999, 1}, {0, 1}};
    const char *path = numbered_set();
    for (size_t c = 0; c < MRI_ARRAY_COUNT(cuts); c++) {
        uint8_t seen[COUNT] = {0};
        for (int k = 0; cuts[c][k] < 1; k++) {
            const double from = cuts[c][k], to = cuts[c][k + 1];
            const uint64_t expected = (uint64_t)floor(to * COUNT + 0.5) - (uint64_t)floor(from * COUNT + 0.5);
            if (expected == 0) continue;
            mr_source *src = take(path, from, to);
            MRT_EQ(mr_source_info_of(src)->count, expected);
            see(src, seen);
            mr_source_close(src);
        }
        for (int i = 0; i < COUNT; i++) MRT_EQ(seen[i], 1);
    }
    uint8_t half[COUNT] = {0}, most[COUNT] = {0}; /* a smaller part from the same end lies in the larger one
                                                   */
    mr_source *a = take(path, 0, 0.5), *b = take(path, 0, 0.8);
    see(a, half);
    see(b, most);
    for (int i = 0; i < COUNT; i++) MRT_TRUE(half[i] <= most[i]);
    MRT_TRUE(mr_source_info_of(a)->fingerprint != mr_source_info_of(b)->fingerprint);
    mr_source_close(a);
    a = take(path, 0, 0.8);
    MRT_EQ(mr_source_info_of(a)->fingerprint, mr_source_info_of(b)->fingerprint);
    mr_source_close(a);
    mr_source_close(b);
    uint32_t tenth = 0; /* drawn: each tenth of the data has about as many; 80 expected, deviation 4 */
    for (int i = 0; i < COUNT; i++) {
        tenth += most[i];
        if (i % 100 < 99) continue;
        MRT_TRUE(tenth >= 64 && tenth <= 96);
        tenth = 0;
    }
}

/* The whole is the data set as ever: its checkpoints and caches go on. */
static void all_is_all(void **state)
{
    (void)state;
    mr_error err = MR_ERROR_INIT;
    mr_source *plain, *all = take(numbered_set(), 0, 1);
    MRT_OK(mr_source_open(&plain, mrt_path("numbered.mrec"), NULL, &err), &err);
    const mr_source_info *a = mr_source_info_of(plain), *b = mr_source_info_of(all);
    MRT_TRUE(a->fingerprint == b->fingerprint && a->count == b->count && a->memory_bytes == b->memory_bytes);
    mr_source_close(plain);
    mr_source_close(all);
}

static void what_is_no_part_is_refused(void **state)
{
    (void)state;
    static const double wrong[][2] = {{0.5, 0.5}, {0.6, 0.5}, {-0.1, 1}, {0, 1.01}, {NAN, 1}, {0, NAN}};
    const char *path = numbered_set();
    mr_source *src;
    for (size_t k = 0; k < MRI_ARRAY_COUNT(wrong); k++) {
        mr_error err = MR_ERROR_INIT;
        MRT_EQ(try_take(&src, path, wrong[k][0], wrong[k][1], &err), MR_EINVAL);
        MRT_HAS(err.text, "expected two parts of 1, the first below the second");
    }
    mr_error err = MR_ERROR_INIT;
    MRT_EQ(try_take(&src, path, 0.5001, 0.5002, &err), MR_EINVAL);
    MRT_HAS(err.text, "take 0.5001:0.5002 of 1000 samples: that takes no sample");
    mr_source_config cfg;
    mr_source_defaults(&cfg);
    cfg.take_to = 0.5;
    cfg.memory_bytes = 1000;
    MRT_EQ(mr_source_open(&src, path, &cfg, &err), MR_ELIMIT);
}

/* ---- identity of the samples ---- */

static void convert(const mr_source *src, const char *name, mr_to to)
{
    mr_convert_config cfg;
    mr_convert_result result;
    mr_error err = MR_ERROR_INIT;
    mr_convert_defaults(&cfg);
    cfg.to = to;
    cfg.force = true;
    MRT_OK(mr_convert(src, mrt_path("%s", name), &cfg, &result, &err), &err);
}

static bool same_bytes(const mr_value *a, const mr_value *b)
{
    return a->type == b->type && a->bytes == b->bytes && memcmp(a->data, b->data, a->bytes) == 0;
}

/* Sample k of some is sample n of all. */
static bool is_sample(const mr_source *some, uint64_t k, const mr_source *all, uint64_t n)
{
    mr_error err = MR_ERROR_INIT;
    mr_extent a, b;
    MRT_OK(mr_source_extent(some, k, &a, &err), &err);
    MRT_OK(mr_source_extent(all, n, &b, &err), &err);
    char here[512], there[512];
    return a.file == b.file && a.offset == b.offset && a.bytes == b.bytes &&
           strcmp(mr_source_sample_path(some, k, here, sizeof here),
                  mr_source_sample_path(all, n, there, sizeof there)) == 0;
}

static void check_source(const char *path)
{
    mr_source *some = take(path, 0.25, 0.75), *all = take(path, 0, 1);
    const mr_source_info *info = mr_source_info_of(some);
    void *buffers[2] = {NULL, NULL};
    size_t rooms[2] = {0, 0};
    mr_error err = MR_ERROR_INIT;
    uint64_t n = 0, bytes = 0, most = 0;
    MRT_EQ(info->count, mr_source_info_of(all)->count / 2);
    for (uint64_t k = 0; k < info->count; k++, n++) {
        mr_sample a, b;
        mr_extent e;
        int64_t label, other;
        char name[128], theirs[128];
        while (!is_sample(some, k, all, n)) MRT_TRUE(++n < mr_source_info_of(all)->count);
        MRT_OK(mr_source_read(some, k, &buffers[0], &rooms[0], &a, &err), &err);
        MRT_OK(mr_source_read(all, n, &buffers[1], &rooms[1], &b, &err), &err);
        MRT_TRUE(same_bytes(&a.value[info->image_field], &b.value[info->image_field]));
        MRT_EQ(a.value[info->label_field].i, b.value[info->label_field].i);
        MRT_EQ(mr_source_label(some, k, &label), mr_source_label(all, n, &other));
        if (mr_source_label(some, k, &label) == MR_OK) MRT_EQ(label, other);
        MRT_STR(mr_source_sample_name(some, k, NULL, 0, name, sizeof name),
                mr_source_sample_name(all, n, NULL, 0, theirs, sizeof theirs));
        MRT_OK(mr_source_extent(some, k, &e, &err), &err);
        bytes += e.bytes;
        most = e.bytes > most ? e.bytes : most;
    }
    MRT_TRUE(info->total_bytes == bytes && info->max_extent_bytes == most);
    mr_extent none;
    MRT_EQ(mr_source_extent(some, info->count, &none, &err), MR_EINVAL);
    MRT_OK(mr_source_check(some, &err), &err);
    free(buffers[0]);
    free(buffers[1]);
    mr_source_close(some);
    mr_source_close(all);
}

static void every_source_has_parts(void **state)
{
    (void)state;
    mr_source *src = mrt_source(mrt_folder_set("pictures", 3, 20, 16, true));
    static const char *const names[] = {"taken.mrec", "taken.tfrecord", "taken.tar", "taken.mds",
                                        "taken.rec"};
    static const mr_to kinds[] = {MR_TO_MREC, MR_TO_TFRECORD, MR_TO_TAR, MR_TO_MDS, MR_TO_RECORDIO};
    for (size_t k = 0; k < MRI_ARRAY_COUNT(kinds); k++) {
        convert(src, names[k], kinds[k]);
        check_source(mrt_path("%s", names[k]));
        check_source(mrt_path("%s", names[k])); /* from its index, where it has one */
    }
    mr_source_close(src);
    check_source(mrt_path("pictures"));
    check_source(mrt_idx_set("taken", 60, 3, 4));
}

/* ---- errors, inputs ---- */

static void errors_have_the_number_that_was_asked_for(void **state)
{
    (void)state;
    enum { HURT = 7 };
    const char *path = numbered_set();
    mr_source *src = take(path, 0.5, 1);
    mr_extent e;
    mr_error err = MR_ERROR_INIT;
    MRT_OK(mr_source_extent(src, HURT, &e, &err), &err);
    FILE *f = fopen(path, "r+b");
    assert_non_null(f);
    MRT_EQ(fseek(f, (long)(e.offset + e.bytes - 9), SEEK_SET), 0);
    fputc(0xA5, f);
    fclose(f);
    void *buffer = NULL;
    size_t room = 0;
    mr_sample sample;
    for (uint64_t k = 0; k < mr_source_info_of(src)->count; k++)
        MRT_EQ(mr_source_read(src, k, &buffer, &room, &sample, &err), k == HURT ? MR_ECHECKSUM : MR_OK);
    MRT_EQ(err.sample, HURT);
    MRT_TRUE(err.offset >= e.offset && err.offset < e.offset + e.bytes);
    free(buffer);
    mr_source_close(src);
}

/* A file of the data is not written over, whether its sample is taken or not. */
static void what_is_not_taken_is_an_input_too(void **state)
{
    (void)state;
    mr_source *src = take(mrt_folder_set("inputs", 1, 10, 16, false), 0, 0.1);
    MRT_EQ(mr_source_info_of(src)->count, 1);
    for (int i = 0; i < 10; i++) {
        struct stat st;
        MRT_EQ(stat(mrt_path("inputs/class00/%04d.jpg", i), &st), 0);
        MRT_TRUE(mri_source_input(src, &st) != NULL);
    }
    mr_source_close(src);
}

/* ---- loaders ---- */

static void loaders_deliver_them_once(void **state)
{
    (void)state;
    static const double parts[][2] = {{0, 0.35}, {0.35, 0.4}, {0.4, 1}};
    const char *path = numbered_set();
    uint8_t seen[COUNT] = {0};
    for (size_t p = 0; p < MRI_ARRAY_COUNT(parts); p++)
        for (uint64_t resident = 0; resident < 2; resident++) {
            mr_source *src = take(path, parts[p][0], parts[p][1]);
            mr_loader_config cfg = mrt_training(64, 1, "none", NULL, 0);
            mr_error err = MR_ERROR_INIT;
            mr_loader *l;
            mr_batch b;
            if (!resident) cfg.resident_bytes = 0;
            MRT_OK(mr_loader_open(&l, src, &cfg, &err), &err);
            int rc;
            while ((rc = mr_loader_next(l, &b, MR_FOREVER, &err)) == MR_OK) {
                for (uint32_t i = 0; i < b.count; i++) {
                    const uint32_t number = b.pixels[2 * i] + 256u * b.pixels[2 * i + 1];
                    MRT_EQ(b.labels[i], number % 10);
                    MRT_TRUE(b.ids[i] < mr_source_info_of(src)->count);
                    seen[number]++;
                }
                MRT_OK(mr_loader_release(l, &b, NULL), NULL);
            }
            MRT_EQ(rc, MR_EEND);
            mr_loader_close(l);
            mr_source_close(src);
        }
    for (int i = 0; i < COUNT; i++) MRT_EQ(seen[i], 2);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(parts_are_disjoint_and_whole),
        cmocka_unit_test(all_is_all),
        cmocka_unit_test(what_is_no_part_is_refused),
        cmocka_unit_test(every_source_has_parts),
        cmocka_unit_test(errors_have_the_number_that_was_asked_for),
        cmocka_unit_test(what_is_not_taken_is_an_input_too),
        cmocka_unit_test(loaders_deliver_them_once),
    };
    return mrt_run(tests);
}
