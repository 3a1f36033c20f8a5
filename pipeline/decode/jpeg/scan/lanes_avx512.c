/* pipeline/decode/jpeg/scan/lanes_avx512.c: the loop of the lanes (lanes_inner.h), 16 or 32 segments at once.
 *
 * A lane has the next 32 bits of its segment in a window that is loaded once in two steps. A step looks up a
 * table: up to two AC symbols, one whose value is cut out of the bits, or a DC symbol. Blocks end, and the
 * next table is chosen, by masks. A lane whose step cannot be taken, for want of bits or because its entry is
 * none for it, stands still and looks elsewhere in its next step:
 *
 *   entry long     in the table of long codes, in the second step
 *   block too full with MRI_LANE_ODD after two steps: in the table of single symbols, up to the end of the
 * block hard, or none of these: mri_lanes_attend() reads one symbol
 *
 * Values are written one round late, by scalar stores. The next table look-up would else wait for their
 * addresses, and scatters take no less time on any processor that was tried. */
#if defined(__x86_64__)
#include <immintrin.h>

#include "base/simd.h"
#include "pipeline/decode/jpeg/scan/lanes_inner.h"

#define INLINE static inline __attribute__((always_inline)) MRI_TARGET_AVX512
#define STEPS  2 /* in a round: three leave too few bits too often */

typedef struct vectors { /* mri_lane_group in registers */
    __m512i byte, used, window, at, end, state, table;
    __mmask16 ac, live;
} vectors;

typedef struct looked { /* a step's entries of the tables */
    __m512i entry, values;
} looked;

typedef struct stores { /* of one step: 4 coefficients a lane */
    _Alignas(64) uint64_t values[16];
    uint32_t at[16];
} stores;

typedef struct tables {
    const uint8_t *bytes;
    const mri_lane_entry *entry;
    __m512i next, next_table, careful, longer, byte_limit;
} tables;

INLINE __m512i words(uint32_t v) { return _mm512_set1_epi32((int)v); }

INLINE tables tables_of(const mri_lanes *l)
{
    return (tables){l->bytes,
                    l->table.entry,
                    _mm512_load_si512(l->next),
                    _mm512_load_si512(l->next_table),
                    _mm512_load_si512(l->careful),
                    _mm512_load_si512(l->longer),
                    words(l->byte_limit)};
}

/* a + one byte of each word of b: which is 1 in that byte of the constant. */
INLINE __m512i plus_byte(__m512i a, __m512i b, unsigned byte)
{
    return _mm512_dpbusd_epi32(a, b, words(1u << 8 * byte));
}

INLINE void lanes_load(vectors *v, const mri_lane_group *g)
{
    v->byte = _mm512_load_si512(g->byte);
    v->used = _mm512_load_si512(g->used);
    v->at = _mm512_load_si512(g->at);
    v->end = _mm512_load_si512(g->end);
    v->state = _mm512_load_si512(g->state);
    v->table = _mm512_load_si512(g->table);
    v->ac = g->ac;
    v->live = g->live;
}

INLINE void lanes_save(const vectors *v, mri_lane_group *g)
{
    _mm512_store_si512(g->byte, v->byte);
    _mm512_store_si512(g->used, v->used);
    _mm512_store_si512(g->at, v->at);
    _mm512_store_si512(g->state, v->state);
    _mm512_store_si512(g->table, v->table);
    g->ac = v->ac;
}

/* Whole bytes that were used are left behind; the 32 bits there, not yet shifted. */
INLINE __m512i ask_bits(vectors *v, const tables *t)
{
    v->byte = _mm512_min_epu32(_mm512_add_epi32(v->byte, _mm512_srli_epi32(v->used, 3)), t->byte_limit);
    v->used = _mm512_and_si512(v->used, words(7));
    return _mm512_i32gather_epi32(v->byte, t->bytes, 1);
}

INLINE __m512i take_bits(__m512i asked, __m512i used)
{
    const __m512i swap = _mm512_set4_epi32(0x0c0d0e0f, 0x08090a0b, 0x04050607, 0x00010203);
    return _mm512_sllv_epi32(_mm512_shuffle_epi8(asked, swap), used);
}

/* Two entries, and eight of them. With gather instructions the loop takes 1.4 times as long on Zen 5. */
INLINE __m128i load_two(const mri_lane_entry *entry, const uint32_t *at)
{
    const __m128i low = _mm_loadl_epi64((const __m128i *)(const void *)(entry + at[0]));
    return _mm_castpd_si128(
        _mm_loadh_pd(_mm_castsi128_pd(low), (const double *)(const void *)(entry + at[1])));
}

INLINE __m512i load_entries(const mri_lane_entry *entry, const uint32_t *at)
{
    const __m256i low = _mm256_set_m128i(load_two(entry, at + 2), load_two(entry, at)),
                  high = _mm256_set_m128i(load_two(entry, at + 6), load_two(entry, at + 4));
    return _mm512_inserti64x4(_mm512_castsi256_si512(low), high, 1);
}

INLINE looked look_up(const vectors *v, const tables *t, __m512i table)
{
    const __m512i at = _mm512_add_epi32(_mm512_shrdv_epi32(v->window, _mm512_setzero_si512(), table), table);
    _Alignas(64) uint32_t place[16];
    _mm512_store_si512(place, at);
    __asm__("" : "+m"(place)); /* or the compiler takes the indexes out of the vector, which is slower */
    const __m512i low = load_entries(t->entry, place), high = load_entries(t->entry, place + 8);
    const __m512i even = _mm512_set_epi32(30, 28, 26, 24, 22, 20, 18, 16, 14, 12, 10, 8, 6, 4, 2, 0);
    return (looked){_mm512_permutex2var_epi32(low, even, high),
                    _mm512_permutex2var_epi32(low, _mm512_add_epi32(even, words(1)), high)};
}

INLINE void store_all(const stores *s, int16_t *coef)
{
#pragma GCC unroll 16
    for (int k = 0; k < 16; k++) memcpy(coef + s->at[k], &s->values[k], 8);
}

/* The value after the code, in the low `size` bits of the word rotated by code and value; 0 for size 0. */
INLINE __m512i cut_value(__m512i rotated, __m512i entry)
{
    const __m512i size = _mm512_srli_epi32(entry, 24), above = _mm512_sllv_epi32(words(UINT32_MAX), size);
    const __m512i positive = _mm512_srai_epi32(_mm512_rorv_epi32(rotated, size), 31);
    return _mm512_sub_epi32(positive, _mm512_ternarylogic_epi32(positive, rotated, above, 0xb1));
}

/* Coefficients of a step: 4 bytes to 4 words a lane, the first one or'ed with the cut value. */
INLINE void put_values(stores *s, __m512i bytes, __m512i cut)
{
    const __m512i low = _mm512_set1_epi64(0xffff);
    const __m512i half[2] = {_mm512_cvtepi8_epi16(_mm512_castsi512_si256(bytes)),
                             _mm512_cvtepi8_epi16(_mm512_extracti64x4_epi64(bytes, 1))};
    const __m512i first[2] = {_mm512_cvtepu32_epi64(_mm512_castsi512_si256(cut)),
                              _mm512_cvtepu32_epi64(_mm512_extracti64x4_epi64(cut, 1))};
    for (int k = 0; k < 2; k++)
        _mm512_store_si512(s->values + 8 * k, _mm512_ternarylogic_epi64(half[k], first[k], low, 0xf8));
}

/* DC differences, and their coefficients, in place of stores where nothing else is needed: in order, until
 * write_dc(). */
#define DC_LOG 1024
typedef struct dc_log {
    uint32_t at[DC_LOG + 64], value[DC_LOG + 64], count;
} dc_log;

INLINE void log_words(uint32_t *to, __mmask16 which, __m512i words)
{
    _mm512_storeu_si512(to, _mm512_maskz_compress_epi32(which, words));
}

INLINE void log_dc(dc_log *log, __mmask16 which, __m512i at, __m512i value)
{
    log_words(log->at + log->count, which, at);
    log_words(log->value + log->count, which, value);
    log->count += (uint32_t)_mm_popcnt_u32(which);
}

static void write_dc(dc_log *log, int16_t *dc)
{
    for (uint32_t k = 0; k < log->count; k++) dc[log->at[k] / MRI_JPEG_BLOCK] = (int16_t)log->value[k];
    log->count = 0;
}

/* Take the entries of lanes where they are valid. Returns lanes without an entry for any bits that follow.
 * dc: NULL, or DC alone is of interest.
 */
INLINE __mmask16 step(vectors *v, const tables *t, looked found, __mmask16 live, stores *s, dc_log *dc)
{
    const __m512i e = found.entry, used = plus_byte(v->used, e, 0),
                  k = plus_byte(_mm512_and_si512(v->at, words(63)), e, 1),
                  rotated = _mm512_rolv_epi32(v->window, e);
    const __mmask16 odd = _mm512_mask_test_epi32_mask(live, k, words(MRI_LANE_ODD));
    const __mmask16 ok = _mm512_mask_cmple_epu32_mask(live & (__mmask16)~odd, used, words(32));
    const __mmask16 change = _mm512_mask_cmpge_epu32_mask(ok, k, words(63)), over = change & v->ac,
                    on = ok & (__mmask16)~change;
    const __m512i at = v->at;
    if (dc) log_dc(dc, change & (__mmask16)~v->ac, at, cut_value(rotated, e));
    v->window = _mm512_mask_mov_epi32(v->window, ok, rotated);
    v->used = _mm512_mask_mov_epi32(v->used, ok, used);
    v->ac ^= change;
    v->table = _mm512_mask_permutexvar_epi32(v->table, change, v->state, t->next_table);
    v->state = _mm512_mask_permutexvar_epi32(v->state, change, v->state, t->next);
    if (!dc) {
        _mm512_storeu_si512(s->at, _mm512_mask_mov_epi32(words(MRI_LANE_SPARE), ok, plus_byte(at, e, 2)));
        put_values(s, found.values, cut_value(rotated, e));
    }
    v->at = _mm512_mask_sub_epi32(_mm512_mask_mov_epi32(at, on, plus_byte(at, e, 1)), over,
                                  _mm512_or_si512(at, words(63)), words(UINT32_MAX));
    return odd;
}

/* The second step's odd ones: lanes that may do better symbol by symbol do so from now on; returns the rest.
 */
INLINE __mmask16 careful(vectors *v, const tables *t, __m512i entry, __mmask16 odd, __mmask16 was_ac)
{
    const __mmask16 hard = _mm512_mask_test_epi32_mask(odd, entry, words(MRI_LANE_HARD));
    const __mmask16 again = odd & was_ac & (__mmask16) ~(hard | _mm512_movepi32_mask(entry));
    const __m512i before = v->table;
    v->table = _mm512_mask_permutexvar_epi32(before, again, v->state, t->careful);
    return hard | _mm512_mask_cmpeq_epi32_mask(again, before, v->table);
}

INLINE void write_all(stores *s, uint32_t count, int16_t *coef)
{
    for (uint32_t k = 0; k < count; k++) {
        store_all(&s[k], coef);
        _mm512_storeu_si512(s[k].at, words(MRI_LANE_SPARE));
    }
}

/* Writes the stores that are still pending. */
INLINE void write_rest(mri_lanes *l, stores *pending, dc_log *dc)
{
    if (dc) write_dc(dc, l->dc.of);
    else write_all(pending, STEPS * 2, l->coef);
}

INLINE bool is_full(const dc_log *dc) { return dc && dc->count >= DC_LOG; }

INLINE void decode_lanes(mri_lanes *l, const uint32_t groups, dc_log *dc)
{
    const tables t = tables_of(l);
    int16_t *const coef = l->coef;
    vectors v[2];
    stores pending[STEPS * 2] = {0};
    __m512i asked[2];
    uint32_t live = 0;
#pragma GCC unroll 2
    for (uint32_t g = 0; g < groups; g++) {
        mri_lanes_attend(l, &l->group[g], 0, UINT16_MAX);
        live |= l->group[g].live;
        lanes_load(&v[g], &l->group[g]);
        asked[g] = ask_bits(&v[g], &t);
    }
    while (live) {
        looked found[2];
        __mmask16 hard[2], rare[2] = {0};
#pragma GCC unroll 2
        for (uint32_t g = 0; g < groups; g++) {
            v[g].window = take_bits(asked[g], v[g].used);
            found[g] = look_up(&v[g], &t, v[g].table);
        }
#pragma GCC unroll 2
        for (uint32_t g = 0; g < groups; g++) {
            const looked first = found[g];
            if (!dc) store_all(&pending[g], coef);
            step(&v[g], &t, first, v[g].live, &pending[g], dc);
            const __mmask16 longer = _mm512_movepi32_mask(first.entry);
            found[g] =
                look_up(&v[g], &t, _mm512_mask_permutexvar_epi32(v[g].table, longer, v[g].state, t.longer));
        }
#pragma GCC unroll 2
        for (uint32_t g = 0; g < groups; g++) { /* not beyond the segment: its end is to be known to the bit
                                                 */
            const __mmask16 on = _mm512_mask_cmplt_epu32_mask(v[g].live, v[g].at, v[g].end), was_ac = v[g].ac;
            if (!dc) store_all(&pending[2 + g], coef);
            const __mmask16 odd = step(&v[g], &t, found[g], on, &pending[2 + g], dc);
            hard[g] = careful(&v[g], &t, found[g].entry, odd, was_ac);
            asked[g] = ask_bits(&v[g], &t);
            rare[g] = hard[g] | _mm512_mask_cmpge_epu32_mask(v[g].live, v[g].at, v[g].end);
        }
        if (__builtin_expect((rare[0] | rare[1]) == 0 && !is_full(dc), 1)) continue;
        write_rest(l, pending, dc);
        live = 0;
#pragma GCC unroll 2
        for (uint32_t g = 0; g < groups; g++) {
            if (rare[g]) {
                lanes_save(&v[g], &l->group[g]);
                mri_lanes_attend(l, &l->group[g], hard[g], rare[g]);
                lanes_load(&v[g], &l->group[g]);
                asked[g] = ask_bits(&v[g], &t);
            }
            live |= v[g].live;
        }
    }
    write_rest(l, pending, dc);
}

#define LOOP static MRI_TARGET_AVX512 __attribute__((noinline))
LOOP void decode_1(mri_lanes *l) { decode_lanes(l, 1, NULL); }
LOOP void decode_2(mri_lanes *l) { decode_lanes(l, 2, NULL); }

LOOP void decode_dc(mri_lanes *l, uint32_t groups)
{
    dc_log dc;
    dc.count = 0;
    if (groups == 1) decode_lanes(l, 1, &dc);
    else decode_lanes(l, 2, &dc);
}

void mri_lanes_run_avx512(mri_lanes *l, uint32_t groups)
{
    if (l->dc.only) decode_dc(l, groups);
    else if (groups == 1) decode_1(l);
    else decode_2(l);
}

/* ---- reading ahead ---- */

typedef struct skimming {
    __m512i sum[MRI_JPEG_ENTRY_COMPONENTS], lane;
} skimming;

INLINE __m512i lane_numbers(uint32_t group)
{
    return _mm512_add_epi32(_mm512_set_epi32(15, 14, 13, 12, 11, 10, 9, 8, 7, 6, 5, 4, 3, 2, 1, 0),
                            words(16 * group));
}

INLINE __m512i bit_of(const vectors *v) { return _mm512_add_epi32(_mm512_slli_epi32(v->byte, 3), v->used); }

/* Where lanes were when they began an MCU in this round: at most once, since a block takes two steps. */
typedef struct starts {
    __m512i bit, at, sum[MRI_JPEG_ENTRY_COMPONENTS];
    __mmask16 which;
} starts;

/* As step(), nothing stored; starts of MCUs are noted. */
INLINE __mmask16 skim_step(vectors *v, skimming *s, const tables *t, __m512i e, __m512i component,
                           starts *begun)
{
    const __m512i used = plus_byte(v->used, e, 0), k = plus_byte(v->at, e, 1),
                  rotated = _mm512_rolv_epi32(v->window, e);
    const __mmask16 odd = _mm512_mask_test_epi32_mask(v->live, k, words(MRI_LANE_ODD));
    const __mmask16 ok = _mm512_mask_cmple_epu32_mask(v->live & (__mmask16)~odd, used, words(32));
    const __mmask16 change = _mm512_mask_cmpge_epu32_mask(ok, k, words(63)), dc = change & (__mmask16)~v->ac,
                    start = _mm512_mask_testn_epi32_mask(dc, v->state, v->state);
    begun->which |= start;
    begun->bit = _mm512_mask_mov_epi32(begun->bit, start, bit_of(v));
    const __m512i difference = cut_value(rotated, e), which = _mm512_permutexvar_epi32(v->state, component);
    for (int c = 0; c < MRI_JPEG_ENTRY_COMPONENTS; c++) {
        begun->sum[c] = _mm512_mask_mov_epi32(begun->sum[c], start, s->sum[c]);
        s->sum[c] = _mm512_mask_add_epi32(
            s->sum[c], _mm512_mask_cmpeq_epi32_mask(dc, which, words((uint32_t)c)), s->sum[c], difference);
    }
    v->window = _mm512_mask_mov_epi32(v->window, ok, rotated);
    v->used = _mm512_mask_mov_epi32(v->used, ok, used);
    v->ac ^= change;
    v->table = _mm512_mask_permutexvar_epi32(v->table, change, v->state, t->next_table);
    v->state = _mm512_mask_permutexvar_epi32(v->state, change, v->state, t->next);
    v->at = _mm512_maskz_mov_epi32((__mmask16)~change, _mm512_mask_mov_epi32(v->at, ok, k));
    return odd;
}

/* Log the starts of a round, without a branch, which would often be mispredicted. Lanes that began an MCU
 * past their end stop. */
INLINE void log_skimmed(vectors *v, const starts *begun, const skimming *s, mri_lane_log *log)
{
    const uint32_t at = log->count;
    log_words(log->lane + at, begun->which, s->lane);
    log_words(log->bit + at, begun->which, begun->bit);
    for (int c = 0; c < MRI_JPEG_ENTRY_COMPONENTS; c++)
        _mm512_storeu_si512(log->sum[c] + at, _mm512_maskz_compress_epi32(begun->which, begun->sum[c]));
    log->count = at + (uint32_t)_mm_popcnt_u32(begun->which);
    v->live &= (__mmask16)~_mm512_mask_cmpge_epu32_mask(begun->which, v->byte, v->end);
}

INLINE void skim_save(mri_lanes *l, uint32_t g, const vectors *v, const skimming *s)
{
    lanes_save(v, &l->group[g]);
    l->group[g].live = v->live;
    for (int c = 0; c < MRI_JPEG_ENTRY_COMPONENTS; c++) _mm512_store_si512(l->ahead[g].sum[c], s->sum[c]);
}

INLINE void skim_load(const mri_lanes *l, uint32_t g, vectors *v, skimming *s)
{
    lanes_load(v, &l->group[g]);
    for (int c = 0; c < MRI_JPEG_ENTRY_COMPONENTS; c++) s->sum[c] = _mm512_load_si512(l->ahead[g].sum[c]);
    s->lane = lane_numbers(g);
}

MRI_TARGET_AVX512 void mri_lanes_skim_avx512(mri_lanes *l)
{
    const tables t = tables_of(l);
    const __m512i component = _mm512_load_si512(l->component_of);
    mri_lane_log *const log = &l->log;
    vectors v[2];
    skimming s[2];
    __m512i asked[2];
#pragma GCC unroll 2
    for (uint32_t g = 0; g < 2; g++) {
        skim_load(l, g, &v[g], &s[g]);
        asked[g] = ask_bits(&v[g], &t);
    }
    while ((v[0].live | v[1].live) && log->count < MRI_LANE_LOG - 64) {
        __m512i entry[2];
        starts begun[2];
        __mmask16 hard[2];
#pragma GCC unroll 2
        for (uint32_t g = 0; g < 2; g++) {
            v[g].window = take_bits(asked[g], v[g].used);
            entry[g] = look_up(&v[g], &t, v[g].table).entry;
        }
#pragma GCC unroll 2
        for (uint32_t g = 0; g < 2; g++) {
            const __mmask16 longer = _mm512_movepi32_mask(entry[g]);
            begun[g] = (starts){.which = 0};
            skim_step(&v[g], &s[g], &t, entry[g], component, &begun[g]);
            entry[g] =
                look_up(&v[g], &t, _mm512_mask_permutexvar_epi32(v[g].table, longer, v[g].state, t.longer))
                    .entry;
        }
#pragma GCC unroll 2
        for (uint32_t g = 0; g < 2; g++) {
            const __mmask16 was_ac = v[g].ac;
            const __mmask16 odd = skim_step(&v[g], &s[g], &t, entry[g], component, &begun[g]);
            log_skimmed(&v[g], &begun[g], &s[g], log);
            hard[g] = careful(&v[g], &t, entry[g], odd, was_ac);
            asked[g] = ask_bits(&v[g], &t);
        }
        if (__builtin_expect((hard[0] | hard[1]) == 0, 1)) continue;
#pragma GCC unroll 2
        for (uint32_t g = 0; g < 2; g++) {
            skim_save(l, g, &v[g], &s[g]);
            mri_lanes_ahead_hard(l, g, hard[g] & v[g].live, false);
            skim_load(l, g, &v[g], &s[g]);
            asked[g] = ask_bits(&v[g], &t);
        }
    }
    for (uint32_t g = 0; g < 2; g++) skim_save(l, g, &v[g], &s[g]);
}

/* step(); starts of MCUs are noted. */
INLINE __mmask16 ahead_step(vectors *v, const tables *t, looked found, stores *s, dc_log *dc, starts *begun)
{
    const __mmask16 was_ac = v->ac, first = _mm512_testn_epi32_mask(v->state, v->state);
    const __m512i bit = bit_of(v), at = v->at;
    const __mmask16 odd = step(v, t, found, v->live, s, dc), start = (__mmask16)(v->ac & ~was_ac) & first;
    begun->bit = _mm512_mask_mov_epi32(begun->bit, start, bit);
    begun->at = _mm512_mask_mov_epi32(begun->at, start, at);
    begun->which |= start;
    return odd;
}

/* The same as log_skimmed() when storing; lanes without room for another MCU stop as well. */
INLINE void log_stored(vectors *v, const starts *begun, __m512i full, __m512i lane, mri_lane_log *log)
{
    const __mmask16 start = begun->which;
    const uint32_t count = log->count;
    log_words(log->lane + count, start, lane);
    log_words(log->bit + count, start, begun->bit);
    log_words(log->at + count, start, begun->at);
    log->count = count + (uint32_t)_mm_popcnt_u32(start);
    v->live &= (__mmask16) ~(_mm512_mask_cmpge_epu32_mask(start, v->byte, v->end) |
                             _mm512_mask_cmpge_epu32_mask(start, begun->at, full));
}

INLINE void read_ahead(mri_lanes *l, dc_log *dc)
{
    const tables t = tables_of(l);
    int16_t *const coef = l->coef;
    mri_lane_log *const log = &l->log;
    const __m512i lane[2] = {lane_numbers(0), lane_numbers(1)},
                  full[2] = {_mm512_load_si512(l->ahead[0].full), _mm512_load_si512(l->ahead[1].full)};
    vectors v[2];
    stores pending[STEPS * 2] = {0};
    __m512i asked[2];
#pragma GCC unroll 2
    for (uint32_t g = 0; g < 2; g++) {
        lanes_load(&v[g], &l->group[g]);
        asked[g] = ask_bits(&v[g], &t);
    }
    while ((v[0].live | v[1].live) && log->count < MRI_LANE_LOG - 64) {
        looked found[2];
        starts begun[2];
        __mmask16 hard[2];
#pragma GCC unroll 2
        for (uint32_t g = 0; g < 2; g++) {
            v[g].window = take_bits(asked[g], v[g].used);
            found[g] = look_up(&v[g], &t, v[g].table);
        }
#pragma GCC unroll 2
        for (uint32_t g = 0; g < 2; g++) {
            begun[g] = (starts){.which = 0};
            const looked first = found[g];
            const __mmask16 longer = _mm512_movepi32_mask(first.entry);
            if (!dc) store_all(&pending[g], coef);
            ahead_step(&v[g], &t, first, &pending[g], dc, &begun[g]);
            found[g] =
                look_up(&v[g], &t, _mm512_mask_permutexvar_epi32(v[g].table, longer, v[g].state, t.longer));
        }
#pragma GCC unroll 2
        for (uint32_t g = 0; g < 2; g++) {
            const __mmask16 was_ac = v[g].ac;
            if (!dc) store_all(&pending[2 + g], coef);
            const __mmask16 odd = ahead_step(&v[g], &t, found[g], &pending[2 + g], dc, &begun[g]);
            log_stored(&v[g], &begun[g], full[g], lane[g], log);
            hard[g] = careful(&v[g], &t, found[g].entry, odd, was_ac) & v[g].live;
            asked[g] = ask_bits(&v[g], &t);
        }
        if (__builtin_expect((hard[0] | hard[1]) == 0 && !is_full(dc), 1)) continue;
        write_rest(l, pending, dc);
#pragma GCC unroll 2
        for (uint32_t g = 0; g < 2; g++) {
            lanes_save(&v[g], &l->group[g]);
            l->group[g].live = v[g].live;
            mri_lanes_ahead_hard(l, g, hard[g], true);
            lanes_load(&v[g], &l->group[g]);
            asked[g] = ask_bits(&v[g], &t);
        }
    }
    write_rest(l, pending, dc);
    for (uint32_t g = 0; g < 2; g++) {
        lanes_save(&v[g], &l->group[g]);
        l->group[g].live = v[g].live;
    }
}

LOOP void ahead_all(mri_lanes *l) { read_ahead(l, NULL); }

LOOP void ahead_dc(mri_lanes *l)
{
    dc_log dc;
    dc.count = 0;
    read_ahead(l, &dc);
}

void mri_lanes_ahead_avx512(mri_lanes *l)
{
    if (l->dc.only) ahead_dc(l);
    else ahead_all(l);
}

/* ---- storing ---- */

/* Where in zigzag order the coefficients of natural order are, 0 to 31 and 32 to 63. */
static const _Alignas(64) uint16_t zigzag_of[MRI_JPEG_BLOCK] = {
    0,  1,  5,  6,  14, 15, 27, 28, 2,  4,  7,  13, 16, 26, 29, 42, 3,  8,  12, 17, 25, 30,
    41, 43, 9,  11, 18, 24, 31, 40, 44, 53, 10, 19, 23, 32, 39, 45, 52, 54, 20, 22, 33, 38,
    46, 51, 55, 60, 21, 34, 37, 47, 50, 56, 59, 61, 35, 36, 48, 49, 57, 58, 62, 63};

/* A block in zigzag order to its place, with this DC coefficient. */
INLINE void store_block(const int16_t *z, int32_t dc, int16_t *out, uint8_t *last)
{
    const __m512i v0 = _mm512_load_si512(z), v1 = _mm512_load_si512(z + 32),
                  upper = _mm512_load_si512(zigzag_of), lower = _mm512_load_si512(zigzag_of + 32);
    const uint64_t some = (uint64_t)_mm512_test_epi16_mask(v1, v1) << 32 | _mm512_test_epi16_mask(v0, v0);
    _mm512_store_si512(out, _mm512_mask_set1_epi16(_mm512_permutex2var_epi16(v0, upper, v1), 1, (short)dc));
    _mm512_store_si512(out + 32, _mm512_permutex2var_epi16(v0, lower, v1));
    *last = (uint8_t)(63 - __builtin_clzll(some | 1));
}

MRI_TARGET_AVX512 void mri_lanes_store_avx512(mri_lanes *l, const mri_lane_segment *s,
                                              const mri_run_block *block, int32_t *dc)
{
    const __m512i zero = _mm512_setzero_si512();
    const mri_run_block *const end = block + l->picture.block_count;
    int16_t *z = l->coef + s->at;
    for (uint32_t mcu = s->from; mcu < s->to; mcu++)
        for (const mri_run_block *b = block; b < end; b++, z += MRI_JPEG_BLOCK) {
            int32_t *const sum = &dc[b->prediction - l->picture.prediction];
            const uint32_t x = b->x + b->step * mcu;
            *sum += z[0];
            if (x < b->wide) store_block(z, *sum, b->coef[x], &b->last[x]);
            _mm512_store_si512(z, zero);
            _mm512_store_si512(z + 32, zero);
        }
    _mm512_store_si512(z, zero);
    _mm512_store_si512(z + 32, zero);
}

MRI_TARGET_AVX512 void mri_lanes_store_ahead_avx512(const mri_lanes *l, const uint32_t *mcu, uint32_t from,
                                                    uint32_t count, const mri_run_block *block)
{
    const mri_run_block *const end = block + l->picture.block_count;
    for (uint32_t column = from; column < from + count; column++, mcu++) {
        const int16_t *z = l->coef + *mcu;
        for (const mri_run_block *b = block; b < end; b++, z += MRI_JPEG_BLOCK) {
            const uint32_t x = b->x + b->step * column;
            if (x < b->wide) store_block(z, z[0], b->coef[x], &b->last[x]);
        }
    }
}
#else
typedef int mri_lanes_avx512_is_empty;
#endif
