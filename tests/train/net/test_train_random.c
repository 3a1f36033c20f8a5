/* Random networks, drawn with the public builder: under the planner's memory plan they must compute the same
 * as with separate memory for everything, and their gradients must be the slopes of the loss. A failure names
 * the seed and the network. */
#include <math.h>

#include "tests/train/rig.h"

enum { NETWORKS = 60, SIDE = MRT_SIDE, SAMPLES = 12 };
enum { TRAINED = MRT_SANITIZED ? 20 : NETWORKS }; /* the numbers do not change under a sanitizer */

/* ---- drawing ---- */

static struct drawing {
    uint32_t numbers[512], used;
} draw; /* builders of rigs take no argument */
static uint64_t seed_now;
static bool named_loss; /* then the one against labels must be named, too */
static bool looked_up;  /* the field of kinds is taken */

static uint32_t below(uint32_t n) { return draw.numbers[draw.used++ % 512] % n; }

static mr_activation any_activation(void)
{
    static const mr_activation all[] = {MR_ACT_NONE, MR_ACT_NONE, MR_ACT_TANH, MR_ACT_SIGMOID,
                                        MR_ACT_SELU, MR_ACT_RELU, MR_ACT_SILU, MR_ACT_GELU};
    return all[below(8)];
}

static mr_activation some_activation(void)
{
    static const mr_activation all[] = {MR_ACT_TANH, MR_ACT_SIGMOID, MR_ACT_SELU,
                                        MR_ACT_RELU, MR_ACT_SILU,    MR_ACT_GELU};
    return all[below(6)];
}

/* Every channel times a factor made of all of them. */
static void squeeze(mr_net *net, uint32_t channels)
{
    const mr_point all = mr_net_here(net);
    if (below(2)) mr_net_global_avg_pool(net);
    else mr_net_global_max_pool(net);
    if (below(2)) mr_net_dense(net, 2, some_activation());
    mr_net_dense(net, channels, some_activation());
    const mr_point factors = mr_net_here(net);
    mr_net_from(net, all);
    mr_net_scale(net, factors);
}

/* A layer that keeps the shape. */
static void layer(mr_net *net, uint32_t channels)
{
    const mri_layer *last = net->layer_count ? &net->layers[net->layer_count - 1] : NULL;
    switch (below(15)) {
    case 0: mr_net_conv2d(net, channels, 3, 1, MR_PAD_SAME, any_activation()); break;
    case 6: squeeze(net, channels); break;
    case 11: mr_net_lrn(net, 1 + below(2), 1, 0.5f, below(2) ? 0.75f : 1.5f); break;
    case 14:
        if (below(2)) mr_net_softmax(net);
        else mr_net_log_softmax(net);
        break;
    case 7: mr_net_drop_samples(net, 0.2f); break;
    case 8:
        mr_net_conv(net, &(mr_conv){.filters = channels,
                                    .kernel = 3 + 2 * below(2),
                                    .stride = 1,
                                    .padding = MR_PAD_SAME,
                                    .activation = any_activation(),
                                    .groups = channels % 2 == 0 && below(2) ? 2 : channels});
        break;
    case 1:
        mr_net_conv(net, &(mr_conv){.filters = channels, .kernel = 1, .stride = 1, .no_bias = below(2)});
        break;
    case 2:
        mr_net_norm(net, &(mr_norm){.momentum = 0.9f,
                                    .epsilon = 1e-2f,
                                    .activation = any_activation(),
                                    .no_scale = below(3) == 0});
        break;
    case 3: mr_net_activation(net, some_activation()); break;
    case 13:
        if (below(2)) mr_net_layer_norm(net, 0.1f);
        else mr_net_group_norm(net, channels % 2 == 0 && below(2) ? 2 : 1, 0.1f);
        break;
    case 12:
        mr_net_upsample(net, 2, below(2));
        if (below(2)) mr_net_max_pool(net, 2, 2);
        else mr_net_avg_pool_padded(net, 4, 2, 1);
        break;
    case 4: mr_net_dropout(net, 0.2f); break;
    case 9:
        mr_net_conv_transposed(net, &(mr_conv){.filters = channels,
                                               .kernel = 3,
                                               .stride = 1,
                                               .padding = MR_PAD_SAME,
                                               .activation = any_activation()});
        break;
    case 10:
        if (!last || net->at != net->layer_count) { /* its shape is not at hand */
            mr_net_activation(net, some_activation());
            break;
        }
        const uint32_t h = last->out_h, w = last->out_w, c = last->out_c;
        mr_net_reshape(net, w * h, 1, c);
        if (below(2)) mr_net_activation(net, some_activation());
        mr_net_reshape(net, h, w, c);
        break;
    default: mr_net_max_pool_padded(net, 3, 1, 1); break;
    }
}

static void chain(mr_net *net, uint32_t channels, uint32_t least)
{
    for (uint32_t n = least + below(3); n > 0; n--) layer(net, channels);
}

/* Two ways from here to one sum, one of them possibly as short as can be; inside the longer one another block
 * may stand. */
static void block(mr_net *net, uint32_t channels, uint32_t depth)
{
    const mr_point in = mr_net_here(net);
    const bool straight = below(3) > 0;
    if (!straight) chain(net, channels, 1);
    const mr_point cut = mr_net_here(net);
    mr_net_from(net, in);
    chain(net, channels, 1);
    if (depth > 0 && below(2)) block(net, channels, depth - 1);
    if (below(2))
        mr_net_batch_norm(net, 0.9f, 1e-2f, MR_ACT_NONE); /* ends as blocks of residual networks do */
    mr_net_add(net, cut, any_activation());
}

static void pair(mr_net *net, mr_pair_loss kind, mr_point other, float weight)
{
    named_loss = true;
    mr_net_loss_pair(net, kind, other, weight);
}

/* Draws around what comes in, and a loss of where they come from. */
static void draws(mr_net *net, uint32_t channels)
{
    const mr_point in = mr_net_here(net);
    mr_net_conv2d(net, channels, 1, 1, MR_PAD_SAME, MR_ACT_TANH);
    const mr_point log_variance = mr_net_here(net);
    mr_net_from(net, in);
    mr_net_conv2d(net, channels, 1, 1, MR_PAD_SAME, any_activation());
    if (below(2)) pair(net, MR_PAIR_DIVERGENCE, log_variance, 0.01f);
    mr_net_sample(net, log_variance, below(2) ? 0.5f : 1);
    const mr_point drawn = mr_net_here(net);
    if (below(2)) return;
    chain(net, channels, 1);
    if (mr_net_here(net) != drawn) pair(net, MR_PAIR_SQUARES, drawn, 0.02f);
}

/* A loss against the picture itself, on the side. */
static void gives_back(mr_net *net)
{
    const mr_point in = mr_net_here(net);
    mr_net_conv_transposed(net, &(mr_conv){.filters = 1, .kernel = 3, .stride = 1, .padding = MR_PAD_SAME});
    pair(net, MR_PAIR_CROSS_ENTROPY, 0, 0.05f);
    mr_net_from(net, in);
}

/* A few ways from here, put beside each other, and as many channels as before made of them. */
static void beside(mr_net *net, uint32_t channels)
{
    mr_point ends[3];
    const mr_point in = mr_net_here(net);
    const uint32_t count = 2 + below(2);
    const bool pads = below(2);
    for (uint32_t i = 0; i < count; i++) {
        mr_net_from(net, in);
        chain(net, channels, 1);
        if (i == 0 && pads) mr_net_pad_channels(net, below(3), below(3));
        ends[i] = mr_net_here(net);
    }
    mr_net_concat(net, ends, count - 1);
    mr_net_conv(net, &(mr_conv){.filters = channels,
                                .kernel = 1,
                                .kernel_w = 1 + 2 * below(2),
                                .stride = 1,
                                .padding = MR_PAD_SAME,
                                .activation = any_activation()});
    if (below(2)) mr_net_add(net, in, any_activation()); /* one more that takes it */
}

/* A second output, compared with a field. */
static void tells_a_field(mr_net *net)
{
    const mr_point in = mr_net_here(net);
    const bool kind = !looked_up;
    mr_net_field(net, kind ? &(mr_field_input){.name = "kind", .values = MRT_KINDS}
                           : &(mr_field_input){.name = "soft", .c = MRT_SOFT, .std = 4});
    const mr_point wanted = mr_net_here(net);
    mr_net_from(net, in);
    mr_net_dense(net, kind ? MRT_KINDS : MRT_SOFT, MR_ACT_NONE);
    pair(net, kind ? MR_PAIR_CLASSES : MR_PAIR_SQUARES, wanted, 0.1f);
    mr_net_from(net, in);
}

static mr_net *random_net(void)
{
    mr_net *net;
    mrt_noise(draw.numbers, sizeof draw.numbers, seed_now);
    draw.used = 0;
    named_loss = looked_up = false;
    uint32_t channels = 3 + below(4);
    MRT_EQ(mr_net_create(&net, "random", SIDE, SIDE, 1), MR_OK);
    const bool two = below(3) == 0;
    if (two) { /* a second input, next to the picture */
        const mr_point picture = mr_net_here(net);
        mr_net_field(net, &(mr_field_input){.name = "floats", .h = SIDE, .w = SIDE});
        mr_net_concat(net, &picture, 1);
    }
    if (two || below(4) > 0) mr_net_conv2d(net, channels, 3, 1, MR_PAD_SAME, any_activation());
    else channels = 1; /* branches of the picture itself */
    for (uint32_t stage = 0; stage < 2; stage++) {
        for (uint32_t n = 1 + below(2); n > 0; n--) switch (below(4)) {
            case 0: beside(net, channels); break;
            case 1: draws(net, channels); break;
            default: block(net, channels, 2); break;
            }
        if (stage == 0 && below(3) == 0) gives_back(net);
        channels = 3 + below(4);
        mr_net_conv(
            net,
            &(mr_conv){
                .filters = channels, .kernel = 3, .stride = 2, .pad = 1, .activation = any_activation()});
    }
    if (below(2)) mr_net_global_avg_pool(net);
    else mr_net_avg_pool(net, 2, 2);
    looked_up = below(3) == 0;
    if (looked_up) { /* next to the picture's values */
        const mr_point in = mr_net_here(net);
        mr_net_field(net, &(mr_field_input){.name = "kind", .values = MRT_KINDS});
        mr_net_embedding(net, 3);
        mr_net_concat(net, &in, 1);
    }
    if (below(2)) mr_net_dense(net, 9, any_activation());
    if (below(2)) mr_net_dropout(net, 0.3f);
    if (below(2)) tells_a_field(net);
    mr_net_dense(net, MRT_CLASSES, MR_ACT_NONE);
    if (named_loss || below(3) == 0) mr_net_loss_labels(net, below(2) ? 1 : 0.5f);
    return net;
}

/* The same, as it comes back from the bytes that a checkpoint keeps. */
static mr_net *random_net_again(void)
{
    mr_error err = MR_ERROR_INIT;
    mr_net *net = random_net(), *again;
    void *bytes;
    size_t count;
    MRT_OK(mr_net_encode(net, &bytes, &count, &err), &err);
    MRT_OK(mr_net_decode(&again, mr_net_name(net), bytes, count, &err), &err);
    free(bytes);
    mr_net_destroy(net);
    return again;
}

MR_PRINTF(1, 2) static void fail_with_net(const char *format, ...)
{
    char text[256];
    va_list args;
    mr_net *net = random_net();
    mr_layer_row row;
    va_start(args, format);
    vsnprintf(text, sizeof text, format, args);
    va_end(args);
    for (uint32_t i = 0; mr_net_layer(net, i, &row); i++) printf("  %u %s: %s\n", i, row.name, row.output);
    mr_net_destroy(net);
    fail_msg("network %d: %s", (int)seed_now, text);
}

/* ---- computing ---- */

/* One training step that moves nothing (the rate is next to zero); its loss. Gradients are left in the
 * replica. */
static double step(const mrt_rig *rig, const mrt_batch *b)
{
    mr_error err = MR_ERROR_INIT;
    mr_metrics sums;
    MRT_OK(mr_trainer_step(rig->t, &b->b, &err), &err);
    MRT_OK(mr_trainer_metrics(rig->t, &sums, NULL, &err), &err);
    return sums.loss_sum / (double)sums.count;
}

static float *copy_of(const float *from, uint64_t count)
{
    float *copy = malloc(count * sizeof *copy);
    assert_non_null(copy);
    return memcpy(copy, from, count * sizeof *copy); /* the processor's device memory is its own */
}

/* Biases that begin at zero put whole planes on the kinks of relu and selu: every parameter is moved a
 * little. */
static void stir(const mrt_rig *rig)
{
    mr_error err = MR_ERROR_INIT;
    float *host = malloc(rig->t->tensors.most_floats * sizeof *host);
    uint16_t *noise = malloc(rig->t->tensors.most_floats * sizeof *noise);
    for (uint32_t i = 0; i < rig->t->tensors.count; i++) {
        const mri_replica *r = &rig->t->team.replicas[0];
        const mri_tensor_place *p = &rig->t->tensors.place[i];
        if (rig->t->tensors.desc[i].role != MRI_ROLE_WEIGHTS) continue;
        MRT_OK(mri_tensor_export(&rig->t->tensors, &rig->t->team.replicas[0], i, false, host, &err), &err);
        mrt_noise(noise, rig->t->tensors.desc[i].count * sizeof *noise, i + 1);
        for (uint64_t k = 0; k < rig->t->tensors.desc[i].count; k++)
            host[k] += 0.3f * ((float)noise[k] / 65536 - 0.5f);
        MRT_OK(mr_op_param_import(r->nodes.node[p->node].op, false, p->which, r->memory.weights + p->at, host,
                                  &err),
               &err);
    }
    free(host);
    free(noise);
}

static void open_random(mrt_rig *rig, mrt_batch *b, uint64_t seed, bool reference)
{
    seed_now = seed;
    mrt_rig_open(rig, &(mrt_rig_options){.net = seed % 2 ? random_net : random_net_again,
                                         .seed = seed,
                                         .lr = 1e-30f,
                                         .reference = reference});
    stir(rig);
    mrt_batch_make(b, rig, 2, 50, SAMPLES, NULL, 0);
}

static void give_everything_its_place(mri_replica *r, char **arena)
{
    mr_error err = MR_ERROR_INIT;
    size_t at = 0;
    void *apart;
    for (uint32_t i = 0; i < r->plan.span_count; i++) {
        r->plan.spans[i].at = at;
        at += (size_t)mri_align_up(r->plan.spans[i].bytes, MR_DEVICE_ALIGN);
    }
    MRT_OK(mr_device_alloc(r->dev, at, &apart, &err), &err);
    memset(apart, 0xff, at); /* not a number, everywhere */
    *arena = r->memory.arena;
    r->memory.arena = apart;
}

static void test_places_change_no_bit(void **state)
{
    (void)state;
    for (uint64_t seed = 1; seed <= TRAINED; seed++)
        for (int reference = 0; reference < 2; reference++) {
            mrt_rig rig;
            mrt_batch b;
            char *arena;
            open_random(&rig, &b, seed, reference);
            mri_replica *r = &rig.t->team.replicas[0];
            memset(r->memory.arena, 0xff, r->plan.arena_bytes);
            const double loss = step(&rig, &b);
            float *grads = copy_of(r->memory.grads, r->plan.weight_floats);
            give_everything_its_place(r, &arena);
            const double apart = step(&rig, &b);
            if (!isfinite(loss) || loss != apart ||
                memcmp(grads, r->memory.grads, r->plan.weight_floats * sizeof *grads) != 0)
                fail_with_net("loss %.9g, with everything apart %.9g, or gradients differ", loss, apart);
            mr_device_free(r->dev, r->memory.arena);
            r->memory.arena = arena;
            free(grads);
            mrt_batch_free(&b, &rig);
            mrt_rig_close(&rig);
        }
}

/* Along the gradient g the loss climbs with slope |g|. The step is shortened until the network's kinks (relu,
 * the largest of a window) are out of reach or the loss has no digits left: 2 % at one of the lengths is
 * enough, a gradient that is wrong is so at all. */
static void test_gradients_are_slopes(void **state)
{
    (void)state;
    static const double lengths[] = {3e-2, 1e-2, 3e-3, 1e-3, 3e-4, 1e-4, 3e-5};
    enum { LENGTHS = sizeof lengths / sizeof lengths[0] };
    for (uint64_t seed = 1; seed <= TRAINED; seed++) {
        mrt_rig rig;
        mrt_batch b;
        double square = 0, slope = 0, best = INFINITY;
        open_random(&rig, &b, seed, false);
        mri_replica *r = &rig.t->team.replicas[0];
        step(&rig, &b);
        float *g = copy_of(r->memory.grads, r->plan.weight_floats),
              *w = copy_of(r->memory.weights, r->plan.weight_floats);
        for (uint64_t i = 0; i < r->plan.weight_floats; i++) square += (double)g[i] * (double)g[i];
        const double norm = sqrt(square);
        for (size_t k = 0; k < LENGTHS && best > 0.02; k++) {
            double side[2];
            for (int s = 0; s < 2; s++) {
                for (uint64_t i = 0; i < r->plan.weight_floats; i++)
                    r->memory.weights[i] =
                        (float)((double)w[i] + (s ? lengths[k] : -lengths[k]) * (double)g[i] / norm);
                side[s] = step(&rig, &b);
            }
            slope = (side[1] - side[0]) / (2 * lengths[k]);
            best = fmin(best, fabs(slope / norm - 1));
        }
        if (!(norm > 0) || !(best <= 0.02)) fail_with_net("gradient %g, slope %g", norm, slope);
        free(g);
        free(w);
        mrt_batch_free(&b, &rig);
        mrt_rig_close(&rig);
    }
}

/* Else the other two would show little. */
static void test_every_kind_is_drawn(void **state)
{
    (void)state;
    uint32_t kinds[MR_OP_KIND_COUNT] = {0}, branched = 0, inplace = 0, residual = 0, forks = 0;
    for (uint64_t seed = 1; seed <= NETWORKS; seed++) {
        mrt_rig rig;
        mrt_batch b;
        open_random(&rig, &b, seed, false);
        const mri_replica *r = &rig.t->team.replicas[0];
        for (uint32_t i = 0; i < r->nodes.count; i++) {
            const mri_node *n = &r->nodes.node[i];
            kinds[n->kind]++;
            branched += n->consumers > 1;
            forks += n->fork;
            MRT_TRUE(n->consumers <= 2); /* no op has room for a third gradient */
            inplace += n->inplace;
            residual += n->kind == MR_OP_BATCHNORM && n->in2 != MRI_NONE;
            const bool entry = n->kind == MR_OP_INPUT || mri_is_input(n->kind) || n->kind == MR_OP_EMBEDDING;
            MRT_TRUE(entry ? n->in == MRI_NONE : n->in < i && (n->in2 == MRI_NONE || n->in2 < i));
        }
        mrt_batch_free(&b, &rig);
        mrt_rig_close(&rig);
    }
    for (uint32_t k = 0; k < MR_OP_KIND_COUNT; k++)
        if (k != MR_OP_GRU && k != MR_OP_LSTM) /* not of pictures */
            MRT_TRUE(kinds[k] > 5);
    MRT_TRUE(branched > 50 && inplace > 20 && residual > 10 && forks > 10);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_every_kind_is_drawn),
        cmocka_unit_test(test_places_change_no_bit),
        cmocka_unit_test(test_gradients_are_slopes),
    };
    return mrt_run(tests);
}
