/* formats/image/picture_kind.c: see picture_kind.h. People name a picture .jpg whatever it is, servers answer
 * with a page, and repositories hold pointers: whoever finds such a file among a million wants to know which
 * of these it was. Only mri_picture_lost() decides anything. */
#include "formats/image/picture_kind.h"

#include <stdio.h>
#include <strings.h>

#include "formats/storage/storage.h"

#define CONVERT ": convert it to JPEG or PNG"
#define UNPACK  ": unpack it"
#define FETCH   ": fetch the file again"
#define PICKLE  "a Python pickle: CIFAR-10 and CIFAR-100 are read in their binary version"

enum { LOOK_BYTES = 512, SHOWN_BYTES = 40 };

static const struct {
    const char *name, *magic;
    size_t at, magic_bytes;
} kinds[] = {
    {"a GIF picture of no known version" CONVERT, "GIF8", 0, 4},
    {"a WebP picture of no known version" CONVERT, "WEBP", 8, 4},
    {"a TIFF picture of no known version" CONVERT, "II+\0", 0, 4}, /* BigTIFF */
    {"a TIFF picture of no known version" CONVERT, "MM\0+", 0, 4},
    {"a JPEG 2000 picture" CONVERT, "jP  ", 4, 4},
    {"a JPEG 2000 picture" CONVERT, "\xff\x4f\xff\x51", 0, 4},
    {"a JPEG XL picture" CONVERT, "JXL ", 4, 4},
    {"a JPEG XL picture" CONVERT, "\xff\x0a", 0, 2},
    {"a film (MP4 or QuickTime)", "ftyp", 4, 4},
    {"a Photoshop picture" CONVERT, "8BPS", 0, 4},
    {"an ICO picture" CONVERT, "\0\0\1\0", 0, 4},
    {"an OpenEXR picture" CONVERT, "\x76\x2f\x31\x01", 0, 4},
    {"a DICOM picture" CONVERT, "DICM", 128, 4},
    {"a PDF document", "%PDF-", 0, 5},
    {"an IDX file", "\0\0\x08\1", 0, 4},
    {"an IDX file", "\0\0\x08\2", 0, 4},
    {"an IDX file", "\0\0\x08\3", 0, 4},
    {"an IDX file", "\0\0\x08\4", 0, 4},
    {"a NumPy file", "\x93NUMPY", 0, 6},
    {"a tar archive", "ustar", 257, 5},
    {"a RecordIO file", "\x0a\x23\xd7\xce", 0, 4},
    {"an HDF5 file", "\x89HDF\r\n", 0, 6},
    {PICKLE, "\x80\2}", 0, 3},
    {PICKLE, "\x80\3}", 0, 3},
    {PICKLE, "\x80\4\x95", 0, 3},
    {PICKLE, "\x80\5\x95", 0, 3},
    {"a gzip file" UNPACK, "\x1f\x8b", 0, 2},
    {"a zip file" UNPACK, "PK\3\4", 0, 4},
    {"a git-lfs pointer, not the file it stands for: fetch it with git lfs pull", "version https://git-lfs",
     0, 23},
    {"a PNG whose line ends were changed: fetch it again, not as text", "PNG\n", 1, 4},
    {"a PNG whose line ends were changed: fetch it again, not as text", "PNG\r\r", 1, 5},
    {"a JPEG's start marker (FF D8) and no other marker after it: damaged", "\xff\xd8", 0, 2},
};

static bool begins(const char *text, const char *with) { return strncasecmp(text, with, strlen(with)) == 0; }

/* Two letters are not enough: four bytes that nobody uses follow the size. */
static bool is_bmp(const uint8_t *p, size_t bytes)
{
    return bytes >= 10 && memcmp(p, "BM", 2) == 0 && memcmp(p + 6, "\0\0\0\0", 4) == 0;
}

/* A PNM picture's head: P1 to P6 and a line end or blank. */
static bool is_pnm(const char *text)
{
    return text[0] == 'P' && text[1] >= '1' && text[1] <= '6' && (text[2] == '\n' || text[2] == ' ');
}

/* text: NUL-terminated, holds no other NUL. */
static const char *kind_of_text(const char *text, char buf[MRI_PICTURE_KIND_BYTES])
{
    const char *from = text + strspn(text, " \t\r\n");
    if (is_pnm(text)) return "a PNM picture" CONVERT;
    if (begins(from, "<svg") || (begins(from, "<?xml") && strstr(from, "<svg")))
        return "an SVG drawing" CONVERT;
    if (begins(from, "<!doctype html") || begins(from, "<html")) return "a page of HTML" FETCH;
    char line[SHOWN_BYTES + 1], shown[4 * SHOWN_BYTES + 1];
    size_t n = strcspn(from, "\r\n");
    if (n > SHOWN_BYTES) n = SHOWN_BYTES;
    memcpy(line, from, n);
    line[n] = '\0';
    snprintf(buf, MRI_PICTURE_KIND_BYTES, "text (\"%s\")", mr_text_shown(line, shown, sizeof shown));
    return buf;
}

/* The beginning as text: UTF-8 without control characters but white space; a character that is cut is left
 * out. */
static bool take_text(const uint8_t *p, size_t bytes, char text[LOOK_BYTES + 1])
{
    size_t n = bytes < LOOK_BYTES ? bytes : LOOK_BYTES;
    while (n < bytes && n > LOOK_BYTES - 4 && p[n] >= 0x80 && p[n] < 0xc0) n--;
    for (size_t at = 0; at < n; at++)
        if ((p[at] < 0x20 && p[at] != '\n' && p[at] != '\r' && p[at] != '\t') || p[at] == 0x7f) return false;
    memcpy(text, p, n);
    text[n] = '\0';
    return mri_is_utf8(text, n);
}

bool mri_picture_lost(const void *data, size_t bytes)
{
    char buf[MRI_PICTURE_KIND_BYTES];
    static const char *const lost[] = {"no bytes",  "a JPEG that ends", "a JPEG's start", "a PNG whose",
                                       "a git-lfs", "nothing but",      "bytes"};
    const char *kind = mri_picture_kind(data, bytes, buf);
    for (size_t k = 0; k < MRI_ARRAY_COUNT(lost); k++)
        if (strncmp(kind, lost[k], strlen(lost[k])) == 0) return true;
    return false;
}

const char *mri_picture_kind(const void *data, size_t bytes, char buf[MRI_PICTURE_KIND_BYTES])
{
    const uint8_t *p = data;
    char text[LOOK_BYTES + 1];
    size_t zeros = 0;
    if (bytes == 0) return "no bytes at all";
    if (bytes == 2 && p[0] == 0xff && p[1] == 0xd8) return "a JPEG that ends at byte 2: truncated";
    for (size_t k = 0; k < MRI_ARRAY_COUNT(kinds); k++)
        if (bytes >= kinds[k].at + kinds[k].magic_bytes &&
            memcmp(p + kinds[k].at, kinds[k].magic, kinds[k].magic_bytes) == 0)
            return kinds[k].name;
    if (is_bmp(p, bytes)) return "a BMP picture of no known version" CONVERT;
    if (take_text(p, bytes, text)) return kind_of_text(text, buf);
    while (zeros < bytes && p[zeros] == 0) zeros++;
    if (zeros == bytes) return "nothing but zeros: it was never written, or lost";
    int at = snprintf(buf, MRI_PICTURE_KIND_BYTES, "bytes");
    for (size_t k = 0; k < 8 && k < bytes; k++)
        at += snprintf(buf + at, MRI_PICTURE_KIND_BYTES - (size_t)at, " %02x", p[k]);
    return buf;
}
