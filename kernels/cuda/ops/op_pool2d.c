/* kernels/cuda/ops/op_pool2d.c: MR_OP_POOL2D on a GPU (kernels/pool.cu). Specification: ops/pool2d.c. saved:
 * of every maximum, which place of its window it was, in one byte where that is enough. */
#include "kernels/cuda/ops/grid.h"

static uint32_t place_bytes(const mr_op_desc *d)
{
    return (uint64_t)d->pool2d.window.kernel_h * d->pool2d.window.kernel_w <= 256 ? 1 : 2;
}

static int prepare(mri_cuda_op *op, mr_error *err)
{
    (void)err;
    const mr_op_desc *d = &op->base.desc;
    if (!d->pool2d.average && d->training)
        op->base.info.saved_bytes = mri_grid_elements(&op->base.info.out, d->max_batch) * place_bytes(d);
    return MR_OK;
}

/* packs: whether the tensors' addresses allow them. */
static struct mrk_window window_of(const mri_cuda_op *op, uint32_t n, bool packs)
{
    const mr_op_desc *d = &op->base.desc;
    const mr_op_window *w = &d->pool2d.window;
    const mr_tensor *out = &op->base.info.out;
    return (struct mrk_window){.n = n,
                               .h = d->in.h,
                               .w = d->in.w,
                               .c = d->in.c,
                               .out_h = out->h,
                               .out_w = out->w,
                               .kernel_h = w->kernel_h,
                               .kernel_w = w->kernel_w,
                               .stride_h = w->stride_h,
                               .stride_w = w->stride_w,
                               .pad_top = w->pad_top,
                               .pad_left = w->pad_left,
                               .dtype = d->in.dtype,
                               .vectors = packs && d->in.c % mri_grid_pack(d->in.dtype) == 0,
                               .place_bytes = place_bytes(d)};
}

/* A block for each row of `width` pixels in `height` rows of n samples, its threads the packs of that row. */
static int launch(mri_cuda_stream *s, enum mrk_kernel kernel, const struct mrk_window *win, uint32_t height,
                  uint32_t width, const void *args, mr_error *err)
{
    const uint64_t packs = (uint64_t)width * (win->c / (win->vectors ? mri_grid_pack(win->dtype) : 1));
    const uint32_t threads = packs >= MRK_THREADS ? MRK_THREADS : (uint32_t)mri_align_up(packs, 32);
    return mri_cuda_launch(s, kernel, mri_grid_blocks((uint64_t)win->n * height, 1), threads, 0, args, err);
}

static int forward(mri_cuda_op *op, mri_cuda_stream *s, const mr_op_args *a, mr_error *err)
{
    const mr_op_desc *d = &op->base.desc;
    const struct mrk_window win =
        window_of(op, a->n, MRI_GRID_ALIGNED(a->x, a->y, d->pool2d.average ? NULL : a->saved));
    if (d->pool2d.average) {
        const struct mrk_average_pool_args args = {win, a->x, a->y};
        return launch(s, MRK_average_pool, &win, win.out_h, win.out_w, &args, err);
    }
    const struct mrk_max_pool_args args = {win, a->x, a->y, d->training ? a->saved : NULL};
    return launch(s, MRK_max_pool, &win, win.out_h, win.out_w, &args, err);
}

static int backward(mri_cuda_op *op, mri_cuda_stream *s, const mr_op_args *a, mr_error *err)
{
    const mr_op_desc *d = &op->base.desc;
    if (!d->need_dx) return MR_OK;
    const struct mrk_window win =
        window_of(op, a->n, MRI_GRID_ALIGNED(a->dx, a->dy, d->pool2d.average ? NULL : a->saved));
    if (d->pool2d.average) {
        const struct mrk_average_pool_backward_args args = {win, a->dy, a->dx};
        return launch(s, MRK_average_pool_backward, &win, win.h, win.w, &args, err);
    }
    const struct mrk_max_pool_backward_args args = {win, a->dy, a->saved, a->dx};
    return launch(s, MRK_max_pool_backward, &win, win.h, win.w, &args, err);
}

const struct mri_cuda_code mri_cuda_pool2d = {.forward_text = "pool2d forward",
                                              .backward_text = "pool2d backward",
                                              .prepare = prepare,
                                              .forward = forward,
                                              .backward = backward};
