/* tests/pipeline/sets.h: small data sets whose samples can be told apart. */
#ifndef MRT_SETS_H
#define MRT_SETS_H

#include "millrace/pipeline.h"
#include "mrt.h"

/* n gray pictures of h x w as IDX files NAME-images, NAME-labels: pixel k of sample i is (i * 31 + k * 7) & 255, label i % 10.
 * Returns the images file's path. */
const char *mrt_idx_set(const char *name, uint32_t n, uint32_t h, uint32_t w);
/* The pixel above. */
static inline uint8_t mrt_idx_pixel(uint64_t i, size_t k) { return (uint8_t)(i * 31 + k * 7); }

/* An image folder with `classes` classes of per_class JPEGs of about size x size (sizes differ when vary). Returns its path. */
const char *mrt_folder_set(const char *name, uint32_t classes, uint32_t per_class, uint32_t size, bool vary);

mr_source *mrt_source(const char *path);

/* Digest of what a loader with this configuration delivers; keeps nothing. */
mr_digest mrt_digest(const mr_source *src, const mr_loader_config *cfg, uint64_t *batches, uint64_t *samples);

#endif
