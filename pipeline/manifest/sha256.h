/* pipeline/manifest/sha256.h: SHA-256 (FIPS 180-4). For sums of files that other programs compare, not for
 * secrets. */
#ifndef MRI_SHA256_H
#define MRI_SHA256_H

#include <stddef.h>
#include <stdint.h>

enum { MRI_SHA256_BYTES = 32 };

typedef struct mri_sha256 {
    uint32_t h[8];
    uint64_t bytes;
    uint8_t block[64];
} mri_sha256;

void mri_sha256_begin(mri_sha256 *s);
void mri_sha256_add(mri_sha256 *s, const void *data, size_t bytes);
void mri_sha256_end(mri_sha256 *s, uint8_t out[MRI_SHA256_BYTES]);

#endif
