/* mr_append(): samples that do not fit a set are refused with the first class or field that differs; the set
 * stays as it is. */
#include <stdio.h>

#include "base/util.h"
#include "tests/pipeline/sets.h"

/* A set of record files, in pieces. */
static const char *make_set(const char *name, const mr_source *src)
{
    mr_convert_config cfg;
    mr_convert_result made;
    mr_error err = MR_ERROR_INIT;
    mr_convert_defaults(&cfg);
    cfg.shard_bytes = 4096;
    cfg.no_names = true;
    MRT_OK(mr_convert(src, mrt_path("%s.mrec", name), &cfg, &made, &err), &err);
    return mrt_path("%s.mrec", name);
}

/* One record with these fields and classes. */
static mr_source *one_record(const char *name, const mr_field *fields, uint32_t count, uint32_t classes)
{
    static const uint8_t pixels[12] = {0};
    const mr_value values[3] = {
        {.type = MR_TYPE_PIXELS, .ndim = 3, .dim = {2, 2, 3}, .data = pixels, .bytes = sizeof pixels},
        {.type = MR_TYPE_INT, .i = 0},
        {.type = MR_TYPE_FLOAT, .f = 0.5}};
    mr_error err = MR_ERROR_INIT;
    mr_writer *w = mrt_writer(name, fields, count, classes);
    MRT_OK(mr_writer_append(w, 0, values, &err), &err);
    return mrt_written(w, name);
}

static void refused(const char *set, const mr_source *src, const char *text)
{
    mr_error err = MR_ERROR_INIT;
    mr_append_result r;
    MRT_EQ(mr_append(set, src, NULL, &r, &err), MR_EINVAL);
    MRT_HAS(err.text, text);
    MRT_HAS(err.file, "set.mrec");
    MRT_EQ(r.after, r.before);
}

static const mr_field fields[3] = {{.name = "image", .type = MR_TYPE_PIXELS, .ndim = 3, .dim = {2, 2, 3}},
                                   {.name = "label", .type = MR_TYPE_INT},
                                   {.name = "weight", .type = MR_TYPE_FLOAT}};

static void the_first_difference_is_named(void **state)
{
    (void)state;
    mr_source *first = one_record("first", fields, 2, 2); /* classes a and b */
    char set[4096];
    snprintf(set, sizeof set, "%s", make_set("set", first));
    mr_source *more = one_record("more", fields, 2, 3), *less = one_record("less", fields, 2, 1),
              *none = one_record("none", fields, 2, 0), *wide = one_record("wide", fields, 3, 2),
              *other = mrt_source(mrt_folder_set("others", 2, 1, 16, false));
    refused(set, more, "class 2 is \"c\" in the samples to add and missing in the set (3 and 2 classes");
    refused(set, less, "class 1 is missing in the samples to add and \"b\" in the set (1 and 2 classes");
    refused(set, none, "class 0 is missing in the samples to add and \"a\" in the set");
    refused(set, other, "class 0 is \"class00\" in the samples to add and \"a\" in the set");
    refused(set, wide,
            "field 2 of the samples to add is weight of type float, field 2 of the set is missing");
    mr_error err = MR_ERROR_INIT;
    mr_append_result r;
    mr_append_config again;
    mr_append_defaults(&again);
    again.again = true;
    MRT_OK(mr_append(set, first, &again, &r, &err), &err);
    MRT_EQ(r.before, 1);
    MRT_EQ(r.after, 2);
    mr_source *sources[] = {first, more, less, none, wide, other};
    for (size_t k = 0; k < MRI_ARRAY_COUNT(sources); k++) mr_source_close(sources[k]);
}

int main(void)
{
    const struct CMUnitTest tests[] = {cmocka_unit_test(the_first_difference_is_named)};
    return mrt_run(tests);
}
