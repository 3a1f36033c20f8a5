/* kernels/sim/sim.h: the device kind "sim": accelerators whose copies and steps take a time that is set.
 *
 * Takes a device's settings, rates and times among them, from device.c. Gives one struct mri_backend, which
 * backends.c puts into the table of kinds: nobody else calls this room. It stands on kernels/host/ and
 * kernels/ops/. */
#ifndef MRI_SIM_H
#define MRI_SIM_H

struct mri_backend;
extern const struct mri_backend mri_sim_backend;

#endif
