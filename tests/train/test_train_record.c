/* Recorded steps: the device of this test records (the linker puts the functions below in the place of the
 * library's): calls between begin and end go to a list, launching a graph makes them. The weights must have
 * the same bits as without. */
#include "tests/train/rig.h"

int __real_mr_op_forward_async(mr_op *op, mr_stream *s, const mr_op_args *args);
int __real_mr_op_backward_async(mr_op *op, mr_stream *s, const mr_op_args *args);
int __real_mr_update_run_async(mr_stream *s, const mr_update_config *cfg);
int __real_mr_copy_h2d_async(mr_stream *s, void *device_dst, const void *host_src, size_t bytes);
int __wrap_mr_op_forward_async(mr_op *op, mr_stream *s, const mr_op_args *args);
int __wrap_mr_op_backward_async(mr_op *op, mr_stream *s, const mr_op_args *args);
int __wrap_mr_update_run_async(mr_stream *s, const mr_update_config *cfg);
int __wrap_mr_copy_h2d_async(mr_stream *s, void *device_dst, const void *host_src, size_t bytes);
int __wrap_mr_graph_begin(mr_stream *s);
int __wrap_mr_graph_end(mr_stream *s, mr_graph **out, mr_error *err);
int __wrap_mr_graph_launch_async(mr_graph *g, mr_stream *s);
void __wrap_mr_graph_destroy(mr_graph *g);

typedef struct call {
    enum { FORWARD, BACKWARD, UPDATE } what;
    mr_op *op;
    mr_op_args args;
    mr_update_config update;
} call;

typedef struct recorded {
    call calls[128];
    uint32_t count;
} recorded;

static mr_stream *recording; /* the stream under way */
static recorded *current;
static int refuse; /* what begin says */
static int fail_end, fail_call;
static uint32_t begun, ended, alive, launched;

static int note(call c)
{
    if (fail_call) return MR_ENOMEM;
    MRT_TRUE(current->count < 128);
    current->calls[current->count++] = c;
    return MR_OK;
}

int __wrap_mr_op_forward_async(mr_op *op, mr_stream *s, const mr_op_args *args)
{
    return recording ? note((call){.what = FORWARD, .op = op, .args = *args})
                     : __real_mr_op_forward_async(op, s, args);
}
int __wrap_mr_op_backward_async(mr_op *op, mr_stream *s, const mr_op_args *args)
{
    return recording ? note((call){.what = BACKWARD, .op = op, .args = *args})
                     : __real_mr_op_backward_async(op, s, args);
}
int __wrap_mr_update_run_async(mr_stream *s, const mr_update_config *cfg)
{
    return recording ? note((call){.what = UPDATE, .update = *cfg}) : __real_mr_update_run_async(s, cfg);
}
int __wrap_mr_copy_h2d_async(mr_stream *s, void *device_dst, const void *host_src, size_t bytes)
{
    if (recording) fail_msg("a copy from the host while recording");
    return __real_mr_copy_h2d_async(s, device_dst, host_src, bytes);
}
int __wrap_mr_graph_begin(mr_stream *s)
{
    if (refuse) return refuse;
    MRT_TRUE(!recording);
    begun++;
    recording = s;
    current = calloc(1, sizeof *current);
    alive++;
    return MR_OK;
}
int __wrap_mr_graph_end(mr_stream *s, mr_graph **out, mr_error *err)
{
    MRT_TRUE(recording == s);
    recording = NULL;
    ended++;
    *out = (mr_graph *)current;
    if (!fail_end) return MR_OK;
    __wrap_mr_graph_destroy(*out);
    *out = NULL;
    return mr_error_set(err, MR_EDEVICE, "the graph is too large");
}
int __wrap_mr_graph_launch_async(mr_graph *g, mr_stream *s)
{
    const recorded *r = (const recorded *)g;
    int rc = MR_OK;
    launched++;
    for (uint32_t i = 0; rc == MR_OK && i < r->count; i++) {
        const call *c = &r->calls[i];
        if (c->what == FORWARD) rc = __real_mr_op_forward_async(c->op, s, &c->args);
        else if (c->what == BACKWARD) rc = __real_mr_op_backward_async(c->op, s, &c->args);
        else rc = __real_mr_update_run_async(s, &c->update);
    }
    return rc;
}
void __wrap_mr_graph_destroy(mr_graph *g)
{
    if (g) alive--;
    free(g);
}

enum { STEPS = 12 };

typedef struct outcome {
    mrt_hash weights;
    mr_metrics training, evaluation;
} outcome;

/* Two slots in turn, as a loader's, a short batch among them, an evaluation now and then. */
static outcome train(const char *devices, char *message, size_t message_bytes)
{
    mr_error err = MR_ERROR_INIT;
    mrt_rig rig;
    mrt_batch slot[2], tail;
    outcome out;
    begun = ended = launched = 0;
    mrt_rig_open(&rig, &(mrt_rig_options){.devices = devices,
                                          .net = mrt_net_residual,
                                          .seed = 4,
                                          .bucket_bytes = 300,
                                          .update = MR_UPDATE_ADAM});
    for (uint32_t k = 0; k < 2; k++) mrt_batch_make(&slot[k], &rig, 0, 40 * k, 32, NULL, 0);
    mrt_batch_make(&tail, &rig, 0, 500, 9, NULL, 0);
    for (uint32_t s = 0; s < STEPS; s++) {
        mrt_batch *b = s == 5 || s == 9 ? &tail : &slot[s % 2];
        b->b.global_step = s; /* dropout and Adam depend on it */
        MRT_OK(mr_trainer_step(rig.t, &b->b, &err), &err);
        if (s % 3 == 2) MRT_OK(mr_trainer_forward(rig.t, &slot[0].b, &err), &err);
    }
    MRT_OK(mr_trainer_metrics(rig.t, &out.training, &out.evaluation, &err), &err);
    out.weights = mrt_hash_of(&rig, rig.count - 1);
    snprintf(message, message_bytes, "%s", rig.t->note);
    for (uint32_t k = 0; k < 2; k++) mrt_batch_free(&slot[k], &rig);
    mrt_batch_free(&tail, &rig);
    mrt_rig_close(&rig);
    MRT_EQ(alive, 0);
    MRT_EQ(begun, ended);
    return out;
}

static void expect_same(const outcome *a, const outcome *b)
{
    MRT_TRUE(mrt_same(a->weights, b->weights));
    MRT_TRUE(a->training.loss_sum == b->training.loss_sum && a->training.count == b->training.count);
    MRT_TRUE(a->evaluation.loss_sum == b->evaluation.loss_sum &&
             a->evaluation.correct == b->evaluation.correct);
}

static void test_a_replayed_step_is_the_same(void **state)
{
    (void)state;
    static const char *const devices[] = {"cpu", "cpu:2", "cpu:7"};
    for (size_t d = 0; d < 3; d++) {
        char note_off[1024], note_on[512];
        const uint32_t replicas = d == 0 ? 1 : d == 1 ? 2 : 7;
        refuse = MR_EUNSUPPORTED;
        const outcome plain = train(devices[d], note_off, sizeof note_off);
        MRT_EQ(launched, 0);
        MRT_STR(note_off, ""); /* a device that cannot is nothing to tell */
        refuse = MR_OK;
        const outcome replayed = train(devices[d], note_on, sizeof note_on);
        MRT_STR(note_on, "");
        expect_same(&plain, &replayed);
        /* once a slot and segment; then as it was: of 5 + 5 steps the first of each slot is plain, of 4
         * evaluations the first */
        const uint32_t segments = begun / replicas / 2; /* two slots of training, one of evaluation, which is
                                                           one segment */
        MRT_TRUE(replicas == 1 ? segments == 1 : segments > 2);
        MRT_EQ(begun, replicas * (2 * segments + 1));
        MRT_EQ(launched, replicas * (8 * segments + 3));
    }
}

static void test_no_graph_records_nothing(void **state)
{
    (void)state;
    mr_error err = MR_ERROR_INIT;
    mr_device **devs;
    uint32_t count;
    mr_net *net = mrt_net_dense();
    mr_trainer *t;
    mr_trainer_config cfg;
    MRT_OK(mr_devices_open(&devs, &count, "cpu", NULL, &err), &err);
    mr_trainer_defaults(&cfg);
    cfg.net = net, cfg.devices = devs, cfg.device_count = 1, cfg.no_graph = true;
    MRT_OK(mr_trainer_open(&t, &cfg, &err), &err);
    MRT_TRUE(!t->team.replicas[0].passes.records);
    mr_trainer_close(t);
    mr_devices_close(devs, count);
    mr_net_destroy(net);
}

static void test_what_cannot_be_recorded_is_queued(void **state)
{
    (void)state;
    char text[1024];
    refuse = MR_EUNSUPPORTED;
    const outcome plain = train("cpu:2", text, sizeof text);
    for (int how = 0; how < 3; how++) {
        refuse = how == 0 ? MR_EDEVICE : MR_OK;
        fail_end = how == 1;
        fail_call = how == 2;
        const outcome fallen = train("cpu:2", text, sizeof text);
        expect_same(&plain, &fallen);
        MRT_HAS(text, "cannot be recorded");
        if (how == 1) MRT_HAS(text, "the graph is too large");
        MRT_EQ(launched, 0);
    }
    refuse = fail_end = fail_call = 0;
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_a_replayed_step_is_the_same),
        cmocka_unit_test(test_no_graph_records_nothing),
        cmocka_unit_test(test_what_cannot_be_recorded_is_queued),
    };
    return mrt_run(tests);
}
