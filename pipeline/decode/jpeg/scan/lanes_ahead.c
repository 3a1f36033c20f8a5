/* pipeline/decode/jpeg/scan/lanes_ahead.c: lanes that read one scan in many places at once; see lanes.h.
 *
 *   bytes   |0.......|1.......|2.......| ...     each lane begins at a byte as if an MCU began there
 *           0----->                              and goes on a little past the start of the next lane
 *                   ?--+-->                      a wrong beginning falls into step after some blocks
 *                            ?-+----->
 *
 * Lane 0 begins where an MCU does. Where it stands at the start of an MCU and the next lane has logged the
 * same bit as the start of an MCU, both read the same from there on: the next lane's log continues lane 0's.
 * Whatever a lane did before that place is ignored. A lane whose log ends too early goes on in plain C. Where
 * no common place is found, or a lane met something that is no code, the walk along the logs ends: the cursor
 * goes on from the last MCU, and reports damage.
 *
 * Skimming lanes add up DC differences. Storing ones leave them in the coefficients, which lie in the order
 * of the scan in a region of each lane, and the walk adds them up. */
#include "pipeline/decode/jpeg/scan/lanes_inner.h"

#define PIECES      MRI_LANE_PIECES
#define LEAST_BYTES 512 /* of a piece */
#define OVERLAP     12  /* blocks: two of three lanes are in step by then */
#define MEAN_BLOCKS                                                                                          \
    224                /* of a piece when storing, out of MRI_LANE_PIECE_BLOCKS: a flat piece has many more */
#define PATIENCE    64 /* MCUs for which one lane goes on in plain C */
#define BROKEN      UINT32_MAX
#define FAR_DC      (1 << 20)
#define PIECE_COEFS (MRI_LANE_PIECE_BLOCKS * MRI_JPEG_BLOCK)

/* Bytes that lie ready, the lanes' logs over them, and the walk along the logs. */
typedef struct ahead {
    mri_lanes *l;
    bool store;
    uint32_t bytes, lanes, lane_bytes, overlap;
    uint32_t first[PIECES + 1]; /* of each lane's records in order[] */
    uint64_t to;                /* MCU */
    mri_jpeg_entry *noted;
    uint32_t gap;
    size_t byte, file_byte; /* a byte, and where it is in the file */
    /* the walk: an MCU, its first bit, its DC predictions; of the lane that read it, its number, the
     * predictions before that lane's first MCU, and (storing) the MCU's coefficients */
    uint64_t at;
    uint32_t bit, lane, coef;
    int64_t dc[MRI_JPEG_ENTRY_COMPONENTS], base[MRI_JPEG_ENTRY_COMPONENTS];
} ahead;

static uint32_t first_coef(uint32_t lane) { return MRI_JPEG_BLOCK + lane * PIECE_COEFS; }

/* The last coefficient at which a lane may begin an MCU: a spare block follows. */
static uint32_t last_coef(const mri_lanes *l, uint32_t lane)
{
    return first_coef(lane + 1) - (l->picture.block_count + 1) * MRI_JPEG_BLOCK;
}

void mri_lanes_clear_ahead(mri_lanes *l)
{
    for (uint32_t n = 0; n < l->piece_count && !l->dc.only; n++) {
        const uint32_t from = first_coef(n), past = (l->group[n / 16].at[n % 16] | 63) + 1 + MRI_JPEG_BLOCK,
                       most = first_coef(n + 1);
        memset(l->coef + from, 0, ((past < most ? past : most) - from) * sizeof l->coef[0]);
    }
    l->piece_count = l->mcu_count = 0;
}

/* ---- between two runs of the loop ---- */

static void begin_lanes(const ahead *s, uint32_t bit)
{
    mri_lanes *l = s->l;
    memset(l->ahead, 0, sizeof l->ahead);
    l->log.count = 0;
    for (uint32_t n = 0; n < PIECES; n++) {
        mri_lane_group *g = &l->group[n / 16];
        const uint32_t lane = n % 16;
        const bool works = n < s->lanes, is_last = n + 1 >= s->lanes;
        const uint32_t past = is_last ? s->bytes : (n + 1) * s->lane_bytes + s->overlap;
        if (lane == 0) g->ac = g->live = 0;
        g->byte[lane] = works ? n * s->lane_bytes : l->byte_limit;
        g->used[lane] = n ? 0 : bit;
        g->at[lane] = s->store ? first_coef(n) : 0;
        g->end[lane] = past < s->bytes ? past : s->bytes;
        g->state[lane] = 0;
        g->table[lane] = works ? l->table_of[0] : MRI_LANE_PARKED;
        g->live |= (uint16_t)((uint32_t)works << lane);
        l->ahead[n / 16].full[lane] = last_coef(l, n) - l->picture.block_count * MRI_JPEG_BLOCK;
    }
    if (s->store) l->piece_count = PIECES;
}

static uint32_t bit_of(const mri_lane_group *g, uint32_t lane) { return 8 * g->byte[lane] + g->used[lane]; }

static void log_start(mri_lanes *l, uint32_t group, uint32_t lane)
{
    const mri_lane_group *g = &l->group[group];
    mri_lane_log *log = &l->log;
    log->lane[log->count] = 16 * group + lane;
    log->bit[log->count] = bit_of(g, lane);
    log->at[log->count] = g->at[lane];
    for (uint32_t c = 0; c < MRI_JPEG_ENTRY_COMPONENTS; c++)
        log->sum[c][log->count] = l->ahead[group].sum[c][lane];
    log->count++;
}

/* No code: begin anew at the next byte. Its records do not continue those before. */
static void begin_again(mri_lanes *l, uint32_t group, uint32_t lane, bool store)
{
    mri_lane_group *g = &l->group[group];
    const uint32_t blocks = g->state[lane] / 2,
                   base = store ? (g->at[lane] | 63) - 63 - blocks * MRI_JPEG_BLOCK : 0;
    log_start(l, group, lane);
    l->log.bit[l->log.count - 1] = BROKEN;
    g->byte[lane]++;
    g->used[lane] = g->state[lane] = 0;
    g->at[lane] = base;
    if (store && !l->dc.only)
        memset(l->coef + base, 0, (size_t)(blocks + 2) * MRI_JPEG_BLOCK * sizeof l->coef[0]);
    g->table[lane] = l->table_of[0];
    g->ac &= (uint16_t) ~(1u << lane);
}

/* One symbol in plain C; false, and nothing is read, when it is invalid or, storing, runs over the end of the
 * block. */
static bool read_symbol(mri_lanes *l, uint32_t group, uint32_t lane, bool store)
{
    mri_lane_group *g = &l->group[group];
    const uint32_t state = g->state[lane], k = g->at[lane] & 63;
    const bool ac = state & 1;
    const mri_run_block *b = &l->picture.block[state / 2];
    const uint64_t bits = __builtin_bswap64(mri_le64(l->bytes + g->byte[lane])) << g->used[lane];
    const uint32_t found = mri_huff_search(ac ? &b->ac->codes : &b->dc->codes, bits), length = found & 0xff,
                   run = ac ? found >> 12 : 0, size = ac ? found >> 8 & 15 : found >> 8;
    if (found == 0) return false;
    const uint64_t top = bits << length;
    const int value = size ? (int)(top >> (64 - size)) + (top >> 63 ? 0 : 1 - (1 << size)) : 0;
    const bool over = ac && size == 0 && run != 15;
    const uint32_t to = ac ? k + run + 1 : 0;
    if (store && !over) {
        if (to > 63) return false;
        if (!l->dc.only) l->coef[(g->at[lane] | 63) - 63 + to] = (int16_t)value;
        else if (!ac) l->dc.of[g->at[lane] / MRI_JPEG_BLOCK] = (int16_t)value;
    }
    if (!ac) l->ahead[group].sum[l->component_of[state]][lane] += value;
    g->used[lane] += length + size;
    g->byte[lane] += g->used[lane] >> 3;
    g->used[lane] &= 7;
    if (ac && !over) g->at[lane] += run + 1;
    if (ac && !over && to < 63) return true;
    if (ac) g->at[lane] = store ? (g->at[lane] | 63) + 1 : 0;
    g->ac ^= (uint16_t)(1u << lane);
    g->state[lane] = l->next[state];
    g->table[lane] = l->table_of[g->state[lane]];
    return true;
}

void mri_lanes_ahead_hard(mri_lanes *l, uint32_t group, uint32_t hard, bool store)
{
    mri_lane_group *g = &l->group[group];
    for (; hard; hard &= hard - 1) {
        const uint32_t lane = (uint32_t)__builtin_ctz(hard), byte = g->byte[lane], at = g->at[lane],
                       record = l->log.count;
        const bool start = g->state[lane] == 0;
        if (start) log_start(l, group, lane);
        const bool fine = read_symbol(l, group, lane, store);
        if (!fine) {
            l->log.count = record;
            begin_again(l, group, lane, store);
        }
        const bool past = byte >= g->end[lane] || (store && at >= l->ahead[group].full[lane]);
        if (g->byte[lane] >= l->byte_limit || (fine && start && past)) g->live &= (uint16_t) ~(1u << lane);
    }
}

/* Each lane's records, in order. */
static void sort_log(ahead *s)
{
    mri_lanes *l = s->l;
    uint32_t at[PIECES + 1] = {0};
    for (uint32_t k = 0; k < l->log.count; k++) at[l->log.lane[k] + 1]++;
    for (uint32_t n = 0; n < PIECES; n++) at[n + 1] += at[n];
    memcpy(s->first, at, sizeof at);
    for (uint32_t k = 0; k < l->log.count; k++) l->order[at[l->log.lane[k]]++] = k;
}

/* ---- the walk ---- */

static void place(ahead *s, mri_jpeg_entry *out)
{
    const size_t byte = s->bit >> 3;
    s->file_byte += byte - s->byte + mri_count_ff(s->l->bytes + s->byte, byte - s->byte);
    s->byte = byte;
    out->bit = 8 * (uint64_t)s->file_byte + (s->bit & 7);
    for (uint32_t c = 0; c < MRI_JPEG_ENTRY_COMPONENTS; c++) out->dc[c] = (int32_t)s->dc[c];
}

static void note(ahead *s)
{
    const uint32_t wide = s->l->picture.wide, column = (uint32_t)(s->at % wide),
                   row = (uint32_t)(s->at / wide);
    if (!s->noted || column % s->gap) return;
    place(s, &s->noted[(size_t)row * ((wide + s->gap - 1) / s->gap) + column / s->gap]);
}

static bool is_far(const int64_t *dc)
{
    bool is = false;
    for (uint32_t c = 0; c < MRI_JPEG_ENTRY_COMPONENTS; c++) is |= dc[c] > FAR_DC || dc[c] < -FAR_DC;
    return is;
}

/* Add the DC differences of the MCU of the walk to the predictions; they become DC coefficients. False, and
 * the predictions are as before, where one is too far. */
static bool sum_mcu(ahead *s)
{
    mri_lanes *l = s->l;
    int64_t before[MRI_JPEG_ENTRY_COMPONENTS];
    const uint32_t apart = l->dc.only ? 1 : MRI_JPEG_BLOCK;
    int16_t *z = l->dc.only ? l->dc.of + s->coef / MRI_JPEG_BLOCK : l->coef + s->coef;
    memcpy(before, s->dc, sizeof before);
    for (uint32_t k = 0; k < l->picture.block_count; k++, z += apart) {
        int64_t *const sum = &s->dc[l->component_of[2 * k]];
        *sum += *z;
        *z = (int16_t)*sum;
    }
    if (!is_far(s->dc)) return true;
    memcpy(s->dc, before, sizeof before);
    return false;
}

/* The predictions at a place where DC differences since the lane's start are known; false as above. */
static bool take_sums(ahead *s, const int32_t *sum)
{
    int64_t dc[MRI_JPEG_ENTRY_COMPONENTS];
    for (uint32_t c = 0; c < MRI_JPEG_ENTRY_COMPONENTS; c++) dc[c] = s->base[c] + sum[c];
    if (is_far(dc)) return false;
    memcpy(s->dc, dc, sizeof dc);
    return true;
}

/* To the start of the next MCU, which the same lane has read; sum: of its DC differences when skimming. False
 * at the end of the bytes, or where a prediction is too far. */
static bool step_to(ahead *s, uint32_t bit, uint32_t coef, const int32_t *sum)
{
    if (bit >= 8 * s->bytes || !(s->store ? sum_mcu(s) : take_sums(s, sum))) return false;
    if (s->store) s->l->mcu[s->l->mcu_count++] = s->coef;
    s->bit = bit;
    s->coef = coef;
    s->at++;
    note(s);
    return true;
}

static bool step_to_record(ahead *s, uint32_t record)
{
    const mri_lane_log *log = &s->l->log;
    int32_t sum[MRI_JPEG_ENTRY_COMPONENTS];
    for (uint32_t c = 0; c < MRI_JPEG_ENTRY_COMPONENTS && !s->store; c++) sum[c] = log->sum[c][record];
    return step_to(s, log->bit[record], log->at[record], sum);
}

/* One step of the lane in plain C, as the loop of lanes_avx512.c takes it; false, and nothing is read, when
 * its entry cannot be taken. */
static bool take_step(mri_lanes *l, uint32_t group, uint32_t lane, bool store)
{
    mri_lane_group *g = &l->group[group];
    const uint32_t state = g->state[lane], table = l->table_of[state], at = g->at[lane];
    const uint64_t bits = __builtin_bswap64(mri_le64(l->bytes + g->byte[lane])) << g->used[lane];
    const mri_lane_entry e = l->table.entry[((uint32_t)(bits >> 32) >> (table & 31)) + table];
    const uint32_t all = e.how & 0xff, far = e.how >> 8 & 0xff, to = (at & 63) + far, size = e.how >> 24 & 31;
    if (to & MRI_LANE_ODD) return false;
    const uint64_t top = bits << (all - size);
    const int value = size ? (int)(top >> (64 - size)) + (top >> 63 ? 0 : 1 - (1 << size)) : 0;
    if (store && !l->dc.only) {
        int16_t *const z = l->coef + at + (e.how >> 16 & 0xff);
        z[0] = (int16_t)(value + (int8_t)e.values);
        for (uint32_t k = 1; k < 4; k++) z[k] = (int8_t)(e.values >> 8 * k);
    }
    g->used[lane] += all;
    g->byte[lane] += g->used[lane] >> 3;
    g->used[lane] &= 7;
    if (to < 63) {
        g->at[lane] = at + far;
        return true;
    }
    if (state & 1) {
        g->at[lane] = store ? (at | 63) + 1 : 0;
    } else {
        l->ahead[group].sum[l->component_of[state]][lane] += value;
        if (store && l->dc.only) l->dc.of[at / MRI_JPEG_BLOCK] = (int16_t)value;
    }
    g->state[lane] = l->next[state];
    return true;
}

/* The rest of the walk's MCU, by the lane that logged its start last. A lane that a full log stopped may have
 * read it and stand at the start of the next one, which is in no log. */
static bool read_mcu(ahead *s)
{
    mri_lanes *l = s->l;
    const uint32_t group = s->lane / 16, lane = s->lane % 16;
    const mri_lane_group *g = &l->group[group];
    int32_t sum[MRI_JPEG_ENTRY_COMPONENTS];
    if (s->store && g->at[lane] > last_coef(l, s->lane)) return false;
    while (g->state[lane] != 0 || bit_of(g, lane) == s->bit)
        if (g->byte[lane] >= l->byte_limit ||
            (!take_step(l, group, lane, s->store) && !read_symbol(l, group, lane, s->store)))
            return false;
    for (uint32_t c = 0; c < MRI_JPEG_ENTRY_COMPONENTS; c++) sum[c] = l->ahead[group].sum[c][lane];
    return step_to(s, bit_of(g, lane), g->at[lane], sum);
}

/* The record of a lane from *from on that begins at the walk's bit; false, and the first later one in *from.
 */
static bool joins(const ahead *s, uint32_t lane, uint32_t *from)
{
    const mri_lanes *l = s->l;
    while (*from < s->first[lane + 1] &&
           (l->log.bit[l->order[*from]] < s->bit || l->log.bit[l->order[*from]] == BROKEN))
        ++*from;
    return *from < s->first[lane + 1] && l->log.bit[l->order[*from]] == s->bit;
}

/* After the end of the lane's log, until the next lane's log has the place. */
static bool read_on(ahead *s, uint32_t *from)
{
    if (s->lane + 1 >= s->lanes) return false;
    for (uint32_t n = 0; n < PATIENCE && s->at < s->to; n++) {
        if (!read_mcu(s)) return false;
        if (joins(s, s->lane + 1, from)) return true;
    }
    return false;
}

/* From here on the next lane's log, from its record in order[k]. */
static void change_lane(ahead *s, uint32_t k)
{
    const mri_lanes *l = s->l;
    s->lane++;
    s->coef = l->log.at[l->order[k]];
    for (uint32_t c = 0; c < MRI_JPEG_ENTRY_COMPONENTS; c++)
        s->base[c] = s->dc[c] - l->log.sum[c][l->order[k]];
}

/* Along the logs as far as they are joined, at most to MCU `to`. */
static void walk(ahead *s)
{
    const mri_lanes *l = s->l;
    uint32_t k = s->first[0], next = s->first[1];
    if (k == s->first[1] || l->log.bit[l->order[k]] != s->bit) return;
    s->coef = l->log.at[l->order[k]];
    memcpy(s->base, s->dc, sizeof s->base);
    note(s);
    while (s->at < s->to) {
        const bool due = s->lane + 1 < s->lanes && s->bit >= 8 * (s->lane + 1) * s->lane_bytes;
        bool joined = due && joins(s, s->lane + 1, &next);
        if (!joined && k + 1 == s->first[s->lane + 1]) {
            joined = read_on(s, &next);
            if (!joined) return;
        }
        if (joined) {
            change_lane(s, k = next);
            next = s->first[s->lane + 1];
        } else if (l->log.bit[l->order[++k]] == BROKEN || !step_to_record(s, l->order[k])) {
            return;
        }
    }
}

/* ---- a batch ---- */

/* An estimate of a block's bytes, from the MCUs before or all that are left. */
static double block_bytes(const ahead *s, uint64_t total, size_t left)
{
    const mri_lanes *l = s->l;
    return l->block_bytes > 0 ? l->block_bytes
                              : (double)left / (double)((total - s->at) * l->picture.block_count);
}

/* Bytes to be read ahead: an estimate of the MCUs' bytes, or an equal part of that for each of the batches
 * they take. */
static size_t guess_bytes(const ahead *s, uint64_t total, size_t left)
{
    const double margin = s->store ? 1.02 : 1.25, mcus = (double)(s->to - s->at);
    const double share = margin * mcus / (double)(total - s->at), all = share < 1 ? share : 1,
                 guess = all * (double)left + 1024,
                 room = s->store ? PIECES * MEAN_BLOCKS * block_bytes(s, total, left) : MRI_LANE_BYTES;
    const double most = room < MRI_LANE_BYTES - MRI_UNSTUFF_SLACK ? room : MRI_LANE_BYTES - MRI_UNSTUFF_SLACK;
    return (size_t)(guess / (double)((uint64_t)(guess / most) + 1));
}

static uint64_t read_ahead(mri_lanes *l, bool store, mri_jpeg_entry *here, uint64_t at, uint64_t to,
                           mri_jpeg_entry *noted, uint32_t gap)
{
    const mri_lanes_picture *p = &l->picture;
    const uint64_t total = (uint64_t)p->wide * p->high, byte = here->bit >> 3;
    mri_lanes_clear(l);
    if (2 * p->block_count > MRI_LANE_STATES || p->scan->restart_interval || byte < p->scan->begin ||
        byte >= p->scan->end || at + 1 >= total)
        return at;
    ahead s = {
        .l = l, .store = store, .to = to < total ? to : total - 1, .noted = noted, .gap = gap, .at = at};
    const size_t left = p->scan->end - (size_t)byte;
    size_t used;
    s.bytes = (uint32_t)mri_unstuff(p->data + byte, left, l->bytes, guess_bytes(&s, total, left), &used);
    if (s.bytes < 2 * MRI_MCU_BYTES) return at;
    memset(l->bytes + s.bytes, 0xff, 16);
    l->byte_limit = s.bytes + 8;
    s.lanes = s.bytes / LEAST_BYTES < PIECES ? s.bytes / LEAST_BYTES : PIECES;
    s.lane_bytes = s.bytes / s.lanes;
    const double overlap = OVERLAP * block_bytes(&s, total, left);
    s.overlap = overlap < s.bytes ? (uint32_t)overlap : s.bytes;
    s.bit = here->bit & 7;
    s.file_byte = (size_t)byte;
    for (uint32_t c = 0; c < MRI_JPEG_ENTRY_COMPONENTS; c++) s.dc[c] = here->dc[c];
    mri_lanes_set_tables(l, !store || l->dc.only);
    begin_lanes(&s, s.bit);
#if defined(__x86_64__)
    if (store) mri_lanes_ahead_avx512(l);
    else mri_lanes_skim_avx512(l);
#endif
    sort_log(&s);
    l->mcu_first = at;
    walk(&s);
    if (s.at == at) return at;
    l->block_bytes = (double)(s.bit >> 3) / (double)((s.at - at) * p->block_count);
    place(&s, here);
    return s.at;
}

uint64_t mri_lanes_skim(mri_lanes *l, mri_jpeg_entry *here, uint64_t at, uint64_t to, mri_jpeg_entry *noted,
                        uint32_t gap)
{
    return read_ahead(l, false, here, at, to, noted, gap);
}

uint64_t mri_lanes_ahead(mri_lanes *l, mri_jpeg_entry *here, uint64_t at, uint64_t to, mri_jpeg_entry *noted,
                         uint32_t gap)
{
    return read_ahead(l, true, here, at, to, noted, gap);
}

/* As mri_lanes_store_ahead_avx512(), DC alone. */
static void store_dc_ahead(const mri_lanes *l, const uint32_t *mcu, uint32_t from, uint32_t count,
                           const mri_run_block *block)
{
    const mri_run_block *const end = block + l->picture.block_count;
    for (uint32_t column = from; column < from + count; column++, mcu++) {
        const int16_t *dc = l->dc.of + *mcu / MRI_JPEG_BLOCK;
        for (const mri_run_block *b = block; b < end; b++, dc++) {
            const uint32_t x = b->x + b->step * column;
            if (x >= b->wide) continue;
            b->coef[x][0] = *dc;
            b->last[x] = 0;
        }
    }
}

uint64_t mri_lanes_store(const mri_lanes *l, uint64_t at, uint64_t to, const mri_run_block *block)
{
    if (at < l->mcu_first || at - l->mcu_first >= l->mcu_count) return at;
    const uint64_t past = l->mcu_first + l->mcu_count, end = past < to ? past : to;
    const uint32_t *const mcu = l->mcu + (at - l->mcu_first);
    const uint32_t column = (uint32_t)(at % l->picture.wide), count = (uint32_t)(end - at);
    if (l->dc.only) store_dc_ahead(l, mcu, column, count, block);
#if defined(__x86_64__)
    else mri_lanes_store_ahead_avx512(l, mcu, column, count, block);
#endif
    return end;
}
