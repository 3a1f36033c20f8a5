/* tests/own_source.h: a data set of the program's own: gray pictures of one size, each with a class. */
#ifndef MRT_OWN_SOURCE_H
#define MRT_OWN_SOURCE_H

#include "millrace/formats.h"
#include "mrt.h"

/* In a fetch: the sample has these side * side bytes and this label. */
static inline int mrt_own_give(mr_own_sample *to, const uint8_t *pixels, int32_t side, int64_t label,
                               mr_error *err)
{
    const mr_value values[] = {{.type = MR_TYPE_PIXELS,
                                .ndim = 3,
                                .dim = {side, side, 1},
                                .data = pixels,
                                .bytes = (size_t)side * (size_t)side},
                               {.type = MR_TYPE_INT, .i = label}};
    return mr_own_sample_give(to, values, err);
}

/* classes: of the names "0", "1", ...; context: of fetch. The caller closes the source. */
static inline mr_source *mrt_own_source(uint64_t count, int32_t side, uint32_t classes, mr_own_fetch *fetch,
                                        void *context)
{
    const mr_field fields[] = {{.name = "image", .type = MR_TYPE_PIXELS, .ndim = 3, .dim = {side, side, 1}},
                               {.name = "label", .type = MR_TYPE_INT}};
    mr_error err = MR_ERROR_INIT;
    mr_source *src;
    mr_own_config cfg;
    mr_own_defaults(&cfg);
    cfg.count = count;
    cfg.field_count = 2;
    cfg.fields = fields;
    cfg.class_count = classes;
    cfg.fetch = fetch;
    cfg.context = context;
    MRT_OK(mr_source_create(&src, &cfg, &err), &err);
    return src;
}

#endif
