/* train/packed/pack.h: floats in fewer bits for the network, and the rounding error, which is sent
 * later. Private to train/ and tests.
 *
 *   given + residual ──► packed bytes ──► values of every receiver
 *                    └─► new residual = given + residual - those values
 *
 * Error feedback, as 1-bit SGD (Seide et al. 2014) has it. The residual is in double, and every value read is
 * a float, so all that was read plus the residual is all that was given, to the bit, while the values of a
 * block are within 2^29 of each other. */
#ifndef MRI_PACK_H
#define MRI_PACK_H

#include <stddef.h>
#include <stdint.h>

#include "millrace/train.h"

#define MRI_PACK_BLOCK 256u /* floats with one scale: INT8 and BIT */

/* Bytes of count floats. */
size_t mri_pack_bytes(mr_exchange how, uint64_t count);
/* to: mri_pack_bytes(); residual: count, zero at first. A value that is not finite makes its block (BF16,
 * F16: itself) not a number or infinite for the receiver, and its residual zero. */
void mri_pack_floats(mr_exchange how, const float *from, double *residual, uint64_t count, uint8_t *to);
void mri_unpack_floats(mr_exchange how, const uint8_t *from, uint64_t count, float *to);

#endif
