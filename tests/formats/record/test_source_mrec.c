/* Sources over our own files: one .mrec, and shard lists. */
#include "formats/source/source.h"
#include <unistd.h>

#include "tests/formats/record/mrt_mrec.h"

static mr_source *open_source(const char *path)
{
    mr_source *src;
    mr_error err = MR_ERROR_INIT;
    MRT_OK(mr_source_open(&src, path, NULL, &err), &err);
    return src;
}

static int open_error(const char *path, mr_error *err)
{
    mr_source *src = (mr_source *)err;
    const int rc = mr_source_open(&src, path, NULL, err);
    MRT_TRUE(rc != MR_OK && src == NULL);
    MRT_TRUE(err->text[0] != '\0');
    return rc;
}

static void one_file(void **state)
{
    (void)state;
    const mr_writer_config cfg = mrt_writer_config();
    mrt_write_mrec(mrt_path("one.mrec"), 200, &cfg);
    rename(mrt_path("one.mrec"), mrt_path("one.jpg")); /* a name says nothing */
    mr_source *src = open_source(mrt_path("one.jpg"));
    const mr_source_info *info = mr_source_info_of(src);
    MRT_STR(info->format, "mrec");
    MRT_EQ(info->count, 200);
    MRT_EQ(info->class_count, 3);
    MRT_EQ(info->image_field, 0);
    MRT_EQ(info->label_field, 1);
    MRT_EQ(info->file_count, 1);
    void *buf = NULL;
    size_t buf_bytes = 0;
    uint64_t total = 0, most = 0;
    for (uint64_t i = 0; i < 200; i++) {
        mr_sample s;
        mr_extent e;
        int64_t label;
        mr_error err = MR_ERROR_INIT;
        MRT_OK(mr_source_read(src, i, &buf, &buf_bytes, &s, &err), &err);
        mrt_check_values(&s, i, mrt_image_bytes(i));
        MRT_EQ(mr_source_label(src, i, &label), MR_OK);
        MRT_EQ(label, i % 3);
        MRT_OK(mr_source_extent(src, i, &e, &err), &err);
        total += e.bytes;
        most = e.bytes > most ? e.bytes : most;
    }
    MRT_EQ(info->total_bytes, total);
    MRT_EQ(info->max_extent_bytes, most);
    int64_t label;
    MRT_EQ(mr_source_label(src, 200, &label), MR_EINVAL);
    mr_source_file f;
    MRT_EQ(mr_source_file_at(src, 0, &f), MR_OK);
    MRT_TRUE(f.direct_ok);
    MRT_EQ(mr_source_file_at(src, 1, &f), MR_EINVAL);
    free(buf);
    mr_source_close(src);
}

static void write_shards(uint64_t a, uint64_t b)
{
    const mr_writer_config cfg = mrt_writer_config();
    mrt_write_mrec(mrt_path("s-0.mrec"), a, &cfg);
    mrt_write_mrec(mrt_path("s-1.mrec"), 0, &cfg);
    mrt_write_mrec(mrt_path("s-2.mrec"), b, &cfg);
    const char *paths[3] = {mrt_path("s-0.mrec"), mrt_path("s-1.mrec"), mrt_path("s-2.mrec")};
    const uint64_t counts[3] = {a, 0, b};
    mr_error err = MR_ERROR_INIT;
    MRT_OK(mr_shards_write(mrt_path("list"), paths, counts, 3, false, &err), &err);
}

static void drop_shards(void)
{
    for (int k = 0; k < 3; k++) unlink(mrt_path("s-%d.mrec", k));
    unlink(mrt_path("list"));
}

static void many_files_as_one(void **state)
{
    (void)state;
    write_shards(130, 7);
    size_t size;
    char *text = mrt_read_file(mrt_path("list"), &size);
    MRT_STR(text, "millrace shards 1\n130 s-0.mrec\n0 s-1.mrec\n7 s-2.mrec\nend 3 shards 137 records\n");
    free(text);
    mr_source *src = open_source(mrt_path("list"));
    const mr_source_info *info = mr_source_info_of(src);
    MRT_STR(info->format, "shards");
    MRT_EQ(info->count, 137);
    MRT_EQ(info->file_count, 3);
    void *buf = NULL;
    size_t buf_bytes = 0;
    char path[512];
    for (uint64_t i = 0; i < 137; i++) {
        mr_sample s;
        mr_error err = MR_ERROR_INIT;
        const uint64_t in_file = i < 130 ? i : i - 130;
        MRT_OK(mr_source_read(src, i, &buf, &buf_bytes, &s, &err), &err);
        mrt_check_values(&s, in_file, mrt_image_bytes(in_file));
    }
    MRT_HAS(mr_source_sample_path(src, 129, path, sizeof path), "s-0.mrec");
    MRT_HAS(mr_source_sample_path(src, 130, path, sizeof path), "s-2.mrec");
    mr_sample s;
    mr_error err = MR_ERROR_INIT;
    memset(buf, 0, buf_bytes);
    mr_extent e;
    MRT_OK(mr_source_extent(src, 133, &e, &err), &err);
    MRT_EQ(mr_source_parse(src, 133, buf, e.bytes, &s, &err), MR_EFORMAT);
    MRT_EQ(err.sample, 133); /* of the whole set, not of the file */
    free(buf);
    mr_source_close(src);
    drop_shards();
}

static void wrong_lists_are_named(void **state)
{
    (void)state;
    static const struct {
        const char *text, *said;
    } lists[] = {
        {"millrace shards 1\n", "end line"},
        {"millrace shards 1\n3 s-0.mrec\n", "cut short"},
        {"millrace shards 1\n3 s-0.mrec", "cut short"},
        {"millrace shards 1\nend 0 shards 0 records\n", "no shards"},
        {"millrace shards 1\n3 s-0.mrec\nend 1 shards 4 records\n", "end 1 shards 3 records"},
        {"millrace shards 1\n3 s-0.mrec\nend 1 shards 3 records\n4 x\n", "after the end"},
        {"millrace shards 1\nx s-0.mrec\nend 1 shards 3 records\n", "line 2"},
        {"millrace shards 1\n3 \nend 1 shards 3 records\n", "line 2"},
        {"millrace shards 1\n-3 s-0.mrec\nend 1 shards 3 records\n", "line 2"},
        {"millrace shards 1\n99999999999999999999 s-0.mrec\nend 1 shards 3 records\n", "line 2"},
        {"millrace shards 1\n18446744073709551615 a\n1 b\nend 2 shards 0 records\n", "counted"},
        {"millrace shards 1\n4 s-0.mrec\nend 1 shards 4 records\n", "expects 4 records here, found 3"},
    };
    write_shards(3, 2);
    mr_error err = MR_ERROR_INIT;
    for (size_t k = 0; k < sizeof lists / sizeof lists[0]; k++) {
        mrt_write_file(mrt_path("bad-list"), lists[k].text, strlen(lists[k].text));
        MRT_EQ(open_error(mrt_path("bad-list"), &err), MR_EFORMAT);
        MRT_HAS(err.text, lists[k].said);
    }
    static const char gone[] = "millrace shards 1\n3 s-9.mrec\nend 1 shards 3 records\n";
    mrt_write_file(mrt_path("bad-list"), gone, strlen(gone));
    MRT_EQ(open_error(mrt_path("bad-list"), &err), MR_ENOENT);
    MRT_HAS(err.file, "s-9.mrec");

    mr_writer_config cfg = mrt_writer_config();
    cfg.class_count = 2;
    mrt_write_mrec(mrt_path("s-other.mrec"), 2, &cfg);
    static const char other[] = "millrace shards 1\n3 s-0.mrec\n2 s-other.mrec\nend 2 shards 5 records\n";
    mrt_write_file(mrt_path("bad-list"), other, strlen(other));
    MRT_EQ(open_error(mrt_path("bad-list"), &err), MR_EFORMAT);
    MRT_HAS(err.text, "differ");
    drop_shards();
}

/* Data without names of classes, such as MNIST's, has classes all the same. */
static void classes_without_names_are_counted(void **state)
{
    (void)state;
    static const struct {
        int64_t label;
        uint32_t classes;
    } last[] = {{4, 5}, {16777215, 16777216}, {16777216, 0}, {-1, 0}};
    mr_writer_config cfg = mrt_writer_config();
    cfg.class_count = 0;
    cfg.class_names = NULL;
    for (size_t k = 0; k < sizeof last / sizeof last[0]; k++) {
        mrt_room room;
        mr_writer *w;
        mr_error err = MR_ERROR_INIT;
        MRT_OK(mr_writer_open(&w, mrt_path("nameless"), &cfg, NULL, &err), &err);
        mrt_append(w, 0, 2); /* labels 0 and 1 */
        mrt_values(&room, 2, 100);
        room.value[1].i = last[k].label;
        MRT_OK(mr_writer_append(w, 4, room.value, &err), &err);
        MRT_OK(mr_writer_finish(w, &err), &err);
        mr_source *src = open_source(mrt_path("nameless"));
        MRT_EQ(mr_source_info_of(src)->class_count, last[k].classes);
        MRT_TRUE(mr_source_info_of(src)->class_names == NULL);
        mr_source_close(src);
        unlink(mrt_path("nameless"));
    }
}

static void list_is_not_overwritten(void **state)
{
    (void)state;
    write_shards(3, 2);
    const char *path = mrt_path("s-0.mrec");
    const uint64_t count = 3;
    mr_error err = MR_ERROR_INIT;
    MRT_EQ(mr_shards_write(mrt_path("list"), &path, &count, 1, false, &err), MR_EEXIST);
    MRT_OK(mr_shards_write(mrt_path("list"), &path, &count, 1, true, &err), &err);
    mrt_mkdir(mrt_path("below"));
    MRT_OK(mr_shards_write(mrt_path("below/list"), &path, &count, 1, true, &err), &err);
    mr_source *src = open_source(mrt_path("below/list")); /* not below the list's folder: stored absolute */
    MRT_EQ(mr_source_info_of(src)->count, 3);
    mr_source_close(src);
    path = "with\nline end";
    MRT_TRUE(mr_shards_write(mrt_path("nl"), &path, &count, 1, true, &err) == MR_EINVAL);
    MRT_TRUE(access(mrt_path("nl.part"), F_OK) != 0);
    drop_shards();
}

static void unknown_things(void **state)
{
    (void)state;
    mr_error err = MR_ERROR_INIT;
    mrt_write_file(mrt_path("noise"), "hello, this is text", 19);
    MRT_EQ(open_error(mrt_path("noise"), &err), MR_EUNSUPPORTED);
    for (uint32_t k = 0; k < mr_source_format_count(); k++) {
        MRT_HAS(err.text, mr_source_format_name(k));
        MRT_TRUE(strlen(mr_source_format_help(k)) > 10);
    }
    MRT_TRUE(mr_source_format_name(mr_source_format_count()) == NULL);
    mrt_write_file(mrt_path("empty"), "", 0);
    MRT_EQ(open_error(mrt_path("empty"), &err), MR_EFORMAT);
    MRT_HAS(err.text, "empty");
    MRT_EQ(open_error(mrt_path("nothing"), &err), MR_ENOENT);
    MRT_EQ(open_error("/dev/null", &err), MR_EFORMAT);
    mr_source_config cfg;
    mr_source *src;
    mr_source_defaults(&cfg);
    cfg.format = "nonesuch";
    MRT_EQ(mr_source_open(&src, mrt_path("noise"), &cfg, &err), MR_EUNSUPPORTED);
    cfg.format = "mrec";
    MRT_EQ(mr_source_open(&src, mrt_path("noise"), &cfg, &err), MR_EFORMAT);
    cfg.struct_size = 0;
    MRT_EQ(mr_source_open(&src, mrt_path("noise"), &cfg, &err), MR_EINVAL);
    mr_source_close(NULL);
}

/* "image.entries" goes with JPEGs, and only with them; empty is none. */
static void entry_points_go_with_their_picture(void **state)
{
    (void)state;
    const mr_field fields[] = {{.name = "image.entries", .type = MR_TYPE_BYTES},
                               {.name = "image", .type = MR_TYPE_IMAGE}};
    const mr_value images[] = {{.type = MR_TYPE_JPEG, .data = "jpeg", .bytes = 4},
                               {.type = MR_TYPE_JPEG, .data = "jpeg", .bytes = 4},
                               {.type = MR_TYPE_PNG, .data = "png", .bytes = 3}};
    const size_t entries[] = {5, 0, 5};
    mr_error err = MR_ERROR_INIT;
    mr_writer_config cfg;
    mr_writer *w;
    mr_source *src;
    void *buffer = NULL;
    size_t room = 0;
    mr_writer_defaults(&cfg);
    cfg.fields = fields;
    cfg.field_count = 2;
    MRT_OK(mr_writer_open(&w, mrt_path("entries.mrec"), &cfg, NULL, &err), &err);
    for (uint64_t i = 0; i < 3; i++) {
        const mr_value values[] = {{.type = MR_TYPE_BYTES, .data = "entry", .bytes = entries[i]}, images[i]};
        MRT_OK(mr_writer_append(w, i, values, &err), &err);
    }
    MRT_OK(mr_writer_finish(w, &err), &err);
    MRT_OK(mr_source_open(&src, mrt_path("entries.mrec"), NULL, &err), &err);
    MRT_EQ(mr_source_info_of(src)->image_field, 1);
    MRT_EQ(mr_source_info_of(src)->field_count, 2);
    for (uint64_t i = 0; i < 3; i++) {
        mr_sample s;
        mr_extent e;
        MRT_OK(mr_source_extent(src, i, &e, &err), &err);
        for (int trusted = 0; trusted < 2; trusted++) {
            if (trusted) MRT_OK(mri_source_parse_trusted(src, i, buffer, (size_t)e.bytes, &s, &err), &err);
            else MRT_OK(mr_source_read(src, i, &buffer, &room, &s, &err), &err);
            MRT_EQ(s.value[1].entries_bytes, i == 0 ? 5 : 0);
            MRT_EQ(s.value[1].entries != NULL, i == 0);
            if (i == 0) assert_memory_equal(s.value[1].entries, "entry", 5);
            MRT_EQ(s.value[0].bytes, entries[i]);
        }
    }
    free(buffer);
    mr_source_close(src);
}

static void no_test_part(void **state)
{
    (void)state;
    const mr_writer_config cfg = mrt_writer_config();
    mrt_write_mrec(mrt_path("part.mrec"), 2, &cfg);
    mr_source_config sc;
    mr_source *src;
    mr_error err = MR_ERROR_INIT;
    mr_source_defaults(&sc);
    sc.split = MR_SPLIT_TEST;
    MRT_EQ(mr_source_open(&src, mrt_path("part.mrec"), &sc, &err), MR_ENOENT);
    MRT_HAS(err.text, "no test part");
    sc.split = MR_SPLIT_TRAIN;
    MRT_OK(mr_source_open(&src, mrt_path("part.mrec"), &sc, &err), &err);
    mr_source_close(src);
}

static void allocations_fail_in_turn(void **state)
{
    (void)state;
    write_shards(3, 2);
    for (long n = 0;; n++) {
        mr_error err = MR_ERROR_INIT;
        mr_source *src = (mr_source *)&err;
        mrt_fail_alloc_at(n);
        const int rc = mr_source_open(&src, mrt_path("list"), NULL, &err);
        mrt_fail_alloc_at(-1);
        if (rc == MR_OK) {
            MRT_TRUE(!mrt_alloc_failed());
            mr_source_close(src);
            break;
        }
        MRT_EQ(rc, MR_ENOMEM);
        MRT_TRUE(src == NULL);
    }
    drop_shards();
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(one_file),
        cmocka_unit_test(many_files_as_one),
        cmocka_unit_test(wrong_lists_are_named),
        cmocka_unit_test(classes_without_names_are_counted),
        cmocka_unit_test(list_is_not_overwritten),
        cmocka_unit_test(unknown_things),
        cmocka_unit_test(no_test_part),
        cmocka_unit_test(entry_points_go_with_their_picture),
        cmocka_unit_test(allocations_fail_in_turn),
    };
    return mrt_run(tests);
}
