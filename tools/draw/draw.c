/* tools/draw/draw.c: see draw.h.
 *
 *     +---+---+---+
 *     |   pictures   |   16 in a row
 *     |  given back  |
 *     +--------------+
 *     |   of a grid  |   of two numbers: the same share of a normal distribution from cell to cell
 *     |  or at random|
 *     +--------------+ */
#include "tools/draw/draw.h"

#include <math.h>
#include <spng.h>
#include <stdlib.h>
#include <string.h>

#include "tools/cli/exit.h"
#include "tools/cli/output.h"

enum { COLUMNS = 16, GAP = 4 };

draw_points draw_points_of(const mr_net *net)
{
    draw_points p = {0};
    mr_loss_row loss;
    for (uint32_t i = 0; mr_net_loss(net, i, &loss); i++) {
        if (loss.labels || loss.other != 0 || loss.pair == MR_PAIR_DIVERGENCE) continue;
        p.kept.at[1] = loss.in;
        p.logits = loss.pair == MR_PAIR_CROSS_ENTROPY;
        p.kept.count = mr_net_drawn(net, &p.kept.at[2]) ? 3 : 2;
        return p;
    }
    return p;
}

/* ---- the sheet ---- */

typedef struct draw_sheet {
    uint32_t h, w, c;                 /* of a picture */
    uint32_t height, width, channels; /* of the whole; channels as a PNG has them */
    uint8_t *pixels;
    const float *mean, *std;
} draw_sheet;

static int begin_sheet(draw_sheet *s, const mr_net *net, const mr_loader_info *l, uint32_t rows)
{
    mr_net_shape(net, 0, &s->h, &s->w, &s->c);
    s->channels = s->c == 2 ? 1 : s->c;
    s->height = rows * s->h + GAP, s->width = COLUMNS * s->w;
    s->mean = l->mean, s->std = l->std;
    s->pixels = malloc((size_t)s->height * s->width * s->channels);
    if (!s->pixels) return EXIT_FAILED;
    memset(s->pixels, 255, (size_t)s->height * s->width * s->channels);
    return EXIT_DONE;
}

/* Picture number `from` of values at a column, its first row at `top`. */
static void put_picture(const draw_sheet *s, uint32_t top, uint32_t column, const float *values, bool logits)
{
    for (uint32_t y = 0; y < s->h; y++)
        for (uint32_t x = 0; x < s->w; x++)
            for (uint32_t c = 0; c < s->channels; c++) {
                const float given = values[((size_t)y * s->w + x) * s->c + c],
                            value = logits ? 1 / (1 + expf(-given)) : given,
                            pixel = value * s->std[c] + s->mean[c];
                const size_t at =
                    (((size_t)top + y) * s->width + (size_t)column * s->w + x) * s->channels + c;
                s->pixels[at] = (uint8_t)(pixel > 0 ? pixel < 255 ? lrintf(pixel) : 255 : 0);
            }
}

/* ---- numbers to decode ---- */

/* The value below which a share of a standard normal distribution lies, by bisection. */
static float quantile(double share)
{
    double low = -8, high = 8;
    for (int i = 0; i < 60; i++) {
        const double middle = (low + high) / 2;
        if (0.5 * erfc(-middle / sqrt(2)) < share) low = middle;
        else high = middle;
    }
    return (float)low;
}

/* Codes of two numbers form a grid; others follow a fixed sequence. */
static void fill_codes(float *codes, uint32_t row, uint32_t rows, uint32_t each)
{
    uint64_t state = 0x9E3779B97F4A7C15u * (row + 1);
    for (uint32_t k = 0; k < COLUMNS; k++)
        for (uint32_t i = 0; i < each; i++) {
            state = state * 6364136223846793005u + 1442695040888963407u;
            const double drawn = ((double)(state >> 11) + 0.5) / 9007199254740992.0;
            codes[k * each + i] = each != 2 ? quantile(drawn)
                                  : i == 0  ? quantile((k + 0.5) / COLUMNS)
                                            : quantile(1 - (row + 0.5) / rows);
        }
}

/* ---- together ---- */

static int draw_given_back(tool_session *s, const draw_points *p, const draw_sheet *sheet, float *values)
{
    mr_error err = MR_ERROR_INIT;
    const size_t each = (size_t)sheet->h * sheet->w * sheet->c;
    for (uint32_t row = 0; row < 2; row++) {
        uint32_t count;
        const int rc = mr_trainer_values(s->trainer, p->kept.at[row], COLUMNS, values, &count, &err);
        if (rc) return exit_status(rc, &err);
        for (uint32_t k = 0; k < count; k++)
            put_picture(sheet, row * sheet->h, k, values + k * each, row == 1 && p->logits);
    }
    return EXIT_DONE;
}

static int draw_made_up(tool_session *s, const draw_points *p, const draw_sheet *sheet, uint32_t rows,
                        float *values)
{
    mr_error err = MR_ERROR_INIT;
    const size_t each = (size_t)sheet->h * sheet->w * sheet->c;
    const uint32_t part = (mr_loader_info_of(s->loader)->batch - 1) / s->parts.all + 1,
                   most = part < COLUMNS ? part : COLUMNS;
    uint32_t h, w, c, count;
    mr_net_shape(s->net, p->kept.at[2], &h, &w, &c);
    const uint32_t numbers = h * w * c;
    float *codes = malloc((size_t)COLUMNS * numbers * sizeof *codes);
    int rc = codes ? MR_OK : mr_error_set(&err, MR_ENOMEM, "no memory for %u numbers", numbers);
    for (uint32_t row = 0; rc == MR_OK && row < rows; row++) {
        fill_codes(codes, row, rows, numbers);
        for (uint32_t k = 0; rc == MR_OK && k < COLUMNS; k += most) {
            const uint32_t some = COLUMNS - k < most ? COLUMNS - k : most;
            rc = mr_trainer_compute_from(s->trainer, p->kept.at[2], codes + k * numbers, some, &err);
            if (rc == MR_OK) rc = mr_trainer_values(s->trainer, p->kept.at[1], some, values, &count, &err);
            for (uint32_t i = 0; rc == MR_OK && i < some; i++)
                put_picture(sheet, (2 + row) * sheet->h + GAP, k + i, values + i * each, p->logits);
        }
    }
    free(codes);
    return exit_status(rc, &err);
}

static int write_png(const draw_sheet *sheet, const mr_source *src, const char *path, bool force)
{
    static const uint8_t types[] = {0, SPNG_COLOR_TYPE_GRAYSCALE, 0, SPNG_COLOR_TYPE_TRUECOLOR,
                                    SPNG_COLOR_TYPE_TRUECOLOR_ALPHA};
    mr_error err = MR_ERROR_INIT;
    struct spng_ihdr head = {
        .width = sheet->width, .height = sheet->height, .bit_depth = 8, .color_type = types[sheet->channels]};
    size_t bytes = 0;
    int failed = SPNG_EMEM;
    void *png = NULL;
    spng_ctx *ctx = spng_ctx_new(SPNG_CTX_ENCODER);
    if (ctx) failed = spng_set_option(ctx, SPNG_ENCODE_TO_BUFFER, 1);
    if (!failed) failed = spng_set_ihdr(ctx, &head);
    if (!failed)
        failed = spng_encode_image(ctx, sheet->pixels, (size_t)sheet->height * sheet->width * sheet->channels,
                                   SPNG_FMT_PNG, SPNG_ENCODE_FINALIZE);
    if (!failed) png = spng_get_png_buffer(ctx, &bytes, &failed);
    spng_ctx_free(ctx);
    if (failed || !png) {
        free(png);
        say("%s: the picture cannot be made: %s", path, spng_strerror(failed));
        return EXIT_FAILED;
    }
    const int rc = setup_write_result(path, png, bytes, src, force, &err);
    free(png);
    return exit_status(rc, &err);
}

int draw_to(tool_session *s, const draw_points *p, const char *path, bool force)
{
    draw_sheet sheet;
    const uint32_t made_up = p->kept.count < 3 ? 0 : COLUMNS;
    int status = begin_sheet(&sheet, s->net, mr_loader_info_of(s->loader), 2 + made_up);
    float *values = malloc((size_t)COLUMNS * sheet.h * sheet.w * sheet.c * sizeof *values);
    if (status || !values) {
        say("%s: no memory for a picture of %u x %u", path, sheet.width, sheet.height);
        status = EXIT_FAILED;
    }
    if (!status) status = draw_given_back(s, p, &sheet, values);
    if (!status && made_up) status = draw_made_up(s, p, &sheet, made_up, values);
    if (!status) status = write_png(&sheet, s->src, path, force);
    free(values);
    free(sheet.pixels);
    return status;
}
