/* kernels/ops/dnnl/blocks_dnnl.c: see blocks_dnnl.h.
 *
 * Scratch of a call:  [ lane 0 ][ lane 1 ] ... [ the last block's src ][ its dst ]
 * of a lane:          [ primitive's own ][ weights ][ bias ]      the last two where the pass sums them */
#include "kernels/ops/dnnl/blocks_dnnl.h"

#include <omp.h>

struct mri_blocks {
    struct mri_blocks_desc d;
    struct mri_dnnl_step *step;  /* by lane: memory objects are one thread's at a time */
    size_t src_bytes, dst_bytes; /* of one sample */
    size_t weights_at, bias_at, lane_bytes, rest_at, scratch_bytes;
};

static int create_lanes(struct mri_blocks *b, dnnl_primitive_desc_t pd, mr_error *err)
{
    const struct mri_blocks_desc *d = &b->d;
    const struct mri_dnnl_arg args[] = {{d->ids[0], &d->src},
                                        {d->ids[1], &d->weights},
                                        {d->ids[2], &d->dst},
                                        {d->ids[3], &d->bias},
                                        {0, NULL}};
    int rc = MR_OK;
    for (uint32_t i = 0; !rc && i < d->lanes; i++) {
        dnnl_primitive_desc_t copy;
        rc = mri_dnnl_error(dnnl_primitive_desc_clone(&copy, pd), "cloning a description", err);
        if (!rc) rc = mri_dnnl_step_create(&b->step[i], copy, args, err);
    }
    return rc;
}

static void place(struct mri_blocks *b)
{
    const struct mri_blocks_desc *d = &b->d;
    b->src_bytes = dnnl_memory_desc_get_size(&d->src) / d->samples;
    b->dst_bytes = dnnl_memory_desc_get_size(&d->dst) / d->samples;
    b->weights_at = mri_dnnl_piece(b->step[0].scratch_bytes);
    b->bias_at = b->weights_at + (d->sums ? mri_dnnl_bytes(&d->weights) : 0);
    b->lane_bytes = b->bias_at + (d->sums && d->ids[3] ? mri_dnnl_bytes(&d->bias) : 0);
    b->rest_at = b->lane_bytes * d->lanes;
    b->scratch_bytes = b->rest_at + mri_dnnl_bytes(&d->src) + mri_dnnl_bytes(&d->dst);
}

int mri_blocks_create(struct mri_blocks **out, const struct mri_blocks_desc *d, dnnl_primitive_desc_t pd,
                      mr_error *err)
{
    struct mri_blocks *b = calloc(1, sizeof *b);
    int rc = MR_OK;
    *out = NULL;
    if (b) b->step = calloc(d->lanes, sizeof *b->step);
    if (!b || !b->step) rc = mr_error_set(err, MR_ENOMEM, "no memory for a pass of %u lanes", d->lanes);
    if (!rc) {
        b->d = *d;
        rc = create_lanes(b, pd, err);
    }
    dnnl_primitive_desc_destroy(pd);
    if (rc) {
        mri_blocks_destroy(b);
        return rc;
    }
    place(b);
    *out = b;
    return MR_OK;
}

void mri_blocks_destroy(struct mri_blocks *b)
{
    if (!b) return;
    for (uint32_t i = 0; b->step && i < b->d.lanes; i++) mri_dnnl_step_destroy(&b->step[i]);
    free(b->step);
    free(b);
}

size_t mri_blocks_scratch_bytes(const struct mri_blocks *b) { return b->scratch_bytes; }
const dnnl_memory_desc_t *mri_blocks_weights(const struct mri_blocks *b) { return &b->d.weights; }

/* What a call works on. */
struct call {
    const struct mri_blocks *b;
    uint32_t n;
    uint8_t *src, *dst, *scratch;
    void *weights, *bias;
};

/* The last block's own memory: `have` samples, then zeros, which add nothing to a sum. */
static uint8_t *fill_rest(uint8_t *to, const uint8_t *from, size_t have_bytes, size_t all_bytes)
{
    memcpy(to, from, have_bytes);
    memset(to + have_bytes, 0, all_bytes - have_bytes);
    return to;
}

/* Block `at`, by the lane that calls. weights, bias: where it reads or writes them. */
static int run_block(const struct call *c, uint32_t at, uint32_t lane, void *weights, void *bias,
                     mr_error *err)
{
    const struct mri_blocks *b = c->b;
    const uint32_t all = b->d.samples, first = at * all, have = c->n - first < all ? c->n - first : all;
    uint8_t *src = c->src + first * b->src_bytes, *dst = c->dst + first * b->dst_bytes;
    uint8_t *my_src = src, *my_dst = dst;
    if (have < all) {
        uint8_t *rest = c->scratch + b->rest_at;
        my_src = b->d.writes_src ? rest : fill_rest(rest, src, have * b->src_bytes, all * b->src_bytes);
        rest += mri_dnnl_bytes(&b->d.src);
        my_dst = b->d.writes_src || b->d.sums ? fill_rest(rest, dst, have * b->dst_bytes, all * b->dst_bytes)
                                              : rest;
    }
    void *const addresses[] = {my_src, weights, my_dst, bias};
    const int rc = mri_dnnl_step_run(&b->step[lane], addresses, c->scratch + lane * b->lane_bytes, err);
    if (rc || have == all || b->d.sums) return rc;
    if (b->d.writes_src) memcpy(src, my_src, have * b->src_bytes);
    else memcpy(dst, my_dst, have * b->dst_bytes);
    return MR_OK;
}

static void add_up(const struct call *c, const uint8_t *lane)
{
    const struct mri_blocks *b = c->b;
    mri_accumulate_piece(c->weights, (const float *)(const void *)(lane + b->weights_at),
                         dnnl_memory_desc_get_size(&b->d.weights) / sizeof(float));
    if (b->d.ids[3])
        mri_accumulate_piece(c->bias, (const float *)(const void *)(lane + b->bias_at),
                             dnnl_memory_desc_get_size(&b->d.bias) / sizeof(float));
}

static void keep_first(int *first, mr_error *out, int rc, const mr_error *why)
{
#pragma omp critical(mri_blocks_error)
    if (rc && !*first) {
        *first = rc;
        if (out) *out = *why;
    }
}

/* Blocks in any order, each to samples of its own. */
static int run_apart(const struct call *c, uint32_t blocks, int threads, mr_error *err)
{
    int first = MR_OK;
#pragma omp parallel num_threads(threads)
    {
        omp_set_num_threads(1); /* what the primitives were made for */
#pragma omp for schedule(dynamic, 1)
        for (uint32_t i = 0; i < blocks; i++) {
            mr_error why = MR_ERROR_INIT;
            keep_first(&first, err,
                       run_block(c, i, (uint32_t)omp_get_thread_num(), c->weights, c->bias, &why), &why);
        }
    }
    return first;
}

/* Sums of blocks, computed side by side and added in the order of blocks. */
static int run_sums(const struct call *c, uint32_t blocks, int threads, mr_error *err)
{
    const struct mri_blocks *b = c->b;
    int first = MR_OK;
#pragma omp parallel num_threads(threads)
    {
        omp_set_num_threads(1);
        const uint32_t lane = (uint32_t)omp_get_thread_num();
        uint8_t *mine = c->scratch + lane * b->lane_bytes;
#pragma omp for ordered schedule(dynamic, 1)
        for (uint32_t i = 0; i < blocks; i++) {
            mr_error why = MR_ERROR_INIT;
            const int rc = i == 0 ? run_block(c, 0, lane, c->weights, c->bias, &why)
                                  : run_block(c, i, lane, mine + b->weights_at, mine + b->bias_at, &why);
            keep_first(&first, err, rc, &why);
#pragma omp ordered
            if (i > 0 && !rc) add_up(c, mine);
        }
    }
    return first;
}

int mri_blocks_run(const struct mri_blocks *b, uint32_t n, void *src, void *weights, void *dst, void *bias,
                   void *scratch, mr_error *err)
{
    const struct call c = {
        .b = b, .n = n, .src = src, .dst = dst, .scratch = scratch, .weights = weights, .bias = bias};
    const uint32_t blocks = (n - 1) / b->d.samples + 1, most = b->d.lanes < blocks ? b->d.lanes : blocks;
    const int available = omp_get_max_threads(), threads = available < (int)most ? available : (int)most;
    return b->d.sums ? run_sums(&c, blocks, threads, err) : run_apart(&c, blocks, threads, err);
}
