/* formats/fileset/fileset.h: data sets that are spread over several files. Private.
 *
 * Takes a path, folder or pattern and a question, "does this begin like one of yours?". Gives
 *   filelist.h   the files of the part that was asked for, in order
 *   framed.h     for formats without an index of their own: these files, open and unpacked, and the index
 *                of their samples, kept beside the data
 * For the formats that stand above it; it knows none of them. */
#ifndef MRI_FILESET_H
#define MRI_FILESET_H

#include "formats/fileset/filelist.h"
#include "formats/fileset/framed.h"

#endif
