/* tests/kernels/device_flow.h: checks beyond one operation on one device: updates, copies, invalid labels,
 * groups. */
#ifndef MRT_DEVICE_FLOW_H
#define MRT_DEVICE_FLOW_H

#include "tests/kernels/device_case.h"

void flow_check_all(void);

#endif
