/* ranks/door.h: which connections were turned away, for whoever runs the job to hear of once. Private.
 *
 * Takes sockets and reasons of the thread that listens, gives lines of text to any thread. Bounded: addresses
 * beyond the first few are counted only. Callers: meet, mesh, muster, world. */
#ifndef MRI_DOOR_H
#define MRI_DOOR_H

#include <pthread.h>

#include "ranks/link.h"

enum { MRI_DOOR_NOTES = 16 };

typedef struct mri_door_note {
    mri_wire_seat from; /* its address */
    mri_refusal why;
    bool reported;
} mri_door_note;

typedef struct mri_door {
    pthread_mutex_t lock; /* guards the rest */
    mri_door_note notes[MRI_DOOR_NOTES];
    uint32_t count;
    uint64_t all; /* turned away so far */
    bool more, told_more;
} mri_door;

void mri_door_init(mri_door *d);
void mri_door_fini(mri_door *d);
/* A link that is about to be closed; its refusal says why. */
void mri_door_turn_away(mri_door *d, const mri_link *l);
/* The next line that was not given yet; false: no such line. */
bool mri_door_tell(mri_door *d, char *text, size_t bytes);
/* The newest reason, or NULL, and how many were turned away. */
const char *mri_door_newest(mri_door *d, uint64_t *all);
/* Adds the lines of `from` that it has not given. */
void mri_door_take(mri_door *d, mri_door *from);

#endif
