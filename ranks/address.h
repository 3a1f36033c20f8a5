/* ranks/address.h: where a rank of an open world can be reached. Private. Callers: crew.c. */
#ifndef MRI_ADDRESS_H
#define MRI_ADDRESS_H

#include "millrace/ranks.h"

enum { MRI_ADDRESS_BYTES = 256 };

/* As mr_world_config.meet takes it, without a port: an address by which this rank reaches that one; for the
 * rank itself a loopback address in a world on one host that nobody else can enter, else the name of its
 * host. */
void mri_world_address(const mr_world *w, uint32_t rank, char out[MRI_ADDRESS_BYTES]);

/* Its settings, for other worlds of its processes: waiting times, wire, encryption. */
mr_world_config mri_world_settings(const mr_world *w);

#endif
