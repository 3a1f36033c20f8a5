/* formats/storage/storage.h: files as bytes: read, unpacked, written; no format. Private.
 *
 * Takes file descriptors and paths. Gives
 *   file_scan.h   a file through a sliding buffer
 *   text.h        a text from front to end, plain or packed, with the number of the line
 *   gunzip.h      what is packed, as a file without a name
 *   spill.h       such a file, as it grows
 *   aside.h       a file that takes its name when it is whole
 *   impostor.h    what stands where data should be
 * and CRC32C (mr_crc32c()). Stands at the bottom of formats/: all of it may use it, and so may pipeline/ and
 * train/. */
#ifndef MRI_STORAGE_H
#define MRI_STORAGE_H

#include "formats/storage/aside.h"
#include "formats/storage/file_scan.h"
#include "formats/storage/gunzip.h"
#include "formats/storage/impostor.h"
#include "formats/storage/spill.h"
#include "formats/storage/text.h"

#endif
