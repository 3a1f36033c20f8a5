/* run/synth/synth_picture.c: see synth_picture.h.
 *
 * Ten shapes distinguish the classes. Place, size, a little turn, both colours, a shading of the background,
 * a stray line and noise are drawn for each picture, so that neither a mean colour nor one pixel gives the
 * class away; with more than ten classes the colour of the shape encodes the tens. A small network gets above
 * nine in ten after a few passes. */
#include "run/synth/synth_picture.h"

#include <math.h>
#include <stdio.h>
#include <stdlib.h>

static const char *const shapes[MRI_SYNTH_SHAPES] = {"disc", "ring",  "square", "frame",   "triangle",
                                                     "plus", "cross", "rows",   "columns", "checks"};
static const char *const colours[MRI_SYNTH_COLOURS] = {"red",  "orange", "yellow", "green", "teal",
                                                       "blue", "violet", "pink",   "white", "black"};
static const uint8_t colour_rgb[MRI_SYNTH_COLOURS][3] = {
    {220, 40, 40}, {235, 130, 30}, {230, 220, 50},  {40, 170, 60},   {30, 160, 160},
    {50, 70, 220}, {130, 50, 190}, {240, 130, 190}, {245, 245, 245}, {15, 15, 15}};

const char *mri_synth_class_name(uint32_t class_idx, uint32_t class_count, char *buf, size_t buf_bytes)
{
    const char *shape = shapes[class_idx % MRI_SYNTH_SHAPES];
    if (class_count <= MRI_SYNTH_SHAPES) snprintf(buf, buf_bytes, "%s", shape);
    else snprintf(buf, buf_bytes, "%s-%s", colours[class_idx / MRI_SYNTH_SHAPES], shape);
    return buf;
}

/* SplitMix64 (Steele et al. 2014): one stream of bits per picture. */
typedef struct picture_bits {
    uint64_t state;
} picture_bits;

static uint64_t next_bits(picture_bits *b)
{
    uint64_t x = b->state += 0x9E3779B97F4A7C15u;
    x = (x ^ (x >> 30)) * 0xBF58476D1CE4E5B9u;
    x = (x ^ (x >> 27)) * 0x94D049BB133111EBu;
    return x ^ (x >> 31);
}

static picture_bits start_bits(const mri_synth_key *k, uint64_t use)
{
    picture_bits b = {k->seed};
    const uint64_t words[] = {k->class_idx, k->part, k->number, use};
    for (size_t i = 0; i < sizeof words / sizeof words[0]; i++) b.state = next_bits(&b) ^ words[i];
    return b;
}

/* [low, high) */
static float draw(picture_bits *b, float low, float high)
{
    return low + (high - low) * (float)(next_bits(b) >> 40) * 0x1p-24f;
}

uint32_t mri_synth_side(const mri_synth_key *key, uint32_t low, uint32_t high)
{
    picture_bits b = start_bits(key, 1);
    return low + (uint32_t)(next_bits(&b) % ((uint64_t)high - low + 1));
}

/* (u, v) in units of the shape: it fills [-1, 1] in both. */
static bool inside(uint32_t shape, float u, float v)
{
    const float au = fabsf(u), av = fabsf(v), r = sqrtf(u * u + v * v), most = au > av ? au : av;
    switch (shape) {
    case 0: return r < 1.0f;
    case 1: return r < 1.0f && r > 0.55f;
    case 2: return most < 0.9f;
    case 3: return most < 0.9f && most > 0.5f;
    case 4: return v < 0.8f && v > -0.9f && au < (v + 0.9f) * 0.6f;
    case 5: return most < 1.0f && (au < 0.3f || av < 0.3f);
    case 6: return most < 0.95f && fabsf(au - av) < 0.38f;
    case 7: return most < 1.0f && fmodf(v + 1.0f, 0.8f) < 0.4f;
    case 8: return most < 1.0f && fmodf(u + 1.0f, 0.8f) < 0.4f;
    default: return most < 1.0f && (fmodf(u + 1.0f, 1.0f) < 0.5f) != (fmodf(v + 1.0f, 1.0f) < 0.5f);
    }
}

typedef struct synth_scene {
    uint32_t shape;
    float cx, cy, size, cosine, sine; /* place, half the extent, turn; in parts of the side */
    float front[3], back[3], slope_x, slope_y;
    float line_a, line_b, line_c, line[3]; /* a stray line a x + b y = c */
    float noise;
} synth_scene;

static float luma(const float *c) { return 0.299f * c[0] + 0.587f * c[1] + 0.114f * c[2]; }

static void draw_colours(synth_scene *s, picture_bits *b, const mri_synth_key *key)
{
    for (int c = 0; c < 3; c++) s->front[c] = draw(b, 0, 255);
    if (key->class_count > MRI_SYNTH_SHAPES)
        for (int c = 0; c < 3; c++)
            s->front[c] = (float)colour_rgb[key->class_idx / MRI_SYNTH_SHAPES][c] + draw(b, -12, 12);
    do { /* seen in gray, too */
        for (int c = 0; c < 3; c++) s->back[c] = draw(b, 0, 255);
    } while (fabsf(luma(s->back) - luma(s->front)) < 70);
    for (int c = 0; c < 3; c++) s->line[c] = draw(b, 0, 255);
}

static synth_scene draw_scene(const mri_synth_key *key)
{
    picture_bits b = start_bits(key, 2);
    synth_scene s = {.shape = key->class_idx % MRI_SYNTH_SHAPES};
    const float turn = draw(&b, -0.2f, 0.2f), angle = draw(&b, 0, 3.14159265f);
    s.size = draw(&b, 0.26f, 0.42f);
    s.cx = draw(&b, s.size, 1 - s.size);
    s.cy = draw(&b, s.size, 1 - s.size);
    s.cosine = cosf(turn);
    s.sine = sinf(turn);
    s.slope_x = draw(&b, -50, 50);
    s.slope_y = draw(&b, -50, 50);
    s.line_a = cosf(angle);
    s.line_b = sinf(angle);
    s.line_c = s.line_a * draw(&b, 0, 1) + s.line_b * draw(&b, 0, 1);
    s.noise = draw(&b, 15, 45);
    draw_colours(&s, &b, key);
    return s;
}

static void paint(const synth_scene *s, float x, float y, float rgb[3])
{
    const float dx = (x - s->cx) / s->size, dy = (y - s->cy) / s->size;
    const bool in = inside(s->shape, dx * s->cosine - dy * s->sine, dx * s->sine + dy * s->cosine);
    const bool on_line = fabsf(s->line_a * x + s->line_b * y - s->line_c) < 0.02f;
    const float shade = s->slope_x * (x - 0.5f) + s->slope_y * (y - 0.5f);
    for (int c = 0; c < 3; c++) rgb[c] = on_line ? s->line[c] : in ? s->front[c] : s->back[c] + shade;
}

int mri_synth_draw(const mri_synth_key *key, uint32_t side, uint32_t channels, mr_image *out)
{
    const synth_scene s = draw_scene(key);
    picture_bits b = start_bits(key, 3);
    *out = (mr_image){side, side, channels, malloc((size_t)side * side * channels)};
    if (!out->pixels) return MR_ENOMEM;
    uint8_t *p = out->pixels;
    for (uint32_t y = 0; y < side; y++) {
        for (uint32_t x = 0; x < side; x++) {
            float rgb[3];
            paint(&s, ((float)x + 0.5f) / (float)side, ((float)y + 0.5f) / (float)side, rgb);
            if (channels == 1) rgb[0] = luma(rgb);
            for (uint32_t c = 0; c < channels; c++) {
                const float v = rgb[c] + s.noise * (draw(&b, -1, 1) + draw(&b, -1, 1));
                *p++ = v < 0 ? 0 : v > 255 ? 255 : (uint8_t)(v + 0.5f);
            }
        }
    }
    return MR_OK;
}
