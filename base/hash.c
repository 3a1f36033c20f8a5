/* base/hash.c: see hash.h. */
#include "base/hash.h"

#include <pthread.h>
#include <sys/random.h>
#include <unistd.h>

#include "base/util.h"

static uint64_t turn(uint64_t v, int bits) { return v << bits | v >> (64 - bits); }

static void mix(uint64_t v[4], int rounds)
{
    while (rounds-- > 0) {
        v[0] += v[1], v[2] += v[3];
        v[1] = turn(v[1], 13) ^ v[0], v[3] = turn(v[3], 16) ^ v[2];
        v[0] = turn(v[0], 32);
        v[2] += v[1], v[0] += v[3];
        v[1] = turn(v[1], 17) ^ v[2], v[3] = turn(v[3], 21) ^ v[0];
        v[2] = turn(v[2], 32);
    }
}

static void take(uint64_t v[4], uint64_t word)
{
    v[3] ^= word;
    mix(v, 2);
    v[0] ^= word;
}

uint64_t mri_siphash(const uint64_t key[2], const void *data, size_t bytes)
{
    uint64_t v[4] = {key[0] ^ 0x736f6d6570736575, key[1] ^ 0x646f72616e646f6d, key[0] ^ 0x6c7967656e657261,
                     key[1] ^ 0x7465646279746573};
    const uint8_t *p = data;
    uint64_t last = (uint64_t)bytes << 56;
    for (; bytes >= 8; p += 8, bytes -= 8) take(v, mri_le64(p));
    for (size_t k = 0; k < bytes; k++) last |= (uint64_t)p[k] << (8 * k);
    take(v, last);
    v[2] ^= 0xff;
    mix(v, 4);
    return v[0] ^ v[1] ^ v[2] ^ v[3];
}

static pthread_once_t drawn = PTHREAD_ONCE_INIT;
static uint64_t process_key[2]; /* fixed after drawn */

static void draw(void)
{
    if (getrandom(process_key, sizeof process_key, GRND_NONBLOCK) == (ssize_t)sizeof process_key) return;
    /* a system without it, or one that has just started: use values that are hard to guess from outside */
    process_key[0] = mri_mix64(mri_now_ns() ^ (uint64_t)(uintptr_t)&process_key);
    process_key[1] = mri_mix64(process_key[0] ^ (uint64_t)getpid() << 32 ^ (uint64_t)(uintptr_t)&draw);
}

uint64_t mri_hash_name(const void *data, size_t bytes)
{
    pthread_once(&drawn, draw);
    return mri_siphash(process_key, data, bytes);
}
