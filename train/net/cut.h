/* train/net/cut.h: a network cut for several devices: the layers of each as a network of its own.
 *
 *   whole   conv ─► pool ─► conv ─► dense          place 0 0 1 1
 *   0       conv ─► pool ─► out
 *   1       in ─► conv ─► dense                    a point that another part takes goes through two ports
 *
 * Points go from a device to later ones only. Further inputs are computed on the first device, where the data
 * are, losses on the last. */
#ifndef MRI_CUT_H
#define MRI_CUT_H

#include "train/net/net.h"

#define MRI_STAGES_MOST 16u

/* Layer `in` of a part is a port that takes what layer `out` of part `from`, a port, hands on. */
typedef struct mri_link {
    uint32_t from, out, in;
} mri_link;

typedef struct mri_piece {
    mr_net *net;
    mri_link *links; /* to its ports, which are its first layers */
    uint32_t link_count;
} mri_piece;

/* place: of each layer, its device, from 0 to count - 1. pieces: room for count; mri_cut_fini() whatever is
 * returned. MR_EINVAL: place is not for this network, or a device would have nothing to train; err says
 * which.
 */
int mri_cut(const mr_net *net, const uint32_t *place, uint32_t count, mri_piece *pieces, mr_error *err);
void mri_cut_fini(mri_piece *pieces, uint32_t count); /* accepts zeroed ones */

#endif
