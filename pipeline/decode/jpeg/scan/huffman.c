/* pipeline/decode/jpeg/scan/huffman.c: see huffman.h. Source: ITU-T T.81, annex C (codes from counts), F.2.2
 * (symbols and values).
 *
 * Windows are filled from left to right: codes in rising order take falling shares, and within a code so do
 * its values. */
#include "pipeline/decode/jpeg/scan/huffman.h"

static uint32_t spec_bytes(const uint8_t *spec)
{
    uint32_t count = 0;
    for (int l = 0; l < 16; l++) count += spec[l];
    return 16 + count;
}

bool mri_huff_is(const mri_huff_codes *c, const uint8_t *spec)
{
    return c->spec_bytes && memcmp(c->spec, spec, 16) == 0 &&
           memcmp(c->spec + 16, spec + 16, c->spec_bytes - 16) == 0;
}

bool mri_huff_codes_build(mri_huff_codes *c, const uint8_t *spec)
{
    const uint32_t bytes = spec_bytes(spec);
    uint32_t code = 0, place = 0;
    c->spec_bytes = 0;
    if (bytes > MRI_HUFF_SPEC) return false;
    for (unsigned l = 1; l <= 16; l++) {
        c->offset[l] = (int32_t)place - (int32_t)code;
        code += spec[l - 1];
        place += spec[l - 1];
        if (spec[l - 1] && code >= 1u << l) return false; /* all ones is no code */
        c->past[l] = code << (16 - l);
        code <<= 1;
    }
    memcpy(c->spec, spec, bytes);
    c->spec_bytes = bytes;
    return true;
}

uint32_t mri_huff_search(const mri_huff_codes *c, uint64_t bits)
{
    const uint32_t next = (uint32_t)(bits >> 48);
    uint32_t l = 1; /* past[] rises */
    for (unsigned k = 1; k <= 16; k++) l += next >= c->past[k];
    return l > 16 ? 0 : (uint32_t)c->spec[16 + (int32_t)(next >> (16 - l)) + c->offset[l]] << 8 | l;
}

/* ---- DC ---- */

bool mri_huff_dc_build(mri_huff_dc *t, const uint8_t *spec)
{
    if (!mri_huff_codes_build(&t->codes, spec)) return false;
    const uint8_t *symbol = t->codes.spec + 16;
    uint32_t *out = t->window, *const end = out + MRI_HUFF_WINDOW(MRI_DC_BITS);
    for (uint32_t k = 16; k < t->codes.spec_bytes; k++)
        if (t->codes.spec[k] > 15) {
            t->codes.spec_bytes = 0;
            return false;
        }
    for (unsigned l = 1; l <= MRI_DC_BITS; l++)
        for (unsigned k = spec[l - 1]; k > 0; k--, symbol++)
            for (uint32_t share = 1u << (MRI_DC_BITS - l); share > 0; share--)
                *out++ = (l + *symbol) | l << 8 | (uint32_t)*symbol << 16;
    while (out < end) *out++ = 0;
    return true;
}

/* ---- AC ---- */

#define NOWHERE 31 /* farther than any symbol goes: there its value 0 changes nothing */

static uint32_t ac_entry(unsigned bits, unsigned all, unsigned first, int value)
{
    return bits | all << 6 | first << 13 | ((uint32_t)value & 0xff) << 18;
}

/* What an entry gains when this symbol is its last one. */
static uint32_t ac_gain(unsigned bits, unsigned all, int value)
{
    return bits | all << 6 | (uint32_t)value << 26;
}

static uint32_t *put(uint32_t *out, uint32_t count, uint32_t entry)
{
    for (uint32_t k = 0; k < count; k++) out[k] = entry;
    return out + count;
}

/* Windows that begin with a symbol, in order, each with its gains when it is to be followed by others.
 * gain[w]: for the w bits after it. NULL: make gains of whole windows instead. */
static uint32_t *put_symbol(uint32_t *out, unsigned l, unsigned symbol, const uint32_t *const *gain)
{
    const unsigned far = (symbol >> 4) + 1, size = symbol & 15, bits = l + size;
    const uint32_t all_shares = 1u << (MRI_AC_BITS - l);
    if (size == 0 && far < 16)
        return put(out, all_shares, gain ? ac_entry(l, MRI_AC_END, NOWHERE, 0) : ac_gain(l, MRI_AC_END, 0));
    if (bits > MRI_AC_BITS || size > 7)
        return put(out, all_shares, gain ? ac_entry(bits, MRI_AC_ODD, far, (int)size) : 0);
    const uint32_t share = 1u << (MRI_AC_BITS - bits), values = 1u << size;
    for (uint32_t v = 0; v < values; v++) {
        const int value = v < values / 2 ? (int)v + 1 - (int)values : (int)v; /* of size 0 (ZRL): 0 */
        if (!gain) {
            out = put(out, share, value >= -32 && value < 32 ? ac_gain(bits, far, value) : 0);
            continue;
        }
        const uint32_t entry = ac_entry(bits, far, far, value), *more = gain[MRI_AC_BITS - bits];
        for (uint32_t k = 0; k < share; k++) out[k] = entry + more[k];
        out += share;
    }
    return out;
}

static void put_symbols(uint32_t *window, const uint8_t *spec, const uint32_t *const *gain)
{
    const uint8_t *symbol = spec + 16;
    uint32_t *out = window;
    for (unsigned l = 1; l <= MRI_AC_BITS; l++)
        for (unsigned k = spec[l - 1]; k > 0; k--) out = put_symbol(out, l, *symbol++, gain);
    put(out, (uint32_t)(window + MRI_HUFF_WINDOW(MRI_AC_BITS) - out),
        gain ? ac_entry(0, MRI_AC_ODD, NOWHERE, 0) : 0);
}

bool mri_huff_ac_build(mri_huff_ac *t, const uint8_t *spec)
{
    t->stores = t->skims = false;
    return mri_huff_codes_build(&t->codes, spec);
}

void mri_huff_windows_build(mri_huff_ac *t)
{
    if (t->stores) return;
    uint32_t space[2 * MRI_HUFF_WINDOW(MRI_AC_BITS)]; /* gains of w bits: 2^w from 2^w on */
    const uint32_t *gain[MRI_AC_BITS];
    put_symbols(space + MRI_HUFF_WINDOW(MRI_AC_BITS), t->codes.spec, NULL);
    for (unsigned w = MRI_AC_BITS; w-- > 0;) { /* one bit less: every other entry; entries that do not fit
                                                  gain nothing */
        uint32_t *less = space + (1u << w);
        const uint32_t *more = less + (1u << w);
        for (uint32_t k = 0; k < 1u << w; k++) less[k] = mri_ac_bits(more[2 * k]) <= w ? more[2 * k] : 0;
        gain[w] = less;
    }
    put_symbols(t->window, t->codes.spec, gain);
    t->stores = true;
}

/* ---- skimming ---- */

/* A symbol, plus the symbols in a window of the bits after its value. */
static uint16_t skim_entry(unsigned bits, unsigned far, uint16_t more)
{
    const unsigned all_bits = bits + (more & 31), all_far = far + (more >> 8 & 127);
    if ((more & 31) && all_bits <= MRI_SKIM_BITS && all_far <= 62u + (more >> 15))
        return (uint16_t)(all_bits | (far + (more >> 8)) << 8);
    return (uint16_t)(bits | far << 8);
}

/* Windows of width bits. narrower: windows of w bits from 2^w on, for each w below width; odd: the entry of a
 * window that begins with no code that lies in it. */
static void skim_windows(uint16_t *out, const uint8_t *spec, unsigned width, const uint16_t *narrower,
                         uint16_t odd)
{
    const uint8_t *symbol = spec + 16;
    uint16_t *const end = out + (1u << width);
    for (unsigned l = 1; l <= width; l++)
        for (unsigned n = spec[l - 1]; n > 0; n--, symbol++) {
            const unsigned size = *symbol & 15, run = *symbol >> 4, bits = l + size;
            const uint32_t all = 1u << (width - l);
            const bool over = size == 0 && run < 15;
            if (over || bits >= width) {
                const uint16_t e = bits > MRI_SKIM_BITS ? odd
                                   : over               ? (uint16_t)(bits | MRI_SKIM_END << 8)
                                                        : (uint16_t)(bits | (run + 1) << 8);
                for (uint32_t k = 0; k < all; k++) *out++ = e;
                continue;
            }
            const uint32_t share = 1u << (width - bits); /* the same for each value */
            for (uint32_t k = 0; k < share; k++) out[k] = skim_entry(bits, run + 1, narrower[share + k]);
            for (uint32_t k = share; k < all; k += share) memcpy(out + k, out, share * sizeof *out);
            out += all;
        }
    while (out < end) *out++ = odd;
}

void mri_huff_skim_windows(const mri_huff_codes *c, unsigned bits, uint16_t *out)
{
    uint16_t narrower[MRI_HUFF_WINDOW(MRI_AC_BITS)];
    for (unsigned w = 0; w < bits; w++) skim_windows(narrower + (1u << w), c->spec, w, narrower, 0);
    skim_windows(out, c->spec, bits, narrower, MRI_SKIM_ODD << 8);
}

void mri_huff_skim_build(mri_huff_ac *t)
{
    if (t->skims) return;
    mri_huff_skim_windows(&t->codes, MRI_AC_BITS, t->skim);
    t->skims = true;
}
