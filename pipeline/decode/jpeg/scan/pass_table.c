/* pipeline/decode/jpeg/scan/pass_table.c: Huffman tables of progressive AC scans; see pass.h. */
#include "pipeline/decode/jpeg/scan/pass.h"

static uint32_t entry_of(unsigned symbol, unsigned code_bits, unsigned most)
{
    const unsigned run = symbol >> 4, size = symbol & 15;
    if (size > most) return MRI_PASS_ODD << 13;
    if (size > 0) return (code_bits + size) | run << 5 | size << 9 | MRI_PASS_VALUE << 13;
    if (run == 15) return code_bits | run << 5 | MRI_PASS_ZEROS << 13;
    return (code_bits + run) | run << 5 | MRI_PASS_END << 13;
}

bool mri_pass_table_build(mri_pass_table *t, const uint8_t *spec, unsigned most)
{
    if (mri_huff_is(&t->codes, spec) && t->most == most) return true;
    if (!mri_huff_codes_build(&t->codes, spec)) return false;
    t->most = most;
    const uint8_t *symbol = t->codes.spec + 16;
    uint16_t *out = t->window, *const end = out + (1 << MRI_PASS_BITS);
    for (unsigned l = 1; l <= MRI_PASS_BITS; l++)
        for (unsigned k = spec[l - 1]; k > 0; k--, symbol++) {
            const uint16_t entry = (uint16_t)entry_of(*symbol, l, most);
            for (uint32_t share = 1u << (MRI_PASS_BITS - l); share > 0; share--) *out++ = entry;
        }
    while (out < end) *out++ = MRI_PASS_ODD << 13;
    return true;
}

uint32_t mri_pass_search(const mri_pass_table *t, uint64_t bits)
{
    const uint32_t found = mri_huff_search(&t->codes, bits);
    return found ? entry_of(found >> 8, found & 0xff, t->most) : (uint32_t)MRI_PASS_ODD << 13;
}
