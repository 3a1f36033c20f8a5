/* kernels: the loss against its formula in double: values, gradients and metrics, with second labels, weights
 * of classes and smoothing; two classes in one logit; labels and settings that are refused. */
#include "tests/kernels/rig.h"

static void check_loss(mr_loss_desc settings, bool training, bool mixes)
{
    enum { N = 6, C = 7 };
    const double factor = settings.factor > 0 ? (double)settings.factor : 1,
                 smoothing = training ? (double)settings.smoothing : 0;
    struct rig r;
    mr_error err = MR_ERROR_INIT;
    mr_op *op;
    rig_open(&r, "cpu", false);
    mr_op_desc d = {.kind = MR_OP_LOSS,
                    .in = rig_tensor(1, 1, C, 0),
                    .max_batch = N,
                    .training = true,
                    .need_dx = true,
                    .loss = settings};
    MRT_OK(mr_op_create(&op, r.dev, &d, &err), &err);
    float *x = rig_memory(&r, N * C * 4), *dx = rig_memory(&r, N * C * 4), *y = rig_memory(&r, N * C * 4);
    int32_t *labels = rig_memory(&r, N * 4);
    mr_metrics *metrics = rig_memory(&r, sizeof *metrics);
    rig_noise(x, N * C, 1);
    for (int i = 0; i < C; i++) x[C + i] = 3; /* sample 1: all equal, the first wins */
    x[2 * C] = 1e30f, x[3 * C + 2] = -1e30f;  /* samples 2, 3: out of exp's range */
    const int32_t given[N] = {4, 2, 0, 1, -1, 6};
    memcpy(labels, given, sizeof given);
    static const int32_t second[N] = {1, 0, -7, 1, 2, 3};
    static const float share[N] = {0.25f, 0.75f, 0, 0.5f, 0.5f, 1};
    int32_t *labels2 = rig_memory(&r, sizeof second);
    float *share2 = rig_memory(&r, sizeof share);
    memcpy(labels2, second, sizeof second);
    memcpy(share2, share, sizeof share);
    static const float given_weights[C] = {0.5f, 2, 0, 1, 3, 0.25f, 1.5f};
    float *weights = rig_memory(&r, sizeof given_weights);
    memcpy(weights, given_weights, sizeof given_weights);
    const bool weighs = settings.class_weights && training;
    const mr_step_values values = {.scale = 0.2f};
    const mr_op_args a = {.n = N,
                          .class_weights = settings.class_weights ? weights : NULL,
                          .labels2 = mixes ? labels2 : NULL,
                          .share2 = mixes ? share2 : NULL,
                          .x = x,
                          .y = y,
                          .dx = dx,
                          .labels = labels,
                          .values = &values,
                          .metrics = metrics,
                          .training = training,
                          .scratch = rig_memory(&r, mr_op_info_of(op)->scratch_bytes)};
    MRT_OK(mr_op_forward_async(op, r.s, &a), NULL);
    MRT_OK(mr_op_forward_async(op, r.s, &a), NULL); /* adds to the metrics */
    MRT_OK(mr_op_backward_async(op, r.s, &a), NULL);
    MRT_OK(mr_stream_sync(r.s, &err), &err);
    double loss = 0;
    uint64_t correct = 0;
    for (int i = 0; i < N; i++) {
        double top = (double)x[i * C], sum = 0;
        int best = 0;
        for (int c = 1; c < C; c++)
            if ((double)x[i * C + c] > top) top = (double)x[i * C + c], best = c;
        for (int c = 0; c < C; c++) sum += exp(factor * ((double)x[i * C + c] - top));
        double ends = 0, all = 0; /* all: sum of the target over the classes, with their weights */
        const double part = mixes ? (double)share[i] : 0;
        for (int c = 0; c < C; c++)
            all += (weighs ? (double)weights[c] : 1) *
                   ((1 - smoothing) * ((c == given[i] ? 1 - part : 0) + (c == second[i] ? part : 0)) +
                    smoothing / C);
        for (int c = 0; c < C; c++) {
            const double z = factor * ((double)x[i * C + c] - top), p = exp(z) / sum,
                         both = (c == given[i] ? 1 - part : 0) + (c == second[i] ? part : 0),
                         wanted =
                             (weighs ? (double)weights[c] : 1) * ((1 - smoothing) * both + smoothing / C),
                         g = given[i] < 0 ? 0 : 0.2 * factor * (all * p - wanted);
            MRT_TRUE(fabs((double)dx[i * C + c] - g) < 1e-6);
            MRT_TRUE(fabs((double)y[i * C + c] - p) < 1e-6);
            if (wanted > 0) ends -= wanted * (z - log(sum));
        }
        if (given[i] < 0) continue;
        loss += ends;
        correct += best == (part > 0.5 ? second[i] : given[i]);
    }
    MRT_EQ(metrics->count, 2 * (N - 1));
    MRT_EQ(metrics->correct, 2 * correct);
    MRT_TRUE(fabs(metrics->loss_sum - 2 * loss) < 1e-5 + 1e-7 * loss);

    float plain[N * C]; /* a scaled loss: its gradient, to the bit */
    memcpy(plain, dx, sizeof plain);
    const mr_loss_scale scale = {.scale = 4096};
    mr_op_args scaled = a;
    scaled.loss_scale = &scale;
    MRT_OK(mr_op_backward_async(op, r.s, &scaled), NULL);
    MRT_OK(mr_stream_sync(r.s, &err), &err);
    for (int i = 0; i < N * C; i++) MRT_TRUE(dx[i] == 4096 * plain[i]);

    labels[5] = C; /* out of range: counted, or an error of the stream in training */
    const mr_metrics before = *metrics;
    mr_op_args passes = a;
    passes.training = false;
    MRT_OK(mr_op_forward_async(op, r.s, &passes), NULL);
    MRT_OK(mr_stream_sync(r.s, &err), &err);
    MRT_TRUE(metrics->bad == 1 && metrics->count == before.count + N - 2);
    *metrics = before;
    passes.training = true;
    MRT_OK(mr_op_forward_async(op, r.s, &passes), NULL);
    MRT_EQ(mr_stream_sync(r.s, &err), MR_EINVAL);
    MRT_HAS(err.text, "sample 5 of the batch has label 7, the network has 7 classes");
    MRT_EQ(metrics->bad, 0); /* the error says it */
    mr_op_destroy(op);
    rig_close(&r);
}

static void loss_is_right(void **state)
{
    (void)state;
    static const mr_loss_desc settings[] = {{0},
                                            {.factor = 0.125f},
                                            {.smoothing = 0.2f},
                                            {.factor = 2.5f, .smoothing = 0.3f},
                                            {.class_weights = true},
                                            {.factor = 0.5f, .smoothing = 0.3f, .class_weights = true}};
    for (size_t k = 0; k < MRI_ARRAY_COUNT(settings); k++)
        for (int form = 0; form < 4; form++) check_loss(settings[k], form % 2, form / 2);
}

enum { LOGITS = 8 }; /* samples of the next test */

struct reported {
    float y[LOGITS], dx[LOGITS]; /* of class 1 */
    mr_metrics metrics;
};

/* With `logits` logits, 1 or 2; the last one is class 1's and the other is 0. */
static struct reported told_by(uint32_t logits, mr_loss_desc settings, bool reference, bool mixes)
{
    static const int32_t second[LOGITS] = {0, 1, 1, -3, 1, 0, 0, 1};
    static const float share[LOGITS] = {0.25f, 0.5f, 0.75f, 0, 0.5f, 0.5f, 0, 0.5f};
    static const float x[LOGITS] = {0.3f, -2, 0, 0, 90, -90, 1e30f, 5};
    static const int32_t given[LOGITS] = {1, 0, 0, 1, 0, 0, 1, -1};
    struct reported out;
    struct rig r;
    mr_error err = MR_ERROR_INIT;
    mr_op *op;
    rig_open(&r, "cpu", reference);
    const mr_op_desc d = {.kind = MR_OP_LOSS,
                          .in = rig_tensor(1, 1, logits, 0),
                          .max_batch = LOGITS,
                          .training = true,
                          .need_dx = true,
                          .loss = settings};
    MRT_OK(mr_op_create(&op, r.dev, &d, &err), &err);
    const size_t bytes = d.in.sample_bytes * LOGITS;
    float *in = rig_memory(&r, bytes), *dx = rig_memory(&r, bytes), *y = rig_memory(&r, bytes);
    int32_t *labels = rig_memory(&r, sizeof given);
    int32_t *labels2 = rig_memory(&r, sizeof second);
    float *share2 = rig_memory(&r, sizeof share);
    memcpy(labels2, second, sizeof second);
    memcpy(share2, share, sizeof share);
    mr_metrics *metrics = rig_memory(&r, sizeof *metrics);
    memcpy(labels, given, sizeof given);
    for (uint32_t i = 0; i < LOGITS; i++) in[i * logits + logits - 1] = x[i];
    float *weights = rig_memory(&r, 2 * sizeof *weights);
    weights[0] = 0.5f, weights[1] = 2;
    const mr_step_values values = {.scale = 0.2f};
    const mr_op_args a = {.n = LOGITS,
                          .labels2 = mixes ? labels2 : NULL,
                          .share2 = mixes ? share2 : NULL,
                          .class_weights = weights,
                          .x = in,
                          .y = y,
                          .dx = dx,
                          .labels = labels,
                          .values = &values,
                          .metrics = metrics,
                          .training = true,
                          .scratch = rig_memory(&r, mr_op_info_of(op)->scratch_bytes)};
    MRT_OK(mr_op_forward_async(op, r.s, &a), NULL);
    MRT_OK(mr_op_backward_async(op, r.s, &a), NULL);
    MRT_OK(mr_stream_sync(r.s, &err), &err);
    for (uint32_t i = 0; i < LOGITS; i++)
        out.y[i] = y[i * logits + logits - 1], out.dx[i] = dx[i * logits + logits - 1];
    out.metrics = *metrics;
    labels[2] = 2;
    MRT_OK(mr_op_forward_async(op, r.s, &a), NULL);
    MRT_EQ(mr_stream_sync(r.s, &err), MR_EINVAL);
    MRT_HAS(err.text, "label 2, the network has 2 classes");
    mr_op_destroy(op);
    rig_close(&r);
    return out;
}

/* One logit x gives the result of the two logits 0 and x, and its gradient is the second one's. */
static void one_logit_tells_two_classes(void **state)
{
    (void)state;
    static const mr_loss_desc settings[] = {{0},
                                            {.factor = 0.5f, .weight = 3},
                                            {.smoothing = 0.2f},
                                            {.silent = true},
                                            {.factor = 0.5f, .smoothing = 0.2f, .class_weights = true}};
    for (size_t k = 0; k < 4 * MRI_ARRAY_COUNT(settings); k++) {
        const mr_loss_desc how = settings[k / 4];
        const bool mixes = k / 2 % 2;
        const struct reported one = told_by(1, how, k % 2, mixes), two = told_by(2, how, k % 2, mixes);
        const mr_metrics *a = &one.metrics, *b = &two.metrics;
        MRT_EQ(a->count, how.silent ? 0 : LOGITS - 1);
        MRT_TRUE(a->count == b->count && a->correct == b->correct);
        MRT_EQ(a->correct, how.silent ? 0 : mixes ? 4 : 5);
        MRT_TRUE(b->loss_sum > (mixes ? 40 : 90) && fabs(a->loss_sum - b->loss_sum) <= 1e-6 * b->loss_sum);
        for (int i = 0; i < LOGITS; i++)
            MRT_TRUE(fabsf(one.y[i] - two.y[i]) <= 1e-7f && fabsf(one.dx[i] - two.dx[i]) <= 1e-7f);
    }
}

/* Invalid labels and weights; samples that do not count are not checked. */
static void wrong_second_labels_are_refused(void **state)
{
    (void)state;
    static const struct {
        int32_t label;
        float share;
        const char *what;
    } wrong[] = {{3, 0.5f, "has label 3, the network has 3 classes"},
                 {-1, 0.5f, "has label -1, the network has 3 classes"},
                 {1, 1.5f, "1.5 of a second label, expected 0 to 1"},
                 {1, -0.5f, "-0.5 of a second label"},
                 {1, NAN, "nan of a second label"}};
    const mr_op_desc d = {.kind = MR_OP_LOSS, .in = rig_tensor(1, 1, 3, 0), .max_batch = 2, .training = true};
    for (size_t k = 0; k < 2 * MRI_ARRAY_COUNT(wrong); k++) {
        struct rig r;
        mr_error err = MR_ERROR_INIT;
        mr_op *op;
        rig_open(&r, "cpu", false);
        MRT_OK(mr_op_create(&op, r.dev, &d, &err), &err);
        int32_t *labels = rig_memory(&r, 2 * sizeof *labels);
        int32_t *labels2 = rig_memory(&r, 2 * sizeof *labels2);
        float *share2 = rig_memory(&r, 2 * sizeof *share2);
        labels[1] = k % 2 ? -1 : 2;
        labels2[1] = wrong[k / 2].label;
        share2[1] = wrong[k / 2].share;
        const mr_op_args a = {.n = 2,
                              .x = rig_memory(&r, 2 * d.in.sample_bytes),
                              .labels = labels,
                              .labels2 = labels2,
                              .share2 = share2,
                              .training = true,
                              .metrics = rig_memory(&r, sizeof(mr_metrics)),
                              .scratch = rig_memory(&r, mr_op_info_of(op)->scratch_bytes)};
        MRT_OK(mr_op_forward_async(op, r.s, &a), NULL);
        MRT_EQ(mr_stream_sync(r.s, &err), k % 2 ? MR_OK : MR_EINVAL);
        if (k % 2 == 0) MRT_HAS(err.text, wrong[k / 2].what);
        mr_op_destroy(op);
        rig_close(&r);
    }
}

/* Evaluation asks for no weights, and counts all classes alike; training without them is refused. */
static void classes_weigh_in_training_alone(void **state)
{
    (void)state;
    static const float logits[] = {1, 2, 0};
    struct rig r;
    mr_error err = MR_ERROR_INIT;
    mr_op *op;
    rig_open(&r, "cpu", false);
    const mr_op_desc d = {.kind = MR_OP_LOSS,
                          .in = rig_tensor(1, 1, 3, 0),
                          .max_batch = 1,
                          .training = true,
                          .loss.class_weights = true};
    MRT_OK(mr_op_create(&op, r.dev, &d, &err), &err);
    float *x = rig_memory(&r, sizeof logits), *weights = rig_memory(&r, 3 * sizeof *weights);
    int32_t *labels = rig_memory(&r, sizeof *labels);
    memcpy(x, logits, sizeof logits);
    weights[0] = 4;
    mr_op_args a = {.n = 1, .x = x, .labels = labels};
    a.metrics = rig_memory(&r, sizeof *a.metrics);
    a.scratch = rig_memory(&r, mr_op_info_of(op)->scratch_bytes);
    MRT_OK(mr_op_forward_async(op, r.s, &a), NULL);
    MRT_OK(mr_stream_sync(r.s, &err), &err);
    const double alike = a.metrics->loss_sum;
    a.training = true;
    MRT_EQ(mr_op_forward_async(op, r.s, &a), MR_EINVAL);
    a.class_weights = weights;
    MRT_OK(mr_op_forward_async(op, r.s, &a), NULL);
    MRT_OK(mr_stream_sync(r.s, &err), &err);
    MRT_TRUE(alike > 1.4 && fabs(a.metrics->loss_sum - 5 * alike) < 1e-12);
    mr_op_destroy(op);
    rig_close(&r);
}

static void wrong_losses_are_refused(void **state)
{
    (void)state;
    static const mr_loss_desc wrong[] = {{.factor = -1},   {.factor = NAN},      {.factor = INFINITY},
                                         {.smoothing = 1}, {.smoothing = -0.1f}, {.smoothing = NAN}};
    struct rig r;
    mr_error err = MR_ERROR_INIT;
    mr_op *op;
    rig_open(&r, "cpu", false);
    for (size_t k = 0; k < MRI_ARRAY_COUNT(wrong); k++) {
        const mr_op_desc d = {
            .kind = MR_OP_LOSS, .in = rig_tensor(1, 1, 3, 0), .max_batch = 2, .loss = wrong[k]};
        MRT_EQ(mr_op_create(&op, r.dev, &d, &err), MR_EINVAL);
        MRT_HAS(err.text, k < 3 ? "loss: factor" : "loss: smoothing");
    }
    rig_close(&r);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(loss_is_right),
        cmocka_unit_test(one_logit_tells_two_classes),
        cmocka_unit_test(wrong_second_labels_are_refused),
        cmocka_unit_test(classes_weigh_in_training_alone),
        cmocka_unit_test(wrong_losses_are_refused),
    };
    return mrt_run(tests);
}
