/* tests/cuda_emu/kernel_spans.h: the memory that each kernel reads and writes, derived from its arguments.
 * Included by kernels.cc only.
 *
 * One function per kernel, distinguished by the type of its arguments:
 *
 *     inline void spans(const mrk_NAME_args &a, emu_span_list &s)
 *     {
 *         s.reads(a.src, a.count * size_of(a.from));      an address that is NULL is left out
 *         s.writes(a.dst, a.count * size_of(a.to));       s.grid_x, s.grid_y: the blocks of the launch
 *     }
 *
 * Memory that is both read and written is written. */
#ifndef EMU_KERNEL_SPANS_H
#define EMU_KERNEL_SPANS_H

#include <stdlib.h>

#include "kernels/backend/update_rules.h"
#include "kernels/cuda/kernels/args.h"
#include "tests/cuda_emu/emu.h"

struct emu_span_list {
    emu_span *out;
    int count;
    unsigned grid_x, grid_y;

    void add(const void *at, uint64_t bytes, bool write)
    {
        if (!at || bytes == 0) return;
        if (count == EMU_MAX_SPANS) abort();
        out[count++] = emu_span{at, (size_t)bytes, write};
    }
    void reads(const void *at, uint64_t bytes) { add(at, bytes, false); }
    void writes(const void *at, uint64_t bytes) { add(at, bytes, true); }
};

/* Bytes of one element; every dtype a kernel may be given. */
inline uint64_t size_of(uint32_t dtype)
{
    switch (dtype) {
    case MR_TENSOR_U8:
    case MR_TENSOR_I8: return 1;
    case MR_TENSOR_F32:
    case MR_TENSOR_I32: return 4;
    case MR_TENSOR_I64:
    case MR_TENSOR_F64: return 8;
    default: return 2;
    }
}

inline uint64_t bytes_of(const mrk_tile &t) { return t.rows * t.channels * size_of(t.dtype); }
inline uint64_t floats(uint64_t count) { return count * sizeof(float); }

/* ---- element by element ---- */

inline void spans(const mrk_cast_args &a, emu_span_list &s)
{
    s.reads(a.src, a.count * size_of(a.from));
    s.writes(a.dst, a.count * size_of(a.to));
}

inline void spans(const mrk_accumulate_args &a, emu_span_list &s)
{
    s.reads(a.b, a.count * size_of(a.dtype));
    s.writes(a.a, a.count * size_of(a.dtype));
}

inline void spans(const mrk_channels_args &a, emu_span_list &s)
{
    if (a.rows == 0) return;
    s.reads(a.from, ((a.rows - 1) * a.from_step + a.count) * size_of(a.dtype));
    s.writes(a.to, ((a.rows - 1) * a.to_step + a.width) * size_of(a.dtype));
}

inline void spans(const mrk_window_args &a, emu_span_list &s)
{
    s.reads(a.from, a.n * a.from_h * a.from_w * a.c * size_of(a.dtype));
    s.writes(a.to, a.n * a.to_h * a.to_w * a.c * size_of(a.dtype));
}

inline void spans(const mrk_activate_args &a, emu_span_list &s)
{
    const uint64_t bytes = a.count * size_of(a.dtype);
    s.reads(a.x, bytes);
    s.reads(a.x2, bytes);
    s.writes(a.y, bytes);
}

inline void spans(const mrk_activate_backward_args &a, emu_span_list &s)
{
    const uint64_t bytes = a.count * size_of(a.dtype);
    s.reads(a.dy, bytes);
    s.reads(a.dy2, bytes);
    if (a.activation != MR_ACT_NONE) s.reads(a.y, bytes);
    s.writes(a.out, bytes);
    s.writes(a.out2, bytes);
}

inline void spans(const mrk_smooth_args &a, emu_span_list &s)
{
    s.reads(a.x, a.count * size_of(a.dtype));
    s.writes(a.y, a.count * size_of(a.dtype));
}

inline void spans(const mrk_smooth_backward_args &a, emu_span_list &s)
{
    const uint64_t bytes = a.count * size_of(a.dtype);
    s.reads(a.dy, bytes);
    s.reads(a.dy2, bytes);
    s.reads(a.x, bytes);
    s.writes(a.dx, bytes);
}

/* ---- rows of channels ---- */

inline void spans(const mrk_bias_activate_args &a, emu_span_list &s)
{
    s.writes(a.y, bytes_of(a.tile));
    s.reads(a.bias, floats(a.tile.channels));
}

inline void spans(const mrk_bias_backward_args &a, emu_span_list &s)
{
    if (a.activation != MR_ACT_NONE) s.reads(a.y, bytes_of(a.tile));
    s.add(a.dy, bytes_of(a.tile), a.activation != MR_ACT_NONE);
    s.writes(a.partial, floats((uint64_t)s.grid_x * a.tile.channels));
}

inline void spans(const mrk_bias_finish_args &a, emu_span_list &s)
{
    s.reads(a.partial, floats((uint64_t)a.parts * a.channels));
    s.writes(a.dbias, floats(a.channels));
}

inline void spans(const mrk_scale_args &a, emu_span_list &s)
{
    s.reads(a.x, a.n * bytes_of(a.tile));
    s.reads(a.factor, (uint64_t)a.n * a.tile.channels * size_of(a.tile.dtype));
    s.writes(a.y, a.n * bytes_of(a.tile));
}

inline void spans(const mrk_scale_backward_args &a, emu_span_list &s)
{
    const uint64_t factors = (uint64_t)a.n * a.tile.channels * size_of(a.tile.dtype);
    s.reads(a.dy, a.n * bytes_of(a.tile));
    s.reads(a.x, a.n * bytes_of(a.tile));
    s.reads(a.factor, factors);
    s.writes(a.dx, a.n * bytes_of(a.tile));
    s.writes(a.dfactor, factors);
}

inline uint64_t bytes_of(const mrk_response &p) { return p.rows * p.channels * size_of(p.dtype); }

inline void spans(const mrk_lrn_args &a, emu_span_list &s)
{
    s.reads(a.x, bytes_of(a.of));
    s.writes(a.y, bytes_of(a.of));
}

inline void spans(const mrk_lrn_backward_args &a, emu_span_list &s)
{
    s.reads(a.dy, bytes_of(a.of));
    s.reads(a.x, bytes_of(a.of));
    s.writes(a.dx, bytes_of(a.of));
}

inline void spans(const mrk_softmax_args &a, emu_span_list &s)
{
    const uint64_t bytes = a.rows * a.channels * size_of(a.dtype);
    s.reads(a.x, bytes);
    s.writes(a.y, bytes);
}

inline void spans(const mrk_softmax_backward_args &a, emu_span_list &s)
{
    const uint64_t bytes = a.rows * a.channels * size_of(a.dtype);
    s.reads(a.dy, bytes);
    s.reads(a.x, bytes);
    s.writes(a.dx, bytes);
}

/* ---- input ---- */

inline void spans(const mrk_input_args &a, emu_span_list &s)
{
    const uint64_t values = (uint64_t)a.n * a.h * a.w * a.c;
    s.reads(a.x, values);
    s.writes(a.y, values * size_of(a.dtype));
    s.reads(a.affine, floats(2 * (uint64_t)a.n));
    s.reads(a.flip, a.n);
}

inline void spans(const mrk_one_hot_args &a, emu_span_list &s)
{
    s.reads(a.x, a.count / a.classes * size_of(a.from));
    s.writes(a.y, a.count * size_of(a.dtype));
}

inline void spans(const mrk_field_args &a, emu_span_list &s)
{
    s.reads(a.x, a.count * size_of(a.from));
    s.writes(a.y, a.count * size_of(a.dtype));
}

/* ---- normalisation of a sample by itself, enlarging, tables ---- */

inline uint64_t bytes_of(const mrk_sets &t) { return t.pixels * t.n * t.channels * size_of(t.dtype); }
inline uint64_t saved_of(const mrk_sets &t)
{
    return floats(2 * (uint64_t)t.n * t.groups * (t.each_pixel ? t.pixels : 1));
}

inline void spans(const mrk_groupnorm_args &a, emu_span_list &s)
{
    s.reads(a.x, bytes_of(a.sets));
    s.reads(a.scale, floats(a.sets.channels));
    s.reads(a.shift, floats(a.sets.channels));
    s.writes(a.y, bytes_of(a.sets));
    s.writes(a.saved, saved_of(a.sets));
}

inline void spans(const mrk_groupnorm_backward_args &a, emu_span_list &s)
{
    s.reads(a.x, bytes_of(a.sets));
    s.reads(a.dy, bytes_of(a.sets));
    s.reads(a.scale, floats(a.sets.channels));
    s.reads(a.saved, saved_of(a.sets));
    s.writes(a.dx, bytes_of(a.sets));
}

inline void spans(const mrk_groupnorm_params_args &a, emu_span_list &s)
{
    s.reads(a.x, bytes_of(a.sets));
    s.reads(a.dy, bytes_of(a.sets));
    s.reads(a.saved, saved_of(a.sets));
    s.writes(a.dscale, floats(a.sets.channels));
    s.writes(a.dshift, floats(a.sets.channels));
}

inline void spans(const mrk_upsample_args &a, emu_span_list &s)
{
    const uint64_t small = (uint64_t)a.n * a.h * a.w * a.c * size_of(a.dtype);
    s.reads(a.x, small);
    s.writes(a.y, small * a.factor * a.factor);
}

inline void spans(const mrk_upsample_backward_args &a, emu_span_list &s)
{
    const uint64_t small = (uint64_t)a.n * a.h * a.w * a.c * size_of(a.dtype);
    s.reads(a.dy, small * a.factor * a.factor);
    s.writes(a.dx, small);
}

inline void spans(const mrk_embedding_args &a, emu_span_list &s)
{
    s.reads(a.x, a.places * size_of(a.from));
    s.reads(a.table, floats((uint64_t)a.classes * a.units));
    s.writes(a.y, a.places * a.units * size_of(a.dtype));
}

inline void spans(const mrk_embedding_backward_args &a, emu_span_list &s)
{
    s.reads(a.x, a.places * size_of(a.from));
    s.reads(a.dy, a.places * a.units * size_of(a.dtype));
    s.writes(a.dtable, floats((uint64_t)a.classes * a.units));
}

/* ---- pooling ---- */

inline uint64_t in_values(const mrk_window &w) { return (uint64_t)w.n * w.h * w.w * w.c; }
inline uint64_t out_values(const mrk_window &w) { return (uint64_t)w.n * w.out_h * w.out_w * w.c; }

inline void spans(const mrk_max_pool_args &a, emu_span_list &s)
{
    s.reads(a.x, in_values(a.win) * size_of(a.win.dtype));
    s.writes(a.y, out_values(a.win) * size_of(a.win.dtype));
    s.writes(a.places, out_values(a.win) * a.win.place_bytes);
}

inline void spans(const mrk_max_pool_backward_args &a, emu_span_list &s)
{
    s.reads(a.dy, out_values(a.win) * size_of(a.win.dtype));
    s.reads(a.places, out_values(a.win) * a.win.place_bytes);
    s.writes(a.dx, in_values(a.win) * size_of(a.win.dtype));
}

inline void spans(const mrk_average_pool_args &a, emu_span_list &s)
{
    s.reads(a.x, in_values(a.win) * size_of(a.win.dtype));
    s.writes(a.y, out_values(a.win) * size_of(a.win.dtype));
}

inline void spans(const mrk_average_pool_backward_args &a, emu_span_list &s)
{
    s.reads(a.dy, out_values(a.win) * size_of(a.win.dtype));
    s.writes(a.dx, in_values(a.win) * size_of(a.win.dtype));
}

/* ---- batch normalisation ---- */

inline void spans(const mrk_batchnorm_statistics_args &a, emu_span_list &s)
{
    s.reads(a.x, bytes_of(a.tile));
    s.writes(a.partial, floats((uint64_t)s.grid_x * 2 * a.tile.channels));
}

inline void spans(const mrk_batchnorm_finish_args &a, emu_span_list &s)
{
    const uint64_t c = a.tile.channels;
    s.reads(a.partial, floats(a.parts * 2 * c));
    s.reads(a.scale, floats(c));
    s.reads(a.shift, floats(c));
    s.writes(a.mean, floats(c));
    s.writes(a.variance, floats(c));
    s.writes(a.saved, floats(4 * c));
}

inline void spans(const mrk_batchnorm_running_args &a, emu_span_list &s)
{
    s.reads(a.scale, floats(a.channels));
    s.reads(a.shift, floats(a.channels));
    s.reads(a.mean, floats(a.channels));
    s.reads(a.variance, floats(a.channels));
    s.writes(a.coefficients, floats(2 * (uint64_t)a.channels));
}

inline void spans(const mrk_batchnorm_apply_args &a, emu_span_list &s)
{
    s.reads(a.x, bytes_of(a.tile));
    s.reads(a.x2, bytes_of(a.tile));
    s.writes(a.y, bytes_of(a.tile));
    s.reads(a.coefficients, floats(2 * (uint64_t)a.tile.channels));
}

inline void spans(const mrk_batchnorm_sums_args &a, emu_span_list &s)
{
    const uint64_t c = a.tile.channels;
    s.add(a.dy, bytes_of(a.tile), a.write != 0);
    s.reads(a.dy2, bytes_of(a.tile));
    if (a.mask == MRK_MASK_OF_Y) s.reads(a.y, bytes_of(a.tile));
    s.reads(a.x, bytes_of(a.tile));
    s.reads(a.saved, floats(4 * c));
    s.writes(a.partial, floats((uint64_t)s.grid_x * 2 * c));
}

inline void spans(const mrk_batchnorm_gradients_args &a, emu_span_list &s)
{
    const uint64_t c = a.channels;
    s.reads(a.partial, floats(a.parts * 2 * c));
    s.reads(a.scale, floats(c));
    s.reads(a.saved, floats(4 * c));
    s.writes(a.dscale, floats(c));
    s.writes(a.dshift, floats(c));
    s.writes(a.coefficients, floats(3 * c));
}

inline void spans(const mrk_batchnorm_dx_args &a, emu_span_list &s)
{
    s.reads(a.dy, bytes_of(a.tile));
    s.reads(a.x, bytes_of(a.tile));
    s.writes(a.dx, bytes_of(a.tile));
    if (a.mask == MRK_MASK_OF_X) s.reads(a.saved, floats(4 * (uint64_t)a.tile.channels));
    s.reads(a.coefficients, floats(3 * (uint64_t)a.tile.channels));
}

/* ---- dropout ---- */

inline void spans(const mrk_dropout_args &a, emu_span_list &s)
{
    s.reads(a.x, a.n * a.elements * size_of(a.dtype));
    s.writes(a.y, a.n * a.elements * size_of(a.dtype));
    s.writes(a.kept, (uint64_t)a.n * a.groups * 16);
    s.reads(a.values, sizeof *a.values);
}

inline void spans(const mrk_dropout_backward_args &a, emu_span_list &s)
{
    s.reads(a.dy, a.n * a.elements * size_of(a.dtype));
    s.reads(a.dy2, a.n * a.elements * size_of(a.dtype));
    s.writes(a.dx, a.n * a.elements * size_of(a.dtype));
    s.reads(a.kept, (uint64_t)a.n * a.groups * 16);
}

inline void spans(const mrk_drop_samples_args &a, emu_span_list &s)
{
    s.reads(a.x, a.n * a.elements * size_of(a.dtype));
    s.writes(a.y, a.n * a.elements * size_of(a.dtype));
    s.writes(a.kept, a.n);
    s.reads(a.values, sizeof *a.values);
}

inline void spans(const mrk_drop_samples_backward_args &a, emu_span_list &s)
{
    s.reads(a.dy, a.n * a.elements * size_of(a.dtype));
    s.reads(a.dy2, a.n * a.elements * size_of(a.dtype));
    s.writes(a.dx, a.n * a.elements * size_of(a.dtype));
    s.reads(a.kept, a.n);
}

/* ---- recurrent layers ---- */

inline uint64_t states(const mrk_recurrent &r) { return (uint64_t)r.n * r.units; }
inline uint64_t gate_values(const mrk_recurrent &r) { return states(r) * (r.lstm ? 4 : 3); }
inline uint64_t outputs(const mrk_recurrent &r) { return states(r) * (r.sequences ? r.steps : 1); }

inline void spans(const mrk_recurrent_forward_args &a, emu_span_list &s)
{
    const uint64_t gates = a.r.lstm ? 4 : 3;
    s.writes(a.gates, floats(gate_values(a.r) * a.r.steps));
    s.reads(a.product, floats(gate_values(a.r)));
    s.reads(a.bias, floats(gates * a.r.units));
    s.reads(a.recurrent_bias, floats(gates * a.r.units));
    s.writes(a.h, floats(states(a.r)));
    s.writes(a.c, floats(states(a.r)));
    s.writes(a.factor, states(a.r) * size_of(a.r.dtype));
    s.writes(a.kept, floats(states(a.r) * a.r.steps));
    s.writes(a.before, states(a.r) * a.r.steps * size_of(a.r.dtype));
    s.writes(a.y, outputs(a.r) * size_of(a.r.dtype));
}

inline void spans(const mrk_recurrent_backward_args &a, emu_span_list &s)
{
    s.reads(a.gates, floats(gate_values(a.r) * a.r.steps));
    s.reads(a.kept, floats(states(a.r) * a.r.steps));
    s.reads(a.before, states(a.r) * a.r.steps * size_of(a.r.dtype));
    s.reads(a.through, floats(states(a.r)));
    s.reads(a.dy, outputs(a.r) * size_of(a.r.dtype));
    s.writes(a.dh, floats(states(a.r)));
    s.writes(a.dc, floats(states(a.r)));
    s.writes(a.dgates, gate_values(a.r) * a.r.steps * size_of(a.r.dtype));
    s.writes(a.dproduct, gate_values(a.r) * a.r.steps * size_of(a.r.dtype));
}

/* ---- loss ---- */

inline void spans(const mrk_loss_args &a, emu_span_list &s)
{
    s.reads(a.x, (uint64_t)a.n * a.classes * size_of(a.dtype));
    s.writes(a.y, (uint64_t)a.n * a.classes * size_of(a.dtype));
    s.reads(a.labels, a.n * sizeof *a.labels);
    s.reads(a.labels2, a.n * sizeof *a.labels2);
    s.reads(a.share2, a.n * sizeof *a.share2);
    s.reads(a.class_weights, (a.classes > 1 ? a.classes : 2) * sizeof *a.class_weights);
    s.writes(a.losses, a.n * sizeof *a.losses);
    s.writes(a.marks, a.n * sizeof *a.marks);
}

inline void spans(const mrk_loss_sum_args &a, emu_span_list &s)
{
    s.reads(a.losses, a.n * sizeof *a.losses);
    s.reads(a.marks, a.n * sizeof *a.marks);
    s.writes(a.metrics, sizeof *a.metrics);
}

inline void spans(const mrk_loss_backward_args &a, emu_span_list &s)
{
    s.reads(a.x, (uint64_t)a.n * a.classes * size_of(a.dtype));
    s.writes(a.dx, (uint64_t)a.n * a.classes * size_of(a.dtype));
    s.reads(a.labels, a.n * sizeof *a.labels);
    s.reads(a.labels2, a.n * sizeof *a.labels2);
    s.reads(a.share2, a.n * sizeof *a.share2);
    s.reads(a.class_weights, (a.classes > 1 ? a.classes : 2) * sizeof *a.class_weights);
    s.reads(a.values, sizeof *a.values);
    s.reads(a.loss_scale, sizeof *a.loss_scale);
}

/* ---- losses of two tensors, draws ---- */

inline void spans(const mrk_pair_loss_args &a, emu_span_list &s)
{
    s.reads(a.x, a.n * a.elements * size_of(a.dtype));
    s.reads(a.x2, a.n * a.elements * size_of(a.dtype));
    s.reads(a.labels, a.n * sizeof *a.labels);
    s.writes(a.losses, a.n * sizeof *a.losses);
    s.writes(a.marks, a.n * sizeof *a.marks);
}

inline void spans(const mrk_pair_loss_backward_args &a, emu_span_list &s)
{
    s.reads(a.x, a.n * a.elements * size_of(a.dtype));
    s.reads(a.x2, a.n * a.elements * size_of(a.dtype));
    s.writes(a.dx, a.n * a.elements * size_of(a.dtype));
    s.writes(a.dx2, a.n * a.elements * size_of(a.dtype));
    s.reads(a.labels, a.n * sizeof *a.labels);
    s.reads(a.values, sizeof *a.values);
    s.reads(a.loss_scale, sizeof *a.loss_scale);
}

inline void spans(const mrk_sample_args &a, emu_span_list &s)
{
    s.reads(a.x, a.n * a.elements * size_of(a.dtype));
    s.reads(a.x2, a.n * a.elements * size_of(a.dtype));
    s.writes(a.y, a.n * a.elements * size_of(a.dtype));
    s.reads(a.values, sizeof *a.values);
}

inline void spans(const mrk_sample_backward_args &a, emu_span_list &s)
{
    s.reads(a.dy, a.n * a.elements * size_of(a.dtype));
    s.reads(a.x2, a.n * a.elements * size_of(a.dtype));
    s.writes(a.dx2, a.n * a.elements * size_of(a.dtype));
    s.reads(a.values, sizeof *a.values);
}

/* ---- updates ---- */

inline void spans(const mrk_update_check_args &a, emu_span_list &s)
{
    s.reads(a.grads, floats(a.count));
    s.writes(a.loss_scale, sizeof *a.loss_scale);
}

inline void spans(const mrk_update_squares_args &a, emu_span_list &s)
{
    s.reads(a.grads, floats(a.count));
    s.reads(a.loss_scale, sizeof *a.loss_scale);
    s.writes(a.sums, (a.count + MRI_UPDATE_NORM_FLOATS - 1) / MRI_UPDATE_NORM_FLOATS * sizeof *a.sums);
}

inline void spans(const mrk_update_norm_args &a, emu_span_list &s)
{
    s.writes(a.norm, (MRI_UPDATE_NORM_HEAD + a.sums) * sizeof *a.norm);
}

inline void spans(const mrk_update_args &a, emu_span_list &s)
{
#define STATES(kind, name, states) (states),
    static const uint32_t counts[] = {MRI_UPDATE_RULES(STATES)};
#undef STATES
    const uint32_t states = counts[a.kind];
    s.writes(a.weights, floats(a.count));
    if (states > 0) s.writes(a.state0, floats(a.count));
    if (states > 1) s.writes(a.state1, floats(a.count));
    s.reads(a.grads, floats(a.count));
    s.reads(a.values, sizeof *a.values);
    s.reads(a.loss_scale, sizeof *a.loss_scale);
    s.reads(a.norm, MRI_UPDATE_NORM_HEAD * sizeof *a.norm);
    const uint64_t stretches = (a.count + MR_UPDATE_STRETCH - 1) / MR_UPDATE_STRETCH;
    s.reads(a.decays, stretches);
    s.reads(a.tensors, stretches * sizeof *a.tensors);
    s.reads(a.trust, a.tensor_count * sizeof *a.trust);
}

inline void spans(const mrk_update_moments_args &m, emu_span_list &s)
{
    const mrk_update_args &a = m.of;
    const uint64_t stretches = (a.count + MR_UPDATE_STRETCH - 1) / MR_UPDATE_STRETCH;
    s.reads(a.weights, floats(a.count));
    s.reads(a.grads, floats(a.count));
    s.writes(a.state0, floats(a.count));
    s.writes(a.state1, floats(a.count));
    s.reads(a.values, sizeof *a.values);
    s.reads(a.loss_scale, sizeof *a.loss_scale);
    s.reads(a.norm, MRI_UPDATE_NORM_HEAD * sizeof *a.norm);
    s.reads(a.decays, stretches);
    s.writes(m.sums, 2 * stretches * sizeof *m.sums);
}

inline void spans(const mrk_update_trust_args &a, emu_span_list &s)
{
    s.reads(a.tensors, a.stretches * sizeof *a.tensors);
    s.reads(a.sums, 2 * a.stretches * sizeof *a.sums);
    s.writes(a.trust, a.tensor_count * sizeof *a.trust);
}

inline void spans(const mrk_muon_momentum_args &m, emu_span_list &s)
{
    const mrk_update_args &a = m.of;
    s.reads(a.grads, floats(a.count));
    s.writes(a.state0, floats(a.count));
    s.reads(a.values, sizeof *a.values);
    s.reads(a.loss_scale, sizeof *a.loss_scale);
    s.reads(a.norm, MRI_UPDATE_NORM_HEAD * sizeof *a.norm);
    s.writes(m.step, floats(a.count));
}

inline void spans(const mrk_muon_scale_args &a, emu_span_list &s)
{
    s.writes(a.x, floats(a.count));
    s.reads(a.norm, MRI_UPDATE_NORM_HEAD * sizeof *a.norm);
}

inline void spans(const mrk_muon_blend_args &a, emu_span_list &s)
{
    s.writes(a.x, floats(a.count));
    s.reads(a.y, floats(a.count));
}

inline void spans(const mrk_muon_step_args &m, emu_span_list &s)
{
    const mrk_update_args &a = m.of;
    s.writes(a.weights, floats(a.count));
    s.reads(m.step, floats(a.count));
    s.reads(a.values, sizeof *a.values);
    s.reads(a.loss_scale, sizeof *a.loss_scale);
    s.reads(a.decays, (a.count + MR_UPDATE_STRETCH - 1) / MR_UPDATE_STRETCH);
}

inline void spans(const mrk_average_args &a, emu_span_list &s)
{
    s.writes(a.average, floats(a.count));
    s.reads(a.from, floats(a.count));
}

inline void spans(const mrk_update_end_args &a, emu_span_list &s)
{
    s.writes(a.loss_scale, sizeof *a.loss_scale);
}

#endif
