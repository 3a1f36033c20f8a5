/* kernels/ops/recurrent.c: see recurrent.h.
 *
 * A step's cells are cut into stretches of STRETCH units, which the threads share. Sums over rows are taken
 * in the order of the rows, each column by one thread: nothing depends on the number of threads. */
#include "kernels/ops/recurrent.h"

#include "kernels/host/simd_loop.h"
#include "kernels/ops/matrix/product.h"

enum { STRETCH = 256 };

/* ---- description ---- */

static int check_input(const mr_op_desc *d, const char *name, mr_error *err)
{
    const mr_tensor *in = &d->in;
    const mr_recurrent_desc *r = &d->recurrent;
    const bool numbers = in->dtype == MR_TENSOR_I32;
    if (in->h != 1)
        return mr_error_set(err, MR_EINVAL, "%s: input is %u x %u x %u; a sequence is 1 x steps x values",
                            name, in->h, in->w, in->c);
    if (numbers != (r->classes != 0))
        return mr_error_set(err, MR_EINVAL, "%s: %s", name,
                            numbers ? "int32 numbers need the count of classes"
                                    : "classes are of int32 numbers, not of floats");
    if (numbers &&
        (in->c != 1 || in->layout != MR_LAYOUT_NHWC || in->sample_bytes != (size_t)in->w * sizeof(int32_t)))
        return mr_error_set(err, MR_EINVAL,
                            "%s: input must be rows of int32 numbers without padding (1 x w x 1)", name);
    return numbers ? mri_op_check_count(r->classes, "classes", name, err) : MR_OK;
}

static mr_param_info matrix(const char *name, uint64_t rows, uint64_t columns)
{
    return (mr_param_info){.name = name,
                           .ndim = 2,
                           .dim = {rows, columns},
                           .count = rows * columns,
                           .storage_count = rows * columns,
                           .fan_in = columns,
                           .fan_out = rows};
}

int mri_recurrent_describe(const mr_op_desc *d, mr_op_info *info, uint32_t gates, bool two_biases,
                           const char *bias, const char *name, mr_error *err)
{
    const mr_recurrent_desc *r = &d->recurrent;
    uint32_t dtype = d->in.dtype;
    int rc = mri_op_check_count(r->units, "units", name, err);
    if (!rc) rc = check_input(d, name, err);
    if (!rc && r->classes) rc = mri_op_entry_dtype(r->out_dtype, &dtype, name, err);
    if (rc) return rc;
    const uint64_t inputs = r->classes ? r->classes : d->in.c, rows = (uint64_t)gates * r->units;
    if (inputs > ((uint64_t)1 << 40) / rows || r->units > ((uint64_t)1 << 40) / rows)
        return mr_error_set(err, MR_EINVAL, "%s: the weights are too large", name);
    info->param_count = two_biases ? 4 : 3;
    info->param[0] = matrix("weights", rows, inputs);
    info->param[1] = matrix("recurrent", rows, r->units);
    info->param[2] = mri_op_vector(bias, (uint32_t)rows);
    if (two_biases) info->param[3] = mri_op_vector("recurrent_bias", (uint32_t)rows);
    info->flops_per_sample =
        d->in.w * ((r->classes ? 1.0 : 2.0 * (double)inputs) + 2.0 * r->units) * (double)rows;
    return mri_op_set_output(d, info, 1, r->sequences ? d->in.w : 1, r->units, dtype, name, err);
}

/* ---- places ---- */

/* Floats from the beginning of scratch; each piece at a multiple of MR_DEVICE_ALIGN. */
struct places {
    size_t steps, units, inputs, rows, wide;  /* rows: of max_batch; wide: G */
    size_t kept, before, saved_end;           /* in saved; gates are first */
    size_t gates, product, h, c, table;       /* in scratch, forward */
    size_t dgates, dproduct, dh, dc, through; /* in scratch, backward */
    size_t packed, work, end;
};

static size_t piece(size_t *at, size_t floats)
{
    const size_t from = *at;
    *at += (size_t)mri_align_up(floats, MR_DEVICE_ALIGN / sizeof(float));
    return from;
}

static size_t most(size_t a, size_t b) { return a > b ? a : b; }

static size_t packed_floats(const struct places *p, bool training)
{
    const size_t in = most(mri_product_packed_floats(p->inputs, p->wide),
                           mri_product_packed_floats(p->wide, p->inputs)),
                 own = most(mri_product_packed_floats(p->units, p->wide),
                            mri_product_packed_floats(p->wide, p->units)),
                 sums = most(mri_product_packed_floats(p->rows, p->inputs),
                             mri_product_packed_floats(p->rows, p->units));
    return most(most(in, own), training ? sums : 0);
}

static size_t work_floats(const struct places *p, uint32_t max_batch, uint32_t threads, bool training)
{
    const size_t in = mri_product_scratch_floats(p->rows, most(p->inputs, p->wide), threads),
                 step = mri_product_scratch_floats(max_batch, most(p->units, p->wide), threads),
                 sums = mri_product_scratch_floats(p->wide, p->rows, threads);
    return most(most(in, step), training ? sums : 0);
}

static struct places places_of(const mri_host_op *op, const struct mri_cell_kind *kind)
{
    const mr_op_desc *d = &op->base.desc;
    const uint32_t n = d->max_batch, threads = op->base.device->info.threads;
    struct places p = {.steps = d->in.w,
                       .units = d->recurrent.units,
                       .inputs = d->recurrent.classes ? d->recurrent.classes : d->in.c};
    p.rows = n * p.steps;
    p.wide = kind->gates * p.units;
    const size_t gates = p.rows * p.wide, states = p.rows * p.units, state = n * p.units;
    piece(&p.saved_end, gates);
    p.kept = piece(&p.saved_end, states);
    p.before = piece(&p.saved_end, states);
    size_t forward = 0, backward = 0;
    p.gates = piece(&forward, gates);
    p.product = piece(&forward, n * p.wide);
    p.h = piece(&forward, state);
    p.c = piece(&forward, kind->has_c ? state : 0);
    if (d->training) {
        p.dgates = piece(&backward, gates);
        p.dproduct = kind->two_biases ? piece(&backward, gates) : p.dgates;
        p.dh = piece(&backward, state);
        p.dc = piece(&backward, kind->has_c ? state : 0);
        p.through = piece(&backward, state);
    }
    p.end = most(forward, backward);
    p.table = piece(&p.end, d->recurrent.classes ? p.inputs * p.wide : 0);
    p.packed = piece(&p.end, packed_floats(&p, d->training));
    p.work = piece(&p.end, work_floats(&p, n, threads ? threads : 1, d->training));
    return p;
}

struct recurrent {
    const struct mri_cell_kind *kind;
    struct places p;
    bool packed;
};

int mri_recurrent_prepare(mri_host_op *op, const struct mri_cell_kind *kind, mr_error *err)
{
    const mr_op_desc *d = &op->base.desc;
    mr_op_info *info = &op->base.info;
    const double bytes = 16.0 * d->max_batch * d->in.w * kind->gates * d->recurrent.units;
    if (bytes > (double)((size_t)1 << 46))
        return mr_error_set(err, MR_EINVAL, "%s: the batch is too large", op->base.is->name);
    if (!d->recurrent.classes && d->in.layout != MR_LAYOUT_NHWC)
        return mr_error_set(err, MR_EINVAL, "%s takes NHWC only, found layout %u", op->base.is->name,
                            d->in.layout);
    struct recurrent *own = op->own = malloc(sizeof *own);
    if (!own) return mr_error_set(err, MR_ENOMEM, "no memory for %s", op->base.is->name);
    *own = (struct recurrent){
        .kind = kind, .p = places_of(op, kind), .packed = op->code != op->base.is->reference};
    info->saved_bytes = d->training ? own->p.saved_end * sizeof(float) : 0;
    info->scratch_bytes = own->p.end * sizeof(float);
    return MR_OK;
}

void mri_recurrent_release(mri_host_op *op) { free(op->own); }

/* ---- products ---- */

struct factor {
    struct mri_matrix b;
    size_t k, n;
    const float *packed; /* NULL: by the definition */
};

/* A call: what all of it needs. */
struct call {
    const mr_op_args *a;
    const struct mri_cell_kind *kind;
    struct places p;
    float *scratch;
    bool packed, sequences, saves;
    size_t n, rows;
    const int32_t *numbers; /* NULL: x is of floats */
};

static struct call call_of(const mri_host_op *op, const mr_op_args *a)
{
    const struct recurrent *own = op->own;
    const mr_recurrent_desc *d = &op->base.desc.recurrent;
    return (struct call){.a = a,
                         .kind = own->kind,
                         .p = own->p,
                         .scratch = a->scratch,
                         .packed = own->packed,
                         .sequences = d->sequences,
                         .saves = a->training && op->base.desc.training,
                         .n = a->n,
                         .rows = a->n * own->p.steps,
                         .numbers = d->classes ? a->x : NULL};
}

static struct factor bring(const struct call *c, struct mri_matrix b, size_t k, size_t n)
{
    struct factor f = {.b = b, .k = k, .n = n};
    if (!c->packed) return f;
    mri_product_pack(c->scratch + c->p.packed, &b, k, n);
    f.packed = c->scratch + c->p.packed;
    return f;
}

static void multiply(const struct call *c, size_t m, struct mri_matrix a, const struct factor *f, float *to)
{
    if (f->packed) mri_product_run(m, f->n, f->k, &a, f->packed, to, f->n, c->scratch + c->p.work);
    else mri_product_plain(m, f->n, f->k, &a, &f->b, to, f->n);
}

static struct mri_matrix by_rows(const float *at, size_t columns)
{
    return (struct mri_matrix){at, columns, 1};
}
static struct mri_matrix turned(const float *at, size_t columns) /* transpose of rows with `columns` columns
                                                                  */
{
    return (struct mri_matrix){at, 1, columns};
}

/* ---- numbers in place of rows with a single 1 ---- */

static bool is_class(const struct call *c, size_t row)
{
    return c->numbers[row] >= 0 && (size_t)c->numbers[row] < c->p.inputs;
}

/* to[column][row] = from[row][column] */
static void turn(float *to, const float *from, size_t rows, size_t columns)
{
#pragma omp parallel for schedule(static) if (rows * columns > MRI_PARALLEL_ELEMENTS)
    for (size_t r = 0; r < rows; r++)
        for (size_t k = 0; k < columns; k++) to[k * rows + r] = from[r * columns + k];
}

/* gates = x W': row k of W' for number k. */
static void look_up(const struct call *c, float *gates)
{
    const size_t wide = c->p.wide;
    float *table = c->scratch + c->p.table;
    turn(table, c->a->param[0], wide, c->p.inputs);
#pragma omp parallel for schedule(static) if (c->rows * wide > MRI_PARALLEL_ELEMENTS)
    for (size_t r = 0; r < c->rows; r++) {
        if (is_class(c, r))
            memcpy(gates + r * wide, table + (size_t)c->numbers[r] * wide, wide * sizeof *gates);
        else memset(gates + r * wide, 0, wide * sizeof *gates);
    }
}

/* dW: a number's row is the sum over its rows, in their order. */
static void scatter(const struct call *c, const float *dgates)
{
    const size_t wide = c->p.wide;
    float *table = c->scratch + c->p.table;
    memset(table, 0, c->p.inputs * wide * sizeof *table);
#pragma omp parallel for schedule(static) if (c->rows * wide > MRI_PARALLEL_ELEMENTS)
    for (size_t at = 0; at < wide; at += STRETCH)
        for (size_t r = 0; r < c->rows; r++)
            if (is_class(c, r))
                mri_accumulate_piece(table + (size_t)c->numbers[r] * wide + at, dgates + r * wide + at,
                                     (size_t)mri_min_u64(wide - at, STRETCH));
    turn(c->a->dparam[0], table, c->p.inputs, wide);
}

/* ---- steps ---- */

/* Work on all stretches of a step. */
typedef void stretch_run(const struct call *c, float *gates, size_t step, size_t sample, size_t unit,
                         size_t count);

static void for_stretches(const struct call *c, float *gates, size_t step, stretch_run *work)
{
    const size_t units = c->p.units, each = (units + STRETCH - 1) / STRETCH;
#pragma omp parallel for schedule(static) if (c->n * units * 8 > MRI_PARALLEL_ELEMENTS)
    for (size_t i = 0; i < c->n * each; i++) {
        const size_t unit = i % each * STRETCH;
        work(c, gates, step, i / each, unit, (size_t)mri_min_u64(units - unit, STRETCH));
    }
}

/* Where the state after a step goes in a tensor like y; NULL: it is not in there. */
static float *output_of(const struct call *c, void *y, size_t step, size_t sample, size_t unit)
{
    const struct places *p = &c->p;
    if (c->sequences) return (float *)y + (sample * p->steps + step) * p->units + unit;
    return step + 1 == p->steps ? (float *)y + sample * p->units + unit : NULL;
}

static void forward_stretch(const struct call *c, float *gates, size_t step, size_t sample, size_t unit,
                            size_t count)
{
    const struct places *p = &c->p;
    const mr_op_args *a = c->a;
    const size_t row = sample * p->steps + step, at = row * p->units + unit;
    float none[STRETCH], *h = c->scratch + p->h + sample * p->units + unit;
    const struct mri_cell cell = {
        .units = p->units,
        .count = count,
        .gates = gates + row * p->wide + unit,
        .product = c->scratch + p->product + sample * p->wide + unit,
        .bias = {a->param[2] + unit, c->kind->two_biases ? a->param[3] + unit : NULL},
        .h = h,
        .c = c->kind->has_c ? c->scratch + p->c + sample * p->units + unit : NULL,
        .kept = c->saves ? (float *)a->saved + p->kept + at : none};
    if (c->saves) memcpy((float *)a->saved + p->before + at, h, count * sizeof *h);
    c->kind->forward(&cell);
    float *y = output_of(c, a->y, step, sample, unit);
    if (y) memcpy(y, h, count * sizeof *h);
}

int mri_recurrent_forward(mri_host_op *op, const mr_op_args *a, mr_error *err)
{
    (void)err;
    const struct call c = call_of(op, a);
    const struct places *p = &c.p;
    float *gates = c.saves ? a->saved : c.scratch + p->gates, *h = c.scratch + p->h;
    if (c.numbers) {
        look_up(&c, gates);
    } else {
        const struct factor w = bring(&c, turned(a->param[0], p->inputs), p->inputs, p->wide);
        multiply(&c, c.rows, by_rows(a->x, p->inputs), &w, gates);
    }
    memset(h, 0, c.n * p->units * sizeof *h);
    if (c.kind->has_c) memset(c.scratch + p->c, 0, c.n * p->units * sizeof *h);
    memset(c.scratch + p->product, 0, c.n * p->wide * sizeof *h); /* of the state of zeros */
    const struct factor u = bring(&c, turned(a->param[1], p->units), p->units, p->wide);
    for (size_t step = 0; step < p->steps; step++) {
        if (step > 0) multiply(&c, c.n, by_rows(h, p->units), &u, c.scratch + p->product);
        for_stretches(&c, gates, step, forward_stretch);
    }
    return MR_OK;
}

/* The gradient to h after this step: what y's taker and the step behind give; then the cell. */
static void backward_stretch(const struct call *c, float *gates, size_t step, size_t sample, size_t unit,
                             size_t count)
{
    static const float zeros[STRETCH];
    const struct places *p = &c->p;
    const size_t row = sample * p->steps + step, at = row * p->units + unit, state = sample * p->units + unit;
    float *saved = c->a->saved, *dh = c->scratch + p->dh + state;
    const float *dy = output_of(c, c->a->dy, step, sample, unit);
    if (step + 1 < p->steps) mri_accumulate_piece(dh, c->scratch + p->through + state, count);
    if (dy) mri_accumulate_piece(dh, dy, count);
    const struct mri_cell cell = {.units = p->units,
                                  .count = count,
                                  .gates = gates + row * p->wide + unit,
                                  .h = dh,
                                  .c = c->kind->has_c ? c->scratch + p->dc + state : NULL,
                                  .kept = saved + p->kept + at,
                                  .h_before = saved + p->before + at,
                                  .kept_before = step > 0 ? saved + p->kept + at - p->units : zeros,
                                  .dgates = c->scratch + p->dgates + row * p->wide + unit,
                                  .dproduct = c->scratch + p->dproduct + row * p->wide + unit};
    c->kind->backward(&cell);
}

static void back_through_steps(const struct call *c)
{
    const struct places *p = &c->p;
    const size_t state = c->n * p->units;
    memset(c->scratch + p->dh, 0, state * sizeof *c->scratch);
    if (c->kind->has_c) memset(c->scratch + p->dc, 0, state * sizeof *c->scratch);
    const struct factor u = bring(c, by_rows(c->a->param[1], p->units), p->wide, p->units);
    for (size_t step = p->steps; step-- > 0;) {
        for_stretches(c, c->a->saved, step, backward_stretch);
        const struct mri_matrix of_step = {c->scratch + p->dproduct + step * p->wide, p->steps * p->wide, 1};
        if (step > 0) multiply(c, c->n, of_step, &u, c->scratch + p->through);
    }
}

/* to[column] = the sum over all rows, in their order. */
static void sum_rows(const struct call *c, const float *from, float *to)
{
    const size_t wide = c->p.wide;
#pragma omp parallel for schedule(static) if (c->rows * wide > MRI_PARALLEL_ELEMENTS)
    for (size_t at = 0; at < wide; at += STRETCH) {
        const size_t count = (size_t)mri_min_u64(wide - at, STRETCH);
        double sums[STRETCH] = {0};
        for (size_t r = 0; r < c->rows; r++)
            for (size_t i = 0; i < count; i++) sums[i] += (double)from[r * wide + at + i];
        for (size_t i = 0; i < count; i++) to[at + i] = (float)sums[i];
    }
}

int mri_recurrent_backward(mri_host_op *op, const mr_op_args *a, mr_error *err)
{
    (void)err;
    const struct call c = call_of(op, a);
    const struct places *p = &c.p;
    const float *dgates = c.scratch + p->dgates, *dproduct = c.scratch + p->dproduct;
    back_through_steps(&c);
    sum_rows(&c, dgates, a->dparam[2]);
    if (c.kind->two_biases) sum_rows(&c, dproduct, a->dparam[3]);
    struct factor f = bring(&c, by_rows((float *)a->saved + p->before, p->units), c.rows, p->units);
    multiply(&c, p->wide, turned(dproduct, p->wide), &f, a->dparam[1]);
    if (c.numbers) {
        scatter(&c, dgates);
        return MR_OK;
    }
    f = bring(&c, by_rows(a->x, p->inputs), c.rows, p->inputs);
    multiply(&c, p->wide, turned(dgates, p->wide), &f, a->dparam[0]);
    if (!op->base.desc.need_dx) return MR_OK;
    f = bring(&c, by_rows(a->param[0], p->inputs), p->wide, p->inputs);
    multiply(&c, c.rows, by_rows(dgates, p->wide), &f, a->dx);
    return MR_OK;
}
