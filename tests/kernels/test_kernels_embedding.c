/* kernels: embedding tables. Rows come as they are, for indices of every type; an index outside the table
 * gives zeros and no gradient; gradients are sums over positions in their order, for any number of
 * threads. */
#include "tests/kernels/rig.h"

enum { N = 5, LENGTH = 37, CLASSES = 11, UNITS = 45, PLACES = N * LENGTH };

/* -1 and CLASSES are outside the table. */
static int number_of(uint32_t place) { return (int)(mri_mix64(place + 3) % (CLASSES + 2)) - 1; }

static void store(void *to, uint32_t dtype, uint32_t place)
{
    const int v = number_of(place);
    switch (dtype) {
    case MR_TENSOR_U8: ((uint8_t *)to)[place] = (uint8_t)v; break;
    case MR_TENSOR_I8: ((int8_t *)to)[place] = (int8_t)v; break;
    case MR_TENSOR_I16: ((int16_t *)to)[place] = (int16_t)v; break;
    case MR_TENSOR_I32: ((int32_t *)to)[place] = v; break;
    default: ((int64_t *)to)[place] = v; break;
    }
}

static void check_type(uint32_t dtype)
{
    struct rig r;
    mr_error err = MR_ERROR_INIT;
    mr_op *op;
    rig_open(&r, "cpu", false);
    const mr_op_desc d = {
        .kind = MR_OP_EMBEDDING,
        .in = {1, LENGTH, 1, dtype, MR_LAYOUT_NHWC, LENGTH * mr_tensor_element_bytes(dtype)},
        .max_batch = N,
        .training = true,
        .embedding = {.classes = CLASSES, .units = UNITS}};
    MRT_OK(mr_op_create(&op, r.dev, &d, &err), &err);
    const mr_op_info *info = mr_op_info_of(op);
    MRT_TRUE(info->out.w == LENGTH && info->out.c == UNITS && info->param_count == 1);
    void *x = rig_memory(&r, d.in.sample_bytes * N);
    float *y = rig_memory(&r, info->out.sample_bytes * N), *dy = rig_memory(&r, info->out.sample_bytes * N),
          *table = rig_memory(&r, CLASSES * UNITS * sizeof(float)),
          *dtable = rig_memory(&r, CLASSES * UNITS * sizeof(float)), expected[CLASSES * UNITS] = {0};
    rig_noise(table, CLASSES * UNITS, 1), rig_noise(dy, PLACES * UNITS, 2);
    memset(dtable, 0x7F, sizeof expected);
    for (uint32_t p = 0; p < PLACES; p++) store(x, dtype, p);
    const mr_op_args a = {
        .n = N, .x = x, .y = y, .dy = dy, .param = {table}, .dparam = {dtable}, .training = true};
    MRT_OK(mr_op_forward_async(op, r.s, &a), NULL);
    MRT_OK(mr_op_backward_async(op, r.s, &a), NULL);
    MRT_OK(mr_stream_sync(r.s, &err), &err);
    uint32_t unknown = 0;
    for (uint32_t p = 0; p < PLACES; p++) {
        const int v = number_of(p);
        const bool known = v >= 0 && v < CLASSES;
        unknown += !known;
        for (uint32_t u = 0; u < UNITS; u++) {
            MRT_TRUE(y[p * UNITS + u] == (known ? table[v * UNITS + (int)u] : 0));
            if (known) expected[v * UNITS + (int)u] += dy[p * UNITS + u];
        }
    }
    MRT_TRUE(unknown > 5);
    assert_memory_equal(dtable, expected, sizeof expected);
    mr_op_destroy(op);
    rig_close(&r);
}

static void tables_are_looked_up(void **state)
{
    (void)state;
    static const uint32_t types[] = {MR_TENSOR_U8, MR_TENSOR_I8, MR_TENSOR_I16, MR_TENSOR_I32, MR_TENSOR_I64};
    for (size_t k = 0; k < MRI_ARRAY_COUNT(types); k++) check_type(types[k]);
}

int main(void)
{
    const struct CMUnitTest tests[] = {cmocka_unit_test(tables_are_looked_up)};
    return mrt_run(tests);
}
