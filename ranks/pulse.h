/* ranks/pulse.h: who is still there, and the one verdict that ends a world. Private.
 *
 * Takes one socket for each other rank. A thread sends a beat to each, reads theirs, and decides: the first
 * cause of an end becomes the verdict, all others get a message, and every thread here that waits in poll()
 * is woken by a descriptor that stays readable. Gives that descriptor and the verdict. Callers: world.c,
 * transfer.c.
 */
#ifndef MRI_PULSE_H
#define MRI_PULSE_H

#include "ranks/seal.h"

typedef struct mri_pulse mri_pulse;

/* fds[rank], -1 for the own one: the pulse's from here on, also when this fails. seals[rank]: how far what
 * was said on it is sealed. hosts: by rank, as long as the pulse. silence_s 0: silence is no reason. Of a
 * world of one there is no thread, and nothing but mri_pulse_give_up() ends it. */
int mri_pulse_open(mri_pulse **out, uint32_t rank, uint32_t size, const char (*hosts)[MRI_WIRE_HOST_BYTES],
                   const int *fds, const mri_seal *seals, double silence_s, mr_error *err);
/* Farewell to all who are left. NULL is harmless. */
void mri_pulse_close(mri_pulse *p);

/* Readable from the verdict on; never read it. */
int mri_pulse_wake_fd(const mri_pulse *p);
/* Is there a verdict? Any thread. */
bool mri_pulse_has_ended(const mri_pulse *p);
/* MR_EPEER with the verdict, and the call of this rank. Only when it has ended. */
int mri_pulse_verdict(mri_pulse *p, const char *doing, mr_error *err);

/* Has this rank said farewell? Any thread. */
bool mri_pulse_has_left(const mri_pulse *p, uint32_t rank);

/* Whom the verdict blames; false: nobody. Any thread. */
bool mri_pulse_blames(const mri_pulse *p, uint32_t *rank, mri_blame_how *how);

/* This rank gives up. cause: the status that the other ranks find in mr_error.host; 0: none. Returns when
 * there is a verdict, this or an earlier one. Any thread. */
void mri_pulse_give_up(mri_pulse *p, int cause, const char *text);
/* The connection of `channel` to a rank has ended: the verdict will come. */
void mri_pulse_suspect(mri_pulse *p, uint32_t channel, uint32_t rank);

#endif
