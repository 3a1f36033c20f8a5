/* pipeline/read/resident.c: see resident.h. */
#include "pipeline/read/resident.h"

#include <sys/mman.h>

#include "formats/source/source.h"

#define RUN_BYTES   (UINT64_C(1) << 20) /* large enough that a request costs nothing beside its bytes */
#define SMALL_BYTES (UINT64_C(1) << 16) /* samples above this mean pay for their request anyhow */
#define HUGE_PAGE   ((size_t)2 << 20)

typedef struct resident_file {
    uint64_t start, bytes; /* start: in memory, a multiple of MRI_DIRECT_ALIGN */
    uint64_t first_run;
} resident_file;

struct mri_resident { /* fixed after create, but for the atomics */
    uint8_t *memory;
    resident_file *file;
    uint32_t file_count;
    uint8_t *whole; /* per run; written by who reads it, read after done */
    uint64_t run_count;
    uint64_t *good; /* atomic bits, one per sample */
    uint64_t next;  /* atomic: runs handed out */
    uint64_t back;  /* atomic: runs that came back; release, acquired by who looks at samples */
};

static uint64_t runs_of(uint64_t bytes) { return (bytes + RUN_BYTES - 1) / RUN_BYTES; }

/* Where each file would lie; file may be NULL. False when it does not fit a number. */
static bool lay_out(const mr_source *src, resident_file *file, uint64_t *bytes, uint64_t *runs)
{
    const uint32_t count = mr_source_info_of(src)->file_count;
    *bytes = *runs = 0;
    for (uint32_t i = 0; i < count; i++) {
        mr_source_file f;
        if (mr_source_file_at(src, i, &f) != MR_OK || f.bytes > SIZE_MAX / 4) return false;
        if (file) file[i] = (resident_file){*bytes, f.bytes, *runs};
        if (__builtin_add_overflow(*bytes, mri_align_up(f.bytes, MRI_DIRECT_ALIGN), bytes) ||
            *bytes > SIZE_MAX / 4)
            return false;
        *runs += runs_of(f.bytes);
    }
    return *bytes > 0;
}

uint64_t mri_resident_bytes(const mr_source *src)
{
    const mr_source_info *info = mr_source_info_of(src);
    uint64_t bytes, runs;
    if (mri_source_has_sample_files(src) || info->count == 0 || info->total_bytes / info->count > SMALL_BYTES)
        return UINT64_MAX;
    if (!lay_out(src, NULL, &bytes, &runs)) return UINT64_MAX;
    if (info->total_bytes < bytes / 4) return UINT64_MAX; /* little of its files is wanted */
    return mri_align_up(bytes, HUGE_PAGE) + HUGE_PAGE + runs + info->count / 8 +
           info->file_count * sizeof(resident_file) + sizeof(mri_resident);
}

int mri_resident_create(mri_resident **out, const mr_source *src, mr_error *err)
{
    const mr_source_info *info = mr_source_info_of(src);
    uint64_t bytes = 0;
    *out = NULL;
    mri_resident *r = calloc(1, sizeof *r);
    if (r) r->file = calloc(info->file_count, sizeof *r->file);
    if (r && r->file && lay_out(src, r->file, &bytes, &r->run_count)) {
        r->file_count = info->file_count;
        bytes = mri_align_up(bytes, HUGE_PAGE);
        r->whole = calloc(r->run_count, 1);
        r->good = calloc(info->count / 64 + 1, sizeof *r->good);
        r->memory = mri_alloc_aligned(HUGE_PAGE, (size_t)bytes);
    }
    if (!r || !r->memory || !r->whole || !r->good) {
        mri_resident_destroy(r);
        return mr_error_set(err, MR_ENOMEM, "no memory to keep %llu bytes of samples",
                            (unsigned long long)bytes);
    }
    /* samples are visited in random order: with small pages every one of them would wait for its page table
     * too */
    madvise(r->memory, (size_t)bytes, MADV_HUGEPAGE);
    *out = r;
    return MR_OK;
}

void mri_resident_destroy(mri_resident *r)
{
    if (!r) return;
    free(r->memory);
    free(r->good);
    free(r->whole);
    free(r->file);
    free(r);
}

static const resident_file *file_of_run(const mri_resident *r, uint64_t run)
{
    uint32_t low = 0, high = r->file_count; /* the last one that begins at or before it: the others are empty
                                             */
    while (high - low > 1) {
        const uint32_t middle = low + (high - low) / 2;
        if (r->file[middle].first_run <= run) low = middle;
        else high = middle;
    }
    return &r->file[low];
}

bool mri_resident_next(mri_resident *r, mri_read *out)
{
    const uint64_t run = __atomic_fetch_add(&r->next, 1, __ATOMIC_RELAXED);
    if (run >= r->run_count) return false;
    const resident_file *f = file_of_run(r, run);
    const uint64_t offset = (run - f->first_run) * RUN_BYTES;
    *out = (mri_read){.file = (uint32_t)(f - r->file),
                      .sample = MR_NOWHERE,
                      .offset = offset,
                      .buffer_idx = -1,
                      .bytes = (size_t)mri_min_u64(RUN_BYTES, f->bytes - offset),
                      .buffer = r->memory + f->start + offset};
    return true;
}

bool mri_resident_mark_read(mri_resident *r, const mri_read *run)
{
    const resident_file *f = &r->file[run->file];
    r->whole[f->first_run + run->offset / RUN_BYTES] = run->status == MR_OK;
    return __atomic_add_fetch(&r->back, 1, __ATOMIC_ACQ_REL) == r->run_count;
}

bool mri_resident_done(const mri_resident *r)
{
    return __atomic_load_n(&r->back, __ATOMIC_ACQUIRE) == r->run_count;
}

const uint8_t *mri_resident_at(const mri_resident *r, const mr_extent *e)
{
    const resident_file *f = &r->file[e->file];
    if (e->offset > f->bytes || e->bytes > f->bytes - e->offset) return NULL;
    if (e->bytes > 0)
        for (uint64_t run = e->offset / RUN_BYTES; run <= (e->offset + e->bytes - 1) / RUN_BYTES; run++)
            if (!r->whole[f->first_run + run]) return NULL;
    return r->memory + f->start + e->offset;
}

uint64_t *mri_resident_checked_bits(mri_resident *r) { return r->good; }
