/* base/floats.h: the floating-point mode that results depend on: round to nearest, denormals as they are, no
 * traps. Private.
 *
 * A host may have set another one in its threads (fesetround, flush to zero, feenableexcept). Threads of this
 * library begin with the default (base/process.c); a public function that computes in its caller's thread
 * opens with MRI_DEFAULT_FLOATS, and the caller's mode is back when it returns. Functions of the program that
 * are called meanwhile have the default mode, too. */
#ifndef MRI_FLOATS_H
#define MRI_FLOATS_H

#include <fenv.h>

typedef struct mri_floats {
    fenv_t before;
} mri_floats;

static inline mri_floats mri_floats_begin(void)
{
    mri_floats f;
    fegetenv(&f.before);
    fesetenv(FE_DFL_ENV);
    return f;
}
static inline void mri_floats_end(mri_floats *f) { fesetenv(&f->before); }

#define MRI_DEFAULT_FLOATS                                                                                   \
    mri_floats mri_floats_here __attribute__((unused, cleanup(mri_floats_end))) = mri_floats_begin()

#endif
