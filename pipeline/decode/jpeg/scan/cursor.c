/* pipeline/decode/jpeg/scan/cursor.c: see cursor.h.
 *
 *   feed   |......used......|U...................|limit.......an MCU at least.......|
 *          0             our place                                                  fill
 *
 * At the end of the data the limit is the fill itself, and ones follow it: all ones is no code, so an MCU
 * that needs more stops there, whatever the feed held before. */
#include "pipeline/decode/jpeg/scan/cursor.h"

#define FAR_DC    (1 << 30) /* a row of MCUs adds less than this; T.81 allows a few thousand */
#define CODE_BITS 16        /* the longest */
#define END_BYTES                                                                                            \
    24 /* ones after the fill: the code that begins before it, its value, and two loads ahead                \
        */
#define LIBJPEG_AHEAD_BYTES                                                                                  \
    8 /* as many bytes left over before a marker libjpeg always warns of; of fewer, by chance */

static uint64_t place(const mri_cursor *c)
{
    return 8 * (uint64_t)(c->run.bits.from - c->feed) - (uint64_t)c->run.bits.count;
}

static size_t file_place(const mri_cursor *c)
{
    const size_t ahead = (size_t)(place(c) >> 3);
    return ahead < c->fill ? c->next - (c->fill - ahead) : c->next; /* near it: stuffing is not counted */
}

/* ---- the feed ---- */

/* Load up to want bytes in all, and set the limit. There may be more already: the last load may have exceeded
 * its request. */
static void feed_load(mri_cursor *c, size_t want)
{
    size_t used;
    const size_t more = want > c->fill ? want - c->fill : 0;
    c->fill += mri_unstuff(c->data + c->next, c->scan->end - c->next, c->feed + c->fill, more, &used);
    c->next += used;
    c->ended = c->fill < want;
    if (c->ended) memset(c->feed + c->fill, 0xff, END_BYTES);
    c->run.limit = c->ended ? c->feed + c->fill + 8 : c->feed + c->fill - MRI_MCU_BYTES; /* 8: a load looks
                                                                                            ahead */
}

static void feed_begin(mri_cursor *c, size_t file_at, size_t want)
{
    c->next = c->mark_at = file_at;
    c->mark = c->fill = 0;
    c->run.bits = (mri_bits){0, 0, c->feed};
    c->begun = true;
    feed_load(c, want);
}

static void move_mark(mri_cursor *c)
{
    const size_t to = (size_t)(place(c) >> 3);
    if (c->marking) c->mark_at += to - c->mark + mri_count_ff(c->feed + c->mark, to - c->mark);
    c->mark = to;
}

static void bits_begin(mri_cursor *c, unsigned skip)
{
    c->run.bits = (mri_bits){0, 0, c->feed};
    mri_bits_load(&c->run.bits);
    mri_bits_drop(&c->run.bits, skip);
}

/* Our place to the front, the rest of the feed filled up. Not past the fill. */
static void feed_more(mri_cursor *c)
{
    const unsigned skip = place(c) & 7;
    move_mark(c);
    memmove(c->feed, c->feed + c->mark, c->fill - c->mark);
    c->fill -= c->mark;
    c->mark = 0;
    feed_load(c, MRI_FEED_BYTES);
    bits_begin(c, skip);
}

/* ---- errors ---- */

/* FF FF 00: fill bytes belong before markers; libjpeg takes this for one FF of data. */
static bool stopped_by_fill(const mri_cursor *c)
{
    size_t at = c->next;
    while (at < c->scan->end && c->data[at] == 0xff) at++;
    return c->ended && at > c->next && at < c->scan->end && c->data[at] == 0;
}

static int fill_inside(const mri_cursor *c, mr_error *err)
{
    return mr_error_set(err, MR_EUNSUPPORTED, "JPEG: fill bytes inside entropy-coded data at byte %zu",
                        c->next);
}

/* The verdict must not depend on how far the feed has been loaded. */
static int bad_data(const mri_cursor *c, mr_error *err)
{
    const bool at_end = c->ended && place(c) + CODE_BITS > 8 * (uint64_t)c->fill;
    if (at_end && stopped_by_fill(c)) return fill_inside(c, err);
    if (at_end)
        return mr_error_set(err, MR_EFORMAT,
                            "JPEG: MCU %llu of %llu runs over the end of its entropy-coded data at byte %zu: "
                            "damaged or truncated",
                            (unsigned long long)c->at, (unsigned long long)c->total, c->next);
    return mr_error_set(err, MR_EFORMAT,
                        "JPEG: MCU %llu of %llu has bits that are no Huffman code, near byte %zu: damaged",
                        (unsigned long long)c->at, (unsigned long long)c->total, file_place(c));
}

static int disagree(const mri_cursor *c, mr_error *err)
{
    return mr_error_set(
        err, MR_EFORMAT,
        "JPEG: entry points disagree with the picture at MCU %llu of %llu, near byte %zu: make them anew",
        (unsigned long long)c->at, (unsigned long long)c->total, file_place(c));
}

/* ---- markers ---- */

/* After the last MCU before a marker: find the marker's offset, if nothing is between. */
static int find_marker(mri_cursor *c, size_t *at, mr_error *err)
{
    if (!c->ended) feed_more(c);
    const size_t left = c->fill - (size_t)((place(c) + 7) >> 3);
    if (left >= LIBJPEG_AHEAD_BYTES)
        return mr_error_set(
            err, MR_EFORMAT,
            "JPEG: expected a marker behind MCU %llu of %llu, near byte %zu; found more data: damaged",
            (unsigned long long)c->at, (unsigned long long)c->total, file_place(c));
    if (stopped_by_fill(c)) return fill_inside(c, err);
    if (left > 0)
        return mr_error_set(err, MR_EUNSUPPORTED,
                            "JPEG: %zu bytes too many behind MCU %llu of %llu, before byte %zu", left,
                            (unsigned long long)c->at, (unsigned long long)c->total, c->next);
    *at = c->next;
    return MR_OK;
}

static int take_restart(mri_cursor *c, mr_error *err)
{
    size_t at = 0;
    const int rc = find_marker(c, &at, err);
    if (rc) return rc;
    while (at < c->scan->end && c->data[at] == 0xff) at++;
    if (at == c->scan->end || c->data[at] != 0xd0 + c->restart_next)
        return mr_error_set(err, MR_EFORMAT,
                            "JPEG: expected restart marker %u behind MCU %llu, at byte %zu: damaged",
                            c->restart_next, (unsigned long long)c->at, c->next);
    c->restart_next = (c->restart_next + 1) & 7;
    c->restart_left = c->scan->restart_interval;
    memset(c->dc, 0, sizeof c->dc);
    feed_begin(c, at + 1, MRI_FEED_BYTES);
    return MR_OK;
}

static bool restart_due(const mri_cursor *c) { return c->scan->restart_interval && c->restart_left == 0; }

int mri_cursor_finish(mri_cursor *c, size_t *at, mr_error *err) { return find_marker(c, at, err); }

/* ---- going on ---- */

void mri_cursor_start(mri_cursor *c, const void *data, const mri_jpeg_scan *scan)
{
    c->data = data;
    c->scan = scan;
    c->entries = NULL;
    c->marking = c->skim = c->only_dc = false;
    c->noted = NULL;
    c->at = 0;
    c->restart_left = scan->restart_interval;
    c->restart_next = 0;
    memset(c->dc, 0, sizeof c->dc);
    c->run.bad = false;
    c->begun = false; /* the first bytes are fetched when the first MCU is asked for */
}

int mri_cursor_enter(mri_cursor *c, const mri_jpeg_entry *entry, uint64_t at, size_t ahead, mr_error *err)
{
    const uint64_t byte = entry->bit >> 3;
    const size_t want = ahead < MRI_FEED_BYTES - MRI_MCU_BYTES ? ahead + MRI_MCU_BYTES : MRI_FEED_BYTES;
    c->at = at;
    c->expected_entry = *entry;
    if (byte < c->scan->begin || byte >= c->scan->end) return disagree(c, err);
    const uint32_t interval = c->scan->restart_interval;
    if (interval) {
        c->restart_left = interval - (uint32_t)(at % interval);
        c->restart_next = at / interval & 7;
    }
    memcpy(c->dc, entry->dc, sizeof entry->dc);
    feed_begin(c, (size_t)byte, want);
    bits_begin(c, entry->bit & 7);
    return MR_OK;
}

int mri_cursor_place(mri_cursor *c, mri_jpeg_entry *out, mr_error *err)
{
    if (!c->begun) feed_begin(c, c->scan->begin, MRI_FEED_BYTES);
    if (restart_due(c)) {
        const int rc = take_restart(c, err);
        if (rc) return rc;
    }
    move_mark(c);
    out->bit = 8 * (uint64_t)c->mark_at + (place(c) & 7);
    memcpy(out->dc, c->dc, sizeof out->dc);
    return MR_OK;
}

/* An entry point stands here: is it right? */
static int compare(mri_cursor *c, mr_error *err)
{
    const uint32_t row = (uint32_t)(c->at / c->wide), idx = (uint32_t)(c->at % c->wide) / c->entries->gap;
    mri_jpeg_entry here;
    if (idx == 0) c->expected_entry = mri_jpeg_entries_row(c->entries, row);
    else
        mri_jpeg_entries_next(c->entries, row, idx - 1, &c->expected_entry); /* decoding passes all of a row,
                                                                      from the one it began with */
    const int rc = mri_cursor_place(c, &here, err);
    if (rc) return rc;
    bool same = here.bit == c->expected_entry.bit;
    for (uint32_t k = 0; k < c->scan->component_count; k++) same &= here.dc[k] == c->expected_entry.dc[k];
    return same ? MR_OK : disagree(c, err);
}

/* MCUs that one run may do: to end, to the next restart, entry point or row. */
static uint32_t span(const mri_cursor *c, uint64_t end)
{
    const uint32_t column = (uint32_t)(c->at % c->wide);
    uint32_t count = c->wide - column;
    if (end - c->at < count) count = (uint32_t)(end - c->at);
    if (c->scan->restart_interval && c->restart_left < count) count = c->restart_left;
    if (c->entries && c->entries->gap - column % c->entries->gap < count)
        count = c->entries->gap - column % c->entries->gap;
    if (c->noted && c->noted_gap - column % c->noted_gap < count)
        count = c->noted_gap - column % c->noted_gap;
    return count;
}

static int note(mri_cursor *c, mr_error *err)
{
    const uint32_t row = (uint32_t)(c->at / c->wide), column = (uint32_t)(c->at % c->wide);
    const uint32_t per_row = (c->wide + c->noted_gap - 1) / c->noted_gap;
    if (column % c->noted_gap) return MR_OK;
    return mri_cursor_place(c, &c->noted[(size_t)row * per_row + column / c->noted_gap], err);
}

static int run_span(mri_cursor *c, uint32_t count, mr_error *err)
{
    for (uint32_t k = 0; k < c->scan->component_count; k++)
        if (c->dc[k] > FAR_DC || c->dc[k] < -FAR_DC)
            return mr_error_set(err, MR_EUNSUPPORTED, "JPEG: a DC prediction of %d at MCU %llu",
                                (int)c->dc[k], (unsigned long long)c->at);
    while (count > 0) {
        const uint32_t done = c->skim      ? mri_skim_mcus(&c->run, count)
                              : c->only_dc ? mri_only_dc_mcus(&c->run, count)
                                           : mri_run_mcus(&c->run, count);
        c->at += done;
        if (c->scan->restart_interval) c->restart_left -= done;
        count -= done;
        if (c->run.bad || (c->ended && place(c) > 8 * (uint64_t)c->fill)) return bad_data(c, err);
        if (count > 0) feed_more(c);
    }
    return MR_OK;
}

int mri_cursor_go(mri_cursor *c, uint64_t end, mr_error *err)
{
    if (!c->begun && end > 0) feed_begin(c, c->scan->begin, MRI_FEED_BYTES);
    while (c->at < end) {
        int rc = c->noted ? note(c, err) : MR_OK;
        if (rc == MR_OK && restart_due(c)) rc = take_restart(c, err);
        if (rc == MR_OK) rc = run_span(c, span(c, end), err);
        if (rc == MR_OK && c->entries && c->at < c->total && c->at % c->wide % c->entries->gap == 0)
            rc = compare(c, err);
        if (rc) return rc;
    }
    return MR_OK;
}
