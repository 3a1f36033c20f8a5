/* pipeline/jpeg/huffman.c: see huffman.h. Source: ITU-T T.81, annex C (codes from counts), F.2.2 (symbols and values).
 *
 * Windows are filled from left to right: codes in rising order take falling shares, and within a code so do its values. */
#include "pipeline/jpeg/huffman.h"

static uint32_t spec_bytes(const uint8_t *spec)
{
    uint32_t count = 0;
    for (int l = 0; l < 16; l++) count += spec[l];
    return 16 + count;
}

bool mri_huff_is(const mri_huff_codes *c, const uint8_t *spec)
{
    return c->spec_bytes && memcmp(c->spec, spec, 16) == 0 && memcmp(c->spec + 16, spec + 16, c->spec_bytes - 16) == 0;
}

static bool make_codes(mri_huff_codes *c, const uint8_t *spec)
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
    for (unsigned l = 1; l <= 16; l++)
        if (next < c->past[l]) return (uint32_t)c->spec[16 + (int32_t)(next >> (16 - l)) + c->offset[l]] << 8 | l;
    return 0;
}

/* ---- DC ---- */

bool mri_huff_dc_build(mri_huff_dc *t, const uint8_t *spec)
{
    if (!make_codes(&t->codes, spec)) return false;
    const uint8_t *symbol = t->codes.spec + 16;
    uint32_t *out = t->window, *const end = out + MRI_HUFF_WINDOW(MRI_DC_BITS);
    for (uint32_t k = 16; k < t->codes.spec_bytes; k++)
        if (t->codes.spec[k] > 15) {
            t->codes.spec_bytes = 0;
            return false;
        }
    for (unsigned l = 1; l <= MRI_DC_BITS; l++)
        for (unsigned k = spec[l - 1]; k > 0; k--, symbol++)
            for (uint32_t share = 1u << (MRI_DC_BITS - l); share > 0; share--) *out++ = (l + *symbol) | l << 8 | (uint32_t)*symbol << 16;
    while (out < end) *out++ = 0;
    return true;
}

/* ---- AC ---- */

static uint64_t ac_entry(unsigned bits, unsigned far, int value)
{
    return bits | (uint64_t)far << 8 | (uint64_t)far << 16 | (uint64_t)bits << 24 | (uint64_t)(uint16_t)value << 32 | (uint64_t)(uint16_t)value << 48;
}

static uint64_t *put(uint64_t *out, uint32_t count, uint64_t entry)
{
    for (uint32_t k = 0; k < count; k++) out[k] = entry;
    return out + count;
}

/* All windows that begin with a code of l bits for this symbol. */
static uint64_t *put_symbol(uint64_t *out, unsigned l, unsigned symbol)
{
    const unsigned run = symbol >> 4, size = symbol & 15, bits = l + size;
    if (size == 0) return put(out, 1u << (MRI_AC_BITS - l), ac_entry(l, run == 15 ? 16 : MRI_AC_END, 0));
    if (bits > MRI_AC_BITS)
        return put(out, 1u << (MRI_AC_BITS - l), bits | (uint64_t)(run + 1) << 8 | (uint64_t)MRI_AC_ODD << 16 | (uint64_t)size << 24);
    const uint32_t share = 1u << (MRI_AC_BITS - bits);
    for (int value = 1 - (1 << size); value <= -(1 << (size - 1)); value++) out = put(out, share, ac_entry(bits, run + 1, value));
    for (int value = 1 << (size - 1); value < 1 << size; value++) out = put(out, share, ac_entry(bits, run + 1, value));
    return out;
}

/* first, followed by what follows it in the window, when that is there in full. */
static inline uint64_t join(uint64_t first, uint64_t next)
{
    const unsigned bits = (first & 0xff) + (next & 0xff), far = (first >> 8 & 0xff) + (next >> 8 & 0xff);
    return (first & 0x0000ffffff00ff00u) | bits | (uint64_t)far << 16 | (next & 0xffff000000000000u);
}

static void pair_up(uint64_t *window)
{
    uint64_t alone[MRI_HUFF_WINDOW(MRI_AC_BITS)]; /* what follows is looked up among entries not joined yet */
    memcpy(alone, window, sizeof alone);
    for (uint32_t k = 0; k < MRI_HUFF_WINDOW(MRI_AC_BITS); k++) {
        const uint64_t first = alone[k], next = alone[k << (first & 15) & (MRI_HUFF_WINDOW(MRI_AC_BITS) - 1)];
        const bool whole = (first >> 16 & 0xff) < MRI_AC_END && (next >> 16 & 0xff) <= MRI_AC_END && (first & 0xff) + (next & 0xff) <= MRI_AC_BITS;
        window[k] = whole ? join(first, next) : first;
    }
}

bool mri_huff_ac_build(mri_huff_ac *t, const uint8_t *spec)
{
    if (!make_codes(&t->codes, spec)) return false;
    const uint8_t *symbol = t->codes.spec + 16;
    uint64_t *out = t->window;
    for (unsigned l = 1; l <= MRI_AC_BITS; l++)
        for (unsigned k = spec[l - 1]; k > 0; k--, symbol++) out = put_symbol(out, l, *symbol);
    put(out, (uint32_t)(t->window + MRI_HUFF_WINDOW(MRI_AC_BITS) - out), (uint64_t)MRI_AC_ODD << 16 | 64u << 8);
    pair_up(t->window);
    return true;
}
