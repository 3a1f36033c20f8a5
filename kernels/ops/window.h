/* kernels/ops/window.h: which pixels lie under a window of a convolution or a pooling, padding left out. For
 * the plain C references. */
#ifndef MRI_WINDOW_H
#define MRI_WINDOW_H

#include "kernels/ops/host_op.h"

struct mri_window {
    int64_t y, x;                /* of the window's first place, below 0 in the padding */
    uint32_t ky0, ky1, kx0, kx1; /* places inside the input */
};

static inline void mri_window_clip(int64_t first, uint32_t kernel, uint32_t side, uint32_t *from,
                                   uint32_t *to)
{
    const int64_t end = (int64_t)side - first;
    *from = first < 0 ? (uint32_t)-first : 0;
    *to = end < (int64_t)kernel ? (uint32_t)(end > 0 ? end : 0) : kernel;
}

static inline struct mri_window mri_window_at(const mr_op_window *w, const mr_tensor *in, uint32_t oy,
                                              uint32_t ox)
{
    struct mri_window win = {.y = (int64_t)oy * w->stride_h - w->pad_top,
                             .x = (int64_t)ox * w->stride_w - w->pad_left};
    mri_window_clip(win.y, w->kernel_h, in->h, &win.ky0, &win.ky1);
    mri_window_clip(win.x, w->kernel_w, in->w, &win.kx0, &win.kx1);
    return win;
}

/* Pixel (y * w + x) of the input under place (ky, kx). */
static inline size_t mri_window_pixel(const mr_tensor *in, const struct mri_window *win, uint32_t ky,
                                      uint32_t kx)
{
    return (size_t)(win->y + ky) * in->w + (size_t)(win->x + kx);
}

#endif
