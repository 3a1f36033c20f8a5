/* kernels/cuda/kernels/args.h: what each of our kernels takes: its number, its name, its one struct of
 * arguments.
 *
 * The room of device code takes one struct of arguments for each launch and writes its results to device
 * memory. It is compiled for GPUs and carried as data; cuda/host/ loads it, cuda/ops/ launches it by number.
 *
 * Read by the C that launches, by the device code, and by the emulation that runs the device code on the
 * processor. A kernel mrk_NAME takes `struct mrk_NAME_args` by value and nothing else, so launching needs no
 * more than an address and a size. Addresses are device memory; counts are elements; dtype is MR_TENSOR_...
 *
 * vectors: 1 when every tensor of the call may be read and written 16 bytes at a time (a "pack": 4 f32, 8
 * bf16 or f16), which the launching side decides from addresses and channel counts (grid.h); 0: one value at
 * a time. */
#ifndef MRK_ARGS_H
#define MRK_ARGS_H

#include "millrace/kernels.h"

/* X(name): kernel mrk_name, struct mrk_name_args, number MRK_name */
#define MRK_KERNELS(X)                                                                                       \
    X(cast)                                                                                                  \
    X(accumulate)                                                                                            \
    X(activate)                                                                                              \
    X(activate_backward)                                                                                     \
    X(smooth)                                                                                                \
    X(smooth_backward)                                                                                       \
    X(bias_activate)                                                                                         \
    X(bias_backward)                                                                                         \
    X(bias_finish)                                                                                           \
    X(channels)                                                                                              \
    X(scale)                                                                                                 \
    X(scale_backward)                                                                                        \
    X(lrn)                                                                                                   \
    X(lrn_backward)                                                                                          \
    X(softmax)                                                                                               \
    X(softmax_backward)                                                                                      \
    X(input)                                                                                                 \
    X(one_hot)                                                                                               \
    X(field)                                                                                                 \
    X(groupnorm)                                                                                             \
    X(groupnorm_backward)                                                                                    \
    X(groupnorm_params)                                                                                      \
    X(upsample)                                                                                              \
    X(upsample_backward)                                                                                     \
    X(embedding)                                                                                             \
    X(embedding_backward)                                                                                    \
    X(max_pool)                                                                                              \
    X(max_pool_backward)                                                                                     \
    X(average_pool)                                                                                          \
    X(average_pool_backward)                                                                                 \
    X(batchnorm_statistics)                                                                                  \
    X(batchnorm_finish)                                                                                      \
    X(batchnorm_running)                                                                                     \
    X(batchnorm_apply)                                                                                       \
    X(batchnorm_sums)                                                                                        \
    X(batchnorm_gradients)                                                                                   \
    X(batchnorm_dx)                                                                                          \
    X(dropout)                                                                                               \
    X(dropout_backward)                                                                                      \
    X(window)                                                                                                \
    X(drop_samples)                                                                                          \
    X(drop_samples_backward)                                                                                 \
    X(recurrent_forward)                                                                                     \
    X(recurrent_backward)                                                                                    \
    X(loss)                                                                                                  \
    X(loss_sum)                                                                                              \
    X(loss_backward)                                                                                         \
    X(pair_loss)                                                                                             \
    X(pair_loss_backward)                                                                                    \
    X(sample)                                                                                                \
    X(sample_backward)                                                                                       \
    X(update_check)                                                                                          \
    X(update_squares)                                                                                        \
    X(update_norm)                                                                                           \
    X(update_moments)                                                                                        \
    X(update_trust)                                                                                          \
    X(muon_momentum)                                                                                         \
    X(muon_scale)                                                                                            \
    X(muon_blend)                                                                                            \
    X(muon_step)                                                                                             \
    X(update)                                                                                                \
    X(update_end)                                                                                            \
    X(average)

#define MRK_THREADS    256u /* of a block, where nothing else is said */
#define MRK_PACK_BYTES 16u

/* ---- element by element (elements.cu) ---- */

struct mrk_cast_args {
    uint64_t count;
    uint32_t to, from; /* dtypes, not the same */
    uint32_t vectors;  /* 8 values at a time whatever the types */
    void *dst;
    const void *src;
};

struct mrk_accumulate_args { /* a += b */
    uint64_t count;
    uint32_t dtype, vectors;
    void *a;
    const void *b;
};

struct mrk_activate_args { /* y = act(x + x2) */
    uint64_t count;
    uint32_t dtype, vectors;
    uint32_t activation; /* vectors: a light one (grid.h) */
    const void *x, *x2;  /* x2 may be NULL; either may be y */
    void *y;
};

struct mrk_channels_args { /* to[r][k] = from[r][k - at], at <= k < at + count, else 0, for k < width */
    uint64_t rows;
    uint32_t dtype, vectors; /* vectors: all counts below are multiples of a pack, too */
    uint32_t width, at, count;
    uint32_t to_step, from_step; /* values from one row to the next */
    void *to;
    const void *from;
};

struct mrk_window_args {     /* to[s][y][x] = from[s][y + top][x + left], and 0 where that lies outside */
    uint64_t n;              /* samples */
    uint32_t dtype, vectors; /* vectors: c is a multiple of a pack */
    uint32_t to_h, to_w, from_h, from_w, c;
    int32_t top, left;
    void *to;
    const void *from;
};

struct mrk_activate_backward_args { /* out = out2 = (dy + dy2) * act'(y) */
    uint64_t count;
    uint32_t dtype, vectors;
    uint32_t activation;  /* vectors: a light one (grid.h) */
    const void *dy, *dy2; /* dy2 may be NULL */
    const void *y;        /* not read for NONE */
    void *out, *out2;     /* either may be NULL, either may be dy */
};

/* SiLU and GELU, whose slopes are computed from x */
struct mrk_smooth_args { /* y = act(x) */
    uint64_t count;
    uint32_t dtype, vectors;
    uint32_t activation;
    const void *x;
    void *y;
};

struct mrk_smooth_backward_args { /* dx = (dy + dy2) * act'(x) */
    uint64_t count;
    uint32_t dtype, vectors;
    uint32_t activation;
    const void *dy, *dy2; /* dy2 may be NULL */
    const void *x;
    void *dx; /* may be dy */
};

/* ---- rows of channels: a block covers `width` packs (or single values) of channels, side by side, and
 * MRK_THREADS / width rows; blocks along x share the rows in turns, blocks along y are further packs ---- */

struct mrk_tile {
    uint64_t rows;
    uint32_t channels; /* vectors: a multiple of the pack */
    uint32_t width;    /* 1 .. 32 */
    uint32_t dtype, vectors;
};

struct mrk_bias_activate_args { /* y = act(y + bias) */
    struct mrk_tile tile;
    uint32_t activation; /* vectors: a light one (grid.h) */
    void *y;
    const float *bias; /* or NULL */
};

struct mrk_bias_backward_args { /* dy *= act'(y); partial[block][channel] = sums of dy */
    struct mrk_tile tile;
    uint32_t activation; /* vectors: a light one (grid.h) */
    const void *y;       /* not read for NONE */
    void *dy;            /* not written for NONE */
    float *partial;      /* [blocks along x][channels], or NULL: no sums wanted */
};

struct mrk_bias_finish_args { /* dbias[c] = sum of partial[..][c] */
    uint32_t channels, parts;
    const float *partial;
    float *dbias;
};

/* ---- a factor for each sample and channel: a block along x is one of `parts` of a sample's pixels, the rows
 * of the tile ---- */

struct mrk_scale_args { /* y[n][p][c] = x[n][p][c] * factor[n][c] */
    struct mrk_tile tile;
    uint32_t n, parts; /* n * parts blocks along x */
    const void *x, *factor;
    void *y;
};

struct mrk_scale_backward_args { /* dx = dy * factor; dfactor = sums over p of dy * x. One part each */
    struct mrk_tile tile;
    uint32_t n;
    const void *dy, *x, *factor;
    void *dx, *dfactor; /* either may be NULL */
};

/* ---- local response normalisation: a block takes `width` channels of `height` rows at a time, its threads
 * one value each; blocks along x share the rows in turns, blocks along y are further channels ---- */

#define MRK_LRN_ROOM (5 * MRK_THREADS) /* height * (width + 4 radius) is not above it */

struct mrk_response {
    uint64_t rows;
    uint32_t channels, width, height; /* width * height: MRK_THREADS at most */
    uint32_t radius;                  /* below channels */
    uint32_t dtype;
    float bias, alpha, beta;
};

struct mrk_lrn_args { /* y = x / (bias + alpha * squares)^beta */
    struct mrk_response of;
    const void *x;
    void *y;
};

struct mrk_lrn_backward_args {
    struct mrk_response of;
    const void *dy, *x;
    void *dx;
};

/* ---- softmax over channels: a block goes along a row ---- */

struct mrk_softmax_args {
    uint64_t rows;
    uint32_t channels, dtype, log; /* log: its logarithm */
    const void *x;
    void *y;
};

struct mrk_softmax_backward_args {
    uint64_t rows;
    uint32_t channels, dtype, log;
    const void *dy, *x;
    void *dx;
};

/* ---- input ---- */

struct mrk_input_args {
    uint32_t n, h, w, c;     /* c at most 4 */
    uint32_t dtype, vectors; /* vectors: no pack spans two samples, nor two planes */
    uint32_t planar;         /* NCHW */
    float mean[4], std[4];
    float k[4], d[4]; /* for affine NULL: y = x * k + d */
    const uint8_t *x;
    void *y;
    const float *affine; /* n pairs, or NULL */
    const uint8_t *flip; /* n, or NULL */
};

struct mrk_one_hot_args { /* y[row][c] = x[row] == c */
    uint64_t count;       /* of y */
    uint32_t classes;
    uint32_t dtype, vectors; /* vectors: no pack spans two rows */
    uint32_t from;           /* type of x */
    const void *x;
    void *y;
};

struct mrk_field_args { /* y = (x - mean) / std */
    uint64_t count;
    uint32_t dtype, vectors;
    uint32_t from; /* type of x */
    float mean, std;
    const void *x;
    void *y;
};

/* ---- normalisation of a sample by itself, enlarging, tables ---- */

struct mrk_sets {    /* the values normalised together: pixels of a sample (or one), channels of a group */
    uint64_t pixels; /* of a sample */
    uint32_t n, channels, groups, each_pixel, dtype;
};

struct mrk_groupnorm_args {
    struct mrk_sets sets;
    float epsilon;
    const void *x;
    void *y;
    const float *scale, *shift;
    float *saved; /* mean and 1 / deviation of each set, or NULL */
};

struct mrk_groupnorm_backward_args {
    struct mrk_sets sets;
    const void *x, *dy;
    void *dx;
    const float *scale, *saved;
};

struct mrk_groupnorm_params_args {
    struct mrk_sets sets;
    const void *x, *dy;
    const float *saved;
    float *dscale, *dshift;
};

struct mrk_upsample_args {
    uint32_t n, h, w, c; /* of x */
    uint32_t factor, bilinear, dtype;
    const void *x;
    void *y;
};

struct mrk_upsample_backward_args {
    uint32_t n, h, w, c; /* of dx */
    uint32_t factor, bilinear, dtype;
    const void *dy;
    void *dx;
};

struct mrk_embedding_args { /* y[place] = table[x[place]] */
    uint64_t places;
    uint32_t units, classes, dtype;
    uint32_t from; /* type of x */
    const void *x;
    const float *table;
    void *y;
};

struct mrk_embedding_backward_args { /* dtable[k] = sum of dy[place] where x[place] is k */
    uint64_t places;
    uint32_t units, classes, dtype;
    uint32_t from;
    const void *x, *dy;
    float *dtable;
};

/* ---- pooling ---- */

struct mrk_window {
    uint32_t n, h, w, c;   /* of the input */
    uint32_t out_h, out_w; /* c channels too */
    uint32_t kernel_h, kernel_w, stride_h, stride_w, pad_top, pad_left;
    uint32_t dtype, vectors;
    uint32_t place_bytes; /* max_pool: of one saved place, 1 or 2 */
};

struct mrk_max_pool_args {
    struct mrk_window win;
    const void *x;
    void *y, *places; /* places: [n][out_h][out_w][c], or NULL */
};

struct mrk_max_pool_backward_args {
    struct mrk_window win;
    const void *dy, *places;
    void *dx;
};

struct mrk_average_pool_args {
    struct mrk_window win;
    const void *x;
    void *y;
};

struct mrk_average_pool_backward_args {
    struct mrk_window win;
    const void *dy;
    void *dx;
};

/* ---- batch normalisation. saved: mean[c], inverse[c], k[c], d[c] with y = act(x * k + d + x2) ---- */

struct mrk_batchnorm_statistics_args {
    struct mrk_tile tile;
    const void *x;
    float *partial; /* [blocks along x][2][channels]: mean and sum of squared distances to it */
};

struct mrk_batchnorm_finish_args {
    struct mrk_tile tile; /* of mrk_batchnorm_statistics, and */
    uint32_t parts;       /* its blocks along x */
    float momentum, epsilon;
    const float *partial, *scale, *shift; /* scale NULL: all 1; below, too */
    float *mean, *variance;               /* running; updated */
    float *saved;                         /* [4][channels] */
};

struct mrk_batchnorm_running_args { /* coefficients[2][channels]: k, d of the running statistics */
    uint32_t channels;
    float epsilon;
    const float *scale, *shift, *mean, *variance;
    float *coefficients;
};

struct mrk_batchnorm_apply_args {
    struct mrk_tile tile;
    uint32_t activation; /* vectors: a light one (grid.h) */
    const void *x, *x2;  /* x2 may be NULL */
    void *y;
    const float *coefficients; /* [2][channels]: k, d */
};

/* How backward knows act'. */
enum mrk_mask {
    MRK_MASK_NONE,
    MRK_MASK_OF_Y,
    MRK_MASK_OF_X
}; /* OF_X: relu(x * k + d), worked out again as forward did */

struct mrk_batchnorm_sums_args { /* g = (dy + dy2) * act'; partial: sums of g and of g * (x - mean) */
    struct mrk_tile tile;
    uint32_t activation, mask; /* vectors: a light one (grid.h) */
    uint32_t write;            /* g replaces dy */
    void *dy;
    const void *dy2, *y, *x; /* dy2 may be NULL; y is read for MRK_MASK_OF_Y */
    const float *saved;
    float *partial; /* [blocks along x][2][channels] */
};

struct mrk_batchnorm_gradients_args { /* dx = g * coefficients[0] + x * coefficients[1] + coefficients[2] */
    uint32_t channels, parts;
    uint64_t rows;
    const float *partial, *scale, *saved;
    float *dscale, *dshift; /* dscale NULL: not wanted */
    float *coefficients;    /* [3][channels] */
};

struct mrk_batchnorm_dx_args {
    struct mrk_tile tile;
    uint32_t mask; /* OF_X: g is dy masked so; NONE: g is dy */
    const void *dy, *x;
    void *dx;
    const float *saved, *coefficients;
};

/* ---- dropout: a thread draws for the 8 elements of one Philox block (ops/draws.h); kept: one bit each
 * ---- */

struct mrk_dropout_args {
    uint64_t elements;  /* of a sample */
    uint32_t n, groups; /* of 128 elements a sample, the last one part empty */
    uint32_t blocks_per_sample;
    uint32_t dtype, threshold, first;
    float scale;
    uint64_t key;
    const void *x;
    void *y;       /* may be x */
    uint8_t *kept; /* [n][groups][16] */
    const mr_step_values *values;
};

struct mrk_dropout_backward_args { /* dx = kept ? (dy + dy2) * scale : 0 */
    uint64_t elements;
    uint32_t n, groups, blocks_per_sample, dtype;
    float scale;
    const void *dy, *dy2; /* dy2 may be NULL */
    void *dx;             /* may be dy */
    const uint8_t *kept;
};

/* ---- stochastic depth: `parts` blocks a sample. kept: a byte a sample ---- */

struct mrk_drop_samples_args { /* y = kept ? x * scale : 0 */
    uint64_t elements;         /* of a sample; vectors: a multiple of the pack */
    uint32_t n, parts, dtype, vectors, threshold, first;
    float scale;
    uint64_t key;
    const void *x;
    void *y; /* may be x */
    uint8_t *kept;
    const mr_step_values *values;
};

struct mrk_drop_samples_backward_args { /* dx = kept ? (dy + dy2) * scale : 0 */
    uint64_t elements;
    uint32_t n, parts, dtype, vectors;
    float scale;
    const void *dy, *dy2; /* dy2 may be NULL */
    void *dx;             /* may be dy */
    const uint8_t *kept;
};

/* ---- recurrent layers: one step of all samples, a thread a unit. Rows are [n][steps]; a sample's gates lie
 * units apart, r, z, n or i, f, g, o. Arithmetic is in float ---- */

struct mrk_recurrent {
    uint32_t n, steps, units, step;
    uint32_t dtype;     /* of x, y and the factors of products */
    uint32_t lstm;      /* else gru */
    uint32_t sequences; /* y, dy: [n][steps][units]; else [n][units], of the last step */
};

struct mrk_recurrent_forward_args {
    struct mrk_recurrent r;
    float *gates;                       /* [n][steps][gates * units]: x W' in, values out */
    const float *product;               /* [n][gates * units]: h U'; NULL at step 0, where h is zero */
    const float *bias, *recurrent_bias; /* recurrent_bias: gru */
    float *h, *c;                       /* [n][units], replaced; c: lstm */
    void *factor;                       /* [n][units]: h, for the next product */
    float *kept;  /* [n][steps][units]: U_n h + d_n, or c; NULL: not wanted, as before */
    void *before; /* [n][steps][units]: h of the step before */
    void *y;      /* NULL: not after this step */
};

struct mrk_recurrent_backward_args {
    struct mrk_recurrent r;
    const float *gates, *kept;
    const void *before;
    const float *through; /* [n][units]: through the product of the step behind; NULL at the last step, where
                             dh and dc are zero */
    const void *dy;       /* NULL: none of this step */
    float *dh, *dc;       /* [n][units], replaced; dc: lstm */
    void *dgates;         /* [n][steps][gates * units] */
    void *dproduct;       /* gru: the same of the recurrent product */
};

/* ---- loss: a block for each sample ---- */

struct mrk_loss_args {
    uint32_t n, classes, dtype;      /* classes: logits; 1 stands for two classes */
    float factor, smoothing, weight; /* mr_loss_desc; smoothing 0 but in training */
    uint32_t silent;
    const void *x;
    void *y; /* softmax, or NULL */
    const int32_t *labels;
    const int32_t *labels2; /* NULL: no sample is mixed */
    const float *share2;
    const float *class_weights; /* NULL: all count alike */
    double *losses;             /* n */
    uint32_t *marks;            /* n, enum mrk_mark */
};

/* For a sample that counts: MRK_MARK_COUNTS + MRK_MARK_RIGHT * its correct predictions. */
enum mrk_mark { MRK_MARK_SKIPPED, MRK_MARK_BAD, MRK_MARK_COUNTS, MRK_MARK_RIGHT = 4 };

struct mrk_loss_sum_args { /* one block */
    uint32_t n;
    const double *losses;
    const uint32_t *marks;
    mr_metrics *metrics; /* added to */
};

struct mrk_loss_backward_args {
    uint32_t n, classes, dtype;
    float factor, smoothing, weight;
    const void *x;
    void *dx;
    const int32_t *labels;
    const int32_t *labels2; /* NULL: no sample is mixed */
    const float *share2;
    const float *class_weights;
    const mr_step_values *values;
    const mr_loss_scale *loss_scale; /* or NULL */
};

/* ---- losses of two tensors: a block for each sample ---- */

struct mrk_pair_loss_args {
    uint64_t elements; /* of a sample */
    uint32_t classes;  /* of a pixel: its channels */
    uint32_t n, dtype, kind, silent, targets;
    float weight;
    const void *x, *x2;
    const int32_t *labels; /* or NULL */
    double *losses;        /* n */
    uint32_t *marks;       /* n, enum mrk_mark */
};

struct mrk_pair_loss_backward_args {
    uint64_t elements;
    uint32_t classes;
    uint32_t n, dtype, kind, targets;
    float weight;
    const void *x, *x2;
    void *dx, *dx2; /* or NULL */
    const int32_t *labels;
    const mr_step_values *values;
    const mr_loss_scale *loss_scale; /* or NULL */
};

/* ---- draws from normal distributions: a thread makes the 4 draws of one Philox block (ops/sample.c) ---- */

struct mrk_sample_args { /* y = x + exp(factor x2) draw */
    uint64_t elements;
    uint32_t n, dtype, first;
    float factor;
    uint64_t key;
    const void *x, *x2;
    void *y;
    const mr_step_values *values;
};

struct mrk_sample_backward_args { /* dx2 = dy draw factor exp(factor x2) */
    uint64_t elements;
    uint32_t n, dtype, first;
    float factor;
    uint64_t key;
    const void *dy, *x2;
    void *dx2;
    const mr_step_values *values;
};

/* ---- updates ---- */

struct mrk_update_check_args { /* loss_scale->overflow = 1 when any gradient is not finite */
    uint64_t count;
    uint32_t vectors;
    const float *grads;
    mr_loss_scale *loss_scale;
};

struct mrk_update_squares_args { /* sums[i] = squares of stretch i of the gradients, clipped by value */
    uint64_t count;
    uint32_t vectors;
    float clip_value; /* infinity: none */
    const float *grads;
    double *sums;
    const mr_loss_scale *loss_scale; /* or NULL */
};

struct mrk_update_norm_args { /* norm[0] = total of the sums after it, norm[1] = factor of gradients */
    uint64_t sums;
    float clip_norm;
    double *norm;
};

struct mrk_update_args {
    uint64_t count;
    uint32_t kind, vectors, nesterov;
    float momentum, rho, beta1, beta2, epsilon, weight_decay;
    float clip_value;                 /* infinity: none */
    float *weights, *state0, *state1; /* state as the kind needs */
    const float *grads;
    const mr_step_values *values;
    const mr_loss_scale *loss_scale; /* or NULL */
    const double *norm;              /* of update_norm, or NULL: none */
    const uint8_t *decays;           /* by stretch of MR_UPDATE_STRETCH, or NULL: all do */
    const uint32_t *tensors;         /* LAMB: by stretch */
    const double *trust;             /* LAMB: by tensor */
    uint32_t tensor_count;
};

struct mrk_update_moments_args { /* LAMB: state, and sums[2 s], sums[2 s + 1] = squares of the weights and the
                                    steps of stretch s */
    struct mrk_update_args of;
    double *sums;
};

struct mrk_update_trust_args { /* LAMB: trust[t] from the sums of the stretches of tensor t */
    uint64_t stretches;
    uint32_t tensor_count;
    const uint32_t *tensors;
    const double *sums;
    double *trust;
};

struct mrk_muon_momentum_args { /* MUON: step = the matrix to orthogonalise, of.count values from of.grads,
                                   of.state0 on */
    struct mrk_update_args of;
    float *step;
};

struct mrk_muon_scale_args { /* x /= max(sqrt(norm[0]), epsilon) */
    uint64_t count;
    float epsilon;
    float *x;
    const double *norm;
};

struct mrk_muon_blend_args { /* x = p x + q y */
    uint64_t count;
    float p, q;
    float *x;
    const float *y;
};

struct mrk_muon_step_args { /* weights -= lr (weight_decay weights + scale step) */
    struct mrk_update_args of;
    float scale;
    const float *step;
};

struct mrk_average_args { /* average += share * (from - average) */
    uint64_t count;
    uint32_t vectors;
    float share;
    float *average;
    const float *from;
};

struct mrk_update_end_args { /* one thread: the next scale */
    mr_loss_scale *loss_scale;
};

#define MRK_NUMBER(name) MRK_##name,
enum mrk_kernel { MRK_KERNELS(MRK_NUMBER) MRK_COUNT };
#undef MRK_NUMBER

#endif
