/* kernels/host/host_sum.c: additions of arrays in host memory: one to another, or many in the order of a
 * program (sum_tree.h), block by block, so that the sums stay in the first-level cache. */
#include "kernels/backend/sum_tree.h"
#include "kernels/host/host.h"
#include "kernels/host/simd_loop.h"

#define SUM_BLOCK 1024u /* floats: a stack of them is at most 72 KiB */

MRI_INLINE void add_body(float *sum, const float *values, size_t count)
{
    for (size_t i = 0; i < count; i++) sum[i] += values[i];
}
MRI_SIMD_LOOP(add, (float *sum, const float *values, size_t count), (sum, values, count))

void mri_host_sum(const mri_sum_program *p, float *const *arrays, uint64_t at, uint64_t count, float *out)
{
    float stack[MRI_SUM_DEPTH][SUM_BLOCK];
    for (uint64_t done = 0; done < count; done += SUM_BLOCK) {
        const size_t n = (size_t)mri_min_u64(SUM_BLOCK, count - done);
        uint32_t top = 0; /* blocks on the stack */
        for (uint32_t i = 0; i < p->count; i++) {
            const mri_sum_step *step = &p->steps[i];
            const float *array = step->what == MRI_SUM_FOLD ? stack[--top] : arrays[step->array] + at + done;
            if (step->what == MRI_SUM_TAKE) memcpy(stack[top++], array, n * sizeof(float));
            else add(stack[top - 1], array, n);
        }
        memcpy(out + done, stack[0], n * sizeof(float));
    }
}

struct add_args {
    float *to;
    const float *from;
    uint64_t count;
};

static int run_add(mri_host_stream *s, const void *args, mr_error *err)
{
    (void)s, (void)err;
    const struct add_args *a = args;
#pragma omp parallel for schedule(static) if (a->count > MRI_PARALLEL_ELEMENTS)
    for (uint64_t at = 0; at < a->count; at += SUM_BLOCK)
        add(a->to + at, a->from + at, (size_t)mri_min_u64(SUM_BLOCK, a->count - at));
    return MR_OK;
}

int mri_host_add_async(mr_stream *s, float *to, const float *from, uint64_t count)
{
    const struct add_args args = {to, from, count};
    return mri_host_push((mri_host_stream *)s, run_add, &args, sizeof args, 0, NULL);
}
