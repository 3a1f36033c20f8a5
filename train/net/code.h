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

/* Must a checkpoint keep it? Not where it is, but for targets, what mr_model_build() makes of its name for as
 * many classes (0: none), nor where there is no way to write it (mr_net_encode()). */
int mri_net_wants_keeping(const mr_net *net, uint32_t classes, bool *wants, mr_error *err);

#endif
