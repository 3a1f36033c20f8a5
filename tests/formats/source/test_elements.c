/* Elements of tensors as numbers of other formats, and the header of an array file. */
#include "formats/arrays/npy.h"
#include "formats/source/elements.h"
#include "mrt.h"

static void elements_keep_their_values(void **state)
{
    (void)state;
    static const uint8_t bytes[] = {0x80, 0xff, 0x00, 0x80, 0xff, 0xff, 0xff, 0x7f,
                                    0,    0,    0,    0,    0,    0,    0,    0x80};
    int64_t i[4];
    float f[8];
    mri_elements_to_ints(MR_U8, bytes, 2, i);
    MRT_TRUE(i[0] == 128 && i[1] == 255);
    mri_elements_to_ints(MR_I8, bytes, 2, i);
    MRT_TRUE(i[0] == -128 && i[1] == -1);
    mri_elements_to_ints(MR_I16, bytes, 2, i);
    MRT_TRUE(i[0] == -128 && i[1] == -32768);
    mri_elements_to_ints(MR_I32, bytes, 2, i);
    MRT_TRUE(i[0] == (int32_t)0x8000ff80 && i[1] == INT32_MAX);
    mri_elements_to_ints(MR_I64, bytes + 8, 1, i);
    MRT_TRUE(i[0] == INT64_MIN);
    static const uint16_t halves[8] = {0, 0x8000, 0x3c00, 0x7bff, 0x7c00, 0xfc00, 0x03ff, 0x0400};
    mri_elements_to_floats(MR_F16, halves, 8, f);
    MRT_TRUE(f[0] == 0 && f[2] == 1 && f[3] == 65504 && f[6] == 1023 * 0x1p-24f && f[7] == 0x1p-14f);
    MRT_TRUE(f[1] == 0 && 1 / f[1] < 0 && f[4] > 1e38f && f[5] < -1e38f);
    static const uint16_t nan = 0x7e00;
    mri_elements_to_floats(MR_F16, &nan, 1, f);
    MRT_TRUE(f[0] != f[0]);
    MRT_TRUE(mri_dtype_is_integer(MR_U8) && !mri_dtype_is_integer(MR_F16) &&
             !mri_dtype_is_integer((mr_dtype)0));
}

static void array_headers_are_read_again(void **state)
{
    (void)state;
    static const mr_dtype dtypes[] = {MR_U8, MR_I8, MR_I16, MR_I32, MR_I64, MR_F16, MR_F32, MR_F64};
    uint8_t head[MRI_NPY_OWN_HEAD];
    mr_error err = MR_ERROR_INIT;
    for (size_t t = 0; t < 8; t++)
        for (uint32_t ndim = 0; ndim <= MR_MAX_DIMS; ndim++) {
            uint64_t dim[MR_MAX_DIMS], bytes = mr_dtype_bytes(dtypes[t]);
            for (uint32_t k = 0; k < ndim; k++) bytes *= dim[k] = k + 1;
            const size_t head_bytes = mri_npy_head_write(dtypes[t], ndim, dim, head);
            mri_npy a;
            MRT_EQ(head_bytes % 64, 0);
            MRT_OK(mri_npy_parse(head, head_bytes, head_bytes + bytes, &a, &err), &err);
            MRT_EQ(a.header_bytes, head_bytes);
            MRT_EQ(mri_npy_dtype(&a), dtypes[t]);
            MRT_EQ(a.ndim, ndim);
            for (uint32_t k = 0; k < ndim; k++) MRT_EQ(a.dim[k], k + 1);
        }
    const uint64_t largest[MR_MAX_DIMS] = {UINT64_MAX, UINT64_MAX, UINT64_MAX, UINT64_MAX,
                                           UINT64_MAX, UINT64_MAX, UINT64_MAX, UINT64_MAX};
    MRT_TRUE(mri_npy_head_write(MR_F64, MR_MAX_DIMS, largest, head) <= sizeof head);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(elements_keep_their_values),
        cmocka_unit_test(array_headers_are_read_again),
    };
    return mrt_run(tests);
}
