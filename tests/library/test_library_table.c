/* Every public function times every wrong argument: NULL, a number that stands for no choice, the largest
 * number, structs of other headers, after fork(). table.py makes the cells from the headers and calls.table.
 * Each runs in a process of its own with a time limit, so that a crash or a hang is one failed cell with a
 * name.
 *
 *     test_library_table [PART OF A NAME]
 *
 * A child makes what its cell needs, here, and reports the result by its exit status. */
#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <math.h>
#include <poll.h>
#include <signal.h>
#include <stdatomic.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#include "millrace/run.h"
#include "mrt.h"

enum { SAMPLES = 64, SIDE = 4, BATCH = 8, CLASSES = 4 };

#if MRT_SANITIZED /* memory that nobody has is refused, as it is without them */
MR_API const char *__asan_default_options(void);
MR_API const char *__asan_default_options(void) { return "allocator_may_return_null=1"; }
MR_API const char *__tsan_default_options(void);
MR_API const char *__tsan_default_options(void)
{
    return "allocator_may_return_null=1:report_thread_leaks=0";
}
#endif

#define RIG_ANY     1000L /* no crash, no hang */
#define RIG_NOTHING 1001L /* the function returns none */

struct cell {
    const char *name;
    long (*run)(void);
    long want;
};

static mr_error err = MR_ERROR_INIT;
static int report_fd; /* results go through a pipe: exit statuses are too small for them */

/* The needs of a cell must exist. */
static void need(int rc, const char *what)
{
    if (rc == MR_OK) return;
    char text[1400];
    fprintf(stderr, "the rig has no %s: %s\n", what, mr_error_format(&err, text, sizeof text));
    _exit(99);
}

static uint64_t room[1 << 17];
static void *rig_room(void) { return room; }
static void *rig_out(void) { return memset(room + (1 << 16), 0, 4096); }
static mr_error *rig_error(void) { return &err; }

static const char *rig_file(const char *name)
{
    static char path[512];
    snprintf(path, sizeof path, "%s/%s", mrt_temp(), name);
    return path;
}

/* ---- structs of other headers ---- */

static void *rig_copy(const void *from, size_t bytes)
{
    void *copy = calloc(1, bytes + 4096);
    if (copy && from) memcpy(copy, from, bytes);
    return copy;
}
static void rig_resize(void *value, size_t bytes) { memcpy(value, &bytes, sizeof bytes); }
/* Values that are resized lie in rooms with 4,096 bytes after them. */
static void rig_grow(void *value, size_t bytes, int set)
{
    memset((char *)value + bytes, set, sizeof(size_t));
    rig_resize(value, bytes + sizeof(size_t));
}

#define RESULT(name)                                                                                         \
    static mr_##name *rig_##name(void)                                                                       \
    {                                                                                                        \
        mr_##name *r = rig_copy(NULL, sizeof *r);                                                            \
        rig_resize(r, sizeof *r);                                                                            \
        return r;                                                                                            \
    }
RESULT(image_header)
RESULT(source_file)
RESULT(verify_result)
RESULT(device_listing)
RESULT(loader_stats)
RESULT(tuning)
RESULT(record_totals)
RESULT(replay_result)
RESULT(convert_result)
RESULT(choice_result)
RESULT(repair_result)
RESULT(manifest_result)
RESULT(export_result)
RESULT(advice)
RESULT(form_cost)
RESULT(class_row)
RESULT(views_sums)
RESULT(same_pictures)
RESULT(machine_rate)
RESULT(append_result)
RESULT(set_update_result)
RESULT(withdrawn_sample)
RESULT(loss_row)
RESULT(layer_row)
RESULT(report)
RESULT(rate)
RESULT(step_report)
RESULT(eval_report)
RESULT(parts)
RESULT(trainer_op)
RESULT(rank_times)
RESULT(bucket_tuning)
RESULT(trainer_link)
RESULT(exchange_forecast)
RESULT(goal)
RESULT(checkpoint_info)
RESULT(weights_report)
RESULT(take_report)
RESULT(own_picture)
RESULT(scalar_event)
RESULT(launch)
RESULT(sweep_result)
RESULT(synth_result)

#define SETTINGS(name, defaults)                                                                             \
    static mr_##name *rig_##name(void)                                                                       \
    {                                                                                                        \
        mr_##name *r = rig_copy(NULL, sizeof *r);                                                            \
        defaults(r);                                                                                         \
        return r;                                                                                            \
    }
SETTINGS(source_config, mr_source_defaults)
SETTINGS(output_config, mr_output_defaults)
SETTINGS(devices_config, mr_devices_defaults)
SETTINGS(decode_config, mr_decode_defaults)
SETTINGS(image_part, mr_image_part_defaults)
SETTINGS(choice_config, mr_choice_defaults)
SETTINGS(convert_config, mr_convert_defaults)
SETTINGS(repair_config, mr_repair_defaults)
SETTINGS(manifest_config, mr_manifest_defaults)
SETTINGS(card_config, mr_card_defaults)
SETTINGS(stats_config, mr_stats_defaults)
SETTINGS(verify_config, mr_verify_defaults)
SETTINGS(export_config, mr_export_defaults)
SETTINGS(advise_config, mr_advise_defaults)
SETTINGS(append_config, mr_append_defaults)
SETTINGS(set_update_config, mr_set_update_defaults)
SETTINGS(weights_config, mr_weights_defaults)
SETTINGS(logger_config, mr_logger_defaults)
SETTINGS(run_page_config, mr_run_page_defaults)
SETTINGS(stats_page_config, mr_stats_page_defaults)

/* ---- data ---- */

static const mr_field fields[] = {
    {.name = "image", .type = MR_TYPE_PIXELS, .ndim = 3, .dim = {SIDE, SIDE, 1}},
    {.name = "label", .type = MR_TYPE_INT}};
static const char *const names[] = {"a", "b", "c", "d"};

/* Never written: workers read it. */
static uint8_t pixels_of_all[SIDE * SIDE];
static mr_value values_of_all[] = {
    {.type = MR_TYPE_PIXELS, .ndim = 3, .dim = {SIDE, SIDE, 1}, .data = pixels_of_all, .bytes = SIDE * SIDE},
    {.type = MR_TYPE_INT, .i = 1}};
static mr_value *rig_value(void) { return values_of_all; }

/* ---- at another time: a function of the program makes the call ---- */

enum { CALLING = 24 }; /* the sample whose function does; it waits until the rig is there */
static atomic_bool armed, called;
static bool in_worker, in_on_bad; /* fixed before the loader is opened */
static long (*then)(void);
static _Atomic long then_result;

static void call_then(void)
{
    if (atomic_exchange(&called, true)) return;
    then_result = then();
    long result = then_result; /* what follows may end the loader in any way */
    if (write(report_fd, &result, sizeof result) != sizeof result) _exit(98);
    _exit(0);
}

static int fetch(void *context, uint64_t sample, mr_own_sample *to, mr_error *why)
{
    (void)context;
    while ((in_worker || in_on_bad) && sample == CALLING && !armed) usleep(100);
    if (in_worker && sample == CALLING) call_then();
    if (in_on_bad && sample == CALLING) return mr_error_set(why, MR_EFORMAT, "damaged");
    return mr_own_sample_give(to, rig_value(), why);
}

static mr_own_config *rig_own_config(void)
{
    mr_own_config *c = rig_copy(NULL, sizeof *c);
    mr_own_defaults(c);
    c->count = SAMPLES;
    c->field_count = 2;
    c->fields = fields;
    c->class_count = CLASSES;
    c->class_names = names;
    c->fetch = fetch;
    return c;
}

static mr_source *rig_source(void)
{
    static mr_source *src;
    if (!src) need(mr_source_create(&src, rig_own_config(), &err), "source");
    return src;
}

static mr_own_sample *rig_own_sample(void) { return NULL; }
static const mr_source_info *rig_source_info(void) { return mr_source_info_of(rig_source()); }

static mr_writer_config *rig_writer_config(void)
{
    mr_writer_config *c = rig_copy(NULL, sizeof *c);
    mr_writer_defaults(c);
    c->field_count = 2;
    c->fields = fields;
    c->class_count = CLASSES;
    c->class_names = names;
    c->force = true;
    return c;
}

static mr_writer *rig_writer(void)
{
    static mr_writer *w;
    if (!w) need(mr_writer_open(&w, rig_file("w.mrec"), rig_writer_config(), NULL, &err), "writer");
    return w;
}

static mr_stats *rig_stats(void)
{
    mr_stats *s; /* a call may free it */
    need(mr_stats_make(&s, rig_source(), NULL, &err), "counts");
    return s;
}

static uint64_t count_reads(void *context)
{
    (void)context;
    return 0;
}
static mr_samples_read *rig_samples_read(void) { return count_reads; }
static mr_page_dropper *rig_page_dropper(void)
{
    static mr_page_dropper *d;
    if (!d) need(mr_page_dropper_start(&d, rig_source(), count_reads, NULL, &err), "thread that drops pages");
    return d;
}

static mr_bad_list *rig_bad_list(void)
{
    mr_bad_list *b; /* a call may close it */
    need(mr_bad_list_open(&b, rig_file("bad.jsonl"), rig_source(), false, false, &err),
         "list of bad samples");
    return b;
}

static const char *rig_records(void)
{
    static char path[512];
    if (path[0]) return path;
    snprintf(path, sizeof path, "%s", rig_file("set.mrec"));
    mr_writer *w;
    need(mr_writer_open(&w, path, rig_writer_config(), NULL, &err), "record file");
    for (uint64_t k = 0; k < BATCH; k++) need(mr_writer_append(w, k, rig_value(), &err), "record");
    need(mr_writer_finish(w, &err), "record file");
    return path;
}

static mr_mrec *rig_mrec(void)
{
    static mr_mrec *m;
    if (!m) need(mr_mrec_open(&m, rig_records(), UINT64_MAX, &err), "mrec");
    return m;
}

static mr_output *rig_output(void)
{
    static mr_output *o;
    if (!o) {
        mr_output_config *c = rig_output_config();
        c->force = true; /* other cells have written it */
        need(mr_output_open(&o, rig_file("output"), c, &err), "output");
    }
    return o;
}

static mr_verify_report *rig_verify_report(void) { return NULL; }
static mr_image *rig_image(void)
{
    static uint8_t pixels[SIDE * SIDE];
    static mr_image image;
    image = (mr_image){SIDE, SIDE, 1, pixels};
    return &image;
}

/* ---- devices ---- */

static mr_device **rig_devices(void)
{
    static mr_device **devices;
    uint32_t count;
    if (!devices) need(mr_devices_open(&devices, &count, "cpu", NULL, &err), "device");
    return devices;
}
static mr_device *rig_device(void) { return rig_devices()[0]; }

static mr_stream *rig_stream(void)
{
    static mr_stream *s;
    if (!s) need(mr_stream_create(&s, rig_device(), MR_STREAM_COMPUTE, &err), "stream");
    return s;
}

static mr_stream *const *rig_streams(void)
{
    static mr_stream *streams[2];
    streams[0] = rig_stream();
    return streams;
}

static mr_event *rig_event(void)
{
    static mr_event *e;
    if (!e) need(mr_event_create(&e, rig_device(), &err), "event");
    return e;
}

static mr_op_desc *rig_op_desc(void)
{
    static mr_op_desc d;
    d = (mr_op_desc){.kind = MR_OP_DENSE,
                     .in = {1, 1, 8, MR_TENSOR_F32, MR_LAYOUT_NHWC, 32},
                     .max_batch = 4,
                     .training = true,
                     .dense = {.units = 4}};
    return &d;
}

static mr_op *rig_op(void)
{
    static mr_op *op;
    if (!op) need(mr_op_create(&op, rig_device(), rig_op_desc(), &err), "operation");
    return op;
}

static mr_op_args *rig_op_args(void)
{
    static mr_op_args a;
    float *f = rig_room();
    a = (mr_op_args){.n = 1,
                     .x = f,
                     .y = f + 512,
                     .dy = f + 1024,
                     .param = {f + 2048, f + 3072},
                     .dparam = {f + 4096, f + 5120},
                     .saved = f + 6144,
                     .scratch = f + 8192};
    return &a;
}

static mr_group *rig_group(void)
{
    static mr_group *g;
    if (!g) need(mr_group_create(&g, rig_streams(), 1, &err), "group");
    return g;
}

static mr_group_config *rig_group_config(void)
{
    mr_group_config *c = rig_copy(NULL, sizeof *c);
    mr_group_defaults(c);
    c->streams = rig_streams();
    c->count = 1;
    return c;
}

static mr_graph *rig_graph(void) { return NULL; } /* no device of this program records any */
static float *const *rig_arrays(void)
{
    static float *arrays[2];
    arrays[0] = rig_room();
    return arrays;
}
static mr_update_desc *rig_update_desc(void)
{
    static mr_update_desc d;
    d = mr_update_rule_find("sgd")->desc;
    return &d;
}
static mr_step_values values_of_step;
static mr_update_args *rig_update_args(void)
{
    static mr_update_args a;
    float *f = rig_room();
    a = (mr_update_args){
        .count = 64, .weights = f, .grads = f + 64, .state = {f + 128, f + 192}, .values = &values_of_step};
    return &a;
}
static mr_update_config *rig_update_config(void)
{
    mr_update_config *c = rig_copy(NULL, sizeof *c);
    mr_update_defaults(c);
    c->rule = *rig_update_desc();
    c->args = *rig_update_args();
    return c;
}
static mr_update_matrix *rig_update_matrix(void)
{
    static mr_update_matrix m = {.rows = 8, .columns = 8};
    return &m;
}

/* ---- loader ---- */

static void on_bad(void *context, const mr_error *what, uint64_t substitute)
{
    (void)context, (void)what, (void)substitute;
    call_then();
}

static mr_loader_config *rig_loader_config(void)
{
    mr_loader_config *c = rig_copy(NULL, sizeof *c);
    mr_loader_defaults(c);
    c->batch = BATCH;
    c->order = MR_ORDER_SEQUENTIAL;
    c->epochs = 2;
    c->keep = 1;
    c->bad = MR_BAD_SKIP;
    c->on_bad = in_on_bad ? on_bad : NULL;
    return c;
}

static mr_loader *rig_loader(void)
{
    static mr_loader *l;
    if (!l) need(mr_loader_open(&l, rig_source(), rig_loader_config(), &err), "loader");
    return l;
}

/* One whose batches lie on the device, for the trainer. */
static mr_loader *rig_device_loader(void)
{
    static mr_loader *l;
    mr_loader_config *c = rig_loader_config();
    c->keep = 0;
    c->devices = rig_devices();
    c->device_count = 1;
    if (!l) need(mr_loader_open(&l, rig_source(), c, &err), "loader with a device");
    return l;
}

static mr_batch *rig_empty_batch(void)
{
    mr_batch *b = rig_copy(NULL, sizeof *b);
    rig_resize(b, sizeof *b);
    return b;
}

static mr_batch *rig_batch(void)
{
    static mr_batch *b;
    if (b) return b;
    b = rig_empty_batch();
    need(mr_loader_next(rig_loader(), b, MR_FOREVER, &err), "batch");
    return b;
}

static mr_batch *rig_device_batch(void)
{
    static mr_batch *b;
    if (b) return b;
    b = rig_empty_batch();
    need(mr_loader_next(rig_device_loader(), b, MR_FOREVER, &err), "batch on the device");
    return b;
}

static mr_kept *rig_kept(void)
{
    static mr_kept *k;
    if (!k) need(mr_loader_keep(rig_loader(), rig_batch(), &k, &err), "kept batch");
    return k;
}

static mr_trace *rig_trace(void)
{
    static mr_trace *t;
    if (t) return t;
    need(mr_trace_create(&t, 16), "trace");
    mr_trace_span(t, "track", "name", 1, 2, 0);
    return t;
}

static mr_trace_part *rig_trace_part(void)
{
    static mr_trace_part p;
    void *pack;
    need(mr_trace_pack(rig_trace(), &pack, &p.bytes, &err), "pack of a trace");
    p.pack = pack;
    return &p;
}

static mr_record *rig_record(void)
{
    static mr_record *r;
    if (!r) need(mr_record_create(&r, 16), "record");
    return r;
}
static mr_replay_config *rig_replay_config(void)
{
    mr_replay_config *c = rig_copy(NULL, sizeof *c);
    *c = (mr_replay_config){.struct_size = sizeof *c,
                            .batch = 8,
                            .prefetch = 1,
                            .workers = 1,
                            .readers = 1,
                            .depth = 1,
                            .devices = 1,
                            .cores = 1,
                            .read_times = 1,
                            .decode_times = 1,
                            .copy_times = 1,
                            .step_times = 1,
                            .bytes_times = 1,
                            .read_core_times = 1,
                            .crowd_times = 1};
    return c;
}
static mr_budget *rig_budget(void)
{
    static mr_budget *b;
    if (!b) need(mr_budget_create(&b, 0), "budget");
    return b;
}
static mr_checker *rig_checker(void)
{
    static mr_checker *c;
    if (!c) need(mr_checker_create(&c), "checker");
    return c;
}
static mr_digester *rig_digester(void)
{
    static mr_digester *d;
    if (!d) need(mr_digester_create(&d), "digester");
    return d;
}
static mr_digest_share *rig_digest_share(void) { return NULL; }
static void ignore_copy(void *context, uint64_t sample, uint64_t first)
{
    (void)context, (void)sample, (void)first;
}
static mr_on_copy *rig_on_copy(void) { return ignore_copy; }
static mr_augment *rig_augment(void)
{
    static mr_augment *a;
    if (!a) need(mr_augment_create(&a, "flip", true, &err), "augmentation");
    return a;
}
static mr_own_operation *rig_own_operation(void) { return rig_room(); }

/* ---- ranks: a world of one ---- */

static mr_world_config *rig_world_config(void)
{
    mr_world_config *c = rig_copy(NULL, sizeof *c);
    mr_world_defaults(c);
    return c;
}
static mr_world *rig_world(void)
{
    static mr_world *w;
    if (!w) need(mr_world_open(&w, rig_world_config(), &err), "world");
    return w;
}

/* A crew needs several processes (train_ranks). */
static mr_crew *rig_crew(void) { return NULL; }

static mr_muster_config *rig_muster_config(void)
{
    static char job[32];
    mr_muster_config *c = rig_copy(NULL, sizeof *c);
    mr_muster_defaults(c);
    snprintf(job, sizeof job, "table %ld", (long)getpid()); /* chooses the port, too */
    c->meet = "127.0.0.1";
    c->job = job;
    c->max = 1;
    c->settle_s = 0.01;
    c->meet_s = 2;
    return c;
}
static mr_muster *rig_muster(void)
{
    static mr_muster *m;
    if (!m) need(mr_muster_open(&m, rig_muster_config(), &err), "muster");
    return m;
}

/* ---- training ---- */

static mr_net *rig_net(void)
{
    static mr_net *net;
    if (net) return net;
    need(mr_net_create(&net, "net", SIDE, SIDE, 1), "network");
    mr_net_dense(net, CLASSES, MR_ACT_NONE);
    need(mr_net_check(net, &err), "network");
    return net;
}

static mr_trainer_config *rig_trainer_config(void)
{
    mr_trainer_config *c = rig_copy(NULL, sizeof *c);
    mr_trainer_defaults(c);
    c->net = rig_net();
    c->devices = rig_devices();
    c->device_count = 1;
    c->batch = BATCH;
    c->update = *rig_update_desc();
    c->schedule.lr = 0.01f;
    c->steps_per_epoch = 8;
    return c;
}

static mr_trainer *rig_trainer(void)
{
    static mr_trainer *t;
    if (!t) need(mr_trainer_open(&t, rig_trainer_config(), &err), "trainer");
    return t;
}

static mr_fit_config *rig_fit_config(void)
{
    mr_fit_config *c = rig_copy(NULL, sizeof *c);
    mr_fit_defaults(c);
    c->max_steps = 2;
    return c;
}

static int on_outputs(void *context, const mr_outputs *outputs, mr_error *why)
{
    (void)context, (void)outputs, (void)why;
    return MR_OK;
}
static mr_outputs_config *rig_outputs_config(void)
{
    mr_outputs_config *c = rig_copy(NULL, sizeof *c);
    mr_outputs_defaults(c);
    c->on_outputs = on_outputs;
    return c;
}
static const char *rig_checkpoint_path(void)
{
    static char path[512];
    mr_checkpoint_info *info = rig_checkpoint_info();
    if (path[0]) return path;
    snprintf(path, sizeof path, "%s", rig_file("checkpoint"));
    need(mr_trainer_save(rig_trainer(), path, info, &err), "checkpoint");
    return path;
}
static mr_take_config *rig_take_config(void)
{
    mr_take_config *c = rig_copy(NULL, sizeof *c);
    mr_take_defaults(c);
    c->path = rig_checkpoint_path();
    return c;
}
static mr_exchange_config *rig_exchange_config(void)
{
    mr_exchange_config *c = rig_copy(NULL, sizeof *c);
    mr_exchange_defaults(c);
    return c;
}
static mr_checkpoint *rig_checkpoint(void)
{
    static mr_checkpoint *c;
    if (!c)
        need(mr_checkpoint_open(&c, rig_checkpoint_path(), MR_USE_EVALUATE, &err), "a checkpoint's settings");
    return c;
}
static mr_measure_config *rig_measure_config(void)
{
    mr_measure_config *c = rig_copy(NULL, sizeof *c);
    mr_measure_defaults(c);
    c->seconds = 0;
    c->height = c->width = SIDE;
    c->channels = 1;
    c->classes = CLASSES;
    return c;
}
/* A file with this text. */
static const char *rig_text_file(const char *name, const char *text)
{
    static char path[512];
    mr_output_config force;
    mr_output_defaults(&force);
    force.force = true;
    snprintf(path, sizeof path, "%s/%s", mrt_temp(), name);
    need(mr_output_whole(path, text, strlen(text), &force, &err), name);
    return path;
}
#define RIG_LOG "{\"event\": \"start\", \"seed\": 1, \"data\": \"set\", \"augment\": \"none\"}\n"
static const char *rig_log(void)
{
    return rig_text_file("log.jsonl", RIG_LOG "{\"event\": \"bad\", \"sample\": 1}\n");
}
static mr_run_page *rig_run_page(void)
{
    mr_run_page *p; /* a call may close it */
    need(mr_run_page_open(&p, NULL, &err), "page");
    need(mr_run_page_add_text(p, "log", RIG_LOG, sizeof RIG_LOG - 1, &err), "log");
    return p;
}
static mr_stats_bound *rig_stats_bound(void)
{
    static mr_stats_bound bound = {.by = "decode"};
    return &bound;
}
static mr_synth_config *rig_synth_config(void)
{
    mr_synth_config *c = rig_copy(NULL, sizeof *c);
    mr_synth_defaults(c);
    c->classes = 2;
    c->count = 1;
    c->size = 8;
    return c;
}
static mr_run_note *rig_run_note(void) { return NULL; }
static mr_run_config *rig_run_config(void)
{
    static mr_loader_config loader;
    mr_run_config *c = rig_copy(NULL, sizeof *c);
    mr_run_defaults(c);
    mr_loader_defaults(&loader);
    loader.batch = BATCH;
    loader.workers = 1;
    c->data = rig_records();
    c->net = rig_net();
    c->loader = &loader;
    return c;
}
static mr_run *rig_run(void)
{
    mr_run *r; /* a call may close it */
    need(mr_run_open(&r, rig_run_config(), &err), "run");
    return r;
}
static const char *rig_sweep_file(void) { return rig_text_file("sweep.txt", "data = d\nmodel = a | b\n"); }
static mr_sweep *rig_sweep(void)
{
    mr_sweep *s; /* a call may close it */
    need(mr_sweep_open(&s, rig_sweep_file(), &err), "sweep");
    return s;
}
static mr_form_trial *rig_form_trial(void)
{
    mr_form_trial *t; /* a call may close it */
    need(mr_form_trial_open(&t, rig_source(), NULL, &err), "samples in other forms");
    return t;
}
static mr_confusion *rig_confusion(void)
{
    mr_confusion *c; /* a call may destroy it */
    need(mr_confusion_create(&c, CLASSES, &err), "confusion matrix");
    return c;
}
static mr_views *rig_views(void)
{
    mr_views *v; /* the same */
    need(mr_views_create(&v, "flip", NULL, &err), "views");
    return v;
}
static mr_outputs *rig_outputs(void)
{
    static const mr_outputs none = {.struct_size = sizeof none, .classes = CLASSES};
    return rig_copy(&none, sizeof none);
}
static mr_form *rig_form(void)
{
    static mr_form form = {.store = MR_STORE_JPEG};
    return &form;
}
static void take_pass(void *context, const mr_pass_time *p)
{
    (void)context;
    (void)p;
}
static mr_pass_taken *rig_pass_taken(void) { return take_pass; }
static mr_logger *rig_logger(void)
{
    static mr_logger *l;
    mr_logger_config *c = rig_logger_config();
    c->metrics = "0";
    c->loader = rig_loader();
    if (!l) need(mr_logger_open(&l, c, &err), "logger");
    return l;
}
static mr_snapshot *rig_snapshot(void)
{
    static mr_snapshot *s;
    if (s) return s;
    need(mr_snapshot_create(&s), "snapshot");
    need(mr_trainer_snapshot(rig_trainer(), s, rig_checkpoint_info(), &err), "snapshot");
    return s;
}
static mr_run_folder *rig_run_folder(void)
{
    static mr_run_folder *f;
    if (!f) need(mr_run_folder_open(&f, rig_file("run"), &err), "folder of a run");
    return f;
}
static const mr_field *rig_field(void) { return &fields[0]; }
static mr_conv *rig_conv(void)
{
    static mr_conv c;
    c = (mr_conv){.filters = 2, .kernel = 3, .stride = 1, .padding = MR_PAD_SAME};
    return &c;
}
static mr_pool *rig_pool(void)
{
    static mr_pool p;
    p = (mr_pool){.kernel = 2, .stride = 2};
    return &p;
}
static mr_norm *rig_norm(void)
{
    static mr_norm n;
    n = (mr_norm){.momentum = 0.9f, .epsilon = 1e-3f};
    return &n;
}
static const mr_model *rig_model(void) { return mr_model_at(0); }
/* Calls from here on run in a child of the process that opened all handles. */
static void rig_fork(void)
{
    const pid_t child = fork();
    int status = 0;
    if (child == 0) {
        alarm(mrt_seconds(20));
        return;
    }
    waitpid(child, &status, 0);
    if (WIFSIGNALED(status)) {
        signal(WTERMSIG(status), SIG_DFL);
        raise(WTERMSIG(status));
    }
    _exit(WEXITSTATUS(status));
}

static long drain_until_called(long (*cell)(void))
{
    mr_batch *b;
    then = cell;
    rig_batch(); /* it stays held */
    rig_device_batch();
    armed = true;
    do b = rig_empty_batch();
    while (mr_loader_next(rig_loader(), b, MR_FOREVER, &err) == MR_OK);
    return then_result;
}

static long rig_in_worker(long (*cell)(void))
{
    in_worker = true;
    return drain_until_called(cell);
}

static long rig_in_on_bad(long (*cell)(void))
{
    in_on_bad = true;
    return drain_until_called(cell);
}

static long rig_after_stop(long (*cell)(void))
{
    rig_batch();
    rig_device_batch();
    mr_loader_stop(rig_loader());
    mr_loader_stop(rig_device_loader());
    return cell();
}

static void on_step(void *context, uint64_t epoch, uint64_t step, uint64_t steps_per_epoch, double rate)
{
    (void)context, (void)epoch, (void)step, (void)steps_per_epoch, (void)rate;
    call_then();
}

static long rig_in_on_step(long (*cell)(void))
{
    mr_fit_config *c = rig_fit_config();
    then = cell;
    c->callbacks.on_step = on_step;
    mr_fit(rig_trainer(), rig_device_loader(), c, NULL, &err);
    return then_result;
}

#include "rig_values.h"

#include "library_cells.h"

/* ---- running ---- */

static void run_cell(const struct cell *c)
{
    const int silent = open("/dev/null", O_WRONLY);
    if (!getenv("MRT_LOUD")) dup2(silent, STDERR_FILENO);
    alarm(mrt_seconds(20));
    const long result = c->run();
    if (write(report_fd, &result, sizeof result) != sizeof result) _exit(98);
    _exit(0);
}

static bool is_right(const struct cell *c, long result) { return c->want == RIG_ANY || result == c->want; }

static bool check(const struct cell *c)
{
    int fds[2], status = 0;
    long result = LONG_MIN;
    if (pipe2(fds, O_CLOEXEC) != 0) return false;
    report_fd = fds[1];
    fflush(NULL);
    const pid_t child = fork();
    if (child == 0) run_cell(c);
    close(fds[1]);
    const bool reported = read(fds[0], &result, sizeof result) == sizeof result;
    close(fds[0]);
    waitpid(child, &status, 0);
    if (WIFSIGNALED(status) && WTERMSIG(status) == SIGALRM) printf("HANGS  %s\n", c->name);
    else if (WIFSIGNALED(status)) printf("CRASH  %s: %s\n", c->name, strsignal(WTERMSIG(status)));
    else if (!reported || status) printf("ENDED  %s: exit status %d\n", c->name, WEXITSTATUS(status));
    else if (!is_right(c, result)) printf("WRONG  %s: expected %ld, found %ld\n", c->name, c->want, result);
    return reported && status == 0 && is_right(c, result);
}

int main(int argc, char **argv)
{
    size_t run = 0, wrong = 0;
    mrt_temp();
    for (size_t i = 0; i < sizeof cells / sizeof *cells; i++) {
        if (argc > 1 && !strstr(cells[i].name, argv[1])) continue;
        run++;
        wrong += !check(&cells[i]);
    }
    printf("%zu cells, %zu wrong\n", run, wrong);
    return wrong != 0;
}
