/* tests/cli/watch/live_draw.c: the lines of the live view on terminals of every size: none wider than the
 * terminal, none more than it has, and parts that add up whatever the rounding. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "mrt.h"
#include "tools/watch/live_draw.h"

static live_figures usual(void)
{
    live_figures f = {.title = "millrace train: cifar-cnn on photos",
                      .has_steps = true,
                      .epoch = 1,
                      .epochs = 12,
                      .step = 120,
                      .steps_per_epoch = 469,
                      .samples_per_s = 2767.4,
                      .has_loss = true,
                      .loss = 0.43214,
                      .accuracy = 0.871,
                      .lr = 0.01,
                      .seconds_left = 205,
                      .stage = {{"read", 1, 0.25, 0.25, 0.5, 0.8},
                                {"decode", 2, 0.333, 0.333, 0.333, 0.5},
                                {"copy", 1, 0.05, 0.9, 0, 0}},
                      .has_device = true,
                      .devices = 1,
                      .idle = 0.18,
                      .slowest.known = true,
                      .slowest.name = "train/cat/picture-with-a-long-name-0012.jpg",
                      .slowest.ms = 312,
                      .slowest.times = 14,
                      .slowest.bytes = 4404019,
                      .bad = 3,
                      .replaced = 2,
                      .skipped = 1};
    f.cause[MR_CAUSE_DECODE] = 0.11;
    f.cause[MR_CAUSE_COPY] = 0.07;
    return f;
}

static const char *line_with(const live_lines *l, const char *begin)
{
    for (uint32_t i = 0; i < l->count; i++)
        if (strncmp(l->text[i], begin, strlen(begin)) == 0) return l->text[i];
    return "";
}

static void wide(void **state)
{
    (void)state;
    static live_lines l;
    const live_figures f = usual();
    const live_style style = {.columns = 101, .rows = 24};
    live_draw(&f, &style, &l);
    MRT_EQ(l.count, 9);
    MRT_STR(l.text[0], "millrace train: cifar-cnn on photos");
    MRT_HAS(l.text[1], "] 589/5,628 steps, epoch 2/12, 3:25 left");
    MRT_STR(l.text[2], "2,767 samples/s  loss 0.4321  acc 0.8710  lr 0.01");
    MRT_HAS(line_with(&l, "read"), " busy  25, starved  25, held back  50 %; queue  80 %");
    MRT_HAS(line_with(&l, "decode"), " busy  34, starved  33, held back  33 %; queue  50 %");
    MRT_HAS(line_with(&l, "device   1 "), "  82 computing  18 idle: decoding 11, copies to the device 7");
    MRT_STR(line_with(&l, "slowest"),
            "slowest train/cat/picture-with-a-long-name-0012.jpg 4.2 MiB, 312 ms, 14 x the mean");
    MRT_STR(line_with(&l, "bad"), "bad samples 3 (2 replaced, 1 skipped)");
}

/* docs/train.md shows these lines. */
static void page_has_them(void **state)
{
    (void)state;
    static live_lines l;
    static char shown[LIVE_LINES * LIVE_LINE_BYTES];
    const live_figures f = usual();
    const live_style style = {.columns = 101, .rows = 24, .utf8 = true};
    live_draw(&f, &style, &l);
    for (uint32_t i = 0; i < l.count; i++)
        snprintf(shown + strlen(shown), sizeof shown - strlen(shown), "%s\n", l.text[i]);
    char path[1024];
    size_t bytes;
    snprintf(path, sizeof path, "%s/docs/train.md", getenv("MRT_SOURCE_DIR"));
    char *page = mrt_read_file(path, &bytes);
    if (!strstr(page, shown)) fail_msg("docs/train.md: expected the lines\n%s", shown);
    free(page);
}

/* Few rows: what matters most. */
static void low(void **state)
{
    (void)state;
    static live_lines l;
    const live_figures f = usual();
    const live_style style = {.columns = 40, .rows = 5};
    live_draw(&f, &style, &l);
    MRT_EQ(l.count, 4);
    MRT_HAS(l.text[0], "589/5,628 steps");
    MRT_HAS(l.text[1], "2,767 samples/s");
    MRT_HAS(l.text[2], "decode   2 ");
    MRT_HAS(l.text[2], " 34/33/33");
    MRT_HAS(l.text[3], "device   1 ");
    MRT_HAS(l.text[3], " 82/18 idle: decode 11");
}

/* Columns of a line on a terminal: an escape sequence takes none, a character outside ASCII at most two. */
static uint32_t columns_of(const char *text)
{
    uint32_t n = 0;
    for (; *text; text++) {
        if (*text == '\033') {
            while (*text != 'm') text++;
            continue;
        }
        MRT_TRUE((unsigned char)*text >= ' ');
        if (((unsigned char)*text & 0xc0) != 0x80) n++;
    }
    return n;
}

static void any_size(void **state)
{
    (void)state;
    static live_lines l;
    live_figures f = usual();
    for (int kind = 0; kind < 8; kind++) {
        f.has_steps = kind != 1;
        f.has_device = kind != 2;
        f.slowest.name = kind == 3
                             ? "\xe7\x8c\xab/\xc3\xa4\xc3\xa4\xc3\xa4\xc3\xa4\xc3\xa4\xc3\xa4\xc3\xa4.jpg"
                             : f.slowest.name;
        f.seconds_left = kind == 4 ? 1e300 : 10;
        f.samples_per_s = kind == 5 ? 1e300 : 0;
        f.epochs = kind == 6 ? UINT64_MAX : 12;
        f.loss = kind == 7 ? 1e308 : 1;
        for (uint32_t columns = 1; columns <= 320; columns += columns < 130 ? 1 : 17)
            for (uint32_t rows = 1; rows <= 12; rows++) {
                const live_style style = {
                    .columns = columns, .rows = rows, .utf8 = columns % 2, .colour = rows % 2};
                live_draw(&f, &style, &l);
                MRT_TRUE(l.count >= 1 && (l.count < rows || rows < 2));
                for (uint32_t i = 0; i < l.count; i++) {
                    MRT_TRUE(l.width[i] < columns || columns == 1);
                    if (columns_of(l.text[i]) > l.width[i])
                        print_error("%u columns: %s\n", columns, l.text[i]);
                    MRT_TRUE(columns_of(l.text[i]) <= l.width[i]);
                }
            }
    }
}

static void shares(void **state)
{
    (void)state;
    uint32_t out[4];
    for (uint32_t whole = 1; whole <= 100; whole++)
        for (int a = 0; a <= 20; a++)
            for (int b = 0; a + b <= 20; b++) {
                const double part[3] = {a / 20.0, b / 20.0, (20 - a - b) / 20.0};
                live_shares(part, 3, whole, out);
                MRT_EQ(out[0] + out[1] + out[2] + out[3], whole);
                MRT_EQ(out[3], 0);
                for (int i = 0; i < 3; i++) {
                    const double off = out[i] - part[i] * whole;
                    MRT_TRUE(off < 1 && off > -1);
                }
            }
    live_shares((const double[]){0.7, 0.7}, 2, 10, out); /* counters that were not read in one moment */
    MRT_EQ(out[0] + out[1] + out[2], 10);
    live_shares((const double[]){-1, 7, 0.0 / 1}, 3, 10, out);
    MRT_EQ(out[1], 10);
    live_shares((const double[]){0.2, 0.3}, 2, 10, out);
    MRT_EQ(out[2], 5);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(wide),     cmocka_unit_test(page_has_them), cmocka_unit_test(low),
        cmocka_unit_test(any_size), cmocka_unit_test(shares),
    };
    return mrt_run(tests);
}
