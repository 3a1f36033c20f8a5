/* tests/pipeline/augment/reference.c: see reference.h. */
#include "tests/pipeline/augment/reference.h"

#include <math.h>

mri_philox mrt_ref_draw(const mrt_ref *r, uint32_t block)
{
    return mri_philox4x32(mri_mix64(mri_mix64(r->key.seed) + 64 * (uint64_t)r->index + block), r->key.sample,
                          r->key.epoch);
}

static double between(double lo, double hi, uint32_t word) { return lo + (hi - lo) * (word / 4294967296.0); }

/* Factors and turns are drawn as whole multiples of 1/65536. */
static double drawn(double lo, double hi, uint32_t word)
{
    return floor(between(lo, hi, word) * 65536 + 0.5) / 65536;
}

bool mrt_ref_happens(const mrt_ref *r, double probability, uint32_t block, uint32_t word)
{
    return mrt_ref_draw(r, block).v[word] / 4294967296.0 < probability;
}

uint8_t mrt_ref_clip(double v) { return (uint8_t)(v < 0 ? 0 : v > 255 ? 255 : floor(v + 0.5)); }

static size_t bytes_of(const mr_image *p) { return (size_t)p->width * p->height * p->channels; }
static size_t pixels_of(const mr_image *p) { return (size_t)p->width * p->height; }

/* ---- erasing ---- */

/* The rectangle from (x, y) that lies in the picture gets its values, row by row, as if it had been one of
 * its own. */
static void put(mrt_ref *r, long x0, long y0, long w, long h, mrt_ref_value value, const uint8_t *mean)
{
    const uint32_t c = r->p.channels;
    const mri_philox d = mrt_ref_draw(r, 63);
    const uint64_t stream = (uint64_t)d.v[1] << 32 | d.v[0];
    double own = 0;
    for (size_t k = 0; k < bytes_of(&r->p); k++) own += r->p.pixels[k];
    own = floor(own / (double)bytes_of(&r->p) + 0.5);
    uint64_t n = 0;
    for (long y = 0; y < (long)r->p.height; y++)
        for (long x = 0; x < (long)r->p.width; x++) {
            if (x < x0 || y < y0 || x >= x0 + w || y >= y0 + h) continue;
            for (uint32_t k = 0; k < c; k++, n++) {
                const mri_philox word = mri_philox4x32(stream, n / 16, 0);
                const uint8_t noise = (uint8_t)(word.v[n % 16 / 4] >> 8 * (n % 4));
                r->p.pixels[((size_t)y * r->p.width + (size_t)x) * c + k] = value == MRT_RANDOM ? noise
                                                                            : value == MRT_ZERO ? 0
                                                                            : mean              ? mean[k]
                                                                                   : (uint8_t)own;
            }
        }
}

void mrt_ref_erase(mrt_ref *r, double p, const double scale[2], const double ratio[2], mrt_ref_value value,
                   const uint8_t *mean)
{
    const double W = r->p.width, H = r->p.height;
    if (!mrt_ref_happens(r, p, 62, 0)) return;
    for (uint32_t try = 0; try < 10; try++) {
        const mri_philox d = mrt_ref_draw(r, try);
        const double area = W * H * between(scale[0], scale[1], d.v[0]);
        const double aspect = exp(between(log(ratio[0]), log(ratio[1]), d.v[1]));
        const double h = floor(sqrt(area * aspect) + 0.5), w = floor(sqrt(area / aspect) + 0.5);
        if (w < 1 || h < 1 || w >= W || h >= H) continue;
        put(r, mri_below(d.v[2], (uint32_t)(W - w) + 1), mri_below(d.v[3], (uint32_t)(H - h) + 1), (long)w,
            (long)h, value, mean);
        return;
    }
}

void mrt_ref_cutout(mrt_ref *r, uint32_t side, mrt_ref_value value, const uint8_t *mean)
{
    const mri_philox d = mrt_ref_draw(r, 0);
    const long x = (long)(d.v[0] / 4294967296.0 * r->p.width),
               y = (long)(d.v[1] / 4294967296.0 * r->p.height);
    const long half = (long)(side / 2), n = (long)side;
    put(r, x - half, y - half, n, n, value, mean);
}

/* ---- colours ---- */

static double gray_of(const uint8_t *p, uint32_t c)
{
    return c == 1 ? p[0] : floor((19595.0 * p[0] + 38470.0 * p[1] + 7471.0 * p[2]) / 65536 + 0.5);
}

void mrt_ref_scale_by(mr_image *p, double factor)
{
    for (size_t k = 0; k < bytes_of(p); k++) p->pixels[k] = mrt_ref_clip(factor * p->pixels[k]);
}

void mrt_ref_contrast_by(mr_image *p, double factor)
{
    const uint32_t c = p->channels;
    double mean = 0;
    for (size_t k = 0; k < pixels_of(p); k++) {
        const uint8_t *at = p->pixels + k * c;
        mean += c == 1 ? at[0] : (19595.0 * at[0] + 38470.0 * at[1] + 7471.0 * at[2]) / 65536;
    }
    mean /= (double)pixels_of(p);
    for (size_t k = 0; k < bytes_of(p); k++)
        p->pixels[k] = mrt_ref_clip(mean + factor * (p->pixels[k] - mean));
}

void mrt_ref_saturation_by(mr_image *p, double factor)
{
    const uint32_t c = p->channels;
    for (size_t k = 0; k < pixels_of(p); k++) {
        uint8_t *at = p->pixels + k * c;
        const double gray = gray_of(at, c);
        for (uint32_t i = 0; i < c; i++) at[i] = mrt_ref_clip(gray + factor * (at[i] - gray));
    }
}

/* Smith 1978: to hue, saturation and value, and back. */
static void hue_pixel(uint8_t *p, double turn)
{
    const double r = p[0] / 255.0, g = p[1] / 255.0, b = p[2] / 255.0;
    const double v = fmax(r, fmax(g, b)), d = v - fmin(r, fmin(g, b)), s = v > 0 ? d / v : 0;
    double h = d <= 0 ? 0 : v <= r ? (g - b) / d : v <= g ? 2 + (b - r) / d : 4 + (r - g) / d;
    h = fmod(h / 6 + turn + 2, 1) * 6;
    const int edge = (int)h % 6;
    const double f = h - floor(h), low = v * (1 - s), down = v * (1 - s * f), up = v * (1 - s * (1 - f));
    const double out[6][3] = {{v, up, low},   {down, v, low}, {low, v, up},
                              {low, down, v}, {up, low, v},   {v, low, down}};
    for (int c = 0; c < 3; c++) p[c] = mrt_ref_clip(255 * out[edge][c]);
}

void mrt_ref_hue_by(mr_image *p, double turn)
{
    for (size_t k = 0; p->channels == 3 && k < pixels_of(p); k++) hue_pixel(p->pixels + 3 * k, turn);
}

void mrt_ref_hue(mrt_ref *r, double most)
{
    mrt_ref_hue_by(&r->p, drawn(-most, most, mrt_ref_draw(r, 0).v[0]));
}

void mrt_ref_jitter(mrt_ref *r, double b, double c, double s, double h, double p)
{
    /* all orders, as they come in a dictionary */
    static const char *const orders[24] = {"bcsh", "bchs", "bsch", "bshc", "bhcs", "bhsc", "cbsh", "cbhs",
                                           "csbh", "cshb", "chbs", "chsb", "sbch", "sbhc", "scbh", "schb",
                                           "shbc", "shcb", "hbcs", "hbsc", "hcbs", "hcsb", "hsbc", "hscb"};
    const mri_philox d = mrt_ref_draw(r, 0), how = mrt_ref_draw(r, 1);
    if (how.v[1] / 4294967296.0 >= p) return;
    for (const char *at = orders[(int)(how.v[0] / 4294967296.0 * 24)]; *at; at++) {
        if (*at == 'b') mrt_ref_scale_by(&r->p, drawn(fmax(0, 1 - b), 1 + b, d.v[0]));
        if (*at == 'c') mrt_ref_contrast_by(&r->p, drawn(fmax(0, 1 - c), 1 + c, d.v[1]));
        if (*at == 's') mrt_ref_saturation_by(&r->p, drawn(fmax(0, 1 - s), 1 + s, d.v[2]));
        if (*at == 'h') mrt_ref_hue_by(&r->p, drawn(-h, h, d.v[3]));
    }
}

void mrt_ref_gray(mrt_ref *r, double p)
{
    if (mrt_ref_happens(r, p, 0, 0)) mrt_ref_saturation_by(&r->p, 0);
}

/* ---- tones ---- */

void mrt_ref_invert(mrt_ref *r, double p) { mrt_ref_solarize(r, 0, p); }

static void solarize_by(mr_image *p, double threshold)
{
    for (size_t k = 0; k < bytes_of(p); k++)
        if (p->pixels[k] >= threshold) p->pixels[k] = (uint8_t)(255 - p->pixels[k]);
}

void mrt_ref_solarize(mrt_ref *r, int threshold, double p)
{
    if (mrt_ref_happens(r, p, 0, 0)) solarize_by(&r->p, threshold);
}

static void posterize_by(mr_image *p, int bits)
{
    const int step = 1 << (8 - bits);
    for (size_t k = 0; k < bytes_of(p); k++) p->pixels[k] = (uint8_t)(p->pixels[k] / step * step);
}

void mrt_ref_posterize(mrt_ref *r, int bits, double p)
{
    if (mrt_ref_happens(r, p, 0, 0)) posterize_by(&r->p, bits);
}

/* below[v]: pixels of a channel whose value is below v. */
static void count_below(const mr_image *p, uint32_t channel, size_t below[257])
{
    memset(below, 0, 257 * sizeof *below);
    for (size_t k = 0; k < pixels_of(p); k++) below[p->pixels[k * p->channels + channel] + 1]++;
    for (int v = 0; v < 256; v++) below[v + 1] += below[v];
}

void mrt_ref_autocontrast(mrt_ref *r, double p)
{
    const uint32_t c = r->p.channels;
    size_t below[257];
    if (!mrt_ref_happens(r, p, 0, 0)) return;
    for (uint32_t i = 0; i < c; i++) {
        int lo = 0, hi = 255;
        count_below(&r->p, i, below);
        while (below[lo + 1] == 0) lo++;
        while (below[hi] == pixels_of(&r->p)) hi--;
        for (size_t k = i; lo < hi && k < bytes_of(&r->p); k += c)
            r->p.pixels[k] = mrt_ref_clip(255.0 * (r->p.pixels[k] - lo) / (hi - lo));
    }
}

void mrt_ref_equalize(mrt_ref *r, double p)
{
    const uint32_t c = r->p.channels;
    size_t below[257];
    if (!mrt_ref_happens(r, p, 0, 0)) return;
    for (uint32_t i = 0; i < c; i++) {
        int hi = 255;
        count_below(&r->p, i, below);
        while (below[hi] == pixels_of(&r->p)) hi--;
        const double step = floor((double)below[hi] / 255);
        for (size_t k = i; step > 0 && k < bytes_of(&r->p); k += c)
            r->p.pixels[k] =
                (uint8_t)fmin(255, floor(((double)below[r->p.pixels[k]] + floor(step / 2)) / step));
    }
}

/* ---- neighbours ---- */

static void sharpen_by(mr_image *p, double factor)
{
    const long w = p->width, h = p->height, c = p->channels;
    mr_image old = *p;
    if (w < 3 || h < 3) return;
    old.pixels = malloc(bytes_of(p));
    memcpy(old.pixels, p->pixels, bytes_of(p));
    for (long y = 1; y < h - 1; y++)
        for (long x = 1; x < w - 1; x++)
            for (long k = 0; k < c; k++) {
                double sum = 0;
                for (long dy = -1; dy <= 1; dy++)
                    for (long dx = -1; dx <= 1; dx++)
                        sum += (dx || dy ? 1 : 5) * old.pixels[((y + dy) * w + x + dx) * c + k];
                const double smooth = floor(sum / 13 + 0.5);
                uint8_t *at = p->pixels + (y * w + x) * c + k;
                *at = mrt_ref_clip(smooth + factor * (*at - smooth));
            }
    mr_image_free(&old);
}

void mrt_ref_sharpness(mrt_ref *r, double lo, double hi, double p)
{
    if (mrt_ref_happens(r, p, 0, 1)) sharpen_by(&r->p, drawn(lo, hi, mrt_ref_draw(r, 0).v[0]));
}

/* The pixel at `at` of a side and its mirror images about the outermost pixels. */
static long mirrored(long at, long side)
{
    while (side > 1 && (at < 0 || at >= side)) at = at < 0 ? -at : 2 * (side - 1) - at;
    return side > 1 ? at : 0;
}

void mrt_ref_blur(mrt_ref *r, int kernel, double lo, double hi, double p)
{
    const long w = r->p.width, h = r->p.height, c = r->p.channels, half = kernel / 2;
    if (!mrt_ref_happens(r, p, 0, 1)) return;
    const double sigma = between(lo, hi, mrt_ref_draw(r, 0).v[0]);
    double weight[64];
    mr_image out = r->p;
    out.pixels = malloc(bytes_of(&out));
    for (long d = 0; d <= half; d++) weight[d] = exp(-(double)(d * d) / (2 * sigma * sigma));
    for (long y = 0; y < h; y++)
        for (long x = 0; x < w; x++)
            for (long k = 0; k < c; k++) {
                double sum = 0, all = 0;
                for (long dy = -half; dy <= half; dy++)
                    for (long dx = -half; dx <= half; dx++) {
                        const double part = weight[labs(dx)] * weight[labs(dy)];
                        sum += part * r->p.pixels[(mirrored(y + dy, h) * w + mirrored(x + dx, w)) * c + k];
                        all += part;
                    }
                out.pixels[(y * w + x) * c + k] = mrt_ref_clip(sum / all);
            }
    mr_image_free(&r->p);
    r->p = out;
}

/* ---- maps ---- */

struct map {
    double degrees, scale, shear_x, shear_y, move_x, move_y; /* degrees clockwise; shears are tangents */
    bool corner;
};

static double value_at(const mr_image *p, double x, double y, uint32_t k, const uint8_t *fill)
{
    const bool inside = x >= 0 && y >= 0 && x < p->width && y < p->height;
    return inside ? p->pixels[((size_t)y * p->width + (size_t)x) * p->channels + k] : fill ? fill[k] : 0;
}

/* Each step undone, the last one first. */
static void map_by(mr_image *p, struct map m, mrt_ref_look look)
{
    const double cx = m.corner ? 0 : p->width / 2.0, cy = m.corner ? 0 : p->height / 2.0;
    const double angle = m.degrees * acos(-1) / 180;
    mr_image out = *p;
    out.pixels = malloc(bytes_of(p));
    for (uint32_t j = 0; j < p->height; j++)
        for (uint32_t i = 0; i < p->width; i++) {
            double x = i + 0.5 - m.move_x - cx, y = j + 0.5 - m.move_y - cy;
            const double sx = x / m.scale, sy = y / m.scale;
            x = cos(angle) * sx + sin(angle) * sy;
            y = -sin(angle) * sx + cos(angle) * sy;
            y += m.shear_y * x;
            x += m.shear_x * y;
            x += cx;
            y += cy;
            for (uint32_t k = 0; k < p->channels; k++) {
                double v = value_at(p, floor(x), floor(y), k, look.fill);
                if (!look.nearest) {
                    const double left = floor(x - 0.5), top = floor(y - 0.5), fx = x - 0.5 - left,
                                 fy = y - 0.5 - top;
                    v = (1 - fy) * ((1 - fx) * value_at(p, left, top, k, look.fill) +
                                    fx * value_at(p, left + 1, top, k, look.fill)) +
                        fy * ((1 - fx) * value_at(p, left, top + 1, k, look.fill) +
                              fx * value_at(p, left + 1, top + 1, k, look.fill));
                }
                out.pixels[((size_t)j * p->width + i) * p->channels + k] = mrt_ref_clip(v);
            }
        }
    mr_image_free(p);
    *p = out;
}

static double tangent(double degrees) { return tan(degrees * acos(-1) / 180); }

void mrt_ref_rotate(mrt_ref *r, double degrees, mrt_ref_look look)
{
    map_by(&r->p, (struct map){.degrees = between(-degrees, degrees, mrt_ref_draw(r, 0).v[0]), .scale = 1},
           look);
}

void mrt_ref_affine(mrt_ref *r, double degrees, const double move[2], const double scale[2],
                    const double shear[2], mrt_ref_look look)
{
    const mri_philox a = mrt_ref_draw(r, 0), b = mrt_ref_draw(r, 1);
    const double mx = move[0] * r->p.width, my = move[1] * r->p.height;
    map_by(&r->p,
           (struct map){.degrees = between(-degrees, degrees, a.v[0]),
                        .move_x = floor(between(-mx, mx, a.v[1]) + 0.5),
                        .move_y = floor(between(-my, my, a.v[2]) + 0.5),
                        .scale = between(scale[0], scale[1], a.v[3]),
                        .shear_x = tangent(between(-shear[0], shear[0], b.v[0])),
                        .shear_y = tangent(between(-shear[1], shear[1], b.v[1]))},
           look);
}

/* ---- policies ---- */

/* torchvision's _augmentation_space(), in its order, at a level of 0 to 30. */
static void deed(mr_image *p, int what, double level, double sign, bool wide, mrt_ref_look look)
{
    const double part = level / 30, w = p->width, h = p->height;
    const double shear = sign * (wide ? 0.99 : 0.3) * part;
    const double factor = floor((1 + sign * (wide ? 0.99 : 0.9) * part) * 65536 + 0.5) / 65536;
    mrt_ref one = {.p = *p};
    if (look.moves_only && what >= 6) return;
    switch (what) {
    case 0: return; /* Identity */
    case 1: map_by(p, (struct map){.scale = 1, .shear_x = shear, .corner = true}, look); return;
    case 2: map_by(p, (struct map){.scale = 1, .shear_y = shear, .corner = true}, look); return;
    case 3:
        map_by(p, (struct map){.scale = 1, .move_x = sign * floor((wide ? 32 : 150.0 / 331 * w) * part)},
               look);
        return;
    case 4:
        map_by(p, (struct map){.scale = 1, .move_y = sign * floor((wide ? 32 : 150.0 / 331 * h) * part)},
               look);
        return;
    case 5: map_by(p, (struct map){.scale = 1, .degrees = -sign * (wide ? 135 : 30) * part}, look); return;
    case 6: mrt_ref_scale_by(p, factor); return;
    case 7: mrt_ref_saturation_by(p, factor); return;
    case 8: mrt_ref_contrast_by(p, factor); return;
    case 9: sharpen_by(p, factor); return;
    case 10: posterize_by(p, 8 - (int)nearbyint(level / (30.0 / (wide ? 6 : 4)))); return;
    case 11: solarize_by(p, 255 - 255 * part); return;
    case 12: mrt_ref_autocontrast(&one, 1); return;
    case 13: mrt_ref_equalize(&one, 1); return;
    default: abort();
    }
}

void mrt_ref_randaugment(mrt_ref *r, uint32_t n, uint32_t level, mrt_ref_look look)
{
    for (uint32_t k = 0; k < n; k++) {
        const mri_philox d = mrt_ref_draw(r, k);
        deed(&r->p, (int)(d.v[0] / 4294967296.0 * 14), level, d.v[1] / 4294967296.0 < 0.5 ? 1 : -1, false,
             look);
    }
}

void mrt_ref_trivial(mrt_ref *r, mrt_ref_look look)
{
    const mri_philox d = mrt_ref_draw(r, 0);
    deed(&r->p, (int)(d.v[0] / 4294967296.0 * 14), floor(d.v[2] / 4294967296.0 * 31),
         d.v[1] / 4294967296.0 < 0.5 ? 1 : -1, true, look);
}
