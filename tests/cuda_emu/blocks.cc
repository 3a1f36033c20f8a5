/* tests/cuda_emu/blocks.cc: a grid of threads on one processor thread.
 *
 * Blocks run one after another. The threads of a block run one after another too, on the stack of one fiber,
 * until one of them comes to a barrier or a shuffle: it is parked there with its stack, and the next thread
 * continues on another fiber. When every thread is parked or done, the runnable ones continue: the lanes of a
 * warp that all wait in a shuffle, or all threads of the block when all wait at the barrier. Anything else is
 * a barrier that some threads never reach: a violation. So a kernel without barriers costs no switches, and
 * none of the threads in a block ever sees less delay of the others than the rules allow.
 *
 * In which order blocks and threads run is drawn from the seed; device code must not care. */
#include "tests/cuda_emu/blocks.h"

#include <pthread.h>
#include <string.h>
#include <sys/mman.h>

#include <vector>

#include "tests/cuda_emu/emu.h"

#if !defined(__x86_64__)
#include <ucontext.h>
#endif
#if defined(__has_feature)
#if __has_feature(address_sanitizer)
#define __SANITIZE_ADDRESS__ 1
#endif
#if __has_feature(thread_sanitizer)
#define __SANITIZE_THREAD__ 1
#endif
#endif
#if defined(__SANITIZE_ADDRESS__)
#include <sanitizer/asan_interface.h>
#include <sanitizer/common_interface_defs.h>
#endif
#if defined(__SANITIZE_THREAD__)
#include <sanitizer/tsan_interface.h>
#endif

extern "C" uint64_t emu_random(void);

struct mrk_uint3 {
    unsigned x, y, z;
};
extern "C" {
struct mrk_uint3 threadIdx, blockIdx, blockDim, gridDim;
unsigned char *mrk_dynamic_shared;
void mrk_barrier(void);
float mrk_shuffle(float value, unsigned source_lane);
uint64_t mrk_shuffle_u64(uint64_t value, unsigned source_lane);
}

namespace
{

constexpr size_t stack_bytes = 128u << 10;
constexpr unsigned warp_lanes = 32, max_threads = 1024, stack_shifts = 64;
constexpr size_t stack_shift_bytes = 576; /* a multiple of 16 */

enum class place { ready, barrier, shuffle };

/* ---- stacks and the switch between them ---- */

struct fiber {
    unsigned char *stack = nullptr;
    void *sp = nullptr; /* where it goes on */
    void *fake = nullptr;
    unsigned thread = 0;
    size_t shift = 0; /* of the stack's begin: at equal addresses modulo 64 KiB they share few lines of the
                         caches */
#if !defined(__x86_64__)
    ucontext_t context;
#endif
#if defined(__SANITIZE_THREAD__)
    void *tsan = nullptr;
#endif
};

fiber root; /* whoever runs the grid */
fiber *here = &root;
#if defined(__SANITIZE_ADDRESS__)
const void *root_stack;
size_t root_bytes;
#endif

#if defined(__x86_64__)
extern "C" void emu_stack_switch(void **keep, void *go);
asm(".text\n"
    ".globl emu_stack_switch\n"
    ".hidden emu_stack_switch\n"
    ".type emu_stack_switch,@function\n"
    "emu_stack_switch:\n"
    "    pushq %rbp\n    pushq %rbx\n    pushq %r12\n    pushq %r13\n    pushq %r14\n    pushq %r15\n"
    "    movq %rsp, (%rdi)\n"
    "    movq %rsi, %rsp\n"
    "    popq %r15\n    popq %r14\n    popq %r13\n    popq %r12\n    popq %rbx\n    popq %rbp\n"
    "    ret\n"
    ".size emu_stack_switch, .-emu_stack_switch\n");
#endif

void arrived(fiber *from)
{
    (void)from;
#if defined(__SANITIZE_ADDRESS__)
    const void *bottom;
    size_t bytes;
    __sanitizer_finish_switch_fiber(here->fake, &bottom, &bytes);
    if (from == &root) {
        root_stack = bottom;
        root_bytes = bytes;
    }
#endif
}

fiber *came_from;

void go_to(fiber *to)
{
    fiber *from = here;
    here = to;
    came_from = from;
#if defined(__SANITIZE_ADDRESS__)
    __sanitizer_start_switch_fiber(&from->fake, to == &root ? root_stack : to->stack,
                                   to == &root ? root_bytes : stack_bytes);
#endif
#if defined(__SANITIZE_THREAD__)
    __tsan_switch_to_fiber(to->tsan, 0);
#endif
#if defined(__x86_64__)
    emu_stack_switch(&from->sp, to->sp);
#else
    swapcontext(&from->context, &to->context);
#endif
    arrived(came_from);
}

/* ---- the block that runs ---- */

struct {
    void (*body)(const void *args);
    const void *args;
    unsigned threads, started, done;
    unsigned order[max_threads]; /* of starting, and of going on after a barrier */
    unsigned queue[max_threads]; /* parked threads that go on, each after the one before it */
    unsigned next, queued;
    place at[max_threads];
    bool finished[max_threads];
    uint64_t value[max_threads]; /* given to a shuffle, then taken from it */
    unsigned source[max_threads];
    fiber *parked[max_threads];
} block;

std::vector<fiber *> &idle = *new std::vector<fiber *>; /* never destroyed: threads may still run as the
                                                           process ends */

void set_thread(unsigned t) { threadIdx = {t, 0, 0}; }

fiber *next_fiber();

/* A fiber takes threads that did not start yet, one after another; without any it waits to be used again. */
void fiber_loop()
{
    for (;;) {
        fiber *self = here;
        while (block.started < block.threads) {
            const unsigned t = block.order[block.started++];
            self->thread = t;
            set_thread(t);
            block.body(block.args);
            block.finished[self->thread] = true;
            block.done++;
        }
        idle.push_back(self);
        go_to(next_fiber());
    }
}

void fiber_begin()
{
    arrived(came_from);
    fiber_loop();
}

void prepare(fiber *f)
{
    f->fake = nullptr;
#if defined(__SANITIZE_THREAD__)
    f->tsan = __tsan_create_fiber(0);
#endif
#if defined(__x86_64__)
    /* 8 off a multiple of 16, as after a call */
    void **top = reinterpret_cast<void **>(f->stack + stack_bytes - f->shift) - 3;
    *top = nullptr;
    *--top = reinterpret_cast<void *>(&fiber_begin);
    for (int i = 0; i < 6; i++) *--top = nullptr; /* registers */
    f->sp = top;
#else
    getcontext(&f->context);
    f->context.uc_stack.ss_sp = f->stack;
    f->context.uc_stack.ss_size = stack_bytes;
    f->context.uc_link = nullptr;
    makecontext(&f->context, fiber_begin, 0);
#endif
}

fiber *take_fiber()
{
    if (!idle.empty()) {
        fiber *f = idle.back();
        idle.pop_back();
        return f;
    }
    fiber *f = new fiber;
    void *at = mmap(nullptr, stack_bytes, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE,
                    -1, 0);
    if (at == MAP_FAILED) abort();
    f->stack = static_cast<unsigned char *>(at);
    mprotect(at, 4096, PROT_NONE); /* device code that needs more stops here */
    static unsigned made;
    f->shift = made++ % stack_shifts * stack_shift_bytes;
    prepare(f);
    return f;
}

/* After a violation that is only counted: parked threads never continue. */
void abandon()
{
    for (unsigned t = 0; t < block.threads; t++) {
        fiber *f = block.parked[t];
        if (!f) continue;
        block.parked[t] = nullptr;
#if defined(__SANITIZE_ADDRESS__)
        __asan_unpoison_memory_region(f->stack + 4096, stack_bytes - 4096);
#endif
        prepare(f);
        idle.push_back(f);
    }
}

/* Whoever runs after the present fiber: a thread of the queue, one that did not start, or the root. */
fiber *next_fiber()
{
    if (block.next == block.queued) return block.started < block.threads ? take_fiber() : &root;
    const unsigned t = block.queue[block.next++];
    fiber *f = block.parked[t];
    block.parked[t] = nullptr;
    block.at[t] = place::ready;
    return f;
}

void park(place at)
{
    fiber *self = here;
    const unsigned t = self->thread;
    block.at[t] = at;
    block.parked[t] = self;
    go_to(next_fiber());
    set_thread(t);
}

/* ---- who may go on ---- */

bool warp_waits(unsigned first, unsigned end)
{
    for (unsigned t = first; t < end; t++) {
        if (!block.parked[t] || block.at[t] != place::shuffle) return false;
    }
    return true;
}

/* All lanes of a warp are in a shuffle: each takes what its source gave. */
void exchange(unsigned first, unsigned end)
{
    uint64_t given[warp_lanes];
    for (unsigned t = first; t < end; t++) given[t - first] = block.value[t];
    for (unsigned t = first; t < end; t++) {
        if (block.source[t] >= end - first) {
            emu_violation("a shuffle of thread %u takes the value of lane %u, which is not there", t,
                          block.source[t]);
            continue;
        }
        block.value[t] = given[block.source[t]];
    }
}

bool run_queue(unsigned queued)
{
    block.next = 0;
    block.queued = queued;
    if (queued > 0) go_to(next_fiber());
    return queued > 0;
}

bool run_warps()
{
    unsigned queued = 0;
    for (unsigned first = 0; first < block.threads; first += warp_lanes) {
        const unsigned end = first + warp_lanes < block.threads ? first + warp_lanes : block.threads;
        if (!warp_waits(first, end)) continue;
        exchange(first, end);
        for (unsigned t = first; t < end; t++) block.queue[queued++] = t;
    }
    return run_queue(queued);
}

bool run_barrier()
{
    for (unsigned t = 0; t < block.threads; t++) {
        if (!block.parked[t] || block.at[t] != place::barrier) return false;
    }
    memcpy(block.queue, block.order, block.threads * sizeof *block.order);
    return run_queue(block.threads);
}

void tell_divergence()
{
    unsigned at_barrier = 0, in_shuffle = 0, some = 0;
    for (unsigned t = 0; t < block.threads; t++) {
        if (!block.parked[t]) continue;
        some = t;
        (block.at[t] == place::barrier ? at_barrier : in_shuffle)++;
    }
    emu_violation("block (%u, %u): %u threads (one is %u) wait at a barrier and %u in a shuffle, the other "
                  "%u of %u never come",
                  blockIdx.x, blockIdx.y, at_barrier, some, in_shuffle, block.done, block.threads);
}

/* Any step without a common divisor visits every thread once. */
void draw_order()
{
    auto common = [](unsigned a, unsigned b) {
        while (b) {
            const unsigned r = a % b;
            a = b;
            b = r;
        }
        return a;
    };
    unsigned step = 1, offset = 0;
    if (block.threads > 1 && emu_random() % 2 != 0) {
        step = (unsigned)(emu_random() % block.threads);
        while (common(step, block.threads) != 1) step++;
        offset = (unsigned)(emu_random() % block.threads);
    }
    for (unsigned i = 0; i < block.threads; i++)
        block.order[i] = (unsigned)(((uint64_t)i * step + offset) % block.threads);
}

void run_block()
{
    block.started = block.done = 0;
    memset(block.finished, 0, sizeof block.finished);
    block.next = block.queued = 0;
    while (block.started < block.threads) go_to(next_fiber());
    while (block.done < block.threads) {
        if (run_warps() || run_barrier()) continue;
        tell_divergence();
        abandon();
        return;
    }
}

} // namespace

extern "C" void mrk_barrier(void) { park(place::barrier); }

extern "C" uint64_t mrk_shuffle_u64(uint64_t value, unsigned source_lane)
{
    const unsigned t = here->thread;
    block.value[t] = value;
    block.source[t] = source_lane;
    park(place::shuffle);
    return block.value[t];
}

extern "C" float mrk_shuffle(float value, unsigned source_lane)
{
    uint32_t bits;
    memcpy(&bits, &value, sizeof bits);
    bits = (uint32_t)mrk_shuffle_u64(bits, source_lane);
    memcpy(&value, &bits, sizeof bits);
    return value;
}

/* Called with the lock of the emulation held, so there is one grid at a time; not always on the same
 * thread. */
extern "C" void emu_run_grid(void (*body)(const void *args), const void *args, unsigned grid_x,
                             unsigned grid_y, unsigned threads, unsigned shared_bytes)
{
    if (threads > max_threads) abort();
#if defined(__SANITIZE_THREAD__)
    root.tsan = __tsan_get_current_fiber();
#endif
    block.body = body;
    block.args = args;
    block.threads = threads;
    blockDim = {threads, 1, 1};
    gridDim = {grid_x, grid_y, 1};
    std::vector<unsigned char> shared(shared_bytes + 15);
    mrk_dynamic_shared =
        reinterpret_cast<unsigned char *>((reinterpret_cast<uintptr_t>(shared.data()) + 15) & ~uintptr_t(15));
    const uint64_t blocks = (uint64_t)grid_x * grid_y;
    const bool backwards = emu_random() % 2 == 0;
    draw_order();
    for (uint64_t i = 0; i < blocks; i++) {
        const uint64_t b = backwards ? blocks - 1 - i : i;
        blockIdx = {(unsigned)(b % grid_x), (unsigned)(b / grid_x), 0};
        memset(mrk_dynamic_shared, 0xff, shared_bytes);
        run_block();
    }
    mrk_dynamic_shared = nullptr;
}
