/* tests/cuda_emu/test_emu_place.h: emulated GPUs for the tests of the libraries: a stream and memory on each.
 * The emulation's device memory is the host's, so a test fills and reads it directly, when nothing queued
 * uses it. */
#ifndef TEST_EMU_PLACE_H
#define TEST_EMU_PLACE_H

#include "tests/cuda_emu/emut.h"
#include "tests/cuda_emu/product.h"

#define PLACES 7

struct place {
    CUcontext context;
    CUmemoryPool pool;
    CUstream stream;
};
extern struct place places[PLACES];

/* For cmocka's group: open and close all. Violations are counted, not fatal. */
int places_open(void **state);
int places_close(void **state);

void place_use(int device); /* make it current */
void *place_alloc(int device, size_t bytes);
void place_free(int device, void *at);
void place_sync(int device);

/* `what` breaks a rule that the emulation reports. */
#define CAUGHT(what)                                                                                         \
    do {                                                                                                     \
        const uint64_t before_ = emu_violations();                                                           \
        what;                                                                                                \
        MRT_TRUE(emu_violations() > before_);                                                                \
    } while (0)

/* Small numbers that every type holds well; the same for the same seed. */
float test_number(uint64_t *seed);
size_t test_up_to(uint64_t *seed, size_t most); /* 1..most */
void test_fill(enum emu_type type, void *at, size_t count, uint64_t *seed);
/* Relative to 1 + the sum of the terms' sizes: how far a value of this type may be from the exact one. */
double test_tolerance(enum emu_type stored);

#endif
