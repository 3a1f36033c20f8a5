/* tests/kernels/device_flow.h: what is not one operation on one device: updates, copies, labels that are
 * none, groups. */
#ifndef MRT_DEVICE_FLOW_H
#define MRT_DEVICE_FLOW_H

#include "tests/kernels/device_case.h"

void flow_check_all(void);

#endif
