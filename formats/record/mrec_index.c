/* formats/record/mrec_index.c: index pages of a .mrec file, the order records must keep, and the fingerprint
 * of their index.
 *
 *   page    | "MRIX" | crc | number u64 | entries u32 | 0 u32 | 0 u64 | 127 x entry |   4096 bytes
 *   entry   | offset u64 | bytes u64 | label i64 | header crc u32 | 0 u32 |             32 bytes
 *
 * Each page can be checked alone, so an index larger than memory is read page by page. */
#include <xxhash.h>

#include "base/util.h"
#include "formats/record/mrec.h"
#include "formats/source/value.h"

#define PAGE_MAGIC 0x5849524du /* "MRIX" */
enum { PAGE_HEAD = MRI_INDEX_HEAD };

void mri_index_put(uint8_t *page, uint32_t slot, const mri_index_entry *e)
{
    uint8_t *p = page + PAGE_HEAD + (size_t)slot * MRI_INDEX_ENTRY;
    mri_put_le64(p, e->offset);
    mri_put_le64(p + 8, e->bytes);
    mri_put_le64(p + 16, (uint64_t)e->label);
    mri_put_le32(p + 24, e->header_crc);
    mri_put_le32(p + 28, 0);
}

void mri_index_get(const uint8_t *page, uint32_t slot, mri_index_entry *out)
{
    const uint8_t *p = page + PAGE_HEAD + (size_t)slot * MRI_INDEX_ENTRY;
    *out = (mri_index_entry){mri_le64(p), mri_le64(p + 8), (int64_t)mri_le64(p + 16), mri_le32(p + 24)};
}

void mri_index_seal(uint8_t *page, uint64_t number, uint32_t entries)
{
    memset(page, 0, PAGE_HEAD);
    mri_put_le32(page, PAGE_MAGIC);
    mri_put_le64(page + 8, number);
    mri_put_le32(page + 16, entries);
    const size_t used = PAGE_HEAD + (size_t)entries * MRI_INDEX_ENTRY;
    memset(page + used, 0, MRI_MREC_BLOCK - used);
    mri_put_le32(page + 4, mr_crc32c(0, page + 8, MRI_MREC_BLOCK - 8));
}

int mri_index_check(const uint8_t *page, uint64_t number, uint32_t entries, mr_error *err)
{
    if (mri_le32(page) != PAGE_MAGIC)
        return mr_error_set(err, MR_EFORMAT, "index page %llu: no index page here",
                            (unsigned long long)number);
    const uint32_t stored = mri_le32(page + 4), found = mr_crc32c(0, page + 8, MRI_MREC_BLOCK - 8);
    if (stored != found)
        return mr_error_set(err, MR_ECHECKSUM,
                            "index page %llu: the checksum does not match: expected %08x, found %08x",
                            (unsigned long long)number, stored, found);
    const size_t used = PAGE_HEAD + (size_t)entries * MRI_INDEX_ENTRY;
    bool sound = mri_le64(page + 8) == number && mri_le32(page + 16) == entries &&
                 mri_all_zero(page + 20, 12) && mri_all_zero(page + used, MRI_MREC_BLOCK - used);
    for (uint32_t slot = 0; sound && slot < entries; slot++)
        sound = mri_le32(page + PAGE_HEAD + (size_t)slot * MRI_INDEX_ENTRY + 28) == 0;
    if (!sound)
        return mr_error_set(err, MR_EFORMAT,
                            "index page %llu: expected number %llu with %u entries and zeros after them",
                            (unsigned long long)number, (unsigned long long)number, entries);
    return MR_OK;
}

/* ---- order ---- */
void mri_index_walk_init(mri_index_walk *w, const mri_mrec_header *h)
{
    *w = (mri_index_walk){.h = h, .next = h->data_offset, .end = h->data_offset};
}

int mri_index_walk_step(mri_index_walk *w, const mri_index_entry *e, mr_error *err)
{
    const uint64_t limit = w->h->data_offset + w->h->data_bytes;
    if (e->offset != w->next || e->bytes < MRI_RECORD_HEAD || e->bytes > MRI_MAX_SAMPLE_BYTES ||
        w->next > limit || e->bytes > limit - w->next)
        return mr_error_set(
            err, MR_EFORMAT,
            "the index places the record at %llu with %llu bytes; expected at %llu and to end by %llu",
            (unsigned long long)e->offset, (unsigned long long)e->bytes, (unsigned long long)w->next,
            (unsigned long long)limit);
    w->end = e->offset + e->bytes;
    w->next = mri_align_up(w->end, w->h->record_align);
    w->total += e->bytes; /* records do not overlap, so this stays below the file's size */
    w->max = mri_max_u64(w->max, e->bytes);
    if (!w->any || e->label < w->label_min) w->label_min = e->label;
    if (!w->any || e->label > w->label_max) w->label_max = e->label;
    w->any = true;
    return MR_OK;
}

int mri_index_walk_end(const mri_index_walk *w, mr_error *err)
{
    const mri_mrec_header *h = w->h;
    if (mri_mrec_header_has_labels(h) && (w->label_min != h->label_min || w->label_max != h->label_max))
        return mr_error_set(
            err, MR_EFORMAT,
            "the header's labels are not the index's: expected %lld to %lld, found %lld to %lld",
            (long long)h->label_min, (long long)h->label_max, (long long)w->label_min,
            (long long)w->label_max);
    if (w->end == h->data_offset + h->data_bytes && w->total == h->record_bytes_total &&
        w->max == h->record_bytes_max)
        return MR_OK;
    return mr_error_set(
        err, MR_EFORMAT,
        "the header's sums are not the index's: data end %llu and %llu, bytes %llu and %llu, largest "
        "record %llu and %llu",
        (unsigned long long)(h->data_offset + h->data_bytes), (unsigned long long)w->end,
        (unsigned long long)h->record_bytes_total, (unsigned long long)w->total,
        (unsigned long long)h->record_bytes_max, (unsigned long long)w->max);
}

/* ---- fingerprint ---- */
struct mri_fingerprint {
    XXH3_state_t *state;
    uint64_t count;
};

mri_fingerprint *mri_fingerprint_create(uint32_t schema_crc, uint32_t classes_crc)
{
    mri_fingerprint *p = malloc(sizeof *p);
    if (!p) return NULL;
    *p = (mri_fingerprint){.state = XXH3_createState()};
    if (!p->state) {
        free(p);
        return NULL;
    }
    uint8_t start[8];
    mri_put_le32(start, schema_crc);
    mri_put_le32(start + 4, classes_crc);
    XXH3_64bits_reset(p->state);
    XXH3_64bits_update(p->state, start, sizeof start);
    return p;
}

void mri_fingerprint_destroy(mri_fingerprint *p)
{
    if (!p) return;
    XXH3_freeState(p->state);
    free(p);
}

void mri_fingerprint_add(mri_fingerprint *p, const mri_index_entry *e)
{
    uint8_t bytes[20];
    mri_put_le64(bytes, e->bytes);
    mri_put_le64(bytes + 8, (uint64_t)e->label);
    mri_put_le32(bytes + 16, e->header_crc);
    XXH3_64bits_update(p->state, bytes, sizeof bytes);
    p->count++;
}

uint64_t mri_fingerprint_value(const mri_fingerprint *p)
{
    return mri_mix64(XXH3_64bits_digest(p->state) ^ p->count);
}
