/* odd pictures: each one of the table through every way to decode it: in full, as a check, resized whole, and
 * as crops, with our pixels and with libjpeg's. All give the same verdict, or say why not; what decodes has
 * the right pixels. */
#include "base/simd.h"
#include "base/util.h"
#include "mrt.h"
#include "pipeline/augment/augment.h"
#include "tests/pipeline/decode/odd.h"

enum { SIDE = 8, CROPS = 12, MAX_PIXELS = 2000000 };

static const char *now; /* the case, for messages */
static int failures;    /* printed one by one: the next case is tested all the same */

static void wrong(const char *format, ...) MR_PRINTF(1, 2);
static void wrong(const char *format, ...)
{
    va_list args;
    va_start(args, format);
    printf("%s: ", now);
    vprintf(format, args);
    printf("\n");
    va_end(args);
    failures++;
}

static mr_decode_config config(mr_pixels pixels)
{
    mr_decode_config cfg;
    mr_decode_defaults(&cfg);
    cfg.max_pixels = MAX_PIXELS;
    cfg.pixels = pixels;
    return cfg;
}

/* As a source hands it over: by content. */
static mr_value value_of(const void *data, size_t bytes)
{
    const int type = mr_image_sniff(data, bytes);
    return (mr_value){.type = type ? (mr_type)type : MR_TYPE_BYTES, .data = data, .bytes = bytes};
}

/* A check may stop at what our decoder or libjpeg found first, whoever makes the pixels. */
static bool says(const mrt_odd_case *c, const char *text)
{
    return strstr(text, c->says ? c->says : c->otherwise) || (c->otherwise && strstr(text, c->otherwise));
}

static void verdict(const mrt_odd_case *c, mr_pixels pixels, const char *way, int rc, int expected,
                    const mr_error *err)
{
    if (rc != expected)
        wrong("%s, %s: expected %d, found %d: %s", way, pixels ? "libjpeg" : "own", expected, rc, err->text);
    else if (rc && !says(c, err->text))
        wrong("%s, %s: expected \"%s\", found: %s", way, pixels ? "libjpeg" : "own", c->says, err->text);
}

/* ---- pixels ---- */

/* Mean distance. */
static double apart(const uint8_t *a, const uint8_t *b, size_t count)
{
    uint64_t sum = 0;
    for (size_t k = 0; k < count; k++) sum += (uint64_t)abs(a[k] - b[k]);
    return (double)sum / (double)count;
}

static void decode(const void *data, size_t bytes, mr_pixels pixels, uint32_t channels, mr_image *out)
{
    mr_decode_config cfg = config(pixels);
    const mr_value v = value_of(data, bytes);
    mr_error err = MR_ERROR_INIT;
    cfg.channels = channels;
    const int rc = mr_image_decode(&v, &cfg, out, &err);
    if (rc) wrong("%s", err.text);
}

static void same(const mr_image *a, const mr_image *b, const char *whose)
{
    if (a->width != b->width || a->height != b->height || a->channels != b->channels)
        return wrong("%s: %u x %u x %u and %u x %u x %u", whose, a->width, a->height, a->channels, b->width,
                     b->height, b->channels);
    const size_t bytes = (size_t)a->width * a->height * a->channels;
    for (size_t k = 0; k < bytes; k++)
        if (a->pixels[k] != b->pixels[k])
            return wrong("%s: value %zu is %u and %u", whose, k, a->pixels[k], b->pixels[k]);
}

/* libjpeg's own decode, turned upright as the header says: only those not turned are compared here, the
 * others have a twin. */
static void right_pixels(const mrt_odd_case *c, const mrt_odd *o, mr_pixels pixels)
{
    mr_image found, other;
    mr_image_header h;
    MRT_EQ(mr_image_header_parse(o->data, o->bytes, &h, NULL), MR_OK);
    decode(o->data, o->bytes, pixels, 0, &found);
    if (o->pixels.pixels) same(&found, &o->pixels, "what went in");
    if (o->twin) {
        decode(o->twin, o->twin_bytes, pixels, 0, &other);
        same(&found, &other, "its twin");
        mr_image_free(&other);
    }
    if (h.type == MR_TYPE_JPEG && h.orientation == 1 && !(c->flags & (MRT_ODD_CMYK | MRT_ODD_OWN))) {
        uint8_t *plain = mrt_plain_decode(o->data, o->bytes, (int)found.channels);
        const double far = apart(found.pixels, plain, (size_t)found.width * found.height * found.channels);
        const double most = pixels == MR_PIXELS_LIBJPEG ? 0 : c->flags & MRT_ODD_ROUGH ? 20 : 1.5;
        if (far > most) wrong("%.2f from libjpeg's pixels", far);
        free(plain);
        if (c->flags & MRT_ODD_ROUGH) { /* its luma is not */
            mr_image gray;
            uint8_t *luma = mrt_plain_decode(o->data, o->bytes, 1);
            decode(o->data, o->bytes, pixels, 1, &gray);
            if (apart(gray.pixels, luma, (size_t)gray.width * gray.height) > 0.5)
                wrong("its luma is apart from libjpeg's");
            free(luma);
            mr_image_free(&gray);
        }
    }
    mr_image_free(&found);
}

/* ---- ways ---- */

static void whole(const mrt_odd_case *c, const mrt_odd *o, mr_pixels pixels, int expected)
{
    const mr_decode_config cfg = config(pixels);
    const mr_value v = value_of(o->data, o->bytes);
    mr_checker *checker;
    mr_image image;
    mr_error err = MR_ERROR_INIT;
    const int rc = mr_image_decode(&v, &cfg, &image, &err);
    verdict(c, pixels, "decoded", rc, expected, &err);
    MRT_TRUE((image.pixels != NULL) == (rc == MR_OK));
    mr_image_free(&image);
    err = (mr_error)MR_ERROR_INIT;
    MRT_OK(mr_checker_create(&checker), NULL);
    verdict(c, pixels, "checked", mr_checker_run(checker, &v, &cfg, &err), expected, &err);
    mr_checker_destroy(checker);
}

static void augmented(const mrt_odd_case *c, const mrt_odd *o, mr_pixels pixels, int expected)
{
    static const char *const specs[] = {"resize(8x8)", "rrc(8)", "rrc(8,scale=0.02:0.1)"};
    const mr_decode_config cfg = config(pixels);
    const mr_value v = value_of(o->data, o->bytes);
    mri_scratch *scratch;
    MRT_OK(mri_scratch_create(&scratch), NULL);
    for (size_t k = 0; k < MRI_ARRAY_COUNT(specs); k++) {
        mr_augment *a;
        mr_error err = MR_ERROR_INIT;
        MRT_OK(mr_augment_create(&a, specs[k], true, &err), &err);
        for (uint64_t crop = 0; crop < (k ? CROPS : 1); crop++) {
            uint8_t out[SIDE * SIDE * 3];
            const int rc = mri_augment_run(a, scratch, &v, &cfg, 3, (mri_sample_key){1, 0, crop}, SIDE, SIDE,
                                           out, NULL, NULL, NULL, &err);
            if (k == 0 || rc || !(c->flags & MRT_ODD_BELOW)) verdict(c, pixels, specs[k], rc, expected, &err);
        }
        mr_augment_destroy(a);
    }
    mri_scratch_destroy(scratch);
}

static void make(const mrt_odd_case *c, mrt_odd *o)
{
    *o = (mrt_odd){0};
    c->make(o, c->variant);
    if (!o->data) mrt_odd_put(o, NULL, 0);
}

static void all_of(const mrt_odd_case *cases)
{
    failures = 0;
    for (const mrt_odd_case *c = cases; c->name; c++) {
        mrt_odd o;
        now = c->name;
        make(c, &o);
        for (int pixels = MR_PIXELS_OWN; pixels <= MR_PIXELS_LIBJPEG; pixels++) {
            const bool other = pixels == MR_PIXELS_LIBJPEG && (c->flags & MRT_ODD_OWN);
            const int expected = other ? MR_EUNSUPPORTED : c->code;
            whole(c, &o, (mr_pixels)pixels, expected);
            augmented(c, &o, (mr_pixels)pixels, expected);
            if (expected == MR_OK) right_pixels(c, &o, (mr_pixels)pixels);
        }
        mrt_odd_free(&o);
    }
    MRT_EQ(failures, 0);
}

/* ---- one after another ---- */

static int check(mr_checker *checker, const mrt_odd *o, mr_error *err)
{
    const mr_decode_config cfg = config(MR_PIXELS_OWN);
    const mr_value v = value_of(o->data, o->bytes);
    *err = (mr_error)MR_ERROR_INIT;
    return mr_checker_run(checker, &v, &cfg, err);
}

/* Earlier pictures do not change a decoder's error for a damaged one. */
static void any_order(void **state)
{
    (void)state;
    mr_checker *fresh, *used;
    mr_error expected, found;
    static mrt_odd other[256];
    uint32_t others = 0;
    failures = 0;
    MRT_OK(mr_checker_create(&used), NULL);
    for (; mrt_odd_jpeg[others].name; others++) {
        MRT_TRUE(others < MRI_ARRAY_COUNT(other));
        make(&mrt_odd_jpeg[others], &other[others]);
    }
    for (const mrt_odd_case *c = mrt_odd_jpeg_damage; c->name; c++) {
        mrt_odd damaged;
        now = c->name;
        make(c, &damaged);
        MRT_OK(mr_checker_create(&fresh), NULL);
        const int rc = check(fresh, &damaged, &expected);
        mr_checker_destroy(fresh);
        for (uint32_t k = 0; k < others; k++) {
            check(used, &other[k], &found);
            if (check(used, &damaged, &found) != rc || strcmp(found.text, expected.text) != 0)
                wrong("after %s: %s; alone: %s", mrt_odd_jpeg[k].name, found.text, expected.text);
        }
        mrt_odd_free(&damaged);
    }
    for (uint32_t k = 0; k < others; k++) mrt_odd_free(&other[k]);
    mr_checker_destroy(used);
    MRT_EQ(failures, 0);
}

static void jpegs(void **state)
{
    (void)state;
    all_of(mrt_odd_jpeg);
}

static void damaged_jpegs(void **state)
{
    (void)state;
    all_of(mrt_odd_jpeg_damage);
}

/* Every instruction set: lanes decode with one of them. */
static void large_jpegs(void **state)
{
    (void)state;
    const mri_simd_level before = mri_simd();
    for (int level = MRI_SIMD_PLAIN; level <= MRI_SIMD_NEON; level++)
        if (mri_simd_use((mri_simd_level)level)) all_of(mrt_odd_large);
    mri_simd_use(before);
}

static void pngs(void **state)
{
    (void)state;
    all_of(mrt_odd_png);
}

static void other_files(void **state)
{
    (void)state;
    all_of(mrt_odd_other);
}

static void kinds(void **state)
{
    (void)state;
    all_of(mrt_odd_kinds);
}

/* Without the library, skips and names it. */
static void need(mr_type type)
{
    mr_error err = MR_ERROR_INIT;
    if (mr_image_can_decode(type, &err) == MR_OK) return;
    print_message("SKIP: %s\n", err.text);
    skip();
}

static void webps(void **state)
{
    (void)state;
    need(MR_TYPE_WEBP);
    all_of(mrt_odd_webp);
}

static void tiffs(void **state)
{
    (void)state;
    need(MR_TYPE_TIFF);
    all_of(mrt_odd_tiff);
}

static void heics(void **state)
{
    (void)state;
    need(MR_TYPE_HEIC);
    all_of(mrt_odd_heic);
}

static void avifs(void **state)
{
    (void)state;
    need(MR_TYPE_AVIF);
    all_of(mrt_odd_avif);
}

static void orientations(void **state)
{
    (void)state;
    all_of(mrt_odd_exif);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(jpegs), cmocka_unit_test(damaged_jpegs), cmocka_unit_test(large_jpegs),
        cmocka_unit_test(pngs),  cmocka_unit_test(other_files),   cmocka_unit_test(kinds),
        cmocka_unit_test(webps), cmocka_unit_test(tiffs),         cmocka_unit_test(orientations),
        cmocka_unit_test(heics), cmocka_unit_test(avifs),         cmocka_unit_test(any_order),
    };
    return mrt_run(tests);
}
