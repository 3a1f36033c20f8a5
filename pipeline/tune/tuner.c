/* pipeline/tune/tuner.c: see tuner.h. */
#include "pipeline/tune/tuner.h"

#include <inttypes.h>
#include <stdio.h>

#include "base/util.h"

#define TUNE_TURN_NS 200000000u
#define TUNE_ALL_NS  22000000000u /* trying changes; checking the accepted ones takes a fifth of it */
#define TUNE_GAIN    1.03         /* faster by this: taken */
#define ENOUGH       0.97 /* of the batches: with the next one ready so often nothing is to be gained */
#define TURN_BATCHES 8u
#define PAIRS_FEWEST 4u /* that decide for a change, all of them won */
#define PAIRS_MOST   6u /* or all but one */

typedef enum phase {
    LOOK,  /* is there a gain to find? */
    TRY,   /* one change against the present settings */
    CHECK, /* all accepted changes against the initial settings */
    DONE
} phase;

/* The direction to try next for one setting. */
typedef enum direction { UP, DOWN, NOWHERE_ELSE } direction;

/* Two sides that take turns. */
typedef struct comparison {
    uint32_t side[2][MRI_TUNED];
    uint32_t turns;
    double pair[2];         /* batches per ns in the turns of a pair */
    uint32_t won, lost;     /* pairs, by the second side */
    double ns[2], count[2]; /* of all turns: time, batches */
} comparison;

typedef struct turn {
    uint64_t since_ns;       /* when it began to count; 0: batches made before are being used up */
    uint32_t batches, ahead; /* counted; of these, ready before they were asked for */
    uint32_t skip;           /* batches that were made before */
    mr_causes waits;         /* of the consumer at its beginning */
} turn;

/* The consumer's: without a lock. */
struct mri_tuner {
    mri_tuner_config cfg;
    uint32_t best[MRI_TUNED], in_use[MRI_TUNED];
    phase phase;
    mri_tune_what what; /* that is tried, and where to */
    direction to;
    bool went[MRI_TUNED]; /* nothing more is to be had there, as it is */
    uint64_t begun_ns;
    comparison compared;
    turn turn;
    mr_causes waits; /* of the consumer, in the newest turn of the best settings */
    double gain;
    uint32_t tried, taken;
    const char *why; /* no more is tried */
    bool was_ahead;  /* in the newest turn of the best settings: batches were ready before they were asked
                        for */
};

static const char *const names[MRI_TUNED] = {"workers", "prefetch", "depth", "readers"};

static void note(mri_tuner *t, const char *text)
{
    if (t->cfg.note) t->cfg.note(t->cfg.context, text);
}

int mri_tuner_create(mri_tuner **out, const mri_tuner_config *cfg)
{
    mri_tuner *t = *out = calloc(1, sizeof *t);
    if (!t) return MR_ENOMEM;
    t->cfg = *cfg;
    if (!t->cfg.turn_ns) t->cfg.turn_ns = TUNE_TURN_NS;
    if (!t->cfg.all_ns) t->cfg.all_ns = TUNE_ALL_NS;
    memcpy(t->best, cfg->start, sizeof t->best);
    memcpy(t->in_use, cfg->start, sizeof t->in_use);
    t->gain = 1;
    return MR_OK;
}

void mri_tuner_destroy(mri_tuner *t) { free(t); }

const uint32_t *mri_tuner_in_use(const mri_tuner *t) { return t->in_use; }

bool mri_tuner_is_done(const mri_tuner *t) { return t->phase == DONE; }

/* ---- what to try ---- */

/* What counts of depth is whether reads in flight hide the storage's delay, or fit into a core's cache: a
 * change of less than a factor of four is lost in noise. */
static uint32_t step(const mri_tuner *t, mri_tune_what what, direction to)
{
    const uint32_t now = t->best[what], times = what == MRI_TUNE_DEPTH ? 4 : 2;
    const uint32_t up = what == MRI_TUNE_WORKERS ? now + 1 + now / 8 : times * now;
    const uint32_t down = what == MRI_TUNE_WORKERS ? now - 1 - (now > 8 ? now / 8 : 0) : now / times;
    const uint64_t then =
        to == UP ? mri_min_u64(up, t->cfg.most[what]) : mri_max_u64(down, t->cfg.least[what]);
    return (uint32_t)then;
}

/* Order the settings by how much they may reduce the observed waits. */
static void order_of(const mr_causes *c, mri_tune_what order[MRI_TUNED])
{
    static const mri_tune_what reads[] = {MRI_TUNE_DEPTH, MRI_TUNE_READERS, MRI_TUNE_WORKERS,
                                          MRI_TUNE_PREFETCH};
    static const mri_tune_what works[] = {MRI_TUNE_WORKERS, MRI_TUNE_PREFETCH, MRI_TUNE_READERS,
                                          MRI_TUNE_DEPTH};
    static const mri_tune_what bursts[] = {MRI_TUNE_PREFETCH, MRI_TUNE_WORKERS, MRI_TUNE_DEPTH,
                                           MRI_TUNE_READERS};
    int most = 0;
    for (int i = 1; i < MR_CAUSES; i++)
        if (c->ns[i] > c->ns[most] && i != MR_CAUSE_HOST) most = i;
    const bool uneven = most == MR_CAUSE_LARGE || most == MR_CAUSE_ROOM || most == MR_CAUSE_COPY;
    memcpy(order, most == MR_CAUSE_READ ? reads : uneven ? bursts : works, sizeof reads);
}

static bool try_one(mri_tuner *t, mri_tune_what what, direction to)
{
    const uint32_t then = step(t, what, to);
    if (then == t->best[what]) return false;
    t->what = what;
    t->to = to;
    return true;
}

/* The next change; false: no change is left. */
static bool choose(mri_tuner *t)
{
    mri_tune_what order[MRI_TUNED];
    order_of(&t->waits, order);
    for (int i = 0; i < MRI_TUNED; i++) {
        const mri_tune_what what = order[i];
        if (t->went[what]) continue;
        if (try_one(t, what, UP)) return true;
        if (try_one(t, what, DOWN)) return true;
        t->went[what] = true;
    }
    return false;
}

/* ---- turns ---- */

static void begin_turn(mri_tuner *t)
{
    const int side = t->compared.turns % 2;
    memcpy(t->in_use, t->compared.side[side], sizeof t->in_use);
    t->turn.since_ns = 0;
    t->turn.batches = t->turn.ahead = 0;
    /* ready, in the devices' slots, under way */
    t->turn.skip = 3 + (uint32_t)mri_max_u64(t->compared.side[0][MRI_TUNE_PREFETCH],
                                             t->compared.side[1][MRI_TUNE_PREFETCH]);
}

static void compare(mri_tuner *t, const uint32_t *first, const uint32_t *second)
{
    memcpy(t->compared.side[0], first, sizeof t->compared.side[0]);
    memcpy(t->compared.side[1], second, sizeof t->compared.side[1]);
    memset(t->compared.ns, 0, sizeof t->compared.ns);
    memset(t->compared.count, 0, sizeof t->compared.count);
    t->compared.turns = t->compared.won = t->compared.lost = 0;
}

static double rate(const mri_tuner *t, int side)
{
    return t->compared.ns[side] > 0 ? t->compared.count[side] / t->compared.ns[side] : 0;
}

static void finish(mri_tuner *t)
{
    char text[256];
    memcpy(t->in_use, t->best, sizeof t->in_use);
    t->phase = DONE;
    snprintf(text, sizeof text,
             "tune: workers %u, prefetch %u, depth %u, readers %u; %u changes tried, %u "
             "taken, %.2f times as fast: %s",
             t->best[MRI_TUNE_WORKERS], t->best[MRI_TUNE_PREFETCH], t->best[MRI_TUNE_DEPTH],
             t->best[MRI_TUNE_READERS], t->tried, t->taken, t->gain, t->why);
    note(t, text);
}

/* Changes accepted one by one must be faster together. */
static void check_or_finish(mri_tuner *t, const char *why)
{
    t->why = why;
    if (memcmp(t->best, t->cfg.start, sizeof t->best) == 0) finish(t);
    else {
        t->phase = CHECK;
        compare(t, t->cfg.start, t->best);
    }
}

static void checked(mri_tuner *t)
{
    t->gain = rate(t, 1) / rate(t, 0);
    if (t->gain < 1) {
        memcpy(t->best, t->cfg.start, sizeof t->best);
        t->gain = 1;
        t->taken = 0;
        t->why = "what seemed faster was not";
    }
    finish(t);
}

static void try_next(mri_tuner *t)
{
    uint32_t then[MRI_TUNED];
    memcpy(then, t->best, sizeof then);
    then[t->what] = step(t, t->what, t->to);
    t->phase = TRY;
    compare(t, t->best, then);
}

static void tell(mri_tuner *t, bool taken)
{
    char text[160];
    const double per_s = 1e9 * t->cfg.batch;
    snprintf(text, sizeof text, "tune: %s %u: %.0f samples/s, %u: %.0f; %s", names[t->what],
             t->compared.side[0][t->what], per_s * rate(t, 0), t->compared.side[1][t->what],
             per_s * rate(t, 1), taken ? "taken" : "left");
    note(t, text);
}

/* After a change was compared. One that is taken opens the other settings again, a few times. */
static void decide(mri_tuner *t, bool taken)
{
    tell(t, taken);
    t->tried++;
    if (taken) {
        t->taken++;
        t->best[t->what] = t->compared.side[1][t->what];
        for (int i = 0; i < MRI_TUNED; i++)
            t->went[i] = i != (int)t->what && t->went[i] && t->taken > MRI_TUNED;
        if (try_one(t, t->what, t->to)) { /* further there */
            try_next(t);
            return;
        }
    } else if (t->to == UP && try_one(t, t->what, DOWN)) {
        try_next(t);
        return;
    }
    t->went[t->what] = true;
    if (choose(t)) try_next(t);
    else check_or_finish(t, "no other setting is faster");
}

/* A pair of turns is over: does the second side win? */
static void count_pair(mri_tuner *t, uint64_t passed_ns)
{
    *(t->compared.pair[1] > t->compared.pair[0] ? &t->compared.won : &t->compared.lost) += 1;
    const uint32_t pairs = t->compared.won + t->compared.lost;
    if (t->phase == CHECK) {
        if (pairs >= PAIRS_FEWEST || passed_ns > t->cfg.all_ns + t->cfg.all_ns / 5) checked(t);
        return;
    }
    const bool faster = rate(t, 1) > TUNE_GAIN * rate(t, 0);
    if (t->compared.lost >= 2) decide(t, false);
    else if (pairs >= PAIRS_MOST) decide(t, faster);
    else if (t->compared.lost == 0 && pairs >= PAIRS_FEWEST) decide(t, faster);
}

/* Accept the change under comparison if it has won every pair: the accepted changes are checked once more. */
static void stop_trying(mri_tuner *t)
{
    if (t->compared.won >= 2 && t->compared.lost == 0 && rate(t, 1) > TUNE_GAIN * rate(t, 0)) {
        tell(t, true);
        t->tried++;
        t->taken++;
        t->best[t->what] = t->compared.side[1][t->what];
    }
    check_or_finish(t, "the time for it is over");
}

static void looked(mri_tuner *t)
{
    if (t->was_ahead) check_or_finish(t, "batches are ready before they are asked for");
    else if (choose(t)) try_next(t);
    else check_or_finish(t, "every setting is fixed");
}

static void keep_waits(mri_tuner *t, const mr_causes *waits)
{
    for (int i = 0; i < MR_CAUSES; i++) t->waits.ns[i] = waits->ns[i] - t->turn.waits.ns[i];
    t->waits.total_ns = waits->total_ns - t->turn.waits.total_ns;
}

static void end_turn(mri_tuner *t, uint64_t now_ns, const mr_causes *waits)
{
    const int side = t->compared.turns % 2;
    const uint64_t passed_ns = now_ns - t->turn.since_ns;
    t->compared.ns[side] += (double)passed_ns;
    t->compared.count[side] += t->turn.batches;
    t->compared.pair[side] = t->turn.batches / (double)passed_ns;
    if (side == (t->phase == CHECK)) { /* a turn of the best settings */
        keep_waits(t, waits);
        t->was_ahead = t->turn.ahead > ENOUGH * t->turn.batches;
    }
    t->compared.turns++;
    if (t->phase == LOOK) looked(t);
    else if (side == 1) count_pair(t, now_ns - t->begun_ns);
    if (t->phase == TRY && now_ns - t->begun_ns > t->cfg.all_ns) stop_trying(t);
    if (t->phase != DONE) begin_turn(t);
}

bool mri_tuner_batch(mri_tuner *t, uint64_t now_ns, const mr_causes *waits, bool ahead)
{
    if (t->phase == DONE) return false;
    if (!t->begun_ns) {
        t->begun_ns = now_ns;
        compare(t, t->best, t->best);
        begin_turn(t);
    }
    if (!t->turn.since_ns) {
        if (t->turn.skip-- > 0) return false;
        t->turn.since_ns = now_ns;
        t->turn.waits = *waits;
        return false;
    }
    t->turn.batches++;
    t->turn.ahead += ahead;
    if (t->turn.batches < TURN_BATCHES || now_ns - t->turn.since_ns < t->cfg.turn_ns) return false;
    uint32_t before[MRI_TUNED];
    memcpy(before, t->in_use, sizeof before);
    end_turn(t, now_ns, waits);
    return t->phase == DONE || memcmp(before, t->in_use, sizeof before) != 0;
}

bool mri_tuner_is_late(const mri_tuner *t)
{
    static const mr_cause work[] = {MR_CAUSE_READ,  MR_CAUSE_DECODE, MR_CAUSE_LARGE,  MR_CAUSE_MEMORY,
                                    MR_CAUSE_CORES, MR_CAUSE_QUOTA,  MR_CAUSE_BLOCKED};
    uint64_t ns = 0;
    for (size_t i = 0; i < MRI_ARRAY_COUNT(work); i++) ns += t->waits.ns[work[i]];
    return !t->was_ahead && 2 * ns > t->waits.total_ns;
}

void mri_tuner_result(const mri_tuner *t, mr_tuning *out)
{
    *out = (mr_tuning){.done = t->phase == DONE,
                       .workers = t->in_use[MRI_TUNE_WORKERS],
                       .prefetch = t->in_use[MRI_TUNE_PREFETCH],
                       .depth = t->in_use[MRI_TUNE_DEPTH],
                       .readers = t->in_use[MRI_TUNE_READERS],
                       .tried = t->tried,
                       .taken = t->taken,
                       .gain = t->gain};
}
