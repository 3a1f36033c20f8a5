/* formats/image/gif_layout.c: see gif_layout.h. Numbers as in the GIF89a specification. */
#include "formats/image/gif_layout.h"

enum { SCREEN = 6, SCREEN_END = 13, FRAME_BYTES = 10, CONTROL = 0xf9, MOST_CODE_BITS = 8 };

bool mri_gif_is(const uint8_t *p, size_t bytes)
{
    return bytes >= SCREEN && (memcmp(p, "GIF87a", SCREEN) == 0 || memcmp(p, "GIF89a", SCREEN) == 0);
}

static int truncated(size_t bytes, mr_error *err)
{
    return mr_error_set(err, MR_EFORMAT, "GIF: ends at byte %zu before its first picture: truncated", bytes);
}

/* A table of colours at *at, as flags say, which moves over it. */
static bool take_colours(mri_gif_layout *g, const uint8_t *p, size_t bytes, unsigned flags, size_t *at)
{
    if (!(flags & 0x80)) return true;
    const uint32_t count = 2u << (flags & 7);
    if (bytes - *at < 3 * (size_t)count) return false;
    g->colours = p + *at;
    g->colour_count = count;
    *at += 3 * (size_t)count;
    return true;
}

/* Over blocks to the one that is empty; false: the file ends first. */
static bool skip_blocks(const uint8_t *p, size_t bytes, size_t *at)
{
    while (*at < bytes) {
        const size_t n = p[(*at)++];
        if (n == 0) return true;
        if (n > bytes - *at) return false;
        *at += n;
    }
    return false;
}

/* Transparent colour of a control extension whose first block is at p. */
static void take_control(mri_gif_layout *g, const uint8_t *p, size_t bytes)
{
    if (bytes >= 5 && p[0] == 4) g->background = p[1] & 1 ? p[4] : 0;
}

static int take_frame(mri_gif_layout *g, const uint8_t *p, size_t bytes, size_t at, mr_error *err)
{
    if (bytes - at < FRAME_BYTES) return truncated(bytes, err);
    const uint8_t *f = p + at + 1;
    g->x = mri_le16(f);
    g->y = mri_le16(f + 2);
    g->frame_w = mri_le16(f + 4);
    g->frame_h = mri_le16(f + 6);
    g->interlaced = f[8] & 0x40;
    at += FRAME_BYTES;
    if (g->frame_w == 0 || g->frame_h == 0)
        return mr_error_set(err, MR_EFORMAT, "GIF: the first frame has %u x %u pixels", g->frame_w,
                            g->frame_h);
    if (!take_colours(g, p, bytes, f[8], &at) || at == bytes) return truncated(bytes, err);
    g->code_bits = p[at];
    g->data = at + 1;
    if (g->code_bits < 1 || g->code_bits > MOST_CODE_BITS)
        return mr_error_set(err, MR_EFORMAT, "GIF: codes of %u bits at byte %zu; expected 1 to 8: damaged",
                            g->code_bits, at);
    if (g->width < g->x + g->frame_w) g->width = g->x + g->frame_w;
    if (g->height < g->y + g->frame_h) g->height = g->y + g->frame_h;
    return MR_OK;
}

int mri_gif_layout_parse(mri_gif_layout *g, const uint8_t *p, size_t bytes, mr_error *err)
{
    *g = (mri_gif_layout){0};
    if (bytes < SCREEN_END) return truncated(bytes, err);
    g->width = mri_le16(p + SCREEN);
    g->height = mri_le16(p + SCREEN + 2);
    size_t at = SCREEN_END;
    if (!take_colours(g, p, bytes, p[SCREEN + 4], &at)) return truncated(bytes, err);
    while (at < bytes) {
        if (p[at] == ',') return take_frame(g, p, bytes, at, err);
        if (p[at] == ';')
            return mr_error_set(err, MR_EFORMAT, "GIF: its end at byte %zu; expected a picture before it",
                                at);
        if (p[at] != '!')
            return mr_error_set(err, MR_EFORMAT,
                                "GIF: byte %zu is %02x; expected an extension or a picture: damaged", at,
                                p[at]);
        if (bytes - at < 3) break;
        if (p[at + 1] == CONTROL) take_control(g, p + at + 2, bytes - at - 2);
        at += 2;
        if (!skip_blocks(p, bytes, &at)) break;
    }
    return truncated(bytes, err);
}
