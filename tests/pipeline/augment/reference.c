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

void mrt_ref_solarize(mrt_ref *r, int threshold, double p)
{
    for (size_t k = 0; mrt_ref_happens(r, p, 0, 0) && k < bytes_of(&r->p); k++)
        if (r->p.pixels[k] >= threshold) r->p.pixels[k] = (uint8_t)(255 - r->p.pixels[k]);
}

void mrt_ref_posterize(mrt_ref *r, int bits, double p)
{
    const int step = 1 << (8 - bits);
    for (size_t k = 0; mrt_ref_happens(r, p, 0, 0) && k < bytes_of(&r->p); k++)
        r->p.pixels[k] = (uint8_t)(r->p.pixels[k] / step * step);
}

/* Pixels of a channel whose value is below v. */
static size_t count_below(const mr_image *p, uint32_t channel, int v)
{
    size_t n = 0;
    for (size_t k = 0; k < pixels_of(p); k++) n += p->pixels[k * p->channels + channel] < v;
    return n;
}

void mrt_ref_autocontrast(mrt_ref *r, double p)
{
    const uint32_t c = r->p.channels;
    if (!mrt_ref_happens(r, p, 0, 0)) return;
    for (uint32_t i = 0; i < c; i++) {
        int lo = 0, hi = 255;
        while (count_below(&r->p, i, lo + 1) == 0) lo++;
        while (count_below(&r->p, i, hi) == pixels_of(&r->p)) hi--;
        for (size_t k = i; lo < hi && k < bytes_of(&r->p); k += c)
            r->p.pixels[k] = mrt_ref_clip(255.0 * (r->p.pixels[k] - lo) / (hi - lo));
    }
}

void mrt_ref_equalize(mrt_ref *r, double p)
{
    const uint32_t c = r->p.channels;
    if (!mrt_ref_happens(r, p, 0, 0)) return;
    for (uint32_t i = 0; i < c; i++) {
        int hi = 255;
        double to[256];
        while (count_below(&r->p, i, hi) == pixels_of(&r->p)) hi--;
        const double step = floor((double)count_below(&r->p, i, hi) / 255);
        for (int v = 0; v < 256; v++)
            to[v] = fmin(255, floor(((double)count_below(&r->p, i, v) + floor(step / 2)) / step));
        for (size_t k = i; step > 0 && k < bytes_of(&r->p); k += c)
            r->p.pixels[k] = (uint8_t)to[r->p.pixels[k]];
    }
}
