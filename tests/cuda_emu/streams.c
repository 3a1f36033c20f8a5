/* tests/cuda_emu/streams.c: streams and events: queued, waited for, asked. Recording is in graphs.c. */
#include "tests/cuda_emu/inside.h"

/* ---- streams ---- */

static CUresult stream_create(CUstream *out, unsigned flags, int priority)
{
    (void)priority; /* any number: the driver takes the nearest it has */
    if (!out || (flags & ~(unsigned)CU_STREAM_NON_BLOCKING)) return CUDA_ERROR_INVALID_VALUE;
    if (!(flags & CU_STREAM_NON_BLOCKING))
        emu_violation("cuStreamCreateWithPriority: the stream would wait for the default stream");
    CUstream s = emu_handle_new(sizeof *s, EMU_STREAM, emu_current_device());
    if (!s) return CUDA_ERROR_OUT_OF_MEMORY;
    s->slot = emu_slot_take(s);
    if (s->slot < 0) {
        emu_handle_end(&s->head);
        return CUDA_ERROR_OUT_OF_MEMORY;
    }
    *out = s;
    return CUDA_SUCCESS;
}

CUresult CUDAAPI cuStreamCreateWithPriority(CUstream *phStream, unsigned flags, int priority)
{
    EMU_CALL("cuStreamCreateWithPriority", CUDA_ERROR_OUT_OF_MEMORY, emu_ready_here(),
             stream_create(phStream, flags, priority));
}

static CUresult priorities(int *least, int *greatest)
{
    if (least) *least = 0;
    if (greatest) *greatest = -5;
    return CUDA_SUCCESS;
}

CUresult CUDAAPI cuCtxGetStreamPriorityRange(int *leastPriority, int *greatestPriority)
{
    EMU_CALL("cuCtxGetStreamPriorityRange", CUDA_ERROR_INVALID_CONTEXT, emu_ready_here(),
             priorities(leastPriority, greatestPriority));
}

static CUresult stream_destroy(CUstream s)
{
    static const char call[] = "cuStreamDestroy";
    if (emu_check(s, EMU_STREAM, call) != CUDA_SUCCESS) return CUDA_ERROR_INVALID_HANDLE;
    if (s->capture) emu_capture_break(s->capture, CUDA_ERROR_STREAM_CAPTURE_INVALIDATED);
    const uint64_t queued = emu_slot_queued(s->slot);
    if (emu_host.at[s->slot] < s->clock.at[s->slot] && !emu_context(s->head.device)->dead) {
        emu_violation("%s: stream %llu of GPU %d has work that the program does not know to be over (%s)",
                      call, (unsigned long long)s->head.number, s->head.device,
                      emu_slot_over(s->slot, queued) ? "it is" : "it is not");
    }
    if (!emu_slot_over(s->slot, queued)) emu_drain();
    emu_handle_end(&s->head);
    return CUDA_SUCCESS;
}

CUresult CUDAAPI cuStreamDestroy(CUstream hStream)
{
    EMU_END_CALL("cuStreamDestroy", stream_destroy(hStream));
}

/* What may not happen to a stream that records; breaks the recording. */
static CUresult not_while_recording(CUstream s, const char *call)
{
    if (!s->capture) return emu_capture_forbids(call);
    emu_capture_break(s->capture, CUDA_ERROR_STREAM_CAPTURE_INVALIDATED);
    return CUDA_ERROR_STREAM_CAPTURE_UNSUPPORTED;
}

static CUresult stream_sync(CUstream s)
{
    static const char call[] = "cuStreamSynchronize";
    CUresult rc = not_while_recording(s, call);
    if (rc != CUDA_SUCCESS) return rc;
    const emu_clock clock = s->clock;
    rc = emu_wait_for(s->slot, emu_slot_queued(s->slot), call, emu_context(s->head.device));
    if (rc == CUDA_SUCCESS) emu_host_learns(&clock);
    return rc;
}

CUresult CUDAAPI cuStreamSynchronize(CUstream hStream)
{
    EMU_CALL("cuStreamSynchronize", CUDA_ERROR_ILLEGAL_ADDRESS,
             emu_stream_here(hStream, "cuStreamSynchronize"), stream_sync(hStream));
}

static CUresult stream_query(CUstream s)
{
    const CUresult rc = not_while_recording(s, "cuStreamQuery");
    if (rc != CUDA_SUCCESS) return rc;
    if (!emu_poll(s->slot, emu_slot_queued(s->slot))) return CUDA_ERROR_NOT_READY;
    emu_host_learns(&s->clock);
    return CUDA_SUCCESS;
}

CUresult CUDAAPI cuStreamQuery(CUstream hStream)
{
    EMU_CALL("cuStreamQuery", CUDA_ERROR_ILLEGAL_ADDRESS, emu_stream_here(hStream, "cuStreamQuery"),
             stream_query(hStream));
}

/* ---- events ---- */

static CUresult event_create(CUevent *out, unsigned flags)
{
    const unsigned known = CU_EVENT_BLOCKING_SYNC | CU_EVENT_DISABLE_TIMING | CU_EVENT_INTERPROCESS;
    if (!out || (flags & ~known) || ((flags & CU_EVENT_INTERPROCESS) && !(flags & CU_EVENT_DISABLE_TIMING))) {
        return CUDA_ERROR_INVALID_VALUE;
    }
    CUevent e = emu_handle_new(sizeof *e, EMU_EVENT, emu_current_device());
    if (!e) return CUDA_ERROR_OUT_OF_MEMORY;
    e->timed = !(flags & CU_EVENT_DISABLE_TIMING);
    *out = e;
    return CUDA_SUCCESS;
}

CUresult CUDAAPI cuEventCreate(CUevent *phEvent, unsigned Flags)
{
    EMU_CALL("cuEventCreate", CUDA_ERROR_OUT_OF_MEMORY, emu_ready_here(), event_create(phEvent, Flags));
}

static bool known_over(const struct CUevent_st *e) { return !e->recorded || emu_host.at[e->slot] >= e->seq; }

static CUresult event_destroy(CUevent e)
{
    if (emu_check(e, EMU_EVENT, "cuEventDestroy") != CUDA_SUCCESS) return CUDA_ERROR_INVALID_HANDLE;
    if (!known_over(e) && !emu_context(e->head.device)->dead) {
        emu_violation(
            "cuEventDestroy: event %llu of GPU %d marks work that the program does not know to be over",
            (unsigned long long)e->head.number, e->head.device);
    }
    emu_handle_end(&e->head);
    return CUDA_SUCCESS;
}

CUresult CUDAAPI cuEventDestroy(CUevent hEvent) { EMU_END_CALL("cuEventDestroy", event_destroy(hEvent)); }

static CUresult event_record(CUevent e, CUstream s)
{
    const CUresult rc = emu_check(e, EMU_EVENT, "cuEventRecord");
    if (rc != CUDA_SUCCESS) return rc;
    if (e->head.device != s->head.device) return CUDA_ERROR_INVALID_HANDLE;
    if (s->capture) {
        e->capture = s->capture->number;
        memcpy(e->lane_clock, s->lane_clock, sizeof e->lane_clock);
        return s->capture->broken ? CUDA_ERROR_STREAM_CAPTURE_INVALIDATED : CUDA_SUCCESS;
    }
    return emu_submit(
        &(struct emu_submission){.streams = &s, .stream_count = 1, .name = "cuEventRecord", .mark = e});
}

CUresult CUDAAPI cuEventRecord(CUevent hEvent, CUstream hStream)
{
    EMU_CALL("cuEventRecord", CUDA_ERROR_INVALID_HANDLE, emu_stream_here(hStream, "cuEventRecord"),
             event_record(hEvent, hStream));
}

static CUresult stream_wait(CUstream s, CUevent e, unsigned flags)
{
    const CUresult rc = emu_check(e, EMU_EVENT, "cuStreamWaitEvent");
    if (rc != CUDA_SUCCESS) return rc;
    if (flags != CU_EVENT_WAIT_DEFAULT) return CUDA_ERROR_INVALID_VALUE;
    if (s->capture || e->capture) return emu_capture_wait(s, e);
    if (!e->recorded) return CUDA_SUCCESS;
    emu_clock_join(&s->clock, &e->clock);
    return emu_submit(&(struct emu_submission){.streams = &s,
                                               .stream_count = 1,
                                               .name = "cuStreamWaitEvent",
                                               .wait = true,
                                               .wait_slot = e->slot,
                                               .wait_seq = e->seq});
}

CUresult CUDAAPI cuStreamWaitEvent(CUstream hStream, CUevent hEvent, unsigned Flags)
{
    EMU_CALL("cuStreamWaitEvent", CUDA_ERROR_INVALID_HANDLE, emu_stream_here(hStream, "cuStreamWaitEvent"),
             stream_wait(hStream, hEvent, Flags));
}

/* An event that a recording has used says nothing outside of it. */
static CUresult event_of_host(CUevent e, const char *call)
{
    CUresult rc = emu_check(e, EMU_EVENT, call);
    if (rc == CUDA_SUCCESS) rc = emu_context(e->head.device)->dead;
    if (rc == CUDA_SUCCESS && e->capture) {
        emu_capture_break_number(e->capture);
        rc = CUDA_ERROR_CAPTURED_EVENT;
    }
    return rc == CUDA_SUCCESS ? emu_capture_forbids(call) : rc;
}

static CUresult event_query(CUevent e)
{
    const CUresult rc = event_of_host(e, "cuEventQuery");
    if (rc != CUDA_SUCCESS || !e->recorded) return rc;
    if (!emu_poll(e->slot, e->seq)) return CUDA_ERROR_NOT_READY;
    emu_host_learns(&e->clock);
    return CUDA_SUCCESS;
}

CUresult CUDAAPI cuEventQuery(CUevent hEvent)
{
    EMU_CALL("cuEventQuery", CUDA_ERROR_ILLEGAL_ADDRESS, emu_ready(), event_query(hEvent));
}

static CUresult event_sync(CUevent e)
{
    CUresult rc = event_of_host(e, "cuEventSynchronize");
    if (rc != CUDA_SUCCESS || !e->recorded) return rc;
    const emu_clock clock = e->clock; /* another thread may record the event again while this one waits */
    rc = emu_wait_for(e->slot, e->seq, "cuEventSynchronize", emu_context(e->head.device));
    if (rc == CUDA_SUCCESS) emu_host_learns(&clock);
    return rc;
}

CUresult CUDAAPI cuEventSynchronize(CUevent hEvent)
{
    EMU_CALL("cuEventSynchronize", CUDA_ERROR_ILLEGAL_ADDRESS, emu_ready(), event_sync(hEvent));
}

static CUresult elapsed(float *out, CUevent start, CUevent end)
{
    static const char call[] = "cuEventElapsedTime";
    if (!out) return CUDA_ERROR_INVALID_VALUE;
    if (emu_check(start, EMU_EVENT, call) != CUDA_SUCCESS ||
        emu_check(end, EMU_EVENT, call) != CUDA_SUCCESS) {
        return CUDA_ERROR_INVALID_HANDLE;
    }
    if (!start->recorded || !end->recorded || !start->timed || !end->timed ||
        start->head.device != end->head.device || start->capture || end->capture)
        return CUDA_ERROR_INVALID_HANDLE;
    if (!emu_slot_over(start->slot, start->seq) || !emu_slot_over(end->slot, end->seq))
        return CUDA_ERROR_NOT_READY;
    *out = (float)((double)((int64_t)end->stamp_ns - (int64_t)start->stamp_ns) * 1e-6);
    return CUDA_SUCCESS;
}

CUresult CUDAAPI cuEventElapsedTime(float *pMilliseconds, CUevent hStart, CUevent hEnd)
{
    EMU_CALL("cuEventElapsedTime", CUDA_ERROR_INVALID_HANDLE, emu_ready(),
             elapsed(pMilliseconds, hStart, hEnd));
}
