/* formats/arrays/arrays.h: data sets that are arrays: IDX, CIFAR's binary files, NumPy. Private.
 *
 * Takes a file, a folder or an archive that holds pictures (or tensors) one after the other, all of one
 * shape, and their classes. Gives three formats for the table in formats/open.c, which nobody else names; and
 * the header of a .npy (npy.h), which tar/ finds in archives and pipeline/convert writes. Samples are read
 * where they lie. */
#ifndef MRI_ARRAYS_H
#define MRI_ARRAYS_H

#include "formats/arrays/npy.h"
#include "formats/source/source.h"

#endif
