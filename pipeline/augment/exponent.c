/* pipeline/augment/exponent.c: exp and log from operations that IEEE 754 defines to the bit. */
#include "pipeline/augment/exponent.h"

double mri_exp(double x)
{
    /* e^x = (e^(x/256))^256; the series needs few terms for an argument this small. */
    const double r = x / 256;
    double term = 1, sum = 1;
    for (int k = 1; k <= 9; k++) {
        term *= r / k;
        sum += term;
    }
    for (int k = 0; k < 8; k++) sum *= sum;
    return sum;
}

double mri_log(double x)
{
    double y = 0;
    for (int k = 0; k < 40; k++) { /* third-order steps; far more than are needed within 1/16384..16384 */
        const double e = mri_exp(y);
        y += 2 * (x - e) / (x + e);
    }
    return y;
}
