/* ranks/crew/hosts_roles.h: who serves weights and who works, as launchers with parameter servers deal it.
 * Private.
 *
 * Takes hosts with their ranks and GPUs (hosts.h). Gives a table with a row for each rank. A pure function.
 * Callers: crew.c.
 *
 *   hosts      ranks are counted host by host; the k-th of a host listens on the first port + k
 *   servers    the first rank of a host (the first ranks of the first N hosts). Numbered by host
 *   workers    all others, numbered by rank; worker 0 is the chief, and not rank 0 where that one serves
 *   devices    the only worker of a host has all its GPUs. Of several the k-th has GPU k; those without
 *              have a processor each, counted from 0. Servers use processor 0
 *
 * Where nobody would work, or nobody serve:
 *
 *   - A host with one rank has a worker, and its weights are served elsewhere. (The launchers of 2017 made it
 *     a server: two hosts with one rank each were two servers without a worker.)
 *   - Where no rank only serves (one rank on every host, one rank in all, or 0 servers), the chief serves
 *     beside its work.
 *   - With a stated number of servers N the first ranks of the first N hosts serve, also where a host has no
 *     other: somebody has asked for it. More servers than hosts, or no remaining worker, is an error. */
#ifndef MRI_HOSTS_ROLES_H
#define MRI_HOSTS_ROLES_H

#include "ranks/hosts.h"

enum { MRI_ROLES_FIRST_PORT = 2300, MRI_ROLES_ADDRESS_BYTES = MRI_HOST_BYTES + 6 };

#define MRI_SERVERS_BY_HOST UINT32_MAX /* the first rank of each host that has several */

typedef enum mri_host_role { MRI_ROLE_SERVER, MRI_ROLE_WORKER } mri_host_role;

typedef struct mri_role_row {
    uint32_t rank, host; /* host: its place in the list */
    mri_host_role role;
    uint32_t index;                        /* in its role */
    bool chief;                            /* worker 0 */
    bool serves;                           /* all servers; without servers the chief */
    char address[MRI_ROLES_ADDRESS_BYTES]; /* HOST:PORT */
    uint32_t gpus;                         /* it has GPUs device to device + gpus - 1 of its host; */
    uint32_t device;                       /* or, where gpus is 0, processor number device */
} mri_role_row;

typedef struct mri_roles {
    mri_role_row *rows; /* by rank */
    uint32_t ranks, servers, workers;
} mri_roles;

/* servers: MRI_SERVERS_BY_HOST, or how many. first_port 0: MRI_ROLES_FIRST_PORT.
 *
 * MR_EINVAL: too many servers, a port above 65535, ranks that nobody says (mri_host.ranks 0), or ranks that
 * are scattered over the hosts. MR_ENOMEM. After a failure nothing is in *out. */
int mri_roles_deal(mri_roles *out, const mri_hosts *hosts, uint32_t servers, uint32_t first_port,
                   mr_error *err);
void mri_roles_fini(mri_roles *roles); /* again is harmless */

#endif
