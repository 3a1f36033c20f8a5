/* kernels/ops/op_table.c: the table of what each kind of operation is. */
#include "kernels/ops/op_table.h"

#define ROW(kind, name, on_cuda) [MR_OP_##kind] = &mri_##name##_class,
static const struct mri_op_class *const classes[] = {MRI_OP_CLASSES(ROW)};
_Static_assert(MRI_ARRAY_COUNT(classes) == MR_OP_KIND_COUNT, "MRI_OP_CLASSES names every kind");

const struct mri_op_class *mri_op_class_of(mr_op_kind kind)
{
    return (unsigned)kind < MR_OP_KIND_COUNT ? classes[kind] : NULL;
}
