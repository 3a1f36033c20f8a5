/* train/net/code.h: encodes networks without a name for checkpoints (train/state/CHECKPOINT.md specifies
 * them).
 *
 * Takes a network. Gives a record for it and one for each layer: the builder's arguments, and nothing that
 * follows from them, so that reading them builds the network again, with all of the builder's checks. Targets
 * (mr_net_targets()) are not in it: a checkpoint has them elsewhere. Callers: train/state, the trainer, and
 * by mr_net_encode() and mr_net_decode() whoever likes. */
#ifndef MRI_NET_CODE_H
#define MRI_NET_CODE_H

#include "train/net/net.h"

#define MRI_CODE_HEAD_BYTES  64u
#define MRI_CODE_LAYER_BYTES 256u
#define MRI_CODE_MOST_BYTES  (MRI_CODE_HEAD_BYTES + (size_t)MRI_NET_MAX_LAYERS * MRI_CODE_LAYER_BYTES)

/* Flags of a record. */
enum {
    MRI_CODE_AVERAGE = 1,
    MRI_CODE_NO_BIAS = 2,
    MRI_CODE_NO_SCALE = 4,
    MRI_CODE_SEQUENCES = 8,
    MRI_CODE_WHOLE_SAMPLES = 16,
    MRI_CODE_EACH_PIXEL = 32,
    MRI_CODE_BILINEAR = 64,
    MRI_CODE_LOG = 128,
    MRI_CODE_SAME = 256, /* padding: so that a step of 1 keeps the size; else pad on every side */
};

/* A layer on disk, little-endian. A field that its kind does not have is 0. All members and all members of
 * the structs in it have 4 bytes, up to the names: nothing is padded. */
struct mri_layer_record {
    uint32_t kind, activation;
    struct {
        uint32_t init;
        float deviation, bias;
    } first; /* values of the weights before training */
    uint32_t decay, in, in2;
    struct {
        uint32_t filters, kernel, kernel_w, stride, groups, pad;
    } window;
    uint32_t before, behind; /* channels of zeros */
    uint32_t flags;
    float rate, momentum, epsilon, weight;
    uint32_t pair;
    struct {
        uint32_t radius;
        float bias, alpha, beta;
    } lrn;
    struct {
        uint32_t h, w, c;
    } shape; /* of a field; the shape that is made of another */
    uint32_t values;
    float mean, std;
    char block[16], field[64];
    uint32_t zero[12];
};

/* Must a checkpoint keep it? Not where it is, but for targets, what mr_model_build() makes of its name for as
 * many classes (0: none), nor where there is no way to write it (mr_net_encode()). */
int mri_net_wants_keeping(const mr_net *net, uint32_t classes, bool *wants, mr_error *err);

#endif
