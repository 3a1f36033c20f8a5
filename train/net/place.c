/* train/net/place.c: where the layers of a network are computed, from a text. */
#include <stdio.h>

#include "train/net/cut.h"

typedef struct placing {
    const mr_net *net;
    uint32_t *place;
    bool *placed;
    uint32_t rest;
    bool has_rest;
    uint32_t most; /* the largest number of a device */
    mr_error *err;
} placing;

static int wrong(const placing *p, const char *item, const char *why)
{
    return mr_error_set(
        p->err, MR_EINVAL,
        "place \"%s\": %s; expected BLOCK=DEVICE, LAYER=DEVICE, FROM-TO=DEVICE or rest=DEVICE, "
        "separated by commas, devices from 0 to %u",
        item, why, MRI_STAGES_MOST - 1);
}

static int put(placing *p, const char *item, uint32_t at, uint32_t device)
{
    char text[64];
    if (p->placed[at]) {
        snprintf(text, sizeof text, "layer %u is placed twice", at);
        return wrong(p, item, text);
    }
    p->placed[at] = true;
    p->place[at] = device;
    return MR_OK;
}

static int put_range(placing *p, const char *item, unsigned long from, unsigned long to, uint32_t device)
{
    char text[64];
    if (from > to || to >= p->net->layer_count) {
        snprintf(text, sizeof text, "the network has layers 0 to %u", p->net->layer_count - 1);
        return wrong(p, item, text);
    }
    int rc = MR_OK;
    for (unsigned long at = from; rc == MR_OK && at <= to; at++) rc = put(p, item, (uint32_t)at, device);
    return rc;
}

static int put_block(placing *p, const char *item, const char *name, uint32_t device)
{
    bool any = false;
    int rc = MR_OK;
    for (uint32_t at = 0; rc == MR_OK && at < p->net->layer_count; at++) {
        if (strcmp(p->net->layers[at].block, name) != 0) continue;
        any = true;
        rc = put(p, item, at, device);
    }
    return rc || any ? rc : wrong(p, item, "the network has no block of that name");
}

static int put_item(placing *p, char *item)
{
    char whole[64], *end;
    snprintf(whole, sizeof whole, "%s", item);
    char *equals = strchr(item, '=');
    if (!equals || equals == item) return wrong(p, whole, "there is no device");
    *equals = '\0';
    const unsigned long device = strtoul(equals + 1, &end, 10);
    if (equals[1] < '0' || equals[1] > '9' || *end || device >= MRI_STAGES_MOST)
        return wrong(p, whole, "the device is not a number in range");
    if (device > p->most) p->most = (uint32_t)device;
    if (strcmp(item, "rest") == 0) {
        if (p->has_rest) return wrong(p, whole, "rest is placed twice");
        p->has_rest = true;
        p->rest = (uint32_t)device;
        return MR_OK;
    }
    if (*item < '0' || *item > '9') return put_block(p, whole, item, (uint32_t)device);
    const unsigned long from = strtoul(item, &end, 10);
    unsigned long to = from;
    if (*end == '-' && end[1] >= '0' && end[1] <= '9') to = strtoul(end + 1, &end, 10);
    return *end ? wrong(p, whole, "it names no layers") : put_range(p, whole, from, to, (uint32_t)device);
}

static int put_rest(const placing *p)
{
    for (uint32_t at = 0; at < p->net->layer_count; at++) {
        if (p->placed[at]) continue;
        if (!p->has_rest)
            return mr_error_set(p->err, MR_EINVAL,
                                "layer %u (%s) is placed nowhere: name it, or say rest=DEVICE", at,
                                mri_layer_name(&p->net->layers[at]));
        p->place[at] = p->rest;
    }
    return MR_OK;
}

int mr_net_place(const mr_net *net, const char *text, uint32_t *place, uint32_t *devices, mr_error *err)
{
    MRI_GIVEN(err, net);
    MRI_GIVEN(err, text);
    MRI_GIVEN(err, place);
    MRI_GIVEN(err, devices);
    placing p = {.net = net, .place = place, .placed = calloc((size_t)net->layer_count + 1, 1), .err = err};
    const size_t bytes = strlen(text) + 1;
    char *copy = malloc(bytes), *rest = copy;
    int rc = MR_OK;
    if (!copy || !p.placed)
        rc = mr_error_set(err, MR_ENOMEM, "no memory to place %u layers", net->layer_count);
    else memcpy(copy, text, bytes);
    for (char *item; rc == MR_OK && (item = strsep(&rest, ",")) != NULL;) rc = put_item(&p, item);
    if (rc == MR_OK) rc = put_rest(&p);
    *devices = p.most + 1;
    free(copy);
    free(p.placed);
    return rc;
}
