/* tests/pipeline/decode/odd_jpeg.c: JPEGs of every kind there is: other processes, colours, samplings, sizes,
 * things before, between and behind what makes the picture. All are what their writers meant; the damaged
 * ones are in odd_jpeg_damage.c. */
#include <stdio.h>

#include <jpeglib.h>

#include "base/util.h"
#include "mrt.h"
#include "tests/pipeline/decode/odd.h"

enum {
    FRAME = 0xc0,
    HEIGHT = 5,
    WIDTH = 7,
    COMPONENTS = 10
}; /* SOF0 of an ordinary JPEG, and where in it what stands */

/* ---- processes ---- */

static void other_frame(mrt_odd *o, int marker)
{
    mrt_odd_base(o);
    o->data[mrt_odd_segment(o, FRAME, 0) + 1] = (uint8_t)marker;
}

static void bits(mrt_odd *o, int depth)
{
    mrt_odd_base(o);
    const size_t at = mrt_odd_segment(o, FRAME, 0);
    o->data[at + 1] = 0xc1;
    o->data[at + 4] = (uint8_t)depth;
}

static void hierarchical(mrt_odd *o, int variant)
{
    (void)variant;
    mrt_odd_base(o);
    const size_t at = mrt_odd_segment(o, FRAME, 0), bytes = mrt_odd_segment_bytes(o, at);
    uint8_t dhp[64];
    memcpy(dhp, o->data + at, bytes);
    dhp[1] = 0xde;
    mrt_odd_splice(o, at, 0, dhp, bytes);
}

static void coded(mrt_odd *o, int variant)
{
    const mrt_jpeg_kind kind = {
        .h = 2, .v = 2, .arithmetic = variant & 1, .progressive = variant & 2, .multi_scan = variant & 4};
    o->data = mrt_jpeg(&kind, MRT_ODD_WIDE, MRT_ODD_HIGH, 3, &o->bytes);
}

/* ---- colour ---- */

static void space_cmyk(void *c) { jpeg_set_colorspace(c, JCS_CMYK); }
static void space_ycck(void *c) { jpeg_set_colorspace(c, JCS_YCCK); }
static void space_rgb(void *c) { jpeg_set_colorspace(c, JCS_RGB); }
static void bare_ycc(void *c) { ((struct jpeg_compress_struct *)c)->write_JFIF_header = FALSE; }
static void adobe_ycc(void *c)
{
    bare_ycc(c);
    ((struct jpeg_compress_struct *)c)->write_Adobe_marker = TRUE;
}

static void cmyk(mrt_odd *o, int variant)
{
    const mrt_jpeg_kind kind = {.components = 4,
                                .adobe = true,
                                .tune = variant == 2   ? space_ycck
                                        : variant == 1 ? space_cmyk
                                                       : NULL};
    o->data = mrt_jpeg(&kind, MRT_ODD_WIDE, MRT_ODD_HIGH, 3, &o->bytes);
    if (variant == 0) { /* without the marker that names the colour transform */
        const size_t at = mrt_odd_segment(o, 0xee, 0);
        mrt_odd_splice(o, at, mrt_odd_segment_bytes(o, at), NULL, 0);
    }
    o->pixels = (mr_image){MRT_ODD_WIDE, MRT_ODD_HIGH, 3, malloc(MRT_ODD_WIDE * MRT_ODD_HIGH * 3)};
    uint8_t *stored = mrt_plain_decode(o->data, o->bytes, 4);
    for (size_t k = 0; k < MRT_ODD_WIDE * MRT_ODD_HIGH; k++)
        for (size_t c = 0; c < 3; c++) { /* with Adobe's marker inks are stored as light */
            const int ink = stored[4 * k + c], black = stored[4 * k + 3];
            o->pixels.pixels[3 * k + c] =
                (uint8_t)((variant ? ink * black * 2 + 255 : (255 - ink) * (255 - black) * 2 + 255) / 510);
        }
    free(stored);
}

static void colour(mrt_odd *o, int variant)
{
    static void (*const tunes[])(void *) = {space_rgb, bare_ycc, adobe_ycc};
    o->data = mrt_jpeg(&(mrt_jpeg_kind){.tune = tunes[variant]}, MRT_ODD_WIDE, MRT_ODD_HIGH, 3, &o->bytes);
}

/* ---- sampling ---- */

static int factors[6]; /* of three components */

static void set_factors(void *compressor)
{
    struct jpeg_compress_struct *c = compressor;
    for (int k = 0; k < 3; k++) {
        c->comp_info[k].h_samp_factor = factors[2 * k];
        c->comp_info[k].v_samp_factor = factors[2 * k + 1];
    }
}

/* variant: six digits; below 0: a scan for each. */
static void sampled(mrt_odd *o, int variant)
{
    const mrt_jpeg_kind kind = {.tune = set_factors, .multi_scan = variant < 0};
    variant = abs(variant);
    for (int k = 5; k >= 0; k--, variant /= 10) factors[k] = variant % 10;
    o->data = mrt_jpeg(&kind, 3 * MRT_ODD_WIDE, 2 * MRT_ODD_HIGH, 3, &o->bytes);
}

/* Luma of three samples where chroma has two: what libjpeg will neither make of pixels nor make pixels of.
 * Written as coefficients. */
static void fractional(mrt_odd *o, int variant)
{
    struct jpeg_compress_struct c;
    struct jpeg_error_mgr errors;
    unsigned char *out = NULL;
    unsigned long bytes = 0;
    jvirt_barray_ptr coef[3];
    c.err = jpeg_std_error(&errors);
    jpeg_create_compress(&c);
    jpeg_mem_dest(&c, &out, &bytes);
    c.image_width = 48;
    c.image_height = 16;
    c.input_components = 3;
    c.in_color_space = JCS_YCbCr;
    jpeg_set_defaults(&c);
    c.comp_info[0].h_samp_factor = 3;
    c.comp_info[0].v_samp_factor = 1;
    c.comp_info[1].h_samp_factor = c.comp_info[2].h_samp_factor = variant;
    for (int k = 0; k < 3; k++)
        coef[k] = c.mem->request_virt_barray((j_common_ptr)&c, JPOOL_IMAGE, TRUE,
                                             (JDIMENSION)(k ? 2 * variant : 6), 2, 2);
    jpeg_write_coefficients(&c, coef);
    for (int k = 0; k < 3; k++)
        for (JDIMENSION y = 0; y < 2; y++) {
            JBLOCKARRAY row = c.mem->access_virt_barray((j_common_ptr)&c, coef[k], y, 1, TRUE);
            for (int x = 0; x < (k ? 2 * variant : 6); x++) row[0][x][0] = (JCOEF)(7 * x - 9 * (int)y);
        }
    jpeg_finish_compress(&c);
    jpeg_destroy_compress(&c);
    mrt_odd_put(o, out, bytes);
    free(out);
}

/* ---- sizes ---- */

static void sized(mrt_odd *o, int variant)
{
    const mrt_jpeg_kind kind = {.h = 2, .v = 2};
    o->data = mrt_jpeg(&kind, (uint32_t)variant % 100000, (uint32_t)variant / 100000, 3, &o->bytes);
}

static void widest(mrt_odd *o, int variant)
{
    (void)variant;
    sized(o, 165500);
    const size_t at = mrt_odd_segment(o, FRAME, 0);
    o->data[at + WIDTH] = o->data[at + WIDTH + 1] = 0xff;
}

static void no_width(mrt_odd *o, int variant)
{
    mrt_odd_base(o);
    memset(o->data + mrt_odd_segment(o, FRAME, 0) + variant, 0, 2);
}

/* The height after the first scan; or also in front of it. */
static void lines_told_late(mrt_odd *o, int variant)
{
    static const uint8_t dnl[] = {0xff, 0xdc, 0, 4, 0, MRT_ODD_HIGH};
    mrt_odd_base(o);
    mrt_odd_twin(o);
    if (variant) memset(o->data + mrt_odd_segment(o, FRAME, 0) + HEIGHT, 0, 2);
    mrt_odd_splice(o, o->bytes - 2, 0, dnl, sizeof dnl);
}

/* ---- scans ---- */

static int scan_target;

/* A true progression: each AC coefficient of each component by itself, bit after bit. */
static void set_scans(void *compressor)
{
    static jpeg_scan_info scans[1000];
    struct jpeg_compress_struct *c = compressor;
    int n = 0;
    for (int bit = 9; bit >= 0; bit--)
        scans[n++] = (jpeg_scan_info){3, {0, 1, 2}, 0, 0, bit == 9 ? 0 : bit + 1, bit};
    for (int k = 0; k < 3; k++)
        for (int at = 1; at < 64; at++)
            for (int bit = 9; bit >= 0 && n < scan_target; bit--)
                scans[n++] = (jpeg_scan_info){1, {k}, at, at, bit == 9 ? 0 : bit + 1, bit};
    c->scan_info = scans;
    c->num_scans = n;
}

static void many_scans(mrt_odd *o, int count)
{
    scan_target = count;
    o->data = mrt_jpeg(&(mrt_jpeg_kind){.tune = set_scans}, 24, 16, 3, &o->bytes);
}

/* ---- bytes around the picture ---- */

static void behind(mrt_odd *o, int variant)
{
    mrt_odd_base(o);
    mrt_odd_twin(o);
    uint8_t more[3000] = {0};
    if (variant == 1) mrt_noise(more, sizeof more, 7);
    if (variant < 2) mrt_odd_put(o, more, sizeof more);
    else mrt_odd_put(o, o->twin, o->twin_bytes);
}

/* Fill bytes before every marker of the header, and before the end. */
static void filled(mrt_odd *o, int variant)
{
    (void)variant;
    mrt_odd_base(o);
    mrt_odd_twin(o);
    for (size_t at = 2; o->data[at + 4] != 0xda; at += 3 + mrt_odd_segment_bytes(o, at + 3)) {
        mrt_odd_splice(o, at, 0, "\xff\xff\xff", 3);
        if (o->data[at + 4] == 0xda) break;
    }
    mrt_odd_splice(o, o->bytes - 2, 0, "\xff\xff", 2);
}

static void insert_app(mrt_odd *o, unsigned marker, const void *body, size_t bytes)
{
    uint8_t head[4] = {0xff, (uint8_t)marker, (uint8_t)((bytes + 2) >> 8), (uint8_t)(bytes + 2)};
    const size_t at = 2 + mrt_odd_segment_bytes(o, 2);
    mrt_odd_splice(o, at, 0, body, bytes);
    mrt_odd_splice(o, at, 0, head, 4);
}

static void large_apps(mrt_odd *o, int variant)
{
    (void)variant;
    mrt_odd_base(o);
    mrt_odd_twin(o);
    uint8_t *body = malloc(65533);
    mrt_noise(body, 65533, 5);
    for (unsigned k = 0; k < 40; k++) insert_app(o, k % 3 == 0 ? 0xfe : 0xe3 + k % 8, body, 65533);
    free(body);
}

static void profile(mrt_odd *o, int variant)
{
    uint8_t body[600] = "ICC_PROFILE";
    mrt_odd_base(o);
    mrt_odd_twin(o);
    mrt_noise(body + 14, sizeof body - 14, 5);
    for (int part = 2; part > variant; part--) { /* two of two; or the second alone */
        body[12] = (uint8_t)part;
        body[13] = 2;
        insert_app(o, 0xe2, body, sizeof body);
    }
}

/* A small picture inside the headers: pixels in JFIF's own segment, or a whole JPEG in one of its extension,
 * with its own start, frame, scan and end. */
static void thumbnail(mrt_odd *o, int variant)
{
    mrt_odd_base(o);
    mrt_odd_twin(o);
    if (variant == 0) {
        uint8_t pixels[10 * 8 * 3];
        mrt_noise(pixels, sizeof pixels, 3);
        o->data[2 + 16] = 10;
        o->data[2 + 17] = 8;
        o->data[2 + 2] = (16 + sizeof pixels) >> 8;
        o->data[2 + 3] = (16 + sizeof pixels) & 255;
        mrt_odd_splice(o, 20, 0, pixels, sizeof pixels);
        return;
    }
    size_t bytes;
    uint8_t *small = mrt_jpeg(&(mrt_jpeg_kind){.quality = 50}, 16, 16, 9, &bytes), *body = malloc(bytes + 6);
    memcpy(body, "JFXX\0\x10", 6);
    memcpy(body + 6, small, bytes);
    insert_app(o, variant == 1 ? 0xe0 : 0xe1, body, bytes + 6);
    free(small);
    free(body);
}

/* ---- tables and names ---- */

/* Motion JPEG leaves out the Huffman tables everybody has. */
static void without(mrt_odd *o, int marker)
{
    mrt_odd_base(o);
    mrt_odd_twin(o);
    size_t at = 2;
    while (o->data[at + 1] != 0xda)
        if (o->data[at + 1] == marker) mrt_odd_splice(o, at, mrt_odd_segment_bytes(o, at), NULL, 0);
        else at += mrt_odd_segment_bytes(o, at);
}

/* The same quantisation tables in 16 bits. */
static void wide_tables(mrt_odd *o, int variant)
{
    (void)variant;
    mrt_odd_base(o);
    mrt_odd_twin(o);
    for (int n = 0; n < 2; n++) {
        const size_t at = mrt_odd_segment(o, 0xdb, n);
        uint8_t wide[3 + 128] = {0, 131, (uint8_t)(0x10 | o->data[at + 4])};
        for (size_t k = 0; k < 64; k++) wide[4 + 2 * k] = o->data[at + 5 + k];
        mrt_odd_splice(o, at + 2, 67, wide, sizeof wide);
    }
}

/* All components have one name: then their order says which is which. */
static void one_name(mrt_odd *o, int name)
{
    mrt_odd_base(o);
    mrt_odd_twin(o);
    const size_t frame = mrt_odd_segment(o, FRAME, 0), scan = mrt_odd_segment(o, 0xda, 0);
    for (size_t k = 0; k < 3; k++)
        o->data[frame + COMPONENTS + 3 * k] = o->data[scan + 5 + 2 * k] = (uint8_t)name;
}

const mrt_odd_case mrt_odd_jpeg[] = {
    {"12-bit.jpg", bits, 12, MR_EUNSUPPORTED, "JPEG: 12 bits per sample; expected 8: convert it to 8 bits",
     NULL, 0},
    {"16-bit.jpg", bits, 16, MR_EUNSUPPORTED, "JPEG: 16 bits per sample; expected 8: convert it to 8 bits",
     NULL, 0},
    {"lossless.jpg", other_frame, 0xc3, MR_EUNSUPPORTED,
     "JPEG: lossless (marker FFC3); expected baseline, extended or progressive: convert it "
     "to one of these, or to PNG",
     NULL, 0},
    {"lossless-arithmetic.jpg", other_frame, 0xcb, MR_EUNSUPPORTED, "JPEG: lossless (marker FFCB)", NULL, 0},
    {"jpeg-ls.jpg", other_frame, 0xf7, MR_EUNSUPPORTED, "JPEG-LS (marker FFF7)", NULL, 0},
    {"hierarchical.jpg", other_frame, 0xc5, MR_EUNSUPPORTED, "JPEG: hierarchical (marker FFC5)", NULL, 0},
    {"hierarchical-dhp.jpg", hierarchical, 0, MR_EUNSUPPORTED, "JPEG: hierarchical (marker FFDE)", NULL, 0},
    {"progressive.jpg", coded, 2, MR_OK, NULL, NULL, 0},
    {"arithmetic.jpg", coded, 1, MR_OK, NULL, NULL, 0},
    {"arithmetic-progressive.jpg", coded, 3, MR_OK, NULL, NULL, 0},
    {"three-scans.jpg", coded, 4, MR_OK, NULL, NULL, 0},
    {"cmyk-bare.jpg", cmyk, 0, MR_OK, NULL, NULL, MRT_ODD_CMYK},
    {"cmyk-adobe.jpg", cmyk, 1, MR_OK, NULL, NULL, MRT_ODD_CMYK},
    {"ycck.jpg", cmyk, 2, MR_OK, NULL, NULL, MRT_ODD_CMYK},
    {"rgb-adobe.jpg", colour, 0, MR_OK, NULL, NULL, 0},
    {"ycc-bare.jpg", colour, 1, MR_OK, NULL, NULL, 0},
    {"ycc-adobe.jpg", colour, 2, MR_OK, NULL, NULL, 0},
    {"440.jpg", sampled, 121111, MR_OK, NULL, NULL, 0},
    {"411.jpg", sampled, 411111, MR_OK, NULL, NULL, MRT_ODD_ROUGH},
    {"410.jpg", sampled, 421111, MR_OK, NULL, NULL, MRT_ODD_ROUGH},
    {"3x1.jpg", sampled, 311111, MR_OK, NULL, NULL, MRT_ODD_ROUGH},
    {"22-12-12.jpg", sampled, 221212, MR_OK, NULL, NULL, 0},
    {"22-11-12.jpg", sampled, 221112, MR_OK, NULL, NULL, 0},
    {"22-22-22.jpg", sampled, -222222, MR_OK, NULL, NULL, 0},
    {"21-21-21.jpg", sampled, 212121, MR_OK, NULL, NULL, 0},
    {"11-22-22.jpg", sampled, 112222, MR_OK, NULL, NULL, 0},
    {"32-21.jpg", fractional, 2, MR_OK, NULL, "Fractional sampling not implemented yet: convert it",
     MRT_ODD_OWN},
    {"1x1.jpg", sized, 100001, MR_OK, NULL, NULL, 0},
    {"1x17.jpg", sized, 1700001, MR_OK, NULL, NULL, MRT_ODD_ROUGH},
    {"65500x1.jpg", sized, 165500, MR_OK, NULL, NULL, MRT_ODD_ROUGH},
    {"65535x1.jpg", widest, 0, MR_EUNSUPPORTED,
     "JPEG: a side of more than 65500 pixels: cut it into parts, or convert it to PNG", NULL, 0},
    {"no-width.jpg", no_width, WIDTH, MR_EFORMAT, "JPEG: width is 0", NULL, 0},
    {"no-height.jpg", no_width, HEIGHT, MR_EUNSUPPORTED, "JPEG: height is 0", NULL, 0},
    {"height-late.jpg", lines_told_late, 1, MR_EUNSUPPORTED,
     "JPEG: height is 0, to be given after the first scan (DNL); expected it in the "
     "frame header: write it anew",
     NULL, 0},
    {"height-twice.jpg", lines_told_late, 0, MR_OK, NULL, NULL, 0},
    {"90-scans.jpg", many_scans, 90, MR_OK, NULL, NULL, MRT_ODD_ROUGH},
    {"1000-scans.jpg", many_scans, 1000, MR_ELIMIT,
     "JPEG: more than 100 scans; ordinary ones have about 10: write it anew, or raise --max-scans", NULL, 0},
    {"zeros-behind.jpg", behind, 0, MR_OK, NULL, NULL, 0},
    {"noise-behind.jpg", behind, 1, MR_OK, NULL, NULL, 0},
    {"jpeg-behind.jpg", behind, 2, MR_OK, NULL, NULL, 0},
    {"fill-bytes.jpg", filled, 0, MR_OK, NULL, NULL, 0},
    {"large-apps.jpg", large_apps, 0, MR_OK, NULL, NULL, 0},
    {"profile.jpg", profile, 0, MR_OK, NULL, NULL, 0},
    {"half-a-profile.jpg", profile, 1, MR_OK, NULL, NULL, 0},
    {"thumbnail.jpg", thumbnail, 0, MR_OK, NULL, NULL, 0},
    {"thumbnail-jfxx.jpg", thumbnail, 1, MR_OK, NULL, NULL, 0},
    {"thumbnail-app1.jpg", thumbnail, 2, MR_OK, NULL, NULL, 0},
    {"motion-jpeg.jpg", without, 0xc4, MR_OK, NULL, NULL, 0},
    {"16-bit-tables.jpg", wide_tables, 0, MR_OK, NULL, NULL, 0},
    {"one-name.jpg", one_name, 1, MR_OK, NULL, NULL, 0},
    {"name-0.jpg", one_name, 0, MR_OK, NULL, NULL, 0},
    {0},
};
