/* tests/pipeline/decode/coefs.h: coefficients of JPEGs: libjpeg's, as the judge of ours, and files made of
 * coefficients or of raw symbols. */
#ifndef MRT_COEFS_H
#define MRT_COEFS_H

#include "formats/image/jpeg_frame.h"

typedef struct mrt_coefs {
    bool clean;     /* libjpeg read it to the end and had nothing to warn of */
    char text[256]; /* else its message */
    uint32_t count;
    uint32_t wide[4], high[4];
    int16_t (*block[4])[MRI_JPEG_BLOCK];
} mrt_coefs;

/* Decode with libjpeg's careful loop: its bytes come in small pieces, so that the fast one, which passes over
 * bad codes in silence, is never taken. Pictures of over max_blocks blocks are not clean. Free the result. */
void mrt_coefs_read(mrt_coefs *out, const void *data, size_t bytes, uint64_t max_blocks);
void mrt_coefs_free(mrt_coefs *c);

typedef struct mrt_coefs_kind {
    int components; /* 1 or 3 */
    uint32_t width, height;
    int h[3], v[3]; /* 0: 1 */
    int script;     /* 0: one scan; 1: one for each component; 2: {0}, {1, 2} */
    int restart;    /* MCUs, 0: none */
    bool optimize;  /* Huffman tables made to measure */
    int density;    /* of 64 coefficients other than 0, on average */
    int range;      /* of AC values, below 1024 */
    bool progressive;
} mrt_coefs_kind;

/* A JPEG with such coefficients drawn at random, written by libjpeg; malloc'd, exact. */
uint8_t *mrt_coefs_write(const mrt_coefs_kind *kind, uint64_t seed, size_t *bytes);

/* A JPEG no encoder writes but any decoder must read: random Huffman codes of up to 16 bits, symbols of all
 * sizes to 15, runs that lead over the end of the block. Gray; malloc'd, exact. */
uint8_t *mrt_coefs_wild(uint32_t width, uint32_t height, int restart, uint64_t seed, size_t *bytes);

#endif
