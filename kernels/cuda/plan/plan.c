/* kernels/cuda/plan/plan.c: choosing an algorithm and running it. plan.h has the picture.
 *
 * Rules this follows, by section of NVIDIA's cuDNN backend documentation:
 *   - a heuristics descriptor's results are written into descriptors that the caller created, up to the
 *     number that it requests ("Backend Descriptor Types", CUDNN_BACKEND_ENGINEHEUR_DESCRIPTOR; the same for
 *     an engine configuration's engine and knobs);
 *   - an engine describes its arithmetic by numerical notes ("cudnnBackendNumericalNote_t"); f32 tensors on
 *     tensor cores mean TF32;
 *   - a configuration from heuristics need not finalise as a plan: one goes on to the next ("Heuristics");
 *   - a plan's workspace is known once it is finalised, and everything it runs on comes in a variant pack.
 * The descriptors a plan was made from live as long as it does.
 *
 * Seen with 9.19 on an H100: each pass of the usual networks in f32 (exact and TF32), bf16 and f16,
 * deterministic or not, has algorithms that run, are recorded, and can be built again from what is
 * remembered; the 68 choices of ResNet-50 take 1.5 s. */
#include <stdio.h>

#include "kernels/cuda/plan/planner.h"

#define MAX_LISTED 64 /* configurations looked at of each list */
#define MAX_TRIED  16 /* of them run and timed: the first dozen are often one engine with its knobs turned */
#define FEW_TRIED                                                                                            \
    4 /* with fewer, the rest is often slow or needs too much workspace; the fallback list may have better   \
         ones */
#define TIMED_RUNS  3
#define LONG_RUN_MS 30.0f /* from here on one timed run is enough */
#define FAR_BEHIND  1.5f
#define HOPELESS_NS                                                                                          \
    300000000ull /* a first run of so long, loading included, is not timed where there is                    \
                    a choice */
#define SEARCH_NS                                                                                            \
    300000000ull /* nor is another one tried after so long: lists begin with the best guesses, and their     \
                    ends may take seconds for a run */

struct mri_cuda_plan {
    const struct mri_cuda_api *api;
    mri_cuda_device *dev;
    struct mri_cuda_conv conv;
    struct mri_cuda_conv_graph graph;
    cudnnBackendDescriptor_t engine, knob[CUDNN_KNOB_TYPE_COUNTS]; /* when it was built from a remembered
                                                                      choice */
    cudnnBackendDescriptor_t config, plan;
    int64_t workspace_bytes;
    float milliseconds;
    cudnnBackendDescriptor_t pack; /* of the addresses below; made when they change */
    const void *x, *w, *y, *workspace;
};

/* One configuration on its way to becoming the plan. */
struct candidate {
    cudnnBackendDescriptor_t config, plan;
    int64_t workspace_bytes;
    bool records;
    float milliseconds;
};

/* Memory that candidates run on. */
struct trial {
    bool possible;
    void *x, *w, *y, *workspace;
    size_t workspace_bytes;
};

struct search {
    mri_cuda_plan *plan;
    struct mri_cuda_planner *planner;
    size_t workspace_limit;
    struct trial trial;
    struct candidate best;
    uint32_t tried, listed, refused;
    uint64_t begun_ns;
    char last[160]; /* why the last one failed */
};

/* ---- running ---- */

static cudnnStatus_t bind(mri_cuda_plan *p, const void *x, const void *w, const void *y,
                          const void *workspace)
{
    if (p->pack && x == p->x && w == p->w && y == p->y && workspace == p->workspace)
        return CUDNN_STATUS_SUCCESS;
    const int64_t ids[3] = {MRI_CUDA_ID_X, MRI_CUDA_ID_W, MRI_CUDA_ID_Y};
    const void *const addresses[3] = {x, w, y};
    struct mri_cuda_descriptor_builder m = {.api = p->api, .status = CUDNN_STATUS_SUCCESS};
    mri_cuda_descriptor_destroy(p->api, &p->pack);
    cudnnBackendDescriptor_t pack = mri_cuda_descriptor_create(&m, CUDNN_BACKEND_VARIANT_PACK_DESCRIPTOR);
    mri_cuda_descriptor_set(&m, pack, CUDNN_ATTR_VARIANT_PACK_UNIQUE_IDS, CUDNN_TYPE_INT64, 3, ids);
    mri_cuda_descriptor_set(&m, pack, CUDNN_ATTR_VARIANT_PACK_DATA_POINTERS, CUDNN_TYPE_VOID_PTR, 3,
                            addresses);
    mri_cuda_descriptor_set(&m, pack, CUDNN_ATTR_VARIANT_PACK_WORKSPACE, CUDNN_TYPE_VOID_PTR, 1, &workspace);
    mri_cuda_descriptor_finalize(&m, pack);
    if (m.status != CUDNN_STATUS_SUCCESS) {
        mri_cuda_descriptor_destroy(p->api, &pack);
        return m.status;
    }
    p->pack = pack;
    p->x = x;
    p->w = w;
    p->y = y;
    p->workspace = workspace;
    return CUDNN_STATUS_SUCCESS;
}

int mri_cuda_plan_run(mri_cuda_plan *p, mri_cuda_stream *s, const void *x, const void *w, const void *y,
                      void *workspace, const char *what, mr_error *err)
{
    if (((uintptr_t)x | (uintptr_t)w | (uintptr_t)y) % MRI_CUDA_PLAN_ALIGN)
        return mr_error_set(err, MR_EINVAL,
                            "%s: input %p, weights %p and output %p must start at multiples of %u bytes",
                            what, x, w, y, MRI_CUDA_PLAN_ALIGN);
    cudnnHandle_t handle;
    const int rc = mri_cuda_cudnn(s, &handle, err);
    if (rc) return rc;
    cudnnStatus_t status = bind(p, x, w, y, workspace);
    if (status == CUDNN_STATUS_SUCCESS) status = p->api->cudnnBackendExecute(handle, p->plan, p->pack);
    return mri_cuda_check_cudnn(p->dev, status, what, err);
}

/* ---- candidates ---- */

static void candidate_free(const struct mri_cuda_api *api, struct candidate *c)
{
    mri_cuda_descriptor_destroy(api, &c->plan);
    mri_cuda_descriptor_destroy(api, &c->config);
    *c = (struct candidate){0};
}

static void note_failure(struct search *se, const char *step, cudnnStatus_t status)
{
    snprintf(se->last, sizeof se->last, "%s: %s", step, se->plan->api->cudnnGetErrorString(status));
}

/* May an engine with these notes compute this? Inputs rounded further than their type and sums kept in less
 * than float are never wanted. Tensor cores take f32 only as TF32. Fourier transforms (cuDNN 9.19, H100) gave
 * gradients of mnist-cnn in f32 that were wrong in the third digit, where every other engine agreed with the
 * plain C to the seventh. */
static bool refused(const struct mri_cuda_conv *conv, const cudnnBackendNumericalNote_t *notes, int64_t count)
{
    for (int64_t i = 0; i < count; i++) switch (notes[i]) {
        case CUDNN_NUMERICAL_NOTE_DOWN_CONVERT_INPUTS:
        case CUDNN_NUMERICAL_NOTE_FFT:
        case CUDNN_NUMERICAL_NOTE_REDUCED_PRECISION_REDUCTION: return true;
        case CUDNN_NUMERICAL_NOTE_TENSOR_CORE:
            if (conv->dtype == MR_TENSOR_F32 && !conv->tf32) return true;
            break;
        case CUDNN_NUMERICAL_NOTE_NONDETERMINISTIC:
            if (conv->deterministic) return true;
            break;
        default: break;
        }
    return false;
}

static cudnnStatus_t read_notes(const struct mri_cuda_api *api, cudnnBackendDescriptor_t config,
                                cudnnBackendNumericalNote_t *notes, int64_t *count)
{
    struct mri_cuda_descriptor_builder m = {.api = api, .status = CUDNN_STATUS_SUCCESS};
    cudnnBackendDescriptor_t engine = mri_cuda_descriptor_create(&m, CUDNN_BACKEND_ENGINE_DESCRIPTOR);
    mri_cuda_descriptor_get(&m, config, CUDNN_ATTR_ENGINECFG_ENGINE, CUDNN_TYPE_BACKEND_DESCRIPTOR, 1, NULL,
                            &engine);
    mri_cuda_descriptor_get(&m, engine, CUDNN_ATTR_ENGINE_NUMERICAL_NOTE, CUDNN_TYPE_NUMERICAL_NOTE,
                            CUDNN_NUMERICAL_NOTE_TYPE_COUNT, count, notes);
    mri_cuda_descriptor_destroy(api, &engine);
    if (*count > CUDNN_NUMERICAL_NOTE_TYPE_COUNT)
        *count = CUDNN_NUMERICAL_NOTE_TYPE_COUNT; /* a newer library may know more */
    return m.status;
}

/* A finalised plan of a configuration, and the workspace it wants. */
static cudnnStatus_t finalise(const struct mri_cuda_api *api, cudnnHandle_t handle,
                              cudnnBackendDescriptor_t config, cudnnBackendDescriptor_t *out,
                              int64_t *workspace_bytes)
{
    struct mri_cuda_descriptor_builder m = {.api = api, .status = CUDNN_STATUS_SUCCESS};
    *out = mri_cuda_descriptor_create(&m, CUDNN_BACKEND_EXECUTION_PLAN_DESCRIPTOR);
    mri_cuda_descriptor_set(&m, *out, CUDNN_ATTR_EXECUTION_PLAN_HANDLE, CUDNN_TYPE_HANDLE, 1, &handle);
    mri_cuda_descriptor_set(&m, *out, CUDNN_ATTR_EXECUTION_PLAN_ENGINE_CONFIG, CUDNN_TYPE_BACKEND_DESCRIPTOR,
                            1, &config);
    mri_cuda_descriptor_finalize(&m, *out);
    mri_cuda_descriptor_get(&m, *out, CUDNN_ATTR_EXECUTION_PLAN_WORKSPACE_SIZE, CUDNN_TYPE_INT64, 1, NULL,
                            workspace_bytes);
    if (m.status != CUDNN_STATUS_SUCCESS) mri_cuda_descriptor_destroy(api, out);
    return m.status;
}

/* ---- remembered choices ---- */

static cudnnStatus_t read_choice(const struct mri_cuda_api *api, cudnnBackendDescriptor_t config,
                                 struct mri_cuda_choice *out)
{
    cudnnBackendDescriptor_t engine, knobs[CUDNN_KNOB_TYPE_COUNTS];
    struct mri_cuda_descriptor_builder m = {.api = api, .status = CUDNN_STATUS_SUCCESS};
    *out = (struct mri_cuda_choice){0};
    engine = mri_cuda_descriptor_create(&m, CUDNN_BACKEND_ENGINE_DESCRIPTOR);
    for (int i = 0; i < CUDNN_KNOB_TYPE_COUNTS; i++)
        knobs[i] = mri_cuda_descriptor_create(&m, CUDNN_BACKEND_KNOB_CHOICE_DESCRIPTOR);
    mri_cuda_descriptor_get(&m, config, CUDNN_ATTR_ENGINECFG_ENGINE, CUDNN_TYPE_BACKEND_DESCRIPTOR, 1, NULL,
                            &engine);
    mri_cuda_descriptor_get(&m, engine, CUDNN_ATTR_ENGINE_GLOBAL_INDEX, CUDNN_TYPE_INT64, 1, NULL,
                            &out->engine);
    mri_cuda_descriptor_get(&m, config, CUDNN_ATTR_ENGINECFG_KNOB_CHOICES, CUDNN_TYPE_BACKEND_DESCRIPTOR,
                            CUDNN_KNOB_TYPE_COUNTS, &out->knob_count, knobs);
    if (out->knob_count > CUDNN_KNOB_TYPE_COUNTS) out->knob_count = CUDNN_KNOB_TYPE_COUNTS;
    for (int64_t i = 0; i < out->knob_count; i++) {
        mri_cuda_descriptor_get(&m, knobs[i], CUDNN_ATTR_KNOB_CHOICE_KNOB_TYPE, CUDNN_TYPE_KNOB_TYPE, 1, NULL,
                                &out->knob[i]);
        mri_cuda_descriptor_get(&m, knobs[i], CUDNN_ATTR_KNOB_CHOICE_KNOB_VALUE, CUDNN_TYPE_INT64, 1, NULL,
                                &out->value[i]);
    }
    for (int i = 0; i < CUDNN_KNOB_TYPE_COUNTS; i++) mri_cuda_descriptor_destroy(api, &knobs[i]);
    mri_cuda_descriptor_destroy(api, &engine);
    return m.status;
}

static void unbuild(mri_cuda_plan *p)
{
    mri_cuda_descriptor_destroy(p->api, &p->pack);
    mri_cuda_descriptor_destroy(p->api, &p->plan);
    mri_cuda_descriptor_destroy(p->api, &p->config);
    for (int i = 0; i < CUDNN_KNOB_TYPE_COUNTS; i++) mri_cuda_descriptor_destroy(p->api, &p->knob[i]);
    mri_cuda_descriptor_destroy(p->api, &p->engine);
}

/* The plan of a choice. False, and nothing built, when it cannot be had here or wants too much workspace. */
static bool build_choice(mri_cuda_plan *p, cudnnHandle_t handle, const struct mri_cuda_choice *choice,
                         size_t workspace_limit)
{
    struct mri_cuda_descriptor_builder m = {.api = p->api, .status = CUDNN_STATUS_SUCCESS};
    p->engine = mri_cuda_descriptor_create(&m, CUDNN_BACKEND_ENGINE_DESCRIPTOR);
    mri_cuda_descriptor_set(&m, p->engine, CUDNN_ATTR_ENGINE_OPERATION_GRAPH, CUDNN_TYPE_BACKEND_DESCRIPTOR,
                            1, &p->graph.graph);
    mri_cuda_descriptor_set(&m, p->engine, CUDNN_ATTR_ENGINE_GLOBAL_INDEX, CUDNN_TYPE_INT64, 1,
                            &choice->engine);
    mri_cuda_descriptor_finalize(&m, p->engine);
    for (int64_t i = 0; i < choice->knob_count; i++) {
        p->knob[i] = mri_cuda_descriptor_create(&m, CUDNN_BACKEND_KNOB_CHOICE_DESCRIPTOR);
        mri_cuda_descriptor_set(&m, p->knob[i], CUDNN_ATTR_KNOB_CHOICE_KNOB_TYPE, CUDNN_TYPE_KNOB_TYPE, 1,
                                &choice->knob[i]);
        mri_cuda_descriptor_set(&m, p->knob[i], CUDNN_ATTR_KNOB_CHOICE_KNOB_VALUE, CUDNN_TYPE_INT64, 1,
                                &choice->value[i]);
        mri_cuda_descriptor_finalize(&m, p->knob[i]);
    }
    p->config = mri_cuda_descriptor_create(&m, CUDNN_BACKEND_ENGINECFG_DESCRIPTOR);
    mri_cuda_descriptor_set(&m, p->config, CUDNN_ATTR_ENGINECFG_ENGINE, CUDNN_TYPE_BACKEND_DESCRIPTOR, 1,
                            &p->engine);
    if (choice->knob_count > 0)
        mri_cuda_descriptor_set(&m, p->config, CUDNN_ATTR_ENGINECFG_KNOB_CHOICES,
                                CUDNN_TYPE_BACKEND_DESCRIPTOR, choice->knob_count, p->knob);
    mri_cuda_descriptor_finalize(&m, p->config);
    if (m.status == CUDNN_STATUS_SUCCESS)
        m.status = finalise(p->api, handle, p->config, &p->plan, &p->workspace_bytes);
    p->milliseconds = choice->milliseconds;
    const bool good = m.status == CUDNN_STATUS_SUCCESS && (uint64_t)p->workspace_bytes <= workspace_limit;
    if (!good) unbuild(p);
    return good;
}

/* ---- trying on real memory ---- */

static int trial_memory(struct search *se, size_t bytes, void **out, mr_error *err)
{
    mri_cuda_device *dev = se->plan->dev;
    const int rc = dev->base.backend->memory->device_alloc(&dev->base, bytes, out, err);
    return rc == MR_ENOMEM ? MR_EAGAIN : rc; /* it is only for measuring */
}

static void trial_close(struct search *se)
{
    mri_cuda_device *dev = se->plan->dev;
    void *const all[4] = {se->trial.workspace, se->trial.y, se->trial.w, se->trial.x};
    if (se->trial.x) dev->api->cuStreamSynchronize(se->planner->stream); /* queued work uses the memory */
    for (int i = 0; i < 4; i++)
        if (all[i]) dev->base.backend->memory->device_free(&dev->base, all[i]);
    se->trial = (struct trial){0};
}

/* Memory for the three tensors, zeroed because old contents could be anything. MR_EAGAIN: not enough free
 * memory. */
static int trial_open(struct search *se, mr_error *err)
{
    static const int ids[3] = {MRI_CUDA_ID_X, MRI_CUDA_ID_W, MRI_CUDA_ID_Y};
    void **const places[3] = {&se->trial.x, &se->trial.w, &se->trial.y};
    mri_cuda_device *dev = se->plan->dev;
    int rc = MR_OK;
    for (int i = 0; i < 3 && !rc; i++) {
        const size_t bytes = mri_cuda_conv_bytes(&se->plan->conv, ids[i]);
        rc = trial_memory(se, bytes, places[i], err);
        if (!rc)
            rc = mri_cuda_check(
                dev, dev->api->cuMemsetD8Async((CUdeviceptr)*places[i], 0, bytes, se->planner->stream),
                "conv2d: memory to measure on", err);
    }
    se->trial.possible = !rc;
    if (rc) trial_close(se);
    return rc;
}

static int trial_workspace(struct search *se, size_t bytes, mr_error *err)
{
    struct trial *t = &se->trial;
    mri_cuda_device *dev = se->plan->dev;
    if (bytes <= t->workspace_bytes) return MR_OK;
    if (t->workspace) dev->base.backend->memory->device_free(&dev->base, t->workspace);
    t->workspace = NULL;
    t->workspace_bytes = 0;
    const int rc = trial_memory(se, bytes, &t->workspace, err);
    if (!rc) t->workspace_bytes = bytes;
    return rc;
}

/* Record one run, as cuda_graph.c would, into a graph that is thrown away. Whatever goes wrong only means
 * that it cannot be recorded. */
static bool trial_records(struct search *se, const struct candidate *c)
{
    const struct mri_cuda_api *api = se->plan->api;
    CUgraph graph = NULL;
    if (api->cuStreamBeginCapture(se->planner->stream, CU_STREAM_CAPTURE_MODE_RELAXED) != CUDA_SUCCESS)
        return false;
    const cudnnStatus_t status = api->cudnnBackendExecute(se->planner->handle, c->plan, se->plan->pack);
    const CUresult ended = api->cuStreamEndCapture(se->planner->stream, &graph);
    const bool good = status == CUDNN_STATUS_SUCCESS && ended == CUDA_SUCCESS && graph;
    if (graph) api->cuGraphDestroy(graph);
    return good;
}

/* The shortest of a few runs; of one run if that is far slower than the best; cuDNN's refusals are
 * MR_EAGAIN. */
static int trial_time(struct search *se, struct candidate *c, mr_error *err)
{
    struct mri_cuda_planner *pl = se->planner;
    const struct mri_cuda_api *api = pl->dev->api;
    for (int run = 0; run < TIMED_RUNS && c->milliseconds < LONG_RUN_MS; run++) {
        float ms = 0;
        CUresult r = api->cuEventRecord(pl->from, pl->stream);
        if (r == CUDA_SUCCESS) {
            const cudnnStatus_t status = api->cudnnBackendExecute(pl->handle, c->plan, se->plan->pack);
            if (status != CUDNN_STATUS_SUCCESS) {
                note_failure(se, "running", status);
                return MR_EAGAIN;
            }
            r = api->cuEventRecord(pl->to, pl->stream);
        }
        if (r == CUDA_SUCCESS) r = api->cuEventSynchronize(pl->to);
        if (r == CUDA_SUCCESS) r = api->cuEventElapsedTime(&ms, pl->from, pl->to);
        const int rc = mri_cuda_check(pl->dev, r, "conv2d: measuring", err);
        if (rc) return rc;
        if (ms < 1e-6f) ms = 1e-6f; /* below what events resolve; 0 would mean not measured */
        if (run == 0 || ms < c->milliseconds) c->milliseconds = ms;
        if (se->best.plan && se->best.records >= c->records && ms > FAR_BEHIND * se->best.milliseconds) break;
    }
    return MR_OK;
}

/* Warm up, see whether it can be recorded, time. MR_EAGAIN: pass it over. */
static int try_out(struct search *se, struct candidate *c, mr_error *err)
{
    mri_cuda_plan *p = se->plan;
    int rc = trial_workspace(se, (size_t)c->workspace_bytes, err);
    if (rc == MR_EAGAIN)
        snprintf(se->last, sizeof se->last, "no device memory for %lld bytes of workspace",
                 (long long)c->workspace_bytes);
    if (rc) return rc;
    mri_cuda_descriptor_destroy(p->api, &p->pack); /* of the candidate before */
    const uint64_t begun_ns = mri_now_ns();
    cudnnStatus_t status = bind(p, se->trial.x, se->trial.w, se->trial.y, se->trial.workspace);
    if (status == CUDNN_STATUS_SUCCESS)
        status = p->api->cudnnBackendExecute(se->planner->handle, c->plan, p->pack);
    rc = mri_cuda_check(p->dev, p->api->cuStreamSynchronize(se->planner->stream), "conv2d: measuring", err);
    if (rc) return rc;
    if (status != CUDNN_STATUS_SUCCESS) {
        note_failure(se, "running", status);
        return MR_EAGAIN;
    }
    c->records = trial_records(se, c);
    const uint64_t first_ns = mri_now_ns() - begun_ns;
    if (se->best.plan && se->best.records >= c->records && first_ns > HOPELESS_NS) {
        c->milliseconds = (float)(1e-6 * (double)first_ns);
        return MR_OK;
    }
    rc = trial_time(se, c, err);
    if (rc)
        p->api->cuStreamSynchronize(se->planner->stream); /* its memory is about to be freed or used again */
    return rc;
}

/* ---- searching ---- */

static bool better(const struct candidate *c, const struct candidate *best)
{
    if (!best->plan) return true;
    if (c->records != best->records) return c->records;
    return c->milliseconds < 0.98f * best->milliseconds; /* within noise the heuristics' order stands */
}

static bool enough(const struct search *se)
{
    if (!se->best.plan) return false;
    if (!se->trial.possible || se->tried >= MAX_TRIED) return true;
    return se->best.records && mri_now_ns() - se->begun_ns > SEARCH_NS;
}

/* Look at one configuration, which is the search's from here. *done: no further one is needed. */
static int consider(struct search *se, cudnnBackendDescriptor_t config, bool *done, mr_error *err)
{
    const struct mri_cuda_api *api = se->plan->api;
    cudnnBackendNumericalNote_t notes[CUDNN_NUMERICAL_NOTE_TYPE_COUNT];
    struct candidate c = {.config = config};
    int64_t count = 0;
    int rc = MR_EAGAIN;
    se->listed++;
    cudnnStatus_t status = read_notes(api, config, notes, &count);
    if (status != CUDNN_STATUS_SUCCESS) note_failure(se, "notes", status);
    else if (refused(&se->plan->conv, notes, count)) se->refused++;
    else if ((status = finalise(api, se->planner->handle, config, &c.plan, &c.workspace_bytes)) !=
             CUDNN_STATUS_SUCCESS)
        note_failure(se, "finalising", status);
    else if ((uint64_t)c.workspace_bytes > se->workspace_limit)
        snprintf(se->last, sizeof se->last, "%lld bytes of workspace where %zu are allowed",
                 (long long)c.workspace_bytes, se->workspace_limit);
    else rc = se->trial.possible ? try_out(se, &c, err) : MR_OK;

    if (rc == MR_OK) se->tried++;
    if (rc == MR_OK && better(&c, &se->best)) {
        candidate_free(api, &se->best);
        se->best = c;
    } else {
        candidate_free(api, &c);
    }
    *done = enough(se);
    return rc == MR_EAGAIN ? MR_OK : rc;
}

/* All configurations of one list of heuristics; *count of them, the rest NULL. */
static cudnnStatus_t list_configs(struct search *se, cudnnBackendHeurMode_t mode,
                                  cudnnBackendDescriptor_t *configs, int64_t *count)
{
    const struct mri_cuda_api *api = se->plan->api;
    struct mri_cuda_descriptor_builder m = {.api = api, .status = CUDNN_STATUS_SUCCESS};
    int64_t there = 0, written = 0;
    cudnnBackendDescriptor_t h = mri_cuda_descriptor_create(&m, CUDNN_BACKEND_ENGINEHEUR_DESCRIPTOR);
    mri_cuda_descriptor_set(&m, h, CUDNN_ATTR_ENGINEHEUR_OPERATION_GRAPH, CUDNN_TYPE_BACKEND_DESCRIPTOR, 1,
                            &se->plan->graph.graph);
    mri_cuda_descriptor_set(&m, h, CUDNN_ATTR_ENGINEHEUR_MODE, CUDNN_TYPE_HEUR_MODE, 1, &mode);
    mri_cuda_descriptor_finalize(&m, h);
    mri_cuda_descriptor_get(&m, h, CUDNN_ATTR_ENGINEHEUR_RESULTS, CUDNN_TYPE_BACKEND_DESCRIPTOR, 0, &there,
                            NULL);
    if (there > MAX_LISTED) there = MAX_LISTED;
    for (int64_t i = 0; i < there; i++)
        configs[i] = mri_cuda_descriptor_create(&m, CUDNN_BACKEND_ENGINECFG_DESCRIPTOR);
    if (there > 0)
        mri_cuda_descriptor_get(&m, h, CUDNN_ATTR_ENGINEHEUR_RESULTS, CUDNN_TYPE_BACKEND_DESCRIPTOR, there,
                                &written, configs);
    for (int64_t i = written < there ? written : there; i < there; i++)
        mri_cuda_descriptor_destroy(api, &configs[i]);
    *count = written < there ? written : there;
    mri_cuda_descriptor_destroy(api, &h);
    return m.status;
}

static int search_list(struct search *se, cudnnBackendHeurMode_t mode, mr_error *err)
{
    cudnnBackendDescriptor_t configs[MAX_LISTED] = {NULL};
    int64_t count = 0;
    int rc = MR_OK;
    bool done = false;
    const cudnnStatus_t status = list_configs(se, mode, configs, &count);
    if (status != CUDNN_STATUS_SUCCESS) note_failure(se, "heuristics", status);
    for (int64_t i = 0; i < count; i++) {
        if (rc || done) mri_cuda_descriptor_destroy(se->plan->api, &configs[i]);
        else rc = consider(se, configs[i], &done, err);
    }
    return rc;
}

static int nothing_found(const struct search *se, mr_error *err)
{
    char text[320];
    return mr_error_set(
        err, MR_EUNSUPPORTED,
        "conv2d: cuDNN %zu on %s has no algorithm for the %s: %u offered, %u of them refused for "
        "their precision or order; the last: %s",
        se->plan->api->cudnnGetVersion(), se->plan->dev->base.hardware,
        mri_cuda_conv_text(&se->plan->conv, text, sizeof text), se->listed, se->refused,
        se->last[0] ? se->last : "none was tried");
}

/* The best configuration becomes the plan's own. */
static int search(struct search *se, bool measure, mr_error *err)
{
    int rc = measure ? trial_open(se, err) : MR_OK;
    if (rc == MR_EAGAIN) rc = MR_OK;
    se->begun_ns = mri_now_ns();
    if (!rc) rc = search_list(se, CUDNN_HEUR_MODE_A, err);
    if (!rc && !enough(se) && se->tried < FEW_TRIED) rc = search_list(se, CUDNN_HEUR_MODE_FALLBACK, err);
    mri_cuda_descriptor_destroy(se->plan->api, &se->plan->pack); /* of the trial's memory */
    trial_close(se);
    if (!rc && !se->best.plan) rc = nothing_found(se, err);
    if (rc) {
        candidate_free(se->plan->api, &se->best);
        return rc;
    }
    se->plan->config = se->best.config;
    se->plan->plan = se->best.plan;
    se->plan->workspace_bytes = se->best.workspace_bytes;
    se->plan->milliseconds = se->best.milliseconds;
    return MR_OK;
}

/* Tell the table. Had another thread chosen meanwhile, do as it did, so that replicas run the same. */
static void remember(mri_cuda_plan *p, cudnnHandle_t handle, size_t workspace_limit)
{
    struct mri_cuda_choice mine, theirs;
    if (read_choice(p->api, p->config, &mine) != CUDNN_STATUS_SUCCESS) return;
    mine.milliseconds = p->milliseconds;
    theirs = mine;
    if (mri_cuda_choice_keep(p->dev, &p->conv, &theirs)) return;
    unbuild(p);
    if (!build_choice(p, handle, &theirs, workspace_limit)) build_choice(p, handle, &mine, workspace_limit);
}

static int choose(mri_cuda_plan *p, struct mri_cuda_planner *planner, size_t workspace_limit, bool measure,
                  mr_error *err)
{
    struct mri_cuda_choice choice;
    struct search se = {.plan = p, .planner = planner, .workspace_limit = workspace_limit};
    const cudnnStatus_t status = mri_cuda_conv_graph_make(&p->graph, p->api, planner->handle, &p->conv);
    if (status != CUDNN_STATUS_SUCCESS) {
        note_failure(&se, "the operation", status);
        if (CUDNN_STATUS_CATEGORY(status) == CUDNN_STATUS_NOT_SUPPORTED) return nothing_found(&se, err);
        return mri_cuda_check_cudnn(p->dev, status, "conv2d: describing the operation", err);
    }
    if (mri_cuda_choice_find(p->dev, &p->conv, measure, &choice)) {
        if (build_choice(p, planner->handle, &choice, workspace_limit)) return MR_OK;
        mri_cuda_choice_forget(p->dev, &p->conv);
    }
    const int rc = search(&se, measure, err);
    if (rc) return rc;
    remember(p, planner->handle, workspace_limit);
    return p->plan ? MR_OK
                   : mr_error_set(err, MR_EDEVICE, "conv2d: cuDNN does not build the same plan twice");
}

int mri_cuda_plan_create(mri_cuda_plan **out, mri_cuda_device *dev, const struct mri_cuda_conv *conv,
                         size_t workspace_limit, bool measure, mr_error *err)
{
    *out = NULL;
    mri_cuda_plan *p = calloc(1, sizeof *p);
    if (!p) return mr_error_set(err, MR_ENOMEM, "conv2d: out of memory");
    p->api = dev->api;
    p->dev = dev;
    p->conv = *conv;
    struct mri_cuda_planner *planner;
    int rc = mri_cuda_planner_acquire(&planner, dev, err);
    if (!rc) {
        rc = choose(p, planner, workspace_limit, measure && !conv->deterministic, err);
        mri_cuda_planner_release(planner);
    }
    if (rc) mri_cuda_plan_destroy(p);
    else *out = p;
    return rc;
}

void mri_cuda_plan_destroy(mri_cuda_plan *p)
{
    if (!p) return;
    unbuild(p);
    mri_cuda_conv_graph_free(&p->graph, p->api);
    free(p);
}

size_t mri_cuda_plan_workspace(const mri_cuda_plan *p) { return (size_t)p->workspace_bytes; }
