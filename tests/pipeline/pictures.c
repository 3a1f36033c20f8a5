/* tests/pipeline/pictures.c: see pictures.h. */
#include "tests/pipeline/pictures.h"

#include "mrt.h"

#include <jpeglib.h>

uint8_t *mrt_picture(uint32_t width, uint32_t height, uint32_t channels, uint64_t seed)
{
    const size_t bytes = (size_t)width * height * channels;
    uint8_t *p = malloc(bytes), *noise = malloc(bytes);
    mrt_noise(noise, bytes, seed);
    for (uint32_t y = 0; y < height; y++)
        for (uint32_t x = 0; x < width; x++)
            for (uint32_t c = 0; c < channels; c++) {
                const size_t at = ((size_t)y * width + x) * channels + c;
                const bool disc = (x * 2 + 7 * c) / 11 % 2 == (y + 5 * c) / 9 % 2;
                const unsigned v =
                    (x * (3 + c) + y * (5 - c) + (unsigned)seed * 31) % 200 / (disc ? 1 : 2) + noise[at] % 40;
                p[at] = (uint8_t)v;
            }
    free(noise);
    return p;
}

static void put_exif(struct jpeg_compress_struct *c, int orientation, bool big)
{
    static const uint8_t little_exif[] =
        "Exif\0\0II*\0\x08\0\0\0\x02\0\x0f\x01\x02\0\x02\0\0\0X\0\0\0\x12\x01\x03\0\x01\0\0\0?\0\0\0\0\0\0";
    static const uint8_t big_exif[] =
        "Exif\0\0MM\0*\0\0\0\x08\0\x02\x01\x0f\0\x02\0\0\0\x02X\0\0\0\x01\x12\0\x03\0\0\0\x01\0?\0\0\0\0\0";
    uint8_t body[sizeof little_exif > sizeof big_exif ? sizeof little_exif : sizeof big_exif];
    memcpy(body, big ? big_exif : little_exif, sizeof little_exif);
    uint8_t *mark = memchr(body + 6, '?', sizeof body - 6);
    *mark = (uint8_t)orientation;
    jpeg_write_marker(c, JPEG_APP0 + 1, body, sizeof body - 1);
}

static const jpeg_scan_info separate_scans[] = {
    {1, {0}, 0, 63, 0, 0},
    {1, {1}, 0, 63, 0, 0},
    {1, {2}, 0, 63, 0, 0},
};

uint8_t *mrt_jpeg(const mrt_jpeg_kind *k, uint32_t width, uint32_t height, uint64_t seed, size_t *bytes)
{
    const int components = k->components ? k->components : 3;
    uint8_t *pixels = mrt_picture(width, height, (uint32_t)components, seed);
    struct jpeg_compress_struct c;
    struct jpeg_error_mgr errors;
    unsigned char *out = NULL;
    unsigned long out_bytes = 0;
    c.err = jpeg_std_error(&errors);
    jpeg_create_compress(&c);
    jpeg_mem_dest(&c, &out, &out_bytes);
    c.image_width = width;
    c.image_height = height;
    c.input_components = components;
    c.in_color_space = components == 1 ? JCS_GRAYSCALE : components == 3 ? JCS_RGB : JCS_CMYK;
    jpeg_set_defaults(&c);
    jpeg_set_quality(&c, k->quality ? k->quality : 85, TRUE);
    if (k->h) c.comp_info[0].h_samp_factor = k->h;
    if (k->v) c.comp_info[0].v_samp_factor = k->v;
    if (k->progressive) jpeg_simple_progression(&c);
    if (k->multi_scan) {
        c.scan_info = separate_scans;
        c.num_scans = components;
    }
    c.arith_code = k->arithmetic;
    c.restart_in_rows = k->restart_rows;
    if (components == 4) c.write_Adobe_marker = k->adobe;
    if (k->tune) k->tune(&c);
    jpeg_start_compress(&c, TRUE);
    if (k->orientation) put_exif(&c, k->orientation, k->big_endian);
    for (uint32_t y = 0; y < height; y++) {
        JSAMPROW row = pixels + (size_t)y * width * (size_t)components;
        jpeg_write_scanlines(&c, &row, 1);
    }
    jpeg_finish_compress(&c);
    jpeg_destroy_compress(&c);
    free(pixels);
    *bytes = out_bytes;
    uint8_t *exact = malloc(out_bytes); /* exact, so that a read past the end is seen by the sanitizer */
    memcpy(exact, out, out_bytes);
    free(out);
    return exact;
}

uint8_t *mrt_oriented(const void *jpeg, size_t *bytes, uint32_t orientation)
{
    static const uint8_t exif[] = "\xff\xe1\0\x22"
                                  "Exif\0\0II*\0\x08\0\0\0\x01\0\x12\x01\x03\0\x01\0\0\0?\0\0\0\0\0\0\0";
    const size_t more = sizeof exif - 1;
    uint8_t *out = malloc(*bytes + more);
    memcpy(out, jpeg, 2);
    memcpy(out + 2, exif, more);
    memcpy(out + 2 + more, (const uint8_t *)jpeg + 2, *bytes - 2);
    *(uint8_t *)memchr(out + 2, '?', more) = (uint8_t)orientation;
    *bytes += more;
    return out;
}

uint8_t *mrt_plain_decode(const uint8_t *data, size_t bytes, int want)
{
    struct jpeg_decompress_struct d;
    struct jpeg_error_mgr errors;
    d.err = jpeg_std_error(&errors);
    jpeg_create_decompress(&d);
    jpeg_mem_src(&d, data, bytes);
    jpeg_read_header(&d, TRUE);
    d.out_color_space = want == 1 ? JCS_GRAYSCALE : want == 3 ? JCS_RGB : JCS_CMYK;
    d.do_block_smoothing = FALSE; /* what scans that are not there might have brought is not guessed */
    jpeg_start_decompress(&d);
    uint8_t *out = malloc((size_t)d.output_width * d.output_height * (size_t)want);
    while (d.output_scanline < d.output_height) {
        JSAMPROW row = out + (size_t)d.output_scanline * d.output_width * (size_t)want;
        jpeg_read_scanlines(&d, &row, 1);
    }
    jpeg_finish_decompress(&d);
    jpeg_destroy_decompress(&d);
    return out;
}

mr_value mrt_encoded(const void *data, size_t bytes)
{
    return (mr_value){.type = MR_TYPE_JPEG, .data = data, .bytes = bytes};
}

mr_value mrt_pixels(const uint8_t *data, uint32_t width, uint32_t height, uint32_t channels, mr_planes planes)
{
    return (mr_value){.type = MR_TYPE_PIXELS,
                      .planes = planes,
                      .ndim = 3,
                      .dim = {height, width, channels},
                      .data = data,
                      .bytes = (size_t)width * height * channels};
}
