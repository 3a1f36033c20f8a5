/* pipeline/decode/jpeg/scan/lane_tables.c: tables of the lanes, from the codes of a Huffman table; see
 * lanes_inner.h. */
#include "pipeline/decode/jpeg/scan/lanes_inner.h"

#define WINDOWS (1u << MRI_LANE_AC_BITS)
#define HARD    (MRI_LANE_HARD | MRI_LANE_ODD << 8)

/* An AC symbol whose value, if it has one, is cut out of the bits. */
static uint32_t single(unsigned symbol, unsigned l)
{
    const unsigned size = symbol & 15, far = (symbol >> 4) + 1;
    if (l + size > MRI_LANE_BITS) return HARD;
    if (size) return (l + size) | far << 8 | far << 16 | (uint32_t)size << 24;
    return l | (far == 16 ? 16u : MRI_LANE_END) << 8 | 1 << 16;
}

static uint32_t *repeat(uint32_t *out, uint32_t count, uint32_t word)
{
    for (uint32_t k = 0; k < count; k++) out[k] = word;
    return out + count;
}

static mri_lane_entry *put(mri_lane_entry *out, uint32_t count, uint32_t how)
{
    for (uint32_t k = 0; k < count; k++) out[k] = (mri_lane_entry){how, 0};
    return out + count;
}

static unsigned value_byte(uint32_t v, unsigned size)
{
    return (v < 1u << (size - 1) ? v + 1 - (1u << size) : v) & 0xff;
}

/* The symbols that a window adds to the entry of a first symbol before it, in count windows of AC_BITS. */
static void put_gains(const mri_huff_codes *c, uint32_t *entry, uint32_t *values)
{
    const uint8_t *symbol = c->spec + 16;
    uint32_t *const end = entry + WINDOWS;
    memset(values, 0, WINDOWS * sizeof *values);
    for (unsigned l = 1; l <= MRI_LANE_AC_BITS; l++)
        for (unsigned n = c->spec[l - 1]; n > 0; n--, symbol++) {
            const unsigned size = *symbol & 15, far = (*symbol >> 4) + 1, bits = l + size;
            const uint32_t all = 1u << (MRI_LANE_AC_BITS - l);
            uint32_t *const past = entry + all;
            if (size == 0) {
                repeat(entry, all, far == 16 ? 0 : l | MRI_LANE_END << 8);
            } else if (bits > MRI_LANE_AC_BITS || size > 7 || far > 3) {
                repeat(entry, all, 0);
            } else {
                const uint32_t share = 1u << (MRI_LANE_AC_BITS - bits);
                for (uint32_t v = 0; v < 1u << size; v++) {
                    repeat(values + v * share, share, (uint32_t)value_byte(v, size) << 8 * far);
                    entry = repeat(entry, share, bits | far << 8);
                }
            }
            values += all;
            entry = past;
        }
    repeat(entry, (uint32_t)(end - entry), 0);
}

/* A first symbol whose value fits in the window, with the gains of the bits after it. */
static void put_pair(unsigned symbol, unsigned l, const uint32_t *gain, const uint32_t *gain_values,
                     mri_lane_entry *entry)
{
    const unsigned size = symbol & 15, bits = l + size;
    const uint32_t share = 1u << (MRI_LANE_AC_BITS - bits), first = single(symbol, l) & 0xffffff;
    for (uint32_t v = 0; v < 1u << size; v++, entry += share) {
        const uint32_t value = value_byte(v, size);
        for (uint32_t k = 0; k < share; k++)
            entry[k] = (mri_lane_entry){first + gain[share + k], value | gain_values[share + k]};
    }
}

static void put_pairs(const mri_huff_codes *c, const uint32_t *gain, const uint32_t *gain_values,
                      mri_lane_entry *entry, uint32_t miss)
{
    const uint8_t *symbol = c->spec + 16;
    mri_lane_entry *const end = entry + WINDOWS;
    for (unsigned l = 1; l <= MRI_LANE_AC_BITS; l++)
        for (unsigned n = c->spec[l - 1]; n > 0; n--, symbol++) {
            const unsigned size = *symbol & 15;
            const uint32_t all = 1u << (MRI_LANE_AC_BITS - l);
            if (size == 0 || size > 7 || l + size > MRI_LANE_AC_BITS) put(entry, all, single(*symbol, l));
            else put_pair(*symbol, l, gain, gain_values, entry);
            entry += all;
        }
    put(entry, (uint32_t)(end - entry), miss);
}

/* One symbol for each window of `bits` bits, those with codes of l0 to bits. */
static void put_singles(const mri_huff_codes *c, unsigned l0, unsigned bits, mri_lane_entry *entry,
                        mri_lane_entry *end)
{
    const uint8_t *symbol = c->spec + 16;
    for (unsigned l = 1; l < l0; l++) symbol += c->spec[l - 1];
    for (unsigned l = l0; l <= bits; l++)
        for (unsigned n = c->spec[l - 1]; n > 0; n--)
            entry = put(entry, 1u << (bits - l), single(*symbol++, l));
    put(entry, (uint32_t)(end - entry), HARD);
}

static bool is_of(const mri_huff_codes *made, const mri_huff_codes *codes)
{
    return made->spec_bytes == codes->spec_bytes && memcmp(made->spec, codes->spec, codes->spec_bytes) == 0;
}

static bool long_fit(const mri_huff_codes *codes)
{
    return (1u << 16) - codes->past[MRI_LANE_AC_BITS] <= MRI_LANE_LONG_ENTRIES;
}

/* Of a code that is longer than the window. */
static uint32_t miss_of(const mri_huff_codes *codes)
{
    return long_fit(codes) ? MRI_LANE_LONG | MRI_LANE_ODD << 8 : HARD;
}

void mri_lane_tables_ac(mri_lane_tables *t, uint32_t set, const mri_huff_codes *codes)
{
    if (is_of(&t->ac[set], codes)) return;
    t->ac[set] = *codes;
    mri_lane_entry *const e = t->entry + (size_t)set * MRI_LANE_SET;
    uint32_t gain[2 * WINDOWS], gain_values[2 * WINDOWS]; /* of w bits: 2^w from 2^w on */
    put_gains(codes, gain + WINDOWS, gain_values + WINDOWS);
    for (unsigned w = MRI_LANE_AC_BITS; w-- > 0;)
        for (uint32_t k = 0; k < 1u << w; k++) {
            const uint32_t wider = (2u << w) + 2 * k, fits = (gain[wider] & 0xff) <= w ? UINT32_MAX : 0;
            gain[(1u << w) + k] = gain[wider] & fits;
            gain_values[(1u << w) + k] = gain_values[wider] & fits;
        }
    const uint32_t past = codes->past[MRI_LANE_AC_BITS], long_count = (1u << 16) - past;
    put_pairs(codes, gain, gain_values, e + MRI_LANE_AC_AT, miss_of(codes));
    put_singles(codes, 1, MRI_LANE_CAREFUL_BITS, e + MRI_LANE_CAREFUL_AT,
                e + MRI_LANE_CAREFUL_AT + (1 << MRI_LANE_CAREFUL_BITS));
    const uint32_t first = MRI_LANE_LONG_AT + ((16 + past) & 31);
    if (long_fit(codes)) put_singles(codes, MRI_LANE_AC_BITS + 1, 16, e + first, e + first + long_count);
    t->long_at[set] = set * MRI_LANE_SET + first - past;
}

void mri_lane_tables_skim(mri_lane_tables *t, uint32_t set, const mri_huff_codes *codes)
{
    if (is_of(&t->skim[set], codes)) return;
    t->skim[set] = *codes;
    uint16_t window[WINDOWS];
    mri_huff_skim_windows(codes, MRI_LANE_AC_BITS, window);
    const uint32_t past = codes->past[MRI_LANE_AC_BITS] >> (16 - MRI_LANE_AC_BITS), miss = miss_of(codes);
    mri_lane_entry *const e = t->entry + (size_t)set * MRI_LANE_SET + MRI_LANE_SKIM_AT;
    for (uint32_t k = 0; k < WINDOWS; k++) {
        const bool odd = window[k] == MRI_SKIM_ODD << 8;
        e[k] = (mri_lane_entry){!odd ? window[k] : k < past ? HARD : miss, 0};
    }
}

void mri_lane_tables_dc(mri_lane_tables *t, uint32_t set, const mri_huff_codes *codes)
{
    if (is_of(&t->dc[set], codes)) return;
    t->dc[set] = *codes;
    const uint8_t *symbol = codes->spec + 16;
    mri_lane_entry *e = t->entry + (size_t)set * MRI_LANE_SET + MRI_LANE_DC_AT;
    mri_lane_entry *const end = e + (1 << MRI_LANE_DC_BITS);
    for (unsigned l = 1; l <= MRI_LANE_DC_BITS; l++)
        for (unsigned n = codes->spec[l - 1]; n > 0; n--, symbol++)
            e = put(e, 1u << (MRI_LANE_DC_BITS - l),
                    l + *symbol > MRI_LANE_BITS ? HARD
                                                : (l + *symbol) | MRI_LANE_DC << 8 | (uint32_t)*symbol << 24);
    put(e, (uint32_t)(end - e), HARD);
}
