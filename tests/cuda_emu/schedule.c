/* tests/cuda_emu/schedule.c: the queued operations, and which of them runs next.
 *
 *     slot 0   [op] [op] [mark e] ...        an operation runs when it is first in all its slots and what it
 *     slot 1   [wait e] [op] ...             waits for is over; then `over` of those slots goes up by one
 *     slot 2   [sum of both] ...
 *     slot 3   [sum of both] ...
 *
 *   eager   all that can run does so when it is queued
 *   late    nothing runs until someone waits for it, and then only what that needs
 *   starve  as eager, but one slot (another one every so often) runs only when someone waits for it
 *   random  now and then something, somewhere
 *
 * Queries count as noticing only sometimes: a program that polls sees "not ready" first in most seeds, and
 * never for ever. */
#include <time.h>

#include "tests/cuda_emu/inside.h"

struct op {
    const char *name;
    uint64_t number;
    struct emu_payload *payload;
    bool wait, cancelled;
    int wait_slot;
    uint64_t wait_seq;
    CUevent mark;
    const void *watched;
    size_t watched_bytes;
    uint64_t sum;
    struct emu_block *frees;
    struct emu_host_call *host_call;
    int slot_count, span_count;
    int slots[EMU_MAX_DEVICES];
    emu_span spans[EMU_MAX_SPANS];
};

static struct slot {
    struct op **ops; /* a ring: first .. first + count */
    size_t first, count, cap;
    uint64_t queued, over;
    CUstream stream;
} slots[EMU_SLOTS];
static int slot_count;
static uint64_t random_state, queued_ops;
static bool seeded;

emu_clock emu_host;

enum step { STEP_RAN, STEP_HANGS, STEP_STUCK };

uint64_t emu_random(void)
{
    if (!seeded) random_state = emu_settings()->seed * 0x9e3779b97f4a7c15u;
    seeded = true;
    random_state += 0x9e3779b97f4a7c15u; /* splitmix64 */
    uint64_t z = random_state;
    z = (z ^ (z >> 30)) * 0xbf58476d1ce4e5b9u;
    z = (z ^ (z >> 27)) * 0x94d049bb133111ebu;
    return z ^ (z >> 31);
}

/* ---- clocks and slots ---- */

void emu_clock_join(emu_clock *into, const emu_clock *from)
{
    for (int i = 0; i < slot_count; i++) into->at[i] = mri_max_u64(into->at[i], from->at[i]);
}

bool emu_clock_covers(const emu_clock *clock, const emu_clock *what)
{
    for (int i = 0; i < slot_count; i++) {
        if (what->at[i] > clock->at[i]) return false;
    }
    return true;
}

void emu_host_learns(const emu_clock *what) { emu_clock_join(&emu_host, what); }

/* A slot whose work the program knows to be over can serve another stream: its numbers go on. */
int emu_slot_take(CUstream s)
{
    int found = -1;
    for (int i = 0; i < slot_count && found < 0; i++) {
        if (slots[i].stream->head.destroyed && slots[i].count == 0 && emu_host.at[i] >= slots[i].queued)
            found = i;
    }
    if (found < 0 && slot_count < EMU_SLOTS) found = slot_count++;
    if (found >= 0) slots[found].stream = s;
    return found;
}

bool emu_slot_over(int slot, uint64_t seq) { return slots[slot].over >= seq; }
uint64_t emu_slot_queued(int slot) { return slots[slot].queued; }

static struct op *head_of(int slot)
{
    return slots[slot].count > 0 ? slots[slot].ops[slots[slot].first] : NULL;
}

static bool push(int slot, struct op *op)
{
    struct slot *s = &slots[slot];
    if (s->count == s->cap) {
        const size_t cap = s->cap ? 2 * s->cap : 64;
        struct op **ops = malloc(cap * sizeof(*ops));
        if (!ops) return false;
        for (size_t i = 0; i < s->count; i++) ops[i] = s->ops[(s->first + i) % s->cap];
        free(s->ops);
        s->ops = ops;
        s->cap = cap;
        s->first = 0;
    }
    s->ops[(s->first + s->count++) % s->cap] = op;
    return true;
}

/* ---- payloads ---- */

struct emu_payload *emu_payload_new(void (*run)(void *), void (*drop)(void *), const void *args, size_t bytes)
{
    if (bytes > EMU_MAX_ARGS) abort();
    struct emu_payload *p = calloc(1, sizeof *p);
    if (!p) return NULL;
    p->refs = 1;
    p->run = run;
    p->drop = drop;
    if (bytes > 0) memcpy(p->args, args, bytes);
    return p;
}

void emu_payload_drop(struct emu_payload *p)
{
    if (!p || --p->refs > 0) return;
    if (p->drop) p->drop(p->args);
    free(p);
}

/* ---- running ---- */

static bool is_dead(const struct op *op)
{
    for (int i = 0; i < op->slot_count; i++) {
        if (emu_context(slots[op->slots[i]].stream->head.device)->dead) return true;
    }
    return false;
}

static bool first_everywhere(const struct op *op)
{
    for (int i = 0; i < op->slot_count; i++) {
        if (head_of(op->slots[i]) != op) return false;
    }
    return true;
}

static bool hangs(const struct op *op)
{
    if (op->cancelled || is_dead(op)) return false;
    if (emu_hangs(op->name) || (op->host_call && !emu_host_call_is_over(op->host_call))) return true;
    return op->payload && op->payload->ready && !op->payload->ready(op->payload->args);
}

static bool can_run(const struct op *op)
{
    if (op->wait && !emu_slot_over(op->wait_slot, op->wait_seq)) return false;
    return first_everywhere(op) && !hangs(op);
}

static void do_work(struct op *op)
{
    if (op->watched && emu_sum(op->watched, op->watched_bytes) != op->sum) {
        emu_violation(
            "%s (#%llu) copies from host memory %p (%zu bytes) that changed between its queueing and its "
            "running: the program must wait for the copy before it writes there again",
            op->name, (unsigned long long)op->number, op->watched, op->watched_bytes);
    }
    if (op->payload && op->payload->run) {
        emu_run_confined(op->spans, op->span_count, op->name, op->number, op->payload->run,
                         op->payload->args);
    }
}

static void run(struct op *op)
{
    emu_log("run #%llu %s on stream %llu", (unsigned long long)op->number, op->name,
            (unsigned long long)slots[op->slots[0]].stream->head.number);
    if (!op->cancelled && !is_dead(op)) do_work(op);
    if (op->frees) emu_block_free(op->frees);
    for (int i = 0; i < op->slot_count; i++) {
        struct slot *s = &slots[op->slots[i]];
        s->first = (s->first + 1) % s->cap;
        s->count--;
        s->over++;
    }
    if (op->mark && op->mark->slot == op->slots[0] && emu_slot_over(op->mark->slot, op->mark->seq)) {
        op->mark->stamp_ns = mri_now_ns();
        op->mark->stamped = true;
    }
    emu_payload_drop(op->payload);
    emu_host_call_drop(op->host_call);
    free(op);
}

/* One operation that the first of this slot needs. Chains of waits are as long as there are slots, or they
 * are circles. */
static enum step step_toward(int slot, int depth)
{
    struct op *op = head_of(slot);
    if (!op || depth > EMU_SLOTS) return STEP_STUCK;
    if (op->wait && !emu_slot_over(op->wait_slot, op->wait_seq)) return step_toward(op->wait_slot, depth + 1);
    for (int i = 0; i < op->slot_count; i++) {
        if (head_of(op->slots[i]) != op) return step_toward(op->slots[i], depth + 1);
    }
    if (hangs(op)) return STEP_HANGS;
    run(op);
    return STEP_RAN;
}

/* Run one operation of any slot but `except`, looking from `from` on. */
static bool run_any(int from, int except)
{
    for (int i = 0; i < slot_count; i++) {
        const int slot = (from + i) % slot_count;
        struct op *op = head_of(slot);
        if (slot != except && op && can_run(op)) {
            run(op);
            return true;
        }
    }
    return false;
}

static int any_slot(void) { return (int)(emu_random() % (uint64_t)slot_count); }

void emu_drain(void)
{
    while (slot_count > 0 && run_any(0, -1)) {
    }
}

/* After something was queued. */
void emu_move_on(void)
{
    static int starved = -1;
    if (slot_count == 0) return;
    switch (emu_order()) {
    case EMU_EAGER: emu_drain(); break;
    case EMU_LATE: break;
    case EMU_STARVE:
        if (queued_ops % 32 == 1) starved = any_slot();
        while (run_any(0, starved)) {
        }
        break;
    case EMU_RANDOM:
        for (uint64_t n = emu_random() % 4; n > 0 && run_any(any_slot(), -1); n--) {
        }
        break;
    }
}

/* 1 to 128 steps: whoever polls sleeps between two looks, and a step for each look would take seconds. */
static void step_often(int slot, uint64_t seq)
{
    int steps = 1 << emu_random() % 8;
    while (steps-- > 0 && !emu_slot_over(slot, seq) && step_toward(slot, 0) == STEP_RAN) {
    }
}

bool emu_poll(int slot, uint64_t seq)
{
    if (emu_slot_over(slot, seq)) return true;
    if (emu_order() == EMU_RANDOM) emu_move_on();
    if (!emu_slot_over(slot, seq) && emu_random() % 4 == 0) step_often(slot, seq);
    return emu_slot_over(slot, seq);
}

bool emu_advance(int slot, uint64_t seq)
{
    bool ran = false;
    while (!emu_slot_over(slot, seq) && step_toward(slot, 0) == STEP_RAN) ran = true;
    return ran;
}

CUresult emu_wait_for(int slot, uint64_t seq, const char *call, CUcontext context)
{
    while (!emu_slot_over(slot, seq)) {
        if (emu_order() == EMU_RANDOM && emu_random() % 2 == 0 && run_any(any_slot(), -1)) continue;
        const enum step step = step_toward(slot, 0);
        if (step == STEP_STUCK) {
            const struct op *op = head_of(slot);
            emu_violation("%s waits for ever: %s (#%llu) on stream %llu waits for work that waits for it",
                          call, op ? op->name : "nothing", op ? (unsigned long long)op->number : 0,
                          (unsigned long long)slots[slot].stream->head.number);
            return context->dead = CUDA_ERROR_LAUNCH_TIMEOUT;
        }
        if (step == STEP_HANGS) { /* as a real one: until someone gives up */
            emu_unlock();
            const struct timespec moment = {.tv_nsec = 500000};
            nanosleep(&moment, NULL);
            emu_lock();
        }
    }
    return context->dead;
}

void emu_cancel(const CUstream *streams, int stream_count, const char *name)
{
    emu_lock();
    for (int i = 0; i < stream_count; i++) {
        const struct slot *s = &slots[streams[i]->slot];
        for (size_t j = 0; j < s->count; j++) {
            struct op *op = s->ops[(s->first + j) % s->cap];
            if (strncmp(op->name, name, strlen(name)) == 0) op->cancelled = true;
        }
    }
    emu_unlock();
}

/* ---- queueing ---- */

static struct op *op_of(const struct emu_submission *what)
{
    struct op *op = calloc(1, sizeof *op);
    if (!op) return NULL;
    op->name = what->name;
    op->number = emu_calls();
    op->payload = what->payload;
    if (op->payload) op->payload->refs++;
    op->wait = what->wait;
    op->wait_slot = what->wait_slot;
    op->wait_seq = what->wait_seq;
    op->mark = what->mark;
    op->frees = what->frees;
    op->host_call = what->host_call;
    op->span_count = what->span_count;
    for (int i = 0; i < what->span_count; i++) op->spans[i] = what->spans[i];
    op->slot_count = what->stream_count;
    for (int i = 0; i < what->stream_count; i++) op->slots[i] = what->streams[i]->slot;
    return op;
}

/* Host memory is watched only when no queued operation writes it: a copy back into it, or a function of the
 * host, may be the event that it waits for. */
static void watch(struct op *op, const struct emu_submission *what)
{
    const struct emu_block *b = what->watched ? emu_block_at(what->watched, what->watched_bytes) : NULL;
    if (!b || emu_host_calls_pending()) return;
    if (emu_block_busy(b, what->watched, what->watched_bytes, true, &emu_host)) return;
    op->watched = what->watched;
    op->watched_bytes = what->watched_bytes;
    op->sum = emu_sum(op->watched, op->watched_bytes);
}

CUresult emu_submit(const struct emu_submission *what)
{
    int devices[EMU_MAX_DEVICES];
    for (int i = 0; i < what->stream_count; i++) devices[i] = what->streams[i]->head.device;
    if (!emu_spans_live(what->spans, what->span_count, devices, what->stream_count, what->name,
                        emu_calls())) {
        return CUDA_ERROR_ILLEGAL_ADDRESS;
    }
    struct op *op = op_of(what);
    if (!op) return CUDA_ERROR_OUT_OF_MEMORY;
    watch(op, what);
    if (what->frees) {
        what->frees->freed_by = op->name;
        what->frees->freed_number = op->number;
    }

    emu_clock clock = emu_host;
    for (int i = 0; i < what->stream_count; i++) emu_clock_join(&clock, &what->streams[i]->clock);
    const struct emu_access who = {.slot = op->slots[0],
                                   .seq = slots[op->slots[0]].queued + 1,
                                   .name = op->name,
                                   .number = op->number,
                                   .stream = what->streams[0]->head.number,
                                   .device = devices[0]};
    const uint64_t before = emu_violations();
    if (!is_dead(op)) emu_spans_note(what->spans, what->span_count, &who, &clock);
    if (what->frees && emu_violations() > before) emu_drain(); /* operations that still use it */
    for (int i = 0; i < what->stream_count; i++) {
        struct slot *s = &slots[op->slots[i]];
        if (!push(op->slots[i], op)) abort(); /* a test machine without memory for a list of pointers */
        clock.at[op->slots[i]] = ++s->queued;
    }
    for (int i = 0; i < what->stream_count; i++) what->streams[i]->clock = clock;
    if (what->mark) {
        what->mark->slot = op->slots[0];
        what->mark->seq = slots[op->slots[0]].queued;
        what->mark->clock = clock;
        what->mark->recorded = true;
        what->mark->stamped = false;
        what->mark->capture = 0;
    }
    queued_ops++;
    emu_move_on();
    return CUDA_SUCCESS;
}

CUresult emu_put(CUstream s, const struct emu_submission *what, CUmodule module)
{
    if (s->capture) return emu_record(s, what, module);
    const CUresult rc = emu_submit(what);
    if (rc == CUDA_SUCCESS && module) emu_clock_join(&module->used, &s->clock);
    return rc;
}

CUresult emu_queue_together(const CUstream *streams, int stream_count, const char *name,
                            const emu_span *spans, int span_count, void (*run_it)(void *args),
                            void (*drop)(void *args), const void *args, size_t bytes)
{
    emu_lock();
    CUresult rc = stream_count < 1 || stream_count > EMU_MAX_DEVICES || span_count > EMU_MAX_SPANS
                      ? CUDA_ERROR_INVALID_VALUE
                      : CUDA_SUCCESS;
    for (int i = 0; i < stream_count && rc == CUDA_SUCCESS; i++) {
        rc = emu_check(streams[i], EMU_STREAM, name);
        if (rc == CUDA_SUCCESS) rc = emu_context(streams[i]->head.device)->dead;
        if (rc == CUDA_SUCCESS && streams[i]->capture && stream_count > 1) {
            emu_violation("%s joins %d streams while one of them records", name, stream_count);
            rc = CUDA_ERROR_STREAM_CAPTURE_UNSUPPORTED;
        }
    }
    struct emu_payload *payload = rc == CUDA_SUCCESS ? emu_payload_new(run_it, drop, args, bytes) : NULL;
    if (rc == CUDA_SUCCESS && !payload) rc = CUDA_ERROR_OUT_OF_MEMORY;
    if (rc == CUDA_SUCCESS) {
        const struct emu_submission what = {.streams = streams,
                                            .stream_count = stream_count,
                                            .name = name,
                                            .spans = spans,
                                            .span_count = span_count,
                                            .payload = payload};
        rc = stream_count == 1 ? emu_put(streams[0], &what, NULL) : emu_submit(&what);
        emu_payload_drop(payload);
    }
    emu_unlock();
    return rc;
}

CUresult emu_queue(CUstream s, const char *name, const emu_span *spans, int span_count,
                   void (*run_it)(void *args), void (*drop)(void *args), const void *args, size_t bytes)
{
    return emu_queue_together(&s, 1, name, spans, span_count, run_it, drop, args, bytes);
}
