/* tests/pipeline/decode/odd.h: pictures that are odd or broken, each with what has to come of it. One table
 * for the library's test (test_odd_pictures.c) and for the command's (tests/cli/bad/odd_files.c).
 *
 * A maker fills an mrt_odd: the file, and where it can be decoded something that says with which pixels: a
 * twin, an ordinary file with the same ones, or the pixels themselves. */
#ifndef MRT_ODD_H
#define MRT_ODD_H

#include "tests/pipeline/pictures.h"

typedef struct mrt_odd {
    uint8_t *data; /* the file; malloc'd, of exactly this size */
    size_t bytes;
    uint8_t *twin; /* or NULL; malloc'd */
    size_t twin_bytes;
    mr_image pixels; /* or {0}; malloc'd */
} mrt_odd;

enum {
    MRT_ODD_BELOW = 1, /* the fault lies below some crops, which are then right */
    MRT_ODD_CMYK = 2,  /* libjpeg's own RGB differs from these pixels */
    MRT_ODD_ROUGH = 4, /* ours and libjpeg's chroma are far apart: it is spread over four pixels or more, or
                          bent */
    MRT_ODD_OWN = 8,   /* only our decoder takes it; libjpeg says `otherwise` */
};

typedef struct mrt_odd_case {
    const char *name; /* of the file too */
    void (*make)(mrt_odd *out, int variant);
    int variant;
    int code;              /* MR_OK, or why it is refused: of all ways to decode it */
    const char *says;      /* part of the message */
    const char *otherwise; /* what libjpeg says when it says something else, or NULL */
    unsigned flags;
} mrt_odd_case;

/* Each ends with a case without a name. */
extern const mrt_odd_case mrt_odd_jpeg[], mrt_odd_jpeg_damage[], mrt_odd_png[], mrt_odd_other[],
    mrt_odd_exif[], mrt_odd_kinds[], mrt_odd_webp[], mrt_odd_tiff[], mrt_odd_heic[], mrt_odd_avif[];
/* For the library's test alone: too large for many copies on disk. */
extern const mrt_odd_case mrt_odd_large[];

typedef struct mrt_odd_group {
    const char *name;
    const mrt_odd_case *cases;
    mr_type type; /* mr_image_can_decode() says whether this machine does; 0: every machine does */
} mrt_odd_group;

#define MRT_ODD_GROUPS 10
extern const mrt_odd_group mrt_odd_groups[MRT_ODD_GROUPS];

void mrt_odd_free(mrt_odd *o);

/* ---- for makers ---- */

enum { MRT_ODD_WIDE = 44, MRT_ODD_HIGH = 36 }; /* most pictures here: no multiple of a block */

void mrt_odd_put(mrt_odd *o, const void *data, size_t bytes);
/* Replace `cut` bytes at `at` with these. */
void mrt_odd_splice(mrt_odd *o, size_t at, size_t cut, const void *data, size_t bytes);
/* The file so far becomes the twin. */
void mrt_odd_twin(mrt_odd *o);
/* Where the n-th segment FF marker of a JPEG begins, counted from 0; its bytes with marker and length. */
size_t mrt_odd_segment(const mrt_odd *o, unsigned marker, int n);
size_t mrt_odd_segment_bytes(const mrt_odd *o, size_t at);
/* An ordinary JPEG: 4:2:0, a restart marker after each row of MCUs. */
void mrt_odd_base(mrt_odd *o);

#endif
