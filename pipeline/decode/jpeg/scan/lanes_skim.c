/* pipeline/decode/jpeg/scan/lanes_skim.c: lanes that skim one scan in many places at once; see lanes.h.
 *
 *   bytes   |0.......|1.......|2.......| ...     each lane begins at a byte as if an MCU began there
 *           0----->                              and goes on a little past the start of the next lane
 *                   ?--+-->                      a wrong beginning falls into step after some blocks
 *                            ?-+----->
 *
 * Lane 0 begins where an MCU does. Where it stands at the start of an MCU and the next lane has logged the
 * same bit as the start of an MCU, both read the same from there on: the next lane's log continues lane 0's,
 * with its sums of DC differences. Whatever a lane did before that place is ignored. Where no such place is
 * found, or a lane met something that is no code, the log ends: the caller goes on from the last MCU, and
 * reports damage. */
#include "pipeline/decode/jpeg/scan/lanes_inner.h"

#define LANES       32
#define LEAST_BYTES 512 /* of a lane */
#define OVERLAP     384 /* bytes: three of four lanes are in step by then */
#define PATIENCE    64  /* MCUs that one lane's log may be continued by plain C */
#define BROKEN      UINT32_MAX
#define FAR_DC      (1 << 20)

/* Bytes that lie ready, and the lanes' logs over them. */
typedef struct skim {
    mri_lanes *l;
    uint32_t bytes, lanes, lane_bytes;
    uint32_t first[LANES + 1]; /* of each lane's records in order[] */
    uint64_t to;               /* MCU */
    mri_jpeg_entry *noted;
    uint32_t gap;
    size_t byte, file_byte; /* a byte, and where it is in the file */
    /* the walk along the logs: an MCU, its first bit, its DC predictions */
    uint64_t at;
    uint32_t bit;
    int64_t dc[MRI_JPEG_ENTRY_COMPONENTS];
} skim;

static void begin_lanes(const skim *s, uint32_t bit)
{
    mri_lanes *l = s->l;
    memset(l->sums, 0, sizeof l->sums);
    l->log.count = 0;
    for (uint32_t n = 0; n < LANES; n++) {
        mri_lane_group *g = &l->group[n / 16];
        const uint32_t lane = n % 16;
        const bool works = n < s->lanes, is_last = n + 1 >= s->lanes;
        if (lane == 0) g->ac = g->live = 0;
        g->byte[lane] = works ? n * s->lane_bytes : l->byte_limit;
        g->used[lane] = n ? 0 : bit;
        g->at[lane] = 0;
        g->end[lane] = is_last ? s->bytes : (n + 1) * s->lane_bytes + OVERLAP;
        g->state[lane] = 0;
        g->table[lane] = works ? l->table_of[0] : MRI_LANE_PARKED;
        g->live |= (uint16_t)((uint32_t)works << lane);
    }
}

static void log_start(mri_lanes *l, uint32_t group, uint32_t lane)
{
    const mri_lane_group *g = &l->group[group];
    mri_lane_log *log = &l->log;
    log->lane[log->count] = 16 * group + lane;
    log->bit[log->count] = 8 * g->byte[lane] + g->used[lane];
    for (uint32_t c = 0; c < MRI_JPEG_ENTRY_COMPONENTS; c++)
        log->sum[c][log->count] = l->sums[group].sum[c][lane];
    log->count++;
}

/* No code: begin anew at the next byte. Its records do not continue those before. */
static void begin_again(mri_lanes *l, uint32_t group, uint32_t lane)
{
    mri_lane_group *g = &l->group[group];
    log_start(l, group, lane);
    l->log.bit[l->log.count - 1] = BROKEN;
    g->byte[lane]++;
    g->used[lane] = g->at[lane] = g->state[lane] = 0;
    g->table[lane] = l->table_of[0];
    g->ac &= (uint16_t) ~(1u << lane);
}

static void read_symbol(mri_lanes *l, uint32_t group, uint32_t lane)
{
    mri_lane_group *g = &l->group[group];
    const uint32_t state = g->state[lane], ac = state & 1;
    const mri_run_block *b = &l->picture.block[state / 2];
    const uint64_t bits = __builtin_bswap64(mri_le64(l->bytes + g->byte[lane])) << g->used[lane];
    const uint32_t found = mri_huff_search(ac ? &b->ac->codes : &b->dc->codes, bits), length = found & 0xff,
                   run = found >> 12, size = ac ? found >> 8 & 15 : found >> 8;
    if (found == 0) {
        begin_again(l, group, lane);
        return;
    }
    if (state == 0) log_start(l, group, lane);
    g->at[lane] += run + 1;
    if (!ac) {
        const uint64_t top = bits << length;
        const int value = size ? (int)(top >> (64 - size)) + (top >> 63 ? 0 : 1 - (1 << size)) : 0;
        l->sums[group].sum[l->component_of[state]][lane] += value;
    }
    g->used[lane] += length + size;
    g->byte[lane] += g->used[lane] >> 3;
    g->used[lane] &= 7;
    if (ac && !(size == 0 && run != 15) && g->at[lane] < 63) return;
    g->at[lane] = 0;
    g->ac ^= (uint16_t)(1u << lane);
    g->state[lane] = l->next[state];
    g->table[lane] = l->table_of[g->state[lane]];
}

void mri_lanes_skim_hard(mri_lanes *l, uint32_t group, uint32_t hard)
{
    mri_lane_group *g = &l->group[group];
    for (; hard; hard &= hard - 1) {
        const uint32_t lane = (uint32_t)__builtin_ctz(hard);
        read_symbol(l, group, lane);
        if (g->byte[lane] >= l->byte_limit || (g->state[lane] == 0 && g->byte[lane] >= g->end[lane]))
            g->live &= (uint16_t) ~(1u << lane);
    }
}

/* Each lane's records, in order. */
static void sort_log(skim *s)
{
    mri_lanes *l = s->l;
    uint32_t at[LANES + 1] = {0};
    for (uint32_t k = 0; k < l->log.count; k++) at[l->log.lane[k] + 1]++;
    for (uint32_t n = 0; n < LANES; n++) at[n + 1] += at[n];
    memcpy(s->first, at, sizeof at);
    for (uint32_t k = 0; k < l->log.count; k++) l->order[at[l->log.lane[k]]++] = k;
}

/* ---- the walk ---- */

static void place(skim *s, mri_jpeg_entry *out)
{
    const size_t byte = s->bit >> 3;
    s->file_byte += byte - s->byte + mri_count_ff(s->l->bytes + s->byte, byte - s->byte);
    s->byte = byte;
    out->bit = 8 * (uint64_t)s->file_byte + (s->bit & 7);
    for (uint32_t c = 0; c < MRI_JPEG_ENTRY_COMPONENTS; c++) out->dc[c] = (int32_t)s->dc[c];
}

static void note(skim *s)
{
    const uint32_t wide = s->l->picture.wide, column = (uint32_t)(s->at % wide),
                   row = (uint32_t)(s->at / wide);
    if (!s->noted || column % s->gap) return;
    place(s, &s->noted[(size_t)row * ((wide + s->gap - 1) / s->gap) + column / s->gap]);
}

/* The record of a lane from *from on that begins at the walk's bit; false, and the first later one in *from.
 */
static bool joins(const skim *s, uint32_t lane, uint32_t *from)
{
    const mri_lanes *l = s->l;
    while (*from < s->first[lane + 1] &&
           (l->log.bit[l->order[*from]] < s->bit || l->log.bit[l->order[*from]] == BROKEN))
        ++*from;
    return *from < s->first[lane + 1] && l->log.bit[l->order[*from]] == s->bit;
}

/* Plain C from the walk's place on, until the lane's log has it. */
static bool walk_plain(skim *s, uint32_t lane, uint32_t *from)
{
    const mri_lanes_picture *p = &s->l->picture;
    const uint8_t *const bytes = s->l->bytes;
    int32_t dc[MRI_JPEG_ENTRY_COMPONENTS];
    mri_run run = {.block_count = p->block_count, .limit = bytes + s->bytes - MRI_MCU_BYTES};
    for (uint32_t k = 0; k < p->block_count; k++) {
        run.block[k] = p->block[k];
        run.block[k].wide = 0;
        run.block[k].prediction = &dc[p->block[k].prediction - p->prediction];
    }
    for (uint32_t c = 0; c < MRI_JPEG_ENTRY_COMPONENTS; c++) dc[c] = (int32_t)s->dc[c];
    run.bits.from = bytes + (s->bit >> 3);
    mri_bits_load(&run.bits);
    mri_bits_drop(&run.bits, s->bit & 7);
    for (uint32_t n = 0; n < PATIENCE && s->at < s->to; n++) {
        if (mri_run_mcus(&run, 1) != 1) return false;
        s->at++;
        s->bit = 8 * (uint32_t)(run.bits.from - bytes) - (uint32_t)run.bits.count;
        for (uint32_t c = 0; c < MRI_JPEG_ENTRY_COMPONENTS; c++) s->dc[c] = dc[c];
        note(s);
        if (joins(s, lane, from)) return true;
    }
    return false;
}

/* To the record; false when it is no place to stand: beyond the bytes, or a prediction too far. */
static bool step_to(skim *s, uint32_t record, const int64_t *base)
{
    const mri_lane_log *log = &s->l->log;
    int64_t dc[MRI_JPEG_ENTRY_COMPONENTS];
    for (uint32_t c = 0; c < MRI_JPEG_ENTRY_COMPONENTS; c++) {
        dc[c] = base[c] + log->sum[c][record];
        if (dc[c] > FAR_DC || dc[c] < -FAR_DC) return false;
    }
    if (log->bit[record] > 8 * s->bytes) return false;
    memcpy(s->dc, dc, sizeof dc);
    s->bit = log->bit[record];
    s->at++;
    note(s);
    return true;
}

/* Along the logs as far as they are joined, at most to MCU `to`. */
static void walk(skim *s)
{
    const mri_lanes *l = s->l;
    uint32_t lane = 0, k = s->first[0], ahead = s->first[1];
    if (k == s->first[1] || l->log.bit[l->order[k]] != s->bit) return;
    int64_t base[MRI_JPEG_ENTRY_COMPONENTS];
    memcpy(base, s->dc, sizeof base);
    note(s);
    while (s->at < s->to) {
        const bool has_next = lane + 1 < s->lanes;
        bool joined = has_next && s->bit >= 8 * (lane + 1) * s->lane_bytes && joins(s, lane + 1, &ahead);
        if (!joined && (k + 1 == s->first[lane + 1] || l->log.bit[l->order[k + 1]] == BROKEN)) {
            joined = has_next && walk_plain(s, lane + 1, &ahead);
            if (!joined) return;
        }
        if (joined) {
            k = ahead;
            for (uint32_t c = 0; c < MRI_JPEG_ENTRY_COMPONENTS; c++)
                base[c] = s->dc[c] - l->log.sum[c][l->order[k]];
            lane++;
            ahead = s->first[lane + 1 < LANES ? lane + 1 : lane];
        } else if (!step_to(s, l->order[++k], base)) {
            return;
        }
    }
}

uint64_t mri_lanes_skim(mri_lanes *l, mri_jpeg_entry *here, uint64_t at, uint64_t to, mri_jpeg_entry *noted,
                        uint32_t gap)
{
    const mri_lanes_picture *p = &l->picture;
    const uint64_t total = (uint64_t)p->wide * p->high, byte = here->bit >> 3;
    if (2 * p->block_count > MRI_LANE_STATES || p->scan->restart_interval || byte < p->scan->begin ||
        byte >= p->scan->end || at + 1 >= total)
        return at;
    skim s = {.l = l, .to = to < total ? to : total - 1, .noted = noted, .gap = gap, .at = at};
    const size_t left = p->scan->end - (size_t)byte, most = MRI_LANE_BYTES - MRI_UNSTUFF_SLACK;
    const double share = 1.25 * (double)(s.to - at) / (double)(total - at);
    const size_t guess = (size_t)((share < 1 ? share : 1) * (double)left) + 4096;
    size_t used;
    mri_lanes_clear(l);
    s.bytes = (uint32_t)mri_unstuff(p->data + byte, left, l->bytes, guess < most ? guess : most, &used);
    if (s.bytes < 2 * MRI_MCU_BYTES) return at;
    memset(l->bytes + s.bytes, 0xff, 16);
    l->byte_limit = s.bytes + 8;
    s.lanes = s.bytes / LEAST_BYTES < LANES ? s.bytes / LEAST_BYTES : LANES;
    s.lane_bytes = s.bytes / s.lanes;
    s.bit = here->bit & 7;
    s.file_byte = (size_t)byte;
    for (uint32_t c = 0; c < MRI_JPEG_ENTRY_COMPONENTS; c++) s.dc[c] = here->dc[c];
    mri_lanes_set_tables(l);
    begin_lanes(&s, s.bit);
#if defined(__x86_64__)
    mri_lanes_skim_avx512(l);
#endif
    sort_log(&s);
    walk(&s);
    if (s.at > at) place(&s, here);
    return s.at;
}
