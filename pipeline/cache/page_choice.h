/* pipeline/cache/page_choice.h: whether new memory is faster in huge or in small pages. Private to
 * cache_memory.c, and to its test.
 *
 * The system clears a page when it is first written. In huge pages of 2 MiB this takes a quarter of the time
 * on one machine; on a virtual machine that returns free blocks of 2 MiB to its host it takes five times as
 * long, because the host must supply each block again, while small pages come from blocks in use
 * (docs/measurements.md). So both kinds are measured: memory is filled in pieces, each of one kind; the
 * first pieces try both, and the others are of the faster kind, except for one in 64, which tries the slower
 * one again.
 *
 * Takes the time that clearing took. Gives the kind of the next piece. No I/O, no clock; the caller's lock.
 */
#ifndef MRI_PAGE_CHOICE_H
#define MRI_PAGE_CHOICE_H

#include <stdbool.h>
#include <stdint.h>

enum { MRI_PAGE_RETRY = 64 }; /* pieces */

typedef struct mri_page_choice { /* zeros: nothing is known */
    uint64_t ns[2], bytes[2];    /* measured: small, huge */
    uint32_t pieces;
} mri_page_choice;

/* True: huge pages. */
bool mri_page_choice_next(mri_page_choice *c);
/* Clearing `bytes` bytes in pages of this kind took `ns`. Old measurements count less. */
void mri_page_choice_note(mri_page_choice *c, bool huge, uint64_t bytes, uint64_t ns);

#endif
