/* pipeline/decode/jpeg/transcoder.c: see transcoder.h.
 *
 *   JPEG ──► our entropy decoder ──────────────────┐
 *     └────► where that says MR_EUNSUPPORTED:      ├──► blocks of one row of MCUs at a time ──► payload
 *            libjpeg, all scans in memory ─────────┘    or nothing, to see that they are there */
#include "pipeline/decode/jpeg/transcoder.h"

#include "base/util.h"
#include "formats/image/coef.h"
#include "formats/image/jpeg_entry.h"
#include "pipeline/decode/jpeg/entropy.h"
#include "pipeline/decode/jpeg/libjpeg_coef.h"
#include "pipeline/pixels/pixels.h"

#define KEEP_BYTES ((size_t)16 << 20)

struct mri_transcoder {
    mri_entropy *entropy;
    mri_libjpeg *libjpeg;
    uint8_t *blocks; /* 64-byte aligned */
    size_t blocks_bytes;
    uint8_t *last;
    size_t last_bytes;
    mri_coef_packing packing;
};

int mri_transcoder_create(mri_transcoder **out)
{
    *out = NULL;
    mri_transcoder *w = calloc(1, sizeof *w);
    if (!w) return MR_ENOMEM;
    int rc = mri_entropy_create(&w->entropy);
    if (rc == MR_OK) rc = mri_libjpeg_create(&w->libjpeg);
    if (rc) {
        mri_transcoder_destroy(w);
        return rc;
    }
    *out = w;
    return MR_OK;
}

void mri_transcoder_destroy(mri_transcoder *w)
{
    if (!w) return;
    mri_entropy_destroy(w->entropy);
    mri_libjpeg_destroy(w->libjpeg);
    mri_coef_pack_free(&w->packing);
    free(w->blocks);
    free(w->last);
    free(w);
}

static void give_back(mri_transcoder *w)
{
    mri_libjpeg_close(w->libjpeg);
    if (mri_max_u64(w->blocks_bytes, w->packing.part[1].room + w->packing.part[2].room) <= KEEP_BYTES) return;
    free(w->blocks);
    w->blocks = NULL;
    w->blocks_bytes = 0;
    mri_coef_pack_free(&w->packing);
}

/* ---- room for blocks ---- */

typedef struct blocks {
    mri_block_window window[MRI_JPEG_MAX_COMPONENTS]; /* all of each component */
    int16_t (*base[MRI_JPEG_MAX_COMPONENTS])[MRI_JPEG_BLOCK];
    uint8_t *last;
    bool packs; /* each row becomes part of the payload */
    int fault;  /* the first that was found in that; the rest of the picture is decoded all the same */
    mr_error why;
} blocks;

static int room_for(mri_transcoder *w, size_t block_count, size_t last_count, mr_error *err)
{
    const size_t bytes = block_count * sizeof(int16_t[MRI_JPEG_BLOCK]);
    if (bytes > w->blocks_bytes) {
        free(w->blocks);
        w->blocks = mri_alloc_aligned(64, bytes);
        w->blocks_bytes = w->blocks ? bytes : 0;
    }
    if (last_count > w->last_bytes) {
        free(w->last);
        w->last = malloc(last_count);
        w->last_bytes = w->last ? last_count : 0;
    }
    if (w->blocks && w->last) return MR_OK;
    return mr_error_set(err, MR_ENOMEM, "no memory for %zu blocks of coefficients", block_count);
}

/* One row of MCUs, which each of them is written over. */
static int blocks_make(mri_transcoder *w, const mri_jpeg_frame *f, bool packs, uint64_t max_pixels, blocks *b,
                       mr_error *err)
{
    uint64_t count = 0, last = 0, at[MRI_JPEG_MAX_COMPONENTS] = {0};
    *b = (blocks){.packs = packs, .why = MR_ERROR_INIT};
    for (uint32_t k = 0; k < f->component_count; k++) {
        const mri_jpeg_component *c = &f->component[k];
        b->window[k] = (mri_block_window){0, c->blocks_wide, 0, c->blocks_high};
        at[k] = count;
        count += (uint64_t)c->blocks_wide * c->v;
        last = mri_max_u64(last, (uint64_t)c->blocks_wide * c->v);
    }
    const uint64_t bound = mri_jpeg_coefficient_bound(max_pixels);
    if (count * sizeof(int16_t[MRI_JPEG_BLOCK]) > bound)
        return mr_error_set(
            err, MR_ELIMIT,
            "JPEG: %llu blocks of coefficients are needed; the limit of %llu pixels allows %llu",
            (unsigned long long)count, (unsigned long long)max_pixels,
            (unsigned long long)(bound / sizeof(int16_t[MRI_JPEG_BLOCK])));
    const int rc = room_for(w, (size_t)count, (size_t)last, err);
    if (rc) return rc;
    for (uint32_t k = 0; k < f->component_count; k++)
        b->base[k] = (int16_t(*)[MRI_JPEG_BLOCK])(void *)w->blocks + at[k];
    b->last = w->last;
    if (packs) b->fault = mri_coef_pack_begin(&w->packing, f, &b->why);
    return MR_OK;
}

static void rows_of(const blocks *b, const mri_jpeg_frame *f, mri_block_rows out[MRI_JPEG_MAX_COMPONENTS])
{
    for (uint32_t k = 0; k < f->component_count; k++) /* last is wanted by nobody here */
        out[k] = (mri_block_rows){b->base[k], b->last, f->component[k].blocks_wide};
}

/* ---- payloads, row by row ---- */

/* A row of MCUs that was decoded, while it is in the first caches. */
static void pack_row(mri_transcoder *w, const mri_jpeg_frame *f, blocks *b)
{
    const int16_t(*coef[MRI_JPEG_MAX_COMPONENTS])[MRI_JPEG_BLOCK] = {0};
    if (!b->packs || b->fault) return;
    for (uint32_t k = 0; k < f->component_count; k++) coef[k] = (const int16_t(*)[MRI_JPEG_BLOCK])b->base[k];
    b->fault = mri_coef_pack_row(&w->packing, coef, &b->why);
}

static int pack_end(mri_transcoder *w, const blocks *b, void **out, size_t *bytes, mr_error *err)
{
    if (b->fault && err) *err = b->why;
    if (b->fault) return b->fault;
    if (w->packing.beyond)
        return mr_error_set(
            err, MR_EUNSUPPORTED,
            "coefficients beyond the range of a baseline JPEG: they could not be converted back");
    return mri_coef_pack_end(&w->packing, out, bytes, err);
}

/* ---- a JPEG's blocks ---- */

static int check_limit(const void *jpeg, size_t bytes, const mr_decode_config *cfg, mr_error *err)
{
    mr_image_header h;
    const int rc = mr_image_header_parse(jpeg, bytes, &h, err);
    if (rc) return rc;
    if (h.type != MR_TYPE_JPEG)
        return mr_error_set(err, MR_EFORMAT, "expected a JPEG, found another picture");
    return mri_check_pixels(h.width, h.height, cfg->max_pixels, err);
}

static int by_entropy(mri_transcoder *w, const mr_value *jpeg, bool packs, const mr_decode_config *cfg,
                      const mri_jpeg_frame **f, blocks *b, mr_error *err)
{
    int rc = mri_entropy_open(w->entropy, jpeg->data, jpeg->bytes, NULL, 0, f, err);
    if (rc == MR_OK) rc = blocks_make(w, *f, packs, cfg->max_pixels, b, err);
    if (rc == MR_OK) rc = mri_entropy_window(w->entropy, b->window, err);
    for (uint32_t y = 0; rc == MR_OK && y < (*f)->mcus_high; y++) {
        mri_block_rows out[MRI_JPEG_MAX_COMPONENTS];
        rows_of(b, *f, out);
        rc = mri_entropy_rows(w->entropy, y, out, err);
        if (rc == MR_OK) pack_row(w, *f, b);
    }
    return rc ? rc : mri_entropy_end(w->entropy, err);
}

static int by_libjpeg(mri_transcoder *w, const mr_value *jpeg, const mr_decode_config *cfg,
                      const mri_jpeg_frame **f, blocks *b, mr_error *err)
{
    int rc = mri_libjpeg_open(w->libjpeg, jpeg->data, jpeg->bytes, cfg->max_pixels, cfg->max_scans, f, err);
    if (rc == MR_OK) rc = blocks_make(w, *f, true, cfg->max_pixels, b, err);
    for (uint32_t y = 0; rc == MR_OK && y < (*f)->mcus_high; y++) {
        mri_block_rows out[MRI_JPEG_MAX_COMPONENTS];
        rows_of(b, *f, out);
        rc = mri_libjpeg_rows(w->libjpeg, y, b->window, out, err);
        if (rc == MR_OK) pack_row(w, *f, b);
    }
    return rc;
}

/* ---- sound? ---- */

/* Entry points have one form for each picture and gap, so those made anew are the same or the old ones are
 * wrong. Making them decodes the picture. */
static int check_entries(mri_transcoder *w, const mr_value *value, mr_error *err)
{
    void *made = NULL;
    size_t bytes = 0;
    const uint8_t *p = value->entries;
    const uint32_t gap = value->entries_bytes > 1 && p[1] ? p[1] : MRI_JPEG_ENTRY_GAP;
    int rc = mri_jpeg_entries_build_gap(w->entropy, value->data, value->bytes, gap, &made, &bytes, err);
    if (rc == MR_EUNSUPPORTED)
        rc = mr_error_set(err, MR_EFORMAT, "entry points for a JPEG that cannot have any");
    else if (rc == MR_OK && (bytes != value->entries_bytes || memcmp(made, p, bytes) != 0))
        rc = mr_error_set(err, MR_EFORMAT, "the entry points do not belong to this JPEG: convert again");
    free(made);
    return rc;
}

static int check_jpeg(mri_transcoder *w, const mr_value *value, const mr_decode_config *cfg, mr_error *err)
{
    const mri_jpeg_frame *f;
    blocks b;
    const int rc = check_limit(value->data, value->bytes, cfg, err);
    if (rc) return rc;
    return value->entries ? check_entries(w, value, err) : by_entropy(w, value, false, cfg, &f, &b, err);
}

static int open_payload(mri_coef *c, const void *payload, size_t bytes, const mr_decode_config *cfg,
                        mr_error *err)
{
    const int rc = mri_coef_open(c, payload, bytes, err);
    return rc ? rc : mri_check_pixels(c->frame.width, c->frame.height, cfg->max_pixels, err);
}

static int check_coef(mri_transcoder *w, const mr_value *value, const mr_decode_config *cfg, mr_error *err)
{
    mri_coef c;
    blocks b;
    int rc = open_payload(&c, value->data, value->bytes, cfg, err);
    if (rc == MR_OK) rc = blocks_make(w, &c.frame, false, cfg->max_pixels, &b, err);
    for (uint32_t y = 0; rc == MR_OK && y < c.frame.mcus_high; y++) {
        mri_block_rows out[MRI_JPEG_MAX_COMPONENTS];
        rows_of(&b, &c.frame, out);
        rc = mri_coef_rows(&c, y, b.window, out, err);
    }
    return rc;
}

int mri_transcoder_check(mri_transcoder *w, const mr_value *value, const mr_decode_config *cfg, mr_error *err)
{
    const int rc =
        value->type == MR_TYPE_COEF ? check_coef(w, value, cfg, err) : check_jpeg(w, value, cfg, err);
    give_back(w);
    return rc;
}

/* ---- payloads ---- */

int mri_transcoder_pack(mri_transcoder *w, const void *jpeg, size_t bytes, const mr_decode_config *cfg,
                        void **out, size_t *out_bytes, mr_error *err)
{
    const mr_value value = {.type = MR_TYPE_JPEG, .data = jpeg, .bytes = bytes};
    const mri_jpeg_frame *f;
    blocks b;
    *out = NULL;
    *out_bytes = 0;
    int rc = check_limit(jpeg, bytes, cfg, err);
    if (rc == MR_OK) rc = by_entropy(w, &value, true, cfg, &f, &b, err);
    if (rc == MR_EUNSUPPORTED) rc = by_libjpeg(w, &value, cfg, &f, &b, err);
    if (rc == MR_OK) rc = pack_end(w, &b, out, out_bytes, err);
    give_back(w);
    return rc;
}

typedef struct unpacking {
    const mri_coef *c;
    int16_t (*row)[MRI_JPEG_BLOCK]; /* aligned, as libjpeg's are not */
    uint8_t *last;
} unpacking;

static int unpacked_row(void *context, uint32_t component, uint32_t y, int16_t (*row)[MRI_JPEG_BLOCK],
                        mr_error *err)
{
    const unpacking *u = context;
    const mri_jpeg_component *m = &u->c->frame.component[component];
    mri_block_window window[MRI_JPEG_MAX_COMPONENTS] = {{0}};
    mri_block_rows out[MRI_JPEG_MAX_COMPONENTS] = {{0}};
    window[component] = (mri_block_window){0, m->blocks_wide, y, y + 1};
    out[component] = (mri_block_rows){u->row, u->last, m->blocks_wide};
    const int rc = mri_coef_rows(u->c, y / m->v, window, out, err);
    if (rc == MR_OK) memcpy(row, u->row, m->blocks_wide * sizeof *row);
    return rc;
}

int mri_transcoder_unpack(mri_transcoder *w, const void *payload, size_t bytes, const mr_decode_config *cfg,
                          void **out, size_t *out_bytes, mr_error *err)
{
    mri_coef c;
    blocks b;
    *out = NULL;
    *out_bytes = 0;
    int rc = open_payload(&c, payload, bytes, cfg, err);
    if (rc == MR_OK) rc = blocks_make(w, &c.frame, false, cfg->max_pixels, &b, err);
    if (rc == MR_OK) {
        unpacking u = {&c, b.base[0], b.last}; /* the rows of all components follow it: there is room for one
                                                  row of any */
        rc = mri_libjpeg_write(w->libjpeg, &c.frame, unpacked_row, &u, out, out_bytes, err);
    }
    give_back(w);
    return rc;
}

/* ---- JPEGs that stay JPEGs ---- */

int mri_transcoder_entries(mri_transcoder *w, const void *jpeg, size_t bytes, const mr_decode_config *cfg,
                           void **out, size_t *out_bytes, mr_error *err)
{
    *out = NULL;
    *out_bytes = 0;
    const int rc = check_limit(jpeg, bytes, cfg, err);
    return rc ? rc : mri_jpeg_entries_build(w->entropy, jpeg, bytes, out, out_bytes, err);
}

int mri_transcoder_make_sequential(mri_transcoder *w, const void *jpeg, size_t bytes,
                                   const mr_decode_config *cfg, void **out, size_t *out_bytes, mr_error *err)
{
    return mri_libjpeg_transcode(w->libjpeg, jpeg, bytes, cfg->max_pixels, cfg->max_scans, out, out_bytes,
                                 err);
}
