/* pipeline/decode/jpeg/libjpeg.c: see libjpeg.h. */
#include "pipeline/decode/jpeg/libjpeg.h"

#include "pipeline/decode/jpeg/libjpeg_coef.h"

/* ---- what libjpeg calls ---- */

static void fail_jump(j_common_ptr c)
{
    mri_libjpeg_errors *e = (mri_libjpeg_errors *)c->err;
    e->code = c->err->msg_code;
    c->err->format_message(c, e->text);
    longjmp(e->jump, 1);
}

static void on_message(j_common_ptr c, int level)
{
    if (level >= 0) return; /* traces */
    const int code = c->err->msg_code;
    if (code == JWRN_ADOBE_XFORM || code == JWRN_JFIF_MAJOR || code == JWRN_BOGUS_ICC ||
        code == JWRN_NOT_SEQUENTIAL)
        return;
    fail_jump(c);
}

static void on_output(j_common_ptr c) { (void)c; }

void mri_libjpeg_errors_init(mri_libjpeg_errors *e)
{
    jpeg_std_error(&e->manager);
    e->manager.error_exit = fail_jump;
    e->manager.emit_message = on_message;
    e->manager.output_message = on_output;
}

/* ---- limits ---- */

void mri_libjpeg_check_scans(mri_libjpeg_errors *e, const struct jpeg_decompress_struct *d)
{
    if ((uint32_t)d->input_scan_number <= e->max_scans) return;
    e->code = 0;
    longjmp(e->jump, 1);
}

uint64_t mri_jpeg_coefficient_bound(uint64_t max_pixels)
{
    /* Four components of two bytes each, of width + 31 and height + 31 samples: sides are filled up to whole
     * MCUs. For thin pictures the borders dominate, up to the borders of JPEG's longest side. */
    const uint64_t borders =
        mri_min_u64((uint64_t)16 << 20, mri_plus(mri_times(8 * 31, max_pixels), 8 * 32 * 32));
    return (max_pixels > UINT64_MAX / 16 ? UINT64_MAX / 2 : 8 * max_pixels) + borders;
}

int mri_libjpeg_check_coefficients(const struct jpeg_decompress_struct *d, uint64_t max_pixels, mr_error *err)
{
    uint64_t bytes = 0;
    for (int k = 0; k < d->num_components; k++) {
        const jpeg_component_info *c = &d->comp_info[k];
        const uint64_t wide = (uint64_t)c->width_in_blocks + (uint64_t)c->h_samp_factor,
                       high = (uint64_t)c->height_in_blocks + (uint64_t)c->v_samp_factor;
        bytes += wide * high * sizeof(JBLOCK);
    }
    const uint64_t bound = mri_jpeg_coefficient_bound(max_pixels);
    if (bytes <= bound) return MR_OK;
    return mr_error_set(
        err, MR_ELIMIT,
        "JPEG: %llu bytes of coefficients are needed; the limit of %llu pixels allows %llu (--max-pixels)",
        (unsigned long long)bytes, (unsigned long long)max_pixels, (unsigned long long)bound);
}

/* ---- checks and messages ---- */

int mri_libjpeg_check_header(const struct jpeg_decompress_struct *d, const mr_image_header *header,
                             size_t bytes, mr_error *err)
{
    if (d->image_width != header->width || d->image_height != header->height ||
        (uint32_t)d->num_components != header->channels)
        return mr_error_set(err, MR_EFORMAT, "JPEG: two frame headers, of %u x %u x %u and %u x %u x %d",
                            header->width, header->height, header->channels, d->image_width, d->image_height,
                            d->num_components);
    if (!mri_jpeg_has_end_marker(d->src->next_input_byte, d->src->bytes_in_buffer))
        return mr_error_set(err, MR_EFORMAT, "JPEG: no end marker (EOI) up to byte %zu: truncated", bytes);
    return MR_OK;
}

/* ---- where files go ---- */

static void sink_start(j_compress_ptr c)
{
    mri_libjpeg_sink *s = (mri_libjpeg_sink *)(void *)c->dest;
    s->manager.next_output_byte = s->data;
    s->manager.free_in_buffer = s->bytes;
}

static boolean sink_full(j_compress_ptr c) /* all of the buffer is used, whatever free_in_buffer says */
{
    mri_libjpeg_sink *s = (mri_libjpeg_sink *)(void *)c->dest;
    size_t more = 0;
    uint8_t *grown = mri_mul_size(s->bytes, 2, &more) ? realloc(s->data, more) : NULL;
    if (!grown) ERREXIT1(c, JERR_OUT_OF_MEMORY, 0);
    s->manager.next_output_byte = grown + s->bytes;
    s->manager.free_in_buffer = more - s->bytes;
    s->data = grown;
    s->bytes = more;
    return TRUE;
}

static void sink_end(j_compress_ptr c) { (void)c; }

int mri_libjpeg_sink_open(mri_libjpeg_sink *s, size_t bytes, mr_error *err)
{
    *s = (mri_libjpeg_sink){.manager = {.init_destination = sink_start,
                                        .empty_output_buffer = sink_full,
                                        .term_destination = sink_end},
                            .data = malloc(bytes),
                            .bytes = bytes};
    return s->data ? MR_OK : mr_error_set(err, MR_ENOMEM, "JPEG: no memory for the file");
}

/* ---- errors ---- */

int mri_libjpeg_error_of(const mri_libjpeg_errors *e, const struct jpeg_source_mgr *src, size_t bytes,
                         mr_error *err)
{
    switch (e->code) {
    case 0:
        return mr_error_set(
            err, MR_ELIMIT,
            "JPEG: more than %u scans; ordinary ones have about 10: write it anew, or raise --max-scans",
            e->max_scans);
    case JERR_IMAGE_TOO_BIG:
        return mr_error_set(err, MR_EUNSUPPORTED,
                            "JPEG: a side of more than %ld pixels: cut it into parts, or convert it to PNG",
                            JPEG_MAX_DIMENSION);
    case JWRN_JPEG_EOF:
        return mr_error_set(err, MR_EFORMAT, "JPEG: ends at byte %zu in the middle of something: truncated",
                            bytes);
    case JERR_OUT_OF_MEMORY: return mr_error_set(err, MR_ENOMEM, "JPEG: %s", e->text);
    case JERR_ARITH_NOTIMPL:
    case JERR_BAD_DCT_COEF:           /* only in writing, */
    case JERR_MISMATCHED_QUANT_TABLE: /* like this: two tables of one number, each in force for one scan */
    case JERR_BAD_PRECISION:
    case JERR_CCIR601_NOTIMPL:
    case JERR_CONVERSION_NOTIMPL:
    case JERR_FRACT_SAMPLE_NOTIMPL:
    case JERR_NOTIMPL:
    case JERR_SOF_UNSUPPORTED:
        return mr_error_set(err, MR_EUNSUPPORTED, "JPEG: %s: convert it to an ordinary JPEG, or to PNG",
                            e->text);
    default: {
        if (bytes == 0) return mr_error_set(err, MR_EFORMAT, "JPEG: %s", e->text);
        const size_t left = src && src->bytes_in_buffer <= bytes ? src->bytes_in_buffer : 0;
        return mr_error_set(err, MR_EFORMAT, "JPEG: %s (near byte %zu of %zu)", e->text, bytes - left, bytes);
    }
    }
}
