/* kernels/ops/op_table.h: the table of what each kind of operation is. */
#ifndef MRI_OP_TABLE_H
#define MRI_OP_TABLE_H

#include "kernels/backend/op_class.h"

/* NULL for an unknown kind. */
const struct mri_op_class *mri_op_class_of(mr_op_kind kind);

#endif
