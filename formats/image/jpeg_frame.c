/* formats/image/jpeg_frame.c: the marker walk of a JPEG.
 *
 *   FF D8 | segments: DQT DHT DRI APPn COM SOF | SOS, entropy-coded bytes | more tables, more scans | FF D9
 *
 * A segment is FF, any number of further FF, a code, and for most a length and as many bytes. Tables hold
 * from where they stand; a component's quantisation table is the one in force when its first scan begins.
 * Bytes between segments are damage. What libjpeg-turbo takes only by a rule of its own (lengths below 2,
 * components out of order, ...) is left to it. */
#include "formats/image/jpeg_frame.h"
#include "formats/image/exif.h"

#define MAX_SIDE       65500 /* libjpeg's */
#define MAX_MCU_BLOCKS 10

const uint8_t mri_jpeg_natural[MRI_JPEG_BLOCK] = {
    0,  1,  8,  16, 9,  2,  3,  10, 17, 24, 32, 25, 18, 11, 4,  5,  12, 19, 26, 33, 40, 48,
    41, 34, 27, 20, 13, 6,  7,  14, 21, 28, 35, 42, 49, 56, 57, 50, 43, 36, 29, 22, 15, 23,
    30, 37, 44, 51, 58, 59, 52, 45, 38, 31, 39, 46, 53, 60, 61, 54, 47, 55, 62, 63,
};

enum marker {
    TEM = 0x01,
    SOF0 = 0xc0,
    SOF1 = 0xc1,
    SOF2 = 0xc2,
    DHT = 0xc4,
    RST0 = 0xd0,
    RST7 = 0xd7,
    SOI = 0xd8,
    EOI = 0xd9,
    SOS = 0xda,
    DQT = 0xdb,
    DRI = 0xdd,
    APP0 = 0xe0,
    APP1 = 0xe1,
    APP14 = 0xee,
    APP15 = 0xef,
    COM = 0xfe,
};

typedef mri_jpeg_walk walk;

/* ---- segments ---- */

static int cut_short(const walk *w, mr_error *err)
{
    return mr_error_set(err, MR_EFORMAT, "JPEG: ends at byte %zu between its markers: truncated", w->bytes);
}

static int next_marker(walk *w, mr_error *err)
{
    if (w->at >= w->bytes) return cut_short(w, err);
    size_t at = w->at;
    while (at < w->bytes && w->data[at] == 0xff) at++;
    if (at == w->bytes) return cut_short(w, err);
    if (at == w->at)
        return mr_error_set(err, MR_EFORMAT, "JPEG: expected a marker (FF) at byte %zu, found %02X: damaged",
                            w->at, w->data[w->at]);
    if (w->data[at] == 0)
        return mr_error_set(err, MR_EFORMAT,
                            "JPEG: expected a marker at byte %zu, found FF 00, which is data: damaged",
                            w->at);
    w->marker = w->data[at];
    w->at = at + 1;
    return MR_OK;
}

static bool stands_alone(unsigned marker) { return marker == TEM || (marker >= RST0 && marker <= EOI); }

static int take_body(walk *w, mr_error *err)
{
    if (w->bytes - w->at < 2) return cut_short(w, err);
    const size_t length = mri_be16(w->data + w->at);
    if (length < 2)
        return mr_error_set(err, MR_EUNSUPPORTED,
                            "JPEG: segment FF%02X at byte %zu has length %zu; expected 2 or more", w->marker,
                            w->at, length);
    if (length > w->bytes - w->at) return cut_short(w, err);
    w->body = w->data + w->at + 2;
    w->body_bytes = length - 2;
    w->at += length;
    return MR_OK;
}

static int bad_segment(const walk *w, const char *name, mr_error *err)
{
    return mr_error_set(err, MR_EFORMAT,
                        "JPEG: the %s segment that ends at byte %zu does not add up: damaged", name, w->at);
}

/* ---- tables ---- */

static int take_quant(walk *w, mr_error *err)
{
    for (size_t at = 0; at < w->body_bytes;) {
        const unsigned head = w->body[at++], slot = head & 15;
        const size_t size = head >> 4 ? 2 * MRI_JPEG_BLOCK : MRI_JPEG_BLOCK;
        if (slot > 3 || size > w->body_bytes - at) return bad_segment(w, "DQT", err);
        w->quant[slot] = w->body + at;
        w->quant_wide[slot] = head >> 4;
        at += size;
    }
    return MR_OK;
}

static int take_huffman(walk *w, mr_error *err)
{
    size_t at = 0;
    while (w->body_bytes - at > 16) {
        const unsigned head = w->body[at++], slot = head & 0xef;
        size_t count = 0;
        for (int k = 0; k < 16; k++) count += w->body[at + (size_t)k];
        if (slot > 3 || count > 256 || count > w->body_bytes - at - 16) return bad_segment(w, "DHT", err);
        if (head & 0x10) w->ac[slot] = w->body + at;
        else w->dc[slot] = w->body + at;
        at += 16 + count;
    }
    return at == w->body_bytes ? MR_OK : bad_segment(w, "DHT", err);
}

/* ---- frame ---- */

static uint32_t ceil_div(uint32_t a, uint32_t b) { return (a + b - 1) / b; }

static int take_components(const walk *w, mri_jpeg_frame *f, mr_error *err)
{
    f->h_max = f->v_max = 1;
    for (uint32_t k = 0; k < f->component_count; k++) {
        mri_jpeg_component *c = &f->component[k];
        const uint8_t *p = w->body + 6 + 3 * (size_t)k;
        c->id = p[0];
        c->h = p[1] >> 4;
        c->v = p[1] & 15;
        c->quant_table = p[2];
        if (c->h < 1 || c->h > MRI_JPEG_MAX_SAMPLING || c->v < 1 || c->v > MRI_JPEG_MAX_SAMPLING)
            return mr_error_set(err, MR_EFORMAT,
                                "JPEG: component %u has sampling factors %u x %u; expected 1 to 4", k, c->h,
                                c->v);
        for (uint32_t other = 0; other < k; other++)
            if (f->component[other].id == c->id)
                return mr_error_set(err, MR_EUNSUPPORTED, "JPEG: components %u and %u have the same name %u",
                                    other, k, c->id);
        if (f->component_count == 1) c->h = c->v = 1;
        f->h_max = c->h > f->h_max ? c->h : f->h_max;
        f->v_max = c->v > f->v_max ? c->v : f->v_max;
    }
    return MR_OK;
}

static void measure(mri_jpeg_frame *f)
{
    f->mcus_wide = ceil_div(f->width, 8 * f->h_max);
    f->mcus_high = ceil_div(f->height, 8 * f->v_max);
    for (uint32_t k = 0; k < f->component_count; k++) {
        mri_jpeg_component *c = &f->component[k];
        c->width = ceil_div(f->width * c->h, f->h_max);
        c->height = ceil_div(f->height * c->v, f->v_max);
        c->blocks_wide = ceil_div(f->width * c->h, 8 * f->h_max);
        c->blocks_high = ceil_div(f->height * c->v, 8 * f->v_max);
    }
}

static int take_frame(walk *w, mri_jpeg_frame *f, mr_error *err)
{
    if (w->framed)
        return mr_error_set(err, MR_EFORMAT, "JPEG: a second frame header (SOF) before byte %zu", w->at);
    if (w->body_bytes < 6 || w->body_bytes != 6 + 3 * (size_t)w->body[5]) return bad_segment(w, "SOF", err);
    f->height = mri_be16(w->body + 1);
    f->width = mri_be16(w->body + 3);
    f->component_count = w->body[5];
    if (w->body[0] != 8)
        return mr_error_set(err, MR_EUNSUPPORTED, "JPEG: %u bits per component; expected 8", w->body[0]);
    if (f->component_count != 1 && f->component_count != 3)
        return mr_error_set(err, MR_EUNSUPPORTED, "JPEG: %u components; expected 1 or 3", f->component_count);
    if (f->width == 0 || f->height == 0 || f->width > MAX_SIDE || f->height > MAX_SIDE)
        return mr_error_set(err, MR_EUNSUPPORTED, "JPEG: %u x %u; expected 1 to %u each", f->width, f->height,
                            MAX_SIDE);
    const int rc = take_components(w, f, err);
    if (rc) return rc;
    measure(f);
    w->framed = true;
    return MR_OK;
}

static mri_jpeg_colour colour_of(const walk *w, const mri_jpeg_frame *f)
{
    const mri_jpeg_component *c = f->component;
    if (f->component_count == 1) return MRI_JPEG_GRAY;
    if (w->jfif) return MRI_JPEG_YCC;
    if (w->adobe) return w->adobe_transform == 0 ? MRI_JPEG_RGB : MRI_JPEG_YCC;
    return c[0].id == 'R' && c[1].id == 'G' && c[2].id == 'B' ? MRI_JPEG_RGB : MRI_JPEG_YCC;
}

static void take_app(walk *w, mri_jpeg_frame *f)
{
    if (w->marker == APP0) {
        if (w->body_bytes >= 14 && memcmp(w->body, "JFIF", 5) == 0) w->jfif = true;
    } else if (w->marker == APP14) {
        if (w->body_bytes < 12 || memcmp(w->body, "Adobe", 5) != 0) return;
        w->adobe = true;
        w->adobe_transform = w->body[11];
    } else if (w->marker == APP1 && !w->exif) {
        const uint32_t orientation = mri_exif_app1(w->body, w->body_bytes);
        w->exif = orientation != 0;
        if (orientation) f->orientation = orientation;
    }
}

/* ---- scans ---- */

static int latch_quant(const walk *w, mri_jpeg_component *c, mr_error *err)
{
    const unsigned slot = c->quant_table;
    const uint8_t *q = slot < 4 ? w->quant[slot] : NULL;
    for (int k = 0; q && k < MRI_JPEG_BLOCK; k++)
        c->quant[mri_jpeg_natural[k]] = w->quant_wide[slot] ? mri_be16(q + 2 * k) : q[k];
    if (q && c->quant[0]) return MR_OK;
    return mr_error_set(err, MR_EFORMAT, "JPEG: quantisation table %u is missing or zero", slot);
}

static int take_scan_component(walk *w, const uint8_t *p, uint32_t from, mri_jpeg_frame *f,
                               mri_jpeg_scan_component *out, mr_error *err)
{
    uint32_t k = from;
    while (k < f->component_count && f->component[k].id != p[0]) k++;
    if (k == f->component_count)
        return mr_error_set(err, MR_EUNSUPPORTED,
                            "JPEG: a scan (SOS) before byte %zu names component %u out of place", w->at,
                            p[0]);
    if (w->seen >> k & 1)
        return mr_error_set(err, MR_EUNSUPPORTED,
                            "JPEG: component %u comes again before byte %zu; expected one scan for each", k,
                            w->at);
    const unsigned dc = p[1] >> 4, ac = p[1] & 15;
    *out = (mri_jpeg_scan_component){
        .component = k, .dc = dc < 4 ? w->dc[dc] : NULL, .ac = ac < 4 ? w->ac[ac] : NULL};
    if (!out->dc || !out->ac)
        return mr_error_set(
            err, MR_EUNSUPPORTED,
            "JPEG: the scan (SOS) before byte %zu uses Huffman tables %u, %u that are not there", w->at, dc,
            ac);
    w->seen |= 1u << k;
    return latch_quant(w, &f->component[k], err);
}

static int take_scan(walk *w, mri_jpeg_layout *out, mr_error *err)
{
    mri_jpeg_frame *f = &out->frame;
    if (!w->framed)
        return mr_error_set(err, MR_EFORMAT,
                            "JPEG: a scan (SOS) before byte %zu, and no frame header (SOF) yet", w->at);
    const size_t count = w->body_bytes > 0 ? w->body[0] : 0;
    if (count < 1 || count > 4 || w->body_bytes != 4 + 2 * count) return bad_segment(w, "SOS", err);
    mri_jpeg_scan *s = &out->scan[out->scan_count++]; /* each brings a new component, so there is room */
    *s = (mri_jpeg_scan){.component_count = (uint32_t)count,
                         .restart_interval = w->restart_interval,
                         .begin = w->at,
                         .end = w->bytes};
    uint32_t blocks = 0;
    for (uint32_t k = 0; k < count; k++) {
        const uint32_t from = k ? s->component[k - 1].component + 1 : 0;
        const int rc = take_scan_component(w, w->body + 1 + 2 * (size_t)k, from, f, &s->component[k], err);
        if (rc) return rc;
        const mri_jpeg_component *c = &f->component[s->component[k].component];
        blocks += (uint32_t)c->h * c->v;
    }
    if (count > 1 && blocks > MAX_MCU_BLOCKS)
        return mr_error_set(err, MR_EFORMAT, "JPEG: %u blocks in an MCU; expected %u at most", blocks,
                            MAX_MCU_BLOCKS);
    return MR_OK;
}

/* Position of the first marker that does not belong to entropy-coded data, or bytes. */
static size_t scan_end(const uint8_t *data, size_t bytes, size_t at)
{
    while (at < bytes) {
        const uint8_t *mark = memchr(data + at, 0xff, bytes - at);
        if (!mark) break;
        at = (size_t)(mark - data);
        if (bytes - at < 2) break;
        const unsigned code = mark[1];
        if (code == 0 || (code >= RST0 && code <= RST7)) at += 2;
        else if (code == 0xff) at++;
        else return at;
    }
    return bytes;
}

/* In a truncated picture no end marker follows its scan's header; entropy-coded data cannot contain one. */
bool mri_jpeg_has_end_marker(const uint8_t *from, size_t bytes)
{
    for (const uint8_t *end = from + bytes; end - from >= 2;) {
        const uint8_t *mark = memrchr(from, EOI, (size_t)(end - from));
        if (!mark || mark == from) return false;
        if (mark[-1] == 0xff) return true;
        end = mark;
    }
    return false;
}

/* ---- the walk ---- */

static int take_segment(walk *w, mri_jpeg_frame *f, mr_error *err)
{
    const bool expected = w->progressive ? w->marker == SOF2 : w->marker == SOF0 || w->marker == SOF1;
    if (expected) return take_frame(w, f, err);
    switch (w->marker) {
    case DQT: return take_quant(w, err);
    case DHT: return take_huffman(w, err);
    case DRI:
        if (w->body_bytes != 2) return bad_segment(w, "DRI", err);
        w->restart_interval = mri_be16(w->body);
        return MR_OK;
    case COM: return MR_OK;
    default: break;
    }
    if (w->marker >= APP0 && w->marker <= APP15) {
        if (!w->scanned) take_app(w, f);
        return MR_OK;
    }
    if (w->marker >= SOF0 && w->marker <= 0xcf)
        return mr_error_set(
            err, MR_EUNSUPPORTED, "JPEG: process of marker FF%02X; expected %s with Huffman codes (%s)",
            w->marker, w->progressive ? "progressive" : "sequential", w->progressive ? "SOF2" : "SOF0, SOF1");
    return mr_error_set(err, MR_EUNSUPPORTED, "JPEG: marker FF%02X before byte %zu", w->marker, w->at);
}

static int finish(const walk *w, const mri_jpeg_frame *f, mr_error *err)
{
    if (w->seen != (1u << f->component_count) - 1)
        return mr_error_set(err, MR_EFORMAT,
                            "JPEG: ends (EOI) at byte %zu without scans for all components: incomplete",
                            w->at);
    return MR_OK;
}

static int begin(walk *w, mri_jpeg_frame *f, const void *data, size_t bytes, mr_error *err)
{
    *w = (walk){.data = data, .bytes = bytes, .at = 2};
    memset(f, 0, sizeof *f);
    f->orientation = 1;
    if (bytes >= 2 && w->data[0] == 0xff && w->data[1] == SOI) return MR_OK;
    return mr_error_set(err, MR_EFORMAT, "JPEG: expected the start marker FF D8");
}

/* To the segment of the next scan, or to the end of a picture whose components all had one. */
static int to_scan(walk *w, mri_jpeg_frame *f, bool *end, mr_error *err)
{
    *end = false;
    for (;;) {
        int rc = next_marker(w, err);
        if (rc) return rc;
        if (stands_alone(w->marker)) {
            if (w->marker == SOI)
                return mr_error_set(err, MR_EFORMAT, "JPEG: a second start marker (SOI) before byte %zu",
                                    w->at);
            if (w->marker != EOI) continue;
            if (!w->framed)
                return mr_error_set(err, MR_EFORMAT,
                                    "JPEG: the end (EOI) at byte %zu before any frame header (SOF)",
                                    w->at - 2);
            *end = true;
            return finish(w, f, err);
        }
        rc = take_body(w, err);
        if (rc == MR_OK && w->marker != SOS) rc = take_segment(w, f, err);
        if (rc) return rc;
        if (w->marker != SOS) continue;
        if (!w->scanned) f->colour = colour_of(w, f);
        w->scanned = true;
        return MR_OK;
    }
}

int mri_jpeg_layout_parse(mri_jpeg_layout *out, const void *data, size_t bytes, mr_error *err)
{
    walk w;
    memset(out, 0, sizeof *out);
    int rc = begin(&w, &out->frame, data, bytes, err);
    while (rc == MR_OK) {
        bool end = false;
        rc = to_scan(&w, &out->frame, &end, err);
        if (rc || end) return rc;
        rc = take_scan(&w, out, err);
        if (rc) return rc;
        mri_jpeg_scan *s = &out->scan[out->scan_count - 1];
        if (s->component_count == out->frame.component_count) {
            if (mri_jpeg_has_end_marker(w.data + w.at, bytes - w.at)) return MR_OK;
            return mr_error_set(err, MR_EFORMAT, "JPEG: no end marker (EOI) up to byte %zu: truncated",
                                bytes);
        }
        s->end = w.at = scan_end(w.data, bytes, w.at);
    }
    return rc;
}

/* ---- progressive ---- */

static int odd_pass(const walk *w, mr_error *err)
{
    return mr_error_set(err, MR_EUNSUPPORTED,
                        "JPEG: a scan (SOS) before byte %zu that is out of the ordinary", w->at);
}

static int take_pass_component(walk *w, const uint8_t *p, uint32_t from, mri_jpeg_frame *f,
                               mri_jpeg_scan_component *out, mr_error *err)
{
    uint32_t k = from;
    while (k < f->component_count && f->component[k].id != p[0]) k++;
    const unsigned dc = p[1] >> 4, ac = p[1] & 15;
    if (k == f->component_count || dc > 3 || ac > 3) return odd_pass(w, err);
    *out = (mri_jpeg_scan_component){.component = k, .dc = w->dc[dc], .ac = w->ac[ac]};
    if (w->seen >> k & 1) return MR_OK;
    w->seen |= 1u << k;
    return latch_quant(w, &f->component[k], err);
}

static int take_pass(walk *w, mri_jpeg_frame *f, mri_jpeg_pass *out, mr_error *err)
{
    const size_t count = w->framed && w->body_bytes > 0 ? w->body[0] : 0;
    if (count < 1 || count > f->component_count || w->body_bytes != 4 + 2 * count) return odd_pass(w, err);
    const uint8_t *p = w->body + 1 + 2 * count;
    *out = (mri_jpeg_pass){.component_count = (uint32_t)count,
                           .first = p[0],
                           .last = p[1],
                           .high = p[2] >> 4,
                           .low = p[2] & 15,
                           .restart_interval = w->restart_interval,
                           .begin = w->at};
    const bool ordered = out->first == 0 ? out->last == 0 : out->first <= out->last && out->last < 64;
    if (!ordered || (out->first > 0 && count > 1) || out->low > 13 ||
        (out->high > 0 && out->low + 1 != out->high))
        return odd_pass(w, err);
    uint32_t blocks = 0;
    for (uint32_t k = 0; k < count; k++) {
        const uint32_t from = k ? out->component[k - 1].component + 1 : 0;
        const int rc = take_pass_component(w, w->body + 1 + 2 * (size_t)k, from, f, &out->component[k], err);
        if (rc) return rc;
        const mri_jpeg_component *c = &f->component[out->component[k].component];
        blocks += (uint32_t)c->h * c->v;
    }
    return count > 1 && blocks > MAX_MCU_BLOCKS ? odd_pass(w, err) : MR_OK;
}

int mri_jpeg_passes_open(mri_jpeg_walk *w, mri_jpeg_frame *f, const void *data, size_t bytes, mr_error *err)
{
    bool end = false;
    int rc = begin(w, f, data, bytes, err);
    w->progressive = true;
    if (rc == MR_OK) rc = to_scan(w, f, &end, err);
    if (rc == MR_OK && !w->framed)
        rc = mr_error_set(err, MR_EFORMAT,
                          "JPEG: a scan (SOS) before byte %zu, and no frame header (SOF) yet", w->at);
    return rc;
}

int mri_jpeg_passes_next(mri_jpeg_walk *w, mri_jpeg_frame *f, size_t from, mri_jpeg_pass *out, bool *end,
                         mr_error *err)
{
    *end = false;
    if (from) {
        w->at = scan_end(w->data, w->bytes, from);
        const int rc = to_scan(w, f, end, err);
        if (rc || *end) return rc;
    }
    return take_pass(w, f, out, err);
}

int mri_jpeg_tail_check(const void *data, size_t bytes, size_t at, mr_error *err)
{
    walk w = {.data = data, .bytes = bytes, .at = at};
    for (;;) {
        int rc = next_marker(&w, err);
        if (rc) return rc;
        if (w.marker == EOI) return MR_OK;
        if (w.marker == SOI || w.marker == SOS)
            return mr_error_set(
                err, MR_EFORMAT,
                "JPEG: expected the end (EOI) after the scan, found marker FF%02X before byte %zu", w.marker,
                w.at);
        if (stands_alone(w.marker)) continue;
        if (w.marker != COM && (w.marker < APP0 || w.marker > APP15))
            return mr_error_set(err, MR_EUNSUPPORTED, "JPEG: marker FF%02X after the scan, before byte %zu",
                                w.marker, w.at);
        rc = take_body(&w, err);
        if (rc) return rc;
    }
}
