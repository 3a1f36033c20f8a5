/* pipeline/augment/turn.c: see turn.h. */
#include "pipeline/augment/turn.h"

#include <math.h>

void mri_sine_cosine(double degrees, double *sine, double *cosine)
{
    const double quarters = floor(degrees / 90 + 0.5);
    const double x = (degrees - 90 * quarters) * (3.14159265358979323846 / 180), xx = x * x; /* -pi/4 to pi/4
                                                                                              */
    double s = 0, c = 0;
    for (int k = 19; k >= 3; k -= 2) { /* from the smallest term on */
        s = (1 + s) * -xx / (k * (k - 1));
        c = (1 + c) * -xx / ((k - 1) * (k - 2));
    }
    s = (1 + s) * x;
    c = 1 + c;
    const int turn = (int)(quarters - 4 * floor(quarters / 4));
    *sine = turn == 0 ? s : turn == 1 ? c : turn == 2 ? -s : -c;
    *cosine = turn == 0 ? c : turn == 1 ? -s : turn == 2 ? -c : s;
}

static int64_t fixed(double v) { return (int64_t)floor(v * 4294967296.0 + 0.5); }

/* Forwards, with tangents tx and ty: first shears along x and y, then turns:
 *
 *   | cos  -sin |   | 1    0 |   | 1  -tx |
 *   | sin   cos | * | -ty  1 | * | 0    1 |
 *
 * Each has the determinant 1, so the inverse has the same four numbers in other places, over the scale. */
mri_warp mri_warp_of(const mri_turn *t, uint32_t width, uint32_t height)
{
    double s, c;
    mri_sine_cosine(t->degrees, &s, &c);
    const double a = c + s * t->shear_y, b = -a * t->shear_x - s;
    const double d = s - c * t->shear_y, e = -d * t->shear_x + c;
    const double xx = e / t->scale, xy = -b / t->scale, yx = -d / t->scale, yy = a / t->scale;
    const double middle_x = t->corner ? 0 : width / 2.0, middle_y = t->corner ? 0 : height / 2.0;
    const double x = 0.5 - middle_x - t->move_x, y = 0.5 - middle_y - t->move_y; /* the first pixel's centre
                                                                                  */
    return (mri_warp){.xx = fixed(xx),
                      .xy = fixed(xy),
                      .x0 = fixed(xx * x + xy * y + middle_x),
                      .yx = fixed(yx),
                      .yy = fixed(yy),
                      .y0 = fixed(yx * x + yy * y + middle_y)};
}
