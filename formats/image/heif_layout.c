/* formats/image/heif_layout.c: see heif_layout.h. */
#include "formats/image/heif_layout.h"

#include "formats/image/heif_boxes.h"

enum { BRANDS = 16 };

/* ---- which kind ---- */

static bool has_brand(const uint8_t *p, size_t bytes, const char *const *brands)
{
    if (bytes < BRANDS || memcmp(p + 4, "ftyp", 4) != 0) return false;
    const size_t end = (size_t)mri_min_u64(mri_be32(p), bytes);
    for (size_t at = MRI_BOX_HEAD; at + 4 <= end; at += at == MRI_BOX_HEAD ? 8 : 4) /* a version follows the
                                                                               first brand */
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
                     (memcmp(p + MRI_BOX_HEAD, "mif1", 4) == 0 || memcmp(p + MRI_BOX_HEAD, "msf1", 4) == 0);
    return !mri_avif_is(p, bytes) && (any || has_brand(p, bytes, brands));
}

/* ---- the shown item's properties ---- */

static int damaged(const char *name, const char *what, mr_error *err)
{
    return mr_error_set(err, MR_EFORMAT, "%s: %s: damaged", name, what);
}

static bool take_item(const mri_box *pitm, uint32_t *item)
{
    const bool wide = pitm->bytes > 0 && pitm->body[0] > 0;
    if (pitm->bytes < MRI_BOX_FULL_HEAD + (wide ? 4u : 2u)) return false;
    *item = wide ? mri_be32(pitm->body + MRI_BOX_FULL_HEAD) : mri_be16(pitm->body + MRI_BOX_FULL_HEAD);
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
static int take_property(mri_heif_layout *h, const mri_box *p, const char *name, mr_error *err)
{
    switch (p->type) {
    case MRI_BOX_TYPE('i', 's', 'p', 'e'):
        if (p->bytes < MRI_BOX_FULL_HEAD + 8) return damaged(name, "its size (ispe) is cut", err);
        h->width = mri_be32(p->body + MRI_BOX_FULL_HEAD);
        h->height = mri_be32(p->body + MRI_BOX_FULL_HEAD + 4);
        return MR_OK;
    case MRI_BOX_TYPE('c', 'l', 'a', 'p'):
        if (p->bytes < 32) return damaged(name, "its cut (clap) is too short", err);
        h->width = cut_side(p->body, h->width);
        h->height = cut_side(p->body + 8, h->height);
        return h->width && h->height
                   ? MR_OK
                   : damaged(name, "it is cut (clap) to less than nothing, or more than all", err);
    case MRI_BOX_TYPE('i', 'r', 'o', 't'):
        if (p->bytes < 1) return damaged(name, "its turn (irot) is empty", err);
        if (p->body[0] & 1) {
            const uint32_t width = h->width;
            h->width = h->height;
            h->height = width;
        }
        return MR_OK;
    case MRI_BOX_TYPE('p', 'i', 'x', 'i'):
        if (p->bytes < MRI_BOX_FULL_HEAD + 1 ||
            p->bytes - MRI_BOX_FULL_HEAD - 1 < p->body[MRI_BOX_FULL_HEAD] || !p->body[MRI_BOX_FULL_HEAD])
            return damaged(name, "its bits per sample (pixi) are cut", err);
        h->channels = p->body[MRI_BOX_FULL_HEAD] < 3 ? 1 : 3;
        h->bit_depth = p->body[MRI_BOX_FULL_HEAD + 1];
        return MR_OK;
    default: return MR_OK;
    }
}

/* Property `index` of ipco; they count from 1. */
static bool find_property(const mri_box *ipco, uint32_t index, mri_box *out)
{
    mri_boxes all = mri_boxes_in(ipco, 0);
    while (index > 0 && mri_box_next(&all, out)) index--;
    return index == 0;
}

/* The properties of the item, in their order. *found: the list names it; an item is named once. */
static int take_properties(mri_heif_layout *h, uint32_t item, const mri_box *ipco, const mri_box *ipma,
                           bool *found, const char *name, mr_error *err)
{
    if (ipma->bytes < MRI_BOX_FULL_HEAD + 4)
        return damaged(name, "its list of properties (ipma) is cut", err);
    const size_t item_bytes = ipma->body[0] ? 4 : 2, index_bytes = ipma->body[3] & 1 ? 2 : 1;
    const uint8_t *p = ipma->body + MRI_BOX_FULL_HEAD + 4, *end = ipma->body + ipma->bytes;
    for (uint32_t left = mri_be32(ipma->body + MRI_BOX_FULL_HEAD); left > 0 && !*found; left--) {
        if ((size_t)(end - p) < item_bytes + 1)
            return damaged(name, "its list of properties (ipma) is cut", err);
        const uint32_t id = item_bytes == 4 ? mri_be32(p) : mri_be16(p), count = p[item_bytes];
        p += item_bytes + 1;
        if ((size_t)(end - p) < count * index_bytes)
            return damaged(name, "its list of properties (ipma) is cut", err);
        *found = id == item;
        for (uint32_t k = 0; k < count && *found; k++) {
            const uint32_t index = index_bytes == 2 ? mri_be16(p + 2 * k) & 0x7fff : p[k] & 0x7f;
            mri_box property;
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

static int parse_meta(mri_heif_layout *h, const mri_box *meta, const char *name, mr_error *err)
{
    mri_box pitm, iprp, ipco, ipma;
    uint32_t item;
    bool cut = false, found = false;
    const mri_boxes in = mri_boxes_in(meta, MRI_BOX_FULL_HEAD);
    if (!mri_box_find(in, MRI_BOX_TYPE('p', 'i', 't', 'm'), &pitm, &cut) || !take_item(&pitm, &item))
        return damaged(name, "it does not say which picture is shown (pitm)", err);
    if (!mri_box_find(in, MRI_BOX_TYPE('i', 'p', 'r', 'p'), &iprp, &cut) ||
        !mri_box_find(mri_boxes_in(&iprp, 0), MRI_BOX_TYPE('i', 'p', 'c', 'o'), &ipco, &cut))
        return damaged(name, "it has no properties of pictures (iprp, ipco)", err);
    mri_boxes lists = mri_boxes_in(&iprp, 0);
    while (!found && mri_box_find(lists, MRI_BOX_TYPE('i', 'p', 'm', 'a'), &ipma, &cut)) {
        const int rc = take_properties(h, item, &ipco, &ipma, &found, name, err);
        if (rc) return rc;
        const uint8_t *after = ipma.body + ipma.bytes;
        lists = (mri_boxes){after, (size_t)(iprp.body + iprp.bytes - after), false};
    }
    if (h->width && h->height) return MR_OK;
    return mr_error_set(err, MR_EFORMAT, "%s: a picture of %u x %u pixels: damaged", name, h->width,
                        h->height);
}

int mri_heif_layout_parse(mri_heif_layout *h, const char *name, const uint8_t *p, size_t bytes, mr_error *err)
{
    *h = (mri_heif_layout){.channels = 3, .bit_depth = 8};
    bool cut = false;
    mri_box meta;
    if (mri_box_find((mri_boxes){p, bytes, false}, MRI_BOX_TYPE('m', 'e', 't', 'a'), &meta, &cut))
        return parse_meta(h, &meta, name, err);
    if (cut)
        return mr_error_set(err, MR_EFORMAT, "%s: ends at byte %zu within a box: truncated", name, bytes);
    return mr_error_set(err, MR_EUNSUPPORTED,
                        "%s: a film without a still picture (no box meta): convert it to JPEG or PNG", name);
}
