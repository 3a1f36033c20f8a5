/* pipeline/decode/png_chunks.h: the chunks of a PNG, checked and handed on. Private to png.c. */
#ifndef MRI_PNG_CHUNKS_H
#define MRI_PNG_CHUNKS_H

#include "base/util.h"
#include "millrace/formats.h"

typedef struct mri_png_chunks {
    const uint8_t *data;
    size_t bytes;           /* up to the end of IEND: what follows is nobody's */
    const uint8_t *palette; /* of a picture with one: red, green, blue */
    uint32_t palette_count;
    size_t at, chunk_end;    /* of mri_png_take() */
    size_t data_at;          /* of the first IDAT chunk */
    size_t body, body_bytes; /* of mri_png_take_data(): the rest of a chunk's data */
} mri_png_chunks;

/* Walk all chunks of a file whose header has been parsed: lengths, checksums, order, what must be there.
 * MR_EUNSUPPORTED  a critical chunk that is not known here */
int mri_png_chunks_open(mri_png_chunks *c, const void *data, size_t bytes, const mr_image_header *header,
                        mr_error *err);

/* The next `bytes` bytes of the file without its ancillary chunks; false when there are fewer. */
bool mri_png_take(mri_png_chunks *c, void *dst, size_t bytes);

/* From the beginning of the image data, the bodies of IDAT chunks: the next `bytes` bytes. Returns their
 * number, which is smaller at the end. */
void mri_png_rewind_data(mri_png_chunks *c);
size_t mri_png_take_data(mri_png_chunks *c, void *dst, size_t bytes);

#endif
