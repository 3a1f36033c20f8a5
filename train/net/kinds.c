/* train/net/kinds.c: finds the row of a kind among all families, for networks that are read or cut. */
#include "train/net/kinds.h"

#include "base/util.h"

static const mri_layer_kind *const families[] = {mri_layers_windows, mri_layers_weights, mri_layers_norms,
                                                 mri_layers_shapes,  mri_layers_joins,   mri_layers_inputs,
                                                 mri_layers_losses};

const mri_layer_kind *mri_layer_kind_of(mr_op_kind op)
{
    for (size_t i = 0; i < MRI_ARRAY_COUNT(families); i++)
        for (const mri_layer_kind *kind = families[i]; kind->name; kind++)
            if (kind->op == op) return kind;
    return NULL;
}
