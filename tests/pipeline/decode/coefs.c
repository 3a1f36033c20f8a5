/* tests/pipeline/decode/coefs.c: see coefs.h. */
#include "tests/pipeline/decode/coefs.h"

#include <stdio.h>

#include <jpeglib.h>

#include <jerror.h>
#include <setjmp.h>

/* ---- reading ---- */

typedef struct judge {
    struct jpeg_decompress_struct d;
    struct jpeg_error_mgr errors;
    struct jpeg_source_mgr source;
    jmp_buf jump;
    char text[JMSG_LENGTH_MAX];
    const uint8_t *data;
    size_t bytes, at;
} judge;

static void give_up(j_common_ptr c)
{
    judge *j = c->client_data;
    c->err->format_message(c, j->text);
    longjmp(j->jump, 1);
}

static void on_message(j_common_ptr c, int level)
{
    const int code = c->err->msg_code;
    if (level >= 0 || code == JWRN_ADOBE_XFORM || code == JWRN_JFIF_MAJOR || code == JWRN_BOGUS_ICC ||
        code == JWRN_NOT_SEQUENTIAL)
        return;
    give_up(c);
}

static void nothing(j_decompress_ptr d) { (void)d; }

static boolean next_piece(j_decompress_ptr d)
{
    judge *j = d->client_data;
    static const uint8_t end[2] = {0xff, 0xd9};
    if (j->at == j->bytes) {
        WARNMS(d, JWRN_JPEG_EOF);
        d->src->next_input_byte = end;
        d->src->bytes_in_buffer = 2;
        return TRUE;
    }
    const size_t piece = j->bytes - j->at < 61 ? j->bytes - j->at : 61;
    d->src->next_input_byte = j->data + j->at;
    d->src->bytes_in_buffer = piece;
    j->at += piece;
    return TRUE;
}

static void skip(j_decompress_ptr d, long bytes)
{
    while (bytes > (long)d->src->bytes_in_buffer) {
        bytes -= (long)d->src->bytes_in_buffer;
        next_piece(d);
    }
    if (bytes <= 0) return;
    d->src->next_input_byte += bytes;
    d->src->bytes_in_buffer -= (size_t)bytes;
}

static void copy_blocks(judge *j, jvirt_barray_ptr *from, mrt_coefs *out)
{
    for (uint32_t k = 0; k < out->count; k++)
        for (uint32_t y = 0; y < out->high[k]; y++) {
            JBLOCKARRAY row = j->d.mem->access_virt_barray((j_common_ptr)&j->d, from[k], y, 1, FALSE);
            memcpy(out->block[k] + (size_t)y * out->wide[k], row[0], out->wide[k] * sizeof(JBLOCK));
        }
}

__attribute__((noinline)) static void read_all(judge *j, mrt_coefs *out, uint64_t max_blocks)
{
    jpeg_create_decompress(&j->d);
    j->d.src = &j->source;
    jpeg_read_header(&j->d, TRUE);
    uint64_t blocks = 0;
    for (int k = 0; k < j->d.num_components; k++) {
        out->wide[k] = j->d.comp_info[k].width_in_blocks;
        out->high[k] = j->d.comp_info[k].height_in_blocks;
        blocks += (uint64_t)out->wide[k] * out->high[k];
        if (k == 3) break;
    }
    if (j->d.num_components > 4 || blocks > max_blocks) {
        snprintf(out->text, sizeof out->text, "%llu blocks: too many", (unsigned long long)blocks);
        return;
    }
    jvirt_barray_ptr *from = jpeg_read_coefficients(&j->d);
    out->count = (uint32_t)j->d.num_components;
    for (uint32_t k = 0; k < out->count; k++) {
        out->block[k] = malloc((size_t)out->wide[k] * out->high[k] * sizeof(JBLOCK));
        if (!j->d.comp_info[k].quant_table || !j->d.comp_info[k].quant_table->quantval[0]) {
            snprintf(out->text, sizeof out->text, "component %u has no scan or no quantisation", k);
            return;
        }
    }
    copy_blocks(j, from, out);
    out->clean = true;
}

void mrt_coefs_read(mrt_coefs *out, const void *data, size_t bytes, uint64_t max_blocks)
{
    judge j = {.data = data,
               .bytes = bytes,
               .source = {.init_source = nothing,
                          .fill_input_buffer = next_piece,
                          .skip_input_data = skip,
                          .resync_to_restart = jpeg_resync_to_restart,
                          .term_source = nothing}};
    memset(out, 0, sizeof *out);
    j.d.err = jpeg_std_error(&j.errors);
    j.errors.error_exit = give_up;
    j.errors.emit_message = on_message;
    j.d.client_data = &j;
    if (setjmp(j.jump)) {
        out->clean = false;
        snprintf(out->text, sizeof out->text, "%.250s", j.text);
    } else {
        read_all(&j, out, max_blocks);
    }
    jpeg_destroy_decompress(&j.d);
}

void mrt_coefs_free(mrt_coefs *c)
{
    for (int k = 0; k < 4; k++) free(c->block[k]);
}

/* ---- writing ---- */

static uint32_t draw(uint64_t *seed, uint32_t below)
{
    *seed = *seed * 6364136223846793005u + 1442695040888963407u;
    return (uint32_t)((*seed >> 33) * below >> 31);
}

static const jpeg_scan_info separate[] = {
    {1, {0}, 0, 63, 0, 0}, {1, {1}, 0, 63, 0, 0}, {1, {2}, 0, 63, 0, 0}};
static const jpeg_scan_info split[] = {{1, {0}, 0, 63, 0, 0}, {2, {1, 2}, 0, 63, 0, 0}};

static void fill_blocks(struct jpeg_compress_struct *c, jvirt_barray_ptr array, uint32_t wide, uint32_t high,
                        const mrt_coefs_kind *kind, uint64_t *seed)
{
    for (uint32_t y = 0; y < high; y++) {
        JBLOCKARRAY row = c->mem->access_virt_barray((j_common_ptr)c, array, y, 1, TRUE);
        for (uint32_t x = 0; x < wide; x++) {
            memset(row[0][x], 0, sizeof(JBLOCK));
            row[0][x][0] = (JCOEF)((int)draw(seed, 2047) - 1023);
            const uint32_t dense = draw(seed, 2 * (uint32_t)kind->density + 1);
            for (int k = 1; k < 64; k++)
                if (draw(seed, 64) < dense)
                    row[0][x][k] = (JCOEF)((int)draw(seed, 2 * (uint32_t)kind->range + 1) - kind->range);
        }
    }
}

uint8_t *mrt_coefs_write(const mrt_coefs_kind *kind, uint64_t seed, size_t *bytes)
{
    struct jpeg_compress_struct c;
    struct jpeg_error_mgr errors;
    unsigned char *out = NULL;
    unsigned long out_bytes = 0;
    c.err = jpeg_std_error(&errors);
    jpeg_create_compress(&c);
    jpeg_mem_dest(&c, &out, &out_bytes);
    c.image_width = kind->width;
    c.image_height = kind->height;
    c.input_components = kind->components;
    c.in_color_space = kind->components == 1 ? JCS_GRAYSCALE : JCS_RGB;
    jpeg_set_defaults(&c);
    int h_max = 1, v_max = 1;
    for (int k = 0; k < kind->components; k++) {
        c.comp_info[k].h_samp_factor = kind->h[k] ? kind->h[k] : 1;
        c.comp_info[k].v_samp_factor = kind->v[k] ? kind->v[k] : 1;
        if (c.comp_info[k].h_samp_factor > h_max) h_max = c.comp_info[k].h_samp_factor;
        if (c.comp_info[k].v_samp_factor > v_max) v_max = c.comp_info[k].v_samp_factor;
    }
    if (kind->script == 1) c.scan_info = separate, c.num_scans = kind->components;
    if (kind->script == 2) c.scan_info = split, c.num_scans = 2;
    if (kind->progressive) jpeg_simple_progression(&c);
    c.restart_interval = (unsigned)kind->restart;
    c.optimize_coding = kind->optimize;
    jvirt_barray_ptr array[3];
    uint32_t wide[3], high[3];
    for (int k = 0; k < kind->components; k++) {
        const uint32_t h = (uint32_t)c.comp_info[k].h_samp_factor, v = (uint32_t)c.comp_info[k].v_samp_factor;
        const uint32_t mw = (kind->width + 8 * (uint32_t)h_max - 1) / (8 * (uint32_t)h_max),
                       mh = (kind->height + 8 * (uint32_t)v_max - 1) / (8 * (uint32_t)v_max);
        wide[k] = mw * h;
        high[k] = mh * v;
        array[k] = c.mem->request_virt_barray((j_common_ptr)&c, JPOOL_IMAGE, TRUE, wide[k], high[k], v);
    }
    c.mem->realize_virt_arrays((j_common_ptr)&c);
    for (int k = 0; k < kind->components; k++) fill_blocks(&c, array[k], wide[k], high[k], kind, &seed);
    jpeg_write_coefficients(&c, array);
    jpeg_finish_compress(&c);
    jpeg_destroy_compress(&c);
    uint8_t *exact = malloc(out_bytes);
    memcpy(exact, out, out_bytes);
    free(out);
    *bytes = out_bytes;
    return exact;
}

/* ---- raw symbols ---- */

typedef struct sink {
    uint8_t *p;
    size_t at, cap;
    uint32_t bits, count;
} sink;

static void put_byte(sink *s, unsigned byte)
{
    if (s->at == s->cap) s->p = realloc(s->p, s->cap = 2 * s->cap + 1024);
    s->p[s->at++] = (uint8_t)byte;
}

static void put_bits(sink *s, uint32_t bits, unsigned count)
{
    while (count-- > 0) {
        s->bits = s->bits << 1 | (bits >> count & 1);
        if (++s->count < 8) continue;
        put_byte(s, s->bits & 255);
        if ((s->bits & 255) == 255) put_byte(s, 0);
        s->count = 0;
    }
}

static void align(sink *s)
{
    while (s->count) put_bits(s, 1, 1);
}

static void put_all(sink *s, const void *p, size_t bytes)
{
    for (size_t k = 0; k < bytes; k++) put_byte(s, ((const uint8_t *)p)[k]);
}

typedef struct codes {
    uint8_t counts[16], symbols[256];
    uint32_t total;
    uint32_t code[256], length[256]; /* by place */
} codes;

/* Random lengths that leave the last code of 16 bits free: short ones while the room lasts, so that long ones
 * always occur. */
static void draw_codes(codes *c, uint32_t symbols, uint64_t *seed)
{
    memset(c, 0, sizeof *c);
    for (uint32_t k = 0; k < symbols; k++) c->symbols[k] = (uint8_t)k;
    for (uint32_t k = symbols - 1; k > 0; k--) {
        const uint32_t other = draw(seed, k + 1);
        const uint8_t t = c->symbols[k];
        c->symbols[k] = c->symbols[other];
        c->symbols[other] = t;
    }
    uint32_t code = 0, left = symbols;
    for (unsigned l = 1; l <= 16 && left; l++) {
        const uint32_t room = (1u << l) - 1 - code; /* codes of l bits that do not end in all ones */
        uint32_t n = l == 16 ? left : draw(seed, 3) ? draw(seed, room / 2 + 1) : 0;
        while (n > 0 && ((((uint64_t)1 << l) - code - n) << (16 - l)) <= left - n)
            n--; /* keep room for the rest */
        if (n > left) n = left;
        c->counts[l - 1] = (uint8_t)n;
        for (uint32_t k = 0; k < n; k++, code++) {
            c->code[c->total] = code;
            c->length[c->total++] = l;
        }
        left -= n;
        code <<= 1;
    }
}

static void put_symbol(sink *s, const codes *c, uint32_t place, uint64_t *seed)
{
    put_bits(s, c->code[place], c->length[place]);
    const unsigned size = c->symbols[place] & 15;
    if (size) put_bits(s, draw(seed, 1u << size), size);
}

static void put_table(sink *s, const codes *c, unsigned slot)
{
    const uint8_t head[5] = {0xff, 0xc4, (uint8_t)((19 + c->total) >> 8), (uint8_t)(19 + c->total),
                             (uint8_t)slot};
    put_all(s, head, 5);
    put_all(s, c->counts, 16);
    put_all(s, c->symbols, c->total);
}

static void put_block(sink *s, const codes *dc, const codes *ac, uint64_t *seed)
{
    put_symbol(s, dc, draw(seed, dc->total), seed);
    for (int k = 1; k < 64;) {
        uint32_t place = draw(seed, ac->total);
        if (draw(seed, 3) && (ac->symbols[place] >> 4) > 3) continue; /* fewer long runs */
        put_symbol(s, ac, place, seed);
        const unsigned symbol = ac->symbols[place];
        if (symbol == 0xf0) k += 16;
        else if ((symbol & 15) == 0) break;
        else k += (int)(symbol >> 4) + 1;
    }
}

uint8_t *mrt_coefs_wild(uint32_t width, uint32_t height, int restart, uint64_t seed, size_t *bytes)
{
    static const uint8_t start[] = {0xff, 0xd8, 0xff, 0xdb, 0, 67, 0},
                         scan[] = {0xff, 0xda, 0, 8, 1, 7, 0x31, 0, 63, 0}, end[] = {0xff, 0xff, 0xd9};
    const uint8_t frame[] = {
        0xff,           0xc1, 0, 11,   8, (uint8_t)(height >> 8), (uint8_t)height, (uint8_t)(width >> 8),
        (uint8_t)width, 1,    7, 0x43, 0};
    const uint8_t interval[] = {0xff, 0xdd, 0, 4, (uint8_t)(restart >> 8), (uint8_t)restart};
    sink s = {0};
    codes dc, ac;
    draw_codes(&dc, 16, &seed);
    draw_codes(&ac, 256, &seed);
    put_all(&s, start, sizeof start);
    for (int k = 1; k <= 64; k++) put_byte(&s, (unsigned)k);
    put_all(&s, frame, sizeof frame);
    put_table(&s, &dc, 3);
    put_table(&s, &ac, 0x11);
    put_all(&s, interval, sizeof interval);
    put_all(&s, scan, sizeof scan);
    const uint32_t blocks = (width + 7) / 8 * ((height + 7) / 8);
    for (uint32_t k = 0; k < blocks; k++) {
        if (restart && k && k % (uint32_t)restart == 0) {
            align(&s);
            put_byte(&s, 0xff);
            put_byte(&s, 0xd0 + (k / (uint32_t)restart - 1) % 8);
        }
        put_block(&s, &dc, &ac, &seed);
    }
    align(&s);
    put_all(&s, end, sizeof end);
    uint8_t *exact = malloc(s.at);
    memcpy(exact, s.p, s.at);
    free(s.p);
    *bytes = s.at;
    return exact;
}
