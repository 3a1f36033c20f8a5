#include "tests/formats/tar/mrt_tar_source.h"

#include <isa-l/igzip_lib.h>

#include "mrt.h"

const char mrt_tar_jpeg[15] = "\xff\xd8\xff\xe0 a picture";

void mrt_tar_picture(mrt_tar *a, const char *name)
{
    mrt_tar_file(a, name, mrt_tar_jpeg, sizeof mrt_tar_jpeg);
}

void mrt_tar_save(mrt_tar *a, const char *name)
{
    mrt_write_file(mrt_path("%s", name), a->data, a->bytes);
    mrt_tar_fini(a);
}

void mrt_tar_save_packed(mrt_tar *a, const char *name)
{
    static uint8_t out[1 << 20];
    struct isal_zstream z;
    isal_deflate_init(&z);
    z.gzip_flag = IGZIP_GZIP;
    z.end_of_stream = 1;
    z.next_in = a->data;
    z.avail_in = (uint32_t)a->bytes;
    z.next_out = out;
    z.avail_out = sizeof out;
    MRT_EQ(isal_deflate(&z), COMP_OK);
    mrt_write_file(mrt_path("%s", name), out, sizeof out - z.avail_out);
    mrt_tar_fini(a);
}

mr_source_config mrt_tar_cfg;

int mrt_tar_try(mr_source **src, const char *name, mr_error *err)
{
    *src = (mr_source *)&mrt_tar_cfg;
    const int rc = mr_source_open(src, mrt_path("%s", name), &mrt_tar_cfg, err);
    if (rc) MRT_TRUE(*src == NULL);
    return rc;
}

/* The usual settings, no index kept. */
mr_source *mrt_tar_open_one(const char *name)
{
    mr_source *src;
    mr_error err = MR_ERROR_INIT;
    MRT_OK(mrt_tar_try(&src, name, &err), &err);
    MRT_STR(mr_source_info_of(src)->format, "tar");
    return src;
}

int mrt_tar_fresh(void **state)
{
    (void)state;
    mr_source_defaults(&mrt_tar_cfg);
    mrt_tar_cfg.no_index_file = true;
    return 0;
}

void *mrt_tar_buf;
size_t mrt_tar_buf_bytes;

mr_sample mrt_tar_get(const mr_source *src, uint64_t sample)
{
    mr_sample s;
    mr_error err = MR_ERROR_INIT;
    MRT_OK(mr_source_read(src, sample, &mrt_tar_buf, &mrt_tar_buf_bytes, &s, &err), &err);
    MRT_EQ(s.value_count, mr_source_info_of(src)->field_count);
    return s;
}

int mrt_tar_done(void **state)
{
    (void)state;
    free(mrt_tar_buf);
    mrt_tar_buf = NULL;
    mrt_tar_buf_bytes = 0;
    return 0;
}
