/* tests/fuzz/fuzz.h: what every fuzz target defines, files without a disk, and a bound on memory.
 *
 *   begin(input, declared) ──► file() ... code under test ... ──► end()
 *
 * The files lie in MRT_FUZZ_FOLDER and nowhere else: the linker sends the file calls of the whole program
 * through memory_files.c, where a path in that folder, and a file opened there, never reaches the system. A
 * target runs many times as often for it. */
#ifndef MRT_FUZZ_H
#define MRT_FUZZ_H

#include <stddef.h>
#include <stdint.h>

#define MRT_FUZZ_FOLDER "/millrace-fuzz"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t bytes);

/* From here to end() at most 64 x input_bytes + declared_bytes are allocated at one time, files without a
 * name in memory included, or the program is stopped. Allocations are seen in sanitized builds, files without
 * a name in all of them. */
void mrt_fuzz_begin(size_t input_bytes, size_t declared_bytes);
/* Every file is gone. One that the code under test left open stops the program. */
void mrt_fuzz_end(void);

/* A file of this name in the folder until end(); data stays the caller's. Returns its path. A name again is a
 * new content. */
const char *mrt_fuzz_file(const char *name, const void *data, size_t bytes);

/* What stands in a file that the code under test has written: as many bytes as there is room for; returns how
 * many there are. */
size_t mrt_fuzz_read(const char *name, void *out, size_t out_bytes);

/* For memory_files.c: a file without a name grew or went. */
void mrt_fuzz_count(ptrdiff_t bytes);
/* For fuzz.c. False: something is open. */
int mrt_fuzz_files_clear(void);

#endif
