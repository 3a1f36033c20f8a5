/* pipeline/stream/chunk.c: see chunk.h. */
#include "pipeline/stream/chunk.h"

int mri_chunks_init(mri_chunks *c, uint32_t count, uint32_t samples, size_t room, mr_error *err)
{
    const size_t n = count, k = samples;
    *c = (mri_chunks){.count = count, .samples = samples, .room = room};
    c->arena = mri_alloc_aligned(MRI_DIRECT_ALIGN, n * room);
    c->pieces = calloc(n, sizeof *c->pieces);
    c->chunk = calloc(n, sizeof *c->chunk);
    c->reads = calloc(n * k, sizeof *c->reads);
    c->sample_lists = calloc(n * k, sizeof *c->sample_lists);
    if (!c->arena || !c->pieces || !c->chunk || !c->reads || !c->sample_lists)
        return mr_error_set(err, MR_ENOMEM, "no memory for %zu read buffers of %zu bytes", n, room);
    for (uint32_t i = 0; i < count; i++) {
        c->chunk[i] = (mri_chunk){.number = i,
                                  .fixed = c->arena + i * room,
                                  .reads = c->reads + i * k,
                                  .samples = c->sample_lists + i * k};
        c->pieces[i] = c->chunk[i].fixed;
    }
    return MR_OK;
}

void mri_chunks_fini(mri_chunks *c, bool keep_buffers)
{
    for (uint32_t i = 0; c->chunk && i < c->count && !keep_buffers; i++) free(c->chunk[i].grown);
    for (size_t i = 0; c->reads && i < (size_t)c->count * c->samples; i++) mri_read_forget(&c->reads[i]);
    if (!keep_buffers) free(c->arena);
    free(c->pieces);
    free(c->chunk);
    free(c->reads);
    free(c->sample_lists);
}

int mri_chunk_buffer(mri_chunk *c, size_t fixed_room, size_t bytes, uint8_t **out, mr_error *err)
{
    if (bytes <= fixed_room) {
        *out = c->fixed;
        return MR_OK;
    }
    if (bytes > c->grown_bytes) {
        free(c->grown);
        c->grown_bytes = (size_t)mri_align_up(bytes + bytes / 4, MRI_DIRECT_ALIGN);
        c->grown = mri_alloc_aligned(MRI_DIRECT_ALIGN, c->grown_bytes);
        if (!c->grown) {
            const size_t requested = c->grown_bytes;
            c->grown_bytes = 0;
            return mr_error_set(err, MR_ENOMEM, "no memory for a read buffer of %zu bytes", requested);
        }
    }
    *out = c->grown;
    return MR_OK;
}
