/* pixel_ops: operations on pixels by themselves: against torchvision 0.29's results (truncated where ours are
 * rounded, so a step apart at most, or two where it truncates twice), against doubles at sides where strips
 * of rows end, and on every size with no write outside the picture. */
#include <math.h>

#include "base/simd.h"
#include "base/util.h"
#include "mrt.h"
#include "pipeline/augment/turn.h"
#include "pipeline/pixels/colour.h"
#include "pipeline/pixels/pixels.h"
#include "pipeline/pixels/smooth.h"
#include "pipeline/pixels/tone.h"
#include "tests/pipeline/pictures.h"

enum { WIDE = 6, HIGH = 5, BYTES = WIDE * HIGH * 3 };

static const uint8_t picture[BYTES] = {
    5, 230, 0, 45, 231, 0,  85, 232, 0,   125, 233, 0,   165, 234, 0,   0,   255, 254,
    5, 180, 0, 45, 181, 13, 85, 182, 26,  125, 183, 39,  165, 184, 52,  205, 185, 65,
    5, 130, 0, 45, 131, 26, 85, 132, 52,  255, 0,   128, 165, 134, 104, 205, 135, 130,
    5, 80,  0, 45, 81,  39, 85, 82,  78,  125, 83,  117, 165, 84,  156, 205, 85,  195,
    5, 30,  0, 7,  7,   7,  85, 32,  104, 125, 33,  156, 165, 34,  208, 205, 35,  4};

/* torchvision.transforms.functional on that picture. */
static const struct known {
    const char *what;
    double by[7];
    uint8_t expected[BYTES];
} known[] = {
    {"hue", {0.1}, {0, 230, 133, 0,  231, 93, 0,   232, 54, 0,   233, 14,  24,  234, 0,   0,   103, 255,
                    0, 180, 103, 13, 181, 82, 26,  182, 60, 39,  183, 39,  86,  184, 52,  141, 205, 65,
                    0, 130, 73,  26, 131, 70, 52,  132, 67, 255, 25,  0,   160, 165, 104, 205, 180, 130,
                    0, 80,  43,  39, 81,  58, 84,  85,  78, 125, 83,  92,  165, 84,  107, 205, 85,  123,
                    0, 30,  13,  7,  7,   7,  104, 32,  80, 156, 33,  113, 208, 34,  147, 205, 156, 4}},
    {"hue", {-0.35}, {230, 0, 28, 231, 0,  68, 232, 0,   108, 233, 0,   148, 234, 0,   189, 255, 229, 0,
                      180, 0, 23, 181, 13, 62, 182, 26,  100, 183, 39,  139, 184, 52,  178, 171, 65,  205,
                      130, 0, 18, 131, 26, 55, 132, 52,  93,  0,   154, 255, 128, 104, 165, 130, 133, 205,
                      80,  0, 13, 81,  39, 49, 81,  78,  85,  83,  121, 125, 84,  164, 165, 85,  205, 203,
                      30,  0, 8,  7,   7,  7,  32,  104, 78,  33,  156, 113, 34,  208, 148, 14,  4,   205}},
    {"hue", {0.5}, {225, 0, 230, 186, 0,  231, 147, 0,   232, 108, 0,   233, 69,  0,   234, 255, 0,   1,
                    175, 0, 180, 149, 13, 181, 123, 26,  182, 97,  39,  183, 71,  52,  184, 65,  85,  205,
                    125, 0, 130, 112, 26, 131, 99,  52,  132, 0,   255, 127, 104, 135, 165, 130, 200, 205,
                    75,  0, 80,  75,  39, 81,  78,  81,  85,  83,  125, 91,  84,  165, 93,  85,  205, 95,
                    25,  0, 30,  7,   7,  7,   51,  104, 32,  64,  156, 33,  77,  208, 34,  4,   174, 205}},
    {"scale", {1.5}, {7, 255, 0, 67, 255, 0,  127, 255, 0,   187, 255, 0,   247, 255, 0,   0,   255, 255,
                      7, 255, 0, 67, 255, 19, 127, 255, 39,  187, 255, 58,  247, 255, 78,  255, 255, 97,
                      7, 195, 0, 67, 196, 39, 127, 198, 78,  255, 0,   192, 247, 201, 156, 255, 202, 195,
                      7, 120, 0, 67, 121, 58, 127, 123, 117, 187, 124, 175, 247, 126, 234, 255, 127, 255,
                      7, 45,  0, 10, 10,  10, 127, 48,  156, 187, 49,  234, 247, 51,  255, 255, 52,  6}},
    {"contrast", {0.4}, {69,  159, 67,  85,  159, 67,  101, 160, 67,  117, 160, 67,  133, 161, 67,
                         67,  169, 169, 69,  139, 67,  85,  139, 72,  101, 140, 77,  117, 140, 83,
                         133, 141, 88,  149, 141, 93,  69,  119, 67,  85,  119, 77,  101, 120, 88,
                         169, 67,  118, 133, 121, 109, 149, 121, 119, 69,  99,  67,  85,  99,  83,
                         101, 100, 98,  117, 100, 114, 133, 101, 129, 149, 101, 145, 69,  79,  67,
                         70,  70,  70,  101, 80,  109, 117, 80,  129, 133, 81,  150, 149, 81,  69}},
    {"contrast", {1.8}, {0, 255, 0, 0, 255, 0, 63, 255, 0,  135, 255, 0,   207, 255, 0,   0,   255, 255,
                         0, 234, 0, 0, 235, 0, 63, 237, 0,  135, 239, 0,   207, 241, 3,   255, 243, 27,
                         0, 144, 0, 0, 145, 0, 63, 147, 3,  255, 0,   140, 207, 151, 97,  255, 153, 144,
                         0, 54,  0, 0, 55,  0, 63, 57,  50, 135, 59,  120, 207, 61,  190, 255, 63,  255,
                         0, 0,   0, 0, 0,   0, 63, 0,   97, 135, 0,   190, 207, 0,   255, 255, 0,   0}},
    {"saturation", {0.3}, {96,  164, 95,  117, 173, 104, 138, 182, 112, 159, 191, 121, 179, 200, 130,
                           124, 201, 200, 76,  128, 74,  98,  139, 88,  120, 149, 102, 141, 159, 116,
                           163, 169, 129, 185, 179, 143, 55,  92,  53,  78,  104, 72,  101, 115, 91,
                           139, 63,  101, 146, 137, 128, 170, 149, 147, 35,  57,  33,  59,  69,  57,
                           82,  82,  80,  106, 94,  104, 130, 106, 128, 154, 118, 151, 14,  22,  13,
                           6,   6,   6,   64,  48,  70,  89,  61,  98,  113, 74,  126, 118, 67,  58}},
    {"saturation", {1.7}, {0, 255, 0, 0,  255, 0,  31,  255, 0,   90,  255, 0,   150, 255, 0,   0,   255, 255,
                           0, 231, 0, 0,  223, 0,  50,  214, 0,   108, 206, 0,   166, 198, 0,   224, 190, 0,
                           0, 167, 0, 11, 157, 0,  68,  148, 12,  255, 0,   154, 183, 130, 79,  240, 121, 112,
                           0, 102, 0, 31, 92,  20, 87,  82,  75,  143, 71,  129, 199, 61,  184, 255, 51,  238,
                           0, 37,  0, 7,  7,   7,  105, 15,  137, 160, 4,   213, 216, 0,   255, 255, 2,   0}},
    {"gray", {0}, {137, 137, 137, 149, 149, 149, 162, 162, 162, 174, 174, 174, 187, 187, 187, 179, 179, 179,
                   107, 107, 107, 121, 121, 121, 135, 135, 135, 149, 149, 149, 163, 163, 163, 177, 177, 177,
                   78,  78,  78,  93,  93,  93,  109, 109, 109, 91,  91,  91,  140, 140, 140, 155, 155, 155,
                   48,  48,  48,  65,  65,  65,  82,  82,  82,  99,  99,  99,  116, 116, 116, 133, 133, 133,
                   19,  19,  19,  7,   7,   7,   56,  56,  56,  75,  75,  75,  93,  93,  93,  82,  82,  82}},
    {"invert", {0}, {250, 25,  255, 210, 24,  255, 170, 23,  255, 130, 22,  255, 90,  21,  255,
                     255, 0,   1,   250, 75,  255, 210, 74,  242, 170, 73,  229, 130, 72,  216,
                     90,  71,  203, 50,  70,  190, 250, 125, 255, 210, 124, 229, 170, 123, 203,
                     0,   255, 127, 90,  121, 151, 50,  120, 125, 250, 175, 255, 210, 174, 216,
                     170, 173, 177, 130, 172, 138, 90,  171, 99,  50,  170, 60,  250, 225, 255,
                     248, 248, 248, 170, 223, 151, 130, 222, 99,  90,  221, 47,  50,  220, 251}},
    {"solarize", {100}, {5, 25,  0, 45, 24,  0,  85, 23,  0,   130, 22, 0,   90, 21,  0,   0,  0,   1,
                         5, 75,  0, 45, 74,  13, 85, 73,  26,  130, 72, 39,  90, 71,  52,  50, 70,  65,
                         5, 125, 0, 45, 124, 26, 85, 123, 52,  0,   0,  127, 90, 121, 151, 50, 120, 125,
                         5, 80,  0, 45, 81,  39, 85, 82,  78,  130, 83, 138, 90, 84,  99,  50, 85,  60,
                         5, 30,  0, 7,  7,   7,  85, 32,  151, 130, 33, 99,  90, 34,  47,  50, 35,  4}},
    {"posterize", {3}, {0, 224, 0, 32, 224, 0,  64, 224, 0,  96,  224, 0,   160, 224, 0,   0,   224, 224,
                        0, 160, 0, 32, 160, 0,  64, 160, 0,  96,  160, 32,  160, 160, 32,  192, 160, 64,
                        0, 128, 0, 32, 128, 0,  64, 128, 32, 224, 0,   128, 160, 128, 96,  192, 128, 128,
                        0, 64,  0, 32, 64,  32, 64, 64,  64, 96,  64,  96,  160, 64,  128, 192, 64,  192,
                        0, 0,   0, 0,  0,   0,  64, 32,  96, 96,  32,  128, 160, 32,  192, 192, 32,  0}},
    {"autocontrast", {0}, {4, 230, 0, 44, 230, 0,  84, 232, 0,   124, 232, 0,   164, 234, 0,   0,   255, 255,
                           4, 180, 0, 44, 180, 12, 84, 182, 26,  124, 182, 38,  164, 184, 52,  204, 184, 64,
                           4, 130, 0, 44, 130, 26, 84, 132, 52,  255, 0,   128, 164, 134, 104, 204, 134, 130,
                           4, 80,  0, 44, 80,  38, 84, 82,  78,  124, 82,  116, 164, 84,  156, 204, 84,  194,
                           4, 30,  0, 6,  6,   6,  84, 32,  104, 124, 32,  156, 164, 34,  208, 204, 34,  4}},
    {"sharpness", {0.2}, {5, 230, 0, 45, 231, 0,  85, 232, 0,   125, 233, 0,   165, 234, 0,   0,   255, 254,
                          5, 180, 0, 45, 181, 13, 93, 174, 29,  133, 175, 42,  160, 176, 70,  205, 185, 65,
                          5, 130, 0, 45, 131, 26, 93, 124, 55,  191, 65,  103, 173, 126, 107, 205, 135, 130,
                          5, 80,  0, 42, 79,  36, 90, 72,  78,  133, 75,  120, 173, 76,  143, 205, 85,  195,
                          5, 30,  0, 7,  7,   7,  85, 32,  104, 125, 33,  156, 165, 34,  208, 205, 35,  4}},
    {"sharpness", {3.5}, {5, 230, 0, 45, 231, 0,  85, 232, 0,   125, 233, 0,   165, 234, 0,   0,   255, 254,
                          5, 180, 0, 45, 181, 13, 60, 207, 16,  100, 208, 29,  180, 206, 0,   205, 185, 65,
                          5, 130, 0, 45, 131, 26, 60, 157, 42,  255, 0,   205, 140, 159, 94,  205, 135, 130,
                          5, 80,  0, 52, 86,  46, 67, 112, 78,  100, 108, 107, 140, 109, 196, 205, 85,  195,
                          5, 30,  0, 7,  7,   7,  85, 32,  104, 125, 33,  156, 165, 34,  208, 205, 35,  4}},
    {"blur", {5, 1.2}, {38, 189, 9,  54, 188, 13, 90, 185, 24, 127, 184, 43,  146, 189, 64,  152, 191, 76,
                        38, 172, 13, 55, 170, 19, 93, 166, 33, 132, 164, 55,  154, 169, 76,  160, 172, 87,
                        37, 130, 20, 54, 126, 30, 95, 120, 55, 139, 117, 84,  165, 123, 104, 174, 127, 111,
                        34, 87,  25, 51, 84,  39, 90, 81,  74, 135, 80,  108, 166, 85,  129, 177, 87,  134,
                        32, 68,  27, 48, 67,  42, 87, 66,  81, 132, 66,  118, 164, 70,  139, 176, 72,  143}},
    {"blur", {3, 0.5}, {14, 220, 1, 45, 220, 3,  85, 221, 6,  125, 222, 8,   148, 225, 32,  70,  237, 171,
                        14, 180, 3, 45, 181, 13, 86, 180, 27, 136, 172, 43,  164, 183, 55,  179, 186, 84,
                        14, 130, 6, 45, 131, 26, 96, 121, 56, 206, 51,  109, 176, 123, 108, 196, 135, 124,
                        13, 80,  7, 42, 79,  35, 86, 80,  78, 136, 72,  121, 166, 82,  154, 196, 85,  165,
                        7,  37,  3, 21, 27,  21, 82, 41,  95, 125, 44,  148, 165, 45,  175, 196, 45,  77}},
    {"turn", {1, 25}, {0, 0,   0, 5,  180, 0,   45,  231, 0,   85,  232, 0,   125, 233, 0,   0,   0,   0,
                       5, 130, 0, 45, 131, 26,  85,  182, 26,  125, 183, 39,  125, 233, 0,   165, 234, 0,
                       5, 80,  0, 45, 81,  39,  85,  132, 52,  255, 0,   128, 165, 184, 52,  205, 185, 65,
                       7, 7,   7, 85, 32,  104, 85,  82,  78,  125, 83,  117, 165, 134, 104, 205, 135, 130,
                       0, 0,   0, 85, 32,  104, 125, 33,  156, 165, 34,  208, 205, 85,  195, 0,   0,   0}},
    {"turn", {0, -40}, {0,  0,   0, 56, 117, 0,  141, 226, 6,  164, 195, 52,  202, 163, 92,  61,  39, 40,
                        34, 145, 0, 85, 219, 7,  115, 187, 33, 180, 121, 84,  177, 124, 123, 193, 88, 174,
                        28, 211, 3, 59, 180, 18, 100, 138, 50, 198, 37,  117, 153, 84,  141, 182, 54, 143,
                        5,  162, 0, 33, 141, 17, 64,  109, 47, 95,  78,  90,  125, 46,  146, 98,  21, 123,
                        1,  40,  0, 8,  102, 2,  32,  66,  27, 56,  31,  65,  50,  16,  62,  0,   0,  0}},
    {"affine",
     {1, 20, 1, -1, 1.3, 15, -10},
     {5, 80, 0, 45, 131, 26,  45, 131, 26,  85,  132, 52,  85,  182, 26,  125, 183, 39,
      5, 80, 0, 45, 81,  39,  85, 82,  78,  85,  132, 52,  255, 0,   128, 125, 183, 39,
      7, 7,  7, 7,  7,   7,   85, 82,  78,  125, 83,  117, 255, 0,   128, 165, 134, 104,
      0, 0,  0, 85, 32,  104, 85, 32,  104, 125, 33,  156, 165, 84,  156, 165, 84,  156,
      0, 0,  0, 0,  0,   0,   0,  0,   0,   165, 34,  208, 165, 34,  208, 205, 85,  195}},
    {"affine",
     {0, 20, 1, -1, 1.3, 15, -10},
     {4,  85, 0, 25, 116, 15, 50,  136, 28,  75,  156, 34,  106, 170, 37,  124, 196, 29,
      14, 59, 9, 43, 82,  37, 68,  102, 53,  113, 102, 70,  202, 56,  98,  173, 131, 75,
      6,  12, 5, 46, 39,  49, 86,  69,  86,  121, 78,  102, 185, 58,  124, 175, 114, 111,
      7,  4,  8, 49, 19,  60, 103, 36,  126, 128, 56,  142, 153, 76,  152, 178, 96,  155,
      0,  0,  0, 0,  0,   0,  47,  13,  58,  113, 26,  142, 171, 42,  176, 195, 63,  127}},
};

static int32_t fixed(double v) { return (int32_t)floor(v * 65536 + 0.5); }

/* A normal distribution, as blur makes it. */
static mri_blur_weights weights_of(uint32_t radius, double sigma)
{
    double sum = 1;
    mri_blur_weights w = {.radius = radius, .weight = {65536}};
    for (uint32_t k = 1; k <= radius; k++) sum += 2 * exp(-(double)(k * k) / (2 * sigma * sigma));
    for (uint32_t k = 1; k <= radius; k++) {
        w.weight[k] = (uint32_t)floor(exp(-(double)(k * k) / (2 * sigma * sigma)) / sum * 65536 + 0.5);
        w.weight[0] -= 2 * w.weight[k];
    }
    return w;
}

static double tangent(double degrees) { return tan(degrees * acos(-1) / 180); }

static void warp(uint8_t *p, uint8_t *copy, const mri_turn *by, bool nearest)
{
    const mri_warp w = mri_warp_of(by, WIDE, HIGH);
    memcpy(copy, p, BYTES);
    mri_warp_picture(copy, WIDE, HIGH, 3, &w, nearest, (uint8_t[4]){0}, p);
}

static void apply(const struct known *k, uint8_t *p)
{
    const size_t n = WIDE * HIGH;
    uint8_t copy[BYTES];
    if (strcmp(k->what, "hue") == 0) mri_hue(p, n, 3, fixed(k->by[0]));
    else if (strcmp(k->what, "scale") == 0) mri_scale(p, BYTES, fixed(k->by[0]));
    else if (strcmp(k->what, "contrast") == 0) mri_contrast(p, n, 3, fixed(k->by[0]));
    else if (strcmp(k->what, "saturation") == 0) mri_saturation(p, n, 3, fixed(k->by[0]));
    else if (strcmp(k->what, "gray") == 0) mri_to_gray(p, n, 3);
    else if (strcmp(k->what, "invert") == 0) mri_invert(p, BYTES);
    else if (strcmp(k->what, "solarize") == 0) mri_solarize(p, BYTES, (uint32_t)k->by[0]);
    else if (strcmp(k->what, "posterize") == 0) mri_posterize(p, BYTES, (uint32_t)k->by[0]);
    else if (strcmp(k->what, "sharpness") == 0) mri_sharpen(p, WIDE, HIGH, 3, fixed(k->by[0]), copy);
    else if (strcmp(k->what, "autocontrast") == 0) {
        for (size_t i = 0; i < BYTES; i++) p[i] = (uint8_t)(p[i] / 2 + 40);
        mri_autocontrast(p, n, 3);
    } else if (strcmp(k->what, "blur") == 0) {
        const mri_blur_weights w = weights_of((uint32_t)k->by[0] / 2, k->by[1]);
        mri_blur(p, WIDE, HIGH, 3, &w, copy);
    } else if (strcmp(k->what, "turn") == 0) {
        warp(p, copy, &(mri_turn){.scale = 1, .degrees = k->by[1]}, k->by[0] != 0);
    } else if (strcmp(k->what, "affine") == 0) {
        warp(p, copy,
             &(mri_turn){.degrees = k->by[1],
                         .move_x = k->by[2],
                         .move_y = k->by[3],
                         .scale = k->by[4],
                         .shear_x = tangent(k->by[5]),
                         .shear_y = tangent(k->by[6])},
             k->by[0] != 0);
    } else fail_msg("%s?", k->what);
}

/* Where nothing is rounded, nothing differs; saturation is cut off at the gray, too. */
static int slack_of(const struct known *k)
{
    static const char *const exact[] = {"gray", "invert", "solarize", "posterize"};
    for (size_t n = 0; n < MRI_ARRAY_COUNT(exact); n++)
        if (strcmp(exact[n], k->what) == 0) return 0;
    if ((strcmp(k->what, "turn") == 0 || strcmp(k->what, "affine") == 0) && k->by[0] != 0) return 0;
    return strcmp(k->what, "saturation") == 0 ? 2 : 1;
}

static void equals_torchvision(void **state)
{
    (void)state;
    for (size_t n = 0; n < MRI_ARRAY_COUNT(known); n++) {
        uint8_t p[BYTES];
        memcpy(p, picture, BYTES);
        apply(&known[n], p);
        for (size_t i = 0; i < BYTES; i++)
            if (abs(p[i] - known[n].expected[i]) > slack_of(&known[n]))
                fail_msg("%s %g: value %zu is %u, expected %u", known[n].what, known[n].by[0], i, p[i],
                         known[n].expected[i]);
    }
}

/* Pixels of i * i mod 97 and 40; torchvision's equalize of them, the first of them. */
static void equalizes_as_torchvision(void **state)
{
    (void)state;
    static const uint8_t expected[30] = {0,  4,   23,  42,  60,  85,  122, 153, 190, 239,
                                         17, 79,  141, 215, 10,  98,  184, 255, 110, 209,
                                         54, 166, 255, 135, 255, 129, 255, 160, 36,  197};
    uint8_t p[600];
    for (uint32_t i = 0; i < sizeof p; i++) p[i] = (uint8_t)(i * i % 97 + 40);
    mri_equalize(p, sizeof p, 1);
    for (size_t i = 0; i < sizeof expected; i++) MRT_EQ(p[i], expected[i]);
}

/* ---- against doubles ---- */

static uint32_t mirrored(int64_t at, uint32_t side)
{
    while (side > 1 && (at < 0 || at >= side)) at = at < 0 ? -at : 2 * ((int64_t)side - 1) - at;
    return side > 1 ? (uint32_t)at : 0;
}

static double blurred(const uint8_t *p, uint32_t w, uint32_t h, uint32_t c, uint32_t x, uint32_t y,
                      uint32_t k, const mri_blur_weights *b)
{
    const int64_t r = b->radius;
    double sum = 0;
    for (int64_t dy = -r; dy <= r; dy++)
        for (int64_t dx = -r; dx <= r; dx++)
            sum += (double)b->weight[labs((long)dx)] * b->weight[labs((long)dy)] *
                   p[((size_t)mirrored(y + dy, h) * w + mirrored(x + dx, w)) * c + k];
    return sum / 65536 / 65536;
}

static void blurs_at_every_side(void **state)
{
    (void)state;
    static const uint32_t sizes[][2] = {{1, 1},   {1, 7},   {7, 1},   {2, 2},
                                        {33, 17}, {256, 2}, {257, 3}, {520, 2}};
    static const uint32_t radii[] = {1, 2, 11, 31};
    for (size_t n = 0; n < MRI_ARRAY_COUNT(sizes); n++)
        for (uint32_t c = 1; c <= 3; c += 2)
            for (size_t r = 0; r < MRI_ARRAY_COUNT(radii); r++) {
                const uint32_t w = sizes[n][0], h = sizes[n][1];
                const size_t bytes = (size_t)w * h * c;
                const mri_blur_weights b = weights_of(radii[r], radii[r] / 1.5);
                uint8_t *p = mrt_picture(w, h, c, n), *q = malloc(bytes), *copy = malloc(bytes);
                memcpy(q, p, bytes);
                mri_blur(q, w, h, c, &b, copy);
                for (size_t k = 0; k < bytes; k++) {
                    const double v = blurred(p, w, h, c, (uint32_t)(k / c % w), (uint32_t)(k / c / w),
                                             (uint32_t)(k % c), &b);
                    /* half a step, and half of 1/128 from the columns */
                    if (fabs(q[k] - v) > 0.5 + 0.5 / 128 + 1e-9)
                        fail_msg("%u x %u x %u, radius %u, value %zu: %u, expected %g", w, h, c, radii[r], k,
                                 q[k], v);
                }
                free(p);
                free(q);
                free(copy);
            }
}

/* Every fifth colour there is, by Smith's hexagon in doubles. */
static void hues_of_all_colours(void **state)
{
    (void)state;
    static const int32_t turns[] = {-32768, -10923, -1, 0, 1, 5000, 21845, 32768};
    for (size_t n = 0; n < MRI_ARRAY_COUNT(turns); n++)
        for (uint32_t k = 0; k < 52 * 52 * 52; k++) {
            const uint8_t in[3] = {(uint8_t)(k % 52 * 5), (uint8_t)(k / 52 % 52 * 5),
                                   (uint8_t)(k / 52 / 52 * 5)};
            uint8_t p[3] = {in[0], in[1], in[2]};
            const double r = in[0], g = in[1], b = in[2], v = fmax(r, fmax(g, b)),
                         d = v - fmin(r, fmin(g, b));
            const double h = d == 0 ? 0 : v == r ? (g - b) / d : v == g ? 2 + (b - r) / d : 4 + (r - g) / d;
            mri_hue(p, 1, 3, turns[n]);
            for (int c = 0; c < 3; c++) { /* Smith's formulas in one: 5, 3, 1 edges on */
                const double at = fmod(h + 6 * turns[n] / 65536.0 + 5 - 2 * c + 12, 6);
                const double expected = v - d * fmax(0, fmin(1, fmin(at, 4 - at)));
                if (fabs(p[c] - expected) > 0.5 + 1e-9)
                    fail_msg("(%u, %u, %u) by %d: channel %d is %u, expected %g", in[0], in[1], in[2],
                             turns[n], c, p[c], expected);
            }
        }
}

static void sines_are_right(void **state)
{
    (void)state;
    double s, c;
    for (double x = -720; x <= 720; x += 0.37) {
        mri_sine_cosine(x, &s, &c);
        MRT_TRUE(fabs(s - sin(x * acos(-1) / 180)) < 2e-14 && fabs(c - cos(x * acos(-1) / 180)) < 2e-14);
        MRT_TRUE(fabs(s * s + c * c - 1) < 1e-15);
    }
    for (int k = -8; k <= 8; k++) { /* exact */
        mri_sine_cosine(90.0 * k, &s, &c);
        MRT_TRUE(s == (k % 2 ? ((k % 4 + 4) % 4 == 1 ? 1 : -1) : 0));
        MRT_TRUE(c == (k % 2 ? 0 : k % 4 ? -1 : 1));
    }
}

/* Turns by whole quarters move whole pixels of a square, by either filter. */
static void quarters_are_exact(void **state)
{
    (void)state;
    enum { SIDE = 9 };
    uint8_t p[SIDE * SIDE], q[sizeof p];
    for (size_t k = 0; k < sizeof p; k++) p[k] = (uint8_t)(3 * k);
    for (int quarter = 0; quarter < 4; quarter++)
        for (int nearest = 0; nearest < 2; nearest++) {
            const mri_warp w = mri_warp_of(&(mri_turn){.scale = 1, .degrees = 90.0 * quarter}, SIDE, SIDE);
            mri_warp_picture(p, SIDE, SIDE, 1, &w, nearest, (uint8_t[4]){1}, q);
            for (int y = 0; y < SIDE; y++)
                for (int x = 0; x < SIDE; x++) { /* clockwise: the left side becomes the top */
                    const int from[4] = {y * SIDE + x, (SIDE - 1 - x) * SIDE + y,
                                         (SIDE - 1 - y) * SIDE + SIDE - 1 - x, x * SIDE + SIDE - 1 - y};
                    MRT_EQ(q[y * SIDE + x], p[from[quarter]]);
                }
        }
}

/* ---- every size, every instruction set ---- */

/* Everything there is, one after the other. copy: as large as the picture; nothing beyond either is touched,
 * which the address sanitizer sees. */
static void do_all(uint8_t *p, uint32_t w, uint32_t h, uint32_t c, uint8_t *copy)
{
    const size_t pixels = (size_t)w * h, bytes = pixels * c;
    const mri_blur_weights b = weights_of(5, 2);
    const mri_warp turned = mri_warp_of(&(mri_turn){.scale = 0.7, .degrees = 33}, w, h),
                   sheared = mri_warp_of(&(mri_turn){.scale = 1.2, .shear_x = 0.4, .move_y = 1}, w, h);
    mri_mirror(p, w, h, c);
    mri_brightness(p, bytes, -7);
    mri_hue(p, pixels, c, 12345);
    mri_scale(p, bytes, 70000);
    mri_contrast(p, pixels, c, 55555);
    mri_saturation(p, pixels, c, 99999);
    mri_sharpen(p, w, h, c, 100000, copy);
    mri_blur(p, w, h, c, &b, copy);
    memcpy(copy, p, bytes);
    mri_warp_picture(copy, w, h, c, &turned, false, (uint8_t[4]){1, 2, 3, 4}, p);
    memcpy(copy, p, bytes);
    mri_warp_picture(copy, w, h, c, &sheared, true, (uint8_t[4]){1, 2, 3, 4}, p);
    mri_hue(p, pixels, c, -30000);
    mri_solarize(p, bytes, 200);
    mri_posterize(p, bytes, 7);
    mri_autocontrast(p, pixels, c);
    mri_equalize(p, pixels, c);
}

static void every_variant_gives_the_same_bits(void **state)
{
    (void)state;
    static const uint32_t sizes[][2] = {{1, 1},  {1, 7},  {7, 1},   {2, 3},   {3, 2},    {33, 17},
                                        {64, 1}, {65, 3}, {127, 5}, {300, 3}, {41, 100}, {1030, 1030}};
    uint32_t variants = 0;
    for (size_t n = 0; n < MRI_ARRAY_COUNT(sizes); n++)
        for (uint32_t c = 1; c <= 3; c += 2) {
            const uint32_t w = sizes[n][0], h = sizes[n][1];
            const size_t bytes = (size_t)w * h * c;
            uint8_t *p = mrt_picture(w, h, c, n), *plain = malloc(bytes), *found = malloc(bytes),
                    *copy = malloc(bytes);
            const mri_simd_level before = mri_simd();
            memcpy(plain, p, bytes);
            MRT_TRUE(mri_simd_use(MRI_SIMD_PLAIN));
            do_all(plain, w, h, c, copy);
            for (int level = MRI_SIMD_PLAIN + 1; level <= MRI_SIMD_NEON; level++) {
                if (!mri_simd_use((mri_simd_level)level)) continue;
                memcpy(found, p, bytes);
                do_all(found, w, h, c, copy);
                for (size_t k = 0; k < bytes; k++)
                    if (found[k] != plain[k])
                        fail_msg("%u x %u x %u, %s: value %zu is %u, expected %u", w, h, c,
                                 mri_simd_name((mri_simd_level)level), k, found[k], plain[k]);
                variants++;
            }
            MRT_TRUE(mri_simd_use(before));
            free(p);
            free(plain);
            free(found);
            free(copy);
        }
    if (variants == 0) print_message("this processor has the plain variant alone\n");
}

/* Sums over more bytes than are added up at a time. */
static void means_of_large_pictures(void **state)
{
    (void)state;
    enum { SIDE = 1100, LARGE = SIDE * SIDE * 3 };
    uint8_t *p = malloc(LARGE);
    double mean = 0;
    for (size_t k = 0; k < LARGE; k++)
        p[k] = (uint8_t)(k % 3 == 0 ? 255 : k % 3 == 1 ? 200 - k % 7 : k / 20000);
    for (size_t k = 0; k < LARGE; k += 3)
        mean += (19595.0 * p[k] + 38470.0 * p[k + 1] + 7471.0 * p[k + 2]) / 65536;
    mri_contrast(p, SIDE * SIDE, 3, 0);
    for (size_t k = 0; k < LARGE; k += 1000) MRT_EQ(p[k], (uint8_t)floor(mean / (SIDE * SIDE) + 0.5));
    free(p);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(equals_torchvision),
        cmocka_unit_test(equalizes_as_torchvision),
        cmocka_unit_test(blurs_at_every_side),
        cmocka_unit_test(hues_of_all_colours),
        cmocka_unit_test(sines_are_right),
        cmocka_unit_test(quarters_are_exact),
        cmocka_unit_test(every_variant_gives_the_same_bits),
        cmocka_unit_test(means_of_large_pictures),
    };
    return mrt_run(tests);
}
