/* .mrec: the example of formats/record/FORMAT.md, made by hand from its tables, equals the writer's output
 * and is read by the reader. */
#include "millrace/formats.h"
#include "mrt.h"

enum { BYTES = 16384 };

/* Lines "OFFSET  16 bytes" in hexadecimal; everything else is zero. */
static int read_example(uint8_t *out)
{
    char path[1024], line[512];
    snprintf(path, sizeof path, "%s/formats/record/FORMAT.md", getenv("MRT_SOURCE_DIR"));
    FILE *f = fopen(path, "re");
    assert_non_null(f);
    int rows = 0;
    while (fgets(line, sizeof line, f)) {
        char *end;
        const unsigned long at = strtoul(line, &end, 16);
        if (end != line + 6 || strncmp(end, "  ", 2) != 0 || at % 16 != 0 || at + 16 > BYTES) continue;
        for (int k = 0; k < 16; k++) out[at + (unsigned long)k] = (uint8_t)strtoul(end, &end, 16);
        rows++;
    }
    fclose(f);
    return rows;
}

static void example_is_what_we_write(void **state)
{
    (void)state;
    static uint8_t example[BYTES];
    MRT_TRUE(read_example(example) > 15);
    const mr_field field = {.name = "label", .type = MR_TYPE_INT};
    const char *const classes[] = {"a", "b"};
    mr_writer_config cfg;
    mr_writer_defaults(&cfg);
    cfg.fields = &field;
    cfg.field_count = 1;
    cfg.class_names = classes;
    cfg.class_count = 2;
    cfg.provenance = "{}";
    mr_error err = MR_ERROR_INIT;
    mr_writer *w;
    const mr_value value = {.type = MR_TYPE_INT, .i = 1};
    MRT_OK(mr_writer_open(&w, mrt_path("written.mrec"), &cfg, NULL, &err), &err);
    MRT_OK(mr_writer_append(w, 5, &value, &err), &err);
    MRT_OK(mr_writer_finish(w, &err), &err);
    size_t bytes;
    uint8_t *written = mrt_read_file(mrt_path("written.mrec"), &bytes);
    MRT_EQ(bytes, BYTES);
    assert_memory_equal(written, example, BYTES);
    free(written);
}

static void example_is_read(void **state)
{
    (void)state;
    static uint8_t example[BYTES];
    read_example(example);
    mrt_write_file(mrt_path("example.mrec"), example, BYTES);
    mr_error err = MR_ERROR_INIT;
    mr_mrec *m;
    mr_sample s;
    uint64_t offset, bytes, source_index;
    MRT_OK(mr_mrec_verify(mrt_path("example.mrec"), NULL, NULL, NULL, &err), &err);
    MRT_OK(mr_mrec_open(&m, mrt_path("example.mrec"), 4096, &err), &err);
    MRT_OK(mr_mrec_extent(m, 0, &offset, &bytes, &err), &err);
    MRT_OK(mr_mrec_parse(m, 0, example + offset, bytes, &s, &source_index, &err), &err);
    MRT_EQ(s.value[0].i, 1);
    MRT_EQ(source_index, 5);
    MRT_STR(mr_mrec_info_of(m)->class_names[1], "b");
    MRT_STR(mr_mrec_info_of(m)->provenance, "{}");
    mr_mrec_close(m);
}

/* The list of that file: the lines from "millrace shards 2" to the end line. */
static void read_list_example(char *out, size_t out_bytes)
{
    char path[1024], line[512];
    snprintf(path, sizeof path, "%s/formats/record/FORMAT.md", getenv("MRT_SOURCE_DIR"));
    FILE *f = fopen(path, "re");
    assert_non_null(f);
    out[0] = '\0';
    bool inside = false;
    while (fgets(line, sizeof line, f)) { /* the last one is the example */
        const bool first = strcmp(line, "millrace shards 2\n") == 0;
        if (first) out[0] = '\0';
        inside = first || (inside && strncmp(line, "```", 3) != 0);
        const size_t at = strlen(out);
        if (inside) snprintf(out + at, out_bytes - at, "%s", line);
    }
    fclose(f);
}

static void list_example_is_what_we_write(void **state)
{
    (void)state;
    static uint8_t example[BYTES];
    char expected[2048];
    read_example(example);
    read_list_example(expected, sizeof expected);
    mrt_write_file(mrt_path("one.mrec"), example, BYTES);
    const char *const paths[] = {mrt_path("one.mrec")};
    const uint64_t counts[] = {1};
    mr_error err = MR_ERROR_INIT;
    size_t bytes;
    MRT_OK(mr_shards_write(mrt_path("list"), paths, counts, 1, false, &err), &err);
    char *written = mrt_read_file(mrt_path("list"), &bytes);
    MRT_STR(written, expected);
    free(written);
    mr_source *src;
    mrt_write_file(mrt_path("by-hand"), expected, strlen(expected));
    MRT_OK(mr_source_open(&src, mrt_path("by-hand"), NULL, &err), &err);
    MRT_EQ(mr_source_info_of(src)->count, 1);
    mr_source_close(src);
}

int main(void)
{
    const struct CMUnitTest tests[] = {cmocka_unit_test(example_is_what_we_write),
                                       cmocka_unit_test(example_is_read),
                                       cmocka_unit_test(list_example_is_what_we_write)};
    return mrt_run(tests);
}
