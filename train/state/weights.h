/* train/state/weights.h: the names and layouts of a network's tensors in files of weights: our own names, or
 * torchvision's for its networks.
 *
 * Takes the tensors of a checkpoint in their order (checkpoint.h). Gives for each its name, shape and layout
 * in the file, and the numbers from one layout to the other. Knows no file. Callers: train/.
 *
 * Ours are NHWC, theirs NCHW. Two kinds of tensors differ by that: the window of a filter, and the rows of a
 * dense layer after a flattened picture. Both are rows of pixels by channels, transposed.
 */
#ifndef MRI_WEIGHTS_H
#define MRI_WEIGHTS_H

#include "train/net/net.h"
#include "train/state/checkpoint.h"

enum { MRI_WEIGHT_NAME = 96 };

typedef struct mri_weight_place {
    char name[MRI_WEIGHT_NAME];
    uint32_t ndim;
    uint64_t dim[4];
    uint64_t rows, pixels, channels; /* our order in each row is pixels x channels, the file's channels x
                                        pixels; where one of them is 1 both are the same */
} mri_weight_place;

/* Of the first `count` of a checkpoint's tensors: as they are. */
void mri_weights_own(const mri_tensor_desc *desc, uint32_t count, mri_weight_place *out);

/* Does torchvision have the network of this name (mr_model.name)? */
bool mri_weights_has_torchvision(const char *model);
/* For messages: "resnet18, ...". */
const char *mri_weights_torchvision_models(char *buf, size_t buf_bytes);
/* net: for which desc is. MR_EUNSUPPORTED: torchvision has no such network, or its own is for another size.
 */
int mri_weights_torchvision(const mr_net *net, const mri_tensor_desc *desc, uint32_t count,
                            mri_weight_place *out, mr_error *err);

void mri_weight_to_file(const mri_weight_place *p, const float *own, float *file);
void mri_weight_from_file(const mri_weight_place *p, const float *file, float *own);
/* Do both orders differ? */
static inline bool mri_weight_is_moved(const mri_weight_place *p) { return p->pixels > 1 && p->channels > 1; }

/* ---- torch_names.c ---- */

typedef struct mri_torch_module {
    char name[64];
    bool dense_as_conv; /* our dense layer is its convolution of 1 x 1 */
} mri_torch_module;

/* The modules with parameters in the order of our layers with parameters; NULL: none of this name. To be
 * freed. *failed: no memory. */
mri_torch_module *mri_torch_modules(const char *model, uint32_t *count, bool *failed);

#endif
