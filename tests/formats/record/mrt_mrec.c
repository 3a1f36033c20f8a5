/* tests/formats/record/mrt_mrec.c: see mrt_mrec.h. */
#include "tests/formats/record/mrt_mrec.h"

const mr_field mrt_fields[MRT_FIELDS] = {
    {.name = "image", .type = MR_TYPE_IMAGE},
    {.name = "label", .type = MR_TYPE_INT},
    {.name = "weight", .type = MR_TYPE_FLOAT},
    {.name = "vector", .type = MR_TYPE_TENSOR, .dtype = MR_F32, .ndim = 1, .dim = {3}},
    {.name = "name", .type = MR_TYPE_TEXT},
    {.name = "blob", .type = MR_TYPE_BYTES},
};
const char *const mrt_classes[3] = {"cat", "dog", "a longer name with spaces"};

mr_writer_config mrt_writer_config(void)
{
    mr_writer_config cfg;
    mr_writer_defaults(&cfg);
    cfg.fields = mrt_fields;
    cfg.field_count = MRT_FIELDS;
    cfg.class_names = mrt_classes;
    cfg.class_count = 3;
    cfg.provenance = "{\"made\":\"by a test\"}";
    return cfg;
}

size_t mrt_image_bytes(uint64_t i) { return 100 + (size_t)(i * 37 % 301); }

const mr_value *mrt_values(mrt_room *r, uint64_t i, size_t image_bytes)
{
    mrt_noise(r->image, image_bytes, i + 1);
    memcpy(r->image, "\xff\xd8\xff\xe0", 4);
    for (int k = 0; k < 3; k++) r->vector[k] = (float)i + 0.25f * (float)k;
    const int name_bytes = snprintf(r->name, sizeof r->name, "record %llu", (unsigned long long)i);
    mrt_noise(r->blob, sizeof r->blob, i + 1000);
    r->value[0] = (mr_value){.type = MR_TYPE_JPEG, .data = r->image, .bytes = image_bytes};
    r->value[1] = (mr_value){.type = MR_TYPE_INT, .i = (int64_t)(i % 3)};
    r->value[2] = (mr_value){.type = MR_TYPE_FLOAT, .f = 1.0 / (double)(i + 1)};
    r->value[3] = (mr_value){.type = MR_TYPE_TENSOR,
                             .dtype = MR_F32,
                             .ndim = 1,
                             .dim = {3},
                             .data = r->vector,
                             .bytes = sizeof r->vector};
    r->value[4] = (mr_value){.type = MR_TYPE_TEXT, .data = r->name, .bytes = (size_t)name_bytes};
    r->value[5] = (mr_value){.type = MR_TYPE_BYTES, .data = r->blob, .bytes = (size_t)(i % 5) * 13};
    return r->value;
}

void mrt_check_values(const mr_sample *s, uint64_t i, size_t image_bytes)
{
    static mrt_room room;
    const mr_value *expected = mrt_values(&room, i, image_bytes);
    MRT_EQ(s->value_count, MRT_FIELDS);
    for (int k = 0; k < MRT_FIELDS; k++) {
        const mr_value *v = &s->value[k], *e = &expected[k];
        MRT_EQ(v->type, e->type);
        MRT_EQ(v->bytes, e->bytes);
        if (e->bytes) assert_memory_equal(v->data, e->data, e->bytes);
        MRT_EQ(v->i, e->i);
        MRT_TRUE(v->f == e->f);
        MRT_EQ(v->ndim, e->ndim);
    }
}

void mrt_append(mr_writer *w, uint64_t from, uint64_t to)
{
    static mrt_room room;
    mr_error err = MR_ERROR_INIT;
    for (uint64_t i = from; i < to; i++)
        MRT_OK(mr_writer_append(w, 2 * i, mrt_values(&room, i, mrt_image_bytes(i)), &err), &err);
}

void mrt_write_mrec(const char *path, uint64_t count, const mr_writer_config *cfg)
{
    mr_error err = MR_ERROR_INIT;
    mr_writer *w;
    MRT_OK(mr_writer_open(&w, path, cfg, NULL, &err), &err);
    mrt_append(w, 0, count);
    MRT_OK(mr_writer_finish(w, &err), &err);
}
