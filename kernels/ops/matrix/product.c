/* kernels/ops/matrix/product.c: see product.h. The scheme is Goto's (Goto & van de Geijn 2008):
 *
 *   b packed     for each block of `deep` rows of b: panels of some columns, [row][panel] each, which stay in
 *                the first-level cache while all rows of a pass over them
 *   a packed     for each block of `deep` columns of a: strips of some rows, [column][tall] each
 *   a tile of c  tall x panel sums in registers
 *
 * Edges are filled up with zeros when they are packed, and cut when they are stored. Few rows (a step of a
 * recurrent layer): all of a is packed together, then the threads share the panels. Many rows: the threads
 * share the rows, and each packs its own block of a. */
#include "kernels/ops/matrix/product.h"

#include <omp.h>

#include "kernels/host/simd_loop.h"

#if defined(__x86_64__)
#include <immintrin.h>
#endif

enum {
    ROWS = 128, /* of a, packed together at most: `deep` of their columns stay in the second-level cache */
    CHUNK = 8,  /* panels that one thread takes at a time, at most */
    MOST_TALL = 8,
    MOST_PANEL = 48,
};

/* c[tall][panel] = or += the product of a strip and a panel, deep each. */
typedef void tile_run(size_t deep, const float *a, const float *b, float *c, size_t c_row, bool adds);

/* How matrices are cut for an instruction set: a tile's sums, a row of a panel and one value of a strip fit
 * the registers, a panel the first-level cache. */
struct shape {
    size_t tall, panel, deep;
    tile_run *tile;
};

static size_t pieces(size_t count, size_t each) { return count / each + (count % each != 0); }
static size_t least(size_t a, size_t b) { return a < b ? a : b; }

/* Whatever the instruction set. */
size_t mri_product_packed_floats(size_t k, size_t n) { return k * (n + MOST_PANEL - 1); }

/* Are there enough rows for every thread to have blocks of its own? */
static bool many_rows(size_t m, size_t threads) { return m >= threads * ROWS * 4; }

size_t mri_product_scratch_floats(size_t m, size_t k, uint32_t threads)
{
    const size_t own = (size_t)threads * ROWS * k,
                 shared = (least(m, (size_t)threads * ROWS * 4) + MOST_TALL - 1) * k;
    return own > shared ? own : shared;
}

/* ---- packing ---- */

/* `height` rows of a matrix from `at`, `count` columns of it, side by side: to[column][wide]; rows from
 * height to wide are zero. (Of b the columns are the rows.) */
static void interleave(float *restrict to, const float *restrict at, size_t row, size_t column, size_t height,
                       size_t wide, size_t count)
{
    if (row == 1) { /* what becomes neighbours are neighbours */
        for (size_t k = 0; k < count; k++) {
            memcpy(to + k * wide, at + k * column, height * sizeof *to);
            memset(to + k * wide + height, 0, (wide - height) * sizeof *to);
        }
        return;
    }
    enum { BATCH = 16 }; /* columns at a time: a line of each row is used up before the next */
    for (size_t k0 = 0; k0 < count; k0 += BATCH) {
        const size_t end = least(count, k0 + BATCH);
        for (size_t r = 0; r < height; r++)
            for (size_t k = k0; k < end; k++) to[k * wide + r] = at[r * row + k * column];
        for (size_t r = height; r < wide; r++)
            for (size_t k = k0; k < end; k++) to[k * wide + r] = 0;
    }
}

/* ---- a tile ---- */

#if defined(__x86_64__)

/* The sums stay in registers: TALL times three of WIDTH floats. */
#define TILE(name, target, TALL, WIDTH, vector, load, store, zero, broadcast, multiply_add)                  \
    target static void name(size_t deep, const float *a, const float *b, float *c, size_t c_row, bool adds)  \
    {                                                                                                        \
        vector sum[TALL][3];                                                                                 \
        _Pragma("GCC unroll 8") for (size_t i = 0; i < TALL; i++)                                            \
        {                                                                                                    \
            sum[i][0] = adds ? load(c + i * c_row) : zero();                                                 \
            sum[i][1] = adds ? load(c + i * c_row + WIDTH) : zero();                                         \
            sum[i][2] = adds ? load(c + i * c_row + 2 * WIDTH) : zero();                                     \
        }                                                                                                    \
        for (size_t k = 0; k < deep; k++, a += TALL, b += 3 * WIDTH) {                                       \
            const vector b0 = load(b), b1 = load(b + WIDTH), b2 = load(b + 2 * WIDTH);                       \
            _Pragma("GCC unroll 8") for (size_t i = 0; i < TALL; i++)                                        \
            {                                                                                                \
                const vector v = broadcast(a[i]);                                                            \
                sum[i][0] = multiply_add(v, b0, sum[i][0]);                                                  \
                sum[i][1] = multiply_add(v, b1, sum[i][1]);                                                  \
                sum[i][2] = multiply_add(v, b2, sum[i][2]);                                                  \
            }                                                                                                \
        }                                                                                                    \
        _Pragma("GCC unroll 8") for (size_t i = 0; i < TALL; i++)                                            \
        {                                                                                                    \
            store(c + i * c_row, sum[i][0]);                                                                 \
            store(c + i * c_row + WIDTH, sum[i][1]);                                                         \
            store(c + i * c_row + 2 * WIDTH, sum[i][2]);                                                     \
        }                                                                                                    \
    }

TILE(tile_avx2, MRI_TARGET_AVX2, 4, 8, __m256, _mm256_loadu_ps, _mm256_storeu_ps, _mm256_setzero_ps,
     _mm256_set1_ps, _mm256_fmadd_ps)
TILE(tile_avx512, MRI_TARGET_AVX512, 8, 16, __m512, _mm512_loadu_ps, _mm512_storeu_ps, _mm512_setzero_ps,
     _mm512_set1_ps, _mm512_fmadd_ps)

#endif

#if defined(__FP_FAST_FMAF)
#define TERM(a, b, sum) __builtin_fmaf(a, b, sum)
#else
#define TERM(a, b, sum) ((sum) + (a) * (b))
#endif

static void tile_plain(size_t deep, const float *a, const float *b, float *c, size_t c_row, bool adds)
{
    float sum[4][8];
    for (size_t i = 0; i < 4; i++)
        for (size_t j = 0; j < 8; j++) sum[i][j] = adds ? c[i * c_row + j] : 0;
    for (size_t k = 0; k < deep; k++)
        for (size_t i = 0; i < 4; i++)
            for (size_t j = 0; j < 8; j++) sum[i][j] = TERM(a[k * 4 + i], b[k * 8 + j], sum[i][j]);
    for (size_t i = 0; i < 4; i++) memcpy(c + i * c_row, sum[i], sizeof sum[i]);
}

static const struct shape *shape_here(void)
{
    static const struct shape plain = {4, 8, 256, tile_plain};
#if defined(__x86_64__)
    static const struct shape avx2 = {4, 24, 256, tile_avx2}, avx512 = {8, 48, 128, tile_avx512};
    switch (mri_simd()) {
    case MRI_SIMD_AVX2: return &avx2;
    case MRI_SIMD_AVX512: return &avx512;
    default: break;
    }
#endif
    return &plain;
}

void mri_product_pack(float *to, const struct mri_matrix *b, size_t k, size_t n)
{
    const struct shape *s = shape_here();
    const size_t panels = pieces(n, s->panel), blocks = pieces(k, s->deep);
#pragma omp parallel for schedule(static) if (k * n > MRI_PARALLEL_ELEMENTS)
    for (size_t i = 0; i < panels * blocks; i++) {
        const size_t from = i / panels * s->deep, deep = least(k - from, s->deep),
                     left = i % panels * s->panel;
        interleave(to + (from * panels + i % panels * deep) * s->panel,
                   b->at + from * b->row + left * b->column, b->column, b->row, least(n - left, s->panel),
                   s->panel, deep);
    }
}

/* ---- the whole ---- */

struct run {
    const struct shape *shape;
    size_t m, n, k, panels, strips, c_row;
    const struct mri_matrix *a;
    const float *b;
    float *c;
};

/* The tile of rows from `top`, columns from `left`. */
static void run_tile(const struct run *r, size_t deep, const float *a, const float *b, size_t top,
                     size_t left, bool adds)
{
    const struct shape *s = r->shape;
    const size_t height = least(r->m - top, s->tall), width = least(r->n - left, s->panel);
    float *c = r->c + top * r->c_row + left, edge[MOST_TALL * MOST_PANEL];
    if (height == s->tall && width == s->panel) {
        s->tile(deep, a, b, c, r->c_row, adds);
        return;
    }
    memset(edge, 0, sizeof edge);
    for (size_t i = 0; adds && i < height; i++)
        memcpy(edge + i * s->panel, c + i * r->c_row, width * sizeof *c);
    s->tile(deep, a, b, edge, s->panel, adds);
    for (size_t i = 0; i < height; i++) memcpy(c + i * r->c_row, edge + i * s->panel, width * sizeof *c);
}

/* Prefetch the next tile of c: it lies far away, with its rows in separate pages. */
static void fetch_next(const struct run *r, size_t strip, size_t panel)
{
    const struct shape *s = r->shape;
    const size_t top = strip * s->tall, end = least(top + s->tall, r->m);
    for (size_t i = top; panel < r->panels && i < end; i++) {
        const float *c = r->c + i * r->c_row + panel * s->panel;
        __builtin_prefetch(c, 1);
        __builtin_prefetch(c + s->panel - 1, 1);
    }
}

/* Strips [top, end) with panels [first, last), columns [from, from + deep) of a, which lie packed in `a`. */
static void run_block(const struct run *r, const float *a, size_t top, size_t end, size_t first, size_t last,
                      size_t from, size_t deep)
{
    const struct shape *s = r->shape;
    const float *b = r->b + from * r->panels * s->panel;
    for (size_t p = first; p < last; p++)
        for (size_t i = top; i < end; i++) {
            fetch_next(r, i + 1 < end ? i + 1 : top, i + 1 < end ? p : p + 1);
            run_tile(r, deep, a + (i - top) * s->tall * deep, b + p * deep * s->panel, i * s->tall,
                     p * s->panel, from > 0);
        }
}

/* `tall` values that lie together, those from height on zero. */
static void copy_strip(float *to, const float *from, size_t height, size_t tall)
{
    if (height == tall && tall == 4) memcpy(to, from, 4 * sizeof *to);
    else if (height == tall && tall == 8) memcpy(to, from, 8 * sizeof *to);
    else
        for (size_t i = 0; i < tall; i++) to[i] = i < height ? from[i] : 0;
}

/* Of a matrix in columns: strips side by side, so that a line of memory is used up when it is read. Columns
 * may lie far apart, and all in one set of the cache. */
static void pack_columns(const struct run *r, float *to, size_t top, size_t end, size_t from, size_t deep)
{
    const size_t tall = r->shape->tall, group = MRI_CACHE_LINE / sizeof(float) / tall;
    for (size_t first = top; first < end; first += group)
        for (size_t k = 0; k < deep; k++) {
            const float *at = r->a->at + (from + k) * r->a->column;
            for (size_t i = first; i < least(first + group, end); i++)
                copy_strip(to + ((i - top) * deep + k) * tall, at + i * tall, least(r->m - i * tall, tall),
                           tall);
        }
}

static void pack_strips(const struct run *r, float *to, size_t top, size_t end, size_t from, size_t deep)
{
    const size_t tall = r->shape->tall;
    if (r->a->row == 1) {
        pack_columns(r, to, top, end, from, deep);
        return;
    }
    for (size_t i = top; i < end; i++)
        interleave(to + (i - top) * tall * deep, r->a->at + i * tall * r->a->row + from * r->a->column,
                   r->a->row, r->a->column, least(r->m - i * tall, tall), tall, deep);
}

/* As many pieces of `each` at most as every thread gets the same number of. */
static size_t shares_of(size_t count, size_t each)
{
    const size_t threads = (size_t)omp_get_max_threads();
    return threads * pieces(count, threads * each);
}

/* Strips [top, end) with panels [first, last). packed: block after block of columns of a, `strips` strips
 * each, `before` of them in front of top. Some panels at a time, so that their part of c stays near. */
static void run_strips(const struct run *r, const float *packed, size_t strips, size_t before, size_t top,
                       size_t end, size_t first, size_t last)
{
    const size_t most = r->shape->deep, tall = r->shape->tall;
    for (size_t p = first; p < last; p += CHUNK)
        for (size_t from = 0; from < r->k; from += most) {
            const size_t deep = least(r->k - from, most);
            run_block(r, packed + (from * strips + before * deep) * tall, top, end, p, least(p + CHUNK, last),
                      from, deep);
        }
}

/* The threads share the rows. */
static void share_rows(const struct run *r, float *scratch)
{
    const size_t most = r->shape->deep, tall = r->shape->tall, shares = shares_of(r->strips, ROWS / tall);
#pragma omp parallel
    {
        float *mine = scratch + (size_t)omp_get_thread_num() * ROWS * r->k;
#pragma omp for schedule(static)
        for (size_t i = 0; i < shares; i++) {
            const size_t top = r->strips * i / shares, end = r->strips * (i + 1) / shares;
            for (size_t from = 0; from < r->k; from += most)
                pack_strips(r, mine + from * (end - top) * tall, top, end, from, least(r->k - from, most));
            run_strips(r, mine, end - top, 0, top, end, 0, r->panels);
        }
    }
}

/* The threads share the panels. */
static void share_panels(const struct run *r, float *scratch)
{
    const size_t most = r->shape->deep, tall = r->shape->tall, some = ROWS / tall,
                 shares = shares_of(r->panels, CHUNK);
#pragma omp parallel
    {
#pragma omp for schedule(static)
        for (size_t i = 0; i < r->strips; i++)
            for (size_t from = 0; from < r->k; from += most) {
                const size_t deep = least(r->k - from, most);
                pack_strips(r, scratch + (from * r->strips + i * deep) * tall, i, i + 1, from, deep);
            }
#pragma omp for schedule(static)
        for (size_t i = 0; i < shares; i++)
            for (size_t top = 0; top < r->strips; top += some)
                run_strips(r, scratch, r->strips, top, top, least(top + some, r->strips),
                           r->panels * i / shares, r->panels * (i + 1) / shares);
    }
}

void mri_product_run(size_t m, size_t n, size_t k, const struct mri_matrix *a, const float *packed, float *c,
                     size_t c_row, float *scratch)
{
    const struct shape *s = shape_here();
    const struct run r = {.shape = s,
                          .m = m,
                          .n = n,
                          .k = k,
                          .panels = pieces(n, s->panel),
                          .strips = pieces(m, s->tall),
                          .c_row = c_row,
                          .a = a,
                          .b = packed,
                          .c = c};
    if (many_rows(m, (size_t)omp_get_max_threads())) share_rows(&r, scratch);
    else share_panels(&r, scratch);
}

void mri_product_plain(size_t m, size_t n, size_t k, const struct mri_matrix *a, const struct mri_matrix *b,
                       float *c, size_t c_row)
{
#pragma omp parallel for schedule(static)
    for (size_t i = 0; i < m; i++)
        for (size_t j = 0; j < n; j++) {
            const float *x = a->at + i * a->row, *y = b->at + j * b->column;
            float sum = 0;
            for (size_t l = 0; l < k; l++) sum += x[l * a->column] * y[l * b->row];
            c[i * c_row + j] = sum;
        }
}
