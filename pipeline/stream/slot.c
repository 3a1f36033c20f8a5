/* pipeline/stream/slot.c: see slot.h. */
#include "pipeline/stream/slot.h"

#include "millrace/kernels.h"

uint64_t mri_slot_numbers_bytes(const mri_slot_layout *l)
{
    return (l->uses_affine ? 2 * sizeof(float) : 0) + (l->mixes ? sizeof(int32_t) + sizeof(float) : 0);
}

uint64_t mri_slot_bytes(const mri_slot_layout *l)
{
    const uint64_t sample = l->sample_bytes + sizeof(int32_t) + sizeof(uint64_t) + mri_slot_numbers_bytes(l);
    const uint64_t all = mri_plus(mri_plus(mri_times(sample, l->batch), 6 * MR_DEVICE_ALIGN),
                                  mri_fields_bytes(l->fields, l->batch));
    return mri_align_up(mri_min_u64(all, UINT64_MAX / 2), MR_DEVICE_ALIGN);
}

static int take_memory(mri_slots *s, size_t each, mr_error *err)
{
    const size_t bytes = each * s->count;
    if (s->device) return mr_host_alloc(s->device, bytes, &s->memory, err);
    s->memory = mri_alloc_aligned(MR_DEVICE_ALIGN, bytes);
    return s->memory
               ? MR_OK
               : mr_error_set(err, MR_ENOMEM, "no memory for %u batch slots of %zu bytes", s->count, each);
}

static void lay_out(const mri_slot_layout *l, mri_slot *slot, uint8_t *p)
{
    const size_t batch = l->batch;
    slot->pixels = l->sample_bytes ? p : NULL;
    p += mri_align_up(batch * l->sample_bytes, MR_DEVICE_ALIGN);
    slot->labels = (int32_t *)(void *)p;
    p += mri_align_up(batch * sizeof(int32_t), MR_DEVICE_ALIGN);
    slot->ids = (uint64_t *)(void *)p;
    p += mri_align_up(batch * sizeof(uint64_t), MR_DEVICE_ALIGN);
    slot->affine = l->uses_affine ? (float *)(void *)p : NULL;
    p += l->uses_affine ? mri_align_up(batch * 2 * sizeof(float), MR_DEVICE_ALIGN) : 0;
    slot->labels2 = l->mixes ? (int32_t *)(void *)p : NULL;
    p += l->mixes ? mri_align_up(batch * sizeof(int32_t), MR_DEVICE_ALIGN) : 0;
    slot->share2 = l->mixes ? (float *)(void *)p : NULL;
    p += l->mixes ? mri_align_up(batch * sizeof(float), MR_DEVICE_ALIGN) : 0;
    mri_fields_layout(l->fields, p, batch, slot->rows);
}

int mri_slots_init(mri_slots *s, const mri_slot_layout *layout, uint32_t count, mr_device *device,
                   mr_error *err)
{
    const size_t each = (size_t)mri_slot_bytes(layout);
    *s = (mri_slots){.layout = *layout, .count = count, .device = device};
    s->slot = calloc(count, sizeof *s->slot);
    if (!s->slot) return mr_error_set(err, MR_ENOMEM, "no memory for a list of %u batch slots", count);
    const int rc = take_memory(s, each, err);
    if (rc != MR_OK) return rc;
    for (uint32_t i = 0; i < count; i++) lay_out(layout, &s->slot[i], (uint8_t *)s->memory + i * each);
    return MR_OK;
}

void mri_slots_fini(mri_slots *s)
{
    if (s->memory && s->device) mr_host_free(s->device, s->memory);
    else free(s->memory);
    free(s->slot);
}

void mri_slot_blank(const mri_slot_layout *l, mri_slot *slot, uint32_t i)
{
    if (slot->pixels) memset(slot->pixels + i * l->sample_bytes, 0, l->sample_bytes);
    if (slot->affine) slot->affine[2 * (size_t)i] = slot->affine[2 * (size_t)i + 1] = 0;
    slot->labels[i] = -1;
    slot->ids[i] = MR_NOWHERE;
    mri_fields_blank(l->fields, slot->rows, i);
}

void mri_slot_close(const mri_slot_layout *l, mri_slot *slot)
{
    mri_fields_close(l->fields, slot->rows, slot->count);
}

uint32_t mri_slot_labelled_count(const mri_slot *slot)
{
    uint32_t n = 0;
    for (uint32_t i = 0; i < slot->count; i++) n += slot->labels[i] >= 0;
    return n;
}
