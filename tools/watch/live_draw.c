/* tools/watch/live_draw.c: see live_draw.h.
 *
 * Each line is put together from the left, cut where the terminal ends, and never coloured across its end. */
#include "tools/watch/live_draw.h"

#include <inttypes.h>
#include <math.h>
#include <stdarg.h>
#include <stdio.h>
#include <string.h>

#include "tools/cli/output.h"
#include "tools/watch/step_line.h"

enum { SHARES_MOST = 4 };

/* Which line gives way first when there are few rows. */
typedef enum line_kind {
    LINE_PROGRESS,
    LINE_RATE,
    LINE_DEVICE,
    LINE_DECODE,
    LINE_READ,
    LINE_COPY,
    LINE_BAD,
    LINE_SLOWEST,
    LINE_TITLE,
    LINE_KINDS
} line_kind;

static const line_kind from_top[LINE_KINDS] = {LINE_TITLE,  LINE_PROGRESS, LINE_RATE,
                                               LINE_READ,   LINE_DECODE,   LINE_COPY,
                                               LINE_DEVICE, LINE_SLOWEST,  LINE_BAD};

typedef struct pen {
    const live_style *style;
    char *text;
    uint32_t at, width, most; /* bytes; columns; columns there may be */
} pen;

/* ---- text ---- */

/* A letter of more than a byte may be two columns wide: it is taken for that. */
static uint32_t letter(const char *text, uint32_t *width)
{
    const unsigned char first = (unsigned char)text[0];
    uint32_t bytes = first < 0x80 ? 1 : first >= 0xf0 ? 4 : first >= 0xe0 ? 3 : 2;
    for (uint32_t i = 1; i < bytes; i++)
        if (!text[i]) bytes = i;
    *width = first < 0x80 ? 1 : 2;
    return bytes;
}

static void put(pen *p, const char *text)
{
    while (*text) {
        uint32_t width;
        const uint32_t bytes = letter(text, &width);
        const bool shown = bytes == 1 || p->style->utf8;
        if (!shown) width = 1;
        if (p->width + width > p->most || p->at + bytes + 8 > LIVE_LINE_BYTES) {
            p->most = p->width; /* nothing follows cut text */
            break;
        }
        if (shown) memcpy(p->text + p->at, text, bytes);
        else p->text[p->at] = '?';
        p->at += shown ? bytes : 1;
        p->width += width;
        text += bytes;
    }
    p->text[p->at] = '\0';
}

MR_PRINTF(2, 3) static void putf(pen *p, const char *format, ...)
{
    char text[LIVE_LINE_BYTES];
    va_list args;
    va_start(args, format);
    vsnprintf(text, sizeof text, format, args);
    va_end(args);
    put(p, text);
}

static void put_raw(pen *p, const char *text)
{
    const size_t bytes = strlen(text);
    if (p->at + bytes + 1 > LIVE_LINE_BYTES) return;
    memcpy(p->text + p->at, text, bytes + 1);
    p->at += (uint32_t)bytes;
}

static uint32_t room(const pen *p) { return p->most - p->width; }

/* 12,345,678 */
static char *grouped(double value, char *buf, size_t buf_bytes)
{
    char digits[32];
    snprintf(digits, sizeof digits, "%.0f", value < 1e15 ? value : 1e15);
    const size_t n = strlen(digits);
    size_t at = 0;
    for (size_t i = 0; i < n && at + 2 < buf_bytes; i++) {
        if (i && (n - i) % 3 == 0) buf[at++] = ',';
        buf[at++] = digits[i];
    }
    buf[at] = '\0';
    return buf;
}

/* ---- bars ---- */

void live_shares(const double *parts, uint32_t count, uint32_t whole, uint32_t *out)
{
    double rest[SHARES_MOST];
    uint32_t given = 0;
    double sum = 0;
    for (uint32_t i = 0; i < count; i++) {
        const double part = parts[i] > 0 ? (parts[i] < 1 ? parts[i] : 1) : 0;
        out[i] = (uint32_t)(part * whole);
        rest[i] = part * whole - out[i];
        sum += part;
        given += out[i];
    }
    uint32_t wanted = (uint32_t)((sum < 1 ? sum : 1) * whole + 0.5);
    while (given < wanted) { /* the largest remainders are rounded up */
        uint32_t best = 0;
        for (uint32_t i = 1; i < count; i++)
            if (rest[i] > rest[best]) best = i;
        out[best]++;
        rest[best] -= 1;
        given++;
    }
    for (uint32_t i = count; given > whole; i = i == 1 ? count : i - 1) { /* parts of more than a whole */
        if (!out[i - 1]) continue;
        out[i - 1]--;
        given--;
    }
    out[count] = whole - given;
}

/* A bar of `cells` cells; the parts one after the other, the rest blank. */
static void put_bar(pen *p, const double *parts, uint32_t count, uint32_t cells)
{
    static const char *const plain[] = {"#", "-", "."}, *const blocks[] = {"\u2588", "\u2592", "\u00b7"};
    static const char *const colour[] = {"\033[32m", "\033[33m", "\033[34m"};
    uint32_t share[SHARES_MOST + 1];
    if (cells < 3 || room(p) < cells) return;
    live_shares(parts, count, cells, share);
    for (uint32_t i = 0; i <= count; i++) {
        if (i < count && share[i] && p->style->colour) put_raw(p, colour[i]);
        for (uint32_t k = 0; k < share[i]; k++)
            put_raw(p, i == count ? " " : p->style->utf8 ? blocks[i] : plain[i]);
        if (i < count && share[i] && p->style->colour) put_raw(p, "\033[0m");
    }
    p->width += cells;
}

/* ---- lines ---- */

static void put_title(pen *p, const live_figures *f) { put(p, f->title); }

static void put_progress(pen *p, const live_figures *f)
{
    char left[32], done[32], all[32], text[160];
    if (!f->has_steps) {
        put(p, f->has_device ? "waiting for the first batch" : "the loader alone: nothing trains");
        return;
    }
    const uint64_t whole = f->epochs * f->steps_per_epoch;
    const uint64_t at = f->epoch * f->steps_per_epoch + f->step;
    const double part = whole ? (double)at / (double)whole : 0;
    int n = snprintf(text, sizeof text, " %s/%s steps, epoch %" PRIu64 "/%" PRIu64,
                     grouped((double)at, done, sizeof done), grouped((double)whole, all, sizeof all),
                     f->epoch + 1, f->epochs);
    if (f->validating) snprintf(text + n, sizeof text - (size_t)n, ", validating");
    else if (f->seconds_left >= 0)
        snprintf(text + n, sizeof text - (size_t)n, ", %s left",
                 step_time_text(f->seconds_left, left, sizeof left));
    const uint32_t words = (uint32_t)strlen(text);
    uint32_t cells = room(p) > words + 2 ? room(p) - words - 2 : 0;
    if (cells > 60) cells = 60;
    if (cells >= 5) {
        put(p, "[");
        put_bar(p, &part, 1, cells);
        put(p, "]");
        put(p, text);
    } else put(p, text + 1);
}

static void put_rate(pen *p, const live_figures *f)
{
    char rate[32], lr[32];
    putf(p, "%s samples/s", grouped(f->samples_per_s, rate, sizeof rate));
    if (!f->has_loss) return;
    putf(p, "  loss %.4f", f->loss);
    if (!isnan(f->accuracy)) putf(p, "  acc %.4f", f->accuracy);
    putf(p, "  lr %s", float_text((float)f->lr, lr, sizeof lr));
}

static void put_stage(pen *p, const live_stage *s)
{
    const double parts[3] = {s->busy, s->starved, s->held_back};
    uint32_t share[4];
    char text[96];
    live_shares(parts, 3, 100, share);
    if (p->most >= 100)
        snprintf(text, sizeof text, " busy %3u, starved %3u, held back %3u %%; queue %3.0f %%", share[0],
                 share[1], share[2], 100 * s->fill);
    else if (p->most >= 60)
        snprintf(text, sizeof text, " %3u busy %3u starved %3u held, queue %3.0f", share[0], share[1],
                 share[2], 100 * s->fill);
    else snprintf(text, sizeof text, " %u/%u/%u", share[0], share[1], share[2]);
    putf(p, "%-7s%3u ", s->name, s->threads);
    const uint32_t words = p->most >= 60 ? (uint32_t)strlen(text) : 11;
    uint32_t cells = room(p) > words ? room(p) - words : 0;
    put_bar(p, parts, 3, cells > 60 ? 60 : cells);
    put(p, text);
}

/* "82 compute 18 idle: decoding 11, copies 4": the heaviest causes first. */
static void put_causes(pen *p, const live_figures *f)
{
    bool reported[MR_CAUSE_NETWORK + 1] = {false};
    for (int n = 0; n <= MR_CAUSE_NETWORK; n++) {
        int best = -1;
        for (int i = 0; i <= MR_CAUSE_NETWORK; i++)
            if (!reported[i] && f->cause[i] >= 0.005 && (best < 0 || f->cause[i] > f->cause[best])) best = i;
        if (best < 0) return;
        reported[best] = true;
        char text[64];
        const bool brief = p->most < 80;
        snprintf(text, sizeof text, "%s%s %.0f", n ? ", " : ": ",
                 brief ? mr_cause_name((mr_cause)best) : mr_cause_text((mr_cause)best), 100 * f->cause[best]);
        if (strlen(text) > room(p)) return;
        put(p, text);
    }
}

static void put_device(pen *p, const live_figures *f)
{
    const double parts[2] = {1 - f->idle, f->idle};
    uint32_t share[3];
    live_shares(parts, 2, 100, share);
    if (f->has_device) putf(p, "%-7s%3u ", f->devices > 1 ? "devices" : "device", f->devices);
    else put(p, "consumer   ");
    put_bar(p, parts, 2, p->most >= 100 ? 24 : p->most >= 60 ? 20 : p->most >= 30 ? 6 : 0);
    if (p->most < 60) putf(p, " %u/%u idle", share[0], share[1]);
    else if (f->has_device) putf(p, " %3u computing %3u idle", share[0], share[1]);
    else putf(p, " %3u running %3u waiting", share[0], share[1]);
    put_causes(p, f);
}

static void put_slowest(pen *p, const live_figures *f)
{
    char size[32], text[128];
    if (!f->slowest.known) {
        put(p, "slowest sample: none was timed yet");
        return;
    }
    snprintf(text, sizeof text, " %s, %.*f ms, %.0f x the mean",
             mri_size_text(f->slowest.bytes, size, sizeof size), f->slowest.ms < 10, f->slowest.ms,
             f->slowest.times);
    put(p, "slowest ");
    const size_t words = strlen(text), name = strlen(f->slowest.name);
    /* the end of a path is more useful than its beginning */
    const size_t space = room(p) > words ? room(p) - words : 0;
    if (name <= space) put(p, f->slowest.name);
    else if (space > 8) {
        const char *tail = f->slowest.name + name - (space - 2);
        while ((*tail & 0xc0) == 0x80) tail++;
        put(p, "..");
        put(p, tail);
    }
    put(p, text);
}

static void put_bad(pen *p, const live_figures *f)
{
    putf(p, "bad samples %" PRIu64, f->bad);
    if (f->bad) putf(p, " (%" PRIu64 " replaced, %" PRIu64 " skipped)", f->replaced, f->skipped);
}

static void put_line(pen *p, const live_figures *f, line_kind kind)
{
    switch (kind) {
    case LINE_TITLE: put_title(p, f); break;
    case LINE_PROGRESS: put_progress(p, f); break;
    case LINE_RATE: put_rate(p, f); break;
    case LINE_READ: put_stage(p, &f->stage[0]); break;
    case LINE_DECODE: put_stage(p, &f->stage[1]); break;
    case LINE_COPY: put_stage(p, &f->stage[2]); break;
    case LINE_DEVICE: put_device(p, f); break;
    case LINE_SLOWEST: put_slowest(p, f); break;
    default: put_bad(p, f); break;
    }
}

void live_draw(const live_figures *f, const live_style *style, live_lines *out)
{
    const uint32_t columns = style->columns < LIVE_COLUMNS_MOST ? style->columns : LIVE_COLUMNS_MOST;
    const uint32_t lines = style->rows > 2 ? style->rows - 1 : 1;
    out->count = 0;
    for (uint32_t i = 0; i < LINE_KINDS; i++) {
        const line_kind kind = from_top[i];
        if ((uint32_t)kind >= lines) continue;
        pen p = {.style = style, .text = out->text[out->count], .most = columns > 1 ? columns - 1 : 1};
        p.text[0] = '\0';
        put_line(&p, f, kind);
        out->width[out->count++] = p.width;
    }
}
