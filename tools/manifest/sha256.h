/* tools/manifest/sha256.h: SHA-256 (FIPS 180-4). For sums of files that other programs compare, not for
 * secrets. */
#ifndef TOOLS_SHA256_H
#define TOOLS_SHA256_H

#include <stddef.h>
#include <stdint.h>

enum { SHA256_BYTES = 32 };

typedef struct sha256 {
    uint32_t h[8];
    uint64_t bytes;
    uint8_t block[64];
} sha256;

void sha256_begin(sha256 *s);
void sha256_add(sha256 *s, const void *data, size_t bytes);
void sha256_end(sha256 *s, uint8_t out[SHA256_BYTES]);

#endif
