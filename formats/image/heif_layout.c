/* formats/image/heif_layout.c: see heif_layout.h. */
#include "formats/image/heif_layout.h"

enum { BOX_HEAD = 8, LONG_HEAD = 16, FULL_HEAD = 4, BRANDS = 16 };

/* ---- boxes ---- */

typedef struct box {
    const uint8_t *body;
    size_t bytes; /* of the body */
    uint32_t type;
} box;

typedef struct boxes {
    const uint8_t *at;
    size_t left;
    bool cut; /* a box is longer than what is left */
} boxes;

#define TYPE(a, b, c, d) ((uint32_t)(a) << 24 | (uint32_t)(b) << 16 | (uint32_t)(c) << 8 | (uint32_t)(d))

static uint64_t be64(const uint8_t *p) { return (uint64_t)mri_be32(p) << 32 | mri_be32(p + 4); }

/* The next box; false at the end. A size of 0 means: up to the end; of 1: eight bytes after the type have it.
 */
static bool next_box(boxes *b, box *out)
{
    if (b->left == 0) return false;
    b->cut = true;
    if (b->left < BOX_HEAD) return false;
    uint64_t size = mri_be32(b->at);
    size_t head = BOX_HEAD;
    if (size == 1) {
        if (b->left < LONG_HEAD) return false;
        size = be64(b->at + BOX_HEAD);
        head = LONG_HEAD;
    } else if (size == 0) {
        size = b->left;
    }
    if (size < head || size > b->left) return false;
    *out = (box){b->at + head, (size_t)size - head, mri_be32(b->at + 4)};
    b->at += size;
    b->left -= (size_t)size;
    b->cut = false;
    return true;
}

static bool find_box(boxes in, uint32_t type, box *out, bool *cut)
{
    while (next_box(&in, out))
        if (out->type == type) return true;
    *cut |= in.cut;
    return false;
}

/* The boxes in a box, after its version and flags where it has them. */
static boxes inside(const box *b, size_t skipped)
{
    return b->bytes < skipped ? (boxes){b->body, 0, false}
                              : (boxes){b->body + skipped, b->bytes - skipped, false};
}

/* ---- which kind ---- */

static bool has_brand(const uint8_t *p, size_t bytes, const char *const *brands)
{
    if (bytes < BRANDS || memcmp(p + 4, "ftyp", 4) != 0) return false;
    const size_t end = (size_t)mri_min_u64(mri_be32(p), bytes);
    for (size_t at = BOX_HEAD; at + 4 <= end; at += at == BOX_HEAD ? 8 : 4) /* a version follows the first
                                                                               brand */
        for (size_t k = 0; brands[k]; k++)
            if (memcmp(p + at, brands[k], 4) == 0) return true;
    return false;
}

bool mri_avif_is(const uint8_t *p, size_t bytes)
{
    static const char *const brands[] = {"avif", "avis", NULL};
    return has_brand(p, bytes, brands);
}

/* mif1 and msf1 name no coding; writers that leave it out code by HEVC. */
bool mri_heic_is(const uint8_t *p, size_t bytes)
{
    static const char *const brands[] = {"heic", "heix", "heim", "heis", "hevc",
                                         "hevx", "hevm", "hevs", NULL};
    const bool any = bytes >= BRANDS && memcmp(p + 4, "ftyp", 4) == 0 &&
                     (memcmp(p + BOX_HEAD, "mif1", 4) == 0 || memcmp(p + BOX_HEAD, "msf1", 4) == 0);
    return !mri_avif_is(p, bytes) && (any || has_brand(p, bytes, brands));
}

/* ---- the shown item's properties ---- */

static int damaged(const char *name, const char *what, mr_error *err)
{
    return mr_error_set(err, MR_EFORMAT, "%s: %s: damaged", name, what);
}

static bool take_item(const box *pitm, uint32_t *item)
{
    const bool wide = pitm->bytes > 0 && pitm->body[0] > 0;
    if (pitm->bytes < FULL_HEAD + (wide ? 4u : 2u)) return false;
    *item = wide ? mri_be32(pitm->body + FULL_HEAD) : mri_be16(pitm->body + FULL_HEAD);
    return true;
}

/* A cut's side: whole pixels of a fraction; 0: senseless. */
static uint32_t cut_side(const uint8_t *fraction, uint32_t most)
{
    const uint32_t above = mri_be32(fraction), below = mri_be32(fraction + 4);
    const uint64_t side = below ? ((uint64_t)above + below / 2) / below : 0;
    return side <= most ? (uint32_t)side : 0;
}

/* Applies one property of the item. */
static int take_property(mri_heif_layout *h, const box *p, const char *name, mr_error *err)
{
    switch (p->type) {
    case TYPE('i', 's', 'p', 'e'):
        if (p->bytes < FULL_HEAD + 8) return damaged(name, "its size (ispe) is cut", err);
        h->width = mri_be32(p->body + FULL_HEAD);
        h->height = mri_be32(p->body + FULL_HEAD + 4);
        return MR_OK;
    case TYPE('c', 'l', 'a', 'p'):
        if (p->bytes < 32) return damaged(name, "its cut (clap) is too short", err);
        h->width = cut_side(p->body, h->width);
        h->height = cut_side(p->body + 8, h->height);
        return h->width && h->height
                   ? MR_OK
                   : damaged(name, "it is cut (clap) to less than nothing, or more than all", err);
    case TYPE('i', 'r', 'o', 't'):
        if (p->bytes < 1) return damaged(name, "its turn (irot) is empty", err);
        if (p->body[0] & 1) {
            const uint32_t width = h->width;
            h->width = h->height;
            h->height = width;
        }
        return MR_OK;
    case TYPE('p', 'i', 'x', 'i'):
        if (p->bytes < FULL_HEAD + 1 || p->bytes - FULL_HEAD - 1 < p->body[FULL_HEAD] || !p->body[FULL_HEAD])
            return damaged(name, "its bits per sample (pixi) are cut", err);
        h->channels = p->body[FULL_HEAD] < 3 ? 1 : 3;
        h->bit_depth = p->body[FULL_HEAD + 1];
        return MR_OK;
    default: return MR_OK;
    }
}

/* Property `index` of ipco; they count from 1. */
static bool find_property(const box *ipco, uint32_t index, box *out)
{
    boxes all = inside(ipco, 0);
    while (index > 0 && next_box(&all, out)) index--;
    return index == 0;
}

/* The properties of the item, in their order. *found: the list names it; an item is named once. */
static int take_properties(mri_heif_layout *h, uint32_t item, const box *ipco, const box *ipma, bool *found,
                           const char *name, mr_error *err)
{
    if (ipma->bytes < FULL_HEAD + 4) return damaged(name, "its list of properties (ipma) is cut", err);
    const size_t item_bytes = ipma->body[0] ? 4 : 2, index_bytes = ipma->body[3] & 1 ? 2 : 1;
    const uint8_t *p = ipma->body + FULL_HEAD + 4, *end = ipma->body + ipma->bytes;
    for (uint32_t left = mri_be32(ipma->body + FULL_HEAD); left > 0 && !*found; left--) {
        if ((size_t)(end - p) < item_bytes + 1)
            return damaged(name, "its list of properties (ipma) is cut", err);
        const uint32_t id = item_bytes == 4 ? mri_be32(p) : mri_be16(p), count = p[item_bytes];
        p += item_bytes + 1;
        if ((size_t)(end - p) < count * index_bytes)
            return damaged(name, "its list of properties (ipma) is cut", err);
        *found = id == item;
        for (uint32_t k = 0; k < count && *found; k++) {
            const uint32_t index = index_bytes == 2 ? mri_be16(p + 2 * k) & 0x7fff : p[k] & 0x7f;
            box property;
            if (index == 0) continue;
            if (!find_property(ipco, index, &property))
                return damaged(name, "a property of its picture is missing", err);
            const int rc = take_property(h, &property, name, err);
            if (rc) return rc;
        }
        p += count * index_bytes;
    }
    return MR_OK;
}

static int parse_meta(mri_heif_layout *h, const box *meta, const char *name, mr_error *err)
{
    box pitm, iprp, ipco, ipma;
    uint32_t item;
    bool cut = false, found = false;
    const boxes in = inside(meta, FULL_HEAD);
    if (!find_box(in, TYPE('p', 'i', 't', 'm'), &pitm, &cut) || !take_item(&pitm, &item))
        return damaged(name, "it does not say which picture is shown (pitm)", err);
    if (!find_box(in, TYPE('i', 'p', 'r', 'p'), &iprp, &cut) ||
        !find_box(inside(&iprp, 0), TYPE('i', 'p', 'c', 'o'), &ipco, &cut))
        return damaged(name, "it has no properties of pictures (iprp, ipco)", err);
    boxes lists = inside(&iprp, 0);
    while (!found && find_box(lists, TYPE('i', 'p', 'm', 'a'), &ipma, &cut)) {
        const int rc = take_properties(h, item, &ipco, &ipma, &found, name, err);
        if (rc) return rc;
        const uint8_t *after = ipma.body + ipma.bytes;
        lists = (boxes){after, (size_t)(iprp.body + iprp.bytes - after), false};
    }
    if (h->width && h->height) return MR_OK;
    return mr_error_set(err, MR_EFORMAT, "%s: a picture of %u x %u pixels: damaged", name, h->width,
                        h->height);
}

int mri_heif_layout_parse(mri_heif_layout *h, const char *name, const uint8_t *p, size_t bytes, mr_error *err)
{
    *h = (mri_heif_layout){.channels = 3, .bit_depth = 8};
    bool cut = false;
    box meta;
    if (find_box((boxes){p, bytes, false}, TYPE('m', 'e', 't', 'a'), &meta, &cut))
        return parse_meta(h, &meta, name, err);
    if (cut)
        return mr_error_set(err, MR_EFORMAT, "%s: ends at byte %zu within a box: truncated", name, bytes);
    return mr_error_set(err, MR_EUNSUPPORTED,
                        "%s: a film without a still picture (no box meta): convert it to JPEG or PNG", name);
}
