/* pipeline/augment/table.c: all operations, by family, and the presets. */
#include "pipeline/augment/op.h"

static const mri_op_type *const families[] = {mri_ops_resize,  mri_ops_window, mri_ops_turn,  mri_ops_colour,
                                              mri_ops_tone,    mri_ops_smooth, mri_ops_erase, mri_ops_policy,
                                              mri_ops_numbers, mri_ops_mix,    mri_ops_views};

static const mri_preset presets[] = {
    {"none", ""},
    {"rrc224", "rrc(224),flip,normalise(imagenet)"},
    {"center224", "resize(256),center(224),normalise(imagenet)"},
    {"cifar", "padcrop(4),flip"},
};

const mri_op_type *mri_op_type_at(size_t k)
{
    for (size_t f = 0; f < MRI_ARRAY_COUNT(families); f++)
        for (const mri_op_type *t = families[f]; t->name; t++)
            if (k-- == 0) return t;
    return NULL;
}

const mri_op_type *mri_op_type_find(const char *name, size_t n)
{
    const mri_op_type *t;
    for (size_t k = 0; (t = mri_op_type_at(k)) != NULL; k++)
        if (strlen(t->name) == n && memcmp(t->name, name, n) == 0) return t;
    return NULL;
}

const mri_preset *mri_preset_at(size_t k) { return k < MRI_ARRAY_COUNT(presets) ? &presets[k] : NULL; }

const mri_preset *mri_preset_find(const char *name, size_t n)
{
    for (size_t k = 0; k < MRI_ARRAY_COUNT(presets); k++)
        if (strlen(presets[k].name) == n && memcmp(presets[k].name, name, n) == 0) return &presets[k];
    return NULL;
}

const char *mr_augment_help(uint32_t which, const char **usage)
{
    const mri_op_type *t = mri_op_type_at(which);
    if (!t) return NULL;
    if (usage) *usage = t->usage;
    return t->help;
}
