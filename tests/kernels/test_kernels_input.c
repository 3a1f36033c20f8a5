/* kernels: the input operation: pixels in bytes to floats, by mean, deviation and affine numbers, in every
 * layout, mirrored. */
#include "tests/kernels/rig.h"

static void input_is_right(void **state)
{
    (void)state;
    for (int reference = 0; reference < 2; reference++)
        for (uint32_t c = 1; c <= 4; c++) {
            struct rig r;
            mr_error err = MR_ERROR_INIT;
            mr_op *op;
            rig_open(&r, "cpu", reference);
            const uint32_t h = 7, w = 5, n = 3, count = n * h * w * c;
            mr_op_desc d = {.kind = MR_OP_INPUT,
                            .in = {h, w, c, MR_TENSOR_U8, 0, (size_t)h * w * c},
                            .max_batch = n,
                            .input.mean = {10, 20, 30, 40},
                            .input.std = {1, 2, 3, 4}};
            MRT_OK(mr_op_create(&op, r.dev, &d, &err), &err);
            const mr_tensor *out = &mr_op_info_of(op)->out;
            uint8_t *x = rig_memory(&r, count);
            float *affine = rig_memory(&r, n * 2 * sizeof(float)), *y = rig_memory(&r, out->sample_bytes * n),
                  plain[512];
            mrt_noise(x, count, c);
            for (uint32_t i = 0; i < 2 * n; i++) affine[i] = 0.5f + (float)i;
            for (int with = 0; with < 2; with++) {
                const mr_op_args a = {.n = n, .x = x, .y = y, .affine = with ? affine : NULL};
                MRT_OK(mr_op_forward_async(op, r.s, &a), NULL);
                MRT_OK(mr_stream_sync(r.s, &err), &err);
                rig_load(out, n, y, plain);
                for (uint32_t k = 0; k < count; k++) {
                    const uint32_t i = k / (h * w * c), ch = k % c;
                    const double m = with ? (double)affine[2 * i] : 1,
                                 b = with ? (double)affine[2 * i + 1] : 0;
                    const double expected =
                        (x[k] * m + b - (double)d.input.mean[ch]) / (double)d.input.std[ch];
                    MRT_TRUE(fabs((double)plain[k] - expected) < 1e-3 * (1 + fabs(expected)));
                }
            }
            mr_op_destroy(op);
            rig_close(&r);
        }
}

/* Every wanted layout, rows turned where flip says so: the same values at the places their layout gives
 * them. */
static void input_mirrors_and_obeys(void **state)
{
    (void)state;
    enum { H = 3, W = 37, N = 3 }; /* wide enough for every vector length and a rest */
    for (int at = 0; at < 2 * 3 * 4; at++) {
        const bool reference = at % 2;
        const mr_wanted_layout want = (mr_wanted_layout)(at / 2 % 3);
        const uint32_t c = (uint32_t)(at / 6) + 1, sample = H * W * c;
        struct rig r;
        mr_error err = MR_ERROR_INIT;
        mr_op *op;
        rig_open(&r, "cpu", reference);
        const mr_op_desc d = {.kind = MR_OP_INPUT,
                              .in = {H, W, c, MR_TENSOR_U8, 0, sample},
                              .max_batch = N,
                              .input.mean = {10, 20, 30, 40},
                              .input.std = {1, 2, 3, 4},
                              .want = want};
        MRT_OK(mr_op_create(&op, r.dev, &d, &err), &err);
        const mr_tensor *out = &mr_op_info_of(op)->out;
        if (want != MR_WANT_ANY) MRT_EQ(out->layout, want == MR_WANT_NCHW ? MR_LAYOUT_NCHW : MR_LAYOUT_NHWC);
        uint8_t *x = rig_memory(&r, N * sample), *flip = rig_memory(&r, N);
        float *y = rig_memory(&r, out->sample_bytes * N), straight[H * W * 4 * N], turned[H * W * 4 * N];
        mrt_noise(x, N * sample, c);
        flip[0] = 1, flip[2] = 255;
        mr_op_args a = {.n = N, .x = x, .y = y};
        MRT_OK(mr_op_forward_async(op, r.s, &a), NULL);
        MRT_OK(mr_stream_sync(r.s, &err), &err);
        rig_load(out, N, y, straight);
        a.flip = flip;
        MRT_OK(mr_op_forward_async(op, r.s, &a), NULL);
        MRT_OK(mr_stream_sync(r.s, &err), &err);
        rig_load(out, N, y, turned);
        for (uint32_t k = 0; k < N * sample; k++) {
            const uint32_t i = k / sample, px = k / c % W, from = flip[i] ? k - px * c + (W - 1 - px) * c : k;
            MRT_TRUE(turned[k] == straight[from]);
            MRT_TRUE(straight[k] ==
                     (float)x[k] * (1 / d.input.std[k % c]) + (0 - d.input.mean[k % c]) / d.input.std[k % c]);
        }
        mr_op_destroy(op);
        rig_close(&r);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(input_is_right),
        cmocka_unit_test(input_mirrors_and_obeys),
    };
    return mrt_run(tests);
}
