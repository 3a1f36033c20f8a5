/* ranks/wires_post.c: the part of wires.h that opens a post. Nobody begins what waits for all others before
 * all are known to have the library:
 *
 *   gather     who can open it, or why not
 *              each begins it
 *   gather     how each is reached, or why not
 *              each connects
 *   gather     who could not */
#include "ranks/wires.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/util.h"
#include "ranks/meet.h"

typedef struct report { /* of each rank, to all */
    uint32_t rc;
    char why[400];
} report;

typedef struct opening {
    mr_world *world;
    uint32_t channel, rank, size;
    const char *wire;
    report mine, *all;
    uint8_t *cards; /* by rank */
    mri_post *post;
} opening;

static void note(opening *o, int rc, const mr_error *why)
{
    o->mine = (report){.rc = (uint32_t)rc};
    if (rc) snprintf(o->mine.why, sizeof o->mine.why, "%.399s", why->text);
}

/* All find the same in the same bytes, and nobody goes before all have it. Who has not failed itself can go
 * on in a world of the others. */
static int agree(opening *o, mr_error *err)
{
    int rc = mr_world_gather(o->world, o->channel, &o->mine, sizeof o->mine, o->all, err);
    for (uint32_t r = 0; rc == MR_OK && r < o->size; r++) {
        if (o->all[r].rc == MR_OK) continue;
        o->all[r].why[sizeof o->all[r].why - 1] = '\0';
        rc = mr_error_set(err, o->mine.rc ? (int)o->mine.rc : MR_EPEER, "%s cannot use wire %s: %s",
                          mri_meet_name(r, mr_world_host(o->world, r)), o->wire, o->all[r].why);
        (void)mr_world_barrier(o->world, o->channel, NULL);
    }
    return rc;
}

static int begin(opening *o, mr_wire_choice wire, mr_error *err)
{
    mr_error why = MR_ERROR_INIT;
    mr_launch launch = {.launcher = MR_LAUNCHER_NONE};
    (void)mr_launch_find(&launch, NULL); /* else the first library that is there */
    uint8_t *own = o->cards + (size_t)o->rank * MRI_POST_CARD_BYTES;
    note(o,
         wire == MR_WIRE_MPI ? mri_post_open_mpi(&o->post, launch.launcher, o->rank, o->size, &why)
                             : mri_post_open_ucx(&o->post, o->rank, o->size, &why),
         &why);
    int rc = agree(o, err);
    if (rc) return rc;
    note(o, o->post->ops->begin(o->post, own, &why), &why);
    rc = agree(o, err);
    if (rc == MR_OK) rc = mr_world_gather(o->world, o->channel, own, MRI_POST_CARD_BYTES, o->cards, err);
    if (rc) return rc;
    note(o, o->post->ops->connect(o->post, o->cards, &why), &why);
    return agree(o, err);
}

int mri_wires_open_post(mri_post **out, mr_world *world, uint32_t channel, mr_wire_choice wire, mr_error *err)
{
    const uint32_t size = mr_world_size(world);
    opening o = {.world = world,
                 .channel = channel,
                 .rank = mr_world_rank(world),
                 .size = size,
                 .wire = wire == MR_WIRE_MPI ? "mpi" : "ucx",
                 .all = calloc(size, sizeof *o.all),
                 .cards = calloc(size, MRI_POST_CARD_BYTES)};
    *out = NULL;
    int rc =
        o.all && o.cards ? MR_OK : mr_error_set(err, MR_ENOMEM, "no memory for messages of %u ranks", size);
    if (rc == MR_OK) rc = begin(&o, wire, err);
    if (rc) mri_post_close(o.post, true);
    else *out = o.post;
    free(o.all);
    free(o.cards);
    return rc;
}
