/* tests/kernels/device_lab.h: one device of any kind, used through the public calls only: memory goes in and
 * out by copies, and the meaning of a layout is found by asking the device.
 *
 *      host floats, canonical order ──encode──► stage ──h2d──► [guard | buffer, NaN | guard] ──┐
 *                                   floats ◄──decode── stage ◄──d2h────────────────────────────┘
 *
 * Every buffer starts as bytes of 0xFF, which is not a number in every type, between guards of another byte,
 * which are looked at when the buffers are given back. The first error of a lab stays with it and makes the
 * calls that follow do nothing, so a case can be written straight down and asked at its end. */
#ifndef MRT_DEVICE_LAB_H
#define MRT_DEVICE_LAB_H

#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/util.h"
#include "millrace/kernels.h"

#define LAB_BUFFERS 128u

struct lab_buffer {
    uint8_t *block;
    size_t bytes;
};

struct lab {
    const char *spec;
    bool reference;
    mr_device **devices;
    uint32_t count, at; /* at: the device in use */
    mr_device *dev;
    mr_stream *s;
    struct lab_buffer buffers[LAB_BUFFERS];
    uint32_t buffer_count;
    uint8_t *stage;
    size_t stage_bytes;
    int rc; /* the first error */
    mr_error err;
};

/* Settings of the run, from the environment. */
struct lab_settings {
    const char *devices;
    bool tf32, deterministic, quick;
    uint64_t seed;
};
const struct lab_settings *lab_settings(void);

/* Opens spec; ends the program when that fails. */
void lab_open(struct lab *l, const char *spec, bool reference);
void lab_use(struct lab *l, uint32_t device); /* another device of the same spec; no buffers may be out */
void lab_leave(struct lab *l);                /* gives the stream back, keeps the devices */
void lab_close(struct lab *l);
/* Once more from the start when an error has made the device useless. */
void lab_reopen(struct lab *l);
void lab_note(struct lab *l, int rc); /* rc < 0: remember it, l->err has the text where there is one */
void lab_sync(struct lab *l);

void *lab_memory(struct lab *l, size_t bytes);
void *lab_zeros(struct lab *l, size_t bytes);
void *lab_copy_of(struct lab *l, const void *host, size_t bytes);
void lab_put(struct lab *l, void *address, const void *host, size_t bytes);
void lab_get(struct lab *l, void *host, const void *address, size_t bytes);
/* All buffers back. NULL, or which guard was written over. */
const char *lab_release(struct lab *l);

/* ---- host memory of one case, forgotten all at once ---- */

void *lab_host(size_t bytes); /* zeroed */
float *lab_floats(size_t count);
float *lab_noise(size_t count, uint64_t seed, uint32_t dtype); /* in (-1, 1), never 0, rounded to dtype */
void lab_host_reset(void);

/* ---- tensors ---- */

static inline size_t lab_elements(const mr_tensor *t) { return (size_t)t->h * t->w * t->c; }
static inline mr_tensor lab_nhwc(uint32_t h, uint32_t w, uint32_t c, uint32_t dtype)
{
    return (mr_tensor){h, w, c, dtype, MR_LAYOUT_NHWC, (size_t)h * w * c * mr_tensor_element_bytes(dtype)};
}
/* For each stored element of a sample its canonical number plus 1; 0: padding. NULL when it could not be
 * found out. */
const uint32_t *lab_map(struct lab *l, const mr_tensor *t);
/* The layout the device gives tensors of this shape by itself: of a convolution's output. */
mr_tensor lab_own_layout(struct lab *l, const mr_tensor *nhwc);
/* With as many pixels and other channels, as the device stores it when it stores t so. */
mr_tensor lab_like(struct lab *l, const mr_tensor *t, uint32_t c);
/* n samples between canonical floats and device memory. load: *clean becomes false when padding is not
 * zero. */
void lab_store(struct lab *l, const mr_tensor *t, uint32_t n, void *address, const float *canonical);
void lab_load(struct lab *l, const mr_tensor *t, uint32_t n, const void *address, float *canonical,
              bool *clean);
/* Are all of these bytes as lab_memory() left them? */
bool lab_untouched(struct lab *l, const void *address, size_t bytes);

float lab_round(float x, uint32_t dtype); /* to the nearest value of the type, ties to even */
const char *lab_type_name(uint32_t dtype);

/* ||a - b|| / max(||b||, floor * sqrt(count)); infinite when a holds a value that is not finite. */
double lab_error(const float *a, const float *b, size_t count, double floor);

/* ---- results ---- */

/* A group of cases; one line about it. */
void lab_group_begin(const char *name, uint32_t dtype);
void lab_group_skip(const char *why); /* the device cannot */
/* One comparison: `what` ("dx") of case `which`. Counts as failed above tolerance. */
void lab_check(const char *which, const char *what, double error, double tolerance);
void lab_fail(const char *which, const char *what, const char *text);
void lab_case_done(void);
void lab_group_end(void);
int lab_report(void); /* the table of failures; the program's exit status */

#endif
