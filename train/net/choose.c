/* train/net/choose.c: layers of a network, named in a text. */
#include <stdio.h>

#include "train/net/net.h"

typedef struct choosing {
    const mr_net *net;
    bool *chosen;
    mr_error *err;
} choosing;

static int wrong(const choosing *c, const char *item, const char *why)
{
    return mr_error_set(
        c->err, MR_EINVAL,
        "layers \"%s\": %s; expected numbers as of inspect --model (7), ranges (0-40, 41-), blocks, kinds "
        "(batch_norm), backbone or head, separated by commas",
        item, why);
}

/* The last layer with weights: the classifier. */
uint32_t mri_net_head(const mr_net *net)
{
    uint32_t head = 0;
    for (uint32_t at = 0; at < net->layer_count; at++)
        if (net->layers[at].params > 0 && net->layers[at].op.kind != MR_OP_BATCHNORM) head = at;
    return head;
}

static int choose_range(const choosing *c, const char *item)
{
    const uint32_t last = c->net->layer_count - 1;
    char *end, text[64];
    const unsigned long from = strtoul(item, &end, 10);
    unsigned long to = from;
    if (*end == '-') {
        to = last;
        if (end[1] >= '0' && end[1] <= '9') to = strtoul(end + 1, &end, 10);
        else end++;
    }
    if (*end) return wrong(c, item, "it names no layers");
    if (from > to || to > last) {
        snprintf(text, sizeof text, "the network has layers 0 to %u", last);
        return wrong(c, item, text);
    }
    for (unsigned long at = from; at <= to; at++) c->chosen[at] = true;
    return MR_OK;
}

static int choose_named(const choosing *c, const char *item)
{
    const mr_net *net = c->net;
    const uint32_t head = mri_net_head(net);
    const bool backbone = strcmp(item, "backbone") == 0, is_head = strcmp(item, "head") == 0;
    bool any = backbone || is_head;
    for (uint32_t at = 0; at < net->layer_count; at++) {
        const mri_layer *l = &net->layers[at];
        const bool named = strcmp(l->block, item) == 0 || strcmp(mri_layer_name(l), item) == 0;
        if (!named && !(backbone && at < head) && !(is_head && at == head)) continue;
        c->chosen[at] = any = true;
    }
    return any ? MR_OK : wrong(c, item, "the network has no block and no kind of layer of that name");
}

int mr_net_choose(const mr_net *net, const char *text, bool *chosen, mr_error *err)
{
    MRI_GIVEN(err, net);
    MRI_GIVEN(err, text);
    MRI_GIVEN(err, chosen);
    const choosing c = {net, chosen, err};
    const size_t bytes = strlen(text) + 1;
    char *copy = malloc(bytes), *rest = copy;
    int rc = copy ? MR_OK : mr_error_set(err, MR_ENOMEM, "no memory to choose layers");
    memset(chosen, 0, net->layer_count * sizeof *chosen);
    if (copy) memcpy(copy, text, bytes);
    for (char *item; rc == MR_OK && (item = strsep(&rest, ",")) != NULL;) {
        if (!*item) rc = wrong(&c, text, "a name is missing");
        else rc = *item >= '0' && *item <= '9' ? choose_range(&c, item) : choose_named(&c, item);
    }
    free(copy);
    if (rc) return rc;
    for (uint32_t at = 0; at < net->layer_count; at++)
        if (chosen[at] && net->layers[at].params > 0) return MR_OK;
    return mr_error_set(err, MR_EINVAL, "layers \"%s\": none of them has parameters", text);
}
