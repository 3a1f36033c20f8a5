#include "tests/pipeline/stream/line.h"

#include <time.h>

static uint32_t at_least_one(uint32_t n) { return n ? n : 1; }

static void open_memory(line *l, const line_config *cfg)
{
    mr_error err = MR_ERROR_INIT;
    const mri_slot_layout layout = {.batch = cfg->batch, .sample_bytes = LINE_PIXELS, .fields = &l->fields};
    MRT_OK(mri_slots_init(&l->slots, &layout, at_least_one(cfg->slots), NULL, &err), &err);
    MRT_OK(mri_chunks_init(&l->chunks, at_least_one(cfg->chunks), at_least_one(cfg->chunk_samples),
                           MRI_DIRECT_ALIGN, &err),
           &err);
}

void line_open(line *l, const line_config *cfg)
{
    mr_error err = MR_ERROR_INIT;
    memset(l, 0, sizeof *l);
    mr_loader_defaults(&l->set);
    l->set.workers = at_least_one(cfg->workers);
    l->source = mrt_source(mrt_idx_set("line", cfg->samples, LINE_HIGH, LINE_WIDE));
    const mri_batches_config batches = {.order = MR_ORDER_SEQUENTIAL,
                                        .block = 1,
                                        .batch = cfg->batch,
                                        .parts = at_least_one(cfg->parts),
                                        .sample_count = cfg->samples,
                                        .epochs = at_least_one(cfg->epochs)};
    MRT_OK(mri_batches_plan(&l->batches, &batches, &err), &err);
    mri_halt_init(&l->halt);
    open_memory(l, cfg);
    const mri_ring_config ring = {.set = &l->set,
                                  .batches = &l->batches,
                                  .halt = &l->halt,
                                  .slots = &l->slots,
                                  .chunks = &l->chunks,
                                  .lists = cfg->lists,
                                  .calls = cfg->calls,
                                  .device_slots = cfg->device_slots,
                                  .free_order = cfg->free_order};
    MRT_OK(mri_ring_create(&l->ring, &ring, &err), &err);
}

void line_close(line *l)
{
    mri_ring_destroy(l->ring);
    mri_chunks_fini(&l->chunks, false);
    mri_slots_fini(&l->slots);
    mri_batches_fini(&l->batches);
    mri_halt_fini(&l->halt);
    mr_source_close(l->source);
}

static uint64_t sample_at(const line *l, uint64_t batch, uint32_t place)
{
    uint64_t sample = 0;
    mr_error err = MR_ERROR_INIT;
    MRT_OK(mri_batches_samples(&l->batches, batch, place, 1, &sample, &err), &err);
    return sample;
}

void line_fill(line *l, mri_chunk *c)
{
    for (uint32_t i = c->first; i < c->first + c->count; i++) {
        const uint64_t sample = sample_at(l, c->batch, i);
        for (size_t k = 0; k < LINE_PIXELS; k++)
            c->slot->pixels[i * LINE_PIXELS + k] = mrt_idx_pixel(sample, k);
        c->slot->labels[i] = (int32_t)(sample % 10);
        c->slot->ids[i] = sample;
    }
    mri_slot *whole = mri_ring_return_chunk(l->ring, c);
    if (!whole) return;
    mri_slot_close(&l->slots.layout, whole);
    mri_ring_mark_full(l->ring, whole, &(mri_chunk_times){0});
}

void line_make_batch(line *l)
{
    bool ended, last = false;
    while (!last) {
        mri_chunk *c = mri_ring_claim(l->ring, 0, false, &l->waits, &ended);
        assert_non_null(c);
        last = c->first + c->count == c->slot->count;
        line_fill(l, c);
    }
}

void line_check_pixels(const line *l, uint64_t b, uint32_t first, uint32_t count, const uint8_t *pixels,
                       const int32_t *labels)
{
    for (uint32_t i = 0; i < count; i++) {
        const uint64_t sample = sample_at(l, b, first + i);
        MRT_EQ(labels[i], sample % 10);
        for (size_t k = 0; k < LINE_PIXELS; k++)
            MRT_EQ(pixels[i * LINE_PIXELS + k], mrt_idx_pixel(sample, k));
    }
}

void line_check(const line *l, uint64_t b, const mri_slot *slot)
{
    MRT_EQ(slot->batch, b);
    MRT_EQ(slot->count, mri_batches_count(&l->batches, b));
    line_check_pixels(l, b, 0, slot->count, slot->pixels, slot->labels);
}

void line_await(const uint64_t *counter, uint64_t than)
{
    const struct timespec nap = {.tv_nsec = 1000000};
    for (unsigned ms = 0; ms < 1000 * mrt_seconds(60) && mri_counted(counter) <= than; ms++)
        nanosleep(&nap, NULL);
    MRT_TRUE(mri_counted(counter) > than);
}
