/* pipeline/observe/odd.c: see odd.h. */
#include "pipeline/observe/odd.h"

#define LOST_NS 50000000u /* what all of its items took beyond the others': less is no matter */

/* A worker's samples are like the others', by chance: each takes the next ones. Files differ in how large
 * their samples are, and where they lie: a slow one is slow by the read and by the byte. */
static const struct {
    uint64_t items;
    double times, more_ns; /* of an item */
} enough[] = {[MR_ODD_WORKER] = {16, 2, 0}, [MR_ODD_FILE] = {8, 3, MRI_LONG_READ_NS}};

/* A copy that stands still. */
static mri_toll look(const mri_toll *t)
{
    return (mri_toll){.items = __atomic_load_n(&t->items, __ATOMIC_RELAXED),
                      .ns = __atomic_load_n(&t->ns, __ATOMIC_RELAXED),
                      .bytes = __atomic_load_n(&t->bytes, __ATOMIC_RELAXED),
                      .long_items = __atomic_load_n(&t->long_items, __ATOMIC_RELAXED),
                      .ran_ns = __atomic_load_n(&t->ran_ns, __ATOMIC_RELAXED),
                      .delayed_ns = __atomic_load_n(&t->delayed_ns, __ATOMIC_RELAXED)};
}

static int by_value(const void *a, const void *b)
{
    const double x = *(const double *)a, y = *(const double *)b;
    return (x > y) - (x < y);
}

/* The lower one of two in the middle. */
static double middle(double *values, uint32_t count)
{
    qsort(values, count, sizeof *values, by_value);
    return values[(count - 1) / 2];
}

typedef struct usual {
    double item_ns, byte_ns, ran_ns, delayed_ns, blocked_ns; /* of an item, but for byte_ns */
} usual;

static double of_item(uint64_t ns, const mri_toll *t) { return (double)ns / (double)t->items; }

static uint64_t blocked_of(const mri_toll *t)
{
    const uint64_t seen = t->ran_ns + t->delayed_ns;
    return t->ns - mri_min_u64(seen, t->ns);
}

static double per_byte(const mri_toll *t) { return t->bytes ? (double)t->ns / (double)t->bytes : 0; }

static usual find_usual(const mri_toll *of, uint32_t count, double *room)
{
    usual u;
    for (uint32_t i = 0; i < count; i++) room[i] = of_item(of[i].ns, &of[i]);
    u.item_ns = middle(room, count);
    for (uint32_t i = 0; i < count; i++) room[i] = per_byte(&of[i]);
    u.byte_ns = middle(room, count);
    for (uint32_t i = 0; i < count; i++) room[i] = of_item(of[i].ran_ns, &of[i]);
    u.ran_ns = middle(room, count);
    for (uint32_t i = 0; i < count; i++) room[i] = of_item(of[i].delayed_ns, &of[i]);
    u.delayed_ns = middle(room, count);
    for (uint32_t i = 0; i < count; i++) room[i] = of_item(blocked_of(&of[i]), &of[i]);
    u.blocked_ns = middle(room, count);
    return u;
}

/* The figure in which it exceeds the others. */
static mr_cause cause_of(mr_odd_kind kind, const mri_toll *t, const usual *u)
{
    if (kind == MR_ODD_FILE) return MR_CAUSE_READ;
    const double ran = of_item(t->ran_ns, t) - u->ran_ns, delayed = of_item(t->delayed_ns, t) - u->delayed_ns,
                 blocked = of_item(blocked_of(t), t) - u->blocked_ns;
    if (delayed >= ran && delayed >= blocked) return MR_CAUSE_CORES;
    return blocked > ran ? MR_CAUSE_BLOCKED : MR_CAUSE_DECODE;
}

static bool sticks_out(mr_odd_kind kind, const mri_toll *t, const usual *u)
{
    const double times = enough[kind].times, mean = of_item(t->ns, t);
    const double more_ns = mean - u->item_ns;
    if (mean < times * u->item_ns || more_ns < enough[kind].more_ns || more_ns * (double)t->items < LOST_NS)
        return false;
    return kind == MR_ODD_WORKER || (2 * t->long_items >= t->items && per_byte(t) >= times * u->byte_ns);
}

static void insert(mr_odd *out, uint32_t *found, uint32_t room, const mr_odd *one)
{
    uint32_t at = *found < room ? (*found)++ : room;
    if (at == room && (room == 0 || out[--at].times >= one->times)) return;
    for (; at > 0 && out[at - 1].times < one->times; at--) out[at] = out[at - 1];
    out[at] = *one;
}

static uint32_t judge(mr_odd_kind kind, const mri_toll *of, const uint32_t *number, uint32_t count,
                      double *room_ns, mr_odd *out, uint32_t room)
{
    uint32_t found = 0;
    const usual u = find_usual(of, count, room_ns);
    for (uint32_t i = 0; i < count; i++) {
        if (!sticks_out(kind, &of[i], &u)) continue;
        const double mean = of_item(of[i].ns, &of[i]);
        const mr_odd one = {.kind = kind,
                            .number = number[i],
                            .ms = 1e-6 * mean,
                            .others_ms = 1e-6 * u.item_ns,
                            .times = u.item_ns > 0 ? mean / u.item_ns : 0,
                            .items = of[i].items,
                            .cause = cause_of(kind, &of[i], &u)};
        insert(out, &found, room, &one);
    }
    return found;
}

uint32_t mri_odd_find(mr_odd_kind kind, const mri_toll *of, uint32_t count, mr_odd *out, uint32_t room)
{
    mri_toll *seen = calloc(count ? count : 1, sizeof *seen);
    double *values = calloc(count ? count : 1, sizeof *values);
    uint32_t *number = calloc(count ? count : 1, sizeof *number), n = 0, found = 0;
    for (uint32_t i = 0; seen && values && number && i < count; i++) {
        seen[n] = look(&of[i]);
        number[n] = i;
        n += seen[n].items >= enough[kind].items;
    }
    if (n > 1) found = judge(kind, seen, number, n, values, out, room);
    free(seen);
    free(values);
    free(number);
    return found;
}
