/* pipeline/decode/jpeg/libjpeg_write.c: coefficients into baseline JPEG files with libjpeg-turbo. See
 * libjpeg_coef.h. */
#include "base/util.h"
#include "pipeline/decode/jpeg/libjpeg_private.h"

enum { MCU_BLOCKS_MOST = 10 }; /* T.81 B.2.3 */

/* ---- what both writers do ---- */

static void compressor_make(mri_libjpeg *j)
{
    j->c.err = &j->errors.manager;
    j->c.client_data = j;
    jpeg_create_compress(&j->c);
    j->c.dest = &j->sink.manager;
}

/* Sequential Huffman coding, tables of the picture's own; a scan for each component where they do not fit
 * into one. */
static void choose_coding(struct jpeg_compress_struct *c, jpeg_scan_info scans[MRI_JPEG_MAX_COMPONENTS])
{
    int blocks = 0;
    c->optimize_coding = TRUE;
    c->arith_code = FALSE;
    for (int k = 0; k < c->num_components; k++) {
        blocks += c->comp_info[k].h_samp_factor * c->comp_info[k].v_samp_factor;
        scans[k] =
            (jpeg_scan_info){.comps_in_scan = 1, .component_index = {k}, .Ss = 0, .Se = 63, .Ah = 0, .Al = 0};
    }
    if (c->num_components == 1 || blocks <= MCU_BLOCKS_MOST) return;
    c->scan_info = scans;
    c->num_scans = c->num_components;
}

typedef struct job {
    const mri_jpeg_frame *frame; /* write: what of, and where rows come from */
    mri_block_row_source *source;
    void *context;
    const void *data; /* transcode */
    size_t bytes;
    uint64_t max_pixels;
    uint32_t max_scans;
} job;

/* Run body between the setjmp and the cleaning up. */
static int run(mri_libjpeg *j, int (*body)(mri_libjpeg *j, const job *what, mr_error *err), const job *what,
               void **out, size_t *bytes, mr_error *err)
{
    *out = NULL;
    *bytes = 0;
    mri_libjpeg_close(j);
    memset(&j->c, 0, sizeof j->c);
    int rc = mri_libjpeg_sink_open(&j->sink, what->bytes + (64 << 10), err);
    if (rc) return rc;
    if (setjmp(j->errors.jump)) rc = mri_libjpeg_report(j, what->bytes, err);
    else rc = body(j, what, err);
    if (rc == MR_OK) {
        *bytes = j->sink.bytes - j->sink.manager.free_in_buffer;
        void *fitting = realloc(j->sink.data, *bytes);
        *out = fitting ? fitting : j->sink.data;
        j->sink.data = NULL;
    }
    if (j->c.mem) jpeg_destroy_compress(&j->c);
    mri_libjpeg_close(j);
    free(j->sink.data);
    j->sink.data = NULL;
    return rc;
}

/* ---- from a frame ---- */

static void describe(struct jpeg_compress_struct *c, const mri_jpeg_frame *f)
{
    static const J_COLOR_SPACE spaces[] = {
        [MRI_JPEG_GRAY] = JCS_GRAYSCALE, [MRI_JPEG_YCC] = JCS_YCbCr, [MRI_JPEG_RGB] = JCS_RGB};
    c->image_width = f->width;
    c->image_height = f->height;
    c->input_components = (int)f->component_count;
    c->in_color_space = spaces[f->colour];
    jpeg_set_defaults(c);
    jpeg_set_colorspace(c, spaces[f->colour]);
    for (uint32_t k = 0; k < f->component_count; k++) {
        const mri_jpeg_component *from = &f->component[k];
        uint32_t table = 0; /* the first component with the same steps lends its number */
        while (memcmp(f->component[table].quant, from->quant, sizeof from->quant) != 0) table++;
        if (!c->quant_tbl_ptrs[table]) c->quant_tbl_ptrs[table] = jpeg_alloc_quant_table((j_common_ptr)c);
        memcpy(c->quant_tbl_ptrs[table]->quantval, from->quant, sizeof from->quant);
        c->quant_tbl_ptrs[table]->sent_table = FALSE;
        c->comp_info[k].component_id = from->id;
        c->comp_info[k].h_samp_factor = from->h;
        c->comp_info[k].v_samp_factor = from->v;
        c->comp_info[k].quant_tbl_no = (int)table;
    }
}

static void put_orientation(struct jpeg_compress_struct *c, uint32_t orientation)
{
    const uint8_t exif[] = {'E',
                            'x',
                            'i',
                            'f',
                            0,
                            0,
                            'I',
                            'I',
                            42,
                            0,
                            8,
                            0,
                            0,
                            0,
                            /* one entry: */ 1,
                            0,
                            0x12,
                            0x01,
                            3,
                            0,
                            1,
                            0,
                            0,
                            0,
                            (uint8_t)orientation,
                            0,
                            0,
                            0,
                            /* no other directory */ 0,
                            0,
                            0,
                            0};
    if (orientation != 1) jpeg_write_marker(c, JPEG_APP0 + 1, exif, sizeof exif);
}

static uint32_t round_up(uint32_t v, uint32_t to) { return (v + to - 1) / to * to; }

static int write_body(mri_libjpeg *j, const job *w, mr_error *err)
{
    struct jpeg_compress_struct *c = &j->c;
    jvirt_barray_ptr coef[MRI_JPEG_MAX_COMPONENTS];
    jpeg_scan_info scans[MRI_JPEG_MAX_COMPONENTS];
    compressor_make(j);
    describe(c, w->frame);
    choose_coding(c, scans);
    for (uint32_t k = 0; k < w->frame->component_count; k++) {
        const mri_jpeg_component *m = &w->frame->component[k];
        coef[k] =
            c->mem->request_virt_barray((j_common_ptr)c, JPOOL_IMAGE, TRUE, round_up(m->blocks_wide, m->h),
                                        round_up(m->blocks_high, m->v), m->v);
    }
    jpeg_write_coefficients(c, coef);
    put_orientation(c, w->frame->orientation);
    for (uint32_t k = 0; k < w->frame->component_count; k++) {
        for (uint32_t y = 0; y < w->frame->component[k].blocks_high; y++) {
            JBLOCKARRAY row = c->mem->access_virt_barray((j_common_ptr)c, coef[k], y, 1, TRUE);
            const int rc = w->source(w->context, k, y, row[0], err);
            if (rc) return rc;
        }
    }
    jpeg_finish_compress(c);
    return MR_OK;
}

int mri_libjpeg_write(mri_libjpeg *j, const mri_jpeg_frame *frame, mri_block_row_source *source,
                      void *context, void **out, size_t *bytes, mr_error *err)
{
    const bool gray = frame->component_count == 1 && frame->colour == MRI_JPEG_GRAY;
    *out = NULL;
    *bytes = 0;
    if (!gray &&
        !(frame->component_count == 3 && (frame->colour == MRI_JPEG_YCC || frame->colour == MRI_JPEG_RGB)))
        return mr_error_set(err, MR_EUNSUPPORTED, "JPEG: expected gray, YCbCr or RGB coefficients to write");
    const job what = {.frame = frame, .source = source, .context = context};
    return run(j, write_body, &what, out, bytes, err);
}

/* ---- from another JPEG ---- */

/* Segments as they were; those the compressor writes itself (JFIF, Adobe) once. */
static void copy_markers(mri_libjpeg *j)
{
    for (jpeg_saved_marker_ptr m = j->d.marker_list; m; m = m->next) {
        const bool jfif = m->marker == JPEG_APP0 && m->data_length >= 5 && memcmp(m->data, "JFIF", 5) == 0;
        const bool adobe =
            m->marker == JPEG_APP0 + 14 && m->data_length >= 5 && memcmp(m->data, "Adobe", 5) == 0;
        if (!(jfif && j->c.write_JFIF_header) && !(adobe && j->c.write_Adobe_marker))
            jpeg_write_marker(&j->c, m->marker, m->data, m->data_length);
    }
}

static int transcode_body(mri_libjpeg *j, const job *w, mr_error *err)
{
    jpeg_scan_info scans[MRI_JPEG_MAX_COMPONENTS];
    const int rc = mri_libjpeg_load(j, w->data, w->bytes, w->max_pixels, w->max_scans, true, err);
    if (rc) return rc;
    compressor_make(j);
    jpeg_copy_critical_parameters(&j->d, &j->c);
    choose_coding(&j->c, scans);
    jpeg_write_coefficients(&j->c, j->coef);
    copy_markers(j);
    jpeg_finish_compress(&j->c);
    return MR_OK;
}

int mri_libjpeg_transcode(mri_libjpeg *j, const void *data, size_t bytes, uint64_t max_pixels,
                          uint32_t max_scans, void **out, size_t *out_bytes, mr_error *err)
{
    const job what = {.data = data, .bytes = bytes, .max_pixels = max_pixels, .max_scans = max_scans};
    return run(j, transcode_body, &what, out, out_bytes, err);
}
