/* pipeline/manifest/sha256.c: see sha256.h. */
#include "pipeline/manifest/sha256.h"

#include <string.h>

static const uint32_t k256[64] = {
    0x428a2f98, 0x71374491, 0xb5c0fbcf, 0xe9b5dba5, 0x3956c25b, 0x59f111f1, 0x923f82a4, 0xab1c5ed5,
    0xd807aa98, 0x12835b01, 0x243185be, 0x550c7dc3, 0x72be5d74, 0x80deb1fe, 0x9bdc06a7, 0xc19bf174,
    0xe49b69c1, 0xefbe4786, 0x0fc19dc6, 0x240ca1cc, 0x2de92c6f, 0x4a7484aa, 0x5cb0a9dc, 0x76f988da,
    0x983e5152, 0xa831c66d, 0xb00327c8, 0xbf597fc7, 0xc6e00bf3, 0xd5a79147, 0x06ca6351, 0x14292967,
    0x27b70a85, 0x2e1b2138, 0x4d2c6dfc, 0x53380d13, 0x650a7354, 0x766a0abb, 0x81c2c92e, 0x92722c85,
    0xa2bfe8a1, 0xa81a664b, 0xc24b8b70, 0xc76c51a3, 0xd192e819, 0xd6990624, 0xf40e3585, 0x106aa070,
    0x19a4c116, 0x1e376c08, 0x2748774c, 0x34b0bcb5, 0x391c0cb3, 0x4ed8aa4a, 0x5b9cca4f, 0x682e6ff3,
    0x748f82ee, 0x78a5636f, 0x84c87814, 0x8cc70208, 0x90befffa, 0xa4506ceb, 0xbef9a3f7, 0xc67178f2};

static uint32_t turn(uint32_t x, int n) { return x >> n | x << (32 - n); }

/* The word a is at index `at`, b follows it, and so on in a circle. */
static inline __attribute__((always_inline)) void one_round(uint32_t v[8], unsigned at, uint32_t add)
{
    const uint32_t a = v[at], b = v[(at + 1) % 8], c = v[(at + 2) % 8], e = v[(at + 4) % 8],
                   f = v[(at + 5) % 8], g = v[(at + 6) % 8];
    const uint32_t t1 =
        v[(at + 7) % 8] + (turn(e, 6) ^ turn(e, 11) ^ turn(e, 25)) + ((e & f) ^ (~e & g)) + add;
    v[(at + 3) % 8] += t1;
    v[(at + 7) % 8] = t1 + (turn(a, 2) ^ turn(a, 13) ^ turn(a, 22)) + ((a & b) ^ (a & c) ^ (b & c));
}

static void take_block(uint32_t h[8], const uint8_t *p)
{
    uint32_t w[64], v[8];
    for (int i = 0; i < 16; i++)
        w[i] = (uint32_t)p[4 * i] << 24 | (uint32_t)p[4 * i + 1] << 16 | (uint32_t)p[4 * i + 2] << 8 |
               p[4 * i + 3];
    for (int i = 16; i < 64; i++)
        w[i] = w[i - 16] + (turn(w[i - 15], 7) ^ turn(w[i - 15], 18) ^ w[i - 15] >> 3) + w[i - 7] +
               (turn(w[i - 2], 17) ^ turn(w[i - 2], 19) ^ w[i - 2] >> 10);
    memcpy(v, h, sizeof v);
    for (int i = 0; i < 64; i += 8) { /* the eight words move on by themselves */
        one_round(v, 0, k256[i] + w[i]);
        one_round(v, 7, k256[i + 1] + w[i + 1]);
        one_round(v, 6, k256[i + 2] + w[i + 2]);
        one_round(v, 5, k256[i + 3] + w[i + 3]);
        one_round(v, 4, k256[i + 4] + w[i + 4]);
        one_round(v, 3, k256[i + 5] + w[i + 5]);
        one_round(v, 2, k256[i + 6] + w[i + 6]);
        one_round(v, 1, k256[i + 7] + w[i + 7]);
    }
    for (int i = 0; i < 8; i++) h[i] += v[i];
}

void mri_sha256_begin(mri_sha256 *s)
{
    static const uint32_t first[8] = {0x6a09e667, 0xbb67ae85, 0x3c6ef372, 0xa54ff53a,
                                      0x510e527f, 0x9b05688c, 0x1f83d9ab, 0x5be0cd19};
    memcpy(s->h, first, sizeof s->h);
    s->bytes = 0;
}

void mri_sha256_add(mri_sha256 *s, const void *data, size_t bytes)
{
    const uint8_t *p = data;
    size_t used = (size_t)(s->bytes % 64);
    s->bytes += bytes;
    if (used > 0) {
        const size_t n = bytes < 64 - used ? bytes : 64 - used;
        memcpy(s->block + used, p, n);
        if (used + n < 64) return;
        take_block(s->h, s->block);
        p += n;
        bytes -= n;
    }
    for (; bytes >= 64; p += 64, bytes -= 64) take_block(s->h, p);
    memcpy(s->block, p, bytes);
}

void mri_sha256_end(mri_sha256 *s, uint8_t out[MRI_SHA256_BYTES])
{
    const uint64_t bits = s->bytes * 8;
    size_t used = (size_t)(s->bytes % 64);
    s->block[used++] = 0x80;
    if (used > 56) {
        memset(s->block + used, 0, 64 - used);
        take_block(s->h, s->block);
        used = 0;
    }
    memset(s->block + used, 0, 56 - used);
    for (int i = 0; i < 8; i++) s->block[56 + i] = (uint8_t)(bits >> (56 - 8 * i));
    take_block(s->h, s->block);
    for (int i = 0; i < 32; i++) out[i] = (uint8_t)(s->h[i / 4] >> (24 - 8 * (i % 4)));
}
