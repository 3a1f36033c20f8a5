/* train/state/torch_names.c: the modules of torchvision's networks, in the order of our layers. The order
 * differs from theirs in one place: the layers of a short cut come first. */
#include <stdarg.h>
#include <stdio.h>

#include "train/state/weights.h"

typedef struct listing {
    mri_torch_module *module;
    uint32_t count, room;
    bool failed;
} listing;

static mri_torch_module *add(listing *l, const char *format, ...) __attribute__((format(printf, 2, 3)));
static mri_torch_module *add(listing *l, const char *format, ...)
{
    static mri_torch_module nowhere;
    if (l->count == l->room && !l->failed) {
        const uint32_t room = l->room ? 2 * l->room : 64;
        mri_torch_module *more = realloc(l->module, room * sizeof *more);
        l->failed = !more;
        if (more) l->module = more, l->room = room;
    }
    if (l->failed) return &nowhere;
    mri_torch_module *m = &l->module[l->count++];
    *m = (mri_torch_module){0};
    va_list args;
    va_start(args, format);
    vsnprintf(m->name, sizeof m->name, format, args);
    va_end(args);
    return m;
}

static void list_resnet(listing *l, uint32_t depth)
{
    static const uint32_t two[] = {2, 2, 2, 2}, more[] = {3, 4, 6, 3};
    const uint32_t *blocks = depth == 18 ? two : more, convolutions = depth == 50 ? 3 : 2;
    add(l, "conv1");
    add(l, "bn1");
    for (uint32_t stage = 0; stage < 4; stage++)
        for (uint32_t b = 0; b < blocks[stage]; b++) {
            const bool changes = b == 0 && (stage > 0 || depth == 50);
            for (uint32_t i = 0; changes && i < 2; i++) add(l, "layer%u.%u.downsample.%u", stage + 1, b, i);
            for (uint32_t i = 1; i <= convolutions; i++) {
                add(l, "layer%u.%u.conv%u", stage + 1, b, i);
                add(l, "layer%u.%u.bn%u", stage + 1, b, i);
            }
        }
    add(l, "fc");
}

/* features: convolution, relu, ..., pool. */
static void list_vgg(listing *l, uint32_t depth)
{
    uint32_t at = 0;
    for (uint32_t stage = 0; stage < 5; stage++, at++) {
        const uint32_t convolutions = stage < 2 ? 2 : depth == 19 ? 4 : 3;
        for (uint32_t i = 0; i < convolutions; i++, at += 2) add(l, "features.%u", at);
    }
    for (uint32_t i = 0; i < 9; i += 3) add(l, "classifier.%u", i);
}

/* A convolution and its normalisation, beside each other in one module. */
static void list_pair(listing *l, const char *where, uint32_t at)
{
    add(l, "%s.%u.0", where, at);
    add(l, "%s.%u.1", where, at);
}

static void list_mobilenet_v2(listing *l, uint32_t depth)
{
    enum { BLOCKS = 17 };
    char where[32];
    (void)depth;
    list_pair(l, "features", 0);
    for (uint32_t b = 1; b <= BLOCKS; b++) {
        const uint32_t pairs = b == 1 ? 1 : 2; /* the first block is not made wider */
        snprintf(where, sizeof where, "features.%u.conv", b);
        for (uint32_t i = 0; i < pairs; i++) list_pair(l, where, i);
        add(l, "%s.%u", where, pairs);
        add(l, "%s.%u", where, pairs + 1);
    }
    list_pair(l, "features", BLOCKS + 1);
    add(l, "classifier.1");
}

static void list_efficientnet_b0(listing *l, uint32_t depth)
{
    static const uint32_t blocks[] = {1, 2, 2, 3, 3, 4, 1};
    char where[48];
    (void)depth;
    list_pair(l, "features", 0);
    for (uint32_t stage = 1; stage <= MRI_ARRAY_COUNT(blocks); stage++)
        for (uint32_t b = 0; b < blocks[stage - 1]; b++) {
            uint32_t at = 0;
            snprintf(where, sizeof where, "features.%u.%u.block", stage, b);
            if (stage > 1) list_pair(l, where, at++);
            list_pair(l, where, at++);
            add(l, "%s.%u.fc1", where, at)->dense_as_conv = true;
            add(l, "%s.%u.fc2", where, at++)->dense_as_conv = true;
            list_pair(l, where, at);
        }
    list_pair(l, "features", MRI_ARRAY_COUNT(blocks) + 1);
    add(l, "classifier.1");
}

static const struct {
    const char *model;
    void (*list)(listing *l, uint32_t depth);
    uint32_t depth;
} models[] = {
    {"resnet18", list_resnet, 18},
    {"resnet34", list_resnet, 34},
    {"resnet50", list_resnet, 50},
    {"vgg16", list_vgg, 16},
    {"vgg19", list_vgg, 19},
    {"mobilenet-v2", list_mobilenet_v2, 0},
    {"efficientnet-b0", list_efficientnet_b0, 0},
};

bool mri_weights_has_torchvision(const char *model)
{
    for (size_t i = 0; i < MRI_ARRAY_COUNT(models); i++)
        if (strcmp(models[i].model, model) == 0) return true;
    return false;
}

const char *mri_weights_torchvision_models(char *buf, size_t buf_bytes)
{
    size_t at = 0;
    buf[0] = '\0';
    for (size_t i = 0; i < MRI_ARRAY_COUNT(models) && at < buf_bytes; i++)
        at += (size_t)snprintf(buf + at, buf_bytes - at, "%s%s", i ? ", " : "", models[i].model);
    return buf;
}

mri_torch_module *mri_torch_modules(const char *model, uint32_t *count, bool *failed)
{
    listing l = {0};
    *count = 0, *failed = false;
    for (size_t i = 0; i < MRI_ARRAY_COUNT(models); i++)
        if (strcmp(models[i].model, model) == 0) models[i].list(&l, models[i].depth);
    *failed = l.failed;
    if (l.failed) {
        free(l.module);
        return NULL;
    }
    *count = l.count;
    return l.module;
}
