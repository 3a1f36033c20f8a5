/* pipeline/decode/jpeg/progressive.c: see progressive.h. Source: ITU-T T.81, annex G.
 *
 * Scans are read one after the other, each up to the last row of the window:
 *
 *   . . . . . . .     . a mask of the coefficients other than 0, as later scans need it
 *   . . . # # # .     # the mask and the coefficients
 *   . . . # # # -     - not read; the next scan is found by its marker
 *   - - - - - - -
 *
 * What an encoder does not write is left to libjpeg-turbo, so this file has one verdict for it, odd(). */
#include "pipeline/decode/jpeg/progressive.h"

#include "pipeline/decode/jpeg/libjpeg_coef.h"
#include "pipeline/decode/jpeg/scan/pass.h"
#include "pipeline/decode/jpeg/scan/run.h"
#include "pipeline/pixels/pixels.h"

#define FEED_BYTES (16384 + MRI_PASS_BLOCK_BYTES)
#define END_BYTES  24        /* ones after the fill: all ones is no code */
#define FAR_DC     (1 << 28) /* a row of MCUs adds less than this */
#define UNSEEN     (-1)
#define COMPONENTS 3

struct blocks {
    mri_buffer coef;              /* wanted ones */
    mri_buffer mask;              /* all of a row, of all rows up to the last wanted one */
    int8_t level[MRI_JPEG_BLOCK]; /* bits that are still missing, or UNSEEN */
};

/* A block of an MCU of a DC scan. */
struct dc_block {
    const mri_huff_dc *table;
    int32_t *prediction;
    int16_t (*coef)[MRI_JPEG_BLOCK]; /* of the first wanted column; of this row */
    uint32_t x, step, wide;          /* as in mri_run_block */
};

struct mri_progressive {
    mri_jpeg_walk first, walk; /* where the first scan begins, and where we are */
    mri_jpeg_frame frame;
    mri_jpeg_pass pass; /* this scan */
    const uint8_t *data;
    size_t bytes;
    uint32_t max_scans;
    mri_block_window window[MRI_JPEG_MAX_COMPONENTS];
    struct blocks blocks[COMPONENTS];

    size_t next, fill; /* as in mri_cursor: first byte of the file not in the feed; bytes there */
    bool ended;
    uint32_t restart_left;
    unsigned restart_next;
    mri_pass_run run;
    int32_t dc[COMPONENTS];
    struct dc_block mcu[MRI_MCU_BLOCKS];
    uint32_t mcu_blocks;
    mri_huff_dc dc_table[COMPONENTS];
    mri_pass_table ac_table;
    uint8_t feed[FEED_BYTES + MRI_UNSTUFF_SLACK + MRI_PASS_BLOCK_BYTES + 64]; /* a block that runs over the
                                                                                 end stays inside */
};

int mri_progressive_create(mri_progressive **out)
{
    mri_progressive *p = mri_alloc_aligned(_Alignof(mri_progressive), sizeof *p);
    *out = p;
    if (!p) return MR_ENOMEM;
    memset(p, 0, sizeof *p);
    return MR_OK;
}

void mri_progressive_release(mri_progressive *p)
{
    for (int k = 0; k < COMPONENTS; k++) {
        mri_buffer_free(&p->blocks[k].coef);
        mri_buffer_free(&p->blocks[k].mask);
    }
}

void mri_progressive_destroy(mri_progressive *p)
{
    if (!p) return;
    mri_progressive_release(p);
    free(p);
}

uint64_t mri_progressive_bytes(void) { return sizeof(mri_progressive); }

static int odd(const mri_progressive *p, mr_error *err)
{
    return mr_error_set(err, MR_EUNSUPPORTED, "JPEG: a progressive scan that is odd or damaged near byte %zu",
                        p->next);
}

/* ---- the feed ---- */

static uint64_t bits_used(const mri_progressive *p)
{
    return 8 * (uint64_t)(p->run.bits.from - p->feed) - (uint64_t)p->run.bits.count;
}

static void feed_load(mri_progressive *p)
{
    size_t used;
    const size_t more = FEED_BYTES > p->fill ? FEED_BYTES - p->fill : 0;
    p->fill += mri_unstuff(p->data + p->next, p->bytes - p->next, p->feed + p->fill, more, &used);
    p->next += used;
    p->ended = p->fill < FEED_BYTES;
    if (p->ended) memset(p->feed + p->fill, 0xff, END_BYTES);
    p->run.limit = p->ended ? p->feed + p->fill + 8 : p->feed + p->fill - MRI_PASS_BLOCK_BYTES; /* 8: a load
                                                                                              looks ahead */
}

static void feed_begin(mri_progressive *p, size_t at)
{
    p->next = at;
    p->fill = 0;
    p->run.bits = (mri_bits){0, 0, p->feed};
    feed_load(p);
}

/* Our place to the front, the rest of the feed filled up. Not past the fill. */
static void feed_more(mri_progressive *p)
{
    const size_t used = (size_t)(bits_used(p) >> 3);
    const unsigned skip = bits_used(p) & 7;
    memmove(p->feed, p->feed + used, p->fill - used);
    p->fill -= used;
    feed_load(p);
    p->run.bits = (mri_bits){0, 0, p->feed};
    mri_bits_load(&p->run.bits);
    mri_bits_drop(&p->run.bits, skip);
}

static bool ran_over(const mri_progressive *p) { return p->ended && bits_used(p) > 8 * (uint64_t)p->fill; }

/* ---- markers in a scan ---- */

/* Is a marker next, with nothing before it? */
static bool at_marker(mri_progressive *p)
{
    if (p->run.ends) return false;
    if (!p->ended) feed_more(p);
    return p->ended && (size_t)((bits_used(p) + 7) >> 3) == p->fill && p->next < p->bytes;
}

/* The offset of the next marker's code, after its fill bytes. */
static size_t marker_code(const mri_progressive *p)
{
    size_t at = p->next;
    while (at + 1 < p->bytes && p->data[at] == 0xff) at++;
    return at;
}

/* Is the scan over? Restart markers and fill bytes before data do not end it. */
static bool at_end(mri_progressive *p)
{
    if (!at_marker(p)) return false;
    const uint8_t code = p->data[marker_code(p)];
    return code != 0 && (code < 0xd0 || code > 0xd7);
}

static int restart(mri_progressive *p, mr_error *err)
{
    if (!at_marker(p)) return odd(p, err);
    const size_t at = marker_code(p);
    if (p->data[at] != 0xd0 + p->restart_next) return odd(p, err);
    p->restart_next = (p->restart_next + 1) & 7;
    p->restart_left = p->pass.restart_interval;
    memset(p->dc, 0, sizeof p->dc);
    feed_begin(p, at + 1);
    return MR_OK;
}

/* Units until the next restart, count at most; a restart that is due is taken. */
static int until_restart(mri_progressive *p, uint32_t *count, mr_error *err)
{
    if (p->pass.restart_interval == 0) return MR_OK;
    const int rc = p->restart_left == 0 ? restart(p, err) : MR_OK;
    if (p->restart_left < *count) *count = p->restart_left;
    p->restart_left -= *count;
    return rc;
}

static void begin_scan(mri_progressive *p)
{
    p->restart_left = p->pass.restart_interval;
    p->restart_next = 0;
    p->run.ends = 0;
    p->run.bad = false;
    memset(p->dc, 0, sizeof p->dc);
    feed_begin(p, p->pass.begin);
}

/* ---- AC scans ---- */

static int ac_blocks(mri_progressive *p, uint32_t count, mr_error *err)
{
    while (count > 0) {
        uint32_t some = count;
        const int rc = until_restart(p, &some, err);
        if (rc) return rc;
        count -= some;
        while (some > 0) {
            some -= mri_pass_blocks(&p->run, some);
            if (p->run.bad || ran_over(p)) return odd(p, err);
            if (some > 0) feed_more(p);
        }
    }
    return MR_OK;
}

static int read_ac(mri_progressive *p, mr_error *err)
{
    const mri_jpeg_pass *s = &p->pass;
    const uint32_t which = s->component[0].component;
    const mri_jpeg_component *c = &p->frame.component[which];
    const mri_block_window *w = &p->window[which];
    struct blocks *b = &p->blocks[which];
    const uint32_t pitch = w->x1 - w->x0;
    if (!s->component[0].ac ||
        !mri_pass_table_build(&p->ac_table, s->component[0].ac, s->high ? 1 : 15u - s->low))
        return odd(p, err);
    begin_scan(p);
    p->run.table = &p->ac_table;
    p->run.first = s->first;
    p->run.last = s->last;
    p->run.low = s->low;
    p->run.refine = s->high > 0;
    for (uint32_t y = 0; y < w->y1; y++) {
        p->run.mask = (uint64_t *)(void *)b->mask.data + (size_t)y * c->blocks_wide;
        p->run.x = 0u - w->x0;
        p->run.wide = y >= w->y0 ? pitch : 0;
        if (y >= w->y0)
            p->run.coef = (int16_t(*)[MRI_JPEG_BLOCK])(void *)b->coef.data + (size_t)(y - w->y0) * pitch;
        const int rc = ac_blocks(p, y + 1 < w->y1 ? c->blocks_wide : w->x1, err);
        if (rc) return rc;
    }
    const bool all = w->y1 == c->blocks_high && w->x1 == c->blocks_wide;
    return all && !at_end(p) ? odd(p, err) : MR_OK;
}

/* ---- DC scans ---- */

/* The blocks of one component in an MCU of row my; h x v of them. */
static void aim(mri_progressive *p, struct dc_block *b, uint32_t which, const mri_huff_dc *table, uint32_t my,
                uint32_t h, uint32_t v)
{
    const mri_block_window *w = &p->window[which];
    const uint32_t pitch = w->x1 - w->x0;
    for (uint32_t y = my * v; y < my * v + v; y++) {
        const bool wanted = y >= w->y0 && y < w->y1;
        int16_t(*coef)[MRI_JPEG_BLOCK] = (int16_t(*)[MRI_JPEG_BLOCK])(void *)p->blocks[which].coef.data;
        if (wanted) coef += (size_t)(y - w->y0) * pitch;
        for (uint32_t k = 0; k < h; k++)
            *b++ = (struct dc_block){.table = table,
                                     .prediction = &p->dc[which],
                                     .coef = coef,
                                     .x = k - w->x0,
                                     .step = h,
                                     .wide = wanted ? pitch : 0};
    }
}

/* Returns false for a bad code. */
static bool dc_mcu(mri_progressive *p, mri_bits *in)
{
    const unsigned low = p->pass.low;
    for (struct dc_block *b = p->mcu; b < p->mcu + p->mcu_blocks; b++) {
        const uint32_t x = b->x;
        b->x = x + b->step;
        if (p->pass.high) {
            mri_bits_load(in);
            const unsigned bit = (unsigned)(in->window >> 63);
            mri_bits_drop(in, 1);
            if (x < b->wide) b->coef[x][0] = (int16_t)(b->coef[x][0] | (int)(bit << low));
            continue;
        }
        if (!dc_step(in, b->table, b->prediction)) return false;
        if (x < b->wide) b->coef[x][0] = (int16_t)((uint32_t)*b->prediction << low);
    }
    return true;
}

static int dc_mcus(mri_progressive *p, uint32_t count, mr_error *err)
{
    while (count > 0) {
        uint32_t some = count;
        const int rc = until_restart(p, &some, err);
        if (rc) return rc;
        count -= some;
        while (some > 0) {
            mri_bits in = p->run.bits;
            while (some > 0 && in.from <= p->run.limit) {
                if (!dc_mcu(p, &in)) return odd(p, err);
                some--;
            }
            p->run.bits = in;
            if (ran_over(p)) return odd(p, err);
            if (some > 0) feed_more(p);
        }
    }
    for (uint32_t k = 0; k < COMPONENTS; k++)
        if (p->dc[k] > FAR_DC || p->dc[k] < -FAR_DC) return odd(p, err);
    return MR_OK;
}

static int read_dc(mri_progressive *p, mr_error *err)
{
    const mri_jpeg_pass *s = &p->pass;
    const mri_jpeg_frame *f = &p->frame;
    const bool alone = s->component_count == 1;
    const mri_jpeg_component *first = &f->component[s->component[0].component];
    const uint32_t wide = alone ? first->blocks_wide : f->mcus_wide,
                   high = alone ? first->blocks_high : f->mcus_high;
    uint32_t rows = 0;
    for (uint32_t k = 0; k < s->component_count; k++) {
        const uint32_t which = s->component[k].component, v = alone ? 1 : f->component[which].v;
        const mri_block_window *w = &p->window[which];
        const uint32_t need = w->x0 < w->x1 ? (w->y1 + v - 1) / v : 0;
        if (need > rows) rows = need;
        const uint8_t *spec = s->component[k].dc;
        if (s->high == 0 && (!spec || (!mri_huff_is(&p->dc_table[k].codes, spec) &&
                                       !mri_huff_dc_build(&p->dc_table[k], spec))))
            return odd(p, err);
    }
    begin_scan(p);
    for (uint32_t y = 0; y < rows; y++) {
        p->mcu_blocks = 0;
        for (uint32_t k = 0; k < s->component_count; k++) {
            const uint32_t which = s->component[k].component;
            const uint32_t h = alone ? 1 : f->component[which].h, v = alone ? 1 : f->component[which].v;
            aim(p, p->mcu + p->mcu_blocks, which, &p->dc_table[k], y, h, v);
            p->mcu_blocks += h * v;
        }
        const int rc = dc_mcus(p, wide, err);
        if (rc) return rc;
    }
    return rows == high && !at_end(p) ? odd(p, err) : MR_OK;
}

/* ---- all scans ---- */

static bool wanted(const mri_progressive *p)
{
    for (uint32_t k = 0; k < p->pass.component_count; k++) {
        const mri_block_window *w = &p->window[p->pass.component[k].component];
        if (w->x0 < w->x1 && w->y0 < w->y1) return true;
    }
    return false;
}

/* Do these bits come next, of coefficients whose first bits are there? */
static bool in_order(mri_progressive *p)
{
    const mri_jpeg_pass *s = &p->pass;
    for (uint32_t k = 0; k < s->component_count; k++) {
        int8_t *level = p->blocks[s->component[k].component].level;
        if (s->first > 0 && level[0] == UNSEEN) return false;
        for (unsigned at = s->first; at <= s->last; at++) {
            if (level[at] != (s->high ? s->high : UNSEEN)) return false;
            level[at] = (int8_t)s->low;
        }
    }
    return true;
}

static int read_scans(mri_progressive *p, mr_error *err)
{
    size_t from = 0;
    for (uint32_t count = 1;; count++) {
        bool end;
        int rc = mri_jpeg_passes_next(&p->walk, &p->frame, from, &p->pass, &end, err);
        if (rc) return mr_error_set(err, MR_EUNSUPPORTED, "JPEG: markers that are odd or damaged");
        if (end) return MR_OK;
        p->next = p->pass.begin;
        if (count > p->max_scans || !in_order(p)) return odd(p, err);
        if (wanted(p)) rc = p->pass.first > 0 ? read_ac(p, err) : read_dc(p, err);
        if (rc) return rc;
        from = p->next;
    }
}

static int make_room(mri_progressive *p, mr_error *err)
{
    const mri_jpeg_frame *f = &p->frame;
    uint64_t all = 0;
    size_t coef[COMPONENTS] = {0}, mask[COMPONENTS] = {0};
    for (uint32_t k = 0; k < f->component_count; k++) {
        const mri_block_window *w = &p->window[k];
        if (w->x0 == w->x1 || w->y0 == w->y1) continue;
        coef[k] = (size_t)(w->x1 - w->x0) * (w->y1 - w->y0) * MRI_JPEG_BLOCK * sizeof(int16_t);
        mask[k] = (size_t)f->component[k].blocks_wide * w->y1 * sizeof(uint64_t);
        all += coef[k] + mask[k];
    }
    if (all > mri_jpeg_coefficient_bound((uint64_t)f->width * f->height)) return odd(p, err);
    for (uint32_t k = 0; k < f->component_count; k++) {
        struct blocks *b = &p->blocks[k];
        memset(b->level, UNSEEN, sizeof b->level);
        if (mri_buffer_need(&b->coef, coef[k]) || mri_buffer_need(&b->mask, mask[k]))
            return mr_error_set(err, MR_ENOMEM, "JPEG: no memory for the coefficients of %u x %u pixels",
                                f->width, f->height);
        if (coef[k]) memset(b->coef.data, 0, coef[k]);
        if (mask[k]) memset(b->mask.data, 0, mask[k]);
    }
    return MR_OK;
}

int mri_progressive_window(mri_progressive *p, const mri_block_window *window, mr_error *err)
{
    for (uint32_t k = 0; k < p->frame.component_count; k++) {
        const mri_jpeg_component *c = &p->frame.component[k];
        const mri_block_window *w = &window[k];
        if (w->x0 > w->x1 || w->x1 > c->blocks_wide || w->y0 > w->y1 || w->y1 > c->blocks_high)
            return mr_error_set(
                err, MR_EINVAL,
                "JPEG: window of columns %u to %u, rows %u to %u in %u x %u blocks of component %u", w->x0,
                w->x1, w->y0, w->y1, c->blocks_wide, c->blocks_high, k);
        p->window[k] = *w;
    }
    p->walk = p->first;
    const int rc = make_room(p, err);
    return rc ? rc : read_scans(p, err);
}

int mri_progressive_open(mri_progressive *p, const void *data, size_t bytes, uint32_t max_scans,
                         const mri_jpeg_frame **frame, mr_error *err)
{
    p->data = data;
    p->bytes = bytes;
    p->max_scans = max_scans;
    memset(p->window, 0, sizeof p->window);
    if (mri_jpeg_passes_open(&p->first, &p->frame, data, bytes, NULL))
        return mr_error_set(err, MR_EUNSUPPORTED, "JPEG: no ordinary progressive picture");
    if (!mri_jpeg_has_end_marker(p->data + p->first.at, bytes - p->first.at)) return odd(p, err);
    *frame = &p->frame;
    return MR_OK;
}

void mri_progressive_rows(const mri_progressive *p, uint32_t mcu_row, const mri_block_rows *out)
{
    for (uint32_t k = 0; k < p->frame.component_count; k++) {
        const mri_block_window *w = &p->window[k];
        const struct blocks *b = &p->blocks[k];
        const mri_jpeg_component *c = &p->frame.component[k];
        const uint32_t pitch = w->x1 - w->x0, first = w->y0 > mcu_row * c->v ? w->y0 : mcu_row * c->v,
                       end = w->y1 < (mcu_row + 1) * c->v ? w->y1 : (mcu_row + 1) * c->v;
        for (uint32_t y = first; pitch > 0 && y < end; y++) {
            const size_t to = (size_t)(y - first) * pitch;
            const uint64_t *mask =
                (const uint64_t *)(const void *)b->mask.data + (size_t)y * c->blocks_wide + w->x0;
            memcpy(out[k].coef + to,
                   (const int16_t(*)[MRI_JPEG_BLOCK])(const void *)b->coef.data + (size_t)(y - w->y0) * pitch,
                   (size_t)pitch * MRI_JPEG_BLOCK * sizeof(int16_t));
            for (uint32_t x = 0; x < pitch; x++)
                out[k].last[to + x] = (uint8_t)(63 - __builtin_clzll(mask[x] | 1));
        }
    }
}
