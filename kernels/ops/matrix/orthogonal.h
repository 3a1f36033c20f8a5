/* kernels/ops/matrix/orthogonal.h: a matrix brought near to one whose rows, or columns, are of length 1 and
 * at right angles, by iterations of Newton and Schulz: what MR_UPDATE_MUON does to a momentum.
 *
 *   X = G / max(|G|, epsilon)      |G|: the root of the sum of its squares
 *   five times                     A = X X^t (of the shorter side), X = a X + (b A + c A A) X
 *
 * with a, b, c = 3.4445, -4.775, 2.0315, which bring what lies between 0 and 1 to about 1 (0.7 to 1.2) fast,
 * and not exactly to 1 (Jordan et al., "Muon: An optimizer for hidden layers in neural networks", 2024). */
#ifndef MRI_ORTHOGONAL_H
#define MRI_ORTHOGONAL_H

#include "base/util.h"

#define MRI_ORTHOGONAL_STEPS 5
#define MRI_ORTHOGONAL_A     3.4445f
#define MRI_ORTHOGONAL_B     (-4.775f)
#define MRI_ORTHOGONAL_C     2.0315f

/* Floats of room for a matrix of this size, on up to `threads` threads. */
size_t mri_orthogonal_floats(uint64_t rows, uint64_t columns, uint32_t threads);
/* x: rows x columns, row-major; becomes the result. room: at a multiple of MRI_CACHE_LINE. Same bits on any
 * number of threads. */
void mri_orthogonalise(float *x, uint64_t rows, uint64_t columns, float epsilon, float *room);

#endif
