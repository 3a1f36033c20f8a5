/* images: kinds, limits, damage, orientation, colour rules, encoding, and a decoder's memory from picture
 * to picture. */
#include <spng.h>

#include "base/util.h"
#include "mrt.h"

#include <jpeglib.h> /* behind stdio.h */

#include "pipeline/decode/decoders.h"
#include "pipeline/decode/jpeg/transcoder.h"
#include "tests/pipeline/pictures.h"

static int decode(const void *data, size_t bytes, uint32_t channels, mr_image *out, mr_error *err)
{
    mr_decode_config cfg;
    mr_decode_defaults(&cfg);
    cfg.channels = channels;
    const mr_value v = mrt_encoded(data, bytes);
    return mr_image_decode(&v, &cfg, out, err);
}

/* ---- headers ---- */

static void sniffs_and_reads_headers(void **state)
{
    (void)state;
    size_t bytes;
    uint8_t *file =
        mrt_jpeg(&(mrt_jpeg_kind){.h = 2, .v = 2, .orientation = 6, .progressive = true}, 33, 17, 1, &bytes);
    mr_image_header h;
    MRT_EQ(mr_image_sniff(file, bytes), MR_TYPE_JPEG);
    MRT_EQ(mr_image_header_parse(file, bytes, &h, NULL), MR_OK);
    MRT_EQ(h.width, 33);
    MRT_EQ(h.height, 17);
    MRT_EQ(h.channels, 3);
    MRT_EQ(h.orientation, 6);
    MRT_TRUE(h.progressive);
    for (size_t n = 0; n < bytes; n++) { /* every beginning: an answer or an error, never a read past it */
        uint8_t *part = malloc(n ? n : 1);
        memcpy(part, file, n);
        mr_error err = MR_ERROR_INIT;
        const int rc = mr_image_header_parse(part, n, &h, &err);
        MRT_TRUE(rc == MR_OK || (rc == MR_EFORMAT && err.text[0]));
        free(part);
    }
    free(file);
    MRT_EQ(mr_image_sniff("\x89PNG\r\n\x1a\n", 8), MR_TYPE_PNG);
    MRT_EQ(mr_image_sniff("\x89PNG\r\n\x1a", 7), 0);
    MRT_EQ(mr_image_sniff("", 0), 0);
}

static void header_says(const char *bytes, size_t n, int code, const char *part)
{
    mr_image_header h;
    mr_error err = MR_ERROR_INIT;
    MRT_EQ(mr_image_header_parse(bytes, n, &h, &err), code);
    MRT_HAS(err.text, part);
}

static void names_what_it_found(void **state)
{
    (void)state;
#define SAYS(text, code, part) header_says(text, sizeof(text) - 1, code, part)
    SAYS("", MR_EFORMAT, "no bytes");
    SAYS("Hello, this is a text file\n", MR_EFORMAT, "text");
    SAYS("8BPS\0\1\0\0", MR_EFORMAT, "a Photoshop picture");
    SAYS("GIF89a\1\0\1\0", MR_EFORMAT, "GIF: ends at byte 10");
    SAYS("GIF88a\1\0\1\0", MR_EFORMAT, "a GIF picture of no known version");
    SAYS("BM\0\0\0\0\0\0\0\0\1\0\0\0\x29\0\0\0", MR_EFORMAT, "a BMP picture of no known version");
    SAYS("RIFF\1\2\3\4WEBPVP8 ", MR_EFORMAT, "WebP: ends at byte 16");
    SAYS("RIFF\1\2\3\4WEBPVP9 ", MR_EFORMAT, "a WebP picture of no known version");
    SAYS("\0\1\2\3", MR_EFORMAT, "00 01 02 03");
    SAYS("\xff\xd8\xff\xc3\0\x0b\x08\0\1\0\1\1\1\x11\0", MR_EUNSUPPORTED, "lossless");
    SAYS("\xff\xd8\xff\xc5\0\x0b\x08\0\1\0\1\1\1\x11\0", MR_EUNSUPPORTED, "hierarchical");
    SAYS("\xff\xd8\xff\xc1\0\x0b\x0c\0\1\0\1\1\1\x11\0", MR_EUNSUPPORTED, "12 bits");
    SAYS("\xff\xd8\xff\xc0\0\x0b\x08\0\0\0\1\1\1\x11\0", MR_EUNSUPPORTED, "DNL");
    SAYS("\xff\xd8\xff\xc0\0\x0b\x08\0\1\0\0\1\1\x11\0", MR_EFORMAT, "width is 0");
    SAYS("\xff\xd8\xff\xc0\0\x0b\x08\0\1\0\1\2\1\x11\0", MR_EFORMAT, "component count");
    SAYS("\xff\xd8\xff\xda\0\x02", MR_EFORMAT, "before any frame header");
    SAYS("\xff\xd8\xff\xe0\0\1", MR_EFORMAT, "length 1");
    SAYS("\xff\xd8\xff\xe0\0\x40JFIF", MR_EFORMAT, "truncated");
    SAYS("\x89PNG\r\n\x1a\n\0\0\0\rIHDR\0\0\0\1\0\0\0\1\x08\2\0\0\0\1\2\3\4", MR_EFORMAT, "CRC");
    SAYS("\x89PNG\r\n\x1a\n\0\0\0\rIHDR", MR_EFORMAT, "truncated");
    SAYS("\x89PNG\r\n\x1a\n\0\0\0\rIDAT\0\0\0\1\0\0\0\1\x08\2\0\0\0\1\2\3\4", MR_EFORMAT, "IHDR");
#undef SAYS
}

/* ---- limits ---- */

static void huge_headers_take_no_memory(void **state)
{
    (void)state;
    size_t bytes;
    uint8_t *file = mrt_jpeg(&(mrt_jpeg_kind){.h = 2, .v = 2}, 16, 16, 1, &bytes);
    for (size_t at = 0; at + 9 < bytes; at++)
        if (file[at] == 0xff && file[at + 1] == 0xc0) memset(file + at + 5, 0xff, 4);
    mr_image out;
    mr_error err = MR_ERROR_INIT;
    MRT_EQ(decode(file, bytes, 0, &out, &err), MR_ELIMIT);
    MRT_HAS(err.text, "65535 x 65535");
    MRT_TRUE(mri_peak_rss_bytes() < 50u << 20 || mri_peak_rss_bytes() == 0);
    free(file);
}

static void many_scans_are_refused(void **state)
{
    (void)state;
    size_t bytes;
    uint8_t *file = mrt_jpeg(&(mrt_jpeg_kind){.progressive = true}, 40, 40, 1, &bytes);
    const mr_value v = mrt_encoded(file, bytes);
    mr_decode_config cfg;
    mr_decode_defaults(&cfg);
    mr_image out;
    mr_error err = MR_ERROR_INIT;
    cfg.max_scans = 10; /* as in the standard script */
    MRT_OK(mr_image_decode(&v, &cfg, &out, &err), &err);
    mr_image_free(&out);
    cfg.max_scans = 9;
    MRT_EQ(mr_image_decode(&v, &cfg, &out, &err), MR_ELIMIT);
    MRT_HAS(err.text, "more than 9 scans");
    cfg.max_scans = 100;
    cfg.max_pixels = 1599;
    MRT_EQ(mr_image_decode(&v, &cfg, &out, &err), MR_ELIMIT);
    free(file);
}

/* ---- damage ---- */

static void truncated_jpegs_are_errors(void **state)
{
    (void)state;
    static const mrt_jpeg_kind kinds[] = {{.h = 2, .v = 2},  {.progressive = true}, {.arithmetic = true},
                                          {.components = 1}, {.multi_scan = true},  {.restart_rows = 1}};
    for (size_t k = 0; k < MRI_ARRAY_COUNT(kinds); k++) {
        size_t bytes;
        uint8_t *file = mrt_jpeg(&kinds[k], 50, 40, k, &bytes);
        for (size_t n = 0; n < bytes; n += 7) {
            mr_image out;
            mr_error err = MR_ERROR_INIT;
            const int rc = decode(file, n, 0, &out, &err);
            MRT_EQ(rc, MR_EFORMAT);
            MRT_TRUE(out.pixels == NULL);
            MRT_TRUE(err.text[0] != 0);
            /* and with an end marker put behind: no end in sight, but data are missing */
            uint8_t *ended = malloc(n + 2);
            memcpy(ended, file, n);
            memcpy(ended + n, "\xff\xd9", 2);
            /* Arithmetic data may end in zeros that are left out, and the last scans of a progressive picture
             * only refine: there a forged end may pass. */
            if (n < bytes - 40 && !kinds[k].progressive && !kinds[k].arithmetic)
                MRT_TRUE(decode(ended, n + 2, 0, &out, &err) != MR_OK);
            else if (decode(ended, n + 2, 0, &out, &err) == MR_OK) mr_image_free(&out);
            free(ended);
        }
        free(file);
    }
}

/* Damage anywhere: an error or a picture, the same each time, whatever was decoded before; and memory stays
 * flat. */
static void damaged_jpegs_leave_nothing(void **state)
{
    (void)state;
    mri_decoder d = {0};
    mr_decode_config cfg;
    mr_decode_defaults(&cfg);
    cfg.max_pixels = 1 << 16;
    size_t bytes[3], bad = 0;
    uint8_t *file[3];
    file[0] = mrt_jpeg(&(mrt_jpeg_kind){.h = 2, .v = 2, .restart_rows = 1}, 16, 16, 1, &bytes[0]);
    file[1] = mrt_jpeg(&(mrt_jpeg_kind){.progressive = true}, 8, 8, 2, &bytes[1]);
    file[2] = mrt_jpeg(&(mrt_jpeg_kind){.components = 1}, 16, 8, 3, &bytes[2]);
    uint64_t seed = 1, before = 0;
    for (int n = 0; n < 100000; n++) {
        const int k = n % 3;
        uint8_t copy[2048];
        memcpy(copy, file[k], bytes[k]);
        for (int hit = 0; hit < 3; hit++) {
            seed = mri_mix64(seed);
            copy[20 + seed % (bytes[k] - 20)] = (uint8_t)(seed >> 32);
        }
        const mr_value v = mrt_encoded(copy, bytes[k]);
        mri_picture p;
        mri_view view;
        mr_error err = MR_ERROR_INIT;
        int rc = mri_picture_open(&p, &d, &v, &cfg, &err);
        if (rc == MR_OK)
            rc = mri_picture_decode(&d, &p, &cfg, 3, (mri_rect){0, 0, p.width, p.height}, &view, &err);
        MRT_TRUE(rc == MR_OK || rc == MR_EFORMAT || rc == MR_EUNSUPPORTED || rc == MR_ELIMIT);
        bad += rc != MR_OK;
        if (n == 50000) before = mri_peak_rss_bytes(); /* buffers are as large as they get */
    }
    MRT_TRUE(bad > 30000);
    MRT_TRUE(MRT_SANITIZED || mri_peak_rss_bytes() <= before + (1 << 20)); /* their quarantine grows */
    mri_decoder_free(&d);
    for (int k = 0; k < 3; k++) free(file[k]);
}

/* Cut all segments of one kind out of a JPEG. */
static size_t without_segments(uint8_t *file, size_t bytes, uint8_t marker)
{
    size_t at = 2;
    while (at + 4 < bytes && file[at] == 0xff && file[at + 1] != 0xda) {
        const size_t length = 2 + mri_be16(file + at + 2);
        if (file[at + 1] == marker) {
            memmove(file + at, file + at + length, bytes - at - length);
            bytes -= length;
        } else {
            at += length;
        }
    }
    return bytes;
}

static void tables_do_not_leak(mr_pixels pixels)
{
    size_t first_bytes, bytes;
    uint8_t *first = mrt_jpeg(&(mrt_jpeg_kind){.quality = 10, .progressive = true}, 24, 24, 1, &first_bytes);
    mri_decoder d = {0};
    mr_decode_config cfg;
    mr_decode_defaults(&cfg);
    cfg.pixels = pixels;
    for (int k = 0; k < 2; k++) {
        uint8_t *file = mrt_jpeg(&(mrt_jpeg_kind){.quality = 90}, 24, 24, 2, &bytes);
        mr_image whole;
        MRT_EQ(mr_image_decode(&(mr_value){.type = MR_TYPE_JPEG, .data = file, .bytes = bytes}, &cfg, &whole,
                               NULL),
               MR_OK);
        const size_t cut = without_segments(file, bytes, k == 0 ? 0xdb : 0xc4); /* DQT; DHT: then the standard
                                                                                   ones hold */
        const mr_value values[2] = {mrt_encoded(first, first_bytes), mrt_encoded(file, cut)};
        for (int n = 0; n < 2; n++) {
            mri_picture p;
            mri_view v;
            mr_error err = MR_ERROR_INIT;
            int rc = mri_picture_open(&p, &d, &values[n], &cfg, &err);
            if (rc == MR_OK) rc = mri_picture_decode(&d, &p, &cfg, 3, (mri_rect){0, 0, 24, 24}, &v, &err);
            if (n == 1 && k == 0) {
                MRT_EQ(rc, MR_EFORMAT);
                MRT_HAS(err.text, "quantisation table");
            } else {
                MRT_OK(rc, &err);
                if (n == 1) MRT_TRUE(memcmp(v.pixels, whole.pixels, 24 * 24 * 3) == 0);
            }
        }
        mr_image_free(&whole);
        free(file);
    }
    free(first);
    mri_decoder_free(&d);
}

static void tables_do_not_leak_from_picture_to_picture(void **state)
{
    (void)state;
    tables_do_not_leak(MR_PIXELS_OWN);
    tables_do_not_leak(MR_PIXELS_LIBJPEG);
}

/* ---- scans that are missing ---- */

static void leave_scans_out(void *compressor)
{
    static const jpeg_scan_info only_dc[] = {{3, {0, 1, 2}, 0, 0, 0, 0}};
    struct jpeg_compress_struct *c = compressor;
    c->scan_info = only_dc;
    c->num_scans = 1;
}

/* As a program that leaves libjpeg's defaults alone. */
static uint8_t *smoothed_decode(const uint8_t *data, size_t bytes, uint32_t w, uint32_t h)
{
    struct jpeg_decompress_struct d;
    struct jpeg_error_mgr errors;
    uint8_t *out = malloc((size_t)w * h * 3);
    d.err = jpeg_std_error(&errors);
    jpeg_create_decompress(&d);
    jpeg_mem_src(&d, data, bytes);
    jpeg_read_header(&d, TRUE);
    jpeg_start_decompress(&d);
    while (d.output_scanline < d.output_height) {
        JSAMPROW row = out + (size_t)d.output_scanline * w * 3;
        jpeg_read_scanlines(&d, &row, 1);
    }
    jpeg_finish_decompress(&d);
    jpeg_destroy_decompress(&d);
    return out;
}

/* A progressive file whose later scans were never written: programs with libjpeg's block smoothing
 * invent missing detail. Here nothing is invented, in both ways of computing pixels: the file, the same
 * coefficients in a sequential one, and libjpeg without smoothing give the same. */
static void missing_scans_are_not_made_up(void **state)
{
    (void)state;
    enum { W = 64, H = 48 };
    const mrt_jpeg_kind kind = {.progressive = true, .tune = leave_scans_out, .h = 1, .v = 1};
    size_t bytes, sequential_bytes;
    uint8_t *file = mrt_jpeg(&kind, W, H, 7, &bytes), *smoothed = smoothed_decode(file, bytes, W, H),
            *plain = mrt_plain_decode(file, bytes, 3);
    mr_decode_config cfg;
    mr_decode_defaults(&cfg);
    mri_transcoder *w;
    void *sequential;
    mr_error err = MR_ERROR_INIT;
    MRT_EQ(mri_transcoder_create(&w), MR_OK);
    MRT_OK(mri_transcoder_make_sequential(w, file, bytes, &cfg, &sequential, &sequential_bytes, &err), &err);
    for (int k = 0; k < 2; k++) {
        mr_image out, same;
        uint32_t differ = 0;
        cfg.pixels = k ? MR_PIXELS_LIBJPEG : MR_PIXELS_OWN;
        const mr_value a = mrt_encoded(file, bytes), b = mrt_encoded(sequential, sequential_bytes);
        MRT_OK(mr_image_decode(&a, &cfg, &out, &err), &err);
        MRT_OK(mr_image_decode(&b, &cfg, &same, &err), &err);
        assert_memory_equal(out.pixels, same.pixels, W * H * 3);
        for (size_t i = 0; i < (size_t)W * H * 3; i++) differ += abs(out.pixels[i] - smoothed[i]) > 8;
        MRT_TRUE(differ > 100);
        if (k) assert_memory_equal(out.pixels, plain, W * H * 3);
        for (uint32_t i = 0; i < 7; i++) /* one block, one colour */
            assert_memory_equal(out.pixels + 3 * i, out.pixels + 3 * i + 3, 3);
        mr_image_free(&same);
        mr_image_free(&out);
    }
    mri_transcoder_destroy(w);
    free(sequential);
    free(smoothed);
    free(plain);
    free(file);
}

/* ---- orientation ---- */

/* What each EXIF value means, as moves of the stored picture. */
static void stored_place(int orientation, uint32_t w, uint32_t h, uint32_t x, uint32_t y, uint32_t *sx,
                         uint32_t *sy)
{
    switch (orientation) {
    case 2:
        *sx = w - 1 - x;
        *sy = y;
        break;
    case 3:
        *sx = w - 1 - x;
        *sy = h - 1 - y;
        break;
    case 4:
        *sx = x;
        *sy = h - 1 - y;
        break;
    case 5:
        *sx = y;
        *sy = x;
        break;
    case 6:
        *sx = y;
        *sy = h - 1 - x;
        break;
    case 7:
        *sx = w - 1 - y;
        *sy = h - 1 - x;
        break;
    case 8:
        *sx = w - 1 - y;
        *sy = x;
        break;
    default:
        *sx = x;
        *sy = y;
        break;
    }
}

static void orientation_is_applied(void **state)
{
    (void)state;
    for (int o = 1; o <= 8; o++) {
        const uint32_t w = 37, h = 22;
        size_t bytes;
        uint8_t *file = mrt_jpeg(&(mrt_jpeg_kind){.h = 2, .v = 2, .orientation = o, .big_endian = o % 2}, w,
                                 h, 9, &bytes);
        mr_decode_config as_stored;
        mr_decode_defaults(&as_stored);
        as_stored.ignore_exif = true;
        mr_image out, stored;
        mr_error err = MR_ERROR_INIT;
        MRT_OK(mr_image_decode(&(mr_value){.type = MR_TYPE_JPEG, .data = file, .bytes = bytes}, &as_stored,
                               &stored, &err),
               &err);
        MRT_OK(decode(file, bytes, 3, &out, &err), &err);
        MRT_EQ(out.width, o >= 5 ? h : w);
        MRT_EQ(out.height, o >= 5 ? w : h);
        for (uint32_t y = 0; y < out.height; y++)
            for (uint32_t x = 0; x < out.width; x++) {
                uint32_t sx, sy;
                stored_place(o, w, h, x, y, &sx, &sy);
                MRT_TRUE(memcmp(out.pixels + ((size_t)y * out.width + x) * 3,
                                stored.pixels + ((size_t)sy * w + sx) * 3, 3) == 0);
            }
        /* a part of the upright picture is that part */
        mr_decode_config cfg;
        mr_decode_defaults(&cfg);
        const mr_value value = mrt_encoded(file, bytes);
        mri_decoder d = {0};
        mri_picture p;
        mri_view v;
        const mri_rect part = {3, 5, 11, 9};
        MRT_OK(mri_picture_open(&p, &d, &value, &cfg, &err), &err);
        MRT_OK(mri_picture_decode(&d, &p, &cfg, 3, part, &v, &err), &err);
        for (uint32_t y = 0; y < part.height; y++)
            MRT_TRUE(memcmp(v.pixels + y * v.stride,
                            out.pixels + ((size_t)(part.y + y) * out.width + part.x) * 3,
                            part.width * 3) == 0);
        mri_decoder_free(&d);
        mr_image_free(&out);
        cfg.ignore_exif = true;
        MRT_OK(mr_image_decode(&value, &cfg, &out, &err), &err);
        MRT_EQ(out.width, w);
        mr_image_free(&out);
        mr_image_free(&stored);
        free(file);
    }
}

/* ---- colour rules ---- */

static void cmyk_becomes_rgb(void **state)
{
    (void)state;
    for (int adobe = 0; adobe < 2; adobe++) {
        size_t bytes;
        uint8_t *file = mrt_jpeg(&(mrt_jpeg_kind){.components = 4, .adobe = adobe}, 20, 12, 3, &bytes);
        uint8_t *stored = mrt_plain_decode(file, bytes, 4);
        mr_image out;
        mr_error err = MR_ERROR_INIT;
        MRT_OK(decode(file, bytes, 0, &out, &err), &err);
        MRT_EQ(out.channels, 3);
        for (size_t k = 0; k < 20 * 12; k++)
            for (int c = 0; c < 3; c++) {
                const int ink = stored[4 * k + c], black = stored[4 * k + 3];
                const int expected =
                    adobe ? (ink * black * 2 + 255) / 510 : ((255 - ink) * (255 - black) * 2 + 255) / 510;
                MRT_TRUE(abs(out.pixels[3 * k + c] - expected) == 0);
            }
        mr_image_free(&out);
        free(stored);
        free(file);
    }
}

static void gray_stays_or_is_repeated(void **state)
{
    (void)state;
    size_t bytes;
    uint8_t *file = mrt_jpeg(&(mrt_jpeg_kind){.components = 1}, 19, 7, 3, &bytes);
    mr_image one, three;
    MRT_EQ(decode(file, bytes, 0, &one, NULL), MR_OK);
    MRT_EQ(decode(file, bytes, 3, &three, NULL), MR_OK);
    MRT_EQ(one.channels, 1);
    for (size_t k = 0; k < 19 * 7 * 3; k++) MRT_EQ(three.pixels[k], one.pixels[k / 3]);
    mr_image_free(&one);
    mr_image_free(&three);
    free(file);
}

/* A PNG of any kind; pixels as its format wants them. */
static void *png_of(uint32_t w, uint32_t h, int colour, int depth, int interlace, const void *pixels,
                    size_t pixel_bytes, struct spng_plte *palette, size_t *bytes)
{
    spng_ctx *ctx = spng_ctx_new(SPNG_CTX_ENCODER);
    struct spng_ihdr ihdr = {.width = w,
                             .height = h,
                             .bit_depth = (uint8_t)depth,
                             .color_type = (uint8_t)colour,
                             .interlace_method = (uint8_t)interlace};
    int code;
    spng_set_option(ctx, SPNG_ENCODE_TO_BUFFER, 1);
    MRT_EQ(spng_set_ihdr(ctx, &ihdr), 0);
    if (palette) MRT_EQ(spng_set_plte(ctx, palette), 0);
    MRT_EQ(spng_encode_image(ctx, pixels, pixel_bytes, SPNG_FMT_PNG, SPNG_ENCODE_FINALIZE), 0);
    void *data = spng_get_png_buffer(ctx, bytes, &code);
    spng_ctx_free(ctx);
    return data;
}

static void png_kinds(void **state)
{
    (void)state;
    const uint32_t w = 13, h = 9;
    uint8_t noise[13 * 9 * 8];
    mrt_noise(noise, sizeof noise, 5);
    mr_error err = MR_ERROR_INIT;
    for (int colour = 0; colour <= 6; colour++) {
        static const uint32_t samples[7] = {1, 0, 3, 1, 2, 0, 4};
        if (!samples[colour]) continue;
        for (int depth = 8; depth <= 16; depth += 8) {
            if (colour == 3 && depth == 16) continue;
            struct spng_plte palette = {.n_entries = 256};
            for (unsigned k = 0; k < 256; k++)
                palette.entries[k] =
                    (struct spng_plte_entry){(uint8_t)(k * 7), (uint8_t)(k * 5 + 1), (uint8_t)(255 - k), 0};
            const size_t unit = samples[colour] * (unsigned)depth / 8;
            size_t bytes;
            void *file =
                png_of(w, h, colour, depth, 0, noise, w * h * unit, colour == 3 ? &palette : NULL, &bytes);
            mr_image out;
            MRT_OK(decode(file, bytes, 0, &out, &err), &err);
            MRT_EQ(out.channels, samples[colour] <= 2 && colour != 3 ? 1 : 3);
            for (size_t k = 0; k < w * h; k++)
                for (uint32_t c = 0; c < out.channels; c++) {
                    /* 16-bit samples go into the encoder in this machine's order: the high byte is the
                     * second */
                    const size_t at = k * unit + c * (unsigned)depth / 8 + (depth == 16);
                    const struct spng_plte_entry e = palette.entries[noise[k * unit]];
                    const uint8_t from_palette = c == 0 ? e.red : c == 1 ? e.green : e.blue;
                    MRT_EQ(out.pixels[k * out.channels + c], colour == 3 ? from_palette : noise[at]);
                }
            mr_image gray;
            MRT_OK(decode(file, bytes, 1, &gray, &err), &err);
            for (size_t k = 0; k < w * h; k++) {
                const uint8_t *p = out.pixels + k * out.channels;
                MRT_EQ(gray.pixels[k], out.channels == 1 ? p[0] : mri_gray(p[0], p[1], p[2]));
            }
            mr_image_free(&gray);
            for (size_t n = 0; n < bytes; n++) { /* cut or hit anywhere: its checksums notice */
                mr_image none;
                if (n < bytes - 4)
                    MRT_TRUE(decode(file, n, 0, &none, &err) != MR_OK); /* the checksum of IEND, which is
                                                                           empty */
                ((uint8_t *)file)[n] ^= 0x10;
                if (n < bytes - 4) MRT_TRUE(decode(file, bytes, 0, &none, &err) != MR_OK);
                ((uint8_t *)file)[n] ^= 0x10;
            }
            mr_image_free(&out);
            free(file);
        }
    }
}

static void low_bit_depth_png(void **state)
{
    (void)state;
    const uint8_t rows[2] = {0xb0, 0x40}; /* 4 x 2 pixels of one bit */
    size_t bytes;
    void *file = png_of(4, 2, 0, 1, 0, rows, 2, NULL, &bytes);
    mr_image out;
    mr_error err = MR_ERROR_INIT;
    MRT_OK(decode(file, bytes, 0, &out, &err), &err);
    static const uint8_t expected[8] = {255, 0, 255, 255, 0, 255, 0, 0};
    MRT_TRUE(memcmp(out.pixels, expected, 8) == 0);
    mr_image_free(&out);
    free(file);
}

/* ---- raw pixels ---- */

static void raw_pixels(void **state)
{
    (void)state;
    uint8_t *p = mrt_picture(5, 4, 3, 1), planes[60];
    for (size_t k = 0; k < 20; k++)
        for (size_t c = 0; c < 3; c++) planes[c * 20 + k] = p[3 * k + c];
    mr_image out;
    mr_error err = MR_ERROR_INIT;
    mr_value v = mrt_pixels(planes, 5, 4, 3, MR_CHW);
    MRT_OK(mr_image_decode(&v, NULL, &out, &err), &err);
    MRT_TRUE(memcmp(out.pixels, p, 60) == 0);
    mr_image_free(&out);
    v = mrt_pixels(p, 5, 4, 3, MR_HWC);
    mr_decode_config cfg;
    mr_decode_defaults(&cfg);
    cfg.channels = 1;
    MRT_OK(mr_image_decode(&v, &cfg, &out, &err), &err);
    for (size_t k = 0; k < 20; k++) MRT_EQ(out.pixels[k], mri_gray(p[3 * k], p[3 * k + 1], p[3 * k + 2]));
    mr_image_free(&out);
    v.bytes--;
    MRT_EQ(mr_image_decode(&v, &cfg, &out, &err), MR_EFORMAT);
    v.dim[2] = 5;
    MRT_EQ(mr_image_decode(&v, &cfg, &out, &err), MR_EFORMAT);
    const mr_value text = {.type = MR_TYPE_INT, .i = 4};
    MRT_EQ(mr_image_decode(&text, &cfg, &out, &err), MR_EFORMAT);
    cfg.channels = 2;
    MRT_EQ(mr_image_decode(&v, &cfg, &out, &err), MR_EINVAL);
    free(p);
}

/* ---- encoding ---- */

static void encodes_what_it_decodes(void **state)
{
    (void)state;
    for (uint32_t channels = 1; channels <= 3; channels += 2) {
        const mr_image in = {301, 203, channels, mrt_picture(301, 203, channels, 6)};
        mr_image out;
        mr_error err = MR_ERROR_INIT;
        void *data;
        size_t bytes;
        MRT_OK(mr_image_encode_png(&in, &data, &bytes, &err), &err);
        MRT_OK(decode(data, bytes, 0, &out, &err), &err); /* offered as JPEG: content decides */
        MRT_EQ(out.channels, channels);
        MRT_TRUE(memcmp(in.pixels, out.pixels, (size_t)301 * 203 * channels) == 0);
        mr_image_free(&out);
        free(data);
        for (int quality = 90; quality <= 100; quality += 10) {
            MRT_OK(mr_image_encode_jpeg(&in, quality, &data, &bytes, &err), &err);
            MRT_OK(decode(data, bytes, 0, &out, &err), &err);
            MRT_EQ(out.channels, channels);
            uint64_t apart = 0;
            for (size_t k = 0; k < (size_t)301 * 203 * channels; k++)
                apart += (uint64_t)abs(in.pixels[k] - out.pixels[k]);
            if (quality == 100) MRT_TRUE(apart < (uint64_t)301 * 203 * channels * 2);
            mr_image_free(&out);
            free(data);
        }
        MRT_EQ(mr_image_encode_jpeg(&in, 0, &data, &bytes, &err), MR_EINVAL);
        free(in.pixels);
    }
    uint8_t pixel[2] = {0};
    const mr_image two = {1, 1, 2, pixel};
    void *data;
    size_t bytes;
    MRT_EQ(mr_image_encode_png(&two, &data, &bytes, NULL), MR_EINVAL);
    MRT_EQ(mr_image_encode_jpeg(&two, 90, &data, &bytes, NULL), MR_EINVAL);
}

static void survives_failing_allocations(void **state)
{
    (void)state;
    const mr_image in = {300, 280, 3, mrt_picture(300, 280, 3, 1)};
    void *jpeg, *png;
    size_t jpeg_bytes, png_bytes;
    MRT_EQ(mr_image_encode_png(&in, &png, &png_bytes, NULL), MR_OK);
    for (int n = 0;; n++) {
        mrt_fail_alloc_at(n);
        const int rc = mr_image_encode_jpeg(&in, 95, &jpeg, &jpeg_bytes, NULL);
        mrt_fail_alloc_at(-1);
        if (rc == MR_OK) {
            MRT_TRUE(n >= 3); /* encoder, file, file grown */
            break;
        }
        MRT_EQ(rc, MR_ENOMEM);
        MRT_TRUE(jpeg == NULL);
    }
    for (int kind = 0; kind < 2; kind++)
        for (int n = 0;; n++) {
            mr_image out = {1, 1, 1, (uint8_t *)1};
            mrt_fail_alloc_at(n);
            const int rc =
                kind ? decode(png, png_bytes, 0, &out, NULL) : decode(jpeg, jpeg_bytes, 0, &out, NULL);
            mrt_fail_alloc_at(-1);
            if (rc == MR_OK) {
                MRT_TRUE(n >= 1);
                mr_image_free(&out);
                break;
            }
            MRT_EQ(rc, MR_ENOMEM);
            MRT_TRUE(out.pixels == NULL);
        }
    free(png);
    free(jpeg);
    free(in.pixels);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(huge_headers_take_no_memory), /* first: it looks at the peak */
        cmocka_unit_test(sniffs_and_reads_headers),
        cmocka_unit_test(names_what_it_found),
        cmocka_unit_test(many_scans_are_refused),
        cmocka_unit_test(truncated_jpegs_are_errors),
        cmocka_unit_test(damaged_jpegs_leave_nothing),
        cmocka_unit_test(tables_do_not_leak_from_picture_to_picture),
        cmocka_unit_test(missing_scans_are_not_made_up),
        cmocka_unit_test(orientation_is_applied),
        cmocka_unit_test(cmyk_becomes_rgb),
        cmocka_unit_test(gray_stays_or_is_repeated),
        cmocka_unit_test(png_kinds),
        cmocka_unit_test(low_bit_depth_png),
        cmocka_unit_test(raw_pixels),
        cmocka_unit_test(encodes_what_it_decodes),
        cmocka_unit_test(survives_failing_allocations),
    };
    return mrt_run(tests);
}
