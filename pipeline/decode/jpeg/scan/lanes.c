/* pipeline/decode/jpeg/scan/lanes.c: see lanes.h. Here: segments out of entry points, their bytes, what lanes
 * do between two runs of the loop, and the comparison with the entry points. */
#include "pipeline/decode/jpeg/scan/lanes.h"

#include "base/simd.h"
#include "pipeline/decode/jpeg/scan/lanes_inner.h"

#define LEAST_SEGMENTS 20        /* fewer: the scalar loop is as fast, and needs no tables of ours */
#define TWO_GROUPS     24        /* segments from which a second group of lanes is worth it */
#define FAR_DC         (1 << 20) /* no sound picture has such a prediction */
#define AHEAD_BYTES    16        /* of the file, after a row's last segment */

bool mri_lanes_supported(void) { return mri_simd() == MRI_SIMD_AVX512; }

int mri_lanes_create(mri_lanes **out)
{
    mri_lanes *l = mri_alloc_aligned(_Alignof(mri_lanes), sizeof *l);
    *out = l;
    if (!l) return MR_ENOMEM;
    memset(l, 0, sizeof *l);
    return MR_OK;
}

void mri_lanes_destroy(mri_lanes *l) { free(l); }

uint64_t mri_lanes_bytes(void) { return sizeof(mri_lanes); }

/* Coefficients of a batch whose rows were not all stored. */
void mri_lanes_clear(mri_lanes *l)
{
    if (l->rows.left && !l->dc.only)
        memset(l->coef + MRI_JPEG_BLOCK, 0, l->segment[l->segment_count - 1].end * sizeof(int16_t));
    l->segment_count = l->rows.count = l->rows.left = 0;
    mri_lanes_clear_ahead(l);
}

void mri_lanes_open(mri_lanes *l, const mri_lanes_picture *p)
{
    mri_lanes_clear(l);
    l->picture = *p;
    l->block_bytes = 0;
    l->dc.only = false;
}

void mri_lanes_only_dc(mri_lanes *l)
{
    mri_lanes_clear(l);
    l->dc.only = true;
}

/* ---- tables ---- */

void mri_lanes_set_tables(mri_lanes *l, bool skim)
{
    const mri_lanes_picture *p = &l->picture;
    for (uint32_t k = 0; k < p->block_count; k++) {
        const uint32_t ac = (uint32_t)(p->block[k].ac - p->ac), dc = (uint32_t)(p->block[k].dc - p->dc),
                       s = 2 * k;
        mri_lane_tables_ac(&l->table, ac, &p->ac[ac].codes);
        mri_lane_tables_dc(&l->table, dc, &p->dc[dc].codes);
        if (skim) mri_lane_tables_skim(&l->table, ac, &p->ac[ac].codes);
        l->table_of[s] = l->careful[s] = l->longer[s] = dc * MRI_LANE_SET + MRI_LANE_DC_AT;
        l->table_of[s + 1] = ac * MRI_LANE_SET + (skim ? MRI_LANE_SKIM_AT : MRI_LANE_AC_AT);
        l->careful[s + 1] = ac * MRI_LANE_SET + MRI_LANE_CAREFUL_AT;
        l->longer[s + 1] = l->table.long_at[ac];
        l->component_of[s] = l->component_of[s + 1] = (uint32_t)(p->block[k].prediction - p->prediction);
        l->next[s] = s + 1;
        l->next[s + 1] = k + 1 < p->block_count ? s + 2 : 0;
    }
    for (uint32_t s = 0; s < 2 * p->block_count; s++) l->next_table[s] = l->table_of[l->next[s]];
}

/* ---- segments ---- */

/* The entry point after the one of idx; false at the end of the picture. */
static bool next_entry(const mri_lanes_picture *p, uint32_t row, uint32_t idx, mri_jpeg_entry *e)
{
    if (idx + 1 < p->entries->per_row) mri_jpeg_entries_next(p->entries, row, idx, e);
    else if (row + 1 < p->high) *e = mri_jpeg_entries_row(p->entries, row + 1);
    else return false;
    return true;
}

static bool usable(const mri_lanes_picture *p, const mri_jpeg_entry *e)
{
    bool fine = e->bit >> 3 >= p->scan->begin && e->bit >> 3 < p->scan->end;
    for (uint32_t k = 0; k < p->scan->component_count; k++) fine &= e->dc[k] < FAR_DC && e->dc[k] > -FAR_DC;
    return fine;
}

/* Room that is used up while a batch is made. */
typedef struct room {
    uint32_t bytes, at; /* of bytes[] and coefficients */
} room;

/* File bytes [from, to) without stuffing; false when a marker or half a stuffed FF is in them, or no room. */
static bool take_bytes(mri_lanes *l, room *r, uint64_t from, uint64_t to)
{
    size_t used;
    if (to < from || to - from + r->bytes > MRI_LANE_BYTES) return false;
    r->bytes += (uint32_t)mri_unstuff(l->picture.data + from, (size_t)(to - from), l->bytes + r->bytes,
                                      SIZE_MAX, &used);
    return used == to - from;
}

/* A segment of row from entry point idx on, up to column to; *e goes to the next entry point. */
static bool take_segment(mri_lanes *l, room *r, uint32_t row, uint32_t idx, uint32_t to, mri_jpeg_entry *e)
{
    const mri_lanes_picture *p = &l->picture;
    const uint32_t gap = p->entries->gap, from = idx * gap,
                   past = p->wide - from < gap ? p->wide : from + gap;
    mri_lane_segment *s = &l->segment[l->segment_count];
    if (l->segment_count == MRI_LANE_SEGMENTS || !usable(p, e)) return false;
    *s = (mri_lane_segment){.bit = 8 * r->bytes + (e->bit & 7), .at = r->at, .from = from};
    s->to = to < past ? to : past;
    s->end = s->at + (s->to - from) * p->block_count * MRI_JPEG_BLOCK;
    if (s->end + MRI_JPEG_BLOCK > MRI_LANE_BLOCKS * MRI_JPEG_BLOCK) return false;
    memcpy(s->dc, e->dc, sizeof s->dc);
    const uint64_t begin = e->bit >> 3;
    if (next_entry(p, row, idx, e)) {
        if (!usable(p, e) || !take_bytes(l, r, begin, e->bit >> 3)) return false;
        s->end_bit = 8 * r->bytes + (e->bit & 7);
        s->whole = s->to == past;
        memcpy(s->next_dc, e->dc, sizeof s->next_dc);
    } else { /* to the marker */
        size_t used;
        const size_t most = MRI_LANE_BYTES - r->bytes;
        const size_t got =
            mri_unstuff(p->data + begin, p->scan->end - (size_t)begin, l->bytes + r->bytes, most, &used);
        if (got >= most) return false;
        r->bytes += (uint32_t)got;
        s->end_bit = 8 * r->bytes;
    }
    r->at = s->end + MRI_JPEG_BLOCK;
    l->segment_count++;
    return true;
}

/* A row's segments. False: no room, or something that the lanes do not decode; nothing is left of it. */
static bool take_row(mri_lanes *l, room *r, uint32_t row, mri_lanes_span span)
{
    const mri_jpeg_entries *t = l->picture.entries;
    const uint32_t count = l->segment_count, first = span.from / t->gap;
    const room before = *r;
    mri_jpeg_entry e = mri_jpeg_entries_row(t, row);
    for (uint32_t k = 0; k < first; k++) mri_jpeg_entries_next(t, row, k, &e);
    bool fine = true;
    for (uint32_t k = first; fine && k * t->gap < span.to; k++)
        fine = take_segment(l, r, row, k, span.to, &e);
    if (fine && usable(&l->picture, &e)) { /* the last one's last bits, and the lookahead of a window */
        const uint64_t at = e.bit >> 3, left = l->picture.scan->end - at;
        size_t used;
        fine = r->bytes <= MRI_LANE_BYTES - AHEAD_BYTES;
        if (fine)
            r->bytes += (uint32_t)mri_unstuff(l->picture.data + at, left < AHEAD_BYTES ? left : AHEAD_BYTES,
                                              l->bytes + r->bytes, AHEAD_BYTES, &used);
    }
    if (fine) return true;
    l->segment_count = count;
    *r = before;
    return false;
}

/* ---- lanes ---- */

/* One symbol in plain C; false when the code is invalid, or runs over the end of the block. */
static bool one_symbol(mri_lanes *l, mri_lane_group *g, uint32_t lane)
{
    const uint32_t state = g->state[lane], k = g->at[lane] & 63;
    const mri_run_block *b = &l->picture.block[state / 2];
    const bool ac = state & 1;
    const uint64_t bits = __builtin_bswap64(mri_le64(l->bytes + g->byte[lane])) << g->used[lane];
    const uint32_t found = mri_huff_search(ac ? &b->ac->codes : &b->dc->codes, bits), length = found & 0xff,
                   run = ac ? found >> 12 : 0, size = ac ? found >> 8 & 15 : found >> 8;
    if (found == 0) return false;
    const uint64_t top = bits << length;
    const int value = size ? (int)(top >> (64 - size)) + (top >> 63 ? 0 : 1 - (1 << size)) : 0;
    const bool over = ac && size == 0 && run != 15;
    const uint32_t to = ac ? k + run + 1 : 0;
    if (!over && to > 63) return false;
    if (!l->dc.only && !over) l->coef[(g->at[lane] | 63) - 63 + to] = (int16_t)value;
    if (l->dc.only && !ac) l->dc.of[g->at[lane] / MRI_JPEG_BLOCK] = (int16_t)value;
    g->used[lane] += length + size;
    g->byte[lane] += g->used[lane] >> 3;
    g->used[lane] &= 7;
    if (g->byte[lane] > l->byte_limit) return false;
    if (over || to == 63) g->at[lane] = (g->at[lane] | 63) + 1;
    else if (ac) g->at[lane] += run + 1;
    if (ac && !over && to < 63) return true;
    g->ac ^= (uint16_t)(1u << lane);
    g->state[lane] = l->next[state];
    g->table[lane] = l->table_of[g->state[lane]];
    return true;
}

static void end_segment(const mri_lane_group *g, uint32_t lane, mri_lane_segment *s)
{
    const uint32_t bit = 8 * g->byte[lane] + g->used[lane];
    s->good = g->at[lane] == s->end && (s->whole ? bit == s->end_bit : bit <= s->end_bit);
}

static void begin_segment(mri_lanes *l, mri_lane_group *g, uint32_t lane)
{
    const bool more = l->segment_next < l->segment_count;
    const mri_lane_segment *s = &l->segment[l->segment_next];
    const uint16_t bit = (uint16_t)(1u << lane);
    g->ac &= (uint16_t)~bit;
    g->live = more ? g->live | bit : g->live & (uint16_t)~bit;
    g->byte[lane] = more ? s->bit >> 3 : l->byte_limit;
    g->used[lane] = more ? s->bit & 7 : 0;
    g->at[lane] = more ? s->at : MRI_LANE_SPARE;
    g->end[lane] = more ? s->end : UINT32_MAX;
    g->state[lane] = 0;
    g->table[lane] = more ? l->table_of[0] : MRI_LANE_PARKED;
    if (more) g->segment[lane] = l->segment_next++;
}

void mri_lanes_attend(mri_lanes *l, mri_lane_group *g, uint32_t hard, uint32_t which)
{
    for (uint32_t left = which & g->live; left; left &= left - 1) {
        const uint32_t lane = (uint32_t)__builtin_ctz(left);
        const bool lost = hard >> lane & 1 && !one_symbol(l, g, lane);
        if (!lost && g->at[lane] < g->end[lane]) continue;
        if (!lost) end_segment(g, lane, &l->segment[g->segment[lane]]);
        begin_segment(l, g, lane);
    }
}

static void decode_segments(mri_lanes *l)
{
    const uint32_t groups = l->segment_count >= TWO_GROUPS ? 2 : 1;
    l->segment_next = 0;
    for (uint32_t g = 0; g < groups; g++)
        for (uint32_t lane = 0; lane < 16; lane++) begin_segment(l, &l->group[g], lane);
#if defined(__x86_64__)
    mri_lanes_run_avx512(l, groups);
#endif
}

/* ---- batches ---- */

bool mri_lanes_has(const mri_lanes *l, uint32_t row)
{
    return row >= l->rows.first && row - l->rows.first < l->rows.count;
}

bool mri_lanes_decode(mri_lanes *l, uint32_t first, const mri_lanes_span *span, uint32_t count)
{
    room r = {0, MRI_JPEG_BLOCK};
    const mri_lanes_picture *p = &l->picture;
    mri_lanes_clear(l);
    l->rows.first = first;
    if (2 * p->block_count > MRI_LANE_STATES || p->scan->restart_interval) return false;
    while (l->rows.count < count && take_row(l, &r, first + l->rows.count, span[l->rows.count]))
        l->rows.end[l->rows.count++] = l->segment_count;
    if (l->segment_count < LEAST_SEGMENTS) {
        const bool all = l->rows.count == count;
        l->segment_count = l->rows.count = 0;
        return !all;
    }
    l->rows.left = l->rows.count;
    memset(l->bytes + r.bytes, 0xff, AHEAD_BYTES);
    l->byte_limit = r.bytes + 8;
    mri_lanes_set_tables(l, l->dc.only);
    decode_segments(l);
    return true;
}

/* DC alone of one segment, as mri_lanes_store_avx512(). */
static void store_dc(const mri_lanes *l, const mri_lane_segment *s, const mri_run_block *block, int32_t *dc)
{
    const mri_run_block *const end = block + l->picture.block_count;
    const int16_t *difference = l->dc.of + s->at / MRI_JPEG_BLOCK;
    for (uint32_t mcu = s->from; mcu < s->to; mcu++)
        for (const mri_run_block *b = block; b < end; b++) {
            int32_t *const sum = &dc[b->prediction - l->picture.prediction];
            const uint32_t x = b->x + b->step * mcu;
            *sum += *difference++;
            if (x >= b->wide) continue;
            b->coef[x][0] = (int16_t)*sum;
            b->last[x] = 0;
        }
}

bool mri_lanes_row(mri_lanes *l, uint32_t row, const mri_run_block *block)
{
    const uint32_t k = row - l->rows.first;
    bool good = true;
    l->rows.left--;
    for (uint32_t n = k ? l->rows.end[k - 1] : 0; n < l->rows.end[k]; n++) {
        const mri_lane_segment *s = &l->segment[n];
        int32_t dc[MRI_JPEG_ENTRY_COMPONENTS];
        memcpy(dc, s->dc, sizeof dc);
        if (l->dc.only) store_dc(l, s, block, dc);
#if defined(__x86_64__)
        else mri_lanes_store_avx512(l, s, block, dc);
#endif
        good &= s->good;
        if (s->whole)
            for (uint32_t c = 0; c < l->picture.scan->component_count; c++) good &= dc[c] == s->next_dc[c];
    }
    return good;
}
