#include "tests/pipeline/sets.h"

#include "base/util.h"

static void put_be32(FILE *f, uint32_t v)
{
    v = __builtin_bswap32(v);
    assert_int_equal(fwrite(&v, 4, 1, f), 1);
}

const char *mrt_idx_set(const char *name, uint32_t n, uint32_t h, uint32_t w)
{
    const char *labels = mrt_path("%s-labels-idx1-ubyte", name),
               *images = mrt_path("%s-images-idx3-ubyte", name);
    FILE *f = fopen(labels, "wb");
    assert_non_null(f);
    put_be32(f, 0x801);
    put_be32(f, n);
    for (uint32_t i = 0; i < n; i++) fputc((int)(i % 10), f);
    fclose(f);
    f = fopen(images, "wb");
    assert_non_null(f);
    put_be32(f, 0x803);
    put_be32(f, n);
    put_be32(f, h);
    put_be32(f, w);
    const size_t each = (size_t)h * w;
    uint8_t *pixels = malloc(each + 1);
    assert_non_null(pixels);
    for (uint32_t i = 0; i < n; i++) {
        for (size_t k = 0; k < each; k++) pixels[k] = (uint8_t)mrt_idx_pixel(i, k);
        assert_int_equal(fwrite(pixels, 1, each, f), each);
    }
    free(pixels);
    fclose(f);
    return images;
}

static void write_picture(const char *path, uint32_t w, uint32_t h, uint64_t seed)
{
    mr_image image = {.width = w, .height = h, .channels = 3, .pixels = malloc((size_t)w * h * 3)};
    assert_non_null(image.pixels);
    for (uint32_t y = 0; y < h; y++)
        for (uint32_t x = 0; x < w; x++)
            for (uint32_t c = 0; c < 3; c++)
                image.pixels[((size_t)y * w + x) * 3 + c] =
                    (uint8_t)(x * (3 + c) + y * 5 + seed * 37 + (x / 4 + y / 4) % 2 * 60);
    mr_error err = MR_ERROR_INIT;
    void *data;
    size_t bytes;
    MRT_OK(mr_image_encode_jpeg(&image, 90, &data, &bytes, &err), &err);
    mrt_write_file(path, data, bytes);
    free(data);
    free(image.pixels);
}

const char *mrt_folder_set(const char *name, uint32_t classes, uint32_t per_class, uint32_t size, bool vary)
{
    mrt_mkdir(mrt_path("%s", name));
    for (uint32_t c = 0; c < classes; c++) {
        mrt_mkdir(mrt_path("%s/class%02u", name, c));
        for (uint32_t i = 0; i < per_class; i++) {
            const uint32_t n = c * per_class + i;
            write_picture(mrt_path("%s/class%02u/%04u.jpg", name, c, i), size + (vary ? n % 7 : 0),
                          size + (vary ? n % 5 : 0), n);
        }
    }
    return mrt_path("%s", name); /* anew: its buffers rotate */
}

mr_source *mrt_source(const char *path)
{
    mr_error err = MR_ERROR_INIT;
    mr_source *src;
    MRT_OK(mr_source_open(&src, path, NULL, &err), &err);
    return src;
}

mr_writer *mrt_writer(const char *name, const mr_field *fields, uint32_t count, uint32_t classes)
{
    static const char *const names[] = {"a", "b", "c"};
    mr_error err = MR_ERROR_INIT;
    mr_writer_config cfg;
    mr_writer *w;
    MRT_TRUE(classes <= MRI_ARRAY_COUNT(names));
    mr_writer_defaults(&cfg);
    cfg.field_count = count;
    cfg.fields = fields;
    cfg.class_count = classes;
    cfg.class_names = classes ? names : NULL;
    cfg.force = true;
    MRT_OK(mr_writer_open(&w, mrt_path("%s.mrec", name), &cfg, NULL, &err), &err);
    return w;
}

mr_source *mrt_written(mr_writer *w, const char *name)
{
    mr_error err = MR_ERROR_INIT;
    MRT_OK(mr_writer_finish(w, &err), &err);
    return mrt_source(mrt_path("%s.mrec", name));
}

mr_loader_config mrt_training(uint32_t batch, uint64_t epochs, const char *augment,
                              const mr_loader_field *fields, uint32_t count)
{
    mr_loader_config cfg;
    mr_loader_defaults(&cfg);
    cfg.batch = batch;
    cfg.seed = 11;
    cfg.epochs = epochs;
    cfg.workers = 2;
    cfg.training = true;
    cfg.augment = augment;
    cfg.fields = fields;
    cfg.field_count = count;
    return cfg;
}

void mrt_refused(const mr_source *src, const mr_loader_config *cfg, int code, const char *text)
{
    mr_error err = MR_ERROR_INIT;
    mr_loader *l = (mr_loader *)(uintptr_t)8;
    MRT_EQ(mr_loader_open(&l, src, cfg, &err), code);
    MRT_TRUE(l == NULL);
    MRT_HAS(err.text, text);
}

mr_digest mrt_digest(const mr_source *src, const mr_loader_config *cfg, uint64_t *batches, uint64_t *samples)
{
    mr_error err = MR_ERROR_INIT;
    mr_loader *l;
    mr_digester *d;
    uint64_t b, s;
    MRT_OK(mr_loader_open(&l, src, cfg, &err), &err);
    MRT_EQ(mr_digester_create(&d), MR_OK);
    MRT_OK(mr_digester_run(d, l, cfg->devices, UINT64_MAX, &b, &s, &err), &err);
    const mr_digest result = mr_digester_result(d);
    mr_digester_destroy(d);
    mr_loader_close(l);
    if (batches) *batches = b;
    if (samples) *samples = s;
    return result;
}
