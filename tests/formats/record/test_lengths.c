/* Lengths without reading samples: of texts, of record files by the types of their fields, of shard lists,
 * and sources without lengths. */
#include <fcntl.h>
#include <unistd.h>

#include "millrace/formats.h"
#include "mrt.h"

enum { COUNT = 300 };

static mr_source *open_source(const char *path, uint64_t memory_bytes)
{
    mr_source *src;
    mr_error err = MR_ERROR_INIT;
    mr_source_config cfg;
    mr_source_defaults(&cfg);
    if (memory_bytes) cfg.memory_bytes = memory_bytes;
    MRT_OK(mr_source_open(&src, path, &cfg, &err), &err);
    return src;
}

static uint32_t length_at(uint64_t i) { return 1 + (uint32_t)(i * 7919 % 501); }

static mr_field tensor(const char *name, mr_dtype dtype, uint64_t dim)
{
    mr_field f = {.type = MR_TYPE_TENSOR, .dtype = dtype, .ndim = dim > 0, .dim = {dim}};
    snprintf(f.name, sizeof f.name, "%s", name);
    return f;
}

static mr_field plain(const char *name, mr_type type)
{
    mr_field f = {.type = type};
    snprintf(f.name, sizeof f.name, "%s", name);
    return f;
}

/* Records whose tensors without a shape have length_at(first + i) elements. */
static void write_records(const char *path, const mr_field *fields, uint32_t field_count, uint64_t first,
                          uint64_t count)
{
    static const uint8_t zeros[8 * 512];
    mr_error err = MR_ERROR_INIT;
    mr_writer_config cfg;
    mr_writer *w;
    mr_writer_defaults(&cfg);
    cfg.fields = fields;
    cfg.field_count = field_count;
    cfg.force = true;
    MRT_OK(mr_writer_open(&w, path, &cfg, NULL, &err), &err);
    for (uint64_t i = 0; i < count; i++) {
        mr_value v[MR_MAX_FIELDS] = {{0}};
        for (uint32_t k = 0; k < field_count; k++) {
            v[k] = (mr_value){.type = fields[k].type, .dtype = fields[k].dtype, .data = zeros, .i = 3};
            if (fields[k].type == MR_TYPE_BYTES) v[k].bytes = i % 9;
            if (fields[k].type != MR_TYPE_TENSOR) continue;
            v[k].ndim = 1;
            v[k].dim[0] = fields[k].ndim ? fields[k].dim[0] : length_at(first + i);
            v[k].bytes = (size_t)v[k].dim[0] * mr_dtype_bytes(fields[k].dtype);
        }
        MRT_OK(mr_writer_append(w, i, v, &err), &err);
    }
    MRT_OK(mr_writer_finish(w, &err), &err);
}

static void expect_lengths(const char *path, uint32_t field, uint64_t count)
{
    mr_source *src = open_source(path, 0);
    const mr_source_info *info = mr_source_info_of(src);
    uint32_t most = 0, length;
    MRT_EQ(info->length_field, field);
    for (uint64_t i = 0; i < count; i++) {
        MRT_EQ(mr_source_length(src, i, &length), MR_OK);
        MRT_EQ(length, length_at(i));
        if (length > most) most = length;
    }
    MRT_EQ(info->length_most, most);
    MRT_EQ(mr_source_length(src, count, &length), MR_EINVAL);
    mr_source_close(src);
}

static void expect_none(const char *path)
{
    mr_source *src = open_source(path, 0);
    uint32_t length = 77;
    MRT_EQ(mr_source_info_of(src)->length_field, MR_NO_FIELD);
    MRT_EQ(mr_source_length(src, 0, &length), MR_EUNSUPPORTED);
    MRT_EQ(length, 77);
    mr_source_close(src);
}

static void expect_all(const char *path, uint32_t field, uint32_t want)
{
    mr_source *src = open_source(path, 0);
    uint32_t length;
    MRT_EQ(mr_source_info_of(src)->length_field, field);
    MRT_EQ(mr_source_info_of(src)->length_most, want);
    MRT_EQ(mr_source_length(src, 1, &length), MR_OK);
    MRT_EQ(length, want);
    mr_source_close(src);
}

static void of_texts(void **state)
{
    (void)state;
    FILE *f = fopen(mrt_path("text"), "w");
    for (uint64_t i = 0; i < COUNT; i++) {
        for (uint32_t k = 0; k < length_at(i); k++) fprintf(f, "%u,", k % 90);
        fprintf(f, "5\n");
    }
    fclose(f);
    expect_lengths(mrt_path("text"), 0, COUNT);
    mrt_write_file(mrt_path("even"), "1,2,3\n4,5,6\n", 12);
    expect_all(mrt_path("even"), 0, 2);
}

static void of_records(void **state)
{
    (void)state;
    const mr_field label = plain("label", MR_TYPE_INT), scale = plain("scale", MR_TYPE_FLOAT),
                   three = tensor("three", MR_F32, 3);
    static const mr_dtype dtypes[] = {MR_U8, MR_I8, MR_I16, MR_I32, MR_I64, MR_F16, MR_BF16, MR_F32, MR_F64};
    for (size_t k = 0; k < sizeof dtypes / sizeof *dtypes; k++) {
        const mr_field tokens = tensor("tokens", dtypes[k], 0);
        write_records(mrt_path("r.mrec"), (mr_field[]){label, tokens}, 2, 0, COUNT);
        expect_lengths(mrt_path("r.mrec"), 1, COUNT);
        /* 12 bytes, then padding */
        write_records(mrt_path("r.mrec"), (mr_field[]){three, label, scale, tokens}, 4, 0, COUNT);
        expect_lengths(mrt_path("r.mrec"), 3, COUNT);
        write_records(mrt_path("r.mrec"), (mr_field[]){tokens}, 1, 0, COUNT);
        expect_lengths(mrt_path("r.mrec"), 0, COUNT);
        write_records(mrt_path("r.mrec"), (mr_field[]){three, tokens, label}, 3, 0, COUNT);
        if (mr_dtype_bytes(dtypes[k]) == 8) expect_lengths(mrt_path("r.mrec"), 1, COUNT);
        else expect_none(mrt_path("r.mrec")); /* the record's size does not separate padding from tokens */
    }
}

static void of_records_that_have_none(void **state)
{
    (void)state;
    const mr_field label = plain("label", MR_TYPE_INT), tokens = tensor("tokens", MR_I64, 0),
                   more = tensor("more", MR_I64, 0);
    const mr_field blob = plain("blob", MR_TYPE_BYTES), three = tensor("three", MR_F32, 3),
                   five = tensor("five", MR_F32, 5);
    write_records(mrt_path("r.mrec"), (mr_field[]){label, tokens, more}, 3, 0, 9);
    expect_none(mrt_path("r.mrec"));
    write_records(mrt_path("r.mrec"), (mr_field[]){blob, tokens}, 2, 0, 9);
    expect_none(mrt_path("r.mrec"));
    write_records(mrt_path("r.mrec"), (mr_field[]){label}, 1, 0, 9);
    expect_none(mrt_path("r.mrec"));
    write_records(mrt_path("r.mrec"), (mr_field[]){label, blob}, 2, 0, 9);
    expect_none(mrt_path("r.mrec"));
    write_records(mrt_path("r.mrec"), (mr_field[]){label, three, five}, 3, 0, 9); /* one for all */
    expect_all(mrt_path("r.mrec"), 1, 3);
    write_records(mrt_path("r.mrec"), (mr_field[]){blob, three}, 2, 0, 9);
    expect_all(mrt_path("r.mrec"), 1, 3);
}

static void of_shards(void **state)
{
    (void)state;
    const mr_field fields[] = {plain("label", MR_TYPE_INT), tensor("tokens", MR_I32, 0)};
    write_records(mrt_path("a.mrec"), fields, 2, 0, 130);
    write_records(mrt_path("b.mrec"), fields, 2, 130, COUNT - 130);
    char list[200];
    const int bytes =
        snprintf(list, sizeof list, "millrace shards 1\n130 a.mrec\n%d b.mrec\nend 2 shards %d records\n",
                 COUNT - 130, COUNT);
    mrt_write_file(mrt_path("both.shards"), list, (size_t)bytes);
    expect_lengths(mrt_path("both.shards"), 1, COUNT);
}

/* An index that is read page by page can go bad after the source is opened: reported, never guessed. */
static void of_an_index_that_went_bad(void **state)
{
    (void)state;
    const mr_field fields[] = {plain("label", MR_TYPE_INT), tensor("tokens", MR_I32, 0)};
    enum { MANY = 127 * 40 };
    write_records(mrt_path("p.mrec"), fields, 2, 0, MANY);
    mr_source *src = open_source(mrt_path("p.mrec"), 100 << 10);
    uint32_t length;
    MRT_EQ(mr_source_length(src, 5, &length), MR_OK);
    MRT_EQ(length, length_at(5));
    const int fd = open(mrt_path("p.mrec"), O_WRONLY);
    MRT_EQ(pwrite(fd, "????", 4, lseek(fd, 0, SEEK_END) - 39 * 4096 + 100), 4);
    close(fd);
    MRT_EQ(mr_source_length(src, 127 + 5, &length), MR_ECHECKSUM);
    MRT_EQ(mr_source_length(src, 5, &length), MR_OK); /* its page was read and checked before */
    MRT_EQ(mr_source_length(src, MANY - 1, &length), MR_OK);
    mr_source_close(src);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(of_texts),
        cmocka_unit_test(of_records),
        cmocka_unit_test(of_shards),
        cmocka_unit_test(of_records_that_have_none),
        cmocka_unit_test(of_an_index_that_went_bad),
    };
    return mrt_run(tests);
}
