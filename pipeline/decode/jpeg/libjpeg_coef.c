/* pipeline/decode/jpeg/libjpeg_coef.c: a JPEG's coefficients read by libjpeg-turbo. See libjpeg_coef.h. */
#include "pipeline/decode/jpeg/libjpeg_private.h"
#include "pipeline/pixels/pixels.h"

/* ---- what libjpeg calls ---- */

/* Called for each row of blocks that is read. */
static void on_progress(j_common_ptr c)
{
    mri_libjpeg *j = c->client_data;
    if (c->is_decompressor) mri_libjpeg_check_scans(&j->errors, &j->d);
}

int mri_libjpeg_report(const mri_libjpeg *j, size_t bytes, mr_error *err)
{
    return mri_libjpeg_error_of(&j->errors, j->open ? j->d.src : NULL, bytes, err);
}

/* ---- life ---- */

int mri_libjpeg_create(mri_libjpeg **out)
{
    *out = NULL;
    mri_libjpeg *j = mri_alloc_aligned(_Alignof(mri_libjpeg), sizeof *j); /* more than malloc() promises */
    if (!j) return MR_ENOMEM;
    memset(j, 0, sizeof *j);
    mri_libjpeg_errors_init(&j->errors);
    j->progress.progress_monitor = on_progress;
    *out = j;
    return MR_OK;
}

void mri_libjpeg_close(mri_libjpeg *j)
{
    if (j->open) jpeg_destroy_decompress(&j->d);
    j->open = false;
    j->coef = NULL;
}

void mri_libjpeg_destroy(mri_libjpeg *j)
{
    if (!j) return;
    mri_libjpeg_close(j);
    free(j);
}

/* ---- reading ---- */

/* libjpeg allocates for as many pixels as the header has: it is looked at before. */
int mri_libjpeg_load(mri_libjpeg *j, const void *data, size_t bytes, uint64_t max_pixels, uint32_t max_scans,
                     bool markers, mr_error *err)
{
    struct jpeg_decompress_struct *d = &j->d;
    mr_image_header header;
    int rc = mr_image_header_parse(data, bytes, &header, err);
    if (rc) return rc;
    if (header.type != MR_TYPE_JPEG)
        return mr_error_set(err, MR_EFORMAT, "expected a JPEG, found another picture");
    rc = mri_check_pixels(header.width, header.height, max_pixels, err);
    if (rc) return rc;
    j->errors.max_scans = max_scans;
    j->frame.orientation = header.orientation;
    d->err = &j->errors.manager;
    d->client_data = j;
    j->open = true; /* set first: after a failure half way its memory must be freed */
    jpeg_create_decompress(d);
    d->progress = &j->progress;
    if (markers) {
        jpeg_save_markers(d, JPEG_COM, 0xffff);
        for (int k = 0; k < 16; k++) jpeg_save_markers(d, JPEG_APP0 + k, 0xffff);
    }
    jpeg_mem_src(d, data, (unsigned long)bytes);
    jpeg_read_header(d, TRUE);
    rc = mri_libjpeg_check_header(d, &header, bytes, err);
    if (rc == MR_OK) rc = mri_libjpeg_check_coefficients(d, max_pixels, err);
    if (rc) return rc;
    j->coef = jpeg_read_coefficients(d);
    for (int k = 0; k < d->num_components; k++) {
        const jpeg_component_info *c = &d->comp_info[k];
        if (!c->quant_table)
            return mr_error_set(err, MR_EFORMAT, "JPEG: no scan brings component %d: incomplete", k);
        if (c->quant_table->quantval[0] == 0)
            return mr_error_set(err, MR_EFORMAT, "JPEG: quantisation table %d is missing or zero",
                                c->quant_tbl_no);
    }
    return MR_OK;
}

static mri_jpeg_colour colour_of(J_COLOR_SPACE space)
{
    switch (space) {
    case JCS_GRAYSCALE: return MRI_JPEG_GRAY;
    case JCS_YCbCr: return MRI_JPEG_YCC;
    case JCS_RGB: return MRI_JPEG_RGB;
    case JCS_CMYK: return MRI_JPEG_CMYK;
    case JCS_YCCK: return MRI_JPEG_YCCK;
    default: return MRI_JPEG_OTHER;
    }
}

static void frame_fill(mri_libjpeg *j)
{
    const struct jpeg_decompress_struct *d = &j->d;
    mri_jpeg_frame *f = &j->frame;
    const bool one = d->num_components == 1;
    *f = (mri_jpeg_frame){.width = d->image_width,
                          .height = d->image_height,
                          .component_count = (uint32_t)d->num_components,
                          .h_max = one ? 1 : (uint32_t)d->max_h_samp_factor,
                          .v_max = one ? 1 : (uint32_t)d->max_v_samp_factor,
                          .colour = colour_of(d->jpeg_color_space),
                          .orientation = f->orientation};
    f->mcus_wide = (f->width + 8 * f->h_max - 1) / (8 * f->h_max);
    f->mcus_high = (f->height + 8 * f->v_max - 1) / (8 * f->v_max);
    for (uint32_t k = 0; k < f->component_count; k++) {
        const jpeg_component_info *from = &d->comp_info[k];
        mri_jpeg_component *c = &f->component[k];
        c->id = (uint8_t)from->component_id;
        c->h = one ? 1 : (uint8_t)from->h_samp_factor;
        c->v = one ? 1 : (uint8_t)from->v_samp_factor;
        c->quant_table = (uint8_t)from->quant_tbl_no;
        c->width = (f->width * c->h + f->h_max - 1) / f->h_max;
        c->height = (f->height * c->v + f->v_max - 1) / f->v_max;
        c->blocks_wide = from->width_in_blocks;
        c->blocks_high = from->height_in_blocks;
        memcpy(c->quant, from->quant_table->quantval, sizeof c->quant);
    }
}

/* Not inlined: no variable of the function that calls setjmp() may change before it returns twice. */
__attribute__((noinline)) static int load(mri_libjpeg *j, const void *data, size_t bytes, uint64_t max_pixels,
                                          uint32_t max_scans, mr_error *err)
{
    const int rc = mri_libjpeg_load(j, data, bytes, max_pixels, max_scans, false, err);
    if (rc == MR_OK) frame_fill(j);
    return rc;
}

int mri_libjpeg_open(mri_libjpeg *j, const void *data, size_t bytes, uint64_t max_pixels, uint32_t max_scans,
                     const mri_jpeg_frame **frame, mr_error *err)
{
    int rc;
    mri_libjpeg_close(j);
    if (setjmp(j->errors.jump)) rc = mri_libjpeg_report(j, bytes, err);
    else rc = load(j, data, bytes, max_pixels, max_scans, err);
    if (rc) mri_libjpeg_close(j);
    else *frame = &j->frame;
    return rc;
}

/* ---- rows ---- */

static uint8_t last_of(const int16_t *coef)
{
    uint8_t last = MRI_JPEG_BLOCK - 1;
    while (last > 0 && coef[mri_jpeg_natural[last]] == 0) last--;
    return last;
}

static void copy_rows(mri_libjpeg *j, uint32_t mcu_row, const mri_block_window *window,
                      const mri_block_rows *out)
{
    const j_common_ptr d = (j_common_ptr)&j->d;
    for (uint32_t k = 0; k < j->frame.component_count; k++) {
        const mri_block_window *w = &window[k];
        const uint32_t v = j->frame.component[k].v;
        if (w->x0 == w->x1) continue;
        const uint32_t first = w->y0 > mcu_row * v ? w->y0 : mcu_row * v,
                       end = w->y1 < (mcu_row + 1) * v ? w->y1 : (mcu_row + 1) * v;
        for (uint32_t y = first; y < end; y++) {
            JBLOCKARRAY row = d->mem->access_virt_barray(d, j->coef[k], y, 1, FALSE);
            const size_t at = (size_t)(y - first) * out[k].pitch, blocks = w->x1 - w->x0;
            memcpy(out[k].coef + at, row[0] + w->x0, blocks * sizeof(JBLOCK));
            for (size_t x = 0; x < blocks; x++) out[k].last[at + x] = last_of(out[k].coef[at + x]);
        }
    }
}

int mri_libjpeg_rows(mri_libjpeg *j, uint32_t mcu_row, const mri_block_window *window,
                     const mri_block_rows *out, mr_error *err)
{
    if (setjmp(j->errors.jump)) return mri_libjpeg_report(j, 0, err);
    copy_rows(j, mcu_row, window, out);
    return MR_OK;
}
