/* formats/storage/crc32c.c: CRC32C (Castagnoli) through ISA-L, which uses the processor's own instructions
 * where it has them.
 *
 * ISA-L's crc32_iscsi takes and returns the raw register; the usual checksum starts from all ones and is
 * inverted at the end. Inverting on both sides gives the usual value and lets calls be chained from 0. */
#include <isa-l/crc.h>

#include "millrace/formats.h"

uint32_t mr_crc32c(uint32_t crc, const void *data, size_t bytes)
{
    const uint8_t *p = data;
    if (!p) return crc;
    while (bytes > 0) { /* the length is an int there */
        const size_t part = bytes < ((size_t)1 << 30) ? bytes : (size_t)1 << 30;
        /* the parameter is not const in ISA-L's header, but the buffer is only read */
        crc = ~crc32_iscsi((unsigned char *)(uintptr_t)p, (int)part, ~crc);
        p += part;
        bytes -= part;
    }
    return crc;
}
