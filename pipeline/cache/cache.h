/* pipeline/cache/cache.h: samples kept from the first epoch on, in memory or on disk, so that later epochs
 * need neither their source nor the most expensive part of decoding. Private.
 *
 * Takes samples that were decoded, in the form in which their bytes came. Gives their places, and from these
 * the image and label again, or says that an entry is damaged. Callers: the stages and the loader, which asks
 * for a form and opens it; the cache knows neither, and nothing of how a batch is made.
 *
 *   worker: decoded a sample ─ offer ─► form (as it is, coefficients, ...) ─► entry ─► memory | DIR/NAME.data
 *   plan:   where is sample i? ─ find ─► in memory: a pointer; on disk: a place, which the reader reads
 *   worker: ─ parse ─► image and label, or a damaged entry: drop, read the source, offer anew
 *
 * Nothing is evicted: with a random order over more data than fits, that would only replace one sample by
 * another. When the budget is used up or the disk is full, filling ends and the rest is always read from the
 * source. Batches are bit for bit the same with no cache, a partial or a complete one (I2); samples that
 * failed are never kept (I7).
 *
 *   entry   | "MRCE" | crc of all behind | sample u64 | label i64 | type u32 | dtype u8 planes u8 ndim u8 0 |
 *           | 3 x dim u64 | bytes u64 | entries bytes u64 | data | 0.. | entries |   (72 bytes before data)
 *
 * Any thread, any function but open and close. */
#ifndef MRI_CACHE_H
#define MRI_CACHE_H

#include "pipeline/cache/cache_form.h"

typedef struct mri_cache_config {
    uint64_t count; /* samples */
    uint64_t stamp; /* mri_cache_stamp(): identifies the data set and, as far as possible, its contents */
    const mri_cache_form *form;
    const char *folder;                            /* NULL: memory */
    uint64_t budget_bytes;                         /* of entries; on disk with their index */
    uint64_t value_bytes_most;                     /* of image values that are offered */
    bool waits;                                    /* nothing is kept before mri_cache_begin() */
    void (*note)(void *context, const char *text); /* reports to the user, each once; or NULL */
    void *note_context;
} mri_cache_config;

typedef struct mri_cache mri_cache;

typedef struct mri_cache_place {
    const uint8_t *memory; /* the entry, or NULL: */
    uint64_t offset;       /* it is here in the file */
    uint32_t bytes;
} mri_cache_place;

typedef struct mri_cache_counts {
    uint64_t entries, bytes, dropped;
} mri_cache_counts;

/* A number for this data set that changes with its contents: the fingerprint, and for formats whose
 * fingerprint does not look at pixels the times of last change of their files. Looks at every file once. */
int mri_cache_stamp(const mr_source *src, uint64_t *out, mr_error *err);

/* MR_EFORMAT: the file with the cache's name is not a cache, or is one of other data. A cache that another
 * process fills is used read-only. */
int mri_cache_open(mri_cache **out, const mri_cache_config *cfg, mr_error *err);
void mri_cache_close(mri_cache *c); /* accepts NULL */

/* From here on the cache keeps offered entries. */
void mri_cache_begin(mri_cache *c);

/* Its memory besides the entries; bytes of its largest entry. */
uint64_t mri_cache_index_bytes(uint64_t count);
uint64_t mri_cache_entry_max_bytes(const mri_cache_form *form, uint64_t value_bytes_most);
/* The file of a disk cache, else -1 and NULL. */
int mri_cache_fd(const mri_cache *c);
const char *mri_cache_path(const mri_cache *c);

bool mri_cache_find(const mri_cache *c, uint64_t sample, mri_cache_place *out);
/* Every sample is there. */
bool mri_cache_is_whole(const mri_cache *c);
/* data: the entry's bytes, which image then points into. False: it is damaged, or another's. */
bool mri_cache_parse(uint64_t sample, const uint8_t *data, size_t bytes, bool check, mr_value *image,
                     int32_t *label);
/* The entry found at this place is no good. */
void mri_cache_drop(mri_cache *c, uint64_t sample, const mri_cache_place *place);
/* A sample that was decoded without error; maker: this thread's, of the form (cache_form.h). */
void mri_cache_offer(mri_cache *c, uint64_t sample, const mr_value *image, int32_t label, void *maker);
/* The same in two steps, for a caller that decodes the kept form: the value to be kept, until the maker's
 * next call. False: this sample is not wanted, or cannot be kept. True: mri_cache_keep(), or
 * mri_cache_forget() when it was not decoded without error, must follow. */
bool mri_cache_make(mri_cache *c, uint64_t sample, const mr_value *image, void *maker, mr_value *kept);
void mri_cache_keep(mri_cache *c, uint64_t sample, const mr_value *kept, int32_t label);
void mri_cache_forget(mri_cache *c, uint64_t sample);

mri_cache_counts mri_cache_counts_of(const mri_cache *c);

#endif
