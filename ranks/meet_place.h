/* ranks/meet_place.h: where the ranks of a job meet, and the key that identifies their job. Private.
 *
 * Takes a world's settings and the launcher's variables. Gives a host, ports to try and a key. Pure but for
 * the environment and /proc; opens no connection. Callers: world.c. */
#ifndef MRI_MEET_PLACE_H
#define MRI_MEET_PLACE_H

#include "millrace/ranks.h"
#include "ranks/link.h"
#include "ranks/wire.h"

enum { MRI_PLACE_PORTS = 8, MRI_PLACE_LOWEST_PORT = 20000, MRI_PLACE_HIGHEST_PORT = 32000 };

typedef struct mri_place {
    char host[256]; /* of rank 0: a name or an address */
    uint16_t ports[MRI_PLACE_PORTS + 1];
    uint32_t port_count;
    bool this_host_only; /* host is a loopback address: nobody else is to see a port */
    const char *host_by; /* the variable or setting that names host; NULL: the launcher's list of nodes */
    mr_launcher size_by; /* that has the number of ranks; MR_LAUNCHER_NONE: the caller */
    uint8_t key[MRI_WIRE_KEY_BYTES];
} mri_place;

int mri_place_find(mri_place *out, const mr_world_config *cfg, mr_error *err);
/* What to try when ranks do not meet: "; ...", or "". missing: others did not come, and not rank 0. */
const char *mri_place_hint(const mri_place *p, uint32_t size, bool missing, char *buf, size_t buf_bytes);
/* Which addresses to listen at: on the loopback device alone when it is there that rank 0 is reached and
 * nobody else is to. */
mri_listen_at mri_place_listens(const mri_place *p);

#endif
