/* Sources over our own files: one .mrec, and shard lists. */
#include <sys/resource.h>
#include <unistd.h>

#include "formats/source/source.h"

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
    MRT_TRUE(strncmp(text, "millrace shards 2\nset fingerprint ", 34) == 0);
    MRT_HAS(text, " coefficients 0 labels 0 2\n130 ");
    MRT_HAS(text, " s-0.mrec\n0 ");
    MRT_HAS(text, " s-1.mrec\n7 ");
    MRT_HAS(text, " s-2.mrec\nend 3 shards 137 records checksum ");
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
static mr_source *open_with(const char *path, uint64_t memory_bytes)
{
    mr_source *src;
    mr_source_config cfg;
    mr_error err = MR_ERROR_INIT;
    mr_source_defaults(&cfg);
    cfg.memory_bytes = memory_bytes;
    MRT_OK(mr_source_open(&src, path, &cfg, &err), &err);
    return src;
}

/* The header as version 1.1 has it: shorter, without the range of labels. */
static void make_older(const char *path)
{
    size_t bytes;
    uint8_t *p = mrt_read_file(path, &bytes);
    p[10] = 1;
    p[12] = 160;
    memset(p + 160, 0, 16);
    const uint32_t crc = mr_crc32c(0, p, 4092);
    memcpy(p + 4092, &crc, 4);
    mrt_write_file(path, p, bytes);
    free(p);
}

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
        src = open_with(mrt_path("nameless"), 0); /* the index stays on disk */
        MRT_EQ(mr_source_info_of(src)->class_count, last[k].classes);
        MRT_TRUE(!mr_source_info_of(src)->told || !strstr(mr_source_info_of(src)->told, "index"));
        mr_source_close(src);
        make_older(mrt_path("nameless"));
        src = open_source(mrt_path("nameless"));
        MRT_EQ(mr_source_info_of(src)->class_count, last[k].classes);
        MRT_TRUE(!mr_source_info_of(src)->told || !strstr(mr_source_info_of(src)->told, "index"));
        mr_source_close(src);
        src = open_with(mrt_path("nameless"), 0);
        MRT_EQ(mr_source_info_of(src)->class_count, last[k].classes);
        MRT_HAS(mr_source_info_of(src)->told, "reading the whole index");
        mr_source_close(src);
        unlink(mrt_path("nameless"));
    }
}

/* The header as version 1.2 has it: without the number of the first class. */
static void make_1_2(const char *path)
{
    size_t bytes;
    uint8_t *p = mrt_read_file(path, &bytes);
    p[10] = 2;
    p[12] = 176;
    memset(p + 176, 0, 8);
    const uint32_t crc = mr_crc32c(0, p, 4092);
    memcpy(p + 4092, &crc, 4);
    mrt_write_file(path, p, bytes);
    free(p);
}

/* Labels stay as they were written; an older file does not say whether they are its source's. */
static void first_class_is_kept(void **state)
{
    (void)state;
    mr_writer_config cfg = mrt_writer_config();
    mr_writer *w;
    mr_error err = MR_ERROR_INIT;
    cfg.class_count = 0;
    cfg.class_names = NULL;
    cfg.label_start = 7;
    MRT_OK(mr_writer_open(&w, mrt_path("seven"), &cfg, NULL, &err), &err);
    mrt_append(w, 0, 2); /* labels 0 and 1 */
    MRT_OK(mr_writer_finish(w, &err), &err);
    MRT_OK(mr_mrec_verify(mrt_path("seven"), NULL, NULL, NULL, &err), &err);
    mr_source *src = open_source(mrt_path("seven"));
    const mr_source_labels *l = mr_source_labels_of(src);
    int64_t label;
    MRT_EQ(l->start, 7);
    MRT_EQ(l->min, 0);
    MRT_EQ(l->max, 1);
    MRT_TRUE(!l->unsure);
    MRT_EQ(mr_source_label(src, 1, &label), MR_OK);
    MRT_EQ(label, 1);
    mr_source_close(src);
    make_1_2(mrt_path("seven"));
    src = open_source(mrt_path("seven"));
    l = mr_source_labels_of(src);
    MRT_EQ(l->start, MR_LABEL_AUTO);
    MRT_EQ(l->max, 1);
    MRT_TRUE(l->unsure);
    mr_source_close(src);
    unlink(mrt_path("seven"));
}

/* label_offset, subtracted on demand, in a format that does not store one. */
static void labels_less_an_offset(void **state)
{
    (void)state;
    mr_writer_config cfg = mrt_writer_config();
    mr_writer *w;
    mr_error err = MR_ERROR_INIT;
    mr_source_config open;
    mr_source *src;
    int64_t label;
    MRT_OK(mr_writer_open(&w, mrt_path("named"), &cfg, NULL, &err), &err);
    mrt_append(w, 0, 2);
    MRT_OK(mr_writer_finish(w, &err), &err);
    mr_source_defaults(&open);
    open.label_offset = 1;
    MRT_EQ(mr_source_open(&src, mrt_path("named"), &open, &err), MR_EINVAL);
    MRT_HAS(err.text, "--label-offset: classes have names here");
    cfg.class_count = 0;
    cfg.class_names = NULL;
    cfg.force = true;
    MRT_OK(mr_writer_open(&w, mrt_path("named"), &cfg, NULL, &err), &err);
    mrt_append(w, 0, 2);
    MRT_OK(mr_writer_finish(w, &err), &err);
    MRT_OK(mr_source_open(&src, mrt_path("named"), &open, &err), &err);
    MRT_EQ(mr_source_info_of(src)->label_offset, 1);
    MRT_EQ(mr_source_info_of(src)->class_count, 1);
    MRT_EQ(mr_source_label(src, 1, &label), MR_OK);
    MRT_EQ(label, 0);
    MRT_EQ(mr_source_label(src, 0, &label), MR_EFORMAT);
    mr_source_close(src);
    open.label_offset = INT64_MIN + 1;
    MRT_OK(mr_source_open(&src, mrt_path("named"), &open, &err), &err);
    MRT_EQ(mr_source_info_of(src)->class_count, 0);
    mr_source_close(src);
    unlink(mrt_path("named"));
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

/* "image.entries" goes with JPEGs, and only with them; an empty value means no entry points. */
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

/* ---- lists of version 2 ---- */
/* The text with the end line that belongs to it, as a list. */
static const char *write_list(const char *name, const char *text, const char *end)
{
    char all[4096];
    snprintf(all, sizeof all, "%s%s checksum %08x\n", text, end, mr_crc32c(0, text, strlen(text)));
    mrt_write_file(mrt_path("%s", name), all, strlen(all));
    return mrt_path("%s", name);
}

/* The list's line of a number, without its end. */
static void line_of(const char *list, int number, char out[512])
{
    size_t size;
    char *text = mrt_read_file(list, &size), *at = text;
    for (int k = 1; k < number; k++) at = strchr(at, '\n') + 1;
    snprintf(out, 512, "%.*s", (int)strcspn(at, "\n"), at);
    free(text);
}

static void both_versions_are_the_same_set(void **state)
{
    (void)state;
    write_shards(130, 7);
    static const char first[] =
        "millrace shards 1\n130 s-0.mrec\n0 s-1.mrec\n7 s-2.mrec\nend 3 shards 137 records\n";
    mrt_write_file(mrt_path("list-1"), first, strlen(first));
    mr_source *one = open_source(mrt_path("list-1")), *two = open_source(mrt_path("list"));
    const mr_source_info *a = mr_source_info_of(one), *b = mr_source_info_of(two);
    MRT_EQ(a->fingerprint, b->fingerprint);
    MRT_EQ(a->count, b->count);
    MRT_EQ(a->class_count, b->class_count);
    MRT_EQ(a->max_extent_bytes, b->max_extent_bytes);
    MRT_EQ(a->total_bytes, b->total_bytes);
    MRT_EQ(a->memory_bytes, b->memory_bytes);
    mr_error err = MR_ERROR_INIT;
    MRT_OK(mr_source_check(one, &err), &err);
    MRT_OK(mr_source_check(two, &err), &err);
    mr_source_close(one);
    mr_source_close(two);
    drop_shards();
}

/* Lines of a list that disagree with their file, where all files are opened at once. */
static void wrong_lines_are_named(void **state)
{
    (void)state;
    char facts[512], line[512], text[2048];
    mr_error err = MR_ERROR_INIT;
    write_shards(3, 2);
    line_of(mrt_path("list"), 2, facts);
    line_of(mrt_path("list"), 3, line);
    static const struct {
        const char *format, *end, *said; /* of the facts and the line */
        int code;
    } wrong[] = {
        {"millrace shards 3\n", "end 0 shards 0 records", "version 3", MR_EUNSUPPORTED},
        {"millrace shards 99999999999999999999\n", "end 0 shards 0 records", "expected \"millrace",
         MR_EFORMAT},
        {"millrace shards 2\n", "end 0 shards 0 records", "line 2", MR_EFORMAT},
        {"millrace shards 2\n%s\n", "end 0 shards 0 records", "no shards", MR_EFORMAT},
        {"millrace shards 2\n%s \n", "end 0 shards 0 records", "line 2", MR_EFORMAT},
        {"millrace shards 2\n%s\n%s\n", "end 2 shards 3 records", "end 1 shards 3 records", MR_EFORMAT},
        {"millrace shards 2\n%s\n%s\n", "end 1 shards 3 records", "fingerprint", MR_EFORMAT},
        {"millrace shards 2\n%s\n3 s-0.mrec\n", "end 1 shards 3 records", "line 3", MR_EFORMAT},
        {"millrace shards 2\n%s\n3 4096 0123456789abcdef s-0.mrec\n", "end 1 shards 3 records", "fingerprint",
         MR_EFORMAT},
        {"millrace shards 2\n%s\n3 4095 0123456789abcdef s-0.mrec\n", "end 1 shards 3 records", "line 3",
         MR_EFORMAT},
        {"millrace shards 2\n%s\n1 9007199254740992 0123456789abcdef x\n", "end 1 shards 1 records", "line 3",
         MR_EFORMAT},
        {"millrace shards 2\n%s\n3 4096 0123456789ABCDEF s-0.mrec\n", "end 1 shards 3 records", "line 3",
         MR_EFORMAT},
        {"millrace shards 2\n%s\n3 4096 0123456789abcdef \n", "end 1 shards 3 records", "line 3", MR_EFORMAT},
    };
    for (size_t k = 0; k < sizeof wrong / sizeof wrong[0]; k++) {
        snprintf(text, sizeof text, wrong[k].format, facts, line);
        MRT_EQ(open_error(write_list("bad-list", text, wrong[k].end), &err), wrong[k].code);
        MRT_HAS(err.text, wrong[k].said);
    }
    size_t size; /* every byte of a list counts */
    uint8_t *list = mrt_read_file(mrt_path("list"), &size);
    for (size_t k = 0; k < size; k++) {
        list[k] ^= 1;
        mrt_write_file(mrt_path("bad-list"), list, size);
        MRT_TRUE(open_error(mrt_path("bad-list"), &err) != MR_OK);
        list[k] ^= 1;
    }
    for (size_t k = 1; k < size; k++) {
        mrt_write_file(mrt_path("bad-list"), list, k);
        MRT_TRUE(open_error(mrt_path("bad-list"), &err) != MR_OK);
    }
    free(list);
    drop_shards();
}

/* The facts of a list that somebody made wrong do not hold for its files. */
static void wrong_facts_are_named(void **state)
{
    (void)state;
    static const struct {
        const char *from, *to, *said;
        bool at_check;
    } wrong[] = {{" schema ", " schema f", "schema of checksum", false},
                 {" classes ", " classes f", "classes of", false},
                 {" largest ", " largest 4", "records of 4 bytes at most", false},
                 {" labels 0 2", " labels 0 1", "labels from 0 to 1, found 0 to 2", false},
                 {" labels 0 2", " labels none", "no labels in any file", false},
                 {" labels 0 2", " labels -9223372036854775808 9223372036854775807", "labels 0 to 2", true},
                 {" coefficients 0", " coefficients 1", "make the list again", true},
                 {" bytes ", " bytes 7", "make the list again", true}};
    char facts[512], changed[512], line[512], text[2048];
    mr_error err = MR_ERROR_INIT;
    const mr_writer_config cfg = mrt_writer_config();
    mrt_write_mrec(mrt_path("f.mrec"), 5, &cfg);
    const char *const path = mrt_path("f.mrec");
    const uint64_t count = 5;
    MRT_OK(mr_shards_write(mrt_path("f.list"), &path, &count, 1, false, &err), &err);
    line_of(mrt_path("f.list"), 2, facts);
    line_of(mrt_path("f.list"), 3, line);
    for (size_t k = 0; k < sizeof wrong / sizeof wrong[0]; k++) {
        const char *at = strstr(facts, wrong[k].from), *behind = at + strlen(wrong[k].from);
        MRT_TRUE(at != NULL);
        const bool digit = wrong[k].to[strlen(wrong[k].to) - 1] == 'f'; /* takes the place of one */
        if (strcmp(wrong[k].from, " largest ") == 0 || strcmp(wrong[k].from, " bytes ") == 0)
            behind += strspn(behind, "0123456789");
        if (digit) behind += *behind == 'f' ? 0 : 1;
        if (digit && *(behind - 1) == ' ') continue; /* an f already */
        snprintf(changed, sizeof changed, "%.*s%s%s", (int)(at - facts), facts, wrong[k].to, behind);
        snprintf(text, sizeof text, "millrace shards 2\n%s\n%s\n", changed, line);
        const char *list = write_list("bad-facts", text, "end 1 shards 5 records");
        if (!wrong[k].at_check) {
            MRT_EQ(open_error(list, &err), MR_EFORMAT);
            MRT_HAS(err.file, "f.mrec");
            MRT_HAS(err.text, "make the list again");
        } else {
            mr_source *src = open_source(list);
            MRT_EQ(mr_source_check(src, &err), MR_EFORMAT);
            MRT_HAS(err.file, "bad-facts");
            mr_source_close(src);
        }
        MRT_HAS(err.text, wrong[k].said);
    }
}

/* A list with a false line is not written. */
static void lists_are_made_of_what_is_there(void **state)
{
    (void)state;
    mr_error err = MR_ERROR_INIT;
    mr_writer_config cfg = mrt_writer_config();
    write_shards(3, 2);
    cfg.class_count = 2;
    cfg.force = true;
    mrt_write_mrec(mrt_path("s-other.mrec"), 2, &cfg);
    const char *paths[] = {mrt_path("s-0.mrec"), mrt_path("s-other.mrec")};
    uint64_t counts[] = {3, 2};
    MRT_EQ(mr_shards_write(mrt_path("new-list"), paths, counts, 2, false, &err), MR_EFORMAT);
    MRT_HAS(err.text, "differ");
    MRT_HAS(err.file, "s-other.mrec");
    counts[0] = 4;
    MRT_EQ(mr_shards_write(mrt_path("new-list"), paths, counts, 1, false, &err), MR_EFORMAT);
    MRT_HAS(err.text, "4 records here, found 3");
    paths[0] = mrt_path("s-nothing.mrec");
    MRT_EQ(mr_shards_write(mrt_path("new-list"), paths, counts, 1, false, &err), MR_ENOENT);
    MRT_TRUE(access(mrt_path("new-list"), F_OK) != 0);
    MRT_TRUE(access(mrt_path("new-list.part"), F_OK) != 0);
    drop_shards();
}

/* ---- more files than may be open ---- */
enum { SHARDS = 100 };

/* Files of 0 to 6 records without names of classes, and "list" of them; `older`: of version 1. */
static void write_many(const char *folder, bool older)
{
    mr_writer_config cfg = mrt_writer_config();
    cfg.class_count = 0;
    cfg.class_names = NULL;
    char text[8192] = "millrace shards 1\n";
    const char *paths[SHARDS];
    uint64_t counts[SHARDS], records = 0;
    mr_error err = MR_ERROR_INIT;
    mrt_mkdir(mrt_path("%s", folder));
    for (uint32_t k = 0; k < SHARDS; k++) {
        counts[k] = k % 7;
        records += counts[k];
        mrt_write_mrec(mrt_path("%s/%u.mrec", folder, k), counts[k], &cfg);
        paths[k] = strdup(mrt_path("%s/%u.mrec", folder, k));
        snprintf(text + strlen(text), sizeof text - strlen(text), "%u %u.mrec\n", k % 7, k);
    }
    snprintf(text + strlen(text), sizeof text - strlen(text), "end %d shards %u records\n", SHARDS,
             (unsigned)records);
    if (older) mrt_write_file(mrt_path("%s/list", folder), text, strlen(text));
    else MRT_OK(mr_shards_write(mrt_path("%s/list", folder), paths, counts, SHARDS, false, &err), &err);
    for (uint32_t k = 0; k < SHARDS; k++) free((char *)(uintptr_t)paths[k]);
}

static struct rlimit before;

static void allow_descriptors(rlim_t few)
{
    MRT_EQ(getrlimit(RLIMIT_NOFILE, &before), 0);
    const struct rlimit now = {few, before.rlim_max};
    MRT_EQ(setrlimit(RLIMIT_NOFILE, &now), 0);
}

static void allow_all_descriptors(void) { MRT_EQ(setrlimit(RLIMIT_NOFILE, &before), 0); }

static void same_of_one_sample(const mr_source *all, const mr_source *src, uint64_t n, void **buf,
                               size_t *buf_bytes)
{
    mr_error err = MR_ERROR_INIT;
    mr_extent x, y;
    mr_sample s;
    int64_t label, other;
    MRT_OK(mr_source_extent(all, n, &x, &err), &err);
    MRT_OK(mr_source_extent(src, n, &y, &err), &err);
    MRT_EQ(x.file, y.file);
    MRT_EQ(x.offset, y.offset);
    MRT_EQ(x.bytes, y.bytes);
    MRT_OK(mr_source_label(all, n, &label), NULL);
    MRT_OK(mr_source_label(src, n, &other), NULL);
    MRT_EQ(label, other);
    MRT_OK(mr_source_read(src, n, buf, buf_bytes, &s, &err), &err);
    ((uint8_t *)*buf)[x.bytes - 1] ^= 1; /* damage is named with its place in its file */
    MRT_TRUE(mr_source_parse(src, n, *buf, x.bytes, &s, &err) != MR_OK);
    mr_source_file f;
    MRT_OK(mr_source_file_at(src, x.file, &f), NULL);
    MRT_EQ(f.fd, -1);
    MRT_STR(err.file, f.path);
    MRT_EQ(err.sample, n);
    MRT_TRUE(err.offset >= x.offset && err.offset < x.offset + x.bytes);
}

/* A list of more files than may be open gives the same as with all of them open. */
static void same_as_with_all_open(const char *folder, bool older)
{
    write_many(folder, older);
    mr_source *all = open_source(mrt_path("%s/list", folder));
    allow_descriptors(150); /* the first source has its files open */
    mr_source *src = open_source(mrt_path("%s/list", folder));
    const mr_source_info *a = mr_source_info_of(all), *b = mr_source_info_of(src);
    MRT_EQ(a->count, b->count);
    MRT_EQ(a->fingerprint, b->fingerprint);
    MRT_EQ(a->class_count, b->class_count);
    MRT_EQ(a->max_extent_bytes, b->max_extent_bytes);
    MRT_EQ(a->total_bytes, b->total_bytes);
    void *buf = NULL;
    size_t buf_bytes = 0;
    for (uint64_t i = 0; i < a->count; i++)
        same_of_one_sample(all, src, (i * 37) % a->count, &buf, &buf_bytes);
    free(buf);
    mr_error err = MR_ERROR_INIT;
    MRT_OK(mr_source_check(src, &err), &err);
    int fd;
    MRT_EQ(mr_source_file_acquire(src, SHARDS, &fd, &err), MR_EINVAL);
    MRT_OK(mr_source_file_acquire(src, 98, &fd, &err), &err);
    MRT_TRUE(fd >= 0);
    mr_source_file_release(src, 98);
    mr_source_close(src);
    allow_all_descriptors();
    mr_source_close(all);
}

static void more_shards_than_descriptors(void **state)
{
    (void)state;
    same_as_with_all_open("many-1", true);
    same_as_with_all_open("many-2", false);
}

/* Of a list of version 2 only the first file is opened with the set: no other one is there then. */
static void opening_takes_the_first_file_alone(void **state)
{
    (void)state;
    mr_error err = MR_ERROR_INIT;
    write_many("first", false);
    mrt_mkdir(mrt_path("aside"));
    for (int k = 1; k < SHARDS; k++)
        MRT_EQ(rename(mrt_path("first/%d.mrec", k), mrt_path("aside/%d.mrec", k)), 0);
    allow_descriptors(50);
    mr_source *src = open_source(mrt_path("first/list"));
    MRT_EQ(mr_source_info_of(src)->class_count, 3);
    for (int k = 1; k < SHARDS; k++)
        MRT_EQ(rename(mrt_path("aside/%d.mrec", k), mrt_path("first/%d.mrec", k)), 0);
    void *buf = NULL;
    size_t buf_bytes = 0;
    for (uint64_t i = 0; i < mr_source_info_of(src)->count; i++) {
        mr_sample s;
        MRT_OK(mr_source_read(src, i, &buf, &buf_bytes, &s, &err), &err);
    }
    free(buf);
    mr_source_close(src);
    allow_all_descriptors();
}

/* What takes the place of file 5, with five records. */
static void nothing(const char *path) { MRT_EQ(unlink(path), 0); }
static void empty(const char *path) { mrt_write_file(path, "", 0); }
static void shorter(const char *path) { MRT_EQ(truncate(path, 8192), 0); }
static void swapped(const char *path) /* for another one with as many records */
{
    mr_writer_config cfg = mrt_writer_config();
    mr_error err = MR_ERROR_INIT;
    mr_writer *w;
    cfg.class_count = 0;
    cfg.class_names = NULL;
    cfg.force = true;
    MRT_OK(mr_writer_open(&w, path, &cfg, NULL, &err), &err);
    mrt_append(w, 5, 10);
    MRT_OK(mr_writer_finish(w, &err), &err);
}
static void fewer(const char *path)
{
    mr_writer_config cfg = mrt_writer_config();
    cfg.class_count = 0;
    cfg.class_names = NULL;
    cfg.force = true;
    mrt_write_mrec(path, 4, &cfg);
}
static void other_classes(const char *path)
{
    mr_writer_config cfg = mrt_writer_config();
    cfg.force = true;
    mrt_write_mrec(path, 5, &cfg);
}
static void no_record_file(const char *path) { mrt_write_file(path, "hello, this is text", 19); }

/* An error of the set, whoever touches the file first: no sample is bad. */
static void refused(const char *list, const char *said)
{
    mr_error err = MR_ERROR_INIT;
    mr_extent e;
    mr_sample s;
    void *buf = NULL;
    size_t buf_bytes = 0;
    int fd;
    mr_source *src = open_source(list);
    uint64_t at = 0;
    while (mr_source_extent(src, at, &e, &err) == MR_OK && e.file < 5) at++;
    for (int how = 0; how < 3; how++) {
        err = (mr_error)MR_ERROR_INIT;
        const int rc = how == 0   ? mr_source_extent(src, at, &e, &err)
                       : how == 1 ? mr_source_read(src, at, &buf, &buf_bytes, &s, &err)
                                  : mr_source_file_acquire(src, 5, &fd, &err);
        MRT_EQ(rc, MR_EIO);
        MRT_TRUE(!mr_error_of_sample(rc, &err));
        MRT_HAS(err.file, "5.mrec");
        MRT_HAS(err.text, said);
        MRT_HAS(err.text, list);
        MRT_HAS(err.text, "make the list again");
    }
    MRT_EQ(mr_source_check(src, &err), MR_EIO);
    MRT_OK(mr_source_file_acquire(src, 6, &fd, &err), &err); /* the others are there */
    mr_source_file_release(src, 6);
    free(buf);
    mr_source_close(src);
}

static void files_that_are_not_the_listed_ones(void **state)
{
    (void)state;
    static const struct {
        void (*change)(const char *path);
        const char *said;
    } kinds[] = {{nothing, "cannot open"},
                 {empty, "too short"},
                 {shorter, "cut short"},
                 {swapped, "found"},
                 {fewer, "expects 5 records here, found 4"},
                 {other_classes, "found"},
                 {no_record_file, "too short"}};
    for (size_t k = 0; k < sizeof kinds / sizeof kinds[0]; k++) {
        char folder[32];
        snprintf(folder, sizeof folder, "kind-%zu", k);
        write_many(folder, false);
        kinds[k].change(mrt_path("%s/5.mrec", folder));
        allow_descriptors(50);
        refused(mrt_path("%s/list", folder), kinds[k].said);
        allow_all_descriptors();
    }
}

/* As many records, bytes and fields, but not the same records. */
static void a_file_of_the_same_size(void **state)
{
    (void)state;
    write_many("twin", false);
    size_t size;
    uint8_t *bytes = mrt_read_file(mrt_path("twin/5.mrec"), &size);
    bytes[136] ^= 1; /* the fingerprint */
    const uint32_t crc = mr_crc32c(0, bytes, 4092);
    memcpy(bytes + 4092, &crc, 4);
    mrt_write_file(mrt_path("twin/5.mrec"), bytes, size);
    free(bytes);
    allow_descriptors(50);
    refused(mrt_path("twin/list"), "of fingerprint");
    allow_all_descriptors();
}

/* Version 1 records no facts of the files: they are compared with their state when the set was opened. */
static void a_file_that_changes_later(void **state)
{
    (void)state;
    mr_error err = MR_ERROR_INIT;
    int fd;
    write_many("later", true);
    allow_descriptors(50);
    mr_source *src = open_source(mrt_path("later/list"));
    fewer(mrt_path("later/99.mrec"));
    MRT_EQ(mr_source_file_acquire(src, 99, &fd, &err), MR_EIO);
    MRT_HAS(err.text, "has changed");
    MRT_TRUE(!mr_error_of_sample(MR_EIO, &err));
    mr_source_close(src);
    allow_all_descriptors();
}

/* One file of a set has records with coefficients, the first does not. */
static void coefficients_in_a_later_file(void **state)
{
    (void)state;
    const mr_field field = {.name = "image", .type = MR_TYPE_IMAGE};
    const mr_value values[] = {{.type = MR_TYPE_JPEG, .data = "jpeg", .bytes = 4},
                               {.type = MR_TYPE_COEF, .data = "coef", .bytes = 4}};
    mr_error err = MR_ERROR_INIT;
    mr_writer_config cfg;
    mr_writer_defaults(&cfg);
    cfg.fields = &field;
    cfg.field_count = 1;
    const char *paths[] = {mrt_path("none.mrec"), mrt_path("some.mrec")};
    const uint64_t counts[] = {1, 1};
    for (int k = 0; k < 2; k++) {
        mr_writer *w;
        MRT_OK(mr_writer_open(&w, paths[k], &cfg, NULL, &err), &err);
        MRT_OK(mr_writer_append(w, 0, &values[k], &err), &err);
        MRT_OK(mr_writer_finish(w, &err), &err);
    }
    MRT_OK(mr_shards_write(mrt_path("coef-list"), paths, counts, 2, false, &err), &err);
    void *buf = NULL;
    size_t buf_bytes = 0;
    mr_sample s;
    mr_extent e;
    mr_source *src = open_source(mrt_path("coef-list"));
    MRT_OK(mr_source_read(src, 1, &buf, &buf_bytes, &s, &err), &err);
    MRT_OK(mr_source_extent(src, 1, &e, &err), &err);
    MRT_OK(mri_source_parse_trusted(src, 1, buf, (size_t)e.bytes, &s, &err), &err);
    MRT_EQ(s.value[0].type, MR_TYPE_COEF);
    free(buf);
    mr_source_close(src);
}

static void open_as_memory_fails(const char *list)
{
    for (long n = 0;; n++) {
        mr_error err = MR_ERROR_INIT;
        mr_source *src = (mr_source *)&err;
        mrt_fail_alloc_at(n);
        const int rc = mr_source_open(&src, list, NULL, &err);
        mrt_fail_alloc_at(-1);
        if (rc == MR_OK) {
            MRT_TRUE(!mrt_alloc_failed());
            mr_source_close(src);
            break;
        }
        MRT_EQ(rc, MR_ENOMEM);
        MRT_TRUE(src == NULL);
    }
}

static void allocations_fail_in_turn(void **state)
{
    (void)state;
    write_shards(3, 2);
    open_as_memory_fails(mrt_path("list"));
    drop_shards();
    write_many("scarce", false);
    char list[512];
    snprintf(list, sizeof list, "%s", mrt_path("scarce/list"));
    allow_descriptors(50);
    open_as_memory_fails(list);
    allow_all_descriptors();
}

static void allocations_of_the_list_fail_in_turn(void **state)
{
    (void)state;
    write_shards(3, 2);
    char first[512], second[512], list[512]; /* mrt_path() uses its memory again */
    snprintf(first, sizeof first, "%s", mrt_path("s-0.mrec"));
    snprintf(second, sizeof second, "%s", mrt_path("s-2.mrec"));
    snprintf(list, sizeof list, "%s", mrt_path("scarce-list"));
    const char *paths[] = {first, second};
    const uint64_t counts[] = {3, 2};
    int rc = MR_ENOMEM;
    for (long n = 0; rc; n++) {
        mr_error err = MR_ERROR_INIT;
        mrt_fail_alloc_at(n);
        rc = mr_shards_write(list, paths, counts, 2, false, &err);
        mrt_fail_alloc_at(-1);
        if (rc) MRT_EQ(rc, MR_ENOMEM);
        MRT_EQ(access(list, F_OK) == 0, rc == MR_OK);
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
        cmocka_unit_test(first_class_is_kept),
        cmocka_unit_test(labels_less_an_offset),
        cmocka_unit_test(list_is_not_overwritten),
        cmocka_unit_test(unknown_things),
        cmocka_unit_test(no_test_part),
        cmocka_unit_test(entry_points_go_with_their_picture),
        cmocka_unit_test(both_versions_are_the_same_set),
        cmocka_unit_test(wrong_lines_are_named),
        cmocka_unit_test(wrong_facts_are_named),
        cmocka_unit_test(lists_are_made_of_what_is_there),
        cmocka_unit_test(more_shards_than_descriptors),
        cmocka_unit_test(opening_takes_the_first_file_alone),
        cmocka_unit_test(files_that_are_not_the_listed_ones),
        cmocka_unit_test(a_file_of_the_same_size),
        cmocka_unit_test(a_file_that_changes_later),
        cmocka_unit_test(coefficients_in_a_later_file),
        cmocka_unit_test(allocations_fail_in_turn),
        cmocka_unit_test(allocations_of_the_list_fail_in_turn),
    };
    return mrt_run(tests);
}
