/* formats/fileset/fileset.h: data sets that are spread over several files. Private.
 *
 * Takes a path, folder or pattern and a callback that recognises a format's first bytes. Gives
 *   filelist.h   the files of the part that was asked for, in order
 *   framed.h     for formats without an index of their own: these files, open and unpacked, and the index of
 *                their samples, stored next to the data
 * Callers: the formats on the floor above. It knows none of them. */
#ifndef MRI_FILESET_H
#define MRI_FILESET_H

#include "formats/fileset/filelist.h"
#include "formats/fileset/framed.h"

#endif
