/* formats/image/heif_coded.c: see heif_coded.h. */
#include "formats/image/heif_coded.h"

#include "formats/image/heif_boxes.h"

enum {
    EXTENTS = 64,     /* of one item; libheif reads up to 32 */
    HEAD_BYTES = 256, /* all that comes before the size in a parameter set or sequence header */
    STEPS = 1 << 22,  /* units, items and extents that are looked at */
    SPS_STEPS = 16,
    HEVC_SPS = 33,           /* nal_unit_type */
    AV1_SEQUENCE_HEADER = 1, /* obu_type */
};

/* ---- bits ---- */

typedef struct bit_reader {
    const uint8_t *p;
    size_t bits, at;
} bit_reader;

/* After the end: zeros. Up to 32. */
static uint32_t take(bit_reader *r, unsigned count)
{
    uint32_t v = 0;
    for (; count > 0; count--, r->at++)
        v = v << 1 | (r->at < r->bits ? (uint32_t)(r->p[r->at / 8] >> (7 - r->at % 8) & 1) : 0);
    return v;
}

static void skip(bit_reader *r, size_t count) { r->at = mri_min_u64(r->at + count, r->bits); }

/* Exp-Golomb code: ue(v) of HEVC, uvlc() of AV1. */
static uint32_t take_ue(bit_reader *r)
{
    unsigned zeros = 0;
    while (r->at < r->bits && take(r, 1) == 0) zeros++;
    if (zeros >= 32) return UINT32_MAX;
    return (uint32_t)((UINT64_C(1) << zeros) - 1 + take(r, zeros));
}

/* ---- sizes in coded data ---- */

typedef struct search {
    const uint8_t *file, *idat;
    size_t file_bytes, idat_bytes;
    uint64_t most;   /* pixels */
    uint32_t left;   /* of STEPS */
    mri_boxes types; /* of iinf, after the item that was found last */
} search;

static void found(search *s, uint64_t width, uint64_t height)
{
    s->most = mri_max_u64(s->most, mri_times(width, height));
}

/* False: enough was looked at. */
static bool step(search *s)
{
    if (s->left == 0) s->most = UINT64_MAX;
    return s->left > 0 && s->left-- > 0;
}

/* p: a sequence parameter set after the two bytes of its unit's head. */
static void take_sps(search *s, const uint8_t *p, size_t bytes)
{
    uint8_t plain[HEAD_BYTES];
    size_t n = 0, zeros = 0;
    for (size_t k = 0; k < bytes && n < sizeof plain; k++) { /* without bytes against false start codes */
        const bool stuffed = zeros >= 2 && p[k] == 3;
        if (!stuffed) plain[n++] = p[k];
        zeros = p[k] == 0 ? zeros + 1 : 0;
    }
    bit_reader r = {plain, 8 * n, 0};
    s->left -= (uint32_t)mri_min_u64(s->left, SPS_STEPS);
    skip(&r, 4);
    const unsigned layers = take(&r, 3);
    unsigned profiles = 0, levels = 0;
    skip(&r, 1 + 88 + 8); /* nesting; general profile and level */
    for (unsigned k = 0; k < (layers ? 8 : 0); k++) {
        const unsigned flags = take(&r, 2);
        if (k >= layers) continue;
        profiles += flags >> 1;
        levels += flags & 1;
    }
    skip(&r, (size_t)88 * profiles + (size_t)8 * levels);
    take_ue(&r); /* its number */
    if (take_ue(&r) == 3) skip(&r, 1);
    const uint32_t width = take_ue(&r), height = take_ue(&r);
    if (r.at < r.bits) found(s, width, height);
}

/* Timing, operating points; up to the size. */
static void skip_operating_points(bit_reader *r)
{
    unsigned delay_bits = 0;
    bool decoder_model = false;
    if (take(r, 1)) { /* timing */
        skip(r, 64);
        if (take(r, 1)) take_ue(r);
        decoder_model = take(r, 1);
        if (decoder_model) {
            delay_bits = take(r, 5) + 1;
            skip(r, 32 + 5 + 5);
        }
    }
    const bool display_delay = take(r, 1);
    for (unsigned points = take(r, 5) + 1; points > 0; points--) {
        skip(r, 12);
        if (take(r, 5) > 7) skip(r, 1);
        if (decoder_model && take(r, 1)) skip(r, 2 * delay_bits + 1);
        if (display_delay && take(r, 1)) skip(r, 4);
    }
}

static void take_sequence_header(search *s, const uint8_t *p, size_t bytes)
{
    bit_reader r = {p, 8 * bytes, 0};
    skip(&r, 4);
    if (take(&r, 1)) skip(&r, 5); /* a picture's short form: its level */
    else skip_operating_points(&r);
    const unsigned width_bits = take(&r, 4) + 1, height_bits = take(&r, 4) + 1;
    const uint64_t width = take(&r, width_bits) + UINT64_C(1), height = take(&r, height_bits) + UINT64_C(1);
    if (r.at <= r.bits) found(s, width, height);
}

/* ---- an item's bytes ---- */

typedef struct extent {
    const uint8_t *p;
    size_t bytes;
} extent;

typedef struct item {
    extent extent[EXTENTS];
    uint32_t count, now; /* extents; the one that is read */
    size_t at;           /* in it */
} item;

/* The next bytes, copied to out unless it is NULL; returns how many there were. */
static size_t next_bytes(item *it, uint8_t *out, size_t bytes)
{
    size_t done = 0;
    while (done < bytes && it->now < it->count) {
        const extent *e = &it->extent[it->now];
        const size_t n = (size_t)mri_min_u64(bytes - done, e->bytes - it->at);
        if (out && n) memcpy(out + done, e->p + it->at, n);
        done += n;
        it->at += n;
        if (it->at < e->bytes) continue;
        it->now++;
        it->at = 0;
    }
    return done;
}

/* Units with their lengths before them. */
static void take_hevc(search *s, item *it)
{
    uint8_t head[HEAD_BYTES];
    while (next_bytes(it, head, 4) == 4 && step(s)) {
        const uint32_t bytes = mri_be32(head);
        const size_t have = next_bytes(it, head, mri_min_u64(bytes, sizeof head));
        const bool base = have >= 2 && (head[0] & 1) == 0 && head[1] >> 3 == 0; /* layer 0 */
        if (base && (head[0] >> 1 & 63) == HEVC_SPS) take_sps(s, head + 2, have - 2);
        next_bytes(it, NULL, bytes - have);
    }
}

/* leb128(); false: the item ended. */
static bool take_leb128(item *it, uint64_t *out)
{
    uint8_t byte = 0x80;
    *out = 0;
    for (unsigned k = 0; k < 8 && byte & 0x80; k++) {
        if (next_bytes(it, &byte, 1) != 1) return false;
        *out |= (uint64_t)(byte & 0x7f) << 7 * k;
    }
    return true;
}

static void take_av1(search *s, item *it)
{
    uint8_t head[HEAD_BYTES];
    while (next_bytes(it, head, 1) == 1 && step(s)) {
        const unsigned type = head[0] >> 3 & 15;
        uint64_t bytes = SIZE_MAX;
        if (head[0] & 4) next_bytes(it, NULL, 1); /* an extension */
        if (head[0] & 2 && !take_leb128(it, &bytes)) return;
        const size_t have = next_bytes(it, head, mri_min_u64(bytes, sizeof head));
        if (type == AV1_SEQUENCE_HEADER) take_sequence_header(s, head, have);
        next_bytes(it, NULL, (size_t)mri_min_u64(bytes - have, SIZE_MAX));
    }
}

/* grid: version, flags, rows, columns, size; iovl: version, flags, a colour of 8 bytes, size. */
static void take_canvas(search *s, item *it, size_t skipped)
{
    uint8_t head[18];
    const size_t have = next_bytes(it, head, sizeof head);
    const bool wide = have > 1 && head[1] & 1;
    if (have < skipped + (wide ? 8u : 4u)) return;
    const uint8_t *p = head + skipped;
    if (wide) found(s, mri_be32(p), mri_be32(p + 4));
    else found(s, mri_be16(p), mri_be16(p + 2));
}

static void take_item(search *s, item *it, uint32_t type)
{
    switch (type) {
    case MRI_BOX_TYPE('h', 'v', 'c', '1'): take_hevc(s, it); break;
    case MRI_BOX_TYPE('a', 'v', '0', '1'): take_av1(s, it); break;
    case MRI_BOX_TYPE('g', 'r', 'i', 'd'): take_canvas(s, it, 4); break;
    case MRI_BOX_TYPE('i', 'o', 'v', 'l'): take_canvas(s, it, 10); break;
    default: break;
    }
}

/* ---- lists of items ---- */

/* Numbers of 0 to 8 bytes, big-endian. */
typedef struct fields {
    const uint8_t *p;
    size_t left;
    bool cut;
} fields;

static uint64_t field(fields *f, unsigned bytes)
{
    uint64_t v = 0;
    f->cut |= bytes > f->left;
    if (f->cut) return 0;
    for (unsigned k = 0; k < bytes; k++) v = v << 8 | f->p[k];
    f->p += bytes;
    f->left -= bytes;
    return v;
}

/* The type in infe if it is the item's; else 0. */
static uint32_t type_in(const mri_box *infe, uint32_t id)
{
    const bool wide = infe->bytes && infe->body[0] == 3;
    fields f = {infe->body, infe->bytes, false};
    if (field(&f, 4) >> 24 < 2 || field(&f, wide ? 4 : 2) != id) return 0;
    field(&f, 2); /* protection */
    const uint32_t type = (uint32_t)field(&f, 4);
    return f.cut ? 0 : type;
}

/* The type that iinf states for an item; 0: none. Items come mostly in the order of iinf. */
static uint32_t type_of(search *s, const mri_box *iinf, uint32_t id)
{
    mri_box infe;
    for (int turn = 0; turn < 2; turn++) {
        while (mri_box_next(&s->types, &infe) && step(s)) {
            const uint32_t type = type_in(&infe, id);
            if (type) return type;
        }
        s->types = mri_boxes_in(iinf, iinf->bytes && iinf->body[0] ? 8 : 6);
    }
    return 0;
}

/* Where the extents of an entry of iloc lie; those outside of the file are cut. */
static void take_extents(search *s, fields *f, const unsigned size[4], unsigned method, item *it)
{
    const uint64_t base = field(f, size[2]), count = field(f, 2);
    const uint8_t *from = method == 1 ? s->idat : s->file;
    const size_t all = method == 1 ? s->idat_bytes : s->file_bytes;
    *it = (item){.count = 0};
    for (uint64_t k = 0; k < count && !f->cut && step(s); k++) {
        field(f, size[3]);
        const uint64_t at = mri_plus(base, field(f, size[0])), bytes = field(f, size[1]);
        if (f->cut || method > 1 || at >= all) continue;
        const uint64_t rest = all - at;
        if (it->count == EXTENTS) s->most = UINT64_MAX;
        else it->extent[it->count++] = (extent){from + at, mri_min_u64(bytes ? bytes : rest, rest)};
    }
}

static void take_places(search *s, const mri_box *iloc, const mri_box *iinf)
{
    fields f = {iloc->body, iloc->bytes, false};
    const unsigned version = (unsigned)(field(&f, 4) >> 24), sizes = (unsigned)field(&f, 2);
    /* of an offset, a length, a base, an index */
    const unsigned size[4] = {sizes >> 12, sizes >> 8 & 15, sizes >> 4 & 15, version ? sizes & 15 : 0};
    item it;
    for (int k = 0; k < 4; k++)
        if (size[k] > 8) return;
    for (uint64_t items = field(&f, version < 2 ? 2 : 4); items > 0 && !f.cut && step(s); items--) {
        const uint32_t id = (uint32_t)field(&f, version < 2 ? 2 : 4);
        const unsigned method = version ? (unsigned)field(&f, 2) & 15 : 0;
        field(&f, 2); /* the file: this one */
        take_extents(s, &f, size, method, &it);
        if (!f.cut) take_item(s, &it, type_of(s, iinf, id));
    }
}

/* ---- properties ---- */

/* Arrays of units in hvcC. */
static void take_hvcc(search *s, const mri_box *b)
{
    fields f = {b->body, b->bytes, false};
    for (unsigned k = 0; k < 22; k++) field(&f, 1);
    for (uint64_t arrays = field(&f, 1); arrays > 0 && !f.cut; arrays--) {
        const unsigned type = (unsigned)field(&f, 1) & 63;
        for (uint64_t units = field(&f, 2); units > 0 && !f.cut && step(s); units--) {
            const size_t bytes = (size_t)field(&f, 2);
            if (bytes > f.left) return;
            if (type == HEVC_SPS && bytes > 2) take_sps(s, f.p + 2, bytes - 2);
            f.p += bytes;
            f.left -= bytes;
        }
    }
}

static void take_properties(search *s, const mri_box *ipco)
{
    mri_boxes in = mri_boxes_in(ipco, 0);
    mri_box b;
    while (mri_box_next(&in, &b) && step(s)) {
        if (b.type == MRI_BOX_TYPE('i', 's', 'p', 'e') && b.bytes >= 12)
            found(s, mri_be32(b.body + 4), mri_be32(b.body + 8));
        if (b.type == MRI_BOX_TYPE('h', 'v', 'c', 'C')) take_hvcc(s, &b);
        if (b.type == MRI_BOX_TYPE('a', 'v', '1', 'C') && b.bytes > 4) {
            item it = {.extent = {{b.body + 4, b.bytes - 4}}, .count = 1};
            take_av1(s, &it);
        }
    }
}

uint64_t mri_heif_coded_pixels(const uint8_t *p, size_t bytes)
{
    search s = {.file = p, .file_bytes = bytes, .left = STEPS};
    mri_box meta, b, iinf;
    bool cut = false;
    if (!mri_box_find((mri_boxes){p, bytes, false}, MRI_BOX_TYPE('m', 'e', 't', 'a'), &meta, &cut)) return 0;
    const mri_boxes in = mri_boxes_in(&meta, MRI_BOX_FULL_HEAD);
    if (mri_box_find(in, MRI_BOX_TYPE('i', 'd', 'a', 't'), &b, &cut)) {
        s.idat = b.body;
        s.idat_bytes = b.bytes;
    }
    if (mri_box_find(in, MRI_BOX_TYPE('i', 'p', 'r', 'p'), &b, &cut) &&
        mri_box_find(mri_boxes_in(&b, 0), MRI_BOX_TYPE('i', 'p', 'c', 'o'), &b, &cut))
        take_properties(&s, &b);
    if (mri_box_find(in, MRI_BOX_TYPE('i', 'i', 'n', 'f'), &iinf, &cut) &&
        mri_box_find(in, MRI_BOX_TYPE('i', 'l', 'o', 'c'), &b, &cut))
        take_places(&s, &b, &iinf);
    return s.most;
}
