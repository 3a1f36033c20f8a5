/* train/net/models_recurrent.c: networks of recurrent layers. */
#include "train/net/models.h"

enum { LAYERS = 4, UNITS = 1024 };

/* The study adds to the loss only the squares of the recurrent layers' weights. */
static void head(mr_net *net, uint32_t classes)
{
    mr_net_decay(net, MR_NET_DECAY_NONE);
    mr_net_dense(net, 512, MR_ACT_RELU);
    mr_net_dense(net, classes, MR_ACT_NONE);
}

/* N11: the "GRU study": four layers of 1,024 gated recurrent units; the last layer gives its last state; then
 * two dense layers. */
void mri_build_gru_notes(mr_net *net, uint32_t depth, uint32_t classes)
{
    (void)depth;
    mr_net_decay(net, MR_NET_DECAY_WEIGHTS);
    for (uint32_t i = 1; i <= LAYERS; i++) mr_net_gru(net, UNITS, i < LAYERS);
    head(net, classes);
}

/* The same of long short-term memory. */
void mri_build_lstm_notes(mr_net *net, uint32_t depth, uint32_t classes)
{
    (void)depth;
    mr_net_decay(net, MR_NET_DECAY_WEIGHTS);
    for (uint32_t i = 1; i <= LAYERS; i++) mr_net_lstm(net, UNITS, i < LAYERS);
    head(net, classes);
}
