/* tests/cuda_emu/access.c: all memory of the emulation, sorted by address, and who touched which part of it
 * last.
 *
 * A block is poisoned (all bits set: not a number in every floating type) when it is made and when it is
 * given back. A large one of a device is mapped from a file of poison, so that what nobody touches costs
 * nothing (libraries ask for workspaces of 32 MiB), and is no memory any more when it is given back. Where
 * the address sanitizer watches, a block is exactly as long as was asked for, and all memory but an
 * operation's own spans is closed while it runs; elsewhere a block has guard bytes before and behind, looked
 * at after every operation that writes it.
 *
 * A block keeps its accesses until a later one makes them redundant: an access is forgotten when a newer one
 * that comes after it covers its bytes and writes, or both read; or when the program has learnt that it is
 * over, since everything after that is ordered after the access. */
#include <pthread.h>
#include <sys/mman.h>
#include <unistd.h>

#include "tests/cuda_emu/inside.h"

#if defined(__has_feature)
#if __has_feature(address_sanitizer)
#define __SANITIZE_ADDRESS__ 1
#endif
#endif
#if defined(__SANITIZE_ADDRESS__)
#include <sanitizer/asan_interface.h>
#define GUARDED 0u
#else
#define GUARDED 256u
#endif
#define CONFINE_BYTES                                                                                        \
    ((size_t)64 << 20) /* more memory than this is not closed and opened around every operation */
#define LARGE_BYTES ((size_t)1 << 20)
#define SUM_BYTES   ((size_t)1 << 20) /* longer spans are not summed around every operation */
#define ALIGN       256u
#define POISON      0xff
#define GUARD_BYTE  0xa5

static const size_t guard = GUARDED;
static struct emu_block **blocks; /* by address */
static size_t block_count, block_cap;

/* Recently freed blocks, named in reports. */
static struct freed {
    uintptr_t at;
    size_t bytes;
    const char *by;
    uint64_t number;
} freed[64];
static size_t freed_count;

/* How many blocks begin at or before at. */
static size_t place_of(uintptr_t at)
{
    size_t low = 0, high = block_count;
    while (low < high) {
        const size_t middle = low + (high - low) / 2;
        if (blocks[middle]->at <= at) low = middle + 1;
        else high = middle;
    }
    return low;
}

/* ---- large blocks ---- */

enum { PAGE = 4096 };
static pthread_once_t poison_once = PTHREAD_ONCE_INIT;
static int poison = -1; /* a file of LARGE_BYTES of poison; -1: not made */

static void make_poison(void)
{
    const int fd = memfd_create("poison", MFD_CLOEXEC);
    void *at = MAP_FAILED;
    if (fd >= 0 && ftruncate(fd, LARGE_BYTES) == 0)
        at = mmap(NULL, LARGE_BYTES, PROT_READ | PROT_WRITE, MAP_SHARED, fd, 0);
    if (at == MAP_FAILED) {
        if (fd >= 0) close(fd);
        return;
    }
    memset(at, POISON, LARGE_BYTES);
    munmap(at, LARGE_BYTES);
    poison = fd;
}

/* Bytes mapped for a block of `whole` bytes: its guard bytes, and after them a page that no access may
 * touch. */
static size_t mapped_bytes(size_t whole) { return (size_t)mri_align_up(whole, PAGE) + PAGE; }

static bool map_poison(void **raw, size_t whole)
{
    pthread_once(&poison_once, make_poison);
    if (poison < 0 || whole > SIZE_MAX / 2) return false;
    const size_t bytes = mapped_bytes(whole);
    char *at = mmap(NULL, bytes, PROT_NONE, MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
    if (at == MAP_FAILED) return false;
    for (size_t i = 0; i < bytes - PAGE; i += LARGE_BYTES) {
        const size_t part = (size_t)mri_min_u64(LARGE_BYTES, bytes - PAGE - i);
        if (mmap(at + i, part, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_FIXED, poison, 0) == MAP_FAILED) {
            munmap(at, bytes);
            return false;
        }
    }
    *raw = at;
    return true;
}

static size_t whole_bytes(const struct emu_block *b) { return b->bytes + 2 * guard; }

/* Close the bytes after the end of a mapped block, up to its page's end. */
static void close_end(const struct emu_block *b, bool close)
{
#if defined(__SANITIZE_ADDRESS__)
    char *end = (char *)b->raw + whole_bytes(b);
    const size_t bytes = mapped_bytes(whole_bytes(b)) - whole_bytes(b);
    if (close) __asan_poison_memory_region(end, bytes);
    else __asan_unpoison_memory_region(b->raw, mapped_bytes(whole_bytes(b)));
#else
    (void)b, (void)close;
#endif
}

static bool take_memory(struct emu_block *b, size_t whole)
{
    if (b->device < 0 || whole < LARGE_BYTES || !map_poison(&b->raw, whole)) {
        if (posix_memalign(&b->raw, ALIGN, whole) != 0) return false;
        memset(b->raw, POISON, whole);
        return true;
    }
    b->mapped = true;
    close_end(b, true);
    return true;
}

static void give_memory_back(const struct emu_block *b)
{
    if (!b->mapped) {
        memset((void *)b->at, POISON, b->bytes);
        free(b->raw);
        return;
    }
    close_end(b, false);
    munmap(b->raw, mapped_bytes(whole_bytes(b)));
}

struct emu_block *emu_block_new(size_t bytes, int device)
{
    if (block_count == block_cap) {
        const size_t cap = block_cap ? 2 * block_cap : 256;
        struct emu_block **more = realloc(blocks, cap * sizeof(*more));
        if (!more) return NULL;
        blocks = more;
        block_cap = cap;
    }
    struct emu_block *b = calloc(1, sizeof *b);
    size_t whole;
    if (b) {
        b->bytes = bytes;
        b->device = device;
    }
    if (!b || !mri_add_size(bytes, 2 * guard, &whole) || !take_memory(b, whole)) {
        free(b);
        return NULL;
    }
    b->at = (uintptr_t)b->raw + guard;
    memset(b->raw, GUARD_BYTE, guard);
    memset((void *)(b->at + bytes), GUARD_BYTE, guard);
    const size_t place = place_of(b->at);
    memmove(blocks + place + 1, blocks + place, (block_count - place) * sizeof(*blocks));
    blocks[place] = b;
    block_count++;
    return b;
}

void emu_block_free(struct emu_block *b)
{
    emu_block_check_ends(b, "its free", 0);
    const size_t place = place_of(b->at) - 1;
    memmove(blocks + place, blocks + place + 1, (block_count - place - 1) * sizeof(*blocks));
    block_count--;
    if (b->freed_by) {
        freed[freed_count++ % MRI_ARRAY_COUNT(freed)] =
            (struct freed){b->at, b->bytes, b->freed_by, b->freed_number};
    }
    give_memory_back(b);
    free(b->list);
    free(b);
}

struct emu_block *emu_block_at(const void *at, size_t bytes)
{
    const size_t place = place_of((uintptr_t)at);
    if (place == 0) return NULL;
    struct emu_block *b = blocks[place - 1];
    const size_t offset = (uintptr_t)at - b->at;
    return offset <= b->bytes && bytes <= b->bytes - offset && (offset < b->bytes || bytes > 0) ? b : NULL;
}

uint64_t emu_blocks(int device)
{
    uint64_t n = 0;
    for (size_t i = 0; i < block_count; i++) n += blocks[i]->device == device && !blocks[i]->freed_by;
    return n;
}

void emu_block_check_ends(const struct emu_block *b, const char *name, uint64_t number)
{
    const unsigned char *before = b->raw, *behind = (const unsigned char *)b->at + b->bytes;
    for (size_t i = 0; i < guard; i++) {
        if (before[i] == GUARD_BYTE && behind[i] == GUARD_BYTE) continue;
        emu_violation("%s (#%llu) finds that someone wrote %s the %zu bytes at %p", name,
                      (unsigned long long)number, before[i] == GUARD_BYTE ? "behind" : "before", b->bytes,
                      (void *)b->at);
        memset(b->raw, GUARD_BYTE, guard); /* reported once */
        memset((void *)(b->at + b->bytes), GUARD_BYTE, guard);
        return;
    }
}

/* ---- an operation keeps to its spans ---- */

#if defined(__SANITIZE_ADDRESS__)
/* Not the pinned memory of the host: threads of the program use it while this runs. */
static bool close_others(const emu_span *spans, int count)
{
    size_t all = 0;
    for (size_t i = 0; i < block_count; i++) all += blocks[i]->bytes;
    if (all > CONFINE_BYTES) return false;
    for (size_t i = 0; i < block_count; i++) {
        if (blocks[i]->device >= 0) __asan_poison_memory_region((void *)blocks[i]->at, blocks[i]->bytes);
    }
    for (int i = 0; i < count; i++) __asan_unpoison_memory_region(spans[i].at, spans[i].bytes);
    return true;
}

static void open_all(void)
{
    for (size_t i = 0; i < block_count; i++)
        __asan_unpoison_memory_region((void *)blocks[i]->at, blocks[i]->bytes);
}
#else
static bool close_others(const emu_span *spans, int count) { return (void)spans, (void)count, false; }
static void open_all(void) {}
#endif

uint64_t emu_sum(const void *at, size_t bytes)
{
    const unsigned char *p = at;
    uint64_t h = 0xcbf29ce484222325u, w;
    for (; bytes >= 8; bytes -= 8, p += 8) {
        memcpy(&w, p, 8);
        h = (h ^ w) * 0x100000001b3u;
        h ^= h >> 29;
    }
    for (; bytes > 0; bytes--) h = (h ^ *p++) * 0x100000001b3u;
    return h;
}

/* Only read, and by no span of the same operation written. */
static bool must_stay(const emu_span *spans, int count, int which)
{
    if (spans[which].write || spans[which].bytes > SUM_BYTES) return false;
    for (int i = 0; i < count; i++) {
        if (spans[i].write && emu_spans_conflict(&spans[which], 1, &spans[i], 1)) return false;
    }
    return true;
}

void emu_run_confined(const emu_span *spans, int count, const char *name, uint64_t number,
                      void (*run)(void *), void *args)
{
    uint64_t sums[EMU_MAX_SPANS] = {0};
    for (int i = 0; i < count; i++) {
        if (must_stay(spans, count, i)) sums[i] = emu_sum(spans[i].at, spans[i].bytes);
    }
    const bool closed = close_others(spans, count);
    run(args);
    if (closed) open_all();
    for (int i = 0; i < count; i++) {
        if (must_stay(spans, count, i) && sums[i] != emu_sum(spans[i].at, spans[i].bytes)) {
            emu_violation("%s (#%llu) wrote the %zu bytes at %p, which it declared to only read", name,
                          (unsigned long long)number, spans[i].bytes, spans[i].at);
        }
        const struct emu_block *b = spans[i].write ? emu_block_at(spans[i].at, spans[i].bytes) : NULL;
        if (b) emu_block_check_ends(b, name, number);
    }
}

/* ---- accesses ---- */

static bool reachable(const struct emu_block *b, const int *devices, int device_count)
{
    for (int i = 0; i < device_count; i++) {
        if (b->device == devices[i] || (b->pool && b->pool->peers[devices[i]])) return true;
    }
    return b->device < 0;
}

/* An address nobody owns. */
static void tell_homeless(const emu_span *span, const char *does, const char *name, unsigned long long n)
{
    const struct emu_block *part = emu_block_at(span->at, 1);
    if (part) {
        emu_violation("%s (#%llu) %s %zu bytes at %p, but the memory there ends after %zu", name, n, does,
                      span->bytes, span->at, (size_t)(part->at + part->bytes - (uintptr_t)span->at));
        return;
    }
    for (size_t i = 0; i < MRI_ARRAY_COUNT(freed); i++) {
        if ((uintptr_t)span->at - freed[i].at >= freed[i].bytes) continue;
        emu_violation("%s (#%llu) %s memory at %p that %s (#%llu) has freed", name, n, does, span->at,
                      freed[i].by, (unsigned long long)freed[i].number);
        return;
    }
    emu_violation("%s (#%llu) %s %zu bytes at %p, which is no memory of a device and no pinned memory", name,
                  n, does, span->bytes, span->at);
}

bool emu_spans_live(const emu_span *spans, int count, const int *devices, int device_count, const char *name,
                    uint64_t number)
{
    const unsigned long long n = number;
    bool good = true;
    for (int i = 0; i < count; i++) {
        if (spans[i].bytes == 0) continue;
        const char *does = spans[i].write ? "writes" : "reads";
        const struct emu_block *b = emu_block_at(spans[i].at, spans[i].bytes);
        if (!b) {
            tell_homeless(&spans[i], does, name, n);
        } else if (b->freed_by) {
            emu_violation("%s (#%llu) %s memory at %p that %s (#%llu) has freed", name, n, does, spans[i].at,
                          b->freed_by, (unsigned long long)b->freed_number);
        } else if (!reachable(b, devices, device_count)) {
            emu_violation("%s (#%llu) of GPU %d %s memory at %p of GPU %d", name, n, devices[0], does,
                          spans[i].at, b->device);
        } else {
            continue;
        }
        good = false;
    }
    return good;
}

static bool ordered(const struct emu_access *a, const emu_clock *clock)
{
    return a->seq <= clock->at[a->slot];
}

static void tell_conflict(const struct emu_access *old, const struct emu_access *now,
                          const struct emu_block *b)
{
    emu_violation(
        "%s (#%llu, stream %llu of GPU %d) %s memory that %s (#%llu, stream %llu of GPU %d) %s, and nothing "
        "orders the two: bytes %zu to %zu of the %zu at %p",
        now->name, (unsigned long long)now->number, (unsigned long long)now->stream, now->device,
        now->write ? "writes" : "reads", old->name, (unsigned long long)old->number,
        (unsigned long long)old->stream, old->device, old->write ? "writes" : "reads",
        (size_t)(mri_max_u64(old->from, now->from) - b->at), (size_t)(mri_min_u64(old->to, now->to) - b->at),
        b->bytes, (void *)b->at);
}

static void note(struct emu_block *b, const struct emu_access *now, const emu_clock *clock)
{
    size_t kept = 0;
    bool reported = false;
    for (size_t i = 0; i < b->count; i++) {
        const struct emu_access *old = &b->list[i];
        const bool same = old->slot == now->slot && old->seq == now->seq; /* another span of the same
                                                                             operation */
        if (!same && !reported && old->from < now->to && now->from < old->to && (old->write || now->write) &&
            !ordered(old, clock)) {
            tell_conflict(old, now, b);
            reported = true;
        }
        const bool said_by_now = ordered(old, clock) && now->from <= old->from && old->to <= now->to &&
                                 (now->write || !old->write);
        if (!said_by_now && !ordered(old, &emu_host)) b->list[kept++] = *old;
    }
    b->count = kept;
    if (b->count == b->cap) {
        const size_t cap = b->cap ? 2 * b->cap : 8;
        struct emu_access *more = realloc(b->list, cap * sizeof(*more));
        if (!more) abort(); /* a test machine without memory for a short list */
        b->list = more;
        b->cap = cap;
    }
    b->list[b->count++] = *now;
}

void emu_spans_note(const emu_span *spans, int count, const struct emu_access *who, const emu_clock *clock)
{
    for (int i = 0; i < count; i++) {
        struct emu_block *b = spans[i].bytes > 0 ? emu_block_at(spans[i].at, spans[i].bytes) : NULL;
        if (!b) continue;
        struct emu_access now = *who;
        now.from = (uintptr_t)spans[i].at;
        now.to = now.from + spans[i].bytes;
        now.write = spans[i].write;
        note(b, &now, clock);
    }
}

const struct emu_access *emu_block_busy(const struct emu_block *b, const void *at, size_t bytes, bool writes,
                                        const emu_clock *clock)
{
    const uintptr_t from = (uintptr_t)at, to = from + bytes;
    for (size_t i = 0; i < b->count; i++) {
        const struct emu_access *a = &b->list[i];
        if (a->from < to && from < a->to && (a->write || !writes) && !ordered(a, clock)) return a;
    }
    return NULL;
}

bool emu_spans_conflict(const emu_span *a, int a_count, const emu_span *b, int b_count)
{
    for (int i = 0; i < a_count; i++) {
        for (int j = 0; j < b_count; j++) {
            const uintptr_t from = (uintptr_t)a[i].at, other = (uintptr_t)b[j].at;
            if ((a[i].write || b[j].write) && from < other + b[j].bytes && other < from + a[i].bytes)
                return true;
        }
    }
    return false;
}

int emu_device_of_address(const void *at, size_t bytes)
{
    emu_lock();
    const struct emu_block *b = emu_block_at(at, bytes);
    const int device = b && !b->freed_by ? b->device : -1;
    emu_unlock();
    return device;
}
