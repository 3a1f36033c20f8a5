/* tests/pipeline/decode/odd_other.c: files that are not JPEG or PNG under a picture's name, pictures under
 * each other's name, and EXIF parts of every kind. */
#include "base/util.h"
#include "mrt.h"
#include "tests/pipeline/decode/odd.h"

/* ---- other files ---- */

typedef struct other {
    const char *bytes;
    size_t count;
} other;

#define BYTES(text)                                                                                          \
    {                                                                                                        \
        text, sizeof(text) - 1                                                                               \
    }
enum {
    GIF,
    BMP,
    TIFF_LITTLE,
    TIFF_BIG,
    BIG_TIFF,
    WEBP,
    HEIC,
    AVIF,
    MP4,
    PSD,
    SVG,
    SVG_BARE,
    PDF,
    PAGE,
    PAGE_BARE,
    POINTER,
    JP2,
    J2K,
    JXL,
    JXL_BOX,
    ICO,
    TGA_LIKE,
    TEXT,
    UTF16,
    GZIP,
    ZIP,
    PNM,
    ZEROS,
    EXR,
    DICOM,
    JSON_TEXT,
    HDF5,
    ELF,
    OTHERS
};

static const other others[OTHERS] = {
    [GIF] = BYTES("GIF88a\1\0\1\0\x80\0\0\0\0\0\xff\xff\xff,\0\0\0\0\1\0\1\0\0\2\2D\1\0;"),
    [BMP] = BYTES("BM:\0\0\0\0\0\0\0\x36\0\0\0\x29\0\0\0\1\0\0\0\1\0\0\0\1\0\x18\0\0\0\0\0\4\0\0\0"),
    [TIFF_LITTLE] = BYTES("II*\0\x08\0\0\0\0\0\0\0\0\0"),
    [TIFF_BIG] = BYTES("MM\0*\0\0\0\x08\0\0\0\0\0\0"),
    [BIG_TIFF] = BYTES("II+\0\x08\0\0\0\x10\0\0\0\0\0\0\0"),
    [WEBP] = BYTES("RIFF\x1a\0\0\0WEBPVP9L\x0d\0\0\0/\0\0\0\x10\7\x10\x11\x11\x88\x88\xfe\7\0"),
    [HEIC] = BYTES("\0\0\0\x18"
                   "ftypheic\0\0\0\0mif1heic"),
    [AVIF] = BYTES("\0\0\0\x1c"
                   "ftypavif\0\0\0\0avifmif1miaf"),
    [MP4] = BYTES("\0\0\0\x18"
                  "ftypisom\0\0\2\0isomiso2"),
    [PSD] = BYTES("8BPS\0\1\0\0\0\0\0\0\0\3\0\0\0\1\0\0\0\1\0\x08\0\3"),
    [SVG] = BYTES(
        "<?xml version=\"1.0\"?>\n<svg xmlns=\"http://www.w3.org/2000/svg\" width=\"1\" height=\"1\"/>\n"),
    [SVG_BARE] = BYTES("<svg xmlns=\"http://www.w3.org/2000/svg\"/>"),
    [PDF] = BYTES("%PDF-1.4\n%\xe2\xe3\xcf\xd3\n1 0 obj\n"),
    [PAGE] = BYTES("<!DOCTYPE html>\n<html><head><title>404 Not Found</title></head></html>\n"),
    [PAGE_BARE] = BYTES("\r\n  <HTML><body>Sign in</body></HTML>"),
    [POINTER] = BYTES("version https://git-lfs.github.com/spec/v1\noid sha256:0123\nsize 12345\n"),
    [JP2] = BYTES("\0\0\0\x0cjP  \r\n\x87\n\0\0\0\x14"
                  "ftypjp2 "),
    [J2K] = BYTES("\xff\x4f\xff\x51\0\x2f\0\0\0\0\0\1"),
    [JXL] = BYTES("\xff\x0a\xfa\x1f\x41\x91\x08"),
    [JXL_BOX] = BYTES("\0\0\0\x0cJXL \r\n\x87\n\0\0\0\x14"
                      "ftypjxl "),
    [ICO] = BYTES("\0\0\1\0\1\0\x10\x10\0\0\1\0\x20\0\x68\4\0\0\x16\0\0\0"),
    [TGA_LIKE] = BYTES("\0\0\2\0\0\0\0\0\0\0\0\0\1\0\1\0\x18\0"),
    [TEXT] = BYTES("this is no picture at all\n"),
    [UTF16] = BYTES("\xff\xfet\0h\0i\0s\0"),
    [GZIP] = BYTES("\x1f\x8b\x08\0\0\0\0\0\0\3\3\0\0\0\0\0\0\0\0\0"),
    [ZIP] = BYTES("PK\3\4\x14\0\0\0\0\0"),
    [PNM] = BYTES("P6\n1 1\n255\nabc"),
    [ZEROS] = BYTES("\0\0\0\0\0\0\0\0\0\0\0\0\0\0\0\0\0\0\0\0"),
    [EXR] = BYTES("\x76\x2f\x31\x01\2\0\0\0"),
    [DICOM] = BYTES("\0\0\0\0\0\0\0\0\0\0\0\0\0\0\0\0\0\0\0\0\0\0\0\0\0\0\0\0\0\0\0\0\0\0\0\0\0\0\0\0\0\0\0\0"
                    "\0\0\0\0\0\0\0\0\0\0\0\0\0\0\0\0\0\0\0\0"
                    "\0\0\0\0\0\0\0\0\0\0\0\0\0\0\0\0\0\0\0\0\0\0\0\0\0\0\0\0\0\0\0\0\0\0\0\0\0\0\0\0\0\0\0\0"
                    "\0\0\0\0\0\0\0\0\0\0\0\0\0\0\0\0\0\0\0\0"
                    "DICM\2\0\0\0"),
    [JSON_TEXT] = BYTES("{\"error\": {\"code\": 403, \"message\": \"Rate limit exceeded\"}}"),
    [HDF5] = BYTES("\x89HDF\r\n\x1a\n\0\0\0\0"),
    [ELF] = BYTES("\x7f"
                  "ELF\2\1\1\0\0\0\0\0\0\0\0\0"),
};

static void file_of(mrt_odd *o, int variant) { mrt_odd_put(o, others[variant].bytes, others[variant].count); }

static void misnamed(mrt_odd *o, int png)
{
    const mr_image in = {MRT_ODD_WIDE, MRT_ODD_HIGH, 3, mrt_picture(MRT_ODD_WIDE, MRT_ODD_HIGH, 3, 8)};
    void *data;
    size_t bytes;
    if (png) {
        MRT_EQ(mr_image_encode_png(&in, &data, &bytes, NULL), MR_OK);
        mrt_odd_put(o, data, bytes);
        free(data);
        o->pixels = in;
        return;
    }
    mrt_odd_base(o);
    free(in.pixels);
}

/* A text line or a byte order mark in front of a JPEG. */
static void in_front(mrt_odd *o, int variant)
{
    mrt_odd_base(o);
    mrt_odd_splice(o, 0, 0, variant ? "\xef\xbb\xbf" : "HTTP/1.1 200 OK\r\n\r\n", variant ? 3 : 19);
}

/* Line ends changed by a transfer as text. */
static void line_ends(mrt_odd *o, int variant)
{
    (void)variant;
    misnamed(o, 1);
    free(o->pixels.pixels);
    o->pixels = (mr_image){0};
    mrt_odd_splice(o, 4, 1, NULL, 0);
}

const mrt_odd_case mrt_odd_other[] = {
    {"gif.jpg", file_of, GIF, MR_EFORMAT,
     "expected a picture, found a GIF picture of no known version: convert it to JPEG or PNG", NULL, 0},
    {"bmp.jpg", file_of, BMP, MR_EFORMAT, "found a BMP picture of no known version: convert it to JPEG", NULL,
     0},
    {"tiff-ii.jpg", file_of, TIFF_LITTLE, MR_EFORMAT, "TIFF: a picture of 0 x 0 pixels: damaged", NULL, 0},
    {"tiff-mm.jpg", file_of, TIFF_BIG, MR_EFORMAT, "TIFF: a picture of 0 x 0 pixels: damaged", NULL, 0},
    {"tiff-big.jpg", file_of, BIG_TIFF, MR_EFORMAT, "TIFF: its directory lies past its end at byte 16", NULL,
     0},
    {"webp.jpg", file_of, WEBP, MR_EFORMAT, "found a WebP picture of no known version: convert", NULL, 0},
    {"heic.jpg", file_of, HEIC, MR_EUNSUPPORTED, "HEIC: a film without a still picture (no box meta)", NULL,
     0},
    {"avif.jpg", file_of, AVIF, MR_EUNSUPPORTED, "AVIF: a film without a still picture (no box meta)", NULL,
     0},
    {"mp4.jpg", file_of, MP4, MR_EFORMAT, "found a film (MP4 or QuickTime)", NULL, 0},
    {"psd.jpg", file_of, PSD, MR_EFORMAT, "found a Photoshop picture: convert it to JPEG or PNG", NULL, 0},
    {"svg.jpg", file_of, SVG, MR_EFORMAT, "found an SVG drawing: convert it to JPEG or PNG", NULL, 0},
    {"svg-bare.jpg", file_of, SVG_BARE, MR_EFORMAT, "found an SVG drawing: convert it to JPEG or PNG", NULL,
     0},
    {"pdf.jpg", file_of, PDF, MR_EFORMAT, "found a PDF document", NULL, 0},
    {"page.jpg", file_of, PAGE, MR_EFORMAT, "found a page of HTML: fetch the file again", NULL, 0},
    {"page-bare.jpg", file_of, PAGE_BARE, MR_EFORMAT, "found a page of HTML: fetch the file again", NULL, 0},
    {"pointer.jpg", file_of, POINTER, MR_EFORMAT,
     "found a git-lfs pointer, not the file it stands for: fetch it with git lfs pull", NULL, 0},
    {"jpeg2000.jpg", file_of, JP2, MR_EFORMAT, "found a JPEG 2000 picture: convert it to JPEG or PNG", NULL,
     0},
    {"jpeg2000-bare.jpg", file_of, J2K, MR_EFORMAT, "found a JPEG 2000 picture: convert it to JPEG or PNG",
     NULL, 0},
    {"jpeg-xl-bare.jpg", file_of, JXL, MR_EFORMAT, "found a JPEG XL picture: convert it to JPEG or PNG", NULL,
     0},
    {"jpeg-xl.jpg", file_of, JXL_BOX, MR_EFORMAT, "found a JPEG XL picture: convert it to JPEG or PNG", NULL,
     0},
    {"ico.jpg", file_of, ICO, MR_EFORMAT, "found an ICO picture: convert it to JPEG or PNG", NULL, 0},
    {"pnm.jpg", file_of, PNM, MR_EFORMAT, "found a PNM picture: convert it to JPEG or PNG", NULL, 0},
    {"exr.jpg", file_of, EXR, MR_EFORMAT, "found an OpenEXR picture: convert it to JPEG or PNG", NULL, 0},
    {"dicom.jpg", file_of, DICOM, MR_EFORMAT, "found a DICOM picture: convert it to JPEG or PNG", NULL, 0},
    {"gzip.jpg", file_of, GZIP, MR_EFORMAT, "found a gzip file: unpack it", NULL, 0},
    {"zip.jpg", file_of, ZIP, MR_EFORMAT, "found a zip file: unpack it", NULL, 0},
    {"zeros.jpg", file_of, ZEROS, MR_EFORMAT, "found nothing but zeros: it was never written, or lost", NULL,
     0},
    {"tga.jpg", file_of, TGA_LIKE, MR_EFORMAT, "found bytes 00 00 02 00 00 00 00 00", NULL, 0},
    {"hdf5.jpg", file_of, HDF5, MR_EFORMAT, "found an HDF5 file", NULL, 0},
    {"program.jpg", file_of, ELF, MR_EFORMAT, "found bytes 7f 45 4c 46", NULL, 0},
    {"text.jpg", file_of, TEXT, MR_EFORMAT, "found text (\"this is no picture at all\")", NULL, 0},
    {"json.jpg", file_of, JSON_TEXT, MR_EFORMAT, "found text (\"{\"error\": {\"code\": 403", NULL, 0},
    {"utf-16.jpg", file_of, UTF16, MR_EFORMAT, "found bytes ff fe 74 00", NULL, 0},
    {"line-in-front.jpg", in_front, 0, MR_EFORMAT, "found bytes 48 54 54 50 2f 31 2e 31", NULL, 0},
    {"mark-in-front.jpg", in_front, 1, MR_EFORMAT, "found bytes ef bb bf ff d8 ff", NULL, 0},
    {"line-ends.png", line_ends, 0, MR_EFORMAT,
     "a PNG whose line ends were changed: fetch it again, not as text", NULL, 0},
    {"png-bytes.jpg", misnamed, 1, MR_OK, NULL, NULL, 0},
    {"jpeg-bytes.png", misnamed, 0, MR_OK, NULL, NULL, 0},
    {0},
};

/* ---- EXIF ---- */

/* A TIFF part with one entry: orientation, of this type and count. */
static size_t exif_part(uint8_t *p, bool big, unsigned type, uint32_t count, unsigned value)
{
    static const uint8_t little[] = "II*\0\x08\0\0\0\1\0\x12\1T\0C\0\0\0V\0\0\0\0\0\0",
                         bigger[] = "MM\0*\0\0\0\x08\0\1\1\x12\0T\0\0\0C\0V\0\0\0\0\0";
    memcpy(p, big ? bigger : little, 26);
    p[big ? 13 : 12] = (uint8_t)type;
    p[big ? 17 : 14] = (uint8_t)count;
    p[big ? 19 : 18] = (uint8_t)value;
    return 26;
}

static void insert_exif(mrt_odd *o, size_t at, const uint8_t *part, size_t bytes)
{
    uint8_t head[10] = {0xff, 0xe1, (uint8_t)((bytes + 8) >> 8), (uint8_t)(bytes + 8), 'E', 'x', 'i', 'f',
                        0,    0};
    mrt_odd_splice(o, at, 0, part, bytes);
    mrt_odd_splice(o, at, 0, head, sizeof head);
}

/* The twin has the orientation that should be found, written by the shared maker. */
static void twin_with(mrt_odd *o, int orientation)
{
    o->twin = mrt_jpeg(&(mrt_jpeg_kind){.h = 2, .v = 2, .restart_rows = 1, .orientation = orientation},
                       MRT_ODD_WIDE, MRT_ODD_HIGH, 3, &o->twin_bytes);
}

/* variant: value + 10 if big-endian. */
static void orientation(mrt_odd *o, int variant)
{
    uint8_t part[64];
    const int value = variant % 10;
    mrt_odd_base(o);
    insert_exif(o, 20, part, exif_part(part, variant / 10, 3, 1, (unsigned)value));
    twin_with(o, value >= 1 && value <= 8 ? value : 1);
}

enum {
    CUT,
    CUT_ENTRY,
    OFFSET_PAST,
    OFFSET_HUGE,
    LOOP,
    MARK,
    LONG,
    BYTE_TYPE,
    COUNT_2,
    COUNT_0,
    MANY_ENTRIES,
    EMPTY,
    NO_NULS
};

static void broken(mrt_odd *o, int variant)
{
    uint8_t part[64];
    size_t bytes = exif_part(part, false,
                             variant == LONG        ? 4
                             : variant == BYTE_TYPE ? 1
                                                    : 3,
                             variant == COUNT_2   ? 2
                             : variant == COUNT_0 ? 0
                                                  : 1,
                             6);
    if (variant == CUT) bytes = 7;
    if (variant == CUT_ENTRY) bytes = 21;
    if (variant == OFFSET_PAST) part[4] = 200;
    if (variant == OFFSET_HUGE) memset(part + 4, 0xff, 4);
    if (variant == LOOP) part[4] = 0; /* the directory is the header */
    if (variant == MARK) part[0] = part[1] = 'X';
    if (variant == MANY_ENTRIES) part[8] = part[9] = 0xff, part[10] = 0;
    if (variant == EMPTY) bytes = 0;
    mrt_odd_base(o);
    insert_exif(o, 20, part, bytes);
    if (variant == NO_NULS) o->data[28] = 'X';
    twin_with(o, variant == LONG ? 6 : 1); /* some programs write it as a LONG; others show it turned, too */
}

/* A directory that says it goes on at itself: nobody follows. */
static void next_is_itself(mrt_odd *o, int variant)
{
    (void)variant;
    uint8_t part[64];
    exif_part(part, false, 3, 1, 6);
    part[22] = 8;
    mrt_odd_base(o);
    insert_exif(o, 20, part, 26);
    twin_with(o, 6);
}

/* Two parts: the first that has one counts. variant: first * 10 + second; 0: none. */
static void two_parts(mrt_odd *o, int variant)
{
    uint8_t part[64];
    mrt_odd_base(o);
    insert_exif(o, 20, part, exif_part(part, false, 3, 1, (unsigned)variant % 10));
    if (variant / 10) insert_exif(o, 20, part, exif_part(part, true, 3, 1, (unsigned)variant / 10));
    else mrt_odd_splice(o, 20, 0, "\xff\xe1\0\x1fhttp://ns.adobe.com/xap/1.0/\0", 33);
    twin_with(o, variant / 10 ? variant / 10 : variant % 10);
}

static void behind_frame(mrt_odd *o, int value)
{
    uint8_t part[64];
    mrt_odd_base(o);
    insert_exif(o, mrt_odd_segment(o, 0xc4, 0), part, exif_part(part, false, 3, 1, (unsigned)value));
    twin_with(o, value);
}

/* After the scan it comes too late for a program that shows a picture as it arrives: it does not count. */
static void behind_scan(mrt_odd *o, int value)
{
    uint8_t part[64];
    mrt_odd_base(o);
    insert_exif(o, o->bytes - 2, part, exif_part(part, false, 3, 1, (unsigned)value));
    twin_with(o, 1);
}

const mrt_odd_case mrt_odd_exif[] = {
    {"exif-0.jpg", orientation, 0, MR_OK, NULL, NULL, 0},
    {"exif-1.jpg", orientation, 1, MR_OK, NULL, NULL, 0},
    {"exif-2.jpg", orientation, 2, MR_OK, NULL, NULL, 0},
    {"exif-3.jpg", orientation, 13, MR_OK, NULL, NULL, 0},
    {"exif-4.jpg", orientation, 4, MR_OK, NULL, NULL, 0},
    {"exif-5.jpg", orientation, 15, MR_OK, NULL, NULL, 0},
    {"exif-6.jpg", orientation, 6, MR_OK, NULL, NULL, 0},
    {"exif-7.jpg", orientation, 17, MR_OK, NULL, NULL, 0},
    {"exif-8.jpg", orientation, 8, MR_OK, NULL, NULL, 0},
    {"exif-9.jpg", orientation, 9, MR_OK, NULL, NULL, 0},
    {"exif-cut.jpg", broken, CUT, MR_OK, NULL, NULL, 0},
    {"exif-cut-entry.jpg", broken, CUT_ENTRY, MR_OK, NULL, NULL, 0},
    {"exif-offset-past.jpg", broken, OFFSET_PAST, MR_OK, NULL, NULL, 0},
    {"exif-offset-huge.jpg", broken, OFFSET_HUGE, MR_OK, NULL, NULL, 0},
    {"exif-loop.jpg", broken, LOOP, MR_OK, NULL, NULL, 0},
    {"exif-next-itself.jpg", next_is_itself, 0, MR_OK, NULL, NULL, 0},
    {"exif-mark.jpg", broken, MARK, MR_OK, NULL, NULL, 0},
    {"exif-long.jpg", broken, LONG, MR_OK, NULL, NULL, 0},
    {"exif-byte.jpg", broken, BYTE_TYPE, MR_OK, NULL, NULL, 0},
    {"exif-count-2.jpg", broken, COUNT_2, MR_OK, NULL, NULL, 0},
    {"exif-count-0.jpg", broken, COUNT_0, MR_OK, NULL, NULL, 0},
    {"exif-many.jpg", broken, MANY_ENTRIES, MR_OK, NULL, NULL, 0},
    {"exif-empty.jpg", broken, EMPTY, MR_OK, NULL, NULL, 0},
    {"exif-no-name.jpg", broken, NO_NULS, MR_OK, NULL, NULL, 0},
    {"exif-twice.jpg", two_parts, 63, MR_OK, NULL, NULL, 0},
    {"exif-second.jpg", two_parts, 16, MR_OK, NULL, NULL, 0},
    {"exif-behind-xmp.jpg", two_parts, 6, MR_OK, NULL, NULL, 0},
    {"exif-behind-frame.jpg", behind_frame, 8, MR_OK, NULL, NULL, 0},
    {"exif-behind-scan.jpg", behind_scan, 8, MR_OK, NULL, NULL, 0},
    {0},
};
