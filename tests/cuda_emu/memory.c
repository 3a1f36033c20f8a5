/* tests/cuda_emu/memory.c: pools, device memory in stream order, pinned memory, copies and fills. */
#include "tests/cuda_emu/inside.h"

/* ---- pools ---- */

static CUresult pool_create(CUmemoryPool *out, const CUmemPoolProps *props)
{
    if (!out || !props) return CUDA_ERROR_INVALID_VALUE;
    static const unsigned char zero[sizeof props->reserved];
    if (props->allocType != CU_MEM_ALLOCATION_TYPE_PINNED ||
        memcmp(props->reserved, zero, sizeof zero) != 0 || props->win32SecurityAttributes)
        return CUDA_ERROR_INVALID_VALUE;
    if (props->location.type != CU_MEM_LOCATION_TYPE_DEVICE ||
        props->handleTypes != CU_MEM_HANDLE_TYPE_NONE) {
        return CUDA_ERROR_NOT_SUPPORTED;
    }
    if (props->location.id < 0 || props->location.id >= emu_device_count()) return CUDA_ERROR_INVALID_VALUE;
    CUmemoryPool p = emu_handle_new(sizeof *p, EMU_POOL, props->location.id);
    if (!p) return CUDA_ERROR_OUT_OF_MEMORY;
    *out = p;
    return CUDA_SUCCESS;
}

CUresult CUDAAPI cuMemPoolCreate(CUmemoryPool *pool, const CUmemPoolProps *poolProps)
{
    EMU_CALL("cuMemPoolCreate", CUDA_ERROR_OUT_OF_MEMORY, emu_ready(), pool_create(pool, poolProps));
}

static CUresult pool_destroy(CUmemoryPool pool)
{
    if (emu_check(pool, EMU_POOL, "cuMemPoolDestroy") != CUDA_SUCCESS) return CUDA_ERROR_INVALID_VALUE;
    if (pool->allocations > 0) {
        emu_violation("cuMemPoolDestroy: %llu allocations of pool %llu of GPU %d were not freed",
                      (unsigned long long)pool->allocations, (unsigned long long)pool->head.number,
                      pool->head.device);
    }
    emu_handle_end(&pool->head);
    return CUDA_SUCCESS;
}

CUresult CUDAAPI cuMemPoolDestroy(CUmemoryPool pool) { EMU_END_CALL("cuMemPoolDestroy", pool_destroy(pool)); }

static CUresult pool_set(CUmemoryPool pool, CUmemPool_attribute attr, const void *value)
{
    if (!value || emu_check(pool, EMU_POOL, "cuMemPoolSetAttribute") != CUDA_SUCCESS)
        return CUDA_ERROR_INVALID_VALUE;
    switch (attr) {
    case CU_MEMPOOL_ATTR_REUSE_FOLLOW_EVENT_DEPENDENCIES:
    case CU_MEMPOOL_ATTR_REUSE_ALLOW_OPPORTUNISTIC:
    case CU_MEMPOOL_ATTR_REUSE_ALLOW_INTERNAL_DEPENDENCIES:
    case CU_MEMPOOL_ATTR_RELEASE_THRESHOLD: return CUDA_SUCCESS;
    case CU_MEMPOOL_ATTR_RESERVED_MEM_HIGH:
    case CU_MEMPOOL_ATTR_USED_MEM_HIGH:
        return *(const cuuint64_t *)value == 0 ? CUDA_SUCCESS : CUDA_ERROR_INVALID_VALUE;
    default: return CUDA_ERROR_INVALID_VALUE;
    }
}

CUresult CUDAAPI cuMemPoolSetAttribute(CUmemoryPool pool, CUmemPool_attribute attr, void *value)
{
    EMU_CALL("cuMemPoolSetAttribute", CUDA_ERROR_INVALID_VALUE, emu_ready(), pool_set(pool, attr, value));
}

static CUresult pool_get(CUmemoryPool pool, CUmemPool_attribute attr, cuuint64_t *out)
{
    if (!out || emu_check(pool, EMU_POOL, "cuMemPoolGetAttribute") != CUDA_SUCCESS)
        return CUDA_ERROR_INVALID_VALUE;
    switch (attr) {
    case CU_MEMPOOL_ATTR_RESERVED_MEM_CURRENT:
    case CU_MEMPOOL_ATTR_USED_MEM_CURRENT: *out = pool->bytes; return CUDA_SUCCESS;
    case CU_MEMPOOL_ATTR_RESERVED_MEM_HIGH:
    case CU_MEMPOOL_ATTR_USED_MEM_HIGH: *out = pool->high_bytes; return CUDA_SUCCESS;
    default:
        emu_violation("cuMemPoolGetAttribute: attribute %d is not emulated", (int)attr);
        return CUDA_ERROR_INVALID_VALUE;
    }
}

CUresult CUDAAPI cuMemPoolGetAttribute(CUmemoryPool pool, CUmemPool_attribute attr, void *value)
{
    EMU_CALL("cuMemPoolGetAttribute", CUDA_ERROR_INVALID_VALUE, emu_ready(), pool_get(pool, attr, value));
}

static CUresult pool_access(CUmemoryPool pool, const CUmemAccessDesc *map, size_t count)
{
    if (!map || count == 0 || emu_check(pool, EMU_POOL, "cuMemPoolSetAccess") != CUDA_SUCCESS)
        return CUDA_ERROR_INVALID_VALUE;
    for (size_t i = 0; i < count; i++) {
        const int device = map[i].location.id;
        if (map[i].location.type != CU_MEM_LOCATION_TYPE_DEVICE) return CUDA_ERROR_INVALID_VALUE;
        if (device < 0 || device >= emu_device_count()) return CUDA_ERROR_INVALID_DEVICE;
        if (map[i].flags != CU_MEM_ACCESS_FLAGS_PROT_NONE &&
            map[i].flags != CU_MEM_ACCESS_FLAGS_PROT_READWRITE) {
            return CUDA_ERROR_INVALID_VALUE;
        }
        if (device == pool->head.device && map[i].flags == CU_MEM_ACCESS_FLAGS_PROT_NONE)
            return CUDA_ERROR_INVALID_VALUE;
        pool->peers[device] = map[i].flags == CU_MEM_ACCESS_FLAGS_PROT_READWRITE;
    }
    return CUDA_SUCCESS;
}

CUresult CUDAAPI cuMemPoolSetAccess(CUmemoryPool pool, const CUmemAccessDesc *map, size_t count)
{
    EMU_CALL("cuMemPoolSetAccess", CUDA_ERROR_INVALID_DEVICE, emu_ready(), pool_access(pool, map, count));
}

/* ---- device memory ---- */

static CUresult mem_info(size_t *free_bytes, size_t *total_bytes)
{
    if (!free_bytes || !total_bytes) return CUDA_ERROR_INVALID_VALUE;
    *total_bytes = emu_settings()->memory_bytes;
    *free_bytes = *total_bytes - emu_current()->used_bytes;
    return CUDA_SUCCESS;
}

CUresult CUDAAPI cuMemGetInfo(size_t *free, size_t *total)
{
    EMU_CALL("cuMemGetInfo", CUDA_ERROR_INVALID_CONTEXT, emu_ready_here(), mem_info(free, total));
}

static CUresult alloc_async(CUdeviceptr *out, size_t bytes, CUmemoryPool pool, CUstream s)
{
    if (!out || bytes == 0) return CUDA_ERROR_INVALID_VALUE;
    if (emu_check(pool, EMU_POOL, "cuMemAllocFromPoolAsync") != CUDA_SUCCESS) return CUDA_ERROR_INVALID_VALUE;
    if (pool->head.device != s->head.device)
        return CUDA_ERROR_NOT_SUPPORTED; /* another device's pool: not emulated */
    if (s->capture) {
        emu_capture_break(s->capture, CUDA_ERROR_STREAM_CAPTURE_INVALIDATED);
        return CUDA_ERROR_STREAM_CAPTURE_UNSUPPORTED; /* memory of a graph: not emulated */
    }
    CUcontext context = emu_context(s->head.device);
    if (bytes > emu_settings()->memory_bytes - context->used_bytes) return CUDA_ERROR_OUT_OF_MEMORY;
    struct emu_block *b = emu_block_new(bytes, s->head.device);
    if (!b) return CUDA_ERROR_OUT_OF_MEMORY;
    b->pool = pool;
    b->context = context;
    context->used_bytes += bytes;
    context->live++;
    pool->allocations++;
    pool->bytes += bytes;
    pool->high_bytes = mri_max_u64(pool->high_bytes, pool->bytes);
    *out = (CUdeviceptr)b->at;
    const emu_span span = {(void *)b->at, bytes, true};
    return emu_put(s,
                   &(struct emu_submission){.streams = &s,
                                            .stream_count = 1,
                                            .name = "cuMemAllocFromPoolAsync",
                                            .spans = &span,
                                            .span_count = 1},
                   NULL);
}

CUresult CUDAAPI cuMemAllocFromPoolAsync(CUdeviceptr *dptr, size_t bytesize, CUmemoryPool pool,
                                         CUstream hStream)
{
    EMU_CALL("cuMemAllocFromPoolAsync", CUDA_ERROR_OUT_OF_MEMORY,
             emu_stream_here(hStream, "cuMemAllocFromPoolAsync"), alloc_async(dptr, bytesize, pool, hStream));
}

/* The block that begins here, for a free: in a violation's words when it cannot be. */
static struct emu_block *block_to_free(const void *at, bool host, const char *call)
{
    struct emu_block *b = emu_block_at(at, 1);
    if (!b || b->at != (uintptr_t)at || (b->device < 0) != host) {
        emu_violation("%s: %p is not what an allocation of this kind returned", call, at);
        return NULL;
    }
    if (b->freed_by) {
        emu_violation("%s: the memory at %p was freed before (#%llu)", call, at,
                      (unsigned long long)b->freed_number);
        return NULL;
    }
    return b;
}

static CUresult free_async(CUdeviceptr at, CUstream s)
{
    static const char call[] = "cuMemFreeAsync";
    if (emu_check(s, EMU_STREAM, call) != CUDA_SUCCESS) return CUDA_ERROR_INVALID_HANDLE;
    struct emu_block *b = block_to_free((void *)at, false, call);
    if (!b) return CUDA_ERROR_INVALID_VALUE;
    if (s->capture) {
        emu_capture_break(s->capture, CUDA_ERROR_STREAM_CAPTURE_INVALIDATED);
        return CUDA_ERROR_INVALID_VALUE; /* only memory of the graph can be freed in it */
    }
    b->context->used_bytes -= b->bytes;
    b->context->live--;
    b->pool->allocations--;
    b->pool->bytes -= b->bytes;
    const emu_span span = {(void *)b->at, b->bytes, true};
    return emu_submit(&(struct emu_submission){
        .streams = &s, .stream_count = 1, .name = call, .spans = &span, .span_count = 1, .frees = b});
}

CUresult CUDAAPI cuMemFreeAsync(CUdeviceptr dptr, CUstream hStream)
{
    EMU_END_CALL("cuMemFreeAsync", free_async(dptr, hStream));
}

/* ---- pinned memory ---- */

static CUresult host_alloc(void **out, size_t bytes, unsigned flags)
{
    const unsigned known =
        CU_MEMHOSTALLOC_PORTABLE | CU_MEMHOSTALLOC_DEVICEMAP | CU_MEMHOSTALLOC_WRITECOMBINED;
    if (!out || bytes == 0 || (flags & ~known)) return CUDA_ERROR_INVALID_VALUE;
    const CUresult rc = emu_capture_forbids("cuMemHostAlloc");
    if (rc != CUDA_SUCCESS) return rc;
    struct emu_block *b = emu_block_new(bytes, -1);
    if (!b) return CUDA_ERROR_OUT_OF_MEMORY;
    b->context = emu_current();
    b->context->live++;
    *out = (void *)b->at;
    return CUDA_SUCCESS;
}

CUresult CUDAAPI cuMemHostAlloc(void **pp, size_t bytesize, unsigned Flags)
{
    EMU_CALL("cuMemHostAlloc", CUDA_ERROR_OUT_OF_MEMORY, emu_ready_here(), host_alloc(pp, bytesize, Flags));
}

static CUresult host_free(void *at)
{
    static const char call[] = "cuMemFreeHost";
    struct emu_block *b = block_to_free(at, true, call);
    if (!b) return CUDA_ERROR_INVALID_VALUE;
    const struct emu_access *a = emu_block_busy(b, at, b->bytes, false, &emu_host);
    if (a && !emu_context(a->device)->dead) {
        emu_violation("%s: %s (#%llu, stream %llu of GPU %d) %s the %zu bytes at %p, and the program does "
                      "not know that it is over",
                      call, a->name, (unsigned long long)a->number, (unsigned long long)a->stream, a->device,
                      a->write ? "writes" : "reads", b->bytes, at);
    }
    if (a) emu_drain();
    b->context->live--;
    emu_block_free(b);
    return emu_capture_forbids(call);
}

CUresult CUDAAPI cuMemFreeHost(void *p)
{
    EMU_END_CALL("cuMemFreeHost", p ? host_free(p) : CUDA_ERROR_INVALID_VALUE);
}

/* ---- copies and fills ---- */

struct copy {
    void *to;
    const void *from; /* NULL: what follows the struct */
    size_t bytes;
    void *held; /* a copy of pageable memory, made at once */
    int byte;
};

static void run_copy(void *args)
{
    const struct copy *c = args;
    memmove(c->to, c->held ? c->held : c->from, c->bytes);
}

static void drop_copy(void *args) { free(((struct copy *)args)->held); }

static void run_fill(void *args)
{
    const struct copy *c = args;
    memset(c->to, c->byte, c->bytes);
}

static CUresult put(CUstream s, struct emu_submission what, void (*run)(void *), const struct copy *c)
{
    what.payload = emu_payload_new(run, run == run_copy ? drop_copy : NULL, c, sizeof *c);
    what.streams = &s;
    what.stream_count = 1;
    if (!what.payload) return CUDA_ERROR_OUT_OF_MEMORY;
    const CUresult rc = emu_put(s, &what, NULL);
    emu_payload_drop(what.payload);
    return rc;
}

/* Pageable memory is read before the call returns. */
static CUresult copy_in(CUdeviceptr to, const void *from, size_t bytes, CUstream s)
{
    static const char call[] = "cuMemcpyHtoDAsync";
    if (!to || !from) return CUDA_ERROR_INVALID_VALUE;
    if (bytes == 0) return CUDA_SUCCESS;
    struct copy c = {.to = (void *)to, .from = from, .bytes = bytes};
    const emu_span spans[] = {{c.to, bytes, true}, {from, bytes, false}};
    if (emu_block_at(from, 1)) {
        return put(
            s,
            (struct emu_submission){
                .name = call, .spans = spans, .span_count = 2, .watched = from, .watched_bytes = bytes},
            run_copy, &c);
    }
    if (s->capture) emu_violation("%s records a copy from memory that is not pinned", call);
    c.held = malloc(bytes);
    if (!c.held) return CUDA_ERROR_OUT_OF_MEMORY;
    memcpy(c.held, from, bytes);
    return put(s, (struct emu_submission){.name = call, .spans = spans, .span_count = 1}, run_copy, &c);
}

CUresult CUDAAPI cuMemcpyHtoDAsync(CUdeviceptr dstDevice, const void *srcHost, size_t ByteCount,
                                   CUstream hStream)
{
    EMU_CALL("cuMemcpyHtoDAsync", CUDA_ERROR_INVALID_VALUE, emu_stream_here(hStream, "cuMemcpyHtoDAsync"),
             copy_in(dstDevice, srcHost, ByteCount, hStream));
}

/* Before the copy is over the host finds poison in the destination, as long as no other queued operation uses
 * it. A copy into pageable memory is over when the call returns. */
static CUresult copy_out(void *to, CUdeviceptr from, size_t bytes, CUstream s)
{
    static const char call[] = "cuMemcpyDtoHAsync";
    if (!to || !from) return CUDA_ERROR_INVALID_VALUE;
    if (bytes == 0) return CUDA_SUCCESS;
    const struct copy c = {.to = to, .from = (const void *)from, .bytes = bytes};
    const emu_span spans[] = {{c.from, bytes, false}, {to, bytes, true}};
    struct emu_block *b = emu_block_at(to, bytes);
    if (b && !s->capture && !emu_block_busy(b, to, bytes, false, &emu_host)) memset(to, 0xff, bytes);
    if (emu_block_at(to, 1))
        return put(s, (struct emu_submission){.name = call, .spans = spans, .span_count = 2}, run_copy, &c);
    if (s->capture) emu_violation("%s records a copy to memory that is not pinned", call);
    const CUresult rc =
        put(s, (struct emu_submission){.name = call, .spans = spans, .span_count = 1}, run_copy, &c);
    if (rc != CUDA_SUCCESS || s->capture) return rc;
    emu_host_learns(&s->clock);
    return emu_wait_for(s->slot, emu_slot_queued(s->slot), call, emu_current());
}

CUresult CUDAAPI cuMemcpyDtoHAsync(void *dstHost, CUdeviceptr srcDevice, size_t ByteCount, CUstream hStream)
{
    EMU_CALL("cuMemcpyDtoHAsync", CUDA_ERROR_INVALID_VALUE, emu_stream_here(hStream, "cuMemcpyDtoHAsync"),
             copy_out(dstHost, srcDevice, ByteCount, hStream));
}

static CUresult copy_across(CUdeviceptr to, CUdeviceptr from, size_t bytes, CUstream s)
{
    if (!to || !from) return CUDA_ERROR_INVALID_VALUE;
    if (bytes == 0) return CUDA_SUCCESS;
    const struct copy c = {.to = (void *)to, .from = (const void *)from, .bytes = bytes};
    const emu_span spans[] = {{c.to, bytes, true}, {c.from, bytes, false}};
    if (to < from + bytes && from < to + bytes)
        emu_violation("cuMemcpyDtoDAsync: source and destination overlap");
    return put(s, (struct emu_submission){.name = "cuMemcpyDtoDAsync", .spans = spans, .span_count = 2},
               run_copy, &c);
}

CUresult CUDAAPI cuMemcpyDtoDAsync(CUdeviceptr dstDevice, CUdeviceptr srcDevice, size_t ByteCount,
                                   CUstream hStream)
{
    EMU_CALL("cuMemcpyDtoDAsync", CUDA_ERROR_INVALID_VALUE, emu_stream_here(hStream, "cuMemcpyDtoDAsync"),
             copy_across(dstDevice, srcDevice, ByteCount, hStream));
}

static CUresult fill(CUdeviceptr to, unsigned char byte, size_t bytes, CUstream s)
{
    if (!to) return CUDA_ERROR_INVALID_VALUE;
    if (bytes == 0) return CUDA_SUCCESS;
    const struct copy c = {.to = (void *)to, .bytes = bytes, .byte = byte};
    const emu_span span = {c.to, bytes, true};
    return put(s, (struct emu_submission){.name = "cuMemsetD8Async", .spans = &span, .span_count = 1},
               run_fill, &c);
}

CUresult CUDAAPI cuMemsetD8Async(CUdeviceptr dstDevice, unsigned char uc, size_t N, CUstream hStream)
{
    EMU_CALL("cuMemsetD8Async", CUDA_ERROR_INVALID_VALUE, emu_stream_here(hStream, "cuMemsetD8Async"),
             fill(dstDevice, uc, N, hStream));
}
