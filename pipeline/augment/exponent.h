/* pipeline/augment/exponent.h: exp and log with the same bits on every machine. Private. */
#ifndef MRI_EXPONENT_H
#define MRI_EXPONENT_H

/* Natural exponential and logarithm from additions, multiplications and divisions only, which IEEE 754
 * defines to the bit: libm differs from system to system. Relative error below 1e-13 for |x| <= 16. */
double mri_exp(double x);
double mri_log(double x);

#endif
