/* pipeline/decode/jpeg/entropy.c: windows of coefficients out of the scans of a sequential JPEG; see
 * entropy.h.
 *
 * Each scan has a cursor. For a row of MCUs a cursor first goes to its first wanted MCU: through everything
 * before it, or from the nearest entry point. It stops after the last wanted one, and passes the rest of the
 * row when a further row is wanted.
 *
 *   . . . . . . .     . passed, or skipped with entry points
 *   . . . # # # .     # stored
 *   . . . # # # -     - never looked at
 *   - - - - - - -
 *
 * A scan of one component has MCUs of one block, and v of its rows make a row of the frame (T.81, A.2). */
#include "pipeline/decode/jpeg/entropy.h"

#include "pipeline/decode/jpeg/scan/cursor.h"
#include "pipeline/decode/jpeg/scan/lanes.h"
#include "pipeline/pixels/pixels.h"

#define SKIM_BLOCKS  512   /* as long as this takes to skim, it takes to make the tables for it */
#define LEAP_BLOCKS  1024  /* fewer are read by the cursor */
#define ABOVE_BLOCKS 4096  /* above the crop, from which on skimming them first is faster than storing all */
#define NOTED_MOST   4096  /* entry points of a picture of 12 megapixels, 4:2:0 */
#define LARGE_PIXELS 16384 /* smaller pictures are decoded without lanes, and have no entry points noted */
#define TABLES       4 /* a picture needs 3 of a kind; the rest outlive it, for pictures with the same ones */

struct mri_entropy {
    mri_jpeg_layout layout;
    mri_jpeg_entries entries;
    const uint8_t *data;
    size_t bytes;
    bool with_entries, with_lanes;
    bool ahead;        /* lanes read this picture ahead, without entry points */
    bool leaps;        /* and are still worth it */
    uint32_t next_row; /* MCU row from which on rows may be asked for, where lanes decode */
    mri_lanes *lanes;  /* NULL: not needed so far */
    uint64_t lane_rows;
    mri_buffer noted; /* entry points of this picture */
    bool notes;
    mri_block_window window[MRI_JPEG_MAX_COMPONENTS];
    mri_cursor cursor[MRI_JPEG_ENTRY_COMPONENTS]; /* of each scan */
    uint64_t picture;                             /* count of opens */
    uint64_t ac_used[TABLES], dc_used[TABLES];    /* picture that last did */
    mri_huff_ac ac[TABLES];
    mri_huff_dc dc[TABLES];
};

int mri_entropy_create(mri_entropy **out)
{
    mri_entropy *e = mri_alloc_aligned(_Alignof(mri_entropy), sizeof *e);
    *out = e;
    if (!e) return MR_ENOMEM;
    memset(e, 0, sizeof *e);
    return MR_OK;
}

void mri_entropy_destroy(mri_entropy *e)
{
    if (!e) return;
    mri_lanes_destroy(e->lanes);
    mri_buffer_free(&e->noted);
    free(e);
}

uint64_t mri_entropy_bytes(uint64_t pixels)
{
    if (pixels < LARGE_PIXELS) return sizeof(mri_entropy);
    return sizeof(mri_entropy) + NOTED_MOST * sizeof(mri_jpeg_entry) +
           (mri_lanes_supported() ? mri_lanes_bytes() : 0);
}

static bool is_large(const mri_jpeg_frame *f) { return (uint64_t)f->width * f->height >= LARGE_PIXELS; }

uint64_t mri_entropy_lane_rows(const mri_entropy *e) { return e->lane_rows; }

/* ---- opening ---- */

static uint32_t oldest(const uint64_t *used)
{
    uint32_t least = 0;
    for (uint32_t k = 1; k < TABLES; k++)
        if (used[k] < used[least]) least = k;
    return least;
}

static int bad_table(const char *kind, mr_error *err)
{
    return mr_error_set(err, MR_EFORMAT, "JPEG: a %s Huffman table that is no prefix code: damaged", kind);
}

static int find_dc(mri_entropy *e, const uint8_t *spec, const mri_huff_dc **out, mr_error *err)
{
    uint32_t k = 0;
    while (k < TABLES && !mri_huff_is(&e->dc[k].codes, spec)) k++;
    if (k == TABLES) {
        k = oldest(e->dc_used);
        if (!mri_huff_dc_build(&e->dc[k], spec)) return bad_table("DC", err);
    }
    e->dc_used[k] = e->picture;
    *out = &e->dc[k];
    return MR_OK;
}

static int find_ac(mri_entropy *e, const uint8_t *spec, const mri_huff_ac **out, mr_error *err)
{
    uint32_t k = 0;
    while (k < TABLES && !mri_huff_is(&e->ac[k].codes, spec)) k++;
    if (k == TABLES) {
        k = oldest(e->ac_used);
        if (!mri_huff_ac_build(&e->ac[k], spec)) return bad_table("AC", err);
    }
    e->ac_used[k] = e->picture;
    *out = &e->ac[k];
    return MR_OK;
}

static int start_scan(mri_entropy *e, uint32_t idx, mr_error *err)
{
    const mri_jpeg_frame *f = &e->layout.frame;
    const mri_jpeg_scan *s = &e->layout.scan[idx];
    mri_cursor *c = &e->cursor[idx];
    mri_cursor_start(c, e->data, s);
    const bool alone = s->component_count == 1;
    const mri_jpeg_component *first = &f->component[s->component[0].component];
    c->wide = alone ? first->blocks_wide : f->mcus_wide;
    c->high = alone ? first->blocks_high : f->mcus_high;
    c->total = (uint64_t)c->wide * c->high;
    c->run.block_count = 0;
    for (uint32_t k = 0; k < s->component_count; k++) {
        const mri_jpeg_component *component = &f->component[s->component[k].component];
        const uint32_t blocks = alone ? 1 : (uint32_t)component->h * component->v;
        mri_run_block b = {.prediction = &c->dc[k], .step = alone ? 1 : component->h};
        int rc = find_dc(e, s->component[k].dc, &b.dc, err);
        if (rc == MR_OK) rc = find_ac(e, s->component[k].ac, &b.ac, err);
        if (rc) return rc;
        for (uint32_t n = 0; n < blocks; n++) c->run.block[c->run.block_count++] = b;
    }
    return MR_OK;
}

/* Are there lanes for this picture? */
static bool open_lanes(mri_entropy *e)
{
    const mri_cursor *c = &e->cursor[0];
    const bool has = mri_lanes_supported() && is_large(&e->layout.frame) &&
                     (e->lanes || mri_lanes_create(&e->lanes) == MR_OK);
    if (has)
        mri_lanes_open(e->lanes, &(mri_lanes_picture){.data = e->data,
                                                      .scan = c->scan,
                                                      .entries = &e->entries,
                                                      .block = c->run.block,
                                                      .ac = e->ac,
                                                      .dc = e->dc,
                                                      .prediction = c->dc,
                                                      .block_count = c->run.block_count,
                                                      .wide = c->wide,
                                                      .high = c->high});
    return has;
}

int mri_entropy_open(mri_entropy *e, const void *data, size_t bytes, const void *entries,
                     size_t entries_bytes, const mri_jpeg_frame **frame, mr_error *err)
{
    e->data = data;
    e->bytes = bytes;
    e->with_entries = e->with_lanes = e->ahead = e->leaps = e->notes = false;
    e->next_row = 0;
    e->picture++;
    memset(e->window, 0, sizeof e->window);
    int rc = mri_jpeg_layout_parse(&e->layout, data, bytes, err);
    for (uint32_t k = 0; rc == MR_OK && k < e->layout.scan_count; k++) rc = start_scan(e, k, err);
    if (rc == MR_OK && entries) {
        rc = mri_jpeg_entries_open(&e->entries, entries, entries_bytes, &e->layout, data, bytes, err);
        if (rc == MR_OK) e->cursor[0].expected_entry = mri_jpeg_entries_row(&e->entries, 0);
        e->cursor[0].entries = &e->entries;
        e->cursor[0].marking = true;
        e->with_entries = true;
        if (rc == MR_OK) e->with_lanes = open_lanes(e);
    } else if (rc == MR_OK && e->layout.scan_count == 1) {
        e->ahead = e->leaps = open_lanes(e);
        e->cursor[0].marking = e->leaps;
    }
    if (rc) {
        e->layout.scan_count = 0;
        return rc;
    }
    *frame = &e->layout.frame;
    return MR_OK;
}

int mri_entropy_window(mri_entropy *e, const mri_block_window *window, mr_error *err)
{
    for (uint32_t k = 0; k < e->layout.frame.component_count; k++) {
        const mri_jpeg_component *c = &e->layout.frame.component[k];
        const mri_block_window *w = &window[k];
        if (w->x0 > w->x1 || w->x1 > c->blocks_wide || w->y0 > w->y1 || w->y1 > c->blocks_high)
            return mr_error_set(
                err, MR_EINVAL,
                "JPEG: window of columns %u to %u, rows %u to %u in %u x %u blocks of component %u", w->x0,
                w->x1, w->y0, w->y1, c->blocks_wide, c->blocks_high, k);
        e->window[k] = *w;
    }
    return MR_OK;
}

void mri_entropy_only_dc(mri_entropy *e)
{
    for (uint32_t k = 0; k < e->layout.scan_count; k++) {
        mri_cursor *c = &e->cursor[k];
        for (uint32_t n = 0; n < c->run.block_count; n++)
            mri_huff_skim_build(&e->ac[c->run.block[n].ac - e->ac]);
        c->only_dc = true;
    }
    if (e->lanes) mri_lanes_only_dc(e->lanes);
}

/* ---- rows ---- */

typedef mri_lanes_span mcu_span; /* of a scan's row; none when from == to */

static bool wants(const mri_block_window *w, uint32_t row)
{
    return w->x0 < w->x1 && row >= w->y0 && row < w->y1;
}

static void add_span(mcu_span *s, const mri_block_window *w, uint32_t h)
{
    const uint32_t from = w->x0 / h, to = (w->x1 + h - 1) / h;
    if (s->from == s->to) *s = (mcu_span){from, to};
    if (from < s->from) s->from = from;
    if (to > s->to) s->to = to;
}

/* Tell the blocks of one component where they go: row is the component's row of its first block in the MCU,
 * first the one that out begins with; n rows of h blocks. */
static void aim(mri_run_block *b, const mri_block_window *w, const mri_block_rows *out, uint32_t row,
                uint32_t first, uint32_t h, uint32_t n, mcu_span *span)
{
    for (uint32_t v = 0; v < n; v++, row++) {
        const bool wanted = wants(w, row);
        if (wanted) add_span(span, w, h);
        for (uint32_t k = 0; k < h; k++, b++) {
            b->wide = wanted ? w->x1 - w->x0 : 0;
            b->x = k - w->x0;
            if (!wanted) continue;
            const size_t line = (size_t)(row - first) * out->pitch;
            b->coef = out->coef + line;
            b->last = out->last + line;
        }
    }
}

/* Towards MCU number to in lanes that skim or store, as far as one batch of them leads. */
static int leap_once(mri_entropy *e, mri_cursor *c, uint64_t to, bool store, mr_error *err)
{
    mri_jpeg_entry here;
    const int rc = mri_cursor_place(c, &here, err);
    if (rc) return rc;
    const uint64_t from = c->at, at = store
                                          ? mri_lanes_ahead(e->lanes, &here, from, to, c->noted, c->noted_gap)
                                          : mri_lanes_skim(e->lanes, &here, from, to, c->noted, c->noted_gap);
    e->leaps = (at - from) * c->run.block_count >= LEAP_BLOCKS / 4;
    return at > from ? mri_cursor_enter(c, &here, at, store ? 0 : MRI_FEED_BYTES, err) : MR_OK;
}

static bool leap_pays(const mri_entropy *e, const mri_cursor *c, uint64_t to, uint32_t blocks)
{
    return e->leaps && to > c->at && (to - c->at) * c->run.block_count >= blocks;
}

/* Towards MCU number to in lanes, as long as they are faster. */
static int leap(mri_entropy *e, mri_cursor *c, uint64_t to, uint32_t blocks, mr_error *err)
{
    int rc = MR_OK;
    while (rc == MR_OK && leap_pays(e, c, to, blocks)) rc = leap_once(e, c, to, false, err);
    return rc;
}

/* Onward to MCU number to, the slow way. */
static int go(mri_entropy *e, mri_cursor *c, uint64_t to, mr_error *err)
{
    if (c->at < to && !c->skim && !c->only_dc)
        for (uint32_t k = 0; k < c->run.block_count; k++)
            mri_huff_windows_build(&e->ac[c->run.block[k].ac - e->ac]);
    return mri_cursor_go(c, to, err);
}

/* Onward to MCU number to, storing nothing. */
static int skim(mri_entropy *e, mri_cursor *c, uint64_t to, mr_error *err)
{
    const int leapt = leap(e, c, to, LEAP_BLOCKS, err);
    if (leapt) return leapt;
    const uint64_t blocks = (to - c->at) * c->run.block_count;
    c->skim = true;
    for (uint32_t k = 0; k < c->run.block_count; k++) {
        mri_huff_ac *t = &e->ac[c->run.block[k].ac - e->ac];
        if (blocks >= SKIM_BLOCKS) mri_huff_skim_build(t);
        c->skim &= t->skims;
        c->run.block[k].wide = 0;
    }
    const int rc = go(e, c, to, err);
    c->skim = false;
    return rc;
}

/* To MCU number to, storing nothing; entry points may shorten the way. hint: MCUs of this row that will be
 * wanted from there. */
static int pass(mri_entropy *e, mri_cursor *c, uint64_t to, uint32_t hint, mr_error *err)
{
    if (e->with_entries) {
        const mri_jpeg_entries *t = &e->entries;
        const uint32_t row = (uint32_t)(to / c->wide), idx = (uint32_t)(to % c->wide) / t->gap;
        const uint64_t at = (uint64_t)row * c->wide + (uint64_t)idx * t->gap;
        if (at > c->at) {
            mri_jpeg_entry entry = mri_jpeg_entries_row(t, row), next;
            for (uint32_t k = 0; k < idx; k++) mri_jpeg_entries_next(t, row, k, &entry);
            const uint32_t last = ((uint32_t)(to % c->wide) + hint + t->gap - 1) / t->gap;
            next = entry;
            for (uint32_t k = idx; k < last && k + 1 < t->per_row; k++)
                mri_jpeg_entries_next(t, row, k, &next);
            const uint64_t ahead =
                last < t->per_row && next.bit > entry.bit ? (next.bit - entry.bit) / 8 + 64 : MRI_FEED_BYTES;
            const int rc = mri_cursor_enter(c, &entry, at, (size_t)ahead, err);
            if (rc) return rc;
        }
    }
    return skim(e, c, to, err);
}

static int backwards(uint32_t mcu_row, mr_error *err)
{
    return mr_error_set(err, MR_EINVAL, "JPEG: row %u of MCUs was requested after a later one, or again",
                        mcu_row);
}

/* ---- rows in lanes ---- */

/* Wanted MCUs of a row of the one scan that has them all. */
static mcu_span row_span(const mri_entropy *e, uint32_t row)
{
    mcu_span span = {0, 0};
    for (uint32_t k = 0; k < e->layout.frame.component_count; k++) {
        const mri_jpeg_component *c = &e->layout.frame.component[k];
        const mri_block_window *w = &e->window[k];
        for (uint32_t v = 0; v < c->v; v++)
            if (wants(w, row * c->v + v)) add_span(&span, w, c->h);
    }
    return span;
}

/* The aimed row, by lanes; false: by the cursor. */
static bool lanes_row(mri_entropy *e, const mri_cursor *c, uint32_t row)
{
    if (!mri_lanes_has(e->lanes, row)) {
        mcu_span span[MRI_LANE_ROWS];
        uint32_t count = 0;
        while (count < MRI_LANE_ROWS && row + count < c->high) {
            span[count] = row_span(e, row + count);
            if (span[count].from == span[count].to) break;
            count++;
        }
        e->with_lanes = mri_lanes_decode(e->lanes, row, span, count);
    }
    const bool good = mri_lanes_has(e->lanes, row) && mri_lanes_row(e->lanes, row, c->run.block);
    e->lane_rows += good;
    return good;
}

/* After the picture's last MCU, decoded by lanes: the cursor goes there as well, since what follows is its to
 * judge. */
static int follow(mri_entropy *e, mri_cursor *c, mr_error *err)
{
    const int rc = pass(e, c, c->total - 1, 1, err);
    return rc ? rc : skim(e, c, c->total, err);
}

/* ---- rows read ahead ---- */

/* The MCU after the last one that is wanted. */
static uint64_t wanted_end(const mri_entropy *e, const mri_cursor *c)
{
    const mri_jpeg_scan *s = c->scan;
    uint32_t rows = 0, columns = 0;
    for (uint32_t k = 0; k < s->component_count; k++) {
        const mri_jpeg_component *component = &e->layout.frame.component[s->component[k].component];
        const mri_block_window *w = &e->window[s->component[k].component];
        const bool alone = s->component_count == 1;
        const uint32_t h = alone ? 1 : component->h, v = alone ? 1 : component->v;
        if (w->x0 == w->x1 || w->y0 == w->y1) continue;
        if ((w->y1 + v - 1) / v > rows) rows = (w->y1 + v - 1) / v;
        if ((w->x1 + h - 1) / h > columns) columns = (w->x1 + h - 1) / h;
    }
    return rows ? (uint64_t)(rows - 1) * c->wide + columns : 0;
}

/* The aimed row, by lanes that read ahead, from column span->from on, which goes to the first column that is
 * left for the cursor. */
static int row_ahead(mri_entropy *e, mri_cursor *c, uint32_t row, mcu_span *span, mr_error *err)
{
    const uint64_t start = (uint64_t)row * c->wide, end = wanted_end(e, c);
    uint64_t at = start + span->from;
    mri_run_block aimed[MRI_MCU_BLOCKS];
    memcpy(aimed, c->run.block, c->run.block_count * sizeof aimed[0]);
    int rc = MR_OK;
    for (bool more = true; rc == MR_OK && more;) {
        at = mri_lanes_store(e->lanes, at, start + span->to, aimed);
        more = at < start + span->to && leap_pays(e, c, end, LEAP_BLOCKS);
        if (more) rc = leap(e, c, at, ABOVE_BLOCKS, err);
        if (more && rc == MR_OK && e->leaps) rc = leap_once(e, c, end, true, err);
    }
    e->lane_rows += at == start + span->to;
    span->from = (uint32_t)(at - start);
    memcpy(c->run.block, aimed, c->run.block_count * sizeof aimed[0]);
    return rc;
}

/* ---- a row ---- */

/* One row of a scan's MCUs, once aimed. */
static int scan_row(mri_entropy *e, mri_cursor *c, uint32_t row, mcu_span span, mr_error *err)
{
    if (span.from == span.to) return MR_OK;
    const uint64_t start = (uint64_t)row * c->wide;
    if ((!e->ahead && c->at > start + span.from) || row < e->next_row) return backwards(row, err);
    if (e->with_lanes || e->ahead) e->next_row = row + 1;
    if (e->ahead) {
        const int rc = row_ahead(e, c, row, &span, err);
        if (rc || span.from == span.to) return rc;
    }
    if (e->with_lanes) {
        if (lanes_row(e, c, row)) return row + 1 == c->high && span.to == c->wide ? follow(e, c, err) : MR_OK;
    }
    mri_run_block aimed[MRI_MCU_BLOCKS];
    memcpy(aimed, c->run.block, c->run.block_count * sizeof aimed[0]);
    const int rc = pass(e, c, start + span.from, span.to - span.from, err);
    if (rc) return rc;
    memcpy(c->run.block, aimed, c->run.block_count * sizeof aimed[0]);
    for (uint32_t k = 0; k < c->run.block_count; k++) c->run.block[k].x += c->run.block[k].step * span.from;
    return go(e, c, start + span.to, err);
}

static int together(mri_entropy *e, mri_cursor *c, uint32_t mcu_row, const mri_block_rows *out, mr_error *err)
{
    const mri_jpeg_scan *s = c->scan;
    mri_run_block *b = c->run.block;
    mcu_span span = {0, 0};
    for (uint32_t k = 0; k < s->component_count; k++) {
        const uint32_t which = s->component[k].component;
        const mri_jpeg_component *component = &e->layout.frame.component[which];
        const mri_block_window *w = &e->window[which];
        const uint32_t row = mcu_row * component->v, first = w->y0 > row ? w->y0 : row;
        aim(b, w, &out[which], row, first, component->h, component->v, &span);
        b += (uint32_t)component->h * component->v;
    }
    return scan_row(e, c, mcu_row, span, err);
}

static int alone(mri_entropy *e, mri_cursor *c, uint32_t mcu_row, const mri_block_rows *out, mr_error *err)
{
    const uint32_t which = c->scan->component[0].component;
    const mri_jpeg_component *component = &e->layout.frame.component[which];
    const mri_block_window *w = &e->window[which];
    const uint32_t row = mcu_row * component->v, first = w->y0 > row ? w->y0 : row;
    for (uint32_t v = 0; v < component->v && row + v < c->high; v++) {
        mcu_span span = {0, 0};
        aim(c->run.block, w, &out[which], row + v, first, 1, 1, &span);
        const int rc = scan_row(e, c, row + v, span, err);
        if (rc) return rc;
    }
    return MR_OK;
}

int mri_entropy_rows(mri_entropy *e, uint32_t mcu_row, const mri_block_rows *out, mr_error *err)
{
    if (e->layout.scan_count == 0 || mcu_row >= e->layout.frame.mcus_high)
        return mr_error_set(err, MR_EINVAL, "JPEG: row %u of MCUs; no picture is open, or it has %u", mcu_row,
                            e->layout.frame.mcus_high);
    for (uint32_t k = 0; k < e->layout.scan_count; k++) {
        mri_cursor *c = &e->cursor[k];
        const int rc = c->scan->component_count == 1 ? alone(e, c, mcu_row, out, err)
                                                     : together(e, c, mcu_row, out, err);
        if (rc) {
            e->layout.scan_count = 0; /* cursors are invalid after an error */
            return rc;
        }
    }
    return MR_OK;
}

/* A scan that was read to its last MCU must end there, and the picture after it. */
static int finish_scan(mri_entropy *e, mri_cursor *c, mr_error *err)
{
    size_t at = 0;
    const int rc = mri_cursor_finish(c, &at, err);
    if (rc) return rc;
    if (e->layout.scan_count == 1) return mri_jpeg_tail_check(e->data, e->bytes, at, err);
    while (at < c->scan->end && e->data[at] == 0xff) at++;
    if (at >= c->scan->end) return MR_OK;
    return mr_error_set(err, MR_EUNSUPPORTED,
                        "JPEG: the scan that ends at byte %zu has restart markers behind its last MCU",
                        c->scan->end);
}

int mri_entropy_end(mri_entropy *e, mr_error *err)
{
    if (e->layout.scan_count == 0)
        return mr_error_set(err, MR_EINVAL, "JPEG: no picture is open, or it failed before");
    for (uint32_t k = 0; k < e->layout.scan_count; k++) {
        mri_cursor *c = &e->cursor[k];
        const int rc = c->at == c->total ? finish_scan(e, c, err) : MR_OK;
        if (rc) return rc;
    }
    return MR_OK;
}

/* ---- entry points ---- */

static size_t entry_count(const mri_jpeg_frame *f, uint32_t gap)
{
    return (size_t)((f->mcus_wide + gap - 1) / gap) * f->mcus_high;
}

static void note_entries(mri_cursor *c, uint32_t gap, mri_jpeg_entry *entry)
{
    c->marking = true;
    c->noted = entry;
    c->noted_gap = gap;
}

/* The rest of the scan, to which entry points are noted, and its end. */
static int note_rest(mri_entropy *e, mr_error *err)
{
    mri_cursor *c = &e->cursor[0];
    if (c->total * c->run.block_count >= SKIM_BLOCKS)
        for (uint32_t k = 0; k < c->run.block_count; k++)
            mri_huff_skim_build(&e->ac[c->run.block[k].ac - e->ac]);
    const int rc = skim(e, c, c->total, err);
    return rc ? rc : finish_scan(e, c, err);
}

bool mri_entropy_note(mri_entropy *e)
{
    const size_t count = entry_count(&e->layout.frame, MRI_JPEG_ENTRY_GAP);
    e->notes = e->layout.scan_count == 1 && !e->with_entries && is_large(&e->layout.frame) &&
               count <= NOTED_MOST && mri_buffer_need(&e->noted, count * sizeof(mri_jpeg_entry)) == MR_OK;
    if (e->notes) note_entries(&e->cursor[0], MRI_JPEG_ENTRY_GAP, (mri_jpeg_entry *)(void *)e->noted.data);
    return e->notes;
}

int mri_entropy_noted(mri_entropy *e, void **out, size_t *bytes, mr_error *err)
{
    if (!e->notes || e->layout.scan_count != 1)
        return mr_error_set(err, MR_EUNSUPPORTED, "JPEG: no entry points were noted");
    const int rc = note_rest(e, err);
    e->notes = false;
    return rc ? rc
              : mri_jpeg_entries_pack(&e->layout, e->data, e->bytes, MRI_JPEG_ENTRY_GAP, e->cursor[0].noted,
                                      out, bytes, err);
}

int mri_jpeg_entries_build_gap(mri_entropy *e, const void *jpeg, size_t bytes, uint32_t gap, void **out,
                               size_t *out_bytes, mr_error *err)
{
    const mri_jpeg_frame *f;
    if (gap < 1 || gap > 255)
        return mr_error_set(err, MR_EINVAL, "entry points every %u MCUs; expected 1 to 255", gap);
    int rc = mri_entropy_open(e, jpeg, bytes, NULL, 0, &f, err);
    if (rc) return rc;
    if (e->layout.scan_count != 1)
        return mr_error_set(err, MR_EUNSUPPORTED, "JPEG: %u scans; entry points are for pictures of one",
                            e->layout.scan_count);
    const size_t count = entry_count(f, gap);
    mri_jpeg_entry *entry = calloc(count, sizeof *entry);
    if (!entry) return mr_error_set(err, MR_ENOMEM, "no memory for %zu entry points", count);
    note_entries(&e->cursor[0], gap, entry);
    rc = note_rest(e, err);
    if (rc == MR_OK) rc = mri_jpeg_entries_pack(&e->layout, jpeg, bytes, gap, entry, out, out_bytes, err);
    free(entry);
    e->layout.scan_count = 0;
    return rc;
}

int mri_jpeg_entries_build(mri_entropy *e, const void *jpeg, size_t bytes, void **out, size_t *out_bytes,
                           mr_error *err)
{
    return mri_jpeg_entries_build_gap(e, jpeg, bytes, MRI_JPEG_ENTRY_GAP, out, out_bytes, err);
}
