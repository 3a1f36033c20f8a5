/* tests/pipeline/sets.h: small data sets with distinguishable samples. */
#ifndef MRT_SETS_H
#define MRT_SETS_H

#include "millrace/pipeline.h"
#include "mrt.h"

/* n gray pictures of h x w as IDX files NAME-images, NAME-labels: pixel k of sample i is (i * 31 + k * 7) &
 * 255, label i % 10. Returns the images file's path. */
const char *mrt_idx_set(const char *name, uint32_t n, uint32_t h, uint32_t w);
/* The pixel above. */
static inline uint8_t mrt_idx_pixel(uint64_t i, size_t k) { return (uint8_t)(i * 31 + k * 7); }

/* An image folder with `classes` classes of per_class JPEGs of about size x size (sizes differ when vary).
 * Returns its path. */
const char *mrt_folder_set(const char *name, uint32_t classes, uint32_t per_class, uint32_t size, bool vary);

mr_source *mrt_source(const char *path);

/* NAME.mrec in the making, in place of one that is there; `classes`, at most 3, are called a, b, c. */
mr_writer *mrt_writer(const char *name, const mr_field *fields, uint32_t count, uint32_t classes);
/* Finish it and open the written set. */
mr_source *mrt_written(mr_writer *w, const char *name);

/* Training with seed 11 and two workers; the rest as given, or by default. */
mr_loader_config mrt_training(uint32_t batch, uint64_t epochs, const char *augment,
                              const mr_loader_field *fields, uint32_t count);

/* A loader with this configuration does not open, fails with `code`, and says `text`. */
void mrt_refused(const mr_source *src, const mr_loader_config *cfg, int code, const char *text);

/* Digest of the batches of a loader with this configuration; keeps nothing. */
mr_digest mrt_digest(const mr_source *src, const mr_loader_config *cfg, uint64_t *batches, uint64_t *samples);
static inline bool mrt_same_batches(mr_digest a, mr_digest b) { return a.lo == b.lo && a.hi == b.hi; }

#endif
