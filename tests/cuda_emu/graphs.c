/* tests/cuda_emu/graphs.c: recording of streams, graphs and their launches.
 *
 * A recording has lanes: lane 0 is the stream it began on, others are streams that waited for an event of the
 * recording. Each lane counts its operations and knows, as streams outside do, how much of the other lanes is
 * over when its last is. Accesses are checked lane against lane while they are recorded, so a launch may
 * queue the nodes in the order of their recording, which the graph allows. */
#include "tests/cuda_emu/inside.h"

static struct emu_capture *open_captures;
static uint64_t capture_numbers;

/* ---- recording ---- */

void emu_capture_break(struct emu_capture *c, CUresult why)
{
    if (!c->broken) c->broken = why;
}

static struct emu_capture *capture_of(uint64_t number)
{
    struct emu_capture *c = open_captures;
    while (c && c->number != number) c = c->next;
    return c;
}

void emu_capture_break_number(uint64_t number)
{
    struct emu_capture *c = capture_of(number);
    if (c) emu_capture_break(c, CUDA_ERROR_STREAM_CAPTURE_INVALIDATED);
}

CUresult emu_capture_forbids(const char *call)
{
    CUresult rc = CUDA_SUCCESS;
    for (struct emu_capture *c = open_captures; c; c = c->next) {
        const bool mine = pthread_equal(c->thread, pthread_self());
        if (c->mode == CU_STREAM_CAPTURE_MODE_RELAXED || (!mine && c->mode != CU_STREAM_CAPTURE_MODE_GLOBAL))
            continue;
        emu_log("%s breaks recording %llu", call, (unsigned long long)c->number);
        emu_capture_break(c, CUDA_ERROR_STREAM_CAPTURE_INVALIDATED);
        rc = CUDA_ERROR_STREAM_CAPTURE_UNSUPPORTED;
    }
    return rc;
}

static CUresult begin(CUstream s, CUstreamCaptureMode mode)
{
    if (mode != CU_STREAM_CAPTURE_MODE_GLOBAL && mode != CU_STREAM_CAPTURE_MODE_THREAD_LOCAL &&
        mode != CU_STREAM_CAPTURE_MODE_RELAXED)
        return CUDA_ERROR_INVALID_VALUE;
    if (s->capture) return CUDA_ERROR_ILLEGAL_STATE;
    struct emu_capture *c = calloc(1, sizeof *c);
    CUgraph g = c ? emu_handle_new(sizeof *g, EMU_GRAPH, s->head.device) : NULL;
    if (!g) {
        free(c);
        return CUDA_ERROR_OUT_OF_MEMORY;
    }
    *c = (struct emu_capture){.number = ++capture_numbers,
                              .graph = g,
                              .lanes = {s},
                              .lane_count = 1,
                              .mode = mode,
                              .thread = pthread_self(),
                              .next = open_captures};
    open_captures = c;
    s->capture = c;
    s->lane = 0;
    memset(s->lane_clock, 0, sizeof s->lane_clock);
    return CUDA_SUCCESS;
}

CUresult CUDAAPI cuStreamBeginCapture(CUstream hStream, CUstreamCaptureMode mode)
{
    EMU_CALL("cuStreamBeginCapture", CUDA_ERROR_ILLEGAL_STATE,
             emu_stream_here(hStream, "cuStreamBeginCapture"), begin(hStream, mode));
}

/* A wait in which the stream or the event records. */
CUresult emu_capture_wait(CUstream s, CUevent e)
{
    struct emu_capture *theirs = e->capture ? capture_of(e->capture) : NULL;
    if (s->capture && !e->capture) {
        if (!e->recorded) return CUDA_SUCCESS;
        emu_capture_break(s->capture, CUDA_ERROR_STREAM_CAPTURE_INVALIDATED);
        return CUDA_ERROR_STREAM_CAPTURE_ISOLATION;
    }
    if (!theirs) { /* its recording has ended */
        if (s->capture) emu_capture_break(s->capture, CUDA_ERROR_STREAM_CAPTURE_INVALIDATED);
        return CUDA_ERROR_CAPTURED_EVENT;
    }
    if (s->capture && s->capture != theirs) {
        emu_capture_break(s->capture, CUDA_ERROR_STREAM_CAPTURE_INVALIDATED);
        emu_capture_break(theirs, CUDA_ERROR_STREAM_CAPTURE_INVALIDATED);
        return CUDA_ERROR_STREAM_CAPTURE_MERGE;
    }
    if (!s->capture) {
        if (theirs->lane_count == EMU_MAX_LANES) return CUDA_ERROR_OUT_OF_MEMORY;
        s->capture = theirs;
        s->lane = theirs->lane_count;
        theirs->lanes[theirs->lane_count++] = s;
        memset(s->lane_clock, 0, sizeof s->lane_clock);
    }
    for (int i = 0; i < EMU_MAX_LANES; i++)
        s->lane_clock[i] = mri_max_u64(s->lane_clock[i], e->lane_clock[i]);
    return CUDA_SUCCESS;
}

static bool grow(CUgraph g)
{
    if (g->count < g->cap) return true;
    const size_t cap = g->cap ? 2 * g->cap : 64;
    struct emu_node *more = realloc(g->nodes, cap * sizeof(*more));
    if (!more) return false;
    g->nodes = more;
    g->cap = cap;
    return true;
}

static void check_lanes(const struct emu_capture *c, CUstream s, const struct emu_submission *what)
{
    for (size_t i = 0; i < c->graph->count; i++) {
        const struct emu_node *n = &c->graph->nodes[i];
        if (n->lane == s->lane || n->seq <= s->lane_clock[n->lane]) continue;
        if (!emu_spans_conflict(n->spans, n->span_count, what->spans, what->span_count)) continue;
        emu_violation("%s (#%llu) and %s are recorded on streams %llu and %llu, use the same memory, and "
                      "nothing orders the two",
                      what->name, (unsigned long long)emu_calls(), n->name,
                      (unsigned long long)s->head.number, (unsigned long long)c->lanes[n->lane]->head.number);
        return;
    }
}

CUresult emu_record(CUstream s, const struct emu_submission *what, CUmodule module)
{
    struct emu_capture *c = s->capture;
    if (c->broken) return CUDA_ERROR_STREAM_CAPTURE_INVALIDATED;
    if (!emu_spans_live(what->spans, what->span_count, &s->head.device, 1, what->name, emu_calls()))
        return CUDA_ERROR_ILLEGAL_ADDRESS;
    if (!grow(c->graph)) return CUDA_ERROR_OUT_OF_MEMORY;
    check_lanes(c, s, what);
    struct emu_node *n = &c->graph->nodes[c->graph->count++];
    *n = (struct emu_node){.name = what->name,
                           .payload = what->payload,
                           .span_count = what->span_count,
                           .watched = what->watched,
                           .watched_bytes = what->watched_bytes,
                           .module = module,
                           .lane = s->lane,
                           .seq = ++c->last[s->lane]};
    if (n->payload) n->payload->refs++;
    for (int i = 0; i < n->span_count; i++) n->spans[i] = what->spans[i];
    s->lane_clock[s->lane] = n->seq;
    return CUDA_SUCCESS;
}

static void close_capture(struct emu_capture *c)
{
    for (int i = 0; i < c->lane_count; i++) c->lanes[i]->capture = NULL;
    struct emu_capture **p = &open_captures;
    while (*p != c) p = &(*p)->next;
    *p = c->next;
    free(c);
}

static CUresult end(CUstream s, CUgraph *out)
{
    if (!out) return CUDA_ERROR_INVALID_VALUE;
    *out = NULL;
    struct emu_capture *c = s->capture;
    if (!c) return CUDA_ERROR_ILLEGAL_STATE;
    if (c->lanes[0] != s) {
        emu_capture_break(c, CUDA_ERROR_STREAM_CAPTURE_INVALIDATED);
        return CUDA_ERROR_STREAM_CAPTURE_UNMATCHED;
    }
    if (c->mode != CU_STREAM_CAPTURE_MODE_RELAXED && !pthread_equal(c->thread, pthread_self())) {
        return CUDA_ERROR_STREAM_CAPTURE_WRONG_THREAD;
    }
    for (int i = 1; i < c->lane_count; i++) {
        if (s->lane_clock[i] < c->last[i]) emu_capture_break(c, CUDA_ERROR_STREAM_CAPTURE_UNJOINED);
    }
    const CUresult rc = c->broken;
    CUgraph g = c->graph;
    close_capture(c);
    if (rc != CUDA_SUCCESS) {
        emu_nodes_drop(g->nodes, g->count);
        emu_handle_end(&g->head);
        return rc;
    }
    *out = g;
    return CUDA_SUCCESS;
}

/* If it is set to fail, it still ends the recording, as a broken one. */
static CUresult end_failing(CUstream s, CUgraph *out)
{
    if (s && s->head.kind == EMU_STREAM && s->capture)
        emu_capture_break(s->capture, CUDA_ERROR_STREAM_CAPTURE_INVALIDATED);
    return end(s, out);
}

CUresult CUDAAPI cuStreamEndCapture(CUstream hStream, CUgraph *phGraph)
{
    static const char call[] = "cuStreamEndCapture";
    const bool fails = emu_fails(call);
    emu_lock();
    CUresult rc = emu_stream_here(hStream, call);
    if (rc == CUDA_SUCCESS) rc = fails ? end_failing(hStream, phGraph) : end(hStream, phGraph);
    emu_unlock();
    return emu_told(call, rc);
}

/* ---- graphs ---- */

void emu_nodes_drop(struct emu_node *nodes, size_t count)
{
    for (size_t i = 0; i < count; i++) emu_payload_drop(nodes[i].payload);
    free(nodes);
}

static CUresult instantiate(CUgraphExec *out, CUgraph g, unsigned long long flags)
{
    if (!out || emu_check(g, EMU_GRAPH, "cuGraphInstantiate") != CUDA_SUCCESS)
        return CUDA_ERROR_INVALID_VALUE;
    if (flags & ~(unsigned long long)(CUDA_GRAPH_INSTANTIATE_FLAG_AUTO_FREE_ON_LAUNCH |
                                      CUDA_GRAPH_INSTANTIATE_FLAG_USE_NODE_PRIORITY)) {
        return CUDA_ERROR_INVALID_VALUE;
    }
    struct emu_node *nodes = calloc(g->count ? g->count : 1, sizeof *nodes);
    CUgraphExec x = nodes ? emu_handle_new(sizeof *x, EMU_GRAPH_EXEC, g->head.device) : NULL;
    if (!x) {
        free(nodes);
        return CUDA_ERROR_OUT_OF_MEMORY;
    }
    for (size_t i = 0; i < g->count; i++) {
        nodes[i] = g->nodes[i];
        if (nodes[i].payload) nodes[i].payload->refs++;
    }
    x->nodes = nodes;
    x->count = g->count;
    *out = x;
    return CUDA_SUCCESS;
}

CUresult CUDAAPI cuGraphInstantiate(CUgraphExec *phGraphExec, CUgraph hGraph, unsigned long long flags)
{
    EMU_CALL("cuGraphInstantiate", CUDA_ERROR_OUT_OF_MEMORY, emu_ready(),
             instantiate(phGraphExec, hGraph, flags));
}

/* Launches of one graph follow each other, whatever their streams. */
static CUresult launch(CUgraphExec x, CUstream s)
{
    if (emu_check(x, EMU_GRAPH_EXEC, "cuGraphLaunch") != CUDA_SUCCESS) return CUDA_ERROR_INVALID_VALUE;
    if (x->head.device != s->head.device) return CUDA_ERROR_INVALID_VALUE;
    if (s->capture) {
        emu_violation("cuGraphLaunch into a stream that records: graphs within graphs are not emulated");
        return CUDA_ERROR_STREAM_CAPTURE_UNSUPPORTED;
    }
    CUresult rc = CUDA_SUCCESS;
    if (x->launched) {
        emu_clock_join(&s->clock, &x->clock);
        rc = emu_submit(&(struct emu_submission){.streams = &s,
                                                 .stream_count = 1,
                                                 .name = "cuGraphLaunch",
                                                 .wait = true,
                                                 .wait_slot = x->slot,
                                                 .wait_seq = x->seq});
    }
    for (size_t i = 0; i < x->count && rc == CUDA_SUCCESS; i++) {
        const struct emu_node *n = &x->nodes[i];
        rc = emu_put(s,
                     &(struct emu_submission){.streams = &s,
                                              .stream_count = 1,
                                              .name = n->name,
                                              .spans = n->spans,
                                              .span_count = n->span_count,
                                              .payload = n->payload,
                                              .watched = n->watched,
                                              .watched_bytes = n->watched_bytes},
                     n->module);
    }
    x->launched = true;
    x->slot = s->slot;
    x->seq = emu_slot_queued(s->slot);
    x->clock = s->clock;
    return rc;
}

CUresult CUDAAPI cuGraphLaunch(CUgraphExec hGraphExec, CUstream hStream)
{
    EMU_CALL("cuGraphLaunch", CUDA_ERROR_INVALID_VALUE, emu_stream_here(hStream, "cuGraphLaunch"),
             launch(hGraphExec, hStream));
}

static CUresult exec_destroy(CUgraphExec x)
{
    if (emu_check(x, EMU_GRAPH_EXEC, "cuGraphExecDestroy") != CUDA_SUCCESS) return CUDA_ERROR_INVALID_VALUE;
    if (x->launched && emu_host.at[x->slot] < x->seq && !emu_context(x->head.device)->dead) {
        emu_violation("cuGraphExecDestroy: the program does not know that the last launch of graph %llu of "
                      "GPU %d is over",
                      (unsigned long long)x->head.number, x->head.device);
    }
    emu_nodes_drop(x->nodes, x->count);
    x->nodes = NULL;
    emu_handle_end(&x->head);
    return CUDA_SUCCESS;
}

CUresult CUDAAPI cuGraphExecDestroy(CUgraphExec hGraphExec)
{
    EMU_END_CALL("cuGraphExecDestroy", exec_destroy(hGraphExec));
}

static CUresult graph_destroy(CUgraph g)
{
    if (emu_check(g, EMU_GRAPH, "cuGraphDestroy") != CUDA_SUCCESS) return CUDA_ERROR_INVALID_VALUE;
    emu_nodes_drop(g->nodes, g->count);
    g->nodes = NULL;
    emu_handle_end(&g->head);
    return CUDA_SUCCESS;
}

CUresult CUDAAPI cuGraphDestroy(CUgraph hGraph) { EMU_END_CALL("cuGraphDestroy", graph_destroy(hGraph)); }
