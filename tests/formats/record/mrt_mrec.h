/* tests/formats/record/mrt_mrec.h: a small .mrec file whose every value follows from a record's number. */
#ifndef MRT_MREC_H
#define MRT_MREC_H

#include "millrace/formats.h"
#include "mrt.h"

enum { MRT_FIELDS = 6 };

/* image (JPEG bytes), label, weight, vector (f32, 3), name (text), blob (bytes; sometimes none) */
extern const mr_field mrt_fields[MRT_FIELDS];
extern const char *const mrt_classes[3];

mr_writer_config mrt_writer_config(void);

/* Values of record i; they live in *room. */
typedef struct mrt_room {
    uint8_t image[70000];
    float vector[3];
    char name[32];
    uint8_t blob[64];
    mr_value value[MRT_FIELDS];
} mrt_room;
const mr_value *mrt_values(mrt_room *room, uint64_t i, size_t image_bytes);
void mrt_check_values(const mr_sample *s, uint64_t i, size_t image_bytes);
size_t mrt_image_bytes(uint64_t i); /* a few hundred, different for each */

/* Records [from, to) with source index 2 i. */
void mrt_append(mr_writer *w, uint64_t from, uint64_t to);
void mrt_write_mrec(const char *path, uint64_t count, const mr_writer_config *cfg);

#endif
