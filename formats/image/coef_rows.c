/* formats/image/coef_rows.c: blocks of a coefficient payload expanded in plain C: the specification of
 * coef_avx2.c and coef_avx512.c, and the code they share. See coef_layout.h. */
#include "formats/image/coef_layout.h"

#define BELOW(end) ((end) == 64 ? UINT64_MAX : ((uint64_t)1 << ((end) % 64)) - 1)

/* Chosen on photographs: fine steps where most tiers end, coarse ones where a few more bytes hardly count. */
const uint8_t mri_coef_tier_end[MRI_COEF_TIER + 1] = {1,  2,  3,  4,  5,  6,  8,  10,
                                                      12, 15, 18, 21, 28, 36, 48, 64};
const uint64_t mri_coef_tier[MRI_COEF_TIER + 1] = {
    BELOW(1),  BELOW(2),  BELOW(3),  BELOW(4),  BELOW(5),  BELOW(6),  BELOW(8),  BELOW(10),
    BELOW(12), BELOW(15), BELOW(18), BELOW(21), BELOW(28), BELOW(36), BELOW(48), BELOW(64)};

uint64_t mri_coef_escapes(const uint8_t *at, size_t room, uint64_t map, unsigned tier, int16_t *coef,
                          size_t *bytes)
{
    *bytes = 1;
    if (room < 1 || at[0] > tier) return 1;
    uint64_t left = map & mri_coef_tier[at[0]];
    const size_t count = (size_t)__builtin_popcountll(left);
    *bytes += count;
    if (count > room - 1) return 1;
    for (; left; left &= left - 1) {
        int16_t *c = &coef[mri_jpeg_natural[__builtin_ctzll(left)]];
        *c = (int16_t)((uint16_t) * ++at << 8 | (uint8_t)*c);
    }
    return 0;
}

/* One block that has more than its DC. */
static uint64_t expand(const uint8_t *p, size_t length, int16_t *coef, uint8_t *last)
{
    const unsigned mode = p[0], map_bytes = (mode & MRI_COEF_MAP_BYTES) + 1,
                   tier = mode >> MRI_COEF_TIER_SHIFT & MRI_COEF_TIER;
    const uint64_t map = mri_le64(p + 1) & UINT64_MAX >> (64 - 8 * map_bytes);
    const uint8_t *at = p + 1 + map_bytes;
    for (uint64_t left = map & mri_coef_tier[tier]; left; left &= left - 1)
        coef[mri_jpeg_natural[__builtin_ctzll(left)]] = (int8_t)*at++;
    unsigned nibbles = 0;
    for (uint64_t left = map & ~mri_coef_tier[tier]; left; left &= left - 1, nibbles++) {
        const int nibble = at[nibbles / 2] >> 4 * (nibbles % 2) & 15;
        coef[mri_jpeg_natural[__builtin_ctzll(left)]] = (int16_t)((nibble ^ 8) - 8);
    }
    at += (nibbles + 1) / 2;
    *last = (uint8_t)(63 - __builtin_clzll(map | 1));
    size_t taken = (size_t)(at - p), more = 0;
    uint64_t wrong = map & 1;
    if (mode & MRI_COEF_ESCAPE)
        wrong |= mri_coef_escapes(at, length > taken ? length - taken : 0, map, tier, coef, &more);
    return wrong | (taken + more != length);
}

uint64_t mri_coef_run_plain(const mri_coef_run *run)
{
    const uint8_t *p = run->data;
    uint64_t wrong = 0;
    for (uint32_t i = 0; i < run->count; i++) {
        memset(run->coef[i], 0, sizeof run->coef[i]);
        run->last[i] = 0;
        if (run->lengths[i]) wrong |= expand(p, run->lengths[i], run->coef[i], &run->last[i]);
        run->coef[i][0] = (int16_t)mri_le16(run->dc + 2 * (size_t)i);
        p += run->lengths[i];
    }
    return wrong;
}
