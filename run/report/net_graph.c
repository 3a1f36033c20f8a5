/* run/report/net_graph.c: a network as a picture of its layers.
 *
 *     | conv2d 3x3/1 32 relu   32x32x32      896 |
 *                      |                           a line down to the next row
 *     | batch_norm             32x32x32       64 | )
 *                      |                           )  an arc past what does not take it;
 *     | add 3 relu             32x32x32        0 | )  the longer, the further out */
#include <inttypes.h>
#include <math.h>
#include <string.h>

#include "base/handle.h"
#include "millrace/report.h"
#include "run/page/page.h"
#include "settings/number_put.h"

enum { ROW = 30, BOX = 22, LEFT = 20, WIDTH = 520, ARCS = 160, TOP = 50 };

static double middle_of(mr_point point) { return TOP + (double)point * ROW + BOX / 2.0; }

/* From a point, which is row number `from`, to the row of a layer. */
static void put_line(FILE *f, mr_point from, uint32_t layer)
{
    const uint32_t to = layer + 1;
    if (to == from + 1) {
        fprintf(f, "<path d=\"M%d %gV%g\"/>\n", LEFT + 40, middle_of(from) + BOX / 2.0,
                middle_of(to) - BOX / 2.0);
        return;
    }
    const double out = LEFT + WIDTH + fmin(12 + 4 * sqrt((double)(to - from) * ROW), ARCS - 4);
    fprintf(f, "<path d=\"M%d %gC%g %g %g %g %d %g\"/>\n", LEFT + WIDTH, middle_of(from) + 4, out,
            middle_of(from) + 4, out, middle_of(to) - 4, LEFT + WIDTH, middle_of(to) - 4);
}

/* The first word of a layer's text is its kind, which gives its colour. */
static const char *class_of(const char *name)
{
    static const char *const kinds[][2] = {{"conv2d", "w"},        {"dense", "w"},     {"gru", "w"},
                                           {"lstm", "w"},          {"add", "j"},       {"concat", "j"},
                                           {"scale", "j"},         {"loss", "l"},      {"squares", "l"},
                                           {"cross_entropy", "l"}, {"divergence", "l"}};
    for (size_t i = 0; i < sizeof kinds / sizeof kinds[0]; i++)
        if (strncmp(name, kinds[i][0], strlen(kinds[i][0])) == 0) return kinds[i][1];
    return "o";
}

static void put_row(FILE *f, mr_point row, const char *css, const char *name, const char *shape,
                    const char *params)
{
    const double y = TOP + (double)row * ROW;
    fprintf(
        f,
        "<rect class=\"%s\" x=\"%d\" y=\"%g\" width=\"%d\" height=\"%d\" rx=\"4\"/><text x=\"%d\" y=\"%g\">",
        css, LEFT, y, WIDTH, BOX, LEFT + 8, y + 15);
    mri_page_text(f, name);
    fprintf(f, "</text><text x=\"%d\" y=\"%g\">", LEFT + 300, y + 15);
    mri_page_text(f, shape);
    fprintf(f, "</text><text class=\"n\" x=\"%d\" y=\"%g\">%s</text>\n", LEFT + WIDTH - 8, y + 15, params);
}

static void put_graph(FILE *f, void *context)
{
    const mr_net *net = context;
    mr_layer_row row;
    uint32_t count = 0, h, w, c;
    char number[32], text[64];
    while (mr_net_layer(net, count, &row)) count++;
    const uint32_t width = LEFT + WIDTH + ARCS, height = TOP + (count + 1) * ROW + 10;
    fprintf(
        f,
        "<svg xmlns=\"http://www.w3.org/2000/svg\" viewBox=\"0 0 %u %u\" width=\"%u\" height=\"%u\">\n<style>"
        "svg{background:#fff;font:13px sans-serif}text{fill:#222}.n{text-anchor:end}"
        "path{fill:none;stroke:#888}rect{stroke:#999}.w{fill:#cfe2ff}.j{fill:#ffe6b3}.l{fill:#ffd0d0}"
        ".o{fill:#eee}@media(prefers-color-scheme:dark){svg{background:#181818}text{fill:#ddd}"
        "rect{stroke:#666}.w{fill:#234}.j{fill:#432}.l{fill:#522}.o{fill:#2a2a2a}}</style>\n",
        width, height, width, height);
    fprintf(f, "<text x=\"%d\" y=\"30\">", LEFT);
    snprintf(text, sizeof text, "%s: ", mr_net_name(net));
    mri_page_text(f, text);
    fprintf(f, "%s parameters</text>\n", mri_number_text((double)mr_net_param_count(net), number));
    for (uint32_t i = 0; mr_net_layer(net, i, &row); i++) {
        if (!row.is_input) put_line(f, row.in, i);
        if (row.takes_two) put_line(f, row.in2, i);
    }
    if (mr_net_shape(net, 0, &h, &w, &c)) {
        snprintf(text, sizeof text, "%ux%ux%u", h, w, c);
        put_row(f, 0, "o", "input", text, "");
    }
    for (uint32_t i = 0; mr_net_layer(net, i, &row); i++)
        put_row(f, i + 1, class_of(row.name), row.name, row.output,
                row.params ? mri_number_text((double)row.params, number) : "");
    fputs("</svg>\n", f);
}

int mr_net_graph_write(const mr_net *net, const char *path, bool force, mr_error *err)
{
    MRI_GIVEN(err, net);
    MRI_GIVEN(err, path);
    return mri_page_write(path, force, put_graph, (void *)(uintptr_t)net, err);
}
