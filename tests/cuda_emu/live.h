/* tests/cuda_emu/live.h: which handles of the emulated libraries exist. Every entry point asks before it
 * looks into a handle, so that one used after its destruction, or a handle of another kind, is a violation
 * and not a crash. */
#ifndef EMU_LIVE_H
#define EMU_LIVE_H

#include <stdbool.h>

enum emu_live_kind { EMU_CUBLAS_HANDLE = 1, EMU_CUDNN_HANDLE, EMU_CUDNN_DESCRIPTOR, EMU_NCCL_COMM };

/* Any thread. add: false when there is no memory for it. remove and is: false when it is not there (as that
 * kind). */
bool emu_live_add(const void *handle, enum emu_live_kind kind);
bool emu_live_remove(const void *handle, enum emu_live_kind kind);
bool emu_live_is(const void *handle, enum emu_live_kind kind);

#endif
