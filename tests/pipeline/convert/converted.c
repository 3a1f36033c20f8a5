#include "tests/pipeline/convert/converted.h"

mr_source *mrt_source_alone(const char *path)
{
    mr_error err = MR_ERROR_INIT;
    mr_source *src;
    mr_source_config cfg;
    mr_source_defaults(&cfg);
    cfg.no_index_file = true;
    MRT_OK(mr_source_open(&src, path, &cfg, &err), &err);
    return src;
}

void mrt_same_files(const char *a, const char *b)
{
    size_t an, bn;
    void *ad = mrt_read_file(a, &an), *bd = mrt_read_file(b, &bn);
    MRT_EQ(an, bn);
    assert_memory_equal(ad, bd, an);
    free(ad);
    free(bd);
}

void mrt_convert_refused(const mr_source *src, const char *dst, const mr_convert_config *cfg, int code,
                         const char *text)
{
    mr_error err = MR_ERROR_INIT;
    MRT_EQ(mr_convert(src, dst, cfg, NULL, &err), code);
    MRT_HAS(err.text, text);
}
