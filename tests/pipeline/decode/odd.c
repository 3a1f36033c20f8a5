/* tests/pipeline/decode/odd.c: functions of all makers of odd pictures. See odd.h. */
#include "tests/pipeline/decode/odd.h"

#include "base/util.h"
#include "mrt.h"

const mrt_odd_group mrt_odd_groups[MRT_ODD_GROUPS] = {
    {"jpeg", mrt_odd_jpeg, 0},
    {"damage", mrt_odd_jpeg_damage, 0},
    {"png", mrt_odd_png, 0},
    {"other", mrt_odd_other, 0},
    {"exif", mrt_odd_exif, 0},
    {"kinds", mrt_odd_kinds, 0},
    {"webp", mrt_odd_webp, MR_TYPE_WEBP},
    {"tiff", mrt_odd_tiff, MR_TYPE_TIFF},
    {"heic", mrt_odd_heic, MR_TYPE_HEIC},
    {"avif", mrt_odd_avif, MR_TYPE_AVIF},
};

void mrt_odd_free(mrt_odd *o)
{
    free(o->data);
    free(o->twin);
    free(o->pixels.pixels);
    *o = (mrt_odd){0};
}

void mrt_odd_splice(mrt_odd *o, size_t at, size_t cut, const void *data, size_t bytes)
{
    const size_t all = o->bytes - cut + bytes;
    uint8_t *p = malloc(all ? all : 1); /* exact, so that a read past the end is seen by the sanitizer */
    if (!p || at > o->bytes || cut > o->bytes - at) abort();
    if (at) memcpy(p, o->data, at);
    if (bytes) memcpy(p + at, data, bytes);
    if (o->bytes - at - cut) memcpy(p + at + bytes, o->data + at + cut, o->bytes - at - cut);
    free(o->data);
    o->data = p;
    o->bytes = all;
}

void mrt_odd_put(mrt_odd *o, const void *data, size_t bytes) { mrt_odd_splice(o, o->bytes, 0, data, bytes); }

void mrt_odd_twin(mrt_odd *o)
{
    o->twin = malloc(o->bytes);
    memcpy(o->twin, o->data, o->bytes);
    o->twin_bytes = o->bytes;
}

size_t mrt_odd_segment_bytes(const mrt_odd *o, size_t at) { return 2 + (size_t)mri_be16(o->data + at + 2); }

size_t mrt_odd_segment(const mrt_odd *o, unsigned marker, int n)
{
    for (size_t at = 2; at + 4 <= o->bytes;) {
        const bool here = o->data[at] == 0xff && o->data[at + 1] == marker;
        if (here && n-- == 0) return at;
        if (o->data[at] != 0xff || o->data[at + 1] == 0xda) break;
        at += mrt_odd_segment_bytes(o, at);
    }
    abort();
}

void mrt_odd_base(mrt_odd *o)
{
    o->data = mrt_jpeg(&(mrt_jpeg_kind){.h = 2, .v = 2, .restart_rows = 1}, MRT_ODD_WIDE, MRT_ODD_HIGH, 3,
                       &o->bytes);
}
