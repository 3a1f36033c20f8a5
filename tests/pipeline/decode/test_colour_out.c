/* tests/pipeline/decode/test_colour_out.c: planes to RGB: all colours there are, all short counts, at the
 * edges of memory. */
#include <math.h>
#include <sys/mman.h>
#include <unistd.h>

#include "base/simd.h"
#include "mrt.h"
#include "pipeline/decode/jpeg/idct.h"

#define PLANE 65536u /* all pairs of luma and Cb */

static uint8_t luma[PLANE], blue[PLANE], red[PLANE], want[3 * PLANE], got[3 * PLANE];

static void fill_planes(int cr)
{
    for (uint32_t i = 0; i < PLANE; i++) {
        luma[i] = (uint8_t)(i & 255);
        blue[i] = (uint8_t)(i >> 8);
    }
    memset(red, cr, sizeof red);
}

static void variants_agree_on_every_colour(void **state)
{
    (void)state;
    for (int cr = 0; cr < 256; cr++) {
        fill_planes(cr);
        MRT_TRUE(mri_simd_use(MRI_SIMD_PLAIN));
        mri_ycc_to_rgb(luma, blue, red, PLANE, want);
        for (int level = 1; level <= MRI_SIMD_NEON; level++) {
            if (!mri_simd_use((mri_simd_level)level)) continue;
            memset(got, 0, sizeof got);
            mri_ycc_to_rgb(luma, blue, red, PLANE, got);
            assert_memory_equal(want, got, sizeof want);
        }
    }
}

/* Difference of a result from the clipped real number; counts results that are not the nearest integer. */
static void check(double real, uint8_t is, double *most, uint64_t *not_nearest)
{
    const double clipped = real < 0 ? 0 : real > 255 ? 255 : real, off = fabs(is - clipped);
    if (off > *most) *most = off;
    *not_nearest += off > 0.5;
}

static void near_the_real_numbers(void **state)
{
    double most = 0;
    uint64_t not_nearest = 0;
    (void)state;
    for (int cr = 0; cr < 256; cr++) {
        fill_planes(cr);
        mri_ycc_to_rgb(luma, blue, red, PLANE, got);
        for (uint32_t i = 0; i < PLANE; i++) {
            const double u = (double)blue[i] - 128, v = (double)red[i] - 128, y = luma[i];
            check(y + 1.402 * v, got[3 * i], &most, &not_nearest);
            check(y - 0.344136286 * u - 0.714136286 * v, got[3 * i + 1], &most, &not_nearest);
            check(y + 1.772 * u, got[3 * i + 2], &most, &not_nearest);
        }
    }
    const double part = (double)not_nearest / (3.0 * 256 * PLANE);
    printf("|result - real| at most %.4f; not the nearest integer: %.3f %%\n", most, 100 * part);
    MRT_TRUE(most < 0.52);
    MRT_TRUE(part < 0.01);
}

static void gray_stays_gray(void **state)
{
    (void)state;
    fill_planes(128);
    memset(blue, 128, sizeof blue);
    mri_ycc_to_rgb(luma, blue, red, PLANE, got);
    mri_gray_to_rgb(luma, PLANE, want);
    assert_memory_equal(want, got, sizeof want);
    for (uint32_t i = 0; i < PLANE; i++)
        for (int c = 0; c < 3; c++) MRT_EQ(got[3 * i + (uint32_t)c], luma[i]);
}

/* bytes that end where reading or writing on is a fault. */
static uint8_t *at_the_edge(size_t bytes)
{
    const size_t page = (size_t)sysconf(_SC_PAGESIZE), pages = (bytes + page - 1) / page;
    uint8_t *p = mmap(NULL, (pages + 1) * page, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    MRT_TRUE(p != MAP_FAILED);
    MRT_EQ(mprotect(p + pages * page, page, PROT_NONE), 0);
    return p + pages * page - bytes;
}

static void every_count_at_the_edge(void **state)
{
    enum { MOST = 300 };
    uint8_t *plane[3], *rgb = at_the_edge(3 * MOST), expected[3 * MOST];
    (void)state;
    for (int c = 0; c < 3; c++) {
        plane[c] = at_the_edge(MOST);
        mrt_noise(plane[c], MOST, (uint64_t)c + 7);
    }
    for (int level = 0; level <= MRI_SIMD_NEON; level++) {
        for (size_t count = 0; count <= MOST; count++) {
            const size_t skip = MOST - count;
            const uint8_t *a = plane[0] + skip, *b = plane[1] + skip, *c = plane[2] + skip;
            MRT_TRUE(mri_simd_use(MRI_SIMD_PLAIN));
            mri_ycc_to_rgb(a, b, c, count, expected);
            if (!mri_simd_use((mri_simd_level)level)) continue;
            memset(rgb, 0xa5, 3 * MOST);
            mri_ycc_to_rgb(a, b, c, count, rgb + 3 * skip);
            assert_memory_equal(expected, rgb + 3 * skip, 3 * count);
            mri_planes_to_rgb(a, b, c, count, rgb + 3 * skip);
            for (size_t i = 0; i < 3 * count; i++) MRT_EQ(rgb[3 * skip + i], plane[i % 3][skip + i / 3]);
            mri_gray_to_rgb(b, count, rgb + 3 * skip);
            for (size_t i = 0; i < 3 * count; i++) MRT_EQ(rgb[3 * skip + i], b[i / 3]);
            for (size_t i = 0; i < 3 * skip; i++) MRT_EQ(rgb[i], 0xa5);
        }
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(near_the_real_numbers), /* first: the variant chosen by itself */
        cmocka_unit_test(variants_agree_on_every_colour),
        cmocka_unit_test(gray_stays_gray),
        cmocka_unit_test(every_count_at_the_edge),
    };
    return mrt_run(tests);
}
