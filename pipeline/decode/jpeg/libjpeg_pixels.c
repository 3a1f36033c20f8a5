/* pipeline/decode/jpeg/libjpeg_pixels.c: JPEG to pixels with libjpeg-turbo: the wanted part only, nothing
 * left of the picture before.
 *
 *   tables reset -> header -> end marker there? -> start -> [crop columns, skip rows] -> rows -> abort
 *
 * Errors jump to the one setjmp in mri_jpeg_decode(), from where jpeg_abort_decompress() frees the picture's
 * memory.
 *
 * The object is kept from picture to picture, and in libjpeg that means its quantisation and Huffman tables
 * are kept as well: a file without tables would be decoded with the previous picture's. So all tables lie in
 * memory of ours and are reset each time: Huffman to the standard ones (what libjpeg does for Motion JPEG
 * frames), quantisation to zero, which is then refused.
 *
 * A part is decoded by jpeg_crop_scanline(), with a margin on both sides because chroma is interpolated
 * across block borders, and jpeg_skip_scanlines(). That gives the whole picture's pixels for the layouts in
 * crop_is_exact() (tests compare them all); anything else is decoded in full. */
#include "pipeline/decode/jpeg/libjpeg_pixels.h"

#include "pipeline/decode/jpeg/libjpeg.h"

struct mri_jpeg {
    struct jpeg_decompress_struct d;
    mri_libjpeg_errors errors;
    struct jpeg_progress_mgr progress;
    unsigned seen; /* multi-scan: components whose first scan has come */
    JQUANT_TBL quant[NUM_QUANT_TBLS];
    JHUFF_TBL dc[NUM_HUFF_TBLS], ac[NUM_HUFF_TBLS];
    JHUFF_TBL standard_dc[2], standard_ac[2];
    mri_buffer cmyk; /* one row */
};

/* ---- what libjpeg calls ---- */

/* Called for each row of blocks while a multi-scan file is read. */
static void on_progress(j_common_ptr c)
{
    mri_jpeg *j = c->client_data;
    const struct jpeg_decompress_struct *d = &j->d;
    mri_libjpeg_check_scans(&j->errors, d);
    if (d->progressive_mode && d->Ss != 0) return;
    for (int k = 0; k < d->comps_in_scan; k++) j->seen |= 1u << d->cur_comp_info[k]->component_index;
}

/* ---- life ---- */

static void copy_table(JHUFF_TBL *to, const JHUFF_TBL *from)
{
    memcpy(to->bits, from->bits, sizeof to->bits);
    memcpy(to->huffval, from->huffval, sizeof to->huffval);
}

/* The standard Huffman tables, from a compressor that holds them by default. */
static int take_standard_tables(mri_jpeg *j)
{
    struct jpeg_compress_struct c = {.err = &j->errors.manager, .client_data = j};
    if (setjmp(j->errors.jump)) {
        jpeg_destroy_compress(&c);
        return MR_ENOMEM;
    }
    jpeg_create_compress(&c);
    c.input_components = 3;
    c.in_color_space = JCS_RGB;
    jpeg_set_defaults(&c);
    for (int k = 0; k < 2; k++) {
        copy_table(&j->standard_dc[k], c.dc_huff_tbl_ptrs[k]);
        copy_table(&j->standard_ac[k], c.ac_huff_tbl_ptrs[k]);
    }
    jpeg_destroy_compress(&c);
    return MR_OK;
}

int mri_jpeg_create(mri_jpeg **out)
{
    *out = NULL;
    mri_jpeg *j = calloc(1, sizeof *j);
    if (!j) return MR_ENOMEM;
    mri_libjpeg_errors_init(&j->errors);
    j->progress.progress_monitor = on_progress;
    if (take_standard_tables(j)) {
        free(j);
        return MR_ENOMEM;
    }
    j->d.err = &j->errors.manager;
    j->d.client_data = j;
    if (setjmp(j->errors.jump)) {
        jpeg_destroy_decompress(&j->d);
        free(j);
        return MR_ENOMEM;
    }
    jpeg_create_decompress(&j->d);
    j->d.progress = &j->progress;
    *out = j;
    return MR_OK;
}

void mri_jpeg_destroy(mri_jpeg *j)
{
    if (!j) return;
    jpeg_destroy_decompress(&j->d);
    mri_buffer_free(&j->cmyk);
    free(j);
}

static void reset_tables(mri_jpeg *j)
{
    memset(j->quant, 0, sizeof j->quant);
    for (int k = 0; k < NUM_QUANT_TBLS; k++) j->d.quant_tbl_ptrs[k] = &j->quant[k];
    for (int k = 0; k < NUM_HUFF_TBLS; k++) {
        memset(&j->dc[k], 0, sizeof j->dc[k]);
        memset(&j->ac[k], 0, sizeof j->ac[k]);
        if (k < 2) {
            copy_table(&j->dc[k], &j->standard_dc[k]);
            copy_table(&j->ac[k], &j->standard_ac[k]);
        }
        j->d.dc_huff_tbl_ptrs[k] = &j->dc[k];
        j->d.ac_huff_tbl_ptrs[k] = &j->ac[k];
    }
}

/* ---- checks ---- */

static int check_started(const mri_jpeg *j, bool multi_scan, mr_error *err)
{
    const struct jpeg_decompress_struct *d = &j->d;
    for (int k = 0; k < d->num_components; k++) {
        const jpeg_component_info *c = &d->comp_info[k];
        if (multi_scan && !(j->seen >> k & 1))
            return mr_error_set(err, MR_EFORMAT, "JPEG: no scan brings component %d: incomplete", k);
        if (!c->quant_table || c->quant_table->quantval[0] == 0)
            return mr_error_set(err, MR_EFORMAT, "JPEG: quantisation table %d is missing or zero",
                                c->quant_tbl_no);
    }
    return MR_OK;
}

/* Layouts for which a cropped decode equals the whole one: gray, or colour with chroma at most halved in each
 * direction. */
static bool crop_is_exact(const struct jpeg_decompress_struct *d, bool multi_scan)
{
    if (multi_scan || d->arith_code) return false;
    if (d->num_components == 1) return true;
    if (d->num_components != 3) return false;
    const jpeg_component_info *c = d->comp_info;
    return c[0].h_samp_factor <= 2 && c[0].v_samp_factor <= 2 && c[1].h_samp_factor == 1 &&
           c[1].v_samp_factor == 1 && c[2].h_samp_factor == 1 && c[2].v_samp_factor == 1;
}

/* ---- rows ---- */

/* Stored values with Adobe's marker are light, not ink; the products multiply light. */
static void cmyk_row(const uint8_t *cmyk, size_t count, bool inverted, uint32_t channels, uint8_t *dst)
{
    const unsigned turn = inverted ? 0 : 255;
    for (size_t k = 0; k < count; k++, cmyk += 4, dst += channels) {
        uint8_t rgb[3];
        for (int c = 0; c < 3; c++) rgb[c] = (uint8_t)(((cmyk[c] ^ turn) * (cmyk[3] ^ turn) + 127) / 255);
        if (channels == 3) memcpy(dst, rgb, 3);
        else dst[0] = mri_gray(rgb[0], rgb[1], rgb[2]);
    }
}

static int read_rows(mri_jpeg *j, uint32_t channels, uint8_t *dst, size_t stride, uint32_t rows)
{
    struct jpeg_decompress_struct *d = &j->d;
    const bool cmyk = d->out_color_space == JCS_CMYK;
    if (cmyk && mri_buffer_need(&j->cmyk, (size_t)d->output_width * 4)) return MR_ENOMEM;
    for (uint32_t done = 0; done < rows;) {
        JSAMPROW row[4];
        uint32_t count = 0;
        if (cmyk) row[count++] = j->cmyk.data;
        else
            while (count < 4 && done + count < rows) {
                row[count] = dst + (size_t)(done + count) * stride;
                count++;
            }
        count = jpeg_read_scanlines(d, row, count);
        if (cmyk)
            cmyk_row(j->cmyk.data, d->output_width, d->saw_Adobe_marker, channels,
                     dst + (size_t)done * stride);
        done += count;
    }
    return MR_OK;
}

static void choose_output(struct jpeg_decompress_struct *d, uint32_t channels)
{
    if (d->jpeg_color_space == JCS_CMYK || d->jpeg_color_space == JCS_YCCK) d->out_color_space = JCS_CMYK;
    else d->out_color_space = channels == 1 ? JCS_GRAYSCALE : JCS_RGB;
    d->dct_method = JDCT_ISLOW; /* the others trade exactness for time that is not there to gain */
    d->do_fancy_upsampling = TRUE;
    d->do_block_smoothing = FALSE; /* would make a part differ from the whole */
}

static int start(mri_jpeg *j, const mri_jpeg_request *q, bool *multi_scan, mr_error *err)
{
    struct jpeg_decompress_struct *d = &j->d;
    reset_tables(j);
    j->errors.max_scans = q->max_scans;
    j->seen = 0;
    jpeg_mem_src(d, q->data, (unsigned long)q->bytes);
    jpeg_read_header(d, TRUE);
    int rc = mri_libjpeg_check_header(d, q->header, q->bytes, err);
    if (rc) return rc;
    choose_output(d, q->channels);
    *multi_scan = jpeg_has_multiple_scans(d);
    if (*multi_scan) rc = mri_libjpeg_check_coefficients(d, q->max_pixels, err);
    if (rc) return rc;
    jpeg_start_decompress(d);
    return check_started(j, *multi_scan, err);
}

/* Not inlined: no variable of the function that calls setjmp() may change before it returns twice. */
__attribute__((noinline)) static int decode(mri_jpeg *j, const mri_jpeg_request *q, mri_buffer *buffer,
                                            mri_view *out, mr_error *err)
{
    struct jpeg_decompress_struct *d = &j->d;
    bool multi_scan = false;
    int rc = start(j, q, &multi_scan, err);
    if (rc) return rc;

    const mri_rect part = q->part;
    JDIMENSION x = 0, y = 0, rows = d->output_height;
    const bool whole = part.width == d->output_width && part.height == d->output_height;
    if (!whole && crop_is_exact(d, multi_scan)) {
        /* Interpolating halved chroma looks one of its columns to each side: two of the picture. */
        const JDIMENSION margin = d->max_h_samp_factor > 1 ? 2 : 0, right = part.x + part.width;
        x = part.x > margin ? part.x - margin : 0;
        JDIMENSION width = (d->output_width - right > margin ? right + margin : d->output_width) - x;
        if (width < d->output_width) jpeg_crop_scanline(d, &x, &width);
        y = part.y;
        if (y > 0) jpeg_skip_scanlines(d, y);
        rows = part.height;
    }
    const size_t stride = (size_t)d->output_width * q->channels;
    size_t bytes;
    if (!mri_mul_size(stride, rows, &bytes) || mri_buffer_need(buffer, bytes) ||
        read_rows(j, q->channels, buffer->data, stride, rows))
        return mr_error_set(err, MR_ENOMEM, "JPEG: no memory for %u rows of %u pixels", rows,
                            d->output_width);
    if (d->output_scanline == d->output_height)
        jpeg_finish_decompress(d); /* looks at what follows the last row */
    *out = (mri_view){.pixels =
                          buffer->data + (size_t)(part.y - y) * stride + (size_t)(part.x - x) * q->channels,
                      .width = part.width,
                      .height = part.height,
                      .channels = q->channels,
                      .stride = stride};
    return MR_OK;
}

int mri_jpeg_decode(mri_jpeg *j, const mri_jpeg_request *request, mri_buffer *buffer, mri_view *out,
                    mr_error *err)
{
    int rc;
    if (setjmp(j->errors.jump)) rc = mri_libjpeg_error_of(&j->errors, j->d.src, request->bytes, err);
    else rc = decode(j, request, buffer, out, err);
    jpeg_abort_decompress(&j->d);
    return rc;
}
