/* pipeline/augment/output.c: the size that comes out. */
#include "pipeline/augment/op.h"

void mri_shorter_side(uint32_t n, uint32_t in_h, uint32_t in_w, uint64_t *out_h, uint64_t *out_w)
{
    *out_h = in_h <= in_w ? n : (uint64_t)n * in_h / in_w;
    *out_w = in_h <= in_w ? (uint64_t)n * in_w / in_h : n;
}

int mri_augment_sizes_differ(const mr_augment *a, uint64_t w, uint64_t h, uint32_t batch_w, uint32_t batch_h,
                             mr_error *err)
{
    return mr_error_set(err, MR_EINVAL,
                        "pictures differ in size: with augment \"%s\" this one is %llu x %llu, the first one "
                        "%u x %u; add an operation that fixes the size: resize(%ux%u), rrc(224), or "
                        "resize(256),center(224)",
                        a->text, (unsigned long long)w, (unsigned long long)h, batch_w, batch_h, batch_w,
                        batch_h);
}

int mr_augment_output(const mr_augment *a, uint32_t in_h, uint32_t in_w, uint32_t *out_h, uint32_t *out_w,
                      mr_error *err)
{
    MRI_GIVEN(err, a);
    MRI_GIVEN(err, out_h);
    MRI_GIVEN(err, out_w);
    uint64_t h = in_h, w = in_w;
    bool known = in_h != 0 && in_w != 0;
    for (uint32_t k = 0; k < a->op_count; k++) {
        const mri_op *op = &a->op[k];
        if (op->shorter) {
            if (known) mri_shorter_side(op->width, (uint32_t)h, (uint32_t)w, &h, &w);
        } else if (op->height) {
            h = op->height;
            w = op->width;
            known = true;
        }
        if (known && (h > MRI_AUGMENT_MAX_SIDE || w > MRI_AUGMENT_MAX_SIDE))
            return mr_error_set(err, MR_EINVAL,
                                "augment \"%s\" makes pictures of %llu x %llu; sides go up to %d", a->text,
                                (unsigned long long)h, (unsigned long long)w, MRI_AUGMENT_MAX_SIDE);
    }
    if (!known)
        return mr_error_set(
            err, MR_EINVAL,
            "pictures differ in size, and augment \"%s\" does not bring them to one: add rrc(224), "
            "or resize(256),center(224), or resize(224x224)",
            a->text);
    *out_h = (uint32_t)h;
    *out_w = (uint32_t)w;
    return MR_OK;
}
