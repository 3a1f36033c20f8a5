/* tests/fuzz/fuzz.h: what every fuzz target defines, and help for parsers that want files. */
#ifndef MRT_FUZZ_H
#define MRT_FUZZ_H

#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <sys/mman.h>
#include <unistd.h>

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t bytes);

/* A file in memory with these bytes; path[64] receives a name it can be opened by. Close the result. */
static inline int mrt_fuzz_file(const void *data, size_t bytes, char path[64])
{
    const int fd = memfd_create("fuzz", MFD_CLOEXEC);
    if (fd < 0 || write(fd, data, bytes) != (ssize_t)bytes) __builtin_trap();
    snprintf(path, 64, "/proc/self/fd/%d", fd);
    return fd;
}

#endif
