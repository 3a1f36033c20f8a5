/* tests/cuda_emu/blocks.h: run a kernel's body once for each thread of a grid. The emulation's lock is
 * held. */
#ifndef EMU_BLOCKS_H
#define EMU_BLOCKS_H

#include <stdint.h>
#include <stdlib.h>

#ifdef __cplusplus
extern "C" {
#endif

void emu_run_grid(void (*body)(const void *args), const void *args, unsigned grid_x, unsigned grid_y,
                  unsigned threads, unsigned shared_bytes);

#ifdef __cplusplus
}
#endif
#endif
