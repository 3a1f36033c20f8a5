/* Weights in files: names and shapes are torchvision's, all of them and no others (torchvision.txt); layouts
 * are permuted between NHWC and NCHW, there and back; networks that torchvision lacks are refused. */
#include <stdio.h>

#include "mrt.h"
#include "train/state/weights.h"

enum { TENSORS_MOST = 512 };

typedef struct tensor_list {
    mri_tensor_desc d[TENSORS_MOST];
    uint32_t count;
} tensor_list;

static void add(tensor_list *l, const mri_layer *layer, const char *parameter, mri_role role, uint32_t ndim,
                const uint64_t *dim)
{
    MRT_TRUE(l->count < TENSORS_MOST);
    mri_tensor_desc *d = &l->d[l->count++];
    *d = (mri_tensor_desc){.role = role, .ndim = ndim, .count = 1};
    snprintf(d->name, sizeof d->name, "%u/%s/%s", layer->number, mri_layer_name(layer), parameter);
    for (uint32_t i = 0; i < ndim; i++) d->dim[i] = dim[i], d->count *= dim[i];
}

/* The tensors as a trainer would list them, without one. */
static void list_tensors(const mr_net *net, tensor_list *l)
{
    l->count = 0;
    for (uint32_t i = 0; i < net->layer_count; i++) {
        const mri_layer *layer = &net->layers[i];
        uint32_t h, w, c;
        if (layer->params == 0) continue;
        MRT_TRUE(mr_net_shape(net, layer->in, &h, &w, &c));
        const mr_conv2d_desc *conv = &layer->op.conv2d;
        const uint64_t dense[] = {layer->out_c, (uint64_t)h * w * c}, each[] = {c};
        if (layer->op.kind == MR_OP_CONV2D) {
            const uint64_t filter[] = {conv->filters, conv->window.kernel_h, conv->window.kernel_w,
                                       c / conv->groups};
            add(l, layer, "weights", MRI_ROLE_WEIGHTS, 4, filter);
            if (!conv->no_bias) add(l, layer, "bias", MRI_ROLE_WEIGHTS, 1, filter);
        } else if (layer->op.kind == MR_OP_DENSE) {
            add(l, layer, "weights", MRI_ROLE_WEIGHTS, 2, dense);
            add(l, layer, "bias", MRI_ROLE_WEIGHTS, 1, dense);
        } else {
            MRT_EQ(layer->op.kind, MR_OP_BATCHNORM);
            add(l, layer, "scale", MRI_ROLE_WEIGHTS, 1, each);
            add(l, layer, "shift", MRI_ROLE_WEIGHTS, 1, each);
            add(l, layer, "mean", MRI_ROLE_STATE, 1, each);
            add(l, layer, "variance", MRI_ROLE_STATE, 1, each);
        }
    }
}

static mr_net *build(const char *model, uint32_t side, uint32_t classes)
{
    mr_error err = MR_ERROR_INIT;
    mr_net *net;
    MRT_OK(mr_model_build(mr_model_find(model), side, side, 3, classes, &net, &err), &err);
    return net;
}

static uint32_t find(const mri_weight_place *p, uint32_t count, const char *name)
{
    for (uint32_t i = 0; i < count; i++)
        if (strcmp(p[i].name, name) == 0) return i;
    return UINT32_MAX;
}

/* Every line of theirs is one of ours, of that shape, and there are no more of ours. */
static void names_are_torchvisions(void **state)
{
    (void)state;
    static tensor_list l;
    static mri_weight_place p[TENSORS_MOST];
    char line[256], model[32], name[128], shape[64], now[32] = "";
    const char *root = getenv("MRT_SOURCE_DIR");
    uint32_t taken = 0, models = 0;
    char path[4096];
    snprintf(path, sizeof path, "%s/tests/train/state/torchvision.txt", root ? root : ".");
    FILE *f = fopen(path, "r");
    MRT_TRUE(f != NULL);
    while (fgets(line, sizeof line, f)) {
        mr_error err = MR_ERROR_INIT;
        if (line[0] == '#') continue;
        MRT_EQ(sscanf(line, "%31s %127s %63s", model, name, shape), 3);
        if (strcmp(model, now) != 0) {
            MRT_EQ(taken, l.count); /* of the one before */
            mr_net *net = build(model, 224, 1000);
            list_tensors(net, &l);
            MRT_OK(mri_weights_torchvision(net, l.d, l.count, p, &err), &err);
            mr_net_destroy(net);
            snprintf(now, sizeof now, "%s", model);
            taken = 0, models++;
        }
        const uint32_t at = find(p, l.count, name);
        if (at == UINT32_MAX) fail_msg("%s: no %s", model, name);
        char own[64] = "";
        size_t n = 0;
        for (uint32_t i = 0; i < p[at].ndim; i++)
            n += (size_t)snprintf(own + n, sizeof own - n, i ? "x%llu" : "%llu",
                                  (unsigned long long)p[at].dim[i]);
        if (strcmp(own, shape) != 0) fail_msg("%s: %s is %s, expected %s", model, name, own, shape);
        taken++;
    }
    fclose(f);
    MRT_EQ(taken, l.count);
    MRT_EQ(models, 7);
}

/* Element by element, from the definition of both layouts. */
static void layouts(void **state)
{
    (void)state;
    enum { ROWS = 3, H = 2, W = 5, C = 4, ALL = ROWS * H * W * C };
    const mri_weight_place p = {.rows = ROWS, .pixels = H * W, .channels = C};
    float own[ALL], file[ALL], back[ALL];
    MRT_TRUE(mri_weight_is_moved(&p));
    for (int i = 0; i < ALL; i++) own[i] = (float)i;
    mri_weight_to_file(&p, own, file);
    for (int r = 0; r < ROWS; r++)
        for (int y = 0; y < H; y++)
            for (int x = 0; x < W; x++)
                for (int c = 0; c < C; c++)
                    MRT_TRUE(file[((r * C + c) * H + y) * W + x] == own[((r * H + y) * W + x) * C + c]);
    mri_weight_from_file(&p, file, back);
    MRT_TRUE(memcmp(own, back, sizeof own) == 0);
}

/* VGG's first dense layer takes 7 x 7 pixels of 512 channels; a filter's window is moved, a bias is not. */
static void what_is_moved(void **state)
{
    (void)state;
    static tensor_list l;
    static mri_weight_place p[TENSORS_MOST];
    mr_error err = MR_ERROR_INIT;
    mr_net *net = build("vgg16", 224, 10);
    list_tensors(net, &l);
    MRT_OK(mri_weights_torchvision(net, l.d, l.count, p, &err), &err);
    const mri_weight_place *first = &p[find(p, l.count, "classifier.0.weight")];
    MRT_TRUE(first->rows == 4096 && first->pixels == 49 && first->channels == 512);
    MRT_TRUE(!mri_weight_is_moved(&p[find(p, l.count, "classifier.3.weight")]));
    MRT_TRUE(!mri_weight_is_moved(&p[find(p, l.count, "features.0.bias")]));
    const mri_weight_place *filter = &p[find(p, l.count, "features.0.weight")];
    MRT_TRUE(filter->rows == 64 && filter->pixels == 9 && filter->channels == 3);
    mr_net_destroy(net);
    net = build("vgg16", 64, 10);
    list_tensors(net, &l);
    MRT_EQ(mri_weights_torchvision(net, l.d, l.count, p, &err), MR_EUNSUPPORTED);
    MRT_HAS(err.text, "2 x 2 pixels");
    mr_net_destroy(net);
}

static void others_are_refused(void **state)
{
    (void)state;
    static tensor_list l;
    static mri_weight_place p[TENSORS_MOST];
    mr_error err = MR_ERROR_INIT;
    mr_net *net = build("cifar-resnet20", 32, 10);
    list_tensors(net, &l);
    MRT_EQ(mri_weights_torchvision(net, l.d, l.count, p, &err), MR_EUNSUPPORTED);
    MRT_HAS(err.text, "resnet18, ");
    MRT_HAS(err.text, "not of cifar-resnet20");
    mri_weights_own(l.d, l.count, p);
    MRT_STR(p[0].name, l.d[0].name);
    mr_net_destroy(net);
    net = build("resnet18", 32, 10); /* another network under the name */
    list_tensors(net, &l);
    MRT_EQ(mri_weights_torchvision(net, l.d, l.count - 2, p, &err), MR_EUNSUPPORTED);
    MRT_HAS(err.text, "layers with weights");
    mr_net_destroy(net);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(names_are_torchvisions),
        cmocka_unit_test(layouts),
        cmocka_unit_test(what_is_moved),
        cmocka_unit_test(others_are_refused),
    };
    return mrt_run(tests);
}
