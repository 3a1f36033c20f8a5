/* formats/storage/storage.h: files as bytes: read, unpacked, written; no format. Private.
 *
 * Takes file descriptors and paths. Gives
 *   file_scan.h     a file through a sliding buffer
 *   text.h          a text from front to end, plain or packed, with the number of the line
 *   gunzip.h        packed files, unpacked into an unnamed file
 *   spill.h         such a file, as it grows
 *   output.h        whatever is written under a name that users know; spilled files without one
 *   page_cache.h    pages of a file too large for memory
 *   open_pool.h     a bounded number of open files out of many
 *   outside.h       does a path lead out of a folder?
 *   placeholder.h   files that a failed download leaves in place of the data
 * and CRC32C (mr_crc32c()). It is the lowest floor of formats/: all of formats/, pipeline/ and train/ may use
 * it. */
#ifndef MRI_STORAGE_H
#define MRI_STORAGE_H

#include "formats/storage/file_scan.h"
#include "formats/storage/gunzip.h"
#include "formats/storage/open_pool.h"
#include "formats/storage/output.h"
#include "formats/storage/outside.h"
#include "formats/storage/page_cache.h"
#include "formats/storage/placeholder.h"
#include "formats/storage/spill.h"
#include "formats/storage/text.h"

#endif
