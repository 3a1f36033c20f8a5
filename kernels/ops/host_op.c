/* kernels/ops/host_op.c: operations as tasks on streams, parameters between canonical and stored order, and
 * layouts. */
#include "kernels/ops/host_op.h"

#include "kernels/backend/op_class.h"

static int check_tensors(const mr_op *head, mr_error *err)
{
    const mr_tensor *in = &head->desc.in;
    if (!head->is->entry && in->dtype == MR_TENSOR_F32 && !mri_tensor_valid(in))
        return mr_error_set(err, MR_EINVAL,
                            "the input's layout %u with %zu bytes a sample is not one this device makes; "
                            "create each operation from its producer's mr_op_info.out",
                            in->layout, in->sample_bytes);
    if (head->info.out.dtype != MR_TENSOR_F32)
        return mr_error_set(err, MR_EUNSUPPORTED,
                            "%s computes in f32; bf16 and f16 are offered on cuda devices",
                            head->device->name);
    return MR_OK;
}

static int prepare_there(void *context, mr_error *err)
{
    mri_host_op *op = context;
    return op->code->prepare(op, err);
}

/* Primitives are made for the number of threads that holds in the thread that creates them: a thread of the
 * device. */
static int prepare(mri_host_op *op, mr_error *err)
{
    if (op->base.is->keeps_layout) op->base.info.out = op->base.desc.in;
    if (!op->code->prepare) return MR_OK;
    return mri_host_make(mri_host_device_of(op->base.device), prepare_there, op, err);
}

static int op_create(mr_op **out, const mr_op *head, mr_error *err)
{
    int rc = check_tensors(head, err);
    if (rc) return rc;
    mri_host_op *op = calloc(1, sizeof *op);
    if (!op) return mr_error_set(err, MR_ENOMEM, "%s: no memory for an operation", head->device->name);
    op->base = *head;
    op->code = mri_host_device_of(head->device)->code_for(head);
    rc = prepare(op, err);
    if (rc) {
        free(op);
        return rc;
    }
    *out = &op->base;
    return MR_OK;
}

static void op_destroy(mr_op *base)
{
    mri_host_op *op = (mri_host_op *)base;
    if (op->code->release) op->code->release(op);
    free(op);
}

struct op_args {
    mri_host_op *op;
    mr_op_args args;
};
_Static_assert(sizeof(struct op_args) <= MRI_TASK_ARGS_BYTES, "an operation's arguments fit a task");

static int run_forward(mri_host_stream *s, const void *args, mr_error *err)
{
    const struct op_args *a = args;
    const struct mri_op_code *code = a->op->code;
    if (code->takes_ns)
        mri_host_stream_pass_until(s, mri_host_stream_now(s) + code->takes_ns(a->op, &a->args));
    return code->forward(a->op, &a->args, err);
}

static int run_backward(mri_host_stream *s, const void *args, mr_error *err)
{
    (void)s;
    const struct op_args *a = args;
    const mr_op *op = &a->op->base;
    if (a->args.dy2 && !a->op->code->adds_dy2)
        mri_accumulate(a->args.dy, a->args.dy2, mri_tensor_floats(&op->info.out) * a->args.n);
    return a->op->code->backward(a->op, &a->args, err);
}

static int op_forward_async(mr_op *op, mr_stream *s, const mr_op_args *args)
{
    const struct op_args a = {(mri_host_op *)op, *args};
    return mri_host_push((mri_host_stream *)s, run_forward, &a, sizeof a, 0, NULL);
}

static int op_backward_async(mr_op *op, mr_stream *s, const mr_op_args *args)
{
    const struct op_args a = {(mri_host_op *)op, *args};
    return mri_host_push((mri_host_stream *)s, run_backward, &a, sizeof a, 0, NULL);
}

static size_t param_bytes(const mr_op *op, bool state, uint32_t which)
{
    return (size_t)(state ? op->info.state[which].count : op->info.param[which].count) * sizeof(float);
}

struct param_call {
    mri_host_op *op;
    bool state;
    uint32_t which;
    void *to;
    const void *from;
};

static int import_there(void *context, mr_error *err)
{
    const struct param_call *c = context;
    return c->op->code->param_import(c->op, c->state, c->which, c->to, c->from, err);
}

static int op_param_import(mr_op *base, bool state, uint32_t which, void *address, const float *host,
                           mr_error *err)
{
    struct param_call call = {(mri_host_op *)base, state, which, address, host};
    if (call.op->code->param_import)
        return mri_host_make(mri_host_device_of(base->device), import_there, &call, err);
    memcpy(address, host, param_bytes(base, state, which));
    return MR_OK;
}

static int export_there(void *context, mr_error *err)
{
    const struct param_call *c = context;
    return c->op->code->param_export(c->op, c->state, c->which, c->from, c->to, err);
}

static int op_param_export(mr_op *base, bool state, uint32_t which, const void *address, float *host,
                           mr_error *err)
{
    struct param_call call = {(mri_host_op *)base, state, which, host, address};
    if (call.op->code->param_export)
        return mri_host_make(mri_host_device_of(base->device), export_there, &call, err);
    memcpy(host, address, param_bytes(base, state, which));
    return MR_OK;
}

const struct mri_op_calls mri_host_ops = {.create = op_create,
                                          .destroy = op_destroy,
                                          .forward_async = op_forward_async,
                                          .backward_async = op_backward_async,
                                          .param_import = op_param_import,
                                          .param_export = op_param_export};

/* ---- layouts ---- */

bool mri_tensor_valid(const mr_tensor *t)
{
    if (t->layout > MRI_LAYOUT_C16) return false;
    mr_tensor expected = *t;
    mri_tensor_set_layout(&expected, t->layout);
    return expected.sample_bytes == t->sample_bytes;
}

void mri_tensor_zero_padding(const mr_tensor *t, uint32_t n, float *values)
{
    const uint32_t block = mri_layout_block(t), last = t->c % block;
    if (last == 0) return;
    const size_t pixels = (size_t)t->h * t->w, floats = mri_tensor_floats(t),
                 start = (size_t)(t->c / block) * pixels * block;
    for (uint32_t i = 0; i < n; i++)
        for (size_t p = 0; p < pixels; p++)
            memset(values + i * floats + start + p * block + last, 0, (block - last) * sizeof(float));
}

int mri_require_nhwc(mri_host_op *op, mr_error *err)
{
    if (op->base.desc.in.layout == MR_LAYOUT_NHWC) return MR_OK;
    return mr_error_set(err, MR_EINVAL, "the reference operations take NHWC only, found layout %u",
                        op->base.desc.in.layout);
}
